/* Copies in another width (sim/graph/precision.h), of eager dialects under AMP: those of operands are made by the step
 * that reads them, those of gradients back are steps of their own.
 *
 *     forward    x (4 bytes) --> FC --> y            makes x', w', b' of two bytes, and y
 *     backward   FC: dy, x', w' --> dx', dw', db'    then CAST db' --> db, CAST dw' --> dw, CAST dx' --> dx
 */
#include "models/op/op.h"
#include "sim/graph/route_internal.h"

/* ---- forward ---- */

static void cast_inputs(sn__route_maker *b, uint32_t index) {
  const sn_layer *layer = &b->net->layers[index];
  for (uint32_t i = 0; i < layer->n_inputs; i++) {
    uint32_t value = sn__route_input(b, layer, i);
    const sn_value *v = &b->net->values[value];
    if (v->dtype == SN_I64 || b->widths.taken[value] == b->widths.made[value]) continue;
    uint64_t bytes = sn_width_bytes(v, b->widths.taken[value]);
    b->cast[value] = sn__route_add_tensor(b, index, SN_CAST_INPUT + i, SN_SAVED, bytes);
    sn__route_access(b, b->cast[value], SN_WRITE);
  }
}

/* Of weights that several layers use there is one copy. */
static uint32_t owner_of(const sn__route_maker *b, uint32_t index) {
  uint32_t shared = b->net->layers[index].attr->weights_of;
  return shared != 0 ? shared : index;
}

static void cast_parameters(sn__route_maker *b, uint32_t index) {
  uint32_t owner = owner_of(b, index);
  uint64_t bytes[SN_PARAMETER_TENSORS];
  uint32_t count = sn_parameter_tensors(&b->net->layers[owner], bytes);
  if (!sn_precision_casts_weights(b->widths.precision, &b->net->layers[index])) return;
  bool trained = sn__route_trains(b, index);
  if (!trained) owner = index; /* autocast remembers copies of what is trained */
  if (trained && b->weight_cast[owner] != SN_NONE) {
    sn__route_access(b, b->weight_cast[owner], SN_READ);
    return;
  }
  b->weight_cast[owner] = b->route->n_tensors;
  for (uint32_t port = 0; port < count; port++)
    sn__route_access(b, sn__route_add_tensor(b, index, SN_CAST_WEIGHTS + port, SN_SAVED, bytes[port] / 2), SN_WRITE);
}

/* Autocast drops its copies of weights when it ends, behind the loss. */
static void end_autocast(sn__route_maker *b) {
  uint64_t bytes[SN_PARAMETER_TENSORS];
  for (uint32_t i = 0; i < b->net->n_layers; i++) {
    uint32_t count =
        b->weight_cast[i] == SN_NONE || !sn__route_trains(b, i) ? 0 : sn_parameter_tensors(&b->net->layers[i], bytes);
    for (uint32_t port = 0; port < count; port++) sn__route_access(b, b->weight_cast[i] + port, SN_READ);
  }
}

void sn__route_cast_forward(sn__route_maker *b, uint32_t index) {
  if (!b->widths.made) return;
  cast_inputs(b, index);
  cast_parameters(b, index);
  if (sn_precision_is_amp(b->widths.precision) && index == b->order[b->net->n_layers - 2]) end_autocast(b);
}

/* ---- backward ---- */

bool sn__route_cast_gradients(sn__route_maker *b, uint32_t index, bool data) {
  uint32_t owner = owner_of(b, index);
  uint64_t bytes[SN_PARAMETER_TENSORS];
  if (!sn_precision_casts_weights(b->widths.precision, &b->net->layers[index])) return false;
  bool trained = sn__route_trains(b, index);
  if (data || b->net->layers[index].op != SN_FC) sn__route_access(b, b->weight_cast[trained ? owner : index], SN_READ);
  if (!trained) return true;
  uint32_t count = sn_parameter_tensors(&b->net->layers[owner], bytes);
  b->cast_gradient = b->route->n_tensors;
  b->n_cast_gradients = count;
  for (uint32_t port = 0; port < count; port++)
    sn__route_access(b, sn__route_add_tensor(b, index, SN_CAST_WEIGHTS + port, SN_SCRATCH, bytes[port] / 2), SN_WRITE);
  return true;
}

static void begin_cast(sn__route_maker *b, uint32_t index, uint32_t from) {
  sn__route_begin_step(b, index, SN_BACKWARD, SN_CAST);
  b->steps[b->route->n_steps - 1].parameter = SN_NONE;
  sn__route_access(b, from, SN_READ);
}

/* Another layer's use of the weights may have made their gradient: it is added to. */
static void cast_parameter_gradients(sn__route_maker *b, uint32_t index) {
  uint32_t owner = owner_of(b, index);
  bool later = b->weight_gradient[owner] != SN_NONE;
  if (b->n_cast_gradients > 0 && !later) sn__route_add_parameter_gradients(b, owner);
  for (uint32_t port = 0; port < b->n_cast_gradients; port++) {
    uint32_t to = b->weight_gradient[owner] + port;
    begin_cast(b, index, b->cast_gradient + port);
    b->steps[b->route->n_steps - 1].parameter = port;
    uint32_t own = later ? sn__route_own_gradient(b, index, port, to) : SN_NONE;
    if (!later) sn__route_access(b, to, SN_WRITE);
    sn__route_end_step(b);
    if (later) sn__route_add_own_gradient(b, index, port, own, to);
  }
  b->n_cast_gradients = 0;
}

void sn__route_deliver(sn__route_maker *b, uint32_t value, uint32_t tensor, sn_part part) {
  if (!b->widths.made || b->widths.gradient[value] == b->widths.made[value])
    sn__route_arrive(b, value, tensor, part);
  else
    b->casts[b->n_casts++] = (sn__cast){value, tensor};
}

/* Autocast casts the last operand first (its C++, as gcc compiles it), so that the first is cast back first. */
void sn__route_cast_back(sn__route_maker *b, uint32_t index) {
  if (!b->widths.made) return;
  for (uint32_t i = 0; i < b->n_casts; i++) {
    uint32_t value = b->casts[i].value;
    const sn_value *v = &b->net->values[value];
    begin_cast(b, index, b->casts[i].from);
    uint32_t to =
        sn__route_add_tensor(b, index, v->consumer_input, SN_GRADIENT, sn_width_bytes(v, b->widths.made[value]));
    sn__route_access(b, to, SN_WRITE);
    sn__route_end_step(b);
    sn__route_arrive(b, value, to, (sn_part){b->net->layers[v->producer].out.c, SN_NONE});
    sn__route_add_meetings(b);
  }
  b->n_casts = 0;
  cast_parameter_gradients(b, index);
}

void sn__route_dequantize(sn__route_maker *b, uint32_t index) {
  uint64_t bytes = sn_precision_dequantized_bytes(b->iteration.precision, &b->net->layers[index]);
  if (bytes == 0 || !b->route->dialect->eager) return;
  sn__route_access(b, sn__route_add_tensor(b, index, 0, SN_SCRATCH, bytes), SN_WRITE);
}

/* A composed RMS_NORM that works in four bytes between values of two: its simple operations have five tensors of four at
 * their fullest moment, of which dy and what it made of its input, both of two, stand for one; what arrived at its input
 * from elsewhere is added behind the cast. */
static bool widens(const sn__route_maker *b, uint32_t index) {
  uint32_t value = sn__route_input(b, &b->net->layers[index], 0);
  return b->widths.made && sn__route_rule(b, index)->saves == SN_SAVES_RMS &&
         b->widths.gradient[value] != b->widths.made[value];
}

/* Whether others read what it reads: of a composed RMS_NORM the gradient that came from there is added to what its
 * product has made before its square makes more, so that one tensor fewer is there at its fullest moment. */
static bool adds_up_early(const sn__route_maker *b, uint32_t index) {
  const sn_layer *layer = &b->net->layers[index];
  uint32_t producer = b->net->values[sn__route_input(b, layer, 0)].producer;
  return sn__route_rule(b, index)->saves == SN_SAVES_RMS && b->net->layers[producer].op == SN_FORK;
}

/* Flash attention makes its output as queries lie, so that none is copied to be turned. */
static bool needs_no_copy(const sn__route_maker *b, const sn_layer *layer) {
  return layer->op == SN_FC && layer->attr->turned && b->widths.made && b->widths.made[layer->first_output] == 2;
}

/* In four bytes PyTorch's efficient kernel for a GPU takes heads of whole 16 bytes; of others attention is in parts. In
 * two bytes flash attention pads them. */
static bool has_odd_heads(const sn__route_maker *b, const sn_layer *layer) {
  enum { ALIGNED = 4 };
  if (!b->route->dialect->eager || layer->op != SN_ATTENTION || layer->attr->parts || layer->attr->seedless)
    return false;
  const uint8_t width = b->widths.made ? b->widths.made[layer->first_output] : 4;
  return width == 4 && layer->out.c / layer->attr->heads % ALIGNED != 0;
}

static const sn_op_rule *find_rule(const sn__route_maker *b, const sn_layer *layer) {
  const sn_dialect *dialect = b->route->dialect;
  if (sn_widths_casts_loss(&b->widths, b->net, layer)) return &dialect->rules[SN_FORM_CAST_LOSS];
  if (needs_no_copy(b, layer)) return &dialect->rules[SN_FC];
  if (has_odd_heads(b, layer)) return &dialect->rules[layer->attr->ratio > 0 ? SN_FORM_DROPPED_PARTS : SN_FORM_PARTS];
  return sn_dialect_rule(dialect, b->net, layer);
}

void sn__route_find_rules(sn__route_maker *b) {
  for (uint32_t i = 0; i < b->net->n_layers; i++)
    b->rules[i] = (uint16_t)(find_rule(b, &b->net->layers[i]) - b->route->dialect->rules);
}

/* Backward's fullest moment has two tensors of scores, and no longer dy and values, nor yet gradients of queries and keys. */
static void make_scores(sn__route_maker *b, uint32_t index) {
  const sn_layer *layer = &b->net->layers[index];
  const uint64_t scores = sn_attention_scores(layer) * sizeof(float),
                 output = b->net->values[layer->first_output].bytes;
  if (scores > 2 * output)
    sn__route_access(b, sn__route_add_tensor(b, index, 0, SN_SCRATCH, 2 * (scores - 2 * output)), SN_WRITE);
}

void sn__route_make_scratch(sn__route_maker *b, uint32_t index) {
  if (has_odd_heads(b, &b->net->layers[index])) make_scores(b, index);
  const sn_op_rule *rule = sn__route_rule(b, index);
  uint64_t bytes = sn_widths_scratch_bytes(&b->widths, b->net, index);
  uint32_t count = widens(b, index) ? rule->scratch + 1 : rule->scratch - adds_up_early(b, index);
  bool product = b->net->layers[index].op == SN_SCALE; /* of dy and x, to be summed for the parameters */
  if (product && !sn__route_trains(b, index)) return;
  for (uint32_t i = 0; i < count; i++)
    sn__route_access(b, sn__route_add_tensor(b, index, i, SN_SCRATCH, bytes), SN_WRITE);
}
