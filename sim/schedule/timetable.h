/* Timetable: which operation runs when, on which cores, on which compute lane: what a co-run policy decides
 * (sim/policy/policy.h) and the lowering turns into a plan (sim/plan/lower_corun.h).
 *
 *   lane 0   |== conv1.filter, cores 0..39 ==|== bn1.backward, 0..67 ==|
 *   lane 1   |== conv1.data, cores 40..67 =====|
 *             ^ start 0, start 1              ^ end 0  ^ end 1, start 2
 *
 * The plan keeps its order, not its times: at the end of an operation its lane gives back what nobody uses any more; at
 * its start an operation is behind those whose results it needs, behind whoever had its cores, and behind the operation
 * whose end came last before that start, since a policy that waited has waited for that one. So where operations take
 * as long as was thought, they run when the timetable says.
 */
#ifndef SN_SIM_SCHEDULE_TIMETABLE_H
#define SN_SIM_SCHEDULE_TIMETABLE_H

#include "sim/device/cores.h"
#include "sim/schedule/ops.h"

#include <stdbool.h>
#include <stdint.h>

enum { SN_COMPUTE_LANES = 6 }; /* at most so many operations at once */

typedef struct sn_start {
  sn_team team;
  uint8_t lane; /* 0 .. SN_COMPUTE_LANES - 1; an operation a lane at a time */
  int64_t start_ns, end_ns;
} sn_start;

typedef struct sn_event {
  uint32_t op;
  bool is_end;
} sn_event;

typedef struct sn_timetable {
  const sn_ops *ops;      /* looked at; must outlive it */
  sn_start *starts;       /* per operation */
  sn_event *events;       /* 2 ops->n_ops: in the order in which they happen; ends of one time by lane, each followed by
                             the starts it leads to */
  int64_t end_ns;         /* when the last operation ends */
  uint64_t peak_bytes;    /* most bytes of lives at once */
  uint32_t profile_steps; /* training steps that profiling takes */
} sn_timetable;

/* One with room for all operations, zeroed. NULL: out of memory. */
sn_timetable *sn_timetable_new(const sn_ops *ops, sn_err *err);
void sn_timetable_free(sn_timetable *timetable);

#endif
