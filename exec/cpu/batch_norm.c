/* CPU kernels of BN; reference_norm.c has the formulas. They are ours: in plain layouts oneDNN's take about four times
 * as long, and they sum in float32, of which the gradients of deep networks take harm (docs/parity.md).
 *
 * Threads share channels. A channel goes through its cache three times forward (mean; variance; output) and twice
 * backward (both sums; gradient). Sums are in float64. */
#include "exec/cpu/cpu.h"

#include <math.h>

/* One channel: `images` runs of `plane` elements, `stride` apart, the first of which begins at `at`. */
typedef struct channel {
  uint64_t images, plane, stride, at;
} channel;

static channel channel_of(sn_shape s, uint32_t c) {
  return (channel){s.n, sn__plane(s), sn__image(s), c * sn__plane(s)};
}

static double mean_of(const channel *l, const float *x) {
  double sum = 0;
  for (uint64_t n = 0; n < l->images; n++) {
    const float *run = x + l->at + n * l->stride;
#pragma omp simd reduction(+ : sum)
    for (uint64_t i = 0; i < l->plane; i++) sum += (double)run[i];
  }
  return sum / (double)(l->images * l->plane);
}

static double variance_of(const channel *l, const float *x, float mean) {
  double sum = 0;
  for (uint64_t n = 0; n < l->images; n++) {
    const float *run = x + l->at + n * l->stride;
#pragma omp simd reduction(+ : sum)
    for (uint64_t i = 0; i < l->plane; i++) {
      float d = run[i] - mean;
      sum += (double)(d * d);
    }
  }
  return sum / (double)(l->images * l->plane);
}

/* y = scale (x - mean) + shift */
static void normalise(const channel *l, const float *x, float mean, float scale, float shift, float *y) {
  for (uint64_t n = 0; n < l->images; n++) {
    const float *from = x + l->at + n * l->stride;
    float *to = y + l->at + n * l->stride;
#pragma omp simd
    for (uint64_t i = 0; i < l->plane; i++) to[i] = (from[i] - mean) * scale + shift;
  }
}

/* In the graph's tensors where the dialect has them, else beside the graph. */
static float *saved_mean(const sn_call *call, uint32_t channels) {
  return call->saved[0] ? call->saved[0] : call->statistics + 2 * (uint64_t)channels;
}
static float *saved_deviation(const sn_call *call, uint32_t channels) {
  return call->saved[1] ? call->saved[1] : call->statistics + 3 * (uint64_t)channels;
}

static void channel_forward(const sn_call *call, sn_shape s, uint32_t c) {
  const channel l = channel_of(s, c);
  float mean = (float)mean_of(&l, call->x[0]);
  double variance = variance_of(&l, call->x[0], mean), m = (double)(l.images * l.plane);
  float inverse = (float)(1 / sqrt(variance + (double)SN_BN_EPSILON));
  saved_mean(call, s.c)[c] = mean;
  saved_deviation(call, s.c)[c] = inverse;
  normalise(&l, call->x[0], mean, inverse * call->parameters[c], call->parameters[s.c + c], call->y[0]);
  if (call->rerun) return;
  float *running_mean = call->statistics + c, *running_variance = running_mean + s.c;
  float unbiased = (float)(m > 1 ? variance * m / (m - 1) : variance);
  *running_mean += SN_BN_MOMENTUM * (mean - *running_mean);
  *running_variance += SN_BN_MOMENTUM * (unbiased - *running_variance);
}

void sn__cpu_bn_forward(const sn_call *call) {
  sn_shape s = sn__call_layer(call)->out;
#pragma omp parallel for schedule(static) if (sn__count(s) >= SN__WORTH_THREADS)
  for (uint32_t c = 0; c < s.c; c++) channel_forward(call, s, c);
}

/* Of dy, and of dy (x - mean). */
typedef struct sums {
  double dy, product;
} sums;

static sums sum_gradients(const channel *l, const float *x, const float *dy, float mean) {
  double plain = 0, product = 0;
  for (uint64_t n = 0; n < l->images; n++) {
    const float *value = x + l->at + n * l->stride, *gradient = dy + l->at + n * l->stride;
#pragma omp simd reduction(+ : plain, product)
    for (uint64_t i = 0; i < l->plane; i++) {
      plain += (double)gradient[i];
      product += (double)(gradient[i] * (value[i] - mean));
    }
  }
  return (sums){plain, product};
}

/* dx = scale (dy - a - b (x - mean)) */
static void spread(const channel *l, const float *x, const float *dy, float mean, const float by[3], float *dx) {
  float scale = by[0], a = by[1], b = by[2];
  for (uint64_t n = 0; n < l->images; n++) {
    const float *value = x + l->at + n * l->stride, *gradient = dy + l->at + n * l->stride;
    float *to = dx + l->at + n * l->stride;
#pragma omp simd
    for (uint64_t i = 0; i < l->plane; i++) to[i] = scale * (gradient[i] - a - b * (value[i] - mean));
  }
}

static void channel_backward(const sn_call *call, sn_shape s, uint32_t c) {
  const channel l = channel_of(s, c);
  float mean = saved_mean(call, s.c)[c], inverse = saved_deviation(call, s.c)[c];
  sums of = sum_gradients(&l, call->x[0], call->dy[0], mean);
  double m = (double)(l.images * l.plane), i = (double)inverse;
  call->gradients[c] = (float)(of.product * i);
  call->gradients[s.c + c] = (float)of.dy;
  if (!call->dx[0]) return;
  const float by[3] = {call->parameters[c] * inverse, (float)(of.dy / m), (float)(of.product * i * i / m)};
  spread(&l, call->x[0], call->dy[0], mean, by, call->dx[0]);
}

void sn__cpu_bn_backward(const sn_call *call) {
  sn_shape s = sn__call_layer(call)->out;
#pragma omp parallel for schedule(static) if (sn__count(s) >= SN__WORTH_THREADS)
  for (uint32_t c = 0; c < s.c; c++) channel_backward(call, s, c);
}
