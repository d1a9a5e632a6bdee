/* Conformance of the CUDA machine on the fake GPU: whatever the strategy and the order in which the device runs what no
 * fence orders, three iterations give the same losses, gradients and parameters to the bit, they agree with the
 * reference kernels, and what was used is what was planned. And the proof that this sees something: a plan without one
 * of its fences gives another result for some order. */
#include "tests/unit/cuda_fixture.h"

#include "sim/check.h"
#include "sim/lower.h"

enum { ALL = SN_STRATEGY_DEFAULTS + 1, ITERATIONS = 3, ORDERS = 36 };

static sn_strategy strategy_of(uint32_t i) {
  sn_strategy checkpoints = {true, SN_OFFLOAD_CHECKPOINTS, SN_RECOMPUTE_COST};
  return i < SN_STRATEGY_DEFAULTS ? sn_strategy_default(i) : checkpoints;
}

/* ---- every strategy, each with another order ---- */

static void check_counts(const sn_result *planned, const sn_result *m) {
  assert_string_equal(planned->strategy, m->strategy);
  assert_string_equal(m->source, "cuda");
  assert_int_equal(m->iterations, ITERATIONS);
  assert_int_equal(m->reserved_pool_bytes, planned->pool_bytes);
  assert_int_equal(m->pool_bytes, planned->pool_bytes);
  assert_int_equal(m->offload_bytes, planned->offload_bytes);
  assert_int_equal(m->prefetch_bytes, planned->prefetch_bytes);
  assert_true(m->iteration_ns > 0 && m->compute_ns > 0 && m->compute_ns <= m->iteration_ns);
}

/* The device holds the pool and what is trained, and nothing else but what alignment adds. */
static void check_memory(const sn_net *net, const sn_result *m) {
  uint64_t known = m->reserved_pool_bytes + sn_persistent_total(&m->persistent);
  uint64_t slack = net->n_layers * UINT64_C(8) * 256;
  if (m->peak_device_bytes > known + slack || m->peak_device_bytes < m->reserved_pool_bytes)
    fail_msg("%s: %llu bytes in use, %llu planned", m->strategy, (unsigned long long)m->peak_device_bytes,
             (unsigned long long)known);
}

static sn_run *train(fake_cuda *fake, const sn_net *net, uint64_t pool_bytes) {
  sn_err err = SN_ERR_INIT;
  sn_session_options options = cuda_options(pool_bytes);
  options.predict = true;
  sn_session *session = sn_session_open(net->name, net, &options, &err);
  for (uint32_t i = 0; session && i < ALL && err.code == SN_OK; i++) {
    fake->seed = i;
    sn_session_add(session, strategy_of(i), &err);
  }
  if (err.code != SN_OK) fail_msg("%s: %s %s", net->name, err.text, fake->complaint);
  sn_run *run = sn_session_take(session, &err);
  sn_session_close(session);
  assert_string_equal(fake->complaint, "");
  assert_int_equal(fake->live, 0);
  assert_int_equal(fake->used_bytes, 0);
  return run;
}

static void conforms(const char *name, uint32_t batch, uint64_t pool_bytes) {
  fake_cuda *fake = cuda_fake();
  sn_net *net = cuda_net(name, batch, 0);
  sn_run *run = train(fake, net, pool_bytes);
  uint64_t moved = 0, again = 0;
  for (uint32_t i = 0; i < ALL; i++) {
    const sn_result *m = &run->results[2 * i + 1];
    check_counts(m - 1, m);
    check_memory(net, m);
    if (m->digest != run->results[1].digest || m->digest == 0 || m->loss != m->loss)
      fail_msg("%s under %s: loss %.9g, baseline %.9g", name, m->strategy, m->loss, run->results[1].loss);
    if (strategy_of(i).offload == SN_OFFLOAD_CACHE) moved += m->offload_bytes;
    again += m->recomputed_layers;
  }
  assert_true(moved > 0 && again > 0); /* the cache had to work, and so had recomputation */
  sn_run_free(run);
  sn_net_free(net);
}

static void strategies_agree(void **state) {
  (void)state;
  conforms("lenet", 2, 200 << 10);
  conforms("/tests/nets/small_alexnet.json", 3, 130 << 10);
  conforms("/models/examples/small_resnet.json", 3, 800 << 10);
  conforms("/tests/nets/small_inception.json", 3, 800 << 10);
  conforms("/tests/nets/small_densenet.json", 3, 800 << 10);
}

/* ---- one machine by hand ---- */

typedef struct bench {
  sn_net *net;
  sn_route *route;
  sn_machine machine;
  sn_costs *costs;
  sn_schedule *schedule;
  sn_plan *plan;
  sn_state *state;
  sn_batches *batches;
  sn_machine_options options;
} bench;

static void must(const sn_err *err) {
  if (err->code != SN_OK) fail_msg("%s", err->text);
}

static bench open_bench(sn_net *net, const char *strategy_text, sn_workspace workspace, uint64_t pool_bytes) {
  sn_err err = SN_ERR_INIT;
  bench b = {.net = net, .options = cuda_options(0).machine};
  sn_device device;
  sn_strategy strategy;
  sn_device_load("k40c", &device, &err);
  sn_strategy_parse(strategy_text, &strategy, &err);
  b.route = sn_route_new(b.net, &err);
  must(&err);
  sn_machine_open_cuda(b.route, &b.options, &b.machine, &err);
  must(&err);
  b.costs = sn_costs_new(b.net, &device, &err);
  b.machine.ops->offer(b.machine.self, b.costs, &err);
  must(&err);
  b.schedule = sn_schedule_new(b.route, strategy.recompute, &err);
  b.plan = sn_lower(b.schedule, strategy, workspace, b.costs, pool_bytes, &err);
  must(&err);
  b.batches = sn_batches_synthetic(b.net, 3, &err);
  must(&err);
  return b;
}

static void close_bench(bench *b) {
  b->machine.ops->close(b->machine.self);
  sn_batches_free(b->batches);
  sn_state_free(b->state);
  sn_plan_free(b->plan);
  sn_schedule_free(b->schedule);
  sn_costs_free(b->costs);
  sn_route_free(b->route);
  sn_net_free(b->net);
}

static sn_status start(bench *b, sn_err *err) {
  sn_state_free(b->state);
  b->state = sn_state_new(b->net, 5, err);
  sn_batches_rewind(b->batches, err);
  return b->machine.ops->start(b->machine.self, b->state, err);
}

/* One iteration; what it did to loss and parameters. 0 where the device failed. */
static uint64_t play(bench *b, const sn_plan *plan) {
  sn_err err = SN_ERR_INIT;
  sn_trace trace;
  sn_outcome outcome;
  const sn_machine_ops *ops = b->machine.ops;
  start(b, &err);
  ops->feed(b->machine.self, sn_batches_next(b->batches, &err), &err);
  sn_trace_init(&trace, plan, &err);
  must(&err);
  sn_play(plan, ops->backend(b->machine.self), &trace, &err);
  sn_trace_clear(&trace);
  if (err.code != SN_OK) return 0;
  ops->outcome(b->machine.self, &outcome);
  ops->fetch(b->machine.self, &err);
  must(&err);
  uint64_t digest = sn_digest(SN_DIGEST_START, &outcome.loss, sizeof outcome.loss);
  return sn_digest(digest, b->state->parameters, b->net->parameters * sizeof(float));
}

/* ---- against the reference ---- */

static void agrees(const char *name, uint32_t batch, sn_workspace workspace, double tolerance) {
  sn_err err = SN_ERR_INIT;
  fake_cuda *fake = cuda_fake();
  bench b = open_bench(cuda_net(name, batch, 0), "liveness+offload+recompute=cost", workspace, UINT64_MAX);
  sn_trace trace;
  uint64_t done;
  start(&b, &err);
  net_runner r = cuda_reference(b.net, b.state, &b.options.hyper);
  sn_trace_init(&trace, b.plan, &err);
  must(&err);
  for (int i = 0; i < ITERATIONS; i++) { /* a play of its own each: dropout draws iteration 0's mask */
    const sn_batch *batch_of = sn_batches_next(b.batches, &err);
    sn_outcome outcome;
    b.machine.ops->feed(b.machine.self, batch_of, &err);
    sn_play_many(b.plan, b.machine.ops->backend(b.machine.self), &(sn_play_options){.iterations = 1}, &trace, &done,
                 &err);
    must(&err);
    b.machine.ops->outcome(b.machine.self, &outcome);
    b.machine.ops->fetch(b.machine.self, &err);
    must(&err);
    cuda_take_batch(&r, batch_of);
    r.iteration = 0;
    net_runner_iterate(&r);
    assert_true(fabs(outcome.loss - r.loss) <= tolerance * r.loss);
    cuda_compare(&r, b.state, tolerance);
  }
  net_runner_close(&r);
  sn_trace_clear(&trace);
  close_bench(&b);
  assert_string_equal(fake->complaint, "");
  assert_int_equal(fake->live, 0);
}

static void reference_agrees(void **state) {
  (void)state;
  for (sn_workspace w = SN_WORKSPACE_NONE; w < SN_WORKSPACE_COUNT; w++) {
    agrees("lenet", 3, w, 1e-4);
    agrees("/tests/nets/small_alexnet.json", 5, w, 1e-4);
    agrees("/models/examples/small_resnet.json", 3, w, 1e-3);
    agrees("/tests/nets/small_inception.json", 3, w, 1e-3);
    agrees("/tests/nets/small_densenet.json", 3, w, 1e-3);
  }
}

/* ---- fences ---- */

/* Whether some order of what is left unordered gives another result, or breaks the device. */
static bool is_noticed(fake_cuda *fake, bench *b, const sn_plan *plan, uint64_t right) {
  for (uint64_t order = 0; order < ORDERS; order++) {
    fake->seed = order;
    if (play(b, plan) != right) return true;
  }
  return false;
}

static void missing_fence_is_noticed(void **state) {
  (void)state;
  fake_cuda *fake = cuda_fake();
  bench b =
      open_bench(cuda_net("/tests/nets/small_alexnet.json", 2, 0), "liveness+offload", SN_WORKSPACE_NONE, UINT64_MAX);
  uint64_t right = play(&b, b.plan);
  uint32_t needed = 0, noticed = 0;
  assert_true(right != 0);
  assert_false(is_noticed(fake, &b, b.plan, right)); /* with all fences every order is as good */
  for (uint32_t i = 0; i < b.plan->n_instrs; i++) {
    sn_instr wait = b.plan->instrs[i];
    sn_err err = SN_ERR_INIT;
    if (wait.kind != SN_WAIT) continue;
    b.plan->instrs[i] = (sn_instr){.kind = SN_WAIT, .lane = wait.lane, .id = wait.id, .step = wait.step};
    for (uint32_t k = 0; k < i; k++) /* it waits for a fence that its own lane has passed, so for nothing */
      if (b.plan->instrs[k].kind == SN_SIGNAL && b.plan->instrs[k].lane == wait.lane)
        b.plan->instrs[i].id = b.plan->instrs[k].id;
    bool gone = b.plan->instrs[i].id != wait.id;
    if (gone && sn_check(b.plan, NULL, &err) != SN_OK) {
      needed++;
      noticed += is_noticed(fake, &b, b.plan, right);
    }
    b.plan->instrs[i] = wait;
  }
  print_message("%u of %u waits that the checker misses are missed on the device\n", noticed, needed);
  assert_true(needed > 0);
  assert_int_equal(noticed, needed);
  close_bench(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(strategies_agree),
      cmocka_unit_test(reference_agrees),
      cmocka_unit_test(missing_fence_is_noticed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
