/* The zoo's table of networks and sn_net_load(), which turns what the user typed into a network; see zoo.h. The
 * families are in files of their own. Cost: one pass over the table. */
#include "models/zoo/zoo.h"
#include "models/net/globs.h"

#include "base/checked.h"
#include "base/text.h"
#include "base/units.h"
#include "models/build/lora.h"
#include "models/op/op.h"
#include "models/zoo/resolve.h"
#include "models/zoo/zoo_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const sn_zoo_entry entries[] = {
    {"lenet", "LeNet of Caffe: MNIST, 28x28x1", 28, sn__zoo_lenet, NULL},
    {"alexnet", "AlexNet (NIPS 2012) as one ungrouped tower", 227, sn__zoo_alexnet, NULL},
    {"vgg16", "VGG16 (ICLR 2015), configuration D", 224, sn__zoo_vgg, (const uint32_t[]){2, 2, 3, 3, 3}},
    {"vgg19", "VGG19 (ICLR 2015), configuration E", 224, sn__zoo_vgg, (const uint32_t[]){2, 2, 4, 4, 4}},
    {"resnet18", "ResNet-18 (CVPR 2016), basic units", 224, sn__zoo_resnet,
     &(const sn__resnet){.units = {2, 2, 2, 2}, .basic = true}},
    {"resnet34", "ResNet-34 (CVPR 2016), basic units", 224, sn__zoo_resnet,
     &(const sn__resnet){.units = {3, 4, 6, 3}, .basic = true}},
    {"resnet50", "ResNet-50 (CVPR 2016), stride on the first 1x1", 224, sn__zoo_resnet,
     &(const sn__resnet){.units = {3, 4, 6, 3}}},
    {"resnet101", "ResNet-101 (CVPR 2016), stride on the first 1x1", 224, sn__zoo_resnet,
     &(const sn__resnet){.units = {3, 4, 23, 3}}},
    {"resnet152", "ResNet-152 (CVPR 2016), stride on the first 1x1", 224, sn__zoo_resnet,
     &(const sn__resnet){.units = {3, 8, 36, 3}}},
    {"resnet", "ResNet of any depth: resnet:n1=3,n2=4,n3=6,n4=3 (bottleneck units per stage)", 224, sn__zoo_resnet_any,
     &(const sn__resnet){.units = {3, 4, 6, 3}}},
    {"resnet_cifar", "ResNet for 32x32 images (CVPR 2016): resnet_cifar:n=8 (basic units per stage; 6 n + 2 layers)",
     32, sn__zoo_resnet_cifar, &(const uint32_t){8}},
    {"dcgan", "DCGAN (ICLR 2016) on MNIST: generator and discriminator, from 100 numbers", 1, sn__zoo_dcgan, NULL},
    {"inception_v3", "Inception-v3 (CVPR 2016) without the auxiliary classifier", 299, sn__zoo_inception_v3, NULL},
    {"inception_v4", "Inception-v4 (AAAI 2017)", 299, sn__zoo_inception_v4, NULL},
    {"densenet121", "DenseNet-121 (CVPR 2017), growth 32", 224, sn__zoo_densenet, (const uint32_t[]){6, 12, 24, 16}},
    {"densenet169", "DenseNet-169 (CVPR 2017), growth 32", 224, sn__zoo_densenet, (const uint32_t[]){6, 12, 32, 32}},
    {"densenet201", "DenseNet-201 (CVPR 2017), growth 32", 224, sn__zoo_densenet, (const uint32_t[]){6, 12, 48, 32}},
    {"inception_bn", "Inception-BN (ICML 2015) of MXNet's note on memory", 224, sn__zoo_inception_bn, NULL},
    {"tv_alexnet", "torchvision's AlexNet", 224, sn__zoo_tv_alexnet, NULL},
    {"tv_vgg16", "torchvision's VGG16", 224, sn__zoo_tv_vgg, (const uint32_t[]){2, 2, 3, 3, 3}},
    {"tv_vgg19", "torchvision's VGG19", 224, sn__zoo_tv_vgg, (const uint32_t[]){2, 2, 4, 4, 4}},
    {"tv_resnet18", "torchvision's ResNet-18", 224, sn__zoo_tv_resnet,
     &(const sn__resnet){.units = {2, 2, 2, 2}, .basic = true}},
    {"tv_resnet50", "torchvision's ResNet-50, stride on the 3x3", 224, sn__zoo_tv_resnet,
     &(const sn__resnet){.units = {3, 4, 6, 3}}},
    {"tv_resnet101", "torchvision's ResNet-101, stride on the 3x3", 224, sn__zoo_tv_resnet,
     &(const sn__resnet){.units = {3, 4, 23, 3}}},
    {"tv_resnet152", "torchvision's ResNet-152, stride on the 3x3", 224, sn__zoo_tv_resnet,
     &(const sn__resnet){.units = {3, 8, 36, 3}}},
    {"tv_inception_v3", "torchvision's Inception-v3 without the auxiliary classifier", 299, sn__zoo_tv_inception_v3,
     NULL},
    {"tv_densenet121", "torchvision's DenseNet-121", 224, sn__zoo_tv_densenet, (const uint32_t[]){6, 12, 24, 16}},
    {"tv_mobilenet_v2", "torchvision's MobileNetV2", 224, sn__zoo_tv_mobilenet_v2, NULL},
    {"tv_squeezenet1_1", "torchvision's SqueezeNet 1.1", 224, sn__zoo_tv_squeezenet, NULL},
    {"tv_r3d_18", "torchvision's R3D-18 (CVPR 2018), clips of 16 frames: tv_r3d_18:frames=32", 112, sn__zoo_tv_video,
     &(const sn__video){SN__VIDEO_CUBE, SN__VIDEO_CUBE}},
    {"tv_mc3_18", "torchvision's MC3-18 (CVPR 2018), 3x3x3 in the first stage only: tv_mc3_18:frames=32", 112,
     sn__zoo_tv_video, &(const sn__video){SN__VIDEO_CUBE, SN__VIDEO_PLANE}},
    {"tv_r2plus1d_18", "torchvision's R(2+1)D-18 (CVPR 2018), 1x3x3 and 3x1x1: tv_r2plus1d_18:frames=32", 112,
     sn__zoo_tv_video, &(const sn__video){SN__VIDEO_SPLIT, SN__VIDEO_SPLIT}},
    {"resnext50_32x4d", "ResNeXt-50 (CVPR 2017), 32 groups", 224, sn__zoo_tv_resnet,
     &(const sn__resnet){.units = {3, 4, 6, 3}, .groups = 32, .group_width = 4}},
    {"resnext101_32x8d", "ResNeXt-101 (CVPR 2017), 32 groups", 224, sn__zoo_tv_resnet,
     &(const sn__resnet){.units = {3, 4, 23, 3}, .groups = 32, .group_width = 8}},
    {"wide_resnet50_2", "Wide ResNet-50 (BMVC 2016), inner convolutions twice as wide", 224, sn__zoo_tv_resnet,
     &(const sn__resnet){.units = {3, 4, 6, 3}, .group_width = 128}},
    {"wide_resnet101_2", "Wide ResNet-101 (BMVC 2016), inner convolutions twice as wide", 224, sn__zoo_tv_resnet,
     &(const sn__resnet){.units = {3, 4, 23, 3}, .group_width = 128}},
    {"mobilenet_v3_small", "MobileNetV3 (ICCV 2019), small", 224, sn__zoo_mobilenet_v3, &sn__mobilenet_v3_small},
    {"mobilenet_v3_large", "MobileNetV3 (ICCV 2019), large", 224, sn__zoo_mobilenet_v3, &sn__mobilenet_v3_large},
    {"efficientnet_b0", "EfficientNet-B0 (ICML 2019)", 224, sn__zoo_efficientnet,
     &(const sn__efficientnet){10, 10, 0.2}},
    {"efficientnet_b1", "EfficientNet-B1 (ICML 2019)", 240, sn__zoo_efficientnet,
     &(const sn__efficientnet){10, 11, 0.2}},
    {"efficientnet_b2", "EfficientNet-B2 (ICML 2019)", 288, sn__zoo_efficientnet,
     &(const sn__efficientnet){11, 12, 0.3}},
    {"efficientnet_b3", "EfficientNet-B3 (ICML 2019)", 300, sn__zoo_efficientnet,
     &(const sn__efficientnet){12, 14, 0.3}},
    {"efficientnet_b4", "EfficientNet-B4 (ICML 2019)", 380, sn__zoo_efficientnet,
     &(const sn__efficientnet){14, 18, 0.4}},
    {"efficientnet_b5", "EfficientNet-B5 (ICML 2019)", 456, sn__zoo_efficientnet,
     &(const sn__efficientnet){16, 22, 0.4}},
    {"efficientnet_b6", "EfficientNet-B6 (ICML 2019)", 528, sn__zoo_efficientnet,
     &(const sn__efficientnet){18, 26, 0.5}},
    {"efficientnet_b7", "EfficientNet-B7 (ICML 2019)", 600, sn__zoo_efficientnet,
     &(const sn__efficientnet){20, 31, 0.5}},
    {"convnext_tiny", "ConvNeXt-T (CVPR 2022)", 224, sn__zoo_convnext, &(const sn__convnext){{3, 3, 9, 3}, 96, 0.1}},
    {"convnext_small", "ConvNeXt-S (CVPR 2022)", 224, sn__zoo_convnext, &(const sn__convnext){{3, 3, 27, 3}, 96, 0.4}},
    {"convnext_base", "ConvNeXt-B (CVPR 2022)", 224, sn__zoo_convnext, &(const sn__convnext){{3, 3, 27, 3}, 128, 0.5}},
    {"convnext_large", "ConvNeXt-L (CVPR 2022)", 224, sn__zoo_convnext, &(const sn__convnext){{3, 3, 27, 3}, 192, 0.5}},
    {"unet", "U-Net (MICCAI 2015), padded, with batch norms; two classes a pixel", 512, sn__zoo_unet, NULL},
    {"vit_b_16", "ViT-B/16 (ICLR 2021); also vit_b_16:layers=12,hidden=768,heads=12,ffn=3072,classes=1000,patch=16",
     224, sn__zoo_vit, &(const sn__transformer){12, 768, 12}},
    {"vit_l_16", "ViT-L/16 (ICLR 2021)", 224, sn__zoo_vit, &(const sn__transformer){24, 1024, 16}},
    {"swin_t", "Swin-T (ICCV 2021)", 224, sn__zoo_swin, &(const sn__swin){{2, 2, 6, 2}, 96, 0.2}},
    {"swin_s", "Swin-S (ICCV 2021)", 224, sn__zoo_swin, &(const sn__swin){{2, 2, 18, 2}, 96, 0.3}},
    {"swin_b", "Swin-B (ICCV 2021)", 224, sn__zoo_swin, &(const sn__swin){{2, 2, 18, 2}, 128, 0.5}},
    {"bert_base", "BERT-base (NAACL 2019) without a head, 512 tokens; takes what gpt2 takes", 512, sn__zoo_bert,
     &(const sn__transformer){12, 768, 12}},
    {"bert_large", "BERT-large (NAACL 2019) without a head, 512 tokens", 512, sn__zoo_bert,
     &(const sn__transformer){24, 1024, 16}},
    {"gpt2",
     "GPT-2 (2019), 1,024 tokens; also gpt2:layers=12,hidden=768,heads=12,ffn=3072,vocabulary=50257,positions=1024",
     1024, sn__zoo_gpt2, &(const sn__transformer){12, 768, 12}},
    {"gpt2_medium", "GPT-2 medium, 1,024 tokens", 1024, sn__zoo_gpt2, &(const sn__transformer){24, 1024, 16}},
    {"gpt2_large", "GPT-2 large, 1,024 tokens", 1024, sn__zoo_gpt2, &(const sn__transformer){36, 1280, 20}},
    {"gpt2_xl", "GPT-2 XL, 1,024 tokens", 1024, sn__zoo_gpt2, &(const sn__transformer){48, 1600, 25}},
    {"t5_base", "T5-base (JMLR 2020), 512 tokens to 512 tokens", 512, sn__zoo_t5,
     &(const sn__transformer){12, 768, 12}},
    {"llama",
     "Llama 2 (2023), 4,096 tokens: llama:7b, 13b, 70b, 70b,layers=8, "
     "llama:layers=32,hidden=4096,heads=32,kv_heads=32,ffn=11008,vocabulary=32000",
     4096, sn__zoo_llama, &sn__llama},
    {"llama3", "Llama 3, 3.1 and 3.2 (2024), 4,096 tokens: llama3:8b, 70b, 1b, 3b; takes what llama takes", 4096,
     sn__zoo_llama, &sn__llama3},
    {"mistral", "Mistral (2023), 4,096 tokens: mistral:7b, which is 0.3, and 7b-v0.2; takes what llama takes", 4096,
     sn__zoo_llama, &sn__mistral},
    {"qwen2.5", "Qwen2.5 (2024), 4,096 tokens: qwen2.5:0.5b, 1.5b, 3b, 7b, 14b, 32b, 72b; takes what llama takes", 4096,
     sn__zoo_llama, &sn__qwen25},
    {"phi3", "Phi-3 and 3.5 (2024), 4,096 tokens: phi3:mini, medium; takes what llama takes", 4096, sn__zoo_llama,
     &sn__phi3},
    {"gemma2", "Gemma 2 (2024), 4,096 tokens: gemma2:2b, 9b, 27b; takes what llama takes", 4096, sn__zoo_llama,
     &sn__gemma2},
    {"mixtral", "Mixtral (2024), 4,096 tokens: mixtral:8x7b, 8x22b; takes what llama takes", 4096, sn__zoo_llama,
     &sn__mixtral},
    {"llm", "Llama as torchtitan writes it, 8,192 tokens: llm:LAYERS,D,HEADS,KV,FFN,WORDS, as llm:4,512,8,8,1408,1024",
     8192, sn__zoo_titan, NULL},
    {"megatron", "GPT as Megatron-LM writes it (2021), 2,048 tokens, of 22 billion; takes what gpt2 takes", 2048,
     sn__zoo_megatron, &(const sn__transformer){48, 6144, 64}},
};
enum { ENTRY_COUNT = sizeof entries / sizeof entries[0] };
enum { LONGEST = 64 };
#define LOSS_KEY "loss="

const sn_zoo_entry *sn_zoo_entries(uint32_t *count) {
  *count = ENTRY_COUNT;
  return entries;
}

/* "n1, n2, n3, n4, each a whole number from 1 to 100000" */
static void list_keys(const sn__zoo_keys *keys, char *out, size_t room) {
  size_t used = 0;
  for (uint32_t i = 0; i < keys->count && used < room; i++)
    used += (size_t)snprintf(out + used, room - used, "%s, ", keys->names[i]);
  if (used < room) snprintf(out + used, room - used, "each a whole number from 1 to %u", keys->high);
}

/* `item` is "key=value" and is cut in two. Returns what is wrong with it, or NULL. */
static const char *take(char *item, const sn__zoo_keys *keys, uint32_t *values, uint32_t *given) {
  char *value = strchr(item, '=');
  if (!value) return "has no value";
  *value++ = '\0';
  uint32_t i = 0;
  while (i < keys->count && strcmp(item, keys->names[i]) != 0) i++;
  if (i == keys->count) return "is not a parameter";
  if (*given & 1u << i) return "is given twice";
  *given |= 1u << i;
  uint64_t number;
  sn_err reason = SN_ERR_INIT; /* replaced by a message that names the allowed keys as well */
  if (sn_parse_count(value, item, 1, keys->high, &number, &reason) != SN_OK) return "has a bad value";
  values[i] = (uint32_t)number;
  return NULL;
}

static const char *take_loss(const char *name, sn_loss *loss) {
  const bool plain = strcmp(name, sn_loss_names()[SN_LOSS_CROSS_ENTROPY]) == 0;
  *loss = plain ? SN_LOSS_CROSS_ENTROPY : SN_LOSS_CROSS_ENTROPY_FP32;
  return plain || strcmp(name, sn_loss_names()[*loss]) == 0 ? NULL : "is neither cross_entropy nor cross_entropy_fp32";
}

sn_status sn__zoo_parameters(const sn_zoo_entry *entry, const char *parameters, const sn__zoo_keys *keys,
                             uint32_t *values, sn_err *err) {
  uint32_t given = 0;
  for (const char *at = parameters; at;) {
    char item[LONGEST], allowed[2 * LONGEST];
    size_t length = strcspn(at, ",");
    snprintf(item, sizeof item, "%.*s", (int)sn_min(length, sizeof item), at);
    bool loss = keys->loss && strncmp(item, LOSS_KEY, strlen(LOSS_KEY)) == 0;
    const char *wrong = length >= sizeof item ? "is too long"
                        : loss                ? take_loss(item + strlen(LOSS_KEY), keys->loss)
                                              : take(item, keys, values, &given);
    if (wrong) {
      list_keys(keys, allowed, sizeof allowed);
      return sn_fail(err, SN_BAD_USAGE, "network \"%s:%.80s\": \"%s\" %s; allowed: %s", entry->name, parameters, item,
                     wrong, allowed);
    }
    at = at[length] ? at + length + 1 : NULL;
  }
  return SN_OK;
}

sn_builder *sn__zoo_begin(const sn_zoo_entry *entry, uint32_t batch, uint32_t channels, uint32_t image,
                          const char *parameters, sn_err *err) {
  if (parameters) {
    sn_fail(err, SN_BAD_USAGE, "network \"%s:%.80s\": %s takes no parameters; write \"%s\"", entry->name, parameters,
            entry->name, entry->name);
    return NULL;
  }
  return sn_builder_new(entry->name, batch, channels, sn_image_height(image), sn_image_width(image), err);
}

static sn_net *unknown(const char *name, sn_err *err) {
  const char *names[ENTRY_COUNT];
  char hint[2 * LONGEST];
  for (size_t i = 0; i < ENTRY_COUNT; i++) names[i] = entries[i].name;
  sn_text_suggest(name, names, ENTRY_COUNT, hint, sizeof hint);
  sn_fail(err, SN_BAD_USAGE,
          "unknown network \"%s\"%s; 'snsim list nets' lists them, any other comes as a file whose name ends in .json, "
          ".onnx, .rec or .rec.gz, or holds a '/', or as FILE.py:NAME (docs/networks.md)",
          name, hint);
  return NULL;
}

const char *sn_net_lora(const char *spec) {
  const char *found = strstr(spec, SN_NET_ADAPTED);
  return found ? found + sizeof SN_NET_ADAPTED - 1 : NULL;
}

/* Without its adapters. */
static size_t plain_length(const char *spec) {
  const char *lora = sn_net_lora(spec);
  return lora ? (size_t)(lora - spec) - (sizeof SN_NET_ADAPTED - 1) : strlen(spec);
}

char *sn_net_plain(const char *spec) {
  return strndup(spec, plain_length(spec));
}

char *sn_net_adapt_like(const char *spec, const char *like) {
  const char *lora = sn_net_lora(like);
  if (!lora || sn_net_lora(spec)) return strdup(spec);
  size_t room = strlen(spec) + sizeof SN_NET_ADAPTED + strlen(lora);
  char *text = malloc(room);
  if (text) snprintf(text, room, "%s%s%s", spec, SN_NET_ADAPTED, lora);
  return text;
}

/* The entry that a name with its parameters and adapters is of. */
static const sn_zoo_entry *find(const char *spec) {
  size_t length = strcspn(spec, ":+");
  for (size_t i = 0; i < ENTRY_COUNT; i++)
    if (strlen(entries[i].name) == length && strncmp(spec, entries[i].name, length) == 0) return &entries[i];
  return NULL;
}

bool sn_net_is_sequence(const char *spec) {
  const sn_zoo_entry *entry = find(spec);
  return entry && (entry->build == sn__zoo_gpt2 || entry->build == sn__zoo_bert || entry->build == sn__zoo_llama ||
                   entry->build == sn__zoo_titan || entry->build == sn__zoo_t5 || entry->build == sn__zoo_megatron);
}

/* A causal language model, whose logits its caller or its library may make float32 first. */
static bool is_decoder(const char *spec) {
  const sn_zoo_entry *entry = sn_net_is_file(spec) ? NULL : find(spec);
  return entry && (entry->build == sn__zoo_gpt2 || entry->build == sn__zoo_llama || entry->build == sn__zoo_titan ||
                   entry->build == sn__zoo_megatron);
}

static bool ends_in(const char *text, size_t length, const char *end) {
  return length >= strlen(end) && strncmp(text + length - strlen(end), end, strlen(end)) == 0;
}

const char *sn_net_file_end(const char *spec) {
  static const char *const marks[] = {".onnx:loss=", ".rec:units=", ".rec.gz:units="};
  const char *end = spec + plain_length(spec), *found = NULL;
  for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++)
    for (const char *at = strstr(spec, marks[i]); at && at < end; at = strstr(at + 1, marks[i]))
      found = at + strcspn(at, ":");
  return found ? found : end;
}

bool sn_net_is_onnx(const char *spec) {
  return ends_in(spec, (size_t)(sn_net_file_end(spec) - spec), ".onnx");
}

bool sn_net_is_recording(const char *spec) {
  size_t length = (size_t)(sn_net_file_end(spec) - spec);
  return ends_in(spec, length, ".rec") || ends_in(spec, length, ".rec.gz");
}

const char *sn_net_unit(const char *spec) {
  return sn_net_is_recording(spec) ? "samples" : sn_net_is_sequence(spec) ? "sequences" : "images";
}

bool sn_net_is_file(const char *spec) {
  size_t length = (size_t)(sn_net_file_end(spec) - spec);
  bool known = ends_in(spec, length, ".json") || ends_in(spec, length, ".onnx") || sn_net_is_recording(spec);
  return known || memchr(spec, '/', length);
}

static sn_status print_spec(char *text, sn_err *err, const char *format, ...) __attribute__((format(printf, 3, 4)));

static sn_status print_spec(char *text, sn_err *err, const char *format, ...) {
  va_list args;
  va_start(args, format);
  int length = vsnprintf(text, SN_NET_SPEC, format, args);
  va_end(args);
  if (length >= 0 && length < SN_NET_SPEC) return SN_OK;
  return sn_fail(err, SN_BAD_USAGE, "--net: with its loss and adapters a name has fewer than %d bytes", SN_NET_SPEC);
}

sn_status sn_net_add_loss(const char *spec, const char *loss, char *text, sn_err *err) {
  const bool decoder = is_decoder(spec);
  const char *end = decoder ? spec + plain_length(spec) : sn_net_file_end(spec);
  const size_t length = sn_min((size_t)(end - spec), SN_NET_SPEC);
  if ((!decoder && !sn_net_is_onnx(spec)) || *end == ':')
    return sn_fail(
        err, SN_BAD_USAGE,
        "--loss is of an ONNX file, which has none of its own, and of GPT-2, Llama and their like; a network "
        "file says it at its SOFTMAX");
  const char mark = decoder && memchr(spec, ':', length) ? ',' : ':';
  return print_spec(text, err, "%.*s%closs=%s%s", (int)length, spec, mark, loss, end);
}

sn_status sn_net_add_units(const char *spec, const char *globs, char *text, sn_err *err) {
  const char *end = sn_net_file_end(spec);
  if (!sn_net_is_recording(spec) || *end)
    return sn_fail(err, SN_BAD_USAGE,
                   "--units names the modules of a recording that run again; blocks of other networks are known");
  return print_spec(text, err, "%s:units=%s", spec, globs);
}

sn_status sn_net_add_lora(const char *spec, const char *lora, char *text, sn_err *err) {
  if (sn_net_lora(spec))
    return sn_fail(err, SN_BAD_USAGE, "--lora: the network has adapters by its name already; give one or the other");
  return print_spec(text, err, "%s%s%s", spec, SN_NET_ADAPTED, lora);
}

char *sn_net_title(const char *spec, const char *name, char *text, size_t room) {
  const char *slash = strrchr(spec, '/'), *file = slash ? slash + 1 : spec;
  if (sn_net_is_recording(spec) && *name) {
    snprintf(text, room, "%.*s (%s)", SN_NET_NAME, name, file);
    return text;
  }
  if (sn_net_is_file(spec) && *name)
    snprintf(text, room, "%s (%.*s)", spec, (int)sn_min(plain_length(name), SN_NET_NAME), name);
  else
    snprintf(text, room, "%s", spec);
  return text;
}

char *sn_net_called(const char *spec, const char *name, char *text, size_t room) {
  bool recorded = sn_net_is_recording(spec);
  const char *slash = recorded ? strrchr(spec, '/') : NULL;
  snprintf(text, room, "%s", recorded && *name ? name : slash ? slash + 1 : spec);
  return text;
}

static sn_net *load_onnx(const char *spec, uint32_t batch, uint32_t image, sn_err *err) {
  const char *end = sn_net_file_end(spec), *name = *end ? end + strlen(":loss=") : sn_loss_names()[0];
  sn_loss loss = 0;
  while (loss < SN_LOSSES && strcmp(name, sn_loss_names()[loss]) != 0) loss++;
  if (loss == SN_LOSSES) {
    sn_fail(err, SN_BAD_USAGE, "the loss \"%.40s\" is none of cross_entropy, cross_entropy_fp32, mse", name);
    return NULL;
  }
  char *path = strndup(spec, (size_t)(end - spec));
  if (!path) sn_fail_memory(err);
  sn_net *net = path ? sn__net_from_onnx_file(path, loss, batch, image, err) : NULL;
  free(path);
  return net;
}

/* What is wrong with the file comes first. */
static sn_net *load_recording(const char *spec, uint32_t depth, uint32_t batch, uint32_t image, sn_err *err) {
  const char *end = sn_net_file_end(spec), *units = *end ? end + strlen(":units=") : NULL;
  char *path = strndup(spec, (size_t)(end - spec));
  sn_net *net = NULL;
  if (!path)
    sn_fail_memory(err);
  else if (!units || sn_globs_check_text("--units", units, err) == SN_OK)
    net = sn__net_from_recording(path, units, batch, err);
  if (net && (depth || image)) {
    sn_net_free(net);
    net = NULL;
    sn_fail(err, SN_BAD_USAGE, "\"%.80s\": a recording has the %s it was recorded with; record it with another", path,
            depth ? "depth" : "size of images and sequences");
  }
  free(path);
  return net;
}

/* A file may be right at its own image size and not at another, which is then the caller's fault. */
static sn_net *load_file(const char *path, uint32_t depth, uint32_t batch, uint32_t image, sn_err *err) {
  if (sn_net_is_onnx(path)) return load_onnx(path, batch, image, err);
  if (sn_net_is_recording(path)) return load_recording(path, depth, batch, image, err);
  sn_net *net = sn__net_from_file(path, depth, batch, image, err);
  if (net || !image || err->code != SN_BAD_INPUT) return net;
  sn_err reason = SN_ERR_INIT; /* of the file itself: what was said of it with the other images stands */
  sn_net *own = sn__net_from_file(path, depth, batch, 0, &reason);
  if (own) {
    err->code = SN_BAD_USAGE;
    sn_err_prefix(err, "with images of %ux%u", sn_image_height(image), sn_image_width(image));
  }
  sn_net_free(own);
  return NULL;
}

/* A family of the zoo is right at its own image size, so what fails in its shapes was asked for by the caller. */
static sn_net *build(const sn_zoo_entry *entry, uint32_t batch, uint32_t image, const char *parameters, sn_err *err) {
  uint32_t side = image ? image : entry->image;
  sn_net *net = entry->build(entry, batch, side, parameters, err);
  if (!net && err->code == SN_BAD_INPUT) {
    err->code = SN_BAD_USAGE;
    if (sn_net_is_sequence(entry->name))
      sn_err_prefix(err, "network \"%s%s%.80s\", batch %u of %u tokens", entry->name, parameters ? ":" : "",
                    parameters ? parameters : "", batch, side);
    else
      sn_err_prefix(err, "network \"%s%s%.80s\", batch %u, image %ux%u", entry->name, parameters ? ":" : "",
                    parameters ? parameters : "", batch, sn_image_height(side), sn_image_width(side));
  }
  return net;
}

/* The name before the colon, cut to `room`; returns what stands behind the colon, or NULL. */
static const char *split(const char *spec, char *name, size_t room) {
  size_t length = strcspn(spec, ":");
  snprintf(name, room, "%.*s", (int)sn_min(length, room), spec);
  return spec[length] ? spec + length + 1 : NULL;
}

static sn_net *load_zoo(const char *name, const char *parameters, uint32_t batch, uint32_t image, sn_err *err) {
  for (size_t i = 0; i < ENTRY_COUNT; i++)
    if (strcmp(name, entries[i].name) == 0) return build(&entries[i], batch, image, parameters, err);
  return unknown(name, err);
}

uint32_t sn_net_image(const sn_net *net, uint32_t rows, uint32_t columns) {
  return net->values[0].dtype == SN_I64 ? rows : sn_image_size(rows, columns);
}

sn_net *sn_net_load(const char *spec, uint32_t batch, uint32_t image, sn_err *err) {
  return sn_net_load_depth(spec, 0, batch, image, err);
}

/* The parameter of a family that makes it deeper. */
static const struct {
  sn_net *(*build)(const sn_zoo_entry *entry, uint32_t batch, uint32_t image, const char *parameters, sn_err *err);
  const char *key;
} depths[] = {{sn__zoo_resnet_any, "n3"}, {sn__zoo_resnet_cifar, "n"}, {sn__zoo_llama, "layers"},
              {sn__zoo_gpt2, "layers"},   {sn__zoo_bert, "layers"},    {sn__zoo_vit, "layers"},
              {sn__zoo_titan, "layers"},  {sn__zoo_megatron, "layers"}};

const char *sn_net_depth_name(const char *spec) {
  if (sn_net_is_file(spec)) return "repeat";
  const sn_zoo_entry *entry = find(spec);
  for (size_t i = 0; entry && i < sizeof depths / sizeof depths[0]; i++)
    if (entry->build == depths[i].build) return depths[i].key;
  return NULL;
}

/* `parameters` with "key=depth" in place of what they say of the key. False where they are too long to be good. */
static bool set_depth(const char *parameters, const char *key, uint32_t depth, char *out, size_t room) {
  size_t used = 0, key_length = strlen(key);
  for (const char *at = parameters; at && used < room;) {
    size_t length = strcspn(at, ",");
    bool replaced = length > key_length && strncmp(at, key, key_length) == 0 && at[key_length] == '=';
    if (!replaced) used += (size_t)snprintf(out + used, room - used, "%.*s,", (int)sn_min(length, room), at);
    at = at[length] ? at + length + 1 : NULL;
  }
  if (used < room) used += (size_t)snprintf(out + used, room - used, "%s=%u", key, depth);
  return used < room;
}

static sn_net *load_deep(const char *name, const char *parameters, uint32_t depth, uint32_t batch, uint32_t image,
                         sn_err *err) {
  char deep[8 * LONGEST];
  const char *key = sn_net_depth_name(name);
  if (key && set_depth(parameters, key, depth, deep, sizeof deep)) return load_zoo(name, deep, batch, image, err);
  if (key) return load_zoo(name, parameters, batch, image, err); /* which says what is wrong with them */
  sn_net *known = load_zoo(name, parameters, batch, image, err);
  sn_net_free(known);
  if (known)
    sn_fail(err, SN_BAD_USAGE,
            "network \"%s\" has a fixed depth; give \"resnet\", whose n3 is its depth, \"resnet_cifar\", whose n is, "
            "\"llama\", \"gpt2\", \"bert_base\" or \"vit_b_16\", whose layers are, or a JSON file with a repeat",
            name);
  return NULL;
}

static sn_net *load_adapted(const char *spec, uint32_t depth, uint32_t batch, uint32_t image, sn_err *err) {
  sn_lora lora;
  char *plain = sn_net_plain(spec);
  if (!plain) sn_fail_memory(err);
  if (plain && sn_net_is_recording(plain))
    sn_fail(err, SN_BAD_USAGE, "\"%.80s\": a recording has the adapters it was recorded with; record it with others",
            plain);
  if (!plain || err->code != SN_OK || sn_lora_parse(sn_net_lora(spec), &lora, err) != SN_OK) {
    free(plain);
    return NULL;
  }
  sn_net *net = sn_net_load_depth(plain, depth, batch, image, err);
  sn_net *with = net ? sn_lora_apply(net, &lora, err) : NULL;
  sn_net_free(net);
  free(plain);
  return with;
}

sn_net *sn_net_load_depth(const char *spec, uint32_t depth, uint32_t batch, uint32_t image, sn_err *err) {
  char name[LONGEST];
  if (sn_net_lora(spec)) return load_adapted(spec, depth, batch, image, err);
  const char *foreign = sn_net_foreign(spec);
  if (foreign) {
    sn_fail(err, SN_BAD_USAGE, "\"%.80s\": %s", spec, foreign);
    return NULL;
  }
  if (sn_net_is_file(spec)) return load_file(spec, depth, batch, image, err);
  const char *parameters = split(spec, name, sizeof name);
  return depth ? load_deep(name, parameters, depth, batch, image, err) : load_zoo(name, parameters, batch, image, err);
}
