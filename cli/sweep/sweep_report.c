/* A stored sweep for people and programs: the fastest strategy of every network, GPU, option and batch as a table;
 * every point as JSON or CSV; the list of sweeps. Printed from nothing but the store, so that `snsim sweep` and `snsim
 * show` print the same bytes. */
#include "base/units.h"
#include "cli/frame/csv.h"
#include "cli/frame/file_conflict.h"
#include "cli/frame/json.h"
#include "cli/frame/report.h"
#include "cli/frame/times.h"
#include "cli/options/table.h"
#include "cli/sweep/sweep.h"
#include "models/zoo/zoo.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const double GIB = 1073741824.0;

/* ---- table ---- */

/* Conditions have a column each, from CONDITION on: these first, others behind them. */
static const char *const first_conditions[] = {"shared_link", "workspace",  "external",  "allocator",
                                               "optimizer",   "accumulate", "precision", "pool_limit_bytes"};

enum {
  NET,
  IMAGE,
  GPU,
  MEMORY,
  CONDITION,
  BATCH = CONDITION + SN_CONDITION_ROWS,
  FIT,
  FASTEST,
  IMAGES,
  DEVICE,
  LEAST,
  COLUMNS
};

static const sn_table_column plain_columns[COLUMNS] = {
    [NET] = {"", "net", SN_TABLE_TEXT},
    [IMAGE] = {"", "image", SN_TABLE_NUMBER},
    [GPU] = {"", "gpu", SN_TABLE_TEXT},
    [MEMORY] = {"memory", "GiB", SN_TABLE_NUMBER},
    [BATCH] = {"", "batch", SN_TABLE_NUMBER | SN_TABLE_GAP},
    [FIT] = {"", "fit", SN_TABLE_NUMBER},
    [FASTEST] = {"", "fastest that fits", SN_TABLE_TEXT | SN_TABLE_GAP},
    [IMAGES] = {"images", "/s", SN_TABLE_NUMBER},
    [DEVICE] = {"device", "GiB", SN_TABLE_NUMBER},
    [LEAST] = {"least", "GiB", SN_TABLE_NUMBER | SN_TABLE_GAP},
};

/* All conditions, in the order of their columns. */
static void order_conditions(const sn_condition *order[SN_CONDITION_ROWS]) {
  enum { FIRST = sizeof first_conditions / sizeof *first_conditions };
  uint32_t count = 0;
  bool placed[SN_CONDITION_ROWS] = {false};
  for (uint32_t f = 0; f <= FIRST; f++)
    for (uint32_t i = 0; i < SN_CONDITION_ROWS; i++) {
      if (placed[i] || (f < FIRST && strcmp(sn_condition_table[i].name, first_conditions[f]) != 0)) continue;
      order[count++] = &sn_condition_table[i];
      placed[i] = true;
    }
}

static void head_conditions(const sn_condition *const *order, sn_table_column columns[COLUMNS]) {
  for (uint32_t i = 0; i < SN_CONDITION_ROWS; i++) {
    const sn_condition *c = order[i];
    bool number = c->kind == SN_CONDITION_COUNT || c->kind == SN_CONDITION_BYTES;
    const char *over = c->kind == SN_CONDITION_FLAG ? "" : c->over;
    columns[CONDITION + i] = (sn_table_column){over, c->title, number ? SN_TABLE_NUMBER : SN_TABLE_TEXT};
  }
}

/* Points that differ in nothing but the strategy. */
static bool same_group(const sn_sweep_row *a, const sn_sweep_row *b) {
  return a->batch == b->batch && a->image == b->image && a->memory_bytes == b->memory_bytes &&
         strcmp(a->net, b->net) == 0 && strcmp(a->gpu, b->gpu) == 0 &&
         sn_conditions_same(&a->conditions, &b->conditions);
}

/* A GPU's points lie together: one with several memories has neighbours that differ. */
static bool is_other_memory(const sn_sweep *sweep, uint32_t i) {
  const sn_sweep_row *a = &sweep->rows[i - 1], *b = &sweep->rows[i];
  return a->memory_bytes != b->memory_bytes && strcmp(a->gpu, b->gpu) == 0;
}

static bool differs_in(const sn_condition *c, const sn_sweep_row *a, const sn_sweep_row *b) {
  char x[SN_CONDITION_TEXT], y[SN_CONDITION_TEXT];
  return strcmp(sn_condition_text(c, &a->conditions, x), sn_condition_text(c, &b->conditions, y)) != 0;
}

/* What is the same for all points needs no column, nor does memory that only differs with the GPU. */
static void hide_options(const sn_sweep *sweep, const sn_condition *const *order, sn_table *table) {
  bool differs[COLUMNS] = {false};
  const sn_sweep_row *a = sweep->rows;
  for (uint32_t i = 1; i < sweep->n_rows; i++) {
    const sn_sweep_row *b = &sweep->rows[i];
    differs[IMAGE] = differs[IMAGE] || a->image != b->image;
    differs[MEMORY] = differs[MEMORY] || is_other_memory(sweep, i);
    for (uint32_t c = 0; c < SN_CONDITION_ROWS; c++)
      differs[CONDITION + c] = differs[CONDITION + c] || differs_in(order[c], a, b);
  }
  for (uint32_t c = IMAGE; c < BATCH; c++)
    if (c != GPU && !differs[c]) sn_table_hide(table, c);
}

typedef struct best {
  uint32_t n_fit, n_failed;
  const sn_sweep_row *fastest, *smallest; /* NULL: none, or not known */
} best;

static best find_best(const sn_sweep_row *rows, uint32_t count) {
  best b = {0};
  for (uint32_t i = 0; i < count; i++) {
    const sn_sweep_row *r = &rows[i];
    b.n_fit += r->fits;
    b.n_failed += r->failure[0] != '\0';
    if (r->fits && sn_sweep_row_beats(r, b.fastest)) b.fastest = r;
    if (!r->failure[0] && r->least_device_bytes &&
        (!b.smallest || r->least_device_bytes < b.smallest->least_device_bytes))
      b.smallest = r;
  }
  return b;
}

static void gib_cell(sn_table *table, uint64_t bytes) {
  if (bytes)
    sn_table_cell(table, "%.2f", (double)bytes / GIB);
  else
    sn_table_cell(table, "-");
}

static void condition_cell(const sn_condition *c, const sn_conditions *conditions, sn_table *table) {
  char room[SN_CONDITION_TEXT];
  const void *value = sn_condition_of(c, conditions);
  const char *on = strchr(c->over, '|') ? strchr(c->over, '|') + 1 : "";
  if (c->kind == SN_CONDITION_FLAG)
    sn_table_cell(table, "%.*s", (int)(*(const bool *)value ? strlen(on) : strcspn(c->over, "|")),
                  *(const bool *)value ? on : c->over);
  else if (c->kind == SN_CONDITION_BYTES && *(const uint64_t *)value == 0)
    sn_table_cell(table, "all");
  else if (c->kind == SN_CONDITION_BYTES)
    sn_table_cell(table, "%.2f", (double)*(const uint64_t *)value / GIB);
  else
    sn_table_cell(table, "%s", sn_condition_text(c, conditions, room));
}

static void add_group(const sn_sweep_row *rows, uint32_t count, const sn_condition *const *order, sn_table *table) {
  best b = find_best(rows, count);
  sn_table_cell(table, "%s", rows->net);
  if (rows->image)
    sn_table_cell(table, "%" PRIu32, rows->image);
  else
    sn_table_cell(table, "own");
  sn_table_cell(table, "%s", rows->gpu);
  sn_table_cell(table, "%.2f", (double)rows->memory_bytes / GIB);
  for (uint32_t c = 0; c < SN_CONDITION_ROWS; c++) condition_cell(order[c], &rows->conditions, table);
  sn_table_cell(table, "%" PRIu32, rows->batch);
  sn_table_cell(table, "%" PRIu32 "/%" PRIu32, b.n_fit, count);
  sn_table_cell(table, "%s", b.fastest ? b.fastest->strategy : b.n_failed == count ? "failed" : "-");
  sn_table_figure(table, b.fastest != NULL, b.fastest ? b.fastest->images_per_second : 0);
  gib_cell(table, b.fastest ? b.fastest->peak_device_bytes : 0);
  gib_cell(table, b.smallest ? b.smallest->least_device_bytes : 0);
  if (!b.fastest) sn_table_dim(table);
}

/* The precision of all points, where it is one and not fp32. */
static const char *one_precision(const sn_sweep *sweep) {
  const char *precision = sweep->n_rows > 0 ? sweep->rows[0].conditions.precision : "fp32";
  for (uint32_t i = 1; i < sweep->n_rows; i++)
    if (strcmp(sweep->rows[i].conditions.precision, precision) != 0) return NULL;
  return strcmp(precision, "fp32") != 0 ? precision : NULL;
}

static void print_heading(const sn_sweep *sweep, FILE *out) {
  const sn_sweep_line *h = &sweep->head;
  fprintf(out, "sweep %" PRId64 ": %" PRIu32 " points, ", h->id, h->n_points);
  if (h->n_stored < h->n_points) fprintf(out, "%" PRIu32 " of them computed, ", h->n_stored);
  fprintf(out, "%" PRIu32 " fit", h->n_fit);
  if (h->n_failed) fprintf(out, ", %" PRIu32 " failed", h->n_failed);
  if (sweep->n_rows > 0 && sweep->rows[0].conditions.inference) fputs("; run and not trained", out);
  if (*h->freeze) fprintf(out, "; frozen: %s", h->freeze);
  if (*h->margin) fprintf(out, "; %s of each GPU's memory kept free", h->margin);
  if (one_precision(sweep)) fprintf(out, "; %s", one_precision(sweep));
  fputs("\n\n", out);
}

/* Of all points that fit. */
static sn_status print_times(const sn_sweep *sweep, FILE *out, sn_err *err) {
  sn_timed *rows = calloc((size_t)sweep->n_rows + 1, sizeof *rows);
  uint32_t count = 0;
  if (!rows) return sn_fail_memory(err);
  for (uint32_t i = 0; i < sweep->n_rows; i++) {
    const sn_sweep_row *r = &sweep->rows[i];
    if (!r->fits || !sn_times_read(r->strategy, &r->conditions, &rows[count])) continue;
    sn_timed_set_card(&rows[count], r->gpu);
    rows[count].recorded = sn_net_is_recording(r->net);
    rows[count++].tokens = sn_net_is_sequence(r->net);
  }
  sn_times_print(rows, count, out);
  free(rows);
  return SN_OK;
}

static sn_status print_table(const sn_sweep *sweep, const sn_out *out, sn_err *err) {
  const sn_condition *order[SN_CONDITION_ROWS];
  sn_table_column columns[COLUMNS];
  const char *unit = sn_sweep_unit(sweep);
  memcpy(columns, plain_columns, sizeof columns);
  order_conditions(order);
  head_conditions(order, columns);
  if (strcmp(unit, "sequences") == 0) columns[IMAGE].heading = "tokens";
  columns[IMAGES].top = unit;
  sn_table *table = sn_table_new(columns, COLUMNS);
  for (uint32_t first = 0, end; first < sweep->n_rows; first = end) {
    for (end = first + 1; end < sweep->n_rows && same_group(&sweep->rows[first], &sweep->rows[end]);) end++;
    add_group(&sweep->rows[first], end - first, order, table);
  }
  hide_options(sweep, order, table);
  print_heading(sweep, out->stream);
  sn_status status = sn_out_table(out, table, err);
  sn_table_free(table);
  return status == SN_OK ? print_times(sweep, out->stream, err) : status;
}

/* ---- JSON and CSV ---- */

typedef struct put {
  sn_json_object *json; /* NULL: a line of CSV */
  bool heads;           /* CSV: the names instead of the values */
  bool begun;
  bool done[SN_CONDITION_ROWS]; /* conditions that have been put */
  FILE *out;
} put;

static void put_csv(put *p, const char *name, const char *text) {
  sn_csv_put(p->out, p->heads ? name : text, !p->begun);
  p->begun = true;
}

static void put_text(put *p, const char *name, const char *text) {
  if (p->json)
    sn_json_put_text(p->json, name, text);
  else
    put_csv(p, name, text);
}

static void put_count(put *p, const char *name, uint64_t value) {
  char digits[24];
  snprintf(digits, sizeof digits, "%" PRIu64, value);
  if (p->json)
    sn_json_put_count(p->json, name, value);
  else
    put_csv(p, name, digits);
}

static void put_real(put *p, const char *name, double value) {
  char digits[SN_UNIT_TEXT];
  if (p->json)
    sn_json_put_real(p->json, name, value);
  else
    put_csv(p, name, sn_print_real(value, digits));
}

static void put_bool(put *p, const char *name, bool value) {
  if (p->json)
    sn_json_put_bool(p->json, name, value);
  else
    put_csv(p, name, sn_csv_bool(value));
}

/* Conditions by name, in the order in which they came to be: NULL: those that are left. */
static void put_condition(put *p, const sn_conditions *conditions, const char *name) {
  char room[SN_CONDITION_TEXT];
  for (uint32_t i = 0; i < SN_CONDITION_ROWS; i++) {
    const sn_condition *c = &sn_condition_table[i];
    if (name ? strcmp(c->name, name) != 0 : p->done[i]) continue;
    p->done[i] = true;
    if (p->json)
      sn_json_put_condition(p->json, c, conditions);
    else
      put_csv(p, c->name, p->heads ? "" : sn_condition_text(c, conditions, room));
  }
}

/* Whose graph a strategy plans; "" where its name is none that this snsim knows. */
static const char *dialect_of(const char *name) {
  sn_strategy strategy;
  sn_err err = SN_ERR_INIT;
  return sn_strategy_parse(name, &strategy, &err) == SN_OK ? sn_dialect_of(strategy.dialect)->name : "";
}

/* The members of a point; times are below 2^63. */
static void put_row(put *p, const sn_sweep_row *r) {
  const sn_conditions *c = &r->conditions;
  put_count(p, "point", r->point);
  put_text(p, "net", r->net);
  put_text(p, "gpu", r->gpu);
  put_count(p, "memory_bytes", r->memory_bytes);
  put_condition(p, c, "workspace");
  put_condition(p, c, "external");
  put_condition(p, c, "allocator");
  put_condition(p, c, "pool_limit_bytes");
  put_count(p, "batch", r->batch);
  put_text(p, "strategy", r->strategy);
  put_text(p, "failure", r->failure);
  put_bool(p, "fits", r->fits);
  put_count(p, "peak_device_bytes", r->peak_device_bytes);
  put_count(p, "least_device_bytes", r->least_device_bytes);
  put_count(p, "peak_tensor_bytes", r->peak_tensor_bytes);
  put_count(p, "pool_bytes", r->pool_bytes);
  put_count(p, "workspace_peak_bytes", r->workspace_peak_bytes);
  put_count(p, "offload_bytes", r->offload_bytes);
  put_count(p, "prefetch_bytes", r->prefetch_bytes);
  put_count(p, "external_bytes", r->external_bytes);
  put_count(p, "recomputed_layers", r->recomputed_layers);
  put_count(p, "iteration_ns", (uint64_t)r->iteration_ns);
  put_count(p, "stall_ns", (uint64_t)r->stall_ns);
  put_real(p, "images_per_second", r->images_per_second);
  put_count(p, "image", r->image);
  put_condition(p, c, "shared_link");
  put_text(p, "placement", r->placement);
  put_condition(p, c, "optimizer");
  put_condition(p, c, "accumulate");
  put_condition(p, c, "inference");
  put_text(p, "dialect", dialect_of(r->strategy));
  put_condition(p, c, "precision");
  put_count(p, "largest_load_bytes", r->largest_load_bytes);
  put_condition(p, c, NULL);
}

static void print_csv(const sn_sweep *sweep, FILE *out) {
  put names = {.heads = true, .out = out};
  put_row(&names, &(const sn_sweep_row){.net = "", .gpu = "", .strategy = ""});
  sn_csv_end(out);
  for (uint32_t i = 0; i < sweep->n_rows; i++) {
    put line = {.out = out};
    put_row(&line, &sweep->rows[i]);
    sn_csv_end(out);
  }
}

static sn_status print_json(const sn_sweep *sweep, FILE *out, sn_err *err) {
  sn_json_object head = sn_json_begin();
  sn_json_put_count(&head, "sweep", (uint64_t)sweep->head.id);
  sn_json_put_text(&head, "version", sweep->head.version);
  sn_json_put_count(&head, "points", sweep->head.n_points);
  sn_json_put_count(&head, "computed", sweep->head.n_stored);
  sn_json_put_count(&head, "fit", sweep->head.n_fit);
  sn_json_put_count(&head, "failed", sweep->head.n_failed);
  sn_json_end(&head, "", true, ",\"rows\":[", out, err);
  for (uint32_t i = 0; i < sweep->n_rows && err->code == SN_OK; i++) {
    sn_json_object row = sn_json_begin();
    put_row(&(put){.json = &row}, &sweep->rows[i]);
    sn_json_end(&row, i ? ",\n" : "\n", false, "", out, err);
  }
  fputs("\n]}\n", out);
  return err->code;
}

sn_status sn_sweep_print(const sn_args *args, const sn_sweep *sweep, sn_err *err) {
  sn_out out;
  if (sn_out_open(&out, args->output, args->color, err) != SN_OK) return err->code;
  if (args->json)
    print_json(sweep, out.stream, err);
  else if (args->csv)
    print_csv(sweep, out.stream);
  else
    print_table(sweep, &out, err);
  return sn_out_close(&out, err);
}

/* ---- the list ---- */

static sn_status print_list_table(const sn_sweep_list *list, const sn_out *out, sn_err *err) {
  static const sn_table_column list_columns[] = {
      {"", "sweep", SN_TABLE_NUMBER},  {"", "created (UTC)", SN_TABLE_TEXT | SN_TABLE_GAP},
      {"", "points", SN_TABLE_NUMBER}, {"", "computed", SN_TABLE_NUMBER},
      {"", "fit", SN_TABLE_NUMBER},    {"", "failed", SN_TABLE_NUMBER},
      {"", "begun", SN_TABLE_NUMBER},
  };
  sn_table *table = sn_table_new(list_columns, sizeof list_columns / sizeof list_columns[0]);
  for (uint32_t i = 0; i < list->count; i++) {
    const sn_sweep_line *line = &list->lines[i];
    sn_table_cell(table, "%" PRId64, line->id);
    sn_table_cell(table, "%s", line->created);
    sn_table_cell(table, "%" PRIu32, line->n_points);
    sn_table_cell(table, "%" PRIu32, line->n_stored);
    sn_table_cell(table, "%" PRIu32, line->n_fit);
    sn_table_cell(table, "%" PRIu32, line->n_failed);
    sn_table_cell(table, "%" PRIu32, line->sessions);
  }
  sn_status status = sn_out_table(out, table, err);
  sn_table_free(table);
  return status;
}

static sn_status print_list_json(const sn_sweep_list *list, FILE *out, sn_err *err) {
  fputs("{\"sweeps\":[", out);
  for (uint32_t i = 0; i < list->count && err->code == SN_OK; i++) {
    const sn_sweep_line *line = &list->lines[i];
    sn_json_object o = sn_json_begin();
    sn_json_put_count(&o, "sweep", (uint64_t)line->id);
    sn_json_put_text(&o, "created", line->created);
    sn_json_put_text(&o, "version", line->version);
    sn_json_put_count(&o, "points", line->n_points);
    sn_json_put_count(&o, "computed", line->n_stored);
    sn_json_put_count(&o, "fit", line->n_fit);
    sn_json_put_count(&o, "failed", line->n_failed);
    sn_json_put_count(&o, "begun", line->sessions);
    sn_json_put_text(&o, "grid", line->grid);
    sn_json_end(&o, i ? ",\n" : "\n", false, "", out, err);
  }
  fputs("\n]}\n", out);
  return err->code;
}

static sn_status print_list(const sn_args *args, const sn_sweep_list *list, sn_err *err) {
  sn_out out;
  if (sn_out_open(&out, args->output, args->color, err) != SN_OK) return err->code;
  if (args->json)
    print_list_json(list, out.stream, err);
  else
    print_list_table(list, &out, err);
  return sn_out_close(&out, err);
}

bool sn_sweep_is_shown(const sn_args *args) {
  return args->operand && (strcmp(args->operand, "sweeps") == 0 || sn_args_is_sweep(args));
}

sn_status sn_sweep_show(const sn_args *args, sn_store *store, sn_err *err) {
  int64_t id;
  if (args->json && args->csv) return sn_fail(err, SN_BAD_USAGE, "--json and --csv exclude each other");
  if (!sn_args_is_sweep(args)) {
    sn_sweep_list *list = sn_sweep_all(store, err);
    if (list) print_list(args, list, err);
    sn_sweep_list_free(list);
    return err->code;
  }
  if (sn_args_sweep(args, &id, err) != SN_OK) return err->code;
  sn_sweep *found = sn_sweep_get(store, id, err);
  if (found && sn_file_conflict_check_sweep(args, found->head.grid, err) == SN_OK) sn_sweep_print(args, found, err);
  sn_sweep_free(found);
  return err->code;
}
