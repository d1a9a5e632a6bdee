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

static uint32_t priority(uint32_t number) {
  uint32_t x = number * 2654435761u;
  x ^= x >> 16;
  return x * 2246822519u;
}

static uint32_t first_below(const sn__block *blocks, uint32_t number) {
  while (blocks[number].smaller) number = blocks[number].smaller;
  return number;
}

/* The first block of the bins from `bin` on. */
static uint32_t first_from(const sn__bins *bins, const sn__block *blocks, uint32_t bin) {
  uint64_t above = ~UINT64_C(0) << bin % 64;
  for (uint32_t word = bin / 64; word < SN__BINS_WORDS; word++) {
    uint64_t used = bins->used[word] & above;
    if (used) return first_below(blocks, bins->root[64 * word + (uint32_t)__builtin_ctzll(used)]);
    above = ~UINT64_C(0);
  }
  return 0;
}

/* Down from the root to where its priority belongs, and cuts what is below there in two around it. */
void sn__bins_put(sn__bins *bins, sn__block *blocks, uint32_t number) {
  sn__block *block = &blocks[number];
  uint32_t bin = bin_of(block->bytes), own = block->priority = priority(number), *link = &bins->root[bin];
  bins->used[bin / 64] |= UINT64_C(1) << bin % 64;
  while (*link && blocks[*link].priority >= own)
    link = is_before(block, &blocks[*link]) ? &blocks[*link].smaller : &blocks[*link].larger;
  uint32_t below = *link, *smaller = &block->smaller, *larger = &block->larger;
  *link = number;
  while (below) {
    sn__block *other = &blocks[below];
    if (is_before(other, block)) {
      *smaller = below;
      below = *(smaller = &other->larger);
    } else {
      *larger = below;
      below = *(larger = &other->smaller);
    }
  }
  *smaller = *larger = 0;
}

/* Its two subtrees become one in its place. */
void sn__bins_pull(sn__bins *bins, sn__block *blocks, uint32_t number) {
  const sn__block *block = &blocks[number];
  uint32_t bin = bin_of(block->bytes), *link = &bins->root[bin], smaller = block->smaller, larger = block->larger;
  while (*link != number) link = is_before(block, &blocks[*link]) ? &blocks[*link].smaller : &blocks[*link].larger;
  while (smaller && larger) {
    if (blocks[smaller].priority >= blocks[larger].priority) {
      *link = smaller;
      smaller = *(link = &blocks[smaller].larger);
    } else {
      *link = larger;
      larger = *(link = &blocks[larger].smaller);
    }
  }
  *link = smaller ? smaller : larger;
  if (!bins->root[bin]) bins->used[bin / 64] &= ~(UINT64_C(1) << bin % 64);
}

uint32_t sn__bins_first(const sn__bins *bins, const sn__block *blocks) {
  return first_from(bins, blocks, 0);
}

uint32_t sn__bins_find(const sn__bins *bins, const sn__block *blocks, uint64_t bytes) {
  uint32_t bin = bin_of(bytes), found = 0;
  for (uint32_t n = bins->root[bin]; n;) {
    bool enough = blocks[n].bytes >= bytes;
    if (enough) found = n;
    n = enough ? blocks[n].smaller : blocks[n].larger;
  }
  return found ? found : first_from(bins, blocks, bin + 1);
}

uint32_t sn__bins_next(const sn__bins *bins, const sn__block *blocks, uint32_t number) {
  uint32_t bin = bin_of(blocks[number].bytes), next = 0, n = blocks[number].larger;
  if (n) return first_below(blocks, n);
  for (n = bins->root[bin]; n != number;) {
    bool behind = is_before(&blocks[number], &blocks[n]);
    if (behind) next = n;
    n = behind ? blocks[n].smaller : blocks[n].larger;
  }
  return next ? next : first_from(bins, blocks, bin + 1);
}

uint32_t sn__bins_last(const sn__bins *bins, const sn__block *blocks) {
  uint32_t bin = SN__BINS, number = 0;
  while (bin > 0 && !number) number = bins->root[--bin];
  while (number && blocks[number].larger) number = blocks[number].larger;
  return number;
}
