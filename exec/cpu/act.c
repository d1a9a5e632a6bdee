/* CPU kernels of ACT, by oneDNN where it has the mode. Backward takes the derivative from y where that tells it: of a
 * ReLU, leaky or not, only the sign of x matters, which y has too, and those of tanh and sigmoid are 1 - y y and y (1 -
 * y). All curved modes take it from x. ELU, hardsigmoid, times, exp, sin and cos are loops of ours, PReLU is in prelu.c:
 * ELU's derivative is y + 1 below 0, whether the dialect has backward read y or x, from which y is then made again, so
 * that all dialects have the same bits; so is exp's, which is y. */
#include "exec/cpu/cpu.h"

#include <assert.h>
#include <math.h>

/* Of relu6 the gradient is 0 at both bends. */
static const dnnl_alg_kind_t kinds[SN_ACT_MODES] = {[SN_ACT_RELU] = dnnl_eltwise_relu,
                                                    [SN_ACT_RELU6] = dnnl_eltwise_clip_v2,
                                                    [SN_ACT_LEAKY] = dnnl_eltwise_relu,
                                                    [SN_ACT_TANH] = dnnl_eltwise_tanh_use_dst_for_bwd,
                                                    [SN_ACT_SIGMOID] = dnnl_eltwise_logistic_use_dst_for_bwd,
                                                    [SN_ACT_GELU] = dnnl_eltwise_gelu_erf,
                                                    [SN_ACT_SILU] = dnnl_eltwise_swish,
                                                    [SN_ACT_HARDSWISH] = dnnl_eltwise_hardswish,
                                                    [SN_ACT_SOFTPLUS] = dnnl_eltwise_soft_relu,
                                                    [SN_ACT_MISH] = dnnl_eltwise_mish,
                                                    [SN_ACT_GELU_NEW] = dnnl_eltwise_gelu_tanh};

static bool is_loop(sn_act_mode mode) {
  return mode == SN_ACT_ELU || mode == SN_ACT_HARDSIGMOID || (mode >= SN_ACT_TIMES && mode <= SN_ACT_COS);
}

/* Whether backward can take x in place of y, and whether it must. */
static bool takes_either(sn_act_mode mode) {
  return mode != SN_ACT_TANH && mode != SN_ACT_SIGMOID;
}
static bool takes_x(sn_act_mode mode) {
  return mode > SN_ACT_ELU && mode != SN_ACT_TIMES && mode != SN_ACT_EXP;
}

static float of_loop(const sn_attr *a, float x) {
  if (a->act == SN_ACT_TIMES) return (float)a->slope * x;
  if (a->act == SN_ACT_ELU) return x > 0 ? x : expm1f(x);
  if (a->act == SN_ACT_EXP) return expf(x);
  if (a->act == SN_ACT_SIN) return sinf(x);
  if (a->act == SN_ACT_COS) return cosf(x);
  return fminf(fmaxf(x + 3, 0), 6) / 6;
}

static float derivative_of_loop(const sn_attr *a, const sn_call *call, uint64_t i) {
  if (a->act == SN_ACT_TIMES) return (float)a->slope;
  if (a->act == SN_ACT_HARDSIGMOID) return call->x[0][i] > -3 && call->x[0][i] < 3 ? 1.0f / 6 : 0;
  if (a->act == SN_ACT_SIN) return cosf(call->x[0][i]);
  if (a->act == SN_ACT_COS) return -sinf(call->x[0][i]);
  const float y = call->y[0] ? call->y[0][i] : of_loop(a, call->x[0][i]);
  if (a->act == SN_ACT_EXP) return y;
  return y > 0 ? 1 : y + 1;
}

static void loop_forward(const sn_call *call, const sn_attr *a) {
  const uint64_t count = sn__count(sn__call_layer(call)->out);
#pragma omp parallel for schedule(static) if (count >= SN__WORTH_THREADS)
  for (uint64_t i = 0; i < count; i++) call->y[0][i] = of_loop(a, call->x[0][i]);
}

static void loop_backward(const sn_call *call, const sn_attr *a) {
  const uint64_t count = sn__count(sn__call_layer(call)->out);
#pragma omp parallel for schedule(static) if (count >= SN__WORTH_THREADS)
  for (uint64_t i = 0; i < count; i++) call->dx[0][i] = call->dy[0][i] * derivative_of_loop(a, call, i);
}

static float alpha_of(const sn_attr *a) {
  return a->act == SN_ACT_LEAKY ? (float)a->slope : a->act == SN_ACT_SILU ? 1 : 0;
}

sn_status sn__cpu_act_make(sn__cpu *k, uint32_t index, sn_err *err) {
  static const int forward_args[] = {DNNL_ARG_SRC, DNNL_ARG_DST};
  const sn_attr *a = k->net->layers[index].attr;
  if (is_loop(a->act) || a->act == SN_ACT_PRELU) return SN_OK;
  const int backward_args[] = {takes_either(a->act) ? DNNL_ARG_SRC : DNNL_ARG_DST, DNNL_ARG_DIFF_DST,
                               DNNL_ARG_DIFF_SRC};
  sn__cpu_layer *made = &k->layers[index];
  const float alpha = alpha_of(a), beta = a->act == SN_ACT_RELU6 ? 6 : 0;
  dnnl_eltwise_desc_t forward, backward;
  dnnl_memory_desc_t x;
  if (sn__dnnl_image(&x, k->net->layers[index].out, 0, 1, err)) return err->code;
  dnnl_status_t status =
      dnnl_eltwise_forward_desc_init(&forward, dnnl_forward_training, kinds[a->act], &x, alpha, beta);
  if (status == dnnl_success) status = dnnl_eltwise_backward_desc_init(&backward, kinds[a->act], &x, &x, alpha, beta);
  if (sn__dnnl_check(status, "describe an activation", err) ||
      sn__primitive_new(k, &forward, NULL, forward_args, NULL, 2, &made->forward, err))
    return err->code;
  return sn__primitive_new(k, &backward, &made->forward, backward_args, NULL, 3, &made->backward, err);
}

sn_status sn__cpu_act_forward(sn__cpu *k, const sn_call *call, sn_err *err) {
  const sn_act_mode mode = sn__call_layer(call)->attr->act;
  float *const tensors[] = {call->x[0], call->y[0]};
  if (mode == SN_ACT_PRELU) {
    sn__cpu_prelu_forward(call, sn__output_layout(k, call->layer));
    return SN_OK;
  }
  if (!is_loop(mode)) return sn__primitive_run(k, &k->layers[call->layer].forward, tensors, call, err);
  loop_forward(call, sn__call_layer(call)->attr);
  return SN_OK;
}

sn_status sn__cpu_act_backward(sn__cpu *k, const sn_call *call, sn_err *err) {
  const sn_act_mode mode = sn__call_layer(call)->attr->act;
  if (mode == SN_ACT_PRELU) {
    sn__cpu_prelu_backward(call, sn__output_layout(k, call->layer));
    return SN_OK;
  }
  assert((call->y[0] || takes_either(mode)) && (call->x[0] || !takes_x(mode)));
  float *const tensors[] = {call->y[0] && !takes_x(mode) ? call->y[0] : call->x[0], call->dy[0], call->dx[0]};
  if (!is_loop(mode)) return sn__primitive_run(k, &k->layers[call->layer].backward, tensors, call, err);
  loop_backward(call, sn__call_layer(call)->attr);
  return SN_OK;
}
