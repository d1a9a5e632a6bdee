/* `snsim dtr LOG..`: DTR's logs under budgets of memory (sim/dtr/dtr_replay.h). */
#include "cli/commands/dtr.h"

#include "base/units.h"
#include "cli/frame/csv.h"
#include "cli/frame/json.h"
#include "cli/options/table.h"
#include "models/zoo/zoo.h"
#include "sim/ask/result.h"
#include "sim/device/device.h"
#include "sim/graph/route.h"
#include "sim/schedule/dtr_of_route.h"

#include <inttypes.h>
#include <string.h>

enum { MIB = 1 << 20, NAME_ROOM = 4096 };

/* ---- what is asked ---- */

static sn_status add_heuristics(sn_dtr_asked *asked, const char *text, sn_err *err) {
  for (const char *at = text; at && err->code == SN_OK;) {
    char one[NAME_ROOM];
    size_t length = strcspn(at, ",");
    sn_dtr_heuristic h;
    snprintf(one, sizeof one, "%.*s", (int)length, at);
    if (sn_dtr_heuristic_parse(one, &h, err) != SN_OK) return err->code;
    bool known = false;
    for (uint32_t i = 0; i < asked->n_heuristics; i++) known = known || asked->heuristics[i] == h;
    if (!known) asked->heuristics[asked->n_heuristics++] = h;
    at = at[length] ? at + length + 1 : NULL;
  }
  return err->code;
}

static sn_status add_budgets(sn_dtr_asked *asked, const char *text, sn_err *err) {
  for (const char *at = text; at && err->code == SN_OK;) {
    char one[NAME_ROOM];
    size_t length = strcspn(at, ",");
    snprintf(one, sizeof one, "%.*s", (int)length, at);
    if (asked->n_budgets == SN_ARGS_LISTS) return sn_fail(err, SN_BAD_USAGE, "more than %d budgets", SN_ARGS_LISTS);
    sn_dtr_budget_parse(one, "--budget", &asked->budgets[asked->n_budgets++], err);
    at = at[length] ? at + length + 1 : NULL;
  }
  return err->code;
}

sn_status sn_dtr_asked_of(const sn_args *args, sn_dtr_asked *asked, sn_err *err) {
  *asked = (sn_dtr_asked){0};
  for (uint32_t i = 0; i < args->heuristics.count && err->code == SN_OK; i++)
    add_heuristics(asked, args->heuristics.texts[i], err);
  for (uint32_t i = 0; i < args->budgets.count && err->code == SN_OK; i++)
    add_budgets(asked, args->budgets.texts[i], err);
  for (; args->heuristics.count == 0 && asked->n_heuristics < SN_DTR_HEURISTICS; asked->n_heuristics++)
    asked->heuristics[asked->n_heuristics] = (sn_dtr_heuristic)asked->n_heuristics;
  for (; args->budgets.count == 0 && asked->n_budgets < SN_DTR_BUDGETS; asked->n_budgets++)
    asked->budgets[asked->n_budgets] = sn_dtr_usual_budget(asked->n_budgets);
  return err->code;
}

/* Of a recording: with its operations' times on a GPU, sums of gradients apart as DTR has them. */
static sn_dtr_program *program_of(const char *path, const sn_args *args, char *name, uint32_t *batch, sn_err *err) {
  sn_device device;
  sn_iteration iteration = {.optimizer = SN_OPTIMIZER_MOMENTUM};
  sn_net *net = sn_net_load(path, args->batch, 0, err);
  sn_route *route = NULL;
  sn_costs *costs = NULL;
  sn_dtr_program *program = NULL;
  if (net && name) snprintf(name, SN_NET_NAME, "%s", net->name);
  if (net) *batch = net->batch;
  if (net && sn_device_load(args->gpu, &device, err) == SN_OK)
    costs = sn_costs_new_in(net, &device, (sn_iteration){0}, err);
  if (costs) route = sn_route_new_for(net, SN_DIALECT_PYTORCH_1_7, SN_ORDER_ROUTE, iteration, NULL, err);
  if (route) {
    const sn_persistent resident = sn_persistent_of(net, SN_DIALECT_PYTORCH_1_7, iteration);
    program = sn_dtr_program_of_route(route, sn_persistent_total(&resident), costs, err);
  }
  sn_route_free(route);
  sn_costs_free(costs);
  sn_net_free(net);
  return program;
}

static sn_dtr_replay *replay_recording(const char *path, const sn_args *args, const sn_dtr_asked *asked, char *name,
                                       sn_err *err) {
  uint32_t batch = 0;
  sn_dtr_program *program = program_of(path, args, name, &batch, err);
  sn_dtr_replay *replay = NULL;
  if (program)
    replay =
        sn_dtr_replay_program(program, asked->heuristics, asked->n_heuristics, asked->budgets, asked->n_budgets, err);
  if (replay) replay->batch = batch;
  sn_dtr_program_free(program);
  return replay;
}

sn_dtr_replay *sn_dtr_asked_replay(const sn_args *args, const sn_dtr_asked *asked, uint32_t index, char *name,
                                   sn_err *err) {
  const char *path = args->operands[index];
  if (sn_net_is_recording(path)) return replay_recording(path, args, asked, name, err);
  return sn_dtr_replay_log(path, asked->heuristics, asked->n_heuristics, asked->budgets, asked->n_budgets, err);
}

const char *sn_dtr_log_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash && slash[1] ? slash + 1 : path;
}

/* ---- for people ---- */

/* Of a recording also what nobody may have said. */
static void print_head(const char *path, const char *gpu, const sn_dtr_replay *r, FILE *out) {
  char name[NAME_ROOM], time[SN_UNIT_TEXT], bytes[SN_UNIT_TEXT];
  snprintf(name, sizeof name, "%s", sn_dtr_log_name(path));
  fputs(sn_table_clean(name), out);
  if (r->batch > 0) fprintf(out, ", batch %" PRIu32 ", times of %.60s", r->batch, gpu);
  fprintf(out, ": %" PRIu32 " operations, %" PRIu32 " storages, %s; %s without a limit\n\n", r->operations, r->storages,
          sn_print_time((int64_t)r->cost_ns, time), sn_print_bytes(r->baseline_bytes, bytes));
}

/* What was there before the first operation is more than there is, or it ended early: then it has cost nothing yet. */
static void put_row(sn_table *table, const sn_dtr_row *row) {
  bool began = row->answer.peak_bytes > 0, whole = row->answer.status != SN_DTR_OUT_OF_MEMORY;
  sn_table_cell(table, "%s", sn_dtr_heuristic_name(row->heuristic));
  sn_table_cell(table, "%.2f", row->ratio);
  sn_table_cell(table, "%.3f", (double)row->budget_bytes / MIB);
  sn_table_cell(table, began ? "%.3f" : "-", (double)row->answer.peak_bytes / MIB);
  sn_table_cell(table, whole ? "%.4f" : "-", row->overhead);
  sn_table_cell(table, "%" PRIu64, row->answer.evictions);
  sn_table_cell(table, "%" PRIu64, row->answer.evaluations);
  sn_table_cell(table, "%s", sn_dtr_status_name(row->answer.status));
  if (row->answer.status != SN_DTR_OK) sn_table_dim(table);
}

static sn_status print_rows(const sn_dtr_row *rows, uint32_t count, const sn_out *out, sn_err *err) {
  static const sn_table_column columns[] = {
      {"", "heuristic", SN_TABLE_TEXT},     {"", "ratio", SN_TABLE_NUMBER},    {"budget", "MiB", SN_TABLE_NUMBER},
      {"peak", "MiB", SN_TABLE_NUMBER},     {"", "overhead", SN_TABLE_NUMBER}, {"", "evictions", SN_TABLE_NUMBER},
      {"", "evaluations", SN_TABLE_NUMBER}, {"", "status", SN_TABLE_TEXT},
  };
  sn_table *table = sn_table_new(columns, sizeof columns / sizeof columns[0]);
  for (uint32_t i = 0; i < count; i++) put_row(table, &rows[i]);
  sn_table_print(table, out->stream, out->color, err);
  sn_table_free(table);
  return err->code;
}

static sn_status print_table(const char *path, const char *gpu, const sn_dtr_replay *r, bool more, const sn_out *out,
                             sn_err *err) {
  print_head(path, gpu, r, out->stream);
  if (print_rows(r->rows, r->n_rows, out, err) != SN_OK) return err->code;
  if (r->n_least > 0) {
    fputs("\nthe least budget with which it ends, in hundredths of what it takes without a limit:\n", out->stream);
    print_rows(r->least, r->n_least, out, err);
  }
  if (more) fputs("\n", out->stream);
  return err->code;
}

/* ---- for programs ---- */

static sn_status put_json_row(const char *path, const sn_dtr_row *row, const char *before, FILE *out, sn_err *err) {
  sn_json_object o = sn_json_begin();
  sn_json_put_text(&o, "log", path);
  sn_json_put_text(&o, "heuristic", sn_dtr_heuristic_name(row->heuristic));
  sn_json_put_real(&o, "ratio", row->ratio);
  sn_json_put_count(&o, "budget_bytes", row->budget_bytes);
  sn_json_put_count(&o, "peak_bytes", row->answer.peak_bytes);
  sn_json_put_real(&o, "overhead", row->overhead);
  sn_json_put_count(&o, "evictions", row->answer.evictions);
  sn_json_put_count(&o, "evaluations", row->answer.evaluations);
  sn_json_put_text(&o, "status", sn_dtr_status_name(row->answer.status));
  return sn_json_end(&o, before, false, "", out, err);
}

/* Of every log the rows that were asked for, then of every log the least budgets. */
static sn_status print_json(const sn_args *args, sn_dtr_replay *const *replays, FILE *out, sn_err *err) {
  for (int least = 0; least < 2; least++) {
    const char *before = "\n";
    fputs(least ? "\n],\"least\":[" : "{\"runs\":[", out);
    for (uint32_t n = 0; n < args->n_operands; n++) {
      const sn_dtr_replay *r = replays[n];
      for (uint32_t i = 0; i < (least ? r->n_least : r->n_rows); i++, before = ",\n")
        if (put_json_row(args->operands[n], least ? &r->least[i] : &r->rows[i], before, out, err) != SN_OK)
          return err->code;
    }
  }
  fputs("\n]}\n", out);
  return err->code;
}

static void print_csv_row(const char *path, const sn_dtr_row *row, FILE *out) {
  char ratio[SN_UNIT_TEXT], overhead[SN_UNIT_TEXT];
  sn_csv_put(out, path, true);
  fprintf(out, ",%s,%s,%" PRIu64 ",%" PRIu64 ",%s,%" PRIu64 ",%" PRIu64 ",%s", sn_dtr_heuristic_name(row->heuristic),
          sn_print_real(row->ratio, ratio), row->budget_bytes, row->answer.peak_bytes,
          sn_print_real(row->overhead, overhead), row->answer.evictions, row->answer.evaluations,
          sn_dtr_status_name(row->answer.status));
  sn_csv_end(out);
}

/* ---- the command ---- */

static void begin(const sn_args *args, FILE *out) {
  if (args->csv) fputs("log,heuristic,ratio,budget_bytes,peak_bytes,overhead,evictions,evaluations,status\n", out);
}

static sn_status print_log(const sn_args *args, uint32_t index, const sn_dtr_replay *r, const sn_out *out,
                           sn_err *err) {
  const char *path = args->operands[index];
  if (!args->csv) return print_table(path, args->gpu, r, index + 1 < args->n_operands, out, err);
  for (uint32_t i = 0; i < r->n_rows; i++) print_csv_row(path, &r->rows[i], out->stream);
  return SN_OK;
}

static sn_status print(const sn_args *args, sn_dtr_replay *const *replays, sn_err *err) {
  sn_out out;
  if (sn_out_open(&out, args->output, args->color, err) != SN_OK) return err->code;
  begin(args, out.stream);
  if (args->json) print_json(args, replays, out.stream, err);
  for (uint32_t i = 0; i < args->n_operands && !args->json && err->code == SN_OK; i++)
    print_log(args, i, replays[i], &out, err);
  return sn_out_close(&out, err);
}

sn_status sn_cli_dtr(const sn_args *args, sn_err *err) {
  sn_dtr_asked asked;
  sn_dtr_replay *replays[SN_ARGS_OPERANDS] = {0};
  if (args->json && args->csv) return sn_fail(err, SN_BAD_USAGE, "--json and --csv exclude each other");
  if (sn_dtr_asked_of(args, &asked, err) != SN_OK || sn_out_check(args->output, err) != SN_OK) return err->code;
  for (uint32_t i = 0; i < args->n_operands && err->code == SN_OK; i++)
    replays[i] = sn_dtr_asked_replay(args, &asked, i, NULL, err);
  if (err->code == SN_OK) print(args, replays, err);
  for (uint32_t i = 0; i < args->n_operands; i++) sn_dtr_replay_free(replays[i]);
  return err->code;
}
