/* recompute=optimal; see the header. Choices are not stored: on the way back that one is taken which gives the time. */
#include "sim/policy/schedule_optimal.h"

#include "base/checked.h"
#include "sim/memory/pool.h"
#include "sim/policy/stage_groups.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define NEVER (INT64_MAX / 4) /* sums of it stay above it */

/* What a row is about: the first pass, or stages that run again where the output of the last is there, or is not. */
typedef enum pass { FIRST, THERE, GONE } pass;

/* Stages s to t, and back. */
typedef struct span {
  uint32_t s, t;
  pass pass;
} span;

struct sn_optimal {
  const sn_stages *stages;
  sn_group *groups;
  uint32_t count;
  uint64_t unit;    /* bytes */
  uint32_t columns; /* memory is counted from 0 to columns - 1 units */
  int64_t *first;   /* T(s, m) at [s][m] */
  int64_t *there;   /* R(s, t, m) at [index of s, t][m] */
  sn_link link;
  bool sends;             /* what is kept may be sent out */
  int64_t *start;         /* of each stage in forward, where nothing waits */
  int64_t level_ns;       /* of the copies that are still to be done */
  int64_t *sent;          /* S(s, l, m) at [s][l][m] */
  struct choice *choices; /* of one row */
  int64_t *gone,
      *best; /* Q(s, t, m) and the lesser of both; those of stages that do not read their outputs are unused */
};

static int64_t lesser(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static uint32_t units(const sn_optimal *o, uint64_t bytes) {
  return (uint32_t)sn_min(sn_ceil_div(bytes, o->unit), o->columns);
}

static size_t index_of(const sn_optimal *o, uint32_t s, uint32_t t) {
  return ((size_t)t * (t + 1) / 2 + s) * o->columns;
}

static int64_t *row_of(const sn_optimal *o, span p) {
  if (p.pass == FIRST) return o->first + (size_t)p.s * o->columns;
  return (p.pass == THERE ? o->there : o->gone) + index_of(o, p.s, p.t);
}

/* Of stages that are to run again and whose last output nobody holds. */
static span without(const sn_optimal *o, uint32_t s, uint32_t t) {
  return (span){s, t, o->groups[t].reads_output ? GONE : THERE};
}

/* The same where it is there, and is dropped where that is better. */
static int64_t *best_row(const sn_optimal *o, uint32_t s, uint32_t t) {
  return (o->groups[t].reads_output ? o->best : o->there) + index_of(o, s, t);
}

/* The least memory in which a row takes no more than `ns`; the columns: none. With more memory it takes no longer. */
static uint32_t first_within(const sn_optimal *o, const int64_t *row, int64_t ns) {
  uint32_t low = 0, high = o->columns;
  while (low < high) {
    uint32_t middle = (low + high) / 2;
    if (row[middle] <= ns)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

static uint32_t first_possible(const sn_optimal *o, const int64_t *row) {
  return first_within(o, row, NEVER - 1);
}

/* What it takes with all memory. */
static int64_t least_of(const sn_optimal *o, const int64_t *row) {
  return row ? row[o->columns - 1] : 0;
}

/* ---- the recurrences ---- */

/* One way on from stage s. */
typedef struct way {
  uint32_t next;         /* s + 1, or where what is dropped ends */
  uint32_t bytes, freed; /* units: kept from there on, and given back: what it ran from, where nobody reads it again */
  uint32_t least;        /* needed at least */
  int64_t ns;            /* beside the rows */
  int keeping;           /* SN_KEEPINGS: what comes before `next` is dropped; SN_KEEPS_INPUT: t comes back first */
} way;

static int64_t *behind(const sn_optimal *o, span p, const way *w) {
  return row_of(o, (span){w->next, p.t, p.pass});
}

/* The units that what is behind has. */
static size_t left(const sn_optimal *o, const way *w, size_t m) {
  return sn_min(m + w->freed - w->bytes, o->columns - 1);
}

/* row[m] = min(row[m], what w takes with m), where it drops with `again` for what it dropped; NULL: it keeps. Where the
 * row is within what w takes at best, nothing is to be gained. */
static void improve(const sn_optimal *o, int64_t *row, const way *w, const int64_t *then, const int64_t *again) {
  int64_t best = w->ns + least_of(o, then) + least_of(o, again);
  size_t from = w->least, gain = w->freed, end = o->columns;
  if (from >= end || row[from] <= best) return;
  end = first_within(o, row, best);
  size_t possible = w->bytes + first_possible(o, then);
  if (possible > from + gain) from = possible - gain;
  if (again && first_possible(o, again) > from) from = first_possible(o, again);
  gain = gain > w->bytes ? gain - w->bytes : 0;
  size_t full = gain < o->columns ? o->columns - gain : 0; /* from here on what is behind has all there is */
  for (size_t m = from; m < sn_min(full, end); m++)
    row[m] = lesser(row[m], w->ns + then[m + w->freed - w->bytes] + (again ? again[m] : 0));
  for (size_t m = sn_max(from, full); m < end; m++)
    row[m] = lesser(row[m], w->ns + then[o->columns - 1] + (again ? again[m] : 0));
}

/* There while stages run: gradients, and a_t where it is read. */
static uint64_t waiting(const sn_optimal *o, span p) {
  if (p.pass == FIRST) return 0;
  const sn_group *g = &o->groups[p.t];
  return g->gradient_bytes + (p.pass == THERE && g->reads_output ? g->output_bytes : 0);
}

/* Stage s by itself, kept in one way. */
static way keep(const sn_optimal *o, span p, int keeping) {
  const sn_group *g = &o->groups[p.s];
  const sn_keeping *k = &g->keeping[keeping];
  uint64_t forward = keeping == SN_KEEPS_INPUT ? g->drop_load : g->keep_load;
  bool frees = p.s > 0 && keeping == SN_KEEPS_ALL && !g->reads_input && !o->groups[p.s - 1].reads_output;
  return (way){.next = p.s + 1,
               .bytes = units(o, k->bytes),
               .freed = frees ? (uint32_t)(o->groups[p.s - 1].output_bytes / o->unit) : 0,
               .least = units(o, sn_max(forward + waiting(o, p), k->backward_load)),
               .ns = g->forward_ns + k->remake_ns + g->backward_ns,
               .keeping = keeping};
}

/* From what was dropped up to stage k - 2 (or nothing: k - 1 is s) to what is dropped up to k - 1. */
static void drop_one(const sn_optimal *o, span p, way *w, uint64_t *load) {
  uint32_t dropped = w->next;
  const sn_group *g = &o->groups[dropped];
  *load = sn_max(*load, (dropped > p.s ? g->pass_load : g->drop_load) + waiting(o, p));
  w->next = dropped + 1;
  w->bytes = units(o, g->output_bytes);
  w->least = units(o, *load);
  w->ns += g->forward_ns;
}

static way drop_none(span p) {
  return (way){.next = p.s, .keeping = SN_KEEPINGS};
}

static bool is_kept(const sn_group *g, int keeping) {
  return keeping != SN_KEEPS_INPUT && (uint32_t)keeping < g->n_keepings;
}

/* The last stage, which nothing is kept behind: its forward, but where its output is there, what is made again, and
 * back. */
static way end(const sn_optimal *o, span p, int keeping) {
  way w = keep(o, p, keeping);
  const sn_group *g = &o->groups[p.s];
  if (p.pass != THERE) return w;
  w.ns -= g->forward_ns;
  w.least = units(o, g->keeping[keeping].backward_load);
  return w;
}

/* Whether the last stage may keep so. */
static bool may_end(const sn_group *g, pass during, int keeping) {
  return during == THERE ? keeping == SN_KEEPS_INPUT : (uint32_t)keeping < g->n_keepings;
}

/* The last stage goes back before those ahead of it run again, as it needs nothing of them. */
static bool comes_back_first(const sn_optimal *o, span p) {
  return p.pass == THERE && p.s < p.t && !o->groups[p.t].needs_input;
}

static way back_first(const sn_optimal *o, span p) {
  const sn_group *g = &o->groups[p.t];
  const sn_keeping *k = &g->keeping[SN_KEEPS_INPUT];
  return (way){
      .next = p.t, .least = units(o, k->backward_load), .ns = k->remake_ns + g->backward_ns, .keeping = SN_KEEPS_INPUT};
}

/* Everything runs up to the output of the last stage, and then as where that is there. */
static bool may_run_through(span p) {
  return p.pass == GONE;
}

/* row[m] = min(row[m], ns + then[m]) from `least` on. */
static void improve_by(const sn_optimal *o, int64_t *row, const way *w, const int64_t *then) {
  for (uint32_t m = w->least; m < o->columns; m++) row[m] = lesser(row[m], w->ns + then[m]);
}

static void fill_row(sn_optimal *o, span p) {
  const sn_group *g = &o->groups[p.s];
  int64_t *row = row_of(o, p);
  for (uint32_t m = 0; m < o->columns; m++) row[m] = NEVER;
  for (int k = 0; k < SN_KEEPINGS; k++) {
    if (p.s == p.t && may_end(g, p.pass, k)) {
      way w = end(o, p, k);
      for (uint32_t m = w.least; m < o->columns; m++) row[m] = lesser(row[m], w.ns);
    }
    if (p.s == p.t || !is_kept(g, k)) continue;
    way w = keep(o, p, k);
    improve(o, row, &w, behind(o, p, &w), NULL);
  }
  way w = drop_none(p);
  uint64_t load = 0;
  while (w.next < p.t) {
    drop_one(o, p, &w, &load);
    improve(o, row, &w, behind(o, p, &w), best_row(o, p.s, w.next - 1));
  }
  if (may_run_through(p)) {
    drop_one(o, p, &w, &load);
    improve_by(o, row, &w, row_of(o, (span){p.s, p.t, THERE}));
  }
  if (!comes_back_first(o, p)) return;
  w = back_first(o, p);
  improve_by(o, row, &w, row_of(o, without(o, p.s, p.t - 1)));
}

static void fill(sn_optimal *o) {
  for (uint32_t t = 0; t + 1 < o->count; t++)
    for (uint32_t s = t + 1; s-- > 0;) {
      fill_row(o, (span){s, t, THERE});
      if (!o->groups[t].reads_output) continue;
      fill_row(o, (span){s, t, GONE});
      const int64_t *there = row_of(o, (span){s, t, THERE}), *gone = row_of(o, (span){s, t, GONE});
      int64_t *best = best_row(o, s, t);
      for (uint32_t m = 0; m < o->columns; m++) best[m] = lesser(there[m], gone[m]);
    }
  for (uint32_t s = o->count; s-- > 0;) fill_row(o, (span){s, o->count - 1, FIRST});
}

/* ---- the way back ---- */

static void run(sn_run_list *list, const sn_group *g, sn_run how) {
  for (uint32_t i = g->first; i < g->end; i++) sn_run_list_add(list, i, how);
}

/* Backward of stages run as one, the last first. All but the last run again where only the input was kept. */
static void run_back(sn_run_list *list, const sn_group *g, int keeping) {
  static const sn_run runs[SN_KEEPINGS] = {SN_RUN_BACKWARD, SN_RUN_REMAKE, SN_RUN_CHEAP};
  for (uint32_t i = g->first; keeping == SN_KEEPS_INPUT && i + 1 < g->end; i++) sn_run_list_add(list, i, SN_RUN_AGAIN);
  sn_run_list_add(list, g->end - 1, runs[keeping]);
  for (uint32_t i = g->end - 1; i-- > g->first;)
    sn_run_list_add(list, i, keeping == SN_KEEPS_INPUT ? SN_RUN_BACKWARD : runs[keeping]);
}

/* The way that gives row[m]. */
static way way_of(const sn_optimal *o, span p, uint32_t m) {
  int64_t ns = row_of(o, p)[m];
  for (int k = 0; k < SN_KEEPINGS; k++) {
    if (p.s == p.t && may_end(&o->groups[p.s], p.pass, k)) {
      way w = end(o, p, k);
      if (m >= w.least && w.ns == ns) return w;
    }
    if (p.s == p.t || !is_kept(&o->groups[p.s], k)) continue;
    way w = keep(o, p, k);
    if (m + w.freed >= w.bytes && m >= w.least && w.ns + behind(o, p, &w)[left(o, &w, m)] == ns) return w;
  }
  way w = drop_none(p);
  uint64_t load = 0;
  while (w.next < p.t) {
    drop_one(o, p, &w, &load);
    if (m < w.bytes || m < w.least) continue;
    if (w.ns + behind(o, p, &w)[left(o, &w, m)] + best_row(o, p.s, w.next - 1)[m] == ns) return w;
  }
  if (may_run_through(p)) {
    drop_one(o, p, &w, &load);
    if (m >= w.least && w.ns + row_of(o, (span){p.s, p.t, THERE})[m] == ns) return w;
  }
  assert(comes_back_first(o, p)); /* one of them gave the time */
  return back_first(o, p);
}

static void emit(const sn_optimal *o, sn_run_list *list, span p, uint32_t m) {
  sn_run forward = p.pass == FIRST ? SN_RUN_FORWARD : SN_RUN_AGAIN;
  way w = way_of(o, p, m);
  if (p.s < p.t && w.keeping == SN_KEEPS_INPUT) {
    run_back(list, &o->groups[p.t], w.keeping);
    emit(o, list, without(o, p.s, p.t - 1), m);
    return;
  }
  for (uint32_t i = p.s; i < w.next && !(p.s == p.t && p.pass == THERE); i++) run(list, &o->groups[i], forward);
  if (w.next <= p.t) emit(o, list, (span){w.next, p.t, p.pass}, (uint32_t)left(o, &w, m));
  if (w.keeping < SN_KEEPINGS) {
    run_back(list, &o->groups[p.s], w.keeping);
    return;
  }
  span dropped = {p.s, w.next - 1, THERE};
  if (w.next <= p.t && row_of(o, dropped)[m] > best_row(o, p.s, w.next - 1)[m]) dropped.pass = GONE;
  emit(o, list, dropped, m);
}

/* ---- the first pass, where what is kept may be sent out ---- */

/* A way on from a stage, the copies that there are then, and what is on its way meanwhile. */
typedef struct choice {
  way way;
  const int64_t *then, *again; /* rows of what is behind, and of what was dropped; NULL: none */
  uint32_t level, queue;       /* units */
  bool sends, waits;           /* what it keeps; for a copy, which is all it does */
} choice;

static int64_t *sent_row(const sn_optimal *o, uint32_t s, uint32_t level) {
  return o->sent + ((size_t)s * (SN_OPTIMAL_LEVELS + 1) + level) * o->columns;
}

/* When the copies have ended; 0: they have before the stage begins. */
static int64_t end_of_copies(const sn_optimal *o, uint32_t s, uint32_t level) {
  return level > 0 ? (o->start[s] / o->level_ns + level) * o->level_ns : 0;
}

/* That are still on their way, and there, when a stage begins. */
static uint32_t queue_of(const sn_optimal *o, uint32_t s, uint32_t level) {
  if (level == 0) return 0;
  double ns = (double)(end_of_copies(o, s, level) - o->start[s]);
  return units(o, (uint64_t)(ns * 1e-9 * o->link.bytes_per_s) + 1);
}

/* Of copies that end then, when a stage begins; more than SN_OPTIMAL_LEVELS: too many. */
static uint32_t level_at(const sn_optimal *o, uint32_t s, int64_t end) {
  int64_t level = (end + o->level_ns - 1) / o->level_ns - o->start[s] / o->level_ns;
  return level < 0 || end <= o->start[s] ? 0 : (uint32_t)sn_min((uint64_t)level, SN_OPTIMAL_LEVELS + 1);
}

static uint32_t add_choice(const sn_optimal *o, uint32_t n, choice c) {
  if (c.level > SN_OPTIMAL_LEVELS) return n;
  if (c.way.next < o->count && !c.waits) c.then = sent_row(o, c.way.next, c.level);
  o->choices[n] = c;
  return n + 1;
}

/* It keeps what it keeps, or sends that out behind what is on its way. */
static uint32_t add_both(const sn_optimal *o, uint32_t n, choice c, int64_t end, uint64_t bytes) {
  int64_t made = o->start[c.way.next];
  c.level = level_at(o, c.way.next, end);
  n = add_choice(o, n, c);
  c.way.bytes = 0;
  c.sends = true;
  c.level = level_at(o, c.way.next, (end > made ? end : made) + sn_link_ns(o->link, bytes));
  return add_choice(o, n, c);
}

/* All choices of a stage. Sent out or not, nothing is given back early: whether a_{s-1} is there is not known. */
static uint32_t find_choices(const sn_optimal *o, uint32_t s, uint32_t level) {
  const sn_group *g = &o->groups[s];
  span p = {s, o->count - 1, FIRST};
  int64_t end_ns = end_of_copies(o, s, level);
  uint32_t n = 0, queue = queue_of(o, s, level), input = s > 0 ? units(o, o->groups[s - 1].output_bytes) : 0;
  for (int k = 0; k < SN_KEEPINGS; k++) {
    way w = keep(o, p, k);
    w.freed = 0;
    if (s == p.t && may_end(g, FIRST, k)) n = add_choice(o, n, (choice){.way = end(o, p, k), .queue = queue});
    if (s < p.t && is_kept(g, k)) n = add_both(o, n, (choice){.way = w, .queue = queue}, end_ns, g->keeping[k].bytes);
  }
  way w = drop_none(p);
  uint64_t load = 0;
  while (w.next < p.t) {
    drop_one(o, p, &w, &load);
    const int64_t *again = best_row(o, s, w.next - 1);
    n = add_both(o, n, (choice){.way = w, .again = again, .queue = queue}, end_ns, o->groups[w.next - 1].output_bytes);
  }
  if (level == 0 || queue_of(o, s, level - 1) < input) return n;
  way wait = {.next = s, .ns = o->level_ns, .keeping = SN_KEEPINGS};
  return add_choice(o, n, (choice){.way = wait, .then = sent_row(o, s, level - 1), .level = level - 1, .waits = true});
}

/* The time it takes with m. */
static int64_t choice_ns(const choice *c, uint32_t m) {
  if (m < c->queue + c->way.least || m < c->way.bytes) return NEVER;
  int64_t ns = c->way.ns + (c->then ? c->then[m - c->way.bytes] : 0);
  if (c->again) ns += c->again[m - c->queue];
  return lesser(ns, NEVER);
}

/* row[m] = min(row[m], what the choice takes with m), where that may be less. */
static void improve_sent(const sn_optimal *o, int64_t *row, const choice *c) {
  uint32_t needed = c->queue + c->way.least, from = needed > c->way.bytes ? needed : c->way.bytes;
  int64_t best = c->way.ns + least_of(o, c->then) + least_of(o, c->again);
  if (from >= o->columns || row[from] <= best) return;
  uint32_t end = first_within(o, row, best);
  for (uint32_t m = from; m < end; m++) row[m] = lesser(row[m], choice_ns(c, m));
}

static void fill_sent(sn_optimal *o) {
  for (uint32_t s = 0; s < o->count; s++) o->start[s + 1] = o->start[s] + o->groups[s].forward_ns;
  for (uint32_t s = o->count; s-- > 0;)
    for (uint32_t level = 0; level <= SN_OPTIMAL_LEVELS; level++) {
      int64_t *row = sent_row(o, s, level);
      uint32_t n = find_choices(o, s, level);
      for (uint32_t m = 0; m < o->columns; m++) row[m] = NEVER;
      for (uint32_t i = 0; i < n; i++) improve_sent(o, row, &o->choices[i]);
    }
}

/* Of a group that is dropped the output alone is there to be sent. */
static void mark_sent(const sn_group *g, bool kept, bool *away) {
  for (uint32_t stage = g->first; stage < g->end; stage++) away[stage] = kept || stage + 1 == g->end;
}

static void emit_sent(const sn_optimal *o, sn_run_list *list, bool *away, uint32_t level, span p, uint32_t m) {
  int64_t ns = sent_row(o, p.s, level)[m];
  uint32_t n = find_choices(o, p.s, level), i = 0;
  while (i + 1 < n && choice_ns(&o->choices[i], m) != ns) i++;
  const choice c = o->choices[i];
  const way *w = &c.way;
  for (uint32_t s = p.s; s < w->next; s++) run(list, &o->groups[s], SN_RUN_FORWARD);
  if (c.sends) mark_sent(&o->groups[w->next - 1], w->keeping < SN_KEEPINGS, away);
  if (c.then) emit_sent(o, list, away, c.level, (span){w->next, p.t, FIRST}, m - w->bytes);
  if (c.waits) return;
  if (w->keeping < SN_KEEPINGS) {
    run_back(list, &o->groups[p.s], w->keeping);
    return;
  }
  span dropped = {p.s, w->next - 1, THERE};
  m -= c.queue;
  if (row_of(o, dropped)[m] > best_row(o, p.s, w->next - 1)[m]) dropped.pass = GONE;
  emit(o, list, dropped, m);
}

/* ---- from stages to rows ---- */

/* Short chains have time for finer units, at most as fine as the blocks that all sizes are made of. */
static void set_unit(sn_optimal *o, uint64_t bytes) {
  uint64_t n = sn_max(o->count, 1), units = sn_max(SN_OPTIMAL_WORK / (n * n * n), SN_OPTIMAL_UNITS);
  units = sn_min(units, SN_OPTIMAL_MOST_UNITS);
  if (o->sends) units = sn_max(SN_OPTIMAL_UNITS, sn_min(units / SN_OPTIMAL_LEVELS, SN_OPTIMAL_MOST_UNITS / 10));
  o->unit = sn_max(SN_POOL_BLOCK, sn_ceil_div(bytes, units));
  o->columns = (uint32_t)(bytes / o->unit) + 1;
}

/* What sending takes beside. */
static void make_room_to_send(sn_optimal *o, uint64_t bytes, sn_err *err) {
  size_t n = (size_t)o->count + 1;
  o->start = calloc(n, sizeof *o->start);
  o->sent = malloc(n * (SN_OPTIMAL_LEVELS + 1) * o->columns * sizeof *o->sent);
  o->choices = calloc(2 * n + 2 * (size_t)SN_KEEPINGS + 1, sizeof *o->choices);
  o->level_ns = sn_link_ns(o->link, bytes) / SN_OPTIMAL_LEVELS + 1;
  if (!o->start || !o->sent || !o->choices) sn_fail_memory(err);
}

static sn_optimal *make(const sn_stages *stages, uint64_t bytes, const sn_link *link, sn_err *err) {
  sn_optimal *o = calloc(1, sizeof *o);
  if (!o) {
    sn_fail_memory(err);
    return NULL;
  }
  o->stages = stages;
  o->sends = link != NULL;
  if (link) o->link = *link;
  o->groups = sn__stage_groups(stages, SN_OPTIMAL_STAGES, &o->count, err);
  if (o->groups) {
    bool reads = false;
    for (uint32_t i = 0; i < o->count; i++) reads = reads || o->groups[i].reads_output;
    set_unit(o, bytes);
    size_t n = o->count, spans = n * (n + 1) / 2 * o->columns + 1;
    o->first = malloc((n * o->columns + 1) * sizeof *o->first);
    o->there = malloc(spans * sizeof *o->there);
    o->gone = malloc((reads ? spans : 1) * sizeof *o->gone);
    o->best = malloc((reads ? spans : 1) * sizeof *o->best);
    if (!o->first || !o->there || !o->gone || !o->best) sn_fail_memory(err);
    if (link) make_room_to_send(o, bytes, err);
  }
  if (o->groups && err->code == SN_OK) {
    fill(o);
    if (link) fill_sent(o);
    return o;
  }
  sn_optimal_free(o);
  return NULL;
}

sn_optimal *sn_optimal_new(const sn_stages *stages, uint64_t bytes, sn_err *err) {
  return make(stages, bytes, NULL, err);
}

sn_optimal *sn_optimal_new_sending(const sn_stages *stages, uint64_t bytes, sn_link link, sn_err *err) {
  return make(stages, bytes, &link, err);
}

void sn_optimal_free(sn_optimal *o) {
  if (!o) return;
  free(o->groups);
  free(o->first);
  free(o->there);
  free(o->gone);
  free(o->best);
  free(o->start);
  free(o->sent);
  free(o->choices);
  free(o);
}

static uint32_t columns_within(const sn_optimal *o, uint64_t bytes) {
  return (uint32_t)sn_min(bytes / o->unit, o->columns - 1);
}

/* The first pass from the first stage on. */
static const int64_t *whole_row(const sn_optimal *o) {
  return o->sends ? o->sent : o->first;
}

int64_t sn_optimal_ns(const sn_optimal *o, uint64_t bytes) {
  int64_t ns = o->count > 0 ? whole_row(o)[columns_within(o, bytes)] : NEVER;
  return ns >= NEVER ? INT64_MAX : ns;
}

uint64_t sn_optimal_least(const sn_optimal *o) {
  for (uint32_t m = 0; m < o->columns && o->count > 0; m++)
    if (whole_row(o)[m] < NEVER) return m * o->unit;
  return UINT64_MAX;
}

sn_schedule *sn_optimal_schedule(const sn_optimal *o, uint64_t bytes, sn_err *err) {
  assert(sn_optimal_ns(o, bytes) < INT64_MAX && !o->sends);
  sn_run_list *list = sn_run_list_new(o->stages, err);
  if (!list) return NULL;
  emit(o, list, (span){0, o->count - 1, FIRST}, columns_within(o, bytes));
  return sn_run_list_end(list, err);
}

sn_schedule *sn_optimal_schedule_sending(const sn_optimal *o, uint64_t bytes, const sn_sending *how, sn_err *err) {
  assert(sn_optimal_ns(o, bytes) < INT64_MAX && o->sends);
  bool *away = calloc((size_t)o->stages->count + 1, sizeof *away);
  sn_run_list *list = away ? sn_run_list_new(o->stages, err) : NULL;
  if (!away) sn_fail_memory(err);
  if (list) emit_sent(o, list, away, 0, (span){0, o->count - 1, FIRST}, columns_within(o, bytes));
  sn_schedule *schedule = list ? sn_run_list_end(list, err) : NULL;
  sn_status status = schedule ? sn_schedule_send_stages(schedule, o->stages, away, how, err) : err->code;
  free(away);
  if (status == SN_OK) return schedule;
  sn_schedule_free(schedule);
  return NULL;
}
