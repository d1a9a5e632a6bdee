/* DTR on small programs whose course was worked out by hand, and exact quotients against Python's. Random programs are
 * in prop_dtr.c, DTR's own in golden_dtr.c. */
#include "sim/dtr/dtr.h"
#include "sim/memory/quotient.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* n, a, b, and what Python says of n / (a * b). */
static const struct {
  int64_t n;
  uint64_t a, b;
  double quotient;
} quotients[] = {
    {INT64_C(2305843009213693951), UINT64_C(9007199254740991), UINT64_C(5), 0x1.999999999999ap+5},
    {INT64_C(328941), UINT64_C(9007199254740991), UINT64_C(5), 0x1.00fc333333334p-37},
    {INT64_C(-3), UINT64_C(3), UINT64_C(5), -0x1.999999999999ap-3},
    {INT64_C(-2305843009213693951), UINT64_C(3), UINT64_C(5), -0x1.1111111111111p+57},
    {INT64_C(7), UINT64_C(3), UINT64_C(4019198868), 0x1.3f28b56f2f9dcp-31},
    {INT64_C(1), UINT64_C(332814794), UINT64_C(852116157058502976), 0x1.175e7491d636ap-88},
    {INT64_C(1), UINT64_C(824671064498016514), UINT64_C(4372566761), 0x1.5f8bd1438f060p-92},
    {INT64_C(9007199254740993), UINT64_C(3), UINT64_C(4287278433718733632), 0x1.6f29425ccaf30p-11},
    {INT64_C(498305908715901556), UINT64_C(803586289), UINT64_C(1), 0x1.27b01cc18a7fcp+29},
    {INT64_C(-7), UINT64_C(9007199254740991), UINT64_C(395452013), -0x1.301afa1e2c762p-79},
    {INT64_C(-9007199254740993), UINT64_C(2298295554707195133), UINT64_C(373353935222467134), -0x1.8c904744666dbp-67},
    {INT64_C(721069), UINT64_C(1), UINT64_C(150899993604602352), 0x1.504103574b01cp-38},
    {INT64_C(9007199254740993), UINT64_C(1), UINT64_C(1), 0x1.0000000000000p+53},
    {INT64_C(2089808160581080922), UINT64_C(9007199254740991), UINT64_C(6242906702), 0x1.3f3de25d9c81ep-25},
    {INT64_C(3), UINT64_C(9007199254740991), UINT64_C(4321816191527077542), 0x1.99c16082e47e1p-114},
    {INT64_C(7), UINT64_C(9007199254740991), UINT64_C(1551884377), 0x1.35f81c936059fp-81},
    {INT64_C(7), UINT64_C(600559187), UINT64_C(3587296209), 0x1.df7ee4af13e74p-59},
    {INT64_C(823874888800549269), UINT64_C(9007199254740991), UINT64_C(3323089297), 0x1.d8e0d4d28ca85p-26},
    {INT64_C(9007199254740993), UINT64_C(2161762828290244807), UINT64_C(795391392372684003), 0x1.8bcde6a9abf22p-68},
    {INT64_C(654205503741937983), UINT64_C(1052486916), UINT64_C(1), 0x1.28648b621396dp+29},
    {INT64_C(1395800979289999049), UINT64_C(594002373), UINT64_C(5), 0x1.c0317ee3541a7p+28},
    {INT64_C(-9007199254740993), UINT64_C(2274641248809087709), UINT64_C(5), -0x1.9f37f47db6d7ep-11},
    {INT64_C(891716061186996850), UINT64_C(38287005), UINT64_C(5), 0x1.15a45f8a53038p+32},
    {INT64_C(784357), UINT64_C(1973466632517688719), UINT64_C(3721165023), 0x1.023f24e38b14ep-73},
    {INT64_C(1361744786335611786), UINT64_C(9007199254740991), UINT64_C(5), 0x1.e3c9f7826d6c7p+4},
    {INT64_C(3), UINT64_C(1300170658948033148), UINT64_C(1), 0x1.5482b4ff59598p-59},
    {INT64_C(7), UINT64_C(9007199254740991), UINT64_C(4042141390239697956), 0x1.ff1fbc32fe12cp-113},
    {INT64_C(474660), UINT64_C(875714293911457167), UINT64_C(8423028263), 0x1.372e101545cbdp-74},
    {INT64_C(-630828), UINT64_C(21121920), UINT64_C(660815032213399301), -0x1.aadca1ee62a5dp-65},
    {INT64_C(1), UINT64_C(1906483232492076850), UINT64_C(56707724), 0x1.6e6a7c4e47734p-87},
    {INT64_C(3), UINT64_C(3), UINT64_C(1352092191755174593), 0x1.b4945ddc301eep-61},
    {INT64_C(1), UINT64_C(816471865), UINT64_C(6586323406), 0x1.b714ef8c8d2a2p-63},
    {INT64_C(7), UINT64_C(9007199254740991), UINT64_C(1164095386025582256), 0x1.bbb322f2296b0p-111},
    {INT64_C(1), UINT64_C(1862039875742864898), UINT64_C(3265909391288922275), 0x1.bfa5cd5a7be81p-123},
    {INT64_C(9007199254740993), UINT64_C(914722145), UINT64_C(6292490719), 0x1.9a3895145c392p-10},
    {INT64_C(9007199254740993), UINT64_C(838301546), UINT64_C(3206195223117512639), 0x1.d7a37aefa8224p-39},
    {INT64_C(9007199254740993), UINT64_C(1), UINT64_C(1), 0x1.0000000000000p+53},
    {INT64_C(900383), UINT64_C(1), UINT64_C(1), 0x1.b7a3e00000000p+19},
    {INT64_C(-9007199254740993), UINT64_C(3), UINT64_C(5), -0x1.1111111111112p+49},
    {INT64_C(-1), UINT64_C(272905913835451740), UINT64_C(45973416412685239), -0x1.a7c7809b3d9e8p-114},
    {INT64_C(9007199254740993), UINT64_C(1), UINT64_C(1), 0x1.0000000000000p+53},
    {INT64_C(9007199254740995), UINT64_C(1), UINT64_C(1), 0x1.0000000000002p+53},
    {INT64_C(0), UINT64_C(1152921504606846976), UINT64_C(1152921504606846976), 0x0p+0},
};

static void quotients_are_rounded_once(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof quotients / sizeof quotients[0]; i++) {
    double q = sn_quotient(quotients[i].n, quotients[i].a, quotients[i].b);
    if (q != quotients[i].quotient)
      fail_msg("%" PRId64 " / (%" PRIu64 " x %" PRIu64 ") is %a, not %a", quotients[i].n, quotients[i].a,
               quotients[i].b, quotients[i].quotient, q);
  }
}

/* ---- programs ---- */

typedef struct story {
  sn_dtr_program *p;
  sn_err err;
  char text[400]; /* what happened: operations run, those again with ', and -storages evicted */
} story;

static void run(story *s, uint64_t cost, const uint32_t *args, uint32_t n_args, uint64_t bytes) {
  sn_dtr_output x = {.bytes = bytes, .view_of = SN_DTR_OWN};
  assert_int_equal(sn_dtr_program_run(s->p, cost, args, n_args, &x, 1, &s->err), SN_OK);
}

static void act(story *s, sn_dtr_kind kind, uint32_t tensor) {
  assert_int_equal(sn_dtr_program_act(s->p, kind, tensor, &s->err), SN_OK);
}

static void open_story(story *s) {
  *s = (story){.err = SN_ERR_INIT};
  s->p = sn_dtr_program_new(&s->err);
  assert_non_null(s->p);
}

static void on_run(void *who, uint32_t op, bool again) {
  char *text = who;
  snprintf(text + strlen(text), 16, "%" PRIu32 "%s ", op, again ? "'" : "");
}

static void on_evicted(void *who, uint32_t storage) {
  char *text = who;
  snprintf(text + strlen(text), 16, "-%" PRIu32 " ", storage);
}

static sn_dtr_answer play(story *s, sn_dtr_heuristic heuristic, uint64_t budget, uint64_t limit) {
  sn_dtr_question q = {.heuristic = heuristic, .budget_bytes = budget, .remake_limit_ns = limit};
  sn_dtr_answer a;
  s->text[0] = '\0';
  q.watch = (sn_dtr_watch){.who = s->text, .ran = on_run, .evicted = on_evicted};
  assert_int_equal(sn_dtr_play(s->p, &q, &a, &s->err), SN_OK);
  return a;
}

static void check(const sn_dtr_answer *a, sn_dtr_status status, uint64_t peak, uint64_t clock, uint64_t remade,
                  uint64_t evictions, uint64_t evaluations) {
  assert_int_equal(a->status, status);
  assert_int_equal(a->peak_bytes, peak);
  assert_int_equal(a->clock_ns, clock);
  assert_int_equal(a->remade_ns, remade);
  assert_int_equal(a->evictions, evictions);
  assert_int_equal(a->evaluations, evaluations);
}

/* 0 is pinned; 1 of 0, 2 of 1, 3 of 2 and 4 of 3 and 1; 100 bytes each, of 0, 10, 20, 30 and 40 ns. Then only 0 and 4
 * are wanted. */
static void make_chain(story *s) {
  open_story(s);
  run(s, 0, NULL, 0, 100);
  act(s, SN_DTR_PIN, 0);
  for (uint32_t i = 0; i < 3; i++) run(s, 10 * (i + 1), &i, 1, 100);
  run(s, 40, (uint32_t[]){3, 1}, 2, 100);
  for (uint32_t i = 1; i < 4; i++) act(s, SN_DTR_RELEASE, i);
  act(s, SN_DTR_PIN, 4);
  assert_int_equal(sn_dtr_program_close(s->p, &s->err), SN_OK);
}

static void a_chain_by_hand(void **state) {
  (void)state;
  story s;
  uint64_t baseline;
  make_chain(&s);
  assert_int_equal(sn_dtr_baseline(s.p, &baseline, &s.err), SN_OK);
  assert_int_equal(baseline, 500);
  sn_dtr_answer a = play(&s, SN_DTR_EQ, 500, 100);
  check(&a, SN_DTR_OK, 500, 101, 0, 0, 0);
  a = play(&s, SN_DTR_EQ, 400, 100); /* for 4 only 2 can go: 3 and 1 are being read */
  assert_string_equal(s.text, "0 1 2 3 -2 4 ");
  check(&a, SN_DTR_OK, 400, 101, 0, 1, 1);
  a = play(&s, SN_DTR_EQ, 300, 100); /* for 3 goes 1, for 1 again goes 2, and then there is nothing more */
  assert_string_equal(s.text, "0 1 2 -1 3 -2 1' ");
  check(&a, SN_DTR_OUT_OF_MEMORY, 300, 71, 10, 2, 2);
  a = play(&s, SN_DTR_EQ, 300, 9);
  check(&a, SN_DTR_THRASH, 300, 71, 10, 2, 2);
  sn_dtr_program_free(s.p);
}

/* 1, 2 and 3 of 0, then 4 of 0, for which one must go: clock 1 + 8 + 3 + 6 = 18.
 *
 *         bytes  cost  last access   local: cost / (bytes x stale)
 *   1       100     8            9   8 / (100 x 9)
 *   2       200     3           12   3 / (200 x 6)
 *   3        50     6           18   6 / (50 x 0): infinite */
static void make_fan(story *s) {
  static const uint64_t bytes[] = {100, 200, 50, 40}, costs[] = {8, 3, 6, 1};
  open_story(s);
  run(s, 0, NULL, 0, 10);
  act(s, SN_DTR_PIN, 0);
  for (int i = 0; i < 4; i++) run(s, costs[i], &(uint32_t){0}, 1, bytes[i]);
  assert_int_equal(sn_dtr_program_close(s->p, &s->err), SN_OK);
}

static void heuristics_differ(void **state) {
  (void)state;
  static const char *const victims[SN_DTR_HEURISTICS] = {
      [SN_DTR_LRU] = "-1",  [SN_DTR_SIZE] = "-2", [SN_DTR_LOCAL] = "-2",
      [SN_DTR_MSPS] = "-2", [SN_DTR_FULL] = "-2", [SN_DTR_EQ] = "-2",
  };
  story s;
  make_fan(&s);
  for (sn_dtr_heuristic h = 0; h < SN_DTR_HEURISTICS; h++) {
    char wanted[40];
    sn_dtr_answer a = play(&s, h, 360, 100);
    snprintf(wanted, sizeof wanted, "0 1 2 3 %s 4 ", victims[h]);
    assert_string_equal(s.text, wanted);
    check(&a, SN_DTR_OK, 360, 19, 0, 1, 3);
  }
  sn_dtr_program_free(s.p);
}

/* An operation of two results, one of which is still there when it runs again: for a moment that is there twice. And a
 * view, which goes with its storage and is made again by its own operation. */
static void results_come_along(void **state) {
  (void)state;
  story s;
  open_story(&s);
  sn_dtr_output two[] = {{.bytes = 60, .view_of = SN_DTR_OWN}, {.bytes = 30, .view_of = SN_DTR_OWN}};
  sn_dtr_output view = {.view_of = 0};
  assert_int_equal(sn_dtr_program_run(s.p, 5, NULL, 0, two, 2, &s.err), SN_OK);             /* 0: tensors 0, 1 */
  assert_int_equal(sn_dtr_program_run(s.p, 1, &(uint32_t){0}, 1, &view, 1, &s.err), SN_OK); /* 1: tensor 2 */
  run(&s, 7, &(uint32_t){1}, 1, 40);                                                        /* 2: tensor 3 */
  act(&s, SN_DTR_RELEASE, 3);
  run(&s, 9, &(uint32_t){2}, 1, 10); /* 3: tensor 4 */
  assert_int_equal(sn_dtr_program_close(s.p, &s.err), SN_OK);
  sn_dtr_answer a = play(&s, SN_DTR_SIZE, 120, 1000);
  assert_string_equal(s.text, "0 1 -0 2 0' 1' 3 "); /* 3 needs its argument, a view of what had to go for 2 */
  check(&a, SN_DTR_OK, 120, 1 + 5 + 1 + 7 + 5 + 1 + 9, 6, 1, 1);
  sn_dtr_program_free(s.p);
}

static void programs_are_refused(void **state) {
  (void)state;
  story s;
  open_story(&s);
  sn_dtr_output x = {.bytes = 1, .view_of = SN_DTR_OWN}, large = {.bytes = SN_DTR_MOST, .view_of = SN_DTR_OWN};
  const uint32_t none = 0;
  assert_int_equal(sn_dtr_program_run(s.p, 1, &none, 1, &x, 1, &s.err), SN_BAD_INPUT);
  s.err = (sn_err)SN_ERR_INIT;
  assert_int_equal(sn_dtr_program_run(s.p, 1, NULL, 0, &x, 0, &s.err), SN_BAD_INPUT);
  s.err = (sn_err)SN_ERR_INIT;
  assert_int_equal(sn_dtr_program_run(s.p, 1, NULL, 0, &large, 1, &s.err), SN_BAD_INPUT);
  s.err = (sn_err)SN_ERR_INIT;
  assert_int_equal(sn_dtr_program_run(s.p, SN_DTR_MOST, NULL, 0, &x, 1, &s.err), SN_BAD_INPUT);
  s.err = (sn_err)SN_ERR_INIT;
  run(&s, 1, NULL, 0, 1);
  act(&s, SN_DTR_RELEASE, 0);
  assert_int_equal(sn_dtr_program_act(s.p, SN_DTR_RELEASE, 0, &s.err), SN_BAD_INPUT);
  sn_dtr_program_free(s.p);
}

/* A chain as long as a log may be: what is made again waits on no stack of ours. */
static void long_chains_are_made_again(void **state) {
  (void)state;
  enum { LENGTH = 200000 };
  story s;
  open_story(&s);
  run(&s, 1, NULL, 0, 1);
  for (uint32_t i = 0; i < LENGTH; i++) {
    run(&s, 1, &i, 1, 1);
    act(&s, SN_DTR_RELEASE, i);
  }
  act(&s, SN_DTR_RELEASE, LENGTH);
  run(&s, 1, &(uint32_t){LENGTH}, 1, 1);
  assert_int_equal(sn_dtr_program_close(s.p, &s.err), SN_OK);
  sn_dtr_question q = {.heuristic = SN_DTR_LRU, .budget_bytes = 3, .remake_limit_ns = UINT64_MAX};
  sn_dtr_answer a;
  assert_int_equal(sn_dtr_play(s.p, &q, &a, &s.err), SN_OK);
  assert_int_equal(a.status, SN_DTR_OK);
  assert_int_equal(a.remade_ns, LENGTH + 1);
  sn_dtr_program_free(s.p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(quotients_are_rounded_once), cmocka_unit_test(a_chain_by_hand),
      cmocka_unit_test(heuristics_differ),          cmocka_unit_test(results_come_along),
      cmocka_unit_test(programs_are_refused),       cmocka_unit_test(long_chains_are_made_again),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
