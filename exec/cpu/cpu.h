/* CPU module, internal: the kernels by operator and what they share; kernels.c chooses.
 *
 * A primitive is a oneDNN kernel made once, with a memory object per argument. A run points these at the call's
 * tensors, in the order of the arguments it was made with.
 */
#ifndef SN_EXEC_CPU_CPU_H
#define SN_EXEC_CPU_CPU_H

#include "exec/kernel/kernel_internal.h"
#include "exec/machine/cpu_module.h"

#include <oneapi/dnnl/dnnl.h>

enum { SN__MAX_ARGS = 8 };

typedef struct sn__primitive {
  dnnl_primitive_t handle;
  int n_args;             /* without the scratchpad, which comes after them */
  uint64_t scratch_bytes; /* 0: it has none */
  dnnl_exec_arg_t args[SN__MAX_ARGS];
} sn__primitive;

/* Of a CONV, DECONV or FC all three, of others the first two or none. */
typedef struct sn__cpu_layer {
  sn__primitive forward, backward, weights;
  bool made;
} sn__cpu_layer;

struct sn__cpu {
  const sn_net *net;
  int threads;
  dnnl_engine_t engine;
  dnnl_stream_t stream;
  sn__cpu_layer *layers; /* one per layer of the net */
  bool shares;           /* layers and engine are those of others */
  int64_t *positions;    /* POOL backward over its own input: of one plane, the largest output of a maximum */
  char version[64];
};

/* `descriptor` is what oneDNN's ..._desc_init() has filled; `forward` is NULL but for a backward. What is made in part
 * is left to sn__primitive_free(). */
sn_status sn__primitive_new(sn__cpu *k, const void *descriptor, const sn__primitive *forward, const int *args,
                            int n_args, sn__primitive *primitive, sn_err *err);
void sn__primitive_free(sn__primitive *primitive);
sn_status sn__primitive_run(const sn__cpu *k, const sn__primitive *primitive, float *const *tensors,
                            const sn_call *call, sn_err *err);

/* Records what oneDNN answered; SN_OK where it was content. */
sn_status sn__dnnl_check(dnnl_status_t status, const char *what, sn_err *err);

/* A dense float32 tensor of n_dims dimensions, the last one contiguous. */
sn_status sn__dnnl_tensor(dnnl_memory_desc_t *desc, int n_dims, const dnnl_dims_t dims, sn_err *err);
sn_status sn__dnnl_nchw(dnnl_memory_desc_t *desc, sn_shape shape, sn_err *err);

/* Operators with primitives. POOL has them for averages only. */
sn_status sn__cpu_conv_make(sn__cpu *k, uint32_t layer, sn_err *err);
sn_status sn__cpu_conv_forward(sn__cpu *k, const sn_call *call, sn_err *err);
sn_status sn__cpu_conv_backward(sn__cpu *k, const sn_call *call, sn_err *err); /* the call's part of it */
sn_status sn__cpu_deconv_make(sn__cpu *k, uint32_t layer, sn_err *err);
sn_status sn__cpu_deconv_forward(sn__cpu *k, const sn_call *call, sn_err *err);
sn_status sn__cpu_deconv_backward(sn__cpu *k, const sn_call *call, sn_err *err); /* the call's part of it */
sn_status sn__cpu_fc_make(sn__cpu *k, uint32_t layer, sn_err *err);
sn_status sn__cpu_fc_forward(sn__cpu *k, const sn_call *call, sn_err *err);
sn_status sn__cpu_fc_backward(sn__cpu *k, const sn_call *call, sn_err *err); /* the call's part of it */
sn_status sn__cpu_act_make(sn__cpu *k, uint32_t layer, sn_err *err);
sn_status sn__cpu_act_forward(sn__cpu *k, const sn_call *call, sn_err *err);
sn_status sn__cpu_act_backward(sn__cpu *k, const sn_call *call, sn_err *err);
sn_status sn__cpu_pool_make(sn__cpu *k, uint32_t layer, sn_err *err);
sn_status sn__cpu_pool_forward(sn__cpu *k, const sn_call *call, sn_err *err);
sn_status sn__cpu_pool_backward(sn__cpu *k, const sn_call *call, sn_err *err);

/* Operators in loops of ours. Threads share them so that no result depends on which thread did what. */
void sn__cpu_bn_forward(const sn_call *call);
void sn__cpu_bn_backward(const sn_call *call);
void sn__cpu_lrn_forward(const sn_call *call);
void sn__cpu_lrn_backward(const sn_call *call);
uint64_t sn__cpu_lrn_scratch(const sn_layer *layer, int threads);
void sn__cpu_dropout_forward(const sn_call *call);
void sn__cpu_dropout_backward(const sn_call *call);
void sn__cpu_softmax_forward(const sn_call *call);
void sn__cpu_softmax_backward(const sn_call *call);
void sn__cpu_join_forward(const sn_call *call);
void sn__cpu_join_backward(const sn_call *call);
void sn__cpu_fork_forward(const sn_call *call);
void sn__cpu_fork_backward(const sn_call *call);
void sn__cpu_concat_forward(const sn_call *call);
void sn__cpu_concat_backward(const sn_call *call);
void sn__cpu_update(const sn_call *call);

/* Whether so many threads can be started beside the caller's. SN_BAD_DEVICE says how many can. */
sn_status sn__cpu_try_threads(unsigned count, sn_err *err);

/* Below this many elements a second thread costs more than it does. */
enum { SN__WORTH_THREADS = 1 << 15 };

#endif
