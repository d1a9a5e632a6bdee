/* Meter: a back end in front of another one that counts what is really executed, instruction by instruction, and hands
 * each on. So what is compared with the planner's own figures comes from the execution, the same way for every back
 * end.
 *
 *   sn_meter meter = {.inner = backend};
 *   sn_play_many(plan, sn_meter_backend(&meter), &options, &trace, &done, &err);
 *   ... meter.touched_bytes, meter.use[step] ...
 *   sn_meter_clear(&meter);
 */
#ifndef SN_SIM_PLAY_METER_H
#define SN_SIM_PLAY_METER_H

#include "sim/play/backend.h"

#include <stdint.h>

typedef struct sn_meter {
  sn_backend inner; /* set by the caller */
  /* of the last iteration */
  uint64_t copied_bytes[SN_LANES];
  uint64_t touched_bytes; /* highest end of what was allocated or used as workspace */
  sn_step_use *use;       /* route->n_steps, as in the plan; NULL before the first play */
  /* while playing */
  const sn_plan *plan;
  uint32_t step;
  uint64_t live_bytes;
  uint32_t live_tensors;
} sn_meter;

sn_backend sn_meter_backend(sn_meter *meter);
void sn_meter_clear(sn_meter *meter);

#endif
