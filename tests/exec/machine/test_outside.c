/* Where a CPU's plans send tensors: what is put comes back, from memory and from a disk, of which nothing is left; and
 * what the disk refuses is said with what to do. */
#include "exec/machine/outside.h"

#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { BYTES = 100003, PART = 4099 };

static const char folder[] = "outside";

static unsigned entries(void) {
  unsigned count = 0;
  DIR *dir = opendir(folder);
  assert_non_null(dir);
  while (readdir(dir)) count++;
  closedir(dir);
  return count - 2; /* itself and its parent */
}

static unsigned char value(uint64_t at, unsigned round) {
  return (unsigned char)(at * 31 + at / 251 + round);
}

static void put_all(sn_outside *o, unsigned round) {
  sn_err err = SN_ERR_INIT;
  unsigned char part[PART];
  for (uint64_t at = 0; at < BYTES; at += PART) {
    const uint64_t bytes = BYTES - at < PART ? BYTES - at : PART;
    for (uint64_t i = 0; i < bytes; i++) part[i] = value(at + i, round);
    if (sn_outside_put(o, at, part, bytes, &err) != SN_OK) fail_msg("%s", err.text);
  }
}

static void comes_back(const char *where) {
  sn_err err = SN_ERR_INIT;
  unsigned char *all = malloc(BYTES);
  sn_outside *o = sn_outside_new(BYTES, where, &err);
  if (!o) fail_msg("%s", err.text);
  if (where) assert_int_equal(entries(), 0); /* it has no name, from the beginning */
  for (unsigned round = 0; round < 3; round++) {
    put_all(o, round);
    assert_int_equal(sn_outside_get(o, 0, all, BYTES, &err), SN_OK);
    for (uint64_t i = 0; i < BYTES; i++) assert_int_equal(all[i], value(i, round));
    assert_int_equal(sn_outside_get(o, 7777, all, 1, &err), SN_OK);
    assert_int_equal(all[0], value(7777, round));
  }
  sn_outside_free(o);
  free(all);
}

static void what_is_put_comes_back(void **state) {
  (void)state;
  comes_back(NULL);
  comes_back(folder);
  assert_int_equal(entries(), 0);
}

static void nothing_needs_no_room(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  for (int disk = 0; disk < 2; disk++) {
    sn_outside *o = sn_outside_new(0, disk ? folder : NULL, &err);
    assert_non_null(o);
    sn_outside_free(o);
  }
  sn_outside_free(NULL);
}

static void refuse(uint64_t bytes, const char *where, sn_status code, const char *text) {
  sn_err err = SN_ERR_INIT;
  assert_null(sn_outside_new(bytes, where, &err));
  assert_int_equal(err.code, code);
  if (!strstr(err.text, text)) fail_msg("\"%s\" does not say \"%s\"", err.text, text);
  assert_non_null(strstr(err.text, "--external disk"));
}

static void what_cannot_be(void **state) {
  (void)state;
  char deep[5000];
  memset(deep, 'd', sizeof deep - 1);
  deep[sizeof deep - 1] = '\0';
  refuse(1, "outside/none", SN_BAD_FILE, "outside/none: cannot be looked at (No such file or directory); name another");
  refuse(0, "/proc", SN_BAD_FILE, "/proc: the file of what is sent out cannot be made");
  refuse(1, deep, SN_BAD_FILE, "File name too long");
  refuse((uint64_t)1 << 60, folder, SN_NO_FIT, "it sends out 1.00 EiB, and the disk of outside has ");
  if (access("/dev/shm", W_OK) == 0) refuse(1, "/dev/shm", SN_BAD_FILE, "lies in memory (tmpfs)");
  assert_int_equal(entries(), 0);
}

/* While it is made, and while it is written. */
static void a_limit_on_files(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  struct rlimit usual, limit;
  unsigned char bytes[PART] = {0};
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &usual), 0);
  limit = (struct rlimit){BYTES / 2, usual.rlim_max};
  signal(SIGXFSZ, SIG_IGN);
  sn_outside *o = sn_outside_new(BYTES, folder, &err);
  assert_non_null(o);
  setrlimit(RLIMIT_FSIZE, &limit);
  assert_int_equal(sn_outside_put(o, 0, bytes, PART, &err), SN_OK);
  assert_int_equal(sn_outside_put(o, BYTES - PART, bytes, PART, &err), SN_BAD_FILE);
  assert_non_null(strstr(err.text, "outside: the file of what is sent out may not be that large (ulimit -f)"));
  refuse(BYTES, folder, SN_BAD_FILE, "(ulimit -f)");
  setrlimit(RLIMIT_FSIZE, &usual);
  sn_outside_free(o);
}

/* A file that somebody made shorter is no reason to wait for ever. */
static void beyond_the_end(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  unsigned char byte;
  sn_outside *o = sn_outside_new(1, folder, &err);
  assert_non_null(o);
  assert_int_equal(sn_outside_get(o, 1, &byte, 1, &err), SN_BAD_FILE);
  assert_non_null(strstr(err.text, "cannot be read to its end"));
  sn_outside_free(o);
}

static void where_it_goes(void **state) {
  (void)state;
  setenv("TMPDIR", folder, 1);
  assert_string_equal(sn_outside_folder(), folder);
  setenv("TMPDIR", "", 1);
  assert_string_equal(sn_outside_folder(), "/var/tmp");
  unsetenv("TMPDIR");
  assert_string_equal(sn_outside_folder(), "/var/tmp");
}

int main(void) {
  mkdir(folder, 0755);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_put_comes_back), cmocka_unit_test(nothing_needs_no_room),
      cmocka_unit_test(what_cannot_be),         cmocka_unit_test(a_limit_on_files),
      cmocka_unit_test(beyond_the_end),         cmocka_unit_test(where_it_goes),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  rmdir(folder);
  return failed;
}
