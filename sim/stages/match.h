/* Match: the rule that plans of several GPUs keep with each other, beside those that each keeps alone
 * (sim/plan/check.h): transfers meet.
 *
 *   pairs    what a stage sends to another is what that receives from it, in the same order: tensor, micro-batch, bytes
 *   turns    every stage gets to its end where each obeys its plan and waits for what it receives
 *
 * Ranks of one stage have one plan, so that their collectives are the same in the same order: two routes of one stage are
 * compared as well. O(steps).
 */
#ifndef SN_SIM_STAGES_MATCH_H
#define SN_SIM_STAGES_MATCH_H

#include "base/err.h"
#include "sim/graph/route.h"

/* Of the routes of all stages of a pipeline, in order. SN_BUG with stages and steps where one waits in vain. */
sn_status sn_match_stages(const sn_route *const *routes, uint32_t count, sn_err *err);

/* Of two ranks of one communicator: the same collectives in the same order. SN_BUG with the first that differs. */
sn_status sn_match_ranks(const sn_route *one, const sn_route *other, sn_mesh_axis axis, sn_err *err);

#endif
