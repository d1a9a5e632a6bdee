/* Plot: which strategies of which runs a picture shows, and drawing them. */
#include "plots/plot.h"

#include "base/arena.h"
#include "base/text.h"
#include "plots/plot_internal.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* ---- which strategies ---- */

static const char *const usual[] = {"baseline", "liveness+offload+recompute=cost", "liveness", "liveness+offload"};

enum {
  N_USUAL = sizeof usual / sizeof usual[0],
  N_SHORT = 2,        /* of them, where there are several runs */
  MOST_STRATEGIES = 6 /* of a measured run: so many can be told apart */
};

/* The curves of a chart, as they are found. */
typedef struct choice {
  sn__curve *curves;
  unsigned count;
} choice;

static void add(choice *chosen, const sn_run *run, const sn_result *result) {
  chosen->curves[chosen->count++] = (sn__curve){run, result};
}

static const sn_result *find(const sn_run *run, const char *strategy) {
  for (uint32_t i = 0; i < run->n_results; i++)
    if (strcmp(run->results[i].strategy, strategy) == 0) return &run->results[i];
  return NULL;
}

static sn_status fail_unknown(const sn_run *run, const char *strategy, sn_err *err) {
  char hint[128] = "";
  const char **names = sn_arena_alloc(run->arena, run->n_results, sizeof *names);
  if (!names) return sn_fail_memory(err);
  for (uint32_t i = 0; i < run->n_results; i++) names[i] = run->results[i].strategy;
  sn_text_suggest(strategy, names, run->n_results, hint, sizeof hint);
  return sn_fail(err, SN_BAD_USAGE, "run %" PRId64 " has no strategy \"%.100s\"%s", run->id, strategy, hint);
}

static bool has_curves(sn_plot_kind kind) {
  return kind == SN_PLOT_STEPS || kind == SN_PLOT_LIVE;
}

/* A strategy that was predicted and measured is two curves, in this order, and one bar: the prediction, which comes
 * first. */
static void add_named(const sn_run *run, const sn_result *first, sn_plot_kind kind, choice *chosen) {
  add(chosen, run, first);
  for (const sn_result *r = first + 1; has_curves(kind) && r < run->results + run->n_results; r++)
    if (strcmp(r->strategy, first->strategy) == 0) add(chosen, run, r);
}

static sn_status choose_named(const sn_run *run, const sn_plot_options *options, choice *chosen, sn_err *err) {
  for (unsigned i = 0; i < options->n_strategies; i++) {
    const sn_result *result = find(run, options->strategies[i]);
    if (!result) return fail_unknown(run, options->strategies[i], err);
    add_named(run, result, options->kind, chosen);
  }
  return SN_OK;
}

/* The first of its results for a strategy: what was predicted, where that was measured too. */
static bool is_first(const sn_run *run, uint32_t i) {
  assert(run->results);
  return find(run, run->results[i].strategy) == &run->results[i];
}

static unsigned count_strategies(const sn_run *run) {
  unsigned count = 0;
  for (uint32_t i = 0; i < run->n_results; i++) count += is_first(run, i);
  return count;
}

static bool is_usual(const sn_run *run, unsigned n_names, const sn_result *result) {
  for (unsigned n = 0; n < n_names; n++)
    if (find(run, usual[n]) == result) return true;
  return false;
}

/* The first `n_names` of the usual ones in the run's own order, of all the usual ones with the fastest that fits; all
 * of a run that has few, be it measured or alone in the picture, and where it has none of these. */
static void choose_usual(const sn_run *run, unsigned n_names, sn_plot_kind kind, choice *chosen) {
  unsigned before = chosen->count;
  if ((run->device[0] || n_names == N_USUAL) && count_strategies(run) <= MOST_STRATEGIES) n_names = 0;
  bool has_usual = false;
  for (unsigned n = 0; n < n_names; n++) has_usual = has_usual || find(run, usual[n]);
  const sn_result *fastest = has_usual && n_names == N_USUAL ? sn_run_best(run) : NULL;
  if (fastest) fastest = find(run, fastest->strategy);
  for (uint32_t i = 0; i < run->n_results; i++)
    if (&run->results[i] == fastest || is_usual(run, n_names, &run->results[i]))
      add_named(run, &run->results[i], kind, chosen);
  if (chosen->count > before) return;
  for (uint32_t i = 0; i < run->n_results; i++)
    if (is_first(run, i)) add_named(run, &run->results[i], kind, chosen);
}

static sn_status check_rows(const choice *chosen, sn_plot_kind kind, sn_err *err) {
  for (unsigned i = 0; i < chosen->count; i++) {
    const sn_result *result = chosen->curves[i].result;
    assert(result);
    int64_t id = chosen->curves[i].run->id;
    if (sn_run_check_one_plan(chosen->curves[i].run, err) != SN_OK) return err->code;
    if (!result->steps || result->n_steps == 0)
      return sn_fail(
          err, SN_BAD_INPUT,
          "run %" PRId64 " was stored without step rows, so there is no curve to draw; run it again with --steps", id);
    if (kind == SN_PLOT_BREAKDOWN && !result->peak)
      return sn_fail(err, SN_BAD_INPUT,
                     "run %" PRId64
                     " was stored without the tensors of its peaks, as measured ones are; simulate it again with "
                     "--explain",
                     id);
  }
  return SN_OK;
}

static sn_status choose(const sn_run *run, unsigned n_runs, const sn_plot_options *options, choice *chosen,
                        sn_err *err) {
  unsigned before = chosen->count;
  if (options->strategies)
    choose_named(run, options, chosen, err);
  else
    choose_usual(run, options->kind == SN_PLOT_BREAKDOWN ? 0 : n_runs > 1 ? N_SHORT : N_USUAL, options->kind, chosen);
  if (err->code == SN_OK && chosen->count == before)
    return sn_fail(err, SN_BAD_USAGE, "run %" PRId64 " has no strategy to draw", run->id);
  return err->code;
}

/* ---- drawing ---- */

static sn_status write_script(FILE *out, const void *chart, sn_err *err) {
  return sn__script_write(out, chart, err);
}

/* Text of what are no curves is written without gnuplot. */
static sn_status write_text(const sn__chart *chart, FILE *terminal, sn_err *err) {
  errno = 0;
  if (sn__text_write(terminal, chart, err) != SN_OK || (fflush(terminal) == 0 && !ferror(terminal))) return err->code;
  return sn_fail(err, SN_BAD_FILE, "the drawing cannot be written: %s", strerror(errno ? errno : EIO));
}

/* Fills in the form and draws. */
static sn_status draw_chart(sn__chart *chart, const sn_plot_options *options, sn_err *err) {
  if (sn__form_find(options->path, &chart->form, err) != SN_OK) return err->code;
  sn__text_size(options, &chart->columns, &chart->rows);
  if (!options->path && !has_curves(chart->kind)) return write_text(chart, options->terminal, err);
  const sn__drawing drawing = {write_script, chart, chart->form, chart->curves[0].run->created,
                               has_curves(chart->kind) ? chart->n_curves : 1};
  return sn__draw(&drawing, options, err);
}

/* Text tells few curves apart: where nobody chose, what was measured stands without its predictions, which it lies on
 * or nearly so. */
static void thin_out(choice *chosen, const sn_plot_options *options) {
  unsigned kept = 0, measured = 0;
  for (unsigned i = 0; i < chosen->count; i++) measured += strcmp(chosen->curves[i].result->source, "sim") != 0;
  if (options->path || options->strategies || chosen->count <= MOST_STRATEGIES || measured == 0) return;
  for (unsigned i = 0; i < chosen->count; i++)
    if (strcmp(chosen->curves[i].result->source, "sim") != 0) chosen->curves[kept++] = chosen->curves[i];
  chosen->count = kept;
}

sn_status sn_plot_runs(const sn_run *const *runs, unsigned n_runs, const sn_plot_options *options, sn_err *err) {
  size_t room = 0;
  if (options->kind == SN_PLOT_MAP)
    return sn_fail(err, SN_BAD_USAGE, "--kind map draws a sweep: snsim plot sweep:last --kind map");
  for (unsigned i = 0; i < n_runs; i++) room += ((size_t)options->n_strategies + 1) * runs[i]->n_results;
  choice chosen = {.curves = calloc(room + 1, sizeof(sn__curve))};
  if (!chosen.curves) return sn_fail_memory(err);
  for (unsigned i = 0; i < n_runs; i++)
    if (choose(runs[i], n_runs, options, &chosen, err) != SN_OK) break;
  if (has_curves(options->kind)) thin_out(&chosen, options);
  sn__chart chart = {.kind = options->kind,
                     .curves = chosen.curves,
                     .n_curves = chosen.count,
                     .n_runs = n_runs,
                     .options = options,
                     .with_live = options->with_live};
  if (err->code == SN_OK && check_rows(&chosen, options->kind, err) == SN_OK) draw_chart(&chart, options, err);
  free(chosen.curves);
  return err->code;
}

static sn_status check_corun(const sn_result *result, const sn_timeline *timeline, sn_plot_kind kind, sn_err *err) {
  if (sn_timeline_is_corun(timeline)) return SN_OK;
  return sn_fail(err, SN_BAD_USAGE,
                 "%.100s runs one operation after another; --kind %s draws strategies with +corun=.., such as "
                 "liveness+corun=path",
                 result->strategy, sn_plot_kind_name(kind));
}

sn_status sn_plot_corun(const sn_run *run, const sn_result *const *results, const sn_timeline *const *timelines,
                        unsigned count, const sn_plot_options *options, sn_err *err) {
  sn__curve curves[SN_PLOT_CORUNS];
  for (unsigned i = 0; i < count; i++) {
    curves[i] = (sn__curve){run, results[i]};
    if (check_corun(results[i], timelines[i], options->kind, err) != SN_OK) return err->code;
  }
  sn__chart chart = {.kind = options->kind,
                     .curves = curves,
                     .n_curves = count,
                     .n_runs = 1,
                     .timeline = timelines[0],
                     .timelines = timelines};
  return draw_chart(&chart, options, err);
}

sn_status sn_plot_timeline(const sn_run *run, const sn_result *result, const sn_timeline *timeline,
                           const sn_plot_options *options, sn_err *err) {
  sn__curve curve = {run, result};
  if (sn_plot_kind_is_corun(options->kind) && check_corun(result, timeline, options->kind, err) != SN_OK)
    return err->code;
  sn__chart chart = {.kind = options->kind,
                     .curves = &curve,
                     .n_curves = 1,
                     .n_runs = 1,
                     .timeline = timeline,
                     .beside = options->beside};
  return draw_chart(&chart, options, err);
}

/* ---- kinds ---- */

static const char *const kinds[SN_PLOT_KINDS] = {"steps", "live",  "device", "breakdown", "timeline",
                                                 "pool",  "cores", "corun",  "map",       "dtr"};

const char *sn_plot_kind_name(sn_plot_kind kind) {
  return kinds[kind];
}

bool sn_plot_kind_is_played(sn_plot_kind kind) {
  return kind == SN_PLOT_DEVICE || kind == SN_PLOT_TIMELINE || kind == SN_PLOT_POOL || sn_plot_kind_is_corun(kind);
}

bool sn_plot_kind_is_corun(sn_plot_kind kind) {
  return kind == SN_PLOT_CORES || kind == SN_PLOT_CORUN;
}

sn_status sn_plot_kind_parse(const char *text, sn_plot_kind *kind, sn_err *err) {
  char suggestion[80];
  for (int i = 0; i < SN_PLOT_KINDS; i++) {
    if (strcmp(kinds[i], text) != 0) continue;
    *kind = (sn_plot_kind)i;
    return SN_OK;
  }
  sn_text_suggest(text, kinds, SN_PLOT_KINDS, suggestion, sizeof suggestion);
  return sn_fail(
      err, SN_BAD_USAGE,
      "--kind: \"%.80s\" is none of steps, live, device, breakdown, timeline, pool, cores, corun, map, dtr%s", text,
      suggestion);
}
