/* Products of matrices and sums over rows; see the header. */
#include "sim/device/product.h"

#include "sim/device/conv.h"
#include "sim/device/device.h"

#include <math.h>
#include <stdbool.h>

/* Tensor cores of two bytes: a block makes so many rows by so many columns, and goes through terms by so many. What
 * hangs over is computed in vain. */
static const double tile = 64, step = 32;

/* Where operands lie in lengths that are no multiples of 8 elements of two bytes, 16 bytes cannot be read at once: other
 * kernels, which take so much longer. */
static const double unaligned = 2, aligned = 8;

/* A block of PyTorch's kernel has so many columns, and reads all of their rows. */
static const double columns_of_block = 32;

/* What a block of 512 threads reads of elements of four bytes, bytes/s: 8 KiB are on the way, which memory answers in a
 * third of a microsecond. */
static const double bytes_of_block = 25e9;

static double filled(double side, double by) {
  return ceil(side / by) * by;
}

static bool is_aligned(const sn_product *p) {
  return (p->rows_of_batch || fmod(p->rows, aligned) == 0) && fmod(p->columns, aligned) == 0 &&
         (p->terms_of_batch || fmod(p->terms, aligned) == 0);
}

static double bandwidth_of(const sn_device *d) {
  return d->memory_bandwidth * d->memory_efficiency;
}

/* Tiles of 64 by 64. */
static double tiles_of(const sn_product *p) {
  return ceil(p->rows / tile) * ceil(p->columns / tile) * p->count;
}

/* What is lost in the last wave, half of one; tiles that do not fill one are smaller ones. */
static double lost_of(double lost, double tiles) {
  return 1 + lost / fmax(tiles, 2 * lost);
}

/* What a rank's part loses in its last wave, of fewer tiles, beyond what all of the product does: rates are those of
 * products of one GPU, whose own loss is in them. A filter's gradient loses nothing: its terms, a batch's, are split
 * where its tiles are few. */
static double lost_in_part(const sn_device *device, const sn_product *p) {
  const double lost = sn_last_wave_tiles(device);
  return p->tiles > 0 && !p->terms_of_batch ? lost_of(lost, tiles_of(p)) / lost_of(lost, p->tiles) : 1;
}

double sn_product_seconds(const sn_device *device, const sn_arithmetic *how, const sn_product *p, double bytes) {
  const double rate = how->flops * how->share, moving = bytes / bandwidth_of(device);
  if (!how->tensor_cores || how->width >= 4 || device->tensor_feed == 0)
    return fmax(2 * p->rows * p->columns * p->terms * p->count / rate, moving);
  double flops = 2 * filled(p->rows, tile) * filled(p->columns, tile) * filled(p->terms, step) * p->count;
  return fmax(flops / rate * lost_in_part(device, p), moving) * (is_aligned(p) ? 1 : unaligned);
}

double sn_columns_seconds(const sn_device *device, double bytes, double columns, double width) {
  return fmax(bytes / bandwidth_of(device), sn_blocks_seconds(bytes, ceil(columns / columns_of_block), width));
}

double sn_blocks_seconds(double bytes, double blocks, double width) {
  return bytes / (blocks * bytes_of_block * width / 4);
}

static double positions_of(sn_shape s) {
  return (double)s.h * s.w;
}

/* Forward, and backward the gradients of its first and second factor. */
static uint32_t of_factors(sn_product p, sn_pass pass, sn_product products[SN_MOST_PRODUCTS]) {
  products[0] = p;
  if (pass == SN_FORWARD) return 1;
  products[0] = (sn_product){
      .rows = p.rows, .columns = p.terms, .terms = p.columns, .count = p.count, .rows_of_batch = p.rows_of_batch};
  products[1] = (sn_product){
      .rows = p.terms, .columns = p.columns, .terms = p.rows, .count = p.count, .terms_of_batch = p.rows_of_batch};
  return 2;
}

/* Scores of queries and keys, then values by them; each backward like a product of factors. Of what moves they have
 * queries, keys and values, and the scores once each. */
static uint32_t of_attention(const sn_layer *layer, sn_pass pass, double ranks, double *bytes,
                             sn_product products[SN_MOST_PRODUCTS]) {
  const sn_attr *a = layer->attr;
  const double all = positions_of(layer->out), seen = a->keys > 0 ? a->keys : all;
  const double side = (double)a->window * a->window, head = (double)layer->out.c / a->heads;
  const sn_product scores = {.rows = a->window > 0 ? side : all,
                             .columns = a->window > 0 ? side : seen,
                             .terms = head,
                             .count = (double)layer->out.n * a->heads * (a->window > 0 ? all / side : 1) / ranks};
  const sn_product values = {.rows = scores.rows, .columns = head, .terms = scores.columns, .count = scores.count};
  uint32_t count = of_factors(scores, pass, products);
  count += of_factors(values, pass, products + count);
  const double operands = scores.count * (2 * scores.rows + 2 * scores.columns) * head;
  const uint32_t pairs = count / 2;
  *bytes = fmin(*bytes, 2 * (pairs * operands + count * scores.count * scores.rows * scores.columns));
  return count;
}

/* Of a rank heads are divided, and an FC's outputs or inputs. */
static uint32_t of_part(const sn_layer *layer, sn_pass pass, sn_product_part part, double *bytes,
                        sn_product products[SN_MOST_PRODUCTS]) {
  const sn_shape out = layer->out;
  const double ranks = part.ranks > 1 ? part.ranks : 1;
  if (pass == SN_UPDATE) return 0;
  if (layer->op == SN_ATTENTION) return layer->attr->parts ? of_attention(layer, pass, ranks, bytes, products) : 0;
  if (layer->op != SN_FC && layer->op != SN_MATMUL) return 0;
  const bool factors = layer->op == SN_MATMUL;
  sn_product p = {.rows = factors ? out.h : out.n * positions_of(out),
                  .columns = factors ? out.w : out.c,
                  .count = factors ? (double)out.n * out.c : 1,
                  .rows_of_batch = !factors};
  p.terms = (double)layer->macs / (p.rows * p.columns * p.count);
  if (part.split == SN_BY_OUTPUTS) p.columns /= ranks;
  if (part.split == SN_BY_INPUTS) p.terms /= ranks;
  return of_factors(p, pass, products);
}

uint32_t sn_products_of(const sn_layer *layer, sn_pass pass, sn_product_part part, double *bytes,
                        sn_product products[SN_MOST_PRODUCTS]) {
  sn_product whole[SN_MOST_PRODUCTS];
  double all = *bytes;
  uint32_t count = of_part(layer, pass, part, bytes, products);
  if (part.ranks <= 1) return count;
  of_part(layer, pass, (sn_product_part){0}, &all, whole);
  for (uint32_t i = 0; i < count; i++) products[i].tiles = tiles_of(&whole[i]);
  return count;
}
