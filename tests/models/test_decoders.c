/* What Gemma 2 and Mixtral have beside Llama: capped scores and norms that multiply by 1 + w, experts. Keys of network
 * files, what MemTracker counts of transformers' modules and of torchtitan's Llama (PyTorch 2.15.0, transformers 5.24.0,
 * bench/pytorch_transformers.py), and what a router and adapters leave alone. */
#include "models/build/lora.h"
#include "tests/support/live_of.h"

/* Two of eight experts a token. */
static void keys_of_experts(void **state) {
  (void)state;
  sn_net *net = load_net("{\"snsim_net\":1,\"name\":\"t\",\"tokens\":16,\"layers\":["
                         "{\"name\":\"e\",\"op\":\"EMBEDDING\",\"vocabulary\":100,\"channels\":12},"
                         "{\"name\":\"g\",\"op\":\"FC\",\"channels\":8,\"positions\":true,\"router\":true},"
                         "{\"name\":\"c\",\"op\":\"CONCAT\",\"inputs\":[\"e\",\"e\",\"g\"]},"
                         "{\"name\":\"x\",\"op\":\"EXPERTS\",\"channels\":10,\"experts\":8,\"chosen\":2},"
                         "{\"name\":\"s\",\"op\":\"SOFTMAX\",\"positions\":true}]}",
                         2);
  assert_true(named(net, "g")->attr->router && named(net, "x")->attr->experts == 8);
  assert_true(named(net, "x")->out.c == 20 && named(net, "x")->parameters == 8 * 16 * 10);
  sn_net_free(net);
}

static void keys_of_gemma(void **state) {
  (void)state;
  sn_net *net = load_net("{\"snsim_net\":1,\"name\":\"t\",\"tokens\":16,\"layers\":["
                         "{\"name\":\"e\",\"op\":\"EMBEDDING\",\"vocabulary\":100,\"channels\":12},"
                         "{\"name\":\"n\",\"op\":\"RMS_NORM\",\"plus_one\":true},"
                         "{\"name\":\"a\",\"op\":\"ATTENTION\",\"heads\":2,\"parts\":true,\"cap\":50},"
                         "{\"name\":\"s\",\"op\":\"SOFTMAX\",\"positions\":true}]}",
                         2);
  assert_true(named(net, "n")->attr->plus_one && !named(net, "n")->attr->fused);
  assert_true(named(net, "a")->attr->parts && named(net, "a")->attr->cap == 50);
  assert_int_equal(named(net, "a")->statistics_bytes, 2 * 16 * 16 * 2 * 8);
  sn_net_free(net);
}

/* Four sets of 8 x 8 weights are as many numbers as eight of 4 x 8, and not the same. */
static void experts_share_with_as_many(void **state) {
  (void)state;
  static const char text[] = "{\"snsim_net\":1,\"name\":\"t\",\"tokens\":16,\"layers\":["
                             "{\"name\":\"e\",\"op\":\"EMBEDDING\",\"vocabulary\":100,\"channels\":8},"
                             "{\"name\":\"x\",\"op\":\"EXPERTS\",\"channels\":8,\"experts\":4,\"chosen\":1},"
                             "{\"name\":\"y\",\"op\":\"EXPERTS\",\"channels\":8,\"experts\":8,\"chosen\":2,"
                             "\"weights_of\":\"x\"},"
                             "{\"name\":\"s\",\"op\":\"SOFTMAX\",\"positions\":true}]}";
  sn_err err = SN_ERR_INIT;
  assert_null(sn_net_from_json("t.json", text, sizeof text - 1, 2, &err));
  assert_non_null(strstr(err.text, "must be another layer's own"));
}

typedef struct counted {
  const char *spec;
  uint32_t batch, tokens;
  sn_iteration iteration;
  sn_live live;    /* PyTorch's: parameters, none, gradients, optimizer, activations, temporary */
  uint64_t inputs; /* bytes of the batch, where PyTorch's activations are without */
} counted;

#define WITH(precision_)                                                                                               \
  { .precision = precision_, .optimizer = SN_OPTIMIZER_MOMENTUM }
static const counted rows[] = {
    {"gemma2:2b,layers=4", 4, 1024, WITH(SN_FP32), {3605160960, 0, 0, 3605160960, 14040933384, 8388608000}, 0},
    {"gemma2:2b,layers=2", 2, 512, WITH(SN_AMP_BF16), {2982233088, 0, 0, 2982233088, 3538555912, 2097152000}, 0},
    {"gemma2:2b,layers=4", 1, 4096, WITH(SN_BF16), {1802580480, 0, 0, 1802580480, 13520839688, 8388608000}, 0},
    {"mixtral:layers=2", 2, 512, WITH(SN_FP32), {12658753536, 0, 12134465536, 12658753536, 16392, 541065216}, 0},
    {"mixtral:layers=2", 2, 512, WITH(SN_BF16), {6329376768, 0, 6067232768, 6329376768, 16392, 270532608}, 0},
};

static void memory_is_pytorch_s(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    sn_err err = SN_ERR_INIT;
    sn_net *net = sn_net_load(rows[i].spec, rows[i].batch, rows[i].tokens, &err);
    must(&err);
    const sn_live live = live_of(rows[i].spec, net, "pytorch", rows[i].iteration);
    check_live(&live, &rows[i].live);
    sn_net_free(net);
  }
}

/* MemTracker's of torchtitan's Llama without rotation, on a CPU (bench/parallel/networks.py). */
static const counted titans[] = {
    {"llm:4,512,8,8,1408,1024", 16, 256, WITH(SN_FP32), {55592960, 0, 0, 55592960, 747257864, 33554432}, 65536},
    {"llm:4,512,8,4,1408,1024", 16, 256, WITH(SN_FP32), {51398656, 0, 0, 51398656, 747257864, 33554432}, 65536},
    {"llm:4,1000,8,8,2730,1001", 1, 128, WITH(SN_FP32), {203084000, 0, 199080000, 203084000, 8, 4516000}, 2048},
};

static void memory_is_torchtitan_s(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof titans / sizeof titans[0]; i++) {
    sn_err err = SN_ERR_INIT;
    sn_net *net = sn_net_load(titans[i].spec, titans[i].batch, titans[i].tokens, &err);
    must(&err);
    const sn_live live = live_of(titans[i].spec, net, "pytorch", titans[i].iteration);
    sn_live want = titans[i].live;
    want.activations += titans[i].inputs;
    check_live(&live, &want);
    sn_net_free(net);
  }
}

static void torchtitan_s_layers(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_net *net = sn_net_load("llm:2,64,8,2,100,50,layers=3,loss=cross_entropy_fp32", 2, 16, &err);
  must(&err);
  assert_int_equal(net->parameters, 3 * (2 * 64 * 64 + 2 * 64 * 16 + 3 * 64 * 100 + 2 * 64) + 2 * 50 * 64 + 64);
  assert_true(named(net, "layers.2.attention.wk")->out.c == 16 && named(net, "layers.2.feed_forward.w3")->out.c == 100);
  assert_int_equal(named(net, "layers.0.attention.k_all")->out.c, 64);
  assert_true(named(net, "layers.0.attention.sdpa")->attr->seedless);
  assert_string_equal(net->modules[named(net, "layers.1.attention.wo") - net->layers].block, "layers.1");
  assert_false(named(net, "norm")->attr->fused);
  sn_net_free(net);
  net = sn_net_load("llm:2,64,8,2,100,50,gpu=1", 2, 16, &err);
  must(&err);
  assert_true(named(net, "norm")->attr->fused && named(net, "layers.1.ffn_norm")->attr->fused);
  assert_false(named(net, "layers.0.attention.sdpa")->attr->seedless);
  sn_net_free(net);
  net = sn_net_load("llm:2,64,8,2,100,50,gpu=1,simple_norms=1", 2, 16, &err);
  must(&err);
  assert_false(named(net, "norm")->attr->fused);
  assert_false(named(net, "layers.0.attention.sdpa")->attr->seedless);
  sn_net_free(net);
}

static void torchtitan_s_bad_names(void **state) {
  (void)state;
  static const struct {
    const char *spec, *says;
  } cases[] = {{"llm:4,512,8", "KV is missing; write llm:LAYERS,D"},
               {"llm:0,512,8,8,1,1", "\"0\" is no LAYERS, a whole number from 1 to 1000000"},
               {"llm:1,512,8,8,1,99999999999999999999", "is no WORDS"},
               {"llm:4,512,8,8,1408,1024,9", "more than 6 numbers"},
               {"llm:4,512,8,8,1408,1024,gpu=2", "gpu=2 is not known; write gpu=1"},
               {"llm:4,512,8,8,1408,1024,gpu=1,simple_norms=2", "simple_norms=2 is not known; write simple_norms=1"},
               {"llm:4,512,7,7,1408,1024", "7 does not divide 512; 8 does"},
               {"llm:4,512,8,3,1408,1024", "3 does not divide 8; 2 does"},
               {"llm:4,8,9,9,16,16", "9 does not divide 8; 8 does"},
               {"llm:1000000,1000000,8,8,1000000,1000000", "the network has more than"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    sn_err err = SN_ERR_INIT;
    assert_null(sn_net_load(cases[i].spec, 1, 32, &err));
    assert_int_equal(err.code, SN_BAD_USAGE);
    assert_non_null(strstr(err.text, cases[i].says));
  }
}

static void adapters_pass_over_experts(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_net *net = sn_net_load("mixtral:layers=1", 1, 16, &err);
  must(&err);
  assert_true(sn_lora_wants_names(net));
  assert_null(sn_lora_apply(net, &(sn_lora){.rank = 4, .globs = ""}, &err));
  assert_int_equal(err.code, SN_BAD_USAGE);
  assert_non_null(strstr(err.text, "--lora '4:*_proj'"));
  sn_net_free(net);
  err = (sn_err)SN_ERR_INIT;
  net = sn_net_load("mixtral:layers=1+lora=4:*_proj", 1, 16, &err);
  must(&err);
  uint32_t adapters = 0;
  for (uint32_t i = 0; i < net->n_layers; i++) adapters += net->layers[i].tuning == SN_TUNED_ALWAYS;
  assert_int_equal(adapters, 2 * 4); /* of queries, keys, values and what they make */
  sn_net_free(net);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(keys_of_gemma),
      cmocka_unit_test(keys_of_experts),
      cmocka_unit_test(experts_share_with_as_many),
      cmocka_unit_test(memory_is_pytorch_s),
      cmocka_unit_test(memory_is_torchtitan_s),
      cmocka_unit_test(torchtitan_s_layers),
      cmocka_unit_test(torchtitan_s_bad_names),
      cmocka_unit_test(adapters_pass_over_experts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
