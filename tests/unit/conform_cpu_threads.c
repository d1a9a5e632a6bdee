/* Conformance of the CPU back end: whatever the strategy, three training iterations give the same losses, gradients and
 * parameters as baseline, to the bit, and no byte outside the plan is touched.
 *
 * Copies start late at random, so that fences are needed; released bytes are poisoned; pools are small enough that the
 * cache evicts. One thread for the kernels: results then do not depend on how work is split. ThreadSanitizer runs this
 * as well. Without CPU kernels in the build everything here is skipped. */
#include "exec/session/session.h"
#include "models/zoo.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* sqrt, optimal and dtr; optimal of PyTorch's graph, and with offload. */
enum { STAGES = SN_STRATEGY_DEFAULTS + 1, WRAPS = STAGES + 3, SENDS, OWN, USUAL = OWN + SN_STRATEGY_EXECUTED };

typedef struct subject {
  const char *net;
  uint32_t batch, image;
  uint64_t pool_bytes; /* on offer: too little for liveness alone */
  bool systems;        /* the published systems as well */
  sn_optimizer optimizer;
  uint32_t accumulate; /* batches an update; 0: one */
} subject;

static uint32_t count_of(const subject *s) {
  return s->systems ? USUAL + SN_STRATEGY_SYSTEMS : USUAL;
}

static sn_strategy strategy_of(uint32_t i) {
  if (i < SN_STRATEGY_DEFAULTS) return sn_strategy_default(i);
  if (i >= USUAL) return sn_strategy_system(i - USUAL);
  if (i >= OWN) return sn_strategy_framework(i - OWN);
  sn_strategy optimal = {.liveness = SN_LIVENESS_FULL, .recompute = SN_RECOMPUTE_OPTIMAL};
  if (i == WRAPS) optimal.dialect = SN_DIALECT_PYTORCH;
  if (i == SENDS) optimal.offload = SN_OFFLOAD_PLANNED;
  if (i >= WRAPS) return optimal;
  if (i >= STAGES)
    return (sn_strategy){.liveness = SN_LIVENESS_FULL, .recompute = (sn_recompute)(SN_RECOMPUTE_SQRT + i - STAGES)};
  return (sn_strategy){.liveness = SN_LIVENESS_FULL, .offload = SN_OFFLOAD_CHECKPOINTS, .recompute = SN_RECOMPUTE_COST};
}

/* Predicted and measured results of every strategy, in turn. */
static sn_run *train(const sn_net *net, const subject *s) {
  sn_err err = SN_ERR_INIT;
  sn_session_options options = SN_SESSION_OPTIONS_INIT;
  options.machine.threads = 1;
  options.machine.check = true;
  options.machine.hyper.optimizer = s->optimizer;
  options.machine.accumulate = s->accumulate;
  options.machine.jitter_us = 300;
  options.pool_bytes = s->pool_bytes;
  options.predict = true;
  options.want_steps = true;
  sn_session *session = sn_session_open(net->name, net, &options, &err);
  if (err.code == SN_BAD_DEVICE) skip();
  for (uint32_t i = 0; session && i < count_of(s) && err.code == SN_OK; i++)
    sn_session_add(session, strategy_of(i), &err);
  sn_run *run = session ? sn_session_take(session) : NULL;
  if (err.code != SN_OK) fail_msg("%s", err.text);
  sn_session_close(session);
  return run;
}

/* What was executed is what was planned, in all and step by step. */
static void check_counts(const sn_result *planned, const sn_result *m) {
  assert_string_equal(planned->strategy, m->strategy);
  assert_string_equal(planned->source, "sim");
  assert_string_equal(m->source, "cpu");
  assert_int_equal(m->iterations, 3);
  assert_int_equal(m->reserved_pool_bytes, planned->pool_bytes);
  assert_int_equal(m->pool_bytes, planned->pool_bytes); /* touched to the last block, and no further */
  assert_int_equal(m->offload_bytes, planned->offload_bytes);
  assert_int_equal(m->prefetch_bytes, planned->prefetch_bytes);
  for (uint32_t i = 0; i < m->n_steps; i++) {
    assert_int_equal(m->steps[i].tensor_bytes, planned->steps[i].tensor_bytes);
    assert_int_equal(m->steps[i].live_tensors, planned->steps[i].live_tensors);
    assert_int_equal(m->steps[i].workspace_bytes, planned->steps[i].workspace_bytes);
  }
}

static void conforms(const subject *s) {
  sn_err err = SN_ERR_INIT;
  char path[600];
  snprintf(path, sizeof path, "%s%s", s->net[0] == '/' ? SNSIM_SOURCE_DIR : "", s->net);
  sn_net *net = sn_net_load(path, s->batch, s->image, &err);
  if (!net) fail_msg("%s", err.text);
  sn_run *run = train(net, s);
  uint64_t moved = 0, again = 0, staged = 0, wrapped = 0, sent = 0;
  double first = run->results[1].loss;
  assert_true(first == first && first < 1e6);
  assert_int_equal(run->n_results, 2 * count_of(s));
  for (uint32_t i = 0; i < count_of(s); i++) {
    const sn_result *planned = &run->results[2 * i], *m = planned + 1;
    check_counts(planned, m);
    if (m->digest != run->results[1].digest || m->digest == 0)
      fail_msg("%s under %s: loss %.9g, baseline %.9g", s->net, m->strategy, m->loss, first);
    if (i >= STAGES && i < STAGES + 2) staged += m->recomputed_layers;
    if (i == WRAPS) wrapped += m->recomputed_layers;
    if (i == SENDS) sent += m->offload_bytes;
    if (strategy_of(i).offload == SN_OFFLOAD_CACHE) moved += m->offload_bytes;
    again += m->recomputed_layers;
  }
  assert_string_equal(run->optimizer, sn_optimizer_name(s->optimizer));
  assert_int_equal(run->accumulate, s->accumulate > 1 ? s->accumulate : 1);
  assert_int_equal(run->results[1].persistent.optimizer_state, 4 * sn_optimizer_states(s->optimizer) * net->parameters);
  assert_true(moved > 0 && again > 0); /* the cache had to work, and so had recomputation */
  assert_true(wrapped > 0 || !strstr(s->net, "small_resnet"));
  assert_true(sent > 0); /* offload with recompute=optimal copies on all of them */
  assert_true(staged > 0 || strcmp(s->net, "lenet") == 0);
  sn_run_free(run);
  sn_net_free(net);
}

static void lenet(void **state) {
  (void)state;
  conforms(&(subject){"lenet", 4, 0, 300 << 10, true, 0, 0});
}

static void alexnet(void **state) {
  (void)state;
  conforms(&(subject){"alexnet", 2, 67, 700 << 10, false, 0, 0});
}

static void resnet(void **state) {
  (void)state;
  conforms(&(subject){"/models/examples/small_resnet.json", 4, 0, 1 << 20, false, 0, 0});
}

static void inception(void **state) {
  (void)state;
  conforms(&(subject){"/tests/nets/small_inception.json", 4, 0, 1 << 20, true, 0, 0});
}

static void densenet(void **state) {
  (void)state;
  conforms(&(subject){"/tests/nets/small_densenet.json", 4, 0, 1 << 20, false, 0, 0});
}

/* Transposed convolutions, activations of every kind. */
static void gan(void **state) {
  (void)state;
  conforms(&(subject){"/tests/nets/small_gan.json", 4, 0, 190 << 10, true, 0, 0});
}

/* Squeeze and excitation, ConvNeXt's block, a loss at every position. */
static void gated(void **state) {
  (void)state;
  conforms(&(subject){"/tests/nets/small_gated.json", 4, 0, 400 << 10, true, 0, 0});
}

/* A table that two layers use, attention fused and in parts, dropped and causal; a token ahead, rotated and grouped
 * heads. */
static void transformers(void **state) {
  (void)state;
  conforms(&(subject){"/tests/nets/small_gpt.json", 3, 0, 150 << 10, true, 0, 0});
  conforms(&(subject){"/tests/nets/small_vit.json", 3, 0, 120 << 10, true, 0, 0});
}

/* Products of matrices, softmaxes along axes, norms of groups, other sizes, dilated windows. */
static void matrices(void **state) {
  (void)state;
  conforms(&(subject){"/tests/nets/small_matrix.json", 4, 0, 300 << 10, true, 0, 0});
}

/* Numbers in another order and among others, several times over: in PyTorch's graph these are views, as their gradients
 * are, and gathered where they are read; elsewhere copies. */
static void views(void **state) {
  (void)state;
  conforms(&(subject){"/tests/nets/small_views.json", 3, 0, 175 << 10, true, 0, 0});
  conforms(
      &(subject){"/tests/nets/small_views.json", 1, 0, 80 << 10, false, 0, 0}); /* sums of one image are in place */
}

/* Attention within windows, moved and dropped, and with tables of distances; a table that three layers use. */
static void windows(void **state) {
  (void)state;
  conforms(&(subject){"/tests/nets/small_t5.json", 3, 0, 60 << 10, false, 0, 0});
  conforms(&(subject){"/tests/nets/small_swin.json", 3, 0, 330 << 10, true, 0, 0});
}

/* Whatever updates the parameters. */
static void optimizers(void **state) {
  (void)state;
  for (sn_optimizer o = SN_OPTIMIZER_SGD; o <= SN_OPTIMIZER_ADAMW; o++)
    conforms(&(subject){"lenet", 4, 0, 300 << 10, false, o, 0});
  conforms(&(subject){"/models/examples/small_resnet.json", 4, 0, 1 << 20, false, SN_OPTIMIZER_ADAM, 0});
}

/* Several batches an update, their gradients added up: in tensors of the graph that lie apart (PyTorch's), and beside
 * the graph. */
static void accumulated(void **state) {
  (void)state;
  conforms(&(subject){"lenet", 4, 0, 300 << 10, false, SN_OPTIMIZER_ADAM, 3});
  conforms(&(subject){"/tests/nets/small_inception.json", 4, 0, 1 << 20, false, 0, 2});
  conforms(&(subject){"/tests/nets/small_gan.json", 4, 0, 220 << 10, false, 0, 4});
  conforms(&(subject){"/tests/nets/small_gated.json", 4, 0, 440 << 10, false, 0, 3});
  conforms(&(subject){"/tests/nets/small_gpt.json", 3, 0, 170 << 10, false, SN_OPTIMIZER_ADAM, 3});
  conforms(&(subject){"/tests/nets/small_matrix.json", 4, 0, 320 << 10, false, 0, 2});
  conforms(&(subject){"/tests/nets/small_views.json", 3, 0, 195 << 10, false, 0, 2});
  conforms(&(subject){"/tests/nets/small_swin.json", 3, 0, 350 << 10, false, SN_OPTIMIZER_ADAM, 2});
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lenet),        cmocka_unit_test(alexnet),     cmocka_unit_test(resnet),
      cmocka_unit_test(inception),    cmocka_unit_test(densenet),    cmocka_unit_test(optimizers),
      cmocka_unit_test(gan),          cmocka_unit_test(accumulated), cmocka_unit_test(gated),
      cmocka_unit_test(transformers), cmocka_unit_test(matrices),    cmocka_unit_test(views),
      cmocka_unit_test(windows),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
