/* Pool map: where in the pool each tensor and workspace lies, and how long: addresses upwards, steps to the right, one
 * rectangle each; where the plan is packed, in a file, beside it the same strategy by first fit. White is free; white
 * below the highest address in use is what placement loses. Where PyTorch's allocator serves the plan, addresses are
 * its own: segments are grey, what stays (parameters, states) darker, and grey between rectangles is what it holds and
 * nobody uses. O(rectangles); as text O(rectangles * cells they cover). */
#include "plots/plot_internal.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

typedef enum kind { OUTPUT, SAVED, GRADIENT, PARAMETER_GRADIENT, SCRATCH, WORKSPACE, STAYS, KINDS } kind;

#define WORKSPACE_COLOUR "#555555"
#define STAYS_COLOUR     "#a8a8a8"
#define SEGMENT_COLOUR   "#e6e6e6"
#define SEGMENT_NAME     "segments of the caching allocator"

enum { SEGMENT_LETTER = '.' };

static const struct paint {
  const char *tensor, *name, *colour; /* the kind of tensors, and what they are called */
  char letter;
} paints[KINDS] = {[OUTPUT] = {"output", "outputs", SN__SKY_BLUE, 'o'},
                   [SAVED] = {"saved", "saved for backward", SN__GREEN, 's'},
                   [GRADIENT] = {"gradient", "gradients", SN__ORANGE, 'g'},
                   [PARAMETER_GRADIENT] = {"parameter gradient", "gradients of parameters", SN__VERMILLION, 'p'},
                   [SCRATCH] = {"scratch", "scratch", SN__PURPLE, 'x'},
                   [WORKSPACE] = {"", "workspace", WORKSPACE_COLOUR, 'w'},
                   [STAYS] = {"", "parameters, states", STAYS_COLOUR, '='}};

enum { LABEL_COLUMNS = 9, OTHER_ROWS = 9 /* of the text: heading, axis, legend */ };

static kind kind_of(const sn_timeline *t, const sn_rect *rect) {
  if (rect->tensor >= t->n_tensors) return WORKSPACE;
  for (int k = OUTPUT; k < WORKSPACE; k++)
    if (strcmp(t->tensors[rect->tensor].kind, paints[k].tensor) == 0) return (kind)k;
  return OUTPUT;
}

static bool is_served(const sn_timeline *t) {
  return t->served.n_segments > 0;
}

/* What the addresses of a map go up to. */
static uint64_t height_of(const sn_timeline *t) {
  return is_served(t) ? t->served.end_bytes : t->pool_bytes;
}

static sn_extent extent_of(const sn_timeline *t, uint32_t r) {
  return is_served(t) ? t->served.rects[r] : (sn_extent){t->rects[r].offset, t->rects[r].bytes};
}

static bool has_kind(const sn_timeline *t, kind wanted) {
  if (t && wanted == STAYS) return is_served(t) && t->served.n_stays > 0;
  for (uint32_t r = 0; t && r < t->n_rects; r++)
    if (kind_of(t, &t->rects[r]) == wanted) return true;
  return false;
}

/* What the legend has: outputs and gradients, and what else there is. */
static bool is_shown(const sn__chart *chart, kind k) {
  return k == OUTPUT || k == GRADIENT || has_kind(chart->timeline, k) || has_kind(chart->beside, k);
}

static double end_of(const sn_timeline *t) {
  return t->n_shown_columns + 1.0;
}

/* A workspace is held while its instruction runs. What is held into the update, of which no column is shown, ends where
 * the map does. */
static double right_of(const sn_timeline *t, const sn_rect *rect) {
  uint32_t to = rect->to_instr > rect->from_instr ? rect->to_instr : rect->from_instr + 1;
  double right = sn_timeline_place(t, to < t->n_instrs ? to : t->n_instrs);
  return right < end_of(t) ? right : end_of(t);
}

/* Nothing is where the allocator refused a workspace. */
static bool is_in_map(const sn_timeline *t, uint32_t r) {
  return sn_timeline_place(t, t->rects[r].from_instr) < end_of(t) && extent_of(t, r).bytes > 0;
}

/* ---- gnuplot ---- */

/* Where the steps of a second map begin. */
static double shift_of(const sn_timeline *t) {
  return 1.06 * t->n_shown_columns;
}

static void put_box(FILE *out, double left, double right, sn_extent extent, const sn__unit *unit) {
  fprintf(out, "%.9g %.9g %.9g %.9g\n", left, right, (double)extent.offset / unit->bytes,
          (double)(extent.offset + extent.bytes) / unit->bytes);
}

static void put_rects_of(FILE *out, const sn_timeline *t, const sn__unit *unit, kind wanted, double shift) {
  for (uint32_t r = 0; r < t->n_rects; r++) {
    const sn_rect *rect = &t->rects[r];
    if (kind_of(t, rect) != wanted || !is_in_map(t, r)) continue;
    put_box(out, shift + sn_timeline_place(t, rect->from_instr), shift + right_of(t, rect), extent_of(t, r), unit);
  }
}

/* Data block $<name>: from the first step to the last. */
static void put_extents(FILE *out, const char *name, const sn_timeline *t, const sn_extent *extents, uint32_t n,
                        const sn__unit *unit) {
  fprintf(out, "$%s << END\n", name);
  for (uint32_t i = 0; i < n; i++) put_box(out, 1, end_of(t), extents[i], unit);
  fputs("END\n", out);
}

/* Data block $k<kind>: left, right, bottom, top. */
static void put_rects(FILE *out, const sn__chart *chart, const sn__unit *unit, kind wanted) {
  const sn_served *served = &chart->timeline->served;
  char name[16];
  snprintf(name, sizeof name, "k%d", wanted);
  if (wanted == STAYS) return put_extents(out, name, chart->timeline, served->stays, served->n_stays, unit);
  fprintf(out, "$k%d << END\n0 0 0 0\n", wanted); /* gnuplot wants a line, also where there is none of a kind */
  put_rects_of(out, chart->timeline, unit, wanted, 0);
  if (chart->beside) put_rects_of(out, chart->beside, unit, wanted, shift_of(chart->timeline));
  fputs("END\n", out);
}

/* White borders tell neighbours apart where there are few; many would turn all into border. Workspaces are held for one
 * instruction, so their own border makes them wide enough to be seen. */
static void put_plot(FILE *out, const sn__chart *chart) {
  const char *border = chart->timeline->n_rects <= 400 ? "border rgb 'white' linewidth 0.5" : "noborder";
  bool served = is_served(chart->timeline);
  if (served)
    fputs("plot $segments using 1:3:1:2:3:4 with boxxyerror fillcolor rgb '" SEGMENT_COLOUR
          "' fillstyle solid border rgb 'white' linewidth 0.5 title '" SEGMENT_NAME "'",
          out);
  for (int k = 0; k < KINDS; k++)
    if (is_shown(chart, (kind)k))
      fprintf(out, "%s $k%d using 1:3:1:2:3:4 with boxxyerror fillcolor rgb '%s' fillstyle solid %s title '%s'",
              k || served ? "," : "plot", k, paints[k].colour,
              k == WORKSPACE ? "border rgb '" WORKSPACE_COLOUR "' linewidth 0.8" : border, paints[k].name);
}

/* Names of tensors in their rectangles, where they are likely to have room: the width of letters is not known here, so
 * that of a wide one is taken. */
static void put_names(FILE *out, const sn__chart *chart, const sn__unit *unit) {
  const sn_timeline *t = chart->timeline;
  enum { LETTERS = 150, LINES = 30 }; /* as wide and as high as the frame */
  double across = end_of(t) - 1 + (chart->beside ? shift_of(t) : 0);
  for (uint32_t r = 0; r < t->n_rects; r++) {
    const sn_rect *rect = &t->rects[r];
    const sn_extent extent = extent_of(t, r);
    if (rect->tensor >= t->n_tensors || !is_in_map(t, r)) continue;
    double left = sn_timeline_place(t, rect->from_instr), right = right_of(t, rect);
    const char *name = t->tensors[rect->tensor].name;
    if ((right - left) / across * LETTERS < (double)strlen(name) + 1) continue;
    if ((double)extent.bytes / (1.06 * (double)height_of(t)) * LINES < 1) continue;
    fputs("set label '", out);
    sn__put_text(out, name, 60);
    fprintf(out, "' at first %.9g, first %.9g left offset 0.4,0 font ',%s' front\n", left,
            ((double)extent.offset + (double)extent.bytes / 2) / unit->bytes, sn__look_of(chart->form)->small_font);
  }
}

/* What sets the pool: through what lies highest, in the step that takes it there. */
static double mark_at(const sn_timeline *t, uint32_t step) {
  for (uint32_t i = 0; i < t->n_rects; i++) {
    const sn_rect *rect = &t->rects[i];
    if (rect->from_step != step || rect->offset + rect->bytes != t->pool_bytes) continue;
    double left = sn_timeline_place(t, rect->from_instr), right = right_of(t, rect), end = floor(left) + 1;
    return (left + (right < end ? right : end)) / 2;
  }
  uint32_t c = 0;
  while (c + 1 < t->n_columns && t->columns[c].step + 1 != step) c++;
  return c + 1.5;
}

static void put_mark(FILE *out, const sn__chart *chart, double high) {
  const sn_result *r = chart->curves[0].result;
  if (r->pool_step == 0 || is_served(chart->timeline)) return;
  double at = mark_at(chart->timeline, r->pool_step);
  fprintf(out, "set arrow from %.9g,0 to %.9g,%.9g nohead front linecolor rgb '" SN__VERMILLION "' linewidth 1\n", at,
          at, high);
}

static void put_high_water(FILE *out, const sn__chart *chart, const sn__unit *unit, double high) {
  const sn_result *r = chart->curves[0].result;
  const sn_served *served = &chart->timeline->served;
  if (served->n_segments > 0) {
    fprintf(
        out,
        ", %.9g with lines linecolor rgb '" SN__VERMILLION "' dashtype (14,8) linewidth 1 title 'reserved: %.*f %s in "
        "%" PRIu32 " segments'\n",
        high, unit->bytes > 1e9 ? 2 : 0, (double)served->reserved_bytes / unit->bytes, unit->name, served->n_segments);
    return;
  }
  fprintf(out,
          ", %.9g with lines linecolor rgb '" SN__VERMILLION "' dashtype (14,8) linewidth 1 title 'pool needed: "
          "%.*f %s",
          high, unit->bytes > 1e9 ? 2 : 0, high, unit->name);
  if (r->pool_step) fprintf(out, ", set at step %" PRIu32 " (%s)", r->pool_step, r->pool_cause);
  fputs("'\n", out);
}

/* Each map has its steps below it and its name and size above, the second also a line where its pool ends. */
static void put_beside(FILE *out, const sn__chart *chart, const sn__unit *unit) {
  const sn_timeline *t = chart->timeline, *other = chart->beside;
  double shift = shift_of(t), end = end_of(t), high = (double)other->pool_bytes / unit->bytes;
  int digits = unit->bytes > 1e9 ? 2 : 0;
  fprintf(out, "set xtics ('1' 1, '%.9g | 1' %.9g, '' %.9g, '' %.9g, '%.9g' %.9g)\n", end - 1, (end + 1 + shift) / 2,
          end, 1 + shift, end - 1, end + shift);
  fprintf(out, "set label 'packed: %.*f %s' at first 1, graph 0.975 offset 0.5,0 front\n", digits,
          (double)t->pool_bytes / unit->bytes, unit->name);
  fprintf(out, "set label 'first fit: %.*f %s' at first %.9g, graph 0.975 offset 0.5,0 front\n", digits, high,
          unit->name, 1 + shift);
  fprintf(out,
          "set arrow from %.9g,%.9g to %.9g,%.9g nohead front linecolor rgb '" SN__VERMILLION "' dashtype (14,8)\n",
          1 + shift, high, end + shift, high);
}

void sn__pool_write(FILE *out, const sn__chart *chart) {
  const sn_timeline *t = chart->timeline;
  sn__unit unit = sn__unit_for(height_of(t));
  double high = (double)height_of(t) / unit.bytes;
  sn__put_terminal(out, chart->form, chart->columns, chart->rows);
  for (int k = 0; k < KINDS; k++)
    if (is_shown(chart, (kind)k)) put_rects(out, chart, &unit, (kind)k);
  if (is_served(t)) put_extents(out, "segments", t, t->served.segments, t->served.n_segments, &unit);
  fputs("set title '", out);
  sn__put_subject(out, chart, sn__put_text);
  fprintf(out, "' offset 0,%s\nset tmargin 3.7\n", sn__look_of(chart->form)->lift);
  const sn_timeline *other = chart->beside;
  double top = other && other->pool_bytes > t->pool_bytes ? (double)other->pool_bytes / unit.bytes : high;
  fprintf(out, "set xrange [1:%.9g]\nset xlabel '%s'\nset yrange [0:%.9g]\n", end_of(t) + (other ? shift_of(t) : 0),
          sn__axis_name(t), top > 0 ? top * (other ? 1.12 : 1.06) : 1);
  fprintf(out, "set ylabel 'address %s (%s)'\nset border 3 linewidth 0.7\nset tics out scale 0.6\n",
          is_served(t) ? "in the allocator" : "in the pool", unit.name);
  fprintf(out,
          "set xtics nomirror\nset ytics nomirror\nset key below center horizontal Left reverse samplen 1.5 "
          "spacing 1.25 height 0.8 font ',%s'\n",
          sn__look_of(chart->form)->key_font);
  sn__put_passes(out, chart, 1, sn_timeline_divide(t), end_of(t), 1);
  put_names(out, chart, &unit);
  put_mark(out, chart, high);
  if (other) put_beside(out, chart, &unit);
  put_plot(out, chart);
  put_high_water(out, chart, &unit, high);
}

/* ---- text ---- */

static void cover(sn__cells *cells, const sn_timeline *t, kind k, double left, double right, sn_extent extent) {
  double across = cells->columns / (double)t->n_shown_columns, up = cells->rows / (double)height_of(t);
  sn__cells_cover(cells, (unsigned)k, (const double[]){(left - 1) * across, (right - 1) * across},
                  (const double[]){(double)extent.offset * up, (double)(extent.offset + extent.bytes) * up});
}

static void cover_all(sn__cells *cells, const sn_timeline *t) {
  for (uint32_t i = 0; i < t->served.n_stays; i++) cover(cells, t, STAYS, 1, end_of(t), t->served.stays[i]);
  for (uint32_t r = 0; r < t->n_rects; r++)
    cover(cells, t, kind_of(t, &t->rects[r]), sn_timeline_place(t, t->rects[r].from_instr), right_of(t, &t->rects[r]),
          extent_of(t, r));
}

/* What a row of cells has where nothing lies: is most of it in segments? */
static char free_letter(const sn_timeline *t, double low, double high) {
  double within = 0;
  for (uint32_t s = 0; s < t->served.n_segments; s++) {
    double from = (double)t->served.segments[s].offset, to = from + (double)t->served.segments[s].bytes;
    within += fmax(0, fmin(high, to) - fmax(low, from));
  }
  return within > (high - low) / 2 ? SEGMENT_LETTER : ' ';
}

static void put_grid(FILE *out, const sn__cells *cells, const sn_timeline *t, const sn__unit *unit) {
  const double row = (double)height_of(t) / cells->rows;
  for (unsigned y = cells->rows; y-- > 0;) {
    double top = row * (y + 1) / unit->bytes;
    char empty = free_letter(t, row * y, row * (y + 1));
    bool labelled = y + 1 == cells->rows || (y + 1) % 5 == 0;
    if (labelled)
      fprintf(out, "%*.*f |", LABEL_COLUMNS - 2, unit->bytes > 1e9 ? 2 : 0, top);
    else
      fprintf(out, "%*s|", LABEL_COLUMNS - 1, "");
    for (unsigned x = 0; x < cells->columns; x++) {
      unsigned k = sn__cells_kind(cells, y, x);
      putc(k < KINDS ? paints[k].letter : empty, out);
    }
    fputs("|\n", out);
  }
}

sn_status sn__pool_text(FILE *out, const sn__chart *chart, sn_err *err) {
  unsigned at = 0;
  const sn_timeline *t = chart->timeline;
  sn__unit unit = sn__unit_for(height_of(t));
  sn__cells cells;
  if (sn__cells_init(&cells, chart->columns - LABEL_COLUMNS - 1, chart->rows - OTHER_ROWS, KINDS, err) != SN_OK)
    return err->code;
  if (height_of(t) > 0) cover_all(&cells, t);
  sn__put_subject(out, chart, sn__put_plain);
  fprintf(out, "\n\n%*s\n", LABEL_COLUMNS - 2, unit.name);
  put_grid(out, &cells, t, &unit);
  fprintf(out, "%*s1%*" PRIu32 "\n", LABEL_COLUMNS, sn_timeline_is_corun(t) ? "op " : "step ", (int)cells.columns - 1,
          t->n_shown_columns);
  if (is_served(t)) at = sn__put_letter(out, chart, at, SEGMENT_LETTER, SEGMENT_NAME);
  for (int k = 0; k < KINDS; k++)
    if (is_shown(chart, (kind)k)) at = sn__put_letter(out, chart, at, paints[k].letter, paints[k].name);
  fputs("\n", out);
  const sn_result *r = chart->curves[0].result;
  if (is_served(t))
    fprintf(out, "reserved: %.*f %s in %" PRIu32 " segments\n", unit.bytes > 1e9 ? 2 : 0,
            (double)t->served.reserved_bytes / unit.bytes, unit.name, t->served.n_segments);
  else if (r->pool_step)
    fprintf(out, "set at step %" PRIu32 ", %s (%s)\n", r->pool_step, r->pool_pass, r->pool_cause);
  sn__cells_clear(&cells);
  return SN_OK;
}
