/* Inception blocks as tables: one row per branch, one step per box of the paper's figure, so that inception_v3.c and
 * inception_v4.c read like the figures of their papers. As there, a convolution is padded to keep the image's size
 * unless marked V.
 *
 *   static const sn__branch inception_a[] = {
 *       {{0, 3, 3, SN__AVERAGE}, {96, 1, 1}},
 *       {{96, 1, 1}},
 *       {{64, 1, 1}, {96, 3, 3}},
 *       {{64, 1, 1}, {96, 3, 3}, {96, 3, 3}},
 *   };
 *   x = sn__inception_block(b, x, inception_a, 4, "inception_a1");
 *
 * A convolution is CONV without bias, BN and ReLU. Names: conv, bn, relu and pool, numbered along the branch, behind
 * the branch's own number: "inception_a1/b4_conv2"; "inception_a1/concat" ends a block.
 */
#ifndef SN_MODELS_ZOO_INCEPTION_H
#define SN_MODELS_ZOO_INCEPTION_H

#include "models/build/build.h"

enum { SN__MAX_STEPS = 7, SN__MAX_BRANCHES = 4 };

enum {
  SN__V = 1,   /* convolution without padding */
  SN__V2,      /* convolution without padding, stride 2 */
  SN__SPLIT,   /* height x width and width x height side by side, padded: ends a branch with two outputs */
  SN__MAX,     /* max pool without padding, stride 2 */
  SN__AVERAGE, /* average pool, padded to keep the size */
};

/* channels (0 for a pool), height, width, mark; the first with height 0 ends the branch */
typedef uint32_t sn__step[4];
typedef sn__step sn__branch[SN__MAX_STEPS];

/* Steps one behind the other, as the stems have; layers are named "<block>/conv1" and so on. No SN__SPLIT. */
uint32_t sn__inception_chain(sn_builder *b, uint32_t x, const sn__branch steps, const char *block);

/* Branches side by side on x, then a CONCAT of their outputs in the order of the rows. At most SN__MAX_BRANCHES. */
uint32_t sn__inception_block(sn_builder *b, uint32_t x, const sn__branch *branches, unsigned count, const char *block);

/* The same for the n-th of several blocks of a kind, named "<kind><n>". */
uint32_t sn__inception_nth(sn_builder *b, uint32_t x, const sn__branch *branches, unsigned count, const char *kind,
                           unsigned n);

/* The end of both networks: global average pool, dropout, fc 1000, softmax. */
void sn__inception_end(sn_builder *b, uint32_t x, double dropout);

#endif
