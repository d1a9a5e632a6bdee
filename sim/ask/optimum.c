/* Optimum; see the header. */
#include "sim/ask/optimum.h"

#include "base/arena.h"
#include "base/checked.h"
#include "sim/memory/pool.h"

static const sn_strategy optimal = {.liveness = SN_LIVENESS_FULL, .recompute = SN_RECOMPUTE_OPTIMAL};

/* From what keeps most to what keeps least. */
static const sn_strategy rules[SN_OPTIMUM_RULES] = {
    {.liveness = SN_LIVENESS_NONE},
    {.liveness = SN_LIVENESS_FULL},
    {.liveness = SN_LIVENESS_FULL, .recompute = SN_RECOMPUTE_SPEED},
    {.liveness = SN_LIVENESS_FULL, .recompute = SN_RECOMPUTE_MEMORY},
    {.liveness = SN_LIVENESS_FULL, .recompute = SN_RECOMPUTE_COST},
    {.liveness = SN_LIVENESS_FULL, .recompute = SN_RECOMPUTE_SQRT},
    {.liveness = SN_LIVENESS_FULL, .offload = SN_OFFLOAD_CONV},
    {.liveness = SN_LIVENESS_FULL, .offload = SN_OFFLOAD_CHECKPOINTS},
    {.liveness = SN_LIVENESS_FULL, .offload = SN_OFFLOAD_CHECKPOINTS, .recompute = SN_RECOMPUTE_SPEED},
    {.liveness = SN_LIVENESS_FULL, .offload = SN_OFFLOAD_CHECKPOINTS, .recompute = SN_RECOMPUTE_MEMORY},
};

typedef struct finder {
  sn_planner *planner;
  sn_optimum *found;
  sn_err *err;
} finder;

static const sn_result *ask(finder *f, sn_strategy strategy, uint64_t memory_bytes) {
  sn_result *result = sn_arena_alloc(f->found->arena, 1, sizeof *result);
  if (!result)
    sn_fail_memory(f->err);
  else if (sn_planner_result(f->planner, strategy, memory_bytes, f->found->arena, result, f->err) == SN_OK)
    return result;
  return NULL;
}

/* The same where two rules take the same. */
static const sn_result *ask_best(finder *f, uint32_t rule) {
  const sn_optimum_rule *all = f->found->rules;
  uint64_t bytes = all[rule].result->peak_device_bytes;
  for (uint32_t i = 0; i < rule; i++)
    if (all[i].result->peak_device_bytes == bytes) return all[i].best;
  const sn_result *best = ask(f, optimal, bytes);
  return best && best->fits ? best : NULL;
}

static sn_status ask_rules(finder *f, uint64_t memory_bytes) {
  for (uint32_t i = 0; i < SN_OPTIMUM_RULES && f->err->code == SN_OK; i++) {
    sn_optimum_rule *rule = &f->found->rules[i];
    rule->strategy = rules[i];
    rule->result = ask(f, rules[i], memory_bytes);
    if (rule->result) rule->best = ask_best(f, i);
  }
  return f->err->code;
}

/* Budgets of which several get the same plan have it once. */
static sn_status ask_line(finder *f) {
  sn_optimum *o = f->found;
  uint64_t least, most = o->rules[1].result->peak_device_bytes;
  int64_t last = INT64_MAX;
  if (sn_planner_least(f->planner, optimal, &least, f->err) != SN_OK) return f->err->code;
  for (uint64_t i = 0; i < SN_OPTIMUM_BUDGETS; i++) {
    uint64_t budget = least + (most - sn_min(least, most)) / (SN_OPTIMUM_BUDGETS - 1) * i;
    if (i == SN_OPTIMUM_BUDGETS - 1) budget = sn_max(least, most);
    const sn_result *result = ask(f, optimal, budget);
    if (!result) return f->err->code;
    if (!result->fits || result->iteration_ns >= last) continue;
    o->budgets[o->n_line] = budget;
    o->line[o->n_line++] = result;
    last = result->iteration_ns;
  }
  return SN_OK;
}

sn_optimum *sn_optimum_new(const sn_net *net, const sn_device *device, const sn_options *options, sn_err *err) {
  sn_options without = *options;
  sn_arena *arena = sn_arena_new();
  sn_optimum *found = arena ? sn_arena_alloc(arena, 1, sizeof *found) : NULL;
  without.workspace = SN_WORKSPACE_NONE;
  without.pool_bytes = 0;
  without.want_steps = without.want_peak = without.want_tensors = false;
  if (!found) {
    sn_fail_memory(err);
    sn_arena_free(arena);
    return NULL;
  }
  *found = (sn_optimum){.arena = arena};
  finder f = {.planner = sn_planner_new(net, device, &without, err), .found = found, .err = err};
  if (f.planner && ask_rules(&f, device->memory_bytes) == SN_OK) ask_line(&f);
  sn_planner_free(f.planner);
  if (err->code == SN_OK) return found;
  sn_arena_free(arena);
  return NULL;
}

void sn_optimum_free(sn_optimum *optimum) {
  if (optimum) sn_arena_free(optimum->arena);
}
