/* Tests of the store's file: paths and files that cannot be used are refused with the reason and left alone; damage at
 * any page is noticed; locks, crashes, memory running out and many programs at once lose no finished run. */
#include "db/store_internal.h"
#include "tests/unit/sample_run.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { SEED = 77, NOBODY = 65534 };

typedef struct scratch {
  char folder[32], file[64];
} scratch;

static int setup(void **state) {
  scratch *place = calloc(1, sizeof *place);
  *state = place;
  strcpy(place->folder, "/tmp/test_store.XXXXXX");
  if (!mkdtemp(place->folder)) return -1;
  snprintf(place->file, sizeof place->file, "%s/runs.db", place->folder);
  return 0;
}

static int teardown(void **state) {
  scratch *place = *state;
  char command[64];
  snprintf(command, sizeof command, "rm -rf '%s'", place->folder);
  int rc = system(command);
  free(place);
  return rc;
}

static void assert_status(sn_status want, const sn_err *err, const char *words) {
  if (err->code != want || !strstr(err->text, words)) print_error("%s: %s\n", sn_status_name(err->code), err->text);
  assert_int_equal(err->code, want);
  assert_non_null(strstr(err->text, words));
}

static sn_store *open_good(const char *path) {
  sn_err err = SN_ERR_INIT;
  sn_store *store = sn_store_open(path, &err);
  assert_status(SN_OK, &err, "");
  return store;
}

static void put_sample(sn_store *store, uint64_t seed) {
  sn_err err = SN_ERR_INIT;
  int64_t id;
  sn_run *run = sample_run(seed, 30);
  sn_store_put(store, run, &id, &err);
  assert_status(SN_OK, &err, "");
  sn_run_free(run);
}

static void make_file(const char *path, uint64_t runs) {
  sn_store *store = open_good(path);
  for (uint64_t i = 0; i < runs; i++) put_sample(store, SEED + i);
  sn_store_close(store);
}

static void refuse_open(const char *path, sn_status code, const char *words) {
  sn_err err = SN_ERR_INIT;
  assert_null(sn_store_open(path, &err));
  assert_status(code, &err, words);
  assert_non_null(strstr(err.text, "--db FILE"));
}

static void refuse_read(const char *path, sn_status code, const char *words) {
  sn_err err = SN_ERR_INIT;
  assert_null(sn_store_open_read(path, &err));
  assert_status(code, &err, words);
}

static void refuse_both(const char *path, sn_status code, const char *words) {
  refuse_open(path, code, words);
  refuse_read(path, code, words);
}

static char *slurp(const char *path, size_t *bytes) {
  FILE *in = fopen(path, "rb");
  assert_non_null(in);
  char *text = malloc(1 << 20);
  *bytes = fread(text, 1, 1 << 20, in);
  fclose(in);
  return text;
}

static void spill(const char *path, const void *data, size_t bytes) {
  FILE *out = fopen(path, "wb");
  assert_non_null(out);
  assert_int_equal(fwrite(data, 1, bytes, out), bytes);
  assert_int_equal(fclose(out), 0);
}

/* The text stored for the sample whose seed the run's net names. */
static bool is_sample(const sn_run *got) {
  uint64_t seed = strtoull(got->net + strlen("sample:"), NULL, 10);
  sn_run *want = sample_run(seed, 30);
  char *a = dump_run(want), *b = dump_run(got);
  bool same = strcmp(a, b) == 0;
  free(a);
  free(b);
  sn_run_free(want);
  return same;
}

/* ---- paths ---- */

static void paths_that_cannot_be_used(void **state) {
  scratch *place = *state;
  char path[128];
  refuse_both(place->folder, SN_BAD_FILE, "is a folder");
  refuse_open("", SN_BAD_FILE, "is empty");
  refuse_read("", SN_BAD_FILE, "is empty");
  refuse_both("/dev/null", SN_BAD_FILE, "not a regular file");
  snprintf(path, sizeof path, "%s/no/such/runs.db", place->folder);
  refuse_open(path, SN_BAD_FILE, "No such file");
  refuse_read(path, SN_BAD_FILE, "no runs yet");
  make_file(place->file, 1);
  snprintf(path, sizeof path, "%s/runs.db/x", place->folder);
  refuse_both(path, SN_BAD_FILE, "Not a directory");
  refuse_both("/tmp/" /* far longer than a name may be */
              "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
              "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
              "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
              SN_BAD_FILE, "File name too long");
}

static void a_name_that_looks_like_a_uri_is_a_file(void **state) {
  scratch *place = *state;
  char here[1024];
  assert_non_null(getcwd(here, sizeof here));
  assert_int_equal(chdir(place->folder), 0);
  make_file("file:a?mode=memory", 1);
  struct stat found;
  assert_int_equal(stat("./file:a?mode=memory", &found), 0);
  assert_true(found.st_size > 0);
  assert_int_equal(chdir(here), 0);
}

static void default_path_and_its_folders(void **state) {
  scratch *place = *state;
  sn_err err = SN_ERR_INIT;
  char data[128], path[256], want[256];
  snprintf(data, sizeof data, "%s/some/data", place->folder);
  setenv("XDG_DATA_HOME", data, 1);
  assert_int_equal(sn_store_default_path(path, sizeof path, &err), SN_OK);
  snprintf(want, sizeof want, "%s/snsim/snsim.db", data);
  assert_string_equal(path, want);
  refuse_read(path, SN_BAD_FILE, "no runs yet");
  make_file(path, 1);
  sn_store_close(sn_store_open_read(path, &err));
  assert_status(SN_OK, &err, "");
  assert_int_equal(sn_store_default_path(path, 10, &err), SN_BAD_FILE);
  setenv("XDG_DATA_HOME", "relative/is/ignored", 1);
  setenv("HOME", "/home/someone", 1);
  err = (sn_err)SN_ERR_INIT;
  assert_int_equal(sn_store_default_path(path, sizeof path, &err), SN_OK);
  assert_string_equal(path, "/home/someone/.local/share/snsim/snsim.db");
  unsetenv("XDG_DATA_HOME");
  unsetenv("HOME");
  assert_int_equal(sn_store_default_path(path, sizeof path, &err), SN_BAD_FILE);
  assert_status(SN_BAD_FILE, &err, "neither XDG_DATA_HOME nor HOME");
}

static void default_folder_that_cannot_be_made(void **state) {
  scratch *place = *state;
  sn_err err = SN_ERR_INIT;
  char path[256];
  spill(place->file, "x", 1);
  setenv("XDG_DATA_HOME", place->file, 1);
  assert_int_equal(sn_store_default_path(path, sizeof path, &err), SN_OK);
  refuse_open(path, SN_BAD_FILE, "Not a directory");
  setenv("XDG_DATA_HOME", "/proc/self", 1);
  assert_int_equal(sn_store_default_path(path, sizeof path, &err), SN_OK);
  refuse_open(path, SN_BAD_FILE, "cannot make this folder");
}

/* ---- files of other programs, of nobody, and damaged ones ---- */

static void assert_untouched(const char *path, const char *before, size_t bytes) {
  size_t now;
  char *after = slurp(path, &now);
  assert_int_equal(now, bytes);
  assert_memory_equal(after, before, bytes);
  free(after);
}

static void refuse_sql_file(const char *path, const char *sql) {
  sqlite3 *db;
  size_t bytes;
  remove(path);
  assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
  assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
  sqlite3_close(db);
  char *before = slurp(path, &bytes);
  refuse_both(path, SN_BAD_INPUT, "another program's SQLite database");
  assert_untouched(path, before, bytes);
  free(before);
}

static void other_databases_are_left_alone(void **state) {
  scratch *place = *state;
  refuse_sql_file(place->file, "CREATE TABLE songs(title TEXT); INSERT INTO songs VALUES ('x')");
  refuse_sql_file(place->file, "CREATE TABLE runs(id INTEGER PRIMARY KEY)");
  refuse_sql_file(place->file, "PRAGMA application_id = 252006675; CREATE TABLE a(b)");
  refuse_sql_file(place->file, "PRAGMA user_version = 1; CREATE TABLE a(b)");
  refuse_sql_file(place->file, "PRAGMA journal_mode = WAL; CREATE TABLE songs(title TEXT)");
}

static void files_that_are_no_database(void **state) {
  scratch *place = *state;
  char noise[20000];
  uint64_t random = SEED;
  for (size_t i = 0; i < sizeof noise; i++) noise[i] = (char)sample_random(&random);
  static const size_t lengths[] = {1, 15, 16, 99, 100, 511, 512, 1024, 4096, 20000};
  for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
    spill(place->file, noise, lengths[i]);
    refuse_both(place->file, SN_BAD_INPUT, "is not a snsim database or is damaged");
    assert_untouched(place->file, noise, lengths[i]);
  }
}

static void an_empty_file_becomes_a_store(void **state) {
  scratch *place = *state;
  spill(place->file, "", 0);
  refuse_read(place->file, SN_BAD_FILE, "no runs yet");
  make_file(place->file, 1);
  sn_err err = SN_ERR_INIT;
  sn_store_close(sn_store_open_read(place->file, &err));
  assert_status(SN_OK, &err, "");
}

/* What can be read of a damaged file is what was put; the rest is refused. */
static bool reads_or_refuses(const char *path, int64_t runs) {
  sn_err err = SN_ERR_INIT;
  sn_store *store = sn_store_open_read(path, &err);
  bool all = store != NULL;
  for (int64_t id = 1; store && id <= runs; id++) {
    err = (sn_err)SN_ERR_INIT;
    sn_run *run = sn_store_get(store, id, &err);
    if (run && !is_sample(run)) fail_msg("run %d came back changed", (int)id);
    all = all && run;
    sn_run_free(run);
    if (err.code != SN_OK) assert_status(SN_BAD_INPUT, &err, "");
  }
  if (!store) assert_status(SN_BAD_INPUT, &err, "");
  sn_store_close(store);
  return all;
}

static void damaged_pages_are_noticed(void **state) {
  scratch *place = *state;
  make_file(place->file, 8);
  size_t bytes;
  char *good = slurp(place->file, &bytes);
  char *bad = malloc(bytes);
  size_t noticed = 0, pages = bytes / 4096;
  for (size_t page = 0; page < pages; page++) {
    memcpy(bad, good, bytes);
    memset(bad + page * 4096, 0xa5, 4096);
    spill(place->file, bad, bytes);
    noticed += !reads_or_refuses(place->file, 8);
  }
  for (size_t kept = 0; kept < pages; kept++) {
    spill(place->file, good, kept * 4096 + 2000);
    assert_false(reads_or_refuses(place->file, 8));
  }
  print_message("%zu of %zu damaged pages noticed (the others are not needed to read)\n", noticed, pages);
  assert_true(noticed * 4 > pages * 3);
  spill(place->file, good, bytes);
  assert_true(reads_or_refuses(place->file, 8));
  free(good);
  free(bad);
}

/* ---- what another user or the system does not allow ---- */

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
  err = as_nobody(try_get, place->file); /* reading needs no right to write the file, only its folder */
  assert_status(SN_OK, &err, "");
  assert_int_equal(chmod(place->file, 0666), 0);
  make_file(place->file, 1); /* tidies up what the reader had no right to: -wal and -shm, which would do for writing */
  assert_int_equal(chmod(place->folder, 0555), 0);
  refuse_nobody(try_put, place->file, "the file or its folder cannot be written");
  refuse_nobody(try_get, place->file, "which even reading needs");
  assert_int_equal(chmod(place->file, 0), 0);
  refuse_nobody(try_get, place->file, "Permission denied");
  assert_int_equal(chmod(place->folder, 0), 0);
  refuse_nobody(try_get, place->file, "Permission denied");
  assert_int_equal(chmod(place->folder, 0700), 0);
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

/* ---- programs at once, killed, and out of memory ---- */

static void write_some(const char *path, uint64_t seed, int out) {
  sn_err err = SN_ERR_INIT;
  sn_store *store = sn_store_open(path, &err);
  for (uint64_t i = 0; store && i < 1000000; i++) {
    int64_t id = 0;
    sn_run *run = sample_run(seed + i, 30);
    if (sn_store_put(store, run, &id, &err) != SN_OK || write(out, &id, sizeof id) != (ssize_t)sizeof id) break;
    sn_run_free(run);
  }
  _exit(1);
}

static int64_t last_id(int from) {
  int64_t id, last = 0;
  while (read(from, &id, sizeof id) == (ssize_t)sizeof id) last = id;
  return last;
}

/* The file opens, is sound, holds every run up to `least` and perhaps one more, whose put had not returned yet. */
static int64_t assert_sound(const char *path, int64_t least) {
  sn_err err = SN_ERR_INIT;
  sn_store *store = open_good(path);
  int64_t problems = -1, runs = -1;
  sn__store_number(store, "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'", &problems, &err);
  assert_int_equal(problems, 0);
  sn__store_number(store, "SELECT count(*) FROM pragma_foreign_key_check", &problems, &err);
  assert_int_equal(problems, 0);
  sn__store_number(store, "SELECT count(*) FROM runs", &runs, &err);
  assert_true(runs == least || runs == least + 1);
  for (int64_t id = 1; id <= runs; id++) {
    sn_run *got = sn_store_get(store, id, &err);
    assert_status(SN_OK, &err, "");
    assert_true(is_sample(got));
    sn_run_free(got);
  }
  sn_store_close(store);
  return runs;
}

static void killed_writers_lose_no_finished_run(void **state) {
  scratch *place = *state;
  uint64_t random = SEED;
  int64_t stored = 0;
  int early = 0;
  for (uint64_t round = 0; round < 30; round++) {
    if (round % 10 == 0 && stored > 0) { /* begin anew, to be killed while the file is made */
      assert_int_equal(remove(place->file), 0);
      stored = 0;
    }
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) write_some(place->file, round * 1000, ends[1]);
    close(ends[1]);
    struct timespec pause = {0, (long)(sample_random(&random) % (round % 10 ? 30000000 : 4000000))};
    nanosleep(&pause, NULL);
    kill(child, SIGKILL);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    int64_t last = last_id(ends[0]);
    early += last == 0;
    close(ends[0]);
    stored = assert_sound(place->file, last ? last : stored);
  }
  print_message("%d of 30 killed before their first run was stored, the rest later; %d runs at the end\n", early,
                (int)stored);
}

static void many_programs_may_begin_at_once(void **state) {
  scratch *place = *state;
  pid_t children[8];
  for (uint64_t i = 0; i < 8; i++) {
    children[i] = fork();
    if (children[i] != 0) continue;
    sn_err err = SN_ERR_INIT;
    int64_t id;
    sn_store *store = sn_store_open(place->file, &err);
    for (uint64_t run = 0; store && run < 5; run++) {
      sn_run *sample = sample_run(i * 100 + run, 30);
      sn_store_put(store, sample, &id, &err);
      sn_run_free(sample);
    }
    sn_store_close(store);
    if (err.code != SN_OK) fprintf(stderr, "%s\n", err.text);
    _exit(err.code != SN_OK);
  }
  for (int i = 0; i < 8; i++) {
    int status;
    assert_int_equal(waitpid(children[i], &status, 0), children[i]);
    assert_int_equal(status, 0);
  }
  assert_int_equal(assert_sound(place->file, 40), 40);
}

static sqlite3_mem_methods real_memory;
static int64_t allocations_left = INT64_MAX;

static void *short_malloc(int bytes) {
  return allocations_left-- > 0 ? real_memory.xMalloc(bytes) : NULL;
}

static void *short_realloc(void *old, int bytes) {
  return allocations_left-- > 0 ? real_memory.xRealloc(old, bytes) : NULL;
}

/* The N-th request of SQLite for memory fails, and all after it, for every N: a clean error and nothing stored. */
static void memory_that_runs_out_leaves_nothing(void **unused) {
  (void)unused;
  sn_run *run = sample_run(SEED + 4, 30);
  int64_t refused = 0;
  for (int64_t n = 0;; n++) {
    sn_err err = SN_ERR_INIT;
    int64_t id = 0;
    allocations_left = n;
    sn_store *store = sn_store_open(":memory:", &err);
    if (store) sn_store_put(store, run, &id, &err);
    sn_run *got = id ? sn_store_get(store, id, &err) : NULL;
    bool ran_out = allocations_left <= 0;
    allocations_left = INT64_MAX;
    if (err.code != SN_OK) assert_status(SN_NO_MEMORY, &err, "memory");
    sn_err later = SN_ERR_INIT;
    sn_store_list *list = store ? sn_store_runs(store, 9, &later) : NULL;
    assert_status(SN_OK, &later, "");
    if (store) assert_int_equal(list->count, id ? 1 : 0);
    sn_store_list_free(list);
    sn_run_free(got);
    sn_store_close(store);
    refused += err.code != SN_OK;
    if (!ran_out) break;
  }
  print_message("%d failing requests\n", (int)refused);
  assert_true(refused > 100);
  sn_run_free(run);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  sqlite3_config(SQLITE_CONFIG_GETMALLOC, &real_memory);
  sqlite3_mem_methods short_memory = real_memory;
  short_memory.xMalloc = short_malloc;
  short_memory.xRealloc = short_realloc;
  sqlite3_config(SQLITE_CONFIG_MALLOC, &short_memory);
  const struct CMUnitTest tests[] = {
      TEST(paths_that_cannot_be_used),
      TEST(a_name_that_looks_like_a_uri_is_a_file),
      TEST(default_path_and_its_folders),
      TEST(default_folder_that_cannot_be_made),
      TEST(other_databases_are_left_alone),
      TEST(files_that_are_no_database),
      TEST(an_empty_file_becomes_a_store),
      TEST(damaged_pages_are_noticed),
      TEST(read_only_places),
      TEST(writing_that_fails_midway),
      TEST(a_locked_file_is_waited_for_and_then_refused),
      TEST(killed_writers_lose_no_finished_run),
      TEST(many_programs_may_begin_at_once),
      cmocka_unit_test(memory_that_runs_out_leaves_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
