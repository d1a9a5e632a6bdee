/* The optimizers' table; see the header. */
#include "sim/graph/optimizer.h"

#include "models/op.h"
#include "sim/graph/freeze.h"

#include <stdio.h>
#include <string.h>

static const struct {
  const char *name, *state_name;
  uint32_t states, transfers; /* each state is read and written; so is w; g is read */
} optimizers[SN_OPTIMIZERS] = {
    [SN_OPTIMIZER_MOMENTUM] = {"momentum", "momentum (SGD)", 1, 5},
    [SN_OPTIMIZER_SGD] = {"sgd", "", 0, 3},
    [SN_OPTIMIZER_ADAM] = {"adam", "moments (Adam)", 2, 7},
    [SN_OPTIMIZER_ADAMW] = {"adamw", "moments (AdamW)", 2, 7},
};

const char *sn_optimizer_name(sn_optimizer optimizer) {
  return optimizers[optimizer].name;
}

sn_status sn_optimizer_parse(const char *text, sn_optimizer *optimizer, sn_err *err) {
  char all[100] = "";
  for (sn_optimizer o = 0; o < SN_OPTIMIZERS; o++) {
    if (strcmp(text, optimizers[o].name) == 0) {
      *optimizer = o;
      return SN_OK;
    }
    size_t used = strlen(all);
    snprintf(all + used, sizeof all - used, "%s%s", used ? ", " : "", optimizers[o].name);
  }
  return sn_fail(err, SN_BAD_USAGE, "--optimizer: \"%.40s\" is none of: %s", text, all);
}

uint32_t sn_optimizer_states(sn_optimizer optimizer) {
  return optimizers[optimizer].states;
}

const char *sn_optimizer_state_name(sn_optimizer optimizer) {
  return optimizers[optimizer].state_name;
}

uint32_t sn_optimizer_transfers(sn_optimizer optimizer) {
  return optimizers[optimizer].transfers;
}

uint32_t sn_parameter_tensors(const sn_layer *layer, uint64_t bytes[SN_PARAMETER_TENSORS]) {
  uint64_t second = sn_op_of(layer)->shifts ? layer->parameters / 2 : layer->attr.bias ? layer->attr.channels : 0;
  bytes[0] = (layer->parameters - second) * sizeof(float);
  bytes[1] = second * sizeof(float);
  return layer->parameters == 0 ? 0 : second > 0 ? 2 : 1;
}

uint64_t sn_optimizer_counter_bytes(sn_optimizer optimizer, const sn_net *net, const char *freeze) {
  uint64_t tensors = 0, bytes[SN_PARAMETER_TENSORS];
  if (optimizer != SN_OPTIMIZER_ADAM && optimizer != SN_OPTIMIZER_ADAMW) return 0;
  for (uint32_t i = 0; i < net->n_layers; i++)
    if (sn_freeze_trains(freeze, &net->layers[i])) tensors += sn_parameter_tensors(&net->layers[i], bytes);
  return tensors * sizeof(float);
}
