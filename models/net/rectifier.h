/* Rectifier: the ReLU behind a BN, where kernels can make both together (exec/kernel/rectify.h). */
#ifndef SN_MODELS_NET_RECTIFIER_H
#define SN_MODELS_NET_RECTIFIER_H

#include "models/net/net.h"

#include <stddef.h>

/* The ReLU or ReLU6 that alone reads what a BN makes; NULL: there is none, or the layer is no BN. */
static inline const sn_layer *sn_rectifier_of(const sn_net *net, const sn_layer *layer) {
  if (layer->op != SN_BN || net->values[layer->first_output].consumer == SN_NONE) return NULL;
  const sn_layer *reader = &net->layers[net->values[layer->first_output].consumer];
  if (reader->op != SN_ACT) return NULL;
  return reader->attr->act == SN_ACT_RELU || reader->attr->act == SN_ACT_RELU6 ? reader : NULL;
}

#endif
