/* First-fit pool; see the header. */
#include "sim/memory/pool.h"

#include "base/checked.h"

void sn_pool_clear(sn_pool *pool) {
  sn_ordered_clear(&pool->holes);
  *pool = (sn_pool){0};
}

bool sn_pool_copy(sn_pool *copy, const sn_pool *pool) {
  *copy = *pool;
  return sn_ordered_copy(&copy->holes, &pool->holes);
}

static void mark_top(sn_pool *pool, uint64_t top) {
  if (top <= pool->high_water) return;
  pool->high_water = top;
  pool->largest_hole = pool->holes.root ? pool->holes.nodes[pool->holes.root].most : 0;
}

static void raise_top(sn_pool *pool, uint64_t top) {
  pool->top = top;
  mark_top(pool, top);
}

/* *hole: none, where there is room behind them all. */
static bool find(const sn_pool *pool, uint64_t bytes, uint64_t limit, uint32_t *hole, uint64_t *offset) {
  *hole = sn_ordered_first(&pool->holes, bytes);
  uint64_t place = *hole ? pool->holes.nodes[*hole].key : pool->top;
  if (limit < bytes || place > limit - bytes) return false;
  *offset = place;
  return true;
}

bool sn_pool_take(sn_pool *pool, uint64_t bytes, uint64_t limit, uint64_t *offset) {
  uint32_t hole;
  bytes = sn_pool_round(bytes);
  if (!find(pool, bytes, limit, &hole, offset)) return false;
  if (!hole) {
    raise_top(pool, *offset + bytes);
  } else {
    uint64_t size = pool->holes.nodes[hole].weight;
    if (size > bytes)
      sn_ordered_move(&pool->holes, *offset, *offset + bytes, size - bytes);
    else
      sn_ordered_remove(&pool->holes, *offset);
  }
  pool->reserved += bytes;
  pool->reserved_peak = sn_max(pool->reserved_peak, pool->reserved);
  return true;
}

bool sn_pool_touch(sn_pool *pool, uint64_t bytes, uint64_t limit, uint64_t *offset) {
  uint32_t hole;
  bytes = sn_pool_round(bytes);
  if (!find(pool, bytes, limit, &hole, offset)) return false;
  if (!hole) mark_top(pool, *offset + bytes);
  pool->reserved_peak = sn_max(pool->reserved_peak, pool->reserved + bytes);
  return true;
}

sn_status sn_pool_take_at(sn_pool *pool, uint64_t offset, uint64_t bytes) {
  bytes = sn_pool_round(bytes);
  uint64_t begin = pool->top, end = offset + bytes;
  if (offset < pool->top) {
    uint32_t hole = sn_ordered_floor(&pool->holes, offset);
    begin = pool->holes.nodes[hole].key;
    uint64_t rest = begin + pool->holes.nodes[hole].weight - end;
    if (begin == offset && rest > 0) {
      sn_ordered_move(&pool->holes, begin, end, rest);
    } else {
      sn_ordered_remove(&pool->holes, begin);
      if (rest > 0 && !sn_ordered_insert(&pool->holes, end, rest)) return SN_NO_MEMORY;
    }
  }
  if (begin < offset && !sn_ordered_insert(&pool->holes, begin, offset - begin)) return SN_NO_MEMORY;
  if (end > pool->top) raise_top(pool, end);
  pool->reserved += bytes;
  pool->reserved_peak = sn_max(pool->reserved_peak, pool->reserved);
  return SN_OK;
}

sn_status sn_pool_give(sn_pool *pool, uint64_t offset, uint64_t bytes) {
  bytes = sn_pool_round(bytes);
  pool->reserved -= bytes;
  uint64_t end = offset + bytes;
  const sn_ordered_node *nodes = pool->holes.nodes;
  uint32_t below, above;
  sn_ordered_around(&pool->holes, offset, &below, &above);
  bool joins_below = below && nodes[below].key + nodes[below].weight == offset;
  bool joins_above = above && nodes[above].key == end;
  uint64_t begin = joins_below ? nodes[below].key : offset, next = end;
  if (joins_above) end += nodes[above].weight;
  if (joins_above && (joins_below || end == pool->top)) sn_ordered_remove(&pool->holes, next);
  if (end == pool->top) {
    if (joins_below) sn_ordered_remove(&pool->holes, begin);
    pool->top = begin;
  } else if (joins_below) {
    sn_ordered_weigh(&pool->holes, begin, end - begin);
  } else if (joins_above) {
    sn_ordered_move(&pool->holes, next, begin, end - begin);
  } else if (!sn_ordered_insert(&pool->holes, begin, end - begin)) {
    return SN_NO_MEMORY;
  }
  return SN_OK;
}

uint64_t sn_pool_largest(const sn_pool *pool, uint64_t limit) {
  limit = limit / SN_POOL_BLOCK * SN_POOL_BLOCK;
  uint64_t beyond = limit > pool->top ? limit - pool->top : 0;
  if (beyond > 0) return sn_max(beyond, pool->holes.root ? pool->holes.nodes[pool->holes.root].most : 0);
  /* The limit cuts through what is in use: whole holes below it, and the part of the one it cuts. */
  uint32_t last = limit > 0 ? sn_ordered_floor(&pool->holes, limit - 1) : SN_ORDERED_NONE;
  if (!last) return 0;
  uint64_t key = pool->holes.nodes[last].key;
  uint64_t part = sn_min(pool->holes.nodes[last].weight, limit - key);
  return sn_max(part, sn_ordered_most_below(&pool->holes, key));
}
