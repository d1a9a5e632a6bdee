/* Lanes: what runs beside the thread that feeds a plan. Each lane is a queue in order, of work, fences that it passes
 * and fences that it waits for; fences pass once an iteration. Work has a worker: a thread that does nothing else.
 *
 *   out, in         copies, each with a worker of its own
 *   compute         the caller's thread itself: sn_lanes_signal() and sn_lanes_wait() act at once
 *   with teams      compute, compute2, ..: work of any team, whose worker runs on the team's processors only, and so do
 *                   the threads that it starts; the caller only feeds
 *
 * A worker takes the head of any lane that waits for it; heads that are fences are passed by whoever comes by. So an
 * operation follows another of the same team without a thread changing. One lock for everything: an iteration has some
 * hundred fences, and what runs between them takes longer by far.
 *
 * Times are nanoseconds from the last sn_lanes_begin().
 */
#ifndef SN_EXEC_MACHINE_LANES_H
#define SN_EXEC_MACHINE_LANES_H

#include "base/err.h"
#include "sim/device/cores.h"
#include "sim/play/trace.h"

#include <stdint.h>

enum { SN_LANES_TEAMS = 32 };

typedef struct sn_lanes sn_lanes;

typedef struct sn_lanes_options {
  uint32_t n_fences;
  uint32_t jitter_us; /* work waits for up to this long at random before it starts, so that tests meet many timings; 0:
                       * never */
  const sn_team *teams; /* of a co-run plan, at most SN_LANES_TEAMS; looked at by sn_lanes_new() only */
  uint32_t n_teams;
} sn_lanes_options;

/* SN_NO_MEMORY where the threads cannot be started. */
sn_lanes *sn_lanes_new(const sn_lanes_options *options, sn_err *err);
/* What runs ends first, what has not begun is dropped. */
void sn_lanes_free(sn_lanes *lanes);

/* A new iteration: no fence has passed, time is 0. All lanes must be idle. */
void sn_lanes_begin(sn_lanes *lanes);
int64_t sn_lanes_now(const sn_lanes *lanes);

/* Calls run(job) on a lane: on a compute lane by a team's worker, on SN_LANE_OUT and SN_LANE_IN by the lane's own. The
 * span gets its times when the work is done; NULL: nobody wants them. After the first that fails nothing more begins.
 */
sn_status sn_lanes_run(sn_lanes *lanes, sn_lane lane, uint32_t team, sn_status (*run)(void *job, sn_err *err),
                       void *job, sn_span *span, sn_err *err);
/* Any lane; on SN_LANE_COMPUTE without teams a wait returns when the fence has passed, or with the error of the first
 * work that failed. */
sn_status sn_lanes_signal(sn_lanes *lanes, sn_lane lane, uint32_t fence, sn_span *span, sn_err *err);
sn_status sn_lanes_wait(sn_lanes *lanes, sn_lane lane, uint32_t fence, sn_span *span, sn_err *err);

/* Returns when all lanes are idle: the error of the first work that failed. */
sn_status sn_lanes_drain(sn_lanes *lanes, sn_err *err);

#endif
