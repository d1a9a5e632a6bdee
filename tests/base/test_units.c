/* Units: what is read as a count or a size, what is refused and how, and how numbers are printed. */
#include "base/units.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

static void counts(void **state) {
  (void)state;
  static const struct {
    const char *text;
    uint64_t value;
  } good[] = {{"1", 1}, {"200", 200}, {"0007", 7}, {"18446744073709551615", UINT64_MAX}};
  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
    sn_err err = SN_ERR_INIT;
    uint64_t value = 0;
    assert_int_equal(sn_parse_count(good[i].text, "--batch", 1, UINT64_MAX, &value, &err), SN_OK);
    assert_true(value == good[i].value);
  }
}

static void bad_counts(void **state) {
  (void)state;
  static const struct {
    const char *text, *said;
  } bad[] = {
      {"", "--batch: \"\" is not a whole number from 2 to 10"},
      {"x", "\"x\" is not a whole number"},
      {"3x", "\"3x\" is not a whole number"},
      {"3 ", "\"3 \" is not a whole number"},
      {" 3", "\" 3\" is not a whole number"},
      {"+3", "\"+3\" is not a whole number"},
      {"-3", "\"-3\" is not a whole number"},
      {"3.0", "\"3.0\" is not a whole number"},
      {"0x5", "\"0x5\" is not a whole number"},
      {"1", "--batch: 1 is out of range (2 to 10)"},
      {"11", "11 is out of range (2 to 10)"},
      {"18446744073709551616", "18446744073709551616 is out of range"},
      {"99999999999999999999999999", "is out of range"},
  };
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    sn_err err = SN_ERR_INIT;
    uint64_t value = 77;
    assert_int_equal(sn_parse_count(bad[i].text, "--batch", 2, 10, &value, &err), SN_BAD_USAGE);
    if (!strstr(err.text, bad[i].said)) fail_msg("\"%s\": %s", bad[i].text, err.text);
    assert_true(value == 77);
  }
}

static void sizes(void **state) {
  (void)state;
  static const struct {
    const char *text;
    uint64_t bytes;
  } good[] = {
      {"1B", 1},
      {"4096B", 4096},
      {"1KiB", 1024},
      {"512MiB", UINT64_C(512) << 20},
      {"8GiB", UINT64_C(8) << 30},
      {"2TiB", UINT64_C(2) << 40},
      {"1kB", 1000},
      {"12MB", 12000000},
      {"12GB", UINT64_C(12000000000)},
      {"1TB", UINT64_C(1000000000000)},
      {"1.5GiB", UINT64_C(3) << 29},
      {"0.5KiB", 512},
      {"11.2 GiB", UINT64_C(12025908429)}, /* 11.2 x 2^30 = 12025908428.8 */
      {"8gib", UINT64_C(8) << 30},
      {"8000TiB", UINT64_C(8000) << 40},
      {"8PiB", UINT64_C(8) << 50},
      {"2PB", UINT64_C(2000000000000000)},
      {"007.50KiB", 7680},
  };
  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
    sn_err err = SN_ERR_INIT;
    uint64_t bytes = 0;
    if (sn_parse_bytes(good[i].text, "--memory", 1, &bytes, &err) != SN_OK) fail_msg("%s", err.text);
    assert_true(bytes == good[i].bytes);
  }
}

static void bad_sizes(void **state) {
  (void)state;
  static const struct {
    const char *text, *said;
  } bad[] = {
      {"", "--memory: \"\" is not a size; write a number and its unit, for instance 8GiB, 512MiB or 12GB"},
      {"8", "--memory: \"8\" has no unit: 8GiB, 8MiB, 8GB?"},
      {"4096 ", "has no unit: 4096GiB"},
      {"1243836701", "--memory: \"1243836701\" has no unit: 1243836701B?"},
      {"00", "has no unit"},
      {"0x10GiB", "is not a size"},
      {"0x1p3GiB", "is not a size"},
      {"1e3GiB", "is not a size"},
      {"1E3GiB", "is not a size"},
      {"1e300GiB", "is not a size"},
      {"1.GiB", "is not a size"},
      {"1.5.5GiB", "is not a size"},
      {"1,5GiB", "is not a size"},
      {"nanB", "is not a size"},
      {"infGiB", "is not a size"},
      {"1GiB\t", "is not a size"},
      {"GiB", "is not a size"},
      {"12G", "--memory: \"12G\" leaves open which: 12GiB (powers of 1024) or 12GB (of 1000)?"},
      {"1.5 k", "leaves open which: 1.5KiB (powers of 1024) or 1.5kB (of 1000)?"},
      {"12Gi", "is not a size (did you mean 12GiB?)"},
      {"12Gb/s", "is not a size"},
      {"-1GiB", "is not a size"},
      {"+1GiB", "is not a size"},
      {".5GiB", "is not a size"},
      {"nan", "is not a size"},
      {"inf", "is not a size"},
      {"1GiB ", "is not a size"},
      {"1 Gi B", "is not a size"},
      {"0", "--memory: \"0\" is out of range (1B to 8PiB)"},
      {"0GiB", "is out of range"},
      {"0.4B", "is out of range"},
      {"10000TiB", "is out of range"},
      {"8.1PiB", "is out of range"},
  };
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    sn_err err = SN_ERR_INIT;
    uint64_t bytes = 77;
    assert_int_equal(sn_parse_bytes(bad[i].text, "--memory", 1, &bytes, &err), SN_BAD_USAGE);
    if (!strstr(err.text, bad[i].said)) fail_msg("\"%s\": %s", bad[i].text, err.text);
    assert_true(bytes == 77);
  }
}

/* Where nothing is an answer it may be said in any unit. */
static void sizes_of_nothing(void **state) {
  (void)state;
  static const char *const texts[] = {"0", "0B", "0GiB", "0.0 MB"};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    sn_err err = SN_ERR_INIT;
    uint64_t bytes = 77;
    if (sn_parse_bytes(texts[i], "--context", 0, &bytes, &err) != SN_OK) fail_msg("%s", err.text);
    assert_true(bytes == 0);
  }
  sn_err err = SN_ERR_INIT;
  uint64_t bytes = 77;
  assert_int_equal(sn_parse_bytes("9PiB", "--context", 0, &bytes, &err), SN_BAD_USAGE);
  assert_non_null(strstr(err.text, "--context: \"9PiB\" is out of range (0B to 8PiB)"));
  assert_true(bytes == 77);
}

static void long_texts(void **state) {
  (void)state;
  char text[5000];
  memset(text, '9', sizeof text - 1);
  text[sizeof text - 1] = '\0';
  sn_err count = SN_ERR_INIT, size = SN_ERR_INIT;
  uint64_t value;
  assert_int_equal(sn_parse_count(text, "--batch", 1, 5, &value, &count), SN_BAD_USAGE);
  text[sizeof text - 2] = 'B';
  assert_int_equal(sn_parse_bytes(text, "--memory", 1, &value, &size), SN_BAD_USAGE);
  assert_non_null(strstr(count.text, "is out of range (1 to 5)"));
  assert_non_null(strstr(size.text, "is out of range"));
}

static void printed_bytes(void **state) {
  (void)state;
  char text[SN_UNIT_TEXT];
  assert_string_equal(sn_print_bytes(0, text), "0 B");
  assert_string_equal(sn_print_bytes(1023, text), "1023 B");
  assert_string_equal(sn_print_bytes(1048575, text), "1.00 MiB");
  assert_string_equal(sn_print_bytes(1024, text), "1.00 KiB");
  assert_string_equal(sn_print_bytes(929280000, text), "886.23 MiB");
  assert_string_equal(sn_print_bytes(UINT64_C(3) << 29, text), "1.50 GiB");
  assert_string_equal(sn_print_bytes(UINT64_C(5) << 40, text), "5.00 TiB");
  assert_string_equal(sn_print_bytes(UINT64_MAX, text), "16.00 EiB");
}

static void printed_times(void **state) {
  (void)state;
  char text[SN_UNIT_TEXT];
  assert_string_equal(sn_print_time(0, text), "0 ns");
  assert_string_equal(sn_print_time(999, text), "999 ns");
  assert_string_equal(sn_print_time(999999, text), "1.00 ms");
  assert_string_equal(sn_print_time(3400000, text), "3.40 ms");
  assert_string_equal(sn_print_time(12345, text), "12.3 us");
  assert_string_equal(sn_print_time(INT64_C(90000000000), text), "90.0 s");
  assert_string_equal(sn_print_time(-3400000, text), "-3.40 ms");
  assert_true(strlen(sn_print_time(INT64_MAX, text)) < SN_UNIT_TEXT);
  assert_true(strlen(sn_print_time(INT64_MIN, text)) < SN_UNIT_TEXT);
}

static void printed_counts(void **state) {
  (void)state;
  char text[SN_UNIT_TEXT];
  assert_string_equal(sn_print_count(0, text), "0");
  assert_string_equal(sn_print_count(999, text), "999");
  assert_string_equal(sn_print_count(1000, text), "1.00 k");
  assert_string_equal(sn_print_count(62378344, text), "62.38 M");
  assert_true(strlen(sn_print_count(UINT64_MAX, text)) < SN_UNIT_TEXT);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(counts),        cmocka_unit_test(bad_counts),    cmocka_unit_test(sizes),
      cmocka_unit_test(bad_sizes),     cmocka_unit_test(long_texts),    cmocka_unit_test(sizes_of_nothing),
      cmocka_unit_test(printed_bytes), cmocka_unit_test(printed_times), cmocka_unit_test(printed_counts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
