/* Tests of what a sweep says of training: inference, frozen layers, losses, adapters. */
#include "models/zoo/zoo.h"
#include "sim/sweep/point.h"
#include "tests/sim/sweep/grids.h"

#include <stdio.h>

static void grid_that_runs(const char *axis_values[2], sn_grid **made) {
  sn_grid *grid = new_grid();
  add(grid, SN_AXIS_NETS, "tv_alexnet");
  add(grid, SN_AXIS_BATCHES, "8");
  if (axis_values[0]) add(grid, SN_AXIS_OPTIMIZERS, axis_values[0]);
  if (axis_values[1]) add(grid, SN_AXIS_STRATEGIES, axis_values[1]);
  grid->inference = true;
  *made = grid;
}

static void inference_is_of_all_points(void **unused) {
  (void)unused;
  sn_grid *grid;
  sn_point p[SN_GRID_STRATEGIES];
  grid_that_runs((const char *[2]){NULL, NULL}, &grid);
  grid->runtime = SN_RUNTIME_SUPERNEURONS;
  finish(grid);
  assert_int_equal(grid->n_points, 3); /* of the 13: baseline, liveness, liveness+cache */
  sn_point_compute(grid, 0, NULL, p);
  for (int i = 0; i < 3; i++) assert_true(p[i].fits && p[i].failure[0] == '\0');
  sn_grid_free(grid);
  grid_that_runs((const char *[2]){"sgd,adam", NULL}, &grid);
  refuse_finish(grid, SN_BAD_USAGE, "inference updates nothing");
  grid_that_runs((const char *[2]){NULL, "liveness,mxnet"}, &grid);
  refuse_finish(grid, SN_BAD_USAGE, "mxnet cannot be combined with inference");
}

static sn_grid *grid_that_freezes(const char *freeze, const char *strategies) {
  sn_grid *grid = new_grid();
  add(grid, SN_AXIS_NETS, "tv_alexnet");
  add(grid, SN_AXIS_BATCHES, "8");
  if (strategies) add(grid, SN_AXIS_STRATEGIES, strategies);
  grid->freeze = freeze;
  return grid;
}

static sn_point point_of(sn_grid *grid) {
  sn_point p[SN_GRID_STRATEGIES];
  finish(grid);
  assert_int_equal(grid->n_points, 1);
  sn_point_compute(grid, 0, NULL, p);
  assert_string_equal(p[0].failure, "");
  sn_grid_free(grid);
  return p[0];
}

static sn_grid *grid_with_margin(const char *margin) {
  sn_grid *grid = grid_that_freezes("", "pytorch");
  add(grid, SN_AXIS_GPUS, "rtx3090,k40c");
  add(grid, SN_AXIS_MEMORIES, "own,8GiB");
  grid->margin = margin;
  return grid;
}

/* A share of what each GPU has, or of the memory that it is given; the text keeps it. */
static void margin_is_kept_free_at_all_points(void **unused) {
  (void)unused;
  enum { GPU, MEMORY };
  sn_err err = SN_ERR_INIT;
  sn_grid *grid = grid_with_margin("25%"), *whole = grid_with_margin("");
  finish(grid);
  finish(whole);
  for (uint32_t group = 0; group < 4; group++) {
    uint32_t at[SN_AXES];
    sn_grid_at(grid, group, at);
    uint64_t all = sn_grid_device(whole, at).memory_bytes;
    assert_int_equal(sn_grid_device(grid, at).memory_bytes, all - all / 4);
  }
  const char *text = sn_grid_text(grid, &err);
  assert_non_null(strstr(text, "\"margin\":\"25%\""));
  assert_null(strstr(sn_grid_text(whole, &err), "margin"));
  sn_grid *again = sn_grid_parse("again", text, strlen(text), &err);
  assert_string_equal(again->margin, "25%");
  sn_grid_free(again);
  sn_grid_free(whole);
  sn_grid_free(grid);
  refuse_finish(grid_with_margin("8GiB"), SN_BAD_USAGE, "8.00 GiB of the 8.00 GiB on rtx3090 leave nothing");
  refuse_finish(grid_with_margin("100%"), SN_BAD_USAGE, "a share is from 0% to below 100%");
}

/* Of PyTorch's questions convolutions are in TF32 where all GPUs have it, as PyTorch starts. */
static void precision_is_pytorchs_where_none_is_named(void **unused) {
  (void)unused;
  static const struct {
    const char *gpus;
    sn_net_origin origin;
    sn_precision precision;
  } cases[] = {{"rtx3090", SN_NETS_OF_TORCHVISION, SN_TF32_CONV},
               {"rtx3090,a100_40", SN_NETS_OF_TORCHVISION, SN_TF32_CONV},
               {"rtx3090,k40c", SN_NETS_OF_TORCHVISION, SN_FP32},
               {"rtx3090", SN_NETS_OF_PAPERS, SN_FP32}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    sn_grid *grid = new_grid();
    grid->origin = cases[i].origin;
    add(grid, SN_AXIS_NETS, "tv_alexnet");
    add(grid, SN_AXIS_BATCHES, "8");
    add(grid, SN_AXIS_GPUS, cases[i].gpus);
    finish(grid);
    assert_int_equal(grid->n[SN_AXIS_PRECISIONS], 1);
    assert_string_equal(grid->conditions[SN_AXIS_PRECISIONS][0], sn_precision_name(cases[i].precision));
    sn_grid_free(grid);
  }
}

static void frozen_layers_are_so_at_all_points(void **unused) {
  (void)unused;
  sn_err err = SN_ERR_INIT;
  sn_strategy pytorch;
  sn_strategy_parse("pytorch", &pytorch, &err);
  sn_point all = point_of(grid_that_freezes("", "pytorch")),
           some = point_of(grid_that_freezes("features.*", "pytorch"));
  sn_net *net = sn_net_load("tv_alexnet", 8, 0, &err);
  sn_device device;
  sn_device_load("rtx4090", &device, &err);
  sn_options options = {.workspace = SN_WORKSPACE_DYNAMIC, .corun = SN_CORUN_INIT, .iteration.freeze = "features.*"};
  sn_run *run = sn_simulate("tv_alexnet", net, &device, &pytorch, 1, &options, &err);
  if (!run) fail_msg("%s", err.text);
  assert_true(run->results[0].peak_device_bytes == some.peak_device_bytes &&
              run->results[0].iteration_ns == some.iteration_ns);
  assert_true(some.peak_device_bytes < all.peak_device_bytes && some.iteration_ns < all.iteration_ns);
  sn_run_free(run);
  sn_net_free(net);
  sn_grid *grid = grid_that_freezes("features.*", NULL);
  finish(grid);
  assert_int_equal(grid->n[SN_AXIS_STRATEGIES], SN_STRATEGY_PYTORCH); /* the others train all */
  const char *text = sn_grid_text(grid, &err);
  assert_non_null(strstr(text, "\"freeze\":\"features.*\""));
  sn_grid *again = sn_grid_parse("again", text, strlen(text), &err);
  assert_string_equal(again->freeze, "features.*");
  sn_grid_free(again);
  sn_grid_free(grid);
  refuse_finish(grid_that_freezes("features.*", "pytorch,liveness"), SN_BAD_USAGE,
                "liveness cannot be combined with freeze");
  refuse_finish(grid_that_freezes("feature.*", NULL), SN_BAD_USAGE, "freeze: no layer of tv_alexnet");
  refuse_finish(grid_that_freezes("*", NULL), SN_BAD_USAGE, "freeze: all parameters of tv_alexnet are frozen");
  grid = grid_that_freezes("features.*", NULL);
  grid->inference = true;
  refuse_finish(grid, SN_BAD_USAGE, "freeze cannot be combined with inference");
}

static void networks_get_their_loss_and_adapters(void **unused) {
  (void)unused;
  sn_err err = SN_ERR_INIT;
  sn_grid *grid = new_grid();
  add(grid, SN_AXIS_NETS, "a.onnx,./b.onnx");
  assert_int_equal(sn_grid_specify_nets(grid, "mse", "4:*fc,*q", &err), SN_OK);
  assert_string_equal(grid->nets[0], "a.onnx:loss=mse+lora=4:*fc,*q");
  assert_string_equal(grid->nets[1], "./b.onnx:loss=mse+lora=4:*fc,*q");
  sn_grid_specify_nets(grid, NULL, "4", &err);
  assert_error(&err, SN_BAD_USAGE, "--lora: the network has adapters by its name already");
  sn_grid_free(grid);
  grid = new_grid();
  add(grid, SN_AXIS_NETS, "lenet");
  err = (sn_err)SN_ERR_INIT;
  sn_grid_specify_nets(grid, "mse", NULL, &err);
  assert_error(&err, SN_BAD_USAGE, "--loss is of an ONNX file");
  sn_grid_free(grid);
}

/* Their loss and adapters are no part of the path. */
static void onnx_files_are_noted_too(void **unused) {
  (void)unused;
  sn_err err = SN_ERR_INIT;
  char net[1024];
  snprintf(net, sizeof net, "%s/tests/fuzz/corpus/onnx/cnn.onnx", SNSIM_SOURCE_DIR);
  sn_grid *grid = new_grid();
  add(grid, SN_AXIS_NETS, net);
  add(grid, SN_AXIS_BATCHES, "4");
  sn_grid_specify_nets(grid, "mse", "2:*Gemm", &err);
  assert_int_equal(err.code, SN_OK);
  finish(grid);
  assert_int_equal(grid->n_files, 1);
  assert_string_equal(grid->files[0].path, net);
  sn_grid_free(grid);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(inference_is_of_all_points),
      cmocka_unit_test(margin_is_kept_free_at_all_points),
      cmocka_unit_test(precision_is_pytorchs_where_none_is_named),
      cmocka_unit_test(frozen_layers_are_so_at_all_points),
      cmocka_unit_test(networks_get_their_loss_and_adapters),
      cmocka_unit_test(onnx_files_are_noted_too),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
