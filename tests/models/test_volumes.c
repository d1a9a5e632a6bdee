/* Volumes: windows along planes against the definition, what operators make of planes, files that say so, what is
 * refused and how, algorithms of convolutions, torchvision's networks of video. */
#include "models/build/build.h"
#include "models/op/op.h"
#include "models/zoo/zoo.h"
#include "sim/device/conv.h"
#include "tests/support/named_layer.h"
#include "tests/support/pipeline.h"
#include "tests/support/seed.h"

#include <stdio.h>
#include <stdlib.h>

enum { PLANES = 5, ROWS = 6, COLUMNS = 7 };
static const sn_shape volume = {2, 4, PLANES *ROWS, COLUMNS};

/* Windows that start within the padded axis and end there, counted one by one. */
static uint32_t count_windows(uint32_t in, uint32_t kernel, uint32_t stride, uint32_t pad, uint32_t dilation) {
  uint32_t count = 0;
  while (count * stride + (kernel - 1) * dilation + 1 <= in + 2 * pad) count++;
  return count;
}

static sn_attr draw_window(uint64_t *seed) {
  sn_attr a = {.channels = 8, .groups = 2, .planes = PLANES, .bias = true};
  a.kernel_d = 1 + prng_below(seed, 3);
  a.kernel_h = 1 + prng_below(seed, 3);
  a.kernel_w = 1 + prng_below(seed, 3);
  a.stride_d = 1 + prng_below(seed, 3);
  a.stride_h = 1 + prng_below(seed, 3);
  a.stride_w = 1 + prng_below(seed, 3);
  a.pad_d = prng_below(seed, a.kernel_d);
  a.pad_h = prng_below(seed, a.kernel_h);
  a.pad_w = prng_below(seed, a.kernel_w);
  a.dilation_d = 1 + prng_below(seed, 2);
  a.dilation_h = 1 + prng_below(seed, 2);
  a.dilation_w = 1 + prng_below(seed, 2);
  return a;
}

static void conv_windows(void **state) {
  (void)state;
  uint64_t seed = first_seed(31);
  for (int i = 0; i < 2000; i++) {
    sn_attr a = draw_window(&seed);
    sn_err err = SN_ERR_INIT;
    sn_layer conv = {.op = SN_CONV, .attr = &a};
    uint32_t d = count_windows(PLANES, a.kernel_d, a.stride_d, a.pad_d, a.dilation_d),
             h = count_windows(ROWS, a.kernel_h, a.stride_h, a.pad_h, a.dilation_h),
             w = count_windows(COLUMNS, a.kernel_w, a.stride_w, a.pad_w, a.dilation_w);
    assert_int_equal(sn_op_shape(SN_CONV, &a, &volume, 1, &conv.out, &err), SN_OK);
    assert_true(conv.out.n == 2 && conv.out.c == 8 && conv.out.h == d * h && conv.out.w == w);
    assert_int_equal(sn_op_planes(SN_CONV, &a), d);
    assert_int_equal(sn_op_measure(&conv, volume, &err), SN_OK);
    uint64_t weights = UINT64_C(8) * (4 / 2) * a.kernel_d * a.kernel_h * a.kernel_w;
    assert_int_equal(conv.parameters, weights + 8);
    assert_int_equal(conv.macs, weights * 2 * d * h * w);
  }
}

/* A DECONV gives back what a CONV took where nothing was left over. */
static void deconv_windows(void **state) {
  (void)state;
  uint64_t seed = first_seed(37);
  for (int i = 0; i < 2000; i++) {
    sn_attr a = draw_window(&seed), back = a;
    sn_shape made, again;
    sn_err err = SN_ERR_INIT;
    assert_int_equal(sn_op_shape(SN_CONV, &a, &volume, 1, &made, &err), SN_OK);
    back.planes = sn_op_planes(SN_CONV, &a);
    back.channels = 4;
    back.output_pad_d = (PLANES + 2 * a.pad_d - (a.kernel_d - 1) * a.dilation_d - 1) % a.stride_d;
    back.output_pad_h = (ROWS + 2 * a.pad_h - (a.kernel_h - 1) * a.dilation_h - 1) % a.stride_h;
    back.output_pad_w = (COLUMNS + 2 * a.pad_w - (a.kernel_w - 1) * a.dilation_w - 1) % a.stride_w;
    sn_layer deconv = {.op = SN_DECONV, .attr = &back};
    assert_int_equal(sn_op_shape(SN_DECONV, &back, &made, 1, &again, &err), SN_OK);
    assert_memory_equal(&again, &volume, sizeof again);
    assert_int_equal(sn_op_planes(SN_DECONV, &back), PLANES);
    deconv.out = again;
    assert_int_equal(sn_op_measure(&deconv, made, &err), SN_OK);
    uint64_t weights = UINT64_C(8) * (4 / 2) * a.kernel_d * a.kernel_h * a.kernel_w;
    assert_int_equal(deconv.parameters, weights + 4);
    assert_int_equal(deconv.macs, weights * made.n * made.h * made.w);
  }
}

static void pools(void **state) {
  (void)state;
  const struct {
    sn_attr attr;
    uint32_t planes, h, w;
  } cases[] = {
      {{.kernel_d = 2, .kernel_h = 2, .kernel_w = 2, .stride_d = 2, .stride_h = 2, .stride_w = 2}, 2, 2 * 3, 3},
      {{.kernel_d = 2, .kernel_h = 2, .kernel_w = 2, .stride_d = 2, .stride_h = 2, .stride_w = 2, .ceil = true},
       3,
       3 * 3,
       4},
      {{.kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2}, 5, 5 * 3, 3}, /* each plane by itself */
      {{.kernel_d = 3, .kernel_h = 3, .kernel_w = 3, .stride_h = 1, .stride_w = 1, .pad_d = 1}, 5, 5 * 4, 5},
      {{.global = true}, 1, 1, 1},
      {{.adaptive_h = 2, .adaptive_w = 3}, 5, 5 * 2, 3},
      {{.adaptive_d = 3, .adaptive_h = 2, .adaptive_w = 3}, 3, 3 * 2, 3},
      {{.adaptive_d = 9, .adaptive_h = 1, .adaptive_w = 1}, 9, 9, 1},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    sn_attr a = cases[i].attr;
    sn_shape out;
    sn_err err = SN_ERR_INIT;
    a.planes = PLANES;
    if (sn_op_shape(SN_POOL, &a, &volume, 1, &out, &err)) fail_msg("case %zu: %s", i, err.text);
    if (sn_op_planes(SN_POOL, &a) != cases[i].planes || out.h != cases[i].h || out.w != cases[i].w)
      fail_msg("case %zu: %u planes, %ux%u", i, sn_op_planes(SN_POOL, &a), out.h, out.w);
    assert_true(out.n == 2 && out.c == 4);
  }
}

/* Where planes end, and where an image stays one. */
static void planes_of_others(void **state) {
  (void)state;
  const sn_attr of_volume = {.planes = 8}, of_image = {0}, each = {.planes = 8, .positions = true};
  static const sn_op keep[] = {SN_ACT,      SN_LRN,        SN_BN,     SN_DROPOUT, SN_SOFTMAX,
                               SN_JOIN,     SN_FORK,       SN_CONCAT, SN_SCALE,   SN_LAYER_NORM,
                               SN_RMS_NORM, SN_GROUP_NORM, SN_MUL,    SN_SLICE,   SN_PROBABILITIES};
  for (size_t i = 0; i < sizeof keep / sizeof keep[0]; i++) {
    assert_int_equal(sn_op_planes(keep[i], &of_volume), 8);
    assert_int_equal(sn_op_planes(keep[i], &of_image), 0);
  }
  assert_int_equal(sn_op_planes(SN_FC, &of_volume), 0);
  assert_int_equal(sn_op_planes(SN_FC, &each), 8);
  assert_int_equal(sn_op_planes(SN_RESHAPE, &of_volume), 0);
  assert_int_equal(sn_op_planes(SN_CONV, &(sn_attr){.kernel_h = 3, .kernel_w = 3}), 0);
  assert_int_equal(sn_op_planes(SN_CONV, &(sn_attr){.kernel_d = 1, .planes = 1}), 1);
  assert_int_equal(sn_op_planes(SN_CONV, &(sn_attr){.kernel_d = 3, .pad_d = 1}), 1);
  assert_int_equal(sn_op_planes(SN_DECONV, &(sn_attr){.kernel_d = 4, .planes = 1}), 4);
}

/* -- what does not go --------------------------------------------------------------------------------------------- */

static void refuses_windows(void **state) {
  (void)state;
  const uint32_t far = SN_MAX_DIM;
  const struct {
    sn_op op;
    sn_attr attr;
    const char *message;
  } cases[] = {
      {SN_CONV, {.kernel_d = 6, .kernel_h = 3, .kernel_w = 3}, "kernel 6x3x3 is larger than its padded input 5x6x7"},
      {SN_CONV,
       {.kernel_d = 3, .kernel_h = 3, .kernel_w = 3, .dilation_d = 3},
       "kernel 7x3x3, dilated, is larger than its padded input 5x6x7"},
      {SN_CONV, {.kernel_d = far + 1, .kernel_h = 3, .kernel_w = 3}, "kernel 16777217 is not from 1"},
      {SN_CONV,
       {.kernel_h = 1, .kernel_w = 1, .pad_d = far, .pad_h = far},
       "its output has 33554437 planes of 33554438 rows, together more than 16777216"},
      {SN_POOL,
       {.kernel_d = 2, .kernel_h = 2, .kernel_w = 2, .pad_d = 2},
       "pad 2x0x0 is not smaller than kernel 2x2x2"},
      {SN_POOL, {.adaptive_d = far, .adaptive_h = 2, .adaptive_w = 2}, "its output has 16777216 planes of 2 rows"},
      {SN_DECONV, {.kernel_d = 2, .kernel_h = 2, .kernel_w = 2, .output_pad_d = 1}, "output_pad 1 is not smaller"},
      {SN_DECONV, {.kernel_d = 1, .kernel_h = 2, .kernel_w = 2, .pad_d = 3}, "its output has -1 planes"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    sn_attr a = cases[i].attr;
    sn_shape out;
    sn_err err = SN_ERR_INIT;
    a.planes = PLANES;
    a.channels = a.groups = 1;
    a.stride_h = a.stride_w = 1;
    assert_int_equal(sn_op_shape(cases[i].op, &a, &volume, 1, &out, &err), SN_BAD_INPUT);
    if (!strstr(err.text, cases[i].message)) fail_msg("%s\ninstead of\n%s", err.text, cases[i].message);
  }
}

static sn_net *load_text(const char *text, sn_err *err) {
  return sn_net_from_json("t.json", text, strlen(text), 2, err);
}

#define NET(layers) "{\"snsim_net\":1,\"name\":\"t\",\"input\":[3,8,6,6],\"layers\":[\n" layers "]}"
#define END         "{\"name\":\"end\",\"op\":\"POOL\",\"global\":true},{\"name\":\"loss\",\"op\":\"SOFTMAX\"}"

static void refuses_files(void **state) {
  (void)state;
  static const struct {
    const char *text, *message;
  } cases[] = {
      {NET("{\"name\":\"a\",\"op\":\"PAD\",\"pad\":1}," END),
       "t.json:2: layer \"a\": PAD takes images, but its input is a volume of 8 planes"},
      {NET("{\"name\":\"a\",\"op\":\"RESIZE\",\"scale\":2}," END), "layer \"a\": RESIZE takes images"},
      {NET("{\"name\":\"a\",\"op\":\"TAKE\"}," END), "layer \"a\": TAKE takes images"},
      {NET("{\"name\":\"a\",\"op\":\"SLICE\",\"axis\":\"height\",\"count\":1}," END),
       "layer \"a\": SLICE along the height takes images"},
      {NET("{\"name\":\"a\",\"op\":\"PROBABILITIES\",\"axis\":\"height\"}," END),
       "layer \"a\": PROBABILITIES along the height takes images"},
      {NET("{\"name\":\"a\",\"op\":\"CONV\",\"channels\":1,\"kernel\":[1,2,3,4]}," END),
       "\"kernel\" must be one number, or three: [depth, height, width]"},
      {NET("{\"name\":\"a\",\"op\":\"CONV\",\"channels\":1,\"kernel\":[0,1,1]}," END),
       "\"kernel\" must be a whole number"},
      {NET("{\"name\":\"p\",\"op\":\"POOL\",\"kernel\":[2,1,1],\"stride\":[2,1,1]},"
           "{\"name\":\"a\",\"op\":\"JOIN\",\"inputs\":[\"data\",\"p\"]}," END),
       "layer \"a\": JOIN takes volumes of one depth: input 1 has 8 planes, input 2 has 4"},
      {NET("{\"name\":\"p\",\"op\":\"POOL\",\"kernel\":[1,2,2]},"
           "{\"name\":\"a\",\"op\":\"CONCAT\",\"inputs\":[\"data\",\"p\"]}," END),
       "input 1 is 3x8x6x6, input 2 is 3x8x5x5 (channels x depth x height x width)"},
      {NET("{\"name\":\"a\",\"op\":\"SOFTMAX\"}"), "SOFTMAX classifies whole images, but its input is 8x6x6 pixels"},
      {"{\"snsim_net\":1,\"name\":\"t\",\"input\":[3,6,6],\"layers\":["
       "{\"name\":\"a\",\"op\":\"CONV\",\"channels\":1,\"kernel\":[1,1,1]}," END "]}",
       "three are of volumes, whose \"input\" is [channels, depth, height, width]"},
      {"{\"snsim_net\":1,\"name\":\"t\",\"input\":[3,16777216,2,1],\"layers\":[" END "]}",
       "volumes of 16777216 planes of 2 rows have more than 16777216 rows together"},
      {"{\"snsim_net\":1,\"name\":\"t\",\"input\":[3,0,2,1],\"layers\":[" END "]}", "\"input\" must be a whole number"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    sn_err err = SN_ERR_INIT;
    assert_null(load_text(cases[i].text, &err));
    assert_int_equal(err.code, SN_BAD_INPUT);
    if (!strstr(err.text, cases[i].message)) fail_msg("%s\ninstead of\n%s", err.text, cases[i].message);
  }
}

/* -- files -------------------------------------------------------------------------------------------------------- */

static char *write_text(const sn_net *net) {
  sn_err err = SN_ERR_INIT;
  char *text = NULL;
  size_t bytes;
  FILE *out = open_memstream(&text, &bytes);
  assert_non_null(out);
  assert_int_equal(sn_net_write_json(net, out, &err), SN_OK);
  assert_int_equal(fclose(out), 0);
  return text;
}

static void assert_same(const sn_net *a, const sn_net *b) {
  assert_int_equal(a->n_layers, b->n_layers);
  for (uint32_t i = 0; i < a->n_layers; i++) {
    const sn_layer *x = &a->layers[i], *y = &b->layers[i];
    if (x->planes != y->planes || memcmp(&x->out, &y->out, sizeof x->out) != 0 || x->macs != y->macs ||
        x->parameters != y->parameters)
      fail_msg("%s: layer \"%s\" differs", a->name, x->name);
  }
}

static void check_written(sn_net *net) {
  sn_err err = SN_ERR_INIT;
  char *text = write_text(net);
  sn_net *again = sn_net_from_json("again.json", text, strlen(text), net->batch, &err);
  if (!again) fail_msg("%s: %s", net->name, err.text);
  assert_same(net, again);
  char *second = write_text(again);
  assert_string_equal(text, second);
  free(text);
  free(second);
  sn_net_free(net);
  sn_net_free(again);
}

/* One number is of all axes, two of each plane by itself, three of depth, height and width. */
static void sizes_in_files(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_net *net = load_text(
      NET("{\"name\":\"cube\",\"op\":\"CONV\",\"channels\":4,\"kernel\":3,\"stride\":2,\"pad\":1},"
          "{\"name\":\"plane\",\"op\":\"CONV\",\"channels\":4,\"kernel\":[3,3],\"pad\":[1,1]},"
          "{\"name\":\"time\",\"op\":\"CONV\",\"channels\":4,\"kernel\":[3,1,1],\"pad\":[1,0,0],\"dilation\":[1,2,2]},"
          "{\"name\":\"weighed\",\"op\":\"POOL\",\"mode\":\"average\",\"global\":true},"
          "{\"name\":\"mul\",\"op\":\"MUL\",\"inputs\":[\"time\",\"weighed\"]},"
          "{\"name\":\"up\",\"op\":\"DECONV\",\"channels\":2,\"kernel\":[4,2,2],\"stride\":[4,2,2]},"
          "{\"name\":\"few\",\"op\":\"POOL\",\"adaptive\":[3,4]},"
          "{\"name\":\"fewer\",\"op\":\"POOL\",\"adaptive\":[2,3,3]},"
          "{\"name\":\"flat\",\"op\":\"RESHAPE\",\"shape\":[0,6,3]},"
          "{\"name\":\"image\",\"op\":\"CONV\",\"channels\":4,\"kernel\":[3,3]}," END),
      &err);
  if (!net) fail_msg("%s", err.text);
  static const struct {
    const char *name;
    uint32_t planes, c, h, w;
  } expected[] = {{"data", 8, 3, 48, 6},     {"cube", 4, 4, 12, 3}, {"plane", 4, 4, 12, 3}, {"time", 4, 4, 12, 3},
                  {"weighed", 1, 4, 1, 1},   {"mul", 4, 4, 12, 3},  {"up", 16, 2, 96, 6},   {"few", 16, 2, 48, 4},
                  {"fewer", 2, 2, 2 * 3, 3}, {"flat", 0, 2, 6, 3},  {"image", 0, 4, 4, 1}};
  for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
    const sn_layer *layer = named(net, expected[i].name);
    if (layer->planes != expected[i].planes || layer->out.c != expected[i].c || layer->out.h != expected[i].h ||
        layer->out.w != expected[i].w)
      fail_msg("%s: %u planes, %ux%ux%u", layer->name, layer->planes, layer->out.c, layer->out.h, layer->out.w);
  }
  assert_int_equal(named(net, "cube")->parameters, 4 * 3 * 27 + 4);
  assert_int_equal(named(net, "plane")->parameters, 4 * 4 * 9 + 4);
  check_written(net);
}

static void example_is_written(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_net *net = sn_net_load(SNSIM_SOURCE_DIR "/models/examples/unet3d.json", 2, 32, &err);
  if (!net) fail_msg("%s", err.text);
  const sn_layer *bottom = named(net, "relu2.bottom"), *end = named(net, "classes");
  assert_true(bottom->planes == 8 && bottom->out.c == 128 && sn_layer_rows(bottom) == 8 && bottom->out.w == 8);
  assert_true(end->planes == 32 && end->out.c == 3 && sn_layer_rows(end) == 32 && end->out.w == 32);
  assert_int_equal(net->label_bytes, 2 * 32 * 32 * 32 * 4);
  /* convolutions in pairs with their norms, of a channel's width before and behind; two DECONVs; the classes */
  const uint64_t down = 27 * (1 * 32 + 32 * 32 + 32 * 64 + 64 * 64 + 64 * 128 + 128 * 128) + 4 * (32 + 64 + 128);
  const uint64_t across = 27 * (128 * 64 + 64 * 64 + 64 * 32 + 32 * 32) + 4 * (64 + 32);
  assert_int_equal(net->parameters, down + across + 8 * (128 * 64 + 64 * 32) + 64 + 32 + 32 * 3 + 3);
  check_written(net);
}

/* -- algorithms --------------------------------------------------------------------------------------------------- */

/* GEMMs only; workspaces with the depth of window and output. */
static void algorithms(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_device device = load_gpu("titan_v");
  sn_builder *b = sn_builder_new_volumes("one", 4, 64, 8, 14, 14, &err);
  const sn_conv cube = {.channels = 64, .kernel = 3, .pad = 1, .kernel_deep = 3, .pad_deep = 1};
  uint32_t x = sn_build_conv(b, SN_DATA_LAYER, cube, "conv");
  x = sn_build_pool(b, x, (sn_pooling){.global = true}, "pool");
  sn_build_softmax(b, x, "softmax");
  sn_net *net = sn_builder_finish(b, NULL, &err);
  must(&err);
  sn_arithmetic how = sn_device_arithmetic(&device, SN_FP32, true, 4);
  for (sn_conv_kernel kernel = 0; kernel < SN_CONV_KERNELS; kernel++) {
    sn_conv_choice c[SN_CONV_ALGOS];
    uint32_t n = sn_conv_choices(&net->layers[1], net->layers[0].out, kernel, &device, &how, c);
    assert_in_range(n, 1, 3);
    for (uint32_t i = 0; i < n; i++) {
      const uint64_t workspace[] = {0, 4 * (64 * 27 + 8 * 14 * 14), UINT64_C(4) * 64 * 27 * 8 * 14 * 14};
      assert_in_range(c[i].algo, SN_IMPLICIT_GEMM, SN_GEMM);
      assert_int_equal(c[i].workspace, workspace[c[i].algo]);
      double least = 2.0 * (double)net->layers[1].macs / device.flops;
      assert_true((double)c[i].ns / 1e9 > least);
    }
  }
  sn_net_free(net);
}

/* -- torchvision -------------------------------------------------------------------------------------------------- */

static void assert_volume(const sn_net *net, const char *name, uint32_t c, uint32_t d, uint32_t side) {
  const sn_layer *layer = named(net, name);
  if (layer->out.c != c || layer->planes != d || sn_layer_rows(layer) != side || layer->out.w != side)
    fail_msg("%s, %s: %ux%ux%ux%u", net->name, name, layer->out.c, layer->planes, sn_layer_rows(layer), layer->out.w);
}

static sn_net *load_zoo(const char *spec, uint32_t image) {
  sn_err err = SN_ERR_INIT;
  sn_net *net = sn_net_load(spec, 1, image, &err);
  if (!net) fail_msg("%s: %s", spec, err.text);
  return net;
}

/* Shapes that forward hooks on torchvision's modules show. */
static void video(void **state) {
  (void)state;
  sn_net *r3d = load_zoo("tv_r3d_18", 0), *mc3 = load_zoo("tv_mc3_18", 0), *split = load_zoo("tv_r2plus1d_18", 0);
  assert_volume(r3d, "data", 3, 16, 112);
  assert_volume(r3d, "stem.0", 64, 16, 56);
  assert_volume(r3d, "layer2.0.conv1.0", 128, 8, 28);
  assert_volume(r3d, "layer4.1.add", 512, 2, 7);
  assert_volume(r3d, "avgpool", 512, 1, 1);
  assert_volume(mc3, "layer1.1.conv2.0", 64, 16, 56);
  assert_volume(mc3, "layer2.0.downsample.0", 128, 16, 28);
  assert_volume(mc3, "layer4.1.conv1.0", 512, 16, 7);
  assert_volume(split, "stem.0", 45, 16, 56);
  assert_volume(split, "layer1.0.conv1.0.0", 144, 16, 56);
  assert_volume(split, "layer2.0.conv1.0.0", 230, 16, 28);
  assert_volume(split, "layer2.0.conv2.0.0", 230, 8, 28);
  assert_volume(split, "layer4.0.conv1.0.3", 512, 2, 7);
  assert_int_equal(named(split, "layer3.0.conv1.0.3")->attr->stride_d, 2);
  assert_string_equal(source(r3d, "layer2.0.add", 0), "layer2.0.conv2.1");
  check_written(mc3);
  check_written(split);
  check_written(r3d);
  sn_net *longer = load_zoo("tv_r3d_18:frames=32", 64);
  assert_volume(longer, "layer4.1.add", 512, 4, 4);
  assert_int_equal(longer->parameters, 33371472);
  sn_net_free(longer);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(conv_windows),    cmocka_unit_test(deconv_windows),
      cmocka_unit_test(pools),           cmocka_unit_test(planes_of_others),
      cmocka_unit_test(refuses_windows), cmocka_unit_test(refuses_files),
      cmocka_unit_test(sizes_in_files),  cmocka_unit_test(example_is_written),
      cmocka_unit_test(algorithms),      cmocka_unit_test(video),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
