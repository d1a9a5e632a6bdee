/* Property: numbers of threads of kinds where times were measured (sim/corun/kinds.h). Random networks get random times
 * for every shape, with several counts, some of them near each other, some not measured; then
 *
 *   - no count for all, and none for one kind alone, makes the sum less, doubt and changes of teams added up anew;
 *   - s12 takes no longer than one operation after another on all cores, and gains more than its doubt;
 *   - neither do path and best; and best is no slower than any other policy, or one after another on all cores, which
 *     gives way only to what takes a fifth less.
 *
 *   SN_SEED        first seed
 *   SN_PROP_NETS   how many networks (default 300) */
#include "base/arena.h"
#include "sim/corun/climb.h"
#include "sim/corun/schedule.h"
#include "tests/support/pipeline.h"
#include "tests/support/random_net.h"
#include "tests/support/seed.h"

#include <math.h>
#include <stdlib.h>

enum { NETS = 300, MOST_COUNTS = 4 };

typedef struct world {
  uint64_t seed, dice;
  sn_net *net;
  sn_route *route;
  sn_schedule *schedule;
  sn_ops *ops;
  sn_device device;
  sn_calibration *calibration;
  uint32_t interval;
  sn_times *times;
} world;

#define MUST(what)                                                                                                     \
  do {                                                                                                                 \
    if (!(what)) fail_msg("SN_SEED=%llu SN_PROP_NETS=1: line %d: %s", (unsigned long long)w->seed, __LINE__, #what);   \
  } while (0)

/* ---- a calibration by dice ---- */

static uint32_t draw_counts(world *w, uint32_t cores, uint32_t counts[MOST_COUNTS]) {
  uint32_t n = 0;
  counts[n++] = 1;
  if (cores > 2 && prng_chance(&w->dice, 70)) counts[n++] = cores / 2;
  counts[n++] = cores;
  return n;
}

static void draw_timings(world *w, const sn_layer *layer, sn_pass pass, sn_step_part part, const uint32_t *counts,
                         uint32_t n, sn_timing *t) {
  char shape[SN_SHAPE_TEXT];
  int64_t work = prng_from(&w->dice, 1, 200000);
  bool scales = prng_chance(&w->dice, 60); /* else each thread costs */
  sn_timing_shape(w->net, layer, pass, SN_OPTIMIZER_MOMENTUM, shape, sizeof shape);
  const char *text = sn_arena_text(w->calibration->arena, shape);
  assert_non_null(text);
  for (uint32_t i = 0; i < n; i++) {
    int64_t ns = scales ? work / counts[i] + 1 : work + work / 8 * counts[i] + 1;
    int64_t more = prng_below(&w->dice, 1 + (uint32_t)ns / 10);
    int64_t spread = prng_below(&w->dice, 1 + (uint32_t)ns / 8);
    t[i] = (sn_timing){.shape = text,
                       .op = layer->op,
                       .pass = pass,
                       .kernel = SN_CONV_KERNELS,
                       .algo = SN_CONV_ALGOS,
                       .ns = ns + more,
                       .spread_ns = spread,
                       .formula_ns = 1000,
                       .samples = 3,
                       .part = part,
                       .threads = counts[i]};
  }
}

/* Each timing once. */
static uint32_t sort_timings(sn_timing *t, uint32_t n) {
  uint32_t kept = 0;
  qsort(t, n, sizeof *t, sn_timing_compare);
  for (uint32_t i = 0; i < n; i++)
    if (kept == 0 || sn_timing_compare(&t[kept - 1], &t[i]) != 0) t[kept++] = t[i];
  return kept;
}

static void draw_calibration(world *w) {
  sn_err err = SN_ERR_INIT;
  sn_arena *arena = sn_arena_new();
  assert_non_null(arena);
  sn_calibration *c = w->calibration = sn_arena_alloc(arena, 1, sizeof *c);
  sn_timing *t = sn_arena_alloc(arena, (size_t)w->route->n_steps * 2 * MOST_COUNTS, sizeof *t);
  assert_true(c && t);
  c->arena = arena;
  c->timings = t;
  uint32_t cores = prng_from(&w->dice, 2, 9), counts[MOST_COUNTS], n_counts = draw_counts(w, cores, counts);
  uint32_t interference = prng_below(&w->dice, 100), resize_ns = prng_below(&w->dice, 20000);
  uint32_t missing = prng_chance(&w->dice, 20) ? 10 : 0;
  sn_calibration_set_cores(c, cores, interference / 100.0, resize_ns);
  for (uint32_t i = 0; i < w->route->n_steps; i++) {
    const sn_step *step = &w->route->steps[i];
    sn_step_part parts[2];
    for (uint32_t p = 0, n = sn_step_parts(w->route, i, parts); p < n; p++) {
      if (prng_chance(&w->dice, missing)) continue;
      draw_timings(w, &w->net->layers[step->layer], step->pass, parts[p], counts, n_counts, t + c->n_timings);
      c->n_timings += n_counts;
    }
  }
  c->n_timings = sort_timings(t, c->n_timings);
  assert_int_equal(sn_device_load("k40c", &c->profile, &err), SN_OK);
  sn_calibration_fit(c, &err);
  must(&err);
}

static world open_world(uint64_t seed) {
  sn_err err = SN_ERR_INIT;
  world w = {.seed = seed, .dice = seed};
  w.net = random_net_new(&w.dice, &err);
  must(&err);
  w.route = sn_route_new(w.net, SN_DIALECT_SUPERNEURONS, SN_ORDER_ROUTE, &err);
  must(&err);
  draw_calibration(&w);
  w.device = w.calibration->profile;
  w.device.cores = w.calibration->cores;
  w.interval = prng_chance(&w.dice, 50) ? SN_INTERVAL_GEOMETRIC : prng_from(&w.dice, 1, w.device.cores.count);
  w.schedule = sn_schedule_new(w.route, SN_RECOMPUTE_NONE, &err);
  w.ops = w.schedule ? sn_ops_new(w.schedule, &err) : NULL;
  w.times = w.ops ? sn_times_new(w.route, &w.device, SN_OPTIMIZER_MOMENTUM, w.interval, w.calibration, &err) : NULL;
  must(&err);
  return w;
}

static void close_world(world *w) {
  sn_times_free(w->times);
  sn_ops_free(w->ops);
  sn_schedule_free(w->schedule);
  sn_calibration_free(w->calibration);
  sn_route_free(w->route);
  sn_net_free(w->net);
}

/* ---- counts ---- */

typedef struct sum {
  int64_t ns;
  double doubt;
} sum;

static const sn_time_class *class_of(const world *w, uint32_t op) {
  return sn_times_of(w->times, w->ops->nodes[op].step, w->ops->nodes[op].part);
}

/* All operations one after another, kinds with these numbers of threads. */
static sum add_up(const world *w, const uint32_t *threads) {
  sum s = {0, 0};
  uint32_t cores = w->times->cores, before = 0;
  for (uint32_t op = 0; op < w->ops->n_ops; op++) {
    const sn_time_class *c = class_of(w, op);
    uint32_t count = threads[c->kind];
    s.ns += c->ns[count] + (before > 0 && before != count ? (int64_t)w->device.cores.resize_ns : 0);
    if (count < cores)
      s.doubt += c->measured ? floor((double)(c->spread_ns[count] + c->spread_ns[cores]) / 2) : INFINITY;
    before = count;
  }
  return s;
}

static void check_counts(const world *w) {
  uint16_t ladder[SN_MAX_CORES];
  uint32_t rungs = sn_climb_ladder(w->times->cores, w->interval, ladder), kinds = w->times->n_kinds;
  uint32_t chosen[SN_OP_COUNT * SN_PASSES * SN_STEP_PARTS], other[SN_OP_COUNT * SN_PASSES * SN_STEP_PARTS];
  for (uint32_t k = 0; k < kinds; k++) chosen[k] = w->times->kinds[k].threads;
  sum s = add_up(w, chosen);
  for (uint32_t r = 0; r < rungs; r++) {
    for (uint32_t k = 0; k < kinds; k++) other[k] = ladder[r];
    sum uniform = add_up(w, other);
    MUST((double)s.ns + s.doubt <= (double)uniform.ns + uniform.doubt);
    for (uint32_t k = 0; k < kinds; k++) {
      for (uint32_t i = 0; i < kinds; i++) other[i] = i == k ? ladder[r] : chosen[i];
      sum one = add_up(w, other);
      MUST((double)s.ns + s.doubt <= (double)one.ns + one.doubt);
    }
  }
}

/* ---- schedules ---- */

static int64_t end_of(const world *w, const char *name, sn_corun_facts *facts) {
  sn_err err = SN_ERR_INIT;
  sn_policy policy;
  sn_policy_parse(name, &policy, &err);
  must(&err);
  sn_timetable *t = sn_corun_schedule(w->ops, w->times, &w->device.cores, policy, SN_BUDGET_SERIAL, facts, &err);
  must(&err);
  int64_t end_ns = t->end_ns;
  sn_timetable_free(t);
  return end_ns;
}

static void check_schedules(const world *w, uint32_t *gains) {
  static const char *const policies[] = {"s1", "s12", "s123", "s1234", "path", "manual", "2x1"};
  char all_cores[16];
  uint32_t chosen[SN_OP_COUNT * SN_PASSES * SN_STEP_PARTS];
  snprintf(all_cores, sizeof all_cores, "1x%u", w->times->cores);
  sn_corun_facts facts;
  int64_t serial = end_of(w, all_cores, NULL), best = end_of(w, "best", &facts);
  bool stays =
      facts.policy.kind == SN_POLICY_WORKERS && facts.policy.workers == 1 && facts.policy.threads == w->times->cores;
  MUST(best <= serial && (!stays || best == serial));
  for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
    int64_t end = end_of(w, policies[i], NULL);
    MUST(stays ? end >= serial - serial / SN_CORUN_GAIN : best <= end);
  }
  MUST(end_of(w, "path", NULL) <= serial);
  for (uint32_t k = 0; k < w->times->n_kinds; k++) chosen[k] = w->times->kinds[k].threads;
  sum s = add_up(w, chosen);
  MUST(end_of(w, "s12", NULL) == s.ns && (double)s.ns + s.doubt <= (double)serial);
  *gains += s.ns < serial;
}

static void counts_are_the_best_beside_each_other(void **state) {
  (void)state;
  uint64_t seed = first_seed(1), nets = case_count(NETS);
  uint32_t gains = 0;
  for (uint64_t i = 0; i < nets; i++) {
    world w = open_world(seed + i);
    check_counts(&w);
    check_schedules(&w, &gains);
    close_world(&w);
  }
  print_message("%u of %llu gain\n", gains, (unsigned long long)nets);
  assert_true(nets < 20 || (gains > nets / 10 && gains < nets));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(counts_are_the_best_beside_each_other)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
