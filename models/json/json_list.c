/* Writing out the repeats of a JSON network; see the header. An explicit stack of at most SN__MAX_REPEAT_DEPTH + 1
 * lists, one visit for each layer written out. Every iteration is a scope: a parent and a suffix for names. */
#include "models/json/json_list.h"

#include "base/text.h"
#include "models/build/build_internal.h"

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
  bool once;      /* not repeated, so that names get no number */
  const cJSON *use, *block;
} frame;

typedef struct stack {
  frame frames[SN__MAX_REPEAT_DEPTH + 1];
  uint32_t depth;
} stack;

void sn__json_list_free(sn__json_list *list) {
  sn_arena_free(list->arena);
  free(list->layers);
  free(list->scopes);
  free(list->uses);
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

/* Where no layer stands between the beginnings of two scopes, the same flows into both. */
static bool add_scope(sn__json_list *list, const char *suffix, uint32_t parent, const cJSON *use) {
  sn__json_scope *scopes = grow(list->scopes, list->n_scopes, &list->room_scopes, sizeof *scopes);
  if (scopes) list->scopes = scopes;
  if (!scopes || !suffix) return run_out(list);
  uint32_t before = list->n_layers ? list->n_layers - 1 : 0, given = SN_NONE;
  if (list->n_scopes > 0 && scopes[parent].in == before) given = scopes[parent].given;
  if (use && sn_json_has(use, "input")) given = list->n_scopes;
  scopes[list->n_scopes++] = (sn__json_scope){suffix, parent, before, given, use};
  return true;
}

static bool has_room(sn__json_list *list, const cJSON *item) {
  if (list->n_scopes < SN_MAX_LAYERS) return true;
  MISTAKE(list->mistakes, item, "more than %u repeats of lists", SN_MAX_LAYERS);
  return false;
}

/* Begins the next iteration of the repeat at hand; a block that is not repeated stands in its use alone. */
static bool iterate(sn__json_list *list, frame *f) {
  if (!has_room(list, f->first)) return false;
  f->at = f->first;
  f->again = f->again || f->iteration > 0;
  f->iteration++;
  f->scope = f->outer;
  if (f->once) return true;
  f->scope = list->n_scopes;
  const char *outer = list->scopes[f->outer].suffix;
  return add_scope(list, sn_arena_print(list->arena, ".%u%s", (unsigned)f->iteration, outer), f->outer, NULL);
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

/* The block that is used; NULL: there is none, or it would never end. Whether it has been written out before. */
static const cJSON *find_block(sn__json_list *list, const stack *s, const cJSON *item, bool *again) {
  sn__mistakes *m = list->mistakes;
  const cJSON *key = cJSON_GetObjectItemCaseSensitive(item, "block"),
              *block = list->blocks ? list->blocks->child : NULL;
  const char *name = sn_json_text(m->doc, item, "block", &m->at);
  sn__mistakes_note(m, item);
  if (!name) return NULL;
  const char *names[SN__MAX_BLOCKS];
  char hint[260] = "";
  uint32_t count = 0;
  for (; block && count < SN__MAX_BLOCKS && strcmp(block->string, name) != 0; block = block->next)
    names[count++] = block->string;
  if (!block || count == SN__MAX_BLOCKS) {
    if (sn__mistakes_seen(m) && strlen(name) <= SN__MAX_NAME) sn_text_suggest(name, names, count, hint, sizeof hint);
    MISTAKE(m, key, "block \"%.80s\" is not among \"blocks\"%s", name, hint);
    return NULL;
  }
  for (uint32_t i = 0; i < s->depth; i++)
    if (s->frames[i].block == block) MISTAKE(m, key, "block \"%.80s\" would hold itself", name);
  *again = *again || list->known[count];
  list->known[count] = true;
  if (cJSON_IsArray(block)) return block;
  if (!*again) MISTAKE(m, block, "block \"%.80s\" must be a list of layers: [...]", name);
  m->failed = true;
  return NULL;
}

static void check_use(sn__mistakes *m, const cJSON *item) {
  const cJSON *with = cJSON_GetObjectItemCaseSensitive(item, "with");
  const char *name = sn_json_text(m->doc, item, "name", &m->at);
  sn__mistakes_note(m, item);
  if (name && (name[0] == '@' || !sn__is_good_name(name)))
    MISTAKE(m, item, "the name of a block's use has 1 to %d bytes, no blanks, and does not begin with @", SN__MAX_NAME);
  if (with && !cJSON_IsObject(with)) MISTAKE(m, with, "\"with\" must be an object: {\"width\": 64}");
}

/* The list that it repeats; NULL: it cannot be written out. */
static const cJSON *read_repeat(sn__json_list *list, const stack *s, const cJSON *item, frame *f) {
  static const char *const repeat[] = {"repeat", "layers", "depth"};
  static const char *const use[] = {"block", "name", "repeat", "input", "with", "depth"};
  sn__mistakes *m = list->mistakes;
  bool block = sn_json_has(item, "block");
  uint64_t seen = 0;
  m->failed = false;
  for (const cJSON *key = item->child; key; key = key->next)
    if (sn_json_known(m->doc, key, block ? use : repeat, block ? 6 : 3, &seen, &m->at)) sn__mistakes_note(m, item);
  f->once = block && !sn_json_has(item, "repeat");
  if (!f->once && sn_json_count(m->doc, item, "repeat", 1, SN_MAX_LAYERS, &f->times, &m->at))
    sn__mistakes_note(m, item);
  if (block) check_use(m, item);
  const cJSON *layers = block ? find_block(list, s, item, &f->again) : sn_json_array(m->doc, item, "layers", &m->at);
  sn__mistakes_note(m, item);
  if (sn_json_has(item, "depth") && (s->depth > 1 || f->once))
    MISTAKE(m, item, "only a repeat of the outer list can be the depth");
  if (layers && !layers->child) MISTAKE(m, layers, block ? "a block without layers" : "a repeat without layers");
  if (s->depth > SN__MAX_REPEAT_DEPTH) MISTAKE(m, item, "repeats are nested more than %d deep", SN__MAX_REPEAT_DEPTH);
  return m->failed ? NULL : layers;
}

static bool push_use(sn__json_list *list, frame *f) {
  const cJSON *name = cJSON_GetObjectItemCaseSensitive(f->use, "name");
  const char *outer = list->scopes[f->outer].suffix;
  if (!has_room(list, f->use)) return false;
  uint32_t scope = list->n_scopes;
  if (!add_scope(list, sn_arena_print(list->arena, ".%s%s", name->valuestring, outer), f->outer, f->use)) return false;
  f->outer = scope;
  return true;
}

static bool push_repeat(sn__json_list *list, stack *s, const cJSON *item) {
  const frame *above = &s->frames[s->depth - 1];
  frame f = {.outer = above->scope, .again = above->again, .times = 1};
  sn__mistakes_read(list->mistakes, above->again);
  const cJSON *layers = read_repeat(list, s, item, &f);
  if (!layers) list->incomplete = true;
  if (!layers) return sn__mistakes_go_on(list->mistakes);
  if (sn_json_has(item, "block")) f.use = item, f.block = layers;
  if (list->depth && item == list->depth_item) f.times = list->depth;
  f.first = layers->child;
  if (f.use && !push_use(list, &f)) return false;
  s->frames[s->depth++] = f;
  return iterate(list, &s->frames[s->depth - 1]);
}

/* A list has ended: what the name of a block's use means is known now. */
static bool pop(sn__json_list *list, stack *s) {
  const frame *f = &s->frames[--s->depth];
  if (!f->use) return true;
  sn__json_use *uses = grow(list->uses, list->n_uses, &list->room_uses, sizeof *uses);
  if (!uses) return run_out(list);
  list->uses = uses;
  /* Its scope's suffix without the first point. */
  uint32_t scope = f->outer;
  uses[list->n_uses++] = (sn__json_use){f->use, list->scopes[scope].suffix + 1, list->n_layers - 1};
  return true;
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
    return f->iteration < f->times ? iterate(list, f) : pop(list, s);
  }
  f->at = item->next;
  if (sn_json_has(item, "repeat") || sn_json_has(item, "block")) return push_repeat(list, s, item);
  return read_layer(list, item, f);
}

/* Names of layers by their index, those of blocks' uses behind them. */
static bool sort_names(sn__json_list *list) {
  sn__mistakes *m = list->mistakes;
  if (sn__names_init(&list->names, list->n_layers + list->n_uses, &m->at)) return false;
  for (uint32_t i = 0; i < list->n_layers; i++) sn__names_add(&list->names, list->layers[i].name, i);
  for (uint32_t i = 0; i < list->n_uses; i++) sn__names_add(&list->names, list->uses[i].name, list->n_layers + i);
  sn__names_sort(&list->names);
  for (uint32_t i = 0; i < list->n_uses && sn__mistakes_go_on(m); i++)
    if (sn__names_find(&list->names, list->uses[i].name) != list->n_layers + i)
      MISTAKE(m, list->uses[i].item, "another layer or block has the name \"%.80s\" already; rename one of them",
              list->uses[i].name);
  return sn__mistakes_go_on(m);
}

/* The blocks by name. A block that no list uses is one that nobody has looked at. */
static void read_blocks(sn__json_list *list) {
  sn__mistakes *m = list->mistakes;
  const cJSON *blocks = cJSON_GetObjectItemCaseSensitive(sn_json_root(m->doc), "blocks");
  if (!blocks) return;
  if (!cJSON_IsObject(blocks))
    MISTAKE(m, blocks, "\"blocks\" must be an object: {\"unit\": [...]}");
  else if (cJSON_GetArraySize(blocks) > SN__MAX_BLOCKS)
    MISTAKE(m, blocks, "more than %d blocks", SN__MAX_BLOCKS);
  else
    list->blocks = blocks;
  for (const cJSON *block = list->blocks ? blocks->child : NULL; block; block = block->next)
    if (cJSON_GetObjectItemCaseSensitive(blocks, block->string) != block)
      MISTAKE(m, block, "the key \"%.80s\" stands twice", block->string);
}

static void check_blocks_used(sn__json_list *list) {
  const cJSON *block = list->blocks ? list->blocks->child : NULL;
  for (uint32_t i = 0; block && !list->incomplete; i++, block = block->next)
    if (!list->known[i])
      MISTAKE(list->mistakes, block, "block \"%.80s\" is never used; use it or remove it", block->string);
}

bool sn__json_list_read(sn__json_list *list) {
  sn__mistakes *m = list->mistakes;
  const cJSON *layers = sn_json_array(m->doc, sn_json_root(m->doc), "layers", &m->at);
  sn__mistakes_note(m, NULL);
  if (!layers) return false;
  list->arena = sn_arena_new();
  if (!list->arena) return run_out(list);
  stack s = {.frames = {{.first = layers->child, .at = layers->child}}, .depth = 1};
  read_blocks(list);
  find_depth(list, layers);
  const sn__json_layer data = {.name = "data"};
  if (!add_scope(list, "", 0, NULL) || !add_layer(list, data)) return false;
  while (s.depth > 0)
    if (!step(list, &s)) return false;
  sn__mistakes_read(list->mistakes, false);
  check_blocks_used(list);
  return sort_names(list);
}

/* What `name` means in a scope. "@in" may be the name that a block's use gives, which is looked for around it; and so
 * on outwards. */
static uint32_t find_from(const sn__json_list *list, uint32_t scope, const char *name) {
  while (strcmp(name, "@in") == 0) {
    const sn__json_scope *at = &list->scopes[scope];
    const cJSON *input =
        at->given == SN_NONE ? NULL : cJSON_GetObjectItemCaseSensitive(list->scopes[at->given].use, "input");
    if (!input) return at->in;
    if (!cJSON_IsString(input)) return SN_NONE;
    name = input->valuestring;
    scope = list->scopes[at->given].parent;
  }
  if (strlen(name) > (size_t)2 * SN__MAX_NAME) return SN_NONE;
  for (;; scope = list->scopes[scope].parent) {
    char full[12 * SN__MAX_NAME];
    snprintf(full, sizeof full, "%s%s", name, list->scopes[scope].suffix);
    uint32_t found = sn__names_find(&list->names, full);
    if (found != SN_NONE && found >= list->n_layers) return list->uses[found - list->n_layers].last;
    if (found != SN_NONE || scope == 0) return found;
  }
}

uint32_t sn__json_list_find(const sn__json_list *list, uint32_t at, const char *name) {
  return find_from(list, list->layers[at].scope, name);
}

uint32_t sn__json_list_before(const sn__json_list *list, uint32_t at) {
  uint32_t scope = list->layers[at].scope;
  return list->scopes[scope].in == at - 1 ? find_from(list, scope, "@in") : at - 1;
}

const cJSON *sn__json_list_value(const sn__json_list *list, uint32_t at, const cJSON *item) {
  uint32_t scope = list->layers[at].scope;
  for (; cJSON_IsString(item) && item->valuestring[0] == '$'; scope = list->scopes[scope].parent) {
    const cJSON *with = cJSON_GetObjectItemCaseSensitive(list->scopes[scope].use, "with");
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(with, item->valuestring + 1);
    if (value) item = value;
    if (scope == 0) break;
  }
  return cJSON_IsString(item) && item->valuestring[0] == '$' ? NULL : item;
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
