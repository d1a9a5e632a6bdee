/* `snsim trace`: what one strategy of a stored run does when, as a file for Perfetto or chrome://tracing. The store
 * keeps no plans, so the run is simulated again and must come out as it was; of a measured run the iteration that took
 * least is recorded. */
#include "plots/page/trace_events.h"

#include "cli/frame/stored.h"
#include "cli/options/options.h"
#include "models/zoo/zoo.h"
#include "sim/sweep/replay.h"

#include <inttypes.h>
#include <string.h>

static sn_status write_events(const sn_args *args, const sn_run *run, const sn_result *result,
                              const sn_timeline *timeline, sn_err *err) {
  sn_out out;
  char title[SN_NET_SPEC];
  sn_trace_head head = {.net = sn_net_called(run->net, run->net_name, title, sizeof title),
                        .device = run->device[0] ? run->device : run->gpu,
                        .strategy = result->strategy,
                        .version = run->version,
                        .batch = run->batch};
  if (sn_out_open(&out, args->output, SN_COLOR_NEVER, err) != SN_OK) return err->code;
  if (sn_trace_events_write(timeline, &head, out.stream, err) != SN_OK) sn_err_prefix(err, "%.300s", args->output);
  if (sn_out_close(&out, err) == SN_OK && out.path)
    sn_out_say("%s written: %s; open it at https://ui.perfetto.dev or chrome://tracing", out.path, result->strategy);
  return err->code;
}

static sn_status trace_run(const sn_args *args, const sn_run *run, sn_err *err) {
  const sn_result *result = sn_stored_choice(args, run, err);
  sn_calibration *calibration = result ? sn_stored_calibration(args, run, err) : NULL;
  sn_replay *replay =
      result && err->code == SN_OK ? sn_replay_open(run, args->net, args->profile, calibration, err) : NULL;
  sn_timeline *timeline = replay ? sn_replay_timeline(replay, result, err) : NULL;
  if (timeline) write_events(args, run, result, timeline, err);
  sn_timeline_free(timeline);
  sn_replay_free(replay);
  sn_calibration_free(calibration);
  return err->code;
}

sn_status sn_cli_trace(const sn_args *args, sn_err *err) {
  if (!args->output)
    return sn_fail(err, SN_BAD_USAGE, "-o FILE is missing: where the trace goes; -o - is standard output");
  if (args->n_strategies > 1) return sn_fail(err, SN_BAD_USAGE, "a trace is of one --strategy; make one file each");
  sn_run *run = sn_stored_run(args, err);
  if (run) trace_run(args, run, err);
  sn_run_free(run);
  return err->code;
}
