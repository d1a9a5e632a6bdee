/* What sets a plan's pool: by hand for AlexNet, whose two strategies with the same peak need pools of different sizes;
 * the parts make up the pool and the step is the first that reaches it, for every default strategy; and what is said to
 * lower it does. */
#include "sim/plan/high_water.h"

#include "base/checked.h"
#include "sim/ask/explain.h"
#include "sim/ask/simulate.h"
#include "tests/support/pipeline.h"

#include <stdio.h>

static const char *const nets[] = {"lenet", "alexnet", "resnet18", "densenet121", "inception_v3"};

static sn_run *ask_placed(const char *net_spec, uint32_t batch, const char *strategy, sn_workspace workspace,
                          uint64_t pool_bytes, sn_placement placement) {
  sn_err err = SN_ERR_INIT;
  sn_net *net = load_net(net_spec, batch);
  sn_device gpu = load_gpu("k40c");
  sn_strategy s = parse_strategy(strategy);
  sn_options options = {.workspace = workspace, .pool_bytes = pool_bytes, .placement = placement, .want_peak = true};
  sn_run *run = sn_simulate(net_spec, net, &gpu, &s, 1, &options, &err);
  must(&err);
  sn_net_free(net);
  return run;
}

static sn_run *ask(const char *net_spec, uint32_t batch, const char *strategy, sn_workspace workspace,
                   uint64_t pool_bytes) {
  return ask_placed(net_spec, batch, strategy, workspace, pool_bytes, SN_PLACEMENT_PACKED);
}

static sn_run *ask_first_fit(const char *strategy) {
  return ask_placed("alexnet", 200, strategy, SN_WORKSPACE_DYNAMIC, 0, SN_PLACEMENT_FIRST_FIT);
}

/* The peaks are the same 886.230 MiB at step 44, lrn1's backward; the pools are not. */
static void same_peak(void **state) {
  (void)state;
  sn_run *cost = ask_first_fit("liveness+recompute=cost"), *memory = ask_first_fit("liveness+recompute=memory");
  const sn_result *all[] = {&cost->results[0], &memory->results[0]};
  assert_true(all[0]->peak_tensor_bytes == all[1]->peak_tensor_bytes && all[0]->pool_bytes > all[1]->pool_bytes);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(all[i]->peak_step, 44);
    assert_int_equal(all[i]->pool_step, 42);
    assert_string_equal(all[i]->pool_layer, "conv2");
    assert_string_equal(all[i]->pool_pass, "backward");
    assert_string_equal(all[i]->pool_cause, "workspace");
    assert_true(all[i]->pool_workspace_bytes == all[i]->workspace_peak_bytes);
  }
  assert_true(all[0]->pool_hole_bytes > all[1]->pool_hole_bytes);
  sn_run_free(cost);
  sn_run_free(memory);
}

/* Packed, the pool is the load of one moment: conv3's backward with its workspace, and hardly a hole. */
static void packed_load(void **state) {
  (void)state;
  sn_run *run = ask("alexnet", 200, "liveness+recompute=cost", SN_WORKSPACE_DYNAMIC, 0);
  const sn_result *r = &run->results[0];
  assert_string_equal(r->placement, "packed");
  assert_int_equal(r->pool_step, 38);
  assert_string_equal(r->pool_layer, "conv3");
  assert_string_equal(r->pool_cause, "workspace");
  assert_true(r->pool_tensor_bytes + r->pool_workspace_bytes == r->largest_load_bytes);
  assert_true(r->pool_bytes - r->largest_load_bytes == r->pool_hole_bytes);
  assert_true(r->pool_hole_bytes < r->pool_bytes / 100);
  sn_run_free(run);
}

/* Everything is there from the start and lies side by side. */
static void all_at_once(void **state) {
  (void)state;
  sn_run *run = ask("alexnet", 10, "baseline", SN_WORKSPACE_NONE, 0);
  assert_string_equal(run->results[0].pool_cause, "tensors");
  assert_int_equal(run->results[0].pool_step, 1);
  assert_true(run->results[0].pool_hole_bytes == 0);
  sn_run_free(run);
}

/* The plan as a map of what is held when, without the walk of high_water.c: the highest end of each step. */
static void check_plan(const sn_plan *plan) {
  sn_high_water high = sn_plan_high_water(plan);
  uint64_t bare = 0, held = 0, most = 0;
  bool reached = false;
  assert_true(high.tensor_bytes + high.workspace_bytes + high.hole_bytes == plan->pool_bytes);
  for (uint32_t n = 0; n < plan->n_instrs; n++) {
    const sn_instr *i = &plan->instrs[n];
    bool takes = i->kind == SN_ALLOC || (i->kind == SN_COMPUTE && i->bytes > 0);
    if (i->kind == SN_ALLOC) held += i->bytes;
    if (i->kind == SN_RELEASE) held -= i->bytes;
    if (i->kind == SN_ALLOC) bare = sn_max(bare, i->offset + i->bytes);
    if (i->step == high.step) most = sn_max(most, held + (i->kind == SN_COMPUTE ? i->bytes : 0));
    if (!takes || i->offset + i->bytes < plan->pool_bytes) continue;
    if (!reached && held < plan->pool_bytes) assert_int_equal(i->step, high.step);
    reached = true;
  }
  assert_true(reached && bare == high.bare_bytes && bare <= plan->pool_bytes);
  assert_true(high.tensor_bytes + high.workspace_bytes <= most);
  assert_true(plan->instrs[high.instr].step == high.step);
  assert_true(high.cause != SN_CAUSE_TENSORS || plan->pool_bytes - high.tensor_bytes <= plan->pool_bytes / 100);
  assert_true(high.cause != SN_CAUSE_WORKSPACE || high.workspace_bytes > 0);
  assert_true(high.cause != SN_CAUSE_RESIDENT);
}

static void every_plan(void **state) {
  (void)state;
  for (size_t k = 0; k < sizeof nets / sizeof nets[0]; k++) {
    pipeline p = pipeline_open(nets[k], 4);
    for (uint32_t i = 0; i < 2 * SN_STRATEGY_DEFAULTS; i++) {
      char name[SN_STRATEGY_TEXT];
      pipeline_plan(&p, sn_strategy_name(sn_strategy_default(i / 2), name),
                    i % 2 ? SN_WORKSPACE_DYNAMIC : SN_WORKSPACE_MAX, UINT64_C(300) << 20);
      check_plan(p.plan);
    }
    pipeline_close(&p);
  }
}

/* "--workspace none (to X)" is X to the byte, "less --memory" needs less, for what is said of every plan. */
static void advice_holds(void **state) {
  (void)state;
  uint32_t workspaces = 0, caches = 0;
  for (size_t k = 0; k < sizeof nets / sizeof nets[0]; k++)
    for (uint32_t i = 0; i < SN_STRATEGY_DEFAULTS; i++) {
      char name[SN_STRATEGY_TEXT], advice[200];
      sn_strategy_name(sn_strategy_default(i), name);
      sn_run *run = ask(nets[k], 8, name, SN_WORKSPACE_DYNAMIC, 0);
      const sn_result *r = &run->results[0];
      sn_explain_pool(run, r, advice, sizeof advice);
      assert_true(*advice);
      if (strstr(advice, "--workspace none (to ")) {
        sn_run *none = ask(nets[k], 8, name, SN_WORKSPACE_NONE, 0);
        assert_true(none->results[0].pool_bytes == r->pool_bare_bytes);
        sn_run_free(none);
        workspaces++;
      }
      if (strstr(advice, "less --memory")) {
        sn_run *less = ask(nets[k], 8, name, SN_WORKSPACE_DYNAMIC, r->pool_bytes - SN_POOL_BLOCK);
        if (!less->results[0].fits) fail_msg("%s, %s: \"%s\", but it does not fit", nets[k], name, advice);
        sn_run_free(less);
        caches++;
      }
      sn_run_free(run);
    }
  assert_true(workspaces > 5 && caches > 5);
}

/* Copies that FORKs make: none in a chain; in a residual network what the rows of the peak say. */
static void fork_copies(void **state) {
  (void)state;
  sn_run *chain = ask("alexnet", 8, "liveness", SN_WORKSPACE_NONE, 0);
  assert_true(chain->results[0].peak_fork_bytes == 0);
  sn_run_free(chain);
  for (size_t k = 2; k < sizeof nets / sizeof nets[0]; k++)
    for (uint32_t i = 0; i < SN_STRATEGY_DEFAULTS; i++) {
      char name[SN_STRATEGY_TEXT];
      sn_run *run = ask(nets[k], 4, sn_strategy_name(sn_strategy_default(i), name), SN_WORKSPACE_NONE, 0);
      const sn_result *r = &run->results[0];
      uint64_t copies = 0;
      for (uint32_t n = 0; n < r->n_peak; n++)
        if (strstr(r->peak[n].tensor, "/fork.y")) copies += r->peak[n].bytes;
      assert_true(copies == r->peak_fork_bytes && copies <= r->peak_tensor_bytes);
      if (i == 0) assert_true(copies > 0);
      sn_run_free(run);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(same_peak),  cmocka_unit_test(packed_load),  cmocka_unit_test(all_at_once),
      cmocka_unit_test(every_plan), cmocka_unit_test(advice_holds), cmocka_unit_test(fork_copies),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
