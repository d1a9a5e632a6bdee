/* Inception-BN: Ioffe and Szegedy, "Batch normalization", ICML 2015, figure 5, as MXNet's examples build it
 * (symbol_inception-bn.py): convolutions keep their bias beside batch normalisation. It is the network of MXNet's note
 * on memory. 224x224x3 images, 11 295 240 parameters.
 *
 * Names as there: conv_3a_1x1 with bn_ and relu_, avg_pool_3a_pool, ch_concat_3a_chconcat, global_avg, fc1.
 */
#include "models/zoo/zoo_internal.h"

/* CONV, BN and ReLU "<kind>_<block><part>". */
static uint32_t factory(sn_builder *b, uint32_t x, const char *block, const char *part, sn_conv conv) {
  x = sn_build_conv(b, x, conv, "conv_%s%s", block, part);
  x = sn_build_bn(b, x, "bn_%s%s", block, part);
  return sn_build_relu(b, x, "relu_%s%s", block, part);
}

static sn_conv one(uint32_t channels) {
  return (sn_conv){.channels = channels, .kernel = 1};
}
static sn_conv three(uint32_t channels, uint32_t stride) {
  return (sn_conv){.channels = channels, .kernel = 3, .stride = stride, .pad = 1};
}

/* Channels of a block: 1x1, then reduced and full of the 3x3 and of the double 3x3, then those of the pool's 1x1. */
typedef struct widths {
  uint32_t direct, reduce, full, double_reduce, double_full, pooled;
} widths;

static uint32_t branch_3x3(sn_builder *b, uint32_t x, const char *block, const widths *w, uint32_t stride) {
  x = factory(b, x, block, "_3x3_reduce", one(w->reduce));
  return factory(b, x, block, "_3x3", three(w->full, stride));
}

static uint32_t branch_double(sn_builder *b, uint32_t x, const char *block, const widths *w, uint32_t stride) {
  x = factory(b, x, block, "_double_3x3_reduce", one(w->double_reduce));
  x = factory(b, x, block, "_double_3x3_0", three(w->double_full, 1));
  return factory(b, x, block, "_double_3x3_1", three(w->double_full, stride));
}

/* Keeps the image's size. */
static uint32_t block_a(sn_builder *b, uint32_t x, const char *block, bool average, widths w) {
  uint32_t ends[4];
  ends[0] = factory(b, x, block, "_1x1", one(w.direct));
  ends[1] = branch_3x3(b, x, block, &w, 1);
  ends[2] = branch_double(b, x, block, &w, 1);
  ends[3] = sn_build_pool(b, x, (sn_pooling){.kernel = 3, .pad = 1, .average = average}, "%s_pool_%s_pool",
                          average ? "avg" : "max", block);
  ends[3] = factory(b, ends[3], block, "_proj", one(w.pooled));
  return sn_build_concat(b, ends, 4, "ch_concat_%s_chconcat", block);
}

/* Halves it. */
static uint32_t block_b(sn_builder *b, uint32_t x, const char *block, widths w) {
  uint32_t ends[3];
  ends[0] = branch_3x3(b, x, block, &w, 2);
  ends[1] = branch_double(b, x, block, &w, 2);
  ends[2] = sn_build_pool(b, x, (sn_pooling){.kernel = 3, .stride = 2, .pad = 1}, "max_pool_%s_pool", block);
  return sn_build_concat(b, ends, 3, "ch_concat_%s_chconcat", block);
}

sn_net *sn__zoo_inception_bn(const sn_zoo_entry *entry, uint32_t batch, uint32_t image, const char *parameters,
                             sn_err *err) {
  sn_builder *b = sn__zoo_begin(entry, batch, 3, image, parameters, err);
  const sn_pooling halve = {.kernel = 3, .stride = 2};
  uint32_t x = factory(b, SN_DATA_LAYER, "conv1", "", (sn_conv){.channels = 64, .kernel = 7, .stride = 2, .pad = 3});
  x = sn_build_pool(b, x, halve, "pool1");
  x = factory(b, x, "conv2red", "", one(64));
  x = factory(b, x, "conv2", "", three(192, 1));
  x = sn_build_pool(b, x, halve, "pool2");
  x = block_a(b, x, "3a", true, (widths){64, 64, 64, 64, 96, 32});
  x = block_a(b, x, "3b", true, (widths){64, 64, 96, 64, 96, 64});
  x = block_b(b, x, "3c", (widths){0, 128, 160, 64, 96, 0});
  x = block_a(b, x, "4a", true, (widths){224, 64, 96, 96, 128, 128});
  x = block_a(b, x, "4b", true, (widths){192, 96, 128, 96, 128, 128});
  x = block_a(b, x, "4c", true, (widths){160, 128, 160, 128, 160, 128});
  x = block_a(b, x, "4d", true, (widths){96, 128, 192, 160, 192, 128});
  x = block_b(b, x, "4e", (widths){0, 128, 192, 192, 256, 0});
  x = block_a(b, x, "5a", true, (widths){352, 192, 320, 160, 224, 128});
  x = block_a(b, x, "5b", false, (widths){352, 192, 320, 192, 224, 128});
  x = sn_build_pool(b, x, (sn_pooling){.average = true, .global = true}, "global_avg");
  x = sn_build_fc(b, x, 1000, "fc1");
  sn_build_softmax(b, x, "softmax");
  return sn_builder_finish(b, NULL, err);
}
