/* Taking over bytes where permitted; see sim/graph/route.h. Two passes over the accesses, O(accesses + permits). */
#include "sim/graph/route.h"

#include <stdlib.h>
#include <string.h>

typedef struct taker {
  const sn_route *route;
  uint32_t *last_step; /* per tensor: the last step that touches it, or what took it over */
  uint32_t *taken_by;  /* per tensor: itself, or the tensor whose bytes it takes */
  uint32_t *number;    /* per tensor: among those that are left */
  sn_access *accesses; /* as they were */
} taker;

static uint32_t tensor_of(const sn_route *r, const sn_step *step, uint32_t access) {
  return r->accesses[step->first_access + access].tensor;
}

static bool use_permit(taker *t, uint32_t s, sn_permit permit) {
  const sn_route *r = t->route;
  const sn_step *step = &r->steps[s];
  uint32_t to = tensor_of(r, step, permit.to), from = t->taken_by[tensor_of(r, step, permit.from)];
  uint32_t before = t->last_step[from], after = t->last_step[to];
  if (t->taken_by[to] != to || (before != s && step->kernel != SN_FLATTEN)) return false;
  t->taken_by[to] = from;
  if (step->kernel == SN_FLATTEN)
    t->last_step[from] = after > before ? after : before; /* the same value: read by both's readers */
  else
    t->last_step[from] = after == s ? SN_NONE : after; /* taken once a step */
  return true;
}

static void find_takers(taker *t) {
  const sn_route *r = t->route;
  for (uint32_t i = 0; i < r->n_tensors; i++) t->taken_by[i] = i;
  for (uint32_t s = 0; s < r->n_steps; s++)
    for (uint32_t i = 0; i < r->steps[s].n_accesses; i++) t->last_step[tensor_of(r, &r->steps[s], i)] = s;
  for (uint32_t s = 0; s < r->n_steps; s++)
    for (uint32_t i = 0; i < r->steps[s].n_permits; i++)
      if (use_permit(t, s, r->permits[r->steps[s].first_permit + i])) break;
}

/* The access of the step that has the tensor already, among those rewritten; NULL: none. */
static sn_access *find_access(sn_access *accesses, uint32_t count, uint32_t tensor) {
  for (uint32_t i = 0; i < count; i++)
    if (accesses[i].tensor == tensor) return &accesses[i];
  return NULL;
}

/* What takes over is not made but changed. Only where something is taken is searched; the
 * order of steps is not that of their accesses. */
static void rewrite_steps(const taker *t) {
  sn_route *r = (sn_route *)t->route;
  sn_step *steps = (sn_step *)r->steps;
  sn_access *accesses = (sn_access *)r->accesses;
  uint32_t kept = 0;
  for (uint32_t s = 0; s < r->n_steps; s++) {
    uint32_t first = kept;
    for (uint32_t i = 0; i < steps[s].n_accesses; i++) {
      sn_access access = t->accesses[steps[s].first_access + i];
      uint32_t root = t->taken_by[access.tensor];
      bool takes = access.mode == SN_WRITE && root != access.tensor;
      access.tensor = t->number[root];
      sn_access *there = takes ? find_access(accesses + first, kept - first, access.tensor) : NULL;
      if (there)
        there->mode = steps[s].kernel == SN_FLATTEN ? SN_READ : SN_MODIFY;
      else
        accesses[kept++] = access;
    }
    steps[s].first_access = first;
    steps[s].n_accesses = kept - first;
    steps[s].n_permits = 0;
  }
  r->n_accesses = kept;
  r->n_permits = 0;
}

static void renumber(const taker *t, const uint32_t *tensors, uint32_t count) {
  uint32_t *changed = (uint32_t *)tensors;
  for (uint32_t i = 0; i < count; i++)
    if (changed[i] != SN_NONE) changed[i] = t->number[t->taken_by[changed[i]]];
}

static void rewrite_tensors(const taker *t) {
  sn_route *r = (sn_route *)t->route;
  sn_tensor *tensors = (sn_tensor *)r->tensors;
  sn_sum *sums = (sn_sum *)r->sums;
  renumber(t, r->output, r->net->n_values);
  renumber(t, r->gradient, r->net->n_values);
  renumber(t, r->saved, r->net->n_layers);
  renumber(t, r->weight_gradient, r->net->n_layers);
  for (uint32_t i = 0; i < r->n_sums; i++) {
    renumber(t, &sums[i].earlier.tensor, 1);
    renumber(t, &sums[i].later.tensor, 1);
    renumber(t, &sums[i].to.tensor, 1);
  }
  uint32_t kept = 0;
  for (uint32_t i = 0; i < r->n_tensors; i++) {
    if (t->taken_by[i] == i)
      tensors[kept++] = tensors[i];
    else
      r->tensor_bytes -= tensors[i].bytes;
  }
  r->n_tensors = kept;
}

sn_status sn_route_take(sn_route *route, sn_err *err) {
  size_t tensors = (size_t)route->n_tensors + 1;
  taker t = {.route = route,
             .last_step = calloc(tensors, sizeof *t.last_step),
             .taken_by = calloc(tensors, sizeof *t.taken_by),
             .number = calloc(tensors, sizeof *t.number),
             .accesses = malloc(((size_t)route->n_accesses + 1) * sizeof *t.accesses)};
  bool good = t.last_step && t.taken_by && t.number && t.accesses;
  if (good) {
    find_takers(&t);
    memcpy(t.accesses, route->accesses, route->n_accesses * sizeof *t.accesses);
    for (uint32_t i = 0, kept = 0; i < route->n_tensors; i++)
      if (t.taken_by[i] == i) t.number[i] = kept++;
    rewrite_steps(&t);
    rewrite_tensors(&t);
  }
  free(t.last_step);
  free(t.taken_by);
  free(t.number);
  free(t.accesses);
  return good ? SN_OK : sn_fail_memory(err);
}
