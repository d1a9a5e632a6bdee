/* Rounds of a pipeline's stage; see the header. */
#include "sim/parallel/rounds.h"

static uint32_t in_flight(const sn_mesh *mesh) {
  return sn_mesh_size(mesh, SN_MESH_PP) - mesh->stage;
}

/* Two rounds, which go back through micro-batches whose forward was in a round itself: what those before have sent stays
 * for longer. And it is warm behind the first backward, whose gradients the others add to. */
static uint32_t least_running(const sn_mesh *mesh) {
  return 2 * in_flight(mesh) + 3;
}

uint32_t sn_rounds_running(const sn_mesh *mesh, uint32_t micros) {
  const uint32_t least = least_running(mesh);
  return mesh->schedule == SN_SCHEDULE_1F1B && micros > least ? least : micros;
}

/* A micro-batch's first step: it receives what it goes on with. */
static uint32_t begin_of(const sn_route *route, uint32_t micro) {
  uint32_t step = route->runs[(size_t)micro * route->n_runs];
  for (; step > 0 && route->steps[step - 1].kernel == SN_TRANSFER; step--) {
    const sn_transfer *t = &route->transfers[route->steps[step - 1].sum];
    if (t->axis != SN_MESH_PP || t->kind != SN_RECEIVE) break;
  }
  return step;
}

sn_rounds sn_rounds_of(const sn_route *route) {
  const sn_mesh *mesh = route->mesh;
  if (!mesh || mesh->idle == 0 || route->n_runs == 0 || route->micros < least_running(mesh)) return (sn_rounds){0};
  const uint32_t behind = route->micros - 1;
  return (sn_rounds){.warm = begin_of(route, behind - 1 - in_flight(mesh)),
                     .first = begin_of(route, behind - 1),
                     .end = begin_of(route, behind),
                     .again = mesh->idle};
}
