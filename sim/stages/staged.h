/* Staged: a question kept open (sim/ask/simulate.h) that may be about a pipeline. It is asked as a planner is; of a
 * pipeline each stage has a planner of its own, and the answer is of all: it fits where every stage does, and what is
 * said of memory is of the stage that needs most. Of others it is one planner.
 *
 *   sn_staged *staged = sn_staged_new(NULL, net, device, options, &err);
 *   sn_staged_fits(staged, strategy, device->memory_bytes, &need, &err);
 *   sn_staged_free(staged);
 */
#ifndef SN_SIM_STAGES_STAGED_H
#define SN_SIM_STAGES_STAGED_H

#include "sim/ask/simulate.h"

typedef struct sn_staged sn_staged;

/* All that is given is looked at as long as it lives. `like`, NULL or about the same question of another batch
 * (sn_net_rebatch()), saves work where there is one stage. */
sn_staged *sn_staged_new(sn_staged *like, const sn_net *net, const sn_device *device, const sn_options *options,
                         sn_err *err);
void sn_staged_free(sn_staged *staged); /* NULL is fine */

/* As sn_planner_fits(). Where the tensors alone of a stage are too large the others are not looked at: slack_bytes is
 * that stage's. */
sn_status sn_staged_fits(sn_staged *staged, sn_strategy strategy, uint64_t memory_bytes, sn_need *need, sn_err *err);
/* sn_planner_least(): the most that a stage needs. */
sn_status sn_staged_least(sn_staged *staged, sn_strategy strategy, uint64_t *memory_bytes, sn_err *err);
/* sn_planner_bound(): the most of a stage. */
sn_status sn_staged_bound(sn_staged *staged, sn_strategy strategy, uint64_t *memory_bytes, sn_err *err);
/* sn_planner_binding() of the stage that lacks most; `binding->stage` says which. */
sn_status sn_staged_binding(sn_staged *staged, sn_strategy strategy, uint64_t memory_bytes, sn_arena *arena,
                            sn_binding *binding, sn_err *err);
/* sn_planner_result(): as of sn_stages_simulate(). */
sn_status sn_staged_result(sn_staged *staged, sn_strategy strategy, uint64_t memory_bytes, sn_arena *arena,
                           sn_result *result, sn_err *err);
/* sn_planner_alike() in every stage. */
sn_status sn_staged_alike(sn_staged *staged, sn_strategy a, sn_strategy b, bool *alike, sn_err *err);

/* How many stages: 1 where it is no pipeline. */
uint32_t sn_staged_count(const sn_staged *staged);

#endif
