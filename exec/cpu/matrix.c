/* CPU kernels of MATMUL and PROBABILITIES, in loops of ours; reference_matrix.c has the formulas. Values are plain.
 *
 * Threads share rows of products, and tiles of the rows that are made probabilities, so every number is one thread's.
 */
#include "exec/cpu/cpu.h"

#include "base/checked.h"

#include <math.h>
#include <string.h>

/* The same matrix of every channel: how far it is from one row to the next, and from one column. */
typedef struct matrix {
  float *first;
  uint64_t rows, columns, row, column, size;
} matrix;

static matrix matrix_of(float *tensor, sn_shape s, bool turned) {
  return turned ? (matrix){tensor, s.w, s.h, 1, s.w, sn__plane(s)} : (matrix){tensor, s.h, s.w, s.w, 1, sn__plane(s)};
}

static matrix turned(matrix m) {
  return (matrix){m.first, m.columns, m.rows, m.column, m.row, m.size};
}

/* Row i of c, whose numbers lie side by side. */
static void make_row(const matrix *a, const matrix *b, const matrix *c, uint64_t m, uint64_t i) {
  const float *left = a->first + m * a->size + i * a->row, *right = b->first + m * b->size;
  float *to = c->first + m * c->size + i * c->row;
  if (b->column == 1) {
    memset(to, 0, c->columns * sizeof *to);
    for (uint64_t k = 0; k < a->columns; k++) {
      const float factor = left[k * a->column], *of = right + k * b->row;
#pragma omp simd
      for (uint64_t j = 0; j < c->columns; j++) to[j] += factor * of[j];
    }
    return;
  }
  for (uint64_t j = 0; j < c->columns; j++) {
    const float *of = right + j * b->column;
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (uint64_t k = 0; k < a->columns; k++) sum += left[k * a->column] * of[k * b->row];
    to[j] = sum;
  }
}

/* c = a b, of so many channels. A turned c is the product of b and a, turned. */
static void multiply(matrix a, matrix b, matrix c, uint64_t channels) {
  if (c.column != 1) {
    const matrix first = turned(b);
    b = turned(a);
    a = first;
    c = turned(c);
  }
  const uint64_t rows = channels * c.rows;
#pragma omp parallel for schedule(static) if (rows * c.columns * a.columns >= SN__WORTH_THREADS)
  for (uint64_t r = 0; r < rows; r++) make_row(&a, &b, &c, r / c.rows, r % c.rows);
}

static matrix factor_of(const sn_call *call, float *const *tensors, uint32_t i) {
  const sn_attr *a = sn__call_layer(call)->attr;
  return matrix_of(tensors[i], sn__call_input(call, i), i == 0 ? a->turn_first : a->turn_second);
}

void sn__cpu_matmul_forward(const sn_call *call, uint32_t block) {
  (void)block;
  const sn_shape s = sn__call_layer(call)->out;
  multiply(factor_of(call, call->x, 0), factor_of(call, call->x, 1), matrix_of(call->y[0], s, false),
           (uint64_t)s.n * s.c);
}

void sn__cpu_matmul_backward(const sn_call *call, uint32_t block) {
  (void)block;
  const sn_shape s = sn__call_layer(call)->out;
  const matrix dy = matrix_of(call->dy[0], s, false);
  const uint64_t channels = (uint64_t)s.n * s.c;
  if (call->dx[0]) multiply(dy, turned(factor_of(call, call->x, 1)), factor_of(call, call->dx, 0), channels);
  if (call->dx[1]) multiply(turned(factor_of(call, call->x, 0)), dy, factor_of(call, call->dx, 1), channels);
}

enum { TILE = 16 };

/* Some rows side by side, from element `at` on. */
typedef struct tile {
  uint64_t at, apart, length;
  uint32_t width;
} tile;

static uint64_t tiles_a_group(const sn__rows *rows) {
  return sn_ceil_div(rows->apart, TILE);
}

static tile tile_of(const sn__rows *rows, uint64_t index) {
  const uint64_t group = index / tiles_a_group(rows), first = index % tiles_a_group(rows) * TILE;
  return (tile){.at = group * rows->length * rows->apart + first,
                .apart = rows->apart,
                .length = rows->length,
                .width = (uint32_t)sn_min(TILE, rows->apart - first)};
}

static void forward_tile(const tile *t, const float *x, float *y) {
  float top[TILE], inverse[TILE];
  double sums[TILE] = {0};
  for (uint32_t l = 0; l < t->width; l++) top[l] = x[l];
  for (uint64_t i = 1; i < t->length; i++)
    for (uint32_t l = 0; l < t->width; l++) top[l] = x[i * t->apart + l] > top[l] ? x[i * t->apart + l] : top[l];
  for (uint64_t i = 0; i < t->length; i++)
    for (uint32_t l = 0; l < t->width; l++) sums[l] += y[i * t->apart + l] = expf(x[i * t->apart + l] - top[l]);
  for (uint32_t l = 0; l < t->width; l++) inverse[l] = (float)(1 / sums[l]);
  for (uint64_t i = 0; i < t->length; i++)
    for (uint32_t l = 0; l < t->width; l++) y[i * t->apart + l] *= inverse[l];
}

void sn__cpu_probabilities_forward(const sn_call *call, uint32_t block) {
  (void)block;
  const sn__rows rows = sn__rows_of(sn__call_layer(call));
  const uint64_t tiles = rows.groups * tiles_a_group(&rows);
#pragma omp parallel for schedule(static) if (sn__count(sn__call_layer(call)->out) >= SN__WORTH_THREADS)
  for (uint64_t i = 0; i < tiles; i++) {
    const tile t = tile_of(&rows, i);
    forward_tile(&t, call->x[0] + t.at, call->y[0] + t.at);
  }
}

/* dx may lie where dy does. */
static void backward_tile(const tile *t, const float *y, const float *dy, float *dx) {
  double sums[TILE] = {0};
  for (uint64_t i = 0; i < t->length; i++)
    for (uint32_t l = 0; l < t->width; l++) sums[l] += (double)dy[i * t->apart + l] * y[i * t->apart + l];
  for (uint64_t i = 0; i < t->length; i++)
    for (uint32_t l = 0; l < t->width; l++)
      dx[i * t->apart + l] = y[i * t->apart + l] * (dy[i * t->apart + l] - (float)sums[l]);
}

void sn__cpu_probabilities_backward(const sn_call *call, uint32_t block) {
  (void)block;
  const sn__rows rows = sn__rows_of(sn__call_layer(call));
  const uint64_t tiles = call->dx[0] ? rows.groups * tiles_a_group(&rows) : 0;
#pragma omp parallel for schedule(static) if (sn__count(sn__call_layer(call)->out) >= SN__WORTH_THREADS)
  for (uint64_t i = 0; i < tiles; i++) {
    const tile t = tile_of(&rows, i);
    backward_tile(&t, call->y[0] + t.at, call->dy[0] + t.at, call->dx[0] + t.at);
  }
}
