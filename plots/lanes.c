/* Lanes: one strategy's iteration over time. Above, what the compute lane, the two copy lanes and among several GPUs
 * those of collectives do, or of a co-run plan its compute lanes; below, the memory that tensors and workspace hold.
 *
 *   compute  [forward][forward]~~~[forward]   ~~~ waits for a copy or a collective
 *   out             [copy]
 *   in                          [copy]
 *
 * A lane is cut into columns. A column has one colour: of the kinds of which there is time in it, the one that is most
 * behind what it should have by now, so that of any stretch each kind gets its share of columns, however short its bars
 * (error diffusion, Floyd and Steinberg 1976, along one line). O(bars + columns + levels). A lane that waits has
 * nothing to do; only waiting of a compute lane that is the only one is drawn. */
#include "base/units.h"
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

/* The lanes that are drawn, from top to bottom. */
typedef struct rows {
  const sn_timeline *timeline;
  unsigned columns; /* that a lane is cut into */
  uint32_t n_lanes;
  sn_lane lanes[SN_LANES];
} rows;

static rows rows_of(const sn_timeline *t, unsigned columns) {
  rows r = {.timeline = t, .columns = columns};
  r.n_lanes = sn_timeline_lanes(t, r.lanes);
  return r;
}

/* Of a bar; n_lanes: of none. */
static uint32_t row_of(const rows *r, const sn_bar *bar) {
  uint32_t row = 0;
  while (row < r->n_lanes && r->lanes[row] != bar->lane) row++;
  return row;
}

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
    return sn_bar_is_idle(t, bar) ? IDLE : WAITING;
  default:
    return ALLOCATING;
  }
}

/* Without transfers, which run beside what computes. */
static void sum_kinds(const sn_timeline *t, int64_t *ns) {
  for (uint32_t b = 0; b < t->n_bars; b++) {
    const sn_bar *bar = &t->bars[b];
    if (bar->lane < SN_LANE_TP) ns[kind_of(t, bar)] += bar->end_ns - bar->begin_ns;
  }
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

static void fill_columns(const rows *r, double *share, unsigned char *kinds) {
  const sn_timeline *t = r->timeline;
  size_t row_size = (size_t)r->columns * KINDS;
  for (uint32_t b = 0; t->end_ns > 0 && b < t->n_bars; b++) {
    uint32_t row = row_of(r, &t->bars[b]);
    if (row < r->n_lanes) spread(t, &t->bars[b], r->columns, &share[row * row_size]);
  }
  for (uint32_t row = 0; row < r->n_lanes; row++)
    diffuse(&share[row * row_size], r->columns, &kinds[(size_t)row * r->columns]);
}

/* One array per row of `columns` each; the caller frees it. NULL: out of memory. */
static unsigned char *make_columns(const rows *r, sn_err *err) {
  double *share = calloc((size_t)r->columns * KINDS * SN_LANES, sizeof *share);
  unsigned char *kinds = malloc((size_t)r->columns * SN_LANES);
  if (share && kinds) {
    fill_columns(r, share, kinds);
  } else {
    sn_fail_memory(err);
    free(kinds);
    kinds = NULL;
  }
  free(share);
  return kinds;
}

/* ---- gnuplot ---- */

/* Data block $k<kind>: begin, end (ms) and row of columns that follow each other; first of all one that is not seen,
 * as a block must not be empty. */
static void put_bars(FILE *out, const rows *r, const unsigned char *kinds, int wanted) {
  double ms = (double)r->timeline->end_ns / 1e6 / SN__LANE_COLUMNS;
  fprintf(out, "$k%d << END\n0 0 0\n", wanted);
  for (unsigned lane = 0; lane < r->n_lanes; lane++)
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
  char name[80], ms[SN_UNIT_TEXT];
  sn__put_key_panel(out, chart, 0.17);
  for (int k = 0; k < IDLE; k++) {
    if (ns[k] == 0) continue;
    snprintf(name, sizeof name, "%s, %s ms", paints[k].name, sn_print_digits((double)ns[k] / 1e6, 3, ms));
    sn__put_key_entry(out, separator, paints[k].colour, name);
    separator = ",";
  }
  sn__put_key_entry(out, separator, TENSORS, "tensors");
  sn__put_key_entry(out, ",", ALL, "workspace");
  fputs("\n", out);
}

static const char *row_name(sn_lane lane) {
  return lane == SN_LANE_OUT ? "copy out" : lane == SN_LANE_IN ? "copy in" : sn_lane_name(lane);
}

static void put_lanes(FILE *out, const rows *r, const int64_t *ns) {
  const char *separator = "plot";
  fprintf(out,
          "set tmargin at screen 0.9\nset bmargin at screen 0.62\nset yrange [%u.6:-0.6]\nset xtics scale 0 format ''\n"
          "set ytics scale 0 (",
          r->n_lanes - 1);
  for (uint32_t row = 0; row < r->n_lanes; row++)
    fprintf(out, "%s'%s' %u", row ? ", " : "", row_name(r->lanes[row]), row);
  fputs(")\nset border 0\nunset key\n", out);
  for (int k = 0; k < IDLE; k++) {
    if (ns[k] == 0) continue;
    fprintf(out,
            "%s $k%d using 1:3:1:2:($3-0.42):($3+0.42) with boxxyerror fillcolor rgb '%s' fillstyle solid noborder",
            separator, k, paints[k].colour);
    separator = ",";
  }
  fputs("\n", out);
}

/* What stands on a bar: of a collective what it is. */
static const char *text_of(const sn_timeline *t, const sn_bar *bar) {
  const char *transfer = bar->kind == SN_BAR_COMPUTE ? t->steps[bar->what - 1].transfer : NULL;
  return transfer ? transfer : bar->name;
}

/* Names of bars, in those that are likely to have room. */
static void put_bar_names(FILE *out, const rows *r, const sn__chart *chart) {
  const sn_timeline *t = chart->timeline;
  enum { LETTERS = 160 }; /* as wide as the frame */
  for (uint32_t b = 0; b < t->n_bars; b++) {
    const sn_bar *bar = &t->bars[b];
    double ms = (double)(bar->end_ns - bar->begin_ns) / 1e6,
           share = (double)(bar->end_ns - bar->begin_ns) / (double)t->end_ns;
    bool named = bar->kind == SN_BAR_COMPUTE || bar->kind == SN_BAR_COPY_OUT || bar->kind == SN_BAR_COPY_IN;
    if (!named || share * LETTERS < (double)(strlen(text_of(t, bar)) + strlen(sn_bar_part(bar))) + 1) continue;
    fputs("set label '", out);
    sn__put_text(out, text_of(t, bar), 60);
    fprintf(out, "%s' at first %.9g, first %u center textcolor rgb '%s' font ',%s' front\n", sn_bar_part(bar),
            (double)bar->begin_ns / 1e6 + ms / 2, row_of(r, bar),
            kind_of(t, bar) == FORWARD || kind_of(t, bar) == UPDATE ? "white" : "black",
            sn__look_of(chart->form)->small_font);
  }
}

/* PyTorch has no pool, which holds tensors and workspaces alone. */
static void put_levels(FILE *out, const sn_timeline *t, const sn__unit *unit, uint64_t most) {
  fprintf(out, "set tmargin at screen 0.58\nset bmargin at screen 0.29\nset yrange [0:%.9g]\nset ylabel '%s (%s)'\n",
          (double)most / unit->bytes * 1.05, t->served.n_segments > 0 ? "tensors" : "pool", unit->name);
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
  const rows r = rows_of(t, SN__LANE_COLUMNS);
  unsigned char *kinds = make_columns(&r, err);
  if (!kinds) return err->code;
  sum_kinds(t, ns);
  sn__put_terminal(out, chart->form, chart->columns, chart->rows);
  for (int k = 0; k < IDLE; k++)
    if (ns[k] > 0) put_bars(out, &r, kinds, k);
  free(kinds);
  put_memory(out, t, &unit);
  fputs("set multiplot title '", out);
  sn__put_subject(out, chart, sn__put_text);
  fprintf(out, "' offset 0,-0.3\nset xrange [0:%.9g]\nset lmargin at screen 0.11\nset rmargin at screen 0.97\n",
          t->end_ns > 0 ? (double)t->end_ns / 1e6 : 1);
  fputs("set tics out scale 0.6\nset xtics nomirror\nset ytics nomirror\n", out);
  put_bar_names(out, &r, chart);
  put_lanes(out, &r, ns);
  fputs("unset label\n", out);
  put_levels(out, t, &unit, most);
  put_key(out, chart, ns);
  fputs("unset multiplot\n", out);
  return SN_OK;
}

/* ---- text ---- */

static void put_lane(FILE *out, const rows *r, uint32_t row, int label_columns, const unsigned char *kinds) {
  fprintf(out, "%-*s|", label_columns - 1, sn_lane_name(r->lanes[row]));
  for (unsigned c = 0; c < r->columns; c++) putc(paints[kinds[row * r->columns + c]].letter, out);
  fputs("|\n", out);
}

sn_status sn__lanes_text(FILE *out, const sn__chart *chart, sn_err *err) {
  const sn_timeline *t = chart->timeline;
  int label_columns = sn_timeline_is_corun(t) ? 9 : 8;
  const rows r = rows_of(t, chart->columns - (unsigned)label_columns - 1);
  int64_t ns[KINDS] = {0};
  char ms[SN_UNIT_TEXT], end[SN_UNIT_TEXT + 8];
  unsigned char *kinds = make_columns(&r, err);
  if (!kinds) return err->code;
  sum_kinds(t, ns);
  sn__put_subject(out, chart, sn__put_plain);
  fputs("\n\n", out);
  for (uint32_t row = 0; row < r.n_lanes; row++) put_lane(out, &r, row, label_columns, kinds);
  free(kinds);
  snprintf(end, sizeof end, "%s ms", sn_print_digits((double)t->end_ns / 1e6, 3, ms));
  fprintf(out, "%*s0%*s\n\n", label_columns, "", (int)r.columns - 1, end);
  for (int k = 0; k < IDLE; k++)
    if (ns[k] > 0)
      fprintf(out, "%c %-20s %10s ms\n", paints[k].letter, paints[k].name, sn_print_digits((double)ns[k] / 1e6, 3, ms));
  return SN_OK;
}
