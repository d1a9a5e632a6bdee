/* Session: graphs, plans of them, and what is predicted; see exec/session/session_internal.h. */
#include "exec/session/session_internal.h"

#include "base/checked.h"
#include "exec/kernel/view.h"
#include "exec/machine/lanes.h"
#include "sim/ask/explain.h"
#include "sim/graph/route.h"
#include "sim/make/make.h"
#include "sim/plan/check.h"
#include "sim/plan/cursor.h"
#include "sim/plan/lower.h"
#include "sim/play/device_model.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Room behind the scratch of a layer's pass, from a whole block on. */
static void add_room(sn_costs *costs, const sn_step *step, uint64_t bytes) {
  if (bytes == 0) return;
  uint64_t scratch = sn_ceil_div(sn_costs_scratch(costs, step->layer, step->pass), SN_POOL_BLOCK) * SN_POOL_BLOCK;
  sn_costs_set_scratch(costs, step->layer, step->pass, scratch + bytes);
}

/* What the kernels do not need themselves: what is a view is gathered; gradients that are added to another layer's are
 * made apart; and the sum of gradients is put aside while those of another batch are made. */
static sn_status plan_rooms(const sn_session *s, const sn_route *route, sn_costs *costs, sn_err *err) {
  bool *adds = sn_call_find_adders(route);
  if (!adds) return sn_fail_memory(err);
  for (uint32_t i = 0; i < route->first_update; i++) {
    const sn_step *step = &route->steps[i];
    for (uint32_t n = 0; n < route->layers[step->layer].n_inputs; n++)
      add_room(costs, step, sn_call_gathered_input_bytes(route, step, n));
    add_room(costs, step, sn_call_gathered_bytes(route, step));
    add_room(costs, step, sn_call_own_bytes(route, step, adds));
    add_room(costs, step, sn_call_aside_bytes(route, step, sn_iteration_batches(s->iteration), adds));
  }
  free(adds);
  return SN_OK;
}

/* Algorithms that do not run are left out, unless a kernel has no other. */
static void apply_algorithms(const sn_timed_algorithms *timed, sn_costs *costs) {
  for (uint32_t i = 0; timed && i < timed->count; i++) {
    const sn_timed_algorithm *a = &timed->list[i];
    if (a->choice.measured)
      sn_costs_set_algorithm(costs, a->layer, a->kernel, a->choice.algo, a->choice.workspace, a->choice.ns);
    else
      sn_costs_drop_algorithm(costs, a->layer, a->kernel, a->choice.algo);
  }
}

sn_costs *sn__session_costs(const sn_session *s, const sn_route *route, sn_err *err) {
  sn_costs *costs = sn_costs_new(s->net, &s->device, err);
  if (!costs) return NULL;
  assert(s->machine.ops);
  sn_costs_set_optimizer(costs, s->net, &s->device, s->iteration.optimizer);
  if (s->machine.ops->offer(s->machine.self, costs, err) == SN_OK) {
    if (s->calibration) sn_calibration_apply(s->calibration, s->net, costs);
    apply_algorithms(s->options.algorithms, costs);
    if (plan_rooms(s, route, costs, err) == SN_OK) return costs; /* beyond what a calibration has seen */
  }
  sn_costs_free(costs);
  return NULL;
}

/* Whether operations can run side by side here. */
static sn_status check_cores(const sn_session *s, sn_err *err) {
  if (s->by_cores.cores.count > 0) return SN_OK;
  if (s->options.backend != SN_EXEC_CPU)
    return sn_fail(err, SN_BAD_USAGE,
                   "operations side by side on cores of their own are executed on the CPU only; use --backend cpu");
  return sn_fail(err, SN_BAD_USAGE,
                 "operations run side by side on the processors of this machine, and there is one (or --threads 1 asks "
                 "for one); use snsim simulate");
}

/* The graph of a strategy's dialect; NULL after an error. */
static sn__graph *open_graph(sn_session *s, sn_strategy strategy, sn_err *err) {
  sn__graph *g = &s->graphs[strategy.dialect];
  bool simulated = sn_strategy_is_simulated(strategy);
  if (sn_strategy_is_corun(strategy) && check_cores(s, err) != SN_OK) return NULL;
  if (simulated || (strategy.dialect != SN_DIALECT_SUPERNEURONS && s->options.backend != SN_EXEC_CPU)) {
    sn_fail(err, SN_BAD_USAGE, "the graph of %s is %s", sn_dialect_of(strategy.dialect)->name,
            simulated ? "simulated only; use snsim simulate" : "executed on the CPU only; use --backend cpu");
    return NULL;
  }
  if (!g->route) g->route = sn_schedule_route(s->net, strategy, s->iteration, NULL, err);
  if (g->route && !g->costs) g->costs = sn__session_costs(s, g->route, err);
  return g->costs ? g : NULL;
}

/* The interval that nobody asked for is no larger than the cores. */
static sn_corun_question question_of(sn_session *s, const sn_costs *costs) {
  sn_corun_options corun = s->options.corun;
  if (corun.interval == SN_INTERVAL_DEFAULT) corun.interval = (uint32_t)sn_min(corun.interval, s->by_cores.cores.count);
  s->asked = (sn_options){.iteration = s->iteration,
                          .external = s->options.external,
                          .placement = s->options.placement,
                          .corun = corun,
                          .calibration = s->teams_measured ? s->calibration : NULL};
  return (sn_corun_question){.device = &s->by_cores,
                             .options = &s->asked,
                             .costs = costs,
                             .scratch = {s->machine.ops->team_scratch, s->machine.self}};
}

/* The pool that there is for a plan. */
static uint64_t limit_of(const sn_session *s) {
  return s->options.pool_bytes ? sn_min(s->options.pool_bytes, s->room) : s->room;
}

sn_plan *sn__session_plan(sn_session *s, sn_strategy strategy, sn_err *err) {
  sn__graph *g = open_graph(s, strategy, err);
  if (!g) return NULL;
  s->adopted = false;
  sn_schedule **schedule = &g->schedules[strategy.recompute];
  uint64_t limit = limit_of(s);
  if (!*schedule) *schedule = sn_schedule_new(g->route, strategy.recompute, err);
  if (*schedule && sn_strategy_is_corun(strategy)) {
    const sn_corun_question question = question_of(s, g->costs);
    return sn_corun_plans_make(&s->corun, &question, *schedule, strategy, limit, err);
  }
  const sn_plan_wish wish = {.schedule = *schedule,
                             .costs = g->costs,
                             .link = sn_link_of(&s->device, s->options.external),
                             .strategy = strategy,
                             .workspace = s->options.workspace,
                             .placement = s->options.placement,
                             .pool_bytes = limit};
  return *schedule ? sn_plan_make(&wish, err) : NULL;
}

/* ---- plans from elsewhere ---- */

/* A copy, of a graph that is the same; NULL: no memory. */
static sn_plan *copy_of(const sn_plan *plan, const sn_route *route) {
  sn_plan *copy = malloc(sizeof *copy);
  if (!copy) return NULL;
  *copy = *plan;
  copy->route = route;
  copy->instrs = malloc((plan->n_instrs + (size_t)1) * sizeof *copy->instrs);
  copy->use = calloc((size_t)route->n_steps + 1, sizeof *copy->use);
  copy->teams = malloc((plan->n_teams + (size_t)1) * sizeof *copy->teams);
  if (copy->instrs && copy->use && copy->teams) {
    memcpy(copy->instrs, plan->instrs, plan->n_instrs * sizeof *copy->instrs);
    if (plan->n_teams > 0) memcpy(copy->teams, plan->teams, plan->n_teams * sizeof *copy->teams);
    return copy;
  }
  sn_plan_free(copy);
  return NULL;
}

/* What the kernels here need for an operation, with the threads of its team where it has one. */
static sn_status find_scratch(const sn_session *s, const sn_plan *plan, const sn_costs *costs, sn_instr *i,
                              uint64_t *bytes, sn_err *err) {
  *bytes = sn_lower_workspace_in(plan->route, costs, i->id, 0, i->algo);
  if (sn_plan_is_corun(plan))
    s->machine.ops->team_scratch(s->machine.self, i->id, (sn_step_part)i->part, plan->teams[i->team].count, bytes, err);
  *bytes = sn_pool_round(*bytes);
  return err->code;
}

#define BEHIND UINT64_MAX /* offset of what gets its place behind the pool */

/* Operations of a lane run one after another: all whose workspace is too small for the kernels here share the lane's
 * room. How large the rooms must be. */
static sn_status size_rooms(const sn_session *s, sn_plan *plan, const sn_costs *costs, uint64_t room[SN_LANES],
                            sn_err *err) {
  for (uint32_t n = 0; n < plan->n_instrs; n++) {
    sn_instr *i = &plan->instrs[n];
    uint64_t bytes = 0;
    if (i->kind != SN_COMPUTE) continue;
    if (find_scratch(s, plan, costs, i, &bytes, err) != SN_OK) return err->code;
    if (bytes <= i->bytes) continue;
    i->offset = BEHIND;
    i->bytes = bytes;
    room[i->lane] = sn_max(room[i->lane], bytes);
  }
  return SN_OK;
}

/* The lanes' rooms lie one behind another, behind the pool. */
static sn_status make_room(const sn_session *s, sn_plan *plan, const sn_costs *costs, sn_err *err) {
  uint64_t room[SN_LANES] = {0}, begin[SN_LANES], end = sn_pool_round(plan->pool_bytes);
  if (size_rooms(s, plan, costs, room, err) != SN_OK) return err->code;
  for (uint32_t lane = 0; lane < SN_LANES; end += room[lane++]) begin[lane] = end;
  sn_cursor c = {.plan = plan};
  while (sn_cursor_next(&c)) {
    sn_instr *i = &plan->instrs[c.at - 1];
    if (i->kind != SN_COMPUTE || i->offset != BEHIND) continue;
    i->offset = begin[i->lane];
    plan->pool_bytes = sn_max(plan->pool_bytes, i->offset + i->bytes);
    plan->reserved_peak = sn_max(plan->reserved_peak, c.held_bytes + i->bytes);
  }
  return SN_OK;
}

static sn_status fail_team(const sn_cores *cores, const char *what, sn_err *err) {
  return sn_fail(err, SN_BAD_USAGE,
                 "%s; snsim --strategy liveness+corun=path --gpu manycore:cores=%u,slots=%u --plan FILE writes one for "
                 "these cores",
                 what, cores->count, cores->slots);
}

sn_status sn_session_check_teams(const sn_plan *plan, const sn_cores *cores, sn_err *err) {
  char text[200];
  for (uint32_t i = 0; i < plan->n_teams; i++) {
    const sn_team *team = &plan->teams[i];
    if (team->slot == SN_SLOT_ANY)
      return fail_team(cores, "its threads float over all cores, which is simulated only", err);
    if (team->slot >= cores->slots)
      return fail_team(cores, "its operations run on second hardware threads of cores, and here a core has one", err);
    if (team->first + team->count <= cores->count) continue;
    snprintf(text, sizeof text, "its operations run on up to %u cores, and here there are %u",
             (unsigned)team->first + team->count, cores->count);
    return fail_team(cores, text, err);
  }
  if (plan->n_teams <= SN_LANES_TEAMS) return SN_OK;
  snprintf(text, sizeof text, "its operations run on %u different ranges of cores, and at most %d teams are executed",
           plan->n_teams, SN_LANES_TEAMS);
  return fail_team(cores, text, err);
}

/* Whether the machine can run its operations side by side; makes their times. */
static sn_status open_teams(sn_session *s, const sn__graph *g, const sn_plan *plan, sn_err *err) {
  const sn_corun_question question = question_of(s, g->costs);
  if (sn_iteration_batches(s->iteration) > 1)
    return sn_fail(err, SN_BAD_USAGE, "operations of several batches (\"accumulate\") are not run side by side");
  if (sn_session_check_teams(plan, &s->by_cores.cores, err) != SN_OK) return err->code;
  sn_corun_plans_times(&s->corun, &question, g->route, err);
  return err->code;
}

sn_plan *sn__session_adopt(sn_session *s, sn_strategy strategy, const sn_plan *made, sn_err *err) {
  sn_plan *plan = NULL;
  if (s->options.backend != SN_EXEC_CPU)
    sn_fail(err, SN_BAD_USAGE, "plans from elsewhere are executed on the CPU only; use --backend cpu");
  const sn__graph *g = err->code == SN_OK ? open_graph(s, strategy, err) : NULL;
  if (!g) return NULL;
  if (made->route->n_steps != g->route->n_steps || made->route->n_tensors != g->route->n_tensors)
    sn_fail(err, SN_BUG, "a plan of another graph than the session's");
  else if (sn_plan_is_corun(made) && open_teams(s, g, made, err) != SN_OK)
    return NULL;
  else if (!(plan = copy_of(made, g->route)))
    sn_fail_memory(err);
  if (!plan) return NULL;
  s->adopted = true;
  plan->pool_limit = limit_of(s);
  plan->external_limit = 0;
  snprintf(plan->layouts, sizeof plan->layouts, "%s", sn_costs_layouts(g->costs));
  sn_check_report report = {.use = plan->use};
  if (make_room(s, plan, g->costs, err) == SN_OK && sn_check(plan, &report, err) == SN_OK) return plan;
  sn_plan_free(plan);
  return NULL;
}

/* What a machine holds is laid out for its own graph; other graphs have other parts of it. */
static sn_persistent persistent_of(const sn_session *s, const sn_route *route) {
  for (sn_dialect_id d = SN_DIALECT_SUPERNEURONS + 1; d < SN_DIALECTS; d++)
    if (sn_dialect_of(d) == route->dialect) return sn_persistent_of(s->net, d, s->iteration);
  return s->machine.info.persistent;
}

sn_result_source sn__session_source(const sn_session *s, const sn_plan *plan, const sn_trace *trace) {
  return (sn_result_source){.plan = plan,
                            .use = plan->use,
                            .trace = trace,
                            .persistent = persistent_of(s, plan->route),
                            .context_bytes = s->profile ? sn_device_context(s->profile, s->net, false) : 0,
                            .iteration = s->iteration,
                            .want_steps = s->options.want_steps};
}

sn_status sn__session_tell(const sn_session *s, const sn_plan *plan, sn_strategy strategy, sn_result *r, sn_err *err) {
  if (!sn_plan_is_corun(plan)) return SN_OK;
  if (s->adopted) return sn_corun_plans_tell_foreign(plan, strategy.corun, s->arena, &r->corun, err);
  return sn_corun_plans_tell(&s->corun, &s->asked, plan, s->arena, &r->corun, err);
}

sn_status sn__session_explain(const sn_session *s, const sn_plan *plan, sn_strategy strategy, sn_result *r,
                              sn_err *err) {
  if (!s->options.want_steps) return SN_OK;
  return sn_explain_peak(plan, strategy, r->peak_step - 1, s->arena, &r->peak, &r->n_peak, err);
}

/* Without a profile, or measured teams, sizes are predicted and times are not. */
static void forget_times(sn_trace *trace) {
  memset(trace->spans, 0, trace->n_spans * sizeof *trace->spans);
  *trace = (sn_trace){.n_spans = trace->n_spans, .spans = trace->spans};
}

sn_status sn__session_predict(sn_session *s, sn_strategy strategy, const sn_plan *plan, sn_trace *trace, sn_err *err) {
  sn_result *r = &s->results[s->n_results];
  sn_device_model model = {.device = sn_plan_is_corun(plan) ? &s->by_cores : &s->device,
                           .costs = s->graphs[strategy.dialect].costs,
                           .external = s->options.external,
                           .times = s->corun.times,
                           .shared_link = s->calibration && s->calibration->shared_link};
  sn_result_source source = sn__session_source(s, plan, trace);
  if (sn_play(plan, sn_device_model_backend(&model), trace, err) != SN_OK) return err->code;
  if (sn_plan_is_corun(plan) ? !s->teams_measured : !s->profile) forget_times(trace);
  if (sn_result_fill(&source, strategy, s->arena, r, err) != SN_OK ||
      sn__session_tell(s, plan, strategy, r, err) != SN_OK || sn__session_explain(s, plan, strategy, r, err) != SN_OK)
    return err->code;
  s->n_results++;
  return SN_OK;
}
