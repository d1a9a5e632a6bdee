/* Reference kernels of what selects, copies and adds: POOL, DROPOUT, JOIN, FORK, CONCAT.
 *
 * POOL: a window is cut where it reaches beyond the image. The average is over the real elements only, never over
 * padding. A maximum's gradient goes to the first element of the window, row by row, that equals it. DROPOUT is
 * inverted: what is kept is scaled by 1 / (1 - ratio), so the expected value stays; of whole images element n of the
 * mask is image n's. */
#include "exec/kernel/reference_internal.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* One window of one plane. */
typedef struct area {
  sn__span rows, columns;
} area;

static area area_of(const sn__pooling *p, sn_shape in, uint32_t y, uint32_t x) {
  return (area){sn__pool_rows(p, y, in.h), sn__pool_columns(p, x, in.w)};
}

static double area_size(area a) {
  return (double)(a.rows.to - a.rows.from) * (double)(a.columns.to - a.columns.from);
}

static double maximum(const float *plane, uint32_t width, area a) {
  double top = -INFINITY;
  for (int64_t y = a.rows.from; y < a.rows.to; y++)
    for (int64_t x = a.columns.from; x < a.columns.to; x++) top = fmax(top, plane[y * width + x]);
  return top;
}

static double average(const float *plane, uint32_t width, area a) {
  double sum = 0;
  for (int64_t y = a.rows.from; y < a.rows.to; y++)
    for (int64_t x = a.columns.from; x < a.columns.to; x++) sum += plane[y * width + x];
  return sum / area_size(a);
}

void sn__reference_pool_forward(const sn_call *call) {
  const sn_layer *layer = sn__call_layer(call);
  sn_shape in = sn__call_input(call, 0), out = layer->out;
  sn__pooling p = sn__pooling_of(&layer->attr, in);
  double (*reduce)(const float *, uint32_t, area) = layer->attr.pool == SN_POOL_MAX ? maximum : average;
  for (uint64_t plane = 0; plane < (uint64_t)out.n * out.c; plane++)
    for (uint32_t y = 0; y < out.h; y++)
      for (uint32_t x = 0; x < out.w; x++)
        call->y[0][plane * sn__plane(out) + (uint64_t)y * out.w + x] =
            (float)reduce(call->x[0] + plane * sn__plane(in), in.w, area_of(&p, in, y, x));
}

/* Whether input (y, x), which the window covers, is the first to equal its maximum. */
static bool is_first_maximum(const float *plane, uint32_t width, area a, float top, uint32_t y, uint32_t x) {
  for (int64_t i = a.rows.from; i <= y; i++)
    for (int64_t j = a.columns.from; j < a.columns.to; j++)
      if (plane[i * width + j] == top) return i == y && j == x;
  return false;
}

/* The sum over the windows that cover input (y, x) of its share of their gradient. */
static double pool_gradient(const sn_call *call, const sn__pooling *p, uint64_t plane, uint32_t y, uint32_t x) {
  const sn_layer *layer = sn__call_layer(call);
  sn_shape in = sn__call_input(call, 0), out = layer->out;
  sn__span rows = p->uneven_h ? sn__uneven_window(y, in.h, out.h) /* the rule is its own inverse */
                              : sn__covering(y, p->kernel_h, p->stride_h, p->pad_h, out.h);
  sn__span columns =
      p->uneven_h ? sn__uneven_window(x, in.w, out.w) : sn__covering(x, p->kernel_w, p->stride_w, p->pad_w, out.w);
  double sum = 0;
  for (int64_t i = rows.from; i < rows.to; i++)
    for (int64_t j = columns.from; j < columns.to; j++) {
      uint64_t at = plane * sn__plane(out) + (uint64_t)(i * out.w + j);
      area a = area_of(p, in, (uint32_t)i, (uint32_t)j);
      if (layer->attr.pool == SN_POOL_AVERAGE)
        sum += call->dy[0][at] / area_size(a);
      else if (is_first_maximum(call->x[0] + plane * sn__plane(in), in.w, a, call->y[0][at], y, x))
        sum += call->dy[0][at];
    }
  return sum;
}

void sn__reference_pool_backward(const sn_call *call) {
  sn_shape in = sn__call_input(call, 0);
  sn__pooling p = sn__pooling_of(&sn__call_layer(call)->attr, in);
  for (uint64_t plane = 0; plane < (uint64_t)in.n * in.c; plane++)
    for (uint32_t y = 0; y < in.h; y++)
      for (uint32_t x = 0; x < in.w; x++)
        call->dx[0][plane * sn__plane(in) + (uint64_t)y * in.w + x] = (float)pool_gradient(call, &p, plane, y, x);
}

static void drop(const sn_call *call, const float *from, float *to) {
  const sn_layer *layer = sn__call_layer(call);
  double scale = 1 / (1 - layer->attr.ratio);
  uint64_t count = sn__count(layer->out), each = layer->attr.images ? sn__image(layer->out) : 1;
  for (uint64_t i = 0; i < count; i++) to[i] = sn_dropout_keeps(call, i / each) ? (float)(from[i] * scale) : 0;
}

void sn__reference_dropout_forward(const sn_call *call) {
  drop(call, call->x[0], call->y[0]);
}

void sn__reference_dropout_backward(const sn_call *call) {
  drop(call, call->dy[0], call->dx[0]);
}

void sn__reference_join_forward(const sn_call *call) {
  const sn_layer *layer = sn__call_layer(call);
  uint64_t count = sn__count(layer->out);
  for (uint64_t i = 0; i < count; i++) {
    double sum = 0;
    for (uint32_t j = 0; j < layer->n_inputs; j++) sum += call->x[j][i];
    call->y[0][i] = (float)sum;
  }
}

void sn__reference_join_backward(const sn_call *call) {
  const sn_layer *layer = sn__call_layer(call);
  assert(call->dx[0] == call->dy[0]);
  for (uint32_t j = 1; j < layer->n_inputs; j++)
    memcpy(call->dx[j], call->dy[0], sn__count(layer->out) * sizeof(float));
}

void sn__reference_fork_forward(const sn_call *call) {
  const sn_layer *layer = sn__call_layer(call);
  const uint64_t bytes = call->net->values[layer->first_output].bytes; /* tokens are of eight */
  for (uint32_t j = 0; j < layer->n_outputs; j++) memcpy(call->y[j], call->x[0], bytes);
}

void sn__reference_fork_backward(const sn_call *call) {
  const sn_layer *layer = sn__call_layer(call);
  uint64_t count = sn__count(layer->out);
  assert(call->dx[0] == call->dy[0]);
  for (uint64_t i = 0; i < count; i++) {
    double sum = 0;
    for (uint32_t j = 0; j < layer->n_outputs; j++) sum += call->dy[j][i];
    call->dx[0][i] = (float)sum;
  }
}

/* The channels of input j lie behind those of the inputs before it, image by image. */
void sn__reference_concat_forward(const sn_call *call) {
  const sn_layer *layer = sn__call_layer(call);
  float *to = call->y[0];
  for (uint32_t n = 0; n < layer->out.n; n++)
    for (uint32_t j = 0; j < layer->n_inputs; j++) {
      uint64_t count = sn__image(sn__call_input(call, j));
      memcpy(to, call->x[j] + n * count, count * sizeof(float));
      to += count;
    }
}

void sn__reference_concat_backward(const sn_call *call) {
  const sn_layer *layer = sn__call_layer(call);
  const float *from = call->dy[0];
  for (uint32_t n = 0; n < layer->out.n; n++)
    for (uint32_t j = 0; j < layer->n_inputs; j++) {
      uint64_t count = sn__image(sn__call_input(call, j));
      memcpy(call->dx[j] + n * count, from, count * sizeof(float));
      from += count;
    }
}
