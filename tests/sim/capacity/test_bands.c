/* The bands of the screen are those of docs/truth.md and docs/measured/record.md. */
#include "sim/capacity/bands.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The whole document; the caller frees it. */
static char *document(const char *path) {
  enum { ROOM = 1 << 20 };
  FILE *in = fopen(path, "r");
  char *text = calloc(1, ROOM);
  assert_true(in && text);
  assert_true(fread(text, 1, ROOM - 1, in) > 0);
  assert_int_equal(fclose(in), 0);
  return text;
}

static void bands_are_those_of_the_document(void **state) {
  char *text = document(SNSIM_SOURCE_DIR "/docs/truth.md"), row[200];
  uint32_t count, rows = 0;
  const sn_band *bands = sn_bands(&count);
  (void)state;
  const char *table = strstr(text, "| kind | card | rows |");
  assert_non_null(table);
  for (uint32_t i = 0; i < count; i++) {
    bool bytes = strcmp(bands[i].kind, "live bytes") == 0;
    snprintf(row, sizeof row, "\n| %s | %s | %" PRIu32 " | %.*f %% | %.*f %% |\n", bands[i].kind, bands[i].card,
             bands[i].rows, bytes ? 5 : 1, bands[i].median, bytes ? 5 : 1, bands[i].nine_of_ten);
    if (!strstr(table, row)) fail_msg("docs/truth.md has no row %s", row);
  }
  for (const char *at = table; (at = strstr(at, " % |\n")); at++) rows++;
  assert_int_equal(rows, count);
  free(text);
}

/* Counts the rows of the table at text, whose last column but one is the bytes apart from PyTorch's tracker. */
static void count_recordings(const char *text, int *rows, int *equal) {
  const char *line = strstr(text, "\n|---"); /* under the names of the columns */
  assert_non_null(line);
  for (line = strchr(line + 1, '\n'); line && line[1] == '|'; line = strchr(line + 1, '\n')) {
    const char *bar = strchr(line + 1, '\n');
    assert_non_null(bar);
    for (int bars = 0; bars < 3;) bars += *--bar == '|';
    (*rows)++;
    *equal += strncmp(bar, "| 0 |", 5) == 0;
  }
}

static void recordings_are_those_of_the_document(void **state) {
  char *text = document(SNSIM_SOURCE_DIR "/docs/measured/record.md");
  int tables = 0, rows = 0, equal = 0;
  (void)state;
  for (const char *at = text; (at = strstr(at, "| bytes off | in place |\n")); at++, tables++)
    count_recordings(at, &rows, &equal);
  assert_int_equal(tables, 2);
  assert_int_equal(rows, SN_BAND_RECORDINGS);
  assert_int_equal(equal, SN_BAND_RECORDINGS_EQUAL);
  free(text);
}

static void check_time(const char *card, bool inference, bool calibrated, const char *expected) {
  char text[SN_BAND_TEXT];
  sn_band_of_time(card, inference, calibrated, text);
  assert_string_equal(text, expected);
}

static void times_say_what_was_measured(void **state) {
  (void)state;
  check_time("rtx3090", false, false, "times within 36 % on 9 of 10 of 20 networks");
  check_time("rtx4090", true, false, "times within 32 % on 9 of 10 of 38 networks");
  check_time("rtx4090", false, false, "times are a guess: nobody measured this card training");
  check_time("k40c", true, false, "times are a guess: nobody measured this card");
  check_time("k40c", true, true, "times measured on this machine");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(bands_are_those_of_the_document),
                                     cmocka_unit_test(recordings_are_those_of_the_document),
                                     cmocka_unit_test(times_say_what_was_measured)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
