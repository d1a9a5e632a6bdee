/* Files read at places; see the header. */
#include "exec/data/data_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static sn_status fail_errno(const char *path, sn_err *err) {
  char reason[100];
  if (strerror_r(errno, reason, sizeof reason) != 0) strcpy(reason, "unknown error");
  return sn_fail(err, SN_BAD_FILE, "%.300s: %s", path, reason);
}

static sn_status look(sn__data_file *file, sn_err *err) {
  struct stat info;
  if (fstat(file->fd, &info) != 0) return fail_errno(file->path, err);
  if (!S_ISREG(info.st_mode))
    return sn_fail(err, SN_BAD_FILE, "%.300s: is no regular file; data are read from their places in a file",
                   file->path);
  file->bytes = (uint64_t)info.st_size;
  file->changed = info.st_mtim;
  return SN_OK;
}

/* O_NONBLOCK: opening a pipe that nobody writes to must not wait. */
sn_status sn__data_file_open(const char *path, sn__data_file *file, sn_err *err) {
  *file = (sn__data_file){.path = path, .fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file->fd < 0) return fail_errno(path, err);
  if (look(file, err) != SN_OK) sn__data_file_close(file);
  return err->code;
}

sn_status sn__data_file_read(const sn__data_file *file, uint64_t offset, void *to, size_t bytes, sn_err *err) {
  for (size_t done = 0; done < bytes;) {
    size_t rest = bytes - done;
    ssize_t got = pread(file->fd, (char *)to + done, rest < SSIZE_MAX ? rest : SSIZE_MAX, (off_t)(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno(file->path, err);
    if (got == 0) return sn_fail(err, SN_BAD_FILE, "%.300s: ends early; was it changed just now?", file->path);
    done += (size_t)got;
  }
  return SN_OK;
}

sn_status sn__data_file_check_unchanged(const sn__data_file *file, sn_err *err) {
  sn__data_file now = *file;
  if (look(&now, err) != SN_OK) return err->code;
  if (now.bytes == file->bytes && now.changed.tv_sec == file->changed.tv_sec &&
      now.changed.tv_nsec == file->changed.tv_nsec)
    return SN_OK;
  return sn_fail(err, SN_BAD_FILE, "%.300s: was changed after the training began; start it again", file->path);
}

void sn__data_file_close(sn__data_file *file) {
  if (file->fd >= 0) close(file->fd);
  file->fd = -1;
}
