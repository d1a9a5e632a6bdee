/* Property: a sweep that is killed (SIGKILL) at random moments and gone on with loses no finished point and computes
 * none twice; in the end it has the rows of one that was left alone. A hundred kills of the program; then ten under
 * mpirun with two ranks, of which rank 0, rank 1 or mpirun itself is killed (skipped where mpirun or the module is
 * missing); then one of three ranks, in turn with a launcher that lets the others live and one that does not.
 * SN_SWEEP_KILLS sets the number of kills, SN_SEED the seed; an argument chooses among these by name ("lost*").
 *
 * After every kill: the file is sound; every point that was there before is there, unchanged, computed by the same
 * session; every new one was computed by the session that was killed, or, under mpirun, by one before it whose ranks
 * outlived their launcher for a moment. */
#include "db/sweep.h"

#include "tests/db/store_place.h"
#include "tests/support/seed.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

static const char snsim[] = SNSIM_BINARY;

/* 4,800 points of 1,200 groups, each of which takes a millisecond. */
#define GRID                                                                                                           \
  "--nets", "resnet50", "--batches", "1:400:1", "--gpus", "k40c,v100_32,t4", "--strategy", "baseline", "--strategy",   \
      "liveness+offload", "--strategy", "superneurons", "--strategy", "liveness"
enum { N_POINTS = 4800, N_STRATEGIES = 4 };

/* ---- running the program ---- */

static void run_child(const char *const *arguments) {
  int null = open("/dev/null", O_RDWR);
  dup2(null, 0);
  dup2(null, 1);
  if (!getenv("SN_SWEEP_TALK")) dup2(null, 2);
  char *copy[40];
  size_t n = 0;
  for (; arguments[n]; n++) copy[n] = strdup(arguments[n]);
  copy[n] = NULL;
  execvp(copy[0], copy);
  _exit(127);
}

static pid_t start_command(const char *const *arguments) {
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) run_child(arguments);
  return child;
}

static pid_t start(const char *file, bool fresh, bool mpi) {
  const char *const alone[] = {snsim, "sweep", GRID, "--jobs", "2", "--db", file, fresh ? "--new" : NULL, NULL};
  const char *const ranks[] = {"mpirun", "-n", "2", snsim, "sweep", GRID, "--db", file, fresh ? "--new" : NULL, NULL};
  return start_command(mpi ? ranks : alone);
}

static int finish(pid_t child) {
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  return status;
}

static void pause_us(uint32_t us) {
  struct timespec pause = {us / 1000000, (long)(us % 1000000) * 1000};
  nanosleep(&pause, NULL);
}

/* mpirun does not always notice that a rank was killed while it was starting it. */
static int finish_soon(pid_t mpirun) {
  int status;
  for (int i = 0; i < 100; i++, pause_us(50000))
    if (waitpid(mpirun, &status, WNOHANG) == mpirun) return status;
  print_message("mpirun did not end for 5 s\n");
  kill(mpirun, SIGKILL);
  return finish(mpirun);
}

/* The n-th process that mpirun has started, or mpirun itself for n = 2 or where there is none. */
static pid_t victim(pid_t mpirun, uint32_t n) {
  char path[64];
  long pids[2] = {0, 0};
  snprintf(path, sizeof path, "/proc/%ld/task/%ld/children", (long)mpirun, (long)mpirun);
  FILE *in = fopen(path, "r");
  int found = in ? fscanf(in, "%ld %ld", &pids[0], &pids[1]) : 0;
  if (in) fclose(in);
  return n < 2 && found == 2 ? (pid_t)pids[n] : mpirun;
}

/* ---- what is in the file ---- */

/* NULL where the sweep is not in the file yet. */
static sn_sweep *look(const char *file) {
  sn_err err = SN_ERR_INIT;
  sn_store *store = sn_store_open(file, &err);
  assert_status(SN_OK, &err, "");
  int64_t problems = -1, sweeps = -1;
  sn__store_number(store, "SELECT count(*) FROM pragma_quick_check WHERE quick_check <> 'ok'", &problems, &err);
  assert_int_equal(problems, 0);
  sn__store_number(store, "SELECT count(*) FROM sweeps", &sweeps, &err);
  sn_sweep *sweep = sweeps > 0 ? sn_sweep_get(store, 0, &err) : NULL;
  assert_status(SN_OK, &err, "");
  sn_store_close(store);
  return sweep;
}

static bool same_row(const sn_sweep_row *a, const sn_sweep_row *b) {
  return a->point == b->point && a->batch == b->batch && a->fits == b->fits && strcmp(a->net, b->net) == 0 &&
         strcmp(a->gpu, b->gpu) == 0 && strcmp(a->strategy, b->strategy) == 0 && strcmp(a->failure, b->failure) == 0 &&
         a->peak_device_bytes == b->peak_device_bytes && a->peak_tensor_bytes == b->peak_tensor_bytes &&
         a->pool_bytes == b->pool_bytes && a->workspace_peak_bytes == b->workspace_peak_bytes &&
         a->offload_bytes == b->offload_bytes && a->prefetch_bytes == b->prefetch_bytes &&
         a->external_bytes == b->external_bytes && a->recomputed_layers == b->recomputed_layers &&
         a->iteration_ns == b->iteration_ns && a->stall_ns == b->stall_ns &&
         a->images_per_second == b->images_per_second;
}

/* `now` has what `before` has, as it was, and beyond that only points of sessions from `first` on, in whole groups. */
static void assert_grown(const sn_sweep *before, const sn_sweep *now, uint32_t first) {
  uint32_t old = 0, n_before = before ? before->n_rows : 0;
  assert_int_equal(now->n_rows % N_STRATEGIES, 0);
  for (uint32_t i = 0; i < now->n_rows; i++) {
    const sn_sweep_row *row = &now->rows[i];
    if (old < n_before && before->rows[old].point == row->point) {
      assert_true(same_row(&before->rows[old], row));
      assert_int_equal(before->rows[old++].session, row->session);
    } else {
      assert_true(row->session >= first && row->session <= now->head.sessions);
    }
  }
  assert_int_equal(old, n_before); /* none is lost */
}

/* ---- the property ---- */

typedef struct story {
  const char *file;
  bool mpi, fresh;
  uint64_t seed;
  uint32_t within_us; /* a kill comes at a random moment within this */
  sn_sweep *before;
  uint32_t kills, useful; /* kills that hit; that found new points stored */
} story;

/* Starts the sweep, kills it after a while. Where it was finished before that, the next one begins anew. How long a
 * start takes depends on the machine and on what else it does, so the moments are moved to where half of the kills find
 * new points. */
static void one_round(story *s) {
  uint32_t wait = prng_below(&s->seed, s->within_us), who = prng_below(&s->seed, 3);
  uint32_t first = s->before && !s->fresh ? s->before->head.sessions : 0;
  pid_t child = start(s->file, s->fresh, s->mpi);
  pause_us(wait);
  kill(s->mpi ? victim(child, who) : child, SIGKILL);
  int status = s->mpi ? finish_soon(child) : finish(child);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) s->kills++;
  sn_sweep *now = look(s->file);
  if (!now) { /* killed before the sweep was begun */
    s->within_us += s->within_us / 2;
    return;
  }
  bool same = s->before && s->before->head.id == now->head.id;
  assert_grown(same ? s->before : NULL, now, same ? (s->mpi ? first : first + 1) : 1);
  bool grew = now->n_rows > (same ? s->before->n_rows : 0);
  s->useful += grew;
  s->within_us = grew ? s->within_us - s->within_us / 16 : s->within_us + s->within_us / (s->useful > 0 ? 16 : 2);
  s->fresh = now->n_rows == N_POINTS;
  sn_sweep_free(s->before);
  s->before = now;
}

static void end_alone(story *s) {
  int status = finish(start(s->file, false, s->mpi));
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
  sn_sweep *now = look(s->file);
  assert_int_equal(now->n_rows, N_POINTS);
  assert_grown(s->before, now, s->before ? s->before->head.sessions : 1);
  sn_sweep_free(s->before);
  s->before = now;
}

static void kill_and_go_on(scratch *place, bool mpi, uint32_t kills, uint64_t seed) {
  char reference[80];
  story s = {.file = place->file, .mpi = mpi, .seed = seed, .within_us = mpi ? 600000 : 15000};
  const uint32_t useful = (kills + 9) / 10;
  for (uint32_t rounds = 0; (s.kills < kills || (!mpi && s.useful < useful)) && rounds < 3 * kills + 30; rounds++)
    one_round(&s);
  end_alone(&s);
  print_message("%u kills%s, %u of them after new points were stored; %u sessions at the end\n", s.kills,
                mpi ? " under mpirun" : "", s.useful, s.before->head.sessions);
  assert_true(s.kills >= kills);
  assert_true(s.useful >= (mpi ? kills / 10 : useful));
  snprintf(reference, sizeof reference, "%s/alone.db", place->folder);
  assert_int_equal(finish(start(reference, false, false)), 0);
  sn_sweep *whole = look(reference);
  assert_int_equal(whole->n_rows, N_POINTS);
  for (uint32_t i = 0; i < N_POINTS; i++) {
    assert_true(same_row(&whole->rows[i], &s.before->rows[i]));
    assert_int_equal(whole->rows[i].session, 1);
  }
  sn_sweep_free(whole);
  sn_sweep_free(s.before);
}

static uint32_t kills_or(uint32_t own) {
  const char *given = getenv("SN_SWEEP_KILLS");
  return given ? (uint32_t)strtoul(given, NULL, 10) : case_count(own);
}

static void killed_sweeps_lose_nothing(void **state) {
  kill_and_go_on(*state, false, kills_or(100), first_seed(20260));
}

/* Two ranks on whatever there is, as root too, without ssh. */
static bool mpi_works(const char *file) {
  setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
  setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
  setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 1);
  setenv("OMPI_MCA_plm", "isolated", 1);
  setenv("ASAN_OPTIONS", "detect_leaks=0", 1); /* Open MPI's own */
  const char *const probe[] = {"mpirun",    "-n", "2",          snsim,      "sweep", "--nets", "lenet",
                               "--batches", "1",  "--strategy", "baseline", "--db",  file,     NULL};
  bool works = finish(start_command(probe)) == 0;
  remove(file);
  return works;
}

/* ---- one rank is killed, and the launcher may let the others live ---- */

static pid_t start_three(const char *file, bool recovery) {
  const char *const ranks[] = {
      "mpirun", "--mca", "orte_enable_recovery", recovery ? "1" : "0", "-n", "3", snsim, "sweep", GRID, "--db",
      file,     NULL};
  return start_command(ranks);
}

/* Kills one of the three that mpirun has started; false where they are not there (any more). */
static bool kill_one(pid_t mpirun, uint32_t which) {
  char path[64];
  long pids[3];
  snprintf(path, sizeof path, "/proc/%ld/task/%ld/children", (long)mpirun, (long)mpirun);
  FILE *in = fopen(path, "r");
  bool there = in && fscanf(in, "%ld %ld %ld", &pids[0], &pids[1], &pids[2]) == 3;
  if (in) fclose(in);
  return there && kill((pid_t)pids[which], SIGKILL) == 0;
}

/* Whether any process that mpirun has started still runs: neither ended nor waiting to be asked how it ended. */
static bool any_runs(pid_t mpirun) {
  char path[64], state = 'Z';
  long pids[3];
  snprintf(path, sizeof path, "/proc/%ld/task/%ld/children", (long)mpirun, (long)mpirun);
  FILE *in = fopen(path, "r");
  int count = in ? fscanf(in, "%ld %ld %ld", &pids[0], &pids[1], &pids[2]) : 0;
  if (in) fclose(in);
  for (int i = 0; i < count && state == 'Z'; i++) {
    snprintf(path, sizeof path, "/proc/%ld/stat", pids[i]);
    in = fopen(path, "r");
    if (in && fscanf(in, "%*d (%*[^)]) %c", &state) != 1) state = 'Z';
    if (in) fclose(in);
  }
  return state != 'Z';
}

/* Whoever waits for a rank that is gone notices within 10 s when starting (set below) and when ending, and within 30 s
 * in between. Open MPI's launcher may lock itself out when all have ended (a mutex of PMIx, in its orte_finalize());
 * then false. */
static bool must_end(pid_t mpirun, uint32_t which) {
  int status;
  for (int i = 0; i < 1200; i++, pause_us(50000))
    if (waitpid(mpirun, &status, WNOHANG) == mpirun) return true;
  bool hangs = any_runs(mpirun);
  kill(mpirun, SIGKILL);
  finish(mpirun);
  if (hangs) fail_msg("rank %u was killed, and the others did not end for 60 s", which);
  return false;
}

/* Nobody hangs, whatever the moment; what is stored is whole and right, and a sweep alone finishes it. */
static void lost_ranks_hold_nobody_up(void **state) {
  scratch *place = *state;
  uint64_t seed = first_seed(20262);
  if (!mpi_works(place->file)) {
    print_message("mpirun or snsim_mpi.so is missing\n");
    skip();
  }
  setenv("SNSIM_MPI_SECONDS", "10", 1);
  uint32_t kills[2] = {0, 0}, stuck = 0, most = (kills_or(100) + 9) / 10;
  for (uint32_t rounds = 0; kills[0] + kills[1] < most && rounds < 5 * most; rounds++) {
    uint32_t which = prng_below(&seed, 3), recovery = kills[1] <= kills[0];
    story s = {.file = place->file, .mpi = true};
    remove(place->file);
    pid_t mpirun = start_three(place->file, recovery);
    pause_us(prng_below(&seed, 1500000));
    kills[recovery] += kill_one(mpirun, which);
    stuck += !must_end(mpirun, which);
    s.before = look(place->file);
    end_alone(&s);
    sn_sweep_free(s.before);
  }
  assert_true(kills[0] + kills[1] == most);
  print_message("%u ranks killed with recovery, %u without; mpirun was stuck after all had ended %u times\n", kills[1],
                kills[0], stuck);
}

static void killed_ranks_lose_nothing(void **state) {
  scratch *place = *state;
  if (!mpi_works(place->file)) {
    print_message("mpirun or snsim_mpi.so is missing\n");
    skip();
  }
  kill_and_go_on(place, true, kills_or(100) / 10, first_seed(20261));
}

/* A single-machine sweep and two ranks: the same rows. */
static void ranks_find_the_same_rows(void **state) {
  scratch *place = *state;
  char other[80];
  if (!mpi_works(place->file)) {
    print_message("mpirun or snsim_mpi.so is missing\n");
    skip();
  }
  snprintf(other, sizeof other, "%s/ranks.db", place->folder);
  assert_int_equal(finish(start(place->file, false, false)), 0);
  assert_int_equal(finish(start(other, false, true)), 0);
  sn_sweep *a = look(place->file), *b = look(other);
  assert_true(a->n_rows == N_POINTS && b->n_rows == N_POINTS);
  for (uint32_t i = 0; i < N_POINTS; i++) assert_true(same_row(&a->rows[i], &b->rows[i]));
  sn_sweep_free(a);
  sn_sweep_free(b);
}

#define MESHES                                                                                                         \
  "--nets", "llama3:8b", "--batches", "1:2:1", "--cluster", "h100x8", "--parallels", "fsdp=1:64:x2", "--parallels",    \
      "tp=8,fsdp=1:8:x2", "--parallels", "pp=2:8:x2", "--strategy", "pytorch", "--precision", "bf16", "--optimizer",   \
      "adamw"
enum { N_MESHES = 7 + 4 + 3 };

/* Other ranks get meshes and their cluster with the grid. */
static void ranks_find_the_same_meshes(void **state) {
  scratch *place = *state;
  char other[80];
  if (!mpi_works(place->file)) {
    print_message("mpirun or snsim_mpi.so is missing\n");
    skip();
  }
  snprintf(other, sizeof other, "%s/ranks.db", place->folder);
  const char *const alone[] = {snsim, "sweep", MESHES, "--jobs", "1", "--db", place->file, NULL};
  const char *const ranks[] = {"mpirun", "-n", "2", snsim, "sweep", MESHES, "--db", other, NULL};
  assert_int_equal(finish(start_command(alone)), 0);
  assert_int_equal(finish(start_command(ranks)), 0);
  sn_sweep *a = look(place->file), *b = look(other);
  assert_true(a->n_rows == 2 * N_MESHES && b->n_rows == 2 * N_MESHES);
  for (uint32_t i = 0; i < a->n_rows; i++) {
    assert_true(same_row(&a->rows[i], &b->rows[i]) && !*a->rows[i].failure);
    assert_string_equal(a->rows[i].conditions.parallel, b->rows[i].conditions.parallel);
    assert_string_equal(b->rows[i].conditions.cluster, *b->rows[i].conditions.parallel ? "h100x8" : "");
  }
  sn_sweep_free(a);
  sn_sweep_free(b);
}

int main(int argc, char **argv) {
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  const struct CMUnitTest tests[] = {TEST(killed_sweeps_lose_nothing), TEST(ranks_find_the_same_rows),
                                     TEST(ranks_find_the_same_meshes), TEST(killed_ranks_lose_nothing),
                                     TEST(lost_ranks_hold_nobody_up)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
