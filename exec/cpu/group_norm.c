/* CPU kernels of GROUP_NORM, in loops of ours; reference_group.c has the formulas. Values are plain, so a group's
 * channels are one run of numbers. Threads share groups, and channels for the gradients of their parameters; sums are
 * one thread's and in float64. Means and 1 / deviations, group by group, are kept for backward. */
#include "exec/cpu/cpu.h"

#include <math.h>

/* Of a net's layer: how many groups in all images, and what one is made of. */
typedef struct groups {
  uint64_t count, plane, size;
  uint32_t an_image, channels; /* of an image; channels of a group */
  float *means, *inverses;
} groups;

static groups groups_of(const sn_call *call) {
  const sn_layer *layer = sn__call_layer(call);
  groups g = {.an_image = layer->attr->groups,
              .channels = layer->out.c / layer->attr->groups,
              .count = (uint64_t)layer->out.n * layer->attr->groups,
              .plane = sn__plane(layer->out)};
  g.size = g.channels * g.plane;
  g.means = call->saved[0] ? call->saved[0] : call->statistics;
  g.inverses = call->saved[1] ? call->saved[1] : call->statistics + g.count;
  return g;
}

static void forward_group(const sn_call *call, const groups *g, uint64_t index) {
  const float *x = call->x[0] + index * g->size, *gamma = call->parameters + index % g->an_image * g->channels,
              *beta = gamma + sn__call_layer(call)->out.c;
  float *y = call->y[0] + index * g->size;
  double sum = 0, squares = 0;
  for (uint64_t i = 0; i < g->size; i++) sum += (double)x[i];
  const double mean = sum / (double)g->size;
  for (uint64_t i = 0; i < g->size; i++) squares += ((double)x[i] - mean) * ((double)x[i] - mean);
  g->means[index] = (float)mean;
  g->inverses[index] = (float)(1 / sqrt(squares / (double)g->size + (double)SN_BN_EPSILON));
  for (uint32_t c = 0; c < g->channels; c++) {
    const float factor = g->inverses[index] * gamma[c], shift = beta[c], middle = g->means[index];
#pragma omp simd
    for (uint64_t i = c * g->plane; i < (c + 1) * g->plane; i++) y[i] = (x[i] - middle) * factor + shift;
  }
}

void sn__cpu_group_norm_forward(const sn_call *call, uint32_t block) {
  (void)block;
  const groups g = groups_of(call);
#pragma omp parallel for schedule(static) if (g.count * g.size >= SN__WORTH_THREADS)
  for (uint64_t i = 0; i < g.count; i++) forward_group(call, &g, i);
}

static void backward_group(const sn_call *call, const groups *g, uint64_t index) {
  const float *x = call->x[0] + index * g->size, *dy = call->dy[0] + index * g->size,
              *gamma = call->parameters + index % g->an_image * g->channels;
  const float mean = g->means[index], inverse = g->inverses[index];
  float *dx = call->dx[0] + index * g->size;
  double of_g = 0, of_gz = 0;
  for (uint32_t c = 0; c < g->channels; c++) {
    double sum = 0, with_z = 0;
    for (uint64_t i = c * g->plane; i < (c + 1) * g->plane; i++) {
      sum += (double)dy[i];
      with_z += (double)dy[i] * (double)((x[i] - mean) * inverse);
    }
    of_g += sum * (double)gamma[c];
    of_gz += with_z * (double)gamma[c];
  }
  const float shift = (float)(of_g / (double)g->size), slope = (float)(of_gz / (double)g->size);
  for (uint32_t c = 0; c < g->channels; c++) {
#pragma omp simd
    for (uint64_t i = c * g->plane; i < (c + 1) * g->plane; i++)
      dx[i] = (dy[i] * gamma[c] - shift - (x[i] - mean) * inverse * slope) * inverse;
  }
}

/* Of channel c: the sums of dy z and of dy. */
static void channel_gradients(const sn_call *call, const groups *g, uint32_t c) {
  const sn_shape s = sn__call_layer(call)->out;
  double dgamma = 0, dbeta = 0;
  for (uint64_t n = 0; n < s.n; n++) {
    const uint64_t at = (n * s.c + c) * g->plane, group = n * g->an_image + c / g->channels;
    const float mean = g->means[group], inverse = g->inverses[group];
    for (uint64_t i = at; i < at + g->plane; i++) {
      dgamma += (double)call->dy[0][i] * (double)((call->x[0][i] - mean) * inverse);
      dbeta += (double)call->dy[0][i];
    }
  }
  call->gradients[c] = (float)dgamma;
  call->gradients[s.c + c] = (float)dbeta;
}

void sn__cpu_group_norm_backward(const sn_call *call, uint32_t block) {
  (void)block;
  const groups g = groups_of(call);
  const uint32_t channels = call->gradients ? sn__call_layer(call)->out.c : 0;
  const uint64_t count = call->dx[0] ? g.count : 0;
#pragma omp parallel for schedule(static) if (g.count * g.size >= SN__WORTH_THREADS)
  for (uint64_t i = 0; i < count; i++) backward_group(call, &g, i);
#pragma omp parallel for schedule(static) if (g.count * g.size >= SN__WORTH_THREADS)
  for (uint32_t c = 0; c < channels; c++) channel_gradients(call, &g, c);
}
