/* Writing out the repeats of a JSON network; see the header. An explicit stack of at most SN__MAX_REPEAT_DEPTH + 1
 * lists, one visit for each layer written out. Every iteration is a scope: a parent and a suffix for names. */
#include "models/json_list.h"

#include "base/text.h"
#include "models/build_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A list of layers being read. */
typedef struct frame {
  const cJSON *first, *at;
  uint64_t iteration, times;
  uint32_t outer; /* the scope the repeat stands in */
  uint32_t scope; /* of the iteration at hand */
} frame;

typedef struct stack {
  frame frames[SN__MAX_REPEAT_DEPTH + 1];
  uint32_t depth;
} stack;

void sn__json_list_free(sn__json_list *list) {
  sn_arena_free(list->arena);
  free(list->layers);
  free(list->scopes);
  sn__names_free(&list->names);
  *list = (sn__json_list){0};
}

/* Room for one more item of `size` bytes behind the first `count`. */
static void *grow(void *items, uint32_t count, uint32_t *room, size_t size) {
  if (count < *room) return items;
  uint32_t wider = *room ? 2 * *room : 64;
  void *moved = realloc(items, wider * size);
  if (moved) *room = wider;
  return moved;
}

static sn_status add_layer(sn__json_list *list, const cJSON *item, const char *name, uint32_t scope, sn_err *err) {
  if (list->n_layers >= SN_MAX_LAYERS)
    return sn_json_fail(list->doc, item, err, "more than %u layers, repeats written out", SN_MAX_LAYERS);
  sn__json_layer *layers = grow(list->layers, list->n_layers, &list->room_layers, sizeof *layers);
  if (layers) list->layers = layers;
  char *full = sn_arena_print(list->arena, "%s%s", name, list->scopes[scope].suffix);
  if (!layers || !full) return sn_fail_memory(err);
  layers[list->n_layers++] = (sn__json_layer){item, full, scope};
  return SN_OK;
}

static sn_status add_scope(sn__json_list *list, const char *suffix, uint32_t parent, sn_err *err) {
  sn__json_scope *scopes = grow(list->scopes, list->n_scopes, &list->room_scopes, sizeof *scopes);
  if (scopes) list->scopes = scopes;
  if (!scopes || !suffix) return sn_fail_memory(err);
  uint32_t before = list->n_layers ? list->n_layers - 1 : 0;
  scopes[list->n_scopes++] = (sn__json_scope){suffix, parent, before};
  return SN_OK;
}

/* Begins the next iteration of the repeat at hand. */
static sn_status iterate(sn__json_list *list, frame *f, sn_err *err) {
  if (list->n_scopes >= SN_MAX_LAYERS)
    return sn_json_fail(list->doc, f->first, err, "more than %u repeats of lists", SN_MAX_LAYERS);
  f->at = f->first;
  f->iteration++;
  f->scope = list->n_scopes;
  const char *outer = list->scopes[f->outer].suffix;
  char *suffix = sn_arena_print(list->arena, ".%u%s", (unsigned)f->iteration, outer);
  return add_scope(list, suffix, f->outer, err);
}

/* The repeat that makes the network deeper: of those in the outer list the one marked "depth": true, or the only one.
 */
static sn_status find_depth(sn__json_list *list, const cJSON *layers, sn_err *err) {
  uint32_t repeats = 0, marked = 0;
  const cJSON *only = NULL;
  for (const cJSON *item = layers->child; item; item = item->next) {
    bool mark = false;
    if (!sn_json_has(item, "repeat")) continue;
    if (sn_json_has(item, "depth") && sn_json_bool(list->doc, item, "depth", &mark, err)) return err->code;
    if (mark && marked++) return sn_json_fail(list->doc, item, err, "a second repeat with \"depth\": true; keep one");
    if (mark) list->depth_item = item;
    if (++repeats == 1) only = item;
  }
  if (!marked && repeats == 1) list->depth_item = only;
  if (!list->depth || list->depth_item) return SN_OK;
  if (repeats == 0)
    return sn_json_fail(list->doc, layers, err, "no repeat among the layers, so there is no depth to choose");
  return sn_json_fail(list->doc, only, err,
                      "several repeats: say which one is the depth with \"depth\": true beside its \"repeat\"");
}

static sn_status push_repeat(sn__json_list *list, stack *s, const cJSON *item, sn_err *err) {
  static const char *const keys[] = {"repeat", "layers", "depth"};
  const sn_json *doc = list->doc;
  frame f = {.outer = s->frames[s->depth - 1].scope};
  if (s->depth > 1 && sn_json_has(item, "depth"))
    return sn_json_fail(doc, item, err, "only a repeat of the outer list can be the depth");
  if (sn_json_only(doc, item, keys, 3, err) || sn_json_count(doc, item, "repeat", 1, SN_MAX_LAYERS, &f.times, err))
    return err->code;
  if (list->depth && item == list->depth_item) f.times = list->depth;
  const cJSON *layers = sn_json_array(doc, item, "layers", err);
  if (!layers) return err->code;
  if (!layers->child) return sn_json_fail(doc, layers, err, "a repeat without layers");
  if (s->depth > SN__MAX_REPEAT_DEPTH)
    return sn_json_fail(doc, item, err, "repeats are nested more than %d deep", SN__MAX_REPEAT_DEPTH);
  f.first = layers->child;
  if (iterate(list, &f, err)) return err->code;
  s->frames[s->depth++] = f;
  return SN_OK;
}

static sn_status read_layer(sn__json_list *list, const cJSON *item, uint32_t scope, sn__json_check *check,
                            sn_err *err) {
  if (check(list->doc, item, err)) return err->code;
  const char *name = sn_json_text(list->doc, item, "name", err);
  if (!name) return err->code;
  if (name[0] == '@' || strlen(name) > SN__MAX_NAME)
    return sn_json_fail(list->doc, item, err, "a layer's name has at most %d bytes and does not begin with @",
                        SN__MAX_NAME);
  return add_layer(list, item, name, scope, err);
}

/* One layer, one repeat begun, or one list ended. */
static sn_status step(sn__json_list *list, stack *s, sn__json_check *check, sn_err *err) {
  frame *f = &s->frames[s->depth - 1];
  const cJSON *item = f->at;
  if (!item) {
    if (f->iteration < f->times) return iterate(list, f, err);
    s->depth--;
    return SN_OK;
  }
  f->at = item->next;
  if (sn_json_has(item, "repeat")) return push_repeat(list, s, item, err);
  return read_layer(list, item, f->scope, check, err);
}

static sn_status sort_names(sn__json_list *list, sn_err *err) {
  if (sn__names_init(&list->names, list->n_layers, err)) return err->code;
  for (uint32_t i = 0; i < list->n_layers; i++) sn__names_add(&list->names, list->layers[i].name, i);
  sn__names_sort(&list->names);
  return SN_OK;
}

sn_status sn__json_list_read(sn__json_list *list, const sn_json *doc, sn__json_check *check, sn_err *err) {
  const cJSON *layers = sn_json_array(doc, sn_json_root(doc), "layers", err);
  if (!layers) return err->code;
  list->doc = doc;
  list->arena = sn_arena_new();
  if (!list->arena) return sn_fail_memory(err);
  stack s = {.frames = {{.first = layers->child, .at = layers->child}}, .depth = 1};
  if (find_depth(list, layers, err) || add_scope(list, "", 0, err) || add_layer(list, NULL, "data", 0, err))
    return err->code;
  while (s.depth > 0)
    if (step(list, &s, check, err)) return err->code;
  return sort_names(list, err);
}

uint32_t sn__json_list_find(const sn__json_list *list, uint32_t at, const char *name) {
  uint32_t scope = list->layers[at].scope;
  if (strcmp(name, "@in") == 0) return list->scopes[scope].in;
  if (strlen(name) > (size_t)2 * SN__MAX_NAME) return SN_NONE;
  for (;; scope = list->scopes[scope].parent) {
    char full[4 * SN__MAX_NAME];
    snprintf(full, sizeof full, "%s%s", name, list->scopes[scope].suffix);
    uint32_t found = sn__names_find(&list->names, full);
    if (found != SN_NONE || scope == 0) return found;
  }
}

void sn__json_list_suggest(const sn__json_list *list, const char *name, char *out, size_t room) {
  enum { LOOKED_AT = 4000 };
  const char *names[LOOKED_AT];
  uint32_t count = list->n_layers < LOOKED_AT ? list->n_layers : LOOKED_AT;
  for (uint32_t i = 0; i < count; i++) names[i] = list->layers[i].name;
  sn_text_suggest(name, names, count, out, room);
}
