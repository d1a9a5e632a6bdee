/* CPU kernels in plain loops: DROPOUT, SOFTMAX with its loss, JOIN, FORK and CONCAT. oneDNN has no dropout or loss,
 * and the others only move memory. Every element is computed by one thread from inputs alone, so
 * results do not depend on the threads; the loss is summed by one. */
#include "exec/cpu/cpu.h"

#include "base/checked.h"

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

enum { RUN = 512 };

/* to = from[last] + from[last - 1] + .. + from[0], or in ascending order, element by element; `to` may be any of them.
 */
static void add_all(float *to, float *const *from, uint32_t n, bool descending, uint64_t count) {
  uint64_t runs = sn_ceil_div(count, RUN);
#pragma omp parallel for schedule(static) if (count >= SN__WORTH_THREADS)
  for (uint64_t r = 0; r < runs; r++) {
    uint64_t at = r * RUN, width = sn_min(RUN, count - at);
    float sum[RUN];
    memcpy(sum, from[descending ? n - 1 : 0] + at, width * sizeof *sum);
    for (uint32_t j = 1; j < n; j++) {
      const float *next = from[descending ? n - 1 - j : j] + at;
#pragma omp simd
      for (uint64_t i = 0; i < width; i++) sum[i] += next[i];
    }
    memcpy(to + at, sum, width * sizeof *sum);
  }
}

/* The graph's mask, where the dialect has one: a byte an element, or a number. */
typedef struct kept_mask {
  unsigned char *bytes;
  float *numbers;
} kept_mask;

static kept_mask mask_of(const sn_call *call) {
  uint64_t count = sn__count(sn__call_layer(call)->out);
  bool bytes = call->saved_bytes == count;
  return (kept_mask){bytes ? call->saved[0] : NULL, bytes ? NULL : call->saved[0]};
}

static bool is_kept(kept_mask kept, uint64_t i) {
  return kept.bytes ? kept.bytes[i] != 0 : kept.numbers[i] > 0;
}

/* Dropped are the elements of the plain value: of element i, blocked, the plain number. */
static uint64_t plain_number(uint64_t i, uint64_t plane, uint32_t block) {
  uint64_t blocks = i / block;
  return block == 1 ? i : (blocks / plane * block + i % block) * plane + blocks % plane;
}

void sn__cpu_dropout_forward(const sn_call *call, uint32_t block) {
  const float *from = call->x[0];
  float *to = call->y[0], scale = (float)(1 / (1 - sn__call_layer(call)->attr.ratio));
  sn__mask mask = sn__mask_of(call);
  kept_mask kept = mask_of(call);
  uint64_t count = sn__count(sn__call_layer(call)->out), plane = sn__plane(sn__call_layer(call)->out);
#pragma omp parallel for schedule(static) if (count >= SN__WORTH_THREADS)
  for (uint64_t i = 0; i < count; i++) {
    bool keeps = sn__mask_keeps(mask, plain_number(i, plane, block));
    to[i] = keeps ? from[i] * scale : 0;
    if (kept.bytes) kept.bytes[i] = keeps;
    if (kept.numbers) kept.numbers[i] = keeps;
  }
}

void sn__cpu_dropout_backward(const sn_call *call, uint32_t block) {
  const float *from = call->dy[0];
  float *to = call->dx[0], scale = (float)(1 / (1 - sn__call_layer(call)->attr.ratio));
  sn__mask mask = sn__mask_of(call);
  kept_mask kept = mask_of(call);
  uint64_t count = sn__count(sn__call_layer(call)->out), plane = sn__plane(sn__call_layer(call)->out);
#pragma omp parallel for schedule(static) if (count >= SN__WORTH_THREADS)
  for (uint64_t i = 0; i < count; i++) {
    bool keeps = call->saved[0] ? is_kept(kept, i) : sn__mask_keeps(mask, plain_number(i, plane, block));
    to[i] = keeps ? from[i] * scale : 0;
  }
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

/* The largest probability is 1 / sum of exp(x - top), so the loss needs no second sum and no logarithm of 0. What it
 * needs of x is read first: y may lie there. The loss is summed in the order of the images. */
void sn__cpu_softmax_forward(const sn_call *call, uint32_t block) {
  (void)block;
  sn_shape s = sn__call_layer(call)->out;
  double loss = 0;
#pragma omp parallel for ordered schedule(static) if (sn__count(s) >= SN__WORTH_THREADS)
  for (uint32_t n = 0; n < s.n; n++) {
    const float *x = call->x[0] + (uint64_t)n * s.c;
    float *y = call->y[0] + (uint64_t)n * s.c;
    double above = (double)largest(x, s.c) - x[call->labels[n]];
    softmax(x, y, s.c);
    double of_image = above - log((double)largest(y, s.c));
#pragma omp ordered
    loss += of_image;
  }
  *call->loss = loss / s.n;
}

void sn__cpu_softmax_backward(const sn_call *call, uint32_t block) {
  (void)block;
  sn_shape s = sn__call_layer(call)->out;
  float share = 1 / (float)s.n;
  for (uint32_t n = 0; n < s.n; n++) {
    const float *y = call->y[0] + (uint64_t)n * s.c;
    float *dx = call->dx[0] + (uint64_t)n * s.c;
    uint32_t label = (uint32_t)call->labels[n];
    for (uint32_t c = 0; c < s.c; c++) dx[c] = (y[c] - (c == label ? 1.0f : 0.0f)) * share;
  }
}

void sn__cpu_join_forward(const sn_call *call, uint32_t block) {
  (void)block;
  const sn_layer *layer = sn__call_layer(call);
  add_all(call->y[0], call->x, layer->n_inputs, false, sn__count(layer->out));
}

void sn__cpu_join_backward(const sn_call *call, uint32_t block) {
  (void)block;
  const sn_layer *layer = sn__call_layer(call);
  for (uint32_t j = 0; j < layer->n_inputs; j++)
    if (call->dx[j] && call->dx[j] != call->dy[0]) copy(call->dx[j], call->dy[0], sn__count(layer->out));
}

void sn__cpu_fork_forward(const sn_call *call, uint32_t block) {
  (void)block;
  const sn_layer *layer = sn__call_layer(call);
  for (uint32_t j = 0; j < layer->n_outputs; j++) copy(call->y[j], call->x[0], sn__count(layer->out));
}

/* The last branch first, in which order gradients arrive where nobody copies: all dialects add alike, to the bit. */
void sn__cpu_fork_backward(const sn_call *call, uint32_t block) {
  (void)block;
  const sn_layer *layer = sn__call_layer(call);
  add_all(call->dx[0], call->dy, layer->n_outputs, true, sn__count(layer->out));
}

/* One image's channels of input j, within the output or its gradient: where, and how many elements. */
static uint64_t concat_part(const sn_call *call, uint64_t n, uint32_t j, uint64_t *count) {
  uint64_t before = 0;
  for (uint32_t i = 0; i < j; i++) before += sn__image(sn__call_input(call, i));
  *count = sn__image(sn__call_input(call, j));
  return n * sn__image(sn__call_layer(call)->out) + before;
}

void sn__cpu_concat_forward(const sn_call *call, uint32_t block) {
  (void)block;
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

void sn__cpu_concat_backward(const sn_call *call, uint32_t block) {
  (void)block;
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
