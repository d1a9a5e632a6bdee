/* `snsim diff RUN RUN`: what changed between two stored runs, and why the peaks moved (sim/capacity/compare.h).
 *
 *   the two runs -> what of the question differs -> what each strategy needs, before and after -> why its peak moved
 *
 * As in a run's own table, columns are left out where a terminal is too narrow, the least important first. */
#include "cli/commands/difference.h"
#include "cli/frame/report.h"
#include "cli/frame/stored.h"
#include "cli/options/options.h"
#include "cli/options/table.h"

#include "base/text.h"
#include "base/units.h"
#include "db/store.h"
#include "models/zoo/zoo.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MIB 1048576.0
#define GIB 1073741824.0
#define MS  1e6

enum { PATH_ROOM = 4096, EXPLAINED_ROWS = 25 /* per strategy; the rest is summed up */ };

/* ---- the question ---- */

/* Sizes also as people read them. */
static void question_cell(sn_table *table, const sn_field *field, const sn_run *run) {
  char room[SN_FIELD_ROOM], size[SN_UNIT_TEXT];
  const char *text = sn_field_print(field, run, room);
  if (field->kind == SN_FIELD_U64 && strstr(field->name, "_bytes"))
    sn_table_cell(table, "%s (%s)", text, sn_print_bytes(strtoull(text, NULL, 10), size));
  else
    sn_table_cell(table, "%s", text);
}

bool sn_difference_asked(const sn_difference *d, const sn_field *field) {
  char a[SN_FIELD_ROOM], b[SN_FIELD_ROOM];
  return strcmp(sn_field_print(field, d->before, a), sn_field_print(field, d->after, b)) != 0;
}

const char *sn_difference_alias(const sn_difference *d, const sn_field *field) {
  bool tokens = sn_report_is_of_sequences(d->before) && sn_report_is_of_sequences(d->after);
  return tokens && strcmp(field->name, "image_height") == 0 ? "sequence" : NULL;
}

static void print_run(const sn_run *run, const char *side, FILE *out) {
  char net[512], gpus[SN_RUN_GPUS];
  sn_net_title(run->net, run->net_name, net, sizeof net);
  sn_table_printf(out, "%s  run %" PRId64 ": %s, batch %" PRIu32 ", on %s, stored %s\n", side, run->id,
                  sn_table_clean(net), run->batch, sn_table_clean(sn_run_gpus(run, gpus)), run->created);
}

static sn_status print_question(const sn_difference *d, const sn_out *out, sn_err *err) {
  static const sn_table_column columns[] = {{"", "asked", SN_TABLE_TEXT},
                                            {"", "before", SN_TABLE_TEXT | SN_TABLE_GAP},
                                            {"", "after", SN_TABLE_TEXT | SN_TABLE_GAP}};
  sn_table *table = sn_table_new(columns, sizeof columns / sizeof columns[0]);
  bool same = true;
  for (uint32_t i = 0; i < sn_run_fields.count; i++) {
    const sn_field *field = &sn_run_fields.field[i];
    if (!sn_difference_asked(d, field)) continue;
    const char *alias = sn_difference_alias(d, field);
    sn_table_cell(table, "%s", alias ? alias : field->name);
    question_cell(table, field, d->before);
    question_cell(table, field, d->after);
    same = false;
  }
  if (same)
    fputs("the same was asked\n", out->stream);
  else
    sn_out_table(out, table, err);
  sn_table_free(table);
  return err->code;
}

/* ---- what each strategy needs ---- */

enum {
  STRATEGY,
  FITS,
  DEVICE_1,
  DEVICE_2,
  DEVICE_CHANGE,
  PEAK_1,
  PEAK_2,
  PEAK_CHANGE,
  ITER_1,
  ITER_2,
  ITER_CHANGE,
  COPIES_1,
  COPIES_2,
  COLUMNS
};

static const sn_table_column result_columns[COLUMNS] = {
    [STRATEGY] = {"", "strategy", SN_TABLE_TEXT},
    [FITS] = {"", "fits", SN_TABLE_TEXT},
    [DEVICE_1] = {"device", "before", SN_TABLE_NUMBER | SN_TABLE_GAP},
    [DEVICE_2] = {"GiB", "after", SN_TABLE_NUMBER},
    [DEVICE_CHANGE] = {"", "%", SN_TABLE_NUMBER | SN_TABLE_SPARE(2)},
    [PEAK_1] = {"peak", "before", SN_TABLE_NUMBER | SN_TABLE_GAP},
    [PEAK_2] = {"MiB", "after", SN_TABLE_NUMBER},
    [PEAK_CHANGE] = {"", "%", SN_TABLE_NUMBER | SN_TABLE_SPARE(4)},
    [ITER_1] = {"iter", "before", SN_TABLE_NUMBER | SN_TABLE_GAP | SN_TABLE_SPARE(5)},
    [ITER_2] = {"ms", "after", SN_TABLE_NUMBER | SN_TABLE_SPARE(5)},
    [ITER_CHANGE] = {"", "%", SN_TABLE_NUMBER | SN_TABLE_SPARE(3)},
    [COPIES_1] = {"copies", "before", SN_TABLE_NUMBER | SN_TABLE_GAP | SN_TABLE_SPARE(1)},
    [COPIES_2] = {"GiB", "after", SN_TABLE_NUMBER | SN_TABLE_SPARE(1)},
};

/* By how much of the old value the new one is larger. */
static void change_cell(sn_table *table, double before, double after) {
  double change = before > 0 ? 100 * (after - before) / before : 0;
  if (before == after)
    sn_table_cell(table, "=");
  else if (before <= 0)
    sn_table_cell(table, "new");
  else
    sn_table_cell(table, "%+.*f", change > -100 && change < 100 ? 1 : 0, change);
}

static void value_cells(sn_table *table, double before, double after, double unit, int digits) {
  sn_table_cell(table, "%.*f", digits, before / unit);
  sn_table_cell(table, "%.*f", digits, after / unit);
  change_cell(table, before, after);
}

/* Times count where a strategy fits; a plan for a device that nobody knows the times of has none. */
static bool has_time(const sn_result *r) {
  return r->fits && r->iteration_ns > 0;
}

static void time_cells(sn_table *table, const sn_result *a, const sn_result *b) {
  sn_table_figure(table, has_time(a), (double)a->iteration_ns / MS);
  sn_table_figure(table, has_time(b), (double)b->iteration_ns / MS);
  if (has_time(a) && has_time(b))
    change_cell(table, (double)a->iteration_ns, (double)b->iteration_ns);
  else
    sn_table_cell(table, "-");
}

static void copies_cell(sn_table *table, const sn_result *r) {
  uint64_t bytes = r->offload_bytes + r->prefetch_bytes;
  sn_table_cell(table, bytes ? "%.2f" : "-", (double)bytes / GIB);
}

/* The strategy; with the back end, where it was measured. */
enum { NAME_TEXT = 128 };

static const char *name_of(const sn_compare_pair *pair, char *text) {
  bool simulated = strcmp(pair->source, "sim") == 0;
  snprintf(text, NAME_TEXT, simulated ? "%s" : "%s (%s)", pair->strategy, pair->source);
  return text;
}

static void result_cells(sn_table *table, const sn_compare_pair *pair) {
  const sn_result *a = pair->before, *b = pair->after;
  char name[NAME_TEXT];
  sn_table_cell(table, "%s", name_of(pair, name));
  sn_table_cell(table, "%s%s%s", a->fits ? "yes" : "no", a->fits == b->fits ? "" : ">",
                a->fits == b->fits ? ""
                : b->fits          ? "yes"
                                   : "no");
  value_cells(table, (double)a->peak_device_bytes, (double)b->peak_device_bytes, GIB, 2);
  value_cells(table, (double)a->peak_tensor_bytes, (double)b->peak_tensor_bytes, MIB, 3);
  time_cells(table, a, b);
  copies_cell(table, a);
  copies_cell(table, b);
}

static bool is_gone(const sn_compare_pair *pair) {
  return !pair->after;
}

static bool is_new(const sn_compare_pair *pair) {
  return !pair->before;
}

static bool has_changed(const sn_compare_pair *pair) {
  return pair->before && pair->after && !sn_compare_same(pair);
}

static bool peak_moved(const sn_compare_pair *pair) {
  return has_changed(pair) && (pair->before->peak_tensor_bytes != pair->after->peak_tensor_bytes ||
                               pair->before->peak_step != pair->after->peak_step);
}

static uint32_t count(const sn_difference *d, bool (*is)(const sn_compare_pair *pair)) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < d->n_pairs; i++) n += is(&d->pairs[i]);
  return n;
}

/* "only before: baseline liveness" */
static void print_names(const sn_difference *d, bool (*is)(const sn_compare_pair *pair), const char *what,
                        const sn_out *out) {
  char name[NAME_TEXT];
  if (count(d, is) == 0) return;
  fprintf(out->stream, "\n%s:", what);
  if (count(d, is) == d->n_pairs) fputs(" every strategy", out->stream);
  for (uint32_t i = 0; i < d->n_pairs && count(d, is) < d->n_pairs; i++)
    if (is(&d->pairs[i])) sn_table_printf(out->stream, " %s", name_of(&d->pairs[i], name));
  fputs("\n", out->stream);
}

static sn_status print_results(const sn_difference *d, const sn_out *out, sn_err *err) {
  sn_table *table = sn_table_new(result_columns, COLUMNS);
  for (uint32_t i = 0; i < d->n_pairs; i++)
    if (has_changed(&d->pairs[i])) result_cells(table, &d->pairs[i]);
  fputs("\n", out->stream);
  sn_status status = sn_out_table(out, table, err);
  sn_table_free(table);
  return status;
}

/* ---- why the peaks moved ---- */

static const sn_table_column why_columns[] = {
    {"", "strategy", SN_TABLE_TEXT},
    {"peak", "MiB", SN_TABLE_NUMBER | SN_TABLE_GAP | SN_TABLE_SPARE(2)},
    {"came", "MiB", SN_TABLE_NUMBER | SN_TABLE_GAP},
    {"went", "MiB", SN_TABLE_NUMBER},
    {"grew", "MiB", SN_TABLE_NUMBER | SN_TABLE_SPARE(3)},
    {"shrank", "MiB", SN_TABLE_NUMBER},
    {"", "at step", SN_TABLE_TEXT | SN_TABLE_GAP | SN_TABLE_SPARE(1)},
};

static void change_cells(sn_table *table, const sn_peak_change *change) {
  for (int i = 0; i < SN_STAYED; i++)
    sn_table_cell(table, change->count[i] ? "%+.2f (%" PRIu32 ")" : "-", (double)change->bytes[i] / MIB,
                  change->count[i]);
}

static void place_cell(sn_table *table, const sn_result *a, const sn_result *b) {
  bool same = a->peak_step == b->peak_step && strcmp(a->peak_layer, b->peak_layer) == 0;
  if (same)
    sn_table_cell(table, "%" PRIu32 " %s %s", a->peak_step, a->peak_layer, a->peak_pass);
  else
    sn_table_cell(table, "%" PRIu32 " %s %s > %" PRIu32 " %s %s", a->peak_step, a->peak_layer, a->peak_pass,
                  b->peak_step, b->peak_layer, b->peak_pass);
}

static sn_status why_cells(sn_table *table, const sn_difference *d, const sn_compare_pair *pair, sn_err *err) {
  char name[NAME_TEXT];
  sn_peak_change change = {0};
  bool known = sn_compare_has_peaks(pair);
  if (known && sn_compare_peaks(pair->before, pair->after, d->arena, &change, err) != SN_OK) return err->code;
  sn_table_cell(table, "%s", name_of(pair, name));
  sn_table_cell(table, "%+.2f",
                ((double)pair->after->peak_tensor_bytes - (double)pair->before->peak_tensor_bytes) / MIB);
  if (known)
    change_cells(table, &change);
  else
    for (int i = 0; i < SN_STAYED; i++) sn_table_cell(table, "?");
  place_cell(table, pair->before, pair->after);
  return SN_OK;
}

static sn_status print_why(const sn_difference *d, const sn_out *out, sn_err *err) {
  bool known = true;
  sn_table *table = sn_table_new(why_columns, sizeof why_columns / sizeof why_columns[0]);
  for (uint32_t i = 0; i < d->n_pairs && err->code == SN_OK; i++) {
    if (!peak_moved(&d->pairs[i])) continue;
    known = known && sn_compare_has_peaks(&d->pairs[i]);
    why_cells(table, d, &d->pairs[i], err);
  }
  fputs("\nwhy the peaks moved: size (and number) of the tensors that\n", out->stream);
  sn_out_table(out, table, err);
  sn_table_free(table);
  if (!known)
    fputs("?: a run was stored without the tensors of its peaks, as measured ones are; --explain keeps those of a "
          "simulated "
          "one\n",
          out->stream);
  return err->code;
}

static void tensor_cells(sn_table *table, const sn_peak_tensor *t) {
  const sn_peak_row *row = t->after ? t->after : t->before;
  sn_table_cell(table, "%+.3f", (double)sn_peak_tensor_bytes(t) / MIB);
  sn_table_cell(table, "%s", sn_change_name(t->change));
  sn_table_cell(table, "%s", row->tensor);
  sn_table_cell(table, "%s", row->producer);
  sn_table_cell(table, t->before ? "%.3f" : "-", t->before ? (double)t->before->bytes / MIB : 0);
  sn_table_cell(table, t->after ? "%.3f" : "-", t->after ? (double)t->after->bytes / MIB : 0);
}

static void print_rest(const sn_peak_change *change, uint32_t moved, FILE *out) {
  int64_t bytes = 0;
  for (uint32_t i = EXPLAINED_ROWS; i < moved; i++) bytes += sn_peak_tensor_bytes(&change->tensors[i]);
  if (moved > EXPLAINED_ROWS)
    fprintf(out, "and %" PRIu32 " smaller changes, %+.3f MiB in all; --json lists them\n", moved - EXPLAINED_ROWS,
            (double)bytes / MIB);
}

static sn_status print_tensors(const sn_difference *d, const sn_compare_pair *pair, const sn_out *out, sn_err *err) {
  static const sn_table_column columns[] = {
      {"change", "MiB", SN_TABLE_NUMBER},
      {"", "", SN_TABLE_TEXT},
      {"", "tensor", SN_TABLE_TEXT | SN_TABLE_GAP},
      {"", "made by", SN_TABLE_TEXT | SN_TABLE_GAP},
      {"before", "MiB", SN_TABLE_NUMBER | SN_TABLE_GAP},
      {"after", "MiB", SN_TABLE_NUMBER},
  };
  sn_peak_change change;
  if (sn_compare_peaks(pair->before, pair->after, d->arena, &change, err) != SN_OK) return err->code;
  uint32_t moved = change.n_tensors - change.count[SN_STAYED]; /* those that stayed as they were stand last */
  sn_table *table = sn_table_new(columns, sizeof columns / sizeof columns[0]);
  for (uint32_t i = 0; i < moved && i < EXPLAINED_ROWS; i++) tensor_cells(table, &change.tensors[i]);
  sn_table_printf(out->stream, "\n%s: %" PRIu32 " tensor%s of the peak changed, %" PRIu32 " stayed\n", pair->strategy,
                  moved, moved == 1 ? "" : "s", change.count[SN_STAYED]);
  sn_out_table(out, table, err);
  sn_table_free(table);
  print_rest(&change, moved, out->stream);
  return err->code;
}

static sn_status print_details(const sn_difference *d, const sn_out *out, sn_err *err) {
  for (uint32_t i = 0; i < d->n_pairs; i++)
    if (peak_moved(&d->pairs[i]) && sn_compare_has_peaks(&d->pairs[i]) &&
        print_tensors(d, &d->pairs[i], out, err) != SN_OK)
      return err->code;
  return SN_OK;
}

static sn_status print_all(const sn_args *args, const sn_difference *d, const sn_out *out, sn_err *err) {
  print_run(d->before, "before", out->stream);
  print_run(d->after, "after ", out->stream);
  fputs("\n", out->stream);
  if (print_question(d, out, err) != SN_OK) return err->code;
  if (count(d, has_changed) && print_results(d, out, err) != SN_OK) return err->code;
  print_names(d, sn_compare_same, "the same in both", out);
  print_names(d, is_gone, "only before", out);
  print_names(d, is_new, "only after", out);
  if (count(d, peak_moved) && print_why(d, out, err) != SN_OK) return err->code;
  return args->explain ? print_details(d, out, err) : SN_OK;
}

/* ---- the command ---- */

static sn_status fail_unknown(const sn_difference *d, const char *strategy, sn_err *err) {
  char hint[128];
  const char **names = sn_arena_alloc(d->arena, d->n_pairs, sizeof *names);
  if (!names) return sn_fail_memory(err);
  for (uint32_t i = 0; i < d->n_pairs; i++) names[i] = d->pairs[i].strategy;
  sn_text_suggest(strategy, names, d->n_pairs, hint, sizeof hint);
  return sn_fail(err, SN_BAD_USAGE, "neither run has strategy \"%s\"%s", strategy, hint);
}

static bool is_asked(const sn_args *args, const char *strategy) {
  char name[SN_STRATEGY_TEXT];
  for (uint32_t i = 0; i < args->n_strategies; i++)
    if (strcmp(strategy, sn_strategy_name(args->strategies[i], name)) == 0) return true;
  return args->n_strategies == 0;
}

static bool has(const sn_difference *d, const char *strategy) {
  for (uint32_t i = 0; i < d->n_pairs; i++)
    if (strcmp(d->pairs[i].strategy, strategy) == 0) return true;
  return false;
}

/* Leaves the pairs that --strategy asks for. */
static sn_status choose(const sn_args *args, sn_difference *d, sn_err *err) {
  char name[SN_STRATEGY_TEXT];
  uint32_t chosen = 0;
  for (uint32_t i = 0; i < args->n_strategies; i++)
    if (!has(d, sn_strategy_name(args->strategies[i], name))) return fail_unknown(d, name, err);
  for (uint32_t i = 0; i < d->n_pairs; i++)
    if (is_asked(args, d->pairs[i].strategy)) d->pairs[chosen++] = d->pairs[i];
  d->n_pairs = chosen;
  return SN_OK;
}

static sn_status compare(const sn_args *args, sn_difference *d, sn_err *err) {
  sn_out out;
  d->pairs = sn_compare_runs(d->before, d->after, d->arena, &d->n_pairs, err);
  if (!d->pairs || choose(args, d, err) != SN_OK || sn_out_open(&out, args->output, args->color, err) != SN_OK)
    return err->code;
  if (args->json) {
    sn_difference_write_json(d, out.stream, err);
  } else {
    sn_prose prose;
    print_all(args, d, sn_prose_open(&prose, &out), err);
    sn_prose_close(&prose);
  }
  return sn_out_close(&out, err);
}

static sn_status diff(const sn_args *args, sn_store *store, const int64_t *ids, sn_err *err) {
  sn_run *before = sn_stored_take(args, store, ids[0], err),
         *after = before ? sn_stored_take(args, store, ids[1], err) : NULL;
  if (after) {
    sn_difference d = {.before = before, .after = after, .arena = after->arena};
    compare(args, &d, err);
  }
  sn_run_free(after);
  sn_run_free(before);
  return err->code;
}

sn_status sn_cli_diff(const sn_args *args, sn_err *err) {
  char path[PATH_ROOM];
  int64_t ids[2];
  const char *name;
  if (sn_args_run_at(args, 0, &ids[0], &name, err) != SN_OK || sn_args_run_at(args, 1, &ids[1], &name, err) != SN_OK ||
      sn_args_database(args, path, sizeof path, err) != SN_OK)
    return err->code;
  sn_store *store = sn_store_open_read(path, err);
  if (!store) return err->code;
  if (sn_stored_number(args, store, 0, &ids[0], err) == SN_OK &&
      sn_stored_number(args, store, 1, &ids[1], err) == SN_OK)
    diff(args, store, ids, err);
  sn_store_close(store);
  return err->code;
}
