/* Reading recordings: lines, packed by gzip or not, and the head; see record.h. Tables are in read_tables.c, events in
 * read_events.c.
 *
 *   {"snsim_recording":1, ..}
 *   {"kernels": [..]}  {"modules": [..]}  {"calls": [..]}  {"storages": [..]}  {"parameters": [..]}     in any order
 *   ["o", ..] ["f", ..] ..  ["e"]                                                                       a line each */
#include "base/checked.h"
#include "base/json.h"
#include "base/text.h"
#include "base/utf8.h"
#include "models/net/net.h"
#include "models/record/read_internal.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

enum { VERSION = 1, CHUNK = 1 << 18 };
#define NO_HEAD "not a recording: its first line is {\"snsim_recording\": 1, ..} (docs/record.md)"
static const size_t longest_line = SN_JSON_MAX_BYTES;

/* ---- for both files ---- */

void sn__read_place(const sn__reader *r) {
  sn_err_prefix(r->err, "%s:%u", r->path, r->line);
}

sn_status sn__list_expect(sn__reader *r, sn__list *list, size_t items, size_t size) {
  list->room = (uint32_t)sn_min(items, SN_RECORD_MOST_EVENTS);
  list->items = malloc(list->room * size + 1);
  return list->items ? SN_OK : sn_fail_memory(r->err);
}

void *sn__list_add(sn__reader *r, sn__list *list, size_t size) {
  if (list->count == list->room) {
    uint32_t room = list->room ? 2 * list->room : 256;
    void *more = list->room > UINT32_MAX / 4 ? NULL : realloc(list->items, room * size);
    if (!more) return sn_fail_memory(r->err), NULL;
    list->items = more;
    list->room = room;
  }
  void *item = (char *)list->items + size * list->count++;
  memset(item, 0, size);
  return item;
}

void *sn__list_adopt(sn__reader *r, sn__list *list, size_t size) {
  void *less = list->count > 0 ? realloc(list->items, list->count * size) : NULL, *items = less ? less : list->items;
  list->items = items;
  if (items && !sn_arena_adopt(r->arena, items)) return sn_fail_memory(r->err), NULL;
  list->items = NULL;
  return items;
}

/* A word at a time, by a multiplier whose bits are spread: sizes are small numbers. */
static uint32_t mix(const void *item, size_t size) {
  const unsigned char *at = item;
  uint64_t hash = 0, word;
  for (; size >= sizeof word; size -= sizeof word, at += sizeof word) {
    memcpy(&word, at, sizeof word);
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
  }
  return (uint32_t)hash % SN__RECENT;
}

sn_status sn__list_share(sn__reader *r, sn__list *list, sn__recent *recent, const void *item, size_t size,
                         uint32_t *place) {
  uint32_t *known = &recent->place[mix(item, size)];
  if (*known == 0 || memcmp((char *)list->items + size * (*known - 1), item, size) != 0) {
    void *kept = sn__list_add(r, list, size);
    if (!kept) return r->err->code;
    memcpy(kept, item, size);
    *known = list->count;
  }
  *place = *known - 1;
  return SN_OK;
}

static bool is_whole(const cJSON *item, double low, double high) {
  return item && cJSON_IsNumber(item) && item->valuedouble >= low && item->valuedouble <= high &&
         item->valuedouble == (double)(int64_t)item->valuedouble;
}

sn_status sn__read_count(const sn__reader *r, const cJSON *item, const char *what, uint64_t low, uint64_t high,
                         uint64_t *out) {
  if (!is_whole(item, (double)low, (double)high))
    return sn__read_fail(r, "%s: a whole number from %" PRIu64 " to %" PRIu64 " was expected", what, low, high);
  *out = (uint64_t)item->valuedouble;
  return SN_OK;
}

sn_status sn__read_id(const sn__reader *r, const cJSON *item, const char *what, uint32_t count, uint32_t *out) {
  if (count == 0 || !is_whole(item, 0, count - 1.0))
    return sn__read_fail(r, "%s: not a number of the table, which has %" PRIu32, what, count);
  *out = (uint32_t)item->valuedouble;
  return SN_OK;
}

sn_status sn__read_size(const sn__reader *r, const cJSON *item, const char *what, sn_record_size *out) {
  const cJSON *a = cJSON_IsArray(item) ? item->child : item, *b = cJSON_IsArray(item) && a ? a->next : NULL;
  const double most = (double)SN_MAX_NET_BYTES;
  if (!is_whole(a, -most, most) || (cJSON_IsArray(item) && (!b || b->next || !is_whole(b, -most, most))))
    return sn__read_fail(r, "%s: a whole number below 2^52 was expected, or two, [a, b], for a + b x batch", what);
  *out = (sn_record_size){(int64_t)a->valuedouble, b ? (int64_t)b->valuedouble : 0};
  return SN_OK;
}

const cJSON *sn__read_item(const cJSON *row, int i) {
  return cJSON_IsArray(row) ? cJSON_GetArrayItem(row, i) : NULL;
}

sn_status sn__read_text(sn__reader *r, const cJSON *item, const char *what, const char **out) {
  if (!cJSON_IsString(item)) return sn__read_fail(r, "%s: a text was expected", what);
  char *text = sn_arena_text(r->arena, item->valuestring);
  *out = text ? sn_utf8_clean(text) : NULL;
  return *out ? SN_OK : sn_fail_memory(r->err);
}

/* ---- head ---- */

static const char *const head_keys[] = {"snsim_recording", "torch",   "name",    "batches", "sm",
                                        "iterations",      "assumed", "compiled"};

static sn_status read_batches(sn__reader *r, const cJSON *list) {
  sn_record *record = r->record;
  if (!cJSON_IsArray(list)) return sn__read_fail(r, "batches: a list of one or two numbers was expected");
  for (const cJSON *item = list->child; item; item = item->next) {
    uint64_t batch;
    if (record->n_batches == SN_RECORD_BATCHES) return sn__read_fail(r, "batches: more than %d", SN_RECORD_BATCHES);
    if (sn__read_count(r, item, "batches", 1, SN_MAX_DIM, &batch) != SN_OK) return r->err->code;
    record->batches[record->n_batches++] = (uint32_t)batch;
  }
  return record->n_batches > 0 ? SN_OK : sn__read_fail(r, "batches: the list is empty");
}

/* Rows of what was assumed, and where. */
static sn_status read_assumed(sn__reader *r, const cJSON *list) {
  sn_record *record = r->record;
  if (!cJSON_IsArray(list)) return sn__read_fail(r, "assumed: a list was expected");
  for (const cJSON *row = list->child; row; row = row->next) {
    const cJSON *what = sn__read_item(row, 0), *line = sn__read_item(row, 1);
    if (!cJSON_IsString(what) || !cJSON_IsString(line))
      return sn__read_fail(r, "assumed: rows of two texts were expected");
    if (record->n_assumed++ > 0) continue;
    if (sn__read_text(r, what, "assumed", &record->assumed) != SN_OK) return r->err->code;
    if (sn__read_text(r, line, "assumed", &record->assumed_at) != SN_OK) return r->err->code;
  }
  return SN_OK;
}

static sn_status read_head_item(sn__reader *r, const cJSON *item) {
  sn_record *record = r->record;
  uint64_t ignored;
  const char *key = item->string, *torch;
  char hint[100];
  if (strcmp(key, "snsim_recording") == 0) return SN_OK;
  if (strcmp(key, "torch") == 0) return sn__read_text(r, item, key, &torch);
  if (strcmp(key, "name") == 0) return sn__read_text(r, item, key, &record->name);
  if (strcmp(key, "batches") == 0) return read_batches(r, item);
  if (strcmp(key, "sm") == 0 || strcmp(key, "iterations") == 0)
    return sn__read_count(r, item, key, 1, 1 << 20, &ignored);
  if (strcmp(key, "assumed") == 0) return read_assumed(r, item);
  if (strcmp(key, "compiled") == 0) {
    record->compiled = cJSON_IsTrue(item);
    return cJSON_IsBool(item) ? SN_OK : sn__read_fail(r, "compiled: true or false was expected");
  }
  return sn__read_fail(r, "unknown key \"%.40s\"%s", key,
                       sn_text_suggest(key, head_keys, sizeof head_keys / sizeof *head_keys, hint, sizeof hint));
}

static sn_status read_head(sn__reader *r, const cJSON *head) {
  const cJSON *version = cJSON_GetObjectItemCaseSensitive(head, "snsim_recording");
  if (!version) return sn__read_fail(r, NO_HEAD);
  if (!is_whole(version, VERSION, VERSION))
    return sn__read_fail(r, "a recording of another version than %d; record it again with this snsim's package",
                         VERSION);
  for (const cJSON *item = head->child; item; item = item->next)
    if (read_head_item(r, item) != SN_OK) return r->err->code;
  if (r->record->n_batches == 0) return sn__read_fail(r, "\"batches\" is missing");
  if (!r->record->name) r->record->name = "recorded";
  return SN_OK;
}

/* ---- lines ---- */

static sn_status read_other(sn__reader *r, const cJSON *json) {
  if (!json && r->line > 1) return sn__read_fail(r, SN__NO_JSON);
  if (!json) return sn__read_fail(r, "not a recording: its first line is no JSON (docs/record.md)");
  if (r->line > 1) return sn__read_event(r, json);
  if (cJSON_IsObject(json)) return read_head(r, json);
  return sn__read_fail(r, NO_HEAD);
}

/* By cJSON what no quicker way reads. */
static sn_status read_line(sn__reader *r, char *line, size_t length) {
  const bool first = r->line++ == 0;
  if (!first && *line == '{') return sn__read_tables(r, line, length);
  const cJSON *event = first ? NULL : sn__quick_parse(&r->quick, line, length);
  if (event) return sn__read_event(r, event);
  cJSON *json = cJSON_ParseWithOpts(line, NULL, 1);
  sn_status status = read_other(r, json);
  cJSON_Delete(json);
  return status;
}

/* What has been read of the file and no line has been made of yet. */
typedef struct text {
  char *bytes;
  size_t used, room;
} text;

/* A file, or what stands in memory. */
typedef struct source {
  gzFile file;
  const char *bytes;
  size_t left;
  size_t text; /* bytes of it in all, by and large; 0: not known */
} source;

static sn_status read_some(sn__reader *r, source *from, char *to, size_t *got) {
  if (!from->file) {
    *got = sn_min(from->left, CHUNK);
    if (*got > 0) memcpy(to, from->bytes, *got);
    from->bytes += *got;
    from->left -= *got;
    return SN_OK;
  }
  int number, bytes = gzread(from->file, to, CHUNK);
  *got = bytes > 0 ? (size_t)bytes : 0;
  if (bytes >= 0) return SN_OK;
  const char *why = gzerror(from->file, &number);
  r->line++;
  if (number == Z_ERRNO) return sn_fail(r->err, SN_BAD_FILE, "%s: %s", r->path, strerror(errno));
  return sn__read_fail(r, "damaged or cut off (%s)", why);
}

/* More of it behind what is there; *more is false at its end. */
static sn_status fill(sn__reader *r, source *from, text *t, bool *more) {
  size_t got = 0;
  if (t->room - t->used <= CHUNK) {
    char *bytes = t->room > longest_line ? NULL : realloc(t->bytes, 2 * t->room + 2 * (size_t)CHUNK);
    if (t->room > longest_line) return sn__read_fail(r, "a line is longer than %zu MiB", longest_line >> 20);
    if (!bytes) return sn_fail_memory(r->err);
    t->bytes = bytes;
    t->room = 2 * t->room + 2 * (size_t)CHUNK;
  }
  if (read_some(r, from, t->bytes + t->used, &got) != SN_OK) return r->err->code;
  t->used += got;
  *more = got > 0;
  return SN_OK;
}

/* All whole lines of what is there; at the end of the file what is left is one, too. */
static sn_status take_lines(sn__reader *r, text *t, bool last) {
  char *at = t->bytes, *end = t->bytes + t->used, *stop;
  sn_status status = SN_OK;
  while (status == SN_OK && (stop = memchr(at, '\n', (size_t)(end - at)))) {
    *stop = '\0';
    status = read_line(r, at, (size_t)(stop - at));
    at = stop + 1;
  }
  if (last && at < end && status == SN_OK) {
    *end = '\0'; /* fill() leaves room */
    status = read_line(r, at, (size_t)(end - at));
    at = end;
  }
  t->used = (size_t)(end - at);
  memmove(t->bytes, at, t->used);
  return status;
}

static sn_status read_lines(sn__reader *r, source *from) {
  text t = {0};
  bool more = true;
  sn_status status = SN_OK;
  while (more && status == SN_OK) {
    status = fill(r, from, &t, &more);
    if (status == SN_OK) status = take_lines(r, &t, !more);
  }
  free(t.bytes);
  if (status == SN_OK && r->line == 0) status = sn_fail(r->err, SN_BAD_INPUT, "%s: the file is empty", r->path);
  return status == SN_OK ? sn__read_events_end(r) : status;
}

/* ---- the whole ---- */

static sn_status hand_over(sn__reader *r) {
  sn_record *record = r->record;
  record->n_ops = r->ops.count;
  record->n_refs = r->refs.count;
  record->n_arguments = r->arguments.count;
  record->n_events = r->events.count;
  record->handles = r->handles.count;
  record->ops = sn__list_adopt(r, &r->ops, sizeof *record->ops);
  record->refs = sn__list_adopt(r, &r->refs, sizeof *record->refs);
  record->arguments = sn__list_adopt(r, &r->arguments, sizeof *record->arguments);
  record->events = sn__list_adopt(r, &r->events, sizeof *record->events);
  record->sizes = sn__list_adopt(r, &r->sizes, sizeof *record->sizes);
  record->works = sn__list_adopt(r, &r->works, sizeof *record->works);
  record->convs = sn__list_adopt(r, &r->convs, sizeof *record->convs);
  record->products = sn__list_adopt(r, &r->products, sizeof *record->products);
  return r->err->code;
}

/* Room for what usually stands in so many bytes of text; there may be more. */
static sn_status expect(sn__reader *r, size_t bytes) {
  enum { OP = 96, EVENT = 24, REF = 24 };
  if (sn__list_expect(r, &r->ops, bytes / OP, sizeof *r->record->ops) != SN_OK) return r->err->code;
  if (sn__list_expect(r, &r->events, bytes / EVENT, sizeof *r->record->events) != SN_OK) return r->err->code;
  return sn__list_expect(r, &r->refs, bytes / REF, sizeof *r->record->refs);
}

static sn_record *read_all(const char *path, source *from, sn_arena *arena, sn_err *err) {
  sn_record *record = sn_arena_alloc(arena, 1, sizeof *record);
  sn__reader r = {.path = path, .record = record, .arena = arena, .err = err};
  sn_status status = record ? expect(&r, from->text) : sn_fail_memory(err);
  if (status == SN_OK) status = read_lines(&r, from);
  if (status == SN_OK) status = hand_over(&r);
  free(r.ops.items);
  free(r.refs.items);
  free(r.arguments.items);
  free(r.events.items);
  free(r.sizes.items);
  free(r.works.items);
  free(r.convs.items);
  free(r.products.items);
  free(r.storages.items);
  free(r.handles.items);
  free(r.ghosts.items);
  free(r.call_stack.items);
  sn__quick_clear(&r.quick);
  return status == SN_OK ? record : NULL;
}

/* What is packed has become a sixth, by and large. Of a pipe nobody knows. */
static size_t text_of(const char *path, gzFile file) {
  enum { PACKED = 6 };
  struct stat about;
  if (stat(path, &about) != 0 || !S_ISREG(about.st_mode)) return 0;
  return (size_t)about.st_size * (gzdirect(file) ? 1 : PACKED);
}

sn_record *sn_record_load(const char *path, sn_arena *arena, sn_err *err) {
  errno = 0;
  gzFile file = gzopen(path, "rb");
  if (!file) {
    sn_fail(err, errno == ENOMEM || errno == 0 ? SN_NO_MEMORY : SN_BAD_FILE, "%s: %s", path,
            errno ? strerror(errno) : "out of host memory");
    return NULL;
  }
  sn_record *record = read_all(path, &(source){.file = file, .text = text_of(path, file)}, arena, err);
  gzclose(file);
  return record;
}

sn_record *sn_record_parse(const char *name, const char *bytes, size_t size, sn_arena *arena, sn_err *err) {
  return read_all(name, &(source){.bytes = bytes, .left = size, .text = size}, arena, err);
}
