/* One operator under test, run by the reference kernels in a net of its own. For tests of them. */
#ifndef TESTS_UNIT_PROBE_H
#define TESTS_UNIT_PROBE_H

#include "tests/exec/kernel/difference.h"
#include "tests/exec/kernel/op_net.h"

/* An operator under test: its layer, and the weights of its outputs in f. */
typedef struct probe {
  net_runner r;
  uint32_t layer;
  float *weights; /* of all outputs, one after the other */
} probe;

static inline uint64_t output_count(const probe *p) {
  return net_value_count(&p->r, p->r.net->layers[p->layer].first_output);
}

static inline double run_forward(probe *p) {
  const sn_layer *layer = &p->r.net->layers[p->layer];
  net_runner_step(&p->r, p->r.route->forward_step[p->layer]);
  if (layer->op == SN_SOFTMAX) return p->r.layers[p->layer].loss;
  double f = 0;
  uint64_t count = output_count(p);
  for (uint32_t port = 0; port < layer->n_outputs; port++)
    for (uint64_t i = 0; i < count; i++)
      f += (double)p->weights[port * count + i] * p->r.output[layer->first_output + port][i];
  return f;
}

/* Leaves the gradients of f in the runner. */
static inline void run_backward(probe *p) {
  const sn_layer *layer = &p->r.net->layers[p->layer];
  run_forward(p);
  uint64_t count = output_count(p);
  for (uint32_t port = 0; port < layer->n_outputs && layer->op != SN_SOFTMAX; port++)
    memcpy(p->r.gradient[layer->first_output + port], p->weights + port * count, count * sizeof(float));
  net_runner_step(&p->r, p->r.route->backward_step[p->layer]);
}

static inline probe probe_open(const sn_net *net, sn_op op, uint64_t seed) {
  probe p = {.r = net_runner_open(net, reference_kernels, seed), .layer = op_net_layer(net, op)};
  const sn_layer *layer = &net->layers[p.layer];
  uint64_t count = output_count(&p) * layer->n_outputs;
  p.weights = net_calloc(count, sizeof *p.weights);
  net_fill(p.weights, count, 1, &seed);
  for (uint32_t i = 0; i < layer->n_inputs; i++) {
    uint32_t value = net->inputs[layer->first_input + i];
    net_fill(p.r.output[value], net_value_count(&p.r, value), 1, &seed);
  }
  return p;
}

static inline void probe_close(probe *p) {
  free(p->weights);
  net_runner_close(&p->r);
}

/* Runs an operator forward on given inputs; the caller compares p.r.output and closes. */
static inline probe forward_of(const sn_net *net, sn_op op, const float *x, uint64_t count) {
  probe p = probe_open(net, op, 1);
  assert_int_equal(count, net_value_count(&p.r, 0));
  memcpy(p.r.output[0], x, count * sizeof *x);
  return p;
}

static inline void expect(const float *data, const float *expected, uint64_t count, double allowed) {
  for (uint64_t i = 0; i < count; i++)
    if (!(fabs((double)data[i] - expected[i]) <= allowed))
      fail_msg("element %llu: %.8g, expected %.8g", (unsigned long long)i, (double)data[i], (double)expected[i]);
}

#endif
