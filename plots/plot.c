/* Plot: from a stored run to a picture in a file or on the terminal.
 *
 * A file is replaced when the picture is whole (base/replace.h). */
#include "plots/plot.h"

#include "base/arena.h"
#include "base/replace.h"
#include "base/text.h"
#include "plots/plot_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* gnuplot has seven letters for curves as text; one is for the limit line. */
enum { TEXT_CURVES = 6, TEXT_COLUMNS = 100, TEXT_ROWS = 30, FEWEST_COLUMNS = 60, FEWEST_ROWS = 20, MOST = 1000 };

/* ---- which strategies ---- */

static const char *const usual[] = {"baseline", "liveness+offload+recompute=cost", "liveness", "liveness+offload"};

enum { N_USUAL = sizeof usual / sizeof usual[0], N_SHORT = 2 /* of them, where there are several runs */ };

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

static sn_status choose_named(const sn_run *run, const sn_plot_options *options, choice *chosen, sn_err *err) {
  for (unsigned i = 0; i < options->n_strategies; i++) {
    const sn_result *result = find(run, options->strategies[i]);
    if (!result) return fail_unknown(run, options->strategies[i], err);
    add(chosen, run, result);
  }
  return SN_OK;
}

/* The first `n_names` of the usual ones in the run's own order, else all. Of a strategy that was predicted and measured
 * the prediction, which comes first. */
static void choose_usual(const sn_run *run, unsigned n_names, choice *chosen) {
  unsigned before = chosen->count;
  for (uint32_t i = 0; i < run->n_results; i++)
    for (unsigned n = 0; n < n_names; n++)
      if (find(run, usual[n]) == &run->results[i]) add(chosen, run, &run->results[i]);
  if (chosen->count > before) return;
  for (uint32_t i = 0; i < run->n_results; i++)
    if (find(run, run->results[i].strategy) == &run->results[i]) add(chosen, run, &run->results[i]);
}

static sn_status check_rows(const choice *chosen, sn_plot_kind kind, sn_err *err) {
  for (unsigned i = 0; i < chosen->count; i++) {
    const sn_result *result = chosen->curves[i].result;
    int64_t id = chosen->curves[i].run->id;
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
    choose_usual(run, options->kind == SN_PLOT_BREAKDOWN ? 0 : n_runs > 1 ? N_SHORT : N_USUAL, chosen);
  if (err->code == SN_OK && chosen->count == before)
    return sn_fail(err, SN_BAD_USAGE, "run %" PRId64 " has no strategy to draw", run->id);
  return err->code;
}

/* ---- drawing ---- */

static sn_status find_form(const char *path, sn__form *form, sn_err *err) {
  static const char *const endings[] = {[SN__FORM_PNG] = ".png", [SN__FORM_SVG] = ".svg", [SN__FORM_PDF] = ".pdf"};
  size_t length = strlen(path);
  for (int i = SN__FORM_PNG; i <= SN__FORM_PDF; i++) {
    if (length <= 4 || strcasecmp(path + length - 4, endings[i]) != 0) continue;
    *form = (sn__form)i;
    return SN_OK;
  }
  return sn_fail(err, SN_BAD_USAGE, "%.300s: the ending says what to draw; it must be .png, .svg or .pdf", path);
}

static sn_status fail_temporary(sn_err *err) {
  return sn_fail(err, SN_BAD_FILE, "a temporary file cannot be written: %s; make room in /tmp", strerror(errno));
}

static sn_status draw(const sn__chart *chart, int picture, sn_err *err) {
  FILE *script = tmpfile();
  if (!script) return fail_temporary(err);
  if (sn__script_write(script, chart, err) != SN_OK) {
    fclose(script);
    return err->code;
  }
  if (fflush(script) != 0 || ferror(script))
    fail_temporary(err);
  else
    sn__gnuplot_run(script, picture, err);
  fclose(script);
  return err->code;
}

/* ---- to a file ---- */

static sn_status draw_file(const sn__chart *chart, const char *path, sn_err *err) {
  sn_replace picture;
  if (sn_replace_open(&picture, path, err) != SN_OK) return err->code;
  if (!picture.temporary)
    sn_fail(err, SN_BAD_FILE, "%.300s: is not a regular file; choose another", path);
  else if (draw(chart, picture.file, err) == SN_OK)
    sn__picture_finish(picture.file, chart->form, chart->curves[0].run->created, err);
  return sn_replace_close(&picture, err);
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
  if (ferror(from)) return fail_temporary(err);
  return ferror(to) ? sn_fail(err, SN_BAD_FILE, "the drawing cannot be written: %s", strerror(errno)) : SN_OK;
}

static sn_status draw_curves_text(const sn__chart *chart, FILE *terminal, sn_err *err) {
  if (chart->n_curves > TEXT_CURVES)
    return sn_fail(err, SN_BAD_USAGE,
                   "text can tell %d curves apart, not %u; name fewer with --strategy, or draw a file with -o FILE.svg",
                   TEXT_CURVES, chart->n_curves);
  FILE *picture = tmpfile();
  if (!picture) return fail_temporary(err);
  if (draw(chart, fileno(picture), err) == SN_OK) copy_text(picture, terminal, err);
  fclose(picture);
  return err->code;
}

static sn_status draw_text(sn__chart *chart, const sn_plot_options *options, sn_err *err) {
  chart->columns = clamp(options->columns, TEXT_COLUMNS, FEWEST_COLUMNS);
  chart->rows = clamp(options->rows, TEXT_ROWS, FEWEST_ROWS);
  if (chart->kind == SN_PLOT_STEPS || chart->kind == SN_PLOT_LIVE)
    return draw_curves_text(chart, options->terminal, err);
  errno = 0;
  if (sn__text_write(options->terminal, chart, err) != SN_OK ||
      (fflush(options->terminal) == 0 && !ferror(options->terminal)))
    return err->code;
  return sn_fail(err, SN_BAD_FILE, "the drawing cannot be written: %s", strerror(errno ? errno : EIO));
}

/* Fills in the form and draws. */
static sn_status draw_chart(sn__chart *chart, const sn_plot_options *options, sn_err *err) {
  chart->form = SN__FORM_TEXT;
  if (options->path && find_form(options->path, &chart->form, err) != SN_OK) return err->code;
  return options->path ? draw_file(chart, options->path, err) : draw_text(chart, options, err);
}

sn_status sn_plot_runs(const sn_run *const *runs, unsigned n_runs, const sn_plot_options *options, sn_err *err) {
  size_t room = 0;
  for (unsigned i = 0; i < n_runs; i++) room += options->n_strategies + (size_t)runs[i]->n_results;
  choice chosen = {.curves = calloc(room + 1, sizeof(sn__curve))};
  if (!chosen.curves) return sn_fail_memory(err);
  for (unsigned i = 0; i < n_runs; i++)
    if (choose(runs[i], n_runs, options, &chosen, err) != SN_OK) break;
  sn__chart chart = {.kind = options->kind, .curves = chosen.curves, .n_curves = chosen.count, .n_runs = n_runs};
  if (err->code == SN_OK && check_rows(&chosen, options->kind, err) == SN_OK) draw_chart(&chart, options, err);
  free(chosen.curves);
  return err->code;
}

sn_status sn_plot_timeline(const sn_run *run, const sn_result *result, const sn_timeline *timeline,
                           const sn_plot_options *options, sn_err *err) {
  sn__curve curve = {run, result};
  sn__chart chart = {.kind = options->kind, .curves = &curve, .n_curves = 1, .n_runs = 1, .timeline = timeline};
  return draw_chart(&chart, options, err);
}

/* ---- kinds ---- */

static const char *const kinds[SN_PLOT_KINDS] = {"steps", "live", "breakdown", "timeline", "pool"};

const char *sn_plot_kind_name(sn_plot_kind kind) {
  return kinds[kind];
}

sn_status sn_plot_kind_parse(const char *text, sn_plot_kind *kind, sn_err *err) {
  char suggestion[80];
  for (int i = 0; i < SN_PLOT_KINDS; i++) {
    if (strcmp(kinds[i], text) != 0) continue;
    *kind = (sn_plot_kind)i;
    return SN_OK;
  }
  sn_text_suggest(text, kinds, SN_PLOT_KINDS, suggestion, sizeof suggestion);
  return sn_fail(err, SN_BAD_USAGE, "--kind: \"%.80s\" is none of steps, live, breakdown, timeline, pool%s", text,
                 suggestion);
}
