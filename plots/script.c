/* Script: a run's step curves as a gnuplot script, in the form of figure 10 of [SN]: memory of functional tensors as
 * lines on the left axis, live tensors dashed in the same colour on the right axis, a line between forward and
 * backward.
 *
 * Everything outside the script's own words is numbers or quoted text: names that users choose are cleaned and stand in
 * single quotes, within which gnuplot replaces nothing. Colours are Okabe and Ito's, which colour-blind people can tell
 * apart (Color Universal Design, 2008). Cost: O(steps); curves are thinned to SN__CURVE_POINTS.
 *
 * Limit line: the device's memory less what is not functional tensors (context and persistent bytes), since that is
 * what the curves must stay below. Workspace, which varies by step, is not drawn. */
#include "plots/plot_internal.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

/* ---- what the chart needs to know of its run ---- */

typedef struct frame {
  const sn__chart *chart;
  const char *unit;
  double unit_bytes;
  uint32_t n_steps;    /* the most of any curve */
  uint32_t first_back; /* the first backward step; 0: none */
  uint32_t most_live;
  uint64_t most_bytes;
  uint64_t limit_bytes; /* room for functional tensors; 0: not drawn */
  uint32_t bucket;      /* steps per point */
} frame;

static void measure_curve(frame *f, const sn_result *result) {
  if (result->n_steps > f->n_steps) f->n_steps = result->n_steps;
  for (uint32_t i = 0; i < result->n_steps; i++) {
    const sn_step_row *row = &result->steps[i];
    if (row->tensor_bytes > f->most_bytes) f->most_bytes = row->tensor_bytes;
    if (row->live_tensors > f->most_live) f->most_live = row->live_tensors;
    if (f->first_back == 0 && strcmp(row->pass, "backward") == 0) f->first_back = row->step;
  }
}

/* Bytes that are left for functional tensors beside what `result` keeps on the device; 0 where nothing is. */
static uint64_t room_for_tensors(const sn_run *run, const sn_result *result) {
  uint64_t kept = result->context_bytes + sn_persistent_total(&result->persistent);
  uint64_t room = kept < run->memory_bytes ? run->memory_bytes - kept : 0;
  return run->pool_limit_bytes != 0 && run->pool_limit_bytes < room ? run->pool_limit_bytes : room;
}

static uint64_t smallest_room(const sn__chart *chart) {
  uint64_t least = UINT64_MAX;
  for (unsigned i = 0; i < chart->n_results; i++) {
    uint64_t room = room_for_tensors(chart->run, chart->results[i]);
    if (room < least) least = room;
  }
  return least;
}

static frame measure(const sn__chart *chart) {
  frame f = {.chart = chart};
  for (unsigned i = 0; i < chart->n_results; i++) measure_curve(&f, chart->results[i]);
  uint64_t room = smallest_room(chart);
  if ((double)room <= 1.25 * (double)f.most_bytes) f.limit_bytes = room; /* farther off it would flatten the curves */
  bool large = f.most_bytes >= UINT64_C(4) << 30;
  f.unit = large ? "GiB" : "MiB";
  f.unit_bytes = large ? 1073741824.0 : 1048576.0;
  f.bucket = (f.n_steps + SN__CURVE_POINTS - 1) / SN__CURVE_POINTS;
  return f;
}

/* ---- text ---- */

/* Length of the UTF-8 character at `s`, 0 where there is none (RFC 3629, without looking for surrogates). */
static unsigned utf8_length(const unsigned char *s) {
  unsigned n = s[0] < 0x80                   ? 1
               : s[0] >= 0xc2 && s[0] < 0xe0 ? 2
               : s[0] >= 0xe0 && s[0] < 0xf0 ? 3
               : s[0] >= 0xf0 && s[0] < 0xf5 ? 4
                                             : 0;
  for (unsigned i = 1; i < n; i++)
    if ((s[i] & 0xc0) != 0x80) return 0;
  return n;
}

/* Writes one character for use inside single quotes: quotes doubled, control characters and broken UTF-8 as '?'.
 * Returns how many bytes it took. */
static unsigned put_character(FILE *out, const unsigned char *s) {
  unsigned n = utf8_length(s);
  if (n == 0 || *s < 0x20 || *s == 0x7f)
    putc('?', out);
  else if (*s == '\'')
    fputs("''", out);
  else
    fwrite(s, 1, n, out);
  return n ? n : 1;
}

/* Writes the last `most` characters of `text`: of a long path the end says more. */
void sn__script_text(FILE *out, const char *text, size_t most) {
  const unsigned char *s = (const unsigned char *)text;
  size_t length = 0;
  for (const unsigned char *c = s; *c; length++) c += utf8_length(c) ? utf8_length(c) : 1;
  if (length > most) fputs("...", out);
  for (; length > most; length--) s += utf8_length(s) ? utf8_length(s) : 1;
  while (*s) s += put_character(out, s);
}

/* ---- the parts of the script ---- */

/* What differs between the forms: the terminal's set-up, the size of the legend's letters and of the curves'
 * marks, how far the passes' names and the title stand above their places, in lines. */
typedef struct look {
  const char *terminal, *key_font, *mark_size, *lift;
} look;

static const look looks[] = {
    [SN__FORM_PNG] =
        {/* the terminal png cannot draw dashes */
         .terminal = "if (strstrt(GPVAL_TERMINALS, ' pngcairo ') > 0) {\n"
                     "  set terminal pngcairo size 1800,1125 font 'Sans,24' linewidth 2.6 noenhanced\n"
                     "} else {\n"
                     "  set terminal png size 1080,675 giant linewidth 2 noenhanced\n"
                     "  counts = 'thin'; count_width = 0.4\n"
                     "}\n",
         .key_font = "21",
         .mark_size = "0.7",
         .lift = "0.8"},
    [SN__FORM_SVG] = {.terminal = "set terminal svg size 900,563 font 'sans-serif,13' linewidth 1.3 noenhanced"
                                  " background '#ffffff'\n",
                      .key_font = "11.5",
                      .mark_size = "0.45",
                      .lift = "0.8"},
    [SN__FORM_PDF] = {.terminal = "set terminal pdfcairo size 16cm,10cm font 'Sans,9.5' linewidth 1.3 noenhanced\n",
                      .key_font = "8.5",
                      .mark_size = "0.4",
                      .lift = "0.8"},
    [SN__FORM_TEXT] = {.lift = "1"},
};

void sn__script_terminal(FILE *out, sn__form form) {
  fprintf(out, "counts = 'dashed'; count_width = 0.8\n%sset encoding utf8\n", looks[form].terminal);
}

const char *sn__script_key_font(sn__form form) {
  return looks[form].key_font;
}

const char *sn__script_mark_size(sn__form form) {
  return looks[form].mark_size;
}

static void put_terminal(FILE *out, const frame *f) {
  if (f->chart->form == SN__FORM_TEXT)
    fprintf(out, "set terminal dumb size %u,%u mono nofeed noenhanced\nset encoding utf8\n", f->chart->columns,
            f->chart->rows);
  else
    sn__script_terminal(out, f->chart->form);
}

static void put_title(FILE *out, const frame *f) {
  fputs("set title '", out);
  sn__script_text(out, f->chart->run->net, 48);
  fprintf(out, ", batch %" PRIu32 ", on ", f->chart->run->batch);
  sn__script_text(out, f->chart->run->gpu, 32);
  if (f->chart->form == SN__FORM_TEXT) fputs(": functional tensors", out); /* no room along the axis */
  fprintf(out, "' offset 0,%s\nset tmargin 3.7\n", looks[f->chart->form].lift);
}

static void put_x_axis(FILE *out, const frame *f) {
  fprintf(out, "set xrange [0.5:%" PRIu32 ".5]\n", f->n_steps);
  if (f->bucket > 1)
    fprintf(out, "set xlabel 'step of the iteration (each point the largest of %" PRIu32 " steps)'\n", f->bucket);
  else
    fputs("set xlabel 'step of the iteration'\n", out);
}

static double top_of(const frame *f) {
  double most = f->most_bytes > 0 ? (double)f->most_bytes : f->unit_bytes;
  double limit = (double)f->limit_bytes;
  return (limit > most ? limit : most) * 1.05 / f->unit_bytes;
}

static void put_y_axes(FILE *out, const frame *f) {
  bool text = f->chart->form == SN__FORM_TEXT;
  fprintf(out, "set yrange [0:%.9g]\n", top_of(f));
  if (text) {
    fprintf(out, "set ylabel '%s'\n", f->unit);
    return;
  }
  fprintf(out, "set ylabel 'functional tensors (%s), solid'\nset y2label 'live tensors (count), '.counts\n", f->unit);
  fprintf(out, "set y2range [0:%.9g]\nset ytics nomirror\nset y2tics\n", (f->most_live > 0 ? f->most_live : 1) * 1.3);
}

/* The line between the passes, and their names above the frame, where no curve can be. */
static void put_passes(FILE *out, const frame *f) {
  double divide = f->first_back - 0.5;
  const char *lift = looks[f->chart->form].lift;
  if (f->first_back < 2) return;
  fprintf(out,
          "set arrow from first %.1f, graph 0 to first %.1f, graph 1 nohead linecolor rgb '#808080' linewidth 0.7\n",
          divide, divide);
  fprintf(out, "set label 'forward' at first %.2f, graph 1 center offset 0,%s\n", (divide + 0.5) / 2, lift);
  fprintf(out, "set label 'backward' at first %.2f, graph 1 center offset 0,%s\n", (divide + f->n_steps + 0.5) / 2,
          lift);
}

static void put_style(FILE *out, const frame *f) {
  if (f->chart->form == SN__FORM_TEXT) {
    fputs("set key below center horizontal maxcols 2 Left reverse samplen 4 width 2\n", out);
    return;
  }
  fprintf(out, "set key below center horizontal maxcols 2 Left reverse samplen 3 spacing 1.25 height 0.8 font ',%s'\n",
          looks[f->chart->form].key_font);
  fputs("set border 11 linewidth 0.7\nset tics out scale 0.6\nset xtics nomirror\n"
        "set grid ytics linecolor rgb '#d9d9d9' linewidth 0.6 dashtype 1\n",
        out);
}

/* ---- curves ---- */

/* Data block $s<number>: step and memory, step and tensors; one line per bucket, each with the step that has the most.
 */
static void put_data(FILE *out, const frame *f, unsigned number, const sn_result *result) {
  fprintf(out, "$s%u << END\n", number);
  for (uint32_t begin = 0; begin < result->n_steps; begin += f->bucket) {
    const sn_step_row *memory = &result->steps[begin], *live = memory;
    for (uint32_t i = begin; i < result->n_steps && i - begin < f->bucket; i++) {
      const sn_step_row *row = &result->steps[i];
      if (row->tensor_bytes > memory->tensor_bytes) memory = row;
      if (row->live_tensors > live->live_tensors) live = row;
    }
    fprintf(out, "%" PRIu32 " %.9g %" PRIu32 " %" PRIu32 "\n", memory->step,
            (double)memory->tensor_bytes / f->unit_bytes, live->step, live->live_tensors);
  }
  fputs("END\n", out);
}

/* Black, blue, vermillion, bluish green, reddish purple, orange, sky blue; yellow is too pale for lines on white. */
const char *const sn__colours[SN__COLOURS] = {"#000000", "#0072B2", "#D55E00", "#009E73",
                                              "#CC79A7", "#E69F00", "#56B4E9"};
static const int marks[] = {7, 5, 9, 11, 13, 4, 6};

enum { MARKED_STEPS = 120 };

/* Where there are more curves than colours, the colours come again in thicker lines. */
static void put_memory_curve(FILE *out, const frame *f, unsigned i) {
  bool text = f->chart->form == SN__FORM_TEXT;
  fprintf(out, "%s $s%u using 1:2 with ", i == 0 ? "plot" : ",", i);
  if (text)
    fputs("lines title ' ", out);
  else if (f->n_steps <= MARKED_STEPS)
    fprintf(out, "linespoints linecolor rgb '%s' linewidth %u pointtype %d pointsize %s title '",
            sn__colours[i % SN__COLOURS], 1 + i / SN__COLOURS, marks[i % SN__COLOURS], looks[f->chart->form].mark_size);
  else
    fprintf(out, "lines linecolor rgb '%s' linewidth %u title '", sn__colours[i % SN__COLOURS], 1 + i / SN__COLOURS);
  sn__script_text(out, f->chart->results[i]->strategy, 60);
  fputs("'", out);
}

static void put_live_curve(FILE *out, unsigned i) {
  fprintf(out, ", $s%u using 3:4 axes x1y2 with lines linecolor rgb '%s' dashtype (14,8) linewidth count_width notitle",
          i, sn__colours[i % SN__COLOURS]);
}

static void put_limit(FILE *out, const frame *f) {
  if (f->limit_bytes == 0) return;
  double limit = (double)f->limit_bytes / f->unit_bytes;
  fprintf(out, ", %.9g with lines linecolor rgb '#808080' dashtype (20,6,4,6) linewidth 1.3", limit);
  fprintf(out, " title '%sroom for tensors on ", f->chart->form == SN__FORM_TEXT ? " " : "");
  sn__script_text(out, f->chart->run->gpu, 32);
  fprintf(out, ": %.*f %s'", f->unit_bytes > 1e9 ? 2 : 0, limit, f->unit);
}

void sn__script_write(FILE *out, const sn__chart *chart) {
  frame f = measure(chart);
  put_terminal(out, &f);
  put_title(out, &f);
  put_x_axis(out, &f);
  put_y_axes(out, &f);
  put_passes(out, &f);
  put_style(out, &f);
  for (unsigned i = 0; i < chart->n_results; i++) put_data(out, &f, i, chart->results[i]);
  for (unsigned i = 0; i < chart->n_results; i++) put_memory_curve(out, &f, i);
  for (unsigned i = 0; i < chart->n_results && chart->form != SN__FORM_TEXT; i++) put_live_curve(out, i);
  put_limit(out, &f);
  fputs("\n", out);
}
