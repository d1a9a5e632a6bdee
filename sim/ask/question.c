/* Question: opening, turning and closing; see the header. */
#include "sim/ask/question.h"

#include "sim/ask/caching_need.h"
#include "sim/ask/result.h"
#include "sim/device/calibration.h"
#include "sim/device/device.h"
#include "sim/graph/route_resize.h"
#include "sim/parallel/shard.h"
#include "sim/parallel/times.h"
#include "sim/plan/lower.h"

#include <stdlib.h>
#include <string.h>

const sn_costs *sn__question_costs(const sn__question *q, sn_strategy strategy) {
  const sn__question_graph *g = &q->graphs[sn_strategy_graph(strategy)];
  return g->costs ? g->costs : q->costs;
}

/* Where a turn forgets the route, its plans would have none. */
sn_proved *sn__question_proved(sn__question *q, sn_strategy strategy) {
  bool stays = !q->once && !sn_dialect_of(strategy.dialect)->by_kernel;
  return stays && !sn_strategy_adapts(strategy) ? &q->proved : NULL;
}

sn_workspace sn__question_workspace(const sn__question *q, sn_strategy strategy) {
  return sn_dialect_of(strategy.dialect)->declared ? SN_WORKSPACE_MAX : q->options->workspace;
}

static bool is_eager(sn_strategy strategy) {
  return sn_dialect_of(strategy.dialect)->eager;
}

bool sn__question_has_caching(const sn__question *q, sn_strategy strategy) {
  if (q->options->allocator == SN_ALLOCATOR_POOL) return is_eager(strategy);
  return q->options->allocator == SN_ALLOCATOR_PYTORCH || q->options->allocator == SN_ALLOCATOR_EXPANDABLE;
}

uint64_t sn__question_context(const sn__question *q, sn_strategy strategy) {
  return sn_device_context(q->device, q->net, is_eager(strategy));
}

uint64_t sn__question_resident(const sn__question *q, sn_strategy strategy) {
  const sn_persistent *persistent = &q->graphs[sn_strategy_graph(strategy)].persistent;
  return sn__question_context(q, strategy) + sn_persistent_total(persistent);
}

/* Where the GPUs of a mesh are, and what that takes of each. */
static sn_status find_cluster(sn__question *q) {
  const sn_mesh *mesh = &q->options->iteration.mesh;
  bool assumed;
  if (sn_mesh_is_one(mesh)) return SN_OK;
  if (sn_mesh_cluster(mesh, &q->options->cluster, q->device, &q->cluster, &assumed, q->err) != SN_OK)
    return q->err->code;
  q->shared = *q->device;
  q->shared.communicator_bytes = q->cluster.communicator_bytes;
  q->shared.host_shares = sn_mesh_node_gpus(mesh, &q->cluster);
  q->device = &q->shared;
  return SN_OK;
}

sn_status sn__question_open(sn__question *q) {
  if (find_cluster(q) != SN_OK) return q->err->code;
  if (sn_net_check_training(q->net, q->options->iteration.inference, q->err) != SN_OK) return q->err->code;
  q->memory_bytes = q->device->memory_bytes;
  q->model = sn_costs_new_in(q->net, q->device, q->options->iteration, q->err);
  if (q->model && sn_costs_optimizer(q->model) != q->options->iteration.optimizer)
    sn_costs_set_optimizer(q->model, q->net, q->device, q->options->iteration.optimizer);
  q->costs = q->model && q->options->calibration ? sn_costs_copy(q->model, q->net, q->err) : q->model;
  if (q->costs && q->options->calibration) sn_calibration_apply(q->options->calibration, q->net, q->costs);
  return q->costs ? SN_OK : q->err->code;
}

/* ---- graphs ---- */

static sn_status make_route(sn__question *q, sn_strategy strategy, sn__question_graph *g);

/* NULL, mostly without an error, where there is nothing to go by. */
static sn_route *route_like(sn__question *q, sn_strategy strategy) {
  sn__question_graph *known = q->like ? sn__question_graph_of(q->like, strategy) : NULL;
  if (!known || (sn_dialect_of(strategy.dialect)->declared && !q->net->recorded)) return NULL;
  q->like->err = q->err;
  return make_route(q->like, strategy, known) == SN_OK ? sn_route_resize(known->route, q->net, q->err) : NULL;
}

/* NULL, without an error but the route's own, where there is no other stage. */
static sn_route *route_of_stage(sn__question *q, sn_strategy strategy) {
  const sn__question_graph *known = q->stage ? sn__question_graph_of(q->stage, strategy) : NULL;
  return known && known->route ? sn_shard_stage(known->route, q->options->iteration, q->err) : NULL;
}

static sn_status make_route(sn__question *q, sn_strategy strategy, sn__question_graph *g) {
  if (g->route) return SN_OK;
  g->route = route_like(q, strategy);
  g->resized = g->route != NULL;
  if (!g->route && q->err->code == SN_OK) g->route = route_of_stage(q, strategy);
  if (!g->route && q->err->code == SN_OK)
    g->route = sn_schedule_route(q->net, strategy, q->options->iteration, q->costs, q->err);
  if (!g->route) return q->err->code;
  g->persistent = sn_persistent_of(q->net, strategy.dialect, q->options->iteration);
  return SN_OK;
}

/* Blocks of a recording under checkpoints: what would have been recorded is the same for every batch. */
static sn_status go_by_like(sn__question *q, sn_strategy strategy, const sn__question_graph *g) {
  const sn_route *route = g->route->whole ? g->route->whole : g->route;
  if (!q->like || !route->under || strategy.recompute == SN_RECOMPUTE_NONE) return SN_OK;
  sn__question_graph *known = sn__question_graph_of(q->like, strategy);
  q->like->err = q->err;
  if (make_route(q->like, strategy, known) == SN_OK)
    sn_route_under_like(route, known->route->whole ? known->route->whole : known->route);
  return q->err->code;
}

static sn_status make_costs(sn__question *q, sn_strategy strategy, sn__question_graph *g) {
  if (g->costs || !sn_dialect_of(strategy.dialect)->eager) return SN_OK;
  g->costs = sn_caching_costs(q->net, q->model, q->options->iteration.precision, q->options->workspace, q->err);
  if (!g->costs) return q->err->code;
  if (g->route->mesh && sn_transfers_cost(g->route, &q->cluster, g->costs, q->err) != SN_OK) return q->err->code;
  if (q->options->calibration) sn_calibration_apply(q->options->calibration, q->net, g->costs);
  return SN_OK;
}

/* Operations of a recording change tensors in place, so that one of them alone cannot be run again: modules can. And
 * what a team of cores takes for them is not known. */
static sn_status check_recording(const sn__question *q, sn_strategy strategy) {
  bool alone = strategy.recompute == SN_RECOMPUTE_OPTIMAL || strategy.recompute == SN_RECOMPUTE_SQRT ||
               strategy.recompute == SN_RECOMPUTE_DTR;
  if (!q->net->recorded) return SN_OK;
  if (sn_strategy_is_corun(strategy))
    return sn_fail(q->err, SN_BAD_INPUT, "a recording does not say how its operations use several cores");
  if (strategy.recompute == SN_RECOMPUTE_ATTENTION)
    return sn_fail(q->err, SN_BAD_INPUT,
                   "which operations of a recording are an attention's is not known; pytorch+recompute=units and "
                   "pytorch+recompute=selective run modules again");
  if (!alone || sn_dialect_of(strategy.dialect)->eager) return SN_OK;
  return sn_fail(q->err, SN_BAD_INPUT,
                 "operations of a recording change tensors in place and are not run again one by one; "
                 "pytorch+recompute=units and pytorch+recompute=optimal run modules again");
}

sn_status sn__question_open_graph(sn__question *q, sn_strategy strategy) {
  sn__question_graph *g = sn__question_graph_of(q, strategy);
  const char *refused = sn_strategy_refuses(strategy, q->options->iteration);
  if (!refused) refused = sn_shard_refuses(q->options->iteration);
  if (refused) return sn_fail(q->err, SN_BAD_INPUT, "%s", refused);
  if (check_recording(q, strategy) != SN_OK) return q->err->code;
  if (make_route(q, strategy, g) != SN_OK || go_by_like(q, strategy, g) != SN_OK) return q->err->code;
  if (g->is_open) return SN_OK;
  if (make_costs(q, strategy, g) != SN_OK) return q->err->code;
  const sn_costs *costs = sn__question_costs(q, strategy);
  sn_workspace workspace = sn__question_workspace(q, strategy);
  g->floor = sn_lower_floor(g->route, workspace, costs, &g->workspace_free);
  g->workspace_free = g->workspace_free && workspace != SN_WORKSPACE_MAX;
  g->standing = sn_standing_new(g->route, costs, workspace != SN_WORKSPACE_NONE, q->err);
  g->is_open = g->standing != NULL;
  return g->is_open ? SN_OK : q->err->code;
}

static sn_schedule *make_schedule(sn__question *q, sn_strategy strategy, const sn__question_graph *g) {
  if (!g->resized || !sn_schedule_is_sizeless(strategy.recompute))
    return sn_schedule_new(g->route, strategy.recompute, q->err);
  sn__question_graph *like = sn__question_graph_of(q->like, strategy);
  sn_schedule **known = &like->schedules[strategy.recompute];
  if (!*known) *known = sn_schedule_new(like->route, strategy.recompute, q->err);
  return *known ? sn_schedule_copy(*known, g->route, q->err) : NULL;
}

/* The schedule of so many units; plans look at it, so it stays as long as the route. */
typedef struct sn__some_units {
  uint32_t count;
  sn_schedule *schedule;
  struct sn__some_units *next;
} sn__some_units;

static const sn_schedule *schedule_some_units(sn__question *q, sn__question_graph *g, uint32_t count) {
  for (const sn__some_units *known = g->some_units; known; known = known->next)
    if (known->count == count) return known->schedule;
  sn__some_units *some = calloc(1, sizeof *some);
  if (!some) {
    sn_fail_memory(q->err);
    return NULL;
  }
  *some = (sn__some_units){count, sn_schedule_first_units(g->route, count, q->err), g->some_units};
  g->some_units = some;
  return some->schedule;
}

const sn_schedule *sn__question_schedule(sn__question *q, sn_strategy strategy) {
  if (sn__question_open_graph(q, strategy) != SN_OK) return NULL;
  sn__question_graph *g = sn__question_graph_of(q, strategy);
  if (strategy.units > 0) return schedule_some_units(q, g, strategy.units);
  sn_schedule **schedule = &g->schedules[strategy.recompute];
  if (!*schedule) *schedule = make_schedule(q, strategy, g);
  return *schedule;
}

/* ---- turning and closing ---- */

static void forget_route(sn__question_graph *g) {
  for (int i = 0; i < SN_RECOMPUTES; i++) sn_schedule_free(g->schedules[i]);
  for (sn__some_units *some = g->some_units, *next; some; some = next) {
    next = some->next;
    sn_schedule_free(some->schedule);
    free(some);
  }
  sn_route_free(g->route);
  *g = (sn__question_graph){0};
}

/* What the device and the options are of. */
static void shut_graph(sn__question_graph *g) {
  sn_standing_free(g->standing);
  sn_costs_free(g->costs);
  g->standing = NULL;
  g->costs = NULL;
  memset(g->adapting, 0, sizeof g->adapting);
  g->is_open = false;
  if (g->route && g->route->dialect->by_kernel) forget_route(g);
}

static void shut(sn__question *q) {
  sn_corun_plans_clear(&q->corun); /* which look at the graphs */
  q->corun = (sn_corun_plans){0};
  for (uint32_t g = 0; g < SN_STRATEGY_GRAPHS; g++) shut_graph(&q->graphs[g]);
  if (q->costs != q->model) sn_costs_free(q->costs);
  sn_costs_free(q->model);
  q->costs = q->model = NULL;
}

void sn__question_turn(sn__question *q, const sn_device *device, const sn_options *options) {
  shut(q);
  q->device = device;
  q->options = options;
}

void sn__question_close(sn__question *q) {
  shut(q);
  for (uint32_t g = 0; g < SN_STRATEGY_GRAPHS; g++) forget_route(&q->graphs[g]);
  sn_proved_clear(&q->proved);
  sn_packings_clear(&q->packings);
}
