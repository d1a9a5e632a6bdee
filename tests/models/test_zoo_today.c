/* Shapes, parameters and multiply-adds in the middle of today's networks: MobileNetV3, EfficientNet, ConvNeXt, U-Net,
 * and transformers. Their totals are in test_zoo.c. */
#include "tests/models/zoo_shapes.h"

/* Hugging Face's modules; ViT's are torchvision's. */
static void transformers(void **state) {
  (void)state;
  sn_net *gpt2 = load("gpt2", 4, 0), *bert = load("bert_base", 2, 128), *vit = load("vit_b_16", 1, 0);
  assert_shape(gpt2, "wte", 768, 1024, 1);
  assert_shape(gpt2, "h.0.attn.c_attn", 3 * 768, 1024, 1);
  assert_shape(gpt2, "h.11.mlp.act", 4 * 768, 1024, 1);
  assert_shape(gpt2, "lm_head", 50257, 1024, 1);
  assert_int_equal(find(gpt2, "wte")->parameters, 50257 * 768);
  assert_int_equal(find(gpt2, "lm_head")->parameters, 0); /* the embedding's */
  assert_int_equal(find(gpt2, "lm_head")->macs, UINT64_C(4) * 1024 * 768 * 50257);
  assert_int_equal(find(gpt2, "h.3.attn.sdpa")->macs, UINT64_C(4) * 2 * 1024 * 1024 * 768);
  assert_int_equal(gpt2->data_bytes, 4 * 1024 * 8);
  assert_int_equal(gpt2->label_bytes, 4 * 1024 * 4);
  assert_int_equal(count(gpt2, SN_ATTENTION), 12);
  assert_shape(bert, "encoder.layer.11.intermediate.dense", 3072, 128, 1);
  assert_shape(bert, "pooler.dense", 768, 1, 1);
  assert_int_equal(bert->parameters, 109482240); /* whatever the length */
  assert_int_equal(find(bert, "embeddings.token_type_embeddings")->parameters, 2 * 768);
  assert_shape(vit, "conv_proj", 768, 14, 14);
  assert_shape(vit, "class_token", 768, 197, 1);
  assert_shape(vit, "first", 768, 1, 1);
  sn_net_free(gpt2);
  sn_net_free(bert);
  sn_net_free(vit);
  sn_net *small = load("llama:layers=2,kv_heads=4", 1, 64), *large = load("llama:70b", 1, 512);
  assert_shape(small, "layers.1.self_attn.k_rotary", 512, 64, 1);
  assert_shape(small, "layers.1.self_attn.sdpa", 4096, 64, 1);
  assert_shape(large, "layers.79.mlp.mul", 28672, 512, 1);
  const uint64_t large_parameters = UINT64_C(68976648192);
  assert_int_equal(large->parameters, large_parameters);
  sn_net_free(small);
  sn_net_free(large);
  sn_net *middle = load("llama:13b", 1, 512);
  assert_int_equal(middle->parameters, UINT64_C(13015864320));
  sn_net_free(middle);
  sn_net *shallow = load("llama:70b,layers=2", 1, 64), *narrow = load("llama:hidden=512,heads=8,layers=1", 1, 64);
  assert_int_equal(shallow->parameters - 2 * 32000 * 8192 - 8192, (large_parameters - 2 * 32000 * 8192 - 8192) / 40);
  assert_shape(shallow, "layers.1.self_attn.k_rotary", 1024, 64, 1); /* as many keys as 70B has */
  assert_shape(narrow, "layers.0.self_attn.k_rotary", 512, 64, 1);   /* as many as heads */
  sn_net *patched = load("vit_b_16:patch=32", 1, 0),
         *roberta = load("bert_base:vocabulary=50265,positions=514", 1, 514);
  assert_int_equal(patched->parameters, 88224232);        /* torchvision's vit_b_32 */
  assert_int_equal(roberta->parameters, 124645632 + 768); /* RoBERTa has one kind of tokens */
  sn_net_free(patched);
  sn_net_free(roberta);
  sn_net *named = load("gpt2_medium", 2, 64), *written = load("gpt2:layers=24,hidden=1024,heads=16", 2, 64);
  assert_int_equal(named->parameters, written->parameters);
  assert_int_equal(named->n_layers, written->n_layers);
  sn_net_free(named);
  sn_net_free(written);
  sn_net_free(shallow);
  sn_net_free(narrow);
}

/* torchvision's modules: figure 3 of the paper. */
static void windowed(void **state) {
  (void)state;
  sn_net *net = load("swin_t", 2, 0), *large = load("swin_b", 1, 448);
  assert_shape(net, "features.0.0", 96, 56, 56);
  assert_shape(net, "features.1.1.attn.qkv", 288, 56, 56);
  assert_shape(net, "features.2.neighbours", 384, 28, 28);
  assert_shape(net, "features.3.0.mlp.1", 768, 28, 28);
  assert_shape(net, "features.7.1.add2", 768, 7, 7);
  const sn_layer *attention = find(net, "features.1.0.attn.sdpa");
  assert_int_equal(attention->parameters, 13 * 13 * 3);
  assert_int_equal(attention->macs, 2 * 2 * 56 * 56 * 49 * 96);
  assert_int_equal(attention->statistics_bytes, 2 * 56 * 56 * 49 * 3 * 4);
  assert_shape(large, "features.7.0.attn.sdpa", 1024, 14, 14);
  assert_int_equal(large->parameters, 87768224); /* whatever the image */
  sn_net_free(net);
  sn_net_free(large);
}

/* Hugging Face's modules. */
static void encoder_and_decoder(void **state) {
  (void)state;
  sn_net *net = load("t5_base", 2, 64);
  assert_shape(net, "encoder.block.11.layer.1.DenseReluDense.act", 3072, 64, 1);
  assert_shape(net, "decoder.block.11.layer.1.EncDecAttention.sdpa", 768, 64, 1);
  assert_shape(net, "lm_head", 32128, 64, 1);
  assert_int_equal(find(net, "encoder.block.0.layer.0.SelfAttention.sdpa")->parameters, 32 * 12);
  assert_int_equal(find(net, "encoder.block.1.layer.0.SelfAttention.sdpa")->parameters, 0);
  assert_true(find(net, "shared")->parameters == 32128 * 768 && find(net, "decoder.embed_tokens")->parameters == 0);
  assert_int_equal(count(net, SN_ATTENTION), 36);
  sn_net_free(net);
}

/* Figure 1 of the paper, padded. */
static void u_shaped(void **state) {
  (void)state;
  sn_net *net = load("unet", 2, 96);
  assert_shape(net, "inc.double_conv.5", 64, 96, 96);
  assert_shape(net, "down4.maxpool_conv.1.double_conv.5", 1024, 6, 6);
  assert_shape(net, "up1.up", 512, 12, 12);
  assert_shape(net, "up1.cat", 1024, 12, 12);
  assert_shape(net, "up4.cat", 128, 96, 96);
  assert_shape(net, "outc.conv", 2, 96, 96);
  assert_int_equal(net->parameters, 31037698); /* whatever the image */
  assert_int_equal(net->label_bytes, 2 * 96 * 96 * 4);
  sn_net_free(net);
}

/* Tables 1 and 2 of the MobileNetV3 paper, table 1 of EfficientNet's, table 9 of ConvNeXt's. */
static void squeezed_and_next(void **state) {
  (void)state;
  sn_net *mobile = load("mobilenet_v3_large", 1, 0), *b0 = load("efficientnet_b0", 1, 0);
  assert_shape(mobile, "features.0.2", 16, 112, 112);
  assert_shape(mobile, "features.4.block.2.fc1", 24, 1, 1);
  assert_shape(mobile, "features.4.mul", 72, 28, 28);
  assert_shape(mobile, "features.16.2", 960, 7, 7);
  assert_int_equal(find(mobile, "features.4.block.2.activation")->attr->act, SN_ACT_RELU);
  assert_int_equal(find(mobile, "features.4.block.2.scale_activation")->attr->act, SN_ACT_HARDSIGMOID);
  assert_int_equal(count(mobile, SN_JOIN), 10);
  assert_int_equal(count(mobile, SN_MUL), 8);
  assert_shape(b0, "features.1.0.block.1.fc1", 8, 1, 1);
  assert_shape(b0, "features.6.3.mul", 1152, 7, 7);
  assert_shape(b0, "features.8.2", 1280, 7, 7);
  assert_int_equal(count(b0, SN_MUL), 16);
  assert_int_equal(count(b0, SN_JOIN), 9);
  assert_int_equal(find(b0, "features.2.1.stochastic_depth")->mask_bytes, 4);
  sn_net_free(mobile);
  sn_net_free(b0);
  sn_net *next = load("convnext_tiny", 2, 0), *large = load("efficientnet_b7", 1, 0);
  assert_shape(next, "features.0.1", 96, 56, 56);
  assert_shape(next, "features.5.8.block.3", 4 * 384, 14, 14);
  assert_shape(next, "features.7.2.add", 768, 7, 7);
  assert_int_equal(find(next, "features.1.0.block.3")->parameters, 96 * 4 * 96 + 4 * 96);
  assert_int_equal(find(next, "features.1.0.scale")->parameters, 96);
  assert_int_equal(find(next, "features.1.0.block.2")->statistics_bytes, 2 * 2 * 56 * 56 * 4);
  assert_int_equal(count(next, SN_LAYER_NORM), 18 + 5);
  assert_shape(large, "features.8.2", 2560, 19, 19);
  sn_net_free(next);
  sn_net_free(large);
}

/* As transformers 5 counts the modules of their configurations. */
static void decoders(void **state) {
  (void)state;
  static const struct {
    const char *spec;
    uint64_t parameters;
  } cases[] = {{"llama3:8b", 8030261248},    {"llama3:70b", 70553706496},   {"llama3:1b", 1235814400},
               {"llama3:3b", 3212749824},    {"mistral:7b", 7248023552},    {"mistral:7b-v0.2", 7241732096},
               {"qwen2.5:0.5b", 494032768},  {"qwen2.5:1.5b", 1543714304},  {"qwen2.5:3b", 3085938688},
               {"qwen2.5:7b", 7615616512},   {"qwen2.5", 7615616512},       {"qwen2.5:14b", 14770033664},
               {"qwen2.5:32b", 32763876352}, {"qwen2.5:72b", 72706203648},  {"phi3:mini", 3821079552},
               {"phi3:medium", 13960238080}, {"gemma2:2b", 2614341888},     {"gemma2:9b", 9241705984},
               {"gemma2:27b", 27227128320},  {"mixtral:8x7b", 46702792704}, {"mixtral:8x22b", 140630071296}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    sn_net *net = load(cases[i].spec, 1, 16);
    if (net->parameters != cases[i].parameters)
      fail_msg("%s: %llu parameters", cases[i].spec, (unsigned long long)net->parameters);
    assert_true(sn_net_is_sequence(cases[i].spec));
    sn_net_free(net);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(decoders),     cmocka_unit_test(squeezed_and_next), cmocka_unit_test(u_shaped),
      cmocka_unit_test(transformers), cmocka_unit_test(windowed),          cmocka_unit_test(encoder_and_decoder),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
