/* Kinds: numbers of threads for all instances of each kind of operation, where times were measured.
 *
 * The paper's strategy 2 gives a kind the best count of its largest instance. Measured times differ by chance, too, and
 * where two counts are near, chance decides for all instances, and for teams that change between neighbours. So here
 * counts are those with the least
 *
 *   sum over kinds of T of all its instances + doubt, and what another team takes for each two neighbours that differ
 *
 * where operations run one after another in serial order. Doubt is 0 with all cores; with fewer it is how far samples
 * are apart, the mean of both counts', over all instances: who leaves all cores must gain more than that. A kind with
 * an instance that was not measured stays on all cores.
 *
 * One kind after another takes the count that is best beside all others', from every count for all of them, until none
 * changes. All cores for all is one of these starts, so that the result takes no longer than that.
 */
#ifndef SN_SIM_CORUN_KINDS_H
#define SN_SIM_CORUN_KINDS_H

#include "sim/corun/times.h"

#include <stdbool.h>
#include <stdint.h>

/* Sets the threads of times->kinds, which `kinds` are, to counts of the interval's ladder. False: out of memory.
 * O(operations + classes x counts + rounds x counts x kinds x (kinds + counts)); rounds are few. */
bool sn__kinds_choose(const sn_times *times, const sn_route *route, sn_time_kind *kinds, double resize_ns,
                      uint32_t interval);

#endif
