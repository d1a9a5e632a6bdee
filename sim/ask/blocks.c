/* Blocks; see the header. One pass over the text, line by line, cell by cell. */
#include "sim/ask/blocks.h"

#include "base/checked.h"
#include "base/path.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 64 << 20, MOST_CELL = 200 };

/* A column may stand anywhere; cells of OFFSET and GAPS have to be empty. */
typedef enum column { ID, LOWER, UPPER, SIZE, ALIGNMENT, HINT, OFFSET, GAPS, COLUMNS } column;
static const char *const column_names[COLUMNS] = {"id",        "lower", "upper",  "size",
                                                  "alignment", "hint",  "offset", "gaps"};

typedef struct cell {
  const char *text;
  size_t bytes;
} cell;

typedef struct reader {
  const char *name, *at, *end; /* of the file; the text to come */
  uint32_t line;
  column columns[COLUMNS]; /* as they stand in the header */
  uint32_t n_columns;
  uint64_t sum;
  uint64_t divisor;      /* the greatest of all sizes */
  uint64_t alignment;    /* the least that all alignments divide, */
  uint32_t aligned_line; /* as which it is known since that line */
  sn_block_list *list;
  sn_err *err;
} reader;

static sn_status fail_at(const reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

static sn_status fail_at(const reader *r, const char *format, ...) {
  char what[300];
  va_list args;
  va_start(args, format);
  vsnprintf(what, sizeof what, format, args);
  va_end(args);
  return sn_fail(r->err, SN_BAD_INPUT, "%.180s:%" PRIu32 ": %s", r->name, r->line, what);
}

/* ---- lines and cells ---- */

static bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

static cell trim(cell c) {
  while (c.bytes > 0 && is_blank(c.text[0])) c.text++, c.bytes--;
  while (c.bytes > 0 && is_blank(c.text[c.bytes - 1])) c.bytes--;
  return c;
}

/* The next line that holds anything; false at the end. */
static bool next_line(reader *r, cell *line) {
  while (r->at < r->end) {
    const char *end = memchr(r->at, '\n', (size_t)(r->end - r->at));
    *line = (cell){r->at, (size_t)((end ? end : r->end) - r->at)};
    r->at = end ? end + 1 : r->end;
    r->line++;
    if (trim(*line).bytes > 0) return true;
  }
  return false;
}

/* Takes the first cell off a line; false where none is left. `line` without text is at its end. */
static bool next_cell(cell *line, cell *c) {
  if (!line->text) return false;
  const char *comma = memchr(line->text, ',', line->bytes);
  size_t bytes = comma ? (size_t)(comma - line->text) : line->bytes;
  *c = trim((cell){line->text, bytes});
  *line = comma ? (cell){comma + 1, line->bytes - bytes - 1} : (cell){NULL, 0};
  return true;
}

/* What can be shown of a cell. */
static const char *show(cell c, char text[MOST_CELL + 1]) {
  size_t bytes = c.bytes < 40 ? c.bytes : 40;
  for (size_t i = 0; i < bytes; i++) text[i] = c.text[i];
  for (size_t i = 0; i < bytes; i++)
    if ((unsigned char)text[i] < ' ' || (unsigned char)text[i] > '~') text[i] = '?';
  text[bytes] = '\0';
  return text;
}

/* ---- the header ---- */

static column column_of(cell c) {
  column i = 0;
  while (i < COLUMNS && (strlen(column_names[i]) != c.bytes || memcmp(column_names[i], c.text, c.bytes) != 0)) i++;
  return i;
}

static sn_status read_column(reader *r, cell c, bool seen[COLUMNS]) {
  char text[MOST_CELL + 1];
  column i = column_of(c);
  if (i == COLUMNS)
    return fail_at(r,
                   "column \"%s\" is none of id, lower, upper, size, alignment and hint (and offset and gaps, with "
                   "empty cells)",
                   show(c, text));
  if (seen[i]) return fail_at(r, "column \"%s\" is there twice", column_names[i]);
  seen[i] = true;
  r->columns[r->n_columns++] = i;
  return SN_OK;
}

static sn_status read_header(reader *r) {
  static const char mark[] = "\xef\xbb\xbf"; /* some programs put it in front of UTF-8 */
  bool seen[COLUMNS] = {false};
  cell line, c;
  if (r->end - r->at >= 3 && memcmp(r->at, mark, 3) == 0) r->at += 3;
  if (!next_line(r, &line)) {
    r->line = 1;
    return fail_at(r, "the file is empty; its first line names the columns: id,lower,upper,size");
  }
  while (next_cell(&line, &c))
    if (read_column(r, c, seen) != SN_OK) return r->err->code;
  for (column i = ID; i <= SIZE; i++)
    if (!seen[i])
      return fail_at(r, "column \"%s\" is missing; id, lower, upper and size must be there", column_names[i]);
  return SN_OK;
}

/* ---- the rows ---- */

static sn_status read_number(const reader *r, column i, cell c, uint64_t *number) {
  char text[MOST_CELL + 1];
  bool good = c.bytes > 0;
  *number = 0;
  for (size_t k = 0; k < c.bytes && good; k++)
    good = c.text[k] >= '0' && c.text[k] <= '9' && sn_mul(*number, 10, number) &&
           sn_add(*number, (uint64_t)(c.text[k] - '0'), number);
  if (good) return SN_OK;
  return fail_at(r, "%s \"%s\" is no whole number from 0 to %" PRIu64, column_names[i], show(c, text), UINT64_MAX);
}

static sn_status read_id(reader *r, cell c, const char **id) {
  char text[MOST_CELL + 1];
  if (c.bytes > MOST_CELL) return fail_at(r, "the id is longer than %d characters", MOST_CELL);
  for (size_t k = 0; k < c.bytes; k++)
    if ((unsigned char)c.text[k] < ' ' || c.text[k] == '"' || c.text[k] == 127)
      return fail_at(r, "id \"%s\": quotes and control characters are not understood", show(c, text));
  memcpy(text, c.text, c.bytes);
  text[c.bytes] = '\0';
  *id = sn_arena_text(r->list->arena, text);
  return *id ? SN_OK : sn_fail_memory(r->err);
}

static sn_status make_room(reader *r) {
  sn_block_list *l = r->list;
  if (l->count == SN_PACK_MOST)
    return fail_at(r, "more than %d blocks, which is more than can be packed; cut the file where no block lives",
                   SN_PACK_MOST);
  if (l->count < l->room) return SN_OK;
  uint32_t room = l->room ? 2 * l->room : 256;
  sn_block *blocks = realloc(l->blocks, room * sizeof *blocks);
  if (blocks) l->blocks = blocks;
  const char **ids = realloc(l->ids, room * sizeof *ids);
  if (ids) l->ids = ids;
  if (!blocks || !ids) return sn_fail_memory(r->err);
  l->room = room;
  return SN_OK;
}

static uint64_t greatest_divisor(uint64_t a, uint64_t b) {
  while (b) {
    uint64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

static sn_status read_alignment(reader *r, cell c) {
  char text[MOST_CELL + 1];
  uint64_t alignment = 1, most;
  if (c.bytes == 0) return SN_OK;
  if (read_number(r, ALIGNMENT, c, &alignment) != SN_OK) return r->err->code;
  if (alignment == 0) return fail_at(r, "alignment 0: a number from 1 on, or an empty cell");
  if (!sn_mul(r->alignment, alignment / greatest_divisor(r->alignment, alignment), &most))
    return fail_at(r, "alignment \"%s\" and those before it together pass 2^64", show(c, text));
  if (most > r->alignment) r->aligned_line = r->line;
  r->alignment = most;
  return SN_OK;
}

/* Offsets are sums of sizes. */
static sn_status check_alignment(reader *r) {
  if (r->divisor % r->alignment == 0) return SN_OK;
  r->line = r->aligned_line;
  return fail_at(r,
                 "alignment: kept only where it divides every size, and these are multiples of %" PRIu64
                 "; round them up to multiples of %" PRIu64,
                 r->divisor, r->alignment);
}

static sn_status refuse(const reader *r, column i, cell c) {
  char text[MOST_CELL + 1];
  return fail_at(r, "%s \"%s\" %s, which pack cannot keep to; leave the cell empty, or take the column out",
                 column_names[i], show(c, text),
                 i == GAPS ? "says when the block is not there" : "fixes where the block lies");
}

static sn_status read_cell(reader *r, column i, cell c, sn_block *block, const char **id) {
  uint64_t hint;
  uint64_t *numbers[COLUMNS] = {
      [HINT] = &hint, [LOWER] = &block->lower, [UPPER] = &block->upper, [SIZE] = &block->bytes};
  if (i == ID) return read_id(r, c, id);
  if (i > SIZE && c.bytes == 0) return SN_OK;
  if (i == ALIGNMENT) return read_alignment(r, c);
  if (i >= OFFSET) return refuse(r, i, c);
  r->list->hints += i == HINT;
  return read_number(r, i, c, numbers[i]);
}

static sn_status read_row(reader *r, cell line) {
  sn_block block = {0};
  const char *id = NULL;
  uint32_t n = 0;
  cell c;
  if (make_room(r) != SN_OK) return r->err->code;
  for (; next_cell(&line, &c); n++)
    if (n < r->n_columns && read_cell(r, r->columns[n], c, &block, &id) != SN_OK) return r->err->code;
  if (n != r->n_columns) return fail_at(r, "%" PRIu32 " cells, where the header has %" PRIu32, n, r->n_columns);
  if (block.lower > block.upper)
    return fail_at(r, "lower %" PRIu64 " is above upper %" PRIu64 ": a block lives from lower to before upper",
                   block.lower, block.upper);
  if (!sn_add(r->sum, block.bytes, &r->sum)) return fail_at(r, "the sizes so far sum up to more than 2^64 bytes");
  r->divisor = greatest_divisor(r->divisor, block.bytes);
  r->list->blocks[r->list->count] = block;
  r->list->ids[r->list->count++] = id;
  return SN_OK;
}

sn_block_list *sn_blocks_parse(const char *name, const char *text, size_t bytes, sn_err *err) {
  reader r = {
      .name = name, .at = text, .end = text + bytes, .alignment = 1, .err = err, .list = calloc(1, sizeof *r.list)};
  cell line;
  if (r.list) r.list->arena = sn_arena_new();
  if (!r.list || !r.list->arena) sn_fail_memory(err);
  if (err->code == SN_OK) read_header(&r);
  while (err->code == SN_OK && next_line(&r, &line)) read_row(&r, line);
  if (err->code == SN_OK) check_alignment(&r);
  if (err->code == SN_OK) return r.list;
  sn_blocks_free(r.list);
  return NULL;
}

void sn_blocks_free(sn_block_list *list) {
  if (!list) return;
  sn_arena_free(list->arena);
  free(list->blocks);
  free(list->ids);
  free(list);
}

/* ---- the file ---- */

/* Up to one byte more than is allowed. */
static char *read_all(FILE *file, size_t *bytes) {
  size_t room = 1 << 16;
  char *text = malloc(room);
  for (*bytes = 0; text; room *= 2) {
    *bytes += fread(text + *bytes, 1, room - *bytes, file);
    if (*bytes < room || *bytes > MOST_BYTES) break;
    char *wider = realloc(text, 2 * room);
    if (!wider) free(text);
    text = wider;
  }
  return text;
}

sn_block_list *sn_blocks_load(const char *path, sn_err *err) {
  size_t bytes;
  sn_block_list *list = NULL;
  path = sn_path_input(path);
  FILE *file = sn_path_open(path, err);
  char *text = file ? read_all(file, &bytes) : NULL;
  if (!file) return NULL;
  if (!text)
    sn_fail_memory(err);
  else if (ferror(file))
    sn_fail(err, SN_BAD_FILE, "%.180s: cannot be read: %s", path, strerror(errno));
  else if ((list = sn_blocks_parse(path, text, bytes, err)) && bytes > MOST_BYTES)
    sn_fail(err, SN_BAD_INPUT, "%.180s: larger than %d MiB", path, MOST_BYTES >> 20);
  if (file) fclose(file);
  free(text);
  if (err->code == SN_OK) return list;
  sn_blocks_free(list);
  return NULL;
}
