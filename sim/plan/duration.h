/* Duration: how long a plan takes on the device, without playing it: each lane does its instructions in turn, copies
 * take what the link says. What is played (sim/play/device_model.h) also knows links that both directions share and the
 * time of allocations; of plans that do not copy this is the sum of their computing. O(instructions). */
#ifndef SN_SIM_PLAN_DURATION_H
#define SN_SIM_PLAN_DURATION_H

#include "sim/device/cost.h"
#include "sim/device/link.h"
#include "sim/plan/plan.h"

/* In ns; SN_NO_MEMORY. */
sn_status sn_plan_duration(const sn_plan *plan, const sn_costs *costs, sn_link link, int64_t *ns, sn_err *err);

#endif
