/* A small store in memory that holds one of everything - a simulated run with all its details, a calibration, a sweep -
 * and everybody who reads it. For tests that put other values there. */
#ifndef SN_TESTS_DB_STORED_ANSWERS_H
#define SN_TESTS_DB_STORED_ANSWERS_H

#include "db/calibrations.h"
#include "db/store_internal.h"
#include "db/sweep.h"
#include "models/zoo/zoo.h"
#include "sim/ask/simulate.h"

static inline void put_run(sn_store *store, sn_err *err) {
  sn_device gpu;
  sn_options options = SN_OPTIONS_INIT;
  sn_strategy strategies[2];
  int64_t id;
  options.want_steps = options.want_peak = options.want_tensors = true;
  sn_net *net = sn_net_load("lenet", 4, 0, err);
  sn_strategy_parse("liveness", &strategies[0], err);
  sn_strategy_parse("superneurons", &strategies[1], err);
  sn_device_load("k40c", &gpu, err);
  sn_run *run = err->code == SN_OK ? sn_simulate("lenet", net, &gpu, strategies, 2, &options, err) : NULL;
  if (run) sn_store_put(store, run, &id, err);
  sn_run_free(run);
  sn_net_free(net);
}

/* What lenet's first convolution and its FC layers took, on a machine that never was. */
static inline void put_calibration(sn_store *store, sn_err *err) {
  static const sn_timing timings[] = {
      {"CONV 4x1x28x28 to 20x24x24 5x5 s1x1 p0x0 g1 bias", SN_CONV, SN_FORWARD, SN_CONV_KERNELS, SN_CONV_ALGOS, 4096,
       90000, 80000, 5, 0, 0, 0},
      {"CONV 4x1x28x28 to 20x24x24 5x5 s1x1 p0x0 g1 bias", SN_CONV, SN_BACKWARD, SN_CONV_KERNELS, SN_CONV_ALGOS, 8192,
       190000, 180000, 5, 0, 0, 0},
      {"FC 4x500x1x1 to 10x1x1 bias", SN_FC, SN_FORWARD, SN_CONV_KERNELS, SN_CONV_ALGOS, 0, 9000, 8000, 5, 0, 0, 0},
      {"FC 4x500x1x1 to 10x1x1 bias", SN_FC, SN_BACKWARD, SN_CONV_KERNELS, SN_CONV_ALGOS, 0, 7000, 6000, 5, 1, 2, 300}};
  sn_calibration c = {.name = "mine",
                      .backend = "cpu",
                      .hardware = "h",
                      .libraries = "l",
                      .out_bandwidth = 1e9,
                      .in_bandwidth = 2e9,
                      .together_bandwidth = 3e9,
                      .out_latency_ns = 7,
                      .in_latency_ns = 9,
                      .cores = {.count = 2, .neighbour = 0.25, .resize_ns = 12000},
                      .timings = timings,
                      .n_timings = sizeof timings / sizeof timings[0]};
  if (sn_device_load("k40c", &c.profile, err) == SN_OK) sn_store_put_calibration(store, &c, err);
}

static inline void put_sweep(sn_store *store, sn_err *err) {
  sn_sweep_row rows[2] = {{.point = 1,
                           .net = "lenet",
                           .net_name = "lenet",
                           .gpu = "k40c",
                           .memory_bytes = UINT64_C(1) << 33,
                           .conditions = sn_conditions_of(&(const sn_options)SN_OPTIONS_INIT, NULL),
                           .placement = "packed",
                           .batch = 4,
                           .strategy = "baseline",
                           .failure = "",
                           .fits = true,
                           .peak_device_bytes = 1 << 20,
                           .iteration_ns = 1000000,
                           .images_per_second = 4000}};
  int64_t id;
  uint32_t session;
  rows[1] = rows[0];
  rows[1].point = 2;
  rows[1].strategy = "liveness";
  if (sn_sweep_create(store, "{\"snsim_grid\":1}", 2, &id, err) == SN_OK &&
      sn_sweep_enter(store, id, &session, err) == SN_OK)
    sn_sweep_put(store, id, session, rows, 2, err);
}

static inline sn_store *open_answers(sn_err *err) {
  sn_store *store = sn_store_open(":memory:", err);
  if (store) put_run(store, err);
  if (err->code == SN_OK) put_calibration(store, err);
  if (err->code == SN_OK) put_sweep(store, err);
  return store;
}

#endif
