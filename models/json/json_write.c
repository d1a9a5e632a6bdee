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

static void put_number(object *o, const char *key, double value) {
  put(o, key, cJSON_CreateNumber(value));
}

static void put_flag(object *o, const char *key, bool value) {
  put(o, key, cJSON_CreateBool(value));
}

static void put_text(object *o, const char *key, const char *text) {
  put(o, key, cJSON_CreateString(text));
}

static void put_pair(object *o, const char *key, uint32_t h, uint32_t w) {
  if (h == w)
    put_number(o, key, h);
  else
    put(o, key, cJSON_CreateIntArray((const int[]){(int)h, (int)w}, 2));
}

/* In a network of volumes with the depth. */
static void put_extent(object *o, const char *key, uint32_t d, uint32_t h, uint32_t w) {
  if (!o->volumes || (d == h && h == w))
    put_pair(o, key, h, w);
  else
    put(o, key, cJSON_CreateIntArray((const int[]){(int)d, (int)h, (int)w}, 3));
}

static uint32_t or_one(uint32_t size) {
  return size > 0 ? size : 1;
}

static void put_window(object *o, const sn_attr *a) {
  put_extent(o, "kernel", or_one(a->kernel_d), a->kernel_h, a->kernel_w);
  put_extent(o, "stride", or_one(a->stride_d), a->stride_h, a->stride_w);
  put_extent(o, "pad", a->pad_d, a->pad_h, a->pad_w);
  if (a->dilation_d > 1 || a->dilation_h > 1 || a->dilation_w > 1)
    put_extent(o, "dilation", or_one(a->dilation_d), or_one(a->dilation_h), or_one(a->dilation_w));
}

/* Without a depth of its own it is of each plane by itself. */
static void put_adaptive(object *o, const sn_attr *a) {
  if (a->adaptive_d > 0)
    put_extent(o, "adaptive", a->adaptive_d, a->adaptive_h, a->adaptive_w);
  else if (o->volumes)
    put(o, "adaptive", cJSON_CreateIntArray((const int[]){(int)a->adaptive_h, (int)a->adaptive_w}, 2));
  else
    put_pair(o, "adaptive", a->adaptive_h, a->adaptive_w);
}

static void put_pool(object *o, const sn_attr *a) {
  put_text(o, "mode", a->pool == SN_POOL_MAX ? "max" : "average");
  if (a->global)
    put_flag(o, "global", true);
  else if (a->adaptive_h)
    put_adaptive(o, a);
  else {
    put_window(o, a);
    put_flag(o, "ceil", a->ceil);
  }
}

static void put_lrn(object *o, const sn_attr *a) {
  put_number(o, "size", a->lrn_size);
  put_number(o, "alpha", a->lrn_alpha);
  put_number(o, "beta", a->lrn_beta);
  put_number(o, "k", a->lrn_k);
}

static void put_attention(object *o, const sn_attr *a) {
  put_number(o, "heads", a->heads);
  put_number(o, "kv_heads", a->kv_heads);
  put_flag(o, "causal", a->causal);
  put_flag(o, "parts", a->parts);
  if (a->rows) put_number(o, "rows", a->rows);
  if (a->window) put_number(o, "window", a->window);
  if (a->shift) put_number(o, "shift", a->shift);
  put_number(o, "ratio", a->ratio);
  if (a->cap > 0) put_number(o, "cap", a->cap);
}

static void put_slice(object *o, const sn_attr *a) {
  put_text(o, "axis", sn_side_names()[a->axis]);
  put_number(o, "first", a->first);
  put_number(o, "count", a->count);
  if (a->step > 1) put_number(o, "step", a->step);
  if (a->turned) put_flag(o, "turned", true);
}

static void put_matmul(object *o, const sn_attr *a) {
  put_flag(o, "turn_first", a->turn_first);
  put_flag(o, "turn_second", a->turn_second);
}

static void put_reshape(object *o, const sn_attr *a) {
  put(o, "shape", cJSON_CreateIntArray((const int[]){(int)a->shape[0], (int)a->shape[1], (int)a->shape[2]}, SN_SIDES));
}

static void put_transpose(object *o, const sn_attr *a) {
  const char *const *names = sn_side_names();
  put(o, "axes",
      cJSON_CreateStringArray((const char *const[]){names[a->axes[0]], names[a->axes[1]], names[a->axes[2]]},
                              SN_SIDES));
}

static void put_resize(object *o, const sn_attr *a) {
  put_text(o, "mode", a->bilinear ? "bilinear" : "nearest");
  if (a->scale)
    put_number(o, "scale", a->scale);
  else
    put_pair(o, "size", a->shape[SN_SIDE_HEIGHT], a->shape[SN_SIDE_WIDTH]);
}

static void put_experts(object *o, const sn_attr *a) {
  put_number(o, "channels", a->channels);
  put_number(o, "experts", a->experts);
  put_number(o, "chosen", a->chosen);
}

/* Of operators that multiply and rearrange. */
static void put_arrangement(object *o, sn_op op, const sn_attr *a) {
  if (op == SN_PROBABILITIES) put_text(o, "axis", sn_side_names()[a->axis]);
  if (op == SN_MATMUL) put_matmul(o, a);
  if (op == SN_RESHAPE) put_reshape(o, a);
  if (op == SN_TRANSPOSE) put_transpose(o, a);
  if (op == SN_SLICE) put_slice(o, a);
  if (op == SN_PAD) put_pair(o, "pad", a->pad_h, a->pad_w);
  if (op == SN_RESIZE) put_resize(o, a);
  if (op == SN_EXPERTS) put_experts(o, a);
}

static void put_attributes(object *o, sn_op op, const sn_attr *a) {
  bool convolves = sn_op_table[op].convolves;
  if (convolves || op == SN_FC) put_number(o, "channels", a->channels);
  if (convolves) put_window(o, a);
  if (op == SN_DECONV) put_extent(o, "output_pad", a->output_pad_d, a->output_pad_h, a->output_pad_w);
  if (op == SN_PAD) put_pair(o, "output_pad", a->output_pad_h, a->output_pad_w);
  if (convolves || op == SN_GROUP_NORM) put_number(o, "groups", a->groups);
  if (convolves || op == SN_FC) put_flag(o, "bias", a->bias);
  if ((op == SN_FC || op == SN_SOFTMAX) && a->positions) put_flag(o, "positions", true);
  if (op == SN_FC && a->router) put_flag(o, "router", true);
  if (op == SN_SOFTMAX && a->loss != SN_LOSS_CROSS_ENTROPY) put_text(o, "loss", sn_loss_names()[a->loss]);
  if (op == SN_EMBEDDING) put_number(o, "vocabulary", a->rows);
  if (op == SN_EMBEDDING) put_number(o, "channels", a->channels);
  if (op == SN_RMS_NORM && a->fused) put_flag(o, "fused", true);
  if (op == SN_RMS_NORM && a->plus_one) put_flag(o, "plus_one", true);
  if (op == SN_POSITION) put_number(o, "rows", a->rows);
  if (op == SN_ATTENTION) put_attention(o, a);
  if (op == SN_ROTARY && a->heads) put_number(o, "heads", a->heads);
  put_arrangement(o, op, a);
  if (op == SN_POOL) put_pool(o, a);
  if (op == SN_LRN) put_lrn(o, a);
  if (op == SN_ACT) put_text(o, "mode", sn_act_names()[a->act]);
  if (op == SN_ACT && (a->act == SN_ACT_LEAKY || a->act == SN_ACT_TIMES)) put_number(o, "slope", a->slope);
  if (op == SN_ACT && a->act == SN_ACT_PRELU) put_number(o, "slopes", a->slopes);
  if (op == SN_DROPOUT) put_number(o, "ratio", a->ratio);
  if (op == SN_DROPOUT && a->images) put_flag(o, "images", true);
  if (a->inplace != SN_INPLACE_UNSET) put_flag(o, "inplace", a->inplace == SN_INPLACE_YES);
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
  put_attributes(&o, layer->op, layer->attr);
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
