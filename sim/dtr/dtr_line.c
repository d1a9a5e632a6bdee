/* A line of DTR's logs; see the header. One pass; texts are copied as they are unescaped. */
#include "sim/dtr/dtr_line.h"

#include "base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const char *const sn__dtr_key_names[SN__DTR_KEYS] = {"INSTRUCTION", "NAME",   "MEMORY", "ALIAS", "ARGS",      "RESULT",
                                                     "TIME",        "MUTATE", "DST",    "SRC",   "ANNOTATION"};

void sn__dtr_line_clear(sn__dtr_line *line) {
  free(line->text);
  free(line->copies);
  free(line->items);
  *line = (sn__dtr_line){0};
}

sn_status sn__dtr_line_next(sn__dtr_line *line, FILE *in, bool *end, sn_err *err) {
  if (!line->text) line->text = malloc(SN__DTR_MOST_LINE + 1);
  if (!line->copies) line->copies = malloc(SN__DTR_MOST_LINE + 1);
  if (!line->text || !line->copies) return sn_fail_memory(err);
  size_t n = 0;
  int c = getc_unlocked(in);
  *end = c == EOF;
  for (; c != EOF && c != '\n' && n < SN__DTR_MOST_LINE; c = getc_unlocked(in)) line->text[n++] = (char)c;
  line->text[n] = '\0';
  line->bytes = n;
  if (c == EOF && ferror(in)) return sn_fail(err, SN_BAD_FILE, "cannot be read: %s", strerror(errno));
  if (c == EOF || c == '\n') return SN_OK;
  return sn_fail(err, SN_BAD_INPUT, "the line is longer than %d bytes", SN__DTR_MOST_LINE);
}

/* ---- pieces of JSON ---- */

typedef struct cursor {
  const char *at, *end;
  char *to; /* where the next copy goes */
  sn_err *err;
} cursor;

static sn_status fail_at(const cursor *c, const char *wanted) {
  if (c->at >= c->end)
    return sn_fail(c->err, SN_BAD_INPUT, "the line ends where %s is expected; is it cut off?", wanted);
  unsigned char found = (unsigned char)*c->at;
  if (found < ' ' || found > '~')
    return sn_fail(c->err, SN_BAD_INPUT, "byte 0x%02x where %s is expected", found, wanted);
  return sn_fail(c->err, SN_BAD_INPUT, "'%c' where %s is expected", found, wanted);
}

static void skip_blanks(cursor *c) {
  while (c->at < c->end && (*c->at == ' ' || *c->at == '\t' || *c->at == '\r')) c->at++;
}

static bool take(cursor *c, char wanted) {
  skip_blanks(c);
  if (c->at >= c->end || *c->at != wanted) return false;
  c->at++;
  return true;
}

/* The code behind \u; -1: none. */
static long take_hex(cursor *c) {
  long code = 0;
  if (c->end - c->at < 4) return -1;
  for (int i = 0; i < 4; i++) {
    static const char digits[] = "0123456789abcdef";
    char letter = c->at[i] >= 'A' && c->at[i] <= 'F' ? (char)(c->at[i] - 'A' + 'a') : c->at[i];
    const char *digit = letter ? strchr(digits, letter) : NULL;
    if (!digit) return -1;
    code = 16 * code + (digit - digits);
  }
  c->at += 4;
  return code;
}

/* The character behind a backslash, as one byte. What is no plain text has no place in a name. */
static int take_escape(cursor *c) {
  static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
  if (c->at >= c->end) return -1;
  char letter = *c->at++;
  if (letter == 'u') {
    long code = take_hex(c);
    return code > 0 && code < 128 ? (int)code : -1;
  }
  const char *place = letter ? strchr(from, letter) : NULL;
  return place ? to[place - from] : -1;
}

/* The rest of a string behind its first quote. */
static sn_status copy_string(cursor *c) {
  while (c->at < c->end && *c->at != '"') {
    int byte = (unsigned char)*c->at++;
    if (byte == '\\') byte = take_escape(c);
    if (byte < ' ')
      return sn_fail(c->err, SN_BAD_INPUT,
                     "a string holds a control character, or an escape that is none of plain text");
    *c->to++ = (char)byte;
  }
  if (c->at >= c->end) return fail_at(c, "the end of a string");
  c->at++;
  return SN_OK;
}

static sn_status copy_number(cursor *c) {
  const char *begin = c->at;
  while (c->at < c->end && *c->at && strchr("+-.0123456789eE", *c->at)) *c->to++ = *c->at++;
  return c->at > begin ? SN_OK : fail_at(c, "a string or number");
}

static sn_status add_item(sn__dtr_line *line, char *text, sn_err *err) {
  if (strlen(text) > SN__DTR_MOST_NAME)
    return sn_fail(err, SN_BAD_INPUT, "a text longer than %d bytes", SN__DTR_MOST_NAME);
  if (line->n_items == line->room) {
    uint32_t room = line->room ? 2 * line->room : 64;
    char **more = realloc(line->items, room * sizeof *more);
    if (!more) return sn_fail_memory(err);
    line->items = more;
    line->room = room;
  }
  line->items[line->n_items++] = text;
  return SN_OK;
}

/* ---- the object ---- */

static sn_status take_item(sn__dtr_line *line, cursor *c, sn__dtr_value *value) {
  char *begin = c->to;
  if ((take(c, '"') ? copy_string(c) : copy_number(c)) != SN_OK) return c->err->code;
  *c->to++ = '\0';
  value->count++;
  return add_item(line, begin, c->err);
}

static sn_status take_array(sn__dtr_line *line, cursor *c, sn__dtr_value *value) {
  value->array = true;
  if (take(c, ']')) return SN_OK;
  do {
    if (take_item(line, c, value) != SN_OK) return c->err->code;
  } while (take(c, ','));
  return take(c, ']') ? SN_OK : fail_at(c, "',' or ']'");
}

static sn_status take_key(cursor *c, sn__dtr_key *key) {
  char *begin = c->to, suggestion[80];
  if (!take(c, '"')) return fail_at(c, "the '\"' of a key");
  if (copy_string(c) != SN_OK) return c->err->code;
  *c->to = '\0';
  c->to = begin;
  for (*key = 0; *key < SN__DTR_KEYS; ++*key)
    if (strcmp(begin, sn__dtr_key_names[*key]) == 0) return SN_OK;
  sn_text_suggest(begin, sn__dtr_key_names, SN__DTR_KEYS, suggestion, sizeof suggestion);
  return sn_fail(c->err, SN_BAD_INPUT, "unknown key \"%.40s\"%s; is it a log of another version?", begin, suggestion);
}

static sn_status take_member(sn__dtr_line *line, cursor *c) {
  sn__dtr_key key = SN__DTR_KEYS;
  if (take_key(c, &key) != SN_OK || key == SN__DTR_KEYS) return c->err->code;
  sn__dtr_value *value = &line->values[key];
  if (value->given) return sn_fail(c->err, SN_BAD_INPUT, "%s stands twice", sn__dtr_key_names[key]);
  if (!take(c, ':')) return fail_at(c, "':'");
  *value = (sn__dtr_value){.given = true, .first = line->n_items};
  return take(c, '[') ? take_array(line, c, value) : take_item(line, c, value);
}

sn_status sn__dtr_line_parse(sn__dtr_line *line, sn_err *err) {
  cursor c = {.at = line->text, .end = line->text + line->bytes, .to = line->copies, .err = err};
  line->n_items = 0;
  memset(line->values, 0, sizeof line->values);
  if (!take(&c, '{')) return fail_at(&c, "'{'");
  do {
    if (take_member(line, &c) != SN_OK) return err->code;
  } while (take(&c, ','));
  if (!take(&c, '}')) return fail_at(&c, "',' or '}'");
  skip_blanks(&c);
  return c.at == c.end ? SN_OK : fail_at(&c, "the end of the line");
}

const char *sn__dtr_line_item(const sn__dtr_line *line, sn__dtr_key key, uint32_t index) {
  return line->items[line->values[key].first + index];
}

const char *sn__dtr_line_text(const sn__dtr_line *line, sn__dtr_key key) {
  return sn__dtr_line_item(line, key, 0);
}

sn_status sn__dtr_number(const char *text, const char *what, int64_t low, int64_t high, int64_t *number, sn_err *err) {
  size_t digits = strspn(text + (*text == '-'), "0123456789");
  errno = 0;
  long long value = strtoll(text, NULL, 10);
  bool whole = digits > 0 && text[(*text == '-') + digits] == '\0';
  if (!whole) return sn_fail(err, SN_BAD_INPUT, "%s: \"%.40s\" is no whole number", what, text);
  if (errno == ERANGE || value < low || value > high)
    return sn_fail(err, SN_BAD_INPUT, "%s: %.40s is not from %" PRId64 " to %" PRId64, what, text, low, high);
  *number = value;
  return SN_OK;
}
