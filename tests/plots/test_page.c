/* Pages and trace events: what is written is valid and whole whatever the names are, says what the timeline or the
 * sweep's rows say, and a failing write is told. Pages in a browser are those of tests/report/. */
#include "base/arena.h"
#include "plots/page/page.h"
#include "plots/page/trace_events.h"
#include "sim/ask/simulate.h"
#include "tests/support/pipeline.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdlib.h>

static const char evil[] = "</script><script>alert(1)</script>&\"'\\\u2028\xff";

typedef struct made {
  sn_net *net;
  sn_run *run;
  sn_page_entry entries[2];
} made;

static made make_on(const char *spec, const char *gpu_name, const char *first, const char *second) {
  sn_err err = SN_ERR_INIT;
  sn_strategy strategies[] = {parse_strategy(first), parse_strategy(second)};
  sn_device gpu = load_gpu(gpu_name);
  sn_options options = SN_OPTIONS_INIT;
  options.want_peak = true;
  made m = {.net = load_net(spec, 8)};
  m.run = sn_simulate(spec, m.net, &gpu, strategies, 2, &options, &err);
  for (uint32_t i = 0; i < 2; i++)
    m.entries[i] =
        (sn_page_entry){&m.run->results[i], sn_simulate_timeline(m.net, &gpu, strategies[i], &options, &err)};
  must(&err);
  return m;
}

static made make(const char *spec) {
  return make_on(spec, "k40c", "liveness+offload+recompute=memory", "baseline");
}

static made make_corun(const char *spec) {
  return make_on(spec, "knl7250", "liveness+corun=path", "liveness+recompute=speed+corun=s1234");
}

static void drop(made *m) {
  for (uint32_t i = 0; i < 2; i++) sn_timeline_free((sn_timeline *)m->entries[i].timeline);
  sn_run_free(m->run);
  sn_net_free(m->net);
}

static char *write_page(const made *m) {
  sn_err err = SN_ERR_INIT;
  char *text = NULL;
  size_t bytes = 0;
  FILE *out = open_memstream(&text, &bytes);
  sn_page_write(m->run, m->entries, 2, NULL, out, &err);
  must(&err);
  assert_int_equal(fclose(out), 0);
  assert_int_equal(strlen(text), bytes);
  return text;
}

static unsigned count(const char *text, const char *part) {
  unsigned n = 0;
  for (; (text = strstr(text, part)) != NULL; text++) n++;
  return n;
}

/* The page's data, parsed. */
static cJSON *data_of(const char *page) {
  const char *begin = strstr(page, "type=\"application/json\">");
  assert_non_null(begin);
  begin = strchr(begin, '>') + 1;
  const char *end = strstr(begin, "</script>");
  assert_non_null(end);
  for (const char *c = begin; c < end; c++) assert_true(*c != '<' && *c != '>' && *c != '&');
  cJSON *data = cJSON_ParseWithLength(begin, (size_t)(end - begin));
  assert_non_null(data);
  return data;
}

static const cJSON *get(const cJSON *object, const char *key) {
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
  if (!item) fail_msg("no \"%s\"", key);
  return item;
}

static double sum(const cJSON *array) {
  double total = 0;
  const cJSON *item;
  cJSON_ArrayForEach(item, array) total += item->valuedouble;
  return total;
}

static void check_result(const cJSON *data, int i, const sn_page_entry *entry) {
  const sn_timeline *t = entry->timeline;
  const cJSON *result = cJSON_GetArrayItem(get(data, "results"), i);
  const cJSON *graph = cJSON_GetArrayItem(get(data, "graphs"), get(result, "graph")->valueint);
  assert_int_equal(cJSON_GetArraySize(get(graph, "tensors")), t->n_tensors);
  assert_int_equal(cJSON_GetArraySize(get(graph, "part")), t->n_tensors);
  assert_int_equal(cJSON_GetArraySize(get(graph, "layers")), t->n_steps);
  assert_int_equal(get(graph, "trained")->valueint, t->n_trained);
  assert_string_equal(get(result, "strategy")->valuestring, entry->result->strategy);
  assert_true(get(result, "device")->valuedouble == (double)entry->result->peak_device_bytes);
  const cJSON *steps = get(result, "steps"), *bars = get(result, "bars"), *rects = get(result, "rects");
  const cJSON *columns = get(result, "columns");
  assert_int_equal(cJSON_GetArraySize(get(columns, "count")), t->n_columns);
  assert_true(sum(get(columns, "count")) == t->n_instrs);
  assert_int_equal(cJSON_GetArraySize(get(steps, "dfullest")), t->n_steps);
  assert_int_equal(cJSON_GetArraySize(get(bars, "code")), t->n_bars);
  assert_int_equal(cJSON_GetArraySize(get(rects, "dfrom")), t->n_rects);
  assert_int_equal(cJSON_GetArraySize(get(result, "places")), t->n_instrs);
  assert_true(sum(get(get(result, "levels"), "dns")) == (double)t->levels[t->n_levels - 1].ns);
  double ns = 0;
  for (uint32_t b = 0; b < t->n_bars; b++) ns += (double)(t->bars[b].end_ns - t->bars[b].begin_ns);
  assert_true(sum(get(bars, "ns")) == ns);
  assert_int_equal(cJSON_GetArraySize(get(result, "peak_rows")), entry->result->n_peak);
}

/* Part and cores of each operation. */
static void check_teams(const cJSON *result, const sn_timeline *t) {
  static const char *const names[] = {"part", "slot", "first", "cores"};
  const cJSON *teams = get(result, "teams"), *items[4];
  for (int k = 0; k < 4; k++) {
    items[k] = get(teams, names[k])->child;
    assert_int_equal(cJSON_GetArraySize(get(teams, names[k])), t->n_bars);
  }
  for (uint32_t b = 0; b < t->n_bars; b++) {
    const sn_bar *bar = &t->bars[b];
    assert_true(items[0]->valueint == bar->part && items[1]->valueint == bar->team.slot);
    assert_true(items[2]->valueint == bar->team.first && items[3]->valueint == bar->team.count);
    for (int k = 0; k < 4; k++) items[k] = items[k]->next;
  }
}

static void page_is_whole(void **state) {
  (void)state;
  static const char *const nets[] = {"lenet", "resnet18"};
  for (size_t k = 0; k < 4; k++) {
    made m = k < 2 ? make(nets[k]) : make_corun(nets[k - 2]);
    char *page = write_page(&m), *again = write_page(&m);
    assert_string_equal(page, again);
    cJSON *data = data_of(page);
    assert_int_equal(cJSON_GetArraySize(get(data, "graphs")), 1);
    for (int i = 0; i < 2; i++) check_result(data, i, &m.entries[i]);
    for (int i = 0; i < 2 && k >= 2; i++)
      check_teams(cJSON_GetArrayItem(get(data, "results"), i), m.entries[i].timeline);
    assert_null(strstr(page, "@report.css@"));
    assert_non_null(strstr(page, "</html>"));
    cJSON_Delete(data);
    free(page);
    free(again);
    drop(&m);
  }
}

/* PyTorch's steps and tensors stand beside SuperNeurons', each strategy's under its graph. */
static void several_graphs(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  static const char *const names[] = {"liveness", "pytorch", "baseline", "pytorch+recompute=units", "explicit"};
  enum { COUNT = sizeof names / sizeof *names };
  static const int graph[COUNT] = {0, 1, 0, 1, 2};
  sn_net *net = load_net("resnet18", 4);
  sn_device gpu = load_gpu("k40c");
  sn_options options = SN_OPTIONS_INIT;
  options.want_peak = true;
  sn_strategy strategies[COUNT];
  sn_page_entry entries[COUNT];
  for (int i = 0; i < COUNT; i++) strategies[i] = parse_strategy(names[i]);
  sn_run *run = sn_simulate("resnet18", net, &gpu, strategies, COUNT, &options, &err);
  must(&err);
  for (int i = 0; i < COUNT; i++)
    entries[i] = (sn_page_entry){&run->results[i], sn_simulate_timeline(net, &gpu, strategies[i], &options, &err)};
  char *text = NULL;
  size_t bytes = 0;
  FILE *out = open_memstream(&text, &bytes);
  sn_page_write(run, entries, COUNT, NULL, out, &err);
  must(&err);
  assert_int_equal(fclose(out), 0);
  cJSON *data = data_of(text);
  assert_int_equal(cJSON_GetArraySize(get(data, "graphs")), 3);
  for (int i = 0; i < COUNT; i++) {
    check_result(data, i, &entries[i]);
    assert_int_equal(get(cJSON_GetArrayItem(get(data, "results"), i), "graph")->valueint, graph[i]);
  }
  cJSON_Delete(data);
  free(text);
  for (int i = 0; i < COUNT; i++) sn_timeline_free((sn_timeline *)entries[i].timeline);
  sn_run_free(run);
  sn_net_free(net);
}

static void names_stay_text(void **state) {
  (void)state;
  made m = make("lenet");
  m.run->net = evil;
  m.run->gpu = evil;
  char *page = write_page(&m);
  assert_int_equal(count(page, "alert"), 7); /* title, heading and data name both, data what it is on too */
  assert_int_equal(count(page, "<script"), 2);
  assert_int_equal(count(page, "</script"), 2);
  cJSON *data = data_of(page);
  assert_string_equal(get(get(data, "run"), "gpu")->valuestring,
                      "</script><script>alert(1)</script>&\"'\\\u2028\ufffd");
  cJSON_Delete(data);
  free(page);
  drop(&m);
}

static void too_many_rows(void **state) {
  (void)state;
  made m = make("lenet");
  sn_err err = SN_ERR_INIT;
  FILE *out = fopen("/dev/null", "w");
  assert_non_null(out);
  sn_timeline *large = (sn_timeline *)m.entries[1].timeline;
  uint32_t n_bars = large->n_bars;
  large->n_bars = SN_PAGE_MOST_ROWS; /* refused before they are looked at */
  assert_int_equal(sn_page_write(m.run, m.entries, 2, NULL, out, &err), SN_BAD_INPUT);
  assert_non_null(strstr(err.text, "--strategy"));
  large->n_bars = n_bars;
  fclose(out);
  drop(&m);
}

/* ---- sweeps ---- */

/* A sweep of as many as four points; the caller frees its arena. */
static sn_sweep make_sweep(uint32_t n_rows) {
  sn_sweep sweep = {
      .head = {3, "then", evil, evil, evil, evil, 9, n_rows, 1, 1, 1}, .n_rows = n_rows, .arena = sn_arena_new()};
  assert_non_null(sweep.arena);
  sn_sweep_row *rows = sn_arena_alloc(sweep.arena, 4, sizeof *rows);
  assert_non_null(rows);
  for (uint32_t i = 0; i < 4; i++)
    rows[i] = (sn_sweep_row){.point = i + 1,
                             .net = i % 2 ? evil : "b",
                             .net_name = "",
                             .gpu = i % 3 ? "g" : evil,
                             .memory_bytes = i % 3 ? 7 : 9,
                             .conditions.workspace = "w",
                             .conditions.external = "e",
                             .conditions.allocator = "a",
                             .conditions.optimizer = "momentum",
                             .conditions.accumulate = 1,
                             .conditions.precision = "fp32",
                             .placement = "packed",
                             .conditions.freeze = "",
                             .conditions.parallel = "",
                             .conditions.cluster = "",
                             .conditions.host_us = "",
                             .batch = 4 - i,
                             .strategy = i == 3 ? evil : "s",
                             .failure = i == 2 ? evil : "",
                             .fits = i == 0,
                             .iteration_ns = i};
  sweep.rows = rows;
  return sweep;
}

static void check_numbers(const cJSON *columns, const char *name, const int (*wanted)[4]) {
  const cJSON *column = get(columns, name);
  assert_int_equal(cJSON_GetArraySize(column), 4);
  for (int i = 0; i < 4; i++) assert_int_equal(cJSON_GetArrayItem(column, i)->valueint, (*wanted)[i]);
}

static void sweep_is_whole(void **state) {
  (void)state;
  sn_sweep sweep = make_sweep(4);
  sn_err err = SN_ERR_INIT;
  char *page = NULL;
  size_t bytes = 0;
  FILE *out = open_memstream(&page, &bytes);
  sn_page_write_sweep(&sweep, out, &err);
  must(&err);
  assert_int_equal(fclose(out), 0);
  assert_int_equal(count(page, "<script"), 2);
  assert_int_equal(count(page, "</script"), 2);
  assert_int_equal(count(page, "2 networks, batches 1 to 4, on 2 GPUs"), 2); /* title and heading */
  cJSON *data = data_of(page);
  const cJSON *columns = get(data, "columns"), *failed = get(data, "failures");
  check_numbers(columns, "net", &(const int[4]){0, 1, 0, 1});
  check_numbers(columns, "gpu", &(const int[4]){0, 1, 1, 0});
  check_numbers(columns, "strategy", &(const int[4]){0, 0, 0, 1});
  check_numbers(columns, "batch", &(const int[4]){4, 3, 2, 1});
  check_numbers(columns, "fits", &(const int[4]){1, 0, 0, 0});
  check_numbers(columns, "iteration", &(const int[4]){0, 1, 2, 3});
  assert_int_equal(cJSON_GetArrayItem(get(get(data, "columns"), "memory"), 1)->valueint, 7);
  assert_int_equal(cJSON_GetArraySize(failed), 1);
  assert_int_equal(cJSON_GetArrayItem(cJSON_GetArrayItem(failed, 0), 0)->valueint, 2);
  assert_string_equal(cJSON_GetArrayItem(get(get(data, "names"), "net"), 1)->valuestring,
                      get(get(data, "sweep"), "grid")->valuestring);
  cJSON_Delete(data);
  free(page);
  sn_arena_free(sweep.arena);
}

static void sweep_without_points(void **state) {
  (void)state;
  sn_sweep sweep = make_sweep(0);
  sn_err err = SN_ERR_INIT;
  assert_int_equal(sn_page_write_sweep(&sweep, stderr, &err), SN_BAD_INPUT);
  assert_non_null(strstr(err.text, "snsim sweep 3 computes them"));
  sn_arena_free(sweep.arena);
}

static void full_disk(void **state) {
  (void)state;
  made m = make("lenet");
  sn_trace_head head = {"lenet", "k40c", "baseline", "0", 8};
  FILE *out = fopen("/dev/full", "w");
  assert_non_null(out);
  sn_err page = SN_ERR_INIT, events = SN_ERR_INIT;
  assert_int_equal(sn_page_write(m.run, m.entries, 2, NULL, out, &page), SN_BAD_FILE);
  assert_non_null(strstr(page.text, "No space left"));
  assert_int_equal(sn_trace_events_write(m.entries[1].timeline, &head, out, &events), SN_BAD_FILE);
  fclose(out);
  drop(&m);
}

/* A plan's part and cores of an operation that is not the only one at a time; else neither. */
static void check_cores(const cJSON *args, const sn_bar *bar) {
  const cJSON *cores = cJSON_GetObjectItemCaseSensitive(args, "cores");
  assert_true((cores != NULL) == (bar->team.count > 0));
  if (!cores) return;
  assert_string_equal(get(args, "part")->valuestring, sn_step_part_name((sn_step_part)bar->part));
  assert_int_equal(get(cores, "first")->valueint, bar->team.first);
  assert_int_equal(get(cores, "count")->valueint, bar->team.count);
  assert_int_equal(get(cores, "slot")->valueint, bar->team.slot);
}

/* Slices are the bars, with the very nanoseconds; flows are the arrows. tests/report/trace.py checks the rest. */
static void check_events(const sn_timeline *t) {
  sn_trace_head head = {evil, evil, "s", "0", 8};
  sn_err err = SN_ERR_INIT;
  char *text = NULL;
  size_t bytes = 0;
  FILE *out = open_memstream(&text, &bytes);
  sn_trace_events_write(t, &head, out, &err);
  must(&err);
  fclose(out);
  cJSON *trace = cJSON_Parse(text);
  uint32_t slices = 0, starts = 0, ends = 0, counters = 0, tracks = 0;
  sn_lane lanes[SN_LANES];
  const cJSON *event;
  cJSON_ArrayForEach(event, get(trace, "traceEvents")) {
    char phase = get(event, "ph")->valuestring[0];
    if (phase == 'X') {
      const sn_bar *bar = &t->bars[slices++];
      assert_true(get(event, "ts")->valuedouble == (double)bar->begin_ns / 1000);
      assert_true(get(event, "dur")->valuedouble == (double)(bar->end_ns - bar->begin_ns) / 1000);
      assert_int_equal(get(event, "tid")->valueint, bar->lane + 1);
      check_cores(get(event, "args"), bar);
    }
    tracks += strcmp(get(event, "name")->valuestring, "thread_name") == 0;
    starts += phase == 's';
    ends += phase == 'f';
    counters += phase == 'C';
  }
  assert_int_equal(slices, t->n_bars);
  assert_int_equal(counters, 2 * t->n_levels);
  assert_int_equal(tracks, sn_timeline_lanes(t, lanes));
  assert_true(starts == t->n_arrows && ends == t->n_arrows);
  cJSON_Delete(trace);
  free(text);
}

static void events_are_the_timeline(void **state) {
  (void)state;
  made m = make("resnet18"), corun = make_corun("resnet18");
  check_events(m.entries[0].timeline);
  assert_true(m.entries[0].timeline->n_arrows > 0);
  for (int i = 0; i < 2; i++) check_events(corun.entries[i].timeline);
  drop(&corun);
  drop(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(page_is_whole),   cmocka_unit_test(several_graphs),
      cmocka_unit_test(names_stay_text), cmocka_unit_test(too_many_rows),
      cmocka_unit_test(sweep_is_whole),  cmocka_unit_test(sweep_without_points),
      cmocka_unit_test(full_disk),       cmocka_unit_test(events_are_the_timeline),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
