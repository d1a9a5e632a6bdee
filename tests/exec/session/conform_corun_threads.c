/* Conformance of operations side by side, on teams of one thread each: kernels of one thread give the same bits
 * wherever and whenever they run, so every policy's result must be that of liveness, one operation after another. Each
 * plan is also compared with itself, one operation after another. ThreadSanitizer runs this as well. */
#include "tests/exec/session/corun_training.h"

/* Four cores with two slots each, on which a second thread never pays. */
static sn_cores single(void) {
  sn_err err = SN_ERR_INIT;
  sn_device device;
  assert_int_equal(sn_device_load("manycore:cores=4,slots=2", &device, &err), SN_OK);
  for (sn_law_kind kind = 0; kind < SN_LAW_KINDS; kind++) device.cores.law[kind].thread_ns = 1e8;
  return device.cores;
}

static const char all[] = "liveness liveness+corun=s12 liveness+corun=s123 liveness+corun=s1234 liveness+corun=path "
                          "liveness+corun=4x1 liveness+recompute=speed+corun=path ";
static const char some[] = "liveness liveness+corun=s1234 liveness+corun=path ";

static void conforms(const char *name, uint32_t batch, uint32_t image, const char *strategies) {
  sn_cores cores = single();
  sn_net *net = load_net(name, batch, image);
  seen s = {0};
  sn_run *run = train(net, &cores, strategies, &s);
  check_run(run);
  assert_true(run->n_results >= 6);
  for (uint32_t i = 1; i < run->n_results; i += 2)
    if (run->results[i].digest != run->results[1].digest)
      fail_msg("%s under %s: another result than liveness", name, run->results[i].strategy);
  assert_int_equal(s.threads, 1);
  assert_true(s.lanes > 1 && s.parts > 0);
  sn_run_free(run);
  sn_net_free(net);
}

static void lenet(void **state) {
  (void)state;
  conforms("lenet", 4, 0, all);
}

static void alexnet(void **state) {
  (void)state;
  conforms("alexnet", 2, 67, some);
}

static void resnet(void **state) {
  (void)state;
  conforms("/models/examples/small_resnet.json", 4, 0, some);
}

static void inception(void **state) {
  (void)state;
  conforms("/tests/nets/small_inception.json", 4, 0, all);
}

static void densenet(void **state) {
  (void)state;
  conforms("/tests/nets/small_densenet.json", 4, 0, some);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lenet),     cmocka_unit_test(alexnet),  cmocka_unit_test(resnet),
      cmocka_unit_test(inception), cmocka_unit_test(densenet),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
