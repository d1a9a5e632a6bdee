/* Values of an ONNX graph, the layers they are made of, and what a node at hand reads and gives; see
 * models/onnx/onnx_internal.h. */
#include "models/onnx/onnx_internal.h"

#include "base/checked.h"
#include "base/utf8.h"
#include "models/op/op.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

sn_status sn__onnx_fail(sn__importer *m, const char *format, ...) {
  char reason[300];
  va_list args;
  va_start(args, format);
  vsnprintf(reason, sizeof reason, format, args);
  va_end(args);
  return sn_fail(m->err, SN_BAD_INPUT, "%s", reason);
}

/* ---- values ---- */

sn__onnx_value *sn__onnx_named(const sn__importer *m, const char *name) {
  uint32_t index = sn__names_find(&m->names, name);
  return index == SN_NONE ? NULL : &m->values[index];
}

const sn__onnx_value *sn__onnx_input(sn__importer *m, uint32_t n) {
  if (n >= m->node->n_inputs || !*m->node->inputs[n]) return NULL;
  return sn__onnx_named(m, m->node->inputs[n]);
}

static void fail_constant(sn__importer *m, const char *name) {
  char what[80], batch[80];
  snprintf(what, sizeof what, "%s", name);
  snprintf(batch, sizeof batch, "%s", m->batch_name);
  sn__onnx_fail(m,
                "\"%s\" is not made of the model's input \"%s\", the batch: other inputs, and what is made of them "
                "alone, are constants here",
                sn_utf8_clean(what), sn_utf8_clean(batch));
}

static uint64_t product(const int64_t *dims, uint32_t rank) {
  uint64_t all = 1;
  for (uint32_t i = 0; i < rank; i++)
    if (dims[i] < 1 || !sn_mul(all, (uint64_t)dims[i], &all) || all > SN_MAX_NET_BYTES) return 0;
  return all;
}

uint32_t sn__onnx_given(sn__importer *m, sn__onnx_value *v, uint64_t c, uint64_t h, uint64_t w, bool once) {
  const sn__onnx_tensor *t = v->kind == SN__ONNX_CONSTANT ? v->constant : NULL;
  const uint32_t batch = SN_DATA_LAYER;
  if (!t || t->parameter || t->shapeless || (t->keep > 0 && !t->given) || v->rank == 0) return SN_NONE;
  if (v->given > 0) return v->given;
  if (c > SN_MAX_DIM || h > SN_MAX_DIM || w > SN_MAX_DIM || c * h * w == 0) return SN_NONE;
  const sn_attr a = {.shape = {(uint32_t)c, (uint32_t)h, (uint32_t)w}, .once = once};
  uint32_t layer = sn__onnx_add(m, "given", SN_GIVEN, &a, &batch, 1);
  if (layer != SN_NONE) v->given = layer;
  return layer;
}

/* A constant as a value of the network, in a copy: where it is a mask or a factor it stays a constant. */
static const sn__onnx_value *as_value(sn__importer *m, const char *name) {
  sn__onnx_value *v = sn__onnx_named(m, name), *seen;
  if (!v || v->kind != SN__ONNX_CONSTANT) return NULL;
  const bool once = v->rank > 0 && v->dims[0] != m->batch;
  const uint64_t c = v->rank > 1 ? (uint64_t)v->dims[1] : 1, h = v->rank > 2 ? (uint64_t)v->dims[2] : 1;
  const uint64_t rest = v->rank > 3 ? product(v->dims + 3, v->rank - 3) : 1;
  uint32_t layer = sn__onnx_given(m, v, c, h, once ? rest * (uint64_t)v->dims[0] : rest, once);
  if (layer == SN_NONE) return NULL;
  if (!(seen = sn_arena_alloc(m->arena, 1, sizeof *seen))) {
    sn_fail_memory(m->err);
    return NULL;
  }
  *seen = (sn__onnx_value){.kind = SN__ONNX_LAYER, .layer = layer, .rank = v->rank};
  memcpy(seen->dims, v->dims, sizeof seen->dims);
  sn__onnx_lay_dense(seen);
  return seen;
}

const sn__onnx_value *sn__onnx_operand(sn__importer *m, uint32_t n) {
  const sn__onnx_value *v = sn__onnx_input(m, n), *given = NULL;
  if (v && v->kind == SN__ONNX_LAYER && !v->half && !v->sequence) return v;
  if (v && v->kind == SN__ONNX_CONSTANT) given = as_value(m, m->node->inputs[n]);
  if (given || m->err->code != SN_OK) return given;
  if (v && (v->half || v->sequence))
    sn__onnx_fail(m, "%s",
                  v->half ? "a power is known in RMSNorm and GELU alone" : "its input is a sequence of values");
  else if (!v)
    sn__onnx_fail(m, "its input %" PRIu32 " is missing", n + 1);
  else
    fail_constant(m, m->node->inputs[n]);
  return NULL;
}

uint64_t sn__onnx_images(const sn__importer *m, const sn__onnx_value *v) {
  return v->kind == SN__ONNX_LAYER && v->layer != SN_NONE && m->made[v->layer].once ? 1 : m->batch;
}

uint64_t sn__onnx_numbers(const sn__importer *m, const sn__onnx_value *v) {
  return product(v->dims, v->rank) / sn__onnx_images(m, v);
}

int64_t sn__onnx_dim(const sn__onnx_value *v, int64_t axis) {
  if (axis < 0) axis += v->rank;
  return axis >= 0 && axis < v->rank ? v->dims[axis] : 1;
}

const int64_t *sn__onnx_ints(sn__importer *m, const char *attribute, uint32_t n, uint32_t *count) {
  const sn__onnx_attribute *a = sn__onnx_find(m->node, attribute);
  *count = a ? a->n_ints : 0;
  if (a) return a->ints;
  const sn__onnx_value *v = n < m->node->n_inputs ? sn__onnx_input(m, n) : NULL;
  if (!v) return NULL;
  if (v->kind != SN__ONNX_CONSTANT || (v->constant->n_values == 0 && product(v->dims, v->rank) > 0)) {
    sn__onnx_fail(m, "its input %" PRIu32 " is %s; export it with fixed shapes", n + 1,
                  v->kind != SN__ONNX_CONSTANT ? "computed by the network"
                  : v->constant->elsewhere     ? "in another file"
                                               : "no short list of numbers");
    return NULL;
  }
  *count = v->constant->n_values;
  return v->constant->values;
}

int64_t sn__onnx_int(const sn__importer *m, const char *attribute, int64_t otherwise) {
  const sn__onnx_attribute *a = sn__onnx_find(m->node, attribute);
  return a ? a->i : otherwise;
}

/* ---- layers ---- */

sn_shape sn__onnx_shape(const sn__importer *m, uint32_t layer) {
  return m->made[layer].shape;
}

uint32_t sn__onnx_planes(const sn__importer *m, uint32_t layer) {
  return m->made[layer].planes > 0 ? m->made[layer].planes : 1;
}

bool sn__onnx_keep(sn__importer *m, uint32_t layer, sn__onnx_made made) {
  if (layer >= m->room) {
    uint32_t room = 2 * layer + 64;
    sn__onnx_made *wider = realloc(m->made, room * sizeof *wider);
    if (!wider) {
      sn_fail_memory(m->err);
      return false;
    }
    m->made = wider;
    m->room = room;
  }
  m->made[layer] = made;
  return true;
}

uint32_t sn__onnx_add(sn__importer *m, const char *what, sn_op op, const sn_attr *attr, const uint32_t *inputs,
                      uint32_t n_inputs) {
  enum { MOST = 64 };
  sn_shape of[MOST];
  uint32_t planes[MOST];
  sn__onnx_made made = {.planes = 0};
  sn_attr seen = *attr; /* with its planes */
  sn_err reason = SN_ERR_INIT;
  if (m->err->code != SN_OK) return SN_NONE;
  if (n_inputs > MOST) {
    sn__onnx_fail(m, "it has more than %d inputs", MOST);
    return SN_NONE;
  }
  for (uint32_t i = 0; i < n_inputs; i++) {
    if (inputs[i] == SN_NONE) return SN_NONE;
    of[i] = m->made[inputs[i]].shape;
    planes[i] = m->made[inputs[i]].planes;
  }
  if (sn_op_take_planes(op, &seen, of, planes, n_inputs, &reason) != SN_OK ||
      sn_op_shape(op, &seen, of, n_inputs, &made.shape, &reason) != SN_OK) {
    sn__onnx_fail(m, "%s", reason.text);
    return SN_NONE;
  }
  const char *name = m->name;
  if (*what) name = sn_arena_print(m->arena, "%s/%s%" PRIu32, m->name, what, ++m->extra);
  uint32_t layer = name ? sn_build_layer(m->b, op, attr, inputs, n_inputs, name) : SN_NONE;
  if (layer == SN_NONE && (m->b->err.code == SN_OK || m->b->err.code == SN_NO_MEMORY)) sn_fail_memory(m->err);
  if (layer == SN_NONE) sn__onnx_fail(m, "%s", m->b->err.text);
  made.planes = sn_op_planes(op, &seen);
  made.once = op == SN_GIVEN ? attr->once : n_inputs > 0;
  for (uint32_t i = 0; i < n_inputs && op != SN_GIVEN; i++) made.once = made.once && m->made[inputs[i]].once;
  made.call = m->node ? m->node->call : "";
  return layer != SN_NONE && sn__onnx_keep(m, layer, made) ? layer : SN_NONE;
}

sn__onnx_owner *sn__onnx_owner_of(const sn__onnx_value *v) {
  return v && v->kind == SN__ONNX_CONSTANT ? v->constant->owner : NULL;
}

/* As many as its owner's would be, were the attributes the same. */
static uint64_t count_parameters(const sn__importer *m, sn_op op, const sn_attr *attr, uint32_t x, sn_shape out) {
  sn_err ignored = SN_ERR_INIT;
  sn_layer layer = {.name = "", .op = op, .attr = attr, .out = out};
  return sn_op_measure(&layer, m->made[x].shape, &ignored) == SN_OK ? layer.parameters : 0;
}

static bool can_share(const sn__importer *m, const sn__onnx_owner *o, sn_op op, const sn_attr *attr, uint32_t x,
                      const sn__onnx_owner *beside) {
  const sn_layer *owner = &m->b->layers[o->layer];
  const sn_attr *a = owner->attr;
  sn_err ignored = SN_ERR_INIT;
  sn_shape out, in = m->made[x].shape;
  if (o->layer == 0 || a->weights_of != 0) return false;
  bool table = op == SN_FC && owner->op == SN_EMBEDDING, same = owner->op == op && o->beside == beside;
  if (same)
    same = a->channels == attr->channels && a->groups == attr->groups && a->bias == attr->bias &&
           a->kernel_d == attr->kernel_d && a->kernel_h == attr->kernel_h && a->kernel_w == attr->kernel_w;
  if (!same && !(table && !attr->bias)) return false;
  if (sn_op_shape(op, attr, &in, 1, &out, &ignored) != SN_OK) return false;
  const uint64_t own = count_parameters(m, op, attr, x, out),
                 there = count_parameters(m, owner->op, a, m->b->inputs[owner->first_input], m->made[o->layer].shape);
  return own > 0 && own == there;
}

uint32_t sn__onnx_add_weighted(sn__importer *m, sn_op op, const sn_attr *attr, uint32_t x,
                               const sn__onnx_value *weights, const sn__onnx_owner *beside) {
  sn__onnx_owner *o = sn__onnx_owner_of(weights);
  sn_attr a = *attr;
  if (x == SN_NONE) return SN_NONE;
  if (o && can_share(m, o, op, attr, x, beside)) a.weights_of = o->layer;
  uint32_t layer = sn__onnx_add(m, "", op, &a, &x, 1);
  if (!o || layer == SN_NONE) return layer;
  m->made[layer].weights = o;
  if (a.weights_of != 0) o->shared = true;
  if (o->layer == 0) o->layer = layer, o->beside = beside;
  return layer;
}

uint32_t sn__onnx_as(sn__importer *m, const sn__onnx_value *v, uint64_t c, uint64_t h, uint64_t w) {
  uint64_t sides[3] = {c, h, w}, all = sn__onnx_numbers(m, v), given = 1;
  for (int i = 0; i < 3; i++)
    if (sides[i] > 0 && !sn_mul(given, sides[i], &given)) given = UINT64_MAX;
  for (int i = 0; i < 3; i++)
    if (sides[i] == 0 && given <= all && all % given == 0) sides[i] = all / given, given = all;
  bool fits = given == all;
  for (int i = 0; i < 3; i++) fits = fits && sides[i] >= 1 && sides[i] <= SN_MAX_DIM;
  if (!fits) {
    sn__onnx_fail(m, "%" PRIu64 " numbers an image are not %" PRIu64 " x %" PRIu64 " x %" PRIu64, all, c, h, w);
    return SN_NONE;
  }
  sn_shape now = m->made[v->layer].shape;
  if (now.c == sides[0] && now.h == sides[1] && now.w == sides[2] && m->made[v->layer].planes <= 1) return v->layer;
  const sn_attr attr = {.shape = {(uint32_t)sides[0], (uint32_t)sides[1], (uint32_t)sides[2]}};
  return sn__onnx_add(m, "view", SN_RESHAPE, &attr, &v->layer, 1);
}

uint32_t sn__onnx_as_volume(sn__importer *m, const sn__onnx_value *v, uint64_t c, uint64_t planes, uint64_t h,
                            uint64_t w) {
  if (planes <= 1) return sn__onnx_as(m, v, c, h, w);
  const sn__onnx_made *now = &m->made[v->layer];
  bool same = now->planes == planes && now->shape.c == c && now->shape.h / planes == h && now->shape.w == w;
  if (!same) sn__onnx_fail(m, "a volume that is made of an image is not known");
  return same ? v->layer : SN_NONE;
}

uint32_t sn__onnx_as_layer(sn__importer *m, const sn__onnx_value *v, uint32_t layer) {
  if (layer == SN_NONE) return SN_NONE;
  const sn_shape s = m->made[layer].shape;
  const uint32_t planes = m->made[layer].planes;
  return sn__onnx_as_volume(m, v, s.c, planes, planes > 1 ? s.h / planes : s.h, s.w);
}

/* ---- what nodes give ---- */

sn_status sn__onnx_give(sn__importer *m, uint32_t n, uint32_t layer, uint32_t rank, const int64_t *dims) {
  if (m->err->code != SN_OK || layer == SN_NONE) return m->err->code;
  if (n >= m->node->n_outputs || rank > SN__ONNX_RANK)
    return sn__onnx_fail(m, "it has too few outputs or too many dimensions");
  sn__onnx_value *v = sn__onnx_named(m, m->node->outputs[n]);
  sn_shape s = m->made[layer].shape;
  *v = (sn__onnx_value){.kind = SN__ONNX_LAYER, .layer = layer, .rank = rank};
  memcpy(v->dims, dims, rank * sizeof *dims);
  uint64_t all = product(v->dims, v->rank);
  if (all > 0) sn__onnx_lay_dense(v);
  const uint64_t images = sn__onnx_images(m, v);
  if (all > 0 && all % images == 0 && all / images == (uint64_t)s.c * s.h * s.w) return SN_OK;
  return m->named ? sn__onnx_fail(m, "its output is not what --batch %" PRIu32 " makes it; export it with that batch",
                                  m->asked)
                  : sn__onnx_fail(m, "its output is not what the file's batch of %" PRIu32 " makes it", m->batch);
}

void sn__onnx_lay(sn__importer *m, uint32_t n, const int64_t *strides) {
  if (m->err->code != SN_OK) return;
  sn__onnx_value *v = sn__onnx_named(m, m->node->outputs[n]);
  memcpy(v->strides, strides, v->rank * sizeof *strides);
}

sn_status sn__onnx_give_constant(sn__importer *m, const sn__onnx_tensor *constant) {
  return sn__onnx_give_constant_as(m, 0, constant);
}

sn_status sn__onnx_give_constant_as(sn__importer *m, uint32_t n, const sn__onnx_tensor *constant) {
  if (m->err->code != SN_OK) return m->err->code;
  if (!constant) return sn__onnx_fail(m, "it has no value that can be read");
  if (n >= m->node->n_outputs) return sn__onnx_fail(m, "it has no output");
  sn__onnx_value *v = sn__onnx_named(m, m->node->outputs[n]);
  *v = (sn__onnx_value){.kind = SN__ONNX_CONSTANT, .rank = constant->rank, .constant = constant};
  memcpy(v->dims, constant->dims, sizeof v->dims);
  return SN_OK;
}

void sn__onnx_mark_half(sn__importer *m, bool half) {
  sn__onnx_named(m, m->node->outputs[0])->half = half;
}

void sn__onnx_mark_sequence(sn__importer *m) {
  sn__onnx_named(m, m->node->outputs[0])->sequence = m->node;
}

bool sn__onnx_is_fixed(const sn__importer *m, const sn__onnx_value *v) {
  return v->kind == SN__ONNX_CONSTANT || (v->kind == SN__ONNX_LAYER && v->layer == SN_DATA_LAYER && m->tokens);
}
