/* Reference kernels of ATTENTION: for every head of d channels, and every position i of its queries,
 *
 *   p_j = exp(q_i . k_j / sqrt(d)) / sum over j      y_i = sum of p_j m_j v_j
 *
 * over all positions j, causal over those up to i, with m_j = 0 where dropped, else 1 / (1 - ratio). Backward, with
 * dp_j = m_j dy_i . v_j and ds_j = p_j (dp_j - sum of p dp) / sqrt(d): dq_i = sum of ds_j k_j, dk_j = sum of ds_j q_i,
 * dv_j = sum of p_j m_j dy_i. Nothing that a dialect saves is used. */
#include "exec/kernel/reference_internal.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

/* One head at one image. */
typedef struct head {
  const float *q, *k, *v; /* channels of `positions` numbers */
  double *dq, *dk, *dv;
  const float *dy;
  float *y;
  double scale;
  uint64_t positions, mask; /* mask: of the first probability */
  uint32_t d;
} head;

static head head_of(const sn_call *call, uint32_t n, uint32_t h, double *const *sums) {
  const sn_layer *layer = sn__call_layer(call);
  sn__attention a = sn__attention_of(call);
  uint64_t q = sn__head_at(&a, SN__QUERIES, n, h), k = sn__head_at(&a, SN__KEYS, n, h),
           v = sn__head_at(&a, SN__VALUES, n, h), y = ((uint64_t)n * layer->out.c + (uint64_t)h * a.d) * a.positions;
  uint32_t of[3] = {0, layer->n_inputs == 1 ? 0 : 1, layer->n_inputs == 1 ? 0 : 2};
  bool backward = call->pass == SN_BACKWARD;
  return (head){.q = call->x[of[0]] + q,
                .k = call->x[of[1]] + k,
                .v = call->x[of[2]] + v,
                .dq = backward ? sums[of[0]] + q : NULL,
                .dk = backward ? sums[of[1]] + k : NULL,
                .dv = backward ? sums[of[2]] + v : NULL,
                .dy = backward ? call->dy[0] + y : NULL,
                .y = backward ? NULL : call->y[0] + y,
                .scale = 1 / sqrt(a.d),
                .positions = a.positions,
                .mask = ((uint64_t)n * layer->attr.heads + h) * a.positions * a.positions,
                .d = a.d};
}

static double dot(const head *t, const float *a, uint64_t i, const float *b, uint64_t j) {
  double sum = 0;
  for (uint64_t c = 0; c < t->d; c++) sum += (double)a[c * t->positions + i] * b[c * t->positions + j];
  return sum;
}

/* Probabilities of the first `seen` positions. */
static void probabilities(const head *t, uint64_t i, uint64_t seen, double *p) {
  double top = -INFINITY, sum = 0;
  for (uint64_t j = 0; j < seen; j++) top = fmax(top, p[j] = dot(t, t->q, i, t->k, j) * t->scale);
  for (uint64_t j = 0; j < seen; j++) sum += p[j] = exp(p[j] - top);
  for (uint64_t j = 0; j < seen; j++) p[j] /= sum;
}

static double left(const sn_call *call, const head *t, uint64_t i, uint64_t j) {
  double ratio = sn__call_layer(call)->attr.ratio;
  if (ratio == 0) return 1;
  return sn_dropout_keeps(call, t->mask + i * t->positions + j) ? 1 / (1 - ratio) : 0;
}

static void query_forward(const sn_call *call, const head *t, uint64_t i, uint64_t seen, double *p) {
  for (uint64_t c = 0; c < t->d; c++) {
    double sum = 0;
    for (uint64_t j = 0; j < seen; j++) sum += p[j] * left(call, t, i, j) * t->v[c * t->positions + j];
    t->y[c * t->positions + i] = (float)sum;
  }
}

static void query_backward(const sn_call *call, const head *t, uint64_t i, uint64_t seen, const double *p) {
  double sum = 0;
  assert(t->dq && t->dk && t->dv);
  for (uint64_t j = 0; j < seen; j++) sum += p[j] * left(call, t, i, j) * dot(t, t->dy, i, t->v, j);
  for (uint64_t j = 0; j < seen; j++) {
    double kept = left(call, t, i, j), ds = p[j] * (kept * dot(t, t->dy, i, t->v, j) - sum) * t->scale;
    for (uint64_t c = 0; c < t->d; c++) {
      uint64_t at = c * t->positions;
      t->dq[at + i] += ds * t->k[at + j];
      t->dk[at + j] += ds * t->q[at + i];
      t->dv[at + j] += p[j] * kept * t->dy[at + i];
    }
  }
}

static void all_queries(const sn_call *call, double *p, double *const *sums) {
  const sn_layer *layer = sn__call_layer(call);
  for (uint32_t n = 0; n < layer->out.n; n++)
    for (uint32_t h = 0; h < layer->attr.heads; h++) {
      head t = head_of(call, n, h, sums);
      for (uint64_t i = 0; i < t.positions; i++) {
        uint64_t seen = layer->attr.causal ? i + 1 : t.positions;
        probabilities(&t, i, seen, p);
        if (call->pass == SN_FORWARD)
          query_forward(call, &t, i, seen, p);
        else
          query_backward(call, &t, i, seen, p);
      }
    }
}

sn_status sn__reference_attention(const sn_call *call, sn_err *err) {
  const sn_layer *layer = sn__call_layer(call);
  double *p = calloc(sn__plane(layer->out), sizeof *p), *sums[3] = {0};
  bool good = p;
  for (uint32_t i = 0; i < layer->n_inputs && call->pass == SN_BACKWARD; i++)
    good = (sums[i] = calloc(sn__count(sn__call_input(call, i)), sizeof *sums[i])) && good;
  if (good) all_queries(call, p, sums);
  for (uint32_t i = 0; i < layer->n_inputs && call->pass == SN_BACKWARD; i++) {
    for (uint64_t at = 0; at < sn__count(sn__call_input(call, i)) && good; at++) call->dx[i][at] = (float)sums[i][at];
    free(sums[i]);
  }
  free(p);
  return good ? SN_OK : sn_fail_memory(err);
}
