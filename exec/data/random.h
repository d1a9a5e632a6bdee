/* Random numbers by counter: number `index` of a stream is a function of the stream's key and the index alone, so that
 * each can be drawn by itself and in any order (splitmix64; Steele, Lea, Flood: Fast splittable pseudorandom number
 * generators, OOPSLA 2014). Internal to exec/. */
#ifndef SN_EXEC_DATA_RANDOM_H
#define SN_EXEC_DATA_RANDOM_H

#include <stdint.h>

#define SN__GOLDEN UINT64_C(0x9e3779b97f4a7c15)

static inline uint64_t sn__mix(uint64_t z) {
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

/* A key for a stream of numbers, and number `index` of it. */
static inline uint64_t sn__random_key(uint64_t seed, uint64_t stream) {
  return sn__mix(sn__mix(seed + SN__GOLDEN) + (stream + 1) * SN__GOLDEN);
}

static inline uint64_t sn__random(uint64_t key, uint64_t index) {
  return sn__mix(key + (index + 1) * SN__GOLDEN);
}

/* Mean 0, variance 1, nearly normal: the sum of four 16-bit uniform numbers (a fraction of the cost of an exact one).
 */
static inline float sn__random_normal(uint64_t key, uint64_t index) {
  uint64_t bits = sn__random(key, index);
  int64_t sum = (int64_t)((bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48));
  return (float)(sum - 131070) * (1.7320508f / 65536);
}

/* What stands at place `index` of 0 .. count - 1 in the random order of `key`; index < count <= 2^62. A Feistel network
 * (Luby, Rackoff: How to construct pseudorandom permutations from pseudorandom functions, 1988) permutes the numbers of
 * 2k bits, k as small as they reach; one that is too large goes through it again until it is not. O(1) memory, fewer
 * than four passes on average. */
static inline uint64_t sn__random_place(uint64_t key, uint64_t count, uint64_t index) {
  unsigned half = 1;
  while ((UINT64_C(1) << 2 * half) < count) half++;
  uint64_t mask = (UINT64_C(1) << half) - 1;
  do {
    uint64_t left = index >> half, right = index & mask;
    for (uint64_t round = 0; round < 6; round++) {
      uint64_t mixed = left ^ (sn__random(key, round << half | right) & mask);
      left = right;
      right = mixed;
    }
    index = left << half | right;
  } while (index >= count);
  return index;
}

#endif
