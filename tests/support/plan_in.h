/* Plans as questions get them: those that adapt look for the best in the memory on offer.
 *
 *   sn_plan *plan = plan_in(&p, "liveness+recompute=optimal", 300 << 20, SN_WORKSPACE_DYNAMIC);
 *   int64_t ns = plan_ns(&p, plan);
 *   sn_plan_free(plan);
 */
#ifndef SN_TESTS_PLAN_IN_H
#define SN_TESTS_PLAN_IN_H

#include "sim/make/make.h"
#include "sim/plan/check.h"
#include "tests/support/pipeline.h"

/* Proved safe for every timing. */
static inline sn_plan *plan_in(const pipeline *p, const char *strategy, uint64_t pool_bytes, sn_workspace workspace) {
  sn_err err = SN_ERR_INIT;
  sn_strategy s = parse_strategy(strategy);
  sn_schedule *schedule = sn_schedule_new(p->route, s.recompute, &err);
  must(&err);
  const sn_plan_wish wish = {.schedule = schedule,
                             .costs = p->costs,
                             .link = sn_link_of(&p->device, SN_EXTERNAL_HOST),
                             .strategy = s,
                             .workspace = workspace,
                             .placement = SN_PLACEMENT_PACKED,
                             .pool_bytes = pool_bytes};
  sn_plan *plan = sn_plan_make(&wish, &err);
  must(&err);
  sn_check(plan, NULL, &err);
  must(&err);
  sn_schedule_free(schedule);
  return plan;
}

/* As played on the simulated device. */
static inline int64_t plan_ns(const pipeline *p, sn_plan *plan) {
  pipeline of = *p;
  of.plan = plan;
  sn_trace trace = pipeline_play(&of, false);
  int64_t ns = trace.end_ns;
  sn_trace_clear(&trace);
  return ns;
}

#endif
