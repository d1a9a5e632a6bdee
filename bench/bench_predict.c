/* Benchmark of predictions: calibrates this machine's CPU with a network, then predicts and measures an iteration under
 * every strategy.
 *
 *   OMP_WAIT_POLICY=passive build/bench/bench_predict [net batch]...        default: resnet50 4 alexnet 16
 *
 * Prints predicted and measured time of an iteration, the error, and the largest error of each network. Other work on
 * the machine shows in the figures.
 */
#include "exec/session/calibrate.h"
#include "models/zoo/zoo.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { CALIBRATING = 8, MEASURING = 6 };

/* The session takes it over. */
static sn_calibration *hand_over(void *user, const sn_machine_info *info, sn_err *err) {
  (void)info, (void)err;
  sn_calibration **place = user, *c = *place;
  *place = NULL;
  return c;
}

static void print(const sn_run *run) {
  double worst = 0;
  for (uint32_t i = 0; i + 1 < run->n_results; i += 2) {
    double predicted = (double)run->results[i].iteration_ns, measured = (double)run->results[i + 1].iteration_ns;
    double error = 100 * (predicted / measured - 1);
    worst = fmax(worst, fabs(error));
    printf("%-34s %10.1f %10.1f %+8.1f\n", run->results[i].strategy, predicted / 1e6, measured / 1e6, error);
  }
  printf("%-34s %10s %10s %8.1f\n", "largest error", "", "", worst);
}

static sn_status measure(const char *name, uint32_t batch, sn_err *err) {
  sn_session_options options = SN_SESSION_OPTIONS_INIT;
  sn_net *net = sn_net_load(name, batch, 0, err);
  if (!net) return err->code;
  options.iterations = CALIBRATING;
  sn_calibration *c = sn_calibrate("cpu", name, net, &options, &(sn_calibrate_wish){0}, err);
  options.iterations = MEASURING;
  options.predict = true;
  options.calibration = hand_over;
  options.user = &c;
  sn_session *session = c ? sn_session_open(name, net, &options, err) : NULL;
  for (uint32_t i = 0; session && i < SN_STRATEGY_DEFAULTS && err->code == SN_OK; i++)
    sn_session_add(session, sn_strategy_default(i), err);
  sn_run *run = err->code == SN_OK ? sn_session_take(session) : NULL;
  if (run)
    printf("%s, batch %u, %s\n%-34s %10s %10s %8s\n", name, batch, run->device, "strategy", "predicted ms",
           "measured ms", "error %");
  if (run) print(run);
  sn_run_free(run);
  sn_session_close(session);
  sn_calibration_free(c);
  sn_net_free(net);
  return err->code;
}

int main(int argc, char **argv) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  sn_err err = SN_ERR_INIT;
  if (argc == 1) {
    if (measure("resnet50", 4, &err) == SN_OK) measure("alexnet", 16, &err);
  }
  for (int i = 1; i + 1 < argc && err.code == SN_OK; i += 2) measure(argv[i], (uint32_t)atoi(argv[i + 1]), &err);
  if (err.code == SN_OK) return 0;
  fprintf(stderr, "bench_predict: %s\n", err.text);
  return sn_status_exit_code(err.code);
}
