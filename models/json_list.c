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
  bool again;     /* the list has been written out before */
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

static bool run_out(sn__json_list *list) {
  sn_fail_memory(&list->mistakes->at);
  return false;
}

static bool add_layer(sn__json_list *list, sn__json_layer layer) {
  if (list->n_layers >= SN_MAX_LAYERS) {
    MISTAKE(list->mistakes, layer.item, "more than %u layers, repeats written out", SN_MAX_LAYERS);
    return false;
  }
  sn__json_layer *layers = grow(list->layers, list->n_layers, &list->room_layers, sizeof *layers);
  if (layers) list->layers = layers;
  if (!layers || !layer.name) return run_out(list);
  layers[list->n_layers++] = layer;
  return true;
}

static bool add_scope(sn__json_list *list, const char *suffix, uint32_t parent) {
  sn__json_scope *scopes = grow(list->scopes, list->n_scopes, &list->room_scopes, sizeof *scopes);
  if (scopes) list->scopes = scopes;
  if (!scopes || !suffix) return run_out(list);
  uint32_t before = list->n_layers ? list->n_layers - 1 : 0;
  scopes[list->n_scopes++] = (sn__json_scope){suffix, parent, before};
  return true;
}

/* Begins the next iteration of the repeat at hand. */
static bool iterate(sn__json_list *list, frame *f) {
  if (list->n_scopes >= SN_MAX_LAYERS) {
    MISTAKE(list->mistakes, f->first, "more than %u repeats of lists", SN_MAX_LAYERS);
    return false;
  }
  f->at = f->first;
  f->again = f->again || f->iteration > 0;
  f->iteration++;
  f->scope = list->n_scopes;
  const char *outer = list->scopes[f->outer].suffix;
  return add_scope(list, sn_arena_print(list->arena, ".%u%s", (unsigned)f->iteration, outer), f->outer);
}

/* The repeat that makes the network deeper: of those in the outer list the one marked "depth": true, or the only one.
 */
static void find_depth(sn__json_list *list, const cJSON *layers) {
  sn__mistakes *m = list->mistakes;
  uint32_t repeats = 0, marked = 0;
  const cJSON *only = NULL;
  for (const cJSON *item = layers->child; item; item = item->next) {
    bool mark = false;
    if (!sn_json_has(item, "repeat")) continue;
    if (sn_json_has(item, "depth") && sn_json_bool(m->doc, item, "depth", &mark, &m->at)) sn__mistakes_note(m, item);
    if (mark && marked++) MISTAKE(list->mistakes, item, "a second repeat with \"depth\": true; keep one");
    if (mark) list->depth_item = item;
    if (++repeats == 1) only = item;
  }
  if (!marked && repeats == 1) list->depth_item = only;
  if (!list->depth || list->depth_item) return;
  if (repeats == 0)
    MISTAKE(list->mistakes, layers, "no repeat among the layers, so there is no depth to choose");
  else
    MISTAKE(list->mistakes, only,
            "several repeats: say which one is the depth with \"depth\": true beside its \"repeat\"");
}

/* NULL: it cannot be written out. */
static const cJSON *read_repeat(sn__json_list *list, const stack *s, const cJSON *item, uint64_t *times) {
  static const char *const keys[] = {"repeat", "layers", "depth"};
  sn__mistakes *m = list->mistakes;
  uint64_t seen = 0;
  m->failed = false;
  for (const cJSON *key = item->child; key; key = key->next)
    if (sn_json_known(m->doc, key, keys, 3, &seen, &m->at)) sn__mistakes_note(m, item);
  if (sn_json_count(m->doc, item, "repeat", 1, SN_MAX_LAYERS, times, &m->at)) sn__mistakes_note(m, item);
  const cJSON *layers = sn_json_array(m->doc, item, "layers", &m->at);
  sn__mistakes_note(m, item);
  if (s->depth > 1 && sn_json_has(item, "depth"))
    MISTAKE(list->mistakes, item, "only a repeat of the outer list can be the depth");
  if (layers && !layers->child) MISTAKE(list->mistakes, layers, "a repeat without layers");
  if (s->depth > SN__MAX_REPEAT_DEPTH)
    MISTAKE(list->mistakes, item, "repeats are nested more than %d deep", SN__MAX_REPEAT_DEPTH);
  return m->failed ? NULL : layers;
}

static bool push_repeat(sn__json_list *list, stack *s, const cJSON *item) {
  const frame *above = &s->frames[s->depth - 1];
  frame f = {.outer = above->scope, .again = above->again};
  sn__mistakes_read(list->mistakes, above->again);
  const cJSON *layers = read_repeat(list, s, item, &f.times);
  if (!layers) list->incomplete = true;
  if (!layers) return sn__mistakes_go_on(list->mistakes);
  if (list->depth && item == list->depth_item) f.times = list->depth;
  f.first = layers->child;
  s->frames[s->depth++] = f;
  return iterate(list, &s->frames[s->depth - 1]);
}

/* A layer without a name that could be its own stands in the chain all the same. */
static bool read_layer(sn__json_list *list, const cJSON *item, const frame *f) {
  sn__mistakes *m = list->mistakes;
  const char *suffix = list->scopes[f->scope].suffix;
  sn__json_layer layer = {.item = item, .scope = f->scope, .again = f->again};
  sn__mistakes_read(m, f->again);
  m->failed = false;
  m->n = list->n_layers;
  m->layer = NULL;
  const char *name = NULL;
  if (!cJSON_IsObject(item))
    MISTAKE(list->mistakes, item, "a layer must be an object: {...}");
  else if (!(name = sn_json_text(m->doc, item, "name", &m->at)))
    sn__mistakes_note(m, item);
  else if (name[0] == '@' || strlen(name) > SN__MAX_NAME)
    MISTAKE(list->mistakes, item, "a layer's name has at most %d bytes and does not begin with @", SN__MAX_NAME);
  layer.name = m->failed ? NULL : sn_arena_print(list->arena, "%s%s", name, suffix);
  if (layer.name && !sn__is_good_name(layer.name))
    MISTAKE(list->mistakes, item, "a layer's name has 1 to %d bytes of UTF-8, no blanks and no control characters",
            SN__MAX_NAME);
  m->n = 0;
  layer.bad = m->failed;
  if (layer.bad) layer.name = sn_arena_print(list->arena, "@%u", (unsigned)list->n_layers);
  return sn__mistakes_go_on(m) && add_layer(list, layer);
}

/* One layer, one repeat begun, or one list ended. */
static bool step(sn__json_list *list, stack *s) {
  frame *f = &s->frames[s->depth - 1];
  const cJSON *item = f->at;
  if (!item) {
    if (f->iteration < f->times) return iterate(list, f);
    s->depth--;
    return true;
  }
  f->at = item->next;
  if (sn_json_has(item, "repeat")) return push_repeat(list, s, item);
  return read_layer(list, item, f);
}

static bool sort_names(sn__json_list *list) {
  if (sn__names_init(&list->names, list->n_layers, &list->mistakes->at)) return false;
  for (uint32_t i = 0; i < list->n_layers; i++) sn__names_add(&list->names, list->layers[i].name, i);
  sn__names_sort(&list->names);
  return true;
}

bool sn__json_list_read(sn__json_list *list) {
  sn__mistakes *m = list->mistakes;
  const cJSON *layers = sn_json_array(m->doc, sn_json_root(m->doc), "layers", &m->at);
  sn__mistakes_note(m, NULL);
  if (!layers) return false;
  list->arena = sn_arena_new();
  if (!list->arena) return run_out(list);
  stack s = {.frames = {{.first = layers->child, .at = layers->child}}, .depth = 1};
  find_depth(list, layers);
  const sn__json_layer data = {.name = "data"};
  if (!add_scope(list, "", 0) || !add_layer(list, data)) return false;
  while (s.depth > 0)
    if (!step(list, &s)) return false;
  return sort_names(list);
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
  out[0] = '\0';
  if (!sn__mistakes_seen(list->mistakes) || strlen(name) > SN__MAX_NAME) return;
  const char *names[LOOKED_AT];
  uint32_t count = list->n_layers < LOOKED_AT ? list->n_layers : LOOKED_AT;
  for (uint32_t i = 0; i < count; i++) names[i] = list->layers[i].name;
  sn_text_suggest(name, names, count, out, room);
}
