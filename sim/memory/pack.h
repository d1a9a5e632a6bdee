/* Pack: addresses for blocks of memory whose lifetimes are known, in as little memory as can be found (dynamic storage
 * allocation, strongly NP-hard).
 *
 *   sn_block blocks[] = {{0, 10, 4096}, {3, 5, 1024}, {5, 10, 1024}};
 *   uint64_t offsets[3];
 *   sn_packing packing;
 *   sn_pack(blocks, 3, &(sn_pack_limits)SN_PACK_LIMITS_INIT, offsets, &packing, &err);   bytes 5120, which is proved
 *
 * It knows nothing of plans: sim/plan/place.h feeds it one. Two blocks conflict where their lifetimes overlap; the
 * largest sum of bytes that live at one time is a lower bound, and where a packing reaches it the search is over.
 *
 *   orders   the blocks one after another, each at the lowest offset that is free for its whole life: first fit, and by
 *            the largest load over their life (then by size x length, or by begin), size x length, size, length,
 *            begin, end; descending; of each only as far as all is within what is enough, and on from there where none
 *            comes to that
 *   moves    on from the best of these: of a block that ends at the top and the ones it rests on, down to 0, one
 *            changes places with, or goes before, a block placed earlier that it conflicts with; what is not worse
 *            than it was a while ago is kept (late acceptance)
 *   beam     where neither comes to what is enough, nor within 1/128 of the lower bound: by begin, each at an end of a
 *            hole, on from the 16 best ways to lay those before (few holes now, and few later); tried again with other
 *            weights until all lie within that; up to 4,096 blocks
 *
 * Moves are counted, not seconds, and drawn from a fixed seed: same blocks, same offsets. An order or move is
 * O(n x (n / 64 + blocks looked at)); 2,000 blocks take some 30 ms, 30,000 under 2 s. pack_exact.h goes on from here.
 */
#ifndef SN_SIM_MEMORY_PACK_H
#define SN_SIM_MEMORY_PACK_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum { SN_PACK_MOST = 200000, SN_PACK_MOVES = 200, SN_PACK_MOST_MOVES = 1000000, SN_PACK_TRIES = 500 };

/* A packing within that share of the largest load is near it: a try of the beam stays within it. */
enum { SN_PACK_NEAR = 128 };

/* Lives from `lower` to before `upper`, in whatever unit; lower <= upper. Without a life, or bytes, it is in nobody's
 * way. */
typedef struct sn_block {
  uint64_t lower, upper, bytes;
} sn_block;

typedef struct sn_pack_limits {
  uint32_t moves;  /* at most; where they are dear, fewer: each is worth some 10^5 looks at a block */
  uint32_t tries;  /* of the beam, at most; where they are dear, fewer: 10^7 looks are some 0.1 s */
  uint64_t enough; /* no search for less than this; 0: for the lower bound */
  uint64_t near;   /* and no moves, no tries for less than this; 0: the same */
  uint64_t known;  /* of a packing that is there, first fit's: only for less; 0: there is none */
} sn_pack_limits;

#define SN_PACK_LIMITS_INIT                                                                                            \
  { .moves = SN_PACK_MOVES }

typedef struct sn_packing {
  uint64_t bytes;       /* the highest end of a block; where it is what was known, offsets are not filled */
  uint64_t lower_bound; /* the largest load */
  uint32_t moves;       /* tried */
  uint32_t tries;       /* of the beam */
} sn_packing;

/* Fills `offsets`, one a block. SN_BAD_INPUT where the blocks together pass 2^64 bytes or are more than SN_PACK_MOST.
 */
sn_status sn_pack(const sn_block *blocks, uint32_t count, const sn_pack_limits *limits, uint64_t *offsets,
                  sn_packing *packing, sn_err *err);

#endif
