/* Simulate: what the options change and what they must not, where a strategy begins to fit, and the bounds that any
 * result obeys. */
#include "sim/ask/simulate.h"
#include "tests/support/pipeline.h"

typedef struct question {
  const char *net;
  uint32_t batch;
  const char *strategy;
  uint64_t memory_bytes; /* 0: the device's own */
  sn_options options;
} question;

static sn_run *ask(question q) {
  sn_err err = SN_ERR_INIT;
  sn_net *net = load_net(q.net, q.batch);
  sn_device gpu = load_gpu("k40c");
  sn_strategy s = parse_strategy(q.strategy);
  if (q.memory_bytes > 0) gpu.memory_bytes = q.memory_bytes;
  sn_run *run = sn_simulate(q.net, net, &gpu, &s, 1, &q.options, &err);
  must(&err);
  assert_int_equal(run->n_results, 1);
  sn_net_free(net);
  return run;
}

static question alexnet(const char *strategy) {
  return (question){.net = "alexnet", .batch = 64, .strategy = strategy, .options = SN_OPTIONS_INIT};
}

/* A byte less than what is needed does not fit, and is an answer all the same. */
static void where_it_begins_to_fit(void **state) {
  (void)state;
  static const char *const strategies[] = {"baseline", "liveness", "liveness+offload+recompute=cost", "superneurons"};
  for (size_t i = 0; i < sizeof strategies / sizeof strategies[0]; i++) {
    question q = alexnet(strategies[i]);
    q.options.workspace = SN_WORKSPACE_NONE;
    sn_run *run = ask(q);
    uint64_t needed = run->results[0].peak_device_bytes;
    assert_true(run->results[0].fits);
    sn_run_free(run);
    q.memory_bytes = needed;
    run = ask(q);
    assert_true(run->results[0].fits && run->results[0].peak_device_bytes == needed);
    assert_true(run->memory_bytes == needed);
    sn_run_free(run);
    q.memory_bytes = needed - 1;
    run = ask(q);
    bool cache = strcmp(q.strategy, "superneurons") == 0; /* evicts, or needs more than it is given */
    if (!cache) assert_true(!run->results[0].fits && run->results[0].peak_device_bytes == needed);
    assert_int_equal(run->results[0].fits, run->results[0].peak_device_bytes <= q.memory_bytes);
    assert_true(run->results[0].iteration_ns > 0);
    sn_run_free(run);
  }
}

/* Not even the parameters fit. */
static void no_room_at_all(void **state) {
  (void)state;
  question q = alexnet("superneurons");
  q.memory_bytes = UINT64_C(100) << 20;
  sn_run *run = ask(q);
  assert_false(run->results[0].fits);
  assert_true(run->results[0].peak_device_bytes > UINT64_C(700) << 20); /* 3 x 62 M parameters x 4 bytes */
  sn_run_free(run);
}

/* --pool is a limit below what the device has left. */
static void given_pool(void **state) {
  (void)state;
  question q = alexnet("liveness");
  q.options.workspace = SN_WORKSPACE_NONE;
  sn_run *run = ask(q);
  uint64_t needed = run->results[0].pool_bytes;
  assert_true(run->conditions.pool_limit_bytes == 0);
  sn_run_free(run);
  for (uint64_t limit = needed - 1; limit <= needed; limit++) {
    q.options.pool_bytes = limit;
    run = ask(q);
    assert_true(run->memory_bytes == UINT64_C(11439) << 20 && run->conditions.pool_limit_bytes == limit);
    assert_true(run->results[0].pool_bytes == needed);
    assert_int_equal(run->results[0].fits, limit == needed);
    sn_run_free(run);
  }
  q.options.pool_bytes = UINT64_C(1) << 50; /* more than the device has */
  q.batch = 2000;
  run = ask(q);
  assert_false(run->results[0].fits);
  sn_run_free(run);
}

static int64_t iteration_of(question q) {
  sn_run *run = ask(q);
  int64_t ns = run->results[0].iteration_ns;
  sn_run_free(run);
  return ns;
}

/* 10 GB/s are faster than 8, and those than 6; a link shared by both directions is no faster than one for each. */
static void links(void **state) {
  (void)state;
  question host = alexnet("liveness+offload"), peer = host, remote = host, shared = host;
  peer.options.external = SN_EXTERNAL_PEER;
  remote.options.external = SN_EXTERNAL_REMOTE;
  shared.options.shared_link = true;
  assert_true(iteration_of(peer) < iteration_of(host));
  assert_true(iteration_of(host) < iteration_of(remote));
  assert_true(iteration_of(shared) >= iteration_of(host));
  sn_run *run = ask(shared);
  assert_true(run->conditions.shared_link);
  assert_string_equal(run->conditions.external, "host");
  sn_run_free(run);
}

/* One cudaMalloc and one cudaFree for each tensor, and for each workspace. */
static void cuda_allocator(void **state) {
  (void)state;
  sn_device gpu = load_gpu("k40c");
  question q = alexnet("liveness");
  q.options.allocator = SN_ALLOCATOR_CUDA;
  q.options.workspace = SN_WORKSPACE_NONE;
  sn_run *run = ask(q);
  assert_int_equal(run->results[0].allocation_ns, 36 * (gpu.malloc_ns + gpu.free_ns));
  assert_string_equal(run->conditions.allocator, "cuda");
  sn_run_free(run);
  q.options.workspace = SN_WORKSPACE_MAX; /* 5 CONVs, forward and backward */
  run = ask(q);
  assert_int_equal(run->results[0].allocation_ns, (36 + 10) * (gpu.malloc_ns + gpu.free_ns));
  sn_run_free(run);
  q.options.allocator = SN_ALLOCATOR_POOL;
  run = ask(q);
  assert_int_equal(run->results[0].allocation_ns, 0);
  sn_run_free(run);
}

static void check_result(const sn_run *run, const sn_result *r) {
  assert_true(r->peak_device_bytes == r->context_bytes + sn_persistent_total(&r->persistent) + r->pool_bytes);
  bool in_pool = run->conditions.pool_limit_bytes == 0 || r->pool_bytes <= run->conditions.pool_limit_bytes;
  assert_int_equal(r->fits, r->peak_device_bytes <= run->memory_bytes && in_pool);
  assert_true(r->pool_bytes >= r->peak_tensor_bytes);
  assert_true(r->pool_fragmentation >= 0 && r->pool_fragmentation < 1);
  assert_true(r->pool_largest_hole < r->pool_bytes);
  assert_true(r->compute_ns > 0 && r->stall_ns >= 0);
  assert_true(r->iteration_ns >= r->compute_ns + r->stall_ns);
  assert_true(r->images_per_second > 0);
  assert_true(r->prefetch_bytes >= r->offload_bytes || r->evictions > 0);
  assert_int_equal(r->n_steps, run->n_steps);
  uint64_t peak = 0;
  int64_t at = 0;
  for (uint32_t s = 0; s < r->n_steps; s++) {
    const sn_step_row *row = &r->steps[s];
    assert_int_equal(row->step, s + 1);
    assert_true(row->begin_ns >= at && row->end_ns > row->begin_ns);
    assert_true(row->device_bytes == r->peak_device_bytes - r->pool_bytes + row->tensor_bytes + row->workspace_bytes);
    at = row->end_ns;
    if (row->tensor_bytes > peak) peak = row->tensor_bytes;
  }
  assert_true(peak == r->peak_tensor_bytes && at <= r->iteration_ns);
  assert_true(r->steps[r->peak_step - 1].tensor_bytes == peak);
  assert_string_equal(r->steps[r->peak_step - 1].layer, r->peak_layer);
  assert_int_equal(r->steps[r->peak_step - 1].live_tensors, r->live_tensors_at_peak);
}

/* All strategies of a run at once, on nets of all kinds; twice gives the same. */
static void bounds(void **state) {
  (void)state;
  static const char *const nets[] = {"lenet", "resnet18", "densenet121", "inception_v3"};
  enum { ALL = SN_STRATEGY_DEFAULTS + SN_STRATEGY_SYSTEMS };
  sn_strategy strategies[ALL];
  for (uint32_t i = 0; i < SN_STRATEGY_DEFAULTS; i++) strategies[i] = sn_strategy_default(i);
  for (uint32_t i = 0; i < SN_STRATEGY_SYSTEMS; i++) strategies[SN_STRATEGY_DEFAULTS + i] = sn_strategy_system(i);
  sn_device gpu = load_gpu("titan_xp");
  for (size_t k = 0; k < sizeof nets / sizeof nets[0]; k++) {
    sn_err err = SN_ERR_INIT;
    sn_options options = SN_OPTIONS_INIT;
    options.want_steps = options.want_tensors = true;
    options.pool_bytes = k % 2 ? UINT64_C(100) << 20 : 0;
    sn_net *net = load_net(nets[k], 8);
    sn_run *run = sn_simulate(nets[k], net, &gpu, strategies, ALL, &options, &err);
    sn_run *again = sn_simulate(nets[k], net, &gpu, strategies, ALL, &options, &err);
    must(&err);
    assert_int_equal(run->layers, net->n_layers);
    assert_int_equal(run->n_tensors, run->results[0].tensor_count);
    for (uint32_t i = 0; i < ALL; i++) {
      check_result(run, &run->results[i]);
      assert_true(run->results[i].iteration_ns == again->results[i].iteration_ns);
      assert_true(run->results[i].pool_bytes == again->results[i].pool_bytes);
    }
    sn_run_free(run);
    sn_run_free(again);
    sn_net_free(net);
  }
}

/* A net without CONV, FC or anything else that trains. */
static void smallest_net(void **state) {
  (void)state;
  static const char net[] = "{\"snsim_net\":1,\"name\":\"s\",\"input\":[3,1,1],\"layers\":["
                            "{\"name\":\"softmax\",\"op\":\"SOFTMAX\"}]}";
  for (uint32_t i = 0; i < SN_STRATEGY_DEFAULTS; i++) {
    char name[SN_STRATEGY_TEXT];
    question q = {.net = net, .batch = 1, .strategy = sn_strategy_name(sn_strategy_default(i), name)};
    q.options = (sn_options)SN_OPTIONS_INIT;
    sn_run *run = ask(q);
    assert_true(run->results[0].fits);
    assert_int_equal(run->results[0].peak_tensor_bytes, 12);
    assert_int_equal(run->results[0].pool_bytes, 1024);
    assert_int_equal(run->n_steps, 2);
    sn_run_free(run);
  }
}

static void names_of_options(void **state) {
  (void)state;
  for (sn_workspace w = 0; w < SN_WORKSPACE_COUNT; w++) {
    sn_err err = SN_ERR_INIT;
    sn_workspace parsed = SN_WORKSPACE_COUNT;
    assert_int_equal(sn_workspace_parse(sn_workspace_name(w), &parsed, &err), SN_OK);
    assert_int_equal(parsed, w);
  }
  for (sn_allocator a = 0; a < SN_ALLOCATOR_COUNT; a++) {
    sn_err err = SN_ERR_INIT;
    sn_allocator parsed = SN_ALLOCATOR_COUNT;
    assert_int_equal(sn_allocator_parse(sn_allocator_name(a), &parsed, &err), SN_OK);
    assert_int_equal(parsed, a);
  }
  sn_err bad_workspace = SN_ERR_INIT, bad_allocator = SN_ERR_INIT;
  sn_workspace w = SN_WORKSPACE_MAX;
  sn_allocator a = SN_ALLOCATOR_CUDA;
  assert_int_equal(sn_workspace_parse("dynamc", &w, &bad_workspace), SN_BAD_USAGE);
  assert_non_null(strstr(bad_workspace.text, "--workspace: \"dynamc\" is none of: none, dynamic, max"));
  assert_int_equal(sn_allocator_parse("heap", &a, &bad_allocator), SN_BAD_USAGE);
  assert_non_null(strstr(bad_allocator.text, "--allocator: \"heap\" is none of: pool, cuda"));
  assert_true(w == SN_WORKSPACE_MAX && a == SN_ALLOCATOR_CUDA);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(where_it_begins_to_fit),
      cmocka_unit_test(no_room_at_all),
      cmocka_unit_test(given_pool),
      cmocka_unit_test(links),
      cmocka_unit_test(cuda_allocator),
      cmocka_unit_test(bounds),
      cmocka_unit_test(smallest_net),
      cmocka_unit_test(names_of_options),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
