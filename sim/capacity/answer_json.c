/* An answer as JSON, both ways: the contract of `answer` in docs/json.md, which is also how the store keeps it. Numbers
 * are written exactly: bytes as whole numbers, speeds so that reading them gives the same double. */
#include "sim/capacity/answer.h"

#include "base/json.h"
#include "base/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- writing ---- */

static bool put_raw(cJSON *o, const char *key, const char *text) {
  return cJSON_AddRawToObject(o, key, text) != NULL;
}

static bool put_count(cJSON *o, const char *key, uint64_t value) {
  char text[24];
  snprintf(text, sizeof text, "%" PRIu64, value);
  return put_raw(o, key, text);
}

static bool put_signed(cJSON *o, const char *key, int64_t value) {
  char text[24];
  snprintf(text, sizeof text, "%" PRId64, value);
  return put_raw(o, key, text);
}

static bool put_text(cJSON *o, const char *key, const char *text) {
  return cJSON_AddStringToObject(o, key, text) != NULL;
}

static cJSON *write_change(const sn_answer_change *c) {
  char real[SN_UNIT_TEXT];
  cJSON *o = cJSON_CreateObject();
  bool ok = put_text(o, "change", sn_answer_change_name(c->kind)) && put_text(o, "what", c->what) &&
            put_text(o, "options", c->options) && put_text(o, "strategy", c->strategy) &&
            put_text(o, "precision", c->precision) && put_text(o, "optimizer", c->optimizer) &&
            put_count(o, "batch", c->batch) && put_count(o, "accumulate", c->accumulate) &&
            put_count(o, "device_bytes", c->device_bytes) && put_count(o, "host_bytes", c->host_bytes) &&
            put_signed(o, "iteration_ns", c->iteration_ns) &&
            put_raw(o, "images_per_s", sn_print_real(c->images_per_second, real));
  cJSON *calls = ok ? cJSON_AddArrayToObject(o, "calls") : NULL;
  ok = calls != NULL;
  for (uint32_t i = 0; ok && i < c->n_calls; i++) ok = cJSON_AddItemToArray(calls, cJSON_CreateString(c->calls[i]));
  if (ok) return o;
  cJSON_Delete(o);
  return NULL;
}

static bool write_changes(cJSON *o, const sn_answer *a) {
  cJSON *changes = cJSON_AddArrayToObject(o, "changes");
  for (uint32_t i = 0; changes && i < a->n_changes; i++)
    if (!cJSON_AddItemToArray(changes, write_change(&a->changes[i]))) return false;
  return changes != NULL;
}

/* The groups, and the moment that they are of. */
static bool write_groups(cJSON *o, const sn_answer *a) {
  cJSON *where = cJSON_AddArrayToObject(o, "where");
  for (uint32_t i = 0; where && i < a->n_groups; i++) {
    cJSON *group = cJSON_CreateObject();
    bool ok = put_text(group, "group", a->groups[i].name) && put_count(group, "bytes", a->groups[i].bytes) &&
              put_text(group, "advice", a->groups[i].advice);
    if (!ok || !cJSON_AddItemToArray(where, group)) {
      cJSON_Delete(group);
      return false;
    }
  }
  return where && put_text(o, "where_moment", a->moment) && put_count(o, "where_step", a->step) &&
         put_count(o, "where_steps", a->n_steps);
}

static bool write_bands(cJSON *o, const sn_answer *a) {
  char within[SN_UNIT_TEXT];
  cJSON *bands = cJSON_AddObjectToObject(o, "bands");
  return bands && put_text(bands, "memory", a->memory_band) && put_text(bands, "time", a->time_band) &&
         put_raw(bands, "time_within", a->time_within > 0 ? sn_print_real(a->time_within, within) : "null");
}

char *sn_answer_write(const sn_answer *a, sn_err *err) {
  cJSON *o = cJSON_CreateObject();
  bool ok = put_text(o, "runtime", sn_runtime_name(a->runtime)) &&
            put_text(o, "verdict", sn_verdict_name(a->verdict)) && put_text(o, "strategy", a->strategy) &&
            put_count(o, "needed_bytes", a->needed_bytes) && put_count(o, "usable_bytes", a->usable_bytes) &&
            put_count(o, "context_bytes", a->context_bytes) && (!a->fp32_loss || put_raw(o, "fp32_loss", "true")) &&
            (!a->eager_attention || put_raw(o, "eager_attention", "true")) &&
            (!*a->note || put_text(o, "note", a->note)) && put_signed(o, "margin_bytes", sn_answer_margin(a)) &&
            (a->searched && !a->one_batch ? put_count(o, "largest_batch", a->largest_batch)
                                          : put_raw(o, "largest_batch", "null")) &&
            (!a->one_batch || put_raw(o, "one_batch", "true")) &&
            (a->largest_host_bytes == 0 || put_count(o, "largest_host_bytes", a->largest_host_bytes)) &&
            write_changes(o, a) && write_groups(o, a) && write_bands(o, a);
  char *text = ok ? cJSON_PrintUnformatted(o) : NULL;
  cJSON_Delete(o);
  if (!text) sn_fail_memory(err);
  return text;
}

/* ---- reading ---- */

typedef struct reader {
  sn_json *doc;
  sn_arena *arena;
  sn_err *err;
} reader;

#define MOST_BYTES (UINT64_C(1) << 53)

static uint64_t count(const reader *r, const cJSON *o, const char *key, uint64_t high) {
  uint64_t value = 0;
  if (r->err->code == SN_OK) sn_json_count(r->doc, o, key, 0, high, &value, r->err);
  return value;
}

static const char *copy(const reader *r, const char *text) {
  const char *kept = text ? sn_arena_text(r->arena, text) : NULL;
  if (text && !kept) sn_fail_memory(r->err);
  return kept;
}

static const char *text_of(const reader *r, const cJSON *o, const char *key) {
  return r->err->code == SN_OK ? copy(r, sn_json_text(r->doc, o, key, r->err)) : NULL;
}

/* The number of a word among the `n` that name() gives; n, with the error, where it is none of them. */
static int word(const reader *r, const cJSON *o, const char *key, int n, const char *(*name)(int)) {
  const char *text = text_of(r, o, key);
  for (int i = 0; text && i < n; i++)
    if (strcmp(text, name(i)) == 0) return i;
  if (r->err->code == SN_OK) sn_json_fail(r->doc, o, r->err, "\"%s\" is not a word that is known", key);
  return 0;
}

static const char *runtime_name(int i) {
  return sn_runtime_name((sn_runtime)i);
}

static const char *verdict_name(int i) {
  return sn_verdict_name((sn_verdict)i);
}

static const char *change_name(int i) {
  return sn_answer_change_name((sn_answer_change_kind)i);
}

static void read_calls(const reader *r, const cJSON *o, sn_answer_change *c) {
  const cJSON *calls = r->err->code == SN_OK ? sn_json_array(r->doc, o, "calls", r->err) : NULL, *call;
  const char **lines = calls ? sn_arena_alloc(r->arena, (size_t)cJSON_GetArraySize(calls) + 1, sizeof *lines) : NULL;
  if (calls && !lines) sn_fail_memory(r->err);
  if (!lines) return;
  cJSON_ArrayForEach(call, calls) {
    if (!cJSON_IsString(call)) sn_json_fail(r->doc, call, r->err, "a line of \"calls\" is not a text");
    if (r->err->code != SN_OK) return;
    lines[c->n_calls++] = copy(r, call->valuestring);
  }
  c->calls = lines;
}

static void read_change(const reader *r, const cJSON *o, sn_answer_change *c) {
  *c = (sn_answer_change){.kind = (sn_answer_change_kind)word(r, o, "change", SN_CHANGES, change_name),
                          .what = text_of(r, o, "what"),
                          .options = sn_json_has(o, "options") ? text_of(r, o, "options") : "",
                          .strategy = text_of(r, o, "strategy"),
                          .precision = text_of(r, o, "precision"),
                          .optimizer = text_of(r, o, "optimizer"),
                          .batch = (uint32_t)count(r, o, "batch", UINT32_MAX),
                          .accumulate = (uint32_t)count(r, o, "accumulate", UINT32_MAX),
                          .device_bytes = count(r, o, "device_bytes", MOST_BYTES),
                          .host_bytes = count(r, o, "host_bytes", MOST_BYTES),
                          .iteration_ns = (int64_t)count(r, o, "iteration_ns", MOST_BYTES)};
  if (r->err->code == SN_OK) sn_json_number(r->doc, o, "images_per_s", 0, 1e300, &c->images_per_second, r->err);
  read_calls(r, o, c);
}

static void read_changes(const reader *r, const cJSON *root, sn_answer *a) {
  const cJSON *list = r->err->code == SN_OK ? sn_json_array(r->doc, root, "changes", r->err) : NULL, *o;
  sn_answer_change *changes =
      list ? sn_arena_alloc(r->arena, (size_t)cJSON_GetArraySize(list) + 1, sizeof *changes) : NULL;
  if (list && !changes) sn_fail_memory(r->err);
  if (!changes) return;
  a->changes = changes;
  cJSON_ArrayForEach(o, list) {
    if (r->err->code != SN_OK) return;
    read_change(r, o, &changes[a->n_changes++]);
  }
}

static void read_groups(const reader *r, const cJSON *root, sn_answer *a) {
  const cJSON *list = r->err->code == SN_OK ? sn_json_array(r->doc, root, "where", r->err) : NULL, *o;
  sn_answer_group *groups =
      list ? sn_arena_alloc(r->arena, (size_t)cJSON_GetArraySize(list) + 1, sizeof *groups) : NULL;
  if (list && !groups) sn_fail_memory(r->err);
  if (!groups) return;
  a->groups = groups;
  cJSON_ArrayForEach(o, list) {
    if (r->err->code != SN_OK) return;
    groups[a->n_groups++] =
        (sn_answer_group){text_of(r, o, "group"), count(r, o, "bytes", MOST_BYTES), text_of(r, o, "advice")};
  }
  a->moment = text_of(r, root, "where_moment");
  a->step = (uint32_t)count(r, root, "where_step", UINT32_MAX);
  a->n_steps = (uint32_t)count(r, root, "where_steps", UINT32_MAX);
}

/* Answers that an older snsim stored have none. */
static void read_bands(const reader *r, const cJSON *root, sn_answer *a) {
  const cJSON *bands = sn_json_has(root, "bands") ? cJSON_GetObjectItemCaseSensitive(root, "bands") : NULL;
  a->memory_band = bands ? text_of(r, bands, "memory") : "";
  a->time_band = bands ? text_of(r, bands, "time") : "";
  const cJSON *within = bands ? cJSON_GetObjectItemCaseSensitive(bands, "time_within") : NULL;
  if (within && !cJSON_IsNull(within) && r->err->code == SN_OK)
    sn_json_number(r->doc, bands, "time_within", 0, 1e300, &a->time_within, r->err);
}

static void read_all(const reader *r, sn_answer *a) {
  const cJSON *root = sn_json_root(r->doc), *largest = cJSON_GetObjectItemCaseSensitive(root, "largest_batch");
  *a = (sn_answer){.runtime = (sn_runtime)word(r, root, "runtime", SN_RUNTIMES, runtime_name),
                   .verdict = (sn_verdict)word(r, root, "verdict", SN_VERDICTS, verdict_name),
                   .strategy = text_of(r, root, "strategy"),
                   .needed_bytes = count(r, root, "needed_bytes", MOST_BYTES),
                   .usable_bytes = count(r, root, "usable_bytes", MOST_BYTES),
                   .one_batch = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(root, "one_batch")),
                   .arena = r->arena};
  if (sn_json_has(root, "context_bytes")) a->context_bytes = count(r, root, "context_bytes", MOST_BYTES);
  a->note = sn_json_has(root, "note") ? text_of(r, root, "note") : "";
  a->fp32_loss = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(root, "fp32_loss"));
  a->eager_attention = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(root, "eager_attention"));
  if (sn_json_has(root, "largest_host_bytes")) a->largest_host_bytes = count(r, root, "largest_host_bytes", MOST_BYTES);
  bool looked_for = largest && !cJSON_IsNull(largest);
  a->searched = looked_for || a->one_batch;
  if (looked_for) a->largest_batch = (uint32_t)count(r, root, "largest_batch", UINT32_MAX);
  read_changes(r, root, a);
  read_groups(r, root, a);
  read_bands(r, root, a);
}

sn_answer *sn_answer_read(const char *text, sn_err *err) {
  reader r = {.doc = sn_json_parse("answer", text, strlen(text), err), .arena = sn_arena_new(), .err = err};
  sn_answer *answer = r.arena ? sn_arena_alloc(r.arena, 1, sizeof *answer) : NULL;
  if (!answer && err->code == SN_OK) sn_fail_memory(err);
  if (r.doc && answer) read_all(&r, answer);
  sn_json_free(r.doc);
  if (err->code == SN_OK) return answer;
  sn_arena_free(r.arena);
  return NULL;
}
