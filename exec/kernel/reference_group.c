/* Reference kernels of GROUP_NORM (Wu, He, ECCV 2018), over the channels of a group and all their pixels:
 *
 *   z = (x - mean) / sqrt(variance + eps), y = z gamma + beta
 *   dx = (g - mean(g) - z mean(g z)) / sqrt(variance + eps), with g = dy gamma */
#include "exec/kernel/reference_internal.h"

#include <math.h>
#include <stdlib.h>

typedef struct group {
  uint64_t at, count; /* the first number, and how many */
  uint32_t channel;   /* the first */
  double mean, inverse;
} group;

static group group_of(const sn_call *call, uint32_t n, uint32_t g) {
  const sn_layer *layer = sn__call_layer(call);
  const uint32_t channels = layer->out.c / layer->attr->groups;
  group of = {.channel = g * channels, .count = channels * sn__plane(layer->out)};
  of.at = sn__at(layer->out, n, of.channel, 0, 0);
  double squares = 0;
  for (uint64_t i = 0; i < of.count; i++) of.mean += call->x[0][of.at + i];
  of.mean /= (double)of.count;
  for (uint64_t i = 0; i < of.count; i++) squares += pow(call->x[0][of.at + i] - of.mean, 2);
  of.inverse = 1 / sqrt(squares / (double)of.count + (double)SN_BN_EPSILON);
  return of;
}

void sn__reference_group_norm_forward(const sn_call *call) {
  const sn_shape s = sn__call_layer(call)->out;
  for (uint32_t n = 0; n < s.n; n++)
    for (uint32_t g = 0; g < sn__call_layer(call)->attr->groups; g++) {
      const group of = group_of(call, n, g);
      for (uint64_t i = 0; i < of.count; i++) {
        const uint64_t c = of.channel + i / sn__plane(s);
        const double z = (call->x[0][of.at + i] - of.mean) * of.inverse;
        call->y[0][of.at + i] = (float)(z * call->parameters[c] + call->parameters[s.c + c]);
      }
    }
}

/* Adds to `sums`, gamma's gradients and then beta's, and writes dx. */
static void group_backward(const sn_call *call, const group *of, double *sums) {
  const sn_shape s = sn__call_layer(call)->out;
  double g_sum = 0, gz_sum = 0;
  for (uint64_t i = 0; i < of->count; i++) {
    const uint64_t c = of->channel + i / sn__plane(s);
    const double dy = call->dy[0][of->at + i], z = (call->x[0][of->at + i] - of->mean) * of->inverse;
    g_sum += dy * call->parameters[c];
    gz_sum += dy * call->parameters[c] * z;
    sums[c] += dy * z;
    sums[s.c + c] += dy;
  }
  for (uint64_t i = 0; i < of->count; i++) {
    const double g = (double)call->dy[0][of->at + i] * call->parameters[of->channel + i / sn__plane(s)],
                 z = (call->x[0][of->at + i] - of->mean) * of->inverse, count = (double)of->count;
    call->dx[0][of->at + i] = (float)((g - g_sum / count - z * gz_sum / count) * of->inverse);
  }
}

sn_status sn__reference_group_norm_backward(const sn_call *call, sn_err *err) {
  const sn_layer *layer = sn__call_layer(call);
  double *sums = calloc(2 * (size_t)layer->out.c, sizeof *sums);
  if (!sums) return sn_fail_memory(err);
  for (uint32_t n = 0; n < layer->out.n; n++)
    for (uint32_t g = 0; g < layer->attr->groups; g++) {
      const group of = group_of(call, n, g);
      group_backward(call, &of, sums);
    }
  for (uint64_t i = 0; i < layer->parameters; i++) call->gradients[i] = (float)sums[i];
  free(sums);
  return SN_OK;
}
