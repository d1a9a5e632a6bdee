/* Kernels: every operator but CONV, and the update, by cuDNN, cuBLAS and copies on the compute stream. The gradient
 * rules are the operator table's (models/op.h); exec/kernel/reference.h says what must come out.
 *
 * Three operators need what no library function does:
 *   DROPOUT   its mask is a function of seed, layer and iteration (exec/kernel/call.h) for every back end alike. The
 * host draws it as factors, 0 or 1 / (1 - ratio), and it is copied once an iteration (store.c); so every pass and
 * re-run multiplies by the same bits, and none waits for the link. SOFTMAX   its gradient takes one-hot labels, which
 * come the same way. Its input goes to the host, where loss and hits are computed after the iteration. LRN backward is
 * in place in the plan, which cuDNN does not promise to stand: dy is copied to the workspace, a few images at a time.
 */
#include "exec/cuda/cuda.h"

#include "base/checked.h"
#include "exec/kernel/kernel_internal.h"

static const float one = 1, zero = 0;

static cudaStream_t stream_of(const sn__cuda *m) {
  return m->gpu.streams[SN_LANE_COMPUTE];
}

static sn_status copy(const sn__cuda *m, float *to, const float *from, uint64_t count, sn_err *err) {
  return CUDA(cudaMemcpyAsync(to, from, count * sizeof(float), cudaMemcpyDeviceToDevice, stream_of(m)));
}

/* ---- FC: y = x w' + b. cuBLAS counts by columns, so every matrix is its own transpose to it. ---- */

static sn_status fc_forward(const sn__cuda *m, const sn_call *call, sn_err *err) {
  const sn__layer *l = &m->layers[call->layer];
  int images = (int)sn__call_layer(call)->out.n, outputs = (int)sn__call_layer(call)->out.c;
  int inputs = (int)sn__image(sn__call_input(call, 0));
  if (CUBLAS(cublasSgemm(m->gpu.cublas, CUBLAS_OP_T, CUBLAS_OP_N, outputs, images, inputs, &one, call->parameters,
                         inputs, call->x[0], inputs, &zero, call->y[0], outputs)) != SN_OK)
    return err->code;
  if (l->tail == 0) return SN_OK;
  return CUDNN(cudnnAddTensor(m->gpu.cudnn, &one, l->channels, m->parameters + l->tail_at, &one, l->y, call->y[0]));
}

static sn_status fc_backward(const sn__cuda *m, const sn_call *call, sn_err *err) {
  const sn__layer *l = &m->layers[call->layer];
  int images = (int)sn__call_layer(call)->out.n, outputs = (int)sn__call_layer(call)->out.c;
  int inputs = (int)sn__image(sn__call_input(call, 0));
  if (CUBLAS(cublasSgemm(m->gpu.cublas, CUBLAS_OP_N, CUBLAS_OP_N, inputs, images, outputs, &one, call->parameters,
                         inputs, call->dy[0], outputs, &zero, call->dx[0], inputs)) != SN_OK ||
      CUBLAS(cublasSgemm(m->gpu.cublas, CUBLAS_OP_N, CUBLAS_OP_T, inputs, outputs, images, &one, call->x[0], inputs,
                         call->dy[0], outputs, &zero, call->gradients, inputs)) != SN_OK)
    return err->code;
  if (l->tail == 0) return SN_OK;
  return CUDNN(cudnnConvolutionBackwardBias(m->gpu.cudnn, &one, l->y, call->dy[0], &zero, l->channels,
                                            m->gradients + l->tail_at));
}

/* ---- what selects and normalises ---- */

static sn_status pool_forward(const sn__cuda *m, const sn_call *call, sn_err *err) {
  const sn__layer *l = &m->layers[call->layer];
  return CUDNN(cudnnPoolingForward(m->gpu.cudnn, l->pool, &one, l->x, call->x[0], &zero, l->y, call->y[0]));
}

static sn_status pool_backward(const sn__cuda *m, const sn_call *call, sn_err *err) {
  const sn__layer *l = &m->layers[call->layer];
  return CUDNN(cudnnPoolingBackward(m->gpu.cudnn, l->pool, &one, l->y, call->y[0], l->y, call->dy[0], l->x, call->x[0],
                                    &zero, l->x, call->dx[0]));
}

static cudnnActivationDescriptor_t act_of(const sn__cuda *m, const sn_call *call) {
  return sn__call_layer(call)->attr->act == SN_ACT_RELU6 ? m->relu6 : m->relu;
}

static sn_status act_forward(const sn__cuda *m, const sn_call *call, sn_err *err) {
  const sn__layer *l = &m->layers[call->layer];
  return CUDNN(cudnnActivationForward(m->gpu.cudnn, act_of(m, call), &one, l->x, call->x[0], &zero, l->y, call->y[0]));
}

/* cuDNN allows dx to be dy here. */
static sn_status act_backward(const sn__cuda *m, const sn_call *call, sn_err *err) {
  const sn__layer *l = &m->layers[call->layer];
  return CUDNN(cudnnActivationBackward(m->gpu.cudnn, act_of(m, call), &one, l->y, call->y[0], l->y, call->dy[0], l->x,
                                       call->x[0], &zero, l->x, call->dx[0]));
}

static sn_status lrn_forward(const sn__cuda *m, const sn_call *call, sn_err *err) {
  const sn__layer *l = &m->layers[call->layer];
  return CUDNN(cudnnLRNCrossChannelForward(m->gpu.cudnn, l->lrn, CUDNN_LRN_CROSS_CHANNEL_DIM1, &one, l->x, call->x[0],
                                           &zero, l->y, call->y[0]));
}

/* `images` images from number `first` on. */
static sn_status lrn_chunk(const sn__cuda *m, const sn_call *call, uint32_t first, uint32_t images, sn_err *err) {
  const sn__layer *l = &m->layers[call->layer];
  uint64_t image = sn__image(sn__call_layer(call)->out), at = first * image;
  cudnnTensorDescriptor_t d = images == l->chunk ? l->some : l->rest;
  if (copy(m, call->workspace, call->dy[0] + at, images * image, err) != SN_OK) return err->code;
  return CUDNN(cudnnLRNCrossChannelBackward(m->gpu.cudnn, l->lrn, CUDNN_LRN_CROSS_CHANNEL_DIM1, &one, d,
                                            call->y[0] + at, d, call->workspace, d, call->x[0] + at, &zero, d,
                                            call->dx[0] + at));
}

static sn_status lrn_backward(const sn__cuda *m, const sn_call *call, sn_err *err) {
  uint32_t chunk = m->layers[call->layer].chunk, n = sn__call_layer(call)->out.n;
  sn_status status = SN_OK;
  for (uint32_t first = 0; first < n && status == SN_OK; first += chunk)
    status = lrn_chunk(m, call, first, n - first < chunk ? n - first : chunk, err);
  return status;
}

/* A re-run makes the same saved mean and deviation again and leaves the running ones alone. */
static sn_status bn_forward(const sn__cuda *m, const sn_call *call, sn_err *err) {
  const sn__layer *l = &m->layers[call->layer];
  float *mean = call->statistics, *variance = mean + l->statistics_step, *saved = variance + l->statistics_step;
  return CUDNN(cudnnBatchNormalizationForwardTraining(
      m->gpu.cudnn, CUDNN_BATCHNORM_SPATIAL, &one, &zero, l->x, call->x[0], l->y, call->y[0], l->channels,
      call->parameters, m->parameters + l->tail_at, (double)SN_BN_MOMENTUM, call->rerun ? NULL : mean,
      call->rerun ? NULL : variance, (double)SN_BN_EPSILON, saved, saved + l->statistics_step));
}

static sn_status bn_backward(const sn__cuda *m, const sn_call *call, sn_err *err) {
  const sn__layer *l = &m->layers[call->layer];
  const float *saved = call->statistics + 2 * l->statistics_step;
  return CUDNN(cudnnBatchNormalizationBackward(m->gpu.cudnn, CUDNN_BATCHNORM_SPATIAL, &one, &zero, &one, &zero, l->x,
                                               call->x[0], l->y, call->dy[0], l->x, call->dx[0], l->channels,
                                               call->parameters, call->gradients, m->gradients + l->tail_at,
                                               (double)SN_BN_EPSILON, saved, saved + l->statistics_step));
}

static sn_status drop(const sn__cuda *m, const sn_call *call, const float *from, float *to, sn_err *err) {
  const sn__layer *l = &m->layers[call->layer];
  return CUDNN(
      cudnnOpTensor(m->gpu.cudnn, m->multiply, &one, l->y, from, &one, l->y, m->given + l->given_at, &zero, l->y, to));
}

static sn_status dropout_forward(const sn__cuda *m, const sn_call *call, sn_err *err) {
  return drop(m, call, call->x[0], call->y[0], err);
}

static sn_status dropout_backward(const sn__cuda *m, const sn_call *call, sn_err *err) {
  return drop(m, call, call->dy[0], call->dx[0], err);
}

static sn_status softmax_forward(const sn__cuda *m, const sn_call *call, sn_err *err) {
  const sn__layer *l = &m->layers[call->layer];
  float *logits = m->host_logits + l->logits_at;
  uint64_t bytes = sn__count(sn__call_layer(call)->out) * sizeof(float);
  if (CUDNN(cudnnSoftmaxForward(m->gpu.cudnn, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL, &one, l->x,
                                call->x[0], &zero, l->y, call->y[0])) != SN_OK)
    return err->code;
  return CUDA(cudaMemcpyAsync(logits, call->x[0], bytes, cudaMemcpyDeviceToHost, stream_of(m)));
}

/* dx = (y - one-hot) / images, over y. */
static sn_status softmax_backward(const sn__cuda *m, const sn_call *call, sn_err *err) {
  int count = (int)sn__count(sn__call_layer(call)->out);
  float share = 1 / (float)sn__call_layer(call)->out.n, minus = -1;
  const float *one_hot = m->given + m->layers[call->layer].given_at;
  if (CUBLAS(cublasSaxpy(m->gpu.cublas, count, &minus, one_hot, 1, call->dx[0], 1)) != SN_OK) return err->code;
  return CUBLAS(cublasSscal(m->gpu.cublas, count, &share, call->dx[0], 1));
}

/* ---- what adds and copies ---- */

static sn_status add_to(const sn__cuda *m, const sn_call *call, const float *from, float *to, sn_err *err) {
  cudnnTensorDescriptor_t d = m->layers[call->layer].y;
  return CUDNN(cudnnAddTensor(m->gpu.cudnn, &one, d, from, &one, d, to));
}

static sn_status join_forward(const sn__cuda *m, const sn_call *call, sn_err *err) {
  cudnnTensorDescriptor_t d = m->layers[call->layer].y;
  sn_status status =
      CUDNN(cudnnOpTensor(m->gpu.cudnn, m->add, &one, d, call->x[0], &one, d, call->x[1], &zero, d, call->y[0]));
  for (uint32_t j = 2; j < sn__call_layer(call)->n_inputs && status == SN_OK; j++)
    status = add_to(m, call, call->x[j], call->y[0], err);
  return status;
}

/* dx of input 0 is dy itself. */
static sn_status join_backward(const sn__cuda *m, const sn_call *call, sn_err *err) {
  const sn_layer *layer = sn__call_layer(call);
  sn_status status = SN_OK;
  for (uint32_t j = 1; j < layer->n_inputs && status == SN_OK; j++)
    status = copy(m, call->dx[j], call->dy[0], sn__count(layer->out), err);
  return status;
}

static sn_status fork_forward(const sn__cuda *m, const sn_call *call, sn_err *err) {
  const sn_layer *layer = sn__call_layer(call);
  sn_status status = SN_OK;
  for (uint32_t j = 0; j < layer->n_outputs && status == SN_OK; j++)
    status = copy(m, call->y[j], call->x[0], sn__count(layer->out), err);
  return status;
}

/* The gradients of all branches are summed into that of branch 0, which is dx. */
static sn_status fork_backward(const sn__cuda *m, const sn_call *call, sn_err *err) {
  sn_status status = SN_OK;
  for (uint32_t j = 1; j < sn__call_layer(call)->n_outputs && status == SN_OK; j++)
    status = add_to(m, call, call->dy[j], call->dx[0], err);
  return status;
}

/* Input j's channels lie behind those of the inputs before it, image by image: a copy of rows. `apart` is the tensor of
 * all of them, `parts` those of the inputs. */
static sn_status concat(const sn__cuda *m, const sn_call *call, float *apart, float **parts, bool gather, sn_err *err) {
  const sn_layer *layer = sn__call_layer(call);
  size_t row = sn__image(layer->out) * sizeof(float);
  sn_status status = SN_OK;
  for (uint32_t j = 0; j < layer->n_inputs && status == SN_OK; j++) {
    size_t count = sn__image(sn__call_input(call, j)), part = count * sizeof(float);
    if (gather)
      status = CUDA(
          cudaMemcpy2DAsync(apart, row, parts[j], part, part, layer->out.n, cudaMemcpyDeviceToDevice, stream_of(m)));
    else
      status = CUDA(
          cudaMemcpy2DAsync(parts[j], part, apart, row, part, layer->out.n, cudaMemcpyDeviceToDevice, stream_of(m)));
    apart += count;
  }
  return status;
}

static sn_status concat_forward(const sn__cuda *m, const sn_call *call, sn_err *err) {
  return concat(m, call, call->y[0], call->x, true, err);
}

static sn_status concat_backward(const sn__cuda *m, const sn_call *call, sn_err *err) {
  return concat(m, call, call->dy[0], call->dx, false, err);
}

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

typedef sn_status (*kernel)(const sn__cuda *m, const sn_call *call, sn_err *err);

static const kernel forward_kernels[SN_OP_COUNT] = {
    [SN_FC] = fc_forward,     [SN_POOL] = pool_forward,       [SN_ACT] = act_forward,         [SN_LRN] = lrn_forward,
    [SN_BN] = bn_forward,     [SN_DROPOUT] = dropout_forward, [SN_SOFTMAX] = softmax_forward, [SN_JOIN] = join_forward,
    [SN_FORK] = fork_forward, [SN_CONCAT] = concat_forward,
};

static const kernel backward_kernels[SN_OP_COUNT] = {
    [SN_FC] = fc_backward,           [SN_POOL] = pool_backward, [SN_ACT] = act_backward,
    [SN_LRN] = lrn_backward,         [SN_BN] = bn_backward,     [SN_DROPOUT] = dropout_backward,
    [SN_SOFTMAX] = softmax_backward, [SN_JOIN] = join_backward, [SN_FORK] = fork_backward,
    [SN_CONCAT] = concat_backward,
};

uint64_t sn__kernel_scratch(const sn__cuda *m, uint32_t layer, sn_pass pass) {
  const sn_layer *l = &m->route->net->layers[layer];
  if (l->op == SN_LRN && pass == SN_BACKWARD) return m->layers[layer].chunk * sn__image(l->out) * sizeof(float);
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
  return (forward ? forward_kernels : backward_kernels)[layer->op](m, call, err);
}
