/* Actions of PyTorch's runtime; see the header. */
#include "sim/parallel/pipeline_actions.h"

#include <stdlib.h>

enum { RESIDENT = 3 }; /* chunks that have their parameters at once: max_active_stages */

/* ---- a stage's own actions ---- */

typedef struct writer {
  const sn_pipeline *of;
  const sn_pipeline_entry *list;
  sn__actions *made;
  uint32_t *after;    /* per entry: the next one of its chunk; n_entries: none */
  uint32_t *next;     /* per chunk: its next entry */
  uint32_t *ends;     /* per chunk: passes that make gradients of weights */
  bool *is_there;     /* per chunk: its parameters are */
  uint32_t *arrivals; /* chunks whose parameters are there, in the order in which they came */
  uint32_t n_arrivals;
  sn_err *err;
} writer;

static bool put(sn__actions *a, sn__action action, sn_err *err) {
  if (a->n == a->room) {
    const size_t room = 2 * a->room + 64;
    sn__action *all = realloc(a->all, room * sizeof *all);
    if (!all) return sn_fail_memory(err) == SN_OK;
    a->all = all;
    a->room = room;
  }
  a->all[a->n++] = action;
  return true;
}

static void put_of_chunk(writer *w, sn__action_kind kind, uint32_t chunk) {
  put(w->made, (sn__action){.entry = {.chunk = (uint16_t)chunk}, .kind = (uint8_t)kind}, w->err);
}

/* The chunks whose entries come next, the first one first. */
static uint32_t find_next(const writer *w, uint32_t *chunks) {
  uint32_t n = 0;
  for (uint32_t c = 0; c < w->of->chunks; c++) {
    uint32_t at = n < RESIDENT ? n++ : RESIDENT;
    while (at > 0 && w->next[chunks[at - 1]] > w->next[c]) {
      if (at < RESIDENT) chunks[at] = chunks[at - 1];
      at--;
    }
    if (at < RESIDENT) chunks[at] = c;
  }
  while (n > 0 && w->next[chunks[n - 1]] == w->of->n_entries) n--;
  return n;
}

static bool is_among(const uint32_t *chunks, uint32_t n, uint32_t chunk) {
  for (uint32_t i = 0; i < n; i++)
    if (chunks[i] == chunk) return true;
  return false;
}

static void let_go(writer *w, const uint32_t *wanted, uint32_t n) {
  uint32_t left = 0;
  for (uint32_t i = 0; i < w->n_arrivals; i++) {
    uint32_t chunk = w->arrivals[i];
    if (is_among(wanted, n, chunk)) {
      w->arrivals[left++] = chunk;
      continue;
    }
    put_of_chunk(w, SN__RESHARD, chunk);
    w->is_there[chunk] = false;
  }
  w->n_arrivals = left;
}

static void fetch(writer *w) {
  uint32_t wanted[RESIDENT], n = find_next(w, wanted);
  let_go(w, wanted, n);
  for (uint32_t i = 0; i < n; i++) {
    if (w->is_there[wanted[i]]) continue;
    put_of_chunk(w, SN__UNSHARD, wanted[i]);
    w->is_there[wanted[i]] = true;
    w->arrivals[w->n_arrivals++] = wanted[i];
  }
}

static void write_own(writer *w) {
  const uint8_t last = w->of->split ? SN_PIPELINE_WEIGHTS : SN_PIPELINE_BACKWARD;
  for (uint32_t c = 0; c < w->of->chunks; c++) w->next[c] = w->of->n_entries;
  for (uint32_t i = w->of->n_entries; i-- > 0;) {
    w->after[i] = w->next[w->list[i].chunk];
    w->next[w->list[i].chunk] = i;
  }
  for (uint32_t i = 0; i < w->of->n_entries && w->err->code == SN_OK; i++) {
    const sn_pipeline_entry *entry = &w->list[i];
    fetch(w);
    put(w->made, (sn__action){.entry = *entry, .kind = SN__COMPUTE}, w->err);
    w->next[entry->chunk] = w->after[i];
    if (entry->pass != last || ++w->ends[entry->chunk] < w->of->micros) continue;
    put_of_chunk(w, SN__REDUCE, entry->chunk);
    put_of_chunk(w, SN__AWAIT, entry->chunk);
  }
  let_go(w, NULL, 0);
}

static sn_status find_own(const sn_pipeline *of, uint32_t stage, sn__actions *made, sn_err *err) {
  const size_t chunks = of->chunks;
  writer w = {.of = of, .list = sn_pipeline_list(of, stage), .made = made, .err = err};
  w.after = malloc(of->n_entries * sizeof *w.after);
  w.next = malloc(chunks * sizeof *w.next);
  w.ends = calloc(chunks, sizeof *w.ends);
  w.is_there = calloc(chunks, sizeof *w.is_there);
  w.arrivals = malloc((chunks + RESIDENT) * sizeof *w.arrivals);
  bool has_room = w.after && w.next && w.ends && w.is_there && w.arrivals;
  if (has_room) write_own(&w);
  free(w.after);
  free(w.next);
  free(w.ends);
  free(w.is_there);
  free(w.arrivals);
  return has_room ? err->code : sn_fail_memory(err);
}

/* ---- all stages together ---- */

typedef struct player {
  const sn_pipeline *of;
  uint32_t mine;
  sn__actions *own; /* per stage */
  sn__actions *made;
  size_t *done;                       /* per stage: actions */
  bool *forward_done, *backward_done; /* per part and micro-batch */
  sn_err *err;
} player;

static size_t at(const player *p, uint32_t part, uint32_t micro) {
  return (size_t)part * p->of->micros + micro;
}

static uint32_t part_of(const player *p, uint32_t stage, const sn_pipeline_entry *entry) {
  return entry->chunk * p->of->stages + stage;
}

static bool is_ready(const player *p, uint32_t stage, const sn__action *action) {
  const uint32_t part = part_of(p, stage, &action->entry), last = p->of->stages * p->of->chunks - 1;
  if (action->kind != SN__COMPUTE) return true;
  if (action->entry.pass == SN_PIPELINE_FORWARD)
    return part == 0 || p->forward_done[at(p, part - 1, action->entry.micro)];
  return action->entry.pass == SN_PIPELINE_WEIGHTS || part == last ||
         p->backward_done[at(p, part + 1, action->entry.micro)];
}

/* The receiver asks as what is to be sent has been made. */
static void have_asked(player *p, uint32_t part, const sn_pipeline_entry *entry) {
  if (part % p->of->stages != p->mine) return;
  sn_pipeline_entry asked = {.micro = entry->micro, .chunk = (uint16_t)(part / p->of->stages), .pass = entry->pass};
  put(p->made, (sn__action){.entry = asked, .kind = SN__ASK}, p->err);
}

static void compute(player *p, uint32_t stage, const sn_pipeline_entry *entry) {
  const uint32_t part = part_of(p, stage, entry), last = p->of->stages * p->of->chunks - 1;
  if (entry->pass == SN_PIPELINE_FORWARD) {
    p->forward_done[at(p, part, entry->micro)] = true;
    if (part < last) have_asked(p, part + 1, entry);
  } else if (entry->pass == SN_PIPELINE_BACKWARD) {
    p->backward_done[at(p, part, entry->micro)] = true;
    if (part > 0) have_asked(p, part - 1, entry);
  }
}

/* Each stage's next action, of those that are ready; false where there was none. */
static bool play_round(player *p) {
  bool went_on = false;
  for (uint32_t stage = 0; stage < p->of->stages; stage++) {
    if (p->done[stage] == p->own[stage].n) continue;
    const sn__action *action = &p->own[stage].all[p->done[stage]];
    if (!is_ready(p, stage, action)) continue;
    if (stage == p->mine) put(p->made, *action, p->err);
    if (action->kind == SN__COMPUTE) compute(p, stage, &action->entry);
    p->done[stage]++;
    went_on = true;
  }
  return went_on;
}

static sn_status play(player *p) {
  const size_t parts = (size_t)p->of->stages * p->of->chunks * p->of->micros; /* half of the entries or less */
  p->own = calloc(p->of->stages, sizeof *p->own);
  p->done = calloc(p->of->stages, sizeof *p->done);
  p->forward_done = calloc(parts, sizeof *p->forward_done);
  p->backward_done = calloc(parts, sizeof *p->backward_done);
  if (!p->own || !p->done || !p->forward_done || !p->backward_done) return sn_fail_memory(p->err);
  for (uint32_t stage = 0; stage < p->of->stages; stage++)
    if (find_own(p->of, stage, &p->own[stage], p->err) != SN_OK) return p->err->code;
  while (play_round(p)) continue;
  for (uint32_t stage = 0; stage < p->of->stages; stage++)
    if (p->done[stage] < p->own[stage].n)
      return sn_fail(p->err, SN_BUG, "stage %u of a pipeline waits for what never comes", stage);
  return p->err->code;
}

sn_status sn__actions_of(const sn_pipeline *pipeline, uint32_t stage, sn__actions *made, sn_err *err) {
  player p = {.of = pipeline, .mine = stage, .made = made, .err = err};
  *made = (sn__actions){0};
  sn_status status = play(&p);
  for (uint32_t s = 0; p.own && s < pipeline->stages; s++) free(p.own[s].all);
  free(p.own);
  free(p.done);
  free(p.forward_done);
  free(p.backward_done);
  return status;
}
