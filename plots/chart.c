/* Bars as a gnuplot script; see the header. On a logarithmic axis, which has no 0 for a bar to begin at, they are dots.
 * Bars are one wide and stand side by side, groups one apart. Each series is a data block of lines "x value mark"; in a
 * stack the value is the sum up to the series, and the highest is drawn first, so that the lower ones cover it.
 * O(bars^2), for some hundred bars. */
#include "plots/chart.h"

#include "plots/plot_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Drawings are of the paper's results, not of a day. */
static const char created[] = "2018-02-24 00:00:00";

typedef struct frame {
  const sn_chart *chart;
  sn__form form;
} frame;

typedef const char *(*text_of)(const sn_chart_bar *bar);

static const char *group_of(const sn_chart_bar *bar) {
  return bar->group;
}

static const char *series_of(const sn_chart_bar *bar) {
  return bar->series;
}

static bool is_first(const sn_chart *c, unsigned i, text_of text) {
  for (unsigned k = 0; k < i; k++)
    if (strcmp(text(&c->bars[k]), text(&c->bars[i])) == 0) return false;
  return true;
}

/* How many different texts come before that of bar `i`. */
static unsigned rank(const sn_chart *c, unsigned i, text_of text) {
  unsigned n = 0;
  for (unsigned k = 0; strcmp(text(&c->bars[k]), text(&c->bars[i])) != 0; k++) n += is_first(c, k, text);
  return n;
}

static unsigned count(const sn_chart *c, text_of text) {
  unsigned n = 0;
  for (unsigned i = 0; i < c->n_bars; i++) n += is_first(c, i, text);
  return n;
}

static double group_width(const sn_chart *c) {
  return c->stacked ? 1.4 : count(c, series_of) + 1.0;
}

static double place(const sn_chart *c, unsigned i) {
  return rank(c, i, group_of) * group_width(c) + (c->stacked ? 0 : rank(c, i, series_of));
}

/* What of the bar's group lies below and in it. */
static double stacked_value(const sn_chart *c, unsigned i) {
  double sum = 0;
  unsigned height = rank(c, i, series_of);
  for (unsigned k = 0; k < c->n_bars; k++)
    if (strcmp(c->bars[k].group, c->bars[i].group) == 0 && rank(c, k, series_of) <= height) sum += c->bars[k].value;
  return sum;
}

static void put_number(FILE *out, double value) {
  if (isfinite(value))
    fprintf(out, " %.9g", value);
  else
    fputs(" NaN", out);
}

static void put_series(FILE *out, const sn_chart *c, unsigned series) {
  fprintf(out, "$s%u << END\n", series);
  for (unsigned i = 0; i < c->n_bars; i++) {
    if (rank(c, i, series_of) != series) continue;
    fprintf(out, "%.9g", place(c, i));
    put_number(out, c->stacked ? stacked_value(c, i) : c->bars[i].value);
    put_number(out, c->stacked ? NAN : c->bars[i].mark);
    fputs("\n", out);
  }
  fputs("END\n", out);
}

/* Upright names break at ", "; many stand slanted. */
static void put_name(FILE *out, const char *name, bool slanted) {
  const char *comma = slanted ? NULL : strstr(name, ", ");
  if (comma)
    fprintf(out, "\"%.*s\\n%s\"", (int)(comma - name), name, comma + 2);
  else
    fprintf(out, "'%s'", name);
}

static void put_groups(FILE *out, const sn_chart *c) {
  double middle = c->stacked ? 0 : (count(c, series_of) - 1) / 2.0;
  unsigned groups = count(c, group_of), n = 0;
  bool slanted = groups > 7;
  fputs(slanted ? "set rmargin 12\n" : "set xlabel ' '\n", out); /* room for what hangs over, for a second line */
  fprintf(out, "set xrange [%.9g:%.9g]\nset xtics scale 0 %s(", -1.0, groups * group_width(c) - (c->stacked ? 0.4 : 1),
          slanted ? "rotate by -35 left " : "");
  for (unsigned i = 0; i < c->n_bars; i++) {
    if (!is_first(c, i, group_of)) continue;
    if (n++) fputs(", ", out);
    put_name(out, c->bars[i].group, slanted);
    fprintf(out, " %.9g", rank(c, i, group_of) * group_width(c) + middle);
  }
  fputs(")\n", out);
}

/* The logarithm's axis begins at the power of ten below the smallest number, that of others at 0. */
static void put_y_axis(FILE *out, const sn_chart *c) {
  double least = INFINITY, most = 0;
  for (unsigned i = 0; i < c->n_bars; i++) {
    if (c->bars[i].value > 0) least = fmin(least, c->bars[i].value);
    if (c->bars[i].mark > 0) least = fmin(least, c->bars[i].mark);
    most = fmax(most, fmax(c->bars[i].value, c->bars[i].mark));
  }
  fprintf(out, "set ylabel '%s'\n", c->y_label);
  if (c->log_scale && isfinite(least))
    fprintf(out, "set logscale y\nset yrange [%.9g:%.9g]\n", pow(10, floor(log10(least))), 1.3 * most);
  else
    fputs(c->stacked ? "set yrange [0:100]\n" : "set yrange [0:*]\n", out);
}

static bool has_marks(const sn_chart *c) {
  for (unsigned i = 0; i < c->n_bars && !c->stacked; i++)
    if (isfinite(c->bars[i].mark)) return true;
  return false;
}

static const char *series_name(const sn_chart *c, unsigned series) {
  unsigned i = 0;
  while (rank(c, i, series_of) != series) i++;
  return c->bars[i].series;
}

static bool has_operators(const sn_chart *c) {
  for (unsigned i = 0; i < c->n_bars; i++)
    if (sn__part_of(c->bars[i].series) != SN__PART_OTHER) return true;
  return false;
}

/* Of operators their own, the same in every picture. Of others: the first of the colours is black, the marks'; when
 * they are used up they come again, half way to white. */
static void put_colour(FILE *out, const sn_chart *c, unsigned series) {
  enum { BARS = SN__COLOURS - 1, WHITE = 0xffffff, HALF = 0x7f7f7f };
  unsigned part = sn__part_of(series_name(c, series));
  if (part != SN__PART_OTHER) {
    fprintf(out, "'%s'", sn__parts[part].colour);
    return;
  }
  if (has_operators(c)) { /* those without a colour are the other layers */
    fprintf(out, series % 2 ? "'%s'" : "'#c4c4c4'", sn__parts[SN__PART_OTHER].colour);
    return;
  }
  unsigned long rgb = strtoul(sn__colour(1 + series % BARS) + 1, NULL, 16);
  fprintf(out, "'#%06lx'", series / BARS % 2 ? (rgb >> 1 & HALF) + (WHITE >> 1 & HALF) : rgb);
}

/* Where a bar is missing, why, upwards from the axis. */
static void put_missing(FILE *out, const frame *f) {
  const sn_chart *c = f->chart;
  for (unsigned i = 0; i < c->n_bars && c->missing_label && !c->stacked; i++)
    if (!isfinite(c->bars[i].value))
      fprintf(out, "set label '%s' at first %.9g, graph 0.015 left rotate by 90 font ',%s' textcolor rgb '#707070'\n",
              c->missing_label, place(c, i), sn__look_of(f->form)->key_font);
}

static void put_plot(FILE *out, const frame *f) {
  const sn_chart *c = f->chart;
  unsigned n = count(c, series_of);
  fputs("plot ", out);
  for (unsigned k = 0; k < n; k++) {
    unsigned series = c->stacked ? n - 1 - k : k;
    fprintf(out, "%s$s%u using 1:2 with %s linecolor rgb ", k ? ", " : "", series,
            c->log_scale ? "points pointtype 7 pointsize mark_size * 1.9" : "boxes fillstyle solid 1.0 noborder");
    put_colour(out, c, series);
    fprintf(out, " title '%s'", series_name(c, series));
  }
  for (unsigned s = 0; s < n && has_marks(c); s++) {
    fprintf(out, ", $s%u using 1:3 with points pointtype 7 pointsize mark_size * 1.5 linecolor rgb 'white' notitle", s);
    fprintf(out, ", $s%u using 1:3 with points pointtype 7 pointsize mark_size linecolor rgb 'black' ", s);
    if (s == 0)
      fprintf(out, "title '%s'", c->mark_label);
    else
      fputs("notitle", out);
  }
  fputs("\n", out);
}

static sn_status write_chart(FILE *out, const void *what, sn_err *err) {
  const frame *f = what;
  (void)err;
  sn__put_terminal(out, f->form, 0, 0);
  fprintf(out, "mark_size = %s\nset title '%s'\nset boxwidth 0.9\n", f->form == SN__FORM_PNG ? "1.3" : "0.6",
          f->chart->title);
  fprintf(out, "set key below center horizontal Left reverse samplen 1.5 spacing 1.25 width 1 font ',%s'\n",
          sn__look_of(f->form)->key_font);
  fputs("set border 3 linewidth 0.7\nset tics out nomirror\n"
        "set grid ytics linecolor rgb '#d9d9d9' linewidth 0.6 dashtype 1\n",
        out);
  put_groups(out, f->chart);
  put_y_axis(out, f->chart);
  put_missing(out, f);
  for (unsigned s = 0; s < count(f->chart, series_of); s++) put_series(out, f->chart, s);
  put_plot(out, f);
  return SN_OK;
}

sn_status sn_chart_draw(const sn_chart *chart, const char *path, sn_err *err) {
  frame f = {.chart = chart};
  if (sn__form_find(path, &f.form, err) != SN_OK) return err->code;
  if (chart->n_bars == 0) return sn_fail(err, SN_BUG, "a chart without bars");
  const sn__drawing drawing = {write_chart, &f, f.form, created, 1};
  return sn__draw(&drawing, &(sn_plot_options){.path = path}, err);
}
