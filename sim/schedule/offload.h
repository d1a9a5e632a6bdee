/* Offload: which tensors leave the device at fixed places of the route, and when ([SN] 3.3.1).
 *
 *   forward   CONV1 . . . CONV2       copy-out starts right after CONV1, the device copy is released where the forward
 *             |copy out-->|release    of the first CONV or FC after its last forward use starts
 *   backward  CONV3' . . . CONV2'     copy-in starts with the backward of the last CONV before its first backward use
 *             |copy in---->|use       (re-runs included), or with the backward pass
 *
 * That is the paper's policy. Those of vDNN and TensorFlow choose other outputs, release and fetch them elsewhere
 * (docs/baselines.md), each a row of three functions. In all of them copy-out starts right after the output is made,
 * and a tensor that no backward step needs, or that is never released, is not worth a copy and stays out of the list.
 *
 * PyTorch's save_on_cpu (SN_OFFLOAD_SAVED) is none of these: everything that is kept for backward, of whatever role,
 * leaves behind its last forward use and comes back with its first backward use, and each time the computing waits.
 * With SN_OFFLOAD_PLANNED the schedule says who leaves, and when (sim/schedule/send.h).
 * O(executions + accesses).
 */
#ifndef SN_SIM_SCHEDULE_OFFLOAD_H
#define SN_SIM_SCHEDULE_OFFLOAD_H

#include "base/err.h"
#include "sim/policy/strategy.h"
#include "sim/schedule/schedule.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct sn_swaps {
  uint32_t count;
  sn_swap *by_release; /* ascending release_step, then route order of the producers */
  sn_swap *by_fetch;   /* ascending fetch_step, then first backward use */
  uint32_t
      *copy_step; /* per tensor: the forward step behind which its copy-out starts; SN_NONE: it is not in the list */
} sn_swaps;

/* Empty for SN_OFFLOAD_NONE and SN_OFFLOAD_CACHE (which decides while the plan is made). Free with sn_swaps_clear(). */
sn_status sn_swaps_make(const sn_schedule *schedule, sn_offload offload, sn_swaps *swaps, sn_err *err);
void sn_swaps_clear(sn_swaps *swaps);

/* Whether a narrow cache may send a tensor out: the output of a CONV or FORK. */
bool sn_offload_is_narrow(const sn_route *route, uint32_t tensor);

#endif
