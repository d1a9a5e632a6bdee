/* Mix: numbers of threads that change from one operation to the next, so that calibrating measures each operation with
 * each number as a run leaves the caches: behind an operation on another team (exec/session/team_times.h).
 *
 * Passes 0, 1, .. go through all operations in serial order. Of n counts the first n passes have one each, for all
 * operations. From then on no two neighbours have the same, and in every n passes an operation has every count once.
 */
#ifndef SN_SIM_POLICY_MIX_H
#define SN_SIM_POLICY_MIX_H

#include <stdint.h>

typedef struct sn_mix {
  const uint32_t *counts; /* of threads, different ones */
  uint32_t n_counts;      /* at least 2 */
  uint32_t pass;
} sn_mix;

/* The threads of an operation, by its place in serial order. */
uint32_t sn_mix_threads(const sn_mix *mix, uint32_t op);

#endif
