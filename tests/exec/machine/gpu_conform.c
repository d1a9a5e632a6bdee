/* Conformance of the CUDA machine on a real GPU: every strategy gives the baseline's losses, gradients and parameters
 * to the bit, twice over, and they agree with the reference kernels. Skipped where there is no module or no GPU. */
#include "tests/exec/machine/cuda_fixture.h"

static void conforms(const char *name, uint32_t batch, uint32_t image) {
  uint64_t pool_bytes = cuda_tight_pool(cuda_net(name, batch, image));
  sn_net *net = cuda_net(name, batch, image);
  sn_run *run = cuda_train(net, pool_bytes, NULL), *again = cuda_train(net, pool_bytes, NULL);
  cuda_check_run(net, run);
  for (uint32_t i = 0; i < run->n_results; i++) assert_true(run->results[i].digest == again->results[i].digest);
  sn_run_free(run);
  sn_run_free(again);
  sn_net_free(net);
}

static void strategies_agree(void **state) {
  (void)state;
  cuda_real();
  conforms("lenet", 64, 0);
  conforms("/tests/nets/small_alexnet.json", 16, 0);
  conforms("/models/examples/small_resnet.json", 16, 0);
  conforms("/tests/nets/small_inception.json", 16, 0);
  conforms("/tests/nets/small_densenet.json", 16, 0);
  conforms("alexnet", 32, 0);
}

/* Sums of float32 in another order; a ReLU that flips in these small networks is up to some per cent of a gradient. */
static void agrees(const char *name, sn_workspace workspace) {
  enum { BATCH = 4 };
  cuda_lab lab = cuda_lab_open_proven(cuda_net(name, BATCH, 0), "liveness+offload+recompute=cost", workspace);
  cuda_agrees(&lab, 1, cuda_norms(2e-2));
  cuda_lab_close(&lab);
}

static void reference_agrees(void **state) {
  (void)state;
  cuda_real();
  for (sn_workspace w = SN_WORKSPACE_NONE; w < SN_WORKSPACE_COUNT; w++) {
    agrees("lenet", w);
    agrees("/tests/nets/small_alexnet.json", w);
    agrees("/models/examples/small_resnet.json", w);
    agrees("/tests/nets/small_inception.json", w);
    agrees("/tests/nets/small_densenet.json", w);
  }
}

/* What the device holds is the pool, what is trained, and a context; and closing gives all but the context back. */
static void memory_is_as_planned(void **state) {
  (void)state;
  cuda_real();
  sn_err err = SN_ERR_INIT;
  cuda_lab lab = cuda_lab_open(cuda_net("alexnet", 64, 0), "liveness", SN_WORKSPACE_NONE, UINT64_MAX);
  uint64_t before, playing, after, large = UINT64_C(2) << 20; /* the driver hands memory out in such pieces */
  assert_true(cuda_lab_play(&lab, lab.plan) != 0);            /* kernels are loaded */
  lab.machine.ops->used_bytes(lab.machine.self, &before, &err);
  sn_backend backend = lab.machine.ops->backend(lab.machine.self);
  backend.ops->reserve(backend.self, lab.plan, &lab.trace, &err);
  cuda_must(&err);
  lab.machine.ops->used_bytes(lab.machine.self, &playing, &err);
  backend.ops->close(backend.self);
  lab.machine.ops->used_bytes(lab.machine.self, &after, &err);
  cuda_must(&err);
  print_message("pool %llu bytes planned, %llu measured\n", (unsigned long long)lab.plan->pool_bytes,
                (unsigned long long)(playing - before));
  assert_true(playing - before >= lab.plan->pool_bytes && playing - before <= lab.plan->pool_bytes + 4 * large);
  assert_true(after <= before + 4 * large);
  cuda_lab_close(&lab);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(strategies_agree),
      cmocka_unit_test(reference_agrees),
      cmocka_unit_test(memory_is_as_planned),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
