/* Failing allocations: every stage runs again and again, and each time another allocation fails (tests/support/failing.h). */
#include "tests/support/failing.h"

#include "tests/support/pipeline.h"

#include "exec/data/batch_source.h"
#include "exec/kernel/weights.h"
#include "plots/plot.h"
#include "sim/ask/blocks.h"
#include "sim/ask/memcost.h"
#include "sim/ask/simulate.h"
#include "sim/capacity/advise.h"
#include "sim/capacity/compare.h"
#include "sim/capacity/fit.h"
#include "sim/capacity/split.h"
#include "sim/dtr/dtr_replay.h"
#include "sim/make/make.h"
#include "sim/memory/pack_exact.h"
#include "sim/memory/pack_sweep.h"
#include "sim/plan/place.h"
#include "sim/play/caching_replay.h"
#include "sim/share/colour.h"
#include "tests/support/image_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- what is run: each frees all it makes and leaves a text of what it found ---- */

typedef struct scenario {
  char found[200000], expected[200000];
  const char *json; /* a network with branches, as text */
  size_t json_bytes;
  sn_device gpu;
  sn_net *net;
  FILE *file;   /* opened beforehand; what is written goes nowhere */
  void *images; /* a place with image sets of both forms, which go with small_net */
  sn_net *small_net;
  sn_err err;
} scenario;

typedef void stage(scenario *s);

static void describe_net(scenario *s, sn_net *net) {
  size_t used = 0;
  for (uint32_t i = 0; net && i < net->n_layers && used < sizeof s->found; i++)
    used +=
        (size_t)snprintf(s->found + used, sizeof s->found - used, "%s %u\n", net->layers[i].name, net->layers[i].out.c);
  sn_net_free(net);
}

static void load_from_zoo(scenario *s) {
  describe_net(s, sn_net_load("resnet18", 4, 0, &s->err));
}

static void load_from_json(scenario *s) {
  describe_net(s, sn_net_from_json("test", s->json, s->json_bytes, 4, &s->err));
}

static void load_from_file(scenario *s) {
  describe_net(s, sn_net_load(SNSIM_SOURCE_DIR "/models/examples/stages.json", 4, 0, &s->err));
}

static void load_device(scenario *s) {
  sn_device d;
  if (sn_device_load("titan_v", &d, &s->err) == SN_OK) snprintf(s->found, sizeof s->found, "%s %g", d.name, d.flops);
}

static sn_options small_pool(void) {
  sn_options options = SN_OPTIONS_INIT;
  options.pool_bytes = UINT64_C(12) << 20; /* so small that the cache evicts */
  options.want_steps = options.want_peak = options.want_tensors = true;
  return options;
}

static void describe_run(scenario *s, const sn_run *run) {
  size_t used = 0;
  for (uint32_t i = 0; i < run->n_results && used < sizeof s->found; i++) {
    const sn_result *r = &run->results[i];
    used += (size_t)snprintf(s->found + used, sizeof s->found - used, "%s %lld %llu %llu %u\n", r->strategy,
                             (long long)r->iteration_ns, (unsigned long long)r->pool_bytes,
                             (unsigned long long)r->evictions, r->n_peak);
    for (uint32_t k = 0; k < r->n_peak && used < sizeof s->found; k++)
      used +=
          (size_t)snprintf(s->found + used, sizeof s->found - used, "  %s %s\n", r->peak[k].tensor, r->peak[k].advice);
  }
}

static void simulate_all(scenario *s) {
  enum { SINGA = SN_STRATEGY_DEFAULTS + SN_STRATEGY_SYSTEMS, COUNT = SINGA + 2 };
  sn_strategy strategies[COUNT];
  for (uint32_t i = 0; i < SN_STRATEGY_DEFAULTS; i++) strategies[i] = sn_strategy_default(i);
  for (uint32_t i = 0; i < SN_STRATEGY_SYSTEMS; i++) strategies[SN_STRATEGY_DEFAULTS + i] = sn_strategy_system(i);
  strategies[SINGA] = sn_strategy_framework(SN_STRATEGY_EXECUTED); /* singa-layer */
  strategies[SINGA + 1] = sn_strategy_framework(SN_STRATEGY_FRAMEWORKS - 1);
  sn_options options = small_pool();
  options.placement = SN_PLACEMENT_FIRST_FIT; /* placing twenty plans for each allocation that fails takes minutes */
  sn_run *run = sn_simulate("net", s->net, &s->gpu, strategies, COUNT, &options, &s->err);
  if (run) describe_run(s, run);
  sn_run_free(run);
}

/* Plans that are made around holes too, and with less workspace. */
static void simulate_packed(scenario *s) {
  const sn_strategy strategies[] = {{.liveness = true, .offload = SN_OFFLOAD_CONV, .recompute = SN_RECOMPUTE_SPEED},
                                    {.liveness = true, .offload = SN_OFFLOAD_CACHE}};
  sn_options options = small_pool();
  sn_run *run = sn_simulate("net", s->net, &s->gpu, strategies, 2, &options, &s->err);
  if (run) describe_run(s, run);
  sn_run_free(run);
}

static void write_plan(scenario *s) {
  sn_options options = small_pool();
  sn_strategy superneurons = {.liveness = true, .offload = SN_OFFLOAD_CACHE, .recompute = SN_RECOMPUTE_COST};
  sn_simulate_write_plan(s->net, &s->gpu, superneurons, &options, s->file, &s->err);
}

static sn_net *make_batch(const void *user, uint32_t batch, sn_err *err) {
  const scenario *s = user;
  return sn_net_from_json("test", s->json, s->json_bytes, batch, err);
}

static void find_largest(scenario *s) {
  const sn_knob knob = {.low = 1, .high = 4, .make = make_batch, .user = s};
  const sn_strategy strategies[] = {{.liveness = true, .offload = SN_OFFLOAD_CACHE, .recompute = SN_RECOMPUTE_COST},
                                    {.liveness = false}};
  const sn_options options = SN_OPTIONS_INIT;
  sn_device small = s->gpu;
  small.memory_bytes = small.context_bytes + (UINT64_C(2) << 20);
  sn_fit *fit = sn_fit_largest(&knob, &small, strategies, 2, &options, &s->err);
  if (fit)
    snprintf(s->found, sizeof s->found, "%u %u %u", fit->answers[0].search.value, fit->answers[1].search.value,
             fit->answers[1].binding.n_tensors);
  sn_fit_free(fit);
}

static void find_memory(scenario *s) {
  const sn_strategy superneurons = {.liveness = true, .offload = SN_OFFLOAD_CACHE, .recompute = SN_RECOMPUTE_COST};
  const sn_options options = SN_OPTIONS_INIT;
  sn_net *net = make_batch(s, 2, &s->err);
  sn_memory *memory = net ? sn_fit_memory(net, &s->gpu, &superneurons, 1, &options, &s->err) : NULL;
  if (memory) snprintf(s->found, sizeof s->found, "%llu", (unsigned long long)memory->answers[0].memory_bytes);
  sn_memory_free(memory);
  sn_net_free(net);
}

static void advise(scenario *s) {
  const sn_options options = {.workspace = SN_WORKSPACE_DYNAMIC, .placement = SN_PLACEMENT_FIRST_FIT};
  sn_net *net = make_batch(s, 1, &s->err);
  sn_strategy
      rules[SN_ADVISE_STRATEGIES - 1]; /* without the last, recompute=optimal, whose plans have their own test */
  for (uint32_t i = 0; i < SN_ADVISE_STRATEGIES - 1; i++) rules[i] = sn_advise_strategy(i);
  sn_advice *advice = net ? sn_advise(net, &s->gpu, rules, SN_ADVISE_STRATEGIES - 1, &options, &s->err) : NULL;
  if (advice) snprintf(s->found, sizeof s->found, "%u %u", advice->n_front, advice->front[0]);
  sn_advice_free(advice);
  sn_net_free(net);
}

static void split(scenario *s) {
  const sn_options options = {.workspace = SN_WORKSPACE_DYNAMIC, .placement = SN_PLACEMENT_FIRST_FIT};
  const sn_strategy liveness = {.liveness = SN_LIVENESS_FULL};
  sn_net *net = sn_net_load("lenet", 4, 0, &s->err);
  const sn_asked asked = {
      .spec = "lenet", .net = net, .device = &s->gpu, .options = &options, .strategies = &liveness, .n_strategies = 1};
  sn_splits *splits = net ? sn_splits_find(&asked, &s->err) : NULL;
  if (splits) snprintf(s->found, sizeof s->found, "%u %u", splits->count, splits->all[0].parts);
  sn_splits_free(splits);
  sn_net_free(net);
}

static void make_timeline(scenario *s) {
  sn_options options = small_pool();
  sn_strategy offload = {.liveness = true, .offload = SN_OFFLOAD_CONV, .recompute = SN_RECOMPUTE_SPEED};
  sn_timeline *t = sn_simulate_timeline(s->net, &s->gpu, offload, &options, &s->err);
  if (t)
    snprintf(s->found, sizeof s->found, "%u %u %u %u %s", t->n_bars, t->n_rects, t->n_levels, t->n_arrows,
             t->bars[t->n_bars - 1].name);
  sn_timeline_free(t);
}

static void draw_and_compare(scenario *s) {
  sn_options options = small_pool();
  sn_strategy strategies[] = {{.liveness = false},
                              {.liveness = true, .offload = SN_OFFLOAD_CONV, .recompute = SN_RECOMPUTE_SPEED}};
  sn_plot_options plot = {.kind = SN_PLOT_BREAKDOWN, .terminal = s->file};
  sn_peak_change change = {0};
  sn_run *run = sn_simulate("net", s->net, &s->gpu, strategies, 2, &options, &s->err);
  sn_timeline *t = run ? sn_simulate_timeline(s->net, &s->gpu, strategies[1], &options, &s->err) : NULL;
  bool good = t && sn_plot_runs((const sn_run *const *)&run, 1, &plot, &s->err) == SN_OK;
  for (plot.kind = SN_PLOT_TIMELINE; good && plot.kind <= SN_PLOT_POOL; plot.kind++)
    good = sn_plot_timeline(run, &run->results[1], t, &plot, &s->err) == SN_OK;
  if (good && sn_compare_peaks(&run->results[0], &run->results[1], run->arena, &change, &s->err) == SN_OK)
    snprintf(s->found, sizeof s->found, "%u %u", change.n_tensors, change.count[SN_WENT]);
  sn_timeline_free(t);
  sn_run_free(run);
}

static void open_images(scenario *s, const char *name) {
  sn__source source;
  if (sn__source_file(path_of(s->images, name), s->small_net, 1, &source, &s->err) != SN_OK) return;
  snprintf(s->found, sizeof s->found, "%s", source.name);
  sn__source_close(&source);
}

static void open_idx(scenario *s) {
  open_images(s, "a-images.idx");
}

static void open_own(scenario *s) {
  open_images(s, "a.sni");
}

static void open_npy(scenario *s) {
  open_images(s, "b-images.npy");
}

/* Written, and read again. */
static void keep_weights(scenario *s) {
  char path[PATH_ROOM];
  snprintf(path, sizeof path, "%s", path_of(s->images, "weights"));
  remove(path);
  sn_state *state = sn_state_new(s->small_net, &(sn_hyper){.seed = 1}, &s->err);
  if (state) sn_weights_save(path, SN_SAVE_WEIGHTS, state, &s->err);
  sn_weights *weights = s->err.code == SN_OK ? sn_weights_open(path, s->small_net, &s->err) : NULL;
  if (weights && sn_weights_read(weights, state, &s->err) == SN_OK)
    snprintf(s->found, sizeof s->found, "%g", (double)state->parameters[0]);
  sn_weights_close(weights);
  sn_state_free(state);
}

/* Blocks from a file, packed, with proof; and the addresses of a plan. */
static void pack_blocks(scenario *s) {
  const sn_exact_limits exact_limits = {.nodes = 1000};
  sn_packing packing;
  sn_exact exact;
  sn_block_list *list = sn_blocks_load(SNSIM_SOURCE_DIR "/tests/fuzz/corpus/blocks/good", &s->err);
  uint64_t *offsets = list ? calloc(list->count, sizeof *offsets) : NULL;
  if (list && !offsets) sn_fail_memory(&s->err);
  if (offsets &&
      sn_pack(list->blocks, list->count, &(sn_pack_limits){.moves = 20, .tries = 5}, offsets, &packing, &s->err) ==
          SN_OK &&
      sn_pack_exact(list->blocks, list->count, &exact_limits, offsets, &packing, &exact, &s->err) == SN_OK)
    snprintf(s->found, sizeof s->found, "%llu %llu", (unsigned long long)packing.bytes,
             (unsigned long long)exact.nodes);
  const sn__life life = {4, 0, 2}; /* the exact search's beams, which begin where blocks are many */
  sn__skyline *sky = offsets ? sn__skyline_new(&life, 1, 2) : NULL;
  sn__sweep *sweep = sky ? sn__sweep_new(&life, 1, 2) : NULL;
  if (offsets && !sweep) sn_fail_memory(&s->err);
  sn__skyline_free(sky);
  sn__sweep_free(sweep);
  free(offsets);
  sn_blocks_free(list);
}

static void share_memory(scenario *s, uint32_t colours) {
  sn_memcost m;
  if (sn_memcost_of(s->net, &s->gpu, SN_FP32, SN_MEMCOST_MATCH_RANGE, colours, &m, &s->err) != SN_OK) return;
  size_t used = 0;
  for (sn_memcost_option o = 0; o < SN_MEMCOST_OPTIONS; o++)
    used += (size_t)snprintf(s->found + used, sizeof s->found - used, "%s %llu %u %lld\n", sn_memcost_option_name(o),
                             (unsigned long long)m.rows[o].bytes, m.rows[o].regions, (long long)m.rows[o].critical_ns);
}

static void share_in_colours(scenario *s) {
  share_memory(s, 3);
}

static void share_with_ancestors(scenario *s) {
  share_memory(s, SN_COLOURS_ANCESTORS);
}

/* The plan of a strategy with much traffic is made and handed on. */
static void with_plan(scenario *s, void use(scenario *s, sn_plan *plan)) {
  sn_route *route = sn_route_new(s->net, SN_DIALECT_SUPERNEURONS, SN_ORDER_ROUTE, &s->err);
  sn_costs *costs = route ? sn_costs_new(s->net, &s->gpu, &s->err) : NULL;
  sn_schedule *schedule = costs ? sn_schedule_new(route, SN_RECOMPUTE_COST, &s->err) : NULL;
  sn_strategy strategy = sn_strategy_default(9); /* liveness+offload+recompute=cost */
  sn_plan *plan =
      schedule ? sn_lower(schedule, strategy, SN_WORKSPACE_DYNAMIC, costs, UINT64_C(1) << 30, &s->err) : NULL;
  if (plan) use(s, plan);
  sn_plan_free(plan);
  sn_schedule_free(schedule);
  sn_costs_free(costs);
  sn_route_free(route);
}

static void place_blocks(scenario *s, sn_plan *plan) {
  sn_packings packings = {0};
  if (sn_place(plan, (sn_place_goal){0}, &packings, &s->err) == SN_OK)
    snprintf(s->found, sizeof s->found, "%llu %llu", (unsigned long long)plan->pool_bytes,
             (unsigned long long)plan->largest_hole);
  sn_packings_clear(&packings);
}

static void place_plan(scenario *s) {
  with_plan(s, place_blocks);
}

/* With too little memory, so that free segments go back, then with pages. */
static void cache_blocks(scenario *s, sn_plan *plan) {
  sn_caching_replayed replayed[2];
  sn_caching_load load = {.limit_bytes = plan->reserved_peak * 6 / 5};
  if (sn_caching_replay(plan, &load, &replayed[0], &s->err) != SN_OK) return;
  load.options.expandable_segments = true;
  if (sn_caching_replay(plan, &load, &replayed[1], &s->err) != SN_OK) return;
  for (int i = 0; i < 2; i++)
    snprintf(s->found + strlen(s->found), sizeof s->found - strlen(s->found), "%d %llu %llu ", replayed[i].fits,
             (unsigned long long)replayed[i].figures.retries, (unsigned long long)replayed[i].figures.reserved_peak);
}

static void cache_plan(scenario *s) {
  with_plan(s, cache_blocks);
}

/* A log of DTR's, with budgets that evict and that do not do. */
static void replay_dtr(scenario *s) {
  static const sn_dtr_heuristic heuristics[] = {SN_DTR_LRU, SN_DTR_FULL, SN_DTR_EQ};
  static const sn_dtr_budget budgets[] = {{.ratio = 0.8}, {.ratio = 0.5}};
  sn_dtr_replay *r =
      sn_dtr_replay_log(SNSIM_SOURCE_DIR "/tests/fuzz/corpus/dtr_log/good", heuristics, 3, budgets, 2, &s->err);
  for (uint32_t i = 0; r && i < r->n_rows; i++)
    snprintf(s->found + strlen(s->found), sizeof s->found - strlen(s->found), "%g ", r->rows[i].overhead);
  sn_dtr_replay_free(r);
}

/* The fastest plan, or DTR's, within half of what liveness takes. */
static void plan_with(scenario *s, const char *strategy) {
  sn_route *route = sn_route_new(s->net, SN_DIALECT_SUPERNEURONS, SN_ORDER_ROUTE, &s->err);
  sn_costs *costs = route ? sn_costs_new(s->net, &s->gpu, &s->err) : NULL;
  sn_schedule *schedule = costs ? sn_schedule_new(route, SN_RECOMPUTE_NONE, &s->err) : NULL;
  const sn_plan_wish wish = {.schedule = schedule,
                             .costs = costs,
                             .strategy = parse_strategy(strategy),
                             .placement = SN_PLACEMENT_PACKED,
                             .pool_bytes = UINT64_C(3) << 20};
  sn_plan *plan = schedule ? sn_plan_make(&wish, &s->err) : NULL;
  if (plan) snprintf(s->found, sizeof s->found, "%llu %u", (unsigned long long)plan->pool_bytes, plan->n_instrs);
  sn_plan_free(plan);
  sn_schedule_free(schedule);
  sn_costs_free(costs);
  sn_route_free(route);
}

static void plan_optimally(scenario *s) {
  plan_with(s, "liveness+recompute=optimal");
}

static void plan_sending(scenario *s) {
  plan_with(s, "liveness+offload+recompute=optimal");
}

static void plan_by_dtr(scenario *s) {
  plan_with(s, "liveness+recompute=dtr");
}

typedef struct runner {
  stage *run;
  scenario *s;
} runner;

static void run_stage(void *user) {
  const runner *r = user;
  r->run(r->s);
}

static void fail_each(scenario *s, stage *run, long fewest) {
  runner r = {run, s};
  const failing_test test = {run_stage, &r, s->found, s->expected, sizeof s->found, &s->err};
  failing_each(&test, fewest);
}

static char *read_text(const char *path, size_t *bytes) {
  FILE *file = fopen(path, "rb");
  if (!file) fail_msg("%s: %s", path, strerror(errno));
  char *text = calloc(1, 10000);
  *bytes = fread(text, 1, 9999, file);
  fclose(file);
  return text;
}

static int open_scenario(void **state) {
  scenario *s = calloc(1, sizeof *s);
  s->json = read_text(SNSIM_SOURCE_DIR "/models/examples/small_resnet.json", &s->json_bytes);
  s->gpu = load_gpu("k40c");
  s->net = load_net("resnet18", 1); /* many tensors of one size: the peak rows have ties */
  s->file = fopen("/dev/null", "w");
  assert_non_null(s->file);
  fputc('\n', s->file); /* its buffer is there */
  const sn_shape shape = {2, 2, 2, 3};
  const uint8_t zeros[5 * 2 * 2 * 3] = {0};
  s->small_net = image_net(shape, 4);
  assert_int_equal(make_place(&s->images), 0);
  write_idx(s->images, 5, shape, 4);
  write_and_free(s->images, "a.sni", own_file(OWN_U8, 5, shape, 4));
  write_and_free(s->images, "b-images.npy",
                 npy_file(1, "{'descr': '|u1', 'fortran_order': False, 'shape': (5, 2, 2, 3)}", zeros, sizeof zeros));
  write_and_free(s->images, "b-labels.npy",
                 npy_file(1, "{'descr': '|u1', 'fortran_order': False, 'shape': (5,)}", zeros, 5));
  *state = s;
  return 0;
}

static int close_scenario(void **state) {
  scenario *s = *state;
  remove_place(&s->images);
  sn_net_free(s->small_net);
  fclose(s->file);
  sn_net_free(s->net);
  free((void *)s->json);
  free(s);
  return 0;
}

static void zoo(void **state) {
  fail_each(*state, load_from_zoo, 10);
}

static void json(void **state) {
  fail_each(*state, load_from_json, 50);
}

static void file(void **state) {
  fail_each(*state, load_from_file, 50);
}

static void device(void **state) {
  fail_each(*state, load_device, 20);
}

static void pipeline_of_all_strategies(void **state) {
  fail_each(*state, simulate_all, 200);
  fail_each(*state, simulate_packed, 100);
}

static void plan_file(void **state) {
  fail_each(*state, write_plan, 50);
}

static void largest(void **state) {
  fail_each(*state, find_largest, 200);
}

static void least_memory(void **state) {
  fail_each(*state, find_memory, 50);
}

static void advice(void **state) {
  fail_each(*state, advise, 200);
  fail_each(*state, split, 100);
}

static void timeline(void **state) {
  fail_each(*state, make_timeline, 50);
}

static void pictures_and_comparison(void **state) {
  fail_each(*state, draw_and_compare, 60);
}

static void image_sets(void **state) {
  fail_each(*state, open_idx, 9);
  fail_each(*state, open_own, 6);
  fail_each(*state, open_npy, 6);
}

static void weights(void **state) {
  fail_each(*state, keep_weights, 20);
}

static void sharing(void **state) {
  fail_each(*state, share_in_colours, 40);
  fail_each(*state, share_with_ancestors, 40);
}

static void packing(void **state) {
  fail_each(*state, pack_blocks, 20);
  fail_each(*state, place_plan, 40);
  fail_each(*state, cache_plan, 40);
}

static void recomputation(void **state) {
  fail_each(*state, replay_dtr, 40);
  fail_each(*state, plan_optimally, 40);
  fail_each(*state, plan_sending, 40);
  fail_each(*state, plan_by_dtr, 20);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(zoo),
      cmocka_unit_test(json),
      cmocka_unit_test(file),
      cmocka_unit_test(device),
      cmocka_unit_test(pipeline_of_all_strategies),
      cmocka_unit_test(plan_file),
      cmocka_unit_test(largest),
      cmocka_unit_test(least_memory),
      cmocka_unit_test(advice),
      cmocka_unit_test(timeline),
      cmocka_unit_test(pictures_and_comparison),
      cmocka_unit_test(image_sets),
      cmocka_unit_test(weights),
      cmocka_unit_test(packing),
      cmocka_unit_test(sharing),
      cmocka_unit_test(recomputation),
  };
  return cmocka_run_group_tests(tests, open_scenario, close_scenario);
}
