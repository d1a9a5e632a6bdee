/* What schedules come to, and whether two are the same; see the header. */
#include "base/checked.h"
#include "sim/graph/route.h"
#include "sim/memory/pool.h"
#include "sim/schedule/schedule.h"

#include <stdlib.h>
#include <string.h>

uint64_t sn_schedule_load(const sn_schedule *schedule) {
  const sn_route *route = schedule->route;
  bool *there = calloc((size_t)route->n_tensors + 1, sizeof *there);
  uint64_t load = 0, most = 0;
  for (uint32_t e = 0; there && e < schedule->n_executions; e++) {
    const sn_execution *x = &schedule->executions[e];
    const sn_step *step = sn_route_run(route, x->step, x->rerun);
    const sn_access *accesses = &route->accesses[step->first_access];
    for (uint32_t i = 0; i < step->n_accesses; i++) {
      if (there[accesses[i].tensor]) continue;
      there[accesses[i].tensor] = true;
      load += sn_pool_round(route->tensors[accesses[i].tensor].bytes);
    }
    most = sn_max(most, load);
    for (uint32_t i = 0; i < step->n_accesses; i++) {
      if (!schedule->last_use[x->first_last_use + i]) continue;
      there[accesses[i].tensor] = false;
      load -= sn_pool_round(route->tensors[accesses[i].tensor].bytes);
    }
  }
  free(there);
  return most;
}

bool sn_schedule_same(const sn_schedule *a, const sn_schedule *b) {
  if (a == b) return true;
  if (a->route != b->route || a->n_executions != b->n_executions || a->reruns != b->reruns) return false;
  for (uint32_t e = 0; e < a->n_executions; e++) {
    const sn_execution *x = &a->executions[e], *y = &b->executions[e];
    if (x->step != y->step || x->at_step != y->at_step || x->rerun != y->rerun) return false;
    const bool *last = &a->last_use[x->first_last_use], *other = &b->last_use[y->first_last_use];
    if (memcmp(last, other, sn_route_run(a->route, x->step, x->rerun)->n_accesses * sizeof *last) != 0) return false;
  }
  return true;
}
