/* Networks from JSON files. The schema is docs/networks.md; base/json.h reads and points at lines, models/json_list.h
 * writes out repeats and resolves names, the builder checks the network itself.
 *
 *   text -> document -> list of layers -> attributes and inputs of each -> builder -> net
 *
 * Whatever the file holds, the cost is O(n log n) in its length and in the layers and inputs written out, both limited
 * by models/net.h. Left out: weights. Only shapes matter here. */
#include "models/zoo.h"

#include "base/text.h"
#include "models/build_internal.h"
#include "models/json_list.h"
#include "models/op.h"
#include "models/zoo_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef struct reader {
  const sn_json *doc;
  sn_err *err;
  sn__json_list list;
  sn_builder *b;
  uint32_t *inputs; /* of the layer at hand */
  uint32_t room;
} reader;

/* -- keys -------------------------------------------------------------------------------------------------------- */

#define COMMON "name", "op", "input", "inputs"
enum { MAX_KEYS = 12 };

/* The operators that may be declared, and the keys of each. */
static const struct {
  sn_op op;
  const char *keys[MAX_KEYS];
} rules[] = {
    {SN_CONV, {COMMON, "channels", "kernel", "stride", "pad", "dilation", "groups", "bias"}},
    {SN_DECONV, {COMMON, "channels", "kernel", "stride", "pad", "output_pad", "dilation", "groups", "bias"}},
    {SN_FC, {COMMON, "channels", "bias", "positions", "weights_of"}},
    {SN_POOL, {COMMON, "mode", "kernel", "stride", "pad", "ceil", "global", "adaptive"}},
    {SN_ACT, {COMMON, "mode", "slope", "inplace"}},
    {SN_LRN, {COMMON, "size", "alpha", "beta", "k"}},
    {SN_BN, {COMMON}},
    {SN_DROPOUT, {COMMON, "ratio", "inplace", "images"}},
    {SN_SOFTMAX, {COMMON, "positions"}},
    {SN_JOIN, {COMMON, "inplace"}},
    {SN_CONCAT, {COMMON}},
    {SN_MUL, {COMMON}},
    {SN_SCALE, {COMMON}},
    {SN_LAYER_NORM, {COMMON}},
    {SN_RMS_NORM, {COMMON}},
    {SN_EMBEDDING, {COMMON, "vocabulary", "channels", "weights_of"}},
    {SN_POSITION, {COMMON, "rows"}},
    {SN_TOKEN, {COMMON}},
    {SN_TAKE, {COMMON}},
    {SN_ATTENTION, {COMMON, "heads", "kv_heads", "causal", "parts", "ratio", "rows", "window"}},
    {SN_ROTARY, {COMMON, "heads"}},
    {SN_PROBABILITIES, {COMMON, "axis"}},
    {SN_GROUP_NORM, {COMMON, "groups"}},
    {SN_MATMUL, {COMMON, "turn_first", "turn_second"}},
    {SN_RESHAPE, {COMMON, "shape"}},
    {SN_TRANSPOSE, {COMMON, "axes"}},
    {SN_SLICE, {COMMON, "axis", "first", "count"}},
    {SN_PAD, {COMMON, "pad", "output_pad"}},
    {SN_RESIZE, {COMMON, "mode", "size", "scale"}},
};
enum { RULES = sizeof rules / sizeof rules[0] };

/* How the names of other frameworks' operators begin that are not like ours. */
static const struct {
  const char *begin;
  sn_op op;
} foreign[] = {
    {"relu", SN_ACT},
    {"activation", SN_ACT},
    {"leaky", SN_ACT},
    {"tanh", SN_ACT},
    {"sigmoid", SN_ACT},
    {"linear", SN_FC},
    {"dense", SN_FC},
    {"gemm", SN_FC},
    {"inner", SN_FC},
    {"batch", SN_BN},
    {"add", SN_JOIN},
    {"sum", SN_JOIN},
    {"eltwise", SN_JOIN},
    {"loss", SN_SOFTMAX},
    {"convtrans", SN_DECONV},
    {"conv_trans", SN_DECONV},
    {"transposed", SN_DECONV},
    {"layernorm", SN_LAYER_NORM},
    {"rmsnorm", SN_RMS_NORM},
    {"embed", SN_EMBEDDING},
    {"multihead", SN_ATTENTION},
    {"scaled_dot", SN_ATTENTION},
    {"multiply", SN_MUL},
    {"groupnorm", SN_GROUP_NORM},
    {"bmm", SN_MATMUL},
    {"view", SN_RESHAPE},
    {"flatten", SN_RESHAPE},
    {"permute", SN_TRANSPOSE},
    {"split", SN_SLICE},
    {"chunk", SN_SLICE},
    {"narrow", SN_SLICE},
    {"upsample", SN_RESIZE},
    {"interpolate", SN_RESIZE},
    {"zeropad", SN_PAD},
    {"gelu", SN_ACT},
    {"silu", SN_ACT},
    {"hard", SN_ACT},
    {"elu", SN_ACT},
};

static const char *translate(const char *name) {
  for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++)
    if (strncasecmp(name, foreign[i].begin, strlen(foreign[i].begin)) == 0) return sn_op_table[foreign[i].op].name;
  return name;
}

static sn_status fail_op(const sn_json *doc, const cJSON *layer, const char *name, sn_err *err) {
  const char *names[RULES];
  char hint[320];
  for (size_t i = 0; i < RULES; i++) names[i] = sn_op_table[rules[i].op].name;
  if (!*sn_text_suggest(translate(name), names, RULES, hint, sizeof hint)) {
    size_t used = (size_t)snprintf(hint, sizeof hint, "; there are ");
    for (size_t i = 0; i < RULES && used < sizeof hint; i++)
      used += (size_t)snprintf(hint + used, sizeof hint - used, "%s%s", i ? ", " : "", names[i]);
  }
  return sn_json_fail(doc, cJSON_GetObjectItemCaseSensitive(layer, "op"), err, "unknown op \"%.60s\"%s", name, hint);
}

/* Only keys the layer's operator has. */
static sn_status check_layer(const sn_json *doc, const cJSON *layer, sn_err *err) {
  if (!cJSON_IsObject(layer)) return sn_json_fail(doc, layer, err, "a layer must be an object: {...}");
  const char *name = sn_json_text(doc, layer, "op", err);
  if (!name) return err->code;
  sn_op op = sn_op_by_name(name);
  size_t rule = 0, count = 0;
  while (rule < RULES && rules[rule].op != op) rule++;
  if (rule == RULES) return fail_op(doc, layer, name, err);
  while (count < MAX_KEYS && rules[rule].keys[count]) count++;
  return sn_json_only(doc, layer, rules[rule].keys, count, err);
}

/* -- attributes: each reader leaves a missing key at its default -------------------------------------------------- */

static sn_status read_size(reader *r, const cJSON *layer, const char *key, uint32_t low, uint32_t *out) {
  uint64_t value = 0;
  if (sn_json_count(r->doc, layer, key, low, SN_MAX_DIM, &value, r->err)) return r->err->code;
  *out = (uint32_t)value;
  return SN_OK;
}

/* 3 or [3, 5]: height and width. */
static sn_status read_pair(reader *r, const cJSON *layer, const char *key, uint32_t low, uint32_t *h, uint32_t *w) {
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(layer, key);
  uint64_t height = 0, width = 0;
  if (!cJSON_IsArray(item)) {
    if (read_size(r, layer, key, low, h)) return r->err->code;
    *w = *h;
    return SN_OK;
  }
  const cJSON *first = item->child, *second = first ? first->next : NULL;
  if (!second || second->next)
    return sn_json_fail(r->doc, item, r->err, "\"%s\" must be one number or two: [height, width]", key);
  if (sn_json_item_count(r->doc, first, key, low, SN_MAX_DIM, &height, r->err) ||
      sn_json_item_count(r->doc, second, key, low, SN_MAX_DIM, &width, r->err))
    return r->err->code;
  *h = (uint32_t)height;
  *w = (uint32_t)width;
  return SN_OK;
}

static sn_status read_flag(reader *r, const cJSON *layer, const char *key, bool *out) {
  return sn_json_has(layer, key) ? sn_json_bool(r->doc, layer, key, out, r->err) : SN_OK;
}

/* Which numbers are allowed the operator itself says (models/op.c). */
static sn_status read_number(reader *r, const cJSON *layer, const char *key, double *out) {
  return sn_json_has(layer, key) ? sn_json_number(r->doc, layer, key, -HUGE_VAL, HUGE_VAL, out, r->err) : SN_OK;
}

static sn_status read_window(reader *r, const cJSON *layer, sn_attr *a) {
  a->stride_h = a->stride_w = 1;
  if (read_pair(r, layer, "kernel", 1, &a->kernel_h, &a->kernel_w)) return r->err->code;
  if (sn_json_has(layer, "stride") && read_pair(r, layer, "stride", 1, &a->stride_h, &a->stride_w)) return r->err->code;
  return sn_json_has(layer, "pad") ? read_pair(r, layer, "pad", 0, &a->pad_h, &a->pad_w) : SN_OK;
}

static sn_status read_conv(reader *r, const cJSON *layer, sn_attr *a) {
  a->groups = 1;
  a->bias = true;
  if (read_size(r, layer, "channels", 1, &a->channels) || read_window(r, layer, a)) return r->err->code;
  if (sn_json_has(layer, "groups") && read_size(r, layer, "groups", 1, &a->groups)) return r->err->code;
  if (sn_json_has(layer, "dilation") && read_pair(r, layer, "dilation", 1, &a->dilation_h, &a->dilation_w))
    return r->err->code;
  return read_flag(r, layer, "bias", &a->bias);
}

static sn_status read_output_pad(reader *r, const cJSON *layer, sn_attr *a) {
  return sn_json_has(layer, "output_pad") ? read_pair(r, layer, "output_pad", 0, &a->output_pad_h, &a->output_pad_w)
                                          : SN_OK;
}

static sn_status read_deconv(reader *r, const cJSON *layer, sn_attr *a) {
  return read_conv(r, layer, a) ? r->err->code : read_output_pad(r, layer, a);
}

static sn_status read_fc(reader *r, const cJSON *layer, sn_attr *a) {
  a->bias = true;
  if (read_size(r, layer, "channels", 1, &a->channels) || read_flag(r, layer, "bias", &a->bias)) return r->err->code;
  return read_flag(r, layer, "positions", &a->positions);
}

/* One of a few words, by its number; the first one is the default. */
static sn_status read_word(reader *r, const cJSON *layer, const char *key, const char *const *modes, uint32_t count,
                           uint32_t *out) {
  *out = 0;
  if (!sn_json_has(layer, key)) return SN_OK;
  const char *mode = sn_json_text(r->doc, layer, key, r->err);
  if (!mode) return r->err->code;
  char hint[80], all[200];
  for (size_t used = 0; *out < count && used < sizeof all; ++*out) {
    if (strcmp(mode, modes[*out]) == 0) return SN_OK;
    const char *before = *out == 0 ? "" : *out + 1 < count ? ", " : " or ";
    used += (size_t)snprintf(all + used, sizeof all - used, "%s\"%s\"", before, modes[*out]);
  }
  return sn_json_fail(r->doc, layer, r->err, "\"%s\" is %s, not \"%.60s\"%s", key, all, mode,
                      sn_text_suggest(mode, modes, count, hint, sizeof hint));
}

static sn_status read_mode(reader *r, const cJSON *layer, const char *const *modes, uint32_t count, uint32_t *out) {
  return read_word(r, layer, "mode", modes, count, out);
}

static sn_status read_inplace(reader *r, const cJSON *layer, sn_attr *a) {
  bool inplace = false;
  if (!sn_json_has(layer, "inplace")) return SN_OK;
  if (read_flag(r, layer, "inplace", &inplace)) return r->err->code;
  a->inplace = inplace ? SN_INPLACE_YES : SN_INPLACE_NO;
  return SN_OK;
}

static sn_status read_act(reader *r, const cJSON *layer, sn_attr *a) {
  uint32_t mode;
  if (read_mode(r, layer, sn_act_names(), SN_ACT_MODES, &mode)) return r->err->code;
  a->act = (sn_act_mode)mode;
  a->slope = a->act == SN_ACT_LEAKY ? 0.01 : 0;
  if (a->act != SN_ACT_LEAKY && sn_json_has(layer, "slope"))
    return sn_json_fail(r->doc, layer, r->err, "an ACT of mode \"%s\" has no \"slope\"; \"leaky\" has",
                        sn_act_names()[mode]);
  return read_number(r, layer, "slope", &a->slope) ? r->err->code : read_inplace(r, layer, a);
}

static sn_status read_dropout(reader *r, const cJSON *layer, sn_attr *a) {
  a->ratio = 0.5;
  if (read_number(r, layer, "ratio", &a->ratio) || read_flag(r, layer, "images", &a->images)) return r->err->code;
  return read_inplace(r, layer, a);
}

/* Output of one pixel is what a global POOL has. */
static sn_status read_adaptive(reader *r, const cJSON *layer, sn_attr *a) {
  if (read_pair(r, layer, "adaptive", 1, &a->adaptive_h, &a->adaptive_w)) return r->err->code;
  a->global = a->adaptive_h == 1 && a->adaptive_w == 1;
  if (a->global) a->adaptive_h = a->adaptive_w = 0;
  return SN_OK;
}

static sn_status read_pool(reader *r, const cJSON *layer, sn_attr *a) {
  static const char *const modes[] = {"max", "average"}, *const window[] = {"adaptive", "kernel", "stride", "pad",
                                                                            "ceil"};
  uint32_t mode;
  if (read_mode(r, layer, modes, 2, &mode) || read_flag(r, layer, "global", &a->global)) return r->err->code;
  a->pool = mode ? SN_POOL_AVERAGE : SN_POOL_MAX;
  bool global = a->global, adaptive = sn_json_has(layer, window[0]) && !global;
  if (!global && !adaptive) return read_window(r, layer, a) ? r->err->code : read_flag(r, layer, "ceil", &a->ceil);
  for (size_t i = adaptive; i < sizeof window / sizeof window[0]; i++)
    if (sn_json_has(layer, window[i]))
      return sn_json_fail(r->doc, layer, r->err, "%s POOL has no \"%s\": its %s", global ? "a global" : "an adaptive",
                          window[i], global ? "window is the whole image" : "windows follow from its output's size");
  return adaptive ? read_adaptive(r, layer, a) : SN_OK;
}

static sn_status read_lrn(reader *r, const cJSON *layer, sn_attr *a) {
  a->lrn_size = 5;
  a->lrn_alpha = 1e-4;
  a->lrn_beta = 0.75;
  a->lrn_k = 2;
  if (sn_json_has(layer, "size") && read_size(r, layer, "size", 1, &a->lrn_size)) return r->err->code;
  if (read_number(r, layer, "alpha", &a->lrn_alpha) || read_number(r, layer, "beta", &a->lrn_beta)) return r->err->code;
  return read_number(r, layer, "k", &a->lrn_k);
}

static sn_status read_attention(reader *r, const cJSON *layer, sn_attr *a) {
  if (read_size(r, layer, "heads", 1, &a->heads)) return r->err->code;
  a->kv_heads = a->heads;
  if (sn_json_has(layer, "kv_heads") && read_size(r, layer, "kv_heads", 1, &a->kv_heads)) return r->err->code;
  if (sn_json_has(layer, "rows") && read_size(r, layer, "rows", 1, &a->rows)) return r->err->code;
  if (sn_json_has(layer, "window") && read_size(r, layer, "window", 1, &a->window)) return r->err->code;
  if (read_flag(r, layer, "causal", &a->causal) || read_flag(r, layer, "parts", &a->parts)) return r->err->code;
  return read_number(r, layer, "ratio", &a->ratio);
}

static sn_status read_embedding(reader *r, const cJSON *layer, sn_attr *a) {
  return read_size(r, layer, "vocabulary", 1, &a->rows) ? r->err->code
                                                        : read_size(r, layer, "channels", 1, &a->channels);
}

static sn_status read_axis(reader *r, const cJSON *layer, sn_attr *a) {
  uint32_t axis;
  if (read_word(r, layer, "axis", sn_side_names(), SN_SIDES, &axis)) return r->err->code;
  a->axis = (sn_side)axis;
  return SN_OK;
}

static sn_status read_slice(reader *r, const cJSON *layer, sn_attr *a) {
  if (read_axis(r, layer, a) || read_size(r, layer, "count", 1, &a->count)) return r->err->code;
  return sn_json_has(layer, "first") ? read_size(r, layer, "first", 0, &a->first) : SN_OK;
}

static sn_status read_matmul(reader *r, const cJSON *layer, sn_attr *a) {
  return read_flag(r, layer, "turn_first", &a->turn_first) ? r->err->code
                                                           : read_flag(r, layer, "turn_second", &a->turn_second);
}

/* The list under `key`, of one item for channels, height and width each; NULL: failed. */
static const cJSON *read_triple(reader *r, const cJSON *layer, const char *key) {
  const cJSON *list = sn_json_array(r->doc, layer, key, r->err);
  if (!list || cJSON_GetArraySize(list) == SN_SIDES) return list;
  sn_json_fail(r->doc, list, r->err, "\"%s\" has three items: of channels, height and width", key);
  return NULL;
}

static sn_status read_reshape(reader *r, const cJSON *layer, sn_attr *a) {
  const cJSON *list = read_triple(r, layer, "shape"), *item = list ? list->child : NULL;
  for (uint32_t *side = a->shape; item; item = item->next) {
    uint64_t value = 0;
    if (sn_json_item_count(r->doc, item, "shape", 0, SN_MAX_DIM, &value, r->err)) break;
    *side++ = (uint32_t)value;
  }
  return r->err->code;
}

static sn_status read_transpose(reader *r, const cJSON *layer, sn_attr *a) {
  const cJSON *list = read_triple(r, layer, "axes"), *item = list ? list->child : NULL;
  for (sn_side *axis = a->axes; item; item = item->next, axis++) {
    uint32_t i = 0;
    while (i < SN_SIDES && !(cJSON_IsString(item) && strcmp(item->valuestring, sn_side_names()[i]) == 0)) i++;
    if (i == SN_SIDES)
      return sn_json_fail(r->doc, item, r->err,
                          "\"axes\" are \"channels\", \"height\" and \"width\", in the order of the output's");
    *axis = (sn_side)i;
  }
  return r->err->code;
}

static sn_status read_pad(reader *r, const cJSON *layer, sn_attr *a) {
  if (sn_json_has(layer, "pad") && read_pair(r, layer, "pad", 0, &a->pad_h, &a->pad_w)) return r->err->code;
  return read_output_pad(r, layer, a);
}

static sn_status read_resize(reader *r, const cJSON *layer, sn_attr *a) {
  static const char *const modes[] = {"nearest", "bilinear"};
  uint32_t mode;
  if (read_mode(r, layer, modes, 2, &mode)) return r->err->code;
  a->bilinear = mode == 1;
  if (sn_json_has(layer, "size") == sn_json_has(layer, "scale"))
    return sn_json_fail(r->doc, layer, r->err, "a RESIZE has either \"size\" or \"scale\"");
  if (sn_json_has(layer, "scale")) return read_size(r, layer, "scale", 1, &a->scale);
  return read_pair(r, layer, "size", 1, &a->shape[SN_SIDE_HEIGHT], &a->shape[SN_SIDE_WIDTH]);
}

static sn_status read_attributes(reader *r, const cJSON *layer, sn_op op, sn_attr *a) {
  *a = (sn_attr){0};
  switch (op) {
  case SN_CONV:
    return read_conv(r, layer, a);
  case SN_DECONV:
    return read_deconv(r, layer, a);
  case SN_FC:
    return read_fc(r, layer, a);
  case SN_POOL:
    return read_pool(r, layer, a);
  case SN_LRN:
    return read_lrn(r, layer, a);
  case SN_ACT:
    return read_act(r, layer, a);
  case SN_DROPOUT:
    return read_dropout(r, layer, a);
  case SN_JOIN:
    return read_inplace(r, layer, a);
  case SN_SOFTMAX:
    return read_flag(r, layer, "positions", &a->positions);
  case SN_EMBEDDING:
    return read_embedding(r, layer, a);
  case SN_POSITION:
    return read_size(r, layer, "rows", 1, &a->rows);
  case SN_ATTENTION:
    return read_attention(r, layer, a);
  case SN_ROTARY:
    return sn_json_has(layer, "heads") ? read_size(r, layer, "heads", 1, &a->heads) : SN_OK;
  case SN_PROBABILITIES:
    return read_axis(r, layer, a);
  case SN_GROUP_NORM:
    return read_size(r, layer, "groups", 1, &a->groups);
  case SN_MATMUL:
    return read_matmul(r, layer, a);
  case SN_RESHAPE:
    return read_reshape(r, layer, a);
  case SN_TRANSPOSE:
    return read_transpose(r, layer, a);
  case SN_SLICE:
    return read_slice(r, layer, a);
  case SN_PAD:
    return read_pad(r, layer, a);
  case SN_RESIZE:
    return read_resize(r, layer, a);
  default:
    return SN_OK;
  }
}

/* -- inputs ------------------------------------------------------------------------------------------------------ */

static sn_status resolve(reader *r, uint32_t layer, const cJSON *item, uint32_t *out) {
  const char *name = r->list.layers[layer].name;
  if (!cJSON_IsString(item))
    return sn_json_fail(r->doc, item, r->err, "layer \"%s\": an input must be the name of a layer", name);
  *out = sn__json_list_find(&r->list, layer, item->valuestring);
  if (*out != SN_NONE) return SN_OK;
  char hint[260];
  sn__json_list_suggest(&r->list, item->valuestring, hint, sizeof hint);
  return sn_json_fail(r->doc, item, r->err, "layer \"%s\": input \"%.80s\" is not defined%s", name, item->valuestring,
                      hint);
}

/* The layer whose weights it takes. */
static sn_status read_owner(reader *r, uint32_t layer, sn_attr *a) {
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(r->list.layers[layer].item, "weights_of");
  if (!item || resolve(r, layer, item, &a->weights_of)) return r->err->code;
  if (a->weights_of != SN_DATA_LAYER) return SN_OK;
  return sn_json_fail(r->doc, item, r->err, "\"weights_of\" is an EMBEDDING or FC, not the batch");
}

static sn_status reserve_inputs(reader *r, uint32_t count) {
  if (count <= r->room) return SN_OK;
  uint32_t *wider = realloc(r->inputs, 2 * (size_t)count * sizeof *wider);
  if (!wider) return sn_fail_memory(r->err);
  r->inputs = wider;
  r->room = 2 * count;
  return SN_OK;
}

static sn_status resolve_list(reader *r, uint32_t layer, const cJSON *list, uint32_t *count) {
  for (const cJSON *item = list->child; item; item = item->next) {
    if (*count >= SN_MAX_INPUTS)
      return sn_json_fail(r->doc, item, r->err, "a layer with more than %u inputs", SN_MAX_INPUTS);
    if (reserve_inputs(r, *count + 1) || resolve(r, layer, item, &r->inputs[*count])) return r->err->code;
    (*count)++;
  }
  return SN_OK;
}

static sn_status read_inputs(reader *r, uint32_t layer, uint32_t *count) {
  const cJSON *object = r->list.layers[layer].item;
  *count = 0;
  if (reserve_inputs(r, 1)) return r->err->code;
  bool one = sn_json_has(object, "input"), many = sn_json_has(object, "inputs");
  if (one && many) return sn_json_fail(r->doc, object, r->err, "\"input\" and \"inputs\" are both given; keep one");
  if (many) {
    const cJSON *list = sn_json_array(r->doc, object, "inputs", r->err);
    return list ? resolve_list(r, layer, list, count) : r->err->code;
  }
  *count = 1;
  r->inputs[0] = layer - 1;
  return one ? resolve(r, layer, cJSON_GetObjectItemCaseSensitive(object, "input"), &r->inputs[0]) : SN_OK;
}

/* -- the document ------------------------------------------------------------------------------------------------ */

static sn_status check_document(reader *r) {
  static const char *const keys[] = {"snsim_net", "name", "input", "tokens", "layers"};
  const cJSON *root = sn_json_root(r->doc);
  uint64_t version;
  if (!cJSON_IsObject(root) || !sn_json_has(root, keys[0]))
    return sn_json_fail(r->doc, root, r->err, "not a network: an object with \"snsim_net\": 1 is expected");
  if (sn_json_count(r->doc, root, keys[0], 1, 1, &version, r->err)) return r->err->code;
  return sn_json_only(r->doc, root, keys, sizeof keys / sizeof keys[0], r->err);
}

/* A batch of token sequences; `length` in place of the file's, 0: the file's. */
static sn_status begin_tokens(reader *r, const char *name, uint32_t batch, uint32_t length) {
  const cJSON *root = sn_json_root(r->doc);
  uint64_t tokens;
  if (sn_json_has(root, "input"))
    return sn_json_fail(r->doc, root, r->err, "\"input\" and \"tokens\" are both given; keep one");
  if (sn_json_count(r->doc, root, "tokens", 1, SN_MAX_DIM, &tokens, r->err)) return r->err->code;
  r->b = sn_builder_new_tokens(name, batch, length ? length : (uint32_t)tokens, r->err);
  return r->err->code;
}

/* Another height and width of the images than the file's: `side` has channels, height, width. */
static sn_status set_image(reader *r, const cJSON *input, uint32_t image, uint64_t side[3]) {
  if (!image) return SN_OK;
  if (side[1] != side[2])
    return sn_json_fail(r->doc, input, r->err, "its images of %ux%u are not square; change \"input\" instead",
                        (unsigned)side[1], (unsigned)side[2]);
  side[1] = side[2] = image;
  return SN_OK;
}

static sn_status begin(reader *r, uint32_t batch, uint32_t image) {
  const cJSON *root = sn_json_root(r->doc);
  const char *name = sn_json_text(r->doc, root, "name", r->err);
  bool tokens = sn_json_has(root, "tokens");
  const cJSON *input = name && !tokens ? sn_json_array(r->doc, root, "input", r->err) : NULL;
  if (!name || (!tokens && !input)) return r->err->code;
  if (!*name || strlen(name) >= SN_NET_NAME)
    return sn_json_fail(r->doc, cJSON_GetObjectItemCaseSensitive(root, "name"), r->err,
                        "the network's name must have 1 to 200 bytes");
  if (tokens) return begin_tokens(r, name, batch, image);
  uint64_t side[3] = {0};
  const cJSON *at = input->child;
  for (int i = 0; i < 3 && at; i++, at = at->next)
    if (sn_json_item_count(r->doc, at, "input", 1, SN_MAX_DIM, &side[i], r->err)) return r->err->code;
  if (at || !side[2])
    return sn_json_fail(r->doc, input, r->err, "\"input\" must be three numbers: [channels, height, width]");
  if (set_image(r, input, image, side) != SN_OK) return r->err->code;
  r->b = sn_builder_new(name, batch, (uint32_t)side[0], (uint32_t)side[1], (uint32_t)side[2], r->err);
  return r->err->code;
}

static sn_status declare(reader *r, uint32_t layer) {
  const sn__json_layer *l = &r->list.layers[layer];
  sn_attr attr;
  uint32_t n_inputs;
  sn_op op = sn_op_by_name(cJSON_GetObjectItemCaseSensitive(l->item, "op")->valuestring);
  if (read_attributes(r, l->item, op, &attr) || read_owner(r, layer, &attr) || read_inputs(r, layer, &n_inputs))
    return r->err->code;
  /* Its own error sticks in the builder; going on would only cost time. */
  return sn_build_layer(r->b, op, &attr, r->inputs, n_inputs, l->name) == SN_NONE ? SN_BAD_INPUT : SN_OK;
}

/* Puts the file and line of the layer an error is about before it. */
static void add_place(reader *r, uint32_t layer, sn_err *reason) {
  if (reason->code != SN_BAD_INPUT) {
    sn_fail(r->err, reason->code, "%s", reason->text);
    return;
  }
  const cJSON *item = NULL;
  if (layer == SN_DATA_LAYER) item = cJSON_GetObjectItemCaseSensitive(sn_json_root(r->doc), "input");
  if (layer != SN_DATA_LAYER && layer < r->list.n_layers) item = r->list.layers[layer].item;
  sn_json_fail(r->doc, item, r->err, "%s", reason->text);
}

static sn_net *finish(reader *r) {
  sn_err reason = SN_ERR_INIT;
  uint32_t bad_layer;
  sn_net *net = sn_builder_finish(r->b, &bad_layer, &reason);
  r->b = NULL;
  if (!net) add_place(r, bad_layer, &reason);
  return net;
}

static sn_net *read_net(reader *r, uint32_t batch, uint32_t image) {
  if (check_document(r) || begin(r, batch, image) || sn__json_list_read(&r->list, r->doc, check_layer, r->err))
    return NULL;
  for (uint32_t i = 1; i < r->list.n_layers; i++)
    if (declare(r, i) != SN_OK) break;
  return r->err->code == SN_OK ? finish(r) : NULL;
}

static sn_net *read_and_free(sn_json *doc, uint32_t depth, uint32_t batch, uint32_t image, sn_err *err) {
  if (!doc) return NULL;
  reader r = {.doc = doc, .err = err, .list = {.depth = depth}};
  sn_net *net = read_net(&r, batch, image);
  sn__builder_free(r.b); /* after an error before finish() */
  free(r.inputs);
  sn__json_list_free(&r.list);
  sn_json_free(doc);
  return net;
}

sn_net *sn_net_from_json(const char *file, const char *text, uint64_t bytes, uint32_t batch, sn_err *err) {
  return read_and_free(sn_json_parse(file, text, bytes, err), 0, batch, 0, err);
}

sn_net *sn_net_from_file(const char *path, uint32_t batch, sn_err *err) {
  return sn__net_from_file(path, 0, batch, 0, err);
}

sn_net *sn__net_from_file(const char *path, uint32_t depth, uint32_t batch, uint32_t image, sn_err *err) {
  return read_and_free(sn_json_load(path, err), depth, batch, image, err);
}
