/* High water of a plan's pool; see the header. One walk finds who reaches the top first and what tensors alone need, a
 * second, from there to the end of the step, the fullest moment. */
#include "sim/plan/high_water.h"

#include "base/checked.h"

#include <stdbool.h>

/* Bytes of tensors once the instruction is done. */
static uint64_t held_after(const sn_instr *i, uint64_t held) {
  if (i->kind == SN_ALLOC) return held + i->bytes;
  return i->kind == SN_RELEASE ? held - i->bytes : held;
}

static bool takes(const sn_instr *i) {
  return i->kind == SN_ALLOC || (i->kind == SN_COMPUTE && i->bytes > 0);
}

/* From the instruction that takes the top, before which `held` bytes are tensors', on to where it is given back. */
static void find_fullest(const sn_plan *plan, uint64_t held, sn_high_water *high) {
  const sn_instr *top = &plan->instrs[high->instr];
  uint64_t most = 0;
  for (uint32_t n = high->instr; n < plan->n_instrs; n++) {
    const sn_instr *i = &plan->instrs[n];
    if (i->step != high->step || (i->kind == SN_RELEASE && i->id == top->id)) return;
    held = held_after(i, held);
    uint64_t workspace = i->kind == SN_COMPUTE ? i->bytes : 0;
    if (held + workspace > most) {
      most = held + workspace;
      high->tensor_bytes = held;
      high->workspace_bytes = workspace;
    }
    if (top->kind == SN_COMPUTE) return;
  }
}

static sn_cause cause_of(const sn_plan *plan, const sn_high_water *high) {
  if (high->tensor_bytes < plan->pool_bytes && plan->instrs[high->instr].kind == SN_COMPUTE) return SN_CAUSE_WORKSPACE;
  return plan->pool_bytes - high->tensor_bytes > plan->pool_bytes / 100 ? SN_CAUSE_HOLES : SN_CAUSE_TENSORS;
}

/* Packed, the pool is what is reserved at the fullest moment, whatever lies highest. */
static sn_high_water of_load(const sn_plan *plan) {
  sn_high_water high = {.cause = SN_CAUSE_TENSORS};
  uint64_t held = 0, most = 0;
  for (uint32_t n = 0; n < plan->n_instrs; n++) {
    const sn_instr *i = &plan->instrs[n];
    uint64_t workspace = i->kind == SN_COMPUTE ? i->bytes : 0;
    if (takes(i)) high.bare_bytes = sn_max(high.bare_bytes, i->kind == SN_ALLOC ? i->offset + i->bytes : 0);
    held = held_after(i, held);
    if (held + workspace <= most) continue;
    most = held + workspace;
    high.instr = n;
    high.step = i->step;
    high.tensor_bytes = held;
    high.workspace_bytes = workspace;
  }
  high.hole_bytes = plan->pool_bytes - most;
  if (high.hole_bytes > plan->pool_bytes / 100)
    high.cause = SN_CAUSE_HOLES;
  else if (high.workspace_bytes > 0)
    high.cause = SN_CAUSE_WORKSPACE;
  return high;
}

sn_high_water sn_plan_high_water(const sn_plan *plan) {
  if (plan->placement == SN_PLACEMENT_PACKED) return of_load(plan);
  sn_high_water high = {0};
  uint64_t held = 0, below = 0;
  bool found = false, tensors = false; /* do tensors alone need all of it */
  for (uint32_t n = 0; n < plan->n_instrs; n++) {
    const sn_instr *i = &plan->instrs[n];
    bool fills = i->kind == SN_ALLOC && held + i->bytes == plan->pool_bytes;
    if ((!found && takes(i) && i->offset + i->bytes == plan->pool_bytes) || (fills && !tensors)) {
      found = true;
      below = held;
      high.instr = n;
      high.step = i->step;
    }
    tensors = tensors || fills;
    if (i->kind == SN_ALLOC) high.bare_bytes = sn_max(high.bare_bytes, i->offset + i->bytes);
    held = held_after(i, held);
  }
  if (!found) return high;
  find_fullest(plan, below, &high);
  high.hole_bytes = plan->pool_bytes - high.tensor_bytes - high.workspace_bytes;
  high.cause = cause_of(plan, &high);
  return high;
}

const char *sn_cause_name(sn_cause cause) {
  static const char *const names[SN_CAUSES] = {"tensors", "holes", "workspace", "resident", "host"};
  return names[cause];
}
