/* Files that are replaced whole, and where paths lead. */
#define _GNU_SOURCE /* O_TMPFILE */
#include "base/path.h"
#include "base/replace.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* Every test runs in an empty folder of its own. */
typedef struct scratch {
  char folder[40], before[1024];
} scratch;

static int setup(void **state) {
  scratch *place = calloc(1, sizeof *place);
  *state = place;
  strcpy(place->folder, "/tmp/test_replace.XXXXXX");
  return getcwd(place->before, sizeof place->before) && mkdtemp(place->folder) && chdir(place->folder) == 0 ? 0 : -1;
}

static int teardown(void **state) {
  scratch *place = *state;
  char command[64];
  snprintf(command, sizeof command, "rm -rf '%s'", place->folder);
  int rc = chdir(place->before) || system(command);
  free(place);
  return rc;
}

static void spill(const char *path, const char *text) {
  FILE *out = fopen(path, "w");
  assert_non_null(out);
  fputs(text, out);
  assert_int_equal(fclose(out), 0);
}

static void assert_content(const char *path, const char *text) {
  char found[64] = "";
  FILE *in = fopen(path, "r");
  assert_non_null(in);
  found[fread(found, 1, sizeof found - 1, in)] = '\0';
  fclose(in);
  assert_string_equal(found, text);
}

static unsigned count_files(void) {
  DIR *all = opendir(".");
  unsigned count = 0;
  assert_non_null(all);
  for (struct dirent *one = readdir(all); one; one = readdir(all)) count += one->d_name[0] != '.';
  closedir(all);
  return count;
}

/* Writes "new" to `path`, and fails then where `fails`. */
static sn_status replace(const char *path, bool fails, sn_err *err) {
  sn_replace r;
  *err = (sn_err)SN_ERR_INIT;
  if (sn_replace_open(&r, path, err) != SN_OK) return err->code;
  assert_int_equal(write(r.file, "new", 3), 3);
  if (fails) sn_fail(err, SN_BUG, "the writer failed");
  return sn_replace_close(&r, err);
}

static void new_and_old_files(void **state) {
  (void)state;
  sn_err err;
  assert_int_equal(replace("new.txt", false, &err), SN_OK);
  assert_content("new.txt", "new");
  spill("old.txt", "the old text");
  assert_int_equal(replace("old.txt", false, &err), SN_OK);
  assert_content("old.txt", "new");
  assert_int_equal(count_files(), 2);
}

static void an_error_leaves_all_as_it_was(void **state) {
  (void)state;
  sn_err err;
  spill("old.txt", "the old text");
  assert_int_equal(replace("old.txt", true, &err), SN_BUG);
  assert_string_equal(err.text, "the writer failed");
  assert_content("old.txt", "the old text");
  assert_int_equal(replace("new.txt", true, &err), SN_BUG);
  assert_int_equal(count_files(), 1);
}

/* The old file is there, whole, until the new one is. */
static void readers_see_one_or_the_other(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_replace r, other;
  spill("old.txt", "the old text");
  assert_int_equal(sn_replace_open(&r, "old.txt", &err), SN_OK);
  assert_int_equal(sn_replace_open(&other, "old.txt", &err), SN_OK); /* two at once do not meet */
  assert_int_equal(write(r.file, "new", 3), 3);
  assert_content("old.txt", "the old text");
  assert_int_equal(sn_replace_close(&r, &err), SN_OK);
  assert_content("old.txt", "new");
  assert_int_equal(sn_replace_close(&other, &err), SN_OK);
  assert_content("old.txt", "");
  assert_int_equal(count_files(), 1);
}

static int synced;

/* In place of the C library's: whoever calls it is counted. */
int fsync(int file) {
  synced++;
  return fdatasync(file);
}

static void the_disk_has_it_before_it_has_its_name(void **state) {
  (void)state;
  sn_err err;
  synced = 0;
  assert_int_equal(replace("new.txt", false, &err), SN_OK);
  assert_int_equal(synced, 1);
  assert_int_equal(replace("new.txt", true, &err), SN_BUG); /* nothing is kept */
  assert_int_equal(synced, 1);
}

/* Where the file system knows files without names, which the test asks it itself. */
static void who_is_killed_leaves_nothing(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_replace r;
  int file = open(".", O_TMPFILE | O_RDWR, 0600);
  if (file < 0) skip();
  close(file);
  spill("old.txt", "the old text");
  assert_int_equal(sn_replace_open(&r, "old.txt", &err), SN_OK);
  assert_int_equal(write(r.file, "new", 3), 3);
  assert_int_equal(count_files(), 1);
  spill("snsim-1.txt", "");
  assert_int_equal(sn_replace_close(&r, &err), SN_OK);
  assert_content("old.txt", "new");
  assert_int_equal(count_files(), 2);
}

static unsigned rights(const char *path) {
  struct stat found;
  assert_int_equal(stat(path, &found), 0);
  return found.st_mode & 0777;
}

static void rights_are_kept(void **state) {
  (void)state;
  sn_err err;
  mode_t mask = umask(027);
  assert_int_equal(replace("new.txt", false, &err), SN_OK);
  assert_int_equal(rights("new.txt"), 0640);
  assert_int_equal(chmod("new.txt", 0606), 0);
  assert_int_equal(replace("new.txt", false, &err), SN_OK);
  assert_int_equal(rights("new.txt"), 0606);
  umask(mask);
}

static void links_are_followed(void **state) {
  (void)state;
  sn_err err;
  struct stat found;
  assert_int_equal(mkdir("there", 0755), 0);
  assert_int_equal(symlink("there/a.txt", "link"), 0);
  for (int round = 0; round < 2; round++) { /* first it leads nowhere, then to a file */
    assert_int_equal(replace("link", false, &err), SN_OK);
    assert_int_equal(lstat("link", &found), 0);
    assert_true(S_ISLNK(found.st_mode));
    assert_content("there/a.txt", "new");
    spill("there/a.txt", "old");
  }
  assert_int_equal(count_files(), 2);
}

static void what_is_no_file_is_written_directly(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_replace r;
  assert_int_equal(sn_replace_open(&r, "/dev/full", &err), SN_OK);
  assert_null(r.temporary);
  assert_int_equal(write(r.file, "x", 1), -1);
  assert_int_equal(sn_replace_close(&r, &err), SN_OK);
  assert_int_equal(replace("/dev/null", true, &err), SN_BUG);
  assert_int_equal(access("/dev/null", F_OK), 0);
}

static void places_that_cannot_be_written(void **state) {
  (void)state;
  static const struct {
    const char *path, *words;
  } cases[] = {{"missing/a.txt", "missing/a.txt: cannot be written: No such file"},
               {".", "Is a directory"},
               {"old.txt/a", "Not a directory"},
               {"", "No such file"}};
  sn_err err;
  spill("old.txt", "the old text");
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    assert_int_equal(replace(cases[i].path, false, &err), SN_BAD_FILE);
    if (!strstr(err.text, cases[i].words)) fail_msg("\"%s\": %s", cases[i].path, err.text);
  }
  assert_int_equal(symlink("loop", "loop"), 0);
  assert_int_equal(replace("loop", false, &err), SN_BAD_FILE);
  assert_int_equal(count_files(), 2);
}

static void paths_that_lead_to_one_file(void **state) {
  const scratch *place = *state;
  char whole[80];
  spill("a", "x");
  spill("b", "x");
  assert_int_equal(mkdir("there", 0755), 0);
  assert_int_equal(symlink("a", "soft"), 0);
  assert_int_equal(link("a", "hard"), 0);
  assert_int_equal(symlink("there/new", "dangling"), 0);
  assert_int_equal(symlink("loop", "loop"), 0);
  snprintf(whole, sizeof whole, "%s/a", place->folder);
  const struct {
    const char *a, *b;
    bool same;
  } cases[] = {{"a", "a", true},
               {"a", "b", false},
               {"a", "./a", true},
               {"a", "there/../a", true},
               {"a", whole, true},
               {"a", "soft", true},
               {"a", "hard", true},
               {"a", "new", false},
               {"new", "new", true},
               {"new", "./new", true},
               {"new", "newer", false},
               {"new", "there/new", false},
               {"dangling", "there/new", true},
               {"dangling", "there/../there/new", true},
               {"missing/new", "missing/new", true}, /* the folder may be made as well */
               {"missing/new", "./missing//new", true},
               {"missing/new", "there/../missing/new", true},
               {"missing/new", "missing/newer", false},
               {"missing/new", "there/missing/new", false},
               {"/missing/new", "//missing/new", true},
               {"loop", "new", false},
               {"there", "there", false}, /* no regular file */
               {"/dev/null", "/dev/null", false}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    bool same = sn_path_same(cases[i].a, cases[i].b), back = sn_path_same(cases[i].b, cases[i].a);
    if (same != cases[i].same || back != same) fail_msg("%s and %s", cases[i].a, cases[i].b);
  }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(new_and_old_files),
      TEST(an_error_leaves_all_as_it_was),
      TEST(readers_see_one_or_the_other),
      TEST(the_disk_has_it_before_it_has_its_name),
      TEST(who_is_killed_leaves_nothing),
      TEST(rights_are_kept),
      TEST(links_are_followed),
      TEST(what_is_no_file_is_written_directly),
      TEST(places_that_cannot_be_written),
      TEST(paths_that_lead_to_one_file),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
