/* Schemes (internal to sim/parallel/): each makes the route of one rank of a whole one, which stays. */
#ifndef SN_SIM_PARALLEL_FSDP_H
#define SN_SIM_PARALLEL_FSDP_H

#include "base/err.h"
#include "sim/graph/iteration.h"
#include "sim/graph/route.h"

/* NULL after an error. */
sn_route *sn__fsdp(const sn_route *whole, sn_iteration iteration, sn_err *err);
/* Of the stage mesh.stage of a pipeline, for mesh.micros micro-batches. */
sn_route *sn__stage(const sn_route *whole, sn_iteration iteration, sn_err *err);
sn_route *sn__zero(const sn_route *whole, sn_iteration iteration, sn_err *err);
sn_route *sn__ddp(const sn_route *whole, sn_iteration iteration, sn_err *err);
sn_route *sn__tp(const sn_route *whole, sn_iteration iteration, sn_err *err);

#endif
