/* `snsim reproduce table5`: a table or figure of a paper, its numbers beside ours, and as a picture. */
#include "cli/reproduce/reproduce.h"

#include "base/text.h"
#include "cli/frame/json.h"
#include "cli/options/options.h"
#include "cli/options/table.h"
#include "models/zoo/zoo.h"
#include "plots/chart.h"
#include "plots/plot.h"
#include "sim/ask/simulate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* How numbers of a quantity are printed; counts have no fraction. */
static const struct {
  const char *unit, *axis;
  int digits;
} quantities[SN_QUANTITIES] = {
    [SN_PEAK_MIB] = {"MiB", "peak of functional tensors (MiB)", 3},
    [SN_LIVE_TENSORS] = {"tensors at the peak", "tensors at the peak", 0},
    [SN_EXTRA_FORWARDS] = {"extra forwards", "extra forwards an iteration", 0},
    [SN_IMAGES_PER_S] = {"images/s", "images/s", 2},
    [SN_TRAFFIC_GB] = {"GB/iteration", "moved out and in (GB an iteration)", 2},
    [SN_TENSORS_GIB] = {"GiB", "all functional tensors (GiB)", 2},
    [SN_NET_GIB] = {"GiB", "all functional tensors and workspaces (GiB)", 2},
    [SN_RATIO] = {"ratio", "ratio", 2},
    [SN_LARGEST_BATCH] = {"images", "largest batch that fits (images)", 0},
    [SN_DEEPEST] = {"layers", "depth of the deepest net that fits (layers)", 0},
    [SN_SHARE_PERCENT] = {"%", "share (%)", 1},
    [SN_WORKSPACE_MIB] = {"MiB", "workspace (MiB)", 1},
    [SN_DEVICE_MIB] = {"MiB", "memory of the GPU (MiB)", 0},
    [SN_PART_MIB] = {"MiB of it", "part of the memory (MiB)", 0},
    [SN_LISTED_MIB] = {"MiB, not simulated", "memory of the GPU (MiB)", 0},
    [SN_MS] = {"ms", "time (ms)", 2},
    [SN_THREADS] = {"threads", "threads", 0},
    [SN_ACCURACY_PERCENT] = {"% accuracy", "accuracy (%)", 2},
    [SN_TIMES_OFF] = {"times off", "times off the paper", 3},
    [SN_OPS_AT_ONCE] = {"operations at once", "operations at once", 2},
    [SN_STEPS] = {"training steps", "training steps", 0},
};

/* NAN where one of them is missing, or the paper's is nothing and ours is not. */
static double error_percent(const sn_paper_row *row) {
  if (row->paper == 0) return row->ours == 0 ? 0 : NAN;
  return 100 * (row->ours / row->paper - 1);
}

static bool any_paper(const sn_paper_rows *rows) {
  for (uint32_t i = 0; i < rows->count; i++)
    if (!isnan(rows->rows[i].paper)) return true;
  return false;
}

static const char *card_of(const sn_experiment *e) {
  return e->gpu ? e->gpu : SN_PAPER_CARD;
}

/* ---- as a table ---- */

static void number_cell(sn_table *table, double value, int digits, const char *missing) {
  if (isnan(value))
    sn_table_cell(table, "%s", missing);
  else
    sn_table_cell(table, "%.*f", digits, value);
}

static void row_cells(sn_table *table, const sn_paper_row *row, bool same_subject) {
  int digits = quantities[row->quantity].digits;
  bool capacity = row->quantity == SN_LARGEST_BATCH || row->quantity == SN_DEEPEST;
  double error = error_percent(row);
  sn_table_cell(table, "%s", same_subject ? "" : row->subject);
  sn_table_cell(table, "%s", row->series);
  number_cell(table, row->paper, digits, "-");
  number_cell(table, row->ours, digits, capacity ? "none" : "-");
  if (isnan(error))
    sn_table_cell(table, "-");
  else
    sn_table_cell(table, fabs(error) < 0.05 ? "0.0" : "%+.1f", error);
  sn_table_cell(table, "%s", quantities[row->quantity].unit);
}

/* Words in lines of a width that suits the tables above. */
static void print_notes(const char *text, FILE *out) {
  enum { WIDTH = 100 };
  size_t at = 0;
  for (size_t length; *text; text += length + strspn(text + length, " ")) {
    length = strcspn(text, " ");
    bool wrap = at == 0 || at + 1 + length > WIDTH;
    fprintf(out, "%s%.*s", wrap ? "\n" : " ", (int)length, text);
    at = wrap ? length : at + 1 + length;
  }
  fputs("\n", out);
}

static sn_status print_table(const sn_experiment *e, const sn_paper_rows *rows, const sn_out *out, sn_err *err) {
  static const sn_table_column columns[] = {
      {"", "", SN_TABLE_TEXT},
      {"", "", SN_TABLE_TEXT | SN_TABLE_GAP},
      {"", "paper", SN_TABLE_NUMBER | SN_TABLE_GAP},
      {"", "ours", SN_TABLE_NUMBER | SN_TABLE_GAP},
      {"", "error %", SN_TABLE_NUMBER | SN_TABLE_GAP},
      {"", "", SN_TABLE_TEXT | SN_TABLE_GAP},
  };
  fprintf(out->stream, "%s of the %s (section %s): %s; on %s\n\n", e->name, e->paper ? e->paper : "SuperNeurons paper",
          e->section, e->title, card_of(e));
  sn_table *table = sn_table_new(columns, sizeof columns / sizeof columns[0]);
  if (!any_paper(rows)) { /* nothing to compare with */
    sn_table_hide(table, 2);
    sn_table_hide(table, 4);
  }
  for (uint32_t i = 0; i < rows->count; i++)
    row_cells(table, &rows->rows[i], i > 0 && strcmp(rows->rows[i].subject, rows->rows[i - 1].subject) == 0);
  if (sn_out_table(out, table, err) == SN_OK) print_notes(e->notes, out->stream);
  sn_table_free(table);
  return err->code;
}

/* ---- as JSON ---- */

static sn_status write_row(const sn_paper_row *row, const char *before, FILE *out, sn_err *err) {
  sn_json_object o = sn_json_begin();
  sn_json_put_text(&o, "subject", row->subject);
  sn_json_put_text(&o, "series", row->series);
  sn_json_put_text(&o, "unit", quantities[row->quantity].unit);
  sn_json_put_real(&o, "paper", row->paper);
  sn_json_put_real(&o, "ours", row->ours);
  sn_json_put_real(&o, "error_percent", error_percent(row));
  return sn_json_end(&o, before, false, "", out, err);
}

static sn_status write_json(const sn_experiment *e, const sn_paper_rows *rows, FILE *out, sn_err *err) {
  sn_json_object o = sn_json_begin();
  sn_json_put_text(&o, "experiment", e->name);
  sn_json_put_text(&o, "section", e->section);
  sn_json_put_text(&o, "title", e->title);
  sn_json_put_text(&o, "notes", e->notes);
  sn_json_put_text(&o, "gpu", card_of(e));
  if (sn_json_end(&o, "", true, ",\"rows\":[", out, err) != SN_OK) return err->code;
  for (uint32_t i = 0; i < rows->count; i++)
    if (write_row(&rows->rows[i], i ? ",\n" : "\n", out, err) != SN_OK) return err->code;
  fputs("\n]}\n", out);
  return SN_OK;
}

/* ---- as a picture ---- */

static sn_status draw_bars(const sn_experiment *e, const sn_paper_rows *rows, const char *path, sn_err *err) {
  char title[160];
  snprintf(title, sizeof title, "%s: %s", e->name, e->title);
  sn_chart_bar *bars = calloc(rows->count + 1, sizeof *bars);
  sn_chart chart = {.title = title,
                    .y_label = e->axis ? e->axis : quantities[e->drawn].axis,
                    .mark_label = "in the paper",
                    .missing_label = "did not fit",
                    .log_scale = e->log_scale,
                    .stacked = e->stacked,
                    .bars = bars};
  if (!bars) return sn_fail_memory(err);
  for (uint32_t i = 0; i < rows->count; i++) {
    const sn_paper_row *row = &rows->rows[i];
    if (strcmp(quantities[row->quantity].unit, quantities[e->drawn].unit) != 0) continue;
    bars[chart.n_bars++] =
        (sn_chart_bar){.group = row->subject, .series = row->series, .value = row->ours, .mark = row->paper};
  }
  sn_chart_draw(&chart, path, err);
  free(bars);
  return err->code;
}

static sn_status draw_steps(const char *path, sn_err *err) {
  sn_strategy strategies[SN_STRATEGY_DEFAULTS];                /* the picture chooses among them */
  sn_plot_options options = {.path = path, .with_live = true}; /* as the paper's figure 10 */
  sn_options simulated = SN_OPTIONS_INIT;
  sn_device device;
  simulated.want_steps = true;
  simulated.placement = SN_PLACEMENT_FIRST_FIT;
  for (uint32_t i = 0; i < SN_STRATEGY_DEFAULTS; i++) strategies[i] = sn_strategy_default(i);
  sn_net *net = sn_device_load(SN_PAPER_CARD, &device, err) == SN_OK ? sn_net_load("alexnet", 200, 0, err) : NULL;
  sn_run *run = net ? sn_simulate("alexnet", net, &device, strategies, SN_STRATEGY_DEFAULTS, &simulated, err) : NULL;
  if (run) sn_plot_runs((const sn_run *const *)&run, 1, &options, err);
  sn_run_free(run);
  sn_net_free(net);
  return err->code;
}

/* ---- the command ---- */

static const sn_experiment *find(const char *name, sn_err *err) {
  enum { MOST = 32 };
  const char *names[MOST];
  char hint[80], all[320] = "";
  uint32_t count;
  const sn_experiment *e = sn_experiments(&count);
  for (uint32_t i = 0; i < count && i < MOST; i++) {
    if (strcmp(e[i].name, name) == 0) return &e[i];
    names[i] = e[i].name;
    size_t used = strlen(all);
    snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : "", e[i].name);
  }
  sn_text_suggest(name, names, count, hint, sizeof hint);
  sn_fail(err, SN_BAD_USAGE, "reproduce: unknown table or figure \"%.80s\"%s; there are %s", name, hint, all);
  return NULL;
}

static sn_status print(const sn_args *args, const sn_experiment *e, const sn_paper_rows *rows, sn_err *err) {
  sn_out out;
  if (sn_out_open(&out, NULL, args->color, err) != SN_OK) return err->code;
  if (args->json)
    write_json(e, rows, out.stream, err);
  else
    print_table(e, rows, &out, err);
  return sn_out_close(&out, err);
}

sn_status sn_cli_reproduce(const sn_args *args, sn_err *err) {
  sn_paper_rows rows = {0};
  const sn_experiment *e = find(args->operand, err);
  if (!e || (args->output && sn_plot_check_path(args->output, err) != SN_OK)) return err->code;
  sn_out_progress("simulating ...");
  e->measure(e, &rows, err);
  sn_out_progress(NULL);
  if (err->code == SN_OK && print(args, e, &rows, err) == SN_OK && args->output) {
    if ((e->step_curves ? draw_steps(args->output, err) : draw_bars(e, &rows, args->output, err)) == SN_OK)
      sn_out_say("%s written", args->output);
  }
  free(rows.rows);
  return err->code;
}
