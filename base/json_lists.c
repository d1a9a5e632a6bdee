/* JSON files with long lists; see the header.
 *
 * One pass over the text finds the object's members, as far as brackets and strings tell: the elements of the lists are
 * left out of the head, which cJSON parses like any document. It parses an element where it lies, and says where it
 * ends. Where the head is no JSON, a list may have been taken to end where it does not: then what is wrong is looked
 * for in the lists first. */
#include "base/json_lists.h"

#include "base/json_internal.h"
#include "base/path.h"

#include <assert.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of a list: behind the opening bracket; NULL: it is not there. */
typedef struct place {
  const char *begin;
  unsigned line;
} place;

struct sn_json_lists {
  sn_json whole; /* not parsed */
  sn_json head;
  sn_json element;
  const char *copied; /* up to here the text is in the head, but for lists */
  const char *const *keys;
  size_t count;
  place lists[SN_JSON_MOST_LISTS];
  const char *twice;   /* the key of the first list that is there again, in the head; NULL: none */
  unsigned twice_line; /* and where */
  char *at;            /* where the next element begins; NULL: there is none */
  unsigned line;       /* there */
};

/* ---- splitting ---- */

/* The comma or bracket behind an element, or the end of the text. */
static const char *skip_element(const char *at) {
  size_t depth = 0;
  while (*at && (depth > 0 || (*at != ',' && *at != ']'))) {
    if (*at == '"') {
      at = sn__json_skip_string(at);
      continue;
    }
    depth += *at == '[' || *at == '{';
    depth -= depth > 0 && (*at == ']' || *at == '}');
    at++;
  }
  return at;
}

/* The bracket behind a list, or the end of the text. */
static const char *skip_list(const char *at) {
  while (*(at = skip_element(at)) == ',') at++;
  return at;
}

/* Whether the text in quotes is the key. Escapes are for cJSON to read. */
static bool is_key(const char *begin, const char *end, const char *key) {
  size_t bytes = (size_t)(end - begin), length = strlen(key), escaped = strlen("\\u0000");
  if (bytes > escaped * length + 2) return false;
  if (!memchr(begin, '\\', bytes)) return bytes == length + 2 && memcmp(begin + 1, key, length) == 0;
  cJSON *text = cJSON_ParseWithLength(begin, bytes);
  bool same = cJSON_IsString(text) && strcmp(text->valuestring, key) == 0;
  cJSON_Delete(text);
  return same;
}

/* Where the elements of one of the lists begin, if the member at `at` is one: behind the bracket. */
static const char *find_list(const sn_json_lists *l, const char *at, size_t *index) {
  const char *key = sn__json_skip_blanks(at);
  if (*key != '"') return NULL;
  const char *end = sn__json_skip_string(key), *colon = sn__json_skip_blanks(end);
  const char *value = *colon == ':' ? sn__json_skip_blanks(colon + 1) : "";
  if (*value != '[') return NULL;
  for (*index = 0; *index < l->count; ++*index)
    if (is_key(key, end, l->keys[*index])) return value + 1;
  return NULL;
}

static sn_status fail_twice(const sn_json_lists *l, sn_err *err) {
  return sn__json_fail_line(&l->whole, l->twice_line, err, "the key \"%s\" stands twice", l->twice);
}

/* What was not copied yet, up to `end`. */
static sn_status add_to_head(sn_json_lists *l, const char *end, sn_err *err) {
  sn_json *head = &l->head;
  size_t more = (size_t)(end - l->copied);
  if (head->bytes + more > SN_JSON_PIECE_BYTES && l->twice) return fail_twice(l, err);
  if (head->bytes + more > SN_JSON_PIECE_BYTES)
    return sn__json_fail_line(&l->whole, 0, err, "more than %d MiB stand beside the long lists",
                              SN_JSON_PIECE_BYTES >> 20);
  char *text = realloc(head->text, head->bytes + more + 1);
  if (!text) return sn_fail_memory(err);
  memcpy(text + head->bytes, l->copied, more);
  head->text = text;
  head->bytes += more;
  text[head->bytes] = '\0';
  return SN_OK;
}

/* False: it is not the first of its key. */
static bool add_list(sn_json_lists *l, size_t index, const char *begin, const char *end) {
  const bool again = l->lists[index].begin != NULL;
  if (again && l->twice) return false;
  const unsigned line = sn__json_line_of(&l->whole, begin);
  if (again) {
    l->twice = l->keys[index];
    l->twice_line = line;
    return false;
  }
  l->lists[index] = (place){begin, line};
  l->head.cuts[l->head.n_cuts].at = l->head.bytes + (size_t)(begin - l->copied);
  l->head.cuts[l->head.n_cuts++].lines = sn__json_count_lines(begin, end);
  return true;
}

/* Makes the head's text, and finds the lists. */
static sn_status split(sn_json_lists *l, sn_err *err) {
  const char *text = l->copied = l->whole.text;
  const char *at = strncmp(text, "\xEF\xBB\xBF", 3) == 0 ? text + 3 : text; /* byte order mark */
  bool object = *(at = sn__json_skip_blanks(at)) == '{';
  for (at += object; object && *at;) {
    size_t index;
    const char *begin = find_list(l, at, &index), *end = begin ? skip_list(begin) : NULL;
    if (begin && add_list(l, index, begin, end)) {
      if (add_to_head(l, begin, err) != SN_OK) return err->code;
      l->copied = end;
    }
    if (begin) at = *end ? end + 1 : end;
    at = skip_element(at);
    if (*at) at++;
  }
  return add_to_head(l, text + l->whole.bytes, err);
}

/* ---- elements ---- */

static size_t index_of(const sn_json_lists *l, const char *key) {
  size_t i = 0;
  while (i < l->count && strcmp(l->keys[i], key) != 0) i++;
  assert(i < l->count);
  return i;
}

static void begin_list(sn_json_lists *l, size_t index) {
  const place *list = &l->lists[index];
  l->at = list->begin ? l->whole.text + (list->begin - l->whole.text) : NULL;
  l->line = list->line;
  if (l->at && *sn__json_skip_blanks(l->at) == ']') l->at = NULL; /* it is empty */
}

void sn_json_lists_begin(sn_json_lists *l, const char *key) {
  begin_list(l, index_of(l, key));
}

/* Whether it goes on behind the bytes that were looked at, where it is wrong at `end`: at a text's begin, or there. */
static bool is_too_long(const char *limit, const char *end) {
  return (end[-1] == '"' ? sn__json_skip_string(end - 1) : end + 1) >= limit;
}

/* The next element becomes a document. *end: behind it. */
static sn_status open_element(sn_json_lists *l, const char **end, sn_err *err) {
  sn_json *e = &l->element;
  size_t left = (size_t)(l->whole.text + l->whole.bytes - l->at);
  size_t bytes = left < SN_JSON_PIECE_BYTES ? left : SN_JSON_PIECE_BYTES;
  sn_err why = SN_ERR_INIT;
  e->text = l->at;
  e->lines_before = l->line - 1;
  if (sn__json_parse(e, bytes, false, end, &why) == SN_OK) return SN_OK;
  if (why.code == SN_BAD_INPUT && bytes < left && is_too_long(l->at + bytes, *end))
    return sn__json_fail_line(e, sn__json_line_of(e, sn__json_skip_blanks(l->at)), err,
                              "an element of more than %d MiB", SN_JSON_PIECE_BYTES >> 20);
  *err = why;
  return err->code;
}

/* What follows begins behind the comma. */
static sn_status step_on(sn_json_lists *l, const char *end, sn_err *err) {
  const char *behind = sn__json_skip_blanks(end);
  if (*behind != ',' && *behind != ']') return sn__json_fail_near(&l->element, behind, err);
  l->line += sn__json_count_lines(l->at, behind);
  l->at = *behind == ',' ? l->at + (behind + 1 - l->at) : NULL;
  return SN_OK;
}

const sn_json *sn_json_lists_next(sn_json_lists *l, sn_err *err) {
  const char *end;
  cJSON_Delete(l->element.root);
  l->element.root = NULL;
  if (!l->at) return NULL;
  if (open_element(l, &end, err) == SN_OK && step_on(l, end, err) == SN_OK) return &l->element;
  l->at = NULL;
  return NULL;
}

/* Where the element begins; 0: there is none. */
static unsigned line_of_element(const sn_json_lists *l, const place *list, size_t index) {
  const char *at = list->begin;
  for (; at && index > 0; index--) {
    at = skip_element(at);
    at = *at == ',' ? at + 1 : NULL;
  }
  at = at ? sn__json_skip_blanks(at) : NULL;
  return at && *at != ']' ? sn__json_line_of(&l->whole, at) : 0;
}

sn_status sn_json_lists_fail(const sn_json_lists *l, const char *key, size_t index, sn_err *err, const char *format,
                             ...) {
  const place *list = &l->lists[index_of(l, key)];
  char text[sizeof err->text];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  unsigned line = line_of_element(l, list, index);
  return sn__json_fail_line(&l->whole, line ? line : list->line, err, "%s", text);
}

/* ---- opening ---- */

void sn_json_lists_free(sn_json_lists *l) {
  if (!l) return;
  cJSON_Delete(l->element.root);
  cJSON_Delete(l->head.root);
  free(l->head.text);
  free(l->whole.text);
  free(l->whole.name);
  free(l);
}

/* Whether all lists are; the first error in them. */
static sn_status check_lists(sn_json_lists *l, sn_err *err) {
  for (size_t i = 0; i < l->count && err->code == SN_OK; i++) {
    begin_list(l, i);
    while (sn_json_lists_next(l, err)) continue;
  }
  return err->code;
}

static sn_status parse_head(sn_json_lists *l, sn_err *err) {
  const char *end;
  sn_err why = SN_ERR_INIT;
  if (sn__json_parse(&l->head, l->head.bytes, true, &end, &why) == SN_OK) return l->twice ? fail_twice(l, err) : SN_OK;
  if (why.code != SN_BAD_INPUT || check_lists(l, err) == SN_OK) *err = why;
  return err->code;
}

/* Takes over `text`, which has room for a NUL behind its bytes; NULL after an error. */
static sn_json_lists *adopt(const char *name, char *text, size_t bytes, const char *const *keys, size_t count,
                            sn_err *err) {
  assert(count <= SN_JSON_MOST_LISTS);
  sn_json_lists *l = text ? calloc(1, sizeof *l) : NULL;
  size_t length = strlen(name) + 1;
  char *copy = l ? malloc(length) : NULL;
  if (!copy) {
    if (text) sn_fail_memory(err);
    free(l), free(text);
    return NULL;
  }
  text[bytes] = '\0';
  l->whole.name = l->head.name = l->element.name = memcpy(copy, name, length);
  l->whole.text = text;
  l->whole.bytes = bytes;
  l->keys = keys;
  l->count = count;
  if (sn__json_check(&l->whole, SIZE_MAX, err) == SN_OK && split(l, err) == SN_OK && parse_head(l, err) == SN_OK)
    return l;
  sn_json_lists_free(l);
  return NULL;
}

sn_json_lists *sn_json_lists_load(const char *path, const char *const *keys, size_t count, sn_err *err) {
  size_t bytes = 0;
  path = sn_path_input(path);
  char *text = sn__json_read(path, SN_JSON_LISTS_MAX_BYTES, &bytes, err);
  return adopt(path, text, bytes, keys, count, err);
}

sn_json_lists *sn_json_lists_parse(const char *name, const char *text, size_t bytes, const char *const *keys,
                                   size_t count, sn_err *err) {
  return adopt(name, sn__json_copy(name, text, bytes, SN_JSON_LISTS_MAX_BYTES, err), bytes, keys, count, err);
}

const sn_json *sn_json_lists_head(const sn_json_lists *l) {
  return &l->head;
}
