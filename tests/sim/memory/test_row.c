/* Rows: whatever is put and pulled, items stand in order, and each is found. Against a plain sorted array. */
#include "sim/memory/row.h"
#include "tests/support/prng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

enum { MOST = 1000, TURNS = 20000 };

typedef struct plain {
  sn__row_item items[MOST];
  uint32_t n;
} plain;

static uint32_t items_before(const plain *p, uint64_t first, uint64_t second) {
  uint32_t n = 0;
  while (n < p->n && (p->items[n].first < first || (p->items[n].first == first && p->items[n].second < second))) n++;
  return n;
}

static void plain_put(plain *p, sn__row_item item) {
  uint32_t at = items_before(p, item.first, item.second);
  memmove(&p->items[at + 1], &p->items[at], (p->n++ - at) * sizeof item);
  p->items[at] = item;
}

static void plain_pull(plain *p, uint32_t at) {
  memmove(&p->items[at], &p->items[at + 1], (--p->n - at) * sizeof *p->items);
}

static bool same(const sn__row_item *a, const sn__row_item *b) {
  return a->first == b->first && a->second == b->second && a->number == b->number;
}

static void compare(const sn__row *row, const plain *p, uint64_t first, uint64_t second) {
  uint32_t at = items_before(p, first, second);
  const sn__row_item *found = sn__row_at(row, sn__row_find(row, first, second));
  assert_true(at < p->n ? found && same(found, &p->items[at]) : !found);
}

/* Few first keys, so that many are equal; pairs are all different, as the second says which it is. */
static sn__row_item draw_item(uint64_t *dice, uint32_t number) {
  uint32_t first = prng_below(dice, 40);
  return (sn__row_item){first, ((uint64_t)prng_below(dice, 100) << 32) + number, number};
}

static void turn(sn__row *row, plain *p, uint64_t *dice, uint32_t number, uint32_t fullness) {
  bool puts = p->n == 0 || (p->n < MOST && prng_chance(dice, fullness));
  sn__row_item item = draw_item(dice, number);
  uint32_t at = puts ? 0 : prng_below(dice, p->n);
  sn__row_place place = puts ? (sn__row_place){0, 0} : sn__row_find(row, p->items[at].first, p->items[at].second);
  if (puts) {
    assert_true(sn__row_put(row, item));
    plain_put(p, item);
  } else {
    sn__row_pull(row, place);
    plain_pull(p, at);
  }
}

static void like_a_sorted_array(void **state) {
  (void)state;
  static plain p;
  sn__row row = {0};
  uint64_t dice = 1;
  uint32_t fullness = 50, most = 0;
  for (uint32_t i = 0; i < TURNS; i++) {
    if (i % 2000 == 0) fullness = prng_from(&dice, 20, 95);
    turn(&row, &p, &dice, i, fullness);
    if (p.n > most) most = p.n;
    uint32_t from = prng_below(&dice, 42);
    compare(&row, &p, from, (uint64_t)prng_below(&dice, 102) << 32);
    if (i % 500 > 0) continue;
    sn__row copy;
    assert_true(sn__row_copy(&copy, &row));
    sn__row_clear(&row);
    row = copy;
    for (uint32_t k = 0; k < p.n; k++) compare(&row, &p, p.items[k].first, p.items[k].second);
  }
  assert_true(most > 500);
  sn__row_clear(&row);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(like_a_sorted_array)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
