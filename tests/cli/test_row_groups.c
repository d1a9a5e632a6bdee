/* Rows of tensors that are the same but for a number. */
#include "cli/frame/row_groups.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Largest first, as a peak has them. */
static const sn_peak_row rows[] = {{"h.11.mlp.y", "h.11.mlp forward", 300, 11, 40, "offload"},
                                   {"h.0.mlp.y", "h.0.mlp forward", 200, 1, 60, "recompute"},
                                   {"h.1.mlp.y", "h.1.mlp forward", 200, 2, 59, "recompute"},
                                   {"h.2.mlp.y", "h.2.mlp forward", 200, 3, 58, "needed by this step"},
                                   {"h.1.ln.y", "h.1.ln forward", 150, 4, 57, "recompute"},
                                   {"h.2.ln.0.y", "h.2.ln.0 forward", 150, 5, 56, "recompute"},
                                   {"h.3.ln.1.y", "h.3.ln.1 forward", 150, 6, 55, "recompute"},
                                   {"conv1.y", "conv1 forward", 150, 7, 54, "recompute"},
                                   {"conv2.y", "conv2 forward", 150, 8, 53, "recompute"}};

static void groups(void **state) {
  (void)state;
  static const struct {
    const char *tensor, *producer;
    uint32_t count;
    uint64_t bytes;
    uint32_t since;
  } expected[] = {{"2 x h.*.mlp.y", "h.*.mlp forward", 2, 400, 1},
                  {"h.11.mlp.y", "h.11.mlp forward", 1, 300, 11},
                  {"h.2.mlp.y", "h.2.mlp forward", 1, 200, 3}, /* other advice */
                  {"h.1.ln.y", "h.1.ln forward", 1, 150, 4},
                  {"h.2.ln.0.y", "h.2.ln.0 forward", 1, 150, 5}, /* the second number is another */
                  {"h.3.ln.1.y", "h.3.ln.1 forward", 1, 150, 6},
                  {"conv1.y", "conv1 forward", 1, 150, 7}, /* no number between dots */
                  {"conv2.y", "conv2 forward", 1, 150, 8}};
  sn_err err = SN_ERR_INIT;
  sn_row_groups *alike = sn_row_groups_new(rows, sizeof rows / sizeof rows[0], &err);
  assert_non_null(alike);
  assert_int_equal(alike->n_groups, sizeof expected / sizeof expected[0]);
  for (uint32_t i = 0; i < alike->n_groups; i++) {
    const sn_row_groups_group *g = &alike->groups[i];
    assert_string_equal(g->tensor, expected[i].tensor);
    assert_string_equal(g->producer, expected[i].producer);
    assert_int_equal(g->count, expected[i].count);
    assert_int_equal(g->bytes, expected[i].bytes);
    assert_int_equal(g->first->since_step, expected[i].since);
  }
  sn_row_groups_free(alike);
}

static void print_rest(const sn_row_groups *alike, uint32_t shown, const char *expected) {
  char *text = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&text, &size);
  sn_row_groups_print_rest(alike, shown, out);
  assert_int_equal(fclose(out), 0);
  assert_string_equal(text, expected);
  free(text);
}

static void rest(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_row_groups *alike = sn_row_groups_new(rows, sizeof rows / sizeof rows[0], &err);
  assert_non_null(alike);
  print_rest(alike, 0, "and 9 smaller ones, 1.61 KiB in all; --json lists them\n");
  print_rest(alike, 6, "and 2 smaller ones, 300 B in all; --json lists them\n");
  print_rest(alike, 8, "");
  sn_row_groups_free(alike);
  alike = sn_row_groups_new(NULL, 0, &err);
  assert_non_null(alike);
  assert_int_equal(alike->n_groups, 0);
  sn_row_groups_free(alike);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(groups), cmocka_unit_test(rest)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
