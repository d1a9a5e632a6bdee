/* CPU kernels of ATTENTION and ROTARY; reference_attention.c and reference_tokens.c have the formulas. Values are
 * plain: a head's channels are rows of as many numbers as there are positions, and loops run along these.
 *
 * A query at a time: its probabilities are a row of the workspace, backward made again - from queries and keys,
 * whatever the dialect saves, so that all have the same bits - with a second row for their gradients. Threads share
 * images and heads of keys, with all heads of queries that use them, so that every sum is one thread's; where there is
 * a table, heads of keys with all images. O(positions^2) work, or a window's positions squared for each.
 *
 * A window is packed into the workspace, where its numbers lie as those of a whole image do, and its results are spread
 * from there. What a table adds is there by distance; so are its gradients, in float64, until all images are done.
 *
 *   a thread's scratch:   row, gradients of it | biases | sums of the table | packed q k v y or dy dq dk dv | positions
 */
#include "exec/cpu/cpu.h"

#include "base/checked.h"

#include <math.h>
#include <omp.h>
#include <string.h>

enum { LINE_FLOATS = 16, PACKED = 7 };

static uint64_t whole_lines(uint64_t floats) {
  return sn_ceil_div(floats, LINE_FLOATS) * LINE_FLOATS;
}

/* Where the parts begin, in floats. */
typedef struct room {
  uint64_t bias, sums, packed, positions, all;
} room;

static room room_of(const sn_layer *layer) {
  const sn_attr *a = layer->attr;
  const sn__windows w = sn__windows_of(layer);
  const uint64_t distances = a->rows > 0 ? sn__distances(&w) * (a->heads / a->kv_heads) : 0;
  const uint64_t packed = w.size > 0 ? w.positions : 0, d = layer->out.c / a->heads;
  room r = {.bias = 2 * whole_lines(w.positions)};
  r.sums = r.bias + whole_lines(distances);
  r.packed = r.sums + whole_lines((distances + a->rows) * (sizeof(double) / sizeof(float)));
  r.positions = r.packed + whole_lines(packed * d * PACKED);
  r.all = r.positions + whole_lines(packed);
  return r;
}

uint64_t sn__cpu_attention_scratch(const sn_layer *layer, int threads) {
  return ((uint64_t)threads * room_of(layer).all + LINE_FLOATS) * sizeof(float);
}

/* A thread's part of the workspace, in whole lines of the cache. */
static float *scratch_of(const sn_call *call, int thread) {
  const uintptr_t line = LINE_FLOATS * sizeof(float), from = (uintptr_t)call->workspace;
  float *first = (float *)call->workspace + (line - from % line) % line / sizeof(float);
  return first + (uint64_t)thread * room_of(sn__call_layer(call)).all;
}

/* One head of queries at one image, or at one window of it. */
typedef struct head {
  const float *q, *k, *v;
  float *dq, *dk, *dv; /* NULL: nobody needs them */
  const float *dy;
  float *y;
  float scale, cap, kept; /* kept: what a probability that is not dropped is multiplied by */
  uint64_t positions, mask_at;
  uint32_t d;
  bool drops;
  sn__mask mask;
  const float *bias;          /* by distance; NULL: none */
  double *sums;               /* gradients of these */
  const sn__windows *windows; /* NULL: there are none */
  uint64_t window;
} head;

static float *at_of(float *tensor, uint64_t at) {
  return tensor ? tensor + at : NULL;
}

static head head_of(const sn_call *call, const sn__attention *a, uint32_t n, uint32_t h) {
  const sn_layer *layer = sn__call_layer(call);
  const uint64_t q = sn__head_at(a, SN__QUERIES, n, h), k = sn__head_at(a, SN__KEYS, n, h),
                 v = sn__head_at(a, SN__VALUES, n, h),
                 y = ((uint64_t)n * layer->out.c + (uint64_t)h * a->d) * a->positions;
  const uint32_t keys = layer->n_inputs == 1 ? 0 : 1, values = layer->n_inputs == 1 ? 0 : 2;
  const bool backward = call->pass == SN_BACKWARD;
  const uint64_t seen = sn__windows_of(layer).positions;
  return (head){.q = call->x[0] + q,
                .k = call->x[keys] + k,
                .v = call->x[values] + v,
                .dq = backward ? at_of(call->dx[0], q) : NULL,
                .dk = backward ? at_of(call->dx[keys], k) : NULL,
                .dv = backward ? at_of(call->dx[values], v) : NULL,
                .dy = backward ? call->dy[0] + y : NULL,
                .y = backward ? NULL : call->y[0] + y,
                .scale = (float)(1 / sqrt(a->d)),
                .cap = (float)layer->attr->cap,
                .kept = (float)(1 / (1 - layer->attr->ratio)),
                .positions = a->positions,
                .mask_at = ((uint64_t)n * layer->attr->heads + h) * a->positions * seen,
                .d = a->d,
                .drops = layer->attr->ratio > 0,
                .mask = sn__mask_of(call)};
}

/* row_j = factor * sum over channels of a's number i times b's j */
static void products(const head *t, const float *a, uint64_t i, const float *b, float factor, uint64_t count,
                     float *row) {
  memset(row, 0, count * sizeof *row);
  for (uint32_t c = 0; c < t->d; c++) {
    const float left = a[c * t->positions + i] * factor, *right = b + c * t->positions;
#pragma omp simd
    for (uint64_t j = 0; j < count; j++) row[j] += left * right[j];
  }
}

/* a's number i, of every channel: the sum of row_j times b's number j. */
static void weigh(const head *t, float *a, uint64_t i, const float *b, const float *row, uint64_t count) {
  for (uint32_t c = 0; c < t->d; c++) {
    const float *of = b + c * t->positions;
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (uint64_t j = 0; j < count; j++) sum += row[j] * of[j];
    a[c * t->positions + i] = sum;
  }
}

/* b's number j += row_j times a's number i, of every channel. */
static void spread(const head *t, const float *a, uint64_t i, const float *row, uint64_t count, float *b) {
  for (uint32_t c = 0; c < t->d; c++) {
    const float left = a[c * t->positions + i];
    float *to = b + c * t->positions;
#pragma omp simd
    for (uint64_t j = 0; j < count; j++) to[j] += left * row[j];
  }
}

/* Of query i: what the table adds for the keys of row `row` of its window, the first of them last; of no window all,
 * the first of them first. */
static uint64_t first_distance(const head *t, uint64_t i, uint64_t row) {
  return t->windows ? sn__distance(t->windows, i, row * t->windows->size) : t->positions - 1 - i;
}

static void add_bias(const head *t, uint64_t i, uint64_t count, float *scores) {
  const uint64_t size = t->windows ? t->windows->size : 0;
  for (uint64_t row = 0; row < size; row++) {
    const float *bias = t->bias + first_distance(t, i, row);
    for (uint64_t j = 0; j < size; j++) scores[row * size + j] += *(bias - j);
  }
  if (size > 0) return;
  const float *bias = t->bias + first_distance(t, i, 0);
  for (uint64_t j = 0; j < count; j++) scores[j] += bias[j];
}

static void add_to_sums(const head *t, uint64_t i, uint64_t count, const float *gradients) {
  const uint64_t size = t->windows ? t->windows->size : 0;
  for (uint64_t row = 0; row < size; row++) {
    double *sums = t->sums + first_distance(t, i, row);
    for (uint64_t j = 0; j < size; j++) *(sums - j) += gradients[row * size + j];
  }
  if (size > 0) return;
  double *sums = t->sums + first_distance(t, i, 0);
  for (uint64_t j = 0; j < count; j++) sums[j] += gradients[j];
}

/* What query i does not see of its window has no probability. */
static void hide(const head *t, uint64_t i, uint64_t count, float *scores) {
  const bool all = !t->windows || (!t->windows->causal && t->windows->shift == 0);
  for (uint64_t j = 0; j < count && !all; j++)
    if (!sn__window_sees(t->windows, t->window, i, j)) scores[j] = -INFINITY;
}

/* Scores over the cap, as hyperbolic tangents. */
static void tangents(const head *t, uint64_t i, uint64_t count, float *row) {
  products(t, t->q, i, t->k, t->scale / t->cap, count, row);
  for (uint64_t j = 0; j < count; j++) row[j] = tanhf(row[j]);
}

/* Before what the table adds. */
static void scores(const head *t, uint64_t i, uint64_t count, float *row) {
  if (t->cap <= 0) {
    products(t, t->q, i, t->k, t->scale, count, row);
    return;
  }
  tangents(t, i, count, row);
#pragma omp simd
  for (uint64_t j = 0; j < count; j++) row[j] *= t->cap;
}

static void probabilities(const head *t, uint64_t i, uint64_t count, float *row) {
  double sum = 0;
  scores(t, i, count, row);
  if (t->bias) add_bias(t, i, count, row);
  hide(t, i, count, row);
  float top = row[0];
  for (uint64_t j = 1; j < count; j++) top = row[j] > top ? row[j] : top;
  for (uint64_t j = 0; j < count; j++) sum += row[j] = expf(row[j] - top);
  const float inverse = (float)(1 / sum);
#pragma omp simd
  for (uint64_t j = 0; j < count; j++) row[j] *= inverse;
}

static void drop(const head *t, uint64_t i, uint64_t count, float *row) {
  for (uint64_t j = 0; j < count && t->drops; j++)
    row[j] = sn__mask_keeps(t->mask, t->mask_at + i * t->positions + j) ? row[j] * t->kept : 0;
}

/* Gradients of scores as those of the products that they are made of; `row` is overwritten. */
static void go_behind_cap(const head *t, uint64_t i, uint64_t count, float *row, float *gradient) {
  if (t->cap <= 0) return;
  tangents(t, i, count, row);
#pragma omp simd
  for (uint64_t j = 0; j < count; j++) gradient[j] *= 1 - row[j] * row[j];
}

static void query_backward(const head *t, uint64_t i, uint64_t count, float *row, float *gradient) {
  double sum = 0;
  if (t->dv) {
    memcpy(gradient, row, count * sizeof *row);
    drop(t, i, count, gradient);
    spread(t, t->dy, i, gradient, count, t->dv);
  }
  products(t, t->dy, i, t->v, 1, count, gradient);
  drop(t, i, count, gradient);
  for (uint64_t j = 0; j < count; j++) sum += (double)row[j] * gradient[j];
#pragma omp simd
  for (uint64_t j = 0; j < count; j++) gradient[j] = row[j] * (gradient[j] - (float)sum);
  if (t->sums) add_to_sums(t, i, count, gradient);
  go_behind_cap(t, i, count, row, gradient);
#pragma omp simd
  for (uint64_t j = 0; j < count; j++) gradient[j] *= t->scale;
  if (t->dq) weigh(t, t->dq, i, t->k, gradient, count);
  if (t->dk) spread(t, t->q, i, gradient, count, t->dk);
}

static void run_head(const sn_call *call, const head *t, float *row) {
  const sn_layer *layer = sn__call_layer(call);
  for (uint64_t i = 0; i < t->positions; i++) {
    const uint64_t count = layer->attr->causal && !t->windows ? i + 1 : t->positions;
    probabilities(t, i, count, row);
    if (t->dy) {
      query_backward(t, i, count, row, row + whole_lines(t->positions));
      continue;
    }
    drop(t, i, count, row);
    weigh(t, t->y, i, t->v, row, count);
  }
}

static void clear(const head *t) {
  const uint64_t bytes = t->d * t->positions * sizeof(float);
  if (t->dk) memset(t->dk, 0, bytes);
  if (t->dv) memset(t->dv, 0, bytes);
}

/* ---- windows ---- */

/* A head's window, where it is packed; `at`: its positions in the image. */
typedef struct packing {
  head from, packed;
  const uint32_t *at;
} packing;

static void pack(const packing *p, const float *from, const float *packed) {
  float *to = (float *)packed; /* the workspace, which the head only reads */
  for (uint32_t c = 0; c < p->from.d; c++, from += p->from.positions)
    for (uint64_t i = 0; i < p->packed.positions; i++) *to++ = from[p->at[i]];
}

static void unpack(const packing *p, const float *packed, float *to) {
  for (uint32_t c = 0; c < p->from.d && to; c++, to += p->from.positions)
    for (uint64_t i = 0; i < p->packed.positions; i++) to[p->at[i]] = *packed++;
}

static packing packing_of(const head *from, const sn__windows *w, uint64_t window, float *to, const uint32_t *at) {
  const uint64_t each = from->d * w->positions;
  packing p = {.from = *from, .packed = *from, .at = at};
  head *t = &p.packed;
  t->q = to;
  t->k = to + each;
  t->v = to + 2 * each;
  if (from->y) t->y = to + 3 * each;
  if (from->dy) t->dy = to + 3 * each;
  if (from->dq) t->dq = to + 4 * each;
  if (from->dk) t->dk = to + 5 * each;
  if (from->dv) t->dv = to + 6 * each;
  t->mask_at = from->mask_at + window * w->positions * w->positions;
  t->positions = w->positions;
  t->windows = w;
  t->window = window;
  return p;
}

/* `first`, `last`: of the heads of queries that have these keys and values. */
static void run_window(const sn_call *call, const packing *p, bool first, bool last, float *row) {
  const head *t = &p->packed;
  pack(p, p->from.q, t->q);
  if (first) {
    pack(p, p->from.k, t->k);
    pack(p, p->from.v, t->v);
    clear(t);
  }
  if (t->dy) pack(p, p->from.dy, t->dy);
  run_head(call, t, row);
  unpack(p, t->y, p->from.y);
  unpack(p, t->dq, p->from.dq);
  unpack(p, t->dk, last ? p->from.dk : NULL);
  unpack(p, t->dv, last ? p->from.dv : NULL);
}

/* ---- all of it ---- */

/* Heads of queries that have keys and values together, at some images. */
typedef struct unit {
  uint32_t first_head, heads;
  uint32_t image, images;
} unit;

static double *sums_of(const sn_layer *layer, float *scratch) {
  return (double *)(void *)(scratch + room_of(layer).sums);
}

/* The table by distance, head by head, and no gradients yet. */
static void open_table(const sn_call *call, unit u, float *scratch) {
  const sn_layer *layer = sn__call_layer(call);
  const sn__windows w = sn__windows_of(layer);
  const uint64_t distances = sn__distances(&w);
  float *bias = scratch + room_of(layer).bias;
  for (uint64_t i = 0; i < distances; i++) {
    const float *row = call->parameters + sn__distance_row(&w, layer->attr->rows, i) * layer->attr->heads;
    for (uint32_t h = 0; h < u.heads; h++) bias[h * distances + i] = row[u.first_head + h];
  }
  memset(sums_of(layer, scratch), 0, u.heads * distances * sizeof(double));
}

static void close_table(const sn_call *call, unit u, float *scratch) {
  const sn_layer *layer = sn__call_layer(call);
  const sn__windows w = sn__windows_of(layer);
  const uint64_t distances = sn__distances(&w);
  const double *sums = sums_of(layer, scratch);
  double *rows = sums_of(layer, scratch) + u.heads * distances;
  for (uint32_t h = 0; h < u.heads; h++, sums += distances) {
    memset(rows, 0, layer->attr->rows * sizeof *rows);
    for (uint64_t i = 0; i < distances; i++) rows[sn__distance_row(&w, layer->attr->rows, i)] += sums[i];
    for (uint32_t r = 0; r < layer->attr->rows; r++)
      call->gradients[(uint64_t)r * layer->attr->heads + u.first_head + h] = (float)rows[r];
  }
}

static void run_image(const sn_call *call, const sn__attention *a, unit u, uint32_t n, float *scratch) {
  const sn_layer *layer = sn__call_layer(call);
  const sn__windows w = sn__windows_of(layer);
  const room r = room_of(layer);
  uint32_t *at = (uint32_t *)(void *)(scratch + r.positions);
  for (uint64_t window = 0; window < w.count; window++) {
    for (uint64_t i = 0; i < w.positions && w.size > 0; i++) at[i] = (uint32_t)sn__window_position(&w, window, i);
    for (uint32_t h = 0; h < u.heads; h++) {
      head t = head_of(call, a, n, u.first_head + h);
      const uint64_t table = h * sn__distances(&w);
      if (layer->attr->rows > 0) t.bias = scratch + r.bias + table;
      if (layer->attr->rows > 0 && t.dy) t.sums = sums_of(layer, scratch) + table;
      const packing p = packing_of(&t, &w, window, scratch + r.packed, at);
      if (w.size > 0) run_window(call, &p, h == 0, h + 1 == u.heads, scratch);
      if (w.size == 0 && h == 0) clear(&t);
      if (w.size == 0) run_head(call, &t, scratch);
    }
  }
}

static void run(const sn_call *call) {
  const sn_layer *layer = sn__call_layer(call);
  const sn__attention a = sn__attention_of(call);
  const uint32_t kv_heads = layer->attr->kv_heads, each = layer->attr->heads / kv_heads;
  const bool table = layer->attr->rows > 0;
  const uint64_t units = table ? kv_heads : (uint64_t)layer->out.n * kv_heads;
#pragma omp parallel for schedule(static) if (a.positions * sn__count(layer->out) >= SN__WORTH_THREADS)
  for (uint64_t i = 0; i < units; i++) {
    float *scratch = scratch_of(call, omp_get_thread_num());
    const unit u = {.first_head = (uint32_t)(i % kv_heads) * each,
                    .heads = each,
                    .image = table ? 0 : (uint32_t)(i / kv_heads),
                    .images = table ? layer->out.n : 1};
    if (table) open_table(call, u, scratch);
    for (uint32_t n = u.image; n < u.image + u.images; n++) run_image(call, &a, u, n, scratch);
    if (table && call->pass == SN_BACKWARD && call->gradients) close_table(call, u, scratch);
  }
}

void sn__cpu_attention_forward(const sn_call *call, uint32_t block) {
  (void)block;
  run(call);
}

void sn__cpu_attention_backward(const sn_call *call, uint32_t block) {
  (void)block;
  run(call);
}

/* Pairs of rows, turned by angles times `sense`; one thread has a pair. */
static void turn(const sn_call *call, const float *from, float *to, float sense) {
  const sn_layer *layer = sn__call_layer(call);
  const sn_shape s = layer->out;
  const uint32_t d = s.c / sn__rotary_heads(layer), half = d / 2;
  const uint64_t pairs = (uint64_t)s.n * s.c / 2, plane = sn__plane(s);
#pragma omp parallel for schedule(static) if (sn__count(s) >= SN__WORTH_THREADS)
  for (uint64_t i = 0; i < pairs; i++) {
    const uint64_t at = (i / half * d + i % half) * plane, other = at + half * plane;
    for (uint64_t p = 0; p < plane; p++) {
      const double angle = sn__rotary_angle((uint32_t)(i % half), d, p);
      const float cosine = (float)cos(angle), sine = sense * (float)sin(angle), x = from[at + p], z = from[other + p];
      to[at + p] = x * cosine - z * sine;
      to[other + p] = z * cosine + x * sine;
    }
  }
}

void sn__cpu_rotary_forward(const sn_call *call, uint32_t block) {
  (void)block;
  turn(call, call->x[0], call->y[0], 1);
}

void sn__cpu_rotary_backward(const sn_call *call, uint32_t block) {
  (void)block;
  if (call->dx[0]) turn(call, call->dy[0], call->dx[0], -1);
}
