/* Batches: where images and labels come from, one batch an iteration. Synthetic ones are drawn from a seed; a file's
 * are read in an order that the seed shuffles anew each epoch (docs/data.md has the forms of files). A thread of its
 * own prepares the next batch while the current one is trained on, so two are in memory.
 *
 *   sn_batches *source = sn_batches_synthetic(net, seed, &err);     or sn_batches_open(path, net, seed, &err)
 *   const sn_batch *batch = sn_batches_next(source, &err);          valid until the next call
 *   sn_batches_rewind(source, &err);                                batch 0 comes next, and the same batches again
 *   sn_batches_free(source);
 *
 * Batch `i` is a function of source, seed and i alone, so that every strategy trains on the same images.
 */
#ifndef SN_EXEC_DATA_BATCH_H
#define SN_EXEC_DATA_BATCH_H

#include "base/err.h"
#include "models/net/net.h"

#include <stdint.h>

typedef struct sn_batch {
  const float *data;     /* n c h w of the net's DATA; of a net of tokens 64-bit numbers lie there */
  const int32_t *labels; /* one class an image, or a position where the net's loss is of each; of a net whose loss is a
                          * mean square floats lie there, a target for each number that goes into it */
} sn_batch;

typedef struct sn_batches sn_batches;

/* Pixels with mean 0 and variance 1, or tokens evenly from the vocabulary; labels evenly from the net's classes, or
 * targets with mean 0 and variance 1. The net's losses are of one kind. */
sn_batches *sn_batches_synthetic(const sn_net *net, uint64_t seed, sn_err *err);

/* A labelled image set, which is read through once here and batch by batch later. SN_BAD_FILE, SN_BAD_INPUT with the
 * path: not a known form, images of another shape than the net's, a label that is no class of the net, fewer images
 * than a batch; a net of tokens, with a label a position, or without classes. */
sn_batches *sn_batches_open(const char *path, const sn_net *net, uint64_t seed, sn_err *err);

/* The second file of a set whose labels lie beside its images, by the name of the first; to be freed. NULL where the
 * name tells of none. */
char *sn_batches_labels(const char *path);

/* The buffers and the thread are made by the first of these calls: SN_NO_MEMORY. next(): SN_BAD_FILE where the file
 * cannot be read any more or was changed, until a rewind finds it otherwise. */
const sn_batch *sn_batches_next(sn_batches *source, sn_err *err);
sn_status sn_batches_rewind(sn_batches *source, sn_err *err);
void sn_batches_free(sn_batches *source);

/* "synthetic", "digits-images.idx (6000 images, 10 classes)" */
const char *sn_batches_name(const sn_batches *source);

#endif
