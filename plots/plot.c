/* Plot: from a stored run to a picture in a file (plots/file.c) or on the terminal. */
#include "plots/plot.h"

#include "base/arena.h"
#include "base/text.h"
#include "plots/plot_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

/* gnuplot has seven letters for curves as text; one is for the limit line. */
enum { TEXT_CURVES = 6, TEXT_COLUMNS = 100, TEXT_ROWS = 30, FEWEST_COLUMNS = 60, FEWEST_ROWS = 20, MOST = 1000 };

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

static void write_curves(FILE *out, const void *chart) {
  sn__script_write(out, chart);
}

/* ---- to the terminal ---- */

static unsigned clamp(unsigned value, unsigned usual_value, unsigned least) {
  if (value == 0) return usual_value;
  return value < least ? least : value > MOST ? MOST : value;
}

/* Copies the drawing without what gnuplot pads it with: a form feed, empty lines around it, blanks at line ends. */
static sn_status copy_text(FILE *from, FILE *to, sn_err *err) {
  unsigned blanks = 0, breaks = 0;
  bool begun = false;
  rewind(from);
  for (int c = getc(from); c != EOF; c = getc(from)) {
    if (c == '\n') breaks++;
    blanks = c == ' ' ? blanks + 1 : c == '\n' || c == '\f' ? 0 : blanks;
    if (c == ' ' || c == '\n' || c == '\f') continue;
    for (; breaks > 0; breaks--)
      if (begun) putc('\n', to);
    for (; blanks > 0; blanks--) putc(' ', to);
    putc(c, to);
    begun = true;
  }
  putc('\n', to);
  if (ferror(from)) return sn__fail_temporary(err);
  return ferror(to) ? sn_fail(err, SN_BAD_FILE, "the drawing cannot be written: %s", strerror(errno)) : SN_OK;
}

void sn__text_size(const sn_plot_options *options, unsigned *columns, unsigned *rows) {
  *columns = clamp(options->columns, TEXT_COLUMNS, FEWEST_COLUMNS);
  *rows = clamp(options->rows, TEXT_ROWS, FEWEST_ROWS);
}

sn_status sn__draw_text(sn__script_writer write, const void *what, unsigned n_curves, const sn_plot_options *options,
                        sn_err *err) {
  if (n_curves > TEXT_CURVES)
    return sn_fail(
        err, SN_BAD_USAGE,
        "text can tell %d strategies apart, not %u; name fewer with --strategy, or draw a file with -o FILE.svg",
        TEXT_CURVES, n_curves);
  FILE *picture = tmpfile();
  if (!picture) return sn__fail_temporary(err);
  if (sn__draw(write, what, fileno(picture), err) == SN_OK) copy_text(picture, options->terminal, err);
  fclose(picture);
  return err->code;
}

static sn_status draw_run(const sn_run *run, sn__form form, const sn_plot_options *options, sn_err *err) {
  choice chosen = {NULL, 0};
  if (choose(run, options, &chosen, err) != SN_OK) return err->code;
  sn__chart chart = {.run = run, .results = chosen.results, .n_results = chosen.count, .form = form};
  sn__text_size(options, &chart.columns, &chart.rows);
  return options->path ? sn__draw_file(write_curves, &chart, options->path, form, run->created, err)
                       : sn__draw_text(write_curves, &chart, chart.n_results, options, err);
}

sn_status sn_plot_steps(sn_store *store, int64_t id, const sn_plot_options *options, sn_err *err) {
  sn__form form = SN__FORM_TEXT;
  if (options->path && sn__form_find(options->path, &form, err) != SN_OK) return err->code;
  sn_run *run = sn_store_get(store, id, err);
  if (!run) return err->code;
  draw_run(run, form, options, err);
  sn_run_free(run);
  return err->code;
}
