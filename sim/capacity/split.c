/* Split; see the header. */
#include "sim/capacity/split.h"

#include "base/arena.h"
#include "models/zoo/zoo.h"
#include "sim/ask/simulate.h"
#include "sim/device/device.h"
#include "sim/stages/staged.h"

#include <stdlib.h>

/* A strategy, and how far it has come. */
typedef struct candidate {
  sn_strategy strategy;
  uint32_t found;
} candidate;

typedef struct search {
  const sn_asked *asked;
  candidate *candidates;
  uint32_t n_candidates;
  sn_split *all;
  uint32_t count;
  sn_arena *arena;
  sn_err *err;
} search;

static void choose_candidates(search *s) {
  const sn_iteration split = {.accumulate = 2};
  for (uint32_t i = 0; i < s->asked->n_strategies; i++) {
    sn_strategy strategy = s->asked->strategies[i];
    if (sn_strategy_refuses(strategy, split) || sn_strategy_is_corun(strategy)) continue;
    s->candidates[s->n_candidates++].strategy = strategy;
  }
}

static sn_status try_strategy(search *s, sn_staged *planner, candidate *c, uint32_t parts) {
  sn_result *result = sn_arena_alloc(s->arena, 1, sizeof *result);
  if (!result) return sn_fail_memory(s->err);
  uint64_t memory = s->asked->device->memory_bytes;
  if (sn_staged_result(planner, c->strategy, memory, s->arena, result, s->err) != SN_OK || !result->fits)
    return s->err->code;
  c->found++;
  s->all[s->count++] = (sn_split){c->strategy, parts, s->asked->net->batch / parts, result};
  return SN_OK;
}

static sn_status try_parts(search *s, uint32_t parts) {
  const sn_asked *a = s->asked;
  sn_options options = *a->options;
  options.iteration.accumulate = parts * sn_iteration_batches(a->options->iteration);
  sn_net *net = sn_net_load(a->spec, a->net->batch / parts, a->image, s->err);
  sn_staged *planner = net ? sn_staged_new(NULL, net, a->device, &options, s->err) : NULL;
  for (uint32_t i = 0; i < s->n_candidates && s->err->code == SN_OK; i++)
    if (s->candidates[i].found < SN_SPLITS_EACH) try_strategy(s, planner, &s->candidates[i], parts);
  sn_staged_free(planner);
  sn_net_free(net);
  return s->err->code;
}

static bool is_searching(const search *s) {
  for (uint32_t i = 0; i < s->n_candidates; i++)
    if (s->candidates[i].found < SN_SPLITS_EACH) return true;
  return false;
}

static sn_status try_all(search *s) {
  uint32_t batch = s->asked->net->batch,
           most = SN_ITERATION_BATCHES / sn_iteration_batches(s->asked->options->iteration);
  uint32_t tried = 0;
  for (uint32_t parts = 2; parts <= batch && parts <= most && tried < SN_SPLITS_TRIED && is_searching(s); parts++) {
    if (batch % parts > 0) continue;
    if (try_parts(s, parts) != SN_OK) break;
    tried++;
  }
  return s->err->code;
}

/* Rising time, then memory, then parts. */
static int compare(const void *a, const void *b) {
  const sn_split *x = a, *y = b;
  const sn_result *p = x->result, *q = y->result;
  if (p->iteration_ns != q->iteration_ns) return p->iteration_ns < q->iteration_ns ? -1 : 1;
  if (p->peak_device_bytes != q->peak_device_bytes) return p->peak_device_bytes < q->peak_device_bytes ? -1 : 1;
  return x->parts < y->parts ? -1 : x->parts > y->parts;
}

static void keep_unbeaten(search *s) {
  uint32_t kept = 0;
  qsort(s->all, s->count, sizeof *s->all, compare);
  for (uint32_t i = 0; i < s->count; i++)
    if (kept == 0 || s->all[i].result->peak_device_bytes < s->all[kept - 1].result->peak_device_bytes)
      s->all[kept++] = s->all[i];
  s->count = kept;
}

static sn_splits *find(const sn_asked *asked, sn_arena *arena, sn_err *err) {
  search s = {.asked = asked, .arena = arena, .err = err};
  sn_splits *splits = sn_arena_alloc(arena, 1, sizeof *splits);
  s.candidates = sn_arena_alloc(arena, asked->n_strategies, sizeof *s.candidates);
  s.all = sn_arena_alloc(arena, (size_t)asked->n_strategies * SN_SPLITS_EACH, sizeof *s.all);
  if (!splits || !s.candidates || !s.all) {
    sn_fail_memory(err);
    return NULL;
  }
  bool none = asked->options->iteration.inference || asked->net->batch == 1 ||
              asked->net->n_layers > SN_SPLITS_LAYERS || asked->net->recorded;
  if (!none) choose_candidates(&s);
  if (try_all(&s) != SN_OK) return NULL;
  keep_unbeaten(&s);
  *splits = (sn_splits){.count = s.count, .all = s.all, .arena = arena};
  return splits;
}

sn_splits *sn_splits_find(const sn_asked *asked, sn_err *err) {
  sn_arena *arena = sn_arena_new();
  sn_splits *splits = arena ? find(asked, arena, err) : NULL;
  if (!arena) sn_fail_memory(err);
  if (!splits) sn_arena_free(arena);
  return splits;
}

void sn_splits_free(sn_splits *splits) {
  if (splits) sn_arena_free(splits->arena);
}
