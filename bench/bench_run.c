/* Benchmark of the CPU back end: speed with and without each technique, and what executing a plan costs beside the
 * kernels.
 *
 *   OMP_WAIT_POLICY=passive build/bench/bench_run [net batch]...
 *
 * Without arguments alexnet 8, vgg16 2, resnet50 8, resnet152 2 and inception_v4 2. For every network and technique
 * prints the pool, images/s, what computing waited for copies, and the runner's own overhead: the share of an iteration
 * in which no kernel ran and no fence was waited for. bench/pytorch_eager.py does the same networks in PyTorch.
 */
#include "exec/session/session.h"
#include "models/zoo/zoo.h"

#include <stdio.h>
#include <stdlib.h>

enum { ITERATIONS = 3 };

static const char *const strategies[] = {"baseline",
                                         "liveness",
                                         "liveness+offload",
                                         "liveness+recompute=cost",
                                         "liveness+offload+recompute=cost",
                                         "liveness+cache+recompute=cost"};

static void print(const sn_result *r) {
  double all = (double)r->iteration_ns, other = all - (double)r->compute_ns - (double)r->stall_ns;
  printf("  %-34s %10.1f %9.1f %9.2f %9.2f %7.3f\n", r->strategy, (double)r->pool_bytes / 1048576, all / 1e6,
         r->images_per_second, (double)r->stall_ns / 1e6, 100 * other / all);
}

static sn_status add_all(sn_session *session, sn_err *err) {
  for (size_t i = 0; i < sizeof strategies / sizeof strategies[0] && err->code == SN_OK; i++) {
    sn_strategy strategy;
    if (sn_strategy_parse(strategies[i], &strategy, err) == SN_OK) sn_session_add(session, strategy, err);
  }
  return err->code;
}

static sn_status measure(const char *name, uint32_t batch, sn_err *err) {
  sn_session_options options = SN_SESSION_OPTIONS_INIT;
  options.iterations = ITERATIONS;
  sn_net *net = sn_net_load(name, batch, 0, err);
  sn_session *session = net ? sn_session_open(name, net, &options, err) : NULL;
  sn_run *run = session && add_all(session, err) == SN_OK ? sn_session_take(session) : NULL;
  if (run)
    printf("%s, batch %u, %s\n  %-34s %10s %9s %9s %9s %7s\n", name, batch, run->device, "strategy", "pool MiB",
           "iter ms", "images/s", "stall ms", "own %");
  for (uint32_t i = 0; run && i < run->n_results; i++) print(&run->results[i]);
  sn_run_free(run);
  sn_session_close(session);
  sn_net_free(net);
  return err->code;
}

int main(int argc, char **argv) {
  static char *usual[] = {"", "alexnet", "8", "vgg16", "2", "resnet50", "8", "resnet152", "2", "inception_v4", "2"};
  sn_err err = SN_ERR_INIT;
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (argc == 1) argc = sizeof usual / sizeof usual[0], argv = usual;
  for (int i = 1; i + 1 < argc && err.code == SN_OK; i += 2) measure(argv[i], (uint32_t)atoi(argv[i + 1]), &err);
  if (err.code == SN_OK) return 0;
  fprintf(stderr, "bench_run: %s\n", err.text);
  return sn_status_exit_code(err.code);
}
