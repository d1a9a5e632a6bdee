/* Builds Inception blocks from the tables of inception_v3.c and inception_v4.c; see the header. Branches are declared
 * one after the other, so a depth-first route runs them in the order of the rows. */
#include "models/zoo/inception.h"

#include <stdio.h>

enum { CHANNELS, HEIGHT, WIDTH, MARK };
enum { NAME_ROOM = 64 };

static uint32_t convolve(sn_builder *b, uint32_t x, sn_conv conv, const char *prefix, unsigned n) {
  x = sn_build_conv(b, x, conv, "%sconv%u", prefix, n);
  x = sn_build_bn(b, x, "%sbn%u", prefix, n);
  return sn_build_relu(b, x, "%srelu%u", prefix, n);
}

static sn_conv padded(uint32_t channels, uint32_t height, uint32_t width) {
  return (sn_conv){.channels = channels,
                   .kernel = height,
                   .kernel_wide = width,
                   .pad = (height - 1) / 2,
                   .pad_wide = (width - 1) / 2,
                   .no_bias = true};
}

static sn_conv valid(uint32_t channels, uint32_t height, uint32_t width, uint32_t stride) {
  return (sn_conv){.channels = channels, .kernel = height, .kernel_wide = width, .stride = stride, .no_bias = true};
}

static sn_conv conv_of(const uint32_t *step) {
  if (step[MARK] == SN__V) return valid(step[CHANNELS], step[HEIGHT], step[WIDTH], 1);
  if (step[MARK] == SN__V2) return valid(step[CHANNELS], step[HEIGHT], step[WIDTH], 2);
  return padded(step[CHANNELS], step[HEIGHT], step[WIDTH]);
}

static sn_pooling pool_of(const uint32_t *step) {
  if (step[MARK] == SN__MAX) return (sn_pooling){.kernel = step[HEIGHT], .stride = 2};
  return (sn_pooling){.kernel = step[HEIGHT], .stride = 1, .pad = (step[HEIGHT] - 1) / 2, .average = true};
}

/* Returns the number of outputs: 1, or 2 behind a SPLIT. */
static unsigned run_branch(sn_builder *b, uint32_t x, const sn__branch steps, const char *prefix, uint32_t ends[2]) {
  unsigned convs = 0, pools = 0;
  for (unsigned i = 0; i < SN__MAX_STEPS && steps[i][HEIGHT]; i++) {
    const uint32_t *s = steps[i];
    if (s[MARK] == SN__SPLIT) {
      ends[0] = convolve(b, x, padded(s[CHANNELS], s[HEIGHT], s[WIDTH]), prefix, convs + 1);
      ends[1] = convolve(b, x, padded(s[CHANNELS], s[WIDTH], s[HEIGHT]), prefix, convs + 2);
      return 2;
    }
    if (s[CHANNELS] == 0)
      x = sn_build_pool(b, x, pool_of(s), "%spool%u", prefix, ++pools);
    else
      x = convolve(b, x, conv_of(s), prefix, ++convs);
  }
  ends[0] = x;
  return 1;
}

uint32_t sn__inception_chain(sn_builder *b, uint32_t x, const sn__branch steps, const char *block) {
  char prefix[NAME_ROOM];
  uint32_t ends[2];
  snprintf(prefix, sizeof prefix, "%s/", block);
  run_branch(b, x, steps, prefix, ends);
  return ends[0];
}

uint32_t sn__inception_block(sn_builder *b, uint32_t x, const sn__branch *branches, unsigned count, const char *block) {
  uint32_t outputs[2 * SN__MAX_BRANCHES];
  uint32_t n_outputs = 0;
  for (unsigned i = 0; i < count && i < SN__MAX_BRANCHES; i++) {
    char prefix[NAME_ROOM];
    snprintf(prefix, sizeof prefix, "%s/b%u_", block, i + 1);
    n_outputs += run_branch(b, x, branches[i], prefix, outputs + n_outputs);
  }
  return sn_build_concat(b, outputs, n_outputs, "%s/concat", block);
}

uint32_t sn__inception_nth(sn_builder *b, uint32_t x, const sn__branch *branches, unsigned count, const char *kind,
                           unsigned n) {
  char block[NAME_ROOM];
  snprintf(block, sizeof block, "%s%u", kind, n);
  return sn__inception_block(b, x, branches, count, block);
}

void sn__inception_end(sn_builder *b, uint32_t x, double dropout) {
  x = sn_build_pool(b, x, (sn_pooling){.average = true, .global = true}, "pool");
  x = sn_build_dropout(b, x, dropout, "drop");
  x = sn_build_fc(b, x, 1000, "fc");
  sn_build_softmax(b, x, "softmax");
}
