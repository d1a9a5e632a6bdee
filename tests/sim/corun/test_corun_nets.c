/* Co-run policies on the three networks of the paper, on its device: what `path` gains over the paper's own strategies,
 * how far it is from the bound, and what keeping to the memory of running one after another costs. */
#include "sim/corun/schedule.h"
#include "tests/support/pipeline.h"

#include <math.h>

/* A network's operations under a strategy, and their times on knl7250. */
typedef struct question {
  sn_net *net;
  sn_route *route;
  sn_schedule *schedule;
  sn_ops *ops;
  sn_times *times;
  sn_device device;
} question;

static question ask(const char *spec, uint32_t batch, sn_recompute recompute) {
  sn_err err = SN_ERR_INIT;
  question q = {.net = load_net(spec, batch)};
  assert_int_equal(sn_device_load("knl7250", &q.device, &err), SN_OK);
  q.route = sn_route_new(q.net, SN_DIALECT_SUPERNEURONS, SN_ORDER_ROUTE, &err);
  q.schedule = sn_schedule_new(q.route, recompute, &err);
  q.ops = sn_ops_new(q.schedule, &err);
  q.times = sn_times_new(q.route, &q.device, SN_OPTIMIZER_MOMENTUM, 4, NULL, &err);
  if (!q.times) fail_msg("%s", err.text);
  return q;
}

static void forget(question *q) {
  sn_times_free(q->times);
  sn_ops_free(q->ops);
  sn_schedule_free(q->schedule);
  sn_route_free(q->route);
  sn_net_free(q->net);
}

typedef struct answer {
  sn_corun_facts facts;
  double ms, peak_mib;
} answer;

static answer schedule(const question *q, const char *policy, uint64_t budget) {
  sn_err err = SN_ERR_INIT;
  sn_policy p;
  answer a;
  sn_policy_parse(policy, &p, &err);
  sn_timetable *t = sn_corun_schedule(q->ops, q->times, &q->device.cores, p, budget, &a.facts, &err);
  if (!t) fail_msg("%s", err.text);
  a.ms = (double)t->end_ns / 1e6;
  a.peak_mib = (double)t->peak_bytes / 1048576;
  sn_timetable_free(t);
  return a;
}

static void longest_path_gains(void **state) {
  (void)state;
  static const struct {
    const char *net;
    uint32_t batch;
    double most; /* times the bound */
  } all[] = {{"resnet_cifar:n=8", 64, 1.10}, {"dcgan", 64, 1.20}, {"inception_v3", 16, 2.2}};
  for (uint32_t i = 0; i < sizeof all / sizeof *all; i++) {
    question q = ask(all[i].net, all[i].batch, SN_RECOMPUTE_NONE);
    answer path = schedule(&q, "path", SN_BUDGET_SERIAL), s1234 = schedule(&q, "s1234", SN_BUDGET_SERIAL);
    double bound = (double)path.facts.bound_ns / 1e6;
    print_message("%s: s1234 %.1f ms, path %.1f ms, bound %.1f ms\n", all[i].net, s1234.ms, path.ms, bound);
    assert_true(s1234.ms >= 1.08 * path.ms);
    assert_true(path.ms <= all[i].most * bound);
    assert_true(path.peak_mib <= (double)path.facts.serial_peak_bytes / 1048576);
    forget(&q);
  }
}

/* Without a budget re-runs start as soon as they can, and memory is what it is without recomputation. With it, it is
 * what it is one after another, at nearly the same speed. */
static void budget_costs_little(void **state) {
  (void)state;
  static const struct {
    const char *net;
    uint32_t batch;
  } all[] = {{"resnet_cifar:n=8", 64}, {"dcgan", 64}, {"inception_v3", 16}};
  static const sn_recompute recompute[] = {SN_RECOMPUTE_NONE, SN_RECOMPUTE_SPEED, SN_RECOMPUTE_MEMORY};
  for (uint32_t i = 0; i < sizeof all / sizeof *all; i++)
    for (uint32_t r = 0; r < sizeof recompute / sizeof *recompute; r++) {
      question q = ask(all[i].net, all[i].batch, recompute[r]);
      answer kept = schedule(&q, "path", SN_BUDGET_SERIAL), free = schedule(&q, "path", SN_BUDGET_ANY);
      print_message("%s, recompute %d: %.1f ms in %.0f MiB, any budget %.1f ms in %.0f MiB\n", all[i].net,
                    (int)recompute[r], kept.ms, kept.peak_mib, free.ms, free.peak_mib);
      assert_true(kept.ms <= 1.08 * free.ms);
      assert_true(kept.peak_mib <= (double)kept.facts.serial_peak_bytes / 1048576);
      forget(&q);
    }
}

static void inception_in_half_the_memory(void **state) {
  (void)state;
  question all = ask("inception_v3", 16, SN_RECOMPUTE_NONE), less = ask("inception_v3", 16, SN_RECOMPUTE_SPEED);
  answer serial = schedule(&all, "1x68", SN_BUDGET_SERIAL), path = schedule(&less, "path", SN_BUDGET_SERIAL);
  answer free = schedule(&less, "path", SN_BUDGET_ANY);
  assert_int_equal(lround((double)serial.facts.serial_peak_bytes / 1048576), 2435);
  assert_int_equal(lround(path.peak_mib), 1184);
  assert_int_equal(lround(free.peak_mib), 2430);
  assert_true(serial.ms >= 1.2 * path.ms);
  forget(&all);
  forget(&less);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(longest_path_gains),
      cmocka_unit_test(budget_costs_little),
      cmocka_unit_test(inception_in_half_the_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
