/* A set of numbers; see the header. */
#include "sim/corun/number_set.h"

#include "models/net/net.h"

#include <string.h>

enum { BITS = 64, SHIFT = 6 };

bool sn__number_set_new(sn__number_set *set, uint32_t n, sn_arena *arena) {
  *set = (sn__number_set){0};
  do {
    n = n / BITS + 1;
    uint32_t level = set->n_levels++;
    set->n_words[level] = n;
    set->words[level] = sn_arena_alloc(arena, n, sizeof *set->words[level]);
    if (!set->words[level]) return false;
  } while (n > 1);
  sn__number_set_clear(set);
  return true;
}

void sn__number_set_clear(sn__number_set *set) {
  for (uint32_t l = 0; l < set->n_levels; l++) memset(set->words[l], 0, set->n_words[l] * sizeof *set->words[l]);
}

void sn__number_set_put(sn__number_set *set, uint32_t number) {
  for (uint32_t l = 0; l < set->n_levels; l++, number >>= SHIFT)
    set->words[l][number >> SHIFT] |= UINT64_C(1) << number % BITS;
}

void sn__number_set_remove(sn__number_set *set, uint32_t number) {
  for (uint32_t l = 0; l < set->n_levels; l++, number >>= SHIFT) {
    uint64_t *word = &set->words[l][number >> SHIFT];
    *word &= ~(UINT64_C(1) << number % BITS);
    if (*word != 0) return;
  }
}

/* The lowest bit, by halves. */
static uint32_t lowest(uint64_t word) {
  uint32_t bit = 0;
  for (uint32_t half = BITS / 2; half > 0; half /= 2)
    if ((word & ((UINT64_C(1) << half) - 1)) == 0) {
      word >>= half;
      bit += half;
    }
  return bit;
}

/* Up until there is one to the right, then down to the lowest below it. */
uint32_t sn__number_set_next(const sn__number_set *set, uint32_t from) {
  for (uint32_t l = 0; l < set->n_levels && from >> SHIFT < set->n_words[l]; l++, from = (from >> SHIFT) + 1) {
    uint64_t right = set->words[l][from >> SHIFT] >> from % BITS;
    if (right == 0) continue;
    from += lowest(right);
    while (l-- > 0) from = from * BITS + lowest(set->words[l][from]);
    return from;
  }
  return SN_NONE;
}
