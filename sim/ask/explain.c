/* Explain: one walk along the plan up to the moment of the peak notes who is resident; see the header. */
#include "sim/ask/explain.h"

#include "models/op.h"

#include <stdbool.h>
#include <stdlib.h>

typedef struct resident {
  uint32_t since_step, writer_step, next_step; /* indices; SN_NONE: none */
  uint32_t first_use, last_use;                /* in the route */
  bool here;
} resident;

typedef struct walk {
  const sn_plan *plan;
  const sn_route *route;
  sn_strategy strategy;
  uint32_t peak_step;
  resident *tensors;
} walk;

static void find_route_uses(walk *w) {
  for (uint32_t t = 0; t < w->route->n_tensors; t++)
    w->tensors[t] = (resident){SN_NONE, SN_NONE, SN_NONE, SN_NONE, SN_NONE, false};
  for (uint32_t s = 0; s < w->route->n_steps; s++) {
    const sn_step *step = &w->route->steps[s];
    for (uint32_t i = 0; i < step->n_accesses; i++) {
      resident *r = &w->tensors[w->route->accesses[step->first_access + i].tensor];
      if (r->first_use == SN_NONE) r->first_use = s;
      r->last_use = s;
    }
  }
}

static void note_writes(walk *w, const sn_instr *i) {
  const sn_step *step = &w->route->steps[i->id];
  for (uint32_t a = 0; a < step->n_accesses; a++) {
    sn_access access = w->route->accesses[step->first_access + a];
    if (access.mode != SN_READ) w->tensors[access.tensor].writer_step = i->id;
  }
}

/* Walks to just behind the allocation that makes the peak; returns the number of the next instruction. */
static uint32_t go_to_peak(walk *w) {
  uint64_t live = 0, peak = w->plan->use[w->peak_step].tensor_bytes;
  for (uint32_t n = 0; n < w->plan->n_instrs; n++) {
    const sn_instr *i = &w->plan->instrs[n];
    if (i->step == w->peak_step && live == peak) return n;
    if (i->kind == SN_COMPUTE) note_writes(w, i);
    if (i->kind != SN_ALLOC && i->kind != SN_RELEASE) continue;
    w->tensors[i->id].here = i->kind == SN_ALLOC;
    if (i->kind == SN_ALLOC) {
      live += w->route->tensors[i->id].bytes;
      w->tensors[i->id].since_step = i->step;
    } else {
      live -= w->route->tensors[i->id].bytes;
    }
  }
  return w->plan->n_instrs;
}

static void find_next_uses(walk *w, uint32_t from) {
  for (uint32_t n = from; n < w->plan->n_instrs; n++) {
    const sn_instr *i = &w->plan->instrs[n];
    if (i->kind != SN_COMPUTE) continue;
    const sn_step *step = &w->route->steps[i->id];
    for (uint32_t a = 0; a < step->n_accesses; a++) {
      resident *r = &w->tensors[w->route->accesses[step->first_access + a].tensor];
      if (r->next_step == SN_NONE) r->next_step = i->step;
    }
  }
}

/* What would have taken the tensor off the device at this step. */
static const char *advise(const walk *w, uint32_t tensor) {
  const resident *r = &w->tensors[tensor];
  const sn_tensor *t = &w->route->tensors[tensor];
  const sn_op_info *op = sn_op_of(&w->route->net->layers[t->layer]);
  bool used_here = r->next_step == w->peak_step && r->first_use <= w->peak_step;
  bool live = w->strategy.liveness == SN_LIVENESS_FULL;
  if (live ? used_here : used_here && r->last_use >= w->peak_step) return "needed by this step";
  if (!live && (w->peak_step < r->first_use || w->peak_step > r->last_use)) return "liveness";
  bool output = t->kind == SN_OUTPUT;
  if (output && !op->checkpoint && w->strategy.recompute == SN_RECOMPUTE_NONE) return "recompute";
  if (output && !op->checkpoint && w->strategy.recompute == SN_RECOMPUTE_SPEED) return "recompute=memory";
  if (output && op->offload_paper && w->strategy.offload == SN_OFFLOAD_NONE) return "offload or cache";
  if (output && op->offload_joints && w->strategy.offload < SN_OFFLOAD_CHECKPOINTS)
    return "offload=checkpoints or cache";
  return w->strategy.offload == SN_OFFLOAD_CACHE ? "cache, with less memory" : "cache";
}

static const char *producer_name(const walk *w, uint32_t tensor, sn_arena *arena) {
  uint32_t writer = w->tensors[tensor].writer_step;
  if (writer == SN_NONE) return "not yet written";
  const sn_step *step = &w->route->steps[writer];
  return sn_arena_print(arena, "%s %s", w->route->net->layers[step->layer].name, sn_pass_name(step->pass));
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
  find_route_uses(&w);
  find_next_uses(&w, go_to_peak(&w));
  sn_status status = make_rows(&w, arena, rows, count, err);
  free(w.tensors);
  return status;
}
