/* Benchmark of DTR's replays: how long each log takes, all heuristics and budgets.
 *
 *   build/bench/bench_dtr LOG..
 *
 * Runs stop at the first budget that fails, as DTR's figures do. Times are of this process's own CPU. */
#include "sim/dtr/dtr_log.h"
#include "sim/dtr/dtr_replay.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

typedef struct sums {
  unsigned runs;
  double seconds, slowest;
  uint64_t evaluations, evictions;
} sums;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool run(const sn_dtr_program *p, sn_dtr_heuristic h, uint64_t budget, sums *s, sn_err *err) {
  sn_dtr_question q = {.heuristic = h, .budget_bytes = budget, .remake_limit_ns = p->cost_ns};
  sn_dtr_answer a;
  double begin = now();
  if (sn_dtr_play(p, &q, &a, err) != SN_OK) return false;
  double seconds = now() - begin;
  s->runs++;
  s->seconds += seconds;
  s->slowest = seconds > s->slowest ? seconds : s->slowest;
  s->evaluations += a.evaluations;
  s->evictions += a.evictions;
  return a.status == SN_DTR_OK;
}

static sn_status measure(const char *path, sums all[SN_DTR_HEURISTICS], sn_err *err) {
  uint64_t baseline;
  double begin = now();
  sn_dtr_program *p = sn_dtr_log_load(path, err);
  if (!p) return err->code;
  double loaded = now() - begin;
  sums log = {0};
  sn_dtr_baseline(p, &baseline, err);
  for (sn_dtr_heuristic h = 0; h < SN_DTR_HEURISTICS && err->code == SN_OK; h++) {
    bool going = true;
    for (uint32_t b = 0; b < SN_DTR_BUDGETS && going; b++) {
      uint64_t budget = (uint64_t)((double)baseline * sn_dtr_usual_budget(b).ratio);
      sums one = {0};
      going = run(p, h, budget, &one, err);
      for (sums *s = &log; s; s = s == &log ? &all[h] : NULL) {
        s->runs += one.runs;
        s->seconds += one.seconds;
        s->slowest = one.slowest > s->slowest ? one.slowest : s->slowest;
        s->evaluations += one.evaluations;
        s->evictions += one.evictions;
      }
    }
  }
  printf("%-44.44s %8" PRIu32 " %8.3f %5u %9.3f %9.3f %10" PRIu64 " %12" PRIu64 "\n", path, p->n_ops, loaded, log.runs,
         log.seconds, log.slowest, log.evictions, log.evaluations);
  sn_dtr_program_free(p);
  return err->code;
}

int main(int argc, char **argv) {
  sn_err err = SN_ERR_INIT;
  sums all[SN_DTR_HEURISTICS] = {{0}};
  if (argc < 2) {
    fputs("usage: bench_dtr LOG..\n", stderr);
    return 2;
  }
  printf("%-44s %8s %8s %5s %9s %9s %10s %12s\n", "log", "ops", "load s", "runs", "all s", "slowest s", "evictions",
         "evaluations");
  for (int i = 1; i < argc && err.code == SN_OK; i++) measure(argv[i], all, &err);
  for (sn_dtr_heuristic h = 0; h < SN_DTR_HEURISTICS && err.code == SN_OK; h++)
    printf("%-44s %8s %8s %5u %9.3f %9.3f %10" PRIu64 " %12" PRIu64 "\n", sn_dtr_heuristic_name(h), "", "", all[h].runs,
           all[h].seconds, all[h].slowest, all[h].evictions, all[h].evaluations);
  if (err.code != SN_OK) fprintf(stderr, "bench_dtr: %s\n", err.text);
  return sn_status_exit_code(err.code);
}
