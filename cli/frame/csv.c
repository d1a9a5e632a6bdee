/* CSV; see the header. */
#include "cli/frame/csv.h"

#include <string.h>

static bool needs_quotes(const char *text) {
  size_t length = strlen(text);
  return strpbrk(text, ",\"\r\n") || (length > 0 && (text[0] == ' ' || text[length - 1] == ' '));
}

void sn_csv_put(FILE *out, const char *text, bool first) {
  if (!first) putc(',', out);
  if (!needs_quotes(text)) {
    fputs(text, out);
    return;
  }
  putc('"', out);
  for (; *text; text++) {
    if (*text == '"') putc('"', out);
    putc(*text, out);
  }
  putc('"', out);
}
