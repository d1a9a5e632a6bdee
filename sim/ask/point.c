/* Computes the points of a group: one network, one call of the simulator for all strategies. Where that fails, every
 * strategy is asked for by itself, so that only those fail that must. */
#include "sim/ask/point.h"

#include "models/zoo.h"

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

typedef struct group {
  const char *spec;
  const sn_net *net;
  const sn_device *device;
  const sn_options *options;
} group;

static sn_status compute(const group *g, const sn_strategy *strategies, uint32_t count, sn_point *points, sn_err *err) {
  sn_run *run = sn_simulate(g->spec, g->net, g->device, strategies, count, g->options, err);
  for (uint32_t i = 0, result = 0, failure = 0; run && i < count; i++) { /* both in the order of the strategies */
    char name[SN_STRATEGY_TEXT];
    sn_strategy_name(strategies[i], name);
    if (result < run->n_results && strcmp(run->results[result].strategy, name) == 0)
      fill_point(&run->results[result++], &points[i]);
    else
      fail_points(&points[i], 1, run->failures[failure++].reason);
  }
  sn_run_free(run);
  return err->code;
}

void sn_point_compute(const sn_grid *grid, uint32_t number, sn_point *points) {
  uint32_t at[SN_AXES], count = grid->n[SN_AXIS_STRATEGIES];
  sn_err err = SN_ERR_INIT;
  sn_grid_at(grid, number, at);
  sn_options options = {.workspace = (sn_workspace)grid->workspaces[at[SN_AXIS_WORKSPACES]],
                        .external = (sn_external)grid->externals[at[SN_AXIS_EXTERNALS]],
                        .allocator = (sn_allocator)grid->allocators[at[SN_AXIS_ALLOCATORS]],
                        .placement = grid->placement,
                        .corun = SN_CORUN_INIT,
                        .iteration = sn_grid_iteration(grid, at),
                        .shared_link = grid->links[at[SN_AXIS_LINKS]] == 1,
                        .pool_bytes = grid->pools[at[SN_AXIS_POOLS]]};
  const char *spec = grid->nets[at[SN_AXIS_NETS]];
  sn_net *net = sn_net_load(spec, grid->batches[at[SN_AXIS_BATCHES]], (uint32_t)grid->images[at[SN_AXIS_IMAGES]], &err);
  sn_device device = sn_grid_device(grid, at);
  if (net) sn_grid_check_precision(&device, options.iteration.precision, &err);
  group g = {spec, net, &device, &options};
  if (err.code != SN_OK)
    fail_points(points, count, err.text);
  else if (compute(&g, grid->strategies, count, points, &err) != SN_OK)
    for (uint32_t i = 0; i < count; i++) {
      sn_err own = SN_ERR_INIT;
      if (compute(&g, &grid->strategies[i], 1, &points[i], &own) != SN_OK) fail_points(&points[i], 1, own.text);
    }
  sn_net_free(net);
}
