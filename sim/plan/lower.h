/* Lower: turns a schedule and a strategy into a plan. One walk over the executions, for all strategies:
 *
 *   first           allocate what is held for the whole iteration
 *   between steps   release what was offloaded and is due
 *   step begins     fetch what its CONV prefetches
 *   each execution  book places for what is missing (cache misses), for what it makes (a gradient may take over an
 *                   output's memory) and for its workspace; then fetch, allocate, compute, start offloads, release what
 *                   was used for the last time
 *
 * O(executions log tensors). `pool_bytes` is the pool on offer: it bounds workspaces and drives the cache. A plan that
 * needs more is made all the same; plan->pool_bytes says how much.
 */
#ifndef SN_SIM_PLAN_LOWER_H
#define SN_SIM_PLAN_LOWER_H

#include "base/err.h"
#include "sim/device/cost.h"
#include "sim/plan/plan.h"
#include "sim/policy/options.h"
#include "sim/policy/strategy.h"
#include "sim/schedule/schedule.h"

#include <stdbool.h>
#include <stdint.h>

sn_plan *sn_lower(const sn_schedule *schedule, sn_strategy strategy, sn_workspace workspace, const sn_costs *costs,
                  uint64_t pool_bytes, sn_err *err);

/* The same, but what the pool has room for is counted in bytes, as if there were no holes. The addresses, first fit as
 * well, may pass `pool_bytes` where the bytes do not: such a plan is to be placed (sim/plan/place.h). Where they do not
 * pass it, it is the plan of sn_lower(), instruction by instruction. `gives_up`: it may end where placing it in the
 * pool has become hopeless (sn_place_is_hopeless()), and says so in plan->given_up. */
sn_plan *sn_lower_counting(const sn_schedule *schedule, sn_strategy strategy, sn_workspace workspace,
                           const sn_costs *costs, uint64_t pool_bytes, bool gives_up, sn_err *err);

/* The pool_bytes of sn_lower()'s plan, of which nothing but the books is kept. `only_fits`: any number above the pool
 * on offer where they are more than that. SN_NO_MEMORY. */
sn_status sn_lower_need(const sn_schedule *schedule, sn_strategy strategy, sn_workspace workspace,
                        const sn_costs *costs, uint64_t pool_bytes, bool only_fits, uint64_t *needed, sn_err *err);

/* Whether sn_lower_counting() would make this plan of its own again, which has sent nothing out, for another pool or
 * with other costs: nothing but algorithms depends on those then. A cache must have room for the plan. O(instructions).
 */
bool sn_lower_again(const sn_plan *plan, sn_workspace workspace, const sn_costs *costs, uint64_t pool_bytes);

/* The bytes that sn_lower_counting() leaves a workspace where so many are reserved. */
uint64_t sn_lower_left(sn_workspace workspace, uint64_t pool_bytes, uint64_t reserved);

/* The workspace without which a step (index) does not run, however little memory there is: that of its smallest
 * algorithms, or with SN_WORKSPACE_MAX of its fastest. */
uint64_t sn_lower_workspace(const sn_route *route, sn_workspace workspace, const sn_costs *costs, uint32_t step);

/* The workspace of the fastest algorithms that do with `left` bytes, or of the smallest; fills in algo as in sn_instr.
 */
uint64_t sn_lower_workspace_in(const sn_route *route, const sn_costs *costs, uint32_t step, uint64_t left,
                               uint8_t algo[2]);

/* The pool without which no step runs: the most that one step's tensors take, each in whole blocks, and the workspace
 * it needs where `costs` are given. *bare, unless NULL: no step needs a workspace. */
uint64_t sn_lower_floor(const sn_route *route, sn_workspace workspace, const sn_costs *costs, bool *bare);

#endif
