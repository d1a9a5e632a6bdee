/* Fuzz target: a JSON network. Whatever the bytes, there is a net or an error that says where, and a net is sound: the
 * cross-references of models/net/net.h hold, as everything behind the builder relies on them. */
#include "tests/fuzz/fuzz.h"

#include "models/op/op.h"
#include "models/zoo/zoo.h"

#include <stdlib.h>
#include <string.h>

/* Not assert(): the fuzzer must see it in every build. */
static void require(int truth) {
  if (!truth) abort();
}

static void check_layer(const sn_net *net, uint32_t index) {
  const sn_layer *layer = &net->layers[index];
  uint64_t bytes;
  sn_err err = SN_ERR_INIT;
  require(sn_shape_bytes(layer->out, &bytes, &err) == SN_OK);
  for (uint32_t k = 0; k < layer->n_outputs; k++) {
    const sn_value *value = &net->values[layer->first_output + k];
    uint64_t floats = value->dtype == SN_I64 ? 2 : 1; /* as large as an element */
    require(value->producer == index && value->bytes == floats * bytes);
    require((value->consumer == SN_NONE) == (layer->op == SN_SOFTMAX));
  }
  for (uint32_t k = 0; k < layer->n_inputs; k++) {
    const sn_value *value = sn_layer_input(net, layer, k);
    require(value->consumer == index && value->consumer_input == k);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  sn_err err = SN_ERR_INIT;
  sn_net *net = sn_net_from_json("fuzz.json", (const char *)data, size, 2, &err);
  require((net != NULL) == (err.code == SN_OK));
  require(net || strncmp(err.text, "fuzz.json:", 10) == 0);
  for (uint32_t i = 0; net && i < net->n_layers; i++) check_layer(net, i);
  sn_net_free(net);
  return 0;
}
