/* Measured times: what `snsim calibrate --threads` found of an operation, in place of the law's times. Few counts are
 * measured; between them T is linear in 1/threads, as profiling predicts on a geometric ladder (sim/corun/climb.h), and
 * beyond the last it goes on by the last slope, never downwards. u(p) = min(1, T(1) / (p T(p))).
 *
 * Operations of no measured shape take the law's times, all by one factor: the sum of what was measured of their
 * operator, pass and part over what the law says of the same.
 */
#ifndef SN_SIM_CORUN_MEASURED_H
#define SN_SIM_CORUN_MEASURED_H

#include "sim/device/calibration.h"

#include <stdbool.h>
#include <stdint.h>

/* An operation, by its timing's shape. */
typedef struct sn__measured_op {
  const char *shape;
  sn_op op;
  sn_pass pass;
  uint32_t part; /* sn_step_part */
} sn__measured_op;

/* The times of an operation by its number of threads, [1 .. threads]. */
typedef struct sn__measured_ns {
  int64_t *ns, *spread_ns; /* spread: of the samples, as far as T is theirs */
  uint16_t *share;
} sn__measured_ns;

/* `ns` and `share` hold what the law says, `spread_ns` zeros. True where the shape was measured: with one thread, and
 * another count at least. O(threads). */
bool sn__measured_times(const sn_calibration *calibration, const sn__measured_op *op, uint32_t threads,
                        sn__measured_ns times);

#endif
