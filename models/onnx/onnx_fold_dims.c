/* What dimensions a constant has whose numbers are not looked at, where they are not just its inputs'; see
 * models/onnx/onnx_internal.h. */
#include "models/onnx/onnx_internal.h"

#include "base/checked.h"

#include <string.h>

/* The n-th input with dimensions that are known; NULL where it has none such. */
static const sn__onnx_value *known(sn__importer *m, uint32_t n) {
  const sn__onnx_value *v = sn__onnx_input(m, n);
  return v && !(v->kind == SN__ONNX_CONSTANT && v->constant->shapeless) ? v : NULL;
}

/* Its whole numbers, from an attribute or an input; NULL where they are not known, or left out. */
static const int64_t *listed(sn__importer *m, const char *attribute, uint32_t n, uint32_t *count) {
  const sn__onnx_attribute *a = sn__onnx_find(m->node, attribute);
  const sn__onnx_value *v = a ? NULL : sn__onnx_input(m, n);
  bool has = v && v->kind == SN__ONNX_CONSTANT && v->constant->n_values > 0;
  *count = a ? a->n_ints : has ? v->constant->n_values : 0;
  return a ? a->ints : has ? v->constant->values : NULL;
}

static bool left_out(sn__importer *m, const char *attribute, uint32_t n) {
  return !sn__onnx_find(m->node, attribute) && !sn__onnx_input(m, n);
}

static void take_dims(sn__onnx_tensor *t, const sn__onnx_value *v) {
  t->rank = v->rank;
  memcpy(t->dims, v->dims, sizeof t->dims);
}

static bool dims_of_first(sn__importer *m, sn__onnx_tensor *t) {
  const sn__onnx_value *v = known(m, 0);
  if (v) take_dims(t, v);
  return v != NULL;
}

/* From 0; its rank where there is none such. */
static uint32_t axis_of(int64_t axis, uint32_t rank) {
  if (axis < 0) axis += rank;
  return axis >= 0 && axis < rank ? (uint32_t)axis : rank;
}

/* Another constant's, along which axis they are put behind each other. */
static bool concat_dims(sn__importer *m, sn__onnx_tensor *t) {
  const sn__onnx_value *first = known(m, 0);
  const uint32_t axis = first ? axis_of(sn__onnx_int(m, "axis", 1), first->rank) : 0;
  if (!first || axis == first->rank) return false;
  take_dims(t, first);
  for (uint32_t i = 1; i < m->node->n_inputs; i++) {
    const sn__onnx_value *v = known(m, i);
    if (!v || v->rank != t->rank || t->dims[axis] > SN_MAX_DIM || v->dims[axis] > SN_MAX_DIM) return false;
    t->dims[axis] += v->dims[axis];
  }
  return true;
}

static bool gather_dims(sn__importer *m, sn__onnx_tensor *t) {
  const sn__onnx_value *v = known(m, 0), *at = known(m, 1);
  const uint32_t axis = v ? axis_of(sn__onnx_int(m, "axis", 0), v->rank) : 0;
  if (!v || !at || axis == v->rank || v->rank + at->rank - 1 > SN__ONNX_RANK) return false;
  t->rank = v->rank + at->rank - 1;
  memcpy(t->dims, v->dims, axis * sizeof *t->dims);
  memcpy(t->dims + axis, at->dims, at->rank * sizeof *t->dims);
  memcpy(t->dims + axis + at->rank, v->dims + axis + 1, (v->rank - axis - 1) * sizeof *t->dims);
  return true;
}

/* Those that point, but the last one, and what each of them points to. */
static bool gather_nd_dims(sn__importer *m, sn__onnx_tensor *t) {
  const sn__onnx_value *v = known(m, 0), *at = known(m, 1);
  if (!v || !at || at->rank == 0 || sn__onnx_int(m, "batch_dims", 0) != 0) return false;
  const int64_t points = at->dims[at->rank - 1];
  if (points < 1 || points > v->rank || at->rank - 1 + v->rank - points > SN__ONNX_RANK) return false;
  t->rank = at->rank - 1 + v->rank - (uint32_t)points;
  memcpy(t->dims, at->dims, (at->rank - 1) * sizeof *t->dims);
  memcpy(t->dims + at->rank - 1, v->dims + points, (v->rank - (uint32_t)points) * sizeof *t->dims);
  return true;
}

static bool dims_of_second(sn__importer *m, sn__onnx_tensor *t) {
  const sn__onnx_value *at = known(m, 1);
  if (at) take_dims(t, at);
  return at != NULL;
}

static bool slice_dims(sn__importer *m, sn__onnx_tensor *t) {
  const sn__onnx_value *v = known(m, 0);
  uint32_t n, n_ends, n_axes, n_steps;
  const int64_t *starts = listed(m, "starts", 1, &n), *ends = listed(m, "ends", 2, &n_ends);
  const int64_t *axes = listed(m, "axes", 3, &n_axes), *steps = listed(m, "steps", 4, &n_steps);
  if (!v || !starts || !ends || n != n_ends || (axes && n_axes != n) || (steps && n_steps != n)) return false;
  take_dims(t, v);
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t axis = axis_of(axes ? axes[i] : i, v->rank);
    const int64_t every = steps ? steps[i] : 1;
    if (axis == v->rank || every < 1) return axis < v->rank && every == -1; /* turned round */
    const int64_t first = sn__onnx_within(starts[i], v->dims[axis]), behind = sn__onnx_within(ends[i], v->dims[axis]);
    t->dims[axis] = behind > first ? (behind - first - 1) / every + 1 : 0;
  }
  return true;
}

static bool filled_dims(sn__importer *m, sn__onnx_tensor *t) {
  uint32_t n;
  const int64_t *shape = listed(m, "shape", 0, &n);
  if (!shape || n > SN__ONNX_RANK) return false;
  t->rank = n;
  for (uint32_t i = 0; i < n; i++) {
    if (shape[i] < 0 || shape[i] > SN_MAX_DIM) return false;
    t->dims[i] = shape[i];
  }
  return true;
}

static bool range_dims(sn__importer *m, sn__onnx_tensor *t) {
  int64_t ends[3];
  for (uint32_t i = 0; i < 3; i++) {
    const sn__onnx_value *v = sn__onnx_input(m, i);
    const sn__onnx_tensor *c = v && v->kind == SN__ONNX_CONSTANT ? v->constant : NULL;
    if (!c || (c->n_values != 1 && c->n_floats != 1)) return false;
    if (c->n_values == 1)
      ends[i] = c->values[0];
    else if (c->floats[0] >= -(double)SN_MAX_DIM && c->floats[0] <= SN_MAX_DIM)
      ends[i] = (int64_t)c->floats[0];
    else
      return false;
  }
  bool up = ends[2] > 0, small = ends[0] >= -(int64_t)SN_MAX_DIM && ends[1] <= SN_MAX_DIM && ends[1] > ends[0];
  t->rank = 1;
  t->dims[0] = up && small ? (ends[1] - ends[0] - 1) / ends[2] + 1 : 0;
  return up && small;
}

static bool tile_dims(sn__importer *m, sn__onnx_tensor *t) {
  const sn__onnx_value *v = known(m, 0);
  uint32_t n;
  const int64_t *times = listed(m, "repeats", 1, &n);
  if (!v || !times || n != v->rank) return false;
  take_dims(t, v);
  for (uint32_t i = 0; i < n; i++) {
    if (times[i] < 1 || times[i] > SN_MAX_DIM || t->dims[i] > SN_MAX_DIM) return false;
    t->dims[i] *= times[i];
  }
  return true;
}

static bool flatten_dims(sn__importer *m, sn__onnx_tensor *t) {
  const sn__onnx_value *v = known(m, 0);
  uint64_t sides[2] = {1, 1};
  const int64_t axis = sn__onnx_int(m, "axis", 1);
  for (uint32_t i = 0; v && i < v->rank; i++)
    if (!sn_mul(sides[i >= axis], (uint64_t)v->dims[i], &sides[i >= axis]) || sides[i >= axis] > SN_MAX_DIM) v = NULL;
  t->rank = 2;
  t->dims[0] = (int64_t)sides[0], t->dims[1] = (int64_t)sides[1];
  return v != NULL && axis >= 0;
}

static bool reduce_dims(sn__importer *m, sn__onnx_tensor *t) {
  const sn__onnx_value *v = known(m, 0);
  uint32_t n, gone = 0;
  const int64_t *axes = listed(m, "axes", 1, &n), arg[] = {sn__onnx_int(m, "axis", 0)};
  if (strncmp(m->node->op, "Arg", 3) == 0)
    axes = arg, n = 1;
  else if (!axes && !left_out(m, "axes", 1))
    return false;
  if (!v) return false;
  for (uint32_t i = 0; axes && i < n; i++) gone |= 1u << axis_of(axes[i], v->rank);
  if (n == 0) gone = ~0u;
  for (uint32_t i = 0; i < v->rank; i++) {
    bool reduced = gone >> i & 1;
    if (!reduced || sn__onnx_int(m, "keepdims", 1) != 0) t->dims[t->rank++] = reduced ? 1 : v->dims[i];
  }
  return true;
}

static bool product_dims(sn__importer *m, sn__onnx_tensor *t) {
  const sn__onnx_value *a = known(m, 0), *b = known(m, 1);
  if (!a || !b || a->rank < 2 || b->rank < 2) return false;
  take_dims(t, a->rank >= b->rank ? a : b);
  t->dims[t->rank - 2] = a->dims[a->rank - 2];
  t->dims[t->rank - 1] = b->dims[b->rank - 1];
  return true;
}

/* Of the n-th part. */
static bool split_dims(sn__importer *m, sn__onnx_tensor *t, uint32_t n) {
  const sn__onnx_value *v = known(m, 0);
  uint32_t count;
  const int64_t *parts = listed(m, "split", 1, &count), outputs = m->node->n_outputs;
  const uint32_t axis = v ? axis_of(sn__onnx_int(m, "axis", 0), v->rank) : 0;
  if (!v || axis == v->rank || (parts && count != outputs)) return false;
  take_dims(t, v);
  t->dims[axis] = parts ? parts[n] : (v->dims[axis] + outputs - 1) / outputs;
  return parts != NULL || v->dims[axis] % outputs == 0;
}

bool sn__onnx_fold_dims(sn__importer *m, sn__onnx_tensor *t, uint32_t n) {
  static const struct {
    const char *op;
    bool (*dims)(sn__importer *m, sn__onnx_tensor *t);
  } rules[] = {{"Concat", concat_dims},
               {"Gather", gather_dims},
               {"GatherND", gather_nd_dims},
               {"GatherElements", dims_of_second},
               {"BatchNormalization", dims_of_first},
               {"Slice", slice_dims},
               {"ConstantOfShape", filled_dims},
               {"Range", range_dims},
               {"Tile", tile_dims},
               {"Flatten", flatten_dims},
               {"MatMul", product_dims},
               {"ReduceSum", reduce_dims},
               {"ReduceMean", reduce_dims},
               {"ReduceMax", reduce_dims},
               {"ReduceMin", reduce_dims},
               {"ReduceL2", reduce_dims},
               {"ReduceProd", reduce_dims},
               {"ArgMax", reduce_dims},
               {"ArgMin", reduce_dims}};
  bool found = strcmp(m->node->op, "Split") == 0 && split_dims(m, t, n);
  for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
    if (strcmp(m->node->op, rules[i].op) == 0) found = rules[i].dims(m, t);
  for (uint32_t i = 0; found && i < t->rank; i++) found = t->dims[i] >= 0 && t->dims[i] <= SN_MAX_DIM;
  if (!found) t->rank = 0;
  return found;
}
