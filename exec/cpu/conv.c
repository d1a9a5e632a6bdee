/* CPU kernels of CONV: oneDNN's convolution, weights as (outputs, inputs, height, width), with the groups in front
 * where there are any; backward is one primitive by data and one by weights and bias. On plain layouts it unfolds the
 * image and multiplies matrices (im2col); sums over the batch are in an order that the number of threads gives. */
#include "exec/cpu/cpu.h"

/* Without bias `b` is a descriptor of no dimensions, as oneDNN wants it. */
typedef struct shapes {
  dnnl_memory_desc_t x, w, b, y;
} shapes;

static sn_status describe(shapes *t, const sn_layer *layer, sn_shape in, sn_err *err) {
  const sn_attr *a = &layer->attr;
  const dnnl_dim_t groups = a->groups, inputs = in.c / a->groups;
  const dnnl_dims_t whole = {a->channels, inputs, a->kernel_h, a->kernel_w};
  const dnnl_dims_t parts = {groups, a->channels / groups, inputs, a->kernel_h, a->kernel_w};
  if (sn__dnnl_nchw(&t->x, in, err) || sn__dnnl_nchw(&t->y, layer->out, err) ||
      (groups == 1 ? sn__dnnl_tensor(&t->w, 4, whole, err) : sn__dnnl_tensor(&t->w, 5, parts, err)))
    return err->code;
  return a->bias ? sn__dnnl_tensor(&t->b, 1, (const dnnl_dims_t){a->channels}, err) : SN_OK;
}

/* The three primitives, from their descriptors. Bias is the last argument where there is one. */
static sn_status make(sn__cpu *k, uint32_t index, const dnnl_convolution_desc_t *forward,
                      const dnnl_convolution_desc_t *backward, const dnnl_convolution_desc_t *weights, sn_err *err) {
  static const int forward_args[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_BIAS};
  static const int backward_args[] = {DNNL_ARG_DIFF_DST, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_SRC};
  static const int weights_args[] = {DNNL_ARG_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_BIAS};
  sn__cpu_layer *made = &k->layers[index];
  int n_args = k->net->layers[index].attr.bias ? 4 : 3;
  if (sn__primitive_new(k, forward, NULL, forward_args, n_args, &made->forward, err) ||
      sn__primitive_new(k, backward, &made->forward, backward_args, 3, &made->backward, err))
    return err->code;
  return sn__primitive_new(k, weights, &made->forward, weights_args, n_args, &made->weights, err);
}

sn_status sn__cpu_conv_make(sn__cpu *k, uint32_t index, sn_err *err) {
  const sn_layer *layer = &k->net->layers[index];
  const dnnl_dims_t stride = {layer->attr.stride_h, layer->attr.stride_w};
  const dnnl_dims_t pad = {layer->attr.pad_h, layer->attr.pad_w};
  const dnnl_alg_kind_t direct = dnnl_convolution_direct;
  dnnl_convolution_desc_t forward, backward, weights;
  shapes t = {0};
  if (describe(&t, layer, sn_layer_input_shape(k->net, layer, 0), err)) return err->code;
  dnnl_status_t status = dnnl_convolution_forward_desc_init(&forward, dnnl_forward_training, direct, &t.x, &t.w, &t.b,
                                                            &t.y, stride, pad, pad);
  if (status == dnnl_success)
    status = dnnl_convolution_backward_data_desc_init(&backward, direct, &t.x, &t.w, &t.y, stride, pad, pad);
  if (status == dnnl_success)
    status = dnnl_convolution_backward_weights_desc_init(&weights, direct, &t.x, &t.w, &t.b, &t.y, stride, pad, pad);
  if (sn__dnnl_check(status, "describe a convolution", err)) return err->code;
  return make(k, index, &forward, &backward, &weights, err);
}

sn_status sn__cpu_conv_forward(sn__cpu *k, const sn_call *call, sn_err *err) {
  float *w = call->parameters, *bias = w + sn__weights(sn__call_layer(call));
  float *const tensors[] = {call->x[0], w, call->y[0], bias};
  return sn__primitive_run(k, &k->layers[call->layer].forward, tensors, call, err);
}

sn_status sn__cpu_conv_backward(sn__cpu *k, const sn_call *call, sn_err *err) {
  float *dw = call->gradients, *bias = dw + sn__weights(sn__call_layer(call));
  float *const data[] = {call->dy[0], call->parameters, call->dx[0]};
  float *const weights[] = {call->x[0], call->dy[0], dw, bias};
  if (call->dx[0] && sn__primitive_run(k, &k->layers[call->layer].backward, data, call, err)) return err->code;
  return sn__primitive_run(k, &k->layers[call->layer].weights, weights, call, err);
}
