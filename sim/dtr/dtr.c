/* DTR; see the header. Making a tensor may take making others first, as deep as the program is long: what waits stands
 * on a stack of its own.
 *
 *   frames   | make t9 | make t7 | make t4 |      each waits for the one behind it
 *   waiting  | t7 t8   | t4      | t1 t2   |      arguments that were not there, of each frame
 */
#include "sim/dtr/dtr_internal.h"

#include "base/checked.h"
#include "base/text.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { FEW = 64 }; /* places of the pool: gaps among them are no matter */

typedef struct frame {
  uint32_t tensor, next, end; /* of `waiting`: the next argument to make and lock, and behind the last */
  bool again, makes;          /* `makes`: the one behind it makes waiting[next] */
} frame;

typedef struct player {
  sn__dtr d;
  frame *frames;
  uint32_t n_frames, *waiting, n_waiting;
} player;

static const char *const heuristics[SN_DTR_HEURISTICS] = {"lru", "size", "local", "msps", "dtr", "eq"};
static const char *const statuses[SN_DTR_STATUSES] = {"ok", "out_of_memory", "thrash"};

const char *sn_dtr_heuristic_name(sn_dtr_heuristic heuristic) {
  return heuristics[heuristic];
}

sn_status sn_dtr_heuristic_parse(const char *text, sn_dtr_heuristic *heuristic, sn_err *err) {
  char suggestion[80];
  for (sn_dtr_heuristic h = 0; h < SN_DTR_HEURISTICS; h++)
    if (strcmp(heuristics[h], text) == 0) {
      *heuristic = h;
      return SN_OK;
    }
  sn_text_suggest(text, heuristics, SN_DTR_HEURISTICS, suggestion, sizeof suggestion);
  return sn_fail(err, SN_BAD_USAGE, "unknown heuristic \"%.80s\"%s; there are lru, size, local, msps, dtr and eq", text,
                 suggestion);
}

const char *sn_dtr_status_name(sn_dtr_status status) {
  return statuses[status];
}

/* ---- the pool of what can be evicted ---- */

static void close_gaps(sn__dtr *d) {
  uint32_t end = 0;
  for (uint32_t i = 0; i < d->pool_end; i++) {
    if (d->pool[i] == SN__DTR_NOWHERE) continue;
    d->items[d->pool[i]].place = end;
    d->pool[end++] = d->pool[i];
  }
  d->pool_end = end;
}

static void join(sn__dtr *d, uint32_t s) {
  sn__dtr_item *item = &d->items[s];
  if (item->kept || item->place != SN__DTR_NOWHERE) return;
  item->place = d->pool_end;
  d->pool[d->pool_end++] = s;
  d->pool_count++;
}

static void leave(sn__dtr *d, uint32_t s) {
  sn__dtr_item *item = &d->items[s];
  if (item->place == SN__DTR_NOWHERE) return;
  d->pool[item->place] = SN__DTR_NOWHERE;
  item->place = SN__DTR_NOWHERE;
  d->pool_count--;
  if (d->pool_end > FEW && d->pool_end > 2 * d->pool_count) close_gaps(d);
}

static void lock(sn__dtr *d, uint32_t s) {
  if (d->items[s].locks++ == 0) leave(d, s);
}

static void unlock(sn__dtr *d, uint32_t s) {
  if (--d->items[s].locks == 0) join(d, s);
}

/* ---- evicting ---- */

static void evict(sn__dtr *d, uint32_t s) {
  const sn_dtr_program *p = d->program;
  leave(d, s);
  d->items[s].there = false;
  d->usage -= p->storages[s].bytes;
  for (uint32_t m = p->first_member[s]; m < p->first_member[s + 1]; m++) d->defined[p->members[m]] = false;
  sn__dtr_scored_evicted(d, s);
}

/* Until `bytes` more are within the budget; false where nothing is left to evict. */
static bool free_room(sn__dtr *d, uint64_t bytes) {
  while (d->usage + bytes > d->budget) {
    if (d->pool_count == 0) return false;
    uint32_t victim = sn__dtr_choose(d);
    evict(d, victim);
    d->answer->evictions++;
    if (d->question->watch.evicted) d->question->watch.evicted(d->question->watch.who, victim);
  }
  return true;
}

/* ---- making ---- */

static bool is_view(const sn_dtr_program *p, uint32_t t) {
  return p->storages[p->tensors[t].storage].root != t;
}

/* A tensor that the running operation has made. What was there already is there twice, and the second one goes. */
static void define(sn__dtr *d, uint32_t t) {
  uint32_t s = d->program->tensors[t].storage;
  bool was_there = d->items[s].there, was_made = d->items[s].made;
  if (d->defined[t] && !is_view(d->program, t)) d->usage -= d->program->storages[s].bytes;
  d->items[s].there = d->items[s].made = d->defined[t] = true;
  if (was_there) return;
  join(d, s);
  sn__dtr_scored_made(d, s, !was_made);
}

/* Runs the operation that makes `t`, all of whose arguments are locked. */
static void run(sn__dtr *d, uint32_t t, bool again) {
  const sn_dtr_program *p = d->program;
  uint32_t o = p->tensors[t].op;
  d->clock += (int64_t)p->ops[o].cost_ns;
  d->usage += p->ops[o].bytes;
  d->answer->peak_bytes = sn_max(d->answer->peak_bytes, d->usage);
  if (again) d->answer->remade_ns += p->ops[o].cost_ns;
  for (uint32_t u = p->ops[o].first_tensor; u < p->ops[o + 1].first_tensor; u++)
    if (u != t) define(d, u);
  define(d, t);
  if (d->question->watch.ran) d->question->watch.ran(d->question->watch.who, o, again);
}

/* Accesses the arguments of t's operation, locks those that are there, and lets the others wait. */
static void begin(player *m, uint32_t t, bool again) {
  sn__dtr *d = &m->d;
  const sn_dtr_program *p = d->program;
  uint32_t o = p->tensors[t].op;
  frame *f = &m->frames[m->n_frames++];
  *f = (frame){.tensor = t, .next = m->n_waiting, .again = again};
  for (uint32_t a = p->ops[o].first_arg; a < p->ops[o + 1].first_arg; a++) {
    uint32_t s = p->tensors[p->args[a]].storage;
    d->items[s].last_access = d->clock;
    if (d->defined[p->args[a]])
      lock(d, s);
    else
      m->waiting[m->n_waiting++] = p->args[a];
  }
  f->end = m->n_waiting;
}

/* Everything is there: runs the operation of the last frame and takes that away. */
static sn_dtr_status finish(player *m) {
  sn__dtr *d = &m->d;
  const sn_dtr_program *p = d->program;
  const frame *f = &m->frames[m->n_frames - 1];
  uint32_t o = p->tensors[f->tensor].op;
  if (!free_room(d, p->ops[o].bytes)) return SN_DTR_OUT_OF_MEMORY;
  run(d, f->tensor, f->again);
  for (uint32_t a = p->ops[o].first_arg; a < p->ops[o + 1].first_arg; a++) unlock(d, p->tensors[p->args[a]].storage);
  m->n_frames--;
  m->n_waiting = m->n_frames > 0 ? m->frames[m->n_frames - 1].end : 0;
  return d->answer->remade_ns > d->question->remake_limit_ns ? SN_DTR_THRASH : SN_DTR_OK;
}

/* Makes a tensor that is not there, and what it takes. */
static sn_dtr_status make(player *m, uint32_t tensor, bool again) {
  sn__dtr *d = &m->d;
  sn_dtr_status status = SN_DTR_OK;
  begin(m, tensor, again);
  while (m->n_frames > 0 && status == SN_DTR_OK) {
    frame *f = &m->frames[m->n_frames - 1];
    if (f->next == f->end) {
      status = finish(m);
    } else if (d->defined[m->waiting[f->next]]) { /* by now, made for this or come along with another */
      lock(d, d->program->tensors[m->waiting[f->next++]].storage);
    } else {
      begin(m, m->waiting[f->next], true);
    }
  }
  return status;
}

/* ---- the program ---- */

/* The operation's results are asked for: they belong to their storages from now on, and cost what it costs. */
static void ask(sn__dtr *d, uint32_t o) {
  const sn_dtr_program *p = d->program;
  uint64_t walk = ++d->walk_number;
  d->op = o;
  for (uint32_t t = p->ops[o].first_tensor; t < p->ops[o + 1].first_tensor; t++) {
    sn__dtr_item *item = &d->items[p->tensors[t].storage];
    item->references++;
    if (item->seen != walk) item->cost += (int64_t)p->ops[o].cost_ns;
    item->seen = walk;
  }
  sn__dtr_scored_asked(d, o);
}

static sn_dtr_status run_first(player *m, uint32_t o) {
  const sn_dtr_program *p = m->d.program;
  ask(&m->d, o);
  sn_dtr_status status = make(m, p->ops[o].first_tensor, false);
  for (uint32_t t = p->ops[o].first_tensor; t < p->ops[o + 1].first_tensor; t++)
    m->d.items[p->tensors[t].storage].last_access = m->d.clock;
  return status;
}

static void release(sn__dtr *d, uint32_t s) {
  sn__dtr_item *item = &d->items[s];
  bool stays = item->pinned && !d->question->frees_pinned;
  if (--item->references > 0 || !item->there || stays) return;
  item->locks = 0;
  item->pinned = false;
  evict(d, s);
}

static sn_dtr_status pin(player *m, uint32_t t) {
  sn__dtr *d = &m->d;
  uint32_t s = d->program->tensors[t].storage;
  sn_dtr_status status = d->defined[t] ? SN_DTR_OK : make(m, t, true);
  if (status != SN_DTR_OK || d->items[s].pinned) return status;
  lock(d, s);
  d->items[s].pinned = true;
  return SN_DTR_OK;
}

static sn_dtr_status act(player *m, sn_dtr_action action) {
  sn__dtr *d = &m->d;
  if (action.kind == SN_DTR_RUN) return run_first(m, action.item);
  uint32_t s = d->program->tensors[action.item].storage;
  switch ((sn_dtr_kind)action.kind) {
  case SN_DTR_HOLD:
    d->items[s].references++;
    break;
  case SN_DTR_RELEASE:
    release(d, s);
    break;
  case SN_DTR_PIN:
    return pin(m, action.item);
  case SN_DTR_KEEP:
    leave(d, s);
    d->items[s].kept = true;
    break;
  case SN_DTR_RUN:
    break;
  }
  return SN_DTR_OK;
}

static sn_status open_player(player *m, sn_err *err) {
  sn__dtr *d = &m->d;
  const sn_dtr_program *p = d->program;
  size_t n = p->n_storages;
  d->items = calloc(n + 1, sizeof *d->items);
  d->defined = calloc((size_t)p->n_tensors + 1, sizeof *d->defined);
  d->pool = malloc((2 * n + FEW + 1) * sizeof *d->pool); /* no more than half of it gaps */
  d->walk = malloc((n + 1) * sizeof *d->walk);
  d->classes = calloc(n + 1, sizeof *d->classes);
  d->ops_seen = calloc((size_t)p->n_ops + 1, sizeof *d->ops_seen);
  m->frames = malloc(((size_t)p->n_ops + 1) * sizeof *m->frames);
  m->waiting = malloc(((size_t)p->n_args + 1) * sizeof *m->waiting);
  if (!d->items || !d->defined || !d->pool || !d->walk || !d->classes || !d->ops_seen || !m->frames || !m->waiting)
    return sn_fail_memory(err);
  for (uint32_t s = 0; s < n; s++) {
    d->items[s].place = d->items[s].class = SN__DTR_NOWHERE;
    d->classes[s].first = s + 1;
  }
  return SN_OK;
}

static void close_player(player *m) {
  free(m->d.items);
  free(m->d.defined);
  free(m->d.pool);
  free(m->d.walk);
  free(m->d.classes);
  free(m->d.ops_seen);
  free(m->frames);
  free(m->waiting);
}

sn_status sn_dtr_play(const sn_dtr_program *program, const sn_dtr_question *question, sn_dtr_answer *answer,
                      sn_err *err) {
  player m = {.d = {.program = program, .question = question, .answer = answer, .clock = 1}};
  m.d.budget = question->budget_bytes;
  *answer = (sn_dtr_answer){.status = SN_DTR_OK};
  if (open_player(&m, err) == SN_OK)
    for (uint32_t a = 0; a < program->n_actions && answer->status == SN_DTR_OK; a++)
      answer->status = act(&m, program->actions[a]);
  answer->clock_ns = (uint64_t)m.d.clock;
  close_player(&m);
  return err->code;
}

sn_status sn_dtr_baseline(const sn_dtr_program *program, uint64_t *bytes, sn_err *err) {
  sn_dtr_question q = {.budget_bytes = UINT64_MAX, .remake_limit_ns = UINT64_MAX, .frees_pinned = true};
  sn_dtr_answer a;
  if (sn_dtr_play(program, &q, &a, err) == SN_OK) *bytes = a.peak_bytes;
  return err->code;
}
