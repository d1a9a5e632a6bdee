/* Placement over the whole zoo: packed addresses take hardly more than what lives at one time, where first fit takes up
 * to half as much again, and change nothing else: not a byte of traffic, not a nanosecond. */
#include "sim/plan/check.h"
#include "sim/plan/place.h"
#include "tests/unit/pipeline.h"

#include <inttypes.h>

typedef struct tally {
  uint32_t plans, loose; /* loose: first fit wastes more than 1 % */
  double first_fit, packed, worst_first_fit, worst;
} tally;

static void count_plan(const pipeline *p, const char *net, uint64_t before, tally *sum) {
  double bound = (double)p->plan->reserved_peak, old = (double)before / bound,
         new = (double)p->plan->pool_bytes / bound;
  char name[SN_STRATEGY_TEXT];
  if (new > 1.01)
    fail_msg("%s, batch %u, %s: %.4f of the lower bound", net, p->net->batch, sn_strategy_name(p->strategy, name), new);
  sum->plans++;
  sum->loose += old > 1.01;
  sum->first_fit += old;
  sum->packed += new;
  if (old > sum->worst_first_fit) sum->worst_first_fit = old;
  if (new > sum->worst) sum->worst = new;
}

static void place_and_compare(pipeline *p, const char *net, tally *sum) {
  sn_err err = SN_ERR_INIT;
  uint64_t before = p->plan->pool_bytes;
  sn_trace first_fit = pipeline_play(p, false);
  sn_place(p->plan, (sn_place_goal){0}, &err);
  sn_check(p->plan, NULL, &err);
  must(&err);
  sn_trace packed = pipeline_play(p, false);
  assert_true(p->plan->pool_bytes <= before && packed.end_ns == first_fit.end_ns);
  assert_memory_equal(packed.spans, first_fit.spans, p->plan->n_instrs * sizeof *packed.spans);
  count_plan(p, net, before, sum);
  sn_trace_clear(&first_fit);
  sn_trace_clear(&packed);
}

static void zoo_is_packed(void **state) {
  (void)state;
  static const uint32_t batches[] = {16, 64};
  tally sum = {0};
  uint32_t count;
  const sn_zoo_entry *nets = sn_zoo_entries(&count);
  for (uint32_t n = 0; n < 2 * count; n++) {
    pipeline p = pipeline_open(nets[n / 2].name, batches[n % 2]);
    for (uint32_t s = 0; s < SN_STRATEGY_DEFAULTS + SN_STRATEGY_SYSTEMS; s++) {
      char name[SN_STRATEGY_TEXT];
      bool own = s < SN_STRATEGY_DEFAULTS;
      sn_strategy_name(own ? sn_strategy_default(s) : sn_strategy_system(s - SN_STRATEGY_DEFAULTS), name);
      pipeline_plan(&p, name, SN_WORKSPACE_DYNAMIC, UINT64_C(11) << 30);
      place_and_compare(&p, nets[n / 2].name, &sum);
    }
    pipeline_close(&p);
  }
  print_message("%" PRIu32 " plans; first fit: %.4f of the lower bound, at most %.4f, %" PRIu32
                " of them over 1 %%; packed: %.6f, at most %.6f\n",
                sum.plans, sum.first_fit / sum.plans, sum.worst_first_fit, sum.loose, sum.packed / sum.plans,
                sum.worst);
  assert_true(sum.packed / sum.plans <= 1.001);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(zoo_is_packed)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
