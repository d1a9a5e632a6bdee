/* Networks as JSON files: the counterpart of models/json/json_net.c. FORKs are left out - the reader puts them back where
 * they were, since branches follow the order of declaration - and repeats are written out. cJSON makes the text of one
 * layer at a time. O(layers + inputs). */
#include "models/zoo/zoo.h"

#include "models/op/op.h"

#include <cjson/cJSON.h>
#include <inttypes.h>

/* A JSON object and whether a member did not find memory. */
typedef struct object {
  cJSON *json;
  bool lost;
  bool volumes; /* of a network of volumes */
} object;

static void put(object *o, const char *key, cJSON *item) {
  if (item && cJSON_AddItemToObject(o->json, key, item)) return;
  cJSON_Delete(item);
  o->lost = true;
}

static void put_text(object *o, const char *key, const char *text) {
  put(o, key, cJSON_CreateString(text));
}

/* One number where all sides are the same; in a network of volumes with the depth. */
static cJSON *extent(const object *o, const sn_attr *a, const sn_key *key) {
  const uint32_t *side = (const uint32_t *)(const void *)((const char *)a + key->at), least = key->least;
  uint32_t h = least ? sn_or_one(side[0]) : side[0], w = least ? sn_or_one(side[1]) : side[1];
  uint32_t d = key->depth ? *(const uint32_t *)(const void *)((const char *)a + key->depth) : 0;
  if (key->by_each && d == 0 && o->volumes) return cJSON_CreateIntArray((const int[]){(int)h, (int)w}, 2);
  if (least) d = sn_or_one(d);
  const bool deep = key->depth && o->volumes && !(d == h && h == w);
  if (deep) return cJSON_CreateIntArray((const int[]){(int)d, (int)h, (int)w}, 3);
  return h == w ? cJSON_CreateNumber(h) : cJSON_CreateIntArray((const int[]){(int)h, (int)w}, 2);
}

static cJSON *sides(const uint32_t *side) {
  return cJSON_CreateIntArray((const int[]){(int)side[0], (int)side[1], (int)side[2]}, SN_SIDES);
}

static cJSON *axes(const sn_side *side) {
  const char *const *names = sn_side_names();
  return cJSON_CreateStringArray((const char *const[]){names[side[0]], names[side[1]], names[side[2]]}, SN_SIDES);
}

/* Whether the key says something that its lack would not. */
static bool says(const sn_attr *a, const sn_key *key) {
  const void *member = (const char *)a + key->at;
  const uint32_t one = key->by_each ? 0 : 1; /* a step of one to the next is no news, an output of one place is */
  if (key->always) return true;
  switch (key->kind) {
  case SN_KEY_SIZE:
    return *(const uint32_t *)member > (uint32_t)key->usual;
  case SN_KEY_EXTENT:
    return ((const uint32_t *)member)[0] > one || ((const uint32_t *)member)[1] > one ||
           (key->depth && *(const uint32_t *)(const void *)((const char *)a + key->depth) > one);
  case SN_KEY_FLAG:
    return *(const bool *)member != (key->usual != 0);
  case SN_KEY_NUMBER:
    return *(const double *)member > key->usual;
  case SN_KEY_WORD:
    return *(const unsigned *)member > 0;
  case SN_KEY_CHOICE:
    return *(const sn_inplace *)member != SN_INPLACE_UNSET;
  case SN_KEY_SIDES:
  case SN_KEY_AXES:
  case SN_KEY_OWNER:
    break;
  }
  return false;
}

static cJSON *value_of(const object *o, const sn_attr *a, const sn_key *key) {
  const void *member = (const char *)a + key->at;
  switch (key->kind) {
  case SN_KEY_SIZE:
    return cJSON_CreateNumber(*(const uint32_t *)member);
  case SN_KEY_EXTENT:
    return extent(o, a, key);
  case SN_KEY_FLAG:
    if (key->words) return cJSON_CreateString(key->words()[*(const bool *)member]);
    return cJSON_CreateBool(*(const bool *)member);
  case SN_KEY_NUMBER:
    return cJSON_CreateNumber(*(const double *)member);
  case SN_KEY_WORD:
    return cJSON_CreateString(key->words()[*(const unsigned *)member]);
  case SN_KEY_CHOICE:
    return cJSON_CreateBool(*(const sn_inplace *)member == SN_INPLACE_YES);
  case SN_KEY_SIDES:
    return sides(member);
  case SN_KEY_AXES:
    return axes(member);
  case SN_KEY_OWNER:
    break;
  }
  return NULL;
}

static void put_attributes(object *o, const sn_op_def *def, const sn_attr *a) {
  for (int i = 0; i < SN_MOST_KEYS && def->keys[i].name; i++) {
    const sn_key *key = &def->keys[i];
    if (key->kind != SN_KEY_OWNER && (!def->has || def->has(a, key)) && says(a, key))
      put(o, key->name, value_of(o, a, key));
  }
}

static const char *source_of(const sn_net *net, const sn_layer *layer, uint32_t i) {
  return net->layers[sn_layer_source(net, layer, i)].name;
}

static void put_inputs(object *o, const sn_net *net, const sn_layer *layer) {
  if (!sn_op_of(layer)->many_inputs) {
    put_text(o, "input", source_of(net, layer, 0));
    return;
  }
  cJSON *list = cJSON_CreateArray();
  for (uint32_t i = 0; list && i < layer->n_inputs; i++) {
    cJSON *name = cJSON_CreateString(source_of(net, layer, i));
    if (!name || !cJSON_AddItemToArray(list, name)) o->lost = true;
  }
  put(o, "inputs", list);
}

/* Writes and frees it. */
static sn_status end(object *o, const char *before, FILE *out, sn_err *err) {
  char *text = o->lost || !o->json ? NULL : cJSON_PrintUnformatted(o->json);
  cJSON_Delete(o->json);
  if (!text) return sn_fail_memory(err);
  fprintf(out, "%s%s", before, text);
  cJSON_free(text);
  return SN_OK;
}

/* Those of one plane are volumes, too: a DECONV may make more of them. */
static bool has_volumes(const sn_net *net) {
  return net->layers[0].planes > 0;
}

static sn_status write_layer(const sn_net *net, const sn_layer *layer, const char *before, FILE *out, sn_err *err) {
  object o = {.json = cJSON_CreateObject(), .volumes = has_volumes(net)};
  put_text(&o, "name", layer->name);
  put_text(&o, "op", sn_op_of(layer)->name);
  put_inputs(&o, net, layer);
  put_attributes(&o, sn_op_of(layer), layer->attr);
  if (layer->attr->weights_of) put_text(&o, "weights_of", net->layers[layer->attr->weights_of].name);
  return end(&o, before, out, err);
}

sn_status sn_net_write_json(const sn_net *net, FILE *out, sn_err *err) {
  const sn_shape in = net->layers[0].out;
  char *name = NULL;
  cJSON *text = cJSON_CreateString(net->name);
  if (text) name = cJSON_PrintUnformatted(text);
  cJSON_Delete(text);
  if (!name) return sn_fail_memory(err);
  fprintf(out, "{\"snsim_net\":1,\"name\":%s,", name);
  if (net->values[0].dtype == SN_I64)
    fprintf(out, "\"tokens\":%" PRIu32 ",\"layers\":[", in.h);
  else if (has_volumes(net))
    fprintf(out, "\"input\":[%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 "],\"layers\":[", in.c,
            net->layers[0].planes, sn_layer_rows(&net->layers[0]), in.w);
  else
    fprintf(out, "\"input\":[%" PRIu32 ",%" PRIu32 ",%" PRIu32 "],\"layers\":[", in.c, in.h, in.w);
  cJSON_free(name);
  bool first = true;
  for (uint32_t i = 1; i < net->n_layers && err->code == SN_OK; i++) {
    if (net->layers[i].op == SN_FORK) continue;
    write_layer(net, &net->layers[i], first ? "\n" : ",\n", out, err);
    first = false;
  }
  fputs("\n]}", out);
  return err->code;
}
