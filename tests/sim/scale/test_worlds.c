/* How few GPUs do, and how several may share: against plans made one by one. */
#include "sim/parallel/shard.h"
#include "sim/scale/ways.h"
#include "sim/scale/worlds.h"
#include "sim/stages/stages.h"
#include "tests/support/pipeline.h"

#include <string.h>

#define NET "llm:8,2048,16,16,5632,8000"
enum { BATCH = 2, TOKENS = 128 };

static const sn_strategy strategies[] = {
    {.liveness = SN_LIVENESS_FULL, .dialect = SN_DIALECT_PYTORCH},
    {.liveness = SN_LIVENESS_FULL, .dialect = SN_DIALECT_PYTORCH, .recompute = SN_RECOMPUTE_UNITS}};

static sn_device device_with(uint64_t bytes) {
  sn_err err = SN_ERR_INIT;
  sn_device device;
  sn_device_load("h100_sxm", &device, &err);
  must(&err);
  device.memory_bytes = bytes;
  return device;
}

static sn_options options_of(void) {
  sn_err err = SN_ERR_INIT;
  sn_options options = SN_OPTIONS_INIT;
  sn_optimizer_parse("adamw", &options.iteration.optimizer, &err);
  must(&err);
  return options;
}

static sn_net *load(void) {
  sn_err err = SN_ERR_INIT;
  sn_net *net = sn_net_load(NET, BATCH, TOKENS, &err);
  must(&err);
  return net;
}

static sn_result plan(const sn_net *net, const sn_device *device, const char *mesh, sn_strategy strategy) {
  sn_err err = SN_ERR_INIT;
  sn_options options = options_of();
  sn_result result;
  sn_mesh_parse(mesh, &options.iteration.mesh, &err);
  sn_arena *arena = sn_arena_new();
  sn_planner *planner = sn_planner_new(net, device, &options, &err);
  sn_planner_result(planner, strategy, device->memory_bytes, arena, &result, &err);
  must(&err);
  sn_planner_free(planner);
  sn_arena_free(arena);
  return result;
}

static sn_worlds *find(const sn_net *net, const sn_device *device, const char *scheme, uint32_t most, bool lean) {
  sn_err err = SN_ERR_INIT;
  sn_options options = options_of();
  sn_mesh mesh;
  sn_mesh_parse_sought(scheme, &mesh, &err);
  const sn_worlds_wish wish = {.spec = NET,
                               .net = net,
                               .device = device,
                               .options = &options,
                               .scheme = &mesh,
                               .strategies = strategies,
                               .n_strategies = 1,
                               .lean = lean,
                               .most = most};
  sn_worlds *worlds = sn_worlds_find(&wish, &err);
  must(&err);
  return worlds;
}

/* With what fsdp=MESH needs it is the answer, and what is smaller does not fit. */
static void the_fewest_are_found(void **state) {
  (void)state;
  static const struct {
    const char *mesh;
    uint32_t world;
  } rows[] = {{"fsdp=2", 2}, {"fsdp=8", 8}, {"fsdp=24", 24}, {"fsdp=32", 32}};
  sn_net *net = load();
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    sn_device device = device_with(UINT64_C(80) << 30);
    device = device_with(plan(net, &device, rows[i].mesh, strategies[0]).least_device_bytes);
    sn_worlds *worlds = find(net, &device, "fsdp", 1024, false);
    assert_non_null(worlds->least);
    assert_int_equal(worlds->least->world, rows[i].world);
    assert_string_equal(worlds->least->mesh.text, rows[i].mesh);
    assert_non_null(worlds->below);
    assert_true(worlds->below->world < rows[i].world && !worlds->below->result->fits);
    assert_true(worlds->below->result->least_device_bytes > device.memory_bytes);
    assert_non_null(worlds->binding.layer);
    for (uint32_t w = 1; w < worlds->n_all; w++) assert_true(worlds->all[w - 1].world <= worlds->all[w].world);
    sn_worlds_free(worlds);
  }
  sn_net_free(net);
}

static void blocks_that_run_again_need_fewer(void **state) {
  (void)state;
  sn_net *net = load();
  sn_device device = device_with(UINT64_C(80) << 30);
  device = device_with(plan(net, &device, "fsdp=4", strategies[1]).least_device_bytes);
  sn_worlds *worlds = find(net, &device, "fsdp", 8, true);
  assert_non_null(worlds->leanest);
  assert_true(worlds->leanest->world <= 4);
  assert_true(!worlds->least || worlds->least->world > worlds->leanest->world);
  assert_int_equal(worlds->leanest->strategy.recompute, SN_RECOMPUTE_UNITS);
  sn_worlds_free(worlds);
  sn_net_free(net);
}

/* Of DDP no number helps; other axes keep their sizes, and what they do not divide is left out. */
static void worlds_that_cannot_be_are_none(void **state) {
  (void)state;
  sn_net *net = load();
  const sn_device small = device_with(UINT64_C(1) << 30), large = device_with(UINT64_C(80) << 30);
  sn_worlds *worlds = find(net, &small, "dp", 16, false);
  assert_null(worlds->least);
  assert_int_equal(worlds->below->world, 16);
  sn_worlds_free(worlds);
  worlds = find(net, &large, "dp=4,fsdp", 64, false);
  assert_string_equal(worlds->least->mesh.text, "dp=4");
  assert_int_equal(worlds->n_all, 1);
  assert_null(worlds->below);
  sn_worlds_free(worlds);
  sn_net_free(net);
}

static sn_ways *split(const sn_net *net, const sn_device *device, uint32_t gpus, sn_err *err) {
  sn_options options = options_of();
  const sn_ways_wish wish = {.spec = NET,
                             .image = TOKENS,
                             .net = net,
                             .device = device,
                             .options = &options,
                             .gpus = gpus,
                             .strategies = strategies,
                             .n_strategies = 2};
  return sn_ways_find(&wish, err);
}

/* Every way is a plan of its own, all GPUs work, and the order and the front are as they are told. */
static void ways_are_ranked(void **state) {
  (void)state;
  sn_net *net = load();
  sn_err err = SN_ERR_INIT;
  const sn_device device = device_with(UINT64_C(80) << 30);
  sn_ways *ways = split(net, &device, 8, &err);
  must(&err);
  assert_true(ways->meshes >= 5); /* dp=8 twice, and fsdp=2, 4, 8 */
  uint32_t bests = 0;
  for (uint32_t i = 0; i < ways->n_all; i++) {
    const sn_way *w = &ways->all[i];
    assert_true(w->fits && w->result && w->batch <= BATCH);
    assert_int_equal(sn_mesh_world(&w->mesh), 8);
    if (i > 0) assert_true(ways->all[i - 1].images_per_second >= w->images_per_second);
    bool beaten = false;
    for (uint32_t k = 0; k < i; k++) beaten = beaten || ways->all[k].device_bytes <= w->device_bytes;
    assert_true(w->on_front == !beaten);
    bests += w->best;
    if (w->batch != BATCH) continue;
    sn_result alone = plan(net, &device, w->mesh.text, w->strategy);
    assert_int_equal(alone.peak_device_bytes, w->device_bytes);
    assert_true(alone.images_per_second == w->images_per_second);
  }
  assert_int_equal(bests, 2 * ways->meshes);
  sn_ways_free(ways);
  sn_net_free(net);
}

/* Where an update has as many batches as stages; what they take together is what the pipeline takes that is asked for. */
static void pipelines_are_ways(void **state) {
  (void)state;
  sn_net *net = load();
  sn_err err = SN_ERR_INIT;
  const sn_device device = device_with(UINT64_C(80) << 30);
  sn_options options = options_of();
  options.iteration.accumulate = 4;
  const sn_ways_wish wish = {.spec = NET,
                             .image = TOKENS,
                             .net = net,
                             .device = &device,
                             .options = &options,
                             .gpus = 8,
                             .strategies = strategies,
                             .n_strategies = 2};
  sn_ways *ways = sn_ways_find(&wish, &err);
  uint32_t pipelines = 0;
  must(&err);
  for (uint32_t i = 0; i < ways->n_all; i++) {
    const sn_way *w = &ways->all[i];
    uint32_t stages = sn_mesh_size(&w->mesh, SN_MESH_PP);
    assert_true(stages <= 4 && sn_mesh_world(&w->mesh) == 8);
    pipelines += stages > 1;
    if (stages == 1 || w->batch != BATCH) continue;
    options.iteration.mesh = w->mesh;
    sn_run *run = sn_stages_simulate(NET, net, &device, &w->strategy, 1, &options, &err);
    must(&err);
    assert_int_equal(run->results[0].peak_device_bytes, w->device_bytes);
    assert_true(run->results[0].images_per_second == w->images_per_second);
    sn_run_free(run);
  }
  assert_true(pipelines >= 4);
  sn_ways_free(ways);
  sn_net_free(net);
}

/* What states alone rule out has no plan, and none would fit. */
static void hopeless_ways_are_not_planned(void **state) {
  (void)state;
  sn_net *net = load();
  sn_err err = SN_ERR_INIT;
  const sn_device device = device_with(UINT64_C(6) << 30);
  sn_ways *ways = split(net, &device, 8, &err);
  must(&err);
  for (uint32_t i = 0; i < ways->n_all; i++) {
    const sn_way *w = &ways->all[i];
    if (w->result) continue;
    sn_result alone = plan(net, &device, w->mesh.text, w->strategy);
    assert_true(!alone.fits && alone.least_device_bytes >= w->device_bytes);
  }
  sn_ways_free(ways);
  assert_null(split(net, &device, 12, &err)); /* does not fill nodes of 8 */
  assert_int_equal(err.code, SN_BAD_USAGE);
  sn_net_free(net);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_fewest_are_found),           cmocka_unit_test(blocks_that_run_again_need_fewer),
      cmocka_unit_test(worlds_that_cannot_be_are_none), cmocka_unit_test(ways_are_ranked),
      cmocka_unit_test(hopeless_ways_are_not_planned),  cmocka_unit_test(pipelines_are_ways),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
