/* The graph of operations; see the header. One walk in serial order. */
#include "sim/schedule/ops.h"

#include "base/arena.h"
#include "sim/graph/route.h"

#include <stdbool.h>
#include <stdlib.h>

/* A tensor or an object on the walk. */
typedef struct resource {
  uint32_t writer; /* node that wrote it last, SN_NONE: none */
  uint32_t reader; /* touches[reader]: the last to read it since; SN_NONE: nobody */
  uint32_t life;   /* of a tensor that is on the device, else SN_NONE */
} resource;

/* A node reads a resource; `before` is the touch of the reader before it. */
typedef struct touch {
  uint32_t node, before;
} touch;

typedef struct maker {
  const sn_schedule *schedule;
  const sn_route *route;
  sn_ops *ops;
  sn_op_node *nodes;
  uint32_t *predecessors, *uses;
  sn_life *lives;
  resource *resources; /* tensors, then objects */
  touch *touches;
  uint32_t n_touches;
  uint32_t *length; /* per node: nodes on the longest path that ends there */
} maker;

static void add_edge(maker *m, uint32_t from, sn_op_node *to) {
  uint32_t *list = &m->predecessors[to->first_predecessor];
  uint32_t at = to->n_predecessors;
  while (at > 0 && list[at - 1] > from) at--;
  if (at > 0 && list[at - 1] == from) return;
  for (uint32_t i = to->n_predecessors++; i > at; i--) list[i] = list[i - 1];
  list[at] = from;
  m->ops->n_edges++;
}

static void add_touch(maker *m, resource *r, uint32_t node, sn_access_mode mode) {
  sn_op_node *at = &m->nodes[node];
  if (mode == SN_READ) {
    if (r->writer != SN_NONE) add_edge(m, r->writer, at);
    m->touches[m->n_touches] = (touch){node, r->reader};
    r->reader = m->n_touches++;
    return;
  }
  if (r->reader == SN_NONE && r->writer != SN_NONE) add_edge(m, r->writer, at);
  for (uint32_t t = r->reader; t != SN_NONE; t = m->touches[t].before) add_edge(m, m->touches[t].node, at);
  r->reader = SN_NONE;
  r->writer = node;
}

static void add_use(maker *m, uint32_t node, uint32_t tensor) {
  resource *r = &m->resources[tensor];
  if (r->life == SN_NONE) {
    r->life = m->ops->n_lives++;
    m->lives[r->life] = (sn_life){.tensor = tensor, .made_by = node};
  }
  m->lives[r->life].n_users++;
  m->uses[m->nodes[node].first_use + m->nodes[node].n_uses++] = r->life;
}

static void touch_tensors(maker *m, uint32_t node) {
  const sn_op_node *n = &m->nodes[node];
  const sn_step *step = &m->route->steps[n->step];
  for (uint32_t i = 0; i < step->n_accesses; i++) {
    if (!sn_step_part_has(m->route, n->step, n->part, i)) continue;
    sn_access access = m->route->accesses[step->first_access + i];
    add_touch(m, &m->resources[access.tensor], node, access.mode);
    add_use(m, node, access.tensor);
  }
}

static void touch_objects(maker *m, uint32_t node) {
  sn_object_access objects[SN_OBJECT_KINDS];
  uint32_t n = sn_step_part_objects(m->route, m->nodes[node].step, m->nodes[node].part, objects);
  for (uint32_t i = 0; i < n; i++)
    add_touch(m, &m->resources[m->route->n_tensors + objects[i].object], node, objects[i].mode);
}

static void end_lives(maker *m, const sn_execution *x) {
  const sn_step *step = &m->route->steps[x->step];
  for (uint32_t i = 0; i < step->n_accesses; i++)
    if (m->schedule->last_use[x->first_last_use + i])
      m->resources[m->route->accesses[step->first_access + i].tensor].life = SN_NONE;
}

static void add_node(maker *m, uint32_t execution, sn_step_part part) {
  uint32_t index = m->ops->n_ops++;
  sn_op_node *node = &m->nodes[index];
  *node = (sn_op_node){.execution = execution,
                       .step = m->schedule->executions[execution].step,
                       .part = part,
                       .first_predecessor = m->ops->n_edges,
                       .first_use = m->ops->n_uses};
  touch_tensors(m, index);
  touch_objects(m, index);
  m->ops->n_uses += node->n_uses;
  for (uint32_t i = 0; i < node->n_predecessors; i++) {
    uint32_t before = m->length[m->predecessors[node->first_predecessor + i]];
    if (before > m->length[index]) m->length[index] = before;
  }
  if (++m->length[index] > m->ops->chain_ops) m->ops->chain_ops = m->length[index];
}

static void walk(maker *m) {
  for (uint32_t r = 0; r < m->route->n_tensors + SN_OBJECT_KINDS * m->route->n_layers; r++)
    m->resources[r] = (resource){SN_NONE, SN_NONE, SN_NONE};
  for (uint32_t e = 0; e < m->schedule->n_executions; e++) {
    sn_step_part parts[2];
    uint32_t n = sn_step_parts(m->route, m->schedule->executions[e].step, parts);
    for (uint32_t i = 0; i < n; i++) add_node(m, e, parts[i]);
    end_lives(m, &m->schedule->executions[e]);
  }
}

/* Predecessors the other way round. */
static void find_successors(maker *m, uint32_t *successors) {
  sn_ops *ops = m->ops;
  for (uint32_t e = 0; e < ops->n_edges; e++) m->nodes[m->predecessors[e]].n_successors++;
  uint32_t first = 0;
  for (uint32_t i = 0; i < ops->n_ops; i++) {
    m->nodes[i].first_successor = first;
    first += m->nodes[i].n_successors;
    m->nodes[i].n_successors = 0;
  }
  for (uint32_t i = 0; i < ops->n_ops; i++)
    for (uint32_t p = 0; p < m->nodes[i].n_predecessors; p++) {
      sn_op_node *before = &m->nodes[m->predecessors[m->nodes[i].first_predecessor + p]];
      successors[before->first_successor + before->n_successors++] = i;
    }
}

/* What the walk can add at most: a touch makes an edge as a reader, and one more with who writes next. */
typedef struct bounds {
  size_t nodes, uses, touches;
} bounds;

static bounds count(const sn_schedule *s) {
  bounds b = {0};
  for (uint32_t e = 0; e < s->n_executions; e++) {
    sn_step_part parts[2];
    uint32_t n = sn_step_parts(s->route, s->executions[e].step, parts);
    b.nodes += n;
    b.uses += (size_t)n * s->route->steps[s->executions[e].step].n_accesses;
  }
  b.touches = b.uses + SN_OBJECT_KINDS * b.nodes;
  return b;
}

static bool allocate(maker *m, bounds b, uint32_t **successors) {
  sn_arena *arena = m->ops->arena;
  m->nodes = sn_arena_alloc(arena, b.nodes, sizeof *m->nodes);
  m->predecessors = sn_arena_alloc(arena, 2 * b.touches, sizeof *m->predecessors);
  *successors = sn_arena_alloc(arena, 2 * b.touches, sizeof **successors);
  m->uses = sn_arena_alloc(arena, b.uses, sizeof *m->uses);
  m->lives = sn_arena_alloc(arena, b.uses, sizeof *m->lives);
  m->resources =
      calloc((size_t)m->route->n_tensors + (size_t)SN_OBJECT_KINDS * m->route->n_layers, sizeof *m->resources);
  m->touches = calloc(b.touches + 1, sizeof *m->touches);
  m->length = calloc(b.nodes + 1, sizeof *m->length);
  return m->nodes && m->predecessors && *successors && m->uses && m->lives && m->resources && m->touches && m->length;
}

static bool make(maker *m) {
  uint32_t *successors;
  bool good = allocate(m, count(m->schedule), &successors);
  if (good) {
    walk(m);
    find_successors(m, successors);
    m->ops->nodes = m->nodes;
    m->ops->predecessors = m->predecessors;
    m->ops->successors = successors;
    m->ops->uses = m->uses;
    m->ops->lives = m->lives;
  }
  free(m->resources);
  free(m->touches);
  free(m->length);
  return good;
}

sn_ops *sn_ops_new(const sn_schedule *schedule, sn_err *err) {
  sn_arena *arena = sn_arena_new();
  sn_ops *ops = arena ? sn_arena_alloc(arena, 1, sizeof *ops) : NULL;
  if (ops) {
    ops->schedule = schedule;
    ops->arena = arena;
    maker m = {.schedule = schedule, .route = schedule->route, .ops = ops};
    if (make(&m)) return ops;
  }
  sn_arena_free(arena);
  sn_fail_memory(err);
  return NULL;
}

void sn_ops_free(sn_ops *ops) {
  if (ops) sn_arena_free(ops->arena);
}
