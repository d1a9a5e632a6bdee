/* What all back ends and kernels must agree on: where a call's tensors lie, and dropout's mask; see exec/kernel/call.h.
 * The mask takes two multiplications an element; nothing is stored. */
#include "exec/kernel/call.h"

#include "exec/kernel/kernel_internal.h"
#include "sim/graph/route.h"

#include <stdlib.h>
#include <string.h>

bool sn_dropout_keeps(const sn_call *call, uint64_t index) {
  return sn__mask_keeps(sn__mask_of(call), index);
}

uint32_t sn_call_widest(const sn_net *net) {
  uint32_t most = 1;
  for (uint32_t i = 0; i < net->n_layers; i++) {
    if (net->layers[i].n_inputs > most) most = net->layers[i].n_inputs;
    if (net->layers[i].n_outputs > most) most = net->layers[i].n_outputs;
  }
  return most;
}

static float *tensor_at(unsigned char *const *place, uint32_t tensor) {
  return tensor == SN_NONE ? NULL : (float *)(void *)place[tensor];
}

static void fill_saved(sn_call *call, const sn_route *route, unsigned char *const *place) {
  uint32_t first = route->saved[call->layer];
  uint32_t count = first == SN_NONE ? 0 : sn_saving_count(sn_route_rule(route, call->layer)->saves);
  for (uint32_t i = 0; i < 3; i++) call->saved[i] = i < count ? place[first + i] : NULL;
  call->saved_bytes = count > 0 ? route->tensors[first + count - 1].bytes : 0;
}

void sn_call_fill(sn_call *call, const sn_route *route, unsigned char *const *place, float *data, float **room) {
  const sn_layer *layer = sn__call_layer(call);
  call->x = room;
  call->dx = call->x + layer->n_inputs;
  call->y = call->dx + layer->n_inputs;
  call->dy = call->y + layer->n_outputs;
  for (uint32_t n = 0; n < layer->n_inputs; n++) {
    uint32_t value = route->net->inputs[layer->first_input + n];
    call->x[n] = route->output[value] == SN_NONE ? data : tensor_at(place, route->output[value]);
    call->dx[n] = tensor_at(place, route->gradient[value]);
  }
  for (uint32_t n = 0; n < layer->n_outputs; n++) {
    call->y[n] = tensor_at(place, route->output[layer->first_output + n]);
    call->dy[n] = tensor_at(place, route->gradient[layer->first_output + n]);
  }
  fill_saved(call, route, place);
}

bool sn__call_reads(const sn_route *route, const sn_step *step, uint32_t tensor) {
  if (tensor == SN_NONE) return true; /* the input batch is always there */
  for (uint32_t i = 0; i < step->n_accesses; i++) {
    sn_access access = route->accesses[step->first_access + i];
    if (access.tensor == tensor) return access.mode != SN_WRITE;
  }
  return false;
}

void sn_call_hide_unread(sn_call *call, const sn_route *route, const sn_step *step) {
  const sn_layer *layer = sn__call_layer(call);
  if (step->pass != SN_BACKWARD) return;
  if (!sn__call_reads(route, step, route->output[route->net->inputs[layer->first_input]])) call->x[0] = NULL;
  if (!sn__call_reads(route, step, route->output[layer->first_output])) call->y[0] = NULL;
}

uint32_t sn_call_owner(const sn_net *net, uint32_t layer) {
  return net->layers[layer].attr->weights_of ? net->layers[layer].attr->weights_of : layer;
}

bool sn_call_trains(const sn_route *route, uint32_t layer) {
  uint32_t owner = sn_call_owner(route->net, layer);
  if (route->layers[owner].parameters == 0) return false;
  return !route->dialect->eager || route->weight_gradient[owner] != SN_NONE;
}

bool *sn_call_find_adders(const sn_route *route) {
  const sn_net *net = route->net;
  bool *adds = calloc(net->n_layers, sizeof *adds);
  uint32_t *first = calloc(net->n_layers, sizeof *first); /* the first backward step that makes a layer's gradients */
  for (uint32_t i = 0; adds && first && i < net->n_layers; i++) first[i] = SN_NONE;
  for (uint32_t i = 0; adds && first && i < net->n_layers; i++) {
    uint32_t *of = &first[sn_call_owner(net, i)];
    if (route->backward_step[i] < *of) *of = route->backward_step[i];
  }
  for (uint32_t i = 0; adds && first && i < net->n_layers; i++)
    adds[i] = route->backward_step[i] != first[sn_call_owner(net, i)];
  if (!first) {
    free(adds);
    adds = NULL;
  }
  free(first);
  return adds;
}

uint64_t sn_call_own_bytes(const sn_route *route, const sn_step *step, const bool *adds) {
  if (!sn__call_is_backward(step) || !adds[step->layer] || !sn_call_trains(route, step->layer)) return 0;
  return route->layers[sn_call_owner(route->net, step->layer)].parameters * sizeof(float);
}

uint64_t sn_call_aside_bytes(const sn_route *route, const sn_step *step, uint32_t batches, const bool *adds) {
  uint32_t owner = sn_call_owner(route->net, step->layer);
  if (batches < 2 || !sn__call_is_backward(step) || route->weight_gradient[owner] != SN_NONE || adds[step->layer] ||
      !sn_call_trains(route, step->layer))
    return 0;
  return route->layers[owner].parameters * sizeof(float);
}
