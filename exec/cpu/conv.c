/* CPU kernels of CONV, DECONV and an FC of each position: oneDNN's convolution, backward by one primitive by data and
 * one by weights and bias; sums over the batch are in an order that the number of threads gives. Blocked values have
 * kernels of their own, which want blocked weights: where these last otherwise they are reordered. What has no such
 * kernel is done plain, by unfolding the image and multiplying matrices (im2col), and blocked sides are reordered.
 * Weights are kept as (outputs, inputs, height, width), with the groups in front where there are any, and of volumes
 * with the planes ahead of the height. Biases of a DECONV are added and summed by loops of ours. The gradient with
 * respect to the input batch, which nobody needs, is not computed. */
#include "exec/cpu/cpu.h"

#include <omp.h>
#include <string.h>

/* Without bias `b` is a descriptor of no dimensions, as oneDNN wants it. */
typedef struct shapes {
  dnnl_memory_desc_t x, w, b, y;
} shapes;

typedef struct descriptors {
  dnnl_convolution_desc_t forward, backward, weights;
} descriptors;

/* A layer as a convolution: a DECONV is that from its output to its input, an FC of each position one of windows of one
 * element. */
typedef struct convolution {
  sn__sides side;
  sn_shape x, y;
  dnnl_dim_t groups;
  bool bias, volumes, is_fc;
} convolution;

static convolution convolution_of(const sn__cpu *k, uint32_t index) {
  const sn_layer *layer = &k->net->layers[index];
  const sn_attr *a = layer->attr;
  const sn_shape in = sn_layer_input_shape(k->net, layer, 0), out = layer->out;
  if (layer->op == SN_FC)
    return (convolution){sn__sides_of(&(sn_attr){0}, in, 0, out, 0), in, out, 1, a->bias, false, true};
  const bool volumes = sn__minds_planes(layer);
  if (layer->op == SN_DECONV)
    return (convolution){sn__sides_of(a, out, layer->planes, in, a->planes), out, in, a->groups, false, volumes, false};
  return (convolution){sn__sides_of(a, in, a->planes, out, layer->planes), in, out, a->groups, a->bias, volumes, false};
}

/* As they lie in files, or as the kernel wants them. */
static sn_status describe_weights(dnnl_memory_desc_t *w, const convolution *c, bool plain, sn_err *err) {
  static const dnnl_format_tag_t tags[2][2] = {{dnnl_oihw, dnnl_goihw}, {dnnl_oidhw, dnnl_goidhw}};
  const bool parts = c->groups > 1;
  dnnl_dims_t dims;
  int n = 0;
  if (parts) dims[n++] = c->groups;
  dims[n++] = c->y.c / c->groups;
  dims[n++] = c->x.c / c->groups;
  if (c->volumes) dims[n++] = c->side.planes.kernel;
  dims[n++] = c->side.rows.kernel;
  dims[n++] = c->side.columns.kernel;
  return sn__dnnl_check(
      dnnl_memory_desc_init_by_tag(w, n, dims, dnnl_f32, plain ? tags[c->volumes][parts] : dnnl_format_tag_any),
      "describe weights", err);
}

/* Values in blocks of so many channels; weights plain where both are, else as the kernel wants them. */
static sn_status describe(shapes *t, const convolution *c, uint32_t x_block, uint32_t y_block, sn_err *err) {
  const bool plain = x_block == 1 && y_block == 1;
  if (sn__dnnl_image(&t->x, c->x, c->volumes ? c->side.planes.in : 0, x_block, err) ||
      sn__dnnl_image(&t->y, c->y, c->volumes ? c->side.planes.out : 0, y_block, err) ||
      describe_weights(&t->w, c, plain, err))
    return err->code;
  return c->bias ? sn__dnnl_tensor(&t->b, 1, (const dnnl_dims_t){c->y.c}, err) : SN_OK;
}

static sn_status make_descriptors(descriptors *d, const shapes *t, const convolution *c, sn_err *err) {
  const sn__side *p = &c->side.planes, *r = &c->side.rows, *l = &c->side.columns;
  const dnnl_dims_t strides = {p->stride, r->stride, l->stride}, pads = {p->pad, r->pad, l->pad},
                    holes = {p->dilation - 1, r->dilation - 1, l->dilation - 1};
  const dnnl_dim_t *const stride = strides + !c->volumes, *const pad = pads + !c->volumes,
                          *const gaps = holes + !c->volumes; /* images have no planes */
  const dnnl_alg_kind_t direct = dnnl_convolution_direct;
  dnnl_status_t status = dnnl_dilated_convolution_forward_desc_init(&d->forward, dnnl_forward_training, direct, &t->x,
                                                                    &t->w, &t->b, &t->y, stride, gaps, pad, pad);
  if (status == dnnl_success)
    status = dnnl_dilated_convolution_backward_data_desc_init(&d->backward, direct, &t->x, &t->w, &t->y, stride, gaps,
                                                              pad, pad);
  if (status == dnnl_success)
    status = dnnl_dilated_convolution_backward_weights_desc_init(&d->weights, direct, &t->x, &t->w, &t->b, &t->y,
                                                                 stride, gaps, pad, pad);
  return sn__dnnl_check(status, "describe a convolution", err);
}

/* Whether oneDNN would run it by anything else than its reference; that it has nothing at all is an answer, too. */
static sn_status ask(const sn__cpu *k, const void *descriptor, const_dnnl_primitive_desc_t hint,
                     dnnl_primitive_desc_t *made, bool *fast, sn_err *err) {
  const char *name = "ref";
  dnnl_status_t status = dnnl_primitive_desc_create(made, descriptor, NULL, k->engine, hint);
  if (status == dnnl_success) status = dnnl_primitive_desc_query(*made, dnnl_query_impl_info_str, 0, (void *)&name);
  *fast = *fast && strncmp(name, "ref", 3) != 0;
  return status == dnnl_unimplemented ? SN_OK : sn__dnnl_check(status, "choose a kernel", err);
}

sn_status sn__conv_is_native(const sn__cpu *k, uint32_t layer, uint32_t x_block, uint32_t y_block, bool *native,
                             sn_err *err) {
  bool turned = k->net->layers[layer].op == SN_DECONV, by_data = turned || !sn__reads_batch(k->net, layer);
  const convolution c = convolution_of(k, layer);
  dnnl_primitive_desc_t forward = NULL, backward = NULL, weights = NULL;
  descriptors d;
  shapes t = {0};
  *native = true;
  if (describe(&t, &c, turned ? y_block : x_block, turned ? x_block : y_block, err) ||
      make_descriptors(&d, &t, &c, err))
    return err->code;
  sn_status status = ask(k, &d.forward, NULL, &forward, native, err);
  if (status == SN_OK && *native) status = ask(k, &d.weights, forward, &weights, native, err);
  if (status == SN_OK && *native && by_data) status = ask(k, &d.backward, forward, &backward, native, err);
  dnnl_primitive_desc_destroy(forward);
  dnnl_primitive_desc_destroy(backward);
  dnnl_primitive_desc_destroy(weights);
  return status;
}

/* What the three primitives of a convolution are to be; `backward` NULL: not needed. */
typedef struct trio {
  sn__primitive *forward, *backward, *weights;
} trio;

/* `t` is how tensors lie. Bias is the last argument where there is one. */
static sn_status make_trio(sn__cpu *k, const descriptors *d, const shapes *t, bool bias, trio made, sn_err *err) {
  static const int forward_args[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_BIAS};
  static const int backward_args[] = {DNNL_ARG_DIFF_DST, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_SRC};
  static const int weights_args[] = {DNNL_ARG_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_BIAS};
  const dnnl_memory_desc_t *forward[] = {&t->x, &t->w, &t->y, NULL}, *backward[] = {&t->y, &t->w, &t->x},
                           *weights[] = {&t->x, &t->y, &t->w, NULL};
  if (sn__primitive_new(k, &d->forward, NULL, forward_args, forward, bias ? 4 : 3, made.forward, err) ||
      sn__primitive_new(k, &d->weights, made.forward, weights_args, weights, bias ? 4 : 3, made.weights, err))
    return err->code;
  if (!made.backward) return SN_OK;
  return sn__primitive_new(k, &d->backward, made.forward, backward_args, backward, 3, made.backward, err);
}

/* How weights last: as one thread's forward and gradient want them, so that kernels for any number of threads agree;
 * others have turns. Plain where the two want them differently or in more bytes. */
static sn_status choose_weights(sn__cpu *k, const descriptors *d, sn__cpu_layer *layer, sn_err *err) {
  dnnl_primitive_desc_t forward = NULL, weights = NULL;
  omp_set_num_threads(1);
  dnnl_status_t status = dnnl_primitive_desc_create(&forward, &d->forward, NULL, k->engine, NULL);
  if (status == dnnl_success) status = dnnl_primitive_desc_create(&weights, &d->weights, NULL, k->engine, forward);
  omp_set_num_threads(k->threads);
  if (status == dnnl_success) {
    const dnnl_memory_desc_t *w = dnnl_primitive_desc_query_md(forward, dnnl_query_weights_md, 0);
    const dnnl_memory_desc_t *dw = dnnl_primitive_desc_query_md(weights, dnnl_query_diff_weights_md, 0);
    if (dnnl_memory_desc_equal(w, dw) && !dnnl_memory_desc_equal(w, &layer->plain) &&
        dnnl_memory_desc_get_size(w) == dnnl_memory_desc_get_size(&layer->plain))
      layer->lasting = *w;
  }
  dnnl_primitive_desc_destroy(forward);
  dnnl_primitive_desc_destroy(weights);
  return sn__dnnl_check(status, "choose a layout of weights", err);
}

static sn_status make(sn__cpu *k, const convolution *c, uint32_t x_block, uint32_t y_block, trio made,
                      sn__cpu_layer *layer, bool native, sn_err *err) {
  descriptors d;
  shapes kernel = {0}, given = {0};
  if (describe(&kernel, c, native ? x_block : 1, native ? y_block : 1, err) || make_descriptors(&d, &kernel, c, err) ||
      describe(&given, c, x_block, y_block, err) || describe_weights(&layer->plain, c, true, err) ||
      (k->lasting && native && !c->is_fc && choose_weights(k, &d, layer, err)))
    return err->code;
  given.w = layer->lasting.ndims > 0 ? layer->lasting : layer->plain;
  return make_trio(k, &d, &given, c->bias, made, err);
}

sn_status sn__cpu_conv_make(sn__cpu *k, uint32_t index, sn_err *err) {
  uint32_t x = sn__input_layout(k, index, 0), y = sn__output_layout(k, index);
  sn__cpu_layer *layer = &k->layers[index];
  const convolution c = convolution_of(k, index);
  const trio made = {&layer->forward, sn__reads_batch(k->net, index) ? NULL : &layer->backward, &layer->weights};
  bool native;
  if (sn__conv_is_native(k, index, x, y, &native, err)) return err->code;
  return make(k, &c, x, y, made, layer, native, err);
}

sn_status sn__cpu_conv_forward(sn__cpu *k, const sn_call *call, sn_err *err) {
  float *w = call->parameters, *bias = w + sn__weights(sn__call_layer(call));
  float *const tensors[] = {call->x[0], w, call->y[0], bias};
  return sn__primitive_run(k, &k->layers[call->layer].forward, tensors, call, err);
}

/* Whether the call makes dx. */
static bool makes_dx(const sn__cpu *k, const sn_call *call) {
  return call->part != SN_STEP_FILTER && call->dx[0] && !sn__reads_batch(k->net, call->layer);
}

/* dx comes last: an FC's may lie where x does. */
sn_status sn__cpu_conv_backward(sn__cpu *k, const sn_call *call, sn_err *err) {
  float *dw = call->gradients, *bias = dw + sn__weights(sn__call_layer(call));
  float *const data[] = {call->dy[0], call->parameters, call->dx[0]};
  float *const weights[] = {call->x[0], call->dy[0], dw, bias};
  sn__cpu_layer *layer = &k->layers[call->layer];
  if (call->part != SN_STEP_DATA && sn__primitive_run(k, &layer->weights, weights, call, err)) return err->code;
  return makes_dx(k, call) ? sn__primitive_run(k, &layer->backward, data, call, err) : SN_OK;
}

/* Backward by data of the convolution is forward here. */
sn_status sn__cpu_deconv_make(sn__cpu *k, uint32_t index, sn_err *err) {
  uint32_t x = sn__input_layout(k, index, 0), y = sn__output_layout(k, index);
  sn__cpu_layer *layer = &k->layers[index];
  const convolution c = convolution_of(k, index);
  const trio made = {&layer->backward, &layer->forward, &layer->weights};
  bool native;
  if (sn__conv_is_native(k, index, x, y, &native, err)) return err->code;
  return make(k, &c, y, x, made, layer, native, err);
}

/* Element i of plane p, of a value in blocks of so many channels. */
static uint64_t element(uint64_t p, uint64_t i, uint64_t plane, uint32_t block) {
  return (p / block * plane + i) * block + p % block;
}

static void add_biases(const sn_call *call, uint32_t block) {
  const sn_layer *layer = sn__call_layer(call);
  const float *biases = call->parameters + sn__weights(layer);
  uint64_t planes = (uint64_t)layer->out.n * layer->out.c, plane = sn__plane(layer->out);
#pragma omp parallel for schedule(static) if (planes * plane >= SN__WORTH_THREADS)
  for (uint64_t p = 0; p < planes; p++) {
    float *y = call->y[0] + element(p, 0, plane, block), bias = biases[p % layer->out.c];
#pragma omp simd
    for (uint64_t i = 0; i < plane; i++) y[i * block] += bias;
  }
}

sn_status sn__cpu_deconv_forward(sn__cpu *k, const sn_call *call, sn_err *err) {
  float *const tensors[] = {call->x[0], call->parameters, call->y[0]};
  if (sn__primitive_run(k, &k->layers[call->layer].forward, tensors, call, err)) return err->code;
  if (sn__call_layer(call)->attr->bias) add_biases(call, sn__output_layout(k, call->layer));
  return SN_OK;
}

/* One thread sums all of a channel, so that sums do not depend on the threads. */
static void bias_gradient(const sn_call *call, uint32_t block, float *gradients) {
  sn_shape out = sn__call_layer(call)->out;
  uint64_t plane = sn__plane(out);
#pragma omp parallel for schedule(static) if (sn__count(out) >= SN__WORTH_THREADS)
  for (uint32_t c = 0; c < out.c; c++) {
    double sum = 0;
    for (uint64_t n = 0; n < out.n; n++) {
      const float *dy = call->dy[0] + element(n * out.c + c, 0, plane, block);
      for (uint64_t i = 0; i < plane; i++) sum += dy[i * block];
    }
    gradients[c] = (float)sum;
  }
}

sn_status sn__cpu_deconv_backward(sn__cpu *k, const sn_call *call, sn_err *err) {
  const sn_layer *layer = sn__call_layer(call);
  float *const data[] = {call->dy[0], call->parameters, call->dx[0]};
  float *const weights[] = {call->dy[0], call->x[0], call->gradients};
  if (makes_dx(k, call) && sn__primitive_run(k, &k->layers[call->layer].backward, data, call, err)) return err->code;
  if (call->part == SN_STEP_DATA) return SN_OK;
  if (sn__primitive_run(k, &k->layers[call->layer].weights, weights, call, err)) return err->code;
  if (layer->attr->bias) bias_gradient(call, sn__output_layout(k, call->layer), call->gradients + sn__weights(layer));
  return SN_OK;
}
