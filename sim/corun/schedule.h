/* Co-run schedules: which operations run side by side, on which cores, when. One event loop: where something ends, the
 * policy's rule (sim/corun/rules.h) is asked for what starts, until it has nothing more; then time passes to the next
 * end. Decisions are made on predicted times, the clock is that of times alone and of what operations that run at once
 * do to each other (sim/device/pace.h). A start costs O(log operations), and what the rule looks at of those ready.
 *
 * Where times were measured, operations are executed, and what is predicted of them side by side is off by a fifth
 * (docs/corun.md). There `path` and `best` are one operation after another on all cores, 1xC, unless they take less by
 * more than 1/SN_CORUN_GAIN.
 *
 * `path` is the fastest of five stretches, `manual` of all workers, `best` of all policies: where one cannot get below
 * what is known already, it is not tried, or dropped on the way.
 */
#ifndef SN_SIM_CORUN_SCHEDULE_H
#define SN_SIM_CORUN_SCHEDULE_H

#include "base/err.h"
#include "sim/corun/budget.h"
#include "sim/corun/times.h"
#include "sim/device/cores.h"
#include "sim/policy/mix.h"
#include "sim/policy/policy.h"
#include "sim/schedule/ops.h"
#include "sim/schedule/timetable.h"

#include <stdint.h>

enum { SN_CORUN_GAIN = 5 };

/* What is known of a schedule beside its timetable. */
typedef struct sn_corun_facts {
  sn_policy policy;           /* that made it: of path, manual and best the one that won */
  uint32_t stretch;           /* of path: the percentage that won; else 0 */
  uint64_t serial_peak_bytes; /* what running one after another takes */
  uint64_t budget_bytes;      /* what was kept; SN_BUDGET_ANY: anything */
  int64_t serial_ns;          /* one after another, each operation on all cores: 1xC */
  int64_t chain_ns;           /* the longest path, each operation at its fastest */
  int64_t area_ns;            /* all operations at their least threads x time, over all threads that may run at once */
  int64_t bound_ns;           /* the larger of the two: no schedule of these operations is faster */
  uint32_t max_corun;         /* operations at once */
  double average_corun;       /* mean over starts and ends, the one that starts or ends included */
} sn_corun_facts;

/* Schedules the operations by a policy, which is not SN_POLICY_NONE. `budget_bytes`: SN_BUDGET_SERIAL, SN_BUDGET_ANY or
 * bytes of tensors; less than running one after another takes is SN_NO_FIT. SN_BAD_USAGE for workers of more threads
 * than the device can be asked for. SN_BAD_INPUT where all operations together take more time than the clock has.
 * `times` must be of the operations' route; `ops` must outlive the timetable. `facts` may be NULL. */
sn_timetable *sn_corun_schedule(const sn_ops *ops, const sn_times *times, const sn_cores *cores, sn_policy policy,
                                uint64_t budget_bytes, sn_corun_facts *facts, sn_err *err);

/* The same, one after another in serial order with the threads of a mix, none of which has more than there are cores;
 * the facts' policy is none. */
sn_timetable *sn_corun_schedule_mix(const sn_ops *ops, const sn_times *times, const sn_cores *cores, const sn_mix *mix,
                                    uint64_t budget_bytes, sn_corun_facts *facts, sn_err *err);

#endif
