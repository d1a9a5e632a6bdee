/* Operations of a stored run; see the header. The store keeps no plans, so they are those of a timeline. */
#include "cli/commands/operations.h"

#include "base/arena.h"
#include "cli/frame/stored.h"
#include "sim/sweep/replay.h"

static const char *slot_name(const sn_team *team) {
  if (team->count == 0) return "";
  return team->slot == SN_SLOT_ANY ? "any" : team->slot == SN_SLOT_SECOND ? "1" : "0";
}

sn_operation_row sn__operation_row(const sn_timeline *timeline, const sn_bar *bar, uint32_t operation) {
  const sn_timeline_step *step = &timeline->steps[bar->what - 1];
  return (sn_operation_row){.operation = operation,
                            .step = bar->what,
                            .layer = step->layer,
                            .op = step->op,
                            .pass = step->pass,
                            .part = sn_step_part_name((sn_step_part)bar->part),
                            .lane = sn_lane_name((sn_lane)bar->lane),
                            .first_core = bar->team.slot == SN_SLOT_ANY ? 0 : bar->team.first,
                            .cores = bar->team.count,
                            .slot = slot_name(&bar->team),
                            .rerun = bar->rerun,
                            .begin_ns = bar->begin_ns,
                            .end_ns = bar->end_ns};
}

static void write_rows(const sn_timeline *t, const sn_run *run, const sn_result *result,
                       const sn__operation_table *table) {
  uint32_t n = 0;
  for (uint32_t b = 0; b < t->n_bars; b++) {
    if (t->bars[b].kind != SN_BAR_COMPUTE) continue;
    const sn_operation_row row = sn__operation_row(t, &t->bars[b], ++n);
    table->put(table->out, run, result, &row);
  }
}

/* The results that are wanted, in an array of the run's arena; NULL on an error. */
static const sn_result **choose(const sn_args *args, const sn_run *run, uint32_t *count, sn_err *err) {
  const sn_result **chosen =
      sn_arena_alloc(run->arena, (size_t)args->n_strategies + run->n_results, sizeof(const sn_result *));
  *count = 0;
  if (!chosen) {
    sn_fail_memory(err);
    return NULL;
  }
  for (uint32_t i = 0; i < args->n_strategies && err->code == SN_OK; i++)
    chosen[(*count)++] = sn_stored_result(args, run, args->strategies[i], err);
  for (uint32_t i = 0; i < run->n_results && args->n_strategies == 0 && err->code == SN_OK; i++)
    if (sn_run_is_answer(run, &run->results[i])) chosen[(*count)++] = &run->results[i];
  return err->code == SN_OK ? chosen : NULL;
}

static sn_status write_results(const sn_replay *replay, const sn_run *run, const sn_result *const *results,
                               uint32_t count, const sn__operation_table *table, sn_err *err) {
  for (uint32_t i = 0; i < count; i++) {
    sn_timeline *t = sn_replay_timeline(replay, results[i], err);
    if (!t) return err->code;
    if (i == 0) table->begin(table->out);
    write_rows(t, run, results[i], table);
    sn_timeline_free(t);
  }
  return SN_OK;
}

sn_status sn__operations_write(const sn_args *args, const sn_run *run, const sn__operation_table *table, sn_err *err) {
  uint32_t count;
  const sn_result **results = choose(args, run, &count, err);
  if (!results) return err->code;
  sn_calibration *calibration = sn_stored_calibration(args, run, err);
  sn_replay *replay = err->code == SN_OK ? sn_replay_open(run, args->net, args->profile, calibration, err) : NULL;
  if (replay) write_results(replay, run, results, count, table, err);
  sn_replay_free(replay);
  sn_calibration_free(calibration);
  return err->code;
}
