/* A graph of operations, their times and a device of cores, put together by hand or by dice, to be scheduled without a
 * network. Operations are nodes of steps of their own; lives have the bytes of a tensor each. */
#ifndef SN_TESTS_CORUN_CASE_H
#define SN_TESTS_CORUN_CASE_H

#include "sim/corun/schedule.h"
#include "tests/support/seed.h"

#include <stdlib.h>
#include <string.h>

enum { CASE_OPS = 64, CASE_CORES = 72, CASE_CLASSES = 12, CASE_EDGES = CASE_OPS * CASE_OPS };

typedef struct corun_case {
  sn_cores cores;
  /* graph */
  sn_route route;
  sn_schedule schedule;
  sn_ops ops;
  sn_op_node nodes[CASE_OPS];
  bool edge[CASE_OPS][CASE_OPS]; /* [from][to] */
  uint32_t predecessors[CASE_EDGES], successors[CASE_EDGES];
  sn_life lives[CASE_OPS];
  sn_tensor tensors[CASE_OPS];
  bool uses[CASE_OPS][CASE_OPS]; /* [op][life] */
  uint32_t all_uses[CASE_EDGES];
  /* times */
  sn_times times;
  sn_time_class classes[CASE_CLASSES];
  sn_time_kind kinds[CASE_CLASSES];
  int64_t ns[CASE_CLASSES][2 * CASE_CORES + 1], predicted[CASE_CLASSES][2 * CASE_CORES + 1];
  uint16_t share[CASE_CLASSES][2 * CASE_CORES + 1];
  uint32_t class_of[CASE_OPS * SN_STEP_PARTS];
} corun_case;

static inline corun_case *case_new(uint32_t cores, uint32_t slots) {
  corun_case *c = calloc(1, sizeof *c);
  assert_non_null(c);
  c->cores = (sn_cores){.count = cores, .tile = 1, .slots = slots};
  c->route.tensors = c->tensors;
  c->schedule.route = &c->route;
  c->ops = (sn_ops){.schedule = &c->schedule,
                    .nodes = c->nodes,
                    .predecessors = c->predecessors,
                    .successors = c->successors,
                    .uses = c->all_uses,
                    .lives = c->lives};
  c->times = (sn_times){
      .cores = cores, .max_threads = 2 * cores, .class_of = c->class_of, .classes = c->classes, .kinds = c->kinds};
  return c;
}

/* A class that takes `slow` ns with any number of threads but those given by class_takes(); its kind is its own. */
static inline uint32_t add_class(corun_case *c, int64_t slow, uint32_t kind_threads) {
  uint32_t k = c->times.n_classes++;
  assert_true(k < CASE_CLASSES);
  c->times.n_kinds = c->times.n_classes;
  for (uint32_t t = 1; t <= c->times.max_threads; t++) {
    c->ns[k][t] = c->predicted[k][t] = slow;
    c->share[k][t] = 1024;
  }
  c->classes[k] =
      (sn_time_class){.ns = c->ns[k], .predicted = c->predicted[k], .share = c->share[k], .best = 1, .kind = k};
  c->kinds[k] = (sn_time_kind){.threads = kind_threads};
  return k;
}

/* The fewest threads of the fastest predicted. */
static inline void find_best(corun_case *c, uint32_t k) {
  c->classes[k].best = 1;
  for (uint32_t t = 2; t <= c->cores.count; t++)
    if (c->predicted[k][t] < c->predicted[k][c->classes[k].best]) c->classes[k].best = t;
}

static inline void class_takes(corun_case *c, uint32_t k, uint32_t threads, int64_t ns) {
  c->ns[k][threads] = c->predicted[k][threads] = ns;
  find_best(c, k);
}

static inline uint32_t add_op(corun_case *c, uint32_t k) {
  uint32_t op = c->ops.n_ops++;
  assert_true(op < CASE_OPS);
  c->nodes[op].step = op;
  c->class_of[op * SN_STEP_PARTS + SN_STEP_WHOLE] = k;
  return op;
}

static inline void add_edge(corun_case *c, uint32_t from, uint32_t to) {
  assert_true(from < to);
  c->edge[from][to] = true;
}

/* What `op` makes; it is used by those behind `op` for which case_uses() is called, which depend on `op`. */
static inline uint32_t add_life(corun_case *c, uint32_t op, uint64_t bytes) {
  uint32_t life = c->ops.n_lives++;
  assert_true(life < CASE_OPS);
  c->tensors[life].bytes = bytes;
  c->lives[life] = (sn_life){.tensor = life, .made_by = op};
  c->uses[op][life] = true;
  return life;
}

static inline void op_uses(corun_case *c, uint32_t op, uint32_t life) {
  add_edge(c, c->lives[life].made_by, op);
  c->uses[op][life] = true;
}

/* Makes the lists of edges and uses; the last call before scheduling. */
static inline void case_finish(corun_case *c) {
  sn_ops *o = &c->ops;
  uint32_t predecessors = 0, successors = 0;
  for (uint32_t l = 0; l < o->n_lives; l++) c->lives[l].n_users = 0;
  o->n_uses = 0;
  for (uint32_t i = 0; i < o->n_ops; i++) {
    sn_op_node *n = &c->nodes[i];
    n->first_predecessor = predecessors;
    for (uint32_t j = 0; j < i; j++)
      if (c->edge[j][i]) c->predecessors[predecessors++] = j;
    n->n_predecessors = predecessors - n->first_predecessor;
    n->first_successor = successors;
    for (uint32_t j = i + 1; j < o->n_ops; j++)
      if (c->edge[i][j]) c->successors[successors++] = j;
    n->n_successors = successors - n->first_successor;
    n->first_use = o->n_uses;
    for (uint32_t l = 0; l < o->n_lives; l++)
      if (c->uses[i][l]) {
        c->all_uses[o->n_uses++] = l;
        c->lives[l].n_users++;
      }
    n->n_uses = o->n_uses - n->first_use;
  }
  o->n_edges = predecessors;
}

static inline sn_timetable *case_schedule(corun_case *c, const char *policy, uint64_t budget, sn_corun_facts *facts) {
  sn_err err = SN_ERR_INIT;
  sn_policy p;
  if (sn_policy_parse(policy, &p, &err) != SN_OK) fail_msg("%s", err.text);
  sn_timetable *t = sn_corun_schedule(&c->ops, &c->times, &c->cores, p, budget, facts, &err);
  if (!t) fail_msg("%s: %s", policy, err.text);
  return t;
}

/* ---- by dice ---- */

/* Times: fixed + work / min(threads, cap) + each thread; predicted ones as exact, or off by up to a tenth. */
static inline void draw_class(corun_case *c, uint64_t *seed, bool exact) {
  uint32_t k = add_class(c, 1, 1);
  int64_t fixed = prng_below(seed, 2000), work = prng_from(seed, 100, 100000), each = prng_below(seed, 100);
  uint32_t cap = prng_from(seed, 1, 2 * c->cores.count), share = prng_below(seed, 1025);
  for (uint32_t t = 1; t <= c->times.max_threads; t++) {
    uint32_t v = t < cap ? t : cap;
    c->ns[k][t] = 1 + fixed + work / v + each * t;
    c->predicted[k][t] = exact ? c->ns[k][t] : c->ns[k][t] * prng_from(seed, 90, 110) / 100;
    c->share[k][t] = (uint16_t)share;
  }
  find_best(c, k);
}

/* Kinds of one or more classes; n_k: best of the one that takes longest with one thread. */
static inline void draw_kinds(corun_case *c, uint64_t *seed) {
  c->times.n_kinds = prng_from(seed, 1, c->times.n_classes);
  for (uint32_t k = 0; k < c->times.n_kinds; k++) c->kinds[k].threads = 0;
  for (uint32_t i = 0; i < c->times.n_classes; i++) {
    uint32_t kind = i < c->times.n_kinds ? i : prng_below(seed, c->times.n_kinds);
    c->classes[i].kind = kind;
  }
  for (uint32_t k = 0; k < c->times.n_kinds; k++) {
    int64_t largest = -1;
    for (uint32_t i = 0; i < c->times.n_classes; i++)
      if (c->classes[i].kind == k && c->predicted[i][1] > largest) {
        largest = c->predicted[i][1];
        c->kinds[k].threads = c->classes[i].best;
      }
  }
}

static inline void draw_graph(corun_case *c, uint64_t *seed, uint32_t n) {
  uint32_t density = prng_from(seed, 0, 60), reach = prng_from(seed, 1, n);
  for (uint32_t i = 0; i < n; i++) add_op(c, prng_below(seed, c->times.n_classes));
  for (uint32_t to = 1; to < n; to++)
    for (uint32_t from = to > reach ? to - reach : 0; from < to; from++)
      if (prng_chance(seed, density)) add_edge(c, from, to);
  for (uint32_t op = 0; op < n; op++) {
    if (prng_chance(seed, 20)) continue;
    uint32_t life = add_life(c, op, prng_chance(seed, 10) ? 0 : prng_from(seed, 1, 1000));
    for (uint32_t user = op + 1; user < n; user++)
      if (c->edge[op][user] && prng_chance(seed, 80)) op_uses(c, user, life);
  }
  case_finish(c);
}

static inline corun_case *draw_case(uint64_t *seed, uint32_t cores, uint32_t most_ops) {
  corun_case *c = case_new(cores, prng_from(seed, 1, 2));
  c->cores.tile = prng_from(seed, 1, 2);
  c->cores.neighbour = prng_below(seed, 100) / 100.0;
  double crowd = prng_below(seed, 300) / 100.0;
  for (uint32_t i = 0; i < SN_CROWDS; i++) c->cores.crowd[i] = crowd * (1 << 2 * i);
  if (prng_chance(seed, 20)) c->cores.resize_ns = prng_below(seed, 500);
  bool exact = prng_chance(seed, 50);
  uint32_t n_classes = prng_from(seed, 1, CASE_CLASSES);
  for (uint32_t i = 0; i < n_classes; i++) draw_class(c, seed, exact);
  draw_kinds(c, seed);
  draw_graph(c, seed, prng_from(seed, 1, most_ops));
  return c;
}

#endif
