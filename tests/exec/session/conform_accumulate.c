/* Accumulated batches: an update of several small batches is that of one batch of all their images, for networks whose
 * images know nothing of each other (no batch norm, no dropout). Losses, gradients and weights differ by what the
 * order of float32 sums makes. Skipped in a build without CPU kernels. */
#include "exec/data/tensor_file.h"
#include "exec/session/session.h"
#include "models/zoo/zoo.h"
#include "tests/support/image_files.h"

#include <math.h>

enum { IMAGES = 384, BATCH = 48, ITERATIONS = 8 }; /* so that each epoch has whole updates of any size */

typedef struct training {
  double losses[ITERATIONS];
  char weights[PATH_ROOM], gradients[PATH_ROOM]; /* files */
  uint64_t digest;
} training;

static void keep_loss(void *user, uint64_t iteration, const sn_outcome *outcome, int64_t ns) {
  training *t = user;
  assert_true(iteration < ITERATIONS && ns > 0);
  t->losses[iteration] = outcome->loss;
}

static void train(training *t, place *p, const char *name, const char *strategy, sn_optimizer optimizer,
                  uint32_t batches) {
  snprintf(t->weights, PATH_ROOM, "%s/%s.weights", p->folder, name);
  snprintf(t->gradients, PATH_ROOM, "%s/%s.gradients", p->folder, name);
  sn_err err = SN_ERR_INIT;
  sn_strategy parsed;
  sn_session_options options = SN_SESSION_OPTIONS_INIT;
  options.iterations = ITERATIONS;
  options.data = path_of(p, "digits-images.idx");
  options.machine.threads = 1;
  options.machine.check = true;
  options.machine.accumulate = batches;
  options.machine.hyper.optimizer = optimizer;
  options.files = (sn_weight_files){.save = t->weights, .gradients = t->gradients};
  options.progress = keep_loss;
  options.user = t;
  sn_net *net = sn_net_load("lenet", BATCH / batches, 0, &err);
  assert_int_equal(sn_strategy_parse(strategy, &parsed, &err), SN_OK);
  sn_session *session = net ? sn_session_open("lenet", net, &options, &err) : NULL;
  if (err.code == SN_BAD_DEVICE) skip();
  if (session) sn_session_add(session, parsed, &err);
  if (err.code != SN_OK) fail_msg("%s", err.text);
  sn_run *run = sn_session_take(session);
  assert_int_equal(run->conditions.accumulate, batches);
  assert_true(run->results[0].digest != 0);
  t->digest = run->results[0].digest;
  sn_run_free(run);
  sn_session_close(session);
  sn_net_free(net);
}

/* Relative to the largest number of each tensor. */
static void check_near(const char *path, const char *wanted, double tolerance) {
  sn_err err = SN_ERR_INIT;
  sn__tensor_file a, b;
  double worst = 0;
  if (sn__tensor_file_open(path, &a, &err) || sn__tensor_file_open(wanted, &b, &err)) fail_msg("%s", err.text);
  assert_true(a.count == b.count && a.count > 0);
  for (uint32_t i = 0; i < a.count; i++) {
    const sn__tensor *of = &a.tensors[i], *same = sn__tensor_file_find(&b, of->name);
    assert_true(same && same->count == of->count);
    float *x = malloc(of->count * sizeof *x), *y = malloc(of->count * sizeof *y);
    if (sn__tensor_file_read(&a, of, x, &err) || sn__tensor_file_read(&b, same, y, &err)) fail_msg("%s", err.text);
    worst = fmax(worst, sn_relative_difference(y, x, of->count));
    free(x);
    free(y);
  }
  if (worst > tolerance) fail_msg("%s differs by %g", path, worst);
  print_message("%s: %.2g\n", path, worst);
  sn__tensor_file_close(&a);
  sn__tensor_file_close(&b);
}

static void compare(place *p, const char *strategy, sn_optimizer optimizer, uint32_t batches) {
  training whole, parts;
  train(&whole, p, "whole", strategy, optimizer, 1);
  train(&parts, p, "parts", strategy, optimizer, batches);
  for (int i = 0; i < ITERATIONS; i++)
    if (fabs(parts.losses[i] - whole.losses[i]) > 2e-5 * whole.losses[i])
      fail_msg("iteration %d: loss %.9g of %u batches, %.9g of one", i, parts.losses[i], batches, whole.losses[i]);
  assert_true(whole.losses[ITERATIONS - 1] != whole.losses[0] && parts.digest != whole.digest);
  check_near(parts.weights, whole.weights, 1e-4);
  check_near(parts.gradients, whole.gradients, 1e-5);
}

static void several_batches_are_one(void **state) {
  static const char *const strategies[] = {"baseline", "superneurons", "explicit", "pytorch",
                                           "pytorch+recompute=units"};
  char command[512];
  snprintf(command, sizeof command, "'%s/scripts/draw-digits' --count %d -o '%s'", SNSIM_SOURCE_DIR, IMAGES,
           path_of(*state, "digits-images.idx"));
  assert_int_equal(system(command), 0);
  for (size_t i = 0; i < sizeof strategies / sizeof *strategies; i++)
    compare(*state, strategies[i], SN_OPTIMIZER_MOMENTUM, 3);
  compare(*state, "pytorch", SN_OPTIMIZER_SGD, 48); /* images one by one */
  compare(*state, "liveness", SN_OPTIMIZER_ADAM, 4);
}

/* A GPU says that it does not, and what does. */
static void refused(void **state) {
  sn_err err = SN_ERR_INIT;
  sn_session_options options = SN_SESSION_OPTIONS_INIT;
  (void)state;
  options.backend = SN_EXEC_CUDA;
  options.machine.accumulate = 2;
  sn_net *net = sn_net_load("lenet", 4, 0, &err);
  assert_null(sn_session_open("lenet", net, &options, &err));
  assert_int_equal(err.code, SN_BAD_USAGE);
  assert_non_null(strstr(err.text, "added up on the CPU only"));
  sn_net_free(net);
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST_IN_PLACE(several_batches_are_one), cmocka_unit_test(refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
