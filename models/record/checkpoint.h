/* Checkpoint: a recording as it would have been with some of its blocks under torch.utils.checkpoint (non-reentrant),
 * made of its events alone.
 *
 *   forward    what the block would keep for backward it does not keep. It holds its arguments, and what it reads and
 *              has not made, until the last of its handles goes
 *   backward   ahead of the first ghost of one of its handles its events come again, up to the last that keeps
 *              something, with storages of their own. What they keep is kept, the rest is let go
 *   handles    whoever takes a value out ends its handle's hold: a checkpoint gives it away once
 *
 * Of a selective checkpoint (create_selective_checkpoint_contexts(), torchtitan's policy; sim/schedule/units.h) some
 * operations do not come again: aten.mm, but each second of a block, and attention by one kernel. What they have made is
 * held from forward until it is asked for where they would run again, or until the last handle goes.
 *
 * What comes of it is a recording like any other (models/record/lives.h), whose operations stand in the order in which
 * they would run. Exact where sums of gradients, Python and the engine do what they did without checkpoints.
 */
#ifndef SN_MODELS_RECORD_CHECKPOINT_H
#define SN_MODELS_RECORD_CHECKPOINT_H

#include "base/arena.h"
#include "models/record/record_net.h"

#include <stdint.h>

/* Blocks next to each other in one checkpoint: regions[first .. end - 1] of what was recorded. */
typedef struct sn_record_span {
  uint32_t first, end;
  uint32_t selective; /* 1: some results are kept; 0: none */
} sn_record_span;

/* Of spans in order, all in the arena but what both have in common. Without lives. NULL where memory is out. O(events
 * + storages of operations). */
struct sn_recorded *sn_record_checkpoint(const struct sn_recorded *plain, const sn_record_span *spans, uint32_t n_spans,
                                         sn_arena *arena);

#endif
