/* Compare: what two runs say differently of one strategy, and why its peak moved.
 *
 *   sn_compare_pair *pairs = sn_compare_runs(before, after, arena, &count, &err);
 *   sn_peak_change change;
 *   if (sn_compare_has_peaks(&pairs[0])) sn_compare_peaks(pairs[0].before, pairs[0].after, arena, &change, &err);
 *
 * Tensors are the same where their names are: runs of one network, with another batch, GPU or options, compare tensor
 * by tensor; of different networks nearly all tensors went and others came.
 */
#ifndef SN_SIM_CAPACITY_COMPARE_H
#define SN_SIM_CAPACITY_COMPARE_H

#include "base/arena.h"
#include "base/err.h"
#include "sim/ask/run.h"

#include <stdbool.h>
#include <stdint.h>

/* The results of one strategy, predicted or measured by one back end; NULL in the run that has none. */
typedef struct sn_compare_pair {
  const char *strategy, *source;
  const sn_result *before, *after;
} sn_compare_pair;

/* The strategies of `before` in its order, then those only `after` has. NULL: out of memory. O(results^2). */
sn_compare_pair *sn_compare_runs(const sn_run *before, const sn_run *after, sn_arena *arena, uint32_t *count,
                                 sn_err *err);

/* Whether both runs have the strategy with the same needs, work and times. */
bool sn_compare_same(const sn_compare_pair *pair);

/* Whether both results were stored with the tensors of their peaks. */
bool sn_compare_has_peaks(const sn_compare_pair *pair);

typedef enum sn_change { SN_CAME, SN_WENT, SN_GREW, SN_SHRANK, SN_STAYED, SN_CHANGES } sn_change;

/* "came", "went", "grew", "shrank", "stayed" */
const char *sn_change_name(sn_change change);

/* A tensor of either peak; `before` or `after` is NULL where it is not among that peak's. */
typedef struct sn_peak_tensor {
  const sn_peak_row *before, *after;
  sn_change change;
} sn_peak_tensor;

/* Bytes by which the peak is larger for it. */
int64_t sn_peak_tensor_bytes(const sn_peak_tensor *tensor);

typedef struct sn_peak_change {
  uint32_t n_tensors, count[SN_CHANGES];
  int64_t bytes[SN_CHANGES];     /* their sum is the change of the peak */
  const sn_peak_tensor *tensors; /* the largest change first, either way; equal ones by name */
} sn_peak_change;

/* Both results must have their peaks. O(n log n) of their rows. */
sn_status sn_compare_peaks(const sn_result *before, const sn_result *after, sn_arena *arena, sn_peak_change *change,
                           sn_err *err);

#endif
