/* Session: trains a net on a machine by one strategy's plan after another, each from the same start, and says what was
 * measured beside what was predicted.
 *
 *   sn_session_options options = SN_SESSION_OPTIONS_INIT;
 *   sn_session *session = sn_session_open("resnet50", net, &options, &err);
 *   for (...) sn_session_add(session, strategy, &err);
 *   sn_run *run = sn_session_take(session);          a run as the simulator makes them, with measured results
 *   sn_session_close(session);
 *
 * Everything starts from the seed, so that two strategies can be compared to the bit: a result's `digest` is over the
 * losses of all iterations and, at the end, parameters, optimizer state and the last gradients. Where kernels do not
 * depend on the strategy (no optional workspaces, deterministic algorithms), equal digests are what a correct plan must
 * give.
 *
 * Operations that run side by side have numbers of threads of their own, which split sums differently: their results
 * differ from others' in the last bits. With `machine.check` each such plan is executed once more with its operations
 * one after another, with the same threads, and that must give the same bits.
 *
 * Predicted results come from playing the very same plans on the simulated device, with the machine's own needs
 * (scratch, algorithms) and the times of a calibration.
 */
#ifndef SN_EXEC_SESSION_SESSION_H
#define SN_EXEC_SESSION_SESSION_H

#include "base/err.h"
#include "exec/kernel/weights.h"
#include "exec/machine/machine.h"
#include "models/net/net.h"
#include "sim/ask/run.h"
#include "sim/ask/simulate.h"
#include "sim/device/calibration.h"
#include "sim/device/external.h"
#include "sim/policy/mix.h"
#include "sim/policy/strategy.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum sn_exec_backend { SN_EXEC_CPU, SN_EXEC_CUDA, SN_EXEC_BACKENDS } sn_exec_backend;

/* "cpu", "cuda"; parsing an unknown name is SN_BAD_USAGE. */
const char *sn_exec_backend_name(sn_exec_backend backend);
sn_status sn_exec_backend_parse(const char *text, sn_exec_backend *backend, sn_err *err);

typedef struct sn_session_options {
  sn_exec_backend backend;
  sn_machine_options machine;
  uint64_t iterations; /* at least 1; each ends with an update, behind machine.accumulate batches */
  uint64_t warmup;     /* how many of them, the first, do not count for times; the last one always counts */
  uint64_t pool_bytes; /* the pool on offer; 0: what the device has left, or as much as the plan likes where that cannot
                        * be said. Small ones make the cache work */
  bool strict_pool;    /* what needs a larger pool than pool_bytes is not trained; what needs more than the device has
                        * left never is */
  bool compare; /* keep the first result's gradients and parameters: the later ones say how far they are from it */
  sn_workspace workspace;
  const char *freeze;     /* layers that are not trained (sim/graph/freeze.h); NULL: none. Only the CPU can */
  sn_placement placement; /* as in sn_options */
  sn_corun_options corun; /* the same: of strategies whose operations run side by side */
  sn_external external;   /* where tensors go that are sent out: host, or disk (a CPU's) */
  const char *data;       /* a labelled image set; NULL: synthetic batches */
  sn_weight_files files;  /* weights to start from, weights and gradients to leave */
  bool want_steps;
  bool predict; /* also a predicted result for each strategy, before the measured one */
  /* Times of the machine's convolution algorithms, where they are newer than a calibration's; NULL: none. */
  const sn_timed_algorithms *algorithms;
  /* predict: the calibration of the machine that was opened, the session's from then on, or NULL without an error;
   * where there is none, times are the profile's, and without that they are not known and left 0. */
  sn_calibration *(*calibration)(void *user, const sn_machine_info *info, sn_err *err);
  const sn_device *profile;
  bool (*stop)(void *user); /* see sn_play_options */
  /* After each iteration, with what it did; NULL: nothing to do. */
  void (*progress)(void *user, uint64_t iteration, const sn_outcome *outcome, int64_t ns);
  /* After each iteration, with its plan and trace; NULL: nothing to do. */
  sn_status (*visit)(void *visitor, uint64_t iteration, const sn_plan *plan, const sn_trace *trace, sn_err *err);
  void *user, *visitor;
  struct sn_arena *arena; /* for the run, which owns it once it is taken; NULL: one of its own */
} sn_session_options;

#define SN_SESSION_OPTIONS_INIT                                                                                        \
  {                                                                                                                    \
    .iterations = 3, .warmup = 1, .compare = true, .workspace = SN_WORKSPACE_NONE, .corun = SN_CORUN_INIT,             \
    .machine.hyper = {.seed = 1, .learning_rate = 0.001f, .momentum = 0.9f, .weight_decay = 0.0005f},                  \
  }

typedef struct sn_session sn_session;

/* Opens the machine. SN_BAD_DEVICE where it is not there, SN_BAD_FILE and SN_BAD_INPUT of data and weights. `spec` is
 * what the user called the net; net, profile and texts must outlive the session. */
sn_session *sn_session_open(const char *spec, const sn_net *net, const sn_session_options *options, sn_err *err);

/* How many bytes at most the runs of `results` results take in an arena. */
uint64_t sn_session_run_bytes(const sn_net *net, uint32_t results);

/* Plans, checks, predicts and trains. SN_NO_FIT where this strategy, for a reason of its own, cannot be trained here,
 * others perhaps can: no plan can be made; it needs a larger pool than the device has left or, with `strict_pool`, than
 * is on offer; or the host has not the memory, which is looked at before any is filled. The run then has no result for
 * it, but a failure with the reason. What was measured before any other error or a stop is kept: the result's
 * `iterations` says how much. SN_BAD_DEVICE, SN_NO_MEMORY; SN_BUG where the plan or its execution is wrong. */
sn_status sn_session_add(sn_session *session, sn_strategy strategy, sn_err *err);

/* The same by a plan from elsewhere (sim/plan/read.h), of the graph of `strategy` for the session's iteration, that
 * sn_check() has let pass; it is looked at during the call only. Addresses, order, teams and copies are the plan's;
 * what the kernels need beyond its workspaces lies behind its pool, which grows by that. The result is called `name`.
 * On the CPU only. */
sn_status sn_session_add_plan(sn_session *session, const char *name, sn_strategy strategy, const sn_plan *plan,
                              sn_err *err);

/* Whether the operations of such a plan can run side by side on these cores; SN_BAD_USAGE says which would do. */
sn_status sn_session_check_teams(const sn_plan *plan, const sn_cores *cores, sn_err *err);

/* Co-run strategies that are added from now on run one after another with these numbers of threads; NULL: by their
 * policies again. */
void sn_session_mix(sn_session *session, const sn_mix *mix);

/* The run of everything added so far, which grows with what is added. */
sn_run *sn_session_run(sn_session *session);
/* The same; the caller's from now on. Nothing can be added any more. */
sn_run *sn_session_take(sn_session *session);
void sn_session_close(sn_session *session);

/* NULL: none. */
const sn_calibration *sn_session_calibration(const sn_session *session);
const sn_route *sn_session_route(const sn_session *session);
sn_machine *sn_session_machine(sn_session *session);

#endif
