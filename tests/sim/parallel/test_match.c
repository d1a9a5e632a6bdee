/* Transfers of all stages meet, of every schedule, by their routes and by all lanes of their plans; a send without its
 * receive, two that are swapped, a signal that is lost, stages that wait for each other and collectives in another order
 * are found. */
#include "sim/ask/simulate.h"
#include "sim/schedule/schedule.h"
#include "sim/stages/match.h"
#include "tests/support/pipeline.h"

#include <string.h>

enum { STAGES = 4, MICROS = 8 };

static sn_route *routes[STAGES];

static void open_stages(const char *mesh) {
  sn_err err = SN_ERR_INIT;
  sn_net *whole = sn_net_load("llm:8,64,4,4,128,100", 1, 16, &err);
  sn_strategy pytorch = parse_strategy("pytorch");
  sn_iteration iteration = {.optimizer = SN_OPTIMIZER_SGD};
  must(&err);
  for (uint32_t s = 0; s < STAGES; s++) {
    sn_mesh_parse(mesh, &iteration.mesh, &err);
    iteration.mesh.stage = s;
    iteration.mesh.micros = MICROS;
    routes[s] = sn_schedule_route(whole, pytorch, iteration, NULL, &err);
    must(&err);
  }
}

static void close_stages(void) {
  sn_net *whole = (sn_net *)routes[0]->net;
  for (uint32_t s = 0; s < STAGES; s++) sn_route_free(routes[s]);
  sn_net_free(whole);
}

static sn_status match(sn_err *err) {
  *err = (sn_err)SN_ERR_INIT;
  sn_match *all = sn_match_new(STAGES, err);
  for (uint32_t s = 0; s < STAGES; s++) sn_match_add_route(all, routes[s], err);
  sn_match_judge(all, NULL, err);
  sn_match_free(all);
  return err->code;
}

/* The n-th transfer step of a stage, from 0 on, of a kind. */
static sn_step *find(uint32_t stage, sn_transfer_kind kind, uint32_t n) {
  for (uint32_t s = 0; s < routes[stage]->n_steps; s++) {
    const sn_step *step = &routes[stage]->steps[s];
    if (step->kernel == SN_TRANSFER && routes[stage]->transfers[step->sum].kind == kind && n-- == 0)
      return (sn_step *)step;
  }
  fail_msg("no such transfer");
  return NULL;
}

static void schedules_match(void **state) {
  (void)state;
  static const char *const meshes[] = {"pp=4", "pp=4,schedule=gpipe", "pp=4,schedule=interleaved:2", "pp=4,dp=2"};
  for (size_t i = 0; i < sizeof meshes / sizeof meshes[0]; i++) {
    sn_err err;
    open_stages(meshes[i]);
    if (match(&err) != SN_OK) fail_msg("%s: %s", meshes[i], err.text);
    close_stages();
  }
}

static void damage_is_found(void **state) {
  (void)state;
  for (uint32_t stage = 0; stage + 1 < STAGES; stage++) {
    sn_err err;
    open_stages("pp=4");
    sn_step *first = find(stage, SN_SEND, 0), *second = find(stage, SN_SEND, 1), kept = *first;
    first->sum = second->sum; /* swapped */
    second->sum = kept.sum;
    assert_int_equal(match(&err), SN_BUG);
    second->sum = first->sum;
    first->sum = kept.sum;
    assert_int_equal(match(&err), SN_OK);
    first->kernel = SN_PACK; /* lost */
    assert_int_equal(match(&err), SN_BUG);
    first->kernel = SN_TRANSFER;
    sn_step *received = find(stage + 1, SN_RECEIVE, 0);
    received->kernel = SN_PACK; /* a send without its receive */
    assert_int_equal(match(&err), SN_BUG);
    received->kernel = SN_TRANSFER;
    assert_int_equal(match(&err), SN_OK);
    close_stages();
  }
}

/* ---- plans ---- */

static const char *const names[STAGES] = {"a", "b", "c", "d"};
static sn_planner *planners[STAGES];
static sn_plan *plans[STAGES];
static sn_options options[STAGES];
static sn_net *net;
static sn_device gpu;
static uint32_t n_plans, n_stages;

/* `count` plans: of the stages of a pipeline, or of as many ranks. */
static void open_plans(const char *mesh, uint32_t count) {
  sn_err err = SN_ERR_INIT;
  net = sn_net_load("llm:8,64,4,4,128,100", 1, 16, &err);
  gpu = load_gpu("h100");
  n_plans = count;
  for (uint32_t s = 0; s < count; s++) {
    options[s] = (sn_options)SN_OPTIONS_INIT;
    sn_mesh_parse(mesh, &options[s].iteration.mesh, &err);
    n_stages = sn_mesh_size(&options[s].iteration.mesh, SN_MESH_PP);
    options[s].iteration.optimizer = SN_OPTIMIZER_SGD;
    options[s].iteration.mesh.stage = s % n_stages;
    options[s].iteration.mesh.micros = n_stages > 1 ? MICROS : 0;
    must(&err);
    planners[s] = sn_planner_new(net, &gpu, &options[s], &err);
    must(&err);
    plans[s] = sn_planner_plan(planners[s], parse_strategy("pytorch"), SN_MEMORY_ALL, false, &err);
    must(&err);
  }
}

static void close_plans(void) {
  for (uint32_t s = 0; s < n_plans; s++) {
    sn_plan_free(plans[s]);
    sn_planner_free(planners[s]);
  }
  sn_net_free(net);
}

static sn_status match_plans(sn_match_fault *fault, sn_err *err) {
  *err = (sn_err)SN_ERR_INIT;
  sn_match *all = sn_match_new(n_stages, err);
  for (uint32_t s = 0; s < n_plans; s++) sn_match_add_plan(all, names[s], plans[s], err);
  sn_match_judge(all, fault, err);
  sn_match_free(all);
  return err->code;
}

static void must_fail(const char *what, const char *why) {
  sn_err err;
  if (match_plans(NULL, &err) != SN_BUG) fail_msg("%s: \"%s\"", what, err.text);
  if (!strstr(err.text, why)) fail_msg("%s: \"%s\" says nothing of \"%s\"", what, err.text, why);
}

/* The n-th of a kind, on a lane. */
static sn_instr *find_instr(uint32_t stage, sn_instr_kind kind, sn_lane lane, uint32_t n) {
  for (uint32_t i = 0; i < plans[stage]->n_instrs; i++) {
    sn_instr *instr = &plans[stage]->instrs[i];
    if (instr->kind == kind && instr->lane == lane && n-- == 0) return instr;
  }
  fail_msg("no such instruction");
  return NULL;
}

static void swap_steps(sn_instr *a, sn_instr *b) {
  uint32_t kept = a->id;
  a->id = b->id;
  b->id = kept;
}

static void plans_match(void **state) {
  static const char *const meshes[] = {"pp=4",
                                       "pp=4,schedule=gpipe",
                                       "pp=4,schedule=interleaved:2",
                                       "pp=4,dp=2",
                                       "pp=4,tp=2",
                                       "pp=2",
                                       "fsdp=4",
                                       "fsdp=4,dp=2",
                                       "tp=2,fsdp=2",
                                       "dp=4",
                                       "pp=2,tp=2,sequence=whole"};
  (void)state;
  for (size_t i = 0; i < sizeof meshes / sizeof meshes[0]; i++) {
    sn_err err;
    open_plans(meshes[i], STAGES);
    if (match_plans(NULL, &err) != SN_OK) fail_msg("%s: %s", meshes[i], err.text);
    close_plans();
  }
}

static void damaged_plans_are_found(void **state) {
  sn_err err;
  (void)state;
  open_plans("pp=4", STAGES);
  sn_instr *first = find_instr(1, SN_COMPUTE, SN_LANE_SEND, 0), *second = find_instr(1, SN_COMPUTE, SN_LANE_SEND, 1);
  swap_steps(first, second);
  must_fail("sends swapped", "is sent");
  swap_steps(first, second);
  first->kind = SN_ALLOC;
  must_fail("a send lost", "is sent");
  first->kind = SN_COMPUTE;
  sn_instr *last = find_instr(2, SN_COMPUTE, SN_LANE_RECEIVE, 2 * MICROS - 1);
  last->kind = SN_ALLOC;
  must_fail("a receive lost", "does not receive it");
  last->kind = SN_COMPUTE;
  sn_instr *signal = find_instr(3, SN_SIGNAL, SN_LANE_RECEIVE, 0);
  signal->kind = SN_RELEASE;
  must_fail("a signal lost", "a cycle");
  signal->kind = SN_SIGNAL;
  assert_int_equal(match_plans(NULL, &err), SN_OK);
  close_plans();
}

/* Each of two stages waits for what the other sends behind that. */
static void cycles_are_found(void **state) {
  (void)state;
  open_plans("pp=4", STAGES);
  sn_instr *wait = find_instr(2, SN_WAIT, SN_LANE_SEND, 0), *later = find_instr(2, SN_SIGNAL, SN_LANE_RECEIVE, MICROS);
  wait->id = later->id; /* sends its first only when its last micro-batches have come back */
  must_fail("a cycle", "a cycle");
  close_plans();
}

static void stages_are_counted(void **state) {
  (void)state;
  open_plans("pp=4", STAGES);
  n_plans = 3;
  must_fail("three of four", "1 of stage 0, and 0 of stage 3 of 4");
  n_plans = 4;
  close_plans();
}

static void ranks_match(void **state) {
  sn_err err;
  sn_match_fault fault;
  (void)state;
  open_plans("fsdp=4", 2);
  assert_int_equal(match_plans(&fault, &err), SN_OK);
  assert_int_equal(fault.member, SN_NONE);
  sn_instr *first = find_instr(1, SN_COMPUTE, SN_LANE_FSDP, 0), *second = find_instr(1, SN_COMPUTE, SN_LANE_FSDP, 1);
  swap_steps(first, second);
  must_fail("collectives swapped", "it is another collective than that of");
  assert_int_equal(match_plans(&fault, &err), SN_BUG);
  assert_int_equal(fault.member, 0);
  swap_steps(first, second);
  first->kind = SN_ALLOC;
  must_fail("a collective lost", "another collective");
  first->kind = SN_COMPUTE;
  uint32_t n = 0;
  for (uint32_t i = 0; i < plans[1]->n_instrs; i++)
    n += plans[1]->instrs[i].kind == SN_COMPUTE && plans[1]->instrs[i].lane == SN_LANE_FSDP;
  find_instr(1, SN_COMPUTE, SN_LANE_FSDP, n - 1)->kind = SN_ALLOC;
  must_fail("the last collective lost", "has not this collective");
  close_plans();
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(schedules_match),  cmocka_unit_test(damage_is_found),
                                     cmocka_unit_test(plans_match),      cmocka_unit_test(damaged_plans_are_found),
                                     cmocka_unit_test(cycles_are_found), cmocka_unit_test(stages_are_counted),
                                     cmocka_unit_test(ranks_match)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
