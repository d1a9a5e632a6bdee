/* Event engine: times by hand for fences, stalls, a shared link and speeds, random schedules against a naive solver,
 * dead locks. */
#include "sim/play/engine.h"
#include "tests/support/seed.h"

#include <string.h>

enum { SPANS = 64 };

/* An engine that must not fail; the tag of each task is its number. */
typedef struct bench {
  sn_engine *engine;
  sn_err err;
  sn_span spans[SPANS];
  uint32_t n;
} bench;

static void open_bench(bench *b, uint32_t lanes, uint32_t fences, bool shared) {
  *b = (bench){.err = SN_ERR_INIT};
  b->engine = sn_engine_new(lanes, fences, shared, b->spans, &b->err);
  assert_non_null(b->engine);
}

static void run(bench *b, uint32_t lane, int64_t ns) {
  assert_int_equal(sn_engine_run(b->engine, lane, ns, b->n++, &b->err), SN_OK);
}

static void copy(bench *b, uint32_t lane, int64_t ns) {
  assert_int_equal(sn_engine_copy(b->engine, lane, ns, b->n++, &b->err), SN_OK);
}

static void signal_fence(bench *b, uint32_t lane, uint32_t fence) {
  assert_int_equal(sn_engine_signal(b->engine, lane, fence, b->n++, &b->err), SN_OK);
}

static void wait_fence(bench *b, uint32_t lane, uint32_t fence) {
  assert_int_equal(sn_engine_wait(b->engine, lane, fence, b->n++, &b->err), SN_OK);
}

static void drain(bench *b) {
  if (sn_engine_drain(b->engine, &b->err) != SN_OK) fail_msg("%s", b->err.text);
}

static void span_is(const bench *b, uint32_t tag, int64_t begin, int64_t end) {
  if (b->spans[tag].begin_ns != begin || b->spans[tag].end_ns != end)
    fail_msg("task %u: %lld..%lld, expected %lld..%lld", tag, (long long)b->spans[tag].begin_ns,
             (long long)b->spans[tag].end_ns, (long long)begin, (long long)end);
}

static void one_lane_is_in_order(void **state) {
  (void)state;
  bench b;
  open_bench(&b, 1, 0, false);
  run(&b, 0, 10), copy(&b, 0, 5), run(&b, 0, 0), run(&b, 0, 7);
  assert_int_equal(sn_engine_now(b.engine), 0); /* only queued */
  drain(&b);
  span_is(&b, 0, 0, 10);
  span_is(&b, 1, 10, 15);
  span_is(&b, 2, 15, 15);
  span_is(&b, 3, 15, 22);
  assert_int_equal(sn_engine_now(b.engine), 22);
  assert_int_equal(sn_engine_busy(b.engine, 0), 22);
  assert_int_equal(sn_engine_stalled(b.engine, 0), 0);
  assert_int_equal(sn_engine_events(b.engine), 4);
  sn_engine_free(b.engine);
}

/*   lane 0   |--30--|signal          the wait stalls lane 1 for 20; the second wait finds its fence passed
 *   lane 1   |-10-|  wait  |-5-|wait  */
static void fences_and_stalls(void **state) {
  (void)state;
  bench b;
  open_bench(&b, 2, 2, false);
  run(&b, 0, 30), signal_fence(&b, 0, 0), run(&b, 0, 100);
  run(&b, 1, 10), wait_fence(&b, 1, 0), run(&b, 1, 5), wait_fence(&b, 1, 0), run(&b, 1, 1);
  drain(&b);
  span_is(&b, 1, 30, 30);
  span_is(&b, 2, 30, 130);
  span_is(&b, 4, 10, 30);
  span_is(&b, 5, 30, 35);
  span_is(&b, 6, 35, 35);
  span_is(&b, 7, 35, 36);
  assert_int_equal(sn_engine_stalled(b.engine, 1), 20);
  assert_int_equal(sn_engine_stalled(b.engine, 0), 0);
  assert_int_equal(sn_engine_busy(b.engine, 1), 16);
  assert_int_equal(sn_engine_busy(b.engine, 0), 130);
  assert_int_equal(sn_engine_now(b.engine), 130);
  assert_int_equal(sn_engine_events(b.engine), 8);
  sn_engine_free(b.engine);
}

/* A signal at a moment releases waits at that moment, through any number of lanes and against their order. */
static void chains_at_one_moment(void **state) {
  (void)state;
  bench b;
  open_bench(&b, SN_ENGINE_LANES, SN_ENGINE_LANES, false);
  for (uint32_t lane = 0; lane + 1 < SN_ENGINE_LANES; lane++)
    wait_fence(&b, lane, lane + 1), signal_fence(&b, lane, lane), run(&b, lane, 3);
  run(&b, SN_ENGINE_LANES - 1, 50), signal_fence(&b, SN_ENGINE_LANES - 1, SN_ENGINE_LANES - 1);
  drain(&b);
  for (uint32_t lane = 0; lane + 1 < SN_ENGINE_LANES; lane++) {
    span_is(&b, 3 * lane, 0, 50);
    span_is(&b, 3 * lane + 1, 50, 50);
    span_is(&b, 3 * lane + 2, 50, 53);
  }
  sn_engine_free(b.engine);
}

/* Two that end at the same time: both lanes go on then, whichever is looked at first. */
static void ties(void **state) {
  (void)state;
  for (int shared = 0; shared < 2; shared++) {
    bench b;
    open_bench(&b, 3, 2, shared);
    run(&b, 0, 40), signal_fence(&b, 0, 0), wait_fence(&b, 0, 1), run(&b, 0, 1);
    run(&b, 1, 40), signal_fence(&b, 1, 1), wait_fence(&b, 1, 0), run(&b, 1, 1);
    copy(&b, 2, 40), copy(&b, 2, 2);
    drain(&b);
    span_is(&b, 2, 40, 40);
    span_is(&b, 3, 40, 41);
    span_is(&b, 6, 40, 40);
    span_is(&b, 7, 40, 41);
    span_is(&b, 9, 40, 42);
    assert_int_equal(sn_engine_stalled(b.engine, 0) + sn_engine_stalled(b.engine, 1), 0);
    sn_engine_free(b.engine);
  }
}

static void separate_links(void **state) {
  (void)state;
  bench b;
  open_bench(&b, 3, 0, false);
  copy(&b, 1, 1000), copy(&b, 2, 600), run(&b, 0, 10);
  drain(&b);
  span_is(&b, 0, 0, 1000);
  span_is(&b, 1, 0, 600);
  sn_engine_free(b.engine);
}

/* Half the speed while both run, all of it alone; computing is not slowed down. */
static void exact_halves(void **state) {
  (void)state;
  bench b;
  open_bench(&b, 3, 0, true);
  copy(&b, 1, 1000), copy(&b, 2, 600), run(&b, 0, 900);
  drain(&b);
  span_is(&b, 1, 0, 1200);
  span_is(&b, 0, 0, 1600);
  span_is(&b, 2, 0, 900);
  assert_int_equal(sn_engine_busy(b.engine, 1), 1600);
  sn_engine_free(b.engine);
}

/* A copy that joins later: 300 alone, then halves. */
static void halves_from_the_middle(void **state) {
  (void)state;
  bench b;
  open_bench(&b, 3, 1, true);
  copy(&b, 1, 1000);
  run(&b, 0, 300), signal_fence(&b, 0, 0);
  wait_fence(&b, 2, 0), copy(&b, 2, 200), copy(&b, 2, 800);
  drain(&b);
  span_is(&b, 4, 300, 700); /* 200 at half speed; the first has 500 left */
  span_is(&b, 0, 0, 1700);  /* 500 at half speed; the last has 300 left */
  span_is(&b, 5, 700, 2000);
  sn_engine_free(b.engine);
}

/* Thirds, then halves, then all: 300, 600 and 900 ns of work end at 900, 1500 and 1800. */
static void exact_thirds(void **state) {
  (void)state;
  bench b;
  open_bench(&b, 3, 0, true);
  copy(&b, 0, 300), copy(&b, 1, 600), copy(&b, 2, 900);
  drain(&b);
  span_is(&b, 0, 0, 900);
  span_is(&b, 1, 0, 1500);
  span_is(&b, 2, 0, 1800);
  sn_engine_free(b.engine);
}

/* What does not come out even is rounded up at its end only. A third copy joins at 1: the first two have 9.5 ns left,
 * 28.5 at a third of the speed; the third has 29/3 ns less then. */
static void broken_shares(void **state) {
  (void)state;
  bench b;
  open_bench(&b, 3, 0, true);
  copy(&b, 0, 10), copy(&b, 1, 10), run(&b, 2, 1), copy(&b, 2, 100);
  drain(&b);
  span_is(&b, 0, 0, 30);
  span_is(&b, 1, 0, 30);
  span_is(&b, 3, 1, 121); /* 30 + 90 1/3 */
  sn_engine_free(b.engine);
}

/* k copies of the same length end together, at k times it, for every k there can be; also lengths that k does not
 * divide. */
static void equal_shares(void **state) {
  (void)state;
  for (uint32_t k = 1; k <= SN_ENGINE_COPIES; k++) {
    bench b;
    open_bench(&b, SN_ENGINE_LANES, 0, true);
    for (uint32_t lane = 0; lane < k; lane++) copy(&b, lane, 1000003);
    drain(&b);
    for (uint32_t lane = 0; lane < k; lane++) span_is(&b, lane, 0, 1000003 * (int64_t)k);
    sn_engine_free(b.engine);
  }
}

/* Both slow each other while they go on, and no longer: the copy takes 40, in which the run gets 20 done. */
static void speeds_by_hand(void **state) {
  (void)state;
  bench b;
  open_bench(&b, 3, 0, false);
  sn_engine_set_speeds(b.engine, 0.5, 0.25);
  run(&b, 0, 100), copy(&b, 1, 10), run(&b, 0, 7);
  drain(&b);
  span_is(&b, 0, 0, 120);
  span_is(&b, 1, 0, 40);
  span_is(&b, 2, 120, 127);
  assert_int_equal(sn_engine_busy(b.engine, 0), 127);
  copy(&b, 1, 10), copy(&b, 2, 10); /* nothing runs beside */
  drain(&b);
  span_is(&b, 3, 127, 137);
  span_is(&b, 4, 127, 137);
  sn_engine_free(b.engine);

  open_bench(&b, 3, 0, true); /* two copies have half of what one has left */
  sn_engine_set_speeds(b.engine, 0.5, 0.25);
  run(&b, 0, 100), copy(&b, 1, 10), copy(&b, 2, 10);
  drain(&b);
  span_is(&b, 0, 0, 140);
  span_is(&b, 1, 0, 80);
  span_is(&b, 2, 0, 80);
  sn_engine_free(b.engine);

  open_bench(&b, 2, 0, false); /* what nobody can have measured */
  sn_engine_set_speeds(b.engine, -3, 7);
  run(&b, 0, 10), copy(&b, 1, 500);
  drain(&b);
  span_is(&b, 0, 0, 100);
  span_is(&b, 1, 0, 500);
  sn_engine_free(b.engine);
}

/* The longest time there may be does not overflow the shares; a nanosecond more is refused, in whatever form. */
static void longest_times(void **state) {
  (void)state;
  const int64_t share = SN_ENGINE_MAX_NS / SN_ENGINE_COPIES;
  bench b;
  open_bench(&b, SN_ENGINE_LANES, 0, true);
  for (uint32_t lane = 0; lane < SN_ENGINE_COPIES; lane++) copy(&b, lane, share);
  drain(&b);
  assert_true(sn_engine_now(b.engine) == SN_ENGINE_MAX_NS);
  sn_err run_err = SN_ERR_INIT, copy_err = SN_ERR_INIT, pass_err = SN_ERR_INIT;
  assert_int_equal(sn_engine_run(b.engine, 0, 1, b.n, &run_err), SN_BAD_INPUT);
  assert_int_equal(sn_engine_copy(b.engine, 0, INT64_MAX, b.n, &copy_err), SN_BAD_INPUT);
  assert_int_equal(sn_engine_pass(b.engine, 1, &pass_err), SN_BAD_INPUT);
  assert_non_null(strstr(run_err.text, "the simulated iteration takes more than 11 days"));
  assert_true(sn_engine_now(b.engine) == SN_ENGINE_MAX_NS);
  sn_engine_free(b.engine);
}

static void dead_lock(void **state) {
  (void)state;
  bench b;
  open_bench(&b, 3, 3, false);
  run(&b, 0, 5), wait_fence(&b, 1, 2), signal_fence(&b, 1, 0);
  assert_int_equal(sn_engine_drain(b.engine, &b.err), SN_BUG);
  assert_string_equal(b.err.text, "simulation: lane 1 waits for a fence that is never signalled");
  sn_engine_free(b.engine);

  open_bench(&b, 2, 2, false); /* each waits for the other */
  wait_fence(&b, 0, 1), signal_fence(&b, 0, 0), wait_fence(&b, 1, 0), signal_fence(&b, 1, 1);
  assert_int_equal(sn_engine_drain(b.engine, &b.err), SN_BUG);
  assert_non_null(strstr(b.err.text, "lane 0 waits"));
  sn_engine_free(b.engine);

  open_bench(&b, 1, 1, false); /* behind its own wait */
  wait_fence(&b, 0, 0), signal_fence(&b, 0, 0);
  assert_int_equal(sn_engine_drain(b.engine, &b.err), SN_BUG);
  sn_engine_free(b.engine);
}

/* The host holds everything up between two drains. */
static void passing_time(void **state) {
  (void)state;
  bench b;
  open_bench(&b, 2, 1, true);
  drain(&b);
  run(&b, 0, 10), signal_fence(&b, 0, 0);
  drain(&b);
  assert_int_equal(sn_engine_pass(b.engine, 200, &b.err), SN_OK);
  assert_int_equal(sn_engine_now(b.engine), 210);
  wait_fence(&b, 1, 0), copy(&b, 1, 4), run(&b, 0, 3);
  drain(&b);
  span_is(&b, 2, 210, 210);
  span_is(&b, 3, 210, 214);
  span_is(&b, 4, 210, 213);
  assert_int_equal(sn_engine_busy(b.engine, 0), 13); /* the clock moves, lanes are idle */
  assert_int_equal(sn_engine_stalled(b.engine, 1), 0);
  sn_engine_free(b.engine);
}

/* ---- random schedules ---- */

enum { TASKS = 4000, LANES = 5, FENCES = 800 };
typedef enum kind { RUN, COPY, SIGNAL, WAIT } kind;

typedef struct task {
  kind kind;
  uint32_t lane, fence;
  int64_t ns;
} task;

/* In listed order every wait stands behind its signal, so nothing can lock. */
static uint32_t draw_tasks(uint64_t *seed, task *tasks) {
  uint32_t fences = 0;
  for (uint32_t i = 0; i < TASKS; i++) {
    tasks[i] = (task){.kind = (kind)prng_below(seed, 4)};
    tasks[i].lane = prng_below(seed, LANES);
    tasks[i].ns = prng_below(seed, 4) ? prng_below(seed, 1000) : 0;
    if (tasks[i].kind == SIGNAL && fences == FENCES) tasks[i].kind = RUN;
    if (tasks[i].kind == WAIT && fences == 0) tasks[i].kind = COPY;
    if (tasks[i].kind == SIGNAL) tasks[i].fence = fences++;
    if (tasks[i].kind == WAIT) tasks[i].fence = prng_below(seed, fences);
  }
  return fences;
}

static void give(sn_engine *e, const task *t, uint32_t tag, sn_err *err) {
  if (t->kind == RUN) sn_engine_run(e, t->lane, t->ns, tag, err);
  if (t->kind == COPY) sn_engine_copy(e, t->lane, t->ns, tag, err);
  if (t->kind == SIGNAL) sn_engine_signal(e, t->lane, t->fence, tag, err);
  if (t->kind == WAIT) sn_engine_wait(e, t->lane, t->fence, tag, err);
}

static int64_t play_at(const task *tasks, uint32_t fences, bool shared, double speed, sn_span *spans) {
  sn_err err = SN_ERR_INIT;
  sn_engine *e = sn_engine_new(LANES, fences, shared, spans, &err);
  if (speed > 0) sn_engine_set_speeds(e, speed, speed);
  for (uint32_t i = 0; i < TASKS && err.code == SN_OK; i++) give(e, &tasks[i], i, &err);
  assert_int_equal(sn_engine_drain(e, &err), SN_OK);
  assert_int_equal(sn_engine_events(e), TASKS);
  int64_t end = sn_engine_now(e);
  sn_engine_free(e);
  return end;
}

static int64_t play(const task *tasks, uint32_t fences, bool shared, sn_span *spans) {
  return play_at(tasks, fences, shared, 0, spans);
}

/* Without a shared link the time of each task follows from the ones listed before it. */
static void matches_naive_solver(void **state) {
  (void)state;
  static task tasks[TASKS];
  static sn_span spans[TASKS];
  uint64_t seed = first_seed(13);
  for (int round = 0; round < 30; round++) {
    uint32_t fences = draw_tasks(&seed, tasks);
    int64_t at[LANES] = {0}, passed[FENCES] = {0}, last = 0;
    int64_t end = play(tasks, fences, false, spans);
    for (uint32_t i = 0; i < TASKS; i++) {
      const task *t = &tasks[i];
      int64_t begin = at[t->lane];
      if (t->kind == RUN || t->kind == COPY) at[t->lane] += t->ns;
      if (t->kind == WAIT && passed[t->fence] > begin) at[t->lane] = passed[t->fence];
      if (t->kind == SIGNAL) passed[t->fence] = begin;
      assert_int_equal(spans[i].begin_ns, begin);
      assert_int_equal(spans[i].end_ns, at[t->lane]);
      if (at[t->lane] > last) last = at[t->lane];
    }
    assert_int_equal(end, last);
  }
}

/* Given in listed order to lanes apart, and lane by lane, the last one first, to lanes that are and that are not: waits
 * then come ahead of their signals. What comes behind a drain and a pause begins behind them. */
static void order_of_lanes_does_not_matter(void **state) {
  (void)state;
  static task tasks[TASKS];
  static sn_span spans[3][TASKS];
  uint64_t seed = first_seed(16);
  for (int round = 0; round < 30; round++) {
    uint32_t fences = draw_tasks(&seed, tasks), half = prng_below(&seed, TASKS);
    sn_err err = SN_ERR_INIT;
    sn_engine *engines[3];
    for (int form = 0; form < 3; form++) {
      sn_engine *e = engines[form] = sn_engine_new(LANES, fences, false, spans[form], &err);
      if (form == 2) sn_engine_set_speeds(e, 1, 1);
      for (uint32_t from = 0; from < TASKS; from = from < half ? half : TASKS) {
        uint32_t to = from < half ? half : TASKS;
        for (uint32_t i = from; i < to && form == 0; i++) give(e, &tasks[i], i, &err);
        for (uint32_t lane = LANES; lane-- > 0 && form > 0;)
          for (uint32_t i = from; i < to; i++)
            if (tasks[i].lane == lane) give(e, &tasks[i], i, &err);
        assert_int_equal(sn_engine_drain(e, &err), SN_OK);
        assert_int_equal(sn_engine_pass(e, 77, &err), SN_OK);
      }
    }
    for (int form = 1; form < 3; form++) {
      assert_memory_equal(spans[0], spans[form], sizeof spans[0]);
      assert_int_equal(sn_engine_now(engines[0]), sn_engine_now(engines[form]));
      for (uint32_t lane = 0; lane < LANES; lane++) {
        assert_int_equal(sn_engine_busy(engines[0], lane), sn_engine_busy(engines[form], lane));
        assert_int_equal(sn_engine_stalled(engines[0], lane), sn_engine_stalled(engines[form], lane));
      }
    }
    for (int form = 0; form < 3; form++) sn_engine_free(engines[form]);
  }
}

/* With it, no copy is faster than alone, and copies are never slower than one behind the other; the same twice. */
static void shared_link_bounds(void **state) {
  (void)state;
  static task tasks[TASKS];
  static sn_span spans[TASKS], again[TASKS];
  uint64_t seed = first_seed(14);
  for (int round = 0; round < 30; round++) {
    uint32_t fences = draw_tasks(&seed, tasks);
    int64_t end = play(tasks, fences, true, spans), serial = 0;
    for (uint32_t i = 0; i < TASKS; i++) {
      int64_t ns = spans[i].end_ns - spans[i].begin_ns;
      if (tasks[i].kind == RUN) assert_int_equal(ns, tasks[i].ns);
      if (tasks[i].kind == COPY) assert_in_range(ns, tasks[i].ns, LANES * (tasks[i].ns + 1));
      if (tasks[i].kind == RUN || tasks[i].kind == COPY) serial += tasks[i].ns + 1;
    }
    assert_true(end <= serial);
    assert_int_equal(play(tasks, fences, true, again), end);
    assert_memory_equal(spans, again, sizeof spans);
  }
}

/* For how long anything of `kind` goes on within a span: counts[t] of the first t ns. */
static int64_t overlap(const uint32_t *counts, sn_span span) {
  return counts[span.end_ns] - counts[span.begin_ns];
}

/* What takes time at each ns, summed up. */
static uint32_t *count_kind(const task *tasks, const sn_span *spans, kind of, int64_t end) {
  uint32_t *counts = calloc((size_t)end + 2, sizeof *counts);
  for (uint32_t i = 0; i < TASKS; i++)
    for (int64_t t = spans[i].begin_ns; tasks[i].kind == of && t < spans[i].end_ns; t++) counts[t + 1] = 1;
  for (int64_t t = 0; t < end; t++) counts[t + 1] += counts[t];
  return counts;
}

/* What a task has got done, at its speeds, is its work: less than 1 ns more, as its end is rounded up. At speed 1
 * nothing is as without. */
static void speeds_are_kept(void **state) {
  (void)state;
  static task tasks[TASKS];
  static sn_span spans[TASKS], again[TASKS];
  uint64_t seed = first_seed(15);
  for (int round = 0; round < 10; round++) {
    uint32_t fences = draw_tasks(&seed, tasks);
    int64_t end = play_at(tasks, fences, false, 0.75, spans);
    uint32_t *runs = count_kind(tasks, spans, RUN, end), *copies = count_kind(tasks, spans, COPY, end);
    for (uint32_t i = 0; i < TASKS; i++) {
      if (tasks[i].kind != RUN && tasks[i].kind != COPY) continue;
      int64_t slow = overlap(tasks[i].kind == RUN ? copies : runs, spans[i]);
      int64_t done = 4 * (spans[i].end_ns - spans[i].begin_ns) - slow, work = 4 * tasks[i].ns;
      if (done < work || done >= work + 4)
        fail_msg("task %u: %lld quarters of a ns done, of %lld", i, (long long)done, (long long)work);
    }
    free(runs);
    free(copies);
    end = play(tasks, fences, round % 2, spans);
    assert_int_equal(play_at(tasks, fences, round % 2, 1, again), end);
    assert_memory_equal(spans, again, sizeof spans);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_lane_is_in_order),
      cmocka_unit_test(fences_and_stalls),
      cmocka_unit_test(chains_at_one_moment),
      cmocka_unit_test(ties),
      cmocka_unit_test(separate_links),
      cmocka_unit_test(exact_halves),
      cmocka_unit_test(halves_from_the_middle),
      cmocka_unit_test(exact_thirds),
      cmocka_unit_test(equal_shares),
      cmocka_unit_test(broken_shares),
      cmocka_unit_test(longest_times),
      cmocka_unit_test(dead_lock),
      cmocka_unit_test(passing_time),
      cmocka_unit_test(matches_naive_solver),
      cmocka_unit_test(order_of_lanes_does_not_matter),
      cmocka_unit_test(shared_link_bounds),
      cmocka_unit_test(speeds_by_hand),
      cmocka_unit_test(speeds_are_kept),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
