/* `snsim plot`: pictures of stored runs and sweeps, in a file or in the terminal. Device, timeline, pool, cores and
 * corun need a plan, which the store does not keep: for them the run is simulated again and must come out as it was. So
 * does the breakdown of a strategy whose operations run side by side. */
#include "plots/plot.h"

#include "cli/commands/dtr.h"
#include "cli/frame/stored.h"
#include "cli/options/gpu.h"
#include "cli/options/options.h"
#include "db/store.h"
#include "sim/sweep/replay.h"

#include <assert.h>
#include <inttypes.h>

enum { PATH_ROOM = 4096 };

typedef struct plot {
  const sn_args *args;
  sn_run *runs[SN_ARGS_RUNS];
  unsigned n_runs;
  const sn_result *results[SN_PLOT_CORUNS]; /* of kinds that are played, with what was: one, of corun several */
  sn_timeline *timelines[SN_PLOT_CORUNS];
  unsigned n_results;
  const sn_replay *replay; /* of what a breakdown splits */
  sn_store *store;         /* of a sweep, and its number */
  int64_t sweep;
  sn_plot_options options;
} plot;

static sn_status draw_sweep(const plot *p, sn_err *err) {
  const sn_args *args = p->args;
  const sn_sweep_plot sweep = {.options = p->options,
                               .net = args->net,
                               .gpu = args->profile ? args->profile : sn_gpu_unnamed().name,
                               .conditions = sn_conditions_of(&args->options, NULL),
                               .accumulate = args->options.iteration.accumulate,
                               .x = args->x,
                               .batch = args->batch,
                               .image = args->image,
                               .memory_bytes = args->memory.bytes};
  return sn_plot_sweep(p->store, p->sweep, &sweep, err);
}

static sn_status draw_any(const plot *p, sn_err *err) {
  if (p->store) return draw_sweep(p, err);
  if (p->args->kind == SN_PLOT_CORUN)
    return sn_plot_corun(p->runs[0], p->results, (const sn_timeline *const *)p->timelines, p->n_results, &p->options,
                         err);
  if (p->n_results > 0) return sn_plot_timeline(p->runs[0], p->results[0], p->timelines[0], &p->options, err);
  return sn_plot_runs((const sn_run *const *)p->runs, p->n_runs, &p->options, err);
}

/* Into a file, or as text on standard output, as large as the terminal there. */
static sn_status draw(plot *p, sn_err *err) {
  sn_out out;
  if (p->options.path) {
    if (draw_any(p, err) == SN_OK) sn_out_say("%s written", p->options.path);
    return err->code;
  }
  if (sn_out_open(&out, NULL, p->args->color, err) != SN_OK) return err->code;
  p->options.terminal = out.stream;
  if (sn_out_size(out.stream, &p->options.columns, &p->options.rows) && p->options.rows > 1)
    p->options.rows--; /* the prompt's line */
  draw_any(p, err);
  return sn_out_close(&out, err);
}

/* ---- kinds that are played ---- */

static bool is_corun(const sn_run *run, const sn_result *r) {
  return sn_run_is_answer(run, r) && !sn_corun_row_is_empty(&r->corun);
}

/* What fits is before what does not, then the fastest is first. */
static bool is_before(const sn_result *a, const sn_result *b) {
  return a->fits != b->fits ? a->fits : a->iteration_ns < b->iteration_ns;
}

/* The best co-run strategy of a run, or all of them, as many as are drawn. */
static sn_status choose_corun(plot *p, sn_err *err) {
  const sn_run *run = p->runs[0];
  unsigned most = p->args->kind == SN_PLOT_CORUN ? SN_PLOT_CORUNS : 1;
  assert(run);
  for (uint32_t i = 0; i < run->n_results; i++) {
    const sn_result *r = &run->results[i];
    if (!is_corun(run, r)) continue;
    if (p->n_results < most)
      p->results[p->n_results++] = r;
    else if (most == 1 && is_before(r, p->results[0]))
      p->results[0] = r;
  }
  if (p->n_results > 0) return SN_OK;
  return sn_fail(err, SN_BAD_USAGE,
                 "run %" PRId64 " has no strategy that runs operations side by side, which --kind %s draws; simulate "
                 "one with --strategy liveness+corun=path and a GPU that has cores: --gpu knl7250",
                 run->id, sn_plot_kind_name(p->args->kind));
}

/* The strategies asked for, else those that a kind draws. */
static sn_status choose(plot *p, sn_err *err) {
  const sn_args *args = p->args;
  if (sn_plot_kind_is_corun(args->kind) && args->n_strategies == 0) return choose_corun(p, err);
  if (args->kind == SN_PLOT_CORUN) {
    for (uint32_t i = 0; i < args->n_strategies && err->code == SN_OK; i++)
      p->results[p->n_results++] = sn_stored_result(args, p->runs[0], args->strategies[i], err);
    return err->code;
  }
  p->results[p->n_results++] = sn_stored_choice(args, p->runs[0], err);
  return err->code;
}

static void draw_played(plot *p, const sn_replay *replay, sn_err *err) {
  for (unsigned i = 0; i < p->n_results && err->code == SN_OK; i++)
    p->timelines[i] = sn_replay_timeline(replay, p->results[i], err);
  const sn_timeline *t = err->code == SN_OK ? p->timelines[0] : NULL;
  bool beside = t && t->served.n_segments == 0 && p->args->kind == SN_PLOT_POOL && p->options.path;
  sn_timeline *first_fit = beside ? sn_replay_first_fit(replay, p->results[0], err) : NULL;
  p->options.beside = first_fit;
  if (err->code == SN_OK) draw(p, err);
  sn_timeline_free(first_fit);
  for (unsigned i = 0; i < p->n_results; i++) sn_timeline_free(p->timelines[i]);
}

static sn_status draw_again(plot *p, sn_err *err) {
  if (choose(p, err) != SN_OK) return err->code;
  sn_calibration *calibration = sn_stored_calibration(p->args, p->runs[0], err);
  sn_replay *replay =
      err->code == SN_OK ? sn_replay_open(p->runs[0], p->args->net, p->args->profile, calibration, err) : NULL;
  if (replay) draw_played(p, replay, err);
  sn_replay_free(replay);
  sn_calibration_free(calibration);
  return err->code;
}

/* ---- breakdowns of what runs side by side, or again ---- */

/* What was predicted of a measured run is not known any more. */
static sn_timeline *play(void *player, const sn_result *result, sn_err *err) {
  const plot *p = player;
  return sn_run_is_answer(p->runs[0], result) ? sn_replay_timeline(p->replay, result, err) : NULL;
}

/* Operations side by side, or collectives, or layers whose forward runs again. */
static bool has_split(const sn_run *run) {
  bool any = false;
  assert(run);
  for (uint32_t i = 0; i < run->n_results; i++) {
    const sn_result *r = &run->results[i];
    any = any || (sn_run_is_answer(run, r) && (is_corun(run, r) || r->recomputed_layers > 0 || r->shared.world > 1));
  }
  return any;
}

static sn_status draw_split(plot *p, sn_err *err) {
  sn_calibration *calibration = sn_stored_calibration(p->args, p->runs[0], err);
  sn_replay *replay = err->code == SN_OK ? sn_replay_open(p->runs[0], NULL, NULL, calibration, err) : NULL;
  p->replay = replay;
  p->options.play = play;
  p->options.player = p;
  if (replay) draw(p, err);
  sn_replay_free(replay);
  sn_calibration_free(calibration);
  return err->code;
}

/* ---- what goes together ---- */

static sn_status check_live(const sn_args *args, sn_err *err) {
  bool possible = args->kind == SN_PLOT_STEPS && args->n_operands <= 1 && args->output && !sn_args_is_sweep(args);
  if (!args->with_live || possible) return SN_OK;
  return sn_fail(err, SN_BAD_USAGE,
                 "--live adds live tensors to --kind steps of one run in a file (-o FILE); else draw --kind live");
}

static sn_status check(const sn_args *args, sn_err *err) {
  const char *name = sn_plot_kind_name(args->kind);
  if (check_live(args, err) != SN_OK) return err->code;
  if (args->n_operands > 1 && args->kind != SN_PLOT_STEPS && args->kind != SN_PLOT_LIVE)
    return sn_fail(err, SN_BAD_USAGE, "--kind %s draws one run; steps and live draw several", name);
  if (args->kind == SN_PLOT_CORUN && args->n_strategies > SN_PLOT_CORUNS)
    return sn_fail(err, SN_BAD_USAGE, "--kind corun draws at most %d strategies", SN_PLOT_CORUNS);
  if (args->n_strategies > 1 && sn_plot_kind_is_played(args->kind) && args->kind != SN_PLOT_CORUN)
    return sn_fail(err, SN_BAD_USAGE, "--kind %s draws one --strategy; make one picture each", name);
  const sn_conditions conditions = sn_conditions_of(&args->options, NULL);
  bool chosen = !sn_conditions_are_usual(&conditions) || args->x != SN_PLOT_X_AUTO || args->batch > 0 ||
                args->image > 0 || args->memory.given || args->options.iteration.accumulate > 0 ||
                sn_args_gave(args, "precision");
  if (chosen || ((args->net || args->profile) && !sn_plot_kind_is_played(args->kind)))
    return sn_fail(err, SN_BAD_USAGE,
                   "--net, --gpu and the like choose points of a sweep: snsim plot sweep:last --net NAME; --net and "
                   "--gpu also go with --kind device, timeline, pool, cores and corun, which simulate the run again");
  return SN_OK;
}

/* A run that is named twice is drawn once. */
static void add(plot *p, sn_run *run) {
  for (unsigned i = 0; run && i < p->n_runs; i++)
    if (p->runs[i]->id == run->id) {
      sn_run_free(run);
      return;
    }
  if (run) p->runs[p->n_runs++] = run;
}

static sn_status load(plot *p, sn_err *err) {
  char path[PATH_ROOM];
  unsigned wanted = p->args->n_operands ? p->args->n_operands : 1;
  if (sn_args_database(p->args, path, sizeof path, err) != SN_OK) return err->code;
  sn_store *store = sn_store_open_read(path, err);
  for (unsigned i = 0; store && err->code == SN_OK && i < wanted; i++) {
    int64_t id;
    if (sn_stored_number(p->args, store, i, &id, err) == SN_OK) add(p, sn_stored_take(p->args, store, id, err));
  }
  sn_store_close(store);
  return err->code;
}

static sn_status plot_sweep(plot *p, sn_err *err) {
  char path[PATH_ROOM];
  if ((p->args->kind != SN_PLOT_STEPS && p->args->kind != SN_PLOT_MAP) || p->args->n_operands > 1)
    return sn_fail(err, SN_BAD_USAGE, "a sweep is drawn alone: as curves, without --kind, or with --kind map");
  if (check_live(p->args, err) != SN_OK || sn_args_sweep(p->args, &p->sweep, err) != SN_OK ||
      sn_args_database(p->args, path, sizeof path, err) != SN_OK)
    return err->code;
  p->store = sn_store_open_read(path, err);
  if (p->store) draw(p, err);
  sn_store_close(p->store);
  return err->code;
}

static sn_status plot_runs(plot *p, sn_err *err) {
  if (check(p->args, err) != SN_OK) return err->code;
  if (load(p, err) == SN_OK && sn_plot_kind_is_played(p->args->kind))
    draw_again(p, err);
  else if (err->code == SN_OK && p->args->kind == SN_PLOT_BREAKDOWN && has_split(p->runs[0]))
    draw_split(p, err);
  else if (err->code == SN_OK)
    draw(p, err);
  for (unsigned i = 0; i < p->n_runs; i++) sn_run_free(p->runs[i]);
  return err->code;
}

sn_status sn_cli_plot(const sn_args *args, sn_err *err) {
  if (args->kind == SN_PLOT_DTR) return sn_cli_plot_dtr(args, err);
  if (args->heuristics.count > 0 || args->budgets.count > 0)
    return sn_fail(err, SN_BAD_USAGE, "--heuristic and --budget need --kind dtr, which draws DTR's logs");
  char texts[SN_ARGS_STRATEGIES][SN_STRATEGY_TEXT];
  const char *names[SN_ARGS_STRATEGIES];
  for (uint32_t i = 0; i < args->n_strategies; i++) names[i] = sn_strategy_name(args->strategies[i], texts[i]);
  plot p = {.args = args};
  p.options = (sn_plot_options){.kind = args->kind,
                                .with_live = args->with_live,
                                .path = args->output,
                                .strategies = args->n_strategies ? names : NULL,
                                .n_strategies = args->n_strategies};
  return sn_args_is_sweep(args) ? plot_sweep(&p, err) : plot_runs(&p, err);
}
