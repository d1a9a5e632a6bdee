/* ONNX's operators that rearrange and choose; see models/onnx/onnx_internal.h. */
#include "models/onnx/onnx_internal.h"

#include "base/checked.h"

#include <string.h>

sn_status sn__onnx_transpose(sn__importer *m) {
  const sn__onnx_value *v = sn__onnx_input(m, 0);
  if (!v || v->kind != SN__ONNX_CONSTANT) v = sn__onnx_operand(m, 0);
  uint32_t n, seen = 0;
  const int64_t *order = sn__onnx_ints(m, "perm", UINT32_MAX, &n);
  int64_t dims[SN__ONNX_RANK] = {0};
  if (!v) return m->err->code;
  if (v->kind == SN__ONNX_CONSTANT && v->constant->shapeless) return sn__onnx_give_constant(m, v->constant);
  for (uint32_t i = 0; i < v->rank; i++) {
    int64_t axis = n == 0 ? v->rank - 1 - i : i < n ? order[i] : -1;
    if (axis < 0 || axis >= v->rank) return sn__onnx_fail(m, "perm is no order of its axes");
    dims[i] = v->dims[axis];
    seen |= 1u << axis;
  }
  if (seen != (1u << v->rank) - 1) return sn__onnx_fail(m, "perm is no order of its axes");
  if (v->kind == SN__ONNX_CONSTANT) return sn__onnx_transpose_constant(m, v->constant, dims);
  int64_t strides[SN__ONNX_RANK];
  for (uint32_t i = 0; i < v->rank; i++) strides[i] = v->strides[n == 0 ? v->rank - 1 - i : (uint32_t)order[i]];
  sn__onnx_give(m, 0, v->layer, v->rank, dims);
  sn__onnx_lay(m, 0, strides);
  return m->err->code;
}

/* The same numbers in other dimensions, where they lie, or copied. */
static sn_status give_seen_as(sn__importer *m, const sn__onnx_value *v, uint32_t rank, const int64_t *dims) {
  int64_t strides[SN__ONNX_RANK];
  uint64_t all = 1;
  bool whole = true; /* else sn__onnx_give() says what is wrong */
  for (uint32_t i = 0; i < rank; i++)
    whole = whole && dims[i] > 0 && sn_mul(all, (uint64_t)dims[i], &all) && all <= SN_MAX_NET_BYTES;
  if (!whole || sn__onnx_view(v, rank, dims, strides)) {
    sn__onnx_give(m, 0, v->layer, rank, dims);
    if (whole) sn__onnx_lay(m, 0, strides);
    return m->err->code;
  }
  return sn__onnx_give(m, 0, sn__onnx_copy(m, v), rank, dims);
}

sn_status sn__onnx_reshape(sn__importer *m) {
  const sn__onnx_value *v = sn__onnx_input(m, 0);
  if (v && v->kind == SN__ONNX_CONSTANT) return sn__onnx_reshape_constant(m, v->constant);
  v = sn__onnx_operand(m, 0);
  uint32_t n;
  const int64_t *shape = sn__onnx_ints(m, "shape", 1, &n);
  if (!v || m->err->code != SN_OK) return m->err->code;
  if (n == 0 || n > SN__ONNX_RANK) return sn__onnx_fail(m, "its shape has %u dimensions", n);
  int64_t dims[SN__ONNX_RANK], rest = -1;
  uint64_t given = 1, all = sn__onnx_numbers(m, v) * sn__onnx_images(m, v);
  for (uint32_t i = 0; i < n; i++) {
    dims[i] = shape[i] == 0 ? sn__onnx_dim(v, i) : shape[i];
    if (dims[i] < 0) rest = i;
    if (dims[i] >= 0 && !sn_mul(given, (uint64_t)dims[i], &given)) given = 0;
  }
  if (rest >= 0 && given > 0 && all % given == 0) dims[rest] = (int64_t)(all / given);
  return give_seen_as(m, v, n, dims);
}

sn_status sn__onnx_flatten(sn__importer *m) {
  const sn__onnx_value *v = sn__onnx_operand(m, 0);
  if (!v) return m->err->code;
  if (sn__onnx_int(m, "axis", 1) != 1) return sn__onnx_fail(m, "only axis 1 is known");
  const int64_t dims[] = {v->dims[0], (int64_t)(sn__onnx_numbers(m, v) * sn__onnx_images(m, v) / (uint64_t)v->dims[0])};
  return give_seen_as(m, v, 2, dims);
}

/* The same numbers in other dimensions. */
static sn_status give_seen(sn__importer *m, const sn__onnx_value *v, uint32_t rank, const int64_t *dims) {
  if (v->kind == SN__ONNX_LAYER) return give_seen_as(m, v, rank, dims);
  sn__onnx_tensor *t = sn_arena_alloc(m->arena, 1, sizeof *t);
  if (!t) return sn_fail_memory(m->err);
  *t = *v->constant;
  t->rank = rank;
  memcpy(t->dims, dims, sizeof t->dims);
  return sn__onnx_give_constant(m, t);
}

static uint32_t axes_of(sn__importer *m, uint32_t rank, uint32_t *n) {
  uint32_t set = 0;
  const int64_t *axes = sn__onnx_ints(m, "axes", 1, n);
  for (uint32_t i = 0; i < *n; i++) {
    int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
    if (axis >= 0 && axis < SN__ONNX_RANK) set |= 1u << axis;
  }
  return set;
}

sn_status sn__onnx_squeeze(sn__importer *m) {
  const sn__onnx_value *v = sn__onnx_input(m, 0);
  if (!v) return sn__onnx_fail(m, "it has no input");
  uint32_t n, set = axes_of(m, v->rank, &n), rank = 0;
  int64_t dims[SN__ONNX_RANK] = {0};
  for (uint32_t i = 0; i < v->rank; i++) {
    bool batch = i == 0 && v->kind == SN__ONNX_LAYER, gone = v->dims[i] == 1 && (n == 0 ? !batch : set >> i & 1);
    if (!gone) dims[rank++] = v->dims[i];
  }
  return give_seen(m, v, rank, dims);
}

sn_status sn__onnx_unsqueeze(sn__importer *m) {
  const sn__onnx_value *v = sn__onnx_input(m, 0);
  if (!v) return sn__onnx_fail(m, "it has no input");
  uint32_t n, count = 0, from = 0;
  sn__onnx_ints(m, "axes", 1, &count);
  uint32_t rank = v->rank + count, set = axes_of(m, rank, &n);
  int64_t dims[SN__ONNX_RANK] = {0};
  if (rank > SN__ONNX_RANK) return sn__onnx_fail(m, "its output has more than %d dimensions", SN__ONNX_RANK);
  for (uint32_t i = 0; i < rank; i++) dims[i] = set >> i & 1 ? 1 : sn__onnx_dim(v, from++);
  return give_seen(m, v, rank, dims);
}

/* Learned positions, each put ahead of all others. */
static sn_status put_ahead(sn__importer *m, const sn__onnx_value *v, int64_t count) {
  uint32_t x = sn__onnx_positions(m, v, -1);
  for (int64_t i = 0; i < count; i++) x = sn__onnx_add(m, i + 1 < count ? "token" : "", SN_TOKEN, &(sn_attr){0}, &x, 1);
  return sn__onnx_give_changed(m, v, 1, v->dims[1] + count, x);
}

/* Whether it is seen as an image, or a volume, whose channels are put together. */
static bool is_of_channels(const sn__importer *m, const sn__onnx_value *v, int64_t axis) {
  return axis == 1 && (v->rank == 4 || (v->rank == 5 && sn__onnx_planes(m, v->layer) > 1));
}

/* Behind learned positions, put ahead of all others, too. What holds nothing is left out. */
sn_status sn__onnx_concat(sn__importer *m) {
  enum { MOST = 64, MOST_TOKENS = 16 };
  const sn__onnx_value *values[MOST], *model = NULL;
  uint32_t inputs[MOST], n = 0;
  bool ahead = false;
  int64_t axis = sn__onnx_int(m, "axis", 1), side = 0;
  for (uint32_t i = 0; i < m->node->n_inputs; i++) {
    const sn__onnx_value *v = sn__onnx_input(m, i);
    if (!v || n == MOST) return sn__onnx_fail(m, "it has more than %d inputs, or one too few", MOST);
    const sn__onnx_tensor *t = v->kind == SN__ONNX_CONSTANT ? v->constant : NULL;
    if (t && v->rank > 0 && sn__onnx_dim(v, axis) == 0) continue;
    side += sn__onnx_dim(v, axis);
    ahead = ahead || (t && (t->parameter || v->rank == 0 || v->dims[0] != m->batch));
    if (!t) model = v;
    if (!t || !ahead) values[n++] = t ? sn__onnx_operand(m, i) : v;
    if (m->err->code != SN_OK) return m->err->code;
  }
  if (!model) return sn__onnx_fail(m, "it puts constants together");
  if (ahead && (n > 1 || model->rank != 3 || axis != 1 || side > model->dims[1] + MOST_TOKENS))
    return sn__onnx_fail(m, "of constants only up to %d positions ahead of others are known", MOST_TOKENS);
  if (ahead) return put_ahead(m, model, side - model->dims[1]);
  for (uint32_t i = 0; i < n; i++)
    inputs[i] =
        is_of_channels(m, values[i], axis) ? sn__onnx_image(m, values[i]) : sn__onnx_positions(m, values[i], axis);
  return sn__onnx_give_changed(m, model, axis, side, sn__onnx_add(m, "", SN_CONCAT, &(sn_attr){0}, inputs, n));
}

static uint32_t cut_as(sn__importer *m, const char *what, const sn__onnx_value *v, int64_t axis, const sn_attr *a) {
  uint32_t x = v->rank == 5 && axis == 1 ? sn__onnx_image(m, v) : sn__onnx_positions(m, v, axis);
  return sn__onnx_add(m, what, SN_SLICE, a, &x, 1);
}

/* `count` from `first` on along an axis. */
static uint32_t cut(sn__importer *m, const char *what, const sn__onnx_value *v, int64_t axis, int64_t first,
                    int64_t count) {
  return cut_as(m, what, v, axis, &(sn_attr){.first = sn__onnx_whole(m, first), .count = sn__onnx_whole(m, count)});
}

int64_t sn__onnx_within(int64_t at, int64_t side) {
  if (at < 0) at = at < -side ? 0 : at + side;
  return at > side ? side : at;
}

/* From `start` on every step-th up to `end`, which is left out; a step below 0 goes down, the last one first. False
 * where that is nothing, or no slice. */
static bool read_slice(int64_t start, int64_t end, int64_t step, int64_t side, sn_attr *a) {
  if (step == 0 || step > SN_MAX_DIM || step < -(int64_t)SN_MAX_DIM || side > SN_MAX_DIM) return false;
  bool down = step < 0;
  int64_t first = sn__onnx_within(start, side), behind = sn__onnx_within(end, side), every = down ? -step : step;
  if (down && first == side) first = side - 1;
  if (down && end < 0 && end < -side) behind = -1;
  int64_t way = down ? first - behind : behind - first, count = way > 0 ? (way - 1) / every + 1 : 0;
  *a = (sn_attr){.first = (uint32_t)(down ? first - (count - 1) * every : first),
                 .count = (uint32_t)count,
                 .step = every > 1 && count > 1 ? (uint32_t)every : 0,
                 .turned = down && count > 1};
  return count > 0;
}

/* What PyTorch slices may be nothing, which is put together with something. */
static sn_status give_nothing(sn__importer *m, const sn__onnx_value *v, int64_t axis) {
  sn__onnx_tensor *t = sn_arena_alloc(m->arena, 1, sizeof *t);
  if (!t) return sn_fail_memory(m->err);
  *t = (sn__onnx_tensor){.name = "", .rank = v->rank};
  memcpy(t->dims, v->dims, sizeof t->dims);
  t->dims[axis] = 0;
  return sn__onnx_give_constant(m, t);
}

/* An axis after the other. */
sn_status sn__onnx_slice(sn__importer *m) {
  const sn__onnx_value *given = sn__onnx_operand(m, 0);
  uint32_t n, n_ends, n_axes, n_steps;
  const int64_t *starts = sn__onnx_ints(m, "starts", 1, &n), *ends = sn__onnx_ints(m, "ends", 2, &n_ends);
  const int64_t *axes = sn__onnx_ints(m, "axes", 3, &n_axes), *steps = sn__onnx_ints(m, "steps", 4, &n_steps);
  if (!given || m->err->code != SN_OK) return m->err->code;
  if (n == 0 || n_ends != n || (n_axes > 0 && n_axes != n) || (n_steps > 0 && n_steps != n))
    return sn__onnx_fail(m, "its starts, ends, axes and steps are not as many");
  sn__onnx_value v = *given;
  for (uint32_t i = 0; i < n && v.layer != SN_NONE; i++) {
    int64_t axis = n_axes > 0 ? axes[i] : i;
    if (axis < 0) axis += v.rank;
    if (axis < 0 || axis >= v.rank) return sn__onnx_fail(m, "it has no such axis");
    sn_attr a;
    if (!read_slice(starts[i], ends[i], n_steps > 0 ? steps[i] : 1, v.dims[axis], &a))
      return *m->node->call ? give_nothing(m, &v, axis) : sn__onnx_fail(m, "it takes nothing");
    if (a.count == v.dims[axis] && !a.turned) continue;
    v.layer = cut_as(m, v.layer == given->layer ? "" : "slice", &v, axis, &a);
    v.dims[axis] = a.count;
    if (a.step > 1) v.strides[axis] *= a.step;
    if (a.turned) sn__onnx_lay_dense(&v);
  }
  sn__onnx_give(m, 0, v.layer, v.rank, v.dims);
  sn__onnx_lay(m, 0, v.strides);
  return m->err->code;
}

sn_status sn__onnx_split(sn__importer *m) {
  const sn__onnx_value *v = sn__onnx_operand(m, 0);
  uint32_t n, outputs = m->node->n_outputs;
  const int64_t *parts = sn__onnx_ints(m, "split", 1, &n);
  if (!v || m->err->code != SN_OK) return m->err->code;
  int64_t axis = sn__onnx_int(m, "axis", 0), first = 0, side = sn__onnx_dim(v, axis);
  if (axis < 0) axis += v->rank;
  if (outputs == 0 || axis < 0 || axis >= v->rank || (n > 0 && n != outputs))
    return sn__onnx_fail(m, "its parts are not its outputs");
  int64_t dims[SN__ONNX_RANK];
  memcpy(dims, v->dims, sizeof dims);
  for (uint32_t i = 0; i < outputs && m->err->code == SN_OK; i++) {
    dims[axis] = n > 0 ? parts[i] : (side + outputs - 1) / outputs;
    if (n == 0 && dims[axis] > side - first) dims[axis] = side - first;
    sn__onnx_give(m, i, cut(m, i ? "part" : "", v, axis, first, dims[axis]), v->rank, dims);
    sn__onnx_lay(m, i, v->strides);
    first += dims[axis];
  }
  return m->err->code;
}

/* A list of parts, which SequenceAt takes out of it. */
sn_status sn__onnx_split_later(sn__importer *m) {
  sn_status status = sn__onnx_alias(m);
  if (status == SN_OK) sn__onnx_mark_sequence(m);
  return status;
}

static sn_status give_constant_part(sn__importer *m, const sn__onnx_value *v, int64_t axis, int64_t count) {
  sn__onnx_tensor *t = sn_arena_alloc(m->arena, 1, sizeof *t);
  if (!t) return sn_fail_memory(m->err);
  *t = *v->constant;
  t->n_values = t->n_floats = 0;
  t->dims[axis] = count;
  return sn__onnx_give_constant(m, t);
}

/* Parts of one length, which is given, or of those listed. */
sn_status sn__onnx_part_of_split(sn__importer *m) {
  const sn__onnx_value *v = sn__onnx_input(m, 0), *at = sn__onnx_input(m, 1);
  if (!v || !v->sequence || (v->kind == SN__ONNX_CONSTANT && v->constant->shapeless) || !at ||
      at->kind != SN__ONNX_CONSTANT || at->constant->n_values != 1)
    return sn__onnx_fail(m, "only parts of a split are known");
  const sn__onnx_node *here = m->node;
  uint32_t n;
  m->node = v->sequence;
  const int64_t *parts = sn__onnx_ints(m, "split", 1, &n);
  int64_t axis = sn__onnx_int(m, "axis", 0), side = sn__onnx_dim(v, axis), first = 0, index = at->constant->values[0];
  m->node = here;
  if (m->err->code != SN_OK) return m->err->code;
  if (axis < 0) axis += v->rank;
  if (axis < 0 || axis >= v->rank) return sn__onnx_fail(m, "what it is a part of has no axis %lld", (long long)axis);
  bool listed = n > 1, known = n > 0 && index >= 0 && (!listed || index < n) && index <= SN_MAX_DIM;
  int64_t count = !known ? 0 : listed ? parts[index] : parts[0];
  if (known && !listed && count > 0 && count <= SN_MAX_DIM) first = index * count;
  if (known && !listed && first < side && count > side - first) count = side - first; /* the last one */
  for (int64_t i = 0; known && listed && i < index; i++) first += sn__onnx_whole(m, parts[i]);
  if (count < 1 || count > side || first > side - count)
    return sn__onnx_fail(m, "it has no part %lld", (long long)index);
  if (v->kind == SN__ONNX_CONSTANT) return give_constant_part(m, v, axis, count);
  sn__onnx_give_changed(m, v, axis, count, cut(m, "", v, axis, first, count));
  sn__onnx_lay(m, 0, v->strides);
  return m->err->code;
}

/* Tokens of the batch, or that come with it. */
static sn_status look_up(sn__importer *m, const sn__onnx_value *table, const sn__onnx_value *at) {
  const sn_attr a = {.rows = sn__onnx_whole(m, table->dims[0]), .channels = sn__onnx_whole(m, table->dims[1])};
  int64_t dims[SN__ONNX_RANK] = {0};
  uint32_t x = at->kind == SN__ONNX_LAYER ? at->layer : SN_NONE;
  if (x == SN_NONE && at->rank > 0 && at->dims[0] == m->batch)
    x = sn__onnx_given(m, sn__onnx_named(m, m->node->inputs[1]), 1, sn__onnx_numbers(m, at), 1, false);
  if (x == SN_NONE || at->rank + 1 > SN__ONNX_RANK)
    return sn__onnx_fail(m, "it looks up what no image has a number of");
  memcpy(dims, at->dims, at->rank * sizeof *dims);
  dims[at->rank] = table->dims[1];
  return sn__onnx_give(m, 0, sn__onnx_add_weighted(m, SN_EMBEDDING, &a, x, table, NULL), at->rank + 1, dims);
}

/* Some of what stands along axes, which lie behind `ahead` others and are `seen` together, in an order of one's own: as
 * many as constants name, made anew. */
static sn_status choose(sn__importer *m, const sn__onnx_value *v, uint32_t ahead, uint32_t seen, uint32_t rank,
                        const int64_t *names) {
  int64_t dims[SN__ONNX_RANK];
  uint64_t side = 1, count = 1;
  const uint32_t rest = v->rank - ahead - seen;
  if (ahead + rank + rest > SN__ONNX_RANK || (ahead == 0 && sn__onnx_images(m, v) != 1))
    return sn__onnx_fail(m, "it chooses among images, or makes too many dimensions");
  for (uint32_t i = 0; i < seen; i++) side *= (uint64_t)v->dims[ahead + i];
  for (uint32_t i = 0; i < rank; i++)
    if (names[i] < 1 || !sn_mul(count, (uint64_t)names[i], &count) || count > SN_MAX_DIM)
      return sn__onnx_fail(m, "what it chooses is nothing, or too much");
  memcpy(dims, v->dims, ahead * sizeof *dims);
  memcpy(dims + ahead, names, rank * sizeof *dims);
  memcpy(dims + ahead + rank, v->dims + ahead + seen, rest * sizeof *dims);
  uint32_t x = sn__onnx_as(m, v, sn__onnx_numbers(m, v) / side, side, 1);
  const sn_attr a = {.shape = {0, (uint32_t)count, 1}};
  return sn__onnx_give(m, 0, sn__onnx_add(m, "", SN_RESIZE, &a, &x, 1), ahead + rank + rest, dims);
}

/* Of the first axes, as many as the last dimension of constants has numbers. */
sn_status sn__onnx_gather_nd(sn__importer *m) {
  const sn__onnx_value *v = sn__onnx_operand(m, 0), *at = sn__onnx_input(m, 1);
  if (!v) return m->err->code;
  const int64_t points = at && at->rank > 0 ? at->dims[at->rank - 1] : 0;
  if (!at || at->kind != SN__ONNX_CONSTANT || at->constant->shapeless || points < 1 || points > v->rank ||
      sn__onnx_int(m, "batch_dims", 0) != 0)
    return sn__onnx_fail(m, "only what constants name is known");
  return choose(m, v, 0, (uint32_t)points, at->rank - 1, at->dims);
}

/* Tokens in a table, or one of the numbers along an axis. */
sn_status sn__onnx_gather(sn__importer *m) {
  const sn__onnx_value *v = sn__onnx_input(m, 0), *at = sn__onnx_input(m, 1);
  int64_t axis = sn__onnx_int(m, "axis", 0);
  if (v && at && v->kind == SN__ONNX_CONSTANT && v->rank == 2 && (at->kind == SN__ONNX_LAYER || at->constant->given))
    return look_up(m, v, at);
  v = sn__onnx_operand(m, 0);
  if (!v) return m->err->code;
  if (at && v->rank == 1 && at->kind == SN__ONNX_CONSTANT && at->rank > 1)
    return sn__onnx_give(m, 0, v->layer, at->rank, at->dims); /* all numbers of a list in some order: as_strided() */
  if (!at || at->kind != SN__ONNX_CONSTANT || v->rank < 2)
    return sn__onnx_fail(m, "only tokens in a table and what constants name of an axis are known");
  if (axis < 0) axis += v->rank;
  if (axis < 0 || axis >= v->rank) return sn__onnx_fail(m, "it has no axis %lld", (long long)axis);
  if (at->constant->n_values != 1 && at->constant->shapeless) return sn__onnx_fail(m, "what it chooses is not known");
  if (at->constant->n_values != 1) return choose(m, v, (uint32_t)axis, 1, at->rank, at->dims);
  int64_t index = at->constant->values[0], dims[SN__ONNX_RANK], strides[SN__ONNX_RANK], side = v->dims[axis];
  uint32_t rank = 0;
  for (uint32_t i = 0; i < v->rank; i++)
    if (i != axis || at->rank == 1) strides[rank] = v->strides[i], dims[rank++] = i == axis ? 1 : v->dims[i];
  sn__onnx_give(m, 0, cut(m, "", v, axis, index < 0 ? index + side : index, 1), rank, dims);
  sn__onnx_lay(m, 0, strides);
  return m->err->code;
}

/* Squares of pixels that are channels, or the other way round: a copy of the same numbers in another order. */
sn_status sn__onnx_move_depth(sn__importer *m) {
  const sn__onnx_value *v = sn__onnx_operand(m, 0);
  const int64_t s = sn__onnx_int(m, "blocksize", 1);
  if (!v) return m->err->code;
  const bool deeper = strcmp(m->node->op, "SpaceToDepth") == 0;
  if (v->rank != 4 || s < 1 || s > 1024 || (deeper ? v->dims[2] % s || v->dims[3] % s : v->dims[1] % (s * s)))
    return sn__onnx_fail(m, "blocks of %lld do not divide its input", (long long)s);
  const int64_t c = deeper ? v->dims[1] * s * s : v->dims[1] / (s * s);
  const int64_t dims[] = {v->dims[0], c, deeper ? v->dims[2] / s : v->dims[2] * s,
                          deeper ? v->dims[3] / s : v->dims[3] * s};
  return sn__onnx_give(m, 0, sn__onnx_copy(m, v), 4, dims);
}

/* Around up to two axes, which are what is seen as rows and columns. */
sn_status sn__onnx_pad(sn__importer *m) {
  const sn__onnx_value *v = sn__onnx_operand(m, 0);
  uint32_t n, axes[2], count = 0;
  const int64_t *pads = sn__onnx_ints(m, "pads", 1, &n);
  if (!v || m->err->code != SN_OK) return m->err->code;
  if (n != 2 * v->rank || v->rank < 2) return sn__onnx_fail(m, "its pads are not two an axis");
  int64_t dims[SN__ONNX_RANK];
  for (uint32_t i = 0; i < v->rank; i++) {
    bool padded = pads[i] != 0 || pads[i + v->rank] != 0;
    if (padded && (count == 2 || i == 0))
      return sn__onnx_fail(m, "only two axes are known to be padded, and no images");
    if (padded) axes[count++] = i;
    dims[i] = v->dims[i] + sn__onnx_whole(m, pads[i]) + sn__onnx_whole(m, pads[i + v->rank]);
  }
  if (count == 0 || m->err->code != SN_OK) return m->err->code ? m->err->code : sn__onnx_give_same(m, v, v->layer);
  sn_attr a = {0};
  const bool image = v->rank == 4 && axes[0] >= 2 && (uint64_t)v->dims[0] == sn__onnx_images(m, v);
  if (image) axes[0] = 2, axes[1] = 3;
  const bool two = image || count == 2;
  const int64_t top = two ? pads[axes[0]] : 0, bottom = two ? pads[axes[0] + v->rank] : 0;
  const int64_t left = pads[axes[two]], right = pads[axes[two] + v->rank];
  a.pad_h = (uint32_t)(top < bottom ? top : bottom);
  a.pad_w = (uint32_t)(left < right ? left : right);
  a.output_pad_h = (uint32_t)(top + bottom) - 2 * a.pad_h;
  a.output_pad_w = (uint32_t)(left + right) - 2 * a.pad_w;
  uint32_t x = image ? sn__onnx_image(m, v)
                     : sn__onnx_as(m, v, 0, two ? (uint64_t)v->dims[axes[0]] : 1, (uint64_t)v->dims[axes[two]]);
  uint32_t y = sn__onnx_add(m, "", SN_PAD, &a, &x, 1);
  return image ? sn__onnx_give_image(m, v, y) : sn__onnx_give(m, 0, y, v->rank, dims);
}

/* What a side becomes by a factor, as ONNX has it: rounded down; 0 where it is no size. */
static int64_t scaled(int64_t side, double factor) {
  double size = (double)side * factor;
  return size >= 1 && size <= SN_MAX_DIM ? (int64_t)size : 0;
}

/* By its output's size, or by factors: of the second input until opset 10, of the third since. */
sn_status sn__onnx_resize(sn__importer *m) {
  const sn__onnx_value *v = sn__onnx_operand(m, 0), *by = sn__onnx_input(m, m->node->n_inputs == 2 ? 1 : 2);
  const sn__onnx_attribute *mode = sn__onnx_find(m->node, "mode");
  uint32_t n;
  const int64_t *sizes = sn__onnx_ints(m, "sizes", 3, &n);
  if (!v || m->err->code != SN_OK) return m->err->code;
  const double *factors =
      by && by->kind == SN__ONNX_CONSTANT && by->constant->n_floats == 4 ? by->constant->floats : NULL;
  if (v->rank != 4 || (n != 4 && !factors) || (factors && (factors[0] != 1 || factors[1] != 1)))
    return sn__onnx_fail(m, "only sizes of rows and columns are known, given as numbers; export it with fixed shapes");
  sn_attr a = {.bilinear = mode && strcmp(mode->text, "linear") == 0};
  a.shape[SN_SIDE_HEIGHT] = sn__onnx_whole(m, n == 4 ? sizes[2] : scaled(v->dims[2], factors[2]));
  a.shape[SN_SIDE_WIDTH] = sn__onnx_whole(m, n == 4 ? sizes[3] : scaled(v->dims[3], factors[3]));
  uint32_t x = sn__onnx_image(m, v);
  return sn__onnx_give_image(m, v, sn__onnx_add(m, "", SN_RESIZE, &a, &x, 1));
}
