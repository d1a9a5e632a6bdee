/* Workers: threads that compute groups of a grid's points, for one thread that hands them out and takes the results.
 *
 *   sn_workers *workers = sn_workers_new(grid, 2, &err);
 *   while (...) {
 *     while (groups are left && sn_workers_room(workers) > 0) sn_workers_give(workers, next++);
 *     if (sn_workers_take(workers, 100, &group, points)) keep them;
 *   }
 *   sn_workers_free(workers);
 */
#ifndef SN_SIM_SWEEP_WORKERS_H
#define SN_SIM_SWEEP_WORKERS_H

#include "base/err.h"
#include "sim/sweep/grid.h"
#include "sim/sweep/point.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct sn_workers sn_workers;

enum {
  SN_WORKERS_MOST = 1024,
  SN_WORKERS_AHEAD = 4 /* groups per thread that may be given and not taken yet */
};

/* `grid` is looked at as long as the workers live. SN_NO_MEMORY where the threads cannot be started. */
sn_workers *sn_workers_new(const sn_grid *grid, uint32_t threads, sn_err *err);
/* Forgets what was not begun, waits for what was. */
void sn_workers_free(sn_workers *workers);

/* How many groups may be given now, and how many were given and not taken or dropped. */
uint32_t sn_workers_room(sn_workers *workers);
uint32_t sn_workers_held(sn_workers *workers);

/* Queues a group; there must be room. Groups are begun in the order given, but for those of a family (sim/sweep/grid.h),
 * which one thread computes one after the other while others have something else to do. */
void sn_workers_give(sn_workers *workers, uint32_t group);
/* Takes a finished group and its points (of all the grid's strategies), waiting for up to `wait_ms`; false: none. */
bool sn_workers_take(sn_workers *workers, uint32_t wait_ms, uint32_t *group, sn_point *points);
/* Forgets the groups that were not begun. */
void sn_workers_drop(sn_workers *workers);

#endif
