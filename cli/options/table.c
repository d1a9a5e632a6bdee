/* Aligned tables; see the header. Cells are kept until printing, when every column is as wide as its widest cell. Width
 * is counted in columns of a terminal (base/utf8.h). */
#include "cli/options/table.h"

#include "base/arena.h"
#include "base/units.h"
#include "base/utf8.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_COLUMNS = 32 };

struct sn_table {
  const sn_table_column *columns;
  uint32_t n_columns;
  sn_arena *arena;
  const char **cells; /* row by row */
  size_t n_cells, room;
  bool *dim; /* per row; as long as room / n_columns + 1 */
  bool failed;
  uint32_t width[MOST_COLUMNS];
  bool hidden[MOST_COLUMNS];
  bool left_out[MOST_COLUMNS]; /* hidden for want of width */
  uint32_t wrap_at;            /* width of a last column that wraps; 0: it does not */
};

enum { LEAST_WRAP = 20, MOST_RANK = MOST_COLUMNS };

static unsigned rank_of(const sn_table *table, uint32_t column) {
  return table->columns[column].style >> 8;
}

static uint32_t width_of(const char *text) {
  uint32_t width = 0, point;
  for (size_t bytes; *text && (bytes = sn_utf8_next(text, &point)) > 0; text += bytes) width += sn_utf8_width(point);
  return width;
}

char *sn_table_clean(char *text) {
  return sn_utf8_clean(text);
}

void sn_table_print_clean(FILE *out, const char *text) {
  char copy[512];
  snprintf(copy, sizeof copy, "%s", text);
  fputs(sn_table_clean(copy), out);
}

void sn_table_printf(FILE *out, const char *format, ...) {
  char text[2048];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  for (char *line = text, *end; line; line = end) {
    end = strchr(line, '\n');
    if (end) *end++ = '\0';
    fputs(sn_table_clean(line), out);
    if (end) fputc('\n', out);
  }
}

sn_table *sn_table_new(const sn_table_column *columns, uint32_t n_columns) {
  sn_table *table = n_columns > 0 && n_columns <= MOST_COLUMNS ? calloc(1, sizeof *table) : NULL;
  if (!table) return NULL;
  table->columns = columns;
  table->n_columns = n_columns;
  table->arena = sn_arena_new();
  table->failed = !table->arena;
  for (uint32_t i = 0; i < n_columns; i++) {
    uint32_t top = width_of(columns[i].top), heading = width_of(columns[i].heading);
    table->width[i] = top > heading ? top : heading;
  }
  return table;
}

void sn_table_free(sn_table *table) {
  if (!table) return;
  sn_arena_free(table->arena);
  free(table->cells);
  free(table->dim);
  free(table);
}

/* Room for a further cell, and for the mark of its row. */
static bool grow(sn_table *table) {
  if (table->n_cells < table->room) return true;
  size_t room = table->room ? 2 * table->room : 64;
  const char **cells = realloc(table->cells, room * sizeof *cells);
  if (!cells) return false;
  table->cells = cells;
  size_t rows = room / table->n_columns + 1, old = table->room ? table->room / table->n_columns + 1 : 0;
  bool *dim = realloc(table->dim, rows * sizeof *dim);
  if (!dim) return false;
  table->dim = dim;
  memset(dim + old, 0, (rows - old) * sizeof *dim);
  table->room = room;
  return true;
}

void sn_table_cell(sn_table *table, const char *format, ...) {
  if (!table || table->failed) return;
  va_list args;
  va_start(args, format);
  char *text = sn_arena_vprint(table->arena, format, args);
  va_end(args);
  table->failed = !text || !grow(table);
  if (table->failed) return;
  uint32_t width = width_of(sn_table_clean(text));
  uint32_t *most = &table->width[table->n_cells % table->n_columns];
  if (width > *most) *most = width;
  table->cells[table->n_cells++] = text;
}

void sn_table_figure(sn_table *table, bool known, double value) {
  char text[SN_UNIT_TEXT];
  sn_table_cell(table, "%s", known ? sn_print_digits(value, 3, text) : "-");
}

void sn_table_fine_figure(sn_table *table, double value) {
  char text[SN_UNIT_TEXT];
  sn_table_cell(table, "%s", sn_print_digits(value, 4, text));
}

void sn_table_dim(sn_table *table) {
  if (table && !table->failed && table->n_cells) table->dim[(table->n_cells - 1) / table->n_columns] = true;
}

void sn_table_hide(sn_table *table, uint32_t column) {
  if (table) table->hidden[column] = true;
}

/* The last column that is printed. */
static uint32_t last_column(const sn_table *table) {
  uint32_t last = table->n_columns - 1;
  while (last > 0 && table->hidden[last]) last--;
  return last;
}

uint32_t sn_table_width(const sn_table *table) {
  uint32_t width = 0;
  for (uint32_t i = 0; table && i < table->n_columns; i++)
    if (!table->hidden[i]) width += table->width[i] + (i == 0 ? 0 : table->columns[i].style & SN_TABLE_GAP ? 2 : 1);
  return width;
}

/* How wide the lines are where a last column that wraps is as narrow as it may be. */
static uint32_t least_width(const sn_table *table) {
  uint32_t last = last_column(table), width = sn_table_width(table);
  bool wraps = table->columns[last].style & SN_TABLE_WRAP && table->width[last] > LEAST_WRAP;
  return wraps ? width - table->width[last] + LEAST_WRAP : width;
}

static void leave_out(sn_table *table, unsigned rank) {
  for (uint32_t i = 0; i < table->n_columns; i++)
    if (rank_of(table, i) == rank && !table->hidden[i]) table->hidden[i] = table->left_out[i] = true;
}

static void take_back(sn_table *table, unsigned rank) {
  for (uint32_t i = 0; i < table->n_columns; i++)
    if (rank_of(table, i) == rank && table->left_out[i]) table->hidden[i] = table->left_out[i] = false;
}

/* Columns go by rank until the rest fits; then those come back, last gone first, for which there is room after all. */
void sn_table_fit(sn_table *table, unsigned columns) {
  if (!table || columns == 0) return;
  unsigned rank = 1;
  for (; rank <= MOST_RANK && least_width(table) > columns; rank++) leave_out(table, rank);
  while (--rank > 0) {
    take_back(table, rank);
    if (least_width(table) > columns) leave_out(table, rank);
  }
  uint32_t last = last_column(table), before = sn_table_width(table) - table->width[last];
  if (table->columns[last].style & SN_TABLE_WRAP && before + table->width[last] > columns)
    table->wrap_at = columns > before + LEAST_WRAP ? columns - before : LEAST_WRAP;
}

/* What a column is called where it stands alone; a "%" belongs to what stands over the first column of its group. */
static void print_name(const sn_table *table, uint32_t column, FILE *out) {
  const sn_table_column *c = &table->columns[column];
  uint32_t head = column;
  while (head > 0 && !(table->columns[head].style & SN_TABLE_GAP)) head--;
  if (!*c->top && strcmp(c->heading, "%") == 0)
    fprintf(out, "%s %%", table->columns[head].top);
  else
    fputs(*c->top ? c->top : c->heading, out);
}

void sn_table_print_left_out(const sn_table *table, FILE *out) {
  bool any = false;
  for (unsigned rank = 1; table && rank <= MOST_RANK; rank++)
    for (uint32_t i = 0; i < table->n_columns; i++) {
      if (!table->left_out[i] || rank_of(table, i) != rank) continue;
      fputs(any ? ", " : "left out for want of width: ", out);
      print_name(table, i, out);
      any = true;
      break;
    }
  if (any) fputs("; -o FILE or a pipe shows all\n", out);
}

/* Bytes of `text` that go into a line of `width`: up to a blank, or where there is none, as many as fit. */
static size_t line_length(const char *text, uint32_t width) {
  size_t at = 0, blank = 0;
  uint32_t used = 0, point;
  for (size_t bytes; text[at] && (bytes = sn_utf8_next(text + at, &point)) > 0; at += bytes) {
    used += sn_utf8_width(point);
    if (text[at] == ' ') blank = at;
    if (used > width) return blank ? blank : at ? at : bytes;
  }
  return at;
}

/* The text of a last column, broken. */
static void print_wrapped(const sn_table *table, const char *text, FILE *out) {
  uint32_t last = last_column(table), indent = sn_table_width(table) - table->width[last];
  for (;;) {
    size_t length = line_length(text, table->wrap_at);
    fprintf(out, "%.*s", (int)length, text);
    text += length;
    while (*text == ' ') text++;
    if (!*text) return;
    fprintf(out, "\n%*s", (int)indent, "");
  }
}

/* `last`: nothing stands behind it, and no blanks do. */
static void print_cell(const sn_table *table, uint32_t column, const char *text, bool last, FILE *out) {
  const sn_table_column *c = &table->columns[column];
  if (table->hidden[column] || (last && !*text)) return;
  int pad = (int)(table->width[column] - width_of(text));
  if (column) fputs(c->style & SN_TABLE_GAP ? "  " : " ", out);
  if (!(c->style & SN_TABLE_TEXT)) fprintf(out, "%*s", pad, "");
  if (column == last_column(table) && table->wrap_at)
    print_wrapped(table, text, out);
  else
    fputs(text, out);
  if (c->style & SN_TABLE_TEXT && !last) fprintf(out, "%*s", pad, "");
}

static const char *heading_of(const sn_table *table, uint32_t column, bool top) {
  return top ? table->columns[column].top : table->columns[column].heading;
}

static void print_heading(const sn_table *table, bool top, bool color, FILE *out) {
  uint32_t count = table->n_columns;
  while (count > 1 && (table->hidden[count - 1] || !*heading_of(table, count - 1, top))) count--;
  if (color) fputs("\033[1m", out);
  for (uint32_t i = 0; i < count; i++) print_cell(table, i, heading_of(table, i, top), i + 1 == count, out);
  fputs(color ? "\033[0m\n" : "\n", out);
}

static void print_row(const sn_table *table, size_t first, bool dim, FILE *out) {
  if (dim) fputs("\033[2m", out);
  uint32_t count = table->n_cells - first < table->n_columns ? (uint32_t)(table->n_cells - first) : table->n_columns;
  while (count > 1 && (table->hidden[count - 1] || !*table->cells[first + count - 1])) count--;
  for (uint32_t i = 0; i < count; i++) print_cell(table, i, table->cells[first + i], i + 1 == count, out);
  fputs(dim ? "\033[0m\n" : "\n", out);
}

sn_status sn_table_print(const sn_table *table, FILE *out, bool color, sn_err *err) {
  if (!table || table->failed) return sn_fail_memory(err);
  assert(table->n_columns > 0);
  bool two = false;
  for (uint32_t i = 0; i < table->n_columns; i++) two = two || (*table->columns[i].top && !table->hidden[i]);
  if (two) print_heading(table, true, color, out);
  print_heading(table, false, color, out);
  for (size_t first = 0; first < table->n_cells; first += table->n_columns)
    print_row(table, first, color && table->dim[first / table->n_columns], out);
  return SN_OK;
}
