/* Replacing files whole; see the header. The system does the checking: opening the old file for writing tells whether
 * it may be written at all, O_EXCL that a temporary name is nobody else's. */
#include "base/replace.h"

#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ATTEMPTS = 100, SUFFIX = 64 };

static sn_status fail(const char *path, sn_err *err) {
  return sn_fail(err, SN_BAD_FILE, "%.300s: cannot be written: %s", path, strerror(errno));
}

/* Names of descriptors: behind them may be a file that someone else is writing too. */
static bool is_descriptor(const char *path) {
  static const char *const names[] = {"/dev/std", "/dev/fd/", "/proc/"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (strncmp(path, names[i], strlen(names[i])) == 0) return true;
  return false;
}

/* Opens a new file in the folder of r->path. */
static sn_status open_beside(sn_replace *r, const char *path, mode_t rights, sn_err *err) {
  const char *slash = strrchr(r->path, '/');
  size_t folder = slash ? (size_t)(slash - r->path) + 1 : 0, room = folder + SUFFIX;
  r->temporary = malloc(room);
  if (!r->temporary) return sn_fail_memory(err);
  for (unsigned n = 0; n < ATTEMPTS; n++) {
    snprintf(r->temporary, room, "%.*ssnsim-%ld-%u.tmp", (int)folder, r->path, (long)getpid(), n);
    r->file = open(r->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, rights);
    if (r->file >= 0 || errno != EEXIST) break;
  }
  return r->file >= 0 ? SN_OK : fail(path, err);
}

/* `old` is NULL where there is no such file yet. */
static sn_status open_regular(sn_replace *r, const char *path, const struct stat *old, sn_err *err) {
  r->path = sn_path_real(path);
  if (!r->path) return fail(path, err);
  if (open_beside(r, path, old ? 0600 : 0666, err) != SN_OK || !old) return err->code;
  return fchmod(r->file, old->st_mode & 0777) == 0 ? SN_OK : fail(path, err);
}

static sn_status open_any(sn_replace *r, const char *path, sn_err *err) {
  struct stat old;
  int file = open(path, O_WRONLY | O_NOCTTY | O_CLOEXEC);
  if (file < 0) return errno == ENOENT ? open_regular(r, path, NULL, err) : fail(path, err);
  bool known = fstat(file, &old) == 0, regular = known && S_ISREG(old.st_mode);
  if (regular && !is_descriptor(path))
    open_regular(r, path, &old, err);
  else if (!known || (regular && ftruncate(file, 0) != 0))
    fail(path, err);
  else
    r->file = file;
  if (r->file != file) close(file); /* nothing was written to it */
  return err->code;
}

static void forget(sn_replace *r) {
  free(r->path);
  free(r->temporary);
  *r = (sn_replace){.file = -1};
}

sn_status sn_replace_open(sn_replace *r, const char *path, sn_err *err) {
  *r = (sn_replace){.file = -1};
  if (open_any(r, path, err) == SN_OK) return SN_OK;
  if (r->file >= 0) return sn_replace_close(r, err);
  forget(r); /* a temporary name that could not be opened is someone else's */
  return err->code;
}

sn_status sn_replace_close(sn_replace *r, sn_err *err) {
  const char *name = r->path ? r->path : "the output";
  if (close(r->file) != 0) fail(name, err);
  if (r->temporary && err->code == SN_OK && rename(r->temporary, r->path) != 0) fail(name, err);
  if (r->temporary && err->code != SN_OK) remove(r->temporary);
  forget(r);
  return err->code;
}
