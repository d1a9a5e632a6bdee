/* Failing allocations (tests/support/failing.h): a pipeline, the least memory that its stages need, and the match of its stages' plans. */
#include "tests/support/failing.h"

#include "sim/ask/simulate.h"
#include "sim/stages/match.h"
#include "sim/stages/staged.h"
#include "sim/stages/stages.h"

enum { STAGES = 2, ROOM = 2000 };

typedef struct subject {
  sn_net *net;
  sn_device gpu;
  sn_options options;
  sn_options own[STAGES];
  sn_planner *planners[STAGES];
  sn_plan *plans[STAGES];
  char found[ROOM], expected[ROOM];
  sn_err err;
} subject;

static void simulate(void *user) {
  subject *s = user;
  const sn_strategy strategies[] = {parse_strategy("pytorch"), parse_strategy("pytorch+recompute=units")};
  sn_run *run = sn_stages_simulate("net", s->net, &s->gpu, strategies, 2, &s->options, &s->err);
  if (run)
    snprintf(s->found, ROOM, "%lld %llu %u", (long long)run->results[0].iteration_ns,
             (unsigned long long)run->results[1].least_device_bytes, run->n_stages);
  sn_run_free(run);
}

static void ask(void *user) {
  subject *s = user;
  const sn_strategy strategy = parse_strategy("pytorch");
  sn_binding binding;
  uint64_t least;
  sn_arena *arena = sn_arena_new();
  sn_staged *staged = arena ? sn_staged_new(NULL, s->net, &s->gpu, &s->options, &s->err) : NULL;
  if (!arena) sn_fail_memory(&s->err);
  if (staged && sn_staged_least(staged, strategy, &least, &s->err) == SN_OK &&
      sn_staged_binding(staged, strategy, least - SN_POOL_BLOCK, arena, &binding, &s->err) == SN_OK)
    snprintf(s->found, ROOM, "%llu %u", (unsigned long long)least, binding.stage);
  sn_staged_free(staged);
  if (arena) sn_arena_free(arena);
}

static void match(void *user) {
  static const char *const names[STAGES] = {"first", "second"};
  subject *s = user;
  sn_match *all = sn_match_new(STAGES, &s->err);
  for (uint32_t i = 0; all && i < STAGES && s->err.code == SN_OK; i++)
    sn_match_add_plan(all, names[i], s->plans[i], &s->err);
  if (s->err.code == SN_OK && sn_match_judge(all, NULL, &s->err) == SN_OK) snprintf(s->found, ROOM, "right");
  sn_match_free(all);
}

static subject *open_subject(void) {
  static subject s;
  s = (subject){.options = SN_OPTIONS_INIT, .gpu = load_gpu("h100")};
  s.net = sn_net_load("llm:2,16,2,2,32,20", 1, 8, &s.err);
  s.options.iteration.accumulate = 2;
  s.options.iteration.optimizer = SN_OPTIMIZER_SGD;
  sn_mesh_parse("tp=2,pp=2,dp=2", &s.options.iteration.mesh, &s.err);
  must(&s.err);
  for (uint32_t i = 0; i < STAGES; i++) {
    s.own[i] = sn_stages_options(&s.options, i);
    s.planners[i] = sn_planner_new(s.net, &s.gpu, &s.own[i], &s.err);
    must(&s.err);
    s.plans[i] = sn_planner_plan(s.planners[i], parse_strategy("pytorch"), SN_MEMORY_ALL, false, &s.err);
    must(&s.err);
  }
  return &s;
}

static void close_subject(subject *s) {
  for (uint32_t i = 0; i < STAGES; i++) {
    sn_plan_free(s->plans[i]);
    sn_planner_free(s->planners[i]);
  }
  sn_net_free(s->net);
}

static void all_fail(void (*run)(void *user), long fewest) {
  failing_or_skip();
  subject *s = open_subject();
  const failing_test test = {run, s, s->found, s->expected, ROOM, &s->err};
  failing_each(&test, fewest);
  close_subject(s);
}

static void stages(void **state) {
  (void)state;
  all_fail(simulate, 200);
}

static void memory(void **state) {
  (void)state;
  all_fail(ask, 200);
}

static void plans_meet(void **state) {
  (void)state;
  all_fail(match, 10);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(stages), cmocka_unit_test(memory), cmocka_unit_test(plans_meet)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
