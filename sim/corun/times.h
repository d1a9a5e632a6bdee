/* Times: how long every operation of a route takes with how many threads, what profiling would say of that, and how
 * many threads each wants. What decisions are made of (sim/corun/schedule.h); made once for a route on a device.
 *
 * Times are the device's law's, or what was measured of it (sim/corun/measured.h).
 *
 *   class    operations of one shape (sn_timing_shape() and part): they take the same time
 *   kind     classes of one operator, pass and part
 *
 * The threads of all instances of a kind, n_k, are the best count of its class that takes longest with one thread;
 * where times were measured, what makes all operations one after another fastest (sim/corun/kinds.h).
 *
 * O(operations + classes x cores).
 */
#ifndef SN_SIM_CORUN_TIMES_H
#define SN_SIM_CORUN_TIMES_H

#include "base/err.h"
#include "models/net/net.h"
#include "sim/device/calibration.h"
#include "sim/device/external.h"
#include "sim/graph/optimizer.h"
#include "sim/graph/pass.h"
#include "sim/policy/part.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct sn_time_class {
  uint32_t layer;           /* the first of them, of whom the text of the shape can be had */
  uint32_t kind;            /* times->kinds[kind] */
  uint32_t instances;       /* steps of the route; a rerun is none of its own */
  uint32_t best;            /* threads, 1 .. cores */
  uint32_t samples;         /* that the climb took */
  bool measured;            /* `ns` was, not all of it for every count; else it is the law's */
  double accuracy;          /* of `predicted`: sn_climb_accuracy() */
  const int64_t *ns;        /* [1 .. max_threads]: T */
  const int64_t *predicted; /* [1 .. max_threads]: from the samples */
  const int64_t *spread_ns; /* [1 .. max_threads]: how far what was measured is apart; 0 where `ns` is the law's */
  const uint16_t *share;    /* [1 .. max_threads]: u in 1/1024 */
} sn_time_class;

typedef struct sn_time_kind {
  sn_op op;
  sn_pass pass;
  sn_step_part part;
  uint32_t threads;   /* n_k */
  uint32_t largest;   /* the class that takes longest with one thread */
  uint32_t instances; /* of all classes */
} sn_time_kind;

typedef struct sn_times {
  uint32_t cores;       /* C */
  uint32_t max_threads; /* 2 C */
  uint32_t n_classes, n_kinds, n_ops;
  uint32_t measured_ops;    /* of them */
  const uint32_t *class_of; /* [step x SN_STEP_PARTS + part]; SN_NONE: there is no such operation */
  const sn_time_class *classes;
  const sn_time_kind *kinds; /* in the order in which the route comes to them */
  uint32_t profile_steps; /* training steps: the most samples of any class, twice where cores share tiles, since threads
                             may be packed or spread */
  double accuracy;        /* mean over operations */
  struct sn_arena *arena;
} sn_times;

/* The route must be of a dialect that sim/policy/part.h knows. `calibration`: of the device, whose cores are then the
 * calibration's; NULL: times are the law's. SN_BAD_USAGE where the device is not made of cores, or the interval, unless
 * it is the default, larger than they are. */
sn_times *sn_times_new(const sn_route *route, const sn_device *device, sn_optimizer optimizer, uint32_t interval,
                       const sn_calibration *calibration, sn_err *err);
void sn_times_free(sn_times *times);

static inline const sn_time_class *sn_times_of(const sn_times *times, uint32_t step, sn_step_part part) {
  return &times->classes[times->class_of[SN_STEP_PARTS * step + part]];
}

#endif
