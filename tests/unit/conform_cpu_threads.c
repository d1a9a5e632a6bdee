/* Conformance of the CPU back end: whatever the strategy, three training iterations give the same losses, gradients and
 * parameters as baseline, to the bit, and no byte outside the plan is touched.
 *
 * Copies start late at random, so that fences are needed; released bytes are poisoned; pools are small enough that the
 * cache evicts. One thread for the kernels: results then do not depend on how work is split. ThreadSanitizer runs this
 * as well. Without CPU kernels in the build everything here is skipped. */
#include "exec/session.h"
#include "models/zoo.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

enum { USUAL = SN_STRATEGY_DEFAULTS + 1 };

typedef struct subject {
  const char *net;
  uint32_t batch, image;
  uint64_t pool_bytes; /* on offer: too little for liveness alone */
  bool systems;        /* the published systems as well */
} subject;

static sn_strategy strategy_of(uint32_t i) {
  if (i < SN_STRATEGY_DEFAULTS) return sn_strategy_default(i);
  if (i >= USUAL) return sn_strategy_system(i - USUAL);
  return (sn_strategy){SN_LIVENESS_FULL, SN_OFFLOAD_CHECKPOINTS, SN_RECOMPUTE_COST};
}

static sn_measurement measure(const sn_net *net, sn_strategy strategy, uint64_t pool_bytes) {
  sn_err err = SN_ERR_INIT;
  sn_session_options options = SN_SESSION_OPTIONS_INIT;
  sn_measurement m;
  options.threads = 1;
  options.check = true;
  options.jitter_us = 300;
  options.pool_bytes = pool_bytes;
  if (sn_session_run(net, strategy, &options, &m, &err) == SN_OK) return m;
  if (err.code == SN_BAD_DEVICE) skip();
  char name[SN_STRATEGY_TEXT];
  fail_msg("%s: %s", sn_strategy_name(strategy, name), err.text);
  return m;
}

static void check_counts(const sn_measurement *m) {
  assert_int_equal(m->iterations, 3);
  assert_true(m->touched_pool_bytes <= m->planned_pool_bytes);
  assert_true(m->measured_out_bytes == m->planned_out_bytes && m->measured_in_bytes == m->planned_in_bytes);
  assert_int_equal(m->measured_live_tensors, m->planned_live_tensors);
}

static void conforms(const subject *s) {
  sn_err err = SN_ERR_INIT;
  char path[600];
  snprintf(path, sizeof path, "%s%s", s->net[0] == '/' ? SNSIM_SOURCE_DIR : "", s->net);
  sn_net *net = sn_net_load(path, s->batch, s->image, &err);
  if (!net) fail_msg("%s", err.text);
  sn_measurement first = measure(net, strategy_of(0), s->pool_bytes);
  uint64_t moved = 0, again = 0;
  assert_true(first.loss == first.loss && first.loss < 1e6);
  for (uint32_t i = 0; i < USUAL + (s->systems ? SN_STRATEGY_SYSTEMS : 0); i++) {
    sn_strategy strategy = strategy_of(i);
    sn_measurement m = measure(net, strategy, s->pool_bytes);
    char name[SN_STRATEGY_TEXT];
    check_counts(&m);
    if (m.digest != first.digest)
      fail_msg("%s under %s: loss %.9g, baseline %.9g", s->net, sn_strategy_name(strategy, name), m.loss, first.loss);
    if (strategy.offload == SN_OFFLOAD_CACHE) moved += m.planned_out_bytes;
    again += m.recomputed_layers;
  }
  assert_true(moved > 0 && again > 0); /* the cache had to work, and so had recomputation */
  sn_net_free(net);
}

static void lenet(void **state) {
  (void)state;
  conforms(&(subject){"lenet", 4, 0, 300 << 10, true});
}

static void alexnet(void **state) {
  (void)state;
  conforms(&(subject){"alexnet", 2, 67, 700 << 10, false});
}

static void resnet(void **state) {
  (void)state;
  conforms(&(subject){"/models/examples/small_resnet.json", 4, 0, 1 << 20, false});
}

static void inception(void **state) {
  (void)state;
  conforms(&(subject){"/tests/nets/small_inception.json", 4, 0, 1 << 20, true});
}

static void densenet(void **state) {
  (void)state;
  conforms(&(subject){"/tests/nets/small_densenet.json", 4, 0, 1 << 20, false});
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lenet),     cmocka_unit_test(alexnet),  cmocka_unit_test(resnet),
      cmocka_unit_test(inception), cmocka_unit_test(densenet),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
