/* What people call networks, and which network of the zoo that is. */
#include "models/zoo/resolve.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static void names(void **state) {
  (void)state;
  static const struct {
    const char *spec, *paper, *torchvision; /* NULL: refused */
  } cases[] = {
      {"resnet50", "resnet50", "tv_resnet50"},
      {"ResNet-50", "resnet50", "tv_resnet50"},
      {"tv_resnet50", "tv_resnet50", "tv_resnet50"},
      {"TV-ResNet50", "tv_resnet50", "tv_resnet50"},
      {"paper:resnet50", "resnet50", "resnet50"},
      {"tv:resnet50", "tv_resnet50", "tv_resnet50"},
      {"torchvision:VGG-16", "tv_vgg16", "tv_vgg16"},
      {"vgg 19", "vgg19", "tv_vgg19"},
      {"DenseNet_121", "densenet121", "tv_densenet121"},
      {"inception-v3", "inception_v3", "tv_inception_v3"},
      {"alexnet", "alexnet", "tv_alexnet"},
      {"mobilenet_v2", "tv_mobilenet_v2", "tv_mobilenet_v2"},
      {"r3d_18:frames=32", "tv_r3d_18:frames=32", "tv_r3d_18:frames=32"},
      {"inception_v4", "inception_v4", "inception_v4"},
      {"ViT-B-16", "vit_b_16", "vit_b_16"},
      {"GPT2-XL", "gpt2_xl", "gpt2_xl"},
      {"resnet:n1=3,n2=4", "resnet:n1=3,n2=4", "resnet:n1=3,n2=4"},
      {"ResNet50+lora=8:layer1*", "resnet50+lora=8:layer1*", "tv_resnet50+lora=8:layer1*"},
      {"./ResNet-50.json", "./ResNet-50.json", "./ResNet-50.json"},
      {"mine.onnx:loss=mse", "mine.onnx:loss=mse", "mine.onnx:loss=mse"},
      {"nobody-knows", "nobody-knows", "nobody-knows"},
      {"llama3:8b", "llama3:8b", "llama3:8b"},
      {"Llama3-8B", "llama3:8b", "llama3:8b"},
      {"llama3.1:70B,layers=4", "llama3:70b,layers=4", "llama3:70b,layers=4"},
      {"llama-2-7b", "llama:7b", "llama:7b"},
      {"llama:layers=2", "llama:layers=2", "llama:layers=2"},
      {"LLM:2,8,4,2,16,32", "llm:2,8,4,2,16,32", "llm:2,8,4,2,16,32"},
      {"Qwen2.5:0.5B+lora=8", "qwen2.5:0.5b+lora=8", "qwen2.5:0.5b+lora=8"},
      {"mistral-7b-v0.2", "mistral:7b-v0.2", "mistral:7b-v0.2"},
      {"meta-llama/Meta-Llama-3-8B-Instruct", "llama3:8b", "llama3:8b"},
      {"meta-llama/Llama-3.2-1B", "llama3:1b", "llama3:1b"},
      {"meta-llama/Llama-2-13b-chat-hf", "llama:13b", "llama:13b"},
      {"mistralai/Mistral-7B-Instruct-v0.3", "mistral:7b", "mistral:7b"},
      {"Qwen/Qwen2.5-72B-Instruct", "qwen2.5:72b", "qwen2.5:72b"},
      {"openai-community/gpt2-xl", "gpt2_xl", "gpt2_xl"},
      {"google-bert/bert-base-uncased", "bert_base", "bert_base"},
      {"bert-large-cased", "bert_large:vocabulary=28996", "bert_large:vocabulary=28996"},
      {"google-bert/bert-base-cased+lora=8", "bert_base:vocabulary=28996+lora=8", "bert_base:vocabulary=28996+lora=8"},
      {"mistralai/Mistral-7B-v0.1", "mistral:7b-v0.2", "mistral:7b-v0.2"},
      {"mistralai/Mistral-7B-Instruct-v0.2", "mistral:7b-v0.2", "mistral:7b-v0.2"},
      {"microsoft/resnet-50", "resnet50", "tv_resnet50"},
      {"somebody/nothing", "somebody/nothing", "somebody/nothing"},
      {"a/b/Llama-2-7b", "a/b/Llama-2-7b", "a/b/Llama-2-7b"},
      {"gemma2:2b", "gemma2:2b", "gemma2:2b"},
      {"google/gemma-2-9b-it", "gemma2:9b", "gemma2:9b"},
      {"phi3:mini", "phi3:mini", "phi3:mini"},
      {"microsoft/Phi-3.5-mini-instruct", "phi3:mini", "phi3:mini"},
      {"microsoft/Phi-3-mini-4k-instruct", "phi3:mini", "phi3:mini"},
      {"mixtral:8x7B", "mixtral:8x7b", "mixtral:8x7b"},
      {"mistralai/Mixtral-8x7B-Instruct-v0.1", "mixtral:8x7b", "mixtral:8x7b"},
      {"mixtral-8x7b-v0.1", "mixtral:8x7b", "mixtral:8x7b"},
      {"meta-llama/Llama-3.3-70B-Instruct", "llama3:70b", "llama3:70b"},
      {"gpt2:medium", "gpt2_medium", "gpt2_medium"},
      {"BERT:large+lora=8", "bert_large+lora=8", "bert_large+lora=8"},
      {"resnet:50", "resnet50", "tv_resnet50"},
      {"tv:lenet", NULL, NULL},
      {"paper:tv_vgg16", NULL, NULL},
      {"paper:mobilenet_v2", NULL, NULL}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    for (int origin = 0; origin < 2; origin++) {
      const char *wanted = origin ? cases[i].torchvision : cases[i].paper;
      char text[SN_NET_SPEC] = "";
      sn_err err = SN_ERR_INIT;
      sn_status status = sn_net_resolve(cases[i].spec, (sn_net_origin)origin, text, &err);
      assert_int_equal(status, wanted ? SN_OK : SN_BAD_USAGE);
      if (wanted) assert_string_equal(text, wanted);
    }
}

/* The canonical name of every network stays what it is, for papers, and of those with one origin for both. */
static void canonical(void **state) {
  (void)state;
  uint32_t count;
  const sn_zoo_entry *entries = sn_zoo_entries(&count);
  for (uint32_t i = 0; i < count; i++) {
    char text[SN_NET_SPEC];
    sn_err err = SN_ERR_INIT;
    assert_int_equal(sn_net_resolve(entries[i].name, SN_NETS_OF_PAPERS, text, &err), SN_OK);
    assert_string_equal(text, entries[i].name);
    assert_int_equal(sn_net_resolve(entries[i].name, SN_NETS_OF_TORCHVISION, text, &err), SN_OK);
    assert_string_equal(text + (strncmp(text, "tv_", 3) == 0 && strncmp(entries[i].name, "tv_", 3) != 0 ? 3 : 0),
                        entries[i].name);
    assert_true(sn_net_is_known(entries[i].name));
  }
}

static void too_long(void **state) {
  (void)state;
  char *spec = malloc(2 * SN_NET_SPEC), text[SN_NET_SPEC];
  assert_non_null(spec);
  memset(spec, 'a', 2 * SN_NET_SPEC);
  spec[2 * SN_NET_SPEC - 1] = '\0';
  sn_err err = SN_ERR_INIT;
  assert_int_equal(sn_net_resolve(spec, SN_NETS_OF_PAPERS, text, &err), SN_BAD_USAGE);
  free(spec);
}

static void foreign(void **state) {
  (void)state;
  static const char *const files[] = {"train.py", "model.pt", "a/b/weights.safetensors", "x.PTH", "n.ipynb"};
  static const char *const ours[] = {"mine.json", "mine.onnx", "resnet50", ".py", "py", "./x.json"};
  for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
    assert_non_null(sn_net_foreign(files[i]));
    assert_false(sn_net_is_known(files[i]));
    sn_err err = SN_ERR_INIT;
    assert_null(sn_net_load(files[i], 1, 0, &err));
    assert_int_equal(err.code, SN_BAD_USAGE);
    assert_non_null(strstr(err.text, "docs/record.md"));
  }
  for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++) assert_null(sn_net_foreign(ours[i]));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(names),
      cmocka_unit_test(canonical),
      cmocka_unit_test(too_long),
      cmocka_unit_test(foreign),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
