/* Bins: whatever is put and pulled, each block is found, and all stand in order. Against a plain sorted array. */
#include "sim/memory/bins.h"
#include "tests/support/prng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>
#include <string.h>

enum { MOST = 1000, TURNS = 20000, UNIT = 512 };

typedef struct plain {
  uint32_t numbers[MOST];
  uint32_t n;
} plain;

static sn__block blocks[MOST + 1];

static uint32_t blocks_before(const plain *p, uint64_t bytes, uint64_t address) {
  uint32_t n = 0;
  for (; n < p->n; n++) {
    const sn__block *b = &blocks[p->numbers[n]];
    if (b->bytes > bytes || (b->bytes == bytes && b->address >= address)) break;
  }
  return n;
}

static void plain_put(plain *p, uint32_t number) {
  uint32_t at = blocks_before(p, blocks[number].bytes, blocks[number].address);
  memmove(&p->numbers[at + 1], &p->numbers[at], (p->n++ - at) * sizeof *p->numbers);
  p->numbers[at] = number;
}

static void plain_pull(plain *p, uint32_t at) {
  memmove(&p->numbers[at], &p->numbers[at + 1], (--p->n - at) * sizeof *p->numbers);
}

static void compare(const sn__bins *bins, const plain *p, uint64_t bytes) {
  uint32_t at = blocks_before(p, bytes, 0);
  assert_int_equal(sn__bins_find(bins, blocks, bytes), at < p->n ? p->numbers[at] : 0);
  assert_int_equal(sn__bins_first(bins, blocks), p->n > 0 ? p->numbers[0] : 0);
  assert_int_equal(sn__bins_last(bins, blocks), p->n > 0 ? p->numbers[p->n - 1] : 0);
}

static void compare_order(const sn__bins *bins, const plain *p) {
  uint32_t number = sn__bins_first(bins, blocks);
  for (uint32_t i = 0; i < p->n; i++) {
    assert_int_equal(number, p->numbers[i]);
    number = sn__bins_next(bins, blocks, number);
  }
  assert_int_equal(number, 0);
}

/* From one unit to the most there is; few small sizes, so that many are equal. */
static uint64_t draw_bytes(uint64_t *dice) {
  uint32_t shift = prng_from(dice, 14, 60);
  uint64_t large = 1 + (prng_next(dice) >> shift), units = prng_chance(dice, 50) ? prng_from(dice, 1, 20) : large;
  return (units > UINT64_C(1) << 50 ? UINT64_C(1) << 50 : units) * UNIT;
}

static void put_one(sn__bins *bins, plain *p, uint32_t number, uint64_t *dice) {
  uint64_t bytes = draw_bytes(dice);
  blocks[number] = (sn__block){.address = ((uint64_t)prng_below(dice, 100) << 32) + number, .bytes = bytes};
  sn__bins_put(bins, blocks, number);
  plain_put(p, number);
}

/* To any size, or to one close by; the plain one takes it out, and in again. */
static void change_one(sn__bins *bins, plain *p, uint64_t *dice) {
  uint32_t at = prng_below(dice, p->n), number = p->numbers[at];
  bool near = prng_chance(dice, 50);
  uint64_t bytes = near ? blocks[number].bytes + prng_from(dice, 0, 3) * UNIT : draw_bytes(dice);
  uint64_t address = blocks[number].address + ((uint64_t)prng_below(dice, 3) << 32);
  plain_pull(p, at);
  sn__bins_change(bins, blocks, number, address, bytes);
  assert_true(blocks[number].address == address && blocks[number].bytes == bytes);
  plain_put(p, number);
}

static void turn(sn__bins *bins, plain *p, bool *is_put, uint64_t *dice, uint32_t fullness) {
  uint32_t number = 1 + prng_below(dice, MOST);
  bool puts = p->n == 0 || (!is_put[number] && prng_chance(dice, fullness));
  if (puts && !is_put[number]) {
    put_one(bins, p, number, dice);
    is_put[number] = true;
  } else if (p->n > 0 && prng_chance(dice, 40)) {
    change_one(bins, p, dice);
  } else if (p->n > 0) {
    uint32_t at = prng_below(dice, p->n);
    is_put[p->numbers[at]] = false;
    sn__bins_pull(bins, blocks, p->numbers[at]);
    plain_pull(p, at);
  }
}

static void like_a_sorted_array(void **state) {
  (void)state;
  static plain p;
  static bool is_put[MOST + 1];
  sn__bins bins = {0};
  uint64_t dice = 1;
  uint32_t fullness = 50, most = 0;
  for (uint32_t i = 0; i < TURNS; i++) {
    if (i % 2000 == 0) fullness = prng_from(&dice, 20, 98);
    turn(&bins, &p, is_put, &dice, fullness);
    if (p.n > most) most = p.n;
    compare(&bins, &p, draw_bytes(&dice));
    if (i % 100 == 0) compare_order(&bins, &p);
  }
  assert_true(most > 300);
}

/* How far below a block the last one of its tree is. */
static uint32_t depth_of(const sn__block *tree, uint32_t number) {
  if (!number) return 0;
  uint32_t smaller = depth_of(tree, tree[number].smaller), larger = depth_of(tree, tree[number].larger);
  return 1 + (smaller > larger ? smaller : larger);
}

/* As deep networks free them: in the order of their addresses, numbers as far apart as blocks of a layer. */
static void many_of_one_size_stay_near(void **state) {
  (void)state;
  enum { MANY = 50000, STRIDE = 13, NEAR = 64 };
  sn__block *many = calloc((size_t)MANY * STRIDE + 1, sizeof *many);
  sn__bins *bins = calloc(1, sizeof *bins);
  assert_true(many && bins);
  for (uint32_t number = STRIDE; number <= MANY * STRIDE; number += STRIDE) {
    many[number] = (sn__block){.address = (uint64_t)number * UNIT, .bytes = UNIT};
    sn__bins_put(bins, many, number);
  }
  assert_int_equal(sn__bins_find(bins, many, UNIT), STRIDE);
  for (uint32_t bin = 0; bin < SN__BINS; bin++) assert_true(depth_of(many, bins->root[bin]) < NEAR);
  for (uint32_t number = STRIDE; number <= MANY * STRIDE; number += STRIDE) {
    assert_int_equal(sn__bins_first(bins, many), number);
    sn__bins_pull(bins, many, number);
  }
  assert_int_equal(sn__bins_first(bins, many), 0);
  free(many);
  free(bins);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(like_a_sorted_array),
                                     cmocka_unit_test(many_of_one_size_stay_near)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
