/* Machine: real hardware that can train. It knows what its kernels need, holds parameters and data, and has a back end
 * that obeys plans. There are two: the CPU (exec/machine/cpu_machine.c) and CUDA (exec/machine/cuda_module.h, loaded at
 * run time).
 *
 *   sn_machine machine;
 *   sn_machine_open_cpu(route, &options, &machine, &err);
 *   machine.ops->offer(machine.self, costs, &err);         what its kernels need, for the planner
 *   sn_plan *plan = sn_lower(..., costs, ...);
 *   machine.ops->start(machine.self, state, &err);         parameters as they are in `state`
 *   machine.ops->feed(machine.self, &batch, &err);         images and labels of the next iteration
 *   sn_play_many(plan, machine.ops->backend(machine.self), ...);
 *   machine.ops->outcome(machine.self, &outcome);          of the last whole iteration
 *   machine.ops->fetch(machine.self, state, &err);         parameters, gradients, optimizer state
 *   machine.ops->close(machine.self);
 *
 * A machine is opened for one route and may play any number of plans of it, one after another. It decides nothing:
 * addresses, order, lanes and algorithms are the plan's, and every byte of tensor or workspace lies in the pool.
 */
#ifndef SN_EXEC_MACHINE_MACHINE_H
#define SN_EXEC_MACHINE_MACHINE_H

#include "base/err.h"
#include "exec/data/batch.h"
#include "exec/kernel/call.h"
#include "exec/kernel/state.h"
#include "sim/ask/run.h"
#include "sim/device/cost.h"
#include "sim/graph/pass.h"
#include "sim/play/backend.h"

#include <stdbool.h>
#include <stdint.h>

enum { SN_MACHINE_THREADS = 4096 };

typedef struct sn_machine_options {
  sn_hyper hyper;
  unsigned threads;   /* CPU: of the kernels, at most SN_MACHINE_THREADS; 0: all processors */
  bool check;         /* CPU: watch every byte of the pool; see exec/machine/cpu.h */
  uint32_t jitter_us; /* CPU: see exec/machine/lanes.h */
  const char
      *folder; /* CPU: what is sent out goes to a file there (exec/machine/outside.h); NULL: it stays in memory */
  /* CPU: batches that an update is made of, each a play of its own; 0 and 1: one. The plan is of a batch and the
   * update, which the plays before the last leave out. */
  uint32_t accumulate;
  /* CPU: what co-run plans are made for; where they are more than the processors, teams share these. NULL: estimates
   * for the machine's own. Looked at by sn_machine_open_cpu() only. */
  const sn_cores *cores;
  bool deterministic; /* CUDA: only algorithms that give the same bits every time */
  bool tf32;          /* CUDA: allow TF32 tensor cores */
} sn_machine_options;

enum { SN_MACHINE_TEXT = 128 };

typedef struct sn_machine_info {
  const char *backend;             /* "cpu", "cuda" */
  char device[SN_MACHINE_TEXT];    /* "AMD EPYC 7B13, avx2, 2 threads"; "NVIDIA H200" */
  char libraries[SN_MACHINE_TEXT]; /* "oneDNN 2.6.3"; "driver 580.65, CUDA 13.0, cuDNN 9.13.0, cuBLAS 13.0" */
  uint64_t memory_bytes;           /* of the device, as the driver or the system reports it */
  uint64_t kernel_bytes;           /* of it that making the net's kernels took, libraries apart; 0: not known */
  sn_cores cores;                  /* that co-run plans are made for; count 0: they are not executed here */
  sn_persistent persistent;        /* what lies there for the whole training, alignment included */
} sn_machine_info;

/* Of the last whole iteration. */
typedef struct sn_outcome {
  double loss;      /* mean cross-entropy, or mean square, of the batch, summed over the net's SOFTMAX layers */
  uint32_t correct; /* images, or positions, whose most likely class is their label, by the net's last SOFTMAX; 0 where
                     * there are no classes */
} sn_outcome;

/* Convolution algorithms of layers, and how long each takes; one that is not `measured` does not run here. The list is
 * the caller's, with room for SN_CONV_KERNELS x SN_CONV_ALGOS of each layer. */
typedef struct sn_timed_algorithm {
  uint32_t layer;
  sn_conv_kernel kernel;
  sn_conv_choice choice;
} sn_timed_algorithm;

typedef struct sn_timed_algorithms {
  sn_timed_algorithm *list;
  uint32_t count;
} sn_timed_algorithms;

typedef struct sn_machine_ops {
  /* Tells what the kernels need, beyond what the formulas of the cost model know: scratch of a step
   * (sn_costs_set_scratch), how values lie for them (sn_costs_set_layouts), the convolution algorithms that exist and
   * their workspaces (sn_costs_set_conv). */
  sn_status (*offer)(void *self, sn_costs *costs, sn_err *err);
  /* Bytes of workspace that a part of a step needs with so many threads, for co-run plans; NULL where info.cores has
   * none. */
  sn_status (*team_scratch)(void *self, uint32_t step, sn_step_part part, uint32_t threads, uint64_t *bytes,
                            sn_err *err);
  /* Training starts from `state`, which is looked at until close(); a CPU trains it in place. */
  sn_status (*start)(void *self, sn_state *state, sn_err *err);
  /* The batch of the next iteration; looked at until the iteration is over. */
  sn_status (*feed)(void *self, const sn_batch *batch, sn_err *err);
  /* The back end. A play must be over before the next begins. */
  sn_backend (*backend)(void *self);
  void (*outcome)(const void *self, sn_outcome *outcome);
  /* Brings parameters, gradients and what the optimizer keeps back into the state of start(). */
  sn_status (*fetch)(void *self, sn_err *err);
  /* Bytes of the device in use now beyond what was in use when the machine was opened, by whatever the system counts:
   * cudaMemGetInfo, the resident set. */
  sn_status (*used_bytes)(void *self, uint64_t *bytes, sn_err *err);
  /* The largest pool that the device can give now; NULL: it cannot be said. */
  sn_status (*room)(void *self, uint64_t *bytes, sn_err *err);
  /* Times every convolution algorithm that offer() named and that is not in the list, and adds it there. One that turns
   * out not to run is added as not `measured`, and offered no more, unless it is the only one. As such
   * it is in the list while it runs: where device or process does not survive it, the next process can go on behind
   * it. `stop`, which may be NULL, is asked before each. NULL where there is only one algorithm, whose time the trace
   * of a play has. */
  sn_status (*time_algorithms)(void *self, sn_timed_algorithms *timed, bool (*stop)(void *user), void *user,
                               sn_err *err);
  void (*close)(void *self);
} sn_machine_ops;

typedef struct sn_machine {
  void *self;
  const sn_machine_ops *ops;
  sn_machine_info info;
} sn_machine;

/* The CPU. SN_BAD_DEVICE where this build has no kernels or oneDNN fails. On an error nothing needs closing. */
sn_status sn_machine_open_cpu(const sn_route *route, const sn_machine_options *options, sn_machine *machine,
                              sn_err *err);

/* A GPU: loads the CUDA module, which lies beside the program or where it was installed. SN_BAD_DEVICE says what is
 * missing: the module, a library, a driver, a device. */
sn_status sn_machine_open_cuda(const sn_route *route, const sn_machine_options *options, sn_machine *machine,
                               sn_err *err);

#endif
