/* AlexNet: Krizhevsky et al., "ImageNet classification with deep convolutional neural networks", NIPS 2012, figure 2,
 * as one tower: conv2, conv4 and conv5 see all channels, there being no second GPU to split them for. Normalisation
 * stands before pooling, as in the paper. 227x227x3 images, 62 378 344 parameters.
 *
 * Layers are numbered by kind: conv1-5, relu1-7, lrn1-2, pool1, 2 and 5, fc1-3, drop1-2.
 */
#include "models/zoo/zoo_internal.h"

sn_net *sn__zoo_alexnet(const sn_zoo_entry *entry, uint32_t batch, uint32_t image, const char *parameters,
                        sn_err *err) {
  sn_builder *b = sn__zoo_begin(entry, batch, 3, image, parameters, err);
  const sn_pooling halve = {.kernel = 3, .stride = 2};
  uint32_t x = SN_DATA_LAYER;
  x = sn_build_conv(b, x, (sn_conv){.channels = 96, .kernel = 11, .stride = 4}, "conv1");
  x = sn_build_relu(b, x, "relu1");
  x = sn_build_lrn(b, x, 5, "lrn1");
  x = sn_build_pool(b, x, halve, "pool1");
  x = sn_build_conv(b, x, (sn_conv){.channels = 256, .kernel = 5, .pad = 2}, "conv2");
  x = sn_build_relu(b, x, "relu2");
  x = sn_build_lrn(b, x, 5, "lrn2");
  x = sn_build_pool(b, x, halve, "pool2");
  x = sn_build_conv(b, x, (sn_conv){.channels = 384, .kernel = 3, .pad = 1}, "conv3");
  x = sn_build_relu(b, x, "relu3");
  x = sn_build_conv(b, x, (sn_conv){.channels = 384, .kernel = 3, .pad = 1}, "conv4");
  x = sn_build_relu(b, x, "relu4");
  x = sn_build_conv(b, x, (sn_conv){.channels = 256, .kernel = 3, .pad = 1}, "conv5");
  x = sn_build_relu(b, x, "relu5");
  x = sn_build_pool(b, x, halve, "pool5");
  x = sn_build_fc(b, x, 4096, "fc1");
  x = sn_build_relu(b, x, "relu6");
  x = sn_build_dropout(b, x, 0.5, "drop1");
  x = sn_build_fc(b, x, 4096, "fc2");
  x = sn_build_relu(b, x, "relu7");
  x = sn_build_dropout(b, x, 0.5, "drop2");
  x = sn_build_fc(b, x, 1000, "fc3");
  sn_build_softmax(b, x, "softmax");
  return sn_builder_finish(b, NULL, err);
}
