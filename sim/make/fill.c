/* Fill; see the header. */
#include "sim/make/fill.h"

#include "base/checked.h"
#include "sim/memory/pool.h"
#include "sim/plan/lower.h"

/* A step that needs a workspace in any case has room for that one: it was placed. */
static sn_status fill_one(sn_plan *plan, const sn_costs *costs, sn_pool *pool, uint64_t limit, sn_instr *i) {
  uint8_t algo[2];
  uint64_t left = sn_pool_largest(pool, limit);
  uint64_t bytes = sn_pool_round(sn_lower_workspace_in(plan->route, costs, i->id, left, algo)), offset = 0;
  if (bytes == 0 || !sn_pool_take(pool, bytes, limit, &offset)) return SN_OK;
  sn_step_use *use = &plan->use[i->step];
  i->offset = offset;
  i->bytes = bytes;
  i->algo[0] = algo[0];
  i->algo[1] = algo[1];
  use->workspace_bytes = sn_max(use->workspace_bytes, bytes);
  return sn_pool_give(pool, offset, bytes);
}

sn_status sn_fill(sn_plan *plan, const sn_costs *costs, uint64_t pool_bytes, sn_err *err) {
  uint64_t limit = pool_bytes / SN_POOL_BLOCK * SN_POOL_BLOCK;
  sn_pool pool = {0};
  sn_status status = SN_OK;
  if (plan->counts.offload_bytes > 0 || plan->counts.prefetch_bytes > 0) return SN_OK;
  for (uint32_t i = 0; i < plan->n_instrs && status == SN_OK; i++) {
    sn_instr *instr = &plan->instrs[i];
    if (instr->kind == SN_ALLOC) status = sn_pool_take_at(&pool, instr->offset, instr->bytes);
    if (instr->kind == SN_RELEASE) status = sn_pool_give(&pool, instr->offset, instr->bytes);
    if (instr->kind == SN_COMPUTE) status = fill_one(plan, costs, &pool, limit, instr);
  }
  plan->pool_bytes = sn_max(plan->pool_bytes, pool.high_water);
  plan->reserved_peak = sn_max(plan->reserved_peak, pool.reserved_peak);
  plan->largest_hole = pool.largest_hole;
  sn_pool_clear(&pool);
  return status == SN_OK ? SN_OK : sn_fail_memory(err);
}
