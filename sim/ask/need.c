/* Need; see the header. */
#include "sim/ask/need.h"

#include "base/checked.h"
#include "sim/ask/result.h"
#include "sim/graph/route.h"
#include "sim/make/fullest.h"
#include "sim/plan/lower.h"

/* Of memory and pool once so many bytes are in it. */
static int64_t slack(const sn_need_wish *w, uint64_t tensors) {
  int64_t room = (int64_t)w->memory_bytes - (int64_t)w->resident_bytes, limit = (int64_t)w->pool_limit;
  return (limit > 0 && room > limit ? limit : room) - (int64_t)tensors;
}

static uint64_t largest_step(const sn_route *route) {
  return sn_lower_floor(route, SN_WORKSPACE_NONE, NULL, NULL);
}

void sn_need_tell(const sn_need_wish *w, const sn_plan *plan, sn_need *need) {
  bool cache = sn_strategy_has_cache(w->strategy);
  uint64_t tensors = cache ? largest_step(plan->route) : plan->use[sn_result_peak(plan, plan->use)].tensor_bytes;
  *need = (sn_need){.fits = sn_plan_fits(plan),
                    .device_bytes = w->resident_bytes + plan->pool_bytes,
                    .host_bytes = w->on_host ? plan->external_bytes : 0,
                    .slack_bytes = slack(w, tensors)};
  int64_t outside = (int64_t)plan->external_limit - (int64_t)plan->external_bytes;
  if (plan->external_limit == 0 || outside >= need->slack_bytes) return;
  need->guessed = cache;
  need->slack_bytes = outside;
}

/* Of a strategy with a cache: wherever the largest step does it runs. */
static void foresee_cache(const sn_need_wish *w, uint64_t pool, sn_need *need) {
  *need = (sn_need){.fits = pool >= w->floor, .slack_bytes = slack(w, largest_step(w->schedule->route))};
}

/* A narrow cache may fail with holes wherever it does not fail without. */
static sn_status foresee_narrow(const sn_need_wish *w, uint64_t pool, sn_need *need, bool *known, sn_err *err) {
  const sn_fullest_wish wish = {
      .schedule = w->schedule, .strategy = w->strategy, .costs = w->costs, .workspace = w->workspace};
  sn_fullest fullest;
  if (sn_fullest_find(&wish, &fullest, err) != SN_OK) return err->code;
  foresee_cache(w, pool, need);
  need->fits = false;
  *known = fullest.pool_bytes > pool;
  return SN_OK;
}

sn_status sn_need_foresee(const sn_need_wish *w, sn_need *need, bool *known, sn_err *err) {
  uint64_t left = w->memory_bytes - sn_min(w->memory_bytes, w->resident_bytes);
  uint64_t pool = w->pool_limit > 0 ? sn_min(w->pool_limit, left) : left;
  *known = true;
  if (w->strategy.offload == SN_OFFLOAD_NARROW_CACHE) return foresee_narrow(w, pool, need, known, err);
  if (sn_strategy_has_cache(w->strategy)) {
    foresee_cache(w, pool, need);
    return SN_OK;
  }
  const sn_fullest_wish wish = {.schedule = w->schedule,
                                .strategy = w->strategy,
                                .first_fit = w->pooled,
                                .pool_bytes = pool,
                                .costs = w->costs,
                                .workspace = w->workspace};
  sn_fullest fullest;
  if (sn_fullest_find(&wish, &fullest, err) != SN_OK) return err->code;
  *need = (sn_need){.fits = fullest.fits, .slack_bytes = slack(w, fullest.tensor_bytes)};
  *known = need->fits || need->slack_bytes < 0;
  return SN_OK;
}

/* What a step makes in the place of what it reads takes no bytes of its own. */
static uint64_t step_bytes(const sn_route *route, const sn_step *step, bool whole_blocks) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < step->n_accesses; i++) {
    uint64_t tensor = route->tensors[route->accesses[step->first_access + i].tensor].bytes;
    bool taken = false;
    for (uint32_t p = 0; p < step->n_permits; p++) taken |= route->permits[step->first_permit + p].to == i;
    if (!taken) bytes += whole_blocks ? sn_pool_round(tensor) : tensor;
  }
  return bytes;
}

uint64_t sn_need_of_largest_step(const sn_route *route, bool whole_blocks) {
  uint64_t most = 0;
  for (uint32_t s = 0; s < route->n_steps; s++) most = sn_max(most, step_bytes(route, &route->steps[s], whole_blocks));
  return most;
}
