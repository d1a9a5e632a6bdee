/* Optimal: the plan of recompute=optimal, the fastest of those that many schedules lead to.
 *
 * First come schedules that do not depend on the memory on offer: re-running nothing, the rules of [SN], sqrt, and the
 * least that the recurrences (sim/schedule/schedule_optimal.h) and DTR (sim/schedule/schedule_dtr.h) can do with. Where the
 * plan of none of them fits, none is said to: so what fits in a pool fits in every larger one, and the least memory is
 * that of one of them. Else the recurrences are asked for the pool; where the plan needs more - for workspaces, or
 * holes - again for less by the excess, and for less by parts of the largest workspace, as faster algorithms may be
 * worth more than what is kept. DTR is asked for the pool too: it drops tensor by tensor, which in stages with branches
 * can be faster. Times are those of the lanes (sim/plan/duration.h).
 *
 * With offload come beside all these: superneurons' plan, which runs wherever the largest step does; the recurrence
 * that also sends out what it keeps; and of re-running nothing, speed and cost the schedules with whatever they keep
 * sent out, in as much as it has to (sim/schedule/send.h).
 *
 * recompute=dtr is likewise: where re-running nothing does not fit, the schedule of the least budget that DTR gets
 * through with decides whether anything does; and then DTR has the pool for its budget, less
 * what the plan needs too much, up to eight times.
 */
#ifndef SN_SIM_MAKE_OPTIMAL_H
#define SN_SIM_MAKE_OPTIMAL_H

#include "sim/make/make.h"

/* `make` makes the plan of one schedule. The fastest that fits, or the one that needs least. NULL after an error. */
sn_plan *sn__plan_optimal(const sn_plan_wish *wish, sn_plan *(*make)(const sn_plan_wish *wish, sn_err *err),
                          sn_err *err);
/* The same of recompute=dtr. */
sn_plan *sn__plan_dtr(const sn_plan_wish *wish, sn_plan *(*make)(const sn_plan_wish *wish, sn_err *err), sn_err *err);

#endif
