/* The scaling law and the slowing; see the header. Times are whole ns and rates whole 1/1024: what is played is counted
 * in integers. */
#include "sim/device/cores.h"

#include "base/checked.h"
#include "sim/device/conv.h"

#include <math.h>

sn_scaling sn_cores_scaling(const sn_cores *cores, sn_law_kind kind, double flops, double bytes) {
  const sn_law *law = &cores->law[kind];
  double compute = flops / law->flops, move = bytes * sqrt(law->kernels) / law->bandwidth;
  double work = fmax(compute, move) * 1e9;
  return (sn_scaling){
      .fixed = law->kernels * cores->kernel_ns + cores->serial * work,
      .parallel = (1 - cores->serial) * work,
      .thread = law->kernels * law->thread_ns,
      .cap = move > compute ? cores->bandwidth / law->bandwidth : INFINITY,
  };
}

/* v(p) */
static double speed(const sn_cores *cores, const sn_scaling *scaling, uint32_t threads) {
  double c = cores->count, v = threads;
  if (threads > cores->count) v = c + (cores->doubled - 1) * (v - c);
  return fmin(v, scaling->cap);
}

/* The parallel term of T(p). */
static double spread(const sn_cores *cores, const sn_scaling *scaling, uint32_t threads) {
  double gain = threads > 1 && cores->tile > 1 ? cores->tile_gain : 0;
  return scaling->parallel * (1 - gain) / speed(cores, scaling, threads);
}

static double whole(const sn_cores *cores, const sn_scaling *scaling, uint32_t threads) {
  return scaling->fixed + spread(cores, scaling, threads) + scaling->thread * threads;
}

int64_t sn_scaling_ns(const sn_cores *cores, const sn_scaling *scaling, uint32_t threads) {
  return llround(fmax(1, fmin(whole(cores, scaling, threads), SN_MAX_OP_SECONDS * 1e9)));
}

uint32_t sn_scaling_share(const sn_cores *cores, const sn_scaling *scaling, uint32_t threads) {
  double all = whole(cores, scaling, threads);
  return all > 0 ? (uint32_t)lround(1024 * spread(cores, scaling, threads) / all) : 0;
}

/* The share of i's cores that j holds too. */
static double overlap(sn_team i, sn_team j) {
  uint64_t low = sn_max(i.first, j.first);
  uint64_t high = sn_min((uint64_t)i.first + i.count, (uint64_t)j.first + j.count);
  return high > low ? (double)(high - low) / i.count : 0;
}

/* a(x), x threads a core. */
static double crowding(const sn_cores *cores, double x) {
  static const double at[SN_CROWDS + 1] = {1, 2, 4, 8};
  const double a[SN_CROWDS + 1] = {0, cores->crowd[0], cores->crowd[1], cores->crowd[2]};
  int i = x < at[1] ? 0 : x < at[2] ? 1 : 2;
  double slope = (a[i + 1] - a[i]) / (at[i + 1] - at[i]);
  return fmax(0, a[i] + slope * (x - at[i]));
}

double sn_cores_hindrance(const sn_cores *cores, sn_team i, sn_team j) {
  double memory = cores->neighbour * fmin(1, 2.0 * j.count / cores->count);
  if (i.slot == SN_SLOT_ANY) return memory + crowding(cores, (double)i.first / cores->count);
  return memory + cores->crowd[0] * overlap(i, j);
}

void sn_cores_rates(const sn_cores *cores, const sn_running *tasks, uint32_t n, uint32_t *rates) {
  for (uint32_t i = 0; i < n; i++) {
    double slowing = 1;
    for (uint32_t j = 0; j < n; j++)
      if (j != i) slowing += tasks[j].share / 1024.0 * sn_cores_hindrance(cores, tasks[i].team, tasks[j].team);
    rates[i] = (uint32_t)fmax(1, floor(1024 / slowing));
  }
}
