/* Einsum of one value, which puts its axes in another order, and of two, a product of matrices; see
 * models/onnx/onnx_internal.h.
 *
 *   b h i d, b h j d -> b h i j     letters of both and of the output are matrices beside each other, of both alone are
 *                                   what is summed over, of one are rows or columns */
#include "models/onnx/onnx_internal.h"

#include "base/checked.h"

#include <ctype.h>
#include <string.h>

enum { FIRST, SECOND, OUTPUT, TERMS, LETTERS = 128 };

typedef struct equation {
  uint32_t rank[TERMS];
  char letters[TERMS][SN__ONNX_RANK + 1];
  bool has[TERMS][LETTERS];
  uint32_t terms; /* ahead of the output */
} equation;

/* False where it is none of up to two terms and an output, of letters alone. */
static bool parse(const char *text, equation *e) {
  uint32_t term = FIRST;
  *e = (equation){.terms = 1};
  for (; *text; text++) {
    const unsigned char c = (unsigned char)*text;
    if (c == ' ') continue;
    if (c == ',' && term == FIRST) {
      term = SECOND, e->terms = 2;
    } else if (c == '-' && text[1] == '>' && term != OUTPUT) {
      term = OUTPUT, text++;
    } else if (isalpha(c) && c < LETTERS && e->rank[term] < SN__ONNX_RANK && !e->has[term][c]) {
      e->letters[term][e->rank[term]++] = (char)c;
      e->has[term][c] = true;
    } else {
      return false;
    }
  }
  return term == OUTPUT;
}

/* How long the letter's axis is in the values; 0: they do not agree, or have none such. */
static int64_t side_of(const equation *e, const sn__onnx_value *const *v, char letter) {
  int64_t side = 0;
  for (uint32_t t = FIRST; t < OUTPUT && v[t]; t++)
    for (uint32_t i = 0; i < e->rank[t]; i++) {
      if (e->letters[t][i] != letter) continue;
      if (side != 0 && side != v[t]->dims[i]) return 0;
      side = v[t]->dims[i];
    }
  return side;
}

/* The numbers along letters of a term that the other has, or has not, and the output has, or has not; but of images. */
static uint64_t numbers_of(const equation *e, const sn__onnx_value *v, uint32_t term, bool in_other, bool in_output) {
  const uint32_t other = term == FIRST ? SECOND : FIRST;
  uint64_t all = 1;
  for (uint32_t i = 0; i < e->rank[term]; i++) {
    const unsigned char c = (unsigned char)e->letters[term][i];
    if (e->has[other][c] == in_other && e->has[OUTPUT][c] == in_output && !sn_mul(all, (uint64_t)v->dims[i], &all))
      return 0;
  }
  return all;
}

static sn_status give(sn__importer *m, const equation *e, const sn__onnx_value *const *v, uint32_t layer) {
  int64_t dims[SN__ONNX_RANK];
  for (uint32_t i = 0; i < e->rank[OUTPUT]; i++) dims[i] = side_of(e, v, e->letters[OUTPUT][i]);
  return sn__onnx_give(m, 0, layer, e->rank[OUTPUT], dims);
}

/* Weights are a matrix, whatever the order of its axes: an FC of what is summed over. */
static sn_status by_weights(sn__importer *m, const equation *e, const sn__onnx_value *const *v) {
  const uint64_t summed = numbers_of(e, v[SECOND], SECOND, true, false);
  const uint64_t made = numbers_of(e, v[SECOND], SECOND, false, true);
  if (numbers_of(e, v[SECOND], SECOND, true, true) != 1)
    return sn__onnx_fail(m, "its weights are not the same for all matrices");
  const sn_attr a = {.channels = sn__onnx_whole(m, made > SN_MAX_DIM ? -1 : (int64_t)made), .positions = true};
  uint32_t x = sn__onnx_as(m, v[FIRST], summed, 0, 1);
  return give(m, e, v, sn__onnx_add_weighted(m, SN_FC, &a, x, v[SECOND], NULL));
}

sn_status sn__onnx_einsum(sn__importer *m) {
  const sn__onnx_attribute *text = sn__onnx_find(m->node, "equation");
  const sn__onnx_value *v[2] = {sn__onnx_operand(m, 0), NULL};
  equation e;
  if (!v[FIRST]) return m->err->code;
  if (!text || !parse(text->text, &e) || e.terms != m->node->n_inputs || e.rank[FIRST] != v[FIRST]->rank)
    return sn__onnx_fail(m, "only letters of one or two values are known");
  if (e.terms == 1 && e.rank[OUTPUT] != e.rank[FIRST]) return sn__onnx_fail(m, "it sums one value");
  if (e.terms == 1) return give(m, &e, v, v[FIRST]->layer);
  const sn__onnx_value *weights = sn__onnx_input(m, 1);
  bool constant = weights && weights->kind == SN__ONNX_CONSTANT && weights->constant->parameter;
  v[SECOND] = constant ? weights : sn__onnx_operand(m, 1);
  if (!v[SECOND]) return m->err->code;
  if (e.rank[SECOND] != v[SECOND]->rank) return sn__onnx_fail(m, "its equation has another number of axes");
  if (constant) return by_weights(m, &e, v);
  const uint64_t beside = numbers_of(&e, v[FIRST], FIRST, true, true) / sn__onnx_images(m, v[FIRST]);
  const uint64_t summed = numbers_of(&e, v[FIRST], FIRST, true, false);
  const uint32_t both[] = {sn__onnx_as(m, v[FIRST], beside, 0, summed), sn__onnx_as(m, v[SECOND], beside, summed, 0)};
  return give(m, &e, v, sn__onnx_add(m, "", SN_MATMUL, &(sn_attr){0}, both, 2));
}
