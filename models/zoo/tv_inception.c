/* torchvision's Inception-v3 (Szegedy et al., CVPR 2016) without the auxiliary classifier: as inception_v3.c, but where
 * a branch of the last two blocks parts, its two ends meet in a CONCAT of their own. 299x299x3 images, 23 834 568
 * parameters. (Its average pools count padding as zeros; ours leave it out, which changes values but no size.)
 *
 * Names are torchvision's paths of modules, "Mixed_5b.branch5x5_1.conv" with .bn and .relu; pools and CONCATs, which
 * have no module there, are "Mixed_5b.pool" and "Mixed_5b.cat".
 */
#include "models/zoo/zoo_internal.h"

/* CONV, BN and ReLU "<block>.<part>.conv", .bn, .relu; at the top `part` is "". */
static uint32_t basic(sn_builder *b, uint32_t x, const char *block, const char *part, sn_conv conv) {
  const char *dot = *part ? "." : "";
  conv.no_bias = true;
  x = sn_build_conv(b, x, conv, "%s%s%s.conv", block, dot, part);
  x = sn_build_bn(b, x, "%s%s%s.bn", block, dot, part);
  return sn_build_relu(b, x, "%s%s%s.relu", block, dot, part);
}

/* Padded to keep the size. */
static sn_conv same(uint32_t channels, uint32_t height, uint32_t width) {
  return (sn_conv){
      .channels = channels, .kernel = height, .kernel_wide = width, .pad = height / 2, .pad_wide = width / 2};
}

static sn_conv halve(uint32_t channels) {
  return (sn_conv){.channels = channels, .kernel = 3, .stride = 2};
}

static uint32_t max_pool(sn_builder *b, uint32_t x, const char *block) {
  return sn_build_pool(b, x, (sn_pooling){.kernel = 3, .stride = 2}, "%s.pool", block);
}

static uint32_t pool_branch(sn_builder *b, uint32_t x, const char *block, uint32_t channels) {
  x = sn_build_pool(b, x, (sn_pooling){.kernel = 3, .pad = 1, .average = true}, "%s.pool", block);
  return basic(b, x, block, "branch_pool", same(channels, 1, 1));
}

/* Mixed_5b to 5d, 35x35 */
static uint32_t block_a(sn_builder *b, uint32_t x, const char *block, uint32_t pooled) {
  uint32_t ends[4];
  ends[0] = basic(b, x, block, "branch1x1", same(64, 1, 1));
  ends[1] = basic(b, x, block, "branch5x5_1", same(48, 1, 1));
  ends[1] = basic(b, ends[1], block, "branch5x5_2", same(64, 5, 5));
  ends[2] = basic(b, x, block, "branch3x3dbl_1", same(64, 1, 1));
  ends[2] = basic(b, ends[2], block, "branch3x3dbl_2", same(96, 3, 3));
  ends[2] = basic(b, ends[2], block, "branch3x3dbl_3", same(96, 3, 3));
  ends[3] = pool_branch(b, x, block, pooled);
  return sn_build_concat(b, ends, 4, "%s.cat", block);
}

/* Mixed_6a, 35x35 to 17x17 */
static uint32_t block_b(sn_builder *b, uint32_t x, const char *block) {
  uint32_t ends[3];
  ends[0] = basic(b, x, block, "branch3x3", halve(384));
  ends[1] = basic(b, x, block, "branch3x3dbl_1", same(64, 1, 1));
  ends[1] = basic(b, ends[1], block, "branch3x3dbl_2", same(96, 3, 3));
  ends[1] = basic(b, ends[1], block, "branch3x3dbl_3", halve(96));
  ends[2] = max_pool(b, x, block);
  return sn_build_concat(b, ends, 3, "%s.cat", block);
}

/* Mixed_6b to 6e, 17x17 */
static uint32_t block_c(sn_builder *b, uint32_t x, const char *block, uint32_t c) {
  uint32_t ends[4];
  ends[0] = basic(b, x, block, "branch1x1", same(192, 1, 1));
  ends[1] = basic(b, x, block, "branch7x7_1", same(c, 1, 1));
  ends[1] = basic(b, ends[1], block, "branch7x7_2", same(c, 1, 7));
  ends[1] = basic(b, ends[1], block, "branch7x7_3", same(192, 7, 1));
  ends[2] = basic(b, x, block, "branch7x7dbl_1", same(c, 1, 1));
  ends[2] = basic(b, ends[2], block, "branch7x7dbl_2", same(c, 7, 1));
  ends[2] = basic(b, ends[2], block, "branch7x7dbl_3", same(c, 1, 7));
  ends[2] = basic(b, ends[2], block, "branch7x7dbl_4", same(c, 7, 1));
  ends[2] = basic(b, ends[2], block, "branch7x7dbl_5", same(192, 1, 7));
  ends[3] = pool_branch(b, x, block, 192);
  return sn_build_concat(b, ends, 4, "%s.cat", block);
}

/* Mixed_7a, 17x17 to 8x8 */
static uint32_t block_d(sn_builder *b, uint32_t x, const char *block) {
  uint32_t ends[3];
  ends[0] = basic(b, x, block, "branch3x3_1", same(192, 1, 1));
  ends[0] = basic(b, ends[0], block, "branch3x3_2", halve(320));
  ends[1] = basic(b, x, block, "branch7x7x3_1", same(192, 1, 1));
  ends[1] = basic(b, ends[1], block, "branch7x7x3_2", same(192, 1, 7));
  ends[1] = basic(b, ends[1], block, "branch7x7x3_3", same(192, 7, 1));
  ends[1] = basic(b, ends[1], block, "branch7x7x3_4", halve(192));
  ends[2] = max_pool(b, x, block);
  return sn_build_concat(b, ends, 3, "%s.cat", block);
}

/* Mixed_7b and 7c, 8x8 */
static uint32_t block_e(sn_builder *b, uint32_t x, const char *block) {
  uint32_t ends[4], parts[2], y;
  ends[0] = basic(b, x, block, "branch1x1", same(320, 1, 1));
  y = basic(b, x, block, "branch3x3_1", same(384, 1, 1));
  parts[0] = basic(b, y, block, "branch3x3_2a", same(384, 1, 3));
  parts[1] = basic(b, y, block, "branch3x3_2b", same(384, 3, 1));
  ends[1] = sn_build_concat(b, parts, 2, "%s.branch3x3.cat", block);
  y = basic(b, x, block, "branch3x3dbl_1", same(448, 1, 1));
  y = basic(b, y, block, "branch3x3dbl_2", same(384, 3, 3));
  parts[0] = basic(b, y, block, "branch3x3dbl_3a", same(384, 1, 3));
  parts[1] = basic(b, y, block, "branch3x3dbl_3b", same(384, 3, 1));
  ends[2] = sn_build_concat(b, parts, 2, "%s.branch3x3dbl.cat", block);
  ends[3] = pool_branch(b, x, block, 192);
  return sn_build_concat(b, ends, 4, "%s.cat", block);
}

static uint32_t stem(sn_builder *b) {
  const sn_pooling pool = {.kernel = 3, .stride = 2};
  uint32_t x = basic(b, SN_DATA_LAYER, "Conv2d_1a_3x3", "", halve(32));
  x = basic(b, x, "Conv2d_2a_3x3", "", (sn_conv){.channels = 32, .kernel = 3});
  x = basic(b, x, "Conv2d_2b_3x3", "", same(64, 3, 3));
  x = sn_build_pool(b, x, pool, "maxpool1");
  x = basic(b, x, "Conv2d_3b_1x1", "", same(80, 1, 1));
  x = basic(b, x, "Conv2d_4a_3x3", "", (sn_conv){.channels = 192, .kernel = 3});
  return sn_build_pool(b, x, pool, "maxpool2");
}

sn_net *sn__zoo_tv_inception_v3(const sn_zoo_entry *entry, uint32_t batch, uint32_t image, const char *parameters,
                                sn_err *err) {
  sn_builder *b = sn__zoo_begin(entry, batch, 3, image, parameters, err);
  uint32_t x = stem(b);
  x = block_a(b, x, "Mixed_5b", 32);
  x = block_a(b, x, "Mixed_5c", 64);
  x = block_a(b, x, "Mixed_5d", 64);
  x = block_b(b, x, "Mixed_6a");
  x = block_c(b, x, "Mixed_6b", 128);
  x = block_c(b, x, "Mixed_6c", 160);
  x = block_c(b, x, "Mixed_6d", 160);
  x = block_c(b, x, "Mixed_6e", 192);
  x = block_d(b, x, "Mixed_7a");
  x = block_e(b, x, "Mixed_7b");
  x = block_e(b, x, "Mixed_7c");
  x = sn_build_pool(b, x, (sn_pooling){.average = true, .global = true}, "avgpool");
  x = sn_build_dropout(b, x, 0.5, "dropout");
  x = sn_build_fc(b, x, 1000, "fc");
  sn_build_softmax(b, x, "softmax");
  return sn_builder_finish(b, NULL, err);
}
