/* Fuzz target: a store that someone else has written. The input is text, a line for each change made to a small store
 * of everything: "TABLE COLUMN ROW VALUE", as in "steps end_ns 3 -4294967296", "runs workspace 1 'max'" or "results
 * loss 1 NULL"; ROW counts from 1, 0 means all. Past SQLite's own CHECKs, as into a file of an older snsim. Whatever
 * stands there, reading ends in an error or in numbers that everything behind it - tables, JSON, pictures, comparison,
 * simulating again - can live with.
 *
 * Not changed: names of networks and grids, which would be opened as files. */
#include "tests/fuzz/fuzz.h"

#include "cli/frame/json.h"
#include "cli/frame/report.h"
#include "plots/page/page.h"
#include "plots/plot.h"
#include "sim/capacity/compare.h"
#include "sim/sweep/replay.h"
#include "tests/db/stored_answers.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 200, MOST_LINES = 40, MOST_BYTES = 1 << 20 };

/* Not assert(): the fuzzer must see it in every build. */
static void require(int truth) {
  if (!truth) abort();
}

/* ---- changes ---- */

static bool is_word(const char *text) {
  for (; *text; text++)
    if (!isalnum((unsigned char)*text) && *text != '_') return false;
  return true;
}

static bool may_change(const char *table, const char *column) {
  bool known = false;
  for (int t = 0; sn__every_table[t]; t++) {
    if (strcmp(sn__every_table[t]->name, table) != 0) continue;
    for (unsigned c = 0; c < sn__every_table[t]->n_columns; c++)
      known = known || strcmp(sn__every_table[t]->columns[c].name, column) == 0;
  }
  return known && !(strcmp(column, "net") == 0 && strcmp(table, "runs") == 0);
}

/* A value that SQL reads back as itself: a number, NULL or a text. */
static void print_value(char *out, size_t room, const char *text) {
  char *end;
  double number = strtod(text, &end);
  if (*text && !*end && number == number)
    snprintf(out, room, "%s", strpbrk(text, "xXnN") ? "9e999" : text);
  else if (strcmp(text, "NULL") == 0)
    snprintf(out, room, "NULL");
  else
    sqlite3_snprintf((int)room, out, "%Q", text);
}

static void change(sn_store *store, const char *line) {
  char table[LINE], column[LINE], text[LINE], value[3 * LINE], sql[12 * LINE];
  long row;
  if (sscanf(line, "%199s %199s %ld %199s", table, column, &row, text) != 4) return;
  if (!is_word(table) || !is_word(column) || !may_change(table, column)) return;
  print_value(value, sizeof value, text);
  if (row == 0)
    snprintf(sql, sizeof sql, "UPDATE %s SET %s = %s", table, column, value);
  else /* tables without row ids have keys of several columns; any order will do */
    snprintf(sql, sizeof sql,
             "WITH n AS (SELECT row_number() OVER () AS at, * FROM %s) UPDATE %s SET %s = %s WHERE %s IN"
             " (SELECT %s FROM n WHERE at = %ld)",
             table, table, column, value, column, column, row);
  sqlite3_exec(store->db, sql, NULL, NULL, NULL); /* what is not even SQL changes nothing */
}

static void change_all(sn_store *store, const uint8_t *data, size_t size) {
  char line[LINE];
  size_t used = 0;
  int lines = 0;
  sqlite3_exec(store->db, "PRAGMA ignore_check_constraints = ON; PRAGMA foreign_keys = OFF", NULL, NULL, NULL);
  for (size_t i = 0; i <= size && lines < MOST_LINES; i++) {
    bool ends = i == size || data[i] == '\n';
    if (!ends && used + 1 < sizeof line && data[i]) line[used++] = (char)data[i];
    if (!ends) continue;
    line[used] = '\0';
    change(store, line);
    used = 0;
    lines++;
  }
}

/* ---- readers ---- */

static void require_answer(const void *made, const sn_err *err) {
  require((made != NULL) == (err->code == SN_OK) && err->code != SN_BUG);
}

static void draw(const sn_run *run, sn_plot_kind kind, FILE *out) {
  sn_err err = SN_ERR_INIT;
  const sn_plot_options options = {.kind = kind, .terminal = out, .columns = 80, .rows = 24};
  sn_plot_runs(&run, 1, &options, &err);
  require(err.code != SN_BUG);
}

static void compare(const sn_run *run) {
  sn_err err = SN_ERR_INIT;
  uint32_t count;
  sn_peak_change peaks;
  sn_compare_pair *pairs = sn_compare_runs(run, run, run->arena, &count, &err);
  require_answer(pairs, &err);
  if (run->n_results > 1 && run->results[0].peak && run->results[1].peak)
    require(sn_compare_peaks(&run->results[0], &run->results[1], run->arena, &peaks, &err) == SN_OK);
}

static void replay(const sn_run *run, FILE *out) {
  sn_err err = SN_ERR_INIT;
  sn_replay *again = sn_replay_open(run, NULL, NULL, NULL, &err);
  require_answer(again, &err);
  for (uint32_t i = 0; again && i < run->n_results; i++) {
    sn_err own = SN_ERR_INIT;
    sn_timeline *timeline = sn_replay_timeline(again, &run->results[i], &own);
    require_answer(timeline, &own);
    sn_page_entry entry = {&run->results[i], timeline};
    if (timeline) sn_page_write(run, &entry, 1, "advice", out, &own);
    require(own.code != SN_BUG);
    sn_timeline_free(timeline);
  }
  sn_replay_free(again);
}

static void use_run(sn_store *store, FILE *out) {
  sn_err err = SN_ERR_INIT, other = SN_ERR_INIT;
  sn_out plain = {.stream = out};
  sn_run *run = sn_store_get(store, 0, &err);
  require_answer(run, &err);
  if (!run) return;
  const sn_report_wish wish = {.steps = true, .explain = run->n_results > 0 && run->results[0].peak};
  sn_report_run(run, wish, &plain, &other);
  sn_json_write_run(run, true, true, out, &other);
  require(other.code != SN_BUG);
  draw(run, SN_PLOT_BREAKDOWN, out);
  compare(run);
  replay(run, out);
  sn_run_free(run);
}

static void use_sweep(sn_store *store, FILE *out) {
  sn_err err = SN_ERR_INIT;
  sn_sweep *sweep = sn_sweep_get(store, 0, &err);
  require_answer(sweep, &err);
  if (sweep) sn_page_write_sweep(sweep, out, &err);
  require(err.code != SN_BUG);
  sn_sweep_free(sweep);
}

/* Simulates with the times that the store has. */
static sn_status use_calibration(void *unused, const sn_calibration *c, sn_err *err) {
  sn_options options = SN_OPTIONS_INIT;
  sn_strategy strategy;
  (void)unused;
  sn_err own = SN_ERR_INIT;
  options.calibration = c;
  sn_net *net = sn_net_load("lenet", 4, 0, &own);
  sn_strategy_parse("superneurons", &strategy, &own);
  sn_run *run = net ? sn_simulate("lenet", net, &c->profile, &strategy, 1, &options, &own) : NULL;
  require_answer(run, &own);
  require(!run || run->results[0].iteration_ns >= 0);
  sn_run_free(run);
  sn_net_free(net);
  return err->code;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  sn_err err = SN_ERR_INIT;
  char *text = NULL;
  size_t bytes = 0;
  sn_store *store = open_answers(&err);
  FILE *out = open_memstream(&text, &bytes);
  require(store && out && err.code == SN_OK);
  change_all(store, data, size);
  sn_store_list_free(sn_store_runs(store, NULL, UINT32_MAX, &err));
  require(err.code == SN_OK || err.code == SN_BAD_INPUT);
  use_run(store, out);
  use_sweep(store, out);
  err = (sn_err)SN_ERR_INIT;
  sn_store_each_calibration(store, use_calibration, NULL, &err);
  require(err.code == SN_OK || err.code == SN_BAD_INPUT);
  sn_store_close(store);
  require(fclose(out) == 0 && bytes < MOST_BYTES); /* no number makes an answer long */
  free(text);
  return 0;
}
