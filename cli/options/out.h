/* Where words go: data to standard output or a file, talk to standard error. Colour and progress only on a terminal,
 * and never where NO_COLOR is set or TERM is "dumb"; --color=always and --color=never overrule that. */
#ifndef SN_CLI_OPTIONS_OUT_H
#define SN_CLI_OPTIONS_OUT_H

#include "base/err.h"
#include "base/replace.h"

#include <stdbool.h>
#include <stdio.h>

typedef enum sn_color { SN_COLOR_AUTO, SN_COLOR_ALWAYS, SN_COLOR_NEVER } sn_color;

struct sn_table;
typedef struct sn_prose sn_prose;

typedef struct sn_out {
  FILE *stream;
  const char *path; /* NULL: standard output */
  bool color;
  unsigned columns;   /* of the terminal that is standard output; 0: it is none, lines may have any length */
  sn_replace replace; /* of a path */
  sn_prose *prose;    /* what the stream goes through; NULL: nothing */
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

/* Prints a table, fitted to the terminal. SN_NO_MEMORY as sn_table_print(). */
sn_status sn_out_table(const sn_out *out, struct sn_table *table, sn_err *err);

/* What people read, its lines broken at blanks where the terminal is too narrow for them; those of sn_out_table(),
 * which have a width of their own, are not.
 *
 *   sn_prose prose;
 *   const sn_out *p = sn_prose_open(&prose, out);
 *   fprintf(p->stream, ...);
 *   sn_prose_close(&prose);
 *
 * Where nothing need be broken, or memory is missing, `p` is `out` itself. */
struct sn_prose {
  const sn_out *out;
  sn_out own;
  char *text;
  size_t bytes, done; /* written to own.stream; printed */
};
const sn_out *sn_prose_open(sn_prose *prose, const sn_out *out);
void sn_prose_close(sn_prose *prose);

/* A line on standard error that the next call, with NULL, takes away again; nothing where that is no terminal. */
void sn_out_progress(const char *text);

/* Columns and rows of the terminal behind `stream`, COLUMNS before the terminal's own width; false and untouched where
 * it is none. */
bool sn_out_size(FILE *stream, unsigned *columns, unsigned *rows);

#endif
