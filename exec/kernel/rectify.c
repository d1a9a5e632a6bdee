/* Which steps are rectified by their BN; see the header. By net and route alone, in constant time. */
#include "exec/kernel/rectify.h"

#include "models/net/rectifier.h"
#include "sim/graph/route.h"

#include <math.h>

/* Both values in one tensor, all of it. */
static bool in_one(const sn_route *route, const uint32_t *tensor_of, uint32_t a, uint32_t b) {
  const uint32_t tensor = tensor_of[a];
  return tensor != SN_NONE && tensor == tensor_of[b] && route->tensors[tensor].bytes == route->net->values[a].bytes;
}

/* In this pass the ACT writes over what it reads. */
static bool is_in_place(const sn_route *route, const sn_layer *act, sn_pass pass) {
  const uint32_t x = route->net->inputs[act->first_input];
  return in_one(route, pass == SN_FORWARD ? route->output : route->gradient, x, act->first_output);
}

float sn_rectify_ceiling(const sn_route *route, const sn_step *step) {
  const sn_layer *act = sn_rectifier_of(route->net, &route->layers[step->layer]);
  if (!act || step->kernel != SN_WHOLE || step->pass == SN_UPDATE) return 0;
  if (step->pass == SN_FORWARD && !is_in_place(route, act, SN_FORWARD)) return 0;
  return act->attr->act == SN_ACT_RELU6 ? 6 : INFINITY;
}

bool sn_rectify_spares(const sn_route *route, const sn_step *step) {
  const sn_layer *act = &route->layers[step->layer];
  if (act->op != SN_ACT || step->kernel != SN_WHOLE || step->pass == SN_UPDATE) return false;
  const uint32_t maker = sn_layer_input(route->net, act, 0)->producer;
  return sn_rectifier_of(route->net, &route->layers[maker]) == act && is_in_place(route, act, step->pass);
}
