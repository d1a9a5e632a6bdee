/* Sweeps in the store; see the header.
 *
 * A put is one transaction. It does not wait for the disk (synchronous = NORMAL, with WAL): a killed program loses
 * nothing, a power cut may take the last puts, which the sweep then computes again. That the sweep is still ours is
 * looked up inside the transaction: sweeps.sessions is raised by everyone who enters, so the older program notices at
 * its next put. */
#include "db/sweep.h"

#include "db/store_internal.h"
#include "models/zoo/zoo.h"
#include "sim/sweep/grid.h"

#include <assert.h>
#include <string.h>

#ifndef SNSIM_VERSION
#define SNSIM_VERSION "unknown"
#endif

bool sn_sweep_row_beats(const sn_sweep_row *row, const sn_sweep_row *best) {
  if (!best || row->images_per_second != best->images_per_second)
    return !best || row->images_per_second > best->images_per_second;
  return row->peak_device_bytes < best->peak_device_bytes;
}

const char *sn_sweep_unit(const sn_sweep *sweep) {
  const char *unit = sweep->n_rows > 0 ? sn_net_unit(sweep->rows[0].net) : "images";
  for (uint32_t i = 1; i < sweep->n_rows; i++)
    if (strcmp(sn_net_unit(sweep->rows[i].net), unit) != 0) return "images";
  return unit;
}

/* ---- one statement ---- */

/* Runs a statement with one number and perhaps one text bound; a first column, where it has rows, goes to *out. */
static sn_status run_one(sn_store *store, const char *sql, int64_t number, const char *text, int64_t *out,
                         sn_err *err) {
  sqlite3_stmt *statement = sn__store_prepare(store, sql, err);
  if (!statement) return err->code;
  int rc = sqlite3_bind_int64(statement, 1, number);
  if (rc == SQLITE_OK && text) rc = sqlite3_bind_text(statement, 2, text, -1, SQLITE_STATIC);
  if (rc == SQLITE_OK) rc = sqlite3_step(statement);
  if (rc == SQLITE_ROW && out) *out = sqlite3_column_int64(statement, 0);
  if (rc != SQLITE_ROW && rc != SQLITE_DONE) sn__store_fail(store, rc, err);
  sqlite3_finalize(statement);
  return err->code;
}

/* ---- beginning and going on ---- */

sn_status sn_sweep_find(sn_store *store, const char *grid, int64_t *id, sn_err *err) {
  *id = 0;
  return run_one(store, "SELECT max(id) FROM sweeps WHERE key = ?1 AND grid = ?2", (int64_t)sn_grid_key(grid), grid, id,
                 err);
}

static sn_status insert_sweep(sn_store *store, const char *grid, uint32_t n_points, sn_err *err) {
  sqlite3_stmt *statement = sn__store_prepare(
      store, "INSERT INTO sweeps(key, grid, n_points, version) VALUES (?, ?, ?, '" SNSIM_VERSION "')", err);
  if (!statement) return err->code;
  int rc = sqlite3_bind_int64(statement, 1, (int64_t)sn_grid_key(grid));
  if (rc == SQLITE_OK) rc = sqlite3_bind_text(statement, 2, grid, -1, SQLITE_STATIC);
  if (rc == SQLITE_OK) rc = sqlite3_bind_int64(statement, 3, n_points);
  if (rc == SQLITE_OK) rc = sqlite3_step(statement);
  if (rc != SQLITE_DONE) sn__store_fail(store, rc, err);
  sqlite3_finalize(statement);
  return err->code;
}

sn_status sn_sweep_create(sn_store *store, const char *grid, uint32_t n_points, int64_t *id, sn_err *err) {
  if (sn__store_begin(store, SN__WRITE, err) != SN_OK) return err->code;
  insert_sweep(store, grid, n_points, err);
  *id = sqlite3_last_insert_rowid(store->db);
  return sn__store_end(store, err);
}

static sn_status fail_unknown(sn_store *store, int64_t id, sn_err *err) {
  int64_t newest = 0;
  if (sn__store_number(store, "SELECT coalesce(max(id), 0) FROM sweeps", &newest, err) != SN_OK) return err->code;
  if (newest == 0)
    return sn_fail(err, SN_BAD_INPUT,
                   "%.300s: there are no sweeps yet; make one with snsim sweep --nets LIST --batches LIST",
                   store->path);
  return sn_fail(err, SN_BAD_INPUT, "%.300s: there is no sweep %lld; the newest is %lld", store->path, (long long)id,
                 (long long)newest);
}

static const char read_sessions[] = "SELECT sessions FROM sweeps WHERE id = ?1";

sn_status sn_sweep_enter(sn_store *store, int64_t id, uint32_t *session, sn_err *err) {
  int64_t number = 0;
  if (sn__store_begin(store, SN__WRITE, err) != SN_OK) return err->code;
  run_one(store, "UPDATE sweeps SET sessions = sessions + 1 WHERE id = ?1", id, NULL, NULL, err);
  if (err->code == SN_OK) run_one(store, read_sessions, id, NULL, &number, err);
  if (err->code == SN_OK && number == 0) fail_unknown(store, id, err);
  *session = (uint32_t)number;
  if (sn__store_end(store, err) != SN_OK) return err->code;
  return sn__store_exec(store, "PRAGMA synchronous = NORMAL", err);
}

static sn_status read_marks(sn_store *store, sqlite3_stmt *statement, uint32_t n_points, bool *marks, sn_err *err) {
  int rc = sqlite3_step(statement);
  for (; rc == SQLITE_ROW; rc = sqlite3_step(statement)) {
    int64_t point = sqlite3_column_int64(statement, 0);
    if (point < 1 || point > n_points) return sn__store_damaged(store, "a sweep has points beyond its grid", err);
    marks[point - 1] = true;
  }
  return rc == SQLITE_DONE ? SN_OK : sn__store_fail(store, rc, err);
}

sn_status sn_sweep_stored(sn_store *store, int64_t id, uint32_t n_points, bool *marks, sn_err *err) {
  sqlite3_stmt *statement = sn__store_prepare(store, "SELECT point FROM points WHERE sweep_id = ?", err);
  if (!statement) return err->code;
  int rc = sqlite3_bind_int64(statement, 1, id);
  if (rc == SQLITE_OK)
    read_marks(store, statement, n_points, marks, err);
  else
    sn__store_fail(store, rc, err);
  sqlite3_finalize(statement);
  return err->code;
}

static sn_status check_ours(sn_store *store, int64_t id, uint32_t session, sn_err *err) {
  int64_t newest = 0;
  if (run_one(store, read_sessions, id, NULL, &newest, err) != SN_OK || newest == session) return err->code;
  if (newest == 0) return sn_fail(err, SN_BAD_FILE, "%.300s: sweep %lld has been deleted", store->path, (long long)id);
  return sn_fail(err, SN_BAD_FILE,
                 "%.300s: another program has continued sweep %lld; this one stops, what it had stored is kept",
                 store->path, (long long)id);
}

sn_status sn_sweep_put(sn_store *store, int64_t id, uint32_t session, sn_sweep_row *rows, uint32_t count, sn_err *err) {
  for (uint32_t i = 0; i < count; i++) rows[i].session = session;
  if (sn__store_begin(store, SN__WRITE, err) != SN_OK) return err->code;
  if (check_ours(store, id, session, err) == SN_OK) sn__rows_insert(store, &sn__points, &id, rows, count, err);
  return sn__store_end(store, err);
}

static sn_status delete_sweep(sn_store *store, int64_t *id, sn_err *err) {
  if (*id == 0 && sn__store_number(store, "SELECT coalesce(max(id), 0) FROM sweeps", id, err) != SN_OK)
    return err->code;
  if (run_one(store, "DELETE FROM sweeps WHERE id = ?1", *id, NULL, NULL, err) == SN_OK &&
      sqlite3_changes(store->db) == 0)
    fail_unknown(store, *id, err);
  return err->code;
}

sn_status sn_sweep_delete(sn_store *store, int64_t *id, sn_err *err) {
  if (sn__store_begin(store, SN__WRITE, err) != SN_OK) return err->code;
  delete_sweep(store, id, err);
  return sn__store_end(store, err);
}

/* ---- reading ---- */

#define LINES                                                                                                          \
  "SELECT id, created, version, grid, n_points, sessions,"                                                             \
  "  (SELECT count(*) FROM points WHERE sweep_id = sweeps.id),"                                                        \
  "  (SELECT count(*) FROM points WHERE sweep_id = sweeps.id AND fits),"                                               \
  "  (SELECT count(*) FROM points WHERE sweep_id = sweeps.id AND failure <> ''),"                                      \
  "  coalesce(CASE WHEN json_valid(grid) THEN json_extract(grid, '$.freeze') END, ''),"                                \
  "  coalesce(CASE WHEN json_valid(grid) THEN json_extract(grid, '$.margin') END, '')"                                 \
  " FROM sweeps"

static const char *take_text(sqlite3_stmt *statement, int at, sn_arena *arena) {
  const char *text = (const char *)sqlite3_column_text(statement, at);
  return text ? sn_arena_text(arena, text) : NULL;
}

static sn_status read_line(sn_store *store, sqlite3_stmt *statement, sn_sweep_line *line, sn_arena *arena,
                           sn_err *err) {
  *line = (sn_sweep_line){.id = sqlite3_column_int64(statement, 0),
                          .created = take_text(statement, 1, arena),
                          .version = take_text(statement, 2, arena),
                          .grid = take_text(statement, 3, arena),
                          .freeze = take_text(statement, 9, arena),
                          .margin = take_text(statement, 10, arena)};
  uint32_t *const counts[] = {&line->n_points, &line->sessions, &line->n_stored, &line->n_fit, &line->n_failed};
  for (int i = 0; i < 5; i++)
    if (sn__column_count(statement, 4 + i, counts[i]) != SQLITE_OK)
      return sn__store_damaged(store, "a count of a sweep is none", err);
  return line->created && line->version && line->grid && line->freeze && line->margin ? SN_OK : sn_fail_memory(err);
}

static sn_status get_head(sn_store *store, int64_t id, sn_sweep *sweep, sn_err *err) {
  sqlite3_stmt *statement = sn__store_prepare(store, LINES " WHERE id = ?1 OR ?1 = 0 ORDER BY id DESC LIMIT 1", err);
  if (!statement) return err->code;
  int rc = sqlite3_bind_int64(statement, 1, id);
  if (rc == SQLITE_OK) rc = sqlite3_step(statement);
  if (rc == SQLITE_ROW)
    read_line(store, statement, &sweep->head, sweep->arena, err);
  else if (rc == SQLITE_DONE)
    fail_unknown(store, id, err);
  else
    sn__store_fail(store, rc, err);
  sqlite3_finalize(statement);
  return err->code;
}

static sn_status check_rows(sn_store *store, const sn_sweep_line *head, const sn_sweep_row *rows, uint32_t count,
                            sn_err *err) {
  for (uint32_t i = 0; i < count; i++)
    if (rows[i].point < 1 || rows[i].point > head->n_points)
      return sn__store_damaged(store, "a sweep has points beyond its grid", err);
  return SN_OK;
}

static sn_sweep *get_all(sn_store *store, int64_t id, bool want_rows, sn_arena *arena, sn_err *err) {
  sn_sweep *sweep = sn_arena_alloc(arena, 1, sizeof *sweep);
  void *rows = NULL;
  if (!sweep) {
    sn_fail_memory(err);
    return NULL;
  }
  sweep->arena = arena;
  if (get_head(store, id, sweep, err) != SN_OK) return NULL;
  if (want_rows && sn__rows_select(store, &sn__points, &sweep->head.id, arena, &rows, &sweep->n_rows, err) != SN_OK)
    return NULL;
  sweep->rows = rows;
  assert(rows || sweep->n_rows == 0);
  return check_rows(store, &sweep->head, rows, sweep->n_rows, err) == SN_OK ? sweep : NULL;
}

static sn_sweep *get(sn_store *store, int64_t id, bool want_rows, sn_err *err) {
  sn_arena *arena = sn_arena_new();
  sn_sweep *sweep = NULL;
  if (!arena)
    sn_fail_memory(err);
  else if (sn__store_begin(store, SN__READ, err) == SN_OK) {
    sweep = get_all(store, id, want_rows, arena, err);
    sn__store_end(store, err);
  }
  if (err->code == SN_OK) return sweep;
  sn_arena_free(arena);
  return NULL;
}

sn_sweep *sn_sweep_get(sn_store *store, int64_t id, sn_err *err) {
  return get(store, id, true, err);
}

sn_sweep *sn_sweep_get_head(sn_store *store, int64_t id, sn_err *err) {
  return get(store, id, false, err);
}

void sn_sweep_free(sn_sweep *sweep) {
  if (sweep) sn_arena_free(sweep->arena);
}

static sn_status read_lines(sn_store *store, sn_sweep_line *lines, uint32_t count, sn_arena *arena, sn_err *err) {
  sqlite3_stmt *statement = sn__store_prepare(store, LINES " ORDER BY id DESC", err);
  if (!statement) return err->code;
  for (uint32_t i = 0; err->code == SN_OK && i < count; i++) {
    int rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW)
      read_line(store, statement, &lines[i], arena, err);
    else
      sn__store_fail(store, rc, err);
  }
  sqlite3_finalize(statement);
  return err->code;
}

static sn_sweep_list *list_all(sn_store *store, sn_arena *arena, sn_err *err) {
  int64_t count = 0;
  if (sn__store_number(store, "SELECT count(*) FROM sweeps", &count, err) != SN_OK) return NULL;
  sn_sweep_list *list = sn_arena_alloc(arena, 1, sizeof *list);
  count = count > UINT32_MAX ? UINT32_MAX : count;
  sn_sweep_line *lines = sn_arena_alloc(arena, (size_t)count, sizeof *lines);
  if (!list || !lines) {
    sn_fail_memory(err);
    return NULL;
  }
  *list = (sn_sweep_list){(uint32_t)count, lines, arena};
  return read_lines(store, lines, list->count, arena, err) == SN_OK ? list : NULL;
}

sn_sweep_list *sn_sweep_all(sn_store *store, sn_err *err) {
  sn_arena *arena = sn_arena_new();
  sn_sweep_list *list = NULL;
  if (!arena)
    sn_fail_memory(err);
  else if (sn__store_begin(store, SN__READ, err) == SN_OK) {
    list = list_all(store, arena, err);
    sn__store_end(store, err);
  }
  if (err->code == SN_OK) return list;
  sn_arena_free(arena);
  return NULL;
}

void sn_sweep_list_free(sn_sweep_list *list) {
  if (list) sn_arena_free(list->arena);
}
