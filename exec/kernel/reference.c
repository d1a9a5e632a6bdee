/* Reference kernels: which function computes which operator, and the update; see exec/kernel/reference.h. The operators
 * are in reference_linear.c (CONV, DECONV, FC), reference_norm.c (LRN, BN, SOFTMAX), reference_act.c,
 * reference_product.c (MUL, SCALE), reference_sequence.c (what is done at each position),
 * reference_tokens.c (what makes sequences, ROTARY), reference_attention.c, reference_group.c (GROUP_NORM),
 * reference_matrix.c (MATMUL, PROBABILITIES), reference_resize.c (and PAD), reference_arrange.c
 * (RESHAPE, TRANSPOSE, SLICE) and reference_shape.c (all others). */
#include "exec/kernel/reference.h"

#include "exec/kernel/reference_internal.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>

/* Of one parameter; sim/graph/optimizer.h has the formulas. Weight decay is on every parameter, biases included. */
static double new_momentum(const sn_call *call, uint64_t i) {
  const sn_hyper *h = call->hyper;
  double w = call->parameters[i];
  double v = (double)h->momentum * call->states[0][i] + call->gradients[i] + (double)h->weight_decay * w;
  call->states[0][i] = (float)v;
  return w - (double)h->learning_rate * v;
}

static double new_sgd(const sn_call *call, uint64_t i) {
  const sn_hyper *h = call->hyper;
  double w = call->parameters[i];
  return w - (double)h->learning_rate * (call->gradients[i] + (double)h->weight_decay * w);
}

static double new_adam(const sn_call *call, uint64_t i) {
  const sn_hyper *h = call->hyper;
  double t = (double)call->iteration + 1, g = call->gradients[i], w = call->parameters[i];
  if (sn_optimizer_kind(h->optimizer) == SN_OPTIMIZER_ADAM)
    g += (double)h->weight_decay * w;
  else
    w -= (double)h->learning_rate * (double)h->weight_decay * w;
  double m = SN_ADAM_BETA1 * call->states[0][i] + (1 - SN_ADAM_BETA1) * g;
  double s = SN_ADAM_BETA2 * call->states[1][i] + (1 - SN_ADAM_BETA2) * g * g;
  call->states[0][i] = (float)m;
  call->states[1][i] = (float)s;
  double mean = m / (1 - pow(SN_ADAM_BETA1, t)), square = s / (1 - pow(SN_ADAM_BETA2, t));
  return w - (double)h->learning_rate * mean / (sqrt(square) + SN_ADAM_EPSILON);
}

static void update(const sn_call *call) {
  static double (*const rules[SN_OPTIMIZER_KINDS])(const sn_call *call,
                                                   uint64_t i) = {[SN_OPTIMIZER_MOMENTUM] = new_momentum,
                                                                  [SN_OPTIMIZER_SGD] = new_sgd,
                                                                  [SN_OPTIMIZER_ADAM] = new_adam,
                                                                  [SN_OPTIMIZER_ADAMW] = new_adam};
  uint64_t count = sn__call_layer(call)->parameters;
  for (uint64_t i = 0; i < count; i++)
    call->parameters[i] = (float)rules[sn_optimizer_kind(call->hyper->optimizer)](call, i);
}

/* DATA is not a step. What needs memory of its own can fail: a backward, or with no forward here both. */
typedef struct kernel {
  void (*forward)(const sn_call *call);
  void (*backward)(const sn_call *call);
  sn_status (*that_fails)(const sn_call *call, sn_err *err);
} kernel;

static const kernel kernels[SN_OP_COUNT] = {
    [SN_CONV] = {sn__reference_conv_forward, sn__reference_conv_backward, NULL},
    [SN_DECONV] = {sn__reference_deconv_forward, sn__reference_deconv_backward, NULL},
    [SN_FC] = {sn__reference_fc_forward, sn__reference_fc_backward, NULL},
    [SN_POOL] = {sn__reference_pool_forward, sn__reference_pool_backward, NULL},
    [SN_ACT] = {sn__reference_act_forward, sn__reference_act_backward, NULL},
    [SN_LRN] = {sn__reference_lrn_forward, NULL, sn__reference_lrn_backward},
    [SN_BN] = {sn__reference_bn_forward, sn__reference_bn_backward, NULL},
    [SN_DROPOUT] = {sn__reference_dropout_forward, sn__reference_dropout_backward, NULL},
    [SN_SOFTMAX] = {sn__reference_softmax_forward, sn__reference_softmax_backward, NULL},
    [SN_JOIN] = {sn__reference_join_forward, sn__reference_join_backward, NULL},
    [SN_FORK] = {sn__reference_fork_forward, sn__reference_fork_backward, NULL},
    [SN_CONCAT] = {sn__reference_concat_forward, sn__reference_concat_backward, NULL},
    [SN_MUL] = {sn__reference_mul_forward, sn__reference_mul_backward, NULL},
    [SN_SCALE] = {sn__reference_scale_forward, sn__reference_scale_backward, NULL},
    [SN_EMBEDDING] = {sn__reference_embedding_forward, sn__reference_embedding_backward, NULL},
    [SN_POSITION] = {sn__reference_position_forward, sn__reference_position_backward, NULL},
    [SN_TOKEN] = {sn__reference_token_forward, sn__reference_token_backward, NULL},
    [SN_TAKE] = {sn__reference_take_forward, sn__reference_take_backward, NULL},
    [SN_ROTARY] = {sn__reference_rotary_forward, sn__reference_rotary_backward, NULL},
    [SN_ATTENTION] = {NULL, NULL, sn__reference_attention},
    [SN_RESHAPE] = {sn__reference_arrange_forward, sn__reference_arrange_backward, NULL},
    [SN_TRANSPOSE] = {sn__reference_arrange_forward, sn__reference_arrange_backward, NULL},
    [SN_SLICE] = {sn__reference_arrange_forward, sn__reference_arrange_backward, NULL},
    [SN_PAD] = {sn__reference_pad_forward, sn__reference_pad_backward, NULL},
    [SN_RESIZE] = {sn__reference_resize_forward, NULL, sn__reference_resize_backward},
    [SN_MATMUL] = {sn__reference_matmul_forward, sn__reference_matmul_backward, NULL},
    [SN_PROBABILITIES] = {sn__reference_probabilities_forward, sn__reference_probabilities_backward, NULL},
    [SN_GROUP_NORM] = {sn__reference_group_norm_forward, NULL, sn__reference_group_norm_backward},
    [SN_LAYER_NORM] = {sn__reference_row_norm_forward, NULL, sn__reference_row_norm_backward},
    [SN_RMS_NORM] = {sn__reference_row_norm_forward, NULL, sn__reference_row_norm_backward},
};

static const kernel of_positions = {sn__reference_fc_positions_forward, sn__reference_fc_positions_backward, NULL};

sn_status sn_reference_run(const sn_call *call, sn_err *err) {
  const sn_layer *layer = sn__call_layer(call);
  const kernel *k = layer->op == SN_FC && layer->attr->positions ? &of_positions : &kernels[layer->op];
  assert(layer->op != SN_DATA);
  if (k->that_fails && call->pass != SN_UPDATE && (call->pass == SN_BACKWARD || !k->forward))
    return k->that_fails(call, err);
  if (call->pass == SN_UPDATE)
    update(call);
  else if (call->pass == SN_FORWARD)
    k->forward(call);
  else
    k->backward(call);
  return SN_OK;
}
