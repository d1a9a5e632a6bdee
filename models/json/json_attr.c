/* Operators and attributes of a layer in a JSON network, by the keys of their definitions (models/op/op.h); what they mean
 * is docs/networks.md's. What is wrong goes on the list of mistakes, and the next key is read. */
#include "models/json/json_attr.h"

#include "base/text.h"
#include "models/build/build_internal.h"
#include "models/op/op.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* -- operators and keys ------------------------------------------------------------------------------------------ */

/* What some other framework calls an operator. */
static bool is_called(const sn_op_def *def, const char *name) {
  for (const char *const *begin = def->called; begin && *begin; begin++)
    if (strncasecmp(name, *begin, strlen(*begin)) == 0) return true;
  return false;
}

static const char *translate(const char *name) {
  for (sn_op op = 0; op < SN_OP_COUNT; op++)
    if (is_called(sn_op_table[op], name)) return sn_op_table[op]->name;
  return name;
}

static void fail_op(sn__mistakes *m, const cJSON *layer, const char *name) {
  const char *names[SN_OP_COUNT];
  char hint[320] = "";
  size_t count = 0;
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(layer, "op");
  for (sn_op op = 0; op < SN_OP_COUNT; op++)
    if (!sn_op_table[op]->inner) names[count++] = sn_op_table[op]->name;
  if (!sn__mistakes_seen(m) || strlen(name) > SN__MAX_NAME ||
      !*sn_text_suggest(translate(name), names, count, hint, sizeof hint)) {
    size_t used = (size_t)snprintf(hint, sizeof hint, "; there are ");
    for (size_t i = 0; i < count && used < sizeof hint; i++)
      used += (size_t)snprintf(hint + used, sizeof hint - used, "%s%s", i ? ", " : "", names[i]);
  }
  MISTAKE(m, item, "unknown op \"%.60s\"%s", name, hint);
}

bool sn__json_op(sn__mistakes *m, const cJSON *layer, sn_op *op) {
  const char *name = sn_json_text(m->doc, layer, "op", &m->at);
  sn__mistakes_note(m, layer);
  if (!name) return false;
  const sn_op known = sn_op_by_name(name);
  if (known < SN_OP_COUNT && !sn_op_table[known]->inner) {
    *op = known;
    return true;
  }
  fail_op(m, layer, name);
  return false;
}

static const char *const every_layer[] = {"name", "op", "input", "inputs"};
enum { COMMON = sizeof every_layer / sizeof every_layer[0] };

/* Which of the operator's keys the layer has; `unsure` where it has others, which may have been meant for those missing.
 */
static uint64_t find_keys(sn__mistakes *m, const cJSON *layer, const sn_op_def *def, bool *unsure) {
  const char *keys[COMMON + SN_MOST_KEYS];
  size_t count = COMMON;
  uint64_t seen = 0;
  memcpy(keys, every_layer, sizeof every_layer);
  for (int i = 0; i < SN_MOST_KEYS && def->keys[i].name; i++) keys[count++] = def->keys[i].name;
  *unsure = false;
  for (const cJSON *key = layer->child; key; key = key->next) {
    if (sn_json_known(m->doc, key, keys, count, &seen, &m->at) == SN_OK) continue;
    sn__mistakes_note(m, layer);
    *unsure = true;
  }
  return seen >> COMMON;
}

/* Members are reached by their offsets: of an extent the width behind the height, enums as the numbers they are. */
_Static_assert(offsetof(sn_attr, kernel_w) == offsetof(sn_attr, kernel_h) + sizeof(uint32_t), "extent");
_Static_assert(offsetof(sn_attr, stride_w) == offsetof(sn_attr, stride_h) + sizeof(uint32_t), "extent");
_Static_assert(offsetof(sn_attr, pad_w) == offsetof(sn_attr, pad_h) + sizeof(uint32_t), "extent");
_Static_assert(offsetof(sn_attr, output_pad_w) == offsetof(sn_attr, output_pad_h) + sizeof(uint32_t), "extent");
_Static_assert(offsetof(sn_attr, dilation_w) == offsetof(sn_attr, dilation_h) + sizeof(uint32_t), "extent");
_Static_assert(offsetof(sn_attr, adaptive_w) == offsetof(sn_attr, adaptive_h) + sizeof(uint32_t), "extent");
_Static_assert(sizeof(sn_act_mode) == sizeof(unsigned) && sizeof(sn_pool_mode) == sizeof(unsigned) &&
                   sizeof(sn_loss) == sizeof(unsigned) && sizeof(sn_side) == sizeof(unsigned),
               "word");

/* -- attributes: what is missing keeps its usual value, what is wrong, too ---------------------------------------- */

typedef struct reader {
  sn__mistakes *m;
  const sn__json_list *list;
  uint32_t at; /* the layer in the list */
  const cJSON *layer;
  sn_attr *attr;
} reader;

static void *member_of(const reader *r, const sn_key *key) {
  return (char *)r->attr + key->at;
}

/* What the use of the layer's block gives for "$name"; NULL where it gives nothing. */
static const cJSON *given(const reader *r, const cJSON *item) {
  const cJSON *value = item ? sn__json_list_value(r->list, r->at, item) : NULL;
  if (item && !value)
    MISTAKE(r->m, item, "\"%.60s\" is not given; write \"with\": {\"%.60s\": ...} where the block is used",
            item->valuestring, item->valuestring + 1);
  return value;
}

static void read_size(const reader *r, const cJSON *item, const sn_key *key, uint32_t *out) {
  uint64_t value = *out;
  item = given(r, item);
  if (item && sn_json_item_count(r->m->doc, item, key->name, key->least, SN_MAX_DIM, &value, &r->m->at))
    sn__mistakes_note(r->m, r->layer);
  *out = (uint32_t)value;
}

static void fail_extent(const reader *r, const cJSON *list, const char *key, bool deep) {
  if (deep)
    MISTAKE(r->m, list,
            "\"%s\" must be one number, or three: [depth, height, width]; two, [height, width], are of each "
            "plane by itself",
            key);
  else
    MISTAKE(r->m, list, "\"%s\" must be one number or two: [height, width]%s", key,
            !r->list->volumes && cJSON_GetArraySize(list) == 3
                ? "; three are of volumes, whose \"input\" is [channels, depth, height, width]"
                : "");
}

/* 3 or [3, 5]: height and width. In a network of volumes 3 is the depth, too, and [1, 3, 5] begins with it. */
static void read_extent(const reader *r, const cJSON *item, const sn_key *key) {
  uint32_t *sides = member_of(r, key), *depth = (uint32_t *)(void *)((char *)r->attr + key->depth);
  const bool deep = key->depth && r->list->volumes;
  if (!cJSON_IsArray(item)) {
    read_size(r, item, key, &sides[0]);
    sides[1] = sides[0];
    if (deep) *depth = sides[0];
    return;
  }
  const int count = cJSON_GetArraySize(item);
  const cJSON *at = item->child;
  if (count != 2 && !(count == 3 && deep)) {
    fail_extent(r, item, key->name, deep);
    return;
  }
  if (count == 3) {
    read_size(r, at, key, depth);
    at = at->next;
  }
  read_size(r, at, key, &sides[0]);
  read_size(r, at->next, key, &sides[1]);
}

static bool read_flag(const reader *r, const cJSON *item, const sn_key *key) {
  if (!cJSON_IsBool(item)) MISTAKE(r->m, item, "\"%s\" must be true or false", key->name);
  return cJSON_IsTrue(item);
}

/* Which numbers are allowed the operator itself says (models/op/). */
static void read_number(const reader *r, const cJSON *item, const sn_key *key) {
  if (cJSON_IsNumber(item))
    *(double *)member_of(r, key) = item->valuedouble;
  else
    MISTAKE(r->m, item, "\"%s\" must be a number", key->name);
}

/* One of a few words, by its number; the first one is the default. */
static uint32_t read_word(const reader *r, const cJSON *item, const sn_key *key) {
  if (!cJSON_IsString(item)) {
    MISTAKE(r->m, item, "\"%s\" must be a text in quotes", key->name);
    return 0;
  }
  const char *const *words = key->words(), *word = item->valuestring;
  char hint[80] = "", all[200] = "";
  size_t used = 0, count = 0;
  while (words[count]) count++;
  for (uint32_t i = 0; i < count && used < sizeof all; i++) {
    if (strcmp(word, words[i]) == 0) return i;
    const char *before = i == 0 ? "" : i + 1 < count ? ", " : " or ";
    used += (size_t)snprintf(all + used, sizeof all - used, "%s\"%s\"", before, words[i]);
  }
  if (sn__mistakes_seen(r->m) && strlen(word) <= SN__MAX_NAME) sn_text_suggest(word, words, count, hint, sizeof hint);
  MISTAKE(r->m, r->layer, "\"%s\" is %s, not \"%.60s\"%s", key->name, all, word, hint);
  return 0;
}

static void read_axis(const reader *r, const cJSON *item, const sn_key *key, sn_side *axis) {
  uint32_t i = 0;
  while (i < SN_SIDES && !(cJSON_IsString(item) && strcmp(item->valuestring, sn_side_names()[i]) == 0)) i++;
  if (i == SN_SIDES)
    MISTAKE(r->m, item, "\"%s\" are \"channels\", \"height\" and \"width\", in the order of the output's", key->name);
  else
    *axis = (sn_side)i;
}

/* A list of one item for channels, height and width each. */
static void read_triple(const reader *r, const cJSON *list, const sn_key *key) {
  const bool good = cJSON_IsArray(list) && cJSON_GetArraySize(list) == SN_SIDES;
  if (!good && cJSON_IsArray(list))
    MISTAKE(r->m, list, "\"%s\" has three items: of channels, height and width", key->name);
  else if (!good)
    MISTAKE(r->m, list, "\"%s\" must be a list: [...]", key->name);
  const cJSON *item = good ? list->child : NULL;
  for (int i = 0; item; item = item->next, i++)
    if (key->kind == SN_KEY_SIDES)
      read_size(r, item, key, (uint32_t *)member_of(r, key) + i);
    else
      read_axis(r, item, key, (sn_side *)member_of(r, key) + i);
}

static void read_value(const reader *r, const cJSON *item, const sn_key *key) {
  switch (key->kind) {
  case SN_KEY_SIZE:
    read_size(r, item, key, member_of(r, key));
    break;
  case SN_KEY_EXTENT:
    read_extent(r, item, key);
    break;
  case SN_KEY_FLAG:
    *(bool *)member_of(r, key) = key->words ? read_word(r, item, key) == 1 : read_flag(r, item, key);
    break;
  case SN_KEY_NUMBER:
    read_number(r, item, key);
    break;
  case SN_KEY_WORD:
    *(unsigned *)member_of(r, key) = read_word(r, item, key);
    break;
  case SN_KEY_CHOICE:
    *(sn_inplace *)member_of(r, key) = read_flag(r, item, key) ? SN_INPLACE_YES : SN_INPLACE_NO;
    break;
  case SN_KEY_SIDES:
  case SN_KEY_AXES:
    read_triple(r, item, key);
    break;
  case SN_KEY_OWNER:
    break; /* models/json/json_net.c knows the layers */
  }
}

static void set_usual(sn_attr *attr, const sn_key *key) {
  char *member = (char *)attr + key->at;
  if (key->kind == SN_KEY_NUMBER) *(double *)(void *)member = key->usual;
  if (key->kind == SN_KEY_FLAG) *(bool *)member = key->usual != 0;
  if (key->kind == SN_KEY_SIZE || key->kind == SN_KEY_EXTENT) *(uint32_t *)(void *)member = (uint32_t)key->usual;
  if (key->kind == SN_KEY_EXTENT) ((uint32_t *)(void *)member)[1] = (uint32_t)key->usual;
}

static void say(void *whom, const char *text) {
  const reader *r = whom;
  MISTAKE(r->m, r->layer, "%s", text);
}

void sn__json_attributes(const sn__json_list *list, uint32_t at, sn_op op, sn_attr *a) {
  const sn_op_def *def = sn_op_table[op];
  reader r = {list->mistakes, list, at, list->layers[at].item, a};
  sn_described d = {.op = def, .volumes = list->volumes, .wrong = say, .whom = &r};
  *a = (sn_attr){0};
  d.given = find_keys(r.m, r.layer, def, &d.unsure);
  bool passed = false; /* over a key that a layer of these attributes does not have: settle() says so */
  for (int i = 0; i < SN_MOST_KEYS && def->keys[i].name; i++) {
    const sn_key *key = &def->keys[i];
    const bool has = d.given >> i & 1;
    set_usual(a, key);
    if (has && def->has && !def->has(a, key)) {
      if (!passed) d.good = !r.m->failed;
      passed = true;
      continue;
    }
    if (!has && key->required && !d.unsure) MISTAKE(r.m, r.layer, "\"%s\" is missing", key->name);
    const cJSON *item =
        has && key->kind != SN_KEY_OWNER ? given(&r, cJSON_GetObjectItemCaseSensitive(r.layer, key->name)) : NULL;
    if (item) read_value(&r, item, key);
  }
  if (!passed) d.good = !r.m->failed;
  if (def->settle) def->settle(a, &d);
}
