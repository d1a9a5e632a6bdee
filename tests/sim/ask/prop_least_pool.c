/* Narrow caches: what is known of their plans without making them, over random nets and pools, against plans; and the
 * least pool found for them (sim/ask/least_pool.h) against a search that makes every plan.
 *
 *   SN_SEED        seed of the first net; the others follow (default: 1)
 *   SN_PROP_NETS   how many nets (default 300, at most that) */
#include "base/checked.h"
#include "sim/ask/least_pool.h"
#include "sim/make/fullest.h"
#include "tests/support/pipeline.h"
#include "tests/support/random_net.h"
#include "tests/support/seed.h"

#include <inttypes.h>

enum { NETS = 300, POOLS = 6 };

typedef struct trial {
  uint64_t seed;
  sn_route *route;
  sn_costs *costs;
  sn_schedule *schedule;
  sn_strategy strategy;
  sn_workspace workspace;
  uint64_t floor, bound;
} trial;

/* How often a pool was too small for what cannot leave, for that and its holes; how often less was enough. */
typedef struct tally {
  uint64_t bound, holes, lucky;
} tally;

#define FAIL(t, format, ...)                                                                                           \
  fail_msg("SN_SEED=%" PRIu64 " SN_PROP_NETS=1: workspace %s: " format, (t)->seed, sn_workspace_name((t)->workspace),  \
           __VA_ARGS__)

static uint64_t planned(const trial *t, sn_strategy strategy, const sn_schedule *schedule, uint64_t pool_bytes) {
  sn_err err = SN_ERR_INIT;
  sn_plan *plan = sn_lower(schedule, strategy, t->workspace, t->costs, pool_bytes, &err);
  must(&err);
  uint64_t needed = plan->pool_bytes;
  sn_plan_free(plan);
  return needed;
}

static uint64_t need(const trial *t, uint64_t pool_bytes) {
  return planned(t, t->strategy, t->schedule, pool_bytes);
}

static uint64_t booked(const trial *t, sn_strategy strategy, const sn_schedule *schedule, uint64_t pool_bytes,
                       bool only_fits) {
  sn_err err = SN_ERR_INIT;
  uint64_t needed = 0;
  sn_lower_need(schedule, strategy, t->workspace, t->costs, pool_bytes, only_fits, &needed, &err);
  must(&err);
  return needed;
}

/* ---- the books alone ---- */

static void expect_booked(const trial *t, sn_strategy strategy, const sn_schedule *schedule, uint64_t pool_bytes) {
  char name[SN_STRATEGY_TEXT];
  uint64_t needed = planned(t, strategy, schedule, pool_bytes);
  uint64_t all = booked(t, strategy, schedule, pool_bytes, false);
  uint64_t fits = booked(t, strategy, schedule, pool_bytes, true);
  if (all != needed || (needed <= pool_bytes ? fits != needed : fits <= pool_bytes))
    FAIL(t, "%s in %" PRIu64 " bytes: the plan needs %" PRIu64 ", the books say %" PRIu64 " and %" PRIu64,
         sn_strategy_name(strategy, name), pool_bytes, needed, all, fits);
}

static void expect_all_booked(const trial *t, uint64_t pool_bytes) {
  for (uint32_t i = 0; i < SN_STRATEGY_DEFAULTS + SN_STRATEGY_SYSTEMS; i++) {
    sn_err err = SN_ERR_INIT;
    bool system = i >= SN_STRATEGY_DEFAULTS;
    sn_strategy s = system ? sn_strategy_system(i - SN_STRATEGY_DEFAULTS) : sn_strategy_default(i);
    sn_schedule *schedule = sn_schedule_new(t->route, s.recompute, &err);
    must(&err);
    expect_booked(t, s, schedule, pool_bytes);
    sn_schedule_free(schedule);
  }
}

/* ---- the search ---- */

/* By plans alone: up from the floor to the first that is enough; the least of 15 places below; down from there. */
static uint64_t least_by_plans(const trial *t) {
  uint64_t least = t->floor, pool;
  do {
    pool = least;
    least = need(t, pool);
  } while (least > pool);
  uint64_t gap = (least - sn_min(t->floor, least)) / 16, known = least;
  for (uint64_t i = 1; i < 16 && gap > 0 && least == known; i++)
    if (need(t, t->floor + i * gap) <= t->floor + i * gap) least = need(t, t->floor + i * gap);
  for (int i = 0; i < 64 && least > t->floor; i++) {
    uint64_t needed = need(t, least - SN_POOL_BLOCK);
    if (needed > least - SN_POOL_BLOCK) break;
    least = needed;
  }
  return least;
}

static uint64_t least_by_luck(const trial *t, uint64_t most) {
  sn_err err = SN_ERR_INIT;
  uint64_t least = 0;
  const sn_least_pool_wish wish = {t->schedule, t->strategy, t->costs, t->workspace, t->floor};
  sn_least_pool_find(&wish, most, &least, &err);
  must(&err);
  return least;
}

static void check_pool(const trial *t, uint64_t pool_bytes, uint64_t least, tally *sum) {
  uint64_t needed = need(t, pool_bytes), larger = pool_bytes + pool_bytes / 7;
  if (needed < t->bound) FAIL(t, "%" PRIu64 " bytes are enough, not %" PRIu64, needed, t->bound);
  if (needed <= pool_bytes) return;
  if (need(t, larger) <= pool_bytes) FAIL(t, "%" PRIu64 " bytes are not enough, but of more", pool_bytes);
  uint64_t found = least_by_luck(t, pool_bytes);
  if (least <= pool_bytes ? found != least : found <= pool_bytes)
    FAIL(t, "below %" PRIu64 " bytes %" PRIu64 " are found to be enough, by plans %" PRIu64, pool_bytes, found, least);
  sum->bound += t->bound > pool_bytes;
  sum->holes += t->bound <= pool_bytes;
  sum->lucky += least <= pool_bytes;
}

static void check_search(trial *t, uint64_t least, tally *sum) {
  uint64_t found = least_by_luck(t, UINT64_MAX);
  if (found != least) FAIL(t, "the least found is %" PRIu64 ", by plans %" PRIu64, found, least);
  check_pool(t, least - 1, least, sum);
  check_pool(t, least + SN_POOL_BLOCK, least, sum);
  if (t->bound > least || t->floor > t->bound) FAIL(t, "%" PRIu64 " bytes cannot leave", t->bound);
}

static void open_trial(trial *t, const sn_net *net, const sn_device *device) {
  sn_err err = SN_ERR_INIT;
  t->strategy = parse_strategy("superneurons-paper");
  t->route = sn_route_new(net, SN_DIALECT_SUPERNEURONS, SN_ORDER_ROUTE, &err);
  t->costs = t->route ? sn_costs_new(net, device, &err) : NULL;
  t->schedule = t->costs ? sn_schedule_new(t->route, t->strategy.recompute, &err) : NULL;
  must(&err);
}

static void turn_trial(trial *t, sn_workspace workspace) {
  sn_err err = SN_ERR_INIT;
  sn_fullest fullest;
  t->workspace = workspace;
  const sn_fullest_wish wish = {
      .schedule = t->schedule, .strategy = t->strategy, .costs = t->costs, .workspace = workspace};
  sn_fullest_find(&wish, &fullest, &err);
  must(&err);
  t->floor = sn_lower_floor(t->route, workspace, t->costs, NULL);
  t->bound = fullest.pool_bytes;
}

static void close_trial(trial *t) {
  sn_schedule_free(t->schedule);
  sn_costs_free(t->costs);
  sn_route_free(t->route);
}

/* From half of it to half as much again; not in whole blocks. */
static uint64_t random_pool(uint64_t *dice, uint64_t bytes) {
  return bytes / 2 + bytes / 1000 * prng_below(dice, 1000) + prng_below(dice, 5000);
}

static void try_net(uint64_t seed, tally *sum) {
  sn_err err = SN_ERR_INIT;
  uint64_t dice = seed;
  sn_device device;
  sn_device_known(prng_below(&dice, sn_device_count()), &device, &err);
  sn_net *net = random_net_new(&dice, &err);
  must(&err);
  trial t = {.seed = seed};
  open_trial(&t, net, &device);
  for (sn_workspace w = SN_WORKSPACE_NONE; w < SN_WORKSPACE_COUNT; w++) {
    turn_trial(&t, w);
    uint64_t least = least_by_plans(&t);
    check_search(&t, least, sum);
    for (int i = 0; i < POOLS; i++) check_pool(&t, random_pool(&dice, least), least, sum);
    expect_all_booked(&t, random_pool(&dice, least));
  }
  close_trial(&t);
  sn_net_free(net);
}

static void random_nets(void **state) {
  (void)state;
  const char *most = getenv("SN_PROP_NETS");
  uint64_t first = first_seed(1), count = most ? sn_min(strtoull(most, NULL, 10), NETS) : NETS;
  tally sum = {0};
  for (uint64_t seed = first; seed < first + count; seed++) try_net(seed, &sum);
  print_message("pools that are too small: %" PRIu64 " for what cannot leave, %" PRIu64 " for its holes, %" PRIu64
                " while less is enough\n",
                sum.bound, sum.holes, sum.lucky);
  if (count == NETS) assert_true(sum.bound && sum.holes && sum.lucky);
}

/* AlexNet on 12 GB fails by its holes, and runs with 700 MB less. */
static void less_is_enough(void **state) {
  (void)state;
  enum { BATCH = 1889 };
  const uint64_t pool = UINT64_C(9740456573), least = UINT64_C(9050519552);
  sn_net *net = load_net("alexnet", BATCH);
  sn_device device = load_gpu("k40c");
  trial t = {0};
  open_trial(&t, net, &device);
  turn_trial(&t, SN_WORKSPACE_DYNAMIC);
  assert_true(need(&t, pool) > pool);
  assert_true(least_by_luck(&t, pool) == least && need(&t, least) == least);
  close_trial(&t);
  sn_net_free(net);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(random_nets), cmocka_unit_test(less_is_enough)};
  return cmocka_run_group_tests_name("luck", tests, NULL, NULL);
}
