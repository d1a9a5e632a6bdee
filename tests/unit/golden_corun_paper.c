/* How near the paper on co-running we are: the bounds that docs/corun.md states, of each table and figure of
 * `snsim reproduce corun-..`. */
#include "cli/reproduce/reproduce.h"
#include "tests/unit/pipeline.h"

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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(table2),
      cmocka_unit_test(table3),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
