/* Batches; see the header. A thread of its own fills the next batch from the source (exec/data/batch_source.h) while
 * the current one is trained on. There are two buffers: batch `i` lies in buffer i % 2, so that it stays until batch i
 * + 1 is asked for, after which the thread writes batch i + 2 over it. */
#include "exec/data/batch.h"

#include "exec/data/batch_source.h"
#include "exec/data/image_set.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

typedef struct buffer {
  float *data;
  int32_t *labels;
  sn_batch batch;
} buffer;

struct sn_batches {
  sn__source source;
  uint64_t data_bytes, label_bytes; /* of a batch */
  buffer buffers[2];
  pthread_t thread;
  bool started; /* the thread, its lock and condition are there */
  pthread_mutex_t lock;
  pthread_cond_t changed;
  /* under the lock */
  uint64_t taken, filled; /* batches since the start or the last rewind; filled <= taken + 1 */
  bool filling, quit;
  sn_err failed; /* of batch `filled`; nothing is filled until it is cleared */
};

uint32_t sn__class_count(const sn_net *net) {
  uint32_t fewest = 0;
  for (uint32_t i = 0; i < net->n_layers; i++)
    if (net->layers[i].op == SN_SOFTMAX && sn_loss_is_of_classes(net->layers[i].attr->loss) &&
        (fewest == 0 || net->layers[i].out.c < fewest))
      fewest = net->layers[i].out.c;
  return fewest;
}

void sn__source_close(sn__source *source) {
  if (source->close) source->close(source->self);
  *source = (sn__source){0};
}

/* Called with the lock held, which it gives up while the source works. */
static void fill_next(sn_batches *b) {
  uint64_t iteration = b->filled;
  buffer *to = &b->buffers[iteration % 2];
  sn_err err = SN_ERR_INIT;
  b->filling = true;
  pthread_mutex_unlock(&b->lock);
  b->source.fill(b->source.self, iteration, to->data, to->labels, &err);
  pthread_mutex_lock(&b->lock);
  b->filling = false;
  b->failed = err;
  if (err.code == SN_OK) b->filled++;
  pthread_cond_broadcast(&b->changed);
}

static void *run(void *self) {
  sn_batches *b = self;
  pthread_mutex_lock(&b->lock);
  while (!b->quit) {
    if (b->filled <= b->taken && b->failed.code == SN_OK)
      fill_next(b);
    else
      pthread_cond_wait(&b->changed, &b->lock);
  }
  pthread_mutex_unlock(&b->lock);
  return NULL;
}

static sn_status make_buffers(sn_batches *b, sn_err *err) {
  for (buffer *to = b->buffers; to < b->buffers + 2; to++) {
    if (!to->data) to->data = malloc(b->data_bytes);
    if (!to->labels) to->labels = malloc(b->label_bytes);
    if (!to->data || !to->labels) return sn_fail_memory(err);
    to->batch = (sn_batch){to->data, to->labels};
  }
  return SN_OK;
}

/* Once; after an error it may be tried again. */
static sn_status start(sn_batches *b, sn_err *err) {
  if (b->started) return SN_OK;
  if (make_buffers(b, err) != SN_OK) return err->code;
  pthread_mutex_init(&b->lock, NULL);
  pthread_cond_init(&b->changed, NULL);
  b->started = pthread_create(&b->thread, NULL, run, b) == 0;
  if (b->started) return SN_OK;
  pthread_cond_destroy(&b->changed);
  pthread_mutex_destroy(&b->lock);
  return sn_fail(err, SN_NO_MEMORY, "the thread that prepares batches cannot be started");
}

static void stop(sn_batches *b) {
  if (!b->started) return;
  pthread_mutex_lock(&b->lock);
  b->quit = true;
  pthread_cond_broadcast(&b->changed);
  pthread_mutex_unlock(&b->lock);
  pthread_join(b->thread, NULL);
  pthread_cond_destroy(&b->changed);
  pthread_mutex_destroy(&b->lock);
}

/* Takes over a source. */
static sn_batches *make(const sn_net *net, sn__source *source, sn_err *err) {
  sn_batches *b = calloc(1, sizeof *b);
  if (b) {
    b->source = *source;
    b->data_bytes = net->data_bytes;
    b->label_bytes = net->label_bytes;
  } else {
    sn__source_close(source);
    sn_fail_memory(err);
  }
  return b;
}

sn_batches *sn_batches_synthetic(const sn_net *net, uint64_t seed, sn_err *err) {
  sn__source source;
  return sn__source_synthetic(net, seed, &source, err) == SN_OK ? make(net, &source, err) : NULL;
}

sn_batches *sn_batches_open(const char *path, const sn_net *net, uint64_t seed, sn_err *err) {
  sn__source source;
  return sn__source_file(path, net, seed, &source, err) == SN_OK ? make(net, &source, err) : NULL;
}

char *sn_batches_labels(const char *path) {
  sn_err none = SN_ERR_INIT;
  return sn__image_set_labels(path, &none);
}

const sn_batch *sn_batches_next(sn_batches *b, sn_err *err) {
  const sn_batch *batch = NULL;
  if (start(b, err) != SN_OK) return NULL;
  pthread_mutex_lock(&b->lock);
  while (b->filled == b->taken && b->failed.code == SN_OK) pthread_cond_wait(&b->changed, &b->lock);
  if (b->filled > b->taken)
    batch = &b->buffers[b->taken++ % 2].batch;
  else
    sn_fail(err, b->failed.code, "%s", b->failed.text);
  pthread_cond_broadcast(&b->changed);
  pthread_mutex_unlock(&b->lock);
  return batch;
}

/* Where nothing was taken yet, the first batch is ready or on its way. */
sn_status sn_batches_rewind(sn_batches *b, sn_err *err) {
  if (start(b, err) != SN_OK) return err->code;
  pthread_mutex_lock(&b->lock);
  if (b->taken > 0 || b->failed.code != SN_OK) {
    while (b->filling) pthread_cond_wait(&b->changed, &b->lock);
    b->taken = b->filled = 0;
    b->failed = (sn_err)SN_ERR_INIT;
    pthread_cond_broadcast(&b->changed);
  }
  pthread_mutex_unlock(&b->lock);
  return SN_OK;
}

void sn_batches_free(sn_batches *b) {
  if (!b) return;
  stop(b);
  for (buffer *each = b->buffers; each < b->buffers + 2; each++) {
    free(each->data);
    free(each->labels);
  }
  sn__source_close(&b->source);
  free(b);
}

const char *sn_batches_name(const sn_batches *b) {
  return b->source.name;
}
