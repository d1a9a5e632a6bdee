/* Reference kernels: which function computes which operator, and the update; see exec/reference.h. The operators are in
 * reference_linear.c (CONV, FC), reference_norm.c (LRN, BN, SOFTMAX) and reference_shape.c (all others). */
#include "exec/reference.h"

#include "exec/reference_internal.h"

#include <assert.h>
#include <stddef.h>

/* SGD with momentum and weight decay, on every parameter, biases included:
 *   v = momentum v + g + decay w;  w = w - rate v */
static void update(const sn_call *call) {
  const sn_hyper *h = call->hyper;
  uint64_t count = sn__call_layer(call)->parameters;
  for (uint64_t i = 0; i < count; i++) {
    double w = call->parameters[i];
    double v = (double)h->momentum * call->momentum[i] + call->gradients[i] + (double)h->weight_decay * w;
    call->momentum[i] = (float)v;
    call->parameters[i] = (float)(w - (double)h->learning_rate * v);
  }
}

/* DATA is not a step; LRN's backward is the only one that can fail. */
static const struct {
  void (*forward)(const sn_call *call);
  void (*backward)(const sn_call *call);
} kernels[SN_OP_COUNT] = {
    [SN_CONV] = {sn__reference_conv_forward, sn__reference_conv_backward},
    [SN_FC] = {sn__reference_fc_forward, sn__reference_fc_backward},
    [SN_POOL] = {sn__reference_pool_forward, sn__reference_pool_backward},
    [SN_ACT] = {sn__reference_act_forward, sn__reference_act_backward},
    [SN_LRN] = {sn__reference_lrn_forward, NULL},
    [SN_BN] = {sn__reference_bn_forward, sn__reference_bn_backward},
    [SN_DROPOUT] = {sn__reference_dropout_forward, sn__reference_dropout_backward},
    [SN_SOFTMAX] = {sn__reference_softmax_forward, sn__reference_softmax_backward},
    [SN_JOIN] = {sn__reference_join_forward, sn__reference_join_backward},
    [SN_FORK] = {sn__reference_fork_forward, sn__reference_fork_backward},
    [SN_CONCAT] = {sn__reference_concat_forward, sn__reference_concat_backward},
};

sn_status sn_reference_run(const sn_call *call, sn_err *err) {
  sn_op op = sn__call_layer(call)->op;
  assert(op != SN_DATA);
  if (op == SN_LRN && call->pass == SN_BACKWARD) return sn__reference_lrn_backward(call, err);
  if (call->pass == SN_UPDATE)
    update(call);
  else if (call->pass == SN_FORWARD)
    kernels[op].forward(call);
  else
    kernels[op].backward(call);
  return SN_OK;
}
