/* Make: from a schedule to a plan that is placed and proved. Simulation and execution both make their plans here, so
 * they are the same: lower -> place -> check.
 *
 * Packed, the lowering counts bytes, not holes, and placement finds the addresses (sim/plan/place.h):
 *
 *     counted in L bytes --- first fit within L --> that is it: no decision was another one
 *          | not
 *          |-- no cache, workspaces that adapt:  the plan without them is to fit, or none does
 *          |-- placed within L?
 *          '-- lowered around the holes, and placed
 *
 * So with the cache every plan fits that has room for the largest step, as with first fit, and without it every plan
 * whose tensors alone can be placed: what fits in L fits in more. More blocks than SN_PACK_MOST are left where first
 * fit has put them. The published systems (sn_strategy_is_system()) had first fit, and keep it; explicit+dynamic
 * is first fit. Of recompute=optimal and dtr the schedule is one of many that are tried (sim/make/optimal.h).
 */
#ifndef SN_SIM_MAKE_MAKE_H
#define SN_SIM_MAKE_MAKE_H

#include "base/err.h"
#include "sim/device/cost.h"
#include "sim/device/link.h"
#include "sim/make/proved.h"
#include "sim/make/standing.h"
#include "sim/memory/packings.h"
#include "sim/plan/plan.h"
#include "sim/policy/options.h"
#include "sim/policy/strategy.h"
#include "sim/schedule/schedule.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct sn_plan_wish {
  const sn_schedule *schedule;
  const sn_costs *costs;
  sn_link link; /* looked at where copies are planned */
  sn_strategy strategy;
  sn_workspace workspace;
  sn_placement placement;
  uint64_t pool_bytes;     /* on offer */
  uint64_t external_limit; /* of the external pool; 0: not limited */
  sn_packings *packings;   /* of plans made before it; NULL: none are kept */
  sn_proved *proved;       /* plans made before; NULL: none are kept. Not of strategies that adapt */
  sn_standing *standing;   /* what recompute=optimal and dtr have made before; NULL: nothing is kept */
  /* Whether another allocator than the pool has room for a plan, and what memory it needs at least; NULL: the pool's
   * bytes say that. Of recompute=optimal only. */
  sn_status (*serve)(void *server, const sn_plan *plan, bool *fits, uint64_t *least_bytes);
  void *server;
  bool only_fits;  /* sn_plan_fits() is all that is asked: placed is only what that depends on */
  int64_t most_ns; /* a plan that takes longer need not be placed; 0: all are */
} sn_plan_wish;

/* The plan, or NULL: SN_NO_MEMORY, or SN_BUG where it is not proved. A plan that needs more than is on offer is one
 * like any other: its pool_bytes say how much. */
sn_plan *sn_plan_make(const sn_plan_wish *wish, sn_err *err);

#endif
