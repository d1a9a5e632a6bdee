/* CPU kernels of LAYER_NORM and RMS_NORM: norms over the channels of each position; reference_sequence.c has the
 * formulas. oneDNN's want the channels together and have no RMS norm.
 *
 * A tile is some neighbouring positions of an image, whose channels lie a plane apart: loops go over channels, and
 * inside over the tile. Threads share tiles, and channels where gradients of parameters are summed, in float64. What
 * forward finds of each position - mean, one over deviation - is kept in the graph's tensors where the dialect has
 * them, else beside the graph. What PyTorch keeps of an RMS norm's result is made again. */
#include "exec/cpu/cpu.h"

#include "base/checked.h"

#include <math.h>

enum { TILE = 16 };

typedef struct tile {
  uint64_t at, row; /* its first element, and position counted through all images */
  uint64_t apart;   /* from channel to channel */
  uint32_t channels, width;
} tile;

static uint64_t tiles_an_image(sn_shape s) {
  return sn_ceil_div(sn__plane(s), TILE);
}

static tile tile_of(sn_shape s, uint64_t index) {
  const uint64_t n = index / tiles_an_image(s), p = index % tiles_an_image(s) * TILE;
  return (tile){.at = n * sn__image(s) + p,
                .row = n * sn__plane(s) + p,
                .apart = sn__plane(s),
                .channels = s.c,
                .width = (uint32_t)sn_min(TILE, sn__plane(s) - p)};
}

static uint64_t rows_of(sn_shape s) {
  return s.n * sn__plane(s);
}

static bool is_centred(const sn_call *call) {
  return sn__call_layer(call)->op == SN_LAYER_NORM;
}

/* By position; of an RMS norm there is no mean. */
static float *means_of(const sn_call *call) {
  if (!is_centred(call)) return NULL;
  return call->saved[0] ? call->saved[0] : call->statistics;
}
static float *inverses_of(const sn_call *call) {
  if (!is_centred(call)) return call->saved[0] ? call->saved[0] : call->statistics;
  return call->saved[1] ? call->saved[1] : call->statistics + rows_of(sn__call_layer(call)->out);
}

/* Mean of the channels, or of their squares around `mean`. */
static void average(const tile *t, const float *x, const float *mean, bool squares, double *to) {
  for (uint32_t l = 0; l < t->width; l++) to[l] = 0;
  for (uint32_t c = 0; c < t->channels; c++) {
    const float *of = x + t->at + c * t->apart;
#pragma omp simd
    for (uint32_t l = 0; l < t->width; l++) {
      const double value = (double)(of[l] - mean[l]);
      to[l] += squares ? value * value : value;
    }
  }
  for (uint32_t l = 0; l < t->width; l++) to[l] /= t->channels;
}

static void forward_tile(const sn_call *call, const tile *t) {
  const bool centred = is_centred(call);
  const float *gamma = call->parameters;
  float mean[TILE] = {0}, inverse[TILE] = {0};
  double found[TILE];
  if (centred) {
    average(t, call->x[0], mean, false, found);
    for (uint32_t l = 0; l < t->width; l++) mean[l] = (float)found[l];
  }
  average(t, call->x[0], mean, true, found);
  for (uint32_t l = 0; l < t->width; l++) inverse[l] = (float)(1 / sqrt(found[l] + (double)SN_BN_EPSILON));
  for (uint32_t c = 0; c < t->channels; c++) {
    const float *x = call->x[0] + t->at + c * t->apart, shift = centred ? gamma[t->channels + c] : 0;
    float *y = call->y[0] + t->at + c * t->apart;
#pragma omp simd
    for (uint32_t l = 0; l < t->width; l++) y[l] = (x[l] - mean[l]) * inverse[l] * gamma[c] + shift;
  }
  for (uint32_t l = 0; l < t->width; l++) {
    if (centred) means_of(call)[t->row + l] = mean[l];
    inverses_of(call)[t->row + l] = inverse[l];
  }
}

void sn__cpu_row_norm_forward(const sn_call *call, uint32_t block) {
  (void)block;
  const sn_shape s = sn__call_layer(call)->out;
  const uint64_t tiles = s.n * tiles_an_image(s);
#pragma omp parallel for schedule(static) if (sn__count(s) >= SN__WORTH_THREADS)
  for (uint64_t i = 0; i < tiles; i++) {
    const tile t = tile_of(s, i);
    forward_tile(call, &t);
  }
}

/* dx = (g - mean(g) - z mean(g z)) inverse, with g = dy gamma */
static void backward_tile(const sn_call *call, const tile *t) {
  float mean[TILE] = {0}, inverse[TILE];
  double g_sum[TILE] = {0}, gz_sum[TILE] = {0};
  const bool centred = is_centred(call);
  for (uint32_t l = 0; l < t->width; l++) {
    if (centred) mean[l] = means_of(call)[t->row + l];
    inverse[l] = inverses_of(call)[t->row + l];
  }
  for (uint32_t c = 0; c < t->channels; c++) {
    const float *x = call->x[0] + t->at + c * t->apart, *dy = call->dy[0] + t->at + c * t->apart;
#pragma omp simd
    for (uint32_t l = 0; l < t->width; l++) {
      const double g = (double)(dy[l] * call->parameters[c]);
      g_sum[l] += centred ? g : 0;
      gz_sum[l] += g * (double)((x[l] - mean[l]) * inverse[l]);
    }
  }
  for (uint32_t c = 0; c < t->channels; c++) {
    const float *x = call->x[0] + t->at + c * t->apart, *dy = call->dy[0] + t->at + c * t->apart;
    float *dx = call->dx[0] + t->at + c * t->apart;
#pragma omp simd
    for (uint32_t l = 0; l < t->width; l++) {
      const float z = (x[l] - mean[l]) * inverse[l];
      dx[l] = (dy[l] * call->parameters[c] - (float)(g_sum[l] / t->channels) - z * (float)(gz_sum[l] / t->channels)) *
              inverse[l];
    }
  }
}

/* Of channel c: the sums of dy z and of dy. */
static void channel_gradients(const sn_call *call, sn_shape s, uint32_t c) {
  const float *means = means_of(call), *inverses = inverses_of(call);
  double dgamma = 0, dbeta = 0;
  for (uint64_t n = 0; n < s.n; n++) {
    const uint64_t at = sn__plane(s) * (n * s.c + c), row = n * sn__plane(s);
    for (uint64_t p = 0; p < sn__plane(s); p++) {
      const float dy = call->dy[0][at + p], mean = means ? means[row + p] : 0;
      dgamma += (double)dy * (double)((call->x[0][at + p] - mean) * inverses[row + p]);
      dbeta += (double)dy;
    }
  }
  call->gradients[c] = (float)dgamma;
  if (means) call->gradients[s.c + c] = (float)dbeta;
}

void sn__cpu_row_norm_backward(const sn_call *call, uint32_t block) {
  (void)block;
  const sn_shape s = sn__call_layer(call)->out;
  const uint64_t tiles = call->dx[0] ? s.n * tiles_an_image(s) : 0;
  const uint32_t channels = call->gradients ? s.c : 0;
#pragma omp parallel for schedule(static) if (sn__count(s) >= SN__WORTH_THREADS)
  for (uint64_t i = 0; i < tiles; i++) {
    const tile t = tile_of(s, i);
    backward_tile(call, &t);
  }
#pragma omp parallel for schedule(static) if (sn__count(s) >= SN__WORTH_THREADS)
  for (uint32_t c = 0; c < channels; c++) channel_gradients(call, s, c);
}
