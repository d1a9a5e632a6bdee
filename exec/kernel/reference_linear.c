/* Reference kernels of CONV, DECONV and FC: each result is one sum over products, as the definition says. Work is one
 * multiply-add per product, so a backward costs twice its forward.
 *
 *   y[n][o][i]  = b[o] + sum over c, k  of  w[o][c][k] x[n][c][i s - p + k]     (c: the channels of o's group)
 *   dx[n][c][j] =        sum over o, i  of  w[o][c][j + p - i s] dy[n][o][i]
 *   dw[o][c][k] =        sum over n, i  of  dy[n][o][i] x[n][c][i s - p + k]
 *   db[o]       =        sum over n, i  of  dy[n][o][i]
 *
 * written here for one side of an image, with stride s and padding p; dilated, k counts d times. A DECONV is a
 * convolution the other way round: its y is that one's dx, plus a bias, its dx that one's y, its dw that one's with x
 * and dy in each other's place; its weights are w[its input][its output][k]. */
#include "exec/kernel/reference_internal.h"

/* A convolution: its sizes, its weights as the shape (outputs, inputs of a group, kernel height, kernel width), and
 * where its tensors lie. A gradient stands where what it is of would. */
typedef struct convolution {
  const sn_attr *a;
  sn_shape in, out, weights;
  uint32_t outputs; /* of a group */
  float *x, *w, *y;
} convolution;

static convolution convolution_of(const sn_call *call, sn_shape in, sn_shape out, float *x, float *w, float *y) {
  const sn_attr *a = &sn__call_layer(call)->attr;
  convolution v = {.a = a, .in = in, .out = out, .outputs = out.c / a->groups, .x = x, .w = w, .y = y};
  v.weights = (sn_shape){out.c, in.c / a->groups, a->kernel_h, a->kernel_w};
  return v;
}

static convolution conv_of(const sn_call *call, float *x, float *w, float *y) {
  return convolution_of(call, sn__call_input(call, 0), sn__call_layer(call)->out, x, w, y);
}

/* The convolution that would make a DECONV's input x of its output y. */
static convolution deconv_of(const sn_call *call, float *x, float *w, float *y) {
  return convolution_of(call, sn__call_layer(call)->out, sn__call_input(call, 0), y, w, x);
}

/* Of a window that starts at input position `start`, the positions from .. to - 1 of the kernel that see the image. */
static sn__span seeing(int64_t start, uint32_t kernel, uint32_t dilation, uint32_t in) {
  int64_t apart = sn__dilation(dilation), to = in > start ? (in - start - 1) / apart + 1 : 0;
  return (sn__span){start, start < 0 ? (-start + apart - 1) / apart : 0, to < kernel ? to : kernel};
}

static float output(const convolution *v, double bias, uint32_t n, uint32_t o, uint32_t oy, uint32_t ox) {
  const sn_attr *a = v->a;
  const int64_t top = (int64_t)oy * a->stride_h - a->pad_h, left = (int64_t)ox * a->stride_w - a->pad_w;
  const sn__span rows = seeing(top, a->kernel_h, a->dilation_h, v->in.h),
                 columns = seeing(left, a->kernel_w, a->dilation_w, v->in.w);
  const int64_t down = sn__dilation(a->dilation_h), right = sn__dilation(a->dilation_w);
  uint32_t first = o / v->outputs * v->weights.c;
  double sum = bias;
  for (uint32_t c = 0; c < v->weights.c; c++)
    for (int64_t y = rows.from; y < rows.to; y++) {
      const float *x = &v->x[sn__at(v->in, n, first + c, (uint64_t)(top + y * down), 0)];
      const float *w = &v->w[sn__at(v->weights, o, c, (uint64_t)y, 0)];
      for (int64_t i = columns.from; i < columns.to; i++) sum += (double)x[left + i * right] * w[i];
    }
  return (float)sum;
}

/* `biases` one per output, or NULL. */
static void make_outputs(const convolution *v, const float *biases) {
  for (uint32_t n = 0; n < v->out.n; n++)
    for (uint32_t o = 0; o < v->out.c; o++)
      for (uint32_t y = 0; y < v->out.h; y++)
        for (uint32_t x = 0; x < v->out.w; x++)
          v->y[sn__at(v->out, n, o, y, x)] = output(v, biases ? biases[o] : 0, n, o, y, x);
}

/* The window along one side that sees input position `in` at position k of its kernel; -1: none does. */
static int64_t window_at(uint32_t in, uint32_t k, uint32_t dilation, uint32_t stride, uint32_t pad, uint32_t out) {
  int64_t start = (int64_t)in + pad - (int64_t)k * sn__dilation(dilation);
  return start < 0 || start % stride != 0 || start / stride >= out ? -1 : start / stride;
}

static float data_gradient(const convolution *v, double bias, uint32_t n, uint32_t c, uint32_t iy, uint32_t ix) {
  const sn_attr *a = v->a;
  const uint32_t first = c / v->weights.c * v->outputs;
  double sum = bias;
  for (uint32_t ky = 0; ky < a->kernel_h; ky++) {
    const int64_t y = window_at(iy, ky, a->dilation_h, a->stride_h, a->pad_h, v->out.h);
    for (uint32_t kx = 0; kx < a->kernel_w && y >= 0; kx++) {
      const int64_t x = window_at(ix, kx, a->dilation_w, a->stride_w, a->pad_w, v->out.w);
      for (uint32_t o = first; o < first + v->outputs && x >= 0; o++)
        sum += (double)v->y[sn__at(v->out, n, o, (uint64_t)y, (uint64_t)x)] *
               v->w[sn__at(v->weights, o, c % v->weights.c, ky, kx)];
    }
  }
  return (float)sum;
}

/* `biases` one per input, or NULL. */
static void make_data_gradients(const convolution *v, const float *biases) {
  for (uint32_t n = 0; n < v->in.n; n++)
    for (uint32_t c = 0; c < v->in.c; c++)
      for (uint32_t y = 0; y < v->in.h; y++)
        for (uint32_t x = 0; x < v->in.w; x++)
          v->x[sn__at(v->in, n, c, y, x)] = data_gradient(v, biases ? biases[c] : 0, n, c, y, x);
}

/* The windows along one side whose kernel position k lies within the image: from .. to - 1. */
static sn__span reaching(uint32_t k, uint32_t dilation, uint32_t stride, uint32_t pad, uint32_t in, uint32_t out) {
  int64_t start = (int64_t)k * sn__dilation(dilation) - pad; /* what the first window sees */
  int64_t to = in > start ? (in - start - 1) / stride + 1 : 0;
  return (sn__span){.start = start, .from = start < 0 ? (-start + stride - 1) / stride : 0, .to = to < out ? to : out};
}

static float weight_gradient(const convolution *v, uint32_t o, uint32_t c, uint32_t ky, uint32_t kx) {
  sn__span rows = reaching(ky, v->a->dilation_h, v->a->stride_h, v->a->pad_h, v->in.h, v->out.h);
  sn__span columns = reaching(kx, v->a->dilation_w, v->a->stride_w, v->a->pad_w, v->in.w, v->out.w);
  uint32_t channel = o / v->outputs * v->weights.c + c;
  double sum = 0;
  for (uint32_t n = 0; n < v->out.n; n++)
    for (int64_t y = rows.from; y < rows.to; y++) {
      const float *dy = &v->y[sn__at(v->out, n, o, (uint64_t)y, 0)];
      const float *x = &v->x[sn__at(v->in, n, channel, (uint64_t)(rows.start + y * v->a->stride_h), 0)];
      for (int64_t i = columns.from; i < columns.to; i++) sum += (double)dy[i] * x[columns.start + i * v->a->stride_w];
    }
  return (float)sum;
}

static void make_weight_gradients(const convolution *v) {
  for (uint32_t o = 0; o < v->weights.n; o++)
    for (uint32_t c = 0; c < v->weights.c; c++)
      for (uint32_t y = 0; y < v->weights.h; y++)
        for (uint32_t x = 0; x < v->weights.w; x++)
          v->w[sn__at(v->weights, o, c, y, x)] = weight_gradient(v, o, c, y, x);
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

static const float *biases_of(const sn_call *call) {
  const sn_layer *layer = sn__call_layer(call);
  return layer->attr.bias ? call->parameters + sn__weights(layer) : NULL;
}

void sn__reference_conv_forward(const sn_call *call) {
  convolution v = conv_of(call, call->x[0], call->parameters, call->y[0]);
  make_outputs(&v, biases_of(call));
}

void sn__reference_conv_backward(const sn_call *call) {
  convolution data = conv_of(call, call->dx[0], call->parameters, call->dy[0]);
  convolution filter = conv_of(call, call->x[0], call->gradients, call->dy[0]);
  make_data_gradients(&data, NULL);
  make_weight_gradients(&filter);
  if (data.a->bias) bias_gradient(call, call->gradients + sn__weights(sn__call_layer(call)));
}

void sn__reference_deconv_forward(const sn_call *call) {
  convolution v = deconv_of(call, call->x[0], call->parameters, call->y[0]);
  make_data_gradients(&v, biases_of(call));
}

void sn__reference_deconv_backward(const sn_call *call) {
  convolution data = deconv_of(call, call->dx[0], call->parameters, call->dy[0]);
  convolution filter = deconv_of(call, call->x[0], call->gradients, call->dy[0]);
  make_outputs(&data, NULL);
  make_weight_gradients(&filter);
  if (data.a->bias) bias_gradient(call, call->gradients + sn__weights(sn__call_layer(call)));
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
