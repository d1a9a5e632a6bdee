/* Tests of what the table of a measured run says beside its figures: a busy machine, iterations that scatter,
 * strategies that were left out. */
#include "cli/train/measured.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static sn_result result(const char *strategy, int64_t fastest, int64_t median, int64_t slowest) {
  return (sn_result){.strategy = strategy,
                     .placement = "packed",
                     .dialect = "superneurons",
                     .corun = SN_CORUN_ROW_NONE,
                     .step_order = "route",
                     .source = "cpu",
                     .fits = true,
                     .fastest_ns = fastest,
                     .iteration_ns = median,
                     .slowest_ns = slowest,
                     .iterations = 5,
                     .digest = 1};
}

static sn_run run_of(const sn_result *results, uint32_t count, double load) {
  return (sn_run){.net = "lenet",
                  .answer = "",
                  .conditions.precision = "fp32",
                  .conditions.freeze = "",
                  .conditions.parallel = "",
                  .conditions.cluster = "",
                  .conditions.optimizer = "momentum",
                  .device = "a processor",
                  .conditions.external = "host",
                  .data = "synthetic",
                  .iterations = 5,
                  .processors = 4,
                  .load = load,
                  .results = results,
                  .n_results = count};
}

/* The caller frees the text. */
static char *print(const sn_run *run) {
  char *text = NULL;
  size_t bytes = 0;
  sn_err err = SN_ERR_INIT;
  sn_out out = {.stream = open_memstream(&text, &bytes)};
  assert_int_equal(sn_measured_print(run, false, &out, &err), SN_OK);
  fclose(out.stream);
  return text;
}

static void assert_says(const sn_run *run, const char *words, bool says) {
  char *text = print(run);
  if ((strstr(text, words) != NULL) != says) fail_msg("%s \"%s\" in:\n%s", says ? "no" : "an unwanted", words, text);
  free(text);
}

static void the_spread_stands_beside_the_median(void **state) {
  const sn_result one = result("liveness", 1500000, 2000000, 2250000);
  const sn_run run = run_of(&one, 1, 0);
  (void)state;
  assert_says(&run, "2.00 1.50..2.25", true);
}

static void a_busy_machine_is_said(void **state) {
  const sn_result one = result("liveness", 100, 100, 100);
  const sn_run quiet = run_of(&one, 1, 3.9), busy = run_of(&one, 1, 4);
  (void)state;
  assert_says(&quiet, "busy", false);
  assert_says(&busy, "busy when measuring began: load 4.0 on 4 processors", true);
}

/* Of two that scatter, the one that does so more. */
static void scatter_is_said(void **state) {
  const sn_result results[] = {result("baseline", 1000000, 1000000, 1600000),
                               result("liveness", 1000000, 2000000, 4000000)};
  const sn_result steady = result("baseline", 1000000, 1000000, 1500000);
  const sn_run both = run_of(results, 2, 0), neither = run_of(&steady, 1, 0);
  (void)state;
  assert_says(&both, "Times scatter: liveness took 1.00 to 4.00 ms", true);
  assert_says(&neither, "scatter", false);
}

static void what_was_left_out_is_named(void **state) {
  const sn_result one = result("liveness", 100, 100, 100);
  const sn_failure failure = {"baseline", "it needs a pool of 3.000 MiB, and --pool offers 1.000 MiB"};
  sn_run run = run_of(&one, 1, 0);
  (void)state;
  assert_says(&run, "not trained", false);
  run.failures = &failure;
  run.n_failures = 1;
  assert_says(&run, "\nbaseline: not trained: it needs a pool of 3.000 MiB", true);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_spread_stands_beside_the_median),
      cmocka_unit_test(a_busy_machine_is_said),
      cmocka_unit_test(scatter_is_said),
      cmocka_unit_test(what_was_left_out_is_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
