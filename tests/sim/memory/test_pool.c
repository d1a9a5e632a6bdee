/* Pool against a naive one that scans an array of blocks: the same addresses, the same largest region under a limit,
 * the same accounts, holes merged. */
#include "sim/memory/pool.h"
#include "sim/plan/plan.h"
#include "tests/support/seed.h"

#include <string.h>

enum { BLOCKS = 400, BLOCK = 1024 };

typedef struct naive {
  bool used[BLOCKS];
  uint64_t high, reserved, reserved_peak, largest_hole; /* blocks */
} naive;

/* Length of the free run at block `at`, all beyond the array being free. */
static uint64_t free_run(const naive *n, uint64_t at) {
  uint64_t end = at;
  while (end < BLOCKS && !n->used[end]) end++;
  return end == BLOCKS ? UINT64_MAX / BLOCK - at : end - at;
}

/* Behind the last used block. */
static uint64_t top_of(const naive *n) {
  uint64_t top = BLOCKS;
  while (top > 0 && !n->used[top - 1]) top--;
  return top;
}

/* The first run that holds `blocks` and lets them end at or below `limit`; UINT64_MAX where none does. */
static uint64_t first_fit(const naive *n, uint64_t blocks, uint64_t limit) {
  for (uint64_t at = 0; at < BLOCKS && at + blocks <= limit; at++)
    if (free_run(n, at) >= blocks) return at;
  return UINT64_MAX;
}

/* The longest run below the limit; of a run that the limit cuts, the part below. */
static uint64_t largest_below(const naive *n, uint64_t limit) {
  uint64_t most = 0;
  for (uint64_t at = 0; at < BLOCKS && at < limit; at++) {
    uint64_t run = free_run(n, at);
    if (at + run > limit) run = limit - at;
    if (run > most) most = run;
  }
  return most;
}

static void mark(naive *n, uint64_t at, uint64_t blocks, bool used) {
  for (uint64_t i = at; i < at + blocks; i++) {
    assert_true(n->used[i] != used);
    n->used[i] = used;
  }
  n->reserved += used ? blocks : -blocks;
  if (n->reserved > n->reserved_peak) n->reserved_peak = n->reserved;
  if (top_of(n) <= n->high) return;
  n->high = top_of(n);
  n->largest_hole = largest_below(n, n->high);
}

/* Holes are the free runs below the top, each one hole. */
static void check_holes(const sn_pool *pool, const naive *n) {
  uint64_t top = top_of(n), at = 0;
  assert_int_equal(pool->top, top * BLOCK);
  while (at < top) {
    uint64_t run = n->used[at] ? 0 : free_run(n, at);
    uint32_t node = sn_ordered_floor(&pool->holes, at * BLOCK);
    bool begins = node && pool->holes.nodes[node].key == at * BLOCK;
    assert_int_equal(begins, run > 0);
    if (begins) assert_int_equal(pool->holes.nodes[node].weight, run * BLOCK);
    at += run > 0 ? run : 1;
  }
  assert_int_equal(sn_ordered_ceiling(&pool->holes, top * BLOCK), SN_ORDERED_NONE);
}

static void check_accounts(const sn_pool *pool, const naive *n) {
  assert_int_equal(pool->reserved, n->reserved * BLOCK);
  assert_int_equal(pool->reserved_peak, n->reserved_peak * BLOCK);
  assert_int_equal(pool->high_water, n->high * BLOCK);
  assert_int_equal(pool->largest_hole, n->largest_hole * BLOCK);
}

typedef struct piece {
  uint64_t offset, bytes;
} piece;

/* One request of both pools; true where it was granted. */
static bool take(sn_pool *pool, naive *n, uint64_t bytes, uint64_t limit, piece *got) {
  uint64_t blocks = (bytes + BLOCK - 1) / BLOCK, expected = first_fit(n, blocks, limit / BLOCK);
  bool taken = sn_pool_take(pool, bytes, limit, &got->offset);
  assert_int_equal(taken, expected != UINT64_MAX);
  if (!taken) return false;
  assert_int_equal(got->offset, expected * BLOCK);
  got->bytes = bytes;
  mark(n, expected, blocks, true);
  return true;
}

/* A region of either pool that is free, up to the end of the array; true where the dice found one. */
static bool take_somewhere(sn_pool *pool, naive *n, uint64_t *seed, piece *got) {
  uint64_t at = prng_below(seed, BLOCKS), blocks = 1 + prng_below(seed, 12);
  if (at + blocks > BLOCKS || n->used[at] || free_run(n, at) < blocks) return false;
  *got = (piece){at * BLOCK, blocks * BLOCK - prng_below(seed, BLOCK)};
  assert_int_equal(sn_pool_take_at(pool, got->offset, got->bytes), SN_OK);
  mark(n, at, blocks, true);
  return true;
}

static void give(sn_pool *pool, naive *n, piece p) {
  assert_int_equal(sn_pool_give(pool, p.offset, p.bytes), SN_OK);
  mark(n, p.offset / BLOCK, (p.bytes + BLOCK - 1) / BLOCK, false);
}

/* Requests in any order of sizes and limits; limits need not be whole blocks. */
static void random_round(uint64_t *seed) {
  sn_pool pool = {0};
  naive n = {0};
  piece pieces[BLOCKS];
  uint32_t count = 0;
  for (int i = 0; i < 3000; i++) {
    if (count == 0 || prng_below(seed, 100) < 52) {
      uint64_t bytes = 1 + prng_below(seed, prng_below(seed, 5) ? 6 * BLOCK : 60 * BLOCK);
      uint64_t limit = prng_below(seed, BLOCKS * BLOCK);
      count += take(&pool, &n, bytes, limit, &pieces[count]);
    } else if (prng_below(seed, 6) == 0) {
      count += take_somewhere(&pool, &n, seed, &pieces[count]);
    } else if (count > 0) {
      uint32_t victim = prng_below(seed, count);
      give(&pool, &n, pieces[victim]);
      pieces[victim] = pieces[--count];
    }
    check_holes(&pool, &n);
    check_accounts(&pool, &n);
    uint64_t limit = prng_below(seed, BLOCKS * BLOCK);
    assert_int_equal(sn_pool_largest(&pool, limit), largest_below(&n, limit / BLOCK) * BLOCK);
  }
  while (count > 0) give(&pool, &n, pieces[--count]);
  assert_int_equal(pool.top, 0);
  assert_int_equal(pool.holes.root, SN_ORDERED_NONE);
  sn_pool_clear(&pool);
}

static void random_requests(void **state) {
  (void)state;
  uint64_t seed = first_seed(12);
  for (int round = 0; round < 12; round++) random_round(&seed);
}

static uint64_t must_take(sn_pool *pool, uint64_t bytes) {
  uint64_t offset = UINT64_MAX;
  assert_true(sn_pool_take(pool, bytes, UINT64_MAX, &offset));
  return offset;
}

/* First fit, not best fit: the lowest hole, though a later one fits exactly. */
static void first_not_best(void **state) {
  (void)state;
  sn_pool pool = {0};
  uint64_t a = must_take(&pool, 3 * BLOCK), b = must_take(&pool, 1), c = must_take(&pool, BLOCK + 1);
  uint64_t d = must_take(&pool, BLOCK);
  assert_int_equal(a, 0);
  assert_int_equal(b, 3 * BLOCK);
  assert_int_equal(c, 4 * BLOCK);
  assert_int_equal(d, 6 * BLOCK);
  sn_pool_give(&pool, c, BLOCK + 1);
  sn_pool_give(&pool, a, 3 * BLOCK);
  assert_int_equal(must_take(&pool, 2 * BLOCK), 0);
  assert_int_equal(must_take(&pool, 2 * BLOCK), 4 * BLOCK);
  assert_int_equal(must_take(&pool, 2 * BLOCK), 7 * BLOCK); /* the hole of one block at 2 is too small */
  assert_int_equal(must_take(&pool, BLOCK), 2 * BLOCK);
  assert_int_equal(pool.high_water, 9 * BLOCK);
  sn_pool_clear(&pool);
}

/* A region given back joins both neighbours and, at the end, what was never used. */
static void merging(void **state) {
  (void)state;
  sn_pool pool = {0};
  uint64_t at[4];
  for (int i = 0; i < 4; i++) at[i] = must_take(&pool, BLOCK);
  sn_pool_give(&pool, at[0], BLOCK);
  sn_pool_give(&pool, at[2], BLOCK);
  assert_int_equal(sn_pool_largest(&pool, 4 * BLOCK), BLOCK);
  sn_pool_give(&pool, at[1], BLOCK);
  assert_int_equal(sn_pool_largest(&pool, 4 * BLOCK), 3 * BLOCK);
  assert_int_equal(sn_pool_largest(&pool, 2 * BLOCK + 1023), 2 * BLOCK);
  sn_pool_give(&pool, at[3], BLOCK);
  assert_int_equal(pool.top, 0);
  assert_int_equal(pool.reserved, 0);
  assert_int_equal(pool.high_water, 4 * BLOCK);
  assert_true(sn_pool_largest(&pool, UINT64_MAX) == UINT64_MAX / BLOCK * BLOCK);
  sn_pool_clear(&pool);
}

static void limits(void **state) {
  (void)state;
  sn_pool pool = {0};
  uint64_t offset = 0;
  assert_false(sn_pool_take(&pool, 1, 0, &offset));
  assert_false(sn_pool_take(&pool, 1, BLOCK - 1, &offset));
  assert_false(sn_pool_take(&pool, BLOCK + 1, 2 * BLOCK - 1, &offset));
  assert_true(sn_pool_take(&pool, 1, BLOCK, &offset));
  assert_int_equal(pool.high_water, BLOCK);
  assert_int_equal(sn_pool_largest(&pool, 0), 0);
  assert_int_equal(sn_pool_largest(&pool, BLOCK), 0);
  assert_int_equal(sn_pool_largest(&pool, 2 * BLOCK - 1), 0);
  sn_pool_clear(&pool);
}

static void whole_blocks(void **state) {
  (void)state;
  assert_int_equal(SN_POOL_BLOCK, BLOCK);
  assert_int_equal(sn_pool_round(0), 0);
  assert_int_equal(sn_pool_round(1), BLOCK);
  assert_int_equal(sn_pool_round(BLOCK), BLOCK);
  assert_int_equal(sn_pool_round(BLOCK + 1), 2 * BLOCK);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_requests), cmocka_unit_test(first_not_best), cmocka_unit_test(merging),
      cmocka_unit_test(limits),          cmocka_unit_test(whole_blocks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
