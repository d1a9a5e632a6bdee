/* Run: freeing; a run and all it points to live in one arena. */
#include "sim/ask/run.h"

#include "base/arena.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void sn_run_free(sn_run *run) {
  if (!run) return;
  for (uint32_t s = 0; s < run->n_stages; s++) sn_run_free(run->stages[s]);
  sn_arena_free(run->arena);
}

sn_mesh sn_run_mesh(const sn_run *run) {
  sn_mesh mesh = {0};
  sn_err none = SN_ERR_INIT; /* it was asked about */
  if (sn_mesh_parse(run->conditions.parallel, &mesh, &none) != SN_OK) mesh = (sn_mesh){0};
  return mesh;
}

uint32_t sn_run_world(const sn_run *run) {
  const sn_mesh mesh = sn_run_mesh(run);
  return sn_mesh_world(&mesh);
}

char *sn_run_gpus(const sn_run *run, char text[SN_RUN_GPUS]) {
  const sn_mesh mesh = sn_run_mesh(run);
  if (sn_mesh_is_one(&mesh))
    snprintf(text, SN_RUN_GPUS, "%s", run->gpu);
  else
    snprintf(text, SN_RUN_GPUS, "%" PRIu32 " %s with %s", sn_mesh_world(&mesh), run->gpu, mesh.text);
  return text;
}

sn_status sn_run_check_one_plan(const sn_run *run, sn_err *err) {
  const sn_mesh mesh = sn_run_mesh(run);
  if (sn_mesh_size(&mesh, SN_MESH_PP) == 1) return SN_OK;
  return sn_fail(err, SN_BAD_INPUT,
                 "run %" PRId64 " is of a pipeline, each stage of which has a plan of its own; the store has none of "
                 "their steps: snsim --net .. --parallel %s --steps prints those of the fullest, --json all stages",
                 run->id, mesh.text);
}

bool sn_run_is_answer(const sn_run *run, const sn_result *result) {
  return !run->device[0] || strcmp(result->source, "sim") != 0;
}

const sn_result *sn_run_best(const sn_run *run) {
  const sn_result *best = NULL;
  for (uint32_t i = 0; i < run->n_results; i++) {
    const sn_result *r = &run->results[i];
    if (!r->fits || !sn_run_is_answer(run, r) || (best && r->iteration_ns > best->iteration_ns)) continue;
    if (!best || r->iteration_ns < best->iteration_ns || r->peak_device_bytes < best->peak_device_bytes) best = r;
  }
  return best;
}
