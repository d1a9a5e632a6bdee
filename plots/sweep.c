/* Picture of a sweep: what it is drawn over, which of its points it shows (one value of every other axis; the curves
 * are strategies), and drawing them. An axis with one value needs no choice; of several the one that was asked for is
 * drawn. */
#include "base/arena.h"
#include "models/zoo/zoo.h"
#include "plots/plot.h"
#include "plots/plot_internal.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* ---- which points ---- */

typedef struct choice {
  const sn_sweep *sweep;
  const sn_sweep_row **rows; /* what is left of its points */
  uint32_t n_rows;
} choice;

const sn__axis sn__axis_net = {"net", offsetof(sn_sweep_row, net)}, sn__axis_gpu = {"gpu", offsetof(sn_sweep_row, gpu)},
               sn__axis_strategy = {"strategy", offsetof(sn_sweep_row, strategy)};

sn__axis sn__axis_of(const sn_condition *condition) {
  return (sn__axis){condition->name, offsetof(sn_sweep_row, conditions) + condition->offset};
}

static bool is_axis(const sn_condition *c) {
  return c->kind == SN_CONDITION_WORD && c->axis;
}

int sn__axes(sn__axis axes[SN__AXES]) {
  int count = 0;
  axes[count++] = sn__axis_net;
  axes[count++] = sn__axis_gpu;
  for (int i = 0; i < SN_CONDITION_ROWS; i++)
    if (is_axis(&sn_condition_table[i])) axes[count++] = sn__axis_of(&sn_condition_table[i]);
  axes[count++] = sn__axis_strategy;
  return count;
}

/* The values that the rows have, as a list for people. */
static void list_values(const choice *c, const sn__axis *a, char *out, size_t room) {
  size_t used = 0;
  const char *last = "";
  out[0] = '\0';
  for (uint32_t i = 0; i < c->n_rows && used < room; i++) {
    const char *value = sn__axis_value(a, c->rows[i]);
    if (strcmp(value, last) == 0) continue;
    bool before = false;
    for (uint32_t j = 0; j < i && !before; j++) before = strcmp(value, sn__axis_value(a, c->rows[j])) == 0;
    if (!before) used += (size_t)snprintf(out + used, room - used, "%s%.60s", used ? ", " : "", value);
    last = value;
  }
}

static bool is_one(const choice *c, const sn__axis *a) {
  for (uint32_t i = 1; i < c->n_rows; i++)
    if (strcmp(sn__axis_value(a, c->rows[0]), sn__axis_value(a, c->rows[i])) != 0) return false;
  return true;
}

static bool has(const choice *c, const sn__axis *a, const char *wanted) {
  for (uint32_t i = 0; i < c->n_rows; i++)
    if (strcmp(sn__axis_value(a, c->rows[i]), wanted) == 0) return true;
  return false;
}

static void keep(choice *c, const sn__axis *a, const char *wanted) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < c->n_rows; i++)
    if (strcmp(sn__axis_value(a, c->rows[i]), wanted) == 0) c->rows[kept++] = c->rows[i];
  c->n_rows = kept;
}

static sn_status choose_axis(choice *c, const sn__axis *a, const char *wanted, sn_err *err) {
  char values[300];
  if (is_one(c, a)) return SN_OK;
  if (wanted && has(c, a, wanted)) {
    keep(c, a, wanted);
    return SN_OK;
  }
  list_values(c, a, values, sizeof values);
  return sn_fail(err, SN_BAD_USAGE, "sweep %" PRId64 " has points of more than one %s; choose with --%s one of %s",
                 c->sweep->head.id, a->name, a->name, values);
}

/* ---- axes of numbers, and what the picture is drawn over ---- */

typedef uint64_t number_of(const sn_sweep_row *row);

static uint64_t batch_of(const sn_sweep_row *row) {
  return row->batch;
}
static uint64_t pool_of(const sn_sweep_row *row) {
  return row->conditions.pool_limit_bytes;
}
static uint64_t memory_of(const sn_sweep_row *row) {
  return row->memory_bytes;
}
static uint64_t image_of(const sn_sweep_row *row) {
  return row->image;
}
static uint64_t accumulate_of(const sn_sweep_row *row) {
  return row->conditions.accumulate;
}
static const char *const x_names[SN_PLOT_XS] = {
    [SN_PLOT_X_BATCH] = "batch", [SN_PLOT_X_POOL] = "pool", [SN_PLOT_X_MEMORY] = "memory",
    [SN_PLOT_X_IMAGE] = "image", [SN_PLOT_X_GPU] = "gpu",   [SN_PLOT_X_WORLD] = "world"};
static number_of *const x_numbers[SN_PLOT_X_GPU] = {[SN_PLOT_X_BATCH] = batch_of,
                                                    [SN_PLOT_X_POOL] = pool_of,
                                                    [SN_PLOT_X_MEMORY] = memory_of,
                                                    [SN_PLOT_X_IMAGE] = image_of};

sn_status sn_plot_x_parse(const char *text, sn_plot_x *x, sn_err *err) {
  for (int i = SN_PLOT_X_BATCH; i < SN_PLOT_XS; i++) {
    if (strcmp(x_names[i], text) != 0) continue;
    *x = (sn_plot_x)i;
    return SN_OK;
  }
  return sn_fail(err, SN_BAD_USAGE, "--x: \"%.80s\" is none of batch, pool, memory, image, gpu, world", text);
}

uint64_t sn__sweep_x(const sn__sweep_chart *chart, const sn_sweep_row *row) {
  uint64_t at = 0;
  if (chart->x == SN_PLOT_X_WORLD) return sn__sweep_world(row);
  if (chart->x != SN_PLOT_X_GPU) return x_numbers[chart->x](row);
  while (at < chart->n_gpus && strcmp(chart->gpus[at], row->gpu) != 0) at++;
  return at + 1;
}

static const char *number_text(sn_plot_x x, uint64_t value, char text[SN__SWEEP_X_TEXT]) {
  bool gib = value >= UINT64_C(1) << 30;
  if (x == SN_PLOT_X_BATCH || x == SN_PLOT_X_WORLD || (x == SN_PLOT_X_IMAGE && value))
    snprintf(text, SN__SWEEP_X_TEXT, "%" PRIu64, value);
  else if (value)
    snprintf(text, SN__SWEEP_X_TEXT, "%.4g %s", (double)value / (gib ? 1073741824.0 : 1048576.0), gib ? "GiB" : "MiB");
  else
    snprintf(text, SN__SWEEP_X_TEXT, "%s", x == SN_PLOT_X_POOL ? "all" : "own");
  return text;
}

const char *sn__sweep_x_text(const sn__sweep_chart *chart, uint64_t value, char text[SN__SWEEP_X_TEXT]) {
  if (chart->x != SN_PLOT_X_GPU) return number_text(chart->x, value, text);
  snprintf(text, SN__SWEEP_X_TEXT, "%.32s", value <= chart->n_gpus ? chart->gpus[value - 1] : "");
  return text;
}

/* A GPU's points with one image lie together; that its memory is another one than another GPU's makes no axis. */
static bool is_one_number(const choice *c, sn_plot_x x) {
  for (uint32_t i = 1; i < c->n_rows; i++) {
    bool apart = x == SN_PLOT_X_MEMORY && strcmp(c->rows[i]->gpu, c->rows[i - 1]->gpu) != 0;
    if (!apart && x_numbers[x](c->rows[i]) != x_numbers[x](c->rows[i - 1])) return false;
  }
  return true;
}

/* As options take it. */
static const char *exact_text(sn_plot_x x, uint64_t value, char text[SN__SWEEP_X_TEXT]) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB"};
  unsigned unit = 0;
  if ((x != SN_PLOT_X_POOL && x != SN_PLOT_X_MEMORY) || value == 0) return number_text(x, value, text);
  for (; unit < 3 && value % 1024 == 0; unit++) value /= 1024;
  snprintf(text, SN__SWEEP_X_TEXT, "%" PRIu64 "%s", value, units[unit]);
  return text;
}

static void list_numbers(const choice *c, sn_plot_x x, char *out, size_t room) {
  enum { MOST = 12 };
  char text[SN__SWEEP_X_TEXT];
  uint64_t listed[MOST];
  unsigned count = 0;
  size_t used = 0;
  out[0] = '\0';
  for (uint32_t i = 0; i < c->n_rows && used < room; i++) {
    uint64_t value = x_numbers[x](c->rows[i]);
    bool known = false;
    for (unsigned k = 0; k < count; k++) known = known || listed[k] == value;
    if (known) continue;
    if (count == MOST) {
      snprintf(out + used, room - used, ", ..");
      return;
    }
    listed[count++] = value;
    used += (size_t)snprintf(out + used, room - used, "%s%s", used ? ", " : "", exact_text(x, value, text));
  }
}

static uint32_t keep_number(choice *c, number_of *number, uint64_t wanted) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < c->n_rows; i++) kept += number(c->rows[i]) == wanted;
  if (kept == 0) return 0;
  kept = 0;
  for (uint32_t i = 0; i < c->n_rows; i++)
    if (number(c->rows[i]) == wanted) c->rows[kept++] = c->rows[i];
  c->n_rows = kept;
  return kept;
}

static sn_status choose_number(choice *c, sn_plot_x x, uint64_t wanted, sn_err *err) {
  char values[400];
  if (is_one_number(c, x) || keep_number(c, x_numbers[x], wanted) > 0) return SN_OK;
  list_numbers(c, x, values, sizeof values);
  bool tokens = x == SN_PLOT_X_IMAGE && sn_net_is_sequence(c->rows[0]->net);
  const char *name = tokens ? "sequence" : x_names[x];
  return sn_fail(err, SN_BAD_USAGE,
                 "sweep %" PRId64
                 " has points of more than one %s; choose with --%s one of %s, or draw over it: --x %s",
                 c->sweep->head.id, name, name, values, x_names[x]);
}

static sn_plot_x choose_x(const sn_sweep_plot *plot, const choice *c) {
  const bool chosen[SN_PLOT_XS] = {[SN_PLOT_X_BATCH] = plot->batch > 0,
                                   [SN_PLOT_X_POOL] = plot->conditions.pool_limit_bytes > 0,
                                   [SN_PLOT_X_MEMORY] = plot->memory_bytes > 0,
                                   [SN_PLOT_X_IMAGE] = plot->image > 0};
  if (plot->x != SN_PLOT_X_AUTO) return plot->x;
  for (sn_plot_x x = SN_PLOT_X_BATCH; x < SN_PLOT_X_GPU; x++)
    if (!chosen[x] && !is_one_number(c, x)) return x;
  return !plot->gpu && !is_one(c, &sn__axis_gpu) ? SN_PLOT_X_GPU : SN_PLOT_X_BATCH;
}

/* The numbers besides x. */
static sn_status choose_numbers(const sn_sweep_plot *plot, choice *c, sn_plot_x x, sn_err *err) {
  const uint64_t wanted[SN_PLOT_X_GPU] = {[SN_PLOT_X_BATCH] = plot->batch,
                                          [SN_PLOT_X_POOL] = plot->conditions.pool_limit_bytes,
                                          [SN_PLOT_X_MEMORY] = plot->memory_bytes,
                                          [SN_PLOT_X_IMAGE] = plot->image};
  for (sn_plot_x other = SN_PLOT_X_BATCH; other < SN_PLOT_X_GPU; other++)
    if (other != x && choose_number(c, other, wanted[other], err) != SN_OK) return err->code;
  return SN_OK;
}

static int compare(const void *a, const void *b, number_of *number) {
  const sn_sweep_row *p = *(const sn_sweep_row *const *)a, *q = *(const sn_sweep_row *const *)b;
  uint64_t x = number(p) - 1, y = number(q) - 1; /* 0, which is no size, comes last */
  if (x != y) return x < y ? -1 : 1;
  return p->point < q->point ? -1 : p->point > q->point;
}
static int by_pool(const void *a, const void *b) {
  return compare(a, b, pool_of);
}
static int by_memory(const void *a, const void *b) {
  return compare(a, b, memory_of);
}
static int by_world(const void *a, const void *b) {
  return compare(a, b, sn__sweep_world);
}
static int by_image(const void *a, const void *b) {
  return compare(a, b, image_of);
}

/* Points are stored by batch and by GPU. */
static void sort(choice *c, sn_plot_x x) {
  int (*const order[SN_PLOT_XS])(const void *, const void *) = {[SN_PLOT_X_POOL] = by_pool,
                                                                [SN_PLOT_X_MEMORY] = by_memory,
                                                                [SN_PLOT_X_IMAGE] = by_image,
                                                                [SN_PLOT_X_WORLD] = by_world};
  if (order[x]) qsort(c->rows, c->n_rows, sizeof(const sn_sweep_row *), order[x]);
}

bool sn__sweep_is_of_sequences(const sn__sweep_chart *chart) {
  return sn_net_is_sequence(chart->rows[0]->net);
}

static void note_gpus(const choice *c, sn__sweep_chart *chart) {
  chart->n_gpus = 0;
  for (uint32_t i = 0; i < c->n_rows; i++)
    if (sn__sweep_x(chart, c->rows[i]) > chart->n_gpus && chart->n_gpus < SN__SWEEP_GPUS)
      chart->gpus[chart->n_gpus++] = c->rows[i]->gpu;
}

static sn_status take_rows(choice *c, sn_err *err) {
  c->rows = sn_arena_alloc(c->sweep->arena, c->sweep->n_rows, sizeof(sn_sweep_row *));
  if (!c->rows) return sn_fail_memory(err);
  for (uint32_t i = 0; i < c->sweep->n_rows; i++)
    if (!c->sweep->rows[i].failure[0]) c->rows[c->n_rows++] = &c->sweep->rows[i];
  if (c->n_rows > 0) return SN_OK;
  return sn_fail(err, SN_BAD_INPUT,
                 "sweep %" PRId64 " has no computed point yet; snsim sweep %" PRId64 " computes them",
                 c->sweep->head.id, c->sweep->head.id);
}

/* One batch an update where that is among them and nothing else was asked for, else the first that there is. */
static sn_status choose_accumulate(choice *c, uint32_t wanted, sn_err *err) {
  if (keep_number(c, accumulate_of, wanted ? wanted : 1) > 0) return SN_OK;
  if (wanted)
    return sn_fail(err, SN_BAD_USAGE,
                   "sweep %" PRId64 " has no points of %" PRIu32 " batches an update; snsim show "
                   "sweep:%" PRId64 " shows which it has",
                   c->sweep->head.id, wanted, c->sweep->head.id);
  keep_number(c, accumulate_of, c->rows[0]->conditions.accumulate);
  return SN_OK;
}

static bool has_switch(const sn_sweep_row *row, const sn_condition *condition, bool on) {
  return *(const bool *)sn_condition_of(condition, &row->conditions) == on;
}

/* A word has to be one of those there are; of a switch those points are left that have it so, if there are any. */
static sn_status choose_condition(choice *c, const sn_condition *condition, const sn_conditions *wanted, sn_err *err) {
  char room[SN_CONDITION_TEXT];
  const sn__axis axis = sn__axis_of(condition);
  if (is_axis(condition)) return choose_axis(c, &axis, sn_condition_text(condition, wanted, room), err);
  if (condition->kind != SN_CONDITION_FLAG || !condition->axis) return SN_OK;
  const bool on = *(const bool *)sn_condition_of(condition, wanted);
  uint32_t kept = 0;
  for (uint32_t i = 0; i < c->n_rows; i++) kept += has_switch(c->rows[i], condition, on);
  if (kept == 0) return SN_OK;
  kept = 0;
  for (uint32_t i = 0; i < c->n_rows; i++)
    if (has_switch(c->rows[i], condition, on)) c->rows[kept++] = c->rows[i];
  c->n_rows = kept;
  return SN_OK;
}

/* What a title has to tell as the points of the sweep differ in it. */
static void find_differences(const choice *c, sn__sweep_chart *chart) {
  for (uint32_t i = 1; i < c->n_rows; i++) {
    const sn_conditions *a = &c->rows[0]->conditions, *b = &c->rows[i]->conditions;
    chart->of_optimizers = chart->of_optimizers || strcmp(a->optimizer, b->optimizer) != 0;
    chart->of_precisions = chart->of_precisions || strcmp(a->precision, b->precision) != 0;
    chart->of_accumulates = chart->of_accumulates || a->accumulate != b->accumulate;
  }
}

static const sn_condition *condition_called(const char *name) {
  uint32_t i = 0;
  while (i + 1 < SN_CONDITION_ROWS && strcmp(sn_condition_table[i].name, name) != 0) i++;
  return &sn_condition_table[i];
}

/* Over the number of GPUs: where that is asked for, or there are several meshes, and one of them is not. */
static bool is_over_world(const sn_sweep_plot *plot, const choice *c) {
  const sn__axis meshes = sn__axis_of(condition_called("parallel"));
  if (plot->x != SN_PLOT_X_AUTO) return plot->x == SN_PLOT_X_WORLD;
  return !*plot->conditions.parallel && !is_one(c, &meshes);
}

/* All words but the mesh, where it is drawn over. */
static sn_status choose_conditions(const sn_sweep_plot *plot, choice *c, bool over_world, sn_err *err) {
  const sn_condition *mesh = condition_called("parallel");
  for (int i = 0; i < SN_CONDITION_ROWS && err->code == SN_OK; i++)
    if (!over_world || &sn_condition_table[i] != mesh)
      choose_condition(c, &sn_condition_table[i], &plot->conditions, err);
  return err->code;
}

/* One of them, as meshes are the curves. */
static sn_status choose_strategy(const sn_plot_options *options, choice *c, sn_err *err) {
  const char *wanted = options->strategies ? options->strategies[0] : "pytorch";
  if (options->kind == SN_PLOT_MAP)
    return sn_fail(err, SN_BAD_USAGE,
                   "--kind map is of strategies, and a sweep of several meshes has one of them at "
                   "once; choose a mesh with --parallel");
  if (options->strategies && options->n_strategies > 1)
    return sn_fail(err, SN_BAD_USAGE, "over the number of GPUs the curves are meshes, of one --strategy");
  return choose_axis(c, &sn__axis_strategy, wanted, err);
}

/* Sets what the chart is drawn over, and leaves the points that are drawn. */
static sn_status choose_rows(const sn_sweep_plot *plot, choice *c, sn__sweep_chart *chart, sn_err *err) {
  if (take_rows(c, err) != SN_OK) return err->code;
  find_differences(c, chart);
  if (choose_axis(c, &sn__axis_net, plot->net, err) != SN_OK) return err->code;
  bool over_world = is_over_world(plot, c);
  if (choose_conditions(plot, c, over_world, err) != SN_OK ||
      (over_world && choose_strategy(&plot->options, c, err) != SN_OK))
    return err->code;
  if (choose_accumulate(c, plot->accumulate, err) != SN_OK) return err->code;
  chart->x = over_world ? SN_PLOT_X_WORLD : choose_x(plot, c);
  if (chart->x != SN_PLOT_X_GPU && choose_axis(c, &sn__axis_gpu, plot->gpu ? plot->gpu : "rtx4090", err) != SN_OK)
    return err->code;
  if (choose_numbers(plot, c, chart->x, err) != SN_OK) return err->code;
  sort(c, chart->x);
  if (chart->x == SN_PLOT_X_GPU) note_gpus(c, chart);
  return SN_OK;
}

/* ---- which strategies ---- */

static const char *const usual[] = {"pytorch",
                                    "baseline",
                                    "liveness",
                                    "liveness+offload",
                                    "liveness+offload+recompute=cost",
                                    "liveness+cache+recompute=cost"};
enum { N_USUAL = sizeof usual / sizeof usual[0] };

static sn_status add_named(const choice *c, const char *name, sn__sweep_chart *chart, sn_err *err) {
  char values[400];
  if (has(c, &sn__axis_strategy, name)) {
    chart->curves[chart->n_curves++] = name;
    return SN_OK;
  }
  list_values(c, &sn__axis_strategy, values, sizeof values);
  return sn_fail(err, SN_BAD_USAGE, "sweep %" PRId64 " has no strategy \"%.100s\"; it has %s", c->sweep->head.id, name,
                 values);
}

static void add_all(const choice *c, sn__sweep_chart *chart) {
  for (uint32_t i = 0; i < c->n_rows; i++) {
    bool there = false;
    for (unsigned s = 0; s < chart->n_curves; s++) there = there || strcmp(chart->curves[s], c->rows[i]->strategy) == 0;
    if (!there && chart->n_curves < SN__SWEEP_CURVES) chart->curves[chart->n_curves++] = c->rows[i]->strategy;
  }
}

/* Of many the usual ones, where there are any. */
static void keep_usual(const choice *c, sn__sweep_chart *chart) {
  unsigned kept = 0;
  for (unsigned i = 0; i < N_USUAL; i++)
    if (has(c, &sn__axis_strategy, usual[i])) chart->curves[kept++] = usual[i];
  if (kept > 0) chart->n_curves = kept;
}

static sn_status choose_strategies(const choice *c, const sn_plot_options *options, sn__sweep_chart *chart,
                                   sn_err *err) {
  if (chart->x == SN_PLOT_X_WORLD) {
    sn__sweep_add_schemes(chart, c->rows, c->n_rows);
    return SN_OK;
  }
  for (unsigned i = 0; options->strategies && i < options->n_strategies && i < SN__SWEEP_CURVES; i++)
    if (add_named(c, options->strategies[i], chart, err) != SN_OK) return err->code;
  if (chart->n_curves > 0) return SN_OK;
  add_all(c, chart);
  if (options->kind != SN_PLOT_MAP && chart->n_curves > N_USUAL) keep_usual(c, chart);
  return SN_OK;
}

/* ---- drawing ---- */

static sn_status write_chart(FILE *out, const void *chart, sn_err *err) {
  (void)err;
  sn__sweep_script_write(out, chart);
  return SN_OK;
}

static sn_status write_map(FILE *out, const void *chart, sn_err *err) {
  (void)err;
  sn__sweep_map_write(out, chart);
  return SN_OK;
}

/* Text of a map is written without gnuplot; its errors stay in the stream. */
static sn_status draw(const sn_sweep *sweep, const sn_sweep_plot *plot, sn__form form, sn_err *err) {
  choice c = {.sweep = sweep};
  sn__sweep_chart chart = {.form = form};
  if (choose_rows(plot, &c, &chart, err) != SN_OK || choose_strategies(&c, &plot->options, &chart, err) != SN_OK)
    return err->code;
  chart.rows = c.rows;
  chart.n_rows = c.n_rows;
  sn__text_size(&plot->options, &chart.columns, &chart.lines);
  bool is_map = plot->options.kind == SN_PLOT_MAP;
  if (is_map && !plot->options.path) {
    sn__sweep_map_text(plot->options.terminal, &chart);
    return SN_OK;
  }
  const sn__drawing drawing = {is_map ? write_map : write_chart, &chart, form, sweep->head.created, chart.n_curves};
  return sn__draw(&drawing, &plot->options, err);
}

sn_status sn_plot_sweep(sn_store *store, int64_t id, const sn_sweep_plot *plot, sn_err *err) {
  sn__form form;
  if (sn__form_find(plot->options.path, &form, err) != SN_OK) return err->code;
  sn_sweep *sweep = sn_sweep_get(store, id, err);
  if (!sweep) return err->code;
  draw(sweep, plot, form, err);
  sn_sweep_free(sweep);
  return err->code;
}
