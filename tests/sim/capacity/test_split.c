/* Splits against brute force: each is what the simulator says of so many batches of so many images; they are the
 * fewest parts with which each strategy fits, but for those that another split beats. */
#include "sim/ask/simulate.h"
#include "sim/capacity/split.h"
#include "tests/support/pipeline.h"

#include <stdio.h>
#include <string.h>

typedef struct subject {
  const char *net, *gpu;
  uint32_t batch, mib; /* of the device; 0: all it has */
  uint32_t accumulate; /* asked for already; 0: no */
} subject;

static sn_result simulate(const subject *s, const sn_device *device, sn_strategy strategy, uint32_t parts) {
  sn_err err = SN_ERR_INIT;
  sn_options options = SN_OPTIONS_INIT;
  options.iteration.accumulate = parts * (s->accumulate ? s->accumulate : 1);
  sn_net *net = load_net(s->net, s->batch / parts);
  sn_run *run = sn_simulate(s->net, net, device, &strategy, 1, &options, &err);
  must(&err);
  sn_result r = run->results[0];
  sn_run_free(run);
  sn_net_free(net);
  return r;
}

static bool is_among(const sn_splits *splits, sn_strategy strategy, uint32_t parts) {
  for (uint32_t i = 0; i < splits->count; i++)
    if (splits->all[i].parts == parts && sn_strategy_same(splits->all[i].strategy, strategy)) return true;
  return false;
}

/* By one that is there: as fast with as little. */
static bool is_beaten(const sn_splits *splits, const sn_result *r) {
  for (uint32_t i = 0; i < splits->count; i++) {
    const sn_result *other = splits->all[i].result;
    if (other->iteration_ns <= r->iteration_ns && other->peak_device_bytes <= r->peak_device_bytes) return true;
  }
  return false;
}

static void check_found(const subject *s, const sn_device *device, const sn_splits *splits) {
  for (uint32_t i = 0; i < splits->count; i++) {
    const sn_split *split = &splits->all[i];
    sn_result r = simulate(s, device, split->strategy, split->parts);
    assert_int_equal((uint64_t)split->parts * split->batch, s->batch);
    assert_true(r.fits && split->result->fits);
    assert_int_equal(r.peak_device_bytes, split->result->peak_device_bytes);
    assert_int_equal(r.iteration_ns, split->result->iteration_ns);
    if (i == 0) continue;
    assert_true(split->result->iteration_ns >= splits->all[i - 1].result->iteration_ns);
    assert_true(split->result->peak_device_bytes < splits->all[i - 1].result->peak_device_bytes);
  }
}

/* Of each strategy the fewest parts are there, or beaten. */
static void check_fewest(const subject *s, const sn_device *device, const sn_strategy *strategies, uint32_t count,
                         const sn_splits *splits) {
  for (uint32_t n = 0; n < count; n++) {
    uint32_t found = 0;
    for (uint32_t parts = 2; parts <= s->batch; parts++) {
      if (s->batch % parts > 0) continue;
      sn_result r = simulate(s, device, strategies[n], parts);
      if (!r.fits) continue;
      bool among = is_among(splits, strategies[n], parts);
      assert_true(found++ < SN_SPLITS_EACH ? among || is_beaten(splits, &r) : !among);
    }
  }
}

static void every_split_is_what_the_simulator_says(void **state) {
  (void)state;
  static const subject subjects[] = {
      {"lenet", "k40c", 60, 0, 0},    {"alexnet", "k40c", 96, 1700, 0},     {"tv_resnet18", "v100_16", 64, 2500, 0},
      {"lenet", "v100_16", 12, 0, 3}, {"resnet18", "v100_16", 64, 1500, 2}, {"alexnet", "k40c", 7, 0, 0},
  };
  const sn_strategy strategies[] = {sn_strategy_framework(0), {.liveness = SN_LIVENESS_FULL}, sn_strategy_default(12)};
  uint32_t some = 0;
  for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++) {
    const subject *s = &subjects[i];
    sn_err err = SN_ERR_INIT;
    sn_options options = SN_OPTIONS_INIT;
    sn_device device = load_gpu(s->gpu);
    sn_net *net = load_net(s->net, s->batch);
    if (s->mib) device.memory_bytes = (uint64_t)s->mib << 20;
    options.iteration.accumulate = s->accumulate;
    const sn_asked asked = {.spec = s->net,
                            .net = net,
                            .device = &device,
                            .options = &options,
                            .strategies = strategies,
                            .n_strategies = 3};
    sn_splits *splits = sn_splits_find(&asked, &err);
    must(&err);
    check_found(s, &device, splits);
    check_fewest(s, &device, strategies, 3, splits);
    some += splits->count;
    sn_splits_free(splits);
    sn_net_free(net);
  }
  assert_true(some > 10);
}

/* What cannot be split, or strategies that do not add up gradients. */
static void there_may_be_none(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_options options = SN_OPTIONS_INIT;
  sn_device device = load_gpu("k40c");
  sn_net *one = load_net("lenet", 1), *many = load_net("lenet", 8);
  sn_strategy liveness = {.liveness = SN_LIVENESS_FULL}, singa = sn_strategy_framework(SN_STRATEGY_EXECUTED);
  sn_asked asked = {
      .spec = "lenet", .net = one, .device = &device, .options = &options, .strategies = &liveness, .n_strategies = 1};
  for (int i = 0; i < 4; i++) {
    if (i == 1) asked.net = many, asked.strategies = &singa;
    if (i == 2) asked.strategies = &liveness, options.iteration.inference = true;
    if (i == 3) options.iteration = (sn_iteration){.accumulate = SN_ITERATION_BATCHES};
    sn_splits *splits = sn_splits_find(&asked, &err);
    must(&err);
    assert_int_equal(splits->count, 0);
    sn_splits_free(splits);
  }
  sn_net_free(one);
  sn_net_free(many);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_split_is_what_the_simulator_says),
                                     cmocka_unit_test(there_may_be_none)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
