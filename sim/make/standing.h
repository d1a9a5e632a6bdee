/* Standing: the schedules that recompute=optimal and dtr try whatever memory is on offer, and what those for a memory
 * are made from. Each is made when first asked for, so that who asks about one network with many memories has them made
 * once: the least of the recurrences takes as long as the schedule for a pool, the least of DTR twenty times as long.
 *
 *   sn_standing *standing = sn_standing_new(route, costs, workspace, &err);
 *   const sn_schedule *least = sn_standing_schedule(standing, SN_STANDING_LEAST, &err);
 *   sn_standing_free(standing);
 */
#ifndef SN_SIM_MAKE_STANDING_H
#define SN_SIM_MAKE_STANDING_H

#include "base/err.h"
#include "sim/device/cost.h"
#include "sim/dtr/dtr_program.h"
#include "sim/graph/pass.h"
#include "sim/schedule/schedule.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum sn_standing_kind {
  SN_STANDING_WHOLE, /* re-running nothing */
  SN_STANDING_SPEED,
  SN_STANDING_COST,
  SN_STANDING_MEMORY,
  SN_STANDING_SQRT,
  SN_STANDING_LEAST,     /* the least with which the recurrences do (sim/schedule/schedule_optimal.h) */
  SN_STANDING_DTR_LEAST, /* the least budget that DTR gets through with */
  SN_STANDINGS
} sn_standing_kind;

typedef struct sn_standing sn_standing;

/* Route and costs must outlive it. `workspace`: times are of the fastest algorithms, else of those that need none. */
sn_standing *sn_standing_new(const sn_route *route, const sn_costs *costs, bool workspace, sn_err *err);
void sn_standing_free(sn_standing *standing);

/* NULL: an error, or without one that there is none. */
const sn_schedule *sn_standing_schedule(sn_standing *standing, sn_standing_kind kind, sn_err *err);
/* sn_schedule_load() of one that was made. */
uint64_t sn_standing_load(const sn_standing *standing, sn_standing_kind kind);

/* NULL after an error. */
const struct sn_stages *sn_standing_stages(sn_standing *standing, sn_err *err);
/* What answers for every memory up to `bytes` without sending out: until it is asked for with others. NULL after an
 * error. */
struct sn_optimal *sn_standing_optimal(sn_standing *standing, uint64_t bytes, sn_err *err);
const sn_dtr_program *sn_standing_program(sn_standing *standing, sn_err *err);

#endif
