/* Ranks: operations that are ready, in an order of their own, each with what it needs to start: room for what it adds
 * to the bytes on the device (sim/corun/budget.h), idle cores and time. And the next one that does not need too much. A
 * tree whose nodes know the least of all; O(log n) where all numbers are small at the same places.
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

/* What an operation needs, or what there is. Threads and time are the least that it has a use for, each by itself. */
typedef struct sn__need {
  sn__bytes bytes;
  int64_t ns;
  int64_t threads;
} sn__need;

typedef struct sn__ranks {
  uint32_t n_leaves; /* a power of 2 */
  sn__need *least;   /* [1] is the root, [n_leaves + rank] a leaf; INT64_MAX: not there */
} sn__ranks;

/* An empty set for ranks below n, which is less than 2^31. False: out of memory. */
bool sn__ranks_new(sn__ranks *set, uint32_t n, sn_arena *arena);
void sn__ranks_clear(sn__ranks *set);

/* Adds a rank, or changes its numbers, which are below INT64_MAX. */
void sn__ranks_put(sn__ranks *set, uint32_t rank, sn__need need);
void sn__ranks_remove(sn__ranks *set, uint32_t rank);

/* The lowest rank in the set, not below `from`, that needs no more than there is; SN_NONE: there is none. There is less
 * than INT64_MAX. */
uint32_t sn__ranks_next(const sn__ranks *set, uint32_t from, sn__need there);

#endif
