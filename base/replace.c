/* Replacing files whole; see the header. The system does the checking: opening the old file for writing tells whether
 * it may be written at all, O_EXCL that a temporary name is nobody else's. */
#define _GNU_SOURCE /* O_TMPFILE; what has no such files does without */
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

/* The n-th temporary name in the folder of r->path. */
static void name_temporary(sn_replace *r, unsigned n) {
  const char *slash = strrchr(r->path, '/');
  size_t folder = slash ? (size_t)(slash - r->path) + 1 : 0;
  snprintf(r->temporary, folder + SUFFIX, "%.*ssnsim-%ld-%u.tmp", (int)folder, r->path, (long)getpid(), n);
}

/* The name of an open file without one. */
static const char *name_descriptor(int file, char name[SUFFIX]) {
  snprintf(name, SUFFIX, "/proc/self/fd/%d", file);
  return name;
}

/* Opens a file without a name in the folder of r->path: who is killed leaves none behind. False where the file system
 * has no such files, or they could not be given a name later. */
static bool open_unnamed(sn_replace *r, mode_t rights) {
#ifdef O_TMPFILE
  char name[SUFFIX], *slash = strrchr(r->path, '/'), kept = slash ? slash[1] : '\0';
  if (slash) slash[1] = '\0';
  r->file = open(slash ? r->path : ".", O_TMPFILE | O_RDWR | O_CLOEXEC, rights);
  if (slash) slash[1] = kept;
  r->is_unnamed = r->file >= 0 && access(name_descriptor(r->file, name), F_OK) == 0;
  if (r->file >= 0 && !r->is_unnamed) close(r->file);
#else
  (void)rights;
#endif
  return r->is_unnamed;
}

/* Opens a new file in the folder of r->path. */
static sn_status open_beside(sn_replace *r, const char *path, mode_t rights, sn_err *err) {
  r->temporary = malloc(strlen(r->path) + SUFFIX);
  if (!r->temporary) return sn_fail_memory(err);
  if (open_unnamed(r, rights)) return SN_OK;
  for (unsigned n = 0; n < ATTEMPTS; n++) {
    name_temporary(r, n);
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

/* A name is not taken over by a link, only by renaming. */
static bool give_name(sn_replace *r) {
  char name[SUFFIX];
  for (unsigned n = 0; n < ATTEMPTS; n++) {
    name_temporary(r, n);
    if (linkat(AT_FDCWD, name_descriptor(r->file, name), AT_FDCWD, r->temporary, AT_SYMLINK_FOLLOW) == 0) return true;
    if (errno != EEXIST) break;
  }
  return false;
}

/* On the disk before it has its name, so that a power cut leaves the old file or the new one, never an empty one. */
static bool is_kept(int file) {
  return fsync(file) == 0 || errno == EINVAL || errno == ENOSYS || errno == EROFS;
}

sn_status sn_replace_close(sn_replace *r, sn_err *err) {
  const char *name = r->path ? r->path : "the output";
  bool named = r->temporary && !r->is_unnamed;
  if (r->temporary && err->code == SN_OK) {
    if (!is_kept(r->file)) fail(name, err);
    if (r->is_unnamed && err->code == SN_OK) {
      named = give_name(r);
      if (!named) fail(name, err);
    }
  }
  if (close(r->file) != 0) fail(name, err);
  if (named && err->code == SN_OK && rename(r->temporary, r->path) != 0) fail(name, err);
  if (named && err->code != SN_OK) remove(r->temporary);
  forget(r);
  return err->code;
}
