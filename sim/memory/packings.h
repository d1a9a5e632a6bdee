/* Packings: those that were found for one question, so that the same blocks are packed once.
 *
 *   sn_packings packings = {0};
 *   sn_pack_again(&packings, blocks, n, &limits, offsets, &packing, &err);   as sn_pack(), or what it has found before
 *   sn_packings_clear(&packings);
 *
 * Strategies that do the same in a network come to the same blocks: the cache where nothing is evicted, recomputation
 * for cost where that is the one for speed. So do devices that take the same algorithms, and all devices where tensors
 * are packed without workspaces. A packing depends on nothing but its blocks and limits, so that what is remembered is
 * what would be found. The 32 latest are kept, what the 13 strategies come to for one device and for the next, of up to
 * 4,096 blocks each: 4 MiB at most.
 */
#ifndef SN_SIM_MEMORY_PACKINGS_H
#define SN_SIM_MEMORY_PACKINGS_H

#include "base/err.h"
#include "sim/memory/pack.h"

#include <stdint.h>

enum { SN_PACKINGS_KEPT = 32, SN_PACKINGS_MOST_BLOCKS = 4096 };

typedef struct sn_packings_entry {
  uint64_t digest; /* of blocks and limits */
  uint32_t count;
  sn_pack_limits limits;
  sn_block *blocks;
  uint64_t *offsets;
  sn_packing packing;
} sn_packings_entry;

/* Zeroed it is empty. */
typedef struct sn_packings {
  sn_packings_entry entries[SN_PACKINGS_KEPT];
  uint32_t next;
} sn_packings;

void sn_packings_clear(sn_packings *packings);

/* sn_pack(); `packings` may be NULL. SN_NO_MEMORY. */
sn_status sn_pack_again(sn_packings *packings, const sn_block *blocks, uint32_t count, const sn_pack_limits *limits,
                        uint64_t *offsets, sn_packing *packing, sn_err *err);

#endif
