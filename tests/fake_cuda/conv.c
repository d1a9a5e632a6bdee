/* Fake cuDNN's convolutions. Workspaces are made up, but of the right kind: some algorithms need none, some are not
 * there for every shape, and what stands in a workspace afterwards is of no use to anybody. Algorithms that add with
 * atomics give other last bits each time. */
#include "tests/fake_cuda/cudnn.h"

#include <math.h>
#include <signal.h>
#include <string.h>

typedef enum conv_kernel { FORWARD, DATA, FILTER } conv_kernel;

/* What an algorithm can do: any shape; stride 1 and no groups; that and several images, or 3x3 kernels. */
typedef enum limits { ANY, STRIDE_1, SEVERAL, THREE } limits;

typedef struct algorithm {
  limits limits;
  uint32_t fixed;  /* bytes of workspace */
  uint32_t tensor; /* and so many times the larger tensor */
  bool atomic;
} algorithm;

/* By the numbers of the fake's cudnn.h. */
static const algorithm algorithms[3][7] = {
    [FORWARD] = {[CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM] = {ANY, 0, 0, false},
                 [CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM] = {ANY, 1200, 0, false},
                 [CUDNN_CONVOLUTION_FWD_ALGO_GEMM] = {ANY, 0, 1, false},
                 [CUDNN_CONVOLUTION_FWD_ALGO_FFT] = {SEVERAL, 0, 4, false},
                 [CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING] = {STRIDE_1, 0, 2, false},
                 [CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD] = {THREE, 4096, 0, false},
                 [CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED] = {THREE, 0, 1, false}},
    [DATA] = {[CUDNN_CONVOLUTION_BWD_DATA_ALGO_0] = {ANY, 0, 0, true},
              [CUDNN_CONVOLUTION_BWD_DATA_ALGO_1] = {ANY, 2500, 0, false},
              [CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT] = {SEVERAL, 0, 4, false},
              [CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT_TILING] = {STRIDE_1, 0, 2, false},
              [CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD] = {THREE, 4096, 0, false},
              [CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED] = {THREE, 0, 1, false}},
    [FILTER] = {[CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0] = {ANY, 0, 0, true},
                [CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1] = {ANY, 3001, 0, false},
                [CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT] = {SEVERAL, 0, 4, false},
                [CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3] = {ANY, 1500, 0, true},
                [CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED] = {THREE, 0, 1, false},
                [CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT_TILING] = {STRIDE_1, 0, 2, false}},
};

typedef struct args {
  conv_kernel kernel;
  shape xs, ys, ws;
  window v;
  const float *a, *b;
  float *out;
  unsigned char *workspace;
  size_t needed;
  bool atomic;
  scales s;
} args;

static bool is_possible(const args *k, algorithm a) {
  bool plain = k->v.stride_h == 1 && k->v.stride_w == 1 && k->v.groups == 1;
  if (a.limits == THREE) return plain && k->ws.h == 3 && k->ws.w == 3;
  if (a.limits == SEVERAL) return plain && k->xs.n > 1;
  return a.limits == ANY || plain;
}

static int outputs(int in, int pad, int kernel, int stride) {
  return (in + 2 * pad - kernel) / stride + 1;
}

/* Shapes that belong together, as cuDNN checks them; then the workspace. */
static cudnnStatus_t prepare(args *k, cudnnConvolutionDescriptor_t d, int number) {
  algorithm a = algorithms[k->kernel][number];
  k->v = d->v;
  k->v.kernel_h = k->ws.h;
  k->v.kernel_w = k->ws.w;
  if (k->ws.n != k->ys.c || k->ws.c * d->v.groups != k->xs.c || k->xs.n != k->ys.n ||
      k->ys.h != outputs(k->xs.h, d->v.pad_h, k->ws.h, d->v.stride_h) ||
      k->ys.w != outputs(k->xs.w, d->v.pad_w, k->ws.w, d->v.stride_w))
    return CUDNN_STATUS_BAD_PARAM;
  if (!is_possible(k, a)) return CUDNN_STATUS_NOT_SUPPORTED;
  int64_t larger = shape_count(k->xs) > shape_count(k->ys) ? shape_count(k->xs) : shape_count(k->ys);
  k->needed = a.fixed + a.tensor * (size_t)larger * sizeof(float);
  if (k->xs.n % 4 > 0) k->needed += k->needed / 2; /* fewer images may need more */
  k->atomic = a.atomic;
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t tell(args *k, cudnnConvolutionDescriptor_t d, int number, size_t *bytes) {
  cudnnStatus_t status = prepare(k, d, number);
  *bytes = k->needed;
  return status != CUDNN_STATUS_SUCCESS || gpu_enter() == cudaSuccess ? status : CUDNN_STATUS_EXECUTION_FAILED;
}

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t handle, cudnnTensorDescriptor_t x_shape,
                                                      cudnnFilterDescriptor_t w_shape, cudnnConvolutionDescriptor_t d,
                                                      cudnnTensorDescriptor_t y_shape, cudnnConvolutionFwdAlgo_t algo,
                                                      size_t *bytes) {
  args k = {.kernel = FORWARD, .xs = x_shape->s, .ys = y_shape->s, .ws = w_shape->s};
  (void)handle;
  return tell(&k, d, (int)algo, bytes);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(cudnnHandle_t handle, cudnnFilterDescriptor_t w_shape,
                                                           cudnnTensorDescriptor_t dy_shape,
                                                           cudnnConvolutionDescriptor_t d,
                                                           cudnnTensorDescriptor_t dx_shape,
                                                           cudnnConvolutionBwdDataAlgo_t algo, size_t *bytes) {
  args k = {.kernel = DATA, .xs = dx_shape->s, .ys = dy_shape->s, .ws = w_shape->s};
  (void)handle;
  return tell(&k, d, (int)algo, bytes);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(cudnnHandle_t handle, cudnnTensorDescriptor_t x_shape,
                                                             cudnnTensorDescriptor_t dy_shape,
                                                             cudnnConvolutionDescriptor_t d,
                                                             cudnnFilterDescriptor_t dw_shape,
                                                             cudnnConvolutionBwdFilterAlgo_t algo, size_t *bytes) {
  args k = {.kernel = FILTER, .xs = x_shape->s, .ys = dy_shape->s, .ws = dw_shape->s};
  (void)handle;
  return tell(&k, d, (int)algo, bytes);
}

/* One in eight results is rounded another way. */
static void disturb(float *out, int64_t count) {
  for (int64_t i = 0; i < count; i++)
    if (gpu_random() % 8 == 0) out[i] = nextafterf(out[i], 2 * out[i]);
}

static void run_conv(const void *p) {
  const args *k = p;
  shape in[3][2] = {{k->xs, k->ws}, {k->ws, k->ys}, {k->xs, k->ys}}, out[3] = {k->ys, k->xs, k->ws};
  shape a = in[k->kernel][0], b = in[k->kernel][1], c = out[k->kernel];
  shape space = {1, 1, 1, (int)(k->needed / sizeof(float))};
  if (!cudnn_sees(k->a, a) || !cudnn_sees(k->b, b) || !cudnn_sees(k->out, c) || !cudnn_apart(k->a, a, k->out, c) ||
      !cudnn_apart(k->b, b, k->out, c))
    return;
  if (k->needed > 0) {
    if (!gpu_is_device(k->workspace, k->needed) || !cudnn_apart(k->workspace, space, k->out, c) ||
        !cudnn_apart(k->workspace, space, k->a, a) || !cudnn_apart(k->workspace, space, k->b, b))
      return;
    memset(k->workspace, 0xff, k->needed);
  }
  if (k->kernel == FORWARD) math_conv_forward(k->a, k->xs, k->b, k->out, k->ys, k->v, k->s);
  if (k->kernel == DATA) math_conv_data(k->a, k->b, k->ys, k->out, k->xs, k->v, k->s);
  if (k->kernel == FILTER) math_conv_filter(k->a, k->xs, k->b, k->ys, k->out, k->v, k->s);
  if (k->atomic) disturb(k->out, shape_count(c));
}

static cudnnStatus_t start(cudnnHandle_t handle, args *k, cudnnConvolutionDescriptor_t d, int number, size_t bytes) {
  cudnnStatus_t status = prepare(k, d, number);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  if (bytes < k->needed) return CUDNN_STATUS_BAD_PARAM;
  if (k->kernel == FORWARD && number > 0 && number == fake_cuda_state()->broken_algo) {
    if (fake_cuda_state()->fault == FAKE_DIES) raise(SIGKILL);
    if (fake_cuda_state()->fault != FAKE_CRASHES) return CUDNN_STATUS_EXECUTION_FAILED;
    gpu_crash();
  }
  return cudnn_start(handle, run_conv, k, sizeof *k);
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void *alpha, cudnnTensorDescriptor_t x_shape,
                                      const void *x, cudnnFilterDescriptor_t w_shape, const void *w,
                                      cudnnConvolutionDescriptor_t d, cudnnConvolutionFwdAlgo_t algo, void *workspace,
                                      size_t bytes, const void *beta, cudnnTensorDescriptor_t y_shape, void *y) {
  args k = {.kernel = FORWARD, .xs = x_shape->s, .ys = y_shape->s, .ws = w_shape->s, .a = x, .b = w, .out = y};
  k.workspace = workspace;
  k.s = scales_of(alpha, beta);
  return start(handle, &k, d, (int)algo, bytes);
}

cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void *alpha, cudnnFilterDescriptor_t w_shape,
                                           const void *w, cudnnTensorDescriptor_t dy_shape, const void *dy,
                                           cudnnConvolutionDescriptor_t d, cudnnConvolutionBwdDataAlgo_t algo,
                                           void *workspace, size_t bytes, const void *beta,
                                           cudnnTensorDescriptor_t dx_shape, void *dx) {
  args k = {.kernel = DATA, .xs = dx_shape->s, .ys = dy_shape->s, .ws = w_shape->s, .a = w, .b = dy, .out = dx};
  k.workspace = workspace;
  k.s = scales_of(alpha, beta);
  return start(handle, &k, d, (int)algo, bytes);
}

cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void *alpha, cudnnTensorDescriptor_t x_shape,
                                             const void *x, cudnnTensorDescriptor_t dy_shape, const void *dy,
                                             cudnnConvolutionDescriptor_t d, cudnnConvolutionBwdFilterAlgo_t algo,
                                             void *workspace, size_t bytes, const void *beta,
                                             cudnnFilterDescriptor_t dw_shape, void *dw) {
  args k = {.kernel = FILTER, .xs = x_shape->s, .ys = dy_shape->s, .ws = dw_shape->s, .a = x, .b = dy, .out = dw};
  k.workspace = workspace;
  k.s = scales_of(alpha, beta);
  return start(handle, &k, d, (int)algo, bytes);
}

static void run_bias(const void *p) {
  const args *k = p;
  if (cudnn_sees(k->a, k->ys) && cudnn_sees(k->out, k->ws)) math_bias(k->a, k->ys, k->out, k->s);
}

cudnnStatus_t cudnnConvolutionBackwardBias(cudnnHandle_t handle, const void *alpha, cudnnTensorDescriptor_t dy_shape,
                                           const void *dy, const void *beta, cudnnTensorDescriptor_t db_shape,
                                           void *db) {
  args k = {.ys = dy_shape->s, .ws = db_shape->s, .a = dy, .out = db, .s = scales_of(alpha, beta)};
  if (k.ws.n != 1 || k.ws.c != k.ys.c || k.ws.h != 1 || k.ws.w != 1) return CUDNN_STATUS_BAD_PARAM;
  return cudnn_start(handle, run_bias, &k, sizeof k);
}
