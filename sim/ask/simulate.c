/* The pipeline, once per strategy; see the header. */
#include "sim/ask/simulate.h"

#include "base/arena.h"
#include "sim/ask/answers.h"
#include "sim/ask/caching_need.h"
#include "sim/ask/cause.h"
#include "sim/ask/corun_plans.h"
#include "sim/ask/explain.h"
#include "sim/ask/least_pool.h"
#include "sim/ask/question.h"
#include "sim/ask/result.h"
#include "sim/device/cost.h"
#include "sim/device/device.h"
#include "sim/graph/route.h"
#include "sim/make/make.h"
#include "sim/memory/pool.h"
#include "sim/play/device_model.h"
#include "sim/schedule/schedule.h"

#include <stdlib.h>

/* The pool on offer. */
static uint64_t pool_of(const sn__question *q, sn_strategy strategy) {
  uint64_t fixed = sn__question_resident(q, strategy), left = q->memory_bytes > fixed ? q->memory_bytes - fixed : 0;
  return q->options->pool_bytes > 0 ? sn_min(q->options->pool_bytes, left) : left;
}

/* What PyTorch's allocator may take; --pool limits it by as much beside what is resident. */
static uint64_t caching_memory(const sn__question *q, sn_strategy strategy) {
  uint64_t pool = q->options->pool_bytes;
  return pool > 0 ? sn_min(q->memory_bytes, sn__question_resident(q, strategy) + pool) : q->memory_bytes;
}

static sn_plan *plan_in(sn__question *q, sn_strategy strategy, uint64_t pool_bytes, bool only_fits) {
  const sn_schedule *schedule = sn__question_schedule(q, strategy);
  if (!schedule) return NULL;
  sn_caching_server server = {q->device, q->options, caching_memory(q, strategy), q->err};
  bool own =
      sn__question_has_caching(q, strategy) && (only_fits || sn_strategy_adapts(strategy)); /* addresses are nobody's */
  const sn_plan_wish wish = {
      .schedule = schedule,
      .costs = sn__question_costs(q, strategy),
      .link = sn_link_of(q->device, q->options->external),
      .strategy = strategy,
      .workspace = sn__question_workspace(q, strategy),
      .placement = own || schedule->route->mesh ? SN_PLACEMENT_FIRST_FIT : q->options->placement,
      .pool_bytes = pool_bytes,
      .external_limit = q->options->external == SN_EXTERNAL_HOST ? sn_device_host_share(q->device) : 0,
      .packings = &q->packings,
      .proved = sn__question_proved(q, strategy),
      .standing = sn__question_graph_of(q, strategy)->standing,
      .serve = sn_strategy_adapts(strategy) && sn__question_has_caching(q, strategy) ? sn_caching_serve : NULL,
      .server = &server,
      .only_fits = only_fits};
  const sn_corun_question corun = {
      .device = q->device, .options = q->options, .costs = wish.costs, .packings = &q->packings};
  sn_plan *plan = sn_strategy_is_corun(strategy)
                      ? sn_corun_plans_make(&q->corun, &corun, schedule, strategy, pool_bytes, q->err)
                      : sn_plan_make(&wish, q->err);
  if (plan && q->options->planned) q->options->planned(q->options->watcher);
  char name[SN_STRATEGY_TEXT];
  if (q->err->code == SN_BUG) sn_err_prefix(q->err, "strategy %s", sn_strategy_name(strategy, name));
  return plan;
}

/* The plan that is made for so much memory, as what the device has; NULL after an error. */
static sn_plan *plan_for(sn__question *q, sn_strategy strategy, uint64_t memory_bytes, bool only_fits) {
  const uint64_t kept = q->memory_bytes, pool_bytes = pool_of(q, strategy), fixed = sn__question_resident(q, strategy);
  q->memory_bytes = memory_bytes;
  sn_plan *plan = plan_in(q, strategy, memory_bytes > fixed ? memory_bytes - fixed : 0, only_fits);
  q->memory_bytes = kept;
  if (plan) plan->pool_limit = pool_bytes;
  return plan;
}

/* ---- the least memory ---- */

/* A narrow cache cannot empty the device: whether it runs depends on holes, and more memory can make it fail. */
static bool is_lucky(sn_strategy strategy) {
  return strategy.offload == SN_OFFLOAD_NARROW_CACHE;
}

/* With another memory another plan is made, which may take more of it than there is where a smaller one would do. */
static bool is_of_memory(sn_strategy strategy) {
  return sn_strategy_adapts(strategy) || sn_strategy_is_corun(strategy);
}

/* What a plan needs in a pool, and whether it has it. */
static sn_status try_pool(sn__question *q, sn_strategy strategy, uint64_t pool_bytes, uint64_t *needed, bool *fits) {
  sn_plan *plan = plan_in(q, strategy, pool_bytes, false);
  if (!plan) return q->err->code;
  *needed = plan->pool_bytes;
  *fits = plan->pool_bytes <= pool_bytes;
  sn_plan_free(plan);
  return SN_OK;
}

/* The least that is found to be enough for a narrow cache; above `most` where that is not, nor anything below it. */
static sn_status try_luck(sn__question *q, sn_strategy strategy, uint64_t most, uint64_t *least) {
  const sn_least_pool_wish wish = {.schedule = sn__question_schedule(q, strategy),
                                   .strategy = strategy,
                                   .costs = sn__question_costs(q, strategy),
                                   .workspace = sn__question_workspace(q, strategy),
                                   .floor = sn__question_graph_of(q, strategy)->floor};
  return wish.schedule ? sn_least_pool_find(&wish, most, least, q->err) : q->err->code;
}

/* The smallest pool in which the strategy runs; `known` is a result of it, or NULL. The cache empties the device before
 * it gives up (sim/plan/lower.c), so that the floor is enough for it. Without a cache tensors lie where they lie,
 * however large the pool is, and a plan for nothing takes not a byte that is not needed. */
static sn_status least_pool(sn__question *q, sn_strategy strategy, const sn_result *known, uint64_t *least) {
  bool fits, same = q->options->workspace != SN_WORKSPACE_DYNAMIC;
  uint64_t *adapting =
      &sn__question_graph_of(q, strategy)->adapting[strategy.recompute][strategy.offload != SN_OFFLOAD_NONE];
  if (is_lucky(strategy)) return try_luck(q, strategy, SN_MEMORY_ALL, least);
  if (sn_strategy_has_cache(strategy))
    *least = sn__question_graph_of(q, strategy)->floor;
  else if (known && same && !sn_strategy_is_corun(strategy) && !sn_strategy_adapts(strategy))
    *least = known->pool_bytes;
  else if (known && sn__question_graph_of(q, strategy)->workspace_free && !sn_strategy_is_corun(strategy) &&
           !sn_strategy_adapts(strategy))
    *least = known->pool_bare_bytes; /* placed anew where it is packed (sim/ask/result.c) */
  else if (sn_strategy_adapts(strategy) && *adapting > 0)
    *least = *adapting;
  else if (try_pool(q, strategy, 0, least, &fits) == SN_OK && sn_strategy_adapts(strategy))
    *adapting = *least;
  return q->err->code;
}

/* Whether both pools are large enough, and what the plan needs of its own. */
static sn_status try_both(sn__question *q, sn_strategy strategy, uint64_t pool_bytes, uint64_t *needed, bool *fits) {
  sn_plan *plan = plan_in(q, strategy, pool_bytes, true);
  if (!plan) return q->err->code;
  *needed = plan->pool_bytes;
  *fits = sn_plan_fits(plan);
  sn_plan_free(plan);
  return SN_OK;
}

/* A cache sends out the less the more the device has: bisection, to the block, where the host has too little for what
 * the smallest pool sends out. *found is false where no pool is large enough. */
static sn_status least_pool_with_host(sn__question *q, sn_strategy strategy, uint64_t *least, bool *found) {
  uint64_t bad = *least, good = 0, needed;
  sn_status status = try_both(q, strategy, bad, &needed, found);
  if (status != SN_OK || *found) return status;
  status = try_both(q, strategy, SN_MEMORY_ALL, &good, found);
  while (status == SN_OK && *found && good > bad && good - bad > SN_POOL_BLOCK) {
    bool fits = false;
    uint64_t middle = bad + (good - bad) / 2 / SN_POOL_BLOCK * SN_POOL_BLOCK;
    status = try_both(q, strategy, middle, &needed, &fits);
    *(fits ? &good : &bad) = middle;
  }
  *least = good;
  return status;
}

static sn_status least_with_caching(sn__question *q, sn_strategy strategy, uint64_t *memory_bytes) {
  bool adapts = sn_strategy_adapts(strategy);
  sn_plan *plan = plan_for(q, strategy, adapts ? 0 : SN_MEMORY_ALL, !adapts);
  sn_status status = plan ? sn_caching_need_least(plan, q->device, q->options, memory_bytes, q->err) : q->err->code;
  if (plan && !sn_plan_fits_outside(plan)) *memory_bytes = 0;
  sn_plan_free(plan);
  return status;
}

/* The least with which a plan runs that is made for so much memory: no more than that if and only if it fits there. 0:
 * no memory is enough. */
static sn_status least_of_plan_for(sn__question *q, sn_strategy strategy, uint64_t memory_bytes, uint64_t *least) {
  sn_caching_need need;
  sn_plan *plan = plan_for(q, strategy, memory_bytes, false);
  if (!plan) return q->err->code;
  sn_status status = SN_OK;
  *least = sn__question_resident(q, strategy) + plan->pool_bytes;
  if (sn__question_has_caching(q, strategy))
    status = sn_caching_need_of(plan, q->device, q->options, memory_bytes, &need, least, q->err);
  if (!sn_plan_fits_outside(plan)) *least = 0;
  sn_plan_free(plan);
  return status;
}

/* Between a memory for which a plan is made that does not fit it and one for which it does: to the block. */
static sn_status find_edge(sn__question *q, sn_strategy strategy, uint64_t bad, uint64_t *good) {
  while (*good - bad > SN_POOL_BLOCK) {
    uint64_t least = 0, middle = bad + (*good - bad) / 2 / SN_POOL_BLOCK * SN_POOL_BLOCK;
    if (least_of_plan_for(q, strategy, middle, &least) != SN_OK) return q->err->code;
    *(least > 0 && least <= middle ? good : &bad) = middle;
  }
  return SN_OK;
}

/* A plan that is made for a memory is another than one that is made for none: as long as one for a block less runs, the
 * least is what that takes, if the plan for so much does not take more again. */
static sn_status lower_least(sn__question *q, sn_strategy strategy, uint64_t *memory_bytes) {
  enum { MOST_PLANS = 100 };
  for (int i = 0; i < MOST_PLANS; i++) {
    if (*memory_bytes <= SN_POOL_BLOCK) return SN_OK;
    uint64_t least = 0, again = 0, below = *memory_bytes - SN_POOL_BLOCK;
    if (least_of_plan_for(q, strategy, below, &least) != SN_OK) return q->err->code;
    if (least == 0 || least > below) return SN_OK;
    *memory_bytes = below;
    if (least_of_plan_for(q, strategy, least, &again) != SN_OK) return q->err->code;
    if (again == 0 || again > least) return find_edge(q, strategy, least, memory_bytes);
    *memory_bytes = least;
  }
  return SN_OK;
}

static bool is_host_limited(const sn__question *q) {
  return q->device->host_memory_bytes > 0 && q->options->external == SN_EXTERNAL_HOST;
}

/* sn_planner_least() */
static sn_status least_memory(sn__question *q, sn_strategy strategy, const sn_result *known, uint64_t *memory_bytes) {
  bool found = true;
  uint64_t pool = 0;
  bool lowers = is_of_memory(strategy);
  if (sn__question_has_caching(q, strategy)) {
    sn_status status = least_with_caching(q, strategy, memory_bytes);
    return status == SN_OK && lowers ? lower_least(q, strategy, memory_bytes) : status;
  }
  sn_status status = sn__question_open_graph(q, strategy);
  if (status == SN_OK) status = least_pool(q, strategy, known, &pool);
  if (status == SN_OK && is_host_limited(q)) status = least_pool_with_host(q, strategy, &pool, &found);
  *memory_bytes = found ? sn__question_resident(q, strategy) + pool : 0;
  return status == SN_OK && lowers ? lower_least(q, strategy, memory_bytes) : status;
}

static sn_status find_caching_need(sn__question *q, sn_strategy strategy, const sn_plan *plan, sn_caching_need *need,
                                   uint64_t *least_bytes) {
  sn_status status =
      sn_caching_need_of(plan, q->device, q->options, caching_memory(q, strategy), need, least_bytes, q->err);
  const bool outside = sn_plan_fits_outside(plan);
  need->fits = need->fits && outside;
  if (!outside && least_bytes && !is_of_memory(strategy))
    *least_bytes = 0; /* it sends out as much, whatever there is */
  return status;
}

/* That of two which fits; NULL after an error. */
static sn_plan *better_of(const sn__question *q, sn_plan *plan, sn_plan *other) {
  bool better = !other || sn_plan_fits(other) || q->err->code != SN_OK;
  sn_plan_free(better ? plan : other);
  return better ? other : plan;
}

/* Where luck is against the plan for the pool on offer: that for the least that a narrow cache is found to run with; of
 * what is planned for the memory there is that with time for it, and that for nothing. */
static sn_plan *make_plan(sn__question *q, sn_strategy strategy, bool only_fits) {
  if (sn__question_open_graph(q, strategy) != SN_OK) return NULL;
  uint64_t least = 0, pool_bytes = pool_of(q, strategy), fixed = sn__question_resident(q, strategy);
  sn_plan *plan = plan_in(q, strategy, pool_bytes, only_fits);
  if (!plan || plan->pool_bytes <= pool_bytes) return plan;
  if (is_lucky(strategy)) {
    if (try_luck(q, strategy, pool_bytes, &least) == SN_OK && least > pool_bytes) return plan;
    return better_of(q, plan, q->err->code == SN_OK ? plan_for(q, strategy, fixed + least, only_fits) : NULL);
  }
  if (!is_of_memory(strategy) || sn__question_has_caching(q, strategy)) return plan;
  if (only_fits) plan = better_of(q, plan, plan_in(q, strategy, pool_bytes, false));
  return plan && !sn_plan_fits(plan) ? better_of(q, plan, plan_for(q, strategy, 0, only_fits)) : plan;
}

/* Instead of the plan's pool. */
static sn_status add_caching(sn__question *q, sn_strategy strategy, const sn_plan *plan, sn_result *r) {
  sn_caching_need need = {0};
  const uint64_t known = q->least_of_interest;
  sn_status status = known > 0 ? find_caching_need(q, strategy, plan, &need, NULL) : SN_OK;
  r->least_device_bytes = need.device_bytes;
  if (status == SN_OK && (known == 0 || need.device_bytes > known))
    status = find_caching_need(q, strategy, plan, &need, &r->least_device_bytes);
  r->context_bytes = need.context_bytes;
  r->allocated_bytes = need.allocated_bytes;
  r->reserved_bytes = need.reserved_bytes;
  r->peak_device_bytes = need.device_bytes;
  r->pool_fragmentation = need.fragmentation;
  r->fits = need.fits;
  return status;
}

static sn_status add_result(sn__question *q, sn_strategy strategy, const sn_plan *plan, sn_trace *trace, sn_result *r) {
  sn_result_source source = {.plan = plan,
                             .packings = &q->packings,
                             .use = plan->use,
                             .trace = trace,
                             .persistent = sn__question_graph_of(q, strategy)->persistent,
                             .context_bytes = sn__question_context(q, strategy),
                             .iteration = q->options->iteration,
                             .external = q->options->external,
                             .want_steps = q->options->want_steps};
  sn_status status = sn_result_fill(&source, strategy, q->arena, r, q->err);
  sn_trace_clear(trace); /* gone before anything else is found out */
  if (sn_plan_is_corun(plan) && status == SN_OK)
    status = sn_corun_plans_tell(&q->corun, q->options, plan, q->arena, &r->corun, q->err);
  if (r->shared.world > 0) sn_result_judge_shared(q->net, q->device, q->options->iteration, r);
  if (status == SN_OK) status = sn__question_has_caching(q, strategy) ? add_caching(q, strategy, plan, r) : SN_OK;
  if (status == SN_OK && (!sn__question_has_caching(q, strategy) || is_of_memory(strategy)))
    status = least_memory(q, strategy, r, &r->least_device_bytes);
  if (status == SN_OK && q->options->want_peak)
    status = sn_explain_peak(plan, strategy, r->peak_step - 1, q->arena, &r->peak, &r->n_peak, q->err);
  return status;
}

/* Plays a plan on the simulated device; the trace is to be cleared in every case. */
static sn_status play(const sn__question *q, sn_strategy strategy, const sn_plan *plan, sn_trace *trace) {
  sn_device_model model = {.device = sn_plan_is_corun(plan) ? &q->corun.device : q->device,
                           .costs = sn__question_costs(q, strategy),
                           .external = q->options->external,
                           .allocator = q->options->allocator,
                           .shared_link = q->options->shared_link,
                           .pageable = sn_strategy_is_pageable(strategy),
                           .times = q->corun.times};
  return sn_device_model_play(&model, plan, sn_iteration_batches(q->options->iteration), trace, q->err);
}

/* *roomy is the plan's. */
static sn_status answer(sn__question *q, sn_strategy strategy, sn_result *result, bool *roomy) {
  sn_plan *plan = make_plan(q, strategy, false);
  if (!plan) return q->err->code;
  sn_trace trace;
  *roomy = plan->roomy;
  sn_status status = play(q, strategy, plan, &trace);
  if (status == SN_OK) status = add_result(q, strategy, plan, &trace, result);
  sn_trace_clear(&trace);
  sn_plan_free(plan);
  return status;
}

static sn_status fill_head(const sn__question *q, const char *spec, const sn_route *route, sn_run *run) {
  if (sn_result_begin_run(spec, q->net, route, q->device, q->options, q->arena, run, q->err) != SN_OK)
    return q->err->code;
  return q->options->want_tensors ? sn_result_add_tensors(route, q->arena, run, q->err) : SN_OK;
}

/* A strategy that no plan can be made for, or none that can be played, leaves the others their answers. */
static sn_status leave_out(sn__question *q, sn_strategy strategy, sn_failure *failure) {
  char name[SN_STRATEGY_TEXT];
  if (q->err->code != SN_BAD_INPUT) return q->err->code;
  *failure =
      (sn_failure){sn_arena_text(q->arena, sn_strategy_name(strategy, name)), sn_arena_text(q->arena, q->err->text)};
  *q->err = (sn_err)SN_ERR_INIT;
  return failure->strategy && failure->reason ? SN_OK : sn_fail_memory(q->err);
}

/* Nothing but failures is an error: the first one's. */
static sn_status judge(sn__question *q, const sn_run *run) {
  if (run->n_results > 0 || run->n_failures == 0) return SN_OK;
  return sn_fail(q->err, SN_BAD_INPUT, "%s", run->failures[0].reason);
}

/* With the answer of a strategy whose plan is the same, but for peak rows, whose advice is not. */
static sn_status answer_once(sn__question *q, sn_answers *all, sn_strategy strategy, sn_result *r) {
  sn_answer fresh = {.strategy = strategy, .least_of_interest = q->least_of_interest, .result = r};
  fresh.schedule = sn__question_schedule(q, strategy);
  bool alone = q->options->want_peak || sn_strategy_adapts(strategy); /* the schedule is not the plan's */
  const sn_answer *twin = fresh.schedule && !alone ? sn_answers_find(all, &fresh) : NULL;
  if (!fresh.schedule) return q->err->code;
  if (!twin) {
    sn_status status = answer(q, strategy, r, &fresh.roomy);
    if (status == SN_OK && !sn_strategy_adapts(strategy)) sn_answers_add(all, &fresh);
    return status;
  }
  if (sn_answer_copy(twin, &fresh, q->options->iteration, q->arena, q->err) != SN_OK) return q->err->code;
  bool same_least = strategy.offload == twin->strategy.offload || sn__question_has_caching(q, strategy);
  return same_least ? SN_OK : least_memory(q, strategy, r, &r->least_device_bytes);
}

static sn_run *fill_run(sn__question *q, const char *spec, const sn_strategy *strategies, uint32_t n_strategies) {
  sn_run *run = sn_arena_alloc(q->arena, 1, sizeof *run);
  sn_result *results = sn_arena_alloc(q->arena, n_strategies, sizeof *results);
  sn_failure *failures = sn_arena_alloc(q->arena, n_strategies, sizeof *failures);
  if (!run || !results || !failures) {
    sn_fail_memory(q->err);
    return NULL;
  }
  sn_strategy shown = sn_result_head(strategies, n_strategies);
  sn_status status = sn__question_open_graph(q, shown);
  if (status == SN_OK) status = fill_head(q, spec, sn__question_graph_of(q, shown)->route, run);
  if (status != SN_OK) return NULL;
  run->results = results;
  run->failures = failures;
  sn_answers all = {0};
  for (uint32_t i = 0; i < n_strategies && status == SN_OK; i++) {
    sn__question_begin(q, i);
    status = answer_once(q, &all, strategies[i], &results[run->n_results]);
    if (status == SN_OK)
      run->n_results++;
    else
      status = leave_out(q, strategies[i], &failures[run->n_failures++]);
  }
  return status == SN_OK && judge(q, run) == SN_OK ? run : NULL;
}

sn_run *sn_simulate(const char *spec, const sn_net *net, const sn_device *device, const sn_strategy *strategies,
                    uint32_t n_strategies, const sn_options *options, sn_err *err) {
  sn_planner *planner = sn_planner_new_stage(NULL, net, device, options, err);
  sn_run *run = planner ? sn_planner_run(planner, spec, strategies, n_strategies, err) : NULL;
  sn_planner_free(planner);
  return run;
}

sn_status sn_simulate_write_plan(const sn_net *net, const sn_device *device, sn_strategy strategy,
                                 const sn_options *options, FILE *out, sn_err *err) {
  sn__question q = {.net = net, .device = device, .options = options, .once = true, .err = err};
  char name[SN_STRATEGY_TEXT];
  sn_plan *plan = sn__question_open(&q) == SN_OK ? make_plan(&q, strategy, false) : NULL;
  sn_status status =
      plan ? sn_plan_write(plan, sn_strategy_name(strategy, name), device, options, out, err) : err->code;
  sn_plan_free(plan);
  sn__question_close(&q);
  return status;
}

sn_timeline *sn_simulate_timeline(const sn_net *net, const sn_device *device, sn_strategy strategy,
                                  const sn_options *options, sn_err *err) {
  sn__question q = {.net = net, .device = device, .options = options, .once = true, .err = err};
  sn_plan *plan = sn__question_open(&q) == SN_OK ? make_plan(&q, strategy, false) : NULL;
  sn_trace trace = {0};
  sn_timeline *timeline = plan && play(&q, strategy, plan, &trace) == SN_OK ? sn_timeline_new(plan, &trace, err) : NULL;
  if (timeline && sn__question_has_caching(&q, strategy) &&
      sn_caching_need_show(plan, device, options, caching_memory(&q, strategy), timeline, err) != SN_OK) {
    sn_timeline_free(timeline);
    timeline = NULL;
  }
  sn_trace_clear(&trace);
  sn_plan_free(plan);
  sn__question_close(&q);
  return timeline;
}

/* ---- a question kept open ---- */

sn_planner *sn_planner_new(const sn_net *net, const sn_device *device, const sn_options *options, sn_err *err) {
  sn_planner *planner = calloc(1, sizeof *planner);
  if (!planner) return sn_fail_memory(err), NULL;
  planner->q = (sn__question){.net = net, .device = device, .options = options, .err = err};
  if (sn__question_open(&planner->q) == SN_OK) return planner;
  sn_planner_free(planner);
  return NULL;
}

sn_planner *sn_planner_new_stage(sn_planner *known, const sn_net *net, const sn_device *device,
                                 const sn_options *options, sn_err *err) {
  sn_planner *planner = sn_planner_new(net, device, options, err);
  if (planner) planner->q.once = true;
  if (planner && known) planner->q.stage = &known->q;
  return planner;
}

sn_planner *sn_planner_new_like(sn_planner *known, const sn_net *net, sn_err *err) {
  sn_planner *planner = sn_planner_new(net, known->q.device, known->q.options, err);
  if (planner) planner->q.like = &known->q;
  return planner;
}

void sn_planner_free(sn_planner *planner) {
  if (planner) sn__question_close(&planner->q);
  free(planner);
}

sn_status sn_planner_turn(sn_planner *planner, const sn_device *device, const sn_options *options, sn_err *err) {
  planner->q.err = err;
  sn__question_turn(&planner->q, device, options);
  return sn__question_open(&planner->q);
}

sn_run *sn_planner_run(sn_planner *planner, const char *spec, const sn_strategy *strategies, uint32_t n_strategies,
                       sn_err *err) {
  sn__question *q = &planner->q;
  q->err = err;
  q->memory_bytes = q->device->memory_bytes;
  q->arena = sn_arena_new();
  sn_run *run = q->arena ? fill_run(q, spec, strategies, n_strategies) : NULL;
  if (!q->arena) sn_fail_memory(err);
  if (!run) sn_arena_free(q->arena);
  q->arena = NULL;
  return run;
}

sn_plan *sn_planner_plan(sn_planner *planner, sn_strategy strategy, uint64_t memory_bytes, bool only_fits,
                         sn_err *err) {
  planner->q.err = err;
  planner->q.memory_bytes = memory_bytes;
  return make_plan(&planner->q, strategy, only_fits);
}

const sn_route *sn_planner_route(sn_planner *planner, sn_strategy strategy, sn_err *err) {
  planner->q.err = err;
  return sn__question_open_graph(&planner->q, strategy) == SN_OK ? sn__question_graph_of(&planner->q, strategy)->route
                                                                 : NULL;
}

static sn_need_wish need_wish(sn__question *q, sn_strategy strategy) {
  return (sn_need_wish){.strategy = strategy,
                        .schedule = sn__question_schedule(q, strategy),
                        .costs =
                            sn__question_graph_of(q, strategy)->workspace_free ? NULL : sn__question_costs(q, strategy),
                        .workspace = sn__question_workspace(q, strategy),
                        .pooled = !sn__question_has_caching(q, strategy),
                        .memory_bytes = q->memory_bytes,
                        .resident_bytes = sn__question_resident(q, strategy),
                        .pool_limit = q->options->pool_bytes,
                        .floor = sn__question_graph_of(q, strategy)->floor,
                        .on_host = q->options->external == SN_EXTERNAL_HOST};
}

/* `least`: where PyTorch's row does not fit its need is the least with which it runs, which takes a search. */
static sn_status tell_need(sn__question *q, sn_strategy strategy, const sn_plan *plan, bool least, sn_need *need) {
  const sn_need_wish wish = need_wish(q, strategy);
  sn_caching_need caching;
  uint64_t least_bytes = 0;
  sn_need_tell(&wish, plan, need);
  if (!sn__question_has_caching(q, strategy)) return SN_OK;
  sn_status status = find_caching_need(q, strategy, plan, &caching, least ? &least_bytes : NULL);
  need->fits = caching.fits;
  need->device_bytes = caching.fits || least_bytes == 0 ? caching.device_bytes : least_bytes;
  return status;
}

sn_status sn_planner_need(sn_planner *planner, sn_strategy strategy, uint64_t memory_bytes, sn_need *need,
                          sn_err *err) {
  sn_plan *plan = sn_planner_plan(planner, strategy, memory_bytes, false, err);
  sn_status status = plan ? tell_need(&planner->q, strategy, plan, true, need) : err->code;
  sn_plan_free(plan);
  return status;
}

/* Whether a plan is to be made at all to know if it fits. */
static sn_status foresee(sn__question *q, sn_strategy strategy, sn_need *need, bool *known) {
  *known = false;
  if (is_host_limited(q) || sn_strategy_adapts(strategy) || sn_strategy_is_corun(strategy) ||
      (sn__question_has_caching(q, strategy) && sn_strategy_has_cache(strategy)) || !sn__question_schedule(q, strategy))
    return q->err->code;
  const sn_need_wish wish = need_wish(q, strategy);
  return sn_need_foresee(&wish, need, known, q->err);
}

sn_status sn_planner_fits(sn_planner *planner, sn_strategy strategy, uint64_t memory_bytes, sn_need *need,
                          sn_err *err) {
  sn__question *q = &planner->q;
  bool known;
  q->err = err;
  q->memory_bytes = memory_bytes;
  if (foresee(q, strategy, need, &known) != SN_OK || known) return err->code;
  sn_plan *plan = make_plan(q, strategy, true);
  sn_status status = plan ? tell_need(q, strategy, plan, false, need) : err->code;
  sn_plan_free(plan);
  need->device_bytes = need->host_bytes = 0;
  return status;
}

sn_status sn_planner_least(sn_planner *planner, sn_strategy strategy, uint64_t *memory_bytes, sn_err *err) {
  planner->q.err = err;
  return least_memory(&planner->q, strategy, NULL, memory_bytes);
}

sn_status sn_planner_bound(sn_planner *planner, sn_strategy strategy, uint64_t *memory_bytes, sn_err *err) {
  sn__question *q = &planner->q;
  q->err = err;
  if (sn__question_open_graph(q, strategy) != SN_OK) return err->code;
  uint64_t step =
      sn_need_of_largest_step(sn__question_graph_of(q, strategy)->route, !sn__question_has_caching(q, strategy));
  *memory_bytes = sn__question_resident(q, strategy) + step;
  return SN_OK;
}

sn_status sn_planner_result(sn_planner *planner, sn_strategy strategy, uint64_t memory_bytes, sn_arena *arena,
                            sn_result *result, sn_err *err) {
  *result = (sn_result){0};
  planner->q.err = err;
  planner->q.arena = arena;
  planner->q.memory_bytes = memory_bytes;
  bool roomy;
  sn__question_begin(&planner->q, 0);
  return answer(&planner->q, strategy, result, &roomy);
}

sn_status sn_planner_binding(sn_planner *planner, sn_strategy strategy, uint64_t memory_bytes, sn_arena *arena,
                             sn_binding *binding, sn_err *err) {
  sn_plan *plan = sn_planner_plan(planner, strategy, memory_bytes, false, err);
  if (!plan) return err->code;
  uint32_t at;
  sn_cause cause = sn_cause_of(plan, &at);
  const sn_step *step = &plan->route->steps[at];
  *binding = (sn_binding){.cause = cause,
                          .step = at + 1,
                          .layer = sn_arena_text(arena, planner->q.net->layers[step->layer].name),
                          .pass = sn_pass_name(step->pass),
                          .tensor_bytes = plan->use[at].tensor_bytes,
                          .workspace_bytes = plan->use[at].workspace_bytes,
                          .resident_bytes = sn__question_resident(&planner->q, strategy),
                          .host_bytes = plan->external_bytes,
                          .host_memory_bytes = plan->external_limit};
  if (!binding->layer) sn_fail_memory(err);
  if (binding->layer && tell_need(&planner->q, strategy, plan, true, &binding->need) == SN_OK)
    sn_explain_peak(plan, strategy, at, arena, &binding->tensors, &binding->n_tensors, err);
  sn_plan_free(plan);
  return err->code;
}
