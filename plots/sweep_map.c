/* Map of a sweep: a row per strategy, a column per batch; a cell has the images per second, the greener the faster, or
 * says that it does not fit. Strategies that come to the same with every batch share a row. As a gnuplot script, and as
 * text, for which columns that have no room beside each other come below each other. The best is said in a sentence
 * above. O(strategies^2 * batches + points * strategies). */
#include "plots/plot_internal.h"

#include <inttypes.h>
#include <string.h>

enum { MOST_BATCHES = 400, NAME_COLUMNS = 33, CELL_COLUMNS = 7, LABELLED = 24 };

typedef struct map {
  const sn__sweep_chart *chart;
  uint32_t batches[MOST_BATCHES];
  unsigned n_batches, n_groups;
  unsigned group[SN__SWEEP_CURVES]; /* of each strategy: the first that comes to the same */
  const sn_sweep_row *best;         /* the fastest that fits; NULL: none */
  const sn_sweep_row *largest;      /* of the largest batch that fits the fastest */
} map;

static const sn_sweep_row *point_at(const map *m, unsigned strategy, unsigned batch) {
  const sn__sweep_chart *c = m->chart;
  for (uint32_t i = 0; i < c->n_rows; i++)
    if (c->rows[i]->batch == m->batches[batch] && strcmp(c->rows[i]->strategy, c->strategies[strategy]) == 0)
      return c->rows[i];
  return NULL;
}

static bool is_alike(const map *m, unsigned a, unsigned b) {
  for (unsigned i = 0; i < m->n_batches; i++) {
    const sn_sweep_row *x = point_at(m, a, i), *y = point_at(m, b, i);
    if (!x != !y) return false;
    if (x && (x->fits != y->fits || x->iteration_ns != y->iteration_ns || x->peak_device_bytes != y->peak_device_bytes))
      return false;
  }
  return true;
}

/* Batches ascend; of more than MOST_BATCHES the largest are left out. */
static void note_batch(map *m, uint32_t batch) {
  unsigned at = m->n_batches;
  while (at > 0 && m->batches[at - 1] > batch) at--;
  if ((at > 0 && m->batches[at - 1] == batch) || at == MOST_BATCHES) return;
  if (m->n_batches == MOST_BATCHES) m->n_batches--;
  memmove(&m->batches[at + 1], &m->batches[at], (m->n_batches - at) * sizeof m->batches[0]);
  m->batches[at] = batch;
  m->n_batches++;
}

static void note(map *m, const sn_sweep_row *row) {
  note_batch(m, row->batch);
  if (!row->fits) return;
  if (sn_sweep_row_beats(row, m->best)) m->best = row;
  if (!m->largest || row->batch > m->largest->batch ||
      (row->batch == m->largest->batch && sn_sweep_row_beats(row, m->largest)))
    m->largest = row;
}

static map measure(const sn__sweep_chart *chart) {
  map m = {.chart = chart};
  for (uint32_t i = 0; i < chart->n_rows; i++) note(&m, chart->rows[i]);
  for (unsigned s = 0; s < chart->n_strategies; s++) {
    m.group[s] = 0;
    while (m.group[s] < s && !is_alike(&m, m.group[s], s)) m.group[s]++;
    m.n_groups += m.group[s] == s;
  }
  return m;
}

static void put_sentence(FILE *out, const map *m, const char *separator,
                         void (*put)(FILE *out, const char *text, size_t most)) {
  if (!m->largest) {
    fputs("nothing that was tried fits", out);
    return;
  }
  fprintf(out, "largest batch that fits: %" PRIu32 ", with ", m->largest->batch);
  put(out, m->largest->strategy, 40);
  fprintf(out, "%sfastest: %.1f images/s, batch %" PRIu32 " with ", separator, m->best->images_per_second,
          m->best->batch);
  put(out, m->best->strategy, 40);
}

static void put_figure(FILE *out, const sn_sweep_row *row, int width) {
  if (!row)
    fprintf(out, "%*s", width, "");
  else if (!row->fits)
    fprintf(out, "%*s", width, "no");
  else
    fprintf(out, "%*.*f", width, row->images_per_second < 100 ? 1 : 0, row->images_per_second);
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
  for (unsigned s = 0; s < m->chart->n_strategies; s++) {
    if (m->group[s] != s) continue;
    for (unsigned b = 0; b < m->n_batches; b++) fprintf(out, "%u %u %lu\n", b, y, colour_of(m, point_at(m, s, b)));
    y++;
  }
  fputs("END\n", out);
  y = 0;
  for (unsigned s = 0; s < m->chart->n_strategies && m->n_batches <= LABELLED; s++) {
    if (m->group[s] != s) continue;
    for (unsigned b = 0; b < m->n_batches; b++) {
      fputs("set label '", out);
      put_figure(out, point_at(m, s, b), 0);
      fprintf(out, "' at first %u, first %u center front font ',%s'\n", b, y,
              m->n_batches <= LABELLED / 2 ? sn__look_of(m->chart->form)->key_font
                                           : sn__look_of(m->chart->form)->small_font);
    }
    y++;
  }
}

/* Names of a row's strategies, one below the other. */
static void put_row_names(FILE *out, const map *m) {
  unsigned y = 0;
  fputs("set ytics scale 0 (", out);
  for (unsigned s = 0; s < m->chart->n_strategies; s++) {
    if (m->group[s] != s) continue;
    unsigned alike = 0, at = 0;
    for (unsigned k = s; k < m->chart->n_strategies; k++) alike += m->group[k] == s;
    for (unsigned k = s; k < m->chart->n_strategies; k++) {
      if (m->group[k] != s) continue;
      fputs(y || at ? ", '" : "'", out);
      sn__put_text(out, m->chart->strategies[k], 40);
      fprintf(out, "' %.4g", y + (at + 0.5) / alike - 0.5);
      at++;
    }
    y++;
  }
  fprintf(out, ") font ',%s'\n",
          m->chart->n_strategies <= 16 ? sn__look_of(m->chart->form)->key_font
                                       : sn__look_of(m->chart->form)->small_font);
}

static void put_columns(FILE *out, const map *m) {
  unsigned every = (m->n_batches + LABELLED - 1) / LABELLED;
  fputs("set xtics scale 0 (", out);
  for (unsigned b = 0; b < m->n_batches; b += every)
    fprintf(out, "%s'%" PRIu32 "' %u", b ? ", " : "", m->batches[b], b);
  fputs(")\n", out);
}

void sn__sweep_map_write(FILE *out, const sn__sweep_chart *chart) {
  map m = measure(chart);
  sn__put_terminal(out, chart->form, chart->columns, chart->lines);
  put_cells(out, &m);
  fputs("set title '", out);
  sn__put_text(out, chart->rows[0]->net, 48);
  fputs(" on ", out);
  sn__put_text(out, chart->rows[0]->gpu, 32);
  fprintf(out, ": images per second, \"no\" where it does not fit' offset 0,1.2\nset label '");
  put_sentence(out, &m, "; ", sn__put_text);
  fprintf(out, "' at screen 0.5, graph 1 center offset 0,1 font ',%s'\n", sn__look_of(chart->form)->key_font);
  fputs("unset key\nset border 0\nset tmargin 4.5\nset xlabel 'images in a batch'\n", out);
  put_columns(out, &m);
  put_row_names(out, &m);
  fprintf(out, "set xrange [-0.5:%u.5]\nset yrange [%u.5:-0.5]\n", m.n_batches - 1, m.n_groups - 1);
  fputs(
      "plot $c using 1:2:($1-0.5):($1+0.5):($2-0.5):($2+0.5):3 with boxxyerror fillcolor rgb variable fillstyle solid "
      "border rgb 'white' linewidth 1\n",
      out);
}

/* ---- text ---- */

static void put_text_row(FILE *out, const map *m, unsigned s, unsigned from, unsigned to) {
  fprintf(out, "%-*.*s", NAME_COLUMNS, NAME_COLUMNS, m->chart->strategies[s]);
  for (unsigned b = from; b < to; b++) put_figure(out, point_at(m, s, b), CELL_COLUMNS);
  fputs("\n", out);
  for (unsigned k = s + 1; k < m->chart->n_strategies; k++)
    if (m->group[k] == s) fprintf(out, "= %.*s\n", NAME_COLUMNS, m->chart->strategies[k]);
}

void sn__sweep_map_text(FILE *out, const sn__sweep_chart *chart) {
  map m = measure(chart);
  unsigned room = (chart->columns - NAME_COLUMNS) / CELL_COLUMNS;
  sn__put_plain(out, chart->rows[0]->net, 48);
  fputs(" on ", out);
  sn__put_plain(out, chart->rows[0]->gpu, 32);
  fputs(": images per second\n", out);
  put_sentence(out, &m, "\n", sn__put_plain);
  fputs("\n", out);
  for (unsigned from = 0; from < m.n_batches; from += room) {
    unsigned to = from + room < m.n_batches ? from + room : m.n_batches;
    fprintf(out, "\n%-*s", NAME_COLUMNS, "strategy \\ batch");
    for (unsigned b = from; b < to; b++) fprintf(out, "%*" PRIu32, CELL_COLUMNS, m.batches[b]);
    fputs("\n", out);
    for (unsigned s = 0; s < chart->n_strategies; s++)
      if (m.group[s] == s) put_text_row(out, &m, s, from, to);
  }
}
