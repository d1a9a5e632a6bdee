/* ONNX's constants, and what is computed of constants alone: shapes, pads, scales. Few numbers are known, nothing else.
 */
#include "models/onnx_internal.h"

#include "base/checked.h"

#include <string.h>

static sn__onnx_tensor *numbers(sn__importer *m, uint32_t n, int64_t **values) {
  sn__onnx_tensor *t = sn_arena_alloc(m->arena, 1, sizeof *t);
  *values = sn_arena_alloc(m->arena, n, sizeof **values);
  if (!t || !*values) {
    sn_fail_memory(m->err);
    return NULL;
  }
  *t = (sn__onnx_tensor){.name = "", .type = SN__ONNX_INT64, .rank = 1, .dims = {n}, .n_values = n, .values = *values};
  t->computed = true;
  return t;
}

sn_status sn__onnx_shape_rule(sn__importer *m) {
  const sn__onnx_value *v = sn__onnx_input(m, 0);
  int64_t *values;
  if (!v) return sn__onnx_fail(m, "it has no input");
  sn__onnx_tensor *t = numbers(m, v->rank, &values);
  if (!t) return m->err->code;
  memcpy(values, v->dims, v->rank * sizeof *values);
  return sn__onnx_give_constant(m, t);
}

/* How many inputs are constants with numbers, at most that many; SN_NONE: one is a value of the network. */
static uint32_t count_known(sn__importer *m) {
  uint32_t known = 0;
  for (uint32_t i = 0; i < m->node->n_inputs; i++) {
    const sn__onnx_value *v = sn__onnx_input(m, i);
    if (v && v->kind != SN__ONNX_CONSTANT) return SN_NONE;
    known += v && v->constant->n_values > 0;
  }
  return known;
}

static int64_t combine(const char *op, int64_t a, int64_t b) {
  uint64_t x = (uint64_t)a, y = (uint64_t)b; /* without overflow */
  if (strcmp(op, "Mul") == 0) return (int64_t)(x * y);
  if (strcmp(op, "Add") == 0) return (int64_t)(x + y);
  if (strcmp(op, "Sub") == 0) return (int64_t)(x - y);
  if (b <= 0) return 0;
  return strcmp(op, "Mod") == 0 ? a % b : a / b;
}

/* Of two single numbers. */
static const sn__onnx_tensor *fold_pair(sn__importer *m) {
  const sn__onnx_tensor *a = sn__onnx_input(m, 0)->constant, *b = sn__onnx_input(m, 1)->constant;
  int64_t *values;
  if (a->n_values != 1 || b->n_values != 1) return NULL;
  sn__onnx_tensor *t = numbers(m, 1, &values);
  if (!t) return NULL;
  values[0] = combine(m->node->op, a->values[0], b->values[0]);
  t->computed = a->computed || b->computed;
  return t;
}

static const sn__onnx_tensor *fold_concat(sn__importer *m) {
  int64_t *values;
  uint32_t n = 0;
  for (uint32_t i = 0; i < m->node->n_inputs; i++) n += sn__onnx_input(m, i)->constant->n_values;
  if (n > SN__ONNX_VALUES) return NULL;
  sn__onnx_tensor *t = numbers(m, n, &values);
  if (!t) return NULL;
  t->computed = false;
  for (uint32_t i = 0; i < m->node->n_inputs; i++) {
    const sn__onnx_tensor *part = sn__onnx_input(m, i)->constant;
    if (part->n_values > 0) memcpy(values, part->values, part->n_values * sizeof *values);
    values += part->n_values;
    t->computed = t->computed || part->computed;
  }
  return t;
}

/* Floats: of scales. */
static const sn__onnx_tensor *concat_floats(sn__importer *m) {
  int64_t *values;
  sn__onnx_tensor *t = numbers(m, 0, &values);
  for (uint32_t i = 0; t && i < m->node->n_inputs; i++) {
    const sn__onnx_tensor *part = sn__onnx_input(m, i)->constant;
    if (part->n_floats == 0 || t->n_floats + part->n_floats > SN__ONNX_RANK) return NULL;
    memcpy(t->floats + t->n_floats, part->floats, part->n_floats * sizeof *part->floats);
    t->n_floats += part->n_floats;
  }
  if (t) t->dims[0] = t->n_floats;
  return t;
}

static const sn__onnx_tensor *fold_filled(sn__importer *m) {
  const sn__onnx_tensor *shape = sn__onnx_input(m, 0)->constant;
  const sn__onnx_attribute *with = sn__onnx_find(m->node, "value");
  int64_t *values;
  if (shape->n_values != 1 || shape->values[0] < 0 || shape->values[0] > SN__ONNX_VALUES) return NULL;
  sn__onnx_tensor *t = numbers(m, (uint32_t)shape->values[0], &values);
  for (uint32_t i = 0; t && i < t->n_values; i++)
    values[i] = with && with->tensor && with->tensor->n_values > 0 ? with->tensor->values[0] : 0;
  return t;
}

static sn__onnx_tensor *copy_of(sn__importer *m, const sn__onnx_tensor *from) {
  sn__onnx_tensor *t = sn_arena_alloc(m->arena, 1, sizeof *t);
  if (!t) sn_fail_memory(m->err);
  if (t) *t = *from;
  return t;
}

/* Rows of columns in another order: columns as rows, or the last row first. */
static const sn__onnx_tensor *rearrange(sn__importer *m, const sn__onnx_tensor *from, bool turned) {
  sn__onnx_tensor *t = copy_of(m, from);
  uint64_t rows = (uint64_t)from->dims[0], columns = (uint64_t)from->dims[1];
  bool known = rows <= SN__ONNX_VALUES && columns <= SN__ONNX_VALUES && rows * columns == from->n_values;
  int64_t *values = t ? sn_arena_alloc(m->arena, from->n_values, sizeof *values) : NULL;
  if (t && !values) sn_fail_memory(m->err);
  if (!values) return NULL;
  t->n_floats = 0;
  t->n_values = known ? from->n_values : 0;
  t->values = values;
  if (turned) t->dims[0] = from->dims[1], t->dims[1] = from->dims[0];
  for (uint64_t y = 0; known && y < rows; y++)
    for (uint64_t x = 0; x < columns; x++)
      values[turned ? x * rows + y : (rows - 1 - y) * columns + x] = from->values[y * columns + x];
  return t;
}

sn_status sn__onnx_transpose_constant(sn__importer *m, const sn__onnx_tensor *from, const int64_t *dims) {
  if (from->rank == 2 && dims[0] == from->dims[1] && dims[1] == from->dims[0])
    return sn__onnx_give_constant(m, rearrange(m, from, true));
  sn__onnx_tensor *t = copy_of(m, from);
  if (!t) return m->err->code;
  t->n_values = t->n_floats = 0;
  memcpy(t->dims, dims, sizeof t->dims);
  return sn__onnx_give_constant(m, t);
}

/* The same numbers in dimensions of which one may be left to find; as it is where they are not known. */
sn_status sn__onnx_reshape_constant(sn__importer *m, const sn__onnx_tensor *from) {
  const sn__onnx_value *list = sn__onnx_input(m, 1);
  const sn__onnx_tensor *shape = list && list->kind == SN__ONNX_CONSTANT ? list->constant : NULL;
  sn__onnx_tensor *t = copy_of(m, from);
  uint64_t all = 1, given = 1;
  if (!t || !shape || shape->n_values > SN__ONNX_RANK) return t ? sn__onnx_give_constant(m, from) : m->err->code;
  t->rank = shape->n_values;
  for (uint32_t i = 0; i < from->rank; i++)
    if (!sn_mul(all, (uint64_t)from->dims[i], &all) || all > SN_MAX_NET_BYTES) all = 0;
  for (uint32_t i = 0; i < t->rank; i++) {
    t->dims[i] = shape->values[i] == 0 && i < from->rank ? from->dims[i] : shape->values[i];
    if (t->dims[i] >= 0 && !sn_mul(given, (uint64_t)t->dims[i], &given)) given = 0;
  }
  for (uint32_t i = 0; i < t->rank && given > 0; i++)
    if (t->dims[i] < 0) t->dims[i] = (int64_t)(all / given), given *= all / given;
  return sn__onnx_give_constant(m, all > 0 && given == all ? t : from);
}

static const sn__onnx_tensor *fold_gather(sn__importer *m) {
  const sn__onnx_tensor *list = sn__onnx_input(m, 0)->constant, *at = sn__onnx_input(m, 1)->constant;
  int64_t *values, index = at->n_values == 1 ? at->values[0] : INT64_MAX;
  if (index < 0) index += list->n_values;
  if (index < 0 || index >= list->n_values) return NULL;
  sn__onnx_tensor *t = numbers(m, 1, &values);
  if (!t) return NULL;
  values[0] = list->values[index];
  t->computed = list->computed;
  return t;
}

static const sn__onnx_tensor *fold_slice(sn__importer *m) {
  const sn__onnx_tensor *list = sn__onnx_input(m, 0)->constant, *from = sn__onnx_input(m, 1)->constant;
  const sn__onnx_tensor *to = sn__onnx_input(m, 2)->constant;
  const sn__onnx_value *step = sn__onnx_input(m, 4);
  int64_t *values, side = list->n_values;
  bool backward = step && step->constant->n_values == 1 && step->constant->values[0] == -1;
  if (backward && list->rank == 2 && from->n_values == 1 && from->values[0] == -1) return rearrange(m, list, false);
  if (list->rank > 1 || backward || from->n_values != 1 || to->n_values != 1) return NULL;
  int64_t first = sn__onnx_within(from->values[0], side), behind = sn__onnx_within(to->values[0], side);
  if (behind <= first) return NULL;
  sn__onnx_tensor *t = numbers(m, (uint32_t)(behind - first), &values);
  if (!t) return NULL;
  memcpy(values, list->values + first, t->n_values * sizeof *values);
  t->computed = list->computed;
  return t;
}

bool sn__onnx_fold(sn__importer *m) {
  const char *op = m->node->op;
  uint32_t known = count_known(m), inputs = m->node->n_inputs;
  const sn__onnx_tensor *t = NULL;
  static const sn__onnx_tensor unknown = {.name = "", .rank = 0};
  if (known == SN_NONE || inputs == 0) return false;
  bool two = inputs == 2 && known == 2;
  if (known == 0 && strcmp(op, "Concat") == 0) t = concat_floats(m);
  if (known == 1 && strcmp(op, "ConstantOfShape") == 0) t = fold_filled(m);
  if (known == inputs && strcmp(op, "Concat") == 0) t = fold_concat(m);
  if (known == inputs && inputs >= 3 && strcmp(op, "Slice") == 0) t = fold_slice(m);
  if (two && strcmp(op, "Gather") == 0) t = fold_gather(m);
  if (two && !t && strcmp(op, "Gather") != 0) t = fold_pair(m);
  sn__onnx_give_constant(m, t ? t : &unknown);
  return true;
}

sn_status sn__onnx_only_constants_rule(sn__importer *m) {
  return sn__onnx_fold(m) ? m->err->code : sn__onnx_fail(m, "it is known of constants only");
}

/* A constant that is as large as need be stays one: of a learned position. */
sn_status sn__onnx_expand_rule(sn__importer *m) {
  const sn__onnx_value *v = sn__onnx_input(m, 0);
  return v && v->kind == SN__ONNX_CONSTANT ? sn__onnx_give_constant(m, v->constant)
                                           : sn__onnx_fail(m, "it is known of constants only");
}

sn_status sn__onnx_constant_rule(sn__importer *m) {
  const sn__onnx_attribute *a = sn__onnx_find(m->node, "value");
  return sn__onnx_give_constant(m, a ? a->tensor : NULL);
}
