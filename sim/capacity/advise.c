/* Advise; see the header. The front is one sweep over the combinations by rising memory: whoever is faster than all
 * before is on it. */
#include "sim/capacity/advise.h"

#include "base/arena.h"
#include "base/checked.h"
#include "sim/device/device.h"
#include "sim/stages/staged.h"

#include <stdlib.h>

sn_strategy sn_advise_strategy(uint32_t index) {
  if (index == 0) return (sn_strategy){.liveness = SN_LIVENESS_NONE};
  if (index == SN_ADVISE_STRATEGIES - 1)
    return (sn_strategy){
        .liveness = SN_LIVENESS_FULL, .offload = SN_OFFLOAD_PLANNED, .recompute = SN_RECOMPUTE_OPTIMAL};
  return (sn_strategy){.liveness = SN_LIVENESS_FULL,
                       .offload = (sn_offload)((index - 1) / (SN_RECOMPUTE_COST + 1)),
                       .recompute = (sn_recompute)((index - 1) % (SN_RECOMPUTE_COST + 1))};
}

uint32_t sn_advise_count(const sn_net *net) {
  return net->n_layers <= SN_ADVISE_LAYERS ? SN_ADVISE_STRATEGIES : SN_ADVISE_STRATEGIES - 1;
}

uint32_t sn_advise_all(const sn_net *net, const sn_device *device, const sn_options *options, sn_strategy *all) {
  uint32_t count = sn_advise_count(net);
  for (uint32_t i = 0; i < count; i++) all[i] = sn_advise_strategy(i);
  if (device->cores.count == 0 || options->iteration.accumulate > 1) return count;
  sn_strategy path = {.liveness = SN_LIVENESS_FULL, .corun = {.kind = SN_POLICY_PATH}};
  all[count++] = path;
  path.recompute = SN_RECOMPUTE_SPEED;
  all[count++] = path;
  return count;
}

typedef struct trial {
  const sn_device *device;
  sn_options options;
  sn_staged *planner; /* of one workspace */
  sn_advice *advice;
  sn_err *err;
} trial;

static const sn_combination *try_one(trial *t, sn_strategy strategy, uint64_t memory_bytes) {
  sn_advice *a = t->advice;
  sn_result *result = sn_arena_alloc(a->arena, 1, sizeof *result);
  if (!result) {
    sn_fail_memory(t->err);
    return NULL;
  }
  uint64_t bound;
  if (sn_staged_result(t->planner, strategy, memory_bytes, a->arena, result, t->err) != SN_OK ||
      sn_staged_bound(t->planner, strategy, &bound, t->err) != SN_OK)
    return NULL;
  sn_combination *c = &a->all[a->n_all++];
  *c = (sn_combination){.strategy = strategy,
                        .workspace = t->options.workspace,
                        .memory_bytes = memory_bytes,
                        .bound_bytes = bound,
                        .result = result,
                        .limited = memory_bytes < t->device->memory_bytes};
  return c;
}

static bool is_eager(sn_strategy strategy) {
  return sn_dialect_of(strategy.dialect)->eager;
}

/* It has workspaces of its own choice: cuDNN's in PyTorch, or those that the planner weighs against what is kept. */
static bool chooses_workspaces(sn_strategy strategy) {
  return is_eager(strategy) || sn_strategy_adapts(strategy);
}

static bool adapts(const trial *t, sn_strategy strategy) {
  if (is_eager(strategy)) return t->options.pool_bytes == 0 && sn_strategy_adapts(strategy);
  return t->options.pool_bytes == 0 &&
         (sn_strategy_has_cache(strategy) || t->options.workspace == SN_WORKSPACE_DYNAMIC);
}

/* PyTorch's allocator keeps less where there is less, and recompute=optimal with nothing to re-run is no advice: what
 * is seen then is the strategy without it. */
static bool reruns_nothing(const sn_combination *c) {
  return is_eager(c->strategy) && c->strategy.recompute == SN_RECOMPUTE_OPTIMAL && c->result->recomputed_layers == 0;
}

static void try_given(trial *t, sn_strategy strategy, uint64_t memory_bytes) {
  const sn_combination *less = try_one(t, strategy, memory_bytes);
  if (less && reruns_nothing(less)) t->advice->n_all--;
}

/* Less and less memory, in whole MiB, and last the least. */
static void try_less(trial *t, const sn_combination *whole) {
  const uint64_t mib = UINT64_C(1) << 20;
  uint64_t least, most = whole->result->peak_device_bytes, last = most;
  if (sn_staged_least(t->planner, whole->strategy, &least, t->err) != SN_OK || least == 0) return;
  for (uint64_t i = SN_ADVISE_LIMITS - 1; i > 0 && least < most && t->err->code == SN_OK; i--) {
    uint64_t limit = sn_ceil_div(least + (most - least) / SN_ADVISE_LIMITS * i, mib) * mib;
    if (limit >= last) continue;
    try_given(t, whole->strategy, last = limit);
  }
  if (least < last && t->err->code == SN_OK) try_given(t, whole->strategy, least);
}

static sn_status try_workspace(trial *t, const sn_net *net, const sn_strategy *strategies, uint32_t count) {
  t->planner = sn_staged_new(NULL, net, t->device, &t->options, t->err);
  for (uint32_t i = 0; i < count && t->err->code == SN_OK; i++) {
    if (chooses_workspaces(strategies[i]) && t->options.workspace != SN_WORKSPACE_DYNAMIC) continue;
    const sn_combination *whole = try_one(t, strategies[i], t->device->memory_bytes);
    if (whole && whole->result->fits && adapts(t, strategies[i])) try_less(t, whole);
  }
  sn_staged_free(t->planner);
  return t->err->code;
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

static sn_status find_front(sn_advice *advice, sn_err *err) {
  ranked *sorted = calloc(advice->n_all, sizeof *sorted);
  uint32_t *front = sn_arena_alloc(advice->arena, advice->n_all, sizeof *front), count = 0;
  int64_t fastest = INT64_MAX;
  if (!sorted || !front) {
    free(sorted);
    return sn_fail_memory(err);
  }
  for (uint32_t i = 0; i < advice->n_all; i++)
    sorted[i] = (ranked){advice->all[i].result->peak_device_bytes, advice->all[i].result->iteration_ns, i};
  qsort(sorted, advice->n_all, sizeof *sorted, compare);
  for (uint32_t i = 0; i < advice->n_all; i++) {
    if (sorted[i].ns >= fastest) continue;
    sn_combination *c = &advice->all[sorted[i].index];
    fastest = sorted[i].ns;
    c->on_front = true;
    front[count++] = sorted[i].index;
    if (c->result->fits) advice->best = c; /* the fastest so far */
  }
  for (uint32_t i = 0; i < count / 2; i++) {
    uint32_t rising = front[i];
    front[i] = front[count - 1 - i];
    front[count - 1 - i] = rising;
  }
  advice->front = front;
  advice->n_front = count;
  free(sorted);
  return SN_OK;
}

static sn_advice *make(const sn_net *net, const sn_device *device, const sn_strategy *strategies, uint32_t n_strategies,
                       const sn_options *options, sn_arena *arena, sn_err *err) {
  sn_advice *advice = sn_arena_alloc(arena, 1, sizeof *advice);
  size_t most = (size_t)n_strategies * SN_WORKSPACE_COUNT * (1 + SN_ADVISE_LIMITS);
  sn_combination *all = sn_arena_alloc(arena, most, sizeof *all);
  trial t = {.device = device, .options = *options, .advice = advice, .err = err};
  if (!advice || !all) {
    sn_fail_memory(err);
    return NULL;
  }
  *advice = (sn_advice){.all = all, .arena = arena};
  t.options.want_steps = t.options.want_peak = t.options.want_tensors = false;
  for (sn_workspace w = SN_WORKSPACE_NONE; w < SN_WORKSPACE_COUNT && err->code == SN_OK; w++) {
    t.options.workspace = w;
    try_workspace(&t, net, strategies, n_strategies);
  }
  return err->code == SN_OK && find_front(advice, err) == SN_OK ? advice : NULL;
}

sn_advice *sn_advise(const sn_net *net, const sn_device *device, const sn_strategy *strategies, uint32_t n_strategies,
                     const sn_options *options, sn_err *err) {
  sn_strategy all[SN_ADVISE_STRATEGIES + SN_ADVISE_CORUN];
  if (n_strategies == 0) strategies = all, n_strategies = sn_advise_all(net, device, options, all);
  sn_arena *arena = sn_arena_new();
  sn_advice *advice = arena ? make(net, device, strategies, n_strategies, options, arena, err) : NULL;
  if (!arena) sn_fail_memory(err);
  if (!advice) sn_arena_free(arena);
  return advice;
}

void sn_advice_free(sn_advice *advice) {
  if (advice) sn_arena_free(advice->arena);
}
