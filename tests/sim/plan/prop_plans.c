/* Properties of plans, over random nets, strategies, capacities and devices: planner, checker, player and oracle must
 * agree, and damaged plans must be found.
 *
 *   SN_SEED        seed of the first net; the others follow (default: 1; another day, another seed)
 *   SN_PROP_NETS   how many nets (default 2000)
 *
 * A failure prints the seed of its net: SN_SEED=<that seed> SN_PROP_NETS=1 repeats it. */
#include "sim/plan/check.h"
#include "sim/plan/lower.h"
#include "sim/plan/place.h"
#include "sim/play/device_model.h"
#include "tests/sim/plan/lru.h"
#include "tests/sim/plan/oracle.h"
#include "tests/sim/plan/windows.h"
#include "tests/support/damage.h"
#include "tests/support/random_net.h"
#include "tests/support/seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <inttypes.h>

enum {
  CHECKPOINTS = SN_RECOMPUTE_COST + 1, /* offload=checkpoints with every kind of recomputation */
  STRATEGIES = SN_STRATEGY_DEFAULTS + CHECKPOINTS + SN_STRATEGY_SYSTEMS,
  NETS = 2000
};

static uint64_t net_seed; /* of the first net */
static uint32_t n_nets;

/* Everything about one net that does not depend on the strategy; a third of them hold values of two bytes. */
typedef struct world {
  uint64_t seed, dice;
  sn_device device;
  sn_net *net;
  sn_route *route;
  sn_costs *costs;
  sn_schedule *schedules[SN_RECOMPUTES];
} world;

/* One plan and the question it answers. */
typedef struct trial {
  const world *world;
  sn_strategy strategy;
  sn_workspace workspace;
  uint64_t capacity;
  sn_plan *plan;
} trial;

static sn_strategy strategy_at(uint32_t index) {
  if (index < SN_STRATEGY_DEFAULTS) return sn_strategy_default(index);
  index -= SN_STRATEGY_DEFAULTS;
  if (index < SN_STRATEGY_SYSTEMS) return sn_strategy_system(index);
  return (sn_strategy){.liveness = SN_LIVENESS_FULL,
                       .offload = SN_OFFLOAD_CHECKPOINTS,
                       .recompute = (sn_recompute)(index - SN_STRATEGY_SYSTEMS)};
}

static bool moves(const trial *t) {
  return t->plan->counts.offload_bytes + t->plan->counts.prefetch_bytes > 0;
}

static void fail_trial(const trial *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void fail_trial(const trial *t, const char *format, ...) {
  char what[600], name[SN_STRATEGY_TEXT];
  va_list args;
  va_start(args, format);
  vsnprintf(what, sizeof what, format, args);
  va_end(args);
  fail_msg("SN_SEED=%" PRIu64 " SN_PROP_NETS=1: %s, pool of %" PRIu64 " bytes, workspace %s, %u layers on %s: %s",
           t->world->seed, sn_strategy_name(t->strategy, name), t->capacity, sn_workspace_name(t->workspace),
           t->world->net->n_layers, t->world->device.name, what);
}

static void world_open(world *w, uint64_t seed) {
  sn_err err = SN_ERR_INIT;
  *w = (world){.seed = seed, .dice = seed};
  sn_device_known(prng_below(&w->dice, sn_device_count()), &w->device, &err);
  w->net = seed % 4 == 0 ? random_net_new_today(&w->dice, &err) : random_net_new(&w->dice, &err);
  sn_iteration iteration = {.precision = seed % 3 == 2 ? SN_BF16 : SN_FP32};
  if (w->net) w->route = sn_route_new_for(w->net, SN_DIALECT_SUPERNEURONS, SN_ORDER_ROUTE, iteration, NULL, &err);
  w->costs = w->route ? sn_costs_new_in(w->net, &w->device, iteration, &err) : NULL;
  for (uint32_t r = 0; r < SN_RECOMPUTES && err.code == SN_OK; r++)
    w->schedules[r] = sn_schedule_new(w->route, (sn_recompute)r, &err);
  if (err.code != SN_OK) fail_msg("SN_SEED=%" PRIu64 " SN_PROP_NETS=1: %s", seed, err.text);
}

static void world_close(world *w) {
  for (uint32_t r = 0; r < SN_RECOMPUTES; r++) sn_schedule_free(w->schedules[r]);
  sn_costs_free(w->costs);
  sn_route_free(w->route);
  sn_net_free(w->net);
}

static sn_plan *lower(const trial *t, sn_strategy strategy, sn_workspace workspace) {
  sn_err err = SN_ERR_INIT;
  const sn_schedule *schedule = t->world->schedules[strategy.recompute];
  sn_plan *plan = sn_lower(schedule, strategy, workspace, t->world->costs, t->capacity, &err);
  if (!plan) fail_trial(t, "%s", err.text);
  return plan;
}

/* Far too small up to ample, half of them around what one step needs; not in whole blocks. */
static uint64_t random_capacity(world *w) {
  uint64_t share = prng_below(&w->dice, 64);
  uint64_t most = prng_chance(&w->dice, 50) ? w->route->tensor_bytes : 2 * sn_schedule_layer_peak(w->route);
  return most * share / 48 + prng_below(&w->dice, 5000);
}

static trial trial_open(world *w, uint32_t strategy) {
  trial t = {.world = w, .strategy = strategy_at(strategy)};
  t.workspace = prng_chance(&w->dice, 50) ? SN_WORKSPACE_DYNAMIC : SN_WORKSPACE_NONE;
  if (prng_chance(&w->dice, 10)) t.workspace = SN_WORKSPACE_MAX; /* large against the tensors: slow to follow */
  t.capacity = random_capacity(w);
  t.plan = lower(&t, t.strategy, t.workspace);
  return t;
}

static void must_be_same_plan(const trial *t, const sn_plan *other, const char *what) {
  const sn_plan *p = t->plan;
  bool same = p->n_instrs == other->n_instrs && p->n_fences == other->n_fences && p->pool_bytes == other->pool_bytes &&
              p->external_bytes == other->external_bytes;
  for (uint32_t i = 0; same && i < p->n_instrs; i++) {
    const sn_instr *a = &p->instrs[i], *b = &other->instrs[i];
    same = a->kind == b->kind && a->lane == b->lane && a->rerun == b->rerun && a->algo[0] == b->algo[0] &&
           a->algo[1] == b->algo[1] && a->id == b->id && a->step == b->step && a->offset == b->offset &&
           a->bytes == b->bytes;
  }
  if (!same) fail_trial(t, "is another plan than %s", what);
}

static void must_be_same_use(const trial *t, const sn_step_use *use, const char *whose) {
  for (uint32_t s = 0; s < t->world->route->n_steps; s++) {
    const sn_step_use *a = &t->plan->use[s], *b = &use[s];
    if (a->tensor_bytes != b->tensor_bytes || a->live_tensors != b->live_tensors ||
        a->workspace_bytes != b->workspace_bytes)
      fail_trial(t,
                 "step %u: planner meters %" PRIu64 " bytes, %u tensors, workspace %" PRIu64 "; %s %" PRIu64
                 ", %u, %" PRIu64,
                 s + 1, a->tensor_bytes, a->live_tensors, a->workspace_bytes, whose, b->tensor_bytes, b->live_tensors,
                 b->workspace_bytes);
  }
}

/* Property 1: the checker accepts the plan and reads the same figures from its addresses. */
static void check_with_checker(const trial *t) {
  sn_err err = SN_ERR_INIT;
  sn_check_report report = {.use = oracle_array(t->world->route->n_steps, sizeof(sn_step_use))};
  if (sn_check(t->plan, &report, &err) != SN_OK) fail_trial(t, "%s", err.text);
  must_be_same_use(t, report.use, "checker");
  if (report.high_water != t->plan->pool_bytes)
    fail_trial(t, "pool of %" PRIu64 ", checker finds %" PRIu64, t->plan->pool_bytes, report.high_water);
  free(report.use);
  sn_plan *again = lower(t, t->strategy, t->workspace);
  must_be_same_plan(t, again, "made a second time");
  sn_plan_free(again);
}

/* Property 2: the oracle finds what it expects, in serial order and with the lanes side by side. */
static void check_with_oracle(const trial *t, uint64_t *dice) {
  oracle o;
  if (!oracle_load(&o, t->plan)) fail_trial(t, "oracle, in serial order: %s", o.fault);
  must_be_same_use(t, o.meter.use, "oracle");
  if (o.meter.high_water != t->plan->pool_bytes || o.meter.reserved_peak != t->plan->reserved_peak)
    fail_trial(t, "pool of %" PRIu64 ", reserved %" PRIu64 "; oracle finds %" PRIu64 ", %" PRIu64, t->plan->pool_bytes,
               t->plan->reserved_peak, o.meter.high_water, o.meter.reserved_peak);
  if (o.wasted > 0) fail_trial(t, "copies tensors out %u times for nothing", o.wasted);
  uint32_t runs = t->plan->n_fences > 0 ? 5 : 1;
  for (uint32_t i = 0; i < runs; i++) {
    uint32_t pace = prng_below(dice, 2 * ORACLE_ADVERSARIES);
    bool poison = prng_chance(dice, 50);
    if (!oracle_run(&o, pace, poison, dice)) fail_trial(t, "oracle, at pace %u: %s", pace, o.fault);
  }
  oracle_free(&o);
}

/* Lanes in order, waits behind their signals. */
static void check_spans(const trial *t, const sn_trace *trace) {
  int64_t *passed = oracle_array(t->plan->n_fences, sizeof *passed), free_at[SN_LANES] = {0};
  for (uint32_t i = 0; i < t->plan->n_instrs; i++) {
    const sn_instr *instr = &t->plan->instrs[i];
    sn_span span = trace->spans[i];
    if (instr->kind == SN_ALLOC || instr->kind == SN_RELEASE) continue; /* take no time on their lane */
    if (span.begin_ns < free_at[instr->lane] || span.end_ns < span.begin_ns || span.end_ns > trace->end_ns)
      fail_trial(t, "instruction %u is played out of order", i);
    if (instr->kind == SN_WAIT && span.end_ns < passed[instr->id])
      fail_trial(t, "instruction %u does not wait for fence %u", i, instr->id);
    if (instr->kind == SN_SIGNAL) passed[instr->id] = span.end_ns;
    free_at[instr->lane] = span.end_ns;
  }
  free(passed);
}

/* Windows never use one byte at once. Together they use what the planner meters: exactly that where nothing moves, for
 * then one lane does everything (baseline, caffe and torch7 aside, which hold tensors long before and after); with
 * copies no more, since whoever is allocated waits for all memory given back before. */
static void check_windows(const trial *t, const sn_trace *trace) {
  const sn_plan *plan = t->plan;
  windows w = windows_make(plan, trace);
  uint32_t one, other;
  if (windows_clash(&w, &one, &other))
    fail_trial(t, "tensors %u and %u (%u: a workspace) use the same bytes at once", w.items[one].tensor,
               w.items[other].tensor, SN_NONE);
  uint64_t all = windows_peak(&w, true), tensors = windows_peak(&w, false), peak = 0;
  if (all > plan->reserved_peak || plan->reserved_peak > plan->pool_bytes)
    fail_trial(t, "%" PRIu64 " bytes in use at once, %" PRIu64 " reserved, of a pool of %" PRIu64, all,
               plan->reserved_peak, plan->pool_bytes);
  for (uint32_t s = 0; s < plan->route->n_steps; s++) peak = sn_max(peak, plan->use[s].tensor_bytes);
  bool exact = t->strategy.liveness == SN_LIVENESS_FULL && !moves(t);
  if (exact ? tensors != peak : tensors > peak)
    fail_trial(t, "trace: %" PRIu64 " bytes of tensors in use at once, planner meters %" PRIu64, tensors, peak);
  uint64_t *steps = oracle_array(plan->route->n_steps, sizeof *steps);
  if (exact) windows_step_peaks(&w, plan, trace, steps);
  for (uint32_t s = 0; exact && s < plan->route->n_steps; s++)
    if (steps[s] != plan->use[s].tensor_bytes)
      fail_trial(t, "step %u: trace %" PRIu64 " bytes, planner meters %" PRIu64, s + 1, steps[s],
                 plan->use[s].tensor_bytes);
  free(steps);
  windows_free(&w);
}

/* Property 4: what the played trace says about memory. */
static void check_trace(const trial *t, uint64_t *dice) {
  sn_err err = SN_ERR_INIT;
  sn_device_model model = {.device = &t->world->device, .costs = t->world->costs};
  model.external = (sn_external)prng_below(dice, SN_EXTERNAL_COUNT);
  model.allocator = (sn_allocator)prng_below(dice, SN_ALLOCATOR_COUNT);
  model.shared_link = prng_chance(dice, 50);
  sn_trace trace;
  sn_status status = sn_trace_init(&trace, t->plan, &err);
  if (status == SN_OK) status = sn_play(t->plan, sn_device_model_backend(&model), &trace, &err);
  if (status != SN_OK) fail_trial(t, "%s", err.text);
  check_spans(t, &trace);
  check_windows(t, &trace);
  sn_trace_clear(&trace);
}

/* The plan's counts against its instructions, and against each other. */
static void check_counts(const trial *t) {
  const sn_plan_counts *c = &t->plan->counts;
  uint64_t copied[SN_INSTR_KINDS] = {0}, n[SN_INSTR_KINDS] = {0}, reruns = 0;
  for (uint32_t i = 0; i < t->plan->n_instrs; i++) {
    const sn_instr *instr = &t->plan->instrs[i];
    n[instr->kind]++;
    copied[instr->kind] += instr->bytes;
    reruns += instr->rerun;
  }
  if (copied[SN_COPY_OUT] != c->offload_bytes || copied[SN_COPY_IN] != c->prefetch_bytes ||
      reruns != c->recomputed_layers || reruns != t->world->schedules[t->strategy.recompute]->reruns)
    fail_trial(t, "its counts are not those of its instructions");
  if (lru_unread(t->plan) > 0) fail_trial(t, "brings in %u tensors that no step reads", lru_unread(t->plan));
  bool cache = sn_strategy_has_cache(t->strategy), offload = t->strategy.offload != SN_OFFLOAD_NONE && !cache;
  if (offload ? c->prefetch_bytes != c->offload_bytes : c->prefetch_bytes < c->offload_bytes)
    fail_trial(t, "copies %" PRIu64 " bytes out and %" PRIu64 " in", c->offload_bytes, c->prefetch_bytes);
  if (cache ? c->cache_misses != n[SN_COPY_IN] || c->evictions < n[SN_COPY_OUT]
            : c->cache_hits + c->cache_misses + c->evictions > 0)
    fail_trial(t, "%" PRIu64 " misses, %" PRIu64 " evictions", c->cache_misses, c->evictions);
  if (!cache && !offload && moves(t)) fail_trial(t, "moves bytes");
}

/* Of a narrow cache only the outputs of CONVs and FORKs leave. */
static void check_narrow_cache(const trial *t) {
  for (uint32_t i = 0; i < t->plan->n_instrs; i++) {
    const sn_instr *instr = &t->plan->instrs[i];
    if (instr->kind != SN_COPY_OUT) continue;
    const sn_tensor *tensor = &t->world->route->tensors[instr->id];
    sn_op op = t->world->net->layers[tensor->layer].op;
    if (tensor->role != SN_VALUE || (op != SN_CONV && op != SN_DECONV && op != SN_FORK))
      fail_trial(t, "instruction %u sends out what must stay", i);
  }
}

/* The cache keeps its rules, and needs no more than is on offer wherever every single step fits. */
static void check_cache(const trial *t) {
  const char *fault = lru_fault(t->plan, t->capacity);
  if (fault) fail_trial(t, "the cache %s", fault);
  uint64_t need = lru_need(t->plan, t->workspace == SN_WORKSPACE_MAX);
  if (need <= t->capacity ? t->plan->pool_bytes > t->capacity : t->plan->pool_bytes != need)
    fail_trial(t, "needs %" PRIu64 " bytes, the largest step %" PRIu64, t->plan->pool_bytes, need);
}

/* Where both plans run the same executions, and what lives under `with` at any moment also lives under `without`, no
 * step uses more. */
static void check_no_more(const trial *with, const sn_step_use *without, const char *what) {
  for (uint32_t s = 0; s < with->world->route->n_steps; s++)
    if (with->plan->use[s].tensor_bytes > without[s].tensor_bytes ||
        with->plan->use[s].live_tensors > without[s].live_tensors)
      fail_trial(with, "step %u: %" PRIu64 " bytes, %s %" PRIu64, s + 1, with->plan->use[s].tensor_bytes, what,
                 without[s].tensor_bytes);
}

/* The same trial with fewer tensors sent away. An ample pool is where the cache has nothing to do. */
static void check_against(const trial *t, sn_offload offload) {
  char name[SN_STRATEGY_TEXT];
  sn_strategy simpler = t->strategy;
  simpler.offload = offload;
  sn_plan *other = lower(t, simpler, t->workspace);
  check_no_more(t, other->use, sn_strategy_name(simpler, name));
  if (sn_strategy_has_cache(t->strategy) && t->capacity >= other->pool_bytes)
    must_be_same_plan(t, other, "without a cache, in an ample pool");
  sn_plan_free(other);
}

/* Property 5: order facts. (Recomputation may well need more than plain liveness, where it keeps a root alive or makes
 * something again that no backward step reads.) */
static void check_order(const trial *t) {
  uint64_t peak = 0, layer_peak = sn_schedule_layer_peak(t->world->route);
  for (uint32_t s = 0; s < t->world->route->n_steps; s++) peak = sn_max(peak, t->plan->use[s].tensor_bytes);
  if (peak < layer_peak) fail_trial(t, "peak %" PRIu64 " below that of one layer, %" PRIu64, peak, layer_peak);
  if (peak > t->world->route->tensor_bytes || (!t->strategy.liveness && peak < t->world->route->tensor_bytes))
    fail_trial(t, "peak %" PRIu64 " of %" PRIu64 " bytes in all", peak, t->world->route->tensor_bytes);
  if (t->strategy.offload != SN_OFFLOAD_NONE) check_against(t, SN_OFFLOAD_NONE);
  if (t->strategy.offload == SN_OFFLOAD_CHECKPOINTS) check_against(t, SN_OFFLOAD_CONV);
  if (t->workspace != SN_WORKSPACE_DYNAMIC) return;
  sn_plan *bare = lower(t, t->strategy, SN_WORKSPACE_NONE);
  if (t->plan->pool_bytes < bare->pool_bytes || t->plan->pool_bytes > sn_max(bare->pool_bytes, t->capacity))
    fail_trial(t, "needs %" PRIu64 " bytes, without workspaces %" PRIu64, t->plan->pool_bytes, bare->pool_bytes);
  sn_plan_free(bare);
}

/* Property 6: with packed addresses it is the same plan, in no larger a pool, and right for all judges. */
static void check_placed(const trial *t, uint64_t *dice) {
  sn_err err = SN_ERR_INIT;
  sn_plan placed = damage_copy(t->plan);
  sn_check_report report = {0};
  oracle o;
  if (sn_place(&placed, (sn_place_goal){0}, NULL, &err) != SN_OK || sn_check(&placed, &report, &err) != SN_OK)
    fail_trial(t, "placed: %s", err.text);
  if (placed.pool_bytes > t->plan->pool_bytes || placed.pool_bytes < t->plan->reserved_peak ||
      placed.pool_bytes != report.high_water || placed.largest_hole > placed.pool_bytes)
    fail_trial(t,
               "placed in %" PRIu64 " bytes, of which %" PRIu64 " are used; %" PRIu64 " before, %" PRIu64 " at least",
               placed.pool_bytes, report.high_water, t->plan->pool_bytes, t->plan->reserved_peak);
  if (!oracle_load(&o, &placed)) fail_trial(t, "placed, in serial order: %s", o.fault);
  must_be_same_use(t, o.meter.use, "placed");
  for (uint32_t i = 0; i < 3 && placed.n_fences > 0; i++)
    if (!oracle_run(&o, prng_below(dice, 2 * ORACLE_ADVERSARIES), true, dice)) fail_trial(t, "placed: %s", o.fault);
  oracle_free(&o);
  for (uint32_t i = 0; i < placed.n_instrs; i++) placed.instrs[i].offset = t->plan->instrs[i].offset;
  placed.pool_bytes = t->plan->pool_bytes;
  must_be_same_plan(t, &placed, "after its addresses were put back");
  free(placed.instrs);
}

/* Makes every plan of every net and hands it to `body` with the net's dice and `tally`. */
static void for_each_trial(void (*body)(const trial *t, uint64_t *dice, void *tally), void *tally) {
  for (uint32_t n = 0; n < n_nets; n++) {
    world w;
    world_open(&w, net_seed + n);
    for (uint32_t s = 0; s < STRATEGIES; s++) {
      trial t = trial_open(&w, s);
      body(&t, &w.dice, tally);
      sn_plan_free(t.plan);
    }
    world_close(&w);
  }
}

/* In a run of a few nets some things may not turn up. */
static bool is_long_run(void) {
  return n_nets >= 200;
}

typedef struct plan_tally {
  uint64_t plans, instrs, fences, copying, evicting, rerunning, workspaces, beyond;
} plan_tally;

static void check_plan(const trial *t, uint64_t *dice, void *tally) {
  plan_tally *sum = tally;
  check_with_checker(t);
  check_with_oracle(t, dice);
  check_trace(t, dice);
  check_counts(t);
  if (t->strategy.offload == SN_OFFLOAD_CACHE) check_cache(t);
  if (t->strategy.offload == SN_OFFLOAD_NARROW_CACHE) check_narrow_cache(t);
  check_order(t);
  check_placed(t, dice);
  sum->plans++;
  sum->instrs += t->plan->n_instrs;
  sum->fences += t->plan->n_fences;
  sum->copying += moves(t);
  sum->evicting += t->plan->counts.evictions > 0;
  sum->rerunning += t->plan->counts.recomputed_layers > 0;
  sum->beyond += t->plan->pool_bytes > t->capacity;
  sum->workspaces += t->plan->use[0].workspace_bytes > 0;
}

static void plans_are_right(void **state) {
  (void)state;
  plan_tally sum = {0};
  for_each_trial(check_plan, &sum);
  print_message("%" PRIu64 " plans, on average %" PRIu64 " instructions and %" PRIu64 " fences; %" PRIu64
                " copy, %" PRIu64 " evict, %" PRIu64 " re-run, %" PRIu64 " begin with a workspace, %" PRIu64
                " need more than is on offer\n",
                sum.plans, sum.instrs / sum.plans, sum.fences / sum.plans, sum.copying, sum.evicting, sum.rerunning,
                sum.workspaces, sum.beyond);
  if (is_long_run())
    assert_true(sum.copying && sum.evicting && sum.rerunning && sum.workspaces && sum.beyond && sum.beyond < sum.plans);
}

/* What the nets of a run hold, so that no property passes for want of cases. */
typedef struct net_tally {
  uint64_t ops[SN_OP_COUNT];
  uint64_t grouped, strided, wide, data_forked, twice, ends, chains, inputs[RANDOM_NET_BRANCHES + 1];
} net_tally;

static bool reads_twice(const sn_net *net, const sn_layer *layer) {
  for (uint32_t a = 0; a < layer->n_inputs; a++)
    for (uint32_t b = 0; b < a; b++)
      if (sn_layer_input(net, layer, a)->producer == sn_layer_input(net, layer, b)->producer) return true;
  return false;
}

/* Cheap layers in a row, this one the last. */
static uint32_t chain_length(const sn_net *net, const sn_layer *layer) {
  uint32_t length = 0;
  for (; layer->op != SN_DATA && !sn_op_of(layer)->checkpoint; length++)
    layer = &net->layers[sn_layer_input(net, layer, 0)->producer];
  return length;
}

static void count_layer(const sn_net *net, const sn_layer *layer, net_tally *sum) {
  const sn_attr *a = layer->attr;
  sum->ops[layer->op]++;
  sum->grouped += sn_op_of(layer)->convolves && a->groups > 1;
  sum->strided += sn_op_of(layer)->convolves && a->stride_h > 1;
  sum->wide += sn_op_of(layer)->convolves && a->kernel_h != a->kernel_w;
  sum->data_forked += layer->op == SN_FORK && sn_layer_input(net, layer, 0)->producer == SN_DATA_LAYER;
  sum->twice += reads_twice(net, layer);
  sum->chains += chain_length(net, layer) == 8;
  sum->inputs[layer->n_inputs]++;
}

static void nets_are_varied(void **state) {
  (void)state;
  net_tally sum = {0};
  uint64_t layers = 0;
  for (uint32_t n = 0; n < n_nets; n++) {
    world w;
    world_open(&w, net_seed + n);
    uint64_t ends = sum.ops[SN_SOFTMAX];
    for (uint32_t i = 0; i < w.net->n_layers; i++) count_layer(w.net, &w.net->layers[i], &sum);
    for (uint32_t v = 0; v < w.net->n_values; v++) assert_in_range(w.net->values[v].bytes, 1, RANDOM_NET_BYTES);
    sum.ends += sum.ops[SN_SOFTMAX] > ends + 1;
    layers += w.net->n_layers;
    world_close(&w);
  }
  print_message("%" PRIu64 " layers a net; %" PRIu64 " nets with several ends, %" PRIu64
                " with a FORK of DATA; %" PRIu64 " chains of 8 cheap layers, %" PRIu64
                " layers that read one output twice\n",
                layers / n_nets, sum.ends, sum.data_forked, sum.chains, sum.twice);
  if (!is_long_run()) return;
  for (uint32_t op = 0; op <= SN_DECONV; op++) assert_true(sum.ops[op] > 0);
  for (uint32_t i = 2; i <= RANDOM_NET_BRANCHES; i++) assert_true(sum.inputs[i] > 0);
  assert_true(sum.grouped && sum.strided && sum.wide && sum.data_forked && sum.twice && sum.ends && sum.chains);
}

static void reruns_are_ordered(void **state) {
  (void)state;
  for (uint32_t n = 0; n < n_nets; n++) {
    world w;
    world_open(&w, net_seed + n);
    uint32_t speed = w.schedules[SN_RECOMPUTE_SPEED]->reruns, cost = w.schedules[SN_RECOMPUTE_COST]->reruns,
             memory = w.schedules[SN_RECOMPUTE_MEMORY]->reruns;
    if (speed > cost || cost > memory || w.schedules[SN_RECOMPUTE_NONE]->reruns > 0)
      fail_msg("SN_SEED=%" PRIu64 " SN_PROP_NETS=1: re-runs speed %u, cost %u, memory %u", w.seed, speed, cost, memory);
    world_close(&w);
  }
}

typedef struct wait_tally {
  uint64_t waits, redundant, rejected;
  uint64_t seen, seen_poisoned; /* of the rejected, the oracle shows a failure: as it is; only with poison */
} wait_tally;

enum { WAITS_A_PLAN = 4, RUNS = 50, RUNS_REJECTED = ORACLE_ADVERSARIES };

/* Runs a plan until it fails; false where it did not. */
static bool oracle_fails(oracle *o, uint32_t runs, bool poison, uint64_t *dice) {
  for (uint32_t pace = 0; pace < runs; pace++)
    if (!oracle_run(o, pace, poison, dice)) return true;
  return false;
}

/* Rejected, or the lanes can advance as they like without harm. */
static void check_without_wait(const trial *t, uint32_t wait, wait_tally *tally, uint64_t *dice) {
  sn_err err = SN_ERR_INIT;
  sn_plan changed = damage_copy(t->plan);
  oracle o;
  damage_remove(&changed, wait);
  bool accepted = sn_check(&changed, NULL, &err) == SN_OK, serial = oracle_load(&o, &changed);
  bool fails = serial && oracle_fails(&o, accepted ? RUNS : RUNS_REJECTED, false, dice);
  bool poisoned = serial && !fails && oracle_fails(&o, RUNS, true, dice);
  if (!serial) fail_trial(t, "without wait %u the serial order fails: %s", wait, o.fault);
  if (accepted && (fails || poisoned)) fail_trial(t, "without wait %u the checker accepts, but: %s", wait, o.fault);
  tally->waits++;
  tally->redundant += accepted;
  tally->rejected += !accepted;
  tally->seen += !accepted && fails;
  tally->seen_poisoned += !accepted && poisoned;
  oracle_free(&o);
  free(changed.instrs);
}

/* Property 3: all waits of a small plan, some of a large one. */
static void check_waits(const trial *t, uint64_t *dice, void *tally) {
  uint32_t waits = 0, left = WAITS_A_PLAN;
  for (uint32_t i = 0; i < t->plan->n_instrs; i++) waits += t->plan->instrs[i].kind == SN_WAIT;
  for (uint32_t i = 0; i < t->plan->n_instrs && left > 0; i++) {
    if (t->plan->instrs[i].kind != SN_WAIT || prng_below(dice, waits--) >= left) continue;
    check_without_wait(t, i, tally, dice);
    left--;
  }
}

/* The oracle should show a failure for nearly everything that the checker rejects: otherwise one of them is wrong. */
static void waits_are_needed(void **state) {
  (void)state;
  wait_tally sum = {0};
  for_each_trial(check_waits, &sum);
  print_message("%" PRIu64 " waits deleted: %" PRIu64 " redundant, %" PRIu64
                " rejected, of which the oracle shows %" PRIu64 " failing and %" PRIu64
                " more when released bytes change at once\n",
                sum.waits, sum.redundant, sum.rejected, sum.seen, sum.seen_poisoned);
  if (!is_long_run()) return;
  assert_true(sum.redundant < sum.waits / 4);
  assert_true(sum.seen > sum.rejected / 2);
  assert_true(sum.seen + sum.seen_poisoned >= sum.rejected - sum.rejected / 1000);
}

typedef struct damage_tally {
  uint64_t applied[DAMAGE_KINDS], random, harmless;
} damage_tally;

static void check_random_damage(const trial *t, uint64_t *dice, damage_tally *tally) {
  enum { PACES = 4 };
  sn_err err = SN_ERR_INIT;
  sn_plan changed = damage_copy(t->plan);
  damage_at_random(&changed, dice);
  tally->random++;
  if (sn_check(&changed, NULL, &err) == SN_OK) {
    oracle o;
    bool good = oracle_load(&o, &changed);
    for (uint32_t i = 0; i < PACES && good; i++) {
      uint32_t run = prng_below(dice, RUNS);
      bool half = prng_chance(dice, 50);
      good = oracle_run(&o, run, half, dice);
    }
    if (!good) fail_trial(t, "damaged at random, the checker accepts it, but: %s", o.fault);
    tally->harmless++;
    oracle_free(&o);
  }
  free(changed.instrs);
}

static void check_damage(const trial *t, uint64_t *dice, void *tally) {
  enum { RANDOM_ONES = 2 };
  damage_tally *sum = tally;
  for (uint32_t k = 0; k < DAMAGE_KINDS; k++) {
    if (prng_chance(dice, 50)) continue; /* there are plans enough */
    sn_err err = SN_ERR_INIT;
    sn_plan changed = damage_copy(t->plan);
    bool done = damage_kinds[k].apply(&changed, dice);
    if (done && sn_check(&changed, NULL, &err) == SN_OK) fail_trial(t, "the checker misses: %s", damage_kinds[k].name);
    if (done && err.code != SN_BUG) fail_trial(t, "%s: %s", damage_kinds[k].name, err.text);
    sum->applied[k] += done;
    free(changed.instrs);
  }
  for (uint32_t i = 0; i < RANDOM_ONES; i++) check_random_damage(t, dice, sum);
}

static void damage_is_found(void **state) {
  (void)state;
  damage_tally sum = {0};
  for_each_trial(check_damage, &sum);
  for (uint32_t k = 0; k < DAMAGE_KINDS; k++) {
    print_message("%s: %" PRIu64 " plans\n", damage_kinds[k].name, sum.applied[k]);
    if (is_long_run()) assert_true(sum.applied[k] > 0);
  }
  print_message("at random: %" PRIu64 ", %" PRIu64 " of them accepted\n", sum.random, sum.harmless);
  if (is_long_run()) assert_in_range(sum.harmless, 1, sum.random / 2);
}

int main(void) {
  net_seed = first_seed(1);
  n_nets = case_count(NETS);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nets_are_varied),  cmocka_unit_test(reruns_are_ordered), cmocka_unit_test(plans_are_right),
      cmocka_unit_test(waits_are_needed), cmocka_unit_test(damage_is_found),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
