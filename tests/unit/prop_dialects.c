/* Dialects: the explicit graph's steps as text, and for random networks in every dialect and order what every route
 * must be: each tensor is made once, before it is read; forward, then backward, then updates; permits join what is read
 * to what is made, of one size. Prints its seed; SN_SEED and SN_PROP_NETS choose others. */
#include "tests/unit/pipeline.h"
#include "tests/unit/random_net.h"
#include "tests/unit/seed.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* A block with a shortcut: its input has two readers. */
static const char block[] = "{\"snsim_net\":1,\"name\":\"block\",\"input\":[2,4,4],\"layers\":["
                            "{\"name\":\"conv\",\"op\":\"CONV\",\"channels\":2,\"kernel\":3,\"pad\":1},"
                            "{\"name\":\"bn\",\"op\":\"BN\"},"
                            "{\"name\":\"relu\",\"op\":\"ACT\"},"
                            "{\"name\":\"drop\",\"op\":\"DROPOUT\",\"ratio\":0.5},"
                            "{\"name\":\"join\",\"op\":\"JOIN\",\"inputs\":[\"drop\",\"bn\"]},"
                            "{\"name\":\"fc\",\"op\":\"FC\",\"channels\":3},"
                            "{\"name\":\"softmax\",\"op\":\"SOFTMAX\"}]}";

/* "bn forward: conv.y:r bn.y:w bn.saved0:w bn.saved1:w"; permits as "from>to" behind them. */
static void print_step(const sn_route *r, uint32_t s, char *text, size_t room) {
  const sn_step *step = &r->steps[s];
  char name[SN_TENSOR_NAME];
  const char *flatten = step->kernel == SN_FLATTEN ? " flatten" : "";
  size_t used =
      (size_t)snprintf(text, room, "%s%s %s:", r->net->layers[step->layer].name, flatten, sn_pass_name(step->pass));
  for (uint32_t i = 0; i < step->n_accesses; i++) {
    sn_access access = r->accesses[step->first_access + i];
    used += (size_t)snprintf(text + used, room - used, " %s:%c", sn_tensor_name(r, access.tensor, name, sizeof name),
                             "rwm"[access.mode]);
  }
  for (uint32_t i = 0; i < step->n_permits; i++) {
    sn_permit p = r->permits[step->first_permit + i];
    used += (size_t)snprintf(text + used, room - used, " %u>%u", p.from, p.to);
  }
}

static void explicit_steps(void **state) {
  (void)state;
  static const char *const steps[] = {
      "conv forward: conv.y:w",
      "bn forward: conv.y:r bn.y:w bn.saved0:w bn.saved1:w",
      "relu forward: bn.y:r relu.y:w 0>1",
      "drop forward: relu.y:r drop.y:w drop.saved:w 0>1",
      "join forward: drop.y:r bn.y:r join.y:w 0>2 1>2",
      "fc flatten forward: join.y:r fc.flat:w 0>1",
      "fc forward: fc.flat:r fc.y:w",
      "softmax forward: fc.y:r softmax.y:w 0>1",
      "softmax backward: softmax.y:r softmax.dx:w 0>1",
      "fc backward: softmax.dx:r fc.flat:r fc.dflat:w 1>2",
      "fc flatten backward: fc.dflat:r fc.dx:w 0>1",
      "join backward: fc.dx:r join.dx0:w join.dx1:w 0>1",
      "drop backward: join.dx0:r drop.saved:r drop.dx:w 0>2",
      "relu backward: drop.dx:r relu.y:r relu.dx:w 0>2",
      "bn/fork backward: join.dx1:r relu.dx:r bn/fork.dx:w 0>2",
      "bn backward: bn/fork.dx:r bn.saved0:r bn.saved1:r conv.y:r bn.dx:w",
      "conv backward: bn.dx:r",
      "conv update:",
      "bn update:",
      "fc update:",
  };
  sn_err err = SN_ERR_INIT;
  sn_net *net = load_net(block, 2);
  sn_route *route = sn_route_new(net, SN_DIALECT_EXPLICIT, SN_ORDER_ROUTE, &err);
  must(&err);
  assert_int_equal(route->n_steps, sizeof steps / sizeof steps[0]);
  for (uint32_t s = 0; s < route->n_steps; s++) {
    char text[300];
    print_step(route, s, text, sizeof text);
    assert_string_equal(text, steps[s]);
  }
  sn_route_free(route);
  sn_net_free(net);
}

static void in_place_has_one_order(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_net *net = load_net("lenet", 1);
  assert_null(sn_route_new(net, SN_DIALECT_SUPERNEURONS, SN_ORDER_POST, &err));
  assert_int_equal(err.code, SN_BAD_USAGE);
  sn_net_free(net);
}

static void names(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_dialect_id id;
  for (sn_dialect_id d = 0; d < SN_DIALECTS; d++) {
    assert_int_equal(sn_dialect_parse(sn_dialect_of(d)->name, &id, &err), SN_OK);
    assert_int_equal(id, d);
  }
  assert_int_equal(sn_dialect_parse("caffe", &id, &err), SN_BAD_USAGE);
  assert_string_equal(err.text, "--dialect: \"caffe\" is none of: superneurons, explicit");
}

/* ---- random networks ---- */

static void check_access(const sn_route *r, uint32_t s, sn_access access, bool *made) {
  char name[SN_TENSOR_NAME];
  if (made[access.tensor] == (access.mode == SN_WRITE))
    fail_msg("step %u: %s is %s", s + 1, sn_tensor_name(r, access.tensor, name, sizeof name),
             made[access.tensor] ? "made again" : "read before it is made");
  made[access.tensor] = true;
}

static void check_permit(const sn_route *r, const sn_step *step, sn_permit p) {
  assert_true(p.from < step->n_accesses && p.to < step->n_accesses);
  sn_access from = r->accesses[step->first_access + p.from], to = r->accesses[step->first_access + p.to];
  assert_true(from.mode == SN_READ && to.mode == SN_WRITE);
  assert_int_equal(r->tensors[from.tensor].bytes, r->tensors[to.tensor].bytes);
}

static sn_pass pass_of(const sn_route *r, uint32_t s) {
  return s < r->first_backward ? SN_FORWARD : s < r->first_update ? SN_BACKWARD : SN_UPDATE;
}

/* The same bytes in another shape, and nothing else. */
static void check_flatten(const sn_route *r, const sn_step *step) {
  assert_int_equal(r->net->layers[step->layer].op, SN_FC);
  assert_int_equal(step->n_accesses, 2);
  assert_int_equal(step->n_permits, 1);
}

static void check_route(const sn_route *r) {
  bool *made = calloc((size_t)r->n_tensors + 1, sizeof *made);
  uint64_t bytes = 0;
  assert_non_null(made);
  for (uint32_t s = 0; s < r->n_steps; s++) {
    const sn_step *step = &r->steps[s];
    assert_int_equal(step->pass, pass_of(r, s));
    bool whole = step->kernel == SN_WHOLE;
    if (step->pass == SN_FORWARD && whole) assert_int_equal(r->forward_step[step->layer], s);
    if (step->pass == SN_BACKWARD && whole) assert_int_equal(r->backward_step[step->layer], s);
    if (!whole) check_flatten(r, step);
    for (uint32_t i = 0; i < step->n_accesses; i++) check_access(r, s, r->accesses[step->first_access + i], made);
    for (uint32_t i = 0; i < step->n_permits; i++) check_permit(r, step, r->permits[step->first_permit + i]);
  }
  for (uint32_t t = 0; t < r->n_tensors; t++) {
    assert_true(made[t]);
    bytes += r->tensors[t].bytes;
  }
  assert_int_equal(bytes, r->tensor_bytes);
  free(made);
}

static uint32_t flattens(const sn_route *r, uint32_t layer) {
  const sn_layer *l = &r->net->layers[layer];
  return r->dialect->flattens && l->op == SN_FC && r->output[r->net->inputs[l->first_input]] != SN_NONE;
}

/* A step for every layer, but for DATA and FORKs that do not copy; those have one that sums. And one ahead of each FC
 * that does not read the batch itself. */
static void check_steps(const sn_route *r) {
  uint32_t forward = 0;
  for (uint32_t i = 1; i < r->net->n_layers; i++) {
    bool transparent = r->net->layers[i].op == SN_FORK && !r->dialect->fork_copies;
    assert_int_equal(r->forward_step[i] == SN_NONE, transparent);
    if (!transparent) assert_int_not_equal(r->backward_step[i], SN_NONE);
    forward += !transparent + flattens(r, i);
  }
  assert_int_equal(forward, r->first_backward);
}

static void random_routes(void **state) {
  (void)state;
  uint64_t seed = first_seed(20261122);
  const char *asked = getenv("SN_PROP_NETS");
  int nets = asked ? atoi(asked) : 500;
  for (int n = 0; n < nets; n++, seed++) {
    sn_err err = SN_ERR_INIT;
    uint64_t dice = seed;
    sn_net *net = random_net_new(&dice, &err);
    must(&err);
    for (sn_dialect_id d = 0; d < SN_DIALECTS; d++)
      for (sn_order o = 0; o < SN_ORDERS; o++) {
        if (d == SN_DIALECT_SUPERNEURONS && o != SN_ORDER_ROUTE) continue;
        sn_route *route = sn_route_new(net, d, o, &err);
        if (!route) fail_msg("SN_SEED=%" PRIu64 ": %s", seed, err.text);
        check_route(route);
        check_steps(route);
        sn_route_free(route);
      }
    sn_net_free(net);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(explicit_steps),
      cmocka_unit_test(in_place_has_one_order),
      cmocka_unit_test(names),
      cmocka_unit_test(random_routes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
