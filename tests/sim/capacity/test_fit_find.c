/* The search of sim/capacity/fit.h over functions made for it: slack that falls evenly, in steps, ever faster, ever slower;
 * values that fail although larger ones fit; ranges that begin late, end early, have nothing or everything in them. The
 * answer is compared with that of asking every value. */
#include "sim/capacity/fit.h"
#include "tests/support/seed.h"

#include <stdio.h>

typedef enum shape { EVEN, STEPS, FASTER, SLOWER, CUT, SHAPES } shape;

typedef struct curve {
  shape shape;
  int64_t memory; /* slack at 0 */
  int64_t fall;   /* per value */
  uint32_t bad;   /* so many per cent of the values fail by holes */
  uint64_t seed;
  bool falls;     /* the search is told that slack never rises */
  uint32_t asked; /* measurements so far */
} curve;

static int64_t slack_at(const curve *c, uint32_t value) {
  int64_t v = value;
  switch (c->shape) {
  case EVEN:
    return c->memory - c->fall * v;
  case STEPS:
    return c->memory - c->fall * 10 * (v / 10);
  case FASTER:
    return c->memory - c->fall * v * v / 100;
  case SLOWER: /* two straight lines, the second nearly flat */
    return c->memory - (v < 50 ? 10 * c->fall * v : 10 * c->fall * 50 + c->fall * (v - 50) / 10);
  case CUT: /* beyond 777 there is nothing to measure */
    return v > 777 ? INT64_MIN : c->memory - c->fall * v / 1000;
  case SHAPES:
    break;
  }
  return 0;
}

static bool has_holes(const curve *c, uint32_t value) {
  uint64_t dice = c->seed ^ ((uint64_t)value << 20);
  return prng_chance(&dice, c->bad);
}

static bool fits_at(const curve *c, uint32_t value) {
  return slack_at(c, value) >= 0 && !has_holes(c, value);
}

static sn_status measure(void *user, uint32_t value, sn_need *need, sn_err *err) {
  curve *c = user;
  (void)err;
  c->asked++;
  *need = (sn_need){.fits = fits_at(c, value), .slack_bytes = slack_at(c, value)};
  return SN_OK;
}

/* What asking all of them says. */
static uint32_t brute(const curve *c, uint32_t low, uint32_t high) {
  uint32_t best = 0;
  for (uint32_t v = low; v <= high; v++)
    if (fits_at(c, v)) best = v;
  return best;
}

static sn_fit_search find(curve *c, uint32_t low, uint32_t high, uint32_t most) {
  sn_err err = SN_ERR_INIT;
  sn_fit_search found = {.value = 99};
  c->asked = 0;
  const sn_fit_range range = {.low = low, .high = high, .most_tried = most, .falls = c->falls};
  assert_int_equal(sn_fit_find(&range, measure, c, &found, &err), SN_OK);
  assert_int_equal(found.plans, c->asked); /* nothing is measured twice */
  return found;
}

static void finds_the_boundary_of_every_shape(void **state) {
  (void)state;
  for (int s = 0; s < SHAPES; s++)
    for (int64_t memory = -1; memory < 40000; memory = 4 * memory / 3 + 2) {
      curve c = {.shape = (shape)s, .memory = memory, .fall = 7};
      sn_fit_search found = find(&c, 1, 3000, 4000);
      assert_int_equal(found.value, brute(&c, 1, 3000));
      assert_true(found.proved);
      assert_int_equal(found.misfits, 0);
    }
}

static void needs_few_plans_where_memory_is_even(void **state) {
  (void)state;
  for (int64_t memory = 100; memory < INT64_C(1) << 40; memory *= 3) {
    curve c = {.shape = EVEN, .memory = memory, .fall = 11};
    sn_fit_search found = find(&c, 1, 16777216, 4000);
    assert_int_equal(found.value, memory / 11 < 16777216 ? memory / 11 : 16777216);
    assert_true(found.plans <= 14);
  }
}

static void finds_the_largest_between_holes(void **state) {
  (void)state;
  uint64_t dice = first_seed(41);
  uint32_t misfits = 0;
  for (int round = 0; round < 400; round++) {
    curve c = {.shape = (shape)prng_below(&dice, SHAPES), .fall = 7};
    c.seed = prng_next(&dice);
    c.memory = prng_below(&dice, 20000);
    c.bad = prng_below(&dice, 100);
    uint32_t low = prng_from(&dice, 1, 30), high = prng_from(&dice, low, 2500);
    sn_fit_search found = find(&c, low, high, 4000);
    assert_int_equal(found.value, brute(&c, low, high));
    assert_true(found.proved);
    assert_true(found.value == 0 || (found.tried_from <= found.value && found.value <= found.tried_to));
    misfits += found.misfits > 0;
    if (found.misfits) {
      assert_true(found.misfit < found.value);
      assert_false(fits_at(&c, found.misfit));
    }
  }
  assert_true(misfits > 50); /* the holes were there */
}

/* What was not tried is said: the answer is then a boundary, and `proved` is false wherever a larger value fits. */
static void says_where_it_gave_up(void **state) {
  (void)state;
  uint64_t dice = first_seed(42);
  uint32_t gave_up = 0, missed = 0;
  for (int round = 0; round < 400; round++) {
    curve c = {.shape = EVEN, .memory = 5000, .fall = 7, .seed = prng_next(&dice), .bad = 90};
    sn_fit_search found = find(&c, 1, 3000, 3);
    uint32_t best = brute(&c, 1, 3000);
    assert_true(found.value == 0 || fits_at(&c, found.value));
    assert_true(found.tried_to >= found.value);
    for (uint32_t v = found.value + 1; v <= found.tried_to; v++) assert_false(fits_at(&c, v));
    gave_up += !found.proved;
    missed += found.value != best;
    if (found.proved) assert_int_equal(found.value, best);
  }
  assert_true(gave_up > 100);
  assert_true(missed > 10);
}

static void looks_beyond_where_tensors_grow_unevenly(void **state) {
  (void)state;
  /* 100 and 101 do not fit, 102 does: the scan beyond the edge sees it, although slack was below 0 between. */
  curve c = {.shape = EVEN, .memory = 700, .fall = 7};
  sn_fit_search found = find(&c, 1, 200, 100);
  assert_int_equal(found.value, 100);
  assert_true(found.tried_to >= 103);
}

static void looks_no_further_where_slack_never_rises(void **state) {
  (void)state;
  curve c = {.shape = EVEN, .memory = 700, .fall = 7, .falls = true};
  sn_fit_search found = find(&c, 1, 200, 100);
  assert_int_equal(found.value, 100);
  assert_int_equal(found.tried_to, 101);
  assert_true(found.proved);
  assert_int_equal(find(&c, 1, 100, 100).tried_to, 100);
  assert_int_equal(find(&c, 150, 200, 100).tried_to, 150);
}

/* Whatever holes there are. */
static void finds_the_largest_where_slack_never_rises(void **state) {
  (void)state;
  uint64_t dice = first_seed(43);
  for (int round = 0; round < 400; round++) {
    curve c = {.shape = (shape)prng_below(&dice, SHAPES), .fall = 7, .falls = true};
    c.seed = prng_next(&dice);
    c.memory = prng_below(&dice, 20000);
    c.bad = prng_below(&dice, 100);
    sn_fit_search found = find(&c, 1, 2500, 4000);
    assert_int_equal(found.value, brute(&c, 1, 2500));
    assert_true(found.proved);
  }
}

static sn_status fail_at_five(void *user, uint32_t value, sn_need *need, sn_err *err) {
  (void)user;
  *need = (sn_need){.fits = true, .slack_bytes = 100 - (int64_t)value};
  return value >= 5 ? sn_fail(err, SN_NO_MEMORY, "at %u", value) : SN_OK;
}

static void passes_errors_on(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_fit_search found;
  const sn_fit_range range = {.low = 1, .high = 1000, .most_tried = 10};
  assert_int_equal(sn_fit_find(&range, fail_at_five, NULL, &found, &err), SN_NO_MEMORY);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(finds_the_boundary_of_every_shape),
      cmocka_unit_test(needs_few_plans_where_memory_is_even),
      cmocka_unit_test(finds_the_largest_between_holes),
      cmocka_unit_test(says_where_it_gave_up),
      cmocka_unit_test(looks_beyond_where_tensors_grow_unevenly),
      cmocka_unit_test(looks_no_further_where_slack_never_rises),
      cmocka_unit_test(finds_the_largest_where_slack_never_rises),
      cmocka_unit_test(passes_errors_on),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
