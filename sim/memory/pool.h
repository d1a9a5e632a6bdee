/* Pool: the paper's preallocated region in 1 KiB blocks with first fit over an ordered list of holes ([SN] 3.2.1).
 *
 * The planner asks it for real addresses. It has no end of its own: callers name a limit with each request, and what
 * goes beyond the device shows in the high water. The list of holes is an ordered map that knows the largest hole of
 * every range, so that first fit costs O(log holes) instead of a scan. Whoever holds a region remembers its offset and
 * size, which makes the paper's id-to-node hash table unnecessary.
 */
#ifndef SN_SIM_MEMORY_POOL_H
#define SN_SIM_MEMORY_POOL_H

#include "base/checked.h"
#include "base/err.h"
#include "base/ordered.h"

#include <stdbool.h>
#include <stdint.h>

#define SN_POOL_BLOCK UINT64_C(1024) /* [SN] 3.2.1: addresses and sizes in the pool are multiples of 1 KiB */

typedef struct sn_pool {
  sn_ordered holes;    /* holes below `top`: offset -> bytes */
  uint64_t top;        /* everything from here on is free */
  uint64_t reserved;   /* bytes in use, whole blocks */
  uint64_t high_water; /* largest `top` so far */
  uint64_t reserved_peak;
  uint64_t largest_hole; /* the largest hole when the high water was last raised */
} sn_pool;

/* A zeroed struct is an empty pool. */
void sn_pool_clear(sn_pool *pool);
/* False where memory is out; `copy` is to be cleared in any case, and needs not be before. */
bool sn_pool_copy(sn_pool *copy, const sn_pool *pool);

/* Whole blocks that hold `bytes`. */
static inline uint64_t sn_pool_round(uint64_t bytes) {
  return sn_ceil_div(bytes, SN_POOL_BLOCK) * SN_POOL_BLOCK;
}

/* Reserves `bytes` (rounded to whole blocks) at the lowest hole that ends at or below `limit`. False where none does.
 */
bool sn_pool_take(sn_pool *pool, uint64_t bytes, uint64_t limit, uint64_t *offset);

/* Reserves as sn_pool_take() does and gives it back at once: what is left of it are the marks. */
bool sn_pool_touch(sn_pool *pool, uint64_t bytes, uint64_t limit, uint64_t *offset);

/* Reserves a region that is free, wherever the pool is in use by now. SN_NO_MEMORY. */
sn_status sn_pool_take_at(sn_pool *pool, uint64_t offset, uint64_t bytes);

/* Gives a reserved region back, merging it with its neighbours. SN_NO_MEMORY. */
sn_status sn_pool_give(sn_pool *pool, uint64_t offset, uint64_t bytes);

/* The largest region that sn_pool_take() could reserve below `limit`. */
uint64_t sn_pool_largest(const sn_pool *pool, uint64_t limit);

#endif
