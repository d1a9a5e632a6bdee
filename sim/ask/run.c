/* Run: freeing; a run and all it points to live in one arena. */
#include "sim/ask/run.h"

#include "base/arena.h"

#include <string.h>

void sn_run_free(sn_run *run) {
  if (!run) return;
  for (uint32_t s = 0; s < run->n_stages; s++) sn_run_free(run->stages[s]);
  sn_arena_free(run->arena);
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
