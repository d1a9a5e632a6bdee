/* Front: memory against time as a gnuplot script; see the header. The line of the front is a staircase: with so much
 * memory, nothing is faster. Names stand in the legend, where they cannot cover a point; the points have numbers. */
#include "plots/front.h"

#include "plots/plot_internal.h"

#include <inttypes.h>

#define GIB 1073741824.0
#define MS  1e6

static const char other_colour[] = "#999999";

/* It was not stored, so it has no date of its own; a fixed one keeps the bytes of a PDF the same. */
static const char created[] = "2018-02-24 00:00:00";

typedef struct range {
  double low, high;
} range;

static void widen(range *r, double value) {
  if (value < r->low) r->low = value;
  if (value > r->high) r->high = value;
}

typedef struct frame {
  const sn_front_chart *chart;
  sn__form form;
  range x, y;       /* GiB, ms: of all points and, where it is near, the limit */
  bool shows_limit; /* else it is far to the right */
} frame;

static void pad(range *r) {
  double span = r->high > r->low ? r->high - r->low : r->high > 0 ? r->high : 1;
  r->low -= 0.1 * span;
  r->high += 0.08 * span;
  if (r->low < 0) r->low = 0;
}

static frame measure(const sn_front_chart *chart, sn__form form) {
  frame f = {.chart = chart, .form = form, .x = {1e300, 0}, .y = {1e300, 0}};
  for (uint32_t i = 0; i < chart->n_front + chart->n_others; i++) {
    const sn_front_point *p = i < chart->n_front ? &chart->front[i] : &chart->others[i - chart->n_front];
    widen(&f.x, (double)p->bytes / GIB);
    widen(&f.y, (double)p->ns / MS);
  }
  for (uint32_t i = 0; i < chart->n_line; i++) {
    widen(&f.x, (double)chart->line[i].bytes / GIB);
    widen(&f.y, (double)chart->line[i].ns / MS);
  }
  for (uint32_t i = 0; i < chart->n_beside; i++) {
    widen(&f.x, (double)chart->beside[i].bytes / GIB);
    widen(&f.y, (double)chart->beside[i].ns / MS);
  }
  double limit = (double)chart->limit_bytes / GIB;
  f.shows_limit = limit <= f.x.high + 2 * (f.x.high - f.x.low);
  if (f.shows_limit) widen(&f.x, limit);
  pad(&f.x);
  pad(&f.y);
  return f;
}

static void put_axes(FILE *out, const frame *f) {
  fputs("set title '", out);
  sn__put_text(out, f->chart->title, 100);
  fprintf(out, "'\nset xrange [%.9g:%.9g]\nset yrange [%.9g:%.9g]\n", f->x.low, f->x.high, f->y.low, f->y.high);
  fputs("set xlabel 'device memory (GiB)'\nset ylabel 'time of an iteration (ms)'\n"
        "set border 3 linewidth 0.7\nset tics out nomirror scale 0.6\n"
        "set grid xtics ytics linecolor rgb '#d9d9d9' linewidth 0.6 dashtype 1\n",
        out);
  fprintf(out, "set key below center horizontal maxcols 2 Left reverse samplen 2 spacing 1.1 height 0.5 font ',%s'\n",
          sn__look_of(f->form)->small_font);
}

/* By rising memory, for the staircase. */
static void put_staircase(FILE *out, const char *name, const sn_front_point *line, uint32_t count) {
  fprintf(out, "$%s << END\n", name);
  for (uint32_t i = count; i > 0; i--)
    fprintf(out, "%.9g %.9g\n", (double)line[i - 1].bytes / GIB, (double)line[i - 1].ns / MS);
  fputs("END\n", out);
}

static void put_front(FILE *out, const frame *f) {
  const sn_front_chart *c = f->chart;
  put_staircase(out, "front", c->line ? c->line : c->front, c->line ? c->n_line : c->n_front);
  if (c->beside) put_staircase(out, "beside", c->beside, c->n_beside);
}

/* Below and left of a point of the front nothing can be; above and right of it are at most its steps. Neighbours take
 * turns, so that their numbers do not meet. */
static void put_numbers(FILE *out, const frame *f) {
  for (uint32_t i = 0; i < f->chart->n_front; i++) {
    const sn_front_point *p = &f->chart->front[i];
    fprintf(out, "set label '%" PRIu32 "' at first %.9g, first %.9g center offset character %s\n", i + 1,
            (double)p->bytes / GIB, (double)p->ns / MS, i % 2 ? "-1.0,-0.7" : "1.0,0.7");
  }
}

/* gnuplot does not know an empty block: a point that is none stands in it. */
static void put_others(FILE *out, const frame *f, bool fits) {
  fprintf(out, "$%s << END\nNaN NaN\n", fits ? "other" : "large");
  for (uint32_t i = 0; i < f->chart->n_others; i++) {
    const sn_front_point *p = &f->chart->others[i];
    if (p->fits == fits) fprintf(out, "%.9g %.9g\n", (double)p->bytes / GIB, (double)p->ns / MS);
  }
  fputs("END\n", out);
}

/* A point of its own, so that it has a line of the legend. */
static void put_point(FILE *out, const frame *f, uint32_t i) {
  const sn_front_point *p = &f->chart->front[i];
  fprintf(
      out,
      ", '+' using (%.9g):(%.9g) every ::0::0 with points pointtype %d pointsize 1.8 linecolor rgb '%s' title '%" PRIu32
      "  ",
      (double)p->bytes / GIB, (double)p->ns / MS, p->fits ? 7 : 6, p->best ? SN__VERMILLION : SN__BLUE, i + 1);
  sn__put_text(out, p->name, 70);
  fputs(p->best ? " (fastest that fits)'" : "'", out);
}

static void put_limit(FILE *out, const frame *f) {
  double limit = (double)f->chart->limit_bytes / GIB;
  if (f->shows_limit)
    fprintf(out,
            "set arrow from first %.9g, graph 0 to first %.9g, graph 1 nohead linecolor rgb '#808080'"
            " dashtype (20,6,4,6) linewidth 1.3\n",
            limit, limit);
}

static void put_limit_key(FILE *out, const frame *f) {
  fprintf(out, ", NaN with lines linecolor rgb '#808080' dashtype (20,6,4,6) linewidth 1.3 title 'to plan with on ");
  sn__put_text(out, f->chart->device, 32);
  fprintf(out, ": %.2f GiB%s'", (double)f->chart->limit_bytes / GIB, f->shows_limit ? "" : ", far to the right");
}

static void put_lines(FILE *out, const frame *f) {
  if (f->chart->line) {
    fprintf(out, "plot $front using 1:2 with steps linewidth 1.6 linecolor rgb '%s' title '", SN__VERMILLION);
    sn__put_text(out, f->chart->line_name, 70);
    fputs("'", out);
    if (!f->chart->beside) return;
    fprintf(out, ", $beside using 1:2 with steps linewidth 1.1 linecolor rgb '%s' title '", SN__BLUE);
    sn__put_text(out, f->chart->beside_name, 70);
    fputs("'", out);
    return;
  }
  fprintf(out,
          "plot $other using 1:2 with points pointtype 7 pointsize 1.1 linecolor rgb '%s' title 'not on the front'",
          other_colour);
  fprintf(out,
          ", $large using 1:2 with points pointtype 6 pointsize 1.1 linecolor rgb '%s' title 'hollow: does not fit'",
          other_colour);
  fprintf(out, ", $front using 1:2 with steps linecolor rgb '%s' notitle", SN__BLUE);
}

static sn_status write_front(FILE *out, const void *what, sn_err *err) {
  const frame *f = what;
  (void)err;
  sn__put_terminal(out, f->form, 0, 0);
  fputs("set samples 2\n", out);
  put_axes(out, f);
  put_limit(out, f);
  put_front(out, f);
  put_numbers(out, f);
  put_others(out, f, true);
  put_others(out, f, false);
  put_lines(out, f);
  for (uint32_t i = 0; i < f->chart->n_front; i++) put_point(out, f, i);
  put_limit_key(out, f);
  fputs("\n", out);
  return SN_OK;
}

sn_status sn_plot_front(const sn_front_chart *chart, const char *path, sn_err *err) {
  sn__form form;
  if (sn__form_find(path, &form, err) != SN_OK) return err->code;
  frame f = measure(chart, form);
  const sn__drawing drawing = {write_front, &f, form, created, 1};
  return sn__draw(&drawing, &(sn_plot_options){.path = path}, err);
}
