/* Checker: proves that a plan is right, for every timing of its lanes.
 *
 * It trusts nothing the planner knew. With a vector clock per lane, carried over fences, it follows the listed order
 * once and requires:
 *
 *   order     every step of the route runs exactly once, in order; only forward steps are run again, of those that
 *             have run. Of a co-run plan: every part of a step exactly once, in any order
 *   values    every read finds the value that the step needs: made, not dropped, not changed in place since, and where
 *             it was copied out and in, the current version of it
 *   fences    a wait stands behind its signal; conflicting accesses of a tensor, on the device or in the external pool,
 *             are ordered by happens-before
 *   memory    tensors and workspaces lie inside the pool and overlap nothing that lives; whoever re-uses bytes is
 *             ordered behind every access of whoever had them before
 *   cores     of a co-run plan: whoever has a hardware thread of a core is ordered behind all who had it before, so
 *             that no core is shared beyond its slots; but for teams that float, which have no cores of their own
 *
 * What lies outside the pool and orders operations of a co-run plan (sim/policy/part.h) has the rules of values and
 * fences. O(instructions log tensors). The proof holds for any lane timing because all conflicting accesses are
 * ordered.
 */
#ifndef SN_SIM_PLAN_CHECK_H
#define SN_SIM_PLAN_CHECK_H

#include "base/err.h"
#include "sim/plan/plan.h"

#include <stdint.h>

typedef enum sn_rule {
  SN_RULE_NONE,
  SN_RULE_ORDER,
  SN_RULE_VALUES,
  SN_RULE_FENCES,
  SN_RULE_MEMORY,
  SN_RULE_CORES,
  SN_RULE_MATCH, /* which this does not look at: sim/stages/match.h */
  SN_RULES
} sn_rule;

/* "order", "values", ..; "" for none. */
const char *sn_rule_name(sn_rule rule);

/* What the addresses say, to be compared with the planner's own account. */
typedef struct sn_check_report {
  uint64_t high_water;        /* highest end of any tensor or workspace */
  uint64_t peak_tensor_bytes; /* functional tensors, exact bytes */
  uint32_t max_live_tensors;
  sn_step_use *use;     /* per step of the route, as in the plan; the caller's array, or NULL */
  sn_rule rule;         /* that is broken; of SN_BUG only */
  uint32_t instruction; /* that breaks it: an index; the number of all where a step never runs */
} sn_check_report;

/* SN_OK, or SN_BUG with the instruction and the rule it breaks. `report` may be NULL. */
sn_status sn_check(const sn_plan *plan, sn_check_report *report, sn_err *err);

/* The same of a plan of which everything but algorithms, workspaces and addresses in the pool may have been proved
 * before: where `proved`, a plan that sn_check() has found good, is like it (sim/plan/lower_from_known.h), only the rule of memory
 * is looked at. NULL: no such plan is known. */
sn_status sn_check_like(const sn_plan *plan, const sn_plan *proved, sn_err *err);

#endif
