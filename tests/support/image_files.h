/* For tests of image sets: a folder of their own, a small net, and files in all forms made of bytes that a test may
 * spoil before they are written.
 *
 *   image_file f = own_file(OWN_U8, 10, (sn_shape){.c = 1, .h = 2, .w = 3}, 4);
 *   put_u32_little(f.bytes + 8, 2);
 *   write_file(place, "a.sni", f.bytes, f.count);  free(f.bytes);
 */
#ifndef SN_TESTS_IMAGE_FILES_H
#define SN_TESTS_IMAGE_FILES_H

#include "exec/data/batch.h"
#include "models/build/build.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OWN_U8 = 1, OWN_F32 = 2, OWN_LABELS = 40, PATH_ROOM = 320 };

typedef struct place {
  char folder[32], path[PATH_ROOM];
} place;

static inline int make_place(void **state) {
  place *p = calloc(1, sizeof *p);
  *state = p;
  strcpy(p->folder, "/tmp/test_images.XXXXXX");
  return mkdtemp(p->folder) ? 0 : -1;
}

static inline const char *path_of(place *p, const char *name) {
  snprintf(p->path, sizeof p->path, "%s/%s", p->folder, name);
  return p->path;
}

static inline int remove_place(void **state) {
  place *p = *state;
  DIR *folder = opendir(p->folder);
  for (struct dirent *e; folder && (e = readdir(folder));)
    if (e->d_name[0] != '.') remove(path_of(p, e->d_name));
  if (folder) closedir(folder);
  int rc = rmdir(p->folder);
  free(p);
  return rc;
}

#define TEST_IN_PLACE(name) cmocka_unit_test_setup_teardown(name, make_place, remove_place)

static inline void write_file(place *p, const char *name, const void *bytes, size_t count) {
  FILE *out = fopen(path_of(p, name), "wb");
  assert_non_null(out);
  assert_int_equal(fwrite(bytes, 1, count, out), count);
  assert_int_equal(fclose(out), 0);
}

typedef struct image_file {
  uint8_t *bytes;
  size_t count;
} image_file;

static inline void put_little(uint8_t *to, uint32_t value) {
  for (int i = 0; i < 4; i++) to[i] = (uint8_t)(value >> 8 * i);
}

static inline void put_big(uint8_t *to, uint32_t value) {
  for (int i = 0; i < 4; i++) to[i] = (uint8_t)(value >> (24 - 8 * i));
}

/* What the files hold: image i has label i % classes; its pixel j is this byte, or as f32 exactly 1000 i + j. */
static inline uint8_t pixel_byte(uint32_t image, uint32_t j) {
  return (uint8_t)(image * 37 + j * j * 11 + image * j);
}

static inline image_file own_file(uint32_t pixel, uint32_t count, sn_shape shape, uint32_t classes) {
  uint32_t pixels = shape.c * shape.h * shape.w, size = pixel == OWN_F32 ? 4 : 1;
  const uint32_t header[8] = {1, pixel, count, 0, shape.c, shape.h, shape.w, classes};
  image_file f = {.count = OWN_LABELS + (size_t)count * (4 + pixels * size)};
  f.bytes = calloc(f.count + 1, 1);
  memcpy(f.bytes, "\x89SNI\r\n\x1a\n", 8);
  for (uint32_t i = 0; i < 8; i++) put_little(f.bytes + 8 + 4 * i, header[i]);
  uint8_t *to = f.bytes + OWN_LABELS + 4 * count;
  for (uint32_t i = 0; i < count; i++) {
    put_little(f.bytes + OWN_LABELS + 4 * i, i % classes);
    for (uint32_t j = 0; j < pixels; j++, to += size) {
      float value = (float)(1000 * i + j);
      uint32_t bits;
      memcpy(&bits, &value, sizeof bits);
      if (pixel == OWN_F32)
        put_little(to, bits);
      else
        *to = pixel_byte(i, j);
    }
  }
  return f;
}

/* Sizes: count, height and width, or count, channels, height and width where there are several channels. */
static inline image_file idx_images(uint32_t count, sn_shape shape) {
  uint32_t pixels = shape.c * shape.h * shape.w, n = shape.c > 1 ? 4 : 3;
  const uint32_t sizes[4] = {count, n == 4 ? shape.c : shape.h, n == 4 ? shape.h : shape.w, shape.w};
  image_file f = {.count = 4 + 4 * n + (size_t)count * pixels};
  f.bytes = calloc(f.count + 1, 1);
  f.bytes[2] = 8;
  f.bytes[3] = (uint8_t)n;
  for (uint32_t i = 0; i < n; i++) put_big(f.bytes + 4 + 4 * i, sizes[i]);
  for (uint32_t i = 0; i < count; i++)
    for (uint32_t j = 0; j < pixels; j++) f.bytes[4 + 4 * n + i * pixels + j] = pixel_byte(i, j);
  return f;
}

static inline image_file idx_labels(uint32_t count, uint32_t classes) {
  image_file f = {.count = 8 + (size_t)count};
  f.bytes = calloc(f.count + 1, 1);
  f.bytes[2] = 8;
  f.bytes[3] = 1;
  put_big(f.bytes + 4, count);
  for (uint32_t i = 0; i < count; i++) f.bytes[8 + i] = (uint8_t)(i % classes);
  return f;
}

/* NumPy's .npy, of version 1, 2 or 3; the header is filled up with spaces and ends a line, as NumPy has it. */
static inline image_file npy_file(unsigned version, const char *header, const void *data, size_t bytes) {
  size_t start = version == 1 ? 10 : 12, length = (start + strlen(header) + 64) / 64 * 64 - start;
  image_file f = {.count = start + length + bytes};
  f.bytes = calloc(f.count + 1, 1);
  memcpy(f.bytes, "\x93NUMPY", 6);
  f.bytes[6] = (uint8_t)version;
  f.bytes[8] = (uint8_t)length;
  f.bytes[9] = (uint8_t)(length >> 8);
  memset(f.bytes + start, ' ', length);
  memcpy(f.bytes + start, header, strlen(header));
  f.bytes[start + length - 1] = '\n';
  memcpy(f.bytes + start + length, data, bytes);
  return f;
}

static inline void write_and_free(place *p, const char *name, image_file f) {
  write_file(p, name, f.bytes, f.count);
  free(f.bytes);
}

static inline void write_idx(place *p, uint32_t count, sn_shape shape, uint32_t classes) {
  write_and_free(p, "a-images.idx", idx_images(count, shape));
  write_and_free(p, "a-labels.idx", idx_labels(count, classes));
}

/* DATA, FC, SOFTMAX. */
static inline sn_net *image_net(sn_shape data, uint32_t classes) {
  sn_err err = SN_ERR_INIT;
  sn_builder *b = sn_builder_new("small", data.n, data.c, data.h, data.w, &err);
  sn_build_softmax(b, sn_build_fc(b, SN_DATA_LAYER, classes, "fc"), "softmax");
  sn_net *net = sn_builder_finish(b, NULL, &err);
  if (!net) fail_msg("%s", err.text);
  return net;
}

static inline sn_batches *open_batches(place *p, const char *name, const sn_net *net, uint64_t seed) {
  sn_err err = SN_ERR_INIT;
  sn_batches *b = sn_batches_open(path_of(p, name), net, seed, &err);
  if (!b) fail_msg("%s", err.text);
  return b;
}

static inline const sn_batch *next_batch(sn_batches *b) {
  sn_err err = SN_ERR_INIT;
  const sn_batch *batch = sn_batches_next(b, &err);
  if (!batch) fail_msg("%s", err.text);
  return batch;
}

static inline void rewind_batches(sn_batches *b) {
  sn_err err = SN_ERR_INIT;
  assert_int_equal(sn_batches_rewind(b, &err), SN_OK);
}

static inline void assert_error(const sn_err *err, sn_status code, const char *words) {
  if (err->code != code || !strstr(err->text, words))
    fail_msg("%s: \"%s\" says nothing of \"%s\"", sn_status_name(err->code), err->text, words);
}

/* The file is refused, with these words and its name. */
static inline void refuse(place *p, const char *name, const sn_net *net, sn_status code, const char *words) {
  sn_err err = SN_ERR_INIT;
  assert_null(sn_batches_open(path_of(p, name), net, 1, &err));
  assert_error(&err, code, words);
  assert_error(&err, code, p->folder);
}

#endif
