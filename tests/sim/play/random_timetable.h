/* Random timetables for tests: operations start in any order that their graph allows, on idle hardware threads, up to
 * six at once, each lasting some time. Nothing is decided well; everything that may happen does. */
#ifndef SN_TESTS_RANDOM_TIMETABLE_H
#define SN_TESTS_RANDOM_TIMETABLE_H

#include "sim/schedule/timetable.h"
#include "tests/support/prng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>

typedef struct table_maker {
  uint64_t *dice;
  const sn_ops *ops;
  const sn_cores *cores;
  sn_timetable *table;
  uint32_t *waits_for; /* per operation */
  uint32_t running[SN_COMPUTE_LANES];
  bool taken[2 * SN_MAX_CORES];
  uint32_t events, left;
  int64_t now;
} table_maker;

static inline void table_hold(table_maker *m, const sn_team *team, bool taken) {
  for (uint32_t i = 0; i < team->count; i++) m->taken[team->slot * m->cores->count + team->first + i] = taken;
}

/* A run of idle hardware threads of one slot. */
static inline bool table_find_team(table_maker *m, sn_team *team) {
  team->slot = (uint8_t)prng_below(m->dice, m->cores->slots);
  const bool *taken = &m->taken[team->slot * m->cores->count];
  uint32_t first = (uint32_t)prng_below(m->dice, m->cores->count), n = 0;
  while (first + n < m->cores->count && !taken[first + n]) n++;
  team->first = (uint16_t)first;
  team->count = (uint16_t)(n > 0 ? 1 + prng_below(m->dice, n) : 0);
  return n > 0;
}

static inline uint32_t table_ready(const table_maker *m, uint32_t from) {
  for (uint32_t i = 0; i < m->ops->n_ops; i++) {
    uint32_t op = (from + i) % m->ops->n_ops;
    if (m->waits_for[op] == 0) return op;
  }
  return SN_NONE;
}

static inline bool table_start(table_maker *m) {
  uint32_t lane = 0, op = table_ready(m, (uint32_t)prng_below(m->dice, m->ops->n_ops));
  while (lane < SN_COMPUTE_LANES && m->running[lane] != SN_NONE) lane++;
  sn_team team;
  if (lane == SN_COMPUTE_LANES || op == SN_NONE || !table_find_team(m, &team)) return false;
  table_hold(m, &team, true);
  m->running[lane] = op;
  m->waits_for[op] = UINT32_MAX;
  m->table->starts[op] = (sn_start){
      .team = team, .lane = (uint8_t)lane, .start_ns = m->now, .end_ns = m->now + 1 + (int64_t)prng_below(m->dice, 50)};
  m->table->events[m->events++] = (sn_event){op, false};
  return true;
}

static inline void table_end(table_maker *m) {
  uint32_t first = SN_NONE;
  for (uint32_t lane = 0; lane < SN_COMPUTE_LANES; lane++)
    if (m->running[lane] != SN_NONE &&
        (first == SN_NONE || m->table->starts[m->running[lane]].end_ns < m->table->starts[m->running[first]].end_ns))
      first = lane;
  uint32_t op = m->running[first];
  const sn_op_node *node = &m->ops->nodes[op];
  m->now = m->table->starts[op].end_ns;
  m->running[first] = SN_NONE;
  table_hold(m, &m->table->starts[op].team, false);
  m->table->events[m->events++] = (sn_event){op, true};
  for (uint32_t i = 0; i < node->n_successors; i++) m->waits_for[m->ops->successors[node->first_successor + i]]--;
  m->left--;
}

static inline sn_timetable *random_timetable(uint64_t *dice, const sn_ops *ops, const sn_cores *cores) {
  sn_err err = SN_ERR_INIT;
  table_maker m = {.dice = dice, .ops = ops, .cores = cores, .left = ops->n_ops};
  m.table = sn_timetable_new(ops, &err);
  m.waits_for = calloc((size_t)ops->n_ops + 1, sizeof *m.waits_for);
  assert_true(m.table && m.waits_for);
  for (uint32_t i = 0; i < ops->n_ops; i++) m.waits_for[i] = ops->nodes[i].n_predecessors;
  for (uint32_t lane = 0; lane < SN_COMPUTE_LANES; lane++) m.running[lane] = SN_NONE;
  bool idle = true;
  while (m.left > 0) {
    while ((idle || prng_chance(dice, 70)) && table_start(&m)) idle = false;
    if (idle) continue; /* another throw finds a team */
    table_end(&m);
    idle = true;
    for (uint32_t lane = 0; lane < SN_COMPUTE_LANES; lane++) idle &= m.running[lane] == SN_NONE;
  }
  m.table->end_ns = m.now;
  free(m.waits_for);
  return m.table;
}

#endif
