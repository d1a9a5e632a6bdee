/* Arithmetic on sizes that says when it overflows: true means the result is good. */
#ifndef SN_BASE_CHECKED_H
#define SN_BASE_CHECKED_H

#include <stdbool.h>
#include <stdint.h>

static inline bool sn_mul(uint64_t a, uint64_t b, uint64_t *product) {
  return !__builtin_mul_overflow(a, b, product);
}

static inline bool sn_add(uint64_t a, uint64_t b, uint64_t *sum) {
  return !__builtin_add_overflow(a, b, sum);
}

static inline uint64_t sn_max(uint64_t a, uint64_t b) {
  return a > b ? a : b;
}

static inline uint64_t sn_min(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

/* n / d rounded up; d > 0 */
static inline uint64_t sn_ceil_div(uint64_t n, uint64_t d) {
  return n / d + (n % d != 0);
}

#endif
