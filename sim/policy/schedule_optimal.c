/* recompute=optimal; see the header. Choices are not stored: on the way back that one is taken which gives the time. */
#include "sim/policy/schedule_optimal.h"

#include "base/checked.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define NEVER (INT64_MAX / 4) /* sums of it stay above it */

/* Stages first .. end - 1 of all, run as one. */
typedef struct group {
  uint32_t first, end;
  int64_t forward_ns, backward_ns;
  uint64_t output_bytes, waiting; /* a_t where it is read, and gradients: there while stages before it run again */
  uint64_t drop_load, keep_load;
  sn_keeping keeping[SN_KEEPINGS];
  uint32_t n_keepings;
} group;

struct sn_optimal {
  const sn_stages *stages;
  group *groups;
  uint32_t count;
  uint64_t unit;               /* bytes */
  uint32_t columns;            /* memory is counted from 0 to columns - 1 units */
  int64_t *first_pass, *again; /* T(s, m) at [s][m]; R(s, t, m) at [index of s, t][m] */
};

static uint32_t units(const sn_optimal *o, uint64_t bytes) {
  return (uint32_t)sn_min(sn_ceil_div(bytes, o->unit), o->columns);
}

static int64_t *row_of(const sn_optimal *o, uint32_t s, uint32_t t) {
  return o->again + ((size_t)t * (t + 1) / 2 + s) * o->columns;
}

/* What is possible with m is possible with more. */
static uint32_t first_possible(const sn_optimal *o, const int64_t *row) {
  uint32_t low = 0, high = o->columns;
  while (low < high) {
    uint32_t middle = (low + high) / 2;
    if (row[middle] < NEVER)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

/* ---- the recurrences ---- */

/* One way on from stage s; t is the last stage, or count: the first pass. */
typedef struct way {
  uint32_t next;         /* s + 1, or where what is dropped ends */
  uint32_t bytes, least; /* units: kept from there on, needed at least */
  int64_t ns;            /* beside the rows */
  int keeping;           /* SN_KEEPINGS: what comes before `next` is dropped */
} way;

static int64_t *behind(const sn_optimal *o, uint32_t next, uint32_t t) {
  return t == o->count ? o->first_pass + (size_t)next * o->columns : row_of(o, next, t);
}

/* row[m] = min(row[m], what w takes with m), where it drops with `again` for what it dropped; NULL: it keeps. */
static void improve(const sn_optimal *o, int64_t *row, const way *w, const int64_t *then, const int64_t *again) {
  uint32_t from = w->bytes + first_possible(o, then);
  if (w->least > from) from = w->least;
  if (again && first_possible(o, again) > from) from = first_possible(o, again);
  for (uint32_t m = from; m < o->columns; m++) {
    int64_t sum = w->ns + then[m - w->bytes] + (again ? again[m] : 0);
    row[m] = sum < row[m] ? sum : row[m];
  }
}

static uint64_t waiting(const sn_optimal *o, uint32_t t) {
  return t == o->count ? 0 : o->groups[t].waiting;
}

static way keep(const sn_optimal *o, uint32_t s, uint32_t t, int keeping) {
  const group *g = &o->groups[s];
  const sn_keeping *k = &g->keeping[keeping];
  return (way){.next = s + 1,
               .bytes = units(o, k->bytes),
               .least = units(o, sn_max(g->keep_load + waiting(o, t), k->backward_load)),
               .ns = g->forward_ns + k->remake_ns + g->backward_ns,
               .keeping = keeping};
}

/* From what was dropped up to stage k - 2 (or nothing: k - 1 is s) to what is dropped up to k - 1. */
static void drop_one(const sn_optimal *o, uint32_t s, uint32_t t, way *w, uint64_t *load) {
  uint32_t dropped = w->next;
  const group *g = &o->groups[dropped];
  *load = sn_max(*load, (dropped > s ? o->groups[dropped - 1].output_bytes : 0) + g->drop_load + waiting(o, t));
  w->next = dropped + 1;
  w->bytes = units(o, g->output_bytes);
  w->least = units(o, *load);
  w->ns += g->forward_ns;
}

static way drop_none(uint32_t s) {
  return (way){.next = s, .keeping = SN_KEEPINGS};
}

/* Is the way open to what is behind: not over the last stage of the first pass. */
static bool goes_on(const sn_optimal *o, uint32_t next, uint32_t t) {
  return t == o->count ? next < o->count : next <= t;
}

static bool is_kept(const group *g, int keeping) {
  return keeping != SN_KEEPS_INPUT && (uint32_t)keeping < g->n_keepings;
}

static void fill_row(sn_optimal *o, uint32_t s, uint32_t t, int64_t *row) {
  const group *g = &o->groups[s];
  for (uint32_t m = 0; m < o->columns; m++) row[m] = NEVER;
  bool last = t == o->count ? s + 1 == o->count : s == t;
  if (last) {
    const sn_keeping *k = &g->keeping[t == o->count ? SN_KEEPS_ALL : SN_KEEPS_INPUT];
    uint64_t load = t == o->count ? sn_max(g->keep_load, k->backward_load) : k->backward_load;
    int64_t ns = (t == o->count ? g->forward_ns : k->remake_ns) + g->backward_ns;
    for (uint32_t m = units(o, load); m < o->columns; m++) row[m] = ns;
    return;
  }
  for (int k = 0; k < SN_KEEPINGS; k++) {
    if (!is_kept(g, k)) continue;
    way w = keep(o, s, t, k);
    improve(o, row, &w, behind(o, w.next, t), NULL);
  }
  way w = drop_none(s);
  uint64_t load = 0;
  while (goes_on(o, w.next + 1, t)) {
    drop_one(o, s, t, &w, &load);
    improve(o, row, &w, behind(o, w.next, t), row_of(o, s, w.next - 1));
  }
}

static void fill(sn_optimal *o) {
  for (uint32_t t = 0; t < o->count; t++)
    for (uint32_t s = t + 1; s-- > 0;) fill_row(o, s, t, row_of(o, s, t));
  for (uint32_t s = o->count; s-- > 0;) fill_row(o, s, o->count, o->first_pass + (size_t)s * o->columns);
}

/* ---- the way back ---- */

static void run(sn_run_list *list, const group *g, sn_run how) {
  for (uint32_t i = g->first; i < g->end; i++) sn_run_list_add(list, i, how);
}

/* Backward of stages run as one, the last first. All but the last run again where only the input was kept. */
static void run_back(sn_run_list *list, const group *g, int keeping) {
  static const sn_run runs[SN_KEEPINGS] = {SN_RUN_BACKWARD, SN_RUN_REMAKE, SN_RUN_CHEAP};
  for (uint32_t i = g->first; keeping == SN_KEEPS_INPUT && i + 1 < g->end; i++) sn_run_list_add(list, i, SN_RUN_AGAIN);
  sn_run_list_add(list, g->end - 1, runs[keeping]);
  for (uint32_t i = g->end - 1; i-- > g->first;)
    sn_run_list_add(list, i, keeping == SN_KEEPS_INPUT ? SN_RUN_BACKWARD : runs[keeping]);
}

/* The way that gives row[m] of s and t. */
static way way_of(const sn_optimal *o, uint32_t s, uint32_t t, uint32_t m) {
  int64_t ns = behind(o, s, t)[m];
  for (int k = 0; k < SN_KEEPINGS; k++) {
    if (!is_kept(&o->groups[s], k)) continue;
    way w = keep(o, s, t, k);
    if (m >= w.bytes && m >= w.least && w.ns + behind(o, w.next, t)[m - w.bytes] == ns) return w;
  }
  way w = drop_none(s);
  uint64_t load = 0;
  while (goes_on(o, w.next + 1, t)) {
    drop_one(o, s, t, &w, &load);
    if (m < w.bytes || m < w.least) continue;
    if (w.ns + behind(o, w.next, t)[m - w.bytes] + row_of(o, s, w.next - 1)[m] == ns) return w;
  }
  assert(w.next > t); /* never: one of them gave the time */
  return w;
}

static void emit(const sn_optimal *o, sn_run_list *list, uint32_t s, uint32_t t, uint32_t m) {
  bool first_pass = t == o->count;
  sn_run forward = first_pass ? SN_RUN_FORWARD : SN_RUN_AGAIN;
  if (first_pass && s + 1 == o->count) run(list, &o->groups[s], forward);
  if (first_pass ? s + 1 == o->count : s == t) {
    run_back(list, &o->groups[s], first_pass ? SN_KEEPS_ALL : SN_KEEPS_INPUT);
    return;
  }
  way w = way_of(o, s, t, m);
  for (uint32_t i = s; i < w.next; i++) run(list, &o->groups[i], forward);
  emit(o, list, w.next, t, m - w.bytes);
  if (w.keeping < SN_KEEPINGS)
    run_back(list, &o->groups[s], w.keeping);
  else
    emit(o, list, s, w.next - 1, m);
}

/* ---- groups ---- */

static group group_of(const sn_stages *all, uint32_t first, uint32_t end) {
  const sn_stage *last = &all->stages[end - 1];
  group g = {.first = first, .end = end, .output_bytes = last->output_bytes, .n_keepings = SN_KEEPINGS};
  g.waiting = last->gradient_bytes + (last->reads_output ? last->output_bytes : 0);
  uint64_t before[SN_KEEPINGS] = {0}; /* kept of the stages up to here */
  uint64_t inside = 0;                /* their outputs, while they run */
  for (uint32_t i = first; i < end; i++) {
    const sn_stage *s = &all->stages[i];
    uint64_t input = i > first ? all->stages[i - 1].output_bytes : 0;
    g.forward_ns += s->forward_ns;
    g.backward_ns += s->backward_ns;
    g.drop_load = sn_max(g.drop_load, input + s->drop_load);
    g.keep_load = sn_max(g.keep_load, inside + s->keep_load);
    for (int k = 0; k < SN_KEEPINGS; k++) {
      bool alone = end - first == 1, whole = k == SN_KEEPS_INPUT && i + 1 < end;
      int own = (uint32_t)k < s->n_keepings ? k : SN_KEEPS_ALL;
      const sn_keeping *keeping = &s->keeping[whole ? SN_KEEPS_ALL : own];
      sn_keeping *sum = &g.keeping[k];
      sum->backward_load = sn_max(sum->backward_load, before[k] + keeping->backward_load);
      sum->bytes += k == SN_KEEPS_INPUT ? 0 : keeping->bytes;
      sum->remake_ns += whole ? s->forward_ns : keeping->remake_ns;
      before[k] += s->keeping[k == SN_KEEPS_INPUT ? SN_KEEPS_ALL : own].bytes;
      if (alone && (uint32_t)k >= s->n_keepings) g.n_keepings = s->n_keepings;
      if (!alone && k == SN_KEEPS_INPUT)
        sum->backward_load = sn_max(sum->backward_load, inside + s->keep_load + g.waiting);
    }
    inside += s->keeping[SN_KEEPS_ALL].bytes;
  }
  return g;
}

/* Every stage by itself; where they are too many, neighbours together, those of least bytes first. */
static sn_status make_groups(sn_optimal *o, sn_err *err) {
  const sn_stages *all = o->stages;
  uint64_t total = 0, part = 0;
  o->groups = calloc((size_t)all->count + 1, sizeof *o->groups);
  if (!o->groups) return sn_fail_memory(err);
  for (uint32_t i = 0; i < all->count; i++) total += all->stages[i].keeping[SN_KEEPS_ALL].bytes;
  uint64_t enough = all->count > SN_OPTIMAL_STAGES ? 2 * total / SN_OPTIMAL_STAGES : 0;
  for (uint32_t i = 0, first = 0; i < all->count; i++) {
    part += all->stages[i].keeping[SN_KEEPS_ALL].bytes;
    if (part < enough && i + 1 < all->count) continue;
    o->groups[o->count++] = group_of(all, first, i + 1);
    first = i + 1;
    part = 0;
  }
  return SN_OK;
}

/* Short chains have time for finer units. */
static void set_unit(sn_optimal *o, uint64_t bytes) {
  uint64_t n = sn_max(o->count, 1), units = sn_max(SN_OPTIMAL_WORK / (n * n * n), SN_OPTIMAL_UNITS);
  units = sn_min(units, SN_OPTIMAL_MOST_UNITS);
  o->unit = sn_max(1, sn_ceil_div(bytes, units));
  o->columns = (uint32_t)units + 1;
}

sn_optimal *sn_optimal_new(const sn_stages *stages, uint64_t bytes, sn_err *err) {
  sn_optimal *o = calloc(1, sizeof *o);
  if (!o) {
    sn_fail_memory(err);
    return NULL;
  }
  *o = (sn_optimal){
      .stages = stages,
  };
  if (make_groups(o, err) == SN_OK) {
    set_unit(o, bytes);
    size_t n = o->count;
    o->first_pass = malloc((n + 1) * o->columns * sizeof *o->first_pass);
    o->again = malloc((n * (n + 1) / 2 + 1) * o->columns * sizeof *o->again);
    if (!o->first_pass || !o->again) sn_fail_memory(err);
  }
  if (err->code == SN_OK) {
    fill(o);
    return o;
  }
  sn_optimal_free(o);
  return NULL;
}

void sn_optimal_free(sn_optimal *o) {
  if (!o) return;
  free(o->groups);
  free(o->first_pass);
  free(o->again);
  free(o);
}

static uint32_t columns_within(const sn_optimal *o, uint64_t bytes) {
  return (uint32_t)sn_min(bytes / o->unit, o->columns - 1);
}

int64_t sn_optimal_ns(const sn_optimal *o, uint64_t bytes) {
  int64_t ns = o->count > 0 ? o->first_pass[columns_within(o, bytes)] : NEVER;
  return ns >= NEVER ? INT64_MAX : ns;
}

uint64_t sn_optimal_least(const sn_optimal *o) {
  for (uint32_t m = 0; m < o->columns && o->count > 0; m++)
    if (o->first_pass[m] < NEVER) return m * o->unit;
  return UINT64_MAX;
}

sn_schedule *sn_optimal_schedule(const sn_optimal *o, uint64_t bytes, sn_err *err) {
  assert(sn_optimal_ns(o, bytes) < INT64_MAX);
  sn_run_list *list = sn_run_list_new(o->stages, err);
  if (!list) return NULL;
  emit(o, list, 0, o->count, columns_within(o, bytes));
  return sn_run_list_end(list, err);
}
