/* How values lie in memory, as PyTorch lays them: a transposition is another way through the same numbers, and where a
 * shape, or a product, wants them one behind the other they are copied; see models/onnx/onnx_internal.h. */
#include "models/onnx/onnx_internal.h"

#include "models/op/op.h"

#include <string.h>

void sn__onnx_lay_dense(sn__onnx_value *v) {
  int64_t step = 1;
  for (uint32_t i = v->rank; i-- > 0; step *= v->dims[i] > 1 ? v->dims[i] : 1) v->strides[i] = step;
}

bool sn__onnx_is_dense(const sn__onnx_value *v) {
  int64_t step = 1;
  for (uint32_t i = v->rank; i-- > 0; step *= v->dims[i])
    if (v->dims[i] > 1 && v->strides[i] != step) return false;
  return true;
}

/* Rows of pixels whose channels lie side by side, and no plain image, too. */
static bool is_channels_last(const sn__onnx_value *v) {
  static const uint32_t order[] = {1, 3, 2, 0};
  int64_t least = 0;
  if (v->rank != 4 || v->strides[1] == 0) return false;
  for (int i = 0; i < 4; i++) {
    const uint32_t axis = order[i];
    if (v->dims[axis] == 0 || v->strides[axis] < least) return false;
    if (axis == 0 && least == v->strides[1]) return false;
    least = v->strides[axis] * (v->dims[axis] > 1 ? v->dims[axis] : 1);
  }
  return true;
}

/* Axes from the innermost: in the order of another value's strides, of equal ones the last first. */
static void order_of(const sn__onnx_value *v, uint32_t *axes) {
  for (uint32_t i = 0; i < v->rank; i++) {
    const uint32_t axis = v->rank - 1 - i;
    uint32_t at = i;
    for (; at > 0 && v->strides[axes[at - 1]] > v->strides[axis]; at--) axes[at] = axes[at - 1];
    axes[at] = axis;
  }
}

static void lay_as(sn__onnx_value *v, const sn__onnx_value *like) {
  uint32_t axes[SN__ONNX_RANK];
  int64_t step = 1;
  sn__onnx_lay_dense(v);
  if (like->rank != v->rank) return;
  order_of(like, axes);
  for (uint32_t i = 0; i<v->rank; step *= v->dims[axes[i]]> 1 ? v->dims[axes[i]] : 1, i++) v->strides[axes[i]] = step;
}

/* What is made an element at a time, and of windows over pixels whose channels lie side by side, lies as its operand. */
void sn__onnx_lay_like(sn__importer *m, sn__onnx_value *made, const sn__onnx_value *v) {
  static const sn_op by_element[] = {SN_ACT, SN_DROPOUT, SN_JOIN, SN_MUL, SN_SCALE, SN_POSITION};
  static const sn_op by_window[] = {SN_CONV, SN_DECONV, SN_POOL, SN_BN, SN_RESIZE, SN_PAD, SN_CONCAT};
  const sn_op op = m->b->layers[made->layer].op;
  bool follows = false;
  for (size_t i = 0; i < sizeof by_element / sizeof *by_element; i++) follows = follows || op == by_element[i];
  for (size_t i = 0; i < sizeof by_window / sizeof *by_window; i++)
    follows = follows || (op == by_window[i] && is_channels_last(v));
  if (made->layer == v->layer)
    memcpy(made->strides, v->strides, sizeof made->strides);
  else if (follows)
    lay_as(made, v);
}

/* Axes that are seen as one another way, from the last on: they must lie as if they were one. */
bool sn__onnx_view(const sn__onnx_value *v, uint32_t rank, const int64_t *dims, int64_t *strides) {
  int64_t chunk = 1, seen = 1;
  int64_t base = v->rank > 0 ? v->strides[v->rank - 1] : 1, at = (int64_t)rank - 1;
  for (int64_t i = (int64_t)v->rank - 1; i >= 0; i--) {
    chunk *= v->dims[i];
    bool ends = i == 0 || (v->dims[i - 1] != 1 && v->strides[i - 1] != chunk * base);
    if (!ends) continue;
    for (; at >= 0 && (seen < chunk || dims[at] == 1); at--) {
      strides[at] = seen * base;
      seen *= dims[at];
    }
    if (seen != chunk) return false;
    if (i > 0) base = v->strides[i - 1], chunk = seen = 1;
  }
  for (; at >= 0 && dims[at] == 1; at--) strides[at] = seen * base;
  return at < 0;
}

uint32_t sn__onnx_copy(sn__importer *m, const sn__onnx_value *v) {
  return sn__onnx_add(m, "copy", SN_CONCAT, &(sn_attr){0}, &v->layer, 1);
}

sn__onnx_value sn__onnx_flat(sn__importer *m, const sn__onnx_value *v, uint32_t kept) {
  sn__onnx_value flat = *v;
  int64_t dims[SN__ONNX_RANK] = {1}, strides[SN__ONNX_RANK];
  if (v->rank <= kept) return flat;
  for (uint32_t i = 0; i < v->rank; i++) {
    if (i + kept < v->rank)
      dims[0] *= v->dims[i];
    else
      dims[i + kept + 1 - v->rank] = v->dims[i];
  }
  if (sn__onnx_view(v, kept + 1, dims, strides)) return flat;
  flat.layer = sn__onnx_copy(m, v);
  sn__onnx_lay_dense(&flat);
  return flat;
}
