/* Tests of the grid of a sweep: values and lists, numbering, defaults, its text, grid files, what is refused. */
#include "sim/sweep/point.h"
#include "tests/sim/sweep/grids.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void refuse(sn_axis axis, const char *list, const char *words) {
  sn_err err = SN_ERR_INIT;
  sn_grid *grid = new_grid();
  sn_grid_add_list(grid, axis, list, &err);
  assert_error(&err, SN_BAD_USAGE, words);
  sn_grid_free(grid);
}

/* ---- values ---- */

static void commas_of_a_family_do_not_part_values(void **unused) {
  (void)unused;
  sn_grid *grid = new_grid();
  add(grid, SN_AXIS_NETS,
      "alexnet,resnet:n1=3,n2=4,n3=6,vgg16,resnet:n4=2,./a=b.json,alexnet,llm:4,256,8,8,704,512,gpu=1,gpt2");
  static const char *const want[] = {"alexnet",    "resnet:n1=3,n2=4,n3=6",       "vgg16", "resnet:n4=2",
                                     "./a=b.json", "llm:4,256,8,8,704,512,gpu=1", "gpt2"};
  assert_int_equal(grid->n[SN_AXIS_NETS], 7);
  for (uint32_t i = 0; i < 7; i++) assert_string_equal(grid->nets[i], want[i]);
  sn_grid_free(grid);
  refuse(SN_AXIS_NETS, "alexnet,,vgg16", "nets: a value is empty");
  refuse(SN_AXIS_NETS, "", "nets: a value is empty");
}

static void batches_are_sorted_and_stand_once(void **unused) {
  (void)unused;
  sn_grid *grid = new_grid();
  add(grid, SN_AXIS_BATCHES, "100,16:50:16,7");
  add(grid, SN_AXIS_BATCHES, "8:70:x2,100,5:5:1");
  static const uint32_t want[] = {5, 7, 8, 16, 32, 48, 64, 100};
  assert_int_equal(grid->n[SN_AXIS_BATCHES], 8);
  assert_memory_equal(grid->batches, want, sizeof want);
  sn_grid_free(grid);
  refuse(SN_AXIS_BATCHES, "0", "batches: 0 is out of range");
  refuse(SN_AXIS_BATCHES, "-4", "\"-4\" is neither a number nor a range");
  refuse(SN_AXIS_BATCHES, "1:2", "\"1:2\" is neither a number nor a range");
  refuse(SN_AXIS_BATCHES, "1:2:3:4", "neither a number nor a range");
  refuse(SN_AXIS_BATCHES, "9:3:1", "batches: \"9:3:1\": HIGH: 3 is out of range");
  refuse(SN_AXIS_BATCHES, "1:9:0", "batches: \"1:9:0\": STEP: 0 is out of range");
  refuse(SN_AXIS_BATCHES, "1:9:x1", "batches: \"1:9:x1\": FACTOR: 1 is out of range");
  refuse(SN_AXIS_BATCHES, "1:9:x", "is not a whole number");
  refuse(SN_AXIS_BATCHES, "1:9999:1", "batches: more than 4096 values");
  refuse(SN_AXIS_BATCHES, "99999999999999999999999999999999999999999999999999999999999999999999:1:1", "neither");
}

static void choices_are_checked(void **unused) {
  (void)unused;
  refuse(SN_AXIS_WORKSPACES, "dynamic,some", "workspaces: \"some\" is none of: none, dynamic, max");
  refuse(SN_AXIS_EXTERNALS, "cloud", "externals: \"cloud\" is none of: host, peer, remote, disk");
  refuse(SN_AXIS_ALLOCATORS, "malloc", "allocators: \"malloc\" is none of: pool, cuda, pytorch, pytorch-expandable");
  refuse(SN_AXIS_OPTIMIZERS, "sgd,lyon", "optimizers: \"lyon\" is none of: momentum, sgd, adam, adamw");
  refuse(SN_AXIS_PRECISIONS, "fp32,fp8",
         "precisions: \"fp8\" is none of: fp32, tf32, tf32-conv, bf16, fp16, amp-bf16, amp-fp16");
  refuse(SN_AXIS_ACCUMULATES, "2,0", "accumulates: 0 is out of range");
  refuse(SN_AXIS_LINKS, "both", "links: \"both\" is none of: own, shared");
  refuse(SN_AXIS_IMAGES, "224,x", "images: \"x\" is neither a number nor \"own\"");
  refuse(SN_AXIS_IMAGES, "0", "images: 0 is out of range");
  refuse(SN_AXIS_MEMORIES, "all", "memories: \"all\"");
  refuse(SN_AXIS_MEMORIES, "8", "memories: \"8\" has no unit");
  refuse(SN_AXIS_POOLS, "3", "pools: \"3\" has no unit");
  refuse(SN_AXIS_STRATEGIES, "liveness+magic", "strategy");
  sn_grid *grid = new_grid();
  add(grid, SN_AXIS_WORKSPACES, "max,none,max");
  add(grid, SN_AXIS_POOLS, "3GiB,all,3072MiB");
  add(grid, SN_AXIS_STRATEGIES, "superneurons,baseline,liveness+cache+recompute=cost");
  assert_int_equal(grid->n[SN_AXIS_WORKSPACES], 2);
  assert_string_equal(grid->conditions[SN_AXIS_WORKSPACES][0], "max");
  assert_int_equal(grid->n[SN_AXIS_POOLS], 2);
  assert_string_equal(grid->conditions[SN_AXIS_POOLS][0], "3221225472B");
  assert_string_equal(grid->conditions[SN_AXIS_POOLS][1], "all");
  assert_int_equal(grid->n[SN_AXIS_STRATEGIES], 2);
  sn_grid_free(grid);
}

/* ---- points ---- */

static void groups_number_every_combination_once(void **unused) {
  (void)unused;
  sn_grid *grid = new_grid();
  add(grid, SN_AXIS_NETS, "lenet,alexnet");
  add(grid, SN_AXIS_GPUS, "k40c,v100_32,t4");
  add(grid, SN_AXIS_BATCHES, "1,2");
  add(grid, SN_AXIS_POOLS, "all,1GiB");
  add(grid, SN_AXIS_STRATEGIES, "baseline,liveness,superneurons");
  finish(grid);
  assert_int_equal(grid->n_groups, 24);
  assert_int_equal(grid->n_points, 72);
  uint32_t group = 0, at[SN_AXES];
  for (uint32_t net = 0; net < 2; net++)
    for (uint32_t gpu = 0; gpu < 3; gpu++)
      for (uint32_t pool = 0; pool < 2; pool++)
        for (uint32_t batch = 0; batch < 2; batch++) {
          sn_grid_at(grid, group++, at);
          assert_true(at[SN_AXIS_NETS] == net && at[SN_AXIS_GPUS] == gpu && at[SN_AXIS_POOLS] == pool &&
                      at[SN_AXIS_BATCHES] == batch && at[SN_AXIS_WORKSPACES] == 0 && at[SN_AXIS_STRATEGIES] == 0);
        }
  sn_grid_free(grid);
}

static void what_is_not_given_has_a_default(void **unused) {
  (void)unused;
  sn_grid *grid = new_grid();
  add(grid, SN_AXIS_NETS, "lenet");
  add(grid, SN_AXIS_BATCHES, "8");
  finish(grid);
  assert_int_equal(grid->n_points, 4); /* PyTorch's: none, units, offload, both */
  assert_string_equal(grid->gpus[0], "rtx4090");
  assert_string_equal(grid->devices[0].name, "rtx4090");
  assert_string_equal(grid->conditions[SN_AXIS_WORKSPACES][0], "dynamic");
  sn_grid_free(grid);
}

static void strategies_are_of_the_runtime(void **unused) {
  static const struct {
    sn_runtime runtime;
    uint32_t points;
  } cases[] = {{SN_RUNTIME_PYTORCH, 4}, {SN_RUNTIME_SUPERNEURONS, SN_STRATEGY_DEFAULTS}};
  (void)unused;
  for (int i = 0; i < 2; i++) {
    sn_grid *grid = new_grid();
    grid->runtime = cases[i].runtime;
    add(grid, SN_AXIS_NETS, "lenet");
    add(grid, SN_AXIS_BATCHES, "8");
    finish(grid);
    assert_int_equal(grid->n_points, cases[i].points);
    for (uint32_t s = 0; s < cases[i].points; s++)
      assert_int_equal(sn_runtime_of(grid->strategies[s]), cases[i].runtime);
    sn_grid_free(grid);
  }
}

/* A group is simulated with the image, the memory and the link that its number stands for. */
static void image_memory_and_link_are_axes(void **unused) {
  (void)unused;
  sn_grid *grid = new_grid();
  add(grid, SN_AXIS_NETS, "resnet50");
  add(grid, SN_AXIS_BATCHES, "100");
  add(grid, SN_AXIS_WORKSPACES, "none");
  add(grid, SN_AXIS_POOLS, "1GiB"); /* copies go both ways at once */
  add(grid, SN_AXIS_IMAGES, "own,64");
  add(grid, SN_AXIS_MEMORIES, "own,1GiB");
  add(grid, SN_AXIS_LINKS, "own,shared");
  add(grid, SN_AXIS_STRATEGIES, "liveness+cache");
  finish(grid);
  assert_int_equal(grid->n_points, 8);
  sn_point p[8];
  for (uint32_t i = 0; i < 8; i++) sn_point_compute(grid, i, NULL, &p[i]); /* image, memory, link: 4, 2, 1 */
  assert_true(p[4].fits && 2 * p[4].iteration_ns < p[0].iteration_ns);
  assert_true(p[0].fits && !p[2].fits);
  assert_true(p[0].iteration_ns < p[1].iteration_ns);
  uint32_t at[SN_AXES];
  sn_grid_at(grid, 2, at);
  assert_true(sn_grid_device(grid, at).memory_bytes == UINT64_C(1) << 30 && !sn_grid_device(grid, at).memory_nominal);
  sn_grid_at(grid, 1, at);
  assert_true(sn_grid_device(grid, at).memory_bytes == grid->devices[0].memory_bytes);
  sn_grid_free(grid);
}

/* Optimizers and accumulated batches are axes too; what is only run is so at every point. */
static void iterations_are_axes(void **unused) {
  (void)unused;
  sn_grid *grid = new_grid();
  add(grid, SN_AXIS_NETS, "tv_alexnet");
  add(grid, SN_AXIS_BATCHES, "8");
  add(grid, SN_AXIS_OPTIMIZERS, "sgd,adam");
  add(grid, SN_AXIS_ACCUMULATES, "1,4,1");
  add(grid, SN_AXIS_STRATEGIES, "pytorch,singa-bfs");
  finish(grid);
  assert_int_equal(grid->n_points, 8);
  uint32_t at[SN_AXES];
  sn_point p[4][2];
  for (uint32_t i = 0; i < 4; i++) sn_point_compute(grid, i, NULL, p[i]); /* optimizer 2, batches 1 */
  sn_grid_at(grid, 3, at);
  assert_int_equal(sn_grid_options(grid, at).iteration.optimizer, SN_OPTIMIZER_ADAM);
  assert_int_equal(sn_grid_options(grid, at).iteration.accumulate, 4);
  assert_true(p[0][0].peak_device_bytes < p[1][0].peak_device_bytes); /* all gradients beside those being made */
  assert_true(p[0][0].peak_device_bytes < p[2][0].peak_device_bytes); /* moments */
  assert_true(3 * p[2][0].iteration_ns < p[3][0].iteration_ns && p[3][0].iteration_ns < 4 * p[2][0].iteration_ns);
  assert_true(p[0][1].failure[0] == '\0' && strstr(p[1][1].failure, "no gradients are accumulated"));
  sn_grid_free(grid);
}

static sn_grid *grid_of_precisions(const char *precisions, const char *gpus, const char *strategies) {
  sn_grid *grid = new_grid();
  add(grid, SN_AXIS_NETS, "tv_alexnet");
  add(grid, SN_AXIS_BATCHES, "8");
  add(grid, SN_AXIS_GPUS, gpus);
  add(grid, SN_AXIS_PRECISIONS, precisions);
  if (strategies) add(grid, SN_AXIS_STRATEGIES, strategies);
  return grid;
}

/* Where a GPU or a strategy lacks a precision, only those points fail. */
static void precisions_are_an_axis(void **unused) {
  (void)unused;
  sn_grid *grid = grid_of_precisions("fp32,bf16,fp32", "a100_40,k40c", "pytorch,caffe");
  finish(grid);
  assert_int_equal(grid->n_points, 8);
  sn_point p[4][2];
  for (uint32_t i = 0; i < 4; i++) sn_point_compute(grid, i, NULL, p[i]); /* GPU 2, precisions 1 */
  assert_true(p[1][0].peak_tensor_bytes < p[0][0].peak_tensor_bytes && p[1][0].failure[0] == '\0');
  assert_true(p[0][0].largest_load_bytes > 0 && p[0][0].largest_load_bytes <= p[0][0].pool_bytes);
  assert_true(p[0][1].failure[0] == '\0' && strstr(p[1][1].failure, "published systems trains in four bytes"));
  assert_true(p[2][0].failure[0] == '\0' && p[2][1].failure[0] == '\0');
  assert_true(p[3][0].failure[0] == '\0'); /* emulated */
  assert_string_equal(p[3][1].failure, p[1][1].failure);
  sn_grid_free(grid);
}

static void assert_no_grid(sn_grid *grid, const char *why) {
  sn_err err = SN_ERR_INIT;
  assert_int_equal(sn_grid_finish(grid, &err), SN_BAD_USAGE);
  assert_non_null(strstr(err.text, why));
  sn_grid_free(grid);
}

/* One that no GPU or no strategy has is an error; strategies that nobody names are those that have all of them. */
static void precisions_must_be_of_something(void **unused) {
  (void)unused;
  assert_no_grid(grid_of_precisions("fp32,tf32", "k40c,v100_16", NULL), "tf32: k40c has no tensor cores");
  assert_no_grid(grid_of_precisions("bf16", "a100_40", "mxnet,singa-bfs"), "no strategy can be combined with bf16");
  sn_grid *grid = grid_of_precisions("tf32", "a100_40", NULL);
  grid->runtime = SN_RUNTIME_SUPERNEURONS;
  finish(grid);
  assert_int_equal(grid->n[SN_AXIS_STRATEGIES], SN_STRATEGY_DEFAULTS);
  sn_grid_free(grid);
  grid = grid_of_precisions("fp32,bf16", "a100_40", NULL);
  grid->runtime = SN_RUNTIME_SUPERNEURONS;
  finish(grid);
  assert_int_equal(grid->n[SN_AXIS_STRATEGIES], SN_STRATEGY_DEFAULTS);
  sn_grid_free(grid);
  grid = grid_of_precisions("fp32,amp-bf16", "a100_40", NULL);
  finish(grid);
  assert_int_equal(grid->n[SN_AXIS_STRATEGIES], SN_STRATEGY_PYTORCH);
  sn_grid_free(grid);
}

/* One number of a mesh may be a range; commas are the mesh's own; one GPU has a word. */
static void meshes_are_an_axis(void **unused) {
  (void)unused;
  sn_err err = SN_ERR_INIT;
  uint32_t at[SN_AXES];
  static const char *const meshes[] = {"dp=1", "fsdp=2", "fsdp=4", "tp=2,fsdp=3", "tp=2,fsdp=5", "pp=2"};
  sn_grid *grid = new_grid();
  add(grid, SN_AXIS_NETS, "llama3:8b");
  add(grid, SN_AXIS_BATCHES, "1");
  add(grid, SN_AXIS_PARALLELS, "fsdp=1:4:x2");
  add(grid, SN_AXIS_PARALLELS, "dp=1");
  add(grid, SN_AXIS_PARALLELS, "fsdp=3:5:2,tp=2");
  add(grid, SN_AXIS_PARALLELS, "pp=2,schedule=1f1b");
  grid->cluster = "h100x8";
  finish(grid);
  assert_int_equal(grid->n[SN_AXIS_PARALLELS], 6);
  for (uint32_t i = 0; i < 6; i++) assert_string_equal(grid->conditions[SN_AXIS_PARALLELS][i], meshes[i]);
  assert_string_equal(grid->gpus[0], "h100_sxm");
  sn_grid_at(grid, 3, at);
  assert_string_equal(sn_grid_options(grid, at).iteration.mesh.text, "tp=2,fsdp=3");
  assert_string_equal(sn_grid_options(grid, at).cluster.name, "h100x8");
  sn_grid_at(grid, 0, at);
  assert_string_equal(sn_grid_options(grid, at).cluster.name, "");
  const char *text = sn_grid_text(grid, &err);
  sn_grid *again = sn_grid_parse("again", text, strlen(text), &err);
  if (!again) fail_msg("%s", err.text);
  finish(again);
  assert_string_equal(sn_grid_text(again, &err), text);
  sn_grid_free(again);
  sn_grid_free(grid);
  refuse(SN_AXIS_PARALLELS, "fsdp=4:2:1", "parallels: \"4:2:1\": HIGH: 2 is out of range");
  refuse(SN_AXIS_PARALLELS, "fsdp=1:200:1", "parallels: more than 64 values");
  refuse(SN_AXIS_PARALLELS, "dp=1:4:x2,fsdp=1:4:x2", "parallels: fsdp=\"1:4:x2\"");
}

/* Lengths of sequences stand in the place of the images' sizes, for networks that read tokens. */
static void sequences_are_an_axis(void **unused) {
  (void)unused;
  sn_err err = SN_ERR_INIT;
  static const char
      text[] = "{\"snsim_grid\": 1, \"nets\": [\"gpt2\"], \"batches\": [2], \"strategies\": [\"pytorch\"],\n"
               " \"sequences\": [64, \"own\"]}",
      both[] = "{\"snsim_grid\": 1, \"nets\": [\"gpt2\"], \"batches\": [2],\n \"image\": 3, \"sequences\": [4]}";
  sn_grid *grid = sn_grid_parse("grid.json", text, strlen(text), &err);
  if (!grid) fail_msg("%s", err.text);
  finish(grid);
  assert_true(grid->sequences && grid->n_points == 2 && grid->images[0] == 64 && grid->images[1] == 0);
  assert_non_null(strstr(sn_grid_text(grid, &err), "\"sequences\":[64,\"own\"]"));
  sn_point short_one, own;
  sn_point_compute(grid, 0, NULL, &short_one);
  sn_point_compute(grid, 1, NULL, &own);
  assert_true(short_one.peak_tensor_bytes > 0 && short_one.peak_tensor_bytes < own.peak_tensor_bytes);
  sn_grid_free(grid);
  assert_null(sn_grid_parse("grid.json", both, strlen(both), &err));
  assert_string_equal(err.text, "grid.json:2: \"sequences\" and \"images\": networks read one or the other; keep one");
}

static void sequences_are_of_tokens(void **unused) {
  (void)unused;
  for (int tokens = 0; tokens < 2; tokens++) {
    sn_grid *grid = new_grid();
    grid->sequences = !tokens;
    add(grid, SN_AXIS_NETS, tokens ? "gpt2" : "lenet");
    add(grid, SN_AXIS_BATCHES, "1");
    add(grid, SN_AXIS_IMAGES, "64");
    assert_no_grid(grid, tokens ? "images: gpt2 reads sequences" : "sequences: lenet reads images");
  }
}

static long mib_thousandths(uint64_t bytes) {
  return lround((double)bytes / 1048576.0 * 1000);
}

static void points_are_what_the_simulator_says(void **unused) {
  (void)unused;
  sn_err err = SN_ERR_INIT;
  sn_grid *grid = new_grid();
  add(grid, SN_AXIS_NETS, "alexnet");
  add(grid, SN_AXIS_NETS, "llama:70b");
  add(grid, SN_AXIS_BATCHES, "200,16777216");
  add(grid, SN_AXIS_WORKSPACES, "none");
  add(grid, SN_AXIS_STRATEGIES, "baseline,liveness");
  finish(grid);
  sn_point points[SN_GRID_STRATEGIES];
  sn_point_compute(grid, 0, NULL, points);
  assert_true(points[0].fits && points[1].fits && points[0].failure[0] == '\0');
  assert_int_equal(mib_thousandths(points[0].peak_tensor_bytes), 2189437); /* [SN] 4.1.1 */
  assert_int_equal(mib_thousandths(points[1].peak_tensor_bytes), 1489355);
  assert_true(points[0].images_per_second > 0 && points[0].iteration_ns > 0);
  sn_point_compute(grid, 3, NULL, points); /* more multiply-adds than are counted */
  for (int i = 0; i < 2; i++) {
    assert_non_null(strstr(points[i].failure, "llama:70b"));
    assert_true(!points[i].fits && points[i].peak_device_bytes == 0);
  }
  assert_int_equal(err.code, SN_OK);
  sn_grid_free(grid);
}

static void too_little_and_too_much(void **unused) {
  (void)unused;
  sn_grid *grid = new_grid();
  add(grid, SN_AXIS_BATCHES, "1");
  refuse_finish(grid, SN_BAD_USAGE, "a sweep needs nets");
  grid = new_grid();
  add(grid, SN_AXIS_NETS, "lenet");
  refuse_finish(grid, SN_BAD_USAGE, "a sweep needs batches");
  grid = new_grid();
  add(grid, SN_AXIS_NETS, "lenet,alexnett");
  add(grid, SN_AXIS_BATCHES, "1");
  refuse_finish(grid, SN_BAD_USAGE, "did you mean \"alexnet\"");
  grid = new_grid();
  add(grid, SN_AXIS_NETS, "lenet");
  add(grid, SN_AXIS_GPUS, "k41");
  add(grid, SN_AXIS_BATCHES, "1");
  refuse_finish(grid, SN_BAD_USAGE, "unknown GPU \"k41\"");
  grid = new_grid();
  add(grid, SN_AXIS_NETS, "lenet,alexnet,vgg16,vgg19");
  grid->runtime = SN_RUNTIME_SUPERNEURONS;
  add(grid, SN_AXIS_GPUS, "k40c,t4,p40,l40,h200,m40,a6000");
  add(grid, SN_AXIS_BATCHES, "1:4000:1");
  refuse_finish(grid, SN_BAD_USAGE, "more than 1000000 points");
}

/* ---- text ---- */

static void text_gives_the_same_grid(void **unused) {
  (void)unused;
  sn_err err = SN_ERR_INIT;
  sn_grid *grid = new_grid();
  add(grid, SN_AXIS_NETS, "lenet,resnet:n1=1,n2=2,models/examples/small_resnet.json");
  add(grid, SN_AXIS_GPUS, "t4,k40c");
  add(grid, SN_AXIS_BATCHES, "4:16:x2");
  add(grid, SN_AXIS_POOLS, "1.5GiB,all");
  add(grid, SN_AXIS_EXTERNALS, "remote,host");
  add(grid, SN_AXIS_STRATEGIES, "superneurons,baseline");
  add(grid, SN_AXIS_IMAGES, "own,64,56");
  add(grid, SN_AXIS_MEMORIES, "own,8GiB,1GiB");
  add(grid, SN_AXIS_LINKS, "shared,own");
  finish(grid);
  const char *text = sn_grid_text(grid, &err);
  assert_non_null(text);
  sn_grid *again = sn_grid_parse("text", text, strlen(text), &err);
  if (!again) fail_msg("%s", err.text);
  finish(again);
  assert_string_equal(sn_grid_text(again, &err), text);
  assert_true(sn_grid_key(text) == sn_grid_key(sn_grid_text(again, &err)));
  assert_memory_equal(again->n, grid->n, sizeof grid->n);
  assert_string_equal(again->conditions[SN_AXIS_POOLS][0], "1610612736B");
  assert_int_equal(again->n_files, 1);
  assert_true(again->images[0] == 0 && again->images[2] == 56 && again->memories[1] == UINT64_C(8) << 30);
  assert_string_equal(again->conditions[SN_AXIS_LINKS][0], "shared");
  assert_string_equal(again->conditions[SN_AXIS_LINKS][1], "own");
  sn_grid_free(again);
  sn_grid_free(grid);
}

static void other_points_have_another_text(void **unused) {
  (void)unused;
  sn_err err = SN_ERR_INIT;
  sn_grid *a = new_grid(), *b = new_grid();
  add(a, SN_AXIS_NETS, "lenet");
  add(b, SN_AXIS_NETS, "lenet");
  add(a, SN_AXIS_BATCHES, "1,2,3");
  add(b, SN_AXIS_BATCHES, "3,1:2:1");
  finish(a);
  finish(b);
  assert_string_equal(sn_grid_text(a, &err), sn_grid_text(b, &err));
  b->images[0] = 32;
  assert_string_not_equal(sn_grid_text(a, &err), sn_grid_text(b, &err));
  assert_true(sn_grid_key(sn_grid_text(a, &err)) != sn_grid_key(sn_grid_text(b, &err)));
  sn_grid_free(a);
  sn_grid_free(b);
}

static void write_file(const char *path, const char *text) {
  FILE *out = fopen(path, "w");
  assert_non_null(out);
  fputs(text, out);
  assert_int_equal(fclose(out), 0);
}

static void changed_files_and_other_versions_are_refused(void **unused) {
  (void)unused;
  sn_err err = SN_ERR_INIT;
  static const char gpu[] = "{\"snsim_gpu\":1,\"name\":\"mine\",\"architecture\":\"kepler\",\"memory_mib\":%d,"
                            "\"context_gib\":0.3,\"fp32_tflops\":5,\"memory_gb_per_s\":288,\"host_gb_per_s\":8,"
                            "\"peer_gb_per_s\":10,\"remote_gb_per_s\":6}";
  char folder[] = "/tmp/test_grid.XXXXXX", path[64], text[512], list[80];
  assert_non_null(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/gpu.json", folder);
  snprintf(text, sizeof text, gpu, 1000);
  write_file(path, text);
  snprintf(list, sizeof list, "k40c,%s", path);
  sn_grid *grid = new_grid();
  add(grid, SN_AXIS_NETS, "lenet");
  add(grid, SN_AXIS_BATCHES, "1");
  add(grid, SN_AXIS_GPUS, list);
  finish(grid);
  const char *stored = sn_grid_text(grid, &err);
  sn_grid *same = sn_grid_parse("stored", stored, strlen(stored), &err);
  finish(same);
  sn_grid_free(same);
  snprintf(text, sizeof text, gpu, 2000);
  write_file(path, text);
  refuse_finish(sn_grid_parse("stored", stored, strlen(stored), &err), SN_BAD_INPUT,
                "has changed since the sweep began");
  unlink(path);
  rmdir(folder);
  refuse_finish(sn_grid_parse("stored", stored, strlen(stored), &err), SN_BAD_FILE, "No such file");
  sn_grid_free(grid);
  static const char old[] = "{\"snsim_grid\":1,\"version\":\"0.0.1\",\"nets\":[\"lenet\"],\"batches\":[1]}";
  refuse_finish(sn_grid_parse("stored", old, strlen(old), &err), SN_BAD_INPUT, "begun by snsim 0.0.1");
}

/* ---- files ---- */

static void files_may_say_all_of_it(void **unused) {
  (void)unused;
  sn_err err = SN_ERR_INIT;
  static const char text[] = "{\"snsim_grid\": 1,\n \"nets\": [\"lenet\", \"resnet:n1=1,n2=1\"],\n"
                             " \"batches\": [4, \"8:16:x2\", 2],\n \"gpus\": [\"t4\"],\n \"workspaces\": [\"none\"],\n"
                             " \"externals\": [\"peer\"], \"allocators\": [\"cuda\"], \"pools\": [\"2GiB\"],\n"
                             " \"strategies\": [\"liveness\"], \"image\": 64, \"shared_link\": true,\n"
                             " \"optimizers\": [\"adam\"], \"accumulates\": [8, \"2\"], \"precisions\": [\"fp32\"]}";
  sn_grid *grid = sn_grid_parse("grid.json", text, strlen(text), &err);
  if (!grid) fail_msg("%s", err.text);
  finish(grid);
  assert_int_equal(grid->n_points, 16);
  assert_string_equal(grid->conditions[SN_AXIS_OPTIMIZERS][0], "adam");
  assert_string_equal(grid->conditions[SN_AXIS_ACCUMULATES][0], "8");
  assert_string_equal(grid->conditions[SN_AXIS_ACCUMULATES][1], "2");
  assert_false(grid->inference);
  assert_int_equal(grid->batches[0], 2);
  assert_true(grid->n[SN_AXIS_IMAGES] == 1 && grid->images[0] == 64); /* as before these were axes */
  assert_int_equal(grid->n[SN_AXIS_LINKS], 1);
  assert_string_equal(grid->conditions[SN_AXIS_LINKS][0], "shared");
  assert_string_equal(grid->conditions[SN_AXIS_EXTERNALS][0], "peer");
  assert_string_equal(grid->conditions[SN_AXIS_POOLS][0], "2147483648B");
  sn_grid_free(grid);
}

static void refuse_file(const char *text, const char *words) {
  sn_err err = SN_ERR_INIT;
  assert_null(sn_grid_parse("g.json", text, strlen(text), &err));
  assert_error(&err, SN_BAD_INPUT, words);
}

static void faults_of_files_have_a_line(void **unused) {
  (void)unused;
  refuse_file("[1]", "g.json:1: a grid is a JSON object");
  refuse_file("{\n\"nets\": [\"lenet\"]}", "\"snsim_grid\"");
  refuse_file("{\"snsim_grid\": 2}", "g.json:1: ");
  refuse_file("{\"snsim_grid\": 1,\n\"net\": [\"lenet\"]}", "g.json:2: ");
  refuse_file("{\"snsim_grid\": 1,\n\"nets\": [\"lenet\"]}", "\"batches\" is missing");
  refuse_file("{\"snsim_grid\": 1,\n\"batches\": [1]}", "\"nets\" is missing");
  refuse_file("{\"snsim_grid\": 1,\n\"nets\": \"lenet\"}", "g.json:2: \"nets\"");
  refuse_file("{\"snsim_grid\": 1,\n\"nets\": []}", "g.json:2: \"nets\" is empty");
  refuse_file("{\"snsim_grid\": 1,\n\"nets\": [\"lenet\",\n3]}", "g.json:3: a value of \"nets\" must be a text");
  refuse_file("{\"snsim_grid\": 1,\n\"nets\": [\"lenet\"],\n\"batches\": [1,\n true]}",
              "g.json:4: a value of \"batches\" must be a text in quotes or a number");
  refuse_file("{\"snsim_grid\": 1,\n\"nets\": [\"lenet\"],\n\"batches\": [1,\n 2.5]}", "g.json:4: batches: \"2.5\"");
  refuse_file("{\"snsim_grid\": 1,\n\"pools\": [\"3\"]}", "g.json:2: pools: \"3\" has no unit");
  refuse_file("{\"snsim_grid\": 1,\n\"strategies\": [\"bestline\"]}", "g.json:2: unknown strategy");
  refuse_file("{\"snsim_grid\": 1,\n\"files\": [{\"path\": \"a\", \"digest\": \"12\"}]}", "g.json:2: \"digest\"");
  refuse_file("{\"snsim_grid\": 1,\n\"image\": 0}", "g.json:2: ");
  refuse_file("{\"snsim_grid\": 1,\n\"images\": [\"big\"]}", "g.json:2: images: \"big\" is neither a number");
  refuse_file("{\"snsim_grid\": 1, \"images\": [64],\n\"image\": 64}",
              "g.json:2: \"image\" is one value of \"images\"");
  refuse_file("{\"snsim_grid\": 1, \"links\": [\"own\"],\n\"shared_link\": true}",
              "g.json:2: \"shared_link\" is one value");
}

int main(void) {
  if (chdir(SNSIM_SOURCE_DIR) != 0) return 2;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(commas_of_a_family_do_not_part_values),
      cmocka_unit_test(batches_are_sorted_and_stand_once),
      cmocka_unit_test(choices_are_checked),
      cmocka_unit_test(groups_number_every_combination_once),
      cmocka_unit_test(what_is_not_given_has_a_default),
      cmocka_unit_test(strategies_are_of_the_runtime),
      cmocka_unit_test(image_memory_and_link_are_axes),
      cmocka_unit_test(iterations_are_axes),
      cmocka_unit_test(precisions_are_an_axis),
      cmocka_unit_test(precisions_must_be_of_something),
      cmocka_unit_test(meshes_are_an_axis),
      cmocka_unit_test(sequences_are_an_axis),
      cmocka_unit_test(sequences_are_of_tokens),
      cmocka_unit_test(points_are_what_the_simulator_says),
      cmocka_unit_test(too_little_and_too_much),
      cmocka_unit_test(text_gives_the_same_grid),
      cmocka_unit_test(other_points_have_another_text),
      cmocka_unit_test(changed_files_and_other_versions_are_refused),
      cmocka_unit_test(files_may_say_all_of_it),
      cmocka_unit_test(faults_of_files_have_a_line),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
