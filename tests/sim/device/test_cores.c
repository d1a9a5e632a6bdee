/* Devices made of cores: the law with constants that can be worked out by hand, slowing, the profile's block and every
 * way in which it can be wrong, estimates by name, and what existing strategies see of it. */
#include "sim/device/cores.h"

#include "sim/device/scaling.h"
#include "sim/graph/route.h"
#include "tests/support/pipeline.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

/* 10 cores of 1 GFLOP/s and 1 GB/s, 4 GB/s in all. */
static sn_cores ten(void) {
  sn_cores c = {.count = 10,
                .tile = 1,
                .slots = 2,
                .bandwidth = 4e9,
                .kernel_ns = 1000,
                .serial = 0.1,
                .doubled = 0.5,
                .neighbour = 0.25,
                .crowd = {1.75, 20, 28}};
  for (sn_law_kind k = 0; k < SN_LAW_KINDS; k++)
    c.law[k] = (sn_law){.flops = 1e9, .bandwidth = 1e9, .thread_ns = 10, .kernels = 1};
  c.law[SN_LAW_ACT].kernels = 4;
  return c;
}

static int64_t time_of(const sn_cores *c, sn_law_kind kind, double flops, double bytes, uint32_t threads) {
  sn_scaling s = sn_cores_scaling(c, kind, flops, bytes);
  return sn_scaling_ns(c, &s, threads);
}

/* w = 100 us: T(p) = 1 + 10 us + 90 us / v + 10 ns p. */
static void law_by_hand(void **state) {
  (void)state;
  sn_cores c = ten();
  assert_int_equal(time_of(&c, SN_LAW_FC, 100e3, 0, 1), 1000 + 10000 + 90000 + 10);
  assert_int_equal(time_of(&c, SN_LAW_FC, 100e3, 0, 9), 1000 + 10000 + 10000 + 90);
  assert_int_equal(time_of(&c, SN_LAW_FC, 100e3, 0, 10), 1000 + 10000 + 9000 + 100);
  assert_int_equal(time_of(&c, SN_LAW_FC, 100e3, 0, 20), 1000 + 10000 + 18000 + 200);    /* v = 5 */
  assert_int_equal(time_of(&c, SN_LAW_FC, 100e3, 0, 15), 1000 + 10000 + 12000 + 150);    /* v = 7.5 */
  assert_int_equal(time_of(&c, SN_LAW_FC, 100e3, 99e3, 10), 1000 + 10000 + 9000 + 100);  /* arithmetic decides */
  assert_int_equal(time_of(&c, SN_LAW_FC, 99e3, 100e3, 10), 1000 + 10000 + 22500 + 100); /* bytes do: v = 4 */
  /* four kernels: twice the bytes, four starts, four times each thread's */
  assert_int_equal(time_of(&c, SN_LAW_ACT, 0, 100e3, 2), 4000 + 20000 + 90000 + 80);
  assert_int_equal(time_of(&c, SN_LAW_ACT, 0, 100e3, 10), 4000 + 20000 + 45000 + 400);
}

static void share_by_hand(void **state) {
  (void)state;
  sn_cores c = ten();
  sn_scaling s = sn_cores_scaling(&c, SN_LAW_FC, 100e3, 0);
  assert_int_equal(sn_scaling_share(&c, &s, 1), lround(1024 * 90000.0 / 101010));
  assert_int_equal(sn_scaling_share(&c, &s, 10), lround(1024 * 9000.0 / 20100));
  c.tile = 2;
  c.tile_gain = 0.5;
  assert_int_equal(sn_scaling_ns(&c, &s, 1), 101010); /* alone on its tile */
  assert_int_equal(sn_scaling_ns(&c, &s, 10), 1000 + 10000 + 4500 + 100);
}

static void no_work(void **state) {
  (void)state;
  sn_cores c = ten();
  c.kernel_ns = 0;
  c.law[SN_LAW_OTHER].thread_ns = 0;
  sn_scaling s = sn_cores_scaling(&c, SN_LAW_OTHER, 0, 0);
  assert_int_equal(sn_scaling_ns(&c, &s, 5), 1);
  assert_int_equal(sn_scaling_share(&c, &s, 5), 0);
}

static void rates_are(const sn_cores *c, const sn_running *tasks, uint32_t n, const double *slowing) {
  uint32_t rates[4];
  sn_cores_rates(c, tasks, n, rates);
  for (uint32_t i = 0; i < n; i++) assert_int_equal(rates[i], (uint32_t)floor(1024 / slowing[i]));
}

/* Alone nothing is slow; beside each other memory is shared (0.25), on the same cores these are (1.75 of the share). */
static void slowing(void **state) {
  (void)state;
  sn_cores c = ten();
  const sn_running alone[] = {{{0, 10, SN_SLOT_FIRST}, 1024}};
  rates_are(&c, alone, 1, (const double[]){1});
  const sn_running halves[] = {{{0, 5, SN_SLOT_FIRST}, 1024}, {{5, 5, SN_SLOT_FIRST}, 512}};
  rates_are(&c, halves, 2, (const double[]){1.125, 1.25});
  const sn_running few[] = {{{0, 8, SN_SLOT_FIRST}, 1024}, {{8, 2, SN_SLOT_FIRST}, 1024}}; /* min(1, 2 2/10) */
  rates_are(&c, few, 2, (const double[]){1.1, 1.25});
  const sn_running on_top[] = {{{0, 10, SN_SLOT_FIRST}, 512}, {{4, 2, SN_SLOT_SECOND}, 1024}};
  rates_are(&c, on_top, 2, (const double[]){1 + 0.1 + 1.75 * 0.2, 1 + 0.5 * (0.25 + 1.75)});
  const sn_running three[] = {
      {{0, 5, SN_SLOT_FIRST}, 1024}, {{5, 5, SN_SLOT_FIRST}, 1024}, {{3, 4, SN_SLOT_SECOND}, 1024}};
  rates_are(&c, three, 3, (const double[]){1 + 0.25 + 0.2 + 1.75 * 0.4, 1 + 0.25 + 0.2 + 1.75 * 0.4, 1 + 0.5 + 1.75});
}

/* Workers that float: a is linear through (1, 0), (2, 1.75), (4, 20), (8, 28). */
static void floating(void **state) {
  (void)state;
  sn_cores c = ten();
  static const struct {
    uint16_t all, each;
    double slowing;
  } cases[] = {{10, 5, 1.25},   {15, 5, 1.25 + 0.875}, {20, 10, 1.25 + 1.75}, {30, 15, 1.25 + 10.875},
               {40, 20, 21.25}, {80, 20, 29.25},       {100, 20, 33.25}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const sn_running two[] = {{{cases[i].all, cases[i].each, SN_SLOT_ANY}, 1024},
                              {{cases[i].all, cases[i].each, SN_SLOT_ANY}, 1024}};
    rates_are(&c, two, 2, (const double[]){cases[i].slowing, cases[i].slowing});
  }
  c.crowd[2] = 1000;
  const sn_running slow[] = {{{240, 20, SN_SLOT_ANY}, 1024}, {{240, 20, SN_SLOT_ANY}, 1024}};
  uint32_t rates[2];
  sn_cores_rates(&c, slow, 2, rates);
  assert_int_equal(rates[0], 1); /* never stands still */
}

/* ---- profiles ---- */

#define LAW                                                                                                            \
  "\"law\": {\n\"other\": {\"gflop_per_s\": 1, \"gb_per_s\": 2, \"thread_us\": 3},\n"                                  \
  "\"act\": {\"kernels\": 2},\n\"data\": {\"gflop_per_s\": 5, \"thread_us\": 0}}"
#define RATES                                                                                                          \
  "\"gb_per_s\": 20, \"kernel_us\": 1, \"serial_share\": 0.5, \"doubled_speed\": 1.25, \"neighbour_slowing\": 0.5,\n"
#define CROWD "\"shared_slowing\": [1, 2, 3],\n"

static sn_status load_cores(const char *cores, sn_device *d, sn_err *err) {
  static const char path[] = "test_cores_profile.json";
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fprintf(file,
          "{\"snsim_gpu\": 1, \"name\": \"mine\", \"memory_mib\": 100, \"context_gib\": 0, \"fp32_tflops\": 1, "
          "\"memory_gb_per_s\": 1, \"host_gb_per_s\": 1, \"peer_gb_per_s\": 1, \"remote_gb_per_s\": 1,\n\"cores\": %s}",
          cores);
  fclose(file);
  sn_status status = sn_device_load(path, d, err);
  unlink(path);
  return status;
}

static void own_cores(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_device d;
  load_cores("{\"count\": 6, \"tile\": 3, \"slots\": 2, \"tile_gain\": 0.25, \"resize_us\": 7, " RATES CROWD LAW "}",
             &d, &err);
  must(&err);
  const sn_cores *c = &d.cores;
  assert_true(c->count == 6 && c->tile == 3 && c->slots == 2 && c->bandwidth == 20e9 && c->kernel_ns == 1000);
  assert_true(c->serial == 0.5 && c->doubled == 1.25 && c->neighbour == 0.5 && c->crowd[2] == 3);
  assert_true(c->tile_gain == 0.25 && c->resize_ns == 7000);
  assert_true(c->law[SN_LAW_FILTER].flops == 1e9 && c->law[SN_LAW_FILTER].kernels == 1);
  assert_true(c->law[SN_LAW_ACT].kernels == 2 && c->law[SN_LAW_ACT].bandwidth == 2e9);
  assert_true(c->law[SN_LAW_DATA].flops == 5e9 && c->law[SN_LAW_DATA].thread_ns == 0);
  load_cores("{\"count\": 6, " RATES CROWD LAW "}", &d, &err);
  must(&err);
  assert_true(d.cores.tile == 1 && d.cores.slots == 1 && d.cores.tile_gain == 0 && d.cores.resize_ns == 0);
}

static void bad_cores(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"7", "profile.json:2: expected an object"},
      {"{}", "\"count\" is missing"},
      {"{\"count\": 1}", "\"count\" must be a whole number from 2 to 256, not 1"},
      {"{\"count\": 257}", "\"count\" must be a whole number from 2 to 256, not 257"},
      {"{\"count\": 6, \"tiles\": 2}", "unknown key \"tiles\""},
      {"{\"count\": 6,\n\"tile\": 4," RATES CROWD LAW "}",
       "profile.json:3: 6 cores are no whole number of tiles of 4; \"tile\" must divide \"count\""},
      {"{\"count\": 6, \"slots\": 3," RATES CROWD LAW "}", "\"slots\" must be a whole number from 1 to 2, not 3"},
      {"{\"count\": 6, " RATES "\"shared_slowing\": [1, 2]," LAW "}", "must be 3 numbers from 0 to 1000, none below"},
      {"{\"count\": 6, " RATES "\"shared_slowing\": [1, 3, 2]," LAW "}",
       "must be 3 numbers from 0 to 1000, none below"},
      {"{\"count\": 6, " RATES "\"shared_slowing\": [1, 2, 3, 4]," LAW "}", "must be 3 numbers"},
      {"{\"count\": 6, " RATES LAW "}", "\"shared_slowing\" is missing"},
      {"{\"count\": 6, " RATES "\"serial_share\": 2," CROWD LAW "}", "the key \"serial_share\" stands twice"},
      {"{\"count\": 6, " CROWD LAW "}", "\"gb_per_s\" is missing"},
      {"{\"count\": 6, " RATES "\"shared_slowing\": [1, 2, 3]}", "\"law\" is missing"},
      {"{\"count\": 6, " RATES CROWD "\"law\": {}}", "\"other\" is missing"},
      {"{\"count\": 6, " RATES CROWD "\"law\": {\"conv\": {}}}", "unknown key \"conv\""},
      {"{\"count\": 6, " RATES CROWD "\"law\": {\"other\": {\"gflop_per_s\": 1, \"gb_per_s\": 2}}}",
       "\"thread_us\" is missing"},
      {"{\"count\": 6, " RATES CROWD "\"law\": {\"other\": {\"gflop_per_s\": 0}}}", "\"gflop_per_s\" must be from"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    sn_err err = SN_ERR_INIT;
    sn_device d;
    assert_int_equal(load_cores(cases[i][0], &d, &err), SN_BAD_INPUT);
    if (!strstr(err.text, cases[i][1])) fail_msg("case %zu: %s", i, err.text);
  }
}

/* Member by member up to `bandwidth`, between which there is padding; what follows are doubles alone. */
static void assert_same_cores(const sn_cores *a, const sn_cores *b) {
  assert_true(a->count == b->count && a->tile == b->tile && a->slots == b->slots && a->pinned == b->pinned);
  assert_memory_equal(&a->bandwidth, &b->bandwidth, sizeof *a - offsetof(sn_cores, bandwidth));
}

static void estimates(void **state) {
  (void)state;
  sn_device d = load_gpu("manycore:cores=64,tile=2"), same = load_gpu("manycore:slots=1,tile=2,cores=64");
  assert_string_equal(d.name, "manycore:cores=64,slots=1,tile=2");
  assert_string_equal(d.name, same.name);
  assert_string_equal(d.description, same.description);
  assert_same_cores(&d.cores, &same.cores);
  assert_non_null(strstr(d.description, "estimates"));
  assert_true(d.cores.count == 64 && d.cores.tile == 2 && d.cores.slots == 1 && d.memory_bytes == UINT64_C(256) << 30);
  assert_int_equal(load_gpu("manycore:cores=2").cores.count, 2);
  assert_int_equal(load_gpu("manycore:cores=256,slots=2").cores.slots, 2);
  static const char *const cases[][2] = {
      {"manycore", "\"cores\" is missing"},
      {"manycore:cores=257", "\"cores=257\" is out of range"},
      {"manycore:cores=1", "is out of range"},
      {"manycore:cores=8,slots=3", "\"slots=3\" is out of range"},
      {"manycore:cores=8,core=8", "\"core\" is not known (did you mean \"cores\"?)"},
      {"manycore:cores=8,cores=8", "given twice"},
      {"manycore:cores=9,tile=2", "does not divide"},
      {"manycore:cores", "has no value"},
      {"manycore:cores=8,", "has no value"},
      {"manycores:cores=8", "unknown GPU"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    sn_err err = SN_ERR_INIT;
    assert_int_equal(sn_device_load(cases[i][0], &d, &err), SN_BAD_USAGE);
    if (!strstr(err.text, cases[i][1])) fail_msg("case %zu: %s", i, err.text);
  }
}

/* ---- costs ---- */

static int64_t law_with(const pipeline *p, uint32_t layer, sn_pass pass, sn_kernel part, uint32_t threads) {
  sn_scaling s = sn_scaling_of(&p->device.cores, p->net, layer, pass, part, SN_OPTIMIZER_MOMENTUM);
  return sn_scaling_ns(&p->device.cores, &s, threads);
}

static int64_t law_of(const pipeline *p, uint32_t layer, sn_pass pass, sn_kernel part) {
  return law_with(p, layer, pass, part, p->device.cores.count);
}

/* A DECONV is a CONV the other way round: its forward is of the kind of a CONV's DATA, and its DATA of forward's. */
static void deconv_is_mirrored(void **state) {
  (void)state;
  static const struct {
    sn_pass pass;
    sn_kernel part;
    sn_law_kind kind;
  } parts[] = {{SN_FORWARD, SN_WHOLE, SN_LAW_DATA},
               {SN_BACKWARD, SN_DATA_GRADIENT, SN_LAW_FORWARD},
               {SN_BACKWARD, SN_FILTER_GRADIENT, SN_LAW_FILTER}};
  pipeline p = {.net = load_net(SNSIM_SOURCE_DIR "/tests/fuzz/corpus/net/transposed.json", 8),
                .device = load_gpu("knl7250")};
  const sn_layer *layer = &p.net->layers[1];
  const sn_cores *cores = &p.device.cores;
  assert_int_equal(layer->op, SN_DECONV);
  double bytes = 4.0 * (8 * 4 * 3 * 5 + 8 * 6 * 6 * 16 + 150); /* x, y, weights */
  for (int i = 0; i < 3; i++) {
    sn_scaling s = sn_cores_scaling(cores, parts[i].kind, 2 * (double)layer->macs, bytes);
    for (uint32_t threads = 1; threads <= 68; threads *= 2)
      assert_int_equal(sn_scaling_ns(cores, &s, threads), law_with(&p, 1, parts[i].pass, parts[i].part, threads));
  }
  sn_net_free(p.net);
}

/* The recommendation, a thread on each core: every step costs its operations, and no convolution has a workspace. */
static void costs_are_the_law(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  pipeline p = {.net = load_net("alexnet", 8), .device = load_gpu("knl7250")};
  p.costs = sn_costs_new(p.net, &p.device, &err);
  must(&err);
  for (uint32_t i = 1; i < p.net->n_layers; i++) {
    const sn_layer *layer = &p.net->layers[i];
    const uint8_t algo[2] = {SN_IMPLICIT_GEMM, SN_IMPLICIT_GEMM};
    int64_t back = sn_op_splits(layer->op)
                       ? law_of(&p, i, SN_BACKWARD, SN_FILTER_GRADIENT) + law_of(&p, i, SN_BACKWARD, SN_DATA_GRADIENT)
                       : law_of(&p, i, SN_BACKWARD, SN_WHOLE);
    assert_int_equal(sn_costs_step(p.costs, i, SN_FORWARD, algo), law_of(&p, i, SN_FORWARD, SN_WHOLE));
    assert_int_equal(sn_costs_step(p.costs, i, SN_BACKWARD, algo), back);
    if (layer->parameters > 0)
      assert_int_equal(sn_costs_step(p.costs, i, SN_UPDATE, algo), law_of(&p, i, SN_UPDATE, SN_WHOLE));
    if (!sn_op_splits(layer->op)) continue;
    const sn_step data = {.layer = i, .pass = SN_BACKWARD, .kernel = SN_DATA_GRADIENT};
    const sn_step filter = {.layer = i, .pass = SN_BACKWARD, .kernel = SN_FILTER_GRADIENT};
    assert_int_equal(sn_costs_kernel(p.costs, &data, algo, false), law_of(&p, i, SN_BACKWARD, SN_DATA_GRADIENT));
    assert_int_equal(sn_costs_kernel(p.costs, &filter, algo, false), law_of(&p, i, SN_BACKWARD, SN_FILTER_GRADIENT));
    assert_true(layer->op != SN_CONV || sn_costs_largest_workspace(p.costs, i) == 0);
  }
  pipeline_close(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(law_by_hand),       cmocka_unit_test(share_by_hand),
      cmocka_unit_test(no_work),           cmocka_unit_test(slowing),
      cmocka_unit_test(floating),          cmocka_unit_test(own_cores),
      cmocka_unit_test(bad_cores),         cmocka_unit_test(estimates),
      cmocka_unit_test(costs_are_the_law), cmocka_unit_test(deconv_is_mirrored),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
