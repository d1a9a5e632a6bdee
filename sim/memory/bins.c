/* Bins; see the header. */
#include "sim/memory/bins.h"

#include <stdbool.h>
#include <string.h>

/* A double's exponent and the first three bits behind its point: 8 bins from one power of two to the next, the first of
 * which begins with 512 B. */
static uint32_t bin_of(uint64_t bytes) {
  enum { POINT = 52, BEHIND = 3, BIAS = 1023 + 9 };
  double size = (double)(int64_t)bytes;
  uint64_t bits;
  memcpy(&bits, &size, sizeof bits);
  return (uint32_t)(bits >> (POINT - BEHIND)) - BIAS * SN__BINS_A_DOUBLING;
}

static bool is_before(const sn__block *a, const sn__block *b) {
  return a->bytes != b->bytes ? a->bytes < b->bytes : a->address < b->address;
}

/* The first block of the bins from `bin` on. */
static uint32_t first_from(const sn__bins *bins, uint32_t bin) {
  uint64_t above = ~UINT64_C(0) << bin % 64;
  for (uint32_t word = bin / 64; word < SN__BINS_WORDS; word++) {
    uint64_t used = bins->used[word] & above;
    if (used) return bins->first[64 * word + (uint32_t)__builtin_ctzll(used)];
    above = ~UINT64_C(0);
  }
  return 0;
}

static uint32_t take_near(sn__bins *bins, uint32_t bin, uint32_t number) {
  uint32_t near = bins->near[bin];
  bins->near[bin] = number;
  return near;
}

/* The one of a ring that the block belongs in front of, from where the last one was put or pulled on; the first where
 * it belongs in front of all or behind all. */
static uint32_t find_behind(const sn__block *blocks, const sn__block *block, uint32_t first, uint32_t near) {
  if (is_before(&blocks[near], block)) {
    do near = blocks[near].larger;
    while (near != first && is_before(&blocks[near], block));
  } else {
    while (near != first && is_before(block, &blocks[blocks[near].smaller])) near = blocks[near].smaller;
  }
  return near;
}

void sn__bins_put(sn__bins *bins, sn__block *blocks, uint32_t number) {
  sn__block *block = &blocks[number];
  uint32_t bin = bin_of(block->bytes), first = bins->first[bin], near = take_near(bins, bin, number);
  if (!first) {
    block->smaller = block->larger = bins->first[bin] = number;
    bins->used[bin / 64] |= UINT64_C(1) << bin % 64;
    return;
  }
  uint32_t behind = find_behind(blocks, block, first, near);
  if (behind == first && is_before(block, &blocks[first])) bins->first[bin] = number;
  block->larger = behind;
  block->smaller = blocks[behind].smaller;
  blocks[block->smaller].larger = blocks[behind].smaller = number;
}

void sn__bins_pull(sn__bins *bins, sn__block *blocks, uint32_t number) {
  const sn__block *block = &blocks[number];
  uint32_t bin = bin_of(block->bytes);
  blocks[block->smaller].larger = block->larger;
  blocks[block->larger].smaller = block->smaller;
  bins->near[bin] = block->larger;
  if (bins->first[bin] != number) return;
  bins->first[bin] = block->larger == number ? 0 : block->larger;
  if (!bins->first[bin]) bins->used[bin / 64] &= ~(UINT64_C(1) << bin % 64);
}

uint32_t sn__bins_first(const sn__bins *bins) {
  return first_from(bins, 0);
}

uint32_t sn__bins_find(const sn__bins *bins, const sn__block *blocks, uint64_t bytes) {
  uint32_t bin = bin_of(bytes), number = bins->first[bin];
  if (!number || blocks[blocks[number].smaller].bytes < bytes) return first_from(bins, bin + 1);
  while (blocks[number].bytes < bytes) number = blocks[number].larger;
  return number;
}

uint32_t sn__bins_next(const sn__bins *bins, const sn__block *blocks, uint32_t number) {
  uint32_t bin = bin_of(blocks[number].bytes), next = blocks[number].larger;
  return next != bins->first[bin] ? next : first_from(bins, bin + 1);
}

uint32_t sn__bins_last(const sn__bins *bins, const sn__block *blocks) {
  for (uint32_t bin = SN__BINS; bin-- > 0;)
    if (bins->first[bin]) return blocks[bins->first[bin]].smaller;
  return 0;
}
