/* Batches from a labelled image set. Each epoch goes through the images in a random order of its own, in whole batches:
 * those that are left over at its end, fewer than a batch, wait for another epoch. The order is a counter-based
 * permutation (exec/data/random.h), so any batch can be made by itself, and nothing of it is kept in memory.
 *
 * The file is read through once at opening: to bring u8 pixels to mean 0 and variance 1 by channel, or to see that all
 * f32 pixels, which are taken as they are, are finite numbers. */
#include "exec/data/batch_source.h"
#include "exec/data/image_set.h"
#include "exec/data/little.h"
#include "exec/data/random.h"

#include "base/utf8.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct image_source {
  char *path;
  sn__image_set set;
  uint64_t order; /* the key of the epochs' orders */
  uint32_t batch;
  uint8_t *raw;        /* one image as it lies in the file */
  float *mean, *scale; /* per channel; u8 only */
} image_source;

/* -- pixels ------------------------------------------------------------------------------------------------------ */

static void convert_u8(const image_source *s, float *to) {
  const uint8_t *from = s->raw;
  uint64_t plane = (uint64_t)s->set.h * s->set.w;
  for (uint32_t c = 0; c < s->set.c; c++, from += plane, to += plane) {
    float mean = s->mean[c], scale = s->scale[c];
    for (uint64_t i = 0; i < plane; i++) to[i] = ((float)from[i] - mean) * scale;
  }
}

static void convert_f32(const image_source *s, float *to) {
  for (uint64_t i = 0; i < s->set.image_bytes / 4; i++) to[i] = sn__little_float(s->raw + 4 * i);
}

/* -- the pass at opening ----------------------------------------------------------------------------------------- */

static sn_status check_finite(const image_source *s, sn_err *err) {
  for (uint64_t image = 0; image < s->set.count; image++) {
    if (sn__image_set_read(&s->set, image, s->raw, err) != SN_OK) return err->code;
    for (uint64_t i = 0; i < s->set.image_bytes / 4; i++)
      if (!isfinite(sn__little_float(s->raw + 4 * i)))
        return sn_fail(err, SN_BAD_INPUT, "%.300s: pixel %" PRIu64 " of image %" PRIu64 " (from 0) is not finite",
                       s->path, i, image);
  }
  return SN_OK;
}

typedef struct sums {
  uint64_t pixels, squares; /* exact: a file of 2^48 bytes does not reach 2^64 */
} sums;

static void add_image(const image_source *s, sums *of) {
  const uint8_t *from = s->raw;
  uint64_t plane = (uint64_t)s->set.h * s->set.w;
  for (uint32_t c = 0; c < s->set.c; c++, from += plane)
    for (uint64_t i = 0; i < plane; i++) {
      of[c].pixels += from[i];
      of[c].squares += (uint64_t)from[i] * from[i];
    }
}

/* A channel of one value everywhere becomes 0. */
static void normalise(image_source *s, const sums *of) {
  double n = (double)s->set.count * (double)s->set.h * (double)s->set.w;
  for (uint32_t c = 0; c < s->set.c; c++) {
    double mean = (double)of[c].pixels / n, variance = (double)of[c].squares / n - mean * mean;
    s->mean[c] = (float)mean;
    s->scale[c] = variance > 0 ? (float)(1 / sqrt(variance)) : 1;
  }
}

static sn_status measure(image_source *s, sn_err *err) {
  sums *of = calloc(s->set.c, sizeof *of);
  s->mean = calloc(s->set.c, sizeof *s->mean);
  s->scale = calloc(s->set.c, sizeof *s->scale);
  if (!of || !s->mean || !s->scale) sn_fail_memory(err);
  for (uint64_t image = 0; image < s->set.count && err->code == SN_OK; image++)
    if (sn__image_set_read(&s->set, image, s->raw, err) == SN_OK) add_image(s, of);
  if (err->code == SN_OK) normalise(s, of);
  free(of);
  return err->code;
}

/* -- does the set go with the net? ------------------------------------------------------------------------------- */

static sn_status check_images(const image_source *s, const sn_net *net, sn_err *err) {
  const sn__image_set *set = &s->set;
  sn_shape want = net->layers[0].out;
  char advice[80] = "no option changes that";
  if (set->c == want.c && set->h == want.h && set->w == want.w) return SN_OK;
  if (set->c == want.c && set->h == set->w)
    snprintf(advice, sizeof advice, "--image %" PRIu32 " makes a net of the zoo take these", set->h);
  return sn_fail(err, SN_BAD_INPUT,
                 "%.300s: its images are %" PRIu32 "x%" PRIu32 "x%" PRIu32 " (channels, height, width), %.60s takes "
                 "%" PRIu32 "x%" PRIu32 "x%" PRIu32 "; %s",
                 s->path, set->c, set->h, set->w, net->name, want.c, want.h, want.w, advice);
}

static sn_status check_labels(const image_source *s, const sn_net *net, sn_err *err) {
  uint32_t classes = sn__class_count(net);
  for (uint64_t i = 0; i < s->set.count; i++)
    if ((uint32_t)s->set.labels[i] >= classes)
      return sn_fail(err, SN_BAD_INPUT,
                     "%.300s: image %" PRIu64 " (from 0) has label %" PRId32 ", %.60s has classes 0 to %" PRIu32,
                     s->path, i, s->set.labels[i], net->name, classes - 1);
  return SN_OK;
}

/* What a net wants that no set has, with its one label an image; NULL: nothing. */
static const char *more_wanted(const sn_net *net) {
  if (net->values[0].dtype == SN_I64) return "takes tokens";
  if (sn__class_count(net) == 0) return "has no classes but a mean square for its loss";
  return net->label_bytes > (uint64_t)net->batch * sizeof(int32_t) ? "wants a label a position" : NULL;
}

static sn_status check_net(const image_source *s, const sn_net *net, sn_err *err) {
  if (more_wanted(net))
    return sn_fail(
        err, SN_BAD_INPUT,
        "%.300s: is an image set with a label an image, and %.60s %s; leave --data out for a synthetic batch", s->path,
        net->name, more_wanted(net));
  if (check_images(s, net, err) != SN_OK || check_labels(s, net, err) != SN_OK) return err->code;
  if (s->set.count < net->batch)
    return sn_fail(err, SN_BAD_INPUT, "%.300s: holds %" PRIu64 " images, fewer than one batch of %" PRIu32, s->path,
                   s->set.count, net->batch);
  return SN_OK;
}

/* -- the source -------------------------------------------------------------------------------------------------- */

static sn_status fill(void *self, uint64_t iteration, float *data, int32_t *labels, sn_err *err) {
  const image_source *s = self;
  uint64_t per_epoch = s->set.count / s->batch, first = iteration % per_epoch * s->batch;
  uint64_t key = sn__random_key(s->order, iteration / per_epoch);
  uint64_t floats = (uint64_t)s->set.c * s->set.h * s->set.w;
  if (sn__data_file_check_unchanged(&s->set.file, err) != SN_OK) return err->code;
  for (uint32_t i = 0; i < s->batch; i++, data += floats) {
    uint64_t image = sn__random_place(key, s->set.count, first + i);
    if (sn__image_set_read(&s->set, image, s->raw, err) != SN_OK) return err->code;
    s->set.pixel == SN__PIXEL_U8 ? convert_u8(s, data) : convert_f32(s, data);
    labels[i] = s->set.labels[image];
  }
  return SN_OK;
}

static void close_source(void *self) {
  image_source *s = self;
  sn__image_set_close(&s->set);
  free(s->path);
  free(s->raw);
  free(s->mean);
  free(s->scale);
  free(s);
}

static void name_source(const image_source *s, char *name, size_t room) {
  const char *slash = strrchr(s->path, '/');
  snprintf(name, room, "%.100s (%" PRIu64 " images, %" PRIu32 " classes)", slash ? slash + 1 : s->path, s->set.count,
           s->set.classes);
  sn_utf8_clean(name);
}

static sn_status open_set(image_source *s, const char *path, const sn_net *net, sn_err *err) {
  s->path = strdup(path);
  if (!s->path) return sn_fail_memory(err);
  if (sn__image_set_open(s->path, &s->set, err) != SN_OK || check_net(s, net, err) != SN_OK) return err->code;
  s->raw = malloc(s->set.image_bytes);
  if (!s->raw) return sn_fail_memory(err);
  return s->set.pixel == SN__PIXEL_U8 ? measure(s, err) : check_finite(s, err);
}

sn_status sn__source_file(const char *path, const sn_net *net, uint64_t seed, sn__source *source, sn_err *err) {
  image_source *s = calloc(1, sizeof *s);
  if (!s) return sn_fail_memory(err);
  s->set.file = (sn__data_file)SN__DATA_FILE_INIT;
  s->batch = net->batch;
  s->order = sn__random_key(seed, SN__STREAM_ORDER);
  if (open_set(s, path, net, err) != SN_OK) {
    close_source(s);
    return err->code;
  }
  *source = (sn__source){.self = s, .fill = fill, .close = close_source};
  name_source(s, source->name, sizeof source->name);
  return SN_OK;
}
