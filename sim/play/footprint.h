/* Footprint: what of a timeline's pool each step needs, and of what it consists. Of a co-run plan, where parts of steps
 * stand between those of others, a step here is an operation: whatever has a column (sim/play/timeline.h).
 *
 * A step needs the pool up to the highest address that is in use at any of its moments. At the fullest moment with that
 * address, everything below it is a tensor, the workspace, or a hole:
 *
 *     top  +-----------+
 *          | workspace |
 *          |  (hole)   |
 *          | tensor    |     top = tensors + workspace + holes
 *       0  +-----------+
 *
 * The highest top of all steps is the timeline's pool_bytes, and the first step that reaches it sets the pool. Tensors
 * are summed by the group that the caller puts each into (its operator, for instance). Bytes are whole blocks.
 * O((rectangles + steps) log + instructions + steps * groups).
 */
#ifndef SN_SIM_PLAY_FOOTPRINT_H
#define SN_SIM_PLAY_FOOTPRINT_H

#include "base/err.h"
#include "sim/play/timeline.h"

#include <stdint.h>

typedef struct sn_footprint_step {
  uint32_t moment; /* just before this instruction of the plan; the workspace's own instruction while it runs */
  uint64_t top_bytes, tensor_bytes, workspace_bytes, hole_bytes;
} sn_footprint_step;

typedef struct sn_footprint {
  uint32_t n_steps, n_groups; /* the timeline's columns, updates included */
  uint32_t peak;              /* the step that sets the pool, from 0: the first with the highest top */
  const sn_footprint_step *steps;
  const uint64_t *bytes; /* [step * n_groups + group]: of tensors */
  struct sn_arena *arena;
} sn_footprint;

/* `group` has a number below `n_groups` for each of the timeline's tensors. NULL: out of memory. */
sn_footprint *sn_footprint_new(const sn_timeline *timeline, const uint8_t *group, uint32_t n_groups, sn_err *err);
void sn_footprint_free(sn_footprint *footprint);

#endif
