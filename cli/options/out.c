/* Where words go; see the header. */
#include "cli/options/out.h"

#include "base/units.h"
#include "base/utf8.h"
#include "cli/options/table.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* A terminal whose user has not said that it stays plain. */
static bool lively(FILE *stream) {
  const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
  if (no_color && *no_color) return false;
  return isatty(fileno(stream)) && term && strcmp(term, "dumb") != 0;
}

/* The stream writes to a copy of the descriptor, so that closing it tells of every loss before the file gets its name.
 */
static sn_status open_file(sn_out *out, sn_err *err) {
  if (sn_replace_open(&out->replace, out->path, err) != SN_OK) return err->code;
  int copy = dup(out->replace.file);
  out->stream = copy >= 0 ? fdopen(copy, "w") : NULL;
  if (out->stream) return SN_OK;
  sn_fail(err, SN_BAD_FILE, "%.300s: cannot be written: %s", out->path, strerror(errno));
  if (copy >= 0) close(copy);
  return sn_replace_close(&out->replace, err);
}

sn_status sn_out_open(sn_out *out, const char *path, sn_color color, sn_err *err) {
  unsigned rows;
  *out = (sn_out){.path = path && strcmp(path, "-") != 0 ? path : NULL, .stream = stdout};
  if (out->path && open_file(out, err) != SN_OK) return err->code;
  if (!out->path) sn_out_size(stdout, &out->columns, &rows);
  out->color = color == SN_COLOR_AUTO ? lively(out->stream) : color == SN_COLOR_ALWAYS;
  return SN_OK;
}

/* Why a stream has lost what was written before its last buffer: another byte tells. */
static int reason_of(FILE *stream) {
  errno = 0;
  clearerr(stream);
  bool again = putc('\n', stream) == EOF || fflush(stream) != 0;
  return again && errno ? errno : EIO;
}

sn_status sn_out_close(sn_out *out, sn_err *err) {
  errno = 0;
  bool lost = fflush(out->stream) != 0 || ferror(out->stream);
  int reason = lost && errno == 0 ? reason_of(out->stream) : errno;
  if (out->path && fclose(out->stream) != 0) lost = true;
  if (lost)
    sn_fail(err, SN_BAD_FILE, "%.300s: cannot be written: %s", out->path ? out->path : "standard output",
            strerror(reason ? reason : EIO));
  return out->path ? sn_replace_close(&out->replace, err) : err->code;
}

sn_status sn_out_check(const char *path, sn_err *err) {
  sn_out out;
  sn_err only_a_look = SN_ERR_INIT;
  struct stat found;
  if (!path || strcmp(path, "-") == 0 || strncmp(path, "/dev/", 5) == 0) return SN_OK;
  if (stat(path, &found) == 0 && !S_ISREG(found.st_mode) && !S_ISDIR(found.st_mode)) return SN_OK; /* a pipe waits */
  if (sn_out_open(&out, path, SN_COLOR_NEVER, err) != SN_OK) return err->code;
  sn_fail(&only_a_look, SN_BAD_FILE, "nothing is written"); /* with an error the file is left as it was */
  sn_out_close(&out, &only_a_look);
  return SN_OK;
}

void sn_out_say(const char *format, ...) {
  char text[1400];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  fprintf(stderr, "snsim: %s\n", sn_table_clean(text));
}

void sn_out_complain(const char *kind, const char *text) {
  char copy[4096];
  snprintf(copy, sizeof copy, "%s", text);
  bool color = lively(stderr);
  fprintf(stderr, "snsim: %s%s:%s ", color ? "\033[1;31m" : "", kind, color ? "\033[0m" : "");
  for (char *line = copy, *end; line; line = end) {
    end = strchr(line, '\n');
    if (end) *end++ = '\0';
    fprintf(stderr, "%s\n", sn_table_clean(line));
  }
}

const char *sn_out_quote(const char *text, char *out, size_t room) {
  static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._/+:,@%=";
  size_t used = 1;
  if (text[0] && strspn(text, plain) == strlen(text)) return text;
  for (out[0] = '\''; *text && used + 6 < room; text++) {
    bool mark = *text == '\'';
    memcpy(out + used, mark ? "'\\''" : text, mark ? 4 : 1);
    used += mark ? 4 : 1;
  }
  memcpy(out + used, "'", 2);
  return out;
}

/* Columns that a word takes; an escape sequence takes none. */
static size_t word_width(const char *text, size_t length) {
  size_t width = 0;
  uint32_t point;
  for (size_t at = 0, bytes; at < length; at += bytes) {
    const char *end = text[at] == '\033' ? memchr(text + at, 'm', length - at) : NULL;
    bytes = end ? (size_t)(end - text) + 1 - at : sn_utf8_next(text + at, &point);
    if (bytes == 0) bytes = 1;
    if (!end) width += sn_utf8_width(point);
  }
  return width;
}

/* Lines that were broken go on two columns further in. */
static void put_broken(const char *text, const char *end, unsigned columns, FILE *out) {
  size_t at = 0;
  while (text < end) {
    size_t blanks = strspn(text, " "), length = strcspn(text + blanks, " \n");
    size_t width = word_width(text + blanks, length);
    bool breaks = at > 0 && at + blanks + width > columns;
    if (breaks) fputs("\n  ", out);
    fprintf(out, "%.*s", (int)(breaks ? length : blanks + length), breaks ? text + blanks : text);
    at = breaks ? 2 + width : at + blanks + width;
    text += blanks + length;
    if (*text != '\n') continue;
    putc('\n', out);
    text++;
    at = 0;
  }
}

static void flush(sn_prose *prose) {
  if (fflush(prose->own.stream) != 0) return;
  put_broken(prose->text + prose->done, prose->text + prose->bytes, prose->out->columns, prose->out->stream);
  prose->done = prose->bytes;
}

const sn_out *sn_prose_open(sn_prose *prose, const sn_out *out) {
  *prose = (sn_prose){.out = out, .own = *out};
  prose->own.prose = prose;
  prose->own.stream = out->columns ? open_memstream(&prose->text, &prose->bytes) : NULL;
  return prose->own.stream ? &prose->own : out;
}

void sn_prose_close(sn_prose *prose) {
  if (!prose->own.stream) return;
  flush(prose);
  fclose(prose->own.stream);
  free(prose->text);
}

sn_status sn_out_table(const sn_out *out, sn_table *table, sn_err *err) {
  if (out->prose) {
    flush(out->prose);
    return sn_out_table(out->prose->out, table, err);
  }
  sn_prose prose;
  sn_table_fit(table, out->columns);
  if (sn_table_print(table, out->stream, out->color, err) != SN_OK) return err->code;
  sn_table_print_left_out(table, sn_prose_open(&prose, out)->stream);
  sn_prose_close(&prose);
  return SN_OK;
}

void sn_out_progress(const char *text) {
  if (!lively(stderr)) return;
  fputs("\r\033[K", stderr);
  if (text) fputs(text, stderr);
  fflush(stderr);
}

bool sn_out_size(FILE *stream, unsigned *columns, unsigned *rows) {
  struct winsize size;
  const char *text = getenv("COLUMNS");
  uint64_t wanted = 0;
  sn_err reason = SN_ERR_INIT; /* a COLUMNS that makes no sense counts for nothing */
  if (!isatty(fileno(stream))) return false;
  bool known = ioctl(fileno(stream), TIOCGWINSZ, &size) == 0;
  if (text) sn_parse_count(text, "COLUMNS", 1, UINT16_MAX, &wanted, &reason);
  if (wanted == 0 && (!known || size.ws_col == 0)) return false;
  *columns = wanted ? (unsigned)wanted : size.ws_col;
  *rows = known ? size.ws_row : 0;
  return true;
}
