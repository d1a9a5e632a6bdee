/* Route: the order of algorithm 1 on nested fans, step numbers, every operator's accesses as text, limits. */
#include "tests/support/pipeline.h"

#include "models/build/build.h"
#include "models/op/op.h"
#include "sim/graph/route.h"

#include <stdio.h>
#include <stdlib.h>

#define SOFTMAX_AT_END                                                                                                 \
  "{\"name\":\"g\",\"op\":\"POOL\",\"global\":true},{\"name\":\"fc\",\"op\":\"FC\",\"channels\":3},"                   \
  "{\"name\":\"softmax\",\"op\":\"SOFTMAX\"}]}"

static sn_route *make_route(const sn_net *net) {
  sn_err err = SN_ERR_INIT;
  sn_route *route = sn_route_new(net, SN_DIALECT_SUPERNEURONS, SN_ORDER_ROUTE, &err);
  must(&err);
  assert_non_null(route);
  return route;
}

/* Layers in forward order, separated by blanks. */
static void print_order(const sn_route *route, char *text, size_t room) {
  size_t used = 0;
  text[0] = '\0';
  for (uint32_t s = 0; s < route->first_backward; s++)
    used += (size_t)snprintf(text + used, room - used, "%s%s", s ? " " : "", route->layers[route->steps[s].layer].name);
}

/* Accesses of a step as "tensor:r", ":w" or ":m" for changed in place. */
static void print_accesses(const sn_route *route, const sn_step *step, char *text, size_t room) {
  size_t used = 0;
  text[0] = '\0';
  for (uint32_t i = 0; i < step->n_accesses; i++) {
    char name[SN_TENSOR_NAME];
    sn_access access = route->accesses[step->first_access + i];
    used += (size_t)snprintf(text + used, room - used, "%s%s:%c", i ? " " : "",
                             sn_tensor_name(route, access.tensor, name, sizeof name), "rwm"[access.mode]);
  }
}

/* Figure 6 of the paper: a fan within a fan. The inner JOIN needs both inner branches, the outer one everything.
 *
 *          .--> b1 --.--> c1 --.
 *   a ---- |         '--> c2 --+--> join_in --.
 *          '--> b2 ----------------> b3 ------+--> join_out --> ...       */
static const char nested[] = "{\"snsim_net\":1,\"name\":\"nested\",\"input\":[2,4,4],\"layers\":["
                             "{\"name\":\"a\",\"op\":\"ACT\"},"
                             "{\"name\":\"b1\",\"op\":\"ACT\"},"
                             "{\"name\":\"c1\",\"op\":\"ACT\"},"
                             "{\"name\":\"c2\",\"op\":\"ACT\",\"input\":\"b1\"},"
                             "{\"name\":\"join_in\",\"op\":\"JOIN\",\"inputs\":[\"c1\",\"c2\"]},"
                             "{\"name\":\"b2\",\"op\":\"ACT\",\"input\":\"a\"},"
                             "{\"name\":\"b3\",\"op\":\"ACT\"},"
                             "{\"name\":\"join_out\",\"op\":\"JOIN\",\"inputs\":[\"join_in\",\"b3\"]}," SOFTMAX_AT_END;

static void nested_fans(void **state) {
  (void)state;
  char text[400];
  sn_net *net = load_net(nested, 2);
  sn_route *route = make_route(net);
  print_order(route, text, sizeof text);
  assert_string_equal(text, "a a/fork b1 b1/fork c1 c2 join_in b2 b3 join_out g fc softmax");
  sn_route_free(route);
  sn_net_free(net);
}

/* Branches in the order in which their consumers were declared, not in that of the layers' names or depth; a join is
 * entered on its last input, so the branch behind it comes before what was declared later. */
static void declaration_order(void **state) {
  (void)state;
  static const char text_net[] = "{\"snsim_net\":1,\"name\":\"late\",\"input\":[2,4,4],\"layers\":["
                                 "{\"name\":\"sum\",\"op\":\"JOIN\",\"inputs\":[\"z\",\"data\",\"y\"]},"
                                 "{\"name\":\"tail\",\"op\":\"ACT\"},"
                                 "{\"name\":\"z\",\"op\":\"ACT\",\"input\":\"data\"},"
                                 "{\"name\":\"y\",\"op\":\"ACT\",\"input\":\"data\"},"
                                 "{\"name\":\"all\",\"op\":\"CONCAT\",\"inputs\":[\"tail\",\"x\"]},"
                                 "{\"name\":\"x\",\"op\":\"ACT\",\"input\":\"data\"},"
                                 "{\"name\":\"g\",\"op\":\"POOL\",\"global\":true,\"input\":\"all\"},"
                                 "{\"name\":\"softmax\",\"op\":\"SOFTMAX\"}]}";
  char text[400];
  sn_net *net = load_net(text_net, 1);
  sn_route *route = make_route(net);
  print_order(route, text, sizeof text);
  assert_string_equal(text, "data/fork z y sum tail x all g softmax");
  sn_route_free(route);
  sn_net_free(net);
}

/* Forward of the i-th layer is step i, backward step 2N+1-i, then updates of layers with parameters in forward order.
 */
static void step_numbers(void **state) {
  (void)state;
  static const char *const nets[] = {"alexnet", "resnet50", "inception_v4", nested};
  for (size_t k = 0; k < sizeof nets / sizeof nets[0]; k++) {
    sn_net *net = load_net(nets[k], 2);
    sn_route *route = make_route(net);
    uint32_t n = route->first_backward, update = 2 * n;
    assert_int_equal(n, net->n_layers - 1);
    assert_int_equal(route->forward_step[0], SN_NONE);
    for (uint32_t i = 0; i < n; i++) {
      const sn_step *forward = &route->steps[i], *backward = &route->steps[2 * n - 1 - i];
      assert_int_equal(forward->pass, SN_FORWARD);
      assert_int_equal(backward->pass, SN_BACKWARD);
      assert_int_equal(forward->layer, backward->layer);
      assert_int_equal(route->forward_step[forward->layer], i);
      assert_int_equal(route->backward_step[forward->layer], 2 * n - 1 - i);
      if (net->layers[forward->layer].parameters == 0) continue;
      assert_int_equal(route->steps[update].pass, SN_UPDATE);
      assert_int_equal(route->steps[update].n_accesses, 0);
      assert_int_equal(route->steps[update++].layer, forward->layer);
    }
    assert_int_equal(route->n_steps, update);
    sn_route_free(route);
    sn_net_free(net);
  }
}

/* Whatever the net: inputs before outputs; a tensor at most once in a step; each tensor written before it is read, and
 * made by exactly one step. */
static void every_net_is_consistent(void **state) {
  (void)state;
  uint32_t count;
  const sn_zoo_entry *entries = sn_zoo_entries(&count);
  for (uint32_t k = 0; k < count; k++) {
    sn_net *net = load_net(entries[k].name, 1);
    sn_route *route = make_route(net);
    uint32_t *seen = calloc(route->n_tensors, sizeof *seen);
    bool *made = calloc(route->n_tensors, sizeof *made);
    uint64_t bytes = 0;
    for (uint32_t s = 0; s < route->n_steps; s++)
      for (uint32_t i = 0; i < route->steps[s].n_accesses; i++) {
        sn_access access = route->accesses[route->steps[s].first_access + i];
        assert_int_not_equal(seen[access.tensor], s + 1);
        assert_int_equal(made[access.tensor], access.mode != SN_WRITE);
        made[access.tensor] = true;
        seen[access.tensor] = s + 1;
      }
    for (uint32_t t = 0; t < route->n_tensors; t++) {
      assert_true(made[t]);
      bytes += route->tensors[t].bytes;
    }
    assert_true(bytes == route->tensor_bytes);
    free(seen), free(made);
    sn_route_free(route);
    sn_net_free(net);
  }
}

/* One chain with every operator, and what each step touches (reference, section 1). */
static const char every_op[] = "{\"snsim_net\":1,\"name\":\"every\",\"input\":[4,8,8],\"layers\":["
                               "{\"name\":\"conv\",\"op\":\"CONV\",\"channels\":4,\"kernel\":3,\"pad\":1},"
                               "{\"name\":\"bn\",\"op\":\"BN\"},"
                               "{\"name\":\"act\",\"op\":\"ACT\"},"
                               "{\"name\":\"lrn\",\"op\":\"LRN\"},"
                               "{\"name\":\"join\",\"op\":\"JOIN\",\"inputs\":[\"lrn\",\"act\",\"lrn\"]},"
                               "{\"name\":\"cat\",\"op\":\"CONCAT\",\"inputs\":[\"join\",\"join\"]},"
                               "{\"name\":\"pool\",\"op\":\"POOL\",\"global\":true},"
                               "{\"name\":\"drop\",\"op\":\"DROPOUT\"},"
                               "{\"name\":\"fc\",\"op\":\"FC\",\"channels\":3},"
                               "{\"name\":\"softmax\",\"op\":\"SOFTMAX\"}]}";

typedef struct expected {
  const char *layer, *forward, *backward;
} expected;

static const expected every_step[] = {
    {"conv", "conv.y:w", "bn.dx:r conv.dx:w"}, /* x is the input batch, which is no functional tensor */
    {"bn", "conv.y:r bn.y:w", "conv.y:r cat.dx0:r bn.dx:w"},
    {"act", "bn.y:r act.y:w", "bn.y:r act.y:r cat.dx0:m"},
    {"act/fork", "act.y:r act/fork.y0:w act/fork.y1:w", "cat.dx0:m join.dx1:r"},
    {"lrn", "act/fork.y0:r lrn.y:w", "act/fork.y0:r lrn.y:r cat.dx0:m"},
    {"lrn/fork", "lrn.y:r lrn/fork.y0:w lrn/fork.y1:w", "cat.dx0:m join.dx2:r"},
    {"join", "lrn/fork.y0:r act/fork.y1:r lrn/fork.y1:r join.y:w", "cat.dx0:r join.dx1:w join.dx2:w"},
    {"join/fork", "join.y:r join/fork.y0:w join/fork.y1:w", "cat.dx0:m cat.dx1:r"},
    {"cat", "join/fork.y0:r join/fork.y1:r cat.y:w", "pool.dx:r cat.dx0:w cat.dx1:w"},
    {"pool", "cat.y:r pool.y:w", "cat.y:r pool.y:r drop.dx:r pool.dx:w"},
    {"drop", "pool.y:r drop.y:w", "fc.dx:r drop.dx:w"}, /* the mask is no functional tensor either */
    {"fc", "drop.y:r fc.y:w", "drop.y:r softmax.y:r fc.dx:w"},
    {"softmax", "fc.y:r softmax.y:w", "fc.y:r softmax.y:m"},
};

static void gradient_rules(void **state) {
  (void)state;
  sn_net *net = load_net(every_op, 2);
  sn_route *route = make_route(net);
  for (size_t i = 0; i < sizeof every_step / sizeof every_step[0]; i++) {
    const expected *e = &every_step[i];
    uint32_t layer = find_layer(net, e->layer);
    char text[400];
    print_accesses(route, &route->steps[route->forward_step[layer]], text, sizeof text);
    if (strcmp(text, e->forward) != 0) fail_msg("%s forward: %s", e->layer, text);
    print_accesses(route, &route->steps[route->backward_step[layer]], text, sizeof text);
    if (strcmp(text, e->backward) != 0) fail_msg("%s backward: %s", e->layer, text);
  }
  sn_route_free(route);
  sn_net_free(net);
}

static void tensors_of_alexnet(void **state) {
  (void)state;
  sn_net *net = load_net("alexnet", 3);
  sn_route *route = make_route(net);
  assert_int_equal(route->n_tensors, 36);
  uint32_t y = find_tensor(route, "pool1.y"), dx = find_tensor(route, "pool1.dx");
  assert_int_equal(route->tensors[y].role, SN_VALUE);
  assert_int_equal(route->tensors[dx].role, SN_GRADIENT);
  assert_int_equal(route->tensors[y].bytes, 3 * 96 * 27 * 27 * 4);
  assert_int_equal(route->tensors[dx].bytes, 3 * 96 * 55 * 55 * 4);
  assert_int_equal(route->tensors[find_tensor(route, "conv1.dx")].bytes, 3 * 3 * 227 * 227 * 4);
  char cut[6];
  assert_string_equal(sn_tensor_name(route, y, cut, sizeof cut), "pool1");
  assert_string_equal(sn_pass_name(SN_BACKWARD), "backward");
  assert_string_equal(sn_pass_name(SN_UPDATE), "update");
  assert_string_equal(sn_role_name(SN_GRADIENT), "gradient");
  sn_route_free(route);
  sn_net_free(net);
}

/* Recursion would need a stack as deep as the chain. */
static void deep_chain(void **state) {
  (void)state;
  enum { DEPTH = 100000 };
  sn_err err = SN_ERR_INIT;
  sn_builder *b = sn_builder_new("deep", 1, 1, 1, 1, &err);
  uint32_t x = SN_DATA_LAYER;
  for (int i = 0; i < DEPTH; i++) x = sn_build_relu(b, x, "r%d", i);
  sn_build_softmax(b, x, "softmax");
  sn_net *net = sn_builder_finish(b, NULL, &err);
  must(&err);
  sn_route *route = make_route(net);
  assert_int_equal(route->first_backward, DEPTH + 1);
  for (uint32_t i = 0; i <= DEPTH; i++) assert_int_equal(route->forward_step[i + 1], i);
  sn_route_free(route);
  sn_net_free(net);
}

/* And wide: one output with 10^5 consumers. */
static void wide_fan(void **state) {
  (void)state;
  enum { WIDTH = 100000 };
  sn_err err = SN_ERR_INIT;
  sn_builder *b = sn_builder_new("wide", 1, 1, 1, 1, &err);
  uint32_t *branches = calloc(WIDTH, sizeof *branches);
  for (int i = 0; i < WIDTH; i++) branches[i] = sn_build_relu(b, SN_DATA_LAYER, "r%d", i);
  sn_build_softmax(b, sn_build_join(b, branches, WIDTH, "join"), "softmax");
  free(branches);
  sn_net *net = sn_builder_finish(b, NULL, &err);
  must(&err);
  sn_route *route = make_route(net);
  assert_int_equal(route->first_backward, WIDTH + 3);
  for (uint32_t i = 0; i < WIDTH; i++) assert_int_equal(route->forward_step[i + 1], i + 1);
  assert_int_equal(route->forward_step[WIDTH + 1], WIDTH + 1);
  sn_route_free(route);
  sn_net_free(net);
}

/* Outputs are within the net's limit of 4 PiB, but with the gradients they are not: 2^50 bytes each. */
static void too_large(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_builder *b = sn_builder_new("huge", 1u << 20, 1u << 10, 1u << 9, 1u << 9, &err);
  uint32_t x = sn_build_pool(b, SN_DATA_LAYER, (sn_pooling){.kernel = 1}, "pool1");
  x = sn_build_pool(b, x, (sn_pooling){.kernel = 1}, "pool2");
  x = sn_build_pool(b, x, (sn_pooling){.global = true}, "pool3");
  sn_build_softmax(b, x, "softmax");
  sn_net *net = sn_builder_finish(b, NULL, &err);
  must(&err);
  assert_null(sn_route_new(net, SN_DIALECT_SUPERNEURONS, SN_ORDER_ROUTE, &err));
  assert_int_equal(err.code, SN_BAD_INPUT);
  assert_string_equal(err.text,
                      "network huge at batch 1048576: its tensors together exceed 4 PiB; choose a smaller batch");
  sn_net_free(net);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nested_fans),    cmocka_unit_test(declaration_order),
      cmocka_unit_test(step_numbers),   cmocka_unit_test(every_net_is_consistent),
      cmocka_unit_test(gradient_rules), cmocka_unit_test(tensors_of_alexnet),
      cmocka_unit_test(deep_chain),     cmocka_unit_test(wide_fan),
      cmocka_unit_test(too_large),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
