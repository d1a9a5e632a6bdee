/* What an epoch takes and costs, in words. */
#include "cli/frame/epoch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/units.h"

static void times_are_told_in_their_unit(void **state) {
  static const struct {
    double seconds;
    const char *two, *three;
  } cases[] = {{0.0123, "0.012 s", "0.0123 s"},   {89.4, "89 s", "89.4 s"},         {90, "1.5 min", "1.50 min"},
               {5399, "90 min", "90.0 min"},      {5400, "1.5 h", "1.50 h"},        {172799, "48 h", "48.0 h"},
               {172800, "2.0 days", "2.00 days"}, {1e9, "12000 days", "11600 days"}};
  char text[SN_UNIT_TEXT];
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    assert_string_equal(sn_epoch_time(cases[i].seconds, 2, text), cases[i].two);
    assert_string_equal(sn_epoch_time(cases[i].seconds, 3, text), cases[i].three);
  }
  assert_true(strlen(sn_epoch_time(1e300, 2, text)) < SN_UNIT_TEXT);
}

static void cost_has_the_band_of_time(void **state) {
  static const char prices[] = "rtx3090, 0.5 USD\n";
  sn_err err = SN_ERR_INIT;
  char text[SN_EPOCH_TEXT];
  sn_epoch e = {.samples = 3600000, .file = "p.csv"};
  sn_pace pace = {.per_second = 500, .within = 0.25};
  (void)state;
  assert_string_equal(sn_epoch_line(&e, "rtx3090", pace, "images", text),
                      "an epoch of 3600000 images: 2.0 h (1.5 to 2.5)");
  e.prices = sn_prices_parse("p.csv", prices, sizeof prices - 1, NULL, &err);
  assert_non_null(e.prices);
  assert_true(sn_epoch_take(&e, "rtx3090", pace).cost == 1 && sn_epoch_take(&e, "t4", pace).cost == 0);
  assert_string_equal(sn_epoch_line(&e, "rtx3090", pace, "images", text),
                      "an epoch of 3600000 images: 2.0 h (1.5 to 2.5), 1.0 USD (0.75 to 1.2)");
  pace.changed = true;
  assert_string_equal(sn_epoch_line(&e, "t4", pace, "images", text),
                      "an epoch of 3600000 images, with the first change: 2.0 h (1.5 to 2.5); no price of t4 in p.csv");
  pace = (sn_pace){.per_second = 500};
  assert_string_equal(sn_epoch_line(&e, "rtx3090", pace, "images", text),
                      "an epoch of 3600000 images: 2.0 h, 1.0 USD; no measurement of this kind");
  pace.calibrated = true;
  assert_string_equal(sn_epoch_line(&e, "rtx3090", pace, "images", text),
                      "an epoch of 3600000 images: 2.00 h, 1.00 USD");
  pace.per_second = 0;
  assert_string_equal(sn_epoch_line(&e, "rtx3090", pace, "images", text),
                      "an epoch of 3600000 images: no time, as nothing fits");
  sn_prices_free(e.prices);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(times_are_told_in_their_unit),
                                     cmocka_unit_test(cost_has_the_band_of_time)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
