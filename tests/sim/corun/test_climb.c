/* Climbing: ladders, samples, predictions and accuracy, with the figures of corun.md, section 3; and the times of a
 * route's operations, by class and kind. */
#include "sim/corun/climb.h"

#include "sim/corun/times.h"
#include "sim/device/scaling.h"
#include "sim/graph/route.h"
#include "tests/support/pipeline.h"

#include <math.h>
#include <stdlib.h>

enum { CORES = 68 };

static void one_over_p(int64_t *ns, uint32_t most) {
  for (uint32_t p = 1; p <= most; p++) ns[p] = llround(1e15 / p);
}

/* T = 1/p on 68 cores: 98.51, 95.08, 82.17, 32.50 % with 35, 18, 10, 6 samples. */
static void check_figures(void **state) {
  (void)state;
  static const struct {
    uint32_t interval, samples;
    double percent;
  } rows[] = {{2, 35, 98.51}, {4, 18, 95.08}, {8, 10, 82.17}, {16, 6, 32.50}};
  int64_t ns[CORES + 1], predicted[CORES + 1];
  one_over_p(ns, CORES);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    sn_climb climb = sn_climb_up(ns, CORES, rows[i].interval);
    sn_climb_predict(&climb, ns, CORES, predicted);
    assert_int_equal(climb.n_samples, rows[i].samples);
    assert_int_equal(climb.n_samples, (CORES - 1) / rows[i].interval + 2 - ((CORES - 1) % rows[i].interval == 0));
    assert_int_equal(climb.best, CORES);
    assert_true(fabs(100 * sn_climb_accuracy(&climb, ns, predicted) - rows[i].percent) < 0.005);
  }
}

/* Linear in 1/p is exact for 1/p, and up the powers of sqrt 2 it takes 12 steps from 1. */
static void geometric(void **state) {
  (void)state;
  static const uint16_t expected[] = {1, 2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64, 68};
  int64_t ns[CORES + 1], predicted[CORES + 1];
  one_over_p(ns, CORES);
  sn_climb climb = sn_climb_up(ns, CORES, SN_INTERVAL_GEOMETRIC);
  assert_int_equal(climb.n_samples, sizeof expected / sizeof expected[0]);
  assert_memory_equal(climb.at, expected, sizeof expected);
  sn_climb_predict(&climb, ns, CORES, predicted);
  for (uint32_t p = 1; p <= CORES; p++) assert_true(llabs(predicted[p] - ns[p]) <= 1);
  assert_true(sn_climb_accuracy(&climb, ns, predicted) > 0.999999);
}

static void ladders(void **state) {
  (void)state;
  uint16_t at[SN_MAX_CORES];
  assert_int_equal(sn_climb_ladder(10, 4, at), 4);
  assert_true(at[0] == 1 && at[1] == 5 && at[2] == 9 && at[3] == 10);
  assert_int_equal(sn_climb_ladder(9, 4, at), 3); /* no step at the end twice */
  assert_int_equal(sn_climb_ladder(9, 9, at), 2);
  assert_int_equal(sn_climb_ladder(2, 1, at), 2);
  assert_int_equal(sn_climb_ladder(2, SN_INTERVAL_GEOMETRIC, at), 2);
  assert_int_equal(sn_climb_ladder(SN_MAX_CORES, 1, at), SN_MAX_CORES);
  assert_int_equal(at[SN_MAX_CORES - 1], SN_MAX_CORES);
}

/* It stops behind the first that is slower; the fewest threads of equals; flat or rising behind the last sample. */
static void stops(void **state) {
  (void)state;
  static const int64_t valley[] = {0, 90, 80, 60, 50, 40, 45, 50, 90, 10, 5};
  static const int64_t level[] = {0, 90, 80, 60, 60, 60, 60, 60, 60, 60, 60};
  static const int64_t rising[] = {0, 50, 60, 70, 80, 90, 95, 97, 98, 99, 100};
  static const int64_t falling[] = {0, 100, 90, 80, 70, 60, 50, 40, 30, 20, 10};
  int64_t predicted[21];
  sn_climb climb = sn_climb_up(valley, 10, 2);
  assert_int_equal(climb.n_samples, 4); /* 1, 3, 5, 7 */
  assert_int_equal(climb.best, 5);
  sn_climb_predict(&climb, valley, 12, predicted);
  assert_true(predicted[2] == 75 && predicted[4] == 50 && predicted[6] == 45 && predicted[7] == 50);
  assert_true(predicted[8] == 55 && predicted[12] == 75); /* by 5 a thread */
  double error = (5.0 / 80 + 0.0 / 50 + 0.0 / 45) / 3;
  assert_true(fabs(sn_climb_accuracy(&climb, valley, predicted) - (1 - error)) < 1e-12);
  climb = sn_climb_up(level, 10, 1);
  assert_true(climb.n_samples == 10 && climb.best == 3);
  assert_true(sn_climb_accuracy(&climb, level, level) == 1); /* nothing was left out */
  climb = sn_climb_up(rising, 10, 3);
  assert_true(climb.n_samples == 2 && climb.best == 1 && climb.at[1] == 4);
  climb = sn_climb_up(falling, 10, 3);
  assert_true(climb.n_samples == 4 && climb.best == 10);
  sn_climb_predict(&climb, falling, 20, predicted);
  assert_true(predicted[20] == 10); /* never down */
}

static void interval_texts(void **state) {
  (void)state;
  static const char *const bad[] = {"0", "-1", "257", "x", "", "4.5", "geo"};
  char text[SN_INTERVAL_NAME];
  uint32_t interval = 7;
  sn_err err = SN_ERR_INIT;
  assert_int_equal(sn_interval_parse("geometric", &interval, &err), SN_OK);
  assert_int_equal(interval, SN_INTERVAL_GEOMETRIC);
  assert_string_equal(sn_interval_name(interval, text), "geometric");
  assert_int_equal(sn_interval_parse("16", &interval, &err), SN_OK);
  assert_string_equal(sn_interval_name(interval, text), "16");
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    sn_err wrong = SN_ERR_INIT;
    assert_int_equal(sn_interval_parse(bad[i], &interval, &wrong), SN_BAD_USAGE);
    assert_non_null(strstr(wrong.text, "geometric"));
  }
}

/* ---- times of a route ---- */

typedef struct made {
  sn_net *net;
  sn_route *route;
  sn_device device;
  sn_times *times;
} made;

static made make(const char *net, uint32_t batch, const char *gpu, uint32_t interval) {
  sn_err err = SN_ERR_INIT;
  made m = {.net = load_net(net, batch), .device = load_gpu(gpu)};
  m.route = sn_route_new(m.net, SN_DIALECT_SUPERNEURONS, SN_ORDER_ROUTE, &err);
  must(&err);
  m.times = sn_times_new(m.route, &m.device, SN_OPTIMIZER_MOMENTUM, interval, NULL, &err);
  must(&err);
  return m;
}

static void drop(made *m) {
  sn_times_free(m->times);
  sn_route_free(m->route);
  sn_net_free(m->net);
}

/* Each operation has its own law's times, whatever class it is in. */
static void every_operation(void **state) {
  (void)state;
  static const sn_kernel kernels[SN_STEP_PARTS] = {SN_WHOLE, SN_FILTER_GRADIENT, SN_DATA_GRADIENT};
  made m = make("inception_v3", 16, "knl7250", 4);
  const sn_cores *cores = &m.device.cores;
  uint32_t ops = 0;
  for (uint32_t i = 0; i < m.route->n_steps; i++) {
    sn_step_part parts[2];
    uint32_t n = sn_step_parts(m.route, i, parts);
    for (uint32_t k = 0; k < n; k++, ops++) {
      const sn_time_class *c = sn_times_of(m.times, i, parts[k]);
      const sn_step *step = &m.route->steps[i];
      sn_scaling law = sn_scaling_of(cores, m.net, step->layer, step->pass, kernels[parts[k]], SN_OPTIMIZER_MOMENTUM);
      for (uint32_t p = 1; p <= m.times->max_threads; p++) {
        assert_int_equal(c->ns[p], sn_scaling_ns(cores, &law, p));
        assert_int_equal(c->share[p], sn_scaling_share(cores, &law, p));
      }
      const sn_time_kind *kind = &m.times->kinds[c->kind];
      assert_true(kind->pass == step->pass && kind->part == parts[k]);
      assert_true(kind->op == m.net->layers[step->layer].op);
      assert_true(m.times->classes[kind->largest].ns[1] >= c->ns[1]);
      assert_int_equal(kind->threads, m.times->classes[kind->largest].best);
    }
  }
  assert_int_equal(ops, 934); /* corun.md, section 1 */
  assert_int_equal(m.times->n_ops, ops);
  drop(&m);
}

static void kinds_and_steps(void **state) {
  (void)state;
  made m = make("lenet", 64, "knl7250", 4);
  uint32_t instances = 0, most = 0;
  assert_int_equal(m.times->n_ops, 24);
  assert_int_equal(m.times->max_threads, 136);
  for (uint32_t i = 0; i < m.times->n_kinds; i++) instances += m.times->kinds[i].instances;
  assert_int_equal(instances, 24);
  for (uint32_t i = 0; i < m.times->n_classes; i++)
    if (m.times->classes[i].samples > most) most = m.times->classes[i].samples;
  assert_int_equal(m.times->profile_steps, 2 * most); /* packed and spread */
  drop(&m);
  m = make("lenet", 64, "manycore:cores=8", 1);
  assert_true(m.times->profile_steps <= 8 && m.times->accuracy == 1);
  drop(&m);
}

static void refused(void **state) {
  (void)state;
  sn_net *net = load_net("lenet", 4);
  sn_err err = SN_ERR_INIT, gpu = SN_ERR_INIT, wide = SN_ERR_INIT;
  sn_device k40c = load_gpu("k40c"), four = load_gpu("manycore:cores=4");
  sn_route *route = sn_route_new(net, SN_DIALECT_SUPERNEURONS, SN_ORDER_ROUTE, &err);
  assert_null(sn_times_new(route, &k40c, SN_OPTIMIZER_MOMENTUM, 4, NULL, &gpu));
  assert_int_equal(gpu.code, SN_BAD_USAGE);
  assert_non_null(strstr(gpu.text, "k40c is not made of cores"));
  assert_null(sn_times_new(route, &four, SN_OPTIMIZER_MOMENTUM, 5, NULL, &wide));
  assert_int_equal(wide.code, SN_BAD_USAGE);
  assert_non_null(strstr(wide.text, "--interval 5 is larger than the 4 cores"));
  sn_route_free(route);
  sn_net_free(net);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(check_figures),   cmocka_unit_test(geometric),      cmocka_unit_test(ladders),
      cmocka_unit_test(stops),           cmocka_unit_test(interval_texts), cmocka_unit_test(every_operation),
      cmocka_unit_test(kinds_and_steps), cmocka_unit_test(refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
