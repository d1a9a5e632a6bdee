/* LoRA (models/build/lora.h): what is put into a network, who is trained, what Hugging Face's peft 0.21.2 makes of its
 * modules under PyTorch 2.15.0's MemTracker (bench/pytorch_transformers.py --lora), and what is refused. */
#include "models/build/lora.h"
#include "models/zoo/zoo.h"
#include "sim/ask/result.h"
#include "sim/ask/simulate.h"
#include "sim/graph/freeze.h"
#include "sim/graph/precision.h"
#include "sim/graph/route.h"
#include "tests/support/pipeline.h"
#include "tests/support/step_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static sn_net *load_sequence(const char *spec, uint32_t batch, uint32_t sequence) {
  sn_err err = SN_ERR_INIT;
  sn_net *net = sn_net_load(spec, batch, sequence, &err);
  must(&err);
  return net;
}

/* The first and the second are figures that peft's print_trainable_parameters() is known for. */
static void parameters(void **state) {
  (void)state;
  static const struct {
    const char *spec;
    uint64_t all, trained;
    const char *freeze;
  } cases[] = {
      {"llama:7b+lora=8:*q_proj,*v_proj", 6742609920, 4194304, ""},
      {"gpt2+lora=8:*c_attn", 124734720, 294912, ""},
      {"gpt2+lora=1:*c_attn", 124476672, 36864, ""},
      {"bert_base+lora=8:*query,*value", 109777152, 294912, ""},
      /* what --freeze does not name is trained too, but what is behind an adapter: the pooler here */
      {"bert_base+lora=8:*query,*value", 109777152, 294912 + 768 * 769, "embeddings*,encoder*"},
      {"tv_resnet50+lora=4:fc", 25557032 + 4 * (2048 + 1000), 4 * (2048 + 1000), ""},
      {"lenet+lora=8", 431080 + 8 * (800 + 500), 8 * (800 + 500), ""},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    sn_net *net = load_sequence(cases[i].spec, 1, 0);
    assert_string_equal(net->name, cases[i].spec);
    assert_true(net->adapted);
    assert_int_equal(net->parameters, cases[i].all);
    assert_int_equal(sn_freeze_trained(cases[i].freeze, net), cases[i].trained);
    sn_net_free(net);
  }
}

/* Only the factors keep their inputs; backward ends at the adapter, since what is before it is frozen. */
static void steps(void **state) {
  (void)state;
  static const char *const expected[] = {
      "softmax backward softmax.y:r softmax.scratch:w softmax.dx:w",
      "fc2 backward softmax.dx:r fc2.dx:w",
      "relu1 backward fc2.dx:r fc1.lora_add.y:r relu1.dx:w",
      "fc1.lora_scale backward relu1.dx:r fc1.lora_scale.dx:w",
      "fc1.lora_B backward fc1.lora_scale.dx:r fc1.lora_A.y:r fc1.lora_B.dx:w fc1.lora_B.dw:w",
      "fc1.lora_A backward fc1.lora_B.dx:r pool2.y:r fc1.lora_A.dw:w",
      "fc1.lora_A update fc1.lora_A.dw:r softmax.saved:r",
  };
  const uint32_t count = sizeof expected / sizeof expected[0];
  sn_err err = SN_ERR_INIT;
  sn_net *net = load_sequence("lenet+lora=8", 2, 0);
  const sn_layer *scale = named(net, "fc1.lora_scale");
  assert_true(scale->op == SN_ACT && scale->attr->act == SN_ACT_TIMES && scale->attr->slope == 1);
  assert_int_equal(named(net, "fc1.lora_A")->parameters, 8 * 800);
  sn_route *route = sn_route_new(net, SN_DIALECT_PYTORCH, SN_ORDER_ROUTE, &err);
  must(&err);
  assert_int_equal(route->n_steps, route->first_backward + count + 1);
  for (uint32_t i = 0; i < count; i++) check_step(route, route->first_backward + i, expected[i]);
  sn_route_free(route);
  for (sn_dialect_id d = 0; d < SN_DIALECTS; d++) {
    route = sn_route_new(net, d, SN_ORDER_ROUTE, &err);
    assert_true(route ? sn_dialect_of(d)->eager : err.code == SN_BAD_USAGE);
    sn_route_free(route);
    err = (sn_err)SN_ERR_INIT;
  }
  sn_net_free(net);
}

typedef struct row {
  const char *spec;
  uint32_t batch, sequence;
  sn_optimizer optimizer;
  sn_precision precision;
  uint64_t total;  /* PyTorch's */
  int64_t between; /* ours beyond that */
} row;

/* What is between them is not of adapters (docs/pytorch.md): 16 bytes of seeds a fused attention, BERT's buffers, and
 * those of Llama's angles. */
static const row rows[] = {
    {"gpt2+lora=8:*c_attn", 4, 1024, SN_OPTIMIZER_ADAMW, SN_FP32, 6524695656, 12 * 16},
    {"gpt2+lora=8:*c_attn", 4, 1024, SN_OPTIMIZER_ADAMW, SN_AMP_BF16, 6088534632, 12 * 16},
    {"gpt2:loss=cross_entropy+lora=8:*c_attn", 4, 1024, SN_OPTIMIZER_ADAMW, SN_AMP_BF16, 5676829292, 12 * 16 - 4},
    {"bert_base+lora=8:*query,*value", 8, 512, SN_OPTIMIZER_ADAMW, SN_FP32, 2281727240, 12 * 16 - 8192},
    {"llama:layers=2+lora=8:*q_proj,*v_proj", 4, 512, SN_OPTIMIZER_ADAMW, SN_FP32, 4469441064, 2 * 16 - 512},
    {"llama:layers=2+lora=16", 4, 512, SN_OPTIMIZER_ADAMW8BIT, SN_FP32, 4730403592, 2 * 16 - 512},
    {"gpt2+lora=8,dropout=0.05:*c_attn", 4, 1024, SN_OPTIMIZER_ADAMW, SN_FP32, 6559298664, 12 * 16},
    {"gpt2+lora=8;dropout=0.05:*c_attn", 4, 1024, SN_OPTIMIZER_ADAMW, SN_AMP_BF16, 6123137640, 12 * 16},
    {"llama:layers=2+lora=8,dropout=0.05:*q_proj,*v_proj", 4, 512, SN_OPTIMIZER_ADAMW, SN_BF16, 2745672232,
     2 * 16 - 512},
};

static void live_bytes(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    const row *r = &rows[i];
    sn_err err = SN_ERR_INIT;
    sn_net *net = load_sequence(r->spec, r->batch, r->sequence);
    sn_device gpu = load_gpu("h200");
    sn_strategy s = parse_strategy("pytorch");
    sn_options options = SN_OPTIONS_INIT;
    options.iteration = (sn_iteration){.optimizer = r->optimizer, .precision = r->precision};
    sn_run *run = sn_simulate(net->name, net, &gpu, &s, 1, &options, &err);
    must(&err);
    int64_t off = (int64_t)(sn_live_total(&run->results[0].live) - r->total);
    if (off != r->between) fail_msg("%s: %" PRId64 " off, not %" PRId64, r->spec, off, r->between);
    sn_run_free(run);
    sn_net_free(net);
  }
}

/* bitsandbytes' Params4bit with double quantisation: two weights a byte, a byte of scale for each 64, four bytes for
 * each 256 of those, an offset, and tables of 16 numbers and of 256, each layer's own. */
static void nf4_bytes(void **state) {
  (void)state;
  assert_int_equal(sn_nf4_bytes(4096 * 4096), 4096 * 4096 / 2 + 262144 + 1024 * 4 + 4 + 16 * 4 + 256 * 4);
  assert_int_equal(sn_nf4_bytes(256 * 512), 68708); /* bitsandbytes 0.50.2 on the CPU */
  assert_int_equal(sn_nf4_bytes(65), 33 + 2 + 4 + 4 + 64 + 1024);
  sn_err err = SN_ERR_INIT;
  sn_net *net = load_sequence("llama:7b+lora=8;nf4:*q_proj", 1, 128);
  uint64_t narrow = 32 * (4 * sn_nf4_bytes(4096 * 4096) + 3 * sn_nf4_bytes(4096 * 11008));
  uint64_t adapters = 32 * 8 * (4096 + 4096), plain = 2 * 32000 * 4096 + (2 * 32 + 1) * 4096;
  assert_int_equal(sn_persistent_of(net, SN_DIALECT_PYTORCH, (sn_iteration){.precision = SN_BF16}).parameters,
                   narrow + 2 * (adapters + plain));
  assert_int_equal(sn_freeze_trained("", net), adapters);
  assert_int_equal(sn_freeze_trained("embed*", net),
                   adapters + 4096 * (2 * 32 + 1) + 32000 * 4096); /* never the 4 bits */
  sn_net_free(net);
  must(&err);
}

/* Both passes make an FC's weights anew in the product's width, and drop them. */
static void dequantized(void **state) {
  (void)state;
  static const struct {
    sn_precision precision;
    uint64_t width;
  } cases[] = {{SN_FP32, 4}, {SN_BF16, 2}, {SN_AMP_BF16, 2}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    sn_err err = SN_ERR_INIT;
    sn_net *net = load_sequence("lenet+lora=8;nf4", 2, 0);
    const sn_iteration iteration = {.precision = cases[i].precision};
    sn_route *route = sn_route_new_for(net, SN_DIALECT_PYTORCH, SN_ORDER_ROUTE, iteration, NULL, &err);
    must(&err);
    uint32_t made = 0;
    for (uint32_t t = 0; t < route->n_tensors; t++)
      made += route->tensors[t].role == SN_SCRATCH && route->tensors[t].bytes == 800 * 500 * cases[i].width;
    assert_int_equal(made, 1); /* backward ends at the adapter */
    sn_route_free(route);
    sn_net_free(net);
  }
}

static void refusals(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"gpt2+lora=0", "a rank of 0 is not from 1"},
      {"gpt2+lora=1000000000", "a rank of 1000000000 is not from 1"},
      {"gpt2+lora=99999999999999999999999", "is not from 1"},
      {"gpt2+lora=769", "a rank of 769 is not low for h.0.attn.c_attn, which makes 2304 numbers of 768; at most 768"},
      {"gpt2+lora=", "\"\" is not a rank such as 8"},
      {"gpt2+lora=-8", "\"-8\" is not a rank such as 8"},
      {"gpt2+lora=8x", "\"8x\" is not a rank such as 8"},
      {"gpt2+lora=8:", "a name is empty"},
      {"gpt2+lora=8;nf5", "\"nf5\" behind the rank is neither nf4 nor dropout=SHARE"},
      {"gpt2+lora=8,dropout=1", "\"dropout=1\" behind the rank"},
      {"gpt2+lora=8,dropout=", "\"dropout=\" behind the rank"},
      {"gpt2+lora=8,dropout=nan", "\"dropout=nan\" behind the rank"},
      {"gpt2+lora=8,,nf4", "\"\" behind the rank"},
      {"gpt2+lora=8:*c_atn", "no FC of gpt2 with parameters is called \"*c_atn\""},
      {"gpt2+lora=8:lm_head", "no FC of gpt2 with parameters"}, /* its weights are the embedding's */
      {"tv_resnet50+lora=8", "--lora 8:fc names one of them"},
      {"unet+lora=8", "unet has no FC with parameters of its own"},
      {"gtp2+lora=8", "unknown network \"gtp2\" (did you mean \"gpt2\"?)"},
      {"gpt2+lora=8:a*,b*,c*,d*,e*,f*,g*,h*,i*,j*,k*,l*,m*,n*,o*,p*,q*,r*,s*,t*,u*,v*,w*,x*,y*,z*,a*,b*,c*,d*,e*,f*,g*,"
       "h*,"
       "i*,j*,k*,l*,m*,n*,o*,p*,q*",
       "more than 120 bytes"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    sn_err err = SN_ERR_INIT;
    assert_null(sn_net_load(cases[i][0], 1, 0, &err));
    assert_int_equal(err.code, SN_BAD_USAGE);
    if (!strstr(err.text, cases[i][1])) fail_msg("\"%s\": %s", cases[i][0], err.text);
  }
}

/* What a network is called with adapters is taken apart where its file or family is meant. */
static void names(void **state) {
  (void)state;
  char title[SN_NET_NAME];
  assert_string_equal(sn_net_lora("a+lora=8:x"), "8:x");
  assert_null(sn_net_lora("a+lor=8"));
  assert_true(sn_net_is_sequence("gpt2+lora=8") && sn_net_is_sequence("llama:layers=2+lora=8:*proj"));
  assert_true(sn_net_is_file("a.json+lora=8") && sn_net_is_file("b/c+lora=8") && !sn_net_is_file("gpt2+lora=8:a/b"));
  assert_string_equal(sn_net_depth_name("a.json+lora=8"), "repeat");
  assert_string_equal(sn_net_depth_name("resnet+lora=8:fc"), "n3");
  assert_string_equal(sn_net_title("a.json+lora=8", "a+lora=8", title, sizeof title), "a.json+lora=8 (a)");
  sn_err err = SN_ERR_INIT;
  sn_net *net = sn_net_load_depth("resnet+lora=8:*", 7, 1, 0, &err);
  must(&err);
  sn_net_free(net);
}

/* Read again without adapters, declared names and sizes are what they were. */
static void same_but_for_adapters(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_net *plain = load_sequence("t5_base", 2, 64);
  const sn_lora lora = {.rank = 4, .globs = "*"};
  sn_net *net = sn_lora_apply(plain, &lora, &err);
  must(&err);
  for (uint32_t i = 0; i < plain->n_layers; i++) {
    const sn_layer *was = &plain->layers[i], *is = named(net, was->name);
    assert_int_equal(is->op, was->op);
    assert_memory_equal(&is->out, &was->out, sizeof was->out);
    assert_int_equal(is->parameters, was->parameters);
  }
  assert_int_equal(sn_freeze_trained("*", net), net->parameters - plain->parameters);
  sn_net_free(net);
  sn_net_free(plain);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(parameters),  cmocka_unit_test(steps),
      cmocka_unit_test(live_bytes),  cmocka_unit_test(nf4_bytes),
      cmocka_unit_test(dequantized), cmocka_unit_test(refusals),
      cmocka_unit_test(names),       cmocka_unit_test(same_but_for_adapters),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
