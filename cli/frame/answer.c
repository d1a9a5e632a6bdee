/* The answer on the screen; see the header. */
#include "cli/frame/answer.h"

#include "base/units.h"
#include "cli/options/table.h"
#include "sim/capacity/bands.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GIB 1073741824.0
#define MIB 1048576.0

/* Of the groups: the longest bar, the shortest that the largest group has, and what stands beside name and bar in 80
 * columns. */
enum { LONGEST_BAR = 23, SHORTEST_BAR = 5, BESIDE_BAR = 24 };

/* ---- asking ---- */

/* Of this machine, or what $SNSIM_HOST_MEMORY says; 0: neither tells. */
static uint64_t machine_memory(void) {
  const char *said = getenv("SNSIM_HOST_MEMORY");
  uint64_t bytes = 0;
  sn_err unread = SN_ERR_INIT;
  if (said && *said && sn_parse_bytes(said, "$SNSIM_HOST_MEMORY", 1, &bytes, &unread) == SN_OK) return bytes;
  if (unread.code != SN_OK) sn_out_say("%s; this machine's memory stands in", unread.text);
  long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
}

/* Whose verdict it is: what --for says, else PyTorch's where any of its strategies is asked about. */
static sn_runtime runtime_of(const sn_question *q) {
  sn_runtime asked = q->args->runtime, named = sn_runtime_of_all(q->strategies, q->n_strategies);
  if (q->args->n_strategies > 0) return named == SN_RUNTIME_ALL ? SN_RUNTIME_PYTORCH : named;
  return asked == SN_RUNTIME_DEFAULT || asked == SN_RUNTIME_ALL ? SN_RUNTIME_PYTORCH : asked;
}

static const sn_result *result_of(const sn_run *run, sn_strategy strategy) {
  char name[SN_STRATEGY_TEXT];
  sn_strategy_name(strategy, name);
  for (uint32_t i = 0; run && i < run->n_results; i++)
    if (strcmp(run->results[i].strategy, name) == 0) return &run->results[i];
  return NULL;
}

uint32_t sn_question_judged(const sn_question *q, sn_strategy *strategies) {
  uint32_t count = 0;
  sn_runtime runtime = runtime_of(q);
  if (q->args->n_strategies == 0) return sn_answer_strategies(runtime, q->options.iteration, strategies);
  for (uint32_t i = 0; i < q->n_strategies; i++)
    if (sn_runtime_of(q->strategies[i]) == runtime) strategies[count++] = q->strategies[i];
  return count;
}

/* Those of the judged that have a result; all of them where there is no run. */
static uint32_t find_known(const sn_question *q, const sn_run *run, sn_strategy *strategies,
                           const sn_result **results) {
  sn_strategy judged[SN_ARGS_STRATEGIES];
  uint32_t count = 0, all = sn_question_judged(q, judged);
  for (uint32_t i = 0; i < all; i++) {
    const sn_result *result = result_of(run, judged[i]);
    if (run && !result) continue;
    strategies[count] = judged[i];
    results[count++] = result;
  }
  return count;
}

/* results NULL: nothing was played yet. */
static sn_answer *ask(const sn_question *q, const sn_strategy *strategies, const sn_result *const *results,
                      uint32_t count, sn_err *err) {
  const sn_answer_wish wish = {.asked = {.spec = q->args->net,
                                         .image = q->args->image,
                                         .net = q->net,
                                         .device = &q->device,
                                         .options = &q->options,
                                         .strategies = strategies,
                                         .results = results,
                                         .n_strategies = count},
                               .runtime = runtime_of(q),
                               .host_bytes = machine_memory()};
  return sn_answer_find(&wish, err);
}

sn_answer *sn_question_answer(const sn_question *q, sn_err *err) {
  sn_strategy strategies[SN_ARGS_STRATEGIES];
  const sn_result *results[SN_ARGS_STRATEGIES];
  uint32_t count = find_known(q, NULL, strategies, results);
  if (count > 0) return ask(q, strategies, NULL, count, err);
  sn_fail(err, SN_BAD_USAGE, "--for %s: it has no strategy for this; leave --for out, or name one with --strategy",
          sn_runtime_name(runtime_of(q)));
  return NULL;
}

sn_status sn_question_answer_run(const sn_question *q, sn_run *run, sn_err *err) {
  sn_strategy strategies[SN_ARGS_STRATEGIES];
  const sn_result *results[SN_ARGS_STRATEGIES];
  uint32_t count = find_known(q, run, strategies, results);
  sn_answer *answer = count > 0 ? ask(q, strategies, results, count, err) : NULL;
  char *text = answer ? sn_answer_write(answer, err) : NULL;
  if (text) {
    run->answer = sn_arena_text(run->arena, text);
    if (!run->answer) sn_fail_memory(err);
  }
  free(text);
  sn_answer_free(answer);
  return err->code;
}

sn_status sn_answer_put(const sn_answer *answer, FILE *out, sn_err *err) {
  char *text = sn_answer_write(answer, err);
  if (text) fprintf(out, ",\"answer\":%s", text);
  free(text);
  return err->code;
}

sn_pace sn_answer_pace(const sn_answer *a, const sn_run *run, uint32_t gpus) {
  const sn_result *fastest = a || !run ? NULL : sn_run_best(run);
  sn_pace pace = {.gpus = gpus, .calibrated = run && strcmp(run->costs, "measured") == 0};
  if (fastest) pace.per_second = fastest->images_per_second;
  if (!a || a->n_changes == 0) return pace;
  pace.per_second = a->changes[0].images_per_second;
  pace.within = a->time_within;
  pace.calibrated = pace.calibrated || sn_band_is_measured(a->time_band);
  pace.said = *a->time_band;
  pace.changed = a->changes[0].kind != SN_CHANGE_NONE;
  return pace;
}

/* ---- where it does not fit ---- */

static const char *nothing_helps(const sn_question *q) {
  if (sn_mesh_is_one(&q->options.iteration.mesh)) return "nothing that PyTorch offers is enough: more memory is needed";
  return "nothing that PyTorch offers is enough: snsim advise --gpus tries other splits, snsim fit --min gpus more "
         "GPUs";
}

sn_status sn_answer_fail(const sn_answer *a, const sn_question *q, sn_err *err) {
  char needed[SN_UNIT_TEXT], usable[SN_UNIT_TEXT], name[SN_DEVICE_NAME];
  if (a->verdict != SN_VERDICT_NO) return SN_OK;
  snprintf(name, sizeof name, "%s", q->device.name);
  const char *gpu_why = q->args->gpu_why;
  if (a->needed_bytes == 0)
    return sn_fail(err, SN_NO_FIT, "no device memory is enough for %s, which sends more to the host than that has",
                   a->strategy);
  const char *options = a->n_changes > 0 ? a->changes[0].options : "";
  return sn_fail(err, SN_NO_FIT, "%s needed with %s, %s on %s%s%s; %s%s", sn_print_bytes(a->needed_bytes, needed),
                 a->strategy, sn_print_bytes(a->usable_bytes, usable), sn_table_clean(name), *gpu_why ? ", " : "",
                 gpu_why,
                 *options      ? "try "
                 : a->searched ? nothing_helps(q)
                               : "snsim advise finds what fits",
                 options);
}

/* ---- the screen ---- */

enum { CHANGE_COLUMNS = 6, WHAT_COLUMNS = 33 };

static void print_gib(const char *before, double gib, const char *after, FILE *out) {
  fprintf(out, "%s%.*f GiB%s", before, gib < 1 ? 2 : 1, gib, after);
}

static void print_verdict(const sn_answer *a, const sn_out *out) {
  static const char *const colours[SN_VERDICTS] = {"\033[1;31m", "\033[1;33m", "\033[1;32m"};
  static const char *const words[SN_VERDICTS] = {"NO", "TIGHT", "YES"};
  double needed = (double)a->needed_bytes / GIB, left = (double)sn_answer_margin(a) / GIB;
  FILE *f = out->stream;
  fprintf(f, "  %s%s%s: ", out->color ? colours[a->verdict] : "", words[a->verdict], out->color ? "\033[0m" : "");
  if (a->needed_bytes == 0)
    fputs("no memory is enough, as the host has less than is sent there.", f);
  else if (a->verdict == SN_VERDICT_NO) {
    print_gib("as it stands it needs ", needed, ", ", f);
    print_gib("", -left, " too much.", f);
  } else if (a->verdict == SN_VERDICT_TIGHT) {
    print_gib("it needs ", needed, " and fits, but ", f);
    print_gib("only ", left, " are left, less than 3 %.", f);
  } else {
    print_gib("it needs ", needed, ", ", f);
    print_gib("", left, " are left.", f);
  }
  if (a->one_batch) {
    fputs(" It was recorded at this batch alone.", f);
  } else if (a->searched && a->largest_batch > 0) {
    fprintf(f, " Largest batch: %" PRIu32, a->largest_batch);
    if (a->largest_host_bytes > 0)
      fprintf(f, ", with %.1f GiB of RAM%s", (double)a->largest_host_bytes / GIB, a->gpus > 1 ? " a GPU" : "");
    fputs(".", f);
  } else if (a->searched) {
    fputs(" Not even a batch of 1 fits.", f);
  }
  fputs("\n", f);
}

/* Two digits that count where times are formulas', three where they were measured. */
static void time_cell(sn_table *table, const sn_answer *a, double value) {
  char text[SN_UNIT_TEXT];
  sn_table_cell(table, "%s", sn_print_digits(value, sn_band_is_measured(a->time_band) ? 3 : 2, text));
}

/* Several changes together are too long for 80 columns: each has a row, the last beside the figures. */
static void what_cells(sn_table *table, const char *what) {
  const char *plus = strlen(what) > WHAT_COLUMNS ? strstr(what, " + ") : NULL;
  for (; plus; what = plus + 1, plus = strstr(what + 1, " + ")) {
    sn_table_cell(table, "  %.*s", (int)(plus - what), what);
    for (int i = 1; i < CHANGE_COLUMNS; i++) sn_table_cell(table, "%s", "");
  }
  sn_table_cell(table, "  %s", what);
}

static uint64_t tenths(uint64_t bytes) {
  return (uint64_t)((double)bytes / GIB * 10 + 0.5);
}

/* What it takes where there is room may be more than what the verdict says that it needs: workspaces, and what the
 * allocator would give back. */
static bool takes_more(const sn_answer *a, const sn_answer_change *c) {
  return c->kind == SN_CHANGE_NONE && tenths(c->device_bytes) > tenths(a->needed_bytes);
}

static void change_cells(sn_table *table, const sn_answer *a, const sn_answer_change *c, bool first) {
  double share = a->usable_bytes ? 100 * (double)c->device_bytes / (double)a->usable_bytes : 0;
  what_cells(table, c->what);
  sn_table_cell(table, "%.1f GiB", (double)c->device_bytes / GIB);
  sn_table_cell(table, "%.0f %%", share);
  time_cell(table, a, (double)c->iteration_ns / 1e6);
  time_cell(table, a, c->images_per_second);
  if (c->host_bytes > 0)
    sn_table_cell(table, "%s%.0f GiB RAM%s", first ? "<- do this, " : "", (double)c->host_bytes / GIB + 0.5,
                  a->gpus > 1 ? " a GPU" : "");
  else if (takes_more(a, c))
    sn_table_cell(table, "%.1f will do", (double)a->needed_bytes / GIB);
  else
    sn_table_cell(table, first ? "<- do this" : "");
}

static sn_status print_changes(const sn_answer *a, const char *unit, const sn_out *out, sn_err *err) {
  char speed[32];
  bool yes = a->verdict == SN_VERDICT_YES;
  snprintf(speed, sizeof speed, "%s/s", strcmp(unit, "sequences") == 0 ? "seq" : unit); /* 80 columns are few */
  const sn_table_column columns[CHANGE_COLUMNS] = {
      {"", yes ? "  what else there is to gain" : "  what to change", SN_TABLE_TEXT},
      {"", "GPU memory", SN_TABLE_NUMBER},
      {"", "", SN_TABLE_NUMBER},
      {"", "ms/step", SN_TABLE_NUMBER},
      {"", speed, SN_TABLE_NUMBER},
      {"", "", SN_TABLE_TEXT | SN_TABLE_GAP | SN_TABLE_WRAP},
  };
  sn_table *table = sn_table_new(columns, CHANGE_COLUMNS);
  for (uint32_t i = 0; i < a->n_changes; i++)
    change_cells(table, a, &a->changes[i], i == 0 && a->changes[i].kind != SN_CHANGE_NONE && !yes);
  fputs("\n", out->stream);
  sn_status status = sn_out_table(out, table, err);
  sn_table_free(table);
  return status;
}

/* No card of this size holds it, whatever is changed, or adapters alone; there may be one or several. */
static void print_no_change(const sn_answer *a, FILE *out) {
  bool adapts = a->n_changes > 0 && a->changes[0].kind == SN_CHANGE_LORA && a->gpus > 1;
  if (a->verdict != SN_VERDICT_NO || !a->searched || !*a->memory_band || (a->n_changes > 0 && !adapts)) return;
  fputs(adapts ? "  With all of it trained" : "  No change makes it fit", out);
  if (a->gpus > 1)
    fprintf(out, ": other splits may fit (snsim advise --gpus %" PRIu32 "),\n  or more GPUs (snsim fit --min gpus).\n",
            a->gpus);
  else
    fputs(": it takes a larger GPU, or more of them.\n", out);
}

static void print_calls(const sn_answer_change *c, FILE *out) {
  for (uint32_t i = 0; i < c->n_calls; i++) {
    fputs(i ? "              " : "  in PyTorch: ", out);
    sn_table_print_clean(out, c->calls[i]);
    fputs("\n", out);
  }
}

/* "##########", as long as the group is large; the largest has `room` of them. */
static const char *bar_of(uint64_t bytes, uint64_t largest, int room, char *text) {
  size_t length = largest ? (size_t)((double)bytes / (double)largest * room + 0.5) : 0;
  memset(text, '#', length);
  text[length] = '\0';
  return text;
}

/* What groups are told in, by all of them together. */
typedef struct group_unit {
  const char *name;
  double bytes;
} group_unit;

static group_unit unit_for(uint64_t bytes) {
  return (double)bytes < 0.1 * GIB ? (group_unit){"MiB", MIB} : (group_unit){"GiB", GIB};
}

static int decimals(double value) {
  return value < 0.05 ? 2 : 1;
}

/* Names come from the user's model, made safe for a terminal. */
static void print_group(const sn_answer_group *g, uint64_t largest, int width, int bar_room, group_unit in, FILE *out) {
  char bar[LONGEST_BAR + 1], name[80];
  double value = (double)g->bytes / in.bytes;
  snprintf(name, sizeof name, "%s", g->name);
  fprintf(out, "    %-*s %-*s %5.*f", width, sn_table_clean(name), bar_room, bar_of(g->bytes, largest, bar_room, bar),
          decimals(value), value);
  fputs(*g->advice ? "  " : "", out);
  sn_table_print_clean(out, g->advice);
  fputs("\n", out);
}

/* What is needed and is no tensor's. */
static void print_beside(const sn_answer *a, uint64_t tensors, FILE *out) {
  const group_unit in = unit_for(tensors);
  const int digits = in.bytes < GIB ? 1 : 2;
  fprintf(out, "  beside them: context %.*f", digits, (double)a->context_bytes / in.bytes);
  if (a->needed_bytes > tensors + a->context_bytes)
    fprintf(out, ", allocator's slack %.*f", digits, (double)(a->needed_bytes - tensors - a->context_bytes) / in.bytes);
  fputs("\n", out);
}

static void print_groups(const sn_answer *a, FILE *out) {
  uint64_t all = 0, largest = 0;
  int width = 0;
  for (uint32_t i = 0; i < a->n_groups; i++) {
    int length = (int)strlen(a->groups[i].name);
    all += a->groups[i].bytes;
    if (a->groups[i].bytes > largest) largest = a->groups[i].bytes;
    if (length > width) width = length;
  }
  int room = width > 80 - BESIDE_BAR - LONGEST_BAR ? 80 - BESIDE_BAR - width : LONGEST_BAR;
  if (room < SHORTEST_BAR) room = SHORTEST_BAR;
  const group_unit in = unit_for(all);
  fprintf(out, "\n  where %.*f %s are ", in.bytes == GIB && (double)all < GIB ? 2 : 1, (double)all / in.bytes, in.name);
  sn_table_print_clean(out, a->moment);
  fprintf(out, " (step %" PRIu32 " of %" PRIu32 ")\n", a->step, a->n_steps);
  for (uint32_t i = 0; i < a->n_groups; i++) print_group(&a->groups[i], largest, width, room, in, out);
  print_beside(a, all, out);
}

/* The length of what of a text stands in one line of so many columns: up to a blank, or a whole word where none fits. */
static size_t line_length(const char *text, size_t columns) {
  size_t all = strcspn(text, "\n"), fits = 0;
  if (all <= columns) return all;
  for (size_t i = 1; i < all && (i <= columns || fits == 0); i++)
    if (text[i] == ' ') fits = i;
  return fits ? fits : all;
}

/* Each of its lines in 80 columns; what goes on is set in. */
static void print_note(const char *note, FILE *out) {
  bool goes_on = false;
  while (*note) {
    size_t length = line_length(note, goes_on ? 76 : 78);
    sn_table_printf(out, "%s%.*s\n", goes_on ? "    " : "  ", (int)length, note);
    note += length;
    goes_on = *note == ' ';
    note += *note != '\0';
  }
}

static void print_bands(const sn_answer *a, FILE *out) {
  char text[SN_BANDS_TEXT + 24];
  snprintf(text, sizeof text, "%.*s;", SN_BANDS_TEXT, a->memory_band);
  print_note(text, out);
  snprintf(text, sizeof text, "%.*s (docs/truth.md)", SN_BANDS_TEXT, a->time_band);
  print_note(text, out);
}

sn_status sn_answer_print(const sn_answer *a, const char *unit, const char *epoch, const sn_out *out, sn_err *err) {
  print_verdict(a, out);
  bool only_as_is = a->n_changes == 1 && a->changes[0].kind == SN_CHANGE_NONE && a->verdict == SN_VERDICT_YES;
  if (a->n_changes > 0 && !only_as_is) {
    if (print_changes(a, unit, out, err) != SN_OK) return err->code;
  }
  if (a->n_changes > 0) print_calls(&a->changes[0], out->stream);
  print_no_change(a, out->stream);
  print_note(a->note, out->stream);
  if (*a->memory_band) print_bands(a, out->stream);
  print_note(epoch, out->stream);
  if (a->n_groups > 0) print_groups(a, out->stream);
  return SN_OK;
}
