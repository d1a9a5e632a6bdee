/* Comparison of runs: every tensor of either peak is in exactly one class, their bytes add up to the change of the
 * peak, and strategies are paired whatever the order. Checked by hand and on simulated runs. */
#include "models/zoo/zoo.h"

#include "sim/ask/simulate.h"
#include "sim/capacity/compare.h"
#include "sim/device/device.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void must(const sn_err *err) {
  if (err->code != SN_OK) fail_msg("%s", err->text);
}

/* ---- by hand ---- */

static sn_result result(const char *strategy, const sn_peak_row *peak, uint32_t n_peak) {
  return (sn_result){.strategy = strategy,
                     .placement = "packed",
                     .dialect = "superneurons",
                     .corun = SN_CORUN_ROW_NONE,
                     .step_order = "route",
                     .source = "sim",
                     .peak_layer = "",
                     .peak_pass = "",
                     .pool_layer = "",
                     .pool_pass = "",
                     .pool_cause = "",
                     .peak = peak,
                     .n_peak = n_peak};
}

static void tensors_are_classed(void **state) {
  (void)state;
  static const sn_peak_row old[] = {{"d.y", "d", 900, 1, 2, ""},
                                    {"b.y", "b", 50, 1, 2, ""},
                                    {"a.y", "a", 30, 1, 2, ""},
                                    {"same.y", "same", 5, 1, 2, ""}};
  static const sn_peak_row new[] = {{"a.y", "a", 100, 1, 2, ""},
                                    {"c.y", "c", 70, 1, 2, ""},
                                    {"b.y", "b", 20, 1, 2, ""},
                                    {"same.y", "same", 5, 1, 2, ""}};
  static const char *const order[] = {"d.y", "a.y", "c.y", "b.y", "same.y"}; /* by size, then by name */
  static const sn_change changes[] = {SN_WENT, SN_GREW, SN_CAME, SN_SHRANK, SN_STAYED};
  static const int64_t bytes[] = {-900, 70, 70, -30, 0};
  sn_result before = result("liveness", old, 4), after = result("liveness", new, 4);
  sn_arena *arena = sn_arena_new();
  sn_err err = SN_ERR_INIT;
  sn_peak_change change;
  assert_int_equal(sn_compare_peaks(&before, &after, arena, &change, &err), SN_OK);
  assert_int_equal(change.n_tensors, 5);
  for (uint32_t i = 0; i < 5; i++) {
    const sn_peak_tensor *t = &change.tensors[i];
    assert_string_equal(t->after ? t->after->tensor : t->before->tensor, order[i]);
    assert_int_equal(t->change, changes[i]);
    assert_true(sn_peak_tensor_bytes(t) == bytes[i]);
    assert_int_equal(change.count[changes[i]], 1);
    assert_true(change.bytes[changes[i]] == bytes[i]);
  }
  sn_arena_free(arena);
}

static void strategies_are_paired(void **state) {
  (void)state;
  sn_result a[] = {result("x", NULL, 0), result("y", NULL, 0)}, b[] = {result("z", NULL, 0), result("y", NULL, 0)};
  sn_run before = {.n_results = 2, .results = a}, after = {.n_results = 2, .results = b};
  sn_arena *arena = sn_arena_new();
  sn_err err = SN_ERR_INIT;
  uint32_t count;
  b[1].iteration_ns = 3;
  sn_compare_pair *pairs = sn_compare_runs(&before, &after, arena, &count, &err);
  assert_int_equal(count, 3);
  assert_true(pairs[0].before == &a[0] && !pairs[0].after);
  assert_true(pairs[1].before == &a[1] && pairs[1].after == &b[1]);
  assert_true(!pairs[2].before && pairs[2].after == &b[0]);
  assert_false(sn_compare_same(&pairs[0]) || sn_compare_same(&pairs[1]) || sn_compare_same(&pairs[2]));
  b[1].iteration_ns = 0;
  assert_true(sn_compare_same(&pairs[1]));
  b[1].source = "cpu"; /* measured is not predicted */
  assert_non_null(sn_compare_runs(&before, &after, arena, &count, &err));
  assert_int_equal(count, 4);
  b[1].source = "sim";
  assert_false(sn_compare_has_peaks(&pairs[1]));
  sn_arena_free(arena);
}

/* ---- simulated ---- */

static sn_run *simulate(const char *name, uint32_t batch, sn_workspace workspace) {
  sn_err err = SN_ERR_INIT;
  sn_device device;
  sn_strategy strategies[SN_STRATEGY_DEFAULTS];
  sn_options options = {.workspace = workspace, .want_peak = true};
  for (uint32_t i = 0; i < SN_STRATEGY_DEFAULTS; i++) strategies[i] = sn_strategy_default(i);
  sn_device_load("k40c", &device, &err);
  sn_net *net = sn_net_load(name, batch, 0, &err);
  must(&err);
  sn_run *run = sn_simulate(name, net, &device, strategies, SN_STRATEGY_DEFAULTS, &options, &err);
  must(&err);
  sn_net_free(net);
  return run;
}

static void check_peaks(const sn_result *before, const sn_result *after, sn_arena *arena) {
  sn_err err = SN_ERR_INIT;
  sn_peak_change change;
  int64_t bytes = 0;
  uint32_t count = 0;
  assert_int_equal(sn_compare_peaks(before, after, arena, &change, &err), SN_OK);
  for (int i = 0; i < SN_CHANGES; i++) {
    bytes += change.bytes[i];
    count += change.count[i];
  }
  assert_true(bytes == (int64_t)after->peak_tensor_bytes - (int64_t)before->peak_tensor_bytes);
  assert_int_equal(count, change.n_tensors);
  assert_int_equal(before->n_peak + change.count[SN_CAME], after->n_peak + change.count[SN_WENT]);
  for (uint32_t i = 1; i < change.n_tensors; i++)
    assert_true(llabs(sn_peak_tensor_bytes(&change.tensors[i - 1])) >= llabs(sn_peak_tensor_bytes(&change.tensors[i])));
}

static void changes_add_up_to_the_peak(void **state) {
  (void)state;
  sn_run *runs[] = {simulate("alexnet", 200, SN_WORKSPACE_DYNAMIC), simulate("alexnet", 300, SN_WORKSPACE_NONE),
                    simulate("resnet18", 8, SN_WORKSPACE_DYNAMIC)};
  sn_arena *arena = sn_arena_new();
  for (int a = 0; a < 3; a++)
    for (int b = 0; b < 3; b++)
      for (uint32_t i = 0; i < SN_STRATEGY_DEFAULTS; i++)
        for (uint32_t j = 0; j < SN_STRATEGY_DEFAULTS; j++)
          check_peaks(&runs[a]->results[i], &runs[b]->results[j], arena);
  sn_arena_free(arena);
  for (int a = 0; a < 3; a++) sn_run_free(runs[a]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tensors_are_classed),
      cmocka_unit_test(strategies_are_paired),
      cmocka_unit_test(changes_add_up_to_the_peak),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
