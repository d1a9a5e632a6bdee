/* Benchmark of the CPU back end: what executing a plan costs beside the kernels.
 *
 *   OMP_WAIT_POLICY=passive build/bench/bench_run [net [batch [iterations]]]        default: resnet50 8 5
 *
 * For baseline, liveness and liveness+offload+recompute=cost prints images/s and the runner's own overhead: the share
 * of an iteration in which no kernel ran and no fence was waited for.
 */
#include "exec/session.h"
#include "models/zoo.h"

#include <stdio.h>
#include <stdlib.h>

static sn_status measure(sn_session *session, const char *name, sn_err *err) {
  sn_strategy strategy;
  if (sn_strategy_parse(name, &strategy, err) != SN_OK) return err->code;
  return sn_session_add(session, strategy, err);
}

static void print(const sn_result *r) {
  double all = (double)r->iteration_ns, other = all - (double)r->compute_ns - (double)r->stall_ns;
  printf("%-34s %9.1f %9.2f %9.2f %8.3f\n", r->strategy, all / 1e6, r->images_per_second, (double)r->stall_ns / 1e6,
         100 * other / all);
}

int main(int argc, char **argv) {
  static const char *const strategies[] = {"baseline", "liveness", "liveness+offload+recompute=cost"};
  const char *name = argc > 1 ? argv[1] : "resnet50";
  int batch = argc > 2 ? atoi(argv[2]) : 8, iterations = argc > 3 ? atoi(argv[3]) : 5;
  sn_err err = SN_ERR_INIT;
  if (batch < 1 || iterations < 2) {
    fprintf(stderr, "usage: bench_run [net [batch [iterations, at least 2]]]\n");
    return 2;
  }
  sn_net *net = sn_net_load(name, (uint32_t)batch, 0, &err);
  sn_session_options options = SN_SESSION_OPTIONS_INIT;
  options.iterations = (uint64_t)iterations;
  sn_session *session = net ? sn_session_open(name, net, &options, &err) : NULL;
  for (size_t i = 0; i < sizeof strategies / sizeof strategies[0] && err.code == SN_OK; i++)
    measure(session, strategies[i], &err);
  sn_run *run = err.code == SN_OK ? sn_session_take(session, &err) : NULL;
  printf("%s, batch %d, %d iterations\n%-34s %9s %9s %9s %8s\n", name, batch, iterations, "strategy", "iter ms",
         "images/s", "stall ms", "own %");
  for (uint32_t i = 0; run && i < run->n_results; i++) print(&run->results[i]);
  sn_run_free(run);
  sn_session_close(session);
  sn_net_free(net);
  if (err.code == SN_OK) return 0;
  fprintf(stderr, "bench_run: %s\n", err.text);
  return sn_status_exit_code(err.code);
}
