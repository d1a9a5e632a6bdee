/* Tests of the pictures: each form is made and whole, an older picture survives every failure, no name gets out of its
 * quotes, text fits its columns, long curves are thinned and keep their maxima. */
#include "plots/plot.h"

#include "db/store.h"
#include "plots/plot_internal.h"
#include "tests/plots/sample_curves.h"

#include <ctype.h>
#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { ALEXNET = sizeof curve_alexnet / sizeof curve_alexnet[0] };

#define MIB(n) ((uint64_t)(n) << 20)

typedef struct scratch {
  char folder[32];
  char *path; /* the PATH before the test */
  sn_store *store;
} scratch;

static int setup(void **state) {
  scratch *place = calloc(1, sizeof *place);
  sn_err err = SN_ERR_INIT;
  *state = place;
  strcpy(place->folder, "/tmp/test_plot.XXXXXX");
  place->path = strdup(getenv("PATH"));
  place->store = sn_store_open(":memory:", &err);
  return mkdtemp(place->folder) && place->store ? 0 : -1;
}

static int teardown(void **state) {
  scratch *place = *state;
  char command[64];
  setenv("PATH", place->path, 1);
  snprintf(command, sizeof command, "rm -rf '%s'", place->folder);
  int rc = system(command);
  sn_store_close(place->store);
  free(place->path);
  free(place);
  return rc;
}

static char *in_folder(const scratch *place, const char *name, char *path) {
  snprintf(path, 256, "%s/%s", place->folder, name);
  return path;
}

static void assert_status(sn_status want, const sn_err *err, const char *words) {
  if (err->code != want || !strstr(err->text, words)) print_error("%s: %s\n", sn_status_name(err->code), err->text);
  assert_int_equal(err->code, want);
  assert_non_null(strstr(err->text, words));
}

static void put(scratch *place, sn_run *run) {
  sn_err err = SN_ERR_INIT;
  int64_t id;
  sn_store_put(place->store, run, &id, &err);
  assert_status(SN_OK, &err, "");
  sn_run_free(run);
}

static sn_run *alexnet(const char *name, uint64_t memory) {
  return curve_run(name, curve_alexnet, ALEXNET, 200, memory);
}

static char *slurp(const char *path, size_t *bytes) {
  FILE *in = fopen(path, "rb");
  assert_non_null(in);
  size_t room = 4 << 20;
  char *text = calloc(1, room);
  *bytes = fread(text, 1, room - 1, in);
  fclose(in);
  return text;
}

static void spill(const char *path, const char *text) {
  FILE *out = fopen(path, "wb");
  assert_non_null(out);
  fputs(text, out);
  fclose(out);
}

static void assert_content(const char *path, const char *text) {
  size_t bytes;
  char *found = slurp(path, &bytes);
  assert_string_equal(found, text);
  free(found);
}

static unsigned count_files(const char *folder) {
  DIR *all = opendir(folder);
  unsigned count = 0;
  assert_non_null(all);
  for (struct dirent *one = readdir(all); one; one = readdir(all)) count += one->d_name[0] != '.';
  closedir(all);
  return count;
}

static sn_status plot_stored(sn_store *store, int64_t id, const sn_plot_options *options, sn_err *err) {
  sn_run *run = sn_store_get(store, id, err);
  if (run) sn_plot_runs((const sn_run *const *)&run, 1, options, err);
  sn_run_free(run);
  return err->code;
}

static void draw(scratch *place, const char *path) {
  sn_err err = SN_ERR_INIT;
  sn_plot_options options = {.path = path};
  plot_stored(place->store, 0, &options, &err);
  assert_status(SN_OK, &err, "");
}

static void refuse(scratch *place, const sn_plot_options *options, sn_status code, const char *words) {
  sn_err err = SN_ERR_INIT;
  assert_int_equal(plot_stored(place->store, 0, options, &err), code);
  assert_status(code, &err, words);
}

/* Draws as text; the caller frees it. */
static char *draw_text(scratch *place, sn_plot_options options) {
  sn_err err = SN_ERR_INIT;
  char *text = NULL;
  size_t bytes;
  options.terminal = open_memstream(&text, &bytes);
  plot_stored(place->store, 0, &options, &err);
  fclose(options.terminal);
  assert_status(SN_OK, &err, "");
  return text;
}

/* The script for all of a run's strategies; the caller frees it. */
static char *script_of(const sn_run *run, sn__form form) {
  sn__curve curves[4];
  sn_err err = SN_ERR_INIT;
  for (uint32_t i = 0; i < run->n_results; i++) curves[i] = (sn__curve){run, &run->results[i]};
  sn__chart chart = {
      .form = form, .columns = 80, .rows = 24, .curves = curves, .n_curves = run->n_results, .n_runs = 1};
  char *text = NULL;
  size_t bytes;
  FILE *out = open_memstream(&text, &bytes);
  assert_int_equal(sn__script_write(out, &chart, &err), SN_OK);
  fclose(out);
  return text;
}

/* ---- pictures that are made ---- */

static void each_form_is_made_and_repeatable(void **state) {
  scratch *place = *state;
  static const char *const names[] = {"a.png", "a.SVG", "a.pdf"};
  static const char *const begins[] = {"\x89PNG\r\n\x1a\n", "<?xml", "%PDF-"};
  put(place, alexnet("alexnet", MIB(3000)));
  for (int i = 0; i < 3; i++) {
    char path[256];
    size_t bytes, again;
    draw(place, in_folder(place, names[i], path));
    char *first = slurp(path, &bytes);
    assert_true(bytes > 5000);
    assert_memory_equal(first, begins[i], strlen(begins[i]));
    if (i == 2) sleep(1); /* a PDF must not hold the moment it was drawn at */
    draw(place, path);
    char *second = slurp(path, &again);
    assert_int_equal(bytes, again);
    assert_memory_equal(first, second, bytes);
    free(first);
    free(second);
  }
  assert_int_equal(count_files(place->folder), 3);
}

static void a_picture_has_the_usual_rights(void **state) {
  scratch *place = *state;
  char path[256];
  struct stat found;
  put(place, alexnet("alexnet", MIB(3000)));
  mode_t mask = umask(027);
  draw(place, in_folder(place, "a.svg", path));
  umask(mask);
  assert_int_equal(stat(path, &found), 0);
  assert_int_equal(found.st_mode & 0777, 0640);
}

static void the_picture_says_what_it_shows(void **state) {
  scratch *place = *state;
  static const char *const words[] = {"alexnet, batch 200, on k40c",
                                      "forward",
                                      "backward",
                                      "step of the iteration",
                                      "functional tensors (MiB)<",
                                      " MiB at step ",
                                      ">baseline<",
                                      ">liveness<",
                                      ">liveness+offload<",
                                      ">liveness+offload+recompute=cost<",
                                      "room for tensors on k40c<",
                                      ">2100 MiB<"};
  char path[256];
  size_t bytes;
  put(place, alexnet("alexnet", MIB(3000)));
  draw(place, in_folder(place, "a.svg", path));
  char *svg = slurp(path, &bytes);
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
    if (!strstr(svg, words[i])) fail_msg("no \"%s\"", words[i]);
  free(svg);
  put(place, alexnet("alexnet", MIB(11439))); /* the limit is far above: it would flatten the curves */
  draw(place, path);
  svg = slurp(path, &bytes);
  assert_null(strstr(svg, "room for tensors"));
  free(svg);
  sn_run *run = alexnet("alexnet", MIB(11439));
  run->conditions.pool_limit_bytes = MIB(1234);
  put(place, run);
  draw(place, path);
  svg = slurp(path, &bytes);
  assert_non_null(strstr(svg, ">1234 MiB<"));
  free(svg);
  put(place, alexnet("alexnet", MIB(100))); /* less than what is not tensors: there is no room to draw */
  draw(place, path);
  svg = slurp(path, &bytes);
  assert_null(strstr(svg, "room for tensors"));
  free(svg);
  put(place, curve_run("alexnet", curve_alexnet, ALEXNET, 2000, MIB(11439)));
  draw(place, path);
  svg = slurp(path, &bytes);
  assert_non_null(strstr(svg, "functional tensors (GiB)<"));
  free(svg);
}

/* The gnuplot of another distribution may lack pngcairo; its plain png must do. */
static void png_without_cairo(void **state) {
  scratch *place = *state;
  sn_run *run = alexnet("alexnet", MIB(3000));
  char *text = script_of(run, SN__FORM_PNG), *name, path[256];
  sn_err err = SN_ERR_INIT;
  assert_non_null(name = strstr(text, "' pngcairo '"));
  memcpy(name, "' pngnever '", 12);
  FILE *script = tmpfile(), *picture = fopen(in_folder(place, "a.png", path), "w+b");
  fputs(text, script);
  sn__gnuplot_run(script, fileno(picture), &err);
  assert_status(SN_OK, &err, "");
  assert_int_equal(sn__picture_finish(fileno(picture), SN__FORM_PNG, "", &err), SN_OK);
  fclose(script);
  fclose(picture);
  free(text);
  sn_run_free(run);
}

static void small_and_odd_runs_are_drawn(void **state) {
  scratch *place = *state;
  static const curve_layer nothing[] = {{"none", "FC", 0}, {"one", "FC", 1}};
  char path[256];
  in_folder(place, "a.svg", path);
  put(place, curve_run("nothing", nothing, 1, 1, MIB(3000)));
  draw(place, path);
  free(draw_text(place, (sn_plot_options){0}));
  put(place, curve_run("one", nothing + 1, 1, 1, MIB(3000)));
  draw(place, path);
  put(place, curve_run("huge", nothing + 1, 1, UINT32_MAX, INT64_MAX));
  draw(place, path);
}

/* ---- names ---- */

static void names_stay_in_their_quotes(void **state) {
  scratch *place = *state;
  char path[256], here[1024];
  size_t bytes;
  static const char name[] = "'; system 'touch P'; '`touch P`$(touch P)\n\"\\@x\x01\xff <b>&\xc3\xa9";
  assert_non_null(getcwd(here, sizeof here));
  assert_int_equal(chdir(place->folder), 0);
  sn_run *run = alexnet(name, MIB(3000));
  run->gpu = name + 6;
  sn_result *results = (sn_result *)(uintptr_t)run->results;
  results[0].strategy = name + 1;
  put(place, run);
  sn_plot_options options = {.strategies = (const char *const[]){name + 1}, .n_strategies = 1};
  char *text = draw_text(place, options);
  assert_non_null(strstr(text, "`touch P`$(touch P)?\"\\@x?? <b>&\xc3\xa9"));
  free(text);
  draw(place, in_folder(place, "a.svg", path));
  char *svg = slurp(path, &bytes);
  assert_non_null(strstr(svg, "`touch P`$(touch P)?\"\\@x?? &lt;b>&amp;\xc3\xa9"));
  free(svg);
  assert_int_equal(access("P", F_OK), -1);
  assert_int_equal(chdir(here), 0);
}

static void of_long_names_the_end_is_shown(void **state) {
  scratch *place = *state;
  char name[400] = "";
  for (int i = 0; i < 50; i++) strcat(name, "folder/");
  strcat(name, "mine.json");
  put(place, alexnet(name, MIB(11439)));
  char *text = draw_text(place, (sn_plot_options){0});
  assert_non_null(strstr(text, "mine.json, batch 200"));
  assert_non_null(strstr(text, "..."));
  free(text);
}

static void endings_decide_the_form(void **state) {
  scratch *place = *state;
  static const char *const bad[] = {"a.jpg", "a", "", "png", ".png", "a.png.txt", "a.svgz"};
  put(place, alexnet("alexnet", MIB(3000)));
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
    refuse(place, &(sn_plot_options){.path = bad[i]}, SN_BAD_USAGE, "must be .png, .svg or .pdf");
}

/* ---- which run, which strategies ---- */

static void strategies_are_chosen_by_name(void **state) {
  scratch *place = *state;
  put(place, alexnet("alexnet", MIB(11439)));
  const char *one[] = {"liveness"}, *wrong[] = {"livenes"};
  char *text = draw_text(place, (sn_plot_options){.strategies = one, .n_strategies = 1});
  assert_non_null(strstr(text, " liveness: "));
  assert_null(strstr(text, "baseline"));
  free(text);
  refuse(place, &(sn_plot_options){.path = "a.svg", .strategies = wrong, .n_strategies = 1}, SN_BAD_USAGE,
         "no strategy \"livenes\" (did you mean \"liveness\"?)");
  refuse(place, &(sn_plot_options){.path = "a.svg", .strategies = wrong, .n_strategies = 0}, SN_BAD_USAGE,
         "no strategy to draw");
}

/* More curves than colours: a file can still tell them apart, text cannot. */
static void many_strategies(void **state) {
  scratch *place = *state;
  const char *many[13];
  char path[256];
  size_t bytes;
  for (int i = 0; i < 13; i++) many[i] = curve_strategies[i % 4];
  put(place, alexnet("alexnet", MIB(11439)));
  sn_plot_options options = {.path = in_folder(place, "many.svg", path), .strategies = many, .n_strategies = 13};
  sn_err err = SN_ERR_INIT;
  plot_stored(place->store, 0, &options, &err);
  assert_status(SN_OK, &err, "");
  free(slurp(path, &bytes));
  options = (sn_plot_options){.terminal = stdout, .strategies = many, .n_strategies = 7};
  refuse(place, &options, SN_BAD_USAGE, "text can tell 6 curves apart");
  options.n_strategies = 6;
  free(draw_text(place, options));
}

static void other_strategies_are_drawn_where_the_usual_are_missing(void **state) {
  scratch *place = *state;
  sn_run *run = alexnet("alexnet", MIB(11439));
  sn_result *results = (sn_result *)(uintptr_t)run->results;
  for (int i = 0; i < 4; i++) results[i].strategy = sn_arena_print(run->arena, "mine%d", i);
  put(place, run);
  char *text = draw_text(place, (sn_plot_options){0});
  assert_true(strstr(text, "mine0") && strstr(text, "mine1") && strstr(text, "mine2") && strstr(text, "mine3"));
  free(text);
}

static void runs_without_steps_are_refused(void **state) {
  scratch *place = *state;
  refuse(place, &(sn_plot_options){.path = "a.svg"}, SN_BAD_FILE, "no runs yet");
  sn_run *run = alexnet("alexnet", MIB(11439));
  sn_result *results = (sn_result *)(uintptr_t)run->results;
  results[2].steps = NULL;
  put(place, run);
  refuse(place, &(sn_plot_options){.path = "a.svg"}, SN_BAD_INPUT, "run 1 was stored without step rows");
  refuse(place, &(sn_plot_options){.terminal = stdout}, SN_BAD_INPUT, "--steps");
  sn_err err = SN_ERR_INIT;
  assert_int_equal(plot_stored(place->store, 9, &(sn_plot_options){.path = "a.svg"}, &err), SN_BAD_INPUT);
}

/* ---- failures ---- */

/* Puts a program called gnuplot first, and last, in PATH. */
static void fake_gnuplot(scratch *place, const char *body) {
  char path[256], folder[256];
  in_folder(place, "bin", folder);
  mkdir(folder, 0755);
  if (body) {
    spill(in_folder(place, "bin/gnuplot", path), body);
    chmod(path, 0755);
  }
  setenv("PATH", folder, 1);
}

static void assert_old_picture_survives(scratch *place, const char *body, const char *words) {
  static const char *const names[] = {"old.png", "old.svg", "old.pdf"};
  char path[256];
  fake_gnuplot(place, body);
  for (int i = 0; i < 3; i++) {
    spill(in_folder(place, names[i], path), "old picture");
    refuse(place, &(sn_plot_options){.path = path}, SN_BAD_DEVICE, words);
    assert_content(path, "old picture");
  }
  refuse(place, &(sn_plot_options){.path = in_folder(place, "new.svg", path)}, SN_BAD_DEVICE, words);
  assert_int_equal(access(path, F_OK), -1);
  assert_int_equal(count_files(place->folder), 4); /* bin and the three */
}

static void missing_gnuplot_is_said(void **state) {
  scratch *place = *state;
  put(place, alexnet("alexnet", MIB(3000)));
  assert_old_picture_survives(place, NULL, "apt install gnuplot-nox");
  char *text = NULL;
  size_t bytes;
  FILE *out = open_memstream(&text, &bytes);
  refuse(place, &(sn_plot_options){.terminal = out}, SN_BAD_DEVICE, "not installed");
  fclose(out);
  assert_int_equal(bytes, 0);
  free(text);
}

static void failing_gnuplot_is_quoted(void **state) {
  scratch *place = *state;
  put(place, alexnet("alexnet", MIB(3000)));
  assert_old_picture_survives(place,
                              "#!/bin/sh\necho half a picture\necho 'line 0:  no such\n   ^\nthing' >&2\nexit 3\n",
                              "gnuplot failed (exit code 3): line 0: no such thing");
  assert_old_picture_survives(place, "#!/bin/sh\nexit 1\n", "gnuplot failed (exit code 1): it did not say why");
  assert_old_picture_survives(place, "#!/bin/sh\nkill -9 $$\n", "signal 9");
  assert_old_picture_survives(place, "#!/bin/sh\nexit 0\n", "did not finish the picture (0 bytes written)");
  assert_old_picture_survives(place, "#!/bin/sh\necho '<svg> but not all of the picture'\n",
                              "did not finish the picture");
}

/* More messages than any pipe holds, and input that is not read. */
static void noisy_gnuplot_does_not_block(void **state) {
  scratch *place = *state;
  put(place, alexnet("alexnet", MIB(3000)));
  assert_old_picture_survives(
      place,
      "#!/bin/sh\ni=0\nwhile [ $i -lt 3000 ]; do echo 'a message of more than forty letters, again and again'"
      " >&2; i=$((i+1)); done\nexit 1\n",
      "a message of more than forty letters");
}

static void places_that_cannot_be_written(void **state) {
  scratch *place = *state;
  char path[256];
  put(place, alexnet("alexnet", MIB(3000)));
  refuse(place, &(sn_plot_options){.path = in_folder(place, "no/such/a.svg", path)}, SN_BAD_FILE, "No such file");
  assert_int_equal(mkdir(in_folder(place, "folder.svg", path), 0755), 0);
  refuse(place, &(sn_plot_options){.path = path}, SN_BAD_FILE, "Is a directory");
  assert_int_equal(count_files(place->folder), 1);
  assert_int_equal(symlink("/dev/null", in_folder(place, "null.svg", path)), 0);
  refuse(place, &(sn_plot_options){.path = path}, SN_BAD_FILE, "not a regular file");
  assert_int_equal(count_files(place->folder), 2);
  FILE *full = fopen("/dev/full", "w");
  setvbuf(full, NULL, _IONBF, 0);
  refuse(place, &(sn_plot_options){.terminal = full}, SN_BAD_FILE, "No space left");
  fclose(full);
}

/* ---- text ---- */

static unsigned line_width(const char *line) {
  unsigned width = 0;
  for (; *line && *line != '\n'; line++) width += (*line & 0xc0) != 0x80;
  return width;
}

static void text_fits_its_columns_and_rows(void **state) {
  scratch *place = *state;
  static const unsigned sizes[][2] = {{60, 20}, {80, 24}, {100, 30}, {132, 43}, {200, 60}};
  put(place, alexnet("alexnet", MIB(3000)));
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    char *text = draw_text(place, (sn_plot_options){.columns = sizes[i][0], .rows = sizes[i][1]});
    unsigned rows = 0;
    for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL, rows++)
      assert_true(line_width(line) <= sizes[i][0]);
    assert_true(rows <= sizes[i][1] + 1 && rows > sizes[i][1] / 2);
    assert_true(text[0] != '\n' && text[strlen(text) - 1] == '\n' && text[strlen(text) - 2] != '\n');
    assert_non_null(strstr(text, "alexnet, batch 200, on k40c: functional tensors\n"));
    assert_non_null(strstr(text, "forward"));
    assert_non_null(strstr(text, "backward\n"));
    assert_non_null(strstr(text, " liveness+offload+recompute=cost"));
    assert_null(strchr(text, '\x1b'));
    assert_null(strchr(text, '\f'));
    free(text);
  }
  char *usual = draw_text(place, (sn_plot_options){0}),
       *same = draw_text(place, (sn_plot_options){.columns = 100, .rows = 30});
  assert_string_equal(usual, same);
  free(usual);
  free(same);
}

/* ---- thinning ---- */

/* Reads block $s<number> of a script: its points and their largest memory and count. */
static unsigned read_block(const char *script, unsigned number, double *memory, double *live) {
  char begin[32];
  snprintf(begin, sizeof begin, "$s%u << END\n", number);
  const char *at = strstr(script, begin);
  assert_non_null(at);
  unsigned points = 0;
  double last = 0;
  for (at = strchr(at, '\n') + 1; strncmp(at, "END", 3) != 0; at = strchr(at, '\n') + 1, points++) {
    double step, mib, live_step, count;
    assert_int_equal(sscanf(at, "%lf %lf %lf %lf", &step, &mib, &live_step, &count), 4);
    assert_true(step > last);
    last = step;
    *memory = fmax(*memory, mib);
    *live = fmax(*live, count);
  }
  return points;
}

static sn_run *spiky(uint32_t steps) {
  sn_run *run = alexnet("spiky", MIB(11439));
  sn_result *result = (sn_result *)(uintptr_t)run->results;
  sn_step_row *rows = sn_arena_alloc(run->arena, steps, sizeof *rows);
  for (uint32_t i = 0; i < steps; i++)
    rows[i] = (sn_step_row){.step = i + 1,
                            .layer = "x",
                            .op = "FC",
                            .pass = i < steps / 2 ? "forward" : "backward",
                            .tensor_bytes = MIB(i % 100),
                            .live_tensors = i % 7};
  rows[steps / 3].tensor_bytes = MIB(777); /* one step each */
  rows[steps / 2].live_tensors = 55;
  result->steps = rows;
  result->n_steps = steps;
  run->n_results = 1;
  return run;
}

static void long_curves_are_thinned_and_keep_their_maxima(void **state) {
  (void)state;
  static const uint32_t lengths[] = {46, 3999, 4000, 4001, 8000, 8001, 99999, 1000000};
  for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
    sn_run *run = spiky(lengths[i]);
    char *script = script_of(run, SN__FORM_SVG);
    double memory = 0, live = 0;
    unsigned points = read_block(script, 0, &memory, &live);
    assert_true(points <= SN__CURVE_POINTS);
    assert_true(lengths[i] > SN__CURVE_POINTS ? points > SN__CURVE_POINTS / 2 : points == lengths[i]);
    assert_true(memory == 777 && live == 55);
    assert_int_equal(lengths[i] > SN__CURVE_POINTS, strstr(script, "the largest of") != NULL);
    free(script);
    sn_run_free(run);
  }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(each_form_is_made_and_repeatable),
      TEST(a_picture_has_the_usual_rights),
      TEST(the_picture_says_what_it_shows),
      TEST(png_without_cairo),
      TEST(small_and_odd_runs_are_drawn),
      TEST(names_stay_in_their_quotes),
      TEST(of_long_names_the_end_is_shown),
      TEST(endings_decide_the_form),
      TEST(strategies_are_chosen_by_name),
      TEST(many_strategies),
      TEST(other_strategies_are_drawn_where_the_usual_are_missing),
      TEST(runs_without_steps_are_refused),
      TEST(missing_gnuplot_is_said),
      TEST(failing_gnuplot_is_quoted),
      TEST(noisy_gnuplot_does_not_block),
      TEST(places_that_cannot_be_written),
      TEST(text_fits_its_columns_and_rows),
      TEST(long_curves_are_thinned_and_keep_their_maxima),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
