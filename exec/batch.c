/* Batches; see the header. Synthetic pixels and labels are counter-based random numbers (exec/random.h), a function of
 * seed and iteration. */
#include "exec/batch.h"

#include "exec/random.h"

#include <stdlib.h>

struct sn_batches {
  uint64_t seed, iteration; /* the next one */
  uint64_t n_data;          /* floats of a batch */
  uint32_t n_images, classes;
  float *data;
  int32_t *labels;
  sn_batch batch;
};

/* The channels of the net's first SOFTMAX. */
static uint32_t class_count(const sn_net *net) {
  for (uint32_t i = 0; i < net->n_layers; i++)
    if (net->layers[i].op == SN_SOFTMAX) return net->layers[i].out.c;
  return 1;
}

sn_batches *sn_batches_synthetic(const sn_net *net, uint64_t seed, sn_err *err) {
  sn_batches *b = calloc(1, sizeof *b);
  if (b) {
    *b = (sn_batches){
        .seed = seed, .n_data = net->data_bytes / sizeof(float), .n_images = net->batch, .classes = class_count(net)};
    b->data = calloc(b->n_data + 1, sizeof *b->data);
    b->labels = calloc(net->batch, sizeof *b->labels);
  }
  if (b && b->data && b->labels) return b;
  sn_batches_free(b);
  sn_fail_memory(err);
  return NULL;
}

/* Streams of numbers beyond the layers' own (exec/state.c). */
enum { STREAM_PIXELS = 1 << 30, STREAM_LABELS };

const sn_batch *sn_batches_next(sn_batches *b, sn_err *err) {
  (void)err;
  uint64_t pixels = sn__random_key(sn__random_key(b->seed, STREAM_PIXELS), b->iteration),
           labels = sn__random_key(sn__random_key(b->seed, STREAM_LABELS), b->iteration);
  for (uint64_t i = 0; i < b->n_data; i++) b->data[i] = sn__random_normal(pixels, i);
  for (uint32_t i = 0; i < b->n_images; i++) b->labels[i] = (int32_t)(sn__random(labels, i) % b->classes);
  b->iteration++;
  b->batch = (sn_batch){b->data, b->labels};
  return &b->batch;
}

sn_status sn_batches_rewind(sn_batches *b, sn_err *err) {
  (void)err;
  b->iteration = 0;
  return SN_OK;
}

void sn_batches_free(sn_batches *b) {
  if (!b) return;
  free(b->data);
  free(b->labels);
  free(b);
}

const char *sn_batches_name(const sn_batches *b) {
  (void)b;
  return "synthetic";
}

sn_batches *sn_batches_open(const char *path, const sn_net *net, uint64_t seed, sn_err *err) {
  (void)net, (void)seed;
  sn_fail(err, SN_BAD_INPUT, "%.300s: is of no form that this version of snsim reads", path);
  return NULL;
}
