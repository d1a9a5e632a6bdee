/* AlexNet at batch 200 against the reference's table (section 2): peaks to the byte, derived here from the shapes of
 * the tensors that are live at each, with step, layer, tensors and extra forwards; and the extra forwards of the
 * ResNets.
 *
 * Every functional tensor of AlexNet, elements of one image (channels x height x width). CONV: (in + 2 pad - kernel) /
 * stride + 1, so conv1 makes (227 - 11) / 4 + 1 = 55; POOL 3/2 makes 27, 13 and 6 of 55, 27 and 13. */
#include "tests/support/pipeline.h"

#include "sim/ask/simulate.h"

#include <inttypes.h>
#include <stdio.h>

enum {
  DATA = 3 * 227 * 227,
  CONV1 = 96 * 55 * 55, /* also relu1, lrn1 */
  POOL1 = 96 * 27 * 27,
  CONV2 = 256 * 27 * 27, /* also relu2, lrn2 */
  POOL2 = 256 * 13 * 13,
  CONV3 = 384 * 13 * 13, /* also relu3, conv4, relu4 */
  CONV5 = 256 * 13 * 13, /* also relu5 */
  POOL5 = 256 * 6 * 6,
  FC1 = 4096, /* also relu6, drop1, fc2, relu7, drop2 */
  FC3 = 1000, /* also softmax */
  BATCH = 200,
  TENSORS = 36
};

/* Outputs: one a layer, 23 in all. */
#define OUTPUTS (3 * CONV1 + POOL1 + 3 * CONV2 + POOL2 + 4 * CONV3 + 2 * CONV5 + POOL5 + 6 * FC1 + 2 * FC3)
/* New gradients: of CONV, FC, POOL and DROPOUT, as large as their inputs (ACT, LRN and SOFTMAX work in place): conv1-5,
 * fc1-3, pool1, 2, 5, drop1-2, 13 in all. */
#define GRADIENTS ((DATA + POOL1 + POOL2 + CONV3 + CONV3) + (POOL5 + FC1 + FC1) + (CONV1 + CONV2 + CONV5) + (FC1 + FC1))

typedef struct row {
  const char *strategy;
  uint64_t elements; /* of the tensors live at the peak, one image */
  const char *mib;   /* what the reference prints */
  uint32_t step;
  const char *layer, *pass;
  uint32_t live, extra;
} row;

static const row rows[] = {
    /* everything, at every step */
    {"baseline", OUTPUTS + GRADIENTS, "2189.437", 1, "conv1", "forward", TENSORS, 0},
    /* pool5 backward (47 - 15 = 32): outputs of layers 1 to 15, the gradients it reads (of fc1) and makes */
    {"liveness", 3 * CONV1 + POOL1 + 3 * CONV2 + POOL2 + 4 * CONV3 + 2 * CONV5 + POOL5 + POOL5 + CONV5, "1489.355", 32,
     "pool5", "backward", 17, 0},
    /* pool2 backward (47 - 8 = 39): relu1 lrn1 pool1, conv2 (back for relu2) relu2 lrn2 pool2, conv3's gradient, its
       own */
    {"liveness+offload", 2 * CONV1 + POOL1 + 3 * CONV2 + POOL2 + POOL2 + CONV2, "1132.056", 39, "pool2", "backward", 9,
     0},
    /* pool1 backward (43): conv1 and relu1 lrn1 pool1 made again, conv2's gradient, its own */
    {"liveness+offload+recompute=speed", 3 * CONV1 + POOL1 + POOL1 + CONV1, "993.018", 43, "pool1", "backward", 6, 14},
    /* lrn1 backward (44): conv1, relu1 made again, lrn1 kept, the gradient it changes in place */
    {"liveness+offload+recompute=memory", 4 * CONV1, "886.230", 44, "lrn1", "backward", 4, 23},
    {"liveness+offload+recompute=cost", 4 * CONV1, "886.230", 44, "lrn1", "backward", 4, 17},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

/* One strategy on a device of endless memory, so that only the strategy counts. */
static sn_run *run_one(const char *net_spec, uint32_t batch, const char *strategy) {
  sn_err err = SN_ERR_INIT;
  sn_net *net = load_net(net_spec, batch);
  sn_device gpu = load_gpu("k40c");
  sn_strategy s = parse_strategy(strategy);
  sn_options options = {.workspace = SN_WORKSPACE_DYNAMIC, .placement = SN_PLACEMENT_FIRST_FIT};
  options.want_steps = true;
  gpu.memory_bytes = UINT64_C(1) << 50;
  sn_run *run = sn_simulate(net_spec, net, &gpu, &s, 1, &options, &err);
  must(&err);
  sn_net_free(net);
  return run;
}

static void check_row(const row *expected) {
  char mib[40];
  sn_run *run = run_one("alexnet", BATCH, expected->strategy);
  const sn_result *r = &run->results[0];
  if (r->peak_tensor_bytes != expected->elements * BATCH * 4)
    fail_msg("%s: %" PRIu64 " bytes, expected %" PRIu64, expected->strategy, r->peak_tensor_bytes,
             expected->elements * BATCH * 4);
  snprintf(mib, sizeof mib, "%.3f", (double)r->peak_tensor_bytes / 1048576);
  assert_string_equal(mib, expected->mib);
  assert_string_equal(r->strategy, expected->strategy);
  assert_int_equal(r->peak_step, expected->step);
  assert_string_equal(r->peak_layer, expected->layer);
  assert_string_equal(r->peak_pass, expected->pass);
  assert_int_equal(r->live_tensors_at_peak, expected->live);
  assert_int_equal(r->recomputed_layers, expected->extra);
  assert_int_equal(r->tensor_count, TENSORS);
  assert_int_equal(run->layers, 24);
  assert_int_equal(run->n_steps, 46);
  assert_true(r->fits);
  for (uint32_t s = 0; s < r->n_steps; s++) assert_true(r->steps[s].tensor_bytes <= r->peak_tensor_bytes);
  sn_run_free(run);
}

static void table(void **state) {
  (void)state;
  for (size_t i = 0; i < ROWS; i++) check_row(&rows[i]);
}

/* Every step of baseline holds everything. */
static void baseline_is_flat(void **state) {
  (void)state;
  sn_run *run = run_one("alexnet", BATCH, "baseline");
  const sn_result *r = &run->results[0];
  assert_int_equal(r->n_steps, 46);
  for (uint32_t s = 0; s < r->n_steps; s++) {
    assert_true(r->steps[s].tensor_bytes == r->peak_tensor_bytes);
    assert_int_equal(r->steps[s].live_tensors, TENSORS);
  }
  sn_run_free(run);
}

/* Liveness frees nothing during the forward pass: every output is read again, relu6's by its own backward, drop1's as
 * the x of fc2, fc3's as that of softmax. */
static void liveness_forward(void **state) {
  (void)state;
  static const uint32_t outputs[] = {CONV1, CONV1, CONV1, POOL1, CONV2, CONV2, CONV2, POOL2, CONV3, CONV3, CONV3, CONV3,
                                     CONV5, CONV5, POOL5, FC1,   FC1,   FC1,   FC1,   FC1,   FC1,   FC3,   FC3};
  sn_run *run = run_one("alexnet", BATCH, "liveness");
  uint64_t sum = 0;
  for (uint32_t i = 0; i < 23; i++) {
    sum += (uint64_t)outputs[i] * BATCH * 4;
    assert_true(run->results[0].steps[i].tensor_bytes == sum);
    assert_int_equal(run->results[0].steps[i].live_tensors, i + 1);
  }
  assert_true(sum == (uint64_t)OUTPUTS * BATCH * 4);
  sn_run_free(run);
}

/* [SN] table 1: extra forwards speed / memory / cost. They depend on the net alone. */
static void extra_forwards(void **state) {
  (void)state;
  static const struct {
    const char *net;
    uint32_t extra[3];
  } nets[] = {{"alexnet", {14, 23, 17}}, {"resnet50", {84, 118, 85}}, {"resnet101", {169, 237, 170}}};
  static const char *const kinds[] = {"speed", "memory", "cost"}, *const bases[] = {"", "+offload", "+cache"};
  for (size_t i = 0; i < sizeof nets / sizeof nets[0]; i++)
    for (int base = 0; base < 3; base++)
      for (int kind = 0; kind < 3; kind++) {
        char strategy[SN_STRATEGY_TEXT];
        snprintf(strategy, sizeof strategy, "liveness%s+recompute=%s", bases[base], kinds[kind]);
        sn_run *run = run_one(nets[i].net, 2, strategy);
        assert_int_equal(run->results[0].recomputed_layers, nets[i].extra[kind]);
        sn_run_free(run);
      }
}

/* Parameters and the like, by hand: 62378344 parameters, with gradients and momentum; one byte a mask element of drop1
 * and drop2; images and labels. */
static void persistent(void **state) {
  (void)state;
  sn_run *run = run_one("alexnet", BATCH, "liveness");
  const sn_persistent *p = &run->results[0].persistent;
  uint64_t parameters = (96 * 3 * 121 + 96) + (256 * 96 * 25 + 256) + (384 * 256 * 9 + 384) + (384 * 384 * 9 + 384) +
                        (256 * 384 * 9 + 256) + (4096 * POOL5 + 4096) + (4096 * 4096 + 4096) + (1000 * 4096 + 1000);
  assert_int_equal(run->parameters, parameters);
  assert_int_equal(p->parameters, 4 * parameters);
  assert_int_equal(p->parameter_gradients, 4 * parameters);
  assert_int_equal(p->optimizer_state, 4 * parameters);
  assert_int_equal(p->auxiliary, 2 * FC1 * BATCH);
  assert_int_equal(p->input_batch, 4 * DATA * BATCH);
  assert_int_equal(p->labels, 4 * BATCH);
  assert_true(run->results[0].peak_device_bytes ==
              322122547 + sn_persistent_total(p) + run->results[0].pool_bytes); /* 0.3 GiB of context */
  sn_run_free(run);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(table),          cmocka_unit_test(baseline_is_flat), cmocka_unit_test(liveness_forward),
      cmocka_unit_test(extra_forwards), cmocka_unit_test(persistent),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
