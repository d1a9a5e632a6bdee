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

void sn_route_free(sn_route *route) {
  if (!route) return;
  sn__route_free_under(route);
  sn_route_free(route->of_rank);
  if (route->whole && !route->shares_whole && route->whole->of_rank != route) sn_route_free((sn_route *)route->whole);
  sn_arena_free(route->arena);
}
