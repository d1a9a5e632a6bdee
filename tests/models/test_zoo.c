/* The zoo against what others published: layer counts with FORK and DATA, parameters (exact), multiply-adds, shapes in
 * the middle of the nets; and what sn_net_load() refuses. Parameter totals are those of the networks' own authors or of
 * widely used releases; multiply-adds are rounded there, so they have to agree within 2 %. */
#include "models/op/op.h"
#include "models/zoo/zoo.h"
#include "tests/models/zoo_shapes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct published {
  const char *name;
  uint32_t layers; /* DATA and FORKs included */
  uint64_t parameters;
  double giga_macs; /* forward, one image; 0: none published */
} published;

/* AlexNet ungrouped; ResNets with stride on the first 1x1; Inception-v3 without the auxiliary classifier. Layer counts
 * that the reference does not give, by hand:
 * ResNet-18, 34:  DATA + stem 4 + 8 a unit (FORK included) + 3 projections of 2 + end 3
 * Inception-v3:   94 convolutions of 3 + 13 pools + 11 CONCATs + 11 + 4 FORKs + DATA + end 4
 * DenseNet:       DATA + stem 4 + 8 a dense layer (FORK included) + 3 transitions of 4 + end 5
 * Inception-BN:   DATA + stem 11 + 8 blocks of 23 + 2 of 17 + 10 FORKs + end 3
 * tv_...:         DATA and what torchvision runs (a CONCAT of one in DenseNet), with the FORKs and the SOFTMAX.
 * MobileNetV3, EfficientNet, ConvNeXt: the same, with 7 layers for squeeze and excitation (FORK included), and one for
 *                 stochastic depth in a unit with a sum, but the first of all.
 * Multiply-adds are those that torchvision states with its weights, parameters those of its modules. */
static const published nets[] = {
    {"lenet", 9, 431080, 0},
    {"alexnet", 24, 62378344, 1.14},
    {"vgg16", 40, 138357544, 15.5},
    {"vgg19", 46, 143667240, 19.6},
    {"resnet18", 78, 11689512, 1.8},
    {"resnet34", 142, 21797672, 3.6},
    {"resnet50", 192, 25557032, 3.86},
    {"resnet101", 379, 44549160, 7.6},
    {"resnet152", 566, 60192808, 11.3},
    {"resnet_cifar:n=8", 203, 758554, 0},
    {"dcgan", 22, 10680573, 0.032},
    {"inception_v3", 326, 23834568, 5.7},
    {"inception_v4", 514, 42679816, 12.3},
    {"densenet121", 486, 7978856, 2.87},
    {"densenet169", 678, 14149480, 3.4},
    {"densenet201", 806, 20013928, 4.34},
    {"inception_bn", 243, 11295240, 0},
    {"tv_alexnet", 23, 61100840, 0.714},
    {"tv_vgg16", 41, 138357544, 15.47},
    {"tv_vgg19", 47, 143667240, 19.632},
    {"tv_resnet18", 78, 11689512, 1.814},
    {"tv_resnet50", 192, 25557032, 4.089},
    {"tv_resnet101", 379, 44549160, 7.801},
    {"tv_resnet152", 566, 60192808, 11.514},
    {"tv_inception_v3", 330, 23834568, 5.713},
    {"tv_densenet121", 490, 7978856, 2.834},
    {"tv_mobilenet_v2", 164, 3504872, 0.301},
    {"tv_squeezenet1_1", 75, 1235496, 0.349},
    {"tv_r3d_18", 77, 33371472, 40.697},
    {"tv_mc3_18", 77, 11695440, 43.343},
    {"tv_r2plus1d_18", 128, 31505325, 40.519},
    {"resnext50_32x4d", 192, 25028904, 4.23},
    {"resnext101_32x8d", 379, 88791336, 16.414},
    {"wide_resnet50_2", 192, 68883240, 11.398},
    {"wide_resnet101_2", 379, 126886696, 22.753},
    {"mobilenet_v3_small", 173, 2542856, 0.057},
    {"mobilenet_v3_large", 206, 5483032, 0.217},
    {"efficientnet_b0", 275, 5288548, 0.386},
    {"efficientnet_b1", 398, 7794184, 0.687},
    {"efficientnet_b2", 398, 9109994, 1.088},
    {"efficientnet_b3", 452, 12233232, 1.827},
    {"efficientnet_b4", 560, 19341616, 4.394},
    {"efficientnet_b5", 683, 30389784, 10.266},
    {"efficientnet_b6", 791, 43040704, 19.068},
    {"efficientnet_b7", 968, 66347960, 37.746},
    {"convnext_tiny", 174, 28589128, 4.456},
    {"convnext_small", 336, 50223688, 8.684},
    {"convnext_base", 336, 88591464, 15.355},
    {"convnext_large", 336, 197767336, 34.361},
    {"unet", 77, 31037698, 0},
    {"vit_b_16", 164, 86567656, 17.564},
    {"vit_l_16", 320, 304326632, 61.555},
    {"swin_t", 185, 28288354, 4.491},
    {"swin_s", 353, 49606258, 8.741},
    {"swin_b", 353, 87768224, 15.431},
    {"bert_base", 202, 109482240, 0},
    {"bert_large", 394, 335141888, 0},
    {"gpt2", 175, 124439808, 0},
    {"gpt2_medium", 343, 354823168, 0},
    {"gpt2_large", 511, 774030080, 0},
    {"gpt2_xl", 679, 1557611200, 0},
    {"t5_base", 553, 222903552, 0},
    {"llama", 645, 6738415616, 0},
    {"llama3", 645, 8030261248, 0},
    {"mistral", 645, 7248023552, 0},
    {"qwen2.5", 565, 7615616512, 0},
    {"phi3", 741, 3821079552, 0},
    {"gemma2", 737, 2614341888, 0},
    {"mixtral", 1093, 46702792704, 0},
    {"llm", 773, 8030261248, 0},
    {"megatron", 871, 22388846592, 0},
};
enum { NET_COUNT = sizeof nets / sizeof nets[0] };

static void published_figures(void **state) {
  (void)state;
  for (size_t i = 0; i < NET_COUNT; i++) {
    const published *p = &nets[i];
    sn_net *net = load(p->name, 1, 0);
    double giga = (double)net->macs / 1e9;
    print_message("%-14s %4u layers %10" PRIu64 " parameters %7.3f G multiply-adds\n", p->name, net->n_layers,
                  net->parameters, giga);
    assert_string_equal(net->name, p->name);
    assert_int_equal(net->n_layers, p->layers);
    assert_int_equal(net->parameters, p->parameters);
    if (p->giga_macs > 0 && fabs(giga / p->giga_macs - 1) > 0.02)
      fail_msg("%s: %.3f G multiply-adds, published %.3f G", p->name, giga, p->giga_macs);
    sn_net_free(net);
  }
}

/* Every entry builds, ends in SOFTMAX, has one output per value and grows with the batch. */
static void every_entry(void **state) {
  (void)state;
  uint32_t n_entries;
  const sn_zoo_entry *entries = sn_zoo_entries(&n_entries);
  assert_int_equal(n_entries, NET_COUNT + 1); /* "resnet" takes parameters */
  for (uint32_t i = 0; i < n_entries; i++) {
    sn_net *one = load(entries[i].name, 1, 0), *eight = load(entries[i].name, 8, 0);
    assert_true(strlen(entries[i].description) > 0);
    assert_int_equal(one->layers[0].op, SN_DATA);
    assert_int_equal(sn_layer_rows(&one->layers[0]), entries[i].image);
    assert_int_equal(count(one, SN_SOFTMAX), 1);
    assert_int_equal(eight->macs, 8 * one->macs);
    assert_int_equal(eight->parameters, one->parameters);
    assert_int_equal(eight->data_bytes, 8 * one->data_bytes);
    sn_net_free(one);
    sn_net_free(eight);
  }
}

/* Reference, section 2: the layers of AlexNet and their order. */
static void alexnet_order(void **state) {
  (void)state;
  static const char *const names[] = {"data",  "conv1", "relu1", "lrn1",  "pool1", "conv2", "relu2", "lrn2",
                                      "pool2", "conv3", "relu3", "conv4", "relu4", "conv5", "relu5", "pool5",
                                      "fc1",   "relu6", "drop1", "fc2",   "relu7", "drop2", "fc3",   "softmax"};
  sn_net *net = load("alexnet", 200, 0);
  for (uint32_t i = 0; i < net->n_layers; i++) assert_string_equal(net->layers[i].name, names[i]);
  assert_shape(net, "conv1", 96, 55, 55);
  assert_shape(net, "pool1", 96, 27, 27);
  assert_shape(net, "pool2", 256, 13, 13);
  assert_shape(net, "pool5", 256, 6, 6);
  assert_shape(net, "softmax", 1000, 1, 1);
  assert_int_equal(find(net, "conv2")->out.n, 200);
  sn_net_free(net);
}

static void vgg_shapes(void **state) {
  (void)state;
  sn_net *net = load("vgg16", 1, 0);
  assert_shape(net, "relu1_2", 64, 224, 224);
  assert_shape(net, "conv4_3", 512, 28, 28);
  assert_shape(net, "pool5", 512, 7, 7);
  assert_int_equal(count(net, SN_CONV) + count(net, SN_FC), 16);
  assert_int_equal(count(net, SN_DROPOUT), 2);
  sn_net_free(net);
}

static void resnet_units(void **state) {
  (void)state;
  sn_net *net = load("resnet50", 1, 0);
  assert_shape(net, "conv1", 64, 112, 112);
  assert_shape(net, "pool1", 64, 56, 56);
  assert_shape(net, "relu2_3", 256, 56, 56);
  assert_shape(net, "conv3_1a", 128, 28, 28); /* the first 1x1 halves the image */
  assert_shape(net, "relu4_6", 1024, 14, 14);
  assert_shape(net, "relu5_3", 2048, 7, 7);
  assert_shape(net, "pool5", 2048, 1, 1);
  assert_int_equal(find(net, "conv3_1a")->attr->stride_h, 2);
  assert_int_equal(find(net, "conv3_1b")->attr->stride_h, 1);
  assert_false(find(net, "conv3_1a")->attr->bias);
  assert_int_equal(count(net, SN_CONV), 53);
  assert_int_equal(count(net, SN_JOIN), 16);
  assert_int_equal(count(net, SN_FORK), 16);
  sn_net_free(net);
}

/* The route follows a FORK's branches in order: the main branch must be the first, here and in the JOIN. */
static void resnet_branches(void **state) {
  (void)state;
  static const char *const shortcut[] = {"bn2_1p", "relu2_1/fork"};
  static const char *const consumer[] = {"conv2_1p", "join2_2"};
  static const char *const forks[] = {"pool1/fork", "relu2_1/fork"};
  sn_net *net = load("resnet50", 1, 0);
  for (unsigned k = 0; k < 2; k++) {
    char main_end[16], main_begin[16], join[16];
    snprintf(main_end, sizeof main_end, "bn2_%uc", k + 1);
    snprintf(main_begin, sizeof main_begin, "conv2_%ua", k + 1);
    snprintf(join, sizeof join, "join2_%u", k + 1);
    const sn_layer *fork = find(net, forks[k]), *sum = find(net, join);
    assert_int_equal(fork->n_outputs, 2);
    assert_string_equal(net->layers[net->values[fork->first_output].consumer].name, main_begin);
    assert_string_equal(net->layers[net->values[fork->first_output + 1].consumer].name, consumer[k]);
    assert_string_equal(net->layers[sn_layer_input(net, sum, 0)->producer].name, main_end);
    assert_string_equal(net->layers[sn_layer_input(net, sum, 1)->producer].name, shortcut[k]);
  }
  sn_net_free(net);
}

/* Figures of the specification, from the paper on concurrency control; the layers of n = 18 are 110, as He et al. say.
 */
static void resnets_of_small_images(void **state) {
  (void)state;
  sn_net *net = load("resnet_cifar:n=8", 1, 0), *plain = load("resnet_cifar", 1, 0);
  assert_string_equal(net->name, "resnet_cifar:n=8");
  assert_string_equal(plain->name, net->name);
  assert_shape(net, "relu1_8", 16, 32, 32);
  assert_shape(net, "conv2_1a", 32, 16, 16);
  assert_shape(net, "bn3_1p", 64, 8, 8);
  assert_shape(net, "pool", 64, 1, 1);
  assert_string_equal(net->layers[sn_layer_input(net, find(net, "join2_1"), 1)->producer].name, "bn2_1b");
  assert_string_equal(net->layers[sn_layer_input(net, find(net, "join2_1"), 0)->producer].name, "bn2_1p");
  assert_string_equal(net->layers[sn_layer_input(net, find(net, "join1_1"), 0)->producer].name, "relu1/fork");
  assert_int_equal(count(net, SN_CONV) + count(net, SN_FC), 50 + 2); /* two projections */
  sn_net_free(net);
  sn_net_free(plain);
  net = load("resnet_cifar:n=18", 1, 0);
  assert_int_equal(count(net, SN_CONV) + count(net, SN_FC), 110 + 2);
  sn_net_free(net);
  sn_err err = SN_ERR_INIT;
  net = sn_net_load_depth("resnet_cifar:n=8", 3, 1, 0, &err);
  assert_string_equal(net->name, "resnet_cifar:n=3");
  assert_string_equal(sn_net_depth_name("resnet_cifar:n=8"), "n");
  sn_net_free(net);
}

static void dcgan_shapes(void **state) {
  (void)state;
  sn_net *net = load("dcgan", 3, 0);
  assert_shape(net, "data", 100, 1, 1);
  assert_shape(net, "g_deconv1", 128, 7, 7);
  assert_shape(net, "g_deconv2", 128, 14, 14);
  assert_shape(net, "g_image", 1, 28, 28);
  assert_shape(net, "d_conv1", 11, 14, 14);
  assert_shape(net, "d_conv2", 74, 7, 7);
  assert_shape(net, "d_fc1", 1024, 1, 1);
  assert_int_equal(net->macs, 3 * 31988650);
  assert_int_equal(count(net, SN_BN), 5);
  assert_int_equal(find(net, "g_image")->attr->act, SN_ACT_SIGMOID);
  assert_true(find(net, "d_leaky3")->attr->act == SN_ACT_LEAKY && find(net, "d_leaky3")->attr->slope == 0.2);
  sn_net_free(net);
}

static void inception_shapes(void **state) {
  (void)state;
  sn_net *v3 = load("inception_v3", 1, 0), *v4 = load("inception_v4", 1, 0);
  assert_shape(v3, "stem/pool2", 192, 35, 35);
  assert_shape(v3, "inception_a1/concat", 256, 35, 35);
  assert_shape(v3, "inception_a3/concat", 288, 35, 35);
  assert_shape(v3, "inception_b4/concat", 768, 17, 17);
  assert_shape(v3, "reduction_b/concat", 1280, 8, 8);
  assert_shape(v3, "inception_c2/concat", 2048, 8, 8);
  assert_shape(v4, "stem/conv3", 64, 147, 147);
  assert_shape(v4, "stem_mix1/concat", 160, 73, 73);
  assert_shape(v4, "stem_mix2/concat", 192, 71, 71);
  assert_shape(v4, "stem_mix3/concat", 384, 35, 35);
  assert_shape(v4, "inception_a4/concat", 384, 35, 35);
  assert_shape(v4, "reduction_a/concat", 1024, 17, 17);
  assert_shape(v4, "inception_b7/concat", 1024, 17, 17);
  assert_shape(v4, "inception_c3/concat", 1536, 8, 8);
  assert_int_equal(find(v4, "inception_c3/concat")->n_inputs, 6);
  assert_int_equal(count(v4, SN_CONV), 149);
  assert_int_equal(find(v4, "inception_b1/b3_conv2")->attr->kernel_h, 1);
  assert_int_equal(find(v4, "inception_b1/b3_conv2")->attr->kernel_w, 7);
  assert_true(find(v4, "drop")->attr->ratio == 0.2);
  sn_net_free(v3);
  sn_net_free(v4);
}

static void densenet_shapes(void **state) {
  (void)state;
  sn_net *net = load("densenet121", 1, 0);
  assert_shape(net, "dense1_1/concat", 96, 56, 56);
  assert_shape(net, "dense1_6/concat", 256, 56, 56);
  assert_shape(net, "trans1/pool", 128, 28, 28);
  assert_shape(net, "dense4_16/concat", 1024, 7, 7);
  const sn_layer *concat = find(net, "dense1_2/concat");
  assert_string_equal(net->layers[sn_layer_input(net, concat, 0)->producer].name, "dense1_1/concat/fork");
  assert_string_equal(net->layers[sn_layer_input(net, concat, 1)->producer].name, "dense1_2/conv2");
  assert_int_equal(count(net, SN_CONV), 120);
  sn_net_free(net);
}

/* Layers and sizes in the order in which torchvision runs them were compared with it (bench/pytorch_memory.py does);
 * here stands what differs from the papers' networks. */
static void torchvision_forms(void **state) {
  (void)state;
  sn_net *resnet = load("tv_resnet50", 1, 0), *alexnet = load("tv_alexnet", 1, 0), *vgg = load("tv_vgg16", 1, 256);
  assert_int_equal(find(resnet, "layer2.0.conv1")->attr->stride_h, 1);
  assert_int_equal(find(resnet, "layer2.0.conv2")->attr->stride_h, 2);
  assert_shape(resnet, "layer2.0.conv1", 128, 56, 56);
  assert_string_equal(resnet->layers[sn_layer_input(resnet, find(resnet, "layer2.0.add"), 0)->producer].name,
                      "layer2.0.bn3");
  assert_shape(alexnet, "features.0", 64, 55, 55);
  assert_int_equal(find(alexnet, "classifier.2")->attr->inplace, SN_INPLACE_YES);
  assert_shape(vgg, "features.30", 512, 8, 8);
  assert_shape(vgg, "avgpool", 512, 7, 7); /* so any image goes with the same parameters */
  assert_int_equal(vgg->parameters, 138357544);
  sn_net_free(resnet);
  sn_net_free(alexnet);
  sn_net_free(vgg);
  sn_net *dense = load("tv_densenet121", 1, 0), *mobile = load("tv_mobilenet_v2", 1, 0);
  assert_int_equal(find(dense, "features.denseblock1.denselayer1.cat")->n_inputs, 1);
  assert_int_equal(find(dense, "features.denseblock4.denselayer16.cat")->n_inputs, 16);
  assert_shape(dense, "features.denseblock4.cat", 1024, 7, 7);
  assert_int_equal(find(mobile, "features.3.add")->attr->inplace, SN_INPLACE_NO);
  assert_int_equal(find(mobile, "features.3.conv.0.2")->attr->act, SN_ACT_RELU6);
  assert_int_equal(find(mobile, "features.3.conv.1.0")->attr->groups, 144);
  assert_int_equal(count(mobile, SN_JOIN), 10);
  sn_net_free(dense);
  sn_net_free(mobile);
}

/* Table 1 of the ResNeXt paper; of Wide ResNet the same with inner convolutions twice as wide. */
static void grouped_and_wide(void **state) {
  (void)state;
  sn_net *grouped = load("resnext50_32x4d", 1, 0), *wide = load("wide_resnet50_2", 1, 0);
  assert_shape(grouped, "layer1.0.conv2", 128, 56, 56);
  assert_shape(grouped, "layer4.2.conv2", 1024, 7, 7);
  assert_shape(grouped, "layer4.2.add", 2048, 7, 7);
  assert_int_equal(find(grouped, "layer3.1.conv2")->attr->groups, 32);
  assert_int_equal(find(grouped, "layer3.1.conv1")->attr->groups, 1);
  assert_shape(wide, "layer1.0.conv2", 128, 56, 56);
  assert_shape(wide, "layer4.2.conv1", 1024, 7, 7);
  assert_shape(wide, "layer4.2.add", 2048, 7, 7);
  assert_int_equal(find(wide, "layer3.1.conv2")->attr->groups, 1);
  sn_net_free(grouped);
  sn_net_free(wide);
}

static void inception_bn_of_mxnet(void **state) {
  (void)state;
  sn_net *net = load("inception_bn", 1, 0);
  assert_shape(net, "pool2", 192, 27, 27);
  assert_shape(net, "ch_concat_3c_chconcat", 576, 14, 14);
  assert_shape(net, "ch_concat_4e_chconcat", 1056, 7, 7);
  assert_shape(net, "ch_concat_5b_chconcat", 1024, 7, 7);
  assert_true(find(net, "conv_3a_1x1")->attr->bias);
  assert_int_equal(net->n_layers - count(net, SN_FORK) - 1, 232); /* 233 operations in MXNet: it counts a flatten */
  assert_int_equal(count(net, SN_FORK), 10);
  sn_net_free(net);
}

static void resnet_parameters(void **state) {
  (void)state;
  sn_net *given = load("resnet:n3=23", 1, 0), *known = load("resnet101", 1, 0);
  assert_string_equal(given->name, "resnet:n1=3,n2=4,n3=23,n4=3");
  assert_int_equal(given->n_layers, known->n_layers);
  assert_int_equal(given->parameters, known->parameters);
  assert_int_equal(given->macs, known->macs);
  sn_net *plain = load("resnet", 1, 0), *again = load(given->name, 1, 0);
  assert_int_equal(plain->n_layers, 192);
  assert_int_equal(again->n_layers, known->n_layers);
  sn_net_free(given);
  sn_net_free(known);
  sn_net_free(plain);
  sn_net_free(again);
}

/* 11 layers a unit, FORK included; 2 more for each projection; DATA, 4 of the stem and 3 at the end. */
static void deep_resnets(void **state) {
  (void)state;
  sn_net *net = load("resnet:n1=6,n2=32,n3=800,n4=6", 1, 0);
  assert_int_equal(net->n_layers, 11 * (6 + 32 + 800 + 6) + 8 + 8);
  assert_int_equal(count(net, SN_CONV) + count(net, SN_FC), 3 * (6 + 32 + 800 + 6) + 2 + 4);
  sn_net_free(net);
  net = load("resnet:n3=100000", 1, 0); /* were the cost quadratic, this would take hours */
  assert_int_equal(net->n_layers, 11 * (3 + 4 + 100000 + 3) + 8 + 8);
  sn_net_free(net);
}

static void image_size(void **state) {
  (void)state;
  sn_net *net = load("resnet50", 2, 448), *own = load("resnet50", 2, 0);
  assert_shape(net, "conv1", 64, 224, 224);
  assert_shape(net, "relu5_3", 2048, 14, 14);
  assert_int_equal(net->parameters, own->parameters);
  sn_net_free(net);
  sn_net_free(own);
  net = load("alexnet", 1, 259);
  assert_shape(net, "pool5", 256, 7, 7);
  sn_net_free(net);
}

typedef struct refusal {
  const char *spec;
  uint32_t batch, image;
  const char *said; /* part of the message */
} refusal;

static const refusal refusals[] = {
    {"resnet5", 1, 0, "unknown network \"resnet5\" (did you mean \"resnet50\"?); 'snsim list nets'"},
    {"ALEXNET", 1, 0, "did you mean \"alexnet\"?"},
    {"resnet-50", 1, 0, "did you mean \"resnet50\"?"},
    {"transformer", 1, 0, "unknown network \"transformer\"; 'snsim list nets'"},
    {"", 1, 0, "unknown network \"\""},
    {":n1=3", 1, 0, "unknown network \"\""},
    {"alexnet:", 1, 0, "alexnet takes no parameters"},
    {"vgg16:n1=3", 1, 0, "vgg16 takes no parameters; write \"vgg16\""},
    {"resnet_cifar:n1=3", 1, 0, "\"n1\" is not a parameter; allowed: n, each a whole number from 1 to 100000"},
    {"dcgan:n=3", 1, 0, "dcgan takes no parameters"},
    {"resnet:", 1, 0, "\"\" has no value; allowed: n1, n2, n3, n4, each a whole number from 1 to 100000"},
    {"resnet:n1", 1, 0, "\"n1\" has no value; allowed: n1, n2, n3, n4"},
    {"resnet:n1=3,", 1, 0, "\"\" has no value"},
    {"resnet:n1=3,,n2=3", 1, 0, "\"\" has no value"},
    {"resnet:n5=3", 1, 0, "\"n5\" is not a parameter; allowed: n1, n2, n3, n4"},
    {"resnet:N1=3", 1, 0, "\"N1\" is not a parameter"},
    {"resnet: n1=3", 1, 0, "\" n1\" is not a parameter"},
    {"resnet:=3", 1, 0, "\"\" is not a parameter"},
    {"resnet:n1=3,n2=4,n1=3", 1, 0, "\"n1\" is given twice"},
    {"resnet:n1=0", 1, 0, "\"n1\" has a bad value; allowed: n1, n2, n3, n4, each a whole number from 1 to 100000"},
    {"resnet:n1=100001", 1, 0, "\"n1\" has a bad value"},
    {"resnet:n2=-1", 1, 0, "\"n2\" has a bad value"},
    {"resnet:n2=3.5", 1, 0, "\"n2\" has a bad value"},
    {"resnet:n2=", 1, 0, "\"n2\" has a bad value"},
    {"resnet:n2=3=4", 1, 0, "\"n2\" has a bad value"},
    {"resnet:n4=99999999999999999999999", 1, 0, "\"n4\" has a bad value"},
    {"resnet:n1=0000000000000000000000000000000000000000000000000000000000015", 1, 0, "is too long"},
    {"resnet:n1=100000,n2=100000", 1, 0,
     "network \"resnet:n1=100000,n2=100000\", batch 1, image 224x224: layer"}, /* 2.2 million layers */
    {"alexnet", 1, 10, "network \"alexnet\", batch 1, image 10x10: layer \"conv1\""},
    {"inception_v4", 1, 32, "network \"inception_v4\", batch 1, image 32x32: layer"},
    {"vgg16", 0, 0, "network \"vgg16\", batch 0, image 224x224"},
    {"vgg16", UINT32_MAX, 0, "network \"vgg16\", batch 4294967295"},
    {"vgg16", 1, SN_IMAGE_OBLONG - 1, "network \"vgg16\", batch 1, image 2147483647x2147483647"},
    {SNSIM_SOURCE_DIR "/tests/nets/small_alexnet.json", 1, 8, "with images of 8x8: "},
};

static void bad_specs(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
    const refusal *r = &refusals[i];
    sn_err err = SN_ERR_INIT;
    sn_net *net = sn_net_load(r->spec, r->batch, r->image, &err);
    assert_null(net);
    if (err.code != SN_BAD_USAGE || !strstr(err.text, r->said))
      fail_msg("\"%s\": %s: %s", r->spec, sn_status_name(err.code), err.text);
  }
}

/* A name longer than any buffer is refused, not cut to one that exists. */
static void endless_specs(void **state) {
  (void)state;
  enum { LENGTH = 100000 };
  static const char *const begins[] = {"x", "resnet50", "resnet:n1=", "resnet:n1=3,x", "alexnet:"};
  char *spec = malloc(LENGTH + 1);
  assert_non_null(spec);
  for (size_t i = 0; i < sizeof begins / sizeof begins[0]; i++) {
    memset(spec, '1', LENGTH);
    spec[LENGTH] = '\0';
    memcpy(spec, begins[i], strlen(begins[i]));
    sn_err err = SN_ERR_INIT;
    assert_null(sn_net_load(spec, 1, 0, &err));
    assert_int_equal(err.code, SN_BAD_USAGE);
  }
  free(spec);
}

/* What is no name goes to the importer. */
static void files(void **state) {
  (void)state;
  static const char *const paths[] = {"no/such/net", "no_such_net.json", "./alexnet"};
  for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
    sn_err err = SN_ERR_INIT;
    assert_null(sn_net_load(paths[i], 1, 0, &err));
    assert_int_equal(err.code, SN_BAD_FILE);
    assert_non_null(strstr(err.text, paths[i]));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(published_figures),
      cmocka_unit_test(every_entry),
      cmocka_unit_test(alexnet_order),
      cmocka_unit_test(vgg_shapes),
      cmocka_unit_test(resnet_units),
      cmocka_unit_test(resnet_branches),
      cmocka_unit_test(resnets_of_small_images),
      cmocka_unit_test(dcgan_shapes),
      cmocka_unit_test(inception_shapes),
      cmocka_unit_test(densenet_shapes),
      cmocka_unit_test(torchvision_forms),
      cmocka_unit_test(grouped_and_wide),
      cmocka_unit_test(inception_bn_of_mxnet),
      cmocka_unit_test(resnet_parameters),
      cmocka_unit_test(deep_resnets),
      cmocka_unit_test(image_size),
      cmocka_unit_test(bad_specs),
      cmocka_unit_test(endless_specs),
      cmocka_unit_test(files),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
