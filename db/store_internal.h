/* Inside the store: what its files share with each other and with tests/db/test_store.c.
 *
 *   store.c   opening, closing, transactions, errors       rows.c   moves structs to rows and back, by the tables
 *   schema.c  recognises and creates files                  put.c    a run to rows
 *   tables.c  which member of which struct is which column get.c    rows to a run
 *   checks.c  which values a column may hold              calibrations.c  both ways for calibrations
 *   sweep.c   sweeps and their points
 */
#ifndef SN_DB_STORE_INTERNAL_H
#define SN_DB_STORE_INTERNAL_H

#include "base/arena.h"
#include "base/err.h"
#include "db/calibrations.h"
#include "db/store.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

enum { SN__TABLES = 12 };

struct sn_store {
  sqlite3 *db;
  sqlite3_stmt *inserts[SN__TABLES]; /* one for each of sn__every_table, once it was needed */
  char *path;
  bool is_alone;     /* the file is read without the files beside it */
  struct stat alone; /* then: the file as it was when opened */
  struct stat opened;
  int64_t patience_ms, waits_since_ms;
  bool (*waits)(void *user, int64_t ms);
  void *user;
};

/* ---- schema.c ---- */
typedef enum sn__mode { SN__READ, SN__WRITE } sn__mode;

/* "snsi", in SQLite's application_id: tells our files from other programs' databases. */
enum { SN__APPLICATION_ID = 0x736e7369 };

/* Makes sure that the open file is ours and of this schema, and makes it one where it is empty, in one transaction.
 * SN_BAD_INPUT for another program's file, another schema or a damaged file. */
sn_status sn__schema_ready(sn_store *store, sn__mode mode, sn_err *err);

/* ---- store.c ---- */
/* Runs SQL without results. */
sn_status sn__store_exec(sn_store *store, const char *sql, sn_err *err);

/* A transaction: end commits, or rolls back where the error is set; it returns the error's code. */
sn_status sn__store_begin(sn_store *store, sn__mode mode, sn_err *err);
sn_status sn__store_end(sn_store *store, sn_err *err);

/* Runs SQL whose result is one whole number. */
sn_status sn__store_number(sn_store *store, const char *sql, int64_t *out, sn_err *err);

/* Prepares one statement; NULL and the error where that fails. */
sqlite3_stmt *sn__store_prepare(sn_store *store, const char *sql, sn_err *err);

/* Records what SQLite's code `rc` means for the user, and what to do about it. */
sn_status sn__store_fail(sn_store *store, int rc, sn_err *err);

/* Records that there is nothing to read yet. */
sn_status sn__store_no_runs(const char *path, sn_err *err);

/* Records that rows do not fit together, which only damage or foreign hands can bring about. */
sn_status sn__store_damaged(sn_store *store, const char *what, sn_err *err);

/* ---- tables.c ---- */
/* SN__BLOB: NULL where there are no bytes. SN__PRESENT: a pointer to rows of another table, stored as whether it is
 * NULL. Reading leaves a pointer that says no more than that, for the caller to replace. */
typedef enum sn__kind {
  SN__TEXT,
  SN__BOOL,
  SN__U32,
  SN__U64, /* up to 2^63 - 1, as far as SQLite counts */
  SN__NS,  /* int64_t: 0 .. SN__MOST_NS */
  SN__I64,
  SN__REAL,   /* NaN too */
  SN__AMOUNT, /* double: at least 0 */
  SN__SHARE,  /* double: 0 .. 1 */
  SN__BLOB,
  SN__PRESENT
} sn__kind;

/* More than an engine ever counts to (sim/play/engine.h), 52 days, and little enough that sums do not overflow. */
#define SN__MOST_NS (INT64_C(1) << 52)
/* A pebibyte: more than any device or workspace has. */
#define SN__MOST_DEVICE_BYTES (UINT64_C(1) << 50)
#define SN__MOST_KERNEL_BYTES (UINT64_C(1) << 30) /* of a shape */

typedef struct sn__column {
  const char *name;
  sn__kind kind;
  size_t offset; /* of the member in the row's struct */
  bool asked;    /* of a point of a sweep: part of its question */
} sn__column;

enum { SN__OWNERS = 2 };

/* Rows of a table belong to an owner, a tuple of integers, and are counted from 1 within it. */
typedef struct sn__table {
  const char *name;
  const char *keys;               /* the columns that identify a row, and others that are no members, as SQL */
  const char *constraint;         /* of the table, as SQL: its key where that is of several columns; NULL: none */
  const char *owners[SN__OWNERS]; /* columns; NULL where there are fewer */
  const char *counter;            /* column; NULL where an owner has one row, or there is an order */
  size_t row_bytes;               /* size of the struct */
  const sn__column *columns;
  unsigned n_columns;
  const char *rule; /* what holds between the columns of a row, as SQL; NULL: nothing */
  bool (*obeys)(const void *row);
  const char *order; /* column of those that are not counted, as some may be missing; NULL: there are none such */
} sn__table;

extern const sn__table sn__devices, sn__runs, sn__results, sn__route, sn__steps, sn__peaks, sn__tensors, sn__failures,
    sn__origins;
extern const sn__table sn__calibrations, sn__timings;
extern const sn__table sn__points;
extern const sn__table *const sn__every_table[SN__TABLES + 1]; /* each, and NULL */

/* ---- checks.c: what a column may hold, once for SQL and once for the reader ---- */

/* Appends the CHECK of a column, if its kind has one. Whoever reads looks all the same: a file can be edited. */
void sn__check_add(sqlite3_str *sql, const sn__column *column);
bool sn__check_integer(sn__kind kind, int64_t value);
bool sn__check_real(sn__kind kind, double value);

/* ---- rows.c ---- */
/* A count in column `at` of a row; SQLITE_CORRUPT where it is none. */
int sn__column_count(sqlite3_stmt *statement, int at, uint32_t *out);

/* Writes `count` structs as the rows 1 .. count of `owners`. */
sn_status sn__rows_insert(sn_store *store, const sn__table *table, const int64_t *owners, const void *rows,
                          uint32_t count, sn_err *err);

/* Reads the rows of `owners` into an array from `arena`; members that are no column of the table are zero. *count is 0
 * and *rows NULL where there are none. */
sn_status sn__rows_select(sn_store *store, const sn__table *table, const int64_t *owners, sn_arena *arena, void **rows,
                          uint32_t *count, sn_err *err);

#endif
