/* Operator table, shape rules and parameter counts: what every operator is, in one row and one short function each.
 *
 * The rows are the table of the reference, section 1 ([SN] is Wang et al., PPoPP 2018). Operators with windows are in
 * models/op/op_window.c, others in op_sequence.c and op_arrange.c. All functions take constant time per input.
 * Left out: time (sim/ has the cost model) and workspace (a property of algorithm and device). */
#include "models/op/op.h"

#include "base/checked.h"
#include "models/op/op_internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { PLACES = 40 }; /* room for "16777216x16777216x16777216" */

/* name, then yes or no: checkpoint, many inputs, offloaded in the paper, offloaded with offload=checkpoints, ends
 * offloads, convolves, shifts, volumes. */
#define OP_ROWS(ROW)                                                                                                   \
  ROW(DATA, 1, 0, 0, 0, 0, 0, 0, 1)                                                                                    \
  ROW(CONV, 1, 0, 1, 0, 1, 1, 0, 1)                                                                                    \
  ROW(FC, 1, 0, 0, 0, 1, 0, 0, 1)                                                                                      \
  ROW(POOL, 0, 0, 0, 0, 0, 0, 0, 1)                                                                                    \
  ROW(ACT, 0, 0, 0, 0, 0, 0, 0, 1)                                                                                     \
  ROW(LRN, 0, 0, 0, 0, 0, 0, 0, 1)                                                                                     \
  ROW(BN, 0, 0, 0, 0, 0, 0, 1, 1)                                                                                      \
  ROW(DROPOUT, 0, 0, 0, 0, 0, 0, 0, 1)                                                                                 \
  ROW(SOFTMAX, 1, 0, 0, 0, 0, 0, 0, 1)                                                                                 \
  ROW(JOIN, 1, 1, 0, 1, 0, 0, 0, 1)                                                                                    \
  ROW(FORK, 1, 0, 0, 1, 0, 0, 0, 1)                                                                                    \
  ROW(CONCAT, 1, 1, 0, 1, 0, 0, 0, 1)                                                                                  \
  ROW(DECONV, 1, 0, 1, 0, 1, 1, 0, 1)                                                                                  \
  ROW(MUL, 1, 1, 0, 1, 0, 0, 0, 1)                                                                                     \
  ROW(SCALE, 0, 0, 0, 0, 0, 0, 0, 1)                                                                                   \
  ROW(LAYER_NORM, 0, 0, 0, 0, 0, 0, 1, 1)                                                                              \
  ROW(RMS_NORM, 0, 0, 0, 0, 0, 0, 0, 1)                                                                                \
  ROW(EMBEDDING, 1, 0, 0, 0, 0, 0, 0, 0)                                                                               \
  ROW(POSITION, 0, 0, 0, 0, 0, 0, 0, 0)                                                                                \
  ROW(TOKEN, 0, 0, 0, 0, 0, 0, 0, 0)                                                                                   \
  ROW(TAKE, 0, 0, 0, 0, 0, 0, 0, 0)                                                                                    \
  ROW(ATTENTION, 1, 1, 0, 0, 0, 0, 0, 0)                                                                               \
  ROW(ROTARY, 0, 0, 0, 0, 0, 0, 0, 0)                                                                                  \
  ROW(PROBABILITIES, 0, 0, 0, 0, 0, 0, 0, 1)                                                                           \
  ROW(GROUP_NORM, 0, 0, 0, 0, 0, 0, 1, 1)                                                                              \
  ROW(MATMUL, 1, 1, 0, 0, 0, 0, 0, 0)                                                                                  \
  ROW(RESHAPE, 0, 0, 0, 0, 0, 0, 0, 1)                                                                                 \
  ROW(TRANSPOSE, 0, 0, 0, 0, 0, 0, 0, 0)                                                                               \
  ROW(SLICE, 0, 0, 0, 0, 0, 0, 0, 1)                                                                                   \
  ROW(PAD, 0, 0, 0, 0, 0, 0, 0, 0)                                                                                     \
  ROW(RESIZE, 0, 0, 0, 0, 0, 0, 0, 0)                                                                                  \
  ROW(EXPERTS, 0, 0, 0, 0, 0, 0, 0, 0)

const sn_op_info sn_op_table[SN_OP_COUNT] = {
#define INFO_ROW(name, checkpoint, many, paper, joints, ends, convolves, shifts, volumes)                              \
  [SN_##name] = {#name, checkpoint, many, paper, joints, ends, convolves, shifts, volumes},
    OP_ROWS(INFO_ROW)
#undef INFO_ROW
};

static const char *const names[SN_OP_COUNT] = {
#define NAME_ROW(name, checkpoint, many, paper, joints, ends, convolves, shifts, volumes) [SN_##name] = #name,
    OP_ROWS(NAME_ROW)
#undef NAME_ROW
};

const char *const *sn_op_names(void) {
  return names;
}

const char *const *sn_act_names(void) {
  static const char *const modes[SN_ACT_MODES] = {
      [SN_ACT_RELU] = "relu",           [SN_ACT_RELU6] = "relu6",
      [SN_ACT_LEAKY] = "leaky",         [SN_ACT_TANH] = "tanh",
      [SN_ACT_SIGMOID] = "sigmoid",     [SN_ACT_ELU] = "elu",
      [SN_ACT_GELU] = "gelu",           [SN_ACT_SILU] = "silu",
      [SN_ACT_HARDSWISH] = "hardswish", [SN_ACT_HARDSIGMOID] = "hardsigmoid",
      [SN_ACT_SOFTPLUS] = "softplus",   [SN_ACT_MISH] = "mish",
      [SN_ACT_GELU_NEW] = "gelu_new",   [SN_ACT_TIMES] = "times",
      [SN_ACT_PRELU] = "prelu"};
  return modes;
}

const char *const *sn_loss_names(void) {
  static const char *const loss_names[] = {[SN_LOSS_CROSS_ENTROPY] = "cross_entropy",
                                           [SN_LOSS_MSE] = "mse",
                                           [SN_LOSS_CROSS_ENTROPY_FP32] = "cross_entropy_fp32",
                                           NULL};
  return loss_names;
}

const char *const *sn_side_names(void) {
  static const char *const axes[SN_SIDES] = {"channels", "height", "width"};
  return axes;
}

sn_op sn_op_by_name(const char *name) {
  int op = 0;
  while (op < SN_OP_COUNT && strcasecmp(name, names[op]) != 0) op++;
  return (sn_op)op;
}

bool sn__product_within(const uint64_t *factors, size_t count, uint64_t limit, uint64_t *product) {
  *product = 1;
  for (size_t i = 0; i < count; i++)
    if (!sn_mul(*product, factors[i], product)) return false;
  return *product <= limit;
}

sn_status sn_shape_bytes(sn_shape shape, uint64_t *bytes, sn_err *err) {
  const uint64_t sides[] = {shape.n, shape.c, shape.h, shape.w, sizeof(float)};
  for (int i = 0; i < 4; i++)
    if (sides[i] < 1 || sides[i] > SN_MAX_DIM)
      return sn_fail(err, SN_BAD_INPUT,
                     "a tensor of %" PRIu32 "x%" PRIu32 "x%" PRIu32 "x%" PRIu32
                     " (images x channels x height x width) has a side that is not from 1 to %u",
                     shape.n, shape.c, shape.h, shape.w, SN_MAX_DIM);
  if (!sn__product_within(sides, 5, SN_MAX_NET_BYTES, bytes))
    return sn_fail(err, SN_BAD_INPUT,
                   "a tensor of %" PRIu32 "x%" PRIu32 "x%" PRIu32 "x%" PRIu32
                   " (images x channels x height x width) is larger than %" PRIu64 " TiB; make it smaller",
                   shape.n, shape.c, shape.h, shape.w, SN_MAX_NET_BYTES >> 40);
  return SN_OK;
}

sn_status sn__check_range(const char *what, uint32_t value, uint32_t low, sn_err *err) {
  if (value >= low && value <= SN_MAX_DIM) return SN_OK;
  return sn_fail(err, SN_BAD_INPUT, "%s %" PRIu32 " is not from %" PRIu32 " to %u", what, value, low, SN_MAX_DIM);
}

static sn_status fc_shape(const sn_attr *a, sn_shape in, sn_shape *out, sn_err *err) {
  *out = (sn_shape){in.n, a->channels, a->positions ? in.h : 1, a->positions ? in.w : 1};
  return sn__check_range("channels", a->channels, 1, err);
}

static sn_status lrn_shape(const sn_attr *a, sn_shape in, sn_shape *out, sn_err *err) {
  *out = in;
  if (sn__check_range("size", a->lrn_size, 1, err)) return err->code;
  if (a->lrn_size % 2 == 0)
    return sn_fail(err, SN_BAD_INPUT, "size %" PRIu32 " is even; a window around a channel is odd", a->lrn_size);
  if (!(isfinite(a->lrn_alpha) && a->lrn_alpha >= 0 && isfinite(a->lrn_beta) && a->lrn_beta > 0 && isfinite(a->lrn_k) &&
        a->lrn_k > 0))
    return sn_fail(err, SN_BAD_INPUT, "alpha %g, beta %g, k %g: alpha must be 0 or more, beta and k above 0",
                   a->lrn_alpha, a->lrn_beta, a->lrn_k);
  return SN_OK;
}

static sn_status dropout_shape(const sn_attr *a, sn_shape in, sn_shape *out, sn_err *err) {
  *out = in;
  if (a->ratio >= 0 && a->ratio < 1) return SN_OK;
  return sn_fail(err, SN_BAD_INPUT, "ratio %g is not from 0 to below 1", a->ratio);
}

static sn_status act_shape(const sn_attr *a, sn_shape in, sn_shape *out, sn_err *err) {
  *out = in;
  if (a->act == SN_ACT_PRELU && a->slopes != 1 && a->slopes != in.c)
    return sn_fail(err, SN_BAD_INPUT, "slopes %" PRIu32 " is neither 1 nor the number of its channels, %" PRIu32,
                   a->slopes, in.c);
  if (a->act == SN_ACT_TIMES && !isfinite(a->slope))
    return sn_fail(err, SN_BAD_INPUT, "slope %g is no number", a->slope);
  if (a->act != SN_ACT_LEAKY || (isfinite(a->slope) && a->slope >= 0)) return SN_OK;
  return sn_fail(err, SN_BAD_INPUT, "slope %g is not 0 or more: backward takes the sign of x from the output",
                 a->slope);
}

/* "28x28", of a volume "16x28x28". */
static const char *print_places(sn_shape shape, uint32_t planes, char *text, size_t room) {
  if (planes > 1)
    snprintf(text, room, "%" PRIu32 "x%" PRIu32 "x%" PRIu32, planes, shape.h / planes, shape.w);
  else
    snprintf(text, room, "%" PRIu32 "x%" PRIu32, shape.h, shape.w);
  return text;
}

static sn_status softmax_shape(const sn_attr *a, sn_shape in, sn_shape *out, sn_err *err) {
  *out = in;
  if ((in.h == 1 && in.w == 1) || a->positions || a->loss == SN_LOSS_MSE) return SN_OK;
  char places[PLACES];
  return sn_fail(err, SN_BAD_INPUT,
                 "SOFTMAX classifies whole images, but its input is %s pixels; put an FC or a global POOL before it",
                 print_places(in, a->planes, places, sizeof places));
}

/* The first input that differs from input 0 in height, width or, with `channels`, in channels; count where none does */
static uint32_t odd_one(const sn_shape *inputs, uint32_t count, bool channels) {
  uint32_t i = 1;
  while (i < count && inputs[i].n == inputs[0].n && inputs[i].h == inputs[0].h && inputs[i].w == inputs[0].w &&
         (!channels || inputs[i].c == inputs[0].c))
    i++;
  return i;
}

static sn_status fail_unequal(const char *what, const sn_attr *a, const sn_shape *inputs, uint32_t i, sn_err *err) {
  char first[PLACES], odd[PLACES];
  uint32_t planes = inputs[i].h == 1 ? 0 : a->planes; /* a MUL's second input may be an image */
  return sn_fail(err, SN_BAD_INPUT,
                 "%s: input 1 is %" PRIu32 "x%s, input %" PRIu32 " is %" PRIu32 "x%s (channels x %sheight x width)",
                 what, inputs[0].c, print_places(inputs[0], a->planes, first, sizeof first), i + 1, inputs[i].c,
                 print_places(inputs[i], planes, odd, sizeof odd), a->planes > 1 ? "depth x " : "");
}

static sn_status join_shape(const sn_attr *a, const sn_shape *inputs, uint32_t count, sn_shape *out, sn_err *err) {
  *out = inputs[0];
  uint32_t odd = odd_one(inputs, count, true);
  return odd == count ? SN_OK : fail_unequal("JOIN adds tensors of one shape", a, inputs, odd, err);
}

static sn_status concat_shape(const sn_attr *a, const sn_shape *inputs, uint32_t count, sn_shape *out, sn_err *err) {
  *out = inputs[0];
  uint32_t odd = odd_one(inputs, count, false);
  if (odd != count) return fail_unequal("CONCAT needs one height and width", a, inputs, odd, err);
  for (uint32_t i = 1; i < count; i++) {
    if (inputs[i].c > SN_MAX_DIM - out->c)
      return sn_fail(err, SN_BAD_INPUT, "CONCAT has more than %u channels", SN_MAX_DIM);
    out->c += inputs[i].c;
  }
  return SN_OK;
}

static bool broadcasts(uint32_t factor, uint32_t side) {
  return factor == side || factor == 1;
}

static sn_status mul_shape(const sn_attr *a, const sn_shape *inputs, uint32_t count, sn_shape *out, sn_err *err) {
  *out = inputs[0];
  if (count > 2) return sn_fail(err, SN_BAD_INPUT, "MUL takes two inputs, not %" PRIu32, count);
  sn_shape x = inputs[0], factor = inputs[1];
  if (broadcasts(factor.c, x.c) && broadcasts(factor.h, x.h) && broadcasts(factor.w, x.w)) return SN_OK;
  return fail_unequal("MUL multiplies by a tensor of the same shape, or with sides of 1", a, inputs, 1, err);
}

static sn_status check_input_count(sn_op op, uint32_t count, sn_err *err) {
  bool many = sn_op_table[op].many_inputs;
  uint32_t least = many && op != SN_CONCAT && op != SN_ATTENTION ? 2 : 1;
  if (many ? count >= least : count == 1) return SN_OK;
  const char *wanted = !many ? "one input" : least == 2 ? "two or more inputs" : "one or more inputs";
  return sn_fail(err, SN_BAD_INPUT, "%s takes %s, not %" PRIu32, names[op], wanted, count);
}

static uint32_t planes_at_least_one(uint32_t planes) {
  return planes > 1 ? planes : 1;
}

/* What an operator that takes volumes does along one axis only. */
static bool sees_rows_of_volume(sn_op op, const sn_attr *a) {
  return (op == SN_SLICE || op == SN_PROBABILITIES) && a->axis == SN_SIDE_HEIGHT;
}

static bool is_pixel(sn_shape shape) {
  return shape.h == 1 && shape.w == 1;
}

sn_status sn_op_take_planes(sn_op op, sn_attr *attr, const sn_shape *inputs, const uint32_t *planes, uint32_t n_inputs,
                            sn_err *err) {
  attr->planes = n_inputs > 0 ? planes[0] : 0;
  for (uint32_t i = 0; i < n_inputs; i++) {
    if (planes[i] > 1 && (!sn_op_table[op].volumes || sees_rows_of_volume(op, attr)))
      return sn_fail(err, SN_BAD_INPUT,
                     "%s%s takes images, but its input is a volume of %" PRIu32
                     " planes; a RESHAPE before it makes an image of one",
                     names[op], sn_op_table[op].volumes ? " along the height" : "", planes[i]);
    bool same = planes_at_least_one(planes[i]) == planes_at_least_one(planes[0]);
    if (!same && !(op == SN_MUL && planes[i] <= 1 && is_pixel(inputs[i])))
      return sn_fail(err, SN_BAD_INPUT,
                     "%s takes volumes of one depth: input 1 has %" PRIu32 " planes, input %" PRIu32 " has %" PRIu32,
                     names[op], planes_at_least_one(planes[0]), i + 1, planes_at_least_one(planes[i]));
  }
  return SN_OK;
}

uint32_t sn_op_planes(sn_op op, const sn_attr *attr) {
  switch (op) {
  case SN_CONV:
    return sn__conv_planes(attr);
  case SN_DECONV:
    return sn__deconv_planes(attr);
  case SN_POOL:
    return sn__pool_planes(attr);
  case SN_FC:
    return attr->positions ? attr->planes : 0;
  case SN_RESHAPE:
    return 0;
  default:
    return attr->planes;
  }
}

sn_status sn_op_shape(sn_op op, const sn_attr *attr, const sn_shape *inputs, uint32_t n_inputs, sn_shape *out,
                      sn_err *err) {
  if (check_input_count(op, n_inputs, err)) return err->code;
  switch (op) {
  case SN_CONV:
    return sn__conv_shape(attr, inputs[0], out, err);
  case SN_DECONV:
    return sn__deconv_shape(attr, inputs[0], out, err);
  case SN_FC:
    return fc_shape(attr, inputs[0], out, err);
  case SN_EXPERTS:
    return sn__experts_shape(attr, inputs[0], out, err);
  case SN_POOL:
    return sn__pool_shape(attr, inputs[0], out, err);
  case SN_LRN:
    return lrn_shape(attr, inputs[0], out, err);
  case SN_DROPOUT:
    return dropout_shape(attr, inputs[0], out, err);
  case SN_SOFTMAX:
    return softmax_shape(attr, inputs[0], out, err);
  case SN_JOIN:
    return join_shape(attr, inputs, n_inputs, out, err);
  case SN_CONCAT:
    return concat_shape(attr, inputs, n_inputs, out, err);
  case SN_ACT:
    return act_shape(attr, inputs[0], out, err);
  case SN_MUL:
    return mul_shape(attr, inputs, n_inputs, out, err);
  case SN_EMBEDDING:
    return sn__embedding_shape(attr, inputs[0], out, err);
  case SN_POSITION:
    return sn__position_shape(attr, inputs[0], out, err);
  case SN_TOKEN:
    return sn__token_shape(inputs[0], out, err);
  case SN_TAKE:
    *out = (sn_shape){inputs[0].n, inputs[0].c, 1, 1};
    return SN_OK;
  case SN_ATTENTION:
    return sn__attention_shape(attr, inputs, n_inputs, out, err);
  case SN_ROTARY:
    return sn__rotary_shape(attr, inputs[0], out, err);
  case SN_GROUP_NORM:
    return sn__group_norm_shape(attr, inputs[0], out, err);
  case SN_MATMUL:
    return sn__matmul_shape(attr, inputs, n_inputs, out, err);
  case SN_RESHAPE:
    return sn__reshape_shape(attr, inputs[0], out, err);
  case SN_TRANSPOSE:
    return sn__transpose_shape(attr, inputs[0], out, err);
  case SN_SLICE:
    return sn__slice_shape(attr, inputs[0], out, err);
  case SN_PAD:
    return sn__pad_shape(attr, inputs[0], out, err);
  case SN_RESIZE:
    return sn__resize_shape(attr, inputs[0], out, err);
  case SN_PROBABILITIES:
  case SN_SCALE:
  case SN_LAYER_NORM:
  case SN_RMS_NORM:
  case SN_BN:
  case SN_FORK:
    *out = inputs[0];
    return SN_OK;
  case SN_DATA:
  case SN_OP_COUNT:
    break;
  }
  return sn_fail(err, SN_BUG, "operator %d has no shape rule", (int)op);
}

sn_status sn__fail_too_large(const char *what, sn_err *err) {
  return sn_fail(err, SN_BAD_INPUT, "%s beyond what can be counted; make the layer smaller", what);
}

sn_status sn__set_weights(sn_layer *layer, const uint64_t *weights, size_t count, uint64_t positions, sn_err *err) {
  const uint64_t most = SN_MAX_NET_BYTES / sizeof(float);
  if (!sn__product_within(weights, count, most, &layer->parameters))
    return sn__fail_too_large("it has parameters", err);
  const uint64_t work[] = {layer->parameters, positions};
  if (!sn__product_within(work, 2, SN_MAX_NET_MACS, &layer->macs))
    return sn__fail_too_large("it has multiply-adds", err);
  if (layer->attr->bias) layer->parameters += layer->out.c;
  return SN_OK;
}

static sn_status measure_fc(sn_layer *layer, sn_shape in, sn_err *err) {
  bool each = layer->attr->positions;
  const uint64_t weights[] = {layer->attr->channels, in.c, each ? 1 : in.h, each ? 1 : in.w};
  return sn__set_weights(layer, weights, 4, (uint64_t)layer->out.n * layer->out.h * layer->out.w, err);
}

sn_status sn_op_measure(sn_layer *layer, sn_shape input, sn_err *err) {
  uint64_t bytes = 0;
  layer->parameters = layer->macs = layer->mask_bytes = layer->statistics_bytes = 0;
  if (sn_shape_bytes(layer->out, &bytes, err)) return err->code; /* so that plain products of `out` cannot overflow */
  switch (layer->op) {
  case SN_CONV:
    return sn__conv_measure(layer, input, err);
  case SN_DECONV:
    return sn__deconv_measure(layer, input, err);
  case SN_FC:
    return measure_fc(layer, input, err);
  case SN_EXPERTS:
    return sn__experts_measure(layer, input, err);
  case SN_BN:
    layer->parameters = UINT64_C(2) * layer->out.c;
    layer->statistics_bytes = UINT64_C(4) * layer->out.c * sizeof(float);
    return SN_OK;
  case SN_LAYER_NORM:
    layer->parameters = UINT64_C(2) * layer->out.c;
    layer->statistics_bytes = bytes / layer->out.c * 2;
    return SN_OK;
  case SN_GROUP_NORM:
    layer->parameters = UINT64_C(2) * layer->out.c;
    layer->statistics_bytes = UINT64_C(2) * layer->out.n * layer->attr->groups * sizeof(float);
    return SN_OK;
  case SN_MATMUL:
    return sn__matmul_measure(layer, input, err);
  case SN_RMS_NORM:
    layer->statistics_bytes = bytes / layer->out.c;
    layer->parameters = layer->out.c;
    return SN_OK;
  case SN_SCALE:
  case SN_TOKEN:
    layer->parameters = layer->out.c;
    return SN_OK;
  case SN_EMBEDDING:
  case SN_POSITION:
    layer->parameters = (uint64_t)layer->attr->rows * layer->out.c;
    return SN_OK;
  case SN_ATTENTION:
    return sn__attention_measure(layer, err);
  case SN_ACT:
    layer->parameters = sn_layer_is_prelu(layer) ? layer->attr->slopes : 0;
    return SN_OK;
  case SN_DROPOUT:
    layer->mask_bytes = layer->attr->images ? layer->out.n * sizeof(float) : bytes / sizeof(float);
    return SN_OK;
  default:
    return SN_OK;
  }
}
