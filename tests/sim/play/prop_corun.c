/* Properties of co-run plans, over random nets, devices and timetables: the checker says of a plan, and of a damaged
 * one, what a second judge says, who looks at all pairs; and where operations last as long as was thought, they run
 * when the timetable says.
 *
 *   SN_SEED        seed of the first net; the others follow
 *   SN_PROP_NETS   how many nets */
#include "sim/plan/check.h"
#include "sim/plan/lower_corun.h"
#include "sim/play/engine.h"
#include "tests/sim/play/random_timetable.h"
#include "tests/support/pipeline.h"
#include "tests/support/random_net.h"
#include "tests/support/seed.h"

#include <inttypes.h>
#include <stdlib.h>

enum { NETS = 150, DAMAGES = 24 };

typedef struct world {
  uint64_t dice;
  sn_net *net;
  sn_device device;
  sn_cores cores;
  sn_route *route;
  sn_costs *costs;
  sn_schedule *schedule;
  sn_ops *ops;
  sn_timetable *table;
  sn_plan *plan;
} world;

static world open_world(uint64_t seed) {
  sn_err err = SN_ERR_INIT;
  world w = {.dice = seed, .device = load_gpu("k40c")};
  w.net = random_net_new(&w.dice, &err);
  must(&err);
  w.cores = (sn_cores){.tile = 1};
  w.cores.count = prng_from(&w.dice, 2, 16);
  w.cores.slots = prng_from(&w.dice, 1, 2);
  w.route = sn_route_new(w.net, SN_DIALECT_SUPERNEURONS, SN_ORDER_ROUTE, &err);
  must(&err);
  w.costs = sn_costs_new(w.net, &w.device, &err);
  must(&err);
  w.schedule = sn_schedule_new(w.route, (sn_recompute)prng_below(&w.dice, SN_RECOMPUTE_COST + 1), &err);
  must(&err);
  if (prng_chance(&w.dice, 50)) /* as a library that needs scratch memory */
    for (uint32_t i = 0; i < w.net->n_layers; i++)
      if (prng_chance(&w.dice, 50)) sn_costs_set_scratch(w.costs, i, SN_BACKWARD, 1000 * prng_from(&w.dice, 1, 40));
  w.ops = sn_ops_new(w.schedule, &err);
  must(&err);
  w.table = random_timetable(&w.dice, w.ops, &w.cores);
  return w;
}

static sn_plan *lower(world *w, sn_reuse reuse, sn_placement placement) {
  sn_err err = SN_ERR_INIT;
  sn_plan *plan = sn_lower_corun(&(sn_corun_wish){.timetable = w->table,
                                                  .costs = w->costs,
                                                  .cores = &w->cores,
                                                  .reuse = reuse,
                                                  .placement = placement,
                                                  .pool_bytes = UINT64_C(1) << 40},
                                 &err);
  must(&err);
  return plan;
}

static void close_world(world *w) {
  sn_plan_free(w->plan);
  sn_timetable_free(w->table);
  sn_ops_free(w->ops);
  sn_schedule_free(w->schedule);
  sn_costs_free(w->costs);
  sn_route_free(w->route);
  sn_net_free(w->net);
}

/* ---- the second judge ---- */

/* before[i n + j]: instruction i is over before j begins, whatever the timing. */
typedef struct judge {
  const world *w;
  const sn_plan *plan;
  uint32_t n;
  bool *before;
  uint32_t *instr_of;              /* per operation: its compute; SN_NONE */
  uint32_t *alloc_of, *release_of; /* per life */
} judge;

static bool is_before(const judge *j, uint32_t a, uint32_t b) {
  return j->before[(size_t)a * j->n + b];
}

/* False where a wait stands before its signal, or a fence is signalled twice. */
static bool find_before(judge *j) {
  uint32_t last[SN_LANES], n = j->n;
  uint32_t *signal = malloc(((size_t)j->plan->n_fences + 1) * sizeof *signal);
  assert_non_null(signal);
  bool good = true;
  for (uint32_t f = 0; f < j->plan->n_fences; f++) signal[f] = SN_NONE;
  for (uint32_t l = 0; l < SN_LANES; l++) last[l] = SN_NONE;
  for (uint32_t i = 0; i < n && good; i++) {
    const sn_instr *instr = &j->plan->instrs[i];
    uint32_t from[2] = {last[instr->lane], instr->kind == SN_WAIT ? signal[instr->id] : SN_NONE};
    if (instr->kind == SN_WAIT) good = from[1] != SN_NONE;
    for (int k = 0; k < 2; k++)
      for (uint32_t a = 0; from[k] != SN_NONE && a <= from[k]; a++)
        if (a == from[k] || is_before(j, a, from[k])) j->before[(size_t)a * n + i] = true;
    if (instr->kind == SN_SIGNAL) {
      good = good && signal[instr->id] == SN_NONE;
      signal[instr->id] = i;
    }
    last[instr->lane] = i;
  }
  free(signal);
  return good;
}

/* Which operation each compute is, by order of occurrence. False where one is missing or there is one too many. */
static bool find_computes(judge *j) {
  const sn_ops *ops = j->w->ops;
  for (uint32_t op = 0; op < ops->n_ops; op++) j->instr_of[op] = SN_NONE;
  uint32_t found = 0;
  for (uint32_t i = 0; i < j->n; i++) {
    const sn_instr *instr = &j->plan->instrs[i];
    if (instr->kind != SN_COMPUTE) continue;
    uint32_t op = 0;
    while (op < ops->n_ops &&
           (j->instr_of[op] != SN_NONE || ops->nodes[op].step != instr->id || ops->nodes[op].part != instr->part))
      op++;
    if (op == ops->n_ops || instr->rerun != ops->schedule->executions[ops->nodes[op].execution].rerun) return false;
    j->instr_of[op] = i;
    found++;
  }
  return found == ops->n_ops;
}

static bool find_lives(judge *j) {
  const sn_ops *ops = j->w->ops;
  for (uint32_t l = 0; l < ops->n_lives; l++) j->alloc_of[l] = j->release_of[l] = SN_NONE;
  for (uint32_t i = 0; i < j->n; i++) {
    const sn_instr *instr = &j->plan->instrs[i];
    if (instr->kind != SN_ALLOC && instr->kind != SN_RELEASE) continue;
    uint32_t *of = instr->kind == SN_ALLOC ? j->alloc_of : j->release_of, l = 0;
    while (l < ops->n_lives && (of[l] != SN_NONE || ops->lives[l].tensor != instr->id)) l++;
    if (l == ops->n_lives) return false;
    of[l] = i;
    if (instr->offset > j->plan->pool_bytes || instr->bytes > j->plan->pool_bytes - instr->offset) return false;
    const sn_instr *alloc =
        instr->kind == SN_RELEASE && j->alloc_of[l] != SN_NONE ? &j->plan->instrs[j->alloc_of[l]] : NULL;
    if (instr->kind == SN_RELEASE && (!alloc || alloc->offset != instr->offset || alloc->bytes != instr->bytes))
      return false;
  }
  return true;
}

/* Every use between alloc and release; every two operations of which the one needs the other in order. */
static bool are_uses_ordered(const judge *j) {
  const sn_ops *ops = j->w->ops;
  bool good = true;
  for (uint32_t op = 0; op < ops->n_ops && good; op++) {
    const sn_op_node *node = &ops->nodes[op];
    uint32_t at = j->instr_of[op];
    for (uint32_t p = 0; p < node->n_predecessors; p++)
      good &= is_before(j, j->instr_of[ops->predecessors[node->first_predecessor + p]], at);
    for (uint32_t u = 0; u < node->n_uses; u++) {
      uint32_t l = ops->uses[node->first_use + u];
      good &= j->alloc_of[l] != SN_NONE && is_before(j, j->alloc_of[l], at);
      good &= j->release_of[l] == SN_NONE || is_before(j, at, j->release_of[l]);
    }
  }
  return good;
}

/* Bytes [from, to), or hardware threads, held from one instruction to another. */
typedef struct hold {
  uint64_t from, to;
  uint32_t begin, end;
} hold;

static bool are_apart(const judge *j, const hold *a, const hold *b) {
  bool meet = a->from < b->to && b->from < a->to;
  return !meet || (a->end != SN_NONE && is_before(j, a->end, b->begin)) ||
         (b->end != SN_NONE && is_before(j, b->end, a->begin));
}

static bool are_all_apart(const judge *j, const hold *holds, uint32_t n) {
  for (uint32_t a = 0; a < n; a++)
    for (uint32_t b = 0; b < a; b++)
      if (!are_apart(j, &holds[a], &holds[b])) return false;
  return true;
}

static bool is_memory_apart(const judge *j) {
  const sn_ops *ops = j->w->ops;
  hold *holds = calloc((size_t)ops->n_lives + ops->n_ops + 1, sizeof *holds);
  assert_non_null(holds);
  uint32_t n = 0;
  bool good = true;
  for (uint32_t l = 0; l < ops->n_lives; l++) {
    if (j->alloc_of[l] == SN_NONE) continue;
    const sn_instr *i = &j->plan->instrs[j->alloc_of[l]];
    holds[n++] = (hold){i->offset, i->offset + i->bytes, j->alloc_of[l], j->release_of[l]};
  }
  for (uint32_t op = 0; op < ops->n_ops; op++) {
    const sn_instr *i = &j->plan->instrs[j->instr_of[op]];
    if (i->bytes > 0) holds[n++] = (hold){i->offset, i->offset + i->bytes, j->instr_of[op], j->instr_of[op]};
    good &= i->bytes == 0 || i->offset + i->bytes <= j->plan->pool_bytes;
  }
  good &= are_all_apart(j, holds, n);
  free(holds);
  return good;
}

static bool are_cores_apart(const judge *j) {
  const sn_ops *ops = j->w->ops;
  hold *holds = calloc((size_t)ops->n_ops + 1, sizeof *holds);
  assert_non_null(holds);
  bool good = true;
  for (uint32_t op = 0; op < ops->n_ops; op++) {
    const sn_team *t = &j->plan->teams[j->plan->instrs[j->instr_of[op]].team];
    uint64_t first = (uint64_t)t->slot * j->plan->cores + t->first;
    good &= t->slot < j->plan->slots && t->count > 0 && t->first + t->count <= j->plan->cores;
    holds[op] = (hold){first, first + t->count, j->instr_of[op], j->instr_of[op]};
  }
  good &= are_all_apart(j, holds, ops->n_ops);
  free(holds);
  return good;
}

static bool judge_plan(const world *w, const sn_plan *plan) {
  uint32_t n = plan->n_instrs;
  judge j = {.w = w, .plan = plan, .n = n};
  j.before = calloc((size_t)n * n + 1, sizeof *j.before);
  j.instr_of = calloc((size_t)w->ops->n_ops + 1, sizeof *j.instr_of);
  j.alloc_of = calloc((size_t)w->ops->n_lives + 1, sizeof *j.alloc_of);
  j.release_of = calloc((size_t)w->ops->n_lives + 1, sizeof *j.release_of);
  assert_true(j.before && j.instr_of && j.alloc_of && j.release_of);
  bool good = find_before(&j) && find_computes(&j) && find_lives(&j) && are_uses_ordered(&j) && is_memory_apart(&j) &&
              are_cores_apart(&j);
  free(j.before);
  free(j.instr_of);
  free(j.alloc_of);
  free(j.release_of);
  return good;
}

/* ---- damage ---- */

static uint32_t pick(uint64_t *dice, const sn_plan *plan, sn_instr_kind kind) {
  uint32_t from = (uint32_t)prng_below(dice, plan->n_instrs);
  for (uint32_t i = 0; i < plan->n_instrs; i++)
    if (plan->instrs[(from + i) % plan->n_instrs].kind == kind) return (from + i) % plan->n_instrs;
  return SN_NONE;
}

static void drop(sn_plan *plan, uint32_t at) {
  memmove(&plan->instrs[at], &plan->instrs[at + 1], (--plan->n_instrs - at) * sizeof *plan->instrs);
}

static void swap(sn_plan *plan, uint32_t a, uint32_t b) {
  sn_instr instr = plan->instrs[a];
  plan->instrs[a] = plan->instrs[b];
  plan->instrs[b] = instr;
}

static void move_block(sn_plan *plan, uint32_t alloc, uint64_t offset) {
  for (uint32_t i = alloc; i < plan->n_instrs; i++) {
    sn_instr *instr = &plan->instrs[i];
    bool its = (instr->kind == SN_ALLOC || instr->kind == SN_RELEASE) && instr->id == plan->instrs[alloc].id;
    if (its) instr->offset = offset;
    if (its && instr->kind == SN_RELEASE) return;
  }
}

static void damage(uint64_t *dice, sn_plan *plan) {
  uint32_t a = SN_NONE, b;
  switch (prng_below(dice, 6)) {
  case 0:
    if ((a = pick(dice, plan, SN_WAIT)) != SN_NONE) drop(plan, a);
    break;
  case 1: /* starts swapped */
    a = pick(dice, plan, SN_COMPUTE);
    b = pick(dice, plan, SN_COMPUTE);
    swap(plan, a, b);
    break;
  case 2: /* cores shifted */
    a = (uint32_t)prng_below(dice, plan->n_teams);
    if (prng_chance(dice, 50))
      plan->teams[a].first++;
    else
      plan->teams[a].count++;
    break;
  case 3:
    a = pick(dice, plan, SN_ALLOC);
    move_block(plan, a, plan->instrs[pick(dice, plan, SN_ALLOC)].offset);
    break;
  case 4: /* another team */
    a = pick(dice, plan, SN_COMPUTE);
    plan->instrs[a].team = (uint16_t)prng_below(dice, plan->n_teams);
    break;
  default: /* a part earlier or later in the list */
    a = pick(dice, plan, SN_COMPUTE);
    if (a + 1 < plan->n_instrs) swap(plan, a, a + 1);
    break;
  }
}

static sn_plan copy_plan(const sn_plan *plan) {
  sn_plan copy = *plan;
  copy.instrs = malloc((size_t)plan->n_instrs * sizeof *copy.instrs);
  copy.teams = malloc((size_t)plan->n_teams * sizeof *copy.teams);
  assert_true(copy.instrs && copy.teams);
  memcpy(copy.instrs, plan->instrs, plan->n_instrs * sizeof *copy.instrs);
  memcpy(copy.teams, plan->teams, plan->n_teams * sizeof *copy.teams);
  return copy;
}

static void check_damages(world *w, const sn_plan *plan, uint32_t *caught) {
  for (int k = 0; k < DAMAGES; k++) {
    sn_plan bad = copy_plan(plan);
    damage(&w->dice, &bad);
    sn_err err = SN_ERR_INIT;
    bool passes = sn_check(&bad, NULL, &err) == SN_OK, good = judge_plan(w, &bad);
    if (passes != good) fail_msg("checker: %s; the judge says %s", passes ? "passes" : err.text, good ? "good" : "bad");
    *caught += !passes;
    free(bad.instrs);
    free(bad.teams);
  }
}

/* ---- times ---- */

/* Feeds an engine with the plan and the timetable's times alone: every operation runs when it says. */
static void check_times(const world *w, const sn_plan *plan) {
  sn_err err = SN_ERR_INIT;
  sn_span *spans = calloc((size_t)plan->n_instrs + 1, sizeof *spans);
  uint32_t *seen = calloc((size_t)w->route->n_steps * SN_STEP_PARTS + 1, sizeof *seen);
  assert_true(spans && seen);
  sn_engine *engine = sn_engine_new(SN_LANES, plan->n_fences, false, spans, &err);
  must(&err);
  uint32_t *op_of = calloc((size_t)plan->n_instrs + 1, sizeof *op_of), next = 0;
  assert_non_null(op_of);
  for (uint32_t i = 0; i < plan->n_instrs; i++) {
    const sn_instr *instr = &plan->instrs[i];
    if (instr->kind == SN_SIGNAL) sn_engine_signal(engine, instr->lane, instr->id, i, &err);
    if (instr->kind == SN_WAIT) sn_engine_wait(engine, instr->lane, instr->id, i, &err);
    if (instr->kind != SN_COMPUTE) continue;
    while (w->table->events[next].is_end) next++;
    const sn_start *s = &w->table->starts[op_of[i] = w->table->events[next++].op];
    sn_engine_run(engine, instr->lane, s->end_ns - s->start_ns, i, &err);
  }
  must(&err);
  sn_engine_drain(engine, &err);
  must(&err);
  for (uint32_t i = 0; i < plan->n_instrs; i++) {
    if (plan->instrs[i].kind != SN_COMPUTE) continue;
    assert_int_equal(spans[i].begin_ns, w->table->starts[op_of[i]].start_ns);
    assert_int_equal(spans[i].end_ns, w->table->starts[op_of[i]].end_ns);
  }
  sn_engine_free(engine);
  free(op_of);
  free(seen);
  free(spans);
}

/* The pool is as large as its addresses need, and the steps' bytes are those that lives take in the timetable's order.
 */
static void check_account(const world *w, const sn_plan *plan) {
  sn_err err = SN_ERR_INIT;
  sn_check_report report = {0};
  sn_check(plan, &report, &err);
  must(&err);
  uint64_t live = 0, peak = 0, most = 0;
  uint32_t *left = calloc((size_t)w->ops->n_lives + 1, sizeof *left);
  assert_non_null(left);
  for (uint32_t l = 0; l < w->ops->n_lives; l++) left[l] = w->ops->lives[l].n_users;
  for (uint32_t at = 0; at < 2 * w->ops->n_ops; at++) {
    const sn_op_node *node = &w->ops->nodes[w->table->events[at].op];
    for (uint32_t u = 0; u < node->n_uses; u++) {
      uint32_t l = w->ops->uses[node->first_use + u];
      bool ends = w->table->events[at].is_end;
      if (!ends && w->ops->lives[l].made_by == w->table->events[at].op) live += sn_life_bytes(w->ops, l);
      if (ends && --left[l] == 0) live -= sn_life_bytes(w->ops, l);
    }
    peak = live > peak ? live : peak;
  }
  for (uint32_t s = 0; s < plan->route->n_steps; s++)
    most = plan->use[s].tensor_bytes > most ? plan->use[s].tensor_bytes : most;
  assert_true(report.high_water == plan->pool_bytes && plan->pool_bytes >= plan->reserved_peak);
  assert_true(report.peak_tensor_bytes == peak && most == peak);
  free(left);
}

static void random_worlds(void **state) {
  (void)state;
  uint64_t seed = first_seed(1), nets = case_count(NETS);
  uint32_t caught = 0;
  for (uint64_t i = 0; i < nets; i++) {
    world w = open_world(seed + i);
    sn_plan *plans[3] = {lower(&w, SN_REUSE_FENCED, SN_PLACEMENT_PACKED),
                         lower(&w, SN_REUSE_FENCED, SN_PLACEMENT_FIRST_FIT),
                         lower(&w, SN_REUSE_FREE, SN_PLACEMENT_PACKED)};
    assert_true(plans[0]->pool_bytes <= plans[1]->pool_bytes);
    for (int k = 0; k < 3; k++) {
      check_account(&w, plans[k]);
      check_times(&w, plans[k]);
    }
    assert_true(judge_plan(&w, plans[i % 3]));
    check_damages(&w, plans[i % 3], &caught);
    for (int k = 0; k < 3; k++) sn_plan_free(plans[k]);
    close_world(&w);
  }
  assert_true(caught > nets * DAMAGES / 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(random_worlds)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
