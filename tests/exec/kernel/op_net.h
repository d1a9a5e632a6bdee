/* Nets of one operator between DATA and an end, for tests of kernels; short hands for attributes. Where the operator
 * takes many inputs, DATA goes through a 1x1 CONV for each of them: for a CONCAT each with one channel more.
 *
 *   sn_net *net = op_net(SN_POOL, pool_attr(SN_POOL_MAX, 3, 2, 1, false), (sn_shape){2, 4, 9, 9}, 1);
 *   uint32_t layer = op_net_layer(net, SN_POOL);
 */
#ifndef SN_TESTS_OP_NET_H
#define SN_TESTS_OP_NET_H

#include "models/build/build.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { OP_NET_INPUTS = 3, OP_NET_BRANCHES = 3 };

static inline sn_net *finish_net(sn_builder *b) {
  sn_err err = SN_ERR_INIT;
  sn_net *net = sn_builder_finish(b, NULL, &err);
  if (!net) fail_msg("%s", err.text);
  return net;
}

static inline sn_builder *begin_net(sn_shape data) {
  sn_err err = SN_ERR_INIT;
  return sn_builder_new("small", data.n, data.c, data.h, data.w, &err);
}

/* Of volumes, each of so many planes; 0: images. */
static inline sn_builder *begin_volumes(sn_shape data, uint32_t planes) {
  sn_err err = SN_ERR_INIT;
  if (planes == 0) return begin_net(data);
  return sn_builder_new_volumes("small", data.n, data.c, planes, data.h, data.w, &err);
}

/* Every end is an FC; a FORK has three. A SOFTMAX is its own end. */
static inline sn_net *volumes_net(sn_op op, sn_attr attr, sn_shape data, uint32_t planes, uint32_t inputs) {
  sn_builder *b = begin_volumes(data, planes);
  uint32_t from[OP_NET_INPUTS] = {SN_DATA_LAYER}, layer = SN_DATA_LAYER;
  for (uint32_t i = 0; i < inputs && inputs > 1; i++) {
    uint32_t channels = op == SN_CONCAT ? data.c + i : data.c;
    from[i] = sn_build_conv(b, SN_DATA_LAYER, (sn_conv){.channels = channels, .kernel = 1}, "in%u", i);
  }
  if (op != SN_FORK) layer = sn_build_layer(b, op, &attr, from, inputs, "op");
  for (uint32_t end = 0; end < (op == SN_FORK ? OP_NET_BRANCHES : 1u) && op != SN_SOFTMAX; end++)
    sn_build_softmax(b, sn_build_fc(b, layer, 2, "fc%u", end), "softmax%u", end);
  return finish_net(b);
}

static inline sn_net *op_net(sn_op op, sn_attr attr, sn_shape data, uint32_t inputs) {
  return volumes_net(op, attr, data, 0, inputs);
}

/* What a squeeze-and-excitation block does: the batch through a CONV, times what another CONV's output has been pooled
 * to, height x width, of all channels or, with `one_channel`, of one. */
static inline sn_net *gate_net(sn_shape data, uint32_t channels, uint32_t height, uint32_t width, bool one_channel) {
  sn_builder *b = begin_net(data);
  const sn_conv conv = {.channels = channels, .kernel = 3, .pad = 1},
                gate = {.channels = one_channel ? 1 : channels, .kernel = 1};
  const sn_attr pool = {.pool = SN_POOL_AVERAGE, .adaptive_h = height, .adaptive_w = width};
  uint32_t x = sn_build_conv(b, SN_DATA_LAYER, conv, "in"), factor = sn_build_conv(b, x, gate, "gate");
  factor = sn_build_layer(b, SN_POOL, &pool, &factor, 1, "pool");
  x = sn_build_mul(b, x, factor, "op");
  x = sn_build_conv(b, x, (sn_conv){.channels = channels, .kernel = 1}, "out");
  sn_build_softmax(b, sn_build_fc(b, x, 2, "fc"), "softmax");
  return finish_net(b);
}

/* Tokens, looked up and with a row for each position added, and classified one by one. */
static inline sn_net *tokens_net(uint32_t batch, uint32_t tokens, uint32_t vocabulary, uint32_t channels,
                                 uint32_t rows) {
  sn_err err = SN_ERR_INIT;
  sn_builder *b = sn_builder_new_tokens("small", batch, tokens, &err);
  uint32_t x = sn_build_position(b, sn_build_embedding(b, vocabulary, channels, "table"), rows, "positions");
  x = sn_build_fc_positions(b, x, 5, "fc");
  sn_build_loss_positions(b, x, SN_LOSS_CROSS_ENTROPY, "softmax");
  return finish_net(b);
}

/* Queries, keys and values by an FC each, or all by one, whose channels have a length of about 1 a head. */
static inline sn_net *image_attention_net(sn_attr attr, sn_shape data, uint32_t d, bool packed) {
  sn_builder *b = begin_net(data);
  const uint32_t q = d * attr.heads, kv = d * attr.kv_heads;
  uint32_t parts[3] = {sn_build_fc_positions(b, SN_DATA_LAYER, packed ? q + 2 * kv : q, "q")};
  for (uint32_t i = 1; i < 3 && !packed; i++) parts[i] = sn_build_fc_positions(b, SN_DATA_LAYER, kv, "kv%u", i);
  uint32_t x = sn_build_layer(b, SN_ATTENTION, &attr, parts, packed ? 1 : 3, "op");
  sn_build_softmax(b, sn_build_fc(b, x, 2, "fc"), "softmax");
  return finish_net(b);
}

static inline sn_net *attention_net(sn_attr attr, uint32_t batch, uint32_t positions, uint32_t d, bool packed) {
  return image_attention_net(attr, (sn_shape){batch, 6, positions, 1}, d, packed);
}

/* A product of matrices that two CONVs make, of rows x inner by inner x columns; either may be turned. */
static inline sn_net *matmul_net(uint32_t batch, uint32_t channels, uint32_t rows, uint32_t inner, uint32_t columns,
                                 bool turn_first, bool turn_second) {
  const sn_attr product = {.turn_first = turn_first, .turn_second = turn_second};
  const uint32_t h = rows > inner ? rows : inner, w = inner > columns ? inner : columns;
  sn_builder *b = begin_net((sn_shape){batch, 2, h > columns ? h : columns, w > rows ? w : rows});
  uint32_t x[2];
  for (uint32_t i = 0; i < 2; i++) {
    const bool turn = i == 0 ? turn_first : turn_second;
    const uint32_t high = i == 0 ? rows : inner, wide = i == 0 ? inner : columns;
    const sn_attr pool = {.pool = SN_POOL_AVERAGE, .adaptive_h = turn ? wide : high, .adaptive_w = turn ? high : wide};
    x[i] = sn_build_conv(b, SN_DATA_LAYER, (sn_conv){.channels = channels, .kernel = 1}, "in%u", i);
    x[i] = sn_build_layer(b, SN_POOL, &pool, &x[i], 1, i == 0 ? "first" : "second");
  }
  x[0] = sn_build_layer(b, SN_MATMUL, &product, x, 2, "op");
  sn_build_softmax(b, sn_build_fc(b, x[0], 2, "fc"), "softmax");
  return finish_net(b);
}

static inline sn_attr dilated(sn_attr a, uint32_t rows, uint32_t columns) {
  a.dilation_h = rows;
  a.dilation_w = columns;
  return a;
}

/* What a window does along the planes. */
static inline sn_attr deep(sn_attr a, uint32_t kernel, uint32_t stride, uint32_t pad, uint32_t dilation) {
  a.kernel_d = kernel;
  a.stride_d = stride;
  a.pad_d = pad;
  a.dilation_d = dilation;
  return a;
}

static inline sn_attr resize_attr(bool bilinear, uint32_t height, uint32_t width) {
  return (sn_attr){.shape = {0, height, width}, .bilinear = bilinear};
}

static inline sn_attr pad_attr(uint32_t rows, uint32_t columns, uint32_t below, uint32_t behind) {
  return (sn_attr){.pad_h = rows, .pad_w = columns, .output_pad_h = below, .output_pad_w = behind};
}

/* Inputs come first in the net and the end last, so the operator is the first of its kind but for a CONV of inputs. */
static inline uint32_t op_net_layer(const sn_net *net, sn_op op) {
  uint32_t i = 1;
  while (i < net->n_layers && net->layers[i].op != op) i++;
  assert_true(i < net->n_layers);
  return i;
}

/* Stride and padding are the same both ways; an even number of channels has biases. */
static inline sn_attr conv_attr(uint32_t channels, uint32_t kernel_h, uint32_t kernel_w, uint32_t stride, uint32_t pad,
                                uint32_t groups) {
  return (sn_attr){.channels = channels,
                   .kernel_h = kernel_h,
                   .kernel_w = kernel_w,
                   .stride_h = stride,
                   .stride_w = stride,
                   .pad_h = pad,
                   .pad_w = pad,
                   .groups = groups,
                   .bias = channels % 2 == 0};
}

static inline sn_attr deconv_attr(uint32_t channels, uint32_t kernel_h, uint32_t kernel_w, uint32_t stride,
                                  uint32_t pad, uint32_t output_pad, uint32_t groups) {
  sn_attr a = conv_attr(channels, kernel_h, kernel_w, stride, pad, groups);
  a.output_pad_h = a.output_pad_w = output_pad;
  return a;
}

static inline sn_attr act_attr(sn_act_mode mode) {
  return (sn_attr){.act = mode, .slope = mode == SN_ACT_LEAKY ? 0.2 : mode == SN_ACT_TIMES ? -1.5 : 0};
}

static inline sn_attr prelu_attr(uint32_t slopes) {
  return (sn_attr){.act = SN_ACT_PRELU, .slopes = slopes};
}

static inline sn_attr pool_attr(sn_pool_mode mode, uint32_t kernel, uint32_t stride, uint32_t pad, bool ceil) {
  sn_attr a = conv_attr(0, kernel, kernel, stride, pad, 1);
  a.pool = mode;
  a.ceil = ceil;
  return a;
}

static inline sn_attr adaptive_attr(sn_pool_mode mode, uint32_t height, uint32_t width) {
  return (sn_attr){.pool = mode, .adaptive_h = height, .adaptive_w = width};
}

static inline sn_attr global_attr(sn_pool_mode mode) {
  return (sn_attr){.pool = mode, .global = true};
}

static inline sn_attr lrn_attr(uint32_t size, double alpha, double beta, double k) {
  return (sn_attr){.lrn_size = size, .lrn_alpha = alpha, .lrn_beta = beta, .lrn_k = k};
}

#endif
