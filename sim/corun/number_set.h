/* Number set: a set of numbers below n, and the next one in it. Bits, and above each word of them a bit that says whether
 * there is any: O(log n), to the base of 64.
 */
#ifndef SN_SIM_CORUN_NUMBER_SET_H
#define SN_SIM_CORUN_NUMBER_SET_H

#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>

enum { SN__NUMBER_SET_LEVELS = 6 }; /* 64^6 is more than any 32-bit number */

typedef struct sn__number_set {
  uint32_t n_levels;
  uint32_t n_words[SN__NUMBER_SET_LEVELS];
  uint64_t *words[SN__NUMBER_SET_LEVELS]; /* [0]: of the numbers themselves */
} sn__number_set;

/* An empty set for numbers below n. False: out of memory. */
bool sn__number_set_new(sn__number_set *set, uint32_t n, sn_arena *arena);
void sn__number_set_clear(sn__number_set *set);

void sn__number_set_put(sn__number_set *set, uint32_t number);
void sn__number_set_remove(sn__number_set *set, uint32_t number);

/* The lowest in the set, not below `from`; SN_NONE: there is none. */
uint32_t sn__number_set_next(const sn__number_set *set, uint32_t from);

#endif
