/* Lowering from a known plan: plans that differ from a proved one in algorithms, workspaces and addresses alone.
 *
 *   sn_plan *plan = sn_lower_from_known(model, cache, workspace, costs, pool_bytes, gives_up, &err);
 *   if (!plan && err.code == SN_OK) plan = sn_lower_counting(...);
 *
 * Of a schedule and a strategy that sends nothing out for want of room, nothing but algorithms depends on the device
 * and on the pool: who is allocated, copied, run and released, and when, stays. So the instructions are taken over, and
 * only first fit is walked through anew. Fences may depend on workspaces where memory is given to a lane that copies,
 * which is ordered behind whoever gave some back last: that has to be the same instruction.
 */
#ifndef SN_SIM_PLAN_LOWER_FROM_KNOWN_H
#define SN_SIM_PLAN_LOWER_FROM_KNOWN_H

#include "base/err.h"
#include "sim/device/cost.h"
#include "sim/plan/plan.h"
#include "sim/policy/options.h"

#include <stdbool.h>
#include <stdint.h>

/* What sn_lower_counting() would make of the schedule and the strategy that `model` is of, made for whatever pool and
 * costs. It is no co-run plan, and where the strategy has a `cache` it has sent nothing out. NULL without an error
 * where the plan is or may be another one. O(instructions log holes). SN_NO_MEMORY. */
sn_plan *sn_lower_from_known(const sn_plan *model, bool cache, sn_workspace workspace, const sn_costs *costs,
                             uint64_t pool_bytes, bool gives_up, sn_err *err);

/* Whether two plans are of one route and the same but for algorithms, workspaces and addresses in the pool.
 * O(instructions). */
bool sn_lower_is_known(const sn_plan *plan, const sn_plan *model);

#endif
