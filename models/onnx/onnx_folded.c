/* Batch norms that an exporter has folded into the convolutions before them; see models/onnx/onnx_internal.h.
 *
 * Such a file is right of a network that is only run. In training the norms are there: each keeps its input, and has
 * parameters and gradients, so that memory would be told too low, by a third for a ResNet. PyTorch's newer exporter
 * says so in a node's metadata. Others give the convolution a bias of a name that no module of the user's has: the
 * older exporter of PyTorch "onnx::Conv_193", before PyTorch 1.10 "193", onnx-optimizer "_v_193", ONNX Runtime one with
 * "ConvBnFusion" in it. */
#include "models/onnx/onnx_internal.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

static bool is_number(const char *name) {
  return *name && strspn(name, "0123456789") == strlen(name);
}

static bool holds(const char *name, const char *part) {
  for (; *name; name++)
    if (strncasecmp(name, part, strlen(part)) == 0) return true;
  return false;
}

static bool is_folded(const sn__onnx_model *g, const sn__onnx_node *node) {
  bool convolves = strcmp(node->op, "Conv") == 0 || strcmp(node->op, "ConvTranspose") == 0;
  const char *bias = convolves && node->n_inputs > 2 ? node->inputs[2] : "";
  return node->folded || strncmp(bias, "onnx::Conv", 10) == 0 || holds(bias, "ConvBnFusion") ||
         holds(bias, "BatchNorm") || (strncmp(bias, "_v_", 3) == 0 && is_number(bias + 3)) ||
         (strcmp(g->producer, "pytorch") == 0 && is_number(bias));
}

const char *sn__onnx_folded(sn__importer *m, const char *path) {
  const sn__onnx_model *g = &m->model;
  uint32_t count = 0;
  bool newer = false;
  for (uint32_t i = 0; i < g->n_nodes; i++) {
    if (!g->nodes[i].needed || !is_folded(g, &g->nodes[i])) continue;
    count++;
    newer = newer || g->nodes[i].folded;
  }
  if (count == 0) return NULL;
  const char *text = sn_arena_print(
      m->arena,
      "%.180s: batch norms were folded into %" PRIu32
      " %s, as if the network were only run: what training keeps of them is not in the file; export it by "
      "torch.onnx.export(net.train(), x, \"mine.onnx\", %s), or ask snsim --inference",
      path, count, count == 1 ? "layer" : "layers",
      newer ? "dynamo=True, optimize=False" : "dynamo=False, training=torch.onnx.TrainingMode.TRAINING");
  if (!text) sn_fail_memory(m->err);
  return text;
}
