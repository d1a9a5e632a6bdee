/* CPU kernels of CONV and DECONV: oneDNN's convolution, weights as (outputs, inputs, height, width), with the groups in
 * front where there are any; backward is one primitive by data and one by weights and bias. On plain layouts it unfolds
 * the image and multiplies matrices (im2col); sums over the batch are in an order that the number of threads gives.
 * Biases of a DECONV are added and summed by loops of ours. */
#include "exec/cpu/cpu.h"

/* Without bias `b` is a descriptor of no dimensions, as oneDNN wants it. */
typedef struct shapes {
  dnnl_memory_desc_t x, w, b, y;
} shapes;

/* Of the convolution that makes `out` of `in`. */
static sn_status describe(shapes *t, const sn_attr *a, sn_shape in, sn_shape out, bool bias, sn_err *err) {
  const dnnl_dim_t groups = a->groups, inputs = in.c / a->groups;
  const dnnl_dims_t whole = {out.c, inputs, a->kernel_h, a->kernel_w};
  const dnnl_dims_t parts = {groups, out.c / groups, inputs, a->kernel_h, a->kernel_w};
  if (sn__dnnl_nchw(&t->x, in, err) || sn__dnnl_nchw(&t->y, out, err) ||
      (groups == 1 ? sn__dnnl_tensor(&t->w, 4, whole, err) : sn__dnnl_tensor(&t->w, 5, parts, err)))
    return err->code;
  return bias ? sn__dnnl_tensor(&t->b, 1, (const dnnl_dims_t){out.c}, err) : SN_OK;
}

typedef struct descriptors {
  dnnl_convolution_desc_t forward, backward, weights;
} descriptors;

static sn_status make_descriptors(descriptors *d, const shapes *t, const sn_attr *a, sn_err *err) {
  const dnnl_dims_t stride = {a->stride_h, a->stride_w}, pad = {a->pad_h, a->pad_w};
  const dnnl_alg_kind_t direct = dnnl_convolution_direct;
  dnnl_status_t status = dnnl_convolution_forward_desc_init(&d->forward, dnnl_forward_training, direct, &t->x, &t->w,
                                                            &t->b, &t->y, stride, pad, pad);
  if (status == dnnl_success)
    status = dnnl_convolution_backward_data_desc_init(&d->backward, direct, &t->x, &t->w, &t->y, stride, pad, pad);
  if (status == dnnl_success)
    status =
        dnnl_convolution_backward_weights_desc_init(&d->weights, direct, &t->x, &t->w, &t->b, &t->y, stride, pad, pad);
  return sn__dnnl_check(status, "describe a convolution", err);
}

/* The three primitives of a convolution. Bias is the last argument where there is one. */
static sn_status make(sn__cpu *k, const descriptors *d, bool bias, sn__primitive *forward, sn__primitive *backward,
                      sn__primitive *weights, sn_err *err) {
  static const int forward_args[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_BIAS};
  static const int backward_args[] = {DNNL_ARG_DIFF_DST, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_SRC};
  static const int weights_args[] = {DNNL_ARG_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_BIAS};
  if (sn__primitive_new(k, &d->forward, NULL, forward_args, bias ? 4 : 3, forward, err) ||
      sn__primitive_new(k, &d->backward, forward, backward_args, 3, backward, err))
    return err->code;
  return sn__primitive_new(k, &d->weights, forward, weights_args, bias ? 4 : 3, weights, err);
}

sn_status sn__cpu_conv_make(sn__cpu *k, uint32_t index, sn_err *err) {
  const sn_layer *layer = &k->net->layers[index];
  sn__cpu_layer *made = &k->layers[index];
  bool bias = layer->attr.bias;
  descriptors d;
  shapes t = {0};
  if (describe(&t, &layer->attr, sn_layer_input_shape(k->net, layer, 0), layer->out, bias, err) ||
      make_descriptors(&d, &t, &layer->attr, err))
    return err->code;
  return make(k, &d, bias, &made->forward, &made->backward, &made->weights, err);
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
  bool makes_dx = call->part != SN_STEP_FILTER && call->dx[0];
  if (makes_dx && sn__primitive_run(k, &k->layers[call->layer].backward, data, call, err)) return err->code;
  if (call->part == SN_STEP_DATA) return SN_OK;
  return sn__primitive_run(k, &k->layers[call->layer].weights, weights, call, err);
}

/* DECONV: of the convolution from its output to its input, backward by data is its forward. */
sn_status sn__cpu_deconv_make(sn__cpu *k, uint32_t index, sn_err *err) {
  const sn_layer *layer = &k->net->layers[index];
  sn__cpu_layer *made = &k->layers[index];
  descriptors d;
  shapes t = {0};
  if (describe(&t, &layer->attr, layer->out, sn_layer_input_shape(k->net, layer, 0), false, err) ||
      make_descriptors(&d, &t, &layer->attr, err))
    return err->code;
  return make(k, &d, false, &made->backward, &made->forward, &made->weights, err);
}

static void add_biases(const sn_call *call) {
  const sn_layer *layer = sn__call_layer(call);
  const float *biases = call->parameters + sn__weights(layer);
  uint64_t planes = (uint64_t)layer->out.n * layer->out.c, plane = sn__plane(layer->out);
#pragma omp parallel for schedule(static) if (planes * plane >= SN__WORTH_THREADS)
  for (uint64_t p = 0; p < planes; p++) {
    float *y = call->y[0] + p * plane, bias = biases[p % layer->out.c];
#pragma omp simd
    for (uint64_t i = 0; i < plane; i++) y[i] += bias;
  }
}

sn_status sn__cpu_deconv_forward(sn__cpu *k, const sn_call *call, sn_err *err) {
  float *const tensors[] = {call->x[0], call->parameters, call->y[0]};
  if (sn__primitive_run(k, &k->layers[call->layer].forward, tensors, call, err)) return err->code;
  if (sn__call_layer(call)->attr.bias) add_biases(call);
  return SN_OK;
}

/* One thread sums all of a channel, so that sums do not depend on the threads. */
static void bias_gradient(const sn_call *call, float *gradients) {
  sn_shape out = sn__call_layer(call)->out;
  uint64_t plane = sn__plane(out);
#pragma omp parallel for schedule(static) if (sn__count(out) >= SN__WORTH_THREADS)
  for (uint32_t c = 0; c < out.c; c++) {
    double sum = 0;
    for (uint64_t n = 0; n < out.n; n++) {
      const float *dy = call->dy[0] + (n * out.c + c) * plane;
      for (uint64_t i = 0; i < plane; i++) sum += dy[i];
    }
    gradients[c] = (float)sum;
  }
}

sn_status sn__cpu_deconv_backward(sn__cpu *k, const sn_call *call, sn_err *err) {
  const sn_layer *layer = sn__call_layer(call);
  float *const data[] = {call->dy[0], call->parameters, call->dx[0]};
  float *const weights[] = {call->dy[0], call->x[0], call->gradients};
  bool makes_dx = call->part != SN_STEP_FILTER && call->dx[0];
  if (makes_dx && sn__primitive_run(k, &k->layers[call->layer].backward, data, call, err)) return err->code;
  if (call->part == SN_STEP_DATA) return SN_OK;
  if (sn__primitive_run(k, &k->layers[call->layer].weights, weights, call, err)) return err->code;
  if (layer->attr.bias) bias_gradient(call, call->gradients + sn__weights(layer));
  return SN_OK;
}
