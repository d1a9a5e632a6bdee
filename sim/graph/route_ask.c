/* What a route is asked for by those who plan it; see sim/graph/route.h. */
#include "base/arena.h"
#include "sim/graph/route.h"

static uint32_t first_access(const sn_route *route, uint32_t step, bool reads) {
  const sn_step *s = &route->steps[step];
  for (const sn_access *a = &route->accesses[s->first_access]; a < &route->accesses[s->first_access + s->n_accesses];
       a++)
    if (reads == (a->mode == SN_READ)) return a->tensor;
  return SN_NONE;
}

uint32_t sn_route_first_read(const sn_route *route, uint32_t step) {
  return first_access(route, step, true);
}

uint32_t sn_route_first_made(const sn_route *route, uint32_t step) {
  return first_access(route, step, false);
}

void sn_route_free(sn_route *route) {
  if (route) sn_arena_free(route->arena);
}
