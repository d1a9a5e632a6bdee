/* Offload and recomputation together: random nets and memories against superneurons and recompute=optimal, the checker
 * and the simulated device.
 *
 *   SN_SEED        of the first net (default: 1)
 *   SN_PROP_NETS   random nets (default: 60) */
#include "sim/plan/duration.h"

#include "sim/graph/route.h"
#include "sim/schedule/schedule_optimal.h"
#include "sim/schedule/send.h"
#include "tests/support/plan_in.h"
#include "tests/support/random_net.h"
#include "tests/support/seed.h"

#include <inttypes.h>
#include <stdlib.h>

static uint64_t first;
static uint32_t n_nets;

static pipeline open_random(uint64_t *dice) {
  sn_err err = SN_ERR_INIT;
  pipeline p = {.net = random_net_new(dice, &err), .device = load_gpu("k40c")};
  must(&err);
  p.route = sn_route_new(p.net, SN_DIALECT_SUPERNEURONS, SN_ORDER_ROUTE, &err);
  p.costs = sn_costs_new(p.net, &p.device, &err);
  must(&err);
  return p;
}

/* As played; what is said without playing is the same. */
static int64_t said_ns(const pipeline *p, sn_plan *plan, uint64_t seed) {
  sn_err err = SN_ERR_INIT;
  int64_t said = 0, ns = plan_ns(p, plan);
  sn_plan_duration(plan, p->costs, sn_link_of(&p->device, SN_EXTERNAL_HOST), &said, &err);
  must(&err);
  if (said != ns) fail_msg("seed %" PRIu64 ": %" PRId64 " ns said, %" PRId64 " played", seed, said, ns);
  return ns;
}

typedef struct tally {
  uint32_t plans, copies, faster;
} tally;

/* It fits where either of the others does, and is not slower. */
static void compare(pipeline *p, uint64_t pool_bytes, sn_workspace workspace, uint64_t seed, tally *all) {
  static const char *const others[] = {"superneurons", "liveness+recompute=optimal"};
  sn_plan *both = plan_in(p, "liveness+offload+recompute=optimal", pool_bytes, workspace);
  int64_t ns = said_ns(p, both, seed);
  bool faster = true;
  for (int i = 0; i < 2; i++) {
    sn_plan *other = plan_in(p, others[i], pool_bytes, workspace);
    int64_t other_ns = said_ns(p, other, seed);
    if (sn_plan_fits(other) && (!sn_plan_fits(both) || ns > other_ns))
      fail_msg("seed %" PRIu64 ", pool %" PRIu64 ": %s takes %" PRId64 " ns in %" PRIu64 ", both %" PRId64
               " in %" PRIu64,
               seed, pool_bytes, others[i], other_ns, other->pool_bytes, ns, both->pool_bytes);
    faster = faster && (!sn_plan_fits(other) || ns < other_ns);
    sn_plan_free(other);
  }
  all->plans++;
  all->copies += both->counts.offload_bytes > 0;
  all->faster += faster && sn_plan_fits(both);
  sn_plan_free(both);
}

static void nets(void **state) {
  (void)state;
  tally all = {0};
  for (uint64_t k = 0; k < n_nets; k++) {
    uint64_t seed = first + k, dice = seed;
    sn_err err = SN_ERR_INIT;
    pipeline p = open_random(&dice);
    sn_schedule *whole = sn_schedule_new(p.route, SN_RECOMPUTE_NONE, &err);
    must(&err);
    uint64_t most = sn_schedule_load(whole), least = sn_lower_floor(p.route, SN_WORKSPACE_NONE, NULL, NULL);
    for (int i = 0; i < 3; i++) {
      uint64_t thousandths = prng_below(&dice, 1000);
      uint64_t pool_bytes = least + (most - least) / 1000 * thousandths;
      compare(&p, pool_bytes, i == 0 ? SN_WORKSPACE_DYNAMIC : SN_WORKSPACE_NONE, seed, &all);
    }
    sn_schedule_free(whole);
    pipeline_close(&p);
  }
  print_message("%u plans, %u copy, %u faster than either\n", all.plans, all.copies, all.faster);
  assert_true(all.copies > 0 && all.faster > 0);
}

/* Whatever leaves: each comes back behind its release, the plan is proved, and takes no more than without copies. */
static void all_leave(void **state) {
  (void)state;
  uint32_t swaps = 0;
  for (uint64_t k = 0; k < n_nets; k++) {
    uint64_t seed = first + k, dice = seed;
    sn_err err = SN_ERR_INIT;
    pipeline p = open_random(&dice);
    sn_recompute rule = prng_below(&dice, 2) ? SN_RECOMPUTE_SPEED : SN_RECOMPUTE_NONE;
    sn_schedule *schedule = sn_schedule_new(p.route, rule, &err);
    must(&err);
    uint64_t load = sn_schedule_load(schedule), hundredths = prng_from(&dice, 20, 100);
    const sn_sending how = {p.costs, sn_link_of(&p.device, SN_EXTERNAL_HOST), load / 100 * hundredths, false};
    sn_schedule_send(schedule, NULL, &how, &err);
    must(&err);
    for (uint32_t i = 0; i < schedule->n_swaps; i++)
      assert_true(schedule->swaps[i].release_step < schedule->swaps[i].fetch_step);
    sn_plan *plan = sn_lower(schedule, parse_strategy("liveness+offload+recompute=optimal"), SN_WORKSPACE_NONE, p.costs,
                             UINT64_MAX / 2, &err);
    if (!plan || sn_check(plan, NULL, &err) != SN_OK) fail_msg("seed %" PRIu64 ": %s", seed, err.text);
    if (plan->reserved_peak > load)
      fail_msg("seed %" PRIu64 ": %" PRIu64 " bytes, without copies %" PRIu64, seed, plan->reserved_peak, load);
    swaps += schedule->n_swaps;
    sn_plan_free(plan);
    sn_schedule_free(schedule);
    pipeline_close(&p);
  }
  print_message("%u swaps\n", swaps);
  assert_true(swaps > n_nets);
}

/* What the recurrence says of time is what its plan takes, but for the updates, and to 5 %; its tensors stay within the
 * bytes, to 5 %. */
static void as_said(void **state) {
  (void)state;
  static const char *const names[] = {"alexnet", "vgg16", "resnet50", "resnet101"};
  for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
    sn_err err = SN_ERR_INIT;
    pipeline p = pipeline_open(names[n], 16);
    sn_link link = sn_link_of(&p.device, SN_EXTERNAL_HOST);
    sn_stages *stages = sn_stages_new(p.route, p.costs, false, &err);
    sn_schedule *whole = sn_schedule_new(p.route, SN_RECOMPUTE_NONE, &err);
    must(&err);
    uint64_t most = sn_schedule_load(whole);
    sn_optimal *o = sn_optimal_new_sending(stages, most, link, &err), *alone = sn_optimal_new(stages, most, &err);
    must(&err);
    int64_t updates = 0;
    for (uint32_t s = p.route->first_update; s < p.route->n_steps; s++)
      updates += sn_stages_step_ns(p.route, p.costs, false, s);
    for (uint64_t percent = 30; percent <= 100; percent += 10) {
      uint64_t bytes = most / 100 * percent;
      int64_t ns = sn_optimal_ns(o, bytes);
      if (ns == INT64_MAX) continue;
      const sn_sending how = {p.costs, link, bytes, false};
      sn_schedule *schedule = sn_optimal_schedule_sending(o, bytes, &how, &err);
      must(&err);
      sn_plan *plan = sn_lower(schedule, parse_strategy("liveness+offload+recompute=optimal"), SN_WORKSPACE_NONE,
                               p.costs, UINT64_MAX / 2, &err);
      must(&err);
      int64_t real = said_ns(&p, plan, 0) - updates;
      print_message("%s, %3u %%: %.2f ms said, %.2f real, %.2f without copies; %.1f MiB of %.1f\n", names[n],
                    (unsigned)percent, (double)ns / 1e6, (double)real / 1e6, (double)sn_optimal_ns(alone, bytes) / 1e6,
                    (double)plan->reserved_peak / 1048576, (double)bytes / 1048576);
      assert_true((double)real <= 1.05 * (double)ns && (double)plan->reserved_peak <= 1.05 * (double)bytes);
      sn_plan_free(plan);
      sn_schedule_free(schedule);
    }
    sn_optimal_free(alone);
    sn_optimal_free(o);
    sn_schedule_free(whole);
    sn_stages_free(stages);
    pipeline_close(&p);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nets),
      cmocka_unit_test(all_leave),
      cmocka_unit_test(as_said),
  };
  first = first_seed(1);
  n_nets = case_count(60);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
