/* What ONNX's operators with windows become, and its means over images; see models/onnx/onnx_internal.h. */
#include "models/onnx/onnx_internal.h"

#include "base/checked.h"

#include <string.h>

/* The i-th of a list, which an attribute may have left out. */
static uint32_t pick(sn__importer *m, const int64_t *list, uint32_t count, uint32_t i, uint32_t otherwise) {
  return i < count ? sn__onnx_whole(m, list[i]) : otherwise;
}

enum { PLANES, ROWS, COLUMNS, AXES };

/* Of a window: its axes are the last ones of its operand's, a single one its rows. */
typedef struct window {
  uint32_t first, behind;
} window;

static window window_over(const sn__onnx_value *v) {
  const window all = {v->rank == 5 ? PLANES : ROWS, v->rank == 3 ? COLUMNS : AXES};
  return all;
}

/* The list that an attribute has, a number for each axis of the window; others are 1. */
static void read_axes(sn__importer *m, window over, const char *attribute, const int64_t *otherwise,
                      uint32_t *const out[AXES]) {
  uint32_t n;
  const int64_t *list = sn__onnx_ints(m, attribute, UINT32_MAX, &n);
  for (uint32_t i = 0; i < AXES; i++) {
    bool has = i >= over.first && i < over.behind;
    *out[i] = !has ? 1 : pick(m, list, n, i - over.first, otherwise ? sn__onnx_whole(m, otherwise[i - over.first]) : 1);
  }
}

/* `kernel`: where the node does not say it; NULL: it must. */
static void read_window(sn__importer *m, sn_attr *a, window over, const int64_t *kernel) {
  static const int64_t none[AXES] = {0};
  read_axes(m, over, "kernel_shape", kernel ? kernel : none,
            (uint32_t *const[]){&a->kernel_d, &a->kernel_h, &a->kernel_w});
  read_axes(m, over, "strides", NULL, (uint32_t *const[]){&a->stride_d, &a->stride_h, &a->stride_w});
  read_axes(m, over, "dilations", NULL, (uint32_t *const[]){&a->dilation_d, &a->dilation_h, &a->dilation_w});
}

/* Rows, columns and planes put around. */
typedef struct pads {
  uint32_t before[AXES], behind[AXES];
} pads;

/* As many as the output has a window for every stride, one more of them behind, or before it where it says LOWER. */
static pads pad_to_strides(sn__importer *m, const sn_attr *a, uint32_t x, window over, bool lower) {
  const sn_shape in = sn__onnx_shape(m, x);
  const uint32_t planes = sn__onnx_planes(m, x), sides[AXES] = {planes, in.h / planes, in.w};
  const uint32_t kernel[AXES] = {a->kernel_d, a->kernel_h, a->kernel_w};
  const uint32_t stride[AXES] = {a->stride_d, a->stride_h, a->stride_w};
  const uint32_t dilation[AXES] = {a->dilation_d, a->dilation_h, a->dilation_w};
  pads p = {{0}, {0}};
  for (uint32_t i = over.first; i < over.behind; i++) {
    const uint64_t every = stride[i] > 0 ? stride[i] : 1, apart = dilation[i] > 0 ? dilation[i] : 1;
    const uint64_t wide = kernel[i] > 0 ? (kernel[i] - UINT64_C(1)) * apart + 1 : 1;
    const uint64_t reach = ((sides[i] + every - 1) / every - 1) * every + wide;
    const uint64_t both = reach > sides[i] ? reach - sides[i] : 0;
    p.before[i] = sn__onnx_whole(m, (int64_t)(lower ? (both + 1) / 2 : both / 2));
    p.behind[i] = sn__onnx_whole(m, (int64_t)(both - p.before[i]));
  }
  return p;
}

static pads read_pads(sn__importer *m, const sn_attr *a, uint32_t x, window over) {
  const sn__onnx_attribute *automatic = sn__onnx_find(m->node, "auto_pad");
  uint32_t n, axes = over.behind - over.first;
  const int64_t *list = sn__onnx_ints(m, "pads", UINT32_MAX, &n);
  pads p = {{0}, {0}};
  if (automatic && strncmp(automatic->text, "SAME", 4) == 0 && strcmp(m->node->op, "ConvTranspose") == 0)
    sn__onnx_fail(m, "auto_pad is not known; export it with pads");
  else if (automatic && strncmp(automatic->text, "SAME", 4) == 0)
    return pad_to_strides(m, a, x, over, strcmp(automatic->text, "SAME_LOWER") == 0);
  for (uint32_t i = 0; i < axes; i++) {
    p.before[over.first + i] = pick(m, list, n, i, 0);
    p.behind[over.first + i] = pick(m, list, n, axes + i, 0);
  }
  return p;
}

/* Rows and columns put around ahead of it, where the two sides differ; else `a` takes them. */
static uint32_t pad_window(sn__importer *m, sn_attr *a, uint32_t x, window over) {
  if (x == SN_NONE) return SN_NONE;
  const pads p = read_pads(m, a, x, over);
  if (memcmp(p.before, p.behind, sizeof p.before) == 0) {
    a->pad_d = p.before[PLANES];
    a->pad_h = p.before[ROWS];
    a->pad_w = p.before[COLUMNS];
    return x;
  }
  if (over.first == PLANES) sn__onnx_fail(m, "pads of a volume that differ before and behind it are not known");
  sn_attr pad = {0};
  for (uint32_t i = ROWS; i < AXES; i++) {
    uint32_t both = p.before[i] < p.behind[i] ? p.before[i] : p.behind[i];
    *(i == COLUMNS ? &pad.pad_w : &pad.pad_h) = both;
    *(i == COLUMNS ? &pad.output_pad_w : &pad.output_pad_h) = p.before[i] + p.behind[i] - 2 * both;
  }
  return sn__onnx_add(m, "pad", SN_PAD, &pad, &x, 1);
}

static void read_output_pads(sn__importer *m, sn_attr *a, window over) {
  uint32_t n;
  const int64_t *list = sn__onnx_ints(m, "output_padding", UINT32_MAX, &n);
  uint32_t *const out[AXES] = {&a->output_pad_d, &a->output_pad_h, &a->output_pad_w};
  for (uint32_t i = over.first; i < over.behind; i++) *out[i] = pick(m, list, n, i - over.first, 0);
}

static sn_status convolve(sn__importer *m, sn_op op) {
  const sn__onnx_value *v = sn__onnx_operand(m, 0), *weights = sn__onnx_input(m, 1);
  if (!v) return m->err->code;
  if (!weights || weights->kind != SN__ONNX_CONSTANT || weights->rank != v->rank || v->rank < 3 || v->rank > 5)
    return sn__onnx_fail(m, "its weights are no constant of as many dimensions as its input");
  const window over = window_over(v);
  const bool turned = op == SN_DECONV;
  sn_attr a = {.groups = sn__onnx_whole(m, sn__onnx_int(m, "group", 1)), .bias = sn__onnx_has_bias(m)};
  uint32_t own = sn__onnx_whole(m, weights->dims[turned ? 1 : 0]);
  a.channels = turned ? sn__onnx_whole(m, (int64_t)own * a.groups) : own;
  read_window(m, &a, over, weights->dims + 2);
  uint32_t x = pad_window(m, &a, sn__onnx_image(m, v), over);
  read_output_pads(m, &a, over);
  return sn__onnx_give_image(
      m, v, sn__onnx_add_weighted(m, op, &a, x, weights, a.bias ? sn__onnx_owner_of(sn__onnx_input(m, 2)) : NULL));
}

sn_status sn__onnx_conv(sn__importer *m) {
  return convolve(m, SN_CONV);
}

sn_status sn__onnx_deconv(sn__importer *m) {
  return convolve(m, SN_DECONV);
}

static sn_status pool(sn__importer *m, sn_pool_mode mode, bool global) {
  const sn__onnx_value *v = sn__onnx_operand(m, 0);
  if (!v) return m->err->code;
  sn_attr a = {.pool = mode, .global = global, .ceil = sn__onnx_int(m, "ceil_mode", 0) != 0};
  const window over = window_over(v);
  uint32_t x = sn__onnx_image(m, v);
  if (!global) read_window(m, &a, over, NULL);
  if (!global) x = pad_window(m, &a, x, over);
  return sn__onnx_give_image(m, v, sn__onnx_add(m, "", SN_POOL, &a, &x, 1));
}

sn_status sn__onnx_max_pool(sn__importer *m) {
  return pool(m, SN_POOL_MAX, false);
}

sn_status sn__onnx_average_pool(sn__importer *m) {
  return pool(m, SN_POOL_AVERAGE, false);
}

sn_status sn__onnx_global_max_pool(sn__importer *m) {
  return pool(m, SN_POOL_MAX, true);
}

sn_status sn__onnx_global_average_pool(sn__importer *m) {
  return pool(m, SN_POOL_AVERAGE, true);
}

/* The axes that it is over, as bits; of all there are where it names none. */
static uint32_t reduced_axes(sn__importer *m, const sn__onnx_value *v) {
  uint32_t n, set = 0;
  const int64_t *axes = sn__onnx_ints(m, "axes", 1, &n);
  for (uint32_t i = 0; i < n; i++) {
    int64_t axis = axes[i] < 0 ? axes[i] + v->rank : axes[i];
    if (axis >= 0 && axis < v->rank) set |= 1u << axis;
  }
  return n > 0 || sn__onnx_int(m, "noop_with_empty_axes", 0) != 0 ? set : (1u << v->rank) - 1;
}

/* A mean or a sum of what stands along some axes keeps nothing; a maximum, and a root of squares, keep what they are of.
 * What is left are channels of an image whose pixels they are over. */
sn_status sn__onnx_reduce(sn__importer *m) {
  const sn__onnx_value *v = sn__onnx_operand(m, 0);
  if (!v) return m->err->code;
  const uint32_t gone = reduced_axes(m, v);
  bool keeps = sn__onnx_int(m, "keepdims", 1) != 0, sums = strstr("ReduceMean ReduceSum", m->node->op) != NULL;
  int64_t dims[SN__ONNX_RANK];
  uint64_t left = 1;
  uint32_t rank = 0;
  if (m->err->code != SN_OK) return m->err->code;
  for (uint32_t i = 0; i < v->rank; i++) {
    bool reduced = gone >> i & 1;
    if (!reduced && !sn_mul(left, (uint64_t)v->dims[i], &left)) left = 0;
    if (keeps || !reduced) dims[rank++] = reduced ? 1 : v->dims[i];
  }
  if (gone == 0) return sn__onnx_give_same(m, v, v->layer);
  const uint64_t images = sn__onnx_images(m, v);
  if (left % images != 0 || (gone & 1 && v->dims[0] == m->batch)) return sn__onnx_fail(m, "it is over all images");
  uint32_t x = sn__onnx_as(m, v, left / images, 0, 1);
  const sn_attr a = {.pool = sums ? SN_POOL_AVERAGE : SN_POOL_MAX, .global = true};
  return sn__onnx_give(m, 0, sn__onnx_add(m, "", SN_POOL, &a, &x, 1), rank, dims);
}
