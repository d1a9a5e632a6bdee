/* Stages: a question about a pipeline is one about each of its stages, whose plans are made and proved one by one
 * (sim/parallel/stage.c), and what they take together.
 *
 *   memory   of a GPU: the stage's that needs most, whose plans have all micro-batches
 *   proof    each plan alone by the checker, and that transfers meet by sim/stages/match.h
 *   time     stages play together: each micro-batch's forward and backward take what the stage's own play says, in the
 *            order of the schedule, behind what the neighbours send (sim/parallel/pipeline.h); the update comes last
 *
 * Micro-batches are iteration.accumulate, --batch images or sequences each. Plans of other stages than those that need
 * most and the first have one round for many (sn_rounds_of()). Of a stage's own results in run->stages right are
 * fits, peak_device_bytes, reserved_bytes, live at the peak, and `shared` but for bytes that cross links;
 * least_device_bytes where no stage before it needs more, else it is no more than that.
 */
#ifndef SN_SIM_STAGES_STAGES_H
#define SN_SIM_STAGES_STAGES_H

#include "sim/ask/simulate.h"

/* Those of a stage's own question, whose plan holds all micro-batches of an update. */
sn_options sn_stages_options(const sn_options *options, uint32_t stage);

/* sn_simulate() of a mesh with pp > 1; of others sn_simulate() itself. Errors are its own, and sn_pipeline_new()'s. */
sn_run *sn_stages_simulate(const char *spec, const sn_net *net, const sn_device *device, const sn_strategy *strategies,
                           uint32_t n_strategies, const sn_options *options, sn_err *err);

/* The same of a pipeline, sooner where an update has many micro-batches, as plans of all stages have one round for many,
 * and transfers are not matched. Right are, of each result, fits, peak_device_bytes, times, images_per_second and
 * `shared`'s exposed_ns, bubble_ns and flops_share; least_device_bytes where it does not fit. With `only_fits`
 * that is not looked for either, and of a strategy that does not run no result says more than that. */
sn_run *sn_stages_brief(const char *spec, const sn_net *net, const sn_device *device, const sn_strategy *strategies,
                        uint32_t n_strategies, const sn_options *options, bool only_fits, sn_err *err);

#endif
