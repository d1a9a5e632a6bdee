/* From policies to what is played, over random nets, devices and budgets: played, a co-run plan takes what its
 * timetable says, operation by operation, to the nanosecond; its memory keeps to its budget; it is no faster than its
 * bound.
 *
 *   SN_SEED        seed of the first net; the others follow
 *   SN_PROP_NETS   how many nets */
#include "sim/corun/schedule.h"
#include "sim/plan/lower_corun.h"
#include "sim/play/device_model.h"
#include "tests/support/pipeline.h"
#include "tests/support/random_net.h"
#include "tests/support/seed.h"

#include <stdio.h>
#include <stdlib.h>

enum { NETS = 60 };

static sn_device random_device(uint64_t *dice) {
  char name[64];
  uint32_t cores = prng_chance(dice, 20) ? 2 : prng_from(dice, 2, 80);
  snprintf(name, sizeof name, "manycore:cores=%u,slots=%u,tile=%u", cores, prng_from(dice, 1, 2),
           cores % 2 ? 1 : prng_from(dice, 1, 2));
  return prng_chance(dice, 30) ? load_gpu("knl7250") : load_gpu(name);
}

typedef struct world {
  uint64_t dice;
  sn_device device;
  sn_net *net;
  sn_route *route;
  sn_costs *costs;
  sn_schedule *schedule;
  sn_ops *ops;
  sn_times *times;
} world;

static world open_world(uint64_t seed) {
  sn_err err = SN_ERR_INIT;
  world w = {.dice = seed};
  w.device = random_device(&w.dice);
  if (prng_chance(&w.dice, 30)) w.device.cores.resize_ns = prng_below(&w.dice, 100000);
  w.net = random_net_new(&w.dice, &err);
  must(&err);
  w.route = sn_route_new(w.net, SN_DIALECT_SUPERNEURONS, SN_ORDER_ROUTE, &err);
  must(&err);
  w.costs = sn_costs_new(w.net, &w.device, &err);
  must(&err);
  w.schedule = sn_schedule_new(w.route, (sn_recompute)prng_below(&w.dice, SN_RECOMPUTE_COST + 1), &err);
  must(&err);
  w.ops = sn_ops_new(w.schedule, &err);
  must(&err);
  uint32_t interval =
      prng_chance(&w.dice, 30) ? SN_INTERVAL_GEOMETRIC : 1 + prng_from(&w.dice, 0, 3) % w.device.cores.count;
  w.times = sn_times_new(w.route, &w.device, SN_OPTIMIZER_MOMENTUM, interval, NULL, &err);
  must(&err);
  return w;
}

static void close_world(world *w) {
  sn_times_free(w->times);
  sn_ops_free(w->ops);
  sn_schedule_free(w->schedule);
  sn_costs_free(w->costs);
  sn_route_free(w->route);
  sn_net_free(w->net);
}

static uint32_t next_start(const sn_timetable *t, uint32_t *event) {
  while (t->events[*event].is_end) ++*event;
  return t->events[(*event)++].op;
}

static void check_play(const world *w, const sn_timetable *table, const sn_plan *plan) {
  sn_err err = SN_ERR_INIT;
  sn_trace trace;
  sn_device_model model = {.device = &w->device, .costs = w->costs, .times = w->times};
  sn_trace_init(&trace, plan, &err);
  must(&err);
  sn_play(plan, sn_device_model_backend(&model), &trace, &err);
  must(&err);
  assert_true(trace.end_ns == table->end_ns);
  for (uint32_t i = 0, event = 0; i < plan->n_instrs; i++) {
    if (plan->instrs[i].kind != SN_COMPUTE) continue;
    const sn_start *s = &table->starts[next_start(table, &event)];
    if (trace.spans[i].begin_ns != s->start_ns || trace.spans[i].end_ns != s->end_ns)
      fail_msg("instruction %u runs %lld..%lld, the timetable says %lld..%lld", i, (long long)trace.spans[i].begin_ns,
               (long long)trace.spans[i].end_ns, (long long)s->start_ns, (long long)s->end_ns);
  }
  sn_trace_clear(&trace);
}

static void check_policy(world *w, sn_policy policy) {
  sn_err err = SN_ERR_INIT;
  sn_corun_facts facts;
  uint64_t budget = prng_chance(&w->dice, 30) ? SN_BUDGET_ANY : SN_BUDGET_SERIAL;
  sn_timetable *table = sn_corun_schedule(w->ops, w->times, &w->device.cores, policy, budget, &facts, &err);
  must(&err);
  assert_true(facts.bound_ns <= table->end_ns);
  if (budget == SN_BUDGET_SERIAL) assert_true(table->peak_bytes <= facts.serial_peak_bytes);
  for (sn_reuse reuse = SN_REUSE_FENCED; reuse < SN_REUSE_COUNT; reuse++) {
    sn_plan *plan = sn_lower_corun(&(sn_corun_wish){.timetable = table,
                                                    .costs = w->costs,
                                                    .cores = &w->device.cores,
                                                    .reuse = reuse,
                                                    .pool_bytes = UINT64_C(1) << 40},
                                   &err);
    must(&err);
    check_play(w, table, plan);
    sn_plan_free(plan);
  }
  sn_timetable_free(table);
}

static void random_worlds(void **state) {
  (void)state;
  uint64_t seed = first_seed(1), nets = case_count(NETS);
  for (uint64_t i = 0; i < nets; i++) {
    world w = open_world(seed + i);
    uint32_t workers = prng_from(&w.dice, 1, 6), threads = prng_from(&w.dice, 1, 2 * w.device.cores.count);
    for (sn_policy_kind kind = SN_POLICY_WORKERS; kind < SN_POLICY_KINDS; kind++)
      check_policy(&w, kind == SN_POLICY_WORKERS ? (sn_policy){kind, workers, threads} : (sn_policy){.kind = kind});
    close_world(&w);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(random_worlds)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
