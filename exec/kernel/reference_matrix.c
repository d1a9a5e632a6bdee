/* Reference kernels of MATMUL and PROBABILITIES, the definitions in float64.
 *
 *   MATMUL          y = a b for each channel of each image; da = dy b^T, db = a^T dy, turned as a and b are
 *   PROBABILITIES   y_i = exp(x_i) / sum over j of exp(x_j), dx_i = y_i (dy_i - sum over j of dy_j y_j) */
#include "exec/kernel/reference_internal.h"

#include <math.h>

/* Where element (i, j) of a factor lies among its matrix's numbers. */
static uint64_t element(sn_shape s, bool turned, uint64_t i, uint64_t j) {
  return turned ? j * s.w + i : i * s.w + j;
}

/* The sum over k of first(i, k) second(k, j), of the matrices of one channel. */
typedef struct factors {
  sn_shape first, second, out;
  bool turn_first, turn_second;
  uint64_t inner; /* columns of the first, rows of the second */
} factors;

static factors factors_of(const sn_call *call) {
  const sn_attr *a = sn__call_layer(call)->attr;
  factors f = {.first = sn__call_input(call, 0),
               .second = sn__call_input(call, 1),
               .out = sn__call_layer(call)->out,
               .turn_first = a->turn_first,
               .turn_second = a->turn_second};
  f.inner = f.turn_first ? f.first.h : f.first.w;
  return f;
}

void sn__reference_matmul_forward(const sn_call *call) {
  const factors f = factors_of(call);
  for (uint64_t m = 0; m < (uint64_t)f.out.n * f.out.c; m++)
    for (uint64_t i = 0; i < f.out.h; i++)
      for (uint64_t j = 0; j < f.out.w; j++) {
        const float *a = call->x[0] + m * sn__plane(f.first), *b = call->x[1] + m * sn__plane(f.second);
        double sum = 0;
        for (uint64_t k = 0; k < f.inner; k++)
          sum += (double)a[element(f.first, f.turn_first, i, k)] * b[element(f.second, f.turn_second, k, j)];
        call->y[0][m * sn__plane(f.out) + i * f.out.w + j] = (float)sum;
      }
}

static void first_gradient(const sn_call *call, const factors *f, uint64_t m) {
  const float *b = call->x[1] + m * sn__plane(f->second), *dy = call->dy[0] + m * sn__plane(f->out);
  for (uint64_t i = 0; i < f->out.h; i++)
    for (uint64_t k = 0; k < f->inner; k++) {
      double sum = 0;
      for (uint64_t j = 0; j < f->out.w; j++)
        sum += (double)dy[i * f->out.w + j] * b[element(f->second, f->turn_second, k, j)];
      call->dx[0][m * sn__plane(f->first) + element(f->first, f->turn_first, i, k)] = (float)sum;
    }
}

static void second_gradient(const sn_call *call, const factors *f, uint64_t m) {
  const float *a = call->x[0] + m * sn__plane(f->first), *dy = call->dy[0] + m * sn__plane(f->out);
  for (uint64_t k = 0; k < f->inner; k++)
    for (uint64_t j = 0; j < f->out.w; j++) {
      double sum = 0;
      for (uint64_t i = 0; i < f->out.h; i++)
        sum += (double)a[element(f->first, f->turn_first, i, k)] * dy[i * f->out.w + j];
      call->dx[1][m * sn__plane(f->second) + element(f->second, f->turn_second, k, j)] = (float)sum;
    }
}

void sn__reference_matmul_backward(const sn_call *call) {
  const factors f = factors_of(call);
  for (uint64_t m = 0; m < (uint64_t)f.out.n * f.out.c; m++) {
    if (call->dx[0]) first_gradient(call, &f, m);
    if (call->dx[1]) second_gradient(call, &f, m);
  }
}

static void row_forward(const float *x, float *y, const sn__rows *rows) {
  double top = x[0], sum = 0;
  for (uint64_t i = 1; i < rows->length; i++) top = fmax(top, x[i * rows->apart]);
  for (uint64_t i = 0; i < rows->length; i++) sum += exp(x[i * rows->apart] - top);
  for (uint64_t i = 0; i < rows->length; i++) y[i * rows->apart] = (float)(exp(x[i * rows->apart] - top) / sum);
}

/* dx may lie where dy does. */
static void row_backward(const float *y, const float *dy, float *dx, const sn__rows *rows) {
  double sum = 0;
  for (uint64_t i = 0; i < rows->length; i++) sum += (double)dy[i * rows->apart] * y[i * rows->apart];
  for (uint64_t i = 0; i < rows->length; i++)
    dx[i * rows->apart] = (float)(y[i * rows->apart] * (dy[i * rows->apart] - sum));
}

void sn__reference_probabilities_forward(const sn_call *call) {
  const sn__rows rows = sn__rows_of(sn__call_layer(call));
  for (uint64_t g = 0; g < rows.groups; g++)
    for (uint64_t r = 0; r < rows.apart; r++) {
      const uint64_t at = g * rows.length * rows.apart + r;
      row_forward(call->x[0] + at, call->y[0] + at, &rows);
    }
}

void sn__reference_probabilities_backward(const sn_call *call) {
  const sn__rows rows = sn__rows_of(sn__call_layer(call));
  for (uint64_t g = 0; g < rows.groups; g++)
    for (uint64_t r = 0; r < rows.apart; r++) {
      const uint64_t at = g * rows.length * rows.apart + r;
      row_backward(call->y[0] + at, call->dy[0] + at, call->dx[0] + at, &rows);
    }
}
