/* Fullest: what the tensors of the fullest moment take in the plan of a strategy without a cache, without making the
 * plan: the walk of sim/plan/lower.h, of which only the sum of the tensors that are there is kept. Neither the pool nor
 * workspaces change it. Where that alone is more than the pool, no plan fits.
 *
 * As the largest of sn_step_use.tensor_bytes over the steps that matter (sim/graph/route.h). O(accesses).
 */
#ifndef SN_SIM_PLAN_FULLEST_H
#define SN_SIM_PLAN_FULLEST_H

#include "base/err.h"
#include "sim/device/cost.h"
#include "sim/policy/options.h"
#include "sim/policy/schedule.h"
#include "sim/policy/strategy.h"

#include <stdint.h>

/* SN_NO_MEMORY. */
sn_status sn_fullest_bytes(const sn_schedule *schedule, sn_strategy strategy, uint64_t *bytes, sn_err *err);

/* The pool that first fit needs for the plan where no step has a byte of workspace that it can do without. What has
 * room for it has room for a plan: workspaces take no more than what is left, and where the better ones would lie
 * badly, planning ends with these. `costs` NULL: none has any. O(accesses log tensors). SN_NO_MEMORY. */
sn_status sn_fullest_first_fit(const sn_schedule *schedule, sn_strategy strategy, sn_workspace workspace,
                               const sn_costs *costs, uint64_t *bytes, sn_err *err);

#endif
