/* Reference kernels of what selects, copies and adds: POOL, DROPOUT, JOIN, FORK, CONCAT.
 *
 * POOL: a window is cut where it reaches beyond the image. The average is over the real elements only, never over
 * padding. A maximum's gradient goes to the first element of the window, as they lie, that equals it. DROPOUT is
 * inverted: what is kept is scaled by 1 / (1 - ratio), so the expected value stays; of whole images element n of the
 * mask is image n's. */
#include "exec/kernel/reference_internal.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* Calls `see` with the number of every element that the window sees, as they lie, until it returns true. */
typedef bool look(void *self, const float *x, uint64_t at);

static void each_element(const sn__sides *p, const sn__area *w, const float *x, look *see, void *self) {
  for (int64_t z = w->planes.from; z < w->planes.to; z += w->planes.step)
    for (int64_t y = w->rows.from; y < w->rows.to; y += w->rows.step)
      for (int64_t i = w->columns.from; i < w->columns.to; i += w->columns.step)
        if (see(self, x, (uint64_t)((z * p->rows.in + y) * p->columns.in + i))) return;
}

static bool see_largest(void *self, const float *x, uint64_t at) {
  double *top = self;
  *top = fmax(*top, x[at]);
  return false;
}

static bool see_sum(void *self, const float *x, uint64_t at) {
  double *sum = self;
  *sum += x[at];
  return false;
}

static double maximum(const sn__sides *p, const sn__area *w, const float *x) {
  double top = -INFINITY;
  each_element(p, w, x, see_largest, &top);
  return top;
}

static double average(const sn__sides *p, const sn__area *w, const float *x) {
  double sum = 0;
  each_element(p, w, x, see_sum, &sum);
  return sum / (double)sn__area_count(w);
}

void sn__reference_pool_forward(const sn_call *call) {
  const sn_layer *layer = sn__call_layer(call);
  const sn_shape in = sn__call_input(call, 0), out = layer->out;
  const sn__sides p = sn__pool_sides(layer, in);
  float *y = call->y[0];
  for (uint64_t image = 0; image < (uint64_t)out.n * out.c; image++)
    for (uint32_t i = 0; i < p.planes.out; i++)
      for (uint32_t j = 0; j < p.rows.out; j++)
        for (uint32_t k = 0; k < p.columns.out; k++) {
          const sn__area w = sn__pool_area(&p, i, j, k);
          const float *x = call->x[0] + image * sn__plane(in);
          *y++ = (float)(layer->attr->pool == SN_POOL_MAX ? maximum : average)(&p, &w, x);
        }
}

typedef struct first {
  float top;
  uint64_t at;
} first;

static bool see_first(void *self, const float *x, uint64_t at) {
  first *f = self;
  f->at = at;
  return x[at] == f->top;
}

/* Whether element `at`, which the window sees, is the first to equal its maximum. */
static bool is_first_maximum(const sn__sides *p, const sn__area *w, const float *x, float top, uint64_t at) {
  first f = {.top = top};
  each_element(p, w, x, see_first, &f);
  return f.at == at;
}

/* The windows along a side that may see position `in`; those of a dilated one may step over it. */
static sn__span windows_around(const sn__sides *p, const sn__side *s, uint32_t in) {
  if (p->uneven) { /* the rule is its own inverse */
    const sn__side inverse = {.in = s->out, .out = s->in};
    return sn__pool_span(p, &inverse, in);
  }
  return sn__covering(in, (s->kernel - 1) * s->dilation + 1, s->stride, s->pad, s->out);
}

static bool sees(sn__span s, uint32_t in) {
  return (in - s.from) % s.step == 0;
}

/* The sum over the windows that see input (i, j, k), number `at`, of its share of their gradient. */
static double pool_gradient(const sn_call *call, const sn__sides *p, uint64_t image, const uint32_t in[3],
                            uint64_t at) {
  const bool average = sn__call_layer(call)->attr->pool == SN_POOL_AVERAGE;
  const sn__span planes = windows_around(p, &p->planes, in[0]), rows = windows_around(p, &p->rows, in[1]),
                 columns = windows_around(p, &p->columns, in[2]);
  const uint64_t in_plane = sn__plane(sn__call_input(call, 0)), out_plane = sn__plane(sn__call_layer(call)->out);
  double sum = 0;
  for (int64_t i = planes.from; i < planes.to; i++)
    for (int64_t j = rows.from; j < rows.to; j++)
      for (int64_t k = columns.from; k < columns.to; k++) {
        const sn__area w = sn__pool_area(p, (uint32_t)i, (uint32_t)j, (uint32_t)k);
        const uint64_t made = image * out_plane + (uint64_t)((i * p->rows.out + j) * p->columns.out + k);
        if (!sees(w.planes, in[0]) || !sees(w.rows, in[1]) || !sees(w.columns, in[2])) continue;
        if (average)
          sum += call->dy[0][made] / (double)sn__area_count(&w);
        else if (is_first_maximum(p, &w, call->x[0] + image * in_plane, call->y[0][made], at))
          sum += call->dy[0][made];
      }
  return sum;
}

void sn__reference_pool_backward(const sn_call *call) {
  const sn_shape in = sn__call_input(call, 0);
  const sn__sides p = sn__pool_sides(sn__call_layer(call), in);
  for (uint64_t image = 0; image < (uint64_t)in.n * in.c; image++)
    for (uint64_t at = 0; at < sn__plane(in); at++) {
      const uint64_t row = at / in.w;
      const uint32_t place[] = {(uint32_t)(row / p.rows.in), (uint32_t)(row % p.rows.in), (uint32_t)(at % in.w)};
      call->dx[0][image * sn__plane(in) + at] = (float)pool_gradient(call, &p, image, place, at);
    }
}

static void drop(const sn_call *call, const float *from, float *to) {
  const sn_layer *layer = sn__call_layer(call);
  double scale = 1 / (1 - layer->attr->ratio);
  uint64_t count = sn__count(layer->out), each = layer->attr->images ? sn__image(layer->out) : 1;
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
