/* Reference kernels of LRN, BN and SOFTMAX.
 *
 * LRN across channels (Krizhevsky et al., NIPS 2012, section 3.3), with alpha divided by the window's size as in Caffe,
 * PyTorch, cuDNN and oneDNN; near the first and last channel the window is cut, its size stays:
 *   s[c] = k + alpha / size * sum over the window of c of x[j]^2        y[c] = x[c] s[c]^-beta
 *   dx[c] = dy[c] s[c]^-beta - 2 alpha beta / size * x[c] * sum over the window of c of dy[j] y[j] / s[j]
 *
 * BN (Ioffe, Szegedy, ICML 2015) with the batch's mean and biased variance, m elements a channel; running statistics
 * take the unbiased variance, which a single element does not have: then the biased one, 0.
 *   z = (x - mean) / sqrt(variance + eps)        y = gamma z + beta
 *   dx = gamma / sqrt(variance + eps) * (dy - dbeta / m - z dgamma / m)    dgamma = sum dy z    dbeta = sum dy
 *
 * SOFTMAX with cross-entropy, mean over the batch: from x, so that a probability of 0 gives no infinite loss. */
#include "exec/kernel/reference_internal.h"

#include <math.h>
#include <stdlib.h>

/* The channels from .. to - 1 of the window around c. */
static sn__span neighbours(const sn_layer *layer, uint32_t c) {
  return sn__window(c, layer->attr->lrn_size, 1, layer->attr->lrn_size / 2, layer->out.c);
}

static double scale(const sn_call *call, uint32_t n, uint32_t c, uint64_t pixel) {
  const sn_layer *layer = sn__call_layer(call);
  sn__span window = neighbours(layer, c);
  double squares = 0;
  for (int64_t j = window.from; j < window.to; j++) {
    double x = call->x[0][sn__at(layer->out, n, (uint64_t)j, 0, pixel)];
    squares += x * x;
  }
  return layer->attr->lrn_k + layer->attr->lrn_alpha / layer->attr->lrn_size * squares;
}

void sn__reference_lrn_forward(const sn_call *call) {
  const sn_layer *layer = sn__call_layer(call);
  sn_shape s = layer->out;
  for (uint32_t n = 0; n < s.n; n++)
    for (uint32_t c = 0; c < s.c; c++)
      for (uint64_t pixel = 0; pixel < sn__plane(s); pixel++) {
        uint64_t at = sn__at(s, n, c, 0, pixel);
        call->y[0][at] = (float)(call->x[0][at] * pow(scale(call, n, c, pixel), -layer->attr->lrn_beta));
      }
}

/* One pixel of one image. dx may lie over dy, so what the neighbours need of dy is summed up before: ratio[c]. */
static void lrn_pixel(const sn_call *call, uint32_t n, uint64_t pixel, double *ratio) {
  const sn_layer *layer = sn__call_layer(call);
  const sn_attr *a = layer->attr;
  for (uint32_t c = 0; c < layer->out.c; c++) {
    uint64_t at = sn__at(layer->out, n, c, 0, pixel);
    ratio[c] = (double)call->dy[0][at] * call->y[0][at] / scale(call, n, c, pixel);
  }
  for (uint32_t c = 0; c < layer->out.c; c++) {
    uint64_t at = sn__at(layer->out, n, c, 0, pixel);
    sn__span window = neighbours(layer, c);
    double sum = 0;
    for (int64_t j = window.from; j < window.to; j++) sum += ratio[j];
    call->dx[0][at] = (float)(call->dy[0][at] * pow(scale(call, n, c, pixel), -a->lrn_beta) -
                              2 * a->lrn_alpha * a->lrn_beta / a->lrn_size * call->x[0][at] * sum);
  }
}

sn_status sn__reference_lrn_backward(const sn_call *call, sn_err *err) {
  sn_shape s = sn__call_layer(call)->out;
  double *ratio = calloc(s.c, sizeof *ratio);
  if (!ratio) return sn_fail_memory(err);
  for (uint32_t n = 0; n < s.n; n++)
    for (uint64_t pixel = 0; pixel < sn__plane(s); pixel++) lrn_pixel(call, n, pixel, ratio);
  free(ratio);
  return SN_OK;
}

/* Sum over a channel of (x - centre)^power. */
static double channel_sum(const float *x, sn_shape s, uint32_t c, double centre, int power) {
  double sum = 0;
  for (uint32_t n = 0; n < s.n; n++)
    for (uint64_t i = 0; i < sn__plane(s); i++) {
      double difference = x[sn__at(s, n, c, 0, i)] - centre;
      sum += power == 1 ? difference : difference * difference;
    }
  return sum;
}

static void keep_statistics(const sn_call *call, sn_shape s, uint32_t c, double mean, double variance) {
  double m = (double)s.n * (double)sn__plane(s), unbiased = m > 1 ? variance * m / (m - 1) : variance;
  float *running_mean = call->statistics + c, *running_variance = running_mean + s.c;
  running_variance[s.c] = (float)mean;
  running_variance[2 * (uint64_t)s.c] = (float)(1 / sqrt(variance + (double)SN_BN_EPSILON));
  if (call->rerun) return;
  *running_mean = (float)(*running_mean + (double)SN_BN_MOMENTUM * (mean - *running_mean));
  *running_variance = (float)(*running_variance + (double)SN_BN_MOMENTUM * (unbiased - *running_variance));
}

void sn__reference_bn_forward(const sn_call *call) {
  sn_shape s = sn__call_layer(call)->out;
  double m = (double)s.n * (double)sn__plane(s);
  for (uint32_t c = 0; c < s.c; c++) {
    double mean = channel_sum(call->x[0], s, c, 0, 1) / m;
    double variance = channel_sum(call->x[0], s, c, mean, 2) / m;
    double factor = call->parameters[c] / sqrt(variance + (double)SN_BN_EPSILON);
    for (uint32_t n = 0; n < s.n; n++)
      for (uint64_t i = 0; i < sn__plane(s); i++) {
        uint64_t at = sn__at(s, n, c, 0, i);
        call->y[0][at] = (float)((call->x[0][at] - mean) * factor + call->parameters[s.c + c]);
      }
    keep_statistics(call, s, c, mean, variance);
  }
}

static void bn_backward_channel(const sn_call *call, sn_shape s, uint32_t c) {
  double mean = call->statistics[2 * (uint64_t)s.c + c], inverse = call->statistics[3 * (uint64_t)s.c + c];
  double m = (double)s.n * (double)sn__plane(s), dgamma = 0, dbeta = 0;
  for (uint32_t n = 0; n < s.n; n++)
    for (uint64_t i = 0; i < sn__plane(s); i++) {
      uint64_t at = sn__at(s, n, c, 0, i);
      dgamma += call->dy[0][at] * (call->x[0][at] - mean) * inverse;
      dbeta += call->dy[0][at];
    }
  for (uint32_t n = 0; n < s.n; n++)
    for (uint64_t i = 0; i < sn__plane(s); i++) {
      uint64_t at = sn__at(s, n, c, 0, i);
      double z = (call->x[0][at] - mean) * inverse;
      call->dx[0][at] = (float)(call->parameters[c] * inverse * (call->dy[0][at] - dbeta / m - z * dgamma / m));
    }
  call->gradients[c] = (float)dgamma;
  call->gradients[s.c + c] = (float)dbeta;
}

void sn__reference_bn_backward(const sn_call *call) {
  sn_shape s = sn__call_layer(call)->out;
  for (uint32_t c = 0; c < s.c; c++) bn_backward_channel(call, s, c);
}

/* Of one position of an image; returns its cross-entropy. */
static double softmax_row(const sn_call *call, uint64_t n, uint64_t p) {
  sn_shape s = sn__call_layer(call)->out;
  const float *x = call->x[0] + sn__at(s, n, 0, 0, p);
  uint64_t apart = sn__plane(s);
  double top = x[0], sum = 0, of_label = x[(uint64_t)call->labels[n * apart + p] * apart];
  for (uint32_t c = 1; c < s.c; c++) top = fmax(top, x[c * apart]);
  for (uint32_t c = 0; c < s.c; c++) sum += exp(x[c * apart] - top);
  for (uint32_t c = 0; c < s.c; c++) call->y[0][sn__at(s, n, c, 0, p)] = (float)(exp(x[c * apart] - top) / sum);
  return log(sum) + top - of_label;
}

/* y holds the differences; loss = mean of y y, dx = 2 y / their number. */
static void squares_forward(const sn_call *call) {
  const float *targets = sn__call_targets(call);
  const uint64_t count = sn__count(sn__call_layer(call)->out);
  double sum = 0;
  for (uint64_t i = 0; i < count; i++) {
    double difference = (double)call->x[0][i] - targets[i];
    call->y[0][i] = (float)difference;
    sum += difference * difference;
  }
  *call->loss = sum / (double)count;
}

static void squares_backward(const sn_call *call) {
  const uint64_t count = sn__count(sn__call_layer(call)->out);
  for (uint64_t i = 0; i < count; i++) call->dx[0][i] = (float)(2.0 * call->y[0][i] / (double)count);
}

void sn__reference_softmax_forward(const sn_call *call) {
  if (sn__has_targets(sn__call_layer(call))) {
    squares_forward(call);
    return;
  }
  sn_shape s = sn__call_layer(call)->out;
  double loss = 0;
  for (uint32_t n = 0; n < s.n; n++)
    for (uint64_t p = 0; p < sn__plane(s); p++) loss += softmax_row(call, n, p);
  *call->loss = loss / ((double)s.n * (double)sn__plane(s));
}

void sn__reference_softmax_backward(const sn_call *call) {
  if (sn__has_targets(sn__call_layer(call))) {
    squares_backward(call);
    return;
  }
  sn_shape s = sn__call_layer(call)->out;
  double rows = (double)s.n * (double)sn__plane(s);
  for (uint32_t n = 0; n < s.n; n++)
    for (uint32_t c = 0; c < s.c; c++)
      for (uint64_t p = 0; p < sn__plane(s); p++) {
        uint64_t at = sn__at(s, n, c, 0, p);
        double truth = (uint32_t)call->labels[n * sn__plane(s) + p] == c ? 1 : 0;
        call->dx[0][at] = (float)((call->y[0][at] - truth) / rows);
      }
}
