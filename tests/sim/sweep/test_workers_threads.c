/* Tests of the threads of a sweep: every group comes back once, with the points that one thread computes; what is
 * dropped does not come back; ending with work queued. ThreadSanitizer runs this. */
#include "sim/sweep/workers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static sn_grid *grid_of(const char *nets, const char *batches) {
  sn_err err = SN_ERR_INIT;
  sn_grid *grid = sn_grid_new(&err);
  assert_non_null(grid);
  sn_grid_add_list(grid, SN_AXIS_NETS, nets, &err);
  sn_grid_add_list(grid, SN_AXIS_BATCHES, batches, &err);
  sn_grid_add_list(grid, SN_AXIS_STRATEGIES, "baseline,superneurons", &err);
  if (sn_grid_finish(grid, &err) != SN_OK) fail_msg("%s", err.text);
  return grid;
}

static sn_workers *workers_of(const sn_grid *grid, uint32_t threads) {
  sn_err err = SN_ERR_INIT;
  sn_workers *workers = sn_workers_new(grid, threads, &err);
  if (!workers) fail_msg("%s", err.text);
  return workers;
}

static bool same_point(const sn_point *a, const sn_point *b) {
  return a->fits == b->fits && a->peak_device_bytes == b->peak_device_bytes && a->iteration_ns == b->iteration_ns &&
         a->stall_ns == b->stall_ns && strcmp(a->failure, b->failure) == 0;
}

static void every_group_comes_back_once(void **unused) {
  (void)unused;
  sn_grid *grid = grid_of("lenet,alexnet", "1:40:1");
  sn_workers *workers = workers_of(grid, 4);
  assert_int_equal(sn_workers_room(workers), 4 * SN_WORKERS_AHEAD);
  uint32_t given = 0, taken = 0, group, *seen = calloc(grid->n_groups, sizeof *seen);
  sn_point points[2], alone[2];
  while (taken < grid->n_groups) {
    while (given < grid->n_groups && sn_workers_room(workers) > 0) sn_workers_give(workers, given++);
    if (!sn_workers_take(workers, 1000, &group, points)) continue;
    taken++;
    seen[group]++;
    sn_point_compute(grid, group, NULL, alone);
    assert_true(same_point(&points[0], &alone[0]) && same_point(&points[1], &alone[1]));
  }
  for (uint32_t i = 0; i < grid->n_groups; i++) assert_int_equal(seen[i], 1);
  assert_int_equal(sn_workers_held(workers), 0);
  assert_false(sn_workers_take(workers, 1, &group, points));
  free(seen);
  sn_workers_free(workers);
  sn_grid_free(grid);
}

/* Drops right after giving; returns how many groups came back all the same. */
static uint32_t give_and_drop(sn_workers *workers) {
  uint32_t taken = 0, group;
  sn_point points[2];
  for (uint32_t i = 0; i < SN_WORKERS_AHEAD; i++) sn_workers_give(workers, i);
  sn_workers_drop(workers);
  while (sn_workers_held(workers) > 0)
    if (sn_workers_take(workers, 1000, &group, points)) assert_int_equal(group, taken++); /* in the order given */
  return taken;
}

/* Where this thread is held up, all groups may be done before they are dropped; hardly a hundred times. */
static void dropped_groups_stay_away(void **unused) {
  (void)unused;
  sn_grid *grid = grid_of("resnet50", "1:16:1");
  sn_workers *workers = workers_of(grid, 1);
  uint32_t rounds = 1;
  while (rounds < 100 && give_and_drop(workers) == SN_WORKERS_AHEAD) rounds++;
  assert_true(rounds < 100);
  assert_int_equal(sn_workers_room(workers), SN_WORKERS_AHEAD);
  sn_workers_free(workers);
  sn_grid_free(grid);
}

static void ending_leaves_work_undone(void **unused) {
  (void)unused;
  sn_grid *grid = grid_of("resnet50", "1:16:1");
  for (uint32_t round = 0; round < 20; round++) {
    sn_workers *workers = workers_of(grid, 2);
    for (uint32_t i = 0; i < round % 8; i++) sn_workers_give(workers, i);
    sn_workers_free(workers);
  }
  sn_grid_free(grid);
  sn_workers_free(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_group_comes_back_once),
      cmocka_unit_test(dropped_groups_stay_away),
      cmocka_unit_test(ending_leaves_work_undone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
