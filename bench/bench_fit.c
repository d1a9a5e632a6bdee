/* Benchmark of the capacity search.
 *
 *   build/bench/bench_fit [repeats [large]]
 *
 * Times sn_fit_largest() with all 13 strategies, networks included, median over `repeats` runs (default 5), and says
 * how many plans it took and how many values it scanned one by one; then sn_fit_memory() and sn_advise(). "large" asks
 * instead what takes longest: the depth where memory is no limit, and advice for 110,000 layers.
 */
#include "models/zoo/zoo.h"

#include "sim/capacity/advise.h"
#include "sim/capacity/fit.h"
#include "sim/device/device.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MOST_REPEATS = 101 };

static const sn_knob_spec specs[] = {
    {SN_KNOB_BATCH, "alexnet", 0, 0, NULL},
    {SN_KNOB_BATCH, "vgg16", 0, 0, NULL},
    {SN_KNOB_BATCH, "inception_v4", 0, 0, NULL},
    {SN_KNOB_BATCH, "resnet50", 0, 0, NULL},
    {SN_KNOB_BATCH, "resnet152", 0, 0, NULL},
    {SN_KNOB_BATCH, "densenet201", 0, 0, NULL},
    {SN_KNOB_DEPTH, "resnet:n1=6,n2=32,n4=6", 16, 0, NULL},
    {SN_KNOB_DEPTH, "resnet:n1=6,n2=32,n4=6", 1, 0, NULL},
    {SN_KNOB_IMAGE, "resnet50", 16, 0, NULL},
};

static const sn_knob_spec endless = {SN_KNOB_DEPTH, "resnet", 1, 0, NULL};

typedef struct bench {
  sn_device gpu;
  sn_strategy strategies[SN_STRATEGY_DEFAULTS];
  sn_options options;
  int repeats;
  double ms[MOST_REPEATS];
} bench;

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

static double median(bench *b) {
  qsort(b->ms, (size_t)b->repeats, sizeof b->ms[0], compare);
  return b->ms[b->repeats / 2];
}

static sn_status measure_fit(bench *b, const sn_knob_spec *spec, sn_err *err) {
  uint32_t plans = 0, best = 0, scanned = 0;
  for (int i = 0; i < b->repeats; i++) {
    sn_knob knob;
    double start = now_ms();
    sn_fit *fit = sn_knob_open(spec, &knob, err) == SN_OK
                      ? sn_fit_largest(&knob, &b->gpu, b->strategies, SN_STRATEGY_DEFAULTS, &b->options, err)
                      : NULL;
    b->ms[i] = now_ms() - start;
    if (!fit) return err->code;
    plans = scanned = 0;
    for (uint32_t a = 0; a < fit->n_answers; a++) {
      const sn_fit_search *s = &fit->answers[a].search;
      plans += s->plans;
      scanned += s->tried_to + 1 - s->tried_from;
      if (s->value > best) best = s->value;
    }
    sn_fit_free(fit);
  }
  double ms = median(b);
  printf("%-6s %-24s %5" PRIu32 " %9" PRIu32 " %6" PRIu32 " %8" PRIu32 " %9.1f %9.1f %9.1f\n", sn_knob_name(spec->kind),
         spec->net, spec->batch, best, plans, scanned, b->ms[0], ms, b->ms[b->repeats - 1]);
  return SN_OK;
}

typedef struct once {
  const char *name, *net;
  uint32_t batch;
  bool advice;
} once;

static sn_status measure_once(bench *b, const once *o, sn_err *err) {
  sn_net *net = sn_net_load(o->net, o->batch, 0, err);
  for (int i = 0; i < b->repeats && err->code == SN_OK; i++) {
    double start = now_ms();
    if (o->advice)
      sn_advice_free(sn_advise(net, &b->gpu, NULL, 0, &b->options, err));
    else
      sn_memory_free(sn_fit_memory(net, &b->gpu, b->strategies, SN_STRATEGY_DEFAULTS, &b->options, err));
    b->ms[i] = now_ms() - start;
  }
  sn_net_free(net);
  double ms = median(b);
  printf("%-6s %-24s %5" PRIu32 " %9s %6s %8s %9.1f %9.1f %9.1f\n", o->name, o->net, o->batch, "", "", "", b->ms[0], ms,
         b->ms[b->repeats - 1]);
  return err->code;
}

static sn_status measure_usual(bench *b, sn_err *err) {
  static const once others[] = {{"memory", "resnet152", 32, false}, {"advise", "resnet152", 32, true}};
  for (size_t i = 0; i < sizeof specs / sizeof specs[0] && err->code == SN_OK; i++) measure_fit(b, &specs[i], err);
  for (size_t i = 0; i < sizeof others / sizeof others[0] && err->code == SN_OK; i++) measure_once(b, &others[i], err);
  return err->code;
}

static sn_status measure_large(bench *b, sn_err *err) {
  const once advice = {"advise", "resnet:n3=10000", 1, true};
  if (measure_once(b, &advice, err) != SN_OK) return err->code;
  b->gpu.memory_bytes = UINT64_C(1) << 52;
  return measure_fit(b, &endless, err);
}

int main(int argc, char **argv) {
  bench b = {.options = SN_OPTIONS_INIT, .repeats = argc > 1 ? atoi(argv[1]) : 5};
  sn_err err = SN_ERR_INIT;
  if (b.repeats < 1 || b.repeats > MOST_REPEATS) {
    fprintf(stderr, "usage: bench_fit [1..%d [large]]\n", MOST_REPEATS);
    return 2;
  }
  for (uint32_t i = 0; i < SN_STRATEGY_DEFAULTS; i++) b.strategies[i] = sn_strategy_default(i);
  if (sn_device_load("k40c", &b.gpu, &err) == SN_OK)
    printf("%-6s %-24s %5s %9s %6s %8s %9s %9s %9s\n", "what", "network on k40c", "batch", "largest", "plans",
           "scanned", "min ms", "median ms", "max ms");
  if (err.code == SN_OK && argc > 2)
    measure_large(&b, &err);
  else if (err.code == SN_OK)
    measure_usual(&b, &err);
  if (err.code == SN_OK) return 0;
  fprintf(stderr, "bench_fit: %s\n", err.text);
  return sn_status_exit_code(err.code);
}
