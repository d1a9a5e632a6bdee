/* Calibrate: measures a machine while it trains a net, so that simulations of it can use measured times.
 *
 *   sn_calibration *c = sn_calibrate("cpu", "resnet50", net, &options, old, &err);
 *
 * Steps are timed where they run: by training under two plans that use memory differently (baseline, and liveness with
 * recomputation), the median over iterations and over layers of the same shape. Copies are timed by plans that do
 * nothing else: each way alone and both together, large ones for bandwidth and small ones for latency. A CPU copies
 * with the processors that it computes with: there a third plan (liveness and offload) says how much copies and
 * computation slow each other (exec/session/slowing.h). Operations are timed on teams of some of the cores where that
 * is asked for (exec/session/team_times.h).
 *
 * Where the machine has a choice of convolution algorithms (CUDA), these are timed first, one by one, in a process of
 * its own:
 *
 *   sn_timed_algorithms timed = {.list = sn_arena_alloc(shared, sn_calibrate_room(net), sizeof *timed.list)};
 *   sn_calibrate_algorithms("resnet50", net, &options, &timed, &err);
 *   sn_calibrate("gpu", "resnet50", net, &options, &(sn_calibrate_wish){.timed = &timed}, &err);
 *
 * and training then takes the fastest. The process of its own is for the memory that kernels stay in once they have
 * been run, most of which nobody runs again, and for devices that do not survive an algorithm: what was timed until
 * then stands, and the next process goes on behind it.
 */
#ifndef SN_EXEC_SESSION_CALIBRATE_H
#define SN_EXEC_SESSION_CALIBRATE_H

#include "base/err.h"
#include "exec/session/session.h"
#include "sim/device/calibration.h"

#include <stdint.h>

enum { SN_TEAM_COUNTS = 16 };

/* How many algorithms of a network there are at most. */
uint32_t sn_calibrate_room(const sn_net *net);

/* Adds to `timed` what is not there yet, and nothing where the machine has no choice; options->stop ends it. After an
 * error there may be more in it than before. SN_BAD_DEVICE. */
sn_status sn_calibrate_algorithms(const char *spec, const sn_net *net, const sn_session_options *options,
                                  sn_timed_algorithms *timed, sn_err *err);

typedef struct sn_calibrate_wish {
  const sn_timed_algorithms *timed; /* NULL: none */
  /* Counts of threads, up to SN_TEAM_COUNTS, that operations are timed with as well, beside 1, half and all of the
   * machine's cores; n_teams 0: they are not. */
  const uint32_t *teams;
  uint32_t n_teams;
} sn_calibrate_wish;

/* `name` is what the device is to be called. options->calibration, where it is set, finds an earlier calibration of the
 * same device and libraries: its rates are kept, and its timings where they are not measured anew. options->iterations
 * is how often each plan is played; options->stop and progress are called as in a session. SN_BAD_USAGE for more teams
 * than it has, SN_NO_FIT where no plan fits, SN_BAD_DEVICE. */
sn_calibration *sn_calibrate(const char *name, const char *spec, const sn_net *net, const sn_session_options *options,
                             const sn_calibrate_wish *wish, sn_err *err);

/* How many plans that plays where the last of `teams` is all the machine's cores, for whoever shows progress. */
uint32_t sn_calibrate_plans(sn_exec_backend backend, const uint32_t *teams, uint32_t n_teams);

#endif
