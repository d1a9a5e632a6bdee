/* Charts: every group, series and mark is in the picture, missing numbers are not, a failure leaves no file. */
#include "plots/chart.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const sn_chart_bar bars[] = {
    {"alexnet, batch 8", "caffe", 100, 80},
    {"alexnet, batch 8", "torch", 120, NAN},
    {"vgg16", "caffe", 10, 8},
    {"vgg16", "torch", NAN, 9},
};
enum { BARS = sizeof bars / sizeof bars[0] };

static const sn_chart sample = {
    .title = "a title", .y_label = "images", .mark_label = "paper", .bars = bars, .n_bars = BARS};

static int setup(void **state) {
  static const char pattern[] = "/tmp/test_chart.XXXXXX";
  char *folder = strdup(pattern);
  *state = folder;
  return folder && mkdtemp(folder) ? 0 : -1;
}

static int teardown(void **state) {
  char command[64];
  snprintf(command, sizeof command, "rm -rf '%s'", (char *)*state);
  free(*state);
  return system(command);
}

/* Draws into `name` of the folder; the picture's bytes, for the caller to free, or NULL where there is no file. */
static char *draw(const char *folder, const char *name, const sn_chart *chart, size_t *bytes, sn_err *err) {
  enum { ROOM = 1 << 20 };
  char path[128];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  sn_chart_draw(chart, path, err);
  FILE *in = fopen(path, "rb");
  if (!in) return NULL;
  char *data = calloc(1, ROOM);
  *bytes = fread(data, 1, ROOM - 1, in);
  fclose(in);
  unlink(path);
  return data;
}

static char *draw_svg(void **state, const sn_chart *chart) {
  sn_err err = SN_ERR_INIT;
  size_t bytes;
  char *text = draw(*state, "c.svg", chart, &bytes, &err);
  if (err.code != SN_OK) fail_msg("%s", err.text);
  return text;
}

static unsigned occurrences(const char *text, const char *word) {
  unsigned n = 0;
  for (const char *at = strstr(text, word); at; at = strstr(at + 1, word)) n++;
  return n;
}

/* A filled polygon a bar, and one a series in the legend. */
static unsigned boxes(const char *svg) {
  return occurrences(svg, "<polygon fill");
}

static void everything_is_there(void **state) {
  static const char *const words[] = {"a title", "images", "paper", "alexnet", "batch 8", "vgg16", "caffe", "torch"};
  char *svg = draw_svg(state, &sample);
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
    if (!strstr(svg, words[i])) fail_msg("%s is missing", words[i]);
  assert_int_equal(boxes(svg), 3 + 2);
  free(svg);
}

static void without_marks(void **state) {
  sn_chart_bar plain[BARS];
  sn_chart chart = sample;
  memcpy(plain, bars, sizeof plain);
  for (int i = 0; i < BARS; i++) plain[i].mark = NAN;
  chart.bars = plain;
  char *svg = draw_svg(state, &chart);
  assert_int_equal(occurrences(svg, "paper"), 0);
  free(svg);
}

/* On an axis of powers of ten the bars are cut at the power below the smallest number: 8, a mark. */
static void logarithm(void **state) {
  sn_chart chart = sample;
  chart.log_scale = true;
  char *svg = draw_svg(state, &chart);
  assert_int_equal(occurrences(svg, "> 1<"), 1);
  assert_int_equal(occurrences(svg, "> 100<"), 1);
  assert_int_equal(occurrences(svg, "> 0<"), 0);
  assert_int_equal(boxes(svg), 0); /* dots */
  free(svg);
}

static void missing_bars_say_why(void **state) {
  sn_chart chart = sample;
  char *svg = draw_svg(state, &chart);
  assert_int_equal(occurrences(svg, "did not fit"), 0);
  free(svg);
  chart.missing_label = "did not fit";
  svg = draw_svg(state, &chart);
  assert_int_equal(occurrences(svg, "did not fit"), 1);
  free(svg);
}

/* An operator has the colour that it has everywhere. */
static void operators_keep_their_colours(void **state) {
  static const sn_chart_bar shares[] = {{"net", "FC", 10, NAN}, {"net", "CONV", 90, NAN}};
  sn_chart chart = {.title = "t", .y_label = "%", .mark_label = "m", .stacked = true, .bars = shares, .n_bars = 2};
  char *svg = draw_svg(state, &chart);
  assert_non_null(strstr(svg, "rgb(  0, 114, 178)"));
  assert_non_null(strstr(svg, "rgb(213,  94,   0)"));
  free(svg);
}

/* More series than colours: all of them different. */
static void stack(void **state) {
  enum { SERIES = 8 };
  static const char *const names[SERIES] = {"s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7"};
  sn_chart_bar shares[SERIES];
  for (int i = 0; i < SERIES; i++) shares[i] = (sn_chart_bar){"net", names[i], 100.0 / SERIES, NAN};
  sn_chart chart = {.title = "t", .y_label = "%", .mark_label = "m", .stacked = true, .bars = shares, .n_bars = SERIES};
  char *svg = draw_svg(state, &chart);
  assert_int_equal(boxes(svg), 2 * SERIES);
  assert_int_equal(occurrences(svg, "fill-opacity"), 0); /* nothing shines through */
  free(svg);
}

static void forms(void **state) {
  static const struct {
    const char *name, *begin;
  } list[] = {{"c.png", "\x89PNG"}, {"c.pdf", "%PDF"}, {"c.SVG", "<?xml"}};
  for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
    sn_err err = SN_ERR_INIT;
    size_t bytes[2];
    char *one = draw(*state, list[i].name, &sample, &bytes[0], &err);
    char *other = draw(*state, list[i].name, &sample, &bytes[1], &err);
    assert_int_equal(err.code, SN_OK);
    assert_memory_equal(one, list[i].begin, strlen(list[i].begin));
    assert_int_equal(bytes[0], bytes[1]);
    assert_memory_equal(one, other, bytes[0]);
    free(one);
    free(other);
  }
}

static void refusals(void **state) {
  sn_err err = SN_ERR_INIT, empty = SN_ERR_INIT, missing = SN_ERR_INIT;
  sn_chart nothing = sample;
  size_t bytes;
  assert_null(draw(*state, "c.gif", &sample, &bytes, &err));
  assert_int_equal(err.code, SN_BAD_USAGE);
  assert_non_null(strstr(err.text, "it must be .png, .svg or .pdf"));
  nothing.n_bars = 0;
  assert_null(draw(*state, "c.svg", &nothing, &bytes, &empty));
  assert_int_equal(empty.code, SN_BUG);
  char *path = strdup(getenv("PATH"));
  setenv("PATH", *state, 1);
  assert_null(draw(*state, "c.svg", &sample, &bytes, &missing));
  setenv("PATH", path, 1);
  free(path);
  assert_int_equal(missing.code, SN_BAD_DEVICE);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(everything_is_there, setup, teardown),
      cmocka_unit_test_setup_teardown(without_marks, setup, teardown),
      cmocka_unit_test_setup_teardown(logarithm, setup, teardown),
      cmocka_unit_test_setup_teardown(missing_bars_say_why, setup, teardown),
      cmocka_unit_test_setup_teardown(operators_keep_their_colours, setup, teardown),
      cmocka_unit_test_setup_teardown(stack, setup, teardown),
      cmocka_unit_test_setup_teardown(forms, setup, teardown),
      cmocka_unit_test_setup_teardown(refusals, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
