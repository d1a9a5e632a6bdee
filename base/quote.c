/* Quoting, one character at a time; see the header. O(length). */
#include "base/quote.h"

#include "base/utf8.h"

#include <stdbool.h>
#include <string.h>

enum { REPLACEMENT = 0xFFFD };

/* The character at `text` and its bytes; what is no UTF-8 is a replacement character of one byte. */
static size_t next(const char *text, uint32_t *point) {
  size_t bytes = sn_utf8_next(text, point);
  if (bytes > 0) return bytes;
  *point = REPLACEMENT;
  return 1;
}

static bool needs_escape(uint32_t point) {
  return sn_utf8_is_control(point) || (point < 128 && strchr("\"\\<>&", (int)point)) || point == REPLACEMENT;
}

static void escape(uint32_t point, FILE *out) {
  if (point > 0xFFFF) { /* a surrogate pair */
    escape(0xD800 + ((point - 0x10000) >> 10), out);
    point = 0xDC00 + (point & 0x3FF);
  }
  fprintf(out, "\\u%04x", (unsigned)point);
}

void sn_quote_json(const char *text, FILE *out) {
  uint32_t point;
  putc('"', out);
  for (size_t bytes; *text; text += bytes) {
    bytes = next(text, &point);
    if (needs_escape(point))
      escape(point, out);
    else
      fwrite(text, 1, bytes, out);
  }
  putc('"', out);
}

void sn_quote_html(const char *text, FILE *out) {
  uint32_t point;
  for (size_t bytes; *text; text += bytes) {
    bytes = next(text, &point);
    if (needs_escape(point) && !sn_utf8_is_control(point))
      fprintf(out, "&#%u;", (unsigned)point);
    else if (!sn_utf8_is_control(point))
      fwrite(text, 1, bytes, out);
  }
}
