/* Stored runs; see the header. */
#include "cli/frame/stored.h"

#include "base/arena.h"
#include "base/text.h"
#include "cli/frame/file_conflict.h"
#include "cli/frame/report.h"
#include "db/calibrations.h"
#include "sim/capacity/answer.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_ROOM = 4096, SHOWN_MS = 1000 };

sn_status sn_stored_number(const sn_args *args, sn_store *store, uint32_t index, int64_t *id, sn_err *err) {
  const char *name;
  if (sn_args_run_at(args, index, id, &name, err) != SN_OK || !name) return err->code;
  if (sn_store_find(store, name, id, err) != SN_OK || *id > 0) return err->code;
  return sn_fail(err, SN_BAD_USAGE,
                 "there is no run \"%.80s\": give its number, its name, or \"last\"; snsim show lists the runs", name);
}

sn_run *sn_stored_run(const sn_args *args, sn_err *err) {
  char path[PATH_ROOM];
  int64_t id;
  const char *name;
  if (sn_args_run_at(args, 0, &id, &name, err) != SN_OK || sn_args_database(args, path, sizeof path, err) != SN_OK)
    return NULL;
  sn_store *store = sn_store_open_read(path, err);
  sn_run *run =
      store && sn_stored_number(args, store, 0, &id, err) == SN_OK ? sn_stored_take(args, store, id, err) : NULL;
  sn_store_close(store);
  return run;
}

static sn_runtime runtime_of(const sn_result *result) {
  sn_err unknown = SN_ERR_INIT;
  sn_strategy strategy;
  return sn_strategy_parse(result->strategy, &strategy, &unknown) == SN_OK ? sn_runtime_of(strategy) : SN_RUNTIME_ALL;
}

/* Of the results those of --for's runtime; the verdict goes where it is of another. */
static sn_status narrow(const sn_args *args, sn_run *run, sn_err *err) {
  uint32_t kept = 0;
  if (args->runtime == SN_RUNTIME_DEFAULT || args->runtime == SN_RUNTIME_ALL) return SN_OK;
  sn_result *results = sn_arena_alloc(run->arena, (size_t)run->n_results + 1, sizeof *results);
  if (!results) return sn_fail_memory(err);
  for (uint32_t i = 0; i < run->n_results; i++)
    if (runtime_of(&run->results[i]) == args->runtime) results[kept++] = run->results[i];
  if (kept == 0)
    return sn_fail(err, SN_BAD_USAGE,
                   "--for %s: run %" PRId64 " has no strategy of it; snsim show %" PRId64 " lists those it has",
                   sn_runtime_name(args->runtime), run->id, run->id);
  run->results = results;
  run->n_results = kept;
  sn_answer *answer = *run->answer ? sn_answer_read(run->answer, err) : NULL;
  if (!answer || answer->runtime != args->runtime) run->answer = "";
  sn_answer_free(answer);
  return err->code;
}

sn_run *sn_stored_take(const sn_args *args, sn_store *store, int64_t id, sn_err *err) {
  sn_run *run = sn_store_get(store, id, err);
  if (!run || (sn_file_conflict_check_run(args, run, err) == SN_OK && narrow(args, run, err) == SN_OK)) return run;
  sn_run_free(run);
  return NULL;
}

sn_calibration *sn_stored_calibration(const sn_args *args, const sn_run *run, sn_err *err) {
  char path[PATH_ROOM];
  if (run->device[0] || strcmp(run->costs, "measured") != 0 || sn_args_database(args, path, sizeof path, err) != SN_OK)
    return NULL;
  sn_store *store = sn_store_open_read(path, err);
  sn_calibration *c = store ? sn_store_calibration(store, run->gpu, NULL, NULL, err) : NULL;
  sn_store_close(store);
  return c;
}

bool sn_stored_is_nothing(const char *path) {
  struct stat found;
  if (stat(path, &found) == 0) return S_ISREG(found.st_mode) && found.st_size == 0;
  return errno == ENOENT || errno == ENOTDIR;
}

sn_calibration *sn_stored_costs(const sn_args *args, const char *name, const char *hardware, const char *libraries,
                                sn_err *unread) {
  char path[PATH_ROOM];
  sn_err nowhere = SN_ERR_INIT; /* without a home there is no store, unless one is named */
  if (args->costs == SN_COSTS_MODEL) return NULL;
  if (sn_args_database(args, path, sizeof path, args->db ? unread : &nowhere) != SN_OK) return NULL;
  if (sn_stored_is_nothing(path)) return NULL;
  sn_store *store = sn_store_open_read(path, unread);
  sn_calibration *c = store ? sn_store_calibration(store, name, hardware, libraries, unread) : NULL;
  sn_store_close(store);
  return c;
}

void sn_stored_say_unread(const sn_err *unread) {
  sn_out_say("costs are the formulas'; what may have been measured cannot be read (--costs model does without): %s",
             unread->text);
}

/* ---- writing ---- */

sn_status sn_stored_check(const sn_args *args, sn_err *err) {
  char path[PATH_ROOM];
  if (!args->no_db && sn_args_database(args, path, sizeof path, err) == SN_OK) sn_store_close(sn_store_open(path, err));
  return err->code;
}

/* Who writes a large run, or several at once, keeps others waiting; a user should see for what. */
static bool show_waiting(void *unused, int64_t ms) {
  (void)unused;
  if (ms >= SHOWN_MS) sn_out_progress("another program is writing to the database; waiting ...");
  return true;
}

static sn_status write_to(const char *path, sn_stored_put *put, void *what, sn_err *err) {
  sn_store *store = sn_store_open(path, err);
  if (store) {
    sn_store_set_wait(store, show_waiting, NULL);
    put(store, what, err);
    sn_out_progress(NULL);
  }
  sn_store_close(store);
  return err->code;
}

sn_status sn_stored_write(const sn_args *args, sn_stored_put *put, void *what, char path[SN_STORED_PATH], sn_err *err) {
  path[0] = '\0';
  if (sn_args_database(args, path, SN_STORED_PATH, err) == SN_OK) write_to(path, put, what, err);
  return err->code;
}

bool sn_stored_rescue(const sn_args *args, sn_stored_put *put, void *what, char path[SN_STORED_PATH]) {
  char database[PATH_ROOM];
  sn_err first = SN_ERR_INIT, second = SN_ERR_INIT;
  if (sn_args_database(args, database, sizeof database, &first) == SN_OK) {
    snprintf(path, SN_STORED_PATH, "%s.rescued-%ld", database, (long)getpid());
    if (write_to(path, put, what, &first) == SN_OK) return true;
  }
  snprintf(path, SN_STORED_PATH, "snsim-rescued-%ld.db", (long)getpid());
  return write_to(path, put, what, &second) == SN_OK;
}

/* ---- results ---- */

static void fail_unknown(const sn_args *args, const sn_run *run, const char *strategy, sn_err *err) {
  char hint[128] = "", db[SN_ARGS_DB_ROOM];
  const char **names = sn_arena_alloc(run->arena, run->n_results, sizeof *names);
  if (!names) {
    sn_fail_memory(err);
    return;
  }
  for (uint32_t i = 0; i < run->n_results; i++) names[i] = run->results[i].strategy;
  sn_text_suggest(strategy, names, run->n_results, hint, sizeof hint);
  sn_fail(err, SN_BAD_USAGE,
          "run %" PRId64 " has no strategy \"%.100s\"%s; snsim show %" PRId64 "%s lists those it has", run->id,
          strategy, hint, run->id, sn_args_db_option(args, db));
}

static const sn_result *find_named(const sn_run *run, const char *name) {
  for (uint32_t i = 0; i < run->n_results; i++)
    if (sn_run_is_answer(run, &run->results[i]) && strcmp(run->results[i].strategy, name) == 0) return &run->results[i];
  return NULL;
}

const sn_result *sn_stored_result(const sn_args *args, const sn_run *run, sn_strategy strategy, sn_err *err) {
  char name[SN_STRATEGY_TEXT];
  const sn_result *found = find_named(run, sn_strategy_name(strategy, name));
  if (!found) fail_unknown(args, run, name, err);
  return found;
}

const sn_result *sn_stored_choice(const sn_args *args, const sn_run *run, sn_err *err) {
  if (args->n_strategies == 1) return sn_stored_result(args, run, args->strategies[0], err);
  sn_answer *answer = *run->answer ? sn_answer_read(run->answer, err) : NULL;
  const sn_result *best = answer ? find_named(run, answer->strategy) : NULL;
  sn_answer_free(answer);
  if (err->code != SN_OK) return NULL;
  if (!best) best = sn_run_best(run);
  if (!best) best = sn_report_smallest(run);
  if (!best) sn_fail(err, SN_BAD_INPUT, "run %" PRId64 " has no strategy", run->id);
  return best;
}
