/* Advice against brute force: every combination is what the simulator says of it; the front holds exactly those that
 * none other beats, each once; the best is the fastest that fits. */
#include "sim/capacity/advise.h"
#include "tests/support/pipeline.h"

#include <stdio.h>

static bool same(const sn_combination *a, const sn_combination *b) {
  return a->result->peak_device_bytes == b->result->peak_device_bytes &&
         a->result->iteration_ns == b->result->iteration_ns;
}

/* As fast with as little, and better in one of them. */
static bool beats(const sn_combination *a, const sn_combination *b) {
  return a->result->peak_device_bytes <= b->result->peak_device_bytes &&
         a->result->iteration_ns <= b->result->iteration_ns && !same(a, b);
}

static void check_front(const sn_advice *advice) {
  for (uint32_t i = 0; i < advice->n_all; i++) {
    const sn_combination *c = &advice->all[i];
    uint32_t beaten = 0, first = i;
    for (uint32_t k = 0; k < advice->n_all; k++) {
      beaten += beats(&advice->all[k], c);
      if (same(&advice->all[k], c) && k < first) first = k;
    }
    assert_int_equal(c->on_front, beaten == 0 && first == i);
  }
  uint32_t marked = 0;
  for (uint32_t i = 0; i < advice->n_all; i++) marked += advice->all[i].on_front;
  assert_int_equal(marked, advice->n_front);
  for (uint32_t i = 0; i < advice->n_front; i++) {
    const sn_combination *c = &advice->all[advice->front[i]];
    assert_true(c->on_front);
    if (i == 0) continue;
    const sn_combination *faster = &advice->all[advice->front[i - 1]];
    assert_true(c->result->peak_device_bytes < faster->result->peak_device_bytes);
    assert_true(c->result->iteration_ns > faster->result->iteration_ns);
  }
}

static void check_best(const sn_advice *advice) {
  const sn_combination *best = NULL;
  for (uint32_t i = 0; i < advice->n_all; i++) {
    const sn_combination *c = &advice->all[i];
    if (c->result->fits && (!best || c->result->iteration_ns < best->result->iteration_ns ||
                            (c->result->iteration_ns == best->result->iteration_ns &&
                             c->result->peak_device_bytes < best->result->peak_device_bytes)))
      best = c;
  }
  assert_ptr_equal(advice->best, best);
}

static void check_results(const sn_advice *advice, const sn_net *net, const sn_device *device) {
  for (uint32_t i = 0; i < advice->n_all; i++) {
    sn_err err = SN_ERR_INIT;
    const sn_combination *c = &advice->all[i];
    sn_options options = SN_OPTIONS_INIT;
    sn_device given = *device;
    options.workspace = c->workspace;
    given.memory_bytes = c->memory_bytes;
    sn_run *run = sn_simulate("net", net, &given, &c->strategy, 1, &options, &err);
    must(&err);
    const sn_result *r = &run->results[0];
    assert_int_equal(r->fits, c->result->fits);
    assert_int_equal(r->peak_device_bytes, c->result->peak_device_bytes);
    assert_int_equal(r->iteration_ns, c->result->iteration_ns);
    assert_string_equal(r->strategy, c->result->strategy);
    sn_run_free(run);
  }
}

/* Nothing is below its bound; and without workspace the cache, which empties the device, comes down to it. */
static void check_bound(const sn_advice *advice) {
  const sn_strategy cache = parse_strategy("liveness+cache");
  uint32_t reached = 0;
  for (uint32_t i = 0; i < advice->n_all; i++) {
    const sn_combination *c = &advice->all[i];
    assert_true(c->bound_bytes <= c->result->peak_device_bytes && c->bound_bytes == advice->all[0].bound_bytes);
    reached += c->workspace == SN_WORKSPACE_NONE && sn_strategy_same(c->strategy, cache) &&
               c->bound_bytes == c->result->peak_device_bytes;
  }
  assert_true(reached > 0 || !advice->best);
}

static sn_advice *advise_all(const sn_net *net, const sn_device *device, const sn_options *options) {
  sn_err err = SN_ERR_INIT;
  sn_advice *advice = sn_advise(net, device, NULL, 0, options, &err);
  must(&err);
  return advice;
}

/* Nothing runs with less than the front's lean end takes: it is what the search for the least memory finds. */
static void check_lean_end(const sn_advice *advice, const sn_net *net, const sn_device *device) {
  sn_err err = SN_ERR_INIT;
  sn_options options = SN_OPTIONS_INIT;
  uint64_t least = UINT64_MAX, lean = advice->all[advice->front[advice->n_front - 1]].result->peak_device_bytes;
  for (sn_workspace w = 0; w < SN_WORKSPACE_COUNT; w++) {
    options.workspace = w;
    sn_planner *planner = sn_planner_new(net, device, &options, &err);
    must(&err);
    for (uint32_t i = 0; i < SN_ADVISE_STRATEGIES; i++) {
      uint64_t bytes;
      sn_planner_least(planner, sn_advise_strategy(i), &bytes, &err);
      must(&err);
      if (bytes < least) least = bytes;
    }
    sn_planner_free(planner);
  }
  if (least <= device->memory_bytes) assert_true(lean <= least);
}

static void front_is_complete_and_nothing_else(void **state) {
  (void)state;
  static const struct {
    const char *net;
    uint32_t batch, mib; /* of the device; 0: a K40c's */
  } cases[] = {{"lenet", 64, 0},    {"alexnet", 200, 0},    {"alexnet", 200, 2300}, {"alexnet", 200, 100},
               {"resnet50", 16, 0}, {"resnet18", 64, 1500}, {"vgg16", 32, 4500},    {"inception_v3", 8, 2000}};
  uint32_t none = 0, some = 0;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    sn_net *net = load_net(cases[i].net, cases[i].batch);
    sn_device device = load_gpu("k40c");
    if (cases[i].mib) device.memory_bytes = (uint64_t)cases[i].mib << 20;
    const sn_options options = SN_OPTIONS_INIT;
    sn_advice *advice = advise_all(net, &device, &options);
    check_front(advice);
    check_best(advice);
    check_results(advice, net, &device);
    check_lean_end(advice, net, &device);
    check_bound(advice);
    none += !advice->best;
    some += advice->best && !advice->all[advice->front[0]].result->fits;
    sn_advice_free(advice);
    sn_net_free(net);
  }
  assert_int_equal(none, 1);
  assert_true(some > 0);
}

static void tries_every_strategy_once(void **state) {
  (void)state;
  char names[SN_ADVISE_STRATEGIES][SN_STRATEGY_TEXT];
  for (uint32_t i = 0; i < SN_ADVISE_STRATEGIES; i++) {
    sn_err err = SN_ERR_INIT;
    sn_strategy parsed;
    assert_int_equal(sn_strategy_parse(sn_strategy_name(sn_advise_strategy(i), names[i]), &parsed, &err), SN_OK);
    for (uint32_t k = 0; k < i; k++) assert_string_not_equal(names[i], names[k]);
  }
  for (uint32_t d = 0; d < SN_STRATEGY_DEFAULTS; d++) {
    char name[SN_STRATEGY_TEXT];
    uint32_t found = 0;
    sn_strategy_name(sn_strategy_default(d), name);
    for (uint32_t i = 0; i < SN_ADVISE_STRATEGIES; i++) found += strcmp(name, names[i]) == 0;
    assert_int_equal(found, 1);
  }
}

/* What takes long to plan is left out where there are many layers. */
static void large_networks_have_fewer(void **state) {
  (void)state;
  sn_net *small = load_net("resnet152", 1), *large = load_net("resnet:n3=100", 1);
  assert_int_equal(sn_advise_count(small), SN_ADVISE_STRATEGIES);
  assert_int_equal(sn_advise_count(large), SN_ADVISE_STRATEGIES - 1);
  for (uint32_t i = 0; i < sn_advise_count(large); i++) assert_false(sn_strategy_adapts(sn_advise_strategy(i)));
  assert_true(sn_strategy_adapts(sn_advise_strategy(SN_ADVISE_STRATEGIES - 1)));
  sn_net_free(small);
  sn_net_free(large);
}

/* Only what is asked for is tried. */
static void strategies_can_be_chosen(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_net *net = load_net("alexnet", 200);
  sn_device device = load_gpu("k40c");
  const sn_options options = SN_OPTIONS_INIT;
  const sn_strategy asked[] = {parse_strategy("liveness+offload"), parse_strategy("superneurons")};
  sn_advice *advice = sn_advise(net, &device, asked, 2, &options, &err);
  must(&err);
  assert_true(advice->n_all > 2 * SN_WORKSPACE_COUNT);
  for (uint32_t i = 0; i < advice->n_all; i++)
    assert_true(sn_strategy_same(advice->all[i].strategy, asked[0]) ||
                sn_strategy_same(advice->all[i].strategy, asked[1]));
  sn_advice_free(advice);
  sn_net_free(net);
}

/* PyTorch's allocator and graph have a bound of their own; so has inference. */
static void other_graphs_have_a_bound(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_net *net = load_net("resnet18", 16);
  sn_device device = load_gpu("v100_16");
  for (int inference = 0; inference < 2; inference++) {
    sn_options options = SN_OPTIONS_INIT;
    options.iteration.inference = inference;
    sn_planner *planner = sn_planner_new(net, &device, &options, &err);
    for (uint32_t i = 0; i < SN_STRATEGY_FRAMEWORKS; i++) {
      sn_strategy s = sn_strategy_framework(i);
      uint64_t bound = 0, least = 0;
      if (sn_strategy_refuses(s, options.iteration)) continue;
      sn_planner_bound(planner, s, &bound, &err);
      sn_planner_least(planner, s, &least, &err);
      must(&err);
      assert_true(bound > 0 && bound <= least);
    }
    sn_planner_free(planner);
  }
  sn_net_free(net);
}

/* On cores, `path` is faster than all that run one operation after another, and with recomputation the leaner. */
static void cores_run_side_by_side(void **state) {
  (void)state;
  sn_net *net = load_net("inception_v3", 16);
  sn_device device = load_gpu("knl7250");
  sn_options options = SN_OPTIONS_INIT;
  sn_strategy all[SN_ADVISE_STRATEGIES + SN_ADVISE_CORUN];
  assert_int_equal(sn_advise_all(net, &device, &options, all), SN_ADVISE_STRATEGIES + SN_ADVISE_CORUN);
  options.iteration.accumulate = 2;
  assert_int_equal(sn_advise_all(net, &device, &options, all), SN_ADVISE_STRATEGIES);
  options.iteration.accumulate = 1;
  sn_advice *advice = advise_all(net, &device, &options);
  check_front(advice);
  check_best(advice);
  assert_true(sn_strategy_is_corun(advice->best->strategy));
  const sn_combination *second = &advice->all[advice->front[1]];
  assert_true(sn_strategy_is_corun(second->strategy) && second->strategy.recompute == SN_RECOMPUTE_SPEED);
  sn_advice_free(advice);
  sn_net_free(net);
}

/* PyTorch's allocator takes less where there is less. recompute=optimal that has nothing to re-run there is no row. */
static void optimal_re_runs(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_net *net = load_net("mobilenet_v3_large", 64);
  sn_device device = load_gpu("k40c");
  const sn_options options = SN_OPTIONS_INIT;
  const sn_strategy asked[] = {parse_strategy("pytorch"), parse_strategy("pytorch+recompute=optimal")};
  sn_advice *advice = sn_advise(net, &device, asked, 2, &options, &err);
  must(&err);
  uint32_t limited = 0;
  for (uint32_t i = 0; i < advice->n_all; i++) {
    if (!advice->all[i].limited) continue;
    assert_true(advice->all[i].result->recomputed_layers > 0);
    limited++;
  }
  assert_true(limited > 0);
  assert_true(sn_strategy_same(advice->best->strategy, asked[0]));
  sn_advice_free(advice);
  sn_net_free(net);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(front_is_complete_and_nothing_else),
      cmocka_unit_test(tries_every_strategy_once),
      cmocka_unit_test(large_networks_have_fewer),
      cmocka_unit_test(strategies_can_be_chosen),
      cmocka_unit_test(cores_run_side_by_side),
      cmocka_unit_test(optimal_re_runs),
      cmocka_unit_test(other_graphs_have_a_bound),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
