/* Bins (internal to sim/memory/caching.c): free blocks in the order of (bytes, address).
 *
 *   bins   [ ] [512 B: 0x200 <-> 0x900] [ ] [1 KiB: 0x400] .. [1 MiB .. 1.06 MiB: ..] ..
 *
 * A bin holds sizes that differ by less than 1/8 (up to 4 KiB, one size), as a treap, the priorities of which are
 * hashes of the blocks' numbers. Which bins are empty is in one bit each. All of it is O(log blocks of the bin)
 * expected: most bins are of few blocks, but deep networks free tens of thousands of one size.
 *
 * Mostly a block is alone in its bin, or there is none: that is done here, in place, and all else in bins.c.
 */
#ifndef SN_SIM_MEMORY_BINS_H
#define SN_SIM_MEMORY_BINS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Some whole 512 B, below 2^60. */
typedef struct sn__block {
  uint64_t address, bytes;
  uint32_t before, after;   /* neighbours in the segment; 0: none */
  uint32_t smaller, larger; /* subtrees in its bin, where it is in one; 0: none */
  uint16_t bin;             /* in which it is, where it is in one */
  uint8_t pool, state;
} sn__block;

enum { SN__BINS_A_DOUBLING = 8, SN__BINS_WORDS = 7, SN__BINS = 64 * SN__BINS_WORDS };

/* Of blocks in an array from 1 on, which is not kept. Zeroed there is none; a copy goes with a copy of the blocks. */
typedef struct sn__bins {
  uint64_t used[SN__BINS_WORDS]; /* bit per bin */
  uint32_t root[SN__BINS];       /* numbers; 0: the bin is empty */
} sn__bins;

/* Into a bin, and out of one, with others in it. */
void sn__bins_join(sn__bins *bins, sn__block *blocks, uint32_t number);
void sn__bins_leave(sn__bins *bins, sn__block *blocks, uint32_t number);

/* The numbers, or 0, of the first in order; of the one behind `number`; and of the last. */
uint32_t sn__bins_first(const sn__bins *bins, const sn__block *blocks);
uint32_t sn__bins_next(const sn__bins *bins, const sn__block *blocks, uint32_t number);
uint32_t sn__bins_last(const sn__bins *bins, const sn__block *blocks);

/* A double's exponent and the first three bits behind its point: 8 bins from one power of two to the next, the first of
 * which begins with 512 B. */
static inline uint32_t sn__bins_of(uint64_t bytes) {
  enum { POINT = 52, BEHIND = 3, BIAS = 1023 + 9 };
  double size = (double)(int64_t)bytes;
  uint64_t bits;
  memcpy(&bits, &size, sizeof bits);
  return (uint32_t)(bits >> (POINT - BEHIND)) - BIAS * SN__BINS_A_DOUBLING;
}

static inline bool sn__bins_is_alone(const sn__bins *bins, const sn__block *block, uint32_t number) {
  return bins->root[block->bin] == number && !block->smaller && !block->larger;
}

static inline void sn__bins_empty(sn__bins *bins, uint32_t bin) {
  bins->root[bin] = 0;
  bins->used[bin / 64] &= ~(UINT64_C(1) << bin % 64);
}

/* Into the bin of its bytes. */
static inline void sn__bins_put_in(sn__bins *bins, sn__block *blocks, uint32_t number, uint32_t bin) {
  sn__block *block = &blocks[number];
  block->bin = (uint16_t)bin;
  if (bins->root[bin]) {
    sn__bins_join(bins, blocks, number);
    return;
  }
  block->smaller = block->larger = 0;
  bins->root[bin] = number;
  bins->used[bin / 64] |= UINT64_C(1) << bin % 64;
}

static inline void sn__bins_put(sn__bins *bins, sn__block *blocks, uint32_t number) {
  sn__bins_put_in(bins, blocks, number, sn__bins_of(blocks[number].bytes));
}

/* Address and bytes of a block that is put are changed by sn__bins_change() alone. */
static inline void sn__bins_pull(sn__bins *bins, sn__block *blocks, uint32_t number) {
  if (sn__bins_is_alone(bins, &blocks[number], number))
    sn__bins_empty(bins, blocks[number].bin);
  else
    sn__bins_leave(bins, blocks, number);
}

/* Of a block that is put. */
static inline void sn__bins_change(sn__bins *bins, sn__block *blocks, uint32_t number, uint64_t address,
                                   uint64_t bytes) {
  sn__block *block = &blocks[number];
  uint32_t bin = sn__bins_of(bytes);
  bool alone = sn__bins_is_alone(bins, block, number);
  if (!alone) sn__bins_leave(bins, blocks, number);
  block->address = address;
  block->bytes = bytes;
  if (alone && bin == block->bin) return;
  if (alone) sn__bins_empty(bins, block->bin);
  sn__bins_put_in(bins, blocks, number, bin);
}

/* The first block of the bins from `bin` on; 0: none. */
static inline uint32_t sn__bins_first_from(const sn__bins *bins, const sn__block *blocks, uint32_t bin) {
  uint64_t used = bins->used[bin / 64] & ~UINT64_C(0) << bin % 64;
  uint32_t word = bin / 64;
  while (!used && ++word < SN__BINS_WORDS) used = bins->used[word];
  if (!used) return 0;
  uint32_t number = bins->root[64 * word + (uint32_t)__builtin_ctzll(used)];
  while (blocks[number].smaller) number = blocks[number].smaller;
  return number;
}

/* The first with at least `bytes`, of which `bin` is the bin; 0: none. */
static inline uint32_t sn__bins_find_in(const sn__bins *bins, const sn__block *blocks, uint64_t bytes, uint32_t bin) {
  uint32_t found = 0;
  for (uint32_t n = bins->root[bin]; n;) {
    bool enough = blocks[n].bytes >= bytes;
    if (enough) found = n;
    n = enough ? blocks[n].smaller : blocks[n].larger;
  }
  return found ? found : sn__bins_first_from(bins, blocks, bin + 1);
}

static inline uint32_t sn__bins_find(const sn__bins *bins, const sn__block *blocks, uint64_t bytes) {
  return sn__bins_find_in(bins, blocks, bytes, sn__bins_of(bytes));
}

#endif
