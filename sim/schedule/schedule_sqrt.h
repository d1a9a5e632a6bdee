/* recompute=sqrt: a schedule that keeps some outputs of stages (sim/schedule/stages.h) and runs what lies between two of
 * them again when backward comes there, once (Chen et al., "Training Deep Nets with Sublinear Memory Cost"; the search
 * is that of MXNet's memonger):
 *
 *   an output is kept where the bytes since the last kept one exceed T
 *
 * T is 0, then twice floor(sqrt(kept bytes x bytes of the largest segment / 2)), then six steps between the smallest
 * largest segment and sqrt(2) x the last T. The schedule with the least load is the one; of equals the first.
 * O(executions) for each of nine.
 */
#ifndef SN_SIM_SCHEDULE_SCHEDULE_SQRT_H
#define SN_SIM_SCHEDULE_SCHEDULE_SQRT_H

#include "sim/schedule/schedule.h"

/* NULL after an error. */
sn_schedule *sn_schedule_sqrt(const sn_route *route, sn_err *err);

#endif
