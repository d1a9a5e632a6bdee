/* Static memory policies; see the header. */
#include "sim/policy/residency.h"

#include "sim/graph/route.h"

#include <stdlib.h>

/* Per tensor: does a layer with branches touch it, and the last step that touches it. */
typedef struct uses {
  bool *at_branch;
  uint32_t *last_step;
} uses;

static void find_uses(const sn_route *route, uses *u) {
  for (uint32_t s = 0; s < route->n_steps; s++) {
    const sn_step *step = &route->steps[s];
    const sn_layer *layer = &route->layers[step->layer];
    bool branches = layer->op == SN_CONCAT || layer->n_inputs > 1 || layer->n_outputs > 1;
    for (uint32_t i = 0; i < step->n_accesses; i++) {
      uint32_t tensor = route->accesses[step->first_access + i].tensor;
      u->last_step[tensor] = s;
      if (branches) u->at_branch[tensor] = true;
    }
  }
}

/* The output whose memory a gradient can take: its layer's own, on a chain, no longer needed when the gradient is made,
 * and at least as large. */
static uint32_t find_taken(const sn_route *route, const uses *u, uint32_t gradient) {
  const sn_tensor *g = &route->tensors[gradient];
  if (route->work) return SN_NONE; /* of a recording nobody knows which gradient is of which output */
  uint32_t output = sn_route_first_made(route, route->forward_step[g->layer]);
  bool chain = !u->at_branch[gradient] && !u->at_branch[output];
  bool dead = u->last_step[output] < route->backward_step[g->layer];
  return chain && dead && g->bytes <= route->tensors[output].bytes ? output : SN_NONE;
}

static void fill(const sn_route *route, sn_liveness liveness, const uses *u, sn_residency *r) {
  for (uint32_t t = 0; t < route->n_tensors; t++) {
    bool gradient = route->tensors[t].role == SN_GRADIENT;
    r->takes[t] = gradient && liveness == SN_LIVENESS_TAKE_OVER ? find_taken(route, u, t) : SN_NONE;
    switch (liveness) {
    case SN_LIVENESS_NONE:
      r->held[t] = true;
      break;
    case SN_LIVENESS_FULL:
      r->held[t] = false;
      break;
    case SN_LIVENESS_TAKE_OVER:
      r->held[t] = r->takes[t] == SN_NONE;
      break;
    case SN_LIVENESS_GRADIENTS:
      r->held[t] = !gradient || u->at_branch[t];
      break;
    case SN_LIVENESS_CARRIED:
      r->held[t] = route->tensors[t].role == SN_CARRIED || route->tensors[t].role == SN_SCRATCH;
      if (route->tensors[t].role == SN_CARRIED) r->stays[route->tensors[t].port] = true;
      break;
    }
  }
}

sn_status sn_residency_make(const sn_route *route, sn_liveness liveness, sn_residency *residency, sn_err *err) {
  size_t tensors = route->n_tensors;
  bool by_use = liveness == SN_LIVENESS_TAKE_OVER || liveness == SN_LIVENESS_GRADIENTS;
  uses u = {calloc(by_use ? tensors : 1, sizeof(bool)), calloc(by_use ? tensors : 1, sizeof(uint32_t))};
  *residency =
      (sn_residency){calloc(tensors, sizeof(bool)), calloc(tensors, sizeof(bool)), calloc(tensors, sizeof(uint32_t))};
  bool good = u.at_branch && u.last_step && residency->held && residency->stays && residency->takes;
  if (good) {
    if (by_use) find_uses(route, &u);
    fill(route, liveness, &u, residency);
  }
  free(u.at_branch);
  free(u.last_step);
  if (good) return SN_OK;
  sn_residency_clear(residency);
  return sn_fail_memory(err);
}

void sn_residency_clear(sn_residency *residency) {
  free(residency->held);
  free(residency->stays);
  free(residency->takes);
  *residency = (sn_residency){0};
}
