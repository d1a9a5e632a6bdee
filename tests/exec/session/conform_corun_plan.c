/* Plans from files whose operations run side by side, executed: each gives the same bits as its own operations one
 * after another (which the session looks at, `check`), and as the strategy that it is a plan of; what it takes is what
 * was planned. And what is refused. */
#include "sim/ask/plan_file.h"
#include "tests/exec/session/corun_training.h"
#include "tests/support/damage.h"

static const char gpu[] = "manycore:cores=4,slots=2,tile=2";

static sn_device load_device(void) {
  sn_err err = SN_ERR_INIT;
  sn_device device;
  assert_int_equal(sn_device_load(gpu, &device, &err), SN_OK);
  for (sn_law_kind kind = 0; kind < SN_LAW_KINDS; kind++) device.cores.law[kind].flops /= 100; /* threads pay */
  return device;
}

/* The plan that the session executed last. */
typedef struct kept {
  sn_plan plan;
} kept;

static sn_status keep(void *visitor, uint64_t iteration, const sn_plan *plan, const sn_trace *trace, sn_err *err) {
  kept *k = visitor;
  (void)trace;
  (void)err;
  if (iteration > 0) return SN_OK;
  free(k->plan.instrs);
  free(k->plan.teams);
  k->plan = damage_copy(plan);
  k->plan.teams = calloc(plan->n_teams + 1, sizeof *plan->teams);
  assert_non_null(k->plan.teams);
  for (uint32_t i = 0; i < plan->n_teams; i++) k->plan.teams[i] = plan->teams[i];
  return SN_OK;
}

typedef struct trainer {
  sn_device device;
  sn_net *net;
  sn_session *session;
  char spec[600];
  kept kept;
} trainer;

static trainer *open_trainer(const char *name, uint32_t batch) {
  sn_err err = SN_ERR_INIT;
  trainer *t = calloc(1, sizeof *t);
  sn_session_options options = SN_SESSION_OPTIONS_INIT;
  assert_non_null(t);
  t->device = load_device();
  t->net = load_net(name, batch, 0);
  snprintf(t->spec, sizeof t->spec, "%s%s", name[0] == '/' ? SNSIM_SOURCE_DIR : "", name);
  options.iterations = 2;
  options.machine.threads = 1;
  options.machine.cores = &t->device.cores;
  options.machine.check = true;
  options.machine.jitter_us = 200;
  options.predict = options.want_steps = true;
  options.visit = keep;
  options.visitor = &t->kept;
  t->session = sn_session_open(t->net->name, t->net, &options, &err);
  if (err.code == SN_BAD_DEVICE) skip();
  if (!t->session) fail_msg("%s", err.text);
  return t;
}

static void close_trainer(trainer *t) {
  sn_session_close(t->session);
  sn_net_free(t->net);
  free(t->kept.plan.instrs);
  free(t->kept.plan.teams);
  free(t);
}

static const sn_result *last(const trainer *t) {
  const sn_run *run = sn_session_run(t->session);
  return &run->results[run->n_results - 1];
}

/* `plan` through a file; NULL: as snsim writes one for the cores. */
static sn_plan_file *through_file(const trainer *t, const sn_plan *plan, const char *strategy) {
  sn_err err = SN_ERR_INIT;
  sn_options options = SN_OPTIONS_INIT;
  sn_strategy parsed;
  size_t bytes;
  char *text = NULL;
  FILE *out = open_memstream(&text, &bytes);
  assert_non_null(out);
  if (plan)
    sn_plan_write(plan, strategy, &t->device, &options, out, &err);
  else if (sn_strategy_parse(strategy, &parsed, &err) == SN_OK)
    sn_simulate_write_plan(t->net, &t->device, parsed, &options, out, &err);
  fclose(out);
  sn_plan_file *file = err.code == SN_OK ? sn_plan_file_parse("p.json", text, bytes, &err) : NULL;
  if (file) sn_plan_file_check(file, t->spec, &t->device, &err);
  if (err.code != SN_OK) fail_msg("%s: %s", strategy, err.text);
  free(text);
  return file;
}

static const sn_result *train_by(trainer *t, const sn_plan_file *file, const char *name) {
  sn_err err = SN_ERR_INIT;
  if (sn_session_add_plan(t->session, name, file->head.strategy, file->plan, &err) != SN_OK)
    fail_msg("%s: %s", name, err.text);
  const sn_result *m = last(t), *planned = m - 1;
  assert_string_equal(m->strategy, name);
  assert_int_equal(m->iterations, 2);
  assert_true(m->digest != 0 && m->reserved_pool_bytes == planned->pool_bytes);
  assert_true(m->pool_bytes <= planned->pool_bytes && m->reserved_pool_bytes >= file->plan->pool_bytes);
  assert_int_equal(m->recomputed_layers, file->plan->counts.recomputed_layers);
  assert_true(m->n_steps > 0);
  for (uint32_t step = 0; step < m->n_steps; step++)
    assert_int_equal(m->steps[step].tensor_bytes, planned->steps[step].tensor_bytes);
  assert_false(sn_corun_row_is_empty(&m->corun));
  return m;
}

static void add(trainer *t, const char *strategy) {
  sn_err err = SN_ERR_INIT;
  sn_strategy parsed;
  sn_strategy_parse(strategy, &parsed, &err);
  if (err.code == SN_OK) sn_session_add(t->session, parsed, &err);
  if (err.code != SN_OK) fail_msg("%s: %s", strategy, err.text);
}

/* Its own plan, through a file: the same plan, so the same bits in the same pool. */
static void own_plan_is_the_same(trainer *t, const char *strategy) {
  add(t, strategy);
  const uint64_t digest = last(t)->digest, pool = last(t)->reserved_pool_bytes, used = last(t)->pool_bytes;
  sn_plan_file *file = through_file(t, &t->kept.plan, strategy);
  const sn_result *m = train_by(t, file, "own.json");
  if (m->digest != digest) fail_msg("%s: other bits from a file", strategy);
  assert_int_equal(m->reserved_pool_bytes, pool);
  assert_int_equal(m->pool_bytes, used);
  sn_plan_file_free(file);
}

static void conforms(const char *name, uint32_t batch) {
  static const char *const all[] = {"liveness+corun=s1234", "liveness+corun=path", "liveness+corun=2x2",
                                    "liveness+recompute=memory+corun=s123"};
  trainer *t = open_trainer(name, batch);
  add(t, "baseline");
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    sn_plan_file *file = through_file(t, NULL, all[i]);
    train_by(t, file, "p.json"); /* with workspaces of another device, so in a larger pool */
    sn_plan_file_free(file);
    own_plan_is_the_same(t, all[i]);
  }
  close_trainer(t);
}

static void nets(void **state) {
  (void)state;
  conforms("lenet", 8);
  conforms("/tests/nets/small_inception.json", 4);
  conforms("/tests/nets/small_gan.json", 4);
}

/* With one thread each there is nothing that splits sums. */
static void single_threads_are_baseline(void **state) {
  (void)state;
  trainer *t = open_trainer("lenet", 8);
  add(t, "baseline");
  const uint64_t baseline = last(t)->digest;
  sn_plan_file *file = through_file(t, NULL, "liveness+corun=3x1");
  assert_true(train_by(t, file, "p.json")->digest == baseline);
  sn_plan_file_free(file);
  close_trainer(t);
}

static void refuse(trainer *t, const char *strategy, sn_team team, const char *part) {
  sn_err err = SN_ERR_INIT;
  sn_plan_file *file = through_file(t, NULL, strategy);
  file->plan->teams[0] = team;
  assert_true(sn_session_add_plan(t->session, "p.json", file->head.strategy, file->plan, &err) != SN_OK);
  if (!strstr(err.text, part)) fail_msg("\"%s\" lacks \"%s\"", err.text, part);
  sn_plan_file_free(file);
}

static void what_cannot_run_is_refused(void **state) {
  (void)state;
  trainer *t = open_trainer("lenet", 4);
  refuse(t, "liveness+corun=s12", (sn_team){2, 3, SN_SLOT_FIRST}, "run on up to 5 cores, and here there are 4; snsim ");
  refuse(t, "liveness+corun=s12", (sn_team){8, 8, SN_SLOT_ANY}, "its threads float over all cores, which is simulated");
  close_trainer(t);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(nets), cmocka_unit_test(single_threads_are_baseline),
                                     cmocka_unit_test(what_cannot_run_is_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
