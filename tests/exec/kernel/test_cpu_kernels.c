/* CPU kernels: every operator in many shapes and every layer of five networks against the reference kernels; the same
 * bits again and at other addresses; re-runs; what is refused. */
#include "models/zoo/zoo.h"
#include "tests/exec/kernel/check_kernels.h"
#include "tests/support/random_net.h"
#include "tests/support/seed.h"

/* An operator between blocked values where the processor has them: behind a CONV, ahead of one, or both; else it has
 * the FC of the end behind it. */
static sn_net *between_convs(sn_op op, sn_attr attr, sn_shape in, uint32_t inputs, bool before, bool after) {
  sn_builder *b = begin_net((sn_shape){in.n, before ? 3 : in.c, in.h, in.w});
  uint32_t from[OP_NET_INPUTS] = {SN_DATA_LAYER}, ends[OP_NET_BRANCHES] = {SN_DATA_LAYER};
  for (uint32_t i = 0; i < inputs && before; i++)
    from[i] = sn_build_conv(b, SN_DATA_LAYER, (sn_conv){.channels = in.c, .kernel = 3, .pad = 1}, "in%u", i);
  uint32_t n_ends = op == SN_FORK ? OP_NET_BRANCHES : 1, layer = from[0];
  if (op != SN_FORK) layer = sn_build_layer(b, op, &attr, from, inputs, "op");
  for (uint32_t i = 0; i < n_ends; i++) {
    ends[i] = after ? sn_build_conv(b, layer, (sn_conv){.channels = 32, .kernel = 1}, "out%u", i) : layer;
    sn_build_softmax(b, sn_build_fc(b, ends[i], 2, "fc%u", i), "softmax%u", i);
  }
  return finish_net(b);
}

/* The operator's values lie blocked behind and ahead of a CONV, if anything does here; no others between layouts. */
static void check_layouts(const sn_net *net, bool before, bool after) {
  sn_cpu_kernels *k = new_kernels(net, 1);
  uint32_t op = 1, block = 1;
  for (uint32_t v = 0; v < net->n_values; v++)
    if (sn_cpu_kernels_layout(k, v) > 1) block = sn_cpu_kernels_layout(k, v);
  while (op + 1 < net->n_layers && net->layers[op].op != SN_POOL) op++;
  assert_int_equal(sn_cpu_kernels_layout(k, 0), 1); /* DATA's */
  if (net->layers[op].op == SN_POOL) {
    const char *version = sn_cpu_kernels_version(k);
    bool has_blocks = strstr(version, "avx2") || strstr(version, "avx512");
    assert_int_equal(block > 1, has_blocks && (before || after));
    assert_int_equal(sn_cpu_kernels_layout(k, net->inputs[net->layers[op].first_input]), before ? block : 1);
    assert_int_equal(sn_cpu_kernels_layout(k, net->layers[op].first_output), after ? block : 1);
  }
  sn_cpu_kernels_free(k);
}

static void check_blocked(sn_op op, sn_attr attr, sn_shape in, uint32_t inputs) {
  for (int side = 0; side < 4; side++) {
    bool before = side & 1, after = side & 2;
    if (!before && inputs > 1) continue;
    sn_net *net = between_convs(op, attr, in, inputs, before, after);
    check_layouts(net, before, after);
    check_net(net, 1 + (uint32_t)side % 2, 7 + (uint64_t)side, UINT64_MAX, false);
  }
}

static void blocked_match(void **state) {
  (void)state;
  const sn_attr none = {0}, fc = {.channels = 33, .bias = true};
  for (sn_pool_mode mode = SN_POOL_MAX; mode <= SN_POOL_AVERAGE; mode++) {
    check_blocked(SN_POOL, pool_attr(mode, 3, 2, 1, true), (sn_shape){2, 32, 9, 6}, 1);
    check_blocked(SN_POOL, adaptive_attr(mode, 4, 5), (sn_shape){3, 48, 7, 7}, 1);
  }
  check_blocked(SN_POOL, dilated(pool_attr(SN_POOL_MAX, 3, 2, 1, true), 2, 3), (sn_shape){2, 32, 9, 12}, 1);
  check_blocked(SN_CONV, conv_attr(64, 3, 3, 1, 1, 1), (sn_shape){2, 32, 9, 7}, 1);
  check_blocked(SN_CONV, conv_attr(48, 3, 3, 2, 1, 48), (sn_shape){3, 48, 8, 9}, 1); /* depthwise */
  check_blocked(SN_CONV, conv_attr(64, 3, 3, 1, 1, 16), (sn_shape){2, 32, 6, 6}, 1); /* done plain */
  check_blocked(SN_CONV, conv_attr(20, 5, 5, 1, 2, 1), (sn_shape){2, 32, 6, 6}, 1);  /* to plain */
  check_blocked(SN_CONV, conv_attr(64, 1, 1, 2, 0, 2), (sn_shape){2, 32, 7, 7}, 1);
  check_blocked(SN_DECONV, deconv_attr(64, 4, 4, 2, 1, 0, 1), (sn_shape){2, 32, 5, 6}, 1);
  check_blocked(SN_DECONV, deconv_attr(20, 3, 3, 2, 1, 1, 1), (sn_shape){2, 32, 5, 6}, 1);
  check_blocked(SN_FC, fc, (sn_shape){3, 32, 5, 3}, 1);
  check_blocked(SN_LRN, lrn_attr(5, 1, 0.75, 1), (sn_shape){3, 48, 13, 11}, 1);
  check_blocked(SN_BN, none, (sn_shape){4, 48, 7, 5}, 1);
  check_blocked(SN_BN, none, (sn_shape){2, 32, 31, 31}, 1);
  check_blocked(SN_ACT, none, (sn_shape){3, 32, 7, 11}, 1);
  check_blocked(SN_DROPOUT, (sn_attr){.ratio = 0.5}, (sn_shape){4, 48, 9, 11}, 1);
  check_blocked(SN_JOIN, none, (sn_shape){2, 32, 23, 17}, 3);
  check_blocked(SN_FORK, none, (sn_shape){2, 48, 13, 17}, 1);
  check_blocked(SN_CONCAT, none, (sn_shape){3, 48, 5, 7}, 3);
  check_blocked(SN_MUL, none, (sn_shape){2, 48, 13, 17}, 2);
  check_blocked(SN_SCALE, none, (sn_shape){2, 48, 13, 17}, 1);
  check_blocked(SN_DROPOUT, (sn_attr){.ratio = 0.5, .images = true}, (sn_shape){6, 48, 9, 11}, 1);
  check_blocked(SN_ACT, act_attr(SN_ACT_HARDSIGMOID), (sn_shape){3, 32, 7, 11}, 1);
  check_blocked(SN_ACT, prelu_attr(32), (sn_shape){3, 32, 7, 11}, 1);
  check_blocked(SN_ACT, prelu_attr(1), (sn_shape){3, 48, 29, 11}, 1);
  check_blocked(SN_FC, (sn_attr){.channels = 64, .bias = true, .positions = true}, (sn_shape){3, 32, 5, 3}, 1);
  check_blocked(SN_FC, (sn_attr){.channels = 20, .positions = true}, (sn_shape){3, 32, 5, 3}, 1);
}

static void conv_matches(void **state) {
  (void)state;
  sn_attr oblong = conv_attr(5, 1, 7, 1, 0, 1), uneven = conv_attr(4, 3, 5, 2, 1, 2);
  oblong.pad_w = 3;
  uneven.stride_w = 3;
  check_operator(SN_CONV, oblong, (sn_shape){2, 3, 8, 11}, 1);
  check_operator(SN_CONV, uneven, (sn_shape){3, 6, 9, 14}, 1);
  check_operator(SN_CONV, conv_attr(1, 1, 1, 1, 0, 1), (sn_shape){1, 1, 1, 1}, 1);
  check_operator(SN_CONV, conv_attr(17, 3, 3, 1, 1, 1), (sn_shape){1, 13, 19, 5}, 1);
  check_operator(SN_CONV, conv_attr(32, 1, 1, 2, 0, 1), (sn_shape){4, 48, 7, 7}, 1);
  check_operator(SN_CONV, conv_attr(24, 11, 11, 4, 0, 1), (sn_shape){2, 3, 51, 51}, 1);
  check_operator(SN_CONV, conv_attr(21, 5, 5, 1, 4, 7), (sn_shape){2, 14, 6, 7}, 1);
  check_operator(SN_CONV, conv_attr(16, 3, 3, 1, 1, 16), (sn_shape){3, 16, 10, 10}, 1); /* depthwise */
  check_operator(SN_CONV, conv_attr(36, 3, 3, 2, 1, 12), (sn_shape){2, 12, 13, 13}, 1);
  check_operator(SN_CONV, conv_attr(2, 1, 1, 1, 2, 1), (sn_shape){1, 3, 2, 1}, 1); /* windows of padding only */
  check_operator(SN_CONV, conv_attr(3, 4, 4, 7, 3, 1), (sn_shape){2, 2, 5, 30}, 1);
}

static void fc_matches(void **state) {
  (void)state;
  const sn_attr bias = {.channels = 33, .bias = true};
  check_operator(SN_FC, bias, (sn_shape){1, 1, 1, 1}, 1);
  check_operator(SN_FC, bias, (sn_shape){16, 100, 1, 1}, 1);
  check_operator(SN_FC, bias, (sn_shape){3, 7, 5, 3}, 1);
  check_operator(SN_FC, (sn_attr){.channels = 1}, (sn_shape){5, 257, 1, 2}, 1);
  check_operator(SN_FC, (sn_attr){.channels = 1000, .bias = true}, (sn_shape){2, 512, 2, 2}, 1);
}

static void deconv_matches(void **state) {
  (void)state;
  sn_attr oblong = deconv_attr(5, 1, 7, 1, 0, 0, 1), uneven = deconv_attr(4, 3, 5, 2, 1, 1, 2);
  oblong.pad_w = 3;
  uneven.stride_w = 3;
  check_operator(SN_DECONV, oblong, (sn_shape){2, 3, 8, 11}, 1);
  check_operator(SN_DECONV, uneven, (sn_shape){3, 6, 5, 4}, 1);
  check_operator(SN_DECONV, deconv_attr(16, 7, 7, 1, 0, 0, 1), (sn_shape){4, 100, 1, 1}, 1);
  check_operator(SN_DECONV, deconv_attr(12, 5, 5, 2, 2, 1, 1), (sn_shape){3, 17, 7, 7}, 1);
  check_operator(SN_DECONV, deconv_attr(1, 5, 5, 2, 2, 1, 1), (sn_shape){5, 12, 14, 14}, 1);
  check_operator(SN_DECONV, deconv_attr(2, 4, 4, 7, 0, 6, 1), (sn_shape){2, 2, 5, 3}, 1); /* gaps */
  check_operator(SN_DECONV, deconv_attr(16, 3, 3, 1, 1, 0, 16), (sn_shape){3, 16, 10, 10}, 1);
  check_operator(SN_DECONV, deconv_attr(64, 2, 2, 2, 0, 0, 1), (sn_shape){2, 32, 28, 28}, 1);
}

static void pool_matches(void **state) {
  (void)state;
  for (sn_pool_mode mode = SN_POOL_MAX; mode <= SN_POOL_AVERAGE; mode++) {
    sn_attr oblong = pool_attr(mode, 3, 2, 1, false);
    oblong.kernel_w = 2;
    oblong.stride_w = 1;
    check_operator(SN_POOL, oblong, (sn_shape){2, 3, 9, 6}, 1);
    check_operator(SN_POOL, pool_attr(mode, 3, 2, 0, false), (sn_shape){2, 5, 55, 55}, 1);
    check_operator(SN_POOL, pool_attr(mode, 3, 2, 1, true), (sn_shape){3, 4, 14, 12}, 1);
    check_operator(SN_POOL, pool_attr(mode, 3, 1, 1, false), (sn_shape){1, 17, 7, 8}, 1);
    check_operator(SN_POOL, pool_attr(mode, 2, 2, 0, true), (sn_shape){2, 2, 5, 7}, 1);
    check_operator(SN_POOL, pool_attr(mode, 2, 3, 1, true), (sn_shape){2, 2, 8, 6}, 1);
    check_operator(SN_POOL, pool_attr(mode, 1, 3, 0, false), (sn_shape){2, 3, 5, 5}, 1);
    check_operator(SN_POOL, pool_attr(mode, 7, 1, 3, false), (sn_shape){1, 3, 4, 9}, 1);
    check_operator(SN_POOL, global_attr(mode), (sn_shape){3, 20, 7, 7}, 1);
    check_operator(SN_POOL, global_attr(mode), (sn_shape){1, 1, 1, 13}, 1);
    check_operator(SN_POOL, adaptive_attr(mode, 7, 7), (sn_shape){2, 5, 7, 7}, 1);
    check_operator(SN_POOL, adaptive_attr(mode, 2, 3), (sn_shape){3, 4, 8, 9}, 1);
    check_operator(SN_POOL, adaptive_attr(mode, 7, 7), (sn_shape){2, 30, 8, 24}, 1); /* windows of many sizes */
    check_operator(SN_POOL, adaptive_attr(mode, 6, 5), (sn_shape){1, 3, 4, 7}, 1);   /* more outputs than rows */
  }
}

static void norm_matches(void **state) {
  (void)state;
  check_operator(SN_LRN, lrn_attr(5, 1e-4, 0.75, 2), (sn_shape){2, 96, 9, 9}, 1);
  check_operator(SN_LRN, lrn_attr(5, 1, 0.75, 1), (sn_shape){3, 7, 13, 11}, 1);
  check_operator(SN_LRN, lrn_attr(3, 0.5, 1.3, 0.5), (sn_shape){1, 4, 5, 30}, 1);
  check_operator(SN_LRN, lrn_attr(1, 2, 0.75, 1), (sn_shape){2, 3, 1, 1}, 1);
  check_operator(SN_LRN, lrn_attr(101, 2, 0.5, 1), (sn_shape){1, 6, 8, 8}, 1);
  check_operator(SN_BN, (sn_attr){0}, (sn_shape){4, 33, 7, 5}, 1);
  check_operator(SN_BN, (sn_attr){0}, (sn_shape){2, 3, 31, 31}, 1);
  check_operator(SN_BN, (sn_attr){0}, (sn_shape){64, 5, 1, 1}, 1);
  check_operator(SN_BN, (sn_attr){0}, (sn_shape){1, 9, 1, 1}, 1); /* one element a channel */
  check_operator(SN_BN, (sn_attr){0}, (sn_shape){1, 2, 1, 2}, 1);
  check_operator(SN_SOFTMAX, (sn_attr){0}, (sn_shape){7, 10, 1, 1}, 1);
  check_operator(SN_SOFTMAX, (sn_attr){0}, (sn_shape){64, 1000, 1, 1}, 1);
  check_operator(SN_SOFTMAX, (sn_attr){0}, (sn_shape){2, 1, 1, 1}, 1);
}

static void check_gate(sn_shape data, uint32_t channels, uint32_t height, uint32_t width, bool one_channel) {
  for (uint32_t threads = 1; threads <= 2; threads++)
    check_net(gate_net(data, channels, height, width, one_channel), threads, 7 + threads, UINT64_MAX, false);
}

static void products_match(void **state) {
  (void)state;
  for (uint32_t channels = 5; channels <= 48; channels += 43) { /* 48: blocked */
    check_gate((sn_shape){3, 4, 9, 7}, channels, 1, 1, false);
    check_gate((sn_shape){3, 4, 17, 15}, channels, 1, 1, false);
    check_gate((sn_shape){2, 4, 9, 7}, channels, 9, 7, true);
    check_gate((sn_shape){2, 4, 9, 7}, channels, 9, 1, false);
    check_gate((sn_shape){2, 4, 9, 7}, channels, 1, 7, false);
    check_gate((sn_shape){2, 4, 9, 7}, channels, 1, 7, true);
  }
  check_operator(SN_MUL, (sn_attr){0}, (sn_shape){2, 16, 43, 37}, 2);
  check_operator(SN_SCALE, (sn_attr){0}, (sn_shape){3, 7, 43, 37}, 1);
  check_operator(SN_SCALE, (sn_attr){0}, (sn_shape){1, 3, 1, 1}, 1);
  check_operator(SN_DROPOUT, (sn_attr){.ratio = 0.5, .images = true}, (sn_shape){9, 7, 23, 37}, 1);
}

static void positions_match(void **state) {
  (void)state;
  const sn_attr fc = {.channels = 40, .bias = true, .positions = true}, bare = {.channels = 17, .positions = true};
  check_operator(SN_FC, fc, (sn_shape){3, 24, 19, 1}, 1);
  check_operator(SN_FC, bare, (sn_shape){2, 33, 5, 4}, 1);
  check_operator(SN_FC, bare, (sn_shape){1, 1, 1, 1}, 1);
  check_operator(SN_FC, fc, (sn_shape){2, 96, 28, 28}, 1);
  for (sn_op op = SN_LAYER_NORM; op <= SN_RMS_NORM; op++) {
    check_operator(op, (sn_attr){0}, (sn_shape){3, 40, 5, 7}, 1);
    check_operator(op, (sn_attr){0}, (sn_shape){2, 96, 14, 14}, 1);
    check_operator(op, (sn_attr){0}, (sn_shape){5, 768, 1, 1}, 1);
    check_operator(op, (sn_attr){0}, (sn_shape){2, 2, 1, 17}, 1);
  }
  check_operator(SN_SOFTMAX, (sn_attr){.positions = true}, (sn_shape){3, 11, 7, 5}, 1);
  check_operator(SN_SOFTMAX, (sn_attr){.positions = true}, (sn_shape){2, 500, 47, 1}, 1);
  check_operator(SN_SOFTMAX, (sn_attr){.positions = true}, (sn_shape){2, 1, 3, 3}, 1);
  check_operator(SN_SOFTMAX, (sn_attr){.loss = SN_LOSS_MSE}, (sn_shape){2, 3, 5, 1}, 1);
  check_operator(SN_SOFTMAX, (sn_attr){.loss = SN_LOSS_MSE}, (sn_shape){3, 7, 33, 50}, 1);
}

static void check_matmul(uint32_t channels, uint32_t rows, uint32_t inner, uint32_t columns) {
  for (int turns = 0; turns < 4; turns++)
    for (uint32_t threads = 1; threads <= 2; threads++)
      check_net(matmul_net(2, channels, rows, inner, columns, turns & 1, turns & 2), threads, 13 + threads, UINT64_MAX,
                false);
}

static void matrices_match(void **state) {
  (void)state;
  check_matmul(3, 5, 17, 9);
  check_matmul(8, 37, 20, 33);
  check_matmul(1, 1, 1, 1);
  for (sn_side axis = SN_SIDE_CHANNELS; axis < SN_SIDES; axis++) {
    check_operator(SN_PROBABILITIES, (sn_attr){.axis = axis}, (sn_shape){3, 19, 23, 37}, 1);
    check_operator(SN_PROBABILITIES, (sn_attr){.axis = axis}, (sn_shape){2, 1, 1, 1}, 1);
  }
  check_operator(SN_GROUP_NORM, (sn_attr){.groups = 4}, (sn_shape){3, 20, 13, 11}, 1);
  check_operator(SN_GROUP_NORM, (sn_attr){.groups = 32}, (sn_shape){2, 64, 19, 17}, 1);
  check_operator(SN_GROUP_NORM, (sn_attr){.groups = 1}, (sn_shape){1, 7, 1, 1}, 1);
}

static void sizes_match(void **state) {
  (void)state;
  check_operator(SN_PAD, pad_attr(1, 2, 0, 3), (sn_shape){3, 5, 7, 6}, 1);
  check_operator(SN_PAD, pad_attr(3, 0, 1, 0), (sn_shape){2, 16, 40, 41}, 1);
  check_operator(SN_PAD, pad_attr(0, 0, 0, 0), (sn_shape){1, 1, 1, 1}, 1);
  for (int bilinear = 0; bilinear < 2; bilinear++) {
    check_operator(SN_RESIZE, (sn_attr){.bilinear = bilinear, .scale = 2}, (sn_shape){2, 5, 20, 31}, 1);
    check_operator(SN_RESIZE, resize_attr(bilinear, 7, 50), (sn_shape){3, 4, 20, 9}, 1);
    check_operator(SN_RESIZE, resize_attr(bilinear, 9, 9), (sn_shape){1, 3, 1, 1}, 1);
  }
}

static void arrangements_match(void **state) {
  (void)state;
  static const sn_side orders[][SN_SIDES] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  check_operator(SN_RESHAPE, (sn_attr){.shape = {35, 9, 0}}, (sn_shape){3, 5, 7, 36}, 1);
  for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
    const sn_attr order = {.axes = {orders[i][0], orders[i][1], orders[i][2]}};
    check_operator(SN_TRANSPOSE, order, (sn_shape){3, 5, 7, 6}, 1);
    check_operator(SN_TRANSPOSE, order, (sn_shape){2, 33, 700, 1}, 1);
    check_operator(SN_TRANSPOSE, order, (sn_shape){1, 1, 1, 1}, 1);
  }
  for (sn_side axis = SN_SIDE_CHANNELS; axis < SN_SIDES; axis++) {
    check_operator(SN_SLICE, (sn_attr){.axis = axis, .first = 2, .count = 3}, (sn_shape){3, 5, 7, 6}, 1);
    check_operator(SN_SLICE, (sn_attr){.axis = axis, .first = 1, .count = 30}, (sn_shape){2, 40, 31, 33}, 1);
    check_operator(SN_SLICE, (sn_attr){.axis = axis, .first = 2, .count = 10, .step = 3}, (sn_shape){2, 40, 31, 33}, 1);
    check_operator(SN_SLICE, (sn_attr){.axis = axis, .first = 1, .count = 15, .step = 2, .turned = true},
                   (sn_shape){2, 40, 31, 33}, 1);
    check_operator(SN_SLICE, (sn_attr){.axis = axis, .count = 5, .turned = true}, (sn_shape){2, 5, 5, 5}, 1);
  }
}

static void dilated_match(void **state) {
  (void)state;
  check_operator(SN_CONV, dilated(conv_attr(17, 3, 3, 1, 2, 1), 2, 2), (sn_shape){1, 13, 19, 9}, 1);
  check_operator(SN_CONV, dilated(conv_attr(12, 3, 2, 2, 1, 3), 2, 5), (sn_shape){3, 6, 12, 14}, 1);
  check_operator(SN_DECONV, dilated(deconv_attr(6, 3, 3, 2, 1, 1, 2), 2, 3), (sn_shape){2, 4, 7, 6}, 1);
  check_operator(SN_POOL, dilated(pool_attr(SN_POOL_MAX, 3, 1, 2, false), 2, 2), (sn_shape){2, 5, 12, 9}, 1);
  check_operator(SN_POOL, dilated(pool_attr(SN_POOL_MAX, 2, 3, 1, true), 5, 3), (sn_shape){3, 4, 14, 12}, 1);
  check_operator(SN_POOL, dilated(pool_attr(SN_POOL_MAX, 4, 2, 3, true), 1, 4), (sn_shape){1, 17, 9, 13}, 1);
  check_blocked(SN_CONV, dilated(conv_attr(64, 3, 3, 1, 2, 1), 2, 2), (sn_shape){2, 32, 9, 7}, 1);
  check_blocked(SN_CONV, dilated(conv_attr(48, 3, 3, 1, 3, 48), 3, 3), (sn_shape){3, 48, 8, 9}, 1);
  check_blocked(SN_DECONV, dilated(deconv_attr(64, 3, 3, 2, 1, 1, 1), 2, 2), (sn_shape){2, 32, 5, 6}, 1);
}

/* Three updates by each optimizer, the moments of the second and third no longer 0. */
static void updates_match(void **state) {
  (void)state;
  for (sn_optimizer o = 0; o <= SN_OPTIMIZER_ADAMW; o++)
    for (unsigned threads = 1; threads <= 2; threads++) {
      sn_net *net = op_net(SN_FC, (sn_attr){.channels = 300, .bias = true}, (sn_shape){4, 70, 2, 2}, 1);
      sn_cpu_kernels *k = new_kernels(net, threads);
      compare c = compare_open(net, table_of(k), 7);
      c.fast.hyper.optimizer = c.reference.hyper.optimizer = o;
      for (int i = 0; i < 3; i++) compare_all(&c, UINT64_MAX);
      compare_close(&c);
      sn_cpu_kernels_free(k);
      sn_net_free(net);
    }
}

static void others_match(void **state) {
  (void)state;
  check_operator(SN_ACT, (sn_attr){0}, (sn_shape){3, 5, 7, 11}, 1);
  check_operator(SN_ACT, (sn_attr){0}, (sn_shape){2, 16, 41, 41}, 1);
  for (sn_act_mode mode = SN_ACT_RELU6; mode < SN_ACT_PRELU; mode++)
    check_operator(SN_ACT, act_attr(mode), (sn_shape){2, 16, 41, 41}, 1);
  check_operator(SN_ACT, prelu_attr(1), (sn_shape){2, 15, 41, 41}, 1);
  check_operator(SN_ACT, prelu_attr(15), (sn_shape){2, 15, 41, 41}, 1);
  check_operator(SN_ACT, prelu_attr(1), (sn_shape){1, 1, 1, 1}, 1);
  check_operator(SN_DROPOUT, (sn_attr){.ratio = 0.5}, (sn_shape){4, 100, 9, 11}, 1);
  check_operator(SN_DROPOUT, (sn_attr){.ratio = 0.1}, (sn_shape){1, 3, 1, 1}, 1);
  check_operator(SN_DROPOUT, (sn_attr){.ratio = 0}, (sn_shape){1, 3, 2, 2}, 1);
  check_operator(SN_JOIN, (sn_attr){0}, (sn_shape){3, 7, 5, 5}, 2);
  check_operator(SN_JOIN, (sn_attr){0}, (sn_shape){2, 11, 43, 37}, 3);
  check_operator(SN_FORK, (sn_attr){0}, (sn_shape){2, 11, 43, 37}, 1);
  check_operator(SN_CONCAT, (sn_attr){0}, (sn_shape){3, 3, 5, 7}, 3);
  check_operator(SN_CONCAT, (sn_attr){0}, (sn_shape){3, 3, 5, 7}, 1);
  check_operator(SN_CONCAT, (sn_attr){0}, (sn_shape){2, 9, 43, 37}, 2);
}

/* Draws until it finds one of few parameters: making them up is most of a run's time. */
static sn_net *small_random_net(uint64_t *dice, bool today) {
  sn_err err = SN_ERR_INIT;
  for (;;) {
    sn_net *net = today ? random_net_new_today(dice, &err) : random_net_new(dice, &err);
    if (!net) fail_msg("%s", err.text);
    if (net->parameters < 1000000) return net;
    sn_net_free(net);
  }
}

/* Shapes that nobody thought of. */
static void random_nets_match(void **state) {
  (void)state;
  uint64_t dice = first_seed(1000), nets = case_all(SANITIZED ? 10 : 60);
  for (uint64_t i = 0; i < nets; i++)
    check_net(small_random_net(&dice, false), 1 + (uint32_t)i % 2, i, UINT64_MAX, false);
}

static void random_nets_of_today_match(void **state) {
  (void)state;
  uint64_t dice = first_seed(3000), nets = case_all(SANITIZED ? 10 : 60);
  for (uint64_t i = 0; i < nets; i++)
    check_net(small_random_net(&dice, true), 1 + (uint32_t)i % 2, i, UINT64_MAX, false);
}

/* Every layer there is. Large convolutions run, but the reference is too slow to compare them. */
static void zoo_matches(void **state) {
  (void)state;
  static const struct {
    const char *name;
    uint32_t batch, image;
  } cases[] = {{"lenet", 2, 0},           {"alexnet", 2, 0},           {"inception_v4", 1, 107},
               {"resnet50", 1, 0},        {"densenet121", 1, 128},     {"tv_mobilenet_v2", 2, 96},
               {"tv_alexnet", 2, 256},    {"tv_squeezenet1_1", 1, 96}, {"dcgan", 4, 0},
               {"resnet_cifar:n=1", 2, 0}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i += case_stride()) {
    sn_err err = SN_ERR_INIT;
    sn_net *net = sn_net_load(cases[i].name, cases[i].batch, cases[i].image, &err);
    if (!net) fail_msg("%s", err.text);
    check_net(net, 1, 9, SANITIZED ? 5000000 : 30000000, true);
  }
}

static void same_bits(const net_runner *a, const net_runner *b) {
  assert_true(a->loss == b->loss);
  assert_int_equal(a->n_blocks, b->n_blocks);
  for (size_t i = 0; i < a->n_blocks; i++) /* what is left in the workspace does not matter */
    if (a->blocks[i].data != a->workspace &&
        memcmp(a->blocks[i].data, b->blocks[i].data, a->blocks[i].count * sizeof(float)) != 0)
      fail_msg("%s: other bits, moved by %u elements", a->net->name, b->shift);
}

/* Two iterations with kernels of their own, every tensor at another address: `shift` elements on. */
static net_runner train(const sn_net *net, unsigned threads, uint32_t shift) {
  sn_cpu_kernels *k = new_kernels(net, threads);
  net_runner r = net_runner_open_at(net, table_of(k), 21, shift);
  net_runner_iterate(&r);
  net_runner_iterate(&r);
  sn_cpu_kernels_free(k);
  return r;
}

static void check_bits(const sn_net *net, unsigned threads) {
  static const uint32_t shifts[] = {0, 16, 1};
  net_runner first = train(net, threads, 0);
  assert_true(isfinite(first.loss));
  for (size_t i = 0; i < sizeof shifts / sizeof shifts[0]; i++) {
    net_runner again = train(net, threads, shifts[i]);
    same_bits(&first, &again);
    net_runner_close(&again);
  }
  net_runner_close(&first);
}

static void bits_repeat(void **state) {
  (void)state;
  static const struct {
    const char *name;
    uint32_t batch, image;
  } cases[] = {{"lenet", 5, 0}, {"resnet50", 2, 64}, {"densenet121", 2, 32}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i += case_stride()) {
    sn_err err = SN_ERR_INIT;
    sn_net *net = sn_net_load(cases[i].name, cases[i].batch, cases[i].image, &err);
    if (!net) fail_msg("%s", err.text);
    for (unsigned threads = 1; threads <= 2; threads++) check_bits(net, threads);
    sn_net_free(net);
  }
}

static void bits_of_random_nets_repeat(void **state) {
  (void)state;
  uint64_t dice = first_seed(2000);
  for (uint64_t i = 0; i < case_all(10); i++) {
    sn_net *net = small_random_net(&dice, true);
    for (unsigned threads = 1; threads <= 2; threads++) check_bits(net, threads);
    sn_net_free(net);
  }
}

/* A re-run makes the same outputs and statistics again; only a first run moves the running ones. */
static void rerun_leaves_statistics(void **state) {
  (void)state;
  sn_net *net = op_net(SN_BN, (sn_attr){0}, (sn_shape){3, 8, 5, 5}, 1);
  sn_cpu_kernels *k = new_kernels(net, 1);
  net_runner r = net_runner_open(net, table_of(k), 31);
  sn_call call = net_runner_call(&r, r.route->forward_step[op_net_layer(net, SN_BN)]);
  net_runner_run(&r, &call);
  float statistics[32], y[600];
  memcpy(statistics, call.statistics, sizeof statistics);
  memcpy(y, call.y[0], sizeof y);
  net_poison(call.y[0], 600);
  net_poison(call.statistics + 16, 16); /* the saved ones */
  call.rerun = true;
  net_runner_run(&r, &call);
  assert_memory_equal(statistics, call.statistics, sizeof statistics);
  assert_memory_equal(y, call.y[0], sizeof y);
  call.rerun = false;
  net_runner_run(&r, &call);
  for (int i = 0; i < 16; i++) assert_true(statistics[i] != call.statistics[i]);
  assert_memory_equal(statistics + 16, call.statistics + 16, 16 * sizeof(float));
  net_runner_close(&r);
  sn_cpu_kernels_free(k);
  sn_net_free(net);
}

static void rerun_drops_the_same(void **state) {
  (void)state;
  sn_net *net = op_net(SN_DROPOUT, (sn_attr){.ratio = 0.5}, (sn_shape){3, 8, 5, 5}, 1);
  sn_cpu_kernels *k = new_kernels(net, 1);
  net_runner r = net_runner_open(net, table_of(k), 32);
  sn_call call = net_runner_call(&r, r.route->forward_step[op_net_layer(net, SN_DROPOUT)]);
  net_runner_run(&r, &call);
  float y[600];
  memcpy(y, call.y[0], sizeof y);
  net_poison(call.y[0], 600);
  call.rerun = true;
  net_runner_run(&r, &call);
  assert_memory_equal(y, call.y[0], sizeof y);
  call.iteration = 1;
  net_runner_run(&r, &call);
  assert_memory_not_equal(y, call.y[0], sizeof y);
  net_runner_close(&r);
  sn_cpu_kernels_free(k);
  sn_net_free(net);
}

static void expect_failure(sn_cpu_kernels *k, const sn_call *call, sn_status code, const char *text) {
  sn_err err = SN_ERR_INIT;
  assert_int_equal(sn_cpu_kernels_run(k, call, &err), code);
  assert_int_equal(err.code, code);
  if (!strstr(err.text, text)) fail_msg("\"%s\" is not in \"%s\"", text, err.text);
}

static void small_workspace_is_refused(void **state) {
  (void)state;
  sn_net *net = op_net(SN_CONV, conv_attr(8, 3, 3, 1, 1, 1), (sn_shape){2, 3, 9, 9}, 1);
  sn_cpu_kernels *k = new_kernels(net, 1);
  net_runner r = net_runner_open(net, table_of(k), 41);
  uint64_t needed = sn_cpu_kernels_scratch(k, 1, SN_FORWARD, SN_STEP_WHOLE);
  assert_true(needed > 0);
  assert_true(sn_cpu_kernels_scratch(k, 1, SN_BACKWARD, SN_STEP_WHOLE) > 0);
  assert_int_equal(sn_cpu_kernels_scratch(k, 1, SN_UPDATE, SN_STEP_WHOLE), 0);
  sn_call call = net_runner_call(&r, 0);
  call.workspace_bytes = needed - 1;
  expect_failure(k, &call, SN_BUG, "layer \"op\" forward needs");
  call.workspace_bytes = needed;
  net_runner_run(&r, &call);
  call.workspace = NULL;
  expect_failure(k, &call, SN_BUG, "was given 0");
  net_runner_close(&r);
  sn_cpu_kernels_free(k);
  sn_net_free(net);
}

static void bad_labels_are_refused(void **state) {
  (void)state;
  sn_net *net = op_net(SN_SOFTMAX, (sn_attr){0}, (sn_shape){2, 3, 1, 1}, 1);
  sn_cpu_kernels *k = new_kernels(net, 1);
  net_runner r = net_runner_open(net, table_of(k), 42);
  sn_call call = net_runner_call(&r, 0);
  r.labels[1] = 3;
  expect_failure(k, &call, SN_BAD_INPUT, "label 3 of image 1");
  r.labels[1] = -1;
  expect_failure(k, &call, SN_BAD_INPUT, "classes of layer \"op\", which are 0 to 2");
  r.labels[1] = 2;
  net_runner_run(&r, &call);
  net_runner_close(&r);
  sn_cpu_kernels_free(k);
  sn_net_free(net);
}

static void makes_and_names(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_net *net = op_net(SN_ACT, (sn_attr){0}, (sn_shape){2, 3, 1, 1}, 1);
  sn_cpu_kernels *one = new_kernels(net, 1), *all = new_kernels(net, 0);
  assert_null(sn_cpu_kernels_new(net, 100000, false, &err));
  assert_int_equal(err.code, SN_BAD_USAGE);
  assert_ptr_equal(strstr(sn_cpu_kernels_version(one), "oneDNN "), sn_cpu_kernels_version(one));
  assert_int_equal(sn_cpu_kernels_threads(one), 1);
  assert_true(sn_cpu_kernels_threads(all) >= 1);
  sn_cpu_kernels_free(one);
  sn_cpu_kernels_free(all);
  sn_cpu_kernels_free(NULL);
  sn_net_free(net);
}

/* ReLU6 is bent twice, and flat at both bends. */
static void relu6_by_hand(void **state) {
  (void)state;
  const float x[] = {-1, 0, 3, 5.5f, 6, 7}, y[] = {0, 0, 3, 5.5f, 6, 6}, dx[] = {0, 0, 1, 1, 0, 0};
  float made[6], gradient[6], dy[] = {1, 1, 1, 1, 1, 1}, in[6];
  sn_net *net = op_net(SN_ACT, (sn_attr){.act = SN_ACT_RELU6}, (sn_shape){1, 6, 1, 1}, 1);
  sn_cpu_kernels *k = new_kernels(net, 1);
  net_runner r = net_runner_open(net, table_of(k), 43);
  memcpy(in, x, sizeof x);
  sn_call call = net_runner_call(&r, r.route->forward_step[1]);
  call.x[0] = in;
  call.y[0] = made;
  net_runner_run(&r, &call);
  assert_memory_equal(made, y, sizeof y);
  call = net_runner_call(&r, r.route->backward_step[1]);
  call.x[0] = in;
  call.y[0] = made;
  call.dy[0] = dy;
  call.dx[0] = gradient;
  net_runner_run(&r, &call);
  assert_memory_equal(gradient, dx, sizeof dx);
  net_runner_close(&r);
  sn_cpu_kernels_free(k);
  sn_net_free(net);
}

/* A batch learned by heart: all pieces together do what training is for. */
static void training_lowers_the_loss(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_net *net = sn_net_load("lenet", 16, 0, &err);
  if (!net) fail_msg("%s", err.text);
  sn_cpu_kernels *k = new_kernels(net, 1);
  net_runner r = net_runner_open(net, table_of(k), 51);
  for (int i = 0; i < 40; i++) net_runner_iterate(&r);
  assert_true(r.loss < 0.1);
  net_runner_close(&r);
  sn_cpu_kernels_free(k);
  sn_net_free(net);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(blocked_match),
      cmocka_unit_test(conv_matches),
      cmocka_unit_test(fc_matches),
      cmocka_unit_test(deconv_matches),
      cmocka_unit_test(pool_matches),
      cmocka_unit_test(norm_matches),
      cmocka_unit_test(updates_match),
      cmocka_unit_test(products_match),
      cmocka_unit_test(positions_match),
      cmocka_unit_test(matrices_match),
      cmocka_unit_test(sizes_match),
      cmocka_unit_test(arrangements_match),
      cmocka_unit_test(dilated_match),
      cmocka_unit_test(others_match),
      cmocka_unit_test(random_nets_match),
      cmocka_unit_test(random_nets_of_today_match),
      cmocka_unit_test(zoo_matches),
      cmocka_unit_test(bits_repeat),
      cmocka_unit_test(bits_of_random_nets_repeat),
      cmocka_unit_test(rerun_leaves_statistics),
      cmocka_unit_test(rerun_drops_the_same),
      cmocka_unit_test(small_workspace_is_refused),
      cmocka_unit_test(bad_labels_are_refused),
      cmocka_unit_test(makes_and_names),
      cmocka_unit_test(relu6_by_hand),
      cmocka_unit_test(training_lowers_the_loss),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
