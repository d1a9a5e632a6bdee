/* Time over threads as a gnuplot script; see the header. Marks of the best count lie on their curves, in white, so that
 * they are seen where curves meet. */
#include "plots/threads.h"

#include "plots/plot_internal.h"

#include <inttypes.h>

/* It was not stored, so it has no date of its own; a fixed one keeps the bytes of a PDF the same. */
static const char created[] = "2018-02-24 00:00:00";

typedef struct frame {
  const sn_threads_chart *chart;
  sn__form form;
} frame;

static void put_curve(FILE *out, const sn_threads_chart *chart, unsigned curve) {
  fprintf(out, "$c%u << END\n", curve);
  for (uint32_t p = 1; p <= chart->threads; p++)
    fprintf(out, "%" PRIu32 " %.9g\n", p, (double)chart->curves[curve].ns[p] / 1e6);
  fputs("END\n", out);
}

static void put_axes(FILE *out, const frame *f) {
  fputs("set title '", out);
  sn__put_text(out, f->chart->title, 100);
  fputs("'\nset logscale xy\nset xlabel 'threads'\nset ylabel 'time (ms)'\nset border 3 linewidth 0.7\n"
        "set tics out nomirror scale 0.6\nset xtics (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)\n"
        "set grid xtics ytics linecolor rgb '#d9d9d9' linewidth 0.6 dashtype 1\n",
        out);
  fprintf(out, "set xrange [1:%" PRIu32 "]\n", f->chart->threads);
  fprintf(out,
          "set arrow from first %" PRIu32 ", graph 0 to first %" PRIu32
          ", graph 1 nohead linecolor rgb '#808080' dashtype (20,6,4,6) linewidth 1.3\n"
          "set label '%" PRIu32 " cores' at first %" PRIu32 ", graph 0.97 right offset -0.6,0 font ',%s'\n",
          f->chart->cores, f->chart->cores, f->chart->cores, f->chart->cores, sn__look_of(f->form)->small_font);
  fprintf(out, "set key below center horizontal Left reverse samplen 2 spacing 1.2 height 0.5 font ',%s'\n",
          sn__look_of(f->form)->key_font);
}

static sn_status write_threads(FILE *out, const void *what, sn_err *err) {
  const frame *f = what;
  const sn_threads_chart *chart = f->chart;
  (void)err;
  sn__put_terminal(out, f->form, 0, 0);
  put_axes(out, f);
  for (unsigned i = 0; i < chart->n_curves; i++) put_curve(out, chart, i);
  fputs("plot ", out);
  for (unsigned i = 0; i < chart->n_curves; i++) {
    fprintf(out, "%s$c%u using 1:2 with lines linecolor rgb '%s' linewidth %u title '", i ? ", " : "", i, sn__colour(i),
            sn__width(i));
    sn__put_text(out, chart->curves[i].name, 40);
    fprintf(out, ": %" PRIu32 "'", chart->curves[i].best);
  }
  for (unsigned i = 0; i < chart->n_curves; i++) {
    const sn_threads_curve *c = &chart->curves[i];
    fprintf(out,
            ", $c%u using 1:($1 == %" PRIu32
            " ? $2 : NaN) with points pointtype 7 pointsize 1.6 linecolor rgb '%s' notitle",
            i, c->best, sn__colour(i));
    fprintf(out,
            ", $c%u using 1:($1 == %" PRIu32
            " ? $2 : NaN) with points pointtype 7 pointsize 0.9 linecolor rgb 'white' notitle",
            i, c->best);
  }
  fputs("\n", out);
  return SN_OK;
}

sn_status sn_plot_threads(const sn_threads_chart *chart, const char *path, sn_err *err) {
  sn__form form;
  if (sn__form_find(path, &form, err) != SN_OK) return err->code;
  const frame f = {chart, form};
  const sn__drawing drawing = {write_threads, &f, form, created, chart->n_curves};
  return sn__draw(&drawing, &(sn_plot_options){.path = path}, err);
}
