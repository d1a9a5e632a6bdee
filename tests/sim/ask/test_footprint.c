/* Footprint: tops, sums and holes of every step are those that a search over all moments and rectangles finds, for
 * every default strategy with enough memory and with little; the highest top is the pool. */
#include "sim/ask/simulate.h"
#include "sim/play/footprint.h"
#include "tests/support/pipeline.h"

#include <stdlib.h>

enum { GROUPS = 3 };

typedef struct sums {
  uint64_t top, used, tensors, workspace;
} sums;

static sums sum_at(const sn_timeline *t, uint32_t moment, uint32_t group) {
  sums all = {0};
  for (uint32_t r = 0; r < t->n_rects; r++) {
    const sn_rect *rect = &t->rects[r];
    if (!sn_rect_is_live(rect, moment)) continue;
    if (rect->offset + rect->bytes > all.top) all.top = rect->offset + rect->bytes;
    all.used += rect->bytes;
    if (rect->tensor == SN_NONE)
      all.workspace += rect->bytes;
    else if (group == GROUPS || rect->tensor % GROUPS == group)
      all.tensors += rect->bytes;
  }
  return all;
}

/* The moment behind a step's last instruction is its own too, but for what then runs: the next step's workspace. */
static sums sum_in_step(const sn_timeline *t, uint32_t step, uint32_t moment, uint32_t group) {
  sums all = sum_at(t, moment, group);
  if (moment < t->columns[step].first_instr + t->columns[step].n_instrs || all.workspace == 0) return all;
  all = (sums){0};
  for (uint32_t r = 0; r < t->n_rects; r++) {
    const sn_rect *rect = &t->rects[r];
    if (rect->tensor == SN_NONE || !sn_rect_is_live(rect, moment)) continue;
    if (rect->offset + rect->bytes > all.top) all.top = rect->offset + rect->bytes;
    if (group == GROUPS || rect->tensor % GROUPS == group) all.tensors += rect->bytes;
  }
  return all;
}

static void check_step(const sn_timeline *t, const sn_footprint *f, uint32_t s) {
  const sn_footprint_step *step = &f->steps[s];
  uint32_t first = t->columns[s].first_instr, end = first + t->columns[s].n_instrs;
  uint64_t top = 0;
  for (uint32_t m = first; m <= end; m++) {
    sums here = sum_in_step(t, s, m, GROUPS);
    if (here.top > top) top = here.top;
  }
  sums found = sum_in_step(t, s, step->moment, GROUPS);
  assert_true(step->moment >= first && step->moment <= end);
  assert_true(step->top_bytes == top && found.top == top);
  assert_true(step->tensor_bytes == found.tensors && step->workspace_bytes == found.workspace);
  assert_true(step->hole_bytes == top - found.tensors - found.workspace);
  for (uint32_t g = 0; g < GROUPS; g++)
    assert_true(f->bytes[s * GROUPS + g] == sum_in_step(t, s, step->moment, g).tensors);
}

static void check(const sn_timeline *t) {
  sn_err err = SN_ERR_INIT;
  uint8_t *group = calloc(t->n_tensors, 1);
  assert_non_null(group);
  for (uint32_t i = 0; i < t->n_tensors; i++) group[i] = (uint8_t)(i % GROUPS);
  sn_footprint *f = sn_footprint_new(t, group, GROUPS, &err);
  must(&err);
  assert_true(f->n_steps == t->n_columns && f->n_steps > 2 && t->n_rects > 2);
  for (uint32_t s = 0; s < t->n_columns; s++) check_step(t, f, s);
  assert_true(f->steps[f->peak].top_bytes == t->pool_bytes);
  for (uint32_t s = 0; s < f->peak; s++) assert_true(f->steps[s].top_bytes < t->pool_bytes);
  sn_footprint_free(f);
  free(group);
}

static void every_moment_of_every_strategy(void **state) {
  (void)state;
  static const char *const nets[] = {"lenet", "alexnet", "resnet18"};
  static const uint64_t pools[] = {UINT64_C(1) << 40, UINT64_C(8) << 20};
  for (size_t k = 0; k < sizeof nets / sizeof nets[0]; k++)
    for (uint32_t i = 0; i < 2 * SN_STRATEGY_DEFAULTS; i++) {
      sn_err err = SN_ERR_INIT;
      char name[SN_STRATEGY_TEXT];
      pipeline p = pipeline_open(nets[k], 4);
      pipeline_plan(&p, sn_strategy_name(sn_strategy_default(i / 2), name), SN_WORKSPACE_DYNAMIC, pools[i % 2]);
      sn_trace trace = pipeline_play(&p, false);
      sn_timeline *t = sn_timeline_new(p.plan, &trace, &err);
      must(&err);
      check(t);
      sn_timeline_free(t);
      sn_trace_clear(&trace);
      pipeline_close(&p);
    }
}

static void operations_side_by_side(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_net *net = load_net("resnet18", 4);
  sn_device device = load_gpu("knl7250");
  sn_options options = SN_OPTIONS_INIT;
  sn_timeline *t = sn_simulate_timeline(net, &device, parse_strategy("liveness+corun=path"), &options, &err);
  must(&err);
  assert_true(t->n_columns > t->n_steps);
  check(t);
  sn_timeline_free(t);
  sn_net_free(net);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_moment_of_every_strategy),
                                     cmocka_unit_test(operations_side_by_side)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
