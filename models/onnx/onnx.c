/* Reads ONNX files; see the header. A message is read twice, once to count what is in it: so lists are as long as they
 * need be, and the cost is linear in the file without its weights. Of messages in messages of one
 * kind only the branches of an If are read, DEEPEST of them in each other: their nodes stand ahead of the If's own.
 *
 * Why no library: protobuf-c unpacks whole messages. It copies 500 MiB of weights twice (1,025,120 KiB resident), keeps
 * the bytes of fields that a shorter onnx.proto leaves out as well, and recurses without a limit: graphs 20,000 deep, a
 * file of 234 kB, overflow its stack. To cut weights and depth out ahead of it, a walker through the same messages is
 * needed that writes them anew, lengths and all: more code than to take the fields on the way. */
#include "models/onnx/onnx.h"

#include <inttypes.h>
#include <string.h>

/* ---- protobuf's wire format ---- */

typedef struct span {
  const uint8_t *at, *end;
} span;

typedef struct field {
  uint32_t number, wire;
  uint64_t value; /* of a varint or fixed number */
  span bytes;     /* of a string, message or packed list */
} field;

enum { VARINT, FIXED64, BYTES, FIXED32 = 5 };

typedef struct reader {
  sn_arena *arena;
  sn_err *err;
  const uint8_t *start;
  uint64_t left;    /* bytes that it may still take */
  const char *call; /* of the last node that had one */
} reader;

/* Of a file made of empty messages each would take a hundred times its size: all may take so many times the file's, and
 * what a small one needs. A node is counted with what becomes of it: values, a layer, numbers that are known. */
enum { TIMES = 16, SMALL = 8 << 20, OF_NODE = 800, OF_VALUE = 200 };

static bool fail(reader *r, const uint8_t *at, const char *reason) {
  sn_fail(r->err, SN_BAD_INPUT, "byte %zu: %s; export it again", (size_t)(at - r->start), reason);
  return false;
}

static bool take_varint(span *s, uint64_t *value) {
  *value = 0;
  for (unsigned shift = 0; shift < 64 && s->at < s->end; shift += 7) {
    uint8_t byte = *s->at++;
    *value |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

static bool take_fixed(span *s, size_t size, uint64_t *value) {
  *value = 0;
  if ((size_t)(s->end - s->at) < size) return false;
  for (size_t i = 0; i < size; i++) *value |= (uint64_t)s->at[i] << 8 * i;
  s->at += size;
  return true;
}

/* The next field of a message; false at its end and after an error. */
static bool next(reader *r, span *s, field *f) {
  uint64_t key = 0;
  const uint8_t *at = s->at;
  if (r->err->code != SN_OK || s->at == s->end) return false;
  *f = (field){0};
  if (!take_varint(s, &key) || key >> 3 == 0 || key >> 3 > UINT32_MAX) return fail(r, at, "no ONNX: a field is broken");
  f->number = (uint32_t)(key >> 3);
  f->wire = key & 7;
  bool good = f->wire == FIXED64                      ? take_fixed(s, 8, &f->value)
              : f->wire == FIXED32                    ? take_fixed(s, 4, &f->value)
              : f->wire == VARINT || f->wire == BYTES ? take_varint(s, &f->value)
                                                      : false;
  if (!good) return fail(r, at, "no ONNX, or cut short: a field is broken");
  if (f->wire != BYTES) return true;
  if (f->value > (uint64_t)(s->end - s->at)) return fail(r, at, "cut short: a field goes beyond the end");
  f->bytes = (span){s->at, s->at + f->value};
  s->at += f->value;
  return true;
}

static uint32_t count(reader *r, span s, uint32_t number) {
  uint32_t n = 0;
  for (field f; next(r, &s, &f);) n += f.number == number && f.wire == BYTES;
  return n;
}

static bool charge(reader *r, uint64_t items, uint64_t size) {
  if (r->err->code != SN_OK) return false;
  if (items <= r->left / size) {
    r->left -= items * size;
    return true;
  }
  sn_fail(r->err, SN_BAD_INPUT, "its parts would take more than %d times the file's size in memory; export it again",
          TIMES);
  return false;
}

static void *room_for(reader *r, size_t items, size_t size) {
  if (!charge(r, items, size)) return NULL;
  void *room = r->err->code == SN_OK ? sn_arena_alloc(r->arena, items, size) : NULL;
  if (!room && r->err->code == SN_OK) sn_fail_memory(r->err);
  return room;
}

static char *text_of(reader *r, const field *f) {
  size_t length = (size_t)(f->bytes.end - f->bytes.at);
  if (f->wire != BYTES || memchr(f->bytes.at, 0, length)) {
    fail(r, f->bytes.at ? f->bytes.at : r->start, "a name is broken");
    return "";
  }
  char *text = room_for(r, length + 1, 1);
  if (text) memcpy(text, f->bytes.at, length);
  return text ? text : "";
}

static double float_of(uint64_t bits) {
  uint32_t half = (uint32_t)bits;
  float value;
  memcpy(&value, &half, sizeof value);
  return value;
}

/* ---- tensors ---- */

/* Adds the numbers of a field, packed or not, as far as there is room; `n` counts all. */
static void add_numbers(reader *r, const field *f, int64_t *values, uint32_t room, uint32_t *n) {
  span s = f->bytes;
  if (f->wire != BYTES) {
    if (*n < room) values[*n] = (int64_t)f->value;
    ++*n;
    return;
  }
  for (uint64_t value; s.at < s.end; ++*n) {
    if (!take_varint(&s, &value)) {
      fail(r, f->bytes.at, "a list of numbers is broken");
      return;
    }
    if (*n < room) values[*n] = (int64_t)value;
  }
}

/* Floats of a few only; `n` counts all. */
static void add_floats(const field *f, sn__onnx_tensor *t, uint32_t *n) {
  uint64_t bits = f->value;
  span s = f->bytes;
  if (f->wire == BYTES && (s.end - s.at) / 4 > SN__ONNX_RANK) *n = SN__ONNX_RANK + 1;
  while (*n <= SN__ONNX_RANK && (f->wire == FIXED32 || (f->wire == BYTES && take_fixed(&s, 4, &bits)))) {
    if (*n < SN__ONNX_RANK) t->floats[*n] = float_of(bits);
    ++*n;
    if (f->wire == FIXED32) break;
  }
}

/* Numbers as bytes, each `size` wide; only of tensors that are small enough to be shapes and indices. */
static void take_raw(reader *r, sn__onnx_tensor *t, span s) {
  size_t size = t->type == SN__ONNX_INT64 ? 8 : t->type == SN__ONNX_BOOL ? 1 : 4, n = (size_t)(s.end - s.at) / size;
  bool whole = t->type == SN__ONNX_INT64 || t->type == SN__ONNX_INT32 || t->type == SN__ONNX_BOOL;
  uint64_t bits = 0;
  if (!whole || n > SN__ONNX_VALUES || n == 0) return;
  int64_t *values = room_for(r, n, sizeof *values);
  for (size_t i = 0; values && i < n && take_fixed(&s, size, &bits); i++)
    values[i] = size == 8 ? (int64_t)bits : (int32_t)(uint32_t)bits;
  t->values = values;
  t->n_values = values ? (uint32_t)n : 0;
}

static void take_listed(reader *r, sn__onnx_tensor *t, const int64_t *listed, uint32_t n) {
  if (n == 0 || n > SN__ONNX_VALUES) return;
  int64_t *values = room_for(r, n, sizeof *values);
  if (values) memcpy(values, listed, n * sizeof *values);
  t->values = values;
  t->n_values = values ? n : 0;
}

static void read_tensor(reader *r, span s, sn__onnx_tensor *t) {
  enum { DIMS = 1, TYPE, FLOATS = 4, INT32S, INT64S = 7, NAME, RAW, LOCATION = 14 };
  int64_t listed[SN__ONNX_VALUES] = {0};
  uint32_t n = 0, n_floats = 0;
  field raw = {0};
  const uint8_t *start = s.at;
  t->name = "";
  for (field f; next(r, &s, &f);) {
    if (f.number == DIMS) add_numbers(r, &f, t->dims, SN__ONNX_RANK, &t->rank);
    if (f.number == TYPE) t->type = (int64_t)f.value;
    if (f.number == FLOATS) add_floats(&f, t, &n_floats);
    if (f.number == INT32S || f.number == INT64S) add_numbers(r, &f, listed, SN__ONNX_VALUES, &n);
    if (f.number == NAME) t->name = text_of(r, &f);
    if (f.number == RAW && f.wire == BYTES) raw = f;
    if (f.number == LOCATION) t->elsewhere = f.value == 1;
  }
  if (t->rank > SN__ONNX_RANK) fail(r, start, "a tensor has more than 8 dimensions");
  for (uint32_t i = 0; i < t->rank && r->err->code == SN_OK; i++)
    if (t->dims[i] < 0 || t->dims[i] > INT64_C(1) << 40)
      fail(r, start, "a tensor has a dimension that is not from 0 to 2^40");
  take_listed(r, t, listed, n);
  if (raw.wire == BYTES && t->type == SN__ONNX_FLOAT) add_floats(&raw, t, &n_floats);
  if (raw.wire == BYTES) take_raw(r, t, raw.bytes);
  t->n_floats = n_floats <= SN__ONNX_RANK ? n_floats : 0;
}

/* ---- nodes ---- */

/* The first message of that number in another; empty where there is none. */
static span member(reader *r, span s, uint32_t number) {
  span found = {s.end, s.end};
  for (field f; next(r, &s, &f);)
    if (f.number == number && f.wire == BYTES) found = f.bytes;
  return found;
}

/* A list of floats in an attribute, as a tensor of one dimension. */
static const sn__onnx_tensor *read_floats(reader *r, span s) {
  enum { FLOATS = 7 };
  uint32_t n = 0, all = 0;
  sn__onnx_tensor *t = room_for(r, 1, sizeof *t);
  if (!t) return NULL;
  *t = (sn__onnx_tensor){.name = "", .type = SN__ONNX_FLOAT, .rank = 1};
  for (field f; next(r, &s, &f);) {
    if (f.number != FLOATS) continue;
    add_floats(&f, t, &n);
    all += f.wire == BYTES ? (uint32_t)((f.bytes.end - f.bytes.at) / 4) : 1;
  }
  t->dims[0] = all;
  t->n_floats = all <= SN__ONNX_RANK ? all : 0;
  return t;
}

static const char **read_names(reader *r, span s, uint32_t number, uint32_t *n) {
  uint32_t many = count(r, s, number);
  const char **names = room_for(r, many, sizeof *names);
  *n = 0;
  for (field f; names && next(r, &s, &f);)
    if (f.number == number && *n < many) names[(*n)++] = text_of(r, &f);
  return names;
}

/* What a branch makes: the names of its outputs. */
static void read_branch_outputs(reader *r, span s, sn__onnx_attribute *a) {
  enum { OUTPUT = 12, NAME = 1 };
  uint32_t many = count(r, s, OUTPUT);
  const char **names = room_for(r, many, sizeof *names);
  for (field f; names && next(r, &s, &f);) {
    if (f.number != OUTPUT || f.wire != BYTES || a->n_outputs == many) continue;
    const field name = {.wire = BYTES, .bytes = member(r, f.bytes, NAME)};
    names[a->n_outputs++] = text_of(r, &name);
  }
  a->outputs = names;
}

static void read_attribute(reader *r, span s, sn__onnx_attribute *a) {
  enum { NAME = 1, FLOAT, INT, TEXT, TENSOR, GRAPH, FLOATS, INTS };
  const span all = s;
  int64_t listed[SN__ONNX_VALUES] = {0};
  a->name = a->text = "";
  for (field f; next(r, &s, &f);) {
    if (f.number == NAME) a->name = text_of(r, &f);
    if (f.number == FLOAT) a->f = float_of(f.value);
    if (f.number == INT) a->i = (int64_t)f.value;
    if (f.number == TEXT) a->text = text_of(r, &f);
    if (f.number == INTS) add_numbers(r, &f, listed, SN__ONNX_VALUES, &a->n_ints);
    if (f.number == FLOATS && !a->tensor) a->tensor = read_floats(r, all);
    if (f.number == GRAPH && f.wire == BYTES && a->n_outputs == 0) read_branch_outputs(r, f.bytes, a);
    if (f.number == TENSOR && f.wire == BYTES) {
      sn__onnx_tensor *t = room_for(r, 1, sizeof *t);
      if (t) read_tensor(r, f.bytes, t);
      a->tensor = t;
    }
  }
  if (a->n_ints > SN__ONNX_VALUES) a->n_ints = 0;
  int64_t *ints = room_for(r, a->n_ints, sizeof *ints);
  if (ints) memcpy(ints, listed, a->n_ints * sizeof *ints);
  a->ints = ints;
}

/* The last but one of "['', 'features', 'features.1', 'conv2d']": the last one is the operation. */
static const char *innermost(char *list) {
  char *end = list + strlen(list), *from = NULL;
  for (int seen = 0; end > list && seen < 3;)
    if (*--end == '\'') seen++, from = end;
  if (!from || end == list) return "";
  *from = '\0';
  char *quote = strrchr(list, '\'');
  return quote ? quote + 1 : "";
}

static bool is_text(span s, const char *text) {
  return (size_t)(s.end - s.at) == strlen(text) && memcmp(s.at, text, strlen(text)) == 0;
}

/* The call that a node is of, once for all of its nodes. */
static const char *call_of(reader *r, const field *value) {
  if (!is_text(value->bytes, r->call)) r->call = text_of(r, value);
  return r->call;
}

/* What PyTorch's exporter says of the graph. */
static void read_signature(reader *r, span s, sn__onnx_model *m) {
  enum { KEY = 1, VALUE };
  span key = member(r, s, KEY);
  field value = {.wire = BYTES, .bytes = member(r, s, VALUE)};
  if (is_text(key, "pkg.torch.export.ExportedProgram.graph_signature")) m->signature = text_of(r, &value);
}

/* Where PyTorch's exporter says which module and call a node is of, and by which rules it was rewritten. */
static void read_metadata(reader *r, span s, sn__onnx_node *node) {
  enum { KEY = 1, VALUE };
  span key = member(r, s, KEY);
  field value = {.wire = BYTES, .bytes = member(r, s, VALUE)};
  if (is_text(key, "pkg.torch.onnx.name_scopes")) node->module = innermost(text_of(r, &value));
  if (is_text(key, "pkg.torch.onnx.fx_node")) node->call = call_of(r, &value);
  if (is_text(key, "pkg.onnxscript.rewriter.rule_name"))
    node->folded = strstr(text_of(r, &value), "FuseBatchNorm") != NULL;
}

static void read_node(reader *r, span s, sn__onnx_node *node) {
  enum { INPUT = 1, OUTPUT, NAME, OP, ATTRIBUTE, DOMAIN = 7, METADATA = 9 };
  uint32_t many = count(r, s, ATTRIBUTE);
  sn__onnx_attribute *attributes = room_for(r, many, sizeof *attributes);
  node->name = node->op = node->domain = node->module = node->call = "";
  node->inputs = read_names(r, s, INPUT, &node->n_inputs);
  node->outputs = read_names(r, s, OUTPUT, &node->n_outputs);
  if (node->n_outputs > 1) charge(r, node->n_outputs - 1, OF_VALUE);
  node->attributes = attributes;
  for (field f; attributes && next(r, &s, &f);) {
    if (f.number == NAME) node->name = text_of(r, &f);
    if (f.number == OP) node->op = text_of(r, &f);
    if (f.number == DOMAIN) node->domain = text_of(r, &f);
    if (f.number == METADATA && f.wire == BYTES) read_metadata(r, f.bytes, node);
    if (f.number == ATTRIBUTE && f.wire == BYTES && node->n_attributes < many)
      read_attribute(r, f.bytes, &attributes[node->n_attributes++]);
  }
}

const sn__onnx_attribute *sn__onnx_find(const sn__onnx_node *node, const char *name) {
  for (uint32_t i = 0; i < node->n_attributes; i++)
    if (strcmp(node->attributes[i].name, name) == 0) return &node->attributes[i];
  return NULL;
}

/* ---- inputs and outputs of the graph ---- */

static void read_input(reader *r, span s, sn__onnx_tensor *t) {
  enum { NAME = 1, TYPE, TENSOR_TYPE = 1, ELEMENT = 1, SHAPE, DIM = 1, VALUE = 1 };
  span type = member(r, member(r, s, TYPE), TENSOR_TYPE), shape = member(r, type, SHAPE);
  t->name = "";
  for (field f; next(r, &s, &f);)
    if (f.number == NAME) t->name = text_of(r, &f);
  for (field f; next(r, &type, &f);)
    if (f.number == ELEMENT) t->type = (int64_t)f.value;
  for (field f; next(r, &shape, &f);) {
    if (f.number != DIM || f.wire != BYTES) continue;
    if (t->rank == SN__ONNX_RANK) {
      fail(r, f.bytes.at, "an input has more than 8 dimensions");
      return;
    }
    int64_t value = 0;
    span dim = f.bytes;
    for (field d; next(r, &dim, &d);)
      if (d.number == VALUE && d.wire == VARINT) value = (int64_t)d.value;
    t->dims[t->rank++] = value > 0 ? value : 0;
  }
}

/* ---- the file ---- */

enum { NODE = 1, INITIALIZER = 5 };
enum { DEEPEST = 8 }; /* branches in branches */

/* The branch of an If that an attribute is; false: it is none. */
static bool find_branch(reader *r, span attribute, span *graph, bool *wanted) {
  enum { NAME = 1, GRAPH = 6 };
  const span name = member(r, attribute, NAME);
  *wanted = is_text(name, "then_branch");
  *graph = member(r, attribute, GRAPH);
  return *wanted || is_text(name, "else_branch");
}

/* Nodes and initializers of a graph, and of branches in it. */
static void count_parts(reader *r, span s, uint32_t deep, uint32_t *nodes, uint32_t *initializers) {
  enum { ATTRIBUTE = 5 };
  if (deep > DEEPEST) fail(r, s.at, "branches stand in branches, more than 8 deep");
  for (field f; next(r, &s, &f);) {
    if (f.wire != BYTES) continue;
    *initializers += f.number == INITIALIZER;
    if (f.number != NODE) continue;
    ++*nodes;
    span node = f.bytes, graph;
    bool wanted;
    for (field a; next(r, &node, &a);)
      if (a.number == ATTRIBUTE && a.wire == BYTES && find_branch(r, a.bytes, &graph, &wanted))
        count_parts(r, graph, deep + 1, nodes, initializers);
  }
}

static void read_parts(reader *r, span s, const sn__onnx_guard *guard, sn__onnx_model *m);

/* What stands in the branches of a node, ahead of it. */
static void read_branches(reader *r, span s, const sn__onnx_guard *outer, sn__onnx_model *m) {
  enum { INPUT = 1, ATTRIBUTE = 5 };
  const field condition = {.wire = BYTES, .bytes = member(r, s, INPUT)};
  for (field f; next(r, &s, &f);) {
    span graph;
    bool wanted;
    if (f.number != ATTRIBUTE || f.wire != BYTES || !find_branch(r, f.bytes, &graph, &wanted)) continue;
    sn__onnx_guard *guard = room_for(r, 1, sizeof *guard);
    if (!guard) return;
    *guard = (sn__onnx_guard){.condition = text_of(r, &condition), .wanted = wanted, .outer = outer};
    read_parts(r, graph, guard, m);
  }
}

static void read_parts(reader *r, span s, const sn__onnx_guard *guard, sn__onnx_model *m) {
  for (field f; r->err->code == SN_OK && next(r, &s, &f);) {
    if (f.wire != BYTES) continue;
    if (f.number == INITIALIZER) read_tensor(r, f.bytes, &m->initializers[m->n_initializers++]);
    if (f.number != NODE) continue;
    read_branches(r, f.bytes, guard, m);
    if (r->err->code != SN_OK) return;
    read_node(r, f.bytes, &m->nodes[m->n_nodes]);
    m->nodes[m->n_nodes++].guard = guard;
  }
}

static void read_graph(reader *r, span s, sn__onnx_model *m) {
  enum { NAME = 2, INPUT = 11, OUTPUT, METADATA = 16 };
  uint32_t nodes = 0, initializers = 0;
  uint32_t inputs = count(r, s, INPUT), outputs = count(r, s, OUTPUT);
  count_parts(r, s, 0, &nodes, &initializers);
  const uint64_t values = (uint64_t)initializers + inputs + outputs;
  if (!charge(r, nodes, OF_NODE) || !charge(r, values, OF_VALUE)) return;
  m->nodes = room_for(r, nodes, sizeof *m->nodes);
  m->initializers = room_for(r, initializers, sizeof *m->initializers);
  m->inputs = room_for(r, inputs, sizeof *m->inputs);
  m->outputs = room_for(r, outputs, sizeof *m->outputs);
  if (r->err->code == SN_OK) read_parts(r, s, NULL, m);
  for (field f; r->err->code == SN_OK && next(r, &s, &f);) {
    if (f.wire != BYTES) continue;
    if (f.number == NAME) m->graph = text_of(r, &f);
    if (f.number == INPUT) read_input(r, f.bytes, &m->inputs[m->n_inputs++]);
    if (f.number == OUTPUT) read_input(r, f.bytes, &m->outputs[m->n_outputs++]);
    if (f.number == METADATA) read_signature(r, f.bytes, m);
  }
}

/* Of the operators of ONNX itself; others' do not count. */
static void read_opset(reader *r, span s, sn__onnx_model *m) {
  enum { DOMAIN = 1, VERSION };
  const char *domain = "";
  int64_t version = 0;
  for (field f; next(r, &s, &f);) {
    if (f.number == DOMAIN) domain = text_of(r, &f);
    if (f.number == VERSION) version = (int64_t)f.value;
  }
  if (!*domain || strcmp(domain, "ai.onnx") == 0) m->opset = version;
}

sn_status sn__onnx_read(const uint8_t *bytes, size_t size, sn_arena *arena, sn__onnx_model *model, sn_err *err) {
  enum { PRODUCER = 2, GRAPH = 7, OPSET };
  reader r = {.arena = arena, .err = err, .start = bytes, .left = SMALL + TIMES * (uint64_t)size, .call = ""};
  span s = {bytes, bytes + size};
  bool seen = false;
  *model = (sn__onnx_model){.graph = "", .producer = "", .signature = ""};
  for (field f; next(&r, &s, &f);) {
    if (f.number == PRODUCER) model->producer = text_of(&r, &f);
    if (f.number == OPSET && f.wire == BYTES) read_opset(&r, f.bytes, model);
    if (f.number != GRAPH || f.wire != BYTES) continue;
    if (seen) {
      fail(&r, f.bytes.at, "it has two graphs");
      break;
    }
    seen = true;
    read_graph(&r, f.bytes, model);
  }
  if (err->code == SN_OK && !seen) sn_fail(err, SN_BAD_INPUT, "it holds no ONNX graph");
  return err->code;
}
