/* Device: all of the device's memory over the steps, as one stack against what the device has: what stays (context,
 * parameters, their gradients, momentum, input), tensors by operator, the workspace, and holes. At each step that is
 * what the step needs (sim/play/footprint.h), so the highest step is the memory the strategy needs; it is marked and
 * named, and the legend has its parts.
 *
 * O(steps * parts); above SN__CURVE_POINTS steps a column is the highest of several. */
#include "plots/plot_internal.h"

#include "base/units.h"
#include "sim/play/footprint.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { STACKED = SN__PART_HOLES + 1, LABEL_COLUMNS = 8, OTHER_ROWS = 6 /* of the text: headings, axis */, ENTRY = 64 };

/* Where the device has more than this many times what is needed, its line would flatten everything. */
static const double far_above = 3;

typedef struct stack {
  const sn__chart *chart;
  const sn_footprint *footprint;
  uint32_t peak;    /* the column that sets the pool, from 0 */
  uint32_t n_steps; /* columns: forward and backward, as updates hold nothing of their own, or all operations */
  uint64_t resident, need, memory;
  bool reserved; /* by PyTorch's allocator: what it once has it keeps, whatever the plan's addresses */
  sn__unit unit;
  double high; /* of the axis, in the unit */
  bool shows_memory;
} stack;

/* Bytes of a part at a step (a column of the timeline, from 0). */
static uint64_t bytes_of(const stack *k, uint32_t step, unsigned part) {
  const sn_footprint *f = k->footprint;
  if (part < SN__PART_CONV) return sn__resident_part(k->chart->curves[0].result, part);
  if (part == SN__PART_WORKSPACE) return f->steps[step].workspace_bytes;
  if (part == SN__PART_HOLES && k->reserved)
    return k->need - k->resident - f->steps[step].tensor_bytes - f->steps[step].workspace_bytes;
  if (part == SN__PART_HOLES) return f->steps[step].hole_bytes;
  return f->bytes[(size_t)step * f->n_groups + part];
}

/* Of several steps that are as high the run names the one that is full of tensors. */
static uint32_t peak_of(const stack *k, uint32_t pool_step) {
  const sn_footprint *f = k->footprint;
  uint32_t peak = SN_NONE;
  for (uint32_t c = 0; c < k->n_steps; c++)
    if (k->chart->timeline->columns[c].step + 1 == pool_step &&
        (peak == SN_NONE || f->steps[c].top_bytes > f->steps[peak].top_bytes))
      peak = c;
  return peak == SN_NONE ? f->peak : peak;
}

static stack measure(const sn__chart *chart, const sn_footprint *footprint) {
  const sn_result *r = chart->curves[0].result;
  stack k = {.chart = chart, .footprint = footprint, .n_steps = chart->timeline->n_shown_columns};
  for (unsigned p = 0; p < SN__PART_CONV; p++) k.resident += sn__resident_part(r, p);
  k.peak = peak_of(&k, r->pool_step);
  k.need = k.resident + footprint->steps[footprint->peak].top_bytes;
  k.reserved = r->reserved_bytes > 0;
  if (k.reserved) {
    k.need = r->peak_device_bytes;
    k.peak = r->peak_step - 1;
  }
  k.memory = chart->curves[0].run->memory_bytes;
  k.shows_memory = (double)k.memory <= far_above * (double)k.need;
  uint64_t most = k.shows_memory && k.memory > k.need ? k.memory : k.need;
  k.unit = sn__unit_for(most);
  k.high = most > 0 ? (double)most / k.unit.bytes : 1;
  return k;
}

/* The step with the highest top from `begin` up to, not with, `end`. */
static uint32_t highest(const stack *k, uint32_t begin, uint32_t end) {
  uint32_t best = begin;
  for (uint32_t s = begin + 1; s < end && s < k->n_steps; s++)
    if (k->footprint->steps[s].top_bytes > k->footprint->steps[best].top_bytes) best = s;
  return best;
}

static bool is_used(const stack *k, unsigned part) {
  for (uint32_t s = 0; s < k->n_steps; s++)
    if (bytes_of(k, s, part) > 0) return true;
  return false;
}

/* "step 42, conv2 backward", of a co-run plan too, where it is not the 42nd operation */
static void put_peak_step(FILE *out, const stack *k, size_t most,
                          void (*put)(FILE *out, const char *text, size_t most)) {
  uint32_t number = k->chart->timeline->columns[k->peak].step;
  const sn_timeline_step *step = &k->chart->timeline->steps[number];
  fprintf(out, "step %" PRIu32 ", ", number + 1);
  put(out, step->layer, most);
  fprintf(out, " %s", step->pass);
}

/* "CONV 274.95 MiB"; of what the peak has nothing "CONV -". */
static const char *name_entry(const stack *k, unsigned part, char *name, size_t room) {
  char text[SN_UNIT_TEXT];
  uint64_t bytes = bytes_of(k, k->peak, part);
  bool kept = part == SN__PART_HOLES && k->reserved;
  snprintf(name, room, "%s %s", kept ? "reserved, unused" : sn__part_name(part, k->chart->curves[0].run),
           bytes ? sn_print_bytes(bytes, text) : "-");
  return name;
}

static sn_status with_stack(FILE *out, const sn__chart *chart, void (*put)(FILE *out, const stack *k), sn_err *err) {
  uint8_t *parts = sn__tensor_parts(chart->timeline, err);
  sn_footprint *footprint = parts ? sn_footprint_new(chart->timeline, parts, SN__PART_OTHER + 1, err) : NULL;
  if (footprint) {
    stack k = measure(chart, footprint);
    put(out, &k);
  }
  sn_footprint_free(footprint);
  free(parts);
  return err->code;
}

/* ---- gnuplot ---- */

/* One line of the data block: where a column begins, and how high the stack is with each part on it. */
static void put_column(FILE *out, const stack *k, double x, uint32_t step) {
  uint64_t sum = 0;
  fprintf(out, "%.9g", x);
  for (unsigned p = 0; p < STACKED; p++) {
    sum += bytes_of(k, step, p);
    fprintf(out, " %.9g", (double)sum / k->unit.bytes);
  }
  fputs("\n", out);
}

static void put_data(FILE *out, const stack *k) {
  uint32_t bucket = (k->n_steps + SN__CURVE_POINTS - 1) / SN__CURVE_POINTS, last = 0;
  fputs("$d << END\n", out);
  for (uint32_t s = 0; s < k->n_steps; s += bucket) put_column(out, k, s + 1.0, last = highest(k, s, s + bucket));
  put_column(out, k, k->n_steps + 1.0, last); /* the last column's end */
  fputs("END\n", out);
}

/* The memory of the device, named on its line, or where it is far above at the upper edge. */
static void put_memory(FILE *out, const stack *k) {
  char text[SN_UNIT_TEXT];
  double memory = (double)k->memory / k->unit.bytes;
  fprintf(out, "set label 'usable on ");
  sn__put_text(out, k->chart->curves[0].run->gpu, 32);
  fprintf(out, ": %s%s' textcolor rgb '" SN__VERMILLION "' boxed front left at graph 0.01, ",
          sn_print_bytes(k->memory, text), k->shows_memory ? "" : ", far above");
  if (!k->shows_memory) {
    fputs("graph 0.96\n", out);
    return;
  }
  fprintf(out, "first %.9g offset 0,0.7\n", memory);
  fprintf(out,
          "set arrow from graph 0, first %.9g to graph 1, first %.9g nohead linecolor rgb '" SN__VERMILLION
          "' linewidth 1.4 front\n",
          memory, memory);
}

/* Where on the axis, as a share, the peak's name begins: around the peak, and within the frame. */
static double name_place(double share, size_t letters) {
  enum { FRAME = 60 }; /* letters of the frame's width */
  double width = (double)letters / FRAME, left = share - width / 2;
  if (left + width > 0.99) left = 0.99 - width;
  return left > 0.01 ? left : 0.01;
}

/* With an arrow down to the peak, just above it, or where the device's line is there above that. */
static void put_peak(FILE *out, const stack *k) {
  char text[SN_UNIT_TEXT], *name = NULL;
  size_t letters = 0;
  double x = k->peak + 1.5, unit = k->unit.bytes;
  double need = (double)k->need / unit, memory = (double)k->memory / unit, place = need + 0.08 * k->high;
  if (k->shows_memory && memory > need - 0.05 * k->high && memory < place + 0.1 * k->high)
    place = memory + 0.13 * k->high;
  FILE *line = open_memstream(&name, &letters);
  if (!line) return;
  fprintf(line, "%s at ", sn_print_bytes(k->need, text));
  put_peak_step(line, k, k->need > k->memory ? 12 : 24, sn__put_text);
  fputs(k->need > k->memory ? ": does not fit" : "", line);
  if (fclose(line) == 0)
    fprintf(out, "set label '%s' at graph %.9g, first %.9g left boxed front\n", name,
            name_place((x - 1) / k->n_steps, letters), place);
  free(name);
  fprintf(out,
          "set arrow from first %.9g, first %.9g to first %.9g, first %.9g linewidth 0.9 size screen 0.008,20 filled "
          "front\n",
          x, place - 0.03 * k->high, x, need);
}

static void put_plot(FILE *out, const stack *k) {
  char name[ENTRY];
  const char *separator = "plot";
  for (unsigned p = STACKED; p-- > 0;) {
    if (!is_used(k, p)) continue;
    fprintf(out, "%s $d using 1:%u with fillsteps fillcolor rgb '%s' fillstyle solid noborder ", separator, p + 2,
            sn__parts[p].colour);
    fprintf(out, "title '%s'", name_entry(k, p, name, sizeof name));
    separator = ",";
  }
  fputs("\n", out);
}

static void put_script(FILE *out, const stack *k) {
  const sn__chart *chart = k->chart;
  double end = k->n_steps + 1.0;
  sn__put_terminal(out, chart->form, chart->columns, chart->rows);
  put_data(out, k);
  fputs("set style textbox opaque noborder margins 0.4,0.2\nset title '", out);
  sn__put_subject(out, chart, sn__put_text);
  fprintf(out, "' offset 0,%s\nset tmargin 3.7\n", sn__look_of(chart->form)->lift);
  fprintf(out, "set xrange [1:%.9g]\nset xlabel '%s'\nset yrange [0:%.9g]\n", end, sn__axis_name(chart->timeline),
          k->high * 1.2);
  fprintf(out, "set ylabel 'memory of the device (%s)'\nset border 3 linewidth 0.7\nset tics out scale 0.6\n",
          k->unit.name);
  fprintf(out,
          "set xtics nomirror\nset ytics nomirror\nset key outside right center vertical Left reverse samplen 1.2 "
          "spacing 1.3 font ',%s' title 'at the peak' left\n",
          sn__look_of(chart->form)->key_font);
  sn__put_passes(out, chart, 1, sn_timeline_divide(chart->timeline), end,
                 (double)k->need / k->unit.bytes / (k->high * 1.2));
  put_memory(out, k);
  put_peak(out, k);
  put_plot(out, k);
}

sn_status sn__device_write(FILE *out, const sn__chart *chart, sn_err *err) {
  return with_stack(out, chart, put_script, err);
}

/* ---- text ---- */

/* What stands at the middle of a cell of a column; what lies above the stack is blank, or the device's line. */
static char letter_at(const stack *k, uint32_t step, double bytes, bool on_line) {
  double sum = 0;
  for (unsigned p = 0; p < STACKED; p++) {
    sum += (double)bytes_of(k, step, p);
    if (bytes < sum) return sn__parts[p].letter;
  }
  return on_line ? '-' : ' ';
}

static void put_row(FILE *out, const stack *k, unsigned row, unsigned rows, unsigned columns) {
  double cell = k->high * k->unit.bytes / rows, low = row * cell;
  bool on_line = k->shows_memory && (double)k->memory > low && (double)k->memory <= low + cell * (1 + 1e-9);
  if (row + 1 == rows || (row + 1) % 4 == 0)
    fprintf(out, "%*.*f |", LABEL_COLUMNS - 2, k->unit.bytes > 1e9 ? 2 : 0, (low + cell) / k->unit.bytes);
  else
    fprintf(out, "%*s|", LABEL_COLUMNS - 1, "");
  for (unsigned c = 0; c < columns; c++) {
    uint32_t begin = (uint32_t)((uint64_t)c * k->n_steps / columns);
    uint32_t end = (uint32_t)(((uint64_t)c + 1) * k->n_steps / columns);
    putc(letter_at(k, highest(k, begin, end > begin ? end : begin + 1), low + cell / 2, on_line), out);
  }
  fputs("|\n", out);
}

/* The peak's place, below the axis. */
static void put_axis(FILE *out, const stack *k, unsigned columns) {
  uint64_t twice = 2 * (uint64_t)k->peak + 1; /* the middle of the step */
  fprintf(out, "%*s^\n", LABEL_COLUMNS + (int)(twice * columns / (2 * (uint64_t)k->n_steps)), "");
}

/* The legend, the stack's top first; into NULL to count its lines. */
static unsigned put_legend(FILE *out, const stack *k) {
  char name[ENTRY];
  unsigned at = 0, lines = 1;
  for (unsigned p = STACKED; p-- > 0;) {
    if (!is_used(k, p)) continue;
    unsigned width = 2 + (unsigned)strlen(name_entry(k, p, name, sizeof name)), before = at;
    at = out ? sn__put_letter(out, k->chart, at, sn__parts[p].letter, name) : at;
    if (!out) at = at > 0 && at + 2 + width <= k->chart->columns ? at + 2 + width : width;
    lines += before > 0 && at == width;
  }
  return lines;
}

static void put_text(FILE *out, const stack *k) {
  unsigned columns = k->chart->columns - LABEL_COLUMNS - 1, others = OTHER_ROWS + put_legend(NULL, k);
  unsigned rows = k->chart->rows > others + 4 ? k->chart->rows - others : 4;
  char text[SN_UNIT_TEXT];
  sn__put_subject(out, k->chart, sn__put_plain);
  fprintf(out, "\n%s at ", sn_print_bytes(k->need, text));
  put_peak_step(out, k, k->chart->columns - 40, sn__put_plain);
  fprintf(out, "\nusable on ");
  sn__put_plain(out, k->chart->curves[0].run->gpu, 32);
  fprintf(out, ": %s%s\n%*s\n", sn_print_bytes(k->memory, text), k->need > k->memory ? "; does not fit" : "",
          LABEL_COLUMNS - 2, k->unit.name);
  for (unsigned row = rows; row-- > 0;) put_row(out, k, row, rows, columns);
  put_axis(out, k, columns);
  put_legend(out, k);
  fputs("\n", out);
}

sn_status sn__device_text(FILE *out, const sn__chart *chart, sn_err *err) {
  return with_stack(out, chart, put_text, err);
}
