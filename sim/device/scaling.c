/* From operations to laws; see the header. */
#include "sim/device/scaling.h"

#include "models/op/op.h"
#include "sim/device/cost.h"

#include <assert.h>

bool sn_op_splits(sn_op op) {
  return sn_op_table[op]->convolves || op == SN_FC;
}

/* A DECONV's forward is a CONV's DATA, and the other way round. */
static sn_law_kind kind_of_conv(sn_op op, sn_pass pass, sn_kernel part) {
  bool data = pass == SN_BACKWARD && part == SN_DATA_GRADIENT;
  if (pass != SN_FORWARD && !data) return SN_LAW_FILTER;
  return data == (op == SN_CONV) ? SN_LAW_DATA : SN_LAW_FORWARD;
}

sn_law_kind sn_scaling_kind(sn_op op, sn_pass pass, sn_kernel part) {
  if (pass == SN_UPDATE) return SN_LAW_UPDATE;
  switch (op) {
  case SN_CONV:
  case SN_DECONV:
    return kind_of_conv(op, pass, part);
  case SN_FC:
    return SN_LAW_FC;
  case SN_BN:
    return pass == SN_FORWARD ? SN_LAW_BN_FORWARD : SN_LAW_BN_BACKWARD;
  case SN_ACT:
    return SN_LAW_ACT;
  default:
    return SN_LAW_OTHER;
  }
}

static double bytes_of(sn_shape s) {
  return 4.0 * s.n * s.c * s.h * s.w;
}

sn_scaling sn_scaling_of(const sn_cores *cores, const sn_net *net, uint32_t index, sn_pass pass, sn_kernel part,
                         sn_optimizer optimizer) {
  const sn_layer *layer = &net->layers[index];
  sn_law_kind kind = sn_scaling_kind(layer->op, pass, part);
  if (pass == SN_UPDATE || !sn_op_splits(layer->op)) {
    sn_work work = sn_costs_work(net, index, pass, optimizer);
    return sn_cores_scaling(cores, kind, work.flops, work.bytes);
  }
  assert(pass == SN_FORWARD || part == SN_FILTER_GRADIENT || part == SN_DATA_GRADIENT);
  double moved = bytes_of(sn_layer_input_shape(net, layer, 0)) + bytes_of(layer->out) + 4 * (double)layer->parameters;
  return sn_cores_scaling(cores, kind, 2 * (double)layer->macs, moved);
}
