/* Tests of sweeps in the store: found by their grid, gone on with, written in any order and read in theirs, all or
 * nothing, one program at a time; the views. */
#include "db/sweep.h"

#include "tests/db/store_place.h"

static const char grid_text[] = "{\"snsim_grid\":1,\"nets\":[\"lenet\"]}";

static sn_sweep_row sample_row(uint32_t point) {
  return (sn_sweep_row){.point = point,
                        .net = "resnet:n1=3,n2=4",
                        .net_name = point % 2 ? "resnet" : "",
                        .gpu = "k40c",
                        .memory_bytes = 11994660864,
                        .conditions.workspace = "dynamic",
                        .conditions.external = "host",
                        .conditions.allocator = "pool",
                        .conditions.optimizer = point < 6 ? "adam" : "momentum",
                        .conditions.accumulate = point < 6 ? point : 1,
                        .conditions.inference = point == 4,
                        .conditions.freeze = point == 3 ? "conv*" : "",
                        .conditions.host_us = point == 4 ? "25" : "",
                        .conditions.precision = point == 5 ? "amp-bf16" : "fp32",
                        .conditions.parallel = point == 2 ? "fsdp=8" : "",
                        .conditions.cluster = point == 2 ? "h100x8" : "",
                        .largest_load_bytes = 7000 + point,
                        .placement = "packed",
                        .image = 224,
                        .conditions.shared_link = true,
                        .conditions.pool_limit_bytes = point % 2 ? 0 : UINT64_C(3) << 30,
                        .batch = 8 * (point / 3 + 1),
                        .strategy = point % 3 ? "liveness" : "baseline",
                        .failure = point == 5 ? "out of host memory" : "",
                        .fits = point % 5 > 0,
                        .peak_device_bytes = 1000001 * (uint64_t)point,
                        .least_device_bytes = 800001 * (uint64_t)point,
                        .peak_tensor_bytes = 900001 * (uint64_t)point,
                        .pool_bytes = 910001 * (uint64_t)point,
                        .workspace_peak_bytes = 70001 * (uint64_t)point,
                        .offload_bytes = 10 + point,
                        .prefetch_bytes = 20 + point,
                        .external_bytes = 30 + point,
                        .recomputed_layers = 40 + point,
                        .iteration_ns = 5000000 + (int64_t)point,
                        .stall_ns = 600 + (int64_t)point,
                        .images_per_second = 1.0 / (point + 1)};
}

static void assert_row(const sn_sweep_row *got, const sn_sweep_row *want, uint32_t session) {
  assert_int_equal(got->session, session);
  assert_true(got->point == want->point && got->batch == want->batch && got->fits == want->fits);
  assert_string_equal(got->net, want->net);
  assert_string_equal(got->net_name, want->net_name);
  assert_string_equal(got->gpu, want->gpu);
  assert_true(sn_conditions_same(&got->conditions, &want->conditions));
  assert_true(got->largest_load_bytes == want->largest_load_bytes);
  assert_string_equal(got->strategy, want->strategy);
  assert_string_equal(got->failure, want->failure);
  assert_true(got->image == want->image);
  assert_true(got->memory_bytes == want->memory_bytes);
  assert_true(got->peak_device_bytes == want->peak_device_bytes && got->peak_tensor_bytes == want->peak_tensor_bytes);
  assert_true(got->least_device_bytes == want->least_device_bytes);
  assert_true(got->pool_bytes == want->pool_bytes && got->workspace_peak_bytes == want->workspace_peak_bytes);
  assert_true(got->offload_bytes == want->offload_bytes && got->prefetch_bytes == want->prefetch_bytes);
  assert_true(got->external_bytes == want->external_bytes && got->recomputed_layers == want->recomputed_layers);
  assert_true(got->iteration_ns == want->iteration_ns && got->stall_ns == want->stall_ns);
  assert_true(got->images_per_second == want->images_per_second);
}

static int64_t new_sweep(sn_store *store, const char *text, uint32_t n_points) {
  sn_err err = SN_ERR_INIT;
  int64_t id = 0;
  sn_sweep_create(store, text, n_points, &id, &err);
  assert_status(SN_OK, &err, "");
  return id;
}

static uint32_t enter(sn_store *store, int64_t id) {
  sn_err err = SN_ERR_INIT;
  uint32_t session = 0;
  sn_sweep_enter(store, id, &session, &err);
  assert_status(SN_OK, &err, "");
  return session;
}

static void put(sn_store *store, int64_t id, uint32_t session, const uint32_t *points, uint32_t count) {
  sn_err err = SN_ERR_INIT;
  sn_sweep_row rows[8];
  for (uint32_t i = 0; i < count; i++) rows[i] = sample_row(points[i]);
  sn_sweep_put(store, id, session, rows, count, &err);
  assert_status(SN_OK, &err, "");
}

static void a_sweep_is_found_by_its_grid(void **unused) {
  (void)unused;
  sn_err err = SN_ERR_INIT;
  sn_store *store = open_good(":memory:");
  int64_t id = -1;
  assert_int_equal(sn_sweep_find(store, grid_text, &id, &err), SN_OK);
  assert_int_equal(id, 0);
  int64_t first = new_sweep(store, grid_text, 6), other = new_sweep(store, "{}", 6);
  assert_true(first != other);
  sn_sweep_find(store, grid_text, &id, &err);
  assert_int_equal(id, first);
  int64_t second = new_sweep(store, grid_text, 6); /* --new: the newest is gone on with */
  sn_sweep_find(store, grid_text, &id, &err);
  assert_int_equal(id, second);
  assert_status(SN_OK, &err, "");
  sn_store_close(store);
}

static void rows_come_back_in_order(void **state) {
  scratch *place = *state;
  sn_err err = SN_ERR_INIT;
  sn_store *store = open_good(place->file);
  int64_t id = new_sweep(store, grid_text, 6);
  uint32_t session = enter(store, id);
  assert_int_equal(session, 1);
  put(store, id, session, (const uint32_t[]){4, 2}, 2);
  sn_store_close(store);
  store = open_good(place->file);
  session = enter(store, id);
  put(store, id, session, (const uint32_t[]){5}, 1);
  bool marks[6] = {false};
  sn_sweep_stored(store, id, 6, marks, &err);
  static const bool want_marks[6] = {false, true, false, true, true, false};
  assert_memory_equal(marks, want_marks, sizeof marks);
  sn_sweep *sweep = sn_sweep_get(store, 0, &err);
  assert_status(SN_OK, &err, "");
  assert_true(sweep->head.id == id && sweep->n_rows == 3 && sweep->head.n_stored == 3 && sweep->head.n_points == 6);
  assert_true(sweep->head.n_failed == 1 && sweep->head.n_fit == 2 && sweep->head.sessions == 2);
  assert_string_equal(sweep->head.grid, grid_text);
  static const uint32_t points[] = {2, 4, 5}, sessions[] = {1, 1, 2};
  for (uint32_t i = 0; i < 3; i++) {
    sn_sweep_row want = sample_row(points[i]);
    assert_row(&sweep->rows[i], &want, sessions[i]);
  }
  sn_sweep_free(sweep);
  sweep = sn_sweep_get_head(store, id, &err);
  assert_true(sweep->rows == NULL && sweep->n_rows == 0 && sweep->head.n_stored == 3);
  sn_sweep_free(sweep);
  sn_store_close(store);
}

/* Older sweeps' grids freeze nothing, and what is no JSON neither. */
static void what_is_frozen_is_read_from_the_grid(void **unused) {
  (void)unused;
  static const struct {
    const char *grid, *freeze;
  } kept[] = {
      {"{\"snsim_grid\":1,\"freeze\":\"conv*,b\\u0061d\"}", "conv*,bad"}, {"{\"snsim_grid\":1}", ""}, {"no JSON", ""}};
  for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
    sn_err err = SN_ERR_INIT;
    sn_store *store = open_good(":memory:");
    int64_t id = new_sweep(store, kept[i].grid, 6);
    uint32_t session = enter(store, id);
    put(store, id, session, (const uint32_t[]){1}, 1);
    sn_sweep *sweep = sn_sweep_get(store, id, &err);
    assert_status(SN_OK, &err, "");
    assert_string_equal(sweep->head.freeze, kept[i].freeze);
    sn_sweep_free(sweep);
    sn_store_close(store);
  }
}

static void a_put_is_all_or_nothing(void **unused) {
  (void)unused;
  sn_err err = SN_ERR_INIT;
  sn_store *store = open_good(":memory:");
  int64_t id = new_sweep(store, grid_text, 6), count = -1;
  uint32_t session = enter(store, id);
  put(store, id, session, (const uint32_t[]){3}, 1);
  sn_sweep_row rows[] = {sample_row(1), sample_row(3)}; /* the second is there already */
  assert_int_not_equal(sn_sweep_put(store, id, session, rows, 2, &err), SN_OK);
  err = (sn_err)SN_ERR_INIT;
  sn__store_number(store, "SELECT sum(point) FROM points", &count, &err);
  assert_int_equal(count, 3);
  sn_store_close(store);
}

static void the_program_that_entered_last_owns_it(void **state) {
  scratch *place = *state;
  sn_err err = SN_ERR_INIT;
  sn_store *one = open_good(place->file), *two = open_good(place->file);
  int64_t id = new_sweep(one, grid_text, 6), count = -1;
  uint32_t first = enter(one, id);
  put(one, id, first, (const uint32_t[]){1}, 1);
  uint32_t second = enter(two, id);
  sn_sweep_row row = sample_row(2);
  sn_sweep_put(one, id, first, &row, 1, &err);
  assert_status(SN_BAD_FILE, &err, "another program has continued sweep 1");
  put(two, id, second, (const uint32_t[]){2}, 1);
  err = (sn_err)SN_ERR_INIT;
  sn__store_number(two, "SELECT count(*) FROM points", &count, &err);
  assert_int_equal(count, 2);
  sn__store_exec(two, "DELETE FROM sweeps", &err);
  sn__store_number(two, "SELECT count(*) FROM points", &count, &err);
  assert_int_equal(count, 0); /* points go with their sweep */
  sn_sweep_put(two, id, second, &row, 1, &err);
  assert_status(SN_BAD_FILE, &err, "sweep 1 has been deleted");
  sn_store_close(one);
  sn_store_close(two);
}

static void unknown_sweeps_are_refused(void **unused) {
  (void)unused;
  sn_err err = SN_ERR_INIT;
  sn_store *store = open_good(":memory:");
  uint32_t session;
  assert_null(sn_sweep_get(store, 0, &err));
  assert_status(SN_BAD_INPUT, &err, "there are no sweeps yet");
  new_sweep(store, grid_text, 6);
  err = (sn_err)SN_ERR_INIT;
  assert_null(sn_sweep_get(store, 7, &err));
  assert_status(SN_BAD_INPUT, &err, "there is no sweep 7; the newest is 1");
  err = (sn_err)SN_ERR_INIT;
  sn_sweep_enter(store, 7, &session, &err);
  assert_status(SN_BAD_INPUT, &err, "there is no sweep 7");
  err = (sn_err)SN_ERR_INIT;
  put(store, 1, enter(store, 1), (const uint32_t[]){6}, 1);
  bool marks[5] = {false};
  sn_sweep_stored(store, 1, 5, marks, &err);
  assert_status(SN_BAD_INPUT, &err, "points beyond its grid");
  sn_store_close(store);
}

static void sweeps_are_listed_newest_first(void **unused) {
  (void)unused;
  sn_err err = SN_ERR_INIT;
  sn_store *store = open_good(":memory:");
  new_sweep(store, grid_text, 6);
  new_sweep(store, "{}", 9);
  sn_sweep_list *list = sn_sweep_all(store, &err);
  assert_status(SN_OK, &err, "");
  assert_int_equal(list->count, 2);
  assert_true(list->lines[0].id == 2 && list->lines[0].n_points == 9 && list->lines[1].id == 1);
  sn_sweep_list_free(list);
  sn_store_close(store);
}

static void views_have_the_best_and_all(void **unused) {
  (void)unused;
  sn_err err = SN_ERR_INIT;
  sn_store *store = open_good(":memory:");
  int64_t id = new_sweep(store, grid_text, 6), count = -1;
  put(store, id, enter(store, id), (const uint32_t[]){6, 7, 8, 9, 10, 11}, 6);
  sn__store_number(store, "SELECT count(*) FROM sweep_points WHERE sweep = 1 AND peak_device_mib > 5", &count, &err);
  assert_int_equal(count, 6);
  /* batch 24 without limit: only point 7; batch 24 of 3 GiB: 6 and 8, of which 6 is the faster; batch 32: 9, 11 */
  sn__store_number(store, "SELECT count(*) FROM sweep_best WHERE sweep = 1", &count, &err);
  assert_int_equal(count, 3);
  sn__store_number(store, "SELECT strategy = 'baseline' FROM sweep_best WHERE batch = 24 AND pool_limit_mib = 3072",
                   &count, &err);
  assert_int_equal(count, 1);
  assert_status(SN_OK, &err, "");
  sn_store_close(store);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_sweep_is_found_by_its_grid),          TEST(rows_come_back_in_order),
      TEST(what_is_frozen_is_read_from_the_grid),  TEST(a_put_is_all_or_nothing),
      TEST(the_program_that_entered_last_owns_it), TEST(unknown_sweeps_are_refused),
      TEST(sweeps_are_listed_newest_first),        TEST(views_have_the_best_and_all),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
