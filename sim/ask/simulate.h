/* Simulate: the whole pipeline for one question, net -> route -> plan -> check -> play, once per strategy.
 *
 *   sn_options options = SN_OPTIONS_INIT;
 *   sn_device gpu;
 *   sn_device_load("k40c", &gpu, &err);
 *   sn_net *net = sn_net_load("inception_v4", 64, 0, &err);
 *   sn_run *run = sn_simulate("inception_v4", net, &gpu, strategies, n, &options, &err);
 *
 * What does not depend on the strategy (route, costs) is made once. Every plan is checked before it is played. A
 * strategy that does not fit is a result like any other (fits is false, peak_device_bytes says what it needs), not an
 * error. A strategy for which no plan can be made (SN_BAD_INPUT: more re-runs than there may be) is one of the run's
 * failures and leaves the others their answers; where nothing else is asked for it is the error. Who asks about memory
 * alone, or about the same net again, keeps a sn_planner.
 */
#ifndef SN_SIM_ASK_SIMULATE_H
#define SN_SIM_ASK_SIMULATE_H

#include "base/arena.h"
#include "base/err.h"
#include "models/net/net.h"
#include "sim/ask/need.h"
#include "sim/ask/run.h"
#include "sim/device/external.h"
#include "sim/plan/high_water.h"
#include "sim/play/timeline.h"
#include "sim/policy/options.h"
#include "sim/policy/strategy.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* `spec` is what the user called the net; it becomes run->net. */
sn_run *sn_simulate(const char *spec, const sn_net *net, const sn_device *device, const sn_strategy *strategies,
                    uint32_t n_strategies, const sn_options *options, sn_err *err);

/* Plans one strategy, checks the plan and writes it as JSON (docs/plan-format.md). A plan for which the pool on offer
 * is too small is written all the same: pool_bytes says what it needs. */
sn_status sn_simulate_write_plan(const sn_net *net, const sn_device *device, sn_strategy strategy,
                                 const sn_options *options, FILE *out, sn_err *err);

/* Plans one strategy, checks and plays the plan, and makes the timeline of that (sim/play/timeline.h): what happens
 * when on which lane, and where in the pool every tensor lies. */
sn_timeline *sn_simulate_timeline(const sn_net *net, const sn_device *device, sn_strategy strategy,
                                  const sn_options *options, sn_err *err);

/* ---- a question kept open ----
 *
 * What does not depend on strategy and memory (route, schedules, costs) is kept between calls; every plan is checked.
 * `memory_bytes` stands in place of the device's own. */

typedef struct sn_planner sn_planner;

/* All three are looked at as long as the planner lives; options->want_steps and want_tensors are not. */
sn_planner *sn_planner_new(const sn_net *net, const sn_device *device, const sn_options *options, sn_err *err);
/* One that is not going to be turned, so that no plan is kept for another device. `known`, NULL or about another stage of
 * the same pipeline: what all stages share it has made, and it outlives this one. */
sn_planner *sn_planner_new_stage(sn_planner *known, const sn_net *net, const sn_device *device,
                                 const sn_options *options, sn_err *err);
void sn_planner_free(sn_planner *planner);

/* Asks about the same net on another device, or with other options of the same iteration: what depends on neither is
 * kept (sim/ask/question.h). After an error the planner is only to be freed. */
/* For the network of `known` at another batch (sn_net_rebatch()), with its device and options: what is asked is made
 * sooner. `known` outlives it. */
sn_planner *sn_planner_new_like(sn_planner *known, const sn_net *net, sn_err *err);
sn_status sn_planner_turn(sn_planner *planner, const sn_device *device, const sn_options *options, sn_err *err);
/* sn_simulate() with what the planner has. */
sn_run *sn_planner_run(sn_planner *planner, const char *spec, const sn_strategy *strategies, uint32_t n_strategies,
                       sn_err *err);

/* The route of a strategy's graph, which is the planner's; NULL after an error. */
const sn_route *sn_planner_route(sn_planner *planner, sn_strategy strategy, sn_err *err);

/* Whether two strategies have the same plans, and answers but for their names, of this network and of any that differs
 * from it in bytes alone: where recomputation for speed runs the same again as that for memory. False where it is not
 * known. SN_BAD_INPUT where one of those two has no plan. */
sn_status sn_planner_alike(sn_planner *planner, sn_strategy a, sn_strategy b, bool *alike, sn_err *err);

/* What a strategy needs, from its plan alone. */
sn_status sn_planner_need(sn_planner *planner, sn_strategy strategy, uint64_t memory_bytes, sn_need *need, sn_err *err);
/* The same but for device_bytes and host_bytes, which stay 0, sooner: nothing is planned or placed but where that
 * decides. */
sn_status sn_planner_fits(sn_planner *planner, sn_strategy strategy, uint64_t memory_bytes, sn_need *need, sn_err *err);

/* The least usable memory of a device with which the strategy runs; options->pool_bytes is not looked at. Every
 * strategy runs with that, and with a block less none does - but for superneurons-paper, whose narrow cache may by luck
 * run with a little less than is found here. With more each runs, too, but for those that are planned for the memory
 * there is (recompute=optimal, co-running) and PyTorch's allocator, for which a little more may fail.
 * sn_result.least_device_bytes is the same. The host's memory, where it is limited, is kept to; 0: no memory is enough,
 * as what is sent out takes more than the host has. SN_MEMORY_ALL is more than any plan takes. */
#define SN_MEMORY_ALL (UINT64_C(1) << 60)
sn_status sn_planner_least(sn_planner *planner, sn_strategy strategy, uint64_t *memory_bytes, sn_err *err);

/* What no plan of the strategy's graph goes below, whatever it keeps, copies or runs again: what is resident and the
 * tensors of the largest step, without holes and workspaces. */
sn_status sn_planner_bound(sn_planner *planner, sn_strategy strategy, uint64_t *memory_bytes, sn_err *err);

/* Plays the plan as well; rows and names are put into `arena`, where options->want_peak asks for them too. */
sn_status sn_planner_result(sn_planner *planner, sn_strategy strategy, uint64_t memory_bytes, sn_arena *arena,
                            sn_result *result, sn_err *err);

/* What keeps a plan from fitting into less: the tensors of its fullest step where they alone are too large, else what
 * sets its pool. */
typedef struct sn_binding {
  sn_need need; /* of the plan */
  sn_cause cause;
  uint32_t stage, stages; /* of a pipeline of so many (sim/stages/staged.h); 0: it is none */
  uint32_t step;          /* from 1 */
  const char *layer, *pass;
  uint64_t tensor_bytes, workspace_bytes; /* of the step */
  uint64_t resident_bytes;                /* context, parameters and all else that stays */
  uint64_t host_bytes, host_memory_bytes; /* needed of the host, and what it has; 0: not limited */
  uint32_t n_tensors;
  const sn_peak_row *tensors; /* on the device in the step, largest first (sim/ask/explain.h) */
} sn_binding;
sn_status sn_planner_binding(sn_planner *planner, sn_strategy strategy, uint64_t memory_bytes, sn_arena *arena,
                             sn_binding *binding, sn_err *err);

/* The plan that the result is of, or with `only_fits` one that fits if that does; NULL after an error. It looks at the
 * planner, and is freed before that. */
sn_plan *sn_planner_plan(sn_planner *planner, sn_strategy strategy, uint64_t memory_bytes, bool only_fits, sn_err *err);

#endif
