/* Ordered map against a plain array: random operations, every query after every change. */
#include "base/ordered.h"
#include "tests/support/seed.h"

#include <string.h>

/* Keys are below KEYS; weight[k] is 0 where k is not in the map. */
enum { KEYS = 300 };

typedef struct model {
  uint64_t weight[KEYS];
  uint32_t node[KEYS];
} model;

static uint64_t draw_weight(uint64_t *seed) {
  return prng_below(seed, 8) ? 1 + prng_below(seed, 50) : prng_next(seed) | 1;
}

static void check_node(const sn_ordered *map, const model *m, uint32_t node, int64_t key) {
  if (key < 0) {
    assert_int_equal(node, SN_ORDERED_NONE);
    return;
  }
  assert_int_equal(node, m->node[key]);
  assert_int_equal(map->nodes[node].key, key);
  assert_true(map->nodes[node].weight == m->weight[key]);
}

static void check_queries(const sn_ordered *map, const model *m, uint64_t at, uint64_t weight) {
  int64_t floor = -1, ceiling = -1, first = -1;
  uint64_t most = 0;
  for (int64_t k = 0; k < KEYS; k++) {
    if (!m->weight[k]) continue;
    if ((uint64_t)k <= at) floor = k;
    if ((uint64_t)k >= at && ceiling < 0) ceiling = k;
    if (m->weight[k] >= weight && first < 0) first = k;
    if ((uint64_t)k < at && m->weight[k] > most) most = m->weight[k];
  }
  check_node(map, m, sn_ordered_floor(map, at), floor);
  check_node(map, m, sn_ordered_ceiling(map, at), ceiling);
  check_node(map, m, sn_ordered_first(map, weight), first);
  assert_true(sn_ordered_most_below(map, at) == most);
}

/* To any key on the way to the next one. */
static void move(sn_ordered *map, model *m, uint64_t key, uint64_t weight, uint64_t *seed) {
  bool up = prng_below(seed, 2) == 0;
  uint64_t to = key, steps = prng_below(seed, 5);
  while (steps-- > 0 && (up ? to + 1 < KEYS && !m->weight[to + 1] : to > 0 && !m->weight[to - 1]))
    to = up ? to + 1 : to - 1;
  sn_ordered_move(map, key, to, weight);
  m->weight[key] = 0;
  m->weight[to] = weight;
  m->node[to] = m->node[key];
}

static void change(sn_ordered *map, model *m, uint64_t *seed) {
  uint64_t key = prng_below(seed, KEYS), weight = draw_weight(seed);
  if (!m->weight[key]) {
    m->node[key] = sn_ordered_insert(map, key, weight);
    assert_int_not_equal(m->node[key], SN_ORDERED_NONE);
    m->weight[key] = weight;
  } else if (prng_below(seed, 3) == 0) {
    sn_ordered_weigh(map, key, weight);
    m->weight[key] = weight;
  } else if (prng_below(seed, 3) == 0) {
    move(map, m, key, weight, seed);
  } else {
    sn_ordered_remove(map, key);
    m->weight[key] = 0;
  }
}

static void random_operations(void **state) {
  (void)state;
  uint64_t seed = first_seed(11);
  for (int round = 0; round < 20; round++) {
    sn_ordered map = {0};
    model m = {0};
    for (int i = 0; i < 2000; i++) {
      change(&map, &m, &seed);
      uint64_t at = prng_below(&seed, KEYS + 2), weight = draw_weight(&seed);
      check_queries(&map, &m, at, weight);
    }
    for (uint64_t k = 0; k < KEYS; k++)
      if (m.weight[k]) sn_ordered_remove(&map, k);
    assert_int_equal(map.root, SN_ORDERED_NONE);
    sn_ordered_clear(&map);
  }
}

static void empty_map(void **state) {
  (void)state;
  sn_ordered map = {0};
  assert_int_equal(sn_ordered_floor(&map, UINT64_MAX), SN_ORDERED_NONE);
  assert_int_equal(sn_ordered_ceiling(&map, 0), SN_ORDERED_NONE);
  assert_int_equal(sn_ordered_first(&map, 0), SN_ORDERED_NONE);
  assert_true(sn_ordered_most_below(&map, UINT64_MAX) == 0);
  sn_ordered_clear(&map);
}

/* Keys and weights at the ends of their range. */
static void extremes(void **state) {
  (void)state;
  sn_ordered map = {0};
  uint32_t low = sn_ordered_insert(&map, 0, UINT64_MAX), high = sn_ordered_insert(&map, UINT64_MAX, 1);
  assert_int_equal(sn_ordered_floor(&map, UINT64_MAX - 1), low);
  assert_int_equal(sn_ordered_ceiling(&map, 1), high);
  assert_int_equal(sn_ordered_first(&map, UINT64_MAX), low);
  assert_true(sn_ordered_most_below(&map, 0) == 0);
  assert_true(sn_ordered_most_below(&map, 1) == UINT64_MAX);
  sn_ordered_clear(&map);
  assert_null(map.nodes);
}

static uint32_t depth_of(const sn_ordered *map, uint32_t node) {
  if (!node) return 0;
  uint32_t left = depth_of(map, map->nodes[node].left), right = depth_of(map, map->nodes[node].right);
  return 1 + (left > right ? left : right);
}

/* Recursion is as deep as the tree, so keys in order must not make a list of it. */
static void shallow(void **state) {
  (void)state;
  enum { COUNT = 100000 };
  for (int falling = 0; falling < 2; falling++) {
    sn_ordered map = {0};
    for (uint64_t i = 0; i < COUNT; i++) sn_ordered_insert(&map, falling ? COUNT - i : i, i + 1);
    assert_in_range(depth_of(&map, map.root), 17, 60);
    for (uint64_t i = 0; i < COUNT; i += 2) sn_ordered_remove(&map, falling ? COUNT - i : i);
    for (uint64_t i = 0; i < COUNT; i += 2) sn_ordered_insert(&map, falling ? COUNT - i : i, i + 1);
    assert_in_range(depth_of(&map, map.root), 17, 60);
    assert_int_equal(map.used, COUNT); /* nodes given back are used again */
    sn_ordered_clear(&map);
  }
}

/* Keys several times, with different weights: all pairs in order, whichever was put in or taken out before. */
static void pairs(void **state) {
  (void)state;
  enum { SIZES = 6, PLACES = 40 };
  bool there[SIZES][PLACES] = {{false}};
  uint64_t seed = first_seed(12);
  sn_ordered map = {0};
  for (int i = 0; i < 20000; i++) {
    uint32_t key = prng_below(&seed, SIZES), weight = prng_below(&seed, PLACES);
    if (there[key][weight])
      sn_ordered_remove_pair(&map, key, weight);
    else
      assert_int_not_equal(sn_ordered_insert(&map, key, weight), SN_ORDERED_NONE);
    there[key][weight] = !there[key][weight];
    uint32_t k = prng_below(&seed, SIZES), w = prng_below(&seed, PLACES), at = k * PLACES + w;
    uint32_t found = sn_ordered_ceiling_pair(&map, k, w);
    while (at < SIZES * PLACES && !there[at / PLACES][at % PLACES]) at++;
    assert_int_equal(found == SN_ORDERED_NONE, at == SIZES * PLACES);
    if (found) assert_true(map.nodes[found].key == at / PLACES && map.nodes[found].weight == at % PLACES);
  }
  sn_ordered_clear(&map);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_operations), cmocka_unit_test(empty_map), cmocka_unit_test(extremes),
      cmocka_unit_test(shallow),           cmocka_unit_test(pairs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
