/* Lanes (internal to sim/): the instructions of a plan while it is written, and the fences that hold between lanes.
 *
 * Every lane counts its instructions and knows up to where it is behind the others (a vector clock). Who writes an
 * instruction that must come after another lane's number `clock` says so with sn__lanes_order(): only where the lane is
 * not that far already a wait is written, on the earliest fence that reaches far enough, or a new one.
 */
#ifndef SN_SIM_PLAN_LANES_H
#define SN_SIM_PLAN_LANES_H

#include "base/err.h"
#include "sim/plan/plan.h"

#include <stddef.h>
#include <stdint.h>

typedef struct sn__lane_state {
  uint32_t clock;           /* instructions so far */
  uint32_t known[SN_LANES]; /* instructions of each lane that are done before this lane's next one */
  /* Fences signalled on this lane, and when, by its clock, ascending: looked through for each wait. Each has its
   * number, then for each of n_lanes what this lane was behind. */
  uint32_t *fences, *fence_clocks;
  uint32_t n_fences, fences_room, clocks_room;
} sn__lane_state;

typedef struct sn__lanes {
  sn_plan *plan;
  uint32_t n_lanes; /* that the plan may have */
  uint32_t room;    /* of plan->instrs */
  sn__lane_state of[SN_LANES];
  sn_err *err;
} sn__lanes;

void sn__lanes_clear(sn__lanes *lanes);

/* Room for so many instructions, of which more may come. */
sn_status sn__lanes_expect(sn__lanes *lanes, uint64_t instrs);
/* Room for one more instruction. */
sn_status sn__lanes_grow(sn__lanes *lanes);

/* Appends an instruction, whose lane, kind, step and what belongs to its kind are set. */
static inline sn_status sn__lanes_add(sn__lanes *lanes, sn_instr instr) {
  sn_plan *plan = lanes->plan;
  if (plan->n_instrs == lanes->room && sn__lanes_grow(lanes) != SN_OK) return lanes->err->code;
  if (instr.kind != SN_COMPUTE) instr.algo[0] = instr.algo[1] = SN_NO_ALGO;
  plan->instrs[plan->n_instrs++] = instr;
  sn__lane_state *lane = &lanes->of[instr.lane];
  lane->known[instr.lane] = ++lane->clock;
  return SN_OK;
}

/* Signals a new fence. */
sn_status sn__lanes_signal(sn__lanes *lanes, sn_lane on, uint32_t step);

/* Waits for instruction number `clock` of lane `other`, which `lane` is not behind yet. */
sn_status sn__lanes_wait(sn__lanes *lanes, sn_lane lane, sn_lane other, uint32_t clock, uint32_t step);

/* Makes what `lane` does next come after instruction number `clock` of lane `other`, or of each; 0: after nothing. What
 * a lane has done itself it is behind. */
static inline sn_status sn__lanes_order(sn__lanes *lanes, sn_lane lane, sn_lane other, uint32_t clock, uint32_t step) {
  return lanes->of[lane].known[other] >= clock ? SN_OK : sn__lanes_wait(lanes, lane, other, clock, step);
}
sn_status sn__lanes_order_all(sn__lanes *lanes, sn_lane lane, const uint32_t clocks[SN_LANES], uint32_t step);

/* Room for one more of *items, which are of `size` bytes; *room is how many there is room for. */
sn_status sn__grow(void **items, uint32_t *room, size_t size, sn_err *err);

#endif
