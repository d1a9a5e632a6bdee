/* Tests of plans that are handed out again (sim/make/proved.h): when one is kept, and when it is found. */
#include "sim/make/proved.h"

#include "models/op/op.h"
#include "models/zoo/zoo.h"
#include "sim/graph/route.h"
#include "sim/make/make.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

typedef struct question {
  sn_net *net;
  sn_device device;
  sn_costs *costs;
  sn_route *route;
  sn_schedule *schedule;
  sn_proved proved;
  sn_plan_wish wish;
} question;

static void open_question(question *q, const char *strategy) {
  sn_err err = SN_ERR_INIT;
  *q = (question){.net = sn_net_load("alexnet", 64, 0, &err)};
  sn_strategy s;
  assert_int_equal(sn_strategy_parse(strategy, &s, &err), SN_OK);
  assert_int_equal(sn_device_load("k40c", &q->device, &err), SN_OK);
  q->costs = sn_costs_new(q->net, &q->device, &err);
  q->route = sn_schedule_route(q->net, s, (sn_iteration){.accumulate = 1}, q->costs, &err);
  q->schedule = sn_schedule_new(q->route, s.recompute, &err);
  assert_non_null(q->schedule);
  q->wish = (sn_plan_wish){.schedule = q->schedule,
                           .costs = q->costs,
                           .link = sn_link_of(&q->device, SN_EXTERNAL_HOST),
                           .strategy = s,
                           .workspace = SN_WORKSPACE_DYNAMIC,
                           .placement = SN_PLACEMENT_PACKED,
                           .proved = &q->proved};
}

static void close_question(question *q) {
  sn_proved_clear(&q->proved);
  sn_schedule_free(q->schedule);
  sn_route_free(q->route);
  sn_costs_free(q->costs);
  sn_net_free(q->net);
}

static sn_plan *make(question *q, uint64_t pool_bytes) {
  sn_err err = SN_ERR_INIT;
  q->wish.pool_bytes = pool_bytes;
  sn_plan *plan = sn_plan_make(&q->wish, &err);
  if (!plan) fail_msg("%s", err.text);
  return plan;
}

static void a_roomy_plan_is_found_in_any_pool_with_room(void **unused) {
  (void)unused;
  static const char *const strategies[] = {"liveness", "liveness+cache", "liveness+recompute=cost"};
  for (int i = 0; i < 3; i++) {
    question q;
    open_question(&q, strategies[i]);
    sn_plan *first = make(&q, UINT64_C(1) << 40);
    assert_int_equal(q.proved.next, 1);
    sn_plan *second = make(&q, UINT64_C(1) << 39);
    assert_int_equal(q.proved.next, 1); /* it was not made */
    assert_true(second != first && second->pool_limit == UINT64_C(1) << 39 && second->roomy);
    assert_memory_equal(second->instrs, first->instrs, first->n_instrs * sizeof *first->instrs);
    sn_plan_free(first);
    sn_plan_free(second);
    close_question(&q);
  }
}

/* Less room for workspaces is another plan; so is one with an algorithm less. */
static void other_algorithms_are_another_plan(void **unused) {
  (void)unused;
  question q;
  open_question(&q, "liveness");
  sn_plan *first = make(&q, UINT64_C(1) << 40), *second = make(&q, first->reserved_peak - SN_POOL_BLOCK);
  assert_int_not_equal(memcmp(first->instrs, second->instrs, first->n_instrs * sizeof *first->instrs), 0);
  sn_plan_free(second);
  uint32_t layer = 0, kept = q.proved.next;
  while (!sn_op_table[q.net->layers[layer].op]->convolves) layer++;
  sn_costs_keep_smallest(q.costs, layer);
  second = make(&q, UINT64_C(1) << 40);
  assert_int_equal(q.proved.next, kept + 1);
  sn_plan_free(first);
  sn_plan_free(second);
  close_question(&q);
}

/* What a cache sends out depends on the pool. */
static void what_sends_out_is_not_kept(void **unused) {
  (void)unused;
  question q;
  open_question(&q, "liveness+cache");
  sn_plan *roomy = make(&q, UINT64_C(1) << 40), *narrow = make(&q, roomy->reserved_peak / 2);
  assert_true(narrow->counts.evictions > 0);
  assert_int_equal(q.proved.next, 1);
  sn_plan_free(roomy);
  sn_plan_free(narrow);
  close_question(&q);
}

/* Of more plans than are kept the latest are. */
static void the_latest_are_kept(void **unused) {
  (void)unused;
  question q;
  open_question(&q, "liveness");
  sn_schedule *schedules[SN_PROVED_KEPT + 3];
  for (int i = 0; i < SN_PROVED_KEPT + 3; i++) {
    sn_err err = SN_ERR_INIT;
    q.wish.schedule = schedules[i] = sn_schedule_new(q.route, q.wish.strategy.recompute, &err);
    assert_non_null(schedules[i]);
    sn_plan_free(make(&q, UINT64_C(1) << 40));
  }
  assert_int_equal(q.proved.next, SN_PROVED_KEPT + 3);
  sn_plan_free(make(&q, UINT64_C(1) << 40));
  assert_int_equal(q.proved.next, SN_PROVED_KEPT + 3);
  q.wish.schedule = schedules[0];
  sn_plan_free(make(&q, UINT64_C(1) << 40));
  assert_int_equal(q.proved.next, SN_PROVED_KEPT + 4);
  for (int i = 0; i < SN_PROVED_KEPT + 3; i++) sn_schedule_free(schedules[i]);
  close_question(&q);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_roomy_plan_is_found_in_any_pool_with_room),
      cmocka_unit_test(other_algorithms_are_another_plan),
      cmocka_unit_test(what_sends_out_is_not_kept),
      cmocka_unit_test(the_latest_are_kept),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
