/* Script: the picture of a sweep as a gnuplot script. Two panels over one axis, named above them since numbers of any
 * width stand beside them: memory, with what there is as a line, and images per second, whose curves end where a
 * strategy stops fitting. One legend below serves both. Where pools are limited memory is the pool's and the line their
 * limit; else both are the device's.
 *
 * Memory is shown up to twice what there is: how far a strategy misses beyond that is of no use, and would flatten what
 * does fit. Where there is more than four times what is needed, the line is left out for the same reason and the legend
 * says so. Values that grow by a factor get a logarithmic axis; a pool of all that there is and an image of the
 * network's own are no numbers and stand to the right of those. GPUs stand side by side. Cost: O(points * strategies).
 */
#include "models/zoo/zoo.h"
#include "plots/plot_internal.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

typedef struct frame {
  const sn__sweep_chart *chart;
  const char *unit;
  double unit_bytes;
  bool of_pool;                    /* memory is the pool's */
  uint64_t limit_bytes;            /* the largest there is; 0: none */
  uint64_t least_bytes;            /* the smallest */
  uint64_t top_bytes;              /* of the axis */
  bool has_limit, varies;          /* the limit is drawn; differs along x */
  bool is_log, has_other;          /* of x; has points without a number */
  double x_unit, low, high, other; /* other: where those stand */
  double most_images, least_images;
  uint64_t least_need; /* bytes of the point that needs least */
} frame;

bool sn__sweep_is_on(const sn__sweep_chart *chart, unsigned curve, const sn_sweep_row *row) {
  if (chart->x == SN_PLOT_X_WORLD) return sn__sweep_is_of_scheme(chart, curve, row);
  return strcmp(chart->curves[curve], row->strategy) == 0;
}

bool sn__sweep_is_drawn(const sn__sweep_chart *chart, const sn_sweep_row *row) {
  for (unsigned s = 0; s < chart->n_curves; s++)
    if (sn__sweep_is_on(chart, s, row)) return true;
  return false;
}

static uint64_t need_of(const frame *f, const sn_sweep_row *row) {
  return f->of_pool ? row->pool_bytes : row->peak_device_bytes;
}

/* 0: none. */
static uint64_t limit_of(const frame *f, const sn_sweep_row *row) {
  return f->of_pool ? row->conditions.pool_limit_bytes : row->memory_bytes;
}

static void measure_row(frame *f, const sn_sweep_row *row) {
  uint64_t value = sn__sweep_x(f->chart, row), limit = limit_of(f, row);
  double x = (double)value / f->x_unit;
  if (need_of(f, row) > f->top_bytes) f->top_bytes = need_of(f, row);
  if (limit > f->limit_bytes) f->limit_bytes = limit;
  if (limit && (f->least_bytes == 0 || limit < f->least_bytes)) f->least_bytes = limit;
  if (value && (f->low == 0 || x < f->low)) f->low = x;
  if (x > f->high) f->high = x;
  f->has_other = f->has_other || value == 0;
  if (f->least_need == 0 || need_of(f, row) < f->least_need) f->least_need = need_of(f, row);
  double speed = row->fits ? row->images_per_second : 0;
  if (speed > f->most_images) f->most_images = speed;
  if (speed > 0 && (f->least_images <= 0 || speed < f->least_images)) f->least_images = speed;
}

/* Half of the points lie in the lowest quarter of their range. */
static bool grows(const frame *f) {
  const sn__sweep_chart *chart = f->chart;
  uint32_t below = 0, count = 0;
  double middle = f->low + (f->high - f->low) / 4.0;
  for (uint32_t i = 0; i < chart->n_rows; i++) {
    uint64_t value = sn__sweep_x(chart, chart->rows[i]);
    count += value > 0;
    below += value > 0 && (double)value / f->x_unit <= middle;
  }
  return chart->x != SN_PLOT_X_GPU && f->high >= 8 * f->low && 2 * below >= count;
}

static bool is_size(sn_plot_x x) {
  return x == SN_PLOT_X_POOL || x == SN_PLOT_X_MEMORY;
}

static void measure_x(frame *f) {
  f->is_log = f->chart->x == SN_PLOT_X_WORLD || grows(f);
  f->other = f->is_log ? 1.41 * f->high : f->high + (f->high > f->low ? 0.15 * (f->high - f->low) : 0.2 * f->high);
  if (f->high == 0) f->low = f->high = f->other = 1; /* nothing but others */
}

static frame measure(const sn__sweep_chart *chart) {
  frame f = {.chart = chart, .x_unit = is_size(chart->x) ? 1073741824.0 : 1};
  for (uint32_t i = 0; i < chart->n_rows; i++) f.of_pool = f.of_pool || chart->rows[i]->conditions.pool_limit_bytes > 0;
  for (uint32_t i = 0; i < chart->n_rows; i++)
    if (sn__sweep_is_drawn(chart, chart->rows[i])) measure_row(&f, chart->rows[i]);
  f.varies = f.limit_bytes != f.least_bytes || (f.of_pool && f.has_other);
  bool world = chart->x == SN_PLOT_X_WORLD; /* whose axis is logarithmic: nothing is flattened */
  f.has_limit = world || f.least_bytes <= 4 * f.top_bytes;
  if (f.top_bytes > 2 * f.limit_bytes && !world) f.top_bytes = 2 * f.limit_bytes;
  if (f.has_limit && f.top_bytes < f.limit_bytes)
    f.top_bytes = world || f.limit_bytes < 4 * f.top_bytes ? f.limit_bytes : 4 * f.top_bytes;
  f.unit = f.top_bytes >= UINT64_C(2) << 30 ? "GiB" : "MiB";
  f.unit_bytes = f.top_bytes >= UINT64_C(2) << 30 ? 1073741824.0 : 1048576.0;
  measure_x(&f);
  return f;
}

void sn__sweep_put_iteration(FILE *out, const sn__sweep_chart *chart) {
  const sn_sweep_row *row = chart->rows[0];
  bool plain = strcmp(row->conditions.optimizer, "momentum") == 0;
  if (row->conditions.inference)
    fputs(", run and not trained", out);
  else if (chart->of_optimizers || !plain)
    fprintf(out, ", %s", row->conditions.optimizer);
  if (chart->of_accumulates || row->conditions.accumulate > 1)
    fprintf(out, ", %" PRIu32 " batch%s an update", row->conditions.accumulate,
            row->conditions.accumulate == 1 ? "" : "es");
  if (chart->of_precisions || strcmp(row->conditions.precision, "fp32") != 0)
    fprintf(out, ", %s", row->conditions.precision);
  if (!*row->conditions.freeze) return;
  fputs(", frozen: ", out);
  sn__put_text(out, row->conditions.freeze, 48);
}

/* What every picture has, unless it is said otherwise, is told only where there is room for it. */
static void put_setting(FILE *out, const char *what, const char *value, const char *usual, bool roomy) {
  if (roomy || strcmp(value, usual) != 0) fprintf(out, ", %s %s", what, value);
}

static void put_settings(FILE *out, const sn__sweep_chart *chart) {
  const sn_sweep_row *row = chart->rows[0];
  bool plain = strcmp(row->conditions.optimizer, "momentum") == 0 && row->conditions.accumulate == 1 &&
               !row->conditions.inference && strcmp(row->conditions.precision, "fp32") == 0 && !*row->conditions.freeze;
  bool roomy = plain && !chart->of_precisions && !chart->of_optimizers && !chart->of_accumulates;
  put_setting(out, "workspace", row->conditions.workspace, "dynamic", roomy);
  put_setting(out, "external memory", row->conditions.external, "host", roomy || row->conditions.shared_link);
  if (row->conditions.shared_link) fputs(" over a shared link", out);
  put_setting(out, "allocator", row->conditions.allocator, "pool", roomy);
  sn__sweep_put_iteration(out, chart);
}

/* What is the same for all points and not what the picture is over. */
static void put_title(FILE *out, const frame *f) {
  const sn_sweep_row *row = f->chart->rows[0];
  sn_plot_x x = f->chart->x;
  char title[SN_NET_SPEC];
  fputs("set multiplot title '", out);
  sn__put_text(out, sn_net_called(row->net, row->net_name, title, sizeof title), 48);
  if (x != SN_PLOT_X_GPU) fputs(" on ", out);
  if (x != SN_PLOT_X_GPU) sn__put_text(out, row->gpu, 32);
  if (x != SN_PLOT_X_BATCH) fprintf(out, ", batch %" PRIu32, row->batch);
  if (x == SN_PLOT_X_WORLD && strcmp(row->strategy, "pytorch") != 0) {
    fputs(", ", out);
    sn__put_text(out, row->strategy, 40);
  }
  if (x != SN_PLOT_X_IMAGE && row->image)
    fprintf(out, sn__sweep_is_of_sequences(f->chart) ? ", sequences of %" PRIu32 " tokens" : ", image %" PRIu32,
            row->image);
  put_settings(out, f->chart);
  if (x != SN_PLOT_X_POOL && row->conditions.pool_limit_bytes)
    fprintf(out, ", pool %.2f GiB", (double)row->conditions.pool_limit_bytes / 1073741824.0);
  fprintf(out, "'%s\n", f->chart->form == SN__FORM_TEXT ? " layout 2,1" : "");
}

static double place_of(const frame *f, uint64_t value) {
  return value ? (double)value / f->x_unit : f->other;
}

static void put_tick(FILE *out, const frame *f, uint64_t value) {
  char text[SN__SWEEP_X_TEXT];
  if (f->chart->x != SN_PLOT_X_GPU && value) {
    fprintf(out, is_size(f->chart->x) ? "'%1$.4g' %1$.9g" : "%1$.9g", place_of(f, value));
    return;
  }
  fputs("'", out);
  sn__put_text(out, sn__sweep_x_text(f->chart, value, text), 32);
  fprintf(out, "' %.9g", place_of(f, value));
}

/* A few values are named themselves, and GPUs always; there are no parts of an image. */
static void put_ticks(FILE *out, const frame *f) {
  enum { FEW = 6 };
  uint64_t values[SN__SWEEP_GPUS];
  unsigned n = 0, most = f->chart->x == SN_PLOT_X_GPU ? SN__SWEEP_GPUS : FEW;
  for (uint32_t i = 0; i < f->chart->n_rows; i++) {
    uint64_t value = sn__sweep_x(f->chart, f->chart->rows[i]);
    bool known = false;
    for (unsigned j = 0; j < n; j++) known = known || values[j] == value;
    if (!known && n == most) return;
    if (!known) values[n++] = value;
  }
  for (unsigned j = 0; j < n; j++) {
    fputs(j ? ", " : "set xtics (", out);
    put_tick(out, f, values[j]);
  }
  fputs(n > FEW ? ") rotate by 20 right\n" : ")\n", out);
}

static void put_x_axis(FILE *out, const frame *f) {
  static const char *const labels[SN_PLOT_XS] = {[SN_PLOT_X_BATCH] = "images in a batch",
                                                 [SN_PLOT_X_POOL] = "size of the pool (GiB)",
                                                 [SN_PLOT_X_MEMORY] = "usable memory of the GPU (GiB)",
                                                 [SN_PLOT_X_IMAGE] = "height and width of the images",
                                                 [SN_PLOT_X_GPU] = "",
                                                 [SN_PLOT_X_WORLD] = "GPUs"};
  static const char *const of_tokens[SN_PLOT_XS] = {[SN_PLOT_X_BATCH] = "sequences in a batch",
                                                    [SN_PLOT_X_IMAGE] = "tokens of a sequence",
                                                    [SN_PLOT_X_WORLD] = "GPUs"};
  const char *label = sn__sweep_is_of_sequences(f->chart) ? of_tokens[f->chart->x] : NULL;
  double high = f->has_other ? f->other : f->high;
  bool one = f->low == high;
  if (f->is_log)
    fprintf(out, "set logscale x 2\nset xrange [%.9g:%.9g]\n", f->low / 1.19, high * 1.19);
  else if (f->chart->x == SN_PLOT_X_GPU)
    fprintf(out, "set xrange [0.5:%.9g]\n", high + 0.5);
  else
    fprintf(out, "set xrange [%.9g:%.9g]\n", one ? 0.5 * f->low : f->low - 0.03 * (high - f->low),
            one ? 1.5 * high : high + 0.03 * (high - f->low));
  if (f->is_log && f->has_other) fputs("set xtics auto\n", out);
  if (f->has_other) {
    fputs("set xtics add (", out);
    put_tick(out, f, 0);
    fputs(")\n", out);
  }
  if (!f->is_log) put_ticks(out, f);
  fprintf(out, "set xlabel '%s'\n", label ? label : labels[f->chart->x]);
}

/* Where the limit differs: x and limit, those of one strategy, as all have the same. */
static void put_limits(FILE *out, const frame *f) {
  const sn__sweep_chart *chart = f->chart;
  uint64_t last = UINT64_MAX;
  fputs("$limit << END\n", out);
  for (uint32_t i = 0; i < chart->n_rows; i++) {
    uint64_t value = sn__sweep_x(chart, chart->rows[i]), limit = limit_of(f, chart->rows[i]);
    if (value != last && limit) fprintf(out, "%.9g %.9g\n", place_of(f, value), (double)limit / f->unit_bytes);
    last = value;
  }
  fputs("END\n", out);
}

/* One data block for each strategy: x, memory, images per second (NaN where it does not fit). */
static void put_data(FILE *out, const frame *f, unsigned s) {
  const sn__sweep_chart *chart = f->chart;
  fprintf(out, "$s%u << END\n", s);
  for (uint32_t i = 0; i < chart->n_rows; i++) {
    const sn_sweep_row *row = chart->rows[i];
    if (!sn__sweep_is_on(chart, s, row)) continue;
    fprintf(out, "%.9g %.9g ", place_of(f, sn__sweep_x(chart, row)), (double)need_of(f, row) / f->unit_bytes);
    fprintf(out, row->fits ? "%.9g\n" : "NaN\n", row->images_per_second);
  }
  fputs("END\n", out);
}

static const char *curve_name(const sn__sweep_chart *chart, unsigned s, char scheme[SN_MESH_TEXT]) {
  return chart->x == SN_PLOT_X_WORLD ? sn__sweep_scheme(chart, s, scheme) : chart->curves[s];
}

/* Curves of column `column`; `titles`: with what the legend says of them. */
static void put_curves(FILE *out, const frame *f, unsigned column, bool titles) {
  const sn__sweep_chart *chart = f->chart;
  char scheme[SN_MESH_TEXT];
  for (unsigned s = 0; s < chart->n_curves; s++) {
    fprintf(out, "%s $s%u using 1:%u with ", s == 0 ? "plot" : ",", s, column);
    const char *with = chart->x == SN_PLOT_X_GPU ? "points" : "linespoints"; /* nothing lies between two GPUs */
    if (chart->form == SN__FORM_TEXT)
      fputs(with, out);
    else
      fprintf(out, "%s linecolor rgb '%s' linewidth %u pointtype %d pointsize %s", with, sn__colour(s), sn__width(s),
              sn__number_set_has(s), sn__look_of(chart->form)->mark_size);
    fputs(titles ? " title ' " : " notitle", out);
    if (titles) sn__put_text(out, curve_name(chart, s, scheme), 60);
    if (titles) fputs("'", out);
  }
}

static void put_limit_name(FILE *out, const frame *f) {
  fputs(f->of_pool ? " title ' limit of the pool" : " title ' memory of ", out);
  if (!f->of_pool && (f->varies || f->chart->x == SN_PLOT_X_GPU))
    fputs("the GPU", out);
  else if (!f->of_pool)
    sn__put_text(out, f->chart->rows[0]->gpu, 32);
  if (!f->varies)
    fprintf(out, ": %.*f %s", f->unit_bytes > 1e9 ? 2 : 0, (double)f->limit_bytes / f->unit_bytes, f->unit);
  fputs(f->has_limit ? "'" : ", far above'", out);
}

/* In the panel, or `title`: below the axis, for the legend. */
static void put_limit(FILE *out, const frame *f, bool title) {
  static const char line[] = "linecolor rgb '#808080' dashtype (20,6,4,6) linewidth 1.3";
  if (title)
    fprintf(out, ", %s with lines %s", f->chart->x == SN_PLOT_X_WORLD ? "1e-9" : "-1", line);
  else if (f->has_limit && f->varies && f->chart->x == SN_PLOT_X_GPU)
    fprintf(out, ", $limit using ($1-0.4):2:(0.8):(0) with vectors nohead %s", line);
  else if (f->has_limit && f->varies)
    fprintf(out, ", $limit using 1:2 with lines %s", line);
  else if (f->has_limit)
    fprintf(out, ", %.9g with lines %s", (double)f->limit_bytes / f->unit_bytes, line);
  if (title)
    put_limit_name(out, f);
  else if (f->has_limit)
    fputs(" notitle", out);
}

/* Two columns; the limit is in it too. */
static unsigned legend_rows(const sn__sweep_chart *chart) {
  return (chart->n_curves + 2) / 2;
}

static void put_style(FILE *out, const frame *f) {
  if (f->chart->form == SN__FORM_TEXT) return;
  fputs("set border 3 linewidth 0.7\nset tics out nomirror scale 0.6\n"
        "set grid ytics linecolor rgb '#d9d9d9' linewidth 0.6 dashtype 1\n"
        "set tmargin at screen 0.85\n",
        out);
  fprintf(out, "set bmargin at screen %.3f\n", 0.16 + 0.037 * legend_rows(f->chart));
}

/* Over the number of GPUs what is shared shrinks by a factor, and speed grows by one: both are logarithmic then. */
static void put_y_range(FILE *out, const frame *f, double least, double most) {
  if (f->chart->x == SN_PLOT_X_WORLD && least > 0)
    fprintf(out, "set logscale y 2\nset yrange [%.9g:%.9g]\n", least / 1.3, most * 1.3);
  else
    fprintf(out, "set yrange [0:%.9g]\n", most > 0 ? 1.05 * most : 1);
}

static void put_memory_panel(FILE *out, const frame *f) {
  bool text = f->chart->form == SN__FORM_TEXT, world = f->chart->x == SN_PLOT_X_WORLD;
  if (!text) fputs("set lmargin at screen 0.08\nset rmargin at screen 0.485\n", out);
  fputs("unset key\n", out);
  put_y_range(out, f, (double)f->least_need / f->unit_bytes, (double)f->top_bytes / f->unit_bytes);
  fprintf(out, "set title '%s (%s)'\n",
          f->of_pool ? "pool"
          : world    ? "memory of the fullest GPU"
                     : "device memory",
          f->unit);
  put_curves(out, f, 2, false);
  put_limit(out, f, false);
  fputs("\n", out);
}

/* It also draws the legend, with the limit of the other panel, which here lies below the axis. */
static void put_speed_panel(FILE *out, const frame *f) {
  if (f->chart->form == SN__FORM_TEXT)
    fputs("set key below center horizontal maxcols 2 Left reverse samplen 4 width 2\n", out);
  else
    fprintf(out,
            "set lmargin at screen 0.58\nset rmargin at screen 0.975\n"
            "set key at screen 0.5, screen 0.015 center bottom vertical maxrows %u Left reverse samplen 3 spacing 1.25 "
            "font ',%s'\n",
            legend_rows(f->chart), sn__look_of(f->chart->form)->key_font);
  put_y_range(out, f, f->least_images, f->most_images);
  fprintf(out, "set title '%s per second%s'\n", sn_net_unit(f->chart->rows[0]->net),
          f->chart->x == SN_PLOT_X_WORLD ? ", all GPUs" : "");
  put_curves(out, f, 3, true);
  put_limit(out, f, true);
  fputs("\n", out);
}

void sn__sweep_script_write(FILE *out, const sn__sweep_chart *chart) {
  frame f = measure(chart);
  sn__put_terminal(out, chart->form, chart->columns, chart->lines);
  for (unsigned s = 0; s < chart->n_curves; s++) put_data(out, &f, s);
  if (f.varies) put_limits(out, &f);
  put_style(out, &f);
  put_title(out, &f);
  put_x_axis(out, &f);
  put_memory_panel(out, &f);
  put_speed_panel(out, &f);
  fputs("unset multiplot\n", out);
}
