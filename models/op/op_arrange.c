/* Operators that multiply values with each other and that rearrange them: shapes and counts. The numbers of an image
 * lie channel by channel, row by row; a RESHAPE keeps that order. */
#include "models/op/op_internal.h"

#include <inttypes.h>
#include <stdio.h>

static uint32_t side(sn_shape shape, sn_side axis) {
  return axis == SN_SIDE_CHANNELS ? shape.c : axis == SN_SIDE_HEIGHT ? shape.h : shape.w;
}

static sn_shape shape_of(uint32_t images, const uint32_t *sides) {
  return (sn_shape){images, sides[SN_SIDE_CHANNELS], sides[SN_SIDE_HEIGHT], sides[SN_SIDE_WIDTH]};
}

sn_status sn__group_norm_shape(const sn_attr *a, sn_shape in, sn_shape *out, sn_err *err) {
  *out = in;
  if (sn__check_range("groups", a->groups, 1, err)) return err->code;
  if (in.c % a->groups == 0) return SN_OK;
  return sn_fail(err, SN_BAD_INPUT, "groups %" PRIu32 " does not divide its %" PRIu32 " channels", a->groups, in.c);
}

/* -- products ----------------------------------------------------------------------------------------------------- */

typedef struct matrix {
  uint32_t rows, columns;
} matrix;

static matrix matrix_of(sn_shape shape, bool turned) {
  return turned ? (matrix){shape.w, shape.h} : (matrix){shape.h, shape.w};
}

sn_status sn__matmul_shape(const sn_attr *a, const sn_shape *inputs, uint32_t count, sn_shape *out, sn_err *err) {
  if (count != 2) return sn_fail(err, SN_BAD_INPUT, "MATMUL takes two inputs, not %" PRIu32, count);
  matrix first = matrix_of(inputs[0], a->turn_first), second = matrix_of(inputs[1], a->turn_second);
  *out = (sn_shape){inputs[0].n, inputs[0].c, first.rows, second.columns};
  if (inputs[0].n == inputs[1].n && inputs[0].c == inputs[1].c && first.columns == second.rows) return SN_OK;
  return sn_fail(err, SN_BAD_INPUT,
                 "MATMUL multiplies %" PRIu32 " matrices of %" PRIu32 "x%" PRIu32 " by %" PRIu32 " of %" PRIu32
                 "x%" PRIu32 ": it needs as many, and as many columns as rows",
                 inputs[0].c, first.rows, first.columns, inputs[1].c, second.rows, second.columns);
}

sn_status sn__matmul_measure(sn_layer *layer, sn_shape first, sn_err *err) {
  sn_shape out = layer->out;
  const uint64_t work[] = {out.n, out.c, out.h, out.w, matrix_of(first, layer->attr->turn_first).columns};
  if (sn__product_within(work, 5, SN_MAX_NET_MACS, &layer->macs)) return SN_OK;
  return sn__fail_too_large("it has multiply-adds", err);
}

/* -- arrangement -------------------------------------------------------------------------------------------------- */

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

sn_status sn__reshape_shape(const sn_attr *a, sn_shape in, sn_shape *out, sn_err *err) {
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

sn_status sn__transpose_shape(const sn_attr *a, sn_shape in, sn_shape *out, sn_err *err) {
  uint32_t sides[SN_SIDES], seen = 0;
  for (int axis = 0; axis < SN_SIDES; axis++) {
    sides[axis] = side(in, a->axes[axis]);
    seen |= 1u << a->axes[axis];
  }
  *out = shape_of(in.n, sides);
  if (seen == (1u << SN_SIDES) - 1) return SN_OK;
  return sn_fail(err, SN_BAD_INPUT, "axes must name channels, height and width once each");
}

sn_status sn__slice_shape(const sn_attr *a, sn_shape in, sn_shape *out, sn_err *err) {
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

sn_status sn__pad_shape(const sn_attr *a, sn_shape in, sn_shape *out, sn_err *err) {
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

sn_status sn__resize_shape(const sn_attr *a, sn_shape in, sn_shape *out, sn_err *err) {
  *out = (sn_shape){in.n, in.c, a->shape[SN_SIDE_HEIGHT], a->shape[SN_SIDE_WIDTH]};
  if (out->h == 0 && out->w == 0)
    return scaled(in.h, a->scale, &out->h, err) ? err->code : scaled(in.w, a->scale, &out->w, err);
  return sn__check_range("size", out->h, 1, err) ? err->code : sn__check_range("size", out->w, 1, err);
}
