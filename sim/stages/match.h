/* Match: the rule that plans of several GPUs keep with each other, beside those that each keeps alone (sim/plan/check.h):
 * transfers meet.
 *
 *   pairs    what a stage sends to another is what that receives from it, in the same order: tensor, micro-batch, bytes
 *   order    GPUs of one stage have the same collectives of a communicator in the same order
 *   turns    every GPU gets to its end where each lane obeys its plan, waits at its fences, for what it receives and for
 *            the others of a collective: there is no cycle over all lanes of all
 *
 *   sn_match *match = sn_match_new(4, &err);
 *   sn_match_add_plan(match, "first.json", plan, &err); ..              one of each stage at least, or a route
 *   sn_match_judge(match, &fault, &err);
 *   sn_match_free(match);
 *
 * Of one stage there may be several, as many of each: the k-th of a stage sends to the k-th of the next. A send keeps
 * nobody waiting; a collective starts with its last member, of those that are there. Everything that is needed is copied
 * when it is added. O(rounds lanes + transfers), a round being what all do until each waits for another.
 */
#ifndef SN_SIM_STAGES_MATCH_H
#define SN_SIM_STAGES_MATCH_H

#include "base/err.h"
#include "sim/graph/route.h"
#include "sim/plan/plan.h"

typedef struct sn_match sn_match;

sn_match *sn_match_new(uint32_t stages, sn_err *err);
void sn_match_free(sn_match *match); /* NULL is fine */

/* What the stage of a route sends and receives, step by step. Its collectives are not looked at: all GPUs of the stage
 * have this route. */
sn_status sn_match_add_route(sn_match *match, const sn_route *route, sn_err *err);

/* All lanes of a plan. `name` must outlive the match. */
sn_status sn_match_add_plan(sn_match *match, const char *name, const sn_plan *plan, sn_err *err);

/* Of which that was added, and at which step of its route, or instruction of its plan, from 0. */
typedef struct sn_match_fault {
  uint32_t member, at;
} sn_match_fault;

/* Once. SN_BUG with who does not meet whom where; fault may be NULL. */
sn_status sn_match_judge(sn_match *match, sn_match_fault *fault, sn_err *err);

#endif
