/* Fill: workspaces for the holes that the tensors of a placed plan leave.
 *
 * A plan is made for so many bytes of pool: each step takes the fastest algorithms whose workspace is not more than is
 * left then. Where tensors alone take nearly the whole pool, such a plan often cannot be packed into it. Then the other
 * way round: tensors are packed first, without a byte of workspace that a step can do without, and each step gets the
 * fastest algorithms whose workspace the largest hole between them has room for. Nothing else of the plan changes.
 *
 * O(instructions log tensors). Plans that copy stay as they are: their copies are ordered behind the workspaces that
 * they were made with.
 */
#ifndef SN_SIM_MAKE_FILL_H
#define SN_SIM_MAKE_FILL_H

#include "base/err.h"
#include "sim/device/cost.h"
#include "sim/plan/plan.h"

/* Fills up to `pool_bytes`, in which the plan is placed. SN_NO_MEMORY. */
sn_status sn_fill(sn_plan *plan, const sn_costs *costs, uint64_t pool_bytes, sn_err *err);

#endif
