/* Training that learns something: lenet on digits drawn for the purpose reads most of them right after a short while,
 * and every strategy gives the same losses and parameters to the bit. Skipped in a build without CPU kernels. */
#include "exec/session/session.h"
#include "models/zoo/zoo.h"
#include "tests/support/image_files.h"

enum { ITERATIONS = 60, BATCH = 32 };

static void draw(place *p) {
  char command[512];
  snprintf(command, sizeof command, "'%s/scripts/draw-digits' --count 1500 -o '%s'", SNSIM_SOURCE_DIR,
           path_of(p, "digits-images.idx"));
  assert_int_equal(system(command), 0);
}

static sn_run *train(const char *data, const sn_net *net) {
  sn_err err = SN_ERR_INIT;
  sn_session_options options = SN_SESSION_OPTIONS_INIT;
  options.iterations = ITERATIONS;
  options.data = data;
  options.machine.threads = 1; /* several would wait for each other busily where processors are shared */
  options.machine.hyper.learning_rate = 0.01f;
  sn_session *session = sn_session_open("lenet", net, &options, &err);
  if (err.code == SN_BAD_DEVICE) skip();
  for (uint32_t i = 0; i < SN_STRATEGY_DEFAULTS && err.code == SN_OK; i++)
    sn_session_add(session, sn_strategy_default(i), &err);
  sn_run *run = session ? sn_session_take(session) : NULL;
  if (err.code != SN_OK) fail_msg("%s", err.text);
  sn_session_close(session);
  return run;
}

static void every_strategy_learns_the_same(void **state) {
  sn_err err = SN_ERR_INIT;
  draw(*state);
  sn_net *net = sn_net_load("lenet", BATCH, 0, &err);
  assert_non_null(net);
  sn_run *run = train(path_of(*state, "digits-images.idx"), net);
  assert_string_equal(run->data, "digits-images.idx (1500 images, 10 classes)");
  assert_int_equal(run->n_results, SN_STRATEGY_DEFAULTS);
  for (uint32_t i = 0; i < run->n_results; i++) {
    const sn_result *r = &run->results[i];
    if (r->accuracy < 0.75) fail_msg("%s: %.1f %% right", r->strategy, 100 * r->accuracy);
    assert_true(r->digest != 0 && r->digest == run->results[0].digest);
  }
  print_message("%.1f %% right, loss %.4f\n", 100 * run->results[0].accuracy, run->results[0].loss);
  sn_run_free(run);
  sn_net_free(net);
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST_IN_PLACE(every_strategy_learns_the_same)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
