/* Runs a whole net step by step in plain memory: no plan, no pool, every tensor in a block of its own, as the baseline
 * would have it. For tests of kernels, and for a result to compare a plan's execution with.
 *
 *   net_runner r = net_runner_open(net, kernels, seed);
 *   net_runner_iterate(&r);            forward, backward and update; or net_runner_step() one by one
 *   ... r.loss, r.output[value], r.gradient[value], r.layers[i].gradients ...
 *   net_runner_close(&r);
 *
 * Everything random comes from the seed: data, labels and parameters. What no step has written yet is not a number, so
 * a kernel that reads too early is seen; guards around each block are checked at the end, so one that writes too far is
 * seen even in generated code. Whatever fails ends the test.
 */
#ifndef SN_TESTS_NET_RUNNER_H
#define SN_TESTS_NET_RUNNER_H

#include "exec/kernel/call.h"
#include "models/op/op.h"
#include "sim/graph/route.h"
#include "tests/support/prng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What runs a step; `scratch` NULL: never needs any. */
typedef struct net_kernels {
  void *self;
  sn_status (*run)(void *self, const sn_call *call, sn_err *err);
  uint64_t (*scratch)(void *self, uint32_t layer, sn_pass pass);
} net_kernels;

/* What a layer owns besides its tensors; NULL where it has none. */
typedef struct net_state {
  float *parameters, *gradients, *states[SN_OPTIMIZER_STATES], *statistics;
  double loss; /* SOFTMAX */
} net_state;

enum { NET_GUARD = 16, NET_ALIGN = 64 };
static const float net_guard_value = -7.25e30f;

/* A block of floats between guards, with its size before them. */
typedef struct net_block {
  float *data;
  uint64_t count;
} net_block;

typedef struct net_runner {
  const sn_net *net;
  sn_route *route;
  net_kernels kernels;
  sn_hyper hyper;
  uint64_t iteration;
  float **output, **gradient; /* per value; a gradient made in place is its predecessor's */
  float **x, **y, **dy, **dx; /* of the call at hand */
  net_state *layers;
  int32_t *labels;
  float *workspace;
  uint64_t workspace_bytes;
  double loss; /* sum over all SOFTMAX */
  net_block *blocks;
  size_t n_blocks;
  uint32_t shift; /* every block begins this many floats behind a line of cache */
} net_runner;

static inline void *net_calloc(size_t count, size_t size) {
  void *memory = calloc(count + !count, size);
  assert_non_null(memory);
  return memory;
}

static inline void net_poison(float *data, uint64_t count) {
  for (uint64_t i = 0; i < count; i++) data[i] = NAN;
}

/* Poisoned; NULL where the count is 0. */
static inline float *net_block_new(net_runner *r, uint64_t count) {
  if (count == 0) return NULL;
  uint64_t room = r->shift + 2 * NET_GUARD + count, lines = (room * sizeof(float) + NET_ALIGN - 1) / NET_ALIGN;
  float *memory = aligned_alloc(NET_ALIGN, lines * NET_ALIGN);
  assert_non_null(memory);
  float *data = memory + r->shift + NET_GUARD;
  for (uint32_t i = 0; i < NET_GUARD; i++) data[(int64_t)i - NET_GUARD] = data[count + i] = net_guard_value;
  net_poison(data, count);
  r->blocks[r->n_blocks++] = (net_block){data, count};
  return data;
}

static inline void net_block_free(const net_runner *r, net_block b) {
  for (uint32_t i = 0; i < NET_GUARD; i++)
    if (b.data[(int64_t)i - NET_GUARD] != net_guard_value || b.data[b.count + i] != net_guard_value)
      fail_msg("%s: a kernel wrote beyond a block of %llu elements", r->net->name, (unsigned long long)b.count);
  free(b.data - NET_GUARD - r->shift);
}

/* Uniform in -size .. size. */
static inline void net_fill(float *data, uint64_t count, double size, uint64_t *dice) {
  for (uint64_t i = 0; i < count; i++) data[i] = (float)(((double)(prng_next(dice) >> 40) * 0x1p-23 - 1) * size);
}

static inline uint64_t net_value_count(const net_runner *r, uint32_t value) {
  return r->net->values[value].bytes / sizeof(float);
}

/* Weights keep the size of what flows through (He et al., ICCV 2015); biases are small, BN's gamma is around 1. */
static inline void net_state_new(net_runner *r, uint32_t index, uint64_t *dice) {
  const sn_layer *layer = &r->net->layers[index];
  net_state *s = &r->layers[index];
  uint64_t count = layer->parameters, channels = layer->out.c;
  s->parameters = net_block_new(r, count);
  s->gradients = net_block_new(r, count);
  for (int k = 0; k < SN_OPTIMIZER_STATES; k++) s->states[k] = net_block_new(r, count);
  s->statistics = net_block_new(r, layer->statistics_bytes / sizeof(float));
  for (uint64_t i = 0; i < count; i++) s->states[0][i] = s->states[1][i] = 0;
  for (uint64_t c = 0; c < channels && layer->op == SN_BN; c++) s->statistics[c] = 0, s->statistics[channels + c] = 1;
  if (layer->attr->weights_of) { /* another layer's, and gradients of its own */
    s->parameters = r->layers[layer->attr->weights_of].parameters;
    s->gradients = net_block_new(r, r->net->layers[layer->attr->weights_of].parameters);
  }
  if (count == 0) return;
  if (layer->op == SN_RMS_NORM || layer->op == SN_SCALE || sn_op_of(layer)->shifts) {
    net_fill(s->parameters, count, 0.5, dice);
    for (uint64_t c = 0; c < channels; c++) s->parameters[c] += 1;
    return;
  }
  uint64_t biases = layer->attr->bias ? layer->attr->channels : 0, weights = count - biases;
  bool linear = layer->op == SN_FC || sn_op_of(layer)->convolves;
  net_fill(s->parameters, weights, linear ? sqrt(6.0 * layer->attr->channels / (double)weights) : 1, dice);
  net_fill(s->parameters + weights, biases, 0.1, dice);
}

/* Where the gradient of each value lies, by the rules of the dialect; see sim/graph/dialect.h. */
static inline void net_gradients_new(net_runner *r, uint32_t index) {
  const sn_layer *layer = &r->net->layers[index];
  const uint32_t *inputs = r->net->inputs + layer->first_input;
  sn_gradient_rule rule = r->route->dialect->rules[layer->op].gradient;
  bool fresh = rule == SN_GRAD_NEW;
  if (!fresh) r->gradient[inputs[0]] = (rule == SN_GRAD_ON_OUTPUT ? r->output : r->gradient)[layer->first_output];
  for (uint32_t i = fresh ? 0 : 1; i < layer->n_inputs; i++)
    r->gradient[inputs[i]] = net_block_new(r, net_value_count(r, inputs[i]));
}

/* Bytes of scratch, in whole lines of cache. */
static inline uint64_t net_scratch(const net_runner *r, uint32_t step) {
  if (!r->kernels.scratch) return 0;
  uint64_t bytes = r->kernels.scratch(r->kernels.self, r->route->steps[step].layer, r->route->steps[step].pass);
  return (bytes + NET_ALIGN - 1) / NET_ALIGN * NET_ALIGN;
}

static inline void net_workspace_new(net_runner *r) {
  for (uint32_t step = 0; step < r->route->n_steps; step++)
    if (net_scratch(r, step) > r->workspace_bytes) r->workspace_bytes = net_scratch(r, step);
  r->workspace = net_block_new(r, r->workspace_bytes / sizeof(float));
}

/* Tokens that every table has a row for. */
static inline void net_tokens_new(net_runner *r, uint64_t *dice) {
  uint32_t value = r->net->layers[0].first_output, rows = UINT32_MAX;
  int64_t *tokens = (int64_t *)(void *)r->output[value];
  for (uint32_t i = 0; i < r->net->n_layers; i++)
    if (r->net->layers[i].op == SN_EMBEDDING && r->net->layers[i].attr->rows < rows)
      rows = r->net->layers[i].attr->rows;
  for (uint64_t i = 0; i < r->net->values[value].bytes / sizeof *tokens; i++) tokens[i] = prng_below(dice, rows);
}

/* Data from -1 to 1, or tokens; labels that every SOFTMAX of the net knows, or targets from -1 to 1. */
static inline void net_data_new(net_runner *r, uint64_t *dice) {
  uint32_t classes = UINT32_MAX;
  bool squares = false;
  for (uint32_t i = 0; i < r->net->n_layers; i++) squares = squares || r->net->layers[i].attr->loss == SN_LOSS_MSE;
  for (uint32_t i = 0; i < r->net->n_layers; i++)
    if (r->net->layers[i].op == SN_SOFTMAX && r->net->layers[i].out.c < classes) classes = r->net->layers[i].out.c;
  uint32_t value = r->net->layers[0].first_output;
  uint64_t labels = r->net->label_bytes / sizeof *r->labels;
  if (r->net->values[value].dtype == SN_I64)
    net_tokens_new(r, dice);
  else
    net_fill(r->output[value], net_value_count(r, value), 1, dice);
  r->labels = net_calloc(labels, sizeof *r->labels);
  if (squares)
    net_fill((float *)(void *)r->labels, labels, 1, dice);
  else
    for (uint64_t i = 0; i < labels; i++) r->labels[i] = (int32_t)prng_below(dice, classes);
}

static inline void net_tables_new(net_runner *r) {
  size_t values = r->net->n_values, layers = r->net->n_layers;
  r->output = net_calloc(values, sizeof *r->output);
  r->gradient = net_calloc(values, sizeof *r->gradient);
  r->x = net_calloc(values, sizeof *r->x);
  r->y = net_calloc(values, sizeof *r->y);
  r->dy = net_calloc(values, sizeof *r->dy);
  r->dx = net_calloc(values, sizeof *r->dx);
  r->layers = net_calloc(layers, sizeof *r->layers);
  r->blocks = net_calloc(2 * values + 4 * layers + 1, sizeof *r->blocks);
}

static inline net_runner net_runner_open_at(const sn_net *net, net_kernels kernels, uint64_t seed, uint32_t shift) {
  sn_err err = SN_ERR_INIT;
  net_runner r = {.net = net,
                  .kernels = kernels,
                  .hyper = {.seed = seed, .learning_rate = 0.01f, .momentum = 0.9f, .weight_decay = 0.0005f},
                  .shift = shift};
  r.route = sn_route_new(net, SN_DIALECT_SUPERNEURONS, SN_ORDER_ROUTE, &err);
  if (!r.route) fail_msg("%s", err.text);
  net_tables_new(&r);
  for (uint32_t value = 0; value < net->n_values; value++)
    r.output[value] = net_block_new(&r, net_value_count(&r, value));
  for (uint32_t i = 0; i < net->n_layers; i++) net_state_new(&r, i, &seed);
  for (uint32_t i = r.route->first_backward; i < r.route->first_update; i++)
    net_gradients_new(&r, r.route->steps[i].layer);
  net_data_new(&r, &seed);
  net_workspace_new(&r);
  return r;
}

static inline net_runner net_runner_open(const sn_net *net, net_kernels kernels, uint64_t seed) {
  return net_runner_open_at(net, kernels, seed, 0);
}

/* The call of a step, good until the next is asked for. Its workspace ends where the guards begin. */
static inline sn_call net_runner_call(net_runner *r, uint32_t step) {
  uint32_t index = r->route->steps[step].layer;
  const sn_layer *layer = &r->net->layers[index];
  net_state *s = &r->layers[index];
  uint64_t scratch = net_scratch(r, step);
  for (uint32_t i = 0; i < layer->n_inputs; i++) {
    r->x[i] = r->output[r->net->inputs[layer->first_input + i]];
    r->dx[i] = r->gradient[r->net->inputs[layer->first_input + i]];
  }
  for (uint32_t i = 0; i < layer->n_outputs; i++) {
    r->y[i] = r->output[layer->first_output + i];
    r->dy[i] = r->gradient[layer->first_output + i];
  }
  return (sn_call){.net = r->net,
                   .layer = index,
                   .pass = r->route->steps[step].pass,
                   .iteration = r->iteration,
                   .hyper = &r->hyper,
                   .x = r->x,
                   .y = r->y,
                   .dy = r->dy,
                   .dx = r->dx,
                   .parameters = s->parameters,
                   .gradients = s->gradients,
                   .states = {s->states[0], s->states[1]},
                   .statistics = s->statistics,
                   .labels = r->labels,
                   .loss = &s->loss,
                   .workspace = scratch ? r->workspace + (r->workspace_bytes - scratch) / sizeof(float) : NULL,
                   .workspace_bytes = scratch};
}

static inline void net_runner_run(net_runner *r, const sn_call *call) {
  sn_err err = SN_ERR_INIT;
  if (call->workspace) net_poison(call->workspace, call->workspace_bytes / sizeof(float));
  if (r->kernels.run(r->kernels.self, call, &err) != SN_OK) fail_msg("%s: %s", r->net->name, err.text);
}

static inline void net_runner_step(net_runner *r, uint32_t step) {
  sn_call call = net_runner_call(r, step);
  net_runner_run(r, &call);
}

static inline void net_runner_steps(net_runner *r, uint32_t from, uint32_t to) {
  for (uint32_t step = from; step < to; step++) net_runner_step(r, step);
}

static inline void net_runner_add_loss(net_runner *r) {
  r->loss = 0;
  for (uint32_t i = 0; i < r->net->n_layers; i++) r->loss += r->layers[i].loss;
}

static inline void net_runner_forward(net_runner *r) {
  net_runner_steps(r, 0, r->route->first_backward);
  net_runner_add_loss(r);
}

static inline void net_runner_backward(net_runner *r) {
  net_runner_steps(r, r->route->first_backward, r->route->first_update);
}

static inline void net_runner_iterate(net_runner *r) {
  net_runner_forward(r);
  net_runner_backward(r);
  net_runner_steps(r, r->route->first_update, r->route->n_steps);
  r->iteration++;
}

static inline void net_runner_close(net_runner *r) {
  for (size_t i = 0; i < r->n_blocks; i++) net_block_free(r, r->blocks[i]);
  void *tables[] = {r->output, r->gradient, r->x, r->y, r->dy, r->dx, r->layers, r->blocks, r->labels};
  for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) free(tables[i]);
  sn_route_free(r->route);
}

#endif
