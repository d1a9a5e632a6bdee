/* Climbing; see the header. O(cores). */
#include "sim/corun/climb.h"

#include <math.h>

static uint32_t next_count(uint32_t count, uint32_t interval) {
  if (interval != SN_INTERVAL_GEOMETRIC) return count + interval;
  uint32_t next = count;
  for (int i = 1; next <= count; i++) next = (uint32_t)lround(pow(2, i / 2.0));
  return next;
}

uint32_t sn_climb_ladder(uint32_t cores, uint32_t interval, uint16_t at[SN_MAX_CORES]) {
  uint32_t n = 0;
  for (uint32_t count = 1; count < cores; count = next_count(count, interval)) at[n++] = (uint16_t)count;
  at[n++] = (uint16_t)cores;
  return n;
}

sn_climb sn_climb_up(const int64_t *ns, uint32_t cores, uint32_t interval) {
  sn_climb climb = {.interval = interval, .best = 1};
  uint32_t rungs = sn_climb_ladder(cores, interval, climb.at);
  while (climb.n_samples < rungs) {
    uint32_t i = climb.n_samples++;
    if (ns[climb.at[i]] < ns[climb.best]) climb.best = climb.at[i];
    if (i > 0 && ns[climb.at[i]] > ns[climb.at[i - 1]]) break;
  }
  return climb;
}

/* On the line through samples at a and b. */
static int64_t line(const sn_climb *climb, const int64_t *ns, uint32_t a, uint32_t b, uint32_t threads) {
  double step = climb->interval == SN_INTERVAL_GEOMETRIC ? (1.0 / threads - 1.0 / a) / (1.0 / b - 1.0 / a)
                                                         : ((double)threads - a) / ((double)b - a);
  return ns[a] + llround(step * (double)(ns[b] - ns[a]));
}

/* Behind the last sample. */
static int64_t onward(const sn_climb *climb, const int64_t *ns, uint32_t threads) {
  uint32_t last = climb->at[climb->n_samples - 1], before = climb->at[climb->n_samples - 2];
  double slope = fmax(0, (double)(ns[last] - ns[before]) / ((double)last - before));
  return ns[last] + llround(slope * ((double)threads - last));
}

void sn_climb_predict(const sn_climb *climb, const int64_t *ns, uint32_t threads, int64_t *predicted) {
  uint32_t i = 0, samples = climb->n_samples;
  for (uint32_t p = 1; p <= threads; p++) {
    while (i < samples && climb->at[i] < p) i++;
    if (i == samples)
      predicted[p] = onward(climb, ns, p);
    else
      predicted[p] = climb->at[i] == p ? ns[p] : line(climb, ns, climb->at[i - 1], climb->at[i], p);
  }
}

double sn_climb_accuracy(const sn_climb *climb, const int64_t *ns, const int64_t *predicted) {
  double error = 0;
  uint32_t i = 0, untried = 0;
  for (uint32_t p = 1; p < climb->at[climb->n_samples - 1]; p++) {
    if (climb->at[i] == p) {
      i++;
      continue;
    }
    error += fabs((double)(predicted[p] - ns[p])) / (double)ns[p];
    untried++;
  }
  return untried > 0 ? 1 - error / untried : 1;
}
