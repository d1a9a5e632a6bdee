/* CPU kernels of BN; reference_norm.c has the formulas. They are ours: oneDNN's sum in float32, of which the gradients
 * of deep networks take harm (docs/measured/parity.md), and in plain layouts take about four times as long.
 *
 * Threads share channels, blocked ones a block at a time. They go through the cache twice forward (sums; output) and
 * twice backward (sums; gradient). Sums are in float64, forward of differences from the channel's first value: those
 * and their squares lose nothing that float32 would show (Chan, Golub and LeVeque 1983). Loops are over rows of so many
 * floats: one pixel of a block of channels, or neighbours of a plain channel, whose sums are then added up.
 *
 * Every loop is compiled twice, for AVX2 and for any processor, with the same bits: each lane adds its own
 * numbers in the same order, and nothing is contracted. */
#include "exec/cpu/cpu.h"

#include <math.h>

enum { WIDEST = 16 };

/* Into each of the kernels at the end. */
#define ALWAYS_INLINE static inline __attribute__((always_inline))
#ifdef __x86_64__
#define AVX2 __attribute__((target("avx2")))
#else
#define AVX2
#endif

/* Channels that are taken together, `together` of them; `images` runs of `count` floats, `stride` apart, the first of
 * which begins at `at`. `width` of a row: all of a block, or any number of a plain channel. */
typedef struct channels {
  uint32_t first, together, width;
  uint64_t images, count, stride, at;
} channels;

static channels channels_of(sn_shape s, uint32_t first, uint32_t block) {
  return (channels){.first = first,
                    .together = block,
                    .width = block == 1 ? WIDEST : block,
                    .images = s.n,
                    .count = sn__plane(s) * block,
                    .stride = sn__image(s),
                    .at = first * sn__plane(s)};
}

/* Of one channel all lanes of a row have the same. */
static void widen(const channels *c, float *of) {
  for (uint32_t l = c->together; l < c->width; l++) of[l] = of[0];
}

static void add_up(const channels *c, double *sums) {
  for (uint32_t l = c->together; l < c->width; l++) sums[0] += sums[l];
}

/* Adds x - from, and its square. The rest is less than a row. */
ALWAYS_INLINE void sum_run(const float *x, uint64_t count, uint32_t width, const double *from, double *sums,
                           double *squares) {
  uint64_t rows = count / width * width;
  for (uint64_t i = 0; i < rows; i += width) {
#pragma omp simd
    for (uint32_t l = 0; l < width; l++) {
      double off = (double)x[i + l] - from[l];
      sums[l] += off;
      squares[l] += off * off;
    }
  }
  for (uint64_t i = rows; i < count; i++) {
    double off = (double)x[i] - from[i - rows];
    sums[i - rows] += off;
    squares[i - rows] += off * off;
  }
}

/* What y is made with. */
typedef struct line {
  float mean[WIDEST], scale[WIDEST], shift[WIDEST];
} line;

static void widen_line(const channels *c, line *y) {
  widen(c, y->mean);
  widen(c, y->scale);
  widen(c, y->shift);
}

static inline float value_of(const line *y, float x, uint32_t l) {
  return (x - y->mean[l]) * y->scale[l] + y->shift[l];
}

/* As oneDNN's ReLU has it, what is not a number too. */
static inline float cut(float y, float ceiling) {
  y = y > 0 ? y : 0;
  return y < ceiling ? y : ceiling;
}

/* What is left of dy by a y that was cut. */
static inline float pass(float dy, float y, float ceiling) {
  dy = y > 0 ? dy : 0;
  return y < ceiling ? dy : 0;
}

ALWAYS_INLINE void normalise_run(const float *x, uint64_t count, uint32_t width, const line *of, float ceiling,
                                 float *y) {
  uint64_t rows = count / width * width;
  for (uint64_t i = 0; i < rows; i += width) {
#pragma omp simd
    for (uint32_t l = 0; l < width; l++) {
      const float value = value_of(of, x[i + l], l);
      y[i + l] = ceiling > 0 ? cut(value, ceiling) : value;
    }
  }
  for (uint64_t i = rows; i < count; i++) {
    const float value = value_of(of, x[i], (uint32_t)(i - rows));
    y[i] = ceiling > 0 ? cut(value, ceiling) : value;
  }
}

/* In the graph's tensors where the dialect has them, else beside the graph. */
static float *saved_mean(const sn_call *call, uint32_t count) {
  return call->saved[0] ? call->saved[0] : call->statistics + 2 * (uint64_t)count;
}
static float *saved_deviation(const sn_call *call, uint32_t count) {
  return call->saved[1] ? call->saved[1] : call->statistics + 3 * (uint64_t)count;
}

/* Keeps what a channel has been found to be; returns 1 / sqrt(variance + epsilon). */
static float keep(const sn_call *call, uint32_t channel, uint32_t count, double m, float mean, double variance) {
  float inverse = (float)(1 / sqrt(variance + (double)SN_BN_EPSILON));
  saved_mean(call, count)[channel] = mean;
  saved_deviation(call, count)[channel] = inverse;
  if (call->rerun) return inverse;
  float *running_mean = call->statistics + channel, *running_variance = running_mean + count;
  float unbiased = (float)(m > 1 ? variance * m / (m - 1) : variance);
  *running_mean += SN_BN_MOMENTUM * (mean - *running_mean);
  *running_variance += SN_BN_MOMENTUM * (unbiased - *running_variance);
  return inverse;
}

/* Images times pixels. */
static double elements(const channels *c) {
  const uint64_t count = c->images * (c->count / c->together);
  return (double)count;
}

/* A ceiling of 0: nothing is cut. */
ALWAYS_INLINE void forward(const sn_call *call, const channels *c, uint32_t width, float ceiling) {
  const float *x = call->x[0] + c->at;
  const uint32_t all = sn__call_layer(call)->out.c;
  const double m = elements(c);
  double from[WIDEST] = {0}, sums[WIDEST] = {0}, squares[WIDEST] = {0};
  line y = {.mean = {0}};
  for (uint32_t l = 0; l < width; l++) from[l] = (double)x[c->together > 1 ? l : 0];
  for (uint64_t n = 0; n < c->images; n++) sum_run(x + n * c->stride, c->count, width, from, sums, squares);
  add_up(c, sums);
  add_up(c, squares);
  for (uint32_t l = 0; l < c->together; l++) {
    const uint32_t channel = c->first + l;
    const double variance = fmax(0, (squares[l] - sums[l] * sums[l] / m) / m);
    y.mean[l] = (float)(from[l] + sums[l] / m);
    y.scale[l] = keep(call, channel, all, m, y.mean[l], variance) * call->parameters[channel];
    y.shift[l] = call->parameters[all + channel];
  }
  widen_line(c, &y);
  for (uint64_t n = 0; n < c->images; n++)
    normalise_run(x + n * c->stride, c->count, width, &y, ceiling, call->y[0] + c->at + n * c->stride);
}

static inline void add_gradient(float x, float dy, uint32_t l, const line *y, float ceiling, double *sums,
                                double *products) {
  if (ceiling > 0) dy = pass(dy, value_of(y, x, l), ceiling);
  sums[l] += (double)dy;
  products[l] += (double)(dy * (x - y->mean[l]));
}

/* Adds dy, and dy (x - mean). */
ALWAYS_INLINE void sum_gradients(const float *x, const float *dy, uint64_t count, uint32_t width, const line *y,
                                 float ceiling, double *sums, double *products) {
  uint64_t rows = count / width * width;
  for (uint64_t i = 0; i < rows; i += width) {
#pragma omp simd
    for (uint32_t l = 0; l < width; l++) add_gradient(x[i + l], dy[i + l], l, y, ceiling, sums, products);
  }
  for (uint64_t i = rows; i < count; i++) add_gradient(x[i], dy[i], (uint32_t)(i - rows), y, ceiling, sums, products);
}

/* What dx is made with, besides. */
typedef struct means {
  float a[WIDEST], b[WIDEST];
} means;

static inline float gradient_of(float x, float dy, uint32_t l, const line *y, const means *of, float ceiling) {
  if (ceiling > 0) dy = pass(dy, value_of(y, x, l), ceiling);
  return y->scale[l] * (dy - of->a[l] - of->b[l] * (x - y->mean[l]));
}

/* dx = scale (dy - a - b (x - mean)) */
ALWAYS_INLINE void spread_run(const float *x, const float *dy, uint64_t count, uint32_t width, const line *y,
                              const means *of, float ceiling, float *dx) {
  uint64_t rows = count / width * width;
  for (uint64_t i = 0; i < rows; i += width) {
#pragma omp simd
    for (uint32_t l = 0; l < width; l++) dx[i + l] = gradient_of(x[i + l], dy[i + l], l, y, of, ceiling);
  }
  for (uint64_t i = rows; i < count; i++) dx[i] = gradient_of(x[i], dy[i], (uint32_t)(i - rows), y, of, ceiling);
}

/* The line as forward had it. */
static line saved_line(const sn_call *call, const channels *c) {
  const uint32_t all = sn__call_layer(call)->out.c;
  line y = {.mean = {0}};
  for (uint32_t l = 0; l < c->together; l++) {
    y.mean[l] = saved_mean(call, all)[c->first + l];
    y.scale[l] = saved_deviation(call, all)[c->first + l] * call->parameters[c->first + l];
    y.shift[l] = call->parameters[all + c->first + l];
  }
  widen_line(c, &y);
  return y;
}

ALWAYS_INLINE void backward(const sn_call *call, const channels *c, uint32_t width, float ceiling) {
  const float *x = call->x[0] + c->at, *dy = call->dy[0] + c->at;
  const uint32_t all = sn__call_layer(call)->out.c;
  const double m = elements(c);
  const line y = saved_line(call, c);
  double sums[WIDEST] = {0}, products[WIDEST] = {0};
  means of = {.a = {0}};
  for (uint64_t n = 0; n < c->images; n++)
    sum_gradients(x + n * c->stride, dy + n * c->stride, c->count, width, &y, ceiling, sums, products);
  add_up(c, sums);
  add_up(c, products);
  for (uint32_t l = 0; l < c->together; l++) {
    const uint32_t channel = c->first + l;
    const double inverse = (double)saved_deviation(call, all)[channel];
    if (call->gradients) {
      call->gradients[channel] = (float)(products[l] * inverse);
      call->gradients[all + channel] = (float)sums[l];
    }
    of.a[l] = (float)(sums[l] / m);
    of.b[l] = (float)(products[l] * inverse * inverse / m);
  }
  if (!call->dx[0]) return;
  widen(c, of.a);
  widen(c, of.b);
  for (uint64_t n = 0; n < c->images; n++)
    spread_run(x + n * c->stride, dy + n * c->stride, c->count, width, &y, &of, ceiling,
               call->dx[0] + c->at + n * c->stride);
}

/* Constants of width and ceiling, so that each has loops of its own. */
ALWAYS_INLINE void forward_rows(const sn_call *call, const channels *c) {
  const bool cuts = call->ceiling > 0;
  if (c->width == WIDEST && cuts)
    forward(call, c, WIDEST, call->ceiling);
  else if (c->width == WIDEST)
    forward(call, c, WIDEST, 0);
  else if (cuts)
    forward(call, c, 8, call->ceiling);
  else
    forward(call, c, 8, 0);
}

ALWAYS_INLINE void backward_rows(const sn_call *call, const channels *c) {
  const bool cuts = call->ceiling > 0;
  if (c->width == WIDEST && cuts)
    backward(call, c, WIDEST, call->ceiling);
  else if (c->width == WIDEST)
    backward(call, c, WIDEST, 0);
  else if (cuts)
    backward(call, c, 8, call->ceiling);
  else
    backward(call, c, 8, 0);
}

static void forward_anywhere(const sn_call *call, const channels *c) {
  forward_rows(call, c);
}

static void backward_anywhere(const sn_call *call, const channels *c) {
  backward_rows(call, c);
}

AVX2 static void forward_avx2(const sn_call *call, const channels *c) {
  forward_rows(call, c);
}

AVX2 static void backward_avx2(const sn_call *call, const channels *c) {
  backward_rows(call, c);
}

static bool has_avx2(void) {
  return (dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx2) == dnnl_cpu_isa_avx2;
}

static void run(const sn_call *call, uint32_t block, void (*kernel)(const sn_call *call, const channels *c)) {
  const sn_shape s = sn__call_layer(call)->out;
#pragma omp parallel for schedule(static) if (sn__count(s) >= SN__WORTH_THREADS)
  for (uint32_t first = 0; first < s.c; first += block) {
    const channels c = channels_of(s, first, block);
    kernel(call, &c);
  }
}

void sn__cpu_bn_forward(const sn_call *call, uint32_t block) {
  run(call, block, has_avx2() ? forward_avx2 : forward_anywhere);
}

void sn__cpu_bn_backward(const sn_call *call, uint32_t block) {
  run(call, block, has_avx2() ? backward_avx2 : backward_anywhere);
}
