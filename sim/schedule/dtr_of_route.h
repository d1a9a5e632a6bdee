/* A route as a program of DTR (sim/dtr/dtr_program.h), by the rules of DTR's own logs: every tensor may be evicted, what
 * a step changes is a tensor of its own from then on, and what is resident is pinned. So `snsim dtr` replays recordings
 * beside logs of DTR's authors. Unlike sn_schedule_dtr_program(), of which a schedule is made: there a tensor stays that
 * one forward step alone could not make again, and bytes are whole blocks. */
#ifndef SN_SIM_SCHEDULE_DTR_OF_ROUTE_H
#define SN_SIM_SCHEDULE_DTR_OF_ROUTE_H

#include "base/err.h"
#include "sim/device/cost.h"
#include "sim/dtr/dtr_program.h"
#include "sim/graph/pass.h"

#include <stdint.h>

/* `resident_bytes` are there all the time. To be freed; NULL after an error. */
sn_dtr_program *sn_dtr_program_of_route(const sn_route *route, uint64_t resident_bytes, const sn_costs *costs,
                                        sn_err *err);

#endif
