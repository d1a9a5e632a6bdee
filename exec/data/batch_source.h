/* Sources of batches: what stands behind the prefetcher (exec/data/batch.c). A source fills a buffer with batch `i`,
 * from any thread but one at a time. Internal to exec/.
 *
 *   sn__source source = {0};
 *   if (sn__source_file("digits-images.idx", net, seed, &source, &err) == SN_OK) source.fill(source.self, 0, ...);
 *   sn__source_close(&source);
 */
#ifndef SN_EXEC_DATA_BATCH_SOURCE_H
#define SN_EXEC_DATA_BATCH_SOURCE_H

#include "base/err.h"
#include "models/net/net.h"

#include <stdint.h>

enum { SN__SOURCE_TEXT = 160 };

typedef struct sn__source {
  void *self;
  char name[SN__SOURCE_TEXT];
  /* Writes the images and labels, or targets, of one batch of the net. */
  sn_status (*fill)(void *self, uint64_t iteration, float *data, int32_t *labels, sn_err *err);
  void (*close)(void *self);
} sn__source;

/* Makers: on an error `source` stays as it was. */
sn_status sn__source_synthetic(const sn_net *net, uint64_t seed, sn__source *source, sn_err *err);
sn_status sn__source_file(const char *path, const sn_net *net, uint64_t seed, sn__source *source, sn_err *err);
/* Of no source, {0}, too. */
void sn__source_close(sn__source *source);

/* Labels are below this: the channels of the net's SOFTMAX layer, the fewest where it has several; 0: its losses are
 * mean squares, which have targets. */
uint32_t sn__class_count(const sn_net *net);

/* Streams of random numbers beyond the layers' own (exec/kernel/state.c). */
enum { SN__STREAM_PIXELS = 1 << 30, SN__STREAM_LABELS, SN__STREAM_ORDER };

#endif
