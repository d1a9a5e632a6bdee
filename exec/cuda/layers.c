/* Layers: cuDNN's descriptors, which are host objects and cost no device memory, and where each layer's parameters and
 * statistics lie on the device. O(layers). */
#include "exec/cuda/cuda.h"

#include "base/checked.h"
#include "exec/kernel/kernel_internal.h"
#include "models/op/op.h"
#include "sim/graph/route.h"

#include <limits.h>
#include <stdlib.h>

/* As cudaMalloc aligns. */
enum { ALIGN_FLOATS = 64 };

/* LRN's backward needs a copy of dy (kernels.c): of a few images at a time, of about this size. */
#define FEW_FLOATS (UINT64_C(4) << 20)

static uint64_t aligned(uint64_t floats) {
  return sn_ceil_div(floats, ALIGN_FLOATS) * ALIGN_FLOATS;
}

static sn_status open_conv(const sn__cuda *m, const sn_layer *layer, sn_shape in, sn__layer *l, sn_err *err) {
  const sn_attr *a = layer->attr;
  if (CUDNN(cudnnCreateFilterDescriptor(&l->w)) != SN_OK ||
      CUDNN(cudnnSetFilter4dDescriptor(l->w, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, (int)a->channels,
                                       (int)(in.c / a->groups), (int)a->kernel_h, (int)a->kernel_w)) != SN_OK ||
      CUDNN(cudnnCreateConvolutionDescriptor(&l->conv)) != SN_OK ||
      CUDNN(cudnnSetConvolution2dDescriptor(l->conv, (int)a->pad_h, (int)a->pad_w, (int)a->stride_h, (int)a->stride_w,
                                            1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT)) != SN_OK ||
      CUDNN(cudnnSetConvolutionGroupCount(l->conv, (int)a->groups)) != SN_OK)
    return err->code;
  return CUDNN(cudnnSetConvolutionMathType(l->conv, m->options.tf32 ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH));
}

/* Averages leave padding out; the gradient of a maximum is summed in a fixed order. */
static sn_status open_pool(const sn_layer *layer, sn_shape in, sn__layer *l, sn_err *err) {
  const sn__sides p = sn__pool_sides(layer, in);
  const sn__side *rows = &p.rows, *columns = &p.columns;
  if (p.uneven)
    return sn_fail(
        err, SN_BAD_DEVICE,
        "the windows of this adaptive POOL differ in size (%ux%u to %ux%u), which cuDNN has no kernel for; use an "
        "image whose size its output divides, or run it on the CPU",
        in.h, in.w, rows->out, columns->out);
  cudnnPoolingMode_t mode =
      layer->attr->pool == SN_POOL_MAX ? CUDNN_POOLING_MAX_DETERMINISTIC : CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING;
  if (CUDNN(cudnnCreatePoolingDescriptor(&l->pool)) != SN_OK) return err->code;
  return CUDNN(cudnnSetPooling2dDescriptor(l->pool, mode, CUDNN_PROPAGATE_NAN, (int)rows->kernel, (int)columns->kernel,
                                           (int)rows->pad, (int)columns->pad, (int)rows->stride, (int)columns->stride));
}

/* cuDNN divides alpha by the window's size, as the reference does. Every fourth image begins at an aligned address,
 * whatever its size. */
static sn_status open_lrn(const sn_layer *layer, sn__layer *l, sn_err *err) {
  const sn_attr *a = layer->attr;
  const uint64_t few = sn_min(sn_max(FEW_FLOATS, 4 * sn__image(layer->out)), SN_CUDA_MOST_ELEMENTS);
  if (CUDNN(cudnnCreateLRNDescriptor(&l->lrn)) != SN_OK ||
      CUDNN(cudnnSetLRNDescriptor(l->lrn, a->lrn_size, a->lrn_alpha, a->lrn_beta, a->lrn_k)) != SN_OK)
    return err->code;
  return sn__cut_open(&l->few, layer->out, layer->out, few, err);
}

/* Mean and variance are those of all images, which no library function makes of parts. */
static sn_status check_bn(const sn_layer *layer, const sn__layer *l, sn_err *err) {
  const uint64_t most = SN_CUDA_MOST_ELEMENTS;
  if (l->cut.chunks == 1) return SN_OK;
  return sn_fail(err, SN_BAD_DEVICE,
                 "BN is over the whole batch, which cannot be cut, and its %llu elements are more than the %llu that "
                 "cuDNN counts up to; use a batch of at most %llu, smaller images, or --backend cpu",
                 (unsigned long long)sn__count(layer->out), (unsigned long long)most,
                 (unsigned long long)(most / sn__image(layer->out)));
}

/* Operators, and forms of them, that came after this back end; NULL: none of those. */
static const char *newer_form(const sn_layer *layer) {
  const sn_attr *a = layer->attr;
  if (layer->planes > 0) return "volumes";
  if (layer->op > SN_DECONV) return sn_op_of(layer)->name;
  if (sn_op_of(layer)->convolves && (a->dilation_h > 1 || a->dilation_w > 1)) return "a dilated convolution";
  if (layer->op == SN_POOL && (a->dilation_h > 1 || a->dilation_w > 1)) return "a dilated POOL";
  if (layer->op == SN_FC && a->positions) return "an FC of each position";
  if (layer->op == SN_SOFTMAX && a->positions) return "a SOFTMAX of each position";
  if (layer->op == SN_SOFTMAX && a->loss == SN_LOSS_MSE) return "a loss by mean squares";
  if (layer->op == SN_DROPOUT && a->images) return "a DROPOUT of whole images";
  return NULL;
}

static sn_status check_operator(const sn_layer *layer, sn_err *err) {
  const char *newer = newer_form(layer);
  if (newer)
    return sn_fail(err, SN_BAD_DEVICE, "the CUDA back end has no kernel for %s yet; --backend cpu has one", newer);
  if (layer->op == SN_DECONV)
    return sn_fail(err, SN_BAD_DEVICE, "the CUDA back end has no kernel for DECONV yet; --backend cpu has one");
  if (layer->op == SN_ACT && layer->attr->act != SN_ACT_RELU && layer->attr->act != SN_ACT_RELU6)
    return sn_fail(err, SN_BAD_DEVICE,
                   "the CUDA back end has no kernel for an ACT of mode \"%s\" yet; --backend cpu has one",
                   sn_act_names()[layer->attr->act]);
  return SN_OK;
}

static sn_status open_operator(const sn__cuda *m, const sn_layer *layer, sn_shape in, sn__layer *l, sn_err *err) {
  switch (layer->op) {
  case SN_CONV:
    return open_conv(m, layer, in, l, err);
  case SN_POOL:
    return open_pool(layer, in, l, err);
  case SN_LRN:
    return open_lrn(layer, l, err);
  case SN_BN:
    return check_bn(layer, l, err);
  default:
    return SN_OK;
  }
}

/* Where state lies. */
static void place(sn__cuda *m, const sn_layer *layer, sn__layer *l) {
  l->tail = layer->op == SN_BN || layer->attr->bias ? layer->out.c : 0;
  if (layer->parameters == 0) l->tail = 0;
  l->head = layer->parameters - l->tail;
  l->at = m->n_parameters;
  l->tail_at = l->at + aligned(l->head);
  l->span = aligned(l->head) + aligned(l->tail);
  m->n_parameters += l->span;
  l->statistics_at = m->n_statistics;
  l->statistics_step = layer->op == SN_BN ? aligned(layer->out.c) : 0;
  m->n_statistics += 4 * l->statistics_step;
  uint64_t size = aligned(sn__count(layer->out));
  l->given_at = m->n_given;
  if (layer->op == SN_DROPOUT || layer->op == SN_SOFTMAX) m->n_given += size;
  l->logits_at = m->n_logits;
  if (layer->op == SN_SOFTMAX) m->n_logits += size;
}

/* They are not cut. */
static sn_status check_parameters(const sn__layer *l, sn_err *err) {
  if (l->span <= INT_MAX) return SN_OK;
  return sn_fail(err, SN_BAD_DEVICE,
                 "its %llu parameters are more than the 2^31 - 1 that cuDNN and cuBLAS count up to; --backend cpu "
                 "trains them",
                 (unsigned long long)(l->head + l->tail));
}

static sn_status describe_parameters(const sn_layer *layer, sn__layer *l, sn_err *err) {
  const sn_shape channels = {1, layer->out.c, 1, 1}, trained = {1, 1, 1, (uint32_t)l->span};
  if (sn__describe(&l->channels, channels, err) != SN_OK || l->span == 0) return err->code;
  return sn__describe(&l->trained, trained, err);
}

static sn_status open_layer(sn__cuda *m, uint32_t index, sn_err *err) {
  const sn_net *net = m->route->net;
  const sn_layer *layer = &net->layers[index];
  sn__layer *l = &m->layers[index];
  sn_shape in = sn_layer_input_shape(net, layer, 0);
  place(m, layer, l);
  if (check_operator(layer, err) == SN_OK && check_parameters(l, err) == SN_OK &&
      sn__cut_open(&l->cut, in, layer->out, SN_CUDA_MOST_ELEMENTS, err) == SN_OK &&
      describe_parameters(layer, l, err) == SN_OK)
    open_operator(m, layer, in, l, err);
  if (err->code != SN_OK) sn_err_prefix(err, "layer \"%.80s\"", layer->name);
  return err->code;
}

static sn_status open_shared(sn__cuda *m, sn_err *err) {
  if (CUDNN(cudnnCreateActivationDescriptor(&m->relu)) != SN_OK ||
      CUDNN(cudnnSetActivationDescriptor(m->relu, CUDNN_ACTIVATION_RELU, CUDNN_PROPAGATE_NAN, 0)) != SN_OK ||
      CUDNN(cudnnCreateActivationDescriptor(&m->relu6)) != SN_OK ||
      CUDNN(cudnnSetActivationDescriptor(m->relu6, CUDNN_ACTIVATION_CLIPPED_RELU, CUDNN_PROPAGATE_NAN, 6)) != SN_OK ||
      CUDNN(cudnnCreateOpTensorDescriptor(&m->add)) != SN_OK ||
      CUDNN(cudnnSetOpTensorDescriptor(m->add, CUDNN_OP_TENSOR_ADD, CUDNN_DATA_FLOAT, CUDNN_PROPAGATE_NAN)) != SN_OK ||
      CUDNN(cudnnCreateOpTensorDescriptor(&m->multiply)) != SN_OK)
    return err->code;
  return CUDNN(cudnnSetOpTensorDescriptor(m->multiply, CUDNN_OP_TENSOR_MUL, CUDNN_DATA_FLOAT, CUDNN_PROPAGATE_NAN));
}

sn_status sn__layers_open(sn__cuda *m, sn_err *err) {
  m->layers = calloc(m->route->n_layers, sizeof *m->layers);
  if (!m->layers) return sn_fail_memory(err);
  sn_status status = open_shared(m, err);
  for (uint32_t i = 1; i < m->route->n_layers && status == SN_OK; i++) status = open_layer(m, i, err);
  return status == SN_OK ? sn__conv_open(m, err) : status;
}

static void close_layer(const sn__layer *l) {
  sn__cut_close(&l->cut);
  sn__cut_close(&l->few);
  if (l->channels) cudnnDestroyTensorDescriptor(l->channels);
  if (l->trained) cudnnDestroyTensorDescriptor(l->trained);
  if (l->w) cudnnDestroyFilterDescriptor(l->w);
  if (l->conv) cudnnDestroyConvolutionDescriptor(l->conv);
  if (l->pool) cudnnDestroyPoolingDescriptor(l->pool);
  if (l->lrn) cudnnDestroyLRNDescriptor(l->lrn);
}

void sn__layers_close(sn__cuda *m) {
  if (m->relu) cudnnDestroyActivationDescriptor(m->relu);
  if (m->relu6) cudnnDestroyActivationDescriptor(m->relu6);
  if (m->add) cudnnDestroyOpTensorDescriptor(m->add);
  if (m->multiply) cudnnDestroyOpTensorDescriptor(m->multiply);
  for (uint32_t i = 0; m->layers && i < m->route->n_layers; i++) close_layer(&m->layers[i]);
  free(m->layers);
}
