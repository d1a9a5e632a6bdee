/* Reference kernels of what is done at each position: FC of each position, LAYER_NORM and RMS_NORM.
 *
 *   LAYER_NORM   z = (x - mean) / sqrt(variance + eps), y = z gamma + beta, both over the channels of a position
 *   RMS_NORM     z = x / sqrt(mean square + eps), y = z gamma
 *
 * Backward, with g = dy gamma: dx = (g - mean(g) - z mean(g z)) / deviation, of RMS_NORM without mean(g). */
#include "exec/kernel/reference_internal.h"

#include <math.h>
#include <stdlib.h>

void sn__reference_fc_positions_forward(const sn_call *call) {
  const sn_layer *layer = sn__call_layer(call);
  sn_shape in = sn__call_input(call, 0), out = layer->out;
  for (uint32_t n = 0; n < out.n; n++)
    for (uint32_t o = 0; o < out.c; o++)
      for (uint64_t p = 0; p < sn__plane(out); p++) {
        double sum = layer->attr->bias ? call->parameters[sn__weights(layer) + o] : 0;
        for (uint32_t i = 0; i < in.c; i++)
          sum += (double)call->x[0][sn__at(in, n, i, 0, p)] * call->parameters[(uint64_t)o * in.c + i];
        call->y[0][sn__at(out, n, o, 0, p)] = (float)sum;
      }
}

/* The sum over images and positions of dy's channel o, times x's channel i where there is one. */
static double product(const sn_call *call, uint32_t o, const uint32_t *i) {
  sn_shape in = sn__call_input(call, 0), out = sn__call_layer(call)->out;
  double sum = 0;
  for (uint32_t n = 0; n < out.n; n++)
    for (uint64_t p = 0; p < sn__plane(out); p++)
      sum += (double)call->dy[0][sn__at(out, n, o, 0, p)] * (i ? call->x[0][sn__at(in, n, *i, 0, p)] : 1);
  return sum;
}

void sn__reference_fc_positions_backward(const sn_call *call) {
  const sn_layer *layer = sn__call_layer(call);
  sn_shape in = sn__call_input(call, 0), out = layer->out;
  for (uint32_t n = 0; n < out.n; n++)
    for (uint32_t i = 0; i < in.c; i++)
      for (uint64_t p = 0; p < sn__plane(out); p++) {
        double sum = 0;
        for (uint32_t o = 0; o < out.c; o++)
          sum += (double)call->dy[0][sn__at(out, n, o, 0, p)] * call->parameters[(uint64_t)o * in.c + i];
        call->dx[0][sn__at(in, n, i, 0, p)] = (float)sum;
      }
  for (uint32_t o = 0; o < out.c; o++) {
    for (uint32_t i = 0; i < in.c; i++) call->gradients[(uint64_t)o * in.c + i] = (float)product(call, o, &i);
    if (layer->attr->bias) call->gradients[sn__weights(layer) + o] = (float)product(call, o, NULL);
  }
}

/* Of a position: what is taken off its channels, and what they are multiplied by then. */
typedef struct row {
  double mean, inverse;
} row;

static row row_of(const sn_call *call, uint32_t n, uint64_t p) {
  sn_shape s = sn__call_layer(call)->out;
  row r = {0};
  double squares = 0;
  for (uint32_t c = 0; c < s.c && sn__call_layer(call)->op == SN_LAYER_NORM; c++)
    r.mean += call->x[0][sn__at(s, n, c, 0, p)] / (double)s.c;
  for (uint32_t c = 0; c < s.c; c++) squares += pow(call->x[0][sn__at(s, n, c, 0, p)] - r.mean, 2);
  r.inverse = 1 / sqrt(squares / s.c + (double)SN_BN_EPSILON);
  return r;
}

static void norm_row(const sn_call *call, uint32_t n, uint64_t p) {
  const sn_layer *layer = sn__call_layer(call);
  sn_shape s = layer->out;
  row r = row_of(call, n, p);
  for (uint32_t c = 0; c < s.c; c++) {
    uint64_t at = sn__at(s, n, c, 0, p);
    double shift = layer->op == SN_LAYER_NORM ? call->parameters[s.c + c] : 0;
    call->y[0][at] = (float)((call->x[0][at] - r.mean) * r.inverse * call->parameters[c] + shift);
  }
}

void sn__reference_row_norm_forward(const sn_call *call) {
  sn_shape s = sn__call_layer(call)->out;
  for (uint32_t n = 0; n < s.n; n++)
    for (uint64_t p = 0; p < sn__plane(s); p++) norm_row(call, n, p);
}

/* Adds to `sums`, gamma's gradients and then beta's, and writes dx. */
static void norm_row_backward(const sn_call *call, uint32_t n, uint64_t p, double *sums) {
  const sn_layer *layer = sn__call_layer(call);
  sn_shape s = layer->out;
  row r = row_of(call, n, p);
  double g_sum = 0, gz_sum = 0;
  for (uint32_t c = 0; c < s.c; c++) {
    uint64_t at = sn__at(s, n, c, 0, p);
    double dy = call->dy[0][at], z = (call->x[0][at] - r.mean) * r.inverse, g = dy * call->parameters[c];
    g_sum += layer->op == SN_LAYER_NORM ? g : 0;
    gz_sum += g * z;
    sums[c] += dy * z;
    sums[s.c + c] += dy;
  }
  for (uint32_t c = 0; c < s.c; c++) {
    uint64_t at = sn__at(s, n, c, 0, p);
    double z = (call->x[0][at] - r.mean) * r.inverse, g = (double)call->dy[0][at] * call->parameters[c];
    call->dx[0][at] = (float)((g - g_sum / s.c - z * gz_sum / s.c) * r.inverse);
  }
}

sn_status sn__reference_row_norm_backward(const sn_call *call, sn_err *err) {
  const sn_layer *layer = sn__call_layer(call);
  sn_shape s = layer->out;
  double *sums = calloc(2 * (size_t)s.c, sizeof *sums);
  if (!sums) return sn_fail_memory(err);
  for (uint32_t n = 0; n < s.n; n++)
    for (uint64_t p = 0; p < sn__plane(s); p++) norm_row_backward(call, n, p, sums);
  for (uint64_t i = 0; i < layer->parameters; i++) call->gradients[i] = (float)sums[i];
  free(sums);
  return SN_OK;
}
