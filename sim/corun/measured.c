/* Measured times; see the header. */
#include "sim/corun/measured.h"

#include "sim/corun/climb.h"
#include "sim/device/conv.h"

#include <math.h>

enum { MOST_TIMINGS = SN_MAX_CORES };

static int64_t within_clock(double ns) {
  return llround(fmax(1, fmin(ns, SN_MAX_OP_SECONDS * 1e9)));
}

/* The timings as samples of a climb, times into `at_count` by their threads. False where they do not begin with one
 * thread, or end with it. */
static bool take_samples(const sn_timing *timings, uint32_t n, uint32_t threads, sn_climb *climb, int64_t *at_count) {
  climb->n_samples = 0;
  climb->interval = SN_INTERVAL_GEOMETRIC;
  for (uint32_t i = 0; i < n && climb->n_samples < MOST_TIMINGS; i++) {
    uint32_t count = timings[i].threads;
    bool again = climb->n_samples > 0 && climb->at[climb->n_samples - 1] == count;
    if (count > threads || again) continue;
    climb->at[climb->n_samples++] = (uint16_t)count;
    at_count[count] = within_clock((double)timings[i].ns);
  }
  return climb->n_samples > 1 && climb->at[0] == 1;
}

static void scale(double factor, uint32_t threads, int64_t *ns) {
  for (uint32_t p = 1; p <= threads; p++) ns[p] = within_clock(factor * (double)ns[p]);
}

bool sn__measured_times(const sn_calibration *c, const sn__measured_op *op, uint32_t threads, int64_t *ns,
                        uint16_t *share) {
  const sn_timing *timings;
  sn_climb climb;
  int64_t at_count[2 * SN_MAX_CORES + 1];
  uint32_t n = sn_calibration_teams(c, op->shape, op->pass, op->part, &timings);
  if (!take_samples(timings, n, threads, &climb, at_count)) {
    scale(c->team_factor[op->op][op->pass][op->part], threads, ns);
    return false;
  }
  sn_climb_predict(&climb, at_count, threads, ns);
  for (uint32_t p = 1; p <= threads; p++) {
    ns[p] = within_clock((double)ns[p]);
    share[p] = (uint16_t)lround(1024 * fmin(1, (double)ns[1] / ((double)p * (double)ns[p])));
  }
  return true;
}
