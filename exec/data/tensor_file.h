/* Tensor files in the form of safetensors: what weights and gradients are stored in. All tensors are float32.
 *
 *   | u64: bytes of the header | header: JSON, filled up with spaces | numbers, little-endian, one tensor after another
 * |
 *
 *   {"__metadata__": {"net": "lenet", "holds": "weights"},
 *    "conv1.weight": {"dtype": "F32", "shape": [20, 1, 5, 5], "data_offsets": [0, 2000]}, ...}
 *
 * Reading keeps the header; numbers stay in the file until they are asked for. Whatever is in the file, what was opened
 * is sound: every name stands once, and the tensors fill the room behind the header without holes and overlaps.
 * Internal to exec/.
 *
 *   sn__tensor_file file;
 *   if (sn__tensor_file_open("weights.safetensors", &file, &err) != SN_OK) ...
 *   const sn__tensor *t = sn__tensor_file_find(&file, "conv1.weight");
 *   sn__tensor_file_read(&file, t, numbers, &err);
 *   sn__tensor_file_close(&file);
 */
#ifndef SN_EXEC_DATA_TENSOR_FILE_H
#define SN_EXEC_DATA_TENSOR_FILE_H

#include "base/err.h"
#include "base/json.h"
#include "exec/data/data_file.h"

#include <stdint.h>

enum { SN__TENSOR_SIZES = 8 };

typedef struct sn__tensor {
  const char *name;
  uint32_t n_sizes; /* 0: one number */
  uint64_t sizes[SN__TENSOR_SIZES];
  uint64_t at, count; /* byte of the file at which it begins; numbers */
} sn__tensor;

typedef struct sn__tensor_file {
  sn__data_file file;
  sn_json *header;
  const char *holds;   /* what the metadata say of it; NULL: nothing */
  sn__tensor *tensors; /* by name */
  uint32_t count;
} sn__tensor_file;

/* SN_BAD_FILE: see exec/data/data_file.h. SN_BAD_INPUT, with the file's name: no such file, or one that contradicts
 * itself. On an error nothing needs closing. `path` must outlive the file. */
sn_status sn__tensor_file_open(const char *path, sn__tensor_file *file, sn_err *err);
void sn__tensor_file_close(sn__tensor_file *file);

/* NULL: it has none of that name. */
const sn__tensor *sn__tensor_file_find(const sn__tensor_file *file, const char *name);

/* The numbers of a tensor of this file, tensor->count of them, finite all. SN_BAD_FILE, SN_BAD_INPUT. */
sn_status sn__tensor_file_read(const sn__tensor_file *file, const sn__tensor *tensor, float *to, sn_err *err);

/* "20x1x5x5", "one number"; returns text. */
enum { SN__TENSOR_TEXT = 200 };
const char *sn__tensor_shape(const uint64_t *sizes, uint32_t n_sizes, char text[SN__TENSOR_TEXT]);

/* A tensor to be written. */
typedef struct sn__tensor_source {
  char *name;
  uint32_t n_sizes;
  uint64_t sizes[SN__TENSOR_SIZES];
  const float *from;
} sn__tensor_source;

/* Replaces the file whole (base/replace.h) by these tensors, in their order. The metadata say what it holds of which
 * net. */
sn_status sn__tensor_file_write(const char *path, const char *net, const char *holds, const sn__tensor_source *tensors,
                                uint32_t count, sn_err *err);

#endif
