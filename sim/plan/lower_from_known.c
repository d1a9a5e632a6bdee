/* Like; see the header. */
#include "sim/plan/lower_from_known.h"

#include "base/checked.h"
#include "sim/graph/route.h"
#include "sim/memory/pool.h"
#include "sim/plan/lower.h"
#include "sim/plan/place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct likeness {
  sn_plan *plan;
  bool cache;
  sn_workspace workspace;
  const sn_costs *costs;
  uint64_t pool_bytes;
  uint64_t *offsets; /* per tensor: where it lies */
  sn_pool pool;
  uint32_t blocks;      /* allocs and workspaces */
  bool freed_elsewhere; /* not where the model has last given memory back */
} likeness;

/* First fit takes the lowest hole whatever follows, so that tensors lie where they lie. */
static void give_place(likeness *l, sn_instr *i) {
  sn_pool_take(&l->pool, i->bytes, UINT64_MAX, &i->offset);
  l->offsets[i->id] = i->offset;
  l->plan->bare_bytes = sn_max(l->plan->bare_bytes, i->offset + i->bytes);
  l->blocks++;
}

static bool take_back(likeness *l, sn_instr *i) {
  l->freed_elsewhere = false;
  i->offset = l->offsets[i->id];
  return sn_pool_give(&l->pool, i->offset, i->bytes) == SN_OK;
}

/* A workspace is memory given back, as by a release. */
static void note_freed(likeness *l, bool before, bool now) {
  if (before || now) l->freed_elsewhere = before != now;
}

static bool give_workspace(likeness *l, sn_instr *i) {
  uint64_t left = sn_lower_left(l->workspace, l->pool_bytes, l->pool.reserved), had = i->bytes;
  i->bytes = sn_pool_round(sn_lower_workspace_in(l->plan->route, l->costs, i->id, left, i->algo));
  i->offset = 0;
  note_freed(l, had > 0, i->bytes > 0);
  if (i->bytes == 0) return true;
  sn_step_use *use = &l->plan->use[i->step];
  use->workspace_bytes = sn_max(use->workspace_bytes, i->bytes);
  l->blocks++;
  sn_pool_take(&l->pool, i->bytes, UINT64_MAX, &i->offset);
  return sn_pool_give(&l->pool, i->offset, i->bytes) == SN_OK;
}

/* Who copies into memory is ordered behind whoever gave any back last. */
static bool is_ordered_as_before(const likeness *l, const sn_instr *i) {
  return i->kind != SN_ALLOC || i->lane == SN_LANE_COMPUTE || !l->freed_elsewhere;
}

/* A cache that has not room for all sends something out. */
static bool has_room(const likeness *l) {
  return !l->cache || l->pool.reserved_peak <= l->pool_bytes;
}

/* *same: no instruction is another one or comes at another time. False where there is no memory. */
static bool walk(likeness *l, bool *same) {
  bool good = true;
  for (uint32_t n = 0; n < l->plan->n_instrs && good && *same; n++) {
    sn_instr *i = &l->plan->instrs[n];
    *same = is_ordered_as_before(l, i) && has_room(l);
    if (i->kind == SN_ALLOC) give_place(l, i);
    if (i->kind == SN_RELEASE) good = take_back(l, i);
    if (i->kind == SN_COMPUTE) good = give_workspace(l, i);
  }
  *same = *same && has_room(l);
  return good;
}

static void begin(likeness *l) {
  sn_plan *plan = l->plan;
  for (uint32_t s = 0; s < plan->route->n_steps; s++) plan->use[s].workspace_bytes = 0;
  plan->placement = SN_PLACEMENT_FIRST_FIT;
  plan->pool_limit = l->pool_bytes;
  plan->external_limit = plan->bare_bytes = 0;
  snprintf(plan->layouts, sizeof plan->layouts, "%s", sn_costs_layouts(l->costs));
}

static void end(likeness *l, bool gives_up) {
  sn_plan *plan = l->plan;
  plan->pool_bytes = plan->first_fit_bytes = l->pool.high_water;
  plan->roomy = l->pool.high_water <= l->pool_bytes;
  plan->largest_hole = l->pool.largest_hole;
  plan->reserved_peak = l->pool.reserved_peak;
  plan->given_up = gives_up && !plan->roomy && sn_place_is_hopeless(l->blocks, plan->reserved_peak, l->pool_bytes);
}

sn_plan *sn_lower_from_known(const sn_plan *model, bool cache, sn_workspace workspace, const sn_costs *costs,
                             uint64_t pool_bytes, bool gives_up, sn_err *err) {
  likeness l = {.plan = sn_plan_copy(model, err),
                .cache = cache,
                .workspace = workspace,
                .costs = costs,
                .pool_bytes = pool_bytes};
  l.offsets = malloc(((size_t)model->route->n_tensors + 1) * sizeof *l.offsets);
  bool same = true, good = l.plan && l.offsets;
  if (good) begin(&l);
  good = good && walk(&l, &same);
  if (good) end(&l, gives_up);
  if (!good) sn_fail_memory(err);
  sn_pool_clear(&l.pool);
  free(l.offsets);
  if (good && same) return l.plan;
  sn_plan_free(l.plan);
  return NULL;
}

static bool is_instr_like(const sn_instr *a, const sn_instr *b) {
  if (a->kind != b->kind || a->lane != b->lane || a->rerun != b->rerun || a->part != b->part || a->team != b->team ||
      a->id != b->id || a->step != b->step)
    return false;
  if (a->kind == SN_COMPUTE) return true;
  return a->bytes == b->bytes && (a->kind == SN_ALLOC || a->kind == SN_RELEASE || a->offset == b->offset);
}

bool sn_lower_is_known(const sn_plan *plan, const sn_plan *model) {
  if (plan->route != model->route || plan->n_instrs != model->n_instrs || plan->n_fences != model->n_fences ||
      plan->external_bytes != model->external_bytes)
    return false;
  for (uint32_t n = 0; n < plan->n_instrs; n++)
    if (!is_instr_like(&plan->instrs[n], &model->instrs[n])) return false;
  return true;
}
