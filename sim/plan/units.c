/* Cutting the forward pass into units; see the header. */
#include "sim/plan/units.h"

#include <stdbool.h>
#include <stdlib.h>

static sn_op op_at(const sn_route *route, uint32_t step) {
  return route->net->layers[route->steps[step].layer].op;
}

/* A block ends behind a POOL, and behind a JOIN or CONCAT where neither BN nor ACT follows. */
static bool ends_block(const sn_route *route, uint32_t step, uint32_t *joined) {
  sn_op op = op_at(route, step);
  bool follows = op == SN_BN || op == SN_ACT;
  if (op == SN_JOIN || op == SN_CONCAT)
    *joined = step;
  else if (!follows)
    *joined = SN_NONE;
  if (op == SN_POOL) return true;
  if (*joined == SN_NONE) return false;
  sn_op next = op_at(route, step + 1);
  return next != SN_BN && next != SN_ACT;
}

/* Behind which steps one tensor alone goes on: `open` counts those made and still to be read by a forward step, but for
 * the input batch, which nobody re-makes. A tensor that is changed later is not done yet. */
static void find_cuts(const sn_route *route, const uint32_t *last, sn_units *units) {
  uint32_t open = 0, n = route->first_backward, joined = SN_NONE;
  for (uint32_t s = 0; s + 1 < n; s++) {
    const sn_step *step = &route->steps[s];
    for (uint32_t i = 0; i < step->n_accesses; i++) {
      sn_access access = route->accesses[step->first_access + i];
      if (access.mode == SN_WRITE) open += last[access.tensor] > s;
      if (access.mode != SN_WRITE) open -= last[access.tensor] == s;
    }
    if (ends_block(route, s, &joined) && open == 1) units->first[++units->count] = s + 1;
  }
}

sn_status sn_units_find(const sn_route *route, sn_units *units, sn_err *err) {
  uint32_t *last = calloc((size_t)route->n_tensors + 1, sizeof *last);
  *units = (sn_units){.first = calloc((size_t)route->first_backward + 1, sizeof *units->first)};
  bool good = last && units->first;
  for (uint32_t s = 0; good && s < route->first_backward; s++)
    for (uint32_t i = 0; i < route->steps[s].n_accesses; i++)
      last[route->accesses[route->steps[s].first_access + i].tensor] = s;
  if (good) find_cuts(route, last, units);
  free(last);
  if (good) return SN_OK;
  sn_units_clear(units);
  return sn_fail_memory(err);
}

void sn_units_clear(sn_units *units) {
  free(units->first);
  *units = (sn_units){0};
}
