/* Packing along the skyline and over time: rectangles cut into blocks, of which some are taken away, fit into what was
 * cut; what is found keeps the rules, and a byte less than the optimum is never found.
 *
 *   SN_SEED   of the random blocks (default: 1) */
#include "sim/memory/pack_skyline.h"
#include "sim/memory/pack_sweep.h"
#include "tests/support/prng.h"
#include "tests/support/seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { SECTIONS = 40, CAPACITY = 200, MOST = 120, PROBLEMS = 60, TRIES = 30, WAYS = 1 << 20 };

static uint64_t seeds; /* the first */

typedef struct piece {
  uint32_t lower, upper;
  uint64_t low, high;
} piece;

/* Cuts one of the pieces in two, over its life or its height. */
static uint32_t cut(piece *pieces, uint32_t n, uint64_t *dice) {
  piece *p = &pieces[prng_below(dice, n)];
  pieces[n] = *p;
  if (prng_chance(dice, 50)) {
    if (p->upper - p->lower < 2) return n;
    p->upper = pieces[n].lower = prng_from(dice, p->lower + 1, p->upper - 1);
  } else {
    if (p->high - p->low < 2) return n;
    p->high = pieces[n].low = prng_from(dice, (uint32_t)p->low + 1, (uint32_t)p->high - 1);
  }
  return n + 1;
}

static int compare_lives(const void *a, const void *b) {
  const sn__life *x = a, *y = b;
  if (x->lower != y->lower) return x->lower < y->lower ? -1 : 1;
  if (x->upper != y->upper) return x->upper < y->upper ? -1 : 1;
  return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

/* Blocks that fit into CAPACITY; each section has one, as the lowest piece of each is left. */
static uint32_t cut_lives(sn__life *lives, uint32_t wanted, uint64_t *dice) {
  piece pieces[MOST + 1] = {{0, SECTIONS, 0, CAPACITY}};
  uint32_t n = 1, left = 0;
  for (uint32_t tries = 0; n < wanted && tries < 10 * MOST; tries++) n = cut(pieces, n, dice);
  for (uint32_t i = 0; i < n; i++)
    if (pieces[i].low == 0 || !prng_chance(dice, 10))
      lives[left++] = (sn__life){pieces[i].high - pieces[i].low, pieces[i].lower, pieces[i].upper};
  qsort(lives, left, sizeof *lives, compare_lives);
  return left;
}

/* Either beam. */
typedef struct beam {
  sn__skyline *sky;
  sn__sweep *sweep;
} beam;

static beam make_beam(bool over_time, const sn__life *lives, uint32_t n, uint32_t n_sections) {
  beam b = {over_time ? NULL : sn__skyline_new(lives, n, n_sections),
            over_time ? sn__sweep_new(lives, n, n_sections) : NULL};
  assert_true(b.sky || b.sweep);
  return b;
}

static void drop_beam(beam b) {
  sn__skyline_free(b.sky);
  sn__sweep_free(b.sweep);
}

static bool try_beam(beam b, uint64_t capacity, bool (*may_look)(void *), void *context, uint64_t *offsets) {
  return b.sky ? sn__skyline_try(b.sky, capacity, may_look, context, offsets)
               : sn__sweep_try(b.sweep, capacity, may_look, context, offsets);
}

static bool look(void *left) {
  return (*(uint32_t *)left)-- > 0;
}

static void must_be_packed(const sn__life *lives, uint32_t n, const uint64_t *offsets, uint64_t capacity,
                           uint64_t seed) {
  for (uint32_t i = 0; i < n; i++) {
    if (offsets[i] + lives[i].bytes > capacity) fail_msg("seed %" PRIu64 ": block %u passes the capacity", seed, i);
    for (uint32_t j = 0; j < i; j++)
      if (lives[i].lower < lives[j].upper && lives[j].lower < lives[i].upper &&
          offsets[i] < offsets[j] + lives[j].bytes && offsets[j] < offsets[i] + lives[i].bytes)
        fail_msg("seed %" PRIu64 ": blocks %u and %u overlap", seed, j, i);
  }
}

/* The number of the try that finds offsets; 0: none does. */
static uint32_t search(bool over_time, const sn__life *lives, uint32_t n, uint64_t capacity, uint64_t *offsets) {
  uint32_t found = 0, left = WAYS;
  beam b = make_beam(over_time, lives, n, SECTIONS);
  for (uint32_t t = 1; t <= TRIES && found == 0; t++)
    if (try_beam(b, capacity, look, &left, offsets)) found = t;
  drop_beam(b);
  return found;
}

static void check_cuts(bool over_time) {
  uint32_t found = 0, first = 0;
  for (uint64_t k = 0; k < PROBLEMS; k++) {
    uint64_t seed = seeds + k, dice = seed, offsets[MOST], again[MOST];
    sn__life lives[MOST];
    uint32_t n = cut_lives(lives, prng_from(&dice, 2, MOST), &dice),
             found_at = search(over_time, lives, n, CAPACITY, offsets);
    assert_int_equal(search(over_time, lives, n, CAPACITY, again), found_at);
    if (found_at == 0) continue;
    must_be_packed(lives, n, offsets, CAPACITY, seed);
    assert_memory_equal(offsets, again, n * sizeof *offsets);
    found++;
    first += found_at == 1;
  }
  print_message("%u of %d problems solved, %u in the first try\n", found, PROBLEMS, first);
  assert_true(found >= PROBLEMS / 2 && found > first);
}

static void what_was_cut_is_packed(void **state) {
  (void)state;
  check_cuts(false);
  check_cuts(true);
}

/* 13 of 13 at once, and 14 at least: blocks of the exact search's tests, whose optimum lies above their load. */
static void check_optimum(bool over_time) {
  static const sn__life lives[] = {{4, 0, 2}, {1, 1, 4}, {3, 2, 3}, {2, 2, 5}, {2, 3, 7}, {2, 4, 6}, {3, 6, 7}};
  enum { N = sizeof lives / sizeof *lives };
  uint64_t offsets[N], load = 0;
  uint32_t left = WAYS;
  for (uint32_t t = 0; t < 7; t++) {
    uint64_t now = 0;
    for (uint32_t i = 0; i < N; i++) now += lives[i].lower <= t && t < lives[i].upper ? lives[i].bytes : 0;
    load = now > load ? now : load;
  }
  beam b = make_beam(over_time, lives, N, 7);
  for (uint32_t t = 0; t < TRIES; t++) assert_false(try_beam(b, load, look, &left, offsets));
  assert_true(try_beam(b, load + 1, look, &left, offsets));
  must_be_packed(lives, N, offsets, load + 1, 0);
  left = 0;
  assert_false(try_beam(b, load + 1, look, &left, offsets));
  drop_beam(b);
}

static void less_than_the_optimum_is_not_found(void **state) {
  (void)state;
  check_optimum(false);
  check_optimum(true);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_was_cut_is_packed),
      cmocka_unit_test(less_than_the_optimum_is_not_found),
  };
  seeds = first_seed(1);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
