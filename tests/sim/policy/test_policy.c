/* Names of co-run policies: every name back and forth, and a sentence for each mistake. */
#include "sim/policy/policy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

static void names(void **state) {
  (void)state;
  static const char *const all[] = {"1x1", "4x16", "6x512", "manual", "s1", "s12", "s123", "s1234", "path", "best"};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    sn_err err = SN_ERR_INIT;
    sn_policy policy, again;
    char text[SN_POLICY_NAME];
    assert_int_equal(sn_policy_parse(all[i], &policy, &err), SN_OK);
    assert_string_equal(sn_policy_name(policy, text), all[i]);
    assert_int_equal(sn_policy_parse(text, &again, &err), SN_OK);
    assert_true(sn_policy_same(policy, again));
  }
}

static void values(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_policy policy;
  assert_int_equal(sn_policy_parse("4x016", &policy, &err), SN_OK);
  assert_true(sn_policy_same(policy, (sn_policy){SN_POLICY_WORKERS, 4, 16}));
  assert_int_equal(sn_policy_parse("s1234", &policy, &err), SN_OK);
  assert_true(sn_policy_same(policy, (sn_policy){.kind = SN_POLICY_S1234}));
  assert_false(sn_policy_same(policy, (sn_policy){.kind = SN_POLICY_S123}));
  assert_false(sn_policy_same((sn_policy){SN_POLICY_WORKERS, 4, 16}, (sn_policy){SN_POLICY_WORKERS, 2, 16}));
  assert_false(sn_policy_same((sn_policy){SN_POLICY_WORKERS, 4, 16}, (sn_policy){SN_POLICY_WORKERS, 4, 8}));
}

static void mistakes(void **state) {
  (void)state;
  static const struct {
    const char *text, *says;
  } all[] = {
      {"", "no co-run policy is called \"\": give KxP (4x16: 4 workers of 16 threads each), manual, s1, s12, s123, "
           "s1234, path or best"},
      {"s124", "called \"s124\" (did you mean \"s12\"?)"},
      {"manuel", "(did you mean \"manual\"?)"},
      {"none", "no co-run policy is called \"none\""},
      {"KxP", "no co-run policy is called \"KxP\": give"},
      {"4x", "no co-run policy is called \"4x\""},
      {"x16", "no co-run policy is called \"x16\""},
      {"4x16x2", "no co-run policy is called"},
      {"-4x16", "no co-run policy is called"},
      {"4 x 16", "no co-run policy is called"},
      {"0x16", "co-run policy \"0x16\": there are 1 to 6 workers"},
      {"7x16", "co-run policy \"7x16\": there are 1 to 6 workers"},
      {"4294967297x16", "there are 1 to 6 workers"},
      {"4x0", "co-run policy \"4x0\": a worker has 1 to 512 threads"},
      {"4x513", "a worker has 1 to 512 threads"},
      {"4x99999999999999999999", "a worker has 1 to 512 threads"},
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    sn_err err = SN_ERR_INIT;
    sn_policy policy = {.kind = SN_POLICY_KINDS};
    assert_int_equal(sn_policy_parse(all[i].text, &policy, &err), SN_BAD_USAGE);
    if (!strstr(err.text, all[i].says)) fail_msg("\"%s\": %s", all[i].text, err.text);
    assert_int_equal(policy.kind, SN_POLICY_KINDS); /* untouched */
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(names), cmocka_unit_test(values), cmocka_unit_test(mistakes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
