/* Where words go: data to standard output or a file, talk to standard error. Colour and progress only on a terminal,
 * and never where NO_COLOR is set or TERM is "dumb"; --color=always and --color=never overrule that. */
#ifndef SN_CLI_FRAME_OUT_H
#define SN_CLI_FRAME_OUT_H

#include "base/err.h"
#include "base/replace.h"

#include <stdbool.h>
#include <stdio.h>

typedef enum sn_color { SN_COLOR_AUTO, SN_COLOR_ALWAYS, SN_COLOR_NEVER } sn_color;

typedef struct sn_out {
  FILE *stream;
  const char *path; /* NULL: standard output */
  bool color;
  unsigned columns;   /* of the terminal that is standard output; 0: it is none, lines may have any length */
  sn_replace replace; /* of a path */
} sn_out;

/* Opens `path` for writing; NULL or "-" is standard output. SN_BAD_FILE. */
sn_status sn_out_open(sn_out *out, const char *path, sn_color color, sn_err *err);
/* Flushes and closes. SN_BAD_FILE where anything written to it was lost (a full disk). With an error, also an earlier
 * one in `err`, a file is left as it was before. */
sn_status sn_out_close(sn_out *out, sn_err *err);

/* Looks whether `path` can be written, before long work whose result goes there; leaves it as it is. NULL and "-" can.
 * SN_BAD_FILE. */
sn_status sn_out_check(const char *path, sn_err *err);

/* `snsim: text` and `snsim: kind: text` on standard error. */
void sn_out_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void sn_out_complain(const char *kind, const char *text);

/* `text` as a shell reads it back: itself, or in quotes in `out`, cut where there is no room. */
const char *sn_out_quote(const char *text, char *out, size_t room);

/* A line on standard error that the next call, with NULL, takes away again; nothing where that is no terminal. */
void sn_out_progress(const char *text);

/* Columns and rows of the terminal behind `stream`, COLUMNS before the terminal's own width; false and untouched where
 * it is none. */
bool sn_out_size(FILE *stream, unsigned *columns, unsigned *rows);

#endif
