/* Place; see the header. Times are instruction numbers. O(instructions) beside sn_pack(). */
#include "sim/plan/place.h"

#include "base/checked.h"
#include "sim/plan/pack.h"

#include <stdlib.h>

/* Blocks in the order of their allocs and computes, and per tensor the block that it has now. */
typedef struct placing {
  sn_plan *plan;
  sn_block *blocks;
  uint64_t *offsets;
  uint32_t *owned;
  uint32_t count;
} placing;

static bool begins_block(const sn_instr *i) {
  return i->kind == SN_ALLOC || (i->kind == SN_COMPUTE && i->bytes > 0);
}

static uint32_t count_blocks(const sn_plan *plan) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < plan->n_instrs; i++) count += begins_block(&plan->instrs[i]);
  return count;
}

static bool placing_init(placing *p, uint32_t count) {
  p->blocks = calloc((size_t)count + 1, sizeof *p->blocks);
  p->offsets = calloc((size_t)count + 1, sizeof *p->offsets);
  p->owned = calloc((size_t)p->plan->route->n_tensors + 1, sizeof *p->owned);
  return p->blocks && p->offsets && p->owned;
}

static void placing_clear(placing *p) {
  free(p->blocks);
  free(p->offsets);
  free(p->owned);
}

static void find_blocks(placing *p) {
  const sn_plan *plan = p->plan;
  p->count = 0;
  for (uint32_t i = 0; i < plan->n_instrs; i++) {
    const sn_instr *instr = &plan->instrs[i];
    if (instr->kind == SN_RELEASE) p->blocks[p->owned[instr->id]].upper = i;
    if (!begins_block(instr)) continue;
    bool tensor = instr->kind == SN_ALLOC;
    p->blocks[p->count] = (sn_block){i, tensor ? plan->n_instrs : i + 1, instr->bytes};
    if (tensor) p->owned[instr->id] = p->count;
    p->count++;
  }
}

/* The same walk again, now with addresses. */
static void write_offsets(placing *p) {
  sn_plan *plan = p->plan;
  uint32_t block = 0;
  for (uint32_t i = 0; i < plan->n_instrs; i++) {
    sn_instr *instr = &plan->instrs[i];
    if (instr->kind == SN_RELEASE) instr->offset = p->offsets[p->owned[instr->id]];
    if (!begins_block(instr)) continue;
    if (instr->kind == SN_ALLOC) p->owned[instr->id] = block;
    instr->offset = p->offsets[block++];
  }
}

static int compare_offsets(const void *a, const void *b) {
  const sn_block *x = a, *y = b;
  return x->lower < y->lower ? -1 : x->lower > y->lower;
}

/* The largest hole when the pool is first used up to its end: between the blocks that live then, as spans of addresses
 * in the place of times. */
static uint64_t largest_hole(placing *p) {
  uint32_t highest = 0, n = 0;
  uint64_t below = 0, hole = 0;
  while (p->offsets[highest] + p->blocks[highest].bytes != p->plan->pool_bytes) highest++;
  uint64_t at = p->blocks[highest].lower;
  for (uint32_t b = 0; b < p->count; b++) {
    sn_block block = p->blocks[b];
    if (block.lower > at || block.upper <= at) continue;
    p->blocks[n++] = (sn_block){.lower = p->offsets[b], .upper = p->offsets[b] + block.bytes};
  }
  qsort(p->blocks, n, sizeof *p->blocks, compare_offsets);
  for (uint32_t b = 0; b < n; b++) {
    hole = sn_max(hole, p->blocks[b].lower - below);
    below = p->blocks[b].upper;
  }
  return hole;
}

sn_status sn_place(sn_plan *plan, sn_err *err) {
  placing p = {.plan = plan};
  sn_packing packing = {0};
  uint32_t count = count_blocks(plan);
  if (plan->pool_bytes == plan->reserved_peak || count > SN_PACK_MOST) return SN_OK;
  if (placing_init(&p, count)) {
    find_blocks(&p);
    sn_pack(p.blocks, p.count, &(sn_pack_limits)SN_PACK_LIMITS_INIT, p.offsets, &packing, err);
  } else {
    sn_fail_memory(err);
  }
  if (err->code == SN_OK && packing.bytes < plan->pool_bytes) {
    write_offsets(&p);
    plan->pool_bytes = packing.bytes;
    plan->largest_hole = largest_hole(&p);
  }
  placing_clear(&p);
  return err->code;
}
