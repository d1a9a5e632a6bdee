/* The ways to split a network, tried by several threads: the same as by one. */
#include "sim/scale/ways.h"
#include "tests/support/pipeline.h"

#define NET "llm:8,2048,16,16,5632,8000"
enum { BATCH = 2, TOKENS = 128 };

static sn_ways *split(const sn_net *net, const sn_device *device, uint32_t threads) {
  sn_err err = SN_ERR_INIT;
  const sn_strategy strategies[] = {parse_strategy("pytorch"), parse_strategy("pytorch+recompute=units")};
  sn_options options = SN_OPTIONS_INIT;
  options.iteration.accumulate = 16;
  sn_optimizer_parse("adamw", &options.iteration.optimizer, &err);
  must(&err);
  const sn_ways_wish wish = {.spec = NET,
                             .image = TOKENS,
                             .net = net,
                             .device = device,
                             .options = &options,
                             .gpus = 8,
                             .strategies = strategies,
                             .n_strategies = 2,
                             .threads = threads};
  sn_ways *ways = sn_ways_find(&wish, &err);
  must(&err);
  return ways;
}

/* Some have meshes that do not fit. */
static void threads_change_nothing(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_net *net = sn_net_load(NET, BATCH, TOKENS, &err);
  must(&err);
  sn_device device = load_gpu("h100_sxm");
  device.memory_bytes = UINT64_C(5) << 30;
  sn_ways *one = split(net, &device, 1), *four = split(net, &device, 4);
  assert_int_equal(one->n_all, four->n_all);
  assert_int_equal(one->meshes, four->meshes);
  assert_true(one->n_all > 0 && one->all[0].fits && !one->all[one->n_all - 1].fits);
  for (uint32_t i = 0; i < one->n_all; i++) {
    const sn_way *a = &one->all[i], *b = &four->all[i];
    assert_string_equal(a->mesh.text, b->mesh.text);
    assert_int_equal(a->batch, b->batch);
    assert_int_equal(a->device_bytes, b->device_bytes);
    assert_true(a->images_per_second == b->images_per_second && a->on_front == b->on_front && a->best == b->best);
    assert_true(sn_strategy_same(a->strategy, b->strategy));
  }
  sn_ways_free(one);
  sn_ways_free(four);
  sn_net_free(net);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(threads_change_nothing)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
