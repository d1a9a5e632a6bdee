/* `snsim run`: trains a network for real by the plans of one or several strategies and prints what was measured beside
 * what was planned, and whether every strategy gave the same result as the first, to the bit. */
#include "cli/json.h"
#include "cli/options.h"
#include "cli/out.h"
#include "cli/table.h"
#include "exec/session.h"
#include "models/zoo.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const double MIB = 1048576.0;

/* Ctrl-C ends the run after the current step, and what was measured is kept: the signal waits until it is asked for. */
static void hold_interrupt(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigprocmask(SIG_BLOCK, &set, NULL);
}

static bool is_interrupted(void *unused) {
  sigset_t set;
  (void)unused;
  return sigpending(&set) == 0 && sigismember(&set, SIGINT) == 1;
}

/* Idle OpenMP threads spin, which costs far more than it gains where processors are shared. OpenMP reads its policy
 * when it is loaded: set it and begin again. Where that fails the run is slower, not wrong. */
static void wait_passively(char *const *argv) {
  if (!getenv("OMP_WAIT_POLICY") && setenv("OMP_WAIT_POLICY", "passive", 1) == 0) execv("/proc/self/exe", argv);
}

typedef struct trainer {
  const sn_args *args;
  sn_net *net;
  sn_strategy strategies[SN_ARGS_STRATEGIES];
  uint32_t n_strategies;
  sn_measurement measured[SN_ARGS_STRATEGIES];
  uint32_t n_measured;
  char current[SN_STRATEGY_TEXT];
} trainer;

static void show_progress(void *user, uint64_t iteration, double loss, int64_t ns) {
  const trainer *t = user;
  char line[200];
  double seconds = (double)ns / 1e9, left = seconds * (double)(t->args->iterations - 1 - iteration);
  snprintf(line, sizeof line, "%s: iteration %" PRIu64 " of %u, loss %.4f, %.2f images/s, %.0f s left for it",
           t->current, iteration + 1, t->args->iterations, loss, t->net->batch / seconds, left);
  sn_out_progress(line);
}

static sn_status train_all(trainer *t, sn_err *err) {
  sn_session_options options = SN_SESSION_OPTIONS_INIT;
  options.iterations = t->args->iterations;
  options.threads = t->args->threads;
  options.pool_bytes = t->args->pool.bytes;
  options.check = t->args->check;
  options.stop = is_interrupted;
  options.progress = show_progress;
  options.user = t;
  for (uint32_t i = 0; i < t->n_strategies && !is_interrupted(NULL); i++) {
    sn_strategy_name(t->strategies[i], t->current);
    sn_status status = sn_session_run(t->net, t->strategies[i], &options, &t->measured[i], err);
    sn_out_progress(NULL);
    if (status != SN_OK) {
      sn_err_prefix(err, "strategy %s", t->current);
      return status;
    }
    t->n_measured = i + 1;
  }
  return SN_OK;
}

/* Equal results need equal numbers of iterations. */
static const char *compare(const trainer *t, uint32_t i) {
  if (t->measured[i].iterations != t->args->iterations) return "stopped";
  return t->measured[i].digest == t->measured[0].digest ? "same" : "DIFFERS";
}

static void pair(sn_table *table, double planned, double measured) {
  if (planned == 0 && measured == 0)
    sn_table_cell(table, "-");
  else
    sn_table_cell(table, "%.2f/%.2f", planned, measured);
}

static sn_status print_table(const trainer *t, const sn_out *out, sn_err *err) {
  static const sn_table_column columns[] = {{"", "strategy", SN_TABLE_TEXT},
                                            {"pool MiB", "planned", 0},
                                            {"", "touched", 0},
                                            {"live", "planned", 0},
                                            {"", "seen", 0},
                                            {"out MiB", "plan/seen", 0},
                                            {"in MiB", "plan/seen", 0},
                                            {"extra", "fwd", 0},
                                            {"iter", "ms", SN_TABLE_GAP},
                                            {"stall", "ms", 0},
                                            {"images", "/s", 0},
                                            {"", "loss", SN_TABLE_GAP},
                                            {"", "result", SN_TABLE_TEXT | SN_TABLE_GAP}};
  sn_table *table = sn_table_new(columns, sizeof columns / sizeof columns[0]);
  for (uint32_t i = 0; i < t->n_measured; i++) {
    const sn_measurement *m = &t->measured[i];
    char name[SN_STRATEGY_TEXT];
    sn_table_cell(table, "%s", sn_strategy_name(t->strategies[i], name));
    sn_table_cell(table, "%.3f", (double)m->planned_pool_bytes / MIB);
    sn_table_cell(table, "%.3f", (double)m->touched_pool_bytes / MIB);
    sn_table_cell(table, "%" PRIu32, m->planned_live_tensors);
    sn_table_cell(table, "%" PRIu32, m->measured_live_tensors);
    pair(table, (double)m->planned_out_bytes / MIB, (double)m->measured_out_bytes / MIB);
    pair(table, (double)m->planned_in_bytes / MIB, (double)m->measured_in_bytes / MIB);
    sn_table_cell(table, "%" PRIu32, m->recomputed_layers);
    sn_table_cell(table, "%.2f", (double)m->iteration_ns / 1e6);
    sn_table_cell(table, "%.2f", (double)m->stall_ns / 1e6);
    sn_table_cell(table, "%.2f", m->images_per_second);
    sn_table_cell(table, "%.6f", m->loss);
    sn_table_cell(table, "%s", compare(t, i));
  }
  sn_status status = sn_table_print(table, out->stream, out->color, err);
  sn_table_free(table);
  return status;
}

static sn_status print_json(const trainer *t, FILE *out, sn_err *err) {
  sn_json_object head = sn_json_begin();
  sn_json_put_text(&head, "net", t->args->net);
  sn_json_put_count(&head, "batch", t->net->batch);
  sn_json_put_text(&head, "backend", "cpu");
  sn_json_put_count(&head, "iterations", t->args->iterations);
  sn_json_end(&head, "", true, ",\"results\":[", out, err);
  for (uint32_t i = 0; i < t->n_measured && err->code == SN_OK; i++) {
    const sn_measurement *m = &t->measured[i];
    char name[SN_STRATEGY_TEXT];
    sn_json_object o = sn_json_begin();
    sn_json_put_text(&o, "strategy", sn_strategy_name(t->strategies[i], name));
    sn_json_put_count(&o, "planned_pool_bytes", m->planned_pool_bytes);
    sn_json_put_count(&o, "touched_pool_bytes", m->touched_pool_bytes);
    sn_json_put_count(&o, "planned_external_bytes", m->planned_external_bytes);
    sn_json_put_count(&o, "planned_out_bytes", m->planned_out_bytes);
    sn_json_put_count(&o, "measured_out_bytes", m->measured_out_bytes);
    sn_json_put_count(&o, "planned_in_bytes", m->planned_in_bytes);
    sn_json_put_count(&o, "measured_in_bytes", m->measured_in_bytes);
    sn_json_put_count(&o, "max_live_tensors_planned", m->planned_live_tensors);
    sn_json_put_count(&o, "max_live_tensors_measured", m->measured_live_tensors);
    sn_json_put_count(&o, "recomputed_layers", m->recomputed_layers);
    sn_json_put_count(&o, "iterations", m->iterations);
    sn_json_put_count(&o, "measured_iteration_ns", (uint64_t)m->iteration_ns);
    sn_json_put_count(&o, "compute_ns", (uint64_t)m->compute_ns);
    sn_json_put_count(&o, "stall_ns", (uint64_t)m->stall_ns);
    sn_json_put_real(&o, "images_per_second", m->images_per_second);
    sn_json_put_real(&o, "loss", m->loss);
    sn_json_put_bool(&o, "bit_equal_to_first", m->digest == t->measured[0].digest);
    sn_json_end(&o, i ? ",\n" : "\n", false, "", out, err);
  }
  fputs("\n]}\n", out);
  return err->code;
}

static sn_status print(const trainer *t, sn_err *err) {
  sn_out out;
  if (sn_out_open(&out, t->args->output, t->args->color, err) != SN_OK) return err->code;
  if (t->args->json) {
    print_json(t, out.stream, err);
  } else {
    fprintf(out.stream, "%s, batch %" PRIu32 ", %u iterations on the CPU (%s)\n\n", t->args->net, t->net->batch,
            t->args->iterations, t->measured[0].device);
    print_table(t, &out, err);
  }
  return sn_out_close(&out, err);
}

static sn_status judge(const trainer *t, sn_err *err) {
  for (uint32_t i = 1; i < t->n_measured; i++) {
    char name[SN_STRATEGY_TEXT], first[SN_STRATEGY_TEXT];
    if (t->measured[i].iterations != t->args->iterations || t->measured[i].digest == t->measured[0].digest) continue;
    return sn_fail(err, SN_BUG, "%s gives another result than %s; please report it",
                   sn_strategy_name(t->strategies[i], name), sn_strategy_name(t->strategies[0], first));
  }
  return SN_OK;
}

sn_status sn_cli_run(const sn_args *args, sn_err *err) {
  trainer t = {.args = args, .n_strategies = args->n_strategies ? args->n_strategies : SN_STRATEGY_DEFAULTS};
  if (!args->net || !args->batch)
    return sn_fail(err, SN_BAD_USAGE, "%s is missing; for instance: snsim run --net lenet --batch 32",
                   args->net ? "--batch" : "--net");
  wait_passively(args->argv);
  for (uint32_t i = 0; i < t.n_strategies; i++)
    t.strategies[i] = args->n_strategies ? args->strategies[i] : sn_strategy_default(i);
  t.net = sn_net_load(args->net, args->batch, args->image, err);
  if (!t.net) return err->code;
  hold_interrupt();
  sn_status status = train_all(&t, err);
  if (t.n_measured > 0) { /* what was measured is shown also where a later strategy failed */
    sn_err printing = SN_ERR_INIT;
    if (print(&t, &printing) != SN_OK && status == SN_OK) *err = printing;
  }
  if (err->code == SN_OK) judge(&t, err);
  sn_net_free(t.net);
  return err->code;
}
