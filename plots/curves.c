/* Curves: steps and live as a gnuplot script. Steps is memory of functional tensors as lines, with a line between
 * forward and backward; where it is asked for, also live tensors, dashed in the same colour on a right axis: the form
 * of figure 10 of [SN]. With curves of several runs there is no right axis. Where curves have other numbers of steps in
 * a pass, as those of two runtimes, the axis is the share of each pass's own steps, so that one line divides the passes
 * of all: half of the axis is forward, half backward, and behind them stands the update where a curve has one.
 *
 * Each curve is named in the right margin, at the height of its peak and with the step of it; names that would meet
 * move apart. As text, with a right axis, or where there are too many, a legend names them.
 *
 * Cost: O(steps); curves are thinned to SN__CURVE_POINTS.
 *
 * Limit lines, one for each runtime: the device's memory less what stands beside the functional tensors (context and
 * persistent bytes; of PyTorch also what its allocator reserves beyond them), since that is what the curves must stay
 * below. Workspace, which varies by step, is not drawn. */
#include "models/zoo/zoo.h"
#include "plots/plot_internal.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- what the chart needs to know of its runs ---- */

enum { FORWARD, BACKWARD, UPDATE, PASSES, MOST_ROOMS = 4 };

/* Where the passes begin on an axis of shares, in percent of forward and backward; the update is a strip. */
static const double pass_begin[PASSES + 1] = {0, 50, 100, 108};

/* What a runtime has for functional tensors. */
typedef struct room_line {
  const char *dialect;
  uint64_t bytes;
} room_line;

typedef struct frame {
  const sn__chart *chart;
  sn__unit unit;
  bool live, share;       /* the left axis counts live tensors; the lower one is in percent of each pass */
  uint32_t n_steps;       /* the most of any curve */
  uint32_t steps[PASSES]; /* of each pass, the most of any curve */
  uint32_t most_live;
  uint64_t most_bytes;
  unsigned n_dialects, n_rooms; /* runtimes that are drawn; those of which the room is drawn */
  room_line rooms[MOST_ROOMS];
  uint32_t bucket; /* steps per point */
} frame;

static unsigned pass_of(const sn_step_row *row) {
  return strcmp(row->pass, "forward") == 0 ? FORWARD : strcmp(row->pass, "backward") == 0 ? BACKWARD : UPDATE;
}

static void count_passes(const sn_result *result, uint32_t counts[PASSES]) {
  memset(counts, 0, PASSES * sizeof *counts);
  for (uint32_t i = 0; i < result->n_steps; i++) counts[pass_of(&result->steps[i])]++;
}

static void measure_curve(frame *f, const sn_result *result) {
  uint32_t counts[PASSES];
  count_passes(result, counts);
  for (int p = 0; p < PASSES; p++) {
    f->share = f->share || (f->n_steps > 0 && counts[p] != f->steps[p]);
    if (counts[p] > f->steps[p]) f->steps[p] = counts[p];
  }
  if (result->n_steps > f->n_steps) f->n_steps = result->n_steps;
  for (uint32_t i = 0; i < result->n_steps; i++) {
    const sn_step_row *row = &result->steps[i];
    if (row->tensor_bytes > f->most_bytes) f->most_bytes = row->tensor_bytes;
    if (row->live_tensors > f->most_live) f->most_live = row->live_tensors;
  }
}

/* What stands on the device beside the tensors that are drawn. PyTorch's allocator reserves more than them, and has
 * needed the least where it can give back what it does not use. */
static uint64_t beside_tensors(const sn_result *r) {
  uint64_t least = r->least_device_bytes ? r->least_device_bytes : r->peak_device_bytes;
  if (r->reserved_bytes > 0 && least > r->peak_tensor_bytes) return least - r->peak_tensor_bytes;
  return r->context_bytes + sn_persistent_total(&r->persistent);
}

/* Bytes that are left for functional tensors; 0 where nothing is. */
static uint64_t room_for_tensors(const sn_run *run, const sn_result *result) {
  uint64_t kept = beside_tensors(result);
  uint64_t left = kept < run->memory_bytes ? run->memory_bytes - kept : 0;
  return run->conditions.pool_limit_bytes != 0 && run->conditions.pool_limit_bytes < left
             ? run->conditions.pool_limit_bytes
             : left;
}

/* The least room of each runtime's curves, for which the one that leaves least stands. */
static void note_room(frame *f, const sn__curve *curve) {
  uint64_t left = room_for_tensors(curve->run, curve->result);
  unsigned i = 0;
  while (i < f->n_rooms && strcmp(f->rooms[i].dialect, curve->result->dialect) != 0) i++;
  if (i == MOST_ROOMS) return;
  if (i == f->n_rooms) f->rooms[f->n_rooms++] = (room_line){curve->result->dialect, left};
  if (left < f->rooms[i].bytes) f->rooms[i].bytes = left;
}

/* Farther off they would flatten the curves. */
static void drop_far_rooms(frame *f) {
  unsigned kept = 0;
  f->n_dialects = f->n_rooms;
  for (unsigned i = 0; i < f->n_rooms; i++)
    if (f->rooms[i].bytes > 0 && (double)f->rooms[i].bytes <= 1.25 * (double)f->most_bytes)
      f->rooms[kept++] = f->rooms[i];
  f->n_rooms = f->chart->n_runs == 1 && !f->live ? kept : 0;
}

static frame measure(const sn__chart *chart) {
  frame f = {.chart = chart, .live = chart->kind == SN_PLOT_LIVE};
  for (unsigned i = 0; i < chart->n_curves; i++) {
    measure_curve(&f, chart->curves[i].result);
    note_room(&f, &chart->curves[i]);
  }
  drop_far_rooms(&f);
  f.unit = sn__unit_for(f.most_bytes);
  f.bucket = (f.n_steps + SN__CURVE_POINTS - 1) / SN__CURVE_POINTS;
  return f;
}

/* ---- the parts of the script ---- */

static void put_title(FILE *out, const frame *f) {
  fputs("set title '", out);
  sn__put_subject(out, f->chart, sn__put_text);
  if (f->chart->form == SN__FORM_TEXT)
    fputs(f->live ? ": live tensors" : ": functional tensors", out); /* no room along the axis */
  fprintf(out, "' offset 0,%s\nset tmargin 3.7\n", sn__look_of(f->chart->form)->lift);
}

/* Where the axis ends. */
static double share_end(const frame *f) {
  return pass_begin[f->steps[UPDATE] ? PASSES : f->steps[BACKWARD] ? UPDATE : BACKWARD];
}

static void put_x_axis(FILE *out, const frame *f) {
  const char *unit = f->share ? "share of the steps of each pass (%)" : "step of the iteration";
  if (f->share)
    fprintf(out,
            "set xrange [0:%.9g]\nset xtics ('0' 0, '25' 12.5, '50' 25, '75' 37.5, '100' 50, '25' 62.5, '50' 75, "
            "'75' 87.5, '100' 100)\n",
            share_end(f));
  else
    fprintf(out, "set xrange [0.5:%" PRIu32 ".5]\n", f->n_steps);
  fprintf(out, "set xlabel '%s", unit);
  if (f->bucket > 1) fprintf(out, " (each point the largest of %" PRIu32 " steps)", f->bucket);
  fputs("'\n", out);
}

/* The highest line of room. */
static uint64_t most_room(const frame *f) {
  uint64_t most = 0;
  for (unsigned i = 0; i < f->n_rooms; i++) most = f->rooms[i].bytes > most ? f->rooms[i].bytes : most;
  return most;
}

static double top_of(const frame *f) {
  if (f->live) return (f->most_live > 0 ? f->most_live : 1) * 1.05;
  double most = f->most_bytes > 0 ? (double)f->most_bytes : f->unit.bytes;
  double limit = (double)most_room(f);
  return (limit > most ? limit : most) * 1.05 / f->unit.bytes;
}

/* Whether live tensors have a right axis of their own. */
static bool has_counts(const frame *f) {
  return f->chart->with_live && !f->live && f->chart->n_runs == 1 && f->chart->form != SN__FORM_TEXT;
}

enum { MOST_NAMES = 10 };

/* Whether names stand in the right margin. */
static bool has_names(const frame *f) {
  return f->chart->form != SN__FORM_TEXT && !has_counts(f) && f->chart->n_curves <= MOST_NAMES;
}

static void put_y_axes(FILE *out, const frame *f) {
  fprintf(out, "set yrange [0:%.9g]\n", top_of(f));
  if (f->live)
    fputs("set ylabel 'live tensors (count)'\n", out);
  else if (f->chart->form == SN__FORM_TEXT)
    fprintf(out, "set ylabel '%s'\n", f->unit.name);
  else
    fprintf(out, "set ylabel 'functional tensors (%s)%s'\n", f->unit.name, has_counts(f) ? ", solid" : "");
  if (!has_counts(f)) return;
  fputs("set y2label 'live tensors (count), '.counts\nset ytics nomirror\nset y2tics\n", out);
  fprintf(out, "set y2range [0:%.9g]\n", (f->most_live > 0 ? f->most_live : 1) * 1.3);
}

/* The line at which a pass begins. */
static double pass_place(const frame *f, unsigned pass) {
  double before = 0.5;
  if (f->share) return pass < PASSES ? fmin(pass_begin[pass], share_end(f)) : share_end(f);
  for (unsigned p = 0; p < pass; p++) before += f->steps[p];
  return before;
}

static void put_passes(FILE *out, const frame *f) {
  if (f->steps[FORWARD] == 0 || f->steps[BACKWARD] == 0) return;
  sn__put_passes(out, f->chart, pass_place(f, FORWARD), pass_place(f, BACKWARD), pass_place(f, UPDATE), 1);
  if (f->steps[UPDATE]) sn__put_update(out, f->chart, pass_place(f, UPDATE), pass_place(f, PASSES));
}

static void put_style(FILE *out, const frame *f) {
  if (f->chart->form == SN__FORM_TEXT) {
    fputs("set key below center vertical maxcols 1 Left reverse samplen 4 width 2\n", out);
    return;
  }
  if (has_names(f))
    fputs("unset key\n", out);
  else
    fprintf(out,
            "set key below center horizontal maxcols 2 Left reverse samplen 3 spacing 1.25 height 0.8 font ',%s'\n",
            sn__look_of(f->chart->form)->key_font);
  fprintf(out,
          "set border %d linewidth 0.7\nset tics out scale 0.6\nset xtics nomirror\nset ytics nomirror\n"
          "set grid ytics linecolor rgb '#d9d9d9' linewidth 0.6 dashtype 1\n",
          has_counts(f) ? 11 : 3);
}

/* ---- curves ---- */

/* `counts` are the steps of the result's passes. */
static double place(const frame *f, const uint32_t counts[PASSES], uint32_t step) {
  uint32_t before = 0;
  unsigned p = 0;
  if (!f->share) return step;
  for (; p < UPDATE && step > before + counts[p]; p++) before += counts[p];
  if (counts[p] == 0) return pass_begin[p];
  return pass_begin[p] + (step - before - 0.5) * (pass_begin[p + 1] - pass_begin[p]) / counts[p];
}

/* Data block $s<number>: step and memory, step and tensors; one line per bucket, each with the step that has the most.
 */
static void put_data(FILE *out, const frame *f, unsigned number, const sn_result *result) {
  uint32_t counts[PASSES];
  count_passes(result, counts);
  fprintf(out, "$s%u << END\n", number);
  for (uint32_t begin = 0; begin < result->n_steps; begin += f->bucket) {
    const sn_step_row *memory = &result->steps[begin], *live = memory;
    for (uint32_t i = begin; i < result->n_steps && i - begin < f->bucket; i++) {
      const sn_step_row *row = &result->steps[i];
      if (row->tensor_bytes > memory->tensor_bytes) memory = row;
      if (row->live_tensors > live->live_tensors) live = row;
    }
    fprintf(out, "%.9g %.9g %.9g %" PRIu32 "\n", place(f, counts, memory->step),
            (double)memory->tensor_bytes / f->unit.bytes, place(f, counts, live->step), live->live_tensors);
  }
  fputs("END\n", out);
}

enum { MARKED_STEPS = 120, MEASURED_POINTS = 40 };

/* What tells a curve's run from the others: net, batch, GPU, precision and what is frozen where not all have the same,
 * else the run's number. */
static void put_run(FILE *out, const frame *f, const sn_run *run) {
  bool net = false, batch = false, gpu = false, precision = false, freeze = false;
  for (unsigned i = 0; i < f->chart->n_curves; i++) {
    const sn_run *other = f->chart->curves[i].run;
    net = net || strcmp(other->net, run->net) != 0;
    batch = batch || other->batch != run->batch;
    gpu = gpu || strcmp(other->gpu, run->gpu) != 0;
    precision = precision || strcmp(other->conditions.precision, run->conditions.precision) != 0;
    freeze = freeze || strcmp(other->conditions.freeze, run->conditions.freeze) != 0;
  }
  char title[SN_NET_SPEC];
  if (net) sn__put_text(out, sn_net_called(run->net, run->net_name, title, sizeof title), 24);
  if (batch) fprintf(out, "%sbatch %" PRIu32, net ? ", " : "", run->batch);
  if (gpu) {
    fputs(net || batch ? ", " : "", out);
    sn__put_text(out, run->gpu, 16);
  }
  if (precision) fprintf(out, "%s%s", net || batch || gpu ? ", " : "", run->conditions.precision);
  if (freeze) fputs(net || batch || gpu || precision ? ", " : "", out);
  if (freeze && *run->conditions.freeze) fputs("frozen: ", out);
  if (freeze) sn__put_text(out, *run->conditions.freeze ? run->conditions.freeze : "all trained", 24);
  if (!net && !batch && !gpu && !precision && !freeze) fprintf(out, "run %" PRId64, run->id);
  fputs(": ", out);
}

static bool is_measured(const sn__curve *curve) {
  return strcmp(curve->result->source, "sim") != 0;
}

/* The first step with the most of what is drawn. */
static const sn_step_row *peak_of(const frame *f, const sn_result *result) {
  const sn_step_row *peak = result->steps;
  for (uint32_t i = 1; i < result->n_steps; i++) {
    const sn_step_row *row = &result->steps[i];
    if (f->live ? row->live_tensors > peak->live_tensors : row->tensor_bytes > peak->tensor_bytes) peak = row;
  }
  return peak;
}

/* "886 MiB at step 44", or with the step's name. */
static void put_peak(FILE *out, const frame *f, const sn_result *result, bool with_name) {
  const sn_step_row *peak = peak_of(f, result);
  if (f->live)
    fprintf(out, "%" PRIu32 " at step %" PRIu32, peak->live_tensors, peak->step);
  else
    fprintf(out, "%.*f %s at step %" PRIu32, f->unit.bytes > 1e9 ? 2 : 0, (double)peak->tensor_bytes / f->unit.bytes,
            f->unit.name, peak->step);
  if (!with_name) return;
  fputs(", ", out);
  sn__put_text(out, peak->layer, 12);
  fprintf(out, " %s", strcmp(peak->pass, "forward") == 0 ? "fwd" : "bwd");
}

static void put_name(FILE *out, const sn__curve *curve) {
  sn__put_text(out, curve->result->strategy, 60);
  if (curve->run->device[0]) fputs(is_measured(curve) ? ", measured" : ", predicted", out);
}

static void put_title_of(FILE *out, const frame *f, const sn__curve *curve) {
  fprintf(out, "title '%s", f->chart->form == SN__FORM_TEXT ? " " : "");
  if (f->chart->n_runs > 1) put_run(out, f, curve->run);
  put_name(out, curve);
  if (f->chart->form != SN__FORM_TEXT || f->chart->columns >= 80) {
    fputs(": ", out);
    put_peak(out, f, curve->result, false);
  }
  fputs("'", out);
}

/* Measured, and the prediction stands in front of it: of that it has the colour. */
static bool is_predicted_too(const sn__chart *chart, unsigned curve) {
  return curve > 0 && is_measured(&chart->curves[curve]) && !is_measured(&chart->curves[curve - 1]);
}

static unsigned colour_of(const sn__chart *chart, unsigned curve) {
  unsigned number = curve;
  for (unsigned i = 1; i <= curve; i++) number -= is_predicted_too(chart, i);
  return number;
}

/* Measured curves over predicted ones are points, few enough that the predicted line is seen below them. */
static void put_points(FILE *out, const frame *f, const char *colour) {
  assert(f->bucket > 0); /* charts have steps */
  uint32_t rows = f->n_steps / f->bucket, every = rows > MEASURED_POINTS ? rows / MEASURED_POINTS : 1;
  fprintf(out, "every %" PRIu32 " with points linecolor rgb '%s' linewidth 1.5 pointtype 6 pointsize %s ", every,
          colour, f->chart->form == SN__FORM_PNG ? "2.4" : "1.2");
}

static void put_curve(FILE *out, const frame *f, unsigned i) {
  unsigned number = colour_of(f->chart, i), width = sn__width(number);
  const char *colour = sn__colour(number);
  fprintf(out, "%s $s%u using %s ", i == 0 ? "plot" : ",", i, f->live ? "3:4" : "1:2");
  if (f->chart->form == SN__FORM_TEXT)
    fputs("with lines ", out);
  else if (is_predicted_too(f->chart, i))
    put_points(out, f, colour);
  else if (f->n_steps <= MARKED_STEPS)
    fprintf(out, "with linespoints linecolor rgb '%s' linewidth %u pointtype %d pointsize %s ", colour, width,
            sn__number_set_has(number), sn__look_of(f->chart->form)->mark_size);
  else
    fprintf(out, "with lines linecolor rgb '%s' linewidth %u ", colour, width);
  put_title_of(out, f, &f->chart->curves[i]);
}

static void put_counts(FILE *out, const frame *f, unsigned i) {
  if (is_predicted_too(f->chart, i)) return; /* they lie on the predicted ones, or validate says so */
  fprintf(out, ", $s%u using 3:4 axes x1y2 with lines linecolor rgb '%s' dashtype (14,8) linewidth count_width notitle",
          i, sn__colour(colour_of(f->chart, i)));
}

/* ---- names in the right margin ---- */

/* A name and where it belongs: the height of the peak as a share of the frame. */
typedef struct mark {
  unsigned curve; /* the limit: the number of curves */
  double height, place;
} mark;

static int by_height(const void *a, const void *b) {
  const mark *x = a, *y = b;
  if (x->height != y->height) return x->height < y->height ? 1 : -1;
  return (x->curve > y->curve) - (x->curve < y->curve);
}

/* Two lines of text need this share of the frame. */
static const double name_height = 0.092;

/* The highest first, each at its height or below the one above it; then up from below where the frame ends. */
static void spread(mark *marks, unsigned count) {
  double room = 1.02;
  qsort(marks, count, sizeof *marks, by_height);
  for (unsigned i = 0; i < count; i++) {
    marks[i].place = fmin(marks[i].height, room);
    room = marks[i].place - name_height;
  }
  room = 0.025;
  for (unsigned i = count; i-- > 0;) {
    marks[i].place = fmax(marks[i].place, room);
    room = marks[i].place + name_height;
  }
}

/* A dotted line from the peak, at `x` of the axis, to the margin, and on to the name. */
static void put_leader(FILE *out, const mark *m, double x, const char *colour) {
  fprintf(out,
          "set arrow from first %.9g, graph %.9g to graph 1, graph %.9g nohead linecolor rgb '%s' linewidth 0.6 "
          "dashtype (3,6) front\n",
          x, m->height, m->height, colour);
  fprintf(out, "set arrow from graph 1, graph %.9g to graph 1.02, graph %.9g nohead linecolor rgb '%s' linewidth 0.6\n",
          m->height, m->place, colour);
}

/* "room for tensors on k40c", or of several runtimes "room in pytorch on rtx4090". */
static void put_room(FILE *out, const frame *f, const room_line *r) {
  if (f->n_dialects > 1)
    fprintf(out, "room in %s on ", r->dialect);
  else
    fputs("room for tensors on ", out);
  sn__put_text(out, f->chart->curves[0].run->gpu, 20);
}

static void put_limit_name(FILE *out, const frame *f, const mark *m) {
  const char *font = sn__look_of(f->chart->form)->key_font;
  const room_line *r = &f->rooms[m->curve - f->chart->n_curves];
  fputs("set label '", out);
  put_room(out, f, r);
  fprintf(out, "' at graph 1.025, graph %.9g left offset 0,0.45 textcolor rgb '#606060' font ',%s'\n", m->place, font);
  fprintf(out, "set label '%.*f %s' at graph 1.025, graph %.9g left offset 0,-0.55 font ',%s'\n",
          f->unit.bytes > 1e9 ? 2 : 0, (double)r->bytes / f->unit.bytes, f->unit.name, m->place, font);
}

/* Below the curve's name; beside its run there is room for no more than the peak. */
static void put_figures(FILE *out, const frame *f, const sn__curve *curve) {
  if (f->chart->n_runs > 1) put_run(out, f, curve->run);
  put_peak(out, f, curve->result, f->chart->n_runs == 1);
}

static void put_curve_name(FILE *out, const frame *f, const mark *m) {
  const sn__curve *curve = &f->chart->curves[m->curve];
  const char *colour = sn__colour(colour_of(f->chart, m->curve)), *font = sn__look_of(f->chart->form)->key_font;
  uint32_t counts[PASSES];
  count_passes(curve->result, counts);
  put_leader(out, m, place(f, counts, peak_of(f, curve->result)->step), colour);
  fprintf(out, "set label '");
  put_name(out, curve);
  fprintf(out, "' at graph 1.025, graph %.9g left offset 0,0.45 textcolor rgb '%s' font ',%s'\nset label '", m->place,
          colour, font);
  put_figures(out, f, curve);
  fprintf(out, "' at graph 1.025, graph %.9g left offset 0,-0.55 font ',%s'\n", m->place, font);
}

/* The letters of the longest name in the margin. */
static size_t longest_name(const frame *f) {
  char *text = NULL;
  size_t size = 0, longest = 0;
  for (unsigned i = 0; i < 2 * f->chart->n_curves + f->n_rooms; i++) {
    unsigned curve = i / 2;
    FILE *line = open_memstream(&text, &size);
    if (!line) return longest;
    if (i >= 2 * f->chart->n_curves)
      put_room(line, f, &f->rooms[i - 2 * f->chart->n_curves]);
    else if (i % 2)
      put_figures(line, f, &f->chart->curves[curve]);
    else
      put_name(line, &f->chart->curves[curve]);
    if (fclose(line) == 0 && size > longest) longest = size;
    free(text);
    text = NULL;
  }
  return longest;
}

/* Where the frame ends, as a share of the picture, so that the names beside it are not cut. */
static double name_margin(const frame *f) {
  enum { USUAL = 35 }; /* letters, for which 0.31 is enough */
  double letters = fmax((double)longest_name(f), USUAL);
  return 1 - fmin(0.31 * letters / USUAL, 0.56);
}

static void put_names(FILE *out, const frame *f) {
  mark marks[MOST_NAMES + MOST_ROOMS];
  unsigned n = f->chart->n_curves, count = n;
  double top = top_of(f) * (f->live ? 1 : f->unit.bytes);
  if (!has_names(f)) return;
  fprintf(out, "set rmargin at screen %.3g\n", name_margin(f));
  for (unsigned i = 0; i < n; i++) {
    const sn_step_row *peak = peak_of(f, f->chart->curves[i].result);
    marks[i] = (mark){i, (f->live ? peak->live_tensors : (double)peak->tensor_bytes) / top, 0};
  }
  for (unsigned i = 0; i < f->n_rooms; i++) marks[count++] = (mark){n + i, (double)f->rooms[i].bytes / top, 0};
  spread(marks, count);
  for (unsigned i = 0; i < count; i++)
    if (marks[i].curve < n)
      put_curve_name(out, f, &marks[i]);
    else
      put_limit_name(out, f, &marks[i]);
}

static void put_limits(FILE *out, const frame *f) {
  for (unsigned i = 0; i < f->n_rooms; i++) {
    double limit = (double)f->rooms[i].bytes / f->unit.bytes;
    fprintf(out, ", %.9g with lines linecolor rgb '#808080' dashtype (20,6,4,6) linewidth 1.3 title '%s", limit,
            f->chart->form == SN__FORM_TEXT ? " " : "");
    put_room(out, f, &f->rooms[i]);
    fprintf(out, ": %.*f %s'", f->unit.bytes > 1e9 ? 2 : 0, limit, f->unit.name);
  }
}

void sn__curves_write(FILE *out, const sn__chart *chart) {
  frame f = measure(chart);
  sn__put_terminal(out, chart->form, chart->columns, chart->rows);
  put_title(out, &f);
  put_x_axis(out, &f);
  put_y_axes(out, &f);
  put_passes(out, &f);
  put_style(out, &f);
  put_names(out, &f);
  for (unsigned i = 0; i < chart->n_curves; i++) put_data(out, &f, i, chart->curves[i].result);
  for (unsigned i = 0; i < chart->n_curves; i++) put_curve(out, &f, i);
  for (unsigned i = 0; i < chart->n_curves && has_counts(&f); i++) put_counts(out, &f, i);
  put_limits(out, &f);
  fputs("\n", out);
}
