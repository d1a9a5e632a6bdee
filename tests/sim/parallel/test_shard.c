/* One GPU of several: bytes that PyTorch's own trackers count of a rank (FSDPMemTracker and MemTracker of PyTorch 2.15
 * on process groups that talk to nobody, bench/pytorch_parallel.py and docs/measured/parallel.md), where the plan's
 * transfers run, and what a mesh is called. */
#include "sim/graph/mesh.h"
#include "sim/parallel/shard.h"
#include "sim/stages/stages.h"
#include "tests/support/asked.h"
#include "tests/support/live_of.h"

#include <string.h>

typedef struct row {
  const char *net;
  uint32_t batch, size;
  const char *mesh, *optimizer;
  uint32_t accumulate;
  uint64_t bytes;          /* PyTorch's */
  uint64_t batches_beside; /* of micro-batches but the last, which the measured loop holds and a question does not */
} row;

static void rows_are_pytorchs(void **state) {
  (void)state;
  static const row rows[] = {
      {"llm:4,512,8,8,1408,1024", 2, 128, "fsdp=8", "adamw", 1, 106653092, 0},
      {"llm:4,1000,8,8,2730,1001", 1, 128, "fsdp=7", "adamw", 1, 326240700, 0},
      {"llm:4,512,8,4,1408,1024", 2, 128, "fsdp=4", "momentum", 1, 109703176, 0},
      {"llm:3,1024,16,4,2816,32000", 2, 64, "fsdp=8,prefetch=2", "adamw", 1, 750853760, 0},
      {"llm:3,1024,16,4,2816,32000", 2, 64, "fsdp=8", "adamw", 3, 1116402296, 4096},
      {"llm:3,1024,16,4,2816,32000", 2, 64, "fsdp=8,sync=each", "adamw", 2, 787021440, 2048},
      {"llm:3,1024,16,4,2816,32000", 2, 64, "fsdp=4,dp=4", "adamw", 1, 901821568, 0},
      {"tv_vgg16", 1, 224, "fsdp=16", "adamw", 1, 1081075184, 0},
      {"vit_b_16", 4, 224, "fsdp=8", "adamw", 1, 719993988 + 152 * 4, 0},     /* counters lie in host memory */
      {"vit_b_16", 2, 224, "fsdp=4,reshard=no", "momentum", 1, 802582032, 0}, /* the peak is in forward */
      {"llm:2,128,4,4,352,256", 4, 128, "dp=8", "sgd", 1, 17144840, 0},
      {"llm:2,256,4,4,704,256", 2, 64, "dp=8", "adamw:impl=fused", 1, 35614812, 0},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    const row *r = &rows[i];
    sn_net *net = load(r->net, r->batch, r->size);
    sn_live live = live_of(r->net, net, "pytorch", asked(r->mesh, r->optimizer, r->accumulate));
    if (total(&live) + r->batches_beside != r->bytes)
      fail_msg("%s, %s: %" PRIu64 " bytes, PyTorch has %" PRIu64, r->net, r->mesh, total(&live), r->bytes);
    sn_net_free(net);
  }
}

/* In two bytes. Norms as transformers writes them: five tensors of four at the fullest moment of their backward; the roots
 * of positions, four bytes each, are gone by then, and here they are not. Norms of a GPU, on fakes of one: Adam's counters,
 * which lie in host memory there, beside 8 bytes of seeds of each attention alive. */
static void narrow_norms(void **state) {
  (void)state;
  static const struct {
    const char *net;
    uint32_t tokens;
    bool master;
    uint64_t bytes;
  } rows[] = {{"llm:4,512,8,8,1408,1024", 128, true, 73223584 + 2 * 128 * 4},
              {"llm:3,1024,16,4,2816,32000", 64, false, 373592956 + 2 * 64 * 4},
              {"llm:4,512,8,8,1408,1024,gpu=1", 128, true, 69422412 + 39 * 4 - 3 * 8}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    sn_net *net = load(rows[i].net, 2, rows[i].tokens);
    sn_iteration iteration = asked("fsdp=8", "adamw", 1);
    iteration.precision = SN_BF16;
    iteration.master = rows[i].master;
    const sn_live live = live_of(rows[i].net, net, "pytorch", iteration);
    assert_int_equal(total(&live), rows[i].bytes);
    sn_net_free(net);
  }
}

/* Of a table that the head shares PyTorch has three gradients where the embedding adds its own: the head's is a view, which
 * is not changed. What the embedding has read is gone then. */
static void shared_tables_have_three_gradients(void **state) {
  (void)state;
  sn_net *net = load("gpt2:layers=2", 1, 256);
  static const char *const strategies[] = {"pytorch", "pytorch-1.7"};
  for (int i = 0; i < 2; i++) {
    sn_live live = live_of("gpt2", net, strategies[i], asked("dp=4", "adamw", 1));
    assert_int_equal(total(&live), 1380004984);
  }
  sn_net_free(net);
}

/* Of GPT-2's GELU seven tensors are there at once, in backward's first step and in that of its third power: on fakes of a
 * GPU, where Adam's counters lie in host memory, and with numbers of positions, which are buffers in transformers' module. */
static void composed_gelus(void **state) {
  (void)state;
  static const struct {
    const char *strategy;
    uint64_t bytes;
  } rows[] = {{"pytorch-1.7", 2523782456},
              {"pytorch-1.7+recompute=units", 1148887064},
              {"pytorch-1.7+recompute=selective", 1189731640}};
  sn_net *net = load("gpt2:layers=3,vocabulary=1000", 16, 512);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    sn_live live = live_of("gpt2", net, rows[i].strategy, asked("fsdp=4", "adamw", 1));
    assert_int_equal(total(&live) - 40 * 4 + 512 * 8, rows[i].bytes);
  }
  sn_net_free(net);
}

/* Heads of no whole 16 bytes in float32: in parts on a GPU, with all scores, twice more at backward's fullest moment; on fakes
 * of one. A CPU's kernel takes all heads, and in bf16 a GPU's pads them: there are no scores. */
static void odd_heads(void **state) {
  (void)state;
  static const struct {
    const char *net, *mesh, *optimizer;
    uint32_t batch, tokens;
    uint64_t bytes;
  } rows[] = {{"llm:4,1000,8,8,2730,1001", "fsdp=7", "adamw", 1, 128, 326240700},
              {"llm:4,1000,8,8,2730,1001,gpu=1,simple_norms=1", "fsdp=7", "adamw", 1, 128, 327280928 + 39 * 4},
              {"llm:2,504,8,8,273,101,gpu=1,simple_norms=1", "fsdp=4", "momentum", 2, 256, 57276536},
              {"llm:2,504,8,8,273,101,gpu=1", "dp=4", "momentum", 2, 256, 71897576},
              {"llm:3,88,4,4,273,101,gpu=1", "fsdp=4", "momentum", 4, 512, 119629256}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    sn_net *net = load(rows[i].net, rows[i].batch, rows[i].tokens);
    sn_live live = live_of(rows[i].net, net, "pytorch-1.7", asked(rows[i].mesh, rows[i].optimizer, 1));
    assert_int_equal(total(&live), rows[i].bytes);
    sn_net_free(net);
  }
  sn_net *net = load("llm:1,24,4,4,24,24,gpu=1", 1, 64);
  sn_iteration iteration = asked("", "momentum", 1);
  uint64_t widths[2];
  for (int i = 0; i < 2; i++) {
    iteration.precision = i == 0 ? SN_FP32 : SN_BF16;
    const sn_live live = live_of("llm", net, "pytorch", iteration);
    widths[i] = live.activations + live.temporary;
  }
  assert_true(widths[0] - 2 * widths[1] > 64 * 64 * 4 * 4);
  sn_net_free(net);
}

/* What is kept is all there is of it elsewhere: shards of parameters and states. */
static void shards_are_parts(void **state) {
  (void)state;
  sn_net *net = load("llm:2,64,4,4,128,100", 1, 16);
  sn_live one = live_of("llm", net, "pytorch", asked("", "adamw", 1));
  sn_live eight = live_of("llm", net, "pytorch", asked("fsdp=4", "adamw", 1));
  assert_int_equal(one.parameters, 4 * eight.parameters); /* all divide */
  sn_net_free(net);
}

/* What updates of a rank take. */
static int64_t update_ns(const sn_net *net, sn_iteration iteration) {
  sn_err err = SN_ERR_INIT;
  sn_device gpu = load_gpu("h200");
  const uint8_t algo[2] = {0};
  sn_costs *costs = sn_costs_new_in(net, &gpu, iteration, &err);
  sn_costs_set_optimizer(costs, net, &gpu, iteration.optimizer);
  sn_route *route = sn_schedule_route(net, parse_strategy("pytorch"), iteration, costs, &err);
  int64_t ns = 0;
  must(&err);
  for (uint32_t s = route->first_update; s < route->n_steps; s++)
    ns += sn_costs_of(costs, route, &route->steps[s], algo);
  sn_route_free(route);
  sn_costs_free(costs);
  return ns;
}

/* A rank updates its part, which is as wide as it is kept. */
static void updates_are_of_parts(void **state) {
  (void)state;
  sn_net *net = load("llm:2,1024,16,4,2816,32000", 1, 16);
  sn_iteration narrow = asked("fsdp=8", "adamw:impl=fused", 1), master = narrow;
  narrow.precision = master.precision = SN_BF16;
  master.master = true;
  double one = (double)update_ns(net, asked("", "adamw:impl=fused", 1));
  double eight = (double)update_ns(net, asked("fsdp=8", "adamw:impl=fused", 1));
  assert_true(eight < 0.2 * one && eight > one / 9);
  assert_true((double)update_ns(net, master) > 1.5 * (double)update_ns(net, narrow));
  assert_int_equal((int64_t)eight, update_ns(net, master));
  sn_net_free(net);
}

/* Rajbhandari et al., figure 1: of P parameters in bf16 with Adam 4 P + 12 P / N bytes in stage 1 and 2 P + 14 P / N in
 * stage 2; states of the whole are 16 P. Gradients of stage 2 are all parts at the end of backward alone. */
static void zero_has_its_states(void **state) {
  (void)state;
  enum { RANKS = 16, COUNTER = 4 };
  sn_net *net = load("llm:2,64,4,4,128,128", 1, 16);
  uint64_t tensors = 0, each[SN_PARAMETER_TENSORS], p = net->parameters;
  for (uint32_t l = 0; l < net->n_layers; l++)
    tensors += sn_precision_parameter_tensors(SN_FP32, &net->layers[l], each);
  for (uint32_t stage = 1; stage <= 2; stage++) {
    sn_iteration iteration = asked(stage == 1 ? "dp=16,zero=1" : "dp=16,zero=2", "adamw:impl=fused", 1);
    iteration.precision = SN_BF16;
    iteration.master = true;
    const sn_live live = live_of("llm", net, "pytorch", iteration);
    assert_int_equal(live.parameters, 2 * p);
    assert_int_equal(live.optimizer, 12 * p / RANKS + COUNTER * tensors); /* all divide */
  }
  sn_iteration summed = asked("dp=16,zero=2", "adamw:impl=fused", 3);
  summed.precision = SN_BF16;
  summed.master = true;
  sn_err err = SN_ERR_INIT;
  sn_device gpu = load_gpu("h200");
  sn_costs *costs = sn_costs_new_in(net, &gpu, summed, &err);
  sn_route *route = sn_schedule_route(net, parse_strategy("pytorch"), summed, costs, &err);
  uint64_t parts = 0;
  must(&err);
  for (uint32_t t = 0; t < route->n_tensors; t++)
    parts += route->tensors[t].role == SN_SHARD ? route->tensors[t].bytes : 0;
  assert_int_equal(parts, 2 * p / RANKS);
  sn_route_free(route);
  sn_costs_free(costs);
  sn_net_free(net);
}

static void one_gpu_is_todays(void **state) {
  (void)state;
  sn_mesh mesh;
  sn_err err = SN_ERR_INIT;
  assert_int_equal(sn_mesh_parse("dp=1,fsdp=1,tp=1,pp=1", &mesh, &err), SN_OK);
  assert_true(sn_mesh_is_one(&mesh) && *mesh.text == '\0');
}

static void meshes_have_one_text(void **state) {
  (void)state;
  static const char *const texts[][2] = {{"fsdp=8", "fsdp=8"},
                                         {"prefetch=1,fsdp=8,reshard=yes", "fsdp=8"},
                                         {"dp=2,fsdp=4", "fsdp=4,dp=2"},
                                         {"view=yes,dp=8,bucket=25MiB", "dp=8,view=yes"},
                                         {"zero=2,dp=8", "dp=8,zero=2"},
                                         {"dp=8,zero=3", "fsdp=8"},
                                         {"fsdp=8,reshard=4,reduce=bf16", "fsdp=8,reshard=4,reduce=bf16"},
                                         {"fsdp=8,reshard=8", "fsdp=8"},
                                         {"stages=8,9,7,pp=3,dp=2", "dp=2,pp=3,stages=8,9,7"}};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    sn_mesh mesh, again;
    sn_err err = SN_ERR_INIT;
    sn_mesh_parse(texts[i][0], &mesh, &err);
    sn_mesh_parse(mesh.text, &again, &err);
    must(&err);
    assert_string_equal(mesh.text, texts[i][1]);
    assert_string_equal(again.text, mesh.text);
  }
}

static void bad_meshes_are_refused(void **state) {
  (void)state;
  static const char *const bad[][2] = {
      {"fsdp", "fit --min gpus"},
      {"fsdp=0", "is none of: 1 to"},
      {"fsdp=8,fsdp=8", "stands twice"},
      {"sdp=8", "did you mean"},
      {"view=yes", "add dp=8"},
      {"fsdp=8,view=yes", "add dp=8"},
      {"prefetch=2,dp=8", "add fsdp=8"},
      {"fsdp=8,reshard=maybe", "yes"},
      {"fsdp=65536,dp=2", "take fewer"},
      {"fsdp=99999999999999999999", "none of"},
      {"fsdp=8,,", "\"\" is no key"},
      {"fsdp=-1", "none of"},
      {"dp=8,bucket=1", "1MiB to 1TiB"},
      {"fsdp=8,prefetch=17", "1 to 16"},
      {"dp=8,zero=4", "1 to 3"},
      {"dp=8,fsdp=2,zero=1", "leave one"},
      {"zero=2", "add dp=8"},
      {"dp=8,zero=2,view=yes", "DeepSpeed's"},
      {"fsdp=8,reshard=3", "divide"},
      {"fsdp=8,reshard=16", "divide"},
      {"pp=2,stages=", "units of each"},
      {"pp=2,stages=1,0", "units of each"},
      {"stages=1,2", "add pp=8"},
      {"pp=2,stages=1,2,3", "there are 2 stages; say one for each"},
      {"pp=2,schedule=interleaved:2,stages=1,2,3", "there are 4 parts"},
      {"pp=65,stages=1,2", "up to 64"},
      {"fsdp=8,cp=2", "cp (context parallel) is not simulated; tp splits positions"},
      {"tp=8,sp=8", "sp (sequence parallel) is not simulated; tp has it with sequence=split, which holds unless"},
      {"tp=8,sequence=yes", "sequence=\"yes\" is none of: split, whole"},
      {"sequence=whole", "add tp=8"},
      {"tp=8,sequence=whole,gathered=again", "gathers nothing; leave gathered=again out, or ask for sequence=split"},
      {"ep=8", "expert parallel"},
      {"fp8", "float8"},
  };
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    sn_mesh mesh = {0};
    sn_err err = SN_ERR_INIT;
    assert_int_equal(sn_mesh_parse(bad[i][0], &mesh, &err), SN_BAD_USAGE);
    if (!strstr(err.text, bad[i][1])) fail_msg("%s: %s", bad[i][0], err.text);
    assert_true(sn_mesh_is_one(&mesh));
  }
}

/* A size that is looked for is no number, and what is said of an axis goes with it. */
static void sizes_are_looked_for(void **state) {
  (void)state;
  static const struct {
    const char *asked, *text, *at_8, *at_1;
  } rows[] = {
      {"fsdp", "fsdp", "fsdp=8", ""},
      {"prefetch=2,fsdp", "fsdp,prefetch=2", "fsdp=8,prefetch=2", ""},
      {"dp,bucket=50MiB", "dp,bucket=50MiB", "dp=8,bucket=50MiB", ""},
      {"dp,view=yes", "dp,view=yes", "dp=8,view=yes", ""},
      {"dp,zero=1", "dp,zero=1", "dp=8,zero=1", ""},
      {"dp,zero=3", "fsdp", "fsdp=8", ""},
      {"fsdp,reshard=4", "fsdp,reshard=4", "fsdp=8,reshard=4", ""},
      {"fsdp,reshard=16", "fsdp,reshard=16", "fsdp=8", ""},
      {"dp=2,fsdp,reshard=no", "fsdp,dp=2,reshard=no", "fsdp=8,dp=2,reshard=no", "dp=2"},
      {"tp=2,pp,schedule=gpipe", "tp=2,pp,schedule=gpipe", "tp=2,pp=8,schedule=gpipe", "tp=2"},
      {"dp,fsdp=4,keep-last=yes", "fsdp=4,dp,keep-last=yes", "fsdp=4,dp=8,keep-last=yes", "fsdp=4,keep-last=yes"}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    sn_mesh mesh, sized;
    sn_err err = SN_ERR_INIT;
    sn_mesh_parse_sought(rows[i].asked, &mesh, &err);
    must(&err);
    assert_string_equal(mesh.text, rows[i].text);
    sn_mesh_axis axis = (sn_mesh_axis)(mesh.sought - 1);
    sn_mesh_resize(&mesh, axis, 8, &sized, &err);
    assert_string_equal(sized.text, rows[i].at_8);
    sn_mesh_resize(&mesh, axis, 1, &sized, &err);
    must(&err);
    assert_string_equal(sized.text, rows[i].at_1);
    assert_int_equal(sized.sought, 0);
  }
}

static void bad_sizes_are_refused(void **state) {
  (void)state;
  static const char *const bad[][2] = {{"fsdp,dp", "one axis"},
                                       {"tp", "Say tp=8"},
                                       {"fsdp,view=yes", "add dp=8"},
                                       {"pp,fsdp", "one axis"},
                                       {"fsdp,fsdp=8", "twice"}};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    sn_mesh mesh = {0};
    sn_err err = SN_ERR_INIT;
    assert_int_equal(sn_mesh_parse_sought(bad[i][0], &mesh, &err), SN_BAD_USAGE);
    if (!strstr(err.text, bad[i][1])) fail_msg("%s: %s", bad[i][0], err.text);
  }
}

/* From one GPU on, whose mesh says nothing. */
static void meshes_grow(void **state) {
  (void)state;
  sn_mesh mesh = {0};
  sn_err err = SN_ERR_INIT;
  sn_mesh_resize(&mesh, SN_MESH_FSDP, 16, &mesh, &err);
  sn_mesh_resize(&mesh, SN_MESH_DP, 4, &mesh, &err);
  must(&err);
  assert_string_equal(mesh.text, "fsdp=16,dp=4");
  assert_int_equal(mesh.reshard, SN_RESHARD_YES);
  assert_int_equal(sn_mesh_resize(&mesh, SN_MESH_DP, 65536, &mesh, &err), SN_BAD_USAGE);
  assert_string_equal(mesh.text, "fsdp=16,dp=4");
}

/* torch.chunk(): ceil(d / W) rows each. */
static void parameters_are_cut_by_rows(void **state) {
  (void)state;
  const sn_cut even = {16, 3}, odd = {10, 7}, few = {3, 5};
  assert_int_equal(sn_cut_shard(even, 8), 6);
  assert_int_equal(sn_cut_padded(even, 8), 48);
  assert_int_equal(sn_cut_shard(odd, 8), 14);
  assert_int_equal(sn_cut_padded(odd, 8), 112);
  assert_int_equal(sn_cut_shard(few, 8), 5);
  assert_int_equal(sn_cut_padded(few, 8), 40);
}

static void first_sides_are_pytorchs(void **state) {
  (void)state;
  static const struct {
    const char *net, *layer;
    uint64_t rows, each;
  } cuts[] = {{"tv_resnet50", "conv1", 64, 147},      {"tv_resnet50", "bn1", 64, 1},
              {"tv_resnet50", "fc", 1000, 2048},      {"vit_b_16", "class_token", 1, 768},
              {"gpt2", "h.0.attn.c_attn", 768, 2304}, {"gpt2", "wte", 50257, 768}};
  for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
    sn_net *net = load(cuts[i].net, 1, 0);
    sn_cut found[SN_PARAMETER_TENSORS] = {{0}};
    for (uint32_t l = 0; l < net->n_layers; l++)
      if (strcmp(net->layers[l].name, cuts[i].layer) == 0) sn_cuts_of(net, &net->layers[l], 1, found);
    if (found[0].rows != cuts[i].rows || found[0].each != cuts[i].each)
      fail_msg("%s, %s: %" PRIu64 " rows of %" PRIu64, cuts[i].net, cuts[i].layer, found[0].rows, found[0].each);
    sn_net_free(net);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rows_are_pytorchs),
      cmocka_unit_test(narrow_norms),
      cmocka_unit_test(shared_tables_have_three_gradients),
      cmocka_unit_test(composed_gelus),
      cmocka_unit_test(odd_heads),
      cmocka_unit_test(shards_are_parts),
      cmocka_unit_test(updates_are_of_parts),
      cmocka_unit_test(zero_has_its_states),
      cmocka_unit_test(one_gpu_is_todays),
      cmocka_unit_test(meshes_have_one_text),
      cmocka_unit_test(bad_meshes_are_refused),
      cmocka_unit_test(parameters_are_cut_by_rows),
      cmocka_unit_test(first_sides_are_pytorchs),
      cmocka_unit_test(sizes_are_looked_for),
      cmocka_unit_test(bad_sizes_are_refused),
      cmocka_unit_test(meshes_grow),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
