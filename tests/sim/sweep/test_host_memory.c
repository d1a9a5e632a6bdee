/* Host memory: what is sent out is what the host must have, and a plan that needs more of it does not fit - by the same
 * rule in a simulation, a planner, a fit, advice and a sweep. */
#include "base/checked.h"
#include "sim/capacity/advise.h"
#include "sim/capacity/fit.h"
#include "sim/sweep/point.h"
#include "tests/support/pipeline.h"

#include <stdio.h>

enum { BATCH = 64 };

static const uint64_t little_memory = UINT64_C(1450) << 20; /* the cache has to send out, liveness does not fit */

static sn_device device_with(uint64_t host_memory_bytes) {
  sn_device gpu = load_gpu("k40c");
  gpu.memory_bytes = little_memory;
  gpu.host_memory_bytes = host_memory_bytes;
  return gpu;
}

static sn_run *ask(const char *strategy, uint64_t host_memory_bytes, sn_external external) {
  sn_err err = SN_ERR_INIT;
  sn_net *net = load_net("alexnet", BATCH);
  sn_device gpu = device_with(host_memory_bytes);
  sn_strategy s = parse_strategy(strategy);
  if (!sn_strategy_has_cache(s)) gpu.memory_bytes *= 2;
  sn_options options = {.workspace = SN_WORKSPACE_NONE, .external = external};
  sn_run *run = sn_simulate("alexnet", net, &gpu, &s, 1, &options, &err);
  must(&err);
  sn_net_free(net);
  return run;
}

static const char *const strategies[] = {"liveness", "liveness+offload", "liveness+cache"};

/* What it takes is enough, a byte less is not; sent elsewhere it takes nothing of the host. */
static void where_it_begins_to_fit(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof strategies / sizeof strategies[0]; i++) {
    sn_run *free_run = ask(strategies[i], 0, SN_EXTERNAL_HOST);
    uint64_t needed = free_run->results[0].host_bytes;
    assert_true(free_run->results[0].fits && needed == free_run->results[0].external_bytes);
    assert_true(i == 0 ? needed == 0 : needed > 0);
    sn_run_free(free_run);
    for (uint64_t missing = 0; missing < 2 && needed > 0; missing++) {
      sn_run *run = ask(strategies[i], needed - missing, SN_EXTERNAL_HOST);
      assert_true(run->results[0].fits == (missing == 0) && run->results[0].host_bytes == needed);
      assert_true(run->host_memory_bytes == needed - missing);
      sn_run_free(run);
    }
    sn_run *peer = ask(strategies[i], 1, SN_EXTERNAL_PEER);
    assert_true(peer->results[0].fits && peer->results[0].host_bytes == 0);
    sn_run_free(peer);
  }
}

/* The planner, advice and a sweep's point say what the simulation says, for limits around what is needed. */
static void all_say_the_same(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_net *net = load_net("alexnet", BATCH);
  uint32_t fit = 0, misfit = 0;
  for (uint64_t mib = 1; mib <= 256; mib *= 4) {
    sn_device gpu = device_with(mib << 20);
    sn_options options = SN_OPTIONS_INIT;
    sn_advice *advice = sn_advise(net, &gpu, NULL, 0, &options, &err);
    must(&err);
    for (uint32_t c = 0; c < advice->n_all; c++) {
      const sn_combination *one = &advice->all[c];
      sn_need need;
      options.workspace = one->workspace;
      sn_planner *planner = sn_planner_new(net, &gpu, &options, &err);
      sn_planner_need(planner, one->strategy, one->memory_bytes, &need, &err);
      must(&err);
      assert_true(need.fits == one->result->fits && need.host_bytes == one->result->host_bytes);
      assert_true(one->result->fits ==
                  (one->result->peak_device_bytes <= gpu.memory_bytes && one->result->host_bytes <= mib << 20));
      *(one->result->fits ? &fit : &misfit) += 1;
      sn_planner_free(planner);
    }
    sn_advice_free(advice);
  }
  if (fit < 20 || misfit < 20) fail_msg("%u fit, %u do not: no test", fit, misfit);
  sn_net_free(net);
}

static void a_sweep(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  static const char text[] = "{\"snsim_grid\": 1, \"nets\": [\"alexnet\"], \"batches\": [64], \"strategies\": "
                             "[\"liveness\", \"liveness+offload\"], \"host_memory\": \"100MiB\"}";
  sn_grid *grid = sn_grid_parse("grid", text, sizeof text - 1, &err);
  must(&err);
  sn_grid_finish(grid, &err);
  must(&err);
  sn_point points[2];
  sn_point_compute(grid, 0, NULL, points);
  assert_true(points[0].fits && points[0].external_bytes == 0);
  assert_true(!points[1].fits && points[1].external_bytes > UINT64_C(100) << 20);
  assert_non_null(strstr(sn_grid_text(grid, &err), "\"host_memory\":\"104857600B\""));
  sn_grid_free(grid);
  assert_null(sn_grid_parse("grid", "{\"snsim_grid\":1,\"host_memory\":\"much\"}", 37, &err));
}

/* The largest batch by trying every one. */
static void the_largest(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  const sn_knob_spec spec = {.kind = SN_KNOB_BATCH, .net = "alexnet"};
  sn_knob knob;
  sn_knob_open(&spec, &knob, &err);
  must(&err);
  knob.high = 120;
  sn_device gpu = device_with(UINT64_C(40) << 20);
  gpu.memory_bytes = UINT64_C(1300) << 20;
  sn_options options = {.workspace = SN_WORKSPACE_NONE};
  sn_strategy all[3];
  for (size_t i = 0; i < 3; i++) all[i] = parse_strategy(strategies[i]);
  sn_fit *fit = sn_fit_largest(&knob, &gpu, all, 3, &options, &err);
  must(&err);
  for (uint32_t i = 0; i < 3; i++) {
    const sn_fit_answer *a = &fit->answers[i];
    uint32_t most = 0;
    for (uint32_t batch = 1; batch <= knob.high; batch++) {
      sn_need need;
      sn_net *net = load_net("alexnet", batch);
      sn_planner *planner = sn_planner_new(net, &gpu, &options, &err);
      sn_planner_need(planner, all[i], gpu.memory_bytes, &need, &err);
      must(&err);
      if (need.fits) most = batch;
      sn_planner_free(planner);
      sn_net_free(net);
    }
    assert_int_equal(a->search.value, most);
    assert_true(a->verified && most > 0 && most < knob.high);
    if (i == 1) assert_int_equal(a->binding.cause, SN_CAUSE_HOST);
    if (i == 1) assert_true(a->search.proved && a->next_host_bytes > gpu.host_memory_bytes);
    if (a->binding.cause == SN_CAUSE_HOST && i == 2) assert_false(a->search.proved);
    assert_true(a->result->host_bytes <= gpu.host_memory_bytes);
  }
  sn_fit_free(fit);
}

/* With too little on the host the cache needs more on the device, offload cannot run at all. */
static void the_least(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_net *net = load_net("alexnet", 64);
  sn_device gpu = load_gpu("k40c");
  sn_options options = {.workspace = SN_WORKSPACE_NONE};
  sn_strategy all[3];
  for (size_t i = 0; i < 3; i++) all[i] = parse_strategy(strategies[i]);
  sn_memory *free_memory = sn_fit_memory(net, &gpu, all, 3, &options, &err);
  must(&err);
  uint64_t sent = free_memory->answers[2].result->host_bytes;
  gpu.host_memory_bytes = sn_min(sent / 2, free_memory->answers[1].result->host_bytes - 1);
  sn_memory *limited = sn_fit_memory(net, &gpu, all, 3, &options, &err);
  must(&err);
  assert_true(limited->answers[0].memory_bytes == free_memory->answers[0].memory_bytes);
  assert_true(limited->answers[1].memory_bytes == 0 && limited->answers[1].verified);
  assert_int_equal(limited->answers[1].binding.cause, SN_CAUSE_HOST);
  const sn_memory_answer *cache = &limited->answers[2];
  assert_true(cache->memory_bytes > free_memory->answers[2].memory_bytes && cache->verified);
  assert_true(cache->result->fits && cache->result->host_bytes <= gpu.host_memory_bytes);
  assert_ptr_equal(sn_memory_best(limited), cache);
  sn_memory_free(limited);
  sn_memory_free(free_memory);
  sn_net_free(net);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(where_it_begins_to_fit),
      cmocka_unit_test(all_say_the_same),
      cmocka_unit_test(a_sweep),
      cmocka_unit_test(the_largest),
      cmocka_unit_test(the_least),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
