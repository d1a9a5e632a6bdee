/* The clock of operations that slow each other; see the header. */
#include "sim/device/pace.h"

#include <assert.h>
#include <math.h>

enum { UNITS_PER_NS = 1024 };

static void ask_for_rates(sn_pace *pace) {
  sn_running running[SN_PACE_LANES];
  uint32_t rates[SN_PACE_LANES], n = 0;
  for (uint32_t l = 0; l < pace->n_lanes; l++)
    if (pace->tasks[l].runs) running[n++] = pace->tasks[l].running;
  sn_cores_rates(pace->cores, running, n, rates);
  n = 0;
  for (uint32_t l = 0; l < pace->n_lanes; l++)
    if (pace->tasks[l].runs) pace->tasks[l].rate = rates[n++];
  pace->stale = false;
}

int64_t sn_pace_resize_ns(const sn_cores *cores, uint32_t before, uint32_t threads) {
  return before > 0 && before != threads ? llround(cores->resize_ns) : 0;
}

void sn_pace_start(sn_pace *pace, uint32_t lane, sn_running running, int64_t ns) {
  assert(lane < SN_PACE_LANES && !pace->tasks[lane].runs && ns >= 0);
  pace->tasks[lane] = (sn_pace_task){.running = running, .left = ns * UNITS_PER_NS, .runs = true};
  pace->n_running++;
  if (lane >= pace->n_lanes) pace->n_lanes = lane + 1;
  pace->stale = true;
}

bool sn_pace_next(sn_pace *pace, uint32_t *lane, int64_t *end_ns) {
  if (pace->n_running == 0) return false;
  if (pace->stale) ask_for_rates(pace);
  bool found = false;
  for (uint32_t l = 0; l < pace->n_lanes; l++) {
    const sn_pace_task *t = &pace->tasks[l];
    if (!t->runs) continue;
    int64_t end = pace->now + t->left / t->rate + (t->left % t->rate != 0);
    if (found && end >= *end_ns) continue;
    found = true;
    *lane = l;
    *end_ns = end;
  }
  return true;
}

void sn_pace_advance(sn_pace *pace, int64_t now) {
  assert(now >= pace->now && (pace->n_running == 0 || !pace->stale));
  for (uint32_t l = 0; l < pace->n_lanes && pace->n_running > 0; l++) {
    sn_pace_task *t = &pace->tasks[l];
    if (!t->runs) continue;
    t->left -= (now - pace->now) * t->rate;
    if (t->left < 0) t->left = 0; /* its end was rounded up */
  }
  pace->now = now;
}

void sn_pace_end(sn_pace *pace, uint32_t lane) {
  assert(pace->tasks[lane].runs);
  pace->tasks[lane].runs = false;
  pace->n_running--;
  pace->stale = true;
}
