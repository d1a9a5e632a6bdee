/* What is trained; see the header. */
#include "sim/graph/freeze.h"

uint64_t sn_freeze_trained(const char *freeze, const sn_net *net) {
  uint64_t trained = 0;
  if ((!freeze || !*freeze) && !net->adapted) return net->parameters;
  for (uint32_t i = 0; i < net->n_layers; i++)
    if (sn_freeze_trains(freeze, &net->layers[i])) trained += net->layers[i].parameters;
  return trained;
}

static bool has_parameters(const sn_layer *layer) {
  return layer->parameters > 0;
}

sn_status sn_freeze_check(const char *freeze, const sn_net *net, sn_err *err) {
  if (sn_globs_check("--freeze", freeze, net, "layer", has_parameters, err) != SN_OK) return err->code;
  if (!freeze || !*freeze || sn_freeze_trained(freeze, net) > 0) return SN_OK;
  return sn_fail(err, SN_BAD_USAGE,
                 "--freeze: all parameters of %.80s are frozen, so nothing is trained; freeze fewer, or ask with "
                 "--inference",
                 net->name);
}
