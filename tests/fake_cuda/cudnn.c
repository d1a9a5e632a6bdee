/* Fake cuDNN: handles, descriptors and every kernel but convolution (conv.c). Arguments are checked as cuDNN checks
 * them, pointers when the kernel runs. */
#include "tests/fake_cuda/cudnn.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static cudnnStatus_t status(cudaError_t code) {
  return code == cudaSuccess ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED;
}

cudnnStatus_t cudnn_start(cudnnHandle_t handle, void (*run)(const void *), const void *args, size_t size) {
  cudaError_t code = gpu_enter();
  if (code == cudaSuccess) gpu_queue(handle->stream, run, args, size);
  return status(code);
}

bool cudnn_sees(const void *at, shape s) {
  if (!gpu_is_device(at, (size_t)shape_count(s) * sizeof(float))) return false;
  if ((uintptr_t)at % 16 == 0) return true;
  gpu_complain("cuDNN was given an address that is not aligned");
  return false;
}

bool cudnn_apart(const void *a, shape as, const void *b, shape bs) {
  const float *x = a, *y = b;
  if (x + shape_count(as) <= y || y + shape_count(bs) <= x) return true;
  gpu_complain("a kernel was used in place that does not promise to stand it");
  return false;
}

/* ---- handles and descriptors ---- */

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle) {
  cudaError_t code;
  *handle = gpu_new(sizeof **handle, &code);
  return status(code);
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  cudaError_t code = gpu_enter();
  gpu_delete(handle);
  return status(code);
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return status(gpu_enter());
}

size_t cudnnGetVersion(void) {
  return 91900;
}

const char *cudnnGetErrorString(cudnnStatus_t code) {
  static const char *const names[] = {"success", "CUDNN_STATUS_BAD_PARAM", "CUDNN_STATUS_NOT_SUPPORTED",
                                      "CUDNN_STATUS_EXECUTION_FAILED"};
  return names[code];
}

void cudnnGetLastErrorString(char *message, size_t room) {
  snprintf(message, room, "no more is known");
}

/* cudnnCreate<Name>Descriptor and cudnnDestroy<Name>Descriptor */
#define DESCRIPTOR(name)                                                                                               \
  cudnnStatus_t cudnnCreate##name##Descriptor(cudnn##name##Descriptor_t *d) {                                          \
    cudaError_t code;                                                                                                  \
    *d = gpu_new(sizeof **d, &code);                                                                                   \
    return status(code);                                                                                               \
  }                                                                                                                    \
  cudnnStatus_t cudnnDestroy##name##Descriptor(cudnn##name##Descriptor_t d) {                                          \
    cudaError_t code = gpu_enter();                                                                                    \
    gpu_delete(d);                                                                                                     \
    return status(code);                                                                                               \
  }

DESCRIPTOR(Tensor)
DESCRIPTOR(Filter)
DESCRIPTOR(Convolution)
DESCRIPTOR(Pooling)
DESCRIPTOR(Activation)
DESCRIPTOR(LRN)
DESCRIPTOR(OpTensor)

/* Counted in int, as cuDNN counts. */
static bool is_counted(int n, int c, int h, int w, int64_t most) {
  const int sides[] = {c, h, w};
  int64_t count = n;
  for (int i = 0; i < 3 && count <= most; i++) count *= sides[i];
  return count <= most;
}

static cudnnStatus_t set_shape(shape *s, int n, int c, int h, int w) {
  *s = (shape){n, c, h, w};
  if (n <= 0 || c <= 0 || h <= 0 || w <= 0) return CUDNN_STATUS_BAD_PARAM;
  return is_counted(n, c, h, w, INT_MAX) ? status(gpu_enter()) : CUDNN_STATUS_NOT_SUPPORTED;
}

cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t d, cudnnTensorFormat_t format, cudnnDataType_t type,
                                         int n, int c, int h, int w) {
  fake_cuda *face = fake_cuda_state();
  (void)format, (void)type;
  if (n > 1 && !is_counted(n, c, h, w, (int64_t)face->most_elements)) return CUDNN_STATUS_NOT_SUPPORTED;
  if (n > 0 && n < 64) face->batches |= UINT64_C(1) << n;
  return set_shape(&d->s, n, c, h, w);
}

cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t d, cudnnDataType_t type, cudnnTensorFormat_t format,
                                         int k, int c, int h, int w) {
  (void)format, (void)type;
  return set_shape(&d->s, k, c, h, w);
}

cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t d, int pad_h, int pad_w, int stride_h,
                                              int stride_w, int dilation_h, int dilation_w, cudnnConvolutionMode_t mode,
                                              cudnnDataType_t type) {
  (void)mode, (void)type;
  d->v = (window){0, 0, pad_h, pad_w, stride_h, stride_w, 1};
  return stride_h > 0 && stride_w > 0 && dilation_h == 1 && dilation_w == 1 ? status(gpu_enter())
                                                                            : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t d, int groups) {
  d->v.groups = groups;
  return groups > 0 ? status(gpu_enter()) : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t d, cudnnMathType_t math) {
  (void)d, (void)math;
  return status(gpu_enter());
}

cudnnStatus_t cudnnSetPooling2dDescriptor(cudnnPoolingDescriptor_t d, cudnnPoolingMode_t mode,
                                          cudnnNanPropagation_t nan, int kernel_h, int kernel_w, int pad_h, int pad_w,
                                          int stride_h, int stride_w) {
  (void)nan;
  d->v = (window){kernel_h, kernel_w, pad_h, pad_w, stride_h, stride_w, 1};
  d->average = mode == CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING;
  return kernel_h > 0 && kernel_w > 0 && stride_h > 0 && stride_w > 0 ? status(gpu_enter()) : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t cudnnSetActivationDescriptor(cudnnActivationDescriptor_t d, cudnnActivationMode_t mode,
                                           cudnnNanPropagation_t nan, double coefficient) {
  (void)nan;
  d->top = mode == CUDNN_ACTIVATION_CLIPPED_RELU ? coefficient : INFINITY;
  return d->top > 0 ? status(gpu_enter()) : CUDNN_STATUS_BAD_PARAM;
}

/* cuDNN's limits. */
cudnnStatus_t cudnnSetLRNDescriptor(cudnnLRNDescriptor_t d, unsigned size, double alpha, double beta, double k) {
  if (size < 1 || size > 16 || beta < 0.01 || k < 1e-5) return CUDNN_STATUS_BAD_PARAM;
  d->l = (lrn){(int)size, alpha, beta, k};
  return status(gpu_enter());
}

cudnnStatus_t cudnnSetOpTensorDescriptor(cudnnOpTensorDescriptor_t d, cudnnOpTensorOp_t op, cudnnDataType_t type,
                                         cudnnNanPropagation_t nan) {
  (void)type, (void)nan;
  d->op = op;
  return status(gpu_enter());
}

/* ---- kernels ---- */

/* One for all: each kernel uses what it needs. */
typedef struct args {
  shape xs, ys, cs;
  const float *x, *y, *dy;
  float *out;
  window v;
  lrn l;
  norm b;
  scales s, s2;
  int mode;
  double top;
} args;

static bool same(shape a, shape b) {
  return memcmp(&a, &b, sizeof a) == 0;
}

static void run_add(const void *p) {
  const args *a = p;
  if (!cudnn_sees(a->x, a->xs) || !cudnn_sees(a->out, a->ys)) return;
  bool broadcast = !same(a->xs, a->ys);
  for (int64_t i = 0; i < shape_count(a->ys); i++)
    blend(&a->out[i], (double)a->x[broadcast ? i / shape_plane(a->ys) % a->ys.c : i], a->s);
}

/* A is as large as C, or one value a channel. */
cudnnStatus_t cudnnAddTensor(cudnnHandle_t handle, const void *alpha, cudnnTensorDescriptor_t a_shape, const void *a,
                             const void *beta, cudnnTensorDescriptor_t c_shape, void *c) {
  args k = {.xs = a_shape->s, .ys = c_shape->s, .x = a, .out = c, .s = scales_of(alpha, beta)};
  if (!same(k.xs, k.ys) && !same(k.xs, (shape){1, k.ys.c, 1, 1})) return CUDNN_STATUS_BAD_PARAM;
  return cudnn_start(handle, run_add, &k, sizeof k);
}

static void run_op(const void *p) {
  const args *a = p;
  if (!cudnn_sees(a->x, a->xs) || !cudnn_sees(a->y, a->xs) || !cudnn_sees(a->out, a->xs)) return;
  for (int64_t i = 0; i < shape_count(a->xs); i++) {
    double left = a->s.alpha * (double)a->x[i], right = a->s2.alpha * (double)a->y[i];
    blend(&a->out[i], a->mode == CUDNN_OP_TENSOR_ADD ? left + right : left * right, (scales){1, a->s.beta});
  }
}

cudnnStatus_t cudnnOpTensor(cudnnHandle_t handle, cudnnOpTensorDescriptor_t d, const void *alpha1,
                            cudnnTensorDescriptor_t a_shape, const void *a, const void *alpha2,
                            cudnnTensorDescriptor_t b_shape, const void *b, const void *beta,
                            cudnnTensorDescriptor_t c_shape, void *c) {
  args k = {.xs = a_shape->s, .x = a, .y = b, .out = c, .mode = (int)d->op};
  k.s = scales_of(alpha1, beta);
  k.s2 = scales_of(alpha2, beta);
  if (!same(a_shape->s, b_shape->s) || !same(a_shape->s, c_shape->s)) return CUDNN_STATUS_BAD_PARAM;
  return cudnn_start(handle, run_op, &k, sizeof k);
}

static void run_pool(const void *p) {
  const args *a = p;
  if (cudnn_sees(a->x, a->xs) && cudnn_sees(a->out, a->ys) && cudnn_apart(a->x, a->xs, a->out, a->ys))
    math_pool_forward(a->x, a->xs, a->out, a->ys, a->v, a->mode, a->s);
}

cudnnStatus_t cudnnPoolingForward(cudnnHandle_t handle, cudnnPoolingDescriptor_t d, const void *alpha,
                                  cudnnTensorDescriptor_t x_shape, const void *x, const void *beta,
                                  cudnnTensorDescriptor_t y_shape, void *y) {
  args k = {.xs = x_shape->s, .ys = y_shape->s, .x = x, .out = y, .v = d->v, .mode = d->average};
  k.s = scales_of(alpha, beta);
  if (k.xs.n != k.ys.n || k.xs.c != k.ys.c) return CUDNN_STATUS_BAD_PARAM;
  return cudnn_start(handle, run_pool, &k, sizeof k);
}

static void run_pool_backward(const void *p) {
  const args *a = p;
  if (cudnn_sees(a->x, a->xs) && cudnn_sees(a->y, a->ys) && cudnn_sees(a->dy, a->ys) && cudnn_sees(a->out, a->xs) &&
      cudnn_apart(a->dy, a->ys, a->out, a->xs) && cudnn_apart(a->x, a->xs, a->out, a->xs))
    math_pool_backward(a->y, a->dy, a->ys, a->x, a->out, a->xs, a->v, a->mode, a->s);
}

cudnnStatus_t cudnnPoolingBackward(cudnnHandle_t handle, cudnnPoolingDescriptor_t d, const void *alpha,
                                   cudnnTensorDescriptor_t y_shape, const void *y, cudnnTensorDescriptor_t dy_shape,
                                   const void *dy, cudnnTensorDescriptor_t x_shape, const void *x, const void *beta,
                                   cudnnTensorDescriptor_t dx_shape, void *dx) {
  args k = {.xs = x_shape->s, .ys = y_shape->s, .x = x, .y = y, .dy = dy, .out = dx, .v = d->v, .mode = d->average};
  k.s = scales_of(alpha, beta);
  if (!same(y_shape->s, dy_shape->s) || !same(x_shape->s, dx_shape->s)) return CUDNN_STATUS_BAD_PARAM;
  return cudnn_start(handle, run_pool_backward, &k, sizeof k);
}

static void run_act(const void *p) {
  const args *a = p;
  if (!cudnn_sees(a->x, a->xs) || !cudnn_sees(a->out, a->xs)) return;
  for (int64_t i = 0; i < shape_count(a->xs); i++)
    blend(&a->out[i], a->x[i] > 0 ? fmin((double)a->x[i], a->top) : 0, a->s);
}

cudnnStatus_t cudnnActivationForward(cudnnHandle_t handle, cudnnActivationDescriptor_t d, const void *alpha,
                                     cudnnTensorDescriptor_t x_shape, const void *x, const void *beta,
                                     cudnnTensorDescriptor_t y_shape, void *y) {
  args k = {.xs = x_shape->s, .x = x, .out = y, .top = d->top, .s = scales_of(alpha, beta)};
  if (d->top == 0 || !same(x_shape->s, y_shape->s)) return CUDNN_STATUS_BAD_PARAM;
  return cudnn_start(handle, run_act, &k, sizeof k);
}

static void run_act_backward(const void *p) {
  const args *a = p;
  if (!cudnn_sees(a->x, a->xs) || !cudnn_sees(a->y, a->xs) || !cudnn_sees(a->dy, a->xs) || !cudnn_sees(a->out, a->xs))
    return;
  for (int64_t i = 0; i < shape_count(a->xs); i++)
    blend(&a->out[i], a->x[i] > 0 && a->y[i] > 0 && (double)a->x[i] < a->top ? (double)a->dy[i] : 0, a->s);
}

cudnnStatus_t cudnnActivationBackward(cudnnHandle_t handle, cudnnActivationDescriptor_t d, const void *alpha,
                                      cudnnTensorDescriptor_t y_shape, const void *y, cudnnTensorDescriptor_t dy_shape,
                                      const void *dy, cudnnTensorDescriptor_t x_shape, const void *x, const void *beta,
                                      cudnnTensorDescriptor_t dx_shape, void *dx) {
  args k = {.xs = x_shape->s, .x = x, .y = y, .dy = dy, .out = dx, .top = d->top, .s = scales_of(alpha, beta)};
  if (d->top == 0 || !same(y_shape->s, dy_shape->s) || !same(x_shape->s, dx_shape->s) || !same(x_shape->s, y_shape->s))
    return CUDNN_STATUS_BAD_PARAM;
  return cudnn_start(handle, run_act_backward, &k, sizeof k);
}

static void run_lrn(const void *p) {
  const args *a = p;
  if (cudnn_sees(a->x, a->xs) && cudnn_sees(a->out, a->xs) && cudnn_apart(a->x, a->xs, a->out, a->xs))
    math_lrn_forward(a->x, a->out, a->xs, a->l, a->s);
}

cudnnStatus_t cudnnLRNCrossChannelForward(cudnnHandle_t handle, cudnnLRNDescriptor_t d, cudnnLRNMode_t mode,
                                          const void *alpha, cudnnTensorDescriptor_t x_shape, const void *x,
                                          const void *beta, cudnnTensorDescriptor_t y_shape, void *y) {
  args k = {.xs = x_shape->s, .x = x, .out = y, .l = d->l, .s = scales_of(alpha, beta)};
  (void)mode;
  if (!same(x_shape->s, y_shape->s)) return CUDNN_STATUS_BAD_PARAM;
  return cudnn_start(handle, run_lrn, &k, sizeof k);
}

static void run_lrn_backward(const void *p) {
  const args *a = p;
  if (cudnn_sees(a->x, a->xs) && cudnn_sees(a->y, a->xs) && cudnn_sees(a->dy, a->xs) && cudnn_sees(a->out, a->xs) &&
      cudnn_apart(a->dy, a->xs, a->out, a->xs) && cudnn_apart(a->y, a->xs, a->out, a->xs))
    math_lrn_backward(a->y, a->dy, a->x, a->out, a->xs, a->l, a->s);
}

cudnnStatus_t cudnnLRNCrossChannelBackward(cudnnHandle_t handle, cudnnLRNDescriptor_t d, cudnnLRNMode_t mode,
                                           const void *alpha, cudnnTensorDescriptor_t y_shape, const void *y,
                                           cudnnTensorDescriptor_t dy_shape, const void *dy,
                                           cudnnTensorDescriptor_t x_shape, const void *x, const void *beta,
                                           cudnnTensorDescriptor_t dx_shape, void *dx) {
  args k = {.xs = x_shape->s, .x = x, .y = y, .dy = dy, .out = dx, .l = d->l, .s = scales_of(alpha, beta)};
  (void)mode;
  if (!same(y_shape->s, k.xs) || !same(dy_shape->s, k.xs) || !same(dx_shape->s, k.xs)) return CUDNN_STATUS_BAD_PARAM;
  return cudnn_start(handle, run_lrn_backward, &k, sizeof k);
}

static void run_bn(const void *p) {
  const args *a = p;
  bool running =
      !a->b.running_mean || (cudnn_sees(a->b.running_mean, a->cs) && cudnn_sees(a->b.running_variance, a->cs));
  if (running && cudnn_sees(a->x, a->xs) && cudnn_sees(a->out, a->xs) && cudnn_sees(a->b.gamma, a->cs) &&
      cudnn_sees(a->b.offset, a->cs) && cudnn_sees(a->b.saved_mean, a->cs) && cudnn_sees(a->b.saved_inverse, a->cs) &&
      cudnn_apart(a->x, a->xs, a->out, a->xs))
    math_bn_forward(a->x, a->out, a->xs, a->b, a->s);
}

/* The running statistics may both be NULL. */
cudnnStatus_t cudnnBatchNormalizationForwardTraining(cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void *alpha,
                                                     const void *beta, cudnnTensorDescriptor_t x_shape, const void *x,
                                                     cudnnTensorDescriptor_t y_shape, void *y,
                                                     cudnnTensorDescriptor_t channels, const void *gamma,
                                                     const void *offset, double factor, void *running_mean,
                                                     void *running_variance, double epsilon, void *saved_mean,
                                                     void *saved_inverse) {
  args k = {.xs = x_shape->s, .cs = channels->s, .x = x, .out = y, .s = scales_of(alpha, beta)};
  k.b = (norm){.gamma = gamma, .offset = offset, .running_mean = running_mean, .running_variance = running_variance};
  k.b.saved_mean = saved_mean;
  k.b.saved_inverse = saved_inverse;
  k.b.factor = factor;
  k.b.epsilon = epsilon;
  (void)mode;
  if (!same(x_shape->s, y_shape->s) || !same(k.cs, (shape){1, k.xs.c, 1, 1}) || !running_mean != !running_variance)
    return CUDNN_STATUS_BAD_PARAM;
  return cudnn_start(handle, run_bn, &k, sizeof k);
}

static void run_bn_backward(const void *p) {
  const args *a = p;
  if (cudnn_sees(a->x, a->xs) && cudnn_sees(a->dy, a->xs) && cudnn_sees(a->out, a->xs) &&
      cudnn_sees(a->b.gamma, a->cs) && cudnn_sees(a->b.saved_mean, a->cs) && cudnn_sees(a->b.saved_inverse, a->cs) &&
      cudnn_sees(a->b.dgamma, a->cs) && cudnn_sees(a->b.doffset, a->cs) && cudnn_apart(a->dy, a->xs, a->out, a->xs))
    math_bn_backward(a->x, a->dy, a->out, a->xs, a->b, a->s, a->s2);
}

cudnnStatus_t cudnnBatchNormalizationBackward(cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void *alpha_data,
                                              const void *beta_data, const void *alpha_parameters,
                                              const void *beta_parameters, cudnnTensorDescriptor_t x_shape,
                                              const void *x, cudnnTensorDescriptor_t dy_shape, const void *dy,
                                              cudnnTensorDescriptor_t dx_shape, void *dx,
                                              cudnnTensorDescriptor_t channels, const void *gamma, void *dgamma,
                                              void *doffset, double epsilon, const void *saved_mean,
                                              const void *saved_inverse) {
  args k = {.xs = x_shape->s, .cs = channels->s, .x = x, .dy = dy, .out = dx, .s = scales_of(alpha_data, beta_data)};
  k.s2 = scales_of(alpha_parameters, beta_parameters);
  k.b = (norm){.gamma = gamma, .dgamma = dgamma, .doffset = doffset, .epsilon = epsilon};
  k.b.saved_mean = (float *)saved_mean;
  k.b.saved_inverse = (float *)saved_inverse;
  (void)mode;
  if (!same(k.xs, dy_shape->s) || !same(k.xs, dx_shape->s) || !same(k.cs, (shape){1, k.xs.c, 1, 1}))
    return CUDNN_STATUS_BAD_PARAM;
  return cudnn_start(handle, run_bn_backward, &k, sizeof k);
}

static void run_softmax(const void *p) {
  const args *a = p;
  if (cudnn_sees(a->x, a->xs) && cudnn_sees(a->out, a->xs)) math_softmax(a->x, a->out, a->xs, a->s);
}

cudnnStatus_t cudnnSoftmaxForward(cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t algo, cudnnSoftmaxMode_t mode,
                                  const void *alpha, cudnnTensorDescriptor_t x_shape, const void *x, const void *beta,
                                  cudnnTensorDescriptor_t y_shape, void *y) {
  args k = {.xs = x_shape->s, .x = x, .out = y, .s = scales_of(alpha, beta)};
  (void)algo, (void)mode;
  if (!same(x_shape->s, y_shape->s)) return CUDNN_STATUS_BAD_PARAM;
  return cudnn_start(handle, run_softmax, &k, sizeof k);
}
