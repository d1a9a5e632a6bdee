/* What each operator of ONNX becomes; see models/onnx/onnx_internal.h. Rules follow the operators' published definitions
 * (https://github.com/onnx/onnx/blob/main/docs/Operators.md); where versions of one have moved a list from an attribute
 * to an input, both are read.
 *
 * Products and sums with a single number change no sizes and keep nothing: they are no layers. */
#include "models/onnx/onnx_internal.h"

#include "base/checked.h"
#include "models/op/op.h"

#include <string.h>

/* ---- what rules share ---- */

sn_status sn__onnx_give_same(sn__importer *m, const sn__onnx_value *v, uint32_t layer) {
  return sn__onnx_give(m, 0, layer, v->rank, v->dims);
}

/* Of the same numbers, but not those of the same parameter: PyTorch's older exporter writes factors and biases that
 * happen to be equal once, and the others as Identities of them. */
static const sn__onnx_tensor *of_nobody(sn__importer *m, const sn__onnx_tensor *from) {
  if (!from->owner) return from;
  sn__onnx_tensor *t = sn_arena_alloc(m->arena, 1, sizeof *t);
  if (t) *t = *from, t->owner = NULL;
  return t;
}

/* Another look at the same numbers. */
sn_status sn__onnx_alias(sn__importer *m) {
  const sn__onnx_value *v = sn__onnx_input(m, 0);
  if (v && v->kind == SN__ONNX_CONSTANT)
    return sn__onnx_give_constant(m, v->rank < 2 ? of_nobody(m, v->constant) : v->constant);
  v = sn__onnx_operand(m, 0);
  return v ? sn__onnx_give_same(m, v, v->layer) : m->err->code;
}

static sn_status add_same(sn__importer *m, sn_op op, const sn_attr *attr) {
  const sn__onnx_value *v = sn__onnx_operand(m, 0);
  return v ? sn__onnx_give_same(m, v, sn__onnx_add(m, "", op, attr, &v->layer, 1)) : m->err->code;
}

uint32_t sn__onnx_image(sn__importer *m, const sn__onnx_value *v) {
  uint64_t sides[5] = {1, 1, 1, 1, 1};
  for (uint32_t i = 0; i < v->rank && i < 5; i++) sides[i] = (uint64_t)v->dims[i];
  if (v->rank > 5) sn__onnx_fail(m, "its input has %u dimensions; at most 5 are known", v->rank);
  return v->rank == 5 ? sn__onnx_as_volume(m, v, sides[1], sides[2], sides[3], sides[4])
                      : sn__onnx_as(m, v, sides[1], sides[2], sides[3]);
}

/* The numbers along one axis as channels, all else as rows. */
uint32_t sn__onnx_positions(sn__importer *m, const sn__onnx_value *v, int64_t axis) {
  return sn__onnx_as(m, v, (uint64_t)sn__onnx_dim(v, axis), 0, 1);
}

sn_status sn__onnx_give_image(sn__importer *m, const sn__onnx_value *v, uint32_t layer) {
  if (layer == SN_NONE) return m->err->code;
  sn_shape s = sn__onnx_shape(m, layer);
  const uint32_t planes = v->rank == 5 ? sn__onnx_planes(m, layer) : 1;
  const int64_t image[] = {m->batch, s.c, s.h, s.w}, volume[] = {m->batch, s.c, planes, s.h / planes, s.w};
  return sn__onnx_give(m, 0, layer, v->rank, v->rank == 5 ? volume : image);
}

sn_status sn__onnx_give_changed(sn__importer *m, const sn__onnx_value *v, int64_t axis, int64_t side, uint32_t layer) {
  int64_t dims[SN__ONNX_RANK];
  memcpy(dims, v->dims, sizeof dims);
  if (axis < 0) axis += v->rank;
  if (axis < 0 || axis >= v->rank) return sn__onnx_fail(m, "it has no such axis");
  dims[axis] = side;
  return sn__onnx_give(m, 0, layer, v->rank, dims);
}

uint32_t sn__onnx_whole(sn__importer *m, int64_t value) {
  if (value < 0 || value > SN_MAX_DIM) sn__onnx_fail(m, "%lld is not from 0 to %u", (long long)value, SN_MAX_DIM);
  return value < 0 || value > SN_MAX_DIM ? 0 : (uint32_t)value;
}

bool sn__onnx_has_bias(sn__importer *m) {
  const sn__onnx_value *bias = sn__onnx_input(m, 2);
  return bias && bias->kind == SN__ONNX_CONSTANT && bias->constant->parameter;
}

/* ---- products with weights ---- */

/* A product by itself whose weights are those of one with a bias is expected to have it added next. */
static sn_status linear(sn__importer *m, const sn__onnx_value *v, const sn__onnx_value *weights, int64_t channels,
                        const sn__onnx_value *bias) {
  const sn__onnx_owner *o = weights->constant->owner;
  const bool awaits = !bias && o && o->layer != 0 && o->beside && m->b->layers[o->layer].op == SN_FC;
  sn_attr a = {.channels = sn__onnx_whole(m, channels), .bias = bias || awaits, .positions = true};
  uint32_t x = sn__onnx_positions(m, v, -1);
  uint32_t layer = sn__onnx_add_weighted(m, SN_FC, &a, x, weights, awaits ? o->beside : sn__onnx_owner_of(bias));
  if (awaits && layer != SN_NONE) {
    m->made[layer].awaits = m->b->layers[layer].attr->weights_of != 0;
    a.bias = false;
    if (!m->made[layer].awaits) sn__builder_change(m->b, layer, &a);
  }
  return sn__onnx_give_changed(m, v, -1, channels, layer);
}

static sn_status gemm(sn__importer *m) {
  const sn__onnx_value *v = sn__onnx_operand(m, 0), *weights = sn__onnx_input(m, 1);
  if (!v) return m->err->code;
  bool turned = sn__onnx_int(m, "transB", 0) != 0;
  if (!weights || weights->kind != SN__ONNX_CONSTANT || weights->rank != 2 || sn__onnx_int(m, "transA", 0) != 0)
    return sn__onnx_fail(m, "its second input is no matrix of weights");
  if (weights->dims[turned ? 1 : 0] != sn__onnx_dim(v, -1))
    return sn__onnx_fail(m, "its weights have another number of rows than its input has columns");
  return linear(m, v, weights, weights->dims[turned ? 0 : 1], sn__onnx_has_bias(m) ? sn__onnx_input(m, 2) : NULL);
}

/* As many matrices of the last two dimensions as the others make. */
static uint32_t as_matrices(sn__importer *m, const sn__onnx_value *v) {
  return sn__onnx_as(m, v, 0, (uint64_t)sn__onnx_dim(v, -2), (uint64_t)sn__onnx_dim(v, -1));
}

static sn_status matmul(sn__importer *m) {
  const sn__onnx_value *v = sn__onnx_operand(m, 0), *second = sn__onnx_input(m, 1);
  if (!v) return m->err->code;
  if (second && second->kind == SN__ONNX_CONSTANT) {
    if (second->rank == 2 && second->dims[0] == sn__onnx_dim(v, -1)) return linear(m, v, second, second->dims[1], NULL);
    return sn__onnx_fail(m, "its weights are no matrix with as many rows as its input has columns");
  }
  second = sn__onnx_operand(m, 1);
  if (!second) return m->err->code;
  if (v->rank < 3 || second->rank < 3) return sn__onnx_fail(m, "a product across images is not known");
  const uint32_t both[] = {as_matrices(m, v), as_matrices(m, second)};
  return sn__onnx_give_changed(m, v, -1, sn__onnx_dim(second, -1),
                               sn__onnx_add(m, "", SN_MATMUL, &(sn_attr){0}, both, 2));
}

/* ---- norms ---- */

static uint32_t add_norm(sn__importer *m, sn_op op, const sn_attr *attr, uint32_t x) {
  return sn__onnx_add_weighted(m, op, attr, x, sn__onnx_input(m, 1), sn__onnx_owner_of(sn__onnx_input(m, 2)));
}

static sn_status batch_norm(sn__importer *m) {
  const sn__onnx_value *v = sn__onnx_operand(m, 0);
  if (!v) return m->err->code;
  return sn__onnx_give_same(m, v, add_norm(m, SN_BN, &(sn_attr){0}, sn__onnx_image(m, v)));
}

static sn_status norm_groups(sn__importer *m, int64_t groups) {
  const sn__onnx_value *v = sn__onnx_operand(m, 0);
  if (!v) return m->err->code;
  const sn_attr a = {.groups = groups ? sn__onnx_whole(m, groups) : sn__onnx_whole(m, sn__onnx_dim(v, 1))};
  return sn__onnx_give_same(m, v, add_norm(m, SN_GROUP_NORM, &a, sn__onnx_image(m, v)));
}

static sn_status group_norm(sn__importer *m) {
  return norm_groups(m, sn__onnx_int(m, "num_groups", 1));
}

static sn_status instance_norm(sn__importer *m) {
  return norm_groups(m, 0);
}

static sn_status norm_last(sn__importer *m, sn_op op) {
  const sn__onnx_value *v = sn__onnx_operand(m, 0);
  if (!v) return m->err->code;
  int64_t axis = sn__onnx_int(m, "axis", -1);
  if (axis != -1 && axis != (int64_t)v->rank - 1) return sn__onnx_fail(m, "only norms over the last axis are known");
  const sn_attr a = {.fused = op == SN_RMS_NORM};
  return sn__onnx_give_same(m, v, add_norm(m, op, &a, sn__onnx_positions(m, v, -1)));
}

static sn_status layer_norm(sn__importer *m) {
  return norm_last(m, SN_LAYER_NORM);
}

static sn_status rms_norm(sn__importer *m) {
  return norm_last(m, SN_RMS_NORM);
}

static sn_status lrn(sn__importer *m) {
  const sn__onnx_attribute *alpha = sn__onnx_find(m->node, "alpha"), *beta = sn__onnx_find(m->node, "beta");
  const sn__onnx_attribute *bias = sn__onnx_find(m->node, "bias");
  const sn_attr a = {.lrn_size = sn__onnx_whole(m, sn__onnx_int(m, "size", 5)),
                     .lrn_alpha = alpha ? alpha->f : 1e-4,
                     .lrn_beta = beta ? beta->f : 0.75,
                     .lrn_k = bias ? bias->f : 1};
  return add_same(m, SN_LRN, &a);
}

/* ---- an element at a time ---- */

static sn_status activation(sn__importer *m) {
  static const struct {
    const char *op;
    sn_act_mode mode;
  } modes[] = {{"Relu", SN_ACT_RELU},
               {"LeakyRelu", SN_ACT_LEAKY},
               {"Tanh", SN_ACT_TANH},
               {"Sigmoid", SN_ACT_SIGMOID},
               {"Elu", SN_ACT_ELU},
               {"Gelu", SN_ACT_GELU},
               {"HardSwish", SN_ACT_HARDSWISH},
               {"HardSigmoid", SN_ACT_HARDSIGMOID},
               {"Softplus", SN_ACT_SOFTPLUS},
               {"Mish", SN_ACT_MISH},
               {"Clip", SN_ACT_RELU6},
               {"Swish", SN_ACT_SILU}};
  const sn__onnx_attribute *alpha = sn__onnx_find(m->node, "alpha");
  sn_attr a = {0};
  for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
    if (strcmp(m->node->op, modes[i].op) == 0) a.act = modes[i].mode;
  if (a.act == SN_ACT_LEAKY) a.slope = alpha ? alpha->f : 0.01;
  return add_same(m, SN_ACT, &a);
}

/* One slope for all, or one a channel; before opset 9 a plain list of these. */
static sn_status prelu(sn__importer *m) {
  const sn__onnx_value *v = sn__onnx_operand(m, 0), *slopes = sn__onnx_input(m, 1);
  if (!v) return m->err->code;
  if (!slopes || slopes->kind != SN__ONNX_CONSTANT) return sn__onnx_fail(m, "its slopes are no constant");
  int64_t channels = sn__onnx_dim(v, 1), behind = m->model.opset < 9 && slopes->rank == 1 ? 0 : (int64_t)v->rank - 2;
  bool one = sn__onnx_is_single(slopes), each = !one && sn__onnx_dim(slopes, -1 - behind) == channels;
  for (uint32_t i = 0; each && i < slopes->rank; i++) each = slopes->dims[i] == 1 || i + 1 + behind == slopes->rank;
  if (!one && !each) return sn__onnx_fail(m, "its slopes are neither one nor one a channel");
  const sn_attr a = {.act = SN_ACT_PRELU, .slopes = one ? 1 : sn__onnx_whole(m, channels)};
  return sn__onnx_give_same(m, v, sn__onnx_add_weighted(m, SN_ACT, &a, sn__onnx_image(m, v), slopes, NULL));
}

static sn_status dropout(sn__importer *m) {
  const sn__onnx_attribute *ratio = sn__onnx_find(m->node, "ratio");
  const sn__onnx_value *v = sn__onnx_input(m, 1);
  sn_attr a = {.ratio = ratio ? ratio->f : 0.5};
  if (v && v->kind == SN__ONNX_CONSTANT) a.ratio = v->constant->floats[0];
  return add_same(m, SN_DROPOUT, &a);
}

/* The probabilities that a network ends in are those of its loss. */
static sn_status softmax(sn__importer *m) {
  bool last =
      m->model.n_outputs > 0 && m->node->n_outputs > 0 && strcmp(m->node->outputs[0], m->model.outputs[0].name) == 0;
  return last ? sn__onnx_alias(m) : add_same(m, SN_PROBABILITIES, &(sn_attr){0});
}

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

static sn_status add(sn__importer *m) {
  const sn__onnx_value *other, *v = value_of_two(m, &other);
  if (!v) return m->err->code;
  if (other->kind == SN__ONNX_CONSTANT) return add_constant(m, v, other);
  if (!same_dims(v, other)) return sn__onnx_fail(m, "a sum of values of two shapes is not known");
  const uint32_t both[] = {v->layer, sn__onnx_as_layer(m, other, v->layer)};
  return sn__onnx_give_same(m, v, sn__onnx_add(m, "", SN_JOIN, &(sn_attr){0}, both, 2));
}

/* Of any number of values; of two it may be what Add may be. */
static sn_status add_all(sn__importer *m) {
  enum { MOST = 64 };
  const sn__onnx_value *first = sn__onnx_operand(m, 0);
  uint32_t all[MOST], n = m->node->n_inputs;
  if (!first || n == 2) return n == 2 ? add(m) : m->err->code;
  if (n == 1) return sn__onnx_alias(m);
  if (n > MOST) return sn__onnx_fail(m, "it has more than %d inputs", MOST);
  for (uint32_t i = 0; i < n; i++) {
    const sn__onnx_value *v = sn__onnx_operand(m, i);
    if (!v) return m->err->code;
    if (!same_dims(first, v)) return sn__onnx_fail(m, "a sum of values of two shapes is not known");
    all[i] = sn__onnx_as_layer(m, v, first->layer);
  }
  return sn__onnx_give_same(m, first, sn__onnx_add(m, "", SN_JOIN, &(sn_attr){0}, all, n));
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
  if (!last && !each) return take_mask(m, v, constant); /* such as angles of a rotary embedding */
  uint32_t x = last ? sn__onnx_positions(m, v, -1) : sn__onnx_image(m, v);
  if (x == v->layer && m->b->layers[x].op == SN_RMS_NORM) return sn__onnx_give_same(m, v, x); /* its factors */
  return sn__onnx_give_same(m, v, sn__onnx_add_weighted(m, SN_SCALE, &(sn_attr){0}, x, constant, NULL));
}

/* x times a function of x that was made of it last: GELU by erf(), SiLU by a sigmoid. */
static bool is_gate(sn__importer *m, const sn__onnx_value *x, const sn__onnx_value *function) {
  sn_layer *maker = &m->b->layers[function->layer];
  if (maker->op != SN_ACT || m->b->inputs[maker->first_input] != x->layer) return false;
  sn_attr attr = *maker->attr;
  attr.act = SN_ACT_SILU;
  if (maker->attr->act == SN_ACT_SIGMOID) sn__builder_change(m->b, function->layer, &attr);
  return maker->attr->act == SN_ACT_SILU || maker->attr->act == SN_ACT_GELU;
}

/* The products and sums around it are GELU's. */
static sn_status gelu_by_erf(sn__importer *m) {
  return add_same(m, SN_ACT, &(sn_attr){.act = SN_ACT_GELU});
}

static sn_status multiply(sn__importer *m) {
  const sn__onnx_value *other, *v = value_of_two(m, &other);
  if (!v) return m->err->code;
  if (other->kind == SN__ONNX_CONSTANT) return multiply_by_constant(m, v, other);
  if (is_gate(m, v, other)) return sn__onnx_give_same(m, v, other->layer);
  if (is_gate(m, other, v)) return sn__onnx_give_same(m, v, v->layer);
  if (sn__onnx_numbers(m, v) < sn__onnx_numbers(m, other)) {
    const sn__onnx_value *swapped = v;
    v = other, other = swapped;
  }
  bool same = same_dims(v, other);
  const uint32_t both[] = {same ? v->layer : sn__onnx_image(m, v),
                           same ? sn__onnx_as_layer(m, other, v->layer) : sn__onnx_image(m, other)};
  return sn__onnx_give_same(m, v, sn__onnx_add(m, "", SN_MUL, &(sn_attr){0}, both, 2));
}

/* By or less a number or a mask, which changes no size. */
static sn_status shift(sn__importer *m) {
  const sn__onnx_value *v = sn__onnx_operand(m, 0), *other = sn__onnx_input(m, 1);
  if (!v) return m->err->code;
  if (other && other->kind == SN__ONNX_CONSTANT && (sn__onnx_is_single(other) || !other->constant->parameter))
    return take_mask(m, v, other);
  return sn__onnx_fail(m, "only a single number is known as its second input");
}

/* ---- the table ---- */

static const struct {
  const char *op;
  sn__onnx_rule rule;
} rules[] = {
    {"Conv", sn__onnx_conv},
    {"ConvTranspose", sn__onnx_deconv},
    {"MaxPool", sn__onnx_max_pool},
    {"AveragePool", sn__onnx_average_pool},
    {"GlobalMaxPool", sn__onnx_global_max_pool},
    {"GlobalAveragePool", sn__onnx_global_average_pool},
    {"ReduceMean", sn__onnx_reduce_mean},
    {"Gemm", gemm},
    {"MatMul", matmul},
    {"BatchNormalization", batch_norm},
    {"GroupNormalization", group_norm},
    {"InstanceNormalization", instance_norm},
    {"LayerNormalization", layer_norm},
    {"RMSNormalization", rms_norm},
    {"LRN", lrn},
    {"Relu", activation},
    {"LeakyRelu", activation},
    {"PRelu", prelu},
    {"Tanh", activation},
    {"Sigmoid", activation},
    {"Elu", activation},
    {"Gelu", activation},
    {"HardSwish", activation},
    {"HardSigmoid", activation},
    {"Softplus", activation},
    {"Mish", activation},
    {"Swish", activation},
    {"Clip", activation},
    {"Dropout", dropout},
    {"Softmax", softmax},
    {"LogSoftmax", softmax},
    {"Add", add},
    {"Sum", add_all},
    {"Mul", multiply},
    {"Div", shift},
    {"Sub", shift},
    {"Transpose", sn__onnx_transpose},
    {"Reshape", sn__onnx_reshape},
    {"Flatten", sn__onnx_flatten},
    {"Squeeze", sn__onnx_squeeze},
    {"Unsqueeze", sn__onnx_unsqueeze},
    {"Identity", sn__onnx_alias},
    {"Cast", sn__onnx_alias},
    {"CastLike", sn__onnx_alias},
    {"Concat", sn__onnx_concat},
    {"Slice", sn__onnx_slice},
    {"Split", sn__onnx_split},
    {"SplitToSequence", sn__onnx_split_later},
    {"SequenceAt", sn__onnx_part_of_split},
    {"Gather", sn__onnx_gather},
    {"Pad", sn__onnx_pad},
    {"Resize", sn__onnx_resize},
    {"Upsample", sn__onnx_resize},
    {"Constant", sn__onnx_constant_rule},
    {"Erf", gelu_by_erf},
    {"Expand", sn__onnx_expand_rule},
    {"Shape", sn__onnx_shape_rule},
    {"Neg", sn__onnx_alias},
    {"Pow", sn__onnx_power},
    {"Where", sn__onnx_where},
    {"Attention", sn__onnx_attention},
    {"RandomUniformLike", sn__onnx_random},
    {"Equal", sn__onnx_compare},
    {"Less", sn__onnx_compare},
    {"LessOrEqual", sn__onnx_compare},
    {"Greater", sn__onnx_compare},
    {"GreaterOrEqual", sn__onnx_compare},
    {"IsNaN", sn__onnx_compare},
    {"IsInf", sn__onnx_compare},
};

sn_status sn__onnx_map(sn__importer *m) {
  if (sn__onnx_folds(m->node) && sn__onnx_fold(m)) return m->err->code;
  if (sn__onnx_is_part(m)) return sn__onnx_compose(m);
  sn__onnx_rule rule = sn__onnx_rule_of(m->node);
  return rule ? rule(m) : sn__onnx_fail(m, "it is known of constants only");
}

sn__onnx_rule sn__onnx_rule_of(const sn__onnx_node *node) {
  if (*node->domain && strcmp(node->domain, "ai.onnx") != 0) return NULL;
  for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
    if (strcmp(node->op, rules[i].op) == 0) return rules[i].rule;
  return NULL;
}
