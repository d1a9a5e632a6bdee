/* CPU kernels of FC: three products of matrices. With n images, i inputs and o outputs, each row-major:
 *
 *   y (n, o) = x (n, i) * w (o, i)' + b      dx (n, i) = dy (n, o) * w (o, i)      dw (o, i) = dy (n, o)' * x (n, i)
 *
 * by oneDNN's matmul and not its inner product: for few images that is several times slower here and packs the weights
 * into memory of its own, outside our pool. Blocked images are reordered. The bias gradient is a loop of ours. An FC of
 * each position is a convolution (exec/cpu/conv.c). */
#include "exec/cpu/cpu.h"

#include <string.h>

/* A matrix; transposed: as it lies in memory it has `columns` rows. */
static sn_status describe(dnnl_memory_desc_t *desc, dnnl_dim_t rows, dnnl_dim_t columns, bool transposed, sn_err *err) {
  const dnnl_dims_t dims = {rows, columns}, strides = {transposed ? 1 : columns, transposed ? rows : 1};
  return sn__dnnl_check(dnnl_memory_desc_init_by_strides(desc, 2, dims, dnnl_f32, strides), "describe a matrix", err);
}

/* A product, and how a, b and c lie where it is not as the matrices that they are; NULL: it is. */
typedef struct product {
  const dnnl_memory_desc_t *a, *b, *biases, *c;
  const dnnl_memory_desc_t *given[3];
} product;

/* c = a * b, plus a row of biases to every row where there are any */
static sn_status make_product(sn__cpu *k, const product *p, sn__primitive *made, sn_err *err) {
  static const int args[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_BIAS};
  const dnnl_memory_desc_t *const given[] = {p->given[0], p->given[1], p->given[2], NULL};
  dnnl_matmul_desc_t matmul;
  if (sn__dnnl_check(dnnl_matmul_desc_init(&matmul, p->a, p->b, p->biases, p->c), "describe a product of matrices",
                     err))
    return err->code;
  return sn__primitive_new(k, &matmul, NULL, args, given, p->biases ? 4 : 3, made, err);
}

sn_status sn__cpu_fc_make(sn__cpu *k, uint32_t index, sn_err *err) {
  const sn_layer *layer = &k->net->layers[index];
  if (layer->attr->positions) return sn__cpu_conv_make(k, index, err);
  const sn_shape in = sn_layer_input_shape(k->net, layer, 0);
  const uint32_t block = sn__plane(in) == 1 ? 1 : sn__input_layout(k, index, 0); /* one pixel lies as it would plain */
  const dnnl_dim_t i = (dnnl_dim_t)sn__image(in);
  const dnnl_dim_t n = layer->out.n, o = layer->out.c;
  sn__cpu_layer *made = &k->layers[index];
  dnnl_memory_desc_t x, y, w, w_turned, y_turned, biases, image;
  if (describe(&x, n, i, false, err) || describe(&y, n, o, false, err) || describe(&w, o, i, false, err) ||
      describe(&w_turned, i, o, true, err) || describe(&y_turned, o, n, true, err) ||
      describe(&biases, 1, o, false, err) || sn__dnnl_image(&image, in, 0, block, err))
    return err->code;
  const product forward = {&x, &w_turned, layer->attr->bias ? &biases : NULL, &y, {&image, NULL, NULL}},
                backward = {&y, &w, NULL, &x, {NULL, NULL, &image}},
                weights = {&y_turned, &x, NULL, &w, {NULL, &image, NULL}};
  if (make_product(k, &forward, &made->forward, err) || make_product(k, &backward, &made->backward, err))
    return err->code;
  return make_product(k, &weights, &made->weights, err);
}

sn_status sn__cpu_fc_forward(sn__cpu *k, const sn_call *call, sn_err *err) {
  if (sn__call_layer(call)->attr->positions) return sn__cpu_conv_forward(k, call, err);
  float *w = call->parameters, *bias = w + sn__weights(sn__call_layer(call));
  float *const tensors[] = {call->x[0], w, call->y[0], bias};
  return sn__primitive_run(k, &k->layers[call->layer].forward, tensors, call, err);
}

static void bias_gradient(const sn_call *call, float *gradients) {
  sn_shape out = sn__call_layer(call)->out;
  memset(gradients, 0, out.c * sizeof *gradients);
  for (uint32_t n = 0; n < out.n; n++) {
    const float *dy = call->dy[0] + (uint64_t)n * out.c;
    for (uint32_t o = 0; o < out.c; o++) gradients[o] += dy[o];
  }
}

static sn_status weight_gradient(sn__cpu *k, const sn_call *call, sn_err *err) {
  const sn_layer *layer = sn__call_layer(call);
  float *const weights[] = {call->dy[0], call->x[0], call->gradients};
  if (layer->attr->bias) bias_gradient(call, call->gradients + sn__weights(layer));
  return sn__primitive_run(k, &k->layers[call->layer].weights, weights, call, err);
}

/* dx comes last: it may lie where x does. */
sn_status sn__cpu_fc_backward(sn__cpu *k, const sn_call *call, sn_err *err) {
  if (sn__call_layer(call)->attr->positions) return sn__cpu_conv_backward(k, call, err);
  float *const data[] = {call->dy[0], call->parameters, call->dx[0]};
  if (call->part != SN_STEP_DATA && weight_gradient(k, call, err)) return err->code;
  bool makes_dx = call->part != SN_STEP_FILTER && call->dx[0];
  return makes_dx ? sn__primitive_run(k, &k->layers[call->layer].backward, data, call, err) : SN_OK;
}
