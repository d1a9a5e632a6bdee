/* Climb: finding how many threads an operation wants by trying few (corun, section 3).
 *
 *     T |*                          ladder 1, 1 + x, 1 + 2x, .., C; its last step may be shorter
 *       |  *                        * samples: one training step each, up to the first that is slower
 *       |     *           *         best: the fastest of them, of equals the fewest threads
 *       |        *   *  [ ] not tried
 *       +---------------------- threads
 *
 * What was not tried is predicted: linear between neighbours, behind the last sample by its last slope, which is never
 * taken below 0. A geometric ladder goes by rounded powers of sqrt 2 and then C, and is linear in 1 / threads. Times
 * are those of whole ns; arrays of times are by threads, [1] the first, [0] not looked at.
 */
#ifndef SN_SIM_CORUN_CLIMB_H
#define SN_SIM_CORUN_CLIMB_H

#include "sim/device/cores.h"
#include "sim/policy/interval.h"

#include <stdint.h>

typedef struct sn_climb {
  uint32_t interval;
  uint32_t best; /* threads */
  uint32_t n_samples;
  uint16_t at[SN_MAX_CORES]; /* ascending */
} sn_climb;

/* The counts that there are to try up to `cores`; how many. */
uint32_t sn_climb_ladder(uint32_t cores, uint32_t interval, uint16_t at[SN_MAX_CORES]);

/* Climbs ns[1 .. cores]. */
sn_climb sn_climb_up(const int64_t *ns, uint32_t cores, uint32_t interval);

/* predicted[1 .. threads] from the samples, which are themselves. */
void sn_climb_predict(const sn_climb *climb, const int64_t *ns, uint32_t threads, int64_t *predicted);

/* 1 - mean of |predicted - T| / T over the counts below the last sample that were not tried; 1 where all were. */
double sn_climb_accuracy(const sn_climb *climb, const int64_t *ns, const int64_t *predicted);

#endif
