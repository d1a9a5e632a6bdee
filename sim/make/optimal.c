/* Plans of recompute=optimal and recompute=dtr; see the header. */
#include "sim/make/optimal.h"

#include "base/checked.h"
#include "models/op/op.h"
#include "sim/graph/route.h"
#include "sim/make/standing.h"
#include "sim/plan/duration.h"
#include "sim/schedule/schedule_checkpoints.h"
#include "sim/schedule/schedule_dtr.h"
#include "sim/schedule/schedule_optimal.h"
#include "sim/schedule/stages.h"

#include <stdlib.h>

enum { SHRINKS = 8, PARTS = 8, FOR_HOLES = 256, FOR_ROUNDING = 128, PARTS_OF_REGIONS = 16, FOR_SEGMENTS = 64 };

typedef struct search {
  const sn_plan_wish *wish;
  sn_plan *(*make)(const sn_plan_wish *wish, sn_err *err);
  const sn_route *route;
  sn_standing *standing;
  sn_plan *best; /* NULL: none was tried */
  int64_t best_ns;
  uint64_t best_bytes; /* what it needs at least */
  bool fits;           /* the best does */
  bool last_is_enough; /* of the schedule that was considered last the plan fits, or is slower than the best */
  uint64_t needed;     /* by that plan; where it is slower, at least; 0: it was not made */
  sn_err *err;
} search;

static bool is_better(const search *s, int64_t ns, bool fits, uint64_t bytes) {
  if (!s->best || fits != s->fits) return !s->best || fits;
  if (fits && ns != s->best_ns) return ns < s->best_ns;
  return bytes < s->best_bytes;
}

/* Makes the plan of a schedule for a pool, and keeps the better one. */
static sn_status try_plan(search *s, const sn_schedule *schedule, uint64_t pool_bytes) {
  sn_plan_wish wish = *s->wish;
  wish.schedule = schedule;
  wish.pool_bytes = pool_bytes;
  wish.most_ns = s->fits ? s->best_ns : 0;
  sn_plan *plan = s->make(&wish, s->err);
  if (!plan) return s->err->code;
  plan->pool_limit = s->wish->pool_bytes;
  int64_t ns = 0;
  if (sn_plan_duration(plan, wish.costs, wish.link, &ns, s->err) != SN_OK) {
    sn_plan_free(plan);
    return s->err->code;
  }
  bool fits = sn_plan_fits(plan);
  uint64_t bytes = plan->pool_bytes;
  /* where nothing fits and nobody asks how much would, any of them stands for it */
  if (wish.serve && wish.serve(wish.server, plan, &fits, wish.only_fits ? NULL : &bytes) != SN_OK) {
    sn_plan_free(plan);
    return s->err->code;
  }
  bool better = is_better(s, ns, fits, bytes);
  s->needed = wish.most_ns > 0 && ns > wish.most_ns ? plan->reserved_peak : plan->pool_bytes;
  s->last_is_enough = fits;
  sn_plan_free(better ? s->best : plan);
  if (!better) return SN_OK;
  s->best = plan;
  s->best_ns = ns;
  s->best_bytes = bytes;
  s->fits = fits;
  return SN_OK;
}

/* With the fastest algorithms, and no waits, it takes longer than the best. */
static bool is_slower(const search *s, const sn_schedule *schedule) {
  bool workspace = s->wish->workspace != SN_WORKSPACE_NONE;
  int64_t ns = 0;
  for (uint32_t e = 0; e < schedule->n_executions && s->fits && ns <= s->best_ns; e++)
    ns += sn_stages_step_ns(s->route, s->wish->costs, workspace, schedule->executions[e].step);
  return s->fits && ns > s->best_ns;
}

/* Its plan, where it may be better. Where workspaces adapt, for a little less than the pool too: what fills all of it
 * in bytes often cannot be placed, and then there is a plan without workspaces only. */
static sn_status try_plans(search *s, const sn_schedule *schedule) {
  uint64_t pool = s->wish->pool_bytes;
  sn_status status = SN_OK;
  s->needed = 0;
  s->last_is_enough = is_slower(s, schedule);
  if (s->last_is_enough) return SN_OK;
  if (s->wish->workspace == SN_WORKSPACE_DYNAMIC && !s->wish->only_fits)
    status = try_plan(s, schedule, pool - pool / FOR_HOLES);
  return status == SN_OK ? try_plan(s, schedule, pool) : status;
}

/* The same of a schedule that is used up; NULL: there is none, or an error. */
static sn_status consider(search *s, sn_schedule *schedule) {
  if (!schedule) return s->err->code;
  sn_status status = try_plans(s, schedule);
  sn_schedule_free(schedule);
  return status;
}

/* Memory less by what the plan tried last needs too much; false: there is nothing to take off. */
static bool shrink(const search *s, uint64_t *bytes) {
  uint64_t excess = s->needed > s->wish->pool_bytes ? s->needed - s->wish->pool_bytes : 0;
  if (excess == 0 || excess >= *bytes) return false;
  *bytes -= excess;
  return true;
}

static sn_status consider_standing(search *s, sn_standing_kind kind) {
  const sn_schedule *schedule = sn_standing_schedule(s->standing, kind, s->err);
  return schedule ? try_plans(s, schedule) : s->err->code;
}

/* Re-running nothing, and its load. */
static sn_status consider_whole(search *s, uint64_t *bytes) {
  sn_status status = consider_standing(s, SN_STANDING_WHOLE);
  *bytes = sn_standing_load(s->standing, SN_STANDING_WHOLE);
  return status;
}

/* What forward and backward take with the fastest algorithms, each layer once. */
static bool is_fastest(const search *s) {
  return s->fits && s->best->counts.recomputed_layers == 0 && s->wish->workspace != SN_WORKSPACE_DYNAMIC;
}

/* Whatever the memory. */
static sn_status consider_all_standing(search *s) {
  sn_status status = SN_OK;
  for (sn_standing_kind k = SN_STANDING_SPEED; k < SN_STANDINGS && status == SN_OK; k++)
    status = consider_standing(s, k);
  return status;
}

/* ---- for the pool on offer ---- */

static uint64_t largest_workspace(const search *s) {
  uint64_t most = 0;
  for (uint32_t i = 0; i < s->route->n_layers && s->wish->workspace != SN_WORKSPACE_NONE; i++)
    if (sn_op_of(&s->route->layers[i])->convolves) most = sn_max(most, sn_costs_largest_workspace(s->wish->costs, i));
  return most;
}

/* Within so many bytes, and where the plan needs more than there is, within less. */
static sn_status consider_within(search *s, sn_optimal *o, uint64_t bytes) {
  sn_status status = SN_OK;
  for (int i = 0; i < SHRINKS && status == SN_OK; i++) {
    if (sn_optimal_ns(o, bytes) == INT64_MAX) break;
    status = consider(s, sn_optimal_schedule(o, bytes, s->err));
    if (!shrink(s, &bytes)) break;
  }
  return status;
}

/* A little more than the pool to begin with: sizes are rounded up, so that less than that may be needed. */
static sn_status consider_pool(search *s, uint64_t all_bytes) {
  uint64_t pool = s->wish->pool_bytes, workspace = largest_workspace(s);
  uint64_t bytes = sn_min(pool + pool / FOR_ROUNDING, all_bytes);
  sn_optimal *o = sn_standing_optimal(s->standing, bytes, s->err);
  sn_status status = o ? SN_OK : s->err->code;
  int64_t last = -1;
  for (uint64_t part = 0; part <= PARTS && status == SN_OK; part++) {
    uint64_t less = workspace / PARTS * part;
    int64_t ns = less < bytes ? sn_optimal_ns(o, bytes - less) : last;
    if (ns != last) status = consider_within(s, o, bytes - less);
    last = ns;
  }
  return status;
}

/* ---- dtr ---- */

/* What DTR does within the pool, and where the plan needs more than there is, within less. */
static sn_status consider_dtr_budgets(search *s) {
  uint64_t budget = s->wish->pool_bytes;
  const sn_dtr_program *program = sn_standing_program(s->standing, s->err);
  for (int i = 0; i < SHRINKS && program; i++) {
    sn_schedule *schedule = sn_schedule_dtr(s->route, program, budget, s->err);
    if (!schedule || consider(s, schedule) != SN_OK || !shrink(s, &budget)) break;
  }
  return s->err->code;
}

/* ---- checkpoints of PyTorch ---- */

/* Of memories between the least of the regions and that of keeping all, whatever the pool is; then of the pool. */
static sn_status consider_regions(search *s, const sn_checkpoints *c, uint64_t all_bytes) {
  uint64_t least = 0, pool = s->wish->pool_bytes;
  sn_status status = sn_checkpoints_least(c, all_bytes, &least, s->err);
  for (uint64_t i = 0; i < PARTS_OF_REGIONS && least < all_bytes && status == SN_OK; i++) {
    if (s->fits && s->wish->only_fits) break;
    sn_schedule *schedule = sn_checkpoints_schedule(c, least + (all_bytes - least) / PARTS_OF_REGIONS * i, s->err);
    status = consider(s, schedule);
  }
  uint64_t bytes = sn_min(pool, all_bytes);
  for (int i = 0; i < SHRINKS && s->fits && status == SN_OK && !s->wish->only_fits; i++) {
    sn_schedule *schedule = sn_checkpoints_schedule(c, bytes, s->err);
    if (!schedule) return s->err->code;
    status = consider(s, schedule);
    if (s->last_is_enough) break;
    uint64_t excess = s->needed > pool ? s->needed - pool : 0;
    bytes -= sn_min(bytes, sn_max(excess, bytes / FOR_SEGMENTS));
  }
  return status;
}

static sn_status look_for_regions(search *s) {
  sn_status status = consider(s, sn_schedule_new(s->route, SN_RECOMPUTE_NONE, s->err));
  uint64_t bytes = s->needed;
  if (status != SN_OK || s->fits) return status; /* nothing is faster */
  status = consider(s, sn_schedule_new(s->route, SN_RECOMPUTE_UNITS, s->err));
  if (status != SN_OK || (s->fits && s->wish->only_fits)) return status;
  sn_checkpoints *c = sn_checkpoints_new(s->route, s->wish->costs, s->err);
  status = c ? consider_regions(s, c, bytes) : s->err->code;
  sn_checkpoints_free(c);
  return status;
}

/* ---- with offload ---- */

static bool may_send(const search *s) {
  return s->wish->strategy.offload == SN_OFFLOAD_PLANNED;
}

/* What superneurons does, which runs wherever the largest step does. */
static sn_status consider_cache(search *s) {
  sn_plan_wish own = *s->wish;
  const sn_plan_wish *asked = s->wish;
  own.strategy =
      (sn_strategy){.liveness = SN_LIVENESS_FULL, .offload = SN_OFFLOAD_CACHE, .recompute = SN_RECOMPUTE_COST};
  s->wish = &own;
  sn_status status = consider(s, sn_schedule_new(s->route, SN_RECOMPUTE_COST, s->err));
  s->wish = asked;
  return status;
}

/* Within so many bytes, with copies: what the recurrence says; of a rule, without it, whatever the link has time for.
 */
static sn_schedule *send_within(search *s, sn_optimal *o, sn_recompute rule, uint64_t bytes) {
  const sn_sending how = {s->wish->costs, s->wish->link, bytes, s->wish->workspace != SN_WORKSPACE_NONE};
  if (o) return sn_optimal_schedule_sending(o, bytes, &how, s->err);
  sn_schedule *schedule = sn_schedule_new(s->route, rule, s->err);
  if (schedule && sn_schedule_send(schedule, NULL, &how, s->err) == SN_OK) return schedule;
  sn_schedule_free(schedule);
  return NULL;
}

/* The same, and where the plan needs more than there is, within less. */
static sn_status consider_sending(search *s, sn_optimal *o, sn_recompute rule, uint64_t bytes) {
  sn_status status = SN_OK;
  for (int i = 0; i < SHRINKS && status == SN_OK; i++) {
    if (o && sn_optimal_ns(o, bytes) == INT64_MAX) break;
    status = consider(s, send_within(s, o, rule, bytes));
    if (!shrink(s, &bytes)) break;
  }
  return status;
}

/* For the pool, and for less by parts of the largest workspace. */
static sn_status consider_sending_in_pool(search *s, uint64_t all_bytes) {
  static const sn_recompute rules[] = {SN_RECOMPUTE_NONE, SN_RECOMPUTE_SPEED, SN_RECOMPUTE_COST};
  uint64_t pool = sn_min(s->wish->pool_bytes, all_bytes), workspace = largest_workspace(s);
  const sn_stages *stages = sn_standing_stages(s->standing, s->err);
  sn_optimal *o = stages ? sn_optimal_new_sending(stages, pool, s->wish->link, s->err) : NULL;
  sn_status status = o ? SN_OK : s->err->code;
  for (uint64_t part = 0; part <= (workspace > 0 ? PARTS : 0) && status == SN_OK; part++) {
    uint64_t less = workspace / PARTS * part, bytes = pool > less ? pool - less : 0;
    status = consider_sending(s, o, SN_RECOMPUTE_NONE, bytes);
    for (size_t r = 0; r < sizeof rules / sizeof *rules && status == SN_OK; r++)
      status = consider_sending(s, NULL, rules[r], bytes);
  }
  sn_optimal_free(o);
  return status;
}

static sn_status look(search *s) {
  uint64_t bytes;
  sn_status status = consider_whole(s, &bytes);
  if (status != SN_OK || is_fastest(s) || (s->fits && s->wish->only_fits)) return status;
  status = consider_all_standing(s);
  if (status == SN_OK && may_send(s)) status = consider_cache(s);
  if (status != SN_OK || !s->fits || s->wish->only_fits) return status;
  status = consider_pool(s, bytes);
  if (status == SN_OK) status = consider_dtr_budgets(s);
  return status == SN_OK && may_send(s) ? consider_sending_in_pool(s, bytes) : status;
}

/* Looks, and takes the best. */
static sn_plan *answer(const sn_plan_wish *wish, sn_plan *(*make)(const sn_plan_wish *wish, sn_err *err),
                       sn_status (*looking)(search *s), sn_err *err) {
  const sn_route *route = wish->schedule->route;
  sn_standing *own = NULL;
  if (!wish->standing) own = sn_standing_new(route, wish->costs, wish->workspace != SN_WORKSPACE_NONE, err);
  search s = {.wish = wish, .make = make, .route = route, .standing = own ? own : wish->standing, .err = err};
  sn_status status = s.standing ? looking(&s) : err->code;
  sn_standing_free(own);
  if (status == SN_OK) return s.best;
  sn_plan_free(s.best);
  return NULL;
}

sn_plan *sn__plan_optimal(const sn_plan_wish *wish, sn_plan *(*make)(const sn_plan_wish *wish, sn_err *err),
                          sn_err *err) {
  return answer(wish, make, wish->schedule->route->dialect->eager ? look_for_regions : look, err);
}

/* Whether DTR's least fits decides; then it has the pool. */
static sn_status look_at_dtr(search *s) {
  uint64_t bytes;
  sn_status status = consider_whole(s, &bytes);
  if (status != SN_OK || s->fits) return status;
  status = consider_standing(s, SN_STANDING_DTR_LEAST);
  return status == SN_OK && s->fits && !s->wish->only_fits ? consider_dtr_budgets(s) : status;
}

sn_plan *sn__plan_dtr(const sn_plan_wish *wish, sn_plan *(*make)(const sn_plan_wish *wish, sn_err *err), sn_err *err) {
  return answer(wish, make, look_at_dtr, err);
}
