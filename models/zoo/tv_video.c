/* torchvision's networks of video, torchvision.models.video: R3D-18, MC3-18 and R(2+1)D-18 (Tran et al., CVPR 2018),
 * ResNet-18 over clips of 16 frames of 112x112x3, 400 classes. A 3x3x3 window sees three frames; MC3 has such windows
 * in its first stage only and 1x3x3 in the others, R(2+1)D a 1x3x3 and a 3x1x1 with a BN and a ReLU between, as many
 * channels there as give the two the parameters of one 3x3x3. Layers stand in the order in which torchvision runs them:
 * the projection behind the main branch, the main branch first in the sum.
 *
 * Names are torchvision's paths of modules, "layer1.0.conv1.0"; what has no module there is "layer1.0.add".
 */
#include "models/zoo/zoo_internal.h"

#include <stdio.h>

typedef struct unit {
  unsigned stage, number; /* stages from 1, units from 0 */
  sn__video_window window;
  uint32_t channels, stride;
  uint32_t middle; /* of R(2+1)D */
  bool projects;
} unit;

static uint32_t split_conv(sn_builder *b, uint32_t x, const unit *u, unsigned n, uint32_t stride) {
  const sn_conv plane = {.channels = u->middle, .kernel = 3, .stride = stride, .pad = 1, .no_bias = true};
  const sn_conv time = {
      .channels = u->channels, .kernel = 1, .kernel_deep = 3, .stride_deep = stride, .pad_deep = 1, .no_bias = true};
  x = sn_build_conv(b, x, plane, "layer%u.%u.conv%u.0.0", u->stage, u->number, n);
  x = sn_build_bn(b, x, "layer%u.%u.conv%u.0.1", u->stage, u->number, n);
  x = sn_build_relu(b, x, "layer%u.%u.conv%u.0.2", u->stage, u->number, n);
  return sn_build_conv(b, x, time, "layer%u.%u.conv%u.0.3", u->stage, u->number, n);
}

static uint32_t conv_bn(sn_builder *b, uint32_t x, const unit *u, unsigned n, uint32_t stride) {
  sn_conv conv = {.channels = u->channels, .kernel = 3, .stride = stride, .pad = 1, .no_bias = true};
  if (u->window == SN__VIDEO_CUBE) {
    conv.kernel_deep = 3;
    conv.stride_deep = stride;
    conv.pad_deep = 1;
  }
  if (u->window == SN__VIDEO_SPLIT)
    x = split_conv(b, x, u, n, stride);
  else
    x = sn_build_conv(b, x, conv, "layer%u.%u.conv%u.0", u->stage, u->number, n);
  return sn_build_bn(b, x, "layer%u.%u.conv%u.1", u->stage, u->number, n);
}

static uint32_t project(sn_builder *b, uint32_t x, const unit *u) {
  const sn_conv conv = {.channels = u->channels,
                        .kernel = 1,
                        .stride = u->stride,
                        .stride_deep = u->window == SN__VIDEO_PLANE ? 1 : u->stride,
                        .no_bias = true};
  x = sn_build_conv(b, x, conv, "layer%u.%u.downsample.0", u->stage, u->number);
  return sn_build_bn(b, x, "layer%u.%u.downsample.1", u->stage, u->number);
}

static uint32_t residual_unit(sn_builder *b, uint32_t x, const unit *u) {
  uint32_t y = conv_bn(b, x, u, 1, u->stride);
  y = sn_build_relu(b, y, "layer%u.%u.conv1.2", u->stage, u->number);
  y = conv_bn(b, y, u, 2, 1);
  uint32_t shortcut = u->projects ? project(b, x, u) : x;
  y = sn_build_join(b, (const uint32_t[]){y, shortcut}, 2, "layer%u.%u.add", u->stage, u->number);
  return sn_build_relu(b, y, "layer%u.%u.relu", u->stage, u->number);
}

static uint32_t bn_relu(sn_builder *b, uint32_t x, unsigned n) {
  x = sn_build_bn(b, x, "stem.%u", n);
  return sn_build_relu(b, x, "stem.%u", n + 1);
}

static uint32_t stem(sn_builder *b, bool split) {
  sn_conv conv = {.channels = split ? 45 : 64, .kernel = 7, .stride = 2, .pad = 3, .no_bias = true};
  const sn_conv time = {.channels = 64, .kernel = 1, .kernel_deep = 3, .pad_deep = 1, .no_bias = true};
  conv.kernel_deep = split ? 1 : 3;
  conv.pad_deep = split ? 0 : 1;
  uint32_t x = bn_relu(b, sn_build_conv(b, SN_DATA_LAYER, conv, "stem.0"), 1);
  return split ? bn_relu(b, sn_build_conv(b, x, time, "stem.3"), 4) : x;
}

/* So many that both windows of a split one have as many parameters as one 3x3x3. */
static uint32_t middle_of(uint32_t inputs, uint32_t outputs) {
  return inputs * outputs * 27 / (inputs * 9 + 3 * outputs);
}

sn_net *sn__zoo_tv_video(const sn_zoo_entry *entry, uint32_t batch, uint32_t image, const char *parameters,
                         sn_err *err) {
  static const char *const keys[] = {"frames"};
  const sn__video *net = entry->config;
  uint32_t frames = 16, channels = 64;
  char name[SN_NET_NAME];
  if (sn__zoo_parameters(entry, parameters, &(const sn__zoo_keys){.names = keys, .count = 1, .high = 10000}, &frames,
                         err))
    return NULL;
  snprintf(name, sizeof name, "%s%s%s", entry->name, parameters ? ":" : "", parameters ? parameters : "");
  sn_builder *b = sn_builder_new_volumes(name, batch, 3, frames, sn_image_height(image), sn_image_width(image), err);
  uint32_t x = stem(b, net->first == SN__VIDEO_SPLIT);
  for (unsigned s = 1; s <= 4; s++)
    for (unsigned k = 0; k < 2; k++) {
      unit u = {.stage = s, .number = k, .window = s == 1 ? net->first : net->others, .channels = 32u << s};
      u.projects = k == 0 && s > 1;
      u.stride = u.projects ? 2 : 1;
      u.middle = middle_of(channels, u.channels);
      x = residual_unit(b, x, &u);
      channels = u.channels;
    }
  x = sn_build_pool(b, x, (sn_pooling){.average = true, .global = true}, "avgpool");
  x = sn_build_fc(b, x, 400, "fc");
  sn_build_softmax(b, x, "softmax");
  return sn_builder_finish(b, NULL, err);
}
