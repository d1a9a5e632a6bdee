/* The breakdown of operations that run side by side, or again: whatever runs at a moment has an equal part of it. */
#include "base/arena.h"
#include "plots/plot.h"
#include "sim/ask/run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MS INT64_C(1000000)

/* conv1 alone for 10 ms, both for 20, fc1 alone for 10, nothing for 20, an update beside conv1, which runs again, for
 * 20; beside all of that a collective, which no layer computes. */
static const sn_timeline_step steps[] = {{.layer = "conv1", .op = "CONV", .pass = "forward"},
                                         {.layer = "fc1", .op = "FC", .pass = "forward"},
                                         {.layer = "fc1", .op = "FC", .pass = "update"},
                                         {.layer = "norm1", .op = "RMS_NORM", .pass = "forward"}};
static const sn_bar bars[] = {
    {.kind = SN_BAR_COMPUTE, .what = 1, .begin_ns = 0, .end_ns = 30 * MS},
    {.kind = SN_BAR_STALL, .what = 0, .begin_ns = 0, .end_ns = 10 * MS},
    {.kind = SN_BAR_COMPUTE, .what = 2, .begin_ns = 10 * MS, .end_ns = 40 * MS},
    {.kind = SN_BAR_COMPUTE, .what = 1, .begin_ns = 60 * MS, .end_ns = 80 * MS, .rerun = true},
    {.kind = SN_BAR_COMPUTE, .what = 3, .begin_ns = 60 * MS, .end_ns = 80 * MS},
    {.kind = SN_BAR_COMPUTE, .lane = SN_LANE_FSDP, .what = 4, .begin_ns = 0, .end_ns = 80 * MS}};

static sn_timeline *play(void *known, const sn_result *result, sn_err *err) {
  (void)err;
  assert_string_equal(result->strategy, "liveness+corun=path");
  if (!*(bool *)known) return NULL;
  sn_arena *arena = sn_arena_new();
  sn_timeline *t = sn_arena_alloc(arena, 1, sizeof *t);
  *t = (sn_timeline){.n_steps = 4, .n_bars = 6, .steps = steps, .bars = bars, .end_ns = 80 * MS, .arena = arena};
  return t;
}

/* The letters of the bar of time. */
static char *draw(bool known) {
  const sn_step_row rows[] = {{.step = 1, .layer = "conv1", .op = "CONV", .pass = "forward"},
                              {.step = 2, .layer = "fc1", .op = "FC", .pass = "forward"}};
  const sn_peak_row peak = {.tensor = "conv1.y", .bytes = 1 << 20};
  sn_result result = {.strategy = "liveness+corun=path",
                      .source = "sim",
                      .fits = true,
                      .iteration_ns = 80 * MS,
                      .peak_tensor_bytes = 1 << 20,
                      .steps = rows,
                      .n_steps = 2,
                      .peak = &peak,
                      .n_peak = 1,
                      .corun = {.policy = "path", .sharing = "fenced", .interval = "4"}};
  const sn_run run = {.conditions.precision = "fp32",
                      .conditions.freeze = "",
                      .conditions.parallel = "",
                      .conditions.cluster = "",
                      .conditions.host_us = "",
                      .net = "mine",
                      .net_name = "mine",
                      .gpu = "knl7250",
                      .device = "",
                      .results = &result,
                      .n_results = 1};
  const sn_run *runs = &run;
  sn_err err = SN_ERR_INIT;
  char *text = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&text, &size);
  sn_plot_runs(
      &runs, 1,
      &(sn_plot_options){.kind = SN_PLOT_BREAKDOWN, .terminal = out, .columns = 124, .play = play, .player = &known},
      &err);
  fclose(out);
  if (err.code != SN_OK) fail_msg("%s", err.text);
  const char *row = strstr(text, "80.00 ");
  assert_non_null(row);
  char *letters = strndup(row + 6, strcspn(row + 6, "\n"));
  free(text);
  return letters;
}

static int count(const char *letters, char letter) {
  int n = 0;
  for (; *letters; letters++) n += *letters == letter;
  return n;
}

static void time_is_shared(void **unused) {
  (void)unused;
  char *letters = draw(true);
  assert_int_equal(strlen(letters), 80); /* a letter is a millisecond */
  assert_int_equal(count(letters, 'C'), 10 + 10);
  assert_int_equal(count(letters, 'r'), 10);
  assert_int_equal(count(letters, 'F'), 10 + 10);
  assert_int_equal(count(letters, '~'), 20 + 10);
  free(letters);
}

static void what_nobody_knows_is_not_split(void **unused) {
  (void)unused;
  char *letters = draw(false);
  assert_int_equal(count(letters, '='), 80);
  free(letters);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(time_is_shared),
                                     cmocka_unit_test(what_nobody_knows_is_not_split)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
