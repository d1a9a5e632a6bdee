/* Rows: moves arrays of structs to rows and back, for any table described in tables.c.
 *
 * One step of a prepared statement per row; about 1 us per row of ten columns. What inserts into a table is prepared
 * once: a sweep stores a few rows at a time, hundreds of times. Reading counts first, so that the array is allocated
 * once, and checks that rows are numbered 1 .. count and that values are such as snsim writes (checks.c): a file whose
 * pages are sound can still have been edited by hand, or come from a stranger. This is the only way in, so nobody
 * behind it needs to look again. */
#include "db/store_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- values ---- */

static int bind_u64(sqlite3_stmt *statement, int at, uint64_t value) {
  return value > INT64_MAX ? SQLITE_TOOBIG : sqlite3_bind_int64(statement, at, (sqlite3_int64)value);
}

static int bind_present(sqlite3_stmt *statement, int at, const void *member) {
  const void *rows;
  memcpy(&rows, member, sizeof rows);
  return sqlite3_bind_int(statement, at, rows != NULL);
}

static int bind_blob(sqlite3_stmt *statement, int at, const sn_blob *blob) {
  return sqlite3_bind_blob64(statement, at, blob->bytes, blob->n_bytes, SQLITE_STATIC);
}

static int bind_value(sqlite3_stmt *statement, int at, sn__kind kind, const void *member) {
  switch (kind) {
  case SN__TEXT:
    return sqlite3_bind_text(statement, at, *(const char *const *)member, -1, SQLITE_STATIC);
  case SN__BOOL:
    return sqlite3_bind_int(statement, at, *(const bool *)member);
  case SN__U32:
    return sqlite3_bind_int64(statement, at, *(const uint32_t *)member);
  case SN__U64:
    return bind_u64(statement, at, *(const uint64_t *)member);
  case SN__NS:
  case SN__I64:
    return sqlite3_bind_int64(statement, at, *(const int64_t *)member);
  case SN__REAL:
  case SN__AMOUNT:
  case SN__SHARE:
    return sqlite3_bind_double(statement, at, *(const double *)member);
  case SN__BLOB:
    return bind_blob(statement, at, member);
  case SN__PRESENT:
    return bind_present(statement, at, member);
  }
  return SQLITE_MISUSE;
}

static int read_text(sqlite3_stmt *statement, int at, const char **out, sn_arena *arena) {
  if (sqlite3_column_type(statement, at) == SQLITE_NULL) return SQLITE_CORRUPT; /* columns are NOT NULL */
  const char *text = (const char *)sqlite3_column_text(statement, at);
  *out = text ? sn_arena_text(arena, text) : NULL;
  return *out ? SQLITE_OK : SQLITE_NOMEM;
}

/* Tables are STRICT, so an integer is one; a file that says otherwise is damaged. */
static int read_integer(sqlite3_stmt *statement, int at, sn__kind kind, int64_t *out) {
  *out = sqlite3_column_int64(statement, at);
  bool good = sqlite3_column_type(statement, at) == SQLITE_INTEGER && sn__check_integer(kind, *out);
  return good ? SQLITE_OK : SQLITE_CORRUPT;
}

static int read_bool(sqlite3_stmt *statement, int at, bool *out) {
  int64_t n;
  int rc = read_integer(statement, at, SN__BOOL, &n);
  *out = n != 0;
  return rc;
}

int sn__column_count(sqlite3_stmt *statement, int at, uint32_t *out) {
  int64_t n;
  int rc = read_integer(statement, at, SN__U32, &n);
  *out = rc == SQLITE_OK ? (uint32_t)n : 0;
  return rc;
}

static int read_u64(sqlite3_stmt *statement, int at, uint64_t *out) {
  int64_t n;
  int rc = read_integer(statement, at, SN__U64, &n);
  *out = (uint64_t)n;
  return rc;
}

static int read_real(sqlite3_stmt *statement, int at, sn__kind kind, double *out) {
  bool is_number = sqlite3_column_type(statement, at) != SQLITE_NULL; /* SQLite keeps NaN as NULL */
  *out = is_number ? sqlite3_column_double(statement, at) : NAN;
  return sn__check_real(kind, *out) ? SQLITE_OK : SQLITE_CORRUPT;
}

static int read_blob(sqlite3_stmt *statement, int at, sn_blob *out, sn_arena *arena) {
  *out = (sn_blob){0};
  if (sqlite3_column_type(statement, at) == SQLITE_NULL) return SQLITE_OK;
  const void *bytes = sqlite3_column_blob(statement, at); /* NULL also where there are none */
  size_t count = (size_t)sqlite3_column_bytes(statement, at);
  unsigned char *copy = sn_arena_alloc(arena, count, 1);
  if (!copy || (!bytes && count > 0)) return SQLITE_NOMEM;
  if (count > 0) memcpy(copy, bytes, count);
  *out = (sn_blob){copy, count};
  return SQLITE_OK;
}

static int read_present(sqlite3_stmt *statement, int at, void *member) {
  bool present;
  int rc = read_bool(statement, at, &present);
  const void *rows = present ? member : NULL;
  memcpy(member, &rows, sizeof rows);
  return rc;
}

static int read_value(sqlite3_stmt *statement, int at, sn__kind kind, void *member, sn_arena *arena) {
  switch (kind) {
  case SN__TEXT:
    return read_text(statement, at, member, arena);
  case SN__BOOL:
    return read_bool(statement, at, member);
  case SN__U32:
    return sn__column_count(statement, at, member);
  case SN__U64:
    return read_u64(statement, at, member);
  case SN__NS:
  case SN__I64:
    return read_integer(statement, at, kind, member);
  case SN__REAL:
  case SN__AMOUNT:
  case SN__SHARE:
    return read_real(statement, at, kind, member);
  case SN__BLOB:
    return read_blob(statement, at, member, arena);
  case SN__PRESENT:
    return read_present(statement, at, member);
  }
  return SQLITE_MISUSE;
}

/* ---- statements ---- */

static int owner_count(const sn__table *table) {
  int count = 0;
  while (count < SN__OWNERS && table->owners[count]) count++;
  return count;
}

static sqlite3_stmt *prepare_built(sn_store *store, sqlite3_str *sql, sn_err *err) {
  char *text = sqlite3_str_finish(sql);
  sqlite3_stmt *statement = text ? sn__store_prepare(store, text, err) : NULL;
  if (!text) sn_fail_memory(err);
  sqlite3_free(text);
  return statement;
}

static void add_columns(sqlite3_str *sql, const sn__table *table) {
  for (unsigned i = 0; i < table->n_columns; i++) sqlite3_str_appendf(sql, ", %s", table->columns[i].name);
}

static sqlite3_stmt *prepare_insert(sn_store *store, const sn__table *table, sn_err *err) {
  int owners = owner_count(table);
  unsigned count = (unsigned)owners + (table->counter != NULL) + table->n_columns;
  sqlite3_str *sql = sqlite3_str_new(store->db);
  sqlite3_str_appendf(sql, "INSERT INTO %s(%s", table->name, table->owners[0]);
  for (int i = 1; i < owners; i++) sqlite3_str_appendf(sql, ", %s", table->owners[i]);
  if (table->counter) sqlite3_str_appendf(sql, ", %s", table->counter);
  add_columns(sql, table);
  sqlite3_str_appendall(sql, ") VALUES (?");
  for (unsigned i = 1; i < count; i++) sqlite3_str_appendall(sql, ", ?");
  sqlite3_str_appendall(sql, ")");
  return prepare_built(store, sql, err);
}

/* The store's, made when first asked for; NULL after an error. */
static sqlite3_stmt *find_insert(sn_store *store, const sn__table *table, sn_err *err) {
  unsigned at = 0;
  while (sn__every_table[at] != table) at++;
  if (!store->inserts[at]) store->inserts[at] = prepare_insert(store, table, err);
  return store->inserts[at];
}

static void add_owners(sqlite3_str *sql, const sn__table *table) {
  sqlite3_str_appendf(sql, " FROM %s WHERE %s = ?", table->name, table->owners[0]);
  for (int i = 1; i < owner_count(table); i++) sqlite3_str_appendf(sql, " AND %s = ?", table->owners[i]);
}

static sqlite3_stmt *prepare_select(sn_store *store, const sn__table *table, sn_err *err) {
  sqlite3_str *sql = sqlite3_str_new(store->db);
  sqlite3_str_appendf(sql, "SELECT %s", table->counter ? table->counter : "1");
  add_columns(sql, table);
  add_owners(sql, table);
  sqlite3_str_appendf(sql, " ORDER BY %s", table->order ? table->order : "1");
  return prepare_built(store, sql, err);
}

static sqlite3_stmt *prepare_count(sn_store *store, const sn__table *table, sn_err *err) {
  sqlite3_str *sql = sqlite3_str_new(store->db);
  sqlite3_str_appendall(sql, "SELECT count(*)");
  add_owners(sql, table);
  return prepare_built(store, sql, err);
}

static int bind_owners(sqlite3_stmt *statement, const sn__table *table, const int64_t *owners) {
  int rc = SQLITE_OK;
  for (int i = 0; rc == SQLITE_OK && i < owner_count(table); i++) rc = sqlite3_bind_int64(statement, i + 1, owners[i]);
  return rc;
}

/* ---- writing ---- */

static int insert_one(sqlite3_stmt *statement, const sn__table *table, int at, uint32_t number, const char *row) {
  int rc = table->counter ? sqlite3_bind_int64(statement, at++, number) : SQLITE_OK;
  for (unsigned c = 0; rc == SQLITE_OK && c < table->n_columns; c++)
    rc = bind_value(statement, at++, table->columns[c].kind, row + table->columns[c].offset);
  if (rc != SQLITE_OK) return rc;
  rc = sqlite3_step(statement);
  if (rc != SQLITE_DONE) return rc;
  return sqlite3_reset(statement);
}

sn_status sn__rows_insert(sn_store *store, const sn__table *table, const int64_t *owners, const void *rows,
                          uint32_t count, sn_err *err) {
  if (count == 0) return SN_OK;
  sqlite3_stmt *statement = find_insert(store, table, err);
  if (!statement) return err->code;
  int rc = bind_owners(statement, table, owners);
  int first = owner_count(table) + 1;
  for (uint32_t i = 0; rc == SQLITE_OK && i < count; i++)
    rc = insert_one(statement, table, first, i + 1, (const char *)rows + i * table->row_bytes);
  if (rc != SQLITE_OK) sn__store_fail(store, rc, err);
  sqlite3_reset(statement);
  sqlite3_clear_bindings(statement); /* which are the caller's */
  return err->code;
}

/* ---- reading ---- */

static sn_status count_rows(sn_store *store, const sn__table *table, const int64_t *owners, uint32_t *count,
                            sn_err *err) {
  sqlite3_stmt *statement = prepare_count(store, table, err);
  if (!statement) return err->code;
  int rc = bind_owners(statement, table, owners);
  if (rc == SQLITE_OK) rc = sqlite3_step(statement);
  if (rc == SQLITE_ROW) rc = sn__column_count(statement, 0, count);
  if (rc != SQLITE_OK) sn__store_fail(store, rc, err);
  sqlite3_finalize(statement);
  return err->code;
}

static sn_status fail_row(sn_store *store, const sn__table *table, const char *column, sn_err *err) {
  char what[120];
  snprintf(what, sizeof what, column ? "%s.%s holds a value that snsim never writes" : "a row of %s contradicts itself",
           table->name, column);
  return sn__store_damaged(store, what, err);
}

static sn_status read_columns(sn_store *store, sqlite3_stmt *statement, const sn__table *table, char *row,
                              sn_arena *arena, sn_err *err) {
  for (unsigned c = 0; c < table->n_columns; c++) {
    const sn__column *column = &table->columns[c];
    int rc = read_value(statement, (int)c + 1, column->kind, row + column->offset, arena);
    if (rc == SQLITE_CORRUPT) return fail_row(store, table, column->name, err);
    if (rc != SQLITE_OK) return sn__store_fail(store, rc, err);
  }
  return table->obeys && !table->obeys(row) ? fail_row(store, table, NULL, err) : SN_OK;
}

static sn_status read_one(sn_store *store, sqlite3_stmt *statement, const sn__table *table, uint32_t number, char *row,
                          sn_arena *arena, sn_err *err) {
  int rc = sqlite3_step(statement);
  if (rc == SQLITE_DONE) rc = SQLITE_CORRUPT; /* fewer rows than were counted */
  if (rc != SQLITE_ROW) return sn__store_fail(store, rc, err);
  if (!table->order && sqlite3_column_int64(statement, 0) != number) return sn__store_fail(store, SQLITE_CORRUPT, err);
  return read_columns(store, statement, table, row, arena, err);
}

sn_status sn__rows_select(sn_store *store, const sn__table *table, const int64_t *owners, sn_arena *arena, void **rows,
                          uint32_t *count, sn_err *err) {
  *rows = NULL;
  if (count_rows(store, table, owners, count, err) != SN_OK || *count == 0) return err->code;
  char *array = sn_arena_alloc(arena, *count, table->row_bytes);
  if (!array) return sn_fail_memory(err);
  sqlite3_stmt *statement = prepare_select(store, table, err);
  if (!statement) return err->code;
  int rc = bind_owners(statement, table, owners);
  if (rc != SQLITE_OK) sn__store_fail(store, rc, err);
  for (uint32_t i = 0; err->code == SN_OK && i < *count; i++)
    read_one(store, statement, table, i + 1, array + i * table->row_bytes, arena, err);
  sqlite3_finalize(statement);
  *rows = array;
  return err->code;
}
