/* Co-run plans of one question; see the header. */
#include "sim/ask/corun_plans.h"

#include "base/checked.h"
#include "sim/device/device.h"
#include "sim/plan/cursor.h"

#include <inttypes.h>
#include <string.h>

sn_device sn_corun_device(const sn_device *device, const sn_calibration *calibration) {
  sn_device by_cores = *device;
  if (calibration && calibration->cores.count > 0) by_cores.cores = calibration->cores;
  return by_cores;
}

void sn_corun_plans_clear(sn_corun_plans *p) {
  sn_timetable_free(p->table);
  for (int i = 0; i < SN_RECOMPUTES; i++) sn_ops_free(p->ops[i]);
  sn_times_free(p->times);
  *p = (sn_corun_plans){0};
}

const sn_times *sn_corun_plans_times(sn_corun_plans *p, const sn_corun_question *q, const sn_route *route,
                                     sn_err *err) {
  const sn_calibration *measured = q->options->calibration;
  if (p->times) return p->times;
  p->device = sn_corun_device(q->device, measured);
  if (p->device.cores.count == 0 && measured) {
    sn_fail(err, SN_BAD_USAGE,
            "%s was measured without teams of its cores, which operations side by side run on; snsim calibrate "
            "--backend cpu --threads 1,2,.. measures those of a machine with several processors",
            q->device->name);
    return NULL;
  }
  if (p->device.cores.count == 0) {
    sn_fail(err, SN_BAD_USAGE,
            "GPU %s has no cores of its own for operations to run on side by side; corun needs a device that has: "
            "--gpu knl7250, --gpu manycore:cores=64, or a profile with a \"cores\" block",
            q->device->name);
    return NULL;
  }
  p->times = sn_times_new(route, &p->device, q->options->iteration.optimizer, q->options->corun.interval,
                          measured && measured->cores.count > 0 ? measured : NULL, err);
  return p->times;
}

/* Makes the timetable of a strategy, or of a mix, unless it is the one at hand. */
static sn_status find_table(sn_corun_plans *p, const sn_mix *mix, const sn_schedule *schedule, sn_strategy strategy,
                            uint64_t budget_bytes, sn_err *err) {
  bool same = sn_strategy_same(p->strategy, strategy) && p->budget_bytes == budget_bytes;
  if (p->table && same && !mix && !p->mixed) return SN_OK;
  sn_ops **ops = &p->ops[strategy.recompute];
  if (!*ops) *ops = sn_ops_new(schedule, err);
  if (!*ops) return err->code;
  sn_timetable_free(p->table);
  if (mix)
    p->table = sn_corun_schedule_mix(*ops, p->times, &p->device.cores, mix, budget_bytes, &p->facts, err);
  else
    p->table = sn_corun_schedule(*ops, p->times, &p->device.cores, strategy.corun, budget_bytes, &p->facts, err);
  p->mixed = mix != NULL;
  p->strategy = strategy;
  p->budget_bytes = budget_bytes;
  return p->table ? SN_OK : err->code;
}

static sn_plan *lower(const sn_corun_plans *p, const sn_corun_question *q, uint64_t pool_bytes, sn_err *err) {
  const sn_corun_wish wish = {.timetable = p->table,
                              .costs = q->costs,
                              .cores = &p->device.cores,
                              .reuse = q->options->corun.reuse,
                              .placement = q->options->placement,
                              .pool_bytes = pool_bytes,
                              .packings = q->packings,
                              .scratch = q->scratch};
  return sn_lower_corun(&wish, err);
}

/* A budget that brings the pool nearer to what is on offer: less by what is too much; 0: there is none. */
static uint64_t lower_budget(const sn_corun_plans *p, const sn_plan *plan) {
  uint64_t excess = plan->pool_bytes - plan->pool_limit, serial = p->facts.serial_peak_bytes;
  uint64_t used = p->table->peak_bytes;
  if (used <= serial) return 0;
  return used > excess ? sn_max(used - excess, serial) : serial;
}

sn_plan *sn_corun_plans_make(sn_corun_plans *p, const sn_corun_question *q, const sn_schedule *schedule,
                             sn_strategy strategy, uint64_t pool_bytes, sn_err *err) {
  enum { TRIES = 8 };
  if (sn_iteration_batches(q->options->iteration) > 1) {
    sn_fail(err, SN_BAD_USAGE,
            "corun cannot be combined with --accumulate: operations of several batches are not run side by side; "
            "leave one out");
    return NULL;
  }
  if (!sn_corun_plans_times(p, q, schedule->route, err)) return NULL;
  const sn_mix *mix = q->options->corun.mix;
  sn_status status = find_table(p, mix, schedule, strategy, q->options->corun.budget_bytes, err);
  sn_plan *plan = status == SN_OK ? lower(p, q, pool_bytes, err) : NULL;
  for (int i = 0; plan && plan->pool_bytes > pool_bytes && i < TRIES; i++) {
    uint64_t budget = lower_budget(p, plan);
    if (budget == 0) break;
    sn_plan_free(plan);
    status = find_table(p, mix, schedule, strategy, i + 1 < TRIES ? budget : SN_BUDGET_SERIAL, err);
    plan = status == SN_OK ? lower(p, q, pool_bytes, err) : NULL;
  }
  return plan;
}

sn_status sn_corun_plans_tell(const sn_corun_plans *p, const sn_options *options, const sn_plan *plan, sn_arena *arena,
                              sn_corun_row *row, sn_err *err) {
  char policy[SN_POLICY_NAME], interval[SN_INTERVAL_NAME];
  const sn_corun_facts *f = &p->facts;
  *row = (sn_corun_row){.policy = sn_arena_text(arena, sn_policy_name(f->policy, policy)),
                        .sharing = sn_reuse_name(options->corun.reuse),
                        .interval = sn_arena_text(arena, sn_interval_name(options->corun.interval, interval)),
                        .budget_bytes = f->budget_bytes == SN_BUDGET_ANY ? 0 : f->budget_bytes,
                        .cores = plan->cores,
                        .slots = plan->slots,
                        .ops = p->table->ops->n_ops,
                        .chain_ops = p->table->ops->chain_ops,
                        .serial_ns = f->serial_ns,
                        .chain_ns = f->chain_ns,
                        .area_ns = f->area_ns,
                        .average_corun = f->average_corun,
                        .max_corun = f->max_corun,
                        .added_waits = plan->added_waits,
                        .profile_steps = p->times->profile_steps,
                        .measured_ops = p->times->measured_ops};
  return row->policy && row->interval ? SN_OK : sn_fail_memory(err);
}

sn_status sn_corun_plans_tell_foreign(const sn_plan *plan, sn_policy policy, sn_arena *arena, sn_corun_row *row,
                                      sn_err *err) {
  char name[SN_POLICY_NAME];
  *row = (sn_corun_row){.policy = sn_arena_text(arena, sn_policy_name(policy, name)),
                        .sharing = "",
                        .interval = "",
                        .cores = plan->cores,
                        .slots = plan->slots};
  row->ops = sn_plan_count(plan, SN_COMPUTE);
  return row->policy ? SN_OK : sn_fail_memory(err);
}
