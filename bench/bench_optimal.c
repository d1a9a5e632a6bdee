/* Benchmark of recompute=optimal: how long it takes to find a plan, and what the plan is worth.
 *
 *   build/bench/bench_optimal
 *
 * For each network the memory is what each other rule needs, without workspaces; times are of an iteration on a K40c,
 * CPU times of this process's own, for one plan. */
#include "models/zoo.h"
#include "sim/plan/make.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef struct subject {
  const char *net;
  uint32_t batch;
} subject;

static double cpu_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static double compute_ms(const sn_plan *plan, const sn_costs *costs) {
  int64_t ns = 0;
  for (uint32_t i = 0; i < plan->n_instrs; i++) {
    if (plan->instrs[i].kind != SN_COMPUTE) continue;
    const sn_step *step = &plan->route->steps[plan->instrs[i].id];
    ns += sn_costs_step(costs, step->layer, step->pass, plan->instrs[i].algo);
  }
  return (double)ns / 1e6;
}

static sn_plan *plan_in(const sn_route *route, const sn_costs *costs, sn_recompute recompute, uint64_t pool_bytes,
                        sn_err *err) {
  sn_schedule *schedule = sn_schedule_new(route, recompute, err);
  const sn_plan_wish wish = {.schedule = schedule,
                             .costs = costs,
                             .strategy = {.liveness = SN_LIVENESS_FULL, .recompute = recompute},
                             .workspace = SN_WORKSPACE_NONE,
                             .placement = SN_PLACEMENT_PACKED,
                             .pool_bytes = pool_bytes};
  sn_plan *plan = schedule ? sn_plan_make(&wish, err) : NULL;
  sn_schedule_free(schedule);
  return plan;
}

static void measure_rule(const subject *s, const sn_route *route, const sn_costs *costs, sn_recompute rule,
                         sn_err *err) {
  static const char *const names[SN_RECOMPUTES] = {
      [SN_RECOMPUTE_NONE] = "none", [SN_RECOMPUTE_SPEED] = "speed",     [SN_RECOMPUTE_MEMORY] = "memory",
      [SN_RECOMPUTE_COST] = "cost", [SN_RECOMPUTE_OPTIMAL] = "optimal", [SN_RECOMPUTE_SQRT] = "sqrt"};
  sn_plan *plan = plan_in(route, costs, rule, rule == SN_RECOMPUTE_OPTIMAL ? 0 : UINT64_C(1) << 40, err);
  double from = cpu_ms();
  sn_plan *best = plan ? plan_in(route, costs, SN_RECOMPUTE_OPTIMAL, plan->pool_bytes, err) : NULL;
  double took = cpu_ms() - from;
  if (best)
    printf("%-34s %5" PRIu32 " %-8s %9.1f %10.2f %10.2f %+8.2f %9.1f\n", s->net, s->batch,
           rule == SN_RECOMPUTE_OPTIMAL ? "least" : names[rule], (double)plan->pool_bytes / 1048576,
           compute_ms(plan, costs), compute_ms(best, costs),
           (compute_ms(best, costs) / compute_ms(plan, costs) - 1) * 100, took);
  sn_plan_free(plan);
  sn_plan_free(best);
}

static sn_status measure(const subject *s, sn_err *err) {
  sn_device gpu;
  sn_net *net = sn_net_load(s->net, s->batch, 0, err);
  sn_route *route = net ? sn_route_new(net, SN_DIALECT_SUPERNEURONS, SN_ORDER_ROUTE, err) : NULL;
  sn_costs *costs = route && sn_device_load("k40c", &gpu, err) == SN_OK ? sn_costs_new(net, &gpu, err) : NULL;
  static const sn_recompute rules[] = {SN_RECOMPUTE_NONE, SN_RECOMPUTE_SPEED, SN_RECOMPUTE_MEMORY,
                                       SN_RECOMPUTE_COST, SN_RECOMPUTE_SQRT,  SN_RECOMPUTE_OPTIMAL};
  for (size_t r = 0; costs && r < sizeof rules / sizeof *rules && err->code == SN_OK; r++)
    measure_rule(s, route, costs, rules[r], err);
  sn_costs_free(costs);
  sn_route_free(route);
  sn_net_free(net);
  return err->code;
}

int main(void) {
  static const subject subjects[] = {{"alexnet", 200},     {"vgg16", 32},       {"vgg19", 32},
                                     {"resnet50", 32},     {"resnet101", 16},   {"resnet152", 16},
                                     {"inception_v4", 16}, {"densenet121", 16}, {"resnet:n1=6,n2=32,n3=120,n4=6", 4}};
  sn_err err = SN_ERR_INIT;
  printf("%-34s %5s %-8s %9s %10s %10s %8s %9s\n", "network", "batch", "memory", "pool MiB", "rule ms", "optimal ms",
         "%", "CPU ms");
  for (size_t i = 0; i < sizeof subjects / sizeof *subjects && err.code == SN_OK; i++) measure(&subjects[i], &err);
  if (err.code == SN_OK) return 0;
  fprintf(stderr, "bench_optimal: %s\n", err.text);
  return 1;
}
