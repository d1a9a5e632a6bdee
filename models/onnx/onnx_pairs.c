/* Sums, differences, products and quotients: of values, and of a value with what is known ahead; see
 * models/onnx/onnx_internal.h.
 *
 * Of two values the smaller one is repeated along the sides that it lacks, which moves nothing (EXPAND). A difference
 * keeps as little as a sum, a quotient what a product keeps. */
#include "models/onnx/onnx_internal.h"

#include "base/checked.h"
#include "models/op/op.h"

#include <string.h>

bool sn__onnx_is_single(const sn__onnx_value *v) {
  for (uint32_t i = 0; i < v->rank; i++)
    if (v->dims[i] != 1) return false;
  return v->kind != SN__ONNX_CONSTANT || !v->constant->shapeless;
}

/* Of the batch there may be as many as the file was exported with. */
bool sn__onnx_takes(const sn__onnx_value *v, const sn__onnx_value *constant) {
  for (uint32_t i = 0; i < constant->rank; i++) {
    int64_t side = constant->dims[constant->rank - 1 - i];
    if (side != 1 && (i >= v->rank || (i + 1 < v->rank && side != v->dims[v->rank - 1 - i]))) return false;
  }
  return true;
}

/* What is neither trained nor of another size changes nothing and keeps nothing. */
static sn_status take_mask(sn__importer *m, const sn__onnx_value *v, const sn__onnx_value *mask) {
  if (sn__onnx_takes(v, mask)) return sn__onnx_give_same(m, v, v->layer);
  return sn__onnx_fail(m,
                       "it has a constant of other dimensions than its operand; export it with the sizes you ask for");
}

/* Rows of a table: of the axis that is as long as a row. */
static sn_status add_looked_up(sn__importer *m, const sn__onnx_value *v, const sn__onnx_tensor *table) {
  int64_t axis = v->rank - 1;
  while (axis > 0 && v->dims[axis] != table->columns) axis--;
  if (axis == 0) return sn__onnx_fail(m, "no sum with rows of a table");
  if (table->owner && table->owner->layer) return sn__onnx_give_same(m, v, v->layer); /* the same again */
  uint32_t x = sn__onnx_positions(m, v, axis);
  const sn_attr a = {.rows = sn__onnx_whole(m, table->rows)};
  uint32_t layer = sn__onnx_add(m, "", SN_POSITION, &a, &x, 1);
  if (table->owner && layer != SN_NONE) table->owner->layer = layer;
  return sn__onnx_give_same(m, v, layer);
}

/* Whether the constant is a bias of the CONV or FC before it, which then has it. Where that shares weights, it is the
 * owner's bias, or the weights are its own after all. */
static bool add_bias(sn__importer *m, const sn__onnx_value *v, const sn__onnx_value *constant, uint64_t numbers) {
  const sn_layer *maker = &m->b->layers[v->layer];
  sn__onnx_made *made = &m->made[v->layer];
  sn_attr attr = *maker->attr;
  const sn__onnx_owner *beside = sn__onnx_owner_of(constant);
  bool own = !attr.bias && attr.weights_of == 0 && !(made->weights && made->weights->shared);
  if ((maker->op != SN_FC && maker->op != SN_CONV) || numbers != made->shape.c || !(own || made->awaits)) return false;
  if (made->awaits && made->weights && beside != made->weights->beside) attr.weights_of = 0;
  attr.bias = true;
  if (own && made->weights) made->weights->beside = beside;
  sn__builder_change(m->b, v->layer, &attr);
  made->awaits = false;
  return true;
}

/* A bias: of a CONV or FC that has none it is theirs, else of positions, a row for each. */
static sn_status add_constant(sn__importer *m, const sn__onnx_value *v, const sn__onnx_value *constant) {
  uint64_t all = 1;
  if (sn__onnx_is_single(constant)) return sn__onnx_give_same(m, v, v->layer);
  if (!constant->constant->parameter) return take_mask(m, v, constant);
  if (constant->constant->rows > 0) return add_looked_up(m, v, constant->constant);
  if (constant->constant->shapeless) return sn__onnx_fail(m, "no sum of one shape");
  if (m->b->layers[v->layer].op == SN_MATMUL) return take_mask(m, v, constant); /* scores of attention */
  for (uint32_t i = 0; i < constant->rank; i++)
    if (constant->dims[i] < 1 || !sn_mul(all, (uint64_t)constant->dims[i], &all))
      return sn__onnx_fail(m, "no sum of one shape");
  if (add_bias(m, v, constant, all)) return sn__onnx_give_same(m, v, v->layer);
  bool by_channel = v->rank > 2 && v->rank <= 4 && constant->rank + 1 >= v->rank && all == (uint64_t)v->dims[1] &&
                    sn__onnx_dim(constant, -1) == 1;
  uint32_t x = by_channel ? sn__onnx_image(m, v) : sn__onnx_positions(m, v, -1);
  if (x == SN_NONE) return m->err->code;
  uint64_t channels = sn__onnx_shape(m, x).c;
  if (all % channels != 0) return sn__onnx_fail(m, "no sum with a row of its channels");
  const sn_attr a = {.rows = sn__onnx_whole(m, (int64_t)(all / channels))};
  return sn__onnx_give_same(m, v, sn__onnx_add_weighted(m, SN_POSITION, &a, x, constant, NULL));
}

static bool same_dims(const sn__onnx_value *a, const sn__onnx_value *b) {
  return a->rank == b->rank && memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) == 0;
}

/* Which of the two operands is a value of the network, and the other one. */
static const sn__onnx_value *value_of_two(sn__importer *m, const sn__onnx_value **other) {
  const sn__onnx_value *first = sn__onnx_input(m, 0), *second = sn__onnx_input(m, 1);
  bool turned = first && first->kind == SN__ONNX_CONSTANT;
  *other = turned ? first : second;
  if (!*other) sn__onnx_fail(m, "it has no second input");
  return *other ? sn__onnx_operand(m, turned) : NULL;
}

/* ---- values of several dimensions ---- */

/* The dimensions of what an operator makes of both, element by element; false where they do not go together. */
static bool meet(sn__onnx_value *met, const sn__onnx_value *v) {
  sn__onnx_value wide = *met;
  wide.rank = met->rank > v->rank ? met->rank : v->rank;
  for (uint32_t i = 0; i < wide.rank; i++) {
    const int64_t a = i < met->rank ? met->dims[met->rank - 1 - i] : 1;
    const int64_t b = i < v->rank ? v->dims[v->rank - 1 - i] : 1;
    if (a != b && a != 1 && b != 1) return false;
    wide.dims[wide.rank - 1 - i] = a > b ? a : b;
  }
  *met = wide;
  return true;
}

uint32_t sn__onnx_spread(sn__importer *m, const sn__onnx_value *v, uint64_t numbers) {
  const uint64_t own = sn__onnx_numbers(m, v);
  if (own == numbers || own == 0 || numbers % own != 0 || numbers / own > SN_MAX_DIM) return v->layer;
  uint32_t x = sn__onnx_as(m, v, own, 1, 1);
  const sn_attr a = {.shape = {x == SN_NONE ? 1 : (uint32_t)own, (uint32_t)(numbers / own), 1}};
  return sn__onnx_add(m, "wide", SN_EXPAND, &a, &x, 1);
}

/* Whether it is the same for all images. */
static bool is_once(const sn__importer *m, const sn__onnx_value *v) {
  return m->made[v->layer].once;
}

/* A layer of values that are all seen as the first that is as large as the output; what is the same for all images
 * stands behind it. */
static sn_status combine(sn__importer *m, sn_op op, const sn__onnx_value *const *values, uint32_t n) {
  enum { MOST = 64 };
  uint32_t all[MOST], first = 0, count = 1;
  sn__onnx_value met = *values[0];
  if (n > MOST) return sn__onnx_fail(m, "it has more than %d inputs", MOST);
  for (uint32_t i = 1; i < n; i++)
    if (!meet(&met, values[i])) return sn__onnx_fail(m, "its inputs have dimensions that do not go together");
  while (first + 1 < n && is_once(m, values[first])) first++;
  if (is_once(m, values[first])) first = 0;
  met.layer = values[first]->layer;
  const uint64_t numbers = sn__onnx_numbers(m, &met);
  for (uint32_t i = first; i < n; i++)
    if (sn__onnx_numbers(m, values[first]) != numbers && !is_once(m, values[i])) first = i;
  met.layer = all[0] = sn__onnx_spread(m, values[first], numbers);
  for (uint32_t i = 0; i < n && met.layer != SN_NONE; i++) {
    sn__onnx_value seen = met;
    if (i == first) continue;
    seen.layer = sn__onnx_spread(m, values[i], numbers);
    if (seen.layer != SN_NONE && is_once(m, &seen) && !is_once(m, &met)) seen.rank = 1, seen.dims[0] = (int64_t)numbers;
    all[count++] = seen.layer == SN_NONE ? SN_NONE : sn__onnx_as_layer(m, &seen, met.layer);
  }
  return sn__onnx_give_same(m, &met, sn__onnx_add(m, "", op, &(sn_attr){0}, all, count));
}

sn_status sn__onnx_add_two(sn__importer *m) {
  const sn__onnx_value *other, *v = value_of_two(m, &other);
  if (!v) return m->err->code;
  if (other->kind == SN__ONNX_CONSTANT) return add_constant(m, v, other);
  return combine(m, SN_JOIN, (const sn__onnx_value *const[]){v, other}, 2);
}

/* Of any number of values; of two it may be what Add may be. */
sn_status sn__onnx_add_all(sn__importer *m) {
  enum { MOST = 64 };
  const sn__onnx_value *values[MOST];
  const uint32_t n = m->node->n_inputs;
  if (n == 1) return sn__onnx_alias(m);
  if (n == 2) return sn__onnx_add_two(m);
  if (n > MOST) return sn__onnx_fail(m, "it has more than %d inputs", MOST);
  for (uint32_t i = 0; i < n; i++)
    if (!(values[i] = sn__onnx_operand(m, i))) return m->err->code;
  return combine(m, SN_JOIN, values, n);
}

/* A number for each of the value's is a dropout, one an image is stochastic depth. */
static sn_status drop(sn__importer *m, const sn__onnx_value *v, const sn__onnx_value *mask) {
  bool images = true, all = mask->rank == v->rank;
  for (uint32_t i = 1; i < mask->rank; i++) {
    images = images && mask->dims[i] == 1;
    all = all && mask->dims[i] == v->dims[i];
  }
  if (!images && !all) return sn__onnx_fail(m, "only random masks of values or whole images are known");
  const sn_attr a = {.ratio = 1 - mask->constant->keep, .images = !all};
  return sn__onnx_give_same(m, v, sn__onnx_add(m, "", SN_DROPOUT, &a, &v->layer, 1));
}

static sn_status multiply_by_constant(sn__importer *m, const sn__onnx_value *v, const sn__onnx_value *constant) {
  uint64_t all = 1;
  if (sn__onnx_is_single(constant) && constant->constant->keep == 0) return sn__onnx_give_same(m, v, v->layer);
  if (!constant->constant->parameter)
    return constant->constant->keep > 0 ? drop(m, v, constant) : take_mask(m, v, constant);
  for (uint32_t i = 0; i < constant->rank; i++)
    if (constant->dims[i] < 1 || !sn_mul(all, (uint64_t)constant->dims[i], &all)) all = 0;
  bool last = all == (uint64_t)sn__onnx_dim(v, -1), each = v->rank > 1 && v->rank <= 5 && all == (uint64_t)v->dims[1];
  if (!last && !each) return take_mask(m, v, constant);        /* such as angles of a rotary embedding */
  bool images = (uint64_t)v->dims[0] == sn__onnx_images(m, v); /* not windows of them */
  uint32_t x = last ? sn__onnx_positions(m, v, -1) : images ? sn__onnx_image(m, v) : sn__onnx_positions(m, v, 1);
  if (x == v->layer && m->b->layers[x].op == SN_RMS_NORM) return sn__onnx_give_same(m, v, x); /* its factors */
  return sn__onnx_give_same(m, v, sn__onnx_add_weighted(m, SN_SCALE, &(sn_attr){0}, x, constant, NULL));
}

/* x times a function of x that was made of it last: GELU by erf(), SiLU by a sigmoid. Where the file says that PyTorch
 * called one after the other, they are. */
static bool is_gate(sn__importer *m, const sn__onnx_value *x, const sn__onnx_value *function) {
  sn_layer *maker = &m->b->layers[function->layer];
  if (maker->op != SN_ACT || m->b->inputs[maker->first_input] != x->layer) return false;
  if (*m->node->call && m->made[function->layer].call != m->node->call) return false;
  sn_attr attr = *maker->attr;
  attr.act = SN_ACT_SILU;
  if (maker->attr->act == SN_ACT_SIGMOID) sn__builder_change(m->b, function->layer, &attr);
  return maker->attr->act == SN_ACT_SILU || maker->attr->act == SN_ACT_GELU;
}

/* Whether the second, seen as an image or a volume, has the first's sides or sides of 1. */
static bool fits_image(const sn__importer *m, const sn__onnx_value *v, const sn__onnx_value *factor) {
  bool volumes = v->rank == 5 && sn__onnx_planes(m, v->layer) > 1;
  bool fits = v->rank == factor->rank && (v->rank <= 4 || volumes);
  for (uint32_t i = 0; fits && i < v->rank; i++)
    fits = factor->dims[i] == v->dims[i] || (i > 0 && factor->dims[i] == 1);
  return fits;
}

/* A product, or a quotient, which keeps both of its operands, too. */
static sn_status multiply_values(sn__importer *m, const sn__onnx_value *v, const sn__onnx_value *other) {
  if (sn__onnx_numbers(m, v) < sn__onnx_numbers(m, other)) {
    const sn__onnx_value *swapped = v;
    v = other, other = swapped;
  }
  if (same_dims(v, other) || !fits_image(m, v, other))
    return combine(m, SN_MUL, (const sn__onnx_value *const[]){v, other}, 2);
  const uint32_t both[] = {sn__onnx_image(m, v), sn__onnx_image(m, other)};
  return sn__onnx_give_same(m, v, sn__onnx_add(m, "", SN_MUL, &(sn_attr){0}, both, 2));
}

sn_status sn__onnx_multiply(sn__importer *m) {
  const sn__onnx_value *other, *v = value_of_two(m, &other);
  if (!v) return m->err->code;
  if (other->kind == SN__ONNX_CONSTANT) return multiply_by_constant(m, v, other);
  if (is_gate(m, v, other)) return sn__onnx_give_same(m, v, other->layer);
  if (is_gate(m, other, v)) return sn__onnx_give_same(m, v, v->layer);
  return multiply_values(m, v, other);
}

/* A parameter takes part in a difference as in a sum, in a quotient as in a product. */
sn_status sn__onnx_subtract(sn__importer *m) {
  return sn__onnx_add_two(m);
}

sn_status sn__onnx_divide(sn__importer *m) {
  const sn__onnx_value *other, *v = value_of_two(m, &other);
  if (!v) return m->err->code;
  return other->kind == SN__ONNX_CONSTANT ? multiply_by_constant(m, v, other) : multiply_values(m, v, other);
}
