/* Route construction ([SN] algorithm 1) and the functional tensors of an iteration; see the header.
 *
 *   order        depth first with an explicit stack; a layer is appended when its last input arrives   O(layers +
 * values) forward      every output is a new tensor backward     in reverse order; each operator's gradient rule
 * (models/op.h) says which tensor is the gradient of each input: a new one, the incoming one, or the layer's own output
 *   update       one step per layer with parameters; touches no functional tensor
 */
#include "sim/graph/route.h"

#include "base/arena.h"
#include "base/checked.h"
#include "models/op.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct builder {
  sn_route *route;
  sn_step *steps;
  sn_access *accesses;
  sn_tensor *tensors;
  uint32_t *forward_step;
  uint32_t *order;    /* layers in route order */
  uint32_t *output;   /* per value: its tensor; SN_NONE for DATA's */
  uint32_t *gradient; /* per value: the tensor that holds the gradient with respect to it */
  bool too_large;
} builder;

static uint32_t add_tensor(builder *b, uint32_t layer, uint32_t port, sn_tensor_kind kind, uint64_t bytes) {
  sn_route *r = b->route;
  b->tensors[r->n_tensors] = (sn_tensor){.layer = layer, .port = port, .kind = kind, .bytes = bytes};
  if (!sn_add(r->tensor_bytes, bytes, &r->tensor_bytes) || r->tensor_bytes > SN_MAX_NET_BYTES) b->too_large = true;
  return r->n_tensors++;
}

static void access_tensor(builder *b, uint32_t tensor, sn_access_mode mode) {
  if (tensor == SN_NONE) return; /* the input batch is not a functional tensor */
  b->accesses[b->route->n_accesses++] = (sn_access){.tensor = tensor, .mode = mode};
}

static void begin_step(builder *b, uint32_t layer, sn_pass pass) {
  b->steps[b->route->n_steps++] =
      (sn_step){.layer = layer, .pass = pass, .first_access = b->route->n_accesses, .n_accesses = 0};
}

static void end_step(builder *b) {
  sn_step *step = &b->steps[b->route->n_steps - 1];
  step->n_accesses = b->route->n_accesses - step->first_access;
}

/* [SN] algorithm 1. The stack holds at most one entry a value. */
static sn_status make_order(builder *b, const sn_net *net, sn_err *err) {
  uint32_t *arrived = calloc(net->n_layers, sizeof *arrived);
  uint32_t *stack = calloc((size_t)net->n_values + 1, sizeof *stack);
  uint32_t depth = 0, done = 0;
  if (arrived && stack) stack[depth++] = 0;
  while (depth > 0) {
    const sn_layer *layer = &net->layers[stack[--depth]];
    uint32_t index = (uint32_t)(layer - net->layers);
    if (layer->n_inputs > 0 && ++arrived[index] < layer->n_inputs) continue;
    if (layer->op != SN_DATA) b->order[done++] = index;
    for (uint32_t port = layer->n_outputs; port-- > 0;) {
      uint32_t consumer = net->values[layer->first_output + port].consumer;
      if (consumer != SN_NONE) stack[depth++] = consumer;
    }
  }
  sn_status status = SN_OK;
  if (!arrived || !stack)
    status = sn_fail_memory(err);
  else if (done != net->n_layers - 1)
    status = sn_fail(err, SN_BUG, "route of %s reaches %u of %u layers", net->name, done, net->n_layers - 1);
  free(arrived);
  free(stack);
  return status;
}

static void add_forward(builder *b, const sn_net *net, uint32_t index) {
  const sn_layer *layer = &net->layers[index];
  b->forward_step[index] = b->route->n_steps;
  begin_step(b, index, SN_FORWARD);
  for (uint32_t i = 0; i < layer->n_inputs; i++)
    access_tensor(b, b->output[net->inputs[layer->first_input + i]], SN_READ);
  for (uint32_t port = 0; port < layer->n_outputs; port++) {
    uint32_t value = layer->first_output + port;
    b->output[value] = add_tensor(b, index, port, SN_OUTPUT, net->values[value].bytes);
    access_tensor(b, b->output[value], SN_WRITE);
  }
  end_step(b);
}

/* New gradient tensors for the inputs from `first` on. */
static void new_gradients(builder *b, const sn_net *net, uint32_t index, uint32_t first) {
  const sn_layer *layer = &net->layers[index];
  for (uint32_t i = first; i < layer->n_inputs; i++) {
    uint32_t value = net->inputs[layer->first_input + i];
    b->gradient[value] = add_tensor(b, index, i, SN_GRADIENT, net->values[value].bytes);
    access_tensor(b, b->gradient[value], SN_WRITE);
  }
}

static void add_gradients(builder *b, const sn_net *net, uint32_t index) {
  const sn_layer *layer = &net->layers[index];
  uint32_t input = net->inputs[layer->first_input], output = layer->first_output;
  switch (sn_op_of(layer)->grad) {
  case SN_GRAD_NONE:
    break;
  case SN_GRAD_NEW:
    access_tensor(b, b->gradient[output], SN_READ);
    new_gradients(b, net, index, 0);
    break;
  case SN_GRAD_IN_PLACE:
    access_tensor(b, b->gradient[output], SN_MODIFY);
    b->gradient[input] = b->gradient[output];
    break;
  case SN_GRAD_ON_OUTPUT:
    access_tensor(b, b->output[output], SN_MODIFY);
    b->gradient[input] = b->output[output];
    break;
  case SN_GRAD_SHARE:
    access_tensor(b, b->gradient[output], SN_READ);
    b->gradient[input] = b->gradient[output];
    new_gradients(b, net, index, 1);
    break;
  case SN_GRAD_ACCUMULATE:
    access_tensor(b, b->gradient[output], SN_MODIFY);
    for (uint32_t port = 1; port < layer->n_outputs; port++) access_tensor(b, b->gradient[output + port], SN_READ);
    b->gradient[input] = b->gradient[output];
    break;
  }
}

static void add_backward(builder *b, const sn_net *net, uint32_t index) {
  const sn_layer *layer = &net->layers[index];
  const sn_op_info *op = sn_op_of(layer);
  begin_step(b, index, SN_BACKWARD);
  if (op->backward_reads_x) access_tensor(b, b->output[net->inputs[layer->first_input]], SN_READ);
  if (op->backward_reads_y && op->grad != SN_GRAD_ON_OUTPUT) access_tensor(b, b->output[layer->first_output], SN_READ);
  add_gradients(b, net, index);
  end_step(b);
}

static sn_status make_steps(builder *b, const sn_net *net, sn_err *err) {
  uint32_t n = net->n_layers - 1;
  b->route->n_layers = n;
  b->forward_step[0] = SN_NONE;
  for (uint32_t value = 0; value < net->n_values; value++) b->output[value] = b->gradient[value] = SN_NONE;
  for (uint32_t i = 0; i < n; i++) add_forward(b, net, b->order[i]);
  for (uint32_t i = n; i-- > 0;) add_backward(b, net, b->order[i]);
  for (uint32_t i = 0; i < n; i++) {
    if (net->layers[b->order[i]].parameters == 0) continue;
    begin_step(b, b->order[i], SN_UPDATE);
    end_step(b);
  }
  if (b->too_large)
    return sn_fail(err, SN_BAD_INPUT,
                   "network %s at batch %u: its tensors together exceed 4 PiB; choose a smaller batch", net->name,
                   net->batch);
  return SN_OK;
}

/* A value is read and made once forward; backward reads x, y and dy and makes dx at most once each. */
enum { ACCESSES_PER_VALUE = 6 };

static bool allocate(builder *b, const sn_net *net, sn_arena *arena) {
  size_t layers = net->n_layers, values = net->n_values;
  b->steps = sn_arena_alloc(arena, 3 * layers, sizeof *b->steps);
  b->accesses = sn_arena_alloc(arena, ACCESSES_PER_VALUE * values, sizeof *b->accesses);
  b->tensors = sn_arena_alloc(arena, 2 * values, sizeof *b->tensors);
  b->forward_step = sn_arena_alloc(arena, layers, sizeof *b->forward_step);
  b->order = calloc(layers, sizeof *b->order);
  b->output = sn_arena_alloc(arena, values, sizeof *b->output);
  b->gradient = sn_arena_alloc(arena, values, sizeof *b->gradient);
  return b->steps && b->accesses && b->tensors && b->forward_step && b->order && b->output && b->gradient;
}

static sn_route *fill(sn_arena *arena, const sn_net *net, sn_err *err) {
  builder b = {.route = sn_arena_alloc(arena, 1, sizeof(sn_route))};
  sn_status status = b.route && allocate(&b, net, arena) ? SN_OK : sn_fail_memory(err);
  if (status == SN_OK) status = make_order(&b, net, err);
  if (status == SN_OK) status = make_steps(&b, net, err);
  if (status == SN_OK) {
    b.route->net = net;
    b.route->steps = b.steps;
    b.route->accesses = b.accesses;
    b.route->tensors = b.tensors;
    b.route->output = b.output;
    b.route->gradient = b.gradient;
    b.route->forward_step = b.forward_step;
    b.route->arena = arena;
  }
  free(b.order);
  return status == SN_OK ? b.route : NULL;
}

sn_route *sn_route_new(const sn_net *net, sn_err *err) {
  sn_arena *arena = sn_arena_new();
  sn_route *route = arena ? fill(arena, net, err) : NULL;
  if (!arena) sn_fail_memory(err);
  if (!route) sn_arena_free(arena);
  return route;
}

void sn_route_free(sn_route *route) {
  if (route) sn_arena_free(route->arena);
}

char *sn_tensor_name(const sn_route *route, uint32_t tensor, char *text, size_t room) {
  const sn_tensor *t = &route->tensors[tensor];
  const sn_layer *layer = &route->net->layers[t->layer];
  const char *suffix = t->kind == SN_OUTPUT ? "y" : "dx";
  uint32_t siblings = t->kind == SN_OUTPUT ? layer->n_outputs : layer->n_inputs;
  if (siblings > 1)
    snprintf(text, room, "%s.%s%u", layer->name, suffix, t->port);
  else
    snprintf(text, room, "%s.%s", layer->name, suffix);
  return text;
}

const char *sn_pass_name(sn_pass pass) {
  static const char *const names[SN_PASSES] = {"forward", "backward", "update"};
  return names[pass];
}

const char *sn_tensor_kind_name(sn_tensor_kind kind) {
  static const char *const names[SN_TENSOR_KINDS] = {"output", "gradient"};
  return names[kind];
}
