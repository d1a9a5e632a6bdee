/* Explain: one walk along the plan up to the moment of the peak notes who is resident; see the header. */
#include "sim/ask/explain.h"

#include "base/units.h"
#include "models/op/op.h"
#include "sim/graph/route.h"
#include "sim/plan/cursor.h"
#include "sim/plan/high_water.h"
#include "sim/policy/options.h"
#include "sim/schedule/units.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NEEDED "needed by this step"

typedef struct resident {
  uint32_t since_step, writer_step, next_step; /* indices; SN_NONE: none */
  uint32_t first_use, last_use;                /* in the route */
  bool here, leaves_unit;                      /* whether a forward step of another unit reads it */
} resident;

typedef struct walk {
  const sn_plan *plan;
  const sn_route *route;
  sn_strategy strategy;
  uint32_t peak_step;
  resident *tensors;
  sn_units units; /* that recompute=units would wrap; of PyTorch's graphs alone */
} walk;

/* Of a pipeline's stage units are steps of the whole. */
static uint32_t unit_of(const walk *w, uint32_t step) {
  if (w->route->micros == 0) return sn_units_of(&w->units, w->route, step);
  const sn_route *whole = w->route;
  while (whole->micros > 0) whole = whole->whole;
  uint32_t forward = whole->forward_step[w->route->steps[step].layer];
  return forward == SN_NONE ? w->units.count : sn_units_of(&w->units, whole, forward);
}

/* A stage goes forward and backward by turns. */
static bool is_forward(const walk *w, uint32_t step) {
  return w->route->micros == 0 ? step < w->route->first_backward : w->route->steps[step].pass == SN_FORWARD;
}

static void find_route_uses(walk *w) {
  for (uint32_t t = 0; t < w->route->n_tensors; t++)
    w->tensors[t] = (resident){SN_NONE, SN_NONE, SN_NONE, SN_NONE, SN_NONE, false, false};
  for (uint32_t s = 0; s < w->route->n_steps; s++) {
    const sn_step *step = &w->route->steps[s];
    for (uint32_t i = 0; i < step->n_accesses; i++) {
      resident *r = &w->tensors[w->route->accesses[step->first_access + i].tensor];
      if (r->first_use == SN_NONE) r->first_use = s;
      r->last_use = s;
      if (w->units.count > 0 && is_forward(w, s) && unit_of(w, s) != unit_of(w, r->first_use)) r->leaves_unit = true;
    }
  }
}

static void note_writes(walk *w, const sn_instr *i) {
  const sn_step *step = sn_route_run(w->route, i->id, i->rerun);
  for (uint32_t a = 0; a < step->n_accesses; a++) {
    sn_access access = w->route->accesses[step->first_access + a];
    if (access.mode != SN_READ) w->tensors[access.tensor].writer_step = i->id;
  }
}

/* Walks to just behind the allocation that makes the peak; returns the number of the next instruction. */
static uint32_t go_to_peak(walk *w) {
  sn_cursor c = {.plan = w->plan};
  for (const sn_instr *i; !sn_cursor_is_fullest(&c, w->peak_step) && (i = sn_cursor_next(&c));) {
    if (i->kind == SN_COMPUTE) note_writes(w, i);
    if (sn_instr_moves(i)) w->tensors[i->id].here = i->kind == SN_ALLOC;
    if (i->kind == SN_ALLOC) w->tensors[i->id].since_step = i->step;
  }
  return c.at;
}

static void find_next_uses(walk *w, uint32_t from) {
  for (uint32_t n = from; n < w->plan->n_instrs; n++) {
    const sn_instr *i = &w->plan->instrs[n];
    if (i->kind != SN_COMPUTE) continue;
    const sn_step *step = sn_route_run(w->route, i->id, i->rerun);
    for (uint32_t a = 0; a < step->n_accesses; a++) {
      resident *r = &w->tensors[w->route->accesses[step->first_access + a].tensor];
      if (r->next_step == SN_NONE) r->next_step = i->step;
    }
  }
}

/* Without a backward pass a tensor waits for a later forward step, and nothing but the cache can send it away. */
static bool is_trained(const walk *w) {
  return w->route->first_backward < w->route->n_steps;
}

/* A unit makes what it keeps again, but for what goes on to the next, before its own backward steps, which need it. */
static bool units_remove(const walk *w, uint32_t tensor) {
  const resident *r = &w->tensors[tensor];
  if (!is_forward(w, r->first_use) || r->leaves_unit) return false;
  uint32_t unit = unit_of(w, r->first_use);
  bool backward = w->route->steps[w->peak_step].pass == SN_BACKWARD;
  return unit < w->units.count && !sn_units_stays(&w->units, unit) && !(backward && unit_of(w, w->peak_step) == unit);
}

/* What a user of PyTorch can do about a tensor that backward keeps; nothing is to be done about others. */
static const char *advise_eager(const walk *w, uint32_t tensor) {
  sn_role role = w->route->tensors[tensor].role;
  bool kept = is_trained(w) && (role == SN_VALUE || role == SN_SAVED);
  if (role == SN_PARAMETER_GRADIENT) return "held until the update";
  if (kept && w->strategy.recompute == SN_RECOMPUTE_NONE && units_remove(w, tensor)) return "recompute=units";
  bool stays = w->route->micros > 0; /* on a stage of a pipeline */
  return kept && !stays && w->strategy.offload == SN_OFFLOAD_NONE ? "offload" : "nothing PyTorch has";
}

/* What would have taken the tensor off the device at this step. */
static const char *advise(const walk *w, uint32_t tensor) {
  const resident *r = &w->tensors[tensor];
  const sn_tensor *t = &w->route->tensors[tensor];
  const sn_op_def *op = sn_op_of(&w->route->layers[t->layer]);
  bool used_here = r->next_step == w->peak_step && r->first_use <= w->peak_step;
  bool live = w->strategy.liveness == SN_LIVENESS_FULL;
  if (live ? used_here : used_here && r->last_use >= w->peak_step) return NEEDED;
  if (!live && (w->peak_step < r->first_use || w->peak_step > r->last_use))
    return w->route->dialect->by_kernel ? "singa-serial" : "liveness";
  if (w->route->dialect->eager) return advise_eager(w, tensor);
  if (!w->route->dialect->fork_copies) return "nothing this graph has";
  bool output = t->role == SN_VALUE && is_trained(w);
  if (output && !op->checkpoint && w->strategy.recompute == SN_RECOMPUTE_NONE) return "recompute";
  if (output && !op->checkpoint && w->strategy.recompute == SN_RECOMPUTE_SPEED) return "recompute=memory";
  if (output && op->offload_paper && w->strategy.offload == SN_OFFLOAD_NONE) return "offload or cache";
  if (output && op->offload_joints && w->strategy.offload < SN_OFFLOAD_CHECKPOINTS)
    return "offload=checkpoints or cache";
  return w->strategy.offload == SN_OFFLOAD_CACHE ? "cache, with less memory" : "cache";
}

static const char *producer_name(const walk *w, uint32_t tensor, sn_arena *arena) {
  uint32_t writer = w->tensors[tensor].writer_step;
  if (w->route->tensors[tensor].role == SN_CARRIED) return "the iteration before";
  if (writer == SN_NONE) return "not yet written";
  const sn_step *step = &w->route->steps[writer];
  return sn_arena_print(arena, "%s %s", w->route->layers[step->layer].name, sn_pass_name(step->pass));
}

/* A tensor at the peak; qsort keeps no order of its own, so ties end with the tensor's number. */
typedef struct ranked {
  uint64_t bytes;
  uint32_t since_step, tensor;
} ranked;

static int compare_ranked(const void *a, const void *b) {
  const ranked *x = a, *y = b;
  if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
  if (x->since_step != y->since_step) return x->since_step < y->since_step ? -1 : 1;
  return x->tensor < y->tensor ? -1 : x->tensor > y->tensor;
}

static uint32_t rank_residents(const walk *w, ranked *all) {
  uint32_t n = 0;
  for (uint32_t t = 0; t < w->route->n_tensors; t++)
    if (w->tensors[t].here) all[n++] = (ranked){w->route->tensors[t].bytes, w->tensors[t].since_step, t};
  qsort(all, n, sizeof *all, compare_ranked);
  return n;
}

static sn_status make_rows(const walk *w, sn_arena *arena, const sn_peak_row **rows, uint32_t *count, sn_err *err) {
  ranked *all = sn_arena_alloc(arena, w->route->n_tensors, sizeof *all);
  uint32_t n = all ? rank_residents(w, all) : 0;
  sn_peak_row *made = all ? sn_arena_alloc(arena, n, sizeof *made) : NULL;
  if (!made) return sn_fail_memory(err);
  for (uint32_t i = 0; i < n; i++) {
    uint32_t t = all[i].tensor;
    const resident *r = &w->tensors[t];
    char name[SN_TENSOR_NAME];
    made[i] = (sn_peak_row){.tensor = sn_arena_text(arena, sn_tensor_name(w->route, t, name, sizeof name)),
                            .producer = producer_name(w, t, arena),
                            .bytes = all[i].bytes,
                            .since_step = r->since_step + 1,
                            .next_step = r->next_step == SN_NONE ? 0 : r->next_step + 1,
                            .advice = advise(w, t)};
    if (!made[i].tensor || !made[i].producer) return sn_fail_memory(err);
  }
  *rows = made;
  *count = n;
  return SN_OK;
}

sn_status sn_explain_peak(const sn_plan *plan, sn_strategy strategy, uint32_t peak_step, sn_arena *arena,
                          const sn_peak_row **rows, uint32_t *count, sn_err *err) {
  walk w = {.plan = plan, .route = plan->route, .strategy = strategy, .peak_step = peak_step};
  w.tensors = malloc(plan->route->n_tensors * sizeof *w.tensors);
  if (!w.tensors) return sn_fail_memory(err);
  bool wraps = w.route->dialect->eager && is_trained(&w);
  sn_status status = wraps ? sn_units_find(w.route, &w.units, err) : SN_OK;
  if (status == SN_OK) {
    find_route_uses(&w);
    find_next_uses(&w, go_to_peak(&w));
    status = make_rows(&w, arena, rows, count, err);
  }
  sn_units_clear(&w.units);
  free(w.tensors);
  return status;
}

/* ---- the pool ---- */

static bool caches(const sn_result *r) {
  sn_err reason = SN_ERR_INIT;
  sn_strategy s;
  return sn_strategy_parse(r->strategy, &s, &reason) == SN_OK && sn_strategy_has_cache(s);
}

/* Whether the step of the peak needs all that is there; not known without the rows. */
static bool needs_all(const sn_result *r) {
  uint32_t needed = 0;
  for (uint32_t i = 0; r->peak && i < r->n_peak; i++) needed += strcmp(r->peak[i].advice, NEEDED) == 0;
  return needed > 0 && needed == r->n_peak;
}

static const char *fewer_tensors(const sn_result *r) {
  if (r->pool_step != r->peak_step) return "fewer tensors at that step";
  return needs_all(r) ? "a smaller batch: the step needs all of its tensors" : "removing tensors of the peak";
}

/* Without workspaces tensors lie where they lie, unless the cache has to send other ones away. */
static void lower_workspace(const sn_run *run, const sn_result *r, char *text, size_t room) {
  char bare[SN_UNIT_TEXT], to[SN_UNIT_TEXT + 8] = "";
  bool dynamic = strcmp(run->conditions.workspace, sn_workspace_name(SN_WORKSPACE_DYNAMIC)) == 0;
  if (r->evictions == 0 && r->pool_bare_bytes > 0)
    snprintf(to, sizeof to, " (to %s)", sn_print_bytes(r->pool_bare_bytes, bare));
  snprintf(text, room, "--workspace none%s, or %sless --memory", to, dynamic ? "" : "dynamic with ");
}

char *sn_explain_pool(const sn_run *run, const sn_result *r, char *text, size_t room) {
  bool none = strcmp(run->conditions.workspace, sn_workspace_name(SN_WORKSPACE_NONE)) == 0;
  if (r->pool_step == 0)
    snprintf(text, room, "%s", "");
  else if (strcmp(r->pool_cause, sn_cause_name(SN_CAUSE_WORKSPACE)) == 0 && !none)
    lower_workspace(run, r, text, room);
  else if (caches(r) && !needs_all(r))
    snprintf(text, room, "less --memory: the cache takes what there is");
  else if (strcmp(r->pool_cause, sn_cause_name(SN_CAUSE_HOLES)) == 0)
    snprintf(text, room, "fewer tensors there, or placing them better");
  else
    snprintf(text, room, "%s", fewer_tensors(r));
  return text;
}
