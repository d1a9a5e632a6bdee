/* Operators that rearrange values. The numbers of an image lie channel by channel, row by row; a RESHAPE keeps that
 * order. */
#include "models/op/family.h"

#include <inttypes.h>
#include <stdio.h>

static uint32_t side(sn_shape shape, sn_side axis) {
  return axis == SN_SIDE_CHANNELS ? shape.c : axis == SN_SIDE_HEIGHT ? shape.h : shape.w;
}

static sn_shape shape_of(uint32_t images, const uint32_t *sides) {
  return (sn_shape){images, sides[SN_SIDE_CHANNELS], sides[SN_SIDE_HEIGHT], sides[SN_SIDE_WIDTH]};
}

/* `sides` with what is left in place of a 0; false where that cannot be. */
static bool fill_rest(uint32_t *sides, uint64_t all) {
  uint64_t given = 1;
  int rest = SN_SIDES;
  for (int axis = 0; axis < SN_SIDES; axis++) {
    if (sides[axis] == 0 && rest < SN_SIDES) return false;
    if (sides[axis] == 0)
      rest = axis;
    else if (!sn__product_within((const uint64_t[]){given, sides[axis]}, 2, all, &given))
      return false;
  }
  if (rest == SN_SIDES) return given == all;
  if (all % given != 0 || all / given > SN_MAX_DIM) return false;
  sides[rest] = (uint32_t)(all / given);
  return true;
}

static sn_status reshape_shape(const sn_attr *a, const sn_shape *inputs, uint32_t count, sn_shape *out, sn_err *err) {
  (void)count;
  const sn_shape in = inputs[0];
  uint32_t sides[SN_SIDES] = {a->shape[0], a->shape[1], a->shape[2]};
  uint64_t all;
  bool fits = sn__product_within((const uint64_t[]){in.c, in.h, in.w}, 3, SN_MAX_NET_BYTES, &all);
  if (fits && fill_rest(sides, all)) {
    *out = shape_of(in.n, sides);
    return SN_OK;
  }
  return sn_fail(err, SN_BAD_INPUT,
                 "%" PRIu32 "x%" PRIu32 "x%" PRIu32 " cannot become %" PRIu32 "x%" PRIu32 "x%" PRIu32
                 " (channels x height x width, one of them 0: what is left): another number of elements",
                 in.c, in.h, in.w, a->shape[0], a->shape[1], a->shape[2]);
}

static sn_status transpose_shape(const sn_attr *a, const sn_shape *inputs, uint32_t count, sn_shape *out, sn_err *err) {
  (void)count;
  const sn_shape in = inputs[0];
  uint32_t sides[SN_SIDES], seen = 0;
  for (int axis = 0; axis < SN_SIDES; axis++) {
    sides[axis] = side(in, a->axes[axis]);
    seen |= 1u << a->axes[axis];
  }
  *out = shape_of(in.n, sides);
  if (seen == (1u << SN_SIDES) - 1) return SN_OK;
  return sn_fail(err, SN_BAD_INPUT, "axes must name channels, height and width once each");
}

static sn_status slice_shape(const sn_attr *a, const sn_shape *inputs, uint32_t count, sn_shape *out, sn_err *err) {
  (void)count;
  const sn_shape in = inputs[0];
  uint32_t sides[SN_SIDES] = {in.c, in.h, in.w}, whole = sides[a->axis];
  uint64_t reach = a->count < 1 ? 0 : (a->count - UINT64_C(1)) * (a->step > 1 ? a->step : 1) + 1;
  if (a->count < 1 || reach > whole || a->first > whole - reach) {
    char every[24] = "";
    if (a->step > 1) snprintf(every, sizeof every, ", %" PRIu32 " apart,", a->step);
    return sn_fail(err, SN_BAD_INPUT, "it takes %" PRIu32 "%s from number %" PRIu32 " on, but there are %" PRIu32,
                   a->count, every, a->first, whole);
  }
  sides[a->axis] = a->count;
  *out = shape_of(in.n, sides);
  return SN_OK;
}

static sn_status padded(uint32_t in, uint32_t pad, uint32_t behind, uint32_t *out, sn_err *err) {
  uint64_t wide = in + 2 * (uint64_t)pad + behind;
  *out = (uint32_t)wide;
  if (wide <= SN_MAX_DIM) return SN_OK;
  return sn_fail(err, SN_BAD_INPUT, "its output has %" PRIu64 " rows or columns, more than %u", wide, SN_MAX_DIM);
}

static sn_status pad_shape(const sn_attr *a, const sn_shape *inputs, uint32_t count, sn_shape *out, sn_err *err) {
  (void)count;
  const sn_shape in = inputs[0];
  *out = in;
  if (padded(in.h, a->pad_h, a->output_pad_h, &out->h, err)) return err->code;
  return padded(in.w, a->pad_w, a->output_pad_w, &out->w, err);
}

static sn_status scaled(uint32_t in, uint32_t scale, uint32_t *out, sn_err *err) {
  uint64_t wide = (uint64_t)in * scale;
  *out = (uint32_t)wide;
  if (scale >= 1 && wide <= SN_MAX_DIM) return SN_OK;
  return sn_fail(err, SN_BAD_INPUT, "%" PRIu32 " x scale %" PRIu32 " is not from 1 to %u", in, scale, SN_MAX_DIM);
}

static sn_status resize_shape(const sn_attr *a, const sn_shape *inputs, uint32_t count, sn_shape *out, sn_err *err) {
  (void)count;
  const sn_shape in = inputs[0];
  *out = (sn_shape){in.n, in.c, a->shape[SN_SIDE_HEIGHT], a->shape[SN_SIDE_WIDTH]};
  if (out->h == 0 && out->w == 0)
    return scaled(in.h, a->scale, &out->h, err) ? err->code : scaled(in.w, a->scale, &out->w, err);
  return sn__check_range("size", out->h, 1, err) ? err->code : sn__check_range("size", out->w, 1, err);
}

static sn_status expand_shape(const sn_attr *a, const sn_shape *inputs, uint32_t count, sn_shape *out, sn_err *err) {
  (void)count;
  const sn_shape in = inputs[0];
  *out = shape_of(in.n, a->shape);
  bool fits = true;
  for (sn_side axis = 0; axis < SN_SIDES; axis++)
    fits = fits && a->shape[axis] >= 1 && (side(in, axis) == a->shape[axis] || side(in, axis) == 1);
  if (fits) return SN_OK;
  return sn_fail(err, SN_BAD_INPUT,
                 "%" PRIu32 "x%" PRIu32 "x%" PRIu32 " cannot become %" PRIu32 "x%" PRIu32 "x%" PRIu32
                 " (channels x height x width): only sides of 1 can be repeated",
                 in.c, in.h, in.w, a->shape[0], a->shape[1], a->shape[2]);
}

static const char *expand_simulated_only(const sn_attr *a) {
  (void)a;
  return "which PyTorch makes without moving a number";
}

/* ---- definitions ---- */

static uint32_t reshape_planes(const sn_attr *a) {
  (void)a;
  return 0;
}

static const char *const *resize_names(void) {
  static const char *const modes[] = {"nearest", "bilinear", NULL};
  return modes;
}

static bool resize_has(const sn_attr *a, const sn_key *key) {
  if (key->at == offsetof(sn_attr, scale)) return a->shape[SN_SIDE_HEIGHT] == 0;
  return key->at != offsetof(sn_attr, shape[SN_SIDE_HEIGHT]) || a->scale == 0;
}

static void resize_settle(sn_attr *a, const sn_described *d) {
  (void)a;
  const bool size = sn_is_given(d, "size");
  if (size == sn_is_given(d, "scale") && (size || !d->unsure))
    sn_say_wrong(d, "a RESIZE has either \"size\" or \"scale\"");
}

const sn_op_def sn__op_RESHAPE = {.name = "RESHAPE",
                                  .called = (const char *const[]){"view", "flatten", NULL},
                                  .volumes = true,
                                  .keys = {{"shape", SN_KEY_SIDES, SN_AT(shape), .required = true, .always = true}},
                                  .shape = reshape_shape,
                                  .planes = reshape_planes,
                                  .traffic = sn__traffic_once};

const sn_op_def sn__op_TRANSPOSE = {.name = "TRANSPOSE",
                                    .called = (const char *const[]){"permute", NULL},
                                    .keys = {{"axes", SN_KEY_AXES, SN_AT(axes), .required = true, .always = true}},
                                    .shape = transpose_shape,
                                    .traffic = sn__traffic_once};

const sn_op_def sn__op_SLICE = {
    .name = "SLICE",
    .called = (const char *const[]){"split", "chunk", "narrow", NULL},
    .volumes = true,
    .keys = {{"axis", SN_KEY_WORD, SN_AT(axis), .words = sn_side_names, .always = true},
             {"first", SN_KEY_SIZE, SN_AT(first), .always = true},
             {"count", SN_KEY_SIZE, SN_AT(count), .least = 1, .required = true, .always = true},
             {"step", SN_KEY_SIZE, SN_AT(step), .least = 1, .usual = 1},
             {"turned", SN_KEY_FLAG, SN_AT(turned)}},
    .shape = slice_shape,
    .traffic = sn__traffic_once};

const sn_op_def sn__op_PAD = {.name = "PAD",
                              .called = (const char *const[]){"zeropad", NULL},
                              .keys = {{"output_pad", SN_KEY_EXTENT, SN_AT(output_pad_h), .always = true},
                                       {"pad", SN_KEY_EXTENT, SN_AT(pad_h), .always = true}},
                              .shape = pad_shape,
                              .traffic = sn__traffic_once};

const sn_op_def sn__op_RESIZE = {
    .name = "RESIZE",
    .called = (const char *const[]){"upsample", "interpolate", NULL},
    .autocast = SN_AUTOCAST_WIDE,
    .keys = {{"mode", SN_KEY_FLAG, SN_AT(bilinear), .words = resize_names, .always = true},
             {"size", SN_KEY_EXTENT, SN_AT(shape[SN_SIDE_HEIGHT]), .least = 1, .always = true},
             {"scale", SN_KEY_SIZE, SN_AT(scale), .least = 1, .always = true}},
    .settle = resize_settle,
    .has = resize_has,
    .shape = resize_shape,
    .traffic = sn__traffic_once};

const sn_op_def sn__op_EXPAND = {.name = "EXPAND",
                                 .called = (const char *const[]){"repeat", "broadcast", NULL},
                                 .simulated_only = expand_simulated_only,
                                 .keys = {{"shape", SN_KEY_SIDES, SN_AT(shape), .required = true, .always = true}},
                                 .shape = expand_shape,
                                 .traffic = sn__traffic_once};
