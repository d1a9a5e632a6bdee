/* Synthetic batches: pixels and labels are counter-based random numbers (exec/data/random.h), a function of seed and
 * iteration. */
#include "exec/data/batch_source.h"
#include "exec/data/random.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct synthetic {
  uint64_t seed, n_data; /* floats of a batch */
  uint32_t n_images, classes;
} synthetic;

static sn_status fill(void *self, uint64_t iteration, float *data, int32_t *labels, sn_err *err) {
  const synthetic *s = self;
  (void)err;
  uint64_t pixel_key = sn__random_key(sn__random_key(s->seed, SN__STREAM_PIXELS), iteration),
           label_key = sn__random_key(sn__random_key(s->seed, SN__STREAM_LABELS), iteration);
  for (uint64_t i = 0; i < s->n_data; i++) data[i] = sn__random_normal(pixel_key, i);
  for (uint32_t i = 0; i < s->n_images; i++) labels[i] = (int32_t)(sn__random(label_key, i) % s->classes);
  return SN_OK;
}

sn_status sn__source_synthetic(const sn_net *net, uint64_t seed, sn__source *source, sn_err *err) {
  synthetic *s = calloc(1, sizeof *s);
  if (!s) return sn_fail_memory(err);
  *s = (synthetic){seed, net->data_bytes / sizeof(float), net->batch, sn__class_count(net)};
  *source = (sn__source){.self = s, .fill = fill, .close = free};
  snprintf(source->name, sizeof source->name, "synthetic");
  return SN_OK;
}
