/* Operators that look through windows: shapes and counts, of images and of volumes.
 *
 * An axis of a window's output has floor((in + 2 pad - kernel) / stride) + 1 places; a POOL with `ceil` rounds up and
 * drops a last window that would start beyond the input and its leading padding, as Caffe and PyTorch do. A DECONV
 * makes an output of which its input would be the windows: (in - 1) stride - 2 pad + kernel + output_pad. Planes, rows
 * and columns follow one rule; an image is a volume of one plane, and its window's depth is 1 unless somebody says
 * otherwise. */
#include "models/op/family.h"

#include <inttypes.h>
#include <stdio.h>

enum { PLANES, ROWS, COLUMNS, AXES };

typedef struct axis {
  uint32_t in, kernel, stride, pad, output_pad, dilation;
} axis;

static axis planes_of(const sn_attr *a) {
  return (axis){sn_or_one(a->planes), sn_or_one(a->kernel_d), sn_or_one(a->stride_d), a->pad_d,
                a->output_pad_d,      a->dilation_d};
}

static void axes_of(const sn_attr *a, sn_shape in, axis axes[AXES]) {
  axes[PLANES] = planes_of(a);
  axes[ROWS] = (axis){in.h / axes[PLANES].in, a->kernel_h, a->stride_h, a->pad_h, a->output_pad_h, a->dilation_h};
  axes[COLUMNS] = (axis){in.w, a->kernel_w, a->stride_w, a->pad_w, a->output_pad_w, a->dilation_w};
}

static bool is_volume(const sn_attr *a) {
  return a->planes > 1 || a->kernel_d > 1;
}

static sn_status check_ranges(const axis axes[AXES], sn_err *err) {
  for (int i = 0; i < AXES; i++) {
    const axis *x = &axes[i];
    if (sn__check_range("kernel", x->kernel, 1, err) || sn__check_range("stride", x->stride, 1, err) ||
        sn__check_range("pad", x->pad, 0, err) || sn__check_range("dilation", x->dilation, 0, err))
      return err->code;
  }
  return SN_OK;
}

/* Places from a window's first to its last, as far apart as `dilation` says. */
static uint64_t reach(const axis *x) {
  return x->dilation > 1 ? (x->kernel - UINT64_C(1)) * x->dilation + 1 : x->kernel;
}

/* "3x3", of a volume "3x3x3". */
static const char *print_sides(const uint64_t sides[AXES], bool volume, char *text, size_t room) {
  int used = volume ? snprintf(text, room, "%" PRIu64 "x", sides[PLANES]) : 0;
  snprintf(text + used, room - (size_t)used, "%" PRIu64 "x%" PRIu64, sides[ROWS], sides[COLUMNS]);
  return text;
}

static sn_status check_window(const sn_attr *a, const axis axes[AXES], sn_err *err) {
  char window[80], input[80];
  uint64_t reached[AXES], padded[AXES];
  bool fits = true, dilated = false;
  if (check_ranges(axes, err)) return err->code;
  for (int i = 0; i < AXES; i++) {
    reached[i] = reach(&axes[i]);
    padded[i] = axes[i].in + UINT64_C(2) * axes[i].pad;
    fits = fits && reached[i] <= padded[i];
    dilated = dilated || reached[i] > axes[i].kernel;
  }
  if (fits) return SN_OK;
  return sn_fail(err, SN_BAD_INPUT, "kernel %s%s is larger than its padded input %s",
                 print_sides(reached, is_volume(a), window, sizeof window), dilated ? ", dilated," : "",
                 print_sides(padded, is_volume(a), input, sizeof input));
}

/* Windows along an axis that check_window() has passed. */
static uint32_t window_count(const axis *x, bool ceil) {
  uint32_t way = (uint32_t)(x->in + 2 * x->pad - reach(x));
  uint32_t steps = way / x->stride + (ceil && way % x->stride != 0);
  if ((uint64_t)steps * x->stride >= (uint64_t)x->in + x->pad && ceil) steps--;
  return steps + 1;
}

/* Planes one below the other. */
static sn_status stack(uint32_t planes, uint32_t rows, uint32_t *height, sn_err *err) {
  uint64_t all = (uint64_t)planes * rows;
  *height = (uint32_t)all;
  if (all <= SN_MAX_DIM) return SN_OK;
  return sn_fail(err, SN_BAD_INPUT,
                 "its output has %" PRIu32 " planes of %" PRIu32 " rows, together more than %u; make it smaller",
                 planes, rows, SN_MAX_DIM);
}

static sn_status count_windows(const axis axes[AXES], bool ceil, sn_shape *out, sn_err *err) {
  out->w = window_count(&axes[COLUMNS], ceil);
  return stack(window_count(&axes[PLANES], ceil), window_count(&axes[ROWS], ceil), &out->h, err);
}

/* -- convolutions ------------------------------------------------------------------------------------------------- */

static sn_status check_channels(const sn_attr *a, sn_err *err) {
  return sn__check_range("channels", a->channels, 1, err) ? err->code : sn__check_range("groups", a->groups, 1, err);
}

static sn_status check_groups(const sn_attr *a, sn_shape in, sn_err *err) {
  if (in.c % a->groups == 0 && a->channels % a->groups == 0) return SN_OK;
  return sn_fail(err, SN_BAD_INPUT,
                 "groups %" PRIu32 " does not divide its %" PRIu32 " input and %" PRIu32 " output channels", a->groups,
                 in.c, a->channels);
}

static sn_status conv_shape(const sn_attr *a, const sn_shape *inputs, uint32_t count, sn_shape *out, sn_err *err) {
  (void)count;
  const sn_shape in = inputs[0];
  axis axes[AXES];
  axes_of(a, in, axes);
  if (check_channels(a, err) || check_window(a, axes, err) || check_groups(a, in, err)) return err->code;
  *out = (sn_shape){.n = in.n, .c = a->channels};
  return count_windows(axes, false, out, err);
}

static int64_t deconv_side(const axis *x) {
  return ((int64_t)x->in - 1) * x->stride + (int64_t)reach(x) + x->output_pad - 2 * (int64_t)x->pad;
}

static sn_status check_deconv_side(const axis *x, const char *what, sn_err *err) {
  if (x->output_pad >= x->stride)
    return sn_fail(err, SN_BAD_INPUT,
                   "output_pad %" PRIu32 " is not smaller than stride %" PRIu32 ": another input would fit",
                   x->output_pad, x->stride);
  int64_t side = deconv_side(x);
  if (side >= 1 && side <= SN_MAX_DIM) return SN_OK;
  return sn_fail(err, SN_BAD_INPUT,
                 "its output has %" PRId64 " %s, (%" PRIu32 " - 1) x %" PRIu32 " + %" PRIu64 " + %" PRIu32
                 " - 2 x %" PRIu32 ", which is not from 1 to %u",
                 side, what, x->in, x->stride, reach(x), x->output_pad, x->pad, SN_MAX_DIM);
}

static sn_status deconv_shape(const sn_attr *a, const sn_shape *inputs, uint32_t count, sn_shape *out, sn_err *err) {
  (void)count;
  const sn_shape in = inputs[0];
  axis axes[AXES];
  axes_of(a, in, axes);
  if (check_channels(a, err) || check_ranges(axes, err) || check_groups(a, in, err)) return err->code;
  for (int i = 0; i < AXES; i++)
    if (check_deconv_side(&axes[i], i == PLANES ? "planes" : "rows or columns", err)) return err->code;
  *out = (sn_shape){.n = in.n, .c = a->channels, .w = (uint32_t)deconv_side(&axes[COLUMNS])};
  return stack((uint32_t)deconv_side(&axes[PLANES]), (uint32_t)deconv_side(&axes[ROWS]), &out->h, err);
}

static sn_status conv_measure(sn_layer *layer, sn_shape in, sn_err *err) {
  const sn_attr *a = layer->attr;
  const uint64_t weights[] = {a->channels, in.c / a->groups, sn_or_one(a->kernel_d), a->kernel_h, a->kernel_w};
  return sn__set_weights(layer, weights, 5, (uint64_t)layer->out.n * layer->out.h * layer->out.w, err);
}

/* Each input is multiplied by the whole window, also by what of it falls into the padding. */
static sn_status deconv_measure(sn_layer *layer, sn_shape in, sn_err *err) {
  const sn_attr *a = layer->attr;
  const uint64_t weights[] = {in.c, a->channels / a->groups, sn_or_one(a->kernel_d), a->kernel_h, a->kernel_w};
  return sn__set_weights(layer, weights, 5, (uint64_t)in.n * in.h * in.w, err);
}

/* An image stays one where nothing is done along its planes. */
static uint32_t planes_or_image(const sn_attr *a, uint32_t planes) {
  return a->planes > 0 || a->kernel_d > 1 || planes > 1 ? planes : 0;
}

static uint32_t conv_planes(const sn_attr *a) {
  axis x = planes_of(a);
  return planes_or_image(a, window_count(&x, false));
}

static uint32_t deconv_planes(const sn_attr *a) {
  axis x = planes_of(a);
  return planes_or_image(a, (uint32_t)deconv_side(&x));
}

/* What convolution kernels do is counted by sim/device/conv.h. */
static sn_traffic conv_traffic(const sn_layer *layer, double x, double y, double weight) {
  (void)x, (void)weight;
  return layer->attr->bias ? (sn_traffic){.bytes = {2 * y, y}, .launches = {1, 1}} : (sn_traffic){0};
}

static void conv_sides(const sn_layer *layer, uint64_t elements, uint64_t sides[2]) {
  (void)elements;
  sides[0] = layer->attr->kernel_h;
  sides[1] = layer->attr->kernel_w;
}

/* (channels, inputs of a group, kernel) and, the other way round, (inputs, channels of a group, kernel). */
static uint64_t conv_first_side(const sn_layer *layer, uint64_t elements) {
  (void)elements;
  return layer->attr->channels;
}

static uint64_t deconv_first_side(const sn_layer *layer, uint64_t elements) {
  const sn_attr *a = layer->attr;
  const uint64_t one = (uint64_t)a->channels / a->groups * a->kernel_h * a->kernel_w * sn_or_one(a->kernel_d);
  return elements / one;
}

static int describe_window(const sn_attr *a, char *text, size_t room) {
  int used = 0;
  if (a->planes > 1)
    used = snprintf(text, room, " %u planes: %u s%u p%u d%u,", a->planes, sn_or_one(a->kernel_d),
                    sn_or_one(a->stride_d), a->pad_d, sn_or_one(a->dilation_d));
  used += snprintf(text + used, room - (size_t)used, " %ux%u s%ux%u p%ux%u", a->kernel_h, a->kernel_w, a->stride_h,
                   a->stride_w, a->pad_h, a->pad_w);
  if (a->dilation_h > 1 || a->dilation_w > 1)
    used += snprintf(text + used, room - (size_t)used, " d%ux%u", a->dilation_h, a->dilation_w);
  return used;
}

static void conv_describe(const sn_attr *a, char *text, size_t room) {
  int used = describe_window(a, text, room);
  snprintf(text + used, room - (size_t)used, " g%u%s", a->groups, a->bias ? " bias" : "");
}

#define CHANNELS                                                                                                       \
  { "channels", SN_KEY_SIZE, SN_AT(channels), .least = 1, .required = true, .always = true }
#define KERNEL                                                                                                         \
  {                                                                                                                    \
    "kernel", SN_KEY_EXTENT, SN_AT(kernel_h), offsetof(sn_attr, kernel_d), .least = 1, .required = true,               \
                                                                           .always = true                              \
  }
#define STRIDE                                                                                                         \
  { "stride", SN_KEY_EXTENT, SN_AT(stride_h), offsetof(sn_attr, stride_d), .least = 1, .always = true, .usual = 1 }
#define PAD                                                                                                            \
  { "pad", SN_KEY_EXTENT, SN_AT(pad_h), offsetof(sn_attr, pad_d), .always = true }
#define DILATION                                                                                                       \
  { "dilation", SN_KEY_EXTENT, SN_AT(dilation_h), offsetof(sn_attr, dilation_d), .least = 1 }
#define GROUPS                                                                                                         \
  { "groups", SN_KEY_SIZE, SN_AT(groups), .least = 1, .always = true, .usual = 1 }
#define BIAS                                                                                                           \
  { "bias", SN_KEY_FLAG, SN_AT(bias), .always = true, .usual = 1 }

const sn_op_def sn__op_CONV = {.name = "CONV",
                               .checkpoint = true,
                               .offload_paper = true,
                               .ends_offload = true,
                               .convolves = true,
                               .weighs = true,
                               .volumes = true,
                               .autocast = SN_AUTOCAST_NARROW,
                               .keys = {CHANNELS, KERNEL, STRIDE, PAD, DILATION, GROUPS, BIAS, SN_WEIGHTS_OF},
                               .shape = conv_shape,
                               .planes = conv_planes,
                               .measure = conv_measure,
                               .sides = conv_sides,
                               .first_side = conv_first_side,
                               .traffic = conv_traffic,
                               .describe = conv_describe};

const sn_op_def sn__op_DECONV = {
    .name = "DECONV",
    .called = (const char *const[]){"convtrans", "conv_trans", "transposed", NULL},
    .checkpoint = true,
    .offload_paper = true,
    .ends_offload = true,
    .convolves = true,
    .weighs = true,
    .volumes = true,
    .autocast = SN_AUTOCAST_NARROW,
    .keys = {CHANNELS,
             KERNEL,
             STRIDE,
             PAD,
             DILATION,
             {"output_pad", SN_KEY_EXTENT, SN_AT(output_pad_h), offsetof(sn_attr, output_pad_d), .always = true},
             GROUPS,
             BIAS,
             SN_WEIGHTS_OF},
    .shape = deconv_shape,
    .planes = deconv_planes,
    .measure = deconv_measure,
    .sides = conv_sides,
    .first_side = deconv_first_side,
    .traffic = conv_traffic,
    .describe = conv_describe};

/* -- pools -------------------------------------------------------------------------------------------------------- */

static bool is_adaptive(const sn_attr *a) {
  return a->adaptive_h || a->adaptive_w;
}

static uint32_t pool_planes(const sn_attr *a) {
  axis x = planes_of(a);
  if (a->global) return a->planes > 0;
  if (is_adaptive(a)) return a->adaptive_d > 0 ? planes_or_image(a, a->adaptive_d) : a->planes;
  return planes_or_image(a, window_count(&x, a->ceil));
}

static sn_status adaptive_shape(const sn_attr *a, sn_shape *out, sn_err *err) {
  out->w = a->adaptive_w;
  if (sn__check_range("adaptive", a->adaptive_h, 1, err) || sn__check_range("adaptive", out->w, 1, err) ||
      sn__check_range("adaptive", a->adaptive_d, 0, err))
    return err->code;
  return stack(sn_or_one(pool_planes(a)), a->adaptive_h, &out->h, err);
}

/* A window ahead of the image must not lie in padding only, nor step over all there is. */
static sn_status check_pads(const sn_attr *a, const axis axes[AXES], sn_err *err) {
  char pad[80], kernel[80];
  uint64_t pads[AXES], kernels[AXES];
  bool sees = true, dilated = false;
  for (int i = 0; i < AXES; i++) {
    pads[i] = axes[i].pad;
    kernels[i] = reach(&axes[i]);
    dilated = dilated || axes[i].dilation > 1;
    sees = sees && pads[i] < kernels[i] && (pads[i] == 0 || axes[i].dilation <= axes[i].in);
  }
  if (dilated && a->pool != SN_POOL_MAX)
    return sn_fail(err, SN_BAD_INPUT, "an average POOL has no dilation; a maximum has");
  if (sees) return SN_OK;
  bool volume = is_volume(a) || a->pad_d > 0;
  return sn_fail(err, SN_BAD_INPUT, "pad %s is not smaller than kernel %s%s: a window would see padding only",
                 print_sides(pads, volume, pad, sizeof pad), print_sides(kernels, volume, kernel, sizeof kernel),
                 dilated ? ", dilated, or that larger than the image" : "");
}

static sn_status pool_shape(const sn_attr *a, const sn_shape *inputs, uint32_t count, sn_shape *out, sn_err *err) {
  (void)count;
  const sn_shape in = inputs[0];
  axis axes[AXES];
  *out = (sn_shape){in.n, in.c, 1, 1};
  if (a->global) return SN_OK;
  if (is_adaptive(a)) return adaptive_shape(a, out, err);
  axes_of(a, in, axes);
  if (check_window(a, axes, err) || check_pads(a, axes, err)) return err->code;
  return count_windows(axes, a->ceil, out, err);
}

static const char *const *pool_names(void) {
  static const char *const modes[] = {"max", "average", NULL};
  return modes;
}

static bool pool_has(const sn_attr *a, const sn_key *key) {
  if (key->at == offsetof(sn_attr, pool)) return true;
  if (key->at == offsetof(sn_attr, global)) return true;
  if (key->at == offsetof(sn_attr, adaptive_h)) return !a->global;
  return !a->global && !is_adaptive(a);
}

/* Windows of a global and an adaptive one follow from what they make; of one pixel it is what a global POOL makes. */
static void pool_settle(sn_attr *a, const sn_described *d) {
  static const char *const window[] = {"adaptive", "kernel", "stride", "pad", "dilation", "ceil"};
  const bool global = a->global, adaptive = sn_is_given(d, "adaptive") && !global;
  if (!global && !adaptive) {
    if (!sn_is_given(d, "kernel") && !d->unsure) sn_say_wrong(d, "\"kernel\" is missing");
    return;
  }
  for (size_t i = adaptive; i < sizeof window / sizeof window[0]; i++)
    if (sn_is_given(d, window[i]))
      sn_say_wrong(d, "%s POOL has no \"%s\": its %s", global ? "a global" : "an adaptive", window[i],
                   global ? "window is the whole image" : "windows follow from its output's size");
  a->stride_h = a->stride_w = 0;
  if (!adaptive) return;
  a->global = a->adaptive_h == 1 && a->adaptive_w == 1 && a->adaptive_d == (d->volumes ? 1 : 0);
  if (a->global) a->adaptive_d = a->adaptive_h = a->adaptive_w = 0;
}

static void pool_describe(const sn_attr *a, char *text, size_t room) {
  const bool windowless = a->global || a->adaptive_h;
  int used = snprintf(text, room, "%s%s",
                      a->global    ? " global"
                      : windowless ? " adaptive"
                                   : "",
                      a->pool == SN_POOL_MAX ? " max" : " average");
  if (!windowless) describe_window(a, text + used, room - (size_t)used);
}

const sn_op_def sn__op_POOL = {
    .name = "POOL",
    .volumes = true,
    .keys = {{"mode", SN_KEY_WORD, SN_AT(pool), .words = pool_names, .always = true},
             {"global", SN_KEY_FLAG, SN_AT(global)},
             {"adaptive", SN_KEY_EXTENT, SN_AT(adaptive_h), offsetof(sn_attr, adaptive_d), .least = 1, .by_each = true},
             {"kernel", SN_KEY_EXTENT, SN_AT(kernel_h), offsetof(sn_attr, kernel_d), .least = 1, .always = true},
             STRIDE,
             PAD,
             DILATION,
             {"ceil", SN_KEY_FLAG, SN_AT(ceil), .always = true}},
    .settle = pool_settle,
    .has = pool_has,
    .shape = pool_shape,
    .planes = pool_planes,
    .traffic = sn__traffic_twice,
    .describe = pool_describe};
