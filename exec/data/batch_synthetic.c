/* Synthetic batches: pixels, or tokens, and labels, or targets, are counter-based random numbers (exec/data/random.h),
 * a function of seed and iteration. */
#include "exec/data/batch_source.h"
#include "exec/data/random.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct synthetic {
  uint64_t seed, n_data, n_labels; /* pixels or tokens of a batch, and labels */
  uint32_t classes, vocabulary;    /* classes 0: labels are targets; vocabulary 0: it is of pixels */
} synthetic;

/* The fewest rows of a table that is looked up in; 0: none is. */
static uint32_t vocabulary_of(const sn_net *net) {
  uint32_t fewest = 0;
  for (uint32_t i = 0; i < net->n_layers; i++)
    if (net->layers[i].op == SN_EMBEDDING && (fewest == 0 || net->layers[i].attr->rows < fewest))
      fewest = net->layers[i].attr->rows;
  return fewest;
}

static sn_status fill(void *self, uint64_t iteration, float *data, int32_t *labels, sn_err *err) {
  const synthetic *s = self;
  (void)err;
  uint64_t pixel_key = sn__random_key(sn__random_key(s->seed, SN__STREAM_PIXELS), iteration),
           label_key = sn__random_key(sn__random_key(s->seed, SN__STREAM_LABELS), iteration);
  int64_t *tokens = (int64_t *)(void *)data;
  float *targets = (float *)(void *)labels;
  for (uint64_t i = 0; i < s->n_data && s->vocabulary > 0; i++)
    tokens[i] = (int64_t)(sn__random(pixel_key, i) % s->vocabulary);
  for (uint64_t i = 0; i < s->n_data && s->vocabulary == 0; i++) data[i] = sn__random_normal(pixel_key, i);
  for (uint64_t i = 0; i < s->n_labels && s->classes > 0; i++)
    labels[i] = (int32_t)(sn__random(label_key, i) % s->classes);
  for (uint64_t i = 0; i < s->n_labels && s->classes == 0; i++) targets[i] = sn__random_normal(label_key, i);
  return SN_OK;
}

sn_status sn__source_synthetic(const sn_net *net, uint64_t seed, sn__source *source, sn_err *err) {
  synthetic *s = calloc(1, sizeof *s);
  if (!s) return sn_fail_memory(err);
  const uint32_t vocabulary = vocabulary_of(net);
  *s = (synthetic){.seed = seed,
                   .n_data = net->data_bytes / (vocabulary > 0 ? sizeof(int64_t) : sizeof(float)),
                   .n_labels = net->label_bytes / sizeof(int32_t),
                   .classes = sn__class_count(net),
                   .vocabulary = vocabulary};
  *source = (sn__source){.self = s, .fill = fill, .close = free};
  snprintf(source->name, sizeof source->name, "synthetic");
  return SN_OK;
}
