/* Benchmark of the co-run policies: how long each takes to schedule, and what comes out.
 *
 *   build/bench/bench_corun [net batch strategy [gpu [policy]]]
 *
 * Without arguments Inception-v3, without recomputation and with it, and a ResNet of 9,300 layers. Operations and times
 * are made before; the best of five, one of the deep one, in this process's own CPU time. */
#include "models/zoo/zoo.h"
#include "sim/corun/schedule.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double cpu_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

typedef struct question {
  const sn_ops *ops;
  const sn_times *times;
  const sn_cores *cores;
} question;

static sn_status measure(const question *q, const char *name, uint64_t budget, sn_err *err) {
  sn_policy policy;
  sn_corun_facts facts;
  double best = 0;
  if (sn_policy_parse(name, &policy, err) != SN_OK) return err->code;
  for (int i = 0; i < (q->ops->n_ops > 10000 ? 1 : 5); i++) {
    double from = cpu_ms();
    sn_timetable *t = sn_corun_schedule(q->ops, q->times, q->cores, policy, budget, &facts, err);
    double ms = cpu_ms() - from;
    if (!t) return err->code;
    if (i == 0 || ms < best) best = ms;
    if (i == 0)
      printf("%-8s %-8s %12.3f %8.3f %8.0f %8.2f %10.1f", name, budget == SN_BUDGET_ANY ? "any" : "serial",
             (double)t->end_ns / 1e6, (double)facts.serial_ns / (double)t->end_ns,
             100 * (double)t->end_ns / (double)facts.bound_ns, facts.average_corun, (double)t->peak_bytes / 1048576);
    sn_timetable_free(t);
  }
  printf(" %10.2f\n", best);
  return SN_OK;
}

static sn_status measure_all(const question *q, const char *only, sn_err *err) {
  static const char *const all[] = {"2x34", "s1", "s12", "s123", "s1234", "path", "manual", "best"};
  static const uint64_t budgets[] = {SN_BUDGET_SERIAL, SN_BUDGET_ANY};
  uint32_t n = q->ops->n_ops > 10000 ? 6 : 8; /* what tries all workers is not for deep networks */
  puts("policy   budget           ms  speedup  bound % average  peak MiB     CPU ms");
  for (uint32_t b = 0; b < 2; b++)
    for (uint32_t i = 0; i < (only ? 1 : n) && err->code == SN_OK; i++)
      measure(q, only ? only : all[i], budgets[b], err);
  return err->code;
}

static sn_status measure_net(const char *spec, uint32_t batch, const char *strategy, const char *gpu,
                             const char *policy, sn_err *err) {
  sn_strategy s;
  sn_device device;
  bool good = sn_strategy_parse(strategy, &s, err) == SN_OK && sn_device_load(gpu, &device, err) == SN_OK;
  sn_net *net = good ? sn_net_load(spec, batch, 0, err) : NULL;
  sn_route *route = net ? sn_schedule_route(net, s, (sn_iteration){.accumulate = 1}, NULL, err) : NULL;
  sn_schedule *schedule = route ? sn_schedule_new(route, s.recompute, err) : NULL;
  sn_ops *ops = schedule ? sn_ops_new(schedule, err) : NULL;
  sn_times *times = ops ? sn_times_new(route, &device, SN_OPTIMIZER_MOMENTUM, 4, NULL, err) : NULL;
  if (times) {
    printf("%s, batch %" PRIu32 ", %s, %s: %" PRIu32 " operations, %" PRIu32 " classes\n", spec, batch, strategy, gpu,
           ops->n_ops, times->n_classes);
    measure_all(&(question){ops, times, &device.cores}, policy, err);
  }
  sn_times_free(times);
  sn_ops_free(ops);
  sn_schedule_free(schedule);
  sn_route_free(route);
  sn_net_free(net);
  return err->code;
}

int main(int argc, char **argv) {
  sn_err err = SN_ERR_INIT;
  if (argc > 3) {
    measure_net(argv[1], (uint32_t)strtoul(argv[2], NULL, 10), argv[3], argc > 4 ? argv[4] : "knl7250",
                argc > 5 ? argv[5] : NULL, &err);
  } else {
    static const char *const deep = "resnet:n1=6,n2=32,n3=3060,n4=6";
    measure_net("inception_v3", 16, "liveness", "knl7250", NULL, &err);
    if (err.code == SN_OK) measure_net("inception_v3", 16, "liveness+recompute=speed", "knl7250", NULL, &err);
    if (err.code == SN_OK) measure_net(deep, 1, "liveness", "knl7250", NULL, &err);
    if (err.code == SN_OK) measure_net(deep, 1, "liveness+recompute=speed", "knl7250", NULL, &err);
  }
  if (err.code != SN_OK) fprintf(stderr, "%s\n", err.text);
  return sn_status_exit_code(err.code);
}
