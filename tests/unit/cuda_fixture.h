/* The CUDA machine in tests: loads the module that runs on the fake GPU (tests/fake_cuda/fake_cuda.h), and trains a net
 * by the reference kernels from the same start, to compare with.
 *
 *   fake_cuda *fake = cuda_fake();                 the module's controls; sn_machine_open_cuda() opens it from now on
 *   net_runner r = cuda_reference(net, state, batch, &hyper);
 *   net_runner_iterate(&r);
 *   cuda_compare(&r, state, 1e-4);
 */
#ifndef SN_TESTS_CUDA_FIXTURE_H
#define SN_TESTS_CUDA_FIXTURE_H

#include "exec/cuda_module.h"
#include "exec/reference.h"
#include "exec/session.h"
#include "models/zoo.h"
#include "tests/fake_cuda/fake_cuda.h"
#include "tests/unit/net_runner.h"

#include <dlfcn.h>
#include <stdio.h>

static inline fake_cuda *cuda_fake(void) {
  fake_cuda_entry entry;
  assert_int_equal(setenv("SNSIM_CUDA_MODULE", SNSIM_FAKE_CUDA, 1), 0);
  void *library = dlopen(SNSIM_FAKE_CUDA, RTLD_NOW | RTLD_LOCAL);
  if (!library) fail_msg("%s", dlerror());
  void *symbol = dlsym(library, "fake_cuda_state");
  assert_non_null(symbol);
  memcpy(&entry, &symbol, sizeof entry);
  fake_cuda *fake = entry();
  assert_int_equal(fake->live, 0);
  *fake = (fake_cuda)FAKE_CUDA_INIT;
  return fake;
}

static inline sn_net *cuda_net(const char *name, uint32_t batch, uint32_t image) {
  sn_err err = SN_ERR_INIT;
  char path[600];
  snprintf(path, sizeof path, "%s%s", name[0] == '/' ? SNSIM_SOURCE_DIR : "", name);
  sn_net *net = sn_net_load(path, batch, image, &err);
  if (!net) fail_msg("%s", err.text);
  return net;
}

/* Deterministic, with the pool of the given size on offer. */
static inline sn_session_options cuda_options(uint64_t pool_bytes) {
  sn_session_options options = SN_SESSION_OPTIONS_INIT;
  options.backend = SN_EXEC_CUDA;
  options.machine.deterministic = true;
  options.pool_bytes = pool_bytes;
  return options;
}

/* ---- the reference ---- */

static inline sn_status cuda_run_reference(void *self, const sn_call *call, sn_err *err) {
  (void)self;
  return sn_reference_run(call, err);
}

static inline void cuda_take(float *to, const float *from, uint64_t count) {
  if (count > 0) memcpy(to, from, count * sizeof *to);
}

static inline void cuda_take_batch(const net_runner *r, const sn_batch *batch) {
  cuda_take(r->output[r->net->layers[0].first_output], batch->data, r->net->data_bytes / sizeof(float));
  memcpy(r->labels, batch->labels, r->net->batch * sizeof *r->labels);
}

/* Starts where `state` is; net_runner_close() ends it. */
static inline net_runner cuda_reference(const sn_net *net, const sn_state *state, const sn_hyper *hyper) {
  net_runner r = net_runner_open(net, (net_kernels){.run = cuda_run_reference}, 1);
  r.hyper = *hyper;
  for (uint32_t i = 0; i < net->n_layers; i++) {
    uint64_t at = state->parameter_offset[i], count = net->layers[i].parameters;
    cuda_take(r.layers[i].parameters, state->parameters + at, count);
    cuda_take(r.layers[i].momentum, state->momentum + at, count);
    cuda_take(r.layers[i].statistics, state->statistics + state->statistics_offset[i],
              net->layers[i].statistics_bytes / sizeof(float));
  }
  return r;
}

/* Of one kind for one layer: weights and bias together, so that sums which cancel to almost nothing, as those of a bias
 * before a BN, count by the size of the rest. */
static inline void cuda_compare_data(const sn_layer *layer, const char *what, const float *is, const float *should,
                                     uint64_t count, double tolerance) {
  double largest = 0;
  for (uint64_t i = 0; i < count; i++) largest = fmax(largest, fabs((double)should[i]));
  for (uint64_t i = 0; i < count; i++)
    if (!(fabs((double)is[i] - (double)should[i]) <= tolerance * largest + 1e-12))
      fail_msg("layer %s: %s[%llu] is %.9g, by the reference %.9g; the largest is %g", layer->name, what,
               (unsigned long long)i, (double)is[i], (double)should[i], largest);
}

/* All that a training changes; `tolerance` is relative to the largest element of its kind in the layer. */
static inline void cuda_compare(const net_runner *r, const sn_state *state, double tolerance) {
  for (uint32_t i = 0; i < r->net->n_layers; i++) {
    const sn_layer *layer = &r->net->layers[i];
    const net_state *s = &r->layers[i];
    const float *statistics = state->statistics + state->statistics_offset[i];
    uint64_t at = state->parameter_offset[i], count = layer->parameters, channels = layer->out.c;
    cuda_compare_data(layer, "gradient", state->gradients + at, s->gradients, count, tolerance);
    cuda_compare_data(layer, "momentum", state->momentum + at, s->momentum, count, tolerance);
    cuda_compare_data(layer, "parameter", state->parameters + at, s->parameters, count, tolerance);
    for (uint64_t k = 0; layer->op == SN_BN && k < 4; k++)
      cuda_compare_data(layer, "statistics", statistics + k * channels, s->statistics + k * channels, channels,
                        tolerance);
  }
}

#endif
