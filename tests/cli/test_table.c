/* Tables: alignment, headings, the marks for colour, and text that must not reach a terminal. */
#include "cli/options/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const sn_table_column columns[] = {
    {"", "net", SN_TABLE_TEXT},
    {"peak", "MiB", SN_TABLE_NUMBER | SN_TABLE_GAP},
    {"", "at", SN_TABLE_TEXT},
};

/* What the table prints, to be freed. */
static char *printed(const sn_table *table, bool color) {
  char *text = NULL;
  size_t bytes;
  sn_err err = SN_ERR_INIT;
  FILE *out = open_memstream(&text, &bytes);
  assert_non_null(out);
  assert_int_equal(sn_table_print(table, out, color, &err), SN_OK);
  assert_int_equal(fclose(out), 0);
  return text;
}

static sn_table *two_rows(void) {
  sn_table *table = sn_table_new(columns, 3);
  sn_table_cell(table, "%s", "alexnet");
  sn_table_cell(table, "%.3f", 886.23);
  sn_table_cell(table, "%d %s", 44, "lrn1");
  sn_table_cell(table, "x");
  sn_table_cell(table, "-");
  sn_table_dim(table);
  sn_table_cell(table, "%s", "");
  return table;
}

static void expect(const sn_table *table, bool color, const char *expected) {
  char *text = printed(table, color);
  assert_string_equal(text, expected);
  free(text);
}

static void columns_are_aligned(void **state) {
  (void)state;
  sn_table *table = two_rows();
  expect(table, false,
         "            peak\n"
         "net          MiB at\n"
         "alexnet  886.230 44 lrn1\n"
         "x              -\n");
  expect(table, true,
         "\033[1m            peak\033[0m\n"
         "\033[1mnet          MiB at\033[0m\n"
         "alexnet  886.230 44 lrn1\n"
         "\033[2mx              -\033[0m\n");
  sn_table_free(table);
}

static void hidden_columns_take_no_room(void **state) {
  (void)state;
  sn_table *table = two_rows();
  assert_int_equal(sn_table_width(table), 7 + 2 + 7 + 1 + 7);
  sn_table_hide(table, 1);
  assert_int_equal(sn_table_width(table), 7 + 1 + 7);
  expect(table, false,
         "net     at\n"
         "alexnet 44 lrn1\n"
         "x\n");
  sn_table_hide(table, 2);
  assert_int_equal(sn_table_width(table), 7);
  expect(table, false, "net\nalexnet\nx\n");
  sn_table_free(table);
  sn_table_hide(NULL, 0);
  assert_int_equal(sn_table_width(NULL), 0);
}

static void one_line_of_headings_where_no_top_is_given(void **state) {
  (void)state;
  sn_table *table = sn_table_new(columns, 1);
  sn_table_cell(table, "vgg16");
  expect(table, false, "net\nvgg16\n");
  sn_table_free(table);
}

static void width_is_counted_in_letters(void **state) {
  (void)state;
  sn_table *table = sn_table_new(columns + 1, 2);
  sn_table_cell(table, "\xC3\xA9\xC3\xA9"); /* two letters, four bytes */
  sn_table_cell(table, "a");
  sn_table_cell(table, "12345");
  sn_table_cell(table, "b");
  expect(table, false, " peak\n  MiB at\n   \xC3\xA9\xC3\xA9 a\n12345 b\n");
  sn_table_free(table);
}

/* Two columns a letter, and none for a mark above one. */
static void wide_letters_take_two_columns(void **state) {
  (void)state;
  sn_table *table = sn_table_new(columns, 2);
  sn_table_cell(table, "\xE5\xB1\x82\xE5\x90\x8D"); /* U+5C42 U+540D */
  sn_table_cell(table, "1");
  sn_table_cell(table, "e\xCC\x81\xEF\xBC\xA1"); /* e with U+0301, U+FF21 */
  sn_table_cell(table, "22");
  sn_table_cell(table, "abcd");
  sn_table_cell(table, "333");
  expect(table, false,
         "      peak\n"
         "net    MiB\n"
         "\xE5\xB1\x82\xE5\x90\x8D     1\n"
         "e\xCC\x81\xEF\xBC\xA1     22\n"
         "abcd   333\n");
  sn_table_free(table);
}

static void many_rows_and_their_marks(void **state) {
  (void)state;
  enum { ROWS = 5000 };
  sn_table *table = sn_table_new(columns, 3);
  for (int i = 0; i < ROWS; i++) {
    for (int column = 0; column < 3; column++) sn_table_cell(table, "%d", i);
    if (i % 7 == 0) sn_table_dim(table);
  }
  char *text = printed(table, true);
  size_t lines = 0, dim = 0;
  for (const char *at = text; *at; at++) {
    lines += *at == '\n';
    dim += strncmp(at, "\033[2m", 4) == 0;
  }
  assert_int_equal(lines, ROWS + 2);
  assert_int_equal(dim, (ROWS + 6) / 7);
  free(text);
  sn_table_free(table);
}

static void a_lost_table_is_reported(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_table_cell(NULL, "%d", 1);
  sn_table_dim(NULL);
  sn_table_free(NULL);
  assert_int_equal(sn_table_print(NULL, stderr, false, &err), SN_NO_MEMORY);
  assert_null(sn_table_new(columns, 33));
}

static void hostile_text_is_cleaned(void **state) {
  (void)state;
  static const struct {
    const char *text, *clean;
  } cases[] = {
      {"conv1", "conv1"},
      {"\033[2Jgone", "?[2Jgone"},
      {"a\r\n\tb\x7F", "a???b?"},
      {"\xC3\xA9t\xC3\xA9", "\xC3\xA9t\xC3\xA9"},
      {"\xE2\x82\xAC \xF0\x9F\x98\x80", "\xE2\x82\xAC \xF0\x9F\x98\x80"},
      {"\xC2\x9B"
       "31m",
       "??31m"},                    /* C1 control: the same as ESC [ */
      {"\xC0\x80", "??"},           /* overlong */
      {"\xE0\x80\xAF", "???"},      /* overlong */
      {"\xED\xA0\x80", "???"},      /* half of a surrogate pair */
      {"\xF4\x90\x80\x80", "????"}, /* above 10FFFF */
      {"\xE2\x82", "??"},           /* cut short */
      {"\xFF\xFE", "??"},
      {"a\xE2\x80\xAE"
       "b",
       "a???b"},                  /* U+202E turns the rest of the line round */
      {"\xE2\x81\xA6", "???"},    /* U+2066, another */
      {"a\xC2\xA0", "a\xC2\xA0"}, /* a blank is a blank */
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char text[32];
    strcpy(text, cases[i].text);
    assert_string_equal(sn_table_clean(text), cases[i].clean);
  }
}

static char *left_out(const sn_table *table) {
  char *text = NULL;
  size_t bytes;
  FILE *out = open_memstream(&text, &bytes);
  assert_non_null(out);
  sn_table_print_left_out(table, out);
  assert_int_equal(fclose(out), 0);
  return text;
}

/* Spare columns go in the order of their ranks, those of one rank together, and no more than must: what there is room
 * for comes back; what is left of too much text wraps. */
static void tables_are_fitted(void **state) {
  (void)state;
  static const sn_table_column many[] = {
      {"", "net", SN_TABLE_TEXT},
      {"peak", "before", SN_TABLE_GAP | SN_TABLE_SPARE(2)},
      {"MiB", "after", SN_TABLE_SPARE(2)},
      {"", "%", SN_TABLE_SPARE(1)},
      {"", "what it is", SN_TABLE_TEXT | SN_TABLE_GAP | SN_TABLE_WRAP},
  };
  static const struct {
    unsigned columns;
    const char *out, *rows;
  } cases[] = {
      {0, "",
       "       peak   MiB\nnet  before after %  what it is\na         1     2 3  of several words that are long\n"},
      {51, "",
       "       peak   MiB\nnet  before after %  what it is\na         1     2 3  of several words that are long\n"},
      {50, "",
       "       peak   MiB\nnet  before after %  what it is\na         1     2 3  of several words that are\n         "
       "            long\n"},
      {40, "left out for want of width: peak %; -o FILE or a pipe shows all\n",
       "       peak   MiB\nnet  before after  what it is\na         1     2  of several words that\n"
       "                   are long\n"},
      {38, "left out for want of width: peak; -o FILE or a pipe shows all\n",
       "net %  what it is\na   3  of several words that are long\n"},
      {25, "left out for want of width: peak %, peak; -o FILE or a pipe shows all\n",
       "net  what it is\na    of several words\n     that are long\n"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    sn_table *table = sn_table_new(many, 5);
    sn_table_cell(table, "a");
    for (int n = 1; n <= 3; n++) sn_table_cell(table, "%d", n);
    sn_table_cell(table, "of several words that are long");
    sn_table_fit(table, cases[i].columns);
    char *said = left_out(table);
    assert_string_equal(said, cases[i].out);
    free(said);
    if (cases[i].rows) expect(table, false, cases[i].rows);
    sn_table_free(table);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tables_are_fitted),
      cmocka_unit_test(columns_are_aligned),
      cmocka_unit_test(one_line_of_headings_where_no_top_is_given),
      cmocka_unit_test(width_is_counted_in_letters),
      cmocka_unit_test(wide_letters_take_two_columns),
      cmocka_unit_test(many_rows_and_their_marks),
      cmocka_unit_test(a_lost_table_is_reported),
      cmocka_unit_test(hostile_text_is_cleaned),
      cmocka_unit_test(hidden_columns_take_no_room),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
