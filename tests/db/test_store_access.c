/* Tests of what another user or the system does not allow: reading needs no right to write and leaves nothing behind;
 * what is refused is refused with the reason, and loses no run. */
#include "tests/db/store_place.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

enum { NOBODY = 65534 };

typedef void attempt(const char *path, sn_err *err);

/* Runs an attempt in a child process that is not root, and hands back its error. */
static sn_err as_nobody(attempt *what, const char *path) {
  int ends[2];
  sn_err err = SN_ERR_INIT;
  assert_int_equal(pipe(ends), 0);
  pid_t child = fork();
  if (child == 0) {
    if (geteuid() == 0 && (setgid(NOBODY) != 0 || setuid(NOBODY) != 0)) _exit(2);
    what(path, &err);
    _exit(write(ends[1], &err, sizeof err) == (ssize_t)sizeof err ? 0 : 1);
  }
  int status;
  close(ends[1]);
  assert_int_equal(read(ends[0], &err, sizeof err), sizeof err);
  close(ends[0]);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  return err;
}

static void try_put(const char *path, sn_err *err) {
  int64_t id;
  sn_store *store = sn_store_open(path, err);
  sn_run *run = sample_run(SEED + 4, 3000);
  if (store) sn_store_put(store, run, &id, err);
  sn_run_free(run);
  sn_store_close(store);
}

static void try_get(const char *path, sn_err *err) {
  sn_store *store = sn_store_open_read(path, err);
  if (store) sn_run_free(sn_store_get(store, 1, err));
  sn_store_close(store);
}

static void refuse_nobody(attempt *what, const char *path, const char *words) {
  sn_err err = as_nobody(what, path);
  assert_status(SN_BAD_FILE, &err, words);
  assert_non_null(strstr(err.text, path));
  assert_non_null(strstr(err.text, "--db FILE"));
}

static void read_only_places(void **state) {
  scratch *place = *state;
  sn_err err;
  assert_int_equal(chmod(place->folder, 0555), 0);
  refuse_nobody(try_put, place->file, "Permission denied");
  assert_int_equal(chmod(place->folder, 0777), 0);
  err = as_nobody(try_put, place->file);
  assert_status(SN_OK, &err, "");
  assert_int_equal(chmod(place->file, 0444), 0);
  refuse_nobody(try_put, place->file, "cannot be written");
  err = as_nobody(try_get, place->file); /* reading needs no right to write anything */
  assert_status(SN_OK, &err, "");
  assert_int_equal(chmod(place->file, 0666), 0);
  assert_int_equal(chmod(place->folder, 0555), 0);
  refuse_nobody(try_put, place->file, "the file or its folder cannot be written");
  err = as_nobody(try_get, place->file);
  assert_status(SN_OK, &err, "");
  assert_int_equal(chmod(place->file, 0), 0);
  refuse_nobody(try_get, place->file, "Permission denied");
  assert_int_equal(chmod(place->folder, 0), 0);
  refuse_nobody(try_get, place->file, "Permission denied");
  assert_int_equal(chmod(place->folder, 0700), 0);
}

static bool is_there(const scratch *place, const char *ending) {
  char path[80];
  snprintf(path, sizeof path, "%s%s", place->file, ending);
  return access(path, F_OK) == 0;
}

/* -wal and -shm of a reader who may not write would lock the owner out. */
static void readers_leave_nothing_behind(void **state) {
  scratch *place = *state;
  sn_err err;
  snprintf(place->file, sizeof place->file, "%s/a b%%41?#'.db", place->folder); /* marks that mean something in URIs */
  make_file(place->file, 1);
  assert_int_equal(chmod(place->folder, 0777), 0);
  assert_int_equal(chmod(place->file, 0444), 0);
  err = as_nobody(try_get, place->file);
  assert_status(SN_OK, &err, "");
  assert_false(is_there(place, "-wal") || is_there(place, "-shm"));
  sn_store *writer = open_good(place->file); /* while it is open its files are there, and used */
  put_sample(writer, SEED + 1);
  assert_true(is_there(place, "-wal") && is_there(place, "-shm"));
  err = as_nobody(try_get, place->file);
  assert_status(SN_OK, &err, "");
  sn_store_close(writer);
  assert_false(is_there(place, "-wal") || is_there(place, "-shm"));
}

/* A reader by himself would not see what a stopped writer left in the -wal file. */
static void readers_cannot_finish_what_a_writer_began(void **state) {
  scratch *place = *state;
  char wal[80], copy[100];
  size_t bytes, log_bytes;
  sn_store *writer = open_good(place->file);
  put_sample(writer, SEED);
  snprintf(wal, sizeof wal, "%s-wal", place->file);
  char *main_part = slurp(place->file, &bytes), *log = slurp(wal, &log_bytes);
  sn_store_close(writer);
  spill(place->file, main_part, bytes);
  spill(wal, log, log_bytes);
  assert_int_equal(chmod(place->folder, 0777), 0);
  sn_err err = as_nobody(try_get, place->file);
  assert_status(SN_BAD_FILE, &err, "a program was stopped while writing");
  snprintf(copy, sizeof copy, "left %s", wal);
  assert_non_null(strstr(err.text, copy));
  assert_false(is_there(place, "-shm"));
  try_get(place->file, &(sn_err)SN_ERR_INIT); /* someone who may write opens it */
  err = as_nobody(try_get, place->file);
  assert_status(SN_OK, &err, "");
  free(main_part);
  free(log);
}

static void what_changes_while_it_is_read_is_refused(void **state) {
  scratch *place = *state;
  sn_err err = SN_ERR_INIT;
  make_file(place->file, 1);
  sn_store *reader = sn_store_open_read(place->file, &err);
  assert_status(SN_OK, &err, "");
  assert_int_equal(stat(place->file, &reader->alone), 0); /* as if this user might not write */
  reader->is_alone = true;
  sn_run_free(sn_store_get(reader, 1, &err));
  assert_status(SN_OK, &err, "");
  reader->alone.st_mtim.tv_nsec ^= 1;
  assert_null(sn_store_get(reader, 1, &err));
  assert_status(SN_BAD_FILE, &err, "wrote to it meanwhile; try again");
  err = (sn_err)SN_ERR_INIT;
  assert_null(sn_store_runs(reader, NULL, 9, &err));
  assert_status(SN_BAD_FILE, &err, "try again");
  sn_store_close(reader);
}

static void files_left_by_others_are_named(void **state) {
  scratch *place = *state;
  char left[80];
  make_file(place->file, 1);
  assert_int_equal(chmod(place->folder, 0777), 0);
  assert_int_equal(chmod(place->file, 0666), 0);
  static const char *const endings[] = {"-wal", "-shm"};
  for (int i = 0; i < 2; i++) {
    snprintf(left, sizeof left, "%s%s", place->file, endings[i]);
    spill(left, "", 0);
    assert_int_equal(chmod(left, i ? 0600 : 0400), 0);
    refuse_nobody(try_put, place->file, left);
    refuse_nobody(try_put, place->file, "left by another user");
    assert_int_equal(remove(left), 0);
  }
}

/* SQLite's limit holds for the path with links followed, from the root on. */
static void paths_too_long_for_sqlite(void **state) {
  scratch *place = *state;
  char deep[700], name[128], here[1024];
  memset(name, 'd', 99);
  name[99] = '\0';
  snprintf(deep, sizeof deep, "%s", place->folder);
  for (int i = 0; i < 4; i++) {
    snprintf(deep + strlen(deep), sizeof deep - strlen(deep), "/%s", name);
    assert_int_equal(mkdir(deep, 0755), 0);
  }
  size_t used = strlen(deep);
  assert_true(used < 490);
  memset(deep + used, 'x', sizeof deep - used);
  deep[used] = '/';
  deep[505] = '\0';
  refuse_open(deep, SN_BAD_FILE, "the full path has 505 bytes, SQLite takes no more than 504");
  assert_int_equal(access(deep, F_OK), -1); /* and no empty file is left */
  assert_non_null(getcwd(here, sizeof here));
  deep[used] = '\0';
  assert_int_equal(chdir(deep), 0);
  deep[used] = '/';
  refuse_open(deep + used + 1, SN_BAD_FILE, "the full path has 505 bytes");
  assert_int_equal(chdir(here), 0);
  deep[504] = '\0';
  make_file(deep, 1);
  sn_err err = SN_ERR_INIT;
  sn_store_close(sn_store_open_read(deep, &err));
  assert_status(SN_OK, &err, "");
}

/* A limit on the size of files stands in for a full disk: writing fails in the middle. */
static void try_put_limited(const char *path, sn_err *err) {
  struct rlimit limit = {100 * 1024, 100 * 1024};
  signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &limit);
  for (int i = 0; i < 100 && err->code == SN_OK; i++) try_put(path, err);
}

static void writing_that_fails_midway(void **state) {
  scratch *place = *state;
  assert_int_equal(chmod(place->folder, 0777), 0);
  make_file(place->file, 3);
  assert_int_equal(chmod(place->file, 0666), 0);
  refuse_nobody(try_put_limited, place->file, "");
  assert_true(reads_or_refuses(place->file, 3));
}

/* ---- waiting ---- */

static bool count_waits(void *user, int64_t ms) {
  int64_t *longest = user;
  *longest = ms;
  return true;
}

static bool give_up(void *user, int64_t ms) {
  (void)user;
  return ms < 20;
}

/* Large runs take seconds to write, and several writers take their turns as they come: 5 s was not enough. */
static void a_writer_waits_longer_than_others_write(void **state) {
  const scratch *place = *state;
  char ready[80];
  snprintf(ready, sizeof ready, "%s/ready", place->folder);
  make_file(place->file, 1);
  pid_t child = fork();
  if (child == 0) {
    sn_err err = SN_ERR_INIT;
    sn_store *store = sn_store_open(place->file, &err);
    sn__store_exec(store, "BEGIN IMMEDIATE", &err);
    spill(ready, "x", 1);
    sleep(6);
    sn__store_exec(store, "COMMIT", &err);
    _exit(0);
  }
  while (access(ready, F_OK) != 0) nanosleep(&(struct timespec){0, 1000000}, NULL);
  sn_store *store = open_good(place->file);
  int64_t longest = 0;
  sn_err err = SN_ERR_INIT;
  sn_store_set_wait(store, give_up, NULL);
  assert_int_equal(sn__store_begin(store, SN__WRITE, &err), SN_BAD_FILE);
  sn_store_set_wait(store, count_waits, &longest);
  put_sample(store, SEED);
  assert_true(longest > 1000);
  sn_store_close(store);
  assert_int_equal(waitpid(child, NULL, 0), child);
}

/* ---- files that go ---- */

static void what_is_put_into_a_deleted_file_is_not_called_stored(void **state) {
  const scratch *place = *state;
  sn_err err = SN_ERR_INIT;
  int64_t id = 0;
  sn_store *store = open_good(place->file);
  put_sample(store, SEED);
  assert_true(sn_store_is_there(store));
  assert_int_equal(remove(place->file), 0);
  assert_false(sn_store_is_there(store));
  sn_run *run = sample_run(SEED + 1, 3);
  assert_int_equal(sn_store_put(store, run, &id, &err), SN_BAD_FILE);
  assert_status(SN_BAD_FILE, &err, "was deleted or replaced");
  make_file(place->file, 1); /* another of the same name */
  err = (sn_err)SN_ERR_INIT;
  assert_int_equal(sn_store_put(store, run, &id, &err), SN_BAD_FILE);
  assert_int_equal(id, 0);
  sn_run_free(run);
  sn_store_close(store);
}

static void a_locked_file_is_waited_for_and_then_refused(void **state) {
  scratch *place = *state;
  make_file(place->file, 1);
  sn_store *first = open_good(place->file), *second = open_good(place->file);
  sn_run *run = sample_run(SEED, 30);
  sn_err err = SN_ERR_INIT;
  int64_t id = 0;
  sn__store_exec(first, "BEGIN IMMEDIATE; DELETE FROM runs", &err);
  sqlite3_busy_timeout(second->db, 50); /* the test need not wait the usual 5 s */
  assert_int_equal(sn_store_put(second, run, &id, &err), SN_BAD_FILE);
  assert_status(SN_BAD_FILE, &err, "another program is writing");
  err = (sn_err)SN_ERR_INIT;
  sn_run *got = sn_store_get(second, 1, &err); /* readers do not wait and see the old state */
  assert_status(SN_OK, &err, "");
  assert_true(is_sample(got));
  sn_run_free(got);
  sn__store_exec(first, "ROLLBACK", &err);
  assert_int_equal(sn_store_put(second, run, &id, &err), SN_OK);
  sn_run_free(run);
  sn_store_close(first);
  sn_store_close(second);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(read_only_places),
      TEST(readers_leave_nothing_behind),
      TEST(readers_cannot_finish_what_a_writer_began),
      TEST(what_changes_while_it_is_read_is_refused),
      TEST(files_left_by_others_are_named),
      TEST(paths_too_long_for_sqlite),
      TEST(writing_that_fails_midway),
      TEST(a_locked_file_is_waited_for_and_then_refused),
      TEST(a_writer_waits_longer_than_others_write),
      TEST(what_is_put_into_a_deleted_file_is_not_called_stored),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
