/* Need: what a strategy needs of a device, from its plan - or ahead of it, where the plan could only say the same.
 *
 *   sn_need_wish wish = {.strategy = strategy, .schedule = schedule, .floor = .., ..};
 *   sn_need_foresee(&wish, &need, &known, &err);           cheap; where `known`, no plan needs to be made
 *   sn_need_tell(&wish, plan, &need);                      all of it
 */
#ifndef SN_SIM_ASK_NEED_H
#define SN_SIM_ASK_NEED_H

#include "base/err.h"
#include "sim/device/cost.h"
#include "sim/plan/plan.h"
#include "sim/policy/options.h"
#include "sim/policy/strategy.h"
#include "sim/schedule/schedule.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct sn_need {
  bool fits;
  uint64_t device_bytes; /* sn_result.peak_device_bytes; where PyTorch's row does not fit sn_result.least_device_bytes,
                            not what it would reserve with room for all it asks for */
  uint64_t host_bytes;   /* sn_result.host_bytes */
  int64_t slack_bytes;   /* what would be left (below 0: missing) if only the tensors of the fullest moment counted -
                            under the cache: of the largest step - and no hole or workspace: below 0 no plan fits. Or
                            what is left of the host's memory, where that is less */
  bool guessed; /* slack is the host's under a cache, which another value may leave more of: below 0 is no proof */
} sn_need;

typedef struct sn_need_wish {
  sn_strategy strategy;
  const sn_schedule *schedule;
  const sn_costs *costs; /* NULL: no step needs a workspace */
  sn_workspace workspace;
  bool pooled;                           /* the allocator is the pool */
  uint64_t memory_bytes, resident_bytes; /* of the device, and what stays there beside the pool */
  uint64_t pool_limit;                   /* of the pool; 0: what is left */
  uint64_t floor;                        /* the pool with which a cache runs, and no less */
  bool on_host;                          /* what is sent out goes to the host */
} sn_need_wish;

/* Of a plan for the pool on offer, as the pool's bytes say it. */
void sn_need_tell(const sn_need_wish *wish, const sn_plan *plan, sn_need *need);

/* Whether it fits, and the slack, if the host has room for whatever is sent out: of a strategy with a cache, which runs
 * wherever the largest step does, if the allocator is the pool; of one with a narrow cache where what cannot leave is
 * more than the pool; of others where the tensors of the fullest moment are more than the pool, or first fit has room
 * for them there. Else *known is false. Not of strategies that adapt or co-run. SN_NO_MEMORY. */
sn_status sn_need_foresee(const sn_need_wish *wish, sn_need *need, bool *known, sn_err *err);

/* What no plan of a route goes below: the tensors of the largest step, each in whole blocks of the pool or not. */
uint64_t sn_need_of_largest_step(const sn_route *route, bool whole_blocks);

#endif
