/* Times of products of matrices, and of sums over the rows of one; docs/cost-model.md has the constants. */
#ifndef SN_SIM_DEVICE_PRODUCT_H
#define SN_SIM_DEVICE_PRODUCT_H

#include "models/net/net.h"
#include "sim/device/external.h"
#include "sim/graph/mesh.h"
#include "sim/graph/route.h"

#include <stdbool.h>
#include <stdint.h>

/* rows x terms by terms x columns, `count` times. What is of a batch is no length in which an operand lies: a layer's
 * activations lie by their features, forward and back, and its filters. */
typedef struct sn_product {
  double rows, columns, terms, count;
  bool rows_of_batch, terms_of_batch;
  double tiles; /* of the product of which this is a rank's part; 0: it is no part */
} sn_product;

/* Which part of a layer one of several ranks does that tensor parallel divides it among. Zeroed: all of it. */
typedef struct sn_product_part {
  uint32_t ranks;
  sn_division split; /* of an FC */
} sn_product_part;

/* Seconds, without the launch. `bytes`: what it reads and writes. */
double sn_product_seconds(const sn_device *device, const sn_arithmetic *how, const sn_product *product, double bytes);

/* Seconds in which the backward of a layer norm sums up for its factors and shifts, reading `bytes` of rows of so many
 * columns, in elements of `width` bytes. */
double sn_columns_seconds(const sn_device *device, double bytes, double columns, double width);

/* Seconds in which so many blocks read `bytes` between them, elements of `width` bytes, whatever bandwidth there is: what
 * a block has on the way bounds it. */
double sn_blocks_seconds(double bytes, double blocks, double width);

/* What products of matrices a described layer's pass is made of where tensor cores of two bytes do them: FC, MATMUL and
 * ATTENTION in parts, in which kernels between them move something, too. Returns how many, 0 for others; *bytes is what
 * they move of the layer's `bytes`. */
enum { SN_MOST_PRODUCTS = 4 };
uint32_t sn_products_of(const sn_layer *layer, sn_pass pass, sn_product_part part, double *bytes,
                        sn_product products[SN_MOST_PRODUCTS]);

#endif
