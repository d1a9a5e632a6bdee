/* What keeps a plan from fitting; see the header. */
#include "sim/ask/cause.h"

#include "sim/ask/result.h"
#include "sim/graph/route.h"

/* The step in which more is sent out than there is room for. */
static uint32_t overflow_step(const sn_plan *plan) {
  for (uint32_t n = 0; n < plan->n_instrs; n++) {
    const sn_instr *i = &plan->instrs[n];
    if (i->kind == SN_COPY_OUT && i->offset + i->bytes > plan->external_limit) return i->step;
  }
  return 0;
}

sn_cause sn_cause_of(const sn_plan *plan, uint32_t *step) {
  uint32_t peak = sn_result_peak(plan, plan->use);
  sn_high_water high = sn_plan_high_water(plan);
  *step = high.step;
  if (plan->use[peak].tensor_bytes > plan->pool_limit) {
    *step = peak;
    return plan->pool_limit > 0 ? SN_CAUSE_TENSORS : SN_CAUSE_RESIDENT;
  }
  if (plan->pool_bytes <= plan->pool_limit && !sn_plan_fits_outside(plan)) {
    *step = overflow_step(plan);
    return SN_CAUSE_HOST;
  }
  if (high.cause == SN_CAUSE_WORKSPACE &&
      plan->route->dialect->eager) { /* it does without (sim/play/caching_replay.h) */
    *step = peak;
    return SN_CAUSE_HOLES;
  }
  return high.cause == SN_CAUSE_TENSORS ? SN_CAUSE_HOLES : high.cause; /* the tensors alone would fit */
}
