/* Lanes: copy lanes as real threads, and the fences between them and the compute lane, which is the caller's thread.
 *
 * Each copy lane runs its own queue in order. Fences pass once an iteration. Times are nanoseconds from the last
 * sn_lanes_begin(). One lock and one condition for everything: an iteration has some hundred fences, and what runs
 * between them takes milliseconds.
 */
#ifndef SN_EXEC_LANES_H
#define SN_EXEC_LANES_H

#include "base/err.h"
#include "sim/play/trace.h"

#include <stddef.h>
#include <stdint.h>

typedef struct sn_lanes sn_lanes;

/* `jitter_us`: copies wait for up to this long at random before they start, so that tests meet many timings; 0: never.
 */
sn_lanes *sn_lanes_new(uint32_t n_fences, uint32_t jitter_us, sn_err *err);
void sn_lanes_free(sn_lanes *lanes);

/* A new iteration: no fence has passed, time is 0. All lanes must be idle. */
void sn_lanes_begin(sn_lanes *lanes);
int64_t sn_lanes_now(const sn_lanes *lanes);

/* `lane` is SN_LANE_OUT or SN_LANE_IN. The span gets its times when the work is done. */
sn_status sn_lanes_copy(sn_lanes *lanes, sn_lane lane, void *to, const void *from, size_t bytes, sn_span *span,
                        sn_err *err);
/* Any lane; on SN_LANE_COMPUTE a wait returns when the fence has passed. */
sn_status sn_lanes_signal(sn_lanes *lanes, sn_lane lane, uint32_t fence, sn_span *span, sn_err *err);
sn_status sn_lanes_wait(sn_lanes *lanes, sn_lane lane, uint32_t fence, sn_span *span, sn_err *err);

/* Returns when the copy lanes are idle. */
void sn_lanes_drain(sn_lanes *lanes);

#endif
