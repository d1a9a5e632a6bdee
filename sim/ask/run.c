/* Run: freeing; a run and all it points to live in one arena. */
#include "sim/ask/run.h"

#include "base/arena.h"

void sn_run_free(sn_run *run) {
  if (run) sn_arena_free(run->arena);
}
