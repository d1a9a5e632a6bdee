/* The dialect singa: its steps as text, in both orders; and for random networks what its graph and the plans of its
 * strategies must be. Prints its seed; SN_SEED and SN_PROP_NETS choose others. */
#include "sim/plan/check.h"

#include "sim/graph/route.h"
#include "sim/make/make.h"
#include "tests/support/pipeline.h"
#include "tests/support/random_net.h"
#include "tests/support/seed.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- a small network ---- */

static const char block[] = "{\"snsim_net\":1,\"name\":\"block\",\"input\":[2,4,4],\"layers\":["
                            "{\"name\":\"conv\",\"op\":\"CONV\",\"channels\":2,\"kernel\":3,\"pad\":1},"
                            "{\"name\":\"bn\",\"op\":\"BN\"},"
                            "{\"name\":\"relu\",\"op\":\"ACT\"},"
                            "{\"name\":\"conv2\",\"op\":\"CONV\",\"channels\":2,\"kernel\":3,\"pad\":1,\"bias\":false},"
                            "{\"name\":\"join\",\"op\":\"JOIN\",\"inputs\":[\"conv2\",\"relu\"]},"
                            "{\"name\":\"fc\",\"op\":\"FC\",\"channels\":3},"
                            "{\"name\":\"softmax\",\"op\":\"SOFTMAX\"}]}";

/* "fc FILTER backward: softmax.dx:r join.y:r fc.dw:w"; an update's parameter behind its operation. */
static void print_step(const sn_route *r, uint32_t s, char *text, size_t room) {
  const sn_step *step = &r->steps[s];
  char name[SN_TENSOR_NAME];
  size_t used = (size_t)snprintf(text, room, "%s %s", r->net->layers[step->layer].name, sn_step_op_name(r, step));
  if (step->pass == SN_UPDATE) used += (size_t)snprintf(text + used, room - used, " %u", step->parameter);
  used += (size_t)snprintf(text + used, room - used, " %s:", sn_pass_name(step->pass));
  for (uint32_t i = 0; i < step->n_accesses; i++) {
    sn_access access = r->accesses[step->first_access + i];
    used += (size_t)snprintf(text + used, room - used, " %s:%c", sn_tensor_name(r, access.tensor, name, sizeof name),
                             "rwm"[access.mode]);
  }
}

static sn_route *open_block(sn_net **net, sn_order order) {
  sn_err err = SN_ERR_INIT;
  *net = load_net(block, 2);
  uint64_t workspace[16] = {0};
  workspace[find_layer(*net, "conv")] = 3000;
  workspace[find_layer(*net, "conv2")] = 5000;
  sn_route *route = sn_route_new_for(*net, SN_DIALECT_SINGA, order, (sn_iteration){0}, workspace, &err);
  must(&err);
  return route;
}

#define UPDATE(layer, parameter, gradient)                                                                             \
  layer " DECAY " parameter " update: " gradient ":m",                                                                 \
      layer " SCALE " parameter " update:", layer " ADD " parameter " update: " gradient ":r",                         \
      layer " ADD " parameter " update:"

/* The gradient of `relu` that came first is the JOIN's own dy, which conv2's kernels have read by then. */
static void serial_steps(void **state) {
  (void)state;
  static const char *const steps[] = {
      "conv CONV forward: conv.y:w conv.scratch:w",
      "bn BN forward: conv.y:r bn.y:w bn.saved0:w bn.saved1:w",
      "relu ACT forward: bn.y:r relu.y:w",
      "conv2 CONV forward: relu.y:r conv2.y:w conv2.scratch:w",
      "join JOIN forward: conv2.y:r relu.y:r join.y:w",
      "fc FC forward: join.y:r fc.product:w",
      "fc ADD_ROW forward: fc.product:r fc.y:w",
      "softmax SOFTMAX forward: fc.y:r softmax.y:w",
      "softmax SOFTMAX backward: softmax.y:r softmax.dx:w",
      "fc BIAS backward: softmax.dx:r fc.db:w",
      UPDATE("fc", "1", "fc.db"),
      "fc DATA backward: softmax.dx:r fc.dx:w",
      "fc FILTER backward: softmax.dx:r join.y:r fc.dw:w",
      UPDATE("fc", "0", "fc.dw"),
      "conv2 DATA backward: fc.dx:r conv2.scratch:m conv2.dx:w",
      "conv2 FILTER backward: fc.dx:r relu.y:r conv2.scratch:m conv2.dw:w",
      UPDATE("conv2", "0", "conv2.dw"),
      "relu/fork SUM backward: fc.dx:m conv2.dx:r",
      "relu ACT backward: fc.dx:r bn.y:r relu.dx:w",
      "bn BN backward: conv.y:r relu.dx:r bn.saved0:r bn.saved1:r bn.dx:w bn.dw:w bn.db:w",
      UPDATE("bn", "0", "bn.dw"),
      UPDATE("bn", "1", "bn.db"),
      "conv DATA backward: bn.dx:r conv.scratch:m conv.dx:w",
      "conv FILTER backward: bn.dx:r conv.scratch:m conv.dw:w",
      UPDATE("conv", "0", "conv.dw"),
      "conv BIAS backward: bn.dx:r conv.db:w",
      UPDATE("conv", "1", "conv.db"),
  };
  sn_net *net;
  sn_route *route = open_block(&net, SN_ORDER_SERIAL);
  assert_int_equal(route->n_steps, sizeof steps / sizeof steps[0]);
  for (uint32_t s = 0; s < route->n_steps; s++) {
    char text[300];
    print_step(route, s, text, sizeof text);
    assert_string_equal(text, steps[s]);
  }
  assert_int_equal(route->first_backward, 8);
  assert_int_equal(route->first_update, route->n_steps);
  sn_route_free(route);
  sn_net_free(net);
}

/* What waits for nothing, then what each step that is done lets in. The kernels of a CONV share their workspace, so
 * that each waits for the one before; those of an FC do not. */
static void bfs_steps(void **state) {
  (void)state;
  static const char *const steps[] = {
      /* how they begin */
      "conv CONV forward",
      "fc SCALE 1",
      "fc SCALE 0",
      "conv2 SCALE 0",
      "bn SCALE 0",
      "bn SCALE 1",
      "conv SCALE 0",
      "conv SCALE 1",
      "bn BN forward",
      "relu ACT forward",
      "conv2 CONV forward",
      "join JOIN forward",
      "fc FC forward",
      "fc ADD_ROW forward",
      "softmax SOFTMAX forward",
      "softmax SOFTMAX backward",
      "fc BIAS",
      "fc DATA",
      "fc FILTER",
      "fc DECAY 1",
      "conv2 DATA",
      "fc DECAY 0",
      "fc ADD 1 update: fc.db:r",
      "conv2 FILTER",
      "fc ADD 0 update: fc.dw:r",
      "fc ADD 1 update:",
      "conv2 DECAY 0",
      "relu/fork SUM",
      "fc ADD 0 update:",
      "conv2 ADD 0 update: conv2.dw:r",
      "relu ACT backward",
      "conv2 ADD 0 update:",
      "bn BN backward",
      "bn DECAY 0",
      "bn DECAY 1",
      "conv DATA",
      "conv BIAS",
      "bn ADD 0 update: bn.dw:r",
      "bn ADD 1 update: bn.db:r",
      "conv FILTER",
      "conv DECAY 1",
      "bn ADD 0 update:",
      "bn ADD 1 update:",
      "conv DECAY 0",
      "conv ADD 1 update: conv.db:r",
      "conv ADD 0 update: conv.dw:r",
      "conv ADD 1 update:",
      "conv ADD 0 update:",
  };
  sn_net *net;
  sn_route *route = open_block(&net, SN_ORDER_BFS);
  assert_int_equal(route->n_steps, sizeof steps / sizeof steps[0]);
  for (uint32_t s = 0; s < route->n_steps; s++) {
    char text[300];
    print_step(route, s, text, sizeof text);
    if (strncmp(text, steps[s], strlen(steps[s])) != 0) fail_msg("step %u: \"%s\", not \"%s\"", s + 1, text, steps[s]);
  }
  assert_int_equal(route->first_backward, 15);
  sn_route_free(route);
  sn_net_free(net);
}

/* The layer whose gradients were completed last is next: the JOIN's last input's maker, and all the way down from it.
 */
static void backward_is_a_stack(void **state) {
  (void)state;
  static const char branches[] = "{\"snsim_net\":1,\"name\":\"branches\",\"input\":[2,4,4],\"layers\":["
                                 "{\"name\":\"conv\",\"op\":\"CONV\",\"channels\":2,\"kernel\":3,\"pad\":1},"
                                 "{\"name\":\"a\",\"op\":\"CONV\",\"channels\":2,\"kernel\":1},"
                                 "{\"name\":\"arelu\",\"op\":\"ACT\"},"
                                 "{\"name\":\"b\",\"op\":\"CONV\",\"channels\":2,\"kernel\":1,\"inputs\":[\"conv\"]},"
                                 "{\"name\":\"brelu\",\"op\":\"ACT\"},"
                                 "{\"name\":\"join\",\"op\":\"JOIN\",\"inputs\":[\"arelu\",\"brelu\"]},"
                                 "{\"name\":\"fc\",\"op\":\"FC\",\"channels\":3},"
                                 "{\"name\":\"softmax\",\"op\":\"SOFTMAX\"}]}";
  static const char *const steps[] = {"softmax SOFTMAX",
                                      "fc BIAS",
                                      "fc DATA",
                                      "fc FILTER",
                                      "brelu ACT backward: fc.dx:r b.y:r",
                                      "b DATA",
                                      "b FILTER",
                                      "b BIAS",
                                      "arelu ACT backward: fc.dx:r a.y:r",
                                      "a DATA",
                                      "a FILTER",
                                      "a BIAS",
                                      "conv/fork SUM backward: b.dx:m a.dx:r",
                                      "conv DATA backward: b.dx:r",
                                      "conv FILTER",
                                      "conv BIAS"};
  sn_err err = SN_ERR_INIT;
  sn_net *net = load_net(branches, 2);
  sn_route *route = sn_route_new(net, SN_DIALECT_SINGA, SN_ORDER_ROUTE, &err);
  must(&err);
  uint32_t seen = 0;
  for (uint32_t s = 0; s < route->n_steps; s++) {
    char text[300];
    if (route->steps[s].pass != SN_BACKWARD) continue;
    print_step(route, s, text, sizeof text);
    assert_true(seen < sizeof steps / sizeof steps[0]);
    if (strncmp(text, steps[seen], strlen(steps[seen])) != 0) fail_msg("\"%s\", not \"%s\"", text, steps[seen]);
    seen++;
  }
  assert_int_equal(seen, sizeof steps / sizeof steps[0]);
  sn_route_free(route);
  sn_net_free(net);
}

static void other_dialects_have_other_orders(void **state) {
  (void)state;
  sn_net *net = load_net("lenet", 1);
  for (sn_dialect_id d = 0; d < SN_DIALECTS; d++)
    for (sn_order o = 0; o < SN_ORDERS; o++) {
      sn_err err = SN_ERR_INIT;
      sn_route *route = sn_route_new(net, d, o, &err);
      bool singas = o == SN_ORDER_SERIAL || o == SN_ORDER_BFS;
      bool expected = o == SN_ORDER_ROUTE || (singas ? d == SN_DIALECT_SINGA : d == SN_DIALECT_EXPLICIT);
      assert_int_equal(route != NULL, expected);
      assert_int_equal(err.code, expected ? SN_OK : SN_BAD_USAGE);
      sn_route_free(route);
    }
  sn_net_free(net);
}

/* ---- random networks ---- */

/* Everything about one net. */
typedef struct world {
  sn_net *net;
  sn_device device;
  sn_costs *costs;
} world;

static world open_world(uint64_t seed) {
  sn_err err = SN_ERR_INIT;
  world w = {.device = load_gpu("rtx2080ti")};
  w.net = random_net_new(&seed, &err);
  must(&err);
  w.costs = sn_costs_new(w.net, &w.device, &err);
  must(&err);
  return w;
}

static void close_world(world *w) {
  sn_costs_free(w->costs);
  sn_net_free(w->net);
}

static sn_route *route_of(const world *w, const char *strategy) {
  sn_err err = SN_ERR_INIT;
  sn_route *route = sn_schedule_route(w->net, parse_strategy(strategy), (sn_iteration){0}, w->costs, &err);
  must(&err);
  return route;
}

/* Per access: how often its tensor was written before. */
static uint32_t *find_versions(const sn_route *r) {
  uint32_t *versions = calloc((size_t)r->n_accesses + 1, sizeof *versions);
  uint32_t *written = calloc((size_t)r->n_tensors + 1, sizeof *written);
  assert_true(versions && written);
  for (uint32_t s = 0; s < r->n_steps; s++)
    for (uint32_t i = 0; i < r->steps[s].n_accesses; i++) {
      uint32_t a = r->steps[s].first_access + i;
      versions[a] = written[r->accesses[a].tensor];
      written[r->accesses[a].tensor] += r->accesses[a].mode != SN_READ;
    }
  free(written);
  return versions;
}

/* Breadth first every step finds what it finds in serial order. A step keeps its accesses. */
static void check_same_values(const sn_route *serial, const sn_route *bfs) {
  uint32_t *a = find_versions(serial), *b = find_versions(bfs);
  assert_int_equal(serial->n_steps, bfs->n_steps);
  assert_int_equal(serial->n_accesses, bfs->n_accesses);
  assert_memory_equal(serial->accesses, bfs->accesses, serial->n_accesses * sizeof *serial->accesses);
  assert_memory_equal(a, b, serial->n_accesses * sizeof *a);
  free(a);
  free(b);
}

/* The four kernels of each parameter's update come in turn, the one that changes it behind all that read it. */
static void check_updates(const sn_route *r) {
  uint32_t(*done)[2] = calloc(r->net->n_layers, sizeof *done);
  assert_non_null(done);
  for (uint32_t s = 0; s < r->n_steps; s++) {
    const sn_step *step = &r->steps[s];
    uint32_t *count = &done[step->layer][step->parameter];
    const sn_layer *layer = &r->net->layers[step->layer];
    bool reads = step->kernel == SN_WHOLE || step->kernel == SN_DATA_GRADIENT || step->kernel == SN_ADD_ROW;
    if (layer->parameters > 0 && reads) assert_true(done[step->layer][0] < 4);
    if (step->pass != SN_UPDATE) continue;
    if (step->kernel == SN_ADD_GRADIENT || step->kernel == SN_ADD_TO_PARAMETER)
      assert_int_equal(*count, step->kernel == SN_ADD_GRADIENT ? 2 : 3); /* behind both before it, in any order */
    ++*count;
  }
  for (uint32_t i = 0; i < r->net->n_layers; i++) {
    const sn_layer *layer = &r->net->layers[i];
    assert_int_equal(done[i][0], r->weight_gradient[i] == SN_NONE ? 0 : 4);
    assert_true(done[i][1] == 0 || done[i][1] == 4);
    assert_int_equal(done[i][0] > 0, layer->parameters > 0);
  }
  free(done);
}

/* In serial order an update stands right behind the step that makes the gradient, or behind its other parameter's. */
static void check_updates_follow(const sn_route *r) {
  for (uint32_t s = 0; s < r->n_steps; s++) {
    if (r->steps[s].kernel != SN_DECAY_WEIGHT) continue;
    uint32_t before = s - 1;
    while (r->steps[before].pass == SN_UPDATE) before--;
    assert_int_equal(r->steps[before].layer, r->steps[s].layer);
    assert_true(s - before == 1 || s - before == 5);
    bool makes = false;
    uint32_t gradient = r->weight_gradient[r->steps[s].layer] + r->steps[s].parameter;
    for (uint32_t i = 0; i < r->steps[before].n_accesses; i++) {
      sn_access access = r->accesses[r->steps[before].first_access + i];
      makes |= access.tensor == gradient && access.mode == SN_WRITE;
    }
    assert_true(makes);
  }
}

static void graphs(void **state) {
  (void)state;
  uint64_t seed = first_seed(20261201);
  uint32_t nets = case_count(300);
  for (uint32_t n = 0; n < nets; n++, seed++) {
    world w = open_world(seed);
    sn_route *serial = route_of(&w, "singa-serial"), *bfs = route_of(&w, "singa-bfs");
    check_same_values(serial, bfs);
    check_updates(serial);
    check_updates(bfs);
    check_updates_follow(serial);
    sn_route_free(serial);
    sn_route_free(bfs);
    close_world(&w);
  }
}

/* ---- plans ---- */

typedef struct planned {
  sn_route *route;
  sn_schedule *schedule;
  sn_plan *plan;
} planned;

static planned plan_of(const world *w, const char *strategy) {
  sn_err err = SN_ERR_INIT;
  planned p = {.route = route_of(w, strategy)};
  p.schedule = sn_schedule_new(p.route, SN_RECOMPUTE_NONE, &err);
  must(&err);
  sn_plan_wish wish = {.schedule = p.schedule,
                       .costs = w->costs,
                       .strategy = parse_strategy(strategy),
                       .workspace = SN_WORKSPACE_MAX,
                       .pool_bytes = UINT64_C(1) << 40};
  p.plan = sn_plan_make(&wish, &err);
  must(&err);
  sn_check(p.plan, NULL, &err);
  must(&err);
  return p;
}

static void drop(planned *p) {
  sn_plan_free(p->plan);
  sn_schedule_free(p->schedule);
  sn_route_free(p->route);
}

/* The largest sum of tensors, and what is left when the iteration has ended, of one role or all of them. */
static uint64_t load_of(const planned *p) {
  uint64_t load = 0;
  for (uint32_t s = 0; s < p->route->n_steps; s++)
    if (p->plan->use[s].tensor_bytes > load) load = p->plan->use[s].tensor_bytes;
  return load;
}

/* An iteration leaves as many bytes of values as it found; what it found goes with the last forward step. Scratch is
 * there throughout. */
static void check_carried(const planned *p) {
  uint64_t found = 0, left = 0;
  uint32_t scratches = 0;
  for (uint32_t n = 0; n < p->plan->n_instrs; n++) {
    const sn_instr *i = &p->plan->instrs[n];
    if (i->kind != SN_ALLOC && i->kind != SN_RELEASE) continue;
    const sn_tensor *t = &p->route->tensors[i->id];
    if (t->role == SN_CARRIED && i->kind == SN_ALLOC) {
      assert_int_equal(i->step, 0);
      found += t->bytes;
    } else if (t->role == SN_CARRIED) {
      assert_int_equal(i->step, p->route->first_backward - 1);
    } else if (t->role == SN_SCRATCH) {
      assert_true(i->kind == SN_ALLOC && i->step == 0);
      scratches++;
    } else {
      left += i->kind == SN_ALLOC ? t->bytes : -t->bytes;
    }
  }
  uint32_t expected = 0;
  for (uint32_t t = 0; t < p->route->n_tensors; t++) expected += p->route->tensors[t].role == SN_SCRATCH;
  assert_int_equal(scratches, expected);
  assert_int_equal(left, found);
}

/* With the graph nothing is left, and every workspace lies in a tensor. */
static void check_recycled(const planned *p) {
  uint32_t live = 0;
  for (uint32_t n = 0; n < p->plan->n_instrs; n++) {
    const sn_instr *i = &p->plan->instrs[n];
    live += i->kind == SN_ALLOC;
    live -= i->kind == SN_RELEASE;
    if (i->kind == SN_COMPUTE) assert_int_equal(i->bytes, 0);
  }
  assert_int_equal(live, 0);
}

/* A kernel at a time, a layer's pass takes what it takes in one. JOINs and FORKs have other steps here. */
static void check_times(const world *w, const planned *p) {
  int64_t(*ns)[SN_PASSES] = calloc(w->net->n_layers, sizeof *ns);
  uint8_t(*algo)[SN_PASSES][2] = calloc(w->net->n_layers, sizeof *algo);
  assert_true(ns && algo);
  memset(algo, SN_NO_ALGO, w->net->n_layers * sizeof *algo);
  for (uint32_t n = 0; n < p->plan->n_instrs; n++) {
    const sn_instr *i = &p->plan->instrs[n];
    if (i->kind != SN_COMPUTE) continue;
    const sn_step *step = &p->route->steps[i->id];
    ns[step->layer][step->pass] += sn_costs_kernel(w->costs, step, i->algo, false);
    for (int k = 0; k < 2; k++)
      if (i->algo[k] != SN_NO_ALGO) algo[step->layer][step->pass][k] = i->algo[k];
  }
  for (uint32_t i = 1; i < w->net->n_layers; i++) {
    sn_op op = w->net->layers[i].op;
    if (op == SN_JOIN || op == SN_FORK) continue;
    for (sn_pass pass = 0; pass < SN_PASSES; pass++) {
      if (pass == SN_BACKWARD && p->route->backward_step[i] == SN_NONE) continue;
      assert_int_equal(ns[i][pass], sn_costs_step(w->costs, i, pass, algo[i][pass]));
    }
  }
  free(ns);
  free(algo);
}

static void plans(void **state) {
  (void)state;
  uint64_t seed = first_seed(20261202);
  uint32_t nets = case_count(200);
  uint32_t with_scratch = 0;
  for (uint32_t n = 0; n < nets; n++, seed++) {
    world w = open_world(seed);
    planned layer = plan_of(&w, "singa-layer"), serial = plan_of(&w, "singa-serial"), bfs = plan_of(&w, "singa-bfs");
    check_carried(&layer);
    check_recycled(&serial);
    check_recycled(&bfs);
    check_times(&w, &serial);
    check_times(&w, &bfs);
    if (load_of(&layer) < load_of(&serial)) fail_msg("SN_SEED=%" PRIu64 ": recycling takes more", seed);
    for (uint32_t t = 0; t < serial.route->n_tensors; t++) with_scratch += serial.route->tensors[t].role == SN_SCRATCH;
    drop(&layer);
    drop(&serial);
    drop(&bfs);
    close_world(&w);
  }
  assert_true(with_scratch > 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(serial_steps),
      cmocka_unit_test(bfs_steps),
      cmocka_unit_test(backward_is_a_stack),
      cmocka_unit_test(other_dialects_have_other_orders),
      cmocka_unit_test(graphs),
      cmocka_unit_test(plans),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
