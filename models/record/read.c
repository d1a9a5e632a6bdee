/* Reading recordings: lines, packed by gzip or not, the head and the tables; see record.h. Events are in read_events.c.
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
#include <zlib.h>

enum { VERSION = 1, CHUNK = 1 << 18 };
#define NO_HEAD "not a recording: its first line is {\"snsim_recording\": 1, ..} (docs/record.md)"
static const size_t longest_line = SN_JSON_MAX_BYTES;

/* ---- for both files ---- */

void sn__read_place(const sn__reader *r) {
  sn_err_prefix(r->err, "%s:%u", r->path, r->line);
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

/* Item i of a row; NULL where it has none, which is no number and no text. */
static const cJSON *item_of(const cJSON *row, int i) {
  return cJSON_IsArray(row) ? cJSON_GetArrayItem(row, i) : NULL;
}

/* ---- head ---- */

static const char *const head_keys[] = {"snsim_recording", "torch",   "name",    "batches", "sm",
                                        "iterations",      "assumed", "compiled"};

/* Made safe for a terminal. */
static sn_status read_text(sn__reader *r, const cJSON *item, const char *what, const char **out) {
  if (!cJSON_IsString(item)) return sn__read_fail(r, "%s: a text was expected", what);
  char *text = sn_arena_text(r->arena, item->valuestring);
  *out = text ? sn_utf8_clean(text) : NULL;
  return *out ? SN_OK : sn_fail_memory(r->err);
}

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
    const cJSON *what = item_of(row, 0), *line = item_of(row, 1);
    if (!cJSON_IsString(what) || !cJSON_IsString(line))
      return sn__read_fail(r, "assumed: rows of two texts were expected");
    if (record->n_assumed++ > 0) continue;
    if (read_text(r, what, "assumed", &record->assumed) != SN_OK) return r->err->code;
    if (read_text(r, line, "assumed", &record->assumed_at) != SN_OK) return r->err->code;
  }
  return SN_OK;
}

static sn_status read_head_item(sn__reader *r, const cJSON *item) {
  sn_record *record = r->record;
  uint64_t ignored;
  const char *key = item->string, *torch;
  char hint[100];
  if (strcmp(key, "snsim_recording") == 0) return SN_OK;
  if (strcmp(key, "torch") == 0) return read_text(r, item, key, &torch);
  if (strcmp(key, "name") == 0) return read_text(r, item, key, &record->name);
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

/* ---- tables ---- */

/* "convolution" of "aten.convolution.default", of letters, digits and '_'. */
static const char *short_name(sn_arena *arena, const char *name) {
  const char *dot = strchr(name, '.');
  char *text = sn_arena_text(arena, dot ? dot + 1 : name);
  if (!text) return NULL;
  text[strcspn(text, ".")] = '\0';
  for (char *c = text; *c; c++)
    if (!isalnum((unsigned char)*c)) *c = '_';
  return text;
}

static sn_status add_kernel(sn__reader *r, const cJSON *row, void *place) {
  sn_record_kernel *kernel = place;
  uint64_t flags;
  if (read_text(r, item_of(row, 0), "kernels", &kernel->name) != SN_OK ||
      sn__read_count(r, item_of(row, 1), "kernels", 0, 1023, &flags) != SN_OK)
    return r->err->code;
  kernel->flags = (uint32_t)flags;
  kernel->called = short_name(r->arena, kernel->name);
  return kernel->called ? SN_OK : sn_fail_memory(r->err);
}

static sn_status add_module(sn__reader *r, const cJSON *row, void *place) {
  sn_record_module *module = place;
  if (read_text(r, item_of(row, 0), "modules", &module->path) != SN_OK) return r->err->code;
  return read_text(r, item_of(row, 1), "modules", &module->class_name);
}

/* A call's parent stands before it. */
static sn_status add_call(sn__reader *r, const cJSON *row, void *place) {
  sn_record_call *call = place;
  uint32_t number = r->record->n_calls;
  if (sn__read_id(r, item_of(row, 0), "calls: parent", number > 0 ? number : 1, &call->parent) != SN_OK)
    return r->err->code;
  return sn__read_id(r, item_of(row, 1), "calls: module", r->record->n_modules, &call->module);
}

static sn_status add_storage(sn__reader *r, const cJSON *row, void *place) {
  static const char *const roles[] = {"parameter", "buffer", "given", "state", "value"};
  sn_record_storage *storage = place;
  sn_record_size a, b;
  if (sn__read_size(r, item_of(row, 0), "storages: a", &a) != SN_OK ||
      sn__read_size(r, item_of(row, 1), "storages: b", &b) != SN_OK)
    return r->err->code;
  storage->bytes = (sn_record_size){a.a, b.a};
  if (!cJSON_IsString(item_of(row, 3))) return sn__read_fail(r, "storages: a device was expected, \"cuda\"");
  storage->on_gpu = strncmp(item_of(row, 3)->valuestring, "cuda", 4) == 0;
  for (size_t i = 0; i < sizeof roles / sizeof *roles && cJSON_IsString(item_of(row, 4)); i++) {
    if (strcmp(item_of(row, 4)->valuestring, roles[i]) != 0) continue;
    storage->role = (uint8_t)i;
    return sn__list_add(r, &r->storages, sizeof(sn__alive)) ? SN_OK : r->err->code;
  }
  return sn__read_fail(r, "storages: a role is one of parameter, buffer, given, state, value");
}

static sn_status add_parameter(sn__reader *r, const cJSON *row, void *place) {
  sn_record_parameter *parameter = place;
  uint64_t offset;
  if (read_text(r, item_of(row, 0), "parameters", &parameter->name) != SN_OK ||
      sn__read_id(r, item_of(row, 1), "parameters: storage", r->record->n_storages, &parameter->storage) != SN_OK ||
      sn__read_count(r, item_of(row, 2), "parameters: offset", 0, SN_MAX_NET_BYTES, &offset) != SN_OK ||
      sn__read_count(r, item_of(row, 3), "parameters: elements", 0, SN_MAX_NET_BYTES, &parameter->elements) != SN_OK)
    return r->err->code;
  parameter->trained =
      cJSON_IsTrue(item_of(row, 4)) || (cJSON_IsNumber(item_of(row, 4)) && item_of(row, 4)->valuedouble != 0);
  return SN_OK;
}

/* ---- lines ---- */

#define TABLE(name, row)                                                                                               \
  { #name, offsetof(sn_record, name), offsetof(sn_record, n_##name), sizeof(*((sn_record *)0)->name), row }

static const struct {
  const char *name;
  size_t rows, count, size;
  sn_status (*add)(sn__reader *r, const cJSON *row, void *place);
} tables[] = {TABLE(kernels, add_kernel), TABLE(modules, add_module), TABLE(calls, add_call),
              TABLE(storages, add_storage), TABLE(parameters, add_parameter)};

/* Each table is there once, ahead of the events. */
static sn_status read_table(sn__reader *r, const cJSON *table) {
  size_t t = 0;
  while (t < sizeof tables / sizeof *tables && strcmp(tables[t].name, table->string) != 0) t++;
  if (t == sizeof tables / sizeof *tables) return sn__read_fail(r, "unknown table \"%.40s\"", table->string);
  uint32_t *count = (uint32_t *)(void *)((char *)r->record + tables[t].count);
  void **rows = (void **)(void *)((char *)r->record + tables[t].rows);
  if (*rows) return sn__read_fail(r, "the table \"%s\" is there twice", table->string);
  if (r->events.count > 0) return sn__read_fail(r, "the table \"%s\" stands behind events", table->string);
  if (!cJSON_IsArray(table)) return sn__read_fail(r, "%s: a list was expected", table->string);
  uint32_t n = (uint32_t)cJSON_GetArraySize(table);
  if (n > SN_RECORD_MOST_EVENTS) return sn__read_fail(r, "%s: more than %u rows", table->string, SN_RECORD_MOST_EVENTS);
  char *place = sn_arena_alloc(r->arena, n, tables[t].size);
  *rows = place;
  if (!place) return sn_fail_memory(r->err);
  for (const cJSON *row = table->child; row; row = row->next, place += tables[t].size, ++*count)
    if (tables[t].add(r, row, place) != SN_OK) return r->err->code;
  return SN_OK;
}

static sn_status read_object(sn__reader *r, const cJSON *object) {
  if (r->line == 1) return read_head(r, object);
  for (const cJSON *item = object->child; item; item = item->next)
    if (read_table(r, item) != SN_OK) return r->err->code;
  return SN_OK;
}

static sn_status read_json(sn__reader *r, const cJSON *json) {
  if (!json && r->line > 1) return sn__read_fail(r, "this line is no JSON: the file is damaged or cut off");
  if (!json) return sn__read_fail(r, "not a recording: its first line is no JSON (docs/record.md)");
  if (cJSON_IsObject(json)) return read_object(r, json);
  if (r->line > 1) return sn__read_event(r, json);
  return sn__read_fail(r, NO_HEAD);
}

static sn_status read_line(sn__reader *r, char *line, size_t length) {
  r->line++;
  const cJSON *event = r->line > 1 ? sn__quick_parse(&r->quick, line, length) : NULL;
  if (event) return sn__read_event(r, event);
  cJSON *json = cJSON_ParseWithOpts(line, NULL, 1);
  sn_status status = read_json(r, json);
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
  if (status == SN_OK && r->line == 0) status = sn__read_fail(r, "the file is empty");
  return status == SN_OK ? sn__read_events_end(r) : status;
}

/* ---- the whole ---- */

/* A list becomes the arena's, which frees it. */
static bool adopt(sn_arena *arena, sn__list *list) {
  if (list->items && !sn_arena_adopt(arena, list->items)) return false;
  list->items = NULL;
  return true;
}

static sn_status hand_over(sn__reader *r) {
  sn_record *record = r->record;
  record->n_ops = r->ops.count;
  record->n_refs = r->refs.count;
  record->n_arguments = r->arguments.count;
  record->n_events = r->events.count;
  record->handles = r->handles.count;
  record->ops = r->ops.items;
  record->refs = r->refs.items;
  record->arguments = r->arguments.items;
  record->events = r->events.items;
  record->convs = r->convs.items;
  bool good = adopt(r->arena, &r->ops) && adopt(r->arena, &r->refs) && adopt(r->arena, &r->arguments) &&
              adopt(r->arena, &r->events) && adopt(r->arena, &r->convs);
  return good ? SN_OK : sn_fail_memory(r->err);
}

static sn_record *read_all(const char *path, source *from, sn_arena *arena, sn_err *err) {
  sn_record *record = sn_arena_alloc(arena, 1, sizeof *record);
  sn__reader r = {.path = path, .record = record, .arena = arena, .err = err};
  sn_status status = record ? read_lines(&r, from) : sn_fail_memory(err);
  if (status == SN_OK) status = hand_over(&r);
  free(r.ops.items);
  free(r.refs.items);
  free(r.arguments.items);
  free(r.events.items);
  free(r.convs.items);
  free(r.storages.items);
  free(r.handles.items);
  free(r.ghosts.items);
  free(r.call_stack.items);
  sn__quick_clear(&r.quick);
  return status == SN_OK ? record : NULL;
}

sn_record *sn_record_load(const char *path, sn_arena *arena, sn_err *err) {
  errno = 0;
  gzFile file = gzopen(path, "rb");
  if (!file) {
    sn_fail(err, errno == ENOMEM || errno == 0 ? SN_NO_MEMORY : SN_BAD_FILE, "%s: %s", path,
            errno ? strerror(errno) : "out of host memory");
    return NULL;
  }
  sn_record *record = read_all(path, &(source){.file = file}, arena, err);
  gzclose(file);
  return record;
}

sn_record *sn_record_parse(const char *name, const char *bytes, size_t size, sn_arena *arena, sn_err *err) {
  return read_all(name, &(source){.bytes = bytes, .left = size}, arena, err);
}
