/* CPU kernels of POOL. Averages are oneDNN's. Its maximum keeps a workspace of positions, which the
 * plan does not have: ours finds the position again from x and y, in as many comparisons as the forward made. Ours are
 * also the averages over the uneven windows of an adaptive POOL, which oneDNN does not have. */
#include "exec/cpu/cpu.h"

#include <string.h>

/* What the last window sees beyond the image and its leading padding; negative where it ends before the image does. */
static dnnl_dim_t trailing_pad(uint32_t out, uint32_t kernel, uint32_t stride, uint32_t pad, uint32_t in) {
  return (dnnl_dim_t)(out - 1) * stride + kernel - in - pad;
}

sn_status sn__cpu_pool_make(sn__cpu *k, uint32_t index, sn_err *err) {
  static const int forward_args[] = {DNNL_ARG_SRC, DNNL_ARG_DST},
                   backward_args[] = {DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_SRC};
  const sn_layer *layer = &k->net->layers[index];
  sn__cpu_layer *made = &k->layers[index];
  sn_shape in = sn_layer_input_shape(k->net, layer, 0), out = layer->out;
  sn__pooling p = sn__pooling_of(&layer->attr, in);
  if (layer->attr.pool == SN_POOL_MAX || p.uneven_h) return SN_OK;
  const dnnl_dims_t stride = {p.stride_h, p.stride_w}, kernel = {p.kernel_h, p.kernel_w}, pad = {p.pad_h, p.pad_w};
  const dnnl_dims_t trailing = {trailing_pad(out.h, p.kernel_h, p.stride_h, p.pad_h, in.h),
                                trailing_pad(out.w, p.kernel_w, p.stride_w, p.pad_w, in.w)};
  const dnnl_alg_kind_t average = dnnl_pooling_avg_exclude_padding;
  dnnl_pooling_desc_t forward, backward;
  dnnl_memory_desc_t x, y;
  if (sn__dnnl_nchw(&x, in, err) || sn__dnnl_nchw(&y, out, err)) return err->code;
  dnnl_status_t status =
      dnnl_pooling_forward_desc_init(&forward, dnnl_forward_training, average, &x, &y, stride, kernel, pad, trailing);
  if (status == dnnl_success)
    status = dnnl_pooling_backward_desc_init(&backward, average, &x, &y, stride, kernel, pad, trailing);
  if (sn__dnnl_check(status, "describe an average pool", err) ||
      sn__primitive_new(k, &forward, NULL, forward_args, 2, &made->forward, err))
    return err->code;
  return sn__primitive_new(k, &backward, &made->forward, backward_args, 2, &made->backward, err);
}

/* Sizes of a POOL in loops of ours. */
typedef struct windows {
  sn__pooling p;
  sn_shape in, out;
  bool average;
} windows;

static float window_top(const float *x, uint32_t width, sn__span rows, sn__span columns) {
  float top = x[rows.from * width + columns.from];
  for (int64_t y = rows.from; y < rows.to; y++)
    for (int64_t i = columns.from; i < columns.to; i++) top = x[y * width + i] > top ? x[y * width + i] : top;
  return top;
}

static float window_mean(const float *x, uint32_t width, sn__span rows, sn__span columns) {
  float sum = 0;
  for (int64_t y = rows.from; y < rows.to; y++)
    for (int64_t i = columns.from; i < columns.to; i++) sum += x[y * width + i];
  return sum / (float)((rows.to - rows.from) * (columns.to - columns.from));
}

/* Offset of the first element of the window that is `top`, row by row. */
static int64_t window_find(const float *x, uint32_t width, sn__span rows, sn__span columns, float top) {
  for (int64_t y = rows.from; y < rows.to; y++)
    for (int64_t i = columns.from; i < columns.to; i++)
      if (x[y * width + i] == top) return y * width + i;
  return rows.from * width + columns.from; /* not a number */
}

/* `indices`: where each maximum is, for a graph that keeps them; else NULL. */
static void plane_forward(const windows *m, const float *x, float *y, int64_t *indices) {
  for (uint32_t oy = 0; oy < m->out.h; oy++) {
    sn__span rows = sn__pool_rows(&m->p, oy, m->in.h);
    for (uint32_t ox = 0; ox < m->out.w; ox++) {
      sn__span columns = sn__pool_columns(&m->p, ox, m->in.w);
      *y = m->average ? window_mean(x, m->in.w, rows, columns) : window_top(x, m->in.w, rows, columns);
      if (indices) *indices++ = window_find(x, m->in.w, rows, columns, *y);
      y++;
    }
  }
}

static void plane_find(const windows *m, const float *x, const float *y, int64_t *indices) {
  for (uint32_t oy = 0; oy < m->out.h; oy++) {
    sn__span rows = sn__pool_rows(&m->p, oy, m->in.h);
    for (uint32_t ox = 0; ox < m->out.w; ox++) {
      sn__span columns = sn__pool_columns(&m->p, ox, m->in.w);
      *indices++ = window_find(x, m->in.w, rows, columns, *y++);
    }
  }
}

static void plane_scatter(const windows *m, const int64_t *indices, const float *dy, float *dx) {
  uint64_t count = sn__plane(m->out);
  memset(dx, 0, sn__plane(m->in) * sizeof *dx);
  for (uint64_t i = 0; i < count; i++) dx[indices[i]] += dy[i];
}

static void window_spread(float *dx, uint32_t width, sn__span rows, sn__span columns, float dy) {
  float share = dy / (float)((rows.to - rows.from) * (columns.to - columns.from));
  for (int64_t y = rows.from; y < rows.to; y++)
    for (int64_t i = columns.from; i < columns.to; i++) dx[y * width + i] += share;
}

static void plane_backward(const windows *m, const float *x, const float *y, const float *dy, float *dx) {
  memset(dx, 0, sn__plane(m->in) * sizeof *dx);
  for (uint32_t oy = 0; oy < m->out.h; oy++) {
    sn__span rows = sn__pool_rows(&m->p, oy, m->in.h);
    for (uint32_t ox = 0; ox < m->out.w; ox++) {
      sn__span columns = sn__pool_columns(&m->p, ox, m->in.w);
      if (m->average)
        window_spread(dx, m->in.w, rows, columns, *dy++);
      else
        dx[window_find(x, m->in.w, rows, columns, *y++)] += *dy++;
    }
  }
}

static windows windows_of(const sn_call *call) {
  const sn_layer *layer = sn__call_layer(call);
  sn_shape in = sn__call_input(call, 0);
  return (windows){sn__pooling_of(&layer->attr, in), in, layer->out, layer->attr.pool == SN_POOL_AVERAGE};
}

sn_status sn__cpu_pool_forward(sn__cpu *k, const sn_call *call, sn_err *err) {
  float *const tensors[] = {call->x[0], call->y[0]};
  if (k->layers[call->layer].forward.handle)
    return sn__primitive_run(k, &k->layers[call->layer].forward, tensors, call, err);
  windows m = windows_of(call);
  uint64_t planes = (uint64_t)m.in.n * m.in.c, in = sn__plane(m.in), out = sn__plane(m.out);
  int64_t *indices = m.average ? NULL : call->saved[0];
#pragma omp parallel for schedule(static) if (planes * in >= SN__WORTH_THREADS)
  for (uint64_t i = 0; i < planes; i++)
    plane_forward(&m, call->x[0] + i * in, call->y[0] + i * out, indices ? indices + i * out : NULL);
  return SN_OK;
}

/* dx where x is: the positions of a plane are found before anything is written. One plane at a time, in room that was
 * made for it. */
static void backward_over_x(const sn__cpu *k, const sn_call *call, const windows *m) {
  uint64_t planes = (uint64_t)m->in.n * m->in.c, in = sn__plane(m->in), out = sn__plane(m->out);
  for (uint64_t i = 0; i < planes; i++) {
    plane_find(m, call->x[0] + i * in, call->y[0] + i * out, k->positions);
    plane_scatter(m, k->positions, call->dy[0] + i * out, call->dx[0] + i * in);
  }
}

sn_status sn__cpu_pool_backward(sn__cpu *k, const sn_call *call, sn_err *err) {
  float *const tensors[] = {call->dy[0], call->dx[0]};
  if (k->layers[call->layer].backward.handle)
    return sn__primitive_run(k, &k->layers[call->layer].backward, tensors, call, err);
  windows m = windows_of(call);
  const int64_t *indices = m.average ? NULL : call->saved[0];
  uint64_t planes = (uint64_t)m.in.n * m.in.c, in = sn__plane(m.in), out = sn__plane(m.out);
  if (call->dx[0] == call->x[0] && !m.average) {
    backward_over_x(k, call, &m);
    return SN_OK;
  }
#pragma omp parallel for schedule(static) if (planes * in >= SN__WORTH_THREADS)
  for (uint64_t i = 0; i < planes; i++) {
    if (indices)
      plane_scatter(&m, indices + i * out, call->dy[0] + i * out, call->dx[0] + i * in);
    else
      plane_backward(&m, call->x[0] + i * in, call->y[0] + i * out, call->dy[0] + i * out, call->dx[0] + i * in);
  }
  return SN_OK;
}
