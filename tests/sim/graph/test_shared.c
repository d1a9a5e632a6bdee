/* Parameters that several layers have (sn_attr.weights_of): counted once, their gradients added to one. */
#include "models/zoo/zoo.h"
#include "sim/graph/route.h"
#include "tests/support/named_layer.h"

#include <stdio.h>
#include <stdlib.h>

#define BEGIN "{\"snsim_net\":1,\"name\":\"t\",\"input\":[8,4,4],\"layers\":["
#define END   "{\"name\":\"f\",\"op\":\"FC\",\"channels\":3},{\"name\":\"s\",\"op\":\"SOFTMAX\"}]}"

static sn_net *read_net(const char *text, sn_err *err) {
  return sn_net_from_json("t.json", text, strlen(text), 2, err);
}

static void counted_once(void **state) {
  (void)state;
  static const struct {
    const char *text;
    uint64_t parameters;
  } nets[] = {
      {BEGIN "{\"name\":\"a\",\"op\":\"CONV\",\"channels\":8,\"kernel\":3,\"pad\":1},"
             "{\"name\":\"b\",\"op\":\"CONV\",\"channels\":8,\"kernel\":3,\"pad\":1,\"weights_of\":\"a\"}," END,
       8 * 72 + 8},
      {BEGIN
       "{\"name\":\"b\",\"op\":\"FC\",\"channels\":8,\"positions\":true,\"bias\":false,\"weights_of\":\"a\"}," /* comes
                                                                                                                  first
                                                                                                                */
       "{\"name\":\"a\",\"op\":\"FC\",\"channels\":8,\"positions\":true,\"bias\":false}," END,
       64},
      {BEGIN "{\"name\":\"a\",\"op\":\"BN\"},{\"name\":\"b\",\"op\":\"BN\",\"weights_of\":\"a\"}," END, 16},
      {BEGIN "{\"name\":\"a\",\"op\":\"LAYER_NORM\"},{\"name\":\"b\",\"op\":\"LAYER_NORM\",\"weights_of\":\"a\"}," END,
       16},
      {BEGIN "{\"name\":\"a\",\"op\":\"ACT\",\"mode\":\"prelu\",\"slopes\":8},"
             "{\"name\":\"b\",\"op\":\"ACT\",\"mode\":\"prelu\",\"slopes\":8,\"weights_of\":\"a\"}," END,
       8},
  };
  for (size_t i = 0; i < sizeof nets / sizeof nets[0]; i++) {
    sn_err err = SN_ERR_INIT;
    sn_net *net = read_net(nets[i].text, &err), *other = net ? sn_net_rebatch(net, 7, &err) : NULL;
    char *text = NULL;
    size_t bytes;
    if (!other) fail_msg("net %zu: %s", i, err.text);
    FILE *out = open_memstream(&text, &bytes);
    assert_non_null(out);
    assert_int_equal(sn_net_write_json(net, out, &err), SN_OK);
    fclose(out);
    sn_net *again = read_net(text, &err);
    if (!again) fail_msg("net %zu: %s", i, err.text);
    free(text);
    const uint64_t expected = nets[i].parameters + (8 * 16 * 3 + 3);
    assert_true(net->parameters == expected && other->parameters == expected && again->parameters == expected);
    assert_int_equal(named(net, "b")->parameters, 0);
    sn_net_free(again);
    sn_net_free(other);
    sn_net_free(net);
  }
}

static void unlike_layers_share_nothing(void **state) {
  (void)state;
  static const char *const nets[] = {
      BEGIN "{\"name\":\"a\",\"op\":\"CONV\",\"channels\":8,\"kernel\":3,\"pad\":1},"
            "{\"name\":\"b\",\"op\":\"CONV\",\"channels\":8,\"kernel\":1,\"weights_of\":\"a\"}," END,
      BEGIN "{\"name\":\"a\",\"op\":\"BN\"},{\"name\":\"b\",\"op\":\"LAYER_NORM\",\"weights_of\":\"a\"}," END,
      BEGIN "{\"name\":\"a\",\"op\":\"ACT\"},{\"name\":\"b\",\"op\":\"ACT\",\"weights_of\":\"a\"}," END,
      BEGIN "{\"name\":\"b\",\"op\":\"BN\",\"weights_of\":\"b\"}," END,
      BEGIN "{\"name\":\"a\",\"op\":\"BN\"},{\"name\":\"b\",\"op\":\"BN\",\"weights_of\":\"a\"},"
            "{\"name\":\"c\",\"op\":\"BN\",\"weights_of\":\"b\"}," END,
  };
  for (size_t i = 0; i < sizeof nets / sizeof nets[0]; i++) {
    sn_err err = SN_ERR_INIT;
    assert_null(read_net(nets[i], &err));
    if (!strstr(err.text, "the weights that it takes must be another layer's own"))
      fail_msg("net %zu: %s", i, err.text);
  }
}

/* Steps that add touch the gradients alone: what the layer's backward has read may go before them. */
static uint32_t adding_steps(const sn_route *route) {
  uint32_t count = 0;
  for (uint32_t s = 0; s < route->n_steps; s++) {
    const sn_step *step = &route->steps[s];
    if (step->kernel != SN_SHARED_SUM) continue;
    assert_int_equal(step->parameter, count++);
    for (uint32_t i = 0; i < step->n_accesses; i++) {
      sn_role role = route->tensors[route->accesses[step->first_access + i].tensor].role;
      assert_true(role == SN_PARAMETER_GRADIENT || role == SN_SCRATCH);
    }
  }
  return count;
}

/* The later use makes the gradients, of weights and bias; the earlier one adds its own to them, as PyTorch does. */
static void gradients_are_added(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_net *net =
      read_net(BEGIN "{\"name\":\"a\",\"op\":\"CONV\",\"channels\":8,\"kernel\":3,\"pad\":1},"
                     "{\"name\":\"b\",\"op\":\"CONV\",\"channels\":8,\"kernel\":3,\"pad\":1,\"weights_of\":\"a\"}," END,
               &err);
  if (!net) fail_msg("%s", err.text);
  sn_route *route = sn_route_new_for(net, SN_DIALECT_PYTORCH, SN_ORDER_ROUTE, (sn_iteration){0}, NULL, &err);
  if (!route) fail_msg("%s", err.text);
  uint64_t kept = 0, own = 0;
  uint32_t gradients = 0;
  for (uint32_t t = 0; t < route->n_tensors; t++) {
    const sn_tensor *tensor = &route->tensors[t];
    const char *layer = net->layers[tensor->layer].name;
    if (tensor->role == SN_PARAMETER_GRADIENT && strcmp(layer, "f") != 0) kept += tensor->bytes, gradients++;
    if (tensor->role == SN_SCRATCH && (strcmp(layer, "a") == 0 || strcmp(layer, "b") == 0)) own += tensor->bytes;
  }
  assert_int_equal(gradients, 2);
  assert_int_equal(adding_steps(route), 2);
  assert_int_equal(kept, (8 * 72 + 8) * 4);
  assert_int_equal(own, (8 * 72 + 8) * 4);
  sn_route_free(route);
  sn_net_free(net);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(counted_once),
      cmocka_unit_test(unlike_layers_share_nothing),
      cmocka_unit_test(gradients_are_added),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
