/* Breakdown: for every strategy a bar of the time of an iteration and one of the memory at its peak, both by type of
 * layer.
 *
 * Time is that of the steps' computing; what is left of the iteration is waiting for copies, and updates. Layers whose
 * forward runs again have a second, lighter part behind their own, "forward again"; where nobody knows when they ran it
 * counts for the layer whose backward waits for it. Operations of a co-run strategy that run side by side share the
 * time in equal parts; where nobody knows when they ran, it is not split. Memory is that of the functional tensors
 * which make up the peak, each by the layer it belongs to. O(steps log layers) a bar, O(operations log operations) of a
 * co-run strategy. Left out: workspace, and what stays for the whole training, which is the same for all strategies. */
#include "plots/plot_internal.h"

#include "base/arena.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_COLUMNS = 33 };
#define LIGHTER "0.45" /* of what runs again */
static const char again_letter = 'r';

/* Parts, and behind them those of layers that run again. */
enum { AGAIN = SN__PARTS, BOTH = 2 * SN__PARTS };

typedef struct bar {
  double time_ms[BOTH], memory[BOTH]; /* memory in units of the chart, of nothing again */
  double all_ms, all_memory;
} bar;

typedef struct breakdown {
  const sn__chart *chart;
  sn__unit unit;
  double most_ms, most_memory;
  bool used[BOTH];
  bar bars[]; /* one per curve */
} breakdown;

/* ---- sums ---- */

/* The layers in the order of their names, for looking up; NULL: out of memory. */
static sn__owner *sort_layers(const sn_result *r) {
  sn__owner *owners = calloc((size_t)r->n_steps + 1, sizeof *owners);
  if (!owners) return NULL;
  for (uint32_t i = 0; i < r->n_steps; i++) owners[i] = (sn__owner){r->steps[i].layer, r->steps[i].op};
  sn__owners_sort(owners, r->n_steps);
  return owners;
}

/* A tensor is called after its layer: "stem/conv1.y", "pool1.dx". */
static unsigned part_of_tensor(const char *tensor, const sn__owner *owners, uint32_t count) {
  char layer[192];
  const char *dot = strrchr(tensor, '.');
  snprintf(layer, sizeof layer, "%.*s", (int)(dot ? dot - tensor : 0), tensor);
  return sn__owner_part(owners, count, layer);
}

/* The start or end of an operation of a part. */
typedef struct event {
  int64_t ns;
  unsigned part;
  int change;
} event;

static int by_time(const void *a, const void *b) {
  const event *x = a, *y = b;
  return (x->ns > y->ns) - (x->ns < y->ns);
}

static uint32_t find_events(const sn_timeline *t, event *events) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < t->n_bars; i++) {
    const sn_bar *b = &t->bars[i];
    if (b->kind != SN_BAR_COMPUTE || b->lane >= SN_LANE_TP) continue; /* collectives run beside what computes */
    const sn_timeline_step *step = &t->steps[b->what - 1];            /* counted from 1 */
    unsigned own = sn__part_of(step->op) + (b->rerun ? AGAIN : 0);
    unsigned part = strcmp(step->pass, "update") == 0 ? SN__PART_WAITING : own;
    events[n++] = (event){b->begin_ns, part, 1};
    events[n++] = (event){b->end_ns, part, -1};
  }
  qsort(events, n, sizeof *events, by_time);
  return n;
}

/* Whatever runs at a moment has an equal part of it. */
static void share_time(const event *events, uint32_t n, int64_t end_ns, bar *b) {
  int running[BOTH] = {0}, all = 0;
  int64_t now = 0;
  for (uint32_t i = 0; i <= n; i++) {
    int64_t next = i < n ? events[i].ns : end_ns;
    double ms = fmax(0, (double)(next - now) / 1e6);
    if (all == 0) b->time_ms[SN__PART_WAITING] += ms;
    for (unsigned p = 0; p < BOTH && all > 0; p++) b->time_ms[p] += ms * running[p] / all;
    if (i == n) return;
    running[events[i].part] += events[i].change;
    all += events[i].change;
    now = next;
  }
}

static sn_status split_time(const sn_timeline *t, bar *b, sn_err *err) {
  event *events = calloc(2 * (size_t)t->n_bars + 1, sizeof *events);
  if (!events) return sn_fail_memory(err);
  share_time(events, find_events(t, events), t->end_ns, b);
  free(events);
  return SN_OK;
}

/* Of the steps, where nobody knows more. */
static void sum_steps(const sn_result *r, bar *b) {
  double rest = (double)r->iteration_ns; /* the store's steps may add up to more than a clock holds */
  for (uint32_t i = 0; i < r->n_steps; i++) {
    double ns = (double)r->steps[i].end_ns - (double)r->steps[i].begin_ns;
    b->time_ms[sn__part_of(r->steps[i].op)] += ns / 1e6;
    rest -= ns;
  }
  b->time_ms[SN__PART_WAITING] = fmax(rest, 0) / 1e6;
}

static sn_status sum_time(const sn__chart *chart, const sn_result *r, bar *b, sn_err *err) {
  const sn_plot_options *options = chart->options;
  bool corun = !sn_corun_row_is_empty(&r->corun), split = corun || r->recomputed_layers > 0 || r->shared.world > 1;
  b->all_ms = (double)r->iteration_ns / 1e6;
  sn_timeline *t = split && options && options->play ? options->play(options->player, r, err) : NULL;
  if (t)
    split_time(t, b, err);
  else if (corun)
    b->time_ms[SN__PART_SIDE_BY_SIDE] = b->all_ms;
  else
    sum_steps(r, b);
  sn_timeline_free(t);
  return err->code;
}

static sn_status sum_memory(const sn_result *r, const sn__unit *unit, bar *b, sn_err *err) {
  sn__owner *owners = sort_layers(r);
  if (!owners) return sn_fail_memory(err);
  for (uint32_t i = 0; i < r->n_peak; i++)
    b->memory[part_of_tensor(r->peak[i].tensor, owners, r->n_steps)] += (double)r->peak[i].bytes / unit->bytes;
  b->all_memory = (double)r->peak_tensor_bytes / unit->bytes;
  free(owners);
  return SN_OK;
}

static void note_most(breakdown *d, const bar *b) {
  if (b->all_ms > d->most_ms) d->most_ms = b->all_ms;
  if (b->all_memory > d->most_memory) d->most_memory = b->all_memory;
  for (unsigned p = 0; p < BOTH; p++) d->used[p] = d->used[p] || b->time_ms[p] > 0 || b->memory[p] > 0;
}

static uint64_t most_bytes(const sn__chart *chart) {
  uint64_t most = 0;
  for (unsigned i = 0; i < chart->n_curves; i++)
    if (chart->curves[i].result->peak_tensor_bytes > most) most = chart->curves[i].result->peak_tensor_bytes;
  return most;
}

/* The caller frees it; NULL: out of memory. */
static breakdown *sum_up(const sn__chart *chart, sn_err *err) {
  breakdown *d = calloc(1, sizeof *d + chart->n_curves * sizeof d->bars[0]);
  if (!d) {
    sn_fail_memory(err);
    return NULL;
  }
  d->chart = chart;
  d->unit = sn__unit_for(most_bytes(chart));
  d->most_ms = d->most_memory = 1e-6; /* axes need a length */
  for (unsigned i = 0; i < chart->n_curves; i++) {
    const sn_result *r = chart->curves[i].result;
    if (sum_time(chart, r, &d->bars[i], err) != SN_OK || sum_memory(r, &d->unit, &d->bars[i], err) != SN_OK) break;
    note_most(d, &d->bars[i]);
  }
  if (err->code == SN_OK) return d;
  free(d);
  return NULL;
}

/* ---- gnuplot ---- */

/* The n-th that a bar is made of: behind each part the same again. */
static unsigned nth(unsigned n) {
  return n / 2 + (n % 2 ? AGAIN : 0);
}

/* Data block $p<part>: one line per bar, low and high end of the part in both panels, and the bar's place. */
static void put_data(FILE *out, const breakdown *d) {
  for (unsigned n = 0; n < BOTH; n++) {
    unsigned p = nth(n);
    if (!d->used[p]) continue;
    fprintf(out, "$p%u << END\n", p);
    for (unsigned i = 0; i < d->chart->n_curves; i++) {
      const bar *b = &d->bars[i];
      double ms = 0, memory = 0;
      for (unsigned q = 0; q < n; q++) ms += b->time_ms[nth(q)], memory += b->memory[nth(q)];
      fprintf(out, "%.9g %.9g %.9g %.9g %u\n", ms, ms + b->time_ms[p], memory, memory + b->memory[p], i);
    }
    fputs("END\n", out);
  }
}

/* The bar's whole, behind its end. */
static void put_totals(FILE *out, const breakdown *d, bool time) {
  for (unsigned i = 0; i < d->chart->n_curves; i++) {
    double value = time ? d->bars[i].all_ms : d->bars[i].all_memory;
    fprintf(out, "set label %u '%.*f' at first %.9g, first %u left offset 0.5,0 font ',%s'\n", i + 1,
            value < 100 ? 2 : 0, value, value, i, sn__look_of(d->chart->form)->key_font);
  }
}

static void put_names(FILE *out, const breakdown *d) {
  fputs("set ytics scale 0 (", out);
  for (unsigned i = 0; i < d->chart->n_curves; i++) {
    const sn_result *r = d->chart->curves[i].result;
    fputs(i ? ", '" : "'", out);
    sn__put_text(out, r->strategy, 40);
    fprintf(out, "%s' %u", r->fits ? "" : " *", i);
  }
  fprintf(out, ") font ',%s'\n", sn__look_of(d->chart->form)->key_font);
}

/* 1, 2 or 5 times a power of ten, so that there are at most five ticks up to `most`. */
static double tick_step(double most) {
  double step = pow(10, floor(log10(most / 4)));
  return step * (most <= 4 * step ? 1 : most <= 8 * step ? 2 : most <= 20 * step ? 5 : 10);
}

static void put_panel(FILE *out, const breakdown *d, bool time) {
  double most = time ? d->most_ms : d->most_memory;
  const char *separator = "plot";
  fprintf(out, "set xrange [0:%.9g]\n", most * 1.22);
  fprintf(out, "set xtics %.9g\n", tick_step(most));
  fprintf(out, "set xlabel '%s (%s)'\n", time ? "time of an iteration" : "functional tensors at the peak",
          time ? "ms" : d->unit.name);
  put_totals(out, d, time);
  for (unsigned p = 0; p < BOTH; p++) {
    if (!d->used[p]) continue;
    fprintf(out,
            "%s $p%u using %s with boxxyerror fillcolor rgb '%s' fillstyle solid %s border rgb 'white' linewidth 0.4",
            separator, p, time ? "1:5:1:2:($5-0.38):($5+0.38)" : "3:5:3:4:($5-0.38):($5+0.38)",
            sn__parts[p % SN__PARTS].colour, p < AGAIN ? "1" : LIGHTER);
    separator = ",";
  }
  fputs("\n", out);
}

static bool has_again(const breakdown *d) {
  bool any = false;
  for (unsigned p = AGAIN; p < BOTH; p++) any = any || d->used[p];
  return any;
}

static void put_key(FILE *out, const breakdown *d) {
  const char *separator = "plot";
  sn__put_key_panel(out, d->chart, 0.11);
  for (unsigned p = 0; p < SN__PARTS; p++) {
    if (!d->used[p]) continue;
    sn__put_key_entry(out, separator, sn__parts[p].colour, sn__parts[p].name);
    separator = ",";
  }
  if (has_again(d)) sn__put_key_entry(out, separator, "#c4c4c4", "lighter: forward again");
  fputs("\n", out);
}

static bool all_fit(const sn__chart *chart) {
  for (unsigned i = 0; i < chart->n_curves; i++)
    if (!chart->curves[i].result->fits) return false;
  return true;
}

static void put_script(FILE *out, const breakdown *d) {
  const sn__chart *chart = d->chart;
  sn__put_terminal(out, chart->form, chart->columns, chart->rows);
  put_data(out, d);
  fputs("set multiplot title '", out);
  sn__put_subject(out, chart, sn__put_text);
  fprintf(out, "%s' offset 0,-0.3\n", all_fit(chart) ? "" : "    (* does not fit)");
  fputs("unset key\nset border 1 linewidth 0.7\nset tics out scale 0.6\nset xtics nomirror\n"
        "set grid xtics linecolor rgb '#d9d9d9' linewidth 0.6 dashtype 1\n",
        out);
  fprintf(out, "set yrange [%u.5:-0.5]\nset tmargin at screen 0.9\nset bmargin at screen 0.24\n", chart->n_curves - 1);
  fputs("set lmargin at screen 0.325\nset rmargin at screen 0.645\n", out);
  put_names(out, d);
  put_panel(out, d, true);
  fputs("set lmargin at screen 0.665\nset rmargin at screen 0.985\nunset ytics\n", out);
  put_panel(out, d, false);
  put_key(out, d);
  fputs("unset multiplot\n", out);
}

sn_status sn__breakdown_write(FILE *out, const sn__chart *chart, sn_err *err) {
  breakdown *d = sum_up(chart, err);
  if (d) put_script(out, d);
  free(d);
  return err->code;
}

/* ---- text ---- */

/* Letters of a bar `columns` wide at `most`; parts end where they would on paper. */
static void put_letters(FILE *out, const double *values, double most, unsigned columns) {
  double sum = 0;
  unsigned at = 0;
  for (unsigned n = 0; n < BOTH; n++) {
    unsigned p = nth(n);
    sum += values[p];
    unsigned end = (unsigned)(fmin(sum / most, 1) * columns + 0.5); /* a stored sum may be more than its whole */
    for (; at < end; at++) putc(p < AGAIN ? sn__parts[p].letter : again_letter, out);
  }
  putc('\n', out);
}

static void put_text_panel(FILE *out, const breakdown *d, bool time) {
  unsigned room = d->chart->columns > NAME_COLUMNS + 12 ? d->chart->columns - NAME_COLUMNS - 10 : 1;
  double most = time ? d->most_ms : d->most_memory;
  if (time)
    fputs("\ntime of an iteration (ms)\n", out);
  else
    fprintf(out, "\nfunctional tensors at the peak (%s)\n", d->unit.name);
  for (unsigned i = 0; i < d->chart->n_curves; i++) {
    char name[NAME_COLUMNS + 1];
    snprintf(name, sizeof name, "%s", d->chart->curves[i].result->strategy);
    fprintf(out, "%-*s%9.2f ", NAME_COLUMNS, sn_utf8_clean(name), time ? d->bars[i].all_ms : d->bars[i].all_memory);
    put_letters(out, time ? d->bars[i].time_ms : d->bars[i].memory, most, room - 1);
  }
}

sn_status sn__breakdown_text(FILE *out, const sn__chart *chart, sn_err *err) {
  unsigned at = 0;
  breakdown *d = sum_up(chart, err);
  if (!d) return err->code;
  sn__put_subject(out, chart, sn__put_plain);
  fputs("\n", out);
  put_text_panel(out, d, true);
  put_text_panel(out, d, false);
  fputs("\n", out);
  for (unsigned p = 0; p < SN__PARTS; p++)
    if (d->used[p]) at = sn__put_letter(out, chart, at, sn__parts[p].letter, sn__parts[p].name);
  if (has_again(d)) sn__put_letter(out, chart, at, again_letter, "forward again");
  fputs("\n", out);
  free(d);
  return SN_OK;
}
