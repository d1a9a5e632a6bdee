/* Paths; see the header. realpath() does the work, but for what does not exist yet: there it does for the folder. */
#define _XOPEN_SOURCE 700 /* realpath() */
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_LINKS = 40 };

static size_t folder_length(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? (size_t)(slash - path) + 1 : 0;
}

/* "<folder><name>", to be freed. */
static char *join(const char *folder, size_t length, const char *name) {
  size_t room = length + strlen(name) + 2;
  char *joined = malloc(room);
  if (joined) snprintf(joined, room, "%.*s%s", (int)length, folder, name);
  return joined;
}

/* The path of a file that is not there: its folder's path and its name. */
static char *real_missing(const char *path) {
  size_t name = folder_length(path), length = name;
  while (length > 1 && path[length - 1] == '/') length--;
  char *folder = length ? join(path, length, "") : strdup("."), *real = folder ? sn_path_real(folder) : NULL;
  free(folder);
  if (!real) return NULL;
  size_t room = strlen(real) + strlen(path + name) + 2;
  char *whole = malloc(room);
  if (whole) snprintf(whole, room, "%s/%s", strcmp(real, "/") == 0 ? "" : real, path + name);
  free(real);
  return whole;
}

/* Where the link at `path` points, or NULL where there is none. */
static char *follow(const char *path) {
  char target[PATH_MAX];
  ssize_t length = readlink(path, target, sizeof target - 1);
  if (length <= 0) return NULL;
  target[length] = '\0';
  return join(path, target[0] == '/' ? 0 : folder_length(path), target);
}

char *sn_path_real(const char *path) {
  char *at = strdup(path), *real = NULL;
  if (at) errno = ENOENT;
  for (int links = 0; at && *at && links < MOST_LINKS; links++) {
    real = realpath(at, NULL);
    if (real || errno != ENOENT) break;
    char *next = follow(at);
    if (!next && errno == ENOMEM) break;
    if (!next) {
      real = real_missing(at);
      break;
    }
    free(at);
    at = next;
  }
  int reason = errno;
  free(at);
  errno = reason;
  return real;
}

bool sn_path_same(const char *a, const char *b) {
  struct stat first, second;
  bool there = stat(a, &first) == 0;
  if (there != (stat(b, &second) == 0)) return false;
  if (there) return S_ISREG(first.st_mode) && first.st_dev == second.st_dev && first.st_ino == second.st_ino;
  char *x = sn_path_real(a), *y = sn_path_real(b);
  bool same = x && y && strcmp(x, y) == 0;
  free(x);
  free(y);
  return same;
}

const char *sn_path_input(const char *path) {
  return strcmp(path, "-") == 0 ? "/dev/stdin" : path;
}

/* ---- opening ---- */

/* Waits for what is written into a pipe. False: after a second nobody has opened it to write. *first: a byte that was
 * read to know this, or EOF. */
static bool wait_for_writer(int file, int *first) {
  enum { MILLISECONDS = 1000 };
  struct pollfd pipe = {.fd = file, .events = POLLIN};
  unsigned char byte;
  *first = EOF;
  if (poll(&pipe, 1, MILLISECONDS) != 0) return true; /* there is some, or whoever wrote has left */
  ssize_t got = read(file, &byte, 1);
  if (got == 1) *first = byte;
  return got != 0;
}

static FILE *fail_open(const char *path, const char *reason, int file, sn_err *err) {
  sn_fail(err, SN_BAD_FILE, "%.180s: cannot be opened: %s", path, reason);
  if (file >= 0) close(file);
  return NULL;
}

FILE *sn_path_open(const char *path, sn_err *err) {
  struct stat about;
  int first = EOF, file = open(sn_path_input(path), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return fail_open(path, strerror(errno), file, err);
  bool pipe = fstat(file, &about) == 0 && S_ISFIFO(about.st_mode);
  if (pipe && !wait_for_writer(file, &first)) return fail_open(path, "nobody writes to this pipe", file, err);
  FILE *stream = fcntl(file, F_SETFL, 0) == 0 ? fdopen(file, "rb") : NULL;
  if (!stream) return fail_open(path, strerror(errno), file, err);
  if (first != EOF) ungetc(first, stream);
  return stream;
}
