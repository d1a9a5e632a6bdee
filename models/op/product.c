/* Products of matrices: by weights, by weights that the data choose, and of two values. */
#include "models/op/family.h"

#include <inttypes.h>
#include <stdio.h>

/* Of x and weights; a bias is added and reduced by kernels of its own. */
static sn_traffic traffic_of_weights(const sn_layer *layer, double x, double y, double weight) {
  double weights = weight * (double)layer->parameters, flops = 2 * (double)layer->macs;
  return (sn_traffic){
      .bytes = {x + y + weights, 2 * (x + y + weights)}, .flops = {flops, 2 * flops}, .launches = {2, 3}};
}

/* ---- FC ---- */

static sn_status fc_shape(const sn_attr *a, const sn_shape *inputs, uint32_t count, sn_shape *out, sn_err *err) {
  (void)count;
  const sn_shape in = inputs[0];
  *out = (sn_shape){in.n, a->channels, a->positions ? in.h : 1, a->positions ? in.w : 1};
  if (a->turned && a->channels != in.c)
    return sn_fail(err, SN_BAD_INPUT,
                   "\"turned\" is an FC with as many channels as its input, %" PRIu32 ", not %" PRIu32, in.c,
                   a->channels);
  return sn__check_range("channels", a->channels, 1, err);
}

static uint32_t fc_planes(const sn_attr *a) {
  return a->positions ? a->planes : 0;
}

static sn_status fc_measure(sn_layer *layer, sn_shape in, sn_err *err) {
  bool each = layer->attr->positions;
  const uint64_t weights[] = {layer->attr->channels, in.c, each ? 1 : in.h, each ? 1 : in.w};
  return sn__set_weights(layer, weights, 4, (uint64_t)layer->out.n * layer->out.h * layer->out.w, err);
}

static void fc_sides(const sn_layer *layer, uint64_t elements, uint64_t sides[2]) {
  sides[0] = layer->out.c;
  sides[1] = elements / layer->out.c;
}

static void fc_describe(const sn_attr *a, char *text, size_t room) {
  snprintf(text, room, "%s%s", a->positions ? " positions" : "", a->bias ? " bias" : "");
}

const sn_op_def sn__op_FC = {
    .name = "FC",
    .called = (const char *const[]){"linear", "dense", "gemm", "inner", NULL},
    .checkpoint = true,
    .ends_offload = true,
    .weighs = true,
    .volumes = true,
    .autocast = SN_AUTOCAST_NARROW,
    .keys = {{"channels", SN_KEY_SIZE, SN_AT(channels), .least = 1, .required = true, .always = true},
             {"bias", SN_KEY_FLAG, SN_AT(bias), .always = true, .usual = 1},
             {"positions", SN_KEY_FLAG, SN_AT(positions)},
             {"router", SN_KEY_FLAG, SN_AT(router)},
             {"turned", SN_KEY_FLAG, SN_AT(turned)},
             {"apart", SN_KEY_FLAG, SN_AT(apart)},
             SN_WEIGHTS_OF},
    .shape = fc_shape,
    .planes = fc_planes,
    .measure = fc_measure,
    .sides = fc_sides,
    .traffic = traffic_of_weights,
    .describe = fc_describe};

/* ---- EXPERTS: each has positions, so that all weights are read ---- */

static sn_status experts_shape(const sn_attr *a, const sn_shape *inputs, uint32_t count, sn_shape *out, sn_err *err) {
  (void)count;
  const sn_shape in = inputs[0];
  if (sn__check_range("channels", a->channels, 1, err) || sn__check_range("experts", a->experts, 1, err) ||
      sn__check_range("chosen", a->chosen, 1, err))
    return err->code;
  if (a->chosen > a->experts)
    return sn_fail(err, SN_BAD_INPUT, "chosen %" PRIu32 " is more than experts %" PRIu32, a->chosen, a->experts);
  if (in.c % a->chosen != 0)
    return sn_fail(err, SN_BAD_INPUT,
                   "%" PRIu32 " channels are not a part for each of %" PRIu32
                   " chosen experts; give it a CONCAT of the "
                   "same input, as often as experts are chosen",
                   in.c, a->chosen);
  const uint64_t channels = (uint64_t)a->channels * a->chosen;
  if (channels > SN_MAX_DIM) return sn__fail_too_large("it makes channels", err);
  *out = (sn_shape){in.n, (uint32_t)channels, in.h, in.w};
  return SN_OK;
}

/* A position's parts go through a set of weights each. */
static sn_status experts_measure(sn_layer *layer, sn_shape in, sn_err *err) {
  const sn_attr *a = layer->attr;
  const uint64_t part = in.c / a->chosen, weights[] = {a->experts, part, a->channels};
  const uint64_t work[] = {layer->out.n, layer->out.h, layer->out.w, a->chosen, part, a->channels};
  if (!sn__product_within(weights, 3, SN_MAX_NET_BYTES / sizeof(float), &layer->parameters))
    return sn__fail_too_large("it has parameters", err);
  if (!sn__product_within(work, 6, SN_MAX_NET_MACS, &layer->macs))
    return sn__fail_too_large("it has multiply-adds", err);
  return SN_OK;
}

static void experts_sides(const sn_layer *layer, uint64_t elements, uint64_t sides[2]) {
  const sn_attr *a = layer->attr;
  sides[0] = a->channels;
  sides[1] = elements / a->channels / a->experts;
}

static uint64_t experts_first_side(const sn_layer *layer, uint64_t elements) {
  (void)elements;
  return layer->attr->experts;
}

static const char *experts_simulated_only(const sn_attr *a) {
  (void)a;
  return "whose weights the data choose";
}

/* torch.nn.functional.grouped_mm has no autocast: as wide as the weights. */
const sn_op_def sn__op_EXPERTS = {
    .name = "EXPERTS",
    .called = (const char *const[]){"moe", "mixture", NULL},
    .weighs = true,
    .autocast = SN_AUTOCAST_WIDE,
    .simulated_only = experts_simulated_only,
    .keys = {{"channels", SN_KEY_SIZE, SN_AT(channels), .least = 1, .required = true, .always = true},
             {"experts", SN_KEY_SIZE, SN_AT(experts), .least = 1, .required = true, .always = true},
             {"chosen", SN_KEY_SIZE, SN_AT(chosen), .least = 1, .required = true, .always = true},
             SN_WEIGHTS_OF},
    .shape = experts_shape,
    .measure = experts_measure,
    .sides = experts_sides,
    .first_side = experts_first_side,
    .traffic = traffic_of_weights};

/* ---- MATMUL ---- */

typedef struct matrix {
  uint32_t rows, columns;
} matrix;

static matrix matrix_of(sn_shape shape, bool turned) {
  return turned ? (matrix){shape.w, shape.h} : (matrix){shape.h, shape.w};
}

static sn_status matmul_shape(const sn_attr *a, const sn_shape *inputs, uint32_t count, sn_shape *out, sn_err *err) {
  if (count != 2) return sn_fail(err, SN_BAD_INPUT, "MATMUL takes two inputs, not %" PRIu32, count);
  matrix first = matrix_of(inputs[0], a->turn_first), second = matrix_of(inputs[1], a->turn_second);
  *out = (sn_shape){inputs[0].n, inputs[0].c, first.rows, second.columns};
  if (inputs[0].n == inputs[1].n && inputs[0].c == inputs[1].c && first.columns == second.rows) return SN_OK;
  return sn_fail(err, SN_BAD_INPUT,
                 "MATMUL multiplies %" PRIu32 " matrices of %" PRIu32 "x%" PRIu32 " by %" PRIu32 " of %" PRIu32
                 "x%" PRIu32 ": it needs as many, and as many columns as rows",
                 inputs[0].c, first.rows, first.columns, inputs[1].c, second.rows, second.columns);
}

static sn_status matmul_measure(sn_layer *layer, sn_shape first, sn_err *err) {
  sn_shape out = layer->out;
  const uint64_t work[] = {out.n, out.c, out.h, out.w, matrix_of(first, layer->attr->turn_first).columns};
  if (sn__product_within(work, 5, SN_MAX_NET_MACS, &layer->macs)) return SN_OK;
  return sn__fail_too_large("it has multiply-adds", err);
}

/* Backward makes either factor's gradient by a product. */
static sn_traffic matmul_traffic(const sn_layer *layer, double x, double y, double weight) {
  (void)weight;
  const sn_shape out = layer->out;
  const double elements = (double)out.n * out.c * out.h * out.w;
  double flops = 2 * (double)layer->macs, second = y / elements * (double)layer->macs / out.h;
  double all = x + second + y;
  return (sn_traffic){.bytes = {all, 2 * all}, .flops = {flops, 2 * flops}, .launches = {1, 2}};
}

const sn_op_def sn__op_MATMUL = {.name = "MATMUL",
                                 .called = (const char *const[]){"bmm", NULL},
                                 .checkpoint = true,
                                 .many_inputs = true,
                                 .autocast = SN_AUTOCAST_NARROW,
                                 .keys = {{"turn_first", SN_KEY_FLAG, SN_AT(turn_first), .always = true},
                                          {"turn_second", SN_KEY_FLAG, SN_AT(turn_second), .always = true}},
                                 .shape = matmul_shape,
                                 .measure = matmul_measure,
                                 .traffic = matmul_traffic};
