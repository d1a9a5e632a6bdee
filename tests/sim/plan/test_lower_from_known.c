/* Tests of plans that are like a proved one (sim/plan/lower_from_known.h): they are what lowering makes, and their addresses are
 * proved. */
#include "sim/plan/lower_from_known.h"

#include "models/zoo/zoo.h"
#include "sim/device/device.h"
#include "sim/graph/route.h"
#include "sim/plan/check.h"
#include "sim/plan/lower.h"
#include "sim/schedule/schedule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { GPUS = 3 };

/* One network on several devices, by one strategy. */
typedef struct question {
  sn_net *net;
  sn_device devices[GPUS];
  sn_costs *costs[GPUS];
  sn_strategy strategy;
  sn_route *route;
  sn_schedule *schedule;
} question;

static const uint64_t plenty = UINT64_C(1) << 40;

static void open_question(question *q, const char *net, const char *strategy) {
  static const char *const gpus[GPUS] = {"k40c", "v100_32", "rtx3090"};
  sn_err err = SN_ERR_INIT;
  *q = (question){.net = sn_net_load(net, 48, 0, &err)};
  assert_int_equal(sn_strategy_parse(strategy, &q->strategy, &err), SN_OK);
  for (int g = 0; g < GPUS; g++) {
    assert_int_equal(sn_device_load(gpus[g], &q->devices[g], &err), SN_OK);
    q->costs[g] = sn_costs_new(q->net, &q->devices[g], &err);
  }
  q->route = sn_schedule_route(q->net, q->strategy, (sn_iteration){.accumulate = 1}, q->costs[0], &err);
  q->schedule = sn_schedule_new(q->route, q->strategy.recompute, &err);
  assert_non_null(q->schedule);
}

static void close_question(question *q) {
  sn_schedule_free(q->schedule);
  sn_route_free(q->route);
  for (int g = 0; g < GPUS; g++) sn_costs_free(q->costs[g]);
  sn_net_free(q->net);
}

static sn_plan *lower(const question *q, sn_workspace workspace, int gpu, uint64_t pool_bytes, bool gives_up) {
  sn_err err = SN_ERR_INIT;
  sn_plan *plan = sn_lower_counting(q->schedule, q->strategy, workspace, q->costs[gpu], pool_bytes, gives_up, &err);
  if (!plan) fail_msg("%s", err.text);
  return plan;
}

static sn_plan *lower_like(const question *q, const sn_plan *model, sn_workspace workspace, int gpu,
                           uint64_t pool_bytes, bool gives_up) {
  sn_err err = SN_ERR_INIT;
  sn_plan *plan = sn_lower_from_known(model, sn_strategy_has_cache(q->strategy), workspace, q->costs[gpu], pool_bytes,
                                      gives_up, &err);
  assert_int_equal(err.code, SN_OK);
  return plan;
}

static void assert_same(const sn_plan *a, const sn_plan *b) {
  assert_int_equal(a->n_instrs, b->n_instrs);
  assert_memory_equal(a->instrs, b->instrs, a->n_instrs * sizeof *a->instrs);
  for (uint32_t s = 0; s < a->route->n_steps; s++) {
    assert_int_equal(a->use[s].tensor_bytes, b->use[s].tensor_bytes);
    assert_int_equal(a->use[s].live_tensors, b->use[s].live_tensors);
    assert_int_equal(a->use[s].workspace_bytes, b->use[s].workspace_bytes);
  }
  assert_memory_equal(&a->counts, &b->counts, sizeof a->counts);
  assert_true(a->n_fences == b->n_fences && a->placement == b->placement && a->pool_limit == b->pool_limit &&
              a->pool_bytes == b->pool_bytes && a->roomy == b->roomy && a->first_fit_bytes == b->first_fit_bytes &&
              a->bare_bytes == b->bare_bytes && a->largest_hole == b->largest_hole &&
              a->reserved_peak == b->reserved_peak && a->external_bytes == b->external_bytes &&
              a->external_limit == b->external_limit && a->added_waits == b->added_waits && a->n_teams == b->n_teams);
  assert_string_equal(a->layouts, b->layouts);
}

/* In a pool, for a device: what is taken over is what lowering makes, unless that ends early; how often it was. */
static int compare_in(const question *q, const sn_plan *model, sn_workspace workspace, int gpu, uint64_t pool_bytes) {
  int taken = 0;
  for (int gives_up = 0; gives_up < 2; gives_up++) {
    sn_plan *like = lower_like(q, model, workspace, gpu, pool_bytes, gives_up > 0);
    sn_plan *plan = lower(q, workspace, gpu, pool_bytes, gives_up > 0);
    if (like) assert_int_equal(like->given_up, plan->given_up);
    if (like && !plan->given_up) assert_same(like, plan);
    taken += like != NULL;
    sn_plan_free(like);
    sn_plan_free(plan);
  }
  return taken;
}

static int compare_all(const question *q) {
  static const sn_workspace workspaces[] = {SN_WORKSPACE_DYNAMIC, SN_WORKSPACE_NONE, SN_WORKSPACE_MAX};
  sn_plan *model = lower(q, SN_WORKSPACE_DYNAMIC, 0, plenty, false);
  int taken = 0;
  for (int g = 0; g < GPUS; g++)
    for (int w = 0; w < 3; w++)
      for (uint64_t share = 1; share <= 10; share++)
        taken += compare_in(q, model, workspaces[w], g, model->first_fit_bytes / 8 * share);
  sn_plan_free(model);
  return taken;
}

static void what_is_taken_over_is_what_lowering_makes(void **unused) {
  (void)unused;
  static const char *const nets[] = {"alexnet", "resnet50", "densenet121"};
  static const char *const strategies[] = {"baseline",
                                           "liveness",
                                           "liveness+recompute=cost",
                                           "liveness+offload",
                                           "liveness+offload+recompute=speed",
                                           "liveness+cache",
                                           "liveness+cache+recompute=cost"};
  for (int n = 0; n < 3; n++)
    for (int s = 0; s < 7; s++) {
      question q;
      open_question(&q, nets[n], strategies[s]);
      int taken = compare_all(&q), all = 2 * GPUS * 3 * 10;
      bool cache = sn_strategy_has_cache(q.strategy), copies = q.strategy.offload != SN_OFFLOAD_NONE;
      if (!copies && taken != all) fail_msg("%s, %s: %d of %d are taken over", nets[n], strategies[s], taken, all);
      if (taken == 0 || (cache && taken == all)) fail_msg("%s, %s: %d of %d", nets[n], strategies[s], taken, all);
      close_question(&q);
    }
}

/* What is released between a step with a workspace and the next fetch is no longer. */
static void fetch_behind_a_workspace(sn_plan *plan) {
  uint32_t workspace = SN_NONE;
  for (uint32_t i = 0; i < plan->n_instrs; i++) {
    const sn_instr *instr = &plan->instrs[i];
    if (instr->kind == SN_COMPUTE && instr->bytes > 0) workspace = i;
    if (instr->kind != SN_ALLOC || instr->lane != SN_LANE_IN || workspace == SN_NONE) continue;
    for (uint32_t k = workspace; k < i; k++)
      if (plan->instrs[k].kind == SN_RELEASE) plan->instrs[k].kind = SN_INSTR_KINDS;
  }
}

/* A fetch waits for that workspace, or for what was given back before it. */
static void other_fences_are_another_plan(void **unused) {
  (void)unused;
  question q;
  open_question(&q, "alexnet", "liveness+offload");
  sn_plan *model = lower(&q, SN_WORKSPACE_DYNAMIC, 0, plenty, false);
  fetch_behind_a_workspace(model);
  sn_plan *plan = lower_like(&q, model, SN_WORKSPACE_DYNAMIC, 0, plenty, false);
  assert_non_null(plan);
  assert_null(lower_like(&q, model, SN_WORKSPACE_NONE, 0, plenty, false));
  sn_plan_free(plan);
  sn_plan_free(model);
  close_question(&q);
}

/* ---- what is proved of them ---- */

static sn_status check_like(const sn_plan *plan, const sn_plan *proved) {
  sn_err err = SN_ERR_INIT;
  return sn_check_like(plan, proved, &err);
}

static sn_instr *find(const sn_plan *plan, sn_instr_kind kind, uint64_t least_bytes) {
  for (uint32_t i = plan->n_instrs; i-- > 0;)
    if (plan->instrs[i].kind == kind && plan->instrs[i].bytes >= least_bytes) return &plan->instrs[i];
  fail_msg("no such instruction");
  return NULL;
}

/* Breaks one instruction at a time; each is found, and the plan is good again without it. */
static void assert_found(sn_plan *plan, const sn_plan *proved, sn_instr *i, sn_instr broken) {
  sn_instr was = *i;
  *i = broken;
  assert_int_equal(check_like(plan, proved), SN_BUG);
  *i = was;
  assert_int_equal(check_like(plan, proved), SN_OK);
}

static void try_to_break(const char *strategy) {
  question q;
  open_question(&q, "alexnet", strategy);
  sn_plan *proved = lower(&q, SN_WORKSPACE_DYNAMIC, 0, plenty, false), *plan;
  plan = lower_like(&q, proved, SN_WORKSPACE_DYNAMIC, 1, plenty, false);
  assert_true(plan && sn_lower_is_known(plan, proved));
  assert_int_equal(check_like(plan, proved), SN_OK);
  sn_instr *i = find(plan, SN_ALLOC, SN_POOL_BLOCK), b = *i;
  b.offset = plan->pool_bytes;
  assert_found(plan, proved, i, b); /* outside */
  b.offset = i->offset + 1;
  assert_found(plan, proved, i, b); /* not whole blocks */
  b = *i, b.bytes -= SN_POOL_BLOCK;
  assert_found(plan, proved, i, b); /* too small, and not what is released */
  i = find(plan, SN_RELEASE, 1), b = *i, b.offset += SN_POOL_BLOCK;
  assert_found(plan, proved, i, b); /* not what lies there */
  i = find(plan, SN_COMPUTE, 1), b = *i, b.bytes += 1;
  assert_found(plan, proved, i, b);
  b = *i, b.offset = 0, b.bytes = plan->pool_bytes;
  assert_found(plan, proved, i, b); /* over what lives */
  sn_plan_free(plan);
  sn_plan_free(proved);
  close_question(&q);
}

static void broken_addresses_are_found(void **unused) {
  (void)unused;
  try_to_break("liveness");
  try_to_break("liveness+offload");
}

/* What is not like the proved one is proved as any plan is. */
static void another_plan_is_proved_as_a_whole(void **unused) {
  (void)unused;
  question q;
  open_question(&q, "alexnet", "liveness+offload");
  sn_plan *proved = lower(&q, SN_WORKSPACE_DYNAMIC, 0, plenty, false);
  sn_plan *plan = lower_like(&q, proved, SN_WORKSPACE_DYNAMIC, 1, plenty, false);
  sn_instr *wait = find(plan, SN_WAIT, 0), was = *wait;
  *wait = (sn_instr){.kind = SN_WAIT, .lane = wait->lane, .id = 0, .step = wait->step};
  assert_false(sn_lower_is_known(plan, proved));
  assert_int_equal(check_like(plan, proved), SN_BUG);
  *wait = was;
  assert_int_equal(check_like(plan, NULL), SN_OK);
  sn_plan_free(plan);
  sn_plan_free(proved);
  close_question(&q);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_taken_over_is_what_lowering_makes),
      cmocka_unit_test(other_fences_are_another_plan),
      cmocka_unit_test(broken_addresses_are_found),
      cmocka_unit_test(another_plan_is_proved_as_a_whole),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
