/* Co-run policies: schedules by hand, exact to the nanosecond and the core. */
#include "tests/sim/corun/corun_case.h"

#define SECONDS(s) ((int64_t)((s)*10) * 100000000)

/* One row per operation: where and when it must run. */
typedef struct expected {
  uint32_t first, count;
  int64_t start, end;
  sn_slot slot;
} expected;

static void schedule_is(corun_case *c, const char *policy, const expected *all) {
  sn_timetable *t = case_schedule(c, policy, SN_BUDGET_ANY, NULL);
  for (uint32_t op = 0; op < c->ops.n_ops; op++) {
    const sn_start *s = &t->starts[op];
    const expected *e = &all[op];
    if (s->team.first != e->first || s->team.count != e->count || s->team.slot != e->slot || s->start_ns != e->start ||
        s->end_ns != e->end)
      fail_msg("%s: op %u on %u+%u (slot %u) %lld..%lld, expected %u+%u (slot %u) %lld..%lld", policy, op,
               s->team.first, s->team.count, s->team.slot, (long long)s->start_ns, (long long)s->end_ns, e->first,
               e->count, (unsigned)e->slot, (long long)e->start, (long long)e->end);
  }
  sn_timetable_free(t);
}

/* 68 cores, of which op 0 takes 48 for 1.9 s. */
static corun_case *one_runs(void) {
  corun_case *c = case_new(68, 1);
  uint32_t large = add_class(c, SECONDS(9), 48);
  class_takes(c, large, 48, SECONDS(1.9));
  add_op(c, large);
  return c;
}

/* The class of the paper: 18 threads take 1.5 s, 20 take 1.3 s, 16 take 2.1 s. */
static uint32_t paper_class(corun_case *c, uint32_t kind_threads) {
  uint32_t k = add_class(c, SECONDS(9), kind_threads);
  class_takes(c, k, 16, SECONDS(2.1));
  class_takes(c, k, 18, SECONDS(1.5));
  class_takes(c, k, 20, SECONDS(1.3));
  return k;
}

/* The paper's example: of 20 idle cores 18 are taken, not 20, which were faster, nor 16, which take too long. */
static void eighteen_threads(void **state) {
  (void)state;
  corun_case *c = one_runs();
  add_op(c, paper_class(c, 18));
  case_finish(c);
  schedule_is(c, "s123", (expected[]){{0, 48, 0, SECONDS(1.9), 0}, {48, 18, 0, SECONDS(1.5), 0}});
  free(c);
}

/* All instances of a kind have n_k threads but for 2: 16, 18 and 20 are far from 12, which takes their place. */
static void far_from_its_kind(void **state) {
  (void)state;
  corun_case *c = one_runs();
  uint32_t k = paper_class(c, 12);
  class_takes(c, k, 12, SECONDS(1.8));
  add_op(c, k);
  case_finish(c);
  schedule_is(c, "s123", (expected[]){{0, 48, 0, SECONDS(1.9), 0}, {48, 12, 0, SECONDS(1.8), 0}});
  c->kinds[k].threads = 14; /* 16 is near, and too slow */
  class_takes(c, k, 14, SECONDS(1.7));
  class_takes(c, k, 12, SECONDS(9));
  schedule_is(c, "s123", (expected[]){{0, 48, 0, SECONDS(1.9), 0}, {48, 14, 0, SECONDS(1.7), 0}});
  free(c);
}

/* With nothing running nothing fits in: the largest at n_k starts, here the second, and the first fits in beside it. */
static void largest_starts(void **state) {
  (void)state;
  corun_case *c = one_runs();
  uint32_t k = add_class(c, SECONDS(9), 12);
  class_takes(c, k, 12, SECONDS(2));
  add_op(c, k);
  case_finish(c);
  schedule_is(c, "s123", (expected[]){{12, 48, 0, SECONDS(1.9), 0}, {0, 12, 0, SECONDS(2), 0}});
  free(c);
}

/* The second needs 24 of 20 idle cores, the third fits in. Then the second is the largest, but waits for its cores. */
static void first_with_a_fit(void **state) {
  (void)state;
  corun_case *c = one_runs();
  uint32_t k = add_class(c, SECONDS(9), 24);
  class_takes(c, k, 24, SECONDS(1));
  add_op(c, k);
  add_op(c, paper_class(c, 18));
  case_finish(c);
  schedule_is(
      c, "s123",
      (expected[]){{0, 48, 0, SECONDS(1.9), 0}, {0, 24, SECONDS(1.9), SECONDS(2.9), 0}, {48, 18, 0, SECONDS(1.5), 0}});
  free(c);
}

/* At 1.5 s the first is predicted to run 0.1 s more: the third, which takes 0.2 s, does not fit in, but is the largest
 * and has its cores. At 1.7 s the first is late, nothing fits in any more, and the largest, the last, needs too many
 * cores: both wait until 1.9 s, where the small one fits in beside the large one. */
static void late_beyond_prediction(void **state) {
  (void)state;
  corun_case *c = one_runs();
  c->predicted[0][48] = SECONDS(1.6);
  uint32_t middle = add_class(c, SECONDS(9), 10), small = add_class(c, SECONDS(9), 1),
           large = add_class(c, SECONDS(9), 30);
  class_takes(c, middle, 10, SECONDS(0.2));
  class_takes(c, small, 1, SECONDS(0.1));
  class_takes(c, large, 30, SECONDS(0.5));
  uint32_t a = add_op(c, paper_class(c, 18)), b = add_op(c, middle);
  add_edge(c, a, b);
  add_edge(c, b, add_op(c, small));
  add_edge(c, b, add_op(c, large));
  case_finish(c);
  schedule_is(c, "s123",
              (expected[]){{0, 48, 0, SECONDS(1.9), 0},
                           {48, 18, 0, SECONDS(1.5), 0},
                           {48, 10, SECONDS(1.5), SECONDS(1.7), 0},
                           {30, 1, SECONDS(1.9), SECONDS(2), 0},
                           {0, 30, SECONDS(1.9), SECONDS(2.4), 0}});
  free(c);
}

/* An odd team leaves half a tile idle, which is of use to nobody; on cores of their own it is. */
static void teams_start_on_tiles(void **state) {
  (void)state;
  corun_case *c = one_runs();
  uint32_t k = add_class(c, SECONDS(9), 19), one = add_class(c, SECONDS(1), 1);
  c->kinds[0].threads = 47;
  class_takes(c, 0, 47, SECONDS(1.9));
  class_takes(c, k, 19, SECONDS(1.8));
  add_op(c, k);
  add_op(c, one);
  case_finish(c);
  c->cores.tile = 2;
  schedule_is(
      c, "s123",
      (expected[]){{0, 47, 0, SECONDS(1.9), 0}, {48, 19, 0, SECONDS(1.8), 0}, {48, 1, SECONDS(1.8), SECONDS(2.8), 0}});
  c->cores.tile = 1;
  schedule_is(c, "s123",
              (expected[]){{0, 47, 0, SECONDS(1.9), 0}, {47, 19, 0, SECONDS(1.8), 0}, {66, 1, 0, SECONDS(1), 0}});
  free(c);
}

/* A small operation beside a large one, or behind it on all cores. Where times were measured, beside must take less by
 * more than a fifth. */
static void measured_gains(void **state) {
  (void)state;
  static const char *const policies[] = {"path", "best"};
  for (int i = 0; i < 2; i++) {
    corun_case *c = case_new(2, 1);
    uint32_t large = add_class(c, SECONDS(10), 1), small = add_class(c, SECONDS(2.4), 1);
    add_op(c, large);
    add_op(c, small);
    case_finish(c);
    schedule_is(c, policies[i], (expected[]){{0, 1, 0, SECONDS(10), 0}, {1, 1, 0, SECONDS(2.4), 0}});
    c->times.measured_ops = 2;
    schedule_is(c, policies[i], (expected[]){{0, 2, 0, SECONDS(10), 0}, {0, 2, SECONDS(10), SECONDS(12.4), 0}});
    class_takes(c, small, 1, SECONDS(2.6));
    class_takes(c, small, 2, SECONDS(2.6));
    schedule_is(c, policies[i], (expected[]){{0, 1, 0, SECONDS(10), 0}, {1, 1, 0, SECONDS(2.6), 0}});
    free(c);
  }
}

/* All cores are taken: the smallest by its time with one thread has the second slots, one at a time. The first slows
 * those by its share, they do not slow it. Without second slots they wait. */
static void second_slots(void **state) {
  (void)state;
  corun_case *c = case_new(68, 2);
  c->cores.crowd[0] = 1;
  uint32_t whole = add_class(c, SECONDS(90), 68), small = add_class(c, SECONDS(9), 34),
           smaller = add_class(c, SECONDS(8), 34);
  class_takes(c, whole, 68, SECONDS(10));
  class_takes(c, small, 34, SECONDS(1));
  class_takes(c, smaller, 34, SECONDS(2));
  c->share[small][34] = c->share[smaller][34] = 0;
  add_op(c, whole);
  add_op(c, small);
  add_op(c, smaller);
  case_finish(c);
  schedule_is(c, "s1234",
              (expected[]){{0, 68, 0, SECONDS(10), SN_SLOT_FIRST},
                           {0, 34, SECONDS(4), SECONDS(6), SN_SLOT_SECOND},
                           {0, 34, 0, SECONDS(4), SN_SLOT_SECOND}});
  c->cores.slots = 1;
  schedule_is(c, "s1234",
              (expected[]){{0, 68, 0, SECONDS(10), 0},
                           {34, 34, SECONDS(10), SECONDS(11), 0},
                           {0, 34, SECONDS(10), SECONDS(12), 0}});
  free(c);
}

/* Each with its own best count, or that of the largest instance of its kind. */
static void one_after_another(void **state) {
  (void)state;
  corun_case *c = case_new(8, 1);
  uint32_t a = add_class(c, 100, 8), b = add_class(c, 50, 8);
  class_takes(c, a, 8, 40);
  class_takes(c, b, 3, 20);
  class_takes(c, b, 8, 30);
  add_op(c, b);
  add_op(c, a);
  add_op(c, b);
  case_finish(c);
  schedule_is(c, "s1", (expected[]){{0, 3, 0, 20, 0}, {0, 8, 20, 60, 0}, {0, 3, 60, 80, 0}});
  schedule_is(c, "s12", (expected[]){{0, 8, 0, 30, 0}, {0, 8, 30, 70, 0}, {0, 8, 70, 100, 0}});
  c->cores.resize_ns = 5.4;
  schedule_is(c, "s1", (expected[]){{0, 3, 0, 20, 0}, {0, 8, 20, 65, 0}, {0, 3, 65, 90, 0}});
  schedule_is(c, "s12", (expected[]){{0, 8, 0, 30, 0}, {0, 8, 30, 70, 0}, {0, 8, 70, 100, 0}});
  free(c);
}

/* A mix changes the threads with every operation, behind the first passes, and that takes what it takes. */
static void mixed(void **state) {
  (void)state;
  enum { PASSES = 9 };
  static const uint32_t counts[] = {2, 8, 5};
  static const uint32_t threads[PASSES][4] = {{2, 2, 2, 2}, {8, 8, 8, 8}, {5, 5, 5, 5}, {2, 8, 5, 2}, {8, 5, 2, 8},
                                              {5, 2, 8, 5}, {2, 5, 8, 2}, {8, 2, 5, 8}, {5, 8, 2, 5}};
  sn_err err = SN_ERR_INIT;
  corun_case *c = case_new(8, 1);
  uint32_t a = add_class(c, 100, 8);
  for (uint32_t op = 0; op < 4; op++) add_op(c, a);
  case_finish(c);
  c->cores.resize_ns = 7;
  for (uint32_t pass = 0; pass < PASSES; pass++) {
    const sn_mix mix = {counts, 3, pass};
    sn_corun_facts facts;
    int64_t end_ns = 0;
    sn_timetable *t = sn_corun_schedule_mix(&c->ops, &c->times, &c->cores, &mix, SN_BUDGET_SERIAL, &facts, &err);
    assert_non_null(t);
    assert_int_equal(facts.policy.kind, SN_POLICY_NONE);
    for (uint32_t op = 0; op < 4; op++) {
      assert_int_equal(t->starts[op].team.first, 0);
      assert_int_equal(t->starts[op].team.count, threads[pass][op]);
      assert_int_equal(t->starts[op].start_ns, end_ns);
      end_ns += op > 0 && pass >= 3 ? 107 : 100;
    }
    assert_int_equal(t->end_ns, end_ns);
    sn_timetable_free(t);
  }
  free(c);
}

/* In the order in which operations become ready: 3 at 30, 2 at 40. Worker w has cores wP on. */
static void workers(void **state) {
  (void)state;
  corun_case *c = case_new(8, 1);
  uint32_t slow = add_class(c, 40, 1), fast = add_class(c, 30, 1);
  add_op(c, slow);
  add_op(c, fast);
  add_op(c, fast);
  add_op(c, slow);
  add_edge(c, 0, 2);
  add_edge(c, 1, 3);
  case_finish(c);
  schedule_is(c, "2x3", (expected[]){{0, 3, 0, 40, 0}, {3, 3, 0, 30, 0}, {0, 3, 40, 70, 0}, {3, 3, 30, 70, 0}});
  schedule_is(c, "1x8", (expected[]){{0, 8, 0, 40, 0}, {0, 8, 40, 70, 0}, {0, 8, 70, 100, 0}, {0, 8, 100, 140, 0}});
  /* 16 threads on 8 cores float, and each slows the other by as much as it takes itself */
  c->cores.crowd[0] = 1;
  schedule_is(c, "2x8",
              (expected[]){{16, 8, 0, 80, SN_SLOT_ANY},
                           {16, 8, 0, 60, SN_SLOT_ANY},
                           {16, 8, 80, 140, SN_SLOT_ANY},
                           {16, 8, 60, 140, SN_SLOT_ANY}});
  free(c);
}

/* The one with the longest path behind it first, though it is the last; it has its best count, 6, as nothing else is
 * ready but what would be slower by more than the stretch allows. */
static void longest_path_first(void **state) {
  (void)state;
  corun_case *c = case_new(8, 1);
  uint32_t k = add_class(c, 100, 6), end = add_class(c, 200, 1);
  class_takes(c, k, 6, 40);
  class_takes(c, k, 2, 62);
  add_op(c, k);
  add_op(c, k);
  add_edge(c, 1, add_op(c, end));
  case_finish(c);
  schedule_is(c, "path", (expected[]){{6, 2, 0, 62, 0}, {0, 6, 0, 40, 0}, {0, 1, 40, 240, 0}});
  free(c);
}

/* Two that are ready at once: with 4 threads each instead of 8 they take 44 instead of 40: a stretch of 1.15 allows it,
 * and wins. Alone, it has 8. */
static void path_shrinks(void **state) {
  (void)state;
  corun_case *c = case_new(8, 1);
  uint32_t k = add_class(c, 100, 8);
  for (uint32_t t = 4; t <= 8; t++) class_takes(c, k, t, 48 - t);
  add_op(c, k);
  add_op(c, k);
  add_op(c, k);
  add_edge(c, 0, 2);
  add_edge(c, 1, 2);
  case_finish(c);
  sn_corun_facts facts;
  sn_timetable_free(case_schedule(c, "path", SN_BUDGET_ANY, &facts));
  assert_int_equal(facts.stretch, 115);
  schedule_is(c, "path", (expected[]){{0, 4, 0, 44, 0}, {4, 4, 0, 44, 0}, {0, 8, 44, 84, 0}});
  free(c);
}

/* 2 cores are idle, with which the second takes 82; it waits, as after 40 it takes 40 with 8. Were it 80, it would not.
 */
static void path_waits(void **state) {
  (void)state;
  corun_case *c = case_new(8, 1);
  uint32_t first = add_class(c, 400, 6), second = add_class(c, 400, 8);
  class_takes(c, first, 6, 41);
  class_takes(c, second, 8, 40);
  class_takes(c, second, 2, 82);
  add_op(c, first);
  add_op(c, second);
  case_finish(c);
  schedule_is(c, "path", (expected[]){{0, 6, 0, 41, 0}, {0, 8, 41, 81, 0}});
  class_takes(c, second, 2, 81);
  schedule_is(c, "path", (expected[]){{0, 6, 0, 41, 0}, {6, 2, 0, 81, 0}});
  free(c);
}

/* Six at once, though there are cores for more. */
static void six_at_once(void **state) {
  (void)state;
  corun_case *c = case_new(68, 1);
  uint32_t k = add_class(c, 100, 1);
  sn_corun_facts facts;
  for (uint32_t i = 0; i < 13; i++) add_op(c, k);
  case_finish(c);
  static const char *const policies[] = {"6x1", "s123", "path"};
  for (uint32_t i = 0; i < 3; i++) {
    sn_timetable *t = case_schedule(c, policies[i], SN_BUDGET_ANY, &facts);
    assert_int_equal(t->end_ns, 300);
    assert_int_equal(facts.max_corun, 6);
    sn_timetable_free(t);
  }
  free(c);
}

/* ---- what is known of a schedule ---- */

static void facts_by_hand(void **state) {
  (void)state;
  corun_case *c = case_new(4, 2);
  uint32_t k = add_class(c, 80, 4);
  class_takes(c, k, 2, 50);
  class_takes(c, k, 4, 30);
  class_takes(c, k, 8, 28); /* two threads a core */
  uint32_t a = add_op(c, k), b = add_op(c, k), d = add_op(c, k);
  add_edge(c, a, d);
  op_uses(c, b, add_life(c, a, 100));
  op_uses(c, d, add_life(c, b, 30));
  case_finish(c);
  sn_corun_facts f;
  sn_timetable *t = case_schedule(c, "1x4", SN_BUDGET_SERIAL, &f);
  assert_int_equal(t->end_ns, 90);
  assert_int_equal(t->peak_bytes, 130);
  assert_int_equal(f.serial_peak_bytes, 130);
  assert_int_equal(f.budget_bytes, 130);
  assert_int_equal(f.serial_ns, 90);
  assert_int_equal(f.chain_ns, 84);
  assert_int_equal(f.area_ns, 30); /* 3 x 80 over 8 hardware threads */
  assert_int_equal(f.bound_ns, 84);
  assert_int_equal(f.max_corun, 1);
  assert_true(f.average_corun == 1);
  sn_timetable_free(t);
  free(c);

  c = case_new(4, 1); /* ends and starts: 1, 2, 2, 2, 2, 1 */
  k = add_class(c, 50, 2);
  class_takes(c, k, 2, 40);
  for (uint32_t i = 0; i < 3; i++) add_op(c, k);
  case_finish(c);
  t = case_schedule(c, "2x2", SN_BUDGET_ANY, &f);
  assert_true(f.average_corun == 10 / 6.0);
  assert_int_equal(f.max_corun, 2);
  assert_int_equal(f.area_ns, 38); /* 3 x 50 over 4, rounded up */
  assert_int_equal(f.budget_bytes, SN_BUDGET_ANY);
  sn_timetable_free(t);
  free(c);
}

/* Of manual and best, the policy that won: two workers of half the cores each, which path does not find where one
 * thread less than all makes an operation slower than half of them. Where it does, path comes first. */
static void who_won(void **state) {
  (void)state;
  corun_case *c = case_new(8, 1);
  uint32_t k = add_class(c, 100, 8);
  for (uint32_t i = 0; i < SN_CROWDS; i++) c->cores.crowd[i] = 1 << i; /* nothing is won by floating */
  class_takes(c, k, 4, 50);
  class_takes(c, k, 8, 40);
  for (uint32_t i = 0; i < 2; i++) add_op(c, k);
  case_finish(c);
  sn_corun_facts f;
  char name[SN_POLICY_NAME];
  sn_timetable *t = case_schedule(c, "manual", SN_BUDGET_ANY, &f);
  assert_string_equal(sn_policy_name(f.policy, name), "2x4");
  assert_int_equal(t->end_ns, 50);
  sn_timetable_free(t);
  t = case_schedule(c, "best", SN_BUDGET_ANY, &f);
  assert_string_equal(sn_policy_name(f.policy, name), "2x4");
  assert_int_equal(t->end_ns, 50);
  sn_timetable_free(t);
  for (uint32_t threads = 5; threads < 8; threads++) class_takes(c, k, threads, 60 - 2 * threads);
  t = case_schedule(c, "best", SN_BUDGET_ANY, &f);
  assert_string_equal(sn_policy_name(f.policy, name), "path");
  assert_int_equal(t->end_ns, 50);
  assert_int_equal(f.stretch, 130);
  sn_timetable_free(t);
  free(c);
}

static void no_operations(void **state) {
  (void)state;
  corun_case *c = case_new(8, 1);
  add_class(c, 1, 1);
  case_finish(c);
  static const char *const policies[] = {"2x4", "manual", "s1", "s12", "s123", "s1234", "path", "best"};
  for (uint32_t i = 0; i < sizeof policies / sizeof *policies; i++) {
    sn_corun_facts f;
    sn_timetable *t = case_schedule(c, policies[i], SN_BUDGET_SERIAL, &f);
    assert_int_equal(t->end_ns + f.bound_ns, 0);
    sn_timetable_free(t);
  }
  free(c);
}

static void refusals(void **state) {
  (void)state;
  corun_case *c = case_new(8, 1);
  uint32_t op = add_op(c, add_class(c, 100, 8));
  add_life(c, op, 3 << 20);
  case_finish(c);
  static const struct {
    sn_policy policy;
    uint64_t budget;
    int64_t ns;
    sn_status status;
    const char *says;
  } all[] = {
      {{SN_POLICY_WORKERS, 2, 17},
       SN_BUDGET_ANY,
       100,
       SN_BAD_USAGE,
       "co-run policy 2x17: with 8 cores a worker has at most 16 threads"},
      {{SN_POLICY_S1, 0, 0},
       1 << 20,
       100,
       SN_NO_FIT,
       "a budget of 1.00 MiB is less than the 3.00 MiB of tensors that the operations need one after another; give "
       "that much, or a strategy that needs less"},
      {{SN_POLICY_S1, 0, 0},
       SN_BUDGET_ANY,
       INT64_C(1000000000000001),
       SN_BAD_INPUT,
       "the operations of an iteration take more than 11 days one after another; choose a smaller batch"},
  };
  for (uint32_t i = 0; i < sizeof all / sizeof *all; i++) {
    sn_err err = SN_ERR_INIT;
    c->ns[0][3] = all[i].ns;
    assert_null(sn_corun_schedule(&c->ops, &c->times, &c->cores, all[i].policy, all[i].budget, NULL, &err));
    assert_int_equal(err.code, all[i].status);
    assert_string_equal(err.text, all[i].says);
  }
  free(c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(eighteen_threads),
      cmocka_unit_test(measured_gains),
      cmocka_unit_test(far_from_its_kind),
      cmocka_unit_test(largest_starts),
      cmocka_unit_test(first_with_a_fit),
      cmocka_unit_test(late_beyond_prediction),
      cmocka_unit_test(teams_start_on_tiles),
      cmocka_unit_test(second_slots),
      cmocka_unit_test(one_after_another),
      cmocka_unit_test(mixed),
      cmocka_unit_test(workers),
      cmocka_unit_test(longest_path_first),
      cmocka_unit_test(path_shrinks),
      cmocka_unit_test(path_waits),
      cmocka_unit_test(six_at_once),
      cmocka_unit_test(facts_by_hand),
      cmocka_unit_test(who_won),
      cmocka_unit_test(no_operations),
      cmocka_unit_test(refusals),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
