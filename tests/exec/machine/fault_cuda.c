/* Failing GPU: a training of every operator with copies both ways, in which call after call fails, work crashes on the
 * device, or the device is lost. Each time there must be an error that says so, everything must be taken down, and
 * where no call was left to fail the result must be the usual one. */
#include "tests/exec/kernel/op_net.h"
#include "tests/exec/machine/cuda_fixture.h"

static sn_status train(const sn_net *net, uint64_t *digest, sn_err *err) {
  sn_strategy strategy = {0};
  sn_session_options options = cuda_options(0);
  options.iterations = 2;
  sn_strategy_parse("liveness+offload+recompute=memory", &strategy, err);
  sn_session *session = sn_session_open("tiny", net, &options, err);
  if (session) sn_session_add(session, strategy, err);
  sn_run *run = session && err->code == SN_OK ? sn_session_take(session) : NULL;
  *digest = run ? run->results[0].digest : 0;
  sn_run_free(run);
  sn_session_close(session);
  return err->code;
}

/* What the error may be: never a bug of ours, and with words. */
static void check_error(const fake_cuda *fake, const sn_err *err) {
  if ((err->code != SN_BAD_DEVICE && err->code != SN_NO_MEMORY) || strlen(err->text) < 20)
    fail_msg("call %llu, fault %d: %s \"%s\"", (unsigned long long)fake->fail_at, (int)fake->fault,
             sn_status_name(err->code), err->text);
}

/* Some calls may fail without harm: those that only ask, and those that take down. The net is gone afterwards. */
static void fail_each_call(fake_cuda *fake, sn_net *net, fake_fault fault) {
  sn_err err = SN_ERR_INIT;
  uint64_t usual, digest, calls, errors = 0;
  train(net, &usual, &err);
  cuda_must(&err);
  assert_true(usual != 0);
  calls = fake->calls;
  assert_true(calls > 500);
  for (uint64_t n = 1; n <= calls; n++) {
    fake->seed = n;
    fake->calls = 0;
    fake->fail_at = n;
    fake->fault = fault;
    err = (sn_err)SN_ERR_INIT;
    train(net, &digest, &err);
    errors += err.code != SN_OK;
    if (err.code != SN_OK) check_error(fake, &err);
    if (err.code == SN_OK && digest != usual) fail_msg("call %llu failed unnoticed", (unsigned long long)n);
    if (fake->live != 0)
      fail_msg("call %llu failed: %llu objects left", (unsigned long long)n, (unsigned long long)fake->live);
    assert_string_equal(fake->complaint, "");
  }
  assert_true(errors * 2 > calls);
  sn_net_free(net);
}

static sn_net *tiny_net(void) {
  return cuda_net("/tests/nets/tiny.json", 2, 0);
}

static void failing_calls(void **state) {
  (void)state;
  fail_each_call(cuda_fake(), tiny_net(), FAKE_FAILS);
}

static void crashing_work(void **state) {
  (void)state;
  fail_each_call(cuda_fake(), tiny_net(), FAKE_CRASHES);
}

static void lost_device(void **state) {
  (void)state;
  fail_each_call(cuda_fake(), tiny_net(), FAKE_LOST);
}

/* Of CONVs and a JOIN over several chunks, the last one of fewer images. */
static void failing_chunks(void **state) {
  (void)state;
  for (fake_fault fault = FAKE_FAILS; fault <= FAKE_LOST; fault++)
    fail_each_call(cuda_fake_chunks(), op_net(SN_JOIN, (sn_attr){0}, (sn_shape){22, 7, 11, 11}, 3), fault);
}

static void text_names_the_place(void **state) {
  (void)state;
  fake_cuda *fake = cuda_fake();
  sn_err err = SN_ERR_INIT;
  sn_net *net = cuda_net("/tests/nets/tiny.json", 2, 0);
  bool conv = false, crash = false;
  uint64_t digest;
  for (fake_fault fault = FAKE_FAILS; fault <= FAKE_CRASHES; fault++)
    for (uint64_t n = 1; n < 1500 && !(fault == FAKE_FAILS ? conv : crash); n++) {
      fake->calls = 0;
      fake->fail_at = n;
      fake->fault = fault;
      err = (sn_err)SN_ERR_INIT;
      train(net, &digest, &err);
      conv = conv || strstr(err.text, "layer \"conv1\" forward (instruction 1): cudnnConvolutionForward failed: "
                                      "CUDNN_STATUS_EXECUTION_FAILED: unknown error");
      crash = crash || strstr(err.text, "of iteration 0 failed on the device");
    }
  assert_true(conv);
  assert_true(crash);
  sn_net_free(net);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(failing_calls),  cmocka_unit_test(crashing_work),        cmocka_unit_test(lost_device),
      cmocka_unit_test(failing_chunks), cmocka_unit_test(text_names_the_place),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
