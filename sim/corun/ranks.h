/* Ranks: operations that are ready, in an order of their own, each with what it adds to the bytes on the device
 * (sim/corun/budget.h), and the next one that does not add too much. A tree whose nodes know the least of all; O(log n)
 * where all numbers are small at the same places.
 */
#ifndef SN_SIM_CORUN_RANKS_H
#define SN_SIM_CORUN_RANKS_H

#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>

/* What an operation adds, or what there is room for: now, when the serially first runs, and when one of those that
 * follow it runs. */
typedef struct sn__bytes {
  int64_t now, next, soon;
} sn__bytes;

typedef struct sn__ranks {
  uint32_t n_leaves; /* a power of 2 */
  sn__bytes *least;  /* [1] is the root, [n_leaves + rank] a leaf; INT64_MAX: not there */
} sn__ranks;

/* An empty set for ranks below n, which is less than 2^31. False: out of memory. */
bool sn__ranks_new(sn__ranks *set, uint32_t n, sn_arena *arena);
void sn__ranks_clear(sn__ranks *set);

/* Adds a rank, or changes its numbers, which are below INT64_MAX. */
void sn__ranks_put(sn__ranks *set, uint32_t rank, sn__bytes adds);
void sn__ranks_remove(sn__ranks *set, uint32_t rank);

/* The lowest rank in the set, not below `from`, that adds no more than there is room for; SN_NONE: there is none. Room
 * is below INT64_MAX. */
uint32_t sn__ranks_next(const sn__ranks *set, uint32_t from, sn__bytes room);

#endif
