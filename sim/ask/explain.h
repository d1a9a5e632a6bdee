/* Explain: the tensors that make up the peak of a plan, and what would remove each. */
#ifndef SN_SIM_ASK_EXPLAIN_H
#define SN_SIM_ASK_EXPLAIN_H

#include "base/arena.h"
#include "base/err.h"
#include "sim/ask/run.h"
#include "sim/plan/plan.h"
#include "sim/plan/strategy.h"

#include <stdint.h>

/* The tensors on the device when step `peak_step` (index) of the plan holds the most bytes, largest first. Rows and
 * names are put into `arena`. O(instructions + tensors log tensors). */
sn_status sn_explain_peak(const sn_plan *plan, sn_strategy strategy, uint32_t peak_step, sn_arena *arena,
                          const sn_peak_row **rows, uint32_t *count, sn_err *err);

#endif
