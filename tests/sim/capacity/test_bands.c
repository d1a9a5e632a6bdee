/* The bands of the screen are those of docs/truth.md, docs/measured/record.md and docs/measured/parallel.md. */
#include "sim/capacity/bands.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <math.h>
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

/* The last cell of a row of so many cells; NULL: the line is none. */
static const char *last_cell(const char *line, int cells) {
  const char *last = NULL;
  int bars = 0;
  for (const char *at = line; *at && *at != '\n'; at++)
    if (*at == '|' && ++bars == cells) last = at + 2;
  return strncmp(line, "| ", 2) == 0 && bars == cells + 1 ? last : NULL;
}

/* "0", "-" where snsim is not asked, "+1,024 (+0.0014 %)". */
static void shared_are_those_of_the_document(void **state) {
  char *text = document(SNSIM_SOURCE_DIR "/docs/measured/parallel.md");
  int rows = 0, near = 0;
  double worst = 0;
  (void)state;
  for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
    const char *cell = last_cell(line, 11);
    if (!cell || !strchr("0+-", *cell) || strncmp(cell, "- |", 3) == 0) continue;
    double off = *cell == '0' ? 0 : fabs(strtod(strchr(cell, '(') + 1, NULL));
    rows++;
    near += off <= SN_BAND_SHARED_WITHIN;
    worst = off > worst ? off : worst;
  }
  assert_int_equal(rows, SN_BAND_SHARED);
  assert_int_equal(near, SN_BAND_SHARED_NEAR);
  assert_true(fabs(worst - SN_BAND_SHARED_WORST) < 0.0005);
  free(text);
}

/* Cells of "Recordings", each a total that is equal; an empty one was not asked. */
static void shared_recordings_are_those_of_the_document(void **state) {
  char *text = document(SNSIM_SOURCE_DIR "/docs/measured/parallel.md");
  const char *line = strstr(text, "| network, batch x tokens | mesh | float32 |");
  int totals = 0;
  (void)state;
  assert_non_null(line);
  for (int row = 0; *line == '|'; row++, line = strchr(line, '\n') + 1)
    for (const char *at = line; row > 1 && *at != '\n'; at++)
      totals += strncmp(at, "| ", 2) == 0 && strspn(at + 2, "0123456789,") > 5 &&
                at[2 + strspn(at + 2, "0123456789,")] == ' ';
  assert_int_equal(totals, SN_BAND_SHARED_RECORDINGS);
  free(text);
}

static sn_timed timed(const char *card, const char *strategy, sn_precision precision) {
  sn_timed t = {.precision = precision};
  sn_err err = SN_ERR_INIT;
  if (card) sn_timed_set_card(&t, card);
  assert_int_equal(sn_strategy_parse(strategy, &t.strategy, &err), SN_OK);
  return t;
}

static void check_time(sn_timed t, const char *expected) {
  char text[SN_BAND_TEXT];
  sn_band_of_time(&t, text);
  assert_string_equal(text, expected);
  assert_true((sn_band_find(&t) != NULL) == (strstr(text, "within") != NULL));
}

static void times_say_what_was_measured(void **state) {
  (void)state;
  sn_timed t = timed("rtx3090", "pytorch", SN_AMP_FP16);
  check_time(t, "times within 10 % on 9 of 10 of 20 networks");
  check_time(timed("rtx3090", "pytorch+recompute=units:3", SN_AMP_BF16), "times within 10 % on 9 of 10 of 20 networks");
  t.recorded = true;
  check_time(t, "times within 15 % on 9 of 10 of 263 networks");
  t = timed("rtx4090", "pytorch", SN_AMP_FP16);
  t.inference = true;
  check_time(t, "times within 21 % on 9 of 10 of 38 networks");
  t.recorded = true;
  check_time(t, "times within 19 % on 9 of 10 of 389 networks");
  t.calibrated = true;
  check_time(t, "times measured on this machine");
}

static void what_nobody_measured_says_so(void **state) {
  (void)state;
  check_time(timed("rtx4090", "pytorch", SN_FP32), "times: no measurement of this kind, training on this card");
  check_time(timed("mi300x", "pytorch", SN_AMP_FP16), "times: no measurement of this kind, training on this card");
  check_time(timed("a card of mine", "pytorch", SN_AMP_FP16),
             "times: no measurement of this kind, training on this card");
  check_time(timed("mi300x", "pytorch", SN_FP32), "times: no measurement of this kind, training on this card");
  check_time(timed("rtx3090", "pytorch", SN_FP32), "times: no measurement of this kind, in fp32");
  check_time(timed("rtx3090", "pytorch+offload", SN_AMP_FP16),
             "times: no measurement of this kind, with copies to the host");
  check_time(timed("rtx3090", "liveness+recompute=dtr", SN_FP32),
             "times: no measurement of this kind, in the runtime of SuperNeurons");
  check_time(timed("rtx3090", "singa-layer", SN_FP32), "times: no measurement of this kind, in the runtime of SINGA");
  sn_timed t = timed("rtx3090", "pytorch", SN_AMP_FP16);
  t.tokens = true;
  check_time(t, "times: no measurement of this kind, of networks of tokens");
  t = timed("k40c", "pytorch", SN_FP32);
  t.inference = true;
  check_time(t, "times: no measurement of this kind, inference on this card");
}

/* By what was measured of a card left out, which is no narrower than the bands of cards with rows. */
static void a_card_without_rows_is_as_one_left_out(void **state) {
  (void)state;
  sn_timed t = timed("rtx4090", "pytorch", SN_AMP_FP16);
  check_time(t, "times: no measurement of training on this card (a card left out: within 23 %)");
  t = timed("h100_sxm", "pytorch", SN_AMP_BF16);
  t.inference = t.recorded = true;
  check_time(t, "times: no measurement of inference on this card (a card left out: within 23 %)");
  assert_true(sn_band_is_of_another(sn_band_find(&t)));
  for (int kind = 0; kind < 4; kind++) {
    t.inference = kind % 2;
    t.recorded = kind / 2;
    sn_timed own = t;
    own.card = "rtx3090";
    assert_false(sn_band_is_of_another(sn_band_find(&own)));
    assert_true(sn_band_share(sn_band_find(&t)) > sn_band_share(sn_band_find(&own)));
  }
}

/* As it was measured: 16.7 % are 0.167, and no 0.16699999999999998. */
static void shares_have_the_digits_of_the_table(void **state) {
  uint32_t count;
  const sn_band *bands = sn_bands(&count);
  char text[32];
  (void)state;
  assert_true(sn_band_share(NULL) == 0);
  for (uint32_t i = 1; i < count; i++) {
    snprintf(text, sizeof text, "%.3f", bands[i].nine_of_ten / 100);
    assert_true(sn_band_share(&bands[i]) == strtod(text, NULL));
  }
}

/* Of any card it is the widest that was measured of the kind. */
static void any_card_has_the_widest_band(void **state) {
  (void)state;
  sn_timed t = timed(NULL, "pytorch", SN_AMP_FP16);
  t.inference = t.recorded = true;
  assert_true(sn_band_is_of_another(sn_band_find(&t)));
}

static void rows_that_differ_are_counted(void **state) {
  char text[SN_BANDS_TEXT];
  (void)state;
  const sn_timed plain = timed("rtx3090", "pytorch", SN_AMP_FP16),
                 sent = timed("rtx3090", "pytorch+offload", SN_AMP_FP16);
  assert_string_equal(sn_band_of_times(NULL, 0, text), "");
  assert_string_equal(sn_band_of_times((sn_timed[]){plain, plain}, 2, text),
                      "times within 10 % on 9 of 10 of 20 networks");
  assert_string_equal(sn_band_of_times((sn_timed[]){plain, sent, plain}, 3, text),
                      "times within 10 % on 9 of 10 of 20 networks (2 of 3 rows); "
                      "times: no measurement of this kind, with copies to the host (1 of 3 rows)");
  sn_timed many[12]; /* more kinds than are told apart */
  for (int i = 0; i < 12; i++) many[i] = timed("rtx3090", "pytorch", (sn_precision)(i % SN_PRECISION_COUNT));
  assert_true(strlen(sn_band_of_times(many, 12, text)) < SN_BANDS_TEXT);
}

/* 10 and 14 overlap within a fifth, 10 and 17 do not; a narrow band is told from its neighbours, a wide one is not. */
static void bands_that_overlap_are_alike(void **state) {
  sn_ranked rows[] = {{.value = 10, .within = 0.2},  {.value = 14, .within = 0.2},    {.value = 17, .within = 0.2},
                      {.value = 21, .within = 0.01}, {.value = 21.1, .within = 0.01}, {.value = 90, .within = 0}};
  static const uint32_t places[][2] = {{1, 2}, {1, 2}, {3, 4}, {3, 4}, {5, 5}, {6, 6}};
  (void)state;
  sn_band_rank(rows, 0);
  assert_int_equal(rows[0].first, 0);
  rows[3].value = 20.6; /* 17 (1 + 0.2) is 20.4 */
  sn_band_rank(rows, 6);
  for (int i = 0; i < 6; i++) {
    assert_int_equal(rows[i].first, places[i][0]);
    assert_int_equal(rows[i].last, places[i][1]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(bands_are_those_of_the_document),
                                     cmocka_unit_test(recordings_are_those_of_the_document),
                                     cmocka_unit_test(shared_are_those_of_the_document),
                                     cmocka_unit_test(shared_recordings_are_those_of_the_document),
                                     cmocka_unit_test(times_say_what_was_measured),
                                     cmocka_unit_test(what_nobody_measured_says_so),
                                     cmocka_unit_test(a_card_without_rows_is_as_one_left_out),
                                     cmocka_unit_test(shares_have_the_digits_of_the_table),
                                     cmocka_unit_test(any_card_has_the_widest_band),
                                     cmocka_unit_test(rows_that_differ_are_counted),
                                     cmocka_unit_test(bands_that_overlap_are_alike)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
