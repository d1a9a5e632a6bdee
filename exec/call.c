/* What all back ends and kernels must agree on: where a call's tensors lie, and dropout's mask; see exec/call.h. The
 * mask takes two multiplications an element; nothing is stored. */
#include "exec/call.h"

#include "exec/kernel_internal.h"

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
}
