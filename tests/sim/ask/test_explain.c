/* Explain: the tensors at AlexNet's peaks by hand, what would remove each, and that they add up to the peak. */
#include "sim/ask/explain.h"
#include "tests/support/pipeline.h"

#include "sim/ask/simulate.h"

#include <stdio.h>

typedef struct explained {
  sn_run *run;
  const sn_result *result;
} explained;

static explained explain(const char *net_spec, uint32_t batch, const char *strategy, uint64_t pool_bytes) {
  sn_err err = SN_ERR_INIT;
  sn_net *net = load_net(net_spec, batch);
  sn_device gpu = load_gpu("k40c");
  sn_strategy s = parse_strategy(strategy);
  sn_options options = SN_OPTIONS_INIT;
  options.pool_bytes = pool_bytes;
  options.want_peak = options.want_steps = true;
  sn_run *run = sn_simulate("net", net, &gpu, &s, 1, &options, &err);
  must(&err);
  sn_net_free(net);
  return (explained){run, &run->results[0]};
}

typedef struct row {
  const char *tensor;
  uint64_t elements; /* of one image */
  uint32_t since, next;
  const char *producer, *advice;
} row;

static void check_rows(const char *strategy, uint32_t peak_step, const row *rows, uint32_t count) {
  explained e = explain("alexnet", 10, strategy, 0);
  assert_int_equal(e.result->peak_step, peak_step);
  assert_int_equal(e.result->n_peak, count);
  for (uint32_t i = 0; i < count; i++) {
    const sn_peak_row *p = &e.result->peak[i];
    if (strcmp(p->tensor, rows[i].tensor) != 0 || strcmp(p->advice, rows[i].advice) != 0 ||
        strcmp(p->producer, rows[i].producer) != 0)
      fail_msg("row %u: %s by %s: %s; expected %s by %s: %s", i, p->tensor, p->producer, p->advice, rows[i].tensor,
               rows[i].producer, rows[i].advice);
    assert_int_equal(p->bytes, 10 * 4 * rows[i].elements);
    assert_int_equal(p->since_step, rows[i].since);
    assert_int_equal(p->next_step, rows[i].next);
  }
  sn_run_free(e.run);
}

/* Step 32 is pool5's backward: every output up to pool5 is still to be read. Largest first, then oldest first. */
static void liveness(void **state) {
  (void)state;
  static const row rows[] = {
      {"conv1.y", 290400, 1, 45, "conv1 forward", "offload or cache"},
      {"relu1.y", 290400, 2, 44, "relu1 forward", "recompute"},
      {"lrn1.y", 290400, 3, 43, "lrn1 forward", "recompute"},
      {"conv2.y", 186624, 5, 41, "conv2 forward", "offload or cache"},
      {"relu2.y", 186624, 6, 40, "relu2 forward", "recompute"},
      {"lrn2.y", 186624, 7, 39, "lrn2 forward", "recompute"},
      {"pool1.y", 69984, 4, 42, "pool1 forward", "recompute"},
      {"conv3.y", 64896, 9, 37, "conv3 forward", "offload or cache"},
      {"relu3.y", 64896, 10, 36, "relu3 forward", "recompute"},
      {"conv4.y", 64896, 11, 35, "conv4 forward", "offload or cache"},
      {"relu4.y", 64896, 12, 34, "relu4 forward", "recompute"},
      {"pool2.y", 43264, 8, 38, "pool2 forward", "recompute"},
      {"conv5.y", 43264, 13, 33, "conv5 forward", "offload or cache"},
      {"relu5.y", 43264, 14, 32, "relu5 forward", "needed by this step"},
      {"pool5.dx", 43264, 32, 32, "not yet written", "needed by this step"},
      {"pool5.y", 9216, 15, 32, "pool5 forward", "needed by this step"},
      {"fc1.dx", 9216, 31, 32, "fc1 backward", "needed by this step"},
  };
  check_rows("liveness", 32, rows, 17);
}

/* Step 39 is pool2's backward; conv2's output came back at 38 for relu2's backward at 41. */
static void offload(void **state) {
  (void)state;
  static const row rows[] = {
      {"relu1.y", 290400, 2, 44, "relu1 forward", "recompute"},
      {"lrn1.y", 290400, 3, 43, "lrn1 forward", "recompute"},
      {"relu2.y", 186624, 6, 40, "relu2 forward", "recompute"},
      {"lrn2.y", 186624, 7, 39, "lrn2 forward", "needed by this step"},
      {"conv2.y", 186624, 38, 41, "conv2 forward", "cache"},
      {"pool2.dx", 186624, 39, 39, "not yet written", "needed by this step"},
      {"pool1.y", 69984, 4, 42, "pool1 forward", "recompute"},
      {"pool2.y", 43264, 8, 39, "pool2 forward", "needed by this step"},
      {"conv3.dx", 43264, 38, 39, "conv3 backward", "needed by this step"},
  };
  check_rows("liveness+offload", 39, rows, 9);
}

/* Step 43 is pool1's backward; conv1's output came back at 38, conv2's backward, as the root of the re-runs at 42. */
static void speed_centric(void **state) {
  (void)state;
  static const row rows[] = {
      {"conv1.y", 290400, 38, 45, "conv1 forward", "cache"},
      {"relu1.y", 290400, 42, 44, "relu1 forward", "recompute=memory"},
      {"lrn1.y", 290400, 42, 43, "lrn1 forward", "needed by this step"},
      {"pool1.dx", 290400, 43, 43, "not yet written", "needed by this step"},
      {"pool1.y", 69984, 42, 43, "pool1 forward", "needed by this step"},
      {"conv2.dx", 69984, 42, 43, "conv2 backward", "needed by this step"},
  };
  check_rows("liveness+offload+recompute=speed", 43, rows, 6);
}

/* Step 44, lrn1's backward, re-runs relu1 from conv1's output, which the next step reads. */
static void memory_centric(void **state) {
  (void)state;
  static const row rows[] = {
      {"conv1.y", 290400, 38, 44, "conv1 forward", "needed by this step"},
      {"lrn1.y", 290400, 43, 44, "lrn1 forward", "needed by this step"},
      {"pool1.dx", 290400, 43, 44, "pool1 backward", "needed by this step"},
      {"relu1.y", 290400, 44, 44, "relu1 forward", "needed by this step"},
  };
  check_rows("liveness+offload+recompute=memory", 44, rows, 4);
  check_rows("liveness+offload+recompute=cost", 44, rows, 4);
}

/* Everything is there from the start; only the first step's own tensor is in use at it. */
static void baseline(void **state) {
  (void)state;
  explained e = explain("alexnet", 10, "baseline", 0);
  assert_int_equal(e.result->peak_step, 1);
  assert_int_equal(e.result->n_peak, 36);
  for (uint32_t i = 0; i < 36; i++) {
    const sn_peak_row *p = &e.result->peak[i];
    bool first = strcmp(p->tensor, "conv1.y") == 0;
    assert_string_equal(p->advice, first ? "needed by this step" : "liveness");
    assert_string_equal(p->producer, "not yet written");
    assert_int_equal(p->since_step, 1);
    if (i == 0) continue;
    assert_true(p->bytes <= p[-1].bytes);
    bool output = strstr(p->tensor, ".y") != NULL, output_before = strstr(p[-1].tensor, ".y") != NULL;
    if (p->bytes == p[-1].bytes) assert_true(output_before || !output); /* of equals the one that is made first */
    if (p->bytes == p[-1].bytes && output == output_before) assert_true(output ? p->next_step > p[-1].next_step : true);
  }
  sn_run_free(e.run);
}

/* Where even the cache has nothing else to send away. */
static void cache(void **state) {
  (void)state;
  explained e = explain("alexnet", 10, "liveness+cache", UINT64_C(60) << 20);
  uint32_t waiting = 0;
  for (uint32_t i = 0; i < e.result->n_peak; i++) {
    const sn_peak_row *p = &e.result->peak[i];
    bool here = strcmp(p->advice, "needed by this step") == 0;
    waiting += !here;
    if (!here && strncmp(p->producer, "conv", 4) == 0 && strstr(p->producer, "forward"))
      assert_string_equal(p->advice, "cache, with less memory");
  }
  assert_true(e.result->evictions > 0);
  assert_true(waiting > 0);
  sn_run_free(e.run);
}

static const char *advice_for(const sn_result *r, const char *tensor) {
  for (uint32_t i = 0; i < r->n_peak; i++)
    if (strcmp(r->peak[i].tensor, tensor) == 0) return r->peak[i].advice;
  fail_msg("%s is not there", tensor);
  return "";
}

/* VGG-16's peak is in the unit features.17 .. 23, which holds all it keeps again by then; the outputs of POOLs go on to
 * the next unit. */
static void units(void **state) {
  (void)state;
  static const char *const advice[][2] = {
      {"features.0.y", "recompute=units"},
      {"features.4.saved", "recompute=units"},
      {"features.14.y", "recompute=units"},
      {"features.4.y", "offload"},
      {"features.19.y", "offload"},
      {"features.21.y", "needed by this step"},
      {"classifier.0.dw", "held until the update"},
  };
  explained e = explain("tv_vgg16", 10, "pytorch", 0);
  assert_string_equal(e.result->steps[e.result->peak_step - 1].layer, "features.22");
  for (size_t i = 0; i < sizeof advice / sizeof advice[0]; i++)
    assert_string_equal(advice_for(e.result, advice[i][0]), advice[i][1]);
  sn_run_free(e.run);
}

static void rows_add_up(void **state) {
  (void)state;
  static const char *const nets[] = {"lenet", "alexnet", "resnet18", "densenet121"};
  for (size_t k = 0; k < sizeof nets / sizeof nets[0]; k++)
    for (uint32_t i = 0; i < SN_STRATEGY_DEFAULTS; i++) {
      char name[SN_STRATEGY_TEXT];
      sn_strategy_name(sn_strategy_default(i), name);
      explained e = explain(nets[k], 4, name, UINT64_C(30) << 20);
      const sn_result *r = e.result;
      uint64_t sum = 0;
      for (uint32_t n = 0; n < r->n_peak; n++) {
        sum += r->peak[n].bytes;
        assert_true(r->peak[n].since_step <= r->peak_step);
        assert_true(r->peak[n].next_step == 0 || r->peak[n].next_step >= r->peak_step);
        if (n > 0) assert_true(r->peak[n].bytes <= r->peak[n - 1].bytes);
      }
      assert_true(sum == r->peak_tensor_bytes);
      assert_true(sum == r->steps[r->peak_step - 1].tensor_bytes);
      assert_in_range(r->n_peak, 1, r->live_tensors_at_peak);
      sn_run_free(e.run);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(liveness),       cmocka_unit_test(offload),     cmocka_unit_test(speed_centric),
      cmocka_unit_test(memory_centric), cmocka_unit_test(baseline),    cmocka_unit_test(cache),
      cmocka_unit_test(units),          cmocka_unit_test(rows_add_up),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
