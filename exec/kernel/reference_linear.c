/* Reference kernels of CONV, DECONV and FC: each result is one sum over products, as the definition says. Work is one
 * multiply-add per product, so a backward costs twice its forward.
 *
 *   y[n][o][i]  = b[o] + sum over c, k  of  w[o][c][k] x[n][c][i s - p + k]     (c: the channels of o's group)
 *   dx[n][c][j] =        sum over o, i  of  w[o][c][j + p - i s] dy[n][o][i]
 *   dw[o][c][k] =        sum over n, i  of  dy[n][o][i] x[n][c][i s - p + k]
 *   db[o]       =        sum over n, i  of  dy[n][o][i]
 *
 * written here for one side of an image or a volume, with stride s and padding p; dilated, k counts d times. A DECONV
 * is a convolution the other way round: its y is that one's dx, plus a bias, its dx that one's y, its dw that one's
 * with x and dy in each other's place; its weights are w[its input][its output][k]. */
#include "exec/kernel/reference_internal.h"

#include "sim/graph/route.h"

/* A convolution: its sizes, its weights as the shape (outputs, inputs of a group, kernel planes x height, width), and
 * where its tensors lie. A gradient stands where what it is of would. */
typedef struct convolution {
  sn__sides side;
  sn_shape in, out, weights;
  uint32_t outputs; /* of a group */
  float *x, *w, *y;
} convolution;

static convolution convolution_of(const sn_attr *a, sn_shape in, sn_shape out, sn__sides side, float *x, float *w,
                                  float *y) {
  return (convolution){.side = side,
                       .in = in,
                       .out = out,
                       .weights = {out.c, in.c / a->groups, side.planes.kernel * side.rows.kernel, side.columns.kernel},
                       .outputs = out.c / a->groups,
                       .x = x,
                       .w = w,
                       .y = y};
}

static convolution conv_of(const sn_call *call, float *x, float *w, float *y) {
  const sn_layer *layer = sn__call_layer(call);
  const sn_shape in = sn__call_input(call, 0);
  const sn__sides side = sn__sides_of(layer->attr, in, layer->attr->planes, layer->out, layer->planes);
  return convolution_of(layer->attr, in, layer->out, side, x, w, y);
}

/* The convolution that would make a DECONV's input x of its output y. */
static convolution deconv_of(const sn_call *call, float *x, float *w, float *y) {
  const sn_layer *layer = sn__call_layer(call);
  const sn_shape in = sn__call_input(call, 0);
  const sn__sides side = sn__sides_of(layer->attr, layer->out, layer->planes, in, layer->attr->planes);
  return convolution_of(layer->attr, layer->out, in, side, y, w, x);
}

/* Of window `out` along a side, the positions from .. to - 1 of the kernel that see the image; the first of all would
 * see input position `start`. */
static sn__span seeing(const sn__side *s, uint32_t out) {
  const int64_t start = (int64_t)out * s->stride - s->pad, apart = s->dilation,
                to = s->in > start ? (s->in - start - 1) / apart + 1 : 0;
  return (sn__span){
      .start = start, .from = start < 0 ? (-start + apart - 1) / apart : 0, .to = to < s->kernel ? to : s->kernel};
}

/* Row `row` of plane `plane`, of what has planes one below the other. */
static uint64_t row_of(const sn__side *rows, int64_t plane, int64_t row, bool of_output) {
  return (uint64_t)(plane * (of_output ? rows->out : rows->in) + row);
}

static float output(const convolution *v, double bias, uint32_t n, uint32_t o, uint32_t oy, uint32_t ox) {
  const sn__side *rows = &v->side.rows, *columns = &v->side.columns;
  const sn__span z = seeing(&v->side.planes, oy / rows->out), y = seeing(rows, oy % rows->out), x = seeing(columns, ox);
  const uint32_t first = o / v->outputs * v->weights.c;
  double sum = bias;
  for (uint32_t c = 0; c < v->weights.c; c++)
    for (int64_t i = z.from; i < z.to; i++)
      for (int64_t j = y.from; j < y.to; j++) {
        const uint64_t row = row_of(rows, z.start + i * v->side.planes.dilation, y.start + j * rows->dilation, false);
        const float *at = &v->x[sn__at(v->in, n, first + c, row, 0)];
        const float *w = &v->w[sn__at(v->weights, o, c, (uint64_t)(i * rows->kernel + j), 0)];
        for (int64_t k = x.from; k < x.to; k++) sum += (double)at[x.start + k * columns->dilation] * w[k];
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
static int64_t window_at(const sn__side *s, uint32_t in, uint32_t k) {
  const int64_t start = (int64_t)in + s->pad - (int64_t)k * s->dilation;
  return start < 0 || start % s->stride != 0 || start / s->stride >= s->out ? -1 : start / s->stride;
}

/* What position k of a kernel, plane by plane and row by row, adds to input (iy, ix) of the channel. */
static double share_of(const convolution *v, uint32_t n, uint32_t c, uint32_t k, uint32_t iy, uint32_t ix) {
  const sn__side *rows = &v->side.rows;
  const uint32_t first = c / v->weights.c * v->outputs, row = k / v->weights.w;
  const int64_t z = window_at(&v->side.planes, iy / rows->in, row / rows->kernel),
                y = window_at(rows, iy % rows->in, row % rows->kernel),
                x = window_at(&v->side.columns, ix, k % v->weights.w);
  double sum = 0;
  if (z < 0 || y < 0 || x < 0) return 0;
  for (uint32_t o = first; o < first + v->outputs; o++)
    sum += (double)v->y[sn__at(v->out, n, o, row_of(rows, z, y, true), (uint64_t)x)] *
           v->w[sn__at(v->weights, o, c % v->weights.c, row, k % v->weights.w)];
  return sum;
}

/* `biases` one per input, or NULL. */
static void make_data_gradients(const convolution *v, const float *biases) {
  const uint32_t window = v->weights.h * v->weights.w;
  for (uint32_t n = 0; n < v->in.n; n++)
    for (uint32_t c = 0; c < v->in.c; c++)
      for (uint32_t y = 0; y < v->in.h; y++)
        for (uint32_t x = 0; x < v->in.w; x++) {
          double sum = biases ? biases[c] : 0;
          for (uint32_t k = 0; k < window; k++) sum += share_of(v, n, c, k, y, x);
          v->x[sn__at(v->in, n, c, y, x)] = (float)sum;
        }
}

/* The windows along one side whose kernel position k lies within the image: from .. to - 1; what the first window sees
 * there is `start`. */
static sn__span reaching(const sn__side *s, uint32_t k) {
  const int64_t start = (int64_t)k * s->dilation - s->pad, apart = s->stride,
                to = s->in > start ? (s->in - start - 1) / apart + 1 : 0;
  return (sn__span){
      .start = start, .from = start < 0 ? (-start + apart - 1) / apart : 0, .to = to < s->out ? to : s->out};
}

/* Of the kernel's row `ky`, plane by plane. */
static float weight_gradient(const convolution *v, uint32_t o, uint32_t c, uint32_t ky, uint32_t kx) {
  const sn__side *rows = &v->side.rows;
  const sn__span z = reaching(&v->side.planes, ky / rows->kernel), y = reaching(rows, ky % rows->kernel),
                 x = reaching(&v->side.columns, kx);
  const uint32_t channel = o / v->outputs * v->weights.c + c;
  double sum = 0;
  for (uint32_t n = 0; n < v->out.n; n++)
    for (int64_t i = z.from; i < z.to; i++)
      for (int64_t j = y.from; j < y.to; j++) {
        const uint64_t seen = row_of(rows, z.start + i * v->side.planes.stride, y.start + j * rows->stride, false);
        const float *dy = &v->y[sn__at(v->out, n, o, row_of(rows, i, j, true), 0)];
        const float *at = &v->x[sn__at(v->in, n, channel, seen, 0)];
        for (int64_t k = x.from; k < x.to; k++) sum += (double)dy[k] * at[x.start + k * v->side.columns.stride];
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
  return layer->attr->bias ? call->parameters + sn__weights(layer) : NULL;
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
  if (sn__call_layer(call)->attr->bias) bias_gradient(call, call->gradients + sn__weights(sn__call_layer(call)));
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
  if (sn__call_layer(call)->attr->bias) bias_gradient(call, call->gradients + sn__weights(sn__call_layer(call)));
}

/* FC: a row of weights per output, over all channels and pixels of an image. */
void sn__reference_fc_forward(const sn_call *call) {
  const sn_layer *layer = sn__call_layer(call);
  uint64_t inputs = sn__image(sn__call_input(call, 0));
  for (uint32_t n = 0; n < layer->out.n; n++)
    for (uint32_t o = 0; o < layer->out.c; o++) {
      const float *x = call->x[0] + n * inputs, *w = call->parameters + o * inputs;
      double sum = layer->attr->bias ? call->parameters[sn__weights(layer) + o] : 0;
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
  if (layer->attr->bias) bias_gradient(call, call->gradients + sn__weights(layer));
}
