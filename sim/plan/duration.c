/* How long a plan takes; see the header. */
#include "sim/plan/duration.h"

#include "sim/graph/route.h"

#include <stdlib.h>

static int64_t later(int64_t a, int64_t b) {
  return a > b ? a : b;
}

static int64_t instr_ns(const sn_plan *plan, const sn_instr *instr, const sn_costs *costs, sn_link link) {
  if (instr->kind == SN_COPY_OUT || instr->kind == SN_COPY_IN) return sn_link_ns(link, instr->bytes);
  if (instr->kind != SN_COMPUTE) return 0;
  const sn_step *step = &plan->route->steps[instr->id];
  return sn_costs_of(costs, plan->route, step, instr->algo);
}

sn_status sn_plan_duration(const sn_plan *plan, const sn_costs *costs, sn_link link, int64_t *ns, sn_err *err) {
  int64_t clock[SN_LANES] = {0}, *passed = calloc((size_t)plan->n_fences + 1, sizeof *passed);
  if (!passed) return sn_fail_memory(err);
  for (uint32_t i = 0; i < plan->n_instrs; i++) {
    const sn_instr *instr = &plan->instrs[i];
    int64_t *now = &clock[instr->lane];
    if (instr->kind == SN_SIGNAL) passed[instr->id] = *now;
    if (instr->kind == SN_WAIT) *now = later(*now, passed[instr->id]);
    *now += instr_ns(plan, instr, costs, link);
  }
  *ns = 0;
  for (int lane = 0; lane < SN_LANES; lane++) *ns = later(*ns, clock[lane]);
  free(passed);
  return SN_OK;
}
