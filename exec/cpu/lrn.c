/* CPU kernels of LRN; reference_norm.c has the formulas. They are ours: oneDNN's want a workspace of twice the tensor
 * and are slow backward. Threads share runs of pixels; all channels of a run go through the cache once, and x is first
 * put into scratch, channel by channel, however it lies. Work is `size` multiply-adds and one power an element.
 * Backward may write over dy, so it first keeps, in scratch, what neighbouring channels need of it. */
#include "exec/cpu/cpu.h"

#include "base/checked.h"

#include <math.h>
#include <omp.h>
#include <string.h>

enum { RUN = 64 }; /* pixels: 4 lines of cache a channel */

/* Sizes of an LRN. The runs of an image come after those of the image before; the last of each may be short. */
typedef struct lrn {
  uint32_t size, channels, block; /* block: channels that lie together, 1 where they lie plain */
  uint64_t plane, runs, items;    /* elements of a plane, runs of an image and of the batch */
  float k, alpha, beta;           /* alpha already divided by the size */
} lrn;

static lrn lrn_of(const sn_call *call, uint32_t block) {
  const sn_layer *layer = sn__call_layer(call);
  const sn_attr *a = layer->attr;
  uint64_t plane = sn__plane(layer->out), runs = sn_ceil_div(plane, RUN);
  return (lrn){a->lrn_size,
               layer->out.c,
               block,
               plane,
               runs,
               layer->out.n * runs,
               (float)a->lrn_k,
               (float)(a->lrn_alpha / a->lrn_size),
               (float)a->lrn_beta};
}

/* Where a run begins in channel 0, and how many pixels it has. */
static uint64_t run_start(const lrn *l, uint64_t item, uint32_t *width) {
  uint64_t pixel = item % l->runs * RUN;
  *width = (uint32_t)sn_min(RUN, l->plane - pixel);
  return item / l->runs * l->channels * l->plane + pixel * l->block;
}

/* Where it begins in channel c, from there. Its pixels are `block` apart. */
static uint64_t channel_start(const lrn *l, uint32_t c) {
  return (uint64_t)(c / l->block) * l->plane * l->block + c % l->block;
}

static void load(const lrn *l, const float *from, uint32_t c, uint32_t width, float *row) {
  const float *at = from + channel_start(l, c);
  for (uint32_t i = 0; i < width; i++) row[i] = at[(uint64_t)i * l->block];
}

static void store(const lrn *l, const float *row, uint32_t c, uint32_t width, float *to) {
  float *at = to + channel_start(l, c);
  for (uint32_t i = 0; i < width; i++) at[(uint64_t)i * l->block] = row[i];
}

static void load_all(const lrn *l, const float *from, uint32_t width, float *rows) {
  for (uint32_t c = 0; c < l->channels; c++) load(l, from, c, width, rows + (uint64_t)c * RUN);
}

/* scale[i] = k + alpha * sum of squares over the window of channel c; x: rows of all channels */
static void scales(const lrn *l, const float *x, uint32_t c, uint32_t width, float *scale) {
  sn__span window = sn__window(c, l->size, 1, l->size / 2, l->channels);
  for (uint32_t i = 0; i < width; i++) scale[i] = 0;
  for (int64_t j = window.from; j < window.to; j++) {
    const float *row = x + j * RUN;
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

/* Keeps the scales where the graph has a tensor for them. `rows`: one for each channel. */
static void run_forward(const lrn *l, const float *x, float *y, float *kept, uint32_t width, float *rows) {
  float scale[RUN], made[RUN];
  load_all(l, x, width, rows);
  for (uint32_t c = 0; c < l->channels; c++) {
    const float *row = rows + (uint64_t)c * RUN;
    scales(l, rows, c, width, scale);
    if (kept) store(l, scale, c, width, kept);
    powers(l->beta, scale, width, made);
#pragma omp simd
    for (uint32_t i = 0; i < width; i++) made[i] *= row[i];
    store(l, made, c, width, y);
  }
}

/* The last of what is saved, in both dialects that save something; NULL: nothing is. */
static float *kept_scales(const sn_call *call) {
  return call->saved[2] ? call->saved[2] : call->saved[0];
}

/* Of channels, per thread: x, and backward two more. */
enum { FORWARD_ROWS = 1, BACKWARD_ROWS = 3 };

uint64_t sn__cpu_lrn_scratch(const sn_layer *layer, bool backward, int threads) {
  return (uint64_t)threads * (backward ? BACKWARD_ROWS : FORWARD_ROWS) * layer->out.c * RUN * sizeof(float);
}

/* The rows of this thread. */
static float *own_rows(const sn_call *call, const lrn *l, uint32_t rows) {
  return (float *)call->workspace + (uint64_t)omp_get_thread_num() * rows * l->channels * RUN;
}

void sn__cpu_lrn_forward(const sn_call *call, uint32_t block) {
  lrn l = lrn_of(call, block);
  float *kept = kept_scales(call);
#pragma omp parallel for schedule(static) if (l.items * l.channels * RUN >= SN__WORTH_THREADS)
  for (uint64_t item = 0; item < l.items; item++) {
    uint32_t width;
    uint64_t start = run_start(&l, item, &width);
    run_forward(&l, call->x[0] + start, call->y[0] + start, kept ? kept + start : NULL, width,
                own_rows(call, &l, FORWARD_ROWS));
  }
}

/* dx = dy power - 2 alpha beta x * sum over the window of ratio, with ratio = dy y / scale */
static void channel_backward(const lrn *l, uint32_t c, const float *x, const float *power, const float *ratio,
                             float *dx, uint32_t width) {
  sn__span window = sn__window(c, l->size, 1, l->size / 2, l->channels);
  float sum[RUN] = {0}, made[RUN], factor = 2 * l->alpha * l->beta;
  for (int64_t j = window.from; j < window.to; j++) {
#pragma omp simd
    for (uint32_t i = 0; i < width; i++) sum[i] += ratio[j * RUN + i];
  }
#pragma omp simd
  for (uint32_t i = 0; i < width; i++) made[i] = power[i] - factor * x[i] * sum[i];
  store(l, made, c, width, dx);
}

/* `power` gets dy scale^-beta, so that dy is not read after dx is written. */
static void run_backward(const lrn *l, const sn_call *call, uint64_t start, uint32_t width, float *x) {
  const uint64_t all = (uint64_t)l->channels * RUN;
  const float *kept = kept_scales(call);
  float *power = x + all, *ratio = power + all, scale[RUN], dy[RUN];
  load_all(l, call->x[0] + start, width, x);
  for (uint32_t c = 0; c < l->channels; c++) {
    uint64_t row = (uint64_t)c * RUN;
    load(l, call->dy[0] + start, c, width, dy);
    if (kept)
      load(l, kept + start, c, width, scale);
    else
      scales(l, x, c, width, scale);
    powers(l->beta, scale, width, power + row);
#pragma omp simd
    for (uint32_t i = 0; i < width; i++) {
      float y = x[row + i] * power[row + i]; /* as forward made it */
      ratio[row + i] = dy[i] * y / scale[i];
      power[row + i] *= dy[i];
    }
  }
  for (uint32_t c = 0; c < l->channels; c++)
    channel_backward(l, c, x + (uint64_t)c * RUN, power + (uint64_t)c * RUN, ratio, call->dx[0] + start, width);
}

void sn__cpu_lrn_backward(const sn_call *call, uint32_t block) {
  lrn l = lrn_of(call, block);
#pragma omp parallel for schedule(static) if (l.items * l.channels * RUN >= SN__WORTH_THREADS)
  for (uint64_t item = 0; item < l.items; item++) {
    uint32_t width;
    uint64_t start = run_start(&l, item, &width);
    run_backward(&l, call, start, width, own_rows(call, &l, BACKWARD_ROWS));
  }
}
