/* Nearest name: the first that begins with what was given, else by optimal string alignment distance (insert, delete,
 * replace, swap neighbours), else one of which the one is a part of the other. */
#include "base/text.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { LONGEST = 63, PART = 3 };

static size_t min3(size_t a, size_t b, size_t c) {
  size_t m = a < b ? a : b;
  return m < c ? m : c;
}

static size_t distance(const char *a, const char *b) {
  size_t rows = strlen(a), columns = strlen(b);
  if (rows > LONGEST || columns > LONGEST) return SIZE_MAX; /* never near */
  size_t d[LONGEST + 1][LONGEST + 1];
  for (size_t i = 0; i <= rows; i++) d[i][0] = i;
  for (size_t j = 0; j <= columns; j++) d[0][j] = j;
  for (size_t i = 1; i <= rows; i++)
    for (size_t j = 1; j <= columns; j++) {
      int x = tolower((unsigned char)a[i - 1]), y = tolower((unsigned char)b[j - 1]);
      d[i][j] = min3(d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (x != y));
      if (i > 1 && j > 1 && x == tolower((unsigned char)b[j - 2]) && y == tolower((unsigned char)a[i - 2]) &&
          d[i - 2][j - 2] + 1 < d[i][j])
        d[i][j] = d[i - 2][j - 2] + 1;
    }
  return d[rows][columns];
}

/* Whether `part` stands in `whole`, case ignored; what is too short stands everywhere. */
static bool holds(const char *whole, const char *part) {
  size_t length = strlen(part);
  for (; length >= PART && *whole; whole++)
    if (strncasecmp(whole, part, length) == 0) return true;
  return false;
}

static const char *longest_related(const char *text, const char *const *names, size_t count) {
  const char *best = NULL;
  for (size_t i = 0; i < count; i++)
    if ((holds(names[i], text) || holds(text, names[i])) && (!best || strlen(names[i]) > strlen(best))) best = names[i];
  return best;
}

const char *sn_text_nearest(const char *text, const char *const *names, size_t count) {
  const char *best = NULL;
  size_t length = strlen(text), best_distance = length / 3 + 2;
  for (size_t i = 0; i < count && length > 0; i++)
    if (strncasecmp(text, names[i], length) == 0 && (!best || strlen(names[i]) < strlen(best))) best = names[i];
  if (best) return best;
  for (size_t i = 0; i < count; i++) {
    size_t d = distance(text, names[i]);
    if (d >= best_distance || d >= strlen(names[i])) continue;
    best = names[i];
    best_distance = d;
  }
  return best ? best : longest_related(text, names, count);
}

char *sn_text_suggest(const char *text, const char *const *names, size_t count, char *out, size_t room) {
  const char *near = sn_text_nearest(text, names, count);
  if (near)
    snprintf(out, room, " (did you mean \"%s\"?)", near);
  else
    out[0] = '\0';
  return out;
}

static const char *next_letter(const char *text) {
  return text + strspn(text, " \t-_");
}

bool sn_text_same(const char *a, const char *b) {
  for (a = next_letter(a), b = next_letter(b); *a && *b; a = next_letter(a + 1), b = next_letter(b + 1))
    if (tolower((unsigned char)*a) != tolower((unsigned char)*b)) return false;
  return *a == *b;
}
