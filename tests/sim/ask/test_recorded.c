/* Recordings as networks: live bytes of PyTorch's strategies are those of PyTorch's tracker (tests/record/data/
 * expected.csv), whatever the batch; plans of all other strategies are proved or refused with a reason. */
#include "tests/support/live_of.h"

#include "models/record/record.h"
#include "sim/device/device_internal.h"

#include <stdio.h>

#define DATA SNSIM_SOURCE_DIR "/tests/record/data/"

static uint64_t total(sn_live l) {
  return l.parameters + l.buffers + l.gradients + l.optimizer + l.activations + l.temporary;
}

typedef struct expected {
  char file[64], globs[64];
  unsigned batch;
  unsigned long apart, in_place, units, selective; /* the last two: 0 without globs */
} expected;

/* "file,batch,apart,in place,globs,calls,units,selective"; several globs stand in quotation marks. */
static expected read_row(const char *line) {
  expected e = {0};
  int read = 0;
  assert_int_equal(sscanf(line, "%63[^,],%u,%lu,%lu,%n", e.file, &e.batch, &e.apart, &e.in_place, &read), 4);
  const char *rest = line + read;
  if (sscanf(rest, "\"%63[^\"]\",%*u,%lu,%lu", e.globs, &e.units, &e.selective) < 3)
    sscanf(rest, "%63[^,],%*u,%lu,%lu", e.globs, &e.units, &e.selective);
  return e;
}

static void live_bytes_are_pytorchs(void **state) {
  (void)state;
  FILE *in = fopen(DATA "expected.csv", "r");
  char line[256], path[256];
  unsigned with_units = 0;
  assert_true(in && fgets(line, sizeof line, in));
  while (fgets(line, sizeof line, in)) {
    const expected e = read_row(line);
    snprintf(path, sizeof path, e.units ? DATA "%s:units=%s" : DATA "%s", e.file, e.globs);
    sn_net *net = load_net(path, e.batch);
    assert_int_equal(total(live_of(path, net, "pytorch", (sn_iteration){0})), e.in_place);
    assert_int_equal(total(live_of(path, net, "pytorch-1.7", (sn_iteration){0})), e.apart);
    if (e.units) assert_int_equal(total(live_of(path, net, "pytorch+recompute=units", (sn_iteration){0})), e.units);
    if (e.units)
      assert_int_equal(total(live_of(path, net, "pytorch+recompute=selective", (sn_iteration){0})), e.selective);
    with_units += e.units > 0;
    sn_net_free(net);
  }
  fclose(in);
  assert_true(with_units >= 21);
}

static void all_strategies_are_planned_or_refused(void **state) {
  (void)state;
  static const char *const files[] = {"small_cnn",   "residual_cnn", "transformer", "gan",       "lstm",
                                      "accumulated", "resnet18",     "dense",       "scaled_cnn"};
  static const char *const strategies[] = {"pytorch+recompute=optimal",
                                           "pytorch+recompute=selective",
                                           "pytorch+offload",
                                           "pytorch+offload+recompute=units",
                                           "baseline",
                                           "superneurons",
                                           "liveness+recompute=memory",
                                           "liveness+recompute=cost",
                                           "liveness+recompute=optimal",
                                           "liveness+recompute=sqrt",
                                           "liveness+offload",
                                           "liveness+cache",
                                           "vdnn-all",
                                           "vdnn-conv",
                                           "caffe",
                                           "tensorflow",
                                           "mxnet",
                                           "singa-bfs"};
  for (size_t f = 0; f < sizeof files / sizeof files[0]; f++) {
    char path[256];
    snprintf(path, sizeof path, DATA "%s.rec.gz", files[f]);
    sn_net *net = load_net(path, 8);
    for (size_t i = 0; i < sizeof strategies / sizeof strategies[0]; i++) {
      sn_err err = SN_ERR_INIT;
      sn_device gpu = load_gpu("k40c");
      sn_strategy s = parse_strategy(strategies[i]);
      sn_options options = SN_OPTIONS_INIT;
      gpu.memory_bytes = f % 2 ? gpu.memory_bytes : UINT64_C(600) << 20;
      sn_run *run = sn_simulate(path, net, &gpu, &s, 1, &options, &err);
      if (err.code == SN_BUG) fail_msg("%s: %s: %s", files[f], strategies[i], err.text);
      sn_run_free(run);
    }
    sn_net_free(net);
  }
}

static void the_loop_is_the_recordings(void **state) {
  (void)state;
  const sn_iteration others[] = {{.accumulate = 2}, {.inference = true}, {.precision = SN_BF16}, {.freeze = "*"}};
  sn_net *net = load_net(DATA "small_cnn.rec.gz", 2);
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
    sn_err err = SN_ERR_INIT;
    sn_route *route = sn_route_new_for(net, SN_DIALECT_PYTORCH, SN_ORDER_ROUTE, others[i], NULL, &err);
    assert_null(route);
    assert_int_equal(err.code, SN_BAD_USAGE);
    assert_non_null(strstr(err.text, "a recording has the loop it was recorded with"));
  }
  sn_net_free(net);
}

static const sn_step_work *work_of(const sn_route *route, const char *called) {
  for (uint32_t s = 0; s < route->n_steps; s++)
    if (strcmp(route->work[s].called, called) == 0) return &route->work[s];
  fail_msg("no operation %s", called);
  return NULL;
}

/* Of the first batch norm, 64 x 112 x 112: forward in training reads its input twice, backward input and gradient. */
static void kernels_move_what_they_read_again(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_net *net = load_net(DATA "resnet18.rec.gz", 8);
  sn_route *route = sn_route_new_for(net, SN_DIALECT_PYTORCH, SN_ORDER_ROUTE, (sn_iteration){0}, NULL, &err);
  must(&err);
  const double image = 4.0 * 8 * 64 * 112 * 112, small = 1e4;
  const sn_step_work *norm = work_of(route, "cudnn_batch_norm"), *empty = work_of(route, "empty");
  assert_true(norm->bytes >= 3 * image && norm->bytes < 3 * image + small && norm->launches == 1);
  assert_true(empty->bytes == 0 && empty->launches == 0);
  for (uint32_t s = 0; s < route->n_steps; s++)
    if (strcmp(route->work[s].called, "cudnn_batch_norm_backward") == 0) norm = &route->work[s]; /* the last */
  assert_true(norm->bytes >= 5 * image && norm->bytes < 5 * image + small);
  sn_route_free(route);
  sn_net_free(net);
}

/* Of a product of matrices its shapes make the flops. What a recurrent kernel has among its operands, two states of as
 * many rows as columns, is none, though it would fit together. */
static void shapes_are_of_products(void **state) {
  (void)state;
  static const char *const files[] = {"lstm.rec.gz", "transformer.rec.gz", "resnet18.rec.gz"};
  uint32_t products = 0;
  for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
    sn_err err = SN_ERR_INIT;
    char path[200];
    snprintf(path, sizeof path, DATA "%s", files[f]);
    sn_net *net = load_net(path, 8);
    sn_route *route = sn_route_new_for(net, SN_DIALECT_PYTORCH, SN_ORDER_ROUTE, (sn_iteration){0}, NULL, &err);
    must(&err);
    for (uint32_t s = 0; s < route->n_steps; s++) {
      const sn_record_product *p = route->work[s].product;
      if (!p) continue;
      assert_null(strstr(route->work[s].called, "rnn"));
      double flops = 2 * sn_record_amount(p->rows, 8) * sn_record_amount(p->columns, 8) *
                     sn_record_amount(p->terms, 8) * sn_record_amount(p->count, 8);
      assert_true(flops == route->work[s].flops);
      products++;
    }
    sn_route_free(route);
    sn_net_free(net);
  }
  assert_true(products > 10);
}

/* Volta's tensor cores multiply float16 and no bfloat16, which takes the time of float32. */
static void float16_has_its_own_tensor_cores(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_net *net = load_net(DATA "accumulated.rec.gz", 1 << 18);
  sn_route *route = sn_route_new_for(net, SN_DIALECT_PYTORCH, SN_ORDER_ROUTE, (sn_iteration){0}, NULL, &err);
  must(&err);
  const sn_device volta = load_gpu("v100_32"), ampere = load_gpu("a100_80");
  sn_step_work product = *work_of(route, "addmm");
  assert_true(product.narrow && product.fp16);
  const int64_t volta_ns = sn__work_ns(&volta, &product), ampere_ns = sn__work_ns(&ampere, &product);
  product.fp16 = false;
  assert_true(sn__work_ns(&volta, &product) > 2 * volta_ns);
  assert_true(sn__work_ns(&ampere, &product) == ampere_ns);
  sn_route_free(route);
  sn_net_free(net);
}

static sn_result ask(sn_planner *planner, const char *strategy) {
  sn_err err = SN_ERR_INIT;
  sn_result result;
  sn_arena *arena = sn_arena_new();
  assert_non_null(arena);
  sn_planner_result(planner, parse_strategy(strategy), UINT64_C(1) << 40, arena, &result, &err);
  must(&err);
  sn_arena_free(arena); /* of it only numbers are looked at */
  return result;
}

static void expect_as_anew(sn_planner *like, const sn_net *net, const char *strategy) {
  sn_err err = SN_ERR_INIT;
  sn_device gpu = load_gpu("h200");
  sn_options options = SN_OPTIONS_INIT;
  sn_planner *turned = sn_planner_new_like(like, net, &err), *anew = sn_planner_new(net, &gpu, &options, &err);
  must(&err);
  const sn_result a = ask(turned, strategy), b = ask(anew, strategy);
  assert_true(a.recomputed_layers == b.recomputed_layers && a.recomputed_layers > 0);
  assert_true(a.peak_tensor_bytes == b.peak_tensor_bytes && a.iteration_ns == b.iteration_ns);
  assert_true(a.allocated_bytes == b.allocated_bytes && a.least_device_bytes == b.least_device_bytes);
  sn_planner_free(anew);
  sn_planner_free(turned);
}

/* What would have been recorded is found once for all batches, of the blocks that were asked for last. */
static void blocks_of_another_batch_are_those_made_anew(void **state) {
  (void)state;
  static const char *const strategies[] = {"pytorch+recompute=units", "pytorch-1.7+recompute=units",
                                           "pytorch+recompute=units:1", "pytorch+offload+recompute=units"};
  sn_err err = SN_ERR_INIT;
  sn_device gpu = load_gpu("h200");
  sn_options options = SN_OPTIONS_INIT;
  sn_net *first = load_net(DATA "dense.rec.gz", 2), *other = sn_net_rebatch(first, 5, &err);
  sn_planner *like = sn_planner_new(first, &gpu, &options, &err);
  must(&err);
  for (int round = 0; round < 2; round++)
    for (size_t i = 0; i < sizeof strategies / sizeof *strategies; i++) expect_as_anew(like, other, strategies[i]);
  sn_planner_free(like);
  sn_net_free(other);
  sn_net_free(first);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(live_bytes_are_pytorchs),
      cmocka_unit_test(all_strategies_are_planned_or_refused),
      cmocka_unit_test(the_loop_is_the_recordings),
      cmocka_unit_test(kernels_move_what_they_read_again),
      cmocka_unit_test(shapes_are_of_products),
      cmocka_unit_test(float16_has_its_own_tensor_cores),
      cmocka_unit_test(blocks_of_another_batch_are_those_made_anew),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
