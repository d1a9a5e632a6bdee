/* Critical path: how long an iteration takes where as many of its steps run side by side as can. What sharing memory
 * costs of that, and what colours (sim/share/colour.h) bring back. O(accesses).
 */
#ifndef SN_SIM_SHARE_CRITICAL_H
#define SN_SIM_SHARE_CRITICAL_H

#include "base/err.h"
#include "sim/device/cost.h"
#include "sim/share/sharing.h"

#include <stdbool.h>
#include <stdint.h>

/* Of the sharing's steps, in *ns. A step begins when what it reads is there and, with `ordered`, when all earlier uses
 * of the regions that it writes are over. Convolutions run their fastest algorithms, a FLATTEN takes no time.
 * SN_NO_MEMORY. */
sn_status sn_critical_path(const sn_sharing *sharing, const sn_costs *costs, bool ordered, int64_t *ns, sn_err *err);

#endif
