/* Picture of a sweep: which of its points it shows (one network, GPU and set of options; the curves are strategies),
 * and drawing them. An axis with one value needs no choice; of several the one that was asked for is drawn. */
#include "base/arena.h"
#include "plots/plot.h"
#include "plots/plot_internal.h"

#include <inttypes.h>
#include <string.h>

/* ---- which points ---- */

typedef struct choice {
  const sn_sweep *sweep;
  const sn_sweep_row **rows; /* what is left of its points */
  uint32_t n_rows;
} choice;

static const char *net_of(const sn_sweep_row *row) {
  return row->net;
}
static const char *gpu_of(const sn_sweep_row *row) {
  return row->gpu;
}
static const char *workspace_of(const sn_sweep_row *row) {
  return row->workspace;
}
static const char *external_of(const sn_sweep_row *row) {
  return row->external;
}
static const char *allocator_of(const sn_sweep_row *row) {
  return row->allocator;
}
static const char *strategy_of(const sn_sweep_row *row) {
  return row->strategy;
}

const sn__axis sn__axes[SN__AXES] = {
    [SN__AXIS_NET] = {"net", net_of},
    [SN__AXIS_GPU] = {"gpu", gpu_of},
    [SN__AXIS_WORKSPACE] = {"workspace", workspace_of},
    [SN__AXIS_EXTERNAL] = {"external", external_of},
    [SN__AXIS_ALLOCATOR] = {"allocator", allocator_of},
    [SN__AXIS_STRATEGY] = {"strategy", strategy_of},
};

/* The values that the rows have, as a list for people. */
static void list_values(const choice *c, const sn__axis *a, char *out, size_t room) {
  size_t used = 0;
  const char *last = "";
  out[0] = '\0';
  for (uint32_t i = 0; i < c->n_rows && used < room; i++) {
    const char *value = a->value(c->rows[i]);
    if (strcmp(value, last) == 0) continue;
    bool before = false;
    for (uint32_t j = 0; j < i && !before; j++) before = strcmp(value, a->value(c->rows[j])) == 0;
    if (!before) used += (size_t)snprintf(out + used, room - used, "%s%.60s", used ? ", " : "", value);
    last = value;
  }
}

static bool is_one(const choice *c, const sn__axis *a) {
  for (uint32_t i = 1; i < c->n_rows; i++)
    if (strcmp(a->value(c->rows[0]), a->value(c->rows[i])) != 0) return false;
  return true;
}

static bool has(const choice *c, const sn__axis *a, const char *wanted) {
  for (uint32_t i = 0; i < c->n_rows; i++)
    if (strcmp(a->value(c->rows[i]), wanted) == 0) return true;
  return false;
}

static void keep(choice *c, const sn__axis *a, const char *wanted) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < c->n_rows; i++)
    if (strcmp(a->value(c->rows[i]), wanted) == 0) c->rows[kept++] = c->rows[i];
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

static sn_status choose_pool(choice *c, uint64_t wanted, sn_err *err) {
  uint32_t kept = 0;
  bool one = true;
  for (uint32_t i = 1; i < c->n_rows; i++) one = one && c->rows[i]->pool_limit_bytes == c->rows[0]->pool_limit_bytes;
  if (one) return SN_OK;
  for (uint32_t i = 0; i < c->n_rows; i++)
    if (c->rows[i]->pool_limit_bytes == wanted) c->rows[kept++] = c->rows[i];
  c->n_rows = kept;
  if (kept > 0) return SN_OK;
  return sn_fail(err, SN_BAD_USAGE,
                 "sweep %" PRId64 " has points of several pools, but none of that size; choose with --pool",
                 c->sweep->head.id);
}

static sn_status choose_rows(const sn_sweep_plot *plot, choice *c, sn_err *err) {
  const char *wanted[] = {[SN__AXIS_NET] = plot->net,
                          [SN__AXIS_GPU] = plot->gpu,
                          [SN__AXIS_WORKSPACE] = plot->workspace,
                          [SN__AXIS_EXTERNAL] = plot->external,
                          [SN__AXIS_ALLOCATOR] = plot->allocator};
  c->rows = sn_arena_alloc(c->sweep->arena, c->sweep->n_rows, sizeof(sn_sweep_row *));
  if (!c->rows) return sn_fail_memory(err);
  for (uint32_t i = 0; i < c->sweep->n_rows; i++)
    if (!c->sweep->rows[i].failure[0]) c->rows[c->n_rows++] = &c->sweep->rows[i];
  if (c->n_rows == 0)
    return sn_fail(err, SN_BAD_INPUT, "sweep %" PRId64 " has no computed point yet; snsim sweep %" PRId64 " goes on",
                   c->sweep->head.id, c->sweep->head.id);
  for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
    if (choose_axis(c, &sn__axes[i], wanted[i], err) != SN_OK) return err->code;
  return choose_pool(c, plot->pool_limit_bytes, err);
}

/* ---- which strategies ---- */

static const char *const usual[] = {"baseline", "liveness", "liveness+offload", "liveness+offload+recompute=cost",
                                    "liveness+cache+recompute=cost"};
enum { N_USUAL = sizeof usual / sizeof usual[0] };

static sn_status add_named(const choice *c, const char *name, sn__sweep_chart *chart, sn_err *err) {
  char values[400];
  if (has(c, &sn__axes[SN__AXIS_STRATEGY], name)) {
    chart->strategies[chart->n_strategies++] = name;
    return SN_OK;
  }
  list_values(c, &sn__axes[SN__AXIS_STRATEGY], values, sizeof values);
  return sn_fail(err, SN_BAD_USAGE, "sweep %" PRId64 " has no strategy \"%.100s\"; it has %s", c->sweep->head.id, name,
                 values);
}

static void add_all(const choice *c, sn__sweep_chart *chart) {
  for (uint32_t i = 0; i < c->n_rows; i++) {
    bool there = false;
    for (unsigned s = 0; s < chart->n_strategies; s++)
      there = there || strcmp(chart->strategies[s], c->rows[i]->strategy) == 0;
    if (!there && chart->n_strategies < SN__SWEEP_CURVES)
      chart->strategies[chart->n_strategies++] = c->rows[i]->strategy;
  }
}

static sn_status choose_strategies(const choice *c, const sn_plot_options *options, sn__sweep_chart *chart,
                                   sn_err *err) {
  for (unsigned i = 0; options->strategies && i < options->n_strategies && i < SN__SWEEP_CURVES; i++)
    if (add_named(c, options->strategies[i], chart, err) != SN_OK) return err->code;
  for (unsigned i = 0; !options->strategies && options->kind != SN_PLOT_MAP && i < N_USUAL; i++)
    if (has(c, &sn__axes[SN__AXIS_STRATEGY], usual[i])) chart->strategies[chart->n_strategies++] = usual[i];
  if (chart->n_strategies == 0 || (options->kind == SN_PLOT_MAP && !options->strategies)) add_all(c, chart);
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
  if (choose_rows(plot, &c, err) != SN_OK || choose_strategies(&c, &plot->options, &chart, err) != SN_OK)
    return err->code;
  chart.rows = c.rows;
  chart.n_rows = c.n_rows;
  sn__text_size(&plot->options, &chart.columns, &chart.lines);
  bool is_map = plot->options.kind == SN_PLOT_MAP;
  if (is_map && !plot->options.path) {
    sn__sweep_map_text(plot->options.terminal, &chart);
    return SN_OK;
  }
  const sn__drawing drawing = {is_map ? write_map : write_chart, &chart, form, sweep->head.created, chart.n_strategies};
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
