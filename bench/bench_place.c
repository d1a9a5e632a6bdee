/* Benchmark of packing: how close, how fast.
 *
 *   build/bench/bench_place [[--capacity BYTES] FILE.csv ...]
 *
 * Of files it also says what the exact search finds, from there on: the least, or the first that fits a capacity.
 * Without files the blocks are made up: stacks of outputs that wait for their backward step with workspaces between,
 * and blocks thrown at random with short and long lives, from 2,000 to 200,000. Times are of this process's own CPU. */
#include "base/units.h"

#include "models/zoo/zoo.h"
#include "sim/ask/blocks.h"
#include "sim/device/device.h"
#include "sim/graph/route.h"
#include "sim/memory/pack_exact.h"
#include "sim/plan/lower.h"
#include "sim/plan/place.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t dice = 1;

static uint64_t below(uint64_t n) { /* xorshift64* */
  dice ^= dice >> 12;
  dice ^= dice << 25;
  dice ^= dice >> 27;
  return (dice * UINT64_C(2685821657736338717) >> 11) % n;
}

/* Outputs nested in one another, a gradient beside each, a workspace here and there. */
static void make_stack(sn_block *blocks, uint32_t n) {
  uint32_t layers = n / 3;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t layer = i % layers;
    uint64_t at = below(2 * layers);
    if (i < layers)
      blocks[i] = (sn_block){layer, 2 * layers - layer, 1024 * (1 + below(200))};
    else if (i < 2 * layers)
      blocks[i] = (sn_block){2 * layers - layer - 1, 2 * layers - layer + 1, 1024 * (1 + below(200))};
    else
      blocks[i] = (sn_block){at, at + 1, 1024 * (1 + below(5000))};
  }
}

static void make_random(sn_block *blocks, uint32_t n, uint64_t life) {
  for (uint32_t i = 0; i < n; i++) {
    uint64_t at = below(10 * (uint64_t)n);
    blocks[i] = (sn_block){at, at + 1 + below(10 * life), 1024 * (1 + below(1000))};
  }
}

static double cpu_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void print_row(const char *name, uint32_t n, const sn_packing *p, uint64_t tries, double ms) {
  printf("%-40s %8" PRIu32 " %14" PRIu64 " %8.4f %9" PRIu64 " %9.1f\n", name, n, p->bytes,
         p->lower_bound ? (double)p->bytes / (double)p->lower_bound : 1, tries, ms);
}

static sn_status measure(const char *name, const sn_block *blocks, uint32_t n, sn_err *err) {
  uint64_t *offsets = calloc((size_t)n + 1, sizeof *offsets);
  sn_packing p;
  if (!offsets) return sn_fail_memory(err);
  double from = cpu_ms();
  sn_pack(blocks, n, &(sn_pack_limits)SN_PACK_LIMITS_INIT, offsets, &p, err);
  if (err->code == SN_OK) print_row(name, n, &p, p.moves, cpu_ms() - from);
  free(offsets);
  return err->code;
}

/* As many tries are nodes here. */
static sn_status measure_exactly(const sn_block *blocks, uint32_t n, uint64_t capacity, sn_err *err) {
  uint64_t *offsets = calloc((size_t)n + 1, sizeof *offsets);
  sn_packing p;
  sn_exact exact = {0};
  sn_exact_limits limits = {.capacity = capacity, .nodes = SN_EXACT_NODES};
  if (!offsets) return sn_fail_memory(err);
  sn_pack(blocks, n, &(sn_pack_limits)SN_PACK_LIMITS_INIT, offsets, &p, err);
  double from = cpu_ms();
  if (err->code == SN_OK) sn_pack_exact(blocks, n, &limits, offsets, &p, &exact, err);
  if (err->code == SN_OK)
    print_row(exact.floor == p.bytes ? "  exactly, proved" : "  exactly", n, &p, exact.nodes, cpu_ms() - from);
  free(offsets);
  return err->code;
}

/* The blocks of a plan are packed in place: its pool before and after. */
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
    uint64_t first_fit = plan->pool_bytes;
    double from = cpu_ms();
    sn_place(plan, (sn_place_goal){0}, NULL, err);
    double ms = cpu_ms() - from;
    printf("%-32s %5" PRIu32 " %-30s %8.4f %8.4f %8.1f\n", spec, batch, strategy,
           (double)first_fit / (double)plan->reserved_peak, (double)plan->pool_bytes / (double)plan->reserved_peak, ms);
  }
  sn_plan_free(plan);
  sn_schedule_free(schedule);
  sn_costs_free(costs);
  sn_route_free(route);
  sn_net_free(net);
  return err->code;
}

static sn_status measure_plans(sn_err *err) {
  static const char *const nets[] = {"alexnet", "inception_v4", "densenet201", "resnet:n1=6,n2=32,n3=800,n4=6"};
  static const char *const strategies[] = {"liveness", "liveness+offload", "liveness+cache", "superneurons"};
  printf("\n%-32s %5s %-30s %8s %8s %8s\n", "plans, pool / lower bound", "batch", "strategy", "first fit", "packed",
         "CPU ms");
  for (int n = 0; n < 4; n++)
    for (int s = 0; s < 4 && err->code == SN_OK; s++) measure_plan(nets[n], n < 3 ? 64 : 1, strategies[s], err);
  return err->code;
}

static sn_status measure_files(int count, char **paths, uint64_t capacity, sn_err *err) {
  for (int i = 0; i < count && err->code == SN_OK; i++) {
    sn_block_list *list = sn_blocks_load(paths[i], err);
    if (list && measure(paths[i], list->blocks, list->count, err) == SN_OK)
      measure_exactly(list->blocks, list->count, capacity, err);
    sn_blocks_free(list);
  }
  return err->code;
}

static sn_status measure_made(sn_err *err) {
  static const uint32_t sizes[] = {2000, 30000, 200000};
  sn_block *blocks = calloc(sizes[2], sizeof *blocks);
  if (!blocks) return sn_fail_memory(err);
  for (int i = 0; i < 3 && err->code == SN_OK; i++) {
    uint32_t n = sizes[i];
    make_stack(blocks, n);
    measure("stack", blocks, n, err);
    make_random(blocks, n, 50);
    if (err->code == SN_OK) measure("random, short lives", blocks, n, err);
    make_random(blocks, n, n);
    if (err->code == SN_OK) measure("random, long lives", blocks, n, err);
  }
  free(blocks);
  return err->code;
}

int main(int argc, char **argv) {
  sn_err err = SN_ERR_INIT;
  uint64_t capacity = 0;
  int files = argc > 2 && strcmp(argv[1], "--capacity") == 0 ? 3 : 1;
  if (files == 3) sn_parse_count(argv[2], "--capacity", 1, UINT64_MAX, &capacity, &err);
  printf("%-40s %8s %14s %8s %9s %9s\n", "blocks", "count", "bytes", "/ bound", "tries", "CPU ms");
  if (argc > 1)
    measure_files(argc - files, argv + files, capacity, &err);
  else
    measure_made(&err);
  if (argc == 1 && err.code == SN_OK) measure_plans(&err);
  if (err.code == SN_OK) return 0;
  fprintf(stderr, "bench_place: %s\n", err.text);
  return 1;
}
