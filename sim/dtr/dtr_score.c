/* DTR's scores; see sim/dtr/dtr.h for what they are.
 *
 * Edges are not stored: from a storage down to the results of the operations that read it, up to the arguments of the
 * operations that made its tensors, both only as far as the program has come.
 *
 * What msps and dtr add to a cost is a sum over the evicted storages that can be reached upwards and downwards. It is
 * kept until one of these is made or another evicted, which a walk over the evicted ones around the change finds:
 *
 *     A --> (b) --> (c) --> D        (b), (c) evicted; where c changes, what is below A and what is above D
 *                                    has to be added up again
 *
 * Classes of eq are numbered, and their members in a ring, so that one is emptied as its members are made again; of two
 * that merge the members of the smaller are renumbered.
 *
 * A scan compares rounded scores with the least so far and divides exactly (sim/memory/quotient.h) only where the two
 * are close. */
#include "sim/dtr/dtr_internal.h"
#include "sim/memory/quotient.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

enum { TOGETHER = 64 }; /* bits of a word */

typedef enum direction { ABOVE, BELOW } direction;
typedef enum change { COSTS_MORE, MADE, EVICTED, EVICTED_EXPECTING } change;
typedef void visit(sn__dtr *d, uint32_t storage, void *place);

static bool looks(const sn__dtr *d, direction way) {
  sn_dtr_heuristic h = d->question->heuristic;
  return h == SN_DTR_FULL || (h == SN_DTR_MSPS && way == ABOVE);
}

static bool has_classes(const sn__dtr *d) {
  return d->question->heuristic == SN_DTR_EQ;
}

/* ---- neighbours, some more than once, and where a view was made the storage itself ---- */

/* The operations that made tensors of a storage and those that read one, as far as the program has come; each once. */
static inline uint32_t next_maker(const sn__dtr *d, uint32_t s, uint32_t *at, uint32_t last) {
  const sn_dtr_program *p = d->program;
  while (*at < p->first_member[s + 1]) {
    uint32_t o = p->tensors[p->members[(*at)++]].op;
    if (o != last) return o <= d->op ? o : SN__DTR_NOWHERE;
  }
  return SN__DTR_NOWHERE;
}

static inline uint32_t next_user(const sn__dtr *d, uint32_t s, uint32_t *at) {
  const sn_dtr_program *p = d->program;
  uint32_t o = *at < p->first_user[s + 1] ? p->users[(*at)++] : SN__DTR_NOWHERE;
  return o <= d->op ? o : SN__DTR_NOWHERE;
}

static inline void each_argument(sn__dtr *d, uint32_t o, visit *call, void *place) {
  const sn_dtr_program *p = d->program;
  for (uint32_t a = p->ops[o].first_arg; a < p->ops[o + 1].first_arg; a++)
    call(d, p->tensors[p->args[a]].storage, place);
}

static inline void each_result(sn__dtr *d, uint32_t o, visit *call, void *place) {
  const sn_dtr_program *p = d->program;
  for (uint32_t t = p->ops[o].first_tensor; t < p->ops[o + 1].first_tensor; t++) call(d, p->tensors[t].storage, place);
}

static inline void each_above(sn__dtr *d, uint32_t s, visit *call, void *place) {
  uint32_t at = d->program->first_member[s], o = SN__DTR_NOWHERE;
  while ((o = next_maker(d, s, &at, o)) != SN__DTR_NOWHERE) each_argument(d, o, call, place);
}

static inline void each_below(sn__dtr *d, uint32_t s, visit *call, void *place) {
  uint32_t at = d->program->first_user[s], o;
  while ((o = next_user(d, s, &at)) != SN__DTR_NOWHERE) each_result(d, o, call, place);
}

static inline void each_of(sn__dtr *d, uint32_t s, direction way, visit *call, void *place) {
  if (way == ABOVE)
    each_above(d, s, call, place);
  else
    each_below(d, s, call, place);
}

/* Whether the walk that goes on has not seen the operation. */
static inline bool is_new(sn__dtr *d, uint32_t o) {
  bool seen = d->ops_seen[o] == d->walk_number;
  d->ops_seen[o] = d->walk_number;
  return !seen;
}

/* As each_of(), but each operation once in a walk. */
static inline void each_new(sn__dtr *d, uint32_t s, direction way, visit *call, void *place) {
  uint32_t at = way == ABOVE ? d->program->first_member[s] : d->program->first_user[s], o = SN__DTR_NOWHERE;
  if (way == ABOVE) {
    while ((o = next_maker(d, s, &at, o)) != SN__DTR_NOWHERE)
      if (is_new(d, o)) each_argument(d, o, call, place);
  } else {
    while ((o = next_user(d, s, &at)) != SN__DTR_NOWHERE)
      if (is_new(d, o)) each_result(d, o, call, place);
  }
}

/* ---- what can be reached over evicted storages ---- */

typedef struct walk {
  uint32_t end; /* of d->walk */
  direction direction;
  uint64_t from; /* find_costs(): a bit for each storage that leads here */
  uint32_t at;   /* the storage whose neighbours are looked at */
  bool again;
  change change;   /* forget() */
  uint64_t number; /* items that reach results not made yet have it */
} walk;

static bool is_evicted(const sn__dtr_item *item) {
  return !item->there && item->made;
}

/* Puts an evicted storage into the walk, once. */
static void collect(sn__dtr *d, uint32_t s, void *place) {
  walk *w = place;
  sn__dtr_item *item = &d->items[s];
  if (!is_evicted(item)) return;
  if (item->seen != d->walk_number) {
    item->seen = d->walk_number;
    item->from = 0;
    d->walk[w->end++] = s;
  }
  item->from |= w->from;
}

/* Hands on from where the storage that `w` is at can be reached. */
static void hand_on(sn__dtr *d, uint32_t s, void *place) {
  walk *w = place;
  sn__dtr_item *item = &d->items[s];
  if (!is_evicted(item) || (w->from & ~item->from) == 0) return;
  item->from |= w->from;
  if ((s < w->at) == (w->direction == BELOW)) w->again = true; /* its turn has been */
}

static int rising(const void *a, const void *b) {
  const uint32_t *x = a, *y = b;
  return (*x > *y) - (*x < *y);
}

static int falling(const void *a, const void *b) {
  return rising(b, a);
}

static void add_to(int64_t *sums, uint64_t from, int64_t cost) {
  for (unsigned i = 0; from != 0; i++, from >>= 1)
    if (from & 1) sums[i] += cost;
}

/* Adds up what is in the walk for each of those from where it is reached. Neighbours are mostly reached from the same.
 */
static void add_up(const sn__dtr *d, const walk *w, int64_t *sums) {
  uint64_t from = 0;
  int64_t cost = 0;
  for (uint32_t i = 0; i < w->end; i++) {
    const sn__dtr_item *item = &d->items[d->walk[i]];
    if (item->from != from) {
      add_to(sums, from, cost);
      from = item->from;
      cost = 0;
    }
    cost += item->cost;
  }
  add_to(sums, from, cost);
}

/* The costs beyond up to 64 storages, together: a walk over all that is evicted beyond any, then in the order of the
 * program, which is that of most edges, each storage hands on which of the 64 reach it. */
static void find_costs(sn__dtr *d, const uint32_t *storages, uint32_t n, direction way) {
  int64_t sums[TOGETHER] = {0};
  walk w = {.direction = way};
  d->walk_number++;
  for (uint32_t i = 0; i < n; i++) {
    w.from = UINT64_C(1) << i;
    each_of(d, storages[i], way, collect, &w);
  }
  w.from = 0;
  for (uint32_t i = 0; i < w.end; i++) each_new(d, d->walk[i], way, collect, &w);
  qsort(d->walk, w.end, sizeof *d->walk, way == BELOW ? rising : falling);
  do {
    w.again = false;
    for (uint32_t i = 0; i < w.end; i++) {
      w.at = d->walk[i];
      w.from = d->items[w.at].from;
      each_of(d, w.at, way, hand_on, &w);
    }
  } while (w.again);
  add_up(d, &w, sums);
  for (uint32_t i = 0; i < n; i++) {
    sn__dtr_item *item = &d->items[storages[i]];
    *(way == ABOVE ? &item->above : &item->below) = sums[i];
    *(way == ABOVE ? &item->above_known : &item->below_known) = true;
  }
}

/* Finds what is not known of the pool. */
static void find_all_costs(sn__dtr *d, direction way) {
  uint32_t unknown[TOGETHER], n = 0;
  for (uint32_t i = 0; i < d->pool_end; i++) {
    uint32_t s = d->pool[i];
    if (s == SN__DTR_NOWHERE) continue;
    if (!(way == ABOVE ? d->items[s].above_known : d->items[s].below_known)) unknown[n++] = s;
    if (n < TOGETHER) continue;
    find_costs(d, unknown, n, way);
    n = 0;
  }
  if (n > 0) find_costs(d, unknown, n, way);
}

static void mark_above(sn__dtr *d, uint32_t s, void *place) {
  walk *w = place;
  sn__dtr_item *item = &d->items[s];
  if (item->there) {
    item->reaches = d->walk_number;
  } else if (item->seen != d->walk_number) {
    item->seen = d->walk_number;
    d->walk[w->end++] = s;
  }
}

/* Marks what reaches the results that are not made yet; returns the mark. All of them have the same arguments. */
static uint64_t mark_expecting(sn__dtr *d) {
  const sn_dtr_program *p = d->program;
  const sn_dtr_op *o = &p->ops[d->op];
  walk w = {.direction = ABOVE};
  d->walk_number++;
  for (uint32_t a = o->first_arg; a < o[1].first_arg; a++) mark_above(d, p->tensors[p->args[a]].storage, &w);
  for (uint32_t i = 0; i < w.end; i++) each_new(d, d->walk[i], ABOVE, mark_above, &w);
  return d->walk_number;
}

/* Whether results not made yet count from now on for what is below. */
static void expect(const sn__dtr *d, sn__dtr_item *item, const walk *w) {
  if (w->change == MADE)
    item->expects = d->expected > 0 && item->reaches == w->number ? d->op + 1 : 0;
  else if (w->change == EVICTED_EXPECTING)
    item->expects = d->op + 1;
}

static void forget_beyond(sn__dtr *d, uint32_t s, void *place) {
  walk *w = place;
  sn__dtr_item *item = &d->items[s];
  if (item->there) {
    *(w->direction == ABOVE ? &item->below_known : &item->above_known) = false;
    if (w->direction == ABOVE) expect(d, item, w);
  } else if (item->seen != d->walk_number) {
    item->seen = d->walk_number;
    d->walk[w->end++] = s;
  }
}

/* All that reach `s` in the direction opposite to the walk's have to look again. */
static void forget(sn__dtr *d, uint32_t s, direction way, change what, uint64_t number) {
  walk w = {.direction = way, .change = what, .number = number};
  d->items[s].seen = ++d->walk_number;
  each_new(d, s, way, forget_beyond, &w);
  for (uint32_t i = 0; i < w.end; i++) each_new(d, d->walk[i], way, forget_beyond, &w);
  if (what == MADE && way == ABOVE) expect(d, &d->items[s], &w);
}

static void forget_around(sn__dtr *d, uint32_t s, change what) {
  sn__dtr_item *item = &d->items[s];
  item->above_known = item->below_known = false;
  if (looks(d, ABOVE)) forget(d, s, BELOW, what, 0);
  if (!looks(d, BELOW)) return;
  uint64_t number = what == MADE && d->expected > 0 ? mark_expecting(d) : 0;
  if (what == EVICTED && item->expects == d->op + 1) what = EVICTED_EXPECTING;
  forget(d, s, ABOVE, what, number);
}

/* ---- classes ---- */

static uint32_t new_class(sn__dtr *d, uint32_t s, int64_t value) {
  uint32_t c = d->free_class;
  d->free_class = d->classes[c].first;
  d->classes[c] = (sn__dtr_class){.value = value, .first = s, .members = 1, .seen = d->classes[c].seen};
  d->items[s].class = c;
  d->items[s].next = d->items[s].previous = s;
  return c;
}

static void free_class(sn__dtr *d, uint32_t c) {
  d->classes[c].first = d->free_class;
  d->classes[c].members = 0;
  d->free_class = c;
}

/* Joins two rings: a .. behind b .. */
static void join_rings(sn__dtr *d, uint32_t a, uint32_t b) {
  uint32_t end_a = d->items[a].previous, end_b = d->items[b].previous;
  d->items[end_a].next = b;
  d->items[b].previous = end_a;
  d->items[end_b].next = a;
  d->items[a].previous = end_b;
}

static void merge(sn__dtr *d, uint32_t a, uint32_t b) {
  uint32_t large = d->classes[a].members >= d->classes[b].members ? a : b, small = large == a ? b : a;
  uint32_t s = d->classes[small].first;
  for (uint32_t i = 0; i < d->classes[small].members; i++, s = d->items[s].next) d->items[s].class = large;
  join_rings(d, d->classes[large].first, d->classes[small].first);
  d->classes[large].value += d->classes[small].value;
  d->classes[large].members += d->classes[small].members;
  free_class(d, small);
}

static void merge_with(sn__dtr *d, uint32_t neighbour, void *place) {
  const uint32_t *s = place;
  uint32_t a = d->items[*s].class, b = d->items[neighbour].class;
  if (b != SN__DTR_NOWHERE && a != b) merge(d, a, b);
}

static void leave_class(sn__dtr *d, uint32_t s) {
  sn__dtr_item *item = &d->items[s];
  sn__dtr_class *c = &d->classes[item->class];
  c->value -= item->cost;
  d->items[item->previous].next = item->next;
  d->items[item->next].previous = item->previous;
  if (c->first == s) c->first = item->next;
  if (--c->members == 0) free_class(d, item->class);
  item->class = SN__DTR_NOWHERE;
}

static void add_class(sn__dtr *d, uint32_t neighbour, void *place) {
  int64_t *sum = place;
  uint32_t c = d->items[neighbour].class;
  if (c == SN__DTR_NOWHERE || d->classes[c].seen == d->walk_number) return;
  d->classes[c].seen = d->walk_number;
  *sum += d->classes[c].value;
}

static int64_t neighbour_classes(sn__dtr *d, uint32_t s) {
  int64_t sum = 0;
  d->walk_number++;
  each_above(d, s, add_class, &sum);
  each_below(d, s, add_class, &sum);
  return sum;
}

/* ---- what changes ---- */

void sn__dtr_scored_asked(sn__dtr *d, uint32_t op) {
  const sn_dtr_program *p = d->program;
  d->expected = 0;
  d->expected_cost = 0;
  for (uint32_t t = p->ops[op].first_tensor; t < p->ops[op + 1].first_tensor; t++) {
    uint32_t s = p->tensors[t].storage;
    if (p->storages[s].root != t) {
      if (!d->items[s].there) forget_around(d, s, COSTS_MORE);
      continue;
    }
    d->expected++;
    d->expected_cost += d->items[s].cost;
    if (has_classes(d)) new_class(d, s, 0);
  }
}

void sn__dtr_scored_evicted(sn__dtr *d, uint32_t s) {
  forget_around(d, s, EVICTED);
  if (!has_classes(d)) return;
  new_class(d, s, d->items[s].cost);
  each_above(d, s, merge_with, &s);
  each_below(d, s, merge_with, &s);
}

void sn__dtr_scored_made(sn__dtr *d, uint32_t s, bool first) {
  if (first) {
    d->expected--;
    d->expected_cost -= d->items[s].cost;
  }
  forget_around(d, s, MADE);
  if (has_classes(d)) leave_class(d, s);
}

/* ---- scores ---- */

/* What stands above the line. */
static int64_t numerator(sn__dtr *d, uint32_t s) {
  const sn__dtr_item *item = &d->items[s];
  int64_t sum = item->cost;
  if (has_classes(d)) return sum + neighbour_classes(d, s);
  sum += item->above + item->below;
  return item->expects == d->op + 1 ? sum + d->expected_cost : sum;
}

/* The fraction n / (a x b) whose value is the score; a x b may be 0. */
typedef struct fraction {
  int64_t n;
  uint64_t a, b;
} fraction;

static fraction fraction_of(sn__dtr *d, uint32_t s) {
  uint64_t bytes = d->program->storages[s].bytes, stale = (uint64_t)(d->clock - d->items[s].last_access);
  switch (d->question->heuristic) {
  case SN_DTR_LRU:
    return (fraction){d->items[s].last_access, 1, 1};
  case SN_DTR_SIZE:
    return (fraction){1, bytes, 1};
  case SN_DTR_MSPS:
    return (fraction){numerator(d, s), bytes, 1};
  case SN_DTR_LOCAL:
    return (fraction){d->items[s].cost, bytes, stale};
  case SN_DTR_FULL:
  case SN_DTR_EQ:
  case SN_DTR_HEURISTICS:
    break;
  }
  return (fraction){numerator(d, s), bytes, stale};
}

static bool is_infinite(const fraction *f) {
  return f->a == 0 || f->b == 0;
}

/* Whether f's score is `best` at most, which then becomes it. */
static bool is_least(const fraction *f, double *best) {
  double score = INFINITY;
  if (!is_infinite(f)) {
    score = (double)f->n / ((double)f->a * (double)f->b);
    if (score - *best > 1e-14 * fabs(*best)) return false;
    score = sn_quotient(f->n, f->a, f->b);
  }
  if (score > *best) return false;
  *best = score;
  return true;
}

uint32_t sn__dtr_choose(sn__dtr *d) {
  uint32_t victim = SN__DTR_NOWHERE;
  double best = INFINITY;
  if (looks(d, ABOVE)) find_all_costs(d, ABOVE);
  if (looks(d, BELOW)) find_all_costs(d, BELOW);
  for (uint32_t i = 0; i < d->pool_end; i++) {
    if (d->pool[i] == SN__DTR_NOWHERE) continue;
    fraction f = fraction_of(d, d->pool[i]);
    d->answer->evaluations++;
    if (is_least(&f, &best)) victim = d->pool[i];
    if (f.n == 0 && !is_infinite(&f)) break;
  }
  assert(victim != SN__DTR_NOWHERE);
  return victim;
}
