/* Fullest: what the tensors of the fullest moment take in the plan of a strategy without a cache, without making the
 * plan: the walk of sim/plan/lower.h, of which only the sum of the tensors that are there is kept. Neither the pool nor
 * workspaces change it. Where that alone is more than the pool, no plan fits.
 *
 * As the largest of sn_step_use.tensor_bytes over the steps that matter (sim/graph/route.h). O(accesses).
 */
#ifndef SN_SIM_PLAN_FULLEST_H
#define SN_SIM_PLAN_FULLEST_H

#include "base/err.h"
#include "sim/policy/schedule.h"
#include "sim/policy/strategy.h"

#include <stdint.h>

/* SN_NO_MEMORY. */
sn_status sn_fullest_bytes(const sn_schedule *schedule, sn_strategy strategy, uint64_t *bytes, sn_err *err);

#endif
