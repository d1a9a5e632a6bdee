/* Overhead over the budget as a gnuplot script; see the header. All panels have the axes of the paper: budgets from
 * large to small would be read backwards, so memory rises to the right. */
#include "plots/dtr.h"

#include "plots/plot_internal.h"

/* It was not stored, so it has no date of its own; a fixed one keeps the bytes of a PDF the same. */
static const char created[] = "2018-02-24 00:00:00";

typedef struct frame {
  const sn_dtr_chart *chart;
  sn__form form;
  unsigned columns, rows; /* of text */
} frame;

/* gnuplot does not know an empty block: a point that is none stands in it. */
static void put_points(FILE *out, const frame *f) {
  for (unsigned p = 0; p < f->chart->n_panels; p++)
    for (unsigned c = 0; c < f->chart->n_curves; c++) {
      const sn_dtr_curve *curve = &f->chart->panels[p].curves[c];
      fprintf(out, "$p%uc%u << END\nNaN NaN\n", p, c);
      for (uint32_t i = 0; i < curve->n_points; i++)
        fprintf(out, "%.9g %.9g\n", curve->points[i].ratio, curve->points[i].overhead);
      fputs("END\n", out);
    }
}

static double largest_ratio(const sn_dtr_chart *chart) {
  double most = 1;
  for (unsigned p = 0; p < chart->n_panels; p++)
    for (unsigned c = 0; c < chart->n_curves; c++) {
      const sn_dtr_curve *curve = &chart->panels[p].curves[c];
      for (uint32_t i = 0; i < curve->n_points; i++)
        if (curve->points[i].ratio > most) most = curve->points[i].ratio;
    }
  return most;
}

static bool has_one(const frame *f) {
  return f->chart->n_panels == 1;
}

static void put_axes(FILE *out, const frame *f) {
  fprintf(out, "set xrange [0:%.9g]\nset yrange [0.95:2.05]\n", largest_ratio(f->chart));
  fprintf(out, "set border 3 linewidth 0.7\nset tics out nomirror scale 0.6\nset ytics 1,0.2\nset xtics 0,%s\n",
          has_one(f) ? "0.1" : "0.5");
  fputs("set grid xtics ytics linecolor rgb '#d9d9d9' linewidth 0.6 dashtype 1\n"
        "set key top right Left reverse samplen 1.6 spacing 1.0",
        out);
  if (f->form != SN__FORM_TEXT) fprintf(out, " font ',%s'", sn__look_of(f->form)->small_font);
  fputs("\n", out);
}

/* What is to the left of a panel and below it says the axes for all. */
static void put_labels(FILE *out, const frame *f, unsigned p, unsigned columns) {
  bool below = p + columns < f->chart->n_panels, left = p % columns != 0;
  fputs("set title '", out);
  sn__put_text(out, f->chart->panels[p].name, 80);
  fprintf(out, "'\nset xlabel '%s'\nset ylabel '%s'\n",
          has_one(f) ? "budget (share of the memory without a limit)"
          : below    ? ""
                     : "budget",
          has_one(f) ? "overhead (time over that without a limit)"
          : left     ? ""
                     : "overhead");
}

static void put_style(FILE *out, const frame *f, unsigned c) {
  if (f->form == SN__FORM_TEXT)
    fputs("with linespoints", out);
  else
    fprintf(out, "with linespoints pointtype %d pointsize %s linewidth %u linecolor rgb '%s'", sn__number_set_has(c),
            sn__look_of(f->form)->mark_size, sn__width(c), sn__colour(c));
}

static void put_panel(FILE *out, const frame *f, unsigned p, unsigned columns) {
  put_labels(out, f, p, columns);
  if (p == 1) fputs("unset key\n", out);
  for (unsigned c = 0; c < f->chart->n_curves; c++) {
    fprintf(out, "%s $p%uc%u using 1:2 ", c == 0 ? "plot" : ",", p, c);
    put_style(out, f, c);
    fputs(" title '", out);
    sn__put_text(out, f->chart->panels[p].curves[c].name, 20);
    fputs("'", out);
  }
  fputs("\n", out);
}

static sn_status write_chart(FILE *out, const void *what, sn_err *err) {
  const frame *f = what;
  (void)err;
  sn__put_terminal(out, f->form, f->columns, f->rows);
  put_points(out, f);
  unsigned rows = f->chart->n_panels > 3 ? 2 : 1, columns = (f->chart->n_panels + rows - 1) / rows;
  if (!has_one(f)) fprintf(out, "set multiplot layout %u,%u\n", rows, columns);
  put_axes(out, f);
  for (unsigned p = 0; p < f->chart->n_panels; p++) put_panel(out, f, p, columns);
  if (!has_one(f)) fputs("unset multiplot\n", out);
  return SN_OK;
}

sn_status sn_plot_dtr(const sn_dtr_chart *chart, const sn_plot_options *options, sn_err *err) {
  frame f = {.chart = chart};
  if (sn__form_find(options->path, &f.form, err) != SN_OK) return err->code;
  if (f.form == SN__FORM_TEXT && chart->n_panels > 1)
    return sn_fail(err, SN_BAD_USAGE, "as text one log is drawn; name one, or draw a file with -o FILE.svg");
  sn__text_size(options, &f.columns, &f.rows);
  const sn__drawing drawing = {write_chart, &f, f.form, created, chart->n_curves};
  return sn__draw(&drawing, options, err);
}
