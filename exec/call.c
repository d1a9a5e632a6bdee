/* Dropout's mask, the one thing of a call that all kernels must agree on; see exec/call.h. Two multiplications an
 * element; nothing is stored. */
#include "exec/call.h"

#include "exec/kernel_internal.h"

bool sn_dropout_keeps(const sn_call *call, uint64_t index) {
  return sn__mask_keeps(sn__mask_of(call), index);
}
