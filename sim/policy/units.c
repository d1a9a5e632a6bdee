/* Cutting the forward pass into units; see the header. */
#include "sim/policy/units.h"

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

/* Per tensor: the last forward step that touches it, and the last that changes it. Per step: how many POOLs, JOINs and
 * CONCATs are ahead of it. */
typedef struct uses {
  uint32_t *last, *changed, *ends;
} uses;

static void find_uses(const sn_route *route, uses *u) {
  for (uint32_t s = 0; s < route->first_backward; s++) {
    sn_op op = op_at(route, s);
    u->ends[s + 1] = u->ends[s] + (op == SN_POOL || op == SN_JOIN || op == SN_CONCAT);
    for (uint32_t i = 0; i < route->steps[s].n_accesses; i++) {
      sn_access access = route->accesses[route->steps[s].first_access + i];
      u->last[access.tensor] = s;
      if (access.mode != SN_READ) u->changed[access.tensor] = s;
    }
  }
}

/* A value that waits while blocks end, as U-Net's and what T5's decoder reads of its encoder. More than one, for within
 * a block a value may wait for a branch with a POOL or CONCAT of its own. */
static bool skips_blocks(const uses *u, uint32_t tensor) {
  return u->ends[u->last[tensor]] > u->ends[u->changed[tensor] + 1] + 1;
}

/* A block ends behind a value that skips others: no cut could be behind it otherwise, as long as it waits. */
static bool makes_skip(const sn_route *route, const uses *u, uint32_t s) {
  const sn_step *step = &route->steps[s];
  for (uint32_t i = 0; i < step->n_accesses; i++) {
    sn_access access = route->accesses[step->first_access + i];
    if (access.mode != SN_READ && u->changed[access.tensor] == s && skips_blocks(u, access.tensor)) return true;
  }
  return false;
}

/* Behind which steps one tensor alone goes on: `open` counts those made and still to be read by a forward step, but for
 * the input batch, which nobody re-makes, copies of weights, which whoever is run again makes again, and what skips
 * blocks and was made ahead of this one; `changing` those that will still be changed in place, by which what the next
 * unit has kept as its input would be lost. */
static void find_cuts(const sn_route *route, const uses *u, sn_units *units) {
  uint32_t open = 0, changing = 0, n = route->first_backward, joined = SN_NONE;
  for (uint32_t s = 0; s + 1 < n; s++) {
    const sn_step *step = &route->steps[s];
    for (uint32_t i = 0; i < step->n_accesses; i++) {
      sn_access access = route->accesses[step->first_access + i];
      bool writes = access.mode == SN_WRITE;
      if (sn_tensor_is_weight_cast(&route->tensors[access.tensor])) continue;
      open += writes && u->last[access.tensor] > s;
      bool skipped = skips_blocks(u, access.tensor) && u->changed[access.tensor] < units->first[units->count];
      open -= !writes && !skipped && u->last[access.tensor] == s;
      changing += writes && u->changed[access.tensor] > s;
      changing -= access.mode == SN_MODIFY && u->changed[access.tensor] == s;
    }
    bool alone = open == 1 && changing == 0, longer = s > units->first[units->count];
    bool skip = makes_skip(route, u, s), ends = ends_block(route, s, &joined) || skip;
    if (!ends || !alone || !longer) continue;
    units->first[++units->count] = s + 1;
    if (skip) open = 0;
  }
}

sn_status sn_units_find(const sn_route *route, sn_units *units, sn_err *err) {
  size_t tensors = (size_t)route->n_tensors + 1;
  uses u = {calloc(tensors, sizeof *u.last), calloc(tensors, sizeof *u.changed),
            calloc((size_t)route->first_backward + 1, sizeof *u.ends)};
  *units = (sn_units){.first = calloc((size_t)route->first_backward + 1, sizeof *units->first)};
  bool good = u.last && u.changed && u.ends && units->first;
  if (good) {
    find_uses(route, &u);
    find_cuts(route, &u, units);
  }
  free(u.last);
  free(u.changed);
  free(u.ends);
  if (good) return SN_OK;
  sn_units_clear(units);
  return sn_fail_memory(err);
}

void sn_units_clear(sn_units *units) {
  free(units->first);
  *units = (sn_units){0};
}

uint32_t sn_units_of(const sn_units *units, const sn_route *route, uint32_t step) {
  uint32_t forward = route->forward_step[route->steps[step].layer], low = 0, high = units->count;
  if (forward == SN_NONE || forward >= units->first[units->count]) return units->count;
  while (high - low > 1) {
    uint32_t middle = low + (high - low) / 2;
    *(units->first[middle] <= forward ? &low : &high) = middle;
  }
  return low;
}
