/* Bins; see the header. */
#include "sim/memory/bins.h"

static bool is_before(const sn__block *a, const sn__block *b) {
  return a->bytes != b->bytes ? a->bytes < b->bytes : a->address < b->address;
}

static uint32_t priority(uint32_t number) {
  uint32_t x = number * 2654435761u;
  x ^= x >> 16;
  return x * 2246822519u;
}

/* Down from the root to where its priority belongs, and cuts what is below there in two around it. */
void sn__bins_join(sn__bins *bins, sn__block *blocks, uint32_t number) {
  sn__block *block = &blocks[number];
  uint32_t own = priority(number), *link = &bins->root[block->bin];
  while (*link && priority(*link) >= own)
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
void sn__bins_leave(sn__bins *bins, sn__block *blocks, uint32_t number) {
  const sn__block *block = &blocks[number];
  uint32_t *link = &bins->root[block->bin], smaller = block->smaller, larger = block->larger;
  while (*link != number) link = is_before(block, &blocks[*link]) ? &blocks[*link].smaller : &blocks[*link].larger;
  while (smaller && larger) {
    if (priority(smaller) >= priority(larger)) {
      *link = smaller;
      smaller = *(link = &blocks[smaller].larger);
    } else {
      *link = larger;
      larger = *(link = &blocks[larger].smaller);
    }
  }
  *link = smaller ? smaller : larger;
}

uint32_t sn__bins_first(const sn__bins *bins, const sn__block *blocks) {
  return sn__bins_first_from(bins, blocks, 0);
}

uint32_t sn__bins_next(const sn__bins *bins, const sn__block *blocks, uint32_t number) {
  uint32_t bin = blocks[number].bin, next = 0, n = blocks[number].larger;
  for (; n; n = blocks[n].smaller) next = n;
  if (next) return next;
  for (n = bins->root[bin]; n != number;) {
    bool behind = is_before(&blocks[number], &blocks[n]);
    if (behind) next = n;
    n = behind ? blocks[n].smaller : blocks[n].larger;
  }
  return next ? next : sn__bins_first_from(bins, blocks, bin + 1);
}

uint32_t sn__bins_last(const sn__bins *bins, const sn__block *blocks) {
  uint32_t bin = SN__BINS, number = 0;
  while (bin > 0 && !number) number = bins->root[--bin];
  while (number && blocks[number].larger) number = blocks[number].larger;
  return number;
}
