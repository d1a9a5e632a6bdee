/* `snsim show`: the stored runs, or one of them as it was printed first; the stored sweeps and calibrations. */
#include "cli/frame/json.h"
#include "cli/frame/report.h"
#include "cli/frame/stored.h"
#include "cli/options/options.h"
#include "cli/options/table.h"
#include "cli/sweep/sweep.h"
#include "cli/train/measured.h"
#include "db/calibrations.h"
#include "db/store.h"

#include <inttypes.h>
#include <string.h>

enum { PATH_ROOM = 4096 };

static sn_status print_table(const sn_store_list *list, const sn_out *out, sn_err *err) {
  static const sn_table_column columns[] = {
      {"", "run", SN_TABLE_NUMBER},
      {"", "name", SN_TABLE_TEXT | SN_TABLE_GAP},
      {"", "created (UTC)", SN_TABLE_TEXT | SN_TABLE_GAP},
      {"", "net", SN_TABLE_TEXT | SN_TABLE_GAP},
      {"", "batch", SN_TABLE_NUMBER},
      {"", "gpu", SN_TABLE_TEXT | SN_TABLE_GAP},
      {"", "GPUs", SN_TABLE_TEXT},
      {"", "strategies", SN_TABLE_NUMBER | SN_TABLE_GAP},
      {"", "fit", SN_TABLE_NUMBER},
  };
  enum { NAME = 1, GPUS = 6 };
  sn_table *table = sn_table_new(columns, sizeof columns / sizeof columns[0]);
  bool named = false, several = false;
  for (uint32_t i = 0; i < list->count; i++) {
    const sn_store_line *line = &list->lines[i];
    sn_table_cell(table, "%" PRId64, line->id);
    sn_table_cell(table, "%s", line->name);
    sn_table_cell(table, "%s", line->created);
    sn_table_cell(table, "%s", line->net);
    sn_table_cell(table, "%" PRIu32, line->batch);
    sn_table_cell(table, "%s", line->gpu);
    sn_table_cell(table, "%s", *line->parallel ? line->parallel : "1");
    sn_table_cell(table, "%" PRIu32, line->n_results);
    sn_table_cell(table, "%" PRIu32, line->n_fit);
    named = named || line->name[0];
    several = several || *line->parallel;
  }
  if (!named) sn_table_hide(table, NAME);
  if (!several) sn_table_hide(table, GPUS);
  sn_status status = sn_out_table(out, table, err);
  sn_table_free(table);
  return status;
}

static sn_status show_list(const sn_args *args, sn_store *store, sn_err *err) {
  char strategy[SN_STRATEGY_TEXT];
  sn_store_filter filter = {.name = args->name, .net = args->net, .gpu = args->profile};
  if (args->n_strategies > 0) filter.strategy = sn_strategy_name(args->strategies[0], strategy);
  sn_store_list *list = sn_store_runs(store, &filter, UINT32_MAX, err);
  sn_out out;
  if (list && sn_out_open(&out, args->output, args->color, err) == SN_OK) {
    if (args->json)
      sn_json_write_list(list, out.stream, err);
    else
      print_table(list, &out, err);
    sn_out_close(&out, err);
  }
  sn_store_list_free(list);
  return err->code;
}

/* Details that are asked for must be there: a run may be stored without its steps. */
static sn_status check_details(const sn_args *args, const sn_run *run, sn_err *err) {
  if ((args->steps || args->explain) && sn_run_check_one_plan(run, err) != SN_OK) return err->code;
  for (uint32_t i = 0; i < run->n_results; i++) {
    if (args->steps && !run->results[i].steps)
      return sn_fail(err, SN_BAD_INPUT, "run %" PRId64 " was stored without its steps; simulate it again with --steps",
                     run->id);
    if (args->explain && sn_measured(run))
      return sn_fail(err, SN_BAD_USAGE, "run %" PRId64 " was measured; --explain needs a simulated run", run->id);
    if (args->explain && !run->results[i].peak)
      return sn_fail(err, SN_BAD_INPUT,
                     "run %" PRId64 " was stored without the tensors of its peaks; simulate it again with --explain",
                     run->id);
  }
  return SN_OK;
}

static sn_status print_run(const sn_args *args, const sn_run *run, sn_err *err) {
  sn_out out;
  if (check_details(args, run, err) != SN_OK || sn_out_open(&out, args->output, args->color, err) != SN_OK)
    return err->code;
  if (sn_measured(run))
    (void)(args->json ? sn_measured_json(run, args->steps, out.stream, err)
                      : sn_measured_print(run, args->steps, &out, err));
  else if (args->json)
    sn_json_write_run(run, args->steps, args->explain, out.stream, err);
  else
    sn_report_run(run, (sn_report_wish){.steps = args->steps, .explain = args->explain}, &out, err);
  return sn_out_close(&out, err);
}

static sn_status show_run(const sn_args *args, sn_store *store, sn_err *err) {
  int64_t id;
  if (sn_stored_number(args, store, 0, &id, err) != SN_OK) return err->code;
  sn_run *run = sn_stored_take(args, store, id, err);
  if (run) print_run(args, run, err);
  sn_run_free(run);
  return err->code;
}

/* ---- calibrations ---- */

static bool is_calibrations(const sn_args *args) {
  return args->operand && strcmp(args->operand, "calibrations") == 0;
}

typedef struct writer {
  FILE *out;
  uint32_t count;
} writer;

static sn_status write_calibration(void *user, const sn_calibration *c, sn_err *err) {
  writer *w = user;
  sn_json_object o = sn_json_begin();
  sn_json_put_text(&o, "name", c->name);
  sn_json_put_text(&o, "backend", c->backend);
  sn_json_put_text(&o, "device", c->hardware);
  sn_json_put_text(&o, "libraries", c->libraries);
  sn_json_put_text(&o, "created", c->created);
  sn_json_put_count(&o, "timings", c->n_timings);
  sn_json_put_real(&o, "residual", c->residual);
  return sn_json_end(&o, w->count++ ? ",\n" : "\n", false, "", w->out, err);
}

static sn_status print_calibrations_json(sn_store *store, FILE *out, sn_err *err) {
  writer w = {.out = out};
  fputs("{\"calibrations\":[", out);
  if (sn_store_each_calibration(store, write_calibration, &w, err) == SN_OK) fputs("\n]}\n", out);
  return err->code;
}

static sn_status put_calibration(void *table, const sn_calibration *c, sn_err *err) {
  (void)err;
  sn_table_cell(table, "%s", c->name);
  sn_table_cell(table, "%s", c->backend);
  sn_table_cell(table, "%" PRIu32, c->n_timings);
  sn_table_cell(table, "%.2f", c->residual);
  sn_table_cell(table, "%s", c->created);
  sn_table_cell(table, "%s", c->hardware);
  sn_table_cell(table, "%s", c->libraries);
  return SN_OK;
}

static sn_status print_calibrations(sn_store *store, const sn_out *out, sn_err *err) {
  static const sn_table_column columns[] = {{"", "name", SN_TABLE_TEXT},
                                            {"", "backend", SN_TABLE_TEXT | SN_TABLE_GAP},
                                            {"", "timings", SN_TABLE_GAP},
                                            {"", "residual", 0},
                                            {"", "created (UTC)", SN_TABLE_TEXT | SN_TABLE_GAP},
                                            {"", "hardware", SN_TABLE_TEXT | SN_TABLE_GAP},
                                            {"", "libraries", SN_TABLE_TEXT | SN_TABLE_GAP}};
  sn_table *table = sn_table_new(columns, sizeof columns / sizeof columns[0]);
  if (sn_store_each_calibration(store, put_calibration, table, err) == SN_OK) sn_out_table(out, table, err);
  sn_table_free(table);
  return err->code;
}

static sn_status show_calibrations(const sn_args *args, sn_store *store, sn_err *err) {
  sn_out out;
  if (sn_out_open(&out, args->output, args->color, err) != SN_OK) return err->code;
  if (args->json)
    print_calibrations_json(store, out.stream, err);
  else
    print_calibrations(store, &out, err);
  return sn_out_close(&out, err);
}

/* ---- deleting ---- */

static sn_status delete_any(const sn_args *args, const char *path, sn_err *err) {
  int64_t id = 0;
  bool sweep = sn_args_is_sweep(args);
  sn_store *store = sn_store_open_read(path, err); /* makes none where there is none */
  sn_store_close(store);
  store = store ? sn_store_open(path, err) : NULL;
  if (!store) return err->code;
  if (sweep ? sn_args_sweep(args, &id, err) == SN_OK && sn_sweep_delete(store, &id, err) == SN_OK
            : sn_stored_number(args, store, 0, &id, err) == SN_OK && sn_store_delete(store, &id, err) == SN_OK)
    sn_out_say("%s %" PRId64 " deleted from %s", sweep ? "sweep" : "run", id, path);
  sn_store_close(store);
  return err->code;
}

static bool is_filtered(const sn_args *args) {
  return args->name || args->net || args->profile || args->n_strategies > 0;
}

static sn_status check_usage(const sn_args *args, sn_err *err) {
  if (args->remove && (!args->operand || strcmp(args->operand, "sweeps") == 0 || is_calibrations(args)))
    return sn_fail(err, SN_BAD_USAGE, "--delete needs the one to delete: snsim show RUN --delete, or sweep:3");
  if (args->remove && (args->json || args->csv || args->steps || args->explain || args->output))
    return sn_fail(err, SN_BAD_USAGE, "--delete prints nothing: it goes without --json, --output and the like");
  if (args->operand && is_filtered(args))
    return sn_fail(err, SN_BAD_USAGE, "--name, --net, --gpu and --strategy choose among all runs: give no RUN");
  if (args->n_strategies > 1) return sn_fail(err, SN_BAD_USAGE, "runs are listed by one --strategy");
  return SN_OK;
}

sn_status sn_cli_show(const sn_args *args, sn_err *err) {
  char path[PATH_ROOM];
  if (check_usage(args, err) != SN_OK) return err->code;
  bool sweeps = sn_sweep_is_shown(args);
  if ((!args->operand || sweeps) && (args->steps || args->explain))
    return sn_fail(err, SN_BAD_USAGE, "--steps and --explain need one run: snsim show RUN --%s",
                   args->steps ? "steps" : "explain");
  if (args->csv && !sn_args_is_sweep(args))
    return sn_fail(err, SN_BAD_USAGE, "--csv needs one sweep: snsim show sweep:3 --csv");
  if (sn_args_database(args, path, sizeof path, err) != SN_OK) return err->code;
  if (args->remove) return delete_any(args, path, err);
  sn_store *store = sn_store_open_read(path, err);
  if (!store) return err->code;
  sn_status status = sweeps                  ? sn_sweep_show(args, store, err)
                     : is_calibrations(args) ? show_calibrations(args, store, err)
                     : args->operand         ? show_run(args, store, err)
                                             : show_list(args, store, err);
  sn_store_close(store);
  return status;
}
