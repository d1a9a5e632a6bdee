/* torchvision's Swin Transformers (Liu et al., ICCV 2021): attention within windows of 7x7 positions, in parts, with a
 * learned bias for each of 13x13 distances; every second unit's windows are moved by three, but where one fills the
 * image. Between stages four neighbours become one position. 224x224x3 images, or multiples, so that windows fill them.
 *
 * Cutting windows out, moving them and putting them together again are copies that nothing keeps; what an FC keeps of
 * them is as large as what they copy. So layers stand one behind the other as if there were none.
 *
 * Names are torchvision's paths of modules, "features.1.0.attn.qkv"; what has no module there is
 * "features.1.0.attn.sdpa", "features.2.merge", "features.1.0.add1".
 */
#include "base/checked.h"
#include "models/zoo/zoo_internal.h"

#include <inttypes.h>

enum { WINDOW = 7, DISTANCES = (2 * WINDOW - 1) * (2 * WINDOW - 1), HEAD = 32 };

static uint32_t add(sn_builder *b, uint32_t x, uint32_t y, double drop, unsigned stage, unsigned k, unsigned n) {
  if (drop > 0) y = sn_build_drop_images(b, y, drop, "features.%u.%u.stochastic_depth%u", stage, k, n);
  x = sn_build_join(b, (const uint32_t[]){x, y}, 2, "features.%u.%u.add%u", stage, k, n);
  return sn_build_inplace(b, x, SN_INPLACE_NO);
}

typedef struct unit {
  uint32_t channels, height, width;
  double drop; /* share of images that skip it */
} unit;

static uint32_t add_unit(sn_builder *b, uint32_t x, unit u, unsigned stage, unsigned k) {
  const uint32_t channels = u.channels;
  const double drop = u.drop;
  const sn_attention windows = {.heads = channels / HEAD,
                                .parts = true,
                                .rows = DISTANCES,
                                .window = WINDOW,
                                .shift = k % 2 == 1 && sn_max(u.height, u.width) > WINDOW ? WINDOW / 2 : 0};
  uint32_t y = sn_build_layer_norm(b, x, "features.%u.%u.norm1", stage, k);
  y = sn_build_fc_positions(b, y, 3 * channels, "features.%u.%u.attn.qkv", stage, k);
  y = sn_build_attention(b, &y, 1, windows, "features.%u.%u.attn.sdpa", stage, k);
  y = sn_build_fc_positions(b, y, channels, "features.%u.%u.attn.proj", stage, k);
  x = add(b, x, y, drop, stage, k, 1);
  y = sn_build_layer_norm(b, x, "features.%u.%u.norm2", stage, k);
  y = sn_build_fc_positions(b, y, 4 * channels, "features.%u.%u.mlp.0", stage, k);
  y = sn_build_act(b, y, (sn_act){.mode = SN_ACT_GELU}, "features.%u.%u.mlp.1", stage, k);
  y = sn_build_fc_positions(b, y, channels, "features.%u.%u.mlp.3", stage, k);
  return add(b, x, y, drop, stage, k, 2);
}

/* Four neighbours become one, for the units that follow. */
static uint32_t merge(sn_builder *b, uint32_t x, const unit *to, unsigned stage) {
  x = sn_build_concat(b, &x, 1, "features.%u.merge", stage);
  x = sn_build_reshape(b, x, 2 * to->channels, to->height, to->width, "features.%u.neighbours", stage);
  x = sn_build_layer_norm(b, x, "features.%u.norm", stage);
  return sn_build_linear(b, x, to->channels, 0, "features.%u.reduction", stage);
}

sn_net *sn__zoo_swin(const sn_zoo_entry *entry, uint32_t batch, uint32_t image, const char *parameters, sn_err *err) {
  const sn__swin *net = entry->config;
  const uint32_t smallest = 4 * 8 * WINDOW;
  const uint32_t height = sn_image_height(image), width = sn_image_width(image);
  if (height % smallest != 0 || width % smallest != 0) {
    sn_fail(err, SN_BAD_USAGE,
            "%s cuts images into windows, which fill multiples of %" PRIu32 ", not %" PRIu32 "x%" PRIu32, entry->name,
            smallest, height, width);
    return NULL;
  }
  sn_builder *b = sn__zoo_begin(entry, batch, 3, image, parameters, err);
  const sn_conv patches = {.channels = net->channels, .kernel = 4, .stride = 4};
  uint32_t x = sn_build_conv(b, SN_DATA_LAYER, patches, "features.0.0"), units = 0, done = 0;
  x = sn_build_layer_norm(b, x, "features.0.2");
  for (unsigned s = 0; s < 4; s++) units += net->units[s];
  for (unsigned s = 0; s < 4; s++) {
    unit u = {.channels = net->channels << s, .height = height / 4 >> s, .width = width / 4 >> s};
    if (s > 0) x = merge(b, x, &u, 2 * s);
    for (unsigned k = 0; k < net->units[s]; k++) {
      u.drop = net->drop * done++ / (units - 1);
      x = add_unit(b, x, u, 2 * s + 1, k);
    }
  }
  x = sn_build_layer_norm(b, x, "norm");
  x = sn_build_pool(b, x, (sn_pooling){.average = true, .global = true}, "avgpool");
  x = sn_build_fc(b, x, 1000, "head");
  sn_build_softmax(b, x, "softmax");
  return sn_builder_finish(b, NULL, err);
}
