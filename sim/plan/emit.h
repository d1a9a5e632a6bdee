/* Emitter (internal to sim/): writes instructions and keeps them right.
 *
 * The lowering (sim/plan/lower.c) says what should happen next in serial order: allocate, copy, compute, release. The
 * emitter gives every tensor its address, puts the fences in that make the order hold on lanes that run side by side,
 * runs the LRU cache where the strategy has one, and meters bytes per step.
 *
 * Fences. Every lane counts its instructions; for each tensor the emitter knows the last instruction of each lane that
 * touched and that wrote it, and for each lane up to where it is known to be behind the others (a vector clock). Only
 * where that is not far enough a wait is written, on the earliest fence that reaches far enough, or a new one.
 *
 * Cache ([SN] algorithm 2). All resident tensors stand in a list, most recently used first. Where the pool has no hole
 * for an allocation, unlocked tensors leave from the other end, those the host does not have the same value of by a
 * copy. Where the holes between locked tensors are still too small, sn__emit_alloc() says SN_NO_FIT; the lowering then
 * empties the device (sn__emit_evict_all) and brings in what the step needs anew, side by side. So a step runs wherever
 * its own tensors and workspace fit, more memory never makes a plan impossible, and only where not even that fits does
 * the pool grow beyond the device: the plan then says exactly how much it needs. A narrow cache lists, and so sends
 * out, only outputs of CONVs and FORKs; what it does not list stays, also when the device is emptied.
 */
#ifndef SN_SIM_PLAN_EMIT_H
#define SN_SIM_PLAN_EMIT_H

#include "base/err.h"
#include "sim/graph/route.h"
#include "sim/plan/plan.h"
#include "sim/plan/pool.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct sn__fence {
  uint32_t clock; /* of its lane, when signalled */
  uint32_t known[SN_LANES];
  uint32_t id;
} sn__fence;

typedef struct sn__lane_state {
  uint32_t clock;           /* instructions so far */
  uint32_t known[SN_LANES]; /* instructions of each lane that are done before this lane's next one */
  sn__fence *fences;        /* signalled on this lane, ascending clock */
  uint32_t n_fences, room;
} sn__lane_state;

/* A tensor while the plan is made. Clocks are per lane; 0 means never. */
typedef struct sn__place {
  uint64_t offset;
  uint32_t touched[SN_LANES], wrote[SN_LANES];
  uint32_t host_touched[SN_LANES], host_wrote; /* of the external copy; written by the out lane only */
  uint64_t host_offset;
  uint32_t version, host_version; /* of the value: 0 none, 1 as made, +1 per change in place */
  uint32_t newer, older;          /* the cache's list */
  uint32_t locked;                /* by execution number */
  bool resident, has_host_slot;
} sn__place;

typedef struct sn__emit {
  const sn_route *route;
  sn_plan *plan;
  sn_err *err;
  sn_pool pool;
  uint64_t limit; /* the pool on offer */
  bool cache;
  bool narrow;   /* the cache lists the outputs of CONVs and FORKs only */
  bool packed;   /* nothing that could leave is on the device but what the step needs: the pool may grow */
  uint32_t room; /* of plan->instrs */
  sn__lane_state lanes[SN_LANES];
  sn__place *places;
  uint32_t freed_at; /* compute clock at which memory was last given back */
  uint32_t newest, oldest;
  uint32_t execution; /* locks of this number hold */
  uint32_t step;
  uint64_t live_bytes;
  uint32_t live_tensors;
} sn__emit;

sn_status sn__emit_begin(sn__emit *e, const sn_route *route, uint64_t limit, bool cache, sn_err *err);
/* Hands the plan over, or NULL after an error; frees everything else. */
sn_plan *sn__emit_end(sn__emit *e, sn_status status);

/* What follows belongs to `step`. */
void sn__emit_step(sn__emit *e, uint32_t step);

/* Locks the tensors of a step against eviction until the next call. */
void sn__emit_lock(sn__emit *e, const sn_step *step);

/* Sends everything off the device, locked or not; allocations of the same execution then may let the pool grow. */
sn_status sn__emit_evict_all(sn__emit *e);

/* Allocates a tensor that `lane` will be the first to write. SN_NO_FIT (without an error recorded): see above. */
sn_status sn__emit_alloc(sn__emit *e, uint32_t tensor, sn_lane lane);
sn_status sn__emit_release(sn__emit *e, uint32_t tensor);
sn_status sn__emit_copy_out(sn__emit *e, uint32_t tensor);
/* Allocates on the in lane and copies in. SN_NO_FIT as sn__emit_alloc(). */
sn_status sn__emit_fetch(sn__emit *e, uint32_t tensor);
/* Is the tensor in the cache's list while it is resident? */
bool sn__emit_listed(const sn__emit *e, uint32_t tensor);
/* A listed, resident tensor is used. */
void sn__emit_hit(sn__emit *e, uint32_t tensor);
/* Finds a place for a workspace, as for a tensor; it stays free until the compute that follows at once. */
sn_status sn__emit_workspace(sn__emit *e, uint64_t bytes, uint64_t *offset);
/* Runs a step whose tensors are all resident, with `bytes` of workspace at `offset`. */
sn_status sn__emit_compute(sn__emit *e, uint32_t step, bool rerun, const uint8_t algo[2], uint64_t offset,
                           uint64_t bytes);

#endif
