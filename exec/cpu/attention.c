/* CPU kernels of ATTENTION and ROTARY; reference_attention.c and reference_tokens.c have the formulas. Values are
 * plain: a head's channels are rows of as many numbers as there are positions, and loops run along these.
 *
 * A query at a time: its probabilities are a row of the workspace, backward made again - from queries and keys,
 * whatever the dialect saves, so that all have the same bits - with a second row for their gradients. Threads share
 * images and heads of keys, with all heads of queries that use them, so that every sum is one thread's. O(positions^2)
 * work, two rows of positions a thread. */
#include "exec/cpu/cpu.h"

#include "base/checked.h"

#include <math.h>
#include <omp.h>
#include <string.h>

enum { LINE_FLOATS = 16 };

static uint64_t row_floats(const sn_layer *layer) {
  return sn_ceil_div(sn__plane(layer->out), LINE_FLOATS) * LINE_FLOATS;
}

uint64_t sn__cpu_attention_scratch(const sn_layer *layer, int threads) {
  return (uint64_t)threads * 2 * row_floats(layer) * sizeof(float);
}

/* One head of queries at one image. */
typedef struct head {
  const float *q, *k, *v;
  float *dq, *dk, *dv; /* NULL: nobody needs them */
  const float *dy;
  float *y;
  float scale, kept; /* kept: what a probability that is not dropped is multiplied by */
  uint64_t positions, mask_at;
  uint32_t d;
  bool drops;
  sn__mask mask;
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
  return (head){.q = call->x[0] + q,
                .k = call->x[keys] + k,
                .v = call->x[values] + v,
                .dq = backward ? at_of(call->dx[0], q) : NULL,
                .dk = backward ? at_of(call->dx[keys], k) : NULL,
                .dv = backward ? at_of(call->dx[values], v) : NULL,
                .dy = backward ? call->dy[0] + y : NULL,
                .y = backward ? NULL : call->y[0] + y,
                .scale = (float)(1 / sqrt(a->d)),
                .kept = (float)(1 / (1 - layer->attr.ratio)),
                .positions = a->positions,
                .mask_at = ((uint64_t)n * layer->attr.heads + h) * a->positions * a->positions,
                .d = a->d,
                .drops = layer->attr.ratio > 0,
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

static void probabilities(const head *t, uint64_t i, uint64_t count, float *row) {
  double sum = 0;
  products(t, t->q, i, t->k, t->scale, count, row);
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
  for (uint64_t j = 0; j < count; j++) gradient[j] = row[j] * (gradient[j] - (float)sum) * t->scale;
  if (t->dq) weigh(t, t->dq, i, t->k, gradient, count);
  if (t->dk) spread(t, t->q, i, gradient, count, t->dk);
}

static void run_head(const sn_call *call, const head *t, float *row) {
  const sn_layer *layer = sn__call_layer(call);
  for (uint64_t i = 0; i < t->positions; i++) {
    const uint64_t count = layer->attr.causal ? i + 1 : t->positions;
    probabilities(t, i, count, row);
    if (t->dy) {
      query_backward(t, i, count, row, row + row_floats(layer));
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

static void run(const sn_call *call) {
  const sn_layer *layer = sn__call_layer(call);
  const sn__attention a = sn__attention_of(call);
  const uint32_t kv_heads = layer->attr.kv_heads, each = layer->attr.heads / kv_heads;
  const uint64_t units = (uint64_t)layer->out.n * kv_heads, rows = 2 * row_floats(layer);
#pragma omp parallel for schedule(static) if (a.positions * sn__count(layer->out) >= SN__WORTH_THREADS)
  for (uint64_t unit = 0; unit < units; unit++) {
    float *row = (float *)call->workspace + (uint64_t)omp_get_thread_num() * rows;
    for (uint32_t h = 0; h < each; h++) {
      const head t = head_of(call, &a, (uint32_t)(unit / kv_heads), (uint32_t)(unit % kv_heads) * each + h);
      if (h == 0) clear(&t);
      run_head(call, &t, row);
    }
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
