/* Rectify: BN and the ReLU behind it in one kernel. Where a BN's output goes to a ReLU or ReLU6 alone,
 *
 *   backward   the BN's kernel cuts its dy itself, by y made again from x, which it reads in any case: no mask is kept.
 *              Of an ACT that would write over its dy nothing is left to do.
 *   forward    where the dialect has the ACT write over the BN's output, the BN's kernel cuts that, and of the ACT
 *              nothing is left to do.
 *
 * Cutting twice gives the same bits as cutting once, so the kernel does it whether or not the ACT has: all dialects and
 * strategies have the same bits. The plan is what it was; a tensor that such an ACT would change holds its dy, or its
 * y, all the time.
 */
#ifndef SN_EXEC_KERNEL_RECTIFY_H
#define SN_EXEC_KERNEL_RECTIFY_H

#include "sim/graph/pass.h"

#include <stdbool.h>

/* What a step of a BN cuts off above, INFINITY or 6, besides what is below 0; 0: it cuts nothing. */
float sn_rectify_ceiling(const sn_route *route, const sn_step *step);

/* A step of an ACT of which nothing is left to do. */
bool sn_rectify_spares(const sn_route *route, const sn_step *step);

#endif
