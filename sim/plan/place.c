/* Place; see the header. Times count what begins and ends, so that they do not depend on fences. O(instructions)
 * beside sn_pack(). */
#include "sim/plan/place.h"

#include "base/checked.h"
#include "sim/graph/route.h"
#include "sim/plan/cursor.h"

#include <stdlib.h>

/* A packing within that share of the largest load is good; one near it (SN_PACK_NEAR) is not moved about in. Of more
 * blocks than that, where another plan can take its place, none is moved about in, and none is tried that would have to
 * be better than good: both take long and seldom succeed. */
enum { GOOD_SHARE = 1024, MOST_MOVED = 300 };

/* Blocks in the order of their allocs and computes, and per tensor the block that it has now. */
typedef struct placing {
  const sn_plan *plan;
  sn_packings *packings;
  bool bare; /* workspaces are left out */
  sn_block *blocks;
  uint64_t *offsets;
  uint32_t *owned;
  uint32_t count;
} placing;

static bool is_workspace(const placing *p, const sn_instr *i) {
  return i->kind == SN_COMPUTE && i->bytes > 0 && !p->bare;
}

static uint32_t count_blocks(const sn_plan *plan) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < plan->n_instrs; i++)
    count += plan->instrs[i].kind == SN_ALLOC || (plan->instrs[i].kind == SN_COMPUTE && plan->instrs[i].bytes > 0);
  return count;
}

bool sn_place_can(const sn_plan *plan) {
  return count_blocks(plan) <= SN_PACK_MOST;
}

static void placing_clear(placing *p) {
  free(p->blocks);
  free(p->offsets);
  free(p->owned);
}

static void find_blocks(placing *p) {
  const sn_plan *plan = p->plan;
  uint64_t time = 0;
  p->count = 0;
  for (uint32_t i = 0; i < plan->n_instrs; i++) {
    const sn_instr *instr = &plan->instrs[i];
    if (instr->kind == SN_RELEASE) p->blocks[p->owned[instr->id]].upper = time++;
    if (is_workspace(p, instr)) p->blocks[p->count++] = (sn_block){time, time + 1, instr->bytes}, time++;
    if (instr->kind != SN_ALLOC) continue;
    p->owned[instr->id] = p->count;
    p->blocks[p->count++] = (sn_block){time++, UINT32_MAX, instr->bytes};
  }
  for (uint32_t b = 0; b < p->count; b++) p->blocks[b].upper = sn_min(p->blocks[b].upper, time);
}

/* `plan` has `count` blocks or more. To be cleared in any case. */
static sn_status placing_begin(placing *p, uint32_t count, sn_err *err) {
  p->blocks = malloc(((size_t)count + 1) * sizeof *p->blocks);
  p->offsets = malloc(((size_t)count + 1) * sizeof *p->offsets);
  p->owned = malloc(((size_t)p->plan->route->n_tensors + 1) * sizeof *p->owned);
  if (!p->blocks || !p->offsets || !p->owned) return sn_fail_memory(err);
  find_blocks(p);
  return SN_OK;
}

static uint64_t with_share(uint64_t bytes, uint64_t share) {
  return bytes + bytes / share;
}

/* What ends the search for a better place, of a plan with that load. */
static uint64_t good_pool(uint64_t load, uint64_t share, sn_place_goal goal) {
  uint64_t good = sn_max(with_share(load, goal.near ? SN_PACK_NEAR : share), goal.enough);
  return goal.most > 0 ? sn_min(good, goal.most) : good;
}

sn_pack_limits sn_place_limits(uint32_t count, uint64_t known, uint64_t load, sn_place_goal goal) {
  return (sn_pack_limits){.moves = goal.most > 0 && count > MOST_MOVED ? 0 : SN_PACK_MOVES,
                          .tries = goal.most > 0 ? 0 : SN_PACK_TRIES,
                          .known = goal.most > 0 ? sn_min(known, goal.most + 1) : known,
                          .enough = good_pool(load, GOOD_SHARE, goal),
                          .near = good_pool(load, SN_PACK_NEAR, goal)};
}

/* `known`: what first fit takes. Where the goal is less, only what reaches that is of use. */
static bool pack(placing *p, uint64_t known, uint64_t load, sn_place_goal goal, uint64_t *bytes, sn_err *err) {
  const sn_pack_limits limits = sn_place_limits(p->count, known, load, goal);
  sn_packing packing;
  sn_status status = sn_pack_again(p->packings, p->blocks, p->count, &limits, p->offsets, &packing, err);
  if (status != SN_OK || packing.bytes >= limits.known) return false;
  *bytes = packing.bytes;
  return true;
}

/* The same walk again, now with addresses. */
static void write_offsets(placing *p, sn_plan *plan) {
  uint32_t block = 0;
  for (uint32_t i = 0; i < plan->n_instrs; i++) {
    sn_instr *instr = &plan->instrs[i];
    if (instr->kind == SN_RELEASE) instr->offset = p->offsets[p->owned[instr->id]];
    if (instr->kind != SN_ALLOC && !is_workspace(p, instr)) continue;
    if (instr->kind == SN_ALLOC) p->owned[instr->id] = block;
    instr->offset = p->offsets[block++];
  }
}

static int compare_offsets(const void *a, const void *b) {
  const sn_block *x = a, *y = b;
  return x->lower < y->lower ? -1 : x->lower > y->lower;
}

/* With the spans of their addresses in the place of their times. */
uint64_t sn_place_largest_hole(sn_block *blocks, const uint64_t *offsets, uint32_t count, uint64_t pool_bytes) {
  uint32_t n = 0;
  uint64_t at = UINT64_MAX, below = 0, hole = 0;
  for (uint32_t b = 0; b < count; b++)
    if (offsets[b] + blocks[b].bytes == pool_bytes) at = sn_min(at, blocks[b].lower);
  for (uint32_t b = 0; b < count; b++) {
    sn_block block = blocks[b];
    if (block.lower > at || block.upper <= at || block.bytes == 0) continue;
    blocks[n++] = (sn_block){.lower = offsets[b], .upper = offsets[b] + block.bytes};
  }
  qsort(blocks, n, sizeof *blocks, compare_offsets);
  for (uint32_t b = 0; b < n; b++) {
    hole = sn_max(hole, blocks[b].lower - below);
    below = blocks[b].upper;
  }
  return hole;
}

bool sn_place_is_hopeless(uint32_t blocks, uint64_t load, uint64_t most) {
  return most > 0 && blocks > MOST_MOVED && most < with_share(load, GOOD_SHARE);
}

sn_status sn_place(sn_plan *plan, sn_place_goal goal, sn_packings *packings, sn_err *err) {
  placing p = {.plan = plan, .packings = packings};
  uint32_t count = count_blocks(plan);
  if (count > SN_PACK_MOST) return SN_OK;
  plan->placement = SN_PLACEMENT_PACKED;
  bool hopeless = sn_place_is_hopeless(count, plan->reserved_peak, goal.most);
  if (hopeless || plan->pool_bytes <= good_pool(plan->reserved_peak, GOOD_SHARE, goal)) return SN_OK;
  if (placing_begin(&p, count, err) == SN_OK &&
      pack(&p, plan->pool_bytes, plan->reserved_peak, goal, &plan->pool_bytes, err)) {
    write_offsets(&p, plan);
    plan->largest_hole = sn_place_largest_hole(p.blocks, p.offsets, p.count, plan->pool_bytes);
  }
  placing_clear(&p);
  return err->code;
}

sn_status sn_place_bare(const sn_plan *plan, sn_packings *packings, uint64_t *bytes, sn_err *err) {
  placing p = {.plan = plan, .packings = packings, .bare = true};
  sn_cursor c = {.plan = plan};
  uint64_t most = 0;
  *bytes = plan->bare_bytes;
  while (sn_cursor_next(&c)) most = sn_max(most, c.held_bytes);
  if (c.top_bytes == most) *bytes = most; /* as they lie, without a hole where they are most */
  if (*bytes <= with_share(most, GOOD_SHARE)) return SN_OK;
  uint32_t count = count_blocks(plan);
  if (count > SN_PACK_MOST) return SN_OK;
  if (placing_begin(&p, count, err) == SN_OK) pack(&p, *bytes, most, (sn_place_goal){0}, bytes, err);
  placing_clear(&p);
  return err->code;
}
