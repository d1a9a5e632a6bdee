/* What a selective checkpoint keeps; see the header. */
#include "sim/schedule/selective.h"

#include "sim/schedule/schedule.h"

#include <stdlib.h>

/* Whether a policy keeps what a forward step makes; `products`: how many the unit has had. */
static bool is_kept(const sn_route *route, const sn_step *step, uint32_t *products) {
  const sn_layer *layer = &route->layers[step->layer];
  if (step->kernel != SN_WHOLE) return false;
  if (layer->op == SN_ATTENTION) return !layer->attr->parts;
  return layer->op == SN_FC && !layer->attr->bias && ++*products % 2 == 1;
}

bool *sn_selective_find(const sn_route *route, const sn_units *units) {
  bool *kept = calloc((size_t)route->first_backward + 1, sizeof *kept);
  for (uint32_t u = 0; kept && u < units->count; u++) {
    uint32_t products = 0;
    for (uint32_t s = units->first[u]; s < units->first[u + 1]; s++)
      kept[s] = is_kept(route, &route->steps[s], &products);
  }
  return kept;
}

static bool touches(const sn_route *route, uint32_t step, uint32_t tensor) {
  const sn_step *at = &route->steps[step];
  for (uint32_t i = 0; i < at->n_accesses; i++)
    if (route->accesses[at->first_access + i].tensor == tensor) return true;
  return false;
}

/* Of a unit: the last step whose backward needs anything of forward, and the last of those to go backward. */
typedef struct span {
  uint32_t last, until;
} span;

static span span_of(const sn_route *route, const sn_units *units, uint32_t unit) {
  span found = {SN_NONE, 0};
  for (uint32_t s = units->first[unit]; s < units->first[unit + 1]; s++) {
    if (sn_step_is_beside(route, &route->steps[s]) || !sn_schedule_needs_forward(route, s)) continue;
    uint32_t backward = route->backward_step[route->steps[s].layer];
    found.last = s;
    if (backward > found.until) found.until = backward;
  }
  return found;
}

/* Whether what a kept step has made is given back to nobody: all that the unit saves is there ahead of it. */
static bool is_left(const sn_route *route, uint32_t step, span of) {
  const sn_step *at = &route->steps[step];
  if (of.last == SN_NONE || step != of.last) return of.last != SN_NONE && step > of.last;
  for (uint32_t i = 0; i < at->n_accesses; i++) {
    sn_access access = route->accesses[at->first_access + i];
    if (access.mode == SN_WRITE && touches(route, route->backward_step[at->layer], access.tensor)) return false;
  }
  return true;
}

static uint32_t add_holds(const sn_route *route, uint32_t step, uint32_t until, sn_hold *holds, uint32_t n) {
  const sn_step *at = &route->steps[step];
  for (uint32_t i = 0; i < at->n_accesses; i++) {
    sn_access access = route->accesses[at->first_access + i];
    if (access.mode == SN_WRITE && !touches(route, until, access.tensor)) holds[n++] = (sn_hold){until, access.tensor};
  }
  return n;
}

const sn_route *sn_selective_hold(const sn_route *route, const sn_units *units, const bool *kept, sn_err *err) {
  sn_hold *holds = malloc(((size_t)route->n_accesses + 1) * sizeof *holds);
  uint32_t n = 0;
  if (!holds) return sn_fail_memory(err), NULL;
  for (uint32_t u = units->count; u-- > 0;) {
    span of = span_of(route, units, u);
    for (uint32_t s = units->first[u]; s < units->first[u + 1]; s++)
      if (kept[s] && is_left(route, s, of)) n = add_holds(route, s, of.until, holds, n);
  }
  const sn_route *held = n > 0 ? sn_route_hold(route, holds, n, err) : route;
  free(holds);
  return held;
}

const sn_route *sn_selective_route(const sn_route *route, sn_err *err) {
  sn_units units;
  if (route->regions) return route;
  if (sn_units_find_blocks(route, &units, err) != SN_OK) return NULL;
  bool *kept = sn_selective_find(route, &units);
  const sn_route *held = kept ? sn_selective_hold(route, &units, kept, err) : NULL;
  if (!kept) sn_fail_memory(err);
  free(kept);
  sn_units_clear(&units);
  return held;
}
