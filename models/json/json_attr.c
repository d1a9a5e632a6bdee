/* Operators and attributes of a layer in a JSON network; the keys are those of docs/networks.md. What is wrong goes on
 * the list of mistakes, and the next key is read. */
#include "models/json/json_attr.h"

#include "base/text.h"
#include "models/build/build_internal.h"
#include "models/op/op.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* -- keys -------------------------------------------------------------------------------------------------------- */

#define COMMON "name", "op", "input", "inputs"
enum { MAX_KEYS = 14 };

/* The operators that may be declared, and the keys of each. */
static const struct {
  sn_op op;
  const char *keys[MAX_KEYS];
} rules[] = {
    {SN_CONV, {COMMON, "channels", "kernel", "stride", "pad", "dilation", "groups", "bias", "weights_of"}},
    {SN_DECONV,
     {COMMON, "channels", "kernel", "stride", "pad", "output_pad", "dilation", "groups", "bias", "weights_of"}},
    {SN_FC, {COMMON, "channels", "bias", "positions", "router", "weights_of"}},
    {SN_POOL, {COMMON, "mode", "kernel", "stride", "pad", "dilation", "ceil", "global", "adaptive"}},
    {SN_ACT, {COMMON, "mode", "slope", "slopes", "inplace", "weights_of"}},
    {SN_LRN, {COMMON, "size", "alpha", "beta", "k"}},
    {SN_BN, {COMMON, "weights_of"}},
    {SN_DROPOUT, {COMMON, "ratio", "inplace", "images"}},
    {SN_SOFTMAX, {COMMON, "positions", "loss"}},
    {SN_JOIN, {COMMON, "inplace"}},
    {SN_CONCAT, {COMMON}},
    {SN_MUL, {COMMON}},
    {SN_SCALE, {COMMON, "weights_of"}},
    {SN_LAYER_NORM, {COMMON, "weights_of"}},
    {SN_RMS_NORM, {COMMON, "fused", "plus_one", "weights_of"}},
    {SN_EMBEDDING, {COMMON, "vocabulary", "channels", "weights_of"}},
    {SN_POSITION, {COMMON, "rows", "weights_of"}},
    {SN_TOKEN, {COMMON, "weights_of"}},
    {SN_TAKE, {COMMON}},
    {SN_ATTENTION,
     {COMMON, "heads", "kv_heads", "causal", "parts", "ratio", "cap", "rows", "window", "shift", "weights_of"}},
    {SN_ROTARY, {COMMON, "heads"}},
    {SN_PROBABILITIES, {COMMON, "axis"}},
    {SN_GROUP_NORM, {COMMON, "groups", "weights_of"}},
    {SN_MATMUL, {COMMON, "turn_first", "turn_second"}},
    {SN_RESHAPE, {COMMON, "shape"}},
    {SN_TRANSPOSE, {COMMON, "axes"}},
    {SN_SLICE, {COMMON, "axis", "first", "count", "step", "turned"}},
    {SN_PAD, {COMMON, "pad", "output_pad"}},
    {SN_RESIZE, {COMMON, "mode", "size", "scale"}},
    {SN_EXPERTS, {COMMON, "channels", "experts", "chosen", "weights_of"}},
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
    {"moe", SN_EXPERTS},
    {"mixture", SN_EXPERTS},
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

static void fail_op(sn__mistakes *m, const cJSON *layer, const char *name) {
  const char *names[RULES];
  char hint[320] = "";
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(layer, "op");
  for (size_t i = 0; i < RULES; i++) names[i] = sn_op_table[rules[i].op].name;
  if (!sn__mistakes_seen(m) || strlen(name) > SN__MAX_NAME ||
      !*sn_text_suggest(translate(name), names, RULES, hint, sizeof hint)) {
    size_t used = (size_t)snprintf(hint, sizeof hint, "; there are ");
    for (size_t i = 0; i < RULES && used < sizeof hint; i++)
      used += (size_t)snprintf(hint + used, sizeof hint - used, "%s%s", i ? ", " : "", names[i]);
  }
  MISTAKE(m, item, "unknown op \"%.60s\"%s", name, hint);
}

bool sn__json_op(sn__mistakes *m, const cJSON *layer, sn_op *op) {
  const char *name = sn_json_text(m->doc, layer, "op", &m->at);
  sn__mistakes_note(m, layer);
  if (!name) return false;
  sn_op known = sn_op_by_name(name);
  for (size_t i = 0; i < RULES; i++)
    if (rules[i].op == known) {
      *op = known;
      return true;
    }
  fail_op(m, layer, name);
  return false;
}

/* Only keys that the layer's operator has; false where there are others, which may have been meant for those missing.
 */
static bool check_keys(sn__mistakes *m, const cJSON *layer, sn_op op) {
  size_t rule = 0, count = 0;
  uint64_t seen = 0;
  bool good = true;
  while (rules[rule].op != op) rule++;
  while (count < MAX_KEYS && rules[rule].keys[count]) count++;
  for (const cJSON *key = layer->child; key; key = key->next) {
    if (sn_json_known(m->doc, key, rules[rule].keys, count, &seen, &m->at) == SN_OK) continue;
    sn__mistakes_note(m, layer);
    good = false;
  }
  return good;
}

/* -- attributes: each reader leaves a missing key at its default, and a wrong one -------------------------------- */

typedef struct reader {
  sn__mistakes *m;
  const sn__json_list *list;
  uint32_t at; /* the layer in the list */
  const cJSON *layer;
  bool guessed; /* the layer has unknown keys, so that a key that is missing is not worth a word */
} reader;

static bool has(const reader *r, const char *key) {
  return sn_json_has(r->layer, key);
}

/* What the use of the layer's block gives for "$name"; NULL where it gives nothing. */
static const cJSON *given(const reader *r, const cJSON *item) {
  const cJSON *value = item ? sn__json_list_value(r->list, r->at, item) : NULL;
  if (item && !value)
    MISTAKE(r->m, item, "\"%.60s\" is not given; write \"with\": {\"%.60s\": ...} where the block is used",
            item->valuestring, item->valuestring + 1);
  return value;
}

/* The value under a key; NULL where it has none. */
static const cJSON *may(const reader *r, const char *key) {
  return given(r, cJSON_GetObjectItemCaseSensitive(r->layer, key));
}

static void item_size(const reader *r, const cJSON *item, const char *key, uint32_t low, uint32_t *out) {
  uint64_t value = *out;
  item = given(r, item);
  if (item && sn_json_item_count(r->m->doc, item, key, low, SN_MAX_DIM, &value, &r->m->at))
    sn__mistakes_note(r->m, r->layer);
  *out = (uint32_t)value;
}

static const cJSON *required(const reader *r, const char *key) {
  if (!has(r, key) && !r->guessed) MISTAKE(r->m, r->layer, "\"%s\" is missing", key);
  return may(r, key);
}

static void read_size(const reader *r, const char *key, uint32_t low, uint32_t *out) {
  const cJSON *item = required(r, key);
  if (item) item_size(r, item, key, low, out);
}

static void may_size(const reader *r, const char *key, uint32_t low, uint32_t *out) {
  if (has(r, key)) read_size(r, key, low, out);
}

/* A size along each axis; `depth` NULL: planes have none. */
typedef struct extent {
  uint32_t *depth, *height, *width;
} extent;

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
static void read_extent(const reader *r, const char *key, uint32_t low, extent e) {
  const cJSON *item = required(r, key);
  const bool deep = e.depth && r->list->volumes;
  if (!item) return;
  if (!cJSON_IsArray(item)) {
    item_size(r, item, key, low, e.height);
    *e.width = *e.height;
    if (deep) *e.depth = *e.height;
    return;
  }
  const int count = cJSON_GetArraySize(item);
  const cJSON *at = item->child;
  if (count != 2 && !(count == 3 && deep)) {
    fail_extent(r, item, key, deep);
    return;
  }
  if (count == 3) {
    item_size(r, at, key, low, e.depth);
    at = at->next;
  }
  item_size(r, at, key, low, e.height);
  item_size(r, at->next, key, low, e.width);
}

static void may_extent(const reader *r, const char *key, uint32_t low, extent e) {
  if (has(r, key)) read_extent(r, key, low, e);
}

static void read_flag(const reader *r, const char *key, bool *out) {
  const cJSON *item = may(r, key);
  if (item && !cJSON_IsBool(item)) MISTAKE(r->m, item, "\"%s\" must be true or false", key);
  if (item) *out = cJSON_IsTrue(item);
}

/* Which numbers are allowed the operator itself says (models/op/op.c). */
static void read_number(const reader *r, const char *key, double *out) {
  const cJSON *item = may(r, key);
  if (item && !cJSON_IsNumber(item)) MISTAKE(r->m, item, "\"%s\" must be a number", key);
  if (item && cJSON_IsNumber(item)) *out = item->valuedouble;
}

static void read_window(const reader *r, sn_attr *a) {
  a->stride_h = a->stride_w = 1;
  read_extent(r, "kernel", 1, (extent){&a->kernel_d, &a->kernel_h, &a->kernel_w});
  may_extent(r, "stride", 1, (extent){&a->stride_d, &a->stride_h, &a->stride_w});
  may_extent(r, "pad", 0, (extent){&a->pad_d, &a->pad_h, &a->pad_w});
  may_extent(r, "dilation", 1, (extent){&a->dilation_d, &a->dilation_h, &a->dilation_w});
}

static void read_conv(const reader *r, sn_attr *a) {
  a->groups = 1;
  a->bias = true;
  read_size(r, "channels", 1, &a->channels);
  read_window(r, a);
  may_size(r, "groups", 1, &a->groups);
  read_flag(r, "bias", &a->bias);
  /* of a DECONV */
  may_extent(r, "output_pad", 0, (extent){&a->output_pad_d, &a->output_pad_h, &a->output_pad_w});
}

static void read_fc(const reader *r, sn_attr *a) {
  a->bias = true;
  read_size(r, "channels", 1, &a->channels);
  read_flag(r, "bias", &a->bias);
  read_flag(r, "positions", &a->positions);
  read_flag(r, "router", &a->router);
}

/* One of a few words, by its number; the first one is the default. */
static uint32_t read_word(const reader *r, const char *key, const char *const *modes, uint32_t count) {
  const cJSON *item = may(r, key);
  if (!item) return 0;
  if (!cJSON_IsString(item)) {
    MISTAKE(r->m, item, "\"%s\" must be a text in quotes", key);
    return 0;
  }
  const char *mode = item->valuestring;
  char hint[80] = "", all[200] = "";
  size_t used = 0;
  for (uint32_t i = 0; i < count && used < sizeof all; i++) {
    if (strcmp(mode, modes[i]) == 0) return i;
    const char *before = i == 0 ? "" : i + 1 < count ? ", " : " or ";
    used += (size_t)snprintf(all + used, sizeof all - used, "%s\"%s\"", before, modes[i]);
  }
  if (sn__mistakes_seen(r->m) && strlen(mode) <= SN__MAX_NAME) sn_text_suggest(mode, modes, count, hint, sizeof hint);
  MISTAKE(r->m, r->layer, "\"%s\" is %s, not \"%.60s\"%s", key, all, mode, hint);
  return 0;
}

static void read_inplace(const reader *r, sn_attr *a) {
  bool inplace = false;
  if (!has(r, "inplace")) return;
  read_flag(r, "inplace", &inplace);
  a->inplace = inplace ? SN_INPLACE_YES : SN_INPLACE_NO;
}

static void read_softmax(const reader *r, sn_attr *a) {
  read_flag(r, "positions", &a->positions);
  a->loss = (sn_loss)read_word(r, "loss", sn_loss_names(), SN_LOSSES);
  if (a->loss == SN_LOSS_MSE && has(r, "positions"))
    MISTAKE(r->m, r->layer, "a SOFTMAX of loss \"mse\" has no \"positions\": it is of every number");
}

static void read_act(const reader *r, sn_attr *a) {
  a->act = (sn_act_mode)read_word(r, "mode", sn_act_names(), SN_ACT_MODES);
  bool sloped = a->act == SN_ACT_LEAKY || a->act == SN_ACT_TIMES;
  a->slope = a->act == SN_ACT_LEAKY ? 0.01 : a->act == SN_ACT_TIMES ? 1 : 0;
  if (!sloped && has(r, "slope") && !r->m->failed)
    MISTAKE(r->m, r->layer, "an ACT of mode \"%s\" has no \"slope\"; \"leaky\" and \"times\" have",
            sn_act_names()[a->act]);
  read_number(r, "slope", &a->slope);
  if (a->act == SN_ACT_PRELU)
    a->slopes = 1, may_size(r, "slopes", 1, &a->slopes);
  else if (has(r, "slopes") && !r->m->failed)
    MISTAKE(r->m, r->layer, "an ACT of mode \"%s\" has no \"slopes\"; \"prelu\" has", sn_act_names()[a->act]);
  read_inplace(r, a);
}

static void read_dropout(const reader *r, sn_attr *a) {
  a->ratio = 0.5;
  read_number(r, "ratio", &a->ratio);
  read_flag(r, "images", &a->images);
  read_inplace(r, a);
}

/* Output of one pixel is what a global POOL has. */
static void read_adaptive(const reader *r, sn_attr *a) {
  read_extent(r, "adaptive", 1, (extent){&a->adaptive_d, &a->adaptive_h, &a->adaptive_w});
  a->global = a->adaptive_h == 1 && a->adaptive_w == 1 && a->adaptive_d == (r->list->volumes ? 1 : 0);
  if (a->global) a->adaptive_d = a->adaptive_h = a->adaptive_w = 0;
}

static void read_pool(const reader *r, sn_attr *a) {
  static const char *const modes[] = {"max", "average"}, *const window[] = {"adaptive", "kernel",   "stride",
                                                                            "pad",      "dilation", "ceil"};
  a->pool = read_word(r, "mode", modes, 2) ? SN_POOL_AVERAGE : SN_POOL_MAX;
  read_flag(r, "global", &a->global);
  bool global = a->global, adaptive = has(r, window[0]) && !global;
  if (!global && !adaptive) {
    read_window(r, a);
    read_flag(r, "ceil", &a->ceil);
    return;
  }
  for (size_t i = adaptive; i < sizeof window / sizeof window[0]; i++)
    if (has(r, window[i]))
      MISTAKE(r->m, r->layer, "%s POOL has no \"%s\": its %s", global ? "a global" : "an adaptive", window[i],
              global ? "window is the whole image" : "windows follow from its output's size");
  if (adaptive) read_adaptive(r, a);
}

static void read_lrn(const reader *r, sn_attr *a) {
  a->lrn_size = 5;
  a->lrn_alpha = 1e-4;
  a->lrn_beta = 0.75;
  a->lrn_k = 2;
  may_size(r, "size", 1, &a->lrn_size);
  read_number(r, "alpha", &a->lrn_alpha);
  read_number(r, "beta", &a->lrn_beta);
  read_number(r, "k", &a->lrn_k);
}

static void read_attention(const reader *r, sn_attr *a) {
  read_size(r, "heads", 1, &a->heads);
  a->kv_heads = a->heads;
  may_size(r, "kv_heads", 1, &a->kv_heads);
  may_size(r, "rows", 1, &a->rows);
  may_size(r, "window", 1, &a->window);
  may_size(r, "shift", 0, &a->shift);
  read_flag(r, "causal", &a->causal);
  read_flag(r, "parts", &a->parts);
  read_number(r, "ratio", &a->ratio);
  read_number(r, "cap", &a->cap);
}

static void read_embedding(const reader *r, sn_attr *a) {
  read_size(r, "vocabulary", 1, &a->rows);
  read_size(r, "channels", 1, &a->channels);
}

static void read_axis(const reader *r, sn_attr *a) {
  a->axis = (sn_side)read_word(r, "axis", sn_side_names(), SN_SIDES);
}

static void read_slice(const reader *r, sn_attr *a) {
  read_axis(r, a);
  read_size(r, "count", 1, &a->count);
  may_size(r, "first", 0, &a->first);
  may_size(r, "step", 1, &a->step);
  read_flag(r, "turned", &a->turned);
}

static void read_matmul(const reader *r, sn_attr *a) {
  read_flag(r, "turn_first", &a->turn_first);
  read_flag(r, "turn_second", &a->turn_second);
}

/* The first item of the list under `key`, of one for channels, height and width each; NULL: it is no such list. */
static const cJSON *read_triple(const reader *r, const char *key) {
  const cJSON *list = required(r, key);
  if (!list) return NULL;
  if (cJSON_IsArray(list) && cJSON_GetArraySize(list) == SN_SIDES) return list->child;
  if (cJSON_IsArray(list))
    MISTAKE(r->m, list, "\"%s\" has three items: of channels, height and width", key);
  else
    MISTAKE(r->m, list, "\"%s\" must be a list: [...]", key);
  return NULL;
}

static void read_reshape(const reader *r, sn_attr *a) {
  uint32_t *side = a->shape;
  for (const cJSON *item = read_triple(r, "shape"); item; item = item->next) item_size(r, item, "shape", 0, side++);
}

static void read_transpose(const reader *r, sn_attr *a) {
  sn_side *axis = a->axes;
  for (const cJSON *item = read_triple(r, "axes"); item; item = item->next, axis++) {
    uint32_t i = 0;
    while (i < SN_SIDES && !(cJSON_IsString(item) && strcmp(item->valuestring, sn_side_names()[i]) == 0)) i++;
    if (i == SN_SIDES)
      MISTAKE(r->m, item, "\"axes\" are \"channels\", \"height\" and \"width\", in the order of the output's");
    else
      *axis = (sn_side)i;
  }
}

static void read_pad(const reader *r, sn_attr *a) {
  may_extent(r, "pad", 0, (extent){NULL, &a->pad_h, &a->pad_w});
  may_extent(r, "output_pad", 0, (extent){NULL, &a->output_pad_h, &a->output_pad_w});
}

static void read_resize(const reader *r, sn_attr *a) {
  static const char *const modes[] = {"nearest", "bilinear"};
  a->bilinear = read_word(r, "mode", modes, 2) == 1;
  if (has(r, "size") == has(r, "scale") && (has(r, "size") || !r->guessed))
    MISTAKE(r->m, r->layer, "a RESIZE has either \"size\" or \"scale\"");
  may_size(r, "scale", 1, &a->scale);
  may_extent(r, "size", 1, (extent){NULL, &a->shape[SN_SIDE_HEIGHT], &a->shape[SN_SIDE_WIDTH]});
}

static void read_experts(const reader *r, sn_attr *a) {
  read_size(r, "channels", 1, &a->channels);
  read_size(r, "experts", 1, &a->experts);
  read_size(r, "chosen", 1, &a->chosen);
}

void sn__json_attributes(const sn__json_list *list, uint32_t at, sn_op op, sn_attr *a) {
  sn__mistakes *m = list->mistakes;
  const cJSON *layer = list->layers[at].item;
  const reader reading = {m, list, at, layer, !check_keys(m, layer, op)}, *r = &reading;
  *a = (sn_attr){0};
  switch (op) {
  case SN_CONV:
  case SN_DECONV:
    read_conv(r, a);
    break;
  case SN_FC:
    read_fc(r, a);
    break;
  case SN_POOL:
    read_pool(r, a);
    break;
  case SN_LRN:
    read_lrn(r, a);
    break;
  case SN_ACT:
    read_act(r, a);
    break;
  case SN_DROPOUT:
    read_dropout(r, a);
    break;
  case SN_JOIN:
    read_inplace(r, a);
    break;
  case SN_EXPERTS:
    read_experts(r, a);
    break;
  case SN_RMS_NORM:
    read_flag(r, "fused", &a->fused);
    read_flag(r, "plus_one", &a->plus_one);
    break;
  case SN_SOFTMAX:
    read_softmax(r, a);
    break;
  case SN_EMBEDDING:
    read_embedding(r, a);
    break;
  case SN_POSITION:
    read_size(r, "rows", 1, &a->rows);
    break;
  case SN_ATTENTION:
    read_attention(r, a);
    break;
  case SN_ROTARY:
    may_size(r, "heads", 1, &a->heads);
    break;
  case SN_PROBABILITIES:
    read_axis(r, a);
    break;
  case SN_GROUP_NORM:
    read_size(r, "groups", 1, &a->groups);
    break;
  case SN_MATMUL:
    read_matmul(r, a);
    break;
  case SN_RESHAPE:
    read_reshape(r, a);
    break;
  case SN_TRANSPOSE:
    read_transpose(r, a);
    break;
  case SN_SLICE:
    read_slice(r, a);
    break;
  case SN_PAD:
    read_pad(r, a);
    break;
  case SN_RESIZE:
    read_resize(r, a);
    break;
  default:
    break;
  }
}
