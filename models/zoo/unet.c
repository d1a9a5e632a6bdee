/* U-Net (Ronneberger et al., MICCAI 2015, figure 1) in the form that most of today's are: convolutions are padded and
 * behind each stands a batch norm, so that what is put together has one size. Layers and names are those of the PyTorch
 * implementation by milesial (unet/unet_model.py: three channels, two classes, transposed convolutions). Its padding of
 * nothing is a copy, a CONCAT of one. Two classes a pixel; any image whose sides four halvings divide.
 */
#include "models/zoo/zoo_internal.h"

#include <inttypes.h>
#include <stdio.h>

enum { FIRST = 64, DOWNS = 4, CLASSES = 2, PATH = 32 };

/* "<at>.double_conv.0" to ".5" */
static uint32_t double_conv(sn_builder *b, uint32_t x, uint32_t channels, const char *at) {
  const sn_conv conv = {.channels = channels, .kernel = 3, .pad = 1, .no_bias = true};
  for (unsigned k = 0; k < 6; k += 3) {
    x = sn_build_conv(b, x, conv, "%s.double_conv.%u", at, k);
    x = sn_build_bn(b, x, "%s.double_conv.%u", at, k + 1);
    x = sn_build_relu(b, x, "%s.double_conv.%u", at, k + 2);
  }
  return x;
}

static uint32_t down(sn_builder *b, uint32_t x, uint32_t channels, unsigned n) {
  char at[PATH];
  snprintf(at, sizeof at, "down%u.maxpool_conv.1", n);
  x = sn_build_pool(b, x, (sn_pooling){.kernel = 2, .stride = 2}, "down%u.maxpool_conv.0", n);
  return double_conv(b, x, channels, at);
}

static uint32_t up(sn_builder *b, uint32_t x, uint32_t skipped, uint32_t channels, unsigned n) {
  char at[PATH];
  snprintf(at, sizeof at, "up%u.conv", n);
  x = sn_build_deconv(b, x, (sn_conv){.channels = channels, .kernel = 2, .stride = 2}, "up%u.up", n);
  x = sn_build_concat(b, &x, 1, "up%u.pad", n);
  x = sn_build_concat(b, (const uint32_t[]){skipped, x}, 2, "up%u.cat", n);
  return double_conv(b, x, channels, at);
}

sn_net *sn__zoo_unet(const sn_zoo_entry *entry, uint32_t batch, uint32_t image, const char *parameters, sn_err *err) {
  uint32_t level[DOWNS + 1];
  const uint32_t height = sn_image_height(image), width = sn_image_width(image);
  if ((height | width) % (1u << DOWNS) != 0) {
    sn_fail(err, SN_BAD_USAGE, "%s halves its images %d times, and %" PRIu32 "x%" PRIu32 " are no multiples of %u",
            entry->name, DOWNS, height, width, 1u << DOWNS);
    return NULL;
  }
  sn_builder *b = sn__zoo_begin(entry, batch, 3, image, parameters, err);
  level[0] = double_conv(b, SN_DATA_LAYER, FIRST, "inc");
  for (unsigned n = 1; n <= DOWNS; n++) level[n] = down(b, level[n - 1], (uint32_t)FIRST << n, n);
  uint32_t x = level[DOWNS];
  for (unsigned n = 1; n <= DOWNS; n++) x = up(b, x, level[DOWNS - n], (uint32_t)FIRST << (DOWNS - n), n);
  x = sn_build_conv(b, x, (sn_conv){.channels = CLASSES, .kernel = 1}, "outc.conv");
  sn_build_loss_positions(b, x, SN_LOSS_CROSS_ENTROPY, "softmax");
  return sn_builder_finish(b, NULL, err);
}
