/* Workspace and time of the convolution algorithms; see the header and docs/cost-model.md.
 *
 * Every time is a roofline: the larger of arithmetic over the attainable rate and bytes over the attainable bandwidth,
 * plus the launches. With n images, c and k channels, r x s windows, p x q output pixels, g groups:
 *
 *   GEMM family    2 n k (c/g) r s p q flops
 *   FFT            per plane of h x w (padded): 5 h w log2(h w) / 2 flops; planes: n c + n k + k c/g; then a complex
 *                  product, 8 flops for each of n k c/g and h (w/2 + 1) frequencies
 *   Winograd       direct flops / 2.25 (2x2) or / 4 (4x4)
 *
 *   direct         where groups have few channels (sn_conv_is_direct()): as many flops, on the lanes, in no tiles
 *
 * A DECONV is the convolution that would make its input of its output: its forward is that one's backward by data, and
 * the other way round; its filter gradient is the same. A convolution of volumes has the planes of its output among the
 * rows p and the depth of its window in r s; the GEMM family does it as it does images.
 */
#include "sim/device/conv.h"

#include "base/checked.h"
#include "models/op/op.h"
#include "sim/device/device.h"

#include <math.h>

/* Share of the attainable rate (device profile) that each algorithm's arithmetic reaches. FFT algorithms spend it in
 * plain matrix products, the others in convolution kernels. */
static const struct {
  double rate;
  bool is_gemm;
} algo_rate[SN_CONV_ALGOS] = {
    [SN_IMPLICIT_GEMM] = {0.80, false},
    [SN_PRECOMPUTED_GEMM] = {1.00, false},
    [SN_GEMM] = {0.90, false},
    [SN_FFT] = {0.40, true},
    [SN_FFT_TILING] = {0.40, true},
    [SN_WINOGRAD] = {0.70, false},
    [SN_WINOGRAD_NONFUSED] = {0.75, false},
};

/* The backward kernels of every algorithm reach less: gathered (data) and reduced (filter) operands. */
static const double kernel_rate[SN_CONV_KERNELS] = {1.0, 0.9, 0.8};

/* GEMM kernels work in tiles of this many output channels and pixels; what hangs over is computed in vain. */
static const double gemm_tile = 64;

/* So many tiles for each TFLOP/s of the device, without tensor cores, fill half of it. Up to the A100 that is 4 to 5
 * for each multiprocessor, of 64 lanes. Where a multiprocessor has 128 it takes twice as many to keep them all busy,
 * but not to keep its tensor cores busy, and the clock, which the peak holds too, makes none more of either. */
static const double half_fill_tiles = 24, half_fill_by_tensor_cores = 4.25, half_fill_by_lanes = 8.5;

/* What direct kernels reach of the lanes' peak, which wide windows feel. Of channels first each multiplication loads an
 * input and a weight, four times as many as a multiprocessor loads while it multiplies: up to 3x3 registers keep them;
 * beyond 5x5, which is PyTorch's own kernel and not unrolled, it also counts, compares with four edges and reckons two
 * addresses, some twenty instructions. Of channels last they are cuDNN's. */
static const double direct_rate = 0.2, direct_rate_wide = 0.1, direct_rate_rolled = 0.05;
static const double direct_small = 9, direct_unrolled = 25;

/* How often their input and output go through memory for the filter's gradient in cuDNN's kernel for channels first. */
static const double direct_filter_passes = 0.5;

/* PyTorch's own has a block for each element of the filter. A warp takes an image, a thread an input and a gradient of
 * it at a time and asks for the next when these have come. */
static const double filter_warps = 8, warp = 32, filter_blocks_resident = 6, filter_answer_seconds = 1.0 / 3e6;

/* Frequency planes exist twice: as transformed, and transposed for the batched complex product. */
static const double fft_copies = 2;

/* How often a plane goes through memory: rows, columns and transposition there and back, the product between. */
static const double fft_passes = 8;

/* On tensor cores the last of the waves in which tiles run is half full on the average, and a wave is a block of 128 by
 * 128 on each multiprocessor, four tiles: so many are lost for each. Of two bytes; nobody's rows are of TF32. */
static const double last_wave_tiles = 2;

typedef struct problem {
  double n, c, k, t, r, s, p, q, h, w, groups; /* t: depth of the window; h, w: input pixels with padding */
  bool volumes, direct;
  double gemm_fill, lane_fill; /* tiles that fill half of the device: of products, without tensor cores */
  double width;                /* bytes of an element */
  const sn_attr *attr;
} problem;

typedef struct work {
  double flops, bytes, workspace, launches;
} work;

static double half_fill(const sn_device *d, bool tensor_cores) {
  if (d->multiprocessors == 0) return half_fill_tiles * d->flops / 1e12;
  return d->multiprocessors * (tensor_cores ? half_fill_by_tensor_cores : half_fill_by_lanes);
}

static double multiprocessors(const sn_device *d) {
  return half_fill(d, true) / half_fill_by_tensor_cores;
}

double sn_last_wave_tiles(const sn_device *device) {
  return last_wave_tiles * multiprocessors(device);
}

static double at_least_one(uint32_t size) {
  return size > 0 ? size : 1;
}

/* Of the convolution that makes `out` of `in` by the layer's windows. */
static problem describe(const sn_layer *layer, sn_shape in, sn_shape out, const sn_device *device,
                        const sn_arithmetic *how) {
  const sn_attr *a = layer->attr;
  return (problem){
      .n = in.n,
      .c = in.c,
      .k = out.c,
      .t = at_least_one(a->kernel_d),
      .r = a->kernel_h,
      .s = a->kernel_w,
      .p = out.h,
      .q = out.w,
      .h = (double)in.h + 2.0 * a->pad_h,
      .w = (double)in.w + 2.0 * a->pad_w,
      .groups = a->groups,
      .volumes = layer->planes > 0 || a->planes > 0,
      .direct = sn_conv_is_direct(in.c, a->groups),
      .gemm_fill = half_fill(device, how->tensor_cores),
      .lane_fill = half_fill(device, false),
      .width = how->width,
      .attr = a,
  };
}

/* Arithmetic that tiles cost more than what is asked for: what hangs over, and the part of the device that idles. */
static double tile_waste(const problem *x, double half_fill_at) {
  double channels = x->k / x->groups, pixels = x->n * x->p * x->q;
  double tiles = x->groups * ceil(channels / gemm_tile) * ceil(pixels / gemm_tile);
  double overhang = tiles / x->groups * gemm_tile * gemm_tile / (channels * pixels);
  return overhang * (1 + half_fill_at / tiles);
}

static double weight_count(const problem *x) {
  return x->k * x->c / x->groups * x->t * x->r * x->s;
}

static double direct_flops(const problem *x) {
  return 2 * x->n * weight_count(x) * x->p * x->q;
}

/* Input, output and weights once each. */
static double direct_bytes(const problem *x) {
  double strides = at_least_one(x->attr->stride_d) * x->attr->stride_h * x->attr->stride_w;
  return x->width * (x->n * x->c * strides * x->p * x->q + x->n * x->k * x->p * x->q + weight_count(x));
}

/* Whether PyTorch's own kernels do it, by its ConvParams::use_cudnn_depthwise: cuDNN has what lies channels last, and of
 * two bytes square windows of 1, 3 and 5 in not too few channels. */
static bool is_pytorchs(const problem *x, const sn_arithmetic *how) {
  const sn_attr *a = x->attr;
  double width = x->w - 2.0 * a->pad_w;
  if (how->channels_last || x->c != x->groups) return false;
  if (how->width >= 4 || x->c < 32 || width < 7 || x->r != x->s || a->stride_h != a->stride_w) return true;
  if (a->dilation_h > 1 || a->dilation_w > 1 || (a->kernel_h != 1 && a->kernel_h != 3 && a->kernel_h != 5)) return true;
  if (a->stride_h == 1) return false;
  return a->stride_h > 2 || a->kernel_h == 1 || (x->c < 512 && (x->c < 256 || width < 28));
}

static double direct_share(double window, const sn_arithmetic *how) {
  if (window <= direct_small || how->channels_last) return direct_rate;
  return window <= direct_unrolled ? direct_rate_wide : direct_rate_rolled;
}

/* Of PyTorch's own kernel for the filter's gradient; there are more blocks than have room at once, or they share it. */
static double filter_seconds(const problem *x, double window, const sn_device *device) {
  double warps = fmin(x->n, filter_warps), turns = ceil(x->n / warps) * ceil(x->p * x->q / warp);
  double room = filter_blocks_resident * multiprocessors(device);
  return turns * filter_answer_seconds * fmax(1, x->k * window / room);
}

static int64_t direct_ns(const problem *x, sn_conv_kernel kernel, const sn_device *device, const sn_arithmetic *how) {
  double window = x->t * x->r * x->s, moving = direct_bytes(x) / (device->memory_bandwidth * device->memory_efficiency);
  double computing = direct_flops(x) / (device->flops * direct_share(window, how)), seconds = fmax(computing, moving);
  if (kernel == SN_CONV_BACKWARD_FILTER && is_pytorchs(x, how))
    seconds = fmax(filter_seconds(x, window, device), moving);
  else if (kernel == SN_CONV_BACKWARD_FILTER && !how->channels_last)
    seconds = fmax(computing, moving * fmax(1, direct_filter_passes * window));
  return llround(fmin(seconds, SN_MAX_OP_SECONDS) * 1e9) + device->launch_ns;
}

static work gemm_work(const problem *x) {
  return (work){.flops = direct_flops(x) * tile_waste(x, x->gemm_fill), .bytes = direct_bytes(x), .launches = 1};
}

static work precomputed_work(const problem *x) {
  work w = gemm_work(x);
  w.workspace = 4 * (x->c / x->groups * x->t * x->r * x->s + x->p * x->q); /* an offset per window element and pixel */
  return w;
}

static work im2col_work(const problem *x) {
  work w = gemm_work(x);
  double column = x->width * x->c / x->groups * x->t * x->r * x->s * x->p * x->q;
  w.workspace = column * x->groups;
  w.bytes += 2 * column * x->groups * x->n; /* written and read */
  w.launches = 2 * x->n;
  return w;
}

/* Planes of rows x columns, `tiles` of them an image. */
static work fft_work(const problem *x, double rows, double columns, double tiles) {
  double frequencies = rows * (columns / 2 + 1);
  double planes = x->n * tiles * (x->c + x->k) + x->k * x->c / x->groups;
  double transform = 2.5 * rows * columns * log2(rows * columns);
  double spectrum = 8 * frequencies * planes;
  return (work){
      .flops = planes * transform + 8 * frequencies * x->n * tiles * x->k * x->c / x->groups,
      .bytes = direct_bytes(x) + fft_passes * spectrum,
      .workspace = fft_copies * spectrum,
      .launches = 6,
  };
}

static double next_power_of_two(double extent) {
  return exp2(ceil(log2(extent)));
}

static work winograd_work(const problem *x) {
  return (work){
      .flops = direct_flops(x) / 2.25 * tile_waste(x, x->lane_fill),
      .bytes = direct_bytes(x),
      .workspace = 4 * 16 * x->k * x->c / x->groups,
      .launches = 2,
  };
}

static work winograd_nonfused_work(const problem *x) {
  double tiles = x->n * ceil(x->p / 4) * ceil(x->q / 4);
  double spectrum = 4 * 36 * (tiles * (x->c + x->k) + x->k * x->c / x->groups);
  return (work){
      .flops = 2 * 36 * tiles * x->k * x->c / x->groups,
      .bytes = direct_bytes(x) + 2 * spectrum,
      .workspace = spectrum,
      .launches = 4,
  };
}

/* A workspace beyond this is beyond any device. */
static const double max_workspace = 0x1p52;

static bool can_run(const problem *x, sn_conv_algo algo, const sn_device *device, const sn_arithmetic *how) {
  if (x->volumes || (how->tensor_cores && how->width < 4)) return algo <= SN_GEMM;
  bool dense = x->attr->dilation_h < 2 && x->attr->dilation_w < 2;
  bool unit_stride = x->attr->stride_h == 1 && x->attr->stride_w == 1 && dense;
  switch (algo) {
  case SN_FFT:
    return unit_stride && x->r * x->s > 1 && x->h <= 256 && x->w <= 256;
  case SN_FFT_TILING:
    return unit_stride && x->r * x->s > 1 && x->r < 32 && x->s < 32;
  case SN_WINOGRAD:
  case SN_WINOGRAD_NONFUSED:
    return device->winograd && unit_stride && x->r == 3 && x->s == 3;
  case SN_IMPLICIT_GEMM:
  case SN_PRECOMPUTED_GEMM:
  case SN_GEMM:
  case SN_CONV_ALGOS:
    break;
  }
  return true;
}

static work work_of(const problem *x, sn_conv_algo algo) {
  switch (algo) {
  case SN_PRECOMPUTED_GEMM:
    return precomputed_work(x);
  case SN_GEMM:
    return im2col_work(x);
  case SN_FFT:
    return fft_work(x, next_power_of_two(x->h), next_power_of_two(x->w), 1);
  case SN_FFT_TILING:
    return fft_work(x, 32, 32, ceil(x->p / (33 - x->r)) * ceil(x->q / (33 - x->s)));
  case SN_WINOGRAD:
    return winograd_work(x);
  case SN_WINOGRAD_NONFUSED:
    return winograd_nonfused_work(x);
  case SN_IMPLICIT_GEMM:
  case SN_CONV_ALGOS:
    break;
  }
  return gemm_work(x);
}

/* False where the workspace is absurd. */
static bool measure(const problem *x, sn_conv_algo algo, sn_conv_kernel kernel, const sn_device *device,
                    const sn_arithmetic *how, sn_conv_choice *choice) {
  work w = work_of(x, algo);
  if (w.workspace > max_workspace) return false;
  double efficiency = algo_rate[algo].is_gemm ? device->gemm_efficiency : device->conv_efficiency;
  double peak = algo <= SN_GEMM ? how->flops : device->flops; /* tensor cores multiply matrices only */
  double rate = peak * efficiency * algo_rate[algo].rate * kernel_rate[kernel];
  double seconds = fmax(w.flops / rate, w.bytes / (device->memory_bandwidth * device->memory_efficiency));
  *choice = (sn_conv_choice){
      .algo = algo,
      .workspace = (uint64_t)ceil(w.workspace),
      .ns = llround(fmin(seconds, SN_MAX_OP_SECONDS) * 1e9) + (int64_t)w.launches * device->launch_ns,
  };
  return true;
}

static bool is_faster(const sn_conv_choice *a, const sn_conv_choice *b) {
  if (a->ns != b->ns) return a->ns < b->ns;
  return a->workspace != b->workspace ? a->workspace < b->workspace : a->algo < b->algo;
}

bool sn_conv_is_direct(uint32_t channels, uint32_t groups) {
  enum { FEW = 8 };
  return groups > 1 && channels / groups < FEW;
}

/* Of what a convolution reads and makes, maps of an odd number of elements: every second one begins where nothing wider
 * than an element can be read, or written. */
static double odd_bytes(const problem *x) {
  double from = (x->h - 2.0 * x->attr->pad_h) * (x->w - 2.0 * x->attr->pad_w), to = x->p * x->q;
  return x->width * x->n * ((fmod(from, 2) > 0 ? x->c * from : 0) + (fmod(to, 2) > 0 ? x->k * to : 0));
}

/* What of two bytes is turned around for tensor cores where it lies channels first: forward what no window of more than
 * a pixel can be gathered from. */
static double turned_bytes(const problem *x, sn_conv_kernel kernel, double bytes) {
  if (kernel != SN_CONV_FORWARD) return bytes;
  return x->t * x->r * x->s > 1 ? odd_bytes(x) : 0;
}

/* Of the GEMM family on tensor cores. */
static int64_t tensor_ns(const problem *x, sn_conv_kernel kernel, const sn_device *device, const sn_arithmetic *how) {
  double fill = how->width < 4 ? sn_last_wave_tiles(device) : x->gemm_fill;
  double flops = direct_flops(x) * tile_waste(x, fill), bytes = direct_bytes(x);
  double bandwidth = device->memory_bandwidth * device->memory_efficiency;
  double seconds = fmax(flops / (how->flops * how->conv_share), bytes / bandwidth);
  if (how->width < 4 && !how->channels_last) seconds += 2 * turned_bytes(x, kernel, bytes) / bandwidth;
  return llround(fmin(seconds, SN_MAX_OP_SECONDS) * 1e9) + device->launch_ns;
}

/* The fastest takes so long, the others longer by as much as before: what there is, and its workspaces, stays, so that
 * no plan's memory depends on this. */
static void retime(sn_conv_choice *choices, uint32_t count, int64_t ns) {
  const double factor = (double)ns / (double)sn_max((uint64_t)choices[0].ns, 1);
  choices[0].ns = ns;
  for (uint32_t i = 1; i < count; i++) {
    double longer = fmin((double)choices[i].ns * factor, SN_MAX_OP_SECONDS * 1e9);
    choices[i].ns = llround(fmax(longer, (double)choices[i - 1].ns + 1));
  }
}

uint32_t sn_conv_sort(sn_conv_choice *choices, uint32_t count) {
  for (uint32_t i = 1; i < count; i++) {
    sn_conv_choice fresh = choices[i];
    uint32_t place = i;
    for (; place > 0 && is_faster(&fresh, &choices[place - 1]); place--) choices[place] = choices[place - 1];
    choices[place] = fresh;
  }
  uint32_t kept = 1;
  for (uint32_t i = 1; i < count; i++)
    if (choices[i].workspace < choices[kept - 1].workspace) choices[kept++] = choices[i];
  return kept;
}

static sn_conv_kernel mirrored(sn_conv_kernel kernel) {
  if (kernel == SN_CONV_FORWARD) return SN_CONV_BACKWARD_DATA;
  return kernel == SN_CONV_BACKWARD_DATA ? SN_CONV_FORWARD : kernel;
}

uint32_t sn_conv_choices(const sn_layer *layer, sn_shape input, sn_conv_kernel kernel, const sn_device *device,
                         const sn_arithmetic *how, sn_conv_choice *choices) {
  bool mirror = layer->op == SN_DECONV;
  problem x =
      mirror ? describe(layer, layer->out, input, device, how) : describe(layer, input, layer->out, device, how);
  if (mirror) kernel = mirrored(kernel);
  uint32_t n = 0;
  for (sn_conv_algo algo = 0; algo < SN_CONV_ALGOS; algo++)
    if (can_run(&x, algo, device, how) && measure(&x, algo, kernel, device, how, &choices[n])) n++;
  n = sn_conv_sort(choices, n);
  if (x.direct)
    retime(choices, n, direct_ns(&x, kernel, device, how));
  else if (how->tensor_cores && device->tensor_feed > 0 && choices[0].algo <= SN_GEMM)
    retime(choices, n, tensor_ns(&x, kernel, device, how));
  return n;
}

const char *sn_conv_algo_name(sn_conv_algo algo) {
  static const char *const names[SN_CONV_ALGOS] = {"implicit_gemm", "precomputed_gemm", "gemm", "fft", "fft_tiling",
                                                   "winograd",      "winograd_nonfused"};
  return names[algo];
}

bool sn_conv_lies_last(const sn_net *net, const sn_layer *layer) {
  if (!sn_op_of(layer)->convolves) return false;
  const sn_value *from = &net->values[net->inputs[layer->first_input]], *to = &net->values[layer->first_output];
  if (net->layers[from->producer].op == SN_DATA || to->consumer == SN_NONE) return false;
  return net->layers[from->producer].op == SN_LAYER_NORM || net->layers[to->consumer].op == SN_LAYER_NORM;
}
