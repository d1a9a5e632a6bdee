/* CONV: cuDNN's algorithms under the names of sim/device/conv.h, their workspaces, and how long each takes here.
 *
 * Backward data and filter have no explicit GEMM and no index table of the same names: what needs no workspace stands
 * for implicit GEMM (algorithm 0), the other implicit one for the precomputed GEMM (algorithm 1). Those that add with
 * atomics, and so give other bits each time, are left out where determinism is asked for: algorithm 0 of both backward
 * kernels and algorithm 3 of the filter's (cuDNN documentation, "Reproducibility").
 *
 * The gradient with respect to the input batch, which nobody needs, is not computed, as on the CPU; the tensor that the
 * graph has for it stays unwritten. Such a layer has one algorithm for it, which takes no workspace and no time. */
#include "exec/cuda/cuda.h"

#include "base/checked.h"
#include "exec/data/random.h"
#include "exec/kernel/kernel_internal.h"
#include "sim/device/calibration.h"
#include "sim/graph/route.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NONE = -1, SAMPLES = 7 };

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

static sn_status launch_chunk(const sn__cuda *m, const conv_run *r, int algo, const sn__chunk *at, sn_err *err) {
  const sn__layer *l = &m->layers[r->layer];
  const float beta = sn__sum_beta(at);
  switch (r->kernel) {
  case SN_CONV_FORWARD:
    return CUDNN(cudnnConvolutionForward(m->gpu.cudnn, &one, at->x, r->a + at->x_at, l->w, r->b, l->conv,
                                         (cudnnConvolutionFwdAlgo_t)algo, r->workspace, r->workspace_bytes, &zero,
                                         at->y, r->out + at->y_at));
  case SN_CONV_BACKWARD_DATA:
    return CUDNN(cudnnConvolutionBackwardData(m->gpu.cudnn, &one, l->w, r->a, at->y, r->b + at->y_at, l->conv,
                                              (cudnnConvolutionBwdDataAlgo_t)algo, r->workspace, r->workspace_bytes,
                                              &zero, at->x, r->out + at->x_at));
  case SN_CONV_BACKWARD_FILTER:
    return CUDNN(cudnnConvolutionBackwardFilter(m->gpu.cudnn, &one, at->x, r->a + at->x_at, at->y, r->b + at->y_at,
                                                l->conv, (cudnnConvolutionBwdFilterAlgo_t)algo, r->workspace,
                                                r->workspace_bytes, &beta, l->w, r->out));
  case SN_CONV_KERNELS:
    break;
  }
  return sn_fail(err, SN_BUG, "convolution kernel %d does not exist", (int)r->kernel);
}

/* The whole batch. */
static sn_status launch(const sn__cuda *m, const conv_run *r, sn_err *err) {
  const sn__cut *cut = &m->layers[r->layer].cut;
  sn_status status = SN_OK;
  if (r->algo >= SN_CONV_ALGOS || algorithms[r->kernel][r->algo] == NONE)
    return sn_fail(err, SN_BUG, "the plan names algorithm %u, which this convolution does not have", r->algo);
  for (uint32_t i = 0; i < cut->chunks && status == SN_OK; i++) {
    const sn__chunk at = sn__chunk_of(cut, i);
    status = launch_chunk(m, r, algorithms[r->kernel][r->algo], &at, err);
  }
  return status;
}

sn_status sn__conv_forward(const sn__cuda *m, const sn__step *step, sn_err *err) {
  const sn_call *call = &step->call;
  conv_run run = {call->layer,      SN_CONV_FORWARD, step->algo[0],   call->x[0],
                  call->parameters, call->y[0],      call->workspace, call->workspace_bytes};
  if (launch(m, &run, err) != SN_OK) return err->code;
  return sn__in_chunks(m, call, &m->layers[call->layer].cut, sn__bias_forward, err);
}

sn_status sn__conv_backward(const sn__cuda *m, const sn__step *step, sn_err *err) {
  const sn_call *call = &step->call;
  const sn__layer *l = &m->layers[call->layer];
  conv_run data = {call->layer, SN_CONV_BACKWARD_DATA, step->algo[0],   call->parameters,
                   call->dy[0], call->dx[0],           call->workspace, call->workspace_bytes};
  conv_run filter = {call->layer, SN_CONV_BACKWARD_FILTER, step->algo[1],   call->x[0],
                     call->dy[0], call->gradients,         call->workspace, call->workspace_bytes};
  if (!l->reads_batch && launch(m, &data, err) != SN_OK) return err->code;
  if (launch(m, &filter, err) != SN_OK) return err->code;
  return sn__in_chunks(m, call, &l->cut, sn__bias_backward, err);
}

/* ---- what there is to choose from ---- */

static cudnnStatus_t ask_workspace(const sn__cuda *m, const sn__layer *l, sn_conv_kernel kernel, int id,
                                   cudnnTensorDescriptor_t x, cudnnTensorDescriptor_t y, size_t *bytes) {
  if (kernel == SN_CONV_FORWARD)
    return cudnnGetConvolutionForwardWorkspaceSize(m->gpu.cudnn, x, l->w, l->conv, y, (cudnnConvolutionFwdAlgo_t)id,
                                                   bytes);
  if (kernel == SN_CONV_BACKWARD_DATA)
    return cudnnGetConvolutionBackwardDataWorkspaceSize(m->gpu.cudnn, l->w, y, l->conv, x,
                                                        (cudnnConvolutionBwdDataAlgo_t)id, bytes);
  return cudnnGetConvolutionBackwardFilterWorkspaceSize(m->gpu.cudnn, x, y, l->conv, l->w,
                                                        (cudnnConvolutionBwdFilterAlgo_t)id, bytes);
}

/* Whether cuDNN has the algorithm for this layer on this device, for every chunk, and the workspace of the neediest. */
static bool find_workspace(const sn__cuda *m, uint32_t layer, sn_conv_kernel kernel, sn_conv_algo algo,
                           uint64_t *workspace) {
  const sn__layer *l = &m->layers[layer];
  int id = algorithms[kernel][algo];
  *workspace = 0;
  if (id == NONE || (m->options.deterministic && !is_deterministic(kernel, algo))) return false;
  for (int i = 0; i < 2 && l->cut.x[i]; i++) {
    size_t bytes = 0;
    if (ask_workspace(m, l, kernel, id, l->cut.x[i], l->cut.y[i], &bytes) != CUDNN_STATUS_SUCCESS) return false;
    *workspace = sn_max(*workspace, bytes);
  }
  return true;
}

typedef struct conv_shape {
  char text[SN_SHAPE_TEXT];
  bool reads_batch;
  uint32_t layer;
} conv_shape;

/* A deterministic one, which every plan may name. */
static const sn_conv_choice no_work = {.algo = SN_PRECOMPUTED_GEMM, .measured = true};

static bool is_no_work(const sn__layer *l, sn_conv_kernel kernel) {
  return kernel == SN_CONV_BACKWARD_DATA && l->reads_batch;
}

static int compare_shapes(const void *a, const void *b) {
  const conv_shape *x = a, *y = b;
  int order = strcmp(x->text, y->text);
  if (order == 0) order = (int)x->reads_batch - (int)y->reads_batch;
  return order ? order : x->layer < y->layer ? -1 : x->layer > y->layer;
}

static void find_choices(const sn__cuda *m, uint32_t layer) {
  sn__layer *l = &m->layers[layer];
  for (sn_conv_kernel kernel = 0; kernel < SN_CONV_KERNELS; kernel++) {
    if (is_no_work(l, kernel)) l->choices[kernel][l->n_choices[kernel]++] = no_work;
    for (sn_conv_algo algo = 0; algo < SN_CONV_ALGOS && !is_no_work(l, kernel); algo++) {
      uint64_t workspace;
      if (find_workspace(m, layer, kernel, algo, &workspace))
        l->choices[kernel][l->n_choices[kernel]++] = (sn_conv_choice){.algo = algo, .workspace = workspace};
    }
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
    m->layers[i].reads_batch = shapes[count].reads_batch = sn__reads_batch(net, i);
    sn_shape_text(net, &net->layers[i], shapes[count].text, sizeof shapes[count].text);
    shapes[count++].layer = i;
  }
  qsort(shapes, count, sizeof *shapes, compare_shapes);
  for (uint32_t i = 0; i < count; i++) {
    bool same =
        i > 0 && strcmp(shapes[i].text, shapes[i - 1].text) == 0 && shapes[i].reads_batch == shapes[i - 1].reads_batch;
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
                   m->route->layers[layer].name, m->options.deterministic ? "deterministic " : "", names[kernel]);
  memcpy(choices, twin->choices[kernel], sizeof choices);
  for (uint32_t i = 0; i < count && !is_no_work(twin, kernel); i++)
    choices[i].ns = formula_ns(known, n_known, choices[i].algo);
  return sn_costs_set_conv(costs, layer, kernel, choices, count, err);
}

sn_status sn__conv_offer(const sn__cuda *m, uint32_t layer, sn_costs *costs, sn_err *err) {
  sn_status status = SN_OK;
  for (sn_conv_kernel kernel = 0; kernel < SN_CONV_KERNELS && status == SN_OK; kernel++)
    status = offer_kernel(m, layer, kernel, costs, err);
  return status;
}

/* ---- how long each takes ---- */

/* The device works on two copies of half of so much ahead of each run, 0.2 ms where memory moves 3 TB/s: long enough
 * for the host to have everything behind them queued, so that only the device is timed; and what the run before left in
 * the device's caches is gone. */
#define SPACER_BYTES (UINT64_C(256) << 20)

typedef struct timer {
  sn__cuda *m;
  sn_timed_algorithms *timed;
  bool (*stop)(void *user);
  void *user;
  cudaEvent_t begins[SAMPLES], ends[SAMPLES];
  int64_t best_ns;       /* of the layer's kernel; 0: none yet */
  unsigned char *spacer; /* NULL: the device has no room for one */
  uint64_t spacer_bytes;
  float *x, *y, *w; /* scratch for one layer */
  float *numbers;   /* RANDOM_FLOATS of them, in host memory */
} timer;

static sn_status space(const timer *t, cudaStream_t stream, sn_err *err) {
  uint64_t half = t->spacer_bytes / 2;
  for (int i = 0; t->spacer && i < 2; i++)
    if (CUDA(cudaMemcpyAsync(t->spacer + half, t->spacer, half, cudaMemcpyDeviceToDevice, stream)) != SN_OK) break;
  return err->code;
}

static sn_status queue_run(const timer *t, const conv_run *run, int sample, sn_err *err) {
  cudaStream_t stream = t->m->gpu.streams[SN_LANE_COMPUTE];
  if (space(t, stream, err) != SN_OK || CUDA(cudaEventRecord(t->begins[sample], stream)) != SN_OK ||
      launch(t->m, run, err) != SN_OK)
    return err->code;
  return CUDA(cudaEventRecord(t->ends[sample], stream));
}

static int compare(const void *a, const void *b) {
  const float *x = a, *y = b;
  return *x < *y ? -1 : *x > *y;
}

/* The median of `count` runs. */
static sn_status time_runs(const timer *t, const conv_run *run, int count, int64_t *ns, sn_err *err) {
  float ms[SAMPLES];
  for (int i = 0; i < count; i++)
    if (queue_run(t, run, i, err) != SN_OK) return err->code;
  if (CUDA(cudaDeviceSynchronize()) != SN_OK) return err->code;
  for (int i = 0; i < count; i++)
    if (CUDA(cudaEventElapsedTime(&ms[i], t->begins[i], t->ends[i])) != SN_OK) return err->code;
  qsort(ms, (size_t)count, sizeof *ms, compare);
  *ns = llround((double)ms[count / 2] * 1e6);
  return SN_OK;
}

/* The first run loads the kernels. What is far slower than another algorithm of the same kernel is timed once: no plan
 * takes it while there is room for the other. */
static sn_status time_run(timer *t, const conv_run *run, int64_t *ns, sn_err *err) {
  enum { FAR = 3 };
  for (int i = 0; i < 2; i++)
    if (time_runs(t, run, 1, ns, err) != SN_OK) return err->code;
  if (t->best_ns > 0 && *ns > FAR * t->best_ns) return SN_OK;
  if (time_runs(t, run, SAMPLES, ns, err) == SN_OK && (t->best_ns == 0 || *ns < t->best_ns)) t->best_ns = *ns;
  return err->code;
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

/* Times one algorithm: `measured`, or *unavailable where cuDNN offers it and cannot run it, which the device may not
 * survive: an error. One whose workspace the device has no room for now is neither. */
static sn_status time_choice(timer *t, uint32_t layer, sn_conv_kernel kernel, sn_conv_choice *choice, bool *unavailable,
                             sn_err *err) {
  sn_err failed = SN_ERR_INIT;
  conv_run run = run_of(t, layer, kernel, choice);
  *unavailable = false;
  if (choice->measured) return SN_OK; /* there is no work */
  if (sn__gpu_malloc(&run.workspace, choice->workspace, "a convolution workspace", &failed) != SN_OK) return SN_OK;
  choice->measured = time_run(t, &run, &choice->ns, &failed) == SN_OK;
  if (run.workspace) cudaFree(run.workspace);
  *unavailable = !choice->measured;
  if (choice->measured || is_usable()) return SN_OK;
  *err = failed;
  sn_err_prefix(err, "layer \"%.80s\", algorithm %s", t->m->route->layers[layer].name, sn_conv_algo_name(choice->algo));
  return err->code;
}

/* Layers of one shape take the same time. From entry `at` on. */
static void note_all(const timer *t, uint32_t at, uint32_t layer, sn_conv_kernel kernel, sn_conv_choice choice) {
  const sn_net *net = t->m->route->net;
  t->timed->count = at;
  for (uint32_t i = layer; i < net->n_layers; i++)
    if (net->layers[i].op == SN_CONV && t->m->layers[i].twin == layer)
      t->timed->list[t->timed->count++] = (sn_timed_algorithm){i, kernel, choice};
}

/* By an earlier process. */
static const sn_timed_algorithm *find_known(const timer *t, uint32_t layer, sn_conv_kernel kernel, sn_conv_algo algo) {
  for (uint32_t i = 0; i < t->timed->count; i++) {
    const sn_timed_algorithm *known = &t->timed->list[i];
    if (known->layer == layer && known->kernel == kernel && known->choice.algo == algo) return known;
  }
  return NULL;
}

/* An algorithm that cannot run is not offered again, unless it is the only one. */
static void forget_choice(sn__layer *l, sn_conv_kernel kernel, uint32_t index) {
  uint32_t left = l->n_choices[kernel] - 1;
  if (left == 0) return;
  memmove(&l->choices[kernel][index], &l->choices[kernel][index + 1], (left - index) * sizeof l->choices[kernel][0]);
  l->n_choices[kernel] = left;
}

/* One algorithm of a layer's kernel, unless it is known. While it runs it is noted as one that does not: the process
 * may not survive it. */
static sn_status time_one(timer *t, uint32_t layer, sn_conv_kernel kernel, uint32_t index, sn_err *err) {
  sn__layer *l = &t->m->layers[layer];
  sn_conv_choice choice = l->choices[kernel][index];
  const sn_timed_algorithm *known = find_known(t, layer, kernel, choice.algo);
  bool unavailable = known && !known->choice.measured;
  if (!known) {
    const uint32_t at = t->timed->count;
    note_all(t, at, layer, kernel, (sn_conv_choice){.algo = choice.algo, .workspace = choice.workspace});
    time_choice(t, layer, kernel, &choice, &unavailable, err);
    if (choice.measured) note_all(t, at, layer, kernel, choice);
    if (!choice.measured && !unavailable) t->timed->count = at;
  }
  if (unavailable) forget_choice(l, kernel, index);
  return err->code;
}

static sn_status time_kernels(timer *t, uint32_t layer, sn_err *err) {
  const sn__layer *l = &t->m->layers[layer];
  for (sn_conv_kernel kernel = 0; kernel < SN_CONV_KERNELS; kernel++) {
    t->best_ns = 0;
    for (uint32_t i = l->n_choices[kernel]; i-- > 0;) {
      if (t->stop && t->stop(t->user)) return SN_OK;
      if (time_one(t, layer, kernel, i, err) != SN_OK) return err->code;
    }
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

/* A small part of the device's memory: the smaller a device, the slower it is. */
static void open_spacer(timer *t) {
  sn_err none = SN_ERR_INIT;
  size_t unused = 0, total = 0;
  void *memory = NULL;
  if (cudaMemGetInfo(&unused, &total) != cudaSuccess) return;
  t->spacer_bytes = sn_min(SPACER_BYTES, unused / 256) / 512 * 512;
  if (t->spacer_bytes > 0) sn__gpu_malloc(&memory, t->spacer_bytes, "measuring", &none);
  t->spacer = memory;
}

static sn_status open_timer(timer *t, sn_err *err) {
  t->numbers = draw_numbers();
  if (!t->numbers) return sn_fail_memory(err);
  for (int i = 0; i < SAMPLES; i++)
    if (CUDA(cudaEventCreateWithFlags(&t->begins[i], cudaEventDefault)) != SN_OK ||
        CUDA(cudaEventCreateWithFlags(&t->ends[i], cudaEventDefault)) != SN_OK)
      return err->code;
  open_spacer(t);
  return SN_OK;
}

static void close_timer(timer *t) {
  for (int i = 0; i < SAMPLES; i++) {
    if (t->begins[i]) cudaEventDestroy(t->begins[i]);
    if (t->ends[i]) cudaEventDestroy(t->ends[i]);
  }
  if (t->spacer) cudaFree(t->spacer);
  free(t->numbers);
}

sn_status sn__conv_time_all(sn__cuda *m, sn_timed_algorithms *timed, bool (*stop)(void *user), void *user,
                            sn_err *err) {
  const sn_net *net = m->route->net;
  timer t = {.m = m, .timed = timed, .stop = stop, .user = user};
  sn_status status = open_timer(&t, err);
  for (uint32_t i = 1; i < net->n_layers && status == SN_OK; i++)
    if (net->layers[i].op == SN_CONV && m->layers[i].twin == i) status = time_layer(&t, i, err);
  close_timer(&t);
  return status;
}
