/* Stored runs; see the header. */
#include "cli/frame/stored.h"

#include "base/arena.h"
#include "base/text.h"
#include "cli/frame/clash.h"
#include "cli/frame/report.h"
#include "db/calibrations.h"

#include <inttypes.h>
#include <string.h>

enum { PATH_ROOM = 4096 };

sn_run *sn_stored_run(const sn_args *args, sn_err *err) {
  char path[PATH_ROOM];
  int64_t id;
  if (sn_args_run(args, &id, err) != SN_OK || sn_args_database(args, path, sizeof path, err) != SN_OK) return NULL;
  sn_store *store = sn_store_open_read(path, err);
  sn_run *run = store ? sn_stored_take(args, store, id, err) : NULL;
  sn_store_close(store);
  return run;
}

sn_run *sn_stored_take(const sn_args *args, sn_store *store, int64_t id, sn_err *err) {
  sn_run *run = sn_store_get(store, id, err);
  if (!run || sn_clash_check_run(args, run, err) == SN_OK) return run;
  sn_run_free(run);
  return NULL;
}

sn_calibration *sn_stored_calibration(const sn_args *args, const sn_run *run, sn_err *err) {
  char path[PATH_ROOM];
  if (strcmp(run->costs, "measured") != 0 || sn_args_database(args, path, sizeof path, err) != SN_OK) return NULL;
  sn_store *store = sn_store_open_read(path, err);
  sn_calibration *c = store ? sn_store_calibration(store, run->gpu, NULL, NULL, err) : NULL;
  sn_store_close(store);
  return c;
}

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

const sn_result *sn_stored_result(const sn_args *args, const sn_run *run, sn_strategy strategy, sn_err *err) {
  char name[SN_STRATEGY_TEXT];
  sn_strategy_name(strategy, name);
  for (uint32_t i = 0; i < run->n_results; i++)
    if (strcmp(run->results[i].strategy, name) == 0) return &run->results[i];
  fail_unknown(args, run, name, err);
  return NULL;
}

const sn_result *sn_stored_choice(const sn_args *args, const sn_run *run, sn_err *err) {
  if (args->n_strategies == 1) return sn_stored_result(args, run, args->strategies[0], err);
  const sn_result *best = sn_run_best(run);
  if (!best) best = sn_report_smallest(run);
  if (!best) sn_fail(err, SN_BAD_INPUT, "run %" PRId64 " has no strategy", run->id);
  return best;
}
