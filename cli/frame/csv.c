/* CSV; see the header. */
#include "cli/frame/csv.h"

#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

static bool needs_quotes(const char *text) {
  size_t length = strlen(text);
  return strpbrk(text, ",\"\r\n") || (length > 0 && (text[0] == ' ' || text[length - 1] == ' '));
}

/* A spreadsheet would compute it: "=cmd|..", "+1+2", "@sum(..)"; but a number is what it says. */
static bool is_formula(const char *text) {
  char *end;
  if (!text[0] || !strchr("=+-@", text[0])) return false;
  strtod(text, &end);
  return *end != '\0' || end == text;
}

/* One character, '?' for what a terminal or spreadsheet would act on. Returns how many bytes it took. */
static size_t put_character(FILE *out, const char *text) {
  uint32_t point;
  size_t bytes = sn_utf8_next(text, &point);
  if (bytes == 0 || sn_utf8_is_control(point)) {
    putc('?', out);
    return bytes ? bytes : 1;
  }
  if (*text == '"') putc('"', out);
  fwrite(text, 1, bytes, out);
  return bytes;
}

void sn_csv_put(FILE *out, const char *text, bool first) {
  bool quoted = needs_quotes(text);
  if (!first) putc(',', out);
  if (quoted) putc('"', out);
  if (is_formula(text)) putc('\'', out);
  while (*text) text += put_character(out, text);
  if (quoted) putc('"', out);
}

const char *sn_csv_bool(bool value) {
  return value ? "true" : "false";
}

void sn_csv_end(FILE *out) {
  putc('\n', out);
}
