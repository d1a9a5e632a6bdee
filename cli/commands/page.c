/* `snsim report`: a stored run or sweep as one HTML page. The store keeps no plans, so a run is simulated again and
 * must come out as it was, but for what was executed, which is recorded; the page of a sweep shows what is stored. */
#include "plots/page/page.h"

#include "base/arena.h"
#include "cli/frame/file_conflict.h"
#include "cli/frame/stored.h"
#include "cli/options/options.h"
#include "db/store.h"
#include "sim/sweep/replay.h"

#include <inttypes.h>

enum { PATH_ROOM = 4096 };

typedef struct report {
  const sn_args *args;
  const sn_run *run;
  sn_page_entry *entries;
  sn_timeline **timelines; /* of the entries */
  uint32_t n_entries;
  char remedy[SN_REMEDY_TEXT]; /* what would fit, where none of the entries does; else "" */
  const sn_sweep *sweep;       /* instead of a run */
} report;

static sn_status add(report *r, const sn_result *result, sn_err *err) {
  if (result) r->entries[r->n_entries++].result = result;
  return err->code;
}

/* The strategies asked for, else all that the run was made for. */
static sn_status choose(report *r, sn_err *err) {
  const sn_run *run = r->run;
  uint32_t asked = r->args->n_strategies, room = asked ? asked : run->n_results;
  r->entries = sn_arena_alloc(run->arena, room, sizeof *r->entries);
  r->timelines = sn_arena_alloc(run->arena, room, sizeof(sn_timeline *));
  if (!r->entries || !r->timelines) return sn_fail_memory(err);
  for (uint32_t i = 0; i < asked; i++)
    if (add(r, sn_stored_result(r->args, run, r->args->strategies[i], err), err) != SN_OK) return err->code;
  for (uint32_t i = 0; i < run->n_results && !asked; i++)
    if (sn_run_is_answer(run, &run->results[i])) add(r, &run->results[i], err);
  return r->n_entries > 0 ? SN_OK : sn_fail(err, SN_BAD_INPUT, "run %" PRId64 " has no strategy", run->id);
}

/* What the command line said when the run was made, of the strategies that the page shows. */
static sn_status find_remedy(report *r, const sn_replay *replay, sn_err *err) {
  const sn_result **results = sn_arena_alloc(r->run->arena, r->n_entries, sizeof(const sn_result *));
  sn_remedy remedy;
  if (!results) return sn_fail_memory(err);
  for (uint32_t i = 0; i < r->n_entries; i++) {
    results[i] = r->entries[i].result;
    if (results[i]->fits) return SN_OK;
  }
  if (sn_replay_remedy(replay, results, r->n_entries, &remedy, err) == SN_OK) sn_remedy_print(&remedy, r->remedy);
  return err->code;
}

static sn_status simulate(report *r, sn_err *err) {
  sn_calibration *calibration = sn_stored_calibration(r->args, r->run, err);
  sn_replay *replay =
      err->code == SN_OK ? sn_replay_open(r->run, r->args->net, r->args->profile, calibration, err) : NULL;
  for (uint32_t i = 0; replay && i < r->n_entries; i++) {
    r->entries[i].timeline = r->timelines[i] = sn_replay_timeline(replay, r->entries[i].result, err);
    if (!r->timelines[i]) break;
  }
  if (replay && err->code == SN_OK && !r->run->device[0]) find_remedy(r, replay, err);
  sn_replay_free(replay);
  sn_calibration_free(calibration);
  return err->code;
}

static sn_status write_any(const report *r, FILE *out, sn_err *err) {
  if (r->sweep) return sn_page_write_sweep(r->sweep, out, err);
  return sn_page_write(r->run, r->entries, r->n_entries, *r->remedy ? r->remedy : NULL, out, err);
}

static sn_status write_page(const report *r, sn_err *err) {
  sn_out out;
  if (sn_out_open(&out, r->args->output, SN_COLOR_NEVER, err) != SN_OK) return err->code;
  if (write_any(r, out.stream, err) == SN_BAD_FILE) sn_err_prefix(err, "%.300s", r->args->output);
  if (sn_out_close(&out, err) == SN_OK && out.path) sn_out_say("%s written; open it in a browser", out.path);
  return err->code;
}

static void drop(report *r) {
  for (uint32_t i = 0; r->timelines && i < r->n_entries; i++) sn_timeline_free(r->timelines[i]);
}

static sn_status report_run(const sn_args *args, sn_err *err) {
  sn_run *run = sn_stored_run(args, err);
  if (!run) return err->code;
  report r = {.args = args, .run = run};
  if (choose(&r, err) == SN_OK && simulate(&r, err) == SN_OK) write_page(&r, err);
  drop(&r);
  sn_run_free(run);
  return err->code;
}

static sn_status report_sweep(const sn_args *args, sn_err *err) {
  char path[PATH_ROOM];
  int64_t id;
  if (args->n_strategies || args->net || args->profile)
    return sn_fail(err, SN_BAD_USAGE,
                   "--strategy, --net and --gpu need a run; the page of a sweep has all its points, and filters");
  if (sn_args_sweep(args, &id, err) != SN_OK || sn_args_database(args, path, sizeof path, err) != SN_OK)
    return err->code;
  sn_store *store = sn_store_open_read(path, err);
  sn_sweep *sweep = store ? sn_sweep_get(store, id, err) : NULL;
  sn_store_close(store);
  if (sweep && sn_file_conflict_check_sweep(args, sweep->head.grid, err) == SN_OK)
    write_page(&(const report){.args = args, .sweep = sweep}, err);
  sn_sweep_free(sweep);
  return err->code;
}

sn_status sn_cli_report(const sn_args *args, sn_err *err) {
  if (!args->output)
    return sn_fail(err, SN_BAD_USAGE, "-o FILE is missing: where the page goes; -o - is standard output");
  return sn_args_is_sweep(args) ? report_sweep(args, err) : report_run(args, err);
}
