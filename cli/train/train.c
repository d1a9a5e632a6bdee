/* Training from the command line; see the header. */
#include "cli/train/train.h"

#include "base/arena.h"
#include "cli/frame/origins.h"
#include "cli/frame/question.h"
#include "cli/frame/report.h"
#include "cli/frame/stored.h"
#include "cli/options/out.h"
#include "cli/train/measured.h"
#include "cli/train/train_plan.h"
#include "db/calibrations.h"
#include "exec/machine/processors.h"
#include "models/zoo/zoo.h"
#include "plots/page/trace_events.h"
#include "sim/play/timeline.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_ROOM = 4096 };

/* The signal waits until it is asked for. A shell's background jobs begin with it ignored: it ends training all the
 * same, so the status must say so. */
static void hold_interrupt(void) {
  sigset_t set;
  signal(SIGINT, SIG_DFL);
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigprocmask(SIG_BLOCK, &set, NULL);
}

bool sn_train_interrupted(void) {
  sigset_t set;
  return sigpending(&set) == 0 && sigismember(&set, SIGINT) == 1;
}

void sn_train_end(const sn_err *err) {
  sigset_t set;
  if (!sn_train_interrupted()) return;
  sn_out_say("interrupted%s%s", err->code == SN_OK ? "" : "; ", err->code == SN_OK ? "" : err->text);
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* Weights are those of a whole iteration; the first training that comes to its end has written its own. */
static bool waits_for_whole(const sn_train_watch *w) {
  return (w->args->files.save || w->args->files.gradients) && w->seen < w->iterations;
}

/* Asked before each step, and of a session that has stopped. */
static bool is_interrupted(void *user) {
  sn_train_watch *w = user;
  if (sn_train_interrupted() && !(w->within && waits_for_whole(w))) return true;
  w->within = true;
  return false;
}

void sn_train_prepare(void) {
  hold_interrupt();
}

uint32_t sn_train_strategies(const sn_args *args, sn_strategy strategies[SN_ARGS_STRATEGIES]) {
  const bool own = args->n_strategies || args->operand, narrow = sn_question_is_of_pytorch(args);
  uint32_t count = own ? args->n_strategies : narrow ? SN_STRATEGY_PYTORCH : SN_STRATEGY_DEFAULTS;
  for (uint32_t i = 0; i < count; i++)
    strategies[i] = own ? args->strategies[i] : narrow ? sn_strategy_framework(i) : sn_strategy_default(i);
  return count;
}

/* That it trains by: the strategies', and one from a file. */
static uint32_t count_plans(const sn_args *args) {
  sn_strategy strategies[SN_ARGS_STRATEGIES];
  return sn_train_strategies(args, strategies) + (args->operand != NULL);
}

sn_session_options sn_train_options(const sn_args *args) {
  sn_session_options options = SN_SESSION_OPTIONS_INIT;
  options.backend = args->backend;
  options.iterations = args->iterations;
  options.warmup = args->warmup < args->iterations ? args->warmup : args->iterations - 1;
  options.machine.threads = args->threads;
  options.machine.accumulate = args->options.iteration.accumulate;
  options.machine.check = args->check;
  options.machine.deterministic = args->deterministic;
  options.machine.tf32 = args->tf32;
  options.machine.hyper = args->hyper;
  options.machine.hyper.optimizer = args->options.iteration.optimizer;
  options.pool_bytes = args->options.pool_bytes;
  options.freeze = args->freeze;
  options.placement = args->options.placement;
  options.corun = args->options.corun;
  options.external = args->options.external;
  options.strict_pool = true;
  if (sn_args_gave(args, "workspace")) options.workspace = args->options.workspace;
  options.data = args->data;
  options.files = args->files;
  return options;
}

static void show_progress(void *user, uint64_t iteration, const sn_outcome *outcome, int64_t ns) {
  sn_train_watch *w = user;
  char line[240];
  double seconds = (double)ns / 1e9;
  w->within = false;
  uint64_t strategy = w->seen++ / w->iterations, left = w->iterations * w->n_strategies - w->seen;
  snprintf(line, sizeof line,
           "strategy %" PRIu64 " of %" PRIu32 ", iteration %" PRIu64 " of %" PRIu64
           ", loss %.4f, %.2f %s/s, %.0f s left",
           strategy + 1, w->n_strategies, iteration + 1, w->iterations, outcome->loss, (double)w->samples / seconds,
           w->unit, seconds * (double)left);
  sn_apart_progress(w->apart, line);
}

const char *sn_train_device_name(const sn_args *args) {
  return args->profile ? args->profile : sn_exec_backend_name(args->backend);
}

static sn_calibration *find_calibration(void *user, const sn_machine_info *info, sn_err *err) {
  const sn_args *args = ((const sn_train_watch *)user)->args;
  sn_err unread = SN_ERR_INIT;
  sn_calibration *c = sn_stored_costs(args, sn_train_device_name(args), info->device, info->libraries, &unread);
  if (c || args->costs == SN_COSTS_MODEL) return c;
  if (unread.code != SN_OK && args->costs == SN_COSTS_MEASURED)
    *err = unread;
  else if (unread.code != SN_OK)
    sn_stored_say_unread(&unread);
  else if (args->costs == SN_COSTS_MEASURED)
    sn_fail(err, SN_BAD_USAGE,
            "--costs measured: nothing was measured of this machine under the name \"%.60s\"; snsim calibrate does it",
            sn_train_device_name(args));
  return NULL;
}

void sn_train_attach(sn_train_watch *watch, sn_session_options *options) {
  watch->iterations = options->iterations;
  options->stop = is_interrupted;
  options->progress = show_progress;
  options->calibration = find_calibration;
  options->user = watch;
}

typedef struct keeping {
  const sn_run *run;
  int64_t id;
} keeping;

static sn_status put_run(sn_store *store, void *what, sn_err *err) {
  keeping *k = what;
  return sn_store_put(store, k->run, &k->id, err);
}

sn_status sn_train_keep(const sn_args *args, const sn_run *run, sn_err *err) {
  char path[SN_STORED_PATH], db[SN_ARGS_DB_ROOM];
  sn_origins origins;
  if (args->no_db) return SN_OK;
  const sn_run whole = sn_origins_with(args, run, &origins);
  keeping k = {.run = &whole};
  if (sn_stored_write(args, put_run, &k, path, err) == SN_OK)
    sn_out_say("run %" PRId64 " stored in %s; snsim show %" PRId64 "%s prints it", k.id, path, k.id,
               sn_args_db_option(args, db));
  else if (sn_stored_rescue(args, put_run, &k, path))
    sn_out_say("the run is kept in %s; snsim show %" PRId64 " --db %s prints it", path, k.id,
               sn_out_quote(path, db, sizeof db));
  sn_origins_free(&origins);
  return err->code;
}

/* Results of stopped or failed trainings have no digest. Those of operations side by side have other numbers of
 * threads: with --check a session compares each with itself. */
sn_status sn_train_judge(const sn_run *run, sn_err *err) {
  const sn_result *first = NULL;
  for (uint32_t i = 0; i < run->n_results; i++) {
    const sn_result *r = &run->results[i];
    if (r->digest == 0 || !sn_corun_row_is_empty(&r->corun)) continue;
    if (!first) first = r;
    if (r->digest != first->digest)
      return sn_fail(err, SN_BUG, "%s gives another result than %s; please report it", r->strategy, first->strategy);
  }
  return SN_OK;
}

static sn_status print(const sn_args *args, const sn_run *run, sn_err *err) {
  sn_out out;
  if (sn_out_open(&out, args->output, args->color, err) != SN_OK) return err->code;
  if (args->json)
    sn_measured_json(run, args->steps, out.stream, err);
  else
    sn_measured_print(run, args->steps, &out, err);
  return sn_out_close(&out, err);
}

static sn_status check_file(const char *option, const char *path, sn_err *err) {
  if (!path || strcmp(path, "-") != 0) return SN_OK;
  return sn_fail(err, SN_BAD_USAGE, "%s -: tensors do not go to or come from standard streams; name a file", option);
}

static sn_status check_files(const sn_args *args, sn_err *err) {
  if (args->files.load && args->init_given)
    return sn_fail(err, SN_BAD_USAGE,
                   "--init cannot be combined with --load-weights, which says what weights are; leave one out");
  if (check_file("--load-weights", args->files.load, err) == SN_OK &&
      check_file("--save-weights", args->files.save, err) == SN_OK)
    check_file("--save-gradients", args->files.gradients, err);
  return err->code;
}

/* What of operations side by side this machine cannot do is said before anything is trained. */
static sn_status check_corun(const sn_args *args, sn_strategy strategy, sn_err *err) {
  char name[SN_STRATEGY_TEXT];
  uint32_t processors = sn_processors_count(), cores = args->threads ? args->threads : processors;
  uint64_t threads = (uint64_t)strategy.corun.workers * strategy.corun.threads;
  sn_strategy_name(strategy, name);
  if (args->backend != SN_EXEC_CPU)
    return sn_fail(err, SN_BAD_USAGE,
                   "strategy %s: operations side by side are executed on the CPU only; use --backend cpu", name);
  if (cores > processors)
    return sn_fail(
        err, SN_BAD_USAGE,
        "strategy %s: each of its threads has a processor of its own, and this machine has %u; give --threads "
        "%u or fewer",
        name, processors, processors);
  if (cores < SN_MIN_CORES)
    return sn_fail(err, SN_BAD_USAGE,
                   "strategy %s: operations side by side need at least %d processors, and there is one (or --threads 1 "
                   "asks for one); use snsim simulate",
                   name, SN_MIN_CORES);
  if (threads > cores)
    return sn_fail(err, SN_BAD_USAGE,
                   "strategy %s: its workers have %u threads together, more than there are processors (%u), so they "
                   "would float over all of them, which is simulated only; choose KxP with at most %u threads",
                   name, (unsigned)threads, cores, cores);
  return SN_OK;
}

static sn_status check_strategies(const sn_args *args, sn_err *err) {
  char name[SN_STRATEGY_TEXT];
  for (uint32_t i = 0; i < args->n_strategies; i++) {
    sn_strategy s = args->strategies[i];
    if (sn_strategy_is_simulated(s))
      return sn_fail(err, SN_BAD_USAGE, "strategy %s is simulated only, nothing executes it; use snsim simulate",
                     sn_strategy_name(s, name));
    if (sn_strategy_is_corun(s) && check_corun(args, s, err) != SN_OK) return err->code;
  }
  return SN_OK;
}

static sn_status check_complete(const sn_args *args, const sn_session_options *options, sn_err *err) {
  sn_optimizer optimizer = options->machine.hyper.optimizer;
  if (!args->operand && (!args->net || !args->batch))
    return sn_fail(err, SN_BAD_USAGE, "%s is missing; for instance: snsim %s --net lenet --batch 32",
                   args->net ? "--batch" : "--net", args->command->name);
  if (args->n_teams > 0)
    return sn_fail(
        err, SN_BAD_USAGE,
        "--threads: several counts are what snsim calibrate measures; snsim %s takes one, for instance %" PRIu32,
        args->command->name, args->threads);
  if (args->warmup_given && args->warmup >= args->iterations)
    return sn_fail(err, SN_BAD_USAGE, "--warmup %u of --iterations %u leave none to measure; choose fewer, or more",
                   args->warmup, args->iterations);
  const sn_session_options defaults = SN_SESSION_OPTIONS_INIT;
  if (optimizer != SN_OPTIMIZER_MOMENTUM && args->hyper.momentum != defaults.machine.hyper.momentum)
    return sn_fail(err, SN_BAD_USAGE, "--momentum cannot be combined with %s %s, which has none; leave one out",
                   args->operand ? "the plan's" : "--optimizer", sn_optimizer_name(optimizer));
  if (args->options.iteration.precision != SN_FP32)
    return sn_fail(
        err, SN_BAD_USAGE,
        "--precision: snsim %s executes fp32 only; leave it out, or ask snsim --precision %s without running",
        args->command->name, sn_precision_name(args->options.iteration.precision));
  if (check_strategies(args, err) != SN_OK || sn_question_check_freeze(args, err) != SN_OK ||
      sn_question_check_corun(args, err) != SN_OK)
    return err->code;
  if (args->trace && count_plans(args) != 1)
    return sn_fail(err, SN_BAD_USAGE, "--trace needs exactly one %s: a trace is of one",
                   args->operand ? "plan, and no --strategy" : "--strategy");
  if (args->trace && strcmp(args->trace, "-") == 0 && !args->output)
    return sn_fail(err, SN_BAD_USAGE, "--trace - puts the trace where the table goes; give the table a file with -o");
  return check_files(args, err);
}

/* ---- in a process of its own ---- */

/* What the process that trains and this one share. */
typedef struct shared {
  sn_run *run;       /* NULL: it has not begun */
  uint32_t finished; /* of its results */
  uint64_t saved;    /* iterations behind which a stopped training has written its weights; 0: none has */
} shared;

typedef struct training {
  const sn_args *args;
  const sn_net *net;
  const sn_plan_file *file;          /* trained by behind the strategies; NULL: none */
  const sn_session_options *options; /* but for what reports */
  shared *shared;
} training;

/* The last iteration, kept while its plan and trace are there. */
static sn_status keep_last(void *visitor, uint64_t iteration, const sn_plan *plan, const sn_trace *trace, sn_err *err) {
  sn_timeline **last = visitor;
  (void)iteration;
  sn_timeline_free(*last);
  *last = sn_timeline_new(plan, trace, err);
  return err->code;
}

static sn_status write_trace(const sn_args *args, const sn_run *run, const sn_timeline *timeline, sn_err *err) {
  sn_out out;
  sn_trace_head head = {.net = run->net,
                        .device = run->device,
                        .strategy = run->results[run->n_results - 1].strategy,
                        .version = run->version,
                        .batch = run->batch};
  if (sn_out_open(&out, args->trace, SN_COLOR_NEVER, err) != SN_OK) return err->code;
  if (sn_trace_events_write(timeline, &head, out.stream, err) != SN_OK) sn_err_prefix(err, "%.300s", args->trace);
  return sn_out_close(&out, err);
}

/* What cannot be trained is left out and noted in the run; where nothing can be, it is the answer. */
static void train_all(const training *t, sn_session *session, sn_err *err) {
  sn_strategy strategies[SN_ARGS_STRATEGIES];
  uint32_t count = count_plans(t->args), n = sn_train_strategies(t->args, strategies), left_out = 0;
  t->shared->run = sn_session_run(session);
  for (uint32_t i = 0; i < count && err->code == SN_OK && !sn_train_interrupted(); i++) {
    sn_status status =
        i < n ? sn_session_add(session, strategies[i], err)
              : sn_session_add_plan(session, sn_train_plan_name(t->args), t->file->head.strategy, t->file->plan, err);
    t->shared->finished = sn_session_run(session)->n_results;
    if (status == SN_NO_FIT && ++left_out < count) *err = (sn_err)SN_ERR_INIT;
  }
}

static void train_apart(sn_apart *self, void *user, sn_err *err) {
  const training *t = user;
  sn_timeline *last = NULL;
  sn_session_options options = *t->options;
  sn_train_watch watch = {.args = t->args, .apart = self, .n_strategies = count_plans(t->args)};
  watch.unit = sn_report_unit(t->net->values[0].dtype == SN_I64);
  watch.samples = (uint64_t)t->net->batch * (options.machine.accumulate ? options.machine.accumulate : 1);
  sn_train_attach(&watch, &options);
  options.compare = watch.n_strategies > 1;
  if (t->args->trace) options.visit = keep_last, options.visitor = &last;
  sn_session *session = sn_session_open(t->args->net ? t->args->net : t->net->name, t->net, &options, err);
  if (session) train_all(t, session, err);
  if (err->code == SN_OK && sn_train_interrupted() && waits_for_whole(&watch) && !watch.within)
    t->shared->saved = watch.seen;
  if (last && t->shared->finished > 0) write_trace(t->args, t->shared->run, last, err);
  sn_timeline_free(last);
  sn_session_close(session);
}

/* The run holds what was measured, also where it was stopped or failed: look at `err` as well. NULL: nothing was.
 * `*saved` is that of `shared`. */
static sn_run *train(const sn_args *args, const sn_net *net, const sn_plan_file *file, const sn_session_options *wanted,
                     uint64_t *saved, sn_err *err) {
  sn_session_options options = *wanted;
  options.arena = sn_arena_shared(sizeof(shared) + sn_session_run_bytes(net, 2 * count_plans(args)));
  training t = {.args = args, .net = net, .file = file, .options = &options};
  t.shared = options.arena ? sn_arena_alloc(options.arena, 1, sizeof *t.shared) : NULL;
  if (t.shared)
    sn_apart_run(train_apart, &t, err);
  else
    sn_fail_memory(err);
  sn_run *run = t.shared ? t.shared->run : NULL;
  if (run) run->n_results = t.shared->finished;
  *saved = t.shared ? t.shared->saved : 0;
  if (run && run->n_results > 0) return run;
  sn_arena_free(options.arena);
  return NULL;
}

/* ---- the whole ---- */

/* The same kernels for every strategy, which give the same bits every time. */
static bool must_be_equal(const sn_args *args, const sn_session_options *options) {
  return args->backend == SN_EXEC_CPU || (args->deterministic && options->workspace == SN_WORKSPACE_NONE);
}

/* Where no training came to its end: what failed has no weights to leave, what was stopped those of its iterations. */
static void say_saved(const sn_args *args, const sn_run *run, uint64_t saved) {
  const sn_weight_files *files = &args->files;
  char names[640];
  if (!files->save && !files->gradients) return;
  for (uint32_t i = 0; run && i < run->n_results; i++)
    if (run->results[i].digest != 0) return;
  snprintf(names, sizeof names, "%.300s%s%.300s", files->save ? files->save : files->gradients,
           files->save && files->gradients ? " and " : "", files->save && files->gradients ? files->gradients : "");
  if (saved > 0)
    sn_out_say("stopped behind iteration %" PRIu64 ": what is written to %s is of it", saved, names);
  else
    sn_out_say("no training came to its end, so nothing is written to %s", names);
}

/* What was measured is shown also where a later strategy failed. */
static void hand_out(const sn_args *args, sn_run *run, bool equal, sn_err *err) {
  sn_err unprinted = SN_ERR_INIT, unkept = SN_ERR_INIT;
  if (args->name) run->name = args->name;
  print(args, run, &unprinted);
  sn_train_keep(args, run, &unkept);
  if (err->code == SN_OK) *err = unprinted;
  if (err->code == SN_OK) *err = unkept;
  if (err->code == SN_OK && equal) sn_train_judge(run, err);
}

/* Of a network, and of a plan from a file where there is one. */
static sn_status answer(const sn_args *args, const sn_net *net, const sn_plan_file *file, sn_session_options *options,
                        sn_err *err) {
  sn_train_prepare(); /* not before: what is read may be a pipe that nobody writes to */
  options->want_steps = args->steps || !args->no_db;
  uint64_t saved = 0;
  sn_run *run = train(args, net, file, options, &saved, err);
  if (run) hand_out(args, run, must_be_equal(args, options), err);
  if (run && file) sn_train_plan_say(args, file, run);
  say_saved(args, run, saved);
  sn_run_free(run);
  return err->code;
}

/* It is not stored: a stored run could be made again from what was asked, and this one could not. */
static sn_status answer_plan(const sn_args *asked, sn_session_options *options, sn_err *err) {
  sn_args args = *asked;
  args.no_db = true;
  sn_plan_file *file = sn_train_plan_open(&args, options, err);
  if (file && check_complete(&args, options, err) == SN_OK) answer(&args, file->net, file, options, err);
  sn_plan_file_free(file);
  return err->code;
}

static sn_status answer_net(const sn_args *args, sn_session_options *options, sn_err *err) {
  if (check_complete(args, options, err) != SN_OK || sn_stored_check(args, err) != SN_OK) return err->code;
  sn_net *net = sn_question_net(args, err);
  if (net) answer(args, net, NULL, options, err);
  sn_net_free(net);
  return err->code;
}

sn_status sn_train_answer(const sn_args *args, sn_session_options *options, sn_err *err) {
  (args->operand ? answer_plan : answer_net)(args, options, err);
  sn_train_end(err);
  return err->code;
}
