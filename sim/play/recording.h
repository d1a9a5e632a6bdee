/* Recording: an iteration that was executed, as a few bytes an instruction: its plan and when each instruction ran. A
 * plan for a real machine depends on what that machine's kernels need, so it cannot be made again elsewhere; with the
 * recording and the net it can be looked at like any other (sim/play/timeline.h).
 *
 *   sn_blob recording = sn_recording_write(plan, &trace, arena, &err);
 *   sn_timeline *timeline = sn_recording_timeline(route, recording, &err);
 *
 * Format: docs/store.md. What is read is proved like every plan (sim/plan/check.h) before anything is made of it.
 */
#ifndef SN_SIM_PLAY_RECORDING_H
#define SN_SIM_PLAY_RECORDING_H

#include "base/arena.h"
#include "base/blob.h"
#include "base/err.h"
#include "sim/plan/plan.h"
#include "sim/play/timeline.h"
#include "sim/play/trace.h"

/* The bytes are the arena's; about 12 an instruction. None, and SN_NO_MEMORY, where there is no room. */
sn_blob sn_recording_write(const sn_plan *plan, const sn_trace *trace, sn_arena *arena, sn_err *err);

/* `route` is of the net that was recorded. SN_BAD_INPUT for bytes that are no recording, or not of this route. */
sn_timeline *sn_recording_timeline(const sn_route *route, sn_blob recording, sn_err *err);

#endif
