/* recompute=dtr: the schedule that dynamic tensor rematerialization (sim/dtr/dtr.h) makes of a route as it goes,
 * under a budget, by its heuristic eq. Nothing is planned ahead: where the next step's tensors do not fit, the one of
 * least score is evicted, and made again by its step as soon as somebody reads it, in the forward pass too.
 *
 *   route ----> DTR program ----> sn_dtr_play() ----> steps as they ran ----> schedule
 *               a step, an operation; a tensor, a storage
 *
 * Only what a forward step has made is evicted. What backward makes stays until its last access, and so does what a
 * later step changes in place: neither could be made again by one forward step. The schedule's load is at most the
 * budget: liveness also drops early what DTR evicts, without use, later.
 *
 * Time: as sn_dtr_play(), O(evictions x tensors).
 */
#ifndef SN_SIM_SCHEDULE_SCHEDULE_DTR_H
#define SN_SIM_SCHEDULE_SCHEDULE_DTR_H

#include "sim/dtr/dtr.h"
#include "sim/schedule/schedule.h"

#include <stdbool.h>
#include <stdint.h>

/* The program of a route, operation s its step s; bytes in whole blocks of the pool, costs as sn_stages_step_ns() says.
 * To be freed; NULL after an error. */
sn_dtr_program *sn_schedule_dtr_program(const sn_route *route, const sn_costs *costs, bool workspace, sn_err *err);

/* What happens to the program of `route` within `budget_bytes`. NULL after an error, and, without one, where DTR does
 * not get through: nothing is left to evict, or re-running takes longer than the iteration itself. */
sn_schedule *sn_schedule_dtr(const sn_route *route, const sn_dtr_program *program, uint64_t budget_bytes, sn_err *err);

/* The least budget with which it gets through, found from `enough_bytes`, which is enough, down in twentieths to the
 * first that is not, and then by halving. Budgets below it may do by luck. 0 after an error. */
uint64_t sn_schedule_dtr_least(const sn_dtr_program *program, uint64_t enough_bytes, sn_err *err);

#endif
