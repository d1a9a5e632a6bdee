/* Range: numbers that a value of a sweep stands for, LOW:HIGH:STEP (16:256:16) or LOW:HIGH:xFACTOR (16:256:x2).
 *
 *   sn__range range;
 *   if (sn__range_read("batches", text, length, most, &range, &err) == SN_OK)
 *     for (uint64_t n = range.low; n <= range.high; n = sn__range_next(&range, n)) ..
 */
#ifndef SN_SIM_SWEEP_RANGE_H
#define SN_SIM_SWEEP_RANGE_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sn__range {
  uint64_t low, high, step;
  bool grows; /* step is a factor */
} sn__range;

/* Whether a text has the colons of one. */
bool sn__is_range(const char *text, size_t length);
/* Of numbers from 1 to `most`, which is below 2^32. SN_BAD_USAGE names `what` it is and the part that is wrong. */
sn_status sn__range_read(const char *what, const char *text, size_t length, uint64_t most, sn__range *range,
                         sn_err *err);

static inline uint64_t sn__range_next(const sn__range *range, uint64_t number) {
  return range->grows ? number * range->step : number + range->step;
}

#endif
