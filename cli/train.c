/* Training from the command line; see the header. */
#include "cli/train.h"

#include "cli/out.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Idle OpenMP threads spin, which costs far more than it gains where processors are shared. OpenMP reads its policy
 * when it is loaded: set it and begin again. Where that fails the run is slower, not wrong. */
static void wait_passively(char *const *argv) {
  if (!getenv("OMP_WAIT_POLICY") && setenv("OMP_WAIT_POLICY", "passive", 1) == 0) execv("/proc/self/exe", argv);
}

/* The signal waits until it is asked for. */
static void hold_interrupt(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigprocmask(SIG_BLOCK, &set, NULL);
}

bool sn_train_interrupted(void) {
  sigset_t set;
  return sigpending(&set) == 0 && sigismember(&set, SIGINT) == 1;
}

static bool is_interrupted(void *unused) {
  (void)unused;
  return sn_train_interrupted();
}

void sn_train_prepare(const sn_args *args) {
  wait_passively(args->argv);
  hold_interrupt();
}

uint32_t sn_train_strategies(const sn_args *args, sn_strategy strategies[SN_ARGS_STRATEGIES]) {
  uint32_t count = args->n_strategies ? args->n_strategies : SN_STRATEGY_DEFAULTS;
  for (uint32_t i = 0; i < count; i++)
    strategies[i] = args->n_strategies ? args->strategies[i] : sn_strategy_default(i);
  return count;
}

sn_session_options sn_train_options(const sn_args *args) {
  sn_session_options options = SN_SESSION_OPTIONS_INIT;
  options.backend = args->backend;
  options.iterations = args->iterations;
  options.machine.threads = args->threads;
  options.machine.check = args->check;
  options.machine.deterministic = args->deterministic;
  options.machine.tf32 = args->tf32;
  options.machine.hyper = args->hyper;
  options.pool_bytes = args->pool.bytes;
  options.data = args->data;
  return options;
}

typedef struct trainer {
  const sn_args *args;
  const sn_net *net;
  const sn_session_options *options;
  uint32_t done, n_strategies;
  char current[SN_STRATEGY_TEXT];
} trainer;

static double seconds_left(const trainer *t, uint64_t iteration, double seconds) {
  double rest = (double)(t->options->iterations - 1 - iteration);
  return seconds * (rest + (double)(t->n_strategies - 1 - t->done) * (double)t->options->iterations);
}

static void show_progress(void *user, uint64_t iteration, const sn_outcome *outcome, int64_t ns) {
  const trainer *t = user;
  char line[240];
  double seconds = (double)ns / 1e9;
  snprintf(line, sizeof line,
           "%s (%u of %u): iteration %" PRIu64 " of %" PRIu64 ", loss %.4f, %.2f images/s, %.0f s left", t->current,
           t->done + 1, t->n_strategies, iteration + 1, t->options->iterations, outcome->loss, t->net->batch / seconds,
           seconds_left(t, iteration, seconds));
  sn_out_progress(line);
}

static sn_status visit(void *user, uint64_t iteration, const sn_plan *plan, const sn_trace *trace, sn_err *err) {
  const sn_session_options *o = ((const trainer *)user)->options;
  return o->visit ? o->visit(o->user, iteration, plan, trace, err) : SN_OK;
}

static void train_all(trainer *t, sn_session *session, sn_err *err) {
  sn_strategy strategies[SN_ARGS_STRATEGIES];
  t->n_strategies = sn_train_strategies(t->args, strategies);
  for (t->done = 0; t->done < t->n_strategies && err->code == SN_OK && !sn_train_interrupted(); t->done++) {
    sn_strategy_name(strategies[t->done], t->current);
    sn_session_add(session, strategies[t->done], err);
    sn_out_progress(NULL);
  }
}

sn_run *sn_train(const sn_args *args, const sn_net *net, const sn_session_options *wanted, sn_err *err) {
  trainer t = {.args = args, .net = net, .options = wanted};
  sn_session_options options = *wanted;
  sn_err taking = SN_ERR_INIT;
  options.stop = is_interrupted;
  options.progress = show_progress;
  options.visit = visit;
  options.user = &t;
  sn_session *session = sn_session_open(args->net, net, &options, err);
  if (!session) return NULL;
  train_all(&t, session, err);
  sn_run *run = sn_session_take(session, &taking);
  if (taking.code != SN_OK && err->code == SN_OK) *err = taking;
  sn_session_close(session);
  if (run && run->n_results > 0) return run;
  sn_run_free(run);
  return NULL;
}

/* Results of stopped or failed trainings have no digest. */
sn_status sn_train_judge(const sn_run *run, sn_err *err) {
  const sn_result *first = NULL;
  for (uint32_t i = 0; i < run->n_results; i++) {
    const sn_result *r = &run->results[i];
    if (r->digest == 0) continue;
    if (!first) first = r;
    if (r->digest != first->digest)
      return sn_fail(err, SN_BUG, "%s gives another result than %s; please report it", r->strategy, first->strategy);
  }
  return SN_OK;
}
