/* Freeze: layers whose parameters are not trained (requires_grad_(False) in PyTorch), by globs over layers' names
 * (models/net/globs.h); NULL and "" freeze nothing. Of a network with adapters (models/build/lora.h) all but these is frozen,
 * unless globs say what is.
 *
 * A frozen parameter has no gradient and no optimizer state. Backward goes down to the first layer that is trained:
 * what lies before has no gradients, and keeps nothing. Behind it a frozen layer hands a gradient on; then an FC keeps
 * no input, a SCALE neither, while CONV, DECONV and the norms keep theirs, as PyTorch's operations do (their backward
 * is one operation for all gradients). A frozen BN still counts its running mean and variance.
 */
#ifndef SN_SIM_GRAPH_FREEZE_H
#define SN_SIM_GRAPH_FREEZE_H

#include "base/err.h"
#include "models/net/globs.h"
#include "models/net/net.h"

#include <stdbool.h>
#include <stdint.h>

/* The layer has parameters of its own, and they are trained. */
static inline bool sn_freeze_trains(const char *freeze, const sn_layer *layer) {
  if (layer->parameters == 0 || layer->tuning == SN_TUNED_NEVER) return false;
  if (layer->tuning == SN_TUNED_IF_SAID && (!freeze || !*freeze)) return false;
  return layer->tuning == SN_TUNED_ALWAYS || !sn_globs_match(freeze, layer->name);
}

/* The same of parameters that it has or shares (sn_attr.weights_of). */
static inline bool sn_freeze_trains_shared(const char *freeze, const sn_net *net, const sn_layer *layer) {
  uint32_t owner = layer->attr->weights_of;
  return sn_freeze_trains(freeze, owner != 0 ? &net->layers[owner] : layer);
}

/* Trainable elements that are trained. */
uint64_t sn_freeze_trained(const char *freeze, const sn_net *net);

/* SN_BAD_USAGE where a glob holds for no layer with parameters (with the name that is nearest), or where all of them
 * are frozen. */
sn_status sn_freeze_check(const char *freeze, const sn_net *net, sn_err *err);

#endif
