/* Computes the points of a group: one question to a planner for all strategies. Where that fails, every strategy is
 * asked for by itself, so that only those fail that must. */
#include "sim/sweep/point.h"

#include "models/zoo/zoo.h"
#include "sim/device/device.h"
#include "sim/stages/stages.h"

#include <stdio.h>
#include <string.h>

static void fail_points(sn_point *points, uint32_t count, const char *reason) {
  for (uint32_t i = 0; i < count; i++) {
    points[i] = (sn_point){0};
    snprintf(points[i].failure, sizeof points[i].failure, "%.*s", (int)sizeof points[i].failure - 1, reason);
  }
}

static void fill_point(const sn_result *r, sn_point *point) {
  *point = (sn_point){.peak_device_bytes = r->peak_device_bytes,
                      .least_device_bytes = r->least_device_bytes,
                      .peak_tensor_bytes = r->peak_tensor_bytes,
                      .pool_bytes = r->pool_bytes,
                      .largest_load_bytes = r->largest_load_bytes,
                      .workspace_peak_bytes = r->workspace_peak_bytes,
                      .offload_bytes = r->offload_bytes,
                      .prefetch_bytes = r->prefetch_bytes,
                      .external_bytes = r->external_bytes,
                      .iteration_ns = r->iteration_ns,
                      .stall_ns = r->stall_ns,
                      .images_per_second = r->images_per_second,
                      .recomputed_layers = r->recomputed_layers,
                      .placement = strcmp(r->placement, sn_placement_name(SN_PLACEMENT_PACKED)) == 0
                                       ? SN_PLACEMENT_PACKED
                                       : SN_PLACEMENT_FIRST_FIT,
                      .fits = r->fits};
}

void sn_point_forget(sn_point_kept *kept) {
  sn_planner_free(kept->planner);
  sn_net_free(kept->net);
  *kept = (sn_point_kept){0};
}

/* What a run has found; both its lists are in the order of the strategies. */
static void fill_points(const sn_run *run, const sn_strategy *strategies, uint32_t count, sn_point *points) {
  for (uint32_t i = 0, result = 0, failure = 0; i < count; i++) {
    char name[SN_STRATEGY_TEXT];
    sn_strategy_name(strategies[i], name);
    if (result < run->n_results && strcmp(run->results[result].strategy, name) == 0)
      fill_point(&run->results[result++], &points[i]);
    else
      fail_points(&points[i], 1, run->failures[failure++].reason);
  }
}

static void name_points(const sn_net *net, sn_point *points, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) snprintf(points[i].net_name, sizeof points[i].net_name, "%s", net->name);
}

static bool is_pipeline(const sn_options *options) {
  return sn_mesh_size(&options->iteration.mesh, SN_MESH_PP) > 1;
}

/* A pipeline's point is its fullest stage's. */
static sn_status compute_stages(const sn_grid *grid, const char *spec, const sn_point_kept *kept, sn_point *points,
                                sn_err *err) {
  uint32_t count = grid->n[SN_AXIS_STRATEGIES];
  sn_run *run = sn_stages_simulate(spec, kept->net, &kept->device, grid->strategies, count, &kept->options, err);
  if (run) fill_points(run, grid->strategies, count, points);
  sn_run_free(run);
  return err->code;
}

static sn_status compute_all(const sn_grid *grid, const char *spec, sn_point_kept *kept, sn_point *points,
                             sn_err *err) {
  uint32_t count = grid->n[SN_AXIS_STRATEGIES];
  if (is_pipeline(&kept->options)) return compute_stages(grid, spec, kept, points, err);
  if (!kept->planner)
    kept->planner = sn_planner_new(kept->net, &kept->device, &kept->options, err);
  else
    sn_planner_turn(kept->planner, &kept->device, &kept->options, err);
  sn_run *run = err->code == SN_OK ? sn_planner_run(kept->planner, spec, grid->strategies, count, err) : NULL;
  if (run) fill_points(run, grid->strategies, count, points);
  sn_run_free(run);
  return err->code;
}

static void compute_each(const sn_grid *grid, const char *spec, const sn_point_kept *kept, sn_point *points) {
  for (uint32_t i = 0; i < grid->n[SN_AXIS_STRATEGIES]; i++) {
    sn_err err = SN_ERR_INIT;
    sn_run *run = sn_stages_simulate(spec, kept->net, &kept->device, &grid->strategies[i], 1, &kept->options, &err);
    if (run)
      fill_points(run, &grid->strategies[i], 1, &points[i]);
    else
      fail_points(&points[i], 1, err.text);
    sn_run_free(run);
  }
}

static void ask(const sn_grid *grid, const uint32_t at[SN_AXES], sn_point_kept *kept) {
  kept->device = sn_grid_device(grid, at);
  kept->options = sn_grid_options(grid, at);
}

static void compute(const sn_grid *grid, uint32_t number, sn_point_kept *kept, sn_point *points) {
  uint32_t at[SN_AXES], family = sn_grid_family(grid, number);
  bool forget = false;
  sn_err err = SN_ERR_INIT;
  sn_grid_at(grid, number, at);
  const char *spec = grid->nets[at[SN_AXIS_NETS]];
  if (kept->net && kept->family != family) sn_point_forget(kept);
  kept->family = family;
  ask(grid, at, kept);
  if (!kept->net)
    kept->net = sn_net_load(spec, grid->batches[at[SN_AXIS_BATCHES]], (uint32_t)grid->images[at[SN_AXIS_IMAGES]], &err);
  if (kept->net) sn_grid_check_precision(&kept->device, kept->options.iteration.precision, &err);
  if (err.code != SN_OK) {
    fail_points(points, grid->n[SN_AXIS_STRATEGIES], err.text);
  } else if (compute_all(grid, spec, kept, points, &err) != SN_OK) {
    compute_each(grid, spec, kept, points);
    forget = true;
  }
  if (kept->net) name_points(kept->net, points, grid->n[SN_AXIS_STRATEGIES]);
  if (forget) sn_point_forget(kept);
}

void sn_point_compute(const sn_grid *grid, uint32_t group, sn_point_kept *kept, sn_point *points) {
  sn_point_kept own = {0};
  compute(grid, group, kept ? kept : &own, points);
  sn_point_forget(&own);
}
