/* VGG: Simonyan and Zisserman, "Very deep convolutional networks for large-scale image recognition", ICLR 2015, table
 * 1, configurations D (VGG16) and E (VGG19). 224x224x3 images; all convolutions are 3x3 with padding 1.
 *
 * Names: conv<stage>_<n>, relu<stage>_<n>, pool<stage>; then fc1 relu6 drop1 fc2 relu7 drop2 fc3.
 */
#include "models/zoo/zoo_internal.h"

static uint32_t stages(sn_builder *b, uint32_t x, const uint32_t *convs) {
  static const uint32_t channels[5] = {64, 128, 256, 512, 512};
  for (unsigned s = 0; s < 5; s++) {
    for (unsigned i = 1; i <= convs[s]; i++) {
      x = sn_build_conv(b, x, (sn_conv){.channels = channels[s], .kernel = 3, .pad = 1}, "conv%u_%u", s + 1, i);
      x = sn_build_relu(b, x, "relu%u_%u", s + 1, i);
    }
    x = sn_build_pool(b, x, (sn_pooling){.kernel = 2, .stride = 2}, "pool%u", s + 1);
  }
  return x;
}

sn_net *sn__zoo_vgg(const sn_zoo_entry *entry, uint32_t batch, uint32_t image, const char *parameters, sn_err *err) {
  sn_builder *b = sn__zoo_begin(entry, batch, 3, image, parameters, err);
  uint32_t x = stages(b, SN_DATA_LAYER, entry->config);
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
