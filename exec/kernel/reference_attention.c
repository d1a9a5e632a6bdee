/* Reference kernels of ATTENTION: for every head of d channels, and every position i of its queries,
 *
 *   p_j = exp(q_i . k_j / sqrt(d) + b) / sum over j      y_i = sum of p_j m_j v_j
 *
 * over all positions j that i sees: causal those up to i, within windows its window's; with b the table's number for
 * the distance of i and j, 0 without one, and m_j = 0 where dropped, else 1 / (1 - ratio). Backward, with
 * dp_j = m_j dy_i . v_j and ds_j = p_j (dp_j - sum of p dp): dq_i = sum of ds_j k_j / sqrt(d), dk_j = sum of
 * ds_j q_i / sqrt(d), dv_j = sum of p_j m_j dy_i, db = sum of ds_j. Nothing that a dialect saves is used. */
#include "exec/kernel/reference_internal.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

/* One head at one window of an image. */
typedef struct head {
  const float *q, *k, *v; /* channels of `positions` numbers */
  double *dq, *dk, *dv;
  const float *dy;
  float *y;
  double scale, cap;
  uint64_t positions, mask; /* mask: of the first probability */
  uint32_t d, number;
  sn__windows windows;
  uint64_t window;
} head;

/* In float64 until backward is over. */
typedef struct sums {
  double *inputs[3], *table;
} sums;

static head head_of(const sn_call *call, uint32_t n, uint32_t h, uint64_t window, const sums *s) {
  const sn_layer *layer = sn__call_layer(call);
  sn__attention a = sn__attention_of(call);
  const sn__windows w = sn__windows_of(layer);
  uint64_t q = sn__head_at(&a, SN__QUERIES, n, h), k = sn__head_at(&a, SN__KEYS, n, h),
           v = sn__head_at(&a, SN__VALUES, n, h), y = ((uint64_t)n * layer->out.c + (uint64_t)h * a.d) * a.positions;
  uint32_t of[3] = {0, layer->n_inputs == 1 ? 0 : 1, layer->n_inputs == 1 ? 0 : 2};
  bool backward = call->pass == SN_BACKWARD;
  return (head){.q = call->x[of[0]] + q,
                .k = call->x[of[1]] + k,
                .v = call->x[of[2]] + v,
                .dq = backward ? s->inputs[of[0]] + q : NULL,
                .dk = backward ? s->inputs[of[1]] + k : NULL,
                .dv = backward ? s->inputs[of[2]] + v : NULL,
                .dy = backward ? call->dy[0] + y : NULL,
                .y = backward ? NULL : call->y[0] + y,
                .scale = 1 / sqrt(a.d),
                .cap = layer->attr->cap,
                .positions = a.positions,
                .mask = (((uint64_t)n * layer->attr->heads + h) * w.count + window) * w.positions * w.positions,
                .d = a.d,
                .number = h,
                .windows = w,
                .window = window};
}

/* Where a window's i-th position is in a channel. */
static uint64_t at(const head *t, uint64_t i) {
  return sn__window_position(&t->windows, t->window, i);
}

static double dot(const head *t, const float *a, uint64_t i, const float *b, uint64_t j) {
  double sum = 0;
  for (uint64_t c = 0; c < t->d; c++) sum += (double)a[c * t->positions + at(t, i)] * b[c * t->positions + at(t, j)];
  return sum;
}

/* Of a score with respect to the product that it is made of. */
static double slope(const head *t, uint64_t i, uint64_t j) {
  if (t->cap <= 0) return t->scale;
  const double capped = tanh(dot(t, t->q, i, t->k, j) * t->scale / t->cap);
  return t->scale * (1 - capped * capped);
}

/* Of the table, for two positions. */
static uint64_t entry(const sn_call *call, const head *t, uint64_t i, uint64_t j) {
  const sn_attr *a = sn__call_layer(call)->attr;
  return sn__distance_row(&t->windows, a->rows, sn__distance(&t->windows, i, j)) * a->heads + t->number;
}

static double score(const sn_call *call, const head *t, uint64_t i, uint64_t j) {
  double product = dot(t, t->q, i, t->k, j) * t->scale;
  if (t->cap > 0) product = t->cap * tanh(product / t->cap);
  return sn__call_layer(call)->attr->rows > 0 ? product + call->parameters[entry(call, t, i, j)] : product;
}

/* 0 of what is not seen. */
static void probabilities(const sn_call *call, const head *t, uint64_t i, double *p) {
  const uint64_t count = t->windows.positions;
  double top = -INFINITY, sum = 0;
  for (uint64_t j = 0; j < count; j++) {
    p[j] = sn__window_sees(&t->windows, t->window, i, j) ? score(call, t, i, j) : -INFINITY;
    top = fmax(top, p[j]);
  }
  for (uint64_t j = 0; j < count; j++) sum += p[j] = exp(p[j] - top);
  for (uint64_t j = 0; j < count; j++) p[j] /= sum;
}

static double left(const sn_call *call, const head *t, uint64_t i, uint64_t j) {
  double ratio = sn__call_layer(call)->attr->ratio;
  if (ratio == 0) return 1;
  return sn_dropout_keeps(call, t->mask + i * t->windows.positions + j) ? 1 / (1 - ratio) : 0;
}

static void query_forward(const sn_call *call, const head *t, uint64_t i, const double *p) {
  for (uint64_t c = 0; c < t->d; c++) {
    double sum = 0;
    for (uint64_t j = 0; j < t->windows.positions; j++)
      sum += p[j] * left(call, t, i, j) * t->v[c * t->positions + at(t, j)];
    t->y[c * t->positions + at(t, i)] = (float)sum;
  }
}

static void query_backward(const sn_call *call, const head *t, uint64_t i, const double *p, double *table) {
  const uint64_t count = t->windows.positions;
  double sum = 0;
  assert(t->dq && t->dk && t->dv);
  for (uint64_t j = 0; j < count; j++) sum += p[j] * left(call, t, i, j) * dot(t, t->dy, i, t->v, j);
  for (uint64_t j = 0; j < count; j++) {
    const double kept = left(call, t, i, j), ds = p[j] * (kept * dot(t, t->dy, i, t->v, j) - sum);
    const double product = ds * slope(t, i, j);
    for (uint64_t c = 0; c < t->d; c++) {
      const uint64_t query = c * t->positions + at(t, i), key = c * t->positions + at(t, j);
      t->dq[query] += product * t->k[key];
      t->dk[key] += product * t->q[query];
      t->dv[key] += p[j] * kept * t->dy[query];
    }
    if (sn__call_layer(call)->attr->rows > 0) table[entry(call, t, i, j)] += ds;
  }
}

static void all_queries(const sn_call *call, double *p, const sums *s) {
  const sn_layer *layer = sn__call_layer(call);
  const sn__windows w = sn__windows_of(layer);
  for (uint32_t n = 0; n < layer->out.n; n++)
    for (uint32_t h = 0; h < layer->attr->heads; h++)
      for (uint64_t window = 0; window < w.count; window++) {
        const head t = head_of(call, n, h, window, s);
        for (uint64_t i = 0; i < w.positions; i++) {
          probabilities(call, &t, i, p);
          if (call->pass == SN_FORWARD)
            query_forward(call, &t, i, p);
          else
            query_backward(call, &t, i, p, s->table);
        }
      }
}

static void round_all(const double *from, float *to, uint64_t count) {
  for (uint64_t i = 0; i < count; i++) to[i] = (float)from[i];
}

sn_status sn__reference_attention(const sn_call *call, sn_err *err) {
  const sn_layer *layer = sn__call_layer(call);
  const uint32_t backward = call->pass == SN_BACKWARD ? layer->n_inputs : 0;
  double *p = calloc(sn__plane(layer->out), sizeof *p);
  sums s = {.table = calloc(layer->parameters + 1, sizeof *s.table)};
  bool good = p && s.table;
  for (uint32_t i = 0; i < backward; i++)
    good = (s.inputs[i] = calloc(sn__count(sn__call_input(call, i)), sizeof *s.inputs[i])) && good;
  if (good) all_queries(call, p, &s);
  for (uint32_t i = 0; i < backward; i++) {
    if (good) round_all(s.inputs[i], call->dx[i], sn__count(sn__call_input(call, i)));
    free(s.inputs[i]);
  }
  if (good && backward && layer->parameters > 0) round_all(s.table, call->gradients, layer->parameters);
  free(s.table);
  free(p);
  return good ? SN_OK : sn_fail_memory(err);
}
