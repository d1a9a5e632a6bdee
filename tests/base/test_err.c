/* Errors: the first one wins, prefixes, texts that are too long, and the table of codes. */
#include "base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

static void first_error_wins(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  assert_int_equal(err.code, SN_OK);
  assert_string_equal(err.text, "");
  assert_int_equal(sn_fail(&err, SN_BAD_INPUT, "%s:%d: wrong", "a.json", 3), SN_BAD_INPUT);
  assert_int_equal(sn_fail(&err, SN_BUG, "later"), SN_BAD_INPUT);
  assert_int_equal(sn_fail_memory(&err), SN_BAD_INPUT);
  assert_int_equal(err.code, SN_BAD_INPUT);
  assert_string_equal(err.text, "a.json:3: wrong");
}

static void memory(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  assert_int_equal(sn_fail_memory(&err), SN_NO_MEMORY);
  assert_non_null(strstr(err.text, "out of host memory"));
}

static void long_texts_are_cut(void **state) {
  (void)state;
  char text[2000];
  memset(text, 'x', sizeof text - 1);
  text[sizeof text - 1] = '\0';
  sn_err err = SN_ERR_INIT;
  sn_fail(&err, SN_BUG, "%s", text);
  assert_int_equal(strlen(err.text), sizeof err.text - 1);
  assert_memory_equal(err.text, text, sizeof err.text - 1);
}

static void prefixes(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_fail(&err, SN_BAD_FILE, "disk full");
  sn_err_prefix(&err, "run %d", 7);
  sn_err_prefix(&err, "%s", "store");
  assert_string_equal(err.text, "store: run 7: disk full");
  assert_int_equal(err.code, SN_BAD_FILE);
}

/* What no longer fits is lost at the end of the text, never in front; a prefix that leaves no room is left out. */
static void prefixes_of_long_texts(void **state) {
  (void)state;
  char text[sizeof((sn_err *)0)->text];
  for (size_t length = 0; length < sizeof text; length++) {
    memset(text, 'p', length);
    text[length] = '\0';
    sn_err err = SN_ERR_INIT;
    sn_fail(&err, SN_BUG, "%0*d", (int)sizeof err.text - 1, 0);
    sn_err_prefix(&err, "%s", text);
    size_t used = length + 2 < sizeof err.text ? length + 2 : 0;
    if (used > 0) assert_memory_equal(err.text, text, length);
    if (used > 0) assert_memory_equal(err.text + length, ": ", 2);
    assert_int_equal(strspn(err.text + used, "0"), sizeof err.text - 1 - used);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
  }
}

static void table_of_codes(void **state) {
  (void)state;
  static const struct {
    sn_status code;
    int exit_code;
  } known[] = {{SN_OK, 0},       {SN_NO_FIT, 1},     {SN_BAD_USAGE, 2}, {SN_BAD_INPUT, 3},
               {SN_BAD_FILE, 3}, {SN_BAD_DEVICE, 4}, {SN_NO_MEMORY, 4}, {SN_BUG, 5}};
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    assert_int_equal(known[i].code, i);
    assert_int_equal(sn_status_exit_code(known[i].code), known[i].exit_code);
    for (size_t k = 0; k < i; k++)
      assert_string_not_equal(sn_status_name(known[i].code), sn_status_name(known[k].code));
  }
  assert_string_equal(sn_status_name(SN_NO_FIT), "does not fit");
  assert_string_equal(sn_status_name((sn_status)99), "unknown status");
  assert_int_equal(sn_status_exit_code((sn_status)99), 5);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(first_error_wins),       cmocka_unit_test(memory),
      cmocka_unit_test(long_texts_are_cut),     cmocka_unit_test(prefixes),
      cmocka_unit_test(prefixes_of_long_texts), cmocka_unit_test(table_of_codes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
