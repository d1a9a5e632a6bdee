/* DenseNet: Huang et al., "Densely connected convolutional networks", CVPR 2017, table 1: DenseNet-BC with growth 32
 * and compression 0.5. 224x224x3 images.
 *
 *   dense layer:  x --+-- bn relu 1x1@128 -- bn relu 3x3@32 --+-- concat -->
 *                     +---------------------------------------+
 *   transition:   bn relu 1x1@half - 2x2 average pool
 *
 * Each dense layer copies all features before it into its CONCAT, as programs without shared storage do: memory for
 * features is quadratic in depth.
 *
 * Names: conv0 bn0 relu0 pool0; layer k of block n has dense<n>_<k>/bn1 relu1 conv1 bn2 relu2 conv2 concat; transition
 * n has trans<n>/bn relu conv pool; bn5 relu5 pool5 fc.
 */
#include "models/zoo/zoo_internal.h"

enum { GROWTH = 32, BLOCKS = 4 };

static uint32_t stem(sn_builder *b) {
  const sn_conv conv = {.channels = 2 * GROWTH, .kernel = 7, .stride = 2, .pad = 3, .no_bias = true};
  uint32_t x = sn_build_conv(b, SN_DATA_LAYER, conv, "conv0");
  x = sn_build_bn(b, x, "bn0");
  x = sn_build_relu(b, x, "relu0");
  return sn_build_pool(b, x, (sn_pooling){.kernel = 3, .stride = 2, .pad = 1}, "pool0");
}

static uint32_t dense_layer(sn_builder *b, uint32_t x, unsigned block, unsigned k) {
  const sn_conv narrow = {.channels = 4 * GROWTH, .kernel = 1, .no_bias = true};
  const sn_conv grow = {.channels = GROWTH, .kernel = 3, .pad = 1, .no_bias = true};
  uint32_t y = sn_build_bn(b, x, "dense%u_%u/bn1", block, k);
  y = sn_build_relu(b, y, "dense%u_%u/relu1", block, k);
  y = sn_build_conv(b, y, narrow, "dense%u_%u/conv1", block, k);
  y = sn_build_bn(b, y, "dense%u_%u/bn2", block, k);
  y = sn_build_relu(b, y, "dense%u_%u/relu2", block, k);
  y = sn_build_conv(b, y, grow, "dense%u_%u/conv2", block, k);
  return sn_build_concat(b, (const uint32_t[]){x, y}, 2, "dense%u_%u/concat", block, k);
}

static uint32_t transition(sn_builder *b, uint32_t x, unsigned n, uint32_t channels) {
  x = sn_build_bn(b, x, "trans%u/bn", n);
  x = sn_build_relu(b, x, "trans%u/relu", n);
  x = sn_build_conv(b, x, (sn_conv){.channels = channels, .kernel = 1, .no_bias = true}, "trans%u/conv", n);
  return sn_build_pool(b, x, (sn_pooling){.kernel = 2, .stride = 2, .average = true}, "trans%u/pool", n);
}

static uint32_t blocks(sn_builder *b, uint32_t x, const uint32_t *layers) {
  uint32_t channels = 2 * GROWTH;
  for (unsigned n = 1; n <= BLOCKS; n++) {
    for (unsigned k = 1; k <= layers[n - 1]; k++) x = dense_layer(b, x, n, k);
    channels = (channels + GROWTH * layers[n - 1]) / 2;
    if (n < BLOCKS) x = transition(b, x, n, channels);
  }
  return x;
}

sn_net *sn__zoo_densenet(const sn_zoo_entry *entry, uint32_t batch, uint32_t image, const char *parameters,
                         sn_err *err) {
  sn_builder *b = sn__zoo_begin(entry, batch, 3, image, parameters, err);
  uint32_t x = blocks(b, stem(b), entry->config);
  x = sn_build_bn(b, x, "bn5");
  x = sn_build_relu(b, x, "relu5");
  x = sn_build_pool(b, x, (sn_pooling){.average = true, .global = true}, "pool5");
  x = sn_build_fc(b, x, 1000, "fc");
  sn_build_softmax(b, x, "softmax");
  return sn_builder_finish(b, NULL, err);
}
