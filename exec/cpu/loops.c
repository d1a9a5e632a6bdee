/* CPU kernels in plain loops: DROPOUT, SOFTMAX with its loss, JOIN, FORK, CONCAT and the SGD update. oneDNN has no
 * dropout, loss or SGD, and the others only move memory. Every element is computed by one thread from inputs alone, so
 * results do not depend on the threads; the loss is summed by one. */
#include "exec/cpu/cpu.h"

#include "base/checked.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* Large copies are shared by the threads in pieces of this many elements. */
enum { PIECE = 1 << 14 };

static void copy(float *to, const float *from, uint64_t count) {
  uint64_t pieces = sn_ceil_div(count, PIECE);
#pragma omp parallel for schedule(static) if (count >= SN__WORTH_THREADS)
  for (uint64_t i = 0; i < pieces; i++)
    memcpy(to + i * PIECE, from + i * PIECE, sn_min(PIECE, count - i * PIECE) * sizeof *to);
}

static void add(float *to, const float *from, uint64_t count) {
#pragma omp parallel for simd schedule(static) if (count >= SN__WORTH_THREADS)
  for (uint64_t i = 0; i < count; i++) to[i] += from[i];
}

static void drop(const sn_call *call, const float *from, float *to) {
  const sn_layer *layer = sn__call_layer(call);
  sn__mask mask = sn__mask_of(call);
  float scale = (float)(1 / (1 - layer->attr.ratio));
  uint64_t count = sn__count(layer->out);
#pragma omp parallel for schedule(static) if (count >= SN__WORTH_THREADS)
  for (uint64_t i = 0; i < count; i++) to[i] = sn__mask_keeps(mask, i) ? from[i] * scale : 0;
}

void sn__cpu_dropout_forward(const sn_call *call) {
  drop(call, call->x[0], call->y[0]);
}

void sn__cpu_dropout_backward(const sn_call *call) {
  drop(call, call->dy[0], call->dx[0]);
}

static float largest(const float *x, uint32_t count) {
  float top = x[0];
  for (uint32_t i = 1; i < count; i++) top = x[i] > top ? x[i] : top;
  return top;
}

static void softmax(const float *x, float *y, uint32_t count) {
  float top = largest(x, count);
  double sum = 0;
  for (uint32_t i = 0; i < count; i++) sum += y[i] = expf(x[i] - top);
  float inverse = (float)(1 / sum);
  for (uint32_t i = 0; i < count; i++) y[i] *= inverse;
}

/* The largest probability is 1 / sum of exp(x - top), so the loss needs no second sum and no logarithm of 0. */
void sn__cpu_softmax_forward(const sn_call *call) {
  sn_shape s = sn__call_layer(call)->out;
#pragma omp parallel for schedule(static) if (sn__count(s) >= SN__WORTH_THREADS)
  for (uint32_t n = 0; n < s.n; n++) softmax(call->x[0] + (uint64_t)n * s.c, call->y[0] + (uint64_t)n * s.c, s.c);
  double loss = 0;
  for (uint32_t n = 0; n < s.n; n++) {
    const float *x = call->x[0] + (uint64_t)n * s.c, *y = call->y[0] + (uint64_t)n * s.c;
    loss += (double)largest(x, s.c) - x[call->labels[n]] - log((double)largest(y, s.c));
  }
  *call->loss = loss / s.n;
}

void sn__cpu_softmax_backward(const sn_call *call) {
  sn_shape s = sn__call_layer(call)->out;
  float share = 1 / (float)s.n;
  for (uint32_t n = 0; n < s.n; n++) {
    const float *y = call->y[0] + (uint64_t)n * s.c;
    float *dx = call->dx[0] + (uint64_t)n * s.c;
    uint32_t label = (uint32_t)call->labels[n];
    for (uint32_t c = 0; c < s.c; c++) dx[c] = (y[c] - (c == label ? 1.0f : 0.0f)) * share;
  }
}

void sn__cpu_join_forward(const sn_call *call) {
  const sn_layer *layer = sn__call_layer(call);
  const float *a = call->x[0], *b = call->x[1];
  float *y = call->y[0];
  uint64_t count = sn__count(layer->out);
#pragma omp parallel for simd schedule(static) if (count >= SN__WORTH_THREADS)
  for (uint64_t i = 0; i < count; i++) y[i] = a[i] + b[i];
  for (uint32_t j = 2; j < layer->n_inputs; j++) add(y, call->x[j], count);
}

void sn__cpu_join_backward(const sn_call *call) {
  const sn_layer *layer = sn__call_layer(call);
  assert(call->dx[0] == call->dy[0]);
  for (uint32_t j = 1; j < layer->n_inputs; j++) copy(call->dx[j], call->dy[0], sn__count(layer->out));
}

void sn__cpu_fork_forward(const sn_call *call) {
  const sn_layer *layer = sn__call_layer(call);
  for (uint32_t j = 0; j < layer->n_outputs; j++) copy(call->y[j], call->x[0], sn__count(layer->out));
}

void sn__cpu_fork_backward(const sn_call *call) {
  const sn_layer *layer = sn__call_layer(call);
  assert(call->dx[0] == call->dy[0]);
  for (uint32_t j = 1; j < layer->n_outputs; j++) add(call->dx[0], call->dy[j], sn__count(layer->out));
}

/* One image's channels of input j, within the output or its gradient: where, and how many elements. */
static uint64_t concat_part(const sn_call *call, uint64_t n, uint32_t j, uint64_t *count) {
  uint64_t before = 0;
  for (uint32_t i = 0; i < j; i++) before += sn__image(sn__call_input(call, i));
  *count = sn__image(sn__call_input(call, j));
  return n * sn__image(sn__call_layer(call)->out) + before;
}

void sn__cpu_concat_forward(const sn_call *call) {
  const sn_layer *layer = sn__call_layer(call);
  uint64_t parts = (uint64_t)layer->out.n * layer->n_inputs;
#pragma omp parallel for schedule(static) if (sn__count(layer->out) >= SN__WORTH_THREADS)
  for (uint64_t i = 0; i < parts; i++) {
    uint64_t n = i / layer->n_inputs, count;
    uint32_t j = (uint32_t)(i % layer->n_inputs);
    uint64_t at = concat_part(call, n, j, &count);
    memcpy(call->y[0] + at, call->x[j] + n * count, count * sizeof(float));
  }
}

void sn__cpu_concat_backward(const sn_call *call) {
  const sn_layer *layer = sn__call_layer(call);
  uint64_t parts = (uint64_t)layer->out.n * layer->n_inputs;
#pragma omp parallel for schedule(static) if (sn__count(layer->out) >= SN__WORTH_THREADS)
  for (uint64_t i = 0; i < parts; i++) {
    uint64_t n = i / layer->n_inputs, count;
    uint32_t j = (uint32_t)(i % layer->n_inputs);
    uint64_t at = concat_part(call, n, j, &count);
    memcpy(call->dx[j] + n * count, call->dy[0] + at, count * sizeof(float));
  }
}

void sn__cpu_update(const sn_call *call) {
  float rate = call->hyper->learning_rate, momentum = call->hyper->momentum, decay = call->hyper->weight_decay;
  float *w = call->parameters, *v = call->momentum;
  const float *g = call->gradients;
  uint64_t count = sn__call_layer(call)->parameters;
#pragma omp parallel for simd schedule(static) if (count >= SN__WORTH_THREADS)
  for (uint64_t i = 0; i < count; i++) {
    v[i] = momentum * v[i] + g[i] + decay * w[i];
    w[i] -= rate * v[i];
  }
}
