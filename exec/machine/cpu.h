/* CPU back end: trains for real by obeying a plan. Part of the CPU's machine (exec/machine/cpu_machine.c).
 *
 * Every tensor, workspace and scratch byte lies in one pool of exactly the planned size, at the planned address; the
 * external pool is a second region, or a file on a disk (exec/machine/outside.h). Steps run on the caller's thread
 * (with the kernels' threads), copies on two threads of their own (exec/machine/lanes.h), so that the plan's fences do
 * their work. Operations of a co-run plan run on teams of processors (exec/machine/cpu_teams.h), and the caller's
 * thread only feeds.
 *
 * With `check` set the back end watches the plan as a sanitizer would: released bytes and all bytes that belong to
 * nobody are filled with a pattern that is a NaN, the spare bytes behind a tensor's end and a zone in front of and
 * behind the pool must keep theirs. SN_BUG names the instruction after which one does not.
 *
 * Where several batches make an update, each is a play of the whole plan, and all but the last leave the updates out.
 * The gradients of parameters are then means over all these batches: a kernel writes those of its own batch over the
 * sum so far, which is put aside for as long as it runs and added again. It is put into the tensors that the graph has
 * for gradients (PyTorch's), else behind the kernel's scratch, which is planned for that. The first batch has nothing
 * to put aside; it obeys the same plan.
 *
 *   sn_cpu cpu = {.route = route, .kernels = kernels, .state = state, .batch = batch, .hyper = hyper};
 *   sn_play_many(plan, sn_cpu_backend(&cpu), &options, &trace, &done, &err);
 */
#ifndef SN_EXEC_MACHINE_CPU_H
#define SN_EXEC_MACHINE_CPU_H

#include "exec/data/batch.h"
#include "exec/kernel/state.h"
#include "exec/machine/cpu_kernels.h"
#include "exec/machine/cpu_teams.h"
#include "exec/machine/lanes.h"
#include "exec/machine/machine.h"
#include "sim/play/backend.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct sn_cpu {
  /* set by the caller; looked at, must outlive the play */
  const sn_route *route;
  sn_cpu_kernels *kernels;
  sn_cpu_teams *teams; /* for co-run plans */
  sn_state *state;
  const sn_batch *batch; /* of the iteration to come */
  sn_hyper hyper;
  uint32_t accumulate; /* see sn_machine_options */
  bool check;
  uint32_t jitter_us; /* see sn_lanes_new() */
  const char *folder; /* the same as in sn_machine_options */
  sn_outcome outcome; /* of the last iteration */
  /* while playing */
  struct sn__cpu_play *play;
} sn_cpu;

sn_backend sn_cpu_backend(sn_cpu *cpu);

#endif
