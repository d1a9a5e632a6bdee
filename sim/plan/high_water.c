/* High water of a plan's pool; see the header. One walk finds who reaches the top first and what tensors alone need, a
 * second, from there to the end of the step, the fullest moment. */
#include "sim/plan/high_water.h"

#include "base/checked.h"
#include "sim/plan/cursor.h"

#include <stdbool.h>

static bool takes(const sn_instr *i) {
  return i->kind == SN_ALLOC || (i->kind == SN_COMPUTE && i->bytes > 0);
}

/* Notes a moment if it is the fullest so far. */
static bool note(const sn_cursor *c, sn_high_water *high) {
  if (c->held_bytes + c->workspace_bytes <= high->tensor_bytes + high->workspace_bytes) return false;
  high->tensor_bytes = c->held_bytes;
  high->workspace_bytes = c->workspace_bytes;
  return true;
}

/* From the instruction that takes the top, which the cursor has before it, on to where it is given back. */
static void find_fullest(sn_cursor c, sn_high_water *high) {
  const sn_instr *top = &c.plan->instrs[high->instr];
  for (const sn_instr *i; (i = sn_cursor_next(&c));) {
    if (i->step != high->step || (i->kind == SN_RELEASE && i->id == top->id)) return;
    note(&c, high);
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
  sn_cursor c = {.plan = plan};
  for (const sn_instr *i; (i = sn_cursor_next(&c));) {
    if (!note(&c, &high)) continue;
    high.instr = c.at - 1;
    high.step = i->step;
  }
  high.bare_bytes = c.top_bytes;
  high.hole_bytes = plan->pool_bytes - high.tensor_bytes - high.workspace_bytes;
  if (high.hole_bytes > plan->pool_bytes / 100)
    high.cause = SN_CAUSE_HOLES;
  else if (high.workspace_bytes > 0)
    high.cause = SN_CAUSE_WORKSPACE;
  return high;
}

sn_high_water sn_plan_high_water(const sn_plan *plan) {
  if (plan->placement == SN_PLACEMENT_PACKED) return of_load(plan);
  sn_high_water high = {0};
  sn_cursor c = {.plan = plan}, ahead = c, below = c; /* ahead of the instruction; of the one that takes the top */
  bool found = false, tensors = false;                /* do tensors alone need all of it */
  for (const sn_instr *i; (i = sn_cursor_next(&c)); ahead = c) {
    bool fills = i->kind == SN_ALLOC && c.held_bytes == plan->pool_bytes;
    if ((!found && takes(i) && i->offset + i->bytes == plan->pool_bytes) || (fills && !tensors)) {
      found = true;
      below = ahead;
      high.instr = ahead.at;
      high.step = i->step;
    }
    tensors = tensors || fills;
  }
  high.bare_bytes = c.top_bytes;
  if (!found) return high;
  find_fullest(below, &high);
  high.hole_bytes = plan->pool_bytes - high.tensor_bytes - high.workspace_bytes;
  high.cause = cause_of(plan, &high);
  return high;
}

const char *sn_cause_name(sn_cause cause) {
  static const char *const names[SN_CAUSES] = {"tensors", "holes", "workspace", "resident", "host"};
  return names[cause];
}
