/* A file that takes its name only when it is whole: written under a temporary name in the same folder and renamed, so
 * that an error leaves what was there before as it was.
 *
 *   sn_replace r;
 *   if (sn_replace_open(&r, "plan.json", &err) != SN_OK) return err.code;
 *   write to r.file; failures go to err
 *   return sn_replace_close(&r, &err);
 *
 * Links are followed and the rights of an older file are kept; its owner and its other hard links are not. What is no
 * regular file (a terminal, a pipe, /dev/full) and /dev/stdout, which is open already, are written directly. Until it
 * is whole the file has no name at all (O_TMPFILE), so a program that is killed leaves nothing behind; on file systems
 * without such files it leaves snsim-<process>-<n>.tmp. The disk has it before it gets its name: after a power cut
 * either content is there, whole.
 */
#ifndef SN_BASE_REPLACE_H
#define SN_BASE_REPLACE_H

#include "base/err.h"

#include <stdbool.h>

typedef struct sn_replace {
  int file;        /* descriptor, for reading and writing; for writing only where it is written directly */
  char *path;      /* what is replaced, without links */
  char *temporary; /* NULL: written directly */
  bool is_unnamed; /* the file has no name yet */
} sn_replace;

/* SN_BAD_FILE where the file or its folder cannot be written; nothing needs closing then. */
sn_status sn_replace_open(sn_replace *r, const char *path, sn_err *err);

/* Closes the file. Without an error in `err` it takes its name, with one it goes; returns err's code. */
sn_status sn_replace_close(sn_replace *r, sn_err *err);

#endif
