/* Get: rows back to the run that was put, and the list of runs. Each call reads in one transaction, so it sees one
 * state of the file whatever others write meanwhile. */
#include "db/store_internal.h"

#include <string.h>

/* ---- one run ---- */

/* What is not a member of sn_run but leads to it. */
typedef struct place {
  int64_t owners[SN__OWNERS]; /* id, device_id */
  const char *created;
} place;

/* A damaged page may read as one without rows. */
static bool is_whole(sn_store *store, sn_err *err) {
  sqlite3_stmt *statement = sn__store_prepare(store, "PRAGMA quick_check(1)", err);
  const char *verdict = NULL;
  if (statement && sqlite3_step(statement) == SQLITE_ROW) verdict = (const char *)sqlite3_column_text(statement, 0);
  bool whole = verdict && strcmp(verdict, "ok") == 0;
  sqlite3_finalize(statement);
  return whole;
}

static sn_status fail_unknown(sn_store *store, int64_t id, int64_t newest, sn_err *err) {
  bool whole = newest > 0 || is_whole(store, err);
  if (err->code != SN_OK) return err->code;
  if (!whole) return sn__store_damaged(store, "its pages do not fit together", err);
  if (newest == 0) return sn__store_no_runs(store->path, err);
  return sn_fail(err, SN_BAD_INPUT, "%.300s: there is no run %lld; the newest is %lld", store->path, (long long)id,
                 (long long)newest);
}

static sn_status read_place(sn_store *store, sqlite3_stmt *statement, int64_t id, int64_t newest, place *out,
                            sn_arena *arena, sn_err *err) {
  int rc = sqlite3_bind_int64(statement, 1, id);
  if (rc == SQLITE_OK) rc = sqlite3_step(statement);
  if (rc == SQLITE_DONE) return fail_unknown(store, id, newest, err);
  if (rc != SQLITE_ROW) return sn__store_fail(store, rc, err);
  out->owners[0] = id;
  out->owners[1] = sqlite3_column_int64(statement, 0);
  const char *created = (const char *)sqlite3_column_text(statement, 1);
  out->created = created ? sn_arena_text(arena, created) : NULL;
  return out->created ? SN_OK : sn_fail_memory(err);
}

static sn_status find_place(sn_store *store, int64_t id, place *out, sn_arena *arena, sn_err *err) {
  int64_t newest = 0;
  if (sn__store_number(store, "SELECT coalesce(max(id), 0) FROM runs", &newest, err) != SN_OK) return err->code;
  sqlite3_stmt *statement = sn__store_prepare(store, "SELECT device_id, created FROM runs WHERE id = ?", err);
  if (statement) read_place(store, statement, id ? id : newest, newest, out, arena, err);
  sqlite3_finalize(statement);
  return err->code;
}

/* Reads an array that must have `expected` rows. */
static sn_status get_array(sn_store *store, const sn__table *table, const int64_t *owners, uint32_t expected,
                           sn_arena *arena, void **rows, sn_err *err) {
  uint32_t count = 0;
  if (sn__rows_select(store, table, owners, arena, rows, &count, err) != SN_OK) return err->code;
  return count == expected ? SN_OK : sn__store_damaged(store, "rows are missing or too many", err);
}

/* The names of a graph's steps, which all results of the graph share. */
typedef struct graph_names {
  const sn_step_row *rows;
  uint32_t count, graph;
} graph_names;

static sn_status get_names(sn_store *store, int64_t id, uint32_t graph, sn_arena *arena, graph_names *names,
                           sn_err *err) {
  void *rows = NULL;
  const int64_t owners[SN__OWNERS] = {id, graph};
  if (names->rows && names->graph == graph) return SN_OK;
  names->graph = graph;
  sn_status status = sn__rows_select(store, &sn__route, owners, arena, &rows, &names->count, err);
  names->rows = rows;
  return status;
}

static sn_status name_steps(sn_store *store, sn_step_row *steps, uint32_t count, const graph_names *names,
                            sn_err *err) {
  if (count > names->count) return sn__store_damaged(store, "steps without names", err);
  for (uint32_t i = 0; i < count; i++) {
    steps[i].step = i + 1;
    steps[i].layer = names->rows[i].layer;
    steps[i].op = names->rows[i].op;
    steps[i].pass = names->rows[i].pass;
  }
  return SN_OK;
}

static sn_status get_result(sn_store *store, const int64_t *owners, sn_result *result, graph_names *names,
                            sn_arena *arena, sn_err *err) {
  void *steps, *peak;
  if (get_array(store, &sn__steps, owners, result->steps ? result->n_steps : 0, arena, &steps, err) != SN_OK ||
      get_array(store, &sn__peaks, owners, result->peak ? result->n_peak : 0, arena, &peak, err) != SN_OK ||
      get_names(store, owners[0], result->graph, arena, names, err) != SN_OK)
    return err->code;
  result->steps = steps;
  result->peak = peak;
  return steps ? name_steps(store, steps, result->n_steps, names, err) : SN_OK;
}

static sn_status get_results(sn_store *store, sn_run *run, int64_t id, sn_arena *arena, sn_err *err) {
  void *rows;
  graph_names names = {0};
  if (get_array(store, &sn__results, &id, run->n_results, arena, &rows, err) != SN_OK) return err->code;
  sn_result *results = rows;
  for (uint32_t i = 0; i < run->n_results; i++) {
    int64_t owners[SN__OWNERS] = {id, i + 1};
    if (get_result(store, owners, &results[i], &names, arena, err) != SN_OK) return err->code;
  }
  run->results = results;
  return SN_OK;
}

static sn_status get_device(sn_store *store, sn_run *run, int64_t device, sn_arena *arena, sn_err *err) {
  void *rows;
  uint32_t count = 0;
  if (sn__rows_select(store, &sn__devices, &device, arena, &rows, &count, err) != SN_OK) return err->code;
  if (count != 1) return sn__store_damaged(store, "a run without a device", err);
  const sn_run *found = rows;
  run->gpu = found->gpu;
  run->memory_bytes = found->memory_bytes;
  run->memory_nominal = found->memory_nominal;
  return SN_OK;
}

static sn_run *get_all(sn_store *store, int64_t id, sn_arena *arena, sn_err *err) {
  place found = {{0}, NULL};
  void *rows, *tensors, *failures, *origins;
  uint32_t count = 0;
  if (find_place(store, id, &found, arena, err) != SN_OK ||
      sn__rows_select(store, &sn__runs, found.owners, arena, &rows, &count, err) != SN_OK)
    return NULL;
  sn_run *run = rows;
  run->id = found.owners[0];
  run->created = found.created;
  run->arena = arena;
  if (get_device(store, run, found.owners[1], arena, err) != SN_OK ||
      get_results(store, run, run->id, arena, err) != SN_OK ||
      get_array(store, &sn__tensors, &run->id, run->tensors ? run->n_tensors : 0, arena, &tensors, err) != SN_OK ||
      get_array(store, &sn__failures, &run->id, run->n_failures, arena, &failures, err) != SN_OK ||
      get_array(store, &sn__origins, &run->id, run->n_origins, arena, &origins, err) != SN_OK)
    return NULL;
  run->tensors = tensors;
  run->failures = failures;
  run->origins = origins;
  return run;
}

sn_run *sn_store_get(sn_store *store, int64_t id, sn_err *err) {
  sn_arena *arena = sn_arena_new();
  sn_run *run = NULL;
  if (!arena)
    sn_fail_memory(err);
  else if (sn__store_begin(store, SN__READ, err) == SN_OK) {
    run = get_all(store, id, arena, err);
    sn__store_end(store, err);
  }
  if (err->code == SN_OK) return run;
  sn_arena_free(arena);
  return NULL;
}

/* ---- one of them by name, and none of it any more ---- */

sn_status sn_store_find(sn_store *store, const char *name, int64_t *id, sn_err *err) {
  sqlite3_stmt *statement =
      sn__store_prepare(store, "SELECT coalesce(max(id), 0) FROM runs WHERE name = ? AND name <> ''", err);
  if (!statement) return err->code;
  int rc = sqlite3_bind_text(statement, 1, name, -1, SQLITE_STATIC);
  if (rc == SQLITE_OK) rc = sqlite3_step(statement);
  *id = rc == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
  if (rc != SQLITE_ROW) sn__store_fail(store, rc, err);
  sqlite3_finalize(statement);
  return err->code;
}

static sn_status delete_run(sn_store *store, int64_t *id, sn_err *err) {
  int64_t newest = 0;
  if (sn__store_number(store, "SELECT coalesce(max(id), 0) FROM runs", &newest, err) != SN_OK) return err->code;
  if (*id == 0) *id = newest;
  sqlite3_stmt *statement = sn__store_prepare(store, "DELETE FROM runs WHERE id = ?", err);
  if (!statement) return err->code;
  int rc = sqlite3_bind_int64(statement, 1, *id);
  if (rc == SQLITE_OK) rc = sqlite3_step(statement);
  if (rc != SQLITE_DONE)
    sn__store_fail(store, rc, err);
  else if (sqlite3_changes(store->db) == 0)
    fail_unknown(store, *id, newest, err);
  sqlite3_finalize(statement);
  return err->code;
}

sn_status sn_store_delete(sn_store *store, int64_t *id, sn_err *err) {
  if (sn__store_begin(store, SN__WRITE, err) != SN_OK) return err->code;
  delete_run(store, id, err);
  return sn__store_end(store, err);
}

/* ---- the list of runs ---- */

static const char *take_text(sqlite3_stmt *statement, int at, sn_arena *arena) {
  const char *text = (const char *)sqlite3_column_text(statement, at);
  return text ? sn_arena_text(arena, text) : NULL;
}

static sn_status read_line(sn_store *store, sqlite3_stmt *statement, sn_store_line *line, sn_arena *arena,
                           sn_err *err) {
  line->id = sqlite3_column_int64(statement, 0);
  line->created = take_text(statement, 1, arena);
  line->net = take_text(statement, 2, arena);
  line->gpu = take_text(statement, 3, arena);
  if (sn__column_count(statement, 4, &line->batch) != SQLITE_OK ||
      sn__column_count(statement, 5, &line->n_results) != SQLITE_OK ||
      sn__column_count(statement, 6, &line->n_fit) != SQLITE_OK)
    return sn__store_damaged(store, "a count of the list of runs is none", err);
  line->name = take_text(statement, 7, arena);
  line->parallel = take_text(statement, 8, arena);
  return line->created && line->net && line->gpu && line->name && line->parallel ? SN_OK : sn_fail_memory(err);
}

#define LISTED                                                                                                         \
  " FROM runs JOIN devices ON devices.id = device_id"                                                                  \
  " WHERE (?1 IS NULL OR instr(runs.name, ?1) > 0) AND (?2 IS NULL OR instr(net, ?2) > 0)"                             \
  "  AND (?3 IS NULL OR devices.name = ?3)"                                                                            \
  "  AND (?4 IS NULL OR EXISTS (SELECT 1 FROM results WHERE run_id = runs.id AND strategy = ?4))"

static const char count_listed[] = "SELECT count(*)" LISTED;
static const char lines_listed[] =
    "SELECT runs.id, created, net, devices.name, batch,"
    "  (SELECT count(*) FROM results WHERE run_id = runs.id),"
    "  (SELECT count(*) FROM results WHERE run_id = runs.id AND fits), runs.name, parallel" LISTED
    " ORDER BY runs.id DESC";

/* Prepares one of the two; texts that are NULL are bound as such. */
static sqlite3_stmt *prepare_listed(sn_store *store, const char *sql, const sn_store_filter *filter, sn_err *err) {
  static const sn_store_filter any = {0};
  const sn_store_filter *f = filter ? filter : &any;
  const char *texts[] = {f->name, f->net, f->gpu, f->strategy};
  sqlite3_stmt *statement = sn__store_prepare(store, sql, err);
  int rc = SQLITE_OK;
  for (int i = 0; statement && rc == SQLITE_OK && i < 4; i++)
    rc = sqlite3_bind_text(statement, i + 1, texts[i], -1, SQLITE_STATIC);
  if (!statement || rc == SQLITE_OK) return statement;
  sn__store_fail(store, rc, err);
  sqlite3_finalize(statement);
  return NULL;
}

static sn_status read_lines(sn_store *store, const sn_store_filter *filter, sn_store_line *lines, uint32_t count,
                            sn_arena *arena, sn_err *err) {
  sqlite3_stmt *statement = prepare_listed(store, lines_listed, filter, err);
  for (uint32_t i = 0; err->code == SN_OK && i < count; i++) {
    int rc = sqlite3_step(statement);
    if (rc == SQLITE_DONE)
      sn__store_damaged(store, "a run without a device", err);
    else if (rc != SQLITE_ROW)
      sn__store_fail(store, rc, err);
    else
      read_line(store, statement, &lines[i], arena, err);
  }
  sqlite3_finalize(statement);
  return err->code;
}

static sn_status count_lines(sn_store *store, const sn_store_filter *filter, int64_t *count, sn_err *err) {
  sqlite3_stmt *statement = prepare_listed(store, count_listed, filter, err);
  if (!statement) return err->code;
  int rc = sqlite3_step(statement);
  *count = sqlite3_column_int64(statement, 0);
  if (rc != SQLITE_ROW) sn__store_fail(store, rc, err);
  sqlite3_finalize(statement);
  return err->code;
}

static sn_store_list *list_all(sn_store *store, const sn_store_filter *filter, uint32_t most, sn_arena *arena,
                               sn_err *err) {
  int64_t stored = 0;
  if (count_lines(store, filter, &stored, err) != SN_OK) return NULL;
  uint32_t count = stored < most ? (uint32_t)stored : most;
  sn_store_list *list = sn_arena_alloc(arena, 1, sizeof *list);
  sn_store_line *lines = sn_arena_alloc(arena, count, sizeof *lines);
  if (!list || !lines) {
    sn_fail_memory(err);
    return NULL;
  }
  *list = (sn_store_list){count, lines, arena};
  return read_lines(store, filter, lines, count, arena, err) == SN_OK ? list : NULL;
}

sn_store_list *sn_store_runs(sn_store *store, const sn_store_filter *filter, uint32_t most, sn_err *err) {
  sn_arena *arena = sn_arena_new();
  sn_store_list *list = NULL;
  if (!arena)
    sn_fail_memory(err);
  else if (sn__store_begin(store, SN__READ, err) == SN_OK) {
    list = list_all(store, filter, most, arena, err);
    sn__store_end(store, err);
  }
  if (err->code == SN_OK) return list;
  sn_arena_free(arena);
  return NULL;
}

void sn_store_list_free(sn_store_list *list) {
  if (list) sn_arena_free(list->arena);
}
