/* JSON with file and line in every error; see the header.
 *
 * The text is checked first for what cJSON lets pass (NUL, broken UTF-8, "\u0000") or reports badly (deep nesting),
 * then parsed by cJSON. cJSON keeps no positions: an item's line is found, only when an error needs it, by counting.
 * The item is the k-th in the tree in document order, so its value is the k-th in the text; keys are the strings before
 * a colon. Nothing recurses and every pass is linear in the text. cJSON needs about 80 bytes of memory for a
 * value, which MAX_VALUES bounds. */
#include "base/json_internal.h"

#include "base/path.h"
#include "base/text.h"
#include "base/utf8.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_VALUES = 12 * 1000 * 1000 };

const char *sn_json_name(const sn_json *doc) {
  return doc->name;
}

void sn_json_free(sn_json *doc) {
  if (!doc) return;
  cJSON_Delete(doc->root);
  free(doc->name);
  free(doc->text);
  free(doc);
}

const cJSON *sn_json_root(const sn_json *doc) {
  return doc->root;
}

void sn_json_be_terse(sn_json *doc, bool terse) {
  doc->terse = terse;
}

static sn_status fail_at(const sn_json *doc, unsigned line, sn_err *err, const char *format, va_list args) {
  char text[sizeof err->text], place[sizeof err->text / 3];
  vsnprintf(text, sizeof text, format, args);
  if (line)
    snprintf(place, sizeof place, "%.180s:%u", doc->name, line);
  else
    snprintf(place, sizeof place, "%.180s", doc->name);
  return sn_fail(err, SN_BAD_INPUT, "%s: %s", place, sn_utf8_clean(text)); /* the file's texts go to a terminal */
}

sn_status sn__json_fail_line(const sn_json *doc, unsigned line, sn_err *err, const char *format, ...) {
  va_list args;
  va_start(args, format);
  fail_at(doc, line, err, format, args);
  va_end(args);
  return err->code;
}

sn_status sn_json_fail(const sn_json *doc, const cJSON *item, sn_err *err, const char *format, ...) {
  va_list args;
  va_start(args, format);
  fail_at(doc, doc->terse ? 0 : sn_json_line(doc, item), err, format, args);
  va_end(args);
  return err->code;
}

/* -- lines ------------------------------------------------------------------------------------------------------- */

unsigned sn__json_count_lines(const char *begin, const char *end) {
  unsigned lines = 0;
  for (; begin < end && (begin = memchr(begin, '\n', (size_t)(end - begin))); begin++) lines++;
  return lines;
}

unsigned sn__json_line_of(const sn_json *doc, const char *place) {
  unsigned line = 1 + doc->lines_before + sn__json_count_lines(doc->text, place);
  for (size_t i = 0; i < doc->n_cuts; i++)
    if (doc->text + doc->cuts[i].at <= place) line += doc->cuts[i].lines;
  return line;
}

/* Place of `item` among the document's values, from 1, in document order; 0 where it is not there. */
static size_t rank_of(const cJSON *root, const cJSON *item) {
  const cJSON *above[CJSON_NESTING_LIMIT + 1];
  size_t depth = 0, rank = 1;
  for (const cJSON *at = root; at != item; rank++) {
    if (at->child && depth <= CJSON_NESTING_LIMIT) {
      above[depth++] = at;
      at = at->child;
      continue;
    }
    while (!at->next && depth > 0) at = above[--depth];
    at = at->next;
    if (!at) return 0;
  }
  return rank;
}

static bool is_blank(char c) {
  return c && (unsigned char)c <= ' '; /* what cJSON skips */
}

const char *sn__json_skip_blanks(const char *at) {
  while (is_blank(*at)) at++;
  return at;
}

const char *sn__json_skip_string(const char *at) {
  for (at++; *at && *at != '"'; at++)
    if (*at == '\\' && at[1]) at++;
  return *at ? at + 1 : at;
}

/* Behind the token at `at`: a string, a bracket, or a number or word. */
static const char *skip_token(const char *at) {
  if (*at == '"') return sn__json_skip_string(at);
  if (*at == '[' || *at == '{') return at + 1;
  while (*at && !is_blank(*at) && !strchr(",:[]{}\"", *at)) at++;
  return at;
}

unsigned sn_json_line(const sn_json *doc, const cJSON *item) {
  size_t rank = item ? rank_of(doc->root, item) : 0;
  const char *at = strncmp(doc->text, "\xEF\xBB\xBF", 3) == 0 ? doc->text + 3 : doc->text; /* byte order mark */
  while (rank > 0 && *(at = sn__json_skip_blanks(at))) {
    if (strchr(",:]}", *at)) {
      at++;
      continue;
    }
    const char *begin = at;
    at = skip_token(at);
    bool key = *begin == '"' && *sn__json_skip_blanks(at) == ':';
    if (!key && --rank == 0) return sn__json_line_of(doc, begin);
  }
  return 0;
}

/* -- reading ----------------------------------------------------------------------------------------------------- */

static sn_status check_bytes(const sn_json *doc, sn_err *err) {
  const char *zero = memchr(doc->text, '\0', doc->bytes);
  if (zero) return sn__json_fail_line(doc, sn__json_line_of(doc, zero), err, "a NUL byte: this is not a text file");
  for (size_t i = 0, step; i < doc->bytes; i += step) {
    uint32_t point;
    step = sn_utf8_next(doc->text + i, &point);
    if (step == 0) return sn__json_fail_line(doc, sn__json_line_of(doc, doc->text + i), err, "not valid UTF-8");
  }
  return SN_OK;
}

static const char *find_zero_escape(const char *text) {
  for (; *text; text++) {
    if (*text != '\\') continue;
    if (strncmp(text, "\\u0000", 6) == 0) return text;
    if (text[1]) text++;
  }
  return NULL;
}

static sn_status check_texts(const sn_json *doc, size_t most_values, sn_err *err) {
  const char *zero = find_zero_escape(doc->text);
  if (zero) return sn__json_fail_line(doc, sn__json_line_of(doc, zero), err, "\"\\u0000\": no text may hold a NUL");
  size_t depth = 0, values = 1;
  for (const char *at = doc->text; *at; at = *at == '"' ? sn__json_skip_string(at) : at + 1) {
    bool begins = *at == '[' || *at == '{', ends = *at == ']' || *at == '}';
    if (begins) depth++;
    if (ends && depth > 0) depth--;
    values += begins || *at == ',';
    if (depth >= CJSON_NESTING_LIMIT)
      return sn__json_fail_line(doc, sn__json_line_of(doc, at), err, "nested %d deep; nothing needs that",
                                CJSON_NESTING_LIMIT);
    if (values > most_values)
      return sn__json_fail_line(doc, sn__json_line_of(doc, at), err, "more than %d values; no description is so long",
                                MAX_VALUES);
  }
  return SN_OK;
}

sn_status sn__json_check(const sn_json *doc, size_t most_values, sn_err *err) {
  if (check_bytes(doc, err) != SN_OK) return err->code;
  if (*sn__json_skip_blanks(doc->text) == '\0') return sn__json_fail_line(doc, 0, err, "the file is empty");
  return check_texts(doc, most_values, err);
}

sn_status sn__json_fail_near(const sn_json *doc, const char *place, sn_err *err) {
  const unsigned line = sn__json_line_of(doc, place);
  if (*place == '\0') return sn__json_fail_line(doc, line, err, "not valid JSON: the file ends too early");
  return sn__json_fail_line(doc, line, err, "not valid JSON near `%.20s`", place);
}

sn_status sn__json_parse(sn_json *doc, size_t bytes, bool whole, const char **end, sn_err *err) {
  *end = doc->text;
  errno = 0;
  doc->root = cJSON_ParseWithLengthOpts(doc->text, bytes + 1, end, whole); /* with the NUL */
  if (doc->root) return SN_OK;
  if (errno == ENOMEM) return sn_fail_memory(err);
  while (*end > doc->text && **end && isalnum((unsigned char)(*end)[-1])) --*end; /* it may stop within a word */
  return sn__json_fail_near(doc, *end, err);
}

/* Takes over `text`, which has room for a NUL behind its bytes. */
static sn_json *adopt(const char *name, char *text, size_t bytes, sn_err *err) {
  sn_json *doc = calloc(1, sizeof *doc);
  size_t length = strlen(name) + 1;
  char *copy = malloc(length);
  if (!doc || !copy) {
    free(doc), free(copy), free(text);
    sn_fail_memory(err);
    return NULL;
  }
  text[bytes] = '\0';
  *doc = (sn_json){.name = memcpy(copy, name, length), .text = text, .bytes = bytes};
  const char *end;
  if (sn__json_check(doc, MAX_VALUES, err) == SN_OK && sn__json_parse(doc, bytes, true, &end, err) == SN_OK) return doc;
  sn_json_free(doc);
  return NULL;
}

void *sn__json_fail_size(const char *name, size_t most, sn_err *err) {
  sn_fail(err, SN_BAD_INPUT, "%.180s: larger than %zu MiB", name, most >> 20);
  return NULL;
}

char *sn__json_copy(const char *name, const char *text, size_t bytes, size_t most, sn_err *err) {
  if (bytes > most) return sn__json_fail_size(name, most, err);
  char *copy = malloc(bytes + 1);
  if (copy && bytes) memcpy(copy, text, bytes);
  if (!copy) sn_fail_memory(err);
  return copy;
}

/* Doubles the room for the text up to one byte more than the limit. What is no text is not read to its end. */
static char *read_all(FILE *file, size_t most, size_t *bytes) {
  size_t room = 4096;
  char *text = malloc(room + 1);
  for (*bytes = 0; text; room = 2 * room) {
    size_t more = fread(text + *bytes, 1, room - *bytes, file);
    bool binary = memchr(text + *bytes, '\0', more) != NULL;
    *bytes += more;
    if (*bytes < room || *bytes > most || binary) break;
    char *wider = realloc(text, 2 * room + 1);
    if (!wider) free(text);
    text = wider;
  }
  return text;
}

static char *load(const char *path, FILE *file, size_t most, size_t *bytes, sn_err *err) {
  char *text = read_all(file, most, bytes);
  if (text && !ferror(file) && *bytes <= most) return text;
  if (!text)
    sn_fail_memory(err);
  else if (ferror(file))
    sn_fail(err, SN_BAD_FILE, "%.180s: cannot be read: %s", path, strerror(errno));
  else
    sn__json_fail_size(path, most, err);
  free(text);
  return NULL;
}

char *sn__json_read(const char *path, size_t most, size_t *bytes, sn_err *err) {
  FILE *file = sn_path_open(path, err);
  if (!file) return NULL;
  char *text = load(path, file, most, bytes, err);
  fclose(file);
  return text;
}

sn_json *sn_json_parse(const char *name, const char *text, size_t bytes, sn_err *err) {
  char *copy = sn__json_copy(name, text, bytes, SN_JSON_MAX_BYTES, err);
  return copy ? adopt(name, copy, bytes, err) : NULL;
}

sn_json *sn_json_load(const char *path, sn_err *err) {
  size_t bytes;
  char *text = sn__json_read(path, SN_JSON_MAX_BYTES, &bytes, err);
  return text ? adopt(path, text, bytes, err) : NULL;
}

/* -- members ----------------------------------------------------------------------------------------------------- */

bool sn_json_has(const cJSON *object, const char *key) {
  return cJSON_GetObjectItemCaseSensitive(object, key) != NULL;
}

static const cJSON *member(const sn_json *doc, const cJSON *object, const char *key, sn_err *err) {
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
  if (!item) sn_json_fail(doc, object, err, "\"%s\" is missing", key);
  return item;
}

const cJSON *sn_json_array(const sn_json *doc, const cJSON *object, const char *key, sn_err *err) {
  const cJSON *item = member(doc, object, key, err);
  if (!item || cJSON_IsArray(item)) return item;
  sn_json_fail(doc, item, err, "\"%s\" must be a list: [...]", key);
  return NULL;
}

const char *sn_json_text(const sn_json *doc, const cJSON *object, const char *key, sn_err *err) {
  const cJSON *item = member(doc, object, key, err);
  if (!item || cJSON_IsString(item)) return item ? item->valuestring : NULL;
  sn_json_fail(doc, item, err, "\"%s\" must be a text in quotes", key);
  return NULL;
}

sn_status sn_json_bool(const sn_json *doc, const cJSON *object, const char *key, bool *out, sn_err *err) {
  const cJSON *item = member(doc, object, key, err);
  if (!item) return err->code;
  if (!cJSON_IsBool(item)) return sn_json_fail(doc, item, err, "\"%s\" must be true or false", key);
  *out = cJSON_IsTrue(item);
  return SN_OK;
}

sn_status sn_json_number(const sn_json *doc, const cJSON *object, const char *key, double low, double high, double *out,
                         sn_err *err) {
  const cJSON *item = member(doc, object, key, err);
  if (!item) return err->code;
  if (!cJSON_IsNumber(item)) return sn_json_fail(doc, item, err, "\"%s\" must be a number", key);
  if (!(item->valuedouble >= low && item->valuedouble <= high))
    return sn_json_fail(doc, item, err, "\"%s\" must be from %.12g to %.12g, not %.12g", key, low, high,
                        item->valuedouble);
  *out = item->valuedouble;
  return SN_OK;
}

sn_status sn_json_item_count(const sn_json *doc, const cJSON *item, const char *what, uint64_t low, uint64_t high,
                             uint64_t *out, sn_err *err) {
  assert(high <= UINT64_C(1) << 53); /* beyond it doubles skip whole numbers */
  double value = item->valuedouble;  /* 0 where it is no number */
  if (cJSON_IsNumber(item) && value >= (double)low && value <= (double)high && floor(value) == value) {
    *out = (uint64_t)value;
    return SN_OK;
  }
  char given[40] = "";
  if (cJSON_IsNumber(item)) snprintf(given, sizeof given, ", not %.12g", value);
  if (low == high) return sn_json_fail(doc, item, err, "\"%s\" must be %" PRIu64 "%s", what, low, given);
  return sn_json_fail(doc, item, err, "\"%s\" must be a whole number from %" PRIu64 " to %" PRIu64 "%s", what, low,
                      high, given);
}

sn_status sn_json_count(const sn_json *doc, const cJSON *object, const char *key, uint64_t low, uint64_t high,
                        uint64_t *out, sn_err *err) {
  const cJSON *item = member(doc, object, key, err);
  return item ? sn_json_item_count(doc, item, key, low, high, out, err) : err->code;
}

/* " (did you mean "pad"?)", or all there are where none is near. */
static sn_status fail_key(const sn_json *doc, const cJSON *item, const char *const *keys, size_t count, sn_err *err) {
  char hint[400];
  if (doc->terse) return sn_json_fail(doc, item, err, "unknown key");
  if (!*sn_text_suggest(item->string, keys, count, hint, sizeof hint)) {
    size_t used = (size_t)snprintf(hint, sizeof hint, "; there are ");
    for (size_t i = 0; i < count && used < sizeof hint; i++)
      used += (size_t)snprintf(hint + used, sizeof hint - used, "%s\"%s\"", i ? ", " : "", keys[i]);
  }
  return sn_json_fail(doc, item, err, "unknown key \"%.60s\"%s", item->string, hint);
}

sn_status sn_json_known(const sn_json *doc, const cJSON *item, const char *const *keys, size_t count, uint64_t *seen,
                        sn_err *err) {
  assert(count <= 64);
  size_t i = 0;
  while (i < count && strcmp(item->string, keys[i]) != 0) i++;
  if (i == count) return fail_key(doc, item, keys, count, err);
  if (*seen >> i & 1) return sn_json_fail(doc, item, err, "the key \"%s\" stands twice", keys[i]);
  *seen |= UINT64_C(1) << i;
  return SN_OK;
}

sn_status sn_json_only(const sn_json *doc, const cJSON *object, const char *const *keys, size_t count, sn_err *err) {
  uint64_t seen = 0;
  if (!cJSON_IsObject(object)) return sn_json_fail(doc, object, err, "expected an object: {...}");
  for (const cJSON *item = object->child; item; item = item->next)
    if (sn_json_known(doc, item, keys, count, &seen, err)) return err->code;
  return SN_OK;
}
