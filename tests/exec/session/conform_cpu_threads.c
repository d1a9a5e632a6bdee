/* Conformance of the CPU back end: whatever the strategy, three training iterations give the same losses, gradients and
 * parameters as baseline, to the bit, and no byte outside the plan is touched.
 *
 * Copies start late at random, so that fences are needed; released bytes are poisoned; pools are small enough that the
 * cache evicts. One thread for the kernels: results then do not depend on how work is split. ThreadSanitizer runs this
 * as well. Without CPU kernels in the build everything here is skipped. */
#include "exec/data/tensor_file.h"
#include "exec/session/session.h"
#include "models/zoo/zoo.h"
#include "tests/support/sanitized.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Of what trains a part of a network: PyTorch's strategies, and optimal. */
enum { PARTLY = SN_STRATEGY_PYTORCH + 1 };

/* sqrt, optimal and dtr; optimal of PyTorch's graph, and with offload. */
enum { STAGES = SN_STRATEGY_DEFAULTS + 1, WRAPS = STAGES + 3, SENDS, OWN, USUAL = OWN + SN_STRATEGY_EXECUTED };

typedef struct subject {
  const char *net;
  uint32_t batch, image;
  uint64_t pool_bytes; /* on offer: too little for liveness alone */
  bool systems;        /* the published systems as well */
  sn_optimizer optimizer;
  uint32_t accumulate; /* batches an update; 0: one */
  const char *freeze;  /* NULL: nothing, but of a network with adapters all else */
} subject;

static bool trains_a_part(const subject *s) {
  return s->freeze || strstr(s->net, "+lora=");
}

static uint32_t count_of(const subject *s) {
  if (trains_a_part(s)) return PARTLY;
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

static sn_strategy strategy_for(const subject *s, uint32_t i) {
  if (!trains_a_part(s)) return strategy_of(i);
  return i < SN_STRATEGY_PYTORCH ? sn_strategy_framework(i) : strategy_of(WRAPS);
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
  options.freeze = s->freeze;
  options.predict = true;
  options.want_steps = true;
  sn_session *session = sn_session_open(net->name, net, &options, &err);
  if (err.code == SN_BAD_DEVICE) skip();
  for (uint32_t i = 0; session && i < count_of(s) && err.code == SN_OK; i++)
    sn_session_add(session, strategy_for(s, i), &err);
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

/* Of all strategies as of the first. */
static void check_equal(const subject *s, const sn_run *run) {
  const double first = run->results[1].loss;
  assert_true(first == first && first < 1e6);
  assert_int_equal(run->n_results, 2 * count_of(s));
  for (uint32_t i = 0; i < count_of(s); i++) {
    const sn_result *planned = &run->results[2 * i], *m = planned + 1;
    check_counts(planned, m);
    if (m->digest != run->results[1].digest || m->digest == 0)
      fail_msg("%s under %s: loss %.9g, the first %.9g", s->net, m->strategy, m->loss, first);
  }
}

static sn_net *load(const subject *s) {
  sn_err err = SN_ERR_INIT;
  char path[600];
  snprintf(path, sizeof path, "%s%s", s->net[0] == '/' ? SNSIM_SOURCE_DIR : "", s->net);
  sn_net *net = sn_net_load(path, s->batch, s->image, &err);
  if (!net) fail_msg("%s", err.text);
  return net;
}

static void conforms(const subject *s) {
  sn_net *net = load(s);
  sn_run *run = train(net, s);
  uint64_t moved = 0, again = 0, staged = 0, wrapped = 0, sent = 0;
  check_equal(s, run);
  for (uint32_t i = 0; i < count_of(s); i++) {
    const sn_result *m = &run->results[2 * i + 1];
    if (i >= STAGES && i < STAGES + 2) staged += m->recomputed_layers;
    if (i == WRAPS) wrapped += m->recomputed_layers;
    if (i == SENDS) sent += m->offload_bytes;
    if (strategy_of(i).offload == SN_OFFLOAD_CACHE) moved += m->offload_bytes;
    again += m->recomputed_layers;
  }
  assert_string_equal(run->conditions.optimizer, sn_optimizer_name(s->optimizer));
  assert_int_equal(run->conditions.accumulate, s->accumulate > 1 ? s->accumulate : 1);
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
  conforms(&(subject){"lenet", 4, 0, 300 << 10, true, 0, 0, NULL});
}

static void alexnet(void **state) {
  (void)state;
  const char *net = SANITIZED ? "/tests/nets/narrow_alexnet.json" : "alexnet"; /* of fewer parameters */
  conforms(&(subject){net, 2, SANITIZED ? 0 : 67, 700 << 10, false, 0, 0, NULL});
}

static void resnet(void **state) {
  (void)state;
  conforms(&(subject){"/models/examples/small_resnet.json", 4, 0, 1 << 20, false, 0, 0, NULL});
}

static void inception(void **state) {
  (void)state;
  conforms(&(subject){"/tests/nets/small_inception.json", 4, 0, 1 << 20, true, 0, 0, NULL});
}

static void densenet(void **state) {
  (void)state;
  conforms(&(subject){"/tests/nets/small_densenet.json", 4, 0, 1 << 20, false, 0, 0, NULL});
}

/* Transposed convolutions, activations of every kind. */
static void gan(void **state) {
  (void)state;
  conforms(&(subject){"/tests/nets/small_gan.json", 4, 0, 190 << 10, true, 0, 0, NULL});
}

/* Squeeze and excitation, ConvNeXt's block, a loss at every position. */
static void gated(void **state) {
  (void)state;
  conforms(&(subject){"/tests/nets/small_gated.json", 4, 0, 400 << 10, true, 0, 0, NULL});
}

/* A table that two layers use, attention fused and in parts, dropped and causal; a token ahead, rotated and grouped
 * heads. */
static void transformers(void **state) {
  (void)state;
  conforms(&(subject){"/tests/nets/small_gpt.json", 3, 0, 150 << 10, true, 0, 0, NULL});
  conforms(&(subject){"/tests/nets/small_vit.json", 3, 0, 120 << 10, true, 0, 0, NULL});
}

/* Products of matrices, softmaxes along axes, norms of groups, other sizes, dilated windows. */
static void matrices(void **state) {
  (void)state;
  conforms(&(subject){"/tests/nets/small_matrix.json", 4, 0, 300 << 10, true, 0, 0, NULL});
}

/* Numbers in another order and among others, several times over: in PyTorch's graph these are views, as their gradients
 * are, and gathered where they are read; elsewhere copies. */
static void views(void **state) {
  (void)state;
  conforms(&(subject){"/tests/nets/small_views.json", 3, 0, 175 << 10, true, 0, 0, NULL});
  conforms(&(subject){"/tests/nets/small_views.json", 1, 0, 80 << 10, false, 0, 0,
                      NULL}); /* sums of one image are in place */
}

/* Attention within windows, moved and dropped, and with tables of distances; a table that three layers use. */
static void windows(void **state) {
  (void)state;
  conforms(&(subject){"/tests/nets/small_t5.json", 3, 0, 60 << 10, false, 0, 0, NULL});
  conforms(&(subject){"/tests/nets/small_swin.json", 3, 0, 330 << 10, true, 0, 0, NULL});
}

/* Activations with parameters, and windows with holes. */
static void bent(void **state) {
  (void)state;
  conforms(&(subject){"/tests/nets/small_prelu.json", 4, 0, 360 << 10, true, 0, 0, NULL});
  conforms(&(subject){"/tests/nets/small_prelu.json", 3, 0, 310 << 10, false, SN_OPTIMIZER_ADAM, 3, NULL});
}

/* Volumes: windows along planes, residuals and skips. */
static void volumes(void **state) {
  (void)state;
  conforms(&(subject){"/tests/nets/small_volumes.json", 3, 0, 580 << 10, true, 0, 0, NULL});
  conforms(&(subject){"/models/examples/unet3d.json", 1, 4, 2100 << 10, false, SN_OPTIMIZER_ADAM, 0, NULL});
}

/* A mean square for its loss: PyTorch's graph makes the differences again that others keep. */
static void squares(void **state) {
  (void)state;
  conforms(&(subject){"/tests/nets/small_autoencoder.json", 4, 0, 300 << 10, true, 0, 0, NULL});
  conforms(&(subject){"/tests/nets/small_autoencoder.json", 2, 0, 240 << 10, false, SN_OPTIMIZER_ADAM, 3, NULL});
}

/* A float for each parameter tensor that is trained. */
static uint64_t counter_bytes(const subject *s, const sn_net *net) {
  uint64_t tensors = 0, bytes[SN_PARAMETER_TENSORS];
  for (uint32_t i = 0; i < net->n_layers; i++)
    if (sn_freeze_trains(s->freeze, &net->layers[i])) tensors += sn_parameter_tensors(&net->layers[i], bytes);
  return sn_optimizer_counts(s->optimizer) ? 4 * tensors : 0;
}

/* What is trained is less than all, and the optimizer keeps no more. Returns what was re-run. */
static uint64_t conforms_partly(const subject *s) {
  sn_net *net = load(s);
  sn_run *run = train(net, s);
  uint64_t sent = 0, again = 0;
  check_equal(s, run);
  for (uint32_t i = 0; i < count_of(s); i++) {
    sent += run->results[2 * i + 1].offload_bytes;
    again += run->results[2 * i + 1].recomputed_layers;
  }
  const uint64_t trained = sn_freeze_trained(s->freeze, net);
  assert_true(trained > 0 && trained < net->parameters && sent > 0);
  assert_string_equal(run->conditions.freeze, s->freeze ? s->freeze : "");
  assert_int_equal(run->results[1].persistent.optimizer_state,
                   4 * sn_optimizer_states(s->optimizer) * trained + counter_bytes(s, net));
  sn_run_free(run);
  sn_net_free(net);
  return again;
}

/* Gradients that one iteration leaves, which changes nothing. */
static void leave_gradients(const char *spec, uint32_t batch, const char *freeze, const char *path) {
  sn_err err = SN_ERR_INIT;
  const subject s = {.net = spec, .batch = batch};
  sn_net *net = load(&s);
  sn_session_options options = SN_SESSION_OPTIONS_INIT;
  options.machine.threads = 1;
  options.machine.hyper.learning_rate = 0;
  options.iterations = 1;
  options.freeze = freeze;
  options.files.gradients = path;
  sn_session *session = sn_session_open(net->name, net, &options, &err);
  if (err.code == SN_BAD_DEVICE) skip();
  if (!session || sn_session_add(session, sn_strategy_framework(0), &err) != SN_OK) fail_msg("%s", err.text);
  sn_session_close(session);
  sn_net_free(net);
}

/* Each gradient of what is trained is what it is where all is. */
static void check_same_gradients(const char *spec, uint32_t batch, const char *freeze) {
  sn_err err = SN_ERR_INIT;
  sn__tensor_file all, some;
  leave_gradients(spec, batch, NULL, "all.safetensors");
  leave_gradients(spec, batch, freeze, "some.safetensors");
  assert_int_equal(sn__tensor_file_open("all.safetensors", &all, &err), SN_OK);
  assert_int_equal(sn__tensor_file_open("some.safetensors", &some, &err), SN_OK);
  assert_true(some.count > 0 && some.count < all.count);
  for (uint32_t i = 0; i < some.count; i++) {
    const sn__tensor *a = &some.tensors[i], *b = sn__tensor_file_find(&all, a->name);
    assert_non_null(b);
    const size_t bytes = a->count * sizeof(float);
    assert_int_equal(a->count, b->count);
    float *x = malloc(bytes), *y = malloc(bytes);
    assert_int_equal(sn__tensor_file_read(&some, a, x, &err), SN_OK);
    assert_int_equal(sn__tensor_file_read(&all, b, y, &err), SN_OK);
    if (memcmp(x, y, bytes) != 0) fail_msg("%s with %s frozen: %s is another", spec, freeze, a->name);
    free(x);
    free(y);
  }
  sn__tensor_file_close(&all);
  sn__tensor_file_close(&some);
  remove("all.safetensors");
  remove("some.safetensors");
}

/* Adapters beside frozen layers: fused attention and attention in parts, grouped heads, a table that two layers use. */
static void adapters(void **state) {
  (void)state;
  uint64_t again = 0;
  again +=
      conforms_partly(&(subject){"/tests/nets/small_gpt.json+lora=4", 3, 0, 0, false, SN_OPTIMIZER_ADAMW, 0, NULL});
  again += conforms_partly(&(subject){"/tests/nets/small_gpt.json+lora=2", 3, 0, 0, false, 0, 3, NULL});
  again += conforms_partly(&(subject){"/tests/nets/small_vit.json+lora=3", 3, 0, 0, false, 0, 0, NULL});
  again += conforms_partly(&(subject){"/tests/nets/small_swin.json+lora=2", 3, 0, 0, false, 0, 2, NULL});
  assert_true(again > 0);
}

/* Frozen layers of every kind, ahead of what is trained and between. */
static void frozen(void **state) {
  static const struct {
    const char *net, *freeze;
  } cases[] = {
      {"/tests/nets/small_gan.json", "deconv2,bn*,conv1"},
      {"/tests/nets/small_gated.json", "stem,bn1,reduce,norm*,scale,up"},
      {"/tests/nets/small_gpt.json", "wte,wpe,h1_*"},
      {"/tests/nets/small_matrix.json", "stem,down,gn*,q,v,deconv"},
      {"/tests/nets/small_views.json", "bn,conv2,positions,token"},
      {"/tests/nets/small_swin.json", "norm*,windows,near,k2,proj1"},
      {"/tests/nets/small_t5.json", "shared,norm1,q,own"},
      {"/tests/nets/small_vit.json", "patches,class,rows,segments,ln1,qkv,proj,norm,q,v"},
      {"/models/examples/small_resnet.json", "*conv*"},
      {"/tests/nets/small_bent.json", "conv1,all"},
      {"/tests/nets/small_volumes.json", "stem,bn1,bent1,norm,up"},
      {"/tests/nets/small_prelu.json", "stem,bent0,bent3,conv3"},
  };
  (void)state;
  uint64_t again = 0;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    again += conforms_partly(&(subject){cases[i].net, 3, 0, 0, false, 0, (uint32_t)i % 2 ? 2 : 0, cases[i].freeze});
    check_same_gradients(cases[i].net, 3, cases[i].freeze);
  }
  assert_true(again > 0);
}

/* Whatever updates the parameters. */
static void optimizers(void **state) {
  (void)state;
  for (sn_optimizer o = SN_OPTIMIZER_SGD; o <= SN_OPTIMIZER_ADAMW; o++)
    conforms(&(subject){"lenet", 4, 0, 300 << 10, false, o, 0, NULL});
  conforms(&(subject){"/models/examples/small_resnet.json", 4, 0, 1 << 20, false, SN_OPTIMIZER_ADAM, 0, NULL});
}

/* Several batches an update, their gradients added up: in tensors of the graph that lie apart (PyTorch's), and beside
 * the graph. */
static void accumulated(void **state) {
  (void)state;
  conforms(&(subject){"lenet", 4, 0, 300 << 10, false, SN_OPTIMIZER_ADAM, 3, NULL});
  conforms(&(subject){"/tests/nets/small_inception.json", 4, 0, 1 << 20, false, 0, 2, NULL});
  conforms(&(subject){"/tests/nets/small_gan.json", 4, 0, 220 << 10, false, 0, 4, NULL});
  conforms(&(subject){"/tests/nets/small_gated.json", 4, 0, 440 << 10, false, 0, 3, NULL});
  conforms(&(subject){"/tests/nets/small_gpt.json", 3, 0, 170 << 10, false, SN_OPTIMIZER_ADAM, 3, NULL});
  conforms(&(subject){"/tests/nets/small_matrix.json", 4, 0, 320 << 10, false, 0, 2, NULL});
  conforms(&(subject){"/tests/nets/small_views.json", 3, 0, 195 << 10, false, 0, 2, NULL});
  conforms(&(subject){"/tests/nets/small_swin.json", 3, 0, 350 << 10, false, SN_OPTIMIZER_ADAM, 2, NULL});
}

/* `conform_cpu_threads 2/4` runs the second quarter, so that ThreadSanitizer has parts to run side by side. */
int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lenet),        cmocka_unit_test(alexnet),     cmocka_unit_test(resnet),
      cmocka_unit_test(inception),    cmocka_unit_test(densenet),    cmocka_unit_test(optimizers),
      cmocka_unit_test(gan),          cmocka_unit_test(accumulated), cmocka_unit_test(gated),
      cmocka_unit_test(transformers), cmocka_unit_test(matrices),    cmocka_unit_test(views),
      cmocka_unit_test(windows),      cmocka_unit_test(squares),     cmocka_unit_test(adapters),
      cmocka_unit_test(frozen),       cmocka_unit_test(bent),        cmocka_unit_test(volumes),
  };
  enum { TESTS = sizeof tests / sizeof *tests };
  struct CMUnitTest chosen[TESTS];
  size_t n = 0;
  unsigned part = 1, parts = 1;
  if (argc > 1 && (sscanf(argv[1], "%u/%u", &part, &parts) != 2 || part < 1 || part > parts)) return 2;
  for (size_t i = part - 1; i < TESTS; i += parts) chosen[n++] = tests[i];
  return _cmocka_run_group_tests("conform_cpu_threads", chosen, n, NULL, NULL);
}
