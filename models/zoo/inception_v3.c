/* Inception-v3: Szegedy et al., "Rethinking the Inception architecture for computer vision", CVPR 2016, figures 5 to 7
 * and 10, in the released form, whose filter counts the paper does not print (its table 1 is a sketch). Without the
 * auxiliary classifier. 299x299x3 images, 23 834 568 parameters.
 *
 *   stem 35x35x192 - 3 x A - reduction A 17x17x768 - 4 x B - reduction B 8x8x1280 - 2 x C - pool - dropout 0.5 - fc
 *
 * Branches stand in the order of the release: 1x1 first, pool last. Where branches of C part once more, the CONCAT
 * takes both ends.
 *
 * Names: stem/conv1-5, stem/pool1-2, inception_a1-3, reduction_a, inception_b1-4, reduction_b, inception_c1-2, pool,
 * drop, fc (mixed_5b to mixed_7c of the release); inside a block as in models/zoo/inception.h.
 */
#include "models/zoo/inception.h"
#include "models/zoo/zoo_internal.h"

static const sn__branch stem = {{32, 3, 3, SN__V2}, {32, 3, 3, SN__V},  {64, 3, 3},        {0, 3, 3, SN__MAX},
                                {80, 1, 1},         {192, 3, 3, SN__V}, {0, 3, 3, SN__MAX}};

/* figure 5, one branch with a 5x5: 35x35 */
static uint32_t inception_a(sn_builder *b, uint32_t x, unsigned n, uint32_t pooled) {
  const sn__branch rows[] = {
      {{64, 1, 1}},
      {{48, 1, 1}, {64, 5, 5}},
      {{64, 1, 1}, {96, 3, 3}, {96, 3, 3}},
      {{0, 3, 3, SN__AVERAGE}, {pooled, 1, 1}},
  };
  return sn__inception_nth(b, x, rows, 4, "inception_a", n);
}

/* figure 10: 35x35 to 17x17 */
static const sn__branch reduction_a[] = {
    {{384, 3, 3, SN__V2}},
    {{64, 1, 1}, {96, 3, 3}, {96, 3, 3, SN__V2}},
    {{0, 3, 3, SN__MAX}},
};

/* figure 6 with n = 7: 17x17 */
static uint32_t inception_b(sn_builder *b, uint32_t x, unsigned n, uint32_t c) {
  const sn__branch rows[] = {
      {{192, 1, 1}},
      {{c, 1, 1}, {c, 1, 7}, {192, 7, 1}},
      {{c, 1, 1}, {c, 7, 1}, {c, 1, 7}, {c, 7, 1}, {192, 1, 7}},
      {{0, 3, 3, SN__AVERAGE}, {192, 1, 1}},
  };
  return sn__inception_nth(b, x, rows, 4, "inception_b", n);
}

/* 17x17 to 8x8 */
static const sn__branch reduction_b[] = {
    {{192, 1, 1}, {320, 3, 3, SN__V2}},
    {{192, 1, 1}, {192, 1, 7}, {192, 7, 1}, {192, 3, 3, SN__V2}},
    {{0, 3, 3, SN__MAX}},
};

/* figure 7: 8x8 */
static const sn__branch inception_c[] = {
    {{320, 1, 1}},
    {{384, 1, 1}, {384, 1, 3, SN__SPLIT}},
    {{448, 1, 1}, {384, 3, 3}, {384, 1, 3, SN__SPLIT}},
    {{0, 3, 3, SN__AVERAGE}, {192, 1, 1}},
};

static uint32_t blocks(sn_builder *b, uint32_t x) {
  static const uint32_t pooled[] = {32, 64, 64}, width[] = {128, 160, 160, 192};
  for (unsigned i = 1; i <= 3; i++) x = inception_a(b, x, i, pooled[i - 1]);
  x = sn__inception_block(b, x, reduction_a, 3, "reduction_a");
  for (unsigned i = 1; i <= 4; i++) x = inception_b(b, x, i, width[i - 1]);
  x = sn__inception_block(b, x, reduction_b, 3, "reduction_b");
  for (unsigned i = 1; i <= 2; i++) x = sn__inception_nth(b, x, inception_c, 4, "inception_c", i);
  return x;
}

sn_net *sn__zoo_inception_v3(const sn_zoo_entry *entry, uint32_t batch, uint32_t image, const char *parameters,
                             sn_err *err) {
  sn_builder *b = sn__zoo_begin(entry, batch, 3, image, parameters, err);
  uint32_t x = sn__inception_chain(b, SN_DATA_LAYER, stem, "stem");
  sn__inception_end(b, blocks(b, x), 0.5);
  return sn_builder_finish(b, NULL, err);
}
