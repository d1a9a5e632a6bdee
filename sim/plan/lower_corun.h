/* Lowering of a timetable: turns what runs when on which cores (sim/schedule/timetable.h) into a plan of several compute
 * lanes, whose addresses and fences hold for every timing.
 *
 *   at its start   an operation is ordered behind what it needs (tensors, and what lies outside the pool), behind who
 *                  had its cores, and behind the end that came last before it; then behind who had the memory that it
 *                  takes
 *   at its end     its lane gives back what it was the last to use, behind all other users, and signals
 *
 * A fence that nobody waits for is left out. Addresses come first, from the timetable's order of starts and ends:
 *
 *   fenced   a block may lie wherever nothing lies that lives at the same time: packed or first fit. The wait for
 *            whoever had those bytes is a new dependence, which costs nothing while operations take as long as was
 *            thought
 *   free     a block takes only bytes whose last users its lane is behind already, else the pool grows
 *
 * Workspaces do not adapt: an operation has that of its smallest algorithm. O(n log n) and what packing takes.
 */
#ifndef SN_SIM_PLAN_LOWER_CORUN_H
#define SN_SIM_PLAN_LOWER_CORUN_H

#include "base/err.h"
#include "sim/device/cost.h"
#include "sim/memory/packings.h"
#include "sim/plan/plan.h"
#include "sim/policy/options.h"
#include "sim/schedule/timetable.h"

/* Who executes the plan may know better than the cost model what workspace an operation needs with so many threads. */
typedef struct sn_corun_scratch {
  sn_status (*find)(void *user, uint32_t step, sn_step_part part, uint32_t threads, uint64_t *bytes, sn_err *err);
  void *user;
} sn_corun_scratch;

typedef struct sn_corun_wish {
  const sn_timetable *timetable;
  const sn_costs *costs;
  const sn_cores *cores;
  sn_reuse reuse;
  sn_placement placement;   /* of what is fenced */
  uint64_t pool_bytes;      /* on offer; a plan that needs more says so */
  sn_packings *packings;    /* or NULL */
  sn_corun_scratch scratch; /* find NULL: the costs' */
} sn_corun_wish;

/* The plan, checked. SN_NO_MEMORY; SN_BAD_INPUT where there are more than 65,535 different teams; SN_BUG. */
sn_plan *sn_lower_corun(const sn_corun_wish *wish, sn_err *err);

#endif
