/* Batches that are cut into chunks of images, on a fake GPU whose tensors of several images may have few elements:
 * every operator, and networks of them, against the reference kernels; strategies against each other; what cannot be
 * cut. And on the usual one the real limit, which no test can fill. */
#include "exec/kernel/kernel_internal.h"
#include "tests/exec/kernel/op_net.h"
#include "tests/exec/machine/cuda_fixture.h"

static void check_idle(const fake_cuda *fake) {
  assert_string_equal(fake->complaint, "");
  assert_int_equal(fake->live, 0);
}

static uint64_t elements(sn_shape s) {
  return (uint64_t)s.n * s.c * s.h * s.w;
}

static bool must_be_cut(const sn_net *net, uint32_t layer) {
  const sn_layer *l = &net->layers[layer];
  return elements(l->out) > SNSIM_CHUNK_ELEMENTS || elements(sn_layer_input_shape(net, l, 0)) > SNSIM_CHUNK_ELEMENTS;
}

static bool has_described(const fake_cuda *fake, uint32_t images) {
  return fake->batches >> images & 1;
}

/* Whether tensors of several images have been described, of a number that does not divide the batch: the last chunk has
 * another one. */
static bool is_uneven(const fake_cuda *fake, uint32_t batch) {
  for (uint32_t images = 2; images < batch; images++)
    if (batch % images > 0 && has_described(fake, images)) return true;
  return false;
}

/* ---- operators ---- */

/* The net is gone afterwards. */
static void check_net(sn_net *net, const char *strategy, sn_workspace workspace, double tolerance) {
  fake_cuda *fake = cuda_fake_chunks();
  cuda_lab lab = cuda_lab_open(net, strategy, workspace, UINT64_MAX);
  assert_true(is_uneven(fake, net->batch));
  cuda_agrees(&lab, 2, cuda_elements(tolerance));
  cuda_lab_close(&lab);
  check_idle(fake);
}

static void check_operator(sn_op op, sn_attr attr, sn_shape data, uint32_t inputs) {
  sn_net *net = op_net(op, attr, data, inputs);
  assert_true(must_be_cut(net, op_net_layer(net, op)));
  check_net(net, "baseline", SN_WORKSPACE_NONE, 2e-5);
  check_net(op_net(op, attr, data, inputs), "liveness+recompute=speed", SN_WORKSPACE_MAX, 2e-5);
}

/* Behind another CONV: one that reads the batch makes no gradient for it. */
static sn_net *conv_net(sn_attr attr, sn_shape data) {
  sn_builder *b = begin_net(data);
  uint32_t x = sn_build_conv(b, SN_DATA_LAYER, (sn_conv){.channels = data.c, .kernel = 1}, "in");
  x = sn_build_layer(b, SN_CONV, &attr, &x, 1, "op");
  sn_build_softmax(b, sn_build_fc(b, x, 2, "fc"), "softmax");
  return finish_net(b);
}

static void check_conv(sn_attr attr, sn_shape data) {
  for (sn_workspace w = SN_WORKSPACE_NONE; w < SN_WORKSPACE_COUNT; w++) {
    sn_net *net = conv_net(attr, data);
    assert_true(must_be_cut(net, op_net_layer(net, SN_CONV) + 1));
    check_net(net, "liveness", w, 2e-5);
  }
}

static void linear_matches(void **state) {
  (void)state;
  check_conv(conv_attr(6, 3, 3, 1, 1, 1), (sn_shape){11, 4, 24, 24});
  check_conv(conv_attr(6, 3, 3, 1, 1, 1), (sn_shape){9, 3, 25, 25});  /* the last chunk is one image */
  check_conv(conv_attr(4, 3, 5, 2, 1, 2), (sn_shape){11, 6, 19, 27}); /* images of odd size */
  check_conv(conv_attr(16, 1, 1, 1, 0, 1), (sn_shape){23, 1, 8, 9});  /* the output is larger */
  check_conv(conv_attr(16, 3, 3, 1, 1, 16), (sn_shape){11, 16, 10, 10});
  check_operator(SN_FC, (sn_attr){.channels = 34, .bias = true}, (sn_shape){22, 13, 9, 9}, 1);
  check_operator(SN_FC, (sn_attr){.channels = 700}, (sn_shape){27, 10, 1, 1}, 1);
}

static void pool_matches(void **state) {
  (void)state;
  for (sn_pool_mode mode = SN_POOL_MAX; mode <= SN_POOL_AVERAGE; mode++) {
    check_operator(SN_POOL, pool_attr(mode, 3, 2, 1, true), (sn_shape){11, 4, 24, 22}, 1);
    check_operator(SN_POOL, pool_attr(mode, 3, 1, 1, false), (sn_shape){23, 5, 13, 15}, 1);
    check_operator(SN_POOL, global_attr(mode), (sn_shape){19, 33, 7, 7}, 1);
  }
}

static void others_match(void **state) {
  (void)state;
  check_operator(SN_LRN, lrn_attr(5, 1e-4, 0.75, 2), (sn_shape){22, 16, 9, 9}, 1);
  check_operator(SN_LRN, lrn_attr(3, 0.5, 1.3, 0.5), (sn_shape){22, 3, 15, 17}, 1);
  check_operator(SN_ACT, (sn_attr){0}, (sn_shape){22, 5, 13, 17}, 1);
  check_operator(SN_ACT, (sn_attr){.act = SN_ACT_RELU6}, (sn_shape){27, 5, 12, 13}, 1);
  check_operator(SN_DROPOUT, (sn_attr){.ratio = 0.5}, (sn_shape){22, 10, 9, 11}, 1);
  check_operator(SN_JOIN, (sn_attr){0}, (sn_shape){22, 7, 11, 11}, 2);
  check_operator(SN_JOIN, (sn_attr){0}, (sn_shape){22, 11, 9, 8}, 3);
  check_operator(SN_FORK, (sn_attr){0}, (sn_shape){22, 11, 9, 8}, 1);
  check_operator(SN_CONCAT, (sn_attr){0}, (sn_shape){22, 3, 11, 7}, 3);
  check_operator(SN_CONCAT, (sn_attr){0}, (sn_shape){22, 11, 9, 8}, 1);
  check_operator(SN_SOFTMAX, (sn_attr){0}, (sn_shape){22, 750, 1, 1}, 1);
}

/* ---- networks ---- */

enum { CUT_BATCH = 37 };

/* Of every operator that can be cut, every layer so large that it has to be. */
static sn_net *cut_net(void) {
  sn_builder *b = begin_net((sn_shape){CUT_BATCH, 6, 12, 12});
  uint32_t x[2] = {
      sn_build_conv(b, SN_DATA_LAYER, (sn_conv){.channels = 8, .kernel = 1}, "conv1"),
      sn_build_conv(b, SN_DATA_LAYER, (sn_conv){.channels = 8, .kernel = 3, .pad = 1, .groups = 2}, "conv2")};
  uint32_t y = sn_build_lrn(b, sn_build_relu(b, sn_build_join(b, x, 2, "join"), "relu1"), 5, "lrn");
  x[0] = sn_build_pool(b, y, (sn_pooling){.kernel = 3, .pad = 1, .average = true}, "pool1");
  x[1] = sn_build_conv(b, y, (sn_conv){.channels = 8, .kernel = 3, .pad = 1, .no_bias = true}, "conv3");
  y = sn_build_dropout(b, sn_build_relu6(b, sn_build_concat(b, x, 2, "concat"), "relu2"), 0.3, "drop1");
  y = sn_build_pool(b, y, (sn_pooling){.kernel = 2, .stride = 2}, "pool2");
  y = sn_build_dropout(b, sn_build_relu(b, sn_build_fc(b, y, 450, "fc1"), "relu3"), 0.5, "drop2");
  sn_build_softmax(b, sn_build_fc(b, y, 440, "fc2"), "softmax");
  return finish_net(b);
}

/* Of small_inception the BNs are just small enough. */
static void networks_match(void **state) {
  (void)state;
  static const char *const all = "liveness+offload+recompute=cost";
  for (sn_workspace w = SN_WORKSPACE_NONE; w < SN_WORKSPACE_COUNT; w++) {
    check_net(cut_net(), all, w, 1e-4);
    check_net(cuda_net("/tests/nets/small_alexnet.json", 30, 0), all, w, 1e-4);
    check_net(cuda_net("/tests/nets/small_inception.json", 13, 8), all, w, 1e-4);
  }
  check_net(cuda_net("lenet", 33, 0), all, SN_WORKSPACE_DYNAMIC, 1e-4);
}

static void conforms(sn_net *net, uint64_t pool_bytes) {
  fake_cuda *fake = cuda_fake_chunks();
  sn_run *run = cuda_train(net, pool_bytes, fake);
  assert_true(is_uneven(fake, net->batch));
  check_idle(fake);
  cuda_check_run(net, run);
  sn_run_free(run);
  sn_net_free(net);
}

static void strategies_agree(void **state) {
  (void)state;
  cuda_fake_chunks();
  conforms(cut_net(), cuda_tight_pool(cut_net()));
  conforms(cuda_net("lenet", 11, 16), cuda_tight_pool(cuda_net("lenet", 11, 16)));
  conforms(cuda_net("/tests/nets/small_alexnet.json", 11, 0),
           cuda_tight_pool(cuda_net("/tests/nets/small_alexnet.json", 11, 0)));
}

/* A chunk is no longer than its images: nothing is ever as large as the batch. */
static void every_layer_is_cut(void **state) {
  (void)state;
  fake_cuda *fake = cuda_fake_chunks();
  cuda_lab lab = cuda_lab_open(cut_net(), "baseline", SN_WORKSPACE_NONE, UINT64_MAX);
  for (uint32_t i = 1; i < lab.net->n_layers; i++) assert_true(must_be_cut(lab.net, i));
  assert_false(has_described(fake, CUT_BATCH));
  cuda_lab_close(&lab);
}

/* Where all fits there are tensors of one image, parameters, and of the batch, and no others. */
static void what_fits_is_whole(void **state) {
  (void)state;
  fake_cuda *fake = cuda_fake();
  cuda_lab lab = cuda_lab_open(cut_net(), "baseline", SN_WORKSPACE_NONE, UINT64_MAX);
  assert_true(fake->batches == (UINT64_C(1) << 1 | UINT64_C(1) << CUT_BATCH));
  cuda_lab_close(&lab);
}

/* ---- times ---- */

static bool is_no_work(const sn_net *net, const sn_timed_algorithm *a) {
  return a->kernel == SN_CONV_BACKWARD_DATA && sn__reads_batch(net, a->layer);
}

/* A kernel takes the fake at least 500 ns and less than ten times as long: here are twelve. */
static void all_chunks_are_timed(void **state) {
  (void)state;
  enum { IMAGES = 23, CHUNKS = 12, LEAST_NS = 500 };
  fake_cuda *fake = cuda_fake_chunks();
  sn_err err = SN_ERR_INIT;
  sn_net *net = conv_net(conv_attr(8, 3, 3, 1, 1, 1), (sn_shape){IMAGES, 8, 31, 32});
  sn_timed_algorithms timed = {calloc(sn_calibrate_room(net), sizeof *timed.list), 0};
  cuda_lab lab = cuda_lab_open(net, "baseline", SN_WORKSPACE_NONE, UINT64_MAX);
  assert_non_null(timed.list);
  lab.machine.ops->time_algorithms(lab.machine.self, &timed, NULL, NULL, &err);
  cuda_must(&err);
  assert_true(timed.count > 2 * SN_CONV_KERNELS);
  for (uint32_t i = 0; i < timed.count; i++)
    assert_true(is_no_work(net, &timed.list[i]) || timed.list[i].choice.ns >= CHUNKS * LEAST_NS);
  free(timed.list);
  cuda_lab_close(&lab);
  check_idle(fake);
}

/* ---- what cannot be cut ---- */

/* The net is gone afterwards. */
static sn_status open_only(sn_net *net, sn_err *err) {
  sn_machine machine;
  sn_machine_options options = {0};
  sn_route *route = sn_route_new(net, SN_DIALECT_SUPERNEURONS, SN_ORDER_ROUTE, err);
  sn_status status = sn_machine_open_cuda(route, &options, &machine, err);
  if (status == SN_OK) machine.ops->close(machine.self);
  sn_route_free(route);
  sn_net_free(net);
  return status;
}

static void refuses(sn_net *net, const char *text) {
  sn_err err = SN_ERR_INIT;
  assert_int_equal(open_only(net, &err), SN_BAD_DEVICE);
  if (!strstr(err.text, text)) fail_msg("\"%s\" is not in \"%s\"", text, err.text);
}

static void refusals(void **state) {
  (void)state;
  fake_cuda *fake = cuda_fake_chunks();
  sn_err err = SN_ERR_INIT;
  assert_int_equal(open_only(op_net(SN_BN, (sn_attr){0}, (sn_shape){20, 8, 10, 10}, 1), &err), SN_OK);
  refuses(
      op_net(SN_BN, (sn_attr){0}, (sn_shape){21, 8, 10, 10}, 1),
      "layer \"op\": BN is over the whole batch, which cannot be cut, and its 16800 elements are more than the 16000 "
      "that cuDNN counts up to; use a batch of at most 20, smaller images, or --backend cpu");
  refuses(op_net(SN_ACT, (sn_attr){0}, (sn_shape){2, 1, 127, 127}, 1),
          "layer \"op\": its images are too large for cuDNN: 4, the fewest that it can be given at once, have 64516 "
          "elements, and it counts up to 16000; use smaller images, or --backend cpu");
  check_idle(fake);
}

/* ---- the real limit ---- */

/* 2^15 numbers an image behind the CONV, 16 before it. */
static sn_net *huge_net(uint32_t batch, bool bn) {
  sn_builder *b = begin_net((sn_shape){batch, 1, 4, 4});
  uint32_t x = sn_build_conv(b, SN_DATA_LAYER, (sn_conv){.channels = 2048, .kernel = 1}, "conv");
  if (bn) x = sn_build_bn(b, x, "bn");
  x = sn_build_pool(b, sn_build_relu(b, x, "relu"), (sn_pooling){.average = true, .global = true}, "pool");
  sn_build_softmax(b, sn_build_fc(b, x, 2, "fc"), "softmax");
  return finish_net(b);
}

/* cuDNN's descriptors of the whole batch would fail, here as there. */
static void huge_batches_open(void **state) {
  (void)state;
  fake_cuda *fake = cuda_fake();
  sn_err err = SN_ERR_INIT;
  open_only(huge_net(65536, false), &err);
  cuda_must(&err);
  open_only(huge_net(1000003, false), &err);
  cuda_must(&err);
  open_only(huge_net(65535, true), &err);
  cuda_must(&err);
  refuses(
      huge_net(65536, true),
      "layer \"bn\": BN is over the whole batch, which cannot be cut, and its 2147483648 elements are more than the "
      "2147483647 that cuDNN counts up to; use a batch of at most 65535");
  check_idle(fake);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(linear_matches),     cmocka_unit_test(pool_matches),
      cmocka_unit_test(others_match),       cmocka_unit_test(networks_match),
      cmocka_unit_test(strategies_agree),   cmocka_unit_test(every_layer_is_cut),
      cmocka_unit_test(what_fits_is_whole), cmocka_unit_test(all_chunks_are_timed),
      cmocka_unit_test(refusals),           cmocka_unit_test(huge_batches_open),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
