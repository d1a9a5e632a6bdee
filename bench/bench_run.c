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

static sn_status measure(const sn_net *net, const char *name, uint64_t iterations, sn_err *err) {
  sn_session_options options = SN_SESSION_OPTIONS_INIT;
  sn_strategy strategy;
  sn_measurement m;
  options.iterations = iterations;
  if (sn_strategy_parse(name, &strategy, err) != SN_OK) return err->code;
  if (sn_session_run(net, strategy, &options, &m, err) != SN_OK) return err->code;
  double last = (double)m.last_ns, other = last - (double)m.compute_ns - (double)m.stall_ns;
  printf("%-34s %9.1f %9.2f %9.2f %8.3f\n", name, (double)m.iteration_ns / 1e6, m.images_per_second,
         (double)m.stall_ns / 1e6, 100 * other / last);
  return SN_OK;
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
  printf("%s, batch %d, %d iterations\n%-34s %9s %9s %9s %8s\n", name, batch, iterations, "strategy", "iter ms",
         "images/s", "stall ms", "own %");
  for (size_t i = 0; net && i < sizeof strategies / sizeof strategies[0] && err.code == SN_OK; i++)
    measure(net, strategies[i], (uint64_t)iterations, &err);
  sn_net_free(net);
  if (err.code == SN_OK) return 0;
  fprintf(stderr, "bench_run: %s\n", err.text);
  return sn_status_exit_code(err.code);
}
