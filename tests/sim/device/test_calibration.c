/* Calibrations: measured times where there are any, what neighbours say elsewhere; stored and read back. */
#include "base/arena.h"
#include "db/calibrations.h"
#include "exec/machine/cpu_kernels.h"
#include "exec/session/calibrate.h"
#include "sim/device/neighbours.h"
#include "tests/support/pipeline.h"
#include "tests/support/sanitized.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_TIMINGS = 400 };

static const uint8_t no_algo[2] = {SN_IMPLICIT_GEMM, SN_IMPLICIT_GEMM};

/* Every step of the net takes `times` as long as the formulas say; CONV is timed as a whole. */
static sn_calibration *pretend(const sn_net *net, const sn_device *profile, double times) {
  sn_err err = SN_ERR_INIT;
  sn_arena *arena = sn_arena_new();
  sn_calibration *c = sn_arena_alloc(arena, 1, sizeof *c);
  sn_timing *t = sn_arena_alloc(arena, MOST_TIMINGS, sizeof *t);
  sn_costs *costs = sn_costs_new(net, profile, &err);
  must(&err);
  *c = (sn_calibration){.name = "mine",
                        .backend = "cpu",
                        .hardware = "h",
                        .libraries = "l",
                        .created = "",
                        .profile = *profile,
                        .out_bandwidth = 1e9,
                        .in_bandwidth = 2e9,
                        .together_bandwidth = 3e9,
                        .out_latency_ns = 7,
                        .in_latency_ns = 9,
                        .timings = t,
                        .arena = arena};
  for (uint32_t i = 1; i < net->n_layers; i++) {
    char shape[SN_SHAPE_TEXT];
    sn_costs_keep_smallest(costs, i);
    for (sn_pass pass = 0; pass < SN_PASSES; pass++) {
      if (pass == SN_UPDATE && net->layers[i].parameters == 0) continue;
      int64_t ns = sn_costs_step(costs, i, pass, no_algo);
      t[c->n_timings] =
          (sn_timing){.shape = sn_arena_text(arena, sn_shape_text(net, &net->layers[i], shape, sizeof shape)),
                      .op = net->layers[i].op,
                      .pass = pass,
                      .kernel = SN_CONV_KERNELS,
                      .algo = SN_CONV_ALGOS,
                      .workspace_bytes = 4096,
                      .ns = llround((double)ns * times),
                      .formula_ns = ns,
                      .samples = 3};
      bool again = false;
      for (uint32_t j = 0; j < c->n_timings; j++) again = again || sn_timing_compare(&t[j], &t[c->n_timings]) == 0;
      c->n_timings += !again;
      assert_true(c->n_timings < MOST_TIMINGS);
    }
  }
  sn_costs_free(costs);
  qsort(t, c->n_timings, sizeof *t, sn_timing_compare);
  sn_calibration_fit(c, &err);
  must(&err);
  return c;
}

static void measured_times_replace_formulas(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_net *net = load_net("alexnet", 4);
  sn_device gpu = load_gpu("k40c");
  sn_calibration *c = pretend(net, &gpu, 3);
  sn_costs *formulas = sn_costs_new(net, &gpu, &err), *costs = sn_costs_new(net, &gpu, &err);
  must(&err);
  sn_calibration_apply(c, net, costs);
  for (uint32_t i = 1; i < net->n_layers; i++)
    for (sn_pass pass = 0; pass < SN_UPDATE; pass++) {
      int64_t ns = sn_costs_step(costs, i, pass, no_algo);
      sn_costs_keep_smallest(formulas, i);
      assert_true(llabs(ns - 3 * sn_costs_step(formulas, i, pass, no_algo)) <= 3);
      assert_true(sn_costs_step_known(costs, i, pass, no_algo) == ns);
      assert_true(sn_costs_scratch(costs, i, pass) == 4096);
    }
  assert_true(c->residual >= 1 && c->residual < 2);
  sn_costs_free(formulas);
  sn_costs_free(costs);
  sn_calibration_free(c);
  sn_net_free(net);
}

/* Another batch has other shapes: for a fifth image a step takes a quarter more than for four, but for what does not
 * depend on the batch. */
static void other_batches_follow(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_net *net = load_net("alexnet", 4), *other = load_net("alexnet", 5);
  sn_device gpu = load_gpu("k40c");
  sn_calibration *c = pretend(net, &gpu, 2);
  sn_costs *four = sn_costs_new(net, &gpu, &err), *five = sn_costs_new(other, &gpu, &err);
  must(&err);
  sn_calibration_apply(c, net, four);
  sn_calibration_apply(c, other, five);
  for (uint32_t i = 1; i < other->n_layers; i++) {
    double growth =
        (double)sn_costs_step(five, i, SN_FORWARD, no_algo) / (double)sn_costs_step(four, i, SN_FORWARD, no_algo);
    assert_true(growth > 1 && growth < 1.3);
    assert_true(sn_costs_step_known(five, i, SN_FORWARD, no_algo) == 0);
  }
  sn_costs_free(four);
  sn_costs_free(five);
  sn_calibration_free(c);
  sn_net_free(net);
  sn_net_free(other);
}

static double time_of(const sn_calibration *c, sn_op op, sn_pass pass, const char *shape, uint32_t kernel,
                      uint32_t algo) {
  sn_neighbour place;
  return sn_neighbours_place(c, op, pass, shape, &place) ? sn_neighbours_time(c, place, kernel, algo) : 0;
}

static double step_time(const sn_calibration *c, sn_op op, sn_pass pass, const char *shape) {
  return time_of(c, op, pass, shape, SN_CONV_KERNELS, SN_CONV_ALGOS);
}

static sn_timing timing_of(const char *shape, sn_op op, int64_t ns) {
  return (sn_timing){.shape = shape,
                     .op = op,
                     .pass = SN_FORWARD,
                     .kernel = SN_CONV_KERNELS,
                     .algo = SN_CONV_ALGOS,
                     .ns = ns,
                     .formula_ns = 1,
                     .samples = 1};
}

/* With a flop and a byte a nanosecond and 100 ns of launch. */
static double conv_ns(double channels, double out_channels, double kernel, double positions) {
  double weights = channels * out_channels * kernel;
  return 2 * weights * positions + 4 * (weights + (channels + out_channels) * positions) + 100;
}

/* 1x1 convolutions take half of what the rates say, 3x3 ones four times as much. */
static void shapes_follow_their_neighbours(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  double one = conv_ns(64, 64, 1, 100), three = conv_ns(64, 64, 9, 100);
  sn_timing t[] = {timing_of("CONV 1x64x10x10 to 64x10x10 1x1 s1x1 p0x0 g1", SN_CONV, llround(one / 2)),
                   timing_of("CONV 1x64x10x10 to 64x10x10 3x3 s1x1 p1x1 g1", SN_CONV, llround(three * 4)),
                   timing_of("CONV 1x64x10x10 to 64x10x10 3x3 s1x1 p1x1 g64", SN_CONV, 9000),
                   timing_of("POOL 4x64x10x10 to 64x5x5 average 2x2 s2x2 p0x0", SN_POOL, 3000),
                   timing_of("POOL 4x64x10x10 to 64x5x5 max 2x2 s2x2 p0x0", SN_POOL, 700),
                   timing_of("what is this", SN_FC, 700)};
  sn_calibration c = {.profile = {.flops = 1e9, .memory_bandwidth = 1e9, .launch_ns = 100},
                      .timings = t,
                      .n_timings = sizeof t / sizeof t[0],
                      .arena = sn_arena_new()};
  sn_calibration_fit(&c, &err);
  must(&err);
  assert_int_equal(c.n_neighbours, 5);
  assert_true(fabs(c.neighbours[0].roofline_ns / one - 1) < 1e-9);
  /* Twice the channels in, half of them out: so far is the 1x1; the 3x3 is log2(9) further along another axis. */
  double near = 0.5 * 0.5 + 1.4 * 1.4 + 0.3, far = near + 1.5 * 1.5 * log2(9) * log2(9), rooflines = 0, measured = 0;
  for (int i = 0; i < 2; i++) rooflines += c.neighbours[i].roofline_ns, measured += c.neighbours[i].ns;
  near = 1 / (near * near);
  far = 1 / (far * far);
  double expected = near * log(0.5) + far * log(4) + 0.02 * log(measured / rooflines);
  expected = conv_ns(128, 32, 1, 100) * exp(expected / (near + far + 0.02));
  double ns = step_time(&c, SN_CONV, SN_FORWARD, "CONV 1x128x10x10 to 32x10x10 1x1 s1x1 p0x0 g1 bias");
  assert_true(fabs(ns / expected - 1) < 1e-4); /* timings are whole */
  /* The only one of its family; then a mode and a pass that were not measured, and no shape. */
  ns = step_time(&c, SN_POOL, SN_FORWARD, "POOL 4x64x10x10 to 64x5x5 max 2x2 s2x2 p0x0");
  assert_true(fabs(ns / 700 - 1) < 1e-9);
  assert_true(step_time(&c, SN_POOL, SN_FORWARD, "POOL 4x64x10x10 to 64x1x1 global max") == 0);
  assert_true(step_time(&c, SN_CONV, SN_BACKWARD, t[0].shape) == 0);
  assert_true(step_time(&c, SN_CONV, SN_FORWARD, "") == 0);
  /* The 1x1 and the 3x3 predict each other, badly. */
  assert_true(c.neighbours[0].log_error > 0.8 * log(8) && c.neighbours[1].log_error < -0.8 * log(8));
  assert_true(c.residual > 1);
  sn_arena_free(c.arena);
}

static sn_timing algorithm_of(const char *shape, sn_conv_algo algo, int64_t ns) {
  sn_timing t = timing_of(shape, SN_CONV, ns);
  t.kernel = SN_CONV_FORWARD;
  t.algo = algo;
  return t;
}

/* Each algorithm has neighbours of its own, only the fastest of a shape counts in the residual, and what is left of a
 * step is no neighbour. */
static void algorithms_follow_their_neighbours(void **state) {
  (void)state;
  static const char *const shapes[] = {"CONV 1x32x10x10 to 64x10x10 3x3 s1x1 p1x1 g1",
                                       "CONV 1x64x10x10 to 64x10x10 3x3 s1x1 p1x1 g1"};
  sn_err err = SN_ERR_INIT;
  double small = conv_ns(32, 64, 9, 100), large = conv_ns(64, 64, 9, 100);
  sn_timing t[] = {algorithm_of(shapes[0], SN_IMPLICIT_GEMM, llround(3 * small)),
                   algorithm_of(shapes[0], SN_FFT, llround(50 * small)),
                   algorithm_of(shapes[0], SN_WINOGRAD, llround(small / 2)),
                   timing_of(shapes[0], SN_CONV, 7),
                   algorithm_of(shapes[1], SN_IMPLICIT_GEMM, llround(3 * large)),
                   algorithm_of(shapes[1], SN_WINOGRAD, llround(large / 2))};
  uint32_t counting = 0;
  sn_calibration c = {.profile = {.flops = 1e9, .memory_bandwidth = 1e9, .launch_ns = 100},
                      .timings = t,
                      .n_timings = sizeof t / sizeof t[0],
                      .arena = sn_arena_new()};
  qsort(t, c.n_timings, sizeof *t, sn_timing_compare);
  sn_calibration_fit(&c, &err);
  must(&err);
  assert_int_equal(c.n_neighbours, 5);
  for (uint32_t i = 0; i < c.n_neighbours; i++) counting += c.neighbours[i].counts;
  assert_int_equal(counting, 2);
  assert_true(fabs(c.residual - 1) < 1e-3); /* the fastest predict each other; the slow one has nobody */
  const char *other = "CONV 1x48x10x10 to 64x10x10 3x3 s1x1 p1x1 g1";
  double roof = conv_ns(48, 64, 9, 100);
  assert_true(fabs(time_of(&c, SN_CONV, SN_FORWARD, other, SN_CONV_FORWARD, SN_IMPLICIT_GEMM) / roof - 3) < 1e-3);
  assert_true(fabs(time_of(&c, SN_CONV, SN_FORWARD, other, SN_CONV_FORWARD, SN_WINOGRAD) / roof - 0.5) < 1e-3);
  assert_true(time_of(&c, SN_CONV, SN_FORWARD, other, SN_CONV_FORWARD, SN_GEMM) == 0);
  assert_true(step_time(&c, SN_CONV, SN_FORWARD, other) == 0);
  sn_arena_free(c.arena);
}

/* A shape that was not measured is planned with what the neighbours say of each algorithm; factors know the others. */
static void other_shapes_get_times_of_neighbours(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_net *net = load_net("alexnet", 16);
  sn_device gpu = load_gpu("v100_16");
  uint32_t count;
  sn_timing t[] = {algorithm_of("CONV 16x200x27x27 to 256x27x27 3x3 s1x1 p1x1 g1", SN_IMPLICIT_GEMM, 1000),
                   algorithm_of("CONV 16x200x27x27 to 256x27x27 3x3 s1x1 p1x1 g1", SN_FFT_TILING, 9000000)};
  sn_calibration c = {.profile = gpu, .timings = t, .n_timings = 2, .arena = sn_arena_new()};
  sn_costs *costs = sn_costs_new(net, &gpu, &err);
  must(&err);
  sn_calibration_fit(&c, &err);
  must(&err);
  sn_calibration_apply(&c, net, costs);
  for (uint32_t i = 1; i < net->n_layers; i++) {
    if (net->layers[i].op != SN_CONV) continue;
    char shape[SN_SHAPE_TEXT];
    sn_shape_text(net, &net->layers[i], shape, sizeof shape);
    const sn_conv_choice *choices = sn_costs_conv(costs, i, SN_CONV_FORWARD, &count);
    double said = time_of(&c, SN_CONV, SN_FORWARD, shape, SN_CONV_FORWARD, SN_IMPLICIT_GEMM);
    assert_int_equal(choices[0].algo, SN_IMPLICIT_GEMM); /* nothing is as fast as the one that was */
    assert_true(said > 0 && choices[0].ns == llround(said) && !choices[0].measured);
  }
  sn_arena_free(c.arena);
  sn_costs_free(costs);
  sn_net_free(net);
}

/* Algorithms that were timed one by one are chosen by these times. */
static void algorithms_are_chosen_by_measured_times(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_net *net = load_net("alexnet", 16);
  sn_device gpu = load_gpu("v100_16");
  uint32_t layer = 1, count;
  while (net->layers[layer].op != SN_CONV || net->layers[layer].attr->stride_h != 1) layer++;
  sn_costs *costs = sn_costs_new(net, &gpu, &err);
  must(&err);
  const sn_conv_choice *choices = sn_costs_conv(costs, layer, SN_CONV_FORWARD, &count);
  assert_true(count > 1);
  sn_conv_algo slow = choices[0].algo, smallest = choices[count - 1].algo;
  char shape[SN_SHAPE_TEXT];
  sn_timing t[2];
  for (int i = 0; i < 2; i++)
    t[i] = (sn_timing){.shape = sn_shape_text(net, &net->layers[layer], shape, sizeof shape),
                       .op = SN_CONV,
                       .pass = SN_FORWARD,
                       .kernel = SN_CONV_FORWARD,
                       .algo = i ? smallest : slow,
                       .ns = i ? 1 : 1000000000,
                       .formula_ns = 1000,
                       .samples = 1};
  qsort(t, 2, sizeof *t, sn_timing_compare);
  sn_calibration c = {.profile = gpu, .timings = t, .n_timings = 2, .arena = sn_arena_new()};
  sn_calibration_fit(&c, &err);
  must(&err);
  sn_calibration_apply(&c, net, costs);
  choices = sn_costs_conv(costs, layer, SN_CONV_FORWARD, &count);
  assert_int_equal(choices[0].algo, smallest);
  assert_true(choices[0].ns == 1 && choices[0].measured);
  sn_arena_free(c.arena);
  sn_costs_free(costs);
  sn_net_free(net);
}

static void assert_same(const sn_calibration *a, const sn_calibration *b) {
  assert_string_equal(a->name, b->name);
  assert_string_equal(a->hardware, b->hardware);
  assert_int_equal(a->n_timings, b->n_timings);
  assert_true(a->profile.flops == b->profile.flops && a->together_bandwidth == b->together_bandwidth);
  assert_true(a->out_latency_ns == b->out_latency_ns && a->in_latency_ns == b->in_latency_ns);
  assert_true(a->residual == b->residual);
  assert_true(a->profile.compute_speed == b->profile.compute_speed && a->profile.copy_speed == b->profile.copy_speed);
  assert_true(a->profile.kernel_bytes == b->profile.kernel_bytes);
  for (uint32_t i = 0; i < a->n_timings; i++) {
    assert_int_equal(sn_timing_compare(&a->timings[i], &b->timings[i]), 0);
    assert_true(a->timings[i].ns == b->timings[i].ns && a->timings[i].samples == b->timings[i].samples);
    assert_true(a->timings[i].workspace_bytes == b->timings[i].workspace_bytes);
  }
}

static void the_store_gives_them_back(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_net *net = load_net("lenet", 4);
  sn_device gpu = load_gpu("k40c");
  sn_calibration *c = pretend(net, &gpu, 3);
  c->profile.compute_speed = 0.625, c->profile.copy_speed = 0.75;
  c->profile.kernel_bytes = 220000;
  sn_store *store = sn_store_open(":memory:", &err);
  must(&err);
  assert_null(sn_store_calibration(store, "mine", NULL, NULL, &err));
  for (int i = 0; i < 2; i++) { /* the second replaces the first */
    sn_store_put_calibration(store, c, &err);
    must(&err);
  }
  c->libraries = "newer";
  sn_store_put_calibration(store, c, &err);
  sn_calibration *newest = sn_store_calibration(store, "mine", NULL, NULL, &err);
  sn_calibration *exact = sn_store_calibration(store, "mine", "h", "l", &err);
  assert_null(sn_store_calibration(store, "mine", "h", "other", &err));
  must(&err);
  assert_same(c, newest);
  assert_same(c, exact);
  assert_string_equal(newest->libraries, "newer");
  assert_string_equal(exact->libraries, "l");
  assert_int_equal(strlen(exact->created), strlen("2026-11-20 09:31:07"));
  sn_calibration_free(newest);
  sn_calibration_free(exact);
  sn_calibration_free(c);
  sn_store_close(store);
  sn_net_free(net);
}

/* Copies beside computation that go at half the speed make an iteration longer, and nothing else of it. */
static void speeds_make_copies_dear(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_net *net = load_net("alexnet", 16);
  sn_device gpu = load_gpu("k40c"), shared = gpu;
  shared.compute_speed = shared.copy_speed = 0.5;
  sn_strategy strategies[2] = {parse_strategy("liveness"), parse_strategy("liveness+offload")};
  sn_options options = SN_OPTIONS_INIT;
  sn_run *a = sn_simulate("alexnet", net, &gpu, strategies, 2, &options, &err);
  sn_run *b = sn_simulate("alexnet", net, &shared, strategies, 2, &options, &err);
  must(&err);
  assert_true(a->results[0].iteration_ns == b->results[0].iteration_ns);
  assert_true(b->results[1].iteration_ns > a->results[1].iteration_ns);
  assert_true(b->results[1].compute_ns > a->results[1].compute_ns);
  assert_int_equal(b->results[1].offload_bytes, a->results[1].offload_bytes);
  sn_run_free(a);
  sn_run_free(b);
  sn_net_free(net);
}

/* The pool that a strategy takes on this machine. */
static uint64_t pool_of(const sn_net *net, const sn_session_options *options, const char *strategy) {
  sn_err err = SN_ERR_INIT;
  sn_session *session = sn_session_open(net->name, net, options, &err);
  if (err.code == SN_BAD_DEVICE) skip(); /* this build has no kernels */
  must(&err);
  sn_session_add(session, parse_strategy(strategy), &err);
  must(&err);
  uint64_t bytes = sn_session_run(session)->results[0].reserved_pool_bytes;
  sn_run_free(sn_session_take(session));
  sn_session_close(session);
  return bytes;
}

/* Where baseline does not fit, the other plans have all steps; where none fits, nothing is calibrated. */
static void a_small_machine_is_calibrated(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_net *net = load_net("lenet", 4);
  sn_session_options options = SN_SESSION_OPTIONS_INIT;
  options.machine.threads = 1;
  options.iterations = 2;
  options.strict_pool = true;
  uint64_t small = pool_of(net, &options, "liveness+offload"),
           other = pool_of(net, &options, "liveness+recompute=cost");
  options.pool_bytes = small > other ? small : other;
  assert_true(options.pool_bytes <
              pool_of(net, &(sn_session_options){.iterations = 2, .machine = options.machine}, "baseline"));
  sn_calibration *c = sn_calibrate("cpu", "lenet", net, &options, &(sn_calibrate_wish){0}, &err);
  must(&err);
  sn_device gpu = c->profile;
  sn_costs *costs = sn_costs_new(net, &gpu, &err);
  must(&err);
  sn_calibration_apply(c, net, costs);
  for (uint32_t i = 1; i < net->n_layers; i++)
    for (sn_pass pass = SN_FORWARD; pass <= SN_BACKWARD; pass++)
      assert_true(sn_costs_step_known(costs, i, pass, no_algo) > 0);
  sn_costs_free(costs);
  sn_calibration_free(c);
  options.pool_bytes = 4096;
  assert_null(sn_calibrate("cpu", "lenet", net, &options, &(sn_calibrate_wish){0}, &err));
  assert_int_equal(err.code, SN_NO_FIT);
  sn_net_free(net);
}

/* Measured for real, then simulated: all of the time is known, and it is that of the steps that ran. */
static void a_machine_is_calibrated(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_net *net = load_net("lenet", 4);
  sn_session_options options = SN_SESSION_OPTIONS_INIT;
  options.machine.threads = 1;
  options.iterations = 2;
  sn_calibration *c = sn_calibrate("cpu", "lenet", net, &options, &(sn_calibrate_wish){0}, &err);
  if (err.code == SN_BAD_DEVICE) skip();
  must(&err);
  assert_true(c->out_bandwidth > 1e7 && c->in_bandwidth > 1e7 && c->together_bandwidth > 1e7);
  assert_true(c->out_latency_ns > 0 && c->in_latency_ns > 0);
  double compute = c->profile.compute_speed, copies = c->profile.copy_speed;
  assert_true(compute == 0 ? copies == 0 : compute >= 0.1 && compute <= 1 && copies >= 0.1 && copies <= 1);
  sn_options simulated = SN_OPTIONS_INIT;
  simulated.calibration = c;
  sn_strategy strategies[2] = {parse_strategy("baseline"), parse_strategy("liveness+recompute=cost")};
  sn_run *run = sn_simulate("lenet", net, &c->profile, strategies, 2, &simulated, &err);
  must(&err);
  for (int i = 0; i < 2; i++) {
    assert_true(run->results[i].known_ns == run->results[i].compute_ns);
    assert_true(run->results[i].compute_ns > 0);
  }
  assert_true(run->results[1].compute_ns > run->results[0].compute_ns); /* it runs forwards again */
  sn_run_free(run);
  sn_calibration_free(c);
  sn_net_free(net);
}

/* Each shape of CONV, DECONV or FC is in the context once, however many layers have it. */
static void kernels_are_counted_by_shape(void **state) {
  (void)state;
  static const struct {
    const char *net;
    uint32_t shapes; /* by hand: of lenet all four differ; blocks of vgg16 repeat one, and two */
  } cases[] = {{"lenet", 4}, {"vgg16", 12}, {"resnet:n1=2,n2=1,n3=1,n4=1", 0}, {"resnet:n1=9,n2=1,n3=1,n4=1", 0}};
  uint32_t shapes[4];
  for (int i = 0; i < 4; i++) {
    sn_net *net = load_net(cases[i].net, 2);
    sn_device d = {.context_bytes = 1000};
    shapes[i] = sn_kernel_shapes(net);
    assert_true(cases[i].shapes == 0 || shapes[i] == cases[i].shapes);
    assert_true(sn_device_context(&d, net, false) == 1000);
    d.kernel_bytes = 7;
    assert_true(sn_device_context(&d, net, false) == 1000 + 7 * shapes[i]);
    assert_true(sn_device_bare_context(&d, true) == 1000);
    d.library_context_bytes = 2000;
    assert_true(sn_device_context(&d, net, true) == 2000 + 7 * shapes[i]);
    sn_net_free(net);
  }
  assert_int_equal(shapes[2], shapes[3]); /* more blocks of the same */
}

/* What was measured of a small ResNet's kernels says what densenet121's take: about, as other shapes are made
 * otherwise. */
static void kernels_take_what_was_measured(void **state) {
  (void)state;
  if (SANITIZED) skip(); /* whose heap gives nothing back, so that what is measured is something else */
  sn_err err = SN_ERR_INIT;
  sn_net *small = load_net("resnet:n1=1,n2=1,n3=1,n4=1", 1), *large = load_net("densenet121", 1);
  sn_session_options options = SN_SESSION_OPTIONS_INIT;
  options.machine.threads = 1;
  options.iterations = 1;
  sn_calibration *c = sn_calibrate("cpu", "resnet", small, &options, &(sn_calibrate_wish){0}, &err);
  if (err.code == SN_BAD_DEVICE) skip();
  must(&err);
  sn_cpu_kernels *kernels = sn_cpu_kernels_new(large, 1, true, &err);
  must(&err);
  double predicted = (double)c->profile.kernel_bytes * sn_kernel_shapes(large);
  double measured = (double)sn_cpu_kernels_made_bytes(kernels);
  if (!(predicted > measured / 3 && predicted < measured * 3))
    fail_msg("%g predicted, %g measured", predicted, measured);
  sn_cpu_kernels_free(kernels);
  sn_calibration_free(c);
  sn_net_free(small);
  sn_net_free(large);
}

/* What failed when it was run is not chosen, whatever the formulas say; but something must be. */
static void failed_algorithms_are_left_out(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_net *net = load_net("alexnet", 16);
  sn_device gpu = load_gpu("v100_16");
  uint32_t layer = 1, before, count;
  while (net->layers[layer].op != SN_CONV) layer++;
  sn_costs *costs = sn_costs_new(net, &gpu, &err);
  must(&err);
  const sn_conv_choice *choices = sn_costs_conv(costs, layer, SN_CONV_FORWARD, &before);
  sn_conv_algo fastest = choices[0].algo;
  char shape[SN_SHAPE_TEXT];
  sn_timing t[SN_CONV_ALGOS] = {{.shape = sn_shape_text(net, &net->layers[layer], shape, sizeof shape),
                                 .op = SN_CONV,
                                 .pass = SN_FORWARD,
                                 .kernel = SN_CONV_FORWARD,
                                 .algo = fastest,
                                 .formula_ns = 1000}};
  sn_calibration c = {.profile = gpu, .timings = t, .n_timings = 1, .arena = sn_arena_new()};
  sn_calibration_fit(&c, &err);
  must(&err);
  assert_true(c.factor[SN_CONV][SN_FORWARD] == 1);
  sn_calibration_apply(&c, net, costs);
  choices = sn_costs_conv(costs, layer, SN_CONV_FORWARD, &count);
  for (uint32_t i = 0; i < count; i++) assert_int_not_equal(choices[i].algo, fastest);
  for (sn_conv_algo algo = 0; algo < SN_CONV_ALGOS; algo++) {
    t[algo] = t[0];
    t[algo].algo = algo;
  }
  c.n_timings = SN_CONV_ALGOS;
  sn_calibration_apply(&c, net, costs);
  sn_costs_conv(costs, layer, SN_CONV_FORWARD, &count);
  assert_int_equal(count, 1);
  sn_arena_free(c.arena);
  sn_costs_free(costs);
  sn_net_free(net);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(algorithms_follow_their_neighbours),
      cmocka_unit_test(other_shapes_get_times_of_neighbours),
      cmocka_unit_test(measured_times_replace_formulas),
      cmocka_unit_test(other_batches_follow),
      cmocka_unit_test(shapes_follow_their_neighbours),
      cmocka_unit_test(algorithms_are_chosen_by_measured_times),
      cmocka_unit_test(failed_algorithms_are_left_out),
      cmocka_unit_test(the_store_gives_them_back),
      cmocka_unit_test(speeds_make_copies_dear),
      cmocka_unit_test(kernels_take_what_was_measured),
      cmocka_unit_test(kernels_are_counted_by_shape),
      cmocka_unit_test(a_machine_is_calibrated),
      cmocka_unit_test(a_small_machine_is_calibrated),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
