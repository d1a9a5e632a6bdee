/* Proved: plans that were made, placed and proved for one device, handed out again where another one would lead to the
 * same instructions.
 *
 *   sn_proved proved = {0};
 *   sn_plan *plan = sn_proved_find(&proved, &wish, &err);         NULL: none, or an error
 *   sn_proved_keep(&proved, &wish, plan, &err);
 *   sn_proved_clear(&proved);
 *
 * What depends on what: of a schedule and a strategy all decisions are the same wherever the algorithms are, as long as
 * a cache has room for everything (sn_lower_again()). Addresses depend on the blocks alone, but where a plan is
 * squeezed into the pool on offer. Where only algorithms differ, a plan is the model of another one
 * (sim/plan/lower_from_known.h). So kept are plans that first fit has room for, and, without a cache, those whose
 * bytes alone are more than the pool; and they are found where that holds of the other pool too. The 32 latest are
 * kept.
 */
#ifndef SN_SIM_MAKE_PROVED_H
#define SN_SIM_MAKE_PROVED_H

#include "base/err.h"
#include "sim/plan/plan.h"
#include "sim/policy/strategy.h"
#include "sim/schedule/schedule.h"

#include <stdint.h>

enum { SN_PROVED_KEPT = 32 };

struct sn_plan_wish; /* sim/make/make.h */

typedef struct sn_proved_entry {
  const sn_schedule *schedule;
  sn_strategy strategy;
  sn_plan *plan; /* NULL: none */
} sn_proved_entry;

/* Zeroed it is empty. Routes and schedules of its plans must outlive it. */
typedef struct sn_proved {
  sn_proved_entry entries[SN_PROVED_KEPT];
  uint32_t next;
} sn_proved;

void sn_proved_clear(sn_proved *proved);

/* A copy of the plan that would be made, for the pool on offer. NULL where it is not known; SN_NO_MEMORY. */
sn_plan *sn_proved_find(const sn_proved *proved, const struct sn_plan_wish *wish, sn_err *err);

/* One of the same schedule and strategy, whatever its algorithms and the pool on offer; NULL: none is known. It stays
 * until the next sn_proved_keep(). */
const sn_plan *sn_proved_model(const sn_proved *proved, const struct sn_plan_wish *wish);

/* Keeps a copy of a plan that counts bytes and was placed as well as can be, where it can be found again.
 * SN_NO_MEMORY. */
sn_status sn_proved_keep(sn_proved *proved, const struct sn_plan_wish *wish, const sn_plan *plan, sn_err *err);

#endif
