/* Names of orders, depth-first post-order, and steps put in order; see the header. O(steps + accesses), explicit stack.
 */
#include "sim/graph/route_order.h"

#include <stdlib.h>
#include <string.h>

static const char *const order_names[SN_ORDERS] = {"route", "post", "serial", "bfs"};

const char *sn_order_name(sn_order order) {
  return order_names[order];
}

sn_status sn_order_parse(const char *text, sn_order *order, sn_err *err) {
  for (*order = 0; *order < SN_ORDERS; ++*order)
    if (strcmp(text, order_names[*order]) == 0) return SN_OK;
  return sn_fail(err, SN_BAD_USAGE, "--order: \"%.40s\" is none of: route, post, serial, bfs", text);
}

typedef struct visit {
  uint32_t step, next; /* access; behind them all, the step that it follows */
} visit;

typedef struct walk {
  sn_route *route;
  uint32_t *writer;  /* per tensor: the step that makes it */
  uint32_t *follows; /* per step: the one that adds to the same parameters' gradient just before it; or SN_NONE */
  bool *entered;     /* per step */
  visit *stack;      /* a step is on it at most once */
  uint32_t *order;   /* steps, as they are left */
  uint32_t count;
} walk;

/* The step that must have run before an access of a step, or before its sum; SN_NONE: any may. */
static uint32_t step_before(const walk *w, uint32_t index, uint32_t access) {
  const sn_step *step = &w->route->steps[index];
  if (access == step->n_accesses) return w->follows[index];
  sn_access a = w->route->accesses[step->first_access + access];
  return a.mode == SN_WRITE ? SN_NONE : w->writer[a.tensor];
}

static void visit_from(walk *w, uint32_t root) {
  const sn_route *r = w->route;
  uint32_t depth = 0;
  if (root == SN_NONE || w->entered[root]) return;
  w->entered[root] = true;
  w->stack[depth++] = (visit){root, 0};
  while (depth > 0) {
    visit *v = &w->stack[depth - 1];
    const sn_step *step = &r->steps[v->step];
    if (v->next > step->n_accesses) {
      w->order[w->count++] = v->step;
      depth--;
      continue;
    }
    uint32_t before = step_before(w, v->step, v->next++);
    if (before == SN_NONE || w->entered[before]) continue;
    w->entered[before] = true;
    w->stack[depth++] = (visit){before, 0};
  }
}

static void order_steps(walk *w) {
  const sn_route *r = w->route;
  const sn_net *net = r->net;
  for (uint32_t s = 0; s < r->first_backward; s++)
    if (net->layers[r->steps[s].layer].op == SN_SOFTMAX) visit_from(w, s);
  uint32_t forward = w->count;
  for (uint32_t i = 0; i < forward; i++) {
    uint32_t layer = r->steps[w->order[i]].layer;
    if (net->layers[layer].parameters > 0) visit_from(w, r->backward_step[layer]);
  }
  for (uint32_t s = 0; s < r->n_steps; s++) visit_from(w, s);
}

static void find_writers(const walk *w) {
  const sn_route *r = w->route;
  for (uint32_t s = 0; s < r->n_steps; s++)
    for (uint32_t i = 0; i < r->steps[s].n_accesses; i++) {
      sn_access access = r->accesses[r->steps[s].first_access + i];
      if (access.mode == SN_WRITE) w->writer[access.tensor] = s;
    }
}

/* Layers that share parameters add to one gradient. MXNet sums what each of them makes in one operation, so in an order
 * that no schedule changes: the route's, as in every other dialect. `last`: room for a step per layer. */
static void find_followers(const walk *w, uint32_t *last) {
  const sn_route *r = w->route;
  for (uint32_t i = 0; i < r->net->n_layers; i++) last[i] = SN_NONE;
  for (uint32_t s = 0; s < r->n_steps; s++) {
    uint32_t layer = r->steps[s].layer, shared = r->net->layers[layer].attr->weights_of,
             owner = shared ? shared : layer;
    w->follows[s] = SN_NONE;
    if (r->backward_step[layer] != s) continue;
    w->follows[s] = last[owner];
    last[owner] = s;
  }
}

static sn_status post_order(sn_route *route, uint32_t *order, sn_err *err) {
  walk w = {.route = route, .order = order};
  w.writer = calloc((size_t)route->n_tensors + 1, sizeof *w.writer);
  w.follows = calloc(route->n_steps, sizeof *w.follows);
  w.entered = calloc(route->n_steps, sizeof *w.entered);
  w.stack = calloc(route->n_steps, sizeof *w.stack);
  uint32_t *last = calloc(route->n_layers, sizeof *last);
  bool good = w.writer && w.follows && w.entered && w.stack && last;
  if (good) {
    find_writers(&w);
    find_followers(&w, last);
    order_steps(&w);
  }
  free(last);
  free(w.writer);
  free(w.follows);
  free(w.entered);
  free(w.stack);
  return good ? SN_OK : sn_fail_memory(err);
}

/* The step by which a layer's pass is known; the last where there are several. */
static bool is_own(const sn_step *step) {
  return step->kernel == SN_WHOLE || step->kernel == SN_FILTER_GRADIENT || step->kernel == SN_SUM;
}

static void move_steps(sn_route *r, const uint32_t *order, sn_step *room) {
  sn_step *steps = (sn_step *)r->steps;
  uint32_t *forward = (uint32_t *)r->forward_step, *backward = (uint32_t *)r->backward_step;
  for (uint32_t s = 0; s < r->n_steps; s++) {
    room[s] = steps[order[s]];
    if (!is_own(&room[s])) continue;
    if (room[s].pass == SN_FORWARD) forward[room[s].layer] = s;
    if (room[s].pass == SN_BACKWARD) backward[room[s].layer] = s;
  }
  memcpy(steps, room, r->n_steps * sizeof *steps);
}

/* Backward begins with its first step, wherever that is. */
static void find_backward(sn_route *r) {
  uint32_t s = 0;
  while (s < r->n_steps && r->steps[s].pass != SN_BACKWARD) s++;
  r->first_backward = s;
}

sn_status sn__route_put_in_order(sn_route *route, sn_order order, sn_err *err) {
  if (order != SN_ORDER_POST && order != SN_ORDER_BFS) return SN_OK;
  sn_step *room = calloc((size_t)route->n_steps + 1, sizeof *room);
  uint32_t *places = calloc((size_t)route->n_steps + 1, sizeof *places);
  sn_status status = room && places ? SN_OK : sn_fail_memory(err);
  if (status == SN_OK && order == SN_ORDER_POST) status = post_order(route, places, err);
  if (status == SN_OK && order == SN_ORDER_BFS) status = sn__route_bfs_order(route, places, err);
  if (status == SN_OK) move_steps(route, places, room);
  if (status == SN_OK && order == SN_ORDER_BFS) find_backward(route);
  free(room);
  free(places);
  return status;
}
