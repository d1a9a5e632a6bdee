/* `snsim export [RUN]`: a table of the store as CSV (cli/frame/csv.h).
 *
 * An exporter is a row of `exporters`: it gets the store and the number that was asked for and writes its own header.
 * What it reads need not be a run. */
#include "base/text.h"
#include "cli/commands/operations.h"
#include "cli/frame/csv.h"
#include "cli/frame/fields.h"
#include "cli/frame/recorder.h"
#include "cli/frame/stored.h"
#include "cli/options/options.h"
#include "db/store.h"

#include <inttypes.h>
#include <string.h>

enum { PATH_ROOM = 4096 };

/* ---- CSV ---- */

static void put_names(FILE *out, const sn_fields *fields) {
  for (uint32_t i = 0; i < fields->count; i++) sn_csv_put(out, fields->field[i].name, false);
}

static void put_fields(FILE *out, const sn_fields *fields, const void *row) {
  char room[SN_FIELD_ROOM];
  for (uint32_t i = 0; i < fields->count; i++) sn_csv_put(out, sn_field_print(&fields->field[i], row, room), false);
}

/* A header, and rows, behind the columns that say which run it is. */
static void put_header(FILE *out, const char *columns, const sn_fields *fields) {
  fputs(columns, out);
  put_names(out, fields);
  sn_csv_end(out);
}

static void put_row(FILE *out, const sn_run *run, const sn_result *result, const sn_fields *fields, const void *row) {
  fprintf(out, "%" PRId64, run->id);
  if (result) sn_csv_put(out, result->strategy, false);
  if (result) sn_csv_put(out, result->source, false);
  put_fields(out, fields, row);
  sn_csv_end(out);
}

/* ---- the tables of a run ---- */

static sn_status write_results(const sn_run *run, FILE *out, sn_err *err) {
  (void)err;
  fputs("run,created", out);
  put_names(out, &sn_run_fields);
  put_header(out, "", &sn_result_fields);
  for (uint32_t i = 0; i < run->n_results; i++) {
    fprintf(out, "%" PRId64, run->id);
    sn_csv_put(out, run->created, false);
    put_fields(out, &sn_run_fields, run);
    put_fields(out, &sn_result_fields, &run->results[i]);
    sn_csv_end(out);
  }
  return SN_OK;
}

static sn_status fail_missing(const sn_run *run, const char *what, const char *remedy, sn_err *err) {
  return sn_fail(err, SN_BAD_INPUT, "run %" PRId64 " was stored without %s; simulate it again%s", run->id, what,
                 remedy);
}

static sn_status write_steps(const sn_run *run, FILE *out, sn_err *err) {
  for (uint32_t i = 0; i < run->n_results; i++)
    if (!run->results[i].steps) return fail_missing(run, "its steps", " with --steps", err);
  put_header(out, "run,strategy,source", &sn_step_fields);
  for (uint32_t i = 0; i < run->n_results; i++)
    for (uint32_t s = 0; s < run->results[i].n_steps; s++)
      put_row(out, run, &run->results[i], &sn_step_fields, &run->results[i].steps[s]);
  return SN_OK;
}

static sn_status write_peaks(const sn_run *run, FILE *out, sn_err *err) {
  for (uint32_t i = 0; i < run->n_results; i++)
    if (!run->results[i].peak) return fail_missing(run, "the tensors of its peaks", " with --explain", err);
  put_header(out, "run,strategy,source", &sn_peak_fields);
  for (uint32_t i = 0; i < run->n_results; i++)
    for (uint32_t p = 0; p < run->results[i].n_peak; p++)
      put_row(out, run, &run->results[i], &sn_peak_fields, &run->results[i].peak[p]);
  return SN_OK;
}

static sn_status write_tensors(const sn_run *run, FILE *out, sn_err *err) {
  if (!run->tensors)
    return fail_missing(run, "its tensors, as large networks are", "; --table steps and peaks hold what is kept", err);
  put_header(out, "run", &sn_tensor_fields);
  for (uint32_t i = 0; i < run->n_tensors; i++) put_row(out, run, NULL, &sn_tensor_fields, &run->tensors[i]);
  return SN_OK;
}

static void begin_operations(FILE *out) {
  put_header(out, "run,strategy,source", &sn_operation_fields);
}

static void put_operation(FILE *out, const sn_run *run, const sn_result *result, const sn_operation_row *row) {
  put_row(out, run, result, &sn_operation_fields, row);
}

/* ---- the command ---- */

typedef sn_status run_writer(const sn_run *run, FILE *out, sn_err *err);

static sn_status write_run(const sn_args *args, sn_store *store, int64_t id, run_writer *writer, FILE *out,
                           sn_err *err) {
  sn_run *run = sn_stored_take(args, store, id, err);
  if (run) writer(run, out, err);
  sn_run_free(run);
  return err->code;
}

static sn_status export_results(const sn_args *args, sn_store *store, int64_t id, FILE *out, sn_err *err) {
  return write_run(args, store, id, write_results, out, err);
}

static sn_status export_steps(const sn_args *args, sn_store *store, int64_t id, FILE *out, sn_err *err) {
  return write_run(args, store, id, write_steps, out, err);
}

static sn_status export_peaks(const sn_args *args, sn_store *store, int64_t id, FILE *out, sn_err *err) {
  return write_run(args, store, id, write_peaks, out, err);
}

static sn_status export_tensors(const sn_args *args, sn_store *store, int64_t id, FILE *out, sn_err *err) {
  return write_run(args, store, id, write_tensors, out, err);
}

static sn_status export_operations(const sn_args *args, sn_store *store, int64_t id, FILE *out, sn_err *err) {
  sn_run *run = sn_stored_take(args, store, id, err);
  if (!run) return err->code;
  sn__operations_write(args, run, &(const sn__operation_table){out, begin_operations, put_operation}, err);
  sn_run_free(run);
  return err->code;
}

typedef struct exporter {
  const char *table;
  bool is_played; /* --strategy, --net and --gpu go with it */
  /* id 0: the newest */
  sn_status (*write)(const sn_args *args, sn_store *store, int64_t id, FILE *out, sn_err *err);
} exporter;

static const exporter exporters[] = {
    {"results", false, export_results}, {"steps", false, export_steps},   {"peaks", false, export_peaks},
    {"tensors", false, export_tensors}, {"ops", true, export_operations},
};

enum { N_EXPORTERS = sizeof exporters / sizeof exporters[0] };

static const exporter *find_exporter(const char *table, sn_err *err) {
  const char *names[N_EXPORTERS];
  char suggestion[80];
  for (uint32_t i = 0; i < N_EXPORTERS; i++) {
    if (!table || strcmp(exporters[i].table, table) == 0) return &exporters[i];
    names[i] = exporters[i].table;
  }
  sn_text_suggest(table, names, N_EXPORTERS, suggestion, sizeof suggestion);
  sn_fail(err, SN_BAD_USAGE, "--table: unknown table \"%.80s\"%s; snsim help export lists them", table, suggestion);
  return NULL;
}

static sn_status write(const sn_args *args, const exporter *e, sn_store *store, int64_t id, sn_err *err) {
  sn_out out;
  if (sn_out_open(&out, args->output, SN_COLOR_NEVER, err) != SN_OK) return err->code;
  e->write(args, store, id, out.stream, err);
  return sn_out_close(&out, err);
}

/* What its recording is, as PyTorch's tools read it. */
static sn_status export_snapshot(const sn_args *args, sn_store *store, int64_t id, sn_err *err) {
  sn_run *run = sn_store_get(store, id, err);
  if (!run) return err->code;
  if (sn_recorder_snapshot(args->net ? args->net : run->net, run->batch, args->snapshot, err) == SN_OK)
    sn_out_say("%s written; https://pytorch.org/memory_viz draws it", args->snapshot);
  sn_run_free(run);
  return err->code;
}

static sn_status check_snapshot(const sn_args *args, sn_err *err) {
  if (args->snapshot && (args->table || args->output || args->n_strategies > 0 || args->profile))
    return sn_fail(
        err, SN_BAD_USAGE,
        "--snapshot writes a file of its own, of PyTorch as it was recorded; --table, --output, --strategy and "
        "--gpu cannot be combined with it");
  return args->snapshot ? sn_out_check(args->snapshot, err) : SN_OK;
}

static sn_status check_played(const sn_args *args, const exporter *e, sn_err *err) {
  if (args->snapshot) return check_snapshot(args, err);
  if (e->is_played || (args->n_strategies == 0 && !args->net && !args->profile)) return SN_OK;
  return sn_fail(err, SN_BAD_USAGE, "--strategy, --net and --gpu need --table ops, which simulates the run again");
}

static sn_status fail_sweep(const sn_args *args, sn_err *err) {
  char db[SN_ARGS_DB_ROOM];
  return sn_fail(err, SN_BAD_USAGE, "%.80s is no run; snsim show %.80s --csv%s writes its points as CSV", args->operand,
                 args->operand, sn_args_db_option(args, db));
}

sn_status sn_cli_export(const sn_args *args, sn_err *err) {
  char path[PATH_ROOM];
  int64_t id;
  const char *name;
  const exporter *e = find_exporter(args->table, err);
  if (e && sn_args_is_sweep(args)) return fail_sweep(args, err);
  if (!e || check_played(args, e, err) != SN_OK || sn_args_run_at(args, 0, &id, &name, err) != SN_OK ||
      sn_args_database(args, path, sizeof path, err) != SN_OK)
    return err->code;
  sn_store *store = sn_store_open_read(path, err);
  if (!store) return err->code;
  if (sn_stored_number(args, store, 0, &id, err) == SN_OK)
    args->snapshot ? export_snapshot(args, store, id, err) : write(args, e, store, id, err);
  sn_store_close(store);
  return err->code;
}
