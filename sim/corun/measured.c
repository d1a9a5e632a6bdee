/* Measured times; see the header. */
#include "sim/corun/measured.h"

#include "sim/corun/climb.h"
#include "sim/device/conv.h"

#include <math.h>

enum { MOST_TIMINGS = SN_MAX_CORES };

static int64_t within_clock(double ns) {
  return llround(fmax(1, fmin(ns, SN_MAX_OP_SECONDS * 1e9)));
}

/* What was measured, by threads. */
typedef struct counted {
  int64_t ns[2 * SN_MAX_CORES + 1], spread_ns[2 * SN_MAX_CORES + 1];
} counted;

/* The timings as samples of a climb. False where they do not begin with one thread, or end with it. */
static bool take_samples(const sn_timing *timings, uint32_t n, uint32_t threads, sn_climb *climb, counted *at) {
  climb->n_samples = 0;
  climb->interval = SN_INTERVAL_GEOMETRIC;
  for (uint32_t i = 0; i < n && climb->n_samples < MOST_TIMINGS; i++) {
    uint32_t count = timings[i].threads;
    bool again = climb->n_samples > 0 && climb->at[climb->n_samples - 1] == count;
    if (count > threads || again) continue;
    climb->at[climb->n_samples++] = (uint16_t)count;
    at->ns[count] = within_clock((double)timings[i].ns);
    at->spread_ns[count] = timings[i].spread_ns > 0 ? within_clock((double)timings[i].spread_ns) : 0;
  }
  return climb->n_samples > 1 && climb->at[0] == 1;
}

static void scale(double factor, uint32_t threads, int64_t *ns) {
  for (uint32_t p = 1; p <= threads; p++) ns[p] = within_clock(factor * (double)ns[p]);
}

bool sn__measured_times(const sn_calibration *c, const sn__measured_op *op, uint32_t threads, sn__measured_ns times) {
  const sn_timing *timings;
  sn_climb climb;
  counted at;
  uint32_t n = sn_calibration_teams(c, op->shape, op->pass, op->part, &timings);
  if (!take_samples(timings, n, threads, &climb, &at)) {
    scale(c->team_factor[op->op][op->pass][op->part], threads, times.ns);
    return false;
  }
  sn_climb_predict(&climb, at.ns, threads, times.ns);
  sn_climb_predict(&climb, at.spread_ns, threads, times.spread_ns);
  for (uint32_t p = 1; p <= threads; p++) {
    times.ns[p] = within_clock((double)times.ns[p]);
    times.share[p] = (uint16_t)lround(1024 * fmin(1, (double)times.ns[1] / ((double)p * (double)times.ns[p])));
  }
  return true;
}
