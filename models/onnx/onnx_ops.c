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

/* The first output, which was made of the operand, lies as that may say. */
static sn_status lay(sn__importer *m, const sn__onnx_value *v) {
  if (m->err->code == SN_OK) sn__onnx_lay_like(m, sn__onnx_named(m, m->node->outputs[0]), v);
  return m->err->code;
}

sn_status sn__onnx_give_same(sn__importer *m, const sn__onnx_value *v, uint32_t layer) {
  const sn__onnx_value from = *v; /* the output may have its name */
  return sn__onnx_give(m, 0, layer, v->rank, v->dims) ? m->err->code : lay(m, &from);
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
  if (!v) return m->err->code;
  bool copies = strstr(m->node->call, "contiguous_format") && !sn__onnx_is_dense(v);
  return copies ? sn__onnx_give(m, 0, sn__onnx_copy(m, v), v->rank, v->dims) : sn__onnx_give_same(m, v, v->layer);
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
  const sn__onnx_value made = {.kind = SN__ONNX_LAYER, .layer = layer};
  const int64_t images = (int64_t)sn__onnx_images(m, &made);
  const int64_t image[] = {images, s.c, s.h, s.w}, volume[] = {images, s.c, planes, s.h / planes, s.w};
  return sn__onnx_give(m, 0, layer, v->rank, v->rank == 5 ? volume : image) ? m->err->code : lay(m, v);
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
  const sn__onnx_value flat = sn__onnx_flat(m, v, 1);
  uint32_t x = flat.layer == SN_NONE ? SN_NONE : sn__onnx_positions(m, &flat, -1);
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
static uint32_t as_matrices(sn__importer *m, const sn__onnx_value *given) {
  const sn__onnx_value flat = sn__onnx_flat(m, given, 2), *v = &flat;
  if (v->layer == SN_NONE) return SN_NONE;
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

/* Also of tokens that stand one behind the other, as if each were an image. */
static sn_status batch_norm(sn__importer *m) {
  const sn__onnx_value *v = sn__onnx_operand(m, 0);
  if (!v) return m->err->code;
  if (v->rank < 4 && v->dims[0] != m->batch) {
    uint32_t x = sn__onnx_as(m, v, (uint64_t)sn__onnx_dim(v, 1), 0, 1);
    return sn__onnx_give_same(m, v, add_norm(m, SN_BN, &(sn_attr){0}, x));
  }
  return sn__onnx_give_same(m, v, add_norm(m, SN_BN, &(sn_attr){0}, sn__onnx_image(m, v)));
}

/* PyTorch's is of plain images alone. */
static sn_status norm_groups(sn__importer *m, int64_t groups) {
  const sn__onnx_value *v = sn__onnx_operand(m, 0);
  if (!v) return m->err->code;
  sn__onnx_value plain = *v;
  if (!sn__onnx_is_dense(v)) plain.layer = sn__onnx_copy(m, v);
  if (plain.layer == SN_NONE) return m->err->code;
  v = &plain;
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
               {"Exp", SN_ACT_EXP},
               {"Sin", SN_ACT_SIN},
               {"Cos", SN_ACT_COS},
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

/* The products and sums around it are GELU's. */
static sn_status gelu_by_erf(sn__importer *m) {
  return add_same(m, SN_ACT, &(sn_attr){.act = SN_ACT_GELU});
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
    {"ReduceMean", sn__onnx_reduce},
    {"ReduceSum", sn__onnx_reduce},
    {"ReduceMax", sn__onnx_reduce},
    {"ReduceMin", sn__onnx_reduce},
    {"ReduceL2", sn__onnx_reduce},
    {"Gemm", gemm},
    {"MatMul", matmul},
    {"Einsum", sn__onnx_einsum},
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
    {"Exp", activation},
    {"Sin", activation},
    {"Cos", activation},
    {"Dropout", dropout},
    {"Softmax", softmax},
    {"LogSoftmax", softmax},
    {"Add", sn__onnx_add_two},
    {"Sum", sn__onnx_add_all},
    {"Mul", sn__onnx_multiply},
    {"Div", sn__onnx_divide},
    {"Sub", sn__onnx_subtract},
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
    {"GatherND", sn__onnx_gather_nd},
    {"Pad", sn__onnx_pad},
    {"DepthToSpace", sn__onnx_move_depth},
    {"SpaceToDepth", sn__onnx_move_depth},
    {"Resize", sn__onnx_resize},
    {"Upsample", sn__onnx_resize},
    {"Constant", sn__onnx_constant_rule},
    {"If", sn__onnx_branch},
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
