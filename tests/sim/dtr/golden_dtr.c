/* DTR's published logs give the figures of DTR's own simulator, wherever that came to an end and where it failed.
 *
 *   SN_DTR_LOGS   a folder with the logs, unpacked
 *
 * Neither logs nor figures are of this project: both are in ../shared/data/dtr, and skipped where that is not there. */
#include "sim/dtr/dtr_replay.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <glob.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PATH = 1024, LOGS = 8 };

static const char data[] = SNSIM_SOURCE_DIR "/../shared/data/dtr";

typedef struct log_of {
  const char *model, *prefix;
  sn_dtr_replay *replay;
} log_of;

static log_of logs[LOGS] = {
    {.model = "ResNet-32 (56)", .prefix = "resnet32"},
    {.model = "U-Net (6)", .prefix = "unet"},
    {.model = "Transformer (10)", .prefix = "transformer"},
    {.model = "-", .prefix = "inceptionv4"},
    {.model = "-", .prefix = "tv_densenet121"},
    {.model = "-", .prefix = "treelstm"},
    {.model = "-", .prefix = "lstm"},
    {.model = "-", .prefix = "unroll_gan"},
};

/* The folder with the logs, unpacked where they are packed; skips the test where there are none. */
static void find_logs(char folder[PATH]) {
  const char *given = getenv("SN_DTR_LOGS");
  char command[3 * PATH];
  snprintf(folder, PATH, "%s", given ? given : "golden_dtr_logs/logs");
  if (given) return;
  snprintf(command, sizeof command, "test -e %s/logs.zip && python3 -m zipfile -e %s/logs.zip golden_dtr_logs", data,
           data);
  if (system(command) != 0) skip();
}

static const char *path_of(const char *folder, const char *prefix, char path[PATH]) {
  char pattern[PATH + 80];
  glob_t found;
  snprintf(pattern, sizeof pattern, "%s/%s-*.log", folder, prefix);
  if (glob(pattern, 0, NULL, &found) != 0) fail_msg("%s: there is no such log", pattern);
  snprintf(path, PATH, "%s", found.gl_pathv[0]);
  globfree(&found);
  return path;
}

static double cpu_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Every heuristic under every budget. */
static void replay_all(void) {
  char folder[PATH], path[PATH];
  sn_dtr_heuristic heuristics[SN_DTR_HEURISTICS];
  sn_dtr_budget budgets[SN_DTR_BUDGETS];
  if (logs[0].replay) return;
  find_logs(folder);
  for (sn_dtr_heuristic h = 0; h < SN_DTR_HEURISTICS; h++) heuristics[h] = h;
  for (uint32_t b = 0; b < SN_DTR_BUDGETS; b++) budgets[b] = sn_dtr_usual_budget(b);
  for (unsigned i = 0; i < LOGS; i++) {
    sn_err err = SN_ERR_INIT;
    double begin = cpu_seconds();
    path_of(folder, logs[i].prefix, path);
    logs[i].replay = sn_dtr_replay_log(path, heuristics, SN_DTR_HEURISTICS, budgets, SN_DTR_BUDGETS, &err);
    if (!logs[i].replay) fail_msg("%s", err.text);
    print_message("%-16s %u runs in %.2f s\n", logs[i].prefix, logs[i].replay->n_rows, cpu_seconds() - begin);
  }
}

/* ---- DTR's figures ---- */

static const char *const their_names[SN_DTR_HEURISTICS] = {"LRU", "LargestStorage", "DTRLocal", "MSPS",
                                                           "DTR", "DTREqClass"};

static const sn_dtr_row *row_of(const char *model, const char *heuristic, double ratio) {
  for (unsigned i = 0; i < LOGS; i++)
    for (uint32_t r = 0; strcmp(logs[i].model, model) == 0 && r < logs[i].replay->n_rows; r++) {
      const sn_dtr_row *row = &logs[i].replay->rows[r];
      if (strcmp(their_names[row->heuristic], heuristic) == 0 && fabs(row->ratio - ratio) < 1e-9) return row;
    }
  fail_msg("%s, %s, %g: no such run", model, heuristic, ratio);
  return NULL;
}

/* Figures are compared also where the run failed: it stops where theirs did. */
static void check_line(const char *line) {
  char model[40], heuristic[40], oom[8], limit[8];
  double ratio, overhead;
  uint64_t budget, peak, evaluations;
  int n =
      sscanf(line, "%39[^,],%*[^,],%*[^,],%*[^,],%*[^,],%39[^,],%lf,%" SCNu64 ",%lf,%7[^,],%7[^,],%" SCNu64 ",%" SCNu64,
             model, heuristic, &ratio, &budget, &overhead, oom, limit, &peak, &evaluations);
  if (n != 9) fail_msg("%s: cannot be read", line);
  const sn_dtr_row *row = row_of(model, heuristic, ratio);
  sn_dtr_status status = strcmp(oom, "True") == 0     ? SN_DTR_OUT_OF_MEMORY
                         : strcmp(limit, "True") == 0 ? SN_DTR_THRASH
                                                      : SN_DTR_OK;
  bool same = row->budget_bytes == budget && row->answer.peak_bytes == peak && row->answer.evaluations == evaluations &&
              fabs(row->overhead - overhead) < 1e-4 && row->answer.status == status;
  if (!same)
    fail_msg("%s: here %" PRIu64 " bytes, overhead %.4f, %" PRIu64 " evaluations, %s", line, row->answer.peak_bytes,
             row->overhead, row->answer.evaluations, sn_dtr_status_name(row->answer.status));
}

static void figures_are_theirs(void **state) {
  (void)state;
  char path[PATH], line[400];
  unsigned lines = 0;
  replay_all();
  snprintf(path, sizeof path, "%s/golden.csv", data);
  FILE *in = fopen(path, "r");
  if (!in) skip();
  for (; fgets(line, sizeof line, in); lines++) {
    line[strcspn(line, "\r\n")] = '\0';
    if (lines > 0) check_line(line);
  }
  fclose(in);
  print_message("%u runs have DTR's figures\n", lines - 1);
  assert_int_equal(lines, 121);
}

/* ---- what holds of any run ---- */

static void runs_keep_their_budgets(void **state) {
  (void)state;
  replay_all();
  for (unsigned i = 0; i < LOGS; i++)
    for (uint32_t r = 0; r < logs[i].replay->n_rows; r++) {
      const sn_dtr_row *row = &logs[i].replay->rows[r];
      assert_true(row->answer.peak_bytes <= row->budget_bytes);
      if (row->answer.status != SN_DTR_THRASH) assert_true(row->overhead < 2.001);
      if (row->answer.status == SN_DTR_OK) assert_true(row->overhead >= 1);
    }
}

static int free_all(void **state) {
  (void)state;
  for (unsigned i = 0; i < LOGS; i++) sn_dtr_replay_free(logs[i].replay);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(figures_are_theirs),
      cmocka_unit_test(runs_keep_their_budgets),
  };
  return cmocka_run_group_tests(tests, NULL, free_all);
}
