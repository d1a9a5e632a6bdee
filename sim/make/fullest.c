/* Fullest; see the header. */
#include "sim/make/fullest.h"

#include "base/checked.h"
#include "sim/graph/route.h"
#include "sim/memory/pool.h"
#include "sim/plan/lower.h"
#include "sim/policy/residency.h"
#include "sim/schedule/offload.h"

#include <stdlib.h>

typedef struct walk {
  const sn_fullest_wish *wish;
  const sn_schedule *schedule;
  const sn_route *route;
  sn_residency residency;
  sn_swaps swaps;
  uint32_t next_release, next_fetch; /* in swaps */
  bool *there;                       /* per tensor */
  bool matters;                      /* the step does */
  bool cache, narrow;
  uint64_t bytes, most;
  uint64_t blocks, least; /* the same in whole blocks, each step with its workspace */
  uint64_t *offsets;      /* per tensor; NULL: whether first fit has room for them is not asked, or known */
  sn_pool pool;
  bool fits, out_of_memory;
} walk;

static void meter(walk *w) {
  if (w->matters) w->most = sn_max(w->most, w->bytes);
}

static void give(walk *w, uint64_t offset, uint64_t bytes) {
  w->out_of_memory |= sn_pool_give(&w->pool, offset, bytes) != SN_OK;
}

/* What has no room ends the search for more. */
static uint64_t find_room(walk *w, uint64_t bytes) {
  uint64_t offset = 0;
  w->fits = sn_pool_take(&w->pool, bytes, w->wish->pool_bytes, &offset);
  if (!w->fits) w->offsets = NULL;
  return offset;
}

static void place(walk *w, uint32_t tensor) {
  uint64_t offset = find_room(w, w->route->tensors[tensor].bytes);
  if (w->offsets) w->offsets[tensor] = offset;
}

/* What is not there. */
static void bring(walk *w, uint32_t tensor) {
  w->there[tensor] = true;
  w->bytes += w->route->tensors[tensor].bytes;
  w->blocks += sn_pool_round(w->route->tensors[tensor].bytes);
  meter(w);
  if (w->offsets) place(w, tensor);
}

static void take(walk *w, uint32_t tensor) {
  uint64_t bytes = w->route->tensors[tensor].bytes;
  w->there[tensor] = false;
  w->bytes -= bytes;
  w->blocks -= sn_pool_round(bytes);
  if (w->offsets) give(w, w->offsets[tensor], bytes);
}

static void use_workspace(walk *w, uint32_t step) {
  uint64_t bytes = w->wish->costs ? sn_lower_workspace(w->route, w->wish->workspace, w->wish->costs, step) : 0;
  w->least = sn_max(w->least, w->blocks + sn_pool_round(bytes));
  if (bytes == 0 || !w->offsets) return;
  uint64_t offset = find_room(w, bytes);
  if (w->offsets) give(w, offset, bytes);
}

static void begin_step(walk *w, uint32_t step) {
  const sn_swaps *s = &w->swaps;
  for (; w->next_release < s->count && s->by_release[w->next_release].release_step == step; w->next_release++)
    take(w, s->by_release[w->next_release].tensor);
  w->matters = step < sn_route_steps_that_matter(w->route);
  meter(w);
  for (; w->next_fetch < s->count && s->by_fetch[w->next_fetch].fetch_step == step; w->next_fetch++)
    if (!w->there[s->by_fetch[w->next_fetch].tensor]) bring(w, s->by_fetch[w->next_fetch].tensor);
}

/* Once a step has run, a cache may send out what it has used. */
static void let_leave(walk *w, const sn_step *step) {
  for (uint32_t i = 0; i < step->n_accesses; i++) {
    uint32_t tensor = w->route->accesses[step->first_access + i].tensor;
    if (w->there[tensor] && (!w->narrow || sn_offload_is_narrow(w->route, tensor))) take(w, tensor);
  }
}

static void execute(walk *w, const sn_execution *x) {
  const sn_step *step = sn_route_run(w->route, x->step, x->rerun);
  const sn_access *accesses = &w->route->accesses[step->first_access];
  for (uint32_t i = 0; i < step->n_accesses; i++)
    if (accesses[i].mode != SN_WRITE && !w->there[accesses[i].tensor]) bring(w, accesses[i].tensor);
  for (uint32_t i = 0; i < step->n_accesses; i++) {
    if (w->there[accesses[i].tensor]) continue;
    uint32_t taken = w->residency.takes[accesses[i].tensor];
    if (taken != SN_NONE) take(w, taken);
    bring(w, accesses[i].tensor);
  }
  if (w->offsets || w->cache) use_workspace(w, x->step);
  for (uint32_t i = 0; i < step->n_accesses; i++) {
    uint32_t tensor = accesses[i].tensor;
    bool last = w->schedule->last_use[x->first_last_use + i];
    if (last && !w->residency.held[tensor] && !w->residency.stays[tensor]) take(w, tensor);
  }
  if (w->cache) let_leave(w, step);
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

static sn_status walk_along(walk *w, sn_err *err) {
  sn_strategy strategy = w->wish->strategy;
  sn_status status = sn_residency_make(w->route, strategy.liveness, &w->residency, err);
  if (status == SN_OK) status = sn_swaps_make(w->schedule, strategy.offload, &w->swaps, err);
  if (status == SN_OK) go(w);
  sn_swaps_clear(&w->swaps);
  sn_residency_clear(&w->residency);
  return w->out_of_memory ? sn_fail_memory(err) : status;
}

sn_status sn_fullest_find(const sn_fullest_wish *wish, sn_fullest *fullest, sn_err *err) {
  size_t count = (size_t)wish->schedule->route->n_tensors + 1;
  walk w = {.wish = wish, .schedule = wish->schedule, .route = wish->schedule->route, .fits = wish->first_fit};
  w.cache = sn_strategy_has_cache(wish->strategy);
  w.narrow = wish->strategy.offload == SN_OFFLOAD_NARROW_CACHE;
  uint64_t *offsets = w.offsets = wish->first_fit ? malloc(count * sizeof *offsets) : NULL;
  w.there = calloc(count, sizeof *w.there);
  sn_status status = w.there && (offsets || !wish->first_fit) ? walk_along(&w, err) : sn_fail_memory(err);
  *fullest = (sn_fullest){.tensor_bytes = w.most, .pool_bytes = w.least, .fits = w.fits};
  sn_pool_clear(&w.pool);
  free(offsets);
  free(w.there);
  return status;
}
