/* The tables of a recording, row by row, so that a long one needs no more than its rows; see read_internal.h. */
#include "models/record/read_internal.h"

#include "models/net/net.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- rows ---- */

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
  if (sn__read_text(r, sn__read_item(row, 0), "kernels", &kernel->name) != SN_OK ||
      sn__read_count(r, sn__read_item(row, 1), "kernels", 0, 1023, &flags) != SN_OK)
    return r->err->code;
  kernel->flags = (uint32_t)flags;
  kernel->called = short_name(r->arena, kernel->name);
  if (!kernel->called) return sn_fail_memory(r->err);
  kernel->traffic = sn_record_traffic_of(kernel->called);
  return SN_OK;
}

static sn_status add_module(sn__reader *r, const cJSON *row, void *place) {
  sn_record_module *module = place;
  if (sn__read_text(r, sn__read_item(row, 0), "modules", &module->path) != SN_OK) return r->err->code;
  return sn__read_text(r, sn__read_item(row, 1), "modules", &module->class_name);
}

/* A call's parent stands before it. */
static sn_status add_call(sn__reader *r, const cJSON *row, void *place) {
  sn_record_call *call = place;
  uint32_t number = r->record->n_calls;
  if (sn__read_id(r, sn__read_item(row, 0), "calls: parent", number > 0 ? number : 1, &call->parent) != SN_OK)
    return r->err->code;
  return sn__read_id(r, sn__read_item(row, 1), "calls: module", r->record->n_modules, &call->module);
}

static sn_status read_bytes(sn__reader *r, const cJSON *row, sn_record_storage *storage) {
  sn_record_size a, b;
  uint32_t size;
  if (sn__read_size(r, sn__read_item(row, 0), "storages: a", &a) != SN_OK ||
      sn__read_size(r, sn__read_item(row, 1), "storages: b", &b) != SN_OK)
    return r->err->code;
  const sn_record_size bytes = {a.a, b.a};
  if (sn__list_share(r, &r->sizes, &r->recent_sizes, &bytes, sizeof bytes, &size) != SN_OK) return r->err->code;
  storage->size = size & 0xffffffu;
  return SN_OK;
}

static sn_status add_storage(sn__reader *r, const cJSON *row, void *place) {
  static const char *const roles[] = {"parameter", "buffer", "given", "state", "value"};
  sn_record_storage *storage = place;
  if (read_bytes(r, row, storage) != SN_OK) return r->err->code;
  if (!cJSON_IsString(sn__read_item(row, 3))) return sn__read_fail(r, "storages: a device was expected, \"cuda\"");
  storage->on_gpu = strncmp(sn__read_item(row, 3)->valuestring, "cuda", 4) == 0;
  for (size_t i = 0; i < sizeof roles / sizeof *roles && cJSON_IsString(sn__read_item(row, 4)); i++) {
    if (strcmp(sn__read_item(row, 4)->valuestring, roles[i]) != 0) continue;
    storage->role = i & 7u;
    return SN_OK;
  }
  return sn__read_fail(r, "storages: a role is one of parameter, buffer, given, state, value");
}

/* A list of storages. */
static sn_status read_storages(sn__reader *r, const cJSON *list, const char *what, const uint32_t **out, uint32_t *n) {
  uint32_t count = 0;
  if (!cJSON_IsArray(list)) return sn__read_fail(r, "%s: a list was expected", what);
  for (const cJSON *item = list->child; item; item = item->next) count++;
  uint32_t *storages = sn_arena_alloc(r->arena, count, sizeof *storages);
  if (!storages) return sn_fail_memory(r->err);
  *out = storages;
  for (const cJSON *item = list->child; item; item = item->next, ++*n)
    if (sn__read_id(r, item, what, r->record->n_storages, &storages[*n]) != SN_OK) return r->err->code;
  return SN_OK;
}

/* What older files end without. */
static sn_status read_shape(sn__reader *r, const cJSON *row, sn_record_parameter *p) {
  if (!sn__read_item(row, 5)) return SN_OK;
  if (sn__read_count(r, sn__read_item(row, 5), "parameters: rows", 1, SN_MAX_NET_BYTES, &p->rows) != SN_OK)
    return r->err->code;
  if (p->elements % p->rows != 0)
    return sn__read_fail(r, "parameters: %" PRIu64 " elements are no %" PRIu64 " rows", p->elements, p->rows);
  if (read_storages(r, sn__read_item(row, 6), "parameters: gradients", &p->gradients, &p->n_gradients) != SN_OK)
    return r->err->code;
  return read_storages(r, sn__read_item(row, 7), "parameters: states", &p->states, &p->n_states);
}

static sn_status add_parameter(sn__reader *r, const cJSON *row, void *place) {
  sn_record_parameter *parameter = place;
  uint64_t offset;
  if (sn__read_text(r, sn__read_item(row, 0), "parameters", &parameter->name) != SN_OK ||
      sn__read_id(r, sn__read_item(row, 1), "parameters: storage", r->record->n_storages, &parameter->storage) !=
          SN_OK ||
      sn__read_count(r, sn__read_item(row, 2), "parameters: offset", 0, SN_MAX_NET_BYTES, &offset) != SN_OK ||
      sn__read_count(r, sn__read_item(row, 3), "parameters: elements", 0, SN_MAX_NET_BYTES, &parameter->elements) !=
          SN_OK)
    return r->err->code;
  parameter->trained = cJSON_IsTrue(sn__read_item(row, 4)) ||
                       (cJSON_IsNumber(sn__read_item(row, 4)) && sn__read_item(row, 4)->valuedouble != 0);
  return read_shape(r, row, parameter);
}

/* ---- tables ---- */

#define TABLE(name, row)                                                                                               \
  { #name, offsetof(sn_record, name), offsetof(sn_record, n_##name), sizeof(*((sn_record *)0)->name), row }

static const struct {
  const char *name;
  size_t rows, count, size;
  sn_status (*add)(sn__reader *r, const cJSON *row, void *place);
} tables[] = {TABLE(kernels, add_kernel), TABLE(modules, add_module), TABLE(calls, add_call),
              TABLE(storages, add_storage), TABLE(parameters, add_parameter)};

/* Whether `c` is next, behind spaces; then it is taken. */
static bool take(char **at, char c) {
  *at += strspn(*at, " \t\r");
  if (**at != c) return false;
  ++*at;
  return true;
}

static sn_status take_row(sn__reader *r, char **at, uint32_t table, void *place) {
  *at += strspn(*at, " \t\r");
  const cJSON *row = sn__quick_row(&r->quick, at);
  if (row) return tables[table].add(r, row, place);
  const char *end = *at;
  cJSON *json = cJSON_ParseWithOpts(*at, &end, 0);
  if (!json) return sn__read_fail(r, SN__NO_JSON);
  *at += end - *at;
  sn_status status = tables[table].add(r, json, place);
  cJSON_Delete(json);
  return status;
}

static sn_status take_rows(sn__reader *r, char **at, uint32_t table, sn__list *rows) {
  uint32_t *count = (uint32_t *)(void *)((char *)r->record + tables[table].count);
  if (take(at, ']')) return SN_OK;
  do {
    if (*count == SN_RECORD_MOST_EVENTS)
      return sn__read_fail(r, "%s: more than %u rows", tables[table].name, SN_RECORD_MOST_EVENTS);
    void *place = sn__list_add(r, rows, tables[table].size);
    if (!place || take_row(r, at, table, place) != SN_OK) return r->err->code;
    ++*count;
  } while (take(at, ','));
  return take(at, ']') ? SN_OK : sn__read_fail(r, SN__NO_JSON);
}

/* A table's number by its name; each is there once, ahead of the events. */
static sn_status table_of(sn__reader *r, const char *name, uint32_t *table) {
  const uint32_t n = sizeof tables / sizeof *tables;
  for (*table = 0; *table < n && strcmp(tables[*table].name, name) != 0;) ++*table;
  if (*table == n) return sn__read_fail(r, "unknown table \"%.40s\"", name);
  if (r->tables >> *table & 1) return sn__read_fail(r, "the table \"%s\" is there twice", name);
  if (r->storages.items) return sn__read_fail(r, "the table \"%s\" stands behind events", name);
  r->tables |= 1u << *table;
  return SN_OK;
}

static sn_status take_table(sn__reader *r, char **at) {
  uint32_t table;
  if (!take(at, '"')) return sn__read_fail(r, SN__NO_JSON);
  const char *name = *at;
  *at += strcspn(*at, "\"");
  if (**at == '\0') return sn__read_fail(r, SN__NO_JSON);
  *(*at)++ = '\0';
  if (!take(at, ':')) return sn__read_fail(r, SN__NO_JSON);
  if (table_of(r, name, &table) != SN_OK) return r->err->code;
  if (!take(at, '[')) return sn__read_fail(r, "%s: a list was expected", name);
  enum { ROW = 16 }; /* few are shorter */
  sn__list rows = {0};
  if (sn__list_expect(r, &rows, strlen(*at) / ROW, tables[table].size) != SN_OK) return r->err->code;
  void *kept = take_rows(r, at, table, &rows) == SN_OK ? sn__list_adopt(r, &rows, tables[table].size) : NULL;
  free(rows.items);
  *(void **)(void *)((char *)r->record + tables[table].rows) = kept;
  return r->err->code;
}

sn_status sn__read_tables(sn__reader *r, char *line, size_t length) {
  char *at = line + 1;
  bool none = take(&at, '}');
  while (!none && take_table(r, &at) == SN_OK && take(&at, ',')) continue;
  if (r->err->code != SN_OK) return r->err->code;
  if (!none && !take(&at, '}')) return sn__read_fail(r, SN__NO_JSON);
  at += strspn(at, " \t\r");
  return at == line + length ? SN_OK : sn__read_fail(r, SN__NO_JSON);
}
