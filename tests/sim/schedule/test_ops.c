/* The graph of operations: the counts of known networks, and for random ones that paths order exactly those pairs that
 * touch something and do not both only read it, and that lives add up to the bytes of serial execution. */
#include "sim/schedule/ops.h"
#include "tests/support/pipeline.h"
#include "tests/support/random_net.h"
#include "tests/support/seed.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct graph {
  sn_net *net;
  sn_route *route;
  sn_schedule *schedule;
  sn_ops *ops;
} graph;

static graph open_graph(sn_net *net, sn_recompute recompute) {
  sn_err err = SN_ERR_INIT;
  graph g = {.net = net};
  g.route = sn_route_new(net, SN_DIALECT_SUPERNEURONS, SN_ORDER_ROUTE, &err);
  must(&err);
  g.schedule = sn_schedule_new(g.route, recompute, &err);
  must(&err);
  g.ops = sn_ops_new(g.schedule, &err);
  must(&err);
  return g;
}

static void close_graph(graph *g) {
  sn_ops_free(g->ops);
  sn_schedule_free(g->schedule);
  sn_route_free(g->route);
  sn_net_free(g->net);
}

static void check_counts(const char *spec, uint32_t ops, uint32_t chain) {
  graph g = open_graph(load_net(spec, 1), SN_RECOMPUTE_NONE);
  assert_int_equal(g.ops->n_ops, ops);
  assert_int_equal(g.ops->chain_ops, chain);
  close_graph(&g);
}

static void known_networks(void **state) {
  (void)state;
  check_counts("lenet", 24, 17);
  check_counts("inception_v3", 934, 343);
  check_counts("resnet_cifar:n=8", 559, 397);
  check_counts("dcgan", 63, 43); /* with the DATA of the first FC, which makes a gradient of the noise */
}

/* ---- random networks ---- */

enum { MOST_TOUCHES = 64 };

typedef struct touched {
  uint32_t count, what[MOST_TOUCHES]; /* tensors, then objects */
  bool writes[MOST_TOUCHES];
} touched;

static touched touches_of(const graph *g, const sn_op_node *node) {
  const sn_step *step = &g->route->steps[node->step];
  touched t = {0};
  for (uint32_t i = 0; i < step->n_accesses; i++) {
    sn_access access = g->route->accesses[step->first_access + i];
    if (!sn_step_part_has(g->route, node->step, node->part, i)) continue;
    t.what[t.count] = access.tensor;
    t.writes[t.count++] = access.mode != SN_READ;
  }
  sn_object_access objects[SN_OBJECT_KINDS];
  uint32_t n = sn_step_part_objects(g->route, node->step, node->part, objects);
  for (uint32_t i = 0; i < n; i++) {
    t.what[t.count] = g->route->n_tensors + objects[i].object;
    t.writes[t.count++] = objects[i].mode != SN_READ;
  }
  return t;
}

static bool conflict(const touched *a, const touched *b) {
  for (uint32_t i = 0; i < a->count; i++)
    for (uint32_t j = 0; j < b->count; j++)
      if (a->what[i] == b->what[j] && (a->writes[i] || b->writes[j])) return true;
  return false;
}

/* reach[u n + v]: a path leads from u to v. `made` is the closure of the conflicts, `found` that of the edges. */
static void close_over(bool *reach, uint32_t n) {
  for (uint32_t v = 0; v < n; v++)
    for (uint32_t u = v; u-- > 0;)
      if (reach[u * n + v])
        for (uint32_t t = 0; t < u; t++) reach[t * n + v] |= reach[t * n + u];
}

static void check_paths(const graph *g) {
  uint32_t n = g->ops->n_ops;
  bool *made = calloc((size_t)n * n, sizeof *made), *found = calloc((size_t)n * n, sizeof *found);
  touched *t = calloc(n, sizeof *t);
  assert_true(made && found && t);
  for (uint32_t v = 0; v < n; v++) {
    const sn_op_node *node = &g->ops->nodes[v];
    t[v] = touches_of(g, node);
    for (uint32_t u = 0; u < v; u++) made[u * n + v] = conflict(&t[u], &t[v]);
    for (uint32_t i = 0; i < node->n_predecessors; i++) {
      uint32_t u = g->ops->predecessors[node->first_predecessor + i];
      assert_true(u < v && made[u * n + v]);
      found[u * n + v] = true;
    }
  }
  close_over(made, n);
  close_over(found, n);
  assert_memory_equal(made, found, (size_t)n * n);
  free(made);
  free(found);
  free(t);
}

static void check_successors(const sn_ops *ops) {
  uint32_t edges = 0;
  for (uint32_t u = 0; u < ops->n_ops; u++)
    for (uint32_t i = 0; i < ops->nodes[u].n_successors; i++) {
      const sn_op_node *v = &ops->nodes[ops->successors[ops->nodes[u].first_successor + i]];
      bool back = false;
      for (uint32_t p = 0; p < v->n_predecessors; p++) back |= ops->predecessors[v->first_predecessor + p] == u;
      assert_true(back);
      edges++;
    }
  assert_int_equal(edges, ops->n_edges);
}

/* One after another, whole steps: what is live is what the schedule's last uses say; with parts, never more. */
static void check_lives(const graph *g) {
  const sn_ops *ops = g->ops;
  uint32_t *left = calloc((size_t)ops->n_lives + 1, sizeof *left);
  assert_non_null(left);
  for (uint32_t l = 0; l < ops->n_lives; l++) left[l] = ops->lives[l].n_users;
  bool *live = calloc(g->route->n_tensors, sizeof *live);
  for (uint32_t i = 0; i < ops->n_ops; i++) {
    const sn_op_node *node = &ops->nodes[i];
    for (uint32_t u = 0; u < node->n_uses; u++) {
      uint32_t life = ops->uses[node->first_use + u], tensor = ops->lives[life].tensor;
      assert_int_equal(ops->lives[life].made_by == i, !live[tensor]);
      live[tensor] = true;
    }
    for (uint32_t u = 0; u < node->n_uses; u++) {
      uint32_t life = ops->uses[node->first_use + u];
      if (--left[life] == 0) live[ops->lives[life].tensor] = false;
    }
    bool whole = i + 1 == ops->n_ops || ops->nodes[i + 1].execution != node->execution;
    const sn_execution *x = &ops->schedule->executions[node->execution];
    const sn_step *step = &g->route->steps[x->step];
    for (uint32_t a = 0; whole && a < step->n_accesses; a++)
      assert_int_equal(live[g->route->accesses[step->first_access + a].tensor],
                       !ops->schedule->last_use[x->first_last_use + a]);
  }
  for (uint32_t l = 0; l < ops->n_lives; l++) assert_int_equal(left[l], 0);
  free(left);
  free(live);
}

static void random_graphs(void **state) {
  (void)state;
  uint64_t seed = first_seed(1), nets = case_count(60);
  for (uint64_t i = 0; i < nets; i++)
    for (sn_recompute r = SN_RECOMPUTE_NONE; r <= SN_RECOMPUTE_COST; r++) {
      sn_err err = SN_ERR_INIT;
      uint64_t dice = seed + i;
      sn_net *net = random_net_new(&dice, &err);
      must(&err);
      graph g = open_graph(net, r);
      check_paths(&g);
      check_successors(g.ops);
      check_lives(&g);
      close_graph(&g);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(known_networks), cmocka_unit_test(random_graphs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
