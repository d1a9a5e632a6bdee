/* CPU kernels of POOL. Averages are oneDNN's. Its maximum keeps a workspace of positions, which the
 * plan does not have: ours finds the position again from x and y, in as many comparisons as the forward made. Ours are
 * also the averages over the uneven windows of an adaptive POOL, which oneDNN does not have, and between a blocked and
 * a plain value: a POOL takes and makes either. */
#include "exec/cpu/cpu.h"

#include <assert.h>
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
  uint32_t x_block = sn__input_layout(k, index, 0), y_block = sn__output_layout(k, index);
  if (sn__plane(out) == 1) y_block = x_block; /* one pixel lies as it would plain */
  if (layer->attr.pool == SN_POOL_MAX || p.uneven_h || x_block != y_block) return SN_OK;
  const dnnl_dims_t stride = {p.stride_h, p.stride_w}, kernel = {p.kernel_h, p.kernel_w}, pad = {p.pad_h, p.pad_w};
  const dnnl_dims_t trailing = {trailing_pad(out.h, p.kernel_h, p.stride_h, p.pad_h, in.h),
                                trailing_pad(out.w, p.kernel_w, p.stride_w, p.pad_w, in.w)};
  const dnnl_alg_kind_t average = dnnl_pooling_avg_exclude_padding;
  dnnl_pooling_desc_t forward, backward;
  dnnl_memory_desc_t x, y;
  if (sn__dnnl_image(&x, in, x_block, err) || sn__dnnl_image(&y, out, y_block, err)) return err->code;
  dnnl_status_t status =
      dnnl_pooling_forward_desc_init(&forward, dnnl_forward_training, average, &x, &y, stride, kernel, pad, trailing);
  if (status == dnnl_success)
    status = dnnl_pooling_backward_desc_init(&backward, average, &x, &y, stride, kernel, pad, trailing);
  if (sn__dnnl_check(status, "describe an average pool", err) ||
      sn__primitive_new(k, &forward, NULL, forward_args, NULL, 2, &made->forward, err))
    return err->code;
  return sn__primitive_new(k, &backward, &made->forward, backward_args, NULL, 2, &made->backward, err);
}

/* Sizes of a POOL in loops of ours. They take `lanes` channels of an image at a time, which begin at the same place
 * whether they lie in a block or plain. */
typedef struct windows {
  sn__pooling p;
  sn_shape in, out;
  bool average;
  uint32_t x_block, y_block, lanes; /* lanes: the larger */
} windows;

/* How the pixels of these channels, and the channels of a pixel, are apart, in floats. */
typedef struct stride {
  uint64_t pixel, lane;
} stride;

enum { MOST_LANES = 16 };

/* Largest elements, or means, of the window in every channel. */
static inline void window_top(const float *x, stride sx, uint32_t lanes, uint32_t width, sn__span rows,
                              sn__span columns, float *top) {
  const float *first = x + ((uint64_t)rows.from * width + (uint64_t)columns.from) * sx.pixel;
  for (uint32_t l = 0; l < lanes; l++) top[l] = first[l * sx.lane];
  for (int64_t y = rows.from; y < rows.to; y++)
    for (int64_t i = columns.from; i < columns.to; i++) {
      const float *at = x + ((uint64_t)y * width + (uint64_t)i) * sx.pixel;
#pragma omp simd
      for (uint32_t l = 0; l < lanes; l++) top[l] = at[l * sx.lane] > top[l] ? at[l * sx.lane] : top[l];
    }
}

static inline void window_mean(const float *x, stride sx, uint32_t lanes, uint32_t width, sn__span rows,
                               sn__span columns, float *mean) {
  float count = (float)((rows.to - rows.from) * (columns.to - columns.from));
  for (uint32_t l = 0; l < lanes; l++) mean[l] = 0;
  for (int64_t y = rows.from; y < rows.to; y++)
    for (int64_t i = columns.from; i < columns.to; i++) {
      const float *at = x + ((uint64_t)y * width + (uint64_t)i) * sx.pixel;
#pragma omp simd
      for (uint32_t l = 0; l < lanes; l++) mean[l] += at[l * sx.lane];
    }
  for (uint32_t l = 0; l < lanes; l++) mean[l] /= count;
}

/* In every channel the first element of the window that is `top`, row by row; of what is not a number the first. */
static inline void window_find(const float *x, stride sx, uint32_t lanes, uint32_t width, sn__span rows,
                               sn__span columns, const float *top, int32_t *found) {
  for (uint32_t l = 0; l < lanes; l++) found[l] = (int32_t)(rows.from * width + columns.from);
  for (int64_t y = rows.to - 1; y >= rows.from; y--)
    for (int64_t i = columns.to - 1; i >= columns.from; i--) {
      int32_t pixel = (int32_t)(y * width + i);
      const float *at = x + (uint64_t)pixel * sx.pixel;
#pragma omp simd
      for (uint32_t l = 0; l < lanes; l++) found[l] = at[l * sx.lane] == top[l] ? pixel : found[l];
    }
}

/* All of this is inlined into each() three times, so that lanes and strides are constants where they can be. */

/* `indices`: where each maximum is, for a graph that keeps them, in the order of y; else NULL. */
static inline void lanes_forward(const windows *m, uint32_t lanes, stride sx, stride sy, const float *x, float *y,
                                 int64_t *indices) {
  for (uint32_t oy = 0; oy < m->out.h; oy++) {
    sn__span rows = sn__pool_rows(&m->p, oy, m->in.h);
    for (uint32_t ox = 0; ox < m->out.w; ox++) {
      sn__span columns = sn__pool_columns(&m->p, ox, m->in.w);
      uint64_t at = ((uint64_t)oy * m->out.w + ox) * sy.pixel;
      float of[MOST_LANES];
      int32_t found[MOST_LANES];
      if (m->average)
        window_mean(x, sx, lanes, m->in.w, rows, columns, of);
      else
        window_top(x, sx, lanes, m->in.w, rows, columns, of);
      for (uint32_t l = 0; l < lanes; l++) y[at + l * sy.lane] = of[l];
      if (!indices) continue;
      window_find(x, sx, lanes, m->in.w, rows, columns, of, found);
      for (uint32_t l = 0; l < lanes; l++) indices[at + l * sy.lane] = found[l];
    }
  }
}

static inline void lanes_find(const windows *m, uint32_t lanes, stride sx, stride sy, const float *x, const float *y,
                              int64_t *indices) {
  for (uint32_t oy = 0; oy < m->out.h; oy++) {
    sn__span rows = sn__pool_rows(&m->p, oy, m->in.h);
    for (uint32_t ox = 0; ox < m->out.w; ox++) {
      sn__span columns = sn__pool_columns(&m->p, ox, m->in.w);
      uint64_t at = ((uint64_t)oy * m->out.w + ox) * sy.pixel;
      float top[MOST_LANES];
      int32_t found[MOST_LANES];
      for (uint32_t l = 0; l < lanes; l++) top[l] = y[at + l * sy.lane];
      window_find(x, sx, lanes, m->in.w, rows, columns, top, found);
      for (uint32_t l = 0; l < lanes; l++) indices[at + l * sy.lane] = found[l];
    }
  }
}

static inline void lanes_scatter(const windows *m, uint32_t lanes, stride sx, stride sy, const int64_t *indices,
                                 const float *dy, float *dx) {
  uint64_t count = sn__plane(m->out);
  for (uint64_t i = 0; i < count; i++)
    for (uint32_t l = 0; l < lanes; l++) {
      uint64_t at = i * sy.pixel + l * sy.lane;
      dx[(uint64_t)indices[at] * sx.pixel + l * sx.lane] += dy[at];
    }
}

static inline void window_spread(float *dx, stride sx, uint32_t lanes, uint32_t width, sn__span rows, sn__span columns,
                                 const float *dy) {
  float count = (float)((rows.to - rows.from) * (columns.to - columns.from)), share[MOST_LANES];
  for (uint32_t l = 0; l < lanes; l++) share[l] = dy[l] / count;
  for (int64_t y = rows.from; y < rows.to; y++)
    for (int64_t i = columns.from; i < columns.to; i++) {
      float *at = dx + ((uint64_t)y * width + (uint64_t)i) * sx.pixel;
#pragma omp simd
      for (uint32_t l = 0; l < lanes; l++) at[l * sx.lane] += share[l];
    }
}

static inline void lanes_backward(const windows *m, uint32_t lanes, stride sx, stride sy, const float *x,
                                  const float *y, const float *dy, float *dx) {
  for (uint32_t oy = 0; oy < m->out.h; oy++) {
    sn__span rows = sn__pool_rows(&m->p, oy, m->in.h);
    for (uint32_t ox = 0; ox < m->out.w; ox++) {
      sn__span columns = sn__pool_columns(&m->p, ox, m->in.w);
      uint64_t at = ((uint64_t)oy * m->out.w + ox) * sy.pixel;
      float of[MOST_LANES], top[MOST_LANES];
      int32_t found[MOST_LANES];
      for (uint32_t l = 0; l < lanes; l++) of[l] = dy[at + l * sy.lane];
      if (m->average) {
        window_spread(dx, sx, lanes, m->in.w, rows, columns, of);
        continue;
      }
      for (uint32_t l = 0; l < lanes; l++) top[l] = y[at + l * sy.lane];
      window_find(x, sx, lanes, m->in.w, rows, columns, top, found);
      for (uint32_t l = 0; l < lanes; l++) dx[(uint64_t)found[l] * sx.pixel + l * sx.lane] += of[l];
    }
  }
}

/* What is done with so many channels of an image; what is not needed is NULL. */
typedef enum task { FORWARD, FIND, SCATTER, BACKWARD } task;

typedef struct job {
  task task;
  const float *x, *y, *dy;
  float *made; /* y or dx */
  int64_t *indices;
} job;

static inline void run_lanes(const windows *m, const job *j, uint32_t lanes, stride sx, stride sy) {
  if (j->task == FORWARD) lanes_forward(m, lanes, sx, sy, j->x, j->made, j->indices);
  if (j->task == FIND) lanes_find(m, lanes, sx, sy, j->x, j->y, j->indices);
  assert(j->dy || j->task == FORWARD || j->task == FIND);
  assert(j->y || j->task != BACKWARD || m->average);
  if (j->task == SCATTER || j->task == BACKWARD) memset(j->made, 0, sn__plane(m->in) * lanes * sizeof *j->made);
  if (j->task == SCATTER) lanes_scatter(m, lanes, sx, sy, j->indices, j->dy, j->made);
  if (j->task == BACKWARD) lanes_backward(m, lanes, sx, sy, j->x, j->y, j->dy, j->made);
}

static stride stride_of(uint32_t block, sn_shape s) {
  return block == 1 ? (stride){1, sn__plane(s)} : (stride){block, 1};
}

/* Both blocked, or both plain and then one at a time; or one of either. */
static void each(const windows *m, const job *j) {
  stride sx = stride_of(m->x_block, m->in), sy = stride_of(m->y_block, m->out);
  if (m->lanes == 1)
    run_lanes(m, j, 1, (stride){1, 0}, (stride){1, 0});
  else if (m->x_block == 16 && m->y_block == 16)
    run_lanes(m, j, 16, (stride){16, 1}, (stride){16, 1});
  else if (m->x_block == 8 && m->y_block == 8)
    run_lanes(m, j, 8, (stride){8, 1}, (stride){8, 1});
  else
    run_lanes(m, j, m->lanes, sx, sy);
}

static windows windows_of(const sn__cpu *k, const sn_call *call) {
  const sn_layer *layer = sn__call_layer(call);
  sn_shape in = sn__call_input(call, 0);
  uint32_t x = sn__input_layout(k, call->layer, 0), y = sn__output_layout(k, call->layer);
  return (windows){.p = sn__pooling_of(&layer->attr, in),
                   .in = in,
                   .out = layer->out,
                   .average = layer->attr.pool == SN_POOL_AVERAGE,
                   .x_block = x,
                   .y_block = y,
                   .lanes = x > y ? x : y};
}

/* The same part of every tensor. */
static const float *part(const float *tensor, uint64_t elements) {
  return tensor ? tensor + elements : NULL;
}

static void run_all(const windows *m, const job *whole) {
  uint64_t items = (uint64_t)m->in.n * m->in.c / m->lanes, in = sn__plane(m->in) * m->lanes,
           out = sn__plane(m->out) * m->lanes;
#pragma omp parallel for schedule(static) if (items * in >= SN__WORTH_THREADS)
  for (uint64_t i = 0; i < items; i++) {
    job j = {.task = whole->task,
             .x = part(whole->x, i * in),
             .y = part(whole->y, i * out),
             .dy = part(whole->dy, i * out),
             .made = whole->made + i * (whole->task == FORWARD ? out : in),
             .indices = whole->indices ? whole->indices + i * out : NULL};
    each(m, &j);
  }
}

sn_status sn__cpu_pool_forward(sn__cpu *k, const sn_call *call, sn_err *err) {
  float *const tensors[] = {call->x[0], call->y[0]};
  if (k->layers[call->layer].forward.handle)
    return sn__primitive_run(k, &k->layers[call->layer].forward, tensors, call, err);
  windows m = windows_of(k, call);
  const job whole = {
      .task = FORWARD, .x = call->x[0], .made = call->y[0], .indices = m.average ? NULL : call->saved[0]};
  run_all(&m, &whole);
  return SN_OK;
}

/* dx where x is: the positions of some channels are found before anything is written there, in room that was made for
 * them. */
static void backward_over_x(const sn__cpu *k, const sn_call *call, const windows *m) {
  uint64_t items = (uint64_t)m->in.n * m->in.c / m->lanes, in = sn__plane(m->in) * m->lanes,
           out = sn__plane(m->out) * m->lanes;
  for (uint64_t i = 0; i < items; i++) {
    job j = {.task = FIND,
             .x = call->x[0] + i * in,
             .y = call->y[0] + i * out,
             .dy = call->dy[0] + i * out,
             .made = call->dx[0] + i * in,
             .indices = k->positions};
    each(m, &j);
    j.task = SCATTER;
    each(m, &j);
  }
}

sn_status sn__cpu_pool_backward(sn__cpu *k, const sn_call *call, sn_err *err) {
  float *const tensors[] = {call->dy[0], call->dx[0]};
  if (k->layers[call->layer].backward.handle)
    return sn__primitive_run(k, &k->layers[call->layer].backward, tensors, call, err);
  windows m = windows_of(k, call);
  int64_t *indices = m.average ? NULL : call->saved[0];
  if (call->dx[0] == call->x[0] && !m.average) {
    backward_over_x(k, call, &m);
    return SN_OK;
  }
  const job whole = {.task = indices ? SCATTER : BACKWARD,
                     .x = call->x[0],
                     .y = call->y[0],
                     .dy = call->dy[0],
                     .made = call->dx[0],
                     .indices = indices};
  run_all(&m, &whole);
  return SN_OK;
}
