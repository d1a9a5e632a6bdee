/* Dice for the property tests: splitmix64 (Steele, Lea, Flood 2014). The same seed gives the same throws everywhere, so
 * a failure is repeated by its seed. One throw per expression: C does not say which of two comes first. */
#ifndef SN_TESTS_PRNG_H
#define SN_TESTS_PRNG_H

#include <stdbool.h>
#include <stdint.h>

static inline uint64_t prng_next(uint64_t *state) {
  uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

/* 0 .. n-1; n > 0, small against 2^64, so the bias of the remainder does not matter */
static inline uint32_t prng_below(uint64_t *state, uint32_t n) {
  return (uint32_t)(prng_next(state) % n);
}

static inline uint32_t prng_from(uint64_t *state, uint32_t low, uint32_t high) {
  return low + prng_below(state, high - low + 1);
}

/* True in `percent` of 100 throws. */
static inline bool prng_chance(uint64_t *state, uint32_t percent) {
  return prng_below(state, 100) < percent;
}

#endif
