/* Tests of a sweep's families (sim/sweep/grid.h): their turns, and that what is kept from one group to the next changes
 * no point. */
#include "models/zoo/zoo.h"

#include "sim/graph/route.h"
#include "sim/plan/plan.h"
#include "sim/sweep/point.h"
#include "tests/sim/sweep/grids.h"
#include "tests/support/seed.h"

#include <stdio.h>
#include <stdlib.h>

/* Every group has one turn; those of a family stand together and have the same network, image, batch and iteration. */
static void turns_go_family_by_family(void **unused) {
  (void)unused;
  sn_grid *grid = new_grid();
  add(grid, SN_AXIS_NETS, "lenet,alexnet");
  add(grid, SN_AXIS_IMAGES, "own,160");
  add(grid, SN_AXIS_GPUS, "k40c,v100_32,a100_80");
  add(grid, SN_AXIS_MEMORIES, "own,2GiB");
  add(grid, SN_AXIS_OPTIMIZERS, "sgd,adam");
  add(grid, SN_AXIS_POOLS, "all,1GiB");
  add(grid, SN_AXIS_BATCHES, "1,2,3,4,5");
  finish(grid);
  assert_int_equal(sn_grid_family_size(grid), 3 * 2 * 2);
  assert_int_equal(grid->n_groups % sn_grid_family_size(grid), 0);
  bool *had = calloc(grid->n_groups, sizeof *had);
  uint32_t at[SN_AXES], first[SN_AXES] = {0};
  for (uint32_t turn = 0; turn < grid->n_groups; turn++) {
    uint32_t group = sn_grid_group_at(grid, turn);
    assert_true(group < grid->n_groups && !had[group]);
    had[group] = true;
    assert_int_equal(sn_grid_family(grid, group), turn / sn_grid_family_size(grid));
    sn_grid_at(grid, group, at);
    if (turn % sn_grid_family_size(grid) == 0) memcpy(first, at, sizeof first);
    assert_true(at[SN_AXIS_NETS] == first[SN_AXIS_NETS] && at[SN_AXIS_IMAGES] == first[SN_AXIS_IMAGES]);
    assert_true(at[SN_AXIS_BATCHES] == first[SN_AXIS_BATCHES] && at[SN_AXIS_OPTIMIZERS] == first[SN_AXIS_OPTIMIZERS]);
  }
  free(had);
  sn_grid_free(grid);
}

static bool same_points(const sn_point *a, const sn_point *b, uint32_t count) {
  bool same = true;
  for (uint32_t i = 0; i < count; i++)
    same = same && a[i].fits == b[i].fits && a[i].placement == b[i].placement &&
           a[i].peak_device_bytes == b[i].peak_device_bytes && a[i].least_device_bytes == b[i].least_device_bytes &&
           a[i].peak_tensor_bytes == b[i].peak_tensor_bytes && a[i].pool_bytes == b[i].pool_bytes &&
           a[i].largest_load_bytes == b[i].largest_load_bytes &&
           a[i].workspace_peak_bytes == b[i].workspace_peak_bytes && a[i].offload_bytes == b[i].offload_bytes &&
           a[i].prefetch_bytes == b[i].prefetch_bytes && a[i].external_bytes == b[i].external_bytes &&
           a[i].recomputed_layers == b[i].recomputed_layers && a[i].iteration_ns == b[i].iteration_ns &&
           a[i].stall_ns == b[i].stall_ns && strcmp(a[i].failure, b[i].failure) == 0;
  return same;
}

/* Whatever was computed before: devices, memories, workspaces, allocators, pools, and networks in any order; graphs
 * with workspaces in them, costs of their own and strategies that adapt. */
static void what_is_kept_changes_no_point(void **unused) {
  (void)unused;
  sn_grid *grid = new_grid();
  add(grid, SN_AXIS_NETS, "alexnet");
  add(grid, SN_AXIS_BATCHES, "64,256");
  add(grid, SN_AXIS_GPUS, "k40c,a100_80");
  add(grid, SN_AXIS_MEMORIES, "own,1500MiB");
  add(grid, SN_AXIS_WORKSPACES, "dynamic,none");
  add(grid, SN_AXIS_ALLOCATORS, "pool,pytorch");
  add(grid, SN_AXIS_POOLS, "all,800MiB");
  add(grid, SN_AXIS_PRECISIONS, "fp32,bf16");
  const char *const strategies[] = {"baseline",  "liveness", "liveness+offload",          "superneurons",
                                    "singa-bfs", "pytorch",  "liveness+recompute=optimal"};
  for (size_t i = 0; i < sizeof strategies / sizeof *strategies; i++) add(grid, SN_AXIS_STRATEGIES, strategies[i]);
  finish(grid);
  uint32_t count = grid->n[SN_AXIS_STRATEGIES];
  sn_point_kept kept = {0};
  for (uint32_t i = 0, n = case_all(2 * grid->n_groups); i < n; i++) { /* by turns, then to and fro */
    sn_point near[SN_GRID_STRATEGIES], alone[SN_GRID_STRATEGIES];
    uint32_t group = sn_grid_group_at(grid, i < grid->n_groups ? i : i * 37 % grid->n_groups);
    sn_point_compute(grid, group, &kept, near);
    sn_point_compute(grid, group, NULL, alone);
    assert_true(same_points(near, alone, count));
  }
  sn_point_forget(&kept);
  sn_grid_free(grid);
}

static void assert_same_plans(const sn_plan *a, const sn_plan *b) {
  assert_int_equal(a->n_instrs, b->n_instrs);
  for (uint32_t i = 0; i < a->n_instrs; i++) {
    const sn_instr *x = &a->instrs[i], *y = &b->instrs[i];
    assert_true(x->kind == y->kind && x->lane == y->lane && x->rerun == y->rerun && x->id == y->id);
    assert_true(x->algo[0] == y->algo[0] && x->algo[1] == y->algo[1] && x->step == y->step);
    assert_true(x->offset == y->offset && x->bytes == y->bytes);
  }
  assert_true(a->n_fences == b->n_fences && a->placement == b->placement && a->roomy == b->roomy);
  assert_true(a->pool_limit == b->pool_limit && a->pool_bytes == b->pool_bytes && a->bare_bytes == b->bare_bytes);
  assert_true(a->largest_hole == b->largest_hole && a->reserved_peak == b->reserved_peak);
  assert_true(a->external_bytes == b->external_bytes && a->external_limit == b->external_limit);
  assert_memory_equal(&a->counts, &b->counts, sizeof a->counts);
  for (uint32_t s = 0; s < a->route->n_steps; s++)
    assert_true(a->use[s].tensor_bytes == b->use[s].tensor_bytes && a->use[s].live_tensors == b->use[s].live_tensors &&
                a->use[s].workspace_bytes == b->use[s].workspace_bytes);
}

/* On a planner that has made plans for other devices, memories and workspaces every plan is the one that a new planner
 * makes; the second time it is often one that was kept (sim/make/proved.h). */
static void plans_are_those_of_a_new_planner(void **unused) {
  (void)unused;
  static const char *const gpus[] = {"k40c", "p100_16", "v100_32", "a100_80"};
  sn_err err = SN_ERR_INIT;
  sn_net *net = sn_net_load("alexnet", 128, 0, &err);
  sn_device device;
  sn_options options = SN_OPTIONS_INIT;
  sn_planner *turned = NULL;
  for (uint32_t i = 0; i < 3 * 4 * 7; i++) {
    if (i / 7 % case_stride() > 0) continue; /* all memories of some devices, one after the other */
    assert_int_equal(sn_device_load(gpus[i / 7 % 4], &device, &err), SN_OK);
    options.workspace = (sn_workspace)(i / 7 / 4);
    uint64_t memory = UINT64_C(1) << 29 << (i % 7); /* from what hardly anything runs in to what all does */
    if (!turned) turned = sn_planner_new(net, &device, &options, &err);
    assert_int_equal(sn_planner_turn(turned, &device, &options, &err), SN_OK);
    for (uint32_t s = 0; s < SN_STRATEGY_DEFAULTS; s++) {
      sn_planner *fresh = sn_planner_new(net, &device, &options, &err);
      sn_plan *wanted = sn_planner_plan(fresh, sn_strategy_default(s), memory, false, &err);
      for (int again = 0; again < 2; again++) {
        sn_plan *plan = sn_planner_plan(turned, sn_strategy_default(s), memory, false, &err);
        if (!wanted || !plan) fail_msg("%s", err.text);
        assert_same_plans(plan, wanted);
        sn_plan_free(plan);
      }
      sn_plan_free(wanted);
      sn_planner_free(fresh);
    }
  }
  sn_planner_free(turned);
  sn_net_free(net);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(turns_go_family_by_family),
      cmocka_unit_test(what_is_kept_changes_no_point),
      cmocka_unit_test(plans_are_those_of_a_new_planner),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
