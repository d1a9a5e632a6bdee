/* Place: better addresses for a finished plan.
 *
 * First fit gives every block its address when it comes, with no knowledge of what will follow, and so leaves holes.
 * But a plan orders every `alloc` behind the last `release` of the listed order, whatever its address
 * (sim/plan/emit.h): so addresses can be changed freely, and no fence, copy or time changes with them. A block lives
 * from its alloc to its release, or to the end of the plan; a workspace lives in its compute alone. Only offsets of
 * alloc, release and workspace change, and pool_bytes and largest_hole with them. Should memory ever be released on
 * another lane, this file's one test of what conflicts has to know it; until then the checker proves each result like
 * any plan.
 */
#ifndef SN_SIM_PLAN_PLACE_H
#define SN_SIM_PLAN_PLACE_H

#include "base/err.h"
#include "sim/plan/plan.h"

#include <stdint.h>

/* The plan's blocks are packed (sim/plan/pack.h); the plan stays as it is where that takes no less, and where it has
 * more than SN_PACK_MOST blocks. SN_NO_MEMORY. */
sn_status sn_place(sn_plan *plan, sn_err *err);

#endif
