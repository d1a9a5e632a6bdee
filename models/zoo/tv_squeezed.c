/* torchvision's networks whose units squeeze and excite (Hu et al., CVPR 2018): MobileNetV3 (Howard et al., ICCV 2019,
 * tables 1 and 2) and EfficientNet (Tan and Le, ICML 2019, table 1, made wider and deeper). A unit widens, filters each
 * channel alone, weighs the channels by what an average of them says, and narrows; figure 4 of MobileNetV3.
 *
 * Names are torchvision's paths of modules, "features.4.block.2.fc1"; what has no module there is "features.4.mul" and
 * "features.4.add".
 */
#include "models/zoo/zoo_internal.h"

#include <stdio.h>

enum { PATH = 64 };

typedef struct unit {
  char path[PATH];                                          /* "features.4" or "features.4.0" */
  uint32_t inputs, wide, outputs, squeezed, kernel, stride; /* squeezed 0: no excitation */
  sn_act_mode act, squeeze_act, gate;
  double drop; /* share of images that skip the unit */
} unit;

/* torchvision's _make_divisible(share of `channels`, 8); share in tenths. */
static uint32_t in_eights(uint32_t channels, uint32_t tenths) {
  uint32_t tenfold = channels * tenths, rounded = (tenfold + 40) / 80 * 8;
  if (rounded < 8) rounded = 8;
  return rounded * 100 < tenfold * 9 ? rounded + 8 : rounded;
}

/* "<path>.0", ".1" and ".2": convolution, batch normalisation, activation */
static uint32_t conv_bn_act(sn_builder *b, uint32_t x, sn_conv conv, const sn_act_mode *act, const char *path,
                            const char *part) {
  conv.no_bias = true;
  conv.pad = conv.kernel / 2;
  x = sn_build_conv(b, x, conv, "%s%s.0", path, part);
  x = sn_build_bn(b, x, "%s%s.1", path, part);
  return act ? sn_build_act(b, x, (sn_act){.mode = *act}, "%s%s.2", path, part) : x;
}

static uint32_t excite(sn_builder *b, uint32_t x, const unit *u, unsigned part) {
  uint32_t y = sn_build_pool(b, x, (sn_pooling){.average = true, .global = true}, "%s.block.%u.avgpool", u->path, part);
  y = sn_build_conv(b, y, (sn_conv){.channels = u->squeezed, .kernel = 1}, "%s.block.%u.fc1", u->path, part);
  y = sn_build_act(b, y, (sn_act){.mode = u->squeeze_act}, "%s.block.%u.activation", u->path, part);
  y = sn_build_inplace(b, y, SN_INPLACE_NO);
  y = sn_build_conv(b, y, (sn_conv){.channels = u->wide, .kernel = 1}, "%s.block.%u.fc2", u->path, part);
  y = sn_build_act(b, y, (sn_act){.mode = u->gate}, "%s.block.%u.scale_activation", u->path, part);
  return sn_build_mul(b, x, y, "%s.mul", u->path);
}

/* The main branch comes first in the sum, which takes its storage. */
static uint32_t add_unit(sn_builder *b, uint32_t x, const unit *u) {
  static const char *const parts[] = {".block.0", ".block.1", ".block.2", ".block.3"};
  uint32_t y = x;
  unsigned part = 0;
  if (u->wide != u->inputs)
    y = conv_bn_act(b, y, (sn_conv){.channels = u->wide, .kernel = 1}, &u->act, u->path, parts[part++]);
  const sn_conv each = {.channels = u->wide, .kernel = u->kernel, .stride = u->stride, .groups = u->wide};
  y = conv_bn_act(b, y, each, &u->act, u->path, parts[part++]);
  if (u->squeezed) y = excite(b, y, u, part++);
  y = conv_bn_act(b, y, (sn_conv){.channels = u->outputs, .kernel = 1}, NULL, u->path, parts[part]);
  if (u->stride > 1 || u->inputs != u->outputs) return y;
  if (u->drop > 0) y = sn_build_drop_images(b, y, u->drop, "%s.stochastic_depth", u->path);
  y = sn_build_join(b, (const uint32_t[]){y, x}, 2, "%s.add", u->path);
  return sn_build_inplace(b, y, SN_INPLACE_YES);
}

/* -- MobileNetV3 -------------------------------------------------------------------------------------------------- */

typedef struct sn__squeezed_row {
  uint32_t kernel, wide, outputs, excites, hard, stride;
} row;

static const row large_rows[] = {{3, 16, 16, 0, 0, 1},   {3, 64, 24, 0, 0, 2},   {3, 72, 24, 0, 0, 1},
                                 {5, 72, 40, 1, 0, 2},   {5, 120, 40, 1, 0, 1},  {5, 120, 40, 1, 0, 1},
                                 {3, 240, 80, 0, 1, 2},  {3, 200, 80, 0, 1, 1},  {3, 184, 80, 0, 1, 1},
                                 {3, 184, 80, 0, 1, 1},  {3, 480, 112, 1, 1, 1}, {3, 672, 112, 1, 1, 1},
                                 {5, 672, 160, 1, 1, 2}, {5, 960, 160, 1, 1, 1}, {5, 960, 160, 1, 1, 1}};
static const row small_rows[] = {{3, 16, 16, 1, 0, 2},  {3, 72, 24, 0, 0, 2},  {3, 88, 24, 0, 0, 1},
                                 {5, 96, 40, 1, 1, 2},  {5, 240, 40, 1, 1, 1}, {5, 240, 40, 1, 1, 1},
                                 {5, 120, 48, 1, 1, 1}, {5, 144, 48, 1, 1, 1}, {5, 288, 96, 1, 1, 2},
                                 {5, 576, 96, 1, 1, 1}, {5, 576, 96, 1, 1, 1}};

const sn__mobilenet_v3 sn__mobilenet_v3_large = {large_rows, sizeof large_rows / sizeof large_rows[0], 1280};
const sn__mobilenet_v3 sn__mobilenet_v3_small = {small_rows, sizeof small_rows / sizeof small_rows[0], 1024};

sn_net *sn__zoo_mobilenet_v3(const sn_zoo_entry *entry, uint32_t batch, uint32_t image, const char *parameters,
                             sn_err *err) {
  static const sn_act_mode hardswish = SN_ACT_HARDSWISH;
  const sn__mobilenet_v3 *net = entry->config;
  const row *rows = net->rows;
  sn_builder *b = sn__zoo_begin(entry, batch, 3, image, parameters, err);
  unit u = {.outputs = 16, .squeeze_act = SN_ACT_RELU, .gate = SN_ACT_HARDSIGMOID};
  uint32_t x =
      conv_bn_act(b, SN_DATA_LAYER, (sn_conv){.channels = 16, .kernel = 3, .stride = 2}, &hardswish, "features.0", "");
  for (unsigned i = 0; i < net->n_rows; i++) {
    snprintf(u.path, sizeof u.path, "features.%u", i + 1);
    u.inputs = u.outputs;
    u.kernel = rows[i].kernel, u.wide = rows[i].wide, u.outputs = rows[i].outputs, u.stride = rows[i].stride;
    u.squeezed = rows[i].excites ? in_eights(rows[i].wide / 4, 10) : 0;
    u.act = rows[i].hard ? SN_ACT_HARDSWISH : SN_ACT_RELU;
    x = add_unit(b, x, &u);
  }
  snprintf(u.path, sizeof u.path, "features.%u", net->n_rows + 1);
  x = conv_bn_act(b, x, (sn_conv){.channels = 6 * u.outputs, .kernel = 1}, &hardswish, u.path, "");
  x = sn_build_pool(b, x, (sn_pooling){.average = true, .global = true}, "avgpool");
  x = sn_build_fc(b, x, net->last, "classifier.0");
  x = sn_build_act(b, x, (sn_act){.mode = SN_ACT_HARDSWISH}, "classifier.1");
  x = sn_build_dropout(b, x, 0.2, "classifier.2");
  x = sn_build_fc(b, x, 1000, "classifier.3");
  sn_build_softmax(b, x, "softmax");
  return sn_builder_finish(b, NULL, err);
}

/* -- EfficientNet ------------------------------------------------------------------------------------------------- */

/* Units of a stage, made deeper: rounded up. */
static uint32_t deeper(uint32_t units, uint32_t tenths) {
  return (units * tenths + 9) / 10;
}

static uint32_t next_of_stage(sn_builder *b, uint32_t x, unit *u, unsigned stage, unsigned k) {
  snprintf(u->path, sizeof u->path, "features.%u.%u", stage, k);
  x = add_unit(b, x, u);
  u->inputs = u->outputs;
  u->stride = 1;
  return x;
}

sn_net *sn__zoo_efficientnet(const sn_zoo_entry *entry, uint32_t batch, uint32_t image, const char *parameters,
                             sn_err *err) {
  /* table 1 of the paper: widening, kernel, stride of the first, channels, units */
  static const uint32_t rows[7][5] = {{1, 3, 1, 16, 1},  {6, 3, 2, 24, 2},  {6, 5, 2, 40, 2}, {6, 3, 2, 80, 3},
                                      {6, 5, 1, 112, 3}, {6, 5, 2, 192, 4}, {6, 3, 1, 320, 1}};
  static const sn_act_mode silu = SN_ACT_SILU;
  const sn__efficientnet *net = entry->config;
  sn_builder *b = sn__zoo_begin(entry, batch, 3, image, parameters, err);
  uint32_t units = 0, done = 0;
  for (size_t r = 0; r < 7; r++) units += deeper(rows[r][4], net->depth);
  unit u = {.inputs = in_eights(32, net->width), .act = silu, .squeeze_act = silu, .gate = SN_ACT_SIGMOID};
  uint32_t x =
      conv_bn_act(b, SN_DATA_LAYER, (sn_conv){.channels = u.inputs, .kernel = 3, .stride = 2}, &silu, "features.0", "");
  for (unsigned r = 0; r < 7; r++) {
    u.kernel = rows[r][1], u.stride = rows[r][2], u.outputs = in_eights(rows[r][3], net->width);
    for (unsigned k = 0; k < deeper(rows[r][4], net->depth); k++) {
      u.wide = in_eights(u.inputs, 10 * rows[r][0]);
      u.squeezed = u.inputs / 4;
      u.drop = 0.2 * done++ / units;
      x = next_of_stage(b, x, &u, r + 1, k);
    }
  }
  x = conv_bn_act(b, x, (sn_conv){.channels = 4 * u.outputs, .kernel = 1}, &silu, "features.8", "");
  x = sn_build_pool(b, x, (sn_pooling){.average = true, .global = true}, "avgpool");
  x = sn_build_dropout(b, x, net->dropout, "classifier.0");
  x = sn_build_fc(b, x, 1000, "classifier.1");
  sn_build_softmax(b, x, "softmax");
  return sn_builder_finish(b, NULL, err);
}
