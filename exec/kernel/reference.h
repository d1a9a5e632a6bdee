/* Reference kernels: every operator, forward, backward and update, in plain C, written to be read and believed. They
 * accumulate in float64 and serve to check the fast kernels, which must agree with them within a stated tolerance.
 * One thread, no workspace, any shape. Slow on purpose.
 */
#ifndef SN_EXEC_KERNEL_REFERENCE_H
#define SN_EXEC_KERNEL_REFERENCE_H

#include "base/err.h"
#include "exec/kernel/call.h"

/* SN_NO_MEMORY is the one error. */
sn_status sn_reference_run(const sn_call *call, sn_err *err);

#endif
