/* Checks: which values a column may hold, by its kind (tables.c). The reader asks for every value it reads; SQLite
 * itself refuses others, as CHECKs of the tables, made from the same limits. */
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

void sn__check_add(sqlite3_str *sql, const sn__column *column) {
  const char *name = column->name;
  const limits *l = &integers[column->kind <= SN__I64 ? column->kind : SN__I64];
  switch (column->kind) {
  case SN__U32:
  case SN__NS:
    sqlite3_str_appendf(sql, " CHECK (%s BETWEEN %lld AND %lld)", name, (long long)l->low, (long long)l->high);
    return;
  case SN__U64:
  case SN__AMOUNT:
    sqlite3_str_appendf(sql, " CHECK (%s >= 0)", name);
    return;
  case SN__SHARE:
    sqlite3_str_appendf(sql, " CHECK (%s BETWEEN 0 AND 1)", name);
    return;
  case SN__BOOL:
  case SN__PRESENT:
    sqlite3_str_appendf(sql, " CHECK (%s IN (0, 1))", name);
    return;
  case SN__TEXT:
  case SN__I64:
  case SN__REAL:
  case SN__BLOB:
    return;
  }
}
