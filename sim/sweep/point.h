/* Point: what a sweep keeps of one combination of its grid (sim/sweep/grid.h), in a form that is the same bytes on every
 * machine of a kind: it travels between processes as it is.
 *
 *   sn_point points[SN_GRID_STRATEGIES];
 *   sn_point_kept kept = {0};
 *   for each group of a family (sim/sweep/grid.h): sn_point_compute(grid, group, &kept, points);
 *   sn_point_forget(&kept);
 */
#ifndef SN_SIM_SWEEP_POINT_H
#define SN_SIM_SWEEP_POINT_H

#include "models/zoo/zoo.h"
#include "sim/device/device.h"
#include "sim/sweep/grid.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct sn_point {
  uint64_t peak_device_bytes, least_device_bytes, peak_tensor_bytes; /* as in sn_result */
  uint64_t pool_bytes, largest_load_bytes, workspace_peak_bytes;
  uint64_t offload_bytes, prefetch_bytes, external_bytes;
  int64_t iteration_ns, stall_ns;
  double images_per_second;
  uint32_t recomputed_layers;
  sn_placement placement;
  bool fits;
  char failure[200];          /* why it could not be computed, all else but the name is 0; "" where it was */
  char net_name[SN_NET_NAME]; /* what the network calls itself; "" where it could not be read */
} sn_point;

/* What one group leaves to the next of its family: the network, and a planner that is turned from one device to the
 * next (sn_planner_turn()). Points are the same with it and without. Zeroed it is empty. */
typedef struct sn_point_kept {
  uint32_t family;
  sn_net *net; /* NULL: nothing is kept */
  sn_planner *planner;
  sn_device device; /* that the planner looks at */
  sn_options options;
} sn_point_kept;

void sn_point_forget(sn_point_kept *kept);

/* Computes the points of a group, grid->n[SN_AXIS_STRATEGIES] of them. Does not fail: a reason goes into the points it
 * holds for. Not fitting is no failure. Threads may share a finished grid, and have each its own `kept`, which is of
 * one grid. NULL: nothing is kept. */
void sn_point_compute(const sn_grid *grid, uint32_t group, sn_point_kept *kept, sn_point *points);

#endif
