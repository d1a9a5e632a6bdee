/* Emitter (internal to sim/): writes instructions and keeps them right.
 *
 * The lowering (sim/plan/lower.c) says what should happen next in serial order: allocate, copy, compute, release. The
 * emitter gives every tensor its address, puts the fences in that make the order hold on lanes that run side by side,
 * runs the LRU cache where the strategy has one, and meters bytes per step.
 *
 * Fences (sim/plan/lanes.h). One lane computes, two copy. For each tensor the emitter knows the last instruction that
 * wrote it on the compute lane and that copied it on the others, and has the lane that uses it next ordered behind
 * that.
 *
 * Of one of several GPUs transfers are steps on lanes of their own. What they make has a pool for each stream
 * (sn_tensor_stream()), which lie one behind the other; it is given back on the lane that made it, behind whoever used
 * it. All other memory is given back on the compute lane, as ever.
 *
 * Changes. What a step needs is booked before any of it is written: who leaves, who comes, at which address
 * (sn__emit_change), so that nothing is brought in for a step that then cannot be placed. sn__emit_settle() writes it.
 *
 * Cache ([SN] algorithm 2). All resident tensors stand in a list, most recently used first. Where the pool has no hole
 * for what is to come, unlocked tensors leave from the other end, those the host does not have the same value of by a
 * copy. Where the holes between locked tensors are still too small, sn__emit_change() says SN_NO_FIT; the lowering then
 * empties the device (sn__emit_pack) and books what the step needs anew, side by side. So a step runs wherever
 * its own tensors and workspace fit, more memory never makes a plan impossible, and only where not even that fits does
 * the pool grow beyond the device: the plan then says exactly how much it needs. A narrow cache lists, and so sends
 * out, only outputs of CONVs and FORKs; what it does not list stays, also when the device is emptied.
 */
#ifndef SN_SIM_PLAN_EMIT_H
#define SN_SIM_PLAN_EMIT_H

#include "base/err.h"
#include "sim/graph/route.h"
#include "sim/memory/pool.h"
#include "sim/plan/lanes.h"
#include "sim/plan/plan.h"
#include "sim/schedule/schedule.h"

#include <stdbool.h>
#include <stdint.h>

/* A tensor while the plan is made. A clock is of the only lane that does this, when it did it last; 0: never. What the
 * compute lane reads needs none: the device copy is released on that lane, too. */
typedef struct sn__place {
  uint64_t offset;
  uint32_t wrote;                 /* by the compute lane */
  uint32_t copied_out, copied_in; /* of the device copy: read by the out lane, written by the in lane */
  uint32_t host_read, host_wrote; /* of the external copy: by the in lane, by the out lane */
  uint64_t host_offset;
  uint32_t version, host_version; /* of the value: 0 none, 1 as made, +1 per change in place */
  uint32_t newer, older;          /* the cache's list */
  uint32_t locked;                /* by execution number */
  bool resident, has_host_slot;
} sn__place;

/* What the lanes of transfers do with a tensor, of one of several GPUs. Clocks as above. */
typedef struct sn__beside {
  uint32_t computed;    /* the compute lane touched it */
  uint32_t transferred; /* and `lane` did, by a transfer */
  uint8_t lane, home;   /* home: that on which it was allocated */
  bool wrote;           /* it was made or changed there */
} sn__beside;

/* A change of what is on the device. */
typedef enum sn__change_kind {
  SN__ALLOC,   /* comes, to be written by a compute */
  SN__FETCH,   /* comes from the external pool, on the in lane */
  SN__RELEASE, /* goes, after its last use */
  SN__EVICT    /* goes, and will come back */
} sn__change_kind;

typedef struct sn__change {
  uint32_t tensor;
  sn__change_kind kind;
} sn__change;

/* What the pool remembers of its past, to be put back where a booking did not lead to a plan. */
typedef struct sn__number_set {
  uint64_t high_water, reserved_peak, largest_hole;
} sn__number_set;

typedef struct sn__emit {
  const sn_route *route;
  sn_plan *plan;
  sn_err *err;
  sn__lanes lanes;
  sn_pool pool;
  sn_pool streams[SN_STREAMS];          /* of other streams than compute's, of one of several GPUs */
  sn__beside *beside;                   /* per tensor; NULL: there is one GPU */
  uint32_t freed[SN_STREAMS][SN_LANES]; /* of those: the clock at which a lane gave memory back */
  sn_lane lane;                         /* of the step at hand */
  uint64_t limit;                       /* the pool on offer */
  bool counts; /* room is what is not reserved, in bytes, and not a hole: addresses may pass the limit */
  bool cache;
  bool narrow; /* the cache lists the outputs of CONVs and FORKs only */
  bool books;  /* only they are kept: nothing is written */
  bool packed; /* nothing that could leave is on the device but what the step needs: the pool may grow */
  sn__place *places;
  sn__change *changes; /* booked, not yet written */
  uint32_t n_changes, changes_room;
  sn__number_set before; /* the step at hand */
  uint32_t freed_at;     /* compute clock at which memory was last given back */
  uint32_t newest, oldest;
  uint32_t execution; /* locks of this number hold */
  uint32_t step;
  uint32_t blocks; /* allocs and workspaces so far */
  uint64_t live_bytes;
  uint32_t live_tensors;
} sn__emit;

sn_status sn__emit_begin(sn__emit *e, const sn_route *route, uint64_t limit, bool cache, sn_err *err);
/* Hands the plan over, or NULL after an error; frees everything else. */
sn_plan *sn__emit_end(sn__emit *e, sn_status status);

/* What follows belongs to `step`. */
void sn__emit_step(sn__emit *e, uint32_t step);

/* A step is at hand: its tensors are locked against eviction until the next call. */
void sn__emit_lock(sn__emit *e, const sn_step *step);

/* Books a change: the pool, the list and `resident` follow at once, the plan with sn__emit_settle(). Who has to leave
 * for what comes is booked before it. SN_NO_FIT (without an error recorded): see above; what was booked by then is
 * kept, and sn__emit_pack() is to follow. */
sn_status sn__emit_change(sn__emit *e, uint32_t tensor, sn__change_kind kind);
/* Releases at once, while nothing is booked. */
sn_status sn__emit_release(sn__emit *e, uint32_t tensor);
/* Finds a place for a workspace, as for a tensor; it stays free until the compute that follows at once. */
sn_status sn__emit_workspace(sn__emit *e, uint64_t bytes, uint64_t *offset);
/* Takes back what was booked to come and sends everything off the device, locked or not; what is booked after that, in
 * the same execution, may let the pool grow. */
sn_status sn__emit_pack(sn__emit *e);
/* Writes what is booked, in the order in which it was. */
sn_status sn__emit_settle_booked(sn__emit *e);
static inline sn_status sn__emit_settle(sn__emit *e) {
  return e->n_changes > 0 ? sn__emit_settle_booked(e) : SN_OK;
}

/* Starts to copy a resident tensor to the external pool; it stays. */
sn_status sn__emit_copy_out(sn__emit *e, uint32_t tensor);
/* Is the tensor in the cache's list while it is resident? */
bool sn__emit_listed(const sn__emit *e, uint32_t tensor);
/* A listed, resident tensor is used. */
void sn__emit_hit(sn__emit *e, uint32_t tensor);
/* Runs an execution's step, as it runs then (sn_route_run()): its tensors are all resident, `bytes` of workspace are at
 * `offset`. */
sn_status sn__emit_compute(sn__emit *e, const sn_execution *x, const sn_step *step, const uint8_t algo[2],
                           uint64_t offset, uint64_t bytes);

#endif
