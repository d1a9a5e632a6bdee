/* Random networks for the property tests: 5 to 60 declared layers of every operator, with branches, FORKs (of DATA
 * too), layers that read one output twice, long chains of cheap layers and several SOFTMAX ends. Tensors have at most
 * 64 KiB, so that a plan's memory can be followed block by block.
 *
 *   grow    layer after layer, on the last one, on an open output, or on any output (which makes a FORK)
 *   close   every output that is still open goes through an FC into one CONCAT and SOFTMAX, or ends in a SOFTMAX alone
 *
 * What does not go together (shapes, sizes) is left out and thrown anew, so every net is valid.
 */
#ifndef SN_TESTS_RANDOM_NET_H
#define SN_TESTS_RANDOM_NET_H

#include "models/build/build.h"
#include "models/op/op.h"
#include "tests/support/prng.h"

#include <stdio.h>

enum { RANDOM_NET_ROOM = 256, RANDOM_NET_BYTES = 64 * 1024, RANDOM_NET_BRANCHES = 4 };

typedef struct random_net {
  uint64_t *dice;
  sn_builder *builder;
  uint32_t n;                      /* declared layers, DATA included */
  sn_shape shape[RANDOM_NET_ROOM]; /* of their outputs */
  bool open[RANDOM_NET_ROOM];      /* nobody reads the output yet */
  bool ended[RANDOM_NET_ROOM];     /* a SOFTMAX: nobody may */
  const uint8_t *weights;          /* per operator: how likely */
  bool today;                      /* forms of operators that came with MobileNetV3, ConvNeXt and transformers, too */
} random_net;

/* What a net is made of: mixed, long cheap chains, and branches.
 *                                        DATA CONV FC POOL ACT LRN BN DROPOUT SOFTMAX JOIN FORK CONCAT DECONV */
static const uint8_t random_net_flavours[][SN_OP_COUNT] = {
    {0, 20, 5, 10, 15, 8, 12, 6, 1, 12, 0, 11, 4},
    {0, 8, 2, 14, 26, 12, 22, 14, 0, 1, 0, 1, 1},
    {0, 22, 2, 4, 16, 2, 14, 2, 2, 22, 0, 14, 3},
};
/* And of today's networks. */
static const uint8_t random_net_of_today[SN_OP_COUNT] = {
    [SN_CONV] = 14,    [SN_FC] = 10,        [SN_POOL] = 6,       [SN_ACT] = 14,          [SN_BN] = 6,
    [SN_DROPOUT] = 6,  [SN_JOIN] = 10,      [SN_CONCAT] = 5,     [SN_DECONV] = 3,        [SN_MUL] = 10,
    [SN_SCALE] = 5,    [SN_LAYER_NORM] = 8, [SN_TOKEN] = 3,      [SN_TAKE] = 2,          [SN_RMS_NORM] = 5,
    [SN_POSITION] = 4, [SN_ROTARY] = 5,     [SN_ATTENTION] = 12, [SN_PROBABILITIES] = 5, [SN_GROUP_NORM] = 6,
    [SN_MATMUL] = 6,   [SN_PAD] = 4,        [SN_RESIZE] = 5,
};
enum { RANDOM_NET_FLAVOURS = sizeof random_net_flavours / sizeof random_net_flavours[0] };

/* Declares a layer; SN_NONE, and nothing declared, where it does not go. */
static inline uint32_t random_net_add(random_net *r, sn_op op, const sn_attr *attr, const uint32_t *inputs,
                                      uint32_t n_inputs) {
  sn_err err = SN_ERR_INIT;
  sn_shape shapes[RANDOM_NET_BRANCHES], out;
  uint64_t bytes;
  char name[16];
  for (uint32_t i = 0; i < n_inputs; i++) shapes[i] = r->shape[inputs[i]];
  if (r->n == RANDOM_NET_ROOM || sn_op_shape(op, attr, shapes, n_inputs, &out, &err) != SN_OK ||
      sn_shape_bytes(out, &bytes, &err) != SN_OK || bytes > RANDOM_NET_BYTES)
    return SN_NONE;
  snprintf(name, sizeof name, "l%u", r->n);
  uint32_t layer = sn_build_layer(r->builder, op, attr, inputs, n_inputs, name);
  if (layer == SN_NONE) return SN_NONE;
  for (uint32_t i = 0; i < n_inputs; i++) r->open[inputs[i]] = false;
  r->shape[layer] = out;
  r->ended[layer] = op == SN_SOFTMAX;
  r->open[layer] = op != SN_SOFTMAX;
  r->n = layer + 1;
  return layer;
}

static inline sn_attr random_net_conv(uint64_t *dice, sn_shape in) {
  static const uint32_t kernels[][2] = {{1, 1}, {3, 3}, {3, 3}, {5, 5}, {1, 7}, {7, 1}, {11, 11}, {2, 2}};
  const uint32_t *kernel = kernels[prng_below(dice, 8)];
  uint32_t stride = prng_chance(dice, 70) ? 1 : prng_from(dice, 2, 3);
  bool padded = prng_chance(dice, 80);
  sn_attr a = {.kernel_h = kernel[0], .kernel_w = kernel[1], .stride_h = stride, .stride_w = stride, .groups = 1};
  a.pad_h = padded ? kernel[0] / 2 : 0;
  a.pad_w = padded ? kernel[1] / 2 : 0;
  a.channels = prng_chance(dice, 50) ? in.c : prng_from(dice, 1, 24);
  a.bias = prng_chance(dice, 70);
  if (prng_chance(dice, 25)) a.groups = prng_chance(dice, 50) ? in.c : 2;
  if (in.c % a.groups || a.channels % a.groups) a.channels = a.groups = in.c;
  return a;
}

/* A CONV's windows. */
static inline sn_attr random_net_deconv(uint64_t *dice, sn_shape in) {
  sn_attr a = random_net_conv(dice, in);
  a.output_pad_h = prng_below(dice, a.stride_h);
  a.output_pad_w = prng_below(dice, a.stride_w);
  return a;
}

static inline sn_attr random_net_act(uint64_t *dice) {
  sn_attr a = {.act = prng_chance(dice, 60) ? SN_ACT_RELU : (sn_act_mode)prng_below(dice, SN_ACT_SIGMOID + 1)};
  if (a.act == SN_ACT_LEAKY) a.slope = prng_chance(dice, 50) ? 0.2 : 0.01;
  if (prng_chance(dice, 20)) a.inplace = prng_chance(dice, 50) ? SN_INPLACE_YES : SN_INPLACE_NO;
  return a;
}

static inline sn_attr random_net_attr(uint64_t *dice, sn_op op, sn_shape in) {
  sn_attr a = {0};
  switch (op) {
  case SN_CONV:
    return random_net_conv(dice, in);
  case SN_DECONV:
    return random_net_deconv(dice, in);
  case SN_ACT:
    return random_net_act(dice);
  case SN_FC:
    a.channels = prng_chance(dice, 80) ? prng_from(dice, 1, 100) : prng_from(dice, 100, 4000);
    a.bias = prng_chance(dice, 80);
    break;
  case SN_POOL:
    a.kernel_h = a.kernel_w = prng_from(dice, 1, 3);
    a.stride_h = a.stride_w = prng_chance(dice, 50) ? 1 : 2;
    a.pad_h = a.pad_w = a.kernel_h / 2;
    a.pool = prng_chance(dice, 50) ? SN_POOL_MAX : SN_POOL_AVERAGE;
    a.ceil = prng_chance(dice, 30);
    a.global = prng_chance(dice, 5);
    break;
  case SN_LRN:
    a = (sn_attr){.lrn_size = 1 + 2 * prng_below(dice, 3), .lrn_alpha = 1e-4, .lrn_beta = 0.75, .lrn_k = 2};
    break;
  case SN_DROPOUT:
    a.ratio = 0.5;
    break;
  default:
    break;
  }
  return a;
}

static inline sn_attr random_net_today_attr(uint64_t *dice, sn_op op, sn_shape in) {
  sn_attr a = random_net_attr(dice, op, in);
  bool other = prng_chance(dice, 50);
  uint32_t kv_heads = prng_from(dice, 1, 2), each = prng_from(dice, 1, 2);
  if (op == SN_ACT && other)
    a = (sn_attr){.act = (sn_act_mode)prng_below(dice, SN_ACT_MODES), .slopes = each > 1 ? in.c : 1};
  if (a.act == SN_ACT_TIMES) a.slope = 0.5;
  if (op == SN_FC && other) a.positions = true;
  if (op == SN_DROPOUT && other) a.images = true;
  if (op == SN_POSITION) a.rows = other ? in.h * in.w : 2;
  if ((op == SN_CONV || op == SN_DECONV) && other) a.dilation_h = kv_heads + 1, a.dilation_w = each;
  if (op == SN_POOL && other && a.pool == SN_POOL_MAX && !a.global) a.dilation_h = each, a.dilation_w = kv_heads + 1;
  if (op == SN_PROBABILITIES) a.axis = (sn_side)(other ? SN_SIDE_CHANNELS : each);
  if (op == SN_GROUP_NORM) a.groups = other ? in.c : 1;
  if (op == SN_MATMUL) a.turn_first = !other, a.turn_second = other;
  if (op == SN_PAD) a = (sn_attr){.pad_h = kv_heads, .output_pad_w = each};
  if (op == SN_RESIZE) a = (sn_attr){.bilinear = other, .scale = kv_heads};
  if (op == SN_RESIZE && each > 1) a.shape[SN_SIDE_HEIGHT] = in.w, a.shape[SN_SIDE_WIDTH] = (in.h + 1) / 2;
  if (op == SN_ATTENTION)
    a = (sn_attr){.heads = kv_heads * each, .kv_heads = kv_heads, .causal = other, .ratio = other ? 0.2 : 0};
  if (op == SN_ATTENTION && !other && each > 1) a.parts = true, a.cap = 0.5;
  return a;
}

static inline sn_op random_net_op(random_net *r) {
  uint32_t sum = 0, op = 0;
  for (uint32_t i = 0; i < SN_OP_COUNT; i++) sum += r->weights[i];
  uint32_t throw = prng_below(r->dice, sum);
  while (throw >= r->weights[op]) throw -= r->weights[op++];
  return (sn_op)op;
}

/* An output to go on from: mostly the last. */
static inline uint32_t random_net_input(random_net *r) {
  uint32_t kind = prng_below(r->dice, 100), pick = prng_below(r->dice, r->n);
  if (kind < 70) pick = r->n - 1;
  for (uint32_t i = 0; kind >= 70 && kind < 88 && i < r->n && !r->open[pick]; i++) pick = (pick + 1) % r->n;
  while (r->ended[pick]) pick--;
  return pick;
}

/* Inputs of a JOIN or CONCAT: what has the shape of the first, the first itself among them. */
static inline uint32_t random_net_inputs(random_net *r, bool same_channels, uint32_t *inputs) {
  uint32_t want = prng_from(r->dice, 2, RANDOM_NET_BRANCHES), count = 1;
  inputs[0] = random_net_input(r);
  sn_shape first = r->shape[inputs[0]];
  for (uint32_t throws = 0; throws < 30 && count < want; throws++) {
    uint32_t pick = prng_chance(r->dice, 8) ? inputs[0] : prng_below(r->dice, r->n);
    sn_shape s = r->shape[pick];
    bool open = r->open[pick] || throws >= 15;
    if (open && !r->ended[pick] && s.h == first.h && s.w == first.w && (!same_channels || s.c == first.c))
      inputs[count++] = pick;
  }
  return count;
}

/* Chains of MATMULs reach 1e14, where exp overflows, and oneDNN's derivative of mish: these get a TANH's numbers. */
static inline bool random_net_overflows(sn_act_mode act) {
  return act == SN_ACT_EXP || act == SN_ACT_MISH;
}

static inline void random_net_grow(random_net *r) {
  uint32_t inputs[RANDOM_NET_BRANCHES], count = 1;
  sn_op op = random_net_op(r);
  if (sn_op_table[op]->many_inputs && op != SN_ATTENTION)
    count = random_net_inputs(r, op == SN_JOIN || op == SN_MUL || op == SN_MATMUL, inputs);
  else
    inputs[0] = random_net_input(r);
  if ((op == SN_MUL || op == SN_MATMUL) && count > 2) count = 2;
  sn_attr attr = (r->today ? random_net_today_attr : random_net_attr)(r->dice, op, r->shape[inputs[0]]);
  if (op == SN_ACT && random_net_overflows(attr.act)) {
    inputs[0] = random_net_add(r, SN_ACT, &(sn_attr){.act = SN_ACT_TANH}, inputs, 1);
    if (inputs[0] == SN_NONE) return;
  }
  random_net_add(r, op, &attr, inputs, count);
}

/* A layer's way to the end: an FC, except where it can do without. At most 64 channels, so that all ends together stay
 * within the size of a tensor. */
static inline uint32_t random_net_flatten(random_net *r, uint32_t layer) {
  sn_shape s = r->shape[layer];
  sn_attr fc = {.channels = prng_from(r->dice, 2, 40), .bias = true}, pool = {.global = true};
  bool small = s.c <= 64, pools = small && prng_chance(r->dice, 30);
  if (small && s.h == 1 && s.w == 1 && prng_chance(r->dice, 50)) return layer;
  return random_net_add(r, pools ? SN_POOL : SN_FC, pools ? &pool : &fc, &layer, 1);
}

static inline void random_net_close(random_net *r) {
  uint32_t group[RANDOM_NET_BRANCHES], count = 0, grown = r->n;
  bool together = prng_chance(r->dice, 60);
  for (uint32_t i = 0; i < grown; i++) {
    if (!r->open[i]) continue;
    uint32_t end = random_net_flatten(r, i);
    group[count++] = end;
    if (together && count < RANDOM_NET_BRANCHES) continue;
    if (count > 1) group[0] = random_net_add(r, SN_CONCAT, &(sn_attr){0}, group, count);
    if (together)
      count = 1;
    else
      random_net_add(r, SN_SOFTMAX, &(sn_attr){0}, &group[--count], 1);
  }
  if (count > 1) group[0] = random_net_add(r, SN_CONCAT, &(sn_attr){0}, group, count);
  if (count > 0) random_net_add(r, SN_SOFTMAX, &(sn_attr){0}, group, 1);
}

static inline sn_shape random_net_data(uint64_t *dice) {
  sn_shape s = {.n = prng_from(dice, 1, 4)};
  s.c = prng_from(dice, 1, 12);
  s.h = prng_from(dice, 4, 18);
  s.w = prng_chance(dice, 70) ? s.h : prng_from(dice, 4, 18);
  return s;
}

/* Of operators so likely. */
static inline sn_net *random_net_make(uint64_t *dice, const uint8_t *weights, sn_err *err) {
  random_net r = {.dice = dice, .n = 1, .weights = weights, .today = weights == random_net_of_today};
  uint32_t layers = prng_from(dice, 5, 60);
  sn_shape data = random_net_data(dice);
  r.shape[0] = data;
  r.open[0] = true;
  r.builder = sn_builder_new("random", data.n, data.c, data.h, data.w, err);
  for (uint32_t throws = 0; throws < 4 * layers && r.n < layers; throws++) random_net_grow(&r);
  random_net_close(&r);
  return sn_builder_finish(r.builder, NULL, err);
}

/* NULL with the builder's error; that would be a fault of this file or of the builder. */
static inline sn_net *random_net_new(uint64_t *dice, sn_err *err) {
  return random_net_make(dice, random_net_flavours[prng_below(dice, RANDOM_NET_FLAVOURS)], err);
}

/* The same, of today's networks. */
static inline sn_net *random_net_new_today(uint64_t *dice, sn_err *err) {
  return random_net_make(dice, random_net_of_today, err);
}

#endif
