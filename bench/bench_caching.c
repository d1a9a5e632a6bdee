/* Benchmark of the caching allocator: how much it reserves, how fast.
 *
 *   build/bench/bench_caching
 *
 * Random requests against many live blocks, then plans of networks, two iterations each. Times are of this process's
 * own CPU. */
#include "models/zoo/zoo.h"

#include "sim/device/device.h"
#include "sim/graph/route.h"
#include "sim/plan/lower.h"
#include "sim/play/caching_replay.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static uint64_t dice = 1;

static uint64_t below(uint64_t n) { /* xorshift64* */
  dice ^= dice >> 12;
  dice ^= dice << 25;
  dice ^= dice >> 27;
  return (dice * UINT64_C(2685821657736338717) >> 11) % n;
}

static double cpu_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* `live` blocks of up to 40 MiB, one after another given back for a new one. */
static sn_status measure_random(uint32_t live, bool expandable, sn_err *err) {
  enum { TURNS = 1000000 };
  uint32_t *blocks = calloc(live, sizeof *blocks);
  sn_caching *c = sn_caching_new(SN_CACHING_NO_LIMIT, &(sn_caching_options){.expandable_segments = expandable}, err);
  if (!blocks) sn_fail_memory(err);
  double from = cpu_seconds();
  for (uint32_t i = 0; i < TURNS && err->code == SN_OK; i++) {
    uint32_t *block = &blocks[below(live)];
    sn_caching_give(c, *block);
    sn_caching_take(c, 1 + below(UINT64_C(1) << (10 + below(16))), block, err);
  }
  double seconds = cpu_seconds() - from;
  if (err->code == SN_OK)
    printf("%10" PRIu32 " %-10s %14.0f %22.4f\n", live, expandable ? "expandable" : "", 2 * TURNS / seconds,
           (double)sn_caching_look(c)->reserved_peak / (double)sn_caching_look(c)->allocated_peak);
  sn_caching_free(c);
  free(blocks);
  return err->code;
}

static sn_status measure_plan(const char *spec, uint32_t batch, const char *strategy, sn_err *err) {
  sn_strategy s;
  sn_device gpu;
  sn_net *net = sn_net_load(spec, batch, 0, err);
  sn_route *route = net ? sn_route_new(net, SN_DIALECT_SUPERNEURONS, SN_ORDER_ROUTE, err) : NULL;
  sn_costs *costs = route && sn_device_load("k40c", &gpu, err) == SN_OK ? sn_costs_new(net, &gpu, err) : NULL;
  bool good = costs && sn_strategy_parse(strategy, &s, err) == SN_OK;
  sn_schedule *schedule = good ? sn_schedule_new(route, s.recompute, err) : NULL;
  sn_plan *plan = schedule ? sn_lower(schedule, s, SN_WORKSPACE_DYNAMIC, costs, UINT64_C(11) << 30, err) : NULL;
  if (plan) {
    sn_caching_replayed r[2];
    sn_caching_load load = {.limit_bytes = SN_CACHING_NO_LIMIT};
    double from = cpu_seconds();
    sn_caching_replay(plan, &load, &r[0], err);
    double ms = (cpu_seconds() - from) * 1e3;
    load.options.expandable_segments = true;
    sn_caching_replay(plan, &load, &r[1], err);
    printf("%-32s %5" PRIu32 " %-18s %8.4f %10.4f %8" PRIu32 " %8.2f\n", spec, batch, strategy,
           (double)r[0].figures.reserved_peak / (double)plan->reserved_peak,
           (double)r[1].figures.reserved_peak / (double)plan->reserved_peak, r[0].figures.segments, ms);
  }
  sn_plan_free(plan);
  sn_schedule_free(schedule);
  sn_costs_free(costs);
  sn_route_free(route);
  sn_net_free(net);
  return err->code;
}

int main(void) {
  static const char *const nets[] = {"alexnet", "inception_v4", "densenet201", "resnet:n1=6,n2=32,n3=800,n4=6"};
  static const char *const strategies[] = {"baseline", "liveness", "liveness+offload", "superneurons"};
  sn_err err = SN_ERR_INIT;
  printf("%10s %-10s %14s %22s\n", "live", "segments", "calls/CPU s", "reserved / allocated");
  for (uint32_t live = 100; live <= 100000 && err.code == SN_OK; live *= 10)
    for (int expandable = 0; expandable < 2 && err.code == SN_OK; expandable++) measure_random(live, expandable, &err);
  printf("\n%-32s %5s %-18s %8s %10s %8s %8s\n", "plans, reserved / live", "batch", "strategy", "segments",
         "expandable", "number", "CPU ms");
  for (int n = 0; n < 4; n++)
    for (int s = 0; s < 4 && err.code == SN_OK; s++) measure_plan(nets[n], n < 3 ? 64 : 1, strategies[s], &err);
  if (err.code == SN_OK) return 0;
  fprintf(stderr, "bench_caching: %s\n", err.text);
  return 1;
}
