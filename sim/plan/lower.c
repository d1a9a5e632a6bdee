/* Lowering; see the header. */
#include "sim/plan/lower.h"

#include "base/checked.h"
#include "sim/graph/route.h"
#include "sim/plan/emit.h"
#include "sim/plan/place.h"
#include "sim/policy/residency.h"
#include "sim/schedule/offload.h"

#include <stdio.h>

typedef struct lowering {
  sn__emit emit;
  const sn_schedule *schedule;
  const sn_route *route;
  const sn_costs *costs;
  sn_workspace workspace;
  uint64_t pool_bytes;
  bool gives_up; /* where it is hopeless to place the plan in the pool, or none is written and it is too large */
  sn_residency residency;
  sn_swaps swaps;
  uint32_t next_release, next_fetch; /* in swaps */
} lowering;

static sn_status allocate_held(lowering *l) {
  sn_status status = SN_OK;
  sn__emit_step(&l->emit, 0);
  for (uint32_t t = 0; t < l->route->n_tensors && status == SN_OK; t++)
    if (l->residency.held[t]) status = sn__emit_change(&l->emit, t, SN__ALLOC);
  return status == SN_OK ? sn__emit_settle(&l->emit) : status;
}

static sn_status fetch(lowering *l, uint32_t tensor) {
  sn_status status = sn__emit_change(&l->emit, tensor, SN__FETCH);
  return status == SN_OK ? sn__emit_settle(&l->emit) : status;
}

static sn_status begin_step(lowering *l, uint32_t step) {
  sn_status status = SN_OK;
  const sn_swaps *s = &l->swaps;
  for (; l->next_release < s->count && s->by_release[l->next_release].release_step == step; l->next_release++) {
    status = sn__emit_release(&l->emit, s->by_release[l->next_release].tensor);
    if (status != SN_OK) return status;
  }
  sn__emit_step(&l->emit, step);
  for (; l->next_fetch < s->count && s->by_fetch[l->next_fetch].fetch_step == step; l->next_fetch++) {
    status = fetch(l, s->by_fetch[l->next_fetch].tensor);
    if (status != SN_OK) return status;
  }
  return status;
}

/* [SN] 3.5: the fastest algorithm whose workspace fits in the bytes left; its workspace raises *workspace. */
static uint8_t pick_algo(const sn_costs *costs, uint32_t layer, sn_conv_kernel kernel, uint64_t left,
                         uint64_t *workspace) {
  uint32_t count;
  const sn_conv_choice *choices = sn_costs_conv(costs, layer, kernel, &count);
  uint32_t pick = 0;
  while (pick + 1 < count && choices[pick].workspace > left) pick++;
  *workspace = sn_max(*workspace, choices[pick].workspace);
  return (uint8_t)choices[pick].algo;
}

/* Where the workspace is a tensor of its own, the algorithms are the fastest. */
static void pick_fastest(const sn_costs *costs, const sn_step *step, uint8_t algo[2]) {
  uint64_t workspace = 0;
  if (step->kernel == SN_DATA_GRADIENT)
    algo[0] = pick_algo(costs, step->layer, SN_CONV_BACKWARD_DATA, UINT64_MAX, &workspace);
  else if (step->kernel == SN_FILTER_GRADIENT)
    algo[1] = pick_algo(costs, step->layer, SN_CONV_BACKWARD_FILTER, UINT64_MAX, &workspace);
  else if (step->pass == SN_FORWARD)
    algo[0] = pick_algo(costs, step->layer, SN_CONV_FORWARD, UINT64_MAX, &workspace);
}

/* Picks algorithms for `left` bytes; returns the workspace they need. */
static uint64_t pick_algos(const sn_route *route, const sn_costs *costs, const sn_step *step, uint64_t left,
                           uint8_t algo[2]) {
  uint64_t workspace = 0;
  if (route->dialect->by_kernel) {
    pick_fastest(costs, step, algo);
  } else if (step->pass == SN_FORWARD) {
    algo[0] = pick_algo(costs, step->layer, SN_CONV_FORWARD, left, &workspace);
  } else {
    algo[0] = pick_algo(costs, step->layer, SN_CONV_BACKWARD_DATA, left, &workspace);
    algo[1] = pick_algo(costs, step->layer, SN_CONV_BACKWARD_FILTER, left, &workspace);
  }
  return workspace;
}

uint64_t sn_lower_workspace_in(const sn_route *route, const sn_costs *costs, uint32_t index, uint64_t left,
                               uint8_t algo[2]) {
  const sn_step *step = &route->steps[index];
  uint64_t workspace = 0;
  algo[0] = algo[1] = SN_NO_ALGO;
  if (sn_step_moves(step)) return 0;
  if (step->pass != SN_UPDATE && !sn_step_follows(step) && sn_costs_convolves(costs, step->layer))
    workspace = pick_algos(route, costs, step, left, algo);
  return sn_max(workspace, sn_costs_scratch(costs, step->layer, step->pass));
}

uint64_t sn_lower_workspace(const sn_route *route, sn_workspace workspace, const sn_costs *costs, uint32_t step) {
  uint8_t algo[2];
  return sn_lower_workspace_in(route, costs, step, workspace == SN_WORKSPACE_MAX ? UINT64_MAX : 0, algo);
}

/* In whole blocks. */
static uint64_t bytes_of(const sn_route *route, const sn_step *step) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < step->n_accesses; i++)
    bytes += sn_pool_round(route->tensors[route->accesses[step->first_access + i].tensor].bytes);
  return bytes;
}

uint64_t sn_lower_floor(const sn_route *route, sn_workspace workspace, const sn_costs *costs, bool *bare) {
  uint64_t most = 0, largest = 0;
  for (uint32_t s = 0; s < route->n_steps; s++) {
    const sn_step *step = &route->steps[s];
    uint64_t bytes = costs ? sn_pool_round(sn_lower_workspace(route, workspace, costs, s)) : 0;
    largest = sn_max(largest, bytes);
    most = sn_max(most, bytes + bytes_of(route, step));
  }
  for (uint32_t i = 0; i < route->n_again; i++) {
    uint32_t s = route->again[i].step;
    uint64_t bytes = costs ? sn_pool_round(sn_lower_workspace(route, workspace, costs, s)) : 0;
    most = sn_max(most, bytes + bytes_of(route, &route->steps_again[s]));
  }
  if (bare) *bare = largest == 0;
  return most;
}

uint64_t sn_lower_left(sn_workspace workspace, uint64_t pool_bytes, uint64_t reserved) {
  uint64_t whole_blocks = pool_bytes / SN_POOL_BLOCK * SN_POOL_BLOCK;
  switch (workspace) {
  case SN_WORKSPACE_NONE:
    return 0;
  case SN_WORKSPACE_DYNAMIC:
    return whole_blocks > reserved ? whole_blocks - reserved : 0;
  case SN_WORKSPACE_MAX:
  case SN_WORKSPACE_COUNT:
    break;
  }
  return UINT64_MAX;
}

static uint64_t bytes_left(const lowering *l) {
  if (l->workspace == SN_WORKSPACE_DYNAMIC && !l->emit.counts) return sn_pool_largest(&l->emit.pool, l->pool_bytes);
  return sn_lower_left(l->workspace, l->pool_bytes, l->emit.pool.reserved);
}

bool sn_lower_again(const sn_plan *plan, sn_workspace workspace, const sn_costs *costs, uint64_t pool_bytes) {
  uint64_t reserved = 0;
  for (uint32_t n = 0; n < plan->n_instrs; n++) {
    const sn_instr *i = &plan->instrs[n];
    uint8_t algo[2];
    if (i->kind == SN_ALLOC) reserved += i->bytes;
    if (i->kind == SN_RELEASE) reserved -= i->bytes;
    if (i->kind != SN_COMPUTE) continue;
    uint64_t left = sn_lower_left(workspace, pool_bytes, reserved);
    uint64_t bytes = sn_pool_round(sn_lower_workspace_in(plan->route, costs, i->id, left, algo));
    if (bytes != i->bytes || algo[0] != i->algo[0] || algo[1] != i->algo[1]) return false;
  }
  return true;
}

static sn_status book_reads(lowering *l, const sn_step *step) {
  sn_status status = SN_OK;
  if (!l->emit.cache && l->swaps.count == 0) return SN_OK; /* all is where it was made */
  for (uint32_t i = 0; i < step->n_accesses && status == SN_OK; i++) {
    sn_access access = l->route->accesses[step->first_access + i];
    if (access.mode == SN_WRITE) continue;
    if (!l->emit.places[access.tensor].resident) {
      l->emit.plan->counts.cache_misses++;
      status = sn__emit_change(&l->emit, access.tensor, SN__FETCH);
    } else if (sn__emit_listed(&l->emit, access.tensor)) {
      l->emit.plan->counts.cache_hits++;
      sn__emit_hit(&l->emit, access.tensor);
    }
  }
  return status;
}

static sn_status book_writes(lowering *l, const sn_step *step) {
  sn_status status = SN_OK;
  for (uint32_t i = 0; i < step->n_accesses && status == SN_OK; i++) {
    sn_access access = l->route->accesses[step->first_access + i];
    if (access.mode != SN_WRITE || l->emit.places[access.tensor].resident) continue;
    uint32_t taken = l->residency.takes[access.tensor];
    if (taken != SN_NONE) status = sn__emit_change(&l->emit, taken, SN__RELEASE);
    if (status == SN_OK) status = sn__emit_change(&l->emit, access.tensor, SN__ALLOC);
  }
  return status;
}

/* What a step needs before it can run. */
typedef struct preparation {
  uint8_t algo[2];
  uint64_t workspace, offset;
} preparation;

/* Books what the step reads, what it makes and its workspace. SN_NO_FIT: not with the holes that the cache has left. */
static sn_status prepare(lowering *l, const sn_execution *x, const sn_step *step, preparation *p) {
  sn_status status = book_reads(l, step);
  if (status == SN_OK) status = book_writes(l, step);
  if (status != SN_OK) return status;
  p->workspace = sn_lower_workspace_in(l->route, l->costs, x->step, bytes_left(l), p->algo);
  p->offset = 0;
  return p->workspace > 0 ? sn__emit_workspace(&l->emit, p->workspace, &p->offset) : SN_OK;
}

static sn_status after_compute(lowering *l, const sn_execution *x, const sn_step *step) {
  sn_status status = SN_OK;
  for (uint32_t i = 0; i < step->n_accesses && status == SN_OK; i++) {
    sn_access access = l->route->accesses[step->first_access + i];
    if (!x->rerun && l->swaps.copy_step && l->swaps.copy_step[access.tensor] == x->step)
      status = sn__emit_copy_out(&l->emit, access.tensor);
    bool stays = l->residency.held[access.tensor] || l->residency.stays[access.tensor];
    if (status == SN_OK && !stays && l->schedule->last_use[x->first_last_use + i])
      status = sn__emit_release(&l->emit, access.tensor);
  }
  return status;
}

static sn_status execute(lowering *l, const sn_execution *x) {
  const sn_step *step = sn_route_run(l->route, x->step, x->rerun);
  sn_plan_counts *counts = &l->emit.plan->counts;
  preparation p;
  sn__emit_lock(&l->emit, step);
  uint64_t hits = counts->cache_hits, misses = counts->cache_misses;
  sn_status status = prepare(l, x, step, &p);
  if (status == SN_NO_FIT) {
    counts->cache_hits = hits; /* a touch is counted where it succeeds */
    counts->cache_misses = misses;
    status = sn__emit_pack(&l->emit);
    if (status == SN_OK) status = prepare(l, x, step, &p);
  }
  if (status == SN_OK) status = sn__emit_settle(&l->emit);
  if (status == SN_OK) status = sn__emit_compute(&l->emit, x, step, p.algo, p.offset, p.workspace);
  return status == SN_OK ? after_compute(l, x, step) : status;
}

/* Forward has ended: what the iteration before has left goes. */
static sn_status release_carried(lowering *l) {
  sn_status status = SN_OK;
  for (uint32_t t = 0; t < l->route->n_tensors && status == SN_OK; t++)
    if (l->route->tensors[t].role == SN_CARRIED) status = sn__emit_release(&l->emit, t);
  return status;
}

/* Whether no place in the pool will be looked for, whatever follows; of the books, whether the pool is too small. */
static bool is_hopeless(const lowering *l) {
  const sn_pool *pool = &l->emit.pool;
  return l->gives_up && pool->high_water > l->pool_bytes &&
         (l->emit.books || sn_place_is_hopeless(l->emit.blocks, pool->reserved_peak, l->pool_bytes));
}

static sn_status walk(lowering *l) {
  sn_status status = allocate_held(l);
  uint32_t step = SN_NONE;
  for (uint32_t e = 0; e < l->schedule->n_executions && status == SN_OK; e++) {
    const sn_execution *x = &l->schedule->executions[e];
    if (x->at_step != step) status = begin_step(l, step = x->at_step);
    if (status == SN_OK) status = execute(l, x);
    if (status == SN_OK && is_hopeless(l)) {
      l->emit.plan->given_up = true;
      break;
    }
    if (status == SN_OK && x->step + 1 == l->route->first_backward) status = release_carried(l);
  }
  return status;
}

/* Instructions of a plan that sends nothing out: executions, and of each tensor that they make an alloc and a release,
 * one for each that is re-run. */
static uint64_t expected(const sn_schedule *schedule) {
  const sn_route *route = schedule->route;
  uint64_t reruns = schedule->n_executions > route->n_steps ? schedule->n_executions - route->n_steps : 0;
  return schedule->n_executions + 2 * (route->n_tensors + reruns);
}

enum { COUNTS = 1, GIVES_UP = 2, BOOKS = 4 }; /* sn_lower_counting(), sn_lower_need() */

static sn_plan *lower(const sn_schedule *schedule, sn_strategy strategy, sn_workspace workspace, const sn_costs *costs,
                      uint64_t pool_bytes, unsigned how, sn_err *err) {
  lowering l = {.schedule = schedule,
                .route = schedule->route,
                .costs = costs,
                .workspace = workspace,
                .pool_bytes = pool_bytes,
                .gives_up = how & GIVES_UP};
  sn_status status = sn__emit_begin(&l.emit, l.route, pool_bytes, sn_strategy_has_cache(strategy), err);
  l.emit.counts = how & COUNTS;
  l.emit.narrow = strategy.offload == SN_OFFLOAD_NARROW_CACHE;
  l.emit.books = how & BOOKS;
  if (status == SN_OK) status = sn_residency_make(l.route, strategy.liveness, &l.residency, err);
  if (status == SN_OK) status = sn_swaps_make(schedule, strategy.offload, &l.swaps, err);
  if (status == SN_OK && !l.emit.books) status = sn__lanes_expect(&l.emit.lanes, expected(schedule));
  if (status == SN_OK) status = walk(&l);
  sn_swaps_clear(&l.swaps);
  sn_residency_clear(&l.residency);
  sn_plan *plan = sn__emit_end(&l.emit, status);
  if (plan && costs) snprintf(plan->layouts, sizeof plan->layouts, "%s", sn_costs_layouts(costs));
  return plan;
}

sn_plan *sn_lower(const sn_schedule *schedule, sn_strategy strategy, sn_workspace workspace, const sn_costs *costs,
                  uint64_t pool_bytes, sn_err *err) {
  return lower(schedule, strategy, workspace, costs, pool_bytes, 0, err);
}

sn_plan *sn_lower_counting(const sn_schedule *schedule, sn_strategy strategy, sn_workspace workspace,
                           const sn_costs *costs, uint64_t pool_bytes, bool gives_up, sn_err *err) {
  return lower(schedule, strategy, workspace, costs, pool_bytes, COUNTS | (gives_up ? GIVES_UP : 0), err);
}

sn_status sn_lower_need(const sn_schedule *schedule, sn_strategy strategy, sn_workspace workspace,
                        const sn_costs *costs, uint64_t pool_bytes, bool only_fits, uint64_t *needed, sn_err *err) {
  sn_plan *plan = lower(schedule, strategy, workspace, costs, pool_bytes, BOOKS | (only_fits ? GIVES_UP : 0), err);
  if (!plan) return err->code;
  *needed = plan->pool_bytes;
  sn_plan_free(plan);
  return SN_OK;
}
