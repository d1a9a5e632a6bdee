/* Weights that last as the CPU's kernels want them: trained so they are, to the bit, what they are where every step
 * reorders them, and so are gradients and what the optimizer keeps; whatever the threads. */
#include "exec/machine/cpu.h"
#include "tests/support/pipeline.h"

#include <stdlib.h>

enum { ITERATIONS = 3 };

static const sn_hyper hyper = {.seed = 3, .learning_rate = 0.01F, .optimizer = SN_OPTIMIZER_ADAM};

typedef struct training {
  pipeline p;
  sn_state *state;
  sn_batches *batches;
  const sn_batch *batch;
} training;

static training open_training(const char *spec) {
  sn_err err = SN_ERR_INIT;
  training t = {.p = pipeline_open(spec, 2)};
  t.state = sn_state_new(t.p.net, &hyper, &err);
  t.batches = sn_batches_synthetic(t.p.net, 1, &err);
  must(&err);
  t.batch = sn_batches_next(t.batches, &err);
  must(&err);
  return t;
}

static void close_training(training *t) {
  sn_batches_free(t->batches);
  sn_state_free(t->state);
  pipeline_close(&t->p);
}

static void play(training *t, sn_backend backend) {
  sn_err err = SN_ERR_INIT;
  sn_trace trace;
  uint64_t done = 0;
  sn_trace_init(&trace, t->p.plan, &err);
  must(&err);
  sn_play_many(t->p.plan, backend, &(sn_play_options){.iterations = ITERATIONS}, &trace, &done, &err);
  must(&err);
  assert_int_equal(done, ITERATIONS);
  sn_trace_clear(&trace);
}

/* Plain weights, reordered by each step. */
static training train_plain(const char *spec, unsigned threads) {
  sn_err err = SN_ERR_INIT;
  training t = open_training(spec);
  sn_cpu_kernels *kernels = sn_cpu_kernels_new(t.p.net, threads, false, &err);
  if (!kernels && err.code == SN_BAD_DEVICE) { /* a build without */
    close_training(&t);
    skip();
  }
  must(&err);
  sn_costs_set_layouts(t.p.costs, sn_cpu_kernels_layouts(kernels));
  for (uint32_t layer = 1; layer < t.p.net->n_layers; layer++)
    for (sn_pass pass = 0; pass < SN_PASSES; pass++)
      sn_costs_set_scratch(t.p.costs, layer, pass, sn_cpu_kernels_scratch(kernels, layer, pass, SN_STEP_WHOLE));
  pipeline_plan(&t.p, "liveness", SN_WORKSPACE_NONE, UINT64_MAX / 2);
  sn_cpu cpu = {.route = t.p.route, .kernels = kernels, .state = t.state, .batch = t.batch, .hyper = hyper};
  play(&t, sn_cpu_backend(&cpu));
  sn_cpu_kernels_free(kernels);
  return t;
}

static bool same(const training *a, const float *x, const float *y) {
  return memcmp(x, y, a->p.net->parameters * sizeof *x) == 0;
}

/* The machine's, and proof that they do not lie plain meanwhile. */
static training train_lasting(const char *spec, unsigned threads, const char *strategy) {
  sn_err err = SN_ERR_INIT;
  sn_machine machine;
  training t = open_training(spec), begin = open_training(spec);
  sn_machine_open_cpu(t.p.route, &(sn_machine_options){.hyper = hyper, .threads = threads, .check = true}, &machine,
                      &err);
  must(&err);
  machine.ops->offer(machine.self, t.p.costs, &err);
  must(&err);
  pipeline_plan(&t.p, strategy, SN_WORKSPACE_NONE, UINT64_MAX / 2);
  machine.ops->start(machine.self, t.state, &err);
  bool blocked = strstr(t.p.plan->layouts, "nChw") != NULL;
  assert_int_equal(same(&t, t.state->parameters, begin.state->parameters), !blocked);
  machine.ops->feed(machine.self, t.batch, &err);
  play(&t, machine.ops->backend(machine.self));
  for (int i = 0; i < 2; i++) machine.ops->fetch(machine.self, &err); /* the second has nothing to do */
  must(&err);
  machine.ops->close(machine.self);
  close_training(&begin);
  return t;
}

static void agrees(const char *spec) {
  static const char *const strategies[] = {"baseline", "liveness+offload+recompute=cost"};
  for (unsigned threads = 1; threads <= 2; threads++)
    for (size_t i = 0; i < sizeof strategies / sizeof strategies[0]; i++) {
      training plain = train_plain(spec, threads), lasting = train_lasting(spec, threads, strategies[i]);
      assert_true(same(&plain, plain.state->parameters, lasting.state->parameters));
      assert_true(same(&plain, plain.state->gradients, lasting.state->gradients));
      for (int s = 0; s < SN_OPTIMIZER_STATES; s++)
        assert_true(same(&plain, plain.state->states[s], lasting.state->states[s]));
      close_training(&plain);
      close_training(&lasting);
    }
}

static void bits_are_the_same(void **state) {
  (void)state;
  agrees("resnet_cifar:n=1");
  agrees("dcgan"); /* DECONV */
  agrees(SNSIM_SOURCE_DIR "/tests/nets/small_inception.json");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(bits_are_the_same)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
