/* Convolution algorithms and costs: which can run where, workspaces by hand, choices that are worth having only, times
 * that add up. */
#include "tests/support/pipeline.h"
#include "tests/support/seed.h"

#include "models/build/build.h"
#include "sim/device/conv.h"
#include "sim/graph/route.h"

#include <math.h>
#include <stdio.h>

typedef struct geometry {
  uint32_t batch, channels, side; /* input */
  sn_conv conv;
} geometry;

/* A net of one convolution; layer 1 is it. */
static sn_net *one_conv(geometry g) {
  sn_err err = SN_ERR_INIT;
  sn_builder *b = sn_builder_new("one", g.batch, g.channels, g.side, g.side, &err);
  uint32_t x = sn_build_conv(b, SN_DATA_LAYER, g.conv, "conv");
  x = sn_build_pool(b, x, (sn_pooling){.global = true}, "pool");
  sn_build_softmax(b, x, "softmax");
  sn_net *net = sn_builder_finish(b, NULL, &err);
  must(&err);
  return net;
}

static uint32_t choices_of(geometry g, sn_conv_kernel kernel, const sn_device *device, sn_conv_choice *choices) {
  sn_net *net = one_conv(g);
  sn_arithmetic how = sn_device_arithmetic(device, SN_FP32, true, 4);
  uint32_t n = sn_conv_choices(&net->layers[1], net->layers[0].out, kernel, device, &how, choices);
  sn_net_free(net);
  return n;
}

static const sn_conv_choice *find_algo(const sn_conv_choice *choices, uint32_t n, sn_conv_algo algo) {
  for (uint32_t i = 0; i < n; i++)
    if (choices[i].algo == algo) return &choices[i];
  return NULL;
}

/* A device on which arithmetic counts and the given algorithms win: all rates equal, memory endless. */
static sn_device ideal_device(bool winograd) {
  sn_device d = load_gpu("titan_v");
  d.flops = 1e9; /* so small that tiles always fill it */
  d.memory_bandwidth = 1e18;
  d.gemm_efficiency = d.conv_efficiency = d.memory_efficiency = 1;
  d.winograd = winograd;
  d.launch_ns = 0;
  return d;
}

static geometry draw_geometry(uint64_t *seed) {
  static const uint32_t kernels[] = {1, 3, 5, 7, 11};
  geometry g = {.batch = 1 + prng_below(seed, 300)};
  g.side = 11 + prng_below(seed, 290);
  uint32_t groups = 1 + prng_below(seed, 4);
  g.channels = groups * (1 + prng_below(seed, 128));
  g.conv = (sn_conv){.channels = groups * (1 + prng_below(seed, 128)), .groups = groups};
  g.conv.kernel = kernels[prng_below(seed, 5)];
  g.conv.stride = 1 + prng_below(seed, 3);
  g.conv.pad = prng_below(seed, g.conv.kernel);
  return g;
}

/* Fastest first, each later one slower and with less workspace, the last with none; only what can run. */
static void worth_having(void **state) {
  (void)state;
  static const char *const gpus[] = {"k40c", "titan_v", "h200"};
  uint64_t seed = first_seed(21);
  for (int i = 0; i < 3000; i++) {
    geometry g = draw_geometry(&seed);
    sn_device device = load_gpu(gpus[i % 3]);
    sn_conv_choice c[SN_CONV_ALGOS];
    uint32_t n = choices_of(g, (sn_conv_kernel)(i % SN_CONV_KERNELS), &device, c);
    assert_in_range(n, 1, SN_CONV_ALGOS);
    assert_int_equal(c[n - 1].workspace, 0);
    assert_int_equal(c[n - 1].algo, SN_IMPLICIT_GEMM);
    for (uint32_t k = 0; k < n; k++) {
      assert_true(c[k].ns > 0);
      if (k > 0) assert_true(c[k].ns >= c[k - 1].ns && c[k].workspace < c[k - 1].workspace);
      bool fft = c[k].algo == SN_FFT || c[k].algo == SN_FFT_TILING;
      bool winograd = c[k].algo == SN_WINOGRAD || c[k].algo == SN_WINOGRAD_NONFUSED;
      if (fft || winograd) assert_int_equal(g.conv.stride, 1);
      if (fft) assert_true(g.conv.kernel > 1);
      if (c[k].algo == SN_FFT) assert_true(g.side + 2 * g.conv.pad <= 256);
      if (winograd) assert_true(device.winograd && g.conv.kernel == 3);
    }
  }
}

/* A DECONV is the convolution the other way round: forward and backward by data change places. */
static void deconv_is_mirrored(void **state) {
  (void)state;
  static const sn_conv_kernel mirror[] = {SN_CONV_BACKWARD_DATA, SN_CONV_FORWARD, SN_CONV_BACKWARD_FILTER};
  uint64_t seed = first_seed(23);
  uint32_t different = 0;
  sn_device device = load_gpu("titan_v");
  for (int i = 0; i < 300; i++) {
    geometry g = draw_geometry(&seed);
    sn_net *net = one_conv(g);
    sn_layer conv = net->layers[1], deconv = conv;
    sn_shape in = net->layers[0].out;
    sn_arithmetic how = sn_device_arithmetic(&device, SN_FP32, true, 4);
    deconv.op = SN_DECONV;
    sn_attr back = *conv.attr;
    back.channels = in.c;
    deconv.attr = &back;
    deconv.out = in;
    for (sn_conv_kernel k = 0; k < SN_CONV_KERNELS; k++) {
      sn_conv_choice a[SN_CONV_ALGOS], b[SN_CONV_ALGOS], same[SN_CONV_ALGOS];
      uint32_t n = sn_conv_choices(&deconv, conv.out, k, &device, &how, a);
      assert_int_equal(n, sn_conv_choices(&conv, in, mirror[k], &device, &how, b));
      for (uint32_t c = 0; c < n; c++)
        assert_true(a[c].algo == b[c].algo && a[c].ns == b[c].ns && a[c].workspace == b[c].workspace);
      sn_conv_choices(&conv, in, k, &device, &how, same);
      different += a[0].ns != same[0].ns;
    }
    sn_net_free(net);
  }
  assert_true(different > 100);
}

/* AlexNet's conv2 at batch 128: 96 x 27 x 27 in, 256 x 27 x 27 out, 5x5, padding 2. Padded to 31, so transforms of 32 x
 * 32 with 32 x 17 frequencies of 8 bytes, each plane twice; tiles of 32 - 5 + 1 = 28 pixels cover 27: one an image. */
static void fft_workspace(void **state) {
  (void)state;
  const geometry conv2 = {128, 96, 27, {.channels = 256, .kernel = 5, .pad = 2}};
  const uint64_t planes = 128 * 96 + 128 * 256 + 256 * 96, bytes = 2 * 8 * 32 * 17 * planes;
  sn_device d = ideal_device(false);
  sn_conv_choice c[SN_CONV_ALGOS];
  uint32_t n = choices_of(conv2, SN_CONV_FORWARD, &d, c);
  const sn_conv_choice *fft = find_algo(c, n, SN_FFT), *tiling = find_algo(c, n, SN_FFT_TILING);
  assert_true(!fft || fft->workspace == bytes);
  assert_true(!tiling || tiling->workspace == bytes);
  assert_true(fft || tiling);                                     /* one of two equals is enough */
  assert_true(c[0].algo == SN_FFT || c[0].algo == SN_FFT_TILING); /* 5x5 windows are what FFT is for */
}

/* conv3: 256 x 13 x 13 in, 384 out, 3x3: 4 x 4 tiles of 4x4 pixels, 36 numbers each. */
static void winograd_workspace(void **state) {
  (void)state;
  const geometry conv3 = {128, 256, 13, {.channels = 384, .kernel = 3, .pad = 1}};
  sn_device d = ideal_device(true);
  sn_conv_choice c[SN_CONV_ALGOS];
  uint32_t n = choices_of(conv3, SN_CONV_FORWARD, &d, c);
  const sn_conv_choice *nonfused = find_algo(c, n, SN_WINOGRAD_NONFUSED), *fused = find_algo(c, n, SN_WINOGRAD);
  assert_non_null(nonfused);
  assert_non_null(fused);
  assert_int_equal(nonfused->workspace, 4 * 36 * (128 * 16 * (256 + 384) + 256 * 384));
  assert_int_equal(fused->workspace, 4 * 16 * 256 * 384);
  assert_true(nonfused->ns < fused->ns); /* a quarter of the arithmetic, not 1/2.25 */
  d.winograd = false;
  n = choices_of(conv3, SN_CONV_FORWARD, &d, c);
  assert_null(find_algo(c, n, SN_WINOGRAD));
  assert_null(find_algo(c, n, SN_WINOGRAD_NONFUSED));
}

/* Stride 2 leaves the GEMM family. With endless memory bandwidth explicit GEMM is never faster than precomputed. */
static void gemm_workspace(void **state) {
  (void)state;
  const geometry strided = {16, 64, 56, {.channels = 128, .kernel = 3, .pad = 1, .stride = 2, .groups = 2}};
  sn_device d = ideal_device(true);
  sn_conv_choice c[SN_CONV_ALGOS];
  for (sn_conv_kernel kernel = 0; kernel < SN_CONV_KERNELS; kernel++) {
    uint32_t n = choices_of(strided, kernel, &d, c);
    assert_int_equal(n, 2);
    assert_int_equal(c[0].algo, SN_PRECOMPUTED_GEMM);
    assert_int_equal(c[0].workspace, 4 * (32 * 9 + 28 * 28));
    assert_int_equal(c[1].algo, SN_IMPLICIT_GEMM);
  }
}

/* Twice the images take twice as long where tiles fit; backward kernels take longer than forward. */
static void times_scale(void **state) {
  (void)state;
  sn_device d = ideal_device(false);
  geometry g = {64, 64, 64, {.channels = 64, .kernel = 3, .pad = 1, .stride = 1}};
  sn_conv_choice one[SN_CONV_ALGOS], two[SN_CONV_ALGOS], back[SN_CONV_ALGOS];
  uint32_t n_one = choices_of(g, SN_CONV_FORWARD, &d, one);
  uint32_t n_back = choices_of(g, SN_CONV_BACKWARD_DATA, &d, back);
  g.batch *= 2;
  uint32_t n_two = choices_of(g, SN_CONV_FORWARD, &d, two);
  double ratio = (double)two[n_two - 1].ns / (double)one[n_one - 1].ns;
  assert_true(fabs(ratio - 2) < 1e-3);
  assert_true(back[n_back - 1].ns > one[n_one - 1].ns);
  /* 2 n k c r s p q flops at 80 % of 1 GFLOP/s; 64 channels and 64 x 64 pixels are whole tiles */
  double seconds = 2.0 * 64 * 64 * 64 * 9 * 64 * 64 / 0.8e9;
  assert_true(fabs((double)one[n_one - 1].ns / 1e9 / seconds - 1) < 0.01);
}

/* Tiles of this would need 2^52.4 bytes of workspace. Whatever is offered stays within what the clock and the pool can
 * count. */
static void absurd_sizes(void **state) {
  (void)state;
  const geometry g = {1u << 17, 1, 257, {.channels = 1u << 16, .kernel = 3, .pad = 1}};
  sn_device d = ideal_device(true);
  sn_conv_choice c[SN_CONV_ALGOS];
  uint32_t n = choices_of(g, SN_CONV_FORWARD, &d, c);
  for (uint32_t i = 0; i < n; i++) {
    assert_true(c[i].workspace <= UINT64_C(1) << 52);
    assert_true(c[i].ns > 0 && c[i].ns <= (int64_t)(SN_MAX_OP_SECONDS * 1e9));
  }
}

static void algorithm_names(void **state) {
  (void)state;
  for (sn_conv_algo a = 0; a < SN_CONV_ALGOS; a++)
    for (sn_conv_algo b = 0; b < a; b++) assert_string_not_equal(sn_conv_algo_name(a), sn_conv_algo_name(b));
  assert_string_equal(sn_conv_algo_name(SN_IMPLICIT_GEMM), "implicit_gemm");
  assert_string_equal(sn_conv_algo_name(SN_WINOGRAD_NONFUSED), "winograd_nonfused");
}

/* ---- costs of steps ---- */

/* A CONV step lasts as long as its kernels and what stands beside them: the difference of two algorithms is theirs. */
static void conv_steps(void **state) {
  (void)state;
  pipeline p = pipeline_open("alexnet", 64);
  uint32_t layer = find_layer(p.net, "conv2"), n, n_data, n_filter;
  const sn_conv_choice *f = sn_costs_conv(p.costs, layer, SN_CONV_FORWARD, &n);
  const sn_conv_choice *data = sn_costs_conv(p.costs, layer, SN_CONV_BACKWARD_DATA, &n_data);
  const sn_conv_choice *filter = sn_costs_conv(p.costs, layer, SN_CONV_BACKWARD_FILTER, &n_filter);
  int64_t beside = -1, beside_back = -1;
  for (uint32_t i = 0; i < n; i++) {
    uint8_t algo[2] = {(uint8_t)f[i].algo, SN_NO_ALGO};
    int64_t rest = sn_costs_step(p.costs, layer, SN_FORWARD, algo) - f[i].ns;
    assert_true(rest > 0 && (beside < 0 || rest == beside)); /* the bias */
    beside = rest;
  }
  for (uint32_t i = 0; i < n_data; i++)
    for (uint32_t k = 0; k < n_filter; k++) {
      uint8_t algo[2] = {(uint8_t)data[i].algo, (uint8_t)filter[k].algo};
      int64_t rest = sn_costs_step(p.costs, layer, SN_BACKWARD, algo) - data[i].ns - filter[k].ns;
      assert_true(rest > 0 && (beside_back < 0 || rest == beside_back));
      beside_back = rest;
    }
  pipeline_close(&p);
}

/* A ReLU reads x and writes y; backward reads x, y, dy and writes dx: twice the bytes. */
static void memory_bound_steps(void **state) {
  (void)state;
  const uint8_t none[2] = {SN_NO_ALGO, SN_NO_ALGO};
  pipeline p = pipeline_open("alexnet", 64);
  uint32_t relu = find_layer(p.net, "relu1");
  double bytes = 2.0 * 64 * 290400 * 4, rate = p.device.memory_bandwidth * p.device.memory_efficiency;
  int64_t forward = sn_costs_step(p.costs, relu, SN_FORWARD, none) - p.device.launch_ns;
  int64_t backward = sn_costs_step(p.costs, relu, SN_BACKWARD, none) - p.device.launch_ns;
  assert_true(llabs(forward - llround(bytes / rate * 1e9)) <= 1);
  assert_true(llabs(backward - llround(2 * bytes / rate * 1e9)) <= 1);
  assert_int_equal(sn_costs_step(p.costs, relu, SN_UPDATE, none), 0);
  pipeline_close(&p);
}

/* Every step of every net takes time, forward less than backward but for SOFTMAX and DROPOUT. */
static void all_steps(void **state) {
  (void)state;
  pipeline p = pipeline_open("inception_v4", 8);
  for (uint32_t i = 1; i < p.net->n_layers; i++) {
    const uint8_t gemm[2] = {SN_IMPLICIT_GEMM, SN_IMPLICIT_GEMM};
    assert_true(sn_costs_step(p.costs, i, SN_FORWARD, gemm) > 0);
    assert_true(sn_costs_step(p.costs, i, SN_BACKWARD, gemm) > 0);
    bool updates = sn_costs_step(p.costs, i, SN_UPDATE, gemm) > 0;
    assert_int_equal(updates, p.net->layers[i].parameters > 0);
  }
  pipeline_close(&p);
}

static void must_cost_the_same(const sn_costs *costs, uint32_t layer, const sn_costs *alone) {
  uint8_t smallest[2] = {SN_NO_ALGO, SN_NO_ALGO};
  for (sn_conv_kernel kernel = 0; kernel < SN_CONV_KERNELS; kernel++) {
    uint32_t n, n_alone;
    const sn_conv_choice *choices = sn_costs_conv(costs, layer, kernel, &n);
    const sn_conv_choice *choices_alone = sn_costs_conv(alone, 1, kernel, &n_alone);
    assert_int_equal(n, n_alone);
    for (uint32_t i = 0; i < n; i++) {
      assert_int_equal(choices[i].algo, choices_alone[i].algo);
      assert_int_equal(choices[i].workspace, choices_alone[i].workspace);
      assert_int_equal(choices[i].ns, choices_alone[i].ns);
    }
  }
  for (sn_pass pass = 0; pass < SN_PASSES; pass++)
    assert_int_equal(sn_costs_step(costs, layer, pass, smallest), sn_costs_step(alone, 1, pass, smallest));
}

/* Layers that are alike, or only nearly, cost what each costs alone, and one can be measured without the other. */
static void layers_alike(void **state) {
  (void)state;
  static const sn_conv convs[] = {{.channels = 16, .kernel = 3, .pad = 1},
                                  {.channels = 16, .kernel = 3, .kernel_wide = 1, .pad = 1},
                                  {.channels = 16, .kernel = 3, .pad = 1},
                                  {.channels = 16, .kernel = 1, .kernel_wide = 3, .pad_wide = 1},
                                  {.channels = 16, .kernel = 3, .pad = 1, .no_bias = true},
                                  {.channels = 16, .kernel = 1, .kernel_wide = 3, .pad_wide = 1}};
  enum { CONVS = sizeof convs / sizeof convs[0] };
  sn_err err = SN_ERR_INIT;
  sn_device device = load_gpu("k40c");
  sn_builder *b = sn_builder_new("alike", 4, 16, 32, 32, &err);
  uint32_t x = SN_DATA_LAYER;
  for (uint32_t i = 0; i < CONVS; i++) x = sn_build_conv(b, x, convs[i], "conv%u", i);
  x = sn_build_pool(b, x, (sn_pooling){.global = true}, "pool");
  sn_build_softmax(b, x, "softmax");
  sn_net *net = sn_builder_finish(b, NULL, &err);
  must(&err);
  sn_costs *costs = sn_costs_new(net, &device, &err);
  must(&err);
  for (uint32_t i = 0; i < CONVS; i++) {
    sn_net *one = one_conv((geometry){4, 16, 32, convs[i]});
    sn_costs *alone = sn_costs_new(one, &device, &err);
    must(&err);
    if (i == 2) sn_costs_set_algorithm(costs, 1, SN_CONV_FORWARD, SN_IMPLICIT_GEMM, 0, 1);
    must_cost_the_same(costs, i + 1, alone);
    sn_costs_free(alone);
    sn_net_free(one);
  }
  sn_costs_free(costs);
  sn_net_free(net);
}

/* A depthwise convolution reads and writes its input, output and weights once, and where cuDNN has it channels first for
 * its filter half of the window as often; PyTorch's own kernel for that has 98 turns of 32 pixels for each of 4 images
 * of a warp, here twice as many blocks as there is room for. Arithmetic counts, too, a fifth of the lanes' peak, and in
 * wide windows of channels first a tenth and a twentieth. */
static void direct_kernels_by_hand(void **state) {
  (void)state;
  sn_device d = load_gpu("titan_v");
  d.memory_efficiency = 1;
  d.launch_ns = 0;
  d.multiprocessors = 48;
  sn_conv_choice choices[SN_CONV_ALGOS];
  geometry g = {32, 64, 56, {.channels = 64, .kernel = 3, .stride = 1, .pad = 1, .groups = 64}};
  double once = 4.0 * (2.0 * 32 * 64 * 56 * 56 + 64 * 9) / d.memory_bandwidth * 1e9;
  for (sn_conv_kernel k = SN_CONV_FORWARD; k < SN_CONV_KERNELS; k++) {
    assert_true(choices_of(g, k, &d, choices) > 0);
    double expected = k == SN_CONV_BACKWARD_FILTER ? 4 * 98 * 2 / 3e6 * 1e9 : once;
    assert_true(fabs((double)choices[0].ns - expected) <= 1);
  }
  sn_net *same = one_conv(g);
  sn_arithmetic lies = sn_device_arithmetic(&d, SN_FP32, false, 4);
  lies.channels_last = true;
  assert_true(sn_conv_choices(&same->layers[1], same->layers[0].out, SN_CONV_BACKWARD_FILTER, &d, &lies, choices) > 0);
  assert_true(fabs((double)choices[0].ns - once) <= 1);
  lies = sn_device_arithmetic(&d, SN_FP16, false, 2);
  assert_true(sn_conv_choices(&same->layers[1], same->layers[0].out, SN_CONV_BACKWARD_FILTER, &d, &lies, choices) > 0);
  assert_true(fabs((double)choices[0].ns - 4.5 * once / 2) <= 1);
  sn_net_free(same);
  d.memory_bandwidth = 1e18;
  for (uint32_t kernel = 3; kernel <= 7; kernel += 2) {
    g.conv.kernel = kernel;
    g.conv.pad = kernel / 2;
    const double flops = 2.0 * 32 * 64 * kernel * kernel * 56 * 56;
    sn_arithmetic how = sn_device_arithmetic(&d, SN_FP32, false, 4);
    sn_net *net = one_conv(g);
    for (int last = 0; last < 2; last++) {
      how.channels_last = last;
      assert_true(sn_conv_choices(&net->layers[1], net->layers[0].out, SN_CONV_FORWARD, &d, &how, choices) > 0);
      double rate = kernel == 3 || last ? 0.2 : kernel == 5 ? 0.1 : 0.05;
      assert_true(fabs((double)choices[0].ns - flops / (rate * d.flops) * 1e9) <= 1);
    }
    sn_net_free(net);
  }
  assert_true(sn_conv_is_direct(64, 64) && sn_conv_is_direct(64, 16) && !sn_conv_is_direct(64, 8));
  assert_false(sn_conv_is_direct(3, 1));
}

/* Tiles of 64 by 64, two more for each multiprocessor, the share that a profile's feed gives; a kernel of gradients turns
 * what it reads and makes around, unless they lie so already, and forward does so with maps of odd numbers. */
static void tensor_cores_by_hand(void **state) {
  (void)state;
  enum { TILES = 64 * 56 * 56 / 64 };
  sn_device d = load_gpu("rtx3090");
  d.launch_ns = 0;
  d.multiprocessors = TILES / (4 * 2.0);
  d.memory_efficiency = 1;
  double feed = 1 / (1 + d.tensor_flops[SN_FP16] / d.multiprocessors / d.tensor_feed);
  sn_arithmetic how = sn_device_arithmetic(&d, SN_FP16, true, 2);
  assert_true(fabs(how.conv_share - feed) < 1e-9);
  sn_net *net = one_conv((geometry){64, 128, 56, {.channels = 64, .kernel = 3, .stride = 1, .pad = 1, .groups = 1}});
  double flops = 2.0 * 64 * 64 * 128 * 9 * 56 * 56 * 1.25, rate = d.tensor_flops[SN_FP16] * feed;
  double bytes = 2.0 * (64.0 * 128 * 56 * 56 + 64.0 * 64 * 56 * 56 + 64.0 * 128 * 9);
  for (int last = 0; last < 2; last++)
    for (sn_conv_kernel k = SN_CONV_FORWARD; k < SN_CONV_KERNELS; k++) {
      sn_conv_choice choices[SN_CONV_ALGOS];
      how.channels_last = last;
      assert_true(sn_conv_choices(&net->layers[1], net->layers[0].out, k, &d, &how, choices) > 0);
      double expected = flops / rate;
      if (k != SN_CONV_FORWARD && !last) expected += 2 * bytes / d.memory_bandwidth;
      assert_true(fabs((double)choices[0].ns - expected * 1e9) <= 1);
    }
  sn_net_free(net);
  static const double turned[] = {[1] = 0, [3] = 2 * 64.0 * (64 + 128) * 13 * 13};
  int64_t ns[2];
  for (uint32_t kernel = 1; kernel <= 3; kernel += 2) {
    net = one_conv(
        (geometry){64, 128, 13, {.channels = 64, .kernel = kernel, .stride = 1, .pad = kernel / 2, .groups = 1}});
    for (int last = 0; last < 2; last++) {
      sn_conv_choice choices[SN_CONV_ALGOS];
      how.channels_last = last;
      assert_true(sn_conv_choices(&net->layers[1], net->layers[0].out, SN_CONV_FORWARD, &d, &how, choices) > 0);
      ns[last] = choices[0].ns;
    }
    assert_true(fabs((double)(ns[0] - ns[1]) - 2 * turned[kernel] / d.memory_bandwidth * 1e9) <= 1);
    sn_net_free(net);
  }
}

/* The higher the peak of a multiprocessor, the smaller the share of it that its operands are there for; of TF32 less
 * again. On the lanes it is what the architecture says, on tensor cores, too, where no feed is known. */
static void shares_of_tensor_cores(void **state) {
  (void)state;
  static const char *const rising[] = {"a100_80", "l40s", "rtx4090", "rtx3090"};
  double share = 0;
  for (size_t i = 0; i < sizeof rising / sizeof rising[0]; i++) {
    sn_device d = load_gpu(rising[i]);
    sn_arithmetic two = sn_device_arithmetic(&d, SN_AMP_BF16, true, 2),
                  tf32 = sn_device_arithmetic(&d, SN_TF32, true, 4);
    assert_true(two.share > share && two.share < 1 && tf32.share < two.conv_share && two.conv_share < two.share);
    assert_true(sn_device_arithmetic(&d, SN_FP32, true, 4).share == d.gemm_efficiency);
    share = two.share;
    d.tensor_feed = d.product_feed = 0;
    assert_true(sn_device_arithmetic(&d, SN_AMP_BF16, true, 2).share == d.gemm_efficiency);
  }
}

/* All sums of a FORK's gradients together are its backward pass; and PyTorch's host is busy with every operation, but
 * for updates, which are issued together. */
static void operations_of_pytorch(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  const uint8_t algo[2] = {0, 0};
  sn_device device = load_gpu("rtx3090");
  sn_net *net = load_net("tv_densenet121", 4);
  sn_route *route = sn_route_new(net, SN_DIALECT_PYTORCH, SN_ORDER_ROUTE, &err);
  sn_costs *costs = sn_costs_new(net, &device, &err);
  int64_t *ns = calloc(net->n_layers, sizeof *ns);
  must(&err);
  for (uint32_t i = 0; i < route->n_steps; i++) {
    const sn_step *step = &route->steps[i];
    if (step->kernel == SN_SUM) ns[step->layer] += sn_costs_kernel(costs, step, algo, false);
    assert_int_equal(sn_costs_host_ns(costs, route, step), step->pass == SN_UPDATE ? 0 : device.host_ns);
  }
  for (uint32_t i = 0; i < net->n_layers; i++)
    if (ns[i] > 0) assert_int_equal(ns[i], sn_costs_step(costs, i, SN_BACKWARD, algo));
  free(ns);
  sn_costs_free(costs);
  sn_route_free(route);
  sn_net_free(net);
}

static void endless_iteration(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_net *net = load_net("vgg16", 200000);
  sn_device d = load_gpu("k40c");
  d.flops = 1e9;
  assert_null(sn_costs_new(net, &d, &err));
  assert_int_equal(err.code, SN_BAD_INPUT);
  assert_non_null(strstr(err.text, "network vgg16 at batch 200000: an iteration on k40c would take more than 12 days"));
  sn_net_free(net);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(deconv_is_mirrored),
      cmocka_unit_test(worth_having),
      cmocka_unit_test(fft_workspace),
      cmocka_unit_test(winograd_workspace),
      cmocka_unit_test(gemm_workspace),
      cmocka_unit_test(times_scale),
      cmocka_unit_test(absurd_sizes),
      cmocka_unit_test(algorithm_names),
      cmocka_unit_test(conv_steps),
      cmocka_unit_test(memory_bound_steps),
      cmocka_unit_test(all_steps),
      cmocka_unit_test(endless_iteration),
      cmocka_unit_test(layers_alike),
      cmocka_unit_test(direct_kernels_by_hand),
      cmocka_unit_test(tensor_cores_by_hand),
      cmocka_unit_test(shares_of_tensor_cores),
      cmocka_unit_test(operations_of_pytorch),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
