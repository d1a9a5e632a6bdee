/* Benchmark of the event engine alone: one plan played over and over on the simulated device.
 *
 *   build/bench/bench_engine [repeats]
 *
 * The plan is a ResNet of 10^4 basic layers at batch 16 under liveness+offload, which keeps all three lanes busy.
 * Prints events per second of the median repeat, without and with a shared link.
 */
#include "models/zoo/zoo.h"
#include "sim/graph/route.h"
#include "sim/plan/lower.h"
#include "sim/play/device_model.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MOST_REPEATS = 101 };

typedef struct bench {
  sn_net *net;
  sn_route *route;
  sn_costs *costs;
  sn_schedule *schedule;
  sn_plan *plan;
} bench;

static double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

static void prepare(bench *b, const sn_device *gpu, sn_err *err) {
  sn_strategy strategy = {.liveness = true, .offload = SN_OFFLOAD_CONV};
  b->net = sn_net_load("resnet:n1=6,n2=32,n3=800,n4=6", 16, 0, err);
  b->route = b->net ? sn_route_new(b->net, SN_DIALECT_SUPERNEURONS, SN_ORDER_ROUTE, err) : NULL;
  b->costs = b->route ? sn_costs_new(b->net, gpu, err) : NULL;
  b->schedule = b->costs ? sn_schedule_new(b->route, strategy.recompute, err) : NULL;
  b->plan =
      b->schedule ? sn_lower(b->schedule, strategy, SN_WORKSPACE_DYNAMIC, b->costs, UINT64_C(1) << 40, err) : NULL;
}

static void release(bench *b) {
  sn_plan_free(b->plan);
  sn_schedule_free(b->schedule);
  sn_costs_free(b->costs);
  sn_route_free(b->route);
  sn_net_free(b->net);
}

static double play_once(const bench *b, const sn_device *gpu, bool shared_link, uint64_t *events, sn_err *err) {
  sn_device_model model = {.device = gpu, .costs = b->costs, .shared_link = shared_link};
  sn_trace trace;
  if (sn_trace_init(&trace, b->plan, err) != SN_OK) return 0;
  double start = now_s();
  sn_play(b->plan, sn_device_model_backend(&model), &trace, err);
  double seconds = now_s() - start;
  *events = trace.events;
  sn_trace_clear(&trace);
  return seconds;
}

int main(int argc, char **argv) {
  int repeats = argc > 1 ? atoi(argv[1]) : 21;
  sn_err err = SN_ERR_INIT;
  sn_device gpu;
  bench b = {0};
  if (repeats < 1 || repeats > MOST_REPEATS) {
    fprintf(stderr, "usage: bench_engine [1..%d]\n", MOST_REPEATS);
    return 2;
  }
  if (sn_device_load("k40c", &gpu, &err) == SN_OK) prepare(&b, &gpu, &err);
  for (int shared = 0; shared < 2 && err.code == SN_OK; shared++) {
    double seconds[MOST_REPEATS];
    uint64_t events = 0;
    for (int i = 0; i < repeats; i++) seconds[i] = play_once(&b, &gpu, shared, &events, &err);
    qsort(seconds, (size_t)repeats, sizeof seconds[0], compare);
    printf("%-13s %8" PRIu64 " events in %7.3f ms: %6.1f M events/s\n", shared ? "shared link" : "separate links",
           events, seconds[repeats / 2] * 1e3, (double)events / seconds[repeats / 2] / 1e6);
  }
  release(&b);
  if (err.code == SN_OK) return 0;
  fprintf(stderr, "bench_engine: %s\n", err.text);
  return sn_status_exit_code(err.code);
}
