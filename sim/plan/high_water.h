/* High water: what sets the size of a plan's pool.
 *
 *        +-----------+ <- pool_bytes
 *        | conv2     |    the workspace of step 42: the first that reaches so high
 *        +-----------+
 *        |  (hole)   |
 *        +-----------+
 *        | tensors   |    pool_bytes = tensor_bytes + workspace_bytes + hole_bytes
 *      0 +-----------+
 *
 * The largest sum of tensors ([SN]'s peak) is often at another step: a pool is as high as its highest address, and what
 * lies there may be a workspace, or a tensor that found no hole large enough. O(instructions).
 */
#ifndef SN_SIM_PLAN_HIGH_WATER_H
#define SN_SIM_PLAN_HIGH_WATER_H

#include "sim/plan/plan.h"

#include <stdint.h>

/* Why memory is needed, where it is needed most. */
typedef enum sn_cause {
  SN_CAUSE_TENSORS,   /* the tensors of one moment */
  SN_CAUSE_HOLES,     /* they would need less (by more than 1 %), but not around the holes of the pool */
  SN_CAUSE_WORKSPACE, /* a convolution's */
  /* Never of a pool itself: */
  SN_CAUSE_RESIDENT, /* what stays on the device leaves no room for a pool */
  SN_CAUSE_HOST,     /* the host has less memory than tensors take that are sent out */
  SN_CAUSES
} sn_cause;
const char *sn_cause_name(sn_cause cause); /* "tensors", "holes", "workspace", "resident", "host" */

typedef struct sn_high_water {
  sn_cause cause;
  uint32_t step;  /* index: the first in which the pool is that high, or filled by tensors alone */
  uint32_t instr; /* the ALLOC or COMPUTE that takes it there, or fills it */
  /* At the fullest moment of that step for which what lies highest is there; whole blocks, their sum is pool_bytes. */
  uint64_t tensor_bytes, workspace_bytes, hole_bytes;
  uint64_t bare_bytes; /* the high water of tensors alone: of this plan without workspaces */
} sn_high_water;

/* All 0 for a plan without a pool. */
sn_high_water sn_plan_high_water(const sn_plan *plan);

#endif
