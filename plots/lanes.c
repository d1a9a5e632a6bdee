/* Lanes: one strategy's iteration over time. Above, what the compute lane and the two copy lanes do; below, the memory
 * that tensors and workspace hold.
 *
 *   compute  [forward][forward]~~~[forward]   ~~~ waits for a copy
 *   out             [copy]
 *   in                          [copy]
 *
 * A lane is cut into columns. A column has one colour: of the kinds of which there is time in it, the one that is most
 * behind what it should have by now, so that of any stretch each kind gets its share of columns, however short its bars
 * (error diffusion, Floyd and Steinberg 1976, along one line). O(bars + columns + levels). A copy lane that waits has
 * nothing to do; only waiting of the compute lane is drawn. */
#include "plots/plot_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef enum kind { FORWARD, BACKWARD, RERUN, UPDATE, COPY_OUT, COPY_IN, WAITING, ALLOCATING, IDLE, KINDS } kind;

static const struct paint {
  const char *name, *colour;
  char letter;
} paints[KINDS] = {
    [FORWARD] = {"forward", SN__BLUE, 'F'},
    [BACKWARD] = {"backward", SN__ORANGE, 'B'},
    [RERUN] = {"forward again", SN__GREEN, 'R'},
    [UPDATE] = {"update", SN__BLACK, 'U'},
    [COPY_OUT] = {"copy out", SN__PURPLE, 'o'},
    [COPY_IN] = {"copy in", SN__SKY_BLUE, 'i'},
    [WAITING] = {"waiting", SN__VERMILLION, '~'},
    [ALLOCATING] = {"cudaMalloc, cudaFree", SN__GREY, 'm'},
    [IDLE] = {"", "#ffffff", ' '},
};

static const char *const lane_names[SN_PLAIN_LANES] = {"compute", "out", "in"};

enum { LABEL_COLUMNS = 8 };

static kind compute_kind(const sn_timeline *t, const sn_bar *bar) {
  const char *pass = t->steps[bar->what - 1].pass;
  if (bar->rerun) return RERUN;
  return strcmp(pass, "forward") == 0 ? FORWARD : strcmp(pass, "backward") == 0 ? BACKWARD : UPDATE;
}

static kind kind_of(const sn_timeline *t, const sn_bar *bar) {
  switch ((sn_bar_kind)bar->kind) {
  case SN_BAR_COMPUTE:
    return compute_kind(t, bar);
  case SN_BAR_COPY_OUT:
    return COPY_OUT;
  case SN_BAR_COPY_IN:
    return COPY_IN;
  case SN_BAR_STALL:
    return bar->lane == SN_LANE_COMPUTE ? WAITING : IDLE;
  default:
    return ALLOCATING;
  }
}

static void sum_kinds(const sn_timeline *t, int64_t *ns) {
  for (uint32_t b = 0; b < t->n_bars; b++) ns[kind_of(t, &t->bars[b])] += t->bars[b].end_ns - t->bars[b].begin_ns;
}

/* ---- columns ---- */

/* Adds the share of each column that the bar takes: share[column * KINDS + kind]. */
static void spread(const sn_timeline *t, const sn_bar *bar, unsigned columns, double *share) {
  double scale = columns / (double)t->end_ns, begin = (double)bar->begin_ns * scale, end = (double)bar->end_ns * scale;
  for (size_t c = (size_t)begin; c < columns && (double)c < end; c++) {
    double left = (double)c, from = begin > left ? begin : left, to = end < left + 1 ? end : left + 1;
    if (to > from) share[c * KINDS + (unsigned)kind_of(t, bar)] += to - from;
  }
}

/* What is left of the columns is idle; `kinds` is what each shows. */
static void diffuse(double *share, unsigned columns, unsigned char *kinds) {
  double behind[KINDS] = {0};
  for (size_t c = 0; c < columns; c++) {
    double *here = &share[c * KINDS], rest = 1;
    int most = IDLE;
    for (int k = 0; k < IDLE; k++) rest -= here[k];
    here[IDLE] = rest > 1e-6 ? rest : 0;
    for (int k = 0; k < KINDS; k++) behind[k] += here[k];
    for (int k = 0; k < KINDS; k++)
      if (here[k] > 0 && (here[most] <= 0 || behind[k] > behind[most])) most = k;
    behind[most] -= 1;
    kinds[c] = (unsigned char)most;
  }
}

/* One array per lane of `columns` each; the caller frees it. NULL: out of memory. */
static unsigned char *make_columns(const sn_timeline *t, unsigned columns, sn_err *err) {
  double *share = calloc((size_t)columns * KINDS * SN_PLAIN_LANES, sizeof *share);
  unsigned char *kinds = malloc((size_t)columns * SN_PLAIN_LANES);
  if (!share || !kinds) sn_fail_memory(err);
  for (uint32_t b = 0; err->code == SN_OK && t->end_ns > 0 && b < t->n_bars; b++)
    spread(t, &t->bars[b], columns, &share[(size_t)t->bars[b].lane * columns * KINDS]);
  for (unsigned lane = 0; err->code == SN_OK && lane < SN_PLAIN_LANES; lane++)
    diffuse(&share[(size_t)lane * columns * KINDS], columns, &kinds[(size_t)lane * columns]);
  free(share);
  if (err->code == SN_OK) return kinds;
  free(kinds);
  return NULL;
}

/* ---- gnuplot ---- */

/* Data block $k<kind>: begin, end (ms) and lane of columns that follow each other; first of all one that is not seen,
 * as a block must not be empty. */
static void put_bars(FILE *out, const sn_timeline *t, const unsigned char *kinds, int wanted) {
  double ms = (double)t->end_ns / 1e6 / SN__LANE_COLUMNS;
  fprintf(out, "$k%d << END\n0 0 0\n", wanted);
  for (unsigned lane = 0; lane < SN_PLAIN_LANES; lane++)
    for (unsigned c = 0, end; c < SN__LANE_COLUMNS; c = end) {
      for (end = c + 1;
           end < SN__LANE_COLUMNS && kinds[lane * SN__LANE_COLUMNS + end] == kinds[lane * SN__LANE_COLUMNS + c]; end++)
        continue;
      if (kinds[lane * SN__LANE_COLUMNS + c] == wanted) fprintf(out, "%.9g %.9g %u\n", c * ms, end * ms, lane);
    }
  fputs("END\n", out);
}

static void put_level(FILE *out, const sn__unit *unit, double ms, uint64_t tensors, uint64_t all) {
  fprintf(out, "%.9g %.9g %.9g\n", ms, (double)tensors / unit->bytes, (double)all / unit->bytes);
}

/* Data block $m: time (ms), tensors, tensors and workspace, the most that is held in each column. */
static void put_memory(FILE *out, const sn_timeline *t, const sn__unit *unit) {
  double width = (double)t->end_ns / SN__LANE_COLUMNS;
  sn_level now = {0};
  fputs("$m << END\n", out);
  for (uint32_t c = 0, l = 0; c < SN__LANE_COLUMNS; c++) {
    uint64_t tensors = now.tensor_bytes, all = now.tensor_bytes + now.workspace_bytes;
    for (; l < t->n_levels && (double)t->levels[l].ns < (c + 1) * width; l++) {
      now = t->levels[l];
      if (now.tensor_bytes > tensors) tensors = now.tensor_bytes;
      if (now.tensor_bytes + now.workspace_bytes > all) all = now.tensor_bytes + now.workspace_bytes;
    }
    put_level(out, unit, c * width / 1e6, tensors, all);
  }
  put_level(out, unit, (double)t->end_ns / 1e6, 0, 0);
  fputs("END\n", out);
}

static uint64_t most_memory(const sn_timeline *t) {
  uint64_t most = 1;
  for (uint32_t l = 0; l < t->n_levels; l++) {
    uint64_t sum = t->levels[l].tensor_bytes + t->levels[l].workspace_bytes;
    if (sum > most) most = sum;
  }
  return most;
}

#define TENSORS "#7f7f7f"
#define ALL     "#c8c8c8"

static void put_key(FILE *out, const sn__chart *chart, const int64_t *ns) {
  const char *separator = "plot";
  char name[80];
  sn__put_key_panel(out, chart, 0.17);
  for (int k = 0; k < IDLE; k++) {
    if (ns[k] == 0) continue;
    snprintf(name, sizeof name, "%s, %.*f ms", paints[k].name, ns[k] < 100000000 ? 2 : 0, (double)ns[k] / 1e6);
    sn__put_key_entry(out, separator, paints[k].colour, name);
    separator = ",";
  }
  sn__put_key_entry(out, separator, TENSORS, "tensors");
  sn__put_key_entry(out, ",", ALL, "workspace");
  fputs("\n", out);
}

static void put_lanes(FILE *out, const int64_t *ns) {
  const char *separator = "plot";
  fputs("set tmargin at screen 0.9\nset bmargin at screen 0.62\nset yrange [2.6:-0.6]\nset xtics scale 0 format ''\n"
        "set ytics scale 0 ('compute' 0, 'copy out' 1, 'copy in' 2)\nset border 0\nunset key\n",
        out);
  for (int k = 0; k < IDLE; k++) {
    if (ns[k] == 0) continue;
    fprintf(out,
            "%s $k%d using 1:3:1:2:($3-0.42):($3+0.42) with boxxyerror fillcolor rgb '%s' fillstyle solid noborder",
            separator, k, paints[k].colour);
    separator = ",";
  }
  fputs("\n", out);
}

/* Names of bars, in those that are likely to have room. */
static void put_bar_names(FILE *out, const sn__chart *chart) {
  const sn_timeline *t = chart->timeline;
  enum { LETTERS = 160 }; /* as wide as the frame */
  for (uint32_t b = 0; b < t->n_bars; b++) {
    const sn_bar *bar = &t->bars[b];
    double ms = (double)(bar->end_ns - bar->begin_ns) / 1e6,
           share = (double)(bar->end_ns - bar->begin_ns) / (double)t->end_ns;
    bool named = bar->kind == SN_BAR_COMPUTE || bar->kind == SN_BAR_COPY_OUT || bar->kind == SN_BAR_COPY_IN;
    if (!named || share * LETTERS < (double)strlen(bar->name) + 1) continue;
    fputs("set label '", out);
    sn__put_text(out, bar->name, 60);
    fprintf(out, "' at first %.9g, first %u center textcolor rgb '%s' font ',%s' front\n",
            (double)bar->begin_ns / 1e6 + ms / 2, bar->lane,
            kind_of(t, bar) == FORWARD || kind_of(t, bar) == UPDATE ? "white" : "black",
            sn__look_of(chart->form)->small_font);
  }
}

static void put_levels(FILE *out, const sn__unit *unit, uint64_t most) {
  fprintf(out, "set tmargin at screen 0.58\nset bmargin at screen 0.29\nset yrange [0:%.9g]\nset ylabel 'pool (%s)'\n",
          (double)most / unit->bytes * 1.05, unit->name);
  fputs("set xtics scale 0.6 format '%g'\nset xlabel 'time (ms)'\nset ytics autofreq scale 0.6\n"
        "set border 3 linewidth 0.7\nset grid ytics linecolor rgb '#d9d9d9' linewidth 0.6 dashtype 1\n",
        out);
  fputs("plot $m using 1:3 with fillsteps fillcolor rgb '" ALL "' fillstyle solid noborder,"
        " $m using 1:2 with fillsteps fillcolor rgb '" TENSORS "' fillstyle solid noborder\n",
        out);
}

sn_status sn__lanes_write(FILE *out, const sn__chart *chart, sn_err *err) {
  const sn_timeline *t = chart->timeline;
  uint64_t most = most_memory(t);
  sn__unit unit = sn__unit_for(most);
  int64_t ns[KINDS] = {0};
  unsigned char *kinds = make_columns(t, SN__LANE_COLUMNS, err);
  if (!kinds) return err->code;
  sum_kinds(t, ns);
  sn__put_terminal(out, chart->form, chart->columns, chart->rows);
  for (int k = 0; k < IDLE; k++)
    if (ns[k] > 0) put_bars(out, t, kinds, k);
  free(kinds);
  put_memory(out, t, &unit);
  fputs("set multiplot title '", out);
  sn__put_subject(out, chart, sn__put_text);
  fprintf(out, "' offset 0,-0.3\nset xrange [0:%.9g]\nset lmargin at screen 0.11\nset rmargin at screen 0.97\n",
          t->end_ns > 0 ? (double)t->end_ns / 1e6 : 1);
  fputs("set tics out scale 0.6\nset xtics nomirror\nset ytics nomirror\n", out);
  put_bar_names(out, chart);
  put_lanes(out, ns);
  fputs("unset label\n", out);
  put_levels(out, &unit, most);
  put_key(out, chart, ns);
  fputs("unset multiplot\n", out);
  return SN_OK;
}

/* ---- text ---- */

static void put_lane(FILE *out, unsigned lane, const unsigned char *kinds, unsigned columns) {
  fprintf(out, "%-*s|", LABEL_COLUMNS - 1, lane_names[lane]);
  for (unsigned c = 0; c < columns; c++) putc(paints[kinds[lane * columns + c]].letter, out);
  fputs("|\n", out);
}

sn_status sn__lanes_text(FILE *out, const sn__chart *chart, sn_err *err) {
  const sn_timeline *t = chart->timeline;
  unsigned columns = chart->columns - LABEL_COLUMNS - 1;
  int64_t ns[KINDS] = {0};
  char end[32];
  unsigned char *kinds = make_columns(t, columns, err);
  if (!kinds) return err->code;
  sum_kinds(t, ns);
  sn__put_subject(out, chart, sn__put_plain);
  fputs("\n\n", out);
  for (unsigned lane = 0; lane < SN_PLAIN_LANES; lane++) put_lane(out, lane, kinds, columns);
  free(kinds);
  snprintf(end, sizeof end, "%.2f ms", (double)t->end_ns / 1e6);
  fprintf(out, "%*s0%*s\n\n", LABEL_COLUMNS, "", (int)columns - 1, end);
  for (int k = 0; k < IDLE; k++)
    if (ns[k] > 0) fprintf(out, "%c %-20s %10.2f ms\n", paints[k].letter, paints[k].name, (double)ns[k] / 1e6);
  return SN_OK;
}
