/* What the reference kernels and the CPU kernels share: shapes of a call's tensors, the input positions that a window
 * covers, the dropout generator. Internal to exec/. */
#ifndef SN_EXEC_KERNEL_KERNEL_INTERNAL_H
#define SN_EXEC_KERNEL_KERNEL_INTERNAL_H

#include "exec/data/random.h"
#include "exec/kernel/call.h"
#include "sim/graph/route.h"

#include <math.h>

static inline const sn_layer *sn__call_layer(const sn_call *call) {
  return &call->net->layers[call->layer];
}
static inline sn_shape sn__call_input(const sn_call *call, uint32_t i) {
  return sn_layer_input_shape(call->net, sn__call_layer(call), i);
}
/* The layer reads the input batch, or a FORK of it: nobody needs the gradient with respect to that. */
static inline bool sn__reads_batch(const sn_net *net, uint32_t layer) {
  do layer = sn_layer_input(net, &net->layers[layer], 0)->producer;
  while (net->layers[layer].op == SN_FORK);
  return net->layers[layer].op == SN_DATA;
}
static inline uint64_t sn__plane(sn_shape s) {
  return (uint64_t)s.h * s.w;
}
static inline uint64_t sn__image(sn_shape s) {
  return s.c * sn__plane(s);
}
static inline uint64_t sn__count(sn_shape s) {
  return s.n * sn__image(s);
}

/* Weights of a CONV, DECONV or FC without its bias, which follows them. */
static inline uint64_t sn__weights(const sn_layer *layer) {
  return layer->parameters - (layer->attr->bias ? layer->attr->channels : 0);
}

/* A SOFTMAX of SN_LOSS_MSE: what its input should be, as many numbers. They lie where labels do. */
static inline bool sn__has_targets(const sn_layer *layer) {
  return layer->op == SN_SOFTMAX && layer->attr->loss == SN_LOSS_MSE;
}
static inline const float *sn__call_targets(const sn_call *call) {
  return (const float *)(const void *)call->labels;
}

/* From one row or column of a window to the next. */
static inline uint32_t sn__dilation(uint32_t given) {
  return given > 1 ? given : 1;
}

/* A window along one side: it starts at input position `start`, maybe in the padding, and covers of the real positions
 * every `step`-th from .. to - 1. */
typedef struct sn__span {
  int64_t start, from, to, step;
} sn__span;

static inline sn__span sn__window(int64_t out, uint32_t kernel, uint32_t stride, uint32_t pad, uint32_t in) {
  sn__span s = {.start = out * stride - pad, .step = 1};
  s.from = s.start > 0 ? s.start : 0;
  s.to = s.start + kernel < in ? s.start + kernel : in;
  return s;
}

static inline int64_t sn__span_count(sn__span s) {
  return s.step > 1 ? (s.to - s.from + s.step - 1) / s.step : s.to - s.from;
}

/* What looks through windows, along one side. */
typedef struct sn__side {
  uint32_t in, out, kernel, stride, pad, dilation;
} sn__side;

typedef struct sn__sides {
  sn__side planes, rows, columns; /* of an image a single plane */
  bool uneven;                    /* windows of an adaptive POOL that differ in size: kernel, stride, pad say nothing */
} sn__sides;

static inline sn__side sn__side_of(uint32_t in, uint32_t out, uint32_t kernel, uint32_t stride, uint32_t pad,
                                   uint32_t dilation) {
  return (sn__side){in, out, kernel > 0 ? kernel : 1, stride > 0 ? stride : 1, pad, sn__dilation(dilation)};
}

/* Whether a CONV, DECONV or POOL looks at volumes or makes them. */
static inline bool sn__minds_planes(const sn_layer *layer) {
  return layer->attr->planes > 0 || layer->planes > 0;
}

/* `planes` of what the windows look at, `made` of what they make; 0: an image. */
static inline sn__sides sn__sides_of(const sn_attr *a, sn_shape in, uint32_t planes, sn_shape out, uint32_t made) {
  if (planes == 0) planes = 1;
  if (made == 0) made = 1;
  return (sn__sides){.planes = sn__side_of(planes, made, a->kernel_d, a->stride_d, a->pad_d, a->dilation_d),
                     .rows =
                         sn__side_of(in.h / planes, out.h / made, a->kernel_h, a->stride_h, a->pad_h, a->dilation_h),
                     .columns = sn__side_of(in.w, out.w, a->kernel_w, a->stride_w, a->pad_w, a->dilation_w)};
}

/* Of a POOL, global or not. The windows of an adaptive one are ordinary ones where the output's size divides the
 * input's along every side (models/net/net.h). */
static inline sn__sides sn__pool_sides(const sn_layer *layer, sn_shape in) {
  const sn_attr *a = layer->attr;
  sn__sides s = sn__sides_of(a, in, a->planes, layer->out, layer->planes);
  sn__side *const sides[] = {&s.planes, &s.rows, &s.columns};
  for (int i = 0; i < 3 && (a->global || a->adaptive_h); i++) {
    const uint32_t part = sides[i]->in / sides[i]->out;
    s.uneven = s.uneven || sides[i]->in % sides[i]->out > 0;
    *sides[i] = sn__side_of(sides[i]->in, sides[i]->out, part, part, 0, 1);
  }
  return s;
}

/* Window `out` of a POOL along a side. A dilated one that starts in the padding sees the image some steps later. */
static inline sn__span sn__pool_span(const sn__sides *p, const sn__side *side, int64_t out) {
  const int64_t in = side->in, outs = side->out;
  if (p->uneven) return (sn__span){out * in / outs, out * in / outs, ((out + 1) * in + outs - 1) / outs, 1};
  const int64_t step = side->dilation, reach = (side->kernel - INT64_C(1)) * step + 1;
  sn__span s = {.start = out * side->stride - side->pad, .step = step};
  s.from = s.start >= 0 ? s.start : step > 1 ? (s.start % step + step) % step : 0;
  s.to = s.start + reach < in ? s.start + reach : in;
  return s;
}

/* One window of a POOL. */
typedef struct sn__area {
  sn__span planes, rows, columns;
} sn__area;

static inline sn__area sn__pool_area(const sn__sides *p, uint32_t plane, uint32_t row, uint32_t column) {
  return (sn__area){sn__pool_span(p, &p->planes, plane), sn__pool_span(p, &p->rows, row),
                    sn__pool_span(p, &p->columns, column)};
}

static inline int64_t sn__area_count(const sn__area *a) {
  return sn__span_count(a->planes) * sn__span_count(a->rows) * sn__span_count(a->columns);
}

/* Dropout: element i of a mask is the i-th number (exec/data/random.h) from a start that seed, layer and iteration
 * give. */
typedef struct sn__mask {
  uint64_t start;
  uint64_t dropped; /* of 2^53 equally likely numbers */
} sn__mask;

static inline sn__mask sn__mask_of(const sn_call *call) {
  uint64_t start = sn__mix(call->hyper->seed + SN__GOLDEN);
  start = sn__mix((start ^ call->layer) + SN__GOLDEN);
  start = sn__mix((start ^ call->iteration) + SN__GOLDEN);
  return (sn__mask){start, (uint64_t)(sn__call_layer(call)->attr->ratio * 0x1p53)};
}

static inline bool sn__mask_keeps(sn__mask mask, uint64_t index) {
  return sn__mix(mask.start + (index + 1) * SN__GOLDEN) >> 11 >= mask.dropped;
}

/* The row of a POSITION's table that position p takes. */
static inline uint64_t sn__position_row(const sn_layer *layer, uint64_t p) {
  const uint64_t rows = layer->attr->rows, positions = sn__plane(layer->out);
  return rows >= positions ? p : p * rows / positions;
}

/* What a RESIZE makes position `out` of `outs` of, along a side of `in` positions: of the one that it lies in, or a
 * mean of two, by how far they are from its centre; beyond the first and the last there are only these. */
typedef struct sn__mean {
  uint64_t at[2];
  double weight[2];
} sn__mean;

static inline sn__mean sn__resized(uint32_t out, uint32_t outs, uint32_t in, bool bilinear) {
  if (!bilinear) {
    const uint64_t nearest = (uint64_t)out * in / outs;
    return (sn__mean){{nearest, nearest}, {1, 0}};
  }
  const double centre = fmax(0, (out + 0.5) * in / outs - 0.5);
  const uint64_t first = (uint64_t)centre;
  const double share = centre - (double)first;
  return (sn__mean){{first, first + 1 < in ? first + 1 : first}, {1 - share, share}};
}

/* The rows that PROBABILITIES are of, along its axis: `apart` of them begin side by side in each group, and their
 * numbers are as far apart. */
typedef struct sn__rows {
  uint64_t groups, length, apart;
} sn__rows;

static inline sn__rows sn__rows_of(const sn_layer *layer) {
  const sn_shape s = layer->out;
  if (layer->attr->axis == SN_SIDE_CHANNELS) return (sn__rows){s.n, s.c, sn__plane(s)};
  if (layer->attr->axis == SN_SIDE_HEIGHT) return (sn__rows){(uint64_t)s.n * s.c, s.h, s.w};
  return (sn__rows){(uint64_t)s.n * s.c * s.h, s.w, 1};
}

/* Where numbers go or come from: (n, c, h, w) of `shape` is number first + n stride[0] + c stride[1] + .., modulo 2^64:
 * a stride may go down. */
typedef struct sn__move {
  sn_shape shape;
  uint64_t first, stride[1 + SN_SIDES];
} sn__move;

static inline uint64_t sn__moved(const sn__move *m, uint64_t i) {
  const uint64_t row = i / m->shape.w, plane = row / m->shape.h;
  return m->first + plane / m->shape.c * m->stride[0] + plane % m->shape.c * m->stride[1] +
         row % m->shape.h * m->stride[2] + i % m->shape.w * m->stride[3];
}

/* All numbers stay where they are. */
static inline sn__move sn__move_alike(sn_shape s) {
  return (sn__move){s, 0, {sn__image(s), sn__plane(s), s.w, 1}};
}

/* From what a TAKE, SLICE or TRANSPOSE makes to where in its input it was; what others make stays. */
static inline sn__move sn__move_of(const sn_layer *layer, sn_shape in) {
  sn__move move = sn__move_alike(layer->out);
  const sn__move from = sn__move_alike(in);
  if (layer->op != SN_TAKE && layer->op != SN_SLICE && layer->op != SN_TRANSPOSE) return move;
  for (int axis = 0; axis <= SN_SIDES; axis++) {
    const int of = layer->op == SN_TRANSPOSE && axis > 0 ? 1 + (int)layer->attr->axes[axis - 1] : axis;
    move.stride[axis] = from.stride[of];
  }
  if (layer->op == SN_SLICE) {
    const sn_attr *a = layer->attr;
    uint64_t *stride = &move.stride[1 + a->axis], step = *stride * (a->step > 1 ? a->step : 1);
    move.first = a->first * *stride + (a->turned ? (a->count - 1) * step : 0);
    *stride = a->turned ? 0 - step : step;
  }
  return move;
}

/* Whether a step touches a tensor's value; the input batch, which is none, is always there. */
bool sn__call_reads(const sn_route *route, const sn_step *step, uint32_t tensor);

/* A step of the layer itself, no sum and no view. */
static inline bool sn__call_is_backward(const sn_step *step) {
  return step->pass == SN_BACKWARD &&
         (step->kernel == SN_WHOLE || step->kernel == SN_FILTER_GRADIENT || step->kernel == SN_DATA_GRADIENT);
}

/* ROTARY: heads, and by how much pair i of a head's d channels is turned at position p. */
static inline uint32_t sn__rotary_heads(const sn_layer *layer) {
  return layer->attr->heads > 0 ? layer->attr->heads : 1;
}
static inline double sn__rotary_angle(uint32_t i, uint32_t d, uint64_t p) {
  return (double)p * pow(10000, -2.0 * i / d);
}

/* Where the heads of an ATTENTION lie: queries, keys and values in inputs of their own, or one behind the other. */
typedef enum sn__attention_part { SN__QUERIES, SN__KEYS, SN__VALUES } sn__attention_part;

typedef struct sn__attention {
  uint32_t d, each; /* channels of a head; heads of queries that have one of keys and values together */
  uint64_t positions;
  uint32_t channels[3], first[3]; /* of the part's input: all of an image; where the part begins */
} sn__attention;

static inline sn__attention sn__attention_of(const sn_call *call) {
  const sn_layer *layer = sn__call_layer(call);
  const uint32_t d = layer->out.c / layer->attr->heads, kv = d * layer->attr->kv_heads, q = layer->out.c;
  sn__attention a = {.d = d,
                     .each = layer->attr->heads / layer->attr->kv_heads,
                     .positions = sn__plane(layer->out),
                     .channels = {q, kv, kv}};
  if (layer->n_inputs > 1) return a;
  for (int i = 0; i < 3; i++) a.channels[i] = q + 2 * kv;
  a.first[SN__KEYS] = q;
  a.first[SN__VALUES] = q + kv;
  return a;
}

/* The windows of an ATTENTION. Without any, all positions are one. */
typedef struct sn__windows {
  uint64_t count, positions; /* of an image; of each */
  uint32_t size, shift, height, width;
  bool causal;
} sn__windows;

static inline sn__windows sn__windows_of(const sn_layer *layer) {
  const sn_attr *a = layer->attr;
  const uint64_t all = sn__plane(layer->out), each = a->window > 0 ? (uint64_t)a->window * a->window : all;
  return (sn__windows){all / each, each, a->window, a->shift, layer->out.h, layer->out.w, a->causal};
}

/* The image's position of a window's i-th, row by row. */
static inline uint64_t sn__window_position(const sn__windows *w, uint64_t window, uint64_t i) {
  if (w->size == 0) return i;
  const uint64_t across = w->width / w->size;
  const uint64_t row = window / across * w->size + i / w->size + w->shift;
  const uint64_t column = window % across * w->size + i % w->size + w->shift;
  return row % w->height * w->width + column % w->width;
}

/* Whether two rows or columns of a window, of which the last may lie on both ends of the image, are on the same. */
static inline bool sn__same_end(const sn__windows *w, bool last, uint64_t a, uint64_t b) {
  const uint64_t here = w->size - w->shift;
  return !last || w->shift == 0 || (a < here) == (b < here);
}

/* Whether a window's i-th position sees its j-th. */
static inline bool sn__window_sees(const sn__windows *w, uint64_t window, uint64_t i, uint64_t j) {
  if (w->causal && sn__window_position(w, window, j) > sn__window_position(w, window, i)) return false;
  if (w->size == 0) return true;
  const uint64_t across = w->width / w->size, down = w->height / w->size;
  return sn__same_end(w, window / across == down - 1, i / w->size, j / w->size) &&
         sn__same_end(w, window % across == across - 1, i % w->size, j % w->size);
}

/* Distances between positions of a window, by number, and the row of the table for one (models/net/net.h). */
static inline uint64_t sn__distances(const sn__windows *w) {
  const uint64_t side = 2 * (uint64_t)w->size - 1;
  return w->size > 0 ? side * side : 2 * w->positions - 1;
}
static inline uint64_t sn__distance(const sn__windows *w, uint64_t i, uint64_t j) {
  const uint64_t s = w->size;
  if (s == 0) return j + w->positions - 1 - i;
  return (i / s + s - 1 - j / s) * (2 * s - 1) + i % s + s - 1 - j % s;
}
static inline uint64_t sn__distance_row(const sn__windows *w, uint32_t rows, uint64_t distance) {
  if (w->size > 0) return distance;
  const bool behind = distance > w->positions - 1;
  const uint64_t far = behind ? distance - (w->positions - 1) : w->positions - 1 - distance;
  const uint64_t half = rows > 1 ? rows / 2 : 1, n = w->causal ? rows : half, exact = n / 2;
  const uint64_t first = behind && !w->causal && rows > 1 ? half : 0;
  if (far < exact || n < 2) return first + (n < 2 ? 0 : far);
  const double most = exact < 64 ? 128 : 2.0 * (double)exact;
  const double share = log((double)far / (double)exact) / log(most / (double)exact);
  const uint64_t row = exact + (uint64_t)(share * (double)(n - exact));
  return first + (row < n ? row : n - 1);
}

/* The first number of what head h of queries uses, in the part's input. */
static inline uint64_t sn__head_at(const sn__attention *a, sn__attention_part part, uint32_t n, uint32_t h) {
  const uint32_t head = part == SN__QUERIES ? h : h / a->each;
  return ((uint64_t)n * a->channels[part] + a->first[part] + (uint64_t)head * a->d) * a->positions;
}

#endif
