/* Benchmark of recompute=optimal: how long it takes to find a plan, and what the plan is worth.
 *
 *   build/bench/bench_optimal                       against the rules that re-run, and DTR
 *   build/bench/bench_optimal superneurons [NET]..  with offload, against superneurons; without NET all of the zoo
 *
 * Against the rules the memory is what each of them needs, without workspaces. Against superneurons, with dynamic
 * workspaces, it is the least with which that runs, what it takes without copies, and what it takes of the middle of
 * both; said is how much longer liveness+offload+recompute=optimal takes in that memory, and how much more memory,
 * found in SIXTEENTHS of the way down to the largest step, for that time. Times are of an iteration on a K40c, CPU
 * times of this process's own: for one plan, or for all plans of a network. */
#include "models/zoo/zoo.h"
#include "sim/graph/route.h"
#include "sim/make/make.h"
#include "sim/plan/duration.h"
#include "sim/plan/lower.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SIXTEENTHS = 16 };

typedef struct subject {
  const char *net;
  uint32_t batch;
} subject;

/* What a plan is made from. */
typedef struct bench {
  sn_device gpu;
  sn_net *net;
  sn_route *route;
  sn_costs *costs;
} bench;

static sn_status open_bench(bench *b, const subject *s, sn_err *err) {
  *b = (bench){.net = sn_net_load(s->net, s->batch, 0, err)};
  b->route = b->net ? sn_route_new(b->net, SN_DIALECT_SUPERNEURONS, SN_ORDER_ROUTE, err) : NULL;
  b->costs = b->route && sn_device_load("k40c", &b->gpu, err) == SN_OK ? sn_costs_new(b->net, &b->gpu, err) : NULL;
  return err->code;
}

static void close_bench(bench *b) {
  sn_costs_free(b->costs);
  sn_route_free(b->route);
  sn_net_free(b->net);
}

static double cpu_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static sn_link link_of(const bench *b) {
  return sn_link_of(&b->gpu, SN_EXTERNAL_HOST);
}

static sn_plan *plan_in(const bench *b, sn_strategy strategy, sn_workspace workspace, uint64_t pool_bytes,
                        sn_err *err) {
  sn_schedule *schedule = err->code == SN_OK ? sn_schedule_new(b->route, strategy.recompute, err) : NULL;
  const sn_plan_wish wish = {.schedule = schedule,
                             .costs = b->costs,
                             .link = link_of(b),
                             .strategy = strategy,
                             .workspace = workspace,
                             .placement = SN_PLACEMENT_PACKED,
                             .pool_bytes = pool_bytes};
  sn_plan *plan = schedule ? sn_plan_make(&wish, err) : NULL;
  sn_schedule_free(schedule);
  return plan;
}

/* Forward, backward and updates, with waits for copies. */
static int64_t plan_ns(const bench *b, const sn_plan *plan, sn_err *err) {
  int64_t ns = 0;
  sn_plan_duration(plan, b->costs, link_of(b), &ns, err);
  return ns;
}

static double percent(double is, double of) {
  return (is / of - 1) * 100;
}

/* ---- against the rules that re-run ---- */

static sn_strategy rerunning(sn_recompute recompute) {
  return (sn_strategy){.liveness = SN_LIVENESS_FULL, .recompute = recompute};
}

static void measure_rule(const subject *s, const bench *b, sn_recompute rule, sn_err *err) {
  static const char *const names[SN_RECOMPUTES] = {
      [SN_RECOMPUTE_NONE] = "none", [SN_RECOMPUTE_SPEED] = "speed",   [SN_RECOMPUTE_MEMORY] = "memory",
      [SN_RECOMPUTE_COST] = "cost", [SN_RECOMPUTE_OPTIMAL] = "least", [SN_RECOMPUTE_SQRT] = "sqrt"};
  sn_plan *plan =
      plan_in(b, rerunning(rule), SN_WORKSPACE_NONE, rule == SN_RECOMPUTE_OPTIMAL ? 0 : UINT64_C(1) << 40, err);
  double from = cpu_ms();
  sn_plan *best = plan ? plan_in(b, rerunning(SN_RECOMPUTE_OPTIMAL), SN_WORKSPACE_NONE, plan->pool_bytes, err) : NULL;
  double took = cpu_ms() - from;
  sn_plan *dtr = best ? plan_in(b, rerunning(SN_RECOMPUTE_DTR), SN_WORKSPACE_NONE, plan->pool_bytes, err) : NULL;
  if (dtr) {
    int64_t ns = plan_ns(b, plan, err), best_ns = plan_ns(b, best, err), dtr_ns = plan_ns(b, dtr, err);
    char by_dtr[40] = "-";
    if (sn_plan_fits(dtr)) snprintf(by_dtr, sizeof by_dtr, "%.2f", (double)dtr_ns / 1e6);
    printf("%-34s %5" PRIu32 " %-8s %9.1f %10.2f %10s %10.2f %+8.2f %9.1f\n", s->net, s->batch, names[rule],
           (double)plan->pool_bytes / 1048576, (double)ns / 1e6, by_dtr, (double)best_ns / 1e6,
           percent((double)best_ns, (double)ns), took);
  }
  sn_plan_free(plan);
  sn_plan_free(best);
  sn_plan_free(dtr);
}

static sn_status against_rules(const subject *s, sn_err *err) {
  static const sn_recompute rules[] = {SN_RECOMPUTE_NONE, SN_RECOMPUTE_SPEED, SN_RECOMPUTE_MEMORY,
                                       SN_RECOMPUTE_COST, SN_RECOMPUTE_SQRT,  SN_RECOMPUTE_OPTIMAL};
  bench b;
  open_bench(&b, s, err);
  for (size_t r = 0; r < sizeof rules / sizeof *rules && err->code == SN_OK; r++) measure_rule(s, &b, rules[r], err);
  close_bench(&b);
  return err->code;
}

/* ---- against superneurons ---- */

static const sn_strategy superneurons = {
    .liveness = SN_LIVENESS_FULL, .offload = SN_OFFLOAD_CACHE, .recompute = SN_RECOMPUTE_COST};
static const sn_strategy both = {
    .liveness = SN_LIVENESS_FULL, .offload = SN_OFFLOAD_PLANNED, .recompute = SN_RECOMPUTE_OPTIMAL};

/* What a strategy makes of a pool. */
typedef struct outcome {
  uint64_t bytes;
  int64_t ns; /* INT64_MAX: it does not fit */
} outcome;

static outcome outcome_in(const bench *b, sn_strategy strategy, uint64_t pool_bytes, sn_err *err) {
  sn_plan *plan = plan_in(b, strategy, SN_WORKSPACE_DYNAMIC, pool_bytes, err);
  outcome o = {.ns = INT64_MAX};
  if (plan) {
    o.bytes = plan->pool_bytes;
    if (sn_plan_fits(plan)) o.ns = plan_ns(b, plan, err);
  }
  sn_plan_free(plan);
  return o;
}

/* The least pool in which it is as fast, to a sixteenth of the way from the floor to `from`; UINT64_MAX: not even
 * there. */
static uint64_t least_pool(const bench *b, uint64_t floor, uint64_t from, int64_t from_ns, int64_t ns, sn_err *err) {
  uint64_t low = 0, high = SIXTEENTHS, bytes = from_ns <= ns ? from : UINT64_MAX;
  while (low < high && bytes < UINT64_MAX) {
    uint64_t middle = (low + high) / 2, pool = floor + (from - floor) / SIXTEENTHS * middle;
    outcome o = outcome_in(b, both, pool, err);
    if (o.ns <= ns) {
      bytes = o.bytes;
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return bytes;
}

static void compare_in(const bench *b, uint64_t floor, outcome theirs, sn_err *err) {
  outcome ours = outcome_in(b, both, theirs.bytes, err);
  uint64_t least = least_pool(b, floor, theirs.bytes, ours.ns, theirs.ns, err);
  printf(" %.0f | %.2f | %+.1f |", (double)theirs.bytes / 1048576, (double)theirs.ns / 1e6,
         ours.ns < INT64_MAX ? percent((double)ours.ns, (double)theirs.ns) : INFINITY);
  printf(" %+.1f |", least < UINT64_MAX ? percent((double)least, (double)theirs.bytes) : INFINITY);
  fflush(stdout);
}

/* With the least it runs with, with half way to what it takes where nothing has to leave, and with that. */
static sn_status against_superneurons(const subject *s, sn_err *err) {
  bench b;
  double from = cpu_ms();
  if (open_bench(&b, s, err) == SN_OK) {
    uint64_t floor = sn_lower_floor(b.route, SN_WORKSPACE_DYNAMIC, b.costs, NULL);
    outcome least = outcome_in(&b, superneurons, floor, err),
            most = outcome_in(&b, superneurons, UINT64_C(1) << 42, err);
    printf("| %s | %" PRIu32 " |", s->net, s->batch);
    compare_in(&b, floor, least, err);
    compare_in(&b, floor, outcome_in(&b, superneurons, least.bytes + (most.bytes - least.bytes) / 2, err), err);
    compare_in(&b, floor, most, err);
    printf(" %.1f |\n", (cpu_ms() - from) / 1e3);
  }
  close_bench(&b);
  return err->code;
}

/* Networks by name, or all of the zoo: 16 images, or one sequence. */
static sn_status against_superneurons_all(char **names, int count, sn_err *err) {
  uint32_t entries;
  const sn_zoo_entry *zoo = sn_zoo_entries(&entries);
  printf("| network | batch | least: MiB | its ms | time %% | memory %% | half: MiB | its ms | time %% | memory %% "
         "| no copies: MiB | its ms | time %% | memory %% | CPU s |\n");
  for (int i = 0; i < 15; i++) printf("|---");
  printf("|\n");
  for (uint32_t i = 0; i < (count > 0 ? (uint32_t)count : entries) && err->code == SN_OK; i++) {
    const char *name = count > 0 ? names[i] : zoo[i].name;
    against_superneurons(&(subject){name, sn_net_is_sequence(name) ? 1 : 16}, err);
  }
  return err->code;
}

int main(int argc, char **argv) {
  static const subject subjects[] = {{"alexnet", 200},     {"vgg16", 32},       {"vgg19", 32},
                                     {"resnet50", 32},     {"resnet101", 16},   {"resnet152", 16},
                                     {"inception_v4", 16}, {"densenet121", 16}, {"resnet:n1=6,n2=32,n3=120,n4=6", 4}};
  sn_err err = SN_ERR_INIT;
  if (argc > 1 && strcmp(argv[1], "superneurons") == 0) {
    against_superneurons_all(argv + 2, argc - 2, &err);
  } else {
    printf("%-34s %5s %-8s %9s %10s %10s %10s %8s %9s\n", "network", "batch", "memory", "pool MiB", "rule ms", "dtr ms",
           "optimal ms", "%", "CPU ms");
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects && err.code == SN_OK; i++)
      against_rules(&subjects[i], &err);
  }
  if (err.code == SN_OK) return 0;
  fprintf(stderr, "bench_optimal: %s\n", err.text);
  return 1;
}
