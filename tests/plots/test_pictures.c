/* The pictures drawn from simulated runs: every kind in every form; what a script or a text shows is what the run and
 * its timeline say; several runs are told apart. test_plot.c has files, failures, names and the curves of one run. */
#include "base/arena.h"
#include "models/op/op.h"
#include "models/zoo/zoo.h"
#include "plots/plot_internal.h"
#include "sim/ask/simulate.h"
#include "sim/sweep/replay.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void must(const sn_err *err) {
  if (err->code != SN_OK) fail_msg("%s: %s", sn_status_name(err->code), err->text);
}

static const char *const names[] = {"baseline", "liveness", "liveness+offload", "liveness+offload+recompute=memory",
                                    "liveness+corun=path"};

/* The last is for devices with cores. */
enum { N_NAMES = sizeof names / sizeof names[0] - 1, CORUN = N_NAMES };

static sn_run *simulate(const char *spec, uint32_t batch, const char *gpu) {
  sn_err err = SN_ERR_INIT;
  sn_device device;
  sn_strategy strategies[N_NAMES + 1];
  sn_options options = {.workspace = SN_WORKSPACE_DYNAMIC, .want_steps = true, .want_peak = true};
  for (int i = 0; i <= N_NAMES; i++) sn_strategy_parse(names[i], &strategies[i], &err);
  sn_device_load(gpu, &device, &err);
  uint32_t count = device.cores.count > 0 ? N_NAMES + 1 : N_NAMES;
  sn_net *net = sn_net_load(spec, batch, 0, &err);
  must(&err);
  sn_run *run = sn_simulate(spec, net, &device, strategies, count, &options, &err);
  must(&err);
  sn_net_free(net);
  return run;
}

/* A run, one of its results, and that played again. */
typedef struct scene {
  sn_run *run;
  const sn_result *result;
  sn_timeline *timeline;
} scene;

static scene play(const char *spec, uint32_t batch, uint32_t result) {
  sn_err err = SN_ERR_INIT;
  scene s = {.run = simulate(spec, batch, result == CORUN ? "knl7250" : "k40c")};
  s.result = &s.run->results[result];
  sn_replay *replay = sn_replay_open(s.run, NULL, NULL, NULL, &err);
  must(&err);
  s.timeline = sn_replay_timeline(replay, s.result, &err);
  must(&err);
  sn_replay_free(replay);
  return s;
}

static void drop(scene *s) {
  sn_timeline_free(s->timeline);
  sn_run_free(s->run);
}

static void plot(const scene *s, const sn_plot_options *options) {
  sn_err err = SN_ERR_INIT;
  if (sn_plot_kind_is_corun(options->kind))
    sn_plot_corun(s->run, &s->result, (const sn_timeline *const *)&s->timeline, 1, options, &err);
  else if (sn_plot_kind_is_played(options->kind))
    sn_plot_timeline(s->run, s->result, s->timeline, options, &err);
  else
    sn_plot_runs((const sn_run *const *)&s->run, 1, options, &err);
  must(&err);
}

/* The caller frees the text. (It is no return value, as gcc 12 then warns that it points into this function.) */
static void draw_text(const scene *s, sn_plot_options options, char **text) {
  size_t bytes;
  options.terminal = open_memstream(text, &bytes);
  plot(s, &options);
  fclose(options.terminal);
}

static char *script_of(const sn__chart *chart) {
  char *text = NULL;
  size_t bytes;
  sn_err err = SN_ERR_INIT;
  FILE *out = open_memstream(&text, &bytes);
  sn__script_write(out, chart, &err);
  fclose(out);
  must(&err);
  return text;
}

static char *played_script(const scene *s, sn_plot_kind kind) {
  sn__curve curve = {s->run, s->result};
  return script_of(&(sn__chart){
      .kind = kind, .form = SN__FORM_SVG, .curves = &curve, .n_curves = 1, .n_runs = 1, .timeline = s->timeline});
}

/* The script of all results of several runs. */
static char *runs_script(const sn_run *const *runs, unsigned n_runs, sn_plot_kind kind) {
  sn__curve curves[16];
  unsigned count = 0;
  for (unsigned r = 0; r < n_runs; r++)
    for (uint32_t i = 0; i < runs[r]->n_results; i++) curves[count++] = (sn__curve){runs[r], &runs[r]->results[i]};
  return script_of(
      &(sn__chart){.kind = kind, .form = SN__FORM_SVG, .curves = curves, .n_curves = count, .n_runs = n_runs});
}

/* Reads data block `name` of a script: up to `most` lines of up to 5 numbers. Returns how many lines there are. */
static unsigned read_block(const char *script, const char *name, double (*rows)[5], unsigned most) {
  char begin[32];
  snprintf(begin, sizeof begin, "$%s << END\n", name);
  const char *at = strstr(script, begin);
  unsigned count = 0;
  if (!at) return 0;
  for (at = strchr(at, '\n') + 1; strncmp(at, "END", 3) != 0; at = strchr(at, '\n') + 1, count++) {
    assert_true(count < most);
    double *r = rows[count];
    assert_true(sscanf(at, "%lf %lf %lf %lf %lf", &r[0], &r[1], &r[2], &r[3], &r[4]) >= 3);
  }
  return count;
}

/* ---- every kind and form ---- */

static void assert_begins(const char *path, const char *begin) {
  char found[8] = "";
  FILE *in = fopen(path, "rb");
  assert_non_null(in);
  assert_true(fread(found, 1, sizeof found, in) == sizeof found);
  fseek(in, 0, SEEK_END);
  assert_true(ftell(in) > 5000);
  fclose(in);
  assert_memory_equal(found, begin, strlen(begin));
}

static void every_kind_in_every_form(void **state) {
  (void)state;
  static const char *const endings[] = {"png", "svg", "pdf"}, *const begins[] = {"\x89PNG", "<?xml", "%PDF-"};
  char folder[] = "/tmp/test_pictures.XXXXXX", path[64];
  scene s = play("alexnet", 200, 3), corun = play("alexnet", 200, CORUN);
  assert_non_null(mkdtemp(folder));
  for (int kind = 0; kind < SN_PLOT_MAP; kind++)
    for (int f = 0; f < 3; f++) {
      const scene *drawn = sn_plot_kind_is_corun((sn_plot_kind)kind) ? &corun : &s;
      snprintf(path, sizeof path, "%s/a.%s", folder, endings[f]);
      plot(drawn, &(sn_plot_options){.kind = (sn_plot_kind)kind, .path = path});
      assert_begins(path, begins[f]);
      unlink(path);
    }
  assert_int_equal(rmdir(folder), 0);
  drop(&corun);
  drop(&s);
}

static unsigned widest(const char *text) {
  unsigned most = 0, width = 0;
  for (; *text; text++) {
    width = *text == '\n' ? 0 : width + ((*text & 0xc0) != 0x80);
    if (width > most) most = width;
  }
  return most;
}

static void texts_fit_their_terminal(void **state) {
  (void)state;
  static const unsigned sizes[][2] = {{60, 20}, {80, 24}, {132, 43}, {200, 60}};
  static const char *const nets[] = {"lenet", "alexnet", "resnet50"};
  for (int n = 0; n < 3; n++) {
    scene s = play(nets[n], 16, 3), corun = play(nets[n], 16, CORUN);
    for (int kind = 0; kind < SN_PLOT_MAP; kind++)
      for (int i = 0; i < 4; i++) {
        char *text = NULL;
        const scene *drawn = sn_plot_kind_is_corun((sn_plot_kind)kind) ? &corun : &s;
        draw_text(drawn, (sn_plot_options){.kind = (sn_plot_kind)kind, .columns = sizes[i][0], .rows = sizes[i][1]},
                  &text);
        if (widest(text) > sizes[i][0]) fail_msg("%u columns, not %u:\n%s", widest(text), sizes[i][0], text);
        assert_non_null(strstr(text, nets[n]));
        assert_null(strstr(text, " \n"));
        free(text);
      }
    drop(&corun);
    drop(&s);
  }
}

static void kinds_have_names(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_plot_kind kind;
  for (int i = 0; i < SN_PLOT_KINDS; i++) {
    assert_int_equal(sn_plot_kind_parse(sn_plot_kind_name((sn_plot_kind)i), &kind, &err), SN_OK);
    assert_int_equal(kind, i);
  }
  assert_int_equal(sn_plot_kind_parse("timelin", &kind, &err), SN_BAD_USAGE);
  assert_non_null(strstr(err.text, "did you mean \"timeline\"?"));
}

/* ---- breakdown ---- */

/* Parts follow each other without a gap and end at the whole: time and peak of every strategy. */
static void breakdown_adds_up(void **state) {
  (void)state;
  sn_run *run = simulate("alexnet", 200, "k40c");
  char *script = runs_script((const sn_run *const *)&run, 1, SN_PLOT_BREAKDOWN), block[16];
  double ms[N_NAMES] = {0}, mib[N_NAMES] = {0};
  unsigned parts = 0;
  for (int p = SN__PART_CONV; p < SN__PARTS; p++) {
    double rows[N_NAMES][5];
    snprintf(block, sizeof block, "p%d", p);
    if (read_block(script, block, rows, N_NAMES) == 0) continue;
    parts++;
    for (int i = 0; i < N_NAMES; i++) {
      assert_true(fabs(rows[i][0] - ms[i]) < 1e-4 && fabs(rows[i][2] - mib[i]) < 1e-4 && rows[i][4] == i);
      assert_true(rows[i][1] >= rows[i][0] && rows[i][3] >= rows[i][2]);
      ms[i] = rows[i][1];
      mib[i] = rows[i][3];
    }
  }
  assert_int_equal(parts, 8); /* CONV FC ACT POOL LRN DROPOUT SOFTMAX, waiting */
  for (int i = 0; i < N_NAMES; i++) {
    assert_true(fabs(ms[i] - (double)run->results[i].iteration_ns / 1e6) < 1e-4);
    assert_true(fabs(mib[i] - (double)run->results[i].peak_tensor_bytes / 1048576) < 1e-4);
  }
  free(script);
  sn_run_free(run);
}

/* Every operator has a colour of its own or an other's that it is like; what only moves numbers is grey. */
static void parts_of_operators(void **state) {
  (void)state;
  assert_true(sn__part_of("DECONV") == SN__PART_CONV && sn__part_of("FORK") == SN__PART_FORK);
  assert_true(sn__part_of("convolution_backward") == SN__PART_CONV && sn__part_of("view_copy") == SN__PART_OTHER);
  for (sn_op op = 0; op < SN_OP_COUNT; op++) {
    bool moves = op == SN_DATA || op == SN_TAKE || (op >= SN_RESHAPE && op <= SN_RESIZE) || op >= SN_GIVEN;
    assert_true((sn__part_of(sn_op_table[op]->name) == SN__PART_OTHER) == moves);
  }
  for (unsigned a = 0; a < SN__PARTS; a++)
    for (unsigned b = 0; b < a; b++)
      assert_true(sn__parts[a].letter != sn__parts[b].letter && strcmp(sn__parts[a].colour, sn__parts[b].colour) != 0);
}

/* At baseline's peak are all tensors, so that what belongs to a type can be summed up another way. */
static void breakdown_knows_whose_a_tensor_is(void **state) {
  (void)state;
  sn_run *run = simulate("alexnet", 200, "k40c");
  const sn_result *r = &run->results[0];
  char *script = runs_script((const sn_run *const *)&run, 1, SN_PLOT_BREAKDOWN);
  double rows[N_NAMES][5], bytes = 0, ns = 0;
  for (uint32_t i = 0; i < r->n_peak; i++)
    if (strncmp(r->peak[i].tensor, "conv", 4) == 0) bytes += (double)r->peak[i].bytes;
  for (uint32_t i = 0; i < r->n_steps; i++)
    if (strcmp(r->steps[i].op, "CONV") == 0) ns += (double)(r->steps[i].end_ns - r->steps[i].begin_ns);
  assert_int_equal(read_block(script, "p5", rows, N_NAMES), N_NAMES);
  assert_true(bytes > 0 && fabs(rows[0][3] - bytes / 1048576) < 1e-4);
  assert_true(ns > 0 && fabs(rows[0][1] - ns / 1e6) < 1e-4);
  free(script);
  sn_run_free(run);
}

static void breakdown_needs_peaks(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_run *run = simulate("lenet", 8, "k40c");
  ((sn_result *)(uintptr_t)run->results)[1].peak = NULL;
  sn_plot_runs((const sn_run *const *)&run, 1, &(sn_plot_options){.kind = SN_PLOT_BREAKDOWN, .terminal = stdout}, &err);
  assert_int_equal(err.code, SN_BAD_INPUT);
  assert_non_null(strstr(err.text, "--explain"));
  sn_run_free(run);
}

/* ---- device ---- */

/* Numbers of a line of data block $d: where the step begins, and how high the stack is with each part on it. */
enum { STACK = SN__PART_HOLES + 2 };

static const char *read_stack(const char *line, double *numbers) {
  char *at = (char *)(uintptr_t)line;
  for (int i = 0; i < STACK; i++) numbers[i] = strtod(at, &at);
  assert_true(*at == '\n');
  return at + 1;
}

/* A step's stack is all it needs; the highest is what the strategy needs, and the picture names the step. */
static void device_adds_up(void **state) {
  (void)state;
  for (uint32_t n = 0; n < N_NAMES; n++) {
    scene s = play("alexnet", 200, n);
    const sn_result *r = s.result;
    char *script = played_script(&s, SN_PLOT_DEVICE), words[120];
    const char *at = strchr(strstr(script, "$d << END"), '\n') + 1;
    uint64_t resident = r->context_bytes + sn_persistent_total(&r->persistent);
    double unit = strstr(script, "memory of the device (GiB)") ? 1073741824 : 1048576, numbers[STACK], most = 0;
    uint32_t peak = 0;
    for (uint32_t step = 0; step < r->n_steps; step++) {
      at = read_stack(at, numbers);
      assert_true(numbers[0] == step + 1);
      for (int i = 2; i < STACK; i++) assert_true(numbers[i] >= numbers[i - 1]);
      assert_true(fabs(numbers[1] * unit - (double)r->context_bytes) < 1e3);
      assert_true(fabs(numbers[1 + SN__PART_DATA] * unit - (double)resident) < 1e3);
      assert_true(numbers[STACK - 1] * unit > (double)(resident + r->steps[step].tensor_bytes) - 1e3);
      if (numbers[STACK - 1] > most) most = numbers[STACK - 1], peak = step;
    }
    assert_true(fabs(most * unit - (double)r->peak_device_bytes) < 1e3);
    assert_true(r->pool_step > peak); /* or later, where tensors alone are as high */
    snprintf(words, sizeof words, "step %u, %s %s'", r->pool_step, r->pool_layer, r->pool_pass);
    if (!strstr(script, words)) fail_msg("no \"%s\"", words);
    free(script);
    drop(&s);
  }
}

static void device_says_what_does_not_fit(void **state) {
  (void)state;
  scene s = play("alexnet", 200, 0);
  char *script = played_script(&s, SN_PLOT_DEVICE), *text = NULL;
  assert_null(strstr(script, "does not fit"));
  free(script);
  s.run->memory_bytes = UINT64_C(2) << 30;
  script = played_script(&s, SN_PLOT_DEVICE);
  assert_non_null(strstr(script, ": does not fit'"));
  assert_non_null(strstr(script, "usable on k40c: 2.00 GiB'"));
  draw_text(&s, (sn_plot_options){.kind = SN_PLOT_DEVICE, .columns = 80, .rows = 24}, &text);
  assert_non_null(strstr(text, "usable on k40c: 2.00 GiB; does not fit"));
  free(text);
  free(script);
  drop(&s);
}

/* ---- names in pictures ---- */

/* What has room is named: tensors in the pool, layers and tensors on the lanes. */
static void places_have_names(void **state) {
  (void)state;
  scene s = play("alexnet", 200, 2);
  char *pool = played_script(&s, SN_PLOT_POOL), *lanes = played_script(&s, SN_PLOT_TIMELINE);
  assert_non_null(strstr(pool, "set label 'conv1.y' at first "));
  assert_null(strstr(pool, "set label 'softmax.y' at")); /* too small */
  assert_non_null(strstr(lanes, "set label 'conv1' at first "));
  assert_non_null(strstr(lanes, "set label 'conv1.y' at first "));
  free(pool);
  free(lanes);
  drop(&s);
}

/* ---- timeline ---- */

enum { MOST_ROWS = 4000 };

static double (*room(void))[5] {
  double(*rows)[5] = calloc(MOST_ROWS, sizeof *rows);
  assert_non_null(rows);
  return rows;
}

/* The time that each block of bars shows, and that no lane shows two at once. */
static void add_bars(const char *script, int kind, double *shown, double *lanes) {
  char block[16];
  double(*rows)[5] = room();
  snprintf(block, sizeof block, "k%d", kind);
  unsigned count = read_block(script, block, rows, MOST_ROWS);
  for (unsigned i = 0; i < count; i++) {
    assert_true(rows[i][1] >= rows[i][0]);
    *shown += rows[i][1] - rows[i][0];
    lanes[(int)rows[i][2]] += rows[i][1] - rows[i][0];
  }
  free(rows);
}

static void timeline_shows_every_kind_for_its_time(void **state) {
  (void)state;
  static const char *const nets[] = {"lenet", "alexnet", "resnet50"};
  for (int n = 0; n < 3; n++) {
    scene s = play(nets[n], 32, 3);
    const sn_timeline *t = s.timeline;
    char *script = played_script(&s, SN_PLOT_TIMELINE);
    double lanes[SN_LANES] = {0}, copies[2] = {0}, waiting = 0, other = 0, end = (double)t->end_ns / 1e6;
    for (int kind = 0; kind < 4; kind++) add_bars(script, kind, &other, lanes);
    add_bars(script, 4, &copies[0], lanes);
    add_bars(script, 5, &copies[1], lanes);
    add_bars(script, 6, &waiting, lanes);
    double column = end / SN__LANE_COLUMNS;
    assert_true(fabs(copies[0] - (double)t->busy_ns[SN_LANE_OUT] / 1e6) < 4 * column);
    assert_true(fabs(copies[1] - (double)t->busy_ns[SN_LANE_IN] / 1e6) < 4 * column);
    assert_true(fabs(waiting - (double)t->stall_ns[SN_LANE_COMPUTE] / 1e6) < 4 * column);
    for (int lane = 0; lane < SN_LANES; lane++) assert_true(lanes[lane] <= end * (1 + 1e-6));
    assert_true(lanes[SN_LANE_COMPUTE] > 0.99 * end); /* it waits or computes */
    free(script);
    drop(&s);
  }
}

/* What is drawn at a moment is at least what is held then, and never more than is held a column away. */
static void timeline_shows_the_memory(void **state) {
  (void)state;
  scene s = play("alexnet", 200, 3);
  const sn_timeline *t = s.timeline;
  char *script = played_script(&s, SN_PLOT_TIMELINE);
  double(*rows)[5] = room(), column = (double)t->end_ns / 1e6 / SN__LANE_COLUMNS;
  unsigned count = read_block(script, "m", rows, MOST_ROWS);
  assert_int_equal(count, SN__LANE_COLUMNS + 1);
  for (unsigned i = 0; i + 1 < count; i++) {
    double most = 0, least = 1e300;
    for (uint32_t l = 0; l < t->n_levels; l++) {
      double from = (double)t->levels[l].ns / 1e6, to = l + 1 < t->n_levels ? (double)t->levels[l + 1].ns / 1e6 : 1e300;
      double mib = (double)(t->levels[l].tensor_bytes + t->levels[l].workspace_bytes) / 1048576;
      if (from > rows[i][0] + column * 1.001 || to < rows[i][0] - column * 0.001) continue;
      most = fmax(most, mib);
      least = fmin(least, mib);
    }
    assert_true(rows[i][2] <= most * (1 + 1e-6) && rows[i][2] >= least * (1 - 1e-6));
    assert_true(rows[i][1] <= rows[i][2]);
  }
  free(rows);
  free(script);
  drop(&s);
}

/* ---- pool ---- */

static void pool_shows_every_rectangle(void **state) {
  (void)state;
  scene s = play("alexnet", 200, 2);
  const sn_timeline *t = s.timeline;
  char *script = played_script(&s, SN_PLOT_POOL), block[16];
  double(*rows)[5] = room(), high = 0, area = 0, want = 0;
  unsigned drawn = 0;
  for (int kind = 0; kind < 6; kind++) {
    snprintf(block, sizeof block, "$k%d <<", kind);
    if (!strstr(script, block)) continue; /* of kinds that the plan has */
    snprintf(block, sizeof block, "k%d", kind);
    unsigned count = read_block(script, block, rows, MOST_ROWS);
    drawn += count - 1; /* one stands for an empty block */
    for (unsigned i = 1; i < count; i++) {
      assert_true(rows[i][0] >= 1 && rows[i][1] > rows[i][0] && rows[i][3] > rows[i][2]);
      high = fmax(high, rows[i][3]);
      area += rows[i][3] - rows[i][2];
    }
  }
  for (uint32_t r = 0; r < t->n_rects; r++) want += (double)t->rects[r].bytes / 1048576;
  assert_int_equal(drawn, t->n_rects);
  assert_true(fabs(high - (double)t->pool_bytes / 1048576) < 1e-3);
  assert_true(fabs(area - want) < 1e-3 * drawn);
  free(rows);
  free(script);
  drop(&s);
}

static void assert_order(const char *text, const char *first, const char *second) {
  const char *found = strstr(text, first);
  assert_non_null(found);
  assert_non_null(strstr(found, second));
}

/* Baseline holds everything from beginning to end, outputs below gradients. */
static void pool_as_text(void **state) {
  (void)state;
  scene s = play("alexnet", 200, 0);
  char *text = NULL;
  draw_text(&s, (sn_plot_options){.kind = SN_PLOT_POOL, .columns = 80, .rows = 24}, &text);
  assert_order(text, "ggggggggggggggggggggggggggggg", "ooooooooooooooooooooooooooooooo");
  assert_non_null(strstr(text, "MiB\n"));
  assert_non_null(strstr(text, "w workspace"));
  free(text);
  drop(&s);
}

/* ---- several runs ---- */

static void assert_words(const char *script, const char *const *words, unsigned count) {
  for (unsigned i = 0; i < count; i++)
    if (!strstr(script, words[i])) fail_msg("no \"%s\" in\n%s", words[i], script);
}

static void runs_are_told_apart(void **state) {
  (void)state;
  sn_run *runs[] = {simulate("lenet", 8, "k40c"), simulate("lenet", 16, "k40c"), simulate("lenet", 8, "h200"),
                    simulate("alexnet", 8, "k40c")};
  static const char *const batches[] = {"title 'lenet, on k40c'", "title 'batch 8: baseline: ",
                                        "title 'batch 16: baseline: ", "step of the iteration'"},
                           *const gpus[] = {"title 'lenet, batch 8'",
                                            "title 'k40c: baseline: ", "title 'h200: baseline: "},
                           *const nets[] = {"title 'several networks, batch 8, on k40c'", "title 'lenet: baseline: ",
                                            "title 'alexnet: baseline: ", "share of the steps of each pass (%)"};
  char *script = runs_script((const sn_run *const[]){runs[0], runs[1]}, 2, SN_PLOT_STEPS);
  assert_words(script, batches, 4);
  assert_null(strstr(script, "y2label")); /* too many curves for a second axis */
  free(script);
  script = runs_script((const sn_run *const[]){runs[0], runs[2]}, 2, SN_PLOT_STEPS);
  assert_words(script, gpus, 3);
  free(script);
  script = runs_script((const sn_run *const[]){runs[0], runs[3]}, 2, SN_PLOT_LIVE);
  assert_words(script, nets, 4);
  free(script);
  for (int i = 0; i < 4; i++) sn_run_free(runs[i]);
}

/* Live tensors in the picture of the memory are for those who ask; of several runs there is no axis for them. */
static void live_tensors_are_an_option(void **state) {
  (void)state;
  scene s = {.run = simulate("lenet", 8, "k40c")};
  sn__curve curve = {s.run, s.run->results};
  sn__chart chart = {.form = SN__FORM_SVG, .curves = &curve, .n_curves = 1, .n_runs = 1};
  char *without = script_of(&chart);
  chart.with_live = true;
  char *with = script_of(&chart);
  assert_null(strstr(without, "y2label"));
  assert_non_null(strstr(with, "set y2label 'live tensors (count)"));
  free(without);
  free(with);
  sn_run_free(s.run);
}

/* Names in the margin are two lines high and do not meet, however many peaks are alike. */
static void names_keep_apart(void **state) {
  (void)state;
  sn_run *run = simulate("alexnet", 200, "k40c");
  sn__curve curves[10];
  for (unsigned i = 0; i < 10; i++) curves[i] = (sn__curve){run, &run->results[i % N_NAMES]};
  char *script = script_of(&(sn__chart){.form = SN__FORM_SVG, .curves = curves, .n_curves = 10, .n_runs = 1});
  double place[10], below = 1.1;
  unsigned count = 0;
  static const char words[] = " at step ", begin[] = "' at graph 1.025, graph ";
  for (const char *at = strstr(script, words); at && count < 10; at = strstr(at + 1, words))
    if (strstr(at, begin) && strstr(at, begin) < strchr(at, '\n'))
      place[count++] = strtod(strstr(at, begin) + 24, NULL);
  assert_int_equal(count, 10);
  for (unsigned i = 0; i < 10; i++) { /* they are written from the highest down */
    assert_true(place[i] <= below - 0.09 + 1e-6 && place[i] > 0);
    below = place[i];
  }
  free(script);
  sn_run_free(run);
}

static void live_counts_tensors(void **state) {
  (void)state;
  sn_run *run = simulate("lenet", 8, "k40c");
  char *script = runs_script((const sn_run *const *)&run, 1, SN_PLOT_LIVE);
  double(*rows)[5] = room();
  assert_non_null(strstr(script, "set ylabel 'live tensors (count)'"));
  assert_non_null(strstr(script, "plot $s0 using 3:4 "));
  assert_int_equal(read_block(script, "s1", rows, MOST_ROWS), run->results[1].n_steps);
  for (uint32_t i = 0; i < run->results[1].n_steps; i++)
    assert_true(rows[i][2] == i + 1 && rows[i][3] == run->results[1].steps[i].live_tensors);
  free(rows);
  free(script);
  sn_run_free(run);
}

/* Of several runs only the first and the last of the usual strategies are drawn where none is named. */
static void defaults_for_several_runs(void **state) {
  (void)state;
  sn_run *runs[] = {simulate("lenet", 8, "k40c"), simulate("lenet", 16, "k40c")};
  sn_err err = SN_ERR_INIT;
  char *text = NULL;
  size_t bytes;
  ((sn_result *)(uintptr_t)runs[1]->results)[3].strategy = "liveness+offload+recompute=cost";
  sn_plot_options options = {.terminal = open_memstream(&text, &bytes), .columns = 100, .rows = 40};
  sn_plot_runs((const sn_run *const *)runs, 2, &options, &err);
  fclose(options.terminal);
  must(&err);
  static const char *const words[] = {"batch 8: baseline", "batch 16: baseline",
                                      "batch 16: liveness+offload+recompute=cost"};
  assert_words(text, words, 3);
  assert_null(strstr(text, "batch 8: liveness"));
  free(text);
  for (int i = 0; i < 2; i++) sn_run_free(runs[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_kind_in_every_form),
      cmocka_unit_test(texts_fit_their_terminal),
      cmocka_unit_test(kinds_have_names),
      cmocka_unit_test(breakdown_adds_up),
      cmocka_unit_test(parts_of_operators),
      cmocka_unit_test(breakdown_knows_whose_a_tensor_is),
      cmocka_unit_test(breakdown_needs_peaks),
      cmocka_unit_test(device_adds_up),
      cmocka_unit_test(places_have_names),
      cmocka_unit_test(device_says_what_does_not_fit),
      cmocka_unit_test(timeline_shows_every_kind_for_its_time),
      cmocka_unit_test(timeline_shows_the_memory),
      cmocka_unit_test(pool_shows_every_rectangle),
      cmocka_unit_test(pool_as_text),
      cmocka_unit_test(runs_are_told_apart),
      cmocka_unit_test(live_counts_tensors),
      cmocka_unit_test(live_tensors_are_an_option),
      cmocka_unit_test(names_keep_apart),
      cmocka_unit_test(defaults_for_several_runs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
