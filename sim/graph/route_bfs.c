/* The order of SINGA's graph mode (planning, part D); see sim/graph/route.h. Edges: read after write, write after all
 * reads since, write after write, of tensors, of parameters and of momenta. O(steps + accesses). */
#include "sim/graph/route_order.h"

#include <stdlib.h>

/* What a step uses: a tensor, or behind all tensors a parameter or a momentum, two of each a layer. */
enum { PARAMETERS = 0, MOMENTA = 2, USED_PER_LAYER = 4, MOST_BESIDES = 4 };

typedef struct use {
  uint32_t what;
  bool reads, writes;
} use;

typedef struct reading {
  uint32_t step, earlier; /* of the same since it was written */
} reading;

typedef struct edge {
  uint32_t from, to;
} edge;

typedef struct graph {
  const sn_route *route;
  uint32_t *writer; /* per thing used: the last step that writes it */
  uint32_t *last;   /* and the last reading of it since */
  reading *readings;
  edge *edges; /* in the order of `to` */
  uint32_t n_readings, n_edges;
  uint32_t *waits_for; /* per step */
  uint32_t *first;     /* per step: its edges in `after`, ascending */
  uint32_t *after;
} graph;

static void connect(graph *g, uint32_t from, uint32_t to) {
  if (from == SN_NONE || from == to) return;
  g->edges[g->n_edges++] = (edge){from, to};
}

static void add_use(graph *g, uint32_t step, use u) {
  connect(g, g->writer[u.what], step);
  if (u.writes) {
    for (uint32_t r = g->last[u.what]; r != SN_NONE; r = g->readings[r].earlier) connect(g, g->readings[r].step, step);
    g->last[u.what] = SN_NONE;
    g->writer[u.what] = step;
  } else {
    g->readings[g->n_readings] = (reading){step, g->last[u.what]};
    g->last[u.what] = g->n_readings++;
  }
}

/* Of the parameters and momenta of its layer, which are no tensors. */
static uint32_t uses_besides(const sn_route *r, const sn_step *step, use *uses) {
  uint32_t base = r->n_tensors + USED_PER_LAYER * step->layer;
  uint32_t parameter = base + PARAMETERS + step->parameter, momentum = base + MOMENTA + step->parameter;
  uint32_t weights = base + PARAMETERS, bias = weights + 1;
  bool trained = r->net->layers[step->layer].parameters > 0;
  switch (step->kernel) {
  case SN_WHOLE: /* the bias is read by CONV and BN alone, and by BN in forward alone */
    uses[0] = (use){weights, true, false};
    uses[1] = (use){bias, true, false};
    if (!trained) return 0;
    return step->pass == SN_FORWARD && r->net->layers[step->layer].op != SN_FC ? 2 : 1;
  case SN_DATA_GRADIENT:
    uses[0] = (use){weights, true, false};
    return 1;
  case SN_ADD_ROW:
    uses[0] = (use){bias, true, false};
    return 1;
  case SN_DECAY_WEIGHT:
    uses[0] = (use){parameter, true, false};
    return 1;
  case SN_SCALE_MOMENTUM:
  case SN_ADD_GRADIENT:
    uses[0] = (use){momentum, true, true};
    return 1;
  case SN_ADD_TO_PARAMETER:
    uses[0] = (use){momentum, true, false};
    uses[1] = (use){parameter, true, true};
    return 2;
  case SN_FLATTEN:
  case SN_CAST:
  case SN_SHARED_SUM:
  case SN_TRANSFER:
  case SN_UNPACK:
  case SN_PACK:
  case SN_FILTER_GRADIENT:
  case SN_BIAS_GRADIENT:
  case SN_SUM:
    break;
  }
  return 0;
}

static void find_edges(graph *g) {
  const sn_route *r = g->route;
  for (uint32_t s = 0; s < r->n_steps; s++) {
    const sn_step *step = &r->steps[s];
    use besides[MOST_BESIDES];
    for (uint32_t i = 0; i < step->n_accesses; i++) {
      sn_access access = r->accesses[step->first_access + i];
      add_use(g, s, (use){access.tensor, access.mode != SN_WRITE, access.mode != SN_READ});
    }
    uint32_t count = uses_besides(r, step, besides);
    for (uint32_t i = 0; i < count; i++) add_use(g, s, besides[i]);
  }
}

/* By the step that is waited for; who waits stays in order. */
static void sort_edges(graph *g) {
  uint32_t n = g->route->n_steps;
  for (uint32_t e = 0; e < g->n_edges; e++) {
    g->waits_for[g->edges[e].to]++;
    g->first[g->edges[e].from + 2]++;
  }
  for (uint32_t s = 2; s < n + 2; s++) g->first[s] += g->first[s - 1];
  for (uint32_t e = 0; e < g->n_edges; e++) g->after[g->first[g->edges[e].from + 1]++] = g->edges[e].to;
}

static void walk(const graph *g, uint32_t *order) {
  uint32_t n = g->route->n_steps, count = 0;
  for (uint32_t s = 0; s < n; s++)
    if (g->waits_for[s] == 0) order[count++] = s;
  for (uint32_t done = 0; done < count; done++)
    for (uint32_t e = g->first[order[done]]; e < g->first[order[done] + 1]; e++)
      if (--g->waits_for[g->after[e]] == 0) order[count++] = g->after[e];
}

static bool allocate(graph *g) {
  const sn_route *r = g->route;
  size_t used = r->n_tensors + (size_t)USED_PER_LAYER * r->net->n_layers;
  size_t uses = r->n_accesses + (size_t)MOST_BESIDES * r->n_steps;
  g->writer = malloc((used + 1) * sizeof *g->writer);
  g->last = malloc((used + 1) * sizeof *g->last);
  g->readings = calloc(uses + 1, sizeof *g->readings);
  g->edges = calloc(2 * uses + 1, sizeof *g->edges);
  g->after = calloc(2 * uses + 1, sizeof *g->after);
  g->waits_for = calloc((size_t)r->n_steps + 1, sizeof *g->waits_for);
  g->first = calloc((size_t)r->n_steps + 2, sizeof *g->first);
  for (size_t i = 0; i < used && g->writer && g->last; i++) g->writer[i] = g->last[i] = SN_NONE;
  return g->writer && g->last && g->readings && g->edges && g->after && g->waits_for && g->first;
}

static void clear(graph *g) {
  free(g->writer);
  free(g->last);
  free(g->readings);
  free(g->edges);
  free(g->after);
  free(g->waits_for);
  free(g->first);
}

sn_status sn__route_bfs_order(sn_route *route, uint32_t *order, sn_err *err) {
  graph g = {.route = route};
  bool good = allocate(&g);
  if (good) {
    find_edges(&g);
    sort_edges(&g);
    walk(&g, order);
  }
  clear(&g);
  return good ? SN_OK : sn_fail_memory(err);
}
