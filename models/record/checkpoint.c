/* Recordings with blocks under checkpoints; see the header. One walk over all events, in which those of a block stand
 * once more where backward comes to it. */
#include "models/record/checkpoint.h"

#include <stdlib.h>
#include <string.h>

/* Blocks in one checkpoint, by their events. */
typedef struct unit {
  uint32_t first, end, stop;  /* from the first call's beginning; behind the last one's end; behind what keeps last */
  uint32_t left;              /* handles that have not gone */
  uint32_t first_hold, holds; /* in maker.held: what it needs to run again */
  bool selective;             /* then some results are kept: */
  uint32_t first_kept, keeps; /* in maker.held */
} unit;

typedef struct maker {
  const struct sn_recorded *plain;
  const sn_record *from;
  sn_record *record;
  struct sn_recorded *made;
  sn_record_op *ops;
  sn_record_event *events;
  sn_record_storage *storages;
  uint32_t *refs, *layer, *again;
  unit *units;
  uint32_t n_units, next; /* the one that begins next */
  uint32_t *held, n_held; /* storages */
  uint32_t *kept_by;      /* per storage of the file: the handle of the selective checkpoint that has it; SN_NONE */
  uint32_t *unit_of;      /* per handle: whose it is; SN_NONE: of no unit */
  uint32_t *made_in;      /* per storage of the file: the unit; SN_NONE */
  uint32_t *twin;         /* per storage of the file: the one that was made when its unit ran again; SN_NONE */
  uint32_t *of_handle;    /* per handle, holds behind the file's: its storage */
  uint32_t *of_ghost;
  uint32_t *holders; /* per storage: Python, handles, ghosts */
  bool *kept;        /* per handle: it has not gone */
  bool *python;      /* per storage: Python has it */
  bool *ran;         /* per unit: again */
} maker;

static const uint32_t *makes_of(const maker *m, const sn_record_op *op) {
  return &m->from->refs[op->first_ref + op->n_reads];
}

/* ---- units ---- */

static void mark(maker *m, uint32_t storage, uint32_t u) {
  m->made_in[storage] = u;
}

/* What is made in a unit and what it keeps, event by event. */
static void find_inside(maker *m, uint32_t u) {
  unit *at = &m->units[u];
  for (uint32_t e = at->first; e < at->end; e++) {
    const sn_record_event *event = &m->from->events[e];
    const sn_record_op *op = event->kind == SN_RECORD_OP ? &m->from->ops[event->id] : NULL;
    for (uint32_t i = 0; op && i < op->n_makes; i++) mark(m, makes_of(m, op)[i], u);
    if (event->kind == SN_RECORD_BIRTH) mark(m, event->id, u);
    if (event->kind != SN_RECORD_KEPT) continue;
    m->unit_of[event->id] = u;
    at->left++;
    at->stop = e + 1;
  }
}

/* Whether a selective checkpoint keeps what an operation makes; `products`: how many its unit has had. */
static bool is_kept(const char *name, uint32_t *products) {
  static const char *const attention[] = {
      "aten._scaled_dot_product_flash_attention.default", "aten._scaled_dot_product_efficient_attention.default",
      "aten._scaled_dot_product_cudnn_attention.default", "aten._scaled_dot_product_flash_attention_for_cpu.default"};
  for (size_t i = 0; i < sizeof attention / sizeof *attention; i++)
    if (strcmp(name, attention[i]) == 0) return true;
  return strcmp(name, "aten.mm.default") == 0 && ++*products % 2 == 1;
}

/* Storages that the unit keeps are held by handles behind those of what it needs to run again. */
static void find_kept(maker *m, uint32_t u) {
  unit *at = &m->units[u];
  uint32_t products = 0;
  at->first_kept = m->n_held;
  for (uint32_t e = at->first; e < at->end && at->selective; e++) {
    if (m->from->events[e].kind != SN_RECORD_OP) continue;
    const sn_record_op *op = &m->from->ops[m->from->events[e].id];
    if (!is_kept(m->from->kernels[op->kernel].name, &products)) continue;
    for (uint32_t i = 0; i < op->n_makes; i++) {
      uint32_t storage = makes_of(m, op)[i];
      m->kept_by[storage] = m->from->handles + m->n_held;
      m->held[m->n_held++] = storage;
      at->keeps++;
    }
  }
}

static bool is_model(uint8_t role) {
  return role == SN_RECORD_PARAMETER || role == SN_RECORD_BUFFER || role == SN_RECORD_STATE;
}

/* Once; `stamp` is, per storage, the last unit that holds it. */
static void add_hold(maker *m, uint32_t u, uint32_t storage, uint32_t *stamp) {
  if (m->made_in[storage] == u || stamp[storage] == u) return;
  stamp[storage] = u;
  m->held[m->n_held++] = storage;
  m->units[u].holds++;
}

static void find_holds(maker *m, uint32_t u, const sn_record_span *span, uint32_t *stamp) {
  m->units[u].first_hold = m->n_held;
  for (uint32_t r = span->first; r < span->end; r++) {
    const uint32_t *arguments = &m->from->arguments[m->from->events[m->plain->regions[r].first_event].other];
    for (uint32_t i = 1; i <= *arguments; i++)
      if (!is_model(m->from->storages[arguments[i]].role)) add_hold(m, u, arguments[i], stamp);
  }
  for (uint32_t e = m->units[u].first; e < m->units[u].end; e++) {
    if (m->from->events[e].kind != SN_RECORD_OP) continue;
    const sn_record_op *op = &m->from->ops[m->from->events[e].id];
    const uint32_t *reads = &m->from->refs[op->first_ref];
    for (uint32_t i = 0; i < op->n_reads; i++)
      if (m->from->storages[reads[i]].role == SN_RECORD_VALUE) add_hold(m, u, reads[i], stamp);
  }
}

static bool find_units(maker *m, const sn_record_span *spans) {
  uint32_t *stamp = malloc(((size_t)m->from->n_storages + 1) * sizeof *stamp);
  if (!stamp) return false;
  memset(stamp, 0xff, ((size_t)m->from->n_storages + 1) * sizeof *stamp);
  for (uint32_t u = 0; u < m->n_units; u++) {
    m->units[u] = (unit){.first = m->plain->regions[spans[u].first].first_event,
                         .end = m->plain->regions[spans[u].end - 1].end_event,
                         .selective = spans[u].selective > 0};
    m->units[u].stop = m->units[u].first;
    find_inside(m, u);
  }
  for (uint32_t u = 0; u < m->n_units; u++) find_holds(m, u, &spans[u], stamp);
  for (uint32_t u = 0; u < m->n_units; u++) find_kept(m, u);
  free(stamp);
  return true;
}

/* ---- what is written down ---- */

static void take(maker *m, uint32_t storage) {
  m->holders[storage]++;
}

static void let_go(maker *m, uint32_t storage) {
  m->holders[storage] -= m->holders[storage] > 0;
}

static void add_event(maker *m, sn_record_kind kind, uint32_t id, uint32_t other) {
  m->events[m->record->n_events++] = sn_record_event_of(kind, id, other);
}

static void bear(maker *m, uint32_t storage) {
  m->python[storage] = true;
  take(m, storage);
}

static void forget(maker *m, uint32_t storage) {
  m->python[storage] = false;
  let_go(m, storage);
  add_event(m, SN_RECORD_LET_GO, storage, 0);
}

static void keep(maker *m, uint32_t handle, uint32_t storage) {
  m->of_handle[handle] = storage;
  m->kept[handle] = true;
  take(m, storage);
  add_event(m, SN_RECORD_KEPT, handle, storage);
}

/* It may have gone before: taken out of a checkpoint, then let go by its node. */
static void drop(maker *m, uint32_t handle) {
  if (!m->kept[handle]) return;
  m->kept[handle] = false;
  let_go(m, m->of_handle[handle]);
  add_event(m, SN_RECORD_DROPPED, handle, 0);
}

static uint32_t add_storage(maker *m, uint32_t like) {
  m->storages[m->record->n_storages] = m->from->storages[like];
  return m->twin[like] = m->record->n_storages++;
}

/* The storage that is meant, by unit `u` while it runs again, or by none (SN_NONE): what that has made, or backward
 * takes out, is the new one; a unit's inputs are what it holds. SN_NONE: nobody has either, as it was read for
 * something that a checkpoint does without. */
static uint32_t now(const maker *m, uint32_t storage, uint32_t u) {
  uint32_t twin = m->twin[storage], in = m->made_in[storage];
  bool made = twin != SN_NONE && m->holders[twin] > 0, there = in == SN_NONE || m->holders[storage] > 0;
  if (made && (u == SN_NONE || u == in || !there)) return twin;
  return there ? storage : SN_NONE;
}

/* Those of some refs that are there; how many. */
static uint32_t add_refs(maker *m, const uint32_t *refs, uint32_t count, uint32_t u) {
  uint32_t first = m->record->n_refs;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t storage = now(m, refs[i], u);
    if (storage != SN_NONE) m->refs[m->record->n_refs++] = storage;
  }
  return m->record->n_refs - first;
}

/* Where the phases of the iteration begin and end by now. */
static void note_phase(maker *m, uint32_t index) {
  struct sn_recorded *w = m->made;
  if (index == m->plain->n_forward) w->n_forward = w->n_ops;
  if (index + 1 == m->plain->n_forward + m->plain->n_backward) w->n_backward = w->n_ops + 1 - w->n_forward;
}

/* Operation `id` of the file, in the iteration that is planned; `u`: of this unit, which runs again, or SN_NONE. */
static void add_op(maker *m, uint32_t id, uint32_t u) {
  const sn_record_op *old = &m->from->ops[id];
  const uint32_t *makes = makes_of(m, old), *changes = makes + old->n_makes;
  sn_record_op *op = &m->ops[m->record->n_ops];
  uint32_t index = id - m->plain->first_op;
  bool again = u != SN_NONE;
  *op = *old;
  op->first_ref = m->record->n_refs;
  op->n_reads = add_refs(m, &m->from->refs[old->first_ref], old->n_reads, u);
  for (uint32_t i = 0; i < op->n_makes; i++) {
    uint32_t storage = again ? add_storage(m, makes[i]) : makes[i];
    bear(m, storage);
    m->refs[m->record->n_refs++] = storage;
  }
  op->n_changes = add_refs(m, changes, old->n_changes, u);
  if (!again) note_phase(m, index);
  m->layer[m->made->n_ops] = m->plain->layer[index];
  m->again[m->made->n_ops++] = again ? index : SN_NONE;
  m->made->n_again += again;
  add_event(m, SN_RECORD_OP, m->record->n_ops++, 0);
}

/* ---- running again ---- */

static void let_twin_go(maker *m, uint32_t storage) {
  uint32_t twin = m->twin[storage];
  if (twin == storage) drop(m, m->kept_by[storage]);
  if (twin != storage && twin != SN_NONE && m->python[twin]) forget(m, twin);
}

/* It stops where it has kept all: Python has nothing of it any longer. */
static void leave_again(maker *m, const unit *at) {
  for (uint32_t e = at->first; e < at->stop; e++) {
    const sn_record_event *event = &m->from->events[e];
    const sn_record_op *op = event->kind == SN_RECORD_OP ? &m->from->ops[event->id] : NULL;
    for (uint32_t i = 0; op && i < op->n_makes; i++) let_twin_go(m, makes_of(m, op)[i]);
    if (event->kind == SN_RECORD_BIRTH) let_twin_go(m, event->id);
  }
}

static bool keeps_results(const maker *m, const sn_record_op *op) {
  return op->n_makes > 0 && m->kept_by[*makes_of(m, op)] != SN_NONE;
}

/* Whether an operation's results are there instead of made again: Python lets go of them as of what it makes. */
static bool give_back(maker *m, uint32_t id) {
  const sn_record_op *op = &m->from->ops[id];
  if (!keeps_results(m, op)) return false;
  for (uint32_t i = 0; i < op->n_makes; i++) m->twin[makes_of(m, op)[i]] = makes_of(m, op)[i];
  return true;
}

static void run_again(maker *m, uint32_t u) {
  const unit *at = &m->units[u];
  m->ran[u] = true;
  for (uint32_t e = at->first; e < at->stop; e++) {
    const sn_record_event *event = &m->from->events[e];
    if (event->kind == SN_RECORD_OP && !give_back(m, event->id)) add_op(m, event->id, u);
    if (event->kind == SN_RECORD_BIRTH) {
      uint32_t twin = add_storage(m, event->id);
      bear(m, twin);
      add_event(m, SN_RECORD_BIRTH, twin, 0);
    }
    if (event->kind == SN_RECORD_LET_GO && m->made_in[event->id] == u) let_twin_go(m, event->id);
    if (event->kind != SN_RECORD_KEPT) continue;
    uint32_t storage = now(m, event->other, u);
    keep(m, event->id, storage != SN_NONE ? storage : event->other);
  }
  leave_again(m, at);
}

/* ---- events ---- */

static void enter(maker *m, uint32_t e) {
  if (m->next == m->n_units || m->units[m->next].first != e) return;
  const unit *at = &m->units[m->next++];
  for (uint32_t i = at->first_hold; i < at->first_hold + at->holds; i++)
    if (m->holders[m->held[i]] > 0) keep(m, m->from->handles + i, m->held[i]);
}

static void drop_of_node(maker *m, uint32_t handle) {
  uint32_t u = m->unit_of[handle];
  drop(m, handle);
  if (u == SN_NONE || --m->units[u].left > 0) return;
  for (uint32_t i = 0; i < m->units[u].holds; i++) drop(m, m->from->handles + m->units[u].first_hold + i);
  for (uint32_t i = 0; i < m->units[u].keeps; i++) drop(m, m->from->handles + m->units[u].first_kept + i);
}

static void keep_results(maker *m, const sn_record_op *op) {
  for (uint32_t i = 0; keeps_results(m, op) && i < op->n_makes; i++)
    keep(m, m->kept_by[makes_of(m, op)[i]], makes_of(m, op)[i]);
}

static void appear(maker *m, uint32_t e) {
  const sn_record_event *ghost = &m->from->events[e], *taken = ghost + 1;
  bool known = e + 1 < m->from->n_events && taken->kind == SN_RECORD_TAKEN;
  uint32_t u = known ? m->unit_of[taken->id] : SN_NONE, storage = ghost->other;
  if (u != SN_NONE) {
    if (!m->ran[u]) run_again(m, u);
    storage = m->of_handle[taken->id];
  }
  m->of_ghost[ghost->id] = storage;
  take(m, storage);
  add_event(m, SN_RECORD_GHOST, ghost->id, storage);
}

/* An event of the iteration that is planned. */
static void follow(maker *m, uint32_t e) {
  const sn_record_event *event = &m->from->events[e];
  switch ((sn_record_kind)event->kind) {
  case SN_RECORD_OP:
    add_op(m, event->id, SN_NONE);
    keep_results(m, &m->from->ops[event->id]);
    break;
  case SN_RECORD_BIRTH:
    bear(m, event->id);
    add_event(m, SN_RECORD_BIRTH, event->id, 0);
    break;
  case SN_RECORD_LET_GO:
    forget(m, event->id);
    break;
  case SN_RECORD_KEPT:
    if (m->unit_of[event->id] == SN_NONE) keep(m, event->id, event->other);
    break;
  case SN_RECORD_DROPPED:
    drop_of_node(m, event->id);
    break;
  case SN_RECORD_GHOST:
    appear(m, e);
    break;
  case SN_RECORD_TAKEN:
    if (m->unit_of[event->id] != SN_NONE) drop(m, event->id);
    break;
  case SN_RECORD_GHOST_END:
    let_go(m, m->of_ghost[event->id]);
    add_event(m, SN_RECORD_GHOST_END, event->id, m->of_ghost[event->id]);
    break;
  case SN_RECORD_ENTER:
    enter(m, e);
    break;
  case SN_RECORD_LEAVE:
  case SN_RECORD_ITERATION:
    break;
  }
}

/* One of an iteration before: as it was. */
static void copy(maker *m, uint32_t e) {
  const sn_record_event *event = &m->from->events[e];
  const sn_record_op *op = event->kind == SN_RECORD_OP ? &m->from->ops[event->id] : NULL;
  for (uint32_t i = 0; op && i < op->n_makes; i++) bear(m, makes_of(m, op)[i]);
  if (event->kind == SN_RECORD_BIRTH) bear(m, event->id);
  if (event->kind == SN_RECORD_LET_GO) m->python[event->id] = false, let_go(m, event->id);
  if (event->kind == SN_RECORD_KEPT) m->of_handle[event->id] = event->other, m->kept[event->id] = true;
  if (event->kind == SN_RECORD_GHOST) m->of_ghost[event->id] = event->other;
  if (event->kind == SN_RECORD_KEPT || event->kind == SN_RECORD_GHOST) take(m, event->other);
  if (event->kind == SN_RECORD_DROPPED) m->kept[event->id] = false, let_go(m, m->of_handle[event->id]);
  if (event->kind == SN_RECORD_GHOST_END) let_go(m, event->other);
  m->events[m->record->n_events++] = *event;
}

/* ---- the whole ---- */

/* What running again adds at most. */
typedef struct room {
  size_t events, ops, refs, storages, arguments, ghosts;
} room;

static void count_event(const maker *m, const sn_record_event *event, room *r) {
  const sn_record_op *op = event->kind == SN_RECORD_OP ? &m->from->ops[event->id] : NULL;
  uint32_t born = op ? op->n_makes : event->kind == SN_RECORD_BIRTH;
  r->events += 1 + born; /* it goes again */
  r->ops += op != NULL;
  r->refs += op ? (size_t)op->n_reads + op->n_makes + op->n_changes : 0;
  r->storages += born;
}

static room find_room(const maker *m, const sn_record_span *spans) {
  room r = {.arguments = m->from->n_arguments};
  for (uint32_t u = 0; u < m->n_units; u++)
    for (uint32_t e = m->plain->regions[spans[u].first].first_event; e < m->plain->regions[spans[u].end - 1].end_event;
         e++)
      count_event(m, &m->from->events[e], &r);
  for (uint32_t e = 0; e < m->from->n_events; e++)
    if (m->from->events[e].kind == SN_RECORD_GHOST && r.ghosts <= m->from->events[e].id)
      r.ghosts = (size_t)m->from->events[e].id + 1;
  return r;
}

static uint32_t *of_none(sn_arena *arena, size_t count) {
  uint32_t *items = sn_arena_alloc(arena, count, sizeof *items);
  if (items) memset(items, 0xff, count * sizeof *items);
  return items;
}

static bool allocate(maker *m, const room *more, sn_arena *arena) {
  const sn_record *from = m->from;
  size_t storages = from->n_storages + more->storages + 1, holds = more->arguments + more->refs + 1;
  size_t handles = from->handles + holds, ops = from->n_ops + more->ops + 1;
  m->record = sn_arena_alloc(arena, 1, sizeof *m->record);
  m->made = sn_arena_alloc(arena, 1, sizeof *m->made);
  m->ops = sn_arena_alloc(arena, ops, sizeof *m->ops);
  m->events = sn_arena_alloc(arena, from->n_events + more->events + 2 * holds, sizeof *m->events);
  m->storages = sn_arena_alloc(arena, storages, sizeof *m->storages);
  m->refs = sn_arena_alloc(arena, from->n_refs + more->refs + 1, sizeof *m->refs);
  m->layer = sn_arena_alloc(arena, ops, sizeof *m->layer);
  m->again = sn_arena_alloc(arena, ops, sizeof *m->again);
  m->units = sn_arena_alloc(arena, m->n_units, sizeof *m->units);
  m->ran = sn_arena_alloc(arena, m->n_units, sizeof *m->ran);
  m->held = sn_arena_alloc(arena, holds, sizeof *m->held);
  m->unit_of = of_none(arena, handles);
  m->made_in = of_none(arena, storages);
  m->twin = of_none(arena, storages);
  m->kept_by = of_none(arena, storages);
  m->of_handle = sn_arena_alloc(arena, handles, sizeof *m->of_handle);
  m->of_ghost = sn_arena_alloc(arena, more->ghosts + 1, sizeof *m->of_ghost);
  m->holders = sn_arena_alloc(arena, storages, sizeof *m->holders);
  m->kept = sn_arena_alloc(arena, handles, sizeof *m->kept);
  m->python = sn_arena_alloc(arena, storages, sizeof *m->python);
  return m->record && m->made && m->ops && m->events && m->storages && m->refs && m->layer && m->again && m->units &&
         m->ran && m->held && m->unit_of && m->made_in && m->twin && m->kept_by && m->of_handle && m->of_ghost &&
         m->holders && m->kept && m->python;
}

/* What is the same: tables, and all ahead of the iteration. */
static void begin(maker *m) {
  const struct sn_recorded *plain = m->plain;
  const sn_record *from = m->from;
  *m->record = *from;
  *m->made = *plain;
  m->made->n_ops = m->made->n_again = 0;
  m->made->n_forward = m->made->n_backward = 0;
  m->made->lives[0] = m->made->lives[1] = NULL;
  m->record->n_events = 0;
  m->record->n_ops = plain->first_op;
  m->record->handles = from->handles + m->n_held;
  memcpy(m->storages, from->storages, from->n_storages * sizeof *m->storages);
  memcpy(m->refs, from->refs, from->n_refs * sizeof *m->refs);
  memcpy(m->ops, from->ops, plain->first_op * sizeof *m->ops);
  if (plain->n_ops > 0) m->record->n_refs = from->ops[plain->first_op].first_ref;
}

struct sn_recorded *sn_record_checkpoint(const struct sn_recorded *plain, const sn_record_span *spans, uint32_t n_spans,
                                         sn_arena *arena) {
  maker m = {.plain = plain, .from = plain->record, .n_units = n_spans};
  const room more = find_room(&m, spans);
  if (!allocate(&m, &more, arena) || !find_units(&m, spans)) return NULL;
  begin(&m);
  for (uint32_t e = 0; e < plain->first_event; e++) copy(&m, e);
  for (uint32_t e = plain->first_event; e < m.from->n_events; e++) follow(&m, e);
  if (plain->n_forward == plain->n_ops) m.made->n_forward = m.made->n_ops;
  m.record->ops = m.ops;
  m.record->refs = m.refs;
  m.record->storages = m.storages;
  m.record->events = m.events;
  m.made->record = m.record;
  m.made->end_event = m.record->n_events;
  m.made->layer = m.layer;
  m.made->again = m.again;
  return m.made;
}
