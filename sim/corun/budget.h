/* Budget: which operations may start without making a co-run schedule take more memory than allowed.
 *
 * Whoever starts what is ready holds more tensors at once than running one after another does, and undoes recomputation
 * altogether: re-runs start as soon as they can. So an operation may start only if two things stay within the budget:
 * the bytes on the device with what it makes, and what the operations that have not started take when they run one
 * after another from there, in serial order. The second is what keeps the first from leading into a dead end: with
 * nothing running, the serially first operation always may start.
 *
 *   serial position        0   1   2   3   4   5
 *   has started            x       x
 *   a life of 2, used by 5 ........=========   on the device from now on: counted for all before its last user
 *   a life of 1, used by 4     =========       not made yet: counted from its maker to its last user
 *                              ^ the most of any column that has not started
 *
 * A life is an interval of serial positions, so all columns are sums from the right over changes at two positions, and
 * the most of them the root of a tree in which each node knows the sum of its changes and its own most. A start moves
 * an end or two of the lives it touches: O(lives of the operation x log operations), for asking as for starting.
 *
 * With little memory many that are ready must not start for a long time - all re-runs are ready when forward is done.
 * Most do not fit in beside what runs, or above the columns that come next: sn__budget_adds() and
 * sn__budget_room() tell that without asking. The others sleep: who is refused because of a later column is not asked
 * about again until that column is lower or has started, or the operation itself would make columns lower that it would
 * not have before.
 */
#ifndef SN_SIM_CORUN_BUDGET_H
#define SN_SIM_CORUN_BUDGET_H

#include "base/err.h"
#include "sim/corun/ranks.h"
#include "sim/policy/options.h"
#include "sim/schedule/ops.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct sn__budget sn__budget;

/* `ops` must outlive it. */
sn__budget *sn__budget_new(const sn_ops *ops, sn_err *err);
void sn__budget_free(sn__budget *budget);

/* The most bytes of lives at once when the operations run one after another in serial order. */
uint64_t sn__budget_serial_peak(const sn__budget *budget);

/* Nothing has started; `bytes` is at least the serial peak, or SN_BUDGET_ANY. */
void sn__budget_begin(sn__budget *budget, uint64_t bytes);

/* Whether an operation that is ready may start now. If not, it may sleep: until a start wakes it the answer is no. */
bool sn__budget_allows(sn__budget *budget, uint32_t op);
bool sn__budget_sleeps(const sn__budget *budget, uint32_t op);
void sn__budget_start(sn__budget *budget, uint32_t op);
void sn__budget_end(sn__budget *budget, uint32_t op);

/* What an operation adds to the bytes on the device, and to the column of the serially first, and what there is room
 * for: where it is more, the answer is no. */
sn__bytes sn__budget_adds(const sn__budget *budget, uint32_t op);
sn__bytes sn__budget_room(const sn__budget *budget);

/* Those that the last start has woken, or for which sn__budget_adds() is another; how many. */
uint32_t sn__budget_changed(const sn__budget *budget, const uint32_t **ops);

/* The serially first operation that has not started; SN_NONE: all have. */
uint32_t sn__budget_first(const sn__budget *budget);

/* The most bytes of lives at once so far. */
uint64_t sn__budget_peak(const sn__budget *budget);

#endif
