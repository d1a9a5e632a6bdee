/* Reference kernels of CONV and FC: each result is one sum over products, as the definition says. Work is one
 * multiply-add per product, so a backward costs twice its forward.
 *
 *   y[n][o][i]  = b[o] + sum over c, k  of  w[o][c][k] x[n][c][i s - p + k]     (c: the channels of o's group)
 *   dx[n][c][j] =        sum over o, i  of  w[o][c][j + p - i s] dy[n][o][i]
 *   dw[o][c][k] =        sum over n, i  of  dy[n][o][i] x[n][c][i s - p + k]
 *   db[o]       =        sum over n, i  of  dy[n][o][i]
 *
 * written here for one side of an image, with stride s and padding p. */
#include "exec/reference_internal.h"

/* A convolution's sizes, and its weights as the shape (outputs, inputs of a group, kernel height, kernel width). */
typedef struct geometry {
  const sn_attr *a;
  sn_shape in, out, weights;
  uint32_t outputs; /* of a group */
} geometry;

static geometry geometry_of(const sn_call *call) {
  const sn_layer *layer = sn__call_layer(call);
  const sn_attr *a = &layer->attr;
  geometry g = {.a = a, .in = sn__call_input(call, 0), .out = layer->out, .outputs = a->channels / a->groups};
  g.weights = (sn_shape){a->channels, g.in.c / a->groups, a->kernel_h, a->kernel_w};
  return g;
}

static float output(const sn_call *call, geometry g, uint32_t n, uint32_t o, uint32_t oy, uint32_t ox) {
  sn__span rows = sn__window(oy, g.a->kernel_h, g.a->stride_h, g.a->pad_h, g.in.h);
  sn__span columns = sn__window(ox, g.a->kernel_w, g.a->stride_w, g.a->pad_w, g.in.w);
  uint32_t first = o / g.outputs * g.weights.c;
  double sum = g.a->bias ? call->parameters[sn__weights(sn__call_layer(call)) + o] : 0;
  for (uint32_t c = 0; c < g.weights.c; c++)
    for (int64_t y = rows.from; y < rows.to; y++) {
      const float *x = &call->x[0][sn__at(g.in, n, first + c, (uint64_t)y, 0)];
      const float *w = &call->parameters[sn__at(g.weights, o, c, (uint64_t)(y - rows.start), 0)];
      for (int64_t i = columns.from; i < columns.to; i++) sum += (double)x[i] * w[i - columns.start];
    }
  return (float)sum;
}

void sn__reference_conv_forward(const sn_call *call) {
  geometry g = geometry_of(call);
  for (uint32_t n = 0; n < g.out.n; n++)
    for (uint32_t o = 0; o < g.out.c; o++)
      for (uint32_t y = 0; y < g.out.h; y++)
        for (uint32_t x = 0; x < g.out.w; x++) call->y[0][sn__at(g.out, n, o, y, x)] = output(call, g, n, o, y, x);
}

static float data_gradient(const sn_call *call, geometry g, uint32_t n, uint32_t c, uint32_t iy, uint32_t ix) {
  sn__span rows = sn__covering(iy, g.a->kernel_h, g.a->stride_h, g.a->pad_h, g.out.h);
  sn__span columns = sn__covering(ix, g.a->kernel_w, g.a->stride_w, g.a->pad_w, g.out.w);
  uint32_t group = c / g.weights.c;
  double sum = 0;
  for (uint32_t o = group * g.outputs; o < (group + 1) * g.outputs; o++)
    for (int64_t y = rows.from; y < rows.to; y++) {
      const float *dy = &call->dy[0][sn__at(g.out, n, o, (uint64_t)y, 0)];
      uint64_t ky = iy + g.a->pad_h - (uint64_t)y * g.a->stride_h;
      const float *w = &call->parameters[sn__at(g.weights, o, c % g.weights.c, ky, 0)];
      for (int64_t x = columns.from; x < columns.to; x++) sum += (double)dy[x] * w[ix + g.a->pad_w - x * g.a->stride_w];
    }
  return (float)sum;
}

/* The windows along one side whose kernel position k lies within the image: from .. to - 1. */
static sn__span reaching(uint32_t k, uint32_t stride, uint32_t pad, uint32_t in, uint32_t out) {
  int64_t start = (int64_t)k - pad; /* what the first window sees */
  int64_t to = in > start ? (in - start - 1) / stride + 1 : 0;
  return (sn__span){.start = start, .from = start < 0 ? (-start + stride - 1) / stride : 0, .to = to < out ? to : out};
}

static float weight_gradient(const sn_call *call, geometry g, uint32_t o, uint32_t c, uint32_t ky, uint32_t kx) {
  sn__span rows = reaching(ky, g.a->stride_h, g.a->pad_h, g.in.h, g.out.h);
  sn__span columns = reaching(kx, g.a->stride_w, g.a->pad_w, g.in.w, g.out.w);
  uint32_t channel = o / g.outputs * g.weights.c + c;
  double sum = 0;
  for (uint32_t n = 0; n < g.out.n; n++)
    for (int64_t y = rows.from; y < rows.to; y++) {
      const float *dy = &call->dy[0][sn__at(g.out, n, o, (uint64_t)y, 0)];
      const float *x = &call->x[0][sn__at(g.in, n, channel, (uint64_t)(rows.start + y * g.a->stride_h), 0)];
      for (int64_t i = columns.from; i < columns.to; i++) sum += (double)dy[i] * x[columns.start + i * g.a->stride_w];
    }
  return (float)sum;
}

/* `gradients` gets one sum per output channel. */
static void bias_gradient(const sn_call *call, float *gradients) {
  sn_shape out = sn__call_layer(call)->out;
  for (uint32_t o = 0; o < out.c; o++) {
    double sum = 0;
    for (uint32_t n = 0; n < out.n; n++) {
      const float *dy = &call->dy[0][sn__at(out, n, o, 0, 0)];
      for (uint64_t i = 0; i < sn__plane(out); i++) sum += dy[i];
    }
    gradients[o] = (float)sum;
  }
}

void sn__reference_conv_backward(const sn_call *call) {
  geometry g = geometry_of(call);
  for (uint32_t n = 0; n < g.in.n; n++)
    for (uint32_t c = 0; c < g.in.c; c++)
      for (uint32_t y = 0; y < g.in.h; y++)
        for (uint32_t x = 0; x < g.in.w; x++)
          call->dx[0][sn__at(g.in, n, c, y, x)] = data_gradient(call, g, n, c, y, x);
  for (uint32_t o = 0; o < g.weights.n; o++)
    for (uint32_t c = 0; c < g.weights.c; c++)
      for (uint32_t y = 0; y < g.weights.h; y++)
        for (uint32_t x = 0; x < g.weights.w; x++)
          call->gradients[sn__at(g.weights, o, c, y, x)] = weight_gradient(call, g, o, c, y, x);
  if (g.a->bias) bias_gradient(call, call->gradients + sn__count(g.weights));
}

/* FC: a row of weights per output, over all channels and pixels of an image. */
void sn__reference_fc_forward(const sn_call *call) {
  const sn_layer *layer = sn__call_layer(call);
  uint64_t inputs = sn__image(sn__call_input(call, 0));
  for (uint32_t n = 0; n < layer->out.n; n++)
    for (uint32_t o = 0; o < layer->out.c; o++) {
      const float *x = call->x[0] + n * inputs, *w = call->parameters + o * inputs;
      double sum = layer->attr.bias ? call->parameters[sn__weights(layer) + o] : 0;
      for (uint64_t i = 0; i < inputs; i++) sum += (double)x[i] * w[i];
      call->y[0][(uint64_t)n * layer->out.c + o] = (float)sum;
    }
}

void sn__reference_fc_backward(const sn_call *call) {
  const sn_layer *layer = sn__call_layer(call);
  uint64_t inputs = sn__image(sn__call_input(call, 0)), outputs = layer->out.c;
  for (uint64_t n = 0; n < layer->out.n; n++)
    for (uint64_t i = 0; i < inputs; i++) {
      double sum = 0;
      for (uint64_t o = 0; o < outputs; o++)
        sum += (double)call->dy[0][n * outputs + o] * call->parameters[o * inputs + i];
      call->dx[0][n * inputs + i] = (float)sum;
    }
  for (uint64_t o = 0; o < outputs; o++)
    for (uint64_t i = 0; i < inputs; i++) {
      double sum = 0;
      for (uint64_t n = 0; n < layer->out.n; n++)
        sum += (double)call->dy[0][n * outputs + o] * call->x[0][n * inputs + i];
      call->gradients[o * inputs + i] = (float)sum;
    }
  if (layer->attr.bias) bias_gradient(call, call->gradients + sn__weights(layer));
}
