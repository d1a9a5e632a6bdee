/* The least memory of PyTorch's rows, mostly with expandable segments, over random networks, batches, GPUs, numbers of
 * micro-batches and memories: it is enough and a KiB less is not, a row fits exactly where there is as much, and what
 * the message says is needed is more than there is. Whether a replay succeeds is not monotone in the memory, so
 * none of it follows from the rest.
 *
 *   SN_SEED        seed of the first question; the others follow (default: 1)
 *   SN_PROP_NETS   how many questions (default 40) */
#include "models/zoo/zoo.h"
#include "sim/ask/simulate.h"
#include "sim/capacity/fit.h"
#include "sim/capacity/remedy.h"
#include "tests/support/seed.h"

#include <inttypes.h>

enum { QUESTIONS = 40, MEMORIES = 4 };

typedef struct asked {
  uint64_t seed;
  const char *spec;
  sn_net *net;
  sn_device device;
  sn_options options;
  sn_strategy strategy;
} asked;

static void fail_about(const asked *a, const char *what, uint64_t least) {
  fail_msg("SN_SEED=%" PRIu64 " SN_PROP_NETS=1: %s, batch %" PRIu32 ", --accumulate %" PRIu32 " on %s with %" PRIu64
           " bytes: %s (%" PRIu64 ")",
           a->seed, a->spec, a->net->batch, a->options.iteration.accumulate, a->device.name, a->device.memory_bytes,
           what, least);
}

static asked draw(uint64_t seed) {
  static const char *const nets[] = {"alexnet",         "resnet50",        "tv_resnet18", "tv_vgg16", "tv_densenet121",
                                     "tv_mobilenet_v2", "efficientnet_b0", "gpt2",        "unet"};
  static const char *const strategies[] = {"pytorch", "pytorch", "pytorch+recompute=units", "pytorch+offload"};
  sn_err err = SN_ERR_INIT;
  uint64_t dice = seed;
  asked a = {.seed = seed, .spec = nets[prng_below(&dice, sizeof nets / sizeof nets[0])]};
  bool large = a.spec[0] == 'g' || a.spec[0] == 'u';
  a.net = sn_net_load(a.spec, prng_from(&dice, 1, large ? 4 : 40), 0, &err);
  if (!a.net || sn_device_known(prng_below(&dice, sn_device_count()), &a.device, &err) != SN_OK ||
      sn_strategy_parse(strategies[prng_below(&dice, 4)], &a.strategy, &err) != SN_OK)
    fail_msg("SN_SEED=%" PRIu64 ": %s", seed, err.text);
  a.options.allocator = prng_chance(&dice, 70) ? SN_ALLOCATOR_EXPANDABLE : SN_ALLOCATOR_PYTORCH;
  a.options.iteration.accumulate = prng_from(&dice, 1, 3);
  return a;
}

static bool fits_in(const asked *a, sn_planner *planner, uint64_t memory_bytes) {
  sn_err err = SN_ERR_INIT;
  sn_need need;
  if (sn_planner_need(planner, a->strategy, memory_bytes, &need, &err) != SN_OK) fail_msg("%s", err.text);
  return need.fits;
}

/* Enough, and a KiB less is not. */
static void expect_edge(const asked *a, sn_planner *planner, uint64_t least) {
  if (!fits_in(a, planner, least)) fail_about(a, "does not run with the least", least);
  if (fits_in(a, planner, least - 1024)) fail_about(a, "runs with a KiB less than the least", least);
}

static void expect_message(const asked *a, const sn_result *result) {
  sn_err err = SN_ERR_INIT;
  const sn_result *results[] = {result};
  for (int known = 0; known < 2; known++) {
    const sn_asked question = {.spec = a->spec,
                               .net = a->net,
                               .device = &a->device,
                               .options = &a->options,
                               .strategies = &a->strategy,
                               .results = known ? results : NULL,
                               .n_strategies = 1};
    sn_remedy remedy;
    if (sn_remedy_find(&question, &remedy, &err) != SN_OK) fail_msg("%s", err.text);
    if (remedy.needed_bytes <= remedy.usable_bytes)
      fail_about(a, "needed is no more than there is", remedy.needed_bytes);
  }
}

/* The row of a GPU with so much memory. */
static void check_row(asked *a, sn_planner *planner, uint64_t memory_bytes) {
  sn_err err = SN_ERR_INIT;
  a->device.memory_bytes = memory_bytes;
  sn_run *run = sn_simulate(a->spec, a->net, &a->device, &a->strategy, 1, &a->options, &err);
  if (!run) fail_msg("SN_SEED=%" PRIu64 ": %s", a->seed, err.text);
  const sn_result *r = &run->results[0];
  if (r->fits != (r->least_device_bytes <= memory_bytes))
    fail_about(a, r->fits ? "fits in less than the least" : "the least does not fit", r->least_device_bytes);
  expect_edge(a, planner, r->least_device_bytes);
  if (!r->fits && a->seed % 8 == 0) expect_message(a, r); /* it looks for other batches, which takes its time */
  sn_run_free(run);
}

/* Where it gets tight, and where there is enough. */
static void check_question(asked *a) {
  sn_err err = SN_ERR_INIT;
  uint64_t dice = a->seed + 1000;
  sn_planner *planner = sn_planner_new(a->net, &a->device, &a->options, &err);
  sn_memory *memory = sn_fit_memory(a->net, &a->device, &a->strategy, 1, &a->options, &err);
  if (!planner || !memory) fail_msg("SN_SEED=%" PRIu64 ": %s", a->seed, err.text);
  uint64_t least = memory->answers[0].memory_bytes;
  if (!memory->answers[0].verified) fail_about(a, "fit does not hold its answer for proved", least);
  expect_edge(a, planner, least);
  for (int i = 0; i < MEMORIES; i++) check_row(a, planner, least + prng_from(&dice, 1, 20) * (UINT64_C(1) << 20));
  check_row(a, planner, least - prng_from(&dice, 1, 60) * (UINT64_C(1) << 19));
  sn_memory_free(memory);
  sn_planner_free(planner);
}

static void test_expandable(void **state) {
  (void)state;
  uint64_t first = first_seed(1), count = case_count(QUESTIONS);
  for (uint64_t seed = first; seed < first + count; seed++) {
    asked a = draw(seed);
    check_question(&a);
    sn_net_free(a.net);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_expandable)};
  return cmocka_run_group_tests_name("expandable segments", tests, NULL, NULL);
}
