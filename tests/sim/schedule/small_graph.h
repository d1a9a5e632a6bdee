/* A graph of few operations for tests that look for the best there is: which outputs a step reads and makes, what it
 * takes in time, and which gradients are there meanwhile.
 *
 *   small_graph g = small_graph_of(route, costs, &device);
 *   int64_t ns = small_graph_search(&g, memory);       the least time of any schedule of re-runs; INT64_MAX: there is
 * none
 *
 * The search is a shortest path over which outputs are there and how far the route has come: an output is dropped, the
 * next step of the route runs, or, once backward has begun, any forward step runs again. It knows nothing of stages,
 * and of no copies. Without workspaces; each tensor in whole blocks. */
#ifndef SN_TESTS_SMALL_GRAPH_H
#define SN_TESTS_SMALL_GRAPH_H

#include "sim/graph/route.h"
#include "sim/memory/pool.h"
#include "tests/support/pipeline.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_OUTPUTS = 12, MOST_STEPS = 24, MOST_TENSORS = 64 };

typedef struct small_graph {
  uint32_t n_outputs, first_backward, n_steps; /* of forward and backward */
  uint32_t tensor[MOST_OUTPUTS];
  uint32_t maker[MOST_OUTPUTS];   /* the forward step */
  uint32_t changed[MOST_OUTPUTS]; /* the backward step that makes a gradient of it; UINT32_MAX: none */
  uint64_t bytes[MOST_OUTPUTS];
  int64_t copy_ns[MOST_OUTPUTS];                 /* one way */
  uint32_t reads[MOST_STEPS], makes[MOST_STEPS]; /* outputs, a bit each */
  uint64_t waiting[MOST_STEPS];   /* gradients that are there ahead of a step, and that it needs or leaves */
  uint64_t gradients[MOST_STEPS]; /* that it makes beside */
  int64_t ns[MOST_STEPS];
} small_graph;

static inline int64_t small_graph_step_ns(const sn_route *route, const sn_costs *costs, uint32_t s) {
  const sn_step *step = &route->steps[s];
  uint8_t algo[2] = {SN_CONV_ALGOS, SN_CONV_ALGOS};
  const sn_conv_kernel kernels[2] = {step->pass == SN_FORWARD ? SN_CONV_FORWARD : SN_CONV_BACKWARD_DATA,
                                     SN_CONV_BACKWARD_FILTER};
  for (int k = 0; k < 2 && route->layers[step->layer].op == SN_CONV; k++) {
    uint32_t count;
    const sn_conv_choice *choices = sn_costs_conv(costs, step->layer, kernels[k], &count);
    algo[k] = (uint8_t)choices[count - 1].algo;
  }
  return sn_costs_step(costs, step->layer, step->pass, algo);
}

static inline sn_access small_graph_access(const sn_route *route, uint32_t step, uint32_t i) {
  return route->accesses[route->steps[step].first_access + i];
}

static inline uint64_t small_graph_bytes(const sn_route *route, uint32_t tensor) {
  return sn_pool_round(route->tensors[tensor].bytes);
}

/* An output that backward changes is a gradient from there on. */
static inline void small_graph_wait(small_graph *g, const sn_route *route) {
  uint32_t last[MOST_TENSORS] = {0};
  bool gradient[MOST_TENSORS] = {false};
  for (uint32_t s = 0; s < g->n_steps; s++)
    for (uint32_t i = 0; i < route->steps[s].n_accesses; i++) last[small_graph_access(route, s, i).tensor] = s;
  for (uint32_t s = 0; s < g->n_steps; s++) {
    for (uint32_t i = 0; i < route->steps[s].n_accesses && s >= g->first_backward; i++) {
      sn_access a = small_graph_access(route, s, i);
      if (a.mode != SN_READ) gradient[a.tensor] = true;
      if (a.mode == SN_WRITE) g->gradients[s] += small_graph_bytes(route, a.tensor);
    }
    for (uint32_t t = 0; t < route->n_tensors; t++)
      if (gradient[t] && last[t] > s) g->waiting[s + 1] += small_graph_bytes(route, t);
  }
}

static inline void small_graph_find_outputs(small_graph *g, const sn_route *route, const sn_device *device) {
  for (uint32_t s = 0; s < g->first_backward; s++)
    for (uint32_t i = 0; i < route->steps[s].n_accesses; i++) {
      sn_access a = small_graph_access(route, s, i);
      if (a.mode != SN_WRITE) continue;
      uint32_t o = g->n_outputs++;
      assert_true(o < MOST_OUTPUTS);
      uint64_t bytes = route->tensors[a.tensor].bytes;
      double seconds = (double)bytes / device->link_bandwidth[SN_EXTERNAL_HOST];
      g->tensor[o] = a.tensor;
      g->maker[o] = s;
      g->changed[o] = UINT32_MAX;
      g->bytes[o] = sn_pool_round(bytes);
      g->copy_ns[o] = device->link_latency_ns + llround(seconds * 1e9);
    }
}

static inline small_graph small_graph_of(const sn_route *route, const sn_costs *costs, const sn_device *device) {
  small_graph g = {.first_backward = route->first_backward, .n_steps = route->first_update};
  assert_true(g.n_steps < MOST_STEPS && route->n_tensors <= MOST_TENSORS);
  small_graph_find_outputs(&g, route, device);
  for (uint32_t s = 0; s < g.n_steps; s++) {
    g.ns[s] = small_graph_step_ns(route, costs, s);
    for (uint32_t i = 0; i < route->steps[s].n_accesses; i++)
      for (uint32_t o = 0; o < g.n_outputs; o++) {
        sn_access a = small_graph_access(route, s, i);
        if (a.tensor != g.tensor[o] || g.changed[o] < s) continue;
        if (a.mode == SN_WRITE) g.makes[s] |= 1u << o;
        if (a.mode != SN_WRITE) g.reads[s] |= 1u << o;
        if (a.mode == SN_MODIFY && s >= g.first_backward) g.changed[o] = s;
      }
  }
  small_graph_wait(&g, route);
  return g;
}

static inline uint64_t small_graph_outputs(const small_graph *g, uint32_t mask) {
  uint64_t bytes = 0;
  for (uint32_t o = 0; o < g->n_outputs; o++)
    if (mask & 1u << o) bytes += g->bytes[o];
  return bytes;
}

/* ---- the search ---- */

typedef struct small_search {
  const small_graph *g;
  uint64_t memory;
  int64_t best[MOST_STEPS][1 << MOST_OUTPUTS];
  bool open[MOST_STEPS][1 << MOST_OUTPUTS];
} small_search;

static inline void small_search_reach(small_search *w, uint32_t place, uint32_t mask, int64_t ns) {
  if (ns >= w->best[place][mask]) return;
  w->best[place][mask] = ns;
  w->open[place][mask] = true;
}

/* Whether `step` can run ahead of step `at` of the route, or as it; then adds what it makes. */
static inline bool small_search_can_run(const small_search *w, uint32_t at, uint32_t step, uint32_t *mask) {
  const small_graph *g = w->g;
  uint32_t then = *mask | g->makes[step];
  if ((*mask & g->reads[step]) != g->reads[step]) return false;
  if (w->g->waiting[at] + g->gradients[step] + small_graph_outputs(g, then) > w->memory) return false;
  *mask = then;
  return true;
}

static inline void small_search_go_on(small_search *w, uint32_t at, uint32_t mask) {
  const small_graph *g = w->g;
  int64_t ns = w->best[at][mask];
  uint32_t then = mask;
  for (uint32_t o = 0; o < g->n_outputs; o++)
    if (mask & 1u << o) small_search_reach(w, at, mask & ~(1u << o), ns);
  if (small_search_can_run(w, at, at, &then)) {
    for (uint32_t o = 0; o < g->n_outputs; o++)
      if (g->changed[o] == at) then &= ~(1u << o);
    small_search_reach(w, at + 1, then, ns + g->ns[at]);
  }
  for (uint32_t s = 0; s < g->first_backward && at >= g->first_backward; s++) {
    bool again = true;
    for (uint32_t o = 0; o < g->n_outputs; o++) again &= !(g->makes[s] & 1u << o && g->changed[o] < at);
    then = mask;
    if (again && (mask & g->makes[s]) != g->makes[s] && small_search_can_run(w, at, s, &then))
      small_search_reach(w, at, then, ns + g->ns[s]);
  }
}

/* Place by place, the quickest first. */
static inline int64_t small_graph_search(const small_graph *g, uint64_t memory) {
  small_search *w = malloc(sizeof *w);
  uint32_t masks = 1u << g->n_outputs;
  int64_t best = INT64_MAX;
  assert_non_null(w);
  w->g = g;
  w->memory = memory;
  for (uint32_t p = 0; p <= g->n_steps; p++)
    for (uint32_t m = 0; m < masks; m++) w->best[p][m] = INT64_MAX, w->open[p][m] = false;
  small_search_reach(w, 0, 0, 0);
  for (uint32_t p = 0; p < g->n_steps; p++)
    for (;;) {
      uint32_t quickest = masks;
      for (uint32_t m = 0; m < masks; m++)
        if (w->open[p][m] && (quickest == masks || w->best[p][m] < w->best[p][quickest])) quickest = m;
      if (quickest == masks) break;
      w->open[p][quickest] = false;
      small_search_go_on(w, p, quickest);
    }
  for (uint32_t m = 0; m < masks; m++)
    if (w->best[g->n_steps][m] < best) best = w->best[g->n_steps][m];
  free(w);
  return best;
}

#endif
