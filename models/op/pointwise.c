/* Operators on each element by itself: activations and dropout. */
#include "models/op/family.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* ---- ACT ---- */

const char *const *sn_act_names(void) {
  static const char *const modes[SN_ACT_MODES + 1] = {[SN_ACT_RELU] = "relu",
                                                      [SN_ACT_RELU6] = "relu6",
                                                      [SN_ACT_LEAKY] = "leaky",
                                                      [SN_ACT_TANH] = "tanh",
                                                      [SN_ACT_SIGMOID] = "sigmoid",
                                                      [SN_ACT_ELU] = "elu",
                                                      [SN_ACT_GELU] = "gelu",
                                                      [SN_ACT_SILU] = "silu",
                                                      [SN_ACT_HARDSWISH] = "hardswish",
                                                      [SN_ACT_HARDSIGMOID] = "hardsigmoid",
                                                      [SN_ACT_SOFTPLUS] = "softplus",
                                                      [SN_ACT_MISH] = "mish",
                                                      [SN_ACT_GELU_NEW] = "gelu_new",
                                                      [SN_ACT_TIMES] = "times",
                                                      [SN_ACT_EXP] = "exp",
                                                      [SN_ACT_SIN] = "sin",
                                                      [SN_ACT_COS] = "cos",
                                                      [SN_ACT_PRELU] = "prelu"};
  return modes;
}

static bool act_has(const sn_attr *a, const sn_key *key) {
  if (key->at == offsetof(sn_attr, slope)) return a->act == SN_ACT_LEAKY || a->act == SN_ACT_TIMES;
  return key->at != offsetof(sn_attr, slopes) || a->act == SN_ACT_PRELU;
}

static void act_settle(sn_attr *a, const sn_described *d) {
  const bool sloped = a->act == SN_ACT_LEAKY || a->act == SN_ACT_TIMES, slope = sn_is_given(d, "slope");
  const char *mode = sn_act_names()[a->act];
  if (!slope) a->slope = a->act == SN_ACT_LEAKY ? 0.01 : a->act == SN_ACT_TIMES ? 1 : 0;
  if (a->act == SN_ACT_PRELU && a->slopes == 0) a->slopes = 1;
  if (!d->good) return;
  if (!sloped && slope)
    sn_say_wrong(d, "an ACT of mode \"%s\" has no \"slope\"; \"leaky\" and \"times\" have", mode);
  else if (a->act != SN_ACT_PRELU && sn_is_given(d, "slopes"))
    sn_say_wrong(d, "an ACT of mode \"%s\" has no \"slopes\"; \"prelu\" has", mode);
}

static sn_status act_shape(const sn_attr *a, const sn_shape *inputs, uint32_t count, sn_shape *out, sn_err *err) {
  (void)count;
  *out = inputs[0];
  if (a->act == SN_ACT_PRELU && a->slopes != 1 && a->slopes != out->c)
    return sn_fail(err, SN_BAD_INPUT, "slopes %" PRIu32 " is neither 1 nor the number of its channels, %" PRIu32,
                   a->slopes, out->c);
  if (a->act == SN_ACT_TIMES && !isfinite(a->slope))
    return sn_fail(err, SN_BAD_INPUT, "slope %g is no number", a->slope);
  if (a->act != SN_ACT_LEAKY || (isfinite(a->slope) && a->slope >= 0)) return SN_OK;
  return sn_fail(err, SN_BAD_INPUT, "slope %g is not 0 or more: backward takes the sign of x from the output",
                 a->slope);
}

static sn_status act_measure(sn_layer *layer, sn_shape input, sn_err *err) {
  (void)input, (void)err;
  layer->parameters = sn_layer_is_prelu(layer) ? layer->attr->slopes : 0;
  return SN_OK;
}

static sn_traffic act_traffic(const sn_layer *layer, double x, double y, double weight) {
  return sn_layer_is_prelu(layer) ? sn__traffic_of_norm(layer, x, y, weight) : sn__traffic_twice(layer, x, y, weight);
}

static void act_describe(const sn_attr *a, char *text, size_t room) {
  if (a->act != SN_ACT_RELU) snprintf(text, room, " %s%s", sn_act_names()[a->act], a->slopes > 1 ? " channels" : "");
}

const sn_op_def sn__op_ACT = {.name = "ACT",
                              .called = (const char *const[]){"relu", "activation", "leaky", "tanh", "sigmoid", "gelu",
                                                              "silu", "hard", "elu", NULL},
                              .volumes = true,
                              .keys = {{"mode", SN_KEY_WORD, SN_AT(act), .words = sn_act_names, .always = true},
                                       {"slope", SN_KEY_NUMBER, SN_AT(slope), .always = true},
                                       {"slopes", SN_KEY_SIZE, SN_AT(slopes), .least = 1, .always = true},
                                       {"inplace", SN_KEY_CHOICE, SN_AT(inplace)},
                                       SN_WEIGHTS_OF},
                              .settle = act_settle,
                              .has = act_has,
                              .shape = act_shape,
                              .measure = act_measure,
                              .traffic = act_traffic,
                              .describe = act_describe};

/* ---- DROPOUT ---- */

static sn_status dropout_shape(const sn_attr *a, const sn_shape *inputs, uint32_t count, sn_shape *out, sn_err *err) {
  (void)count;
  *out = inputs[0];
  if (a->ratio >= 0 && a->ratio < 1) return SN_OK;
  return sn_fail(err, SN_BAD_INPUT, "ratio %g is not from 0 to below 1", a->ratio);
}

static sn_status dropout_measure(sn_layer *layer, sn_shape input, sn_err *err) {
  (void)input, (void)err;
  layer->mask_bytes = layer->attr->images ? layer->out.n * sizeof(float) : sn__out_bytes(layer) / sizeof(float);
  return SN_OK;
}

static sn_traffic dropout_traffic(const sn_layer *layer, double x, double y, double weight) {
  (void)weight;
  const double bytes = x + y + (double)layer->mask_bytes;
  return (sn_traffic){.bytes = {bytes, bytes}, .launches = {1, 1}};
}

const sn_op_def sn__op_DROPOUT = {.name = "DROPOUT",
                                  .volumes = true,
                                  .keys = {{"ratio", SN_KEY_NUMBER, SN_AT(ratio), .usual = 0.5, .always = true},
                                           {"images", SN_KEY_FLAG, SN_AT(images)},
                                           {"inplace", SN_KEY_CHOICE, SN_AT(inplace)}},
                                  .shape = dropout_shape,
                                  .measure = dropout_measure,
                                  .traffic = dropout_traffic};
