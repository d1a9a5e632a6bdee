/* torchvision's DenseNet (Huang et al., CVPR 2017), growth 32. Unlike densenet.c, where each CONCAT takes the one
 * before it, every dense layer concatenates the outputs of all layers before it anew - of the first layer in a block
 * that is one tensor, copied - and so does the block's end. 224x224x3 images, 7 978 856 parameters (121).
 *
 * Names are torchvision's paths of modules, "features.denseblock1.denselayer1.norm1", with "...denselayer1.cat" and
 * "features.denseblock1.cat", which have no module there.
 */
#include "models/zoo/zoo_internal.h"

enum { GROWTH = 32, BLOCKS = 4, MOST_LAYERS = 64 };

static uint32_t stem(sn_builder *b) {
  const sn_conv conv = {.channels = 2 * GROWTH, .kernel = 7, .stride = 2, .pad = 3, .no_bias = true};
  uint32_t x = sn_build_conv(b, SN_DATA_LAYER, conv, "features.conv0");
  x = sn_build_bn(b, x, "features.norm0");
  x = sn_build_relu(b, x, "features.relu0");
  return sn_build_pool(b, x, (sn_pooling){.kernel = 3, .stride = 2, .pad = 1}, "features.pool0");
}

#define LAYER "features.denseblock%u.denselayer%u."

static uint32_t dense_layer(sn_builder *b, const uint32_t *features, unsigned block, unsigned k) {
  const sn_conv narrow = {.channels = 4 * GROWTH, .kernel = 1, .no_bias = true};
  const sn_conv grow = {.channels = GROWTH, .kernel = 3, .pad = 1, .no_bias = true};
  uint32_t y = sn_build_concat(b, features, k, LAYER "cat", block, k);
  y = sn_build_bn(b, y, LAYER "norm1", block, k);
  y = sn_build_relu(b, y, LAYER "relu1", block, k);
  y = sn_build_conv(b, y, narrow, LAYER "conv1", block, k);
  y = sn_build_bn(b, y, LAYER "norm2", block, k);
  y = sn_build_relu(b, y, LAYER "relu2", block, k);
  return sn_build_conv(b, y, grow, LAYER "conv2", block, k);
}

static uint32_t dense_block(sn_builder *b, uint32_t x, unsigned block, uint32_t layers) {
  uint32_t features[MOST_LAYERS + 1] = {x};
  for (unsigned k = 1; k <= layers; k++) features[k] = dense_layer(b, features, block, k);
  return sn_build_concat(b, features, layers + 1, "features.denseblock%u.cat", block);
}

static uint32_t transition(sn_builder *b, uint32_t x, unsigned n, uint32_t channels) {
  x = sn_build_bn(b, x, "features.transition%u.norm", n);
  x = sn_build_relu(b, x, "features.transition%u.relu", n);
  x = sn_build_conv(b, x, (sn_conv){.channels = channels, .kernel = 1, .no_bias = true}, "features.transition%u.conv",
                    n);
  return sn_build_pool(b, x, (sn_pooling){.kernel = 2, .stride = 2, .average = true}, "features.transition%u.pool", n);
}

sn_net *sn__zoo_tv_densenet(const sn_zoo_entry *entry, uint32_t batch, uint32_t image, const char *parameters,
                            sn_err *err) {
  const uint32_t *layers = entry->config;
  sn_builder *b = sn__zoo_begin(entry, batch, 3, image, parameters, err);
  uint32_t x = stem(b), channels = 2 * GROWTH;
  for (unsigned n = 1; n <= BLOCKS; n++) {
    x = dense_block(b, x, n, layers[n - 1]);
    channels = (channels + GROWTH * layers[n - 1]) / 2;
    if (n < BLOCKS) x = transition(b, x, n, channels);
  }
  x = sn_build_bn(b, x, "features.norm5");
  x = sn_build_relu(b, x, "relu");
  x = sn_build_pool(b, x, (sn_pooling){.average = true, .global = true}, "avgpool");
  x = sn_build_fc(b, x, 1000, "classifier");
  sn_build_softmax(b, x, "softmax");
  return sn_builder_finish(b, NULL, err);
}
