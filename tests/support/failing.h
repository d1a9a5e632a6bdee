/* Failing allocations: what is tested runs again and again, and each time another allocation fails, once or from there
 * on, until none is left to fail. Each run must end with "out of host memory", or, where the C library absorbs the
 * failure (qsort needs no extra memory), with exactly the result it always has; and everything must be freed.
 *
 *   const failing_test test = {run, user, found, expected, sizeof found, &err};       run() leaves what it found as text
 *   failing_each(&test, 50);                                                          it asks 50 times or more
 *
 * malloc and its kin are replaced in a program that includes this; that needs glibc and no sanitizer. Elsewhere tests are
 * skipped.
 */
#ifndef SN_TESTS_FAILING_H
#define SN_TESTS_FAILING_H

#include "base/err.h"
#include "tests/support/pipeline.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef __has_feature
#define __has_feature(feature) 0
#endif
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) &&                           \
    !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)
#define REPLACED 1
#else
#define REPLACED 0
#endif

typedef enum failing { FAIL_ONCE, FAIL_FROM_THERE_ON, FAIL_MODES } failing;

static bool armed;
static failing mode;
static long calls, fail_at; /* counted while armed; fail_at 0: never */
static long live;           /* allocated and not freed while armed */
static long failures;

#if REPLACED
extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *old, size_t bytes);
extern void __libc_free(void *old);

static bool must_fail(void) {
  if (!armed) return false;
  calls++;
  if (fail_at == 0 || calls < fail_at || (mode == FAIL_ONCE && calls > fail_at)) return false;
  failures++;
  errno = ENOMEM;
  return true;
}

static void *counted(void *fresh) {
  if (armed && fresh) live++;
  return fresh;
}

void *malloc(size_t bytes) {
  return must_fail() ? NULL : counted(__libc_malloc(bytes));
}

void *calloc(size_t count, size_t bytes) {
  return must_fail() ? NULL : counted(__libc_calloc(count, bytes));
}

void *realloc(void *old, size_t bytes) {
  if (must_fail()) return NULL;
  return old ? __libc_realloc(old, bytes) : counted(__libc_realloc(NULL, bytes));
}

void free(void *old) {
  if (armed && old) live--;
  __libc_free(old);
}
#endif

/* What is run: it frees all it makes and leaves a text of what it found. */
typedef struct failing_test {
  void (*run)(void *user);
  void *user;
  char *found, *expected; /* room for `room` bytes each */
  size_t room;
  sn_err *err;
} failing_test;

static void failing_run(const failing_test *t, failing how, long at) {
  t->found[0] = '\0';
  *t->err = (sn_err)SN_ERR_INIT;
  mode = how;
  calls = live = failures = 0;
  fail_at = at;
  armed = true;
  t->run(t->user);
  armed = false;
}

/* The C library's own calls say no more than "cannot allocate memory". */
static bool says_memory(const sn_err *err) {
  return err->code == SN_NO_MEMORY || (err->code == SN_BAD_FILE && strstr(err->text, strerror(ENOMEM)));
}

/* The line of `text` at which it begins to differ from `other`. */
static const char *first_difference(const char *text, const char *other) {
  const char *line = text;
  for (; *text && *text == *other; text++, other++)
    if (*text == '\n') line = text + 1;
  return line;
}

/* Skips the test where nothing can be made to fail: before it makes what nobody would free then. */
static void failing_or_skip(void) {
  if (!REPLACED) skip();
}

static void failing_each(const failing_test *t, long fewest) {
  failing_or_skip();
  failing_run(t, FAIL_ONCE, 0);
  must(t->err);
  assert_int_equal(live, 0);
  long count = calls;
  assert_true(count >= fewest);
  memcpy(t->expected, t->found, t->room);
  for (failing how = 0; how < FAIL_MODES; how++)
    for (long at = 1; at <= count; at++) {
      failing_run(t, how, at);
      if (failures == 0) fail_msg("allocation %ld of %ld was not asked for", at, count);
      if (live != 0) fail_msg("allocation %ld of %ld failed: %ld not freed", at, count, live);
      if (t->err->code != SN_OK && !says_memory(t->err))
        fail_msg("allocation %ld of %ld failed: %s: %s", at, count, sn_status_name(t->err->code), t->err->text);
      if (t->err->code == SN_OK && strcmp(t->found, t->expected) != 0)
        fail_msg("allocation %ld of %ld failed, was absorbed, and changed the result from: %.80s", at, count,
                 first_difference(t->found, t->expected));
    }
  print_message("%ld allocations\n", count);
}

#endif
