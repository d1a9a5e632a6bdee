/* Times of operations on teams of cores: how planning uses those that were measured, what the store makes of them, and
 * what calibrating a machine finds. No time is expected of a machine. */
#include "base/arena.h"
#include "db/calibrations.h"
#include "db/store_internal.h"
#include "exec/session/calibrate.h"
#include "exec/session/team_times.h"
#include "sim/ask/corun_plans.h"
#include "sim/ask/simulate.h"
#include "sim/corun/schedule.h"
#include "sim/device/calibration.h"
#include "tests/support/pipeline.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

enum { CORES = 4, MOST_TIMINGS = 400 };

#define RESIZE_NS 1234.5

/* An operation with so many threads takes so many ns: half of its work is divided among them, and each costs some. */
static int64_t pretended_ns(uint32_t layer, sn_pass pass, sn_step_part part, uint32_t threads) {
  int64_t work = 12000 * (1 + (int64_t)layer) + 2400 * (int64_t)pass + 1200 * (int64_t)part;
  return work / 2 + work / 2 / threads + 100 * (int64_t)threads;
}

static uint32_t add_step(const sn_route *route, uint32_t step, const uint32_t *counts, uint32_t n_counts, sn_timing *t,
                         sn_arena *arena) {
  const sn_step *s = &route->steps[step];
  const sn_layer *layer = &route->layers[s->layer];
  char shape[SN_SHAPE_TEXT];
  sn_timing_shape(route->net, layer, s->pass, SN_OPTIMIZER_MOMENTUM, shape, sizeof shape);
  sn_step_part parts[2];
  uint32_t n = 0, n_parts = sn_step_parts(route, step, parts);
  for (uint32_t p = 0; p < n_parts; p++)
    for (uint32_t c = 0; c < n_counts; c++)
      t[n++] = (sn_timing){.shape = sn_arena_text(arena, shape),
                           .op = layer->op,
                           .pass = s->pass,
                           .kernel = SN_CONV_KERNELS,
                           .algo = SN_CONV_ALGOS,
                           .ns = pretended_ns(s->layer, s->pass, parts[p], counts[c]),
                           .spread_ns = counts[c] == CORES ? 0 : 100,
                           .formula_ns = 1000,
                           .samples = 2,
                           .part = parts[p],
                           .threads = counts[c]};
  return n;
}

/* Every operation of the net was measured with these counts of threads. Layers of the net have shapes of their own. */
static sn_calibration *pretend(const sn_route *route, const uint32_t *counts, uint32_t n_counts) {
  sn_arena *arena = sn_arena_new();
  sn_calibration *c = sn_arena_alloc(arena, 1, sizeof *c);
  sn_timing *t = sn_arena_alloc(arena, MOST_TIMINGS, sizeof *t);
  sn_err err = SN_ERR_INIT;
  *c = (sn_calibration){.name = "mine",
                        .backend = "cpu",
                        .hardware = "h",
                        .libraries = "l",
                        .created = "",
                        .out_bandwidth = 1e9,
                        .in_bandwidth = 2e9,
                        .together_bandwidth = 3e9,
                        .timings = t,
                        .arena = arena};
  assert_int_equal(sn_device_load("k40c", &c->profile, &err), SN_OK);
  sn_calibration_set_cores(c, CORES, 0.25, RESIZE_NS);
  for (uint32_t i = 0; i < route->n_steps; i++) {
    c->n_timings += add_step(route, i, counts, n_counts, t + c->n_timings, arena);
    assert_true(c->n_timings < MOST_TIMINGS - 32);
  }
  qsort(t, c->n_timings, sizeof *t, sn_timing_compare);
  sn_calibration_fit(c, &err);
  must(&err);
  return c;
}

typedef struct world {
  sn_net *net;
  sn_route *route;
  sn_calibration *calibration;
  sn_device device;
} world;

static world open_world(const uint32_t *counts, uint32_t n_counts) {
  sn_err err = SN_ERR_INIT;
  world w = {.net = load_net("lenet", 4)};
  w.route = sn_route_new(w.net, SN_DIALECT_SUPERNEURONS, SN_ORDER_ROUTE, &err);
  must(&err);
  w.calibration = pretend(w.route, counts, n_counts);
  w.device = w.calibration->profile;
  w.device.cores = w.calibration->cores;
  return w;
}

static void close_world(world *w) {
  sn_calibration_free(w->calibration);
  sn_route_free(w->route);
  sn_net_free(w->net);
}

static sn_times *times_of(const world *w, const sn_route *route) {
  sn_err err = SN_ERR_INIT;
  sn_times *t = sn_times_new(route, &w->device, SN_OPTIMIZER_MOMENTUM, SN_INTERVAL_GEOMETRIC, w->calibration, &err);
  must(&err);
  return t;
}

static const uint32_t three[] = {1, 2, 4};

static void measured_counts_are_taken_as_they_are(void **state) {
  (void)state;
  world w = open_world(three, 3);
  sn_times *times = times_of(&w, w.route);
  assert_int_equal(times->measured_ops, times->n_ops);
  for (uint32_t i = 0; i < w.route->n_steps; i++) {
    const sn_step *s = &w.route->steps[i];
    sn_step_part parts[2];
    for (uint32_t p = 0, n = sn_step_parts(w.route, i, parts); p < n; p++) {
      const sn_time_class *c = sn_times_of(times, i, parts[p]);
      for (int k = 0; k < 3; k++)
        assert_int_equal(c->ns[three[k]], pretended_ns(s->layer, s->pass, parts[p], three[k]));
      double between = (double)c->ns[4] + (1. / 3 - 1. / 4) / (1. / 2 - 1. / 4) * (double)(c->ns[2] - c->ns[4]);
      assert_true(fabs((double)c->ns[3] - between) <= 1);
      assert_true(c->ns[5] >= c->ns[4] && c->ns[8] >= c->ns[5]);
      for (uint32_t k = 1; k <= 8; k++)
        assert_int_equal(c->share[k], lround(1024 * fmin(1, (double)c->ns[1] / (k * (double)c->ns[k]))));
    }
  }
  sn_times_free(times);
  close_world(&w);
}

/* Another batch has other shapes: the law, times what was measured over what it said. */
static void other_shapes_are_the_law_corrected(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  world w = open_world(three, 3);
  sn_net *net = load_net("lenet", 5);
  sn_route *route = sn_route_new(net, SN_DIALECT_SUPERNEURONS, SN_ORDER_ROUTE, &err);
  sn_times *law = sn_times_new(route, &w.device, SN_OPTIMIZER_MOMENTUM, SN_INTERVAL_GEOMETRIC, NULL, &err);
  sn_times *times = times_of(&w, route);
  must(&err);
  assert_int_equal(times->measured_ops, 0);
  for (uint32_t i = 0; i < times->n_classes; i++) {
    const sn_time_kind *kind = &times->kinds[times->classes[i].kind];
    double factor = w.calibration->team_factor[kind->op][kind->pass][kind->part];
    assert_true(factor > 1);
    for (uint32_t p = 1; p <= times->max_threads; p++) {
      assert_true(fabs((double)times->classes[i].ns[p] - factor * (double)law->classes[i].ns[p]) <= 1);
      assert_int_equal(times->classes[i].share[p], law->classes[i].share[p]);
    }
  }
  sn_times_free(law);
  sn_times_free(times);
  sn_route_free(route);
  sn_net_free(net);
  close_world(&w);
}

/* One after another on all cores takes the sum, and so does path where it would not take a fifth less; what of it was
 * measured is told. */
static void plans_take_the_measured_times(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  world w = open_world(three, 3);
  sn_options options = SN_OPTIONS_INIT;
  options.calibration = w.calibration;
  sn_strategy strategies[] = {parse_strategy("liveness+corun=1x4"), parse_strategy("liveness+corun=2x2"),
                              parse_strategy("liveness+corun=path")};
  sn_run *run = sn_simulate("lenet", w.net, &w.calibration->profile, strategies, 3, &options, &err);
  must(&err);
  int64_t sum = 0;
  for (uint32_t i = 0; i < w.route->n_steps; i++) {
    sn_step_part parts[2];
    for (uint32_t p = 0, n = sn_step_parts(w.route, i, parts); p < n; p++)
      sum += pretended_ns(w.route->steps[i].layer, w.route->steps[i].pass, parts[p], CORES);
  }
  assert_int_equal(run->results[0].iteration_ns, sum);
  assert_int_equal(run->results[0].known_ns, sum);
  assert_true(run->results[1].iteration_ns < sum && run->results[1].iteration_ns > sum - sum / SN_CORUN_GAIN);
  assert_true(run->results[1].known_ns > 0 && run->results[1].known_ns <= run->results[1].compute_ns);
  assert_int_equal(run->results[2].iteration_ns, sum);
  for (int i = 0; i < 3; i++) {
    assert_int_equal(run->results[i].corun.measured_ops, run->results[i].corun.ops);
    assert_int_equal(run->results[i].corun.cores, CORES);
  }
  sn_run_free(run);
  w.calibration->cores.count = 0;
  assert_null(sn_simulate("lenet", w.net, &w.calibration->profile, strategies, 2, &options, &err));
  assert_int_equal(err.code, SN_BAD_USAGE);
  assert_non_null(strstr(err.text, "calibrate"));
  close_world(&w);
}

/* A step's own time is not looked up among teams', nor a factor made of them. */
static void whole_steps_have_times_of_their_own(void **state) {
  (void)state;
  world w = open_world(three, 3);
  assert_true(w.calibration->residual == 1);
  for (uint32_t op = 0; op < SN_OP_COUNT; op++)
    for (uint32_t pass = 0; pass < SN_PASSES; pass++) assert_true(w.calibration->factor[op][pass] == 1);
  sn_err err = SN_ERR_INIT;
  const uint8_t no_algo[2] = {SN_IMPLICIT_GEMM, SN_IMPLICIT_GEMM};
  sn_costs *costs = sn_costs_new(w.net, &w.calibration->profile, &err);
  must(&err);
  sn_calibration_apply(w.calibration, w.net, costs);
  for (uint32_t i = 1; i < w.net->n_layers; i++)
    assert_int_equal(sn_costs_step_known(costs, i, SN_FORWARD, no_algo), 0);
  sn_costs_free(costs);
  close_world(&w);
}

static sn_store *open_memory(void) {
  sn_err err = SN_ERR_INIT;
  sn_store *store = sn_store_open(":memory:", &err);
  must(&err);
  return store;
}

static void the_store_gives_them_back(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  world w = open_world(three, 3);
  sn_store *store = open_memory();
  sn_store_put_calibration(store, w.calibration, &err);
  sn_calibration *got = sn_store_calibration(store, "mine", NULL, NULL, &err);
  must(&err);
  assert_int_equal(got->n_timings, w.calibration->n_timings);
  for (uint32_t i = 0; i < got->n_timings; i++) {
    assert_int_equal(sn_timing_compare(&got->timings[i], &w.calibration->timings[i]), 0);
    assert_int_equal(got->timings[i].ns, w.calibration->timings[i].ns);
    assert_int_equal(got->timings[i].spread_ns, w.calibration->timings[i].spread_ns);
  }
  assert_memory_equal(&got->cores.count, &w.calibration->cores.count, sizeof got->cores.count);
  assert_true(got->cores.neighbour == 0.25 && got->cores.resize_ns == RESIZE_NS && got->cores.pinned &&
              got->cores.slots == 1);
  assert_memory_equal(got->team_factor, w.calibration->team_factor, sizeof got->team_factor);
  sn_calibration_free(got);
  sn_store_close(store);
  close_world(&w);
}

/* What no snsim wrote: planning goes on with what can be used of it, by the law where nothing can. */
static void hostile_timings_are_planned_with(void **state) {
  (void)state;
  static const uint32_t only_one[] = {1}, not_one[] = {2, 4}, beyond[] = {1, 2, 200, 256}, twice[] = {1, 1, 2, 2};
  static const struct {
    const uint32_t *counts;
    uint32_t n;
    bool measured;
  } cases[] = {{only_one, 1, false}, {not_one, 2, false}, {beyond, 4, true}, {twice, 4, true}};
  static const int64_t hostile_ns[] = {0, 1, INT64_C(1) << 52};
  for (size_t i = 0; i < sizeof cases / sizeof *cases * 3; i++) {
    sn_err err = SN_ERR_INIT;
    world w = open_world(cases[i / 3].counts, cases[i / 3].n);
    sn_timing *t = (sn_timing *)(uintptr_t)w.calibration->timings;
    for (uint32_t k = 0; k < w.calibration->n_timings; k += 3) t[k].ns = hostile_ns[i % 3];
    sn_calibration_fit(w.calibration, &err);
    must(&err);
    sn_times *times = times_of(&w, w.route);
    assert_int_equal(times->measured_ops, cases[i / 3].measured ? times->n_ops : 0);
    for (uint32_t c = 0; c < times->n_classes; c++)
      for (uint32_t p = 1; p <= times->max_threads; p++)
        assert_true(times->classes[c].ns[p] >= 1 && times->classes[c].share[p] <= 1024);
    sn_schedule *schedule = sn_schedule_new(w.route, SN_RECOMPUTE_NONE, &err);
    sn_ops *ops = sn_ops_new(schedule, &err);
    must(&err);
    sn_timetable *table = sn_corun_schedule(ops, times, &w.device.cores, (sn_policy){.kind = SN_POLICY_BEST},
                                            SN_BUDGET_SERIAL, NULL, &err);
    assert_true(table || err.code == SN_BAD_INPUT); /* more time than the clock has */
    sn_timetable_free(table);
    sn_ops_free(ops);
    sn_schedule_free(schedule);
    sn_times_free(times);
    close_world(&w);
  }
}

static void interference_explains_what_was_seen(void **state) {
  (void)state;
  sn__team_run runs[5];
  for (int i = 0; i < 5; i++) { /* half of its time alone, half beside one that works 80 % of its own */
    double alone = 100 * (i + 1), beside = alone / 2 * (1 + 0.5 * 0.8);
    runs[i] = (sn__team_run){.ns = alone / 2 + beside, .alone_ns = alone, .overlap_ns = beside, .share = 0.8};
  }
  assert_true(fabs(sn__team_interference(runs, 5) - 0.5) < 1e-9);
  runs[2].ns *= 1000; /* lost its processor */
  assert_true(fabs(sn__team_interference(runs, 5) - 0.5) < 1e-9);
  for (int i = 0; i < 5; i++) runs[i] = (sn__team_run){.ns = 90, .alone_ns = 100, .overlap_ns = 90, .share = 1};
  assert_true(sn__team_interference(runs, 5) == 0);
  runs[0] = (sn__team_run){.ns = 300, .alone_ns = 100, .overlap_ns = 150, .share = 1}; /* lost more than it shared */
  assert_true(sn__team_interference(runs, 1) == SN_MAX_INTERFERENCE);
  runs[0] = (sn__team_run){.ns = 300, .alone_ns = 100, .overlap_ns = 290, .share = 0};
  assert_true(sn__team_interference(runs, 1) == 0);
}

/* Once in every round: in the first all operations with one, then two neighbours never with the same, so that each
 * finds another team's caches. */
static void mixes_have_every_operation_with_every_count(void **state) {
  (void)state;
  enum { OPS = 50, ROUNDS = 7, MOST = 19 };
  uint32_t counts[MOST];
  for (uint32_t i = 0; i < MOST; i++) counts[i] = 1 + i * i;
  for (uint32_t n = 2; n <= MOST; n++)
    for (uint32_t round = 0; round < ROUNDS; round++)
      for (uint32_t op = 0; op < OPS; op++) {
        uint32_t times[MOST * MOST + 1] = {0};
        for (uint32_t pass = n * round; pass < n * (round + 1); pass++) {
          const sn_mix mix = {counts, n, pass};
          times[sn_mix_threads(&mix, op)]++;
          assert_int_equal(sn_mix_threads(&mix, op) == sn_mix_threads(&mix, op + 1), round == 0);
        }
        for (uint32_t i = 0; i < n; i++) assert_int_equal(times[counts[i]], 1);
      }
}

static sn_plan *plan_of_mix(const world *w, const sn_schedule *schedule, const sn_costs *costs, const sn_mix *mix) {
  sn_err err = SN_ERR_INIT;
  sn_corun_plans plans = {0};
  sn_options options = SN_OPTIONS_INIT;
  options.corun.mix = mix;
  const sn_corun_question question = {.device = &w->device, .options = &options, .costs = costs};
  sn_plan *plan =
      sn_corun_plans_make(&plans, &question, schedule, parse_strategy("liveness+corun=path"), UINT64_C(1) << 40, &err);
  must(&err);
  sn_corun_plans_clear(&plans);
  return plan;
}

/* One after another, 2 us between operations and 5 us more between teams, each operation as long as pretended, but in
 * one mix of three by 100 ns more, and with all cores in every mix. */
static void play(const sn_plan *plan, uint32_t pass, sn_trace *trace) {
  int64_t now = 0;
  const sn_instr *before = NULL;
  for (uint32_t i = 0; i < plan->n_instrs; i++) {
    const sn_instr *instr = &plan->instrs[i];
    if (instr->kind != SN_COMPUTE) continue;
    const sn_step *s = &plan->route->steps[instr->id];
    uint32_t threads = plan->teams[instr->team].count;
    bool longer = pass / 3 == 2 || (pass >= 3 && threads == CORES);
    if (before) now += before->team == instr->team ? 2000 : 7000;
    before = instr;
    trace->spans[i].begin_ns = now;
    now += pretended_ns(s->layer, s->pass, (sn_step_part)instr->part, threads) + (longer ? 100 : 0);
    trace->spans[i].end_ns = now;
  }
}

typedef struct seen {
  const world *w;
  uint32_t n;
} seen;

/* Layers have shapes of their own, so the pretended calibration has the same timings. */
static sn_status compare_with_pretended(void *user, sn_timing timing) {
  seen *s = user;
  const sn_calibration *c = s->w->calibration;
  const sn_timing *same = bsearch(&timing, c->timings, c->n_timings, sizeof timing, sn_timing_compare);
  assert_non_null(same);
  assert_int_equal(timing.ns, same->ns);
  assert_int_equal(timing.spread_ns, same->spread_ns);
  assert_int_equal(timing.samples, 3);
  assert_true(timing.formula_ns > 0);
  s->n++;
  return SN_OK;
}

static void mixes_are_made_into_medians(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  world w = open_world(three, 3);
  sn_schedule *schedule = sn_schedule_new(w.route, SN_RECOMPUTE_NONE, &err);
  sn_costs *costs = sn_costs_new(w.net, &w.device, &err);
  sn__team_times *times = sn__team_times_new(w.net, CORES, three, 3, &err);
  must(&err);
  uint32_t n_mixes = 0;
  for (const sn_mix *mix; (mix = sn__team_times_next_mix(times)); n_mixes++) {
    sn_plan *plan = plan_of_mix(&w, schedule, costs, mix);
    sn_trace trace;
    sn_trace_init(&trace, plan, &err);
    must(&err);
    play(plan, mix->pass, &trace);
    sn__team_times_visit(times, plan, &trace);
    sn_trace_clear(&trace);
    sn_plan_free(plan);
  }
  assert_int_equal(n_mixes + 1, sn__team_times_plans(CORES, three, 3));
  /* A third of the operations, in most mixes, is on all cores. */
  double ops = w.calibration->n_timings / 3.0;
  assert_true(fabs(sn__team_times_resize_ns(times) - (5000 + ops / 3 * 100 / (ops - 1))) < 1e-6);
  seen s = {&w, 0};
  assert_int_equal(sn__team_times_each(times, &w.device.cores, SN_OPTIMIZER_MOMENTUM, compare_with_pretended, &s),
                   SN_OK);
  assert_int_equal(s.n, w.calibration->n_timings);
  sn__team_times_free(times);
  sn_costs_free(costs);
  sn_schedule_free(schedule);
  close_world(&w);
}

static sn_calibration *found;

static sn_calibration *find(void *unused, const sn_machine_info *info, sn_err *err) {
  (void)unused, (void)info, (void)err;
  sn_calibration *c = found;
  found = NULL;
  return c;
}

static sn_calibration *calibrate(const sn_net *net, const sn_cores *cores, const uint32_t *counts, uint32_t n,
                                 sn_err *err) {
  sn_session_options options = SN_SESSION_OPTIONS_INIT;
  options.machine.threads = 1;
  options.machine.cores = cores;
  options.iterations = 2;
  options.calibration = find;
  sn_calibration *c =
      sn_calibrate("cpu", net->name, net, &options, &(sn_calibrate_wish){.teams = counts, .n_teams = n}, err);
  if (err->code == SN_BAD_DEVICE) skip();
  return c;
}

static uint32_t count_threads(const sn_calibration *c, uint32_t threads) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < c->n_timings; i++) n += c->timings[i].threads == threads;
  return n;
}

/* Measured for real, on cores that share the processors there are; then predicted with. */
static void a_machine_is_calibrated(void **state) {
  (void)state;
  static const uint32_t counts[] = {3, 4}, too_many[] = {1, 9};
  sn_err err = SN_ERR_INIT;
  sn_net *net = load_net("lenet", 4);
  const sn_cores cores = sn_cores_estimate(CORES, 1, 1);
  sn_calibration *c = calibrate(net, &cores, counts, 2, &err);
  must(&err);
  assert_int_equal(c->cores.count, CORES);
  assert_true(c->cores.neighbour >= 0 && c->cores.neighbour <= SN_MAX_INTERFERENCE);
  for (uint32_t threads = 1; threads <= CORES; threads++) assert_int_equal(count_threads(c, threads), 24);
  assert_true(c->cores.resize_ns >= 0 && c->cores.resize_ns <= SN_MAX_RESIZE_NS);
  for (uint32_t i = 0; i < c->n_timings; i++)
    assert_true(c->timings[i].threads == 0 || (c->timings[i].formula_ns > 0 && c->timings[i].samples >= 3));
  found = c;
  c = calibrate(net, &cores, NULL, 0, &err); /* keeps what was measured of teams */
  must(&err);
  assert_int_equal(c->cores.count, CORES);
  assert_int_equal(count_threads(c, 3), 24);
  sn_session_options options = SN_SESSION_OPTIONS_INIT;
  options.machine.threads = 1;
  options.machine.cores = &cores;
  options.predict = true;
  options.calibration = find;
  found = c;
  sn_session *session = sn_session_open("lenet", net, &options, &err);
  sn_session_add(session, parse_strategy("liveness+corun=path"), &err);
  must(&err);
  const sn_run *run = sn_session_run(session);
  assert_true(run->results[0].iteration_ns > 0 && run->results[0].known_ns > 0);
  for (int i = 0; i < 2; i++) assert_int_equal(run->results[i].corun.measured_ops, 24);
  sn_session_close(session);
  assert_null(calibrate(net, &cores, too_many, 2, &err));
  assert_int_equal(err.code, SN_BAD_USAGE);
  sn_net_free(net);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(measured_counts_are_taken_as_they_are),
      cmocka_unit_test(other_shapes_are_the_law_corrected),
      cmocka_unit_test(plans_take_the_measured_times),
      cmocka_unit_test(whole_steps_have_times_of_their_own),
      cmocka_unit_test(the_store_gives_them_back),
      cmocka_unit_test(hostile_timings_are_planned_with),
      cmocka_unit_test(interference_explains_what_was_seen),
      cmocka_unit_test(mixes_have_every_operation_with_every_count),
      cmocka_unit_test(mixes_are_made_into_medians),
      cmocka_unit_test(a_machine_is_calibrated),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
