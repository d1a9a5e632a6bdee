/* Tensor parallel, with sequence parallel unless told otherwise: one rank's route (parallel.md, section 5; PyTorch 2.15,
 * torch/distributed/tensor).
 *
 *   forward    products of a norm's output     gather, for all of them once; what was gathered stays for backward
 *              products of what is split       a partial sum, reduce-scatter; the table of words as well
 *   backward   those                           gather of what arrives, for the product alone
 *              a norm that was gathered        the sum of what its readers make, reduce-scatter
 *   update     norms                           all-reduce of their gradients
 *
 * With sequence=whole (Megatron-LM before it had sequence parallel) values between products are whole on every rank, and
 * so are norms' gradients:
 *
 *   forward    products of what is split       a partial sum, all-reduce; the table of words as well
 *   backward   a norm that products read       the sum of what these make, all-reduce
 *
 * An array is gathered along its first dimension and reduced along it, and positions are the second: DTensor writes it
 * once more, in the other order, behind a gather and ahead of a reduction. That copy is here a tensor that the
 * collective makes and drops (SN_PORT_MOVED).
 *
 * A module's caller keeps the module's input to its end: what a norm made, beside what was gathered of it.
 *
 * Of a loss of split logits DTensor makes a log-softmax and a likelihood of simple operations, in four bytes: forward
 * another tensor as large as a rank's logits (of narrow ones three) and twelve bytes a position; backward another one,
 * two indices and a masked label of eight bytes, two numbers and a flag. And the weights' sum stays beside the loss.
 *
 * A table's gradient is whole, on every rank the same, until the update or who averages it takes a rank's part; that of one
 * that the head shares is a part at once. Sums of norms' gradients are made with the update, too. */
#include "sim/parallel/tensor.h"
#include "base/arena.h"
#include "base/checked.h"
#include "sim/graph/freeze.h"
#include "sim/graph/optimizer.h"
#include "sim/graph/precision.h"
#include "sim/parallel/edit.h"
#include "sim/parallel/fsdp.h"

#include <stdlib.h>
#include <string.h>

enum { FORWARD_ROW = 12, BACKWARD_ROW = 25, WIDE_COPIES = 3 };

/* In the step that is copied `to` stands for `from`. */
typedef struct instead {
  uint32_t from, to;
} instead;

enum { INSTEAD = 3 };

/* A product of what is split, the last of a block: its step, the summand that it makes, and the input of its module, split and gathered. */
typedef struct product {
  uint32_t layer, step, made, held[2];
} product;

typedef struct maker {
  sn__edit e;
  sn__tensor_layout layout;
  const sn_route *whole;
  sn_iteration iteration;
  uint32_t ranks;
  bool averaged;      /* gradients, over other axes */
  bool sliced;        /* for that a rank's part of a table's is taken as it is made */
  uint32_t *gathered; /* per layer: what was gathered of its output; SN_NONE: nothing */
  bool *there;        /* and whether it still is */
  uint32_t held[2];   /* input of the module at hand, and what was gathered of it; SN_NONE */
  product *products;
  uint32_t n_products;
  instead instead[INSTEAD];
  uint32_t n_instead;
} maker;

/* Whether values between products are split by positions. */
static bool splits_sequence(const maker *m) {
  return !m->iteration.mesh.sequence_whole;
}

static const sn_layer *layer_of(const maker *m, uint32_t index) {
  return &m->whole->layers[index];
}

static const sn__tensor_layer *layout_of(const maker *m, uint32_t index) {
  return &m->layout.layers[index];
}

/* ---- sizes ---- */

static uint64_t bytes_of(const maker *m, uint32_t tensor) {
  return m->whole->tensors[tensor].bytes;
}

/* A rank's part of a value that is split. */
static uint64_t part_of(const maker *m, uint32_t tensor) {
  return bytes_of(m, tensor) / m->ranks;
}

/* Elements of a layer's parameter, of all and of a rank; of another layer's where it takes that. */
static uint64_t elements_of(const maker *m, uint32_t layer, uint32_t port, uint32_t ranks) {
  sn_cut cuts[SN_PARAMETER_TENSORS];
  uint32_t owner = layer_of(m, layer)->attr->weights_of ? layer_of(m, layer)->attr->weights_of : layer;
  uint32_t count = sn_cuts_of(m->whole->net, layer_of(m, owner), ranks, cuts);
  return port < count ? cuts[port].rows * cuts[port].each : 0;
}

/* A table that the head shares has a rank's part of its gradient, as the head's is one. */
static bool is_table_alone(const maker *m, uint32_t layer) {
  return layer_of(m, layer)->op == SN_EMBEDDING && layer_of(m, m->layout.head)->attr->weights_of != layer;
}

/* The third tensor of its backward: the sum of parts, and beside it the part of its own gradient, which is whole. */
static bool is_sum_of_table(const maker *m, uint32_t tensor) {
  const sn_tensor *t = &m->whole->tensors[tensor], *before = t - 1;
  return tensor > 0 && t->role == SN_SCRATCH && before->role == SN_SCRATCH && before->layer == t->layer &&
         layer_of(m, t->layer)->op == SN_EMBEDDING && !is_table_alone(m, t->layer);
}

static uint64_t parameter_bytes(const maker *m, uint32_t tensor) {
  const sn_tensor *t = &m->whole->tensors[tensor];
  uint32_t port = t->port < SN_CAST_WEIGHTS ? t->port : t->port - SN_CAST_WEIGHTS;
  uint64_t all = elements_of(m, t->layer, port, 1);
  bool whole =
      t->role == SN_SCRATCH ? layer_of(m, t->layer)->op == SN_EMBEDDING : !m->sliced && is_table_alone(m, t->layer);
  if (is_sum_of_table(m, tensor)) return 2 * (t->bytes / m->ranks);
  if (all == 0 || whole) return t->bytes;
  return t->bytes / all * elements_of(m, t->layer, port, m->ranks);
}

/* Of what a forward step saves: seeds, losses and what is of features alone are not split. */
static bool saves_whole(const maker *m, const sn_tensor *t) {
  sn_saving saving = sn_route_rule(m->whole, t->layer)->saves;
  switch (saving) {
  case SN_SAVES_ATTENTION:
  case SN_SAVES_PADDED:
  case SN_SAVES_PLUS_ONE_RMS:
    return t->port == 1;
  case SN_SAVES_LOSS:
    return t->port == 0;
  default:
    return false;
  }
}

/* Of a value that products read gathered: a copy in another width, or the sum of what they make. */
static bool is_gathered(const maker *m, const sn_tensor *t) {
  const sn_layer *layer = layer_of(m, t->layer);
  bool copy = t->role == SN_SAVED && t->port == SN_CAST_INPUT;
  if (t->role != SN_GRADIENT && !copy) return false;
  if (layer->op == SN_FORK) return layout_of(m, sn_layer_source(m->whole->net, layer, 0))->gathers;
  return layout_of(m, t->layer)->split == SN_BY_OUTPUTS;
}

static uint64_t own_bytes(const maker *m, uint32_t tensor) {
  const sn_tensor *t = &m->whole->tensors[tensor];
  bool weighs = layout_of(m, t->layer)->split != SN_UNDIVIDED, copy = sn_tensor_is_weight_cast(t);
  if (t->role == SN_PARAMETER_GRADIENT || copy || (t->role == SN_SCRATCH && weighs)) return parameter_bytes(m, tensor);
  bool angles = t->role == SN_SAVED && (t->port == SN_PORT_COSINES || t->port == SN_PORT_SINES);
  bool logits = t->role == SN_VALUE && t->layer == m->layout.head && m->iteration.mesh.loss_whole;
  bool features = layout_of(m, t->layer)->split == SN_BY_INPUTS && t->role != SN_VALUE; /* of its input */
  bool whole = layout_of(m, t->layer)->layout == SN__WHOLE && !features;
  if (angles || logits || whole || is_gathered(m, t)) return t->bytes;
  return t->role == SN_SAVED && saves_whole(m, t) ? t->bytes : part_of(m, tensor);
}

/* What the optimizer makes beside is as large as all parameters of a rank that it takes at once. */
static void shrink_temporaries(maker *m) {
  const sn_route *w = m->whole;
  uint64_t all = 0, own = 0, width = sn_precision_parameter_bytes(m->iteration.precision);
  for (uint32_t l = 0; l < w->n_layers; l++)
    for (uint32_t n = 0; n < SN_PARAMETER_TENSORS && w->weight_gradient[l] != SN_NONE; n++) {
      all += elements_of(m, l, n, 1);
      own += sn_mesh_updates_apart(&m->iteration.mesh, w->net, layer_of(m, l)) ? 0 : elements_of(m, l, n, m->ranks);
    }
  for (uint32_t s = w->first_update; s < w->n_steps && all > 0; s++)
    for (uint32_t i = 0; i < w->steps[s].n_accesses; i++) {
      uint32_t t = w->accesses[w->steps[s].first_access + i].tensor;
      if (w->tensors[t].role == SN_SCRATCH) m->e.tensors[t].bytes = bytes_of(m, t) / (all * width) * (own * width);
    }
}

static void shrink(maker *m) {
  const sn_route *w = m->whole;
  for (uint32_t t = 0; t < w->n_tensors; t++) m->e.tensors[t].bytes = own_bytes(m, t);
  shrink_temporaries(m);
  for (uint32_t t = 0; t < w->n_tensors; t++) m->e.route->tensor_bytes -= bytes_of(m, t) - m->e.tensors[t].bytes;
}

/* ---- collectives ---- */

static void begin_transfer(maker *m, uint32_t layer, sn_pass pass, sn_transfer_kind kind, uint64_t bytes) {
  const sn_transfer transfer = {.kind = kind, .axis = SN_MESH_TP, .group = SN_NONE, .ranks = m->ranks, .bytes = bytes};
  sn__edit_step(&m->e, layer, pass, SN_TRANSFER, sn__edit_transfer(&m->e, transfer));
}

/* Of the latest step. */
static void access_moved(maker *m, uint32_t layer, uint64_t bytes) {
  sn__edit_access(&m->e, sn__edit_tensor(&m->e, layer, SN_PORT_MOVED, SN_SCRATCH, bytes), SN_WRITE);
}

/* The larger of the two is what crosses the links. */
static void collect(maker *m, uint32_t layer, sn_pass pass, sn_transfer_kind kind, uint32_t from, uint32_t to) {
  if (m->e.err->code != SN_OK) return;
  uint64_t bytes = m->e.tensors[kind == SN_ALL_GATHER ? to : from].bytes;
  begin_transfer(m, layer, pass, kind, bytes);
  sn__edit_access(&m->e, from, SN_READ);
  if (kind != SN_ALL_REDUCE) access_moved(m, layer, bytes);
  sn__edit_access(&m->e, to, SN_WRITE);
}

static void gather(maker *m, uint32_t layer, sn_pass pass, uint32_t from, uint32_t to) {
  collect(m, layer, pass, SN_ALL_GATHER, from, to);
}

static void reduce(maker *m, uint32_t layer, sn_pass pass, uint32_t partial, uint32_t to) {
  collect(m, layer, pass, splits_sequence(m) ? SN_REDUCE_SCATTER : SN_ALL_REDUCE, partial, to);
}

/* A rank's part of what it has whole. */
static void slice(maker *m, uint32_t layer, uint32_t from, uint32_t to) {
  if (m->e.err->code != SN_OK) return;
  const sn_transfer copied = {
      .kind = SN_ALL_GATHER, .axis = SN_MESH_TP, .group = SN_NONE, .ranks = m->ranks, .bytes = m->e.tensors[to].bytes};
  sn__edit_step(&m->e, layer, SN_BACKWARD, SN_UNPACK, sn__edit_transfer(&m->e, copied));
  sn__edit_access(&m->e, from, SN_READ);
  sn__edit_access(&m->e, to, SN_WRITE);
}

/* ---- steps of the whole ---- */

static void put_instead(maker *m, uint32_t from, uint32_t to) {
  m->instead[m->n_instead++] = (instead){from, to};
}

static uint32_t now(const maker *m, uint32_t tensor) {
  for (uint32_t i = 0; i < m->n_instead; i++)
    if (m->instead[i].from == tensor) return m->instead[i].to;
  return tensor;
}

/* What a step does of its layer's work: tables are looked up by all words, and whole logits are everyone's. */
static uint32_t share_of(const maker *m, const sn_step *step) {
  const sn__tensor_layer *layout = layout_of(m, step->layer);
  bool whole = layout->layout == SN__WHOLE && layout->split == SN_UNDIVIDED;
  bool all = step->pass == SN_UPDATE ? layout->split == SN_UNDIVIDED : whole || layout->split == SN_BY_WORDS;
  return all ? 1 : m->ranks;
}

static void copy(maker *m, uint32_t index) {
  const sn_step *step = &m->whole->steps[index];
  sn__edit_copy_bare(&m->e, index);
  for (uint32_t i = 0; i < step->n_accesses; i++) {
    sn_access access = m->whole->accesses[step->first_access + i];
    if (access.held)
      sn__edit_hold(&m->e, now(m, access.tensor));
    else
      sn__edit_access(&m->e, now(m, access.tensor), access.mode);
  }
  if (m->e.err->code == SN_OK) m->e.steps[m->e.route->n_steps - 1].share = share_of(m, step);
  m->n_instead = 0;
}

/* The tensor that a layer's first input is, and the layer that made it. */
static uint32_t input_of(const maker *m, uint32_t layer) {
  return m->whole->output[m->whole->net->inputs[layer_of(m, layer)->first_input]];
}

static uint32_t source_of(const maker *m, uint32_t layer) {
  return sn_layer_source(m->whole->net, layer_of(m, layer), 0);
}

/* The product at hand reads what was gathered of its input: for all products once, in backward again where that is asked
 * for. */
static void gather_input(maker *m, uint32_t layer, sn_pass pass) {
  uint32_t source = source_of(m, layer), x = input_of(m, layer);
  uint32_t *to = &m->gathered[source];
  if (*to == SN_NONE) *to = sn__edit_tensor(&m->e, source, SN_PORT_WHOLE, SN_VALUE, bytes_of(m, x));
  if (!m->there[source]) gather(m, source, pass, x, *to);
  if (pass == SN_FORWARD) m->held[1] = *to;
  m->there[source] = true;
  put_instead(m, x, *to);
}

static void let_input_go(maker *m) {
  for (int i = 0; i < 2; i++) {
    sn__edit_hold(&m->e, m->held[i]);
    m->held[i] = SN_NONE;
  }
}

static bool is_in_block(const maker *m, uint32_t layer, uint32_t other) {
  const char *block = sn_route_block(m->whole, layer), *its = sn_route_block(m->whole, other);
  return block && its && strcmp(block, its) == 0;
}

/* Under autocast a block's last product runs again up to the cast of its weights, which is saved, with all that its
 * module's caller holds. */
static void note_product(maker *m, uint32_t layer, uint32_t step, uint32_t made) {
  if (!sn_precision_is_amp(m->iteration.precision) || sn_mesh_size(&m->iteration.mesh, SN_MESH_PP) > 1) return;
  m->products[m->n_products++] = (product){layer, step, made, {m->held[0], m->held[1]}};
}

/* What saves something is behind it: it is not the last. */
static void forget_product(maker *m, uint32_t layer) {
  sn_op op = layer_of(m, layer)->op;
  if (m->n_products == 0 || op == SN_JOIN || op == SN_FORK) return;
  m->n_products -= is_in_block(m, layer, m->products[m->n_products - 1].layer);
}

/* ---- the loss ---- */

static void access_scratch(maker *m, uint32_t layer, uint64_t bytes) {
  sn__edit_access(&m->e, sn__edit_tensor(&m->e, layer, SN_PORT_LOSS, SN_SCRATCH, bytes), SN_WRITE);
}

/* Autocast casts what the log-softmax of narrow logits has made to four bytes, which is saved. */
static bool casts_loss(const maker *m, uint32_t layer) {
  return sn_route_rule(m->whole, layer) == &m->whole->dialect->rules[SN_FORM_CAST_LOSS];
}

static void access_loss_forward(maker *m, uint32_t layer, uint64_t logits, uint64_t positions, uint64_t width) {
  int copies = width == 4 ? 1 : WIDE_COPIES - casts_loss(m, layer); /* before the cast there was one more */
  for (int i = 0; i < copies; i++) access_scratch(m, layer, 4 * logits);
  access_scratch(m, layer, FORWARD_ROW * positions);
}

/* In the width of what was saved; the step's own gradient and scratch are narrow where that was cast, three are not. */
static void access_loss_backward(maker *m, uint32_t layer, uint64_t logits, uint64_t positions, uint64_t width) {
  bool cast = casts_loss(m, layer);
  uint64_t saved = cast ? 4 : width;
  access_scratch(m, layer, cast ? (3 * saved - 2 * width) * logits : width * logits);
  access_scratch(m, layer, (BACKWARD_ROW + 2 * saved) * positions + saved);
}

/* What it makes and drops beside, where logits are split. */
static void access_loss(maker *m, uint32_t layer, bool forward) {
  const sn_shape out = layer_of(m, layer)->out;
  uint64_t positions = (uint64_t)out.n * out.h * out.w, logits = positions * out.c / m->ranks;
  uint64_t width = bytes_of(m, m->whole->output[layer_of(m, layer)->first_output]) / (positions * out.c);
  if (layout_of(m, layer)->layout == SN__WHOLE) return;
  if (forward)
    access_loss_forward(m, layer, logits, positions, width);
  else
    access_loss_backward(m, layer, logits, positions, width);
}

/* ---- passes ---- */

static bool has_whole_logits(const maker *m, uint32_t layer) {
  return layer == m->layout.head && m->iteration.mesh.loss_whole;
}

/* What is a summand of the output, and reduced; or a part of the logits, and gathered. */
static uint32_t copy_moved(maker *m, uint32_t step, bool gathers) {
  uint32_t layer = m->whole->steps[step].layer, y = m->whole->output[layer_of(m, layer)->first_output];
  uint64_t bytes = gathers ? part_of(m, y) : bytes_of(m, y);
  uint32_t made = sn__edit_tensor(&m->e, layer, SN_PORT_PARTIAL, SN_VALUE, bytes);
  put_instead(m, y, made);
  copy(m, step);
  if (gathers)
    gather(m, layer, SN_FORWARD, made, y);
  else
    reduce(m, layer, SN_FORWARD, made, y);
  return made;
}

static void copy_forward(maker *m, uint32_t step) {
  uint32_t layer = m->whole->steps[step].layer;
  sn_division split = (sn_division)layout_of(m, layer)->split;
  if (split == SN_BY_OUTPUTS) m->held[0] = input_of(m, layer);
  if (split == SN_BY_OUTPUTS && splits_sequence(m)) gather_input(m, layer, SN_FORWARD);
  uint32_t made = SN_NONE;
  forget_product(m, layer);
  if (has_whole_logits(m, layer) || split == SN_BY_INPUTS || split == SN_BY_WORDS)
    made = copy_moved(m, step, split == SN_BY_OUTPUTS);
  else
    copy(m, step);
  if (split == SN_BY_INPUTS && m->e.err->code == SN_OK) note_product(m, layer, m->e.moved[step], made);
  if (layer_of(m, layer)->op == SN_SOFTMAX) access_loss(m, layer, true);
  if (split == SN_BY_INPUTS || layer == m->layout.head) let_input_go(m);
}

static bool reads(const maker *m, const sn_step *step, uint32_t tensor) {
  for (uint32_t i = 0; i < step->n_accesses; i++)
    if (m->whole->accesses[step->first_access + i].tensor == tensor) return true;
  return false;
}

/* The gradient that arrives at a layer, in the form in which its backward reads it. */
static void take_gradient(maker *m, uint32_t layer) {
  const sn__tensor_layer *layout = layout_of(m, layer);
  uint32_t dy = m->whole->gradient[layer_of(m, layer)->first_output];
  bool gathers = splits_sequence(m) && (layout->split == SN_BY_INPUTS || layout->split == SN_BY_WORDS);
  bool whole = gathers || (layout->gathers && !splits_sequence(m));
  if (dy == SN_NONE || !(gathers || layout->gathers || has_whole_logits(m, layer))) return;
  uint32_t to = sn__edit_tensor(&m->e, layer, whole ? SN_PORT_WHOLE : SN_PORT_PARTIAL, SN_GRADIENT,
                                whole ? bytes_of(m, dy) : part_of(m, dy));
  if (gathers)
    gather(m, layer, SN_BACKWARD, dy, to);
  else if (layout->gathers)
    reduce(m, layer, SN_BACKWARD, dy, to);
  else
    slice(m, layer, dy, to);
  put_instead(m, dy, to);
}

/* Who averages a table's gradient takes a rank's part of it. */
static void copy_table(maker *m, uint32_t step) {
  uint32_t layer = m->whole->steps[step].layer, gradient = m->whole->weight_gradient[layer], whole = SN_NONE;
  bool makes = m->sliced && gradient != SN_NONE && layer_of(m, layer)->op == SN_EMBEDDING;
  for (uint32_t i = 0; i < m->whole->steps[step].n_accesses && makes; i++) {
    sn_access access = m->whole->accesses[m->whole->steps[step].first_access + i];
    if (access.tensor == gradient && access.mode == SN_WRITE)
      whole = sn__edit_tensor(&m->e, layer, SN_PORT_WHOLE, SN_PARAMETER_GRADIENT, bytes_of(m, gradient));
  }
  if (whole != SN_NONE) put_instead(m, gradient, whole);
  copy(m, step);
  if (whole != SN_NONE) slice(m, layer, whole, gradient);
}

/* A norm's gradients are sums over a rank's own positions, unless it has all. */
static void add_up(maker *m, uint32_t layer, sn_pass pass) {
  uint32_t gradient = m->whole->weight_gradient[layer];
  bool sums = layout_of(m, layer)->split == SN_UNDIVIDED && gradient != SN_NONE && splits_sequence(m);
  for (uint32_t n = 0; sums && n < SN_PARAMETER_TENSORS && elements_of(m, layer, n, 1) > 0; n++) {
    begin_transfer(m, layer, pass, SN_ALL_REDUCE, bytes_of(m, gradient + n));
    if (pass == SN_BACKWARD || !sn_iteration_adds_gradients(m->iteration))
      sn__edit_access(&m->e, gradient + n, SN_MODIFY);
  }
}

static void copy_backward(maker *m, uint32_t index) {
  const sn_step *step = &m->whole->steps[index];
  if (sn_step_follows(step)) {
    copy(m, index);
    return;
  }
  bool products = layout_of(m, step->layer)->split == SN_BY_OUTPUTS && splits_sequence(m);
  if (products && reads(m, step, input_of(m, step->layer))) gather_input(m, step->layer, SN_BACKWARD);
  take_gradient(m, step->layer);
  copy_table(m, index);
  if (m->averaged) add_up(m, step->layer, SN_BACKWARD);
  if (layer_of(m, step->layer)->op == SN_SOFTMAX) access_loss(m, step->layer, false);
}

/* What the update of SGD reads of gradients that lie in another way than their parameters: parts and sums, new ones. */
static void access_taken(maker *m) {
  const sn_route *w = m->whole;
  uint64_t width = sn_precision_parameter_bytes(m->iteration.precision), bytes = 0;
  sn_optimizer kind = sn_optimizer_kind(m->iteration.optimizer);
  if (m->averaged || sn_iteration_keeps_masters(m->iteration)) return;
  if ((kind != SN_OPTIMIZER_SGD && kind != SN_OPTIMIZER_MOMENTUM)) return;
  for (uint32_t l = 0; l < w->n_layers; l++)
    for (uint32_t n = 0; n < SN_PARAMETER_TENSORS && w->weight_gradient[l] != SN_NONE; n++)
      if (is_table_alone(m, l) || (layout_of(m, l)->split == SN_UNDIVIDED && splits_sequence(m)))
        bytes += elements_of(m, l, n, m->ranks) * width;
  sn__edit_access(&m->e, sn__edit_tensor(&m->e, w->steps[w->first_update].layer, SN_PORT_MOVED, SN_SCRATCH, bytes),
                  SN_WRITE);
}

static void copy_update(maker *m, uint32_t index) {
  if (!m->averaged) add_up(m, m->whole->steps[index].layer, SN_UPDATE);
  copy(m, index);
  if (index == m->whole->first_update) access_taken(m);
}

static void write(maker *m) {
  const sn_route *w = m->whole;
  for (uint32_t s = 0; s < w->n_steps && m->e.err->code == SN_OK; s++) {
    if (s == w->first_backward && m->iteration.mesh.gather_again) memset(m->there, 0, w->n_layers * sizeof *m->there);
    if (s < w->first_backward)
      copy_forward(m, s);
    else if (s < w->first_update)
      copy_backward(m, s);
    else
      copy_update(m, s);
  }
  for (uint32_t i = 0; i < m->n_products; i++)
    sn__edit_again(&m->e, m->products[i].step, m->products[i].made, m->products[i].held);
}

static sn_status prepare(maker *m, sn_err *err) {
  sn_status status = sn__tensor_layout_find(m->whole, &m->iteration.mesh, &m->layout, err);
  if (status != SN_OK) return status;
  m->gathered = malloc(m->whole->n_layers * sizeof *m->gathered);
  m->there = calloc(m->whole->n_layers, sizeof *m->there);
  m->products = malloc(m->whole->n_layers * sizeof *m->products);
  if (!m->gathered || !m->there || !m->products) return sn_fail_memory(err);
  memset(m->gathered, 0xff, m->whole->n_layers * sizeof *m->gathered);
  status = sn__edit_begin(&m->e, m->whole, err);
  if (status == SN_OK) shrink(m);
  return status;
}

/* Not where gradients are whole until the last micro-batch is over: those of FSDP, unless each is reduced. Gradients in
 * four bytes are a rank's part. */
static bool is_sliced(sn_iteration iteration) {
  const sn_mesh *mesh = &iteration.mesh;
  bool sharded = sn_mesh_size(mesh, SN_MESH_FSDP) > 1;
  if (sharded) return mesh->sync_each || (!sn_iteration_accumulates(iteration) && sn_mesh_size(mesh, SN_MESH_PP) == 1);
  return sn_mesh_size(mesh, SN_MESH_DP) > 1 || sn_iteration_keeps_masters(iteration);
}

static sn_status hand_over_mesh(const maker *m, sn_route *route, sn_err *err) {
  sn_mesh *mesh = sn_arena_alloc(route->arena, 1, sizeof *mesh);
  if (!mesh) return sn_fail_memory(err);
  *mesh = m->iteration.mesh;
  route->mesh = mesh;
  return SN_OK;
}

sn_route *sn__tp(const sn_route *whole, sn_iteration iteration, sn_err *err) {
  const sn_mesh *mesh = &iteration.mesh;
  maker m = {.whole = whole,
             .iteration = iteration,
             .ranks = sn_mesh_size(mesh, SN_MESH_TP),
             .averaged = sn_mesh_world(mesh) > sn_mesh_size(mesh, SN_MESH_TP),
             .sliced = is_sliced(iteration),
             .held = {SN_NONE, SN_NONE}};
  sn_status status = prepare(&m, err);
  if (status == SN_OK) write(&m);
  if (status == SN_OK) status = hand_over_mesh(&m, m.e.route, err);
  sn_route *route = sn__edit_end(&m.e, status);
  free(m.layout.layers);
  free(m.gathered);
  free(m.there);
  free(m.products);
  return route;
}
