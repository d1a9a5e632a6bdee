/* Finishing a network: from declared layers to the immutable net of models/net/net.h.
 *
 *   check names and inputs -> count consumers -> FORKs and values -> topological order -> shapes, totals -> check ends
 *
 * That an output is not used is found last: often it only follows from a cycle or from a layer without inputs.
 *
 * A declared layer has one output, so value i is the output of declared layer i; FORKs stand behind the declared layers
 * and their branches behind those values. Every value having one consumer is what makes Kahn's topological order (CACM
 * 1962) a plain walk along values. All passes are linear in layers and inputs, except for the sorted names (n log n);
 * none recurses. */
#include "models/build/build_internal.h"

#include "base/arena.h"
#include "base/checked.h"
#include "models/net/modules.h"
#include "models/net/names.h"
#include "models/op/op.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Work space of one call; everything but the net is freed at its end. */
typedef struct finisher {
  sn_builder *b;
  sn_err *err;
  uint32_t bad_layer;
  bool mistaken; /* something is wrong */
  sn__names names;
  uint32_t *uses;      /* consumers of a declared layer */
  uint32_t *fork;      /* FORK layer of a declared layer with several consumers */
  uint32_t *next;      /* the branch its next consumer takes */
  uint32_t *pending;   /* inputs of a layer not yet produced */
  uint32_t *order;     /* layers in topological order */
  sn_shape *in_shapes; /* of the layer at hand */
  uint32_t *in_planes;
  bool *broken; /* declared layers that sn__builder_break() was called for */
  uint32_t n_layers, n_values, n_inputs;
  sn_layer *layers; /* the builder's own, with room for FORKs: they are too large to stand twice */
  sn_value *values;
  uint32_t *inputs;
} finisher;

/* SN_OK where somebody wants to know what else is wrong. */
static sn_status fail_text(finisher *f, uint32_t layer, const char *text) {
  f->mistaken = true;
  if (f->b->mistaken) return f->b->mistaken(f->b->context, layer, text) ? SN_OK : SN_BAD_INPUT;
  f->bad_layer = layer;
  return sn_fail(f->err, SN_BAD_INPUT, "%s", text);
}

static sn_status fail(finisher *f, uint32_t layer, const char *reason) {
  char text[sizeof f->err->text];
  snprintf(text, sizeof text, "layer \"%s\": %s", f->layers ? f->layers[layer].name : f->b->layers[layer].name, reason);
  return fail_text(f, layer, text);
}

static sn_status fail_twice(finisher *f, uint32_t layer) {
  f->b->unconnected = true; /* who names it may mean the other */
  return fail(f, layer, "another layer has this name already; rename one of them");
}

static sn_status check_names(finisher *f) {
  const sn_builder *b = f->b;
  if (sn__names_init(&f->names, b->n_layers, f->err)) return f->err->code;
  for (uint32_t i = 0; i < b->n_layers; i++) sn__names_add(&f->names, b->layers[i].name, i);
  sn__names_sort(&f->names);
  uint32_t lowest = SN_NONE;
  for (uint32_t i = 1; i < f->names.count; i++) {
    uint32_t index = f->names.items[i].index;
    if (!sn__names_repeated(&f->names, i)) continue;
    if (index < lowest) lowest = index;
    if (b->mistaken && fail_twice(f, index)) return SN_BAD_INPUT;
  }
  return lowest == SN_NONE || b->mistaken ? SN_OK : fail_twice(f, lowest);
}

static sn_status count_uses(finisher *f) {
  const sn_builder *b = f->b;
  f->uses = calloc(b->n_layers, sizeof *f->uses);
  if (!f->uses) return sn_fail_memory(f->err);
  for (uint32_t i = 0; i < b->n_layers; i++)
    for (uint32_t k = 0; k < b->layers[i].n_inputs; k++) {
      uint32_t producer = b->inputs[b->layers[i].first_input + k];
      if (producer >= b->n_layers) return fail(f, i, "one of its inputs was never declared");
      if (b->layers[producer].op == SN_SOFTMAX &&
          fail(f, i, "its input is a SOFTMAX, which ends a network; take the layer before it"))
        return f->err->code;
      f->uses[producer]++;
    }
  return SN_OK;
}

static sn_status check_ends(finisher *f) {
  const sn_builder *b = f->b;
  uint32_t ends = 0;
  if (b->unconnected) return SN_OK;
  for (uint32_t i = 0; i < b->n_layers; i++) ends += b->layers[i].op == SN_SOFTMAX;
  if (ends == 0 && fail_text(f, SN_NONE, "the network has no SOFTMAX; end it with one")) return SN_BAD_INPUT;
  for (uint32_t i = 0; i < b->n_layers; i++)
    if (f->uses[i] == 0 && b->layers[i].op != SN_SOFTMAX &&
        fail(f, i, "its output is never used; give it to a layer or remove it"))
      return SN_BAD_INPUT;
  return SN_OK;
}

/* Room for the net, now that the number of FORKs is known. */
static sn_status reserve(finisher *f) {
  const sn_builder *b = f->b;
  uint32_t forks = 0;
  f->n_values = b->n_layers;
  for (uint32_t i = 0; i < b->n_layers; i++)
    if (f->uses[i] > 1) {
      forks++;
      f->n_values += f->uses[i];
    }
  if (forks > SN_MAX_LAYERS - b->n_layers)
    return sn_fail(f->err, SN_BAD_INPUT, "the network has more than %u layers, FORKs included", SN_MAX_LAYERS);
  f->n_layers = b->n_layers + forks;
  f->n_inputs = b->n_inputs + forks;
  f->layers = realloc(b->layers, f->n_layers * sizeof *f->layers);
  if (f->layers) f->b->layers = f->layers;
  f->values = sn_arena_alloc(b->arena, f->n_values, sizeof *f->values);
  f->inputs = sn_arena_alloc(b->arena, f->n_inputs, sizeof *f->inputs);
  assert(b->n_layers > 0); /* DATA is always there */
  f->fork = calloc(b->n_layers, sizeof *f->fork);
  f->next = calloc(b->n_layers, sizeof *f->next);
  f->broken = calloc(b->n_layers, sizeof *f->broken);
  f->pending = calloc(f->n_layers, sizeof *f->pending);
  f->order = calloc(f->n_layers, sizeof *f->order);
  f->in_shapes = calloc((size_t)b->n_inputs + 1, sizeof *f->in_shapes);
  f->in_planes = calloc((size_t)b->n_inputs + 1, sizeof *f->in_planes);
  bool good = f->layers && f->values && f->inputs && f->fork && f->next && f->broken && f->pending && f->order;
  return good && f->in_shapes && f->in_planes ? SN_OK : sn_fail_memory(f->err);
}

static sn_status name_fork(finisher *f, uint32_t producer, const char **name) {
  *name = sn_arena_print(f->b->arena, "%s/fork", f->b->layers[producer].name);
  if (!*name) return sn_fail_memory(f->err);
  uint32_t taken = sn__names_find(&f->names, *name);
  return taken == SN_NONE ? SN_OK : fail(f, taken, "this name is needed for a FORK; choose another");
}

static void connect(finisher *f, uint32_t value, uint32_t consumer, uint32_t input) {
  f->values[value].consumer = consumer;
  f->values[value].consumer_input = input;
  f->inputs[f->layers[consumer].first_input + input] = value;
}

static const sn_attr of_forks = {0};

/* Declared layers with their own outputs, and behind them a FORK for each output with several consumers. */
static sn_status place_layers(finisher *f) {
  const sn_builder *b = f->b;
  uint32_t fork = b->n_layers, value = b->n_layers, input = b->n_inputs;
  for (uint32_t i = 0; i < b->n_layers; i++) {
    f->broken[i] = f->layers[i].first_output == SN_NONE;
    f->layers[i].first_output = i;
    f->layers[i].n_outputs = 1;
    f->values[i] = (sn_value){.producer = i, .consumer = SN_NONE};
    if (f->uses[i] < 2) continue;
    const char *name;
    if (name_fork(f, i, &name)) return f->err->code;
    f->layers[fork] = (sn_layer){.name = name, .attr = &of_forks, .op = SN_FORK, .first_input = input++, .n_inputs = 1};
    f->layers[fork].first_output = value;
    f->layers[fork].n_outputs = f->uses[i];
    connect(f, i, fork, 0);
    for (uint32_t k = 0; k < f->uses[i]; k++) f->values[value++].producer = fork;
    f->fork[i] = fork++;
  }
  return SN_OK;
}

/* Branches of a FORK go to its consumers in the order in which they were declared. */
static void connect_declared(finisher *f) {
  const sn_builder *b = f->b;
  for (uint32_t i = 0; i < b->n_layers; i++)
    for (uint32_t k = 0; k < b->layers[i].n_inputs; k++) {
      uint32_t producer = b->inputs[b->layers[i].first_input + k];
      bool forked = f->uses[producer] > 1;
      connect(f, forked ? f->layers[f->fork[producer]].first_output + f->next[producer]++ : producer, i, k);
    }
}

/* Kahn: a layer enters the order when its last input has been produced. Returns how many layers did. */
static uint32_t sort_layers(finisher *f) {
  uint32_t done = 0, found = 0;
  for (uint32_t i = 0; i < f->n_layers; i++) {
    f->pending[i] = f->layers[i].n_inputs;
    if (f->pending[i] == 0) f->order[found++] = i; /* DATA; any other without inputs is refused by its shape rule */
  }
  for (; done < found; done++) {
    const sn_layer *layer = &f->layers[f->order[done]];
    for (uint32_t k = 0; k < layer->n_outputs; k++) {
      uint32_t consumer = f->values[layer->first_output + k].consumer;
      if (consumer != SN_NONE && --f->pending[consumer] == 0) f->order[found++] = consumer;
    }
  }
  return done;
}

/* A layer that feeds `layer` and is as stuck as it is. */
static uint32_t stuck_input(const finisher *f, uint32_t layer) {
  const sn_layer *l = &f->layers[layer];
  uint32_t k = 0;
  while (f->pending[f->values[f->inputs[l->first_input + k]].producer] == 0) k++;
  return f->values[f->inputs[l->first_input + k]].producer;
}

/* A layer on a cycle: walking back from any stuck layer along stuck inputs must come round. */
static uint32_t find_on_cycle(finisher *f) {
  uint32_t at = 0;
  memset(f->order, 0, f->n_layers * sizeof *f->order); /* no longer needed: marks now */
  while (f->pending[at] == 0) at++;
  for (; f->order[at] == 0; at = stuck_input(f, at)) f->order[at] = 1;
  return f->layers[at].op == SN_FORK ? stuck_input(f, at) : at;
}

static sn_status fail_cycle(finisher *f) {
  enum { SHOWN = 5 };
  char text[SHOWN * 80];
  uint32_t first = find_on_cycle(f), length = 0;
  size_t used = 0;
  text[0] = '\0';
  for (uint32_t at = stuck_input(f, first);; at = stuck_input(f, at)) {
    if (f->layers[at].op == SN_FORK) continue;
    if (length++ < SHOWN) {
      int printed = snprintf(text + used, sizeof text - used, "%s needs \"%.60s\"", length > 1 ? ", which" : "",
                             f->layers[at].name);
      if (printed > 0) used += (size_t)printed;
    }
    if (at == first) break;
  }
  char more[40] = "";
  if (length > SHOWN) snprintf(more, sizeof more, ", ... (%" PRIu32 " layers in all)", length);
  char whole[sizeof text + 160];
  snprintf(whole, sizeof whole, "layers form a cycle: \"%.60s\"%s%s", f->layers[first].name, text, more);
  return fail_text(f, first, whole);
}

static sn_status add_to_total(uint64_t part, uint64_t limit, uint64_t *total) {
  return sn_add(*total, part, total) && *total <= limit ? SN_OK : SN_BAD_INPUT;
}

typedef struct totals {
  uint64_t bytes, parameters, macs, labels, wide_labels;
} totals;

static sn_status add_totals(const finisher *f, const sn_layer *layer, uint64_t bytes, totals *t) {
  sn_status status = SN_OK;
  for (uint32_t k = 0; k < layer->n_outputs && status == SN_OK; k++) {
    f->values[layer->first_output + k].bytes = bytes;
    status = add_to_total(bytes, SN_MAX_NET_BYTES, &t->bytes);
  }
  uint64_t fixed = layer->parameters * sizeof(float) + layer->mask_bytes + layer->statistics_bytes;
  if (status || add_to_total(fixed, SN_MAX_NET_BYTES, &t->bytes))
    return sn_fail(f->err, SN_BAD_INPUT,
                   "all tensors and parameters together are larger than %" PRIu64
                   " TiB; choose a smaller batch or network",
                   SN_MAX_NET_BYTES >> 40);
  t->parameters += layer->parameters;
  if (add_to_total(layer->macs, SN_MAX_NET_MACS, &t->macs))
    return sn_fail(f->err, SN_BAD_INPUT, "the network needs more than %" PRIu64 " multiply-adds", SN_MAX_NET_MACS);
  return SN_OK;
}

/* Of classes a number a position, else a target of the input's shape. */
static void add_labels(const sn_layer *layer, uint64_t bytes, totals *t) {
  bool target = layer->attr->loss == SN_LOSS_MSE;
  uint64_t positions = (uint64_t)layer->out.n * layer->out.h * layer->out.w;
  t->labels = sn_max(t->labels, target ? bytes : 4 * positions);
  t->wide_labels = sn_max(t->wide_labels, target ? bytes : 8 * positions);
}

/* Whose output the first input is, by way of FORKs or not. */
static uint32_t source_of(const finisher *f, const sn_layer *layer) {
  uint32_t producer = layer->n_inputs > 0 ? f->values[f->inputs[layer->first_input]].producer : SN_NONE;
  while (producer != SN_NONE && f->layers[producer].op == SN_FORK)
    producer = f->values[f->inputs[f->layers[producer].first_input]].producer;
  return producer;
}

static bool reads_batch(const finisher *f, const sn_layer *layer) {
  return source_of(f, layer) == SN_DATA_LAYER;
}

static bool reads_given(const finisher *f, const sn_layer *layer) {
  const uint32_t source = source_of(f, layer);
  return source != SN_NONE && f->layers[source].op == SN_GIVEN;
}

static sn_status check_tokens(const finisher *f, const sn_layer *layer, sn_err *err) {
  bool looks_up = layer->op == SN_EMBEDDING, batch = reads_batch(f, layer);
  if (looks_up && !(batch && f->b->tokens) && !reads_given(f, layer))
    return sn_fail(err, SN_BAD_INPUT,
                   "EMBEDDING looks up the tokens of the batch; give it \"data\" of a network of tokens");
  if (batch && f->b->tokens && !looks_up && layer->op != SN_FORK && layer->op != SN_GIVEN)
    return sn_fail(err, SN_BAD_INPUT, "the batch is tokens, which only an EMBEDDING can read");
  return SN_OK;
}

static bool has_table(const sn_layer *layer) {
  return (layer->op == SN_EMBEDDING || layer->op == SN_FC) && !layer->attr->bias;
}

/* Whether a layer's parameters can be another's: an operator's like it, or a table. */
static bool can_share(const sn_layer *layer, const sn_layer *owner) {
  const sn_attr *a = layer->attr, *b = owner->attr;
  bool alike = layer->op == owner->op && a->bias == b->bias && a->channels == b->channels && a->groups == b->groups &&
               a->experts == b->experts && a->kernel_d == b->kernel_d && a->kernel_h == b->kernel_h &&
               a->kernel_w == b->kernel_w;
  return (alike || (has_table(layer) && has_table(owner))) && b->weights_of == 0 && layer->parameters > 0 &&
         layer->parameters == owner->parameters;
}

/* The parameters are counted where they are. */
static sn_status share_weights(const finisher *f, sn_layer *layer, totals *t, sn_err *err) {
  uint32_t from = layer->attr->weights_of;
  const sn_layer *owner = from < f->b->n_layers ? &f->layers[from] : NULL;
  if (f->mistaken && owner && owner->out.n == 0) return SN_OK;
  if (!owner || owner == layer || !can_share(layer, owner))
    return sn_fail(err, SN_BAD_INPUT,
                   "the weights that it takes must be another layer's own, of the same operator, sizes and bias, or of "
                   "an EMBEDDING or FC without bias, as many as its own would be");
  t->parameters -= layer->parameters;
  layer->parameters = 0;
  return SN_OK;
}

/* Behind all of them, as an owner may come later. */
static sn_status share_all(finisher *f, totals *t) {
  for (uint32_t i = 0; i < f->b->n_layers; i++) {
    sn_err reason = SN_ERR_INIT;
    sn_layer *layer = &f->layers[i];
    if (layer->attr->weights_of == 0 || layer->out.n == 0) continue;
    if (share_weights(f, layer, t, &reason) != SN_OK && fail(f, i, reason.text) != SN_OK) return SN_BAD_INPUT;
  }
  return SN_OK;
}

static sn_status take_planes(finisher *f, sn_layer *layer, sn_err *err) {
  sn_attr attr = *layer->attr;
  sn_status status = sn_op_take_planes(layer->op, &attr, f->in_shapes, f->in_planes, layer->n_inputs, err);
  if (attr.planes != layer->attr->planes) layer->attr = sn__attrs_keep(&f->b->attrs, f->b->arena, &attr);
  return layer->attr ? status : sn_fail_memory(err);
}

static sn_status infer_shape(finisher *f, sn_layer *layer, sn_err *err) {
  if (take_planes(f, layer, err) ||
      sn_op_shape(layer->op, layer->attr, f->in_shapes, layer->n_inputs, &layer->out, err))
    return err->code;
  layer->planes = sn_op_planes(layer->op, layer->attr);
  return SN_OK;
}

static sn_status infer(finisher *f, sn_layer *layer, uint64_t *bytes, sn_err *err) {
  for (uint32_t k = 0; k < layer->n_inputs; k++) {
    const sn_layer *producer = &f->layers[f->values[f->inputs[layer->first_input + k]].producer];
    f->in_shapes[k] = producer->out;
    f->in_planes[k] = producer->planes;
  }
  if (layer->op == SN_DATA) {
    layer->out = f->b->data;
    layer->planes = f->b->planes;
  } else
    infer_shape(f, layer, err);
  if (err->code == SN_OK) sn_shape_bytes(layer->out, bytes, err);
  if (err->code == SN_OK) sn_op_measure(layer, f->in_shapes[0], err);
  if (err->code == SN_OK) check_tokens(f, layer, err);
  return err->code;
}

/* Nothing is known of a broken layer, nor of what stands behind one. */
static bool is_known(const finisher *f, uint32_t layer) {
  const sn_layer *l = &f->layers[layer];
  if (layer < f->b->n_layers && f->broken[layer]) return false;
  for (uint32_t k = 0; k < l->n_inputs; k++)
    if (f->layers[f->values[f->inputs[l->first_input + k]].producer].out.n == 0) return false;
  return true;
}

static sn_status infer_all(finisher *f, totals *t) {
  for (uint32_t i = 0; i < f->n_layers; i++) {
    sn_err reason = SN_ERR_INIT;
    uint64_t bytes;
    sn_layer *layer = &f->layers[f->order[i]];
    if (!is_known(f, f->order[i])) continue;
    bool tokens = f->b->tokens && (layer->op == SN_DATA || (layer->op == SN_FORK && reads_batch(f, layer)));
    if (infer(f, layer, &bytes, &reason)) { /* never of a FORK, which has its producer's shape */
      if (reason.code != SN_BAD_INPUT) return sn_fail(f->err, reason.code, "%s", reason.text);
      if (fail(f, f->order[i], reason.text)) return SN_BAD_INPUT;
      layer->out = (sn_shape){0};
      continue;
    }
    for (uint32_t k = 0; k < layer->n_outputs; k++) f->values[layer->first_output + k].dtype = tokens ? SN_I64 : SN_F32;
    if (add_totals(f, layer, tokens ? 2 * bytes : bytes, t)) return f->err->code;
    if (layer->op == SN_SOFTMAX) add_labels(layer, bytes, t);
  }
  return share_all(f, t);
}

static sn_net *make_net(finisher *f, const totals *t) {
  sn_builder *b = f->b;
  sn_net *net = sn_arena_alloc(b->arena, 1, sizeof *net);
  if (!net || !sn_arena_adopt(b->arena, f->layers)) {
    sn_fail_memory(f->err);
    return NULL;
  }
  b->layers = NULL; /* they are the net's now */
  *net = (sn_net){.name = b->name,
                  .batch = b->data.n,
                  .n_layers = f->n_layers,
                  .n_values = f->n_values,
                  .layers = f->layers,
                  .values = f->values,
                  .inputs = f->inputs,
                  .parameters = t->parameters,
                  .macs = t->macs,
                  .data_bytes = f->values[0].bytes,
                  .label_bytes = t->labels,
                  .wide_label_bytes = t->wide_labels,
                  .transformers = b->transformers,
                  .arena = b->arena};
  b->arena = NULL;
  return net;
}

static sn_net *finish(finisher *f) {
  totals t = {0};
  if (check_names(f) || count_uses(f) || reserve(f) || place_layers(f)) return NULL;
  connect_declared(f);
  if (sort_layers(f) < f->n_layers) {
    fail_cycle(f);
    return NULL;
  }
  if (infer_all(f, &t) || check_ends(f) || f->mistaken) return NULL;
  sn_net *net = make_net(f, &t);
  if (!net || sn_module_name_layers(net, f->err) == SN_OK) return net;
  sn_net_free(net);
  return NULL;
}

sn_net *sn_builder_finish(sn_builder *b, uint32_t *bad_layer, sn_err *err) {
  uint32_t ignored;
  if (!bad_layer) bad_layer = &ignored;
  *bad_layer = SN_NONE;
  sn_net *net = NULL;
  if (!b) {
    sn_fail_memory(err);
  } else if (b->err.code != SN_OK) {
    *bad_layer = b->bad_layer;
    sn_fail(err, b->err.code, "%s", b->err.text);
  } else {
    finisher f = {.b = b, .err = err, .bad_layer = SN_NONE, .mistaken = b->broken};
    net = finish(&f);
    *bad_layer = f.bad_layer;
    sn__names_free(&f.names);
    free(f.uses), free(f.fork), free(f.next), free(f.broken), free(f.pending), free(f.order), free(f.in_shapes);
    free(f.in_planes);
  }
  sn__builder_free(b);
  return net;
}

/* ---- another batch ---- */

static uint32_t count_declared(const sn_net *net) {
  uint32_t forks = 0;
  for (uint32_t i = 0; i < net->n_layers; i++) forks += net->layers[i].op == SN_FORK;
  return net->n_layers - forks;
}

/* Room for a copy of layers, values and inputs, and the copy. */
static sn_status copy_layers(finisher *f, const sn_net *net) {
  f->n_layers = net->n_layers;
  f->n_values = net->n_values;
  for (uint32_t i = 0; i < net->n_layers; i++) f->n_inputs += net->layers[i].n_inputs;
  assert(f->n_layers > 0); /* DATA is always there */
  f->b->layers = f->layers = malloc(f->n_layers * sizeof *f->layers);
  f->values = sn_arena_alloc(f->b->arena, f->n_values, sizeof *f->values);
  f->inputs = sn_arena_alloc(f->b->arena, f->n_inputs, sizeof *f->inputs);
  f->broken = calloc(f->n_layers, sizeof *f->broken);
  f->pending = calloc(f->n_layers, sizeof *f->pending);
  f->order = calloc(f->n_layers, sizeof *f->order);
  f->in_shapes = calloc((size_t)f->n_inputs + 1, sizeof *f->in_shapes);
  f->in_planes = calloc((size_t)f->n_inputs + 1, sizeof *f->in_planes);
  bool good = f->layers && f->values && f->inputs && f->broken && f->pending && f->order;
  if (!good || !f->in_shapes || !f->in_planes) return sn_fail_memory(f->err);
  memcpy(f->layers, net->layers, f->n_layers * sizeof *f->layers);
  memcpy(f->values, net->values, f->n_values * sizeof *f->values);
  memcpy(f->inputs, net->inputs, f->n_inputs * sizeof *f->inputs);
  return SN_OK;
}

sn_net *sn_net_rebatch(const sn_net *net, uint32_t batch, sn_err *err) {
  if (net->recorded) return sn__record_rebatch(net, batch, err);
  sn_builder b = {.name = net->name,
                  .tokens = net->values[0].dtype == SN_I64,
                  .data = net->layers[0].out,
                  .planes = net->layers[0].planes,
                  .n_layers = count_declared(net),
                  .arena = sn_arena_new()};
  b.data.n = batch;
  finisher f = {.b = &b, .err = err};
  totals t = {0};
  sn_net *made = NULL;
  if (!b.arena)
    sn_fail_memory(err);
  else if (copy_layers(&f, net) == SN_OK && sort_layers(&f) == f.n_layers && infer_all(&f, &t) == SN_OK)
    made = make_net(&f, &t);
  if (made) made->adapted = net->adapted;
  if (made) made->transformers = net->transformers;
  if (made) made->modules = net->modules;
  if (made) made->inference_only = net->inference_only;
  free(f.broken), free(f.pending), free(f.order), free(f.in_shapes), free(f.in_planes);
  free(b.layers);
  sn_arena_free(b.arena);
  return made;
}
