/* Runs with step curves of a likely shape, for the tests of the pictures: memory grows over the forward pass and
 * shrinks over the backward pass, less so the more a strategy drops. The shapes of AlexNet's outputs are the paper's.
 */
#ifndef SN_TESTS_SAMPLE_CURVES_H
#define SN_TESTS_SAMPLE_CURVES_H

#include "base/arena.h"
#include "sim/ask/run.h"

#include <string.h>

typedef struct curve_layer {
  const char *name, *op;
  uint64_t elements; /* of the output of one image */
} curve_layer;

static const curve_layer curve_alexnet[] = {
    {"conv1", "CONV", 290400},  {"relu1", "ACT", 290400},   {"lrn1", "LRN", 290400},      {"pool1", "POOL", 69984},
    {"conv2", "CONV", 186624},  {"relu2", "ACT", 186624},   {"lrn2", "LRN", 186624},      {"pool2", "POOL", 43264},
    {"conv3", "CONV", 64896},   {"relu3", "ACT", 64896},    {"conv4", "CONV", 64896},     {"relu4", "ACT", 64896},
    {"conv5", "CONV", 43264},   {"relu5", "ACT", 43264},    {"pool5", "POOL", 9216},      {"fc1", "FC", 4096},
    {"relu6", "ACT", 4096},     {"drop1", "DROPOUT", 4096}, {"fc2", "FC", 4096},          {"relu7", "ACT", 4096},
    {"drop2", "DROPOUT", 4096}, {"fc3", "FC", 1000},        {"softmax", "SOFTMAX", 1000},
};

static const char *const curve_strategies[] = {"baseline", "liveness", "liveness+offload",
                                               "liveness+offload+recompute=cost"};

/* Whether the output of a layer stays on the device till the backward pass. */
static inline bool curve_stays(unsigned strategy, const char *op) {
  bool conv = strcmp(op, "CONV") == 0, fc = strcmp(op, "FC") == 0 || strcmp(op, "SOFTMAX") == 0;
  return strategy <= 1 || (strategy == 2 && !conv) || (strategy == 3 && fc);
}

static inline void curve_step(sn_step_row *row, const curve_layer *layers, uint32_t n, uint32_t step, uint64_t batch,
                              unsigned strategy) {
  uint32_t at = step <= n ? step - 1 : 2 * n - step;
  *row = (sn_step_row){
      .step = step, .layer = layers[at].name, .op = layers[at].op, .pass = step <= n ? "forward" : "backward"};
  for (uint32_t i = 0; i < n; i++) {
    bool near = i == at || i + 1 == at;
    bool held = strategy == 0 || near || (i < at && curve_stays(strategy, layers[i].op));
    if (!held) continue;
    bool gradient = strategy == 0 || (step > n && near);
    row->tensor_bytes += layers[i].elements * 4 * batch * (gradient ? 2 : 1);
    row->live_tensors += gradient ? 2 : 1;
  }
  row->device_bytes = row->tensor_bytes + (UINT64_C(900) << 20);
}

static inline void curve_result(sn_result *r, sn_arena *arena, const curve_layer *layers, uint32_t n, uint64_t batch,
                                unsigned strategy) {
  sn_step_row *rows = sn_arena_alloc(arena, 2 * (size_t)n, sizeof *rows);
  *r = (sn_result){.strategy = curve_strategies[strategy],
                   .placement = "packed",
                   .dialect = "superneurons",
                   .corun = SN_CORUN_ROW_NONE,
                   .step_order = "route",
                   .source = "sim",
                   .fits = true,
                   .peak_layer = layers[0].name,
                   .peak_pass = "forward",
                   .pool_layer = "",
                   .pool_pass = "",
                   .pool_cause = ""};
  r->context_bytes = UINT64_C(300) << 20;
  r->persistent.parameters = UINT64_C(240) << 20;
  r->persistent.parameter_gradients = UINT64_C(240) << 20;
  r->persistent.input_batch = UINT64_C(120) << 20;
  r->n_steps = 2 * n;
  r->steps = rows;
  for (uint32_t i = 0; i < 2 * n; i++) curve_step(&rows[i], layers, n, i + 1, batch, strategy);
}

static inline sn_run *curve_run(const char *net, const curve_layer *layers, uint32_t n, uint32_t batch,
                                uint64_t memory) {
  sn_arena *arena = sn_arena_new();
  sn_run *run = sn_arena_alloc(arena, 1, sizeof *run);
  sn_result *results = sn_arena_alloc(arena, 4, sizeof *results);
  for (unsigned i = 0; i < 4; i++) curve_result(&results[i], arena, layers, n, batch, i);
  *run = (sn_run){.name = "",
                  .answer = "",
                  .created = "",
                  .version = "0.1.0",
                  .net = sn_arena_text(arena, net),
                  .net_name = "",
                  .batch = batch,
                  .gpu = "k40c"};
  run->memory_bytes = memory;
  run->conditions.workspace = "none";
  run->conditions.external = "host";
  run->conditions.allocator = "pool";
  run->conditions.optimizer = "momentum";
  run->conditions.precision = "fp32";
  run->conditions.freeze = "";
  run->conditions.parallel = run->conditions.cluster = "";
  run->conditions.host_us = "";
  run->costs = "model";
  run->device = run->data = "";
  run->n_steps = 2 * n;
  run->n_results = 4;
  run->results = results;
  run->arena = arena;
  return run;
}

/* AlexNet's layers over and over, smaller each time: a net of `n` layers. */
static inline const curve_layer *curve_deep(sn_arena *arena, uint32_t n) {
  curve_layer *layers = sn_arena_alloc(arena, n, sizeof *layers);
  uint32_t period = sizeof curve_alexnet / sizeof curve_alexnet[0];
  for (uint32_t i = 0; i < n; i++) {
    layers[i] = curve_alexnet[i % period];
    layers[i].elements = layers[i].elements * (n - i) / n + 1;
  }
  return layers;
}

#endif
