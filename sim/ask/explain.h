/* Explain: the tensors that make up the peak of a plan and what would remove each, and what would lower its pool. */
#ifndef SN_SIM_ASK_EXPLAIN_H
#define SN_SIM_ASK_EXPLAIN_H

#include "base/arena.h"
#include "base/err.h"
#include "sim/ask/run.h"
#include "sim/plan/plan.h"
#include "sim/policy/strategy.h"

#include <stddef.h>
#include <stdint.h>

/* The tensors on the device when step `peak_step` (index) of the plan holds the most bytes, largest first. Rows and
 * names are put into `arena`. O(instructions + tensors log tensors). */
sn_status sn_explain_peak(const sn_plan *plan, sn_strategy strategy, uint32_t peak_step, sn_arena *arena,
                          const sn_peak_row **rows, uint32_t *count, sn_err *err);

/* What would make the result's pool smaller, for what sets it: "--workspace none, to 1.36 GiB". Of a stored run as
 * well; with its peak rows where it has them. Returns `text`; "" where what sets the pool is not known. */
char *sn_explain_pool(const sn_run *run, const sn_result *result, char *text, size_t room);

#endif
