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
#include "sim/memory/packings.h"
#include "sim/plan/plan.h"

#include <stdbool.h>
#include <stdint.h>

/* Whether there are few enough blocks: at most SN_PACK_MOST. O(instructions). */
bool sn_place_can(const sn_plan *plan);

/* How far it is packed. With all zero: until the pool is hardly larger than the largest load (0.1 %). */
typedef struct sn_place_goal {
  uint64_t enough; /* a pool that needs not be smaller, as nothing but whether it fits is asked */
  uint64_t most;   /* one that it must not pass if that can be helped; 0: there is none */
  bool near;       /* within 1 % of the largest load it is packed well enough */
} sn_place_goal;

/* Whether a plan with so many blocks and so large a load is not even tried to be brought under `most` bytes: it would
 * have to be packed nearly without a hole, which takes long and seldom succeeds. More blocks and more load change
 * nothing about it. */
bool sn_place_is_hopeless(uint32_t blocks, uint64_t load, uint64_t most);

/* How long to search for places of `count` blocks with that largest load, of which `known` bytes are enough already. */
sn_pack_limits sn_place_limits(uint32_t count, uint64_t known, uint64_t load, sn_place_goal goal);

/* The largest hole when the pool is first used up to its end: between the blocks that live then. Uses the blocks up. */
uint64_t sn_place_largest_hole(sn_block *blocks, const uint64_t *offsets, uint32_t count, uint64_t pool_bytes);

/* Packs the plan's blocks (sim/memory/pack.h) and says so in plan->placement; addresses stay as they are where packing
 * takes no less. A plan that sn_place_can() is false for stays what it is. `packings` are those of plans placed before
 * it, or NULL. SN_NO_MEMORY. */
sn_status sn_place(sn_plan *plan, sn_place_goal goal, sn_packings *packings, sn_err *err);

/* The pool of the same plan placed, if no step had a workspace. SN_NO_MEMORY. */
sn_status sn_place_bare(const sn_plan *plan, sn_packings *packings, uint64_t *bytes, sn_err *err);

#endif
