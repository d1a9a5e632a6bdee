/* Layouts of tensor parallel; see the header. Layers are looked at in the order in which they run, each once its inputs'
 * layouts are known. */
#include "sim/parallel/tensor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct finder {
  const sn_route *route;
  const sn_net *net;
  const sn_mesh *mesh;
  uint32_t ranks;
  sn__tensor_layout *found;
  sn_err *err;
  /* sizes */
  uint64_t common;          /* greatest common divisor of all that is to be divided */
  uint64_t count;           /* the first that is not; 0: none */
  const char *what, *layer; /* of that */
} finder;

#define KNOWN "tensor parallel (tp) is of decoders: llm:, llama, mistral, qwen2.5, phi3, gemma2, megatron"

/* ---- layouts ---- */

static sn_status refuse(finder *f, const sn_layer *layer, const char *why) {
  return sn_fail(f->err, SN_BAD_INPUT, "network %s: layer %s %s; " KNOWN, f->net->name, layer->name, why);
}

static sn__layout input_layout(const finder *f, const sn_layer *layer, uint32_t i) {
  return f->found->layers[sn_layer_source(f->net, layer, i)].layout;
}

/* That of all inputs; SN__UNKNOWN: they have several. */
static sn__layout common_layout(const finder *f, const sn_layer *layer) {
  sn__layout layout = input_layout(f, layer, 0);
  for (uint32_t i = 1; i < layer->n_inputs; i++)
    if (input_layout(f, layer, i) != layout) return SN__UNKNOWN;
  return layout;
}

/* That of values between products. */
static sn__layout layout_between(const finder *f) {
  return f->mesh->sequence_whole ? SN__WHOLE : SN__BY_POSITIONS;
}

static bool is_norm(const sn_layer *layer) {
  return layer->op == SN_RMS_NORM || layer->op == SN_LAYER_NORM;
}

/* A product of what is split by positions has it gathered, by the norm that made it. */
static sn_status lay_out_product(finder *f, const sn_layer *layer, sn__tensor_layer *own) {
  uint32_t source = sn_layer_source(f->net, layer, 0);
  sn__layout input = input_layout(f, layer, 0);
  own->split = (uint8_t)sn_division_of(f->net, layer);
  if (own->split == SN_BY_INPUTS && input == SN__BY_FEATURES) {
    own->layout = (uint8_t)layout_between(f);
    return SN_OK;
  }
  if (own->split != SN_BY_OUTPUTS || input != layout_between(f) || !is_norm(&f->net->layers[source]))
    return refuse(f, layer, "is a product of neither a norm's output nor what products have split");
  f->found->layers[source].gathers = true;
  f->found->head = (uint32_t)(layer - f->net->layers);
  own->layout = SN__BY_FEATURES;
  return SN_OK;
}

/* Works on what each rank has, as long as all operands lie the same way. */
static sn_status lay_out_beside(finder *f, const sn_layer *layer, sn__tensor_layer *own, bool features) {
  own->layout = (uint8_t)common_layout(f, layer);
  if (own->layout == SN__UNKNOWN || layer->parameters > 0)
    return refuse(f, layer, "has operands that lie on the ranks in different ways");
  return !features || own->layout == SN__BY_FEATURES
             ? SN_OK
             : refuse(f, layer, "works along features or positions, and is of no product");
}

static sn_status lay_out(finder *f, uint32_t index) {
  const sn_layer *layer = &f->net->layers[index];
  sn__tensor_layer *own = &f->found->layers[index];
  switch (layer->op) {
  case SN_EMBEDDING:
    own->split = SN_BY_WORDS;
    own->layout = (uint8_t)layout_between(f);
    return SN_OK;
  case SN_FORK:
    own->layout = (uint8_t)input_layout(f, layer, 0);
    return SN_OK;
  case SN_POSITION:
  case SN_RMS_NORM:
  case SN_LAYER_NORM:
    own->layout = (uint8_t)layout_between(f);
    return input_layout(f, layer, 0) == own->layout
               ? SN_OK
               : refuse(f, layer, "is of positions, and reads what products have split by features");
  case SN_FC:
    return lay_out_product(f, layer, own);
  case SN_ATTENTION:
    if (layer->n_inputs == 1)
      return refuse(f, layer, "has queries, keys and values side by side, which are not divided");
    return lay_out_beside(f, layer, own, true);
  case SN_ROTARY:
  case SN_RESHAPE:
  case SN_RESIZE:
  case SN_SLICE:
  case SN_CONCAT:
    return lay_out_beside(f, layer, own, true);
  case SN_ACT:
  case SN_MUL:
  case SN_DROPOUT:
  case SN_JOIN:
    return lay_out_beside(f, layer, own, false);
  case SN_SOFTMAX:
    own->layout = SN__BY_FEATURES;
    return input_layout(f, layer, 0) == SN__BY_FEATURES && sn_loss_is_of_classes(layer->attr->loss)
               ? SN_OK
               : refuse(f, layer, "is no loss of logits");
  default:
    return refuse(f, layer, "is of a kind that is not divided");
  }
}

/* What is gathered is read by products alone. */
static sn_status check_readers(finder *f) {
  for (uint32_t l = 1; l < f->net->n_layers; l++) {
    const sn_layer *layer = &f->net->layers[l];
    for (uint32_t i = 0; i < layer->n_inputs; i++)
      if (f->found->layers[sn_layer_source(f->net, layer, i)].gathers && layer->op != SN_FC && layer->op != SN_FORK)
        return refuse(f, layer, "reads a norm's output that products read, too");
  }
  return SN_OK;
}

/* With loss=whole all that follows the head is. */
static void make_logits_whole(const finder *f) {
  const uint32_t head = f->found->head;
  for (uint32_t s = f->route->forward_step[head] + 1; s < f->route->first_backward; s++)
    f->found->layers[f->route->steps[s].layer].layout = SN__WHOLE;
}

/* ---- sizes ---- */

static uint64_t common_divisor(uint64_t a, uint64_t b) {
  while (b > 0) {
    uint64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

static void divide(finder *f, uint64_t count, const char *what, const sn_layer *layer) {
  f->common = common_divisor(f->common, count);
  if (f->count > 0 || count % f->ranks == 0) return;
  f->count = count;
  f->what = what;
  f->layer = layer->name;
}

/* Heads of queries, and of keys and values as the products make them. */
static void divide_heads(finder *f, const sn_layer *layer) {
  divide(f, layer->attr->heads, "heads", layer);
  for (uint32_t i = 0; i < layer->n_inputs; i++) {
    const sn_layer *at = &f->net->layers[sn_layer_source(f->net, layer, i)];
    while (at->op != SN_FC) at = &f->net->layers[sn_layer_source(f->net, at, 0)];
    divide(f, at->out.c / (layer->out.c / layer->attr->heads), i > 0 ? "heads of keys and values" : "heads", layer);
  }
}

static void divide_layer(finder *f, const sn_layer *layer) {
  const char *words = layer - f->net->layers == f->found->head ? "words" : "features";
  if (layer->op == SN_ATTENTION) divide_heads(f, layer);
  if (layer->op == SN_EMBEDDING) divide(f, layer->attr->rows, "words", layer);
  if (layer->op == SN_EMBEDDING && !f->mesh->sequence_whole)
    divide(f, (uint64_t)layer->out.h * layer->out.w, "positions", layer);
  if (layer->op == SN_FC) divide(f, layer->out.c, words, layer);
}

/* Of what divides all of it, the nearest; the smaller one of two. */
static uint64_t nearest(uint64_t common, uint64_t ranks) {
  uint64_t below = ranks < common ? ranks : common, above = ranks;
  while (common % below != 0) below--;
  while (above < common && common % above != 0) above++;
  return above <= common && above - ranks < ranks - below ? above : below;
}

static sn_status check_sizes(finder *f) {
  for (uint32_t l = 1; l < f->net->n_layers; l++)
    if (f->net->layers[l].op == SN_ATTENTION) divide_layer(f, &f->net->layers[l]);
  for (uint32_t l = 1; l < f->net->n_layers; l++)
    if (f->net->layers[l].op != SN_ATTENTION) divide_layer(f, &f->net->layers[l]);
  if (f->count == 0) return SN_OK;
  bool positions = strcmp(f->what, "positions") == 0;
  return sn_fail(f->err, SN_BAD_INPUT,
                 "network %s: tp=%u does not divide the %" PRIu64 " %s of %s; tp=%" PRIu64 " divides all%s",
                 f->net->name, f->ranks, f->count, f->what, f->layer, nearest(f->common, f->ranks),
                 positions ? ", and sequence=whole leaves positions whole" : "");
}

/* ---- all ---- */

static sn_status check_kind(finder *f) {
  bool attends = false;
  if (f->net->recorded)
    return sn_fail(f->err, SN_BAD_INPUT, "%s: a recording is not divided by tp yet; ask for fsdp or dp", f->net->name);
  for (uint32_t l = 0; l < f->net->n_layers; l++) {
    if (f->net->layers[l].op == SN_BN)
      return refuse(f, &f->net->layers[l], "is a batch norm, whose statistics are of all features and positions");
    attends = attends || f->net->layers[l].op == SN_ATTENTION;
  }
  if (f->net->adapted)
    return sn_fail(f->err, SN_BAD_INPUT, "network %s: adapters are not divided; ask for fsdp or dp", f->net->name);
  if (attends) return SN_OK;
  return sn_fail(f->err, SN_BAD_INPUT, "network %s has no attention; " KNOWN, f->net->name);
}

sn_status sn__tensor_layout_find(const sn_route *whole, const sn_mesh *mesh, sn__tensor_layout *layout, sn_err *err) {
  finder f = {.route = whole,
              .net = whole->net,
              .mesh = mesh,
              .ranks = sn_mesh_size(mesh, SN_MESH_TP),
              .found = layout,
              .err = err};
  *layout = (sn__tensor_layout){.layers = calloc(whole->n_layers, sizeof *layout->layers), .head = SN_NONE};
  if (!layout->layers) return sn_fail_memory(err);
  layout->layers[0].layout = SN__TOKENS;
  if (check_kind(&f) != SN_OK) return err->code;
  for (uint32_t l = 1; l < whole->n_layers; l++)
    if (lay_out(&f, l) != SN_OK) return err->code;
  if (check_readers(&f) != SN_OK || check_sizes(&f) != SN_OK) return err->code;
  if (mesh->loss_whole) make_logits_whole(&f);
  return SN_OK;
}
