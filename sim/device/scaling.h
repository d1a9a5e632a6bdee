/* The scaling law of every operation of a network: what cost.h is to a GPU, for a device made of cores.
 *
 * Backward of a CONV, DECONV or FC is two operations, SN_FILTER_GRADIENT and SN_DATA_GRADIENT; every other step is one,
 * SN_WHOLE. Forward, FILTER and DATA of these compute 2 flops a multiply-add and move input, output and weights each;
 * what other steps move is in docs/cost-model.md.
 */
#ifndef SN_SIM_DEVICE_SCALING_H
#define SN_SIM_DEVICE_SCALING_H

#include "models/net/net.h"
#include "sim/device/cores.h"
#include "sim/graph/optimizer.h"
#include "sim/graph/pass.h"

#include <stdbool.h>

/* Backward of this operator is FILTER and DATA. */
bool sn_op_splits(sn_op op);

/* The kind whose constants hold. */
sn_law_kind sn_scaling_kind(sn_op op, sn_pass pass, sn_kernel part);

sn_scaling sn_scaling_of(const sn_cores *cores, const sn_net *net, uint32_t layer, sn_pass pass, sn_kernel part,
                         sn_optimizer optimizer);

#endif
