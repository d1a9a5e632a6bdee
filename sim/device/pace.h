/* Pace: the clock of operations that run side by side and slow each other. Used by who plans co-running (sim/corun) and
 * by who plays it (sim/play), so that both see the same times to the nanosecond.
 *
 *   sn_pace_start(&pace, lane, task)        a lane's operation begins now
 *   while (sn_pace_next(&pace, &lane, &end)) {
 *     sn_pace_advance(&pace, end)           time passes
 *     sn_pace_end(&pace, lane)              its operation is over; others may start at this moment
 *   }
 *
 * An operation advances at a rate of 1 .. 1024, 1024 where nothing slows it; before time passes after a start or an
 * end, all rates are asked for anew (sn_cores_rates). Work is kept in 1/1024 ns and ends are rounded up, so it does not
 * matter in how many pieces time passes. Of equal ends the lowest lane's comes first. Integers only.
 */
#ifndef SN_SIM_DEVICE_PACE_H
#define SN_SIM_DEVICE_PACE_H

#include "sim/device/cores.h"

#include <stdbool.h>
#include <stdint.h>

enum { SN_PACE_LANES = 8 };

/* What a lane runs: for how long if it were alone, which is at most SN_ENGINE_MAX_NS (sim/play/engine.h). */
typedef struct sn_pace_task {
  sn_running running;
  int64_t left;  /* in 1/1024 ns, when the clock was last moved */
  uint32_t rate; /* in 1/1024 */
  bool runs;
} sn_pace_task;

/* Zeroed but for `cores`, which are looked at, it is a clock at 0 with nothing running. */
typedef struct sn_pace {
  const sn_cores *cores;
  int64_t now; /* ns */
  uint32_t n_running;
  uint32_t n_lanes; /* the first so many are those that ever ran anything */
  bool stale;       /* rates are those of before the last start or end */
  sn_pace_task tasks[SN_PACE_LANES];
} sn_pace;

/* What it takes to give a lane's team another number of threads than the one before it had; 0: there was none. */
int64_t sn_pace_resize_ns(const sn_cores *cores, uint32_t before, uint32_t threads);

/* The lane must be free. */
void sn_pace_start(sn_pace *pace, uint32_t lane, sn_running running, int64_t ns);

/* The next end, if nothing starts before. False where nothing runs. */
bool sn_pace_next(sn_pace *pace, uint32_t *lane, int64_t *end_ns);

/* Moves the clock to `now`, which is not before it and, unless nothing runs, not beyond the end that sn_pace_next() has
 * told since the last start or end. */
void sn_pace_advance(sn_pace *pace, int64_t now);

/* The lane's operation is over. */
void sn_pace_end(sn_pace *pace, uint32_t lane);

#endif
