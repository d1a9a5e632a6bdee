/* Tensor files; see the header. Reading is O(n log n) for n tensors, whatever their order. The form is that of
 * https://github.com/huggingface/safetensors, with one type of numbers. */
#include "exec/data/tensor_file.h"

#include "base/checked.h"
#include "base/replace.h"
#include "base/utf8.h"
#include "exec/data/little.h"
#include "models/net/net.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LENGTH_BYTES = 8, HEADER_ROOM = 400 };

static const char metadata[] = "__metadata__";

/* `<file>: tensor "<name>" <what>`, safe for a terminal whatever the name is. */
static __attribute__((format(printf, 4, 5))) sn_status fail_tensor(const sn__tensor_file *f, const char *name,
                                                                   sn_err *err, const char *format, ...) {
  char text[300];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  sn_fail(err, SN_BAD_INPUT, "%.200s: tensor \"%.60s\" %s", f->file.path, name, text);
  sn_utf8_clean(err->text);
  return err->code;
}

const char *sn__tensor_shape(const uint64_t *sizes, uint32_t n_sizes, char text[SN__TENSOR_TEXT]) {
  size_t used = 0;
  snprintf(text, SN__TENSOR_TEXT, "one number");
  for (uint32_t i = 0; i < n_sizes && used < SN__TENSOR_TEXT; i++)
    used += (size_t)snprintf(text + used, SN__TENSOR_TEXT - used, "%s%" PRIu64, i ? "x" : "", sizes[i]);
  return text;
}

/* -- the header -------------------------------------------------------------------------------------------------- */

/* What it says of its header's length must be true before anything is believed. */
static sn_status read_length(const sn__tensor_file *f, uint64_t *bytes, sn_err *err) {
  uint8_t start[LENGTH_BYTES + 1];
  const char *path = f->file.path;
  if (f->file.bytes < sizeof start)
    return sn_fail(err, SN_BAD_INPUT, "%.300s: is no safetensors file: it has only %" PRIu64 " bytes", path,
                   f->file.bytes);
  if (sn__data_file_read(&f->file, 0, start, sizeof start, err) != SN_OK) return err->code;
  *bytes = sn__little_64(start);
  if (start[LENGTH_BYTES] != '{')
    return sn_fail(err, SN_BAD_INPUT,
                   "%.300s: is no safetensors file: no JSON object follows its first 8 bytes; snsim run --save-weights "
                   "or safetensors' save_file() write one",
                   path);
  if (*bytes > f->file.bytes - LENGTH_BYTES)
    return sn_fail(err, SN_BAD_INPUT,
                   "%.300s: is cut short, or no safetensors file: its header should have %" PRIu64
                   " bytes, the file has %" PRIu64,
                   path, *bytes, f->file.bytes);
  if (*bytes > SN_JSON_MAX_BYTES)
    return sn_fail(err, SN_BAD_INPUT, "%.300s: its header is larger than %d MiB", path, SN_JSON_MAX_BYTES >> 20);
  return SN_OK;
}

static sn_status parse_header(sn__tensor_file *f, uint64_t bytes, sn_err *err) {
  char name[HEADER_ROOM];
  char *text = malloc(bytes + 1);
  if (!text) return sn_fail_memory(err);
  snprintf(name, sizeof name, "%.300s, header", f->file.path);
  if (sn__data_file_read(&f->file, LENGTH_BYTES, text, bytes, err) == SN_OK)
    f->header = sn_json_parse(name, text, bytes, err);
  free(text);
  return err->code;
}

/* -- one tensor -------------------------------------------------------------------------------------------------- */

static sn_status take_type(const sn__tensor_file *f, const cJSON *item, sn_err *err) {
  const char *type = sn_json_text(f->header, item, "dtype", err);
  if (!type || strcmp(type, "F32") == 0) return err->code;
  return fail_tensor(f, item->string, err, "is of type %.20s; read is F32 alone, so convert it first", type);
}

static sn_status take_shape(const sn__tensor_file *f, const cJSON *item, sn__tensor *t, sn_err *err) {
  const cJSON *list = sn_json_array(f->header, item, "shape", err), *size;
  t->count = 1;
  cJSON_ArrayForEach(size, list) {
    if (t->n_sizes == SN__TENSOR_SIZES)
      return fail_tensor(f, item->string, err, "has more than %d dimensions", SN__TENSOR_SIZES);
    uint64_t *to = &t->sizes[t->n_sizes++];
    if (sn_json_item_count(f->header, size, "shape", 0, SN_MAX_NET_BYTES, to, err) != SN_OK) return err->code;
    if (!sn_mul(t->count, *to, &t->count) || t->count > SN_MAX_NET_BYTES)
      return fail_tensor(f, item->string, err, "has a shape of more numbers than any file");
  }
  return err->code;
}

/* Two offsets from the end of the header, which must enclose the shape's numbers. */
static sn_status take_place(const sn__tensor_file *f, const cJSON *item, uint64_t room, sn__tensor *t, sn_err *err) {
  const cJSON *list = sn_json_array(f->header, item, "data_offsets", err);
  uint64_t ends[2] = {0, 0};
  if (!list) return err->code;
  if (cJSON_GetArraySize(list) != 2)
    return fail_tensor(f, item->string, err, "needs two \"data_offsets\", where it begins and ends");
  for (int i = 0; i < 2; i++)
    if (sn_json_item_count(f->header, cJSON_GetArrayItem(list, i), "data_offsets", 0, SN_MAX_NET_BYTES, &ends[i],
                           err) != SN_OK)
      return err->code;
  if (ends[1] > room)
    return fail_tensor(f, item->string, err,
                       "ends at byte %" PRIu64 " of the data, of which there are %" PRIu64 ": the file is cut short",
                       ends[1], room);
  char shape[SN__TENSOR_TEXT];
  if (ends[0] > ends[1] || (ends[1] - ends[0]) / sizeof(float) != t->count || (ends[1] - ends[0]) % sizeof(float))
    return fail_tensor(f, item->string, err, "has bytes %" PRIu64 " to %" PRIu64 ", which are not the %s of its shape",
                       ends[0], ends[1], sn__tensor_shape(t->sizes, t->n_sizes, shape));
  t->at = ends[0];
  return SN_OK;
}

static sn_status take_tensor(const sn__tensor_file *f, const cJSON *item, uint64_t room, sn__tensor *t, sn_err *err) {
  static const char *const keys[] = {"dtype", "shape", "data_offsets"};
  *t = (sn__tensor){.name = item->string};
  if (sn_json_only(f->header, item, keys, 3, err) == SN_OK && take_type(f, item, err) == SN_OK &&
      take_shape(f, item, t, err) == SN_OK)
    take_place(f, item, room, t, err);
  return err->code;
}

static sn_status take_metadata(sn__tensor_file *f, const cJSON *item, sn_err *err) {
  const cJSON *entry;
  if (!cJSON_IsObject(item)) return sn_json_fail(f->header, item, err, "\"%s\" must be an object: {...}", metadata);
  cJSON_ArrayForEach(entry, item) {
    if (!cJSON_IsString(entry)) return sn_json_fail(f->header, entry, err, "metadata are texts in quotes");
    if (strcmp(entry->string, "holds") == 0) f->holds = entry->valuestring;
  }
  return SN_OK;
}

static sn_status take_items(sn__tensor_file *f, uint64_t room, sn_err *err) {
  const cJSON *root = sn_json_root(f->header), *item;
  bool seen = false;
  if (!cJSON_IsObject(root)) return sn_json_fail(f->header, root, err, "expected an object: {...}");
  f->tensors = calloc((size_t)cJSON_GetArraySize(root) + 1, sizeof *f->tensors);
  if (!f->tensors) return sn_fail_memory(err);
  cJSON_ArrayForEach(item, root) {
    if (strcmp(item->string, metadata) != 0) {
      if (take_tensor(f, item, room, &f->tensors[f->count++], err) != SN_OK) return err->code;
      continue;
    }
    if (seen) return sn_json_fail(f->header, item, err, "\"%s\" stands twice", metadata);
    seen = true;
    if (take_metadata(f, item, err) != SN_OK) return err->code;
  }
  return SN_OK;
}

/* -- all of them ------------------------------------------------------------------------------------------------- */

static int by_place(const void *a, const void *b) {
  const sn__tensor *x = a, *y = b;
  if (x->at != y->at) return x->at < y->at ? -1 : 1;
  return x->count < y->count ? -1 : x->count > y->count;
}

static int by_name(const void *a, const void *b) {
  const sn__tensor *x = a, *y = b;
  return strcmp(x->name, y->name);
}

/* Each begins where the one before ends, the last ends with the file; then places are counted from the file's start. */
static sn_status check_places(sn__tensor_file *f, uint64_t room, sn_err *err) {
  uint64_t end = 0;
  qsort(f->tensors, f->count, sizeof *f->tensors, by_place);
  for (uint32_t i = 0; i < f->count; i++) {
    sn__tensor *t = &f->tensors[i];
    if (t->at != end)
      return fail_tensor(f, t->name, err, "begins at byte %" PRIu64 " of the data, %" PRIu64 " bytes %s", t->at,
                         t->at < end ? end - t->at : t->at - end,
                         t->at < end ? "before another one ends" : "behind the one before it");
    end += t->count * sizeof(float);
    t->at += f->file.bytes - room;
  }
  if (end == room) return SN_OK;
  return sn_fail(err, SN_BAD_INPUT, "%.300s: has %" PRIu64 " bytes behind the last tensor", f->file.path, room - end);
}

static sn_status check_names(sn__tensor_file *f, sn_err *err) {
  qsort(f->tensors, f->count, sizeof *f->tensors, by_name);
  for (uint32_t i = 1; i < f->count; i++)
    if (strcmp(f->tensors[i].name, f->tensors[i - 1].name) == 0)
      return fail_tensor(f, f->tensors[i].name, err, "stands twice");
  return SN_OK;
}

static sn_status open_header(sn__tensor_file *f, sn_err *err) {
  uint64_t bytes = 0;
  if (read_length(f, &bytes, err) != SN_OK || parse_header(f, bytes, err) != SN_OK) return err->code;
  uint64_t room = f->file.bytes - LENGTH_BYTES - bytes;
  if (take_items(f, room, err) == SN_OK && check_places(f, room, err) == SN_OK) check_names(f, err);
  return err->code;
}

sn_status sn__tensor_file_open(const char *path, sn__tensor_file *f, sn_err *err) {
  *f = (sn__tensor_file){.file = SN__DATA_FILE_INIT};
  if (sn__data_file_open(path, &f->file, err) == SN_OK && open_header(f, err) == SN_OK) return SN_OK;
  sn__tensor_file_close(f);
  return err->code;
}

void sn__tensor_file_close(sn__tensor_file *f) {
  sn__data_file_close(&f->file);
  sn_json_free(f->header);
  free(f->tensors);
  *f = (sn__tensor_file){.file = SN__DATA_FILE_INIT};
}

const sn__tensor *sn__tensor_file_find(const sn__tensor_file *f, const char *name) {
  const sn__tensor key = {.name = name};
  return f->count ? bsearch(&key, f->tensors, f->count, sizeof key, by_name) : NULL;
}

sn_status sn__tensor_file_read(const sn__tensor_file *f, const sn__tensor *t, float *to, sn_err *err) {
  if (sn__data_file_read(&f->file, t->at, to, t->count * sizeof *to, err) != SN_OK) return err->code;
  for (uint64_t i = 0; i < t->count; i++) {
    to[i] = sn__little_float((const uint8_t *)&to[i]);
    if (!isfinite(to[i])) return fail_tensor(f, t->name, err, "has a number that is not finite, at place %" PRIu64, i);
  }
  return SN_OK;
}

/* -- writing ----------------------------------------------------------------------------------------------------- */

static bool put(cJSON *object, const char *key, cJSON *item) {
  if (item && cJSON_AddItemToObject(object, key, item)) return true;
  cJSON_Delete(item);
  return false;
}

static cJSON *make_list(const uint64_t *numbers, uint32_t count) {
  double values[SN__TENSOR_SIZES];
  for (uint32_t i = 0; i < count; i++) values[i] = (double)numbers[i];
  return cJSON_CreateDoubleArray(values, (int)count);
}

static uint64_t count_of(const sn__tensor_source *t) {
  uint64_t count = 1;
  for (uint32_t i = 0; i < t->n_sizes; i++) count *= t->sizes[i];
  return count;
}

/* Behind the tensors that end at `*end`. */
static bool put_tensor(cJSON *root, const sn__tensor_source *t, uint64_t *end) {
  const uint64_t ends[2] = {*end, *end + count_of(t) * sizeof(float)};
  cJSON *item = cJSON_CreateObject();
  *end = ends[1];
  bool good = item && put(item, "dtype", cJSON_CreateString("F32")) &&
              put(item, "shape", make_list(t->sizes, t->n_sizes)) && put(item, "data_offsets", make_list(ends, 2));
  if (good) return put(root, t->name, item);
  cJSON_Delete(item);
  return false;
}

/* To be freed; NULL: no memory. */
static char *make_header(const char *net, const char *holds, const sn__tensor_source *tensors, uint32_t count) {
  cJSON *root = cJSON_CreateObject(), *about = cJSON_CreateObject();
  uint64_t end = 0;
  bool good =
      root && about && put(about, "net", cJSON_CreateString(net)) && put(about, "holds", cJSON_CreateString(holds));
  if (good)
    good = put(root, metadata, about);
  else
    cJSON_Delete(about);
  for (uint32_t i = 0; i < count && good; i++) good = put_tensor(root, &tensors[i], &end);
  char *text = good ? cJSON_PrintUnformatted(root) : NULL;
  cJSON_Delete(root);
  return text;
}

static void write_floats(FILE *out, const float *from, uint64_t count) {
  uint8_t bytes[4096 * sizeof *from];
  for (uint64_t done = 0; done < count;) {
    uint64_t n = sn_min(count - done, sizeof bytes / sizeof *from);
    for (uint64_t i = 0; i < n; i++) sn__put_little_float(bytes + i * sizeof *from, from[done + i]);
    fwrite(bytes, sizeof *from, n, out);
    done += n;
  }
}

/* Spaces behind the header bring the numbers to a multiple of 8. */
static void write_all(FILE *out, const char *header, const sn__tensor_source *tensors, uint32_t count) {
  uint8_t length[LENGTH_BYTES];
  uint64_t bytes = sn_ceil_div(strlen(header), LENGTH_BYTES) * LENGTH_BYTES;
  sn__put_little_64(length, bytes);
  fwrite(length, 1, sizeof length, out);
  fprintf(out, "%-*s", (int)bytes, header);
  for (uint32_t i = 0; i < count; i++) write_floats(out, tensors[i].from, count_of(&tensors[i]));
}

static sn_status fail_write(const char *path, sn_err *err) {
  return sn_fail(err, SN_BAD_FILE, "%.300s: cannot be written: %s", path, strerror(errno));
}

static sn_status write_file(const char *path, const char *header, const sn__tensor_source *tensors, uint32_t count,
                            sn_err *err) {
  sn_replace replace;
  if (sn_replace_open(&replace, path, err) != SN_OK) return err->code;
  int descriptor = dup(replace.file);
  FILE *out = descriptor >= 0 ? fdopen(descriptor, "wb") : NULL;
  if (!out && descriptor >= 0) close(descriptor);
  if (out) {
    write_all(out, header, tensors, count);
    bool bad = ferror(out) != 0; /* fclose() does not tell of what failed before */
    if (fclose(out) != 0 || bad) fail_write(path, err);
  } else {
    fail_write(path, err);
  }
  return sn_replace_close(&replace, err);
}

sn_status sn__tensor_file_write(const char *path, const char *net, const char *holds, const sn__tensor_source *tensors,
                                uint32_t count, sn_err *err) {
  char *header = make_header(net, holds, tensors, count);
  if (!header) return sn_fail_memory(err);
  write_file(path, header, tensors, count, err);
  cJSON_free(header);
  return err->code;
}
