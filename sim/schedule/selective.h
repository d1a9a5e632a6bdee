/* Selective: PyTorch's selective activation checkpointing, torch.utils.checkpoint with the contexts of
 * create_selective_checkpoint_contexts(), as torchtitan's policy for operations has it. Units run again but for some
 * operations, whose results stay from forward on:
 *
 *   products    of an FC without a bias (aten::mm), each second of a unit but not the others, from the first on; with
 *               a bias it is aten::addmm, of which the policy keeps nothing
 *   attention   of one kernel, with what that saves; in parts it is batched products and a softmax, computed again
 *
 * A kept result is given back once, where its operation would run again. PyTorch stops running a unit again where all
 * is saved, and a product saves before it runs: what the last one has made nobody takes, and it stays until the last
 * operation of the unit has gone backward, whose node holds the checkpoint.
 */
#ifndef SN_SIM_SCHEDULE_SELECTIVE_H
#define SN_SIM_SCHEDULE_SELECTIVE_H

#include "base/err.h"
#include "sim/graph/route.h"
#include "sim/schedule/units.h"

#include <stdbool.h>
#include <stdint.h>

/* Per forward step of the route that `units` are of: its result is kept. From calloc(); NULL where memory is out. */
bool *sn_selective_find(const sn_route *route, const sn_units *units);

/* The route with what is given back to nobody held as long as its unit's checkpoint is: sn_route_hold()'s, or itself
 * where nothing is left over. NULL after an error. */
const sn_route *sn_selective_hold(const sn_route *route, const sn_units *units, const bool *kept, sn_err *err);

/* The same of a route alone, whose blocks are units; of a recording itself. */
const sn_route *sn_selective_route(const sn_route *route, sn_err *err);

#endif
