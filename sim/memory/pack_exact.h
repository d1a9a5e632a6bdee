/* Pack exactly: addresses for blocks of memory that no other addresses beat, or the proof that there are none within a
 * capacity, by branch and bound (Moffitt, "MiniMalloc", ASPLOS 2023).
 *
 *   sn_pack(blocks, n, &limits, offsets, &packing, &err);                     a packing to begin with
 *   sn_pack_exact(blocks, n, &(sn_exact_limits){.nodes = 0}, offsets, &packing, &exact, &err);
 *   packing.bytes == exact.floor                                              proved
 *
 * Blocks that share no time, directly or through others, are problems of their own, again so after each block that is
 * placed. Within one, blocks are placed in canonical order: offsets never fall, and blocks of one offset come by their
 * number. So a block lies on the highest of those placed before whose life overlaps its own, what is below it stays as
 * it is, and the search goes back
 *
 *   where at some time the blocks to come, from the lowest offset each can have on, pass the capacity
 *   where a block is placed above a hole that one to come would fill
 *
 * Each capacity is tried in six fixed orders in turn, then by a beam along the skyline (pack_skyline.h) and one over
 * time (pack_sweep.h), which find where the tree loses itself and prove nothing; with twice the nodes after each
 * round. Without a capacity the largest load is tried first, then what lies between the most that is proved not to do
 * and the least that does.
 *
 * Nodes are counted, not seconds: same blocks, same offsets. A node is O(blocks + times x blocks that live at once), in
 * practice the square of the blocks that hang together: where nobody says how many nodes there may be, they are so many
 * that all of it takes a minute or two, whatever the blocks.
 */
#ifndef SN_SIM_MEMORY_PACK_EXACT_H
#define SN_SIM_MEMORY_PACK_EXACT_H

#include "sim/memory/pack.h"

/* Blocks that hang together; each that is placed is a level of recursion. */
enum { SN_EXACT_MOST = 4000, SN_EXACT_NODES = 10000000 };

/* SN_EXACT_NODES among up to 316 blocks that hang together, fewer among more. */
#define SN_EXACT_WORK UINT64_C(1000000000000)

typedef struct sn_exact_limits {
  uint64_t capacity;           /* a packing in so many bytes is enough; 0: the least */
  uint64_t nodes;              /* blocks placed, at most; 0: what SN_EXACT_WORK is enough for */
  bool (*stop)(void *context); /* asked every now and then: true ends the search; NULL: nobody is asked */
  void *context;
} sn_exact_limits;

typedef struct sn_exact {
  uint64_t floor; /* bytes: no packing takes less, by the largest load or by search */
  uint64_t nodes; /* tried; `stop` finds here how many by then */
  uint64_t most;  /* with those of problems before it: the bound of the problem that was searched last */
} sn_exact;

/* Goes on from `packing` and its `offsets`, and leaves them as they are where nothing better is found. SN_BAD_INPUT
 * where more than SN_EXACT_MOST blocks hang together. */
sn_status sn_pack_exact(const sn_block *blocks, uint32_t count, const sn_exact_limits *limits, uint64_t *offsets,
                        sn_packing *packing, sn_exact *exact, sn_err *err);

#endif
