/* Outside; see the header. */
#include "exec/machine/outside.h"

#include "base/units.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>
#ifdef __linux__
#include <linux/magic.h>
#include <sys/vfs.h>
#endif

enum { PATH_ROOM = 4096, PAGE = 4096 };

struct sn_outside {
  unsigned char *memory; /* NULL: it is a file */
  int file;
  char folder[PATH_ROOM]; /* for messages */
};

static const char remedy[] = "name another folder in TMPDIR, or leave out --external disk";

const char *sn_outside_folder(void) {
  const char *folder = getenv("TMPDIR");
  return folder && *folder ? folder : "/var/tmp";
}

/* Whether its files are memory. */
static bool is_memory(const char *folder) {
#ifdef __linux__
  struct statfs fs;
  return statfs(folder, &fs) == 0 && (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC);
#else
  (void)folder;
  return false;
#endif
}

sn_status sn_outside_check(const char *folder, uint64_t bytes, sn_err *err) {
  char needed[SN_UNIT_TEXT], there[SN_UNIT_TEXT];
  struct statvfs fs;
  if (statvfs(folder, &fs) != 0)
    return sn_fail(err, SN_BAD_FILE, "%.300s: cannot be looked at (%s); %s", folder, strerror(errno), remedy);
  if (is_memory(folder))
    return sn_fail(err, SN_BAD_FILE, "%.300s: lies in memory (tmpfs), which is to be spared; %s", folder, remedy);
  uint64_t left = (uint64_t)fs.f_bavail * fs.f_frsize;
  if (bytes > left)
    return sn_fail(err, SN_NO_FIT, "it sends out %s, and the disk of %.300s has %s left; make room there, or %s",
                   sn_print_bytes(bytes, needed), folder, sn_print_bytes(left, there), remedy);
  return SN_OK;
}

static sn_status fail(const sn_outside *o, const char *what, int error, sn_err *err) {
  if (error == ENOSPC || error == EDQUOT)
    return sn_fail(err, SN_BAD_FILE, "%.300s: the disk is full; make room there, or %s", o->folder, remedy);
  if (error == EFBIG)
    return sn_fail(err, SN_BAD_FILE,
                   "%.300s: the file of what is sent out may not be that large (ulimit -f); raise the limit, or leave "
                   "out --external disk",
                   o->folder);
  return sn_fail(err, SN_BAD_FILE, "%.300s: the file of what is sent out cannot be %s (%s); %s", o->folder, what,
                 strerror(error), remedy);
}

/* What is reserved is taken now, as on a GPU: every page of it. */
static sn_status open_memory(sn_outside *o, uint64_t bytes, sn_err *err) {
  char text[SN_UNIT_TEXT];
  o->memory = malloc(bytes + 1);
  if (!o->memory)
    return sn_fail(err, SN_NO_MEMORY, "the plan sends out %s, which this machine has not; choose a smaller batch",
                   sn_print_bytes(bytes, text));
  for (uint64_t at = 0; at < bytes; at += PAGE) ((volatile unsigned char *)o->memory)[at] = 0;
  return SN_OK;
}

static sn_status open_file(sn_outside *o, uint64_t bytes, sn_err *err) {
  char path[PATH_ROOM + 16];
  if (sn_outside_check(o->folder, bytes, err) != SN_OK) return err->code;
  snprintf(path, sizeof path, "%s/snsim-XXXXXX", o->folder);
  o->file = mkstemp(path);
  if (o->file < 0) return fail(o, "made", errno, err);
  if (unlink(path) != 0) return fail(o, "made", errno, err);
  int error = bytes > 0 ? posix_fallocate(o->file, 0, (off_t)bytes) : 0;
  return error ? fail(o, "made", error, err) : SN_OK;
}

sn_outside *sn_outside_new(uint64_t bytes, const char *folder, sn_err *err) {
  sn_outside *o = calloc(1, sizeof *o);
  if (!o) {
    sn_fail_memory(err);
    return NULL;
  }
  o->file = -1;
  if (folder && snprintf(o->folder, sizeof o->folder, "%s", folder) >= (int)sizeof o->folder)
    fail(o, "made", ENAMETOOLONG, err);
  else if ((folder ? open_file : open_memory)(o, bytes, err) == SN_OK)
    return o;
  sn_outside_free(o);
  return NULL;
}

void sn_outside_free(sn_outside *o) {
  if (!o) return;
  if (o->file >= 0) close(o->file);
  free(o->memory);
  free(o);
}

sn_status sn_outside_put(sn_outside *o, uint64_t offset, const void *from, uint64_t bytes, sn_err *err) {
  if (o->memory) {
    memcpy(o->memory + offset, from, bytes);
    return SN_OK;
  }
  for (uint64_t done = 0; done < bytes;) {
    ssize_t n = pwrite(o->file, (const unsigned char *)from + done, bytes - done, (off_t)(offset + done));
    if (n < 0 && errno != EINTR) return fail(o, "written", errno, err);
    if (n > 0) done += (uint64_t)n;
  }
  return SN_OK;
}

sn_status sn_outside_get(const sn_outside *o, uint64_t offset, void *to, uint64_t bytes, sn_err *err) {
  if (o->memory) {
    memcpy(to, o->memory + offset, bytes);
    return SN_OK;
  }
  for (uint64_t done = 0; done < bytes;) {
    ssize_t n = pread(o->file, (unsigned char *)to + done, bytes - done, (off_t)(offset + done));
    if (n < 0 && errno != EINTR) return fail(o, "read", errno, err);
    if (n == 0) return fail(o, "read to its end", EIO, err);
    if (n > 0) done += (uint64_t)n;
  }
  return SN_OK;
}
