/* Rounds of a pipeline's stage; see the header. */
#include "sim/parallel/rounds.h"

/* As many micro-batches as a stage has in flight. */
static uint32_t round_of(const sn_mesh *mesh) {
  return sn_mesh_size(mesh, SN_MESH_PP) - mesh->stage;
}

/* Two rounds and a micro-batch, as what stands between it and them is theirs; and it is warm behind the first backward,
 * whose gradients the others add to. */
static uint32_t least_running(const sn_mesh *mesh) {
  return 3 * round_of(mesh) + 2;
}

uint32_t sn_rounds_running(const sn_mesh *mesh, uint32_t micros) {
  const uint32_t round = round_of(mesh), least = least_running(mesh);
  bool repeats = mesh->schedule == SN_SCHEDULE_1F1B && sn_mesh_size(mesh, SN_MESH_FSDP) == 1;
  return repeats && micros > least ? least + (micros - least) % round : micros;
}

sn_rounds sn_rounds_of(const sn_route *route) {
  const sn_mesh *mesh = route->mesh;
  if (!mesh || mesh->idle == 0 || route->n_runs == 0 || route->micros < least_running(mesh)) return (sn_rounds){0};
  const uint32_t round = round_of(mesh), behind = route->micros - round - 1;
  return (sn_rounds){.first = route->runs[(size_t)(behind - round) * route->n_runs],
                     .end = route->runs[(size_t)behind * route->n_runs],
                     .again = mesh->idle / round};
}
