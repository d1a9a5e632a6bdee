/* Cores: which operation of a co-run plan is on which cores when: cores upwards, time to the right, a rectangle each in
 * the colour of its operator. Second hardware threads are a band of their own above the first ones', hatched, as they
 * have the same cores at the same time. Threads that float over all cores (KxP with more threads than cores) are
 * stacked by the worker that has them. O(operations); as text O(operations * cells they cover). */
#include "base/units.h"
#include "plots/plot_internal.h"

#include <inttypes.h>
#include <string.h>

enum { LABEL_COLUMNS = 9, OTHER_ROWS = 8 /* of the text: heading, axis, legend */ };

/* Of what the rectangles stand in. */
typedef struct field {
  const sn_timeline *timeline;
  bool floats;         /* threads, not cores */
  bool has_second;     /* an operation is on second hardware threads */
  unsigned height;     /* of a band: cores, or threads of all workers */
  double second, high; /* where the band of second hardware threads begins, and the whole ends */
  double busy;         /* share of the first band that operations cover */
} field;

static bool is_operation(const sn_bar *bar) {
  return bar->kind == SN_BAR_COMPUTE && bar->team.count > 0;
}

static field measure(const sn_timeline *t) {
  field f = {.timeline = t, .height = t->cores};
  double covered = 0;
  for (uint32_t b = 0; b < t->n_bars; b++) {
    const sn_bar *bar = &t->bars[b];
    if (!is_operation(bar)) continue;
    f.has_second = f.has_second || bar->team.slot == SN_SLOT_SECOND;
    f.floats = f.floats || bar->team.slot == SN_SLOT_ANY;
    if (bar->team.slot == SN_SLOT_ANY) f.height = bar->team.first;
    if (bar->team.slot != SN_SLOT_SECOND) covered += (double)(bar->end_ns - bar->begin_ns) * bar->team.count;
  }
  f.second = f.height * 1.06;
  f.high = f.has_second ? f.second + f.height : f.height;
  f.busy = t->end_ns > 0 ? covered / ((double)t->end_ns * f.height) : 0;
  return f;
}

/* Workers are in the order of their lanes. */
static unsigned worker_of(const sn_bar *bar) {
  return bar->lane == SN_LANE_COMPUTE ? 0 : bar->lane - SN_LANE_COMPUTE2 + 1u;
}

/* The lower end of an operation's rectangle. */
static double bottom_of(const field *f, const sn_bar *bar) {
  if (bar->team.slot == SN_SLOT_ANY) return (double)worker_of(bar) * bar->team.count;
  return bar->team.first + (bar->team.slot == SN_SLOT_SECOND ? f->second : 0);
}

static unsigned part_of(const sn_timeline *t, const sn_bar *bar) {
  return sn__part_of(t->steps[bar->what - 1].op);
}

static const char *unit_of(const field *f) {
  return f->floats ? "threads, which float over all cores" : "cores";
}

static bool is_used(const sn_timeline *t, unsigned part) {
  for (uint32_t b = 0; b < t->n_bars; b++)
    if (is_operation(&t->bars[b]) && part_of(t, &t->bars[b]) == part) return true;
  return false;
}

/* ---- gnuplot ---- */

/* Wide rectangles have a border, which would be all that is left of narrow ones. */
static bool is_wide(const sn_timeline *t, const sn_bar *bar) {
  return (double)(bar->end_ns - bar->begin_ns) * 300 > (double)t->end_ns;
}

/* Data block $p<part><slot><wide>: left, right (ms), bottom, top; first one that is not seen, as a block must not be
 * empty. */
static void put_block(FILE *out, const field *f, unsigned part, bool second, bool wide) {
  const sn_timeline *t = f->timeline;
  fprintf(out, "$p%u%d%d << END\n0 0 0 0\n", part, second, wide);
  for (uint32_t b = 0; b < t->n_bars; b++) {
    const sn_bar *bar = &t->bars[b];
    if (!is_operation(bar) || part_of(t, bar) != part || is_wide(t, bar) != wide) continue;
    if ((bar->team.slot == SN_SLOT_SECOND) != second) continue;
    double bottom = bottom_of(f, bar);
    fprintf(out, "%.9g %.9g %.9g %.9g\n", (double)bar->begin_ns / 1e6, (double)bar->end_ns / 1e6, bottom,
            bottom + bar->team.count);
  }
  fputs("END\n", out);
}

static const char *put_rects(FILE *out, const char *separator, unsigned part, bool second) {
  for (int wide = 0; wide < 2; wide++) {
    fprintf(out, "%s $p%u%d%d using 1:3:1:2:3:4 with boxxyerror fillcolor rgb '%s' fillstyle %s %s%s notitle",
            separator, part, second, wide, sn__parts[part].colour, second ? "pattern 4" : "solid",
            wide ? "border rgb " : "noborder",
            !wide    ? ""
            : second ? "'#404040' linewidth 0.6"
                     : "'white' linewidth 0.5");
    separator = ",";
  }
  return separator;
}

static void put_plot(FILE *out, const field *f) {
  const char *separator = "plot";
  for (unsigned part = SN__PART_CONV; part <= SN__PART_OTHER; part++)
    for (int second = 0; second <= f->has_second && is_used(f->timeline, part); second++)
      separator = put_rects(out, separator, part, second);
  for (unsigned part = SN__PART_CONV; part <= SN__PART_OTHER; part++)
    if (is_used(f->timeline, part)) sn__put_key_entry(out, ",", sn__parts[part].colour, sn__parts[part].name);
  if (f->has_second)
    fputs(", NaN with boxes fillcolor rgb '#404040' fillstyle pattern 4 title 'second hardware threads'", out);
  fputs("\n", out);
}

/* Names of operations in rectangles that are likely to have room: the width of letters is not known here, so that of a
 * wide one is taken. */
static void put_names(FILE *out, const field *f, const sn__chart *chart) {
  enum { LETTERS = 150, LINES = 30 }; /* as wide and as high as the frame */
  const sn_timeline *t = f->timeline;
  for (uint32_t b = 0; b < t->n_bars; b++) {
    const sn_bar *bar = &t->bars[b];
    if (!is_operation(bar) || bar->team.slot == SN_SLOT_SECOND || bar->team.count / f->high * LINES < 1) continue;
    double share = (double)(bar->end_ns - bar->begin_ns) / (double)t->end_ns;
    if (share * LETTERS < (double)(strlen(bar->name) + strlen(sn_bar_part(bar))) + 1) continue;
    fputs("set label '", out);
    sn__put_text(out, bar->name, 60);
    fprintf(out, "%s' at first %.9g, first %.9g center textcolor rgb '%s' font ',%s' front\n", sn_bar_part(bar),
            (double)(bar->begin_ns + bar->end_ns) / 2e6, bottom_of(f, bar) + bar->team.count / 2.0,
            part_of(t, bar) == SN__PART_CONV ? "white" : "black", sn__look_of(chart->form)->small_font);
  }
}

static unsigned tick_step(unsigned high) {
  static const unsigned steps[] = {1, 2, 5, 10, 20, 50, 100, 200, 500};
  unsigned i = 0;
  while (i + 1 < sizeof steps / sizeof steps[0] && high / steps[i] > 6) i++;
  return steps[i];
}

static void put_axis(FILE *out, const field *f) {
  const char *separator = "";
  fputs("set ytics nomirror (", out);
  for (int second = 0; second <= f->has_second; second++)
    for (unsigned core = 0; core < f->height; core += tick_step(f->height)) {
      fprintf(out, "%s'%u' %.9g", separator, core, core + (second ? f->second : 0));
      separator = ", ";
    }
  fprintf(out, ")\nset yrange [0:%.9g]\nset ylabel '%s'\n", f->high, unit_of(f));
  if (!f->has_second) return;
  fprintf(out, "set label 'first threads' at graph 1.015, first %.9g center rotate by 90\n", f->height / 2.0);
  fprintf(out, "set label 'second threads' at graph 1.015, first %.9g center rotate by 90\n",
          f->second + f->height / 2.0);
}

sn_status sn__cores_write(FILE *out, const sn__chart *chart, sn_err *err) {
  (void)err;
  const sn_timeline *t = chart->timeline;
  const field f = measure(t);
  sn__put_terminal(out, chart->form, chart->columns, chart->rows);
  for (unsigned part = SN__PART_CONV; part <= SN__PART_OTHER; part++)
    for (int k = 0; k < 4 && is_used(t, part); k++) put_block(out, &f, part, k / 2, k % 2);
  fputs("set title '", out);
  sn__put_subject(out, chart, sn__put_text);
  fprintf(out, "' offset 0,%s\nset tmargin 3.7\nset rmargin %u\n", sn__look_of(chart->form)->lift,
          f.has_second ? 5 : 3);
  fprintf(out, "set xrange [0:%.9g]\nset xlabel 'time (ms)'\nset border 3 linewidth 0.7\nset tics out scale 0.6\n",
          t->end_ns > 0 ? (double)t->end_ns / 1e6 : 1);
  fprintf(out, "set label 'in use: %.0f %% of all %s' at graph 0, graph 1 left offset 0,%s\n", 100 * f.busy,
          f.floats       ? "threads"
          : f.has_second ? "cores'' first threads"
                         : "cores",
          sn__look_of(chart->form)->lift);
  fprintf(out,
          "set xtics nomirror\nset key below center horizontal Left reverse samplen 1.5 spacing 1.25 height 0.8 font "
          "',%s'\n",
          sn__look_of(chart->form)->key_font);
  put_axis(out, &f);
  put_names(out, &f, chart);
  put_plot(out, &f);
  return SN_OK;
}

/* ---- text ---- */

static void put_band(FILE *out, const field *f, const sn__cells *cells) {
  for (unsigned y = cells->rows; y-- > 0;) {
    unsigned core = (unsigned)((uint64_t)y * f->height / cells->rows);
    if (y % 4 == 0)
      fprintf(out, "%*u |", LABEL_COLUMNS - 2, core);
    else
      fprintf(out, "%*s|", LABEL_COLUMNS - 1, "");
    for (unsigned x = 0; x < cells->columns; x++) {
      unsigned kind = sn__cells_kind(cells, y, x);
      putc(kind < cells->kinds ? sn__parts[SN__PART_CONV + kind].letter : ' ', out);
    }
    fputs("|\n", out);
  }
}

static sn_status put_slot(FILE *out, const field *f, bool second, unsigned columns, unsigned rows, sn_err *err) {
  const sn_timeline *t = f->timeline;
  sn__cells cells;
  if (sn__cells_init(&cells, columns, rows, SN__PART_OTHER - SN__PART_CONV + 1, err) != SN_OK) return err->code;
  double across = t->end_ns > 0 ? columns / (double)t->end_ns : 0, up = rows / (double)f->height;
  for (uint32_t b = 0; b < t->n_bars; b++) {
    const sn_bar *bar = &t->bars[b];
    if (!is_operation(bar) || (bar->team.slot == SN_SLOT_SECOND) != second) continue;
    double bottom = bottom_of(f, bar) - (second ? f->second : 0);
    sn__cells_cover(&cells, part_of(t, bar) - SN__PART_CONV,
                    (const double[]){(double)bar->begin_ns * across, (double)bar->end_ns * across},
                    (const double[]){bottom * up, (bottom + bar->team.count) * up});
  }
  if (f->has_second) fprintf(out, "%s hardware threads\n", second ? "second" : "first");
  put_band(out, f, &cells);
  sn__cells_clear(&cells);
  return SN_OK;
}

sn_status sn__cores_text(FILE *out, const sn__chart *chart, sn_err *err) {
  const field f = measure(chart->timeline);
  unsigned columns = chart->columns - LABEL_COLUMNS - 1, rows = chart->rows - OTHER_ROWS, at = 0;
  char ms[SN_UNIT_TEXT], end[SN_UNIT_TEXT + 8];
  if (f.has_second) rows = (rows - 2) / 2;
  if (rows > f.height) rows = f.height; /* a core has a line at most */
  sn__put_subject(out, chart, sn__put_plain);
  fprintf(out, "\n\n%s\n", unit_of(&f));
  for (int second = f.has_second; second >= 0; second--)
    if (put_slot(out, &f, second, columns, rows, err) != SN_OK) return err->code;
  snprintf(end, sizeof end, "%s ms", sn_print_digits((double)chart->timeline->end_ns / 1e6, 3, ms));
  fprintf(out, "%*s0%*s\n", LABEL_COLUMNS, "", (int)columns - 1, end);
  for (unsigned part = SN__PART_CONV; part <= SN__PART_OTHER; part++)
    if (is_used(chart->timeline, part))
      at = sn__put_letter(out, chart, at, sn__parts[part].letter, sn__parts[part].name);
  fprintf(out, "\nin use: %.0f %% of all %s\n", 100 * f.busy,
          f.floats       ? "threads"
          : f.has_second ? "cores' first threads"
                         : "cores");
  return SN_OK;
}
