/* Route construction ([SN] algorithm 1) and the tensors of an iteration by a dialect's rules; see the header.
 *
 *   order      depth first with an explicit stack; a layer is appended when its last input arrives
 *   forward    every output is a new tensor, and what is saved for backward; a FORK that does not copy is no step: its
 *              branches are its input
 *   backward   in reverse order: what the rule reads, then the gradients it makes; which operand's bytes may be taken
 *   update     one step per layer with parameters; touches no tensor */
#include "sim/graph/route.h"

#include "base/arena.h"
#include "base/checked.h"
#include "models/op/op.h"
#include "sim/graph/route_internal.h"
#include "sim/graph/route_order.h"

#include <stdio.h>
#include <stdlib.h>

uint32_t sn__route_add_tensor(sn__route_maker *b, uint32_t layer, uint32_t port, sn_role role, uint64_t bytes) {
  sn_route *r = b->route;
  b->tensors[r->n_tensors] = (sn_tensor){.layer = layer, .port = port, .role = role, .bytes = bytes};
  if (!sn_add(r->tensor_bytes, bytes, &r->tensor_bytes) || r->tensor_bytes > SN_MAX_NET_BYTES) b->too_large = true;
  return r->n_tensors++;
}

/* The number of a tensor among the accesses of the step being made; SN_NONE where it has none. */
static uint32_t access_of(const sn__route_maker *b, uint32_t tensor) {
  return tensor != SN_NONE && b->stamp[tensor] == b->route->n_steps ? b->place[tensor] : SN_NONE;
}

/* The input batch is no tensor; what is read twice, as by a JOIN that adds a value to itself, is accessed once. */
void sn__route_access(sn__route_maker *b, uint32_t tensor, sn_access_mode mode) {
  sn_route *r = b->route;
  if (tensor == SN_NONE || access_of(b, tensor) != SN_NONE) return;
  b->stamp[tensor] = r->n_steps;
  b->place[tensor] = r->n_accesses - b->steps[r->n_steps - 1].first_access;
  b->accesses[r->n_accesses++] = (sn_access){.tensor = tensor, .mode = mode};
}

void sn__route_begin_step(sn__route_maker *b, uint32_t layer, sn_pass pass, sn_kernel kernel) {
  b->steps[b->route->n_steps++] = (sn_step){.layer = layer,
                                            .pass = pass,
                                            .kernel = kernel,
                                            .sum = SN_NONE,
                                            .first_access = b->route->n_accesses,
                                            .first_permit = b->route->n_permits};
}

void sn__route_end_step(sn__route_maker *b) {
  sn_step *step = &b->steps[b->route->n_steps - 1];
  step->n_accesses = b->route->n_accesses - step->first_access;
  step->n_permits = b->route->n_permits - step->first_permit;
}

/* A view needs as many bytes as it is of; nobody permits more than 2^16 operands. */
static void permit(sn__route_maker *b, uint32_t from, uint32_t to) {
  uint32_t reads = access_of(b, from), writes = access_of(b, to);
  if (reads > UINT16_MAX || writes > UINT16_MAX || b->tensors[from].bytes != b->tensors[to].bytes) return;
  b->permits[b->route->n_permits++] = (sn_permit){(uint16_t)reads, (uint16_t)writes};
}

/* [SN] algorithm 1. The stack holds at most one entry a value. */
static sn_status make_order(sn__route_maker *b, const sn_net *net, sn_err *err) {
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

/* A FORK that does not copy: its branches are its input. So is PyTorch's DROPOUT where nothing is trained. */
static bool is_transparent(const sn__route_maker *b, const sn_layer *layer) {
  if (layer->op == SN_DROPOUT) return b->iteration.inference && b->route->dialect->eager;
  if (layer->op == SN_FORK) return !b->route->dialect->fork_copies;
  return sn__route_rule(b, (uint32_t)(layer - b->net->layers))->view;
}

/* Inference: never. Declared: only behind what is trained. Else every layer has; but the readers of the input batch
 * make no gradient for a FORK to sum, where that gradient is no tensor. */
bool sn__route_has_backward(const sn__route_maker *b, uint32_t index) {
  const sn_layer *layer = &b->net->layers[index];
  if (b->iteration.inference) return false;
  if (b->route->dialect->declared) return layer->op != SN_FORK && b->trained[layer->first_output];
  return !is_transparent(b, layer) || b->gradient[layer->first_output] != SN_NONE;
}

static void pass_through(sn__route_maker *b, const sn_layer *layer) {
  for (uint32_t port = 0; port < layer->n_outputs; port++)
    b->output[layer->first_output + port] = b->output[sn__route_input(b, layer, 0)];
}

/* An operation that trains makes this whether or not there will be a backward. */
static bool makes_beside(sn_saving saving) {
  return saving == SN_SAVES_CHANNELS || saving == SN_SAVES_ROWS || saving == SN_SAVES_GROUPS ||
         saving == SN_SAVES_MASK || saving == SN_SAVES_ATTENTION || saving == SN_SAVES_PADDED ||
         saving == SN_SAVES_SEEDLESS || saving == SN_SAVES_ROOTS;
}

/* The first of what backward wants that is made; without backward nothing is, but what an eager framework makes all the
 * same: a maximum POOL its indices, LRN two tensors as large as its output, of the simple operations it is made of; and
 * ahead of the first layer that is trained, what operations make beside their output. */
static uint32_t first_saved(const sn__route_maker *b, uint32_t index, sn_saving saving) {
  bool eager = b->route->dialect->eager;
  if (sn__route_has_backward(b, index) || (eager && saving == SN_SAVES_INDICES)) return 0;
  if (eager && !b->iteration.inference && makes_beside(saving)) return 0;
  return eager && saving == SN_SAVES_LRN ? 1 : sn_saving_count(saving);
}

static void add_outputs(sn__route_maker *b, uint32_t index) {
  const sn_layer *layer = &b->net->layers[index];
  for (uint32_t port = 0; port < layer->n_outputs; port++) {
    uint32_t value = layer->first_output + port;
    b->output[value] = sn__route_add_tensor(b, index, port, SN_VALUE, sn__route_bytes(b, value, b->widths.made));
    sn__route_access(b, b->output[value], SN_WRITE);
  }
  sn_saving saving = sn__route_rule(b, index)->saves;
  uint32_t first = first_saved(b, index, saving), count = sn_saving_count(saving);
  for (uint32_t i = first; i < count; i++) {
    uint64_t bytes = sn_saving_bytes(saving, i, layer, b->net->values[layer->first_output].bytes);
    bytes = sn_widths_saving_bytes(&b->widths, b->net, index, saving, i, bytes);
    uint32_t saved = sn__route_add_tensor(b, index, i, SN_SAVED, bytes);
    if (i == first) b->saved[index] = saved;
    sn__route_access(b, saved, SN_WRITE);
  }
}

/* A step that gives the bytes of a tensor another shape. */
static void reshape(sn__route_maker *b, uint32_t index, sn_pass pass, uint32_t from, uint32_t to) {
  sn__route_begin_step(b, index, pass, SN_FLATTEN);
  sn__route_access(b, from, SN_READ);
  sn__route_access(b, to, SN_WRITE);
  permit(b, from, to);
  sn__route_end_step(b);
}

/* The input batch is given in whatever shape. */
static void add_flatten(sn__route_maker *b, uint32_t index) {
  const sn_layer *layer = &b->net->layers[index];
  uint32_t value = sn__route_input(b, layer, 0);
  bool flattens = layer->op == SN_FC && !layer->attr->positions && b->route->dialect->flattens;
  if (!flattens || b->output[value] == SN_NONE) return;
  b->flat[index] = sn__route_add_tensor(b, index, SN_FLAT, SN_VALUE, sn__route_bytes(b, value, b->widths.made));
  reshape(b, index, SN_FORWARD, b->output[value], b->flat[index]);
}

/* What a layer reads as its i-th input. */
static uint32_t operand_of(const sn__route_maker *b, uint32_t index, uint32_t i) {
  if (b->flat[index] != SN_NONE) return b->flat[index];
  uint32_t value = sn__route_input(b, &b->net->layers[index], i);
  return b->cast[value] != SN_NONE ? b->cast[value] : b->output[value];
}

static void permit_output(sn__route_maker *b, uint32_t index) {
  const sn_layer *layer = &b->net->layers[index];
  uint8_t takes = sn__route_rule(b, index)->takes;
  bool first = takes & SN_Y_TAKES_IN_PLACE && sn_layer_in_place(b->net, layer);
  uint32_t count = takes & SN_Y_TAKES_X ? layer->n_inputs : first ? 1 : 0;
  for (uint32_t i = 0; i < count; i++) permit(b, operand_of(b, index, i), b->output[layer->first_output]);
}

static void add_forward(sn__route_maker *b, uint32_t index) {
  const sn_layer *layer = &b->net->layers[index];
  if (is_transparent(b, layer)) {
    pass_through(b, layer);
    return;
  }
  add_flatten(b, index);
  b->forward_step[index] = b->route->n_steps;
  sn__route_begin_step(b, index, SN_FORWARD, SN_WHOLE);
  for (uint32_t i = 0; i < layer->n_inputs; i++) sn__route_access(b, operand_of(b, index, i), SN_READ);
  sn__route_cast_forward(b, index);
  sn__route_dequantize(b, index);
  sn__route_split_product(b, index);
  add_outputs(b, index);
  sn__route_angles(b, index);
  sn__route_hold_named(b, index);
  sn__route_make_workspace(b, index);
  permit_output(b, index);
  sn__route_end_step(b);
}

static bool needs_gradient(const sn__route_maker *b, uint32_t value) {
  if (b->net->values[value].dtype != SN_F32) return false;
  if (b->route->dialect->declared && !b->route->dialect->data_gradient) return b->trained[value];
  return b->output[value] != SN_NONE || b->route->dialect->data_gradient;
}

static sn_part whole_of(const sn__route_maker *b, uint32_t value) {
  return (sn_part){b->net->layers[b->net->values[value].producer].out.c, SN_NONE};
}

static bool casts_back(const sn__route_maker *b, uint32_t value) {
  return b->widths.made && b->widths.gradient[value] != b->widths.made[value];
}

void sn__route_new_gradients(sn__route_maker *b, uint32_t index, uint32_t first) {
  const sn_layer *layer = &b->net->layers[index];
  for (uint32_t i = first; i < layer->n_inputs; i++) {
    uint32_t value = sn__route_input(b, layer, i);
    if (!needs_gradient(b, value)) continue;
    uint32_t port = b->flat[index] == SN_NONE ? i : SN_FLAT;
    if (casts_back(b, value)) port += SN_CAST_INPUT;
    uint32_t tensor = sn__route_add_tensor(b, index, port, SN_GRADIENT, sn__route_bytes(b, value, b->widths.gradient));
    sn__route_access(b, tensor, SN_WRITE);
    if (b->route->dialect->by_kernel && !b->trained[value]) continue; /* made, and nobody wants it */
    if (b->route->dialect->declared)
      sn__route_deliver(b, value, tensor, whole_of(b, value));
    else
      b->gradient[value] = tensor;
  }
}

static int compare_branches(const void *a, const void *b) {
  const sn__branch *x = a, *y = b;
  return x->read_at > y->read_at ? -1 : x->read_at < y->read_at;
}

/* The gradient of the last reader in forward order comes first. */
static void sum_gradients(sn__route_maker *b, uint32_t index) {
  const sn_layer *layer = &b->net->layers[index];
  for (uint32_t port = 0; port < layer->n_outputs; port++)
    b->branches[port] = (sn__branch){b->forward_step[b->net->values[layer->first_output + port].consumer], port};
  qsort(b->branches, layer->n_outputs, sizeof *b->branches, compare_branches);
  for (uint32_t i = 0; i < layer->n_outputs; i++)
    sn__route_access(b, b->gradient[layer->first_output + b->branches[i].port], SN_READ);
  sn__route_new_gradients(b, index, 0);
}

static void add_gradients(sn__route_maker *b, uint32_t index) {
  const sn_layer *layer = &b->net->layers[index];
  uint32_t input = sn__route_input(b, layer, 0), output = layer->first_output;
  switch ((sn_gradient_rule)sn__route_rule(b, index)->gradient) {
  case SN_GRAD_NONE:
    break;
  case SN_GRAD_NEW:
    sn__route_new_gradients(b, index, 0);
    break;
  case SN_GRAD_IN_PLACE:
    b->gradient[input] = b->gradient[output];
    break;
  case SN_GRAD_ON_OUTPUT:
    b->gradient[input] = b->output[output];
    break;
  case SN_GRAD_SHARE:
    b->gradient[input] = b->gradient[output];
    sn__route_new_gradients(b, index, 1);
    break;
  case SN_GRAD_PASS_ON:
    if (needs_gradient(b, input))
      sn__route_deliver(b, input, b->gradient[output], (sn_part){b->part[output].channels, input});
    break;
  case SN_GRAD_ACCUMULATE:
    for (uint32_t port = 1; port < layer->n_outputs; port++) sn__route_access(b, b->gradient[output + port], SN_READ);
    b->gradient[input] = b->gradient[output];
    break;
  case SN_GRAD_SUM:
    sum_gradients(b, index);
    break;
  case SN_GRAD_HAND_ON:
  case SN_GRAD_VIEWS:
  case SN_GRAD_MEET:
    break; /* no step: route_eager.c */
  }
}

static uint32_t operand_tensor(const sn__route_maker *b, uint32_t index, sn_operand operand) {
  const sn_layer *layer = &b->net->layers[index];
  switch (operand) {
  case SN_X:
    return operand_of(b, index, 0);
  case SN_Y:
    return b->output[layer->first_output];
  case SN_DY:
    return b->gradient[layer->first_output];
  case SN_KEPT:
    return b->saved[index];
  case SN_ALL_X: /* one by one: sn__route_access_operand() */
  case SN_NOTHING:
    break;
  }
  return SN_NONE;
}

/* What is written in place is read and changed at once. */
static sn_access_mode operand_mode(const sn_op_rule *rule, sn_operand operand) {
  bool changed = (operand == SN_DY && (rule->gradient == SN_GRAD_IN_PLACE || rule->gradient == SN_GRAD_ACCUMULATE)) ||
                 (operand == SN_Y && rule->gradient == SN_GRAD_ON_OUTPUT);
  return changed ? SN_MODIFY : SN_READ;
}

static void permit_gradient(sn__route_maker *b, uint32_t index) {
  static const struct {
    sn_taking taking;
    sn_operand from;
  } takings[] = {{SN_DX_TAKES_DY, SN_DY}, {SN_DX_TAKES_X, SN_X}, {SN_DX_TAKES_Y, SN_Y}};
  const sn_layer *layer = &b->net->layers[index];
  uint32_t to = b->gradient[sn__route_input(b, layer, 0)];
  bool sums = sn__route_rule(b, index)->gradient == SN_GRAD_SUM;
  for (size_t i = 0; i < sizeof takings / sizeof takings[0]; i++) {
    if (!(sn__route_rule(b, index)->takes & takings[i].taking)) continue;
    uint32_t from =
        sums ? b->gradient[layer->first_output + b->branches[0].port] : operand_tensor(b, index, takings[i].from);
    permit(b, from, to);
  }
}

/* Of a product each factor is kept for the gradient of the others. */
static bool keeps_factor(const sn__route_maker *b, uint32_t index, uint32_t input) {
  const sn_layer *layer = &b->net->layers[index];
  bool product = layer->op == SN_MUL || layer->op == SN_MATMUL, others = false;
  for (uint32_t i = 0; i < layer->n_inputs; i++)
    others = others || (i != input && needs_gradient(b, sn__route_input(b, layer, i)));
  return !product || !b->route->dialect->eager || others;
}

/* An FC, EXPERTS and a SCALE keep their input for the gradient of their parameters alone. */
static bool keeps_input(const sn__route_maker *b, uint32_t index) {
  sn_op op = b->net->layers[index].op;
  return (op != SN_FC && op != SN_EXPERTS && op != SN_SCALE) || !b->route->dialect->eager || sn__route_trains(b, index);
}

/* What an RMS_NORM makes of its input is kept for the gradient of its factors alone; an FC's copy of its input as that. */
static uint32_t kept_count(const sn__route_maker *b, uint32_t index, sn_saving saving) {
  bool of_factors = saving == SN_SAVES_RMS || saving == SN_SAVES_PLUS_ONE_RMS || b->net->layers[index].op == SN_FC;
  return sn_saving_count(saving) - (of_factors && !sn__route_trains(b, index));
}

void sn__route_access_operand(sn__route_maker *b, uint32_t index, sn_operand operand) {
  const sn_op_rule *rule = sn__route_rule(b, index);
  uint32_t inputs = operand == SN_ALL_X ? b->net->layers[index].n_inputs : 0;
  for (uint32_t i = 0; i < inputs; i++)
    if (keeps_factor(b, index, i)) sn__route_access(b, operand_of(b, index, i), SN_READ);
  if (inputs > 0 || (operand == SN_X && !keeps_input(b, index))) return;
  uint32_t tensor = operand_tensor(b, index, operand),
           count = operand == SN_KEPT ? kept_count(b, index, rule->saves) : 1;
  for (uint32_t i = 0; i < count; i++) sn__route_access(b, tensor + i, operand_mode(rule, operand));
}

/* The gradient with respect to the input of an FC, which is that of its flat input. */
static void add_flatten_back(sn__route_maker *b, uint32_t index) {
  if (b->flat[index] == SN_NONE) return;
  uint32_t value = sn__route_input(b, &b->net->layers[index], 0), flat = b->gradient[value];
  b->gradient[value] = sn__route_add_tensor(b, index, 0, SN_GRADIENT, sn__route_bytes(b, value, b->widths.gradient));
  reshape(b, index, SN_BACKWARD, flat, b->gradient[value]);
}

/* Of a product by weights whose input needs no gradient, or which is frozen, a part. */
static sn_kernel kernel_of(const sn__route_maker *b, const sn_layer *layer) {
  bool filters = sn_op_of(layer)->weighs;
  if (filters && !sn__route_trains(b, (uint32_t)(layer - b->net->layers))) return SN_DATA_GRADIENT;
  return filters && !needs_gradient(b, sn__route_input(b, layer, 0)) ? SN_FILTER_GRADIENT : SN_WHOLE;
}

static void add_backward_step(sn__route_maker *b, uint32_t index) {
  const sn_op_rule *rule = sn__route_rule(b, index);
  b->backward_step[index] = b->route->n_steps;
  sn__route_begin_step(b, index, SN_BACKWARD, kernel_of(b, &b->net->layers[index]));
  for (int i = 0; i < SN_MOST_OPERANDS && rule->reads[i] != SN_NOTHING && rule->gradient != SN_GRAD_SUM; i++)
    sn__route_access_operand(b, index, rule->reads[i]);
  sn__route_angles(b, index);
  sn__route_make_scratch(b, index);
  sn__route_dequantize(b, index);
  add_gradients(b, index);
  bool data = needs_gradient(b, sn__route_input(b, &b->net->layers[index], 0));
  if (b->route->dialect->eager && !sn__route_cast_gradients(b, index, data)) sn__route_parameter_gradients(b, index);
  permit_gradient(b, index);
  sn__route_end_step(b);
  add_flatten_back(b, index);
}

static void add_backward(sn__route_maker *b, uint32_t index) {
  uint8_t rule = sn__route_rule(b, index)->gradient;
  if (!sn__route_has_backward(b, index)) return;
  if (rule == SN_GRAD_HAND_ON || rule == SN_GRAD_VIEWS)
    sn__route_hand_on(b, index);
  else
    add_backward_step(b, index);
  if (b->route->dialect->eager) sn__route_leave(b, index);
}

static void add_updates(sn__route_maker *b) {
  for (uint32_t i = 0; i + 1 < b->net->n_layers; i++) {
    if (!sn_freeze_trains(b->iteration.freeze, &b->net->layers[b->order[i]])) continue;
    sn__route_begin_step(b, b->order[i], SN_UPDATE, SN_WHOLE);
    if (b->route->dialect->eager) sn__route_eager_update(b, b->order[i]);
    sn__route_end_step(b);
  }
}

static void clear(sn__route_maker *b) {
  const sn_net *net = b->net;
  b->angles = b->turned = SN_NONE;
  for (uint32_t i = 0; i < net->n_layers; i++)
    b->forward_step[i] = b->backward_step[i] = b->saved[i] = b->flat[i] = b->weight_gradient[i] = b->scratch[i] =
        b->weight_cast[i] = SN_NONE;
  for (uint32_t value = 0; value < net->n_values; value++) {
    b->output[value] = b->gradient[value] = b->cast[value] = SN_NONE;
    b->part[value] = whole_of(b, value);
  }
}

static sn_status add_backwards(sn__route_maker *b, sn_err *err) {
  bool by_kernel = b->route->dialect->by_kernel;
  sn_status status = by_kernel ? sn__route_backward_kernels(b, err) : SN_OK;
  for (uint32_t i = b->net->n_layers - 1; i-- > 0 && !by_kernel;) add_backward(b, b->order[i]);
  b->route->first_update = b->route->n_steps;
  if (!by_kernel) add_updates(b);
  return status;
}

static sn_status make_steps(sn__route_maker *b, sn_err *err) {
  const sn_net *net = b->net;
  uint32_t n = net->n_layers - 1;
  clear(b);
  if (b->route->dialect->declared) sn__route_find_trained(b);
  for (uint32_t i = 0; i < n; i++) add_forward(b, b->order[i]);
  b->route->first_backward = b->route->first_update = b->route->n_steps;
  if (!b->iteration.inference && add_backwards(b, err) != SN_OK) return err->code;
  if (b->too_large)
    return sn_fail(err, SN_BAD_INPUT,
                   "network %s at batch %u: its tensors together exceed 4 PiB; choose a smaller batch", net->name,
                   net->batch);
  return SN_OK;
}

/* A value is read and made once forward; backward reads x, y and dy, makes dx and sums it at most once each. Where
 * forks do not copy a layer saves up to three tensors, made and read once each, or has a flat input and its gradient,
 * of four accesses more than its own, in two steps. Eager dialects add a sum of three for each value at most; and for
 * each layer two gradients of parameters, made, read and held to the end, three tensors of scratch, and a loss held to
 * the end. What adds a layer's own gradients, a step each, reads them and makes a third of each. */
enum { ACCESSES_PER_VALUE = 7, PERMITS_PER_VALUE = 4, SAVED_PER_LAYER = 3, EAGER_PER_VALUE = 3, EAGER_PER_LAYER = 13 };

/* Two kernels forward, three backward, four for each of two parameters. Of an FC or CONV: its product twice, scratch
 * and dy three times, and each gradient of a parameter three times. */
enum { STEPS_BY_KERNEL = 2 + 3 + 2 * 4, KERNELS_PER_LAYER = 14 };

typedef struct sizes {
  size_t layers, values, steps, tensors, accesses, permits, sums;
} sizes;

/* Casts add to each value a copy and one back, in a step of two accesses; to each layer two copies of parameters, made,
 * read by backward and at the end, and their gradients, made, read, and made into others in steps of three. */
enum { CASTS_PER_VALUE = 2, CAST_ACCESSES_PER_VALUE = 4, CASTS_PER_LAYER = 6, CAST_ACCESSES_PER_LAYER = 14 };

static sizes sizes_of(const sn_net *net, const sn_dialect *dialect, size_t casts) {
  size_t layers = net->n_layers, values = net->n_values, eager = dialect->declared, saves = !dialect->fork_copies;
  size_t kernels = dialect->by_kernel;
  return (sizes){
      .layers = layers,
      .values = values,
      .steps = (kernels             ? STEPS_BY_KERNEL
                : dialect->flattens ? 5
                                    : 3) *
                   layers +
               (eager + casts) * values + 2 * (eager + casts) * layers,
      .tensors = 2 * values + saves * SAVED_PER_LAYER * layers + eager * (values + (5 + kernels) * layers + 3) +
                 casts * (CASTS_PER_VALUE * values + CASTS_PER_LAYER * layers),
      .accesses = (ACCESSES_PER_VALUE + eager * EAGER_PER_VALUE) * values +
                  (saves * 2 * SAVED_PER_LAYER + eager * EAGER_PER_LAYER + kernels * KERNELS_PER_LAYER) * layers + 2 +
                  4 * eager + casts * (CAST_ACCESSES_PER_VALUE * values + CAST_ACCESSES_PER_LAYER * layers),
      .permits = saves * PERMITS_PER_VALUE * values + 1,
      .sums = eager * values + 1};
}

static bool allocate(sn__route_maker *b, const sn_net *net, sn_arena *arena) {
  sizes n = sizes_of(net, b->route->dialect, b->widths.made != NULL);
  b->steps = sn_arena_alloc(arena, n.steps, sizeof *b->steps);
  b->accesses = sn_arena_alloc(arena, n.accesses, sizeof *b->accesses);
  b->permits = sn_arena_alloc(arena, n.permits, sizeof *b->permits);
  b->tensors = sn_arena_alloc(arena, n.tensors, sizeof *b->tensors);
  b->sums = sn_arena_alloc(arena, n.sums, sizeof *b->sums);
  b->part = sn_arena_alloc(arena, n.values, sizeof *b->part);
  b->forward_step = sn_arena_alloc(arena, n.layers, sizeof *b->forward_step);
  b->backward_step = sn_arena_alloc(arena, n.layers, sizeof *b->backward_step);
  b->weight_gradient = sn_arena_alloc(arena, n.layers, sizeof *b->weight_gradient);
  b->saved = sn_arena_alloc(arena, n.layers, sizeof *b->saved);
  b->output = sn_arena_alloc(arena, n.values, sizeof *b->output);
  b->gradient = sn_arena_alloc(arena, n.values, sizeof *b->gradient);
  b->rules = sn_arena_alloc(arena, n.layers, sizeof *b->rules);
  b->order = calloc(n.layers, sizeof *b->order);
  b->flat = calloc(n.layers, sizeof *b->flat);
  b->stamp = calloc(n.tensors, sizeof *b->stamp);
  b->place = calloc(n.tensors, sizeof *b->place);
  b->branches = calloc(n.values, sizeof *b->branches);
  b->trained = calloc(n.values, sizeof *b->trained);
  b->holders = calloc(n.tensors, sizeof *b->holders);
  b->meetings = calloc(n.values, sizeof *b->meetings);
  b->scratch = calloc(n.layers, sizeof *b->scratch);
  b->cast = calloc(n.values, sizeof *b->cast);
  b->weight_cast = calloc(n.layers, sizeof *b->weight_cast);
  b->casts = calloc(n.values, sizeof *b->casts);
  return b->rules && b->steps && b->accesses && b->permits && b->tensors && b->sums && b->part && b->forward_step &&
         b->backward_step && b->weight_gradient && b->saved && b->output && b->gradient && b->order && b->flat &&
         b->stamp && b->place && b->branches && b->trained && b->holders && b->meetings && b->scratch && b->cast &&
         b->weight_cast && b->casts;
}

static void free_room(sn__route_maker *b) {
  free(b->order);
  free(b->flat);
  free(b->stamp);
  free(b->place);
  free(b->branches);
  free(b->trained);
  free(b->holders);
  free(b->meetings);
  free(b->scratch);
  free(b->cast);
  free(b->weight_cast);
  free(b->casts);
  sn_widths_clear(&b->widths);
}

static void hand_over(const sn__route_maker *b, sn_arena *arena) {
  sn_route *r = b->route;
  r->name = b->net->name;
  r->batch = b->net->batch;
  r->n_layers = b->net->n_layers;
  r->layers = b->net->layers;
  r->modules = b->net->modules;
  r->net = b->net;
  r->steps = b->steps;
  r->accesses = b->accesses;
  r->permits = b->permits;
  r->tensors = b->tensors;
  r->rules = b->rules;
  r->output = b->output;
  r->gradient = b->gradient;
  r->saved = b->saved;
  r->forward_step = b->forward_step;
  r->backward_step = b->backward_step;
  r->weight_gradient = b->weight_gradient;
  r->sums = b->sums;
  r->part = b->part;
  r->arena = arena;
}

/* What is asked for. */
typedef struct wish {
  sn_dialect_id dialect;
  sn_order order;
  sn_iteration iteration;
  const uint64_t *workspace;
} wish;

static sn_route *fill(sn_arena *arena, const sn_net *net, const wish *w, sn_err *err) {
  sn_route *route = sn_arena_alloc(arena, 1, sizeof *route);
  if (!route) {
    sn_fail_memory(err);
    return NULL;
  }
  route->dialect = sn_dialect_of(w->dialect);
  sn__route_maker b = {.net = net, .route = route, .iteration = w->iteration, .workspace = w->workspace};
  sn_status status =
      sn_widths_make_of(&b.widths, net, w->iteration.precision, route->dialect, w->iteration.inference, err);
  if (status == SN_OK && !allocate(&b, net, arena)) status = sn_fail_memory(err);
  if (status == SN_OK) sn__route_find_rules(&b);
  if (status == SN_OK) status = route->dialect->declared ? sn__route_eager_order(&b, err) : make_order(&b, net, err);
  if (status == SN_OK) status = make_steps(&b, err);
  if (status == SN_OK) hand_over(&b, arena);
  free_room(&b);
  if (status == SN_OK && route->dialect->in_place) status = sn_route_take(route, err);
  return status == SN_OK ? route : NULL;
}

static sn_route *make_route(const sn_net *net, const wish *w, sn_err *err) {
  if (sn__route_check(net, w->dialect, w->order, w->iteration, err) != SN_OK) return NULL;
  if (net->recorded) return sn__route_of_recording(net, w->dialect, err);
  sn_arena *arena = sn_arena_new();
  sn_route *route = arena ? fill(arena, net, w, err) : NULL;
  if (!arena) sn_fail_memory(err);
  if (route && sn__route_put_in_order(route, w->order, err) != SN_OK) route = NULL;
  if (!route) sn_arena_free(arena);
  return route;
}

sn_route *sn_route_new_for(const sn_net *net, sn_dialect_id dialect, sn_order order, sn_iteration iteration,
                           const uint64_t *workspace, sn_err *err) {
  return make_route(net, &(wish){.dialect = dialect, .order = order, .iteration = iteration, .workspace = workspace},
                    err);
}
