/* CPU kernels of LRN; reference_norm.c has the formulas. They are ours: oneDNN's want a workspace of twice the tensor
 * and are slow backward. Threads share blocks of pixels; all channels of a block go through the cache once. Work is
 * `size` multiply-adds and one power an element. Backward may write over dy, so it first keeps, in scratch, what
 * neighbouring channels need of it. */
#include "exec/cpu/cpu.h"

#include "base/checked.h"

#include <math.h>
#include <omp.h>
#include <string.h>

enum { BLOCK = 64 }; /* pixels: 4 lines of cache a channel */

/* Sizes of an LRN. The blocks of an image come after those of the image before; the last of each may be short. */
typedef struct lrn {
  uint32_t size, channels;
  uint64_t plane, blocks, items; /* elements of a plane, blocks of an image and of the batch */
  float k, alpha, beta;          /* alpha already divided by the size */
} lrn;

static lrn lrn_of(const sn_call *call) {
  const sn_layer *layer = sn__call_layer(call);
  const sn_attr *a = &layer->attr;
  uint64_t plane = sn__plane(layer->out), blocks = sn_ceil_div(plane, BLOCK);
  return (lrn){a->lrn_size,
               layer->out.c,
               plane,
               blocks,
               layer->out.n * blocks,
               (float)a->lrn_k,
               (float)(a->lrn_alpha / a->lrn_size),
               (float)a->lrn_beta};
}

/* Where a block begins in channel 0, and how many pixels it has. */
static uint64_t block_start(const lrn *l, uint64_t item, uint32_t *width) {
  uint64_t pixel = item % l->blocks * BLOCK;
  *width = (uint32_t)sn_min(BLOCK, l->plane - pixel);
  return item / l->blocks * l->channels * l->plane + pixel;
}

/* scale[i] = k + alpha * sum of squares over the window of channel c */
static void scales(const lrn *l, const float *x, uint32_t c, uint32_t width, float *scale) {
  sn__span window = sn__window(c, l->size, 1, l->size / 2, l->channels);
  for (uint32_t i = 0; i < width; i++) scale[i] = 0;
  for (int64_t j = window.from; j < window.to; j++) {
    const float *row = x + (uint64_t)j * l->plane;
#pragma omp simd
    for (uint32_t i = 0; i < width; i++) scale[i] += row[i] * row[i];
  }
#pragma omp simd
  for (uint32_t i = 0; i < width; i++) scale[i] = l->k + l->alpha * scale[i];
}

/* power[i] = scale[i]^-beta; two square roots for the beta that everybody uses */
static void powers(float beta, const float *scale, uint32_t width, float *power) {
  if (beta != 0.75f) {
    for (uint32_t i = 0; i < width; i++) power[i] = powf(scale[i], -beta);
    return;
  }
#pragma omp simd
  for (uint32_t i = 0; i < width; i++) {
    float root = sqrtf(scale[i]);
    power[i] = 1 / (root * sqrtf(root));
  }
}

/* Keeps the scales where the graph has a tensor for them. */
static void block_forward(const lrn *l, const float *x, float *y, float *kept, uint32_t width) {
  float scale[BLOCK], power[BLOCK];
  for (uint32_t c = 0; c < l->channels; c++) {
    uint64_t at = c * l->plane;
    scales(l, x, c, width, scale);
    if (kept) memcpy(kept + at, scale, width * sizeof *scale);
    powers(l->beta, scale, width, power);
#pragma omp simd
    for (uint32_t i = 0; i < width; i++) y[at + i] = x[at + i] * power[i];
  }
}

/* The last of what is saved, in both dialects that save something; NULL: nothing is. */
static float *kept_scales(const sn_call *call) {
  return call->saved[2] ? call->saved[2] : call->saved[0];
}

void sn__cpu_lrn_forward(const sn_call *call) {
  lrn l = lrn_of(call);
  float *kept = kept_scales(call);
#pragma omp parallel for schedule(static) if (l.items * l.channels * BLOCK >= SN__WORTH_THREADS)
  for (uint64_t item = 0; item < l.items; item++) {
    uint32_t width;
    uint64_t start = block_start(&l, item, &width);
    block_forward(&l, call->x[0] + start, call->y[0] + start, kept ? kept + start : NULL, width);
  }
}

/* Two rows of a block per channel and thread. */
uint64_t sn__cpu_lrn_scratch(const sn_layer *layer, int threads) {
  return (uint64_t)threads * 2 * layer->out.c * BLOCK * sizeof(float);
}

/* dx = dy power - 2 alpha beta x * sum over the window of ratio, with ratio = dy y / scale */
static void channel_backward(const lrn *l, uint32_t c, const float *x, const float *power, const float *ratio,
                             float *dx, uint32_t width) {
  sn__span window = sn__window(c, l->size, 1, l->size / 2, l->channels);
  float sum[BLOCK] = {0}, factor = 2 * l->alpha * l->beta;
  for (int64_t j = window.from; j < window.to; j++) {
#pragma omp simd
    for (uint32_t i = 0; i < width; i++) sum[i] += ratio[j * BLOCK + i];
  }
#pragma omp simd
  for (uint32_t i = 0; i < width; i++) dx[i] = power[i] - factor * x[i] * sum[i];
}

/* `power` gets dy scale^-beta, so that dy is not read after dx is written. */
static void block_backward(const lrn *l, const sn_call *call, uint64_t start, uint32_t width, float *power) {
  const float *x = call->x[0] + start, *dy = call->dy[0] + start, *kept = kept_scales(call);
  float *ratio = power + (uint64_t)l->channels * BLOCK, scale[BLOCK];
  for (uint32_t c = 0; c < l->channels; c++) {
    uint64_t at = c * l->plane, row = (uint64_t)c * BLOCK;
    if (kept)
      memcpy(scale, kept + start + at, width * sizeof *scale);
    else
      scales(l, x, c, width, scale);
    powers(l->beta, scale, width, power + row);
#pragma omp simd
    for (uint32_t i = 0; i < width; i++) {
      float y = x[at + i] * power[row + i]; /* as forward made it */
      ratio[row + i] = dy[at + i] * y / scale[i];
      power[row + i] *= dy[at + i];
    }
  }
  for (uint32_t c = 0; c < l->channels; c++)
    channel_backward(l, c, x + c * l->plane, power + (uint64_t)c * BLOCK, ratio, call->dx[0] + start + c * l->plane,
                     width);
}

void sn__cpu_lrn_backward(const sn_call *call) {
  lrn l = lrn_of(call);
  uint64_t rows = 2 * (uint64_t)l.channels * BLOCK;
#pragma omp parallel for schedule(static) if (l.items * l.channels * BLOCK >= SN__WORTH_THREADS)
  for (uint64_t item = 0; item < l.items; item++) {
    uint32_t width;
    uint64_t start = block_start(&l, item, &width);
    block_backward(&l, call, start, width, (float *)call->workspace + (uint64_t)omp_get_thread_num() * rows);
  }
}
