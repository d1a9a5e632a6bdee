/* Norms, and a factor a channel. */
#include "models/op/family.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* ---- LRN ---- */

static sn_status lrn_shape(const sn_attr *a, const sn_shape *inputs, uint32_t count, sn_shape *out, sn_err *err) {
  (void)count;
  *out = inputs[0];
  if (sn__check_range("size", a->lrn_size, 1, err)) return err->code;
  if (a->lrn_size % 2 == 0)
    return sn_fail(err, SN_BAD_INPUT, "size %" PRIu32 " is even; a window around a channel is odd", a->lrn_size);
  if (!(isfinite(a->lrn_alpha) && a->lrn_alpha >= 0 && isfinite(a->lrn_beta) && a->lrn_beta > 0 && isfinite(a->lrn_k) &&
        a->lrn_k > 0))
    return sn_fail(err, SN_BAD_INPUT, "alpha %g, beta %g, k %g: alpha must be 0 or more, beta and k above 0",
                   a->lrn_alpha, a->lrn_beta, a->lrn_k);
  return SN_OK;
}

static void lrn_describe(const sn_attr *a, char *text, size_t room) {
  snprintf(text, room, " size %u", a->lrn_size);
}

const sn_op_def sn__op_LRN = {.name = "LRN",
                              .volumes = true,
                              .autocast = SN_AUTOCAST_PROMOTES_WIDE,
                              .keys = {{"size", SN_KEY_SIZE, SN_AT(lrn_size), .least = 1, .always = true, .usual = 5},
                                       {"alpha", SN_KEY_NUMBER, SN_AT(lrn_alpha), .always = true, .usual = 1e-4},
                                       {"beta", SN_KEY_NUMBER, SN_AT(lrn_beta), .always = true, .usual = 0.75},
                                       {"k", SN_KEY_NUMBER, SN_AT(lrn_k), .always = true, .usual = 2}},
                              .shape = lrn_shape,
                              .traffic = sn__traffic_twice,
                              .describe = lrn_describe};

/* ---- BN ---- */

static sn_status bn_measure(sn_layer *layer, sn_shape input, sn_err *err) {
  (void)input, (void)err;
  layer->parameters = UINT64_C(2) * layer->out.c;
  layer->statistics_bytes = UINT64_C(4) * layer->out.c * sizeof(float);
  return SN_OK;
}

/* Statistics first, then the normalisation: x is read twice, in backward x and dy are. */
static sn_traffic bn_traffic(const sn_layer *layer, double x, double y, double weight) {
  (void)layer, (void)weight;
  return (sn_traffic){.bytes = {2 * x + y, 3 * x + 2 * y}, .launches = {1, 1}};
}

const sn_op_def sn__op_BN = {.name = "BN",
                             .called = (const char *const[]){"batch", NULL},
                             .shifts = true,
                             .volumes = true,
                             .keys = {SN_WEIGHTS_OF},
                             .measure = bn_measure,
                             .traffic = bn_traffic};

/* ---- SCALE ---- */

/* (channels, 1, 1) */
static void scale_sides(const sn_layer *layer, uint64_t elements, uint64_t sides[2]) {
  (void)layer, (void)elements;
  sides[0] = sides[1] = 1;
}

static uint64_t scale_first_side(const sn_layer *layer, uint64_t elements) {
  (void)layer;
  return elements;
}

static sn_traffic scale_traffic(const sn_layer *layer, double x, double y, double weight) {
  (void)layer, (void)weight;
  return (sn_traffic){.bytes = {x + y, 4 * x}, .launches = {1, 2}};
}

const sn_op_def sn__op_SCALE = {.name = "SCALE",
                                .volumes = true,
                                .autocast = SN_AUTOCAST_PROMOTES_WIDE,
                                .keys = {SN_WEIGHTS_OF},
                                .measure = sn__measure_channels,
                                .sides = scale_sides,
                                .first_side = scale_first_side,
                                .traffic = scale_traffic};

/* ---- LAYER_NORM, RMS_NORM, GROUP_NORM: a row is read once; backward reads x and dy for dx, and again for the
 * parameters ---- */

static sn_status layer_norm_measure(sn_layer *layer, sn_shape input, sn_err *err) {
  (void)input, (void)err;
  layer->parameters = UINT64_C(2) * layer->out.c;
  layer->statistics_bytes = sn__out_bytes(layer) / layer->out.c * 2;
  return SN_OK;
}

const sn_op_def sn__op_LAYER_NORM = {.name = "LAYER_NORM",
                                     .called = (const char *const[]){"layernorm", NULL},
                                     .shifts = true,
                                     .volumes = true,
                                     .autocast = SN_AUTOCAST_WIDE,
                                     .keys = {SN_WEIGHTS_OF},
                                     .measure = layer_norm_measure,
                                     .traffic = sn__traffic_of_norm};

static sn_status rms_norm_measure(sn_layer *layer, sn_shape input, sn_err *err) {
  (void)input, (void)err;
  layer->parameters = layer->out.c;
  layer->statistics_bytes = sn__out_bytes(layer) / layer->out.c;
  return SN_OK;
}

const sn_op_def sn__op_RMS_NORM = {
    .name = "RMS_NORM",
    .called = (const char *const[]){"rmsnorm", NULL},
    .volumes = true,
    .autocast = SN_AUTOCAST_WIDE,
    .keys = {{"fused", SN_KEY_FLAG, SN_AT(fused)}, {"plus_one", SN_KEY_FLAG, SN_AT(plus_one)}, SN_WEIGHTS_OF},
    .measure = rms_norm_measure,
    .traffic = sn__traffic_of_norm};

static sn_status group_norm_shape(const sn_attr *a, const sn_shape *inputs, uint32_t count, sn_shape *out,
                                  sn_err *err) {
  (void)count;
  const sn_shape in = inputs[0];
  *out = in;
  if (sn__check_range("groups", a->groups, 1, err)) return err->code;
  if (in.c % a->groups == 0) return SN_OK;
  return sn_fail(err, SN_BAD_INPUT, "groups %" PRIu32 " does not divide its %" PRIu32 " channels", a->groups, in.c);
}

static sn_status group_norm_measure(sn_layer *layer, sn_shape input, sn_err *err) {
  (void)input, (void)err;
  layer->parameters = UINT64_C(2) * layer->out.c;
  layer->statistics_bytes = UINT64_C(2) * layer->out.n * layer->attr->groups * sizeof(float);
  return SN_OK;
}

static void group_norm_describe(const sn_attr *a, char *text, size_t room) {
  snprintf(text, room, " g%u", a->groups);
}

const sn_op_def sn__op_GROUP_NORM = {
    .name = "GROUP_NORM",
    .called = (const char *const[]){"groupnorm", NULL},
    .shifts = true,
    .volumes = true,
    .autocast = SN_AUTOCAST_WIDE,
    .keys = {{"groups", SN_KEY_SIZE, SN_AT(groups), .least = 1, .required = true, .always = true}, SN_WEIGHTS_OF},
    .shape = group_norm_shape,
    .measure = group_norm_measure,
    .traffic = sn__traffic_of_norm,
    .describe = group_norm_describe};
