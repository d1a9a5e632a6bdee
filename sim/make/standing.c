/* Standing schedules; see the header. */
#include "sim/make/standing.h"

#include "base/checked.h"
#include "sim/schedule/schedule_dtr.h"
#include "sim/schedule/schedule_optimal.h"
#include "sim/schedule/stages.h"

#include <stdlib.h>

struct sn_standing {
  const sn_route *route;
  const sn_costs *costs;
  bool workspace;
  bool made[SN_STANDINGS];
  sn_schedule *schedules[SN_STANDINGS];
  uint64_t loads[SN_STANDINGS];
  sn_stages *stages;
  sn_optimal *optimal; /* asked for last */
  uint64_t optimal_bytes;
  sn_dtr_program *program;
};

sn_standing *sn_standing_new(const sn_route *route, const sn_costs *costs, bool workspace, sn_err *err) {
  sn_standing *st = malloc(sizeof *st);
  if (!st) return sn_fail_memory(err), NULL;
  *st = (sn_standing){.route = route, .costs = costs, .workspace = workspace};
  return st;
}

void sn_standing_free(sn_standing *st) {
  if (!st) return;
  for (int k = 0; k < SN_STANDINGS; k++) sn_schedule_free(st->schedules[k]);
  sn_optimal_free(st->optimal); /* which looks at the stages */
  sn_stages_free(st->stages);
  sn_dtr_program_free(st->program);
  free(st);
}

const sn_stages *sn_standing_stages(sn_standing *st, sn_err *err) {
  if (!st->stages) st->stages = sn_stages_new(st->route, st->costs, st->workspace, err);
  return st->stages;
}

sn_optimal *sn_standing_optimal(sn_standing *st, uint64_t bytes, sn_err *err) {
  const sn_stages *stages = sn_standing_stages(st, err);
  if (!stages || (st->optimal && st->optimal_bytes == bytes)) return stages ? st->optimal : NULL;
  sn_optimal_free(st->optimal);
  st->optimal_bytes = bytes;
  return st->optimal = sn_optimal_new(stages, bytes, err);
}

const sn_dtr_program *sn_standing_program(sn_standing *st, sn_err *err) {
  if (!st->program) st->program = sn_schedule_dtr_program(st->route, st->costs, st->workspace, err);
  return st->program;
}

/* Of the rules up to sqrt. */
static uint64_t least_load_of_rules(sn_standing *st, sn_err *err) {
  uint64_t least = UINT64_MAX;
  for (sn_standing_kind k = SN_STANDING_WHOLE; k <= SN_STANDING_SQRT; k++) {
    if (!sn_standing_schedule(st, k, err)) return 0;
    least = sn_min(least, st->loads[k]);
  }
  return least;
}

/* In parts of the least of the rules; where that is not possible in whole parts, of all. */
static sn_schedule *make_least(sn_standing *st, sn_err *err) {
  uint64_t enough = least_load_of_rules(st, err);
  const sn_stages *stages = err->code == SN_OK ? sn_standing_stages(st, err) : NULL;
  sn_optimal *o = stages ? sn_optimal_new(stages, enough, err) : NULL;
  if (o && sn_optimal_least(o) == UINT64_MAX) {
    sn_optimal_free(o);
    o = sn_optimal_new(stages, st->loads[SN_STANDING_WHOLE], err);
  }
  uint64_t least = o ? sn_optimal_least(o) : UINT64_MAX;
  sn_schedule *schedule = least < UINT64_MAX ? sn_optimal_schedule(o, least, err) : NULL;
  sn_optimal_free(o);
  return schedule;
}

static sn_schedule *make_dtr_least(sn_standing *st, sn_err *err) {
  if (!sn_standing_schedule(st, SN_STANDING_WHOLE, err)) return NULL;
  const sn_dtr_program *program = sn_standing_program(st, err);
  uint64_t least = program ? sn_schedule_dtr_least(program, st->loads[SN_STANDING_WHOLE], err) : 0;
  return err->code == SN_OK ? sn_schedule_dtr(st->route, program, least, err) : NULL;
}

static sn_schedule *make(sn_standing *st, sn_standing_kind kind, sn_err *err) {
  static const sn_recompute rules[] = {[SN_STANDING_WHOLE] = SN_RECOMPUTE_NONE,
                                       [SN_STANDING_SPEED] = SN_RECOMPUTE_SPEED,
                                       [SN_STANDING_COST] = SN_RECOMPUTE_COST,
                                       [SN_STANDING_MEMORY] = SN_RECOMPUTE_MEMORY,
                                       [SN_STANDING_SQRT] = SN_RECOMPUTE_SQRT};
  if (kind == SN_STANDING_LEAST) return make_least(st, err);
  if (kind == SN_STANDING_DTR_LEAST) return make_dtr_least(st, err);
  return sn_schedule_new(st->route, rules[kind], err);
}

const sn_schedule *sn_standing_schedule(sn_standing *st, sn_standing_kind kind, sn_err *err) {
  if (st->made[kind]) return st->schedules[kind];
  sn_schedule *schedule = make(st, kind, err);
  uint64_t load = schedule ? sn_schedule_load(schedule) : 0;
  if (schedule && load == 0) sn_fail_memory(err);
  if (err->code != SN_OK) {
    sn_schedule_free(schedule);
    return NULL;
  }
  st->made[kind] = true;
  st->loads[kind] = load;
  return st->schedules[kind] = schedule;
}

uint64_t sn_standing_load(const sn_standing *st, sn_standing_kind kind) {
  return st->loads[kind];
}
