/* Image sets; see the header. All forms are a header, whose sizes must add up to exactly the file's, and the images
 * one after another behind it. */
#include "exec/data/image_set.h"

#include "base/checked.h"
#include "exec/data/little.h"
#include "exec/data/npy.h"
#include "models/net/net.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t big(const uint8_t *b) {
  return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | (uint32_t)b[3];
}

/* A header that the file is too short for is filled up with zeros, which is no header of any form. */
static sn_status read_start(const sn__data_file *file, uint8_t *start, size_t bytes, sn_err *err) {
  memset(start, 0, bytes);
  return sn__data_file_read(file, 0, start, (size_t)sn_min(bytes, file->bytes), err);
}

static sn_status check_size(const sn__data_file *file, uint64_t expected, sn_err *err) {
  const char *path = file->path;
  if (file->bytes < expected)
    return sn_fail(err, SN_BAD_INPUT, "%.300s: is cut short: it has %" PRIu64 " bytes, by its header it needs %" PRIu64,
                   path, file->bytes, expected);
  if (file->bytes > expected)
    return sn_fail(err, SN_BAD_INPUT, "%.300s: has %" PRIu64 " bytes more than its header says", path,
                   file->bytes - expected);
  return SN_OK;
}

/* Fills in image_bytes. The pixels, behind `pixels_at`, must end where the file does. */
static sn_status check_shape(sn__image_set *s, sn_err *err) {
  const char *path = s->file.path;
  uint64_t pixel = s->pixel == SN__PIXEL_F32 ? 4 : 1, all;
  if (s->count == 0 || s->c == 0 || s->h == 0 || s->w == 0)
    return sn_fail(err, SN_BAD_INPUT, "%.300s: holds no images (%" PRIu64 " of %" PRIu32 "x%" PRIu32 "x%" PRIu32 ")",
                   path, s->count, s->c, s->h, s->w);
  if (s->c > SN_MAX_DIM || s->h > SN_MAX_DIM || s->w > SN_MAX_DIM ||
      !sn_mul(pixel * s->c, (uint64_t)s->h * s->w, &s->image_bytes) || !sn_mul(s->image_bytes, s->count, &all) ||
      !sn_add(s->pixels_at, all, &all))
    return sn_fail(err, SN_BAD_INPUT, "%.300s: %" PRIu64 " images of %" PRIu32 "x%" PRIu32 "x%" PRIu32 " are too many",
                   path, s->count, s->c, s->h, s->w);
  return check_size(&s->file, all, err);
}

/* -- snsim's form ------------------------------------------------------------------------------------------------ */

static const uint8_t own_magic[8] = {0x89, 'S', 'N', 'I', '\r', '\n', 0x1a, '\n'};
enum { OWN_HEADER = 40, OWN_VERSION = 1 };

static sn_status read_own_labels(sn__image_set *s, sn_err *err) {
  s->labels = malloc(s->count * sizeof *s->labels);
  if (!s->labels) return sn_fail_memory(err);
  if (sn__data_file_read(&s->file, OWN_HEADER, s->labels, s->count * sizeof *s->labels, err) != SN_OK) return err->code;
  for (uint64_t i = 0; i < s->count; i++) {
    uint32_t label = sn__little((const uint8_t *)&s->labels[i]);
    if (label >= s->classes)
      return sn_fail(err, SN_BAD_INPUT,
                     "%.300s: image %" PRIu64 " (from 0) has label %" PRIu32 ", the file has %" PRIu32 " classes",
                     s->file.path, i, label, s->classes);
    s->labels[i] = (int32_t)label;
  }
  return SN_OK;
}

static sn_status open_own(sn__image_set *s, sn_err *err) {
  uint8_t head[OWN_HEADER];
  if (read_start(&s->file, head, sizeof head, err) != SN_OK) return err->code;
  uint32_t version = sn__little(head + 8), pixel = sn__little(head + 12);
  if (s->file.bytes < OWN_HEADER) return check_size(&s->file, OWN_HEADER, err);
  if (version != OWN_VERSION)
    return sn_fail(err, SN_BAD_INPUT, "%.300s: is of version %" PRIu32 "; this snsim reads version %d", s->file.path,
                   version, OWN_VERSION);
  if (pixel != SN__PIXEL_U8 && pixel != SN__PIXEL_F32)
    return sn_fail(err, SN_BAD_INPUT, "%.300s: its pixel type is %" PRIu32 "; known are 1 (u8) and 2 (f32)",
                   s->file.path, pixel);
  s->pixel = (sn__pixel)pixel;
  s->count = sn__little_64(head + 16);
  s->c = sn__little(head + 24);
  s->h = sn__little(head + 28);
  s->w = sn__little(head + 32);
  s->classes = sn__little(head + 36);
  if (s->classes == 0 || s->classes > SN_MAX_DIM)
    return sn_fail(err, SN_BAD_INPUT, "%.300s: says it has %" PRIu32 " classes; it must be 1 to %u", s->file.path,
                   s->classes, SN_MAX_DIM);
  if (!sn_mul(s->count, sizeof *s->labels, &s->pixels_at) || !sn_add(s->pixels_at, OWN_HEADER, &s->pixels_at))
    return sn_fail(err, SN_BAD_INPUT, "%.300s: %" PRIu64 " images are too many", s->file.path, s->count);
  return check_shape(s, err) == SN_OK ? read_own_labels(s, err) : err->code;
}

/* -- MNIST's IDX: two zeros, the type of the numbers, how many sizes; the sizes, big-endian; the numbers ------------
 */

enum { IDX_U8 = 0x08, IDX_MOST_SIZES = 4 };

static bool is_idx(const uint8_t *start) {
  return start[0] == 0 && start[1] == 0 && start[2] >= IDX_U8 && start[3] > 0;
}

/* The last "images" of the file's name, or NULL. */
static const char *find_images(const char *path) {
  const char *slash = strrchr(path, '/'), *last = NULL;
  for (const char *at = strstr(slash ? slash : path, "images"); at; at = strstr(at + 1, "images")) last = at;
  return last;
}

/* That "images" becomes "labels", and an idx3 or idx4 behind it idx1. */
char *sn__image_set_labels(const char *path, sn_err *err) {
  const char *images = find_images(path);
  size_t room = strlen(path) + 1;
  if (!images) {
    sn_fail(err, SN_BAD_INPUT,
            "%.300s: its labels are looked for under its name with \"labels\" for \"images\", which this name does not "
            "hold; rename both",
            path);
    return NULL;
  }
  char *labels = malloc(room);
  if (!labels) {
    sn_fail_memory(err);
    return NULL;
  }
  snprintf(labels, room, "%.*slabels%s", (int)(images - path), path, images + strlen("images"));
  char *sizes = strstr(labels + (images - path), "idx3");
  if (!sizes) sizes = strstr(labels + (images - path), "idx4");
  if (sizes) sizes[3] = '1';
  return labels;
}

static sn_status take_label_bytes(sn__image_set *s, const sn__data_file *file, uint8_t *bytes, sn_err *err) {
  if (sn__data_file_read(file, 8, bytes, s->count, err) != SN_OK) return err->code;
  for (uint64_t i = 0; i < s->count; i++) {
    s->labels[i] = bytes[i];
    if (bytes[i] >= s->classes) s->classes = bytes[i] + 1u;
  }
  return SN_OK;
}

static sn_status read_idx_labels(sn__image_set *s, const sn__data_file *file, sn_err *err) {
  uint8_t head[8];
  if (read_start(file, head, sizeof head, err) != SN_OK) return err->code;
  if (!is_idx(head) || head[2] != IDX_U8 || head[3] != 1)
    return sn_fail(err, SN_BAD_INPUT, "%.300s: is no IDX file of labels (it must begin with the bytes 00 00 08 01)",
                   file->path);
  if (big(head + 4) != s->count)
    return sn_fail(err, SN_BAD_INPUT, "%.300s: has %" PRIu32 " labels for %" PRIu64 " images", file->path,
                   big(head + 4), s->count);
  if (check_size(file, sizeof head + s->count, err) != SN_OK) return err->code;
  uint8_t *bytes = malloc(s->count);
  s->labels = malloc(s->count * sizeof *s->labels);
  if (bytes && s->labels)
    take_label_bytes(s, file, bytes, err);
  else
    sn_fail_memory(err);
  free(bytes);
  return err->code;
}

typedef sn_status read_labels(sn__image_set *s, const sn__data_file *file, sn_err *err);

/* The labels lie beside the images. */
static sn_status open_labels(sn__image_set *s, read_labels *read, sn_err *err) {
  sn__data_file file;
  char *path = sn__image_set_labels(s->file.path, err);
  if (!path) return err->code;
  if (sn__data_file_open(path, &file, err) == SN_OK) {
    read(s, &file, err);
    sn__data_file_close(&file);
  } else {
    sn_err_prefix(err, "the labels");
  }
  free(path);
  return err->code;
}

static sn_status open_idx(sn__image_set *s, sn_err *err) {
  uint8_t head[4 + 4 * IDX_MOST_SIZES];
  if (read_start(&s->file, head, sizeof head, err) != SN_OK) return err->code;
  size_t sizes = head[3];
  if (sizes == 1) return sn_fail(err, SN_BAD_INPUT, "%.300s: holds labels; give the file of the images", s->file.path);
  if (head[2] != IDX_U8 || sizes < 3 || sizes > IDX_MOST_SIZES)
    return sn_fail(err, SN_BAD_INPUT,
                   "%.300s: holds numbers of type 0x%02x in %zu dimensions; read are bytes (0x08) in 3, or 4 "
                   "with channels",
                   s->file.path, head[2], sizes);
  s->pixel = SN__PIXEL_U8;
  s->count = big(head + 4);
  s->c = sizes == 4 ? big(head + 8) : 1;
  s->h = big(head + 4 * sizes - 4);
  s->w = big(head + 4 * sizes);
  s->pixels_at = 4 + 4 * sizes;
  if (s->file.bytes < s->pixels_at) return check_size(&s->file, s->pixels_at, err);
  return check_shape(s, err) == SN_OK ? open_labels(s, read_idx_labels, err) : err->code;
}

/* -- NumPy's arrays: images in one, labels in another -------------------------------------------------------------- */

/* The size of an array's numbers where they are of a type that is read, else 0. */
static uint64_t npy_bytes(const sn__npy *npy, const char *const *types, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (strcmp(npy->type, types[i]) == 0) return (uint64_t)(npy->type[2] - '0');
  return 0;
}

static int64_t npy_label(const uint8_t *b, uint64_t bytes) {
  return bytes == 1 ? b[0] : bytes == 4 ? (int32_t)sn__little(b) : (int64_t)sn__little_64(b);
}

static sn_status take_npy_labels(sn__image_set *s, const sn__data_file *file, const uint8_t *numbers, uint64_t bytes,
                                 sn_err *err) {
  for (uint64_t i = 0; i < s->count; i++) {
    int64_t label = npy_label(numbers + i * bytes, bytes);
    if (label < 0 || label >= SN_MAX_DIM)
      return sn_fail(err, SN_BAD_INPUT, "%.300s: image %" PRIu64 " (from 0) has label %" PRId64, file->path, i, label);
    s->labels[i] = (int32_t)label;
    if ((uint32_t)label >= s->classes) s->classes = (uint32_t)label + 1;
  }
  return SN_OK;
}

static sn_status read_npy_labels(sn__image_set *s, const sn__data_file *file, sn_err *err) {
  static const char *const types[] = {"|u1", "<i4", "<i8"};
  sn__npy npy;
  if (sn__npy_read(file, &npy, err) != SN_OK) return err->code;
  uint64_t bytes = npy_bytes(&npy, types, sizeof types / sizeof types[0]);
  if (bytes == 0 || npy.n_sizes != 1)
    return sn_fail(err, SN_BAD_INPUT, "%.300s: holds %.20s in %u dimensions; labels are |u1, <i4 or <i8 in 1",
                   file->path, npy.type, npy.n_sizes);
  if (npy.sizes[0] != s->count)
    return sn_fail(err, SN_BAD_INPUT, "%.300s: has %" PRIu64 " labels for %" PRIu64 " images", file->path, npy.sizes[0],
                   s->count);
  if (check_size(file, npy.at + s->count * bytes, err) != SN_OK) return err->code;
  uint8_t *numbers = malloc(s->count * bytes);
  s->labels = malloc(s->count * sizeof *s->labels);
  if (!numbers || !s->labels)
    sn_fail_memory(err);
  else if (sn__data_file_read(file, npy.at, numbers, s->count * bytes, err) == SN_OK)
    take_npy_labels(s, file, numbers, bytes, err);
  free(numbers);
  return err->code;
}

static sn_status take_npy_shape(sn__image_set *s, const sn__npy *npy, sn_err *err) {
  const uint64_t *sizes = npy->sizes;
  bool channels = npy->n_sizes == 4;
  s->count = sizes[0];
  const uint64_t image[3] = {channels ? sizes[1] : 1, sizes[channels ? 2 : 1], sizes[channels ? 3 : 2]};
  for (int i = 0; i < 3; i++)
    if (image[i] > SN_MAX_DIM)
      return sn_fail(err, SN_BAD_INPUT, "%.300s: images of %" PRIu64 "x%" PRIu64 "x%" PRIu64 " are too large",
                     s->file.path, image[0], image[1], image[2]);
  s->c = (uint32_t)image[0], s->h = (uint32_t)image[1], s->w = (uint32_t)image[2];
  s->pixels_at = npy->at;
  return check_shape(s, err);
}

static sn_status open_npy(sn__image_set *s, sn_err *err) {
  static const char *const types[] = {"|u1", "<f4"};
  sn__npy npy;
  if (sn__npy_read(&s->file, &npy, err) != SN_OK) return err->code;
  uint64_t bytes = npy_bytes(&npy, types, sizeof types / sizeof types[0]);
  if (bytes == 0 || npy.n_sizes < 3 || npy.n_sizes > 4)
    return sn_fail(err, SN_BAD_INPUT,
                   "%.300s: holds %.20s in %u dimensions; images are |u1 (bytes) or <f4 (float32) in 3 (image, row, "
                   "column), or 4 with channels behind the image",
                   s->file.path, npy.type, npy.n_sizes);
  s->pixel = bytes == 1 ? SN__PIXEL_U8 : SN__PIXEL_F32;
  return take_npy_shape(s, &npy, err) == SN_OK ? open_labels(s, read_npy_labels, err) : err->code;
}

/* -- any of them ------------------------------------------------------------------------------------------------------
 */

static sn_status open_form(sn__image_set *s, sn_err *err) {
  uint8_t start[sizeof own_magic];
  if (read_start(&s->file, start, sizeof start, err) != SN_OK) return err->code;
  if (memcmp(start, own_magic, sizeof start) == 0) return open_own(s, err);
  if (is_idx(start)) return open_idx(s, err);
  if (sn__npy_is(start)) return open_npy(s, err);
  if (start[0] == 0x1f && start[1] == 0x8b)
    return sn_fail(err, SN_BAD_INPUT, "%.300s: is compressed; unpack it, and its labels, first: gunzip --keep FILE",
                   s->file.path);
  return sn_fail(
      err, SN_BAD_INPUT,
      "%.300s: is no image set: it begins neither like MNIST's IDX files or NumPy's .npy nor like snsim's own form",
      s->file.path);
}

sn_status sn__image_set_open(const char *path, sn__image_set *set, sn_err *err) {
  *set = (sn__image_set){.file = SN__DATA_FILE_INIT};
  if (sn__data_file_open(path, &set->file, err) == SN_OK && open_form(set, err) == SN_OK) return SN_OK;
  sn__image_set_close(set);
  return err->code;
}

sn_status sn__image_set_read(const sn__image_set *set, uint64_t image, void *bytes, sn_err *err) {
  return sn__data_file_read(&set->file, set->pixels_at + image * set->image_bytes, bytes, set->image_bytes, err);
}

void sn__image_set_close(sn__image_set *set) {
  sn__data_file_close(&set->file);
  free(set->labels);
  set->labels = NULL;
}
