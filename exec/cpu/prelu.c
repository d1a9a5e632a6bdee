/* CPU kernels of an ACT with parameters (PReLU), in loops of ours: x where it is above 0, else its slope times x. One
 * slope, or one a channel; blocked values stay so. Each element is one thread's, and so is each channel's sum for the
 * slope's gradient, in float64; that of a single slope adds these up in the order of the channels: results do not
 * depend on the threads. */
#include "exec/cpu/cpu.h"

enum { WIDEST = 16 };

/* The slopes of the channels that run `run` of an image's, `block` together, begins with. */
static void take_slopes(const sn_call *call, uint32_t block, uint64_t run, float *slopes) {
  const sn_layer *layer = sn__call_layer(call);
  for (uint32_t l = 0; l < block; l++)
    slopes[l] = call->parameters[layer->attr->slopes == 1 ? 0 : run * block % layer->out.c + l];
}

void sn__cpu_prelu_forward(const sn_call *call, uint32_t block) {
  const sn_shape s = sn__call_layer(call)->out;
  const uint64_t runs = (uint64_t)s.n * s.c / block, size = sn__plane(s) * block;
#pragma omp parallel for schedule(static) if (sn__count(s) >= SN__WORTH_THREADS)
  for (uint64_t r = 0; r < runs; r++) {
    const float *x = call->x[0] + r * size;
    float *y = call->y[0] + r * size, slopes[WIDEST];
    take_slopes(call, block, r, slopes);
    for (uint64_t i = 0; i < size; i += block) {
#pragma omp simd
      for (uint32_t l = 0; l < block; l++) y[i + l] = x[i + l] > 0 ? x[i + l] : slopes[l] * x[i + l];
    }
  }
}

/* dx may lie where dy does. */
static void make_dx(const sn_call *call, uint32_t block) {
  const sn_shape s = sn__call_layer(call)->out;
  const uint64_t runs = (uint64_t)s.n * s.c / block, size = sn__plane(s) * block;
#pragma omp parallel for schedule(static) if (sn__count(s) >= SN__WORTH_THREADS)
  for (uint64_t r = 0; r < runs; r++) {
    const float *x = call->x[0] + r * size, *dy = call->dy[0] + r * size;
    float *dx = call->dx[0] + r * size, slopes[WIDEST];
    take_slopes(call, block, r, slopes);
    for (uint64_t i = 0; i < size; i += block) {
#pragma omp simd
      for (uint32_t l = 0; l < block; l++) dx[i + l] = x[i + l] > 0 ? dy[i + l] : slopes[l] * dy[i + l];
    }
  }
}

/* Over the batch, of the channels from `c`, `block` together. */
static void sum_channels(const sn_call *call, uint32_t block, uint64_t c, double *sums) {
  const sn_shape s = sn__call_layer(call)->out;
  for (uint64_t n = 0; n < s.n; n++) {
    const uint64_t at = n * sn__image(s) + c * sn__plane(s);
    const float *x = call->x[0] + at, *dy = call->dy[0] + at;
    for (uint64_t i = 0; i < sn__plane(s) * block; i += block)
      for (uint32_t l = 0; l < block; l++) sums[l] += x[i + l] > 0 ? 0 : (double)dy[i + l] * x[i + l];
  }
}

static void make_gradients(const sn_call *call, uint32_t block) {
  const sn_layer *layer = sn__call_layer(call);
  double all = 0;
  if (layer->attr->slopes == 1) {
    for (uint64_t c = 0; c < layer->out.c; c += block) {
      double sums[WIDEST] = {0};
      sum_channels(call, block, c, sums);
      for (uint32_t l = 0; l < block; l++) all += sums[l];
    }
    call->gradients[0] = (float)all;
    return;
  }
#pragma omp parallel for schedule(static) if (sn__count(layer->out) >= SN__WORTH_THREADS)
  for (uint64_t c = 0; c < layer->out.c; c += block) {
    double sums[WIDEST] = {0};
    sum_channels(call, block, c, sums);
    for (uint32_t l = 0; l < block; l++) call->gradients[c + l] = (float)sums[l];
  }
}

void sn__cpu_prelu_backward(const sn_call *call, uint32_t block) {
  if (call->gradients) make_gradients(call, block);
  if (call->dx[0]) make_dx(call, block);
}
