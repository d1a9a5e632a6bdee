/* JSON, internal: what documents (base/json.c) and those with long lists (base/json_lists.c) share. */
#ifndef SN_BASE_JSON_INTERNAL_H
#define SN_BASE_JSON_INTERNAL_H

#include "base/json_lists.h"

struct sn_json {
  char *name;
  char *text; /* ends in NUL */
  size_t bytes;
  cJSON *root;
  bool terse;
  /* Where it is not the whole file: lines in front of it, and what was cut out of it and how many lines that had. */
  unsigned lines_before;
  size_t n_cuts;
  struct {
    size_t at;
    unsigned lines;
  } cuts[SN_JSON_MOST_LISTS];
};

/* `file:line: ` and the text as SN_BAD_INPUT; line 0: none. */
sn_status sn__json_fail_line(const sn_json *doc, unsigned line, sn_err *err, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* SN_BAD_INPUT; NULL. */
void *sn__json_fail_size(const char *name, size_t most, sn_err *err);

/* Newlines in [begin, end); the file's line of a place in the document's text. */
unsigned sn__json_count_lines(const char *begin, const char *end);
unsigned sn__json_line_of(const sn_json *doc, const char *place);

const char *sn__json_skip_blanks(const char *at);
/* Behind the string that begins at `at`; stops at the end of the text. */
const char *sn__json_skip_string(const char *at);

/* A file's text, or a copy of one, with room for a NUL behind it; NULL after an error, which more than `most` bytes
 * are. */
char *sn__json_read(const char *path, size_t most, size_t *bytes, sn_err *err);
char *sn__json_copy(const char *name, const char *text, size_t bytes, size_t most, sn_err *err);

/* What cJSON lets pass or reports badly. */
sn_status sn__json_check(const sn_json *doc, size_t most_values, sn_err *err);
/* Makes the root of the first value within `bytes` of the text; where they are the `whole` text, of nothing else. *end:
 * behind it, or what is wrong. */
sn_status sn__json_parse(sn_json *doc, size_t bytes, bool whole, const char **end, sn_err *err);
/* That the text is no JSON from a place on. */
sn_status sn__json_fail_near(const sn_json *doc, const char *place, sn_err *err);

#endif
