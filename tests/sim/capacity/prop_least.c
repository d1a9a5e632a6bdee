/* The least memory of a strategy, over random nets, strategies and workspaces: with that much and with more it runs,
 * with less it does not, and whoever is asked - run, planner, fit - says the same.
 *
 *   SN_SEED        seed of the first net; the others follow (default: 1)
 *   SN_PROP_NETS   how many nets (default 100) */
#include "sim/ask/simulate.h"
#include "sim/capacity/fit.h"
#include "tests/support/pipeline.h"
#include "tests/support/random_net.h"
#include "tests/support/seed.h"

#include <inttypes.h>

enum { CHECKPOINTS = SN_RECOMPUTE_COST + 1, NETS = 100, TRIES = 4, BLOCKS_AWAY = 200 };
enum { STRATEGIES = SN_STRATEGY_DEFAULTS + SN_STRATEGY_SYSTEMS + CHECKPOINTS };

static void fill_strategies(sn_strategy *strategies) {
  for (uint32_t i = 0; i < SN_STRATEGY_DEFAULTS; i++) *strategies++ = sn_strategy_default(i);
  for (uint32_t i = 0; i < SN_STRATEGY_SYSTEMS; i++) *strategies++ = sn_strategy_system(i);
  for (uint32_t i = 0; i < CHECKPOINTS; i++)
    *strategies++ =
        (sn_strategy){.liveness = SN_LIVENESS_FULL, .offload = SN_OFFLOAD_CHECKPOINTS, .recompute = (sn_recompute)i};
}

typedef struct trial {
  uint64_t seed, *dice;
  sn_workspace workspace;
  sn_planner *planner;
} trial;

static void expect_fits(const trial *t, sn_strategy strategy, uint64_t memory_bytes, bool fits, uint64_t least) {
  sn_err err = SN_ERR_INIT;
  sn_need need;
  char name[SN_STRATEGY_TEXT];
  if (sn_planner_need(t->planner, strategy, memory_bytes, &need, &err) != SN_OK) fail_msg("%s", err.text);
  if (need.fits != fits)
    fail_msg("SN_SEED=%" PRIu64 " SN_PROP_NETS=1: %s, workspace %s: the least is %" PRIu64 " bytes, and with %" PRIu64
             " it %s",
             t->seed, sn_strategy_name(strategy, name), sn_workspace_name(t->workspace), least, memory_bytes,
             need.fits ? "fits" : "does not fit");
}

/* Asked whether it fits, the planner says what the plan does, though often without one. */
static void expect_foreseen(const trial *t, sn_strategy strategy, uint64_t memory_bytes) {
  sn_err err = SN_ERR_INIT;
  sn_need need, sooner;
  char name[SN_STRATEGY_TEXT];
  if (sn_planner_need(t->planner, strategy, memory_bytes, &need, &err) != SN_OK ||
      sn_planner_fits(t->planner, strategy, memory_bytes, &sooner, &err) != SN_OK)
    fail_msg("%s", err.text);
  if (sooner.fits != need.fits || sooner.slack_bytes != need.slack_bytes || sooner.guessed != need.guessed)
    fail_msg("SN_SEED=%" PRIu64 " SN_PROP_NETS=1: %s, workspace %s, in %" PRIu64 " bytes: foreseen are %d and %" PRId64
             " bytes of slack, planned %d and %" PRId64,
             t->seed, sn_strategy_name(strategy, name), sn_workspace_name(t->workspace), memory_bytes, sooner.fits,
             sooner.slack_bytes, need.fits, need.slack_bytes);
}

/* From half of the least to half as much again. */
static void try_foreseeing(const trial *t, sn_strategy strategy, uint64_t least) {
  for (int i = 0; i < TRIES; i++) {
    uint64_t more = SN_POOL_BLOCK * prng_from(t->dice, 0, (uint32_t)(least / SN_POOL_BLOCK));
    expect_foreseen(t, strategy, least / 2 + more);
  }
  expect_foreseen(t, strategy, least);
  expect_foreseen(t, strategy, least - 1);
}

/* A narrow cache may by luck run with less (sim/ask/simulate.h). */
static void try_around(const trial *t, sn_strategy strategy, uint64_t least) {
  expect_fits(t, strategy, least, true, least);
  for (int i = 0; i < TRIES; i++)
    expect_fits(t, strategy, least + SN_POOL_BLOCK * prng_from(t->dice, 1, BLOCKS_AWAY), true, least);
  if (strategy.offload == SN_OFFLOAD_NARROW_CACHE) return;
  expect_fits(t, strategy, least - SN_POOL_BLOCK, false, least);
  for (int i = 0; i < TRIES; i++) {
    uint64_t less = SN_POOL_BLOCK * prng_from(t->dice, 1, BLOCKS_AWAY);
    if (less < least) expect_fits(t, strategy, least - less, false, least); /* a device without a context has little */
  }
}

static void check_workspace(trial *t, const sn_net *net, const sn_device *device, const sn_strategy *strategies) {
  sn_err err = SN_ERR_INIT;
  const sn_options options = {.workspace = t->workspace};
  t->planner = sn_planner_new(net, device, &options, &err);
  sn_run *run = sn_simulate("random", net, device, strategies, STRATEGIES, &options, &err);
  sn_memory *memory = sn_fit_memory(net, device, strategies, STRATEGIES, &options, &err);
  if (!t->planner || !run || !memory) fail_msg("SN_SEED=%" PRIu64 ": %s", t->seed, err.text);
  for (uint32_t i = 0; i < STRATEGIES; i++) {
    const sn_result *r = &run->results[i];
    char name[SN_STRATEGY_TEXT];
    if (r->least_device_bytes != memory->answers[i].memory_bytes)
      fail_msg("SN_SEED=%" PRIu64 " SN_PROP_NETS=1: %s: a run says that %" PRIu64 " bytes are the least, fit %" PRIu64,
               t->seed, sn_strategy_name(strategies[i], name), r->least_device_bytes, memory->answers[i].memory_bytes);
    assert_int_equal(r->fits, r->least_device_bytes <= device->memory_bytes);
    assert_true(memory->answers[i].result->fits);
    try_around(t, strategies[i], r->least_device_bytes);
    try_foreseeing(t, strategies[i], r->least_device_bytes);
  }
  sn_memory_free(memory);
  sn_run_free(run);
  sn_planner_free(t->planner);
}

static void test_least(void **state) {
  (void)state;
  sn_strategy strategies[STRATEGIES];
  uint64_t first = first_seed(1), count = case_count(NETS);
  fill_strategies(strategies);
  for (uint64_t seed = first; seed < first + count; seed++) {
    sn_err err = SN_ERR_INIT;
    uint64_t dice = seed;
    sn_device device;
    sn_device_known(prng_below(&dice, sn_device_count()), &device, &err);
    sn_net *net = random_net_new(&dice, &err);
    if (!net) fail_msg("SN_SEED=%" PRIu64 ": %s", seed, err.text);
    /* about what such a net needs, so that some fit and others do not */
    device.memory_bytes = device.context_bytes + 4 * UINT64_C(3) * net->parameters + prng_from(&dice, 1, 4000) * 1024u;
    for (sn_workspace w = SN_WORKSPACE_NONE; w < SN_WORKSPACE_COUNT; w++)
      check_workspace(&(trial){seed, &dice, w, NULL}, net, &device, strategies);
    sn_net_free(net);
  }
}

/* Of what is planned for the memory there is, and of PyTorch's rows, whose plans are not the same with a little more
 * or less: the least that is named fits, a block less does not, and a run names it, too. */
static void check_adapting(uint64_t seed, const sn_net *net, const sn_device *device, const sn_options *options,
                           const sn_strategy *strategies, uint32_t count) {
  sn_err err = SN_ERR_INIT;
  char name[SN_STRATEGY_TEXT];
  sn_run *run = sn_simulate("random", net, device, strategies, count, options, &err);
  sn_memory *memory = sn_fit_memory(net, device, strategies, count, options, &err);
  if (!run || !memory) fail_msg("SN_SEED=%" PRIu64 ": %s", seed, err.text);
  for (uint32_t i = 0; i < count; i++) {
    const sn_memory_answer *a = &memory->answers[i];
    if (!a->verified || run->results[i].least_device_bytes != a->memory_bytes)
      fail_msg("SN_SEED=%" PRIu64 " SN_PROP_NETS=1: %s: the least is %" PRIu64 " bytes%s; a run says %" PRIu64, seed,
               sn_strategy_name(a->strategy, name), a->memory_bytes,
               a->verified ? "" : ", and does not fit, or with a block less it fits",
               run->results[i].least_device_bytes);
  }
  sn_memory_free(memory);
  sn_run_free(run);
}

static void test_adapting(void **state) {
  (void)state;
  const sn_strategy pytorch[] = {parse_strategy("pytorch"), parse_strategy("pytorch+recompute=units"),
                                 parse_strategy("pytorch+recompute=optimal"),
                                 parse_strategy("liveness+recompute=optimal")};
  const sn_strategy corun[] = {parse_strategy("liveness+corun=path"), parse_strategy("liveness+corun=s12")};
  uint64_t first = first_seed(1), count = case_count(NETS);
  for (uint64_t seed = first; seed < first + count; seed++) {
    sn_err err = SN_ERR_INIT;
    uint64_t dice = seed;
    const sn_device gpu = load_gpu("rtx3090"), cores = load_gpu("knl7250");
    sn_options options = SN_OPTIONS_INIT;
    sn_net *net = random_net_new(&dice, &err);
    if (!net) fail_msg("SN_SEED=%" PRIu64 ": %s", seed, err.text);
    check_adapting(seed, net, &gpu, &options, pytorch, sizeof pytorch / sizeof pytorch[0]);
    options.corun.reuse = SN_REUSE_FREE;
    options.corun.budget_bytes = SN_BUDGET_ANY;
    check_adapting(seed, net, &cores, &options, corun, sizeof corun / sizeof corun[0]);
    sn_net_free(net);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_least), cmocka_unit_test(test_adapting)};
  return cmocka_run_group_tests_name("the least memory", tests, NULL, NULL);
}
