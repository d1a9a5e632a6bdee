/* CUDA module, internal: the machine that trains on one GPU, and what its parts offer each other.
 *
 *   gpu.c       opens the device, streams and library handles; memory with errors that help
 *   nvml.c      what is in use on the device, and its driver
 *   layers.c    cuDNN descriptors and places of parameters, per layer
 *   chunks.c    the images of a batch that a kernel is given at once
 *   conv.c      CONV: algorithms, workspaces, times
 *   kernels.c   every other operator, and the update
 *   store.c     what lies outside the pool: parameters, statistics, batch, masks, labels
 *   play.c      the back end that obeys a plan
 *   machine.c   the table of functions (exec/machine/machine.h) and the module's entry
 *
 * Device memory: the pool of the play at hand, exactly as planned, one block for what is trained and given (batch,
 * masks, one-hot labels), and cuBLAS's workspace. Pinned host memory: the external pool, and what the host exchanges
 * with the device between iterations (masks, one-hot labels, logits). There are no
 * kernels of our own: everything is done by cuDNN, cuBLAS and copies. docs/cuda.md has the whole picture.
 */
#ifndef SN_EXEC_CUDA_CUDA_H
#define SN_EXEC_CUDA_CUDA_H

#include "exec/cuda/chunks.h"
#include "exec/machine/machine.h"

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- errors: SN_BAD_DEVICE with the call's name and the library's text ---- */

sn_status sn__cuda_check(cudaError_t code, const char *call, sn_err *err);
sn_status sn__cudnn_check(cudnnStatus_t code, const char *call, sn_err *err);
sn_status sn__cublas_check(cublasStatus_t code, const char *call, sn_err *err);

/* Their value is a sn_status; `err` must be in scope. */
#define CUDA(call)   sn__cuda_check(call, #call, err)
#define CUDNN(call)  sn__cudnn_check(call, #call, err)
#define CUBLAS(call) sn__cublas_check(call, #call, err)

/* ---- the device ---- */

typedef struct sn__gpu {
  cudaStream_t streams[SN_PLAIN_LANES];
  cudnnHandle_t cudnn; /* both run on the compute stream */
  cublasHandle_t cublas;
  void *cublas_workspace; /* device; it would take memory of its own */
  void *nvml;             /* see below; NULL: not there */
  uint64_t base_bytes;    /* in use when it was opened */
} sn__gpu;

/* What is missing, in words: driver, device. */
sn_status sn__gpu_find(sn_err *err);
/* `gpu` and `info` are zeroed by the caller; sn__gpu_close() after an error as well. */
sn_status sn__gpu_open(sn__gpu *gpu, bool tf32, sn_machine_info *info, sn_err *err);
void sn__gpu_close(sn__gpu *gpu);
sn_status sn__gpu_used(const sn__gpu *gpu, uint64_t *bytes, sn_err *err);
/* The largest pool that can be had: what is free but for what kernels take when they are loaded. */
sn_status sn__gpu_room(uint64_t *bytes, sn_err *err);

/* Device or pinned host memory; `what` it is for stands in the error. 0 bytes are NULL. */
sn_status sn__gpu_malloc(void **memory, uint64_t bytes, const char *what, sn_err *err);
sn_status sn__gpu_pin(void **memory, uint64_t bytes, const char *what, sn_err *err);

/* nvml.c: memory in use on the whole device as the driver counts it, which the runtime cannot say before it has made a
 * context. NULL where there is no libnvidia-ml. */
void *sn__nvml_open(int device);
bool sn__nvml_used(const void *nvml, uint64_t *bytes);
bool sn__nvml_driver(const void *nvml, char *version, unsigned room); /* "580.65.06" */
void sn__nvml_close(void *nvml);

/* ---- layers ---- */

/* A layer's own: descriptors, those NULL that its operator has no use for, and where its state lies. cuDNN wants
 * aligned addresses, so on the device weights and bias (gamma and beta) lie apart. */
typedef struct sn__layer {
  sn__cut cut;                      /* of the batch: input 0 and output */
  sn__cut few;                      /* LRN backward: chunks of a few images */
  cudnnTensorDescriptor_t channels; /* 1 x c x 1 x 1: bias, BN's parameters and statistics */
  cudnnTensorDescriptor_t trained;  /* 1 x 1 x 1 x span: parameters, their gradients, momentum */
  cudnnFilterDescriptor_t w;
  cudnnConvolutionDescriptor_t conv;
  cudnnPoolingDescriptor_t pool;
  cudnnLRNDescriptor_t lrn;
  uint64_t at, head, tail_at, tail; /* parameters, in floats: weights and bias, or gamma and beta */
  uint64_t span;                    /* both with what is between and behind: at .. at + span */
  uint64_t statistics_at;           /* floats; four of them, each `statistics_step` */
  uint64_t statistics_step;
  uint64_t given_at;  /* floats, in host and device memory: DROPOUT's mask, SOFTMAX's one-hot labels */
  uint64_t logits_at; /* floats, in host memory: SOFTMAX's input */
  bool reads_batch;   /* CONV: no gradient with respect to its input is computed */
  uint32_t twin;      /* CONV: the first layer of the same shape, which has the choices of all of them */
  uint32_t n_choices[SN_CONV_KERNELS];
  sn_conv_choice choices[SN_CONV_KERNELS][SN_CONV_ALGOS]; /* algorithms that cuDNN has for it, and workspaces */
} sn__layer;

typedef struct sn__cuda {
  const sn_route *route;
  sn_machine_options options;
  sn__gpu gpu;
  sn__layer *layers;
  cudnnActivationDescriptor_t relu, relu6;
  cudnnOpTensorDescriptor_t add, multiply;
  uint64_t n_parameters, n_statistics, n_given, n_logits;               /* floats, with what alignment adds */
  void *resident;                                                       /* device: everything below in one block */
  float *parameters, *gradients, *momentum, *statistics, *data, *given; /* momentum: NULL where SGD has none */
  float *host_given, *host_logits;                                      /* pinned */
  sn_state *state;                                                      /* of start(), or NULL */
  const sn_batch *batch; /* of feed(), until its iteration is over; else NULL */
  sn_outcome outcome;
  struct sn__cuda_play *play;
} sn__cuda;

sn_status sn__layers_open(sn__cuda *m, sn_err *err);
void sn__layers_close(sn__cuda *m);

/* A step at hand: pointers into the device, and the algorithms that the plan has picked. */
typedef struct sn__step {
  sn_call call;
  uint8_t algo[2];
} sn__step;

/* ---- kernels: they only start work on the compute stream ---- */

sn_status sn__kernel_run(const sn__cuda *m, const sn__step *step, sn_err *err);
/* Bytes of workspace that a step needs, whatever it is. */
uint64_t sn__kernel_scratch(const sn__cuda *m, uint32_t layer, sn_pass pass);

/* What a kernel does to one chunk of a layer's batch. */
typedef sn_status (*sn__chunk_kernel)(const sn__cuda *m, const sn_call *call, const sn__chunk *at, sn_err *err);
sn_status sn__in_chunks(const sn__cuda *m, const sn_call *call, const sn__cut *cut, sn__chunk_kernel run, sn_err *err);
/* Of CONV and FC alike; nothing where the layer has no bias. */
sn_status sn__bias_forward(const sn__cuda *m, const sn_call *call, const sn__chunk *at, sn_err *err);
sn_status sn__bias_backward(const sn__cuda *m, const sn_call *call, const sn__chunk *at, sn_err *err);

sn_status sn__conv_forward(const sn__cuda *m, const sn__step *step, sn_err *err);
sn_status sn__conv_backward(const sn__cuda *m, const sn__step *step, sn_err *err);
/* Fills twins and choices, once a shape. */
sn_status sn__conv_open(sn__cuda *m, sn_err *err);
sn_status sn__conv_offer(const sn__cuda *m, uint32_t layer, sn_costs *costs, sn_err *err);
/* See sn_machine_ops. */
sn_status sn__conv_time_all(sn__cuda *m, sn_timed_algorithms *timed, bool (*stop)(void *user), void *user, sn_err *err);

/* ---- what lies outside the pool ---- */

/* *persistent, zeroed by the caller: what it keeps on the device; one-hot labels are auxiliary there. */
sn_status sn__store_open(sn__cuda *m, sn_persistent *persistent, sn_err *err);
void sn__store_close(sn__cuda *m);
sn_status sn__store_upload(sn__cuda *m, sn_err *err);   /* from m->state */
sn_status sn__store_download(sn__cuda *m, sn_err *err); /* to m->state */
sn_status sn__store_feed(sn__cuda *m, const sn_batch *batch, sn_err *err);
/* Masks of the iteration and one-hot labels: drawn on the host; their copy to the device is started on the compute
 * stream. */
sn_status sn__store_draw(sn__cuda *m, uint64_t iteration, sn_err *err);
/* The outcome from the inputs of the SOFTMAX layers, which have been copied to the host. */
void sn__store_judge(sn__cuda *m);

/* ---- the back end ---- */

sn_backend sn__cuda_backend(sn__cuda *m);

#endif
