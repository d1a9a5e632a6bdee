/* Caching seen (internal to sim/play): when rounds of a replay that come again (sim/play/caching_script.h) begin to repeat
 * themselves. A round that finds what an earlier one has found does what that did, and so do those behind it.
 *
 *   found      a b c d e c d e c d e ..       the period is 3
 *   noted      a b   d         ..             which is compared with what each of the next ones finds (Brent)
 */
#ifndef SN_SIM_PLAY_CACHING_SEEN_H
#define SN_SIM_PLAY_CACHING_SEEN_H

#include "sim/play/caching_script.h"

/* Zeroed nothing is noted. */
typedef struct sn__seen {
  sn_extent *held;                  /* where each of rounds.held lay */
  uint32_t again, next;             /* how many rounds had come again then, and have when it is noted anew */
  uint64_t reserved_bytes, retries; /* a segment that comes or goes changes one of them; 0 bytes: nothing is noted */
} sn__seen;

void sn__seen_clear(sn__seen *seen);

/* Another iteration begins. */
void sn__seen_forget(sn__seen *seen);

/* Behind a round: *period is how many rounds ago it was as now; 0: nothing is known. Where a round keeps blocks no two
 * find the same. Not of allocators that take segments back without counting it as a retry (max_split_bytes), or have no
 * segments (expandable). `blocks` is per tensor. SN_NO_MEMORY. */
sn_status sn__seen_look(sn__seen *seen, const sn__caching_rounds *rounds, const sn_caching *caching,
                        const uint32_t *blocks, uint32_t again, uint32_t *period, sn_err *err);

#endif
