/* Units: the modules that a user of PyTorch puts into torch.utils.checkpoint. The forward pass is cut where one value
 * alone goes on, which nothing changes any more; cuts are kept behind a POOL and behind a JOIN or CONCAT with the BN
 * and ACT that follow it, so that a unit is what models call a block or a stage:
 *
 *   conv1 bn1 relu1 pool1 | conv .. join relu | conv .. join relu | .. | pool5 fc softmax      a ResNet
 *   conv relu conv relu pool | conv relu conv relu pool | .. | fc relu fc relu fc softmax      VGG
 *
 * A value that waits for a reader while two blocks end or more has a cut behind it too, and is left out of what goes on
 * with later ones: every unit that reads it has it for an input.
 *
 *   conv bn relu conv bn relu | pool conv bn relu conv bn relu | .. | concat conv .. relu up | ..      U-Net
 *   embedding .. join | .. | norm .. join norm (the encoder's output) | .. join | .. join | ..         T5
 *
 * A chain, in which one value alone goes on from step to step, has hardly any of these ends: where that makes no two
 * units, it is cut as torch.utils.checkpoint.checkpoint_sequential(net, k, x) cuts an nn.Sequential, into k segments of
 * equally many members, of which the last has the rest and is not run again. A layer is a member with what changes its
 * output in place. k is the one with which least is kept.
 *
 *   conv relu conv relu conv relu | conv relu conv relu conv relu | conv relu conv relu conv relu loss     k = 3
 *
 * Of a recording the modules are known (sn_route.regions), and what lies between them is a unit that stays.
 *
 * A unit has two steps at least. What lies behind the last cut holds the loss and is no unit. O(steps + accesses).
 */
#ifndef SN_SIM_SCHEDULE_UNITS_H
#define SN_SIM_SCHEDULE_UNITS_H

#include "base/err.h"
#include "sim/graph/pass.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct sn_units {
  uint32_t count;
  uint32_t segments; /* it is a chain that checkpoint_sequential() cuts into so many; 0: it is not */
  uint32_t *first;   /* unit u is the forward steps first[u] .. first[u + 1] - 1; count + 1 entries */
  bool *stays;       /* per unit: nobody runs it again, as it is no module; NULL: all may run again */
} sn_units;

static inline bool sn_units_stays(const sn_units *units, uint32_t unit) {
  return units->stays && units->stays[unit];
}

/* How many may run again. */
uint32_t sn_units_modules(const sn_units *units);

/* What a user wraps: the cuts, but where one lies in a block of the model (models/net/modules.h), as between a decoder
 * layer's attention and its MLP, its blocks, and what lies between them stays. Free with sn_units_clear(). */
sn_status sn_units_find(const sn_route *route, sn_units *units, sn_err *err);
/* SN_UNITS_MODULES are these. Others: all that is cut; and of which what lies between stays, the blocks of the model, where
 * nothing is known of blocks as SN_UNITS_CUT, and each attention in parts, whose operations are one step. */
typedef enum sn_unit_kind { SN_UNITS_MODULES, SN_UNITS_CUT, SN_UNITS_BLOCKS, SN_UNITS_ATTENTION } sn_unit_kind;
sn_status sn_units_find_kind(const sn_route *route, sn_unit_kind kind, sn_units *units, sn_err *err);
void sn_units_clear(sn_units *units);

/* The unit that the forward of a step's layer belongs to; units->count: none. O(log units). */
uint32_t sn_units_of(const sn_units *units, const sn_route *route, uint32_t step);

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

/* Per forward step of the route that `units` are of: its result is kept. From calloc(); NULL where memory is out. */
bool *sn_selective_find(const sn_route *route, const sn_units *units);

/* The route with what is given back to nobody held as long as its unit's checkpoint is: sn_route_hold()'s, or itself
 * where nothing is left over. NULL after an error. */
const sn_route *sn_selective_hold(const sn_route *route, const sn_units *units, const bool *kept, sn_err *err);

/* The same of a route alone, whose blocks are units; of a recording itself. */
const sn_route *sn_selective_route(const sn_route *route, sn_err *err);

#endif
