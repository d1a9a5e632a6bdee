/* Caching replay: a plan's tensors and workspaces through PyTorch's caching allocator (sim/memory/caching.h), in the
 * order in which the plan lists them: what the framework would have allocated and reserved, whatever addresses the plan
 * has.
 *
 *   before     | iteration 1                                 | iteration 2
 *   parameters | y1 y2 .. dy2 dw2 .. update (momentum made)  | y1 y2 .. dy2 dw2 .. update
 *
 * First come the blocks that stay: parameters, buffers, what libraries keep. Then two iterations, as the second is the
 * steady one: what an optimizer makes in its first step is there from its begin. A tensor is taken with its exact bytes
 * at its ALLOC and given back at its RELEASE, or at the end of the iteration; a workspace (whole KiB, as the plan has
 * it) lives in its COMPUTE alone. Copies take nothing. O(instructions x log blocks).
 *
 * A tensor is of the stream that its framework asks for it on (sn_tensor_stream()): of one of several GPUs what is
 * gathered and what is reduced have streams of their own. What is there before, what is made, and workspaces are
 * compute's.
 *
 * Of workspaces as PyTorch asks for a convolution's none is ever needed: where the driver refuses one, cached segments
 * have gone back, and the next algorithm is taken, without any (aten/src/ATen/native/cudnn/Conv_v7.cpp,
 * AlgoIterator::try_all(), which catches OutOfMemoryError). So those that are optional raise peaks up to the limit.
 *
 * Where gradients are accumulated the plan is that of one micro-batch and the update: an iteration obeys what stands
 * ahead of the updates once for every micro-batch, and gradients of parameters that the first of them makes stay until
 * the iteration is over, when the next one begins with none. But where several GPUs share parameters (fsdp): there
 * gradients are tensors of the plan, and it is that of the last micro-batch, obeyed once.
 */
#ifndef SN_SIM_PLAY_CACHING_REPLAY_H
#define SN_SIM_PLAY_CACHING_REPLAY_H

#include "base/err.h"
#include "sim/memory/caching.h"
#include "sim/plan/plan.h"

#include <stdbool.h>
#include <stdint.h>

enum { SN_CACHING_ITERATIONS = 2, SN_CACHING_MICRO_BATCHES = 3 };

/* A block that is made in a step of the first iteration, in front of what the plan lists for it, and stays. */
typedef struct sn_caching_made {
  uint32_t step; /* index into route->steps */
  uint64_t bytes;
} sn_caching_made;

typedef enum sn_caching_workspaces {
  SN_CACHING_NEEDED,
  SN_CACHING_OPTIONAL, /* where one is refused it goes on without */
  SN_CACHING_LEFT_OUT  /* none is asked for */
} sn_caching_workspaces;

/* Who looks on. */
typedef struct sn_caching_observer {
  /* Before each iteration, from 1 on, and once more behind the last. */
  void (*begins)(void *user, const sn_caching *caching, uint32_t iteration);
  /* What an instruction is given: the block of an ALLOC, the workspace of a COMPUTE. */
  void (*takes)(void *user, uint32_t instr, sn_extent block);
  /* A gradient that others are added to has become one that stays. */
  void (*stays)(void *user, sn_extent block);
  void *user;
} sn_caching_observer;

typedef struct sn_caching_load {
  uint64_t limit_bytes; /* what the allocator may reserve; SN_CACHING_NO_LIMIT */
  sn_caching_options options;
  const uint64_t *before; /* bytes of each block that is there before the first iteration, in the order of making */
  uint32_t n_before;
  const sn_caching_made *made; /* in the order in which the plan comes to their steps */
  uint32_t n_made;
  uint32_t accumulate; /* micro-batches; from 2 on gradients of parameters stay (not of fsdp). 0 and 1: one batch. Those
                        * behind SN_CACHING_MICRO_BATCHES ask for the same once more, and are not obeyed */
  sn_caching_workspaces workspaces;
  const sn_caching_observer *observer; /* NULL: nobody; not of a search for the least */
} sn_caching_load;

/* Bytes. The names of peaks are those of torch.cuda.max_memory_allocated() and max_memory_reserved(). */
typedef struct sn_caching_peak {
  uint64_t allocated_bytes, reserved_bytes;
  uint32_t step; /* index: the first in which so much is allocated; SN_NONE: none needs more than is there before */
} sn_caching_peak;

typedef struct sn_caching_replayed {
  bool fits;
  uint32_t failed_iteration,
      failed_step;       /* where it does not: 0 is before the first; index, SN_NONE before the first */
  uint64_t failed_bytes; /* what was asked for */
  sn_caching_peak iterations[SN_CACHING_ITERATIONS]; /* peaks of each, zeroes of one that was not reached */
  sn_caching_figures figures;                        /* at the end, or where it failed: peaks are those of all */
  uint64_t largest_split_bytes;                      /* sn_caching_largest_split() there */
  double fragmentation; /* 1 - allocated / reserved of the steady iteration's peaks, or of all where it failed */
} sn_caching_replayed;

/* Needs nothing of a plan but its instructions and route. A plan that does not fit is an answer (fits is false), not an
 * error. SN_NO_MEMORY; SN_BAD_USAGE for options that PyTorch refuses. */
sn_status sn_caching_replay(const sn_plan *plan, const sn_caching_load *load, sn_caching_replayed *result, sn_err *err);

/* Whether a round of a stage's plan asks for what the one behind it does (sim/parallel/rounds.h); else none stands for
 * others, and what the plan needs is not what the update needs. */
bool sn_caching_rounds_alike(const sn_plan *plan);

/* Not with optional workspaces. Replays without a limit; then a limit, in whole steps, under which the replay succeeds
 * while under a step less it does not, by bisection between what is allocated at the peak without a limit and what is
 * reserved then. With expandable segments, whose addresses depend on the limit, the latter may be too little, and the
 * edge is found to 1 KiB. Success is not monotone in the limit: the least is one edge of perhaps several. Where `load`
 * has a limit, it is one that agrees with it: no more than the limit if and only if the replay succeeds under that.
 * About two to four replays in all, and up to eight states of one at a time. SN_NO_MEMORY, and as above. */
sn_status sn_caching_least(const sn_plan *plan, const sn_caching_load *load, uint64_t step,
                           sn_caching_replayed *unlimited, uint64_t *least, sn_err *err);

#endif
