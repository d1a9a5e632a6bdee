/* Empty tables: made once more from their own text, with columns or constraints put in; see store_internal.h.
 *
 * SQLite cannot add a constraint to a table that exists, and for each column that it adds it reads the whole schema
 * anew, twice: the migrations' ninety columns took 25 ms, as long as a few hundred points of a sweep. */
#include "db/store_internal.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* Where the columns of a table's text end: constraints of the table stand on lines of their own in our texts. */
static const char *end_of_columns(const char *text) {
  static const char *const constraints[] = {",  PRIMARY KEY (", ",  UNIQUE ("};
  const char *end = strrchr(text, ')');
  for (int i = 0; i < 2; i++) {
    const char *found = strstr(text, constraints[i]);
    if (found && found < end) end = found;
  }
  return end;
}

/* "DROP TABLE t; CREATE TABLE t(.., more ..) ..; CREATE INDEX ..", of an empty table; `old` is its text. */
static sn_status make_again(sn_store *store, const char *table, const char *old, const char *indices, sn__part part,
                            const char *more, sn_err *err) {
  assert(old && indices);
  const char *at = part == SN__COLUMN ? end_of_columns(old) : strrchr(old, ')'); /* behind it stand STRICT and such */
  if (!at) return sn_fail(err, SN_BUG, "store: the table %s has no columns", table);
  sqlite3_str *sql = sqlite3_str_new(store->db);
  sqlite3_str_appendf(sql, "DROP TABLE %s; %.*s%s%s; %s", table, (int)(at - old), old, more, at, indices);
  char *text = sqlite3_str_finish(sql);
  if (text)
    sn__store_exec(store, text, err);
  else
    sn_fail_memory(err);
  sqlite3_free(text);
  return err->code;
}

/* Reads the text of a table and its indices into the arena. */
static sn_status read_text(sn_store *store, const char *table, sn_arena *arena, const char *texts[2], sn_err *err) {
  sqlite3_stmt *statement = sn__store_prepare(store,
                                              "SELECT max(sql) FILTER (WHERE type = 'table'), "
                                              "coalesce(group_concat(sql, '; ') FILTER (WHERE type = 'index'), '')"
                                              " FROM sqlite_schema WHERE tbl_name = ?",
                                              err);
  if (!statement) return err->code;
  int rc = sqlite3_bind_text(statement, 1, table, -1, SQLITE_STATIC);
  if (rc == SQLITE_OK) rc = sqlite3_step(statement);
  for (int i = 0; rc == SQLITE_ROW && i < 2; i++) {
    const char *text = (const char *)sqlite3_column_text(statement, i);
    texts[i] = text ? sn_arena_text(arena, text) : NULL;
    if (!texts[i]) rc = SQLITE_NOMEM;
  }
  if (rc != SQLITE_ROW) sn__store_fail(store, rc, err);
  sqlite3_finalize(statement);
  return err->code;
}

sn_status sn__empty_add(sn_store *store, const char *table, sn__part part, const char *more, sn_err *err) {
  sn_arena *arena = sn_arena_new();
  const char *texts[2] = {NULL, NULL};
  if (!arena || !more)
    sn_fail_memory(err);
  else if (read_text(store, table, arena, texts, err) == SN_OK)
    make_again(store, table, texts[0], texts[1], part, more, err);
  sn_arena_free(arena);
  return err->code;
}

/* ---- a migration ---- */

/* Columns that a table is to get: ", first, second". */
typedef struct adding {
  char table[64];
  sqlite3_str *columns; /* NULL: none */
} adding;

static sn_status add_columns(sn_store *store, adding *a, sn_err *err) {
  if (!a->columns) return err->code;
  char *columns = sqlite3_str_finish(a->columns);
  a->columns = NULL;
  if (err->code == SN_OK) sn__empty_add(store, a->table, SN__COLUMN, columns, err);
  sqlite3_free(columns);
  return err->code;
}

static sn_status run_statement(sn_store *store, adding *a, const char *sql, int length, sn_err *err) {
  char table[64];
  int begin = 0;
  bool adds = sscanf(sql, "ALTER TABLE %63s ADD COLUMN %n", table, &begin) == 1 && begin > 0 && begin < length;
  if ((!adds || strcmp(table, a->table) != 0) && add_columns(store, a, err) != SN_OK) return err->code;
  if (adds) {
    if (!a->columns) a->columns = sqlite3_str_new(store->db);
    sqlite3_str_appendf(a->columns, ", %.*s", length - begin, sql + begin);
    memcpy(a->table, table, sizeof table);
    return SN_OK;
  }
  char *text = sqlite3_mprintf("%.*s", length, sql);
  if (!text) return sn_fail_memory(err);
  sn__store_exec(store, text, err);
  sqlite3_free(text);
  return err->code;
}

/* No text of a migration has a semicolon within. */
sn_status sn__empty_migrate(sn_store *store, const char *sql, sn_err *err) {
  adding a = {0};
  while (*sql && err->code == SN_OK) {
    int length = (int)strcspn(sql, ";");
    run_statement(store, &a, sql, length, err);
    sql += length + (sql[length] == ';');
  }
  return add_columns(store, &a, err);
}
