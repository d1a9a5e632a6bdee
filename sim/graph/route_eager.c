/* What only declared dialects have (frameworks, section 3): operations run as they are declared, gradients are handed
 * on as they are made and added where they meet, and the gradients of parameters are tensors.
 *
 * Whether a sum may be made in place depends on who holds the gradients that meet. A tensor is held once for every
 * value whose gradient it is, from when it is made until the backward of the value's maker is over; views of it hold it
 * too. */
#include "sim/graph/route_internal.h"

#include "base/checked.h"
#include "base/ordered.h"

#include <stdlib.h>

/* ---- order ---- */

/* Layers all of whose inputs are there, by number; a FORK does nothing and goes before all others. */
static bool make_ready(sn_ordered *queue, const sn_net *net, uint32_t layer) {
  uint64_t key = net->layers[layer].op == SN_FORK ? layer : (uint64_t)net->n_layers + layer;
  return sn_ordered_insert(queue, key, 0) != SN_ORDERED_NONE;
}

static bool give_outputs(sn_ordered *queue, const sn_net *net, uint32_t *arrived, const sn_layer *layer) {
  bool good = true;
  for (uint32_t port = 0; port < layer->n_outputs; port++) {
    uint32_t reader = net->values[layer->first_output + port].consumer;
    if (reader != SN_NONE && ++arrived[reader] == net->layers[reader].n_inputs)
      good = make_ready(queue, net, reader) && good;
  }
  return good;
}

/* The net's layers are without cycles, and all are reached from DATA (models/build/finish.c). */
sn_status sn__route_eager_order(sn__route_maker *b, sn_err *err) {
  const sn_net *net = b->net;
  uint32_t *arrived = calloc(net->n_layers, sizeof *arrived), done = 0;
  sn_ordered queue = {0};
  bool good = arrived && give_outputs(&queue, net, arrived, &net->layers[0]);
  for (uint32_t node; good && queue.nodes && (node = sn_ordered_ceiling(&queue, 0)) != SN_ORDERED_NONE;) {
    uint64_t key = queue.nodes[node].key;
    uint32_t layer = (uint32_t)(key % net->n_layers);
    sn_ordered_remove(&queue, key);
    b->order[done++] = layer;
    good = give_outputs(&queue, net, arrived, &net->layers[layer]);
  }
  sn_ordered_clear(&queue);
  free(arrived);
  return good ? SN_OK : sn_fail_memory(err);
}

/* ---- angles ---- */

/* Each ROTARY's backward needs them, that of the first comes last; without backward they go behind the last. */
static uint32_t find_turned(const sn__route_maker *b) {
  uint32_t turned = SN_NONE;
  for (uint32_t i = 0; i + 1 < b->net->n_layers; i++) {
    if (b->net->layers[b->order[i]].op != SN_ROTARY) continue;
    turned = b->order[i];
    if (sn__route_has_backward(b, turned)) return turned;
  }
  return turned;
}

static void make_angles(sn__route_maker *b, uint32_t index) {
  const sn_layer *table = &b->net->layers[index];
  b->turned = find_turned(b);
  if (b->turned == SN_NONE) return;
  const sn_layer *rotary = &b->net->layers[b->turned];
  uint64_t width = b->widths.made ? b->widths.made[table->first_output] : sizeof(float), bytes = width;
  const uint64_t sizes[] = {rotary->out.h, rotary->out.w, rotary->out.c / sn_max(rotary->attr->heads, 1)};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    if (!sn_mul(bytes, sizes[i], &bytes)) bytes = UINT64_MAX; /* then tensors are too large */
  b->angles = sn__route_add_tensor(b, index, SN_PORT_COSINES, SN_SAVED, bytes);
  sn__route_access(b, b->angles, SN_WRITE);
  sn__route_access(b, sn__route_add_tensor(b, index, SN_PORT_SINES, SN_SAVED, bytes), SN_WRITE);
}

void sn__route_angles(sn__route_maker *b, uint32_t index) {
  bool forward = b->steps[b->route->n_steps - 1].pass == SN_FORWARD;
  if (!b->route->dialect->eager || !b->net->transformers) return;
  if (forward && b->angles == SN_NONE && b->net->layers[index].op == SN_EMBEDDING) make_angles(b, index);
  if (b->angles == SN_NONE || b->turned != index || forward == sn__route_has_backward(b, index)) return;
  sn__route_access(b, b->angles, SN_READ);
  sn__route_access(b, b->angles + 1, SN_READ);
}

/* What a named TOKEN has made is there until what the TAKE behind it takes of is made, though nothing computes with it. */
void sn__route_hold_named(sn__route_maker *b, uint32_t index) {
  const sn_layer *layers = b->net->layers;
  const uint32_t reader = b->net->values[layers[index].first_output].consumer;
  if (!b->route->dialect->eager || reader == SN_NONE || layers[reader].op != SN_TAKE) return;
  uint32_t token = index;
  while (token > 0 && layers[token].op != SN_TOKEN) token--;
  if (token == 0 || !layers[token].attr->named) return;
  const uint32_t before = b->route->n_accesses;
  sn__route_access(b, b->output[layers[token].first_output], SN_READ);
  if (b->route->n_accesses > before) b->accesses[before].held = true;
}

/* ---- gradients of values ---- */

void sn__route_find_trained(sn__route_maker *b) {
  for (uint32_t i = 0; i + 1 < b->net->n_layers; i++) {
    const sn_layer *layer = &b->net->layers[b->order[i]];
    bool trained = sn_freeze_trains_shared(b->iteration.freeze, b->net, layer);
    for (uint32_t n = 0; n < layer->n_inputs; n++) trained |= b->trained[sn__route_input(b, layer, n)];
    for (uint32_t n = 0; n < layer->n_outputs; n++) b->trained[layer->first_output + n] = trained;
  }
}

void sn__route_arrive(sn__route_maker *b, uint32_t value, uint32_t tensor, sn_part part) {
  uint32_t producer = b->net->values[value].producer;
  b->gradient[value] = tensor;
  b->part[value] = part;
  b->holders[tensor]++;
  if (b->net->layers[producer].op != SN_FORK) return;
  uint32_t trunk = sn__route_input(b, &b->net->layers[producer], 0);
  if (b->gradient[trunk] == SN_NONE) {
    b->gradient[trunk] = tensor;
    b->part[trunk] = part;
  } else {
    b->meetings[b->n_meetings++] = (sn__meeting){.value = trunk, .later = {tensor, part}, .fork = producer};
  }
}

/* PyTorch's accumulate() in input_buffer.cpp: only what came first is ever changed, and only where it is dense and
 * nobody else holds it; SINGA changes it whoever does. A view is not changed even where it is dense, as of a batch of
 * one: it knows the tensor that it is a part of, and so holds its storage twice. */
static bool can_change(const sn__route_maker *b, sn_summand earlier, uint32_t value) {
  uint32_t channels = b->net->layers[b->net->values[value].producer].out.c;
  bool whole = earlier.part.channels == channels;
  if (b->route->dialect->by_kernel) return true;
  return whole && b->holders[earlier.tensor] == 1 && !b->route->dialect->sums_apart;
}

static void add_sum(sn__route_maker *b, const sn__meeting *m) {
  sn_summand earlier = {b->gradient[m->value], b->part[m->value]}, to = earlier;
  bool in_place = can_change(b, earlier, m->value);
  b->backward_step[m->fork] = b->route->n_steps;
  sn__route_begin_step(b, m->fork, SN_BACKWARD, SN_SUM);
  b->steps[b->route->n_steps - 1].sum = b->route->n_sums;
  sn__route_access(b, earlier.tensor, in_place ? SN_MODIFY : SN_READ);
  sn__route_access(b, m->later.tensor, SN_READ);
  b->holders[earlier.tensor]--;
  b->holders[m->later.tensor]--;
  if (!in_place) {
    to.tensor = sn__route_add_tensor(b, m->fork, 0, SN_GRADIENT, sn__route_bytes(b, m->value, b->widths.made));
    to.part = (sn_part){b->net->layers[b->net->values[m->value].producer].out.c, SN_NONE};
    sn__route_access(b, to.tensor, SN_WRITE);
  }
  sn__route_end_step(b);
  b->holders[to.tensor]++;
  b->sums[b->route->n_sums++] = (sn_sum){earlier, m->later, to};
  b->gradient[m->value] = to.tensor;
  b->part[m->value] = to.part;
}

void sn__route_add_meetings(sn__route_maker *b) {
  for (uint32_t i = 0; i < b->n_meetings; i++) add_sum(b, &b->meetings[i]);
  b->n_meetings = 0;
}

uint32_t sn__route_own_gradient(sn__route_maker *b, uint32_t index, uint32_t port, uint32_t to) {
  uint32_t own = sn__route_add_tensor(b, index, port, SN_SCRATCH, b->tensors[to].bytes);
  sn__route_access(b, own, SN_WRITE);
  return own;
}

/* A layer's own gradient of weights that others use as well is added to what is there; into a third tensor where that is a
 * view, as an FC's is (it transposes what it makes), or where nothing is ever changed. */
void sn__route_add_own_gradient(sn__route_maker *b, uint32_t index, uint32_t port, uint32_t own, uint32_t to) {
  bool apart = b->route->dialect->sums_apart || b->holders[to] > 1;
  sn__route_begin_step(b, index, SN_BACKWARD, SN_SHARED_SUM);
  b->steps[b->route->n_steps - 1].parameter = port;
  sn__route_access(b, to, SN_MODIFY);
  sn__route_access(b, own, SN_READ);
  if (apart) sn__route_access(b, sn__route_add_tensor(b, index, port, SN_SCRATCH, b->tensors[to].bytes), SN_WRITE);
  sn__route_end_step(b);
  b->holders[to] = 1;
}

/* A node lets go of what it was given and had kept before the engine adds what it has made. */
static void add_own_gradients(sn__route_maker *b, uint32_t index) {
  uint32_t shared = b->net->layers[index].attr->weights_of, owner = shared != 0 ? shared : index;
  for (uint32_t port = 0; port < b->n_own_gradients; port++)
    sn__route_add_own_gradient(b, index, port, b->own_gradient + port, b->weight_gradient[owner] + port);
  b->n_own_gradients = 0;
}

/* The engine adds what a node makes as the node ends, so ahead of the casts, which are nodes behind it. */
void sn__route_leave(sn__route_maker *b, uint32_t index) {
  uint32_t dy = b->gradient[b->net->layers[index].first_output];
  if (dy != SN_NONE) b->holders[dy]--; /* a SOFTMAX has none */
  sn__route_add_meetings(b);
  sn__route_cast_back(b, index);
  add_own_gradients(b, index);
}

/* What looks at the same numbers as other channels has the same share of them. */
static uint32_t seen_as(uint32_t whole, uint32_t channels, uint32_t as) {
  return channels == as ? whole : (uint32_t)((uint64_t)whole * as / channels);
}

void sn__route_hand_on(sn__route_maker *b, uint32_t index) {
  const sn_layer *layer = &b->net->layers[index];
  bool views = sn__route_rule(b, index)->gradient == SN_GRAD_VIEWS;
  uint32_t dy = b->gradient[layer->first_output], whole = b->part[layer->first_output].channels;
  for (uint32_t i = 0; i < layer->n_inputs; i++) {
    uint32_t value = sn__route_input(b, layer, i);
    uint32_t channels = sn_layer_input_shape(b->net, layer, i).c;
    uint32_t seen = views ? whole : seen_as(whole, layer->out.c, channels);
    if (b->trained[value]) sn__route_deliver(b, value, dy, (sn_part){seen, value});
  }
}

/* ---- gradients of parameters ---- */

void sn__route_add_parameter_gradients(sn__route_maker *b, uint32_t index) {
  const sn_layer *layer = &b->net->layers[index];
  uint64_t bytes[SN_PARAMETER_TENSORS];
  uint32_t count = sn_parameter_tensors(layer, bytes);
  if (count > 0) b->weight_gradient[index] = b->route->n_tensors;
  for (uint32_t port = 0; port < count; port++)
    sn__route_add_tensor(b, index, port, SN_PARAMETER_GRADIENT,
                         sn_precision_of_parameters(b->iteration.precision, bytes[port]));
}

/* Of weights that several layers use, whose backward comes first makes the gradient; each later one makes its own and
 * adds it. */
void sn__route_parameter_gradients(sn__route_maker *b, uint32_t index) {
  uint64_t bytes[SN_PARAMETER_TENSORS];
  uint32_t shared = b->net->layers[index].attr->weights_of, owner = shared != 0 ? shared : index;
  uint32_t count = sn_parameter_tensors(&b->net->layers[owner], bytes);
  if (!sn__route_trains(b, index)) return;
  if (count > 0 && b->weight_gradient[owner] != SN_NONE) {
    b->own_gradient = b->route->n_tensors;
    b->n_own_gradients = count;
    for (uint32_t port = 0; port < count; port++)
      sn__route_own_gradient(b, index, port, b->weight_gradient[owner] + port);
    return;
  }
  sn__route_add_parameter_gradients(b, owner);
  for (uint32_t port = 0; port < count; port++) sn__route_access(b, b->weight_gradient[owner] + port, SN_WRITE);
  if (count > 0 && b->net->layers[index].op == SN_FC)
    b->holders[b->weight_gradient[owner]] = 2; /* a view, and what it is of */
}

/* What was accumulated lies beside the graph. */
static void use_gradients(sn__route_maker *b, uint32_t index) {
  uint64_t bytes[SN_PARAMETER_TENSORS];
  uint32_t gradient = b->weight_gradient[index];
  if (gradient == SN_NONE || sn_iteration_adds_gradients(b->iteration)) return;
  uint32_t count = sn_parameter_tensors(&b->net->layers[index], bytes);
  for (uint32_t port = 0; port < count; port++) sn__route_access(b, gradient + port, SN_READ);
}

static bool is_last_update(const sn__route_maker *b, uint32_t index) {
  for (uint32_t i = b->net->n_layers - 1; i-- > 0;)
    if (sn_freeze_trains(b->iteration.freeze, &b->net->layers[b->order[i]])) return b->order[i] == index;
  return false;
}

/* Losses and their gradients live until backward is over. */
static void leave_backward(sn__route_maker *b) {
  for (uint32_t i = 1; i < b->net->n_layers; i++)
    if (b->net->layers[i].op == SN_SOFTMAX) sn__route_access(b, b->saved[i], SN_READ);
}

/* What an optimizer makes beside: for all layers in the first step, or for each in its own. */
static void use_temporaries(sn__route_maker *b, uint32_t index, bool first) {
  sn_optimizer optimizer = sn_optimizer_on(b->iteration.optimizer, b->net);
  bool masters = sn_iteration_keeps_masters(b->iteration);
  uint32_t width =
      masters ? sn_iteration_kept_bytes(b->iteration) : sn_precision_parameter_bytes(b->iteration.precision);
  uint64_t bytes[SN_OPTIMIZER_TEMPORARIES],
      all = first ? sn_optimizer_at_once_bytes(optimizer, b->net, b->iteration.freeze, width) : 0;
  if (first) b->temporary = all > 0 ? sn__route_add_tensor(b, index, 0, SN_SCRATCH, all) : SN_NONE;
  if (b->temporary != SN_NONE) sn__route_access(b, b->temporary, first ? SN_WRITE : SN_READ);
  uint32_t count = sn_optimizer_temporaries(optimizer, &b->net->layers[index], width, &b->held, bytes);
  for (uint32_t i = 0; i < count; i++)
    sn__route_access(b, sn__route_add_tensor(b, index, 0, SN_SCRATCH, bytes[i]), SN_WRITE);
}

void sn__route_eager_update(sn__route_maker *b, uint32_t index) {
  bool first = b->route->n_steps == b->route->first_update + 1;
  use_gradients(b, index);
  if (first) leave_backward(b);
  use_temporaries(b, index, first);
  if (!is_last_update(b, index)) return;
  for (uint32_t i = 0; i + 1 < b->net->n_layers; i++) use_gradients(b, b->order[i]);
}
