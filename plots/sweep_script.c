/* Script: the picture of a sweep as a gnuplot script. Two panels over the batch, named above them since
 * numbers of any width stand beside them: device memory, with the memory there
 * is as a line, and images per second, whose curves end where a strategy stops fitting. One legend below serves both.
 *
 * Memory is shown up to twice what the device has: how far a strategy misses beyond that is of no use, and would
 * flatten what does fit. Where the device has more than four times what is needed, the line is left out for the same
 * reason and the legend says so. Batches that grow by a factor get a logarithmic axis. Cost: O(points * strategies). */
#include "plots/plot_internal.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

typedef struct frame {
  const sn__sweep_chart *chart;
  const char *unit;
  double unit_bytes;
  uint64_t memory_bytes, top_bytes; /* of the device; of the axis */
  bool has_limit, is_log;
  uint32_t low, high; /* batches */
  double most_images;
} frame;

static bool is_drawn(const sn__sweep_chart *chart, const sn_sweep_row *row) {
  for (unsigned s = 0; s < chart->n_strategies; s++)
    if (strcmp(chart->strategies[s], row->strategy) == 0) return true;
  return false;
}

static void measure_row(frame *f, const sn_sweep_row *row) {
  if (row->peak_device_bytes > f->top_bytes) f->top_bytes = row->peak_device_bytes;
  if (row->batch < f->low) f->low = row->batch;
  if (row->batch > f->high) f->high = row->batch;
  if (row->fits && row->images_per_second > f->most_images) f->most_images = row->images_per_second;
}

/* Half of the batches lie in the lowest quarter of their range. */
static bool grows(const frame *f) {
  const sn__sweep_chart *chart = f->chart;
  uint32_t below = 0;
  double middle = f->low + (f->high - f->low) / 4.0;
  for (uint32_t i = 0; i < chart->n_rows; i++) below += chart->rows[i]->batch <= middle;
  return f->high >= 8 * f->low && 2 * below >= chart->n_rows;
}

static frame measure(const sn__sweep_chart *chart) {
  frame f = {.chart = chart, .memory_bytes = chart->rows[0]->memory_bytes, .low = UINT32_MAX};
  for (uint32_t i = 0; i < chart->n_rows; i++)
    if (is_drawn(chart, chart->rows[i])) measure_row(&f, chart->rows[i]);
  f.has_limit = f.memory_bytes <= 4 * f.top_bytes;
  if (f.top_bytes > 2 * f.memory_bytes) f.top_bytes = 2 * f.memory_bytes;
  if (f.has_limit && f.top_bytes < f.memory_bytes) f.top_bytes = f.memory_bytes;
  f.unit = f.top_bytes >= UINT64_C(2) << 30 ? "GiB" : "MiB";
  f.unit_bytes = f.top_bytes >= UINT64_C(2) << 30 ? 1073741824.0 : 1048576.0;
  f.is_log = grows(&f);
  return f;
}

static void put_title(FILE *out, const frame *f) {
  const sn_sweep_row *row = f->chart->rows[0];
  fputs("set multiplot title '", out);
  sn__put_text(out, row->net, 48);
  fputs(" on ", out);
  sn__put_text(out, row->gpu, 32);
  fprintf(out, ", workspace %s, external memory %s, allocator %s", row->workspace, row->external, row->allocator);
  if (row->pool_limit_bytes) fprintf(out, ", pool %.2f GiB", (double)row->pool_limit_bytes / 1073741824.0);
  fprintf(out, "'%s\n", f->chart->form == SN__FORM_TEXT ? " layout 2,1" : "");
}

/* A few batches are named themselves; there are no parts of an image. */
static void put_ticks(FILE *out, const frame *f) {
  enum { FEW = 6 };
  uint32_t batches[FEW], n = 0;
  for (uint32_t i = 0; i < f->chart->n_rows; i++) {
    bool known = false;
    for (uint32_t j = 0; j < n; j++) known = known || batches[j] == f->chart->rows[i]->batch;
    if (!known && n == FEW) return;
    if (!known) batches[n++] = f->chart->rows[i]->batch;
  }
  for (uint32_t j = 0; j < n; j++) fprintf(out, "%s%" PRIu32, j ? ", " : "set xtics (", batches[j]);
  fputs(")\n", out);
}

static void put_x_axis(FILE *out, const frame *f) {
  bool one = f->low == f->high;
  if (f->is_log)
    fprintf(out, "set logscale x 2\nset xrange [%.9g:%.9g]\n", f->low / 1.19, f->high * 1.19);
  else
    fprintf(out, "set xrange [%.9g:%.9g]\n", one ? 0.5 * f->low : f->low - 0.03 * (f->high - f->low),
            one ? 1.5 * f->high : f->high + 0.03 * (f->high - f->low));
  if (!f->is_log) put_ticks(out, f);
  fputs("set xlabel 'images in a batch'\n", out);
}

/* One data block for each strategy: batch, memory, images per second (NaN where it does not fit). */
static void put_data(FILE *out, const frame *f, unsigned s) {
  const sn__sweep_chart *chart = f->chart;
  fprintf(out, "$s%u << END\n", s);
  for (uint32_t i = 0; i < chart->n_rows; i++) {
    const sn_sweep_row *row = chart->rows[i];
    if (strcmp(row->strategy, chart->strategies[s]) != 0) continue;
    fprintf(out, "%" PRIu32 " %.9g ", row->batch, (double)row->peak_device_bytes / f->unit_bytes);
    fprintf(out, row->fits ? "%.9g\n" : "NaN\n", row->images_per_second);
  }
  fputs("END\n", out);
}

/* Curves of column `column`; `titles`: with what the legend says of them. */
static void put_curves(FILE *out, const frame *f, unsigned column, bool titles) {
  const sn__sweep_chart *chart = f->chart;
  for (unsigned s = 0; s < chart->n_strategies; s++) {
    fprintf(out, "%s $s%u using 1:%u with ", s == 0 ? "plot" : ",", s, column);
    if (chart->form == SN__FORM_TEXT)
      fputs("linespoints", out);
    else
      fprintf(out, "linespoints linecolor rgb '%s' linewidth %u pointtype %d pointsize %s", sn__colour(s), sn__width(s),
              sn__mark(s), sn__look_of(chart->form)->mark_size);
    fputs(titles ? " title ' " : " notitle", out);
    if (titles) sn__put_text(out, chart->strategies[s], 60);
    if (titles) fputs("'", out);
  }
}

static void put_limit(FILE *out, const frame *f, bool title) {
  double memory = (double)f->memory_bytes / f->unit_bytes;
  if (f->has_limit || title)
    fprintf(out, ", %.9g with lines linecolor rgb '#808080' dashtype (20,6,4,6) linewidth 1.3", title ? -1 : memory);
  if (!title && f->has_limit) fputs(" notitle", out);
  if (!title) return;
  fputs(" title ' memory of ", out);
  sn__put_text(out, f->chart->rows[0]->gpu, 32);
  fprintf(out, ": %.*f %s%s'", f->unit_bytes > 1e9 ? 2 : 0, memory, f->unit, f->has_limit ? "" : ", far above");
}

/* Two columns; the limit is in it too. */
static unsigned legend_rows(const sn__sweep_chart *chart) {
  return (chart->n_strategies + 2) / 2;
}

static void put_style(FILE *out, const frame *f) {
  if (f->chart->form == SN__FORM_TEXT) return;
  fputs("set border 3 linewidth 0.7\nset tics out nomirror scale 0.6\n"
        "set grid ytics linecolor rgb '#d9d9d9' linewidth 0.6 dashtype 1\n"
        "set tmargin at screen 0.85\n",
        out);
  fprintf(out, "set bmargin at screen %.3f\n", 0.16 + 0.037 * legend_rows(f->chart));
}

static void put_memory_panel(FILE *out, const frame *f) {
  bool text = f->chart->form == SN__FORM_TEXT;
  if (!text) fputs("set lmargin at screen 0.08\nset rmargin at screen 0.485\n", out);
  fprintf(out, "unset key\nset yrange [0:%.9g]\nset title 'device memory (%s)'\n",
          1.05 * (double)f->top_bytes / f->unit_bytes, f->unit);
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
  fprintf(out, "set yrange [0:%.9g]\nset title 'images per second'\n", f->most_images > 0 ? 1.05 * f->most_images : 1);
  put_curves(out, f, 3, true);
  put_limit(out, f, true);
  fputs("\n", out);
}

void sn__sweep_script_write(FILE *out, const sn__sweep_chart *chart) {
  frame f = measure(chart);
  sn__put_terminal(out, chart->form, chart->columns, chart->lines);
  for (unsigned s = 0; s < chart->n_strategies; s++) put_data(out, &f, s);
  put_style(out, &f);
  put_title(out, &f);
  put_x_axis(out, &f);
  put_memory_panel(out, &f);
  put_speed_panel(out, &f);
  fputs("unset multiplot\n", out);
}
