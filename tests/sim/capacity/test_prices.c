/* Prices of cards: what a file may say, and what is said of one that cannot be read. */
#include "sim/capacity/prices.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void cards_have_their_prices(void **state) {
  static const char text[] = "\xef\xbb\xbf# a cloud, on demand\n"
                             "rtx4090, 0.44 USD\n\n"
                             "  NVIDIA A100-SXM4-80GB ,1.89 usd # spot\r\n"
                             "mine,\t12 Usd";
  sn_err err = SN_ERR_INIT;
  (void)state;
  sn_prices *p = sn_prices_parse("p.csv", text, sizeof text - 1, "mine", &err);
  assert_non_null(p);
  assert_string_equal(p->currency, "USD");
  assert_int_equal(p->count, 3);
  assert_true(sn_prices_of(p, "rtx4090") == 0.44 && sn_prices_of(p, "a100_80") == 1.89);
  assert_true(sn_prices_of(p, "mine") == 12 && sn_prices_of(p, "h200") == 0);
  sn_prices_free(p);
}

static void bad_files_say_where_and_what(void **state) {
  static const struct {
    const char *text, *said;
  } cases[] = {
      {"rtx4090, 1 USD\nrtx409, 1 USD\n",
       "p.csv:2: unknown GPU \"rtx409\" (did you mean \"rtx4090\"?); snsim list gpus shows them"},
      {"# ours\ngpu,price\n",
       "p.csv:2: \"gpu, price\" has no price, as a heading: take it out or begin it with #; a line is "
       "a GPU, its price an hour and the currency: rtx4090, 0.44 USD"},
      {"h200, 1 USD\ngpu, price\n", "p.csv:2: unknown GPU \"gpu\"; snsim list gpus shows them"},
      {"# x\n\nh200, -3 USD\n", "p.csv:3: a price of -3 USD: it must be above 0; leave the line out where a card costs "
                                "nothing"},
      {"h200, 0.000 USD\n",
       "p.csv:1: a price of 0.000 USD: it must be above 0; leave the line out where a card costs nothing"},
      {"h200, 9999999999 USD", "p.csv:1: a price of 9999999999 USD: more than 10^9 an hour"},
      {"h200, 3 EUR\n\nt4, 1 USD\n",
       "p.csv:3: a price in USD, where line 1 has EUR; all of a file are in one currency"},
      {"a100, 1 USD\nA100 80GB, 2 USD\n", "p.csv:2: a100_80 has a price already, in line 1; keep one of the two"},
      {"h200 3 USD\n",
       "p.csv:1: \"h200 3 USD\": a comma is missing; a line is a GPU, its price an hour and the currency: "
       "rtx4090, 0.44 USD"},
      {"h200, three USD\n",
       "p.csv:1: \"three USD\" is no price; a line is a GPU, its price an hour and the currency: rtx4090, 0.44 USD"},
      {"h200,\n", "p.csv:1: \"\" is no price; a line is a GPU, its price an hour and the currency: rtx4090, 0.44 USD"},
      {"h200, $3\n", "p.csv:1: \"$3\" is no price; a line is a GPU, its price an hour and the currency: rtx4090, 0.44 "
                     "USD"},
      {"h200, inf USD\n",
       "p.csv:1: \"inf USD\" is no price; a line is a GPU, its price an hour and the currency: rtx4090, 0.44 USD"},
      {"h200, 3\n", "p.csv:1: \"\" is no currency: a word of 2 to 8 letters stands behind the price, as 0.44 USD"},
      {"h200, 3,5 EUR\n", "p.csv:1: a price of 3,5 EUR: a price has a point and no comma, as 0.44 USD"},
      {"h200, 1e3 USD\n",
       "p.csv:1: \"e3 USD\" is no currency: a word of 2 to 8 letters stands behind the price, as 0.44 USD"},
      {"h200, 3 \x01\n", "p.csv:1: the line cannot be read: it is no text of up to 199 bytes"},
      {"", "p.csv:1: the file has no price; a line is a GPU, its price an hour and the currency: rtx4090, 0.44 USD"},
      {"# h200, 3 USD\n\n",
       "p.csv:1: the file has no price; a line is a GPU, its price an hour and the currency: rtx4090, 0.44 USD"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    sn_err err = SN_ERR_INIT;
    assert_null(sn_prices_parse("p.csv", cases[i].text, strlen(cases[i].text), NULL, &err));
    assert_int_equal(err.code, SN_BAD_INPUT);
    assert_string_equal(err.text, cases[i].said);
  }
}

static void files_that_are_not_there_or_too_large(void **state) {
  static const char path[] = "large-prices.csv";
  sn_err missing = SN_ERR_INIT, large = SN_ERR_INIT;
  (void)state;
  assert_null(sn_prices_load("no/such.csv", NULL, &missing));
  assert_int_equal(missing.code, SN_BAD_FILE);
  FILE *out = fopen(path, "w");
  assert_non_null(out);
  for (int i = 0; i <= SN_PRICES_MOST_BYTES; i++) fputc('#', out);
  assert_int_equal(fclose(out), 0);
  assert_null(sn_prices_load(path, NULL, &large));
  assert_string_equal(large.text, "large-prices.csv:1: larger than 64 KiB, which no list of prices is");
  assert_int_equal(remove(path), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(cards_have_their_prices),
                                     cmocka_unit_test(bad_files_say_where_and_what),
                                     cmocka_unit_test(files_that_are_not_there_or_too_large)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
