/* Box: regions of memory that nobody uses, for whoever asks next (planning, part C). By size, and among equals by age.
 * Every operation is O(log regions), and one more step for each region that was passed over because its user may not
 * hand it on.
 */
#ifndef SN_SIM_SHARE_BOX_H
#define SN_SIM_SHARE_BOX_H

#include "base/err.h"
#include "sim/share/colour.h"

#include <stdint.h>

typedef struct sn_box sn_box;

/* `sizes`: every size that a region may have, in any order and as often as it likes; looked at, and at most so many
 * regions are ever put in. `colouring` says who may take what; it must outlive the box. NULL: out of memory. */
sn_box *sn_box_new(const uint64_t *sizes, uint32_t count, const sn_colouring *colouring, sn_err *err);
void sn_box_free(sn_box *box);

/* `step` used the region last. SN_NO_MEMORY. */
sn_status sn_box_put(sn_box *box, uint32_t region, uint64_t bytes, uint32_t step, sn_err *err);

/* Takes out the region for `bytes` that `step` may have: the smallest and oldest of bytes .. bytes x range, else the
 * largest and newest from bytes / range on, rounded down, which must grow. SN_NONE: there is none, or range is 0. */
uint32_t sn_box_take(sn_box *box, uint64_t bytes, uint32_t range, uint32_t step);

#endif
