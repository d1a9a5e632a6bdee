/* Send: when tensors of a schedule leave the device and come back, where it is known which are to.
 *
 *   forward   made . . last use | on its way . . >release      copy-out starts right after it is made
 *   backward  fetch<. . on its way | first use . .             copy-in ends when it is used, if it can
 *
 * Both passes are walked with a clock, the steps' times and the copies one after another. A tensor that has been used
 * is there until its copy has ended, or for as long as there is room; where there is none, the step waits for it.
 * Backward is the same with time running backwards: a tensor that is used has been there since its copy began, which is
 * as early as needed, or as early as there is room. What is not gone before it comes back stays. O(accesses +
 * executions x tensors on their way).
 */
#ifndef SN_SIM_SCHEDULE_SEND_H
#define SN_SIM_SCHEDULE_SEND_H

#include "sim/device/link.h"
#include "sim/schedule/schedule.h"
#include "sim/schedule/stages.h"

typedef struct sn_sending {
  const sn_costs *costs; /* NULL: steps take no time */
  sn_link link;
  uint64_t bytes; /* that tensors are to stay within */
  bool workspace; /* times are of the fastest algorithms, or of those that need no workspace */
} sn_sending;

/* Sets the swaps of a schedule: of the values that `leaves` names, per tensor (NULL: of all), those that forward makes
 * and backward reads as they are. SN_NO_MEMORY. */
sn_status sn_schedule_send(sn_schedule *schedule, const bool *leaves, const sn_sending *how, sn_err *err);
/* The same of what the stages make that are `away`, per stage. */
sn_status sn_schedule_send_stages(sn_schedule *schedule, const sn_stages *stages, const bool *away,
                                  const sn_sending *how, sn_err *err);

#endif
