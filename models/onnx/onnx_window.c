/* What ONNX's operators with windows become, and its means over images; see models/onnx/onnx_internal.h. */
#include "models/onnx/onnx_internal.h"

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

/* Rows and columns put around ahead of it, where the two sides differ; else `a` takes them. */
static uint32_t pad_window(sn__importer *m, sn_attr *a, uint32_t x, window over) {
  uint32_t n;
  const int64_t *pads = sn__onnx_ints(m, "pads", UINT32_MAX, &n);
  const sn__onnx_attribute *automatic = sn__onnx_find(m->node, "auto_pad");
  if (automatic && strncmp(automatic->text, "SAME", 4) == 0)
    sn__onnx_fail(m, "auto_pad is not known; export it with pads");
  uint32_t axes = over.behind - over.first, before[AXES] = {0}, behind[AXES] = {0};
  for (uint32_t i = 0; i < axes; i++) {
    before[over.first + i] = pick(m, pads, n, i, 0);
    behind[over.first + i] = pick(m, pads, n, axes + i, 0);
  }
  if (memcmp(before, behind, sizeof before) == 0) {
    a->pad_d = before[PLANES];
    a->pad_h = before[ROWS];
    a->pad_w = before[COLUMNS];
    return x;
  }
  if (over.first == PLANES) sn__onnx_fail(m, "pads of a volume that differ before and behind it are not known");
  sn_attr pad = {0};
  for (uint32_t i = ROWS; i < AXES; i++) {
    uint32_t both = before[i] < behind[i] ? before[i] : behind[i];
    *(i == COLUMNS ? &pad.pad_w : &pad.pad_h) = both;
    *(i == COLUMNS ? &pad.output_pad_w : &pad.output_pad_h) = before[i] + behind[i] - 2 * both;
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

/* Over all axes but the first and one other, its channels. */
sn_status sn__onnx_reduce_mean(sn__importer *m) {
  const sn__onnx_value *v = sn__onnx_operand(m, 0);
  uint32_t n, reduced = 0, left = 0, rank = 0;
  const int64_t *axes = sn__onnx_ints(m, "axes", 1, &n);
  if (!v || m->err->code != SN_OK) return m->err->code;
  for (uint32_t i = 0; i < n; i++) {
    int64_t axis = axes[i] < 0 ? axes[i] + v->rank : axes[i];
    if (axis >= 1 && axis < v->rank) reduced |= 1u << axis;
  }
  int64_t channels = 1, dims[SN__ONNX_RANK] = {v->dims[0]};
  bool keeps = sn__onnx_int(m, "keepdims", 1) != 0;
  for (uint32_t i = 1; i < v->rank; i++) {
    bool gone = reduced >> i & 1;
    if (!gone) left++, channels = v->dims[i];
    if (keeps || !gone) dims[++rank] = gone ? 1 : v->dims[i];
  }
  if (left != 1) return sn__onnx_fail(m, "a mean that leaves other than the images' channels is not known");
  uint32_t x = sn__onnx_as(m, v, (uint64_t)channels, 0, 1);
  const sn_attr a = {.pool = SN_POOL_AVERAGE, .global = true};
  return sn__onnx_give(m, 0, sn__onnx_add(m, "", SN_POOL, &a, &x, 1), rank + 1, dims);
}
