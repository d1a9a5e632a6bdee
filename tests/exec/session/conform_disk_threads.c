/* Conformance of a CPU that sends tensors to a disk: losses, gradients and parameters are those of sending them to
 * memory, and of baseline, to the bit; as much is copied and used as was planned; and a disk that fails ends the
 * training with the reason, keeping what was trained.
 *
 * Copies start late at random, so that fences are needed. ThreadSanitizer runs this as well. Without CPU kernels in the
 * build everything here is skipped. */
#include "exec/session/session.h"
#include "models/zoo/zoo.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct subject {
  const char *net;
  uint32_t batch;
  uint64_t pool_bytes; /* too little for the cache to keep all */
  uint32_t accumulate;
} subject;

static const char *const strategies[] = {
    "baseline", "liveness+offload", "liveness+cache", "superneurons", "liveness+offload+recompute=optimal", "vdnn-all"};

enum { STRATEGIES = sizeof strategies / sizeof strategies[0], SENDING = 1 };

static sn_net *load(const char *name, uint32_t batch) {
  sn_err err = SN_ERR_INIT;
  char path[600];
  snprintf(path, sizeof path, "%s%s", name[0] == '/' ? SNSIM_SOURCE_DIR : "", name);
  sn_net *net = sn_net_load(path, batch, 0, &err);
  if (!net) fail_msg("%s", err.text);
  return net;
}

static sn_session_options options_of(const subject *s, sn_external external) {
  sn_session_options options = SN_SESSION_OPTIONS_INIT;
  options.machine.threads = 1;
  options.machine.check = true;
  options.machine.jitter_us = 300;
  options.machine.accumulate = s->accumulate;
  options.pool_bytes = s->pool_bytes;
  options.external = external;
  options.predict = true;
  return options;
}

static sn_strategy strategy_of(const char *name) {
  sn_err err = SN_ERR_INIT;
  sn_strategy strategy;
  if (sn_strategy_parse(name, &strategy, &err) != SN_OK) fail_msg("%s", err.text);
  return strategy;
}

/* Predicted and measured results in turn. */
static sn_run *train(const sn_net *net, const subject *s, sn_external external) {
  sn_err err = SN_ERR_INIT;
  const sn_session_options options = options_of(s, external);
  sn_session *session = sn_session_open(net->name, net, &options, &err);
  if (err.code == SN_BAD_DEVICE) skip();
  for (uint32_t i = 0; session && i < STRATEGIES && err.code == SN_OK; i++)
    sn_session_add(session, strategy_of(strategies[i]), &err);
  if (err.code != SN_OK) fail_msg("%s", err.text);
  sn_run *run = sn_session_take(session);
  sn_session_close(session);
  return run;
}

static void conforms(const subject *s) {
  sn_net *net = load(s->net, s->batch);
  sn_run *memory = train(net, s, SN_EXTERNAL_HOST), *disk = train(net, s, SN_EXTERNAL_DISK);
  assert_string_equal(memory->conditions.external, "host");
  assert_string_equal(disk->conditions.external, "disk");
  assert_int_equal(disk->n_results, 2 * STRATEGIES);
  for (uint32_t i = 0; i < disk->n_results; i += 2) {
    const sn_result *planned = &disk->results[i], *m = planned + 1;
    assert_true(m->digest != 0 && m->digest == disk->results[1].digest);
    assert_true(m->digest == memory->results[i + 1].digest);
    assert_int_equal(m->pool_bytes, planned->pool_bytes);
    assert_int_equal(m->offload_bytes, planned->offload_bytes);
    assert_int_equal(m->prefetch_bytes, planned->prefetch_bytes);
    assert_true((m->offload_bytes > 0 && m->prefetch_bytes > 0) == (i / 2 >= SENDING));
  }
  sn_run_free(memory);
  sn_run_free(disk);
  sn_net_free(net);
}

static void nets(void **state) {
  (void)state;
  conforms(&(subject){"lenet", 4, 300 << 10, 0});
  conforms(&(subject){"/models/examples/small_resnet.json", 4, 1 << 20, 0});
  conforms(&(subject){"lenet", 2, 240 << 10, 3});
}

/* ---- what fails ---- */

static void no_folder(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  const subject s = {"lenet", 4, 300 << 10, 0};
  sn_net *net = load(s.net, s.batch);
  setenv("TMPDIR", "no/such/folder", 1);
  const sn_session_options options = options_of(&s, SN_EXTERNAL_DISK);
  sn_session *session = sn_session_open(net->name, net, &options, &err);
  if (err.code == SN_BAD_DEVICE) skip();
  assert_int_equal(sn_session_add(session, strategy_of("superneurons"), &err), SN_BAD_FILE);
  assert_non_null(strstr(err.text, "no/such/folder: cannot be looked at"));
  assert_int_equal(sn_session_run(session)->n_results, 0);
  sn_session_close(session);
  setenv("TMPDIR", ".", 1);
  sn_net_free(net);
}

/* From now on no file takes another byte. */
static void let_no_file_grow(void *user, uint64_t iteration, const sn_outcome *outcome, int64_t ns) {
  (void)user, (void)outcome, (void)ns;
  struct rlimit limit;
  getrlimit(RLIMIT_FSIZE, &limit);
  limit.rlim_cur = 0;
  if (iteration == 1) setrlimit(RLIMIT_FSIZE, &limit);
}

/* In the third of five iterations. */
static void a_disk_that_fails(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  struct rlimit usual;
  const subject s = {"lenet", 4, 300 << 10, 0};
  sn_net *net = load(s.net, s.batch);
  sn_session_options options = options_of(&s, SN_EXTERNAL_DISK);
  options.iterations = 5;
  options.predict = false;
  options.progress = let_no_file_grow;
  sn_session *session = sn_session_open(net->name, net, &options, &err);
  if (err.code == SN_BAD_DEVICE) skip();
  getrlimit(RLIMIT_FSIZE, &usual);
  sn_session_add(session, strategy_of("superneurons"), &err);
  setrlimit(RLIMIT_FSIZE, &usual);
  assert_int_equal(err.code, SN_BAD_FILE);
  assert_non_null(strstr(err.text, "(ulimit -f); raise the limit, or leave out --external disk"));
  const sn_run *run = sn_session_run(session);
  assert_int_equal(run->n_results, 1);
  assert_int_equal(run->results[0].iterations, 2);
  assert_int_equal(run->results[0].digest, 0);
  sn_session_close(session);
  sn_net_free(net);
}

/* Memory of another GPU is no place here. */
static void only_host_and_disk(void **state) {
  (void)state;
  const subject s = {"lenet", 4, 0, 0};
  sn_net *net = load(s.net, s.batch);
  for (sn_external e = SN_EXTERNAL_PEER; e <= SN_EXTERNAL_REMOTE; e++) {
    sn_err err = SN_ERR_INIT;
    const sn_session_options options = options_of(&s, e);
    assert_null(sn_session_open(net->name, net, &options, &err));
    assert_int_equal(err.code, SN_BAD_USAGE);
    assert_non_null(strstr(err.text, "is simulated only"));
  }
  sn_net_free(net);
}

int main(void) {
  setenv("TMPDIR", ".", 1);
  signal(SIGXFSZ, SIG_IGN);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nets),
      cmocka_unit_test(no_folder),
      cmocka_unit_test(a_disk_that_fails),
      cmocka_unit_test(only_host_and_disk),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
