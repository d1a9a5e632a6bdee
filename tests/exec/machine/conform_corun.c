/* Conformance of operations side by side, on teams of several threads: each plan gives the same bits as its own
 * operations one after another with the same threads, which the session itself looks at (`check`), and losses differ
 * from those of one thread only in how sums are split. And what is refused. */
#include "tests/exec/session/corun_training.h"

#include "exec/machine/cpu_teams.h"

#include <math.h>

static sn_cores cores_of(const char *name) {
  sn_err err = SN_ERR_INIT;
  sn_device device;
  assert_int_equal(sn_device_load(name, &device, &err), SN_OK);
  for (sn_law_kind kind = 0; kind < SN_LAW_KINDS; kind++) device.cores.law[kind].flops /= 100; /* threads pay */
  return device.cores;
}

static void conforms(const char *name, uint32_t batch, uint32_t image, seen *s) {
  static const char strategies[] = "liveness liveness+corun=s1 liveness+corun=s12 liveness+corun=s1234 "
                                   "liveness+corun=path liveness+corun=2x2 liveness+corun=best liveness+corun=manual "
                                   "liveness+recompute=memory+corun=s1234 ";
  sn_cores cores = cores_of("manycore:cores=4,slots=2,tile=2");
  sn_net *net = load_net(name, batch, image);
  sn_run *run = train(net, &cores, strategies, s);
  check_run(run);
  assert_int_equal(run->n_results, 18);
  for (uint32_t i = 1; i < run->n_results; i += 2) {
    const sn_result *r = &run->results[i];
    if (fabs(r->loss - run->results[1].loss) > 1e-4 * fabs(r->loss)) fail_msg("%s: loss %.9g", r->strategy, r->loss);
    assert_true(r->difference < 1e-3);
  }
  sn_run_free(run);
  sn_net_free(net);
}

static void nets(void **state) {
  seen s = {0};
  (void)state;
  conforms("lenet", 8, 0, &s);
  conforms("resnet_cifar:n=1", 2, 0, &s);
  conforms("/tests/nets/small_gan.json", 4, 0, &s); /* DECONVs */
  conforms("/tests/nets/small_inception.json", 4, 0, &s);
  assert_true(s.lanes > 1 && s.threads > 1 && s.second > 0 && s.parts > 0);
}

static void refuse(sn_session *session, const char *name, const char *part) {
  sn_err err = SN_ERR_INIT;
  sn_strategy strategy;
  assert_int_equal(sn_strategy_parse(name, &strategy, &err), SN_OK);
  assert_true(sn_session_add(session, strategy, &err) != SN_OK);
  if (!strstr(err.text, part)) fail_msg("\"%s\" lacks \"%s\"", err.text, part);
}

static void what_cannot_run_is_refused_by_name(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_cores cores = cores_of("manycore:cores=4"), none = {0};
  sn_net *net = load_net("lenet", 4, 0);
  seen s = {0};
  sn_session *session = open_session(net, &cores, &s, &err);
  refuse(session, "liveness+corun=3x2", "strategy liveness+corun=3x2: its workers have 6 threads together");
  refuse(session, "liveness+corun=2x9", "with 4 cores a worker has at most 8 threads");
  sn_session_close(session);
  session = open_session(net, &none, &s, &err);
  refuse(session, "liveness+corun=s12", "processors of this machine, and there is one");
  sn_session_close(session);
  sn_net_free(net);
}

static void more_teams_than_are_executed(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_team teams[SN_LANES_TEAMS + 1] = {{0, 1, SN_SLOT_FIRST}};
  sn_cpu_kernels *of[SN_LANES_TEAMS] = {NULL};
  sn_plan plan = {.teams = teams, .n_teams = SN_LANES_TEAMS + 1};
  sn_net *net = load_net("lenet", 4, 0);
  sn_cpu_teams *all = sn_cpu_teams_new(net, &err);
  assert_int_equal(sn_cpu_teams_open(all, &plan, of, &err), SN_BAD_USAGE);
  assert_non_null(strstr(err.text, "33 different ranges of cores, and at most 32 teams are executed"));
  sn_cpu_teams_close(of);
  sn_cpu_teams_free(all);
  sn_net_free(net);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(nets), cmocka_unit_test(what_cannot_run_is_refused_by_name),
                                     cmocka_unit_test(more_teams_than_are_executed)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
