/* Operators: the rows against the reference, section 1; shapes and counts against published layers; what is refused. */
#include "models/op/op.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

enum { CHECKPOINT = 1, MANY = 2, OFFLOAD = 4, JOINT = 8, ENDS = 16, CONVOLVES = 32, SHIFTS = 64, VOLUMES = 128 };

static void rows_match_reference(void **state) {
  (void)state;
  static const struct {
    sn_op op;
    const char *name;
    int flags;
  } rows[] = {
      {SN_DATA, "DATA", CHECKPOINT | VOLUMES},
      {SN_CONV, "CONV", CHECKPOINT | OFFLOAD | ENDS | CONVOLVES | VOLUMES},
      {SN_FC, "FC", CHECKPOINT | ENDS | VOLUMES},
      {SN_POOL, "POOL", VOLUMES},
      {SN_ACT, "ACT", VOLUMES},
      {SN_LRN, "LRN", VOLUMES},
      {SN_BN, "BN", SHIFTS | VOLUMES},
      {SN_DROPOUT, "DROPOUT", VOLUMES},
      {SN_SOFTMAX, "SOFTMAX", CHECKPOINT | VOLUMES},
      {SN_JOIN, "JOIN", CHECKPOINT | MANY | JOINT | VOLUMES},
      {SN_FORK, "FORK", CHECKPOINT | JOINT | VOLUMES},
      {SN_CONCAT, "CONCAT", CHECKPOINT | MANY | JOINT | VOLUMES},
      {SN_DECONV, "DECONV", CHECKPOINT | OFFLOAD | ENDS | CONVOLVES | VOLUMES},
      {SN_MUL, "MUL", CHECKPOINT | MANY | JOINT | VOLUMES},
      {SN_SCALE, "SCALE", VOLUMES},
      {SN_LAYER_NORM, "LAYER_NORM", SHIFTS | VOLUMES},
      {SN_RMS_NORM, "RMS_NORM", VOLUMES},
      {SN_EMBEDDING, "EMBEDDING", CHECKPOINT},
      {SN_POSITION, "POSITION", 0},
      {SN_TOKEN, "TOKEN", 0},
      {SN_TAKE, "TAKE", 0},
      {SN_ATTENTION, "ATTENTION", CHECKPOINT | MANY},
      {SN_ROTARY, "ROTARY", 0},
      {SN_PROBABILITIES, "PROBABILITIES", VOLUMES},
      {SN_GROUP_NORM, "GROUP_NORM", SHIFTS | VOLUMES},
      {SN_MATMUL, "MATMUL", CHECKPOINT | MANY},
      {SN_RESHAPE, "RESHAPE", VOLUMES},
      {SN_TRANSPOSE, "TRANSPOSE", 0},
      {SN_SLICE, "SLICE", VOLUMES},
      {SN_PAD, "PAD", 0},
      {SN_RESIZE, "RESIZE", 0},
      {SN_EXPERTS, "EXPERTS", 0},
      {SN_GIVEN, "GIVEN", CHECKPOINT | VOLUMES},
      {SN_EXPAND, "EXPAND", 0},
      {SN_RECORDED, "RECORDED", CHECKPOINT},
      {SN_RECORDED_HEAVY, "RECORDED_HEAVY", CHECKPOINT | OFFLOAD | ENDS},
      {SN_RECORDED_CHEAP, "RECORDED_CHEAP", 0},
      {SN_RECORDED_MASKED, "RECORDED_MASKED", 0},
  };
  assert_int_equal(sizeof rows / sizeof rows[0], SN_OP_COUNT);
  for (size_t i = 0; i < SN_OP_COUNT; i++) {
    const sn_op_def *info = sn_op_table[rows[i].op];
    int flags = info->checkpoint * CHECKPOINT + info->many_inputs * MANY + info->offload_paper * OFFLOAD +
                info->offload_joints * JOINT + info->ends_offload * ENDS + info->convolves * CONVOLVES +
                info->shifts * SHIFTS + info->volumes * VOLUMES;
    assert_string_equal(info->name, rows[i].name);
    assert_int_equal(flags, rows[i].flags);
    assert_int_equal(sn_op_by_name(rows[i].name), rows[i].op);
  }
  assert_int_equal(sn_op_by_name("concat"), SN_CONCAT);
  assert_int_equal(sn_op_by_name("CON"), SN_OP_COUNT);
  assert_int_equal(sn_op_by_name(""), SN_OP_COUNT);
}

static sn_attr window(uint32_t kernel, uint32_t stride, uint32_t pad) {
  return (sn_attr){.channels = 64,
                   .groups = 1,
                   .kernel_h = kernel,
                   .kernel_w = kernel,
                   .stride_h = stride,
                   .stride_w = stride,
                   .pad_h = pad,
                   .pad_w = pad};
}

static void windows(void **state) {
  (void)state;
  static const struct {
    sn_op op;
    bool ceil;
    uint32_t in, kernel, stride, pad, out;
  } cases[] = {
      {SN_CONV, 0, 227, 11, 4, 0, 55}, /* AlexNet conv1 */
      {SN_CONV, 0, 224, 7, 2, 3, 112}, /* ResNet stem */
      {SN_CONV, 0, 5, 5, 1, 0, 1},     {SN_CONV, 0, 1, 1, 1, 0, 1},
      {SN_CONV, 0, 1, 1, 1, 1, 3}, /* padding wider than the kernel: windows of padding only */
      {SN_CONV, 1, 6, 3, 2, 0, 2}, /* `ceil` is not a CONV's */
      {SN_POOL, 0, 112, 3, 2, 1, 56},  {SN_POOL, 1, 112, 3, 2, 0, 56},
      {SN_POOL, 0, 112, 3, 2, 0, 55},  {SN_POOL, 1, 6, 3, 2, 0, 3},
      {SN_POOL, 1, 4, 2, 2, 1, 3}, /* starts -1, 1, 3: ends exactly */
      {SN_POOL, 1, 3, 2, 2, 1, 2}, /* a third window would start at 3, in the padding */
      {SN_POOL, 1, 5, 1, 3, 0, 2}, /* a third would start at 6, behind the input */
      {SN_POOL, 0, 5, 1, 3, 0, 2},     {SN_POOL, 1, 7, 7, 9, 0, 1},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    sn_attr a = window(cases[i].kernel, cases[i].stride, cases[i].pad);
    a.ceil = cases[i].ceil;
    sn_shape in = {2, 3, cases[i].in, cases[i].in}, out;
    sn_err err = SN_ERR_INIT;
    assert_int_equal(sn_op_shape(cases[i].op, &a, &in, 1, &out, &err), SN_OK);
    if (out.h != cases[i].out || out.w != cases[i].out) fail_msg("case %zu: %ux%u", i, out.h, out.w);
    assert_int_equal(out.n, 2);
    assert_int_equal(out.c, cases[i].op == SN_CONV ? 64 : 3);
  }
}

/* The definition: as many windows as start at or before the place where one more would not be allowed to. */
static uint32_t count_windows(uint32_t in, uint32_t kernel, uint32_t stride, uint32_t pad, bool ceil) {
  uint32_t count = 0;
  for (uint32_t start = 0;; start += stride, count++) {
    bool whole = start + kernel <= in + 2 * pad;
    bool reaches = start >= stride && start - stride + kernel < in + 2 * pad; /* the last one left something over */
    if (!whole && !(ceil && reaches && start < in + pad)) return count;
    if (ceil && start >= in + pad) return count;
  }
}

static void windows_match_definition(void **state) {
  (void)state;
  for (uint32_t in = 1; in <= 12; in++)
    for (uint32_t kernel = 1; kernel <= 6; kernel++)
      for (uint32_t stride = 1; stride <= 5; stride++)
        for (uint32_t pad = 0; pad < kernel; pad++)
          for (int ceil = 0; ceil <= 1; ceil++) {
            sn_attr a = window(kernel, stride, pad);
            a.ceil = ceil;
            sn_shape shape = {1, 1, in, in}, out;
            sn_err err = SN_ERR_INIT;
            if (sn_op_shape(SN_POOL, &a, &shape, 1, &out, &err) != SN_OK) {
              assert_true(kernel > in + 2 * pad);
              continue;
            }
            if (out.h != count_windows(in, kernel, stride, pad, ceil))
              fail_msg("in %u kernel %u stride %u pad %u ceil %d: %u", in, kernel, stride, pad, ceil, out.h);
          }
}

/* Of all outputs of a DECONV, its input is what a CONV of the same windows makes; output_pad tells them apart. */
static void transposed_windows(void **state) {
  (void)state;
  uint32_t cases = 0;
  for (uint32_t out = 1; out <= 12; out++)
    for (uint32_t kernel = 1; kernel <= 6; kernel++)
      for (uint32_t stride = 1; stride <= 5; stride++)
        for (uint32_t pad = 0; pad < kernel; pad++) {
          sn_attr a = window(kernel, stride, pad);
          sn_shape shape = {2, 3, out, out}, in, again;
          sn_err err = SN_ERR_INIT;
          if (sn_op_shape(SN_CONV, &a, &shape, 1, &in, &err) != SN_OK) continue;
          a.channels = 3;
          a.output_pad_h = a.output_pad_w = (out + 2 * pad - kernel) % stride;
          assert_int_equal(sn_op_shape(SN_DECONV, &a, &in, 1, &again, &err), SN_OK);
          assert_memory_equal(&again, &shape, sizeof shape);
          cases++;
        }
  assert_true(cases > 500);
}

static void other_shapes(void **state) {
  (void)state;
  const sn_shape in[] = {{2, 6, 4, 5}, {2, 3, 4, 5}, {2, 6, 4, 5}};
  sn_shape out;
  sn_err err = SN_ERR_INIT;
  sn_attr a = window(1, 1, 0);
  a.kernel_w = 3, a.stride_w = 2, a.pad_w = 1;
  assert_int_equal(sn_op_shape(SN_CONV, &a, in, 1, &out, &err), SN_OK);
  assert_true(out.h == 4 && out.w == 3);
  assert_int_equal(sn_op_shape(SN_FC, &a, in, 1, &out, &err), SN_OK);
  assert_true(out.n == 2 && out.c == 64 && out.h == 1 && out.w == 1);
  assert_int_equal(sn_op_shape(SN_CONCAT, &a, in, 3, &out, &err), SN_OK);
  assert_true(out.c == 15 && out.h == 4 && out.w == 5);
  assert_int_equal(sn_op_shape(SN_JOIN, &a, (const sn_shape[]){in[0], in[2]}, 2, &out, &err), SN_OK);
  assert_memory_equal(&out, &in[0], sizeof out);
  a.global = true;
  assert_int_equal(sn_op_shape(SN_POOL, &a, in, 1, &out, &err), SN_OK);
  assert_true(out.c == 6 && out.h == 1 && out.w == 1);
}

typedef struct bad_use {
  sn_op op;
  sn_attr attr;
  sn_shape inputs[2];
  uint32_t count;
  const char *text;
} bad_use;

static void check_refusals(const bad_use *cases, size_t count) {
  for (size_t i = 0; i < count; i++) {
    sn_shape out;
    sn_err err = SN_ERR_INIT;
    assert_int_equal(sn_op_shape(cases[i].op, &cases[i].attr, cases[i].inputs, cases[i].count, &out, &err),
                     SN_BAD_INPUT);
    if (!strstr(err.text, cases[i].text)) fail_msg("\"%s\" is not in \"%s\"", cases[i].text, err.text);
  }
}

static void refuses(void **state) {
  (void)state;
  const sn_shape image = {2, 6, 5, 5};
  const bad_use cases[] = {
      {SN_CONV, window(11, 1, 0), {image}, 1, "kernel 11x11 is larger than its padded input 5x5"},
      {SN_CONV, window(0, 1, 0), {image}, 1, "kernel 0 is not from 1"},
      {SN_CONV, window(1, 0, 0), {image}, 1, "stride 0 is not from 1"},
      {SN_CONV, window(1, 1, UINT32_MAX), {image}, 1, "pad 4294967295 is not from 0"},
      {SN_CONV, {.groups = 1, .kernel_h = 1, .kernel_w = 1}, {image}, 1, "channels 0 is not from 1"},
      {SN_CONV,
       {.channels = 8, .groups = 4, .kernel_h = 1, .kernel_w = 1, .stride_h = 1, .stride_w = 1},
       {image},
       1,
       "groups 4 does not divide its 6 input and 8 output channels"},
      {SN_DECONV, window(0, 1, 0), {image}, 1, "kernel 0 is not from 1"},
      {SN_DECONV, window(3, 1, 4), {image}, 1, "its output has -1 rows or columns, (5 - 1) x 1 + 3 + 0 - 2 x 4, which"},
      {SN_DECONV, window(SN_MAX_DIM, SN_MAX_DIM, 0), {image}, 1, "its output has 83886080 rows or columns"},
      {SN_DECONV,
       {.channels = 8, .groups = 2, .kernel_h = 1, .kernel_w = 1, .stride_h = 3, .stride_w = 2, .output_pad_w = 2},
       {image},
       1,
       "output_pad 2 is not smaller than stride 2"},
      {SN_DECONV,
       {.channels = 8, .groups = 3, .kernel_h = 1, .kernel_w = 1, .stride_h = 1, .stride_w = 1},
       {image},
       1,
       "groups 3 does not divide its 6 input and 8 output channels"},
      {SN_ACT, {.act = SN_ACT_LEAKY, .slope = -0.1}, {image}, 1, "slope -0.1 is not 0 or more"},
      {SN_FC, {.channels = 0}, {image}, 1, "channels 0"},
      {SN_POOL, window(3, 1, 3), {image}, 1, "pad 3x3 is not smaller than kernel 3x3"},
      {SN_LRN, {.lrn_size = 4, .lrn_beta = 1, .lrn_k = 1}, {image}, 1, "size 4 is even"},
      {SN_LRN, {.lrn_size = 5, .lrn_beta = 1, .lrn_k = 0}, {image}, 1, "k above 0"},
      {SN_DROPOUT, {.ratio = 1}, {image}, 1, "ratio 1 is not from 0 to below 1"},
      {SN_SOFTMAX, {0}, {image}, 1, "5x5 pixels; put an FC or a global POOL before it"},
      {SN_POOL, {.adaptive_h = 3}, {image}, 1, "adaptive 0 is not from 1"},
      {SN_JOIN, {0}, {image}, 1, "JOIN takes two or more inputs, not 1"},
      {SN_CONCAT, {0}, {image}, 0, "CONCAT takes one or more inputs, not 0"},
      {SN_ACT, {0}, {image, image}, 2, "ACT takes one input, not 2"},
      {SN_BN, {0}, {image}, 0, "BN takes one input, not 0"},
      {SN_JOIN, {0}, {image, {2, 3, 5, 5}}, 2, "input 1 is 6x5x5, input 2 is 3x5x5"},
      {SN_CONCAT, {0}, {image, {2, 6, 5, 4}}, 2, "input 1 is 6x5x5, input 2 is 6x5x4"},
      {SN_ATTENTION, {.heads = 4, .kv_heads = 3}, {image}, 1, "kv_heads 3 does not divide heads 4"},
      {SN_ATTENTION, {.heads = 4, .kv_heads = 4}, {image}, 1, "6 channels cannot be shared by 12 heads"},
      {SN_GIVEN, {.shape = {3, 0, 1}}, {image}, 1, "height 0 is not from 1"},
      {SN_EXPAND, {.shape = {1, 1, 1}}, {image}, 1, "only sides of 1 can be repeated"},
      {SN_EXPERTS, {.channels = 4, .experts = 2, .chosen = 3}, {image}, 1, "chosen 3 is more than experts 2"},
      {SN_EXPERTS, {.channels = 4, .experts = 8, .chosen = 4}, {image}, 1, "6 channels are not a part for each of 4"},
      {SN_EXPERTS, {.channels = 4, .experts = 8}, {image}, 1, "chosen 0 is not from 1"},
      {SN_ATTENTION, {.heads = 0, .kv_heads = 4}, {image}, 1, "heads 0 is not from 1"},
      {SN_ATTENTION, {.heads = 2, .kv_heads = 2, .parts = true, .cap = -1}, {image}, 1, "cap -1 is not from 0"},
      {SN_ATTENTION, {.heads = 2, .kv_heads = 2, .cap = 50}, {image}, 1, "capped in an ATTENTION of \"parts\": true"},
      {SN_ATTENTION, {.heads = 2, .kv_heads = 2, .parts = true, .ratio = 0.1, .cap = 50}, {image}, 1, "drops no prob"},
      {SN_ATTENTION,
       {.heads = 2, .kv_heads = 2, .window = 5, .shift = 5},
       {image},
       1,
       "a shift of 5 is not smaller than windows of 5x5"},
      {SN_ATTENTION,
       {.heads = 2, .kv_heads = 2, .shift = 1},
       {image},
       1,
       "a shift of 1 is not smaller than windows of 0x0"},
      {SN_ATTENTION,
       {.heads = 2, .kv_heads = 2, .window = 5, .rows = 80},
       {image},
       1,
       "a table of 80 rows, but windows of 5x5 have 81 distances"},
      {SN_ATTENTION, {.heads = 2, .kv_heads = 2, .window = 2}, {image}, 1, "windows of 2x2 do not fill 5x5 positions"},
      {SN_ATTENTION, {.heads = 2, .kv_heads = 2}, {image, image}, 2, "ATTENTION takes queries, keys and values"},
      {SN_EMBEDDING,
       {.rows = 10, .channels = 4},
       {image},
       1,
       "EMBEDDING looks tokens up, but its input has 6 channels"},
      {SN_EMBEDDING, {.channels = 4}, {{2, 1, 5, 1}}, 1, "vocabulary 0 is not from 1"},
      {SN_ROTARY, {0}, {{2, 3, 5, 5}}, 1, "pairs of channels of each head: 3 channels cannot be"},
      {SN_CONCAT, {0}, {{1, SN_MAX_DIM, 1, 1}, {1, 1, 1, 1}}, 2, "more than 16777216 channels"},
  };
  check_refusals(cases, sizeof cases / sizeof cases[0]);
}

static void refuses_arrangements(void **state) {
  (void)state;
  const sn_shape image = {2, 6, 5, 5};
  const bad_use cases[] = {
      {SN_CONV,
       {.channels = 8, .groups = 1, .kernel_h = 3, .kernel_w = 1, .stride_h = 1, .stride_w = 1, .dilation_h = 3},
       {image},
       1,
       "kernel 7x1, dilated, is larger than its padded input 5x5"},
      {SN_GROUP_NORM, {.groups = 4}, {image}, 1, "groups 4 does not divide its 6 channels"},
      {SN_GROUP_NORM, {0}, {image}, 1, "groups 0 is not from 1"},
      {SN_MATMUL, {0}, {image}, 1, "MATMUL takes two or more inputs, not 1"},
      {SN_MATMUL,
       {0},
       {image, {2, 6, 4, 5}},
       2,
       "6 matrices of 5x5 by 6 of 4x5: it needs as many, and as many columns"},
      {SN_MATMUL, {0}, {image, {2, 3, 5, 5}}, 2, "6 matrices of 5x5 by 3 of 5x5"},
      {SN_RESHAPE, {.shape = {7, 0, 5}}, {image}, 1, "6x5x5 cannot become 7x0x5"},
      {SN_RESHAPE, {.shape = {0, 0, 5}}, {image}, 1, "6x5x5 cannot become 0x0x5"},
      {SN_RESHAPE, {.shape = {6, 5, 6}}, {image}, 1, "6x5x5 cannot become 6x5x6"},
      {SN_RESHAPE, {.shape = {SN_MAX_DIM, SN_MAX_DIM, SN_MAX_DIM}}, {image}, 1, "another number of elements"},
      {SN_TRANSPOSE, {0}, {image}, 1, "axes must name channels, height and width once each"},
      {SN_SLICE, {.axis = SN_SIDE_HEIGHT, .first = 3, .count = 3}, {image}, 1, "3 from number 3 on, but there are 5"},
      {SN_SLICE, {.count = UINT32_MAX, .first = 2}, {image}, 1, "but there are 6"},
      {SN_SLICE, {0}, {image}, 1, "it takes 0 from number 0 on"},
      {SN_PAD, {.pad_w = SN_MAX_DIM}, {image}, 1, "its output has 33554437 rows or columns, more than 16777216"},
      {SN_RESIZE, {.scale = SN_MAX_DIM}, {image}, 1, "5 x scale 16777216 is not from 1"},
      {SN_RESIZE, {0}, {image}, 1, "5 x scale 0 is not from 1"},
      {SN_RESIZE, {.shape = {0, 4, 0}}, {image}, 1, "size 0 is not from 1"},
  };
  check_refusals(cases, sizeof cases / sizeof cases[0]);
}

static void bytes_and_limits(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  uint64_t bytes;
  assert_int_equal(sn_shape_bytes((sn_shape){200, 96, 55, 55}, &bytes, &err), SN_OK);
  assert_int_equal(bytes, 200ull * 96 * 55 * 55 * 4);
  assert_int_equal(sn_shape_bytes((sn_shape){1 << 24, 1 << 24, 1 << 2, 1}, &bytes, &err), SN_OK);
  assert_int_equal(bytes, SN_MAX_NET_BYTES);
  const sn_shape bad[] = {
      {0, 1, 1, 1}, {1, 1, 1, SN_MAX_DIM + 1}, {1 << 24, 1 << 24, 1 << 2, 2}, {1 << 24, 1 << 24, 1 << 24, 1 << 24}};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    sn_err fresh = SN_ERR_INIT;
    assert_int_equal(sn_shape_bytes(bad[i], &bytes, &fresh), SN_BAD_INPUT);
  }
}

static void measures(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_attr narrow = window(5, 1, 2), wide = window(5, 2, 2);
  narrow.groups = wide.groups = 2;
  narrow.bias = wide.bias = true;
  sn_layer conv = {.op = SN_CONV, .attr = &narrow, .out = {10, 64, 27, 27}};
  assert_int_equal(sn_op_measure(&conv, (sn_shape){10, 96, 27, 27}, &err), SN_OK);
  assert_int_equal(conv.parameters, 64 * 48 * 25 + 64);
  assert_int_equal(conv.macs, 10ull * 64 * 48 * 25 * 27 * 27);
  sn_layer deconv = {.op = SN_DECONV, .attr = &wide, .out = {10, 64, 14, 14}};
  assert_int_equal(sn_op_measure(&deconv, (sn_shape){10, 96, 7, 7}, &err), SN_OK);
  assert_int_equal(deconv.parameters, 96 * 32 * 25 + 64);
  assert_int_equal(deconv.macs, 10ull * 96 * 32 * 25 * 7 * 7);
  sn_layer fc = {.op = SN_FC, .attr = &(sn_attr){.channels = 4096}, .out = {10, 4096, 1, 1}};
  assert_int_equal(sn_op_measure(&fc, (sn_shape){10, 256, 6, 6}, &err), SN_OK);
  assert_int_equal(fc.parameters, 4096 * 9216);
  assert_int_equal(fc.macs, 10ull * 4096 * 9216);
  sn_layer bn = {.op = SN_BN, .out = {10, 64, 7, 7}};
  assert_int_equal(sn_op_measure(&bn, bn.out, &err), SN_OK);
  assert_true(bn.parameters == 128 && bn.statistics_bytes == 64 * 16 && bn.macs == 0);
  sn_layer drop = {.op = SN_DROPOUT, .attr = &(sn_attr){0}, .out = {10, 64, 7, 7}};
  assert_int_equal(sn_op_measure(&drop, drop.out, &err), SN_OK);
  assert_true(drop.mask_bytes == 10 * 64 * 49 && drop.parameters == 0);
}

static void measures_within_limits(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT, macs = SN_ERR_INIT;
  sn_layer fc = {.op = SN_FC, .attr = &(sn_attr){.channels = SN_MAX_DIM}, .out = {1, SN_MAX_DIM, 1, 1}};
  assert_int_equal(sn_op_measure(&fc, (sn_shape){1, SN_MAX_DIM, SN_MAX_DIM, 1}, &err), SN_BAD_INPUT);
  assert_non_null(strstr(err.text, "parameters"));
  const sn_attr wide = window(1000, 1, 0);
  sn_layer conv = {.op = SN_CONV, .attr = &wide, .out = {4, 64, 10000, 10000}};
  assert_int_equal(sn_op_measure(&conv, (sn_shape){4, 64, 10999, 10999}, &macs), SN_BAD_INPUT);
  assert_non_null(strstr(macs.text, "multiply-adds"));
}

/* Keys that are not as many as queries, which have no order among these. */
static void check_keys(sn_shape x) {
  const sn_shape keys = {2, 96, 7, 1};
  sn_attr a = {.heads = 6, .kv_heads = 6, .keys = 7, .parts = true};
  sn_shape out;
  sn_err err = SN_ERR_INIT;
  assert_int_equal(sn_op_shape(SN_ATTENTION, &a, (const sn_shape[]){x, keys, keys}, 3, &out, &err), SN_OK);
  assert_memory_equal(&out, &x, sizeof out);
  sn_layer crossed = {.op = SN_ATTENTION, .attr = &a, .out = x};
  assert_int_equal(sn_op_measure(&crossed, x, &err), SN_OK);
  assert_true(crossed.macs == 2 * 2 * 50 * 7 * 96 && crossed.statistics_bytes == 2 * 6 * 50 * 7 * 4);
  assert_non_null(sn_op_table[SN_ATTENTION]->simulated_only(&a));
  a.keys = 6;
  assert_int_equal(sn_op_shape(SN_ATTENTION, &a, (const sn_shape[]){x, keys, keys}, 3, &out, &err), SN_BAD_INPUT);
  a = (sn_attr){.heads = 6, .kv_heads = 6, .keys = 7, .causal = true};
  err = (sn_err)SN_ERR_INIT;
  assert_int_equal(sn_op_shape(SN_ATTENTION, &a, (const sn_shape[]){x, keys, keys}, 3, &out, &err), SN_BAD_INPUT);
  assert_non_null(strstr(err.text, "has three inputs, is not causal"));
  a.keys = 0;
  assert_null(sn_op_table[SN_ATTENTION]->simulated_only(&a));
}

static void sequences(void **state) {
  (void)state;
  const sn_shape x = {2, 96, 50, 1}, keys = {2, 32, 50, 1}, ids = {2, 1, 50, 1};
  const sn_shape packed = {2, 96 + 2 * 32, 50, 1}, image = {2, 96, 7, 7};
  sn_shape out;
  sn_err err = SN_ERR_INIT;
  sn_attr a = {.heads = 6, .kv_heads = 2};
  assert_int_equal(sn_op_shape(SN_ATTENTION, &a, (const sn_shape[]){x, keys, keys}, 3, &out, &err), SN_OK);
  assert_memory_equal(&out, &x, sizeof out);
  assert_int_equal(sn_op_shape(SN_ATTENTION, &a, &packed, 1, &out, &err), SN_OK);
  assert_memory_equal(&out, &x, sizeof out);
  sn_layer fused = {.op = SN_ATTENTION, .attr = &a, .out = x};
  assert_int_equal(sn_op_measure(&fused, x, &err), SN_OK);
  assert_true(fused.macs == 2 * 2 * 50 * 50 * 96 && fused.parameters == 0);
  assert_int_equal(fused.statistics_bytes, 2 * 6 * 50 * 4 + 16);
  a.parts = true;
  assert_int_equal(sn_op_measure(&fused, x, &err), SN_OK);
  assert_int_equal(fused.statistics_bytes, 2 * 6 * 50 * 50 * 4);
  a.ratio = 0.1;
  assert_int_equal(sn_op_measure(&fused, x, &err), SN_OK);
  assert_int_equal(fused.statistics_bytes, 2 * 6 * 50 * 50 * 9);
  a.ratio = 0;
  a.cap = 50;
  assert_int_equal(sn_op_measure(&fused, x, &err), SN_OK);
  assert_int_equal(fused.statistics_bytes, 2 * 6 * 50 * 50 * 8);
  assert_int_equal(sn_op_shape(SN_EMBEDDING, &(sn_attr){.rows = 1000, .channels = 8}, &ids, 1, &out, &err), SN_OK);
  assert_true(out.n == 2 && out.c == 8 && out.h == 50 && out.w == 1);
  sn_layer table = {.op = SN_EMBEDDING, .attr = &(sn_attr){.rows = 1000, .channels = 8}, .out = out};
  assert_int_equal(sn_op_measure(&table, ids, &err), SN_OK);
  assert_int_equal(table.parameters, 8000);
  assert_int_equal(sn_op_shape(SN_TOKEN, &a, &image, 1, &out, &err), SN_OK);
  assert_true(out.c == 96 && out.h == 50 && out.w == 1);
  assert_int_equal(sn_op_shape(SN_TAKE, &a, &x, 1, &out, &err), SN_OK);
  assert_true(out.c == 96 && out.h == 1 && out.w == 1);
  const sn_attr given = {.shape = {7, 3, 2}}, wide = {.shape = {7, 3, 6}};
  assert_int_equal(sn_op_shape(SN_GIVEN, &given, &x, 1, &out, &err), SN_OK);
  assert_true(out.n == 2 && out.c == 7 && out.h == 3 && out.w == 2);
  assert_int_equal(sn_op_shape(SN_EXPAND, &wide, &(sn_shape){2, 7, 1, 6}, 1, &out, &err), SN_OK);
  assert_true(out.n == 2 && out.c == 7 && out.h == 3 && out.w == 6);
  check_keys(x);
  a = (sn_attr){.channels = 24, .experts = 8, .chosen = 2};
  assert_int_equal(sn_op_shape(SN_EXPERTS, &a, &x, 1, &out, &err), SN_OK);
  assert_true(out.n == 2 && out.c == 48 && out.h == 50 && out.w == 1);
  sn_layer experts = {.op = SN_EXPERTS, .attr = &a, .out = out};
  assert_int_equal(sn_op_measure(&experts, x, &err), SN_OK);
  assert_true(experts.parameters == 8 * 48 * 24 && experts.macs == UINT64_C(2) * 50 * 2 * 48 * 24);
  sn_layer norm = {.op = SN_RMS_NORM, .out = x};
  assert_int_equal(sn_op_measure(&norm, x, &err), SN_OK);
  assert_true(norm.parameters == 96 && norm.statistics_bytes == 2 * 50 * 4);
}

static sn_shape shape_of(sn_op op, sn_attr attr, const sn_shape *inputs, uint32_t count) {
  sn_shape out;
  sn_err err = SN_ERR_INIT;
  if (sn_op_shape(op, &attr, inputs, count, &out, &err)) fail_msg("%s", err.text);
  return out;
}

#define assert_is(shape, N, C, H, W)                                                                                   \
  assert_true((shape).n == (N) && (shape).c == (C) && (shape).h == (H) && (shape).w == (W))

static sn_attr tall_pool(sn_pool_mode mode, uint32_t dilation, uint32_t pad) {
  return (sn_attr){
      .pool = mode, .kernel_h = 3, .kernel_w = 1, .stride_h = 1, .stride_w = 1, .dilation_h = dilation, .pad_h = pad};
}

static void later_forms_are_checked(void **state) {
  (void)state;
  const sn_shape image = {.n = 2, .c = 6, .h = 5, .w = 5};
  const struct {
    sn_op op;
    sn_attr attr;
    const char *text;
  } cases[] = {
      {SN_ACT, {.act = SN_ACT_PRELU, .slopes = 3}, "slopes 3 is neither 1 nor the number of its channels, 6"},
      {SN_ACT, {.act = SN_ACT_PRELU}, "slopes 0 is neither"},
      {SN_POOL, tall_pool(SN_POOL_MAX, 3, 0), "kernel 7x1, dilated, is larger than its padded input 5x5"},
      {SN_POOL, tall_pool(SN_POOL_AVERAGE, 2, 0), "an average POOL has no dilation"},
      {SN_POOL, tall_pool(SN_POOL_MAX, 6, 6), "or that larger than the image: a window would see padding only"},
      {SN_SLICE, {.count = 3, .step = 3}, "it takes 3, 3 apart, from number 0 on, but there are 6"},
      {SN_SLICE, {.count = UINT32_MAX, .step = UINT32_MAX}, "but there are 6"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    sn_err err = SN_ERR_INIT;
    sn_shape out;
    assert_int_equal(sn_op_shape(cases[i].op, &cases[i].attr, &image, 1, &out, &err), SN_BAD_INPUT);
    if (!strstr(err.text, cases[i].text)) fail_msg("\"%s\" is not in \"%s\"", cases[i].text, err.text);
  }
}

static void arrangements(void **state) {
  (void)state;
  const sn_shape x = {2, 6, 4, 10}, second = {2, 6, 3, 10}, turned = {2, 6, 10, 3};
  assert_is(shape_of(SN_RESHAPE, (sn_attr){.shape = {3, 0, 5}}, &x, 1), 2, 3, 16, 5);
  assert_is(shape_of(SN_RESHAPE, (sn_attr){.shape = {240, 1, 1}}, &x, 1), 2, 240, 1, 1);
  const sn_attr wch = {.axes = {SN_SIDE_WIDTH, SN_SIDE_CHANNELS, SN_SIDE_HEIGHT}};
  assert_is(shape_of(SN_TRANSPOSE, wch, &x, 1), 2, 10, 6, 4);
  const sn_attr last = {.axis = SN_SIDE_WIDTH, .first = 7, .count = 3};
  assert_is(shape_of(SN_SLICE, last, &x, 1), 2, 6, 4, 3);
  const sn_attr fourth = {.axis = SN_SIDE_WIDTH, .first = 1, .count = 3, .step = 4, .turned = true};
  assert_is(shape_of(SN_SLICE, fourth, &x, 1), 2, 6, 4, 3);
  assert_is(shape_of(SN_PAD, (sn_attr){.pad_h = 2, .output_pad_w = 1}, &x, 1), 2, 6, 8, 11);
  assert_is(shape_of(SN_RESIZE, (sn_attr){.scale = 3}, &x, 1), 2, 6, 12, 30);
  assert_is(shape_of(SN_RESIZE, (sn_attr){.shape = {0, 7, 1}}, &x, 1), 2, 6, 7, 1);
  assert_is(shape_of(SN_PROBABILITIES, (sn_attr){.axis = SN_SIDE_WIDTH}, &x, 1), 2, 6, 4, 10);
  const sn_attr by_rows = {.turn_second = true}, both = {.turn_first = true, .turn_second = true};
  assert_is(shape_of(SN_MATMUL, by_rows, (const sn_shape[]){x, second}, 2), 2, 6, 4, 3);
  assert_is(shape_of(SN_MATMUL, (sn_attr){0}, (const sn_shape[]){x, turned}, 2), 2, 6, 4, 3);
  assert_is(shape_of(SN_MATMUL, both, (const sn_shape[]){turned, x}, 2), 2, 6, 3, 4);
  sn_attr dilated = window(3, 2, 1);
  dilated.dilation_h = 2;
  dilated.dilation_w = 4;
  assert_is(shape_of(SN_CONV, dilated, &x, 1), 2, 64, 1, 2); /* reaches 5 of 6, 9 of 12 */
  assert_is(shape_of(SN_POOL, dilated, &x, 1), 2, 6, 1, 2);
  assert_is(shape_of(SN_DECONV, dilated, &x, 1), 2, 64, 3 * 2 + 5 - 2, 9 * 2 + 9 - 2);
}

static void arrangements_measured(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_layer product = {.op = SN_MATMUL, .attr = &(sn_attr){.turn_first = true}, .out = {2, 6, 3, 5}};
  assert_int_equal(sn_op_measure(&product, (sn_shape){2, 6, 10, 3}, &err), SN_OK);
  assert_true(product.macs == 2 * 6 * 3 * 5 * 10 && product.parameters == 0);
  sn_layer norm = {.op = SN_GROUP_NORM, .attr = &(sn_attr){.groups = 3}, .out = {2, 6, 4, 10}};
  assert_int_equal(sn_op_measure(&norm, norm.out, &err), SN_OK);
  assert_true(norm.parameters == 12 && norm.statistics_bytes == 2 * 2 * 3 * 4);
  sn_layer huge = {.op = SN_MATMUL, .attr = &(sn_attr){0}, .out = {1, 1, SN_MAX_DIM, SN_MAX_DIM}};
  assert_int_equal(sn_op_measure(&huge, (sn_shape){1, 1, SN_MAX_DIM, SN_MAX_DIM}, &err), SN_BAD_INPUT);
  assert_non_null(strstr(err.text, "multiply-adds"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(refuses_arrangements),
      cmocka_unit_test(later_forms_are_checked),
      cmocka_unit_test(arrangements),
      cmocka_unit_test(arrangements_measured),
      cmocka_unit_test(rows_match_reference),
      cmocka_unit_test(windows),
      cmocka_unit_test(windows_match_definition),
      cmocka_unit_test(transposed_windows),
      cmocka_unit_test(other_shapes),
      cmocka_unit_test(refuses),
      cmocka_unit_test(sequences),
      cmocka_unit_test(bytes_and_limits),
      cmocka_unit_test(measures),
      cmocka_unit_test(measures_within_limits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
