/* torchvision's networks without residual units or dense blocks: AlexNet (Krizhevsky, "One weird trick for
 * parallelizing convolutional neural networks", 2014), VGG (Simonyan and Zisserman, ICLR 2015) and SqueezeNet 1.1
 * (Iandola et al., 2016). As torchvision runs them: adaptive pools before the classifiers, dropout before the first
 * fully connected layer of AlexNet and behind the others', no LRN. 224x224x3 images.
 *
 * Names are torchvision's paths of modules: features.0, avgpool, classifier.1; of SqueezeNet features.3.squeeze and so
 * on, with features.3.cat.
 */
#include "models/zoo/zoo_internal.h"

/* "features.<n>" and "features.<n + 1>" */
static uint32_t conv_relu(sn_builder *b, uint32_t x, unsigned n, sn_conv conv) {
  x = sn_build_conv(b, x, conv, "features.%u", n);
  return sn_build_relu(b, x, "features.%u", n + 1);
}

static uint32_t max_pool(sn_builder *b, uint32_t x, unsigned n, sn_pooling pool) {
  return sn_build_pool(b, x, pool, "features.%u", n);
}

/* "classifier.<n>" and "classifier.<n + 1>" */
static uint32_t fc_relu(sn_builder *b, uint32_t x, unsigned n) {
  x = sn_build_fc(b, x, 4096, "classifier.%u", n);
  return sn_build_inplace(b, sn_build_relu(b, x, "classifier.%u", n + 1), SN_INPLACE_YES);
}

static uint32_t drop(sn_builder *b, uint32_t x, unsigned n) {
  return sn_build_dropout(b, x, 0.5, "classifier.%u", n);
}

sn_net *sn__zoo_tv_alexnet(const sn_zoo_entry *entry, uint32_t batch, uint32_t image, const char *parameters,
                           sn_err *err) {
  sn_builder *b = sn__zoo_begin(entry, batch, 3, image, parameters, err);
  const sn_pooling halve = {.kernel = 3, .stride = 2};
  uint32_t x = conv_relu(b, SN_DATA_LAYER, 0, (sn_conv){.channels = 64, .kernel = 11, .stride = 4, .pad = 2});
  x = max_pool(b, x, 2, halve);
  x = conv_relu(b, x, 3, (sn_conv){.channels = 192, .kernel = 5, .pad = 2});
  x = max_pool(b, x, 5, halve);
  x = conv_relu(b, x, 6, (sn_conv){.channels = 384, .kernel = 3, .pad = 1});
  x = conv_relu(b, x, 8, (sn_conv){.channels = 256, .kernel = 3, .pad = 1});
  x = conv_relu(b, x, 10, (sn_conv){.channels = 256, .kernel = 3, .pad = 1});
  x = max_pool(b, x, 12, halve);
  x = sn_build_pool(b, x, (sn_pooling){.average = true, .adaptive = 6}, "avgpool");
  x = fc_relu(b, drop(b, x, 0), 1);
  x = fc_relu(b, drop(b, x, 3), 4);
  x = sn_build_fc(b, x, 1000, "classifier.6");
  sn_build_softmax(b, x, "softmax");
  return sn_builder_finish(b, NULL, err);
}

sn_net *sn__zoo_tv_vgg(const sn_zoo_entry *entry, uint32_t batch, uint32_t image, const char *parameters, sn_err *err) {
  static const uint32_t channels[5] = {64, 128, 256, 512, 512};
  const uint32_t *convs = entry->config;
  sn_builder *b = sn__zoo_begin(entry, batch, 3, image, parameters, err);
  uint32_t x = SN_DATA_LAYER;
  unsigned n = 0;
  for (unsigned s = 0; s < 5; s++) {
    for (unsigned i = 0; i < convs[s]; i++, n += 2)
      x = conv_relu(b, x, n, (sn_conv){.channels = channels[s], .kernel = 3, .pad = 1});
    x = max_pool(b, x, n++, (sn_pooling){.kernel = 2, .stride = 2});
  }
  x = sn_build_pool(b, x, (sn_pooling){.average = true, .adaptive = 7}, "avgpool");
  x = drop(b, fc_relu(b, x, 0), 2);
  x = drop(b, fc_relu(b, x, 3), 5);
  x = sn_build_fc(b, x, 1000, "classifier.6");
  sn_build_softmax(b, x, "softmax");
  return sn_builder_finish(b, NULL, err);
}

static uint32_t fire_part(sn_builder *b, uint32_t x, unsigned n, const char *part, sn_conv conv) {
  x = sn_build_conv(b, x, conv, "features.%u.%s", n, part);
  return sn_build_relu(b, x, "features.%u.%s_activation", n, part);
}

static uint32_t fire(sn_builder *b, uint32_t x, unsigned n, uint32_t squeeze, uint32_t expand) {
  x = fire_part(b, x, n, "squeeze", (sn_conv){.channels = squeeze, .kernel = 1});
  uint32_t ends[2] = {fire_part(b, x, n, "expand1x1", (sn_conv){.channels = expand, .kernel = 1}), 0};
  ends[1] = fire_part(b, x, n, "expand3x3", (sn_conv){.channels = expand, .kernel = 3, .pad = 1});
  return sn_build_concat(b, ends, 2, "features.%u.cat", n);
}

sn_net *sn__zoo_tv_squeezenet(const sn_zoo_entry *entry, uint32_t batch, uint32_t image, const char *parameters,
                              sn_err *err) {
  sn_builder *b = sn__zoo_begin(entry, batch, 3, image, parameters, err);
  const sn_pooling halve = {.kernel = 3, .stride = 2, .ceil = true};
  uint32_t x = conv_relu(b, SN_DATA_LAYER, 0, (sn_conv){.channels = 64, .kernel = 3, .stride = 2});
  x = max_pool(b, x, 2, halve);
  x = fire(b, fire(b, x, 3, 16, 64), 4, 16, 64);
  x = max_pool(b, x, 5, halve);
  x = fire(b, fire(b, x, 6, 32, 128), 7, 32, 128);
  x = max_pool(b, x, 8, halve);
  x = fire(b, fire(b, x, 9, 48, 192), 10, 48, 192);
  x = fire(b, fire(b, x, 11, 64, 256), 12, 64, 256);
  x = sn_build_conv(b, drop(b, x, 0), (sn_conv){.channels = 1000, .kernel = 1}, "classifier.1");
  x = sn_build_relu(b, x, "classifier.2");
  x = sn_build_pool(b, x, (sn_pooling){.average = true, .global = true}, "classifier.3");
  sn_build_softmax(b, x, "softmax");
  return sn_builder_finish(b, NULL, err);
}
