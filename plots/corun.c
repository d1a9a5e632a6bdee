/* Corun: how many operations run at once, over their starts and ends in the order in which they happen, the operation
 * itself included: figure 4 of the paper on running operations side by side (docs/corun.md). A panel per strategy, each
 * with its mean. As text a column is the mean of several. O(operations log operations). */
#include "plots/plot_internal.h"

#include <inttypes.h>
#include <stdlib.h>

enum { LABEL_COLUMNS = 6 };

typedef struct event {
  int64_t ns;
  uint32_t bar;
  bool is_start;
} event;

/* Of one strategy; of a simulated one the mean is the scheduler's, who knows which of two things at the same time was
 * first. */
typedef struct series {
  uint32_t n;       /* starts and ends */
  uint8_t *running; /* at each */
  unsigned most;
  double mean;
} series;

/* What ends makes room for what starts at the same time. */
static int by_time(const void *a, const void *b) {
  const event *x = a, *y = b;
  if (x->ns != y->ns) return x->ns < y->ns ? -1 : 1;
  if (x->is_start != y->is_start) return x->is_start ? 1 : -1;
  return (x->bar > y->bar) - (x->bar < y->bar);
}

static uint32_t find_events(const sn_timeline *t, event *events) {
  uint32_t n = 0;
  for (uint32_t b = 0; b < t->n_bars; b++) {
    if (t->bars[b].kind != SN_BAR_COMPUTE) continue;
    events[n++] = (event){.ns = t->bars[b].begin_ns, .bar = b, .is_start = true};
    events[n++] = (event){.ns = t->bars[b].end_ns, .bar = b, .is_start = false};
  }
  qsort(events, n, sizeof *events, by_time);
  return n;
}

static void count(series *s, const event *events) {
  unsigned running = 0;
  uint64_t sum = 0;
  for (uint32_t i = 0; i < s->n; i++) {
    running += events[i].is_start;
    s->running[i] = (uint8_t)running;
    if (running > s->most) s->most = running;
    sum += running;
    running -= !events[i].is_start;
  }
  s->mean = s->n > 0 ? (double)sum / s->n : 0;
}

/* with_series() frees it, whether it is whole or not. */
static sn_status make(const sn_timeline *t, const sn_result *result, series *s, sn_err *err) {
  event *events = malloc(2 * (size_t)t->n_columns * sizeof *events + 1);
  *s = (series){.running = malloc(2 * (size_t)t->n_columns + 1)};
  if (!events || !s->running) {
    free(events);
    return sn_fail_memory(err);
  }
  s->n = find_events(t, events);
  count(s, events);
  if (!sn_corun_row_is_empty(&result->corun)) s->mean = result->corun.average_corun;
  free(events);
  return SN_OK;
}

/* The most of the events [begin, end), at least of one. */
static unsigned most_of(const series *s, uint32_t begin, uint32_t end) {
  unsigned most = 0;
  for (uint32_t i = begin; i < s->n && (i < end || i == begin); i++)
    if (s->running[i] > most) most = s->running[i];
  return most;
}

/* ---- gnuplot ---- */

static void put_series(FILE *out, const series *s, unsigned number) {
  uint32_t bucket = (s->n + SN__CURVE_POINTS - 1) / SN__CURVE_POINTS;
  fprintf(out, "$s%u << END\n", number);
  for (uint32_t i = 0; i < s->n; i += bucket) fprintf(out, "%u %u\n", i + 1, most_of(s, i, i + bucket));
  fprintf(out, "%u %u\nEND\n", s->n + 1, s->n > 0 ? s->running[s->n - 1] : 0);
}

/* All panels have one height, so that they can be compared. */
static void put_panel(FILE *out, const sn__chart *chart, const series *s, unsigned i, unsigned high) {
  double height = 0.76 / chart->n_curves, top = 0.9 - i * height;
  bool last = i + 1 == chart->n_curves;
  fprintf(out, "set tmargin at screen %.4f\nset bmargin at screen %.4f\n", top - 0.045, top - height + 0.015);
  fprintf(out, "set xrange [1:%u]\nset yrange [0:%u.5]\nset ytics 0,%u\n", s->n + 1, high, high > 3 ? 2 : 1);
  fputs(last ? "set format x '%g'\nset xlabel 'starts and ends of operations, in their order'\n" : "set format x ''\n",
        out);
  fputs("set label 1 '", out);
  sn__put_text(out, chart->curves[i].result->strategy, 60);
  fprintf(out, ": %.2f on average, %u at most' at graph 0, graph 1 left offset 0,0.6\n", s->mean, s->most);
  fprintf(out,
          "plot $s%u using 1:2 with fillsteps fillcolor rgb '%s' fillstyle solid noborder notitle, %.9g with lines "
          "linecolor rgb '" SN__VERMILLION "' linewidth 1.2 notitle\n",
          i, SN__SKY_BLUE, s->mean);
}

static void put_script(FILE *out, const sn__chart *chart, const series *all) {
  unsigned high = 1;
  for (unsigned i = 0; i < chart->n_curves; i++) high = all[i].most > high ? all[i].most : high;
  sn__put_terminal(out, chart->form, chart->columns, chart->rows);
  for (unsigned i = 0; i < chart->n_curves; i++) put_series(out, &all[i], i);
  fputs("set multiplot title '", out);
  sn__put_subject(out, chart, sn__put_text);
  fputs(": operations that run at once' offset 0,-0.3\n"
        "set lmargin at screen 0.06\nset rmargin at screen 0.97\nset border 3 linewidth 0.7\nset tics out scale 0.6\n"
        "set xtics nomirror\nset ytics nomirror\n"
        "set grid ytics linecolor rgb '#d9d9d9' linewidth 0.6 dashtype 1\n",
        out);
  for (unsigned i = 0; i < chart->n_curves; i++) put_panel(out, chart, &all[i], i, high);
  fputs("unset multiplot\n", out);
}

/* ---- text ---- */

static double mean_of(const series *s, uint32_t begin, uint32_t end) {
  double sum = 0;
  if (end == begin) end++;
  for (uint32_t i = begin; i < end && i < s->n; i++) sum += s->running[i];
  return sum / (end - begin);
}

static void put_rows(FILE *out, const sn__chart *chart, const series *s) {
  unsigned columns = chart->columns - LABEL_COLUMNS - 1;
  for (unsigned row = s->most; row > 0; row--) {
    fprintf(out, "%*u |", LABEL_COLUMNS - 2, row);
    for (unsigned c = 0; c < columns; c++) {
      uint32_t begin = (uint32_t)((uint64_t)c * s->n / columns), end = (uint32_t)(((uint64_t)c + 1) * s->n / columns);
      putc(mean_of(s, begin, end) >= row - 0.5 ? '#' : ' ', out);
    }
    fputs("|\n", out);
  }
  fprintf(out, "%*s1%*" PRIu32 "\n", LABEL_COLUMNS, "", (int)columns - 1, s->n);
}

static void put_text(FILE *out, const sn__chart *chart, const series *all) {
  sn__put_subject(out, chart, sn__put_plain);
  fputs("\noperations that run at once, over their starts and ends\n", out);
  for (unsigned i = 0; i < chart->n_curves; i++) {
    fputs("\n", out);
    sn__put_plain(out, chart->curves[i].result->strategy, 60);
    fprintf(out, ": %.2f on average, %u at most\n", all[i].mean, all[i].most);
    put_rows(out, chart, &all[i]);
  }
}

/* ---- both ---- */

static sn_status with_series(FILE *out, const sn__chart *chart,
                             void (*put)(FILE *out, const sn__chart *chart, const series *all), sn_err *err) {
  series *all = calloc(chart->n_curves, sizeof *all);
  if (!all) return sn_fail_memory(err);
  for (unsigned i = 0; i < chart->n_curves && err->code == SN_OK; i++)
    make(chart->timelines[i], chart->curves[i].result, &all[i], err);
  if (err->code == SN_OK) put(out, chart, all);
  for (unsigned i = 0; i < chart->n_curves; i++) free(all[i].running);
  free(all);
  return err->code;
}

sn_status sn__corun_write(FILE *out, const sn__chart *chart, sn_err *err) {
  return with_series(out, chart, put_script, err);
}

sn_status sn__corun_text(FILE *out, const sn__chart *chart, sn_err *err) {
  return with_series(out, chart, put_text, err);
}
