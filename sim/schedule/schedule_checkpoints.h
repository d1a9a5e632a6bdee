/* recompute=optimal in PyTorch's graph: which modules to put into torch.utils.checkpoint so that an iteration takes
 * least time within so many bytes.
 *
 *   units      | stem | block | block | block | block | rest      (sim/schedule/units.h)
 *   regions      kept   [ once more  ]  kept   [again]  kept
 *
 * A region is units next to each other in one checkpoint: of it only the input stays, and all of it runs again when
 * backward comes to it. Regions are not nested, and the rest behind the last unit is never in one. So a choice is known
 * by what it keeps ahead of a unit and by the time it has lost, and the least time is found from unit to unit, by what
 * is kept: O(units x SN_CHECKPOINT_UNITS x SN_CHECKPOINT_SIZES). Gradients, and what the rest makes, are there whatever
 * is chosen; their bytes at each step go off the memory. Of choices that keep about as much the fastest goes on, and
 * loads are those of a region as a whole, so that now and then a little more was possible.
 */
#ifndef SN_SIM_SCHEDULE_SCHEDULE_CHECKPOINTS_H
#define SN_SIM_SCHEDULE_SCHEDULE_CHECKPOINTS_H

#include "sim/schedule/schedule.h"

enum {
  SN_CHECKPOINT_UNITS = 32,  /* most in a region */
  SN_CHECKPOINT_SIZES = 512, /* what is kept is told apart to such a part of the memory */
};

typedef struct sn_checkpoints sn_checkpoints;

/* `route`, of an eager dialect, must outlive it. `costs` NULL: all times are 0. NULL: out of memory. */
sn_checkpoints *sn_checkpoints_new(const sn_route *route, const sn_costs *costs, sn_err *err);
void sn_checkpoints_free(sn_checkpoints *checkpoints);

/* Which of the regions are checkpoints, the fastest within `bytes` of tensors. NULL, and no error: not possible. */
sn_schedule *sn_checkpoints_schedule(const sn_checkpoints *checkpoints, uint64_t bytes, sn_err *err);

/* The least memory for which there is a schedule, to 1/256 of `most`; UINT64_MAX: not within `most`. */
sn_status sn_checkpoints_least(const sn_checkpoints *checkpoints, uint64_t most, uint64_t *bytes, sn_err *err);

#endif
