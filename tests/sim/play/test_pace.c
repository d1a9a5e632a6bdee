/* Pace and engine: operations that slow each other, by hand; time that passes in pieces; the engine's times against the
 * clock's own. */
#include "sim/device/pace.h"
#include "sim/play/engine.h"
#include "tests/support/seed.h"

/* Operations on other cores slow each other by 1, on the same by 3: with a share of 1024, to 512/1024 and 256/1024. */
static const sn_cores four = {.count = 4, .tile = 1, .slots = 2, .neighbour = 1, .crowd = {2, 3, 4}};

static sn_running on(uint16_t first, uint16_t count, sn_slot slot, uint32_t share) {
  return (sn_running){{first, count, (uint8_t)slot}, share};
}

/* The next end must be of `lane` at `at`; goes there. */
static void ends(sn_pace *pace, uint32_t lane, int64_t at) {
  uint32_t next = SN_PACE_LANES;
  int64_t end = -1;
  assert_true(sn_pace_next(pace, &next, &end));
  if (next != lane || end != at)
    fail_msg("lane %u ends at %lld, expected %u at %lld", next, (long long)end, lane, (long long)at);
  sn_pace_advance(pace, end);
  sn_pace_end(pace, next);
}

static void nothing_runs(sn_pace *pace) {
  uint32_t lane;
  int64_t end;
  assert_false(sn_pace_next(pace, &lane, &end));
}

static void alone(void **state) {
  (void)state;
  sn_pace pace = {.cores = &four};
  nothing_runs(&pace);
  sn_pace_advance(&pace, 7);
  sn_pace_start(&pace, 3, on(0, 4, SN_SLOT_FIRST, 1024), 10);
  ends(&pace, 3, 17);
  sn_pace_start(&pace, 0, on(0, 4, SN_SLOT_FIRST, 1024), 0);
  ends(&pace, 0, 17);
  nothing_runs(&pace);
}

/* 100 and 60 ns at half the speed: the second ends at 120, the first has 40 left then and runs them alone. */
static void neighbours(void **state) {
  (void)state;
  sn_pace pace = {.cores = &four};
  sn_pace_start(&pace, 0, on(0, 2, SN_SLOT_FIRST, 1024), 100);
  sn_pace_start(&pace, 1, on(2, 2, SN_SLOT_FIRST, 1024), 60);
  ends(&pace, 1, 120);
  ends(&pace, 0, 160);
}

/* A third starts at 10, on the second slots of the first's cores. */
static void second_slots(void **state) {
  (void)state;
  sn_pace pace = {.cores = &four};
  uint32_t lane;
  int64_t end;
  sn_pace_start(&pace, 0, on(0, 4, SN_SLOT_FIRST, 1024), 100);
  assert_true(sn_pace_next(&pace, &lane, &end));
  sn_pace_advance(&pace, 10);
  sn_pace_start(&pace, 1, on(0, 4, SN_SLOT_SECOND, 1024), 20); /* 1 + beta + alpha = 4: a quarter of the speed */
  ends(&pace, 1, 90);
  ends(&pace, 0, 160); /* 90 left at 10, 20 less at 90 */
}

/* A share of 0 slows nobody, and is slowed all the same. */
static void shares(void **state) {
  (void)state;
  sn_pace pace = {.cores = &four};
  sn_pace_start(&pace, 0, on(0, 2, SN_SLOT_FIRST, 0), 100);
  sn_pace_start(&pace, 1, on(2, 2, SN_SLOT_FIRST, 1024), 100);
  ends(&pace, 1, 100);
  ends(&pace, 0, 150);
}

/* A rate of 682/1024, 1 ns more than it divides: rounded up at the end only. */
static void rounded_up(void **state) {
  (void)state;
  sn_pace pace = {.cores = &four};
  uint32_t lane;
  int64_t end;
  sn_pace_start(&pace, 0, on(0, 2, SN_SLOT_FIRST, 512), 341);
  sn_pace_start(&pace, 1, on(2, 2, SN_SLOT_FIRST, 512), 1000);
  for (int64_t now = 1; now < 512; now++) { /* 341 x 1024 / 682 = 512 */
    assert_true(sn_pace_next(&pace, &lane, &end));
    assert_int_equal(lane, 0);
    assert_int_equal(end, 512);
    sn_pace_advance(&pace, now);
  }
  ends(&pace, 0, 512);
  ends(&pace, 1, 512 + 659); /* 1000 - 512 x 682 / 1024 */
}

static void lowest_lane_first(void **state) {
  (void)state;
  sn_pace pace = {.cores = &four};
  sn_pace_start(&pace, 5, on(0, 1, SN_SLOT_FIRST, 0), 100);
  sn_pace_start(&pace, 2, on(1, 1, SN_SLOT_FIRST, 0), 100);
  sn_pace_start(&pace, 4, on(2, 1, SN_SLOT_FIRST, 0), 100);
  ends(&pace, 2, 100);
  sn_pace_start(&pace, 0, on(1, 1, SN_SLOT_FIRST, 0), 0);
  ends(&pace, 0, 100);
  ends(&pace, 4, 100);
  ends(&pace, 5, 100);
}

/* ---- the engine ---- */

enum { SPANS = 32 };

static sn_engine *open_engine(uint32_t fences, sn_span *spans) {
  sn_err err = SN_ERR_INIT;
  sn_engine *e = sn_engine_new(SN_ENGINE_LANES, fences, true, spans, &err);
  assert_non_null(e);
  sn_engine_set_cores(e, &four);
  return e;
}

static void span_is(const sn_span *spans, uint32_t tag, int64_t begin, int64_t end) {
  if (spans[tag].begin_ns != begin || spans[tag].end_ns != end)
    fail_msg("task %u: %lld..%lld, expected %lld..%lld", tag, (long long)spans[tag].begin_ns,
             (long long)spans[tag].end_ns, (long long)begin, (long long)end);
}

/* Teams slow each other, neither copies nor tasks without a team, which end in between; the clock goes on behind a
 * drain, and where the host holds everything up. */
static void engine_with_teams(void **state) {
  (void)state;
  sn_span spans[SPANS];
  sn_err err = SN_ERR_INIT;
  sn_engine *e = open_engine(1, spans);
  sn_engine_run_team(e, 0, 100, on(0, 2, SN_SLOT_FIRST, 1024), 0, &err);
  sn_engine_run_team(e, 3, 60, on(2, 2, SN_SLOT_FIRST, 1024), 1, &err);
  sn_engine_copy(e, 1, 30, 2, &err);
  sn_engine_copy(e, 2, 45, 3, &err);
  sn_engine_run(e, 4, 7, 4, &err);
  sn_engine_signal(e, 3, 0, 5, &err);
  sn_engine_wait(e, 4, 0, 6, &err);
  sn_engine_run_team(e, 4, 20, on(2, 1, SN_SLOT_FIRST, 1024), 7, &err); /* 1 of 4 cores: slows by half */
  assert_int_equal(sn_engine_drain(e, &err), SN_OK);
  span_is(spans, 1, 0, 120);
  span_is(spans, 2, 0, 60);
  span_is(spans, 3, 0, 75);
  span_is(spans, 4, 0, 7);
  span_is(spans, 6, 7, 120);
  span_is(spans, 7, 120, 160); /* the other has 2 of 4 */
  span_is(spans, 0, 0, 174);   /* 40 left at 120; 40 ns at 682/1024: 13.36 left at 160 */
  assert_int_equal(sn_engine_busy(e, 0), 174);
  assert_int_equal(sn_engine_pass(e, 26, &err), SN_OK);
  sn_engine_run_team(e, 7, 5, on(0, 4, SN_SLOT_FIRST, 1024), 8, &err);
  assert_int_equal(sn_engine_drain(e, &err), SN_OK);
  span_is(spans, 8, 200, 205);
  sn_engine_free(e);
}

static void engine_adds_up_work(void **state) {
  (void)state;
  sn_span spans[SPANS];
  sn_err err = SN_ERR_INIT;
  sn_engine *e = open_engine(0, spans);
  for (uint32_t lane = 3; lane < 5; lane++) /* the longest there is, at the lowest speed */
    assert_int_equal(sn_engine_run_team(e, lane, SN_ENGINE_MAX_NS / 2, on(0, 2, SN_SLOT_FIRST, 1u << 20), lane, &err),
                     SN_OK);
  assert_int_equal(sn_engine_run_team(e, 0, 1, on(0, 1, SN_SLOT_FIRST, 1), 0, &err), SN_BAD_INPUT);
  sn_err none = SN_ERR_INIT;
  assert_int_equal(sn_engine_drain(e, &none), SN_OK);
  span_is(spans, 3, 0, 1024 * (SN_ENGINE_MAX_NS / 2));
  span_is(spans, 4, 0, 1024 * (SN_ENGINE_MAX_NS / 2));
  sn_engine_free(e);
}

/* Lanes of operations one behind the other: the engine and a loop over the clock agree to the nanosecond, and a copy
 * beside them changes nothing. */
enum { EACH = 40, TEAMS = 5 };

static void engine_is_the_clock(void **state) {
  (void)state;
  static const uint32_t lanes[TEAMS] = {0, 3, 4, 5, 7};
  static sn_span spans[TEAMS * EACH + EACH];
  uint64_t seed = first_seed(21);
  for (int round = 0; round < 200; round++) {
    sn_running running[TEAMS][EACH];
    int64_t ns[TEAMS][EACH], begin[TEAMS] = {0};
    uint32_t at[TEAMS] = {0};
    sn_err err = SN_ERR_INIT;
    sn_engine *e = open_engine(0, spans);
    for (uint32_t t = 0; t < TEAMS; t++)
      for (uint32_t i = 0; i < EACH; i++) {
        uint16_t count = (uint16_t)prng_from(&seed, 1, 4), first = (uint16_t)prng_below(&seed, 5u - count);
        sn_slot slot = prng_chance(&seed, 50) ? SN_SLOT_FIRST : SN_SLOT_SECOND;
        running[t][i] = on(first, count, slot, prng_below(&seed, 1025));
        ns[t][i] = prng_chance(&seed, 10) ? 0 : prng_below(&seed, 1000);
        assert_int_equal(sn_engine_run_team(e, lanes[t], ns[t][i], running[t][i], t * EACH + i, &err), SN_OK);
      }
    for (uint32_t i = 0; i < EACH; i++) sn_engine_copy(e, 1 + i % 2, prng_below(&seed, 900), TEAMS * EACH + i, &err);
    assert_int_equal(sn_engine_drain(e, &err), SN_OK);
    sn_engine_free(e);

    sn_pace pace = {.cores = &four};
    for (uint32_t t = 0; t < TEAMS; t++) sn_pace_start(&pace, lanes[t], running[t][0], ns[t][0]);
    uint32_t lane;
    int64_t end;
    while (sn_pace_next(&pace, &lane, &end)) {
      uint32_t t = lane == 0 ? 0 : lane == 7 ? 4 : lane - 2;
      sn_pace_advance(&pace, end);
      sn_pace_end(&pace, lane);
      span_is(spans, t * EACH + at[t], begin[t], end);
      begin[t] = end;
      if (++at[t] < EACH) sn_pace_start(&pace, lane, running[t][at[t]], ns[t][at[t]]);
    }
    for (uint32_t t = 0; t < TEAMS; t++) assert_int_equal(at[t], EACH);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(alone),
      cmocka_unit_test(neighbours),
      cmocka_unit_test(second_slots),
      cmocka_unit_test(shares),
      cmocka_unit_test(rounded_up),
      cmocka_unit_test(lowest_lane_first),
      cmocka_unit_test(engine_with_teams),
      cmocka_unit_test(engine_adds_up_work),
      cmocka_unit_test(engine_is_the_clock),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
