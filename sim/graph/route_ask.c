/* A route's ends, and what it is asked for by those who plan it; see sim/graph/route.h. */
#include "base/arena.h"
#include "sim/graph/route_internal.h"

static uint32_t first_access(const sn_route *route, uint32_t step, bool reads) {
  const sn_step *s = &route->steps[step];
  for (const sn_access *a = &route->accesses[s->first_access]; a < &route->accesses[s->first_access + s->n_accesses];
       a++)
    if (reads == (a->mode == SN_READ)) return a->tensor;
  return SN_NONE;
}

sn_stream sn_tensor_stream(const sn_tensor *tensor) {
  bool scratch = tensor->role == SN_SCRATCH;
  if (tensor->role == SN_GATHERED || (scratch && tensor->port == SN_PORT_GATHER)) return SN_STREAM_GATHER;
  return tensor->role == SN_SHARD || (scratch && tensor->port == SN_PORT_REDUCE) ? SN_STREAM_REDUCE : SN_STREAM_COMPUTE;
}

uint32_t sn_route_first_read(const sn_route *route, uint32_t step) {
  return first_access(route, step, true);
}

uint32_t sn_route_first_made(const sn_route *route, uint32_t step) {
  return first_access(route, step, false);
}

sn_route *sn_route_new(const sn_net *net, sn_dialect_id dialect, sn_order order, sn_err *err) {
  return sn_route_new_for(net, dialect, order, (sn_iteration){.optimizer = SN_OPTIMIZER_MOMENTUM}, NULL, err);
}

/* Steps whose accesses are followed by what they hold. */
static sn_route *hold(const sn_route *route, const sn_hold *holds, uint32_t n_holds, sn_arena *arena) {
  sn_route *made = sn_arena_alloc(arena, 1, sizeof *made);
  sn_step *steps = sn_arena_alloc(arena, route->n_steps, sizeof *steps);
  sn_access *accesses = sn_arena_alloc(arena, (size_t)route->n_accesses + n_holds, sizeof *accesses);
  uint32_t n = 0;
  if (!made || !steps || !accesses) return NULL;
  *made = *route;
  for (uint32_t s = 0; s < route->n_steps; s++) {
    const sn_access *own = &route->accesses[route->steps[s].first_access];
    steps[s] = route->steps[s];
    steps[s].first_access = n;
    for (uint32_t i = 0; i < route->steps[s].n_accesses; i++) accesses[n++] = own[i];
    for (; n_holds > 0 && holds->step == s; holds++, n_holds--, steps[s].n_accesses++)
      accesses[n++] = (sn_access){.tensor = holds->tensor, .mode = SN_READ, .held = true};
  }
  made->steps = steps;
  made->accesses = accesses;
  made->n_accesses = n;
  made->arena = arena;
  return made;
}

const sn_route *sn_route_hold(const sn_route *route, const sn_hold *holds, uint32_t n_holds, sn_err *err) {
  if (route->holding) return route->holding;
  sn_arena *arena = sn_arena_new();
  sn_route *made = arena ? hold(route, holds, n_holds, arena) : NULL;
  if (made) return ((sn_route *)route)->holding = made;
  sn_arena_free(arena);
  sn_fail_memory(err);
  return NULL;
}

void sn_route_free(sn_route *route) {
  if (!route) return;
  sn__route_free_under(route);
  sn_route_free(route->of_rank);
  if (route->holding) sn_arena_free(route->holding->arena);
  if (route->whole && !route->shares_whole && route->whole->of_rank != route) sn_route_free((sn_route *)route->whole);
  sn_arena_free(route->arena);
}
