/* Networks from ONNX files: the graph from its input to its loss; see models/onnx/onnx_internal.h. Values and layers are in
 * models/onnx/onnx_values.c, the rules of operators in models/onnx/onnx_ops.c.
 *
 *   bytes -> sn__onnx_model -> which operators have no rule? -> node by node, as the file has them -> loss -> builder
 *
 * Nodes must be sorted, as the format wants: what reads a value that is not there yet is an error, so cycles are. */
#include "models/onnx/onnx_internal.h"

#include "base/utf8.h"
#include "models/zoo/zoo.h"
#include "models/zoo/zoo_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SHOWN = 60, OLDEST = 6, NEWEST = 26 };

static const off_t MOST_BYTES = INT64_C(1) << 31; /* protobuf's own limit of a message */

/* A name that a terminal and the builder can take: others' bytes become '_'. */
static const char *clean(const char *name, char *out, size_t room) {
  size_t used = 0;
  uint32_t point;
  for (size_t bytes; *name && used + 4 < room; name += bytes) {
    bytes = sn_utf8_next(name, &point);
    bool good = bytes > 0 && !sn_utf8_is_blank(point) && !sn_utf8_is_control(point) && !(used == 0 && point == '@');
    if (bytes == 0) bytes = 1;
    if (good)
      memcpy(out + used, name, bytes), used += bytes;
    else
      out[used++] = '_';
  }
  out[used] = '\0';
  return out;
}

/* ---- what cannot be imported ---- */

static bool same_refusal(const sn__onnx_refusal *r, const sn__onnx_node *node, const char *reason) {
  return strcmp(r->first->op, node->op) == 0 && strcmp(r->first->domain, node->domain) == 0 &&
         strcmp(r->reason, reason) == 0;
}

/* Takes the node's error off `err`: what the others can become is still looked at. */
static void refuse(sn__importer *m) {
  uint32_t k = 0;
  while (k < m->n_refusals && !same_refusal(&m->refusals[k], m->node, m->err->text)) k++;
  m->refused++;
  if (k == SN__ONNX_REFUSALS) {
    m->err->code = SN_OK;
  } else if (k < m->n_refusals) {
    m->refusals[k].count++;
    m->err->code = SN_OK;
  } else {
    const char *reason = sn_arena_text(m->arena, m->err->text);
    m->refusals[m->n_refusals++] =
        (sn__onnx_refusal){.first = m->node, .name = m->name, .reason = reason ? reason : "", .count = 1};
    m->err->code = SN_OK;
    if (!reason) sn_fail_memory(m->err);
  }
  if (m->err->code == SN_OK) m->err->text[0] = '\0';
}

/* Operator, how many nodes have it, the first of them, and the reason where there is a rule. */
static size_t print_refusal(const sn__onnx_refusal *r, char *text, size_t room) {
  char domain[SHOWN], op[SHOWN], name[SHOWN];
  int more =
      snprintf(text, room, "%s%s%s (%" PRIu32 ", first \"%s\"%s%s)", clean(r->first->domain, domain, sizeof domain),
               *r->first->domain ? "." : "", clean(r->first->op, op, sizeof op), r->count,
               clean(r->first->name, name, sizeof name), *r->reason ? ": " : "", r->reason);
  return more > 0 ? (size_t)more : 0;
}

/* All of them at once, as far as there is room. */
static sn_status report_refused(sn__importer *m) {
  char list[330] = "", op[SHOWN];
  size_t used = 0;
  uint32_t listed = 0;
  const sn__onnx_refusal *first = m->refusals;
  if (m->refused == 0 || m->err->code != SN_OK) return m->err->code;
  if (m->refused == 1 && *first->reason)
    return sn_fail(m->err, SN_BAD_INPUT, "node \"%.80s\" (%s): %s; or " SN_RECORD_IT, first->name,
                   clean(first->first->op, op, sizeof op), first->reason);
  for (uint32_t i = 0; i < m->n_refusals; i++) {
    char item[600];
    size_t length = print_refusal(&m->refusals[i], item, sizeof item);
    if (used + length + 2 >= sizeof list) continue;
    used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", item);
    listed += m->refusals[i].count;
  }
  char rest[SHOWN] = "";
  if (listed < m->refused)
    snprintf(rest, sizeof rest, ", and %" PRIu32 " more %s", m->refused - listed,
             m->refused - listed == 1 ? "node" : "nodes");
  return sn_fail(m->err, SN_BAD_INPUT,
                 "operators that cannot be imported: %s%s; export a model without these parts (docs/networks.md), "
                 "or " SN_RECORD_IT,
                 list, rest);
}

/* ---- the graph ---- */

static bool is_float(const sn__onnx_tensor *t) {
  return t->type == SN__ONNX_FLOAT || t->type == SN__ONNX_HALF || t->type == SN__ONNX_DOUBLE ||
         t->type == SN__ONNX_BFLOAT16;
}

/* Floats of the file are trained. */
static sn_status mark_parameters(sn__importer *m) {
  const sn__onnx_model *g = &m->model;
  sn__onnx_owner *owners = sn_arena_alloc(m->arena, g->n_initializers, sizeof *owners);
  if (!owners) return sn_fail_memory(m->err);
  for (uint32_t i = 0; i < g->n_initializers; i++)
    if ((g->initializers[i].parameter = is_float(&g->initializers[i]))) g->initializers[i].owner = &owners[i];
  return SN_OK;
}

/* "b_mean: BUFFER target='mean' persistent=True": what a module has beside its parameters is not trained. */
static void unmark_buffers(sn__importer *m) {
  static const char says[] = ": BUFFER target='";
  const char *at = m->model.signature;
  while ((at = strstr(at, says))) {
    at += strlen(says);
    const size_t length = strcspn(at, "'\n");
    char name[300];
    if (length >= sizeof name) continue;
    memcpy(name, at, length);
    name[length] = '\0';
    const sn__onnx_value *v = sn__onnx_named(m, name);
    if (!v || v->kind != SN__ONNX_CONSTANT) continue;
    sn__onnx_tensor *t = &m->model.initializers[v - m->values];
    t->parameter = false;
    t->owner = NULL;
  }
}

static sn_status name_values(sn__importer *m) {
  const sn__onnx_model *g = &m->model;
  uint64_t all = (uint64_t)g->n_inputs + g->n_initializers;
  for (uint32_t i = 0; i < g->n_nodes; i++) all += g->nodes[i].n_outputs;
  if (all > SN_MAX_INPUTS) return sn_fail(m->err, SN_BAD_INPUT, "it has more than %u values", SN_MAX_INPUTS);
  m->values = sn_arena_alloc(m->arena, all + 1, sizeof *m->values);
  if (!m->values) return sn_fail_memory(m->err);
  if (mark_parameters(m) != SN_OK) return m->err->code;
  if (sn__names_init(&m->names, (uint32_t)all, m->err)) return m->err->code;
  uint32_t n = 0;
  for (uint32_t i = 0; i < g->n_initializers; i++) {
    const sn__onnx_tensor *t = &g->initializers[i];
    m->values[n] = (sn__onnx_value){.kind = SN__ONNX_CONSTANT, .rank = t->rank, .constant = t};
    memcpy(m->values[n].dims, t->dims, sizeof t->dims);
    sn__names_add(&m->names, t->name, n++);
  }
  for (uint32_t i = 0; i < g->n_inputs; i++) sn__names_add(&m->names, g->inputs[i].name, n++);
  for (uint32_t i = 0; i < g->n_nodes; i++)
    for (uint32_t k = 0; k < g->nodes[i].n_outputs; k++) sn__names_add(&m->names, g->nodes[i].outputs[k], n++);
  sn__names_sort(&m->names);
  unmark_buffers(m);
  return SN_OK;
}

static sn_status check_model(sn__importer *m) {
  if (m->model.opset < OLDEST || m->model.opset > NEWEST)
    return sn_fail(m->err, SN_BAD_INPUT,
                   "its operators are of opset %" PRId64 ", not %d to %d; export it with opset_version=17",
                   m->model.opset, OLDEST, NEWEST);
  if (m->model.n_nodes == 0) return sn_fail(m->err, SN_BAD_INPUT, "its graph has no nodes");
  return SN_OK;
}

static bool is_known(const sn__onnx_node *node) {
  return sn__onnx_rule_of(node) || (!*node->domain && sn__onnx_folds(node));
}

/* Nothing can be mapped where the input is wrong; operators that have no rule are listed all the same. */
static void add_unknown(sn__importer *m) {
  sn_err list = SN_ERR_INIT, *input = m->err;
  if (input->code != SN_BAD_INPUT) return;
  m->err = &list;
  for (uint32_t i = 0; i < m->model.n_nodes && list.code == SN_OK; i++) {
    m->node = &m->model.nodes[i];
    m->name = m->node->name;
    if (!is_known(m->node)) refuse(m);
  }
  report_refused(m);
  m->err = input;
  if (list.code != SN_BAD_INPUT) return;
  char reason[sizeof input->text];
  memcpy(reason, input->text, sizeof reason);
  input->code = SN_OK;
  sn_fail(input, SN_BAD_INPUT, "%.150s; %s", reason, list.text);
}

static bool is_whole(const sn__onnx_tensor *in) {
  return in->type == SN__ONNX_INT64 || in->type == SN__ONNX_INT32 || in->type == SN__ONNX_BOOL;
}

/* Floats, but no mask and no number of an image. */
static bool can_be_images(const sn__onnx_tensor *in) {
  return !is_whole(in) && in->rank > 1 && !strstr(in->name, "mask");
}

/* The batch: of the inputs that are no initializers the first one of floats, else the first. */
static const sn__onnx_tensor *find_input(sn__importer *m) {
  const sn__onnx_tensor *found = NULL;
  for (uint32_t i = 0; i < m->model.n_inputs; i++) {
    const sn__onnx_tensor *in = &m->model.inputs[i];
    if (sn__onnx_named(m, in->name)->kind == SN__ONNX_CONSTANT) continue;
    if (!found || (!can_be_images(found) && can_be_images(in))) found = in;
  }
  if (!found) sn_fail(m->err, SN_BAD_INPUT, "it has no input");
  if (found) m->batch_name = found->name;
  return found;
}

/* Hugging Face's names, and what others call the tokens of a decoder. */
static bool is_tokens(const char *name) {
  return strstr(name, "input_ids") || (strstr(name, "decoder") && !strstr(name, "mask") && !strstr(name, "position"));
}

/* The other inputs: tokens of a second half are those of the batch; what else there is - masks, kinds and positions of
 * tokens, numbers of steps, text beside images - are constants, of which an operator with weights makes a GIVEN. */
static void give_others(sn__importer *m, const sn__onnx_tensor *batch) {
  const sn__onnx_value same = *sn__onnx_named(m, batch->name);
  for (uint32_t i = 0; i < m->model.n_inputs; i++) {
    sn__onnx_tensor *in = &m->model.inputs[i];
    sn__onnx_value *v = sn__onnx_named(m, in->name);
    if (v->kind != SN__ONNX_UNKNOWN) continue;
    if (m->named && in->rank > 0 && in->dims[0] == 0) in->dims[0] = m->batch;
    in->given = true;
    *v = (sn__onnx_value){.kind = SN__ONNX_CONSTANT, .rank = in->rank, .constant = in};
    memcpy(v->dims, in->dims, sizeof v->dims);
    if (m->tokens && in->rank == 2 && is_tokens(in->name))
      *v = same;
    else if (m->tokens && in->rank == 2)
      memcpy(v->dims, same.dims, sizeof v->dims);
  }
}

enum { CHANNELS, PLANES, HEIGHT, WIDTH, SIDES };

/* Which side dimension `i` of the input is; tokens stand in rows. */
static int place_of(uint32_t i, uint32_t rank, bool tokens) {
  if (tokens) return HEIGHT;
  return i == 1 ? CHANNELS : rank == 5 ? (int)i - 1 : (int)i;
}

/* Sides that are names, not numbers, are `image`, but for the planes of a volume. */
static sn_status begin(sn__importer *m, const char *title, uint32_t image) {
  const sn__onnx_tensor *in = find_input(m);
  char name[SHOWN];
  uint32_t side[SIDES] = {1, 1, 1, 1};
  if (!in) return m->err->code;
  if (m->asked < 1 || m->asked > SN_MAX_DIM)
    return sn_fail(m->err, SN_BAD_INPUT, "a batch of %" PRIu32 " is not from 1 to %u", m->asked, SN_MAX_DIM);
  bool tokens = is_whole(in);
  m->tokens = tokens;
  if (in->rank < 2 || in->rank > 5 || (tokens && in->rank != 2))
    return sn_fail(m->err, SN_BAD_INPUT,
                   "its input has %" PRIu32 " dimensions; images have 2 to 4, volumes 5, tokens 2", in->rank);
  m->named = in->dims[0] < 1 || in->dims[0] > SN_MAX_DIM;
  m->batch = m->named ? m->asked : (uint32_t)in->dims[0];
  const bool volumes = in->rank == 5;
  for (uint32_t i = 1; i < in->rank; i++) {
    bool free_side = i >= (volumes ? 3 : 2) || tokens;
    uint32_t asked = i + 1 < in->rank ? sn_image_height(image) : sn_image_width(image);
    int64_t dim = image && free_side ? asked : in->dims[i];
    if (dim < 1 || dim > SN_MAX_DIM)
      return sn_fail(m->err, SN_BAD_INPUT, "dimension %" PRIu32 " of its input is %s; %s", i + 1,
                     dim < 1 ? "not a number" : "too large",
                     free_side ? "give --image or --sequence" : "fix it in the export");
    side[place_of(i, in->rank, tokens)] = (uint32_t)dim;
  }
  clean(*m->model.graph ? m->model.graph : title, name, sizeof name);
  m->b = tokens ? sn_builder_new_tokens(name, m->asked, side[HEIGHT], m->err)
         : volumes
             ? sn_builder_new_volumes(name, m->asked, side[CHANNELS], side[PLANES], side[HEIGHT], side[WIDTH], m->err)
             : sn_builder_new(name, m->asked, side[CHANNELS], side[HEIGHT], side[WIDTH], m->err);
  if (!m->b) return m->err->code;
  if (m->b->err.code != SN_OK) return sn_fail(m->err, m->b->err.code, "%s", m->b->err.text);
  sn__onnx_value *v = sn__onnx_named(m, in->name);
  *v = (sn__onnx_value){.kind = SN__ONNX_LAYER, .layer = SN_DATA_LAYER, .rank = in->rank};
  v->dims[0] = m->batch;
  for (uint32_t i = 1; i < in->rank; i++) v->dims[i] = side[place_of(i, in->rank, tokens)];
  sn__onnx_lay_dense(v);
  give_others(m, in);
  return sn__onnx_keep(m, SN_DATA_LAYER, (sn__onnx_made){.shape = m->b->data, .planes = m->b->planes}) ? SN_OK
                                                                                                       : m->err->code;
}

/* What a node is called: its module and what was done there, "features.1.0/conv2d", where PyTorch's exporter says the
 * module; else as in the file, or its operator. */
static const char *node_name(sn__importer *m, const sn__onnx_node *node) {
  char text[SHOWN * 2], module[SHOWN * 2];
  const char *own = *node->name ? node->name : node->op;
  clean(own, text, sizeof text);
  if (!*node->module) return sn_arena_text(m->arena, text);
  const char *done = strncmp(text, "node_", 5) == 0 && text[5] ? text + 5 : text;
  return sn_arena_print(m->arena, "%s/%s", clean(node->module, module, sizeof module), done);
}

/* Those that stand twice get a number. */
static const char *layer_name(sn__importer *m, const sn__names *taken, const char *const *names, uint32_t i) {
  if (sn__names_find(taken, names[i]) == i) return names[i];
  return sn_arena_print(m->arena, "%s.%" PRIu32, names[i], i);
}

/* Whether the node can be looked at: not where an input is lost, and with it its outputs. */
static bool has_all_inputs(sn__importer *m) {
  for (uint32_t i = 0; i < m->node->n_inputs; i++) {
    const sn__onnx_value *v = sn__onnx_input(m, i);
    char name[SHOWN];
    if (*m->node->inputs[i] == '\0' || (v && v->kind != SN__ONNX_UNKNOWN && v->kind != SN__ONNX_LOST)) continue;
    if (v && v->kind == SN__ONNX_LOST) return false;
    sn__onnx_fail(m, "its input \"%s\" is %s", clean(m->node->inputs[i], name, sizeof name),
                  v ? "made by no node before it: the graph is not sorted, or has a cycle" : "not defined");
    return false;
  }
  return true;
}

static void lose_outputs(sn__importer *m) {
  for (uint32_t i = 0; i < m->node->n_outputs; i++) sn__onnx_named(m, m->node->outputs[i])->kind = SN__ONNX_LOST;
}

static void need(sn__importer *m, const char *name) {
  sn__onnx_value *v = sn__onnx_named(m, name);
  if (v) v->needed = true;
}

/* Marks what the first output is made of: the others, and what is made for them, are not trained. Where the graph has
 * no such output all is looked at. */
static void mark_needed(sn__importer *m) {
  const sn__onnx_model *g = &m->model;
  bool known = g->n_outputs > 0 && sn__onnx_named(m, g->outputs[0].name);
  if (known) need(m, g->outputs[0].name);
  for (uint32_t i = g->n_nodes; i-- > 0;) {
    const sn__onnx_node *node = &g->nodes[i];
    bool needed = !known;
    for (uint32_t k = 0; k < node->n_outputs; k++) needed = needed || sn__onnx_named(m, node->outputs[k])->needed;
    g->nodes[i].needed = needed;
    for (uint32_t k = 0; needed && k < node->n_inputs; k++) need(m, node->inputs[k]);
    for (uint32_t k = 0; needed && k < node->n_attributes; k++)
      for (uint32_t o = 0; o < node->attributes[k].n_outputs; o++) need(m, node->attributes[k].outputs[o]);
  }
}

typedef struct node_names {
  const sn__names *taken;
  const char *const *names;
} node_names;

/* Whether the branches that a node is in are taken: what their conditions are is known ahead. */
static bool is_taken(const sn__importer *m, const sn__onnx_guard *guard) {
  for (; guard; guard = guard->outer) {
    const sn__onnx_value *v = sn__onnx_named(m, guard->condition);
    const sn__onnx_tensor *t = v && v->kind == SN__ONNX_CONSTANT ? v->constant : NULL;
    if (!t || t->n_values != 1 || (t->values[0] != 0) != guard->wanted) return false;
  }
  return true;
}

static bool take_node(sn__importer *m, const node_names *n, uint32_t i) {
  m->node = &m->model.nodes[i];
  m->extra = 0;
  if (!m->node->needed || !is_taken(m, m->node->guard)) return false;
  m->name = layer_name(m, n->taken, n->names, i);
  if (!m->name) sn_fail_memory(m->err);
  return m->name != NULL;
}

static void map_node(sn__importer *m, sn__onnx_rule rule) {
  bool known = rule || is_known(m->node), looked_at = known && (rule || has_all_inputs(m));
  if (looked_at && rule)
    rule(m);
  else if (looked_at)
    sn__onnx_map(m);
  if (looked_at && m->err->code == SN_OK) return;
  lose_outputs(m);
  if (!known || m->err->code == SN_BAD_INPUT) refuse(m);
}

static sn_status map_nodes(sn__importer *m, const node_names *n) {
  mark_needed(m);
  for (uint32_t i = 0; i < m->model.n_nodes && m->err->code == SN_OK && m->b->err.code == SN_OK; i++) {
    uint32_t last;
    sn__onnx_rule rule = sn__onnx_call(m, i, &last);
    if (rule && !m->model.nodes[last].needed) rule = NULL;
    for (; rule && i < last; i++)
      if (take_node(m, n, i) && sn__onnx_computes_constant(m)) map_node(m, NULL);
    if (take_node(m, n, i)) map_node(m, rule);
  }
  return report_refused(m);
}

static sn_status map_all(sn__importer *m) {
  uint32_t n = m->model.n_nodes;
  const char **names = sn_arena_alloc(m->arena, n, sizeof *names);
  sn__names taken = {0};
  if (!names) return sn_fail_memory(m->err);
  if (sn__names_init(&taken, n, m->err)) return m->err->code;
  for (uint32_t i = 0; i < n && m->err->code == SN_OK; i++) {
    names[i] = node_name(m, &m->model.nodes[i]);
    if (!names[i])
      sn_fail_memory(m->err);
    else
      sn__names_add(&taken, names[i], i);
  }
  sn__names_sort(&taken);
  if (m->err->code == SN_OK) map_nodes(m, &(node_names){&taken, names});
  sn__names_free(&taken);
  return m->err->code;
}

/* A loss behind the first output; the others are not trained. */
static sn_status add_loss(sn__importer *m) {
  const sn__onnx_value *v = m->model.n_outputs > 0 ? sn__onnx_named(m, m->model.outputs[0].name) : NULL;
  if (!v || v->kind != SN__ONNX_LAYER) return sn_fail(m->err, SN_BAD_INPUT, "its first output is made by no node");
  static const sn__onnx_node loss = {.name = "loss", .op = "loss", .domain = ""};
  m->node = &loss;
  m->name = "loss";
  uint64_t classes = (uint64_t)sn__onnx_dim(v, v->rank == 3 ? -1 : 1);
  bool whole = v->rank < 2 || m->loss == SN_LOSS_MSE;
  uint32_t end = whole ? v->layer : sn__onnx_as(m, v, classes, 0, 1);
  const sn_attr attr = {.loss = m->loss, .positions = !whole && end != SN_NONE && sn__onnx_shape(m, end).h > 1};
  sn__onnx_add(m, "", SN_SOFTMAX, &attr, &end, 1);
  if (m->err->code == SN_BAD_INPUT) sn_err_prefix(m->err, "the loss behind its first output");
  return m->err->code;
}

static sn_net *import(sn__importer *m, const uint8_t *bytes, size_t size, const char *path, uint32_t image) {
  const char *slash = strrchr(path, '/'), *title = slash ? slash + 1 : path;
  if (sn__onnx_read(bytes, size, m->arena, &m->model, m->err) || check_model(m) || name_values(m)) return NULL;
  if (begin(m, title, image)) {
    add_unknown(m);
    return NULL;
  }
  if (map_all(m) || add_loss(m)) return NULL;
  const char *folded = sn__onnx_folded(m, path);
  if (m->err->code != SN_OK) return NULL;
  sn_net *net = sn_builder_finish(m->b, NULL, m->err);
  m->b = NULL;
  if (net && folded) net->inference_only = sn_arena_text(net->arena, folded);
  return net;
}

sn_net *sn__net_from_onnx(const char *path, const void *bytes, size_t size, sn_loss loss, uint32_t batch,
                          uint32_t image, sn_err *err) {
  sn__importer m = {.arena = sn_arena_new(), .err = err, .asked = batch, .loss = loss};
  sn_net *net = NULL;
  if (m.arena)
    net = import(&m, bytes, size, path, image);
  else
    sn_fail_memory(err);
  if (!net && err->code == SN_BAD_INPUT) sn_err_prefix(err, "%.180s", path);
  sn__builder_free(m.b);
  sn__names_free(&m.names);
  free(m.made);
  sn_arena_free(m.arena);
  return net;
}

static sn_net *import_mapped(const char *path, int file, sn_loss loss, uint32_t batch, uint32_t image, sn_err *err) {
  struct stat about;
  if (fstat(file, &about) != 0 || !S_ISREG(about.st_mode) || about.st_size == 0 || about.st_size > MOST_BYTES) {
    sn_fail(err, SN_BAD_INPUT, "%.180s: %s", path,
            !S_ISREG(about.st_mode) ? "is no regular file, as ONNX files have to be: they are read in places"
            : about.st_size == 0    ? "is empty"
                                    : "is larger than 2 GiB, which no ONNX file is: larger weights are in other files");
    return NULL;
  }
  size_t size = (size_t)about.st_size;
  void *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0);
  if (bytes == MAP_FAILED) {
    sn_fail(err, SN_BAD_FILE, "%.180s: cannot be mapped: %s", path, strerror(errno));
    return NULL;
  }
  posix_madvise(bytes, size, POSIX_MADV_RANDOM); /* nothing of the weights ahead; it may as well fail */
  sn_net *net = sn__net_from_onnx(path, bytes, size, loss, batch, image, err);
  munmap(bytes, size);
  return net;
}

sn_net *sn__net_from_onnx_file(const char *path, sn_loss loss, uint32_t batch, uint32_t image, sn_err *err) {
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe would wait for who writes */
  if (file < 0) {
    sn_fail(err, SN_BAD_FILE, "%.180s: cannot be opened: %s", path, strerror(errno));
    return NULL;
  }
  sn_net *net = import_mapped(path, file, loss, batch, image, err);
  close(file);
  return net;
}
