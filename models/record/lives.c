/* Lives of a recording's storages; see the header. One walk over all events. */
#include "models/record/lives.h"

#include <stdlib.h>

enum { MOST_MADE = (1 << 27) - 1 }; /* of sn_record_life.made: iterations have fewer operations */
_Static_assert(MOST_MADE / 2 > SN_MAX_LAYERS, "an operation that is run again has a number, too");

typedef struct walk {
  const struct sn_recorded *recorded;
  const sn_record *record;
  sn_record_life *lives;
  uint32_t *held, *kept; /* per storage that has bytes of its own: how many storages of Python's, handles and ghosts */
  uint32_t *of_handle;   /* its storage */
  bool in_place, begun;
  uint32_t op;       /* operations of the iteration so far */
  bool born_between; /* a storage was, since the last of them */
  uint8_t phase;
} walk;

static uint32_t whose(const walk *w, uint32_t storage) {
  while (w->lives[storage].same != storage) storage = w->lives[storage].same;
  return storage;
}

/* The operation that what happens now is put to. */
static uint32_t here(const walk *w) {
  uint32_t at = w->op > 0 && !w->born_between ? w->op - 1 : w->op;
  return at < w->recorded->n_ops ? at : w->recorded->n_ops - 1;
}

static void be_born(walk *w, uint32_t storage, uint32_t at, uint8_t phase) {
  uint32_t s = whose(w, storage);
  sn_record_life *life = &w->lives[s];
  if (w->held[s] + w->kept[s] == 0 && life->stay == SN_RECORD_ELSEWHERE) {
    life->phase = phase & 3u;
    life->made = at & MOST_MADE;
    life->stay = w->begun ? SN_RECORD_MADE : SN_RECORD_ELSEWHERE;
  }
  w->held[s]++;
}

static void keep(walk *w, uint32_t storage) {
  w->kept[whose(w, storage)]++;
}

/* Behind the last operation all but values are let go of because the recording is over. */
static bool is_over(const walk *w, uint32_t storage) {
  return w->begun && w->op == w->recorded->n_ops && w->record->storages[storage].role != SN_RECORD_VALUE;
}

static void let_go(walk *w, uint32_t storage) {
  uint32_t s = whose(w, storage);
  if (is_over(w, s)) return;
  if (w->held[s] > 0 && --w->held[s] == 0 && w->begun) w->lives[s].held = here(w);
}

static void drop(walk *w, uint32_t storage) {
  uint32_t s = whose(w, storage);
  if (w->kept[s] > 0 && --w->kept[s] == 0 && w->begun) w->lives[s].kept = here(w);
}

static void run(walk *w, const sn_record_op *op) {
  const uint32_t *made = &w->record->refs[op->first_ref + op->n_reads];
  bool again = w->begun && w->recorded->again && w->recorded->again[w->op] != SN_NONE;
  if (!again) w->phase = op->phase; /* what is born between others' operations is of the pass that goes on */
  w->born_between = false;
  if (w->in_place && op->adds_in_place) w->lives[made[0]].same = whose(w, op->summand);
  for (uint32_t i = 0; i < op->n_makes; i++) be_born(w, made[i], w->op, op->phase);
  for (uint32_t i = 0; w->begun && i < op->n_reads + op->n_makes + op->n_changes; i++) {
    sn_record_life *life = &w->lives[whose(w, w->record->refs[op->first_ref + i])];
    if (w->op < life->first_use) life->first_use = w->op;
  }
  w->op += w->begun;
}

static void follow(walk *w, const sn_record_event *e) {
  switch ((sn_record_kind)e->kind) {
  case SN_RECORD_OP:
    run(w, &w->record->ops[e->id]);
    break;
  case SN_RECORD_BIRTH:
    w->born_between = true;
    be_born(w, e->id, here(w), w->phase);
    break;
  case SN_RECORD_LET_GO:
    let_go(w, e->id);
    break;
  case SN_RECORD_KEPT:
    w->of_handle[e->id] = e->other;
    keep(w, e->other);
    break;
  case SN_RECORD_DROPPED:
    drop(w, w->of_handle[e->id]);
    break;
  case SN_RECORD_GHOST:
    keep(w, e->other);
    break;
  case SN_RECORD_GHOST_END:
    drop(w, e->other);
    break;
  case SN_RECORD_TAKEN:
  case SN_RECORD_ENTER:
  case SN_RECORD_LEAVE:
  case SN_RECORD_ITERATION:
    break;
  }
}

/* The iteration begins: what is there is resident, until it goes. */
static void begin(walk *w) {
  w->begun = true;
  w->op = 0;
  w->born_between = false;
  for (uint32_t s = 0; s < w->record->n_storages; s++)
    if (w->held[s] + w->kept[s] > 0) w->lives[s].stay = SN_RECORD_RESIDENT;
}

/* The iteration is over: of what has gone since it began, that was left over. */
static void end(walk *w) {
  uint32_t last = w->recorded->n_ops - 1;
  for (uint32_t s = 0; s < w->record->n_storages; s++) {
    sn_record_life *life = &w->lives[s];
    life->at_end = w->held[s] > 0;
    if (life->stay == SN_RECORD_RESIDENT && w->held[s] + w->kept[s] == 0) life->stay = SN_RECORD_CARRIED;
    if (life->stay != SN_RECORD_MADE) life->made = 0;
    if (w->held[s] > 0) life->held = last;
    if (w->kept[s] > 0) life->kept = last;
    if (life->same != s) life->stay = SN_RECORD_ELSEWHERE;
  }
}

const sn_record_life *sn_record_lives_find(const struct sn_recorded *recorded, bool in_place, sn_arena *arena) {
  const sn_record *record = recorded->record;
  size_t storages = (size_t)record->n_storages + 1;
  walk w = {.recorded = recorded,
            .record = record,
            .in_place = in_place,
            .lives = sn_arena_alloc(arena, storages, sizeof *w.lives),
            .held = calloc(storages, sizeof *w.held),
            .kept = calloc(storages, sizeof *w.kept),
            .of_handle = calloc((size_t)record->handles + 1, sizeof *w.of_handle)};
  bool good = w.lives && w.held && w.kept && w.of_handle;
  for (uint32_t s = 0; good && s < record->n_storages; s++)
    w.lives[s] = (sn_record_life){.same = s, .first_use = recorded->n_ops - 1, .kept = SN_NONE};
  for (uint32_t e = 0; good && e < record->n_events; e++) {
    if (e == recorded->first_event) begin(&w);
    follow(&w, &record->events[e]);
  }
  if (good) end(&w);
  free(w.held);
  free(w.kept);
  free(w.of_handle);
  return good ? w.lives : NULL;
}
