/* Conformance of the CUDA machine on the fake GPU: whatever the strategy and the order in which the device runs what no
 * fence orders, three iterations give the same losses, gradients and parameters to the bit, they agree with the
 * reference kernels, and what was used is what was planned. And the proof that this sees something: a plan without one
 * of its fences gives another result for some order. */
#include "tests/exec/machine/cuda_fixture.h"

#include "sim/plan/check.h"

enum { ORDERS = 36 };

static void check_idle(const fake_cuda *fake) {
  assert_string_equal(fake->complaint, "");
  assert_int_equal(fake->live, 0);
  assert_int_equal(fake->used_bytes, 0);
}

/* The device holds the pool, what is trained, cuBLAS's workspace, and nothing else. */
static void check_memory(const sn_result *m) {
  enum { CUBLAS_BYTES = 8519680 };
  uint64_t known = m->reserved_pool_bytes + sn_persistent_total(&m->persistent) + CUBLAS_BYTES;
  if (m->peak_device_bytes != known || m->context_bytes != CUBLAS_BYTES)
    fail_msg("%s: %llu bytes in use, %llu planned", m->strategy, (unsigned long long)m->peak_device_bytes,
             (unsigned long long)known);
}

static void conforms(const char *name, uint32_t batch, uint32_t image) {
  fake_cuda *fake = cuda_fake();
  uint64_t pool_bytes = cuda_tight_pool(cuda_net(name, batch, image));
  sn_net *net = cuda_net(name, batch, image);
  sn_run *run = cuda_train(net, pool_bytes, fake);
  check_idle(fake);
  cuda_check_run(net, run);
  for (uint32_t i = 1; i < run->n_results; i += 2) check_memory(&run->results[i]);
  sn_run_free(run);
  sn_net_free(net);
}

static void strategies_agree(void **state) {
  (void)state;
  conforms("lenet", 2, 16);
  conforms("/tests/nets/small_alexnet.json", 3, 0);
  conforms("/models/examples/small_resnet.json", 2, 0);
  conforms("/tests/nets/small_inception.json", 2, 0);
  conforms("/tests/nets/small_densenet.json", 2, 0);
}

static void agrees(const char *name, uint32_t batch, sn_workspace workspace, double tolerance) {
  fake_cuda *fake = cuda_fake();
  cuda_lab lab = cuda_lab_open(cuda_net(name, batch, 0), "liveness+offload+recompute=cost", workspace, UINT64_MAX);
  cuda_agrees(&lab, 2, cuda_elements(tolerance));
  cuda_lab_close(&lab);
  check_idle(fake);
}

static void reference_agrees(void **state) {
  (void)state;
  for (sn_workspace w = SN_WORKSPACE_NONE; w < SN_WORKSPACE_COUNT; w++) {
    agrees("/tests/nets/small_alexnet.json", 5, w, 1e-4);
    agrees("/tests/nets/small_inception.json", 3, w, 1e-3);
  }
  agrees("lenet", 2, SN_WORKSPACE_MAX, 1e-4);
  cuda_lab lab = cuda_lab_open_proven(cuda_net("lenet", 2, 0), "liveness+offload+recompute=cost", SN_WORKSPACE_MAX);
  cuda_agrees(&lab, 2, cuda_elements(1e-4));
  cuda_lab_close(&lab);
  agrees("/models/examples/small_resnet.json", 3, SN_WORKSPACE_DYNAMIC, 1e-3);
  agrees("/tests/nets/small_densenet.json", 3, SN_WORKSPACE_DYNAMIC, 1e-3);
}

static void reference_agrees_by_sgd(void **state) {
  (void)state;
  fake_cuda *fake = cuda_fake();
  sn_net *net = cuda_net("/tests/nets/small_inception.json", 3, 0);
  cuda_lab lab = cuda_lab_open_by(SN_OPTIMIZER_SGD, net, "liveness+offload", SN_WORKSPACE_NONE, UINT64_MAX);
  assert_int_equal(lab.machine.info.persistent.optimizer_state, 0);
  assert_null(lab.state);
  cuda_agrees(&lab, 3, cuda_elements(1e-3));
  assert_null(lab.state->states[0]);
  cuda_lab_close(&lab);
  check_idle(fake);
}

static void adam_is_refused(void **state) {
  (void)state;
  fake_cuda *fake = cuda_fake();
  for (sn_optimizer o = SN_OPTIMIZER_ADAM; o <= SN_OPTIMIZER_ADAMW; o++) {
    sn_err err = SN_ERR_INIT;
    sn_net *net = cuda_net("lenet", 2, 0);
    sn_session_options options = cuda_options(0);
    options.machine.hyper.optimizer = o;
    assert_null(sn_session_open("lenet", net, &options, &err));
    assert_int_equal(err.code, SN_BAD_USAGE);
    assert_non_null(strstr(err.text, "does not train on a GPU"));
    sn_net_free(net);
  }
  check_idle(fake);
}

/* Whether some order of what is left unordered gives another result, or breaks the device. */
static bool is_noticed(fake_cuda *fake, cuda_lab *lab, const sn_plan *plan, uint64_t right) {
  for (uint64_t order = 0; order < ORDERS; order++) {
    fake->seed = order;
    if (cuda_lab_play(lab, plan) != right) return true;
  }
  return false;
}

/* The plan waits for nothing at instruction `at`: for a fence of its own lane. False where there is none yet. */
static bool lose_wait(const sn_plan *plan, uint32_t at) {
  for (uint32_t i = at; i-- > 0;) {
    if (plan->instrs[i].kind != SN_SIGNAL || plan->instrs[i].lane != plan->instrs[at].lane) continue;
    plan->instrs[at].id = plan->instrs[i].id;
    return true;
  }
  return false;
}

static void missing_fence_is_noticed(void **state) {
  (void)state;
  fake_cuda *fake = cuda_fake();
  cuda_lab lab = cuda_lab_open(cuda_net("/tests/nets/small_alexnet.json", 2, 0), "liveness+offload", SN_WORKSPACE_NONE,
                               UINT64_MAX);
  uint64_t right = cuda_lab_play(&lab, lab.plan);
  uint32_t needed = 0;
  assert_true(right != 0);
  assert_false(is_noticed(fake, &lab, lab.plan, right)); /* with all fences every order is as good */
  for (uint32_t i = 0; i < lab.plan->n_instrs; i++) {
    sn_instr wait = lab.plan->instrs[i];
    sn_err err = SN_ERR_INIT;
    if (wait.kind != SN_WAIT) continue;
    if (lose_wait(lab.plan, i) && sn_check(lab.plan, NULL, &err) != SN_OK) {
      needed++;
      if (!is_noticed(fake, &lab, lab.plan, right)) fail_msg("instruction %u is not missed: %s", i, err.text);
    }
    lab.plan->instrs[i] = wait;
  }
  assert_true(needed >= 8);
  cuda_lab_close(&lab);
  check_idle(fake);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(strategies_agree),         cmocka_unit_test(reference_agrees),
      cmocka_unit_test(reference_agrees_by_sgd),  cmocka_unit_test(adam_is_refused),
      cmocka_unit_test(missing_fence_is_noticed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
