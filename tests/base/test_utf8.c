/* UTF-8: every code point there and back, what is no UTF-8, and the classes of characters. */
#include "base/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

/* Encodes a code point, surrogates too; the bytes are followed by a NUL. */
static size_t encode(uint32_t point, char *out) {
  size_t length = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
  static const unsigned lead[] = {0, 0, 0xC0, 0xE0, 0xF0};
  for (size_t i = length; i-- > 1; point >>= 6) out[i] = (char)(0x80 | (point & 0x3F));
  out[0] = (char)(lead[length] | point);
  out[length] = '\0';
  return length;
}

static void every_code_point(void **state) {
  (void)state;
  for (uint32_t point = 0; point < 0x120000; point++) {
    char text[8];
    uint32_t read;
    bool good = point < 0xD800 || (point > 0xDFFF && point < 0x110000);
    size_t length = encode(point, text);
    if (sn_utf8_next(text, &read) != (good ? length : 0) || (good && read != point)) fail_msg("U+%X", (unsigned)point);
    if (length == 1) continue;
    text[length - 1] = '\0'; /* cut short */
    assert_int_equal(sn_utf8_next(text, &read), 0);
  }
}

static void no_characters(void **state) {
  (void)state;
  static const char *const texts[] = {"\x80",
                                      "\xBF",
                                      "\xC0\x80",
                                      "\xC1\xBF",
                                      "\xE0\x9F\xBF",
                                      "\xC3(",
                                      "\xF0\x8F\xBF\xBF",
                                      "\xF8\x88\x80\x80\x80",
                                      "\xFE",
                                      "\xE2\x28\xA1",
                                      "\xFF"};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    uint32_t point;
    assert_int_equal(sn_utf8_next(texts[i], &point), 0);
  }
}

static void classes(void **state) {
  (void)state;
  static const struct {
    uint32_t point;
    bool control, blank;
    unsigned width;
  } cases[] = {
      {'\0', true, false, 1},     {'\n', true, false, 1},    {0x1B, true, false, 1},      {' ', false, true, 1},
      {'!', false, false, 1},     {'~', false, false, 1},    {0x7F, true, false, 1},      {0x80, true, false, 1},
      {0x9F, true, false, 1},     {0xA0, false, true, 1},    {0xA1, false, false, 1},     {0xE9, false, false, 1},
      {0x301, false, false, 0},   {0x61C, true, false, 1},   {0x10FF, false, false, 1},   {0x1100, false, false, 2},
      {0x200A, false, true, 1},   {0x200B, true, false, 1},  {0x200E, true, false, 1},    {0x2010, false, false, 1},
      {0x2028, true, false, 1},   {0x202A, true, false, 1},  {0x202E, true, false, 1},    {0x202F, false, true, 1},
      {0x2066, true, false, 1},   {0x2069, true, false, 1},  {0x20AC, false, false, 1},   {0x3000, false, true, 2},
      {0x3042, false, false, 2},  {0x5C42, false, false, 2}, {0xAC00, false, false, 2},   {0xD7A4, false, false, 1},
      {0xFEFF, true, false, 1},   {0xFF21, false, false, 2}, {0xFF61, false, false, 1},   {0x1F600, false, false, 2},
      {0x20000, false, false, 2}, {0xE0041, true, false, 1}, {0x10FFFF, false, false, 1},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    uint32_t point = cases[i].point;
    bool good = sn_utf8_is_control(point) == cases[i].control && sn_utf8_is_blank(point) == cases[i].blank;
    if (!good || sn_utf8_width(point) != cases[i].width) fail_msg("U+%04X", (unsigned)point);
  }
}

/* Cleaned text keeps its bytes' number, is UTF-8, and cleaning it again changes nothing. */
static void cleaned(void **state) {
  (void)state;
  char text[] = "a\x1B[2J \xC2\x9B\xE2\x80\xAE\xE5\xB1\x82\xFF\xE5\xB1", again[sizeof text];
  assert_ptr_equal(sn_utf8_clean(text), text);
  assert_string_equal(text, "a?[2J ?????\xE5\xB1\x82???");
  strcpy(again, text);
  assert_string_equal(sn_utf8_clean(again), text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_code_point),
      cmocka_unit_test(no_characters),
      cmocka_unit_test(classes),
      cmocka_unit_test(cleaned),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
