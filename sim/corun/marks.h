/* Marks: a set of numbers below n, and the next one in it. Bits, and above each word of them a bit that says whether
 * there is any: O(log n), to the base of 64.
 */
#ifndef SN_SIM_CORUN_MARKS_H
#define SN_SIM_CORUN_MARKS_H

#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>

enum { SN__MARK_LEVELS = 6 }; /* 64^6 is more than any 32-bit number */

typedef struct sn__marks {
  uint32_t n_levels;
  uint32_t n_words[SN__MARK_LEVELS];
  uint64_t *words[SN__MARK_LEVELS]; /* [0]: of the numbers themselves */
} sn__marks;

/* An empty set for numbers below n. False: out of memory. */
bool sn__marks_new(sn__marks *set, uint32_t n, sn_arena *arena);
void sn__marks_clear(sn__marks *set);

void sn__marks_put(sn__marks *set, uint32_t number);
void sn__marks_remove(sn__marks *set, uint32_t number);

/* The lowest in the set, not below `from`; SN_NONE: there is none. */
uint32_t sn__marks_next(const sn__marks *set, uint32_t from);

#endif
