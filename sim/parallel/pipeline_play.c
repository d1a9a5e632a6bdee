/* Plays the lists of a pipeline; see pipeline.h. A stage goes on until it needs what is not there yet; whoever makes that
 * wakes it. When each entry ends follows from the lists and times alone, whichever stage goes on first, and each entry
 * wakes at most one stage: O(entries).
 */
#include "sim/parallel/pipeline.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { UNKNOWN = -1 };

typedef struct player {
  const sn_pipeline *of;
  const sn_pipeline_times *times;
  int64_t *forward_end, *backward_end; /* by part of the network and micro-batch; UNKNOWN: it has not run */
  int64_t *stage_end;                  /* per stage: of its last entry */
  int64_t *busy;                       /* the caller's */
  uint32_t *done;                      /* per stage: entries that have run */
  uint32_t *awake;                     /* stages that may go on; a stack */
  bool *is_awake;
  uint32_t n_awake;
} player;

static size_t at(const player *p, uint32_t part, uint32_t micro) {
  return (size_t)part * p->of->micros + micro;
}

static uint32_t part_of(const player *p, uint32_t stage, const sn_pipeline_entry *entry) {
  return entry->chunk * p->of->stages + stage;
}

static void wake(player *p, uint32_t stage) {
  if (p->is_awake[stage]) return;
  p->is_awake[stage] = true;
  p->awake[p->n_awake++] = stage;
}

static uint32_t stage_of(const player *p, uint32_t part) {
  assert(p->of->stages > 0);
  return part % p->of->stages;
}

/* `sum` becomes a + b. Nothing is negative. */
static sn_status add(int64_t a, int64_t b, int64_t *sum, sn_err *err) {
  if (!__builtin_add_overflow(a, b, sum)) return SN_OK;
  return sn_fail(err, SN_BAD_USAGE, "a pipeline's stages take longer than 292 years; give smaller times");
}

/* When what `end` made has come from the part `from` to `to`: at once on the same stage. */
static sn_status arrive(const player *p, uint32_t from, uint32_t to, int64_t end, int64_t *when, sn_err *err) {
  const int64_t *hops = from < to ? p->times->forward_hop_ns : p->times->backward_hop_ns;
  const bool same = stage_of(p, from) == stage_of(p, to);
  return add(end, same || !hops ? 0 : hops[from], when, err);
}

/* When an entry may start for what it needs; UNKNOWN: something has not run. */
static sn_status ready(const player *p, uint32_t part, const sn_pipeline_entry *entry, int64_t *when, sn_err *err) {
  const uint32_t last = p->of->stages * p->of->chunks - 1;
  const int64_t own = entry->pass == SN_PIPELINE_FORWARD   ? 0
                      : entry->pass == SN_PIPELINE_WEIGHTS ? p->backward_end[at(p, part, entry->micro)]
                                                           : p->forward_end[at(p, part, entry->micro)];
  int64_t end = 0;
  uint32_t from = part;
  if (entry->pass == SN_PIPELINE_FORWARD && part > 0) end = p->forward_end[at(p, from = part - 1, entry->micro)];
  if (entry->pass == SN_PIPELINE_BACKWARD && part < last) end = p->backward_end[at(p, from = part + 1, entry->micro)];
  *when = UNKNOWN;
  if (own == UNKNOWN || end == UNKNOWN) return SN_OK;
  if (arrive(p, from, part, end, when, err) != SN_OK) return err->code;
  if (*when < own) *when = own;
  return SN_OK;
}

static int64_t duration(const player *p, uint32_t part, const sn_pipeline_entry *entry) {
  const uint8_t pass = entry->pass;
  const int64_t *of = pass == SN_PIPELINE_FORWARD    ? p->times->forward_ns
                      : pass == SN_PIPELINE_BACKWARD ? p->times->backward_ns
                                                     : p->times->weights_ns;
  const bool first = p->times->first_ns && pass == SN_PIPELINE_FORWARD && entry->micro == 0;
  assert(of[part] >= 0);
  return of[part] + (first ? p->times->first_ns[part] : 0);
}

/* Says when an entry has ended, and wakes whoever may have waited for that. */
static void tell(player *p, uint32_t part, const sn_pipeline_entry *entry, int64_t end) {
  const uint32_t parts = p->of->stages * p->of->chunks;
  if (entry->pass == SN_PIPELINE_FORWARD) {
    p->forward_end[at(p, part, entry->micro)] = end;
    if (part + 1 < parts) wake(p, stage_of(p, part + 1));
  } else if (entry->pass == SN_PIPELINE_BACKWARD) {
    p->backward_end[at(p, part, entry->micro)] = end;
    if (part > 0) wake(p, stage_of(p, part - 1));
  }
}

/* A stage goes on as far as it can. */
static sn_status go_on(player *p, uint32_t stage, sn_err *err) {
  const sn_pipeline_entry *list = sn_pipeline_list(p->of, stage);
  while (p->done[stage] < p->of->n_entries) {
    const sn_pipeline_entry *entry = &list[p->done[stage]];
    const uint32_t part = part_of(p, stage, entry);
    const int64_t takes = duration(p, part, entry);
    int64_t start, end;
    if (ready(p, part, entry, &start, err) != SN_OK) return err->code;
    if (start == UNKNOWN) return SN_OK;
    if (start < p->stage_end[stage]) start = p->stage_end[stage];
    if (add(start, takes, &end, err) != SN_OK) return err->code;
    p->stage_end[stage] = end;
    p->busy[stage] += takes; /* not more than `end` */
    p->done[stage]++;
    tell(p, part, entry, end);
  }
  return SN_OK;
}

/* Of a stage that waits for ever. */
static sn_status fail_stuck(const player *p, uint32_t stage, sn_err *err) {
  static const char passes[] = "FBW";
  const sn_pipeline_entry *entry = &sn_pipeline_list(p->of, stage)[p->done[stage]];
  return sn_fail(err, SN_BUG,
                 "pipeline %s of %" PRIu32 " stages, %" PRIu32 " micro-batches: stage %" PRIu32
                 " waits for ever at %c%" PRIu32 " of chunk %" PRIu16,
                 sn_pipeline_kind_name(p->of->kind), p->of->stages, p->of->micros, stage, passes[entry->pass],
                 entry->micro, entry->chunk);
}

static sn_status play(player *p, sn_err *err) {
  for (uint32_t stage = p->of->stages; stage-- > 0;) wake(p, stage);
  while (p->n_awake > 0) {
    const uint32_t stage = p->awake[--p->n_awake];
    p->is_awake[stage] = false;
    if (go_on(p, stage, err) != SN_OK) return err->code;
  }
  for (uint32_t stage = 0; stage < p->of->stages; stage++)
    if (p->done[stage] < p->of->n_entries) return fail_stuck(p, stage, err);
  return SN_OK;
}

static bool make_room(player *p) {
  const size_t stages = p->of->stages, ends = stages * p->of->chunks * p->of->micros; /* no more than entries */
  p->forward_end = malloc(ends * sizeof *p->forward_end);
  p->backward_end = malloc(ends * sizeof *p->backward_end);
  p->stage_end = calloc(stages, sizeof *p->stage_end);
  p->done = calloc(stages, sizeof *p->done);
  p->awake = malloc(stages * sizeof *p->awake);
  p->is_awake = calloc(stages, sizeof *p->is_awake);
  if (!p->forward_end || !p->backward_end || !p->stage_end || !p->done || !p->awake || !p->is_awake) return false;
  for (size_t i = 0; i < ends; i++) p->forward_end[i] = p->backward_end[i] = UNKNOWN;
  return true;
}

static void free_room(player *p) {
  free(p->forward_end);
  free(p->backward_end);
  free(p->stage_end);
  free(p->done);
  free(p->awake);
  free(p->is_awake);
}

sn_status sn_pipeline_play(const sn_pipeline *pipeline, const sn_pipeline_times *times, sn_pipeline_played *played,
                           sn_err *err) {
  assert(times->weights_ns || !pipeline->split);
  player p = {.of = pipeline, .times = times, .busy = played->busy_ns};
  memset(played->busy_ns, 0, pipeline->stages * sizeof *played->busy_ns);
  sn_status status = make_room(&p) ? play(&p, err) : sn_fail_memory(err);
  played->time_ns = 0;
  for (uint32_t i = 0; status == SN_OK && i < pipeline->stages; i++)
    if (p.stage_end[i] > played->time_ns) played->time_ns = p.stage_end[i];
  for (uint32_t i = 0; status == SN_OK && i < pipeline->stages; i++)
    played->idle_ns[i] = played->time_ns - played->busy_ns[i];
  for (uint32_t i = 0; status == SN_OK && played->end_ns && i < pipeline->stages; i++)
    played->end_ns[i] = p.stage_end[i];
  free_room(&p);
  return status;
}
