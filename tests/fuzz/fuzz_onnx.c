/* Fuzz target: an ONNX file. Whatever the bytes, there is a net or an error that names the file; what is imported can
 * be written as a network file and read again. */
#include "tests/fuzz/fuzz.h"

#include "models/zoo/zoo_internal.h"

#include <stdlib.h>
#include <string.h>

/* Not assert(): the fuzzer must see it in every build. */
static void require(int truth) {
  if (!truth) abort();
}

static void check_written(const sn_net *net) {
  char *text = NULL;
  size_t bytes = 0;
  sn_err err = SN_ERR_INIT;
  FILE *out = open_memstream(&text, &bytes);
  if (!out) return;
  require(sn_net_write_json(net, out, &err) == SN_OK);
  fclose(out);
  sn_net *again = sn_net_from_json("again.json", text, bytes, net->batch, &err);
  require(again && again->n_layers == net->n_layers && again->parameters == net->parameters &&
          again->macs == net->macs);
  sn_net_free(again);
  free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  sn_err err = SN_ERR_INIT;
  sn_loss loss = size % 2 ? SN_LOSS_MSE : SN_LOSS_CROSS_ENTROPY;
  sn_net *net = sn__net_from_onnx("fuzz.onnx", data, size, loss, 2, 0, &err);
  require((net != NULL) == (err.code == SN_OK));
  require(net || strncmp(err.text, "fuzz.onnx:", 10) == 0);
  if (net) check_written(net);
  sn_net_free(net);
  return 0;
}
