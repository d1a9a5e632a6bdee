/* CPU kernels of volumes: every operator that minds planes, or lies over them, against the reference kernels; windows
 * that nobody thought of; values plain and in blocks. */
#include "models/op/op.h"
#include "tests/exec/kernel/check_kernels.h"
#include "tests/support/prng.h"
#include "tests/support/seed.h"

static void check_deep(sn_op op, sn_attr attr, sn_shape data, uint32_t inputs) {
  check_deep_operator(op, attr, data, 5, inputs);
}

static void convs_match(void **state) {
  (void)state;
  const sn_attr flat = conv_attr(7, 3, 3, 1, 1, 1), cube = deep(flat, 3, 1, 1, 1);
  check_deep(SN_CONV, flat, (sn_shape){2, 3, 6, 7}, 1);
  check_deep(SN_CONV, cube, (sn_shape){2, 3, 6, 7}, 1);
  check_deep(SN_CONV, deep(conv_attr(12, 1, 1, 1, 0, 1), 3, 2, 1, 1), (sn_shape){1, 5, 4, 4}, 1);
  check_deep(SN_CONV, deep(conv_attr(12, 3, 3, 2, 1, 3), 3, 1, 2, 2), (sn_shape){2, 6, 7, 9}, 1);
  check_deep(SN_CONV, deep(conv_attr(16, 3, 3, 1, 1, 16), 3, 1, 1, 1), (sn_shape){2, 16, 6, 5}, 1); /* depthwise */
  check_operator(SN_CONV, deep(flat, 3, 1, 1, 1), (sn_shape){2, 3, 6, 7}, 1); /* an image with planes of padding */
  check_deep_operator(SN_CONV, cube, (sn_shape){2, 3, 6, 7}, 1, 1);
}

static void deconvs_match(void **state) {
  (void)state;
  sn_attr doubled = deep(deconv_attr(6, 2, 2, 2, 0, 0, 1), 2, 2, 0, 1),
          uneven = deep(deconv_attr(8, 3, 3, 2, 1, 1, 2), 3, 3, 1, 2);
  uneven.output_pad_d = 2;
  check_deep(SN_DECONV, doubled, (sn_shape){2, 5, 4, 3}, 1);
  check_deep(SN_DECONV, uneven, (sn_shape){2, 4, 3, 5}, 1);
  check_deep(SN_DECONV, deconv_attr(5, 4, 4, 2, 1, 0, 1), (sn_shape){1, 3, 3, 4}, 1);
  check_operator(SN_DECONV, doubled, (sn_shape){2, 5, 4, 3}, 1); /* makes volumes of images */
}

static void pools_match(void **state) {
  (void)state;
  for (sn_pool_mode mode = SN_POOL_MAX; mode <= SN_POOL_AVERAGE; mode++) {
    sn_attr cut = adaptive_attr(mode, 2, 3), spread = adaptive_attr(mode, 3, 7);
    cut.adaptive_d = 2;
    spread.adaptive_d = 5;
    check_deep(SN_POOL, pool_attr(mode, 3, 2, 1, true), (sn_shape){2, 3, 6, 7}, 1);
    check_deep(SN_POOL, deep(pool_attr(mode, 3, 2, 1, false), 3, 2, 1, 1), (sn_shape){2, 3, 6, 7}, 1);
    check_deep(SN_POOL, deep(pool_attr(mode, 2, 2, 0, true), 2, 2, 0, 1), (sn_shape){2, 3, 7, 9}, 1);
    check_deep(SN_POOL, global_attr(mode), (sn_shape){2, 17, 6, 7}, 1);
    check_deep(SN_POOL, adaptive_attr(mode, 2, 3), (sn_shape){2, 3, 4, 9}, 1); /* each plane by itself */
    check_deep(SN_POOL, cut, (sn_shape){2, 3, 6, 7}, 1);
    check_deep(SN_POOL, spread, (sn_shape){2, 3, 6, 7}, 1);
  }
  check_deep(SN_POOL, deep(dilated(pool_attr(SN_POOL_MAX, 2, 1, 1, true), 2, 3), 2, 2, 1, 3), (sn_shape){2, 3, 6, 7},
             1);
}

/* What does not mind how many planes there are. */
static void others_match(void **state) {
  (void)state;
  const sn_attr none = {0};
  const sn_shape data = {2, 6, 7, 9};
  check_deep(SN_BN, none, data, 1);
  check_deep(SN_LRN, lrn_attr(3, 0.5, 0.75, 1), data, 1);
  check_deep(SN_GROUP_NORM, (sn_attr){.groups = 3}, data, 1);
  check_deep(SN_LAYER_NORM, none, data, 1);
  check_deep(SN_RMS_NORM, none, data, 1);
  check_deep(SN_SCALE, none, data, 1);
  check_deep(SN_ACT, act_attr(SN_ACT_SILU), data, 1);
  check_deep(SN_ACT, prelu_attr(6), data, 1);
  check_deep(SN_DROPOUT, (sn_attr){.ratio = 0.3}, data, 1);
  check_deep(SN_DROPOUT, (sn_attr){.ratio = 0.5, .images = true}, data, 1);
  check_deep(SN_JOIN, none, data, 3);
  check_deep(SN_FORK, none, data, 1);
  check_deep(SN_CONCAT, none, data, 2);
  check_deep(SN_MUL, none, data, 2);
  check_deep(SN_FC, (sn_attr){.channels = 10, .bias = true}, data, 1);
  check_deep(SN_FC, (sn_attr){.channels = 10, .bias = true, .positions = true}, data, 1);
  check_deep(SN_SOFTMAX, (sn_attr){.positions = true}, data, 1);
  check_deep(SN_SLICE, (sn_attr){.axis = SN_SIDE_WIDTH, .first = 1, .count = 4, .step = 2}, data, 1);
  check_deep(SN_PROBABILITIES, (sn_attr){.axis = SN_SIDE_WIDTH}, data, 1);
  check_deep(SN_RESHAPE, (sn_attr){.shape = {30, 7, 0}}, data, 1);
}

/* CONVs with windows of volumes and the operator between them, whose values lie in blocks where the processor has
 * them. */
static void check_blocked(sn_op op, sn_attr attr, uint32_t inputs) {
  const sn_conv cube = {.channels = 32, .kernel = 3, .pad = 1, .kernel_deep = 3, .pad_deep = 1};
  for (uint32_t threads = 1; threads <= 2; threads++) {
    sn_builder *b = begin_volumes((sn_shape){2, 3, 6, 7}, 5);
    uint32_t from[OP_NET_INPUTS];
    for (uint32_t i = 0; i < inputs; i++) from[i] = sn_build_conv(b, SN_DATA_LAYER, cube, "in%u", i);
    uint32_t x = sn_build_layer(b, op, &attr, from, inputs, "op");
    x = sn_build_conv(b, x, cube, "out");
    sn_build_softmax(b, sn_build_fc(b, x, 2, "fc"), "softmax");
    check_net(finish_net(b), threads, 3 + threads, UINT64_MAX, false);
  }
}

static void blocked_match(void **state) {
  (void)state;
  const sn_attr none = {0};
  for (sn_pool_mode mode = SN_POOL_MAX; mode <= SN_POOL_AVERAGE; mode++) {
    sn_attr cut = adaptive_attr(mode, 4, 5);
    cut.adaptive_d = 3;
    check_blocked(SN_POOL, deep(pool_attr(mode, 3, 2, 1, true), 3, 2, 1, 1), 1);
    check_blocked(SN_POOL, cut, 1);
  }
  check_blocked(SN_CONV, deep(conv_attr(48, 3, 3, 1, 1, 1), 3, 1, 1, 1), 1);
  check_blocked(SN_CONV, deep(conv_attr(64, 3, 3, 1, 1, 32), 3, 1, 1, 1), 1);
  check_blocked(SN_CONV, deep(conv_attr(20, 3, 3, 1, 1, 1), 3, 2, 1, 1), 1); /* to plain */
  check_blocked(SN_DECONV, deep(deconv_attr(32, 2, 2, 2, 0, 0, 1), 2, 2, 0, 1), 1);
  check_blocked(SN_BN, none, 1);
  check_blocked(SN_ACT, prelu_attr(32), 1);
  check_blocked(SN_JOIN, none, 2);
  check_blocked(SN_CONCAT, none, 2);
}

static void draw_side(uint64_t *dice, uint32_t *kernel, uint32_t *stride, uint32_t *pad, uint32_t *dilation) {
  *kernel = 1 + prng_below(dice, 3);
  *stride = 1 + prng_below(dice, 3);
  *pad = prng_below(dice, *kernel);
  *dilation = 1 + prng_below(dice, 2);
}

static sn_attr draw_window(uint64_t *dice, sn_op op, uint32_t planes) {
  static const uint32_t channels[] = {4, 32};
  sn_attr a = {.planes = planes};
  a.channels = channels[prng_below(dice, 2)];
  a.groups = 1 + prng_below(dice, 2);
  a.bias = prng_chance(dice, 50);
  draw_side(dice, &a.kernel_d, &a.stride_d, &a.pad_d, &a.dilation_d);
  draw_side(dice, &a.kernel_h, &a.stride_h, &a.pad_h, &a.dilation_h);
  draw_side(dice, &a.kernel_w, &a.stride_w, &a.pad_w, &a.dilation_w);
  a.output_pad_d = op == SN_DECONV ? prng_below(dice, a.stride_d) : 0;
  a.output_pad_h = op == SN_DECONV ? prng_below(dice, a.stride_h) : 0;
  if (op != SN_POOL) return a;
  a.pool = prng_chance(dice, 50) ? SN_POOL_MAX : SN_POOL_AVERAGE;
  a.ceil = prng_chance(dice, 50);
  if (a.pool == SN_POOL_AVERAGE) a.dilation_d = a.dilation_h = a.dilation_w = 1;
  return a;
}

static void drawn_match(void **state) {
  (void)state;
  static const sn_op ops[] = {SN_CONV, SN_DECONV, SN_POOL};
  uint64_t dice = first_seed(41);
  uint32_t checked = 0;
  for (int i = 0; i < (SANITIZED ? 30 : 150); i++) {
    const sn_op op = ops[i % 3];
    const uint32_t planes = 1 + prng_below(&dice, 6), rows = 1 + prng_below(&dice, 7),
                   columns = 1 + prng_below(&dice, 7);
    const sn_attr a = draw_window(&dice, op, planes);
    const sn_shape volume = {2, 4, planes * rows, columns};
    sn_err err = SN_ERR_INIT;
    sn_shape out;
    if (sn_op_shape(op, &a, &volume, 1, &out, &err) != SN_OK) continue; /* its window is larger than all there is */
    check_net(volumes_net(op, a, (sn_shape){2, 4, rows, columns}, planes, 1), 1 + (uint32_t)i % 2, (uint64_t)i,
              UINT64_MAX, false);
    checked++;
  }
  assert_true(checked > 10);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(convs_match),  cmocka_unit_test(deconvs_match), cmocka_unit_test(pools_match),
      cmocka_unit_test(others_match), cmocka_unit_test(blocked_match), cmocka_unit_test(drawn_match),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
