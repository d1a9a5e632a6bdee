/* Inception-v4: Szegedy et al., "Inception-v4, Inception-ResNet and the impact of residual connections on learning",
 * AAAI 2017, figures 3 to 9. 299x299x3 images, 42 679 816 parameters.
 *
 *   stem 35x35x384 - 4 x A - reduction A 17x17x1024 - 7 x B - reduction B 8x8x1536 - 3 x C - pool - dropout 0.2 - fc
 *
 * Branches stand in the order of the figures, from left to right. Where two branches of figure 6 (C) part once more,
 * the CONCAT takes both ends; there is no inner CONCAT.
 *
 * Names: stem/conv1-3, stem_mix1-3, inception_a1-4, reduction_a, inception_b1-7, reduction_b, inception_c1-3, pool,
 * drop, fc; inside a block as in models/zoo/inception.h.
 */
#include "models/zoo/inception.h"
#include "models/zoo/zoo_internal.h"

/* figure 3, up to its first split, and its three filter concatenations */
static const sn__branch stem = {{32, 3, 3, SN__V2}, {32, 3, 3, SN__V}, {64, 3, 3}};
static const sn__branch stem_mix1[] = {{{0, 3, 3, SN__MAX}}, {{96, 3, 3, SN__V2}}};
static const sn__branch stem_mix2[] = {
    {{64, 1, 1}, {96, 3, 3, SN__V}},
    {{64, 1, 1}, {64, 7, 1}, {64, 1, 7}, {96, 3, 3, SN__V}},
};
static const sn__branch stem_mix3[] = {{{192, 3, 3, SN__V2}}, {{0, 3, 3, SN__MAX}}};

/* figure 4: 35x35 */
static const sn__branch inception_a[] = {
    {{0, 3, 3, SN__AVERAGE}, {96, 1, 1}},
    {{96, 1, 1}},
    {{64, 1, 1}, {96, 3, 3}},
    {{64, 1, 1}, {96, 3, 3}, {96, 3, 3}},
};

/* figure 7 with k, l, m, n of table 1: 35x35 to 17x17 */
static const sn__branch reduction_a[] = {
    {{0, 3, 3, SN__MAX}},
    {{384, 3, 3, SN__V2}},
    {{192, 1, 1}, {224, 3, 3}, {256, 3, 3, SN__V2}},
};

/* figure 5: 17x17 */
static const sn__branch inception_b[] = {
    {{0, 3, 3, SN__AVERAGE}, {128, 1, 1}},
    {{384, 1, 1}},
    {{192, 1, 1}, {224, 1, 7}, {256, 7, 1}},
    {{192, 1, 1}, {192, 1, 7}, {224, 7, 1}, {224, 1, 7}, {256, 7, 1}},
};

/* figure 8: 17x17 to 8x8 */
static const sn__branch reduction_b[] = {
    {{0, 3, 3, SN__MAX}},
    {{192, 1, 1}, {192, 3, 3, SN__V2}},
    {{256, 1, 1}, {256, 1, 7}, {320, 7, 1}, {320, 3, 3, SN__V2}},
};

/* figure 6: 8x8 */
static const sn__branch inception_c[] = {
    {{0, 3, 3, SN__AVERAGE}, {256, 1, 1}},
    {{256, 1, 1}},
    {{384, 1, 1}, {256, 1, 3, SN__SPLIT}},
    {{384, 1, 1}, {448, 1, 3}, {512, 3, 1}, {256, 3, 1, SN__SPLIT}},
};

sn_net *sn__zoo_inception_v4(const sn_zoo_entry *entry, uint32_t batch, uint32_t image, const char *parameters,
                             sn_err *err) {
  sn_builder *b = sn__zoo_begin(entry, batch, 3, image, parameters, err);
  uint32_t x = sn__inception_chain(b, SN_DATA_LAYER, stem, "stem");
  x = sn__inception_block(b, x, stem_mix1, 2, "stem_mix1");
  x = sn__inception_block(b, x, stem_mix2, 2, "stem_mix2");
  x = sn__inception_block(b, x, stem_mix3, 2, "stem_mix3");
  for (unsigned i = 1; i <= 4; i++) x = sn__inception_nth(b, x, inception_a, 4, "inception_a", i);
  x = sn__inception_block(b, x, reduction_a, 3, "reduction_a");
  for (unsigned i = 1; i <= 7; i++) x = sn__inception_nth(b, x, inception_b, 4, "inception_b", i);
  x = sn__inception_block(b, x, reduction_b, 3, "reduction_b");
  for (unsigned i = 1; i <= 3; i++) x = sn__inception_nth(b, x, inception_c, 4, "inception_c", i);
  sn__inception_end(b, x, 0.2);
  return sn_builder_finish(b, NULL, err);
}
