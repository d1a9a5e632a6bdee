/* Bins (internal to sim/memory/caching.c): free blocks in the order of (bytes, address).
 *
 *   bins   [ ] [512 B: 0x200 <-> 0x900] [ ] [1 KiB: 0x400] .. [1 MiB .. 1.06 MiB: ..] ..
 *
 * A bin holds sizes that differ by less than 1/8 (up to 4 KiB, one size), as a treap, the priorities of which are
 * hashes of the blocks' numbers. Which bins are empty is in one bit each. All of it is O(log blocks of the bin)
 * expected: most bins are of few blocks, but deep networks free tens of thousands of one size.
 */
#ifndef SN_SIM_MEMORY_BINS_H
#define SN_SIM_MEMORY_BINS_H

#include <stdint.h>

/* Some whole 512 B, below 2^60. */
typedef struct sn__block {
  uint64_t address, bytes;
  uint32_t before, after;   /* neighbours in the segment; 0: none */
  uint32_t smaller, larger; /* subtrees in its bin, where it is in one; 0: none */
  uint32_t priority;        /* in its bin */
  uint8_t pool, state;
} sn__block;

enum { SN__BINS_A_DOUBLING = 8, SN__BINS_WORDS = 7, SN__BINS = 64 * SN__BINS_WORDS };

/* Of blocks in an array from 1 on, which is not kept. Zeroed there is none; a copy goes with a copy of the blocks. */
typedef struct sn__bins {
  uint64_t used[SN__BINS_WORDS]; /* bit per bin */
  uint32_t root[SN__BINS];       /* numbers; 0: the bin is empty */
} sn__bins;

/* A block must not change while it is put. */
void sn__bins_put(sn__bins *bins, sn__block *blocks, uint32_t number);
void sn__bins_pull(sn__bins *bins, sn__block *blocks, uint32_t number);

/* The numbers, or 0, of the first in order; of the first with at least `bytes`; of the one behind `number`; and of the
 * last. */
uint32_t sn__bins_first(const sn__bins *bins, const sn__block *blocks);
uint32_t sn__bins_find(const sn__bins *bins, const sn__block *blocks, uint64_t bytes);
uint32_t sn__bins_next(const sn__bins *bins, const sn__block *blocks, uint32_t number);
uint32_t sn__bins_last(const sn__bins *bins, const sn__block *blocks);

#endif
