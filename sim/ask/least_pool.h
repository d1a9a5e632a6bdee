/* Least pool: the least pool in which a strategy with a narrow cache runs.
 *
 *   sn_least_pool_wish wish = {.schedule = schedule, .strategy = strategy, .floor = .., ..};
 *   sn_least_pool_find(&wish, UINT64_MAX, &pool_bytes, &err);
 *
 * Such a cache cannot empty the device: whether it runs depends on the holes between what has to stay, and more memory
 * can make it fail. So pools are tried. Of each the books alone are kept (sn_lower_need()), and two things are known
 * ahead of them:
 *
 *   - what a step uses and what cannot leave is there in every plan: no pool with less is enough;
 *   - whoever fits takes the same of a smaller pool that has room for it, place by place, as the lowest hole is taken
 *     first: where a pool is not enough, no plan for a larger one fits in it.
 */
#ifndef SN_SIM_ASK_LEAST_POOL_H
#define SN_SIM_ASK_LEAST_POOL_H

#include "base/err.h"
#include "sim/device/cost.h"
#include "sim/policy/options.h"
#include "sim/policy/strategy.h"
#include "sim/schedule/schedule.h"

#include <stdint.h>

typedef struct sn_least_pool_wish {
  const sn_schedule *schedule;
  sn_strategy strategy;
  const sn_costs *costs;
  sn_workspace workspace;
  uint64_t floor; /* sn_lower_floor(): the search begins there */
} sn_least_pool_wish;

/* In bytes; less may by luck be enough as well. `most` is a pool that is known not to be enough, or more than any plan
 * takes: where no smaller one is found, *least is any number above it, and most often known without a try. Else about
 * 20 times sn_lower(). SN_NO_MEMORY. */
sn_status sn_least_pool_find(const sn_least_pool_wish *wish, uint64_t most, uint64_t *least, sn_err *err);

#endif
