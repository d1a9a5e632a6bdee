/* Trace: what happened when a plan was played, in the same form from every back end.
 *
 * Entry i is about instruction i of the plan: when it began and ended, in ns from the start of the iteration. Lane,
 * kind, tensor and bytes are the plan's.
 */
#ifndef SN_SIM_PLAY_TRACE_H
#define SN_SIM_PLAY_TRACE_H

#include "base/err.h"
#include "sim/plan/plan.h"

#include <stdint.h>

typedef struct sn_span {
  int64_t begin_ns, end_ns;
} sn_span;

typedef struct sn_trace {
  uint32_t n_spans; /* the plan's instructions */
  sn_span *spans;
  int64_t end_ns;             /* the iteration is over */
  int64_t busy_ns[SN_LANES];  /* lane computing or copying */
  int64_t stall_ns[SN_LANES]; /* lane waiting at a fence */
  int64_t allocation_ns;      /* spent in the device's own allocator */
  /* Of it, what stands before and behind the span of each computation that has a workspace. */
  int64_t workspace_alloc_ns, workspace_free_ns;
  int64_t known_ns; /* simulated: of the compute lane's time, what measured costs gave; the rest is formulas' */
  uint64_t events;
  struct sn_trace
      *before; /* simulated: of a batch that another one follows, where it does less than the last; or NULL */
  bool uneven; /* a round that stands for others takes another time than they (sn_rounds_of()) */
} sn_trace;

sn_status sn_trace_init(sn_trace *trace, const sn_plan *plan, sn_err *err);
void sn_trace_clear(sn_trace *trace);

/* How long a batch takes that another one follows: until its update would begin. O(instructions) */
int64_t sn_trace_batch_ns(const sn_trace *trace, const sn_plan *plan);

#endif
