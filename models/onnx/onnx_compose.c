/* ONNX's operators that exporters write as several nodes, and what masks a value; see models/onnx/onnx_internal.h.
 *
 * RMSNorm is x / sqrt(mean(x^2) + e), GELU by a tanh is x (1 + tanh(c (x + d x^3))) / 2. The power is the layer, and
 * the nodes behind it are parts of it until x is multiplied by or divided by the last of them. A part that is used in
 * another way is refused.
 *
 * What decides which numbers count - masks, comparisons, random draws - has no gradient: it is a constant, and a value
 * that it is added to or chosen by stays as it is. */
#include "models/onnx/onnx_internal.h"

#include "models/op/op.h"

#include <string.h>

static bool is_op(const sn__importer *m, const char *const *ops, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (strcmp(m->node->op, ops[i]) == 0) return true;
  return false;
}

/* ---- operators made of several nodes ---- */

static const sn__onnx_value *part_of(sn__importer *m, const sn__onnx_value **other) {
  const sn__onnx_value *first = sn__onnx_input(m, 0), *second = sn__onnx_input(m, 1);
  bool turned = second && second->half;
  *other = turned ? first : second;
  return turned ? second : first && first->half ? first : NULL;
}

bool sn__onnx_is_part(sn__importer *m) {
  const sn__onnx_value *other;
  return part_of(m, &other) != NULL;
}

static sn_status give_part(sn__importer *m, const sn__onnx_value *v, bool half) {
  sn_status status = sn__onnx_give(m, 0, v->layer, v->rank, v->dims);
  if (status == SN_OK) sn__onnx_mark_half(m, half);
  return status;
}

/* x squared or cubed. */
sn_status sn__onnx_power(sn__importer *m) {
  const sn__onnx_value *v = sn__onnx_operand(m, 0), *by = sn__onnx_input(m, 1);
  if (!v) return m->err->code;
  const sn__onnx_tensor *t = by && by->kind == SN__ONNX_CONSTANT ? by->constant : NULL;
  double power = !t ? 0 : t->n_floats == 1 ? t->floats[0] : t->n_values == 1 ? (double)t->values[0] : 0;
  if (power != 2 && power != 3) return sn__onnx_fail(m, "only the powers of RMSNorm and GELU are known, 2 and 3");
  bool norm = power == 2;
  uint32_t x = norm ? sn__onnx_positions(m, v, -1) : v->layer;
  uint32_t layer = sn__onnx_add(m, "", norm ? SN_RMS_NORM : SN_ACT, &(sn_attr){.act = SN_ACT_GELU_NEW}, &x, 1);
  if (layer == SN_NONE) return m->err->code;
  sn_status status = sn__onnx_give_same(m, v, layer);
  if (status == SN_OK) sn__onnx_mark_half(m, true);
  return status;
}

/* The value that the part's operator was made of, in whatever dimensions. */
static bool is_origin(const sn__importer *m, const sn__onnx_value *part, const sn__onnx_value *other) {
  const sn_layer *maker = &m->b->layers[part->layer];
  uint32_t x = m->b->inputs[maker->first_input];
  const sn_layer *before = &m->b->layers[x];
  return other && other->kind == SN__ONNX_LAYER &&
         (other->layer == x || (before->op == SN_RESHAPE && m->b->inputs[before->first_input] == other->layer));
}

sn_status sn__onnx_compose(sn__importer *m) {
  static const char *const norms[] = {"ReduceMean", "Sqrt", "Reciprocal"}, *const any[] = {"Cast", "Identity"};
  const sn__onnx_value *other, *part = part_of(m, &other);
  bool norm = m->b->layers[part->layer].op == SN_RMS_NORM, number = other && other->kind == SN__ONNX_CONSTANT;
  bool adds = strcmp(m->node->op, "Add") == 0, times = strcmp(m->node->op, "Mul") == 0;
  bool by = times || (norm && strcmp(m->node->op, "Div") == 0);
  if (is_op(m, any, 2) || (norm && is_op(m, norms, 3)) || (!norm && strcmp(m->node->op, "Tanh") == 0))
    return give_part(m, part, true);
  if ((adds || by) && number && sn__onnx_is_single(other)) return give_part(m, part, true);
  if (adds && !norm && is_origin(m, part, other)) return give_part(m, part, true);
  if (by && is_origin(m, part, other)) return give_part(m, part, false);
  return sn__onnx_fail(m, "a power is known in RMSNorm and GELU alone");
}

/* ---- masks ---- */

/* Of a value of the network; where all inputs are fixed it was computed ahead. */
sn_status sn__onnx_compare(sn__importer *m) {
  return sn__onnx_give_unknown(m);
}

/* As many numbers from 0 to 1 as another value has. */
sn_status sn__onnx_random(sn__importer *m) {
  const sn__onnx_value *v = sn__onnx_input(m, 0);
  sn__onnx_tensor *t = sn_arena_alloc(m->arena, 1, sizeof *t);
  if (!t) return sn_fail_memory(m->err);
  if (!v) return sn__onnx_fail(m, "it has no input");
  *t = (sn__onnx_tensor){.name = "", .rank = v->rank, .random = true};
  memcpy(t->dims, v->dims, sizeof t->dims);
  return sn__onnx_give_constant(m, t);
}

/* A number where a mask says so, else the value; or the other way round. */
sn_status sn__onnx_where(sn__importer *m) {
  const sn__onnx_value *mask = sn__onnx_input(m, 0), *yes = sn__onnx_input(m, 1), *no = sn__onnx_input(m, 2);
  if (!mask || !yes || !no) return sn__onnx_fail(m, "it has fewer than three inputs");
  const sn__onnx_value *v = yes->kind == SN__ONNX_LAYER ? yes : no, *other = v == yes ? no : yes;
  if (mask->kind != SN__ONNX_CONSTANT || v->kind != SN__ONNX_LAYER || other->kind != SN__ONNX_CONSTANT ||
      !sn__onnx_takes(v, mask) || !sn__onnx_takes(v, other))
    return sn__onnx_fail(m, "only a value, a mask and a constant of its dimensions are known");
  return sn__onnx_give_same(m, v, v->layer);
}

/* ---- attention as one operator ---- */

/* Of the dimensions ahead of positions and a head's numbers, all that are not images are heads: windows, too, each of
 * which attends by itself. */
static int64_t heads_of(const sn__importer *m, const sn__onnx_value *v) {
  uint64_t each = (uint64_t)sn__onnx_dim(v, -1) * (uint64_t)sn__onnx_dim(v, -2);
  return each > 0 ? (int64_t)(sn__onnx_numbers(m, v) / each) : 0;
}

/* Heads times numbers a head as channels, positions as rows. */
static uint32_t all_heads(sn__importer *m, const sn__onnx_value *v, int64_t heads) {
  return sn__onnx_as(m, v, (uint64_t)heads * (uint64_t)sn__onnx_dim(v, -1), (uint64_t)sn__onnx_dim(v, -2), 1);
}

/* A fused kernel writes the heads of a position side by side. */
static void lay_heads(sn__importer *m, const sn__onnx_value *q) {
  const int64_t heads = q->dims[1], positions = q->dims[2], own = q->dims[3];
  sn__onnx_lay(m, 0, (const int64_t[]){positions * heads * own, own, heads * own, 1});
}

sn_status sn__onnx_attend(sn__importer *m, const sn__onnx_value *const in[3], const sn_attr *attr) {
  sn_attr a = *attr;
  uint32_t x[3];
  const int64_t heads = heads_of(m, in[0]), kv_heads = heads_of(m, in[1]);
  a.heads = sn__onnx_whole(m, heads);
  a.kv_heads = sn__onnx_whole(m, kv_heads);
  a.parts = in[0]->rank != 4; /* then PyTorch takes no kernel that does all of it */
  const int64_t keys = sn__onnx_dim(in[1], -2);
  if (keys != sn__onnx_dim(in[0], -2)) a.keys = sn__onnx_whole(m, keys);
  for (uint32_t i = 0; i < 3; i++) x[i] = all_heads(m, in[i], i == 0 ? heads : kv_heads);
  const sn__onnx_value q = *in[0];
  sn__onnx_give(m, 0, sn__onnx_add(m, "", SN_ATTENTION, &a, x, 3), q.rank, q.dims);
  if (!a.parts) lay_heads(m, &q);
  return m->err->code;
}

/* Heads apart from each other, or to be told apart by numbers of them. */
sn_status sn__onnx_attention(sn__importer *m) {
  const sn__onnx_value *in[3];
  uint32_t x[3];
  for (uint32_t i = 0; i < 3; i++) {
    in[i] = sn__onnx_operand(m, i);
    if (!in[i]) return m->err->code;
    if (in[i]->rank != in[0]->rank || in[i]->rank < 3 || in[i]->rank > 4)
      return sn__onnx_fail(m, "queries, keys and values have three or four dimensions");
  }
  sn_attr a = {.causal = sn__onnx_int(m, "is_causal", 0) != 0};
  if (in[0]->rank == 4) return sn__onnx_attend(m, in, &a);
  a.heads = sn__onnx_whole(m, sn__onnx_int(m, "q_num_heads", 0));
  a.kv_heads = sn__onnx_whole(m, sn__onnx_int(m, "kv_num_heads", 0));
  for (uint32_t i = 0; i < 3; i++) x[i] = all_heads(m, in[i], 1);
  return sn__onnx_give_same(m, in[0], sn__onnx_add(m, "", SN_ATTENTION, &a, x, 3));
}
