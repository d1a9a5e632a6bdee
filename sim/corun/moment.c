/* One moment of a co-run schedule in the making; see the header. */
#include "sim/corun/moment.h"

#include "base/arena.h"

#include <assert.h>
#include <string.h>

#define STARTED UINT32_MAX /* in n_awaited */

sn__moment *sn__moment_new(const sn__problem *problem, sn__budget *budget, sn_err *err) {
  sn_arena *arena = sn_arena_new();
  sn__moment *f = arena ? sn_arena_alloc(arena, 1, sizeof *f) : NULL;
  if (f) {
    uint32_t n = problem->ops->n_ops;
    *f = (sn__moment){.problem = problem, .budget = budget, .arena = arena};
    f->age = sn_arena_alloc(arena, n, sizeof *f->age);
    f->op_of_age = sn_arena_alloc(arena, n, sizeof *f->op_of_age);
    f->n_awaited = sn_arena_alloc(arena, n, sizeof *f->n_awaited);
    bool good = f->age && f->op_of_age && f->n_awaited;
    for (sn__order o = 0; o < SN__ORDERS; o++) good = good && sn__ranks_new(&f->ready[o], n, arena);
    if (good) return f;
  }
  sn_arena_free(arena);
  sn_fail_memory(err);
  return NULL;
}

void sn__moment_free(sn__moment *floor) {
  if (floor) sn_arena_free(floor->arena);
}

/* ---- what is ready ---- */

static bool keeps(const sn__moment *f, sn__order order) {
  return f->orders >> order & 1;
}

static uint32_t rank_of(const sn__moment *f, sn__order order, uint32_t op) {
  return order == SN__OLDEST ? f->age[op] : f->problem->rank[order][op];
}

static uint32_t op_at(const sn__moment *f, sn__order order, uint32_t rank) {
  if (rank == SN_NONE) return SN_NONE;
  return order == SN__OLDEST ? f->op_of_age[rank] : f->problem->op_at[order][rank];
}

static void put(sn__moment *f, uint32_t op) {
  const sn__choice *choice = &f->problem->choices[f->problem->class_of[op]];
  sn__need need = {sn__budget_adds(f->budget, op), choice->least_ns, choice->threads[0]};
  for (sn__order o = 0; o < SN__ORDERS; o++)
    if (keeps(f, o)) sn__ranks_put(&f->ready[o], rank_of(f, o, op), need);
}

static void make_ready(sn__moment *f, uint32_t op) {
  f->age[op] = f->n_were_ready++;
  f->op_of_age[f->age[op]] = op;
  put(f, op);
}

static void take(sn__moment *f, uint32_t op) {
  for (sn__order o = 0; o < SN__ORDERS; o++)
    if (keeps(f, o)) sn__ranks_remove(&f->ready[o], rank_of(f, o, op));
}

static uint32_t next(const sn__moment *f, sn__order order, uint32_t op, int64_t ns, int64_t threads) {
  assert(keeps(f, order));
  uint32_t from = op == SN_NONE ? 0 : rank_of(f, order, op) + 1;
  return op_at(f, order, sn__ranks_next(&f->ready[order], from, (sn__need){sn__budget_room(f->budget), ns, threads}));
}

uint32_t sn__moment_next_small(const sn__moment *f, uint32_t op, uint32_t idle, int64_t left_ns) {
  return next(f, SN__OLDEST, op, left_ns, idle);
}

uint32_t sn__moment_next_allowed(sn__moment *f, sn__order order, uint32_t op) {
  do op = next(f, order, op, INT64_MAX - 1, INT64_MAX - 1);
  while (op != SN_NONE && !sn__moment_allows(f, op));
  return op;
}

uint32_t sn__moment_first_allowed(sn__moment *f, sn__order order) {
  return sn__moment_next_allowed(f, order, SN_NONE);
}

bool sn__moment_allows(sn__moment *f, uint32_t op) {
  bool allows = sn__budget_allows(f->budget, op);
  if (!allows && sn__budget_sleeps(f->budget, op)) take(f, op);
  return allows;
}

/* ---- cores ---- */

static bool on_first_slot(const sn__seat *seat) {
  return seat->runs && seat->team.slot == SN_SLOT_FIRST;
}

/* How many cores from `start` on are idle, side by side. */
static uint32_t idle_from(const sn__moment *f, uint32_t start) {
  uint32_t end = f->problem->cores->count;
  for (uint32_t l = 0; l < SN_COMPUTE_LANES; l++) {
    const sn__seat *s = &f->seats[l];
    if (on_first_slot(s) && (uint32_t)s->team.first + s->team.count > start && s->team.first < end) end = s->team.first;
  }
  return end > start ? end - start : 0;
}

/* Where a hole can begin: at core 0, or at the first tile behind the team of a lane. */
static uint32_t hole_start(const sn__moment *f, uint32_t lane) {
  if (lane == SN_COMPUTE_LANES) return 0;
  uint32_t end = (uint32_t)f->seats[lane].team.first + f->seats[lane].team.count, tile = f->problem->cores->tile;
  return (end + tile - 1) / tile * tile;
}

static bool begins_hole(const sn__moment *f, uint32_t lane) {
  return lane == SN_COMPUTE_LANES || on_first_slot(&f->seats[lane]);
}

uint32_t sn__moment_idle(const sn__moment *f) {
  uint32_t most = 0;
  for (uint32_t l = 0; l <= SN_COMPUTE_LANES; l++) {
    uint32_t idle = begins_hole(f, l) ? idle_from(f, hole_start(f, l)) : 0;
    if (idle > most) most = idle;
  }
  return most;
}

sn_team sn__moment_place(const sn__moment *f, uint32_t count) {
  uint32_t first = SN_NONE;
  for (uint32_t l = 0; l <= SN_COMPUTE_LANES; l++) {
    if (!begins_hole(f, l)) continue;
    uint32_t start = hole_start(f, l);
    if (start < first && idle_from(f, start) >= count) first = start;
  }
  assert(first != SN_NONE);
  return (sn_team){.first = (uint16_t)first, .count = (uint16_t)count, .slot = SN_SLOT_FIRST};
}

/* ---- starts and ends ---- */

void sn__moment_begin(sn__moment *f, uint32_t orders, uint64_t budget_bytes, sn_timetable *timetable) {
  const sn_ops *ops = f->problem->ops;
  f->pace = (sn_pace){.cores = f->problem->cores};
  memset(f->seats, 0, sizeof f->seats);
  f->n_running = f->n_second = f->n_were_ready = f->n_events = 0;
  f->orders = orders;
  f->timetable = timetable;
  for (sn__order o = 0; o < SN__ORDERS; o++)
    if (keeps(f, o)) sn__ranks_clear(&f->ready[o]);
  sn__budget_begin(f->budget, budget_bytes);
  for (uint32_t op = 0; op < ops->n_ops; op++) {
    f->n_awaited[op] = ops->nodes[op].n_predecessors;
    if (f->n_awaited[op] == 0) make_ready(f, op);
  }
}

static void note(sn__moment *f, uint32_t op, bool is_end) {
  f->timetable->events[f->n_events++] = (sn_event){op, is_end};
}

void sn__moment_start(sn__moment *f, uint32_t op, sn_team team) {
  const sn_time_class *c = sn__class(f->problem, op);
  uint32_t lane = 0;
  while (f->seats[lane].runs) lane++;
  assert(lane < SN_COMPUTE_LANES && f->n_awaited[op] == 0);
  int64_t ns = c->ns[team.count] + sn_pace_resize_ns(f->pace.cores, f->seats[lane].team.count, team.count);
  f->seats[lane] = (sn__seat){op, team, f->pace.now + c->predicted[team.count], true};
  f->n_running++;
  f->n_second += team.slot == SN_SLOT_SECOND;
  take(f, op);
  sn__budget_start(f->budget, op);
  f->n_awaited[op] = STARTED;
  const uint32_t *changed;
  for (uint32_t n = sn__budget_changed(f->budget, &changed), i = 0; i < n; i++)
    if (f->n_awaited[changed[i]] == 0 && !sn__budget_sleeps(f->budget, changed[i])) put(f, changed[i]);
  sn_pace_start(&f->pace, lane, (sn_running){team, c->share[team.count]}, ns);
  f->timetable->starts[op] = (sn_start){.team = team, .lane = (uint8_t)lane, .start_ns = f->pace.now};
  note(f, op, false);
}

bool sn__moment_end_next(sn__moment *f, int64_t cutoff_ns) {
  uint32_t lane = 0;
  int64_t end_ns = 0;
  if (!sn_pace_next(&f->pace, &lane, &end_ns) || end_ns >= cutoff_ns) return false;
  sn_pace_advance(&f->pace, end_ns);
  sn_pace_end(&f->pace, lane);
  sn__seat *seat = &f->seats[lane];
  seat->runs = false;
  f->n_running--;
  f->n_second -= seat->team.slot == SN_SLOT_SECOND;
  sn__budget_end(f->budget, seat->op);
  f->timetable->starts[seat->op].end_ns = end_ns;
  note(f, seat->op, true);
  const sn_op_node *node = &f->problem->ops->nodes[seat->op];
  for (uint32_t i = 0; i < node->n_successors; i++) {
    uint32_t next = f->problem->ops->successors[node->first_successor + i];
    if (--f->n_awaited[next] == 0) make_ready(f, next);
  }
  return true;
}

int64_t sn__moment_left_ns(const sn__moment *f) {
  int64_t left = 0;
  for (uint32_t l = 0; l < SN_COMPUTE_LANES; l++) {
    const sn__seat *s = &f->seats[l];
    if (s->runs && s->predicted_end_ns - f->pace.now > left) left = s->predicted_end_ns - f->pace.now;
  }
  return left;
}
