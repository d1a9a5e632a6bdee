/* recompute=optimal in PyTorch's graph: chains of blocks against every choice of regions, networks against
 * recompute=units.
 *
 *   SN_SEED        of the first net (default: 1)
 *   SN_PROP_NETS   random nets (default: 60)
 *
 * The search through all choices knows no loads of units: each choice is a schedule, and its load is counted. */
#include "base/checked.h"

#include "models/op/op.h"
#include "sim/graph/route.h"
#include "sim/schedule/schedule_checkpoints.h"
#include "sim/schedule/units.h"
#include "tests/support/plan_in.h"
#include "tests/support/prng.h"
#include "tests/support/seed.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_UNITS = 6, BUDGETS = 4 };

static uint64_t first;
static uint32_t n_nets;

/* 2 to 5 blocks of CONV, ACT, BN and LRN, each with a POOL behind it, and an FC. */
static void throw_blocks(uint64_t *dice, char *text, size_t room) {
  uint32_t blocks = prng_from(dice, 2, 5), channels = prng_from(dice, 1, 16);
  uint32_t height = prng_from(dice, 32, 64);
  size_t used = (size_t)snprintf(
      text, room, "{\"snsim_net\": 1, \"name\": \"blocks\", \"input\": [%u, %u, 64], \"layers\": [", channels, height);
  for (uint32_t b = 0; b < blocks; b++) {
    uint32_t layers = prng_from(dice, 1, 5);
    for (uint32_t i = 0; i < layers; i++) {
      uint32_t kind = prng_below(dice, 5), wide = prng_from(dice, 1, 64);
      static const char *const ops[] = {"ACT", "BN", "LRN"};
      if (kind < 2)
        used += (size_t)snprintf(
            text + used, room - used,
            "{\"name\": \"l%u_%u\", \"op\": \"CONV\", \"channels\": %u, \"kernel\": 3, \"pad\": 1}, ", b, i, wide);
      else
        used +=
            (size_t)snprintf(text + used, room - used, "{\"name\": \"l%u_%u\", \"op\": \"%s\"}, ", b, i, ops[kind - 2]);
    }
    uint32_t stride = prng_from(dice, 1, 2);
    used += (size_t)snprintf(text + used, room - used,
                             "{\"name\": \"pool%u\", \"op\": \"POOL\", \"kernel\": 2, \"stride\": %u}, ", b, stride);
  }
  snprintf(text + used, room - used,
           "{\"name\": \"fc\", \"op\": \"FC\", \"channels\": %u}, {\"name\": \"loss\", \"op\": \"SOFTMAX\"}]}",
           prng_from(dice, 2, 100));
}

static pipeline open_eager(const char *net, uint32_t batch) {
  sn_err err = SN_ERR_INIT;
  pipeline p = pipeline_open(net, batch);
  sn_route_free(p.route);
  p.route = sn_route_new(p.net, SN_DIALECT_PYTORCH, SN_ORDER_ROUTE, &err);
  must(&err);
  return p;
}

/* What a schedule runs again. */
static int64_t again_ns(const pipeline *p, const sn_schedule *schedule) {
  int64_t ns = 0;
  for (uint32_t e = 0; e < schedule->n_executions; e++) {
    const sn_execution *x = &schedule->executions[e];
    uint8_t algo[2] = {SN_CONV_ALGOS, SN_CONV_ALGOS};
    uint32_t layer = p->route->steps[x->step].layer, count;
    if (!x->rerun) continue;
    if (sn_op_of(&p->net->layers[layer])->convolves)
      algo[0] = (uint8_t)sn_costs_conv(p->costs, layer, SN_CONV_FORWARD, &count)[0].algo;
    ns += sn_costs_step(p->costs, layer, SN_FORWARD, algo);
  }
  return ns;
}

/* Of the fastest algorithms. */
static uint64_t workspace_of(const pipeline *p, const sn_step *step) {
  uint64_t bytes = 0;
  if (!sn_op_of(&p->net->layers[step->layer])->convolves) return 0;
  for (sn_conv_kernel k = 0; k < SN_CONV_KERNELS; k++) {
    uint32_t count;
    if ((k == SN_CONV_FORWARD) != (step->pass == SN_FORWARD)) continue;
    bytes = sn_max(bytes, sn_pool_round(sn_costs_conv(p->costs, step->layer, k, &count)[0].workspace));
  }
  return bytes;
}

/* The largest sum of tensors and workspace, step by step. */
static uint64_t load_of(const pipeline *p, const sn_schedule *schedule) {
  const sn_route *route = p->route;
  bool *there = calloc((size_t)route->n_tensors + 1, sizeof *there);
  uint64_t load = 0, most = 0;
  assert_non_null(there);
  for (uint32_t e = 0; e < schedule->n_executions; e++) {
    const sn_execution *x = &schedule->executions[e];
    const sn_step *step = &route->steps[x->step];
    for (int end = 0; end < 2; end++) {
      for (uint32_t i = 0; i < step->n_accesses; i++) {
        uint32_t t = route->accesses[step->first_access + i].tensor;
        uint64_t bytes = sn_pool_round(route->tensors[t].bytes);
        if (!end && !there[t]) there[t] = true, load += bytes;
        if (end && schedule->last_use[x->first_last_use + i]) there[t] = false, load -= bytes;
      }
      if (!end) most = sn_max(most, load + workspace_of(p, step));
    }
  }
  free(there);
  return most;
}

/* The least time within `bytes`, of every way to cut the units into regions and to run these again or not. INT64_MAX:
 * none is possible. */
static int64_t search(const pipeline *p, const sn_units *units, uint64_t bytes) {
  int64_t best = INT64_MAX;
  for (uint32_t cuts = 0; cuts < 1u << (units->count - 1); cuts++)
    for (uint32_t mask = 0; mask < 1u << units->count; mask++) {
      sn_err err = SN_ERR_INIT;
      uint32_t firsts[MOST_UNITS + 1] = {0};
      bool again[MOST_UNITS + 1] = {false};
      sn_units regions = {.first = firsts};
      for (uint32_t u = 0; u < units->count; u++)
        if (u == 0 || cuts >> (u - 1) & 1) {
          again[regions.count] = mask >> u & 1;
          firsts[regions.count++] = units->first[u];
        }
      firsts[regions.count] = units->first[units->count];
      sn_schedule *schedule = sn_schedule_checkpoints(p->route, &regions, again, &err);
      must(&err);
      int64_t ns = again_ns(p, schedule);
      if (ns < best && load_of(p, schedule) <= bytes) best = ns;
      sn_schedule_free(schedule);
    }
  return best;
}

typedef struct tally {
  uint32_t asked, equal, missed;
  double slower; /* sum of (time - least) / forward and backward */
} tally;

static int64_t whole_ns(const pipeline *p) {
  int64_t ns = 0;
  for (uint32_t k = 0; k < p->route->first_backward; k++) {
    sn_execution once = {.step = k, .rerun = true};
    sn_schedule all = {.route = p->route, .n_executions = 1, .executions = &once};
    ns += again_ns(p, &all);
  }
  return ns > 0 ? ns : 1;
}

/* Schedules of the recurrence for a part of the memory and for what lies between: never more than that, never faster
 * than the best. */
static void ask(const pipeline *p, const sn_units *units, const sn_checkpoints *c, uint64_t bytes, uint64_t seed,
                tally *t) {
  sn_err err = SN_ERR_INIT;
  int64_t least = search(p, units, bytes), ns = INT64_MAX;
  sn_schedule *schedule = sn_checkpoints_schedule(c, bytes, &err);
  must(&err);
  if (schedule) {
    ns = again_ns(p, schedule);
    if (load_of(p, schedule) > bytes) fail_msg("SN_SEED=%" PRIu64 ": more than %" PRIu64 " bytes", seed, bytes);
    sn_schedule_free(schedule);
  }
  if (ns < least) fail_msg("SN_SEED=%" PRIu64 ": faster than the best", seed);
  if (least == INT64_MAX) return;
  t->asked++;
  t->equal += ns == least;
  t->missed += ns == INT64_MAX;
  if (ns < INT64_MAX) t->slower += (double)(ns - least) / (double)whole_ns(p);
}

static sn_schedule *schedule_of(const pipeline *p, sn_recompute recompute) {
  sn_err err = SN_ERR_INIT;
  sn_schedule *schedule = sn_schedule_new(p->route, recompute, &err);
  must(&err);
  return schedule;
}

static void blocks(void **state) {
  (void)state;
  tally t = {0};
  for (uint64_t seed = first; seed < first + n_nets; seed++) {
    sn_err err = SN_ERR_INIT;
    uint64_t dice = seed;
    char text[6000];
    throw_blocks(&dice, text, sizeof text);
    pipeline p = open_eager(text, 4);
    sn_units units;
    sn_units_find(p.route, &units, &err);
    sn_checkpoints *c = sn_checkpoints_new(p.route, NULL, &err);
    must(&err);
    sn_checkpoints_free(c);
    c = sn_checkpoints_new(p.route, p.costs, &err);
    must(&err);
    sn_schedule *none = schedule_of(&p, SN_RECOMPUTE_NONE);
    uint64_t whole = load_of(&p, none);
    for (uint32_t b = 0; b < BUDGETS && units.count > 0 && units.count <= MOST_UNITS; b++) {
      uint32_t percent = prng_from(&dice, 40, 100);
      ask(&p, &units, c, whole / 100 * percent, seed, &t);
    }
    sn_schedule_free(none);
    sn_checkpoints_free(c);
    sn_units_clear(&units);
    pipeline_close(&p);
  }
  print_message("seeds %" PRIu64 " to %" PRIu64 ": %u answers, %u equal, %u missed, %.4f %% of forward slower\n", first,
                first + n_nets - 1, t.asked, t.equal, t.missed, t.asked ? 100 * t.slower / t.asked : 0);
  assert_true(t.asked > 0);
  if (t.equal * 100 < t.asked * 80) fail_msg("equal in %u of %u", t.equal, t.asked);
}

/* ---- plans ---- */

/* At the memory of recompute=units never slower, at less never more than there is; how many are faster. */
static uint32_t compare_with_units(pipeline *p, const char *name) {
  sn_plan *units = plan_in(p, "pytorch+recompute=units", UINT64_C(1) << 50, SN_WORKSPACE_MAX);
  sn_plan *whole = plan_in(p, "pytorch", UINT64_C(1) << 50, SN_WORKSPACE_MAX);
  sn_plan *optimal = plan_in(p, "pytorch+recompute=optimal", units->pool_bytes, SN_WORKSPACE_MAX);
  int64_t ns = plan_ns(p, optimal), units_ns = plan_ns(p, units), before = ns;
  assert_true(sn_plan_fits(optimal));
  if (ns > units_ns) fail_msg("%s: %" PRId64 " ns, units %" PRId64, name, ns, units_ns);
  uint64_t low = units->pool_bytes, step = whole->pool_bytes > low ? (whole->pool_bytes - low) / 5 : 0;
  for (uint32_t i = 1; i <= 5 && step > 0; i++) {
    sn_plan *more =
        plan_in(p, "pytorch+recompute=optimal", i < 5 ? low + i * step : whole->pool_bytes, SN_WORKSPACE_MAX);
    assert_true(sn_plan_fits(more));
    before = plan_ns(p, more);
    if (before > units_ns) fail_msg("%s: slower with more", name);
    sn_plan_free(more);
  }
  assert_true(step == 0 || before == plan_ns(p, whole));
  sn_plan_free(optimal);
  sn_plan_free(whole);
  sn_plan_free(units);
  return ns < units_ns;
}

static void plans(void **state) {
  (void)state;
  static const char *const nets[] = {"tv_resnet50", "vgg16", "alexnet", "tv_resnet152", "inception_v4", "densenet121"};
  uint32_t faster = 0;
  for (size_t n = 0; n < sizeof nets / sizeof *nets; n++) {
    pipeline p = open_eager(nets[n], 16);
    faster += compare_with_units(&p, nets[n]);
    pipeline_close(&p);
  }
  assert_true(faster > 0);
  for (uint64_t seed = first; seed < first + n_nets / 4 + 1; seed++) {
    char text[6000], name[40];
    uint64_t dice = seed;
    throw_blocks(&dice, text, sizeof text);
    snprintf(name, sizeof name, "SN_SEED=%" PRIu64, seed);
    pipeline p = open_eager(text, 4);
    compare_with_units(&p, name);
    pipeline_close(&p);
  }
}

/* A known answer: with an eighth of the way from units to keeping all, these layers begin what runs again. */
static void golden(void **state) {
  (void)state;
  pipeline p = open_eager("tv_resnet50", 16);
  sn_plan *units = plan_in(&p, "pytorch+recompute=units", UINT64_C(1) << 50, SN_WORKSPACE_MAX);
  sn_plan *whole = plan_in(&p, "pytorch", UINT64_C(1) << 50, SN_WORKSPACE_MAX);
  uint64_t pool = units->pool_bytes + (whole->pool_bytes - units->pool_bytes) / 8;
  sn_plan *plan = plan_in(&p, "pytorch+recompute=optimal", pool, SN_WORKSPACE_MAX);
  char told[400] = "";
  for (uint32_t i = 0, at = SN_NONE; i < plan->n_instrs; i++) {
    const sn_instr *instr = &plan->instrs[i];
    if (instr->kind != SN_COMPUTE || !instr->rerun || instr->step == at) continue;
    at = instr->step;
    size_t used = strlen(told);
    snprintf(told + used, sizeof told - used, "%s%s", used ? " " : "",
             p.net->layers[p.route->steps[instr->id].layer].name);
  }
  assert_string_equal(told, "layer2.2.conv1 layer1.2.conv1 layer1.0.conv1 conv1");
  sn_plan_free(plan);
  sn_plan_free(whole);
  sn_plan_free(units);
  pipeline_close(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(blocks),
      cmocka_unit_test(plans),
      cmocka_unit_test(golden),
  };
  first = first_seed(1);
  n_nets = case_count(60);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
