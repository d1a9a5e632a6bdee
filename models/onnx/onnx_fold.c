/* ONNX's constants, and what is computed of constants alone: shapes, pads, scales. Few numbers are known, nothing else.
 */
#include "models/onnx/onnx_internal.h"

#include "base/checked.h"

#include <inttypes.h>
#include <string.h>

static sn__onnx_tensor *numbers(sn__importer *m, uint32_t n, int64_t **values) {
  sn__onnx_tensor *t = sn_arena_alloc(m->arena, 1, sizeof *t);
  *values = sn_arena_alloc(m->arena, n, sizeof **values);
  if (!t || !*values) {
    sn_fail_memory(m->err);
    return NULL;
  }
  *t = (sn__onnx_tensor){.name = "", .type = SN__ONNX_INT64, .rank = 1, .dims = {n}, .n_values = n, .values = *values};
  return t;
}

sn_status sn__onnx_shape_rule(sn__importer *m) {
  const sn__onnx_value *v = sn__onnx_input(m, 0);
  int64_t *values;
  if (!v) return sn__onnx_fail(m, "it has no input");
  int64_t first = sn__onnx_within(sn__onnx_int(m, "start", 0), v->rank);
  int64_t behind = sn__onnx_within(sn__onnx_int(m, "end", v->rank), v->rank);
  if (v->kind == SN__ONNX_CONSTANT && v->constant->shapeless) return sn__onnx_give_unknown(m);
  sn__onnx_tensor *t = numbers(m, behind > first ? (uint32_t)(behind - first) : 0, &values);
  if (!t) return m->err->code;
  if (t->n_values > 0) memcpy(values, v->dims + first, t->n_values * sizeof *values);
  return sn__onnx_give_constant(m, t);
}

static int64_t combine(const char *op, int64_t a, int64_t b) {
  uint64_t x = (uint64_t)a, y = (uint64_t)b; /* without overflow */
  if (strcmp(op, "Mul") == 0) return (int64_t)(x * y);
  if (strcmp(op, "Add") == 0) return (int64_t)(x + y);
  if (strcmp(op, "Sub") == 0) return (int64_t)(x - y);
  if (strcmp(op, "Equal") == 0) return a == b;
  if (strcmp(op, "Less") == 0) return a < b;
  if (strcmp(op, "Greater") == 0) return a > b;
  if (strcmp(op, "LessOrEqual") == 0) return a <= b;
  if (strcmp(op, "GreaterOrEqual") == 0) return a >= b;
  if (strcmp(op, "And") == 0) return a && b;
  if (strcmp(op, "Or") == 0) return a || b;
  if (b <= 0) return 0;
  return strcmp(op, "Mod") == 0 ? a % b : a / b;
}

/* The i-th number of a list, or its only one. */
static int64_t number_at(const sn__onnx_tensor *t, uint32_t i) {
  return t->values[t->n_values == 1 ? 0 : i];
}

/* How long a list is that is made of the inputs element by element; 0: they are no lists of one length. */
static uint32_t list_length(sn__importer *m) {
  uint32_t n = 1;
  for (uint32_t i = 0; i < m->node->n_inputs; i++) {
    const sn__onnx_tensor *t = sn__onnx_input(m, i)->constant;
    if (t->rank > 1 || t->n_values == 0 || (t->n_values != 1 && n != 1 && t->n_values != n)) return 0;
    if (t->n_values != 1) n = t->n_values;
  }
  return n;
}

static const sn__onnx_tensor *fold_not(sn__importer *m) {
  int64_t *values;
  const uint32_t n = list_length(m);
  sn__onnx_tensor *t = n > 0 ? numbers(m, n, &values) : NULL;
  for (uint32_t i = 0; t && i < n; i++) values[i] = !number_at(sn__onnx_input(m, 0)->constant, i);
  return t;
}

/* Sums, products, comparisons and choices of two lists. */
static const sn__onnx_tensor *fold_lists(sn__importer *m) {
  bool chooses = m->node->n_inputs == 3;
  const sn__onnx_tensor *a = sn__onnx_input(m, 0)->constant, *b = sn__onnx_input(m, 1)->constant;
  const sn__onnx_tensor *c = chooses ? sn__onnx_input(m, 2)->constant : NULL;
  int64_t *values;
  uint32_t n = list_length(m);
  sn__onnx_tensor *t = n > 0 ? numbers(m, n, &values) : NULL;
  if (!t) return NULL;
  for (uint32_t i = 0; i < n; i++)
    values[i] = c ? number_at(number_at(a, i) ? b : c, i) : combine(m->node->op, number_at(a, i), number_at(b, i));
  return t;
}

static const sn__onnx_tensor *fold_concat(sn__importer *m) {
  int64_t *values;
  uint32_t n = 0;
  for (uint32_t i = 0; i < m->node->n_inputs; i++) n += sn__onnx_input(m, i)->constant->n_values;
  if (n > SN__ONNX_VALUES) return NULL;
  sn__onnx_tensor *t = numbers(m, n, &values);
  if (!t) return NULL;
  for (uint32_t i = 0; i < m->node->n_inputs; i++) {
    const sn__onnx_tensor *part = sn__onnx_input(m, i)->constant;
    if (part->n_values > 0) memcpy(values, part->values, part->n_values * sizeof *values);
    values += part->n_values;
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
  sn__onnx_tensor *t = numbers(m, behind > first ? (uint32_t)(behind - first) : 0, &values);
  if (!t) return NULL;
  if (t->n_values > 0) memcpy(values, list->values + first, t->n_values * sizeof *values);
  return t;
}

/* ---- any operator ---- */

static const struct {
  const char *op;
  bool by_element; /* its output has its inputs' dimensions, the larger of each two */
} foldable[] = {
    {"Add", true},
    {"Sub", true},
    {"Mul", true},
    {"Div", true},
    {"Mod", true},
    {"Pow", true},
    {"Sqrt", true},
    {"Reciprocal", true},
    {"Neg", true},
    {"Abs", true},
    {"Exp", true},
    {"Log", true},
    {"Sin", true},
    {"Cos", true},
    {"Floor", true},
    {"Ceil", true},
    {"Round", true},
    {"Min", true},
    {"Max", true},
    {"Not", true},
    {"And", true},
    {"Or", true},
    {"Xor", true},
    {"Equal", true},
    {"Less", true},
    {"LessOrEqual", true},
    {"Greater", true},
    {"GreaterOrEqual", true},
    {"Where", true},
    {"IsNaN", true},
    {"IsInf", true},
    {"Clip", true},
    {"Sigmoid", true},
    {"Tanh", true},
    {"Softmax", true},
    {"CumSum", true},
    {"Trilu", true},
    {"ScatterND", true},
    {"Concat", false},
    {"Gather", false},
    {"Slice", false},
    {"ConstantOfShape", false},
    {"GatherElements", false},
    {"GatherND", false},
    {"Range", false},
    {"Tile", false},
    {"Flatten", false},
    {"Split", false},
    {"BatchNormalization", false},
    {"MatMul", false},
    {"ReduceSum", false},
    {"ReduceMean", false},
    {"ReduceMax", false},
    {"ReduceMin", false},
    {"ReduceL2", false},
    {"ReduceProd", false},
    {"ArgMax", false},
    {"ArgMin", false},
};

static size_t foldable_index(const sn__onnx_node *node) {
  size_t count = sizeof foldable / sizeof foldable[0], i = 0;
  while (i < count && strcmp(node->op, foldable[i].op) != 0) i++;
  return i;
}

bool sn__onnx_folds(const sn__onnx_node *node) {
  return foldable_index(node) < sizeof foldable / sizeof foldable[0];
}

/* Also where there are none in it. */
static bool has_numbers(const sn__onnx_tensor *t) {
  return t->n_values > 0 || (t->rank == 1 && t->dims[0] == 0);
}

/* What is known of the inputs of a node that are constants. */
typedef struct inputs {
  uint32_t constants, known; /* with numbers */
  bool parameter, random, given;
  double keep;
} inputs;

/* False: one of them is a value of the network, or tokens choose of parameters. */
static bool look(sn__importer *m, inputs *of) {
  uint32_t there = 0;
  *of = (inputs){0};
  for (uint32_t i = 0; i < m->node->n_inputs; i++) {
    const sn__onnx_value *v = sn__onnx_input(m, i);
    there += v != NULL;
    if (v && !sn__onnx_is_fixed(m, v)) return false;
    if (!v || v->kind != SN__ONNX_CONSTANT) continue;
    const sn__onnx_tensor *t = v->constant;
    of->constants++;
    of->known += has_numbers(t);
    of->parameter = of->parameter || (t->parameter && !sn__onnx_is_single(v));
    of->random = of->random || t->random;
    of->given = of->given || t->given;
    if (t->keep > 0) of->keep = t->keep;
  }
  bool chooses = of->given && !m->tokens; /* tokens beside images, which have a table of their own */
  bool weighs = strcmp(m->node->op, "MatMul") == 0;
  if (of->parameter && (chooses || weighs)) return false;
  return m->node->n_inputs > 0 && (!of->parameter || of->constants == there);
}

/* Its numbers, where all of them are known. */
static const sn__onnx_tensor *fold_numbers(sn__importer *m, const inputs *of) {
  const char *op = m->node->op;
  uint32_t all = m->node->n_inputs;
  if (of->constants != all) return NULL;
  if (strcmp(op, "Concat") == 0) return of->known == 0 ? concat_floats(m) : of->known == all ? fold_concat(m) : NULL;
  if (of->known != all) return NULL;
  if (all == 1 && strcmp(op, "ConstantOfShape") == 0) return fold_filled(m);
  if (all >= 3 && strcmp(op, "Slice") == 0) return fold_slice(m);
  if (all == 2 && strcmp(op, "Gather") == 0) return fold_gather(m);
  static const char *const by_two[] = {
      "Add", "Sub", "Mul", "Div", "Mod", "Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual", "And", "Or"};
  if (all == 1 && strcmp(op, "Not") == 0) return fold_not(m);
  bool combines = all == 3 && strcmp(op, "Where") == 0;
  for (size_t i = 0; i < sizeof by_two / sizeof by_two[0]; i++)
    combines = combines || (all == 2 && strcmp(op, by_two[i]) == 0);
  return combines ? fold_lists(m) : NULL;
}

/* The larger of each two sides. */
static void widen(sn__onnx_tensor *t, const sn__onnx_value *v) {
  int64_t dims[SN__ONNX_RANK];
  uint32_t rank = t->rank > v->rank ? t->rank : v->rank;
  for (uint32_t i = 0; i < rank; i++) {
    int64_t mine = i < t->rank ? t->dims[t->rank - 1 - i] : 1, other = i < v->rank ? v->dims[v->rank - 1 - i] : 1;
    dims[rank - 1 - i] = mine > other ? mine : other;
  }
  t->rank = rank;
  memcpy(t->dims, dims, rank * sizeof *dims);
  if (v->kind == SN__ONNX_CONSTANT && v->constant->shapeless) t->shapeless = true;
}

/* Of rows of a table: the tokens' dimensions, and the row's. */
static void look_up(sn__importer *m, sn__onnx_tensor *t) {
  const sn__onnx_value *table = sn__onnx_input(m, 0), *at = sn__onnx_input(m, 1);
  if (!table || !at || table->rank != 2 || table->kind != SN__ONNX_CONSTANT || !table->constant->parameter) return;
  if (sn__onnx_int(m, "axis", 0) != 0) return;
  t->rows = table->dims[0];
  t->columns = table->dims[1];
  if (at->rank == SN__ONNX_RANK) return;
  *t = (sn__onnx_tensor){.name = "", .rank = at->rank + 1, .parameter = true, .rows = t->rows, .columns = t->columns};
  t->owner = table->constant->owner;
  memcpy(t->dims, at->dims, at->rank * sizeof *at->dims);
  t->dims[at->rank] = t->columns;
  t->shapeless = at->kind == SN__ONNX_CONSTANT && at->constant->shapeless;
}

/* A random draw less than a number, or that number added and the whole part taken, is a mask with so many ones. */
static double share_of_ones(sn__importer *m, const inputs *of) {
  bool less = strcmp(m->node->op, "Less") == 0 || strcmp(m->node->op, "Add") == 0;
  for (uint32_t i = 0; less && of->random && i < 2 && i < m->node->n_inputs; i++) {
    const sn__onnx_value *v = sn__onnx_input(m, i);
    bool share = v && v->kind == SN__ONNX_CONSTANT && v->constant->n_floats == 1;
    if (share && v->constant->floats[0] > 0 && v->constant->floats[0] <= 1) return v->constant->floats[0];
  }
  return of->keep;
}

static sn__onnx_tensor *fold_shape(sn__importer *m, const inputs *of, uint32_t n) {
  sn__onnx_tensor *t = sn_arena_alloc(m->arena, 1, sizeof *t);
  if (!t) return NULL;
  *t = (sn__onnx_tensor){.name = "", .parameter = of->parameter, .given = of->given};
  t->keep = share_of_ones(m, of);
  t->random = of->random && t->keep == 0;
  if (of->random || t->keep > 0) t->parameter = false;
  bool by_element = foldable[foldable_index(m->node)].by_element;
  t->shapeless = !by_element && !sn__onnx_fold_dims(m, t, n);
  for (uint32_t i = 0; i < m->node->n_inputs; i++) {
    const sn__onnx_value *v = sn__onnx_input(m, i);
    if (v && by_element) widen(t, v);
    if (!v || v->kind != SN__ONNX_CONSTANT || v->constant->rows == 0) continue;
    t->rows = v->constant->rows;
    t->columns = v->constant->columns;
    t->owner = v->constant->owner;
  }
  if (t->shapeless) t->rank = 0;
  if (strcmp(m->node->op, "Gather") == 0) look_up(m, t);
  return t;
}

sn_status sn__onnx_give_unknown(sn__importer *m) {
  static const sn__onnx_tensor unknown = {.name = "", .shapeless = true};
  return sn__onnx_give_constant(m, &unknown);
}

bool sn__onnx_fold(sn__importer *m) {
  inputs of;
  if (!look(m, &of)) return false;
  const sn__onnx_tensor *t = fold_numbers(m, &of);
  for (uint32_t i = 0; m->err->code == SN_OK && i < m->node->n_outputs; i++) {
    const sn__onnx_tensor *part = t ? t : fold_shape(m, &of, i);
    if (!part) sn_fail_memory(m->err);
    if (part) sn__onnx_give_constant_as(m, i, part);
  }
  return true;
}

/* As large as it is said to become, where that is known; parameters stay as they are: of a learned position. */
static sn_status expand_constant(sn__importer *m, const sn__onnx_tensor *from) {
  const sn__onnx_value *list = sn__onnx_input(m, 1);
  const sn__onnx_tensor *shape = list && list->kind == SN__ONNX_CONSTANT ? list->constant : NULL;
  if (from->parameter || from->shapeless || !shape || shape->n_values == 0 || shape->n_values > SN__ONNX_RANK)
    return sn__onnx_give_constant(m, from);
  sn__onnx_value wide = {.kind = SN__ONNX_LAYER, .rank = shape->n_values};
  for (uint32_t i = 0; i < wide.rank; i++) wide.dims[i] = shape->values[i];
  sn__onnx_tensor *t = copy_of(m, from);
  if (!t) return m->err->code;
  widen(t, &wide);
  if (t->n_values > 1) t->n_values = 0;
  return sn__onnx_give_constant(m, t);
}

/* A constant is as large as need be. A value of the network is put behind itself
 * as often as it is repeated along one axis: heads of keys that several heads of queries read. Of more it is looked at
 * as if it were repeated. */
sn_status sn__onnx_expand_rule(sn__importer *m) {
  enum { MOST = 64 };
  const sn__onnx_value *v = sn__onnx_input(m, 0);
  if (v && v->kind == SN__ONNX_CONSTANT) return expand_constant(m, v->constant);
  v = sn__onnx_operand(m, 0);
  uint32_t n, copies[MOST];
  const int64_t *shape = sn__onnx_ints(m, "shape", 1, &n);
  if (!v || m->err->code != SN_OK) return m->err->code;
  int64_t dims[SN__ONNX_RANK], times = 1, axes = 0;
  uint64_t numbers = sn__onnx_numbers(m, v);
  if (n != v->rank) return sn__onnx_fail(m, "its shape has another number of dimensions than its input");
  for (uint32_t i = 0; i < n; i++) {
    bool wider = i > 0 && v->dims[i] == 1 && shape[i] > 1;
    if (wider && !sn_mul(numbers, (uint64_t)shape[i], &numbers)) return sn__onnx_fail(m, "its output is too large");
    if (wider) times = shape[i], axes++;
    dims[i] = wider ? shape[i] : v->dims[i];
  }
  if (times > MOST || axes > 1) return sn__onnx_give(m, 0, sn__onnx_spread(m, v, numbers), n, dims);
  if (times == 1) return sn__onnx_give_same(m, v, v->layer);
  for (int64_t i = 0; i < times; i++) copies[i] = v->layer;
  return sn__onnx_give(m, 0, sn__onnx_add(m, "", SN_CONCAT, &(sn_attr){0}, copies, (uint32_t)times), n, dims);
}

/* What the branch that is taken makes; its nodes stood ahead. */
sn_status sn__onnx_branch(sn__importer *m) {
  const sn__onnx_value *condition = sn__onnx_input(m, 0);
  const sn__onnx_tensor *t = condition && condition->kind == SN__ONNX_CONSTANT ? condition->constant : NULL;
  if (!t || t->n_values != 1) return sn__onnx_fail(m, "its condition is computed by the network");
  const sn__onnx_attribute *taken = sn__onnx_find(m->node, t->values[0] ? "then_branch" : "else_branch");
  if (!taken || taken->n_outputs != m->node->n_outputs) return sn__onnx_fail(m, "its branch has other outputs");
  for (uint32_t i = 0; i < taken->n_outputs; i++) {
    const sn__onnx_value *made = sn__onnx_named(m, taken->outputs[i]);
    if (!made || made->kind == SN__ONNX_UNKNOWN || made->kind == SN__ONNX_LOST)
      return sn__onnx_fail(m, "its branch does not make output %" PRIu32, i + 1);
    *sn__onnx_named(m, m->node->outputs[i]) = *made;
  }
  return SN_OK;
}

/* What a constant's value can be that is no number. */
static const char *unread(const sn__onnx_node *node) {
  static const char *const kinds[] = {"sparse_value", "value_string", "value_strings"};
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
    if (sn__onnx_find(node, kinds[i])) return kinds[i];
  return NULL;
}

/* Numbers may stand in an attribute of their own, one or a list, as in a tensor. */
sn_status sn__onnx_constant_rule(sn__importer *m) {
  const sn__onnx_attribute *a = sn__onnx_find(m->node, "value"), *list = sn__onnx_find(m->node, "value_ints");
  const sn__onnx_attribute *one = sn__onnx_find(m->node, "value_int"), *real = sn__onnx_find(m->node, "value_float");
  const char *kind = unread(m->node);
  int64_t *values;
  if (kind) return sn__onnx_fail(m, "its %s is not known, only numbers are", kind);
  if (!a) a = sn__onnx_find(m->node, "value_floats");
  if (!list && !one && !real) return sn__onnx_give_constant(m, a ? a->tensor : NULL);
  sn__onnx_tensor *t = numbers(m, list ? list->n_ints : one ? 1 : 0, &values);
  if (!t) return m->err->code;
  if (list && list->n_ints > 0) memcpy(values, list->ints, list->n_ints * sizeof *values);
  if (!list) t->rank = 0;
  if (!list && one) values[0] = one->i;
  if (!list && !one) t->floats[0] = real->f, t->n_floats = 1;
  return sn__onnx_give_constant(m, t);
}
