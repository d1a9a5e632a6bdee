/* CONV: cuDNN's algorithms under the names of sim/device/conv.h, their workspaces, and how long each takes here.
 *
 * Backward data and filter have no explicit GEMM and no index table of the same names: what needs no workspace stands
 * for implicit GEMM (algorithm 0), the other implicit one for the precomputed GEMM (algorithm 1). Those that add with
 * atomics, and so give other bits each time, are left out where determinism is asked for: algorithm 0 of both backward
 * kernels and algorithm 3 of the filter's (cuDNN documentation, "Reproducibility"). */
#include "exec/cuda/cuda.h"

#include "base/checked.h"
#include "exec/kernel_internal.h"
#include "sim/device/calibration.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NONE = -1, WARM_UP = 2, SAMPLES = 7 };

static const int algorithms[SN_CONV_KERNELS][SN_CONV_ALGOS] = {
    [SN_CONV_FORWARD] =
        {
            [SN_IMPLICIT_GEMM] = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
            [SN_PRECOMPUTED_GEMM] = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
            [SN_GEMM] = CUDNN_CONVOLUTION_FWD_ALGO_GEMM,
            [SN_FFT] = CUDNN_CONVOLUTION_FWD_ALGO_FFT,
            [SN_FFT_TILING] = CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING,
            [SN_WINOGRAD] = CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD,
            [SN_WINOGRAD_NONFUSED] = CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED,
        },
    [SN_CONV_BACKWARD_DATA] =
        {
            [SN_IMPLICIT_GEMM] = CUDNN_CONVOLUTION_BWD_DATA_ALGO_0,
            [SN_PRECOMPUTED_GEMM] = CUDNN_CONVOLUTION_BWD_DATA_ALGO_1,
            [SN_GEMM] = NONE,
            [SN_FFT] = CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT,
            [SN_FFT_TILING] = CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT_TILING,
            [SN_WINOGRAD] = CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD,
            [SN_WINOGRAD_NONFUSED] = CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED,
        },
    [SN_CONV_BACKWARD_FILTER] =
        {
            [SN_IMPLICIT_GEMM] = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0,
            [SN_PRECOMPUTED_GEMM] = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1,
            [SN_GEMM] = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3,
            [SN_FFT] = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT,
            [SN_FFT_TILING] = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT_TILING,
            [SN_WINOGRAD] = NONE,
            [SN_WINOGRAD_NONFUSED] = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED,
        },
};

static bool is_deterministic(sn_conv_kernel kernel, sn_conv_algo algo) {
  if (kernel == SN_CONV_BACKWARD_DATA) return algo != SN_IMPLICIT_GEMM;
  return kernel == SN_CONV_FORWARD || (algo != SN_IMPLICIT_GEMM && algo != SN_GEMM);
}

/* ---- running one ---- */

/* Two inputs and an output: x, w, y forward; w, dy, dx for the data's gradient; x, dy, dw for the filter's. */
typedef struct conv_run {
  uint32_t layer;
  sn_conv_kernel kernel;
  uint8_t algo; /* sn_conv_algo */
  const float *a, *b;
  float *out;
  void *workspace;
  size_t workspace_bytes;
} conv_run;

static const float one = 1, zero = 0;

static sn_status launch(const sn__cuda *m, const conv_run *r, sn_err *err) {
  const sn__layer *l = &m->layers[r->layer];
  if (r->algo >= SN_CONV_ALGOS || algorithms[r->kernel][r->algo] == NONE)
    return sn_fail(err, SN_BUG, "the plan names algorithm %u, which this convolution does not have", r->algo);
  int algo = algorithms[r->kernel][r->algo];
  switch (r->kernel) {
  case SN_CONV_FORWARD:
    return CUDNN(cudnnConvolutionForward(m->gpu.cudnn, &one, l->x, r->a, l->w, r->b, l->conv,
                                         (cudnnConvolutionFwdAlgo_t)algo, r->workspace, r->workspace_bytes, &zero, l->y,
                                         r->out));
  case SN_CONV_BACKWARD_DATA:
    return CUDNN(cudnnConvolutionBackwardData(m->gpu.cudnn, &one, l->w, r->a, l->y, r->b, l->conv,
                                              (cudnnConvolutionBwdDataAlgo_t)algo, r->workspace, r->workspace_bytes,
                                              &zero, l->x, r->out));
  case SN_CONV_BACKWARD_FILTER:
    return CUDNN(cudnnConvolutionBackwardFilter(m->gpu.cudnn, &one, l->x, r->a, l->y, r->b, l->conv,
                                                (cudnnConvolutionBwdFilterAlgo_t)algo, r->workspace, r->workspace_bytes,
                                                &zero, l->w, r->out));
  case SN_CONV_KERNELS:
    break;
  }
  return sn_fail(err, SN_BUG, "convolution kernel %d does not exist", (int)r->kernel);
}

sn_status sn__conv_forward(const sn__cuda *m, const sn__step *step, sn_err *err) {
  const sn_call *call = &step->call;
  const sn__layer *l = &m->layers[call->layer];
  conv_run run = {call->layer,      SN_CONV_FORWARD, step->algo[0],   call->x[0],
                  call->parameters, call->y[0],      call->workspace, call->workspace_bytes};
  if (launch(m, &run, err) != SN_OK || l->tail == 0) return err->code;
  return CUDNN(cudnnAddTensor(m->gpu.cudnn, &one, l->channels, m->parameters + l->tail_at, &one, l->y, call->y[0]));
}

sn_status sn__conv_backward(const sn__cuda *m, const sn__step *step, sn_err *err) {
  const sn_call *call = &step->call;
  const sn__layer *l = &m->layers[call->layer];
  conv_run data = {call->layer, SN_CONV_BACKWARD_DATA, step->algo[0],   call->parameters,
                   call->dy[0], call->dx[0],           call->workspace, call->workspace_bytes};
  conv_run filter = {call->layer, SN_CONV_BACKWARD_FILTER, step->algo[1],   call->x[0],
                     call->dy[0], call->gradients,         call->workspace, call->workspace_bytes};
  if (launch(m, &data, err) != SN_OK || launch(m, &filter, err) != SN_OK || l->tail == 0) return err->code;
  return CUDNN(cudnnConvolutionBackwardBias(m->gpu.cudnn, &one, l->y, call->dy[0], &zero, l->channels,
                                            m->gradients + l->tail_at));
}

/* ---- what there is to choose from ---- */

/* Whether cuDNN has the algorithm for this layer on this device, and its workspace. */
static bool find_workspace(const sn__cuda *m, uint32_t layer, sn_conv_kernel kernel, sn_conv_algo algo,
                           uint64_t *workspace) {
  const sn__layer *l = &m->layers[layer];
  int id = algorithms[kernel][algo];
  size_t bytes = 0;
  cudnnStatus_t code = CUDNN_STATUS_NOT_SUPPORTED;
  if (id == NONE || (m->options.deterministic && !is_deterministic(kernel, algo))) return false;
  if (kernel == SN_CONV_FORWARD)
    code = cudnnGetConvolutionForwardWorkspaceSize(m->gpu.cudnn, l->x, l->w, l->conv, l->y,
                                                   (cudnnConvolutionFwdAlgo_t)id, &bytes);
  if (kernel == SN_CONV_BACKWARD_DATA)
    code = cudnnGetConvolutionBackwardDataWorkspaceSize(m->gpu.cudnn, l->w, l->y, l->conv, l->x,
                                                        (cudnnConvolutionBwdDataAlgo_t)id, &bytes);
  if (kernel == SN_CONV_BACKWARD_FILTER)
    code = cudnnGetConvolutionBackwardFilterWorkspaceSize(m->gpu.cudnn, l->x, l->y, l->conv, l->w,
                                                          (cudnnConvolutionBwdFilterAlgo_t)id, &bytes);
  *workspace = bytes;
  return code == CUDNN_STATUS_SUCCESS;
}

static uint32_t find_choices(const sn__cuda *m, uint32_t layer, sn_conv_kernel kernel, sn_conv_choice *choices) {
  uint32_t count = 0;
  for (sn_conv_algo algo = 0; algo < SN_CONV_ALGOS; algo++) {
    choices[count] = (sn_conv_choice){.algo = algo};
    if (find_workspace(m, layer, kernel, algo, &choices[count].workspace)) count++;
  }
  return count;
}

/* The formulas' time; of an algorithm that they have left out, that of their slowest. */
static int64_t formula_ns(const sn_conv_choice *known, uint32_t count, sn_conv_algo algo) {
  int64_t slowest = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (known[i].algo == algo) return known[i].ns;
    if (known[i].ns > slowest) slowest = known[i].ns;
  }
  return slowest;
}

static sn_status offer_kernel(const sn__cuda *m, uint32_t layer, sn_conv_kernel kernel, sn_costs *costs, sn_err *err) {
  static const char *const names[SN_CONV_KERNELS] = {"forward", "backward data", "backward filter"};
  sn_conv_choice choices[SN_CONV_ALGOS + 1];
  uint32_t n_known, count = find_choices(m, layer, kernel, choices);
  const sn_conv_choice *known = sn_costs_conv(costs, layer, kernel, &n_known);
  if (count == 0)
    return sn_fail(err, SN_BAD_DEVICE, "layer \"%.80s\": cuDNN has no %salgorithm for its %s convolution here",
                   m->route->net->layers[layer].name, m->options.deterministic ? "deterministic " : "", names[kernel]);
  for (uint32_t i = 0; i < count; i++) choices[i].ns = formula_ns(known, n_known, choices[i].algo);
  return sn_costs_set_conv(costs, layer, kernel, choices, count, err);
}

sn_status sn__conv_offer(const sn__cuda *m, uint32_t layer, sn_costs *costs, sn_err *err) {
  sn_status status = SN_OK;
  for (sn_conv_kernel kernel = 0; kernel < SN_CONV_KERNELS && status == SN_OK; kernel++)
    status = offer_kernel(m, layer, kernel, costs, err);
  return status;
}

/* ---- how long each takes ---- */

typedef struct timer {
  const sn__cuda *m;
  void (*note)(void *user, uint32_t layer, sn_conv_kernel kernel, sn_conv_choice choice);
  void *user;
  cudaEvent_t begin, end;
  float *x, *y, *w; /* scratch for one layer */
} timer;

static sn_status time_once(const timer *t, const conv_run *run, float *ms, sn_err *err) {
  cudaStream_t stream = t->m->gpu.streams[SN_LANE_COMPUTE];
  if (CUDA(cudaEventRecord(t->begin, stream)) != SN_OK || launch(t->m, run, err) != SN_OK ||
      CUDA(cudaEventRecord(t->end, stream)) != SN_OK || CUDA(cudaDeviceSynchronize()) != SN_OK)
    return err->code;
  return CUDA(cudaEventElapsedTime(ms, t->begin, t->end));
}

static int compare(const void *a, const void *b) {
  const float *x = a, *y = b;
  return *x < *y ? -1 : *x > *y;
}

/* The median of some runs behind others that warm up. */
static sn_status time_run(const timer *t, const conv_run *run, int64_t *ns, sn_err *err) {
  float ms[WARM_UP + SAMPLES];
  for (int i = 0; i < WARM_UP + SAMPLES; i++)
    if (time_once(t, run, &ms[i], err) != SN_OK) return err->code;
  qsort(ms + WARM_UP, SAMPLES, sizeof *ms, compare);
  *ns = llround((double)ms[WARM_UP + SAMPLES / 2] * 1e6);
  return SN_OK;
}

static conv_run run_of(const timer *t, uint32_t layer, sn_conv_kernel kernel, const sn_conv_choice *choice) {
  conv_run run = {.layer = layer, .kernel = kernel, .algo = (uint8_t)choice->algo};
  run.a = kernel == SN_CONV_BACKWARD_DATA ? t->w : t->x;
  run.b = kernel == SN_CONV_FORWARD ? t->w : t->y;
  run.out = kernel == SN_CONV_FORWARD ? t->y : kernel == SN_CONV_BACKWARD_DATA ? t->x : t->w;
  run.workspace_bytes = choice->workspace;
  return run;
}

/* One whose workspace the device has no room for cannot be used either: it is passed over. */
static sn_status time_choice(const timer *t, uint32_t layer, sn_conv_kernel kernel, sn_conv_choice *choice,
                             sn_err *err) {
  sn_err no_room = SN_ERR_INIT;
  conv_run run = run_of(t, layer, kernel, choice);
  if (sn__gpu_malloc(&run.workspace, choice->workspace, "a convolution workspace", &no_room) != SN_OK) return SN_OK;
  sn_status status = time_run(t, &run, &choice->ns, err);
  choice->measured = status == SN_OK;
  if (run.workspace) cudaFree(run.workspace);
  if (status != SN_OK)
    sn_err_prefix(err, "layer \"%.80s\", algorithm %s", t->m->route->net->layers[layer].name,
                  sn_conv_algo_name(choice->algo));
  return status;
}

static bool same_conv(const sn_net *net, uint32_t a, uint32_t b) {
  char first[SN_SHAPE_TEXT], second[SN_SHAPE_TEXT];
  return net->layers[b].op == SN_CONV && strcmp(sn_shape_text(net, &net->layers[a], first, sizeof first),
                                                sn_shape_text(net, &net->layers[b], second, sizeof second)) == 0;
}

/* Layers of one shape take the same time. */
static void note_all(const timer *t, uint32_t layer, sn_conv_kernel kernel, sn_conv_choice choice) {
  const sn_net *net = t->m->route->net;
  for (uint32_t i = layer; i < net->n_layers; i++)
    if (i == layer || same_conv(net, layer, i)) t->note(t->user, i, kernel, choice);
}

static sn_status time_kernels(const timer *t, uint32_t layer, sn_err *err) {
  for (sn_conv_kernel kernel = 0; kernel < SN_CONV_KERNELS; kernel++) {
    sn_conv_choice choices[SN_CONV_ALGOS + 1];
    uint32_t count = find_choices(t->m, layer, kernel, choices);
    for (uint32_t i = 0; i < count; i++) {
      if (time_choice(t, layer, kernel, &choices[i], err) != SN_OK) return err->code;
      if (choices[i].measured) note_all(t, layer, kernel, choices[i]);
    }
  }
  return SN_OK;
}

/* Tensors of its own, as large as the layer's, filled with an ordinary small number. */
static sn_status time_layer(timer *t, uint32_t layer, sn_err *err) {
  const sn_net *net = t->m->route->net;
  const sn_layer *l = &net->layers[layer];
  const char *what = "measuring a convolution";
  uint64_t x = sn__count(sn_layer_input_shape(net, l, 0)) * sizeof(float), y = sn__count(l->out) * sizeof(float);
  uint64_t w = t->m->layers[layer].head * sizeof(float);
  void *memory[3] = {NULL, NULL, NULL};
  const int pattern = 0x3c; /* four of them are 0.0115 */
  if (sn__gpu_malloc(&memory[0], x, what, err) == SN_OK && sn__gpu_malloc(&memory[1], y, what, err) == SN_OK &&
      sn__gpu_malloc(&memory[2], w, what, err) == SN_OK && CUDA(cudaMemset(memory[0], pattern, x)) == SN_OK &&
      CUDA(cudaMemset(memory[1], pattern, y)) == SN_OK && CUDA(cudaMemset(memory[2], pattern, w)) == SN_OK &&
      CUDA(cudaDeviceSynchronize()) == SN_OK) {
    t->x = memory[0];
    t->y = memory[1];
    t->w = memory[2];
    time_kernels(t, layer, err);
  }
  for (int i = 0; i < 3; i++)
    if (memory[i]) cudaFree(memory[i]);
  return err->code;
}

static bool is_first_of_its_shape(const sn_net *net, uint32_t layer) {
  uint32_t i = 1;
  while (i < layer && !same_conv(net, layer, i)) i++;
  return i == layer;
}

sn_status sn__conv_time_all(const sn__cuda *m,
                            void (*note)(void *user, uint32_t layer, sn_conv_kernel kernel, sn_conv_choice choice),
                            void *user, sn_err *err) {
  const sn_net *net = m->route->net;
  timer t = {.m = m, .note = note, .user = user};
  sn_status status = CUDA(cudaEventCreateWithFlags(&t.begin, cudaEventDefault));
  if (status == SN_OK) status = CUDA(cudaEventCreateWithFlags(&t.end, cudaEventDefault));
  for (uint32_t i = 1; i < net->n_layers && status == SN_OK; i++)
    if (net->layers[i].op == SN_CONV && is_first_of_its_shape(net, i)) status = time_layer(&t, i, err);
  if (t.begin) cudaEventDestroy(t.begin);
  if (t.end) cudaEventDestroy(t.end);
  return status;
}
