/* Fuzz target: labelled image sets. The input is the file of labels, with its length in two bytes (little-endian) in
 * front, and the file of images; snsim's own form has no use for the first. Whatever the bytes, there is a source or an
 * error, and the batches of a source are sound: labels are classes of the net, pixels are finite, the same batch comes
 * again.
 */
#include "tests/fuzz/fuzz.h"

#include "exec/data/batch_source.h"
#include "models/build/build.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BATCH = 2, CLASSES = 4, PIXELS = 6, NAME_ROOM = 64 };

/* Not assert(): the fuzzer must see it in every build. */
static void require(int truth) {
  if (!truth) abort();
}

typedef struct files {
  char folder[32], images[NAME_ROOM], labels[NAME_ROOM];
} files;

static void write_all(const char *path, const uint8_t *bytes, size_t count) {
  FILE *out = fopen(path, "wb");
  require(out != NULL);
  require(fwrite(bytes, 1, count, out) == count);
  require(fclose(out) == 0);
}

static void make_files(files *f, const uint8_t *data, size_t size) {
  size_t labels = size < 2 ? 0 : (size_t)(data[0] | data[1] << 8), rest = size < 2 ? 0 : size - 2;
  if (labels > rest) labels = rest;
  strcpy(f->folder, "/tmp/fuzz_data.XXXXXX");
  require(mkdtemp(f->folder) != NULL);
  snprintf(f->images, sizeof f->images, "%s/images", f->folder);
  snprintf(f->labels, sizeof f->labels, "%s/labels", f->folder);
  write_all(f->labels, data + (size - rest), labels);
  write_all(f->images, data + (size - rest) + labels, rest - labels);
}

static void remove_files(const files *f) {
  unlink(f->images);
  unlink(f->labels);
  require(rmdir(f->folder) == 0);
}

static sn_net *make_net(uint32_t channels) {
  sn_err err = SN_ERR_INIT;
  sn_builder *b = sn_builder_new("fuzz", BATCH, channels, 2, 3 / channels, &err);
  sn_build_softmax(b, sn_build_fc(b, SN_DATA_LAYER, CLASSES, "fc"), "softmax");
  return sn_builder_finish(b, NULL, &err);
}

static void check_batch(const sn__source *source, uint64_t iteration, uint32_t floats) {
  float data[BATCH * PIXELS], again[BATCH * PIXELS];
  int32_t labels[BATCH], labels_again[BATCH];
  sn_err err = SN_ERR_INIT;
  require(source->fill(source->self, iteration, data, labels, &err) == SN_OK);
  require(source->fill(source->self, iteration, again, labels_again, &err) == SN_OK);
  require(memcmp(data, again, floats * sizeof *data) == 0 && memcmp(labels, labels_again, sizeof labels) == 0);
  for (uint32_t i = 0; i < floats; i++) require(isfinite(data[i]));
  for (uint32_t i = 0; i < BATCH; i++) require(labels[i] >= 0 && labels[i] < CLASSES);
}

static void try_net(const files *f, uint32_t channels) {
  sn_err err = SN_ERR_INIT;
  sn__source source = {0};
  sn_net *net = make_net(channels);
  require(net != NULL);
  sn_status status = sn__source_file(f->images, net, 1, &source, &err);
  require(status == err.code && (status == SN_OK) == (source.self != NULL));
  require(status == SN_OK || strstr(err.text, f->folder) != NULL);
  for (uint64_t i = 0; source.self && i < 5; i++) check_batch(&source, i, (uint32_t)(net->data_bytes / sizeof(float)));
  sn__source_close(&source);
  sn_net_free(net);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  files f;
  make_files(&f, data, size);
  try_net(&f, 1);
  try_net(&f, 3);
  remove_files(&f);
  return 0;
}
