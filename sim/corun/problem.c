/* What all co-run schedules of one question share; see the header. */
#include "sim/corun/problem.h"

#include "base/arena.h"

#include <stdbool.h>
#include <stdlib.h>

typedef struct keyed {
  int64_t key;
  uint32_t op;
} keyed;

/* Largest keys first, then serial order. */
static int compare(const void *a, const void *b) {
  const keyed *x = a, *y = b;
  if (x->key != y->key) return x->key > y->key ? -1 : 1;
  return (x->op > y->op) - (x->op < y->op);
}

static bool sort(sn__problem *p, sn__order order, keyed *keys) {
  uint32_t n = p->ops->n_ops;
  uint32_t *op_at = sn_arena_alloc(p->arena, n, sizeof *op_at);
  uint32_t *rank_of = sn_arena_alloc(p->arena, n, sizeof *rank_of);
  if (!op_at || !rank_of) return false;
  qsort(keys, n, sizeof *keys, compare);
  for (uint32_t i = 0; i < n; i++) {
    op_at[i] = keys[i].op;
    rank_of[keys[i].op] = i;
  }
  p->op_at[order] = op_at;
  p->rank[order] = rank_of;
  return true;
}

/* The predicted times from an operation's start to the end of the longest path from there, into `keys`. */
static void measure_paths(const sn__problem *p, keyed *keys) {
  const sn_ops *ops = p->ops;
  for (uint32_t op = ops->n_ops; op-- > 0;) {
    const sn_op_node *node = &ops->nodes[op];
    const sn_time_class *c = sn__class(p, op);
    int64_t behind = 0;
    for (uint32_t i = 0; i < node->n_successors; i++) {
      int64_t path = keys[ops->successors[node->first_successor + i]].key;
      if (path > behind) behind = path;
    }
    keys[op] = (keyed){behind + c->predicted[c->best], op};
  }
}

bool sn__problem_rank(sn__problem *p, sn__order order) {
  uint32_t n = p->ops->n_ops;
  if (order == SN__OLDEST || p->rank[order]) return true;
  keyed *keys = calloc((size_t)n + 1, sizeof *keys);
  if (!keys) return false;
  if (order == SN__FARTHEST)
    measure_paths(p, keys);
  else if (order == SN__LARGEST)
    for (uint32_t op = 0; op < n; op++) keys[op] = (keyed){sn__class(p, op)->predicted[sn__kind_threads(p, op)], op};
  else
    for (uint32_t op = 0; op < n; op++) keys[op] = (keyed){-sn__class(p, op)->predicted[1], op};
  bool good = sort(p, order, keys);
  free(keys);
  return good;
}

/* Puts a number into the ascending list, once. */
static void add_choice(sn__choice *c, uint32_t threads) {
  uint32_t at = c->n;
  while (at > 0 && c->threads[at - 1] > threads) at--;
  if (at > 0 && c->threads[at - 1] == threads) return;
  for (uint32_t i = c->n++; i > at; i--) c->threads[i] = c->threads[i - 1];
  c->threads[at] = threads;
}

static sn__choice choose(const sn_time_class *c, uint32_t cores, uint32_t kind_threads) {
  uint32_t fastest[SN__CHOICES] = {0}, n = 0;
  for (uint32_t t = 1; t <= cores; t++) {
    uint32_t at = n;
    while (at > 0 && c->predicted[fastest[at - 1]] > c->predicted[t]) at--;
    if (at == SN__CHOICES) continue;
    if (n < SN__CHOICES) n++;
    for (uint32_t i = n - 1; i > at; i--) fastest[i] = fastest[i - 1];
    fastest[at] = t;
  }
  sn__choice choice = {0};
  for (uint32_t i = 0; i < n; i++) {
    bool near = fastest[i] <= kind_threads + 2 && kind_threads <= fastest[i] + 2;
    add_choice(&choice, near ? fastest[i] : kind_threads);
  }
  choice.least_ns = c->predicted[choice.threads[0]];
  for (uint32_t i = 1; i < choice.n; i++)
    if (c->predicted[choice.threads[i]] < choice.least_ns) choice.least_ns = c->predicted[choice.threads[i]];
  return choice;
}

static void choose_all(const sn__problem *p, sn__choice *choices) {
  for (uint32_t i = 0; i < p->times->n_classes; i++) {
    const sn_time_class *c = &p->times->classes[i];
    choices[i] = choose(c, p->cores->count, p->times->kinds[c->kind].threads);
  }
}

/* The longest path when an operation of a class takes ns[class]; -1: out of memory. */
static int64_t find_chain(const sn__problem *p, const int64_t *ns) {
  int64_t *end = calloc((size_t)p->ops->n_ops + 1, sizeof *end), longest = 0;
  if (!end) return -1;
  for (uint32_t op = 0; op < p->ops->n_ops; op++) {
    const sn_op_node *node = &p->ops->nodes[op];
    for (uint32_t i = 0; i < node->n_predecessors; i++) {
      int64_t before = end[p->ops->predecessors[node->first_predecessor + i]];
      if (before > end[op]) end[op] = before;
    }
    end[op] += ns[p->class_of[op]];
    if (end[op] > longest) longest = end[op];
  }
  free(end);
  return longest;
}

/* Of a class: its time where it is fastest and slowest, and its least threads x time. */
typedef struct extremes {
  int64_t fastest, slowest, area;
} extremes;

static extremes find_extremes(const sn_time_class *c, uint32_t max_threads) {
  extremes e = {c->ns[1], c->ns[1], c->ns[1]};
  for (uint32_t t = 1; t <= max_threads; t++) {
    if (c->ns[t] < e.fastest) e.fastest = c->ns[t];
    if (c->ns[t] > e.slowest) e.slowest = c->ns[t];
    if (c->predicted[t] > e.slowest) e.slowest = c->predicted[t];
    if (c->ns[t] < e.area / t) e.area = c->ns[t] * t;
  }
  return e;
}

/* Times are at least 0; beyond what the clock has, more does not matter. */
static void add(int64_t *sum, int64_t ns) {
  *sum = ns < INT64_MAX - *sum ? *sum + ns : INT64_MAX;
}

static bool find_bounds(sn__problem *p) {
  uint32_t n = p->times->n_classes;
  extremes *e = calloc((size_t)n + 1, sizeof *e);
  int64_t *fastest = calloc((size_t)n + 1, sizeof *fastest);
  if (e && fastest) {
    for (uint32_t i = 0; i < n; i++) {
      e[i] = find_extremes(&p->times->classes[i], p->times->max_threads);
      fastest[i] = e[i].fastest;
    }
    for (uint32_t op = 0; op < p->ops->n_ops; op++) {
      add(&p->area_ns, e[p->class_of[op]].area);
      add(&p->slowest_ns, e[p->class_of[op]].slowest);
    }
    p->chain_ns = find_chain(p, fastest);
  }
  bool good = e && fastest && p->chain_ns >= 0;
  free(e);
  free(fastest);
  return good;
}

static bool find_classes(sn__problem *p) {
  uint32_t *class_of = sn_arena_alloc(p->arena, p->ops->n_ops, sizeof *class_of);
  if (!class_of) return false;
  for (uint32_t op = 0; op < p->ops->n_ops; op++) {
    const sn_op_node *node = &p->ops->nodes[op];
    class_of[op] = p->times->class_of[node->step * SN_STEP_PARTS + node->part];
  }
  p->class_of = class_of;
  return true;
}

sn__problem *sn__problem_new(const sn_ops *ops, const sn_times *times, const sn_cores *cores, sn_err *err) {
  sn_arena *arena = sn_arena_new();
  sn__problem *p = arena ? sn_arena_alloc(arena, 1, sizeof *p) : NULL;
  if (p) {
    *p = (sn__problem){.ops = ops, .times = times, .cores = cores, .arena = arena};
    sn__choice *choices = sn_arena_alloc(arena, times->n_classes, sizeof *choices);
    p->choices = choices;
    if (choices && find_classes(p) && find_bounds(p)) {
      choose_all(p, choices);
      return p;
    }
  }
  sn_arena_free(arena);
  sn_fail_memory(err);
  return NULL;
}

void sn__problem_free(sn__problem *problem) {
  if (problem) sn_arena_free(problem->arena);
}
