/* Fixed-place offloading; see the header. */
#include "sim/schedule/offload.h"

#include "models/op/op.h"
#include "sim/graph/route.h"

#include <stdbool.h>
#include <stdlib.h>

/* When tensors are used, and the places at which copies can begin and end. */
typedef struct places {
  const sn_route *route;
  bool *remade;                            /* per tensor: it is made again before backward reads it */
  uint32_t *made;                          /* per tensor: the last forward step that makes or changes it */
  uint32_t *last_forward, *first_backward; /* per tensor: steps that touch it; SN_NONE where there is none */
  uint32_t *after;     /* per forward step: the first later one that ends offloads ([SN]: CONV, FC); SN_NONE: none */
  uint32_t *before;    /* per backward step: the last earlier one of a CONV, or the first backward step */
  uint32_t classifier; /* the forward step of the first FC; n_layers where there is none */
} places;

static sn_op op_at(const places *p, uint32_t step) {
  return p->route->layers[p->route->steps[step].layer].op;
}

/* ---- which outputs ---- */

static const sn_op_def *maker_of(const places *p, uint32_t tensor) {
  return sn_op_of(&p->route->layers[p->route->tensors[tensor].layer]);
}

static bool made_by_conv(const places *p, uint32_t tensor) {
  return maker_of(p, tensor)->offload_paper;
}

static bool made_by_checkpoint(const places *p, uint32_t tensor) {
  return made_by_conv(p, tensor) || maker_of(p, tensor)->offload_joints;
}

/* vDNN leaves the classifier alone: the FCs and what is between them. */
static bool read_by_feature_layer(const places *p, uint32_t tensor) {
  return p->last_forward[tensor] < p->classifier;
}

static bool read_by_conv(const places *p, uint32_t tensor) {
  return read_by_feature_layer(p, tensor) && sn_op_table[op_at(p, p->last_forward[tensor])]->convolves;
}

/* Unused for more than three quarters of the 2N steps. */
static bool long_lived(const places *p, uint32_t tensor) {
  return 2 * (p->first_backward[tensor] - p->last_forward[tensor]) > 3 * p->route->first_backward;
}

/* ---- when ---- */

static uint32_t at_next_conv_or_fc(const places *p, uint32_t last_forward) {
  return p->after[last_forward];
}

static uint32_t at_next_step(const places *p, uint32_t last_forward) {
  return last_forward + 1 < p->route->first_backward ? last_forward + 1 : SN_NONE;
}

static uint32_t with_conv_before(const places *p, uint32_t first_backward) {
  return p->before[first_backward - p->route->first_backward];
}

static uint32_t one_step_before(const places *p, uint32_t first_backward) {
  return first_backward > p->route->first_backward ? first_backward - 1 : first_backward;
}

/* Whatever a backward step reads that forward has made. */
static bool is_kept(const places *p, uint32_t tensor) {
  return p->last_forward[tensor] != SN_NONE;
}

static uint32_t on_demand(const places *p, uint32_t first_backward) {
  (void)p;
  return first_backward;
}

/* A policy: which outputs leave, before which forward step each is released, with which backward step it comes back. */
typedef struct policy {
  bool (*leaves)(const places *p, uint32_t tensor);
  uint32_t (*release)(const places *p, uint32_t last_forward);
  uint32_t (*fetch)(const places *p, uint32_t first_backward);
} policy;

static const policy policies[SN_OFFLOADS] = {
    [SN_OFFLOAD_CONV] = {made_by_conv, at_next_conv_or_fc, with_conv_before},
    [SN_OFFLOAD_CHECKPOINTS] = {made_by_checkpoint, at_next_conv_or_fc, with_conv_before},
    [SN_OFFLOAD_INPUTS] = {read_by_feature_layer, at_next_step, one_step_before},
    [SN_OFFLOAD_CONV_INPUTS] = {read_by_conv, at_next_step, with_conv_before},
    [SN_OFFLOAD_LONG_LIVED] = {long_lived, at_next_conv_or_fc, with_conv_before},
    [SN_OFFLOAD_SAVED] = {is_kept, at_next_step, on_demand},
};

static void use_forward(places *u, sn_access access, uint32_t step) {
  if (access.mode != SN_READ || u->made[access.tensor] == SN_NONE) u->made[access.tensor] = step;
  u->last_forward[access.tensor] = step;
}

static void use_backward(places *u, sn_access access, uint32_t step) {
  if (u->first_backward[access.tensor] != SN_NONE || u->remade[access.tensor]) return;
  u->remade[access.tensor] = access.mode == SN_WRITE;
  if (!u->remade[access.tensor]) u->first_backward[access.tensor] = step;
}

static void find_uses(const sn_schedule *schedule, places *u) {
  const sn_route *route = schedule->route;
  for (uint32_t t = 0; t < route->n_tensors; t++) u->made[t] = u->last_forward[t] = u->first_backward[t] = SN_NONE;
  for (uint32_t e = 0; e < schedule->n_executions; e++) {
    const sn_execution *x = &schedule->executions[e];
    const sn_step *step = sn_route_run(route, x->step, x->rerun);
    for (uint32_t i = 0; i < step->n_accesses; i++) {
      sn_access access = route->accesses[step->first_access + i];
      if (x->at_step < route->first_backward)
        use_forward(u, access, x->at_step);
      else
        use_backward(u, access, x->at_step);
    }
  }
}

static void find_places(places *p) {
  uint32_t n = p->route->first_backward, place = SN_NONE;
  p->classifier = n;
  for (uint32_t s = n; s-- > 0;) {
    p->after[s] = place;
    if (sn_op_table[op_at(p, s)]->ends_offload) place = s;
    if (op_at(p, s) == SN_FC) p->classifier = s;
  }
  place = n;
  for (uint32_t s = n; s < p->route->first_update; s++) {
    p->before[s - n] = place;
    if (sn_op_table[op_at(p, s)]->offload_paper) place = s;
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

static bool can_leave(const places *p, uint32_t tensor) {
  sn_role role = p->route->tensors[tensor].role;
  return (role == SN_VALUE || role == SN_SAVED) && p->first_backward[tensor] != SN_NONE;
}

/* Those of a network without branches are in order already. */
static void sort_unless_sorted(sn_swap *swaps, uint32_t count, int (*compare_swaps)(const void *, const void *)) {
  for (uint32_t i = 1; i < count; i++)
    if (compare_swaps(&swaps[i - 1], &swaps[i]) > 0) {
      qsort(swaps, count, sizeof *swaps, compare_swaps);
      return;
    }
}

/* What is released first is mostly fetched last. */
static void sort(sn_swaps *swaps) {
  uint32_t n = swaps->count;
  sort_unless_sorted(swaps->by_release, n, compare_release);
  for (uint32_t i = 0; i < n; i++) swaps->by_fetch[i] = swaps->by_release[n - 1 - i];
  sort_unless_sorted(swaps->by_fetch, n, compare_fetch);
}

static void choose(const places *p, const policy *rule, sn_swaps *swaps) {
  for (uint32_t t = 0; t < p->route->n_tensors; t++) {
    swaps->copy_step[t] = SN_NONE;
    if (!can_leave(p, t) || !rule->leaves(p, t)) continue;
    uint32_t release = rule->release(p, p->last_forward[t]);
    if (release == SN_NONE) continue;
    uint32_t fetch = rule->fetch(p, p->first_backward[t]);
    if (fetch <= release) continue;
    swaps->copy_step[t] = rule->leaves == is_kept ? p->last_forward[t] : p->made[t];
    swaps->by_release[swaps->count++] = (sn_swap){.tensor = t, .release_step = release, .fetch_step = fetch};
  }
  sort(swaps);
}

/* Those of the schedule. */
static void take(const places *p, const sn_schedule *schedule, sn_swaps *swaps) {
  for (uint32_t t = 0; t < p->route->n_tensors; t++) swaps->copy_step[t] = SN_NONE;
  for (uint32_t i = 0; i < schedule->n_swaps; i++) {
    swaps->by_release[swaps->count++] = schedule->swaps[i];
    swaps->copy_step[schedule->swaps[i].tensor] = p->made[schedule->swaps[i].tensor];
  }
  sort(swaps);
}

sn_status sn_swaps_make(const sn_schedule *schedule, sn_offload offload, sn_swaps *swaps, sn_err *err) {
  *swaps = (sn_swaps){0};
  bool planned = offload == SN_OFFLOAD_PLANNED && schedule->n_swaps > 0;
  if (!policies[offload].leaves && !planned) return SN_OK;
  const sn_route *route = schedule->route;
  size_t tensors = route->n_tensors;
  places p = {.route = route,
              .remade = calloc(tensors, sizeof(bool)),
              .made = calloc(tensors, sizeof(uint32_t)),
              .last_forward = calloc(tensors, sizeof(uint32_t)),
              .first_backward = calloc(tensors, sizeof(uint32_t)),
              .after = calloc(route->first_backward, sizeof(uint32_t)),
              .before = calloc(route->n_steps, sizeof(uint32_t))};
  swaps->by_release = calloc(tensors, sizeof(sn_swap));
  swaps->by_fetch = calloc(tensors, sizeof(sn_swap));
  swaps->copy_step = calloc(tensors, sizeof(uint32_t));
  bool good = p.remade && p.made && p.last_forward && p.first_backward && p.after && p.before && swaps->by_release &&
              swaps->by_fetch && swaps->copy_step;
  if (good) {
    find_uses(schedule, &p);
    find_places(&p);
    if (planned)
      take(&p, schedule, swaps);
    else
      choose(&p, &policies[offload], swaps);
  }
  free(p.remade);
  free(p.made);
  free(p.last_forward);
  free(p.first_backward);
  free(p.after);
  free(p.before);
  if (good) return SN_OK;
  sn_swaps_clear(swaps);
  return sn_fail_memory(err);
}

void sn_swaps_clear(sn_swaps *swaps) {
  free(swaps->by_release);
  free(swaps->by_fetch);
  free(swaps->copy_step);
  *swaps = (sn_swaps){0};
}

bool sn_offload_is_narrow(const sn_route *route, uint32_t tensor) {
  const sn_tensor *t = &route->tensors[tensor];
  sn_op op = route->layers[t->layer].op;
  return t->role == SN_VALUE && (sn_op_table[op]->convolves || op == SN_FORK);
}
