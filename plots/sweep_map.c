/* Map of a sweep: a row per strategy, a column per value of the axis it is drawn over; a cell has the images per
 * second, the greener the faster, or says that it does not fit. Strategies that come to the same with every value share
 * a row. As a gnuplot script, and as text, for which columns that have no room beside each other come below each other.
 * The best is said in a sentence above. O(strategies^2 * values + points * strategies). */
#include "base/units.h"
#include "models/zoo/zoo.h"
#include "plots/plot_internal.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

enum { MOST_VALUES = 400, NAME_COLUMNS = 33, CELL_COLUMNS = 7, LABELLED = 24 };

typedef struct map {
  const sn__sweep_chart *chart;
  uint64_t values[MOST_VALUES]; /* of sn__sweep_x() */
  unsigned n_values, n_groups;
  unsigned group[SN__SWEEP_CURVES]; /* of each strategy: the first that comes to the same */
  const sn_sweep_row *best;         /* the fastest that fits; NULL: none */
  const sn_sweep_row *limit; /* of the largest batch or image, the smallest pool or memory that fits the fastest */
} map;

static const sn_sweep_row *point_at(const map *m, unsigned strategy, unsigned value) {
  const sn__sweep_chart *c = m->chart;
  for (uint32_t i = 0; i < c->n_rows; i++)
    if (sn__sweep_x(c, c->rows[i]) == m->values[value] && sn__sweep_is_on(c, strategy, c->rows[i])) return c->rows[i];
  return NULL;
}

static bool is_alike(const map *m, unsigned a, unsigned b) {
  for (unsigned i = 0; i < m->n_values; i++) {
    const sn_sweep_row *x = point_at(m, a, i), *y = point_at(m, b, i);
    if (!x != !y) return false;
    if (x && (x->fits != y->fits || x->iteration_ns != y->iteration_ns || x->peak_device_bytes != y->peak_device_bytes))
      return false;
  }
  return true;
}

/* Ascending, what is no number last; of more than MOST_VALUES the largest are left out. */
static void note_value(map *m, uint64_t value) {
  unsigned at = m->n_values;
  while (at > 0 && m->values[at - 1] - 1 > value - 1) at--; /* 0 is the largest then */
  if ((at > 0 && m->values[at - 1] == value) || at == MOST_VALUES) return;
  if (m->n_values == MOST_VALUES) m->n_values--;
  memmove(&m->values[at + 1], &m->values[at], (m->n_values - at) * sizeof m->values[0]);
  m->values[at] = value;
  m->n_values++;
}

static bool wants_small(const map *m) {
  return m->chart->x == SN_PLOT_X_POOL || m->chart->x == SN_PLOT_X_MEMORY;
}

/* Whether a value says more than another: what is no number says least. */
static bool is_further(const map *m, uint64_t value, uint64_t than) {
  return wants_small(m) ? value - 1 < than - 1 : value > than;
}

static void note(map *m, const sn_sweep_row *row) {
  uint64_t value = sn__sweep_x(m->chart, row);
  note_value(m, value);
  if (!row->fits) return;
  if (sn_sweep_row_beats(row, m->best)) m->best = row;
  uint64_t had = m->limit ? sn__sweep_x(m->chart, m->limit) : 0;
  if (!m->limit || is_further(m, value, had) || (value == had && sn_sweep_row_beats(row, m->limit))) m->limit = row;
}

static map measure(const sn__sweep_chart *chart) {
  map m = {.chart = chart};
  for (uint32_t i = 0; i < chart->n_rows; i++)
    if (sn__sweep_is_drawn(chart, chart->rows[i])) note(&m, chart->rows[i]);
  for (unsigned s = 0; s < chart->n_curves; s++) {
    m.group[s] = 0;
    while (m.group[s] < s && !is_alike(&m, m.group[s], s)) m.group[s]++;
    m.n_groups += m.group[s] == s;
  }
  return m;
}

static const char *const names[SN_PLOT_XS] = {[SN_PLOT_X_BATCH] = "batch",
                                              [SN_PLOT_X_POOL] = "pool",
                                              [SN_PLOT_X_MEMORY] = "memory",
                                              [SN_PLOT_X_IMAGE] = "image",
                                              [SN_PLOT_X_GPU] = "GPU"};

static const char *x_word(const sn__sweep_chart *chart) {
  return chart->x == SN_PLOT_X_IMAGE && sn__sweep_is_of_sequences(chart) ? "sequence" : names[chart->x];
}

static const char *unit(const sn__sweep_chart *chart) {
  return sn_net_unit(chart->rows[0]->net);
}

static void put_sentence(FILE *out, const map *m, const char *separator,
                         void (*put)(FILE *out, const char *text, size_t most)) {
  char text[SN__SWEEP_X_TEXT], speed[SN_UNIT_TEXT];
  sn_plot_x x = m->chart->x;
  if (!m->limit) {
    fputs("nothing that was tried fits", out);
    return;
  }
  if (x != SN_PLOT_X_GPU) {
    fprintf(out, "%s %s that fits: %s, with ", wants_small(m) ? "smallest" : "largest", x_word(m->chart),
            sn__sweep_x_text(m->chart, sn__sweep_x(m->chart, m->limit), text));
    put(out, m->limit->strategy, 40);
    fputs(separator, out);
  }
  assert(m->best); /* where one fits, one is the fastest */
  fprintf(out, "fastest: %s %s/s, %s ", sn_print_digits(m->best->images_per_second, 3, speed), unit(m->chart),
          x_word(m->chart));
  put(out, sn__sweep_x_text(m->chart, sn__sweep_x(m->chart, m->best), text), 32);
  fputs(" with ", out);
  put(out, m->best->strategy, 40);
}

static void put_figure(FILE *out, const sn_sweep_row *row, int width) {
  char speed[SN_UNIT_TEXT];
  if (!row)
    fprintf(out, "%*s", width, "");
  else if (!row->fits)
    fprintf(out, "%*s", width, "no");
  else
    fprintf(out, "%*s", width, sn_print_digits(row->images_per_second, 3, speed));
}

/* What the picture is not over. */
static void put_where(FILE *out, const sn__sweep_chart *chart, void (*put)(FILE *out, const char *text, size_t most)) {
  if (chart->x != SN_PLOT_X_GPU) fputs(" on ", out);
  if (chart->x != SN_PLOT_X_GPU) put(out, chart->rows[0]->gpu, 32);
  if (chart->x != SN_PLOT_X_BATCH) fprintf(out, ", batch %" PRIu32, chart->rows[0]->batch);
  sn__sweep_put_iteration(out, chart);
}

/* ---- gnuplot ---- */

/* White where nothing is known, red where it does not fit, else the greener the faster. */
static unsigned long colour_of(const map *m, const sn_sweep_row *row) {
  if (!row) return 0xffffff;
  if (!row->fits) return 0xfdeceb;
  double share = row->images_per_second / m->best->images_per_second, alpha = 0.06 + 0.7 * share * share;
  unsigned long red = (unsigned long)(255 - alpha * 255 + 0.5),
                green = (unsigned long)(255 - alpha * (255 - 158) + 0.5);
  unsigned long blue = (unsigned long)(255 - alpha * (255 - 115) + 0.5);
  return red << 16 | green << 8 | blue;
}

static void put_cells(FILE *out, const map *m) {
  unsigned y = 0;
  fputs("$c << END\n", out);
  for (unsigned s = 0; s < m->chart->n_curves; s++) {
    if (m->group[s] != s) continue;
    for (unsigned b = 0; b < m->n_values; b++) fprintf(out, "%u %u %lu\n", b, y, colour_of(m, point_at(m, s, b)));
    y++;
  }
  fputs("END\n", out);
  y = 0;
  for (unsigned s = 0; s < m->chart->n_curves && m->n_values <= LABELLED; s++) {
    if (m->group[s] != s) continue;
    for (unsigned b = 0; b < m->n_values; b++) {
      fputs("set label '", out);
      put_figure(out, point_at(m, s, b), 0);
      fprintf(out, "' at first %u, first %u center front font ',%s'\n", b, y,
              m->n_values <= LABELLED / 2 ? sn__look_of(m->chart->form)->key_font
                                          : sn__look_of(m->chart->form)->small_font);
    }
    y++;
  }
}

/* Names of a row's strategies, one below the other. */
static void put_row_names(FILE *out, const map *m) {
  unsigned y = 0;
  fputs("set ytics scale 0 (", out);
  for (unsigned s = 0; s < m->chart->n_curves; s++) {
    if (m->group[s] != s) continue;
    unsigned alike = 0, at = 0;
    for (unsigned k = s; k < m->chart->n_curves; k++) alike += m->group[k] == s;
    for (unsigned k = s; k < m->chart->n_curves; k++) {
      if (m->group[k] != s) continue;
      fputs(y || at ? ", '" : "'", out);
      sn__put_text(out, m->chart->curves[k], 40);
      fprintf(out, "' %.4g", y + (at + 0.5) / alike - 0.5);
      at++;
    }
    y++;
  }
  fprintf(out, ") font ',%s'\n",
          m->chart->n_curves <= 16 ? sn__look_of(m->chart->form)->key_font : sn__look_of(m->chart->form)->small_font);
}

static void put_columns(FILE *out, const map *m) {
  char text[SN__SWEEP_X_TEXT];
  unsigned every = (m->n_values + LABELLED - 1) / LABELLED;
  fputs("set xtics scale 0 (", out);
  for (unsigned b = 0; b < m->n_values; b += every) {
    fputs(b ? ", '" : "'", out);
    sn__put_text(out, sn__sweep_x_text(m->chart, m->values[b], text), 32);
    fprintf(out, "' %u", b);
  }
  fputs(")\n", out);
}

void sn__sweep_map_write(FILE *out, const sn__sweep_chart *chart) {
  char title[SN_NET_SPEC];
  map m = measure(chart);
  sn__put_terminal(out, chart->form, chart->columns, chart->lines);
  put_cells(out, &m);
  fputs("set title '", out);
  sn__put_text(out, sn_net_called(chart->rows[0]->net, chart->rows[0]->net_name, title, sizeof title), 48);
  put_where(out, chart, sn__put_text);
  fprintf(out, ": %s per second, \"no\" where it does not fit' offset 0,1.2\nset label '", unit(chart));
  put_sentence(out, &m, "; ", sn__put_text);
  fprintf(out, "' at screen 0.5, graph 1 center offset 0,1 font ',%s'\n", sn__look_of(chart->form)->key_font);
  fprintf(out, "unset key\nset border 0\nset tmargin 4.5\nset xlabel '%s%s'\n",
          chart->x == SN_PLOT_X_BATCH ? unit(chart) : x_word(chart), chart->x == SN_PLOT_X_BATCH ? " in a batch" : "");
  put_columns(out, &m);
  put_row_names(out, &m);
  fprintf(out, "set xrange [-0.5:%u.5]\nset yrange [%u.5:-0.5]\n", m.n_values - 1, m.n_groups - 1);
  fputs(
      "plot $c using 1:2:($1-0.5):($1+0.5):($2-0.5):($2+0.5):3 with boxxyerror fillcolor rgb variable fillstyle solid "
      "border rgb 'white' linewidth 1\n",
      out);
}

/* ---- text ---- */

/* As wide as the widest of their headings, which are ASCII but for names of files. */
static unsigned cell_columns(const map *m) {
  char text[SN__SWEEP_X_TEXT];
  size_t most = CELL_COLUMNS;
  for (unsigned b = 0; b < m->n_values; b++) {
    size_t length = strlen(sn__sweep_x_text(m->chart, m->values[b], text)) + 2;
    if (length > most) most = length;
  }
  return (unsigned)most;
}

static void put_text_row(FILE *out, const map *m, unsigned s, unsigned from, unsigned to) {
  fprintf(out, "%-*.*s", NAME_COLUMNS, NAME_COLUMNS, m->chart->curves[s]);
  for (unsigned b = from; b < to; b++) put_figure(out, point_at(m, s, b), (int)cell_columns(m));
  fputs("\n", out);
  for (unsigned k = s + 1; k < m->chart->n_curves; k++)
    if (m->group[k] == s) fprintf(out, "= %.*s\n", NAME_COLUMNS, m->chart->curves[k]);
}

void sn__sweep_map_text(FILE *out, const sn__sweep_chart *chart) {
  map m = measure(chart);
  unsigned cell = cell_columns(&m), room = (chart->columns - NAME_COLUMNS) / cell;
  char text[SN__SWEEP_X_TEXT], title[SN_NET_SPEC];
  sn__put_plain(out, sn_net_called(chart->rows[0]->net, chart->rows[0]->net_name, title, sizeof title), 48);
  put_where(out, chart, sn__put_plain);
  fprintf(out, ": %s per second\n", unit(chart));
  put_sentence(out, &m, "\n", sn__put_plain);
  fputs("\n", out);
  for (unsigned from = 0; from < m.n_values; from += room) {
    unsigned to = from + room < m.n_values ? from + room : m.n_values;
    fprintf(out, "\nstrategy \\ %-*s", NAME_COLUMNS - 11, x_word(chart));
    for (unsigned b = from; b < to; b++) fprintf(out, "%*s", (int)cell, sn__sweep_x_text(chart, m.values[b], text));
    fputs("\n", out);
    for (unsigned s = 0; s < chart->n_curves; s++)
      if (m.group[s] == s) put_text_row(out, &m, s, from, to);
  }
}
