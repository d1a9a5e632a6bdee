/* The optimizers' table; see the header. */
#include "sim/graph/optimizer.h"

#include "base/text.h"
#include "models/op.h"
#include "sim/graph/freeze.h"

#include <stdio.h>
#include <string.h>

static const struct {
  const char *name, *state_name;
  uint32_t states;
  bool narrow, at_once;
} optimizers[SN_OPTIMIZERS] = {
    [SN_OPTIMIZER_MOMENTUM] = {"momentum", "momentum (SGD)", 1, false, false},
    [SN_OPTIMIZER_SGD] = {"sgd", "", 0, false, false},
    [SN_OPTIMIZER_ADAM] = {"adam", "moments (Adam)", 2, false, true},
    [SN_OPTIMIZER_ADAMW] = {"adamw", "moments (AdamW)", 2, false, true},
    [SN_OPTIMIZER_ADAM8BIT] = {"adam8bit", "moments (8-bit Adam)", 2, true, false},
    [SN_OPTIMIZER_ADAMW8BIT] = {"adamw8bit", "moments (8-bit AdamW)", 2, true, false},
};

enum { BLOCK = 256, LEAST_NARROW = 4096 }; /* elements; bitsandbytes' min_8bit_size */

const char *sn_optimizer_name(sn_optimizer optimizer) {
  return optimizers[optimizer].name;
}

sn_status sn_optimizer_parse(const char *text, sn_optimizer *optimizer, sn_err *err) {
  char all[100] = "";
  for (sn_optimizer o = 0; o < SN_OPTIMIZERS; o++) {
    if (sn_text_same(text, optimizers[o].name)) {
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

bool sn_optimizer_is_8bit(sn_optimizer optimizer) {
  return optimizers[optimizer].narrow;
}

bool sn_optimizer_at_once(sn_optimizer optimizer) {
  return optimizers[optimizer].at_once;
}

/* Each state is read and written; so is w; g is read. */
uint32_t sn_optimizer_moved_bytes(sn_optimizer optimizer, uint32_t parameter_bytes) {
  return 3 * parameter_bytes + 2 * optimizers[optimizer].states * (optimizers[optimizer].narrow ? 1 : parameter_bytes);
}

static bool is_narrow(sn_optimizer optimizer, uint64_t elements) {
  return optimizers[optimizer].narrow && elements >= LEAST_NARROW;
}

uint32_t sn_optimizer_pieces(sn_optimizer optimizer, uint64_t elements, uint32_t parameter_bytes,
                             uint64_t bytes[SN_OPTIMIZER_PIECES]) {
  uint32_t states = optimizers[optimizer].states;
  bool narrow = is_narrow(optimizer, elements);
  uint64_t width = narrow ? 1 : optimizers[optimizer].narrow ? sizeof(float) : parameter_bytes;
  for (uint32_t k = 0; k < states; k++) {
    bytes[k] = elements * width;
    if (narrow) bytes[states + k] = (elements + BLOCK - 1) / BLOCK * sizeof(float);
  }
  return narrow ? 2 * states : states;
}

uint32_t sn_parameter_tensors(const sn_layer *layer, uint64_t bytes[SN_PARAMETER_TENSORS]) {
  uint64_t second = sn_op_of(layer)->shifts ? layer->parameters / 2 : layer->attr->bias ? layer->attr->channels : 0;
  bytes[0] = (layer->parameters - second) * sizeof(float);
  bytes[1] = second * sizeof(float);
  return layer->parameters == 0 ? 0 : second > 0 ? 2 : 1;
}

static uint64_t narrow_bytes(sn_optimizer optimizer, const sn_layer *layer, bool *tables) {
  uint64_t tensors[SN_PARAMETER_TENSORS], pieces[SN_OPTIMIZER_PIECES], sum = 0;
  uint32_t count = sn_parameter_tensors(layer, tensors);
  for (uint32_t i = 0; i < count; i++) {
    uint64_t elements = tensors[i] / sizeof(float);
    uint32_t made = sn_optimizer_pieces(optimizer, elements, sizeof(float), pieces);
    for (uint32_t k = 0; k < made; k++) sum += pieces[k];
    *tables = *tables || is_narrow(optimizer, elements);
  }
  return sum;
}

uint64_t sn_optimizer_state_bytes(sn_optimizer optimizer, const sn_net *net, const char *freeze,
                                  uint32_t parameter_bytes) {
  uint64_t sum = 0;
  bool tables = false;
  if (!optimizers[optimizer].narrow)
    return optimizers[optimizer].states * sn_freeze_trained(freeze, net) * parameter_bytes;
  for (uint32_t i = 0; i < net->n_layers; i++)
    if (sn_freeze_trains(freeze, &net->layers[i])) sum += narrow_bytes(optimizer, &net->layers[i], &tables);
  return tables ? sum + UINT64_C(1) * SN_OPTIMIZER_TABLES * SN_OPTIMIZER_TABLE_BYTES : sum;
}

uint64_t sn_optimizer_counter_bytes(sn_optimizer optimizer, const sn_net *net, const char *freeze) {
  uint64_t tensors = 0, bytes[SN_PARAMETER_TENSORS];
  if (!optimizers[optimizer].at_once) return 0;
  for (uint32_t i = 0; i < net->n_layers; i++)
    if (sn_freeze_trains(freeze, &net->layers[i])) tensors += sn_parameter_tensors(&net->layers[i], bytes);
  return tensors * sizeof(float);
}
