/* Tests of the store's file: paths and files that cannot be used are refused with the reason and left alone; damage at
 * any page is noticed; crashes, memory running out and many programs at once lose no finished run. (Rights and locks:
 * test_store_access.c.) */
#include "tests/db/store_place.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

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
  snprintf(want, sizeof want, "%s/snsim/runs.db", data);
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
  assert_string_equal(path, "/home/someone/.local/share/snsim/runs.db");
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

static void refuse_sql_file(const char *path, const char *sql, const char *why) {
  sqlite3 *db;
  size_t bytes;
  remove(path);
  assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
  assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
  sqlite3_close(db);
  char *before = slurp(path, &bytes);
  refuse_both(path, SN_BAD_INPUT, why);
  assert_untouched(path, before, bytes);
  free(before);
}

static void other_databases_are_left_alone(void **state) {
  static const char other[] = "another program's SQLite database";
  scratch *place = *state;
  refuse_sql_file(place->file, "CREATE TABLE songs(title TEXT); INSERT INTO songs VALUES ('x')", other);
  refuse_sql_file(place->file, "CREATE TABLE runs(id INTEGER PRIMARY KEY)", other);
  refuse_sql_file(place->file, "PRAGMA application_id = 252006675; CREATE TABLE a(b)", other);
  refuse_sql_file(place->file, "PRAGMA user_version = 1; CREATE TABLE a(b)", other);
  refuse_sql_file(place->file, "PRAGMA journal_mode = WAL; CREATE TABLE songs(title TEXT)", other);
}

/* Files of before the first release had other tables, and an application_id of their own. */
static void older_files_are_left_alone(void **state) {
  scratch *place = *state;
  refuse_sql_file(place->file, "PRAGMA application_id = 1936618349; PRAGMA user_version = 26; CREATE TABLE runs(id)",
                  "before the first release, with other tables (schema 26); the program of commit b2191de reads it");
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

static void damaged_pages_are_noticed(void **state) {
  scratch *place = *state;
  enum { RUNS = 24 }; /* far more pages of runs than of tables that are empty */
  make_file(place->file, RUNS);
  size_t bytes;
  char *good = slurp(place->file, &bytes);
  char *bad = malloc(bytes);
  size_t noticed = 0, pages = bytes / 4096;
  for (size_t page = 0; page < pages; page++) {
    memcpy(bad, good, bytes);
    memset(bad + page * 4096, 0xa5, 4096);
    spill(place->file, bad, bytes);
    noticed += !reads_or_refuses(place->file, RUNS);
  }
  for (size_t kept = 0; kept < pages; kept++) {
    spill(place->file, good, kept * 4096 + 2000);
    assert_false(reads_or_refuses(place->file, RUNS));
  }
  print_message("%zu of %zu damaged pages noticed (the others are not needed to read)\n", noticed, pages);
  assert_true(noticed * 2 > pages);
  spill(place->file, good, bytes);
  assert_true(reads_or_refuses(place->file, RUNS));
  free(good);
  free(bad);
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

/* The N-th request of SQLite for memory fails, and all after it. For opening: every N of the
 * first, then for N that are 2 % apart. */
static int64_t open_without_memory(void) {
  int64_t refused = 0;
  bool ran_out = true;
  for (int64_t n = 0; ran_out; n += n < 200 ? 1 : n / 50) {
    sn_err err = SN_ERR_INIT;
    allocations_left = n;
    sn_store *store = sn_store_open(":memory:", &err);
    ran_out = allocations_left <= 0;
    allocations_left = INT64_MAX;
    if (err.code != SN_OK) assert_status(SN_NO_MEMORY, &err, "memory");
    refused += err.code != SN_OK;
    sn_store_close(store);
  }
  return refused;
}

/* A run is put and read back, in a store that keeps what it has: for every N. */
static int64_t put_without_memory(sn_store *store, const sn_run *run) {
  int64_t refused = 0;
  uint32_t stored = 0;
  bool ran_out = true;
  for (int64_t n = 0; ran_out; n++) {
    sn_err err = SN_ERR_INIT, later = SN_ERR_INIT;
    int64_t id = 0;
    allocations_left = n;
    sn_store_put(store, run, &id, &err);
    sn_run *got = id ? sn_store_get(store, id, &err) : NULL;
    ran_out = allocations_left <= 0;
    allocations_left = INT64_MAX;
    if (err.code != SN_OK) assert_status(SN_NO_MEMORY, &err, "memory");
    refused += err.code != SN_OK;
    stored += id != 0;
    sn_store_list *list = sn_store_runs(store, NULL, UINT32_MAX, &later);
    assert_status(SN_OK, &later, "");
    assert_int_equal(list->count, stored);
    sn_store_list_free(list);
    sn_run_free(got);
  }
  return refused;
}

/* A clean error, and nothing stored. */
static void memory_that_runs_out_leaves_nothing(void **unused) {
  (void)unused;
  sn_err err = SN_ERR_INIT;
  sn_run *run = sample_run(SEED + 4, 30);
  sn_store *store = sn_store_open(":memory:", &err);
  assert_non_null(store);
  int64_t opening = open_without_memory(), putting = put_without_memory(store, run);
  print_message("%d failing requests of opening, %d of putting and getting\n", (int)opening, (int)putting);
  assert_true(opening > 100 && putting > 100);
  sn_store_close(store);
  sn_run_free(run);
}

int main(void) {
  sqlite3_config(SQLITE_CONFIG_GETMALLOC, &real_memory);
  sqlite3_mem_methods short_memory = real_memory;
  short_memory.xMalloc = short_malloc;
  short_memory.xRealloc = short_realloc;
  sqlite3_config(SQLITE_CONFIG_MALLOC, &short_memory);
  const struct CMUnitTest tests[] = {
      TEST(paths_that_cannot_be_used),       TEST(a_name_that_looks_like_a_uri_is_a_file),
      TEST(default_path_and_its_folders),    TEST(default_folder_that_cannot_be_made),
      TEST(other_databases_are_left_alone),  TEST(older_files_are_left_alone),
      TEST(files_that_are_no_database),      TEST(an_empty_file_becomes_a_store),
      TEST(damaged_pages_are_noticed),       TEST(killed_writers_lose_no_finished_run),
      TEST(many_programs_may_begin_at_once), cmocka_unit_test(memory_that_runs_out_leaves_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
