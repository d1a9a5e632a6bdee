/* torchvision's networks of residual units: ResNet (He et al., CVPR 2016) with the stride on the bottleneck's 3x3, the
 * form also called ResNet v1.5, with it ResNeXt (Xie et al., CVPR 2017), whose 3x3 has groups, and Wide ResNet
 * (Zagoruyko and Komodakis, BMVC 2016); and MobileNetV2 (Sandler et al., CVPR 2018). 224x224x3 images. Layers stand in
 * the order in which torchvision runs them: the projection behind the main branch, the main branch first in the sum.
 *
 * Names are torchvision's paths of modules, "layer1.0.conv1"; what has no module there, or one that runs several times,
 * is "layer1.0.relu1" to "relu3", "layer1.0.add".
 */
#include "models/zoo/zoo_internal.h"

/* -- ResNet ------------------------------------------------------------------------------------------------------- */

typedef struct unit {
  unsigned stage, number;                /* stages from 1, units from 0 */
  uint32_t width, inner, groups, stride; /* inner: of the bottleneck's first two convolutions */
  bool projects;
} unit;

static uint32_t conv_bn(sn_builder *b, uint32_t x, const unit *u, unsigned n, sn_conv conv) {
  conv.no_bias = true;
  x = sn_build_conv(b, x, conv, "layer%u.%u.conv%u", u->stage, u->number, n);
  return sn_build_bn(b, x, "layer%u.%u.bn%u", u->stage, u->number, n);
}

static uint32_t conv_bn_relu(sn_builder *b, uint32_t x, const unit *u, unsigned n, sn_conv conv) {
  x = conv_bn(b, x, u, n, conv);
  return sn_build_relu(b, x, "layer%u.%u.relu%u", u->stage, u->number, n);
}

static uint32_t project(sn_builder *b, uint32_t x, const unit *u, uint32_t channels) {
  const sn_conv conv = {.channels = channels, .kernel = 1, .stride = u->stride, .no_bias = true};
  x = sn_build_conv(b, x, conv, "layer%u.%u.downsample.0", u->stage, u->number);
  return sn_build_bn(b, x, "layer%u.%u.downsample.1", u->stage, u->number);
}

static uint32_t residual_unit(sn_builder *b, uint32_t x, const unit *u, bool basic) {
  uint32_t channels = basic ? u->width : 4 * u->width, y = x;
  if (basic) {
    y = conv_bn_relu(b, y, u, 1, (sn_conv){.channels = u->width, .kernel = 3, .stride = u->stride, .pad = 1});
    y = conv_bn(b, y, u, 2, (sn_conv){.channels = u->width, .kernel = 3, .pad = 1});
  } else {
    y = conv_bn_relu(b, y, u, 1, (sn_conv){.channels = u->inner, .kernel = 1});
    const sn_conv middle = {.channels = u->inner, .kernel = 3, .stride = u->stride, .pad = 1, .groups = u->groups};
    y = conv_bn_relu(b, y, u, 2, middle);
    y = conv_bn(b, y, u, 3, (sn_conv){.channels = channels, .kernel = 1});
  }
  uint32_t shortcut = u->projects ? project(b, x, u, channels) : x;
  y = sn_build_join(b, (const uint32_t[]){y, shortcut}, 2, "layer%u.%u.add", u->stage, u->number);
  return sn_build_relu(b, y, "layer%u.%u.relu%u", u->stage, u->number, basic ? 2u : 3u);
}

static uint32_t resnet_stem(sn_builder *b) {
  const sn_conv conv = {.channels = 64, .kernel = 7, .stride = 2, .pad = 3, .no_bias = true};
  uint32_t x = sn_build_conv(b, SN_DATA_LAYER, conv, "conv1");
  x = sn_build_bn(b, x, "bn1");
  x = sn_build_relu(b, x, "relu");
  return sn_build_pool(b, x, (sn_pooling){.kernel = 3, .stride = 2, .pad = 1}, "maxpool");
}

sn_net *sn__zoo_tv_resnet(const sn_zoo_entry *entry, uint32_t batch, uint32_t image, const char *parameters,
                          sn_err *err) {
  const sn__resnet *net = entry->config;
  sn_builder *b = sn__zoo_begin(entry, batch, 3, image, parameters, err);
  uint32_t x = resnet_stem(b), groups = net->groups ? net->groups : 1;
  uint32_t inner = groups * (net->group_width ? net->group_width : 64); /* in the first stage */
  for (unsigned s = 1; s <= 4; s++)
    for (unsigned k = 0; k < net->units[s - 1]; k++) {
      unit u = {.stage = s, .number = k, .width = 32u << s, .groups = groups, .stride = s > 1 && k == 0 ? 2 : 1};
      u.inner = inner << (s - 1);
      u.projects = k == 0 && (s > 1 || !net->basic);
      x = residual_unit(b, x, &u, net->basic);
    }
  x = sn_build_pool(b, x, (sn_pooling){.average = true, .global = true}, "avgpool");
  x = sn_build_fc(b, x, 1000, "fc");
  sn_build_softmax(b, x, "softmax");
  return sn_builder_finish(b, NULL, err);
}

/* -- MobileNetV2 -------------------------------------------------------------------------------------------------- */

/* "<prefix>.0", ".1" and ".2": convolution, batch normalisation, ReLU6 */
static uint32_t conv_bn_relu6(sn_builder *b, uint32_t x, sn_conv conv, const char *prefix, unsigned n,
                              const char *suffix) {
  conv.no_bias = true;
  conv.pad = conv.kernel / 2;
  x = sn_build_conv(b, x, conv, "%s.%u%s.0", prefix, n, suffix);
  x = sn_build_bn(b, x, "%s.%u%s.1", prefix, n, suffix);
  return sn_build_relu6(b, x, "%s.%u%s.2", prefix, n, suffix);
}

/* The inverted residual unit features.<n>: widen, depthwise 3x3, narrow; figure 4 of the paper. Its sum is `x + y`,
 * which takes no operand's storage. */
static uint32_t inverted_unit(sn_builder *b, uint32_t x, unsigned n, uint32_t inputs, uint32_t outputs, uint32_t widen,
                              uint32_t stride) {
  uint32_t width = inputs * widen, y = x;
  unsigned part = 0;
  if (widen > 1) {
    y = conv_bn_relu6(b, y, (sn_conv){.channels = width, .kernel = 1}, "features", n, ".conv.0");
    part = 1;
  }
  const sn_conv depthwise = {.channels = width, .kernel = 3, .stride = stride, .groups = width};
  y = conv_bn_relu6(b, y, depthwise, "features", n, part ? ".conv.1" : ".conv.0");
  y = sn_build_conv(b, y, (sn_conv){.channels = outputs, .kernel = 1, .no_bias = true}, "features.%u.conv.%u", n,
                    part + 1);
  y = sn_build_bn(b, y, "features.%u.conv.%u", n, part + 2);
  if (stride > 1 || inputs != outputs) return y;
  y = sn_build_join(b, (const uint32_t[]){x, y}, 2, "features.%u.add", n);
  return sn_build_inplace(b, y, SN_INPLACE_NO);
}

sn_net *sn__zoo_tv_mobilenet_v2(const sn_zoo_entry *entry, uint32_t batch, uint32_t image, const char *parameters,
                                sn_err *err) {
  /* table 2 of the paper: widening, channels, units, stride of the first */
  static const uint32_t rows[7][4] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                                      {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
  sn_builder *b = sn__zoo_begin(entry, batch, 3, image, parameters, err);
  uint32_t channels = 32;
  unsigned n = 0;
  uint32_t x =
      conv_bn_relu6(b, SN_DATA_LAYER, (sn_conv){.channels = channels, .kernel = 3, .stride = 2}, "features", n++, "");
  for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++)
    for (uint32_t k = 0; k < rows[r][2]; k++) {
      x = inverted_unit(b, x, n++, channels, rows[r][1], rows[r][0], k == 0 ? rows[r][3] : 1);
      channels = rows[r][1];
    }
  x = conv_bn_relu6(b, x, (sn_conv){.channels = 1280, .kernel = 1}, "features", n, "");
  x = sn_build_pool(b, x, (sn_pooling){.average = true, .global = true}, "avgpool");
  x = sn_build_dropout(b, x, 0.2, "classifier.0");
  x = sn_build_fc(b, x, 1000, "classifier.1");
  sn_build_softmax(b, x, "softmax");
  return sn_builder_finish(b, NULL, err);
}
