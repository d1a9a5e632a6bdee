/* recompute=sqrt, optimal and dtr: chains against a search through all schedules, nets against the checker.
 *
 *   SN_SEED        of the first net (default: 1)
 *   SN_PROP_NETS   random nets; ten times as many chains (default: 60)
 *
 * The search through all schedules knows nothing of stages: it is a shortest path over which outputs are there and how
 * far the route has come; the steps of it are to drop an output, to run the next step of the route, and to run any
 * forward step again. */
#include "base/checked.h"

#include "sim/graph/route.h"
#include "sim/memory/pool.h"
#include "sim/schedule/schedule_dtr.h"
#include "sim/schedule/schedule_optimal.h"
#include "tests/support/plan_in.h"
#include "tests/support/random_net.h"
#include "tests/support/seed.h"

#include <inttypes.h>
#include <stdlib.h>

enum { MOST_LAYERS = 8, MASKS = 1 << MOST_LAYERS, PLACES = 2 * MOST_LAYERS + 1 };

static uint64_t first;
static uint32_t n_nets;

/* ---- chains ---- */

/* A network of 3 to 8 layers, each a stage, the last a SOFTMAX. */
static void throw_chain(uint64_t *dice, char *text, size_t room) {
  uint32_t layers = prng_from(dice, 3, MOST_LAYERS), channels = prng_from(dice, 1, 64);
  uint32_t height = prng_from(dice, 16, 64), width = prng_from(dice, 16, 64);
  size_t used =
      (size_t)snprintf(text, room, "{\"snsim_net\": 1, \"name\": \"chain\", \"input\": [%u, %u, %u], \"layers\": [",
                       channels, height, width);
  for (uint32_t i = 0; i + 2 < layers; i++) {
    char layer[120];
    uint32_t kind = prng_below(dice, 8);
    if (kind < 3)
      snprintf(layer, sizeof layer, "\"CONV\", \"channels\": %u, \"kernel\": 3, \"pad\": 1", prng_from(dice, 1, 200));
    else if (kind == 3)
      snprintf(layer, sizeof layer, "\"POOL\", \"kernel\": 2, \"stride\": %u", prng_from(dice, 1, 2));
    else
      snprintf(layer, sizeof layer, "\"%s\"", (const char *const[]){"ACT", "BN", "LRN", "DROPOUT"}[kind - 4]);
    used += (size_t)snprintf(text + used, room - used, "{\"op\": %s, \"name\": \"l%u\"}, ", layer, i);
  }
  snprintf(text + used, room - used,
           "{\"name\": \"fc\", \"op\": \"FC\", \"channels\": %u}, {\"name\": \"loss\", \"op\": \"SOFTMAX\"}]}",
           prng_from(dice, 2, 5000));
}

/* ---- all schedules of a chain ---- */

typedef struct world {
  const sn_route *route;
  const sn_costs *costs;
  uint64_t memory;
  uint64_t waiting[PLACES]; /* gradients that are there ahead of each step, and behind the last */
  int64_t ns[PLACES];       /* of each step */
  int64_t best[PLACES][MASKS];
  bool open[PLACES][MASKS];
} world;

static sn_access access_at(const sn_route *route, uint32_t step, uint32_t i) {
  return route->accesses[route->steps[step].first_access + i];
}

/* Which output a tensor is; MOST_LAYERS: none. */
static uint32_t bit_of(const sn_route *route, uint32_t tensor) {
  uint32_t forward =
      route->tensors[tensor].role == SN_VALUE ? route->forward_step[route->tensors[tensor].layer] : SN_NONE;
  return forward == SN_NONE ? MOST_LAYERS : forward;
}

static uint64_t bytes_of(const sn_route *route, uint32_t tensor) {
  return sn_pool_round(route->tensors[tensor].bytes);
}

/* An output that backward changes is a gradient from there on. */
static void find_waiting(world *w) {
  const sn_route *route = w->route;
  uint32_t last[2 * MOST_LAYERS] = {0};
  bool gradient[2 * MOST_LAYERS] = {false};
  assert_true(route->n_tensors <= 2 * MOST_LAYERS && route->first_update < PLACES);
  for (uint32_t s = 0; s < route->first_update; s++)
    for (uint32_t i = 0; i < route->steps[s].n_accesses; i++) last[access_at(route, s, i).tensor] = s;
  for (uint32_t s = 0; s < route->first_update; s++) {
    w->waiting[s + 1] = 0;
    for (uint32_t i = 0; i < route->steps[s].n_accesses && s >= route->first_backward; i++)
      if (access_at(route, s, i).mode != SN_READ) gradient[access_at(route, s, i).tensor] = true;
    for (uint32_t t = 0; t < route->n_tensors; t++)
      if (gradient[t] && last[t] > s) w->waiting[s + 1] += bytes_of(route, t);
  }
}

/* Whether a step can run where the outputs of `mask` are there, and what there is then; false: no. */
static bool can_run(const world *w, uint32_t at, uint32_t step, uint32_t *mask) {
  const sn_route *route = w->route;
  uint64_t load = w->waiting[at];
  uint32_t then = *mask;
  for (uint32_t i = 0; i < route->steps[step].n_accesses; i++) {
    sn_access access = access_at(route, step, i);
    uint32_t bit = bit_of(route, access.tensor);
    if (bit == MOST_LAYERS) {
      if (access.mode == SN_WRITE) load += bytes_of(route, access.tensor); /* others wait */
      continue;
    }
    bool there = *mask & 1u << bit, output_gradient = step >= route->first_backward && bit + 1 == route->first_backward;
    if (output_gradient && at > route->first_backward) continue; /* the loss's, which waits */
    if (access.mode != SN_WRITE && !there) return false;
    if (access.mode == SN_WRITE && there) return false; /* nobody needs it twice */
    then |= 1u << bit;
  }
  for (uint32_t t = 0; t < route->n_tensors; t++) {
    uint32_t bit = bit_of(route, t);
    if (bit < MOST_LAYERS && then & 1u << bit) load += bytes_of(route, t);
  }
  if (load > w->memory) return false;
  for (uint32_t i = 0; i < route->steps[step].n_accesses && step >= route->first_backward; i++) {
    uint32_t bit = bit_of(route, access_at(route, step, i).tensor);
    if (bit < MOST_LAYERS && access_at(route, step, i).mode == SN_MODIFY) then &= ~(1u << bit);
  }
  *mask = then;
  return true;
}

static void reach(world *w, uint32_t place, uint32_t mask, int64_t ns) {
  if (ns >= w->best[place][mask]) return;
  w->best[place][mask] = ns;
  w->open[place][mask] = true;
}

static void go_on(world *w, uint32_t place, uint32_t mask) {
  int64_t ns = w->best[place][mask];
  uint32_t then = mask;
  for (uint32_t bit = 0; bit < MOST_LAYERS; bit++)
    if (mask & 1u << bit) reach(w, place, mask & ~(1u << bit), ns);
  if (can_run(w, place, place, &then)) reach(w, place + 1, then, ns + w->ns[place]);
  for (uint32_t s = 0; s < w->route->first_backward && place >= w->route->first_backward; s++) {
    then = mask;
    if (can_run(w, place, s, &then)) reach(w, place, then, ns + w->ns[s]);
  }
}

/* Place by place, the quickest first; INT64_MAX: there is no schedule. */
static int64_t search(world *w) {
  for (uint32_t p = 0; p < PLACES; p++)
    for (uint32_t m = 0; m < MASKS; m++) w->best[p][m] = INT64_MAX, w->open[p][m] = false;
  reach(w, 0, 0, 0);
  for (uint32_t p = 0; p < w->route->first_update; p++)
    for (;;) {
      uint32_t quickest = MASKS;
      for (uint32_t m = 0; m < MASKS; m++)
        if (w->open[p][m] && (quickest == MASKS || w->best[p][m] < w->best[p][quickest])) quickest = m;
      if (quickest == MASKS) break;
      w->open[p][quickest] = false;
      go_on(w, p, quickest);
    }
  int64_t best = INT64_MAX;
  for (uint32_t m = 0; m < MASKS; m++)
    if (w->best[w->route->first_update][m] < best) best = w->best[w->route->first_update][m];
  return best;
}

static int64_t step_ns(const world *w, uint32_t s) {
  const sn_step *step = &w->route->steps[s];
  uint8_t algo[2] = {SN_CONV_ALGOS, SN_CONV_ALGOS};
  const sn_conv_kernel kernels[2] = {step->pass == SN_FORWARD ? SN_CONV_FORWARD : SN_CONV_BACKWARD_DATA,
                                     SN_CONV_BACKWARD_FILTER};
  for (int k = 0; k < 2 && w->route->layers[step->layer].op == SN_CONV; k++) {
    uint32_t count;
    const sn_conv_choice *choices = sn_costs_conv(w->costs, step->layer, kernels[k], &count);
    algo[k] = (uint8_t)choices[count - 1].algo;
  }
  return sn_costs_step(w->costs, step->layer, step->pass, algo);
}

static int64_t schedule_ns(const world *w, const sn_schedule *schedule) {
  int64_t ns = 0;
  for (uint32_t e = 0; e < schedule->n_executions; e++)
    if (schedule->executions[e].step < w->route->first_update) ns += step_ns(w, schedule->executions[e].step);
  return ns;
}

typedef struct tally {
  uint32_t asked, equal, missed;
  double excess;
} tally;

/* Within the budget, and no faster than the search found. Where DTR does not get through, less of the budget may do by
 * luck. */
static bool compare_dtr(const world *w, const sn_dtr_program *program, int64_t least, uint64_t seed) {
  sn_err err = SN_ERR_INIT;
  sn_schedule *schedule = sn_schedule_dtr(w->route, program, w->memory, &err);
  must(&err);
  if (!schedule) return false;
  int64_t real = schedule_ns(w, schedule);
  uint64_t load = sn_schedule_load(schedule);
  if (real < least || load > w->memory)
    fail_msg("seed %" PRIu64 ": dtr takes %" PRId64 " ns, %" PRId64 " least, load %" PRIu64 " of %" PRIu64, seed, real,
             least, load, w->memory);
  sn_schedule_free(schedule);
  return true;
}

static void compare(const world *w, const sn_stages *stages, int64_t least, uint64_t seed, tally *all) {
  sn_err err = SN_ERR_INIT;
  sn_optimal *o = sn_optimal_new(stages, w->memory, &err);
  must(&err);
  int64_t ns = sn_optimal_ns(o, w->memory);
  if (least == INT64_MAX && ns < INT64_MAX) fail_msg("seed %" PRIu64 ": there is no schedule", seed);
  all->missed += least < INT64_MAX && ns == INT64_MAX;
  if (ns < INT64_MAX) {
    sn_schedule *schedule = sn_optimal_schedule(o, w->memory, &err);
    must(&err);
    int64_t real = schedule_ns(w, schedule);
    uint64_t load = sn_schedule_load(schedule);
    if (real > ns || ns < least || real < least || load > w->memory)
      fail_msg("seed %" PRIu64 ": %" PRId64 " ns said, %" PRId64 " real, %" PRId64 " least, load %" PRIu64
               " of %" PRIu64,
               seed, ns, real, least, load, w->memory);
    all->asked++;
    all->equal += real == least;
    all->excess += (double)real / (double)least - 1;
    sn_schedule_free(schedule);
  }
  sn_optimal_free(o);
}

/* Never better than the search through all schedules, mostly equal, and possible nearly wherever anything is. */
static void chains(void **state) {
  (void)state;
  tally all = {0};
  uint32_t by_dtr = 0;
  static world w;
  for (uint64_t k = 0; k < 10 * (uint64_t)n_nets; k++) {
    char text[2000];
    uint64_t seed = first + k, dice = seed;
    sn_err err = SN_ERR_INIT;
    throw_chain(&dice, text, sizeof text);
    pipeline p = pipeline_open(text, prng_from(&dice, 1, 32));
    sn_stages *stages = sn_stages_new(p.route, p.costs, false, &err);
    sn_schedule *whole = sn_schedule_new(p.route, SN_RECOMPUTE_NONE, &err);
    sn_dtr_program *program = sn_schedule_dtr_program(p.route, p.costs, false, &err);
    must(&err);
    assert_true(stages->count <= p.route->first_backward);
    w.route = p.route;
    w.costs = p.costs;
    find_waiting(&w);
    for (uint32_t s = 0; s < p.route->first_update; s++) w.ns[s] = step_ns(&w, s);
    for (int i = 0; i < 4; i++) {
      w.memory = sn_schedule_load(whole) * prng_from(&dice, 300, 1050) / 1000;
      int64_t least = search(&w);
      compare(&w, stages, least, seed, &all);
      by_dtr += compare_dtr(&w, program, least, seed);
    }
    sn_dtr_program_free(program);
    sn_schedule_free(whole);
    sn_stages_free(stages);
    pipeline_close(&p);
  }
  print_message("dtr gets through %u times\n", by_dtr);
  assert_true(by_dtr > 0 && by_dtr <= all.asked + all.missed);
  print_message("%u answers, %.1f %% of them the optimum, %.3f %% slower on average; %u missed\n", all.asked,
                100.0 * all.equal / all.asked, 100 * all.excess / all.asked, all.missed);
  double least = all.asked >= 400 ? 0.97 : 0.95; /* few answers scatter */
  assert_true(all.equal >= least * all.asked && all.excess <= 0.002 * all.asked);
  assert_true(all.missed <= 0.02 * all.asked);
}

/* ---- nets ---- */

static void must_be_planned(const pipeline *p, const sn_schedule *schedule, uint64_t seed) {
  sn_err err = SN_ERR_INIT;
  sn_strategy liveness = {.liveness = SN_LIVENESS_FULL};
  sn_plan *plan = sn_lower(schedule, liveness, SN_WORKSPACE_NONE, p->costs, UINT64_MAX / 2, &err);
  if (!plan || sn_check(plan, NULL, &err) != SN_OK) fail_msg("seed %" PRIu64 ": %s", seed, err.text);
  assert_true(plan->reserved_peak == sn_schedule_load(schedule));
  sn_plan_free(plan);
}

/* What has been asked before changes no answer: nothing else has been asked of `fresh`. */
static void must_answer_alike(sn_optimal *o, sn_optimal *fresh, uint64_t bytes, uint64_t seed) {
  sn_err err = SN_ERR_INIT;
  int64_t ns = sn_optimal_ns(fresh, bytes);
  if (ns != sn_optimal_ns(o, bytes))
    fail_msg("seed %" PRIu64 ": %" PRId64 " ns, asked alone %" PRId64, seed, sn_optimal_ns(o, bytes), ns);
  if (ns < INT64_MAX) {
    sn_schedule *a = sn_optimal_schedule(o, bytes, &err), *b = sn_optimal_schedule(fresh, bytes, &err);
    must(&err);
    bool same = a->n_executions == b->n_executions;
    for (uint32_t e = 0; same && e < a->n_executions; e++) same = a->executions[e].step == b->executions[e].step;
    if (!same) fail_msg("seed %" PRIu64 ": another schedule for %" PRIu64 " bytes", seed, bytes);
    sn_schedule_free(a);
    sn_schedule_free(b);
  }
  uint64_t least = sn_optimal_least(o);
  assert_true((least <= bytes) == (ns < INT64_MAX) && sn_optimal_least(fresh) == least);
  sn_optimal_free(fresh);
}

/* Whatever the memory: a plan that the checker proves, within what was said, and no slower with more. */
static void ask_for_budgets(const pipeline *p, uint64_t seed, uint32_t *smaller) {
  sn_err err = SN_ERR_INIT;
  sn_stages *stages = sn_stages_new(p->route, p->costs, false, &err);
  sn_schedule *whole = sn_schedule_new(p->route, SN_RECOMPUTE_NONE, &err);
  must(&err);
  uint64_t all = sn_schedule_load(whole);
  sn_optimal *o = sn_optimal_new(stages, all, &err);
  must(&err);
  int64_t last = INT64_MAX;
  for (uint64_t part = 1; part <= 20; part++) {
    int64_t ns = sn_optimal_ns(o, all * part / 20);
    must_answer_alike(o, sn_optimal_new(stages, all, &err), all * part / 20, seed);
    assert_true(ns <= last);
    if (ns == last) continue;
    sn_schedule *schedule = sn_optimal_schedule(o, all * part / 20, &err);
    must(&err);
    if (sn_schedule_load(schedule) > all * part / 20)
      fail_msg("seed %" PRIu64 ": load %" PRIu64 " of %" PRIu64, seed, sn_schedule_load(schedule), all * part / 20);
    must_be_planned(p, schedule, seed);
    *smaller += last == INT64_MAX && part < 16;
    sn_schedule_free(schedule);
    last = ns;
  }
  sn_optimal_free(o);
  sn_schedule_free(whole);
  sn_stages_free(stages);
}

/* From the least budget that DTR gets through with to all: within it, and proved. */
static void ask_dtr(const pipeline *p, uint64_t seed, uint32_t *again) {
  sn_err err = SN_ERR_INIT;
  sn_schedule *whole = sn_schedule_new(p->route, SN_RECOMPUTE_NONE, &err);
  sn_dtr_program *program = sn_schedule_dtr_program(p->route, p->costs, false, &err);
  must(&err);
  uint64_t all = sn_schedule_load(whole), least = sn_schedule_dtr_least(program, all, &err);
  must(&err);
  assert_true(least > 0 && least <= all);
  for (uint64_t part = 0; part <= 8; part++) {
    uint64_t budget = least + (all - least) * part / 8;
    sn_schedule *schedule = sn_schedule_dtr(p->route, program, budget, &err);
    must(&err);
    if (!schedule && part > 0 && part < 8) continue;
    assert_non_null(schedule);
    if (sn_schedule_load(schedule) > budget)
      fail_msg("seed %" PRIu64 ": load %" PRIu64 " of %" PRIu64, seed, sn_schedule_load(schedule), budget);
    if (part == 8) assert_true(sn_schedule_same(schedule, whole));
    *again += schedule->reruns > 0;
    must_be_planned(p, schedule, seed);
    sn_schedule_free(schedule);
  }
  sn_dtr_program_free(program);
  sn_schedule_free(whole);
}

static void nets(void **state) {
  (void)state;
  uint32_t smaller = 0, again = 0;
  for (uint64_t k = 0; k < n_nets; k++) {
    uint64_t seed = first + k, dice = seed;
    sn_err err = SN_ERR_INIT;
    pipeline p = {.net = random_net_new(&dice, &err), .device = load_gpu("k40c")};
    must(&err);
    p.route = sn_route_new(p.net, SN_DIALECT_SUPERNEURONS, SN_ORDER_ROUTE, &err);
    p.costs = sn_costs_new(p.net, &p.device, &err);
    must(&err);
    sn_schedule *sqrt = sn_schedule_new(p.route, SN_RECOMPUTE_SQRT, &err);
    must(&err);
    must_be_planned(&p, sqrt, seed);
    sn_schedule_free(sqrt);
    ask_for_budgets(&p, seed, &smaller);
    ask_dtr(&p, seed, &again);
    pipeline_close(&p);
  }
  print_message("%u of %u nets run with less than 3/4 of their memory\n", smaller, n_nets);
  assert_true(smaller > 0 && again > n_nets);
}

/* ---- plans ---- */

/* At the memory of each other rule at most 1 % slower, and it runs with no more than any of them. */
static void no_slower_than_rules(void **state) {
  (void)state;
  static const char *const nets[] = {"alexnet", "vgg16", "vgg19", "resnet50", "resnet101", "resnet152"};
  static const char *const rules[] = {"liveness", "liveness+recompute=sqrt", "liveness+recompute=speed",
                                      "liveness+recompute=memory", "liveness+recompute=cost"};
  static const sn_workspace workspaces[] = {SN_WORKSPACE_NONE, SN_WORKSPACE_DYNAMIC};
  for (size_t n = 0; n < sizeof nets / sizeof *nets; n++) {
    pipeline p = pipeline_open(nets[n], 16);
    for (size_t r = 0; r < sizeof rules / sizeof *rules; r++) {
      sn_workspace workspace = workspaces[(n + r) % 2];
      sn_plan *rule = plan_in(&p, rules[r], UINT64_C(1) << 40, workspace);
      sn_plan *optimal = plan_in(&p, "liveness+recompute=optimal", rule->pool_bytes, workspace);
      assert_true(sn_plan_fits(optimal));
      double ratio = (double)plan_ns(&p, optimal) / (double)plan_ns(&p, rule);
      if (ratio > 1.01) fail_msg("%s, %s: %.4f of its time", nets[n], rules[r], ratio);
      sn_plan_free(optimal);
      sn_plan_free(rule);
    }
    pipeline_close(&p);
  }
}

/* DTR's plans fit, and are no faster than the optimum; with branches they often are the optimum. */
static void dtr_is_no_faster(void **state) {
  (void)state;
  static const char *const nets[] = {"alexnet", "resnet50", "inception_v4", "densenet121"};
  for (size_t n = 0; n < sizeof nets / sizeof *nets; n++) {
    pipeline p = pipeline_open(nets[n], 16);
    sn_plan *least = plan_in(&p, "liveness+recompute=dtr", 0, SN_WORKSPACE_NONE);
    uint64_t needed = least->pool_bytes;
    sn_plan_free(least);
    for (uint64_t percent = 100; percent <= 300; percent += 50) {
      sn_workspace workspace = percent % 100 ? SN_WORKSPACE_DYNAMIC : SN_WORKSPACE_NONE;
      sn_plan *dtr = plan_in(&p, "liveness+recompute=dtr", needed * percent / 100, workspace);
      sn_plan *optimal = plan_in(&p, "liveness+recompute=optimal", needed * percent / 100, workspace);
      assert_true(sn_plan_fits(dtr) && sn_plan_fits(optimal) && dtr->pool_bytes <= needed * percent / 100);
      int64_t least_ns = plan_ns(&p, optimal), ns = plan_ns(&p, dtr);
      if (ns < least_ns)
        fail_msg("%s, %u %%: %" PRId64 " ns, optimum %" PRId64, nets[n], (unsigned)percent, ns, least_ns);
      sn_plan_free(optimal);
      sn_plan_free(dtr);
    }
    pipeline_close(&p);
  }
}

/* What does not fit fits nowhere below, and what fits fits above. */
static void more_memory_is_no_worse(void **state) {
  (void)state;
  static const char *const strategies[] = {"liveness+recompute=optimal", "liveness+recompute=dtr"};
  pipeline p = pipeline_open("alexnet", 32);
  for (int i = 0; i < 2; i++) {
    sn_plan *least = plan_in(&p, strategies[i], 0, SN_WORKSPACE_DYNAMIC);
    uint64_t needed = least->pool_bytes;
    sn_plan_free(least);
    for (uint64_t percent = 80; percent <= 200; percent += 5) {
      sn_plan *plan = plan_in(&p, strategies[i], needed * percent / 100, SN_WORKSPACE_DYNAMIC);
      assert_int_equal(sn_plan_fits(plan), percent >= 100);
      if (percent < 100) assert_int_equal(plan->pool_bytes, needed);
      sn_plan_free(plan);
    }
  }
  pipeline_close(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(chains),
      cmocka_unit_test(nets),
      cmocka_unit_test(no_slower_than_rules),
      cmocka_unit_test(dtr_is_no_faster),
      cmocka_unit_test(more_memory_is_no_worse),
  };
  first = first_seed(1);
  n_nets = case_count(60);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
