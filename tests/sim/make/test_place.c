/* Placement over the whole zoo: packed addresses take hardly more than what lives at one time, where first fit takes up
 * to half as much again, and change nothing else: not a byte of traffic, not a nanosecond. */
#include "sim/make/make.h"
#include "sim/plan/check.h"
#include "sim/plan/place.h"
#include "tests/support/pipeline.h"

#include <inttypes.h>

typedef struct tally {
  uint32_t plans, loose; /* loose: first fit wastes more than 1 % */
  double first_fit, packed, worst_first_fit, worst;
} tally;

static void count_plan(const pipeline *p, uint64_t before, tally *sum) {
  double bound = (double)p->plan->reserved_peak, old = (double)before / bound,
         new = (double)p->plan->pool_bytes / bound;
  sum->plans++;
  sum->loose += old > 1.01;
  sum->first_fit += old;
  sum->packed += new;
  if (old > sum->worst_first_fit) sum->worst_first_fit = old;
  if (new > sum->worst) sum->worst = new;
}

static void place_and_compare(pipeline *p, tally *sum) {
  sn_err err = SN_ERR_INIT;
  uint64_t before = p->plan->pool_bytes;
  sn_trace first_fit = pipeline_play(p, false);
  sn_place(p->plan, (sn_place_goal){0}, NULL, &err);
  sn_check(p->plan, NULL, &err);
  must(&err);
  sn_trace packed = pipeline_play(p, false);
  assert_true(p->plan->pool_bytes <= before && packed.end_ns == first_fit.end_ns);
  assert_memory_equal(packed.spans, first_fit.spans, p->plan->n_instrs * sizeof *packed.spans);
  count_plan(p, before, sum);
  sn_trace_clear(&first_fit);
  sn_trace_clear(&packed);
}

static void print_tally(const char *of, const tally *t) {
  print_message("%s: %" PRIu32 " plans; first fit: %.4f of the lower bound, at most %.4f, %" PRIu32
                " of them over 1 %%; packed: %.6f, at most %.6f\n",
                of, t->plans, t->first_fit / t->plans, t->worst_first_fit, t->loose, t->packed / t->plans, t->worst);
}

static void zoo_is_packed(void **state) {
  (void)state;
  static const uint32_t batches[] = {16, 64};
  tally sums[2] = {{0}};
  uint32_t count;
  const sn_zoo_entry *nets = sn_zoo_entries(&count);
  for (uint32_t n = 0; n < 2 * count; n++) {
    pipeline p = pipeline_open(nets[n / 2].name, batches[n % 2]);
    for (uint32_t s = 0; s < SN_STRATEGY_DEFAULTS + SN_STRATEGY_SYSTEMS; s++) {
      char name[SN_STRATEGY_TEXT];
      bool own = s < SN_STRATEGY_DEFAULTS;
      sn_strategy_name(own ? sn_strategy_default(s) : sn_strategy_system(s - SN_STRATEGY_DEFAULTS), name);
      pipeline_plan(&p, name, SN_WORKSPACE_DYNAMIC, UINT64_C(11) << 30);
      place_and_compare(&p, &sums[own]);
    }
    pipeline_close(&p);
  }
  print_tally("combinations", &sums[1]);
  print_tally("published systems, which keep first fit", &sums[0]);
  assert_true(sums[1].packed / sums[1].plans <= 1.001 && sums[1].worst <= 1.01);
  assert_true(sums[0].packed / sums[0].plans <= 1.001 && sums[0].worst <= 1.05);
}

/* A checked plan. */
static sn_plan *make_plan(const pipeline *p, sn_placement placement, uint64_t pool_bytes, bool only_fits) {
  sn_err err = SN_ERR_INIT;
  const sn_plan_wish wish = {.schedule = p->schedule,
                             .costs = p->costs,
                             .strategy = p->strategy,
                             .workspace = SN_WORKSPACE_DYNAMIC,
                             .placement = placement,
                             .pool_bytes = pool_bytes,
                             .only_fits = only_fits};
  sn_plan *plan = sn_plan_make(&wish, &err);
  must(&err);
  return plan;
}

/* Where first fit has room enough no decision is another one: instruction by instruction the same but for offsets. */
static void compare_plans(const sn_plan *packed, const sn_plan *first_fit) {
  assert_int_equal(packed->n_instrs, first_fit->n_instrs);
  for (uint32_t i = 0; i < packed->n_instrs; i++) {
    sn_instr a = packed->instrs[i], b = first_fit->instrs[i];
    if (a.kind == SN_ALLOC || a.kind == SN_RELEASE || a.kind == SN_COMPUTE) a.offset = b.offset = 0;
    assert_true(a.kind == b.kind && a.lane == b.lane && a.rerun == b.rerun && a.id == b.id && a.step == b.step &&
                a.offset == b.offset && a.bytes == b.bytes && a.algo[0] == b.algo[0] && a.algo[1] == b.algo[1]);
  }
}

typedef struct made {
  uint32_t plans, same, more; /* more: that fit because they are packed */
} made;

/* p->plan is what first fit makes where there is room for all. What is said to fit without being placed well fits when
 * it is, and the other way round. */
static void make_both(pipeline *p, uint64_t pool_bytes, made *m) {
  sn_plan *first_fit = make_plan(p, SN_PLACEMENT_FIRST_FIT, pool_bytes, false);
  sn_plan *packed = make_plan(p, SN_PLACEMENT_PACKED, pool_bytes, false);
  sn_plan *asked = make_plan(p, SN_PLACEMENT_PACKED, pool_bytes, true);
  bool fits = sn_plan_fits(packed);
  assert_true(fits == sn_plan_fits(asked) && (fits || !sn_plan_fits(first_fit)));
  if (pool_bytes >= p->plan->pool_bytes) {
    compare_plans(packed, first_fit);
    assert_true(packed->pool_bytes <= first_fit->pool_bytes);
    m->same++;
  }
  m->plans++;
  m->more += fits && !sn_plan_fits(first_fit);
  sn_plan_free(first_fit);
  sn_plan_free(packed);
  sn_plan_free(asked);
}

/* Of each plan's own pool by first fit: all, and a little less until nothing fits. */
static void packed_fits_wherever_first_fit_does(void **state) {
  (void)state;
  static const char *const nets[] = {"alexnet", "resnet18", "densenet121", "inception_v3"};
  static const uint32_t percent[] = {110, 100, 98, 95, 90, 80, 60};
  made m = {0};
  for (size_t n = 0; n < sizeof nets / sizeof nets[0]; n++) {
    pipeline p = pipeline_open(nets[n], 32);
    for (uint32_t s = 0; s < SN_STRATEGY_DEFAULTS; s++) {
      char name[SN_STRATEGY_TEXT];
      pipeline_plan(&p, sn_strategy_name(sn_strategy_default(s), name), SN_WORKSPACE_DYNAMIC, UINT64_C(1) << 40);
      for (size_t i = 0; i < sizeof percent / sizeof percent[0]; i++)
        make_both(&p, p.plan->pool_bytes / 100 * percent[i], &m);
    }
    pipeline_close(&p);
  }
  print_message("%" PRIu32 " pools: %" PRIu32 " plans are first fit's but for addresses, %" PRIu32
                " fit because they are packed\n",
                m.plans, m.same, m.more);
  assert_true(m.same > m.plans / 8 && m.more > 10);
}

/* Plays a plan, which it frees. */
static int64_t time_of(pipeline *p, sn_plan *plan) {
  sn_plan_free(p->plan);
  p->plan = plan;
  sn_trace trace = pipeline_play(p, false);
  int64_t ns = trace.end_ns;
  sn_trace_clear(&trace);
  return ns;
}

/* In a pool as large as tensors and workspaces take without a limit, where what was counted to fit cannot be packed,
 * the holes between the tensors have nearly the same workspaces. */
static void tight_pools_have_workspaces(void **state) {
  (void)state;
  static const char *const nets[] = {"resnet50", "resnet101", "inception_v4"};
  static const char *const strategies[] = {"liveness", "liveness+recompute=speed"};
  for (size_t n = 0; n < 6; n++) {
    pipeline p = pipeline_open(nets[n / 2], 32);
    pipeline_plan(&p, strategies[n % 2], SN_WORKSPACE_DYNAMIC, UINT64_C(1) << 40);
    sn_plan *free_plan = make_plan(&p, SN_PLACEMENT_PACKED, UINT64_C(1) << 40, false);
    sn_plan *tight = make_plan(&p, SN_PLACEMENT_PACKED, free_plan->pool_bytes, false);
    assert_true(sn_plan_fits(tight));
    int64_t free_ns = time_of(&p, free_plan), tight_ns = time_of(&p, tight);
    assert_true(tight_ns >= free_ns && tight_ns <= free_ns + free_ns / 50);
    pipeline_close(&p);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(zoo_is_packed),
                                     cmocka_unit_test(packed_fits_wherever_first_fit_does),
                                     cmocka_unit_test(tight_pools_have_workspaces)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
