/* Events and rows of tables, read in place: lists of whole numbers and short words, a third of a million of them in a
 * long recording. What is anything else is left to cJSON. The items are cJSON's own type, so that whoever reads them does not
 * know who made them; they last until the next line. */
#include "models/record/read_internal.h"

#include <stdlib.h>
#include <string.h>

enum { DEEPEST = 8, MOST_DIGITS = 16, MOST_ITEMS = 1 << 16 };

typedef struct quick {
  sn__quick *pool;
  char *at;
  int depth;
} quick;

/* NULL: there is no room. */
static cJSON *new_item(quick *q, int type) {
  if (q->pool->used == MOST_ITEMS) return NULL;
  cJSON *item = &q->pool->items[q->pool->used++];
  *item = (cJSON){.type = type};
  return item;
}

static cJSON *number(quick *q) {
  bool below = *q->at == '-';
  int64_t value = 0;
  const char *first = q->at += below;
  while (*q->at >= '0' && *q->at <= '9' && q->at - first <= MOST_DIGITS) value = 10 * value + (*q->at++ - '0');
  bool whole = q->at > first && q->at - first < MOST_DIGITS && (*first != '0' || q->at - first == 1);
  if (!whole || *q->at == '.' || *q->at == 'e' || *q->at == 'E') return NULL;
  cJSON *item = new_item(q, cJSON_Number);
  if (item) item->valuedouble = (double)(below ? -value : value);
  return item;
}

/* Without anything that JSON would write by a backslash. */
static cJSON *word(quick *q) {
  char *first = ++q->at;
  while ((unsigned char)*q->at >= ' ' && *q->at != '"' && *q->at != '\\') q->at++;
  cJSON *item = *q->at == '"' ? new_item(q, cJSON_String) : NULL;
  if (!item) return NULL;
  item->valuestring = first;
  *q->at++ = '\0';
  return item;
}

static cJSON *value(quick *q);

static cJSON *list(quick *q) {
  cJSON *item = q->depth < DEEPEST ? new_item(q, cJSON_Array) : NULL, **next = item ? &item->child : NULL;
  q->at++;
  if (!item || *q->at == ']') {
    q->at += item != NULL;
    return item;
  }
  q->depth++;
  for (; (*next = value(q)) != NULL; q->at++) {
    next = &(*next)->next;
    if (*q->at == ']') break;
    if (*q->at != ',') return NULL;
  }
  q->depth--;
  if (*q->at != ']') return NULL;
  q->at++;
  return item;
}

static cJSON *value(quick *q) {
  if (*q->at == '[') return list(q);
  if (*q->at == '"') return word(q);
  if (strncmp(q->at, "null", 4) != 0) return number(q);
  q->at += 4;
  return new_item(q, cJSON_NULL);
}

/* As it was, for another reader: what ends words stood in quotation marks, and no 0 was passed. */
static void restore(char *from, const char *end) {
  for (; from < end; from++)
    if (*from == '\0') *from = '"';
}

const cJSON *sn__quick_row(sn__quick *pool, char **at) {
  if (!pool->items) pool->items = malloc(MOST_ITEMS * sizeof *pool->items);
  if (**at != '[' || !pool->items) return NULL;
  pool->used = 0;
  quick q = {.pool = pool, .at = *at};
  const cJSON *all = list(&q);
  if (all)
    *at = q.at;
  else
    restore(*at, q.at);
  return all;
}

const cJSON *sn__quick_parse(sn__quick *pool, char *line, size_t length) {
  char *at = line;
  const cJSON *all = sn__quick_row(pool, &at);
  if (all && at == line + length) return all;
  restore(line, at);
  return NULL;
}

void sn__quick_clear(sn__quick *pool) {
  free(pool->items);
  *pool = (sn__quick){0};
}
