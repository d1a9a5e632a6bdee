/* How near the paper on co-running we are: the bounds that docs/corun.md states, of each table and figure of
 * `snsim reproduce corun-..`. */
#include "cli/reproduce/reproduce.h"
#include "tests/support/pipeline.h"

#include <math.h>
#include <stdlib.h>

static sn_paper_rows measure(const char *name) {
  uint32_t count;
  const sn_experiment *e = sn_experiments(&count);
  sn_err err = SN_ERR_INIT;
  sn_paper_rows rows = {0};
  while (count > 0 && strcmp(e->name, name) != 0) e++, count--;
  assert_true(count > 0);
  e->measure(e, &rows, &err);
  must(&err);
  assert_true(rows.count > 0);
  return rows;
}

static double ours(const sn_paper_rows *rows, const char *subject, const char *series) {
  for (uint32_t i = 0; i < rows->count; i++)
    if (strcmp(rows->rows[i].subject, subject) == 0 && strcmp(rows->rows[i].series, series) == 0)
      return rows->rows[i].ours;
  fail_msg("%s, %s: not there", subject, series);
  return NAN;
}

static double off(const sn_paper_row *row) {
  return exp(fabs(log(row->ours / row->paper)));
}

/* Threads within 1, times within 1 %, losses within 3.5 points. */
static void table2(void **state) {
  (void)state;
  sn_paper_rows rows = measure("corun-table2");
  assert_int_equal(rows.count, 27);
  for (uint32_t i = 0; i < rows.count; i++) {
    const sn_paper_row *r = &rows.rows[i];
    if (r->quantity == SN_THREADS) assert_true(fabs(r->ours - r->paper) <= 1);
    if (r->quantity == SN_MS) assert_true(off(r) <= 1.01);
    if (r->quantity == SN_SHARE_PERCENT) assert_true(fabs(r->ours - r->paper) <= 3.5);
  }
  free(rows.rows);
}

static void table3(void **state) {
  (void)state;
  sn_paper_rows rows = measure("corun-table3");
  for (uint32_t i = 1; i < 3; i++) assert_true(rows.rows[i].quantity == SN_MS && off(&rows.rows[i]) <= 1.03);
  free(rows.rows);
}

/* Within 1.5 points at 2 threads, 2.5 at 4, falling; geometric at least 98.5 %; what is found costs at most 2 %. */
static void table5(void **state) {
  (void)state;
  static const char *const nets[] = {"ResNet-50", "DCGAN", "Inception-v3"};
  sn_paper_rows rows = measure("corun-table5");
  for (uint32_t n = 0; n < 3; n++) {
    double two = ours(&rows, nets[n], "interval 2"), four = ours(&rows, nets[n], "interval 4");
    double eight = ours(&rows, nets[n], "interval 8"), sixteen = ours(&rows, nets[n], "interval 16");
    assert_true(two > four && four > eight && eight > sixteen);
    assert_true(ours(&rows, nets[n], "interval geometric") >= 98.5);
  }
  for (uint32_t i = 0; i < rows.count; i++) {
    const sn_paper_row *r = &rows.rows[i];
    if (strcmp(r->series, "interval 2") == 0) assert_true(fabs(r->ours - r->paper) <= 1.5);
    if (strcmp(r->series, "interval 4") != 0) continue;
    assert_true(fabs(r->ours - r->paper) <= 2.5);
    assert_true(rows.rows[i + 1].ours <= 2);
  }
  free(rows.rows);
}

/* Mean distance 1.20, worst 1.6; 2x34 the fastest, twice the cores' threads the slowest of each count of workers. */
static void table1(void **state) {
  (void)state;
  enum { CONFIGURATIONS = 9, FASTEST = 3 };
  sn_paper_rows rows = measure("corun-table1");
  assert_true(ours(&rows, "all 18", "geometric mean") <= 1.20);
  assert_true(ours(&rows, "all 18", "worst") <= 1.6);
  for (uint32_t net = 0; net < 2; net++) {
    const sn_paper_row *r = &rows.rows[CONFIGURATIONS * net];
    assert_string_equal(r[FASTEST].series, "2x34");
    for (uint32_t i = 0; i < CONFIGURATIONS; i++) {
      assert_true(r[i].ours >= r[FASTEST].ours);
      assert_true(r[i].ours <= r[i / 3 * 3 + 2].ours);
    }
  }
  free(rows.rows);
}

/* Convolutions of the networks that it is fitted to: within a factor of 2. */
static void table6(void **state) {
  (void)state;
  sn_paper_rows rows = measure("corun-table6");
  uint32_t compared = 0;
  for (uint32_t i = 0; i < rows.count; i++) {
    const sn_paper_row *r = &rows.rows[i];
    if (strcmp(r->subject, "Inception-v3") == 0 || strncmp(r->series, "Conv", 4) != 0) continue;
    assert_true(off(r) <= 2);
    compared++;
  }
  assert_int_equal(compared, 12);
  free(rows.rows);
}

/* Totals at least 1.1 and within a quarter of the paper's, no strategy worse than 0.98 of the one before, parts 1.15
 * off in the mean; `path` at least 1.08 times the best of theirs. */
static void figure3(void **state) {
  (void)state;
  sn_paper_rows rows = measure("corun-fig3");
  double sum = 0;
  uint32_t parts = 0;
  for (uint32_t i = 0; i < rows.count; i++) {
    const sn_paper_row *r = &rows.rows[i];
    if (strcmp(r->series, "s1234 / 1x68") == 0) assert_true(r->ours >= 1.1 && off(r) <= 1.25);
    if (strncmp(r->series, "path", 4) == 0) assert_true(r->ours >= 1.08);
    if (strcmp(r->series, "s12 / 1x68") == 0 || strcmp(r->series, "s123 / s12") == 0 ||
        strcmp(r->series, "s1234 / s123") == 0) {
      assert_true(r->ours >= 0.98);
      sum += off(r);
      parts++;
    }
  }
  assert_int_equal(parts, 9);
  assert_true(sum / parts <= 1.15);
  free(rows.rows);
}

static void figure4(void **state) {
  (void)state;
  sn_paper_rows rows = measure("corun-fig4");
  for (uint32_t i = 0; i < rows.count; i++) assert_true(rows.rows[i].ours >= 1 && rows.rows[i].ours <= 6);
  free(rows.rows);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(table1), cmocka_unit_test(table2),  cmocka_unit_test(table3),  cmocka_unit_test(table5),
      cmocka_unit_test(table6), cmocka_unit_test(figure3), cmocka_unit_test(figure4),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
