/* The answer about a pipeline; see sim/capacity/answer.h. */
#include "sim/capacity/answer.h"

#include "sim/capacity/answer_changes.h"
#include "sim/capacity/bands.h"
#include "sim/capacity/changed_loop.h"
#include "sim/device/device.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct finder {
  const sn_run *run;
  const sn_answer_wish *wish;
  sn_answer *answer;
  sn_answer_change changes[SN_ANSWER_CHANGES];
  uint32_t count;
  sn_arena *arena;
  sn_err *err;
} finder;

/* The least with which every stage runs, and whose it is. */
static uint64_t needed_by(const sn_run *run, uint32_t result, uint32_t *stage) {
  uint64_t most = 0;
  for (uint32_t s = 0; s < run->n_stages; s++) {
    uint64_t bytes = run->stages[s]->results[result].least_device_bytes;
    if (bytes > most) most = bytes, *stage = s;
  }
  return most;
}

static uint32_t index_of(const sn_run *run, const char *strategy) {
  uint32_t i = 0;
  while (i + 1 < run->n_results && strcmp(run->results[i].strategy, strategy) != 0) i++;
  return i;
}

/* Of two results the fastest that fits; where none does the one that needs least. */
static bool is_better(const sn_run *run, uint32_t one, uint32_t other) {
  const sn_result *a = &run->results[one], *b = &run->results[other];
  uint32_t stage;
  if (a->fits != b->fits) return a->fits;
  if (a->fits) return a->iteration_ns < b->iteration_ns;
  return needed_by(run, one, &stage) < needed_by(run, other, &stage);
}

/* Among those that the verdict is of. */
static uint32_t choose(const finder *f) {
  uint32_t best = index_of(f->run, f->wish->asked.results[0]->strategy);
  for (uint32_t i = 1; i < f->wish->asked.n_strategies; i++) {
    uint32_t at = index_of(f->run, f->wish->asked.results[i]->strategy);
    if (is_better(f->run, at, best)) best = at;
  }
  return best;
}

static sn_status add_calls(finder *f, sn_strategy strategy, sn_answer_change *change) {
  const sn_calls_wish wish = {.strategy = strategy, .memory_bytes = f->wish->asked.device->memory_bytes, .mesh = true};
  return sn__loop_keep_calls(&f->wish->asked, &wish, f->arena, change, f->err);
}

/* A strategy of the run as a change; of the one that stands none. */
static sn_status add_change(finder *f, uint32_t result, bool stands) {
  const sn_result *r = &f->run->results[result];
  const sn_iteration iteration = f->wish->asked.options->iteration;
  sn_answer_change *change = &f->changes[f->count];
  sn_strategy strategy;
  if (f->count == SN_ANSWER_CHANGES || (!stands && !r->fits)) return SN_OK;
  if (sn_strategy_parse(r->strategy, &strategy, f->err) != SN_OK ||
      sn__loop_tell_none(strategy, iteration, f->run->batch, r, f->arena, change, f->err) != SN_OK)
    return f->err->code;
  f->count++;
  if (!stands) {
    change->kind = strategy.units > 0 ? SN_CHANGE_CHECKPOINT_SOME : SN_CHANGE_CHECKPOINT;
    change->what = strategy.units > 0 ? sn_arena_print(f->arena, "checkpoint %u of a stage's blocks", strategy.units)
                                      : "checkpoint all blocks";
    change->options = sn_arena_print(f->arena, "--strategy %s", r->strategy);
    if (!change->what || !change->options) return sn_fail_memory(f->err);
  }
  return add_calls(f, strategy, change);
}

static int compare(const void *a, const void *b) {
  const sn_answer_change *x = a, *y = b;
  return (x->images_per_second < y->images_per_second) - (x->images_per_second > y->images_per_second);
}

/* What does not fit as it stands is no change. */
static sn_status add_changes(finder *f, uint32_t stands) {
  bool fits = f->answer->verdict != SN_VERDICT_NO;
  if (fits && add_change(f, stands, true) != SN_OK) return f->err->code;
  for (uint32_t i = 0; i < f->run->n_results; i++)
    if (i != stands && add_change(f, i, false) != SN_OK) return f->err->code;
  qsort(f->changes + fits, f->count - fits, sizeof *f->changes, compare);
  sn_answer_change *kept = sn_arena_alloc(f->arena, (size_t)f->count + 1, sizeof *kept);
  if (!kept) return sn_fail_memory(f->err);
  memcpy(kept, f->changes, f->count * sizeof *kept);
  f->answer->changes = kept;
  f->answer->n_changes = f->count;
  return SN_OK;
}

static sn_status add_bands(finder *f, uint32_t stands) {
  char text[SN_BANDS_TEXT], memory[SN_BAND_TEXT];
  const sn_asked *a = &f->wish->asked;
  sn_strategy strategy;
  if (sn_strategy_parse(f->run->results[stands].strategy, &strategy, f->err) != SN_OK) return f->err->code;
  const sn_timed timed = sn_timed_of(a->net, a->device, a->options, strategy);
  sn_band_of_shared(&a->options->iteration.mesh, memory);
  f->answer->memory_band = sn_arena_text(f->arena, memory);
  f->answer->time_band = sn_arena_text(f->arena, sn_band_of_times(&timed, 1, text));
  return f->answer->memory_band && f->answer->time_band ? SN_OK : sn_fail_memory(f->err);
}

static sn_status fill(finder *f) {
  uint32_t stands = choose(f), stage = 0;
  const sn_result *r = &f->run->results[stands];
  uint64_t usable = f->wish->asked.device->memory_bytes, needed = needed_by(f->run, stands, &stage);
  *f->answer = (sn_answer){.runtime = f->wish->runtime,
                           .verdict = r->fits ? sn_answer_verdict(needed, usable) : SN_VERDICT_NO,
                           .strategy = sn_arena_text(f->arena, r->strategy),
                           .needed_bytes = needed,
                           .usable_bytes = usable,
                           .context_bytes = r->context_bytes,
                           .note = sn_arena_print(f->arena,
                                                  "the fullest is stage %" PRIu32 " of %" PRIu32
                                                  ", counted from 0; the largest batch of a pipeline is not looked for",
                                                  stage, f->run->n_stages),
                           .fp32_loss = sn__answer_has_fp32_loss(f->wish->asked.net, f->wish->asked.options->iteration),
                           .moment = "",
                           .arena = f->arena};
  if (!f->answer->strategy || !f->answer->note) return sn_fail_memory(f->err);
  return add_changes(f, stands) == SN_OK ? add_bands(f, stands) : f->err->code;
}

sn_answer *sn_answer_of_stages(const sn_run *run, const sn_answer_wish *wish, sn_err *err) {
  sn_arena *arena = sn_arena_new();
  finder f = {.run = run, .wish = wish, .arena = arena, .err = err};
  f.answer = arena ? sn_arena_alloc(arena, 1, sizeof *f.answer) : NULL;
  if (!f.answer)
    sn_fail_memory(err);
  else if (fill(&f) == SN_OK)
    return f.answer;
  if (arena) sn_arena_free(arena);
  return NULL;
}
