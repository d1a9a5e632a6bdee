/* The store's contents: what is put comes back, in every member, wholly or not at all; lists, views. */
#include "db/store_internal.h"
#include "tests/db/sample_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { SEED = 20181 };

static void assert_status(sn_status want, const sn_err *err, const char *words) {
  if (err->code != want || !strstr(err->text, words)) print_error("%s: %s\n", sn_status_name(err->code), err->text);
  assert_int_equal(err->code, want);
  assert_non_null(strstr(err->text, words));
}

static void assert_ok(const sn_err *err) {
  assert_status(SN_OK, err, "");
}

static sn_store *open_memory(void) {
  sn_err err = SN_ERR_INIT;
  sn_store *store = sn_store_open(":memory:", &err);
  assert_ok(&err);
  return store;
}

static int64_t put(sn_store *store, const sn_run *run) {
  sn_err err = SN_ERR_INIT;
  int64_t id = -1;
  sn_store_put(store, run, &id, &err);
  assert_ok(&err);
  return id;
}

static sn_run run_without_words(const sn_result *results, uint32_t count) {
  const sn_options usual = SN_OPTIONS_INIT;
  return (sn_run){.name = "",
                  .answer = "{\"verdict\":\"yes\"}",
                  .version = "",
                  .net = "",
                  .net_name = "",
                  .gpu = "",
                  .conditions = sn_conditions_of(&usual, NULL),
                  .costs = "",
                  .device = "",
                  .data = "",
                  .n_results = count,
                  .results = results};
}

static void assert_stored(sn_store *store, int64_t id, const sn_run *want) {
  sn_err err = SN_ERR_INIT;
  sn_run *got = sn_store_get(store, id, &err);
  assert_ok(&err);
  char *a = dump_run(want), *b = dump_run(got);
  assert_string_equal(a, b);
  if (id) assert_int_equal(got->id, id);
  free(a);
  free(b);
  sn_run_free(got);
}

static int64_t number(sn_store *store, const char *sql) {
  sn_err err = SN_ERR_INIT;
  int64_t n = -1;
  sn__store_number(store, sql, &n, &err);
  assert_ok(&err);
  return n;
}

static int64_t all_rows(sn_store *store) {
  return number(store,
                "SELECT (SELECT count(*) FROM runs) + (SELECT count(*) FROM results) + (SELECT count(*) FROM route)"
                " + (SELECT count(*) FROM steps) + (SELECT count(*) FROM peaks) + (SELECT count(*) FROM tensors)"
                " + (SELECT count(*) FROM devices)");
}

/* ---- round trips ---- */

static void what_is_put_comes_back(void **unused) {
  (void)unused;
  print_message("seed %d\n", SEED);
  sn_store *store = open_memory();
  for (uint64_t i = 0; i < 200; i++) {
    sn_run *run = sample_run(SEED + i, 40);
    assert_int_equal(put(store, run), i + 1);
    assert_stored(store, 0, run);
    sn_run_free(run);
  }
  for (uint64_t i = 0; i < 200; i++) {
    sn_run *run = sample_run(SEED + i, 40);
    assert_stored(store, (int64_t)i + 1, run);
    sn_run_free(run);
  }
  assert_int_equal(number(store, "SELECT count(*) FROM pragma_foreign_key_check"), 0);
  sn_store_close(store);
}

static void limits_come_back(void **unused) {
  (void)unused;
  sn_step_row step = {1, "", "", "", INT64_MAX, UINT32_MAX, INT64_MAX, INT64_MAX, 0, SN__MOST_NS};
  sn_result results[2] = {{.strategy = "",
                           .placement = "packed",
                           .dialect = "superneurons",
                           .corun = SN_CORUN_ROW_NONE,
                           .step_order = "route",
                           .source = "",
                           .peak_layer = "",
                           .peak_pass = "",
                           .pool_layer = "",
                           .pool_pass = "",
                           .pool_cause = "",
                           .n_steps = 1,
                           .steps = &step},
                          {.strategy = "b",
                           .placement = "packed",
                           .dialect = "superneurons",
                           .corun = SN_CORUN_ROW_NONE,
                           .step_order = "route",
                           .source = "",
                           .peak_layer = "",
                           .peak_pass = "",
                           .pool_layer = "",
                           .pool_pass = "",
                           .pool_cause = "",
                           .n_steps = UINT32_MAX,
                           .n_peak = UINT32_MAX}};
  results[0].persistent.labels = INT64_MAX;
  results[0].pool_fragmentation = 1;
  results[0].accuracy = 0x1p-1074;
  results[0].images_per_second = 0x1.fffffffffffffp1023;
  results[0].iteration_ns = SN__MOST_NS;
  sn_run run = run_without_words(results, 2);
  run.batch = run.n_tensors = UINT32_MAX;
  run.memory_bytes = INT64_MAX;
  sn_store *store = open_memory();
  assert_stored(store, put(store, &run), &run);
  run.n_results = 0;
  assert_stored(store, put(store, &run), &run);
  sn_store_close(store);
}

static void created_is_a_moment_in_utc(void **unused) {
  (void)unused;
  sn_store *store = open_memory();
  sn_run *run = sample_run(SEED, 3);
  sn_err err = SN_ERR_INIT;
  put(store, run);
  sn_run *got = sn_store_get(store, 1, &err);
  assert_ok(&err);
  int year, month, day, hour, minute, second, length;
  assert_int_equal(
      sscanf(got->created, "%4d-%2d-%2d %2d:%2d:%2d%n", &year, &month, &day, &hour, &minute, &second, &length), 6);
  assert_int_equal(length, strlen(got->created));
  int64_t age = number(store, "SELECT unixepoch() - unixepoch(created) FROM runs");
  assert_in_range(age, 0, 60);
  sn_run_free(got);
  sn_run_free(run);
  sn_store_close(store);
}

/* ---- the tables of columns ---- */

static size_t kind_bytes(sn__kind kind) {
  static const size_t bytes[] = {
      [SN__TEXT] = sizeof(char *),  [SN__BOOL] = sizeof(bool),     [SN__U32] = sizeof(uint32_t),
      [SN__U64] = sizeof(uint64_t), [SN__NS] = sizeof(int64_t),    [SN__I64] = sizeof(int64_t),
      [SN__REAL] = sizeof(double),  [SN__AMOUNT] = sizeof(double), [SN__SHARE] = sizeof(double),
      [SN__BLOB] = sizeof(sn_blob), [SN__PRESENT] = sizeof(void *)};
  return bytes[kind];
}

static void mark(unsigned char *covered, size_t offset, size_t bytes) {
  for (size_t i = 0; i < bytes; i++) {
    assert_int_equal(covered[offset + i], 0); /* no member twice */
    covered[offset + i] = 1;
  }
}

/* Uncovered bytes may only be padding: fewer than 4 before a 4-byte boundary or fewer than 8 before an 8-byte boundary.
 * (A new 4-byte member where padding was would pass.) */
static void assert_covered(const unsigned char *covered, size_t bytes) {
  for (size_t i = 0; i < bytes; i++) {
    size_t end = i;
    while (end < bytes && !covered[end]) end++;
    if (end == i) continue;
    assert_true(end - i < 8);
    assert_int_equal(end % (end - i < 4 ? 4 : 8), 0);
    i = end;
  }
}

static void mark_table(unsigned char *covered, const sn__table *table) {
  for (unsigned i = 0; i < table->n_columns; i++)
    mark(covered, table->columns[i].offset, kind_bytes(table->columns[i].kind));
}

#define MARK(covered, type, member) mark(covered, offsetof(type, member), sizeof(((type *)0)->member))

static void no_member_is_forgotten(void **unused) {
  (void)unused;
  unsigned char covered[1024] = {0};
  mark_table(covered, &sn__runs);
  mark_table(covered, &sn__devices);
  MARK(covered, sn_run, id);
  MARK(covered, sn_run, created);
  MARK(covered, sn_run, results);
  MARK(covered, sn_run, failures);
  MARK(covered, sn_run, origins);
  MARK(covered, sn_run, n_stages); /* pipelines are not stored */
  MARK(covered, sn_run, stages);
  MARK(covered, sn_run, arena);
  assert_covered(covered, sizeof(sn_run));
  memset(covered, 0, sizeof covered);
  mark_table(covered, &sn__results);
  MARK(covered, sn_result, shared.stage); /* pipelines' */
  MARK(covered, sn_result, shared.blocks);
  MARK(covered, sn_result, shared.in_flight);
  MARK(covered, sn_result, shared.forward_ns);
  MARK(covered, sn_result, shared.backward_ns);
  MARK(covered, sn_result, shared.update_ns);
  MARK(covered, sn_result, shared.first_ns);
  MARK(covered, sn_result, shared.uneven);
  MARK(covered, sn_result, shared.weights_ns);
  assert_covered(covered, sizeof(sn_result));
  memset(covered, 0, sizeof covered);
  mark_table(covered, &sn__route);
  mark_table(covered, &sn__steps);
  MARK(covered, sn_step_row, step);
  assert_covered(covered, sizeof(sn_step_row));
  memset(covered, 0, sizeof covered);
  mark_table(covered, &sn__peaks);
  assert_covered(covered, sizeof(sn_peak_row));
  memset(covered, 0, sizeof covered);
  mark_table(covered, &sn__tensors);
  assert_covered(covered, sizeof(sn_tensor_row));
}

/* ---- all or nothing ---- */

static void refuse(sn_store *store, const sn_run *run, sn_status code, const char *words) {
  sn_err err = SN_ERR_INIT;
  int64_t id = -7, before = all_rows(store);
  assert_int_equal(sn_store_put(store, run, &id, &err), code);
  assert_status(code, &err, words);
  assert_int_equal(id, -7);
  assert_int_equal(all_rows(store), before);
}

static void bad_runs_leave_nothing(void **unused) {
  (void)unused;
  sn_step_row a[2] = {{.step = 1, .layer = "x", .op = "CONV", .pass = "forward"},
                      {.step = 2, .layer = "x", .op = "CONV", .pass = "backward"}};
  sn_step_row b[2] = {a[0], a[1]};
  sn_peak_row peak = {.tensor = "x.y", .producer = "x", .bytes = (uint64_t)INT64_MAX + 1, .advice = "offload"};
  sn_result results[2] = {{.strategy = "a",
                           .placement = "packed",
                           .dialect = "superneurons",
                           .corun = SN_CORUN_ROW_NONE,
                           .step_order = "route",
                           .source = "sim",
                           .peak_layer = "x",
                           .peak_pass = "forward",
                           .pool_layer = "",
                           .pool_pass = "",
                           .pool_cause = "",
                           .n_steps = 2,
                           .steps = a},
                          {.strategy = "b",
                           .placement = "packed",
                           .dialect = "superneurons",
                           .corun = SN_CORUN_ROW_NONE,
                           .step_order = "route",
                           .source = "sim",
                           .peak_layer = "x",
                           .peak_pass = "forward",
                           .pool_layer = "",
                           .pool_pass = "",
                           .pool_cause = "",
                           .n_steps = 2,
                           .steps = b,
                           .n_peak = 1,
                           .peak = &peak}};
  sn_run run = run_without_words(results, 2);
  sn_store *store = open_memory();
  refuse(store, &run, SN_BUG, "2^63");
  peak.bytes = 1;
  b[1].layer = "y";
  refuse(store, &run, SN_BUG, "step 2 is y backward with b but x backward with a");
  b[1].layer = "x";
  b[1].step = 7;
  refuse(store, &run, SN_BUG, "row 2 of b is numbered 7");
  b[1].step = 2;
  results[1].strategy = NULL;
  refuse(store, &run, SN_BUG, "NOT NULL");
  results[1].strategy = "b";
  assert_stored(store, put(store, &run), &run);
  sn_store_close(store);
}

/* Every possible amount of room, page by page: the run is there wholly or not at all, and the store stays good. */
static void full_disk_leaves_nothing(void **unused) {
  (void)unused;
  sn_store *store = open_memory();
  sn_run *run = NULL; /* the first sample with something of everything */
  for (uint64_t seed = SEED; !run || run->n_results < 4 || !run->tensors || !run->results[0].steps; seed++) {
    sn_run_free(run);
    run = sample_run(seed, 2000);
  }
  unsigned refused = 0;
  sn_err err = SN_ERR_INIT;
  for (int64_t room = number(store, "PRAGMA page_count"); all_rows(store) == 0; room++) {
    char sql[64];
    snprintf(sql, sizeof sql, "PRAGMA max_page_count = %" PRId64, room);
    number(store, sql);
    int64_t id = 0;
    err = (sn_err)SN_ERR_INIT;
    if (sn_store_put(store, run, &id, &err) == SN_OK) break;
    assert_status(SN_BAD_FILE, &err, "the disk is full");
    assert_int_equal(all_rows(store), 0);
    refused++;
  }
  assert_true(refused > 10);
  assert_stored(store, 1, run);
  sn_run_free(run);
  sn_store_close(store);
}

/* ---- lists and unknown runs ---- */

static void lists_are_newest_first(void **unused) {
  (void)unused;
  sn_store *store = open_memory();
  sn_err err = SN_ERR_INIT;
  for (uint64_t i = 0; i < 5; i++) {
    sn_run *run = sample_run(i, 3);
    put(store, run);
    sn_run_free(run);
  }
  sn_store_list *list = sn_store_runs(store, NULL, 3, &err);
  assert_ok(&err);
  assert_int_equal(list->count, 3);
  for (uint64_t i = 0; i < 3; i++) {
    sn_run *run = sample_run(4 - i, 3);
    uint32_t fit = 0;
    for (uint32_t r = 0; r < run->n_results; r++) fit += run->results[r].fits;
    assert_int_equal(list->lines[i].id, 5 - i);
    assert_string_equal(list->lines[i].net, run->net);
    assert_string_equal(list->lines[i].gpu, run->gpu);
    assert_int_equal(list->lines[i].batch, run->batch);
    assert_int_equal(list->lines[i].n_results, run->n_results);
    assert_int_equal(list->lines[i].n_fit, fit);
    assert_int_equal(strlen(list->lines[i].created), 19);
    sn_run_free(run);
  }
  sn_store_list_free(list);
  list = sn_store_runs(store, NULL, UINT32_MAX, &err);
  assert_int_equal(list->count, 5);
  sn_store_list_free(list);
  sn_store_close(store);
}

static void unknown_runs_are_refused(void **unused) {
  (void)unused;
  sn_store *store = open_memory();
  sn_err err = SN_ERR_INIT;
  assert_null(sn_store_get(store, 0, &err));
  assert_status(SN_BAD_FILE, &err, "no runs yet");
  sn_run *run = sample_run(SEED, 3);
  put(store, run);
  put(store, run);
  err = (sn_err)SN_ERR_INIT;
  assert_null(sn_store_get(store, 12, &err));
  assert_status(SN_BAD_INPUT, &err, "there is no run 12; the newest is 2");
  err = (sn_err)SN_ERR_INIT;
  assert_null(sn_store_get(store, -1, &err));
  assert_status(SN_BAD_INPUT, &err, "there is no run -1");
  number(store, "DELETE FROM runs WHERE id = 2 RETURNING id");
  assert_int_equal(put(store, run), 3); /* numbers do not come back */
  sn_run_free(run);
  sn_store_close(store);
}

/* Deleting by hand takes all rows of the run and none of another. */
static void deleting_a_run_takes_all_of_it(void **unused) {
  (void)unused;
  sn_store *store = open_memory();
  sn_run *first = sample_run(1, 9), *second = sample_run(2, 9);
  put(store, first);
  int64_t rows = all_rows(store);
  put(store, second);
  number(store, "DELETE FROM runs WHERE id = 2 RETURNING id");
  number(store, "DELETE FROM devices WHERE id NOT IN (SELECT device_id FROM runs) RETURNING id");
  assert_int_equal(all_rows(store), rows);
  assert_stored(store, 1, first);
  sn_run_free(first);
  sn_run_free(second);
  sn_store_close(store);
}

/* ---- damage that only shows when reading ---- */

static void rows_that_do_not_fit_are_damage(void **unused) {
  (void)unused;
  static const char *const damage[] = {"DELETE FROM steps WHERE step = 2 RETURNING 1",
                                       "DELETE FROM route WHERE step = 1 RETURNING 1",
                                       "DELETE FROM results WHERE result = 1 RETURNING 1",
                                       "DELETE FROM peaks WHERE place = 1 RETURNING 1",
                                       "DELETE FROM tensors WHERE place = 1 RETURNING 1",
                                       "DELETE FROM tensors RETURNING 1",
                                       "DELETE FROM steps RETURNING 1",
                                       "UPDATE runs SET batch = 1 << 32 RETURNING 1",
                                       "UPDATE results SET pool_bytes = -1 RETURNING 1",
                                       "UPDATE runs SET device_id = 99 RETURNING 1",
                                       "UPDATE steps SET step = 1000 WHERE step = 3 RETURNING 1"};
  sn_run *run = NULL;
  for (uint64_t seed = SEED; !run || run->n_results < 1 || run->n_tensors < 3 || run->results[0].n_steps < 3 ||
                             !run->results[0].steps || run->results[0].n_peak < 3 || !run->results[0].peak;
       seed++) {
    sn_run_free(run);
    run = sample_run(seed, 20);
  }
  for (size_t i = 0; i < sizeof damage / sizeof damage[0]; i++) {
    sn_store *store = open_memory();
    sn_err err = SN_ERR_INIT;
    put(store, run);
    sn__store_exec(store, "PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON", &err);
    number(store, damage[i]);
    assert_null(sn_store_get(store, 1, &err));
    assert_status(SN_BAD_INPUT, &err, "is not a snsim database or is damaged");
    sn_store_close(store);
  }
  sn_run_free(run);
}

/* ---- views ---- */

static void views_show_every_row(void **unused) {
  (void)unused;
  sn_store *store = open_memory();
  for (uint64_t i = 0; i < 20; i++) {
    sn_run *run = sample_run(i, 9);
    put(store, run);
    sn_run_free(run);
  }
  assert_int_equal(number(store, "SELECT count(*) FROM summary"), number(store, "SELECT count(*) FROM results"));
  assert_int_equal(number(store, "SELECT count(*) FROM step_curve"), number(store, "SELECT count(*) FROM steps"));
  assert_int_equal(number(store, "SELECT count(*) FROM peak_tensors"), number(store, "SELECT count(*) FROM peaks"));
  assert_true(number(store, "SELECT count(*) FROM steps") > 0);
  assert_int_equal(number(store,
                          "SELECT count(*) FROM steps WHERE NOT EXISTS (SELECT * FROM step_curve WHERE run = run_id"
                          " AND step_curve.step = steps.step AND tensor_mib = tensor_bytes / 1048576.0"
                          " AND step_curve.live_tensors = steps.live_tensors AND begin_ms = begin_ns / 1e6)"),
                   0);
  sn_store_close(store);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_put_comes_back),         cmocka_unit_test(limits_come_back),
      cmocka_unit_test(created_is_a_moment_in_utc),     cmocka_unit_test(no_member_is_forgotten),
      cmocka_unit_test(bad_runs_leave_nothing),         cmocka_unit_test(full_disk_leaves_nothing),
      cmocka_unit_test(lists_are_newest_first),         cmocka_unit_test(unknown_runs_are_refused),
      cmocka_unit_test(deleting_a_run_takes_all_of_it), cmocka_unit_test(rows_that_do_not_fit_are_damage),
      cmocka_unit_test(views_show_every_row),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
