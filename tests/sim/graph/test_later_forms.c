/* Forms of operators that came later: an ACT with parameters (PReLU), a maximum POOL with dilation, a SLICE with steps
 * and one that is turned. What PyTorch's MemTracker counts of tests/nets/small_bent.json, which has them all (PyTorch
 * 2.15.0, bench/pytorch_memory.py), and what each dialect keeps. */
#include "models/zoo/zoo.h"
#include "sim/graph/route.h"
#include "tests/support/live_of.h"
#include "tests/support/step_text.h"

#include <inttypes.h>

#define BENT SNSIM_SOURCE_DIR "/tests/nets/small_bent.json"

typedef struct counted {
  sn_iteration iteration;
  sn_live live; /* parameters, buffers, gradients, optimizer, activations, temporary */
} counted;

static void memory_is_pytorch_s(void **state) {
  (void)state;
  static const counted rows[] = {
      {{.precision = SN_FP32}, {16300, 0, 14444, 16300, 3429384, 8663104}},
      {{.precision = SN_BF16}, {8150, 0, 7222, 8150, 4420228, 1759232}},
      {{.precision = SN_AMP_BF16}, {16300, 0, 14444, 16300, 4962568, 1759232}},
      {{.precision = SN_AMP_FP16}, {16300, 0, 14444, 16300, 4962568, 1759232}},
  };
  sn_net *net = load_net(BENT, 32);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    const sn_live live = live_of(BENT, net, "pytorch", rows[i].iteration), *want = &rows[i].live;
    check_live(&live, want);
  }
  sn_net_free(net);
}

/* The steps backward of a dialect that are of such layers. */
static void steps_are(sn_dialect_id dialect, const char *const *expected) {
  static const char *const forms[] = {"all", "turned", "columns", "pool", "each"};
  sn_err err = SN_ERR_INIT;
  sn_net *net = load_net(BENT, 4);
  sn_route *route = sn_route_new(net, dialect, SN_ORDER_ROUTE, &err);
  must(&err);
  uint32_t s = route->first_backward;
  for (int i = 0; i < 5; i++) {
    while (s < route->n_steps && strcmp(net->layers[route->steps[s].layer].name, forms[i]) != 0) s++;
    assert_true(s < route->n_steps);
    check_step(route, s, expected[i]);
  }
  sn_route_free(route);
  sn_net_free(net);
}

static void each_dialect_keeps_what_backward_reads(void **state) {
  (void)state;
  steps_are(SN_DIALECT_SUPERNEURONS,
            (const char *const[]){"all backward turned.y:r conv2.dx:r all.dx:w", "turned backward all.dx:r turned.dx:w",
                                  "columns backward turned.dx:r columns.dx:w",
                                  "pool backward each.y:r pool.y:r rows.dx:r pool.dx:w",
                                  "each backward conv1.y:r pool.dx:r each.dx:w"});
  steps_are(SN_DIALECT_EXPLICIT,
            (const char *const[]){"all backward conv2.dx:r turned.y:r all.dx:w", "turned backward all.dx:r turned.dx:w",
                                  "columns backward turned.dx:r columns.dx:w",
                                  "pool backward rows.dx:r each.y:r pool.y:r pool.dx:w",
                                  "each backward pool.dx:r conv1.y:r each.dx:w"});
  steps_are(SN_DIALECT_PYTORCH,
            (const char *const[]){"all backward conv2.dx:r turned.y:r all.scratch:w all.dx:w all.dw:w",
                                  "turned backward all.dx:r turned.dx:w", "columns backward turned.dx:r columns.dx:w",
                                  "pool backward rows.dx:r each.y:r pool.saved:r pool.dx:w",
                                  "each backward pool.dx:r conv1.y:r each.scratch:w each.dx:w each.dw:w"});
}

/* In PyTorch a slice with steps is a view, and flip() copies. */
static void what_is_turned_is_copied(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_net *net = load_net(BENT, 4);
  sn_route *route = sn_route_new(net, SN_DIALECT_PYTORCH, SN_ORDER_ROUTE, &err);
  must(&err);
  for (uint32_t i = 0; i < net->n_layers; i++)
    if (net->layers[i].op == SN_SLICE) assert_int_equal(route->forward_step[i] != SN_NONE, net->layers[i].attr->turned);
  sn_route_free(route);
  sn_net_free(net);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(memory_is_pytorch_s),
      cmocka_unit_test(each_dialect_keeps_what_backward_reads),
      cmocka_unit_test(what_is_turned_is_copied),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
