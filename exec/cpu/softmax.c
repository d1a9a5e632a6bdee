/* CPU kernels of SOFTMAX with its loss, of whole images or of each position, and of the mean square that may stand in
 * their place; oneDNN has no loss. Values are plain. Of
 * whole images the classes lie together. Of positions they lie a plane apart: then some neighbouring positions are a
 * tile, and loops go over classes, and inside over the tile. Threads share images or tiles; losses are summed in their
 * order.
 *
 * The largest probability is 1 / sum of exp(x - top), so the loss needs no second sum and no logarithm of 0. What it
 * needs of x is read first: y may lie there. */
#include "exec/cpu/cpu.h"

#include "base/checked.h"

#include <math.h>

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

static void images_forward(const sn_call *call, sn_shape s) {
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

enum { TILE = 16 };

/* Some positions of an image, from element `at` on, the classes `apart`. */
typedef struct tile {
  uint64_t at, apart;
  const int32_t *labels;
  uint32_t classes, width;
} tile;

static uint64_t tiles_an_image(sn_shape s) {
  return sn_ceil_div(sn__plane(s), TILE);
}

static tile tile_of(const sn_call *call, sn_shape s, uint64_t index) {
  const uint64_t n = index / tiles_an_image(s), p = index % tiles_an_image(s) * TILE;
  return (tile){.at = n * sn__image(s) + p,
                .apart = sn__plane(s),
                .labels = call->labels + n * sn__plane(s) + p,
                .classes = s.c,
                .width = (uint32_t)sn_min(TILE, sn__plane(s) - p)};
}

static void tops_of(const tile *t, const float *x, float *top) {
  for (uint32_t l = 0; l < t->width; l++) top[l] = x[l];
  for (uint32_t c = 1; c < t->classes; c++) {
    const float *of = x + c * t->apart;
#pragma omp simd
    for (uint32_t l = 0; l < t->width; l++) top[l] = of[l] > top[l] ? of[l] : top[l];
  }
}

/* Returns the tile's cross-entropies, added up. */
static double tile_forward(const tile *t, const float *x, float *y) {
  float top[TILE], inverse[TILE];
  double sums[TILE] = {0}, loss = 0;
  tops_of(t, x, top);
  for (uint32_t l = 0; l < t->width; l++) loss += (double)top[l] - x[(uint64_t)t->labels[l] * t->apart + l];
  for (uint32_t c = 0; c < t->classes; c++)
    for (uint32_t l = 0; l < t->width; l++) sums[l] += y[c * t->apart + l] = expf(x[c * t->apart + l] - top[l]);
  for (uint32_t l = 0; l < t->width; l++) {
    loss += log(sums[l]);
    inverse[l] = (float)(1 / sums[l]);
  }
  for (uint32_t c = 0; c < t->classes; c++) {
#pragma omp simd
    for (uint32_t l = 0; l < t->width; l++) y[c * t->apart + l] *= inverse[l];
  }
  return loss;
}

static void positions_forward(const sn_call *call, sn_shape s) {
  const uint64_t tiles = s.n * tiles_an_image(s);
  double loss = 0;
#pragma omp parallel for ordered schedule(static, 1) if (sn__count(s) >= SN__WORTH_THREADS)
  for (uint64_t i = 0; i < tiles; i++) {
    const tile t = tile_of(call, s, i);
    const double of_tile = tile_forward(&t, call->x[0] + t.at, call->y[0] + t.at);
#pragma omp ordered
    loss += of_tile;
  }
  *call->loss = loss / ((double)s.n * (double)sn__plane(s));
}

/* dx = (y - truth) / rows */
static void classes_backward(const sn_call *call) {
  const sn_shape s = sn__call_layer(call)->out;
  const uint64_t plane = sn__plane(s), planes = (uint64_t)s.n * s.c;
  const float share = 1 / (float)(s.n * plane);
#pragma omp parallel for schedule(static) if (sn__count(s) >= SN__WORTH_THREADS)
  for (uint64_t i = 0; i < planes; i++) {
    const int32_t *labels = call->labels + i / s.c * plane, class = (int32_t)(i % s.c);
    const float *y = call->y[0] + i * plane;
    float *dx = call->dx[0] + i * plane;
    for (uint64_t p = 0; p < plane; p++) dx[p] = (y[p] - (labels[p] == class ? 1.0f : 0.0f)) * share;
  }
}

/* ---- mean squares: y holds the differences, but where backward reads x they are made again ---- */

enum { RUN = 4096 }; /* numbers whose squares a thread adds up, runs in their order */

static void squares_forward(const sn_call *call) {
  const float *x = call->x[0], *targets = sn__call_targets(call);
  float *y = call->y[0];
  const uint64_t count = sn__count(sn__call_layer(call)->out), runs = sn_ceil_div(count, RUN);
  double loss = 0;
#pragma omp parallel for ordered schedule(static, 1) if (count >= SN__WORTH_THREADS)
  for (uint64_t r = 0; r < runs; r++) {
    const uint64_t end = sn_min(count, (r + 1) * RUN);
    double of_run = 0;
#pragma omp simd reduction(+ : of_run)
    for (uint64_t i = r * RUN; i < end; i++) {
      const float difference = x[i] - targets[i];
      y[i] = difference;
      of_run += (double)difference * (double)difference;
    }
#pragma omp ordered
    loss += of_run;
  }
  *call->loss = loss / (double)count;
}

static void squares_backward(const sn_call *call) {
  const float *x = call->x[0], *y = call->y[0], *targets = sn__call_targets(call);
  const uint64_t count = sn__count(sn__call_layer(call)->out);
  const float share = 2 / (float)count;
#pragma omp parallel for schedule(static) if (count >= SN__WORTH_THREADS)
  for (uint64_t i = 0; i < count; i++) call->dx[0][i] = (y ? y[i] : x[i] - targets[i]) * share;
}

/* ---- both ---- */

void sn__cpu_softmax_forward(const sn_call *call, uint32_t block) {
  (void)block;
  const sn_shape s = sn__call_layer(call)->out;
  if (sn__has_targets(sn__call_layer(call)))
    squares_forward(call);
  else if (sn__plane(s) == 1)
    images_forward(call, s);
  else
    positions_forward(call, s);
}

/* dx may lie where y does. */
void sn__cpu_softmax_backward(const sn_call *call, uint32_t block) {
  (void)block;
  if (sn__has_targets(sn__call_layer(call)))
    squares_backward(call);
  else
    classes_backward(call);
}
