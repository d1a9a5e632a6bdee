/* BN and the ReLU behind it in one kernel: the same bits as one after the other, wherever values lie, and which steps a
 * dialect spares. */
#include "exec/kernel/rectify.h"

#include "models/zoo/zoo.h"
#include "tests/exec/kernel/check_kernels.h"

/* A CONV, a BN, what stands behind it, and a CONV. */
static sn_net *normed_net(sn_act_mode mode, sn_shape data, uint32_t channels) {
  sn_builder *b = begin_net(data);
  uint32_t x = sn_build_conv(b, SN_DATA_LAYER, (sn_conv){.channels = channels, .kernel = 3, .pad = 1}, "in");
  x = sn_build_layer(b, SN_BN, &(sn_attr){0}, &x, 1, "bn");
  x = sn_build_layer(b, SN_ACT, &(sn_attr){.act = mode}, &x, 1, "act");
  x = sn_build_conv(b, x, (sn_conv){.channels = channels, .kernel = 1}, "out");
  sn_build_softmax(b, sn_build_fc(b, x, 2, "fc"), "softmax");
  return finish_net(b);
}

static float *copy_of(const float *data, uint64_t count) {
  float *copy = net_calloc(count, sizeof *copy);
  if (data) memcpy(copy, data, count * sizeof *copy);
  return copy;
}

/* Of a BN's backward: dx, then the gradients of gamma and beta. */
static float *backward(net_runner *r, uint32_t bn, float *dy, float ceiling, uint64_t count) {
  const uint64_t parameters = r->net->layers[bn].parameters;
  float *made = net_calloc(count + parameters, sizeof *made);
  sn_call call = net_runner_call(r, r->route->backward_step[bn]);
  call.dy[0] = dy;
  call.dx[0] = made;
  call.ceiling = ceiling;
  net_runner_run(r, &call);
  memcpy(made + count, call.gradients, parameters * sizeof *made);
  return made;
}

static void check_backward(net_runner *r, uint32_t bn, uint32_t act, float ceiling, uint64_t count) {
  const uint64_t all = count + r->net->layers[bn].parameters;
  uint64_t dice = 5, passed = 0;
  float *dy = copy_of(NULL, count);
  net_fill(dy, count, 1, &dice);
  float *cut = copy_of(dy, count);
  sn_call call = net_runner_call(r, r->route->backward_step[act]);
  call.dy[0] = call.dx[0] = cut;
  net_runner_run(r, &call);
  float *apart = backward(r, bn, cut, 0, count), *together = backward(r, bn, dy, ceiling, count),
        *twice = backward(r, bn, cut, ceiling, count), *uncut = backward(r, bn, dy, 0, count);
  for (uint64_t i = 0; i < count; i++) passed += cut[i] != 0;
  assert_true(passed > count / 4 && passed < count * 3 / 4);
  for (uint64_t i = 0; i < all; i++) assert_true(apart[i] == together[i]);
  assert_memory_equal(together, twice, all * sizeof *twice);
  assert_memory_not_equal(together, uncut, all * sizeof *uncut);
  float *const made[] = {dy, cut, apart, together, twice, uncut};
  for (size_t i = 0; i < sizeof made / sizeof made[0]; i++) free(made[i]);
}

static void check_forward(net_runner *r, uint32_t bn, uint32_t act, float ceiling, uint64_t count) {
  float *made = copy_of(NULL, count);
  sn_call call = net_runner_call(r, r->route->forward_step[bn]);
  call.y[0] = made;
  call.rerun = true;
  call.ceiling = ceiling;
  net_runner_run(r, &call);
  const float *apart = r->output[r->net->layers[act].first_output];
  for (uint64_t i = 0; i < count; i++) assert_true(made[i] == apart[i]);
  free(made);
}

/* The first values are as large as what is cut, so gamma is large where that is at 6. */
static void check_bits(sn_act_mode mode, sn_shape data, uint32_t channels, unsigned threads) {
  sn_net *net = normed_net(mode, data, channels);
  const uint32_t bn = op_net_layer(net, SN_BN), act = op_net_layer(net, SN_ACT);
  const float ceiling = mode == SN_ACT_RELU6 ? 6 : INFINITY;
  const uint64_t count = net->values[net->layers[bn].first_output].bytes / sizeof(float);
  sn_cpu_kernels *k = new_kernels(net, threads);
  net_runner r = net_runner_open(net, table_of(k), 9);
  for (uint32_t c = 0; c < channels; c++) r.layers[bn].parameters[c] = mode == SN_ACT_RELU6 ? 8 : 1;
  for (uint32_t step = 0; step < 3; step++) {
    sn_call call = net_runner_call(&r, step);
    net_runner_run(&r, &call);
  }
  check_forward(&r, bn, act, ceiling, count);
  check_backward(&r, bn, act, ceiling, count);
  net_runner_close(&r);
  sn_cpu_kernels_free(k);
  sn_net_free(net);
}

static void bits_are_those_of_two_kernels(void **state) {
  (void)state;
  for (sn_act_mode mode = SN_ACT_RELU; mode <= SN_ACT_RELU6; mode++)
    for (unsigned threads = 1; threads <= 2; threads++) {
      check_bits(mode, (sn_shape){4, 3, 9, 7}, 48, threads); /* blocked where the processor has blocks */
      check_bits(mode, (sn_shape){2, 3, 31, 33}, 32, threads);
      check_bits(mode, (sn_shape){3, 3, 9, 7}, 5, threads);
      check_bits(mode, (sn_shape){2, 3, 65, 63}, 7, threads);
    }
}

/* What a dialect's steps of the BN cut, and whether its ACT's are spared. */
static void check_dialect(const sn_net *net, sn_dialect_id dialect, float forward, float backward) {
  sn_err err = SN_ERR_INIT;
  sn_route *route = sn_route_new(net, dialect, SN_ORDER_ROUTE, &err);
  assert_non_null(route);
  const uint32_t bn = op_net_layer(net, SN_BN), act = op_net_layer(net, SN_ACT);
  const sn_step *steps = route->steps;
  const bool in_place = dialect == SN_DIALECT_SUPERNEURONS;
  assert_true(sn_rectify_ceiling(route, &steps[route->forward_step[bn]]) == forward);
  assert_true(sn_rectify_ceiling(route, &steps[route->backward_step[bn]]) == backward);
  assert_int_equal(sn_rectify_spares(route, &steps[route->forward_step[act]]), forward > 0);
  assert_int_equal(sn_rectify_spares(route, &steps[route->backward_step[act]]), backward > 0 && in_place);
  for (uint32_t i = 0; i < route->n_steps; i++)
    if (steps[i].pass == SN_UPDATE || (steps[i].layer != bn && steps[i].layer != act)) {
      assert_true(sn_rectify_ceiling(route, &steps[i]) == 0);
      assert_false(sn_rectify_spares(route, &steps[i]));
    }
  sn_route_free(route);
}

static void dialects_differ(void **state) {
  (void)state;
  sn_net *relu = normed_net(SN_ACT_RELU, (sn_shape){2, 3, 8, 8}, 4),
         *leaky = normed_net(SN_ACT_LEAKY, (sn_shape){2, 3, 8, 8}, 4);
  check_dialect(relu, SN_DIALECT_SUPERNEURONS, 0, INFINITY);
  check_dialect(relu, SN_DIALECT_EXPLICIT, 0, INFINITY);
  check_dialect(relu, SN_DIALECT_PYTORCH, INFINITY, INFINITY);
  for (sn_dialect_id d = SN_DIALECT_SUPERNEURONS; d <= SN_DIALECT_PYTORCH; d++) check_dialect(leaky, d, 0, 0);
  sn_net_free(relu);
  sn_net_free(leaky);
}

/* A BN that somebody else reads too, and a ReLU behind something else. */
static void others_are_left_alone(void **state) {
  (void)state;
  sn_builder *b = begin_net((sn_shape){2, 3, 8, 8});
  uint32_t x = sn_build_conv(b, SN_DATA_LAYER, (sn_conv){.channels = 4, .kernel = 3, .pad = 1}, "in");
  const uint32_t bn = sn_build_layer(b, SN_BN, &(sn_attr){0}, &x, 1, "bn");
  uint32_t both[] = {bn, sn_build_layer(b, SN_ACT, &(sn_attr){0}, &bn, 1, "act")};
  x = sn_build_layer(b, SN_JOIN, &(sn_attr){0}, both, 2, "join");
  x = sn_build_layer(b, SN_ACT, &(sn_attr){0}, &x, 1, "behind");
  sn_build_softmax(b, sn_build_fc(b, x, 2, "fc"), "softmax");
  sn_net *net = finish_net(b);
  for (sn_dialect_id d = SN_DIALECT_SUPERNEURONS; d <= SN_DIALECT_PYTORCH; d++) {
    sn_err err = SN_ERR_INIT;
    sn_route *route = sn_route_new(net, d, SN_ORDER_ROUTE, &err);
    assert_non_null(route);
    for (uint32_t i = 0; i < route->n_steps; i++) {
      assert_true(sn_rectify_ceiling(route, &route->steps[i]) == 0);
      assert_false(sn_rectify_spares(route, &route->steps[i]));
    }
    sn_route_free(route);
  }
  sn_net_free(net);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bits_are_those_of_two_kernels),
      cmocka_unit_test(dialects_differ),
      cmocka_unit_test(others_are_left_alone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
