/* Fullest: what the tensors of the fullest moment take in the plan of a strategy without a cache, without making the
 * plan: the walk of sim/plan/lower.h, of which only the sum of the tensors that are there is kept. Neither the pool nor
 * workspaces change it. Where that alone is more than the pool, no plan fits. As the largest of
 * sn_step_use.tensor_bytes over the steps that matter (sim/graph/route.h). Of a strategy with a cache it is the sum of
 * what a step uses and of what the cache may not send out: less than that there is in no plan.
 *
 * And whether first fit has room for them in the pool on offer, and for the workspaces that no step can do without.
 * Where it has, a plan fits: workspaces take no more than what is left, and where better ones would lie badly, planning
 * ends with these. O(accesses), with first fit times log tensors until it has no room.
 */
#ifndef SN_SIM_MAKE_FULLEST_H
#define SN_SIM_MAKE_FULLEST_H

#include "base/err.h"
#include "sim/device/cost.h"
#include "sim/policy/options.h"
#include "sim/policy/strategy.h"
#include "sim/schedule/schedule.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct sn_fullest_wish {
  const sn_schedule *schedule;
  sn_strategy strategy;
  bool first_fit;        /* is asked */
  uint64_t pool_bytes;   /* on offer; looked at with it, as what follows */
  const sn_costs *costs; /* NULL: no step needs a workspace */
  sn_workspace workspace;
} sn_fullest_wish;

typedef struct sn_fullest {
  uint64_t tensor_bytes;
  uint64_t pool_bytes; /* the same in whole blocks, with the workspace that a step cannot do without, over all steps: no
                          plan's pool is less */
  bool fits;           /* first fit has room; false where it is not asked */
} sn_fullest;

/* SN_NO_MEMORY. */
sn_status sn_fullest_find(const sn_fullest_wish *wish, sn_fullest *fullest, sn_err *err);

#endif
