/* A line of DTR's logs (internal to sim/dtr/dtr_log.c): a JSON object of strings, numbers and arrays of these.
 *
 *   {"ARGS":["x1","x2"],"INSTRUCTION":"CALL","NAME":"add","RESULT":["x3"],"TIME":"40908"}
 */
#ifndef SN_SIM_DTR_DTR_LINE_H
#define SN_SIM_DTR_DTR_LINE_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { SN__DTR_MOST_LINE = 1 << 20, SN__DTR_MOST_NAME = 200 };

typedef enum sn__dtr_key {
  SN__DTR_INSTRUCTION,
  SN__DTR_NAME,
  SN__DTR_MEMORY,
  SN__DTR_ALIAS,
  SN__DTR_ARGS,
  SN__DTR_RESULT,
  SN__DTR_TIME,
  SN__DTR_MUTATE,
  SN__DTR_DST,
  SN__DTR_SRC,
  SN__DTR_ANNOTATION,
  SN__DTR_KEYS
} sn__dtr_key;

extern const char *const sn__dtr_key_names[SN__DTR_KEYS];

/* What stands behind a key: items[first] up to items[first + count]; of what is no array, one. */
typedef struct sn__dtr_value {
  bool given, array;
  uint32_t first, count;
} sn__dtr_value;

/* Zeroed it is empty. Texts end with '\0', numbers are as they stand. */
typedef struct sn__dtr_line {
  char *text; /* as it stands, of SN__DTR_MOST_LINE bytes at most */
  size_t bytes;
  char *copies; /* what the items are of: a value is followed by something in the text, and by '\0' here */
  sn__dtr_value values[SN__DTR_KEYS];
  char **items;
  uint32_t n_items, room;
} sn__dtr_line;

void sn__dtr_line_clear(sn__dtr_line *line);

/* Reads the next line into `text`; *end: there is none. SN_BAD_INPUT for one that is too long. */
sn_status sn__dtr_line_next(sn__dtr_line *line, FILE *in, bool *end, sn_err *err);

/* Reads the text's values. SN_BAD_INPUT says what is no JSON of this kind. */
sn_status sn__dtr_line_parse(sn__dtr_line *line, sn_err *err);

/* The one value of a key that is given and no array. */
const char *sn__dtr_line_text(const sn__dtr_line *line, sn__dtr_key key);
const char *sn__dtr_line_item(const sn__dtr_line *line, sn__dtr_key key, uint32_t index);

/* Text as a whole number from `low` to `high`. */
sn_status sn__dtr_number(const char *text, const char *what, int64_t low, int64_t high, int64_t *number, sn_err *err);

#endif
