/* Plan: every decision of one training iteration as a list of instructions on in-order lanes.
 *
 *   compute  alloc y1 | compute conv1 | signal 0 | alloc y2 | compute relu1 | wait 1 | release y1 | ...
 *   out                                 wait 0   | copy_out y1 | signal 1
 *   in                                                                                  ... copy_in y1 | signal 7
 *
 * A lane runs its instructions in listed order; lanes run side by side and meet only at fences. Two invariants, proved
 * by sim/plan/check.h for every plan before it is played:
 *   1. the listed order is a correct serial order;
 *   2. every re-use of memory is ordered by fences: the plan is right for every timing.
 * All addresses are decided here: a back end obeys and decides nothing.
 */
#ifndef SN_SIM_PLAN_PLAN_H
#define SN_SIM_PLAN_PLAN_H

#include "base/err.h"
#include "sim/device/cores.h"
#include "sim/device/cost.h"
#include "sim/device/external.h"
#include "sim/graph/route.h"
#include "sim/memory/pool.h"
#include "sim/policy/options.h"
#include "sim/policy/part.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Those behind the first SN_PLAIN_LANES compute, as the first does: only co-run plans use them
 * (sim/plan/lower_corun.h). Those behind the first SN_CORUN_LANES are communicators of one of several GPUs, and what it
 * sends and receives: their steps are transfers, one after the other on each. */
typedef enum sn_lane {
  SN_LANE_COMPUTE,
  SN_LANE_OUT,
  SN_LANE_IN,
  SN_PLAIN_LANES,
  SN_LANE_COMPUTE2 = SN_PLAIN_LANES,
  SN_CORUN_LANES = 8,
  SN_LANE_TP = SN_CORUN_LANES, /* by sn_mesh_axis */
  SN_LANE_FSDP,
  SN_LANE_DP,
  SN_LANE_SEND,
  SN_LANE_RECEIVE,
  SN_LANES
} sn_lane;

typedef enum sn_instr_kind {
  SN_ALLOC,    /* tensor `id` gets [offset, offset + bytes) of the pool; its lane is the first to write there */
  SN_RELEASE,  /* its bytes may be re-used */
  SN_COMPUTE,  /* step `id`; workspace [offset, offset + bytes) where bytes > 0; rerun: a recomputation */
  SN_COPY_OUT, /* tensor `id` to [offset, offset + bytes) of the external pool; the device copy stays valid */
  SN_COPY_IN,  /* and back to where it is allocated */
  SN_SIGNAL,   /* fence `id` passes when all earlier instructions of this lane are done; once a fence */
  SN_WAIT,     /* later instructions of this lane run after fence `id` */
  SN_INSTR_KINDS
} sn_instr_kind;

#define SN_NO_ALGO UINT8_MAX

typedef struct sn_instr {
  uint8_t kind; /* sn_instr_kind */
  uint8_t lane; /* sn_lane */
  bool rerun;
  uint8_t
      algo[2];  /* compute of a CONV: {forward, -} or {backward data, backward filter}: sn_conv_algo; else SN_NO_ALGO */
  uint8_t part; /* compute: sn_step_part; SN_STEP_WHOLE but in co-run plans */
  uint16_t team; /* compute of a co-run plan: plan->teams[team]; else 0 */
  uint32_t id;   /* tensor, step index or fence */
  uint32_t step; /* the step in which it stands: index into route->steps */
  uint64_t offset, bytes;
} sn_instr;

/* What the planner's byte meter saw, per step of the route. */
typedef struct sn_step_use {
  uint64_t tensor_bytes;    /* functional tensors, largest at any moment */
  uint32_t live_tensors;    /* most at any moment */
  uint64_t workspace_bytes; /* whole blocks */
} sn_step_use;

typedef struct sn_plan_counts {
  uint64_t offload_bytes, prefetch_bytes;
  uint64_t cache_hits, cache_misses, evictions;
  uint32_t recomputed_layers;
} sn_plan_counts;

typedef struct sn_plan {
  const sn_route *route; /* looked at; must outlive the plan */
  uint32_t n_fences;
  uint32_t n_instrs;
  sn_instr *instrs;
  sn_placement placement;   /* where its addresses come from */
  uint64_t pool_limit;      /* the pool on offer when it was made */
  uint64_t pool_bytes;      /* high water of the addresses; nothing lies above */
  bool given_up;            /* it is only a beginning: sn_lower_counting() was to stop where placing it is hopeless */
  bool transfers;           /* of one of several GPUs: its pool is one for each stream (sn_tensor_stream()), one behind
                             * the other */
  bool roomy;               /* first fit has room for all of it in the pool on offer: a cache would send nothing out */
  uint64_t first_fit_bytes; /* pool_bytes as first fit has placed it */
  uint64_t bare_bytes;      /* the same of tensors alone, as first fit has placed them */
  uint64_t largest_hole;    /* below the high water, when it was last raised */
  uint64_t reserved_peak;   /* largest sum of reserved bytes (tensors and workspace, whole blocks) */
  uint64_t external_bytes;  /* external pool */
  uint64_t external_limit;  /* what there is for it; 0: not limited */
  sn_plan_counts counts;
  sn_step_use *use; /* route->n_steps */
  /* Of a co-run plan, else 0: its operations are parts of steps (sim/policy/part.h), in any order that finds its
   * values, on several compute lanes, each on a team of the device's cores. */
  uint32_t n_teams;
  sn_team *teams;
  uint16_t cores, slots; /* of the device: its teams are within these, and no core has more at once than its slots */
  char layouts[SN_LAYOUTS_TEXT]; /* how values lie for the kernels that it was made for: sn_costs_layouts(); empty: it
                                    runs none */
  uint32_t added_waits;          /* waits that nothing but the re-use of memory asks for */
} sn_plan;

void sn_plan_free(sn_plan *plan);
/* SN_NO_MEMORY. */
sn_plan *sn_plan_copy(const sn_plan *plan, sn_err *err);

static inline bool sn_plan_is_corun(const sn_plan *plan) {
  return plan->n_teams > 0;
}
/* Lanes from 0 on that its instructions may be on. */
static inline uint32_t sn_plan_lanes(const sn_plan *plan) {
  return sn_plan_is_corun(plan) ? SN_CORUN_LANES : plan->transfers ? SN_LANES : SN_PLAIN_LANES;
}
/* Those that have instructions, numbered from 0 in their order; how many. */
uint32_t sn_plan_used_lanes(const sn_plan *plan, uint8_t number[SN_LANES]);
/* Whether any tensor is copied to or from the external pool. */
bool sn_plan_copies_out(const sn_plan *plan);
static inline bool sn_lane_computes(sn_lane lane) {
  return lane == SN_LANE_COMPUTE || (lane >= SN_LANE_COMPUTE2 && lane < SN_CORUN_LANES);
}
static inline bool sn_lane_transfers(sn_lane lane) {
  return lane >= SN_CORUN_LANES;
}

/* The lane of a step's compute, but of co-run plans: the communicator's of a transfer. */
static inline sn_lane sn_step_lane(const sn_route *route, const sn_step *step) {
  if (step->kernel != SN_TRANSFER) return SN_LANE_COMPUTE;
  const sn_transfer *t = &route->transfers[step->sum];
  return t->kind == SN_RECEIVE ? SN_LANE_RECEIVE : (sn_lane)(SN_LANE_TP + t->axis);
}

/* Whether both pools are within their limits: what "fits" means everywhere. */
bool sn_plan_fits(const sn_plan *plan);
bool sn_plan_fits_outside(const sn_plan *plan); /* the external pool */

/* "alloc", "release", "compute", ... and "compute", "out", "in", "compute2" .. "compute6", "tp", "fsdp", "dp", "send",
 * "receive" */
const char *sn_instr_kind_name(sn_instr_kind kind);
const char *sn_lane_name(sn_lane lane);

/* Writes the plan as JSON, one tensor, step and instruction a line (docs/plan-format.md), with the question that it
 * answers in front. SN_BAD_FILE where writing fails. */
sn_status sn_plan_write(const sn_plan *plan, const char *strategy, const sn_device *device, const sn_options *options,
                        FILE *out, sn_err *err);

#endif
