/* Kinds of operations: what a runtime of layers takes them for, SuperNeurons' for one, which knows chains alone: a layer
 * makes one tensor of one other.
 *
 *   heavy     it has flops
 *   cheap     it makes one tensor of one other, which only what is a part of it changes: it is easily made again
 *   masked    it is cheap, and makes something aside: norms, dropout
 *   a part    it changes in place what another has just made, and reads nothing else: relu_ behind a batch norm
 *   aside     masks and statistics: what an operation makes beside its result, smaller than that, for its backward alone
 */
#ifndef SN_MODELS_RECORD_KINDS_H
#define SN_MODELS_RECORD_KINDS_H

#include "base/arena.h"
#include "models/record/record_net.h"

/* Of a recording with one run of backward, whose lives are known: sets the layers' op, w->part_of and w->aside, which lie
 * in the arena. False: out of memory. O(events). */
bool sn__record_find_kinds(struct sn_recorded *w, sn_layer *layers, sn_arena *arena);

#endif
