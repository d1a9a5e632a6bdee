/* Fullest; see the header. */
#include "sim/plan/fullest.h"

#include "base/checked.h"
#include "sim/policy/offload.h"
#include "sim/policy/residency.h"

#include <stdlib.h>

typedef struct walk {
  const sn_schedule *schedule;
  const sn_route *route;
  sn_residency residency;
  sn_swaps swaps;
  uint32_t next_release, next_fetch; /* in swaps */
  bool *there;                       /* per tensor */
  bool matters;                      /* the step does */
  uint64_t bytes, most;
} walk;

static void meter(walk *w) {
  if (w->matters) w->most = sn_max(w->most, w->bytes);
}

static void bring(walk *w, uint32_t tensor) {
  if (w->there[tensor]) return;
  w->there[tensor] = true;
  w->bytes += w->route->tensors[tensor].bytes;
  meter(w);
}

static void take(walk *w, uint32_t tensor) {
  w->there[tensor] = false;
  w->bytes -= w->route->tensors[tensor].bytes;
}

static void begin_step(walk *w, uint32_t step) {
  const sn_swaps *s = &w->swaps;
  for (; w->next_release < s->count && s->by_release[w->next_release].release_step == step; w->next_release++)
    take(w, s->by_release[w->next_release].tensor);
  w->matters = step < sn_route_steps_that_matter(w->route);
  meter(w);
  for (; w->next_fetch < s->count && s->by_fetch[w->next_fetch].fetch_step == step; w->next_fetch++)
    bring(w, s->by_fetch[w->next_fetch].tensor);
}

static void execute(walk *w, const sn_execution *x) {
  const sn_step *step = &w->route->steps[x->step];
  const sn_access *accesses = &w->route->accesses[step->first_access];
  for (uint32_t i = 0; i < step->n_accesses; i++)
    if (accesses[i].mode != SN_WRITE) bring(w, accesses[i].tensor);
  for (uint32_t i = 0; i < step->n_accesses; i++) {
    if (w->there[accesses[i].tensor]) continue;
    uint32_t taken = w->residency.takes[accesses[i].tensor];
    if (taken != SN_NONE) take(w, taken);
    bring(w, accesses[i].tensor);
  }
  for (uint32_t i = 0; i < step->n_accesses; i++) {
    uint32_t tensor = accesses[i].tensor;
    bool stays = w->residency.held[tensor] || w->residency.stays[tensor];
    if (!stays && w->schedule->last_use[x->first_last_use + i]) take(w, tensor);
  }
}

/* Forward has ended: what the iteration before has left goes. */
static void take_carried(walk *w) {
  for (uint32_t t = 0; t < w->route->n_tensors; t++)
    if (w->route->tensors[t].role == SN_CARRIED) take(w, t);
}

static void go(walk *w) {
  w->matters = sn_route_steps_that_matter(w->route) > 0;
  for (uint32_t t = 0; t < w->route->n_tensors; t++)
    if (w->residency.held[t]) bring(w, t);
  for (uint32_t e = 0, step = SN_NONE; e < w->schedule->n_executions; e++) {
    const sn_execution *x = &w->schedule->executions[e];
    if (x->at_step != step) begin_step(w, step = x->at_step);
    execute(w, x);
    if (x->step + 1 == w->route->first_backward) take_carried(w);
  }
}

sn_status sn_fullest_bytes(const sn_schedule *schedule, sn_strategy strategy, uint64_t *bytes, sn_err *err) {
  const sn_route *route = schedule->route;
  walk w = {.schedule = schedule, .route = route, .there = calloc((size_t)route->n_tensors + 1, sizeof(bool))};
  sn_status status = w.there ? sn_residency_make(route, strategy.liveness, &w.residency, err) : sn_fail_memory(err);
  if (status == SN_OK) status = sn_swaps_make(schedule, strategy.offload, &w.swaps, err);
  if (status == SN_OK) go(&w);
  *bytes = w.most;
  sn_swaps_clear(&w.swaps);
  sn_residency_clear(&w.residency);
  free(w.there);
  return status;
}
