/* Derivatives by differences, for tests of gradients: along one element, that of a function f by the five-point formula
 *
 *   f' = (8 (f(x + h) - f(x - h)) - (f(x + 2h) - f(x - 2h))) / 12h
 *
 * Its error has two parts. Cut off: h^4 f^(5) / 30, with h = 1/64 2e-9 f^(5). Rounding: tensors between layers are
 * float32, so f jumps by about 2^-24 of its terms; divided by h that is 4e-6 of a term, more where many terms or layers
 * take part. And the kernels that it is taken of: the reference's. */
#ifndef SN_TESTS_DIFFERENCE_H
#define SN_TESTS_DIFFERENCE_H

#include "exec/kernel/reference.h"
#include "tests/support/net_runner.h"

static inline sn_status run_reference_kernel(void *self, const sn_call *call, sn_err *err) {
  (void)self;
  return sn_reference_run(call, err);
}
static const net_kernels reference_kernels = {.run = run_reference_kernel};

typedef double (*objective)(void *self);

static inline double derivative(float *at, double h, objective f, void *self) {
  float x = *at;
  double values[5] = {0};
  for (int i = -2; i <= 2; i++) {
    *at = (float)(x + i * h);
    if (i != 0) values[i + 2] = f(self);
  }
  *at = x;
  return (8 * (values[3] - values[1]) - (values[4] - values[0])) / (12 * h);
}

static inline double largest_of(const float *data, uint64_t count) {
  double top = 0;
  for (uint64_t i = 0; i < count; i++) top = fmax(top, fabs((double)data[i]));
  return top;
}

#endif
