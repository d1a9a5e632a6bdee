/* One GPU of several: bytes that PyTorch's own trackers count of a rank (FSDPMemTracker and MemTracker of PyTorch 2.15
 * on process groups that talk to nobody, bench/pytorch_parallel.py and docs/measured/parallel.md), where the plan's
 * transfers run, and what a mesh is called. */
#include "sim/graph/mesh.h"
#include "sim/parallel/shard.h"
#include "sim/stages/stages.h"
#include "tests/support/live_of.h"

#include <string.h>

static sn_iteration asked(const char *mesh, const char *optimizer, uint32_t accumulate) {
  sn_err err = SN_ERR_INIT;
  sn_iteration iteration = {.accumulate = accumulate};
  sn_mesh_parse(mesh, &iteration.mesh, &err);
  sn_optimizer_parse(optimizer, &iteration.optimizer, &err);
  must(&err);
  return iteration;
}

static sn_net *load(const char *spec, uint32_t batch, uint32_t size) {
  sn_err err = SN_ERR_INIT;
  sn_net *net = sn_net_load(spec, batch, size, &err);
  must(&err);
  return net;
}

static uint64_t total(const sn_live *l) {
  return l->parameters + l->buffers + l->gradients + l->optimizer + l->activations + l->temporary;
}

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

/* What is kept is all there is of it elsewhere: shards of parameters and states. */
static void shards_are_parts(void **state) {
  (void)state;
  sn_net *net = load("llm:2,64,4,4,128,100", 1, 16);
  sn_live one = live_of("llm", net, "pytorch", asked("", "adamw", 1));
  sn_live eight = live_of("llm", net, "pytorch", asked("fsdp=4", "adamw", 1));
  assert_int_equal(one.parameters, 4 * eight.parameters); /* all divide */
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
                                         {"fsdp=8,reshard=4,reduce=bf16", "fsdp=8,reshard=4,reduce=bf16"},
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
      {"pp=2,stages=", "units of each"},
      {"pp=2,stages=1,0", "units of each"},
      {"stages=1,2", "add pp=8"},
      {"pp=2,stages=1,2,3", "there are 2 stages; say one for each"},
      {"pp=2,schedule=interleaved:2,stages=1,2,3", "there are 4 parts"},
      {"pp=65,stages=1,2", "up to 64"},
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
      {"dp=2,fsdp,reshard=no", "fsdp,dp=2,reshard=no", "fsdp=8,dp=2,reshard=no", "dp=2"},
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
                                       {"pp,fsdp", "Say pp=8"},
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

static sn_run *run_stages(const char *net, uint32_t batch, uint32_t size, const char *mesh, uint32_t micros) {
  sn_err err = SN_ERR_INIT;
  sn_device gpu = load_gpu("h200");
  sn_strategy pytorch = parse_strategy("pytorch");
  sn_options options = SN_OPTIONS_INIT;
  sn_net *n = load(net, batch, size);
  options.iteration = asked(mesh, "adamw", micros);
  sn_run *run = sn_stages_simulate(net, n, &gpu, &pytorch, 1, &options, &err);
  must(&err);
  sn_net_free(n);
  return run;
}

static uint64_t stage_bytes(const sn_run *run, uint32_t stage) {
  return total(&run->stages[stage]->results[0].live);
}

/* Of stages that nobody asks for their least it is not looked for; what is told of all is as if it were. */
static void the_least_is_that_of_all_stages(void **state) {
  enum { MICROS = 8, STAGES = 6 };
  static const char net[] = "llm:12,128,4,4,352,100";
  (void)state;
  sn_run *all = run_stages(net, 2, 64, "pp=6", MICROS);
  sn_net *n = load(net, 2, 64);
  sn_device gpu = load_gpu("h200");
  sn_strategy pytorch = parse_strategy("pytorch");
  uint64_t most = 0, told = 0, searched = 0;
  for (uint32_t s = 0; s < STAGES; s++) {
    sn_err err = SN_ERR_INIT;
    sn_options options = SN_OPTIONS_INIT;
    options.iteration = asked("pp=6", "adamw", 1);
    options.iteration.mesh.stage = s;
    options.iteration.mesh.micros = MICROS;
    sn_run *alone = sn_simulate(net, n, &gpu, &pytorch, 1, &options, &err);
    must(&err);
    const sn_result *own = &alone->results[0], *in_all = &all->stages[s]->results[0];
    assert_int_equal(own->peak_device_bytes, in_all->peak_device_bytes);
    assert_true(own->least_device_bytes <= in_all->least_device_bytes);
    assert_true(in_all->least_device_bytes <= in_all->peak_device_bytes);
    searched += own->least_device_bytes < own->peak_device_bytes;
    most = own->least_device_bytes > most ? own->least_device_bytes : most;
    told = in_all->least_device_bytes > told ? in_all->least_device_bytes : told;
    sn_run_free(alone);
  }
  assert_true(searched > 1); /* looking for it makes a difference */
  assert_int_equal(told, most);
  assert_int_equal(all->results[0].least_device_bytes, most);
  sn_net_free(n);
  sn_run_free(all);
}

/* PyTorch's Schedule1F1B and ScheduleGPipe by MemTracker: a stage keeps one micro-batch less than the one before it, and
 * of gpipe all; all micro-batches keep what they receive (parallel.md, section 6). */
static void stages_keep_what_is_in_flight(void **state) {
  (void)state;
  enum { BATCH = 2, TOKENS = 64, D = 128, MICROS = 8 };
  sn_run *one = run_stages("llm:12,128,4,4,352,100", BATCH, TOKENS, "pp=6", MICROS);
  sn_run *all = run_stages("llm:12,128,4,4,352,100", BATCH, TOKENS, "pp=6,schedule=gpipe", MICROS);
  assert_int_equal(one->n_stages, 6);
  uint64_t each = stage_bytes(one, 1) - stage_bytes(one, 2); /* of equal stages */
  for (uint32_t s = 1; s < 4; s++) {
    assert_int_equal(stage_bytes(one, s) - stage_bytes(one, s + 1), each);
    assert_int_equal(stage_bytes(all, s), stage_bytes(all, s + 1));
    assert_true(stage_bytes(all, s) - stage_bytes(one, s) <= (MICROS - 6 + s) * each);
    assert_true(stage_bytes(all, s) - stage_bytes(one, s) > (MICROS - 7 + s) * each);
  }
  /* two blocks of what a block keeps: x, x-hat and roots of two norms, q, k, v, the attention's output and sums, the
   * sum behind it, both FCs' outputs, SiLU's and the product, and the block's own output */
  uint64_t tokens = BATCH * TOKENS, heads = 4, ffn = 352, floats = tokens * (4 * D + 4 * D + heads + 2 + 4 * ffn) + 0;
  assert_true(each > 2 * 4 * (floats - tokens * 4 * D) && each < 2 * 4 * (floats + tokens * 4 * D));
  sn_run_free(one);
  sn_run_free(all);
}

/* (p - 1) / m of equal stages, interleaved's a chunk's part of it. */
static void bubbles_are_the_schedules(void **state) {
  (void)state;
  sn_run *one = run_stages("llm:16,256,4,4,704,100", 1, 64, "pp=4", 16);
  sn_run *two = run_stages("llm:16,256,4,4,704,100", 1, 64, "pp=4,schedule=interleaved:2", 16);
  const sn_result *a = &one->results[0], *b = &two->results[0];
  double first = (double)a->shared.bubble_ns / (double)(a->iteration_ns - a->shared.bubble_ns);
  double second = (double)b->shared.bubble_ns / (double)(b->iteration_ns - b->shared.bubble_ns);
  assert_true(first > 0.10 && first < 3.0 / 16 + 0.01); /* ends have the embedding and the head beside */
  assert_true(second < first);
  sn_run_free(one);
  sn_run_free(two);
}

/* Each stage has the blocks that are said: of equal ones nothing changes, a block more is a block's parameters more. */
static void stages_have_their_units(void **state) {
  enum { MICROS = 4 };
  static const char net[] = "llm:8,128,4,4,352,100";
  (void)state;
  sn_run *equal = run_stages(net, 1, 16, "pp=4", MICROS), *said = run_stages(net, 1, 16, "pp=4,stages=2,2,2,2", MICROS);
  sn_run *other = run_stages(net, 1, 16, "pp=4,stages=1,4,2,1", MICROS);
  const uint64_t block = equal->stages[1]->results[0].live.parameters / 2;
  static const int more[] = {-1, 2, 0, -1};
  for (uint32_t s = 0; s < 4; s++) {
    const sn_result *a = &equal->stages[s]->results[0], *b = &said->stages[s]->results[0],
                    *c = &other->stages[s]->results[0];
    assert_int_equal(a->peak_device_bytes, b->peak_device_bytes);
    assert_int_equal(a->shared.backward_ns, b->shared.backward_ns);
    assert_int_equal(c->live.parameters - a->live.parameters, more[s] * (int64_t)block);
  }
  sn_run_free(equal);
  sn_run_free(said);
  sn_run_free(other);
}

static void bad_pipelines_are_refused(void **state) {
  (void)state;
  static const struct {
    const char *net, *mesh, *why;
    uint32_t micros;
  } bad[] = {{"llm:8,128,4,4,352,100", "pp=16", "8 can be asked for", 4},
             {"llm:8,128,4,4,352,100", "pp=4,schedule=interleaved:2", "multiple of 4", 7},
             {"gpt2", "pp=4", "takes the weights of wte", 4},
             {"llm:8,128,4,4,352,100", "pp=4,stages=1,3,3,2", "are 9 blocks", 4},
             {"llm:8,128,4,4,352,100", "pp=3,stages=1,3,3", "has 8; stages=3,3,2 is as many in each", 4},
             {"unet", "pp=4", "stages send to the next alone", 4}};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    sn_err err = SN_ERR_INIT;
    sn_device gpu = load_gpu("h200");
    sn_strategy pytorch = parse_strategy("pytorch");
    sn_options options = SN_OPTIONS_INIT;
    sn_net *net = load(bad[i].net, 1, 0);
    options.iteration = asked(bad[i].mesh, "adamw", bad[i].micros);
    sn_run *run = sn_stages_simulate(bad[i].net, net, &gpu, &pytorch, 1, &options, &err);
    assert_null(run);
    if (!strstr(err.text, bad[i].why)) fail_msg("%s, %s: %s", bad[i].net, bad[i].mesh, err.text);
    sn_net_free(net);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rows_are_pytorchs),
      cmocka_unit_test(narrow_norms),
      cmocka_unit_test(shards_are_parts),
      cmocka_unit_test(one_gpu_is_todays),
      cmocka_unit_test(meshes_have_one_text),
      cmocka_unit_test(bad_meshes_are_refused),
      cmocka_unit_test(parameters_are_cut_by_rows),
      cmocka_unit_test(first_sides_are_pytorchs),
      cmocka_unit_test(stages_keep_what_is_in_flight),
      cmocka_unit_test(the_least_is_that_of_all_stages),
      cmocka_unit_test(bubbles_are_the_schedules),
      cmocka_unit_test(stages_have_their_units),
      cmocka_unit_test(bad_pipelines_are_refused),
      cmocka_unit_test(sizes_are_looked_for),
      cmocka_unit_test(bad_sizes_are_refused),
      cmocka_unit_test(meshes_grow),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
