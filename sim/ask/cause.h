/* Cause: what keeps a plan from fitting, or would with less memory. */
#ifndef SN_SIM_ASK_CAUSE_H
#define SN_SIM_ASK_CAUSE_H

#include "sim/plan/high_water.h"
#include "sim/plan/plan.h"

#include <stdint.h>

/* And at which step (index): the fullest one where its tensors alone are too large, the one in which more is sent out
 * than the external pool has room for, else the one that sets the pool. O(instructions). */
sn_cause sn_cause_of(const sn_plan *plan, uint32_t *step);

#endif
