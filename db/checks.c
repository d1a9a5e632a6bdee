/* Checks: which values a column may hold, by its kind (tables.c). The reader asks for every value it reads; in files
 * that this program creates SQLite itself refuses others, as CHECKs of the tables, made from the same limits.
 *
 * SQLite cannot add a CHECK to a table that exists, so in a new file, while it is empty, each table is made once more
 * with the CHECKs put in (empty.c). Older files stay as they are: copying all their rows would gain nothing, since
 * readers look anyway. */
#include "db/store_internal.h"

#include <inttypes.h>
#include <math.h>

typedef struct limits {
  int64_t low, high;
} limits;

static const limits integers[] = {
    [SN__BOOL] = {0, 1},         [SN__U32] = {0, UINT32_MAX},        [SN__U64] = {0, INT64_MAX},
    [SN__NS] = {0, SN__MOST_NS}, [SN__I64] = {INT64_MIN, INT64_MAX},
};

bool sn__check_integer(sn__kind kind, int64_t value) {
  return value >= integers[kind].low && value <= integers[kind].high;
}

bool sn__check_real(sn__kind kind, double value) {
  return kind == SN__REAL || (value >= 0 && (kind == SN__AMOUNT || value <= 1));
}

/* ---- as SQL ---- */

static void add_column(sqlite3_str *sql, const sn__column *column) {
  const char *name = column->name;
  switch (column->kind) {
  case SN__U32:
  case SN__NS:
    sqlite3_str_appendf(sql, ", CHECK (%s BETWEEN %lld AND %lld)", name, (long long)integers[column->kind].low,
                        (long long)integers[column->kind].high);
    return;
  case SN__U64:
  case SN__AMOUNT:
    sqlite3_str_appendf(sql, ", CHECK (%s >= 0)", name);
    return;
  case SN__SHARE:
    sqlite3_str_appendf(sql, ", CHECK (%s BETWEEN 0 AND 1)", name);
    return;
  case SN__BOOL: /* have theirs */
  case SN__PRESENT:
  case SN__TEXT:
  case SN__I64:
  case SN__REAL:
  case SN__BLOB:
    return;
  }
}

/* Numbers of runs, steps and the like count from 1; a second owner is a key of another table. */
static void add_table(sqlite3_str *sql, const sn__table *table) {
  sqlite3_str_appendf(sql, ", CHECK (%s > 0)", table->owners[0]);
  if (table->counter) sqlite3_str_appendf(sql, ", CHECK (%s > 0)", table->counter);
  for (unsigned i = 0; i < table->n_columns; i++) add_column(sql, &table->columns[i]);
  if (table->rule) sqlite3_str_appendf(sql, ", CHECK (%s)", table->rule);
}

sn_status sn__checks_add(sn_store *store, sn_err *err) {
  for (const sn__table *const *t = sn__every_table; *t && err->code == SN_OK; t++) {
    sqlite3_str *sql = sqlite3_str_new(store->db);
    add_table(sql, *t);
    char *checks = sqlite3_str_finish(sql);
    sn__empty_add(store, (*t)->name, SN__CONSTRAINT, checks, err);
    sqlite3_free(checks);
  }
  if (err->code != SN_OK) return err->code;
  return sn__empty_add(store, "sweeps", SN__CONSTRAINT,
                       ", CHECK (n_points BETWEEN 0 AND 4294967295), CHECK (sessions BETWEEN 0 AND 4294967295)", err);
}
