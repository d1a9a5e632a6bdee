/* recompute=optimal; see the header. Choices are not stored: on the way back that one is taken which gives the time.
 *
 * Rows are filled within a bound on the time that is lost beside running everything once, and those of stages that
 * cannot run within it not at all (sim/schedule/memory_rows.h). An answer that is found is the answer; where none is, and there
 * is one, the bound is doubled. */
#include "sim/schedule/schedule_optimal.h"

#include "base/checked.h"
#include "sim/memory/pool.h"
#include "sim/schedule/memory_rows.h"
#include "sim/schedule/stage_groups.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Of forward's time the part that may be lost at first, and that after which it is asked if there is an answer at all.
 */
enum { FIRST_BOUND = 32, SURE_BOUND = 4 };

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
  uint64_t unit; /* bytes */
  sn_rows rows;
  int64_t *cells;              /* of all rows */
  sn_row *first;               /* T(s, .) */
  sn_row *there, *gone, *best; /* R(s, t, .), Q(s, t, .) and the lesser of both at [index of s, t]; the last two of
                                  stages that do not read their outputs are unused */
  int64_t *floor_there, *floor_gone; /* what they take at least, whatever the memory */
  int64_t *all_ns, *backward_ns;     /* of the stages from s on, forward and back; of backward before s */
  int64_t extra_ns;                  /* the bound: so much more than to run everything once; 0: nothing is filled in */
  uint32_t least;                    /* memory with which there is an answer; SN_NONE: not known yet */
  uint32_t *output_units;            /* a_s */
  sn_row_choice *ways;               /* of one row */
  sn_link link;
  bool sends;       /* what is kept may be sent out */
  int64_t *start;   /* of each stage in forward, where nothing waits */
  int64_t level_ns; /* of the copies that are still to be done */
  sn_row *sent;     /* S(s, l, .) at [s][l] */
};

static int64_t lesser(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static uint32_t units(const sn_optimal *o, uint64_t bytes) {
  return (uint32_t)sn_min(sn_ceil_div(bytes, o->unit), o->rows.columns);
}

static size_t index_of(uint32_t s, uint32_t t) {
  return (size_t)t * (t + 1) / 2 + s;
}

static sn_row *row_of(const sn_optimal *o, span p) {
  if (p.pass == FIRST) return &o->first[p.s];
  return &(p.pass == THERE ? o->there : o->gone)[index_of(p.s, p.t)];
}

/* Of stages that are to run again and whose last output nobody holds. */
static span without(const sn_optimal *o, uint32_t s, uint32_t t) {
  return (span){s, t, o->groups[t].reads_output ? GONE : THERE};
}

/* The same where it is there, and is dropped where that is better. */
static sn_row *best_row(const sn_optimal *o, uint32_t s, uint32_t t) {
  return &(o->groups[t].reads_output ? o->best : o->there)[index_of(s, t)];
}

/* ---- ways on from a stage ---- */

/* There while stages run: gradients, and a_t where it is read. */
static uint64_t waiting(const sn_optimal *o, span p) {
  if (p.pass == FIRST) return 0;
  const sn_group *g = &o->groups[p.t];
  return g->gradient_bytes + (p.pass == THERE && g->reads_output ? g->output_bytes : 0);
}

/* Stage s by itself, kept in one way. */
static sn_row_choice keep(const sn_optimal *o, span p, int keeping) {
  const sn_group *g = &o->groups[p.s];
  const sn_keeping *k = &g->keeping[keeping];
  uint64_t forward = keeping == SN_KEEPS_INPUT ? g->drop_load : g->keep_load;
  bool frees = p.s > 0 && keeping == SN_KEEPS_ALL && !g->reads_input && !o->groups[p.s - 1].reads_output;
  return (sn_row_choice){.next = p.s + 1,
                         .bytes = units(o, k->bytes),
                         .freed = frees ? (uint32_t)(o->groups[p.s - 1].output_bytes / o->unit) : 0,
                         .least = units(o, sn_max(forward + waiting(o, p), k->backward_load)),
                         .ns = g->forward_ns + k->remake_ns + g->backward_ns,
                         .keeping = keeping,
                         .then = &o->rows.nothing,
                         .again = &o->rows.nothing};
}

/* From what was dropped up to stage k - 2 (or nothing: k - 1 is s) to what is dropped up to k - 1. */
static void drop_one(const sn_optimal *o, span p, sn_row_choice *w, uint64_t *load) {
  uint32_t dropped = w->next;
  const sn_group *g = &o->groups[dropped];
  *load = sn_max(*load, (dropped > p.s ? g->pass_load : g->drop_load) + waiting(o, p));
  w->next = dropped + 1;
  w->bytes = o->output_units[dropped];
  w->ns += g->forward_ns;
}

static sn_row_choice drop_none(const sn_optimal *o, span p) {
  return (sn_row_choice){.next = p.s, .keeping = SN_KEEPINGS, .then = &o->rows.nothing, .again = &o->rows.nothing};
}

static bool is_kept(const sn_group *g, int keeping) {
  return keeping != SN_KEEPS_INPUT && (uint32_t)keeping < g->n_keepings;
}

/* The last stage, which nothing is kept behind: its forward, but where its output is there, what is made again, and
 * back. */
static sn_row_choice end(const sn_optimal *o, span p, int keeping) {
  sn_row_choice w = keep(o, p, keeping);
  const sn_group *g = &o->groups[p.s];
  w.freed = 0;
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

static sn_row_choice back_first(const sn_optimal *o, span p) {
  const sn_group *g = &o->groups[p.t];
  const sn_keeping *k = &g->keeping[SN_KEEPS_INPUT];
  return (sn_row_choice){.next = p.t,
                         .least = units(o, k->backward_load),
                         .ns = k->remake_ns + g->backward_ns,
                         .keeping = SN_KEEPS_INPUT,
                         .then = row_of(o, without(o, p.s, p.t - 1)),
                         .again = &o->rows.nothing};
}

/* Everything runs up to the output of the last stage, and then as where that is there. */
static bool may_run_through(span p) {
  return p.pass == GONE;
}

/* All ways of a row but those that need another that is empty; how many. */
static uint32_t find_ways(const sn_optimal *o, span p) {
  const sn_group *g = &o->groups[p.s];
  uint32_t n = 0;
  for (int k = 0; k < SN_KEEPINGS; k++) {
    if (p.s == p.t ? !may_end(g, p.pass, k) : !is_kept(g, k)) continue;
    sn_row_choice w = p.s == p.t ? end(o, p, k) : keep(o, p, k);
    if (p.s == p.t) {
      w.bytes = 0;
      o->ways[n++] = w;
      continue;
    }
    w.then = row_of(o, (span){w.next, p.t, p.pass});
    if (!sn__row_is_empty(&o->rows, w.then)) o->ways[n++] = w;
  }
  sn_row_choice w = drop_none(o, p);
  uint64_t load = 0;
  while (w.next < p.t) {
    drop_one(o, p, &w, &load);
    w.then = row_of(o, (span){w.next, p.t, p.pass});
    w.again = best_row(o, p.s, w.next - 1);
    if (sn__row_is_empty(&o->rows, w.then) || sn__row_is_empty(&o->rows, w.again)) continue;
    w.least = units(o, load);
    o->ways[n++] = w;
  }
  if (may_run_through(p)) {
    drop_one(o, p, &w, &load);
    w.bytes = 0;
    w.then = &o->rows.nothing;
    w.again = row_of(o, (span){p.s, p.t, THERE});
    w.least = units(o, load);
    o->ways[n++] = w;
  }
  if (comes_back_first(o, p)) o->ways[n++] = back_first(o, p);
  return n;
}

/* Of what runs everything for the first time, and of stages that run again: what may be lost in all may be lost there.
 */
static int64_t bound_of(const sn_optimal *o, span p) {
  int64_t ns = p.pass == FIRST ? o->all_ns[p.s] : o->backward_ns[p.t + 1] - o->backward_ns[p.s];
  return lesser(ns + o->extra_ns, SN_ROW_NEVER - 1);
}

static void fill_span(const sn_optimal *o, span p, int64_t floor) {
  int64_t bound = bound_of(o, p);
  if (floor <= bound) sn__row_fill(&o->rows, row_of(o, p), o->ways, find_ways(o, p), bound);
}

static void fill(const sn_optimal *o) {
  for (uint32_t t = 0; t + 1 < o->count; t++)
    for (uint32_t s = t + 1; s-- > 0;) {
      fill_span(o, (span){s, t, THERE}, o->floor_there[index_of(s, t)]);
      if (!o->groups[t].reads_output) continue;
      fill_span(o, (span){s, t, GONE}, o->floor_gone[index_of(s, t)]);
      sn__row_fill_lesser(&o->rows, best_row(o, s, t), row_of(o, (span){s, t, THERE}), row_of(o, (span){s, t, GONE}));
    }
  for (uint32_t s = o->count; s-- > 0 && !o->sends;) fill_span(o, (span){s, o->count - 1, FIRST}, 0);
}

/* With all memory nothing is run more than once more: every stage keeps all, or comes back first. */
static void find_floors(const sn_optimal *o) {
  for (uint32_t t = 0; t + 1 < o->count; t++) {
    const sn_group *last = &o->groups[t];
    int64_t forward_ns = 0, *there = &o->floor_there[index_of(0, t)], *gone = &o->floor_gone[index_of(0, t)];
    for (uint32_t s = t + 1; s-- > 0;) {
      const sn_group *g = &o->groups[s];
      int64_t end_ns = last->keeping[SN_KEEPS_INPUT].remake_ns + last->backward_ns;
      forward_ns += g->forward_ns;
      there[s] = s < t ? there[s + 1] + g->forward_ns + g->backward_ns : end_ns;
      if (comes_back_first(o, (span){s, t, THERE}))
        there[s] = lesser(
            there[s], end_ns + (o->groups[t - 1].reads_output ? o->floor_gone : o->floor_there)[index_of(s, t - 1)]);
      gone[s] = (s < t ? gone[s + 1] : last->backward_ns) + g->forward_ns + (s < t ? g->backward_ns : 0);
      gone[s] = lesser(gone[s], forward_ns + there[s]);
    }
  }
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

static void emit(const sn_optimal *o, sn_run_list *list, span p, uint32_t m);

/* What a way has kept or dropped comes back. */
static void emit_again(const sn_optimal *o, sn_run_list *list, span p, const sn_row_choice *w, uint32_t m) {
  if (w->keeping < SN_KEEPINGS) {
    run_back(list, &o->groups[p.s], w->keeping);
    return;
  }
  span dropped = {p.s, w->next - 1, THERE};
  if (w->next <= p.t && sn__row_ns(row_of(o, dropped), m) > sn__row_ns(w->again, m)) dropped.pass = GONE;
  emit(o, list, dropped, m);
}

static void emit(const sn_optimal *o, sn_run_list *list, span p, uint32_t m) {
  sn_run forward = p.pass == FIRST ? SN_RUN_FORWARD : SN_RUN_AGAIN;
  uint32_t n = find_ways(o, p);
  const sn_row_choice w = *sn__row_way(&o->rows, row_of(o, p), o->ways, n, m);
  if (p.s < p.t && w.keeping == SN_KEEPS_INPUT) {
    run_back(list, &o->groups[p.t], w.keeping);
    emit(o, list, without(o, p.s, p.t - 1), m);
    return;
  }
  for (uint32_t i = p.s; i < w.next && !(p.s == p.t && p.pass == THERE); i++) run(list, &o->groups[i], forward);
  if (w.next <= p.t) emit(o, list, (span){w.next, p.t, p.pass}, sn__choice_left(&o->rows, &w, m));
  emit_again(o, list, p, &w, m);
}

/* ---- the first pass, where what is kept may be sent out ---- */

static sn_row *sent_row(const sn_optimal *o, uint32_t s, uint32_t level) {
  return &o->sent[(size_t)s * (SN_OPTIMAL_LEVELS + 1) + level];
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

/* A way on with copies that end then. */
static uint32_t add_sent(const sn_optimal *o, uint32_t n, sn_row_choice w, int64_t end_ns) {
  w.level = level_at(o, w.next, end_ns);
  if (w.level > SN_OPTIMAL_LEVELS) return n;
  w.then = sent_row(o, w.next, w.level);
  o->ways[n] = w;
  return n + !sn__row_is_empty(&o->rows, w.then);
}

/* It keeps what it keeps, or sends that out behind what is on its way. */
static uint32_t add_both(const sn_optimal *o, uint32_t n, sn_row_choice w, int64_t end_ns, uint64_t bytes) {
  int64_t made = o->start[w.next];
  n = add_sent(o, n, w, end_ns);
  w.bytes = 0;
  w.sends = true;
  return add_sent(o, n, w, (end_ns > made ? end_ns : made) + sn_link_ns(o->link, bytes));
}

/* All ways of a stage but those that need a row that is empty. Sent out or not, nothing is given back early: whether
 * a_{s-1} is there is not known. */
static uint32_t find_sent_ways(const sn_optimal *o, uint32_t s, uint32_t level) {
  const sn_group *g = &o->groups[s];
  span p = {s, o->count - 1, FIRST};
  int64_t end_ns = end_of_copies(o, s, level);
  uint32_t n = 0, queue = queue_of(o, s, level);
  for (int k = 0; k < SN_KEEPINGS; k++) {
    if (s == p.t ? !may_end(g, FIRST, k) : !is_kept(g, k)) continue;
    sn_row_choice w = s == p.t ? end(o, p, k) : keep(o, p, k);
    w.freed = 0;
    w.queue = queue;
    if (s == p.t)
      o->ways[n++] = w;
    else
      n = add_both(o, n, w, end_ns, g->keeping[k].bytes);
  }
  sn_row_choice w = drop_none(o, p);
  uint64_t load = 0;
  w.queue = queue;
  while (w.next < p.t) {
    drop_one(o, p, &w, &load);
    w.again = best_row(o, s, w.next - 1);
    if (sn__row_is_empty(&o->rows, w.again)) continue;
    w.least = units(o, load);
    n = add_both(o, n, w, end_ns, o->groups[w.next - 1].output_bytes);
  }
  if (level == 0 || queue_of(o, s, level - 1) < (s > 0 ? o->output_units[s - 1] : 0)) return n;
  o->ways[n] = drop_none(o, p);
  o->ways[n].ns = o->level_ns;
  o->ways[n].then = sent_row(o, s, level - 1);
  o->ways[n].level = level - 1;
  o->ways[n].waits = true;
  return n + 1;
}

static void fill_sent(const sn_optimal *o) {
  for (uint32_t s = o->count; s-- > 0;)
    for (uint32_t level = 0; level <= SN_OPTIMAL_LEVELS; level++)
      sn__row_fill(&o->rows, sent_row(o, s, level), o->ways, find_sent_ways(o, s, level),
                   bound_of(o, (span){s, o->count - 1, FIRST}));
}

/* Of a group that is dropped the output alone is there to be sent. */
static void mark_sent(const sn_group *g, bool kept, bool *away) {
  for (uint32_t stage = g->first; stage < g->end; stage++) away[stage] = kept || stage + 1 == g->end;
}

static void emit_sent(const sn_optimal *o, sn_run_list *list, bool *away, uint32_t level, span p, uint32_t m) {
  uint32_t n = find_sent_ways(o, p.s, level);
  const sn_row_choice w = *sn__row_way(&o->rows, sent_row(o, p.s, level), o->ways, n, m);
  for (uint32_t s = p.s; s < w.next; s++) run(list, &o->groups[s], SN_RUN_FORWARD);
  if (w.sends) mark_sent(&o->groups[w.next - 1], w.keeping < SN_KEEPINGS, away);
  if (w.next <= p.t) emit_sent(o, list, away, w.level, (span){w.next, p.t, FIRST}, m - w.bytes);
  if (!w.waits) emit_again(o, list, p, &w, m - w.queue);
}

/* ---- from stages to rows ---- */

/* Short chains have time for finer units, at most as fine as the blocks that all sizes are made of. */
static void set_unit(sn_optimal *o, uint64_t bytes) {
  uint64_t n = sn_max(o->count, 1), units = sn_max(SN_OPTIMAL_WORK / (n * n * n), SN_OPTIMAL_UNITS);
  units = sn_min(units, SN_OPTIMAL_MOST_UNITS);
  if (o->sends) units = sn_max(SN_OPTIMAL_UNITS, sn_min(units / SN_OPTIMAL_LEVELS, SN_OPTIMAL_MOST_UNITS / 10));
  o->unit = sn_max(SN_POOL_BLOCK, sn_ceil_div(bytes, units));
  o->rows.columns = (uint32_t)(bytes / o->unit) + 1;
}

/* Takes so many rows from the cells. */
static sn_row *take_rows(const sn_optimal *o, size_t count, int64_t **cells) {
  sn_row *rows = calloc(count + 1, sizeof *rows);
  for (size_t i = 0; rows && i < count; i++, *cells += o->rows.columns)
    rows[i] = (sn_row){.ns = *cells, .from = o->rows.columns, .least = o->rows.columns};
  return rows;
}

static bool make_rows(sn_optimal *o) {
  size_t n = o->count, spans = n * (n + 1) / 2, sent = o->sends ? n * (SN_OPTIMAL_LEVELS + 1) : 0;
  bool reads = false;
  for (uint32_t i = 0; i < o->count; i++) reads = reads || o->groups[i].reads_output;
  size_t others = reads ? spans : 0, all = 1 + n + spans + 2 * others + sent;
  int64_t *cells = o->cells = malloc(all * o->rows.columns * sizeof *cells);
  if (!cells) return false;
  o->rows.nothing.ns = cells;
  memset(cells, 0, o->rows.columns * sizeof *cells);
  cells += o->rows.columns;
  o->first = take_rows(o, n, &cells);
  o->there = take_rows(o, spans, &cells);
  o->gone = take_rows(o, others, &cells);
  o->best = take_rows(o, others, &cells);
  o->sent = take_rows(o, sent, &cells);
  o->floor_there = calloc(spans + 1, sizeof *o->floor_there);
  o->floor_gone = calloc(spans + 1, sizeof *o->floor_gone);
  return o->first && o->there && o->gone && o->best && o->sent && o->floor_there && o->floor_gone;
}

static bool make_sums(sn_optimal *o) {
  size_t n = (size_t)o->count + 1;
  o->start = calloc(n, sizeof *o->start);
  o->all_ns = calloc(n, sizeof *o->all_ns);
  o->backward_ns = calloc(n, sizeof *o->backward_ns);
  o->output_units = calloc(n, sizeof *o->output_units);
  o->ways = calloc(2 * n + 2 * (size_t)SN_KEEPINGS + 1, sizeof *o->ways);
  if (!o->start || !o->all_ns || !o->backward_ns || !o->output_units || !o->ways) return false;
  for (uint32_t s = 0; s < o->count; s++) {
    o->start[s + 1] = o->start[s] + o->groups[s].forward_ns;
    o->backward_ns[s + 1] = o->backward_ns[s] + o->groups[s].backward_ns;
    o->output_units[s] = units(o, o->groups[s].output_bytes);
  }
  for (uint32_t s = o->count; s-- > 0;)
    o->all_ns[s] = o->all_ns[s + 1] + o->groups[s].forward_ns + o->groups[s].backward_ns;
  return true;
}

static sn_optimal *make(const sn_stages *stages, uint64_t bytes, const sn_link *link, sn_err *err) {
  sn_optimal *o = calloc(1, sizeof *o);
  if (!o) return sn_fail_memory(err), NULL;
  *o = (sn_optimal){.stages = stages, .sends = link != NULL, .least = SN_NONE};
  if (link) o->link = *link;
  o->groups = sn__stage_groups(stages, SN_OPTIMAL_STAGES, &o->count, err);
  if (o->groups) set_unit(o, bytes);
  if (o->groups && make_rows(o) && make_sums(o)) {
    if (link) o->level_ns = sn_link_ns(o->link, bytes) / SN_OPTIMAL_LEVELS + 1;
    find_floors(o);
    return o;
  }
  if (o->groups) sn_fail_memory(err);
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
  void *const parts[] = {o->groups,      o->first,      o->there, o->gone,   o->best,        o->sent,         o->cells,
                         o->floor_there, o->floor_gone, o->start, o->all_ns, o->backward_ns, o->output_units, o->ways};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) free(parts[i]);
  free(o);
}

/* ---- answers ---- */

static uint32_t columns_within(const sn_optimal *o, uint64_t bytes) {
  return (uint32_t)sn_min(bytes / o->unit, o->rows.columns - 1);
}

/* The first pass from the first stage on. */
static const sn_row *whole_row(const sn_optimal *o) {
  return o->sends ? o->sent : o->first;
}

static void fill_all(sn_optimal *o) {
  fill(o);
  if (o->sends) fill_sent(o);
}

/* The least memory for which there is an answer; the columns: none. */
static uint32_t find_least(sn_optimal *o) {
  if (o->least != SN_NONE) return o->least;
  int64_t extra_ns = o->extra_ns;
  o->extra_ns = SN_ROW_NEVER;
  o->rows.only_least = true;
  fill_all(o);
  o->rows.only_least = false;
  o->extra_ns = extra_ns;
  return o->least = whole_row(o)->least;
}

/* Fills rows until there is an answer for m; false: there is none. */
static bool fill_to(sn_optimal *o, uint32_t m) {
  int64_t forward_ns = o->start[o->count], first_ns = 1 + o->level_ns + forward_ns / FIRST_BOUND;
  while (o->count > 0 && m < whole_row(o)->from) {
    bool sure = o->least != SN_NONE || o->extra_ns > forward_ns / SURE_BOUND;
    if (sure && m < find_least(o)) return false;
    o->extra_ns = o->extra_ns > 0 ? lesser(2 * o->extra_ns, SN_ROW_NEVER) : first_ns;
    fill_all(o);
  }
  return o->count > 0;
}

int64_t sn_optimal_ns(sn_optimal *o, uint64_t bytes) {
  uint32_t m = columns_within(o, bytes);
  return fill_to(o, m) ? whole_row(o)->ns[m] : INT64_MAX;
}

uint64_t sn_optimal_least(sn_optimal *o) {
  uint32_t least = o->count > 0 ? find_least(o) : o->rows.columns;
  return least < o->rows.columns ? least * o->unit : UINT64_MAX;
}

sn_schedule *sn_optimal_schedule(sn_optimal *o, uint64_t bytes, sn_err *err) {
  uint32_t m = columns_within(o, bytes);
  bool possible = !o->sends && fill_to(o, m);
  assert(possible);
  sn_run_list *list = possible ? sn_run_list_new(o->stages, err) : NULL;
  if (!list) return NULL;
  emit(o, list, (span){0, o->count - 1, FIRST}, m);
  return sn_run_list_end(list, err);
}

sn_schedule *sn_optimal_schedule_sending(sn_optimal *o, uint64_t bytes, const sn_sending *how, sn_err *err) {
  uint32_t m = columns_within(o, bytes);
  bool possible = o->sends && fill_to(o, m);
  assert(possible);
  bool *away = calloc((size_t)o->stages->count + 1, sizeof *away);
  sn_run_list *list = away && possible ? sn_run_list_new(o->stages, err) : NULL;
  if (!away) sn_fail_memory(err);
  if (list) emit_sent(o, list, away, 0, (span){0, o->count - 1, FIRST}, m);
  sn_schedule *schedule = list ? sn_run_list_end(list, err) : NULL;
  sn_status status = schedule ? sn_schedule_send_stages(schedule, o->stages, away, how, err) : err->code;
  free(away);
  if (status == SN_OK) return schedule;
  sn_schedule_free(schedule);
  return NULL;
}
