/* Co-run plans of one question: a schedule's operations, their times on the device's cores, the timetable that a policy
 * makes of them, and the plan of that. What does not depend on the pool on offer is kept between plans.
 *
 * The budget is kept in bytes of tensors, as the timetable is made; where a pool turns out larger than is offered,
 * since blocks do not lie without holes, it is made again with less, down to what running one after another takes.
 */
#ifndef SN_SIM_ASK_CORUN_PLANS_H
#define SN_SIM_ASK_CORUN_PLANS_H

#include "base/arena.h"
#include "base/err.h"
#include "sim/ask/run.h"
#include "sim/corun/schedule.h"
#include "sim/device/device.h"
#include "sim/device/external.h"
#include "sim/plan/lower_corun.h"
#include "sim/policy/options.h"
#include "sim/policy/strategy.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct sn_corun_plans {
  sn_times *times;            /* of the route; made when first asked for, */
  sn_device device;           /* as is the device by its cores */
  sn_ops *ops[SN_RECOMPUTES]; /* the same, of its schedules */
  sn_timetable *table;        /* made last, */
  sn_corun_facts facts;       /* what is known of it, */
  sn_strategy strategy;       /* for whom, */
  bool mixed;                 /* by a mix, not by its policy, */
  uint64_t budget_bytes;      /* and with what */
} sn_corun_plans;

/* What all plans of one question share. */
typedef struct sn_corun_question {
  const sn_device *device; /* its cores are those of options->calibration, where any were measured */
  const sn_options *options;
  const sn_costs *costs;
  sn_packings *packings;
  sn_corun_scratch scratch; /* of who executes the plans, where somebody does */
} sn_corun_question;

/* A device as operations side by side see it: with the cores that were measured of it, where any were; calibration may
 * be NULL. */
sn_device sn_corun_device(const sn_device *device, const sn_calibration *calibration);

void sn_corun_plans_clear(sn_corun_plans *plans);

/* The times of operations on the device, which must have cores: SN_BAD_USAGE where it has none. NULL after an error. */
const sn_times *sn_corun_plans_times(sn_corun_plans *plans, const sn_corun_question *question, const sn_route *route,
                                     sn_err *err);

/* The plan of a co-run strategy for a pool on offer. SN_BAD_USAGE for a device without cores, or more threads than it
 * has; SN_NO_FIT for a budget that is less than what running one after another takes; SN_BAD_INPUT. NULL after an
 * error. */
sn_plan *sn_corun_plans_make(sn_corun_plans *plans, const sn_corun_question *question, const sn_schedule *schedule,
                             sn_strategy strategy, uint64_t pool_bytes, sn_err *err);

/* What is to be told of the plan that was made last. Texts are the arena's. SN_NO_MEMORY. */
sn_status sn_corun_plans_tell(const sn_corun_plans *plans, const sn_options *options, const sn_plan *plan,
                              sn_arena *arena, sn_corun_row *row, sn_err *err);

/* The same of a plan from elsewhere. How it was made is not known: there is no interval, sharing or budget, and nothing
 * of its schedule. */
sn_status sn_corun_plans_tell_foreign(const sn_plan *plan, sn_policy policy, sn_arena *arena, sn_corun_row *row,
                                      sn_err *err);

#endif
