/* Kernels: every operator but CONV, and the update, by cuDNN, cuBLAS and copies on the compute stream. The gradient
 * rules are the operator table's (models/op/op.h); exec/kernel/reference.h says what must come out.
 *
 * Three operators need what no library function does:
 *   DROPOUT       its mask is a function of seed, layer and iteration (exec/kernel/call.h) for every back end alike. The
 *                 host draws it as factors, 0 or 1 / (1 - ratio), and it is copied once an iteration (store.c); so every
 *                 pass and re-run multiplies by the same bits, and none waits for the link
 *   SOFTMAX       its gradient takes one-hot labels, which come the same way. Its input goes to the host, where loss and
 *                 hits are computed after the iteration
 *   LRN backward  is in place in the plan, which cuDNN does not promise to stand: dy is copied to the workspace, a few
 *                 images at a time
 *
 * Kernels are of one chunk of the batch (chunks.h); what is summed up over the batch grows from chunk to chunk.
 */
#include "exec/cuda/cuda.h"

#include "exec/kernel/kernel_internal.h"
#include "sim/graph/route.h"

static const float one = 1, zero = 0;

static cudaStream_t stream_of(const sn__cuda *m) {
  return m->gpu.streams[SN_LANE_COMPUTE];
}

static sn_status copy(const sn__cuda *m, float *to, const float *from, uint64_t count, sn_err *err) {
  return CUDA(cudaMemcpyAsync(to, from, count * sizeof(float), cudaMemcpyDeviceToDevice, stream_of(m)));
}

/* ---- FC: y = x w' + b. cuBLAS counts by columns, so every matrix is its own transpose to it. ---- */

sn_status sn__bias_forward(const sn__cuda *m, const sn_call *call, const sn__chunk *at, sn_err *err) {
  const sn__layer *l = &m->layers[call->layer];
  if (l->tail == 0) return SN_OK;
  return CUDNN(
      cudnnAddTensor(m->gpu.cudnn, &one, l->channels, m->parameters + l->tail_at, &one, at->y, call->y[0] + at->y_at));
}

sn_status sn__bias_backward(const sn__cuda *m, const sn_call *call, const sn__chunk *at, sn_err *err) {
  const sn__layer *l = &m->layers[call->layer];
  const float beta = sn__sum_beta(at);
  if (l->tail == 0) return SN_OK;
  return CUDNN(cudnnConvolutionBackwardBias(m->gpu.cudnn, &one, at->y, call->dy[0] + at->y_at, &beta, l->channels,
                                            m->gradients + l->tail_at));
}

static sn_status fc_forward(const sn__cuda *m, const sn_call *call, const sn__chunk *at, sn_err *err) {
  const sn__cut *cut = &m->layers[call->layer].cut;
  int images = (int)at->images, outputs = (int)cut->y_image, inputs = (int)cut->x_image;
  if (CUBLAS(cublasSgemm(m->gpu.cublas, CUBLAS_OP_T, CUBLAS_OP_N, outputs, images, inputs, &one, call->parameters,
                         inputs, call->x[0] + at->x_at, inputs, &zero, call->y[0] + at->y_at, outputs)) != SN_OK)
    return err->code;
  return sn__bias_forward(m, call, at, err);
}

static sn_status fc_backward(const sn__cuda *m, const sn_call *call, const sn__chunk *at, sn_err *err) {
  const sn__cut *cut = &m->layers[call->layer].cut;
  const float *x = call->x[0] + at->x_at, *dy = call->dy[0] + at->y_at, beta = sn__sum_beta(at);
  int images = (int)at->images, outputs = (int)cut->y_image, inputs = (int)cut->x_image;
  if (CUBLAS(cublasSgemm(m->gpu.cublas, CUBLAS_OP_N, CUBLAS_OP_N, inputs, images, outputs, &one, call->parameters,
                         inputs, dy, outputs, &zero, call->dx[0] + at->x_at, inputs)) != SN_OK ||
      CUBLAS(cublasSgemm(m->gpu.cublas, CUBLAS_OP_N, CUBLAS_OP_T, inputs, outputs, images, &one, x, inputs, dy, outputs,
                         &beta, call->gradients, inputs)) != SN_OK)
    return err->code;
  return sn__bias_backward(m, call, at, err);
}

/* ---- what selects and normalises ---- */

static sn_status pool_forward(const sn__cuda *m, const sn_call *call, const sn__chunk *at, sn_err *err) {
  const sn__layer *l = &m->layers[call->layer];
  return CUDNN(cudnnPoolingForward(m->gpu.cudnn, l->pool, &one, at->x, call->x[0] + at->x_at, &zero, at->y,
                                   call->y[0] + at->y_at));
}

static sn_status pool_backward(const sn__cuda *m, const sn_call *call, const sn__chunk *at, sn_err *err) {
  const sn__layer *l = &m->layers[call->layer];
  return CUDNN(cudnnPoolingBackward(m->gpu.cudnn, l->pool, &one, at->y, call->y[0] + at->y_at, at->y,
                                    call->dy[0] + at->y_at, at->x, call->x[0] + at->x_at, &zero, at->x,
                                    call->dx[0] + at->x_at));
}

static cudnnActivationDescriptor_t act_of(const sn__cuda *m, const sn_call *call) {
  return sn__call_layer(call)->attr->act == SN_ACT_RELU6 ? m->relu6 : m->relu;
}

static sn_status act_forward(const sn__cuda *m, const sn_call *call, const sn__chunk *at, sn_err *err) {
  return CUDNN(cudnnActivationForward(m->gpu.cudnn, act_of(m, call), &one, at->x, call->x[0] + at->x_at, &zero, at->y,
                                      call->y[0] + at->y_at));
}

/* cuDNN allows dx to be dy here. */
static sn_status act_backward(const sn__cuda *m, const sn_call *call, const sn__chunk *at, sn_err *err) {
  return CUDNN(cudnnActivationBackward(m->gpu.cudnn, act_of(m, call), &one, at->y, call->y[0] + at->y_at, at->y,
                                       call->dy[0] + at->y_at, at->x, call->x[0] + at->x_at, &zero, at->x,
                                       call->dx[0] + at->x_at));
}

static sn_status lrn_forward(const sn__cuda *m, const sn_call *call, const sn__chunk *at, sn_err *err) {
  const sn__layer *l = &m->layers[call->layer];
  return CUDNN(cudnnLRNCrossChannelForward(m->gpu.cudnn, l->lrn, CUDNN_LRN_CROSS_CHANNEL_DIM1, &one, at->x,
                                           call->x[0] + at->x_at, &zero, at->y, call->y[0] + at->y_at));
}

static sn_status lrn_backward(const sn__cuda *m, const sn_call *call, const sn__chunk *at, sn_err *err) {
  const sn__layer *l = &m->layers[call->layer];
  if (copy(m, call->workspace, call->dy[0] + at->y_at, at->y_count, err) != SN_OK) return err->code;
  return CUDNN(cudnnLRNCrossChannelBackward(m->gpu.cudnn, l->lrn, CUDNN_LRN_CROSS_CHANNEL_DIM1, &one, at->y,
                                            call->y[0] + at->y_at, at->y, call->workspace, at->x, call->x[0] + at->x_at,
                                            &zero, at->x, call->dx[0] + at->x_at));
}

/* The batch is always whole here (layers.c). A re-run makes the same saved mean and deviation again and leaves the
 * running ones alone. */
static sn_status bn_forward(const sn__cuda *m, const sn_call *call, const sn__chunk *at, sn_err *err) {
  const sn__layer *l = &m->layers[call->layer];
  float *mean = call->statistics, *variance = mean + l->statistics_step, *saved = variance + l->statistics_step;
  return CUDNN(cudnnBatchNormalizationForwardTraining(
      m->gpu.cudnn, CUDNN_BATCHNORM_SPATIAL, &one, &zero, at->x, call->x[0], at->y, call->y[0], l->channels,
      call->parameters, m->parameters + l->tail_at, (double)SN_BN_MOMENTUM, call->rerun ? NULL : mean,
      call->rerun ? NULL : variance, (double)SN_BN_EPSILON, saved, saved + l->statistics_step));
}

static sn_status bn_backward(const sn__cuda *m, const sn_call *call, const sn__chunk *at, sn_err *err) {
  const sn__layer *l = &m->layers[call->layer];
  const float *saved = call->statistics + 2 * l->statistics_step;
  return CUDNN(cudnnBatchNormalizationBackward(m->gpu.cudnn, CUDNN_BATCHNORM_SPATIAL, &one, &zero, &one, &zero, at->x,
                                               call->x[0], at->y, call->dy[0], at->x, call->dx[0], l->channels,
                                               call->parameters, call->gradients, m->gradients + l->tail_at,
                                               (double)SN_BN_EPSILON, saved, saved + l->statistics_step));
}

static sn_status drop(const sn__cuda *m, const sn_call *call, const sn__chunk *at, const float *from, float *to,
                      sn_err *err) {
  const float *mask = m->given + m->layers[call->layer].given_at;
  return CUDNN(cudnnOpTensor(m->gpu.cudnn, m->multiply, &one, at->y, from + at->y_at, &one, at->y, mask + at->y_at,
                             &zero, at->y, to + at->y_at));
}

static sn_status dropout_forward(const sn__cuda *m, const sn_call *call, const sn__chunk *at, sn_err *err) {
  return drop(m, call, at, call->x[0], call->y[0], err);
}

static sn_status dropout_backward(const sn__cuda *m, const sn_call *call, const sn__chunk *at, sn_err *err) {
  return drop(m, call, at, call->dy[0], call->dx[0], err);
}

static sn_status softmax_forward(const sn__cuda *m, const sn_call *call, const sn__chunk *at, sn_err *err) {
  float *logits = m->host_logits + m->layers[call->layer].logits_at + at->y_at;
  const float *x = call->x[0] + at->x_at;
  if (CUDNN(cudnnSoftmaxForward(m->gpu.cudnn, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL, &one, at->x, x, &zero,
                                at->y, call->y[0] + at->y_at)) != SN_OK)
    return err->code;
  return CUDA(cudaMemcpyAsync(logits, x, at->y_count * sizeof(float), cudaMemcpyDeviceToHost, stream_of(m)));
}

/* dx = (y - one-hot) / images of the batch, over y. */
static sn_status softmax_backward(const sn__cuda *m, const sn_call *call, const sn__chunk *at, sn_err *err) {
  int count = (int)at->y_count;
  float share = 1 / (float)sn__call_layer(call)->out.n, minus = -1, *dx = call->dx[0] + at->x_at;
  const float *one_hot = m->given + m->layers[call->layer].given_at + at->y_at;
  if (CUBLAS(cublasSaxpy(m->gpu.cublas, count, &minus, one_hot, 1, dx, 1)) != SN_OK) return err->code;
  return CUBLAS(cublasSscal(m->gpu.cublas, count, &share, dx, 1));
}

/* ---- what adds and copies ---- */

static sn_status add_to(const sn__cuda *m, const sn__chunk *at, const float *from, float *to, sn_err *err) {
  return CUDNN(cudnnAddTensor(m->gpu.cudnn, &one, at->y, from + at->y_at, &one, at->y, to + at->y_at));
}

static sn_status join_forward(const sn__cuda *m, const sn_call *call, const sn__chunk *at, sn_err *err) {
  sn_status status = CUDNN(cudnnOpTensor(m->gpu.cudnn, m->add, &one, at->y, call->x[0] + at->y_at, &one, at->y,
                                         call->x[1] + at->y_at, &zero, at->y, call->y[0] + at->y_at));
  for (uint32_t j = 2; j < sn__call_layer(call)->n_inputs && status == SN_OK; j++)
    status = add_to(m, at, call->x[j], call->y[0], err);
  return status;
}

/* dx of input 0 is dy itself. */
static sn_status join_backward(const sn__cuda *m, const sn_call *call, const sn__chunk *at, sn_err *err) {
  sn_status status = SN_OK;
  for (uint32_t j = 1; j < sn__call_layer(call)->n_inputs && status == SN_OK; j++)
    status = copy(m, call->dx[j] + at->y_at, call->dy[0] + at->y_at, at->y_count, err);
  return status;
}

static sn_status fork_forward(const sn__cuda *m, const sn_call *call, const sn__chunk *at, sn_err *err) {
  sn_status status = SN_OK;
  for (uint32_t j = 0; j < sn__call_layer(call)->n_outputs && status == SN_OK; j++)
    status = copy(m, call->y[j] + at->y_at, call->x[0] + at->y_at, at->y_count, err);
  return status;
}

/* The gradients of all branches are summed into that of branch 0, which is dx. */
static sn_status fork_backward(const sn__cuda *m, const sn_call *call, const sn__chunk *at, sn_err *err) {
  sn_status status = SN_OK;
  for (uint32_t j = 1; j < sn__call_layer(call)->n_outputs && status == SN_OK; j++)
    status = add_to(m, at, call->dy[j], call->dx[0], err);
  return status;
}

/* Input j's channels lie behind those of the inputs before it, image by image: a copy of rows. `whole` is the tensor of
 * all of them, `parts` those of the inputs. */
static sn_status concat(const sn__cuda *m, const sn_call *call, const sn__chunk *at, float *whole, float **parts,
                        bool gather, sn_err *err) {
  const sn_layer *layer = sn__call_layer(call);
  size_t row = sn__image(layer->out) * sizeof(float);
  sn_status status = SN_OK;
  whole += at->y_at;
  for (uint32_t j = 0; j < layer->n_inputs && status == SN_OK; j++) {
    size_t count = sn__image(sn__call_input(call, j)), width = count * sizeof(float);
    float *part = parts[j] + at->first * count;
    if (gather)
      status =
          CUDA(cudaMemcpy2DAsync(whole, row, part, width, width, at->images, cudaMemcpyDeviceToDevice, stream_of(m)));
    else
      status =
          CUDA(cudaMemcpy2DAsync(part, width, whole, row, width, at->images, cudaMemcpyDeviceToDevice, stream_of(m)));
    whole += count;
  }
  return status;
}

static sn_status concat_forward(const sn__cuda *m, const sn_call *call, const sn__chunk *at, sn_err *err) {
  return concat(m, call, at, call->y[0], call->x, true, err);
}

static sn_status concat_backward(const sn__cuda *m, const sn_call *call, const sn__chunk *at, sn_err *err) {
  return concat(m, call, at, call->dy[0], call->dx, false, err);
}

/* ---- the update: of all parameters of a layer at once ---- */

/* w = (1 - rate decay) w - rate g: two launches over weights and bias at once, as below. */
static sn_status update_sgd(const sn__cuda *m, const sn_call *call, sn_err *err) {
  const sn_hyper *h = call->hyper;
  int span = (int)m->layers[call->layer].span;
  float keep = 1 - h->learning_rate * h->weight_decay, down = -h->learning_rate;
  if (CUBLAS(cublasSscal(m->gpu.cublas, span, &keep, call->parameters, 1)) != SN_OK) return err->code;
  return CUBLAS(cublasSaxpy(m->gpu.cublas, span, &down, call->gradients, 1, call->parameters, 1));
}

/* v = decay w + g + momentum v;  w = w - rate v: two launches, which read and write seven times what there are
 * parameters. Over weights and bias at once: what lies between them is 0 and stays 0. */
static sn_status update_momentum(const sn__cuda *m, const sn_call *call, sn_err *err) {
  const sn_hyper *h = call->hyper;
  const sn__layer *l = &m->layers[call->layer];
  cudnnTensorDescriptor_t d = l->trained;
  float *w = call->parameters, *v = call->states[0], down = -h->learning_rate;
  if (CUDNN(cudnnOpTensor(m->gpu.cudnn, m->add, &h->weight_decay, d, w, &one, d, call->gradients, &h->momentum, d,
                          v)) != SN_OK)
    return err->code;
  return CUBLAS(cublasSaxpy(m->gpu.cublas, (int)l->span, &down, v, 1, w, 1));
}

/* ---- dispatch ---- */

static const sn__chunk_kernel forward_kernels[SN_OP_COUNT] = {
    [SN_FC] = fc_forward,     [SN_POOL] = pool_forward,       [SN_ACT] = act_forward,         [SN_LRN] = lrn_forward,
    [SN_BN] = bn_forward,     [SN_DROPOUT] = dropout_forward, [SN_SOFTMAX] = softmax_forward, [SN_JOIN] = join_forward,
    [SN_FORK] = fork_forward, [SN_CONCAT] = concat_forward,
};

static const sn__chunk_kernel backward_kernels[SN_OP_COUNT] = {
    [SN_FC] = fc_backward,           [SN_POOL] = pool_backward, [SN_ACT] = act_backward,
    [SN_LRN] = lrn_backward,         [SN_BN] = bn_backward,     [SN_DROPOUT] = dropout_backward,
    [SN_SOFTMAX] = softmax_backward, [SN_JOIN] = join_backward, [SN_FORK] = fork_backward,
    [SN_CONCAT] = concat_backward,
};

uint64_t sn__kernel_scratch(const sn__cuda *m, uint32_t layer, sn_pass pass) {
  const sn_layer *l = &m->route->layers[layer];
  if (l->op == SN_LRN && pass == SN_BACKWARD) return m->layers[layer].few.images * sn__image(l->out) * sizeof(float);
  return 0;
}

sn_status sn__kernel_run(const sn__cuda *m, const sn__step *step, sn_err *err) {
  const sn_call *call = &step->call;
  const sn_layer *layer = sn__call_layer(call);
  uint64_t needed = sn__kernel_scratch(m, call->layer, call->pass);
  if (call->workspace_bytes < needed)
    return sn_fail(err, SN_BUG, "the plan gives a workspace of %llu bytes, %llu are needed",
                   (unsigned long long)call->workspace_bytes, (unsigned long long)needed);
  if (call->pass == SN_UPDATE) return (call->states[0] ? update_momentum : update_sgd)(m, call, err);
  bool forward = call->pass == SN_FORWARD;
  if (layer->op == SN_CONV) return (forward ? sn__conv_forward : sn__conv_backward)(m, step, err);
  const sn__layer *l = &m->layers[call->layer];
  const sn__cut *cut = layer->op == SN_LRN && !forward ? &l->few : &l->cut;
  return sn__in_chunks(m, call, cut, (forward ? forward_kernels : backward_kernels)[layer->op], err);
}
