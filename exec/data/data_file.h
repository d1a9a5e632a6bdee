/* A regular file that is read at places of the caller's choice, from any thread. It is not mapped: a mapped file that
 * shrinks would end the program with SIGBUS. Internal to exec/. */
#ifndef SN_EXEC_DATA_DATA_FILE_H
#define SN_EXEC_DATA_DATA_FILE_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>
#include <time.h>

typedef struct sn__data_file {
  const char *path; /* the caller's; looked at by errors */
  int fd;           /* -1: not open */
  uint64_t bytes;
  struct timespec changed; /* when it was last written, as of its opening */
} sn__data_file;

#define SN__DATA_FILE_INIT                                                                                             \
  { .fd = -1 }

/* All errors are SN_BAD_FILE and name the file: it is not there, no regular file (a folder, a pipe), cannot be read,
 * ends early. */
sn_status sn__data_file_open(const char *path, sn__data_file *file, sn_err *err);
sn_status sn__data_file_read(const sn__data_file *file, uint64_t offset, void *to, size_t bytes, sn_err *err);
/* Says whether somebody wrote to it since it was opened. */
sn_status sn__data_file_check_unchanged(const sn__data_file *file, sn_err *err);
void sn__data_file_close(sn__data_file *file);

#endif
