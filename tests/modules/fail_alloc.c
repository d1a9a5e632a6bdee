/* To be preloaded (LD_PRELOAD): allocation number SN_FAIL_AT of a process fails, with SN_FAIL_ON set every one from
 * there on; a forked process counts on from where its parent was. At its end each process adds a line to the file
 * SN_FAIL_COUNTS: after how many it began to count, and how many there were then. Libraries' allocations count like
 * ours. Needs glibc. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *old, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);

void *memalign(size_t alignment, size_t bytes);

static atomic_long calls;
static long begun, fail_at; /* 0: never */
static bool fail_on;

static void note_fork(void) {
  begun = calls;
}

static __attribute__((constructor)) void begin(void) {
  const char *at = getenv("SN_FAIL_AT");
  fail_on = getenv("SN_FAIL_ON") != NULL;
  fail_at = at ? strtol(at, NULL, 10) : 0;
  pthread_atfork(NULL, NULL, note_fork);
  calls = 0;
}

static __attribute__((destructor)) void end(void) {
  const char *path = getenv("SN_FAIL_COUNTS");
  long count = calls;
  fail_at = 0;
  FILE *out = path ? fopen(path, "a") : NULL;
  if (out) fprintf(out, "%ld %ld\n", begun, count);
  if (out) fclose(out);
}

static bool must_fail(void) {
  long call = atomic_fetch_add(&calls, 1) + 1;
  if (fail_at == 0 || call < fail_at || (!fail_on && call > fail_at)) return false;
  errno = ENOMEM;
  return true;
}

void *malloc(size_t bytes) {
  return must_fail() ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes) {
  return must_fail() ? NULL : __libc_calloc(count, bytes);
}

void *realloc(void *old, size_t bytes) {
  return must_fail() ? NULL : __libc_realloc(old, bytes);
}

void *memalign(size_t alignment, size_t bytes) {
  return must_fail() ? NULL : __libc_memalign(alignment, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes) {
  return memalign(alignment, bytes);
}

int posix_memalign(void **place, size_t alignment, size_t bytes) {
  void *got = memalign(alignment, bytes);
  if (!got) return ENOMEM;
  *place = got;
  return 0;
}
