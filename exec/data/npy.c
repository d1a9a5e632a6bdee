/* Headers of .npy files; see the header. After magic, version and a length follows a literal of Python, such as
 *
 *   {'descr': '<f4', 'fortran_order': False, 'shape': (60, 3, 8, 8), }
 *
 * of which exactly this much is understood: three keys in any order, blanks anywhere between the words. */
#include "exec/data/npy.h"

#include "base/checked.h"
#include "base/utf8.h"
#include "exec/data/little.h"
#include "models/net/net.h"

#include <inttypes.h>
#include <string.h>

enum { MOST_TEXT = 4096, VERSIONS = 3 };

static const uint8_t magic[6] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

bool sn__npy_is(const uint8_t start[SN__NPY_START]) {
  return memcmp(start, magic, sizeof magic) == 0;
}

/* -- the literal ------------------------------------------------------------------------------------------------- */

static const char *skip(const char *at) {
  return at + strspn(at, " \t\r\n");
}

/* Behind the word, if it stands there; else leaves `*at`. */
static bool take(const char **at, const char *word) {
  const char *start = skip(*at);
  if (strncmp(start, word, strlen(word)) != 0) return false;
  *at = start + strlen(word);
  return true;
}

static bool take_text(const char **at, char *text, size_t room) {
  const char *start = skip(*at), quote = *start;
  if (quote != '\'' && quote != '"') return false;
  const char *end = strchr(start + 1, quote);
  if (!end || (size_t)(end - start) > room) return false;
  memcpy(text, start + 1, (size_t)(end - start) - 1);
  text[end - start - 1] = '\0';
  *at = end + 1;
  return true;
}

static bool take_size(const char **at, uint64_t *size) {
  const char *start = skip(*at), *digit = start;
  for (*size = 0; *digit >= '0' && *digit <= '9'; digit++) {
    *size = *size * 10 + (uint64_t)(*digit - '0');
    if (*size > SN_MAX_NET_BYTES) return false;
  }
  *at = digit;
  return digit > start;
}

static bool take_shape(const char **at, sn__npy *npy) {
  if (!take(at, "(")) return false;
  while (!take(at, ")")) {
    if (npy->n_sizes == SN__NPY_SIZES || !take_size(at, &npy->sizes[npy->n_sizes++])) return false;
    if (!take(at, ",")) return take(at, ")");
  }
  return true;
}

typedef struct seen {
  bool type, order, shape, fortran;
} seen;

/* A key that has not stood before, and its value. */
static bool take_entry(const char **at, sn__npy *npy, seen *s) {
  char key[SN__NPY_TYPE];
  if (!take_text(at, key, sizeof key) || !take(at, ":")) return false;
  if (strcmp(key, "descr") == 0 && !s->type) return s->type = take_text(at, npy->type, sizeof npy->type);
  if (strcmp(key, "shape") == 0 && !s->shape) return s->shape = take_shape(at, npy);
  if (strcmp(key, "fortran_order") != 0 || s->order) return false;
  s->fortran = take(at, "True");
  return s->order = s->fortran || take(at, "False");
}

static bool take_all(const char *text, sn__npy *npy, seen *s) {
  if (!take(&text, "{")) return false;
  while (!take(&text, "}")) {
    if (!take_entry(&text, npy, s)) return false;
    if (take(&text, ",")) continue;
    if (!take(&text, "}")) return false;
    break;
  }
  return *skip(text) == '\0' && s->type && s->order && s->shape;
}

/* -- the file ---------------------------------------------------------------------------------------------------- */

/* Where the literal begins and how long it is. */
static sn_status find_text(const sn__data_file *file, uint64_t *at, uint64_t *bytes, sn_err *err) {
  uint8_t head[SN__NPY_START + 4] = {0};
  if (sn__data_file_read(file, 0, head, (size_t)sn_min(sizeof head, file->bytes), err) != SN_OK) return err->code;
  uint8_t version = head[sizeof magic];
  if (version < 1 || version > VERSIONS)
    return sn_fail(err, SN_BAD_INPUT, "%.300s: is a .npy file of version %u; read are 1 to %d", file->path, version,
                   VERSIONS);
  *bytes = version == 1 ? sn__little(head + SN__NPY_START) & 0xffff : sn__little(head + SN__NPY_START);
  *at = SN__NPY_START + (version == 1 ? 2 : 4);
  if (*bytes > MOST_TEXT)
    return sn_fail(err, SN_BAD_INPUT, "%.300s: its header should have %" PRIu64 " bytes; no array needs more than %d",
                   file->path, *bytes, MOST_TEXT);
  if (*at + *bytes > file->bytes)
    return sn_fail(err, SN_BAD_INPUT, "%.300s: is cut short within its header", file->path);
  return SN_OK;
}

sn_status sn__npy_read(const sn__data_file *file, sn__npy *npy, sn_err *err) {
  char text[MOST_TEXT + 1];
  uint64_t at = 0, bytes = 0;
  seen s = {0};
  *npy = (sn__npy){.n_sizes = 0};
  if (find_text(file, &at, &bytes, err) != SN_OK || sn__data_file_read(file, at, text, (size_t)bytes, err) != SN_OK)
    return err->code;
  text[bytes] = '\0';
  npy->at = at + bytes;
  if (strlen(text) != bytes || !take_all(text, npy, &s))
    return sn_fail(err, SN_BAD_INPUT, "%.300s: its header is not that of one array of numbers (%.80s)", file->path,
                   sn_utf8_clean(text));
  sn_utf8_clean(npy->type);
  if (s.fortran)
    return sn_fail(err, SN_BAD_INPUT,
                   "%.300s: its numbers are in Fortran's order; save numpy.ascontiguousarray() of it", file->path);
  return SN_OK;
}
