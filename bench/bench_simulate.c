/* Benchmark of the simulator: the figures of docs/measured/performance.md.
 *
 *   build/bench/bench_simulate [repeats [NET]]
 *
 * Times the whole pipeline (route, plan, check, play) after the network is built, median over `repeats` runs (default
 * 9), without the store: all 13 rows of inception_v4, one row of PyTorch's beside one of liveness,
 * superneurons on ResNets from 10^3 to 10^6 layers; of one network alone where it is named, and of one that is not in
 * the list, such as a recording, of strategy pytorch at batch 64 and of reading it, too,
 * of a recording with the bytes that each event takes, once read and at most while it is planned. Memory is kept between
 * questions, as snsim keeps it (cli/main.c). The last column is the process's largest resident set so far, so read it
 * downwards.
 */
#include "models/record/record_net.h"
#include "models/zoo/zoo.h"

#include "sim/ask/simulate.h"
#include "sim/device/device.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

enum { MOST_REPEATS = 101 };

typedef struct question {
  const char *net;
  uint32_t batch;
  const char *strategy; /* NULL: all 13 */
} question;

static const question questions[] = {
    {"alexnet", 200, NULL},
    {"resnet50", 32, NULL},
    {"inception_v4", 64, NULL},
    {"inception_v4", 32, "liveness"},
    {"inception_v4", 32, "pytorch"},
    {"resnet152", 32, "liveness"},
    {"resnet152", 32, "pytorch"},
    {"resnet:n1=6,n2=16,n3=70,n4=6", 1, "superneurons"},
    {"resnet:n1=6,n2=32,n3=800,n4=6", 1, "superneurons"},
    {"resnet:n1=6,n2=32,n3=800,n4=6", 16, "superneurons"},
    {"resnet:n1=6,n2=32,n3=9000,n4=6", 1, "superneurons"},
    {"resnet:n1=6,n2=32,n3=9000,n4=6", 1, "pytorch"},
    {"resnet:n1=6,n2=32,n3=9000,n4=6", 1, NULL},
    {"resnet:n1=6,n2=32,n3=90865,n4=6", 1, "superneurons"},
};

static void keep_memory(void) {
#ifdef __GLIBC__
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
  mallopt(M_TOP_PAD, 1 << 22);
#endif
}

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

static uint64_t events_of(const sn_run *run) {
  uint64_t events = 0;
  for (uint32_t i = 0; i < run->n_results; i++) events += run->results[i].events;
  return events;
}

static bool is_listed(const char *net) {
  for (size_t i = 0; i < sizeof questions / sizeof questions[0]; i++)
    if (strcmp(net, questions[i].net) == 0) return true;
  return false;
}

static long most_kib(void) {
  struct rusage use;
  getrusage(RUSAGE_SELF, &use);
  return use.ru_maxrss;
}

/* Of what is not in the list: reading it, and the memory of a recording's events. */
static void tell_reading(const sn_net *net, double read_ms, const long kib[3]) {
  printf("read in %.2f ms", read_ms);
  if (net->recorded)
    printf("; %u events of %.1f bytes each, with plans of %.1f", net->recorded->record->n_events,
           (double)(kib[1] - kib[0]) * 1024 / net->recorded->record->n_events,
           (double)(kib[2] - kib[0]) * 1024 / net->recorded->record->n_events);
  printf("\n");
}

static sn_status measure(const question *q, const sn_device *gpu, int repeats, sn_err *err) {
  sn_strategy strategies[SN_STRATEGY_DEFAULTS];
  sn_options options = SN_OPTIONS_INIT;
  double ms[MOST_REPEATS];
  uint64_t events = 0;
  for (uint32_t i = 0; i < SN_STRATEGY_DEFAULTS; i++) strategies[i] = sn_strategy_default(i);
  if (q->strategy && sn_strategy_parse(q->strategy, &strategies[0], err) != SN_OK) return err->code;
  uint32_t n_strategies = q->strategy ? 1 : SN_STRATEGY_DEFAULTS;
  double begun = now_ms();
  long kib[3] = {most_kib()}; /* before, when it is read, when it is planned */
  sn_net *net = sn_net_load(q->net, q->batch, 0, err);
  if (!net) return err->code;
  double read_ms = now_ms() - begun;
  kib[1] = most_kib();
  uint32_t layers = net->n_layers;
  for (int i = 0; i < repeats && err->code == SN_OK; i++) {
    double start = now_ms();
    sn_run *run = sn_simulate(q->net, net, gpu, strategies, n_strategies, &options, err);
    ms[i] = now_ms() - start;
    if (run) events = events_of(run);
    sn_run_free(run);
  }
  kib[2] = most_kib();
  if (err->code != SN_OK) return sn_net_free(net), err->code;
  qsort(ms, (size_t)repeats, sizeof ms[0], compare);
  double median = ms[repeats / 2];
  printf("%-34s %5u %7u %-12s %9.2f %9.2f %9.2f %10.2f %8ld\n", q->net, q->batch, layers,
         q->strategy ? q->strategy : "all 13", ms[0], median, ms[repeats - 1], (double)events / median / 1e3,
         kib[2] / 1024);
  if (!is_listed(q->net)) tell_reading(net, read_ms, kib);
  sn_net_free(net);
  return SN_OK;
}

int main(int argc, char **argv) {
  int repeats = argc > 1 ? atoi(argv[1]) : 9;
  sn_err err = SN_ERR_INIT;
  sn_device gpu;
  if (repeats < 1 || repeats > MOST_REPEATS) {
    fprintf(stderr, "usage: bench_simulate [1..%d [NET]]\n", MOST_REPEATS);
    return 2;
  }
  keep_memory();
  if (sn_device_load("k40c", &gpu, &err) == SN_OK)
    printf("%-34s %5s %7s %-12s %9s %9s %9s %10s %8s\n", "network on k40c", "batch", "layers", "strategy", "min ms",
           "median ms", "max ms", "M events/s", "MiB RSS");
  for (size_t i = 0; i < sizeof questions / sizeof questions[0] && err.code == SN_OK; i++)
    if (argc < 3 || strcmp(argv[2], questions[i].net) == 0) measure(&questions[i], &gpu, repeats, &err);
  if (argc > 2 && !is_listed(argv[2]) && err.code == SN_OK)
    measure(&(question){argv[2], 64, "pytorch"}, &gpu, repeats, &err);
  if (err.code == SN_OK) return 0;
  fprintf(stderr, "bench_simulate: %s\n", err.text);
  return sn_status_exit_code(err.code);
}
