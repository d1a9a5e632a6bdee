/* Large JSON files: an object some of whose members are long lists, which are never in memory as a tree, only element
 * by element. Errors are those of base/json.h, with the lines of the whole file.
 *
 *   const char *keys[] = {"tensors", "instructions"};
 *   sn_json_lists *file = sn_json_lists_load("plan.json", keys, 2, &err);
 *   const sn_json *head = sn_json_lists_head(file);           the object, with these lists empty
 *   sn_json_lists_begin(file, "instructions");
 *   for (const sn_json *element; (element = sn_json_lists_next(file, &err));) ... sn_json_root(element) ...
 *   sn_json_lists_free(file);
 *
 * Memory is the text, and the tree of what stands beside the lists or of one element, at most SN_JSON_PIECE_BYTES of
 * text each. A list that is not valid JSON is found out when it is read, what stands beside it at once.
 */
#ifndef SN_BASE_JSON_LISTS_H
#define SN_BASE_JSON_LISTS_H

#include "base/json.h"

enum { SN_JSON_PIECE_BYTES = 4 * 1024 * 1024, SN_JSON_MOST_LISTS = 4 };

/* The plan of a network with a million layers takes 1.6 GB. */
#define SN_JSON_LISTS_MAX_BYTES ((size_t)2 << 30)

typedef struct sn_json_lists sn_json_lists;

/* The `count` keys, at most SN_JSON_MOST_LISTS, must outlive it. The path "-" is standard input. */
sn_json_lists *sn_json_lists_load(const char *path, const char *const *keys, size_t count, sn_err *err);
/* The same from memory; `name` stands where the path would in errors. `text` is copied. */
sn_json_lists *sn_json_lists_parse(const char *name, const char *text, size_t bytes, const char *const *keys,
                                   size_t count, sn_err *err);
void sn_json_lists_free(sn_json_lists *file);

const sn_json *sn_json_lists_head(const sn_json_lists *file);

/* What is read next is the first element of this list; one list at a time. Without such a list there is none. */
void sn_json_lists_begin(sn_json_lists *file, const char *key);
/* The next element, until the next call; NULL: there is none, or an error. */
const sn_json *sn_json_lists_next(sn_json_lists *file, sn_err *err);

/* Records `file:line: ` + the text as SN_BAD_INPUT, with the line of a list's element, or of the list where there is no
 * such element. O(length of the text). */
sn_status sn_json_lists_fail(const sn_json_lists *file, const char *key, size_t index, sn_err *err, const char *format,
                             ...) __attribute__((format(printf, 5, 6)));

#endif
