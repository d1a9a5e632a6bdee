/* Slowing: how much copies and computation slow each other where the processors that compute also copy. Measured of a
 * plan that copies while it computes, against what the same steps take without copies and copies without computation.
 *
 *   sn__slowing *s = sn__slowing_new(net, &err);
 *   sn__slowing_visit(s, plan, trace);                   after each iteration of such a plan
 *   sn__slowing_speeds(s, step_ns, &rates, &profile);
 */
#ifndef SN_EXEC_SESSION_SLOWING_H
#define SN_EXEC_SESSION_SLOWING_H

#include "exec/session/copies.h"
#include "models/net/net.h"
#include "sim/device/external.h"
#include "sim/plan/plan.h"
#include "sim/play/trace.h"

typedef struct sn__slowing sn__slowing;

sn__slowing *sn__slowing_new(const sn_net *net, sn_err *err);
void sn__slowing_free(sn__slowing *slowing);

/* A plan without re-runs. */
void sn__slowing_visit(sn__slowing *slowing, const sn_plan *plan, const sn_trace *trace);

/* Sets compute_speed and copy_speed of the profile; leaves them where no copy met computation. `step_ns`: what a
 * layer's pass takes without copies, at [layer * SN_PASSES + pass]; 0: not known. */
void sn__slowing_speeds(const sn__slowing *slowing, const int64_t *step_ns, const sn_copy_rates *rates,
                        sn_device *profile);

#endif
