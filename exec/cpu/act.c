/* CPU kernels of ACT, all by oneDNN. Backward takes the derivative from y: of a ReLU, leaky or not, only the sign of x
 * matters, which y has too, and those of tanh and sigmoid are 1 - y y and y (1 - y). */
#include "exec/cpu/cpu.h"

#include <assert.h>

/* Of relu6 the gradient is 0 at both bends. */
static const dnnl_alg_kind_t kinds[SN_ACT_MODES] = {[SN_ACT_RELU] = dnnl_eltwise_relu,
                                                    [SN_ACT_RELU6] = dnnl_eltwise_clip_v2,
                                                    [SN_ACT_LEAKY] = dnnl_eltwise_relu,
                                                    [SN_ACT_TANH] = dnnl_eltwise_tanh_use_dst_for_bwd,
                                                    [SN_ACT_SIGMOID] = dnnl_eltwise_logistic_use_dst_for_bwd};

/* Whether backward can take x in place of y. */
static bool takes_either(sn_act_mode mode) {
  return mode != SN_ACT_TANH && mode != SN_ACT_SIGMOID;
}

sn_status sn__cpu_act_make(sn__cpu *k, uint32_t index, sn_err *err) {
  static const int forward_args[] = {DNNL_ARG_SRC, DNNL_ARG_DST};
  const sn_attr *a = &k->net->layers[index].attr;
  const int backward_args[] = {takes_either(a->act) ? DNNL_ARG_SRC : DNNL_ARG_DST, DNNL_ARG_DIFF_DST,
                               DNNL_ARG_DIFF_SRC};
  sn__cpu_layer *made = &k->layers[index];
  const float alpha = a->act == SN_ACT_LEAKY ? (float)a->slope : 0, beta = a->act == SN_ACT_RELU6 ? 6 : 0;
  dnnl_eltwise_desc_t forward, backward;
  dnnl_memory_desc_t x;
  if (sn__dnnl_image(&x, k->net->layers[index].out, 1, err)) return err->code;
  dnnl_status_t status =
      dnnl_eltwise_forward_desc_init(&forward, dnnl_forward_training, kinds[a->act], &x, alpha, beta);
  if (status == dnnl_success) status = dnnl_eltwise_backward_desc_init(&backward, kinds[a->act], &x, &x, alpha, beta);
  if (sn__dnnl_check(status, "describe an activation", err) ||
      sn__primitive_new(k, &forward, NULL, forward_args, NULL, 2, &made->forward, err))
    return err->code;
  return sn__primitive_new(k, &backward, &made->forward, backward_args, NULL, 3, &made->backward, err);
}

sn_status sn__cpu_act_forward(sn__cpu *k, const sn_call *call, sn_err *err) {
  float *const tensors[] = {call->x[0], call->y[0]};
  return sn__primitive_run(k, &k->layers[call->layer].forward, tensors, call, err);
}

sn_status sn__cpu_act_backward(sn__cpu *k, const sn_call *call, sn_err *err) {
  assert(call->y[0] || takes_either(sn__call_layer(call)->attr.act));
  float *const tensors[] = {call->y[0] ? call->y[0] : call->x[0], call->dy[0], call->dx[0]};
  return sn__primitive_run(k, &k->layers[call->layer].backward, tensors, call, err);
}
