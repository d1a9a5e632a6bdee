/* torchvision's ConvNeXt (Liu et al., CVPR 2022, figure 4): a 7x7 convolution of each channel alone, a norm over the
 * channels of each pixel, and two linear layers on each pixel; its sum is weighed channel by channel. 224x224x3 images.
 * Where torchvision permutes axes its tensors are views, so layers stand one behind the other as if it did not.
 *
 * Names are torchvision's paths of modules, "features.1.0.block.3"; what has no module there is "features.1.0.scale"
 * and "features.1.0.add".
 */
#include "models/zoo/zoo_internal.h"

/* `drop`: share of images that skip the unit. */
static uint32_t add_unit(sn_builder *b, uint32_t x, uint32_t channels, double drop, unsigned stage, unsigned k) {
  const sn_conv each = {.channels = channels, .kernel = 7, .pad = 3, .groups = channels};
  uint32_t y = sn_build_conv(b, x, each, "features.%u.%u.block.0", stage, k);
  y = sn_build_layer_norm(b, y, "features.%u.%u.block.2", stage, k);
  y = sn_build_fc_positions(b, y, 4 * channels, "features.%u.%u.block.3", stage, k);
  y = sn_build_act(b, y, (sn_act){.mode = SN_ACT_GELU}, "features.%u.%u.block.4", stage, k);
  y = sn_build_fc_positions(b, y, channels, "features.%u.%u.block.5", stage, k);
  y = sn_build_scale(b, y, "features.%u.%u.scale", stage, k);
  if (drop > 0) y = sn_build_drop_images(b, y, drop, "features.%u.%u.stochastic_depth", stage, k);
  y = sn_build_join(b, (const uint32_t[]){y, x}, 2, "features.%u.%u.add", stage, k);
  return sn_build_inplace(b, y, SN_INPLACE_YES);
}

static uint32_t downsample(sn_builder *b, uint32_t x, uint32_t channels, unsigned stage) {
  x = sn_build_layer_norm(b, x, "features.%u.0", stage);
  return sn_build_conv(b, x, (sn_conv){.channels = channels, .kernel = 2, .stride = 2}, "features.%u.1", stage);
}

sn_net *sn__zoo_convnext(const sn_zoo_entry *entry, uint32_t batch, uint32_t image, const char *parameters,
                         sn_err *err) {
  const sn__convnext *net = entry->config;
  sn_builder *b = sn__zoo_begin(entry, batch, 3, image, parameters, err);
  const sn_conv stem = {.channels = net->channels, .kernel = 4, .stride = 4};
  uint32_t x = sn_build_conv(b, SN_DATA_LAYER, stem, "features.0.0"), units = 0, done = 0;
  x = sn_build_layer_norm(b, x, "features.0.1");
  for (unsigned s = 0; s < 4; s++) units += net->units[s];
  for (unsigned s = 0; s < 4; s++) {
    uint32_t channels = net->channels << s;
    if (s > 0) x = downsample(b, x, channels, 2 * s);
    for (unsigned k = 0; k < net->units[s]; k++)
      x = add_unit(b, x, channels, net->drop * done++ / (units - 1), 2 * s + 1, k);
  }
  x = sn_build_pool(b, x, (sn_pooling){.average = true, .global = true}, "avgpool");
  x = sn_build_layer_norm(b, x, "classifier.0");
  x = sn_build_fc(b, x, 1000, "classifier.2");
  sn_build_softmax(b, x, "softmax");
  return sn_builder_finish(b, NULL, err);
}
