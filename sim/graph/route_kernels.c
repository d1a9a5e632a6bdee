/* Steps of dialects that are by_kernel (planning, part D): as SINGA's autograd calls them and its device buffers them.
 *
 *   forward    a CONV writes its workspace as well; an FC multiplies, and adds its bias in a step of its own
 *   backward   a stack of layers whose gradients are complete, the losses first; the layer on top makes its gradients,
 *              kernel by kernel, then what has met is added, then its inputs' makers may be complete
 *   update     four kernels behind the one that made the gradient */
#include "base/arena.h"
#include "base/checked.h"
#include "models/op/op.h"
#include "sim/graph/route_internal.h"

#include <stdlib.h>

/* ---- forward ---- */

void sn__route_split_product(sn__route_maker *b, uint32_t index) {
  const sn_layer *layer = &b->net->layers[index];
  if (!b->route->dialect->by_kernel || layer->op != SN_FC || !layer->attr->bias) return;
  uint64_t bytes = b->net->values[layer->first_output].bytes;
  uint32_t product = sn__route_add_tensor(b, index, SN_PRODUCT, SN_VALUE, bytes);
  sn__route_access(b, product, SN_WRITE);
  sn__route_end_step(b);
  sn__route_begin_step(b, index, SN_FORWARD, SN_ADD_ROW);
  sn__route_access(b, product, SN_READ);
}

void sn__route_make_workspace(sn__route_maker *b, uint32_t index) {
  if (!b->workspace || !sn_op_of(&b->net->layers[index])->convolves || b->workspace[index] == 0) return;
  b->scratch[index] = sn__route_add_tensor(b, index, 0, SN_SCRATCH, b->workspace[index]);
  sn__route_access(b, b->scratch[index], SN_WRITE);
}

/* ---- backward ---- */

static void update(sn__route_maker *b, uint32_t index, uint32_t parameter) {
  if (b->weight_gradient[index] == SN_NONE) return; /* another layer's weights */
  uint32_t gradient = b->weight_gradient[index] + parameter;
  for (sn_kernel kernel = SN_DECAY_WEIGHT; kernel <= SN_ADD_TO_PARAMETER; kernel++) {
    sn__route_begin_step(b, index, SN_UPDATE, kernel);
    b->steps[b->route->n_steps - 1].parameter = parameter;
    if (kernel == SN_DECAY_WEIGHT) sn__route_access(b, gradient, SN_MODIFY);
    if (kernel == SN_ADD_GRADIENT) sn__route_access(b, gradient, SN_READ);
    sn__route_end_step(b);
  }
}

static void begin(sn__route_maker *b, uint32_t index, sn_kernel kernel) {
  sn__route_begin_step(b, index, SN_BACKWARD, kernel);
  sn__route_access_operand(b, index, SN_DY);
}

/* What it has written in forward is of no use, but the bytes are the same. */
static void use_workspace(sn__route_maker *b, uint32_t index) {
  sn__route_access(b, b->scratch[index], SN_MODIFY);
}

static void bias_gradient(sn__route_maker *b, uint32_t index) {
  if (!b->net->layers[index].attr->bias) return;
  begin(b, index, SN_BIAS_GRADIENT);
  sn__route_access(b, b->weight_gradient[index] + 1, SN_WRITE);
  sn__route_end_step(b);
  update(b, index, 1);
}

static void data_and_filter(sn__route_maker *b, uint32_t index) {
  begin(b, index, SN_DATA_GRADIENT);
  use_workspace(b, index);
  sn__route_new_gradients(b, index, 0);
  sn__route_end_step(b);
  b->backward_step[index] = b->route->n_steps;
  begin(b, index, SN_FILTER_GRADIENT);
  sn__route_access_operand(b, index, SN_X);
  use_workspace(b, index);
  sn__route_access(b, b->weight_gradient[index], SN_WRITE);
  sn__route_end_step(b);
  update(b, index, 0);
}

static void whole(sn__route_maker *b, uint32_t index) {
  const sn_op_rule *rule = sn__route_rule(b, index);
  uint64_t bytes[SN_PARAMETER_TENSORS];
  uint32_t parameters = sn_parameter_tensors(&b->net->layers[index], bytes);
  b->backward_step[index] = b->route->n_steps;
  sn__route_begin_step(b, index, SN_BACKWARD, SN_WHOLE);
  for (int i = 0; i < SN_MOST_OPERANDS && rule->reads[i] != SN_NOTHING; i++)
    sn__route_access_operand(b, index, rule->reads[i]);
  sn__route_new_gradients(b, index, 0);
  for (uint32_t i = 0; i < parameters; i++) sn__route_access(b, b->weight_gradient[index] + i, SN_WRITE);
  sn__route_end_step(b);
  for (uint32_t i = 0; i < parameters; i++) update(b, index, i);
}

static void add_backward(sn__route_maker *b, uint32_t index) {
  sn_op op = b->net->layers[index].op;
  sn__route_add_parameter_gradients(b, index);
  if (sn__route_rule(b, index)->gradient == SN_GRAD_HAND_ON) {
    sn__route_hand_on(b, index);
  } else if (op == SN_FC) {
    bias_gradient(b, index);
    data_and_filter(b, index);
  } else if (sn_op_table[op]->convolves) {
    data_and_filter(b, index);
    bias_gradient(b, index);
  } else {
    whole(b, index);
  }
  sn__route_leave(b, index);
}

/* ---- the stack ---- */

/* Per layer: how many gradients with respect to what it makes are to come. */
static void count_readers(const sn__route_maker *b, uint32_t *waits_for) {
  const sn_net *net = b->net;
  for (uint32_t i = 1; i < net->n_layers; i++) {
    const sn_layer *layer = &net->layers[i];
    for (uint32_t n = 0; n < layer->n_inputs && layer->op != SN_FORK; n++) waits_for[sn_layer_source(net, layer, n)]++;
  }
}

static void run_stack(sn__route_maker *b, uint32_t *waits_for, uint32_t *stack) {
  const sn_net *net = b->net;
  uint32_t depth = 0;
  count_readers(b, waits_for);
  for (uint32_t i = 0; i + 1 < net->n_layers; i++)
    if (waits_for[b->order[i]] == 0 && sn__route_has_backward(b, b->order[i])) stack[depth++] = b->order[i];
  while (depth > 0) {
    uint32_t index = stack[--depth];
    const sn_layer *layer = &net->layers[index];
    add_backward(b, index);
    for (uint32_t n = 0; n < layer->n_inputs; n++) {
      uint32_t maker = sn_layer_source(net, layer, n);
      if (--waits_for[maker] == 0 && maker != 0 && sn__route_has_backward(b, maker)) stack[depth++] = maker;
    }
  }
}

/* Whoever reads what a trained layer makes is trained as well, so that every one of them is reached. */
sn_status sn__route_backward_kernels(sn__route_maker *b, sn_err *err) {
  uint32_t *waits_for = calloc(b->net->n_layers, sizeof *waits_for);
  uint32_t *stack = calloc(b->net->n_layers, sizeof *stack);
  bool good = waits_for && stack;
  if (good) run_stack(b, waits_for, stack);
  free(waits_for);
  free(stack);
  return good ? SN_OK : sn_fail_memory(err);
}

/* ---- what the iteration before has left ---- */

static void find_carried(const sn_route *r, bool *carried) {
  for (uint32_t s = 0; s < r->n_steps; s++) {
    const sn_step *step = &r->steps[s];
    for (uint32_t i = 0; i < step->n_accesses && step->pass == SN_BACKWARD; i++) {
      uint32_t t = r->accesses[step->first_access + i].tensor;
      carried[t] |= r->tensors[t].role == SN_VALUE || r->tensors[t].role == SN_SAVED;
    }
  }
}

sn_status sn_route_carry(sn_route *route, sn_err *err) {
  uint32_t n = route->n_tensors;
  bool *carried = calloc((size_t)n + 1, sizeof *carried);
  sn_tensor *tensors = sn_arena_alloc(route->arena, (size_t)2 * n + 1, sizeof *tensors);
  bool good = carried && tensors;
  if (good) find_carried(route, carried);
  for (uint32_t t = 0; t < n && good; t++) {
    tensors[t] = route->tensors[t];
    if (!carried[t]) continue;
    tensors[route->n_tensors++] = (sn_tensor){tensors[t].layer, t, SN_CARRIED, tensors[t].bytes};
    good = sn_add(route->tensor_bytes, tensors[t].bytes, &route->tensor_bytes);
  }
  if (good) route->tensors = tensors;
  free(carried);
  return good ? SN_OK : sn_fail_memory(err);
}
