/* What PyTorch's runtime of pipelines does of a stage (internal to sim/parallel/; PyTorch 2.15, schedules.py,
 * _PipelineScheduleRuntime, which plays interleaved and zb-h1): the entries of its list, and between them
 *
 *   ask       makes room for what an entry is to receive
 *   unshard   gathers a chunk's parameters that are shared (UNSHARD), of up to three chunks whose entries come next
 *   reshard   lets go of them (RESHARD), where a chunk is none of these three any more
 *   reduce    reduces a chunk's gradients (REDUCE_GRAD), behind the last of its backwards
 *   await     waits for that (WAIT_REDUCE_GRAD)
 *
 * When a stage asks follows from all stages' lists: they go through them in rounds, stage by stage one action each; one
 * that is not there yet is waited for, and who makes it puts the asking at the end of what its receiver has done so far. */
#ifndef SN_SIM_PARALLEL_PIPELINE_ACTIONS_H
#define SN_SIM_PARALLEL_PIPELINE_ACTIONS_H

#include "sim/parallel/pipeline.h"

#include <stddef.h>

typedef enum sn__action_kind { SN__COMPUTE, SN__ASK, SN__UNSHARD, SN__RESHARD, SN__REDUCE, SN__AWAIT } sn__action_kind;

typedef struct sn__action {
  sn_pipeline_entry entry; /* computed or asked for; of the others the chunk alone */
  uint8_t kind;
} sn__action;

typedef struct sn__actions {
  sn__action *all;
  size_t n, room;
} sn__actions;

/* Of a stage. To be freed (all) in any case. SN_BUG where stages wait for each other. */
sn_status sn__actions_of(const sn_pipeline *pipeline, uint32_t stage, sn__actions *made, sn_err *err);

#endif
