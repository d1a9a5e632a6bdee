/* Operators: looking them up, and what is the same for all of them; see the header. */
#include "models/op/op.h"

#include "base/checked.h"
#include "models/op/family.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

const sn_op_def *const sn_op_table[SN_OP_COUNT] = {
#define DEFINITION(name) [SN_##name] = &sn__op_##name,
    SN_OPS(DEFINITION)
#undef DEFINITION
};

sn_op sn_op_by_name(const char *name) {
  int op = 0;
  while (op < SN_OP_COUNT && strcasecmp(name, sn_op_table[op]->name) != 0) op++;
  return (sn_op)op;
}

const char *const *sn_side_names(void) {
  static const char *const axes[SN_SIDES + 1] = {"channels", "height", "width"};
  return axes;
}

bool sn_is_given(const sn_described *d, const char *key) {
  for (int i = 0; i < SN_MOST_KEYS && d->op->keys[i].name; i++)
    if (strcmp(d->op->keys[i].name, key) == 0) return d->given >> i & 1;
  return false;
}

void sn_say_wrong(const sn_described *d, const char *format, ...) {
  char text[sizeof((sn_err *)0)->text];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  d->wrong(d->whom, text);
}

/* ---- what families share ---- */

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

uint64_t sn__out_bytes(const sn_layer *layer) {
  return (uint64_t)layer->out.n * layer->out.c * layer->out.h * layer->out.w * sizeof(float);
}

sn_status sn__check_range(const char *what, uint32_t value, uint32_t low, sn_err *err) {
  if (value >= low && value <= SN_MAX_DIM) return SN_OK;
  return sn_fail(err, SN_BAD_INPUT, "%s %" PRIu32 " is not from %" PRIu32 " to %u", what, value, low, SN_MAX_DIM);
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

sn_status sn__measure_channels(sn_layer *layer, sn_shape input, sn_err *err) {
  (void)input, (void)err;
  layer->parameters = layer->out.c;
  return SN_OK;
}

sn_traffic sn__traffic_once(const sn_layer *layer, double x, double y, double weight) {
  (void)layer, (void)weight;
  return (sn_traffic){.bytes = {x + y, x + y}, .launches = {1, 1}};
}

sn_traffic sn__traffic_twice(const sn_layer *layer, double x, double y, double weight) {
  (void)layer, (void)weight;
  return (sn_traffic){.bytes = {x + y, 2 * (x + y)}, .launches = {1, 1}};
}

sn_traffic sn__traffic_of_norm(const sn_layer *layer, double x, double y, double weight) {
  (void)layer, (void)weight;
  return (sn_traffic){.bytes = {x + y, 5 * x}, .launches = {1, 2}};
}

/* ---- planes ---- */

/* What an operator that takes volumes does along one axis only. */
static bool sees_rows_of_volume(sn_op op, const sn_attr *a) {
  return (op == SN_SLICE || op == SN_PROBABILITIES) && a->axis == SN_SIDE_HEIGHT;
}

static bool is_pixel(sn_shape shape) {
  return shape.h == 1 && shape.w == 1;
}

sn_status sn_op_take_planes(sn_op op, sn_attr *attr, const sn_shape *inputs, const uint32_t *planes, uint32_t n_inputs,
                            sn_err *err) {
  const sn_op_def *def = sn_op_table[op];
  attr->planes = n_inputs > 0 ? planes[0] : 0;
  for (uint32_t i = 0; i < n_inputs; i++) {
    if (planes[i] > 1 && (!def->volumes || sees_rows_of_volume(op, attr)))
      return sn_fail(err, SN_BAD_INPUT,
                     "%s%s takes images, but its input is a volume of %" PRIu32
                     " planes; a RESHAPE before it makes an image of one",
                     def->name, def->volumes ? " along the height" : "", planes[i]);
    bool same = sn_or_one(planes[i]) == sn_or_one(planes[0]);
    if (!same && !(op == SN_MUL && planes[i] <= 1 && is_pixel(inputs[i])))
      return sn_fail(err, SN_BAD_INPUT,
                     "%s takes volumes of one depth: input 1 has %" PRIu32 " planes, input %" PRIu32 " has %" PRIu32,
                     def->name, sn_or_one(planes[0]), i + 1, sn_or_one(planes[i]));
  }
  return SN_OK;
}

uint32_t sn_op_planes(sn_op op, const sn_attr *attr) {
  const sn_op_def *def = sn_op_table[op];
  return def->planes ? def->planes(attr) : attr->planes;
}

/* ---- shapes and counts ---- */

static sn_status check_input_count(const sn_op_def *def, uint32_t count, sn_err *err) {
  const bool many = def->many_inputs;
  uint32_t least = many && !def->one_will_do ? 2 : 1;
  if (many ? count >= least : count == 1) return SN_OK;
  const char *wanted = !many ? "one input" : least == 2 ? "two or more inputs" : "one or more inputs";
  return sn_fail(err, SN_BAD_INPUT, "%s takes %s, not %" PRIu32, def->name, wanted, count);
}

sn_status sn_op_shape(sn_op op, const sn_attr *attr, const sn_shape *inputs, uint32_t n_inputs, sn_shape *out,
                      sn_err *err) {
  const sn_op_def *def = sn_op_table[op];
  if (check_input_count(def, n_inputs, err)) return err->code;
  if (def->shape) return def->shape(attr, inputs, n_inputs, out, err);
  *out = inputs[0];
  return SN_OK;
}

sn_status sn_op_measure(sn_layer *layer, sn_shape input, sn_err *err) {
  uint64_t bytes = 0;
  layer->parameters = layer->macs = layer->mask_bytes = layer->statistics_bytes = 0;
  if (sn_shape_bytes(layer->out, &bytes, err)) return err->code; /* so that plain products of `out` cannot overflow */
  const sn_op_def *def = sn_op_of(layer);
  return def->measure ? def->measure(layer, input, err) : SN_OK;
}
