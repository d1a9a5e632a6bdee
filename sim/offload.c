/* Fixed-place offloading; see the header. */
#include "sim/offload.h"

#include "models/op.h"

#include <stdbool.h>
#include <stdlib.h>

/* Per tensor: the last forward step and the first backward step that touch it; SN_NONE where there is none. */
typedef struct uses {
  uint32_t *last_forward, *first_backward;
} uses;

static bool is_candidate(const sn_route *route, uint32_t tensor, sn_offload offload) {
  const sn_tensor *t = &route->tensors[tensor];
  const sn_op_info *op = sn_op_of(&route->net->layers[t->layer]);
  if (t->kind != SN_OUTPUT) return false;
  return op->offload_paper || (offload == SN_OFFLOAD_CHECKPOINTS && op->offload_joints);
}

static void find_uses(const sn_schedule *schedule, uses *u) {
  const sn_route *route = schedule->route;
  for (uint32_t t = 0; t < route->n_tensors; t++) u->last_forward[t] = u->first_backward[t] = SN_NONE;
  for (uint32_t e = 0; e < schedule->n_executions; e++) {
    const sn_execution *x = &schedule->executions[e];
    const sn_step *step = &route->steps[x->step];
    for (uint32_t i = 0; i < step->n_accesses; i++) {
      uint32_t tensor = route->accesses[step->first_access + i].tensor;
      if (x->at_step < route->n_layers)
        u->last_forward[tensor] = x->at_step;
      else if (u->first_backward[tensor] == SN_NONE)
        u->first_backward[tensor] = x->at_step;
    }
  }
}

/* after[s] for forward steps: the first step > s whose forward ends offloads; before[s] for backward steps: the last
 * CONV backward < s, or the first backward step. */
static void find_places(const sn_route *route, uint32_t *after, uint32_t *before) {
  const sn_layer *layers = route->net->layers;
  uint32_t n = route->n_layers, place = SN_NONE;
  for (uint32_t s = n; s-- > 0;) {
    after[s] = place;
    if (sn_op_of(&layers[route->steps[s].layer])->ends_offload) place = s;
  }
  place = n;
  for (uint32_t s = n; s < 2 * n; s++) {
    before[s - n] = place;
    if (layers[route->steps[s].layer].op == SN_CONV) place = s;
  }
}

static int compare(uint32_t a, uint32_t b) {
  return a < b ? -1 : a > b;
}

static int compare_release(const void *a, const void *b) {
  const sn_swap *x = a, *y = b;
  int order = compare(x->release_step, y->release_step);
  return order ? order : compare(x->tensor, y->tensor);
}

/* Tensors are numbered in forward order, so the one with the higher number is needed first. */
static int compare_fetch(const void *a, const void *b) {
  const sn_swap *x = a, *y = b;
  int order = compare(x->fetch_step, y->fetch_step);
  return order ? order : compare(y->tensor, x->tensor);
}

static void choose(const sn_schedule *schedule, sn_offload offload, const uses *u, const uint32_t *after,
                   const uint32_t *before, sn_swaps *swaps) {
  const sn_route *route = schedule->route;
  for (uint32_t t = 0; t < route->n_tensors; t++) {
    if (!is_candidate(route, t, offload) || u->first_backward[t] == SN_NONE) continue;
    uint32_t release = after[u->last_forward[t]];
    if (release == SN_NONE) continue;
    uint32_t fetch = before[u->first_backward[t] - route->n_layers];
    swaps->swapped[t] = true;
    swaps->by_release[swaps->count++] = (sn_swap){.tensor = t, .release_step = release, .fetch_step = fetch};
  }
  for (uint32_t i = 0; i < swaps->count; i++) swaps->by_fetch[i] = swaps->by_release[i];
  qsort(swaps->by_release, swaps->count, sizeof *swaps->by_release, compare_release);
  qsort(swaps->by_fetch, swaps->count, sizeof *swaps->by_fetch, compare_fetch);
}

sn_status sn_swaps_make(const sn_schedule *schedule, sn_offload offload, sn_swaps *swaps, sn_err *err) {
  *swaps = (sn_swaps){0};
  if (offload != SN_OFFLOAD_CONV && offload != SN_OFFLOAD_CHECKPOINTS) return SN_OK;
  size_t tensors = schedule->route->n_tensors, layers = schedule->route->n_layers;
  uses u = {calloc(tensors, sizeof(uint32_t)), calloc(tensors, sizeof(uint32_t))};
  uint32_t *after = calloc(layers, sizeof *after), *before = calloc(layers, sizeof *before);
  swaps->by_release = calloc(tensors, sizeof(sn_swap));
  swaps->by_fetch = calloc(tensors, sizeof(sn_swap));
  swaps->swapped = calloc(tensors, sizeof(bool));
  bool good =
      u.last_forward && u.first_backward && after && before && swaps->by_release && swaps->by_fetch && swaps->swapped;
  if (good) {
    find_uses(schedule, &u);
    find_places(schedule->route, after, before);
    choose(schedule, offload, &u, after, before, swaps);
  }
  free(u.last_forward);
  free(u.first_backward);
  free(after);
  free(before);
  if (good) return SN_OK;
  sn_swaps_clear(swaps);
  return sn_fail_memory(err);
}

void sn_swaps_clear(sn_swaps *swaps) {
  free(swaps->by_release);
  free(swaps->by_fetch);
  free(swaps->swapped);
  *swaps = (sn_swaps){0};
}
