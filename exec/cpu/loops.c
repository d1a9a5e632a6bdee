/* CPU kernels in plain loops: DROPOUT, which oneDNN has not, and JOIN, FORK and CONCAT, which only move memory. Every
 * element is computed by one thread from inputs alone, so results do not depend on the threads. */
#include "exec/cpu/cpu.h"

#include "base/checked.h"

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

/* Stochastic depth: element n of the mask is image n's, and is drawn again backward. */
static void drop_images(const sn_call *call, const float *from, float *to) {
  const sn_layer *layer = sn__call_layer(call);
  const uint64_t count = sn__count(layer->out), image = sn__image(layer->out);
  const float scale = (float)(1 / (1 - layer->attr->ratio));
  const sn__mask mask = sn__mask_of(call);
#pragma omp parallel for schedule(static) if (count >= SN__WORTH_THREADS)
  for (uint64_t i = 0; i < count; i++) to[i] = sn__mask_keeps(mask, i / image) ? from[i] * scale : 0;
}

void sn__cpu_dropout_forward(const sn_call *call, uint32_t block) {
  if (sn__call_layer(call)->attr->images) {
    drop_images(call, call->x[0], call->y[0]);
    return;
  }
  const float *from = call->x[0];
  float *to = call->y[0], scale = (float)(1 / (1 - sn__call_layer(call)->attr->ratio));
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
  if (sn__call_layer(call)->attr->images) {
    drop_images(call, call->dy[0], call->dx[0]);
    return;
  }
  const float *from = call->dy[0];
  float *to = call->dx[0], scale = (float)(1 / (1 - sn__call_layer(call)->attr->ratio));
  sn__mask mask = sn__mask_of(call);
  kept_mask kept = mask_of(call);
  uint64_t count = sn__count(sn__call_layer(call)->out), plane = sn__plane(sn__call_layer(call)->out);
#pragma omp parallel for schedule(static) if (count >= SN__WORTH_THREADS)
  for (uint64_t i = 0; i < count; i++) {
    bool keeps = call->saved[0] ? is_kept(kept, i) : sn__mask_keeps(mask, plain_number(i, plane, block));
    to[i] = keeps ? from[i] * scale : 0;
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
  const uint64_t floats = call->net->values[layer->first_output].bytes / sizeof(float); /* tokens are of two */
  for (uint32_t j = 0; j < layer->n_outputs; j++) copy(call->y[j], call->x[0], floats);
}

/* The last branch first, in which order gradients arrive where nobody copies: all dialects add alike, to the bit. */
void sn__cpu_fork_backward(const sn_call *call, uint32_t block) {
  (void)block;
  const sn_layer *layer = sn__call_layer(call);
  if (call->dx[0]) add_all(call->dx[0], call->dy, layer->n_outputs, true, sn__count(layer->out)); /* tokens have none */
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
