/* Optimum; see the header. */
#include "sim/ask/optimum.h"

#include "base/arena.h"
#include "base/checked.h"
#include "sim/device/device.h"
#include "sim/memory/pool.h"

#include <stdlib.h>

static const sn_strategy optimal = {.liveness = SN_LIVENESS_FULL, .recompute = SN_RECOMPUTE_OPTIMAL};
static const sn_strategy sending = {
    .liveness = SN_LIVENESS_FULL, .offload = SN_OFFLOAD_PLANNED, .recompute = SN_RECOMPUTE_OPTIMAL};
static const sn_strategy dtr = {.liveness = SN_LIVENESS_FULL, .recompute = SN_RECOMPUTE_DTR};

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

static const sn_result *ask_fitting(finder *f, sn_strategy strategy, uint64_t memory_bytes) {
  const sn_result *result = ask(f, strategy, memory_bytes);
  return result && result->fits ? result : NULL;
}

/* The same where two rules take the same. */
static void ask_best(finder *f, uint32_t rule) {
  sn_optimum_rule *all = f->found->rules;
  uint64_t bytes = all[rule].result->peak_device_bytes;
  for (uint32_t i = 0; i < rule; i++) {
    if (all[i].result->peak_device_bytes != bytes) continue;
    all[rule].best = all[i].best;
    all[rule].sent = all[i].sent;
    return;
  }
  all[rule].best = ask_fitting(f, optimal, bytes);
  all[rule].sent = ask_fitting(f, sending, bytes);
}

static sn_status ask_rules(finder *f, uint64_t memory_bytes) {
  for (uint32_t i = 0; i < SN_OPTIMUM_RULES && f->err->code == SN_OK; i++) {
    sn_optimum_rule *rule = &f->found->rules[i];
    rule->strategy = rules[i];
    rule->result = ask(f, rules[i], memory_bytes);
    if (rule->result) ask_best(f, i);
  }
  return f->err->code;
}

/* Evenly from the least memory with which a strategy runs to that of re-running nothing. */
static sn_status list_budgets(finder *f, sn_strategy strategy, uint64_t budgets[SN_OPTIMUM_BUDGETS]) {
  uint64_t least, most = f->found->rules[1].result->peak_device_bytes;
  if (sn_planner_least(f->planner, strategy, &least, f->err) != SN_OK) return f->err->code;
  for (uint64_t i = 0; i < SN_OPTIMUM_BUDGETS; i++)
    budgets[i] = least + (most - sn_min(least, most)) / (SN_OPTIMUM_BUDGETS - 1) * i;
  budgets[SN_OPTIMUM_BUDGETS - 1] = sn_max(least, most);
  return SN_OK;
}

/* Budgets, rising, of which several get the same plan have it once. */
static sn_status ask_line(finder *f, sn_strategy strategy, const uint64_t *budgets, uint32_t count,
                          sn_optimum_line *line) {
  int64_t last = INT64_MAX;
  for (uint32_t i = 0; i < count; i++) {
    const sn_result *result = ask(f, strategy, budgets[i]);
    if (!result) return f->err->code;
    if (!result->fits || result->iteration_ns >= last) continue;
    line->budgets[line->count] = budgets[i];
    line->points[line->count++] = result;
    last = result->iteration_ns;
  }
  return SN_OK;
}

static int compare_bytes(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static sn_status ask_lines(finder *f) {
  uint64_t budgets[SN_OPTIMUM_POINTS] = {0};
  uint32_t count = SN_OPTIMUM_BUDGETS;
  const sn_optimum_line *by_dtr = &f->found->dtr;
  if (list_budgets(f, dtr, budgets) != SN_OK || ask_line(f, dtr, budgets, count, &f->found->dtr) != SN_OK ||
      list_budgets(f, optimal, budgets) != SN_OK)
    return f->err->code;
  for (uint32_t i = 0; i < by_dtr->count; i++) budgets[count++] = by_dtr->points[i]->peak_device_bytes;
  qsort(budgets, count, sizeof *budgets, compare_bytes);
  return ask_line(f, optimal, budgets, count, &f->found->optimal);
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
  if (f.planner && ask_rules(&f, device->memory_bytes) == SN_OK) ask_lines(&f);
  sn_planner_free(f.planner);
  if (err->code == SN_OK) return found;
  sn_arena_free(arena);
  return NULL;
}

void sn_optimum_free(sn_optimum *optimum) {
  if (optimum) sn_arena_free(optimum->arena);
}
