/* Routes of other sizes; see the header. What a tensor is of says how large it is; that it is so in the known route is
 * looked up, tensor by tensor. */
#include "sim/graph/route_resize.h"

#include "base/arena.h"
#include "base/checked.h"
#include "sim/graph/route_internal.h"

/* Of the value that a tensor holds, or is the gradient of. */
static uint64_t bytes_of(const sn_net *net, const sn_tensor *t) {
  const sn_layer *layer = &net->layers[t->layer];
  return t->role == SN_VALUE ? net->values[layer->first_output + t->port].bytes
                             : sn_layer_input(net, layer, t->port)->bytes;
}

static bool is_plain(const sn_net *net, const sn_tensor *t) {
  const sn_layer *layer = &net->layers[t->layer];
  bool known =
      (t->role == SN_VALUE && t->port < layer->n_outputs) || (t->role == SN_GRADIENT && t->port < layer->n_inputs);
  return known && bytes_of(net, t) == t->bytes;
}

static bool can_resize(const sn_route *known, const sn_net *net) {
  if (known->n_permits > 0 || known->under || known->dialect->declared || known->net->n_layers != net->n_layers ||
      known->net->n_values != net->n_values)
    return false;
  uint32_t t = 0;
  while (t < known->n_tensors && is_plain(known->net, &known->tensors[t])) t++;
  return t == known->n_tensors;
}

static sn_route *resize(sn_arena *arena, const sn_route *known, const sn_net *net) {
  sn_route *route = sn_arena_alloc(arena, 1, sizeof *route);
  sn_tensor *tensors = sn_arena_alloc(arena, known->n_tensors, sizeof *tensors);
  if (!route || !tensors) return NULL;
  *route = *known;
  route->batch = net->batch;
  route->layers = net->layers;
  route->modules = net->modules;
  route->net = net;
  route->tensors = tensors;
  route->holding = NULL;
  route->tensor_bytes = 0;
  route->arena = arena;
  for (uint32_t t = 0; t < known->n_tensors; t++) {
    tensors[t] = known->tensors[t];
    tensors[t].bytes = bytes_of(net, &tensors[t]);
    route->tensor_bytes += tensors[t].bytes; /* values alone are within SN_MAX_NET_BYTES */
  }
  return route;
}

sn_route *sn_route_resize(const sn_route *known, const sn_net *net, sn_err *err) {
  if (net->recorded) return sn__route_of_recording_resized(known, net, err);
  if (!can_resize(known, net)) return NULL;
  sn_arena *arena = sn_arena_new();
  sn_route *route = arena ? resize(arena, known, net) : NULL;
  if (!route) sn_fail_memory(err);
  if (route && route->tensor_bytes <= SN_MAX_NET_BYTES) return route;
  sn_arena_free(arena);
  return NULL;
}
