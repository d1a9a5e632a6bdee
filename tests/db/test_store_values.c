/* Numbers in the store that no snsim ever wrote: in a new file SQLite does not take them, and where they got in all the
 * same - into an older file, or by a stranger's hand - nobody reads them. Every column of every table in turn. */
#include "tests/db/stored_answers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static sn_store *open_good(void) {
  sn_err err = SN_ERR_INIT;
  sn_store *store = open_answers(&err);
  if (err.code != SN_OK) fail_msg("%s", err.text);
  return store;
}

/* SQLite's code for a statement. */
static int run(sn_store *store, const char *sql) {
  return sqlite3_exec(store->db, sql, NULL, NULL, NULL);
}

static sn_status look(void *unused, const sn_calibration *c, sn_err *err) {
  (void)unused;
  (void)c;
  return err->code;
}

/* Reads all there is; the first error. */
static sn_err read_all(sn_store *store) {
  sn_err err = SN_ERR_INIT;
  sn_run *stored = sn_store_get(store, 0, &err);
  sn_store_list *list = err.code == SN_OK ? sn_store_runs(store, NULL, UINT32_MAX, &err) : NULL;
  if (err.code == SN_OK) sn_store_each_calibration(store, look, NULL, &err);
  sn_sweep *sweep = err.code == SN_OK ? sn_sweep_get(store, 0, &err) : NULL;
  sn_sweep_list *sweeps = err.code == SN_OK ? sn_sweep_all(store, &err) : NULL;
  sn_sweep_list_free(sweeps);
  sn_sweep_free(sweep);
  sn_store_list_free(list);
  sn_run_free(stored);
  return err;
}

/* Puts a value into a column of every row, as a file without CHECKs may hold it, reads, and takes it out again. */
static sn_err read_with(sn_store *store, const char *table, const char *column, const char *value) {
  char sql[300];
  assert_int_equal(run(store, "PRAGMA ignore_check_constraints = ON; PRAGMA foreign_keys = OFF"), SQLITE_OK);
  snprintf(sql, sizeof sql, "CREATE TEMP TABLE kept AS SELECT * FROM main.%s; UPDATE %s SET %s = %s", table, table,
           column, value);
  bool taken = run(store, sql) == SQLITE_OK; /* a NULL is never taken */
  sn_err err = SN_ERR_INIT;
  if (taken)
    err = read_all(store);
  else
    sn_fail(&err, SN_BAD_INPUT, "is damaged");
  snprintf(sql, sizeof sql, "DELETE FROM main.%s; INSERT INTO main.%s SELECT * FROM kept; DROP TABLE kept", table,
           table);
  assert_int_equal(run(store, sql), SQLITE_OK);
  assert_int_equal(run(store, "PRAGMA ignore_check_constraints = OFF"), SQLITE_OK);
  return err;
}

static bool is_taken(sn_store *store, const char *table, const char *column, const char *value) {
  char sql[200];
  snprintf(sql, sizeof sql, "BEGIN; UPDATE %s SET %s = %s", table, column, value);
  bool taken = run(store, sql) == SQLITE_OK;
  assert_int_equal(run(store, "ROLLBACK"), SQLITE_OK);
  return taken;
}

static bool is_whole(sn__kind kind) {
  return kind != SN__TEXT && kind != SN__REAL && kind != SN__AMOUNT && kind != SN__SHARE;
}

static void assert_refused(sn_store *store, const char *table, const char *column, const char *value) {
  sn_err err = read_with(store, table, column, value);
  if (err.code != SN_BAD_INPUT || !strstr(err.text, "is damaged"))
    fail_msg("%s.%s = %s is read: %s", table, column, value, err.text);
  if (is_taken(store, table, column, value)) fail_msg("%s.%s = %s is stored", table, column, value);
}

/* What SQLite refuses the reader refuses: neither knows a limit that the other does not. */
static void assert_agree(sn_store *store, const char *table, const char *column, const char *value) {
  sn_err err = read_with(store, table, column, value);
  if (err.code != SN_OK && err.code != SN_BAD_INPUT) fail_msg("%s.%s = %s: %s", table, column, value, err.text);
  if (err.code == SN_OK && !is_taken(store, table, column, value))
    fail_msg("%s.%s = %s is read but not stored", table, column, value);
}

static void no_count_size_or_time_is_negative(void **unused) {
  (void)unused;
  sn_store *store = open_good();
  for (int t = 0; sn__every_table[t]; t++)
    for (unsigned c = 0; c < sn__every_table[t]->n_columns; c++) {
      const sn__column *column = &sn__every_table[t]->columns[c];
      if (column->kind == SN__TEXT || column->kind == SN__REAL || column->kind == SN__I64) continue;
      assert_refused(store, sn__every_table[t]->name, column->name, is_whole(column->kind) ? "-1" : "-1e-300");
    }
  assert_int_equal(read_all(store).code, SN_OK);
  sn_store_close(store);
}

static void times_end_before_sums_overflow(void **unused) {
  (void)unused;
  sn_store *store = open_good();
  for (int t = 0; sn__every_table[t]; t++)
    for (unsigned c = 0; c < sn__every_table[t]->n_columns; c++) {
      const sn__column *column = &sn__every_table[t]->columns[c];
      if (column->kind == SN__NS) assert_refused(store, sn__every_table[t]->name, column->name, "9223372036854775807");
      if (column->kind == SN__NS) assert_refused(store, sn__every_table[t]->name, column->name, "4503599627370497");
      if (column->kind == SN__SHARE) assert_refused(store, sn__every_table[t]->name, column->name, "1.5");
    }
  assert_refused(store, "results", "dialect", "''"); /* of the dialects there are, one */
  assert_refused(store, "results", "dialect", "'caffe'");
  assert_refused(store, "steps", "begin_ns", "end_ns + 1");
  assert_refused(store, "timings", "workspace_bytes", "9223372036854775807");
  assert_refused(store, "calibrations", "flops", "0.0");
  assert_refused(store, "calibrations", "interference", "100.5");
  assert_refused(store, "calibrations", "resize_ns", "1000000001.0");
  assert_refused(store, "calibrations", "memory_bytes", "9223372036854775807");
  assert_int_equal(read_all(store).code, SN_OK);
  sn_store_close(store);
}

static void reader_and_schema_agree(void **unused) {
  (void)unused;
  static const char *const whole[] = {"0", "1", "4294967296", "9223372036854775807", "-9223372036854775808", "NULL"};
  static const char *const real[] = {"0.0", "1.0", "1e308", "9e999", "-9e999", "NULL"};
  sn_store *store = open_good();
  for (int t = 0; sn__every_table[t]; t++)
    for (unsigned c = 0; c < sn__every_table[t]->n_columns; c++) {
      const sn__column *column = &sn__every_table[t]->columns[c];
      const char *const *values = is_whole(column->kind) ? whole : real;
      for (int v = 0; v < 6 && column->kind != SN__TEXT; v++)
        assert_agree(store, sn__every_table[t]->name, column->name, values[v]);
    }
  assert_int_equal(read_all(store).code, SN_OK);
  sn_store_close(store);
}

/* A device of number 0 was taken for none, made again, and the error called our bug. */
static void numbers_of_devices_may_be_anything(void **unused) {
  (void)unused;
  static const char *const numbers[] = {"0", "-7", "9223372036854775807"};
  for (int i = 0; i < 3; i++) {
    sn_store *store = open_good();
    sn_err err = SN_ERR_INIT;
    char sql[200];
    snprintf(sql, sizeof sql,
             "PRAGMA ignore_check_constraints = ON; PRAGMA foreign_keys = OFF; UPDATE devices SET id = %s;"
             " UPDATE runs SET device_id = %s; PRAGMA foreign_keys = ON; PRAGMA ignore_check_constraints = OFF",
             numbers[i], numbers[i]);
    assert_int_equal(run(store, sql), SQLITE_OK);
    put_run(store, &err);
    assert_true(err.code == SN_OK || err.code == SN_BAD_INPUT);
    if (err.code == SN_OK) assert_int_equal(read_all(store).code, SN_OK);
    sn_store_close(store);
  }
}

static void checks_change_nothing_else(void **unused) {
  (void)unused;
  sn_store *store = open_good();
  int64_t count = 0;
  sn_err err = SN_ERR_INIT;
  sn__store_number(store, "SELECT count(*) FROM sqlite_schema WHERE type = 'index' AND name = 'runs_device'", &count,
                   &err);
  assert_int_equal(count, 1);
  sn__store_number(store, "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND sql LIKE '%CHECK (%_id > 0)%'",
                   &count, &err);
  assert_true(count >= 7);
  sn__store_number(store,
                   "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
                   " AND sql NOT LIKE '%CHECK (%'",
                   &count, &err);
  assert_int_equal(count, 0); /* no table was forgotten in tables.c */
  sn__store_number(store, "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check = 'ok'", &count, &err);
  assert_int_equal(count, 1);
  assert_int_equal(err.code, SN_OK);
  sn_store_close(store);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(no_count_size_or_time_is_negative), cmocka_unit_test(times_end_before_sums_overflow),
      cmocka_unit_test(reader_and_schema_agree),           cmocka_unit_test(numbers_of_devices_may_be_anything),
      cmocka_unit_test(checks_change_nothing_else),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
