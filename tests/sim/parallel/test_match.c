/* Transfers of all stages meet, of every schedule; a send without its receive, two that are swapped, and a schedule that
 * waits for itself are found. */
#include "sim/parallel/shard.h"
#include "sim/schedule/schedule.h"
#include "sim/stages/match.h"
#include "tests/support/pipeline.h"

#include <string.h>

enum { STAGES = 4, MICROS = 8 };

static sn_route *routes[STAGES];

static void open_stages(const char *mesh) {
  sn_err err = SN_ERR_INIT;
  sn_net *net = sn_net_load("llm:8,64,4,4,128,100", 1, 16, &err);
  sn_strategy pytorch = parse_strategy("pytorch");
  sn_iteration iteration = {.optimizer = SN_OPTIMIZER_SGD};
  must(&err);
  for (uint32_t s = 0; s < STAGES; s++) {
    sn_mesh_parse(mesh, &iteration.mesh, &err);
    iteration.mesh.stage = s;
    iteration.mesh.micros = MICROS;
    routes[s] = sn_schedule_route(net, pytorch, iteration, NULL, &err);
    must(&err);
  }
}

static void close_stages(void) {
  sn_net *net = (sn_net *)routes[0]->net;
  for (uint32_t s = 0; s < STAGES; s++) sn_route_free(routes[s]);
  sn_net_free(net);
}

static sn_status match(sn_err *err) {
  *err = (sn_err)SN_ERR_INIT;
  return sn_match_stages((const sn_route *const *)routes, STAGES, err);
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

/* Ranks of one communicator. */
static void ranks_match(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_net *net = sn_net_load("llm:4,64,4,4,128,100", 1, 16, &err);
  sn_iteration iteration = {.optimizer = SN_OPTIMIZER_SGD};
  sn_mesh_parse("fsdp=4", &iteration.mesh, &err);
  sn_route *one = sn_schedule_route(net, parse_strategy("pytorch"), iteration, NULL, &err);
  sn_route *other = sn_schedule_route(net, parse_strategy("pytorch"), iteration, NULL, &err);
  must(&err);
  assert_int_equal(sn_match_ranks(one, other, SN_MESH_FSDP, &err), SN_OK);
  uint32_t gathers[2], n = 0;
  for (uint32_t s = 0; s < other->n_steps && n < 2; s++)
    if (other->steps[s].kernel == SN_TRANSFER) gathers[n++] = s;
  sn_step *steps = (sn_step *)other->steps;
  uint32_t kept = steps[gathers[0]].sum;
  steps[gathers[0]].sum = steps[gathers[1]].sum;
  steps[gathers[1]].sum = kept;
  assert_int_equal(sn_match_ranks(one, other, SN_MESH_FSDP, &err), SN_BUG);
  assert_non_null(strstr(err.text, "another fsdp transfer"));
  err = (sn_err)SN_ERR_INIT;
  steps[gathers[1]].kernel = SN_PACK;
  assert_int_equal(sn_match_ranks(one, other, SN_MESH_FSDP, &err), SN_BUG);
  sn_route_free(one);
  sn_route_free(other);
  sn_net_free(net);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(schedules_match), cmocka_unit_test(damage_is_found),
                                     cmocka_unit_test(ranks_match)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
