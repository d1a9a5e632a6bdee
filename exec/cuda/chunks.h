/* CUDA module, internal: a layer's batch in chunks of images, each as large as cuDNN can count.
 *
 * cuDNN and cuBLAS count elements in int, so a tensor of 2^31 or more is refused. What is done image by image can be
 * done to some of the images just as well: every kernel runs over one chunk after another. Mostly there is a single
 * one, the whole batch.
 *
 *   for (uint32_t i = 0; i < cut->chunks; i++) {
 *     const sn__chunk at = sn__chunk_of(cut, i);
 *     cudnnActivationForward(.., at.x, x + at.x_at, .., at.y, y + at.y_at);
 *   }
 */
#ifndef SN_EXEC_CUDA_CHUNKS_H
#define SN_EXEC_CUDA_CHUNKS_H

#include "base/err.h"
#include "models/net/net.h"

#include <cudnn.h>

#include <limits.h>
#include <stdint.h>

/* The most elements of a tensor of several images. Tests are built with fewer, so that small networks are cut. */
#ifndef SN_CUDA_MOST_ELEMENTS
#define SN_CUDA_MOST_ELEMENTS INT_MAX
#endif

typedef struct sn__cut {
  uint32_t chunks;
  uint32_t images, last;              /* of every chunk but the last, and of that one */
  uint64_t x_image, y_image;          /* floats of an image of input 0, of the output */
  cudnnTensorDescriptor_t x[2], y[2]; /* of `images` images; of `last`, NULL where these are as many */
} sn__cut;

/* Some images; where they begin is counted in floats from where the tensor does. */
typedef struct sn__chunk {
  uint32_t first, images;
  uint64_t x_at, y_at, y_count;
  cudnnTensorDescriptor_t x, y;
} sn__chunk;

/* Two tensors of as many images, cut so that a chunk of either has at most `most` elements and begins at an address
 * aligned like the tensor's, or to 16 bytes. *cut is zeroed by the caller; sn__cut_close() after an error as well. */
sn_status sn__cut_open(sn__cut *cut, sn_shape x, sn_shape y, uint64_t most, sn_err *err);
void sn__cut_close(const sn__cut *cut);

sn__chunk sn__chunk_of(const sn__cut *cut, uint32_t index);

/* Of sums over the batch, how much of what is there stays: nothing of it when the first chunk's comes. */
static inline float sn__sum_beta(const sn__chunk *at) {
  return at->first > 0 ? 1 : 0;
}

/* Callers have checked that everything fits an int. */
sn_status sn__describe(cudnnTensorDescriptor_t *tensor, sn_shape shape, sn_err *err);

#endif
