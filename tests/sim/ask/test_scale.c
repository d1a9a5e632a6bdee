/* Size: networks as deep as the paper's deepest, and ten times that, go through the whole pipeline, checker included.
 * No time is asserted; where something were quadratic, the test would run into ctest's limit. */
#include "tests/support/pipeline.h"

#include "sim/ask/simulate.h"
#include "sim/graph/route.h"
#include "sim/plan/check.h"

static void plan_and_check(pipeline *p, const char *strategy, uint64_t pool_bytes) {
  sn_err err = SN_ERR_INIT;
  sn_check_report report = {0};
  pipeline_plan(p, strategy, SN_WORKSPACE_DYNAMIC, pool_bytes);
  sn_check(p->plan, &report, &err);
  must(&err);
  assert_true(report.high_water == p->plan->pool_bytes);
  uint64_t peak = 0;
  for (uint32_t s = 0; s < p->route->n_steps; s++)
    if (p->plan->use[s].tensor_bytes > peak) peak = p->plan->use[s].tensor_bytes;
  assert_true(report.peak_tensor_bytes == peak);
}

/* 844 residual units; the paper's deepest at batch 16 has 639. */
static void deepest_resnet(void **state) {
  (void)state;
  pipeline p = pipeline_open("resnet:n1=6,n2=32,n3=800,n4=6", 1);
  assert_true(p.route->first_backward > 9000);
  for (uint32_t i = 0; i < SN_STRATEGY_DEFAULTS; i++) {
    char name[SN_STRATEGY_TEXT];
    plan_and_check(&p, sn_strategy_name(sn_strategy_default(i), name), UINT64_C(11) << 30);
  }
  pipeline_close(&p);
}

/* 10^5 layers: with room for everything, and with so little that the cache evicts all the time. */
static void hundred_thousand_layers(void **state) {
  (void)state;
  pipeline p = pipeline_open("resnet:n3=9100", 1);
  assert_true(p.route->first_backward > 100000);
  plan_and_check(&p, "superneurons", UINT64_MAX);
  assert_true(p.plan->counts.evictions == 0);
  plan_and_check(&p, "superneurons", UINT64_C(1) << 30);
  assert_true(p.plan->counts.evictions > 1000);
  sn_trace trace = pipeline_play(&p, true);
  assert_true(trace.end_ns > 0);
  sn_trace_clear(&trace);
  pipeline_close(&p);
}

/* The same through the front door, with all rows. */
static void whole_run(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_net *net = load_net("resnet:n3=9100", 1);
  sn_device gpu = load_gpu("k40c");
  sn_strategy s = parse_strategy("superneurons");
  sn_options options = SN_OPTIONS_INIT;
  options.want_steps = options.want_peak = options.want_tensors = true;
  sn_run *run = sn_simulate("resnet:n3=9100", net, &gpu, &s, 1, &options, &err);
  must(&err);
  assert_int_equal(run->layers, net->n_layers);
  assert_int_equal(run->results[0].n_steps, 2 * (net->n_layers - 1));
  assert_int_equal(run->n_tensors, run->results[0].tensor_count);
  sn_run_free(run);
  sn_net_free(net);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(deepest_resnet),
      cmocka_unit_test(hundred_thousand_layers),
      cmocka_unit_test(whole_run),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
