/* Advise; see the header. The front is one sweep over the combinations by rising memory: whoever is faster than all
 * before is on it. */
#include "sim/ask/advise.h"

#include "base/arena.h"

#include <stdlib.h>

sn_strategy sn_advise_strategy(uint32_t index) {
  if (index == 0) return (sn_strategy){.liveness = SN_LIVENESS_NONE};
  return (sn_strategy){.liveness = SN_LIVENESS_FULL,
                       .offload = (sn_offload)((index - 1) / (SN_RECOMPUTE_COST + 1)),
                       .recompute = (sn_recompute)((index - 1) % (SN_RECOMPUTE_COST + 1))};
}

/* All strategies with one workspace: combinations workspace, workspace + 3, ... */
static sn_status evaluate(const sn_net *net, const sn_device *device, const sn_options *options, sn_workspace workspace,
                          sn_arena *arena, sn_combination *all, sn_err *err) {
  sn_options own = *options;
  own.workspace = workspace;
  own.want_steps = own.want_peak = own.want_tensors = false;
  sn_planner *planner = sn_planner_new(net, device, &own, err);
  for (uint32_t i = 0; i < SN_ADVISE_STRATEGIES && err->code == SN_OK; i++) {
    sn_result *result = sn_arena_alloc(arena, 1, sizeof *result);
    sn_strategy strategy = sn_advise_strategy(i);
    if (!result)
      sn_fail_memory(err);
    else
      sn_planner_result(planner, strategy, device->memory_bytes, arena, result, err);
    all[i * SN_WORKSPACE_COUNT + workspace] = (sn_combination){strategy, workspace, result, false};
  }
  sn_planner_free(planner);
  return err->code;
}

typedef struct ranked {
  uint64_t bytes;
  int64_t ns;
  uint32_t index; /* into all combinations */
} ranked;

/* Rising memory, then time, then the order of the combinations. */
static int compare(const void *a, const void *b) {
  const ranked *x = a, *y = b;
  if (x->bytes != y->bytes) return x->bytes < y->bytes ? -1 : 1;
  if (x->ns != y->ns) return x->ns < y->ns ? -1 : 1;
  return x->index < y->index ? -1 : x->index > y->index;
}

static void find_front(sn_combination *all, uint32_t *front, sn_advice *advice) {
  ranked sorted[SN_COMBINATIONS];
  uint32_t count = 0, rising[SN_COMBINATIONS];
  for (uint32_t i = 0; i < SN_COMBINATIONS; i++)
    sorted[i] = (ranked){all[i].result->peak_device_bytes, all[i].result->iteration_ns, i};
  qsort(sorted, SN_COMBINATIONS, sizeof sorted[0], compare);
  int64_t fastest = INT64_MAX;
  for (uint32_t i = 0; i < SN_COMBINATIONS; i++) {
    if (sorted[i].ns >= fastest) continue;
    sn_combination *c = &all[sorted[i].index];
    fastest = sorted[i].ns;
    c->on_front = true;
    rising[count++] = sorted[i].index;
    if (c->result->fits) advice->best = c; /* the fastest so far */
  }
  for (uint32_t i = 0; i < count; i++) front[i] = rising[count - 1 - i];
  advice->n_front = count;
}

static sn_advice *make(const sn_net *net, const sn_device *device, const sn_options *options, sn_arena *arena,
                       sn_err *err) {
  sn_advice *advice = sn_arena_alloc(arena, 1, sizeof *advice);
  sn_combination *all = sn_arena_alloc(arena, SN_COMBINATIONS, sizeof *all);
  uint32_t *front = sn_arena_alloc(arena, SN_COMBINATIONS, sizeof *front);
  if (!advice || !all || !front) sn_fail_memory(err);
  for (sn_workspace w = SN_WORKSPACE_NONE; w < SN_WORKSPACE_COUNT && err->code == SN_OK; w++)
    evaluate(net, device, options, w, arena, all, err);
  if (err->code != SN_OK) return NULL;
  *advice = (sn_advice){.all = all, .front = front, .arena = arena};
  find_front(all, front, advice);
  return advice;
}

sn_advice *sn_advise(const sn_net *net, const sn_device *device, const sn_options *options, sn_err *err) {
  sn_arena *arena = sn_arena_new();
  sn_advice *advice = arena ? make(net, device, options, arena, err) : NULL;
  if (!arena) sn_fail_memory(err);
  if (!advice) sn_arena_free(arena);
  return advice;
}

void sn_advice_free(sn_advice *advice) {
  if (advice) sn_arena_free(advice->arena);
}
