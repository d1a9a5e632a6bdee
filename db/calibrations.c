/* Calibrations to rows and back; see the header. */
#include "db/store_internal.h"

#include "sim/device/device.h"

#include <stdio.h>
#include <string.h>

static const char exact[] = "SELECT id, created FROM calibrations WHERE name = ?1 AND hardware = ?2 AND libraries = ?3"
                            " ORDER BY created DESC, id DESC";
static const char newest[] = "SELECT id, created FROM calibrations WHERE name = ?1 ORDER BY created DESC, id DESC";
static const char behind[] = "SELECT id, created FROM calibrations ORDER BY created DESC, id DESC LIMIT 1 OFFSET ?1";
static const char next_id[] = "SELECT coalesce(max(id), 0) + 1 FROM calibrations";

/* The number of a stored calibration, 0 where there is none; *created is the arena's, where one is given. */
static sn_status find(sn_store *store, const char *name, const char *hardware, const char *libraries, int64_t *id,
                      sn_arena *arena, const char **created, sn_err *err) {
  sqlite3_stmt *statement = sn__store_prepare(store, hardware ? exact : newest, err);
  if (!statement) return err->code;
  int rc = sqlite3_bind_text(statement, 1, name, -1, SQLITE_STATIC);
  if (hardware && rc == SQLITE_OK) rc = sqlite3_bind_text(statement, 2, hardware, -1, SQLITE_STATIC);
  if (hardware && rc == SQLITE_OK) rc = sqlite3_bind_text(statement, 3, libraries, -1, SQLITE_STATIC);
  if (rc == SQLITE_OK) rc = sqlite3_step(statement);
  *id = rc == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
  if (rc == SQLITE_ROW && arena) {
    const char *text = (const char *)sqlite3_column_text(statement, 1);
    *created = text ? sn_arena_text(arena, text) : NULL;
    if (!*created) sn_fail_memory(err);
  }
  if (rc != SQLITE_ROW && rc != SQLITE_DONE) sn__store_fail(store, rc, err);
  sqlite3_finalize(statement);
  return err->code;
}

static sn_status remove_old(sn_store *store, int64_t id, sn_err *err) {
  char sql[128];
  if (id == 0) return SN_OK;
  snprintf(sql, sizeof sql,
           "DELETE FROM timings WHERE calibration_id = %lld; DELETE FROM calibrations WHERE id = %lld;", (long long)id,
           (long long)id);
  return sn__store_exec(store, sql, err);
}

static sn_status put_all(sn_store *store, const sn_calibration *c, sn_err *err) {
  int64_t id = 0;
  if (find(store, c->name, c->hardware, c->libraries, &id, NULL, NULL, err) != SN_OK ||
      remove_old(store, id, err) != SN_OK || sn__store_number(store, next_id, &id, err) != SN_OK ||
      sn__rows_insert(store, &sn__calibrations, &id, c, 1, err) != SN_OK)
    return err->code;
  return sn__rows_insert(store, &sn__timings, &id, c->timings, c->n_timings, err);
}

sn_status sn_store_put_calibration(sn_store *store, const sn_calibration *calibration, sn_err *err) {
  if (sn__store_begin(store, SN__WRITE, err) != SN_OK) return err->code;
  put_all(store, calibration, err);
  return sn__store_end(store, err);
}

/* What follows from the columns. */
static sn_status complete(sn_calibration *c, sn_err *err) {
  sn_device *p = &c->profile;
  sn_device_set_links(p, p->link_bandwidth[SN_EXTERNAL_HOST]);
  p->memory_efficiency = p->gemm_efficiency = p->conv_efficiency = 1;
  snprintf(p->name, sizeof p->name, "%s", c->name);
  snprintf(p->description, sizeof p->description, "%s", c->hardware);
  if (c->cores.count > 0) sn_calibration_set_cores(c, c->cores.count, c->cores.neighbour, c->cores.resize_ns);
  return sn_calibration_fit(c, err);
}

static sn_calibration *get_all(sn_store *store, int64_t id, const char *created, sn_arena *arena, sn_err *err) {
  void *rows, *timings;
  uint32_t count = 0, n_timings = 0;
  if (sn__rows_select(store, &sn__calibrations, &id, arena, &rows, &count, err) != SN_OK ||
      sn__rows_select(store, &sn__timings, &id, arena, &timings, &n_timings, err) != SN_OK)
    return NULL;
  sn_calibration *c = rows;
  c->created = created;
  c->timings = timings;
  c->n_timings = n_timings;
  c->arena = arena;
  return complete(c, err) == SN_OK ? c : NULL;
}

sn_calibration *sn_store_calibration(sn_store *store, const char *name, const char *hardware, const char *libraries,
                                     sn_err *err) {
  sn_arena *arena = sn_arena_new();
  sn_calibration *c = NULL;
  int64_t id = 0;
  const char *created = "";
  if (!arena)
    sn_fail_memory(err);
  else if (sn__store_begin(store, SN__READ, err) == SN_OK) {
    if (find(store, name, hardware, libraries, &id, arena, &created, err) == SN_OK && id != 0)
      c = get_all(store, id, created, arena, err);
    sn__store_end(store, err);
  }
  if (c && err->code == SN_OK) return c;
  sn_arena_free(arena);
  return NULL;
}

/* Number `at` of the calibrations, newest first; NULL, without an error, behind the last. */
static sn_calibration *get_at(sn_store *store, int64_t at, sn_arena *arena, sn_err *err) {
  sqlite3_stmt *statement = sn__store_prepare(store, behind, err);
  if (!statement) return NULL;
  int64_t id = 0;
  const char *created = NULL;
  int rc = sqlite3_bind_int64(statement, 1, at);
  if (rc == SQLITE_OK) rc = sqlite3_step(statement);
  if (rc == SQLITE_ROW) {
    id = sqlite3_column_int64(statement, 0);
    created = sn_arena_text(arena, (const char *)sqlite3_column_text(statement, 1));
    if (!created) sn_fail_memory(err);
  } else if (rc != SQLITE_DONE) {
    sn__store_fail(store, rc, err);
  }
  sqlite3_finalize(statement);
  return created ? get_all(store, id, created, arena, err) : NULL;
}

sn_status sn_store_each_calibration(sn_store *store,
                                    sn_status (*visit)(void *user, const sn_calibration *calibration, sn_err *err),
                                    void *user, sn_err *err) {
  bool more = sn__store_begin(store, SN__READ, err) == SN_OK;
  if (!more) return err->code;
  for (int64_t at = 0; more && err->code == SN_OK; at++) {
    sn_arena *arena = sn_arena_new();
    sn_calibration *c = arena ? get_at(store, at, arena, err) : NULL;
    if (!arena) sn_fail_memory(err);
    more = c != NULL;
    if (c) visit(user, c, err);
    sn_arena_free(arena);
  }
  return sn__store_end(store, err);
}
