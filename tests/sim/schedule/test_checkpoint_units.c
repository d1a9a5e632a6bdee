/* Units (sim/schedule/units.h): where blocks of well-known networks end. */
#include "models/build/build.h"

#include "sim/graph/route.h"
#include "sim/schedule/units.h"
#include "tests/support/pipeline.h"

#include <string.h>

static bool ends_unit(const sn_route *route, const sn_units *units, const char *layer) {
  for (uint32_t u = 0; u < units->count; u++)
    if (strcmp(route->layers[route->steps[units->first[u + 1] - 1].layer].name, layer) == 0) return true;
  return false;
}

/* Of all that is cut. `ends`: units end with these layers; `within`: none ends with these; each ends with NULL. */
static void check(const char *spec, const char *const *ends, const char *const *within) {
  sn_err err = SN_ERR_INIT;
  sn_net *net = load_net(spec, 1);
  sn_route *route = sn_route_new(net, SN_DIALECT_PYTORCH, SN_ORDER_ROUTE, &err);
  must(&err);
  sn_units units;
  sn_units_find_kind(route, SN_UNITS_CUT, &units, &err);
  must(&err);
  for (; *ends; ends++)
    if (!ends_unit(route, &units, *ends)) fail_msg("%s: no unit ends with %s", spec, *ends);
  for (; *within; within++) {
    find_layer(net, *within);
    if (ends_unit(route, &units, *within)) fail_msg("%s: a unit ends with %s", spec, *within);
  }
  sn_units_clear(&units);
  sn_route_free(route);
  sn_net_free(net);
}

#define LAYERS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void blocks_and_stages(void **state) {
  (void)state;
  check("resnet18", LAYERS("pool1", "relu2_1", "relu2_2", "relu3_1"), LAYERS("join2_1", "conv1"));
  check("vgg16", LAYERS("pool1", "pool2", "pool3", "pool4", "pool5"), LAYERS("relu1_1", "relu1_2"));
  check("gpt2", LAYERS("h.0.add1", "h.0.add2", "h.11.add2"), LAYERS("h.0.ln_1", "ln_f"));
}

/* Squeeze and excitation waits for a POOL of its own, attention for the copy of its projections: no reason to cut. */
static void what_waits_within_a_block(void **state) {
  (void)state;
  check("vit_b_16", LAYERS("encoder.layers.0.add1", "encoder.layers.0.add2"),
        LAYERS("encoder.layers.0.self_attention.contiguous", "encoder.layers.1.self_attention.contiguous"));
  check("mobilenet_v3_large", LAYERS("features.5.add"), LAYERS("features.5.block.1.2", "features.5.block.2.avgpool"));
}

/* A decoder layer's halves, and what DenseNet's layers are cut into, are no modules: those are the blocks. Others are the
 * cuts. */
static void modules_are_whole(void **state) {
  (void)state;
  static const struct {
    const char *net;
    uint32_t modules; /* 0: the cuts */
  } nets[] = {{"gpt2", 12}, {"vit_b_16", 12}, {"swin_t", 12}, {"tv_resnet50", 0}, {"tv_vgg16", 0}, {"unet", 0}};
  for (size_t i = 0; i < sizeof nets / sizeof nets[0]; i++) {
    sn_err err = SN_ERR_INIT;
    sn_net *net = load_net(nets[i].net, 1);
    sn_route *route = sn_route_new(net, SN_DIALECT_PYTORCH, SN_ORDER_ROUTE, &err);
    sn_units modules, cuts;
    sn_units_find(route, &modules, &err);
    sn_units_find_kind(route, SN_UNITS_CUT, &cuts, &err);
    must(&err);
    uint32_t want = nets[i].modules ? nets[i].modules : cuts.count;
    if (sn_units_modules(&modules) != want) fail_msg("%s: %u modules", nets[i].net, sn_units_modules(&modules));
    sn_units_clear(&modules);
    sn_units_clear(&cuts);
    sn_route_free(route);
    sn_net_free(net);
  }
}

/* U-Net's values go past all that is below them, the encoder's output past T5's decoder, what a layer of torchvision's
 * DenseNet makes past the rest of its block. */
static void what_skips_blocks(void **state) {
  (void)state;
  check("unet",
        LAYERS("inc.double_conv.5", "down1.maxpool_conv.1.double_conv.5", "down3.maxpool_conv.1.double_conv.5",
               "up2.pad"),
        LAYERS("down1.maxpool_conv.0", "inc.double_conv.4"));
  check("t5_base",
        LAYERS("encoder.block.11.layer.1.add", "decoder.block.0.layer.0.add", "decoder.block.11.layer.1.add"),
        LAYERS("decoder.block.0.layer.1.layer_norm"));
  check("tv_densenet121", LAYERS("features.pool0", "features.denseblock1.denselayer1.conv2"),
        LAYERS("features.denseblock1.denselayer1.conv1"));
}

/* `count` convolutions with a ReLU each, which changes its output in place, and an FC. */
static sn_net *make_chain(uint32_t count) {
  sn_err err = SN_ERR_INIT;
  sn_builder *b = sn_builder_new("chain", 4, 8, 16, 16, &err);
  uint32_t x = SN_DATA_LAYER;
  for (unsigned i = 0; i < count; i++) {
    x = sn_build_conv(b, x, (sn_conv){.channels = 8, .kernel = 1}, "c%u", i);
    x = sn_build_relu(b, x, "r%u", i);
  }
  x = sn_build_fc(b, x, 10, "fc");
  sn_build_softmax(b, x, "softmax");
  sn_net *net = sn_builder_finish(b, NULL, &err);
  must(&err);
  return net;
}

/* 26 members, of which the first gets its input from nobody: with k segments k - 1 inputs and 26 / k outputs are kept,
 * so 5 are best. Each has equally many, as checkpoint_sequential() has it, and none ends ahead of a ReLU. */
static void chains_are_cut_evenly(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_net *net = make_chain(25);
  sn_route *route = sn_route_new(net, SN_DIALECT_PYTORCH, SN_ORDER_ROUTE, &err);
  sn_units units;
  sn_units_find(route, &units, &err);
  must(&err);
  assert_int_equal(units.segments, 5);
  assert_int_equal(units.count, 4);
  for (uint32_t u = 0; u <= units.count; u++) assert_int_equal(units.first[u], 2 * 5 * u);
  for (const char *const *end = LAYERS("r4", "r9", "r14", "r19"); *end; end++)
    assert_true(ends_unit(route, &units, *end));
  sn_units_clear(&units);
  sn_route_free(route);
  sn_net_free(net);
}

/* Who has ends of units is cut there, and what is too short not at all. */
static void what_is_no_chain(void **state) {
  (void)state;
  sn_net *nets[] = {load_net("vgg16", 1), load_net("resnet18", 1), make_chain(1)};
  for (size_t i = 0; i < sizeof nets / sizeof nets[0]; i++) {
    sn_err err = SN_ERR_INIT;
    sn_route *route = sn_route_new(nets[i], SN_DIALECT_PYTORCH, SN_ORDER_ROUTE, &err);
    sn_units units;
    sn_units_find(route, &units, &err);
    must(&err);
    assert_int_equal(units.segments, 0);
    sn_units_clear(&units);
    sn_route_free(route);
    sn_net_free(nets[i]);
  }
}

/* The last layer of the first unit's rerun. */
static const char *last_again(const sn_net *net, const sn_mesh *mesh) {
  sn_err err = SN_ERR_INIT;
  static char name[80];
  const sn_iteration iteration = {.mesh = *mesh};
  sn_route *route = sn_schedule_route(net, parse_strategy("pytorch"), iteration, NULL, &err);
  sn_schedule *schedule = route ? sn_schedule_new(route, SN_RECOMPUTE_UNITS, &err) : NULL;
  must(&err);
  for (uint32_t e = 0; e < schedule->n_executions; e++) {
    const sn_step *step = &schedule->route->steps[schedule->executions[e].step];
    if (schedule->executions[e].rerun)
      snprintf(name, sizeof name, "%s%s", step->kernel == SN_TRANSFER ? "transfer of " : "",
               schedule->route->layers[step->layer].name);
  }
  sn_schedule_free(schedule);
  sn_route_free(route);
  return name;
}

/* PyTorch's checkpoint stops where all is saved, and a product saves what it reads ahead of running: of the blocks of
 * transformers' Llama six of seven products run again, of GPT-2's without dropout three of four, of those with dropout,
 * whose masks are saved, all (counted by a TorchDispatchMode, PyTorch 2.15, use_reentrant=False). */
static void stops_where_all_is_saved(void **state) {
  (void)state;
  static const struct {
    const char *net, *mesh, *last;
  } nets[] = {{"llm:2,64,4,4,160,100", "", "layers.0.feed_forward.mul"},
              {"llm:2,64,4,4,160,100", "tp=2", "layers.0.feed_forward.mul"},
              {"llm:2,64,4,4,160,100", "tp=2,sequence=whole", "layers.0.feed_forward.mul"},
              {"vit_b_16", "", "encoder.layers.0.mlp.1"},
              {"gpt2", "", "h.0.mlp.dropout"},
              {"megatron:layers=2,hidden=64,heads=4", "tp=2,sequence=whole", "layers.0.mlp.dropout"},
              {"tv_resnet18", "", "maxpool"}};
  for (size_t i = 0; i < sizeof nets / sizeof nets[0]; i++) {
    sn_err err = SN_ERR_INIT;
    sn_mesh mesh = {0};
    if (*nets[i].mesh) sn_mesh_parse(nets[i].mesh, &mesh, &err);
    must(&err);
    sn_net *net = load_net(nets[i].net, 1);
    assert_string_equal(last_again(net, &mesh), nets[i].last);
    sn_net_free(net);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(blocks_and_stages),         cmocka_unit_test(modules_are_whole),
      cmocka_unit_test(what_waits_within_a_block), cmocka_unit_test(what_skips_blocks),
      cmocka_unit_test(chains_are_cut_evenly),     cmocka_unit_test(what_is_no_chain),
      cmocka_unit_test(stops_where_all_is_saved),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
