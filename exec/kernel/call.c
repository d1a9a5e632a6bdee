/* What all back ends and kernels must agree on: where a call's tensors lie, and dropout's mask; see exec/kernel/call.h.
 * The mask takes two multiplications an element; nothing is stored. */
#include "exec/kernel/call.h"

#include "exec/kernel/kernel_internal.h"

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
  const sn_layer *layer = sn__call_layer(call);
  uint32_t first = route->saved[call->layer];
  uint32_t count = first == SN_NONE ? 0 : sn_saving_count(sn_dialect_rule(route->dialect, route->net, layer)->saves);
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

static bool reads(const sn_route *route, const sn_step *step, uint32_t tensor) {
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
  if (!reads(route, step, route->output[route->net->inputs[layer->first_input]])) call->x[0] = NULL;
  if (!reads(route, step, route->output[layer->first_output])) call->y[0] = NULL;
}

/* Channels of a value, and where its gradient begins in the storage and how far apart its images are, in floats. */
typedef struct view {
  uint64_t offset, stride, count; /* count: floats of an image */
  uint32_t images;
} view;

static view view_of(const sn_net *net, uint32_t value, sn_part part) {
  sn_shape s = net->layers[net->values[value].producer].out;
  return (view){part.channel * sn__plane(s), part.channels * sn__plane(s), sn__image(s), s.n};
}

void sn_call_gather(const sn_route *route, uint32_t value, const float *storage, float *to) {
  view v = view_of(route->net, value, route->part[value]);
  for (uint32_t n = 0; n < v.images; n++)
    memcpy(to + n * v.count, storage + v.offset + n * v.stride, v.count * sizeof *to);
}

/* A step of the layer itself, no sum and no view. */
static bool is_backward_kernel(const sn_step *step) {
  return step->pass == SN_BACKWARD && (step->kernel == SN_WHOLE || step->kernel == SN_FILTER_GRADIENT);
}

uint64_t sn_call_gathered_bytes(const sn_route *route, const sn_step *step) {
  const sn_layer *layer = &route->net->layers[step->layer];
  if (!is_backward_kernel(step) || layer->n_outputs == 0 || route->gradient[layer->first_output] == SN_NONE) return 0;
  return route->part[layer->first_output].channels == layer->out.c ? 0 : route->net->values[layer->first_output].bytes;
}

uint64_t sn_call_aside_bytes(const sn_route *route, const sn_step *step, uint32_t batches) {
  if (batches < 2 || !is_backward_kernel(step) || route->weight_gradient[step->layer] != SN_NONE) return 0;
  return route->net->layers[step->layer].parameters * sizeof(float);
}

void sn_call_sum(const sn_route *route, const sn_step *step, unsigned char *const *place) {
  const sn_sum *sum = &route->sums[step->sum];
  uint32_t value = route->net->inputs[route->net->layers[step->layer].first_input];
  view a = view_of(route->net, value, sum->earlier.part), b = view_of(route->net, value, sum->later.part),
       to = view_of(route->net, value, sum->to.part);
  const float *earlier = tensor_at(place, sum->earlier.tensor), *later = tensor_at(place, sum->later.tensor);
  float *made = tensor_at(place, sum->to.tensor);
  for (uint32_t n = 0; n < a.images; n++) {
    const float *x = earlier + a.offset + n * a.stride, *y = later + b.offset + n * b.stride;
    float *z = made + to.offset + n * to.stride;
    for (uint64_t i = 0; i < a.count; i++) z[i] = x[i] + y[i];
  }
}
