/* What Gemma 2 and Mixtral have beside Llama: capped scores and norms that multiply by 1 + w, experts. Keys of network
 * files, what MemTracker counts of transformers' modules (PyTorch 2.15.0, transformers 5.24.0,
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

/* `shared`: cosines and sines that all layers share, which are not modelled, among PyTorch's activations. */
typedef struct counted {
  const char *spec;
  uint32_t batch, tokens;
  sn_iteration iteration;
  sn_live live; /* PyTorch's: parameters, none, gradients, optimizer, activations, temporary */
  uint64_t shared;
} counted;

#define WITH(precision_)                                                                                               \
  { .precision = precision_, .optimizer = SN_OPTIMIZER_MOMENTUM }
static const counted rows[] = {
    {"gemma2:2b,layers=4", 4, 1024, WITH(SN_FP32), {3605160960, 0, 0, 3605160960, 14040933384, 8388608000}, 2097152},
    {"gemma2:2b,layers=2", 2, 512, WITH(SN_AMP_BF16), {2982233088, 0, 0, 2982233088, 3538555912, 2097152000}, 1048576},
    {"gemma2:2b,layers=4", 1, 4096, WITH(SN_BF16), {1802580480, 0, 0, 1802580480, 13520839688, 8388608000}, 4194304},
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
    sn_live want = rows[i].live;
    want.activations -= rows[i].shared;
    check_live(&live, &want);
    sn_net_free(net);
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
      cmocka_unit_test(adapters_pass_over_experts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
