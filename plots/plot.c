/* Plot: from a stored run to its picture (plots/draw.c draws it). */
#include "plots/plot.h"

#include "base/arena.h"
#include "base/text.h"
#include "plots/plot_internal.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

/* ---- which strategies ---- */

static const char *const usual[] = {"baseline", "liveness", "liveness+offload", "liveness+offload+recompute=cost"};

typedef struct choice {
  const sn_result **results;
  unsigned count;
} choice;

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

static sn_status choose_named(const sn_run *run, const sn_plot_options *options, choice *chosen, sn_err *err) {
  for (unsigned i = 0; i < options->n_strategies; i++) {
    const sn_result *result = find(run, options->strategies[i]);
    if (!result) return fail_unknown(run, options->strategies[i], err);
    chosen->results[chosen->count++] = result;
  }
  return SN_OK;
}

static void choose_usual(const sn_run *run, choice *chosen) {
  for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++) {
    const sn_result *result = find(run, usual[i]);
    if (result) chosen->results[chosen->count++] = result;
  }
  if (chosen->count > 0) return;
  for (uint32_t i = 0; i < run->n_results; i++) chosen->results[chosen->count++] = &run->results[i];
}

static sn_status check_steps(const sn_run *run, const choice *chosen, sn_err *err) {
  if (chosen->count == 0) return sn_fail(err, SN_BAD_USAGE, "run %" PRId64 " has no strategy to draw", run->id);
  for (unsigned i = 0; i < chosen->count; i++)
    if (!chosen->results[i]->steps || chosen->results[i]->n_steps == 0)
      return sn_fail(err, SN_BAD_INPUT,
                     "run %" PRId64
                     " was stored without step rows, so there is no curve to draw; run it again with --steps",
                     run->id);
  return SN_OK;
}

static sn_status choose(const sn_run *run, const sn_plot_options *options, choice *chosen, sn_err *err) {
  size_t room = (size_t)options->n_strategies + run->n_results + sizeof usual / sizeof usual[0];
  chosen->results = sn_arena_alloc(run->arena, room, sizeof(sn_result *));
  if (!chosen->results) return sn_fail_memory(err);
  if (!options->strategies)
    choose_usual(run, chosen);
  else if (choose_named(run, options, chosen, err) != SN_OK)
    return err->code;
  return check_steps(run, chosen, err);
}

/* ---- drawing ---- */

static void write_chart(FILE *out, const void *chart) {
  sn__script_write(out, chart);
}

static sn_status draw_run(const sn_run *run, sn__form form, const sn_plot_options *options, sn_err *err) {
  choice chosen = {NULL, 0};
  if (choose(run, options, &chosen, err) != SN_OK) return err->code;
  sn__chart chart = {.run = run, .results = chosen.results, .n_results = chosen.count, .form = form};
  const sn__drawing drawing = {write_chart, &chart, form, run->created, chosen.count};
  sn__text_size(options, &chart.columns, &chart.rows);
  return sn__draw(&drawing, options, err);
}

sn_status sn_plot_steps(sn_store *store, int64_t id, const sn_plot_options *options, sn_err *err) {
  sn__form form = SN__FORM_TEXT;
  if (sn__form_find(options->path, &form, err) != SN_OK) return err->code;
  sn_run *run = sn_store_get(store, id, err);
  if (!run) return err->code;
  draw_run(run, form, options, err);
  sn_run_free(run);
  return err->code;
}
