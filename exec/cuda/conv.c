/* CONV: cuDNN's algorithms under the names of sim/device/conv.h, their workspaces, and how long each takes here.
 *
 * Backward data and filter have no explicit GEMM and no index table of the same names: what needs no workspace stands
 * for implicit GEMM (algorithm 0), the other implicit one for the precomputed GEMM (algorithm 1). Those that add with
 * atomics, and so give other bits each time, are left out where determinism is asked for: algorithm 0 of both backward
 * kernels and algorithm 3 of the filter's (cuDNN documentation, "Reproducibility"). */
#include "exec/cuda/cuda.h"

#include "base/checked.h"
#include "exec/data/random.h"
#include "exec/kernel/kernel_internal.h"
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

typedef struct conv_shape {
  char text[SN_SHAPE_TEXT];
  uint32_t layer;
} conv_shape;

static int compare_shapes(const void *a, const void *b) {
  const conv_shape *x = a, *y = b;
  int order = strcmp(x->text, y->text);
  return order ? order : x->layer < y->layer ? -1 : x->layer > y->layer;
}

static void find_choices(const sn__cuda *m, uint32_t layer) {
  sn__layer *l = &m->layers[layer];
  for (sn_conv_kernel kernel = 0; kernel < SN_CONV_KERNELS; kernel++)
    for (sn_conv_algo algo = 0; algo < SN_CONV_ALGOS; algo++) {
      uint64_t workspace;
      if (find_workspace(m, layer, kernel, algo, &workspace))
        l->choices[kernel][l->n_choices[kernel]++] = (sn_conv_choice){.algo = algo, .workspace = workspace};
    }
}

/* Deep networks repeat few shapes, and cuDNN answers slowly. */
sn_status sn__conv_open(sn__cuda *m, sn_err *err) {
  const sn_net *net = m->route->net;
  conv_shape *shapes = calloc(net->n_layers, sizeof *shapes);
  uint32_t count = 0;
  if (!shapes) return sn_fail_memory(err);
  for (uint32_t i = 1; i < net->n_layers; i++) {
    if (net->layers[i].op != SN_CONV) continue;
    sn_shape_text(net, &net->layers[i], shapes[count].text, sizeof shapes[count].text);
    shapes[count++].layer = i;
  }
  qsort(shapes, count, sizeof *shapes, compare_shapes);
  for (uint32_t i = 0; i < count; i++) {
    bool same = i > 0 && strcmp(shapes[i].text, shapes[i - 1].text) == 0;
    uint32_t layer = shapes[i].layer;
    m->layers[layer].twin = same ? m->layers[shapes[i - 1].layer].twin : layer;
    if (!same) find_choices(m, layer);
  }
  free(shapes);
  return SN_OK;
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
  const sn__layer *twin = &m->layers[m->layers[layer].twin];
  sn_conv_choice choices[SN_CONV_ALGOS];
  uint32_t n_known, count = twin->n_choices[kernel];
  const sn_conv_choice *known = sn_costs_conv(costs, layer, kernel, &n_known);
  if (count == 0)
    return sn_fail(err, SN_BAD_DEVICE, "layer \"%.80s\": cuDNN has no %salgorithm for its %s convolution here",
                   m->route->net->layers[layer].name, m->options.deterministic ? "deterministic " : "", names[kernel]);
  memcpy(choices, twin->choices[kernel], sizeof choices);
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
  sn__cuda *m;
  void (*note)(void *user, uint32_t layer, sn_conv_kernel kernel, sn_conv_choice choice);
  void *user;
  cudaEvent_t begin, end;
  float *x, *y, *w; /* scratch for one layer */
  float *numbers;   /* RANDOM_FLOATS of them, in host memory */
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

/* Whether the device can go on after a call that failed: then only what was tried cannot be had. */
static bool is_usable(void) {
  cudaGetLastError();
  return cudaDeviceSynchronize() == cudaSuccess;
}

/* Times one algorithm: `measured`, or *unavailable where cuDNN offers it and cannot run it. One whose workspace the
 * device has no room for now is neither. */
static sn_status time_choice(const timer *t, uint32_t layer, sn_conv_kernel kernel, sn_conv_choice *choice,
                             bool *unavailable, sn_err *err) {
  sn_err failed = SN_ERR_INIT;
  conv_run run = run_of(t, layer, kernel, choice);
  *unavailable = false;
  if (sn__gpu_malloc(&run.workspace, choice->workspace, "a convolution workspace", &failed) != SN_OK) return SN_OK;
  choice->measured = time_run(t, &run, &choice->ns, &failed) == SN_OK;
  if (run.workspace) cudaFree(run.workspace);
  if (choice->measured) return SN_OK;
  *unavailable = is_usable();
  if (*unavailable) return SN_OK;
  *err = failed;
  sn_err_prefix(err, "layer \"%.80s\", algorithm %s", t->m->route->net->layers[layer].name,
                sn_conv_algo_name(choice->algo));
  return err->code;
}

/* Layers of one shape take the same time. */
static void note_all(const timer *t, uint32_t layer, sn_conv_kernel kernel, sn_conv_choice choice) {
  const sn_net *net = t->m->route->net;
  for (uint32_t i = layer; i < net->n_layers; i++)
    if (net->layers[i].op == SN_CONV && t->m->layers[i].twin == layer) t->note(t->user, i, kernel, choice);
}

/* An algorithm that cannot run is not offered again, unless it is the only one. */
static void forget_choice(sn__layer *l, sn_conv_kernel kernel, uint32_t index) {
  uint32_t left = l->n_choices[kernel] - 1;
  if (left == 0) return;
  memmove(&l->choices[kernel][index], &l->choices[kernel][index + 1], (left - index) * sizeof l->choices[kernel][0]);
  l->n_choices[kernel] = left;
}

static sn_status time_kernels(const timer *t, uint32_t layer, sn_err *err) {
  sn__layer *l = &t->m->layers[layer];
  for (sn_conv_kernel kernel = 0; kernel < SN_CONV_KERNELS; kernel++)
    for (uint32_t i = l->n_choices[kernel]; i-- > 0;) {
      sn_conv_choice choice = l->choices[kernel][i];
      bool unavailable;
      if (time_choice(t, layer, kernel, &choice, &unavailable, err) != SN_OK) return err->code;
      if (unavailable) forget_choice(l, kernel, i);
      if (unavailable || choice.measured) note_all(t, layer, kernel, choice);
    }
  return SN_OK;
}

enum { RANDOM_FLOATS = 65536 };

/* Ordinary numbers, as activations and weights are: recent GPUs are faster on data whose bits do not change. */
static sn_status fill(float *to, const float *numbers, uint64_t count, sn_err *err) {
  for (uint64_t done = 0; done < count;) {
    uint64_t n = sn_min(count - done, done ? done : RANDOM_FLOATS);
    if (CUDA(cudaMemcpy(to + done, done ? to : numbers, n * sizeof *to,
                        done ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice)) != SN_OK)
      return err->code;
    done += n;
  }
  return SN_OK;
}

/* Tensors of its own, as large as the layer's. */
static sn_status time_layer(timer *t, uint32_t layer, sn_err *err) {
  const sn_net *net = t->m->route->net;
  const sn_layer *l = &net->layers[layer];
  const uint64_t counts[3] = {sn__count(sn_layer_input_shape(net, l, 0)), sn__count(l->out), t->m->layers[layer].head};
  float **const tensors[3] = {&t->x, &t->y, &t->w};
  void *memory[3] = {NULL, NULL, NULL};
  for (int i = 0; i < 3 && err->code == SN_OK; i++) {
    if (sn__gpu_malloc(&memory[i], counts[i] * sizeof(float), "measuring a convolution", err) != SN_OK) break;
    *tensors[i] = memory[i];
    fill(memory[i], t->numbers, counts[i], err);
  }
  if (err->code == SN_OK && CUDA(cudaDeviceSynchronize()) == SN_OK) time_kernels(t, layer, err);
  for (int i = 0; i < 3; i++)
    if (memory[i]) cudaFree(memory[i]);
  return err->code;
}

static float *draw_numbers(void) {
  float *numbers = malloc(RANDOM_FLOATS * sizeof *numbers);
  uint64_t key = sn__random_key(1, 0);
  for (uint64_t i = 0; numbers && i < RANDOM_FLOATS; i++) numbers[i] = sn__random_normal(key, i);
  return numbers;
}

sn_status sn__conv_time_all(sn__cuda *m,
                            void (*note)(void *user, uint32_t layer, sn_conv_kernel kernel, sn_conv_choice choice),
                            void *user, sn_err *err) {
  const sn_net *net = m->route->net;
  timer t = {.m = m, .note = note, .user = user, .numbers = draw_numbers()};
  sn_status status = t.numbers ? CUDA(cudaEventCreateWithFlags(&t.begin, cudaEventDefault)) : sn_fail_memory(err);
  if (status == SN_OK) status = CUDA(cudaEventCreateWithFlags(&t.end, cudaEventDefault));
  for (uint32_t i = 1; i < net->n_layers && status == SN_OK; i++)
    if (net->layers[i].op == SN_CONV && m->layers[i].twin == i) status = time_layer(&t, i, err);
  if (t.begin) cudaEventDestroy(t.begin);
  if (t.end) cudaEventDestroy(t.end);
  free(t.numbers);
  return status;
}
