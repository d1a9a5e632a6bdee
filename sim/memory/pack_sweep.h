/* Pack within a capacity by a beam of arrangements over time; what pack_exact.h searches with beside its tree and the
 * skyline, for blocks of which there are times without room: there, what begins must fill what has ended, exactly.
 *
 *   sn__sweep *sweep = sn__sweep_new(lives, n, n_sections);
 *   if (sn__sweep_suits(sweep, capacity))
 *     while (!sn__sweep_try(sweep, capacity, may_look, context, offsets) && ..) ;
 *   sn__sweep_free(sweep);
 *
 * Blocks come by their begins, of one section the longest first, each at either side of a gap that takes it. An
 * arrangement is what lives then, by offset. It ends where gaps cannot be filled: in each of the sections ahead with
 * the least room, what lives until then leaves gaps, each of which is filled at best by the blocks to come whose sizes
 * add up to the most below it; what all of them leave must be no more than the room. The best arrangements go on, by
 *
 *   tension    between neighbours a weight of the time between their ends, gaps ending at once and the outside never:
 *              what ends together lies together, and leaves one gap
 *
 * Arrangements whose offsets have the same ends, or have them upside down, are one to all that comes. Nobody knows the
 * weight (1, or the root of the time: its fourth, or that times its eighth), nor which way time runs: tries go through
 * them, and then again with twice the width and some chance. From a fixed seed: same blocks, same tries, same offsets.
 */
#ifndef SN_SIM_MEMORY_PACK_SWEEP_H
#define SN_SIM_MEMORY_PACK_SWEEP_H

#include "sim/memory/pack_skyline.h"

/* What a sweep takes: blocks in all and at once, and the capacity in the unit of bytes. 50 MiB stand for it then. */
enum { SN__SWEEP_MOST = 512, SN__SWEEP_LIVE = 160, SN__SWEEP_LEVELS = 4096, SN__SWEEP_LOOKS = 16 };

typedef struct sn__sweep sn__sweep;

/* As sn__skyline_new(); at most SN__SWEEP_MOST. */
sn__sweep *sn__sweep_new(const sn__life *lives, uint32_t count, uint32_t n_sections);
void sn__sweep_free(sn__sweep *sweep);

bool sn__sweep_suits(const sn__sweep *sweep, uint64_t capacity);

/* As sn__skyline_try(), of a capacity that suits; `may_look` is asked for every SN__SWEEP_LOOKS arrangements, which
 * take about as long as one of the tree's nodes. */
bool sn__sweep_try(sn__sweep *sweep, uint64_t capacity, bool (*may_look)(void *context), void *context,
                   uint64_t *offsets);

#endif
