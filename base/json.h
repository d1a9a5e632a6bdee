/* Reading JSON files other people wrote: cJSON parses, this adds what cJSON lacks: file and line in every error, a size
 * limit, whole numbers checked, unknown and repeated keys refused.
 *
 *   sn_json *doc = sn_json_load("mine.json", &err);
 *   const cJSON *layers = sn_json_array(doc, sn_json_root(doc), "layers", &err);
 *   uint64_t n;
 *   if (sn_json_count(doc, layer, "channels", 1, 1 << 20, &n, &err) != SN_OK) ...
 *   sn_json_free(doc);
 *
 * Errors are SN_BAD_INPUT (SN_BAD_FILE where the file cannot be read) and begin with "file:line: ".
 */
#ifndef SN_BASE_JSON_H
#define SN_BASE_JSON_H

#include "base/err.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sn_json sn_json;

enum { SN_JSON_MAX_BYTES = 64 * 1024 * 1024 };

sn_json *sn_json_load(const char *path, sn_err *err);
/* The same from memory; `name` stands where the path would in errors. `text` is copied. */
sn_json *sn_json_parse(const char *name, const char *text, size_t bytes, sn_err *err);
void sn_json_free(sn_json *doc);

const cJSON *sn_json_root(const sn_json *doc);
/* Its path, or what stands in its place. */
const char *sn_json_name(const sn_json *doc);

/* The line (from 1) on which `item` begins; 0 for an item that is not in the document. O(length of the text). */
unsigned sn_json_line(const sn_json *doc, const cJSON *item);

/* From now on errors have neither line nor hint, which takes time: for who only wants to know that there are some. */
void sn_json_be_terse(sn_json *doc, bool terse);

/* Records `file:line: ` + the text as SN_BAD_INPUT. */
sn_status sn_json_fail(const sn_json *doc, const cJSON *item, sn_err *err, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Members of an object. `required` getters fail where the key is missing or of another type. */
bool sn_json_has(const cJSON *object, const char *key);
const cJSON *sn_json_array(const sn_json *doc, const cJSON *object, const char *key, sn_err *err);
const char *sn_json_text(const sn_json *doc, const cJSON *object, const char *key, sn_err *err);
sn_status sn_json_count(const sn_json *doc, const cJSON *object, const char *key, uint64_t low, uint64_t high,
                        uint64_t *out, sn_err *err);
sn_status sn_json_number(const sn_json *doc, const cJSON *object, const char *key, double low, double high, double *out,
                         sn_err *err);
sn_status sn_json_bool(const sn_json *doc, const cJSON *object, const char *key, bool *out, sn_err *err);

/* The value of an item itself (an element of an array). */
sn_status sn_json_item_count(const sn_json *doc, const cJSON *item, const char *what, uint64_t low, uint64_t high,
                             uint64_t *out, sn_err *err);

/* Fails where the key of `item`, a member of an object, is not among `keys` (the nearest offered, or all of them) or
 * stands in `seen`, which is 0 at first and has a bit for each of the keys met, at most 64. */
sn_status sn_json_known(const sn_json *doc, const cJSON *item, const char *const *keys, size_t count, uint64_t *seen,
                        sn_err *err);
/* Fails at the first key of `object` that is not among `keys` (the nearest offered, or all of
 * them) or that stands twice. */
sn_status sn_json_only(const sn_json *doc, const cJSON *object, const char *const *keys, size_t count, sn_err *err);

#endif
