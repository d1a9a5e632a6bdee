/* From a plan that was played to a result (sim/ask/run.h): the same for the simulated device and for real ones, so that
 * predicted and measured figures mean the same.
 */
#ifndef SN_SIM_ASK_RESULT_H
#define SN_SIM_ASK_RESULT_H

#include "base/arena.h"
#include "base/err.h"
#include "sim/ask/run.h"
#include "sim/device/external.h"
#include "sim/memory/packings.h"
#include "sim/plan/plan.h"
#include "sim/play/trace.h"
#include "sim/policy/options.h"
#include "sim/policy/strategy.h"

#include <stdbool.h>

typedef struct sn_result_source {
  const sn_plan *plan;
  const sn_step_use *use; /* per step: the plan's own, or a meter's */
  const sn_trace *trace;
  sn_packings *packings; /* of the plan and those before it; NULL: none are kept */
  sn_persistent persistent;
  uint64_t context_bytes;
  sn_iteration iteration;
  sn_external external; /* where the external pool is */
  bool want_steps;
} sn_result_source;

/* Fills everything but peak rows; texts and rows are the arena's. */
sn_status sn_result_fill(const sn_result_source *source, sn_strategy strategy, sn_arena *arena, sn_result *result,
                         sn_err *err);

/* What was asked: the run's members but its results, tensors and failures. `spec` is the network as it was given; texts
 * are the arena's. SN_NO_MEMORY. */
sn_status sn_result_begin_run(const char *spec, const sn_net *net, const sn_route *route, const sn_device *device,
                              const sn_options *options, sn_arena *arena, sn_run *run, sn_err *err);

/* Names and sizes of the route's tensors, as rows of the run; the arena's. */
sn_status sn_result_add_tensors(const sn_route *route, sn_arena *arena, sn_run *run, sn_err *err);

/* The first step (index) with the most bytes of tensors, by the plan's account of its steps or a meter's. */
uint32_t sn_result_peak(const sn_plan *plan, const sn_step_use *use);

/* What a net holds for the whole training, outside the pool. Where forks do not copy, what is saved for backward is
 * in the pool, and what is left of a BN is its running mean and variance; where the dialect is declared, the gradients
 * of parameters are in the pool too, but where they are accumulated; where it is eager, a BN has a counter of 8 bytes,
 * labels have 8 bytes, and Adam a counter for each parameter tensor. Inference has parameters, running means and
 * variances, and the batch. */
sn_persistent sn_persistent_of(const sn_net *net, sn_dialect_id dialect, sn_iteration iteration);

/* The strategy whose graph the run shows: the first of SuperNeurons', else the first of all. */
sn_strategy sn_result_head(const sn_strategy *strategies, uint32_t n_strategies);

/* Of one of several GPUs, behind sn_result_fill(): what depends on the device. */
void sn_result_judge_shared(const sn_net *net, const sn_device *device, sn_iteration iteration, sn_result *result);

#endif
