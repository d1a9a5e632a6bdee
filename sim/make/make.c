/* Making plans; see the header. */
#include "sim/make/make.h"

#include "sim/graph/dialect.h"
#include "sim/graph/route.h"
#include "sim/make/fill.h"
#include "sim/make/optimal.h"
#include "sim/memory/pack.h"
#include "sim/plan/check.h"
#include "sim/plan/duration.h"
#include "sim/plan/lower.h"
#include "sim/plan/lower_from_known.h"
#include "sim/plan/place.h"

/* One that was proved for the same schedule and strategy; NULL: none is known. */
static const sn_plan *model_of(const sn_plan_wish *w) {
  return w->proved ? sn_proved_model(w->proved, w) : NULL;
}

static sn_plan *count_in(const sn_plan_wish *w, uint64_t pool_bytes, bool gives_up, sn_err *err) {
  const sn_plan *model = model_of(w);
  bool cache = sn_strategy_has_cache(w->strategy);
  sn_plan *plan = model ? sn_lower_from_known(model, cache, w->workspace, w->costs, pool_bytes, gives_up, err) : NULL;
  if (!plan && err->code == SN_OK)
    plan = sn_lower_counting(w->schedule, w->strategy, w->workspace, w->costs, pool_bytes, gives_up, err);
  if (plan) plan->pool_limit = w->pool_bytes;
  return plan;
}

static sn_plan *lower_in(const sn_plan_wish *w, sn_err *err) {
  return sn_lower(w->schedule, w->strategy, w->workspace, w->costs, w->pool_bytes, err);
}

/* Places a plan, which may be NULL. NULL after an error. */
static sn_plan *place(const sn_plan_wish *w, sn_plan *plan, sn_place_goal goal, sn_err *err) {
  if (!plan || sn_place(plan, goal, w->packings, err) == SN_OK) return plan;
  sn_plan_free(plan);
  return NULL;
}

/* As well as can be, or until it fits where nothing else is asked: both say the same of whether it fits. PyTorch's
 * graph mostly has an allocator of its own, and its pool is near the largest load where it has not. */
static sn_plan *place_well(const sn_plan_wish *w, sn_plan *plan, sn_err *err) {
  bool near = sn_dialect_of(w->strategy.dialect)->eager;
  return place(w, plan, (sn_place_goal){.enough = w->only_fits ? w->pool_bytes : 0, .near = near}, err);
}

static bool is_within(const sn_plan_wish *w, const sn_plan *plan) {
  return plan->pool_bytes <= w->pool_bytes;
}

/* The first of two plans that fits when it is placed: `counted`, which is used up, or one around holes, which may not
 * fit either. NULL after an error. */
static sn_plan *squeeze(const sn_plan_wish *w, sn_plan *counted, sn_err *err) {
  const sn_place_goal goal = {.most = w->pool_bytes};
  sn_plan *plan = place(w, counted, goal, err);
  if (!plan || is_within(w, plan)) return plan;
  sn_plan_free(plan);
  plan = lower_in(w, err);
  return plan && is_within(w, plan) ? place(w, plan, (sn_place_goal){.enough = w->pool_bytes}, err)
                                    : place(w, plan, goal, err);
}

/* What runs without a byte of workspace that it can do without: `counted` already where that takes none either, as of
 * recordings. */
static sn_plan *count_bare(const sn_plan_wish *w, const sn_plan *counted, sn_err *err) {
  bool same = sn_lower_again(counted, w->workspace, w->costs, 0);
  return same ? sn_plan_copy(counted, err) : count_in(w, 0, false, err);
}

/* Without a cache what runs without a byte of workspace that it can do without decides whether it fits; its holes are
 * filled where no other plan fits. */
static sn_plan *squeeze_workspaces(const sn_plan_wish *w, sn_plan *counted, sn_err *err) {
  sn_plan *bare = place_well(w, count_bare(w, counted, err), err);
  if (!bare || w->only_fits || !is_within(w, bare)) {
    sn_plan_free(counted);
    return bare;
  }
  sn_plan *plan = squeeze(w, counted, err);
  bool better = !plan || is_within(w, plan);
  sn_plan_free(better ? bare : plan);
  if (better || sn_fill(bare, w->costs, w->pool_bytes, err) == SN_OK) return better ? plan : bare;
  sn_plan_free(bare);
  return NULL;
}

/* Blocks that a plan has at least: every tensor, again where it is made or fetched again after its last use. */
static uint32_t least_blocks(const sn_plan_wish *w) {
  const sn_schedule *s = w->schedule;
  uint32_t lives = 0;
  size_t n = w->strategy.liveness == SN_LIVENESS_FULL ? sn_schedule_accesses(s) : 0;
  for (size_t i = 0; i < n; i++) lives += s->last_use[i];
  return lives > s->route->n_tensors ? lives : s->route->n_tensors;
}

/* Whether placing a plan would be in vain; one of a cache may yet change. */
static sn_status is_too_slow(const sn_plan_wish *w, const sn_plan *plan, bool *slow, sn_err *err) {
  int64_t ns = 0;
  bool asked = w->most_ns > 0 && !sn_strategy_has_cache(w->strategy);
  sn_status status = asked ? sn_plan_duration(plan, w->costs, w->link, &ns, err) : SN_OK;
  *slow = asked && ns > w->most_ns;
  return status;
}

/* Places one that counts bytes; *plain: it is still that one, placed as well as can be. NULL after an error. */
static sn_plan *place_counted(const sn_plan_wish *w, sn_plan *plan, bool *plain, sn_err *err) {
  bool cache = sn_strategy_has_cache(w->strategy), dynamic = w->workspace == SN_WORKSPACE_DYNAMIC;
  bool fits = is_within(w, plan), bytes_fit = plan->reserved_peak <= w->pool_bytes;
  bool sure = cache && (!bytes_fit || (w->only_fits && !w->external_limit)); /* which of the two it is shows at once */
  if (!fits && (sure || !sn_place_can(plan))) {
    sn_plan_free(plan);
    plan = lower_in(w, err);
    return w->only_fits ? plan : place_well(w, plan, err);
  }
  *plain = (fits || !bytes_fit) && !w->only_fits;
  if (fits || !bytes_fit) return w->only_fits ? plan : place_well(w, plan, err);
  if (cache) return squeeze(w, plan, err);
  return dynamic ? squeeze_workspaces(w, plan, err) : place_well(w, plan, err);
}

static sn_plan *make_packed(const sn_plan_wish *w, bool *plain, sn_err *err) {
  bool cache = sn_strategy_has_cache(w->strategy);
  if (least_blocks(w) > SN_PACK_MOST) return lower_in(w, err);
  sn_plan *plan = count_in(w, w->pool_bytes, cache, err);
  if (plan && plan->given_up) {
    sn_plan_free(plan);
    plan = lower_in(w, err);
    if (!plan || is_within(w, plan)) return place(w, plan, (sn_place_goal){.enough = w->pool_bytes}, err);
    sn_plan_free(plan);
    plan = count_in(w, w->pool_bytes, false, err);
  }
  bool slow = false;
  if (plan && is_too_slow(w, plan, &slow, err) != SN_OK) {
    sn_plan_free(plan);
    return NULL;
  }
  return !plan || slow ? plan : place_counted(w, plan, plain, err);
}

/* Of the schedule that is given. */
static sn_plan *make(const sn_plan_wish *wish, sn_err *err) {
  bool packed =
      wish->placement == SN_PLACEMENT_PACKED && !sn_strategy_is_system(wish->strategy) && !wish->strategy.dynamic;
  bool keeps = packed && wish->proved && !wish->only_fits, plain = false;
  sn_plan *plan = keeps ? sn_proved_find(wish->proved, wish, err) : NULL;
  if (plan || err->code != SN_OK) return plan;
  plan = packed ? make_packed(wish, &plain, err) : lower_in(wish, err);
  if (!plan) return NULL;
  plan->external_limit = wish->external_limit;
  sn_status status = sn_check_like(plan, model_of(wish), err);
  if (status == SN_OK && keeps && plain) status = sn_proved_keep(wish->proved, wish, plan, err);
  if (status == SN_OK) return plan;
  sn_plan_free(plan);
  return NULL;
}

sn_plan *sn_plan_make(const sn_plan_wish *wish, sn_err *err) {
  if (wish->strategy.recompute == SN_RECOMPUTE_DTR) return sn__plan_dtr(wish, make, err);
  return sn_strategy_adapts(wish->strategy) ? sn__plan_optimal(wish, make, err) : make(wish, err);
}
