/* CPU kernels of POOL. Averages are oneDNN's. Its maximum keeps a workspace of positions, which the
 * plan does not have: ours finds the position again from x and y, in as many comparisons as the forward made. Ours are
 * also the averages over the uneven windows of an adaptive POOL, which oneDNN does not have, and between a blocked and
 * a plain value: a POOL takes and makes either. */
#include "exec/cpu/cpu.h"

#include <assert.h>
#include <string.h>

/* What the last window sees beyond the image and its leading padding; negative where it ends before the image does. */
static dnnl_dim_t trailing_pad(const sn__side *s) {
  return (dnnl_dim_t)(s->out - 1) * s->stride + s->kernel - s->in - s->pad;
}

sn_status sn__cpu_pool_make(sn__cpu *k, uint32_t index, sn_err *err) {
  static const int forward_args[] = {DNNL_ARG_SRC, DNNL_ARG_DST},
                   backward_args[] = {DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_SRC};
  const sn_layer *layer = &k->net->layers[index];
  sn__cpu_layer *made = &k->layers[index];
  sn_shape in = sn_layer_input_shape(k->net, layer, 0), out = layer->out;
  const sn__sides p = sn__pool_sides(layer, in);
  uint32_t x_block = sn__input_layout(k, index, 0), y_block = sn__output_layout(k, index);
  if (sn__plane(out) == 1) y_block = x_block; /* one pixel lies as it would plain */
  if (layer->attr->pool == SN_POOL_MAX || p.uneven || x_block != y_block) return SN_OK;
  const bool volumes = sn__minds_planes(layer);
  const sn__side *d = &p.planes, *r = &p.rows, *c = &p.columns;
  const dnnl_dims_t strides = {d->stride, r->stride, c->stride}, kernels = {d->kernel, r->kernel, c->kernel},
                    pads = {d->pad, r->pad, c->pad}, ends = {trailing_pad(d), trailing_pad(r), trailing_pad(c)};
  const dnnl_dim_t *const stride = strides + !volumes, *const kernel = kernels + !volumes, *const pad = pads + !volumes,
                          *const trailing = ends + !volumes; /* images have no planes */
  const dnnl_alg_kind_t average = dnnl_pooling_avg_exclude_padding;
  dnnl_pooling_desc_t forward, backward;
  dnnl_memory_desc_t x, y;
  if (sn__dnnl_image(&x, in, volumes ? d->in : 0, x_block, err) ||
      sn__dnnl_image(&y, out, volumes ? d->out : 0, y_block, err))
    return err->code;
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
  sn__sides p;
  sn_shape in, out;
  bool average;
  uint32_t x_block, y_block, lanes; /* lanes: the larger */
} windows;

/* How the pixels of these channels, and the channels of a pixel, are apart, in floats. */
typedef struct stride {
  uint64_t pixel, lane;
} stride;

enum { MOST_LANES = 16 };

/* Into each() three times, so that lanes and strides are constants where they can be. */
#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* The number of a window's first pixel of a row. */
static inline uint64_t pixel_at(const windows *m, int64_t plane, int64_t row, int64_t column) {
  return (uint64_t)((plane * m->p.rows.in + row) * m->in.w + column);
}

/* Largest elements, or means, of the window in every channel. */
ALWAYS_INLINE void window_top(const windows *m, const float *x, stride sx, uint32_t lanes, const sn__area *w,
                              float *top) {
  const float *first = x + pixel_at(m, w->planes.from, w->rows.from, w->columns.from) * sx.pixel;
  for (uint32_t l = 0; l < lanes; l++) top[l] = first[l * sx.lane];
  const uint64_t over = (uint64_t)w->columns.step * sx.pixel;
  for (int64_t z = w->planes.from; z < w->planes.to; z += w->planes.step)
    for (int64_t y = w->rows.from; y < w->rows.to; y += w->rows.step) {
      const float *at = x + pixel_at(m, z, y, w->columns.from) * sx.pixel;
      for (int64_t i = w->columns.from; i < w->columns.to; i += w->columns.step, at += over) {
#pragma omp simd
        for (uint32_t l = 0; l < lanes; l++) top[l] = at[l * sx.lane] > top[l] ? at[l * sx.lane] : top[l];
      }
    }
}

ALWAYS_INLINE void window_mean(const windows *m, const float *x, stride sx, uint32_t lanes, const sn__area *w,
                               float *mean) {
  const float count = (float)sn__area_count(w);
  for (uint32_t l = 0; l < lanes; l++) mean[l] = 0;
  for (int64_t z = w->planes.from; z < w->planes.to; z++)
    for (int64_t y = w->rows.from; y < w->rows.to; y++)
      for (int64_t i = w->columns.from; i < w->columns.to; i++) {
        const float *at = x + pixel_at(m, z, y, i) * sx.pixel;
#pragma omp simd
        for (uint32_t l = 0; l < lanes; l++) mean[l] += at[l * sx.lane];
      }
  for (uint32_t l = 0; l < lanes; l++) mean[l] /= count;
}

/* The last position that a span has. */
static inline int64_t last_of(sn__span s) {
  return s.from + (sn__span_count(s) - 1) * s.step;
}

/* In every channel the first element of the window that is `top`, as they lie; of what is not a number the first. */
ALWAYS_INLINE void window_find(const windows *m, const float *x, stride sx, uint32_t lanes, const sn__area *w,
                               const float *top, int32_t *found) {
  for (uint32_t l = 0; l < lanes; l++) found[l] = (int32_t)pixel_at(m, w->planes.from, w->rows.from, w->columns.from);
  const int64_t plane = last_of(w->planes), row = last_of(w->rows), column = last_of(w->columns);
  const int32_t step = (int32_t)w->columns.step;
  for (int64_t z = plane; z >= w->planes.from; z -= w->planes.step)
    for (int64_t y = row; y >= w->rows.from; y -= w->rows.step) {
      int32_t pixel = (int32_t)pixel_at(m, z, y, column);
      for (int64_t i = column; i >= w->columns.from; i -= step, pixel -= step) {
        const float *at = x + (uint64_t)pixel * sx.pixel;
#pragma omp simd
        for (uint32_t l = 0; l < lanes; l++) found[l] = at[l * sx.lane] == top[l] ? pixel : found[l];
      }
    }
}

/* Goes from window to window as y lies. */
typedef struct walk {
  const sn__sides *p;
  uint32_t plane, row, column;
  sn__area area;
} walk;

ALWAYS_INLINE walk begin(const windows *m) {
  return (walk){.p = &m->p, .area = sn__pool_area(&m->p, 0, 0, 0)};
}

ALWAYS_INLINE void go_on(walk *w) {
  if (++w->column == w->p->columns.out) {
    w->column = 0;
    if (++w->row == w->p->rows.out) {
      w->row = 0;
      w->area.planes = sn__pool_span(w->p, &w->p->planes, ++w->plane);
    }
    w->area.rows = sn__pool_span(w->p, &w->p->rows, w->row);
  }
  w->area.columns = sn__pool_span(w->p, &w->p->columns, w->column);
}

/* `indices`: where each maximum is, for a graph that keeps them, in the order of y; else NULL. */
ALWAYS_INLINE void lanes_forward(const windows *m, uint32_t lanes, stride sx, stride sy, const float *x, float *y,
                                 int64_t *indices) {
  walk w = begin(m);
  for (uint64_t at = 0; at < sn__plane(m->out) * sy.pixel; at += sy.pixel, go_on(&w)) {
    float of[MOST_LANES];
    int32_t found[MOST_LANES];
    if (m->average)
      window_mean(m, x, sx, lanes, &w.area, of);
    else
      window_top(m, x, sx, lanes, &w.area, of);
    for (uint32_t l = 0; l < lanes; l++) y[at + l * sy.lane] = of[l];
    if (!indices) continue;
    window_find(m, x, sx, lanes, &w.area, of, found);
    for (uint32_t l = 0; l < lanes; l++) indices[at + l * sy.lane] = found[l];
  }
}

ALWAYS_INLINE void lanes_find(const windows *m, uint32_t lanes, stride sx, stride sy, const float *x, const float *y,
                              int64_t *indices) {
  walk w = begin(m);
  for (uint64_t at = 0; at < sn__plane(m->out) * sy.pixel; at += sy.pixel, go_on(&w)) {
    float top[MOST_LANES];
    int32_t found[MOST_LANES];
    for (uint32_t l = 0; l < lanes; l++) top[l] = y[at + l * sy.lane];
    window_find(m, x, sx, lanes, &w.area, top, found);
    for (uint32_t l = 0; l < lanes; l++) indices[at + l * sy.lane] = found[l];
  }
}

ALWAYS_INLINE void lanes_scatter(const windows *m, uint32_t lanes, stride sx, stride sy, const int64_t *indices,
                                 const float *dy, float *dx) {
  uint64_t count = sn__plane(m->out);
  for (uint64_t i = 0; i < count; i++)
    for (uint32_t l = 0; l < lanes; l++) {
      uint64_t at = i * sy.pixel + l * sy.lane;
      dx[(uint64_t)indices[at] * sx.pixel + l * sx.lane] += dy[at];
    }
}

ALWAYS_INLINE void window_spread(const windows *m, float *dx, stride sx, uint32_t lanes, const sn__area *w,
                                 const float *dy) {
  float count = (float)sn__area_count(w), share[MOST_LANES];
  for (uint32_t l = 0; l < lanes; l++) share[l] = dy[l] / count;
  for (int64_t z = w->planes.from; z < w->planes.to; z++)
    for (int64_t y = w->rows.from; y < w->rows.to; y++)
      for (int64_t i = w->columns.from; i < w->columns.to; i++) {
        float *at = dx + pixel_at(m, z, y, i) * sx.pixel;
#pragma omp simd
        for (uint32_t l = 0; l < lanes; l++) at[l * sx.lane] += share[l];
      }
}

ALWAYS_INLINE void lanes_backward(const windows *m, uint32_t lanes, stride sx, stride sy, const float *x,
                                  const float *y, const float *dy, float *dx) {
  walk w = begin(m);
  for (uint64_t at = 0; at < sn__plane(m->out) * sy.pixel; at += sy.pixel, go_on(&w)) {
    float of[MOST_LANES], top[MOST_LANES];
    int32_t found[MOST_LANES];
    for (uint32_t l = 0; l < lanes; l++) of[l] = dy[at + l * sy.lane];
    if (m->average) {
      window_spread(m, dx, sx, lanes, &w.area, of);
      continue;
    }
    for (uint32_t l = 0; l < lanes; l++) top[l] = y[at + l * sy.lane];
    window_find(m, x, sx, lanes, &w.area, top, found);
    for (uint32_t l = 0; l < lanes; l++) dx[(uint64_t)found[l] * sx.pixel + l * sx.lane] += of[l];
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

ALWAYS_INLINE void run_lanes(const windows *m, const job *j, uint32_t lanes, stride sx, stride sy) {
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
  return (windows){.p = sn__pool_sides(layer, in),
                   .in = in,
                   .out = layer->out,
                   .average = layer->attr->pool == SN_POOL_AVERAGE,
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
