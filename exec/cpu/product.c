/* CPU kernels of MUL and SCALE, in loops of ours: products of elements, and sums of them for the factor's gradient.
 * Blocked values stay so (exec/cpu/cpu.h): a factor that has all channels lies as what it multiplies, and one of a
 * single channel is met in plain values only.
 *
 * Threads share planes: one of a channel, blocked those of a block. Each element, and each sum, is one thread's, so
 * that results do not depend on the threads; sums are in float64. */
#include "exec/cpu/cpu.h"

enum { WIDEST = 16 };

/* What is multiplied, plane by plane, and the factor: by how much its offset grows a row and a column further on; of a
 * factor of one channel all planes of an image have the same. */
typedef struct product {
  uint64_t planes, rows, columns, lanes;
  uint64_t factor_plane, row_step, column_step;
  uint64_t planes_a_factor;
} product;

static product product_of(const sn_call *call, uint32_t block) {
  const sn_shape s = sn__call_layer(call)->out, f = sn__call_input(call, 1);
  return (product){.planes = (uint64_t)s.n * s.c / block,
                   .rows = s.h,
                   .columns = s.w,
                   .lanes = block,
                   .factor_plane = sn__plane(f) * block,
                   .row_step = f.h == 1 ? 0 : (uint64_t)f.w * block,
                   .column_step = f.w == 1 ? 0 : block,
                   .planes_a_factor = f.c == s.c ? 1 : s.c};
}

static uint64_t plane_size(const product *p) {
  return p->rows * p->columns * p->lanes;
}

/* A row of `to`, which may be `from`, with the factor's row. */
static void multiply_row(const product *p, const float *from, const float *factor, float *to) {
  if (p->column_step > 0) {
#pragma omp simd
    for (uint64_t i = 0; i < p->columns * p->lanes; i++) to[i] = from[i] * factor[i];
    return;
  }
  for (uint64_t i = 0; i < p->columns; i++) {
#pragma omp simd
    for (uint64_t l = 0; l < p->lanes; l++) to[i * p->lanes + l] = from[i * p->lanes + l] * factor[l];
  }
}

static void multiply(const product *p, const float *from, const float *factor, float *to) {
  const uint64_t row = p->columns * p->lanes;
#pragma omp parallel for schedule(static) if (p->planes * plane_size(p) >= SN__WORTH_THREADS)
  for (uint64_t g = 0; g < p->planes; g++)
    for (uint64_t r = 0; r < p->rows; r++) {
      const uint64_t at = g * plane_size(p) + r * row;
      multiply_row(p, from + at, factor + g / p->planes_a_factor * p->factor_plane + r * p->row_step, to + at);
    }
}

/* Adds what column `column`, or all where the factor has one, of row r of plane g are, times dy. */
static void add_row(const product *p, const sn_call *call, uint64_t g, uint64_t r, uint64_t column, double *sums) {
  const uint64_t at = g * plane_size(p) + r * p->columns * p->lanes, first = p->column_step > 0 ? column : 0,
                 last = p->column_step > 0 ? column + 1 : p->columns;
  const float *x = call->x[0] + at, *dy = call->dy[0] + at;
  for (uint64_t i = first * p->lanes; i < last * p->lanes; i += p->lanes)
    for (uint64_t l = 0; l < p->lanes; l++) sums[l] += (double)dy[i + l] * x[i + l];
}

/* The gradient of all lanes of one row and column of a factor's plane. */
static void factor_gradient(const product *p, const sn_call *call, uint64_t plane, uint64_t row, uint64_t column,
                            float *to) {
  const uint64_t first = p->row_step > 0 ? row : 0, last = p->row_step > 0 ? row + 1 : p->rows;
  double sums[WIDEST] = {0};
  for (uint64_t g = plane * p->planes_a_factor; g < (plane + 1) * p->planes_a_factor; g++)
    for (uint64_t r = first; r < last; r++) add_row(p, call, g, r, column, sums);
  for (uint64_t l = 0; l < p->lanes; l++) to[l] = (float)sums[l];
}

static void factor_gradients(const product *p, const sn_call *call) {
  const uint64_t planes = p->planes / p->planes_a_factor, columns = p->column_step > 0 ? p->columns : 1,
                 rows = p->row_step > 0 ? p->rows : 1;
#pragma omp parallel for schedule(static) if (p->planes * plane_size(p) >= SN__WORTH_THREADS)
  for (uint64_t plane = 0; plane < planes; plane++)
    for (uint64_t i = 0; i < rows * columns; i++)
      factor_gradient(p, call, plane, i / columns, i % columns, call->dx[1] + plane * p->factor_plane + i * p->lanes);
}

void sn__cpu_mul_forward(const sn_call *call, uint32_t block) {
  const product p = product_of(call, block);
  multiply(&p, call->x[0], call->x[1], call->y[0]);
}

/* The factor's gradient comes first: dx of what is multiplied may lie where dy does. */
void sn__cpu_mul_backward(const sn_call *call, uint32_t block) {
  const product p = product_of(call, block);
  if (call->dx[1]) factor_gradients(&p, call);
  if (call->dx[0]) multiply(&p, call->dy[0], call->x[1], call->dx[0]);
}

/* Plane g of an image's block of channels takes the parameters of these. */
static void scale(const sn_call *call, uint32_t block, const float *from, float *to) {
  const sn_shape s = sn__call_layer(call)->out;
  const uint64_t planes = (uint64_t)s.n * s.c / block, size = sn__plane(s) * block;
  const product row = {.columns = sn__plane(s), .lanes = block};
#pragma omp parallel for schedule(static) if (sn__count(s) >= SN__WORTH_THREADS)
  for (uint64_t g = 0; g < planes; g++)
    multiply_row(&row, from + g * size, call->parameters + g * block % s.c, to + g * size);
}

void sn__cpu_scale_forward(const sn_call *call, uint32_t block) {
  scale(call, block, call->x[0], call->y[0]);
}

/* One thread sums all of a channel, or of a block of them. */
static void scale_gradients(const sn_call *call, uint32_t block) {
  const sn_shape s = sn__call_layer(call)->out;
  const uint64_t size = sn__plane(s) * block;
#pragma omp parallel for schedule(static) if (sn__count(s) >= SN__WORTH_THREADS)
  for (uint32_t c = 0; c < s.c; c += block) {
    double sums[WIDEST] = {0};
    for (uint64_t n = 0; n < s.n; n++) {
      const float *x = call->x[0] + n * sn__image(s) + c * sn__plane(s),
                  *dy = call->dy[0] + n * sn__image(s) + c * sn__plane(s);
      for (uint64_t i = 0; i < size; i += block)
        for (uint32_t l = 0; l < block; l++) sums[l] += (double)dy[i + l] * x[i + l];
    }
    for (uint32_t l = 0; l < block; l++) call->gradients[c + l] = (float)sums[l];
  }
}

void sn__cpu_scale_backward(const sn_call *call, uint32_t block) {
  if (call->gradients) scale_gradients(call, block);
  if (call->dx[0]) scale(call, block, call->dy[0], call->dx[0]);
}
